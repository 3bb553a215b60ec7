/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "load_rig.h"

#include "mr_plan.h"

#include <errno.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOAD_FRAME 64u

void load_die(const char *what)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
	exit(1);
}

void load_eal(const char *program, const char *memory_mib)
{
	char *eal[] = {(char *)program, "--no-huge", "--no-pci", "-m", (char *)memory_mib,
		"--no-telemetry", "--no-shconf", "--file-prefix", (char *)program, "--log-level",
		"error", "-l", "0"};
	cpu_set_t cpus;

	/* EAL pins the thread that starts it; the others are to have all cores. */
	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0 ||
		rte_eal_init((int)MR_ARRAY_LEN(eal), eal) < 0 ||
		sched_setaffinity(0, sizeof(cpus), &cpus) != 0)
		load_die("EAL");
}

void load_plan(struct load_conf *c)
{
	static struct mr_problems problems;
	static struct mr_host host;
	static struct mr_plan plan;
	struct mr_config cfg;
	char text[512];

	snprintf(text, sizeof(text),
		"devices: [{name: g0, device: sim}]\n"
		"ports: [{name: p0, device: net_null0, rx_ring: %u, tx_ring: %u}]\n"
		"lanes:\n"
		"  - {name: l0, rx: {port: p0, queue: 0}, tx: [{port: p0, queue: 0}], core: any,\n"
		"     device: g0, path: [direct], batch: {packets: %u}, slots: %u, overload: %s}\n",
		c->rx_ring, c->tx_ring, c->batch, c->slots, c->shed ? "shed" : "block");
	if (mr_config_parse("load.yaml", text, strlen(text), &cfg, &problems) != 0 ||
		mr_plan_build(&cfg, &host, "load", &plan, &problems) != 0)
		load_die("the lane cannot be planned");
	mr_config_free(&cfg);
	c->buffers = plan.lanes[0].buffers_min;
	c->cache = plan.lanes[0].cache;
	c->backlog = plan.lanes[0].tx[0].backlog;
}

static void *zeroed(size_t bytes)
{
	void *p = aligned_alloc(65536, MR_ALIGN_UP(bytes, 65536));

	if (p == NULL)
		load_die("out of memory");
	memset(p, 0, bytes);
	return p;
}

static uint16_t make_port(struct load_side *s)
{
	struct rte_eth_conf conf = {0};
	static uint32_t ports;
	char name[32];
	int port;

	snprintf(name, sizeof(name), "in%u", ports);
	s->in = rte_ring_create(name, s->conf.rx_ring, SOCKET_ID_ANY, 0);
	snprintf(name, sizeof(name), "out%u", ports);
	s->out = rte_ring_create(name, s->conf.tx_ring, SOCKET_ID_ANY, 0);
	snprintf(name, sizeof(name), "port%u", ports++);
	port = rte_eth_from_rings(name, &s->in, 1, &s->out, 1, 0);
	if (port < 0 || rte_eth_dev_configure((uint16_t)port, 1, 1, &conf) != 0 ||
		rte_eth_rx_queue_setup((uint16_t)port, 0, (uint16_t)s->conf.rx_ring, SOCKET_ID_ANY,
			NULL, s->pool) != 0 ||
		rte_eth_tx_queue_setup(
			(uint16_t)port, 0, (uint16_t)s->conf.tx_ring, SOCKET_ID_ANY, NULL) != 0 ||
		rte_eth_dev_start((uint16_t)port) != 0)
		load_die("port");
	return (uint16_t)port;
}

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void make_kernel(
	struct load_side *s, uint8_t *region, size_t bytes, uint8_t *in, uint8_t *out)
{
	struct mr_chain_dev *c = s->dev.chain;

	s->ctl = zeroed(s->conf.workers * sizeof(*s->ctl));
	s->host = zeroed(sizeof(*s->host));
	s->counters = zeroed(2 * s->conf.workers * MR_COUNTERS_MAX * sizeof(uint64_t));
	s->dev = (struct mr_lane_dev){.region = address(region),
		.in = address(in),
		.out = address(out),
		.workers_ctl = address(s->ctl),
		.counters_out = address(s->counters),
		.counters_acc = address(s->counters + s->conf.workers * MR_COUNTERS_MAX),
		.region_units = (uint32_t)(bytes / MR_UNIT),
		.room = LOAD_ELEMENT,
		.in_stride = MR_SLOT_BYTES(s->conf.batch),
		.out_stride = MR_SLOT_BYTES(s->conf.batch),
		.slots = s->conf.slots,
		.batch = s->conf.batch,
		.workers = s->conf.workers,
		.tx_count = 1,
		.first_seq = UINT32_MAX - 1000, /* the wrap lies inside the run */
		.chain_len = 1};
	c[0].stage = MR_STAGE_l2swap;
	for (uint32_t w = 0; w < s->conf.workers; w++)
		s->map[w] = (struct mr_worker_map){.lane = 0, .worker = w};
	s->launch = (struct mr_launch){.lanes = address(&s->dev),
		.map = address(s->map),
		.host_ctl = address(s->host),
		.blocks = s->conf.workers};
}

void load_side_make(struct load_side *s, const struct load_conf *conf)
{
	size_t bytes = MR_ALIGN_UP((size_t)conf->buffers * LOAD_ELEMENT, 65536) + 65536;
	struct rte_pktmbuf_extmem mem = {.buf_len = bytes, .elt_size = LOAD_ELEMENT};
	uint8_t *region = zeroed(bytes), *in = zeroed(conf->slots * MR_SLOT_BYTES(conf->batch));
	uint8_t *out = zeroed(conf->slots * MR_SLOT_BYTES(conf->batch));
	struct mr_lane *l = zeroed(sizeof(*l));
	static uint32_t pools;
	char name[32];

	s->conf = *conf;
	mem.buf_ptr = region;
	mem.buf_iova = address(region);
	snprintf(name, sizeof(name), "pool%u", pools++);
	s->pool = rte_pktmbuf_pool_create_extbuf(
		name, conf->buffers, conf->cache, 0, LOAD_ELEMENT, SOCKET_ID_ANY, &mem, 1);
	if (s->pool == NULL)
		load_die("pool");
	s->lane = l;
	make_kernel(s, region, bytes, in, out);
	if (mr_ring_init(
		    &l->ring, in, NULL, out, conf->slots, conf->batch, s->dev.first_seq, NULL) != 0)
		load_die("ring: slots a power of two, batch 1 to 1024");
	l->yield_polls = 64;
	l->publish_tsc = rte_get_tsc_hz() / 100;
	l->rx = (struct mr_rx){.ring = &l->ring,
		.counters = &l->counters,
		.timeout_tsc = rte_get_tsc_hz() / 1000000 * conf->timeout_us,
		.describe = mr_rx_describe_best(),
		.workers = conf->workers,
		.port = make_port(s),
		.shed = conf->shed};
	mr_rx_window_init(&l->rx.window, address(region), bytes, LOAD_ELEMENT);
	l->tx.ring = &l->ring;
	l->tx.counters = &l->counters;
	l->tx.latency = &l->latency;
	l->mbufs = zeroed((size_t)conf->slots * conf->batch * sizeof(void *));
	l->slots = zeroed(conf->slots * sizeof(struct mr_ring_note));
	l->tx.room = LOAD_ELEMENT;
	l->tx.tx_count = 1;
	l->tx.timeout_tsc = rte_get_tsc_hz() / 1000000 * conf->tx_timeout_us;
	l->tx.ns_per_tsc = (1000000000ull << MR_TX_TSC_SHIFT) / rte_get_tsc_hz();
	l->tx.q[0] = (struct mr_txq){.port = l->rx.port,
		.wait = zeroed(conf->backlog * sizeof(void *)),
		.wait_tsc = zeroed(conf->backlog * sizeof(uint64_t)),
		.mask = conf->backlog - 1,
		.limit = conf->backlog};
}

static void *lane_thread(void *arg)
{
	if (rte_thread_register() < 0)
		load_die("rte_thread_register");
	mr_lane_loop(arg);
	rte_thread_unregister();
	return NULL;
}

struct block {
	struct load_side *side;
	uint32_t index;
};

static void *worker_thread(void *arg)
{
	struct block b = *(struct block *)arg;

	free(arg);
	mr_image_sim.kernels[0].entry(address(&b.side->launch), b.index, &b.side->orders);
	return NULL;
}

void load_side_start(struct load_side *s)
{
	s->orders = (struct mr_sim_orders){.fence = s->conf.fence, .ctx = s->conf.fence_ctx};
	for (uint32_t w = 0; w < s->conf.workers; w++) {
		struct block *b = zeroed(sizeof(*b));

		*b = (struct block){s, w};
		if (pthread_create(&s->worker[w], NULL, worker_thread, b) != 0)
			load_die("thread");
	}
	mr_lane_want(s->lane, MR_LANE_RUN);
	if (pthread_create(&s->thread, NULL, lane_thread, s->lane) != 0)
		load_die("thread");
}

/* Destination holds the number, source its complement; l2swap exchanges them. */
void load_write_frame(struct rte_mbuf *m, uint64_t number)
{
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	uint64_t inverse = ~number;

	memcpy(p, &number, 6);
	memcpy(p + 6, &inverse, 6);
	memcpy(p + 16, &number, 8);
	m->data_len = LOAD_FRAME;
	m->pkt_len = LOAD_FRAME;
}

void load_check_frame(struct load_side *s, struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	uint64_t number, inverse;

	memcpy(&number, p + 16, 8);
	inverse = ~number;
	if (number < s->next || number >= s->sent) {
		fprintf(stderr, "frame %llu of %llu came where %llu was due\n",
			(unsigned long long)number, (unsigned long long)s->sent,
			(unsigned long long)s->next);
		exit(1);
	}
	s->next = number + 1;
	if (memcmp(p, &inverse, 6) != 0 || memcmp(p + 6, &number, 6) != 0)
		load_die("a frame was not swapped exactly once");
}

void load_generate(struct load_side *s, uint32_t n, uint64_t total)
{
	struct rte_mbuf *m[LOAD_BURST];
	uint32_t got = 0, put;

	if (n > LOAD_BURST)
		n = LOAD_BURST;
	if (s->sent == total || rte_ring_free_count(s->in) < n)
		return;
	while (got < n && s->sent + got < total) {
		m[got] = rte_mbuf_raw_alloc(s->pool);
		if (m[got] == NULL) {
			s->starved++;
			break;
		}
		mr_sync_enter(m[got]);
		rte_pktmbuf_reset(m[got]);
		load_write_frame(m[got], s->sent + got);
		mr_sync_leave(m[got]);
		got++;
	}
	put = rte_ring_enqueue_burst(s->in, (void **)m, got, NULL);
	s->sent += put;
	rte_pktmbuf_free_bulk(m + put, got - put);
}

void load_collect(struct load_side *s, uint32_t n)
{
	struct rte_mbuf *m[LOAD_BURST];

	n = rte_ring_dequeue_burst(s->out, (void **)m, n < LOAD_BURST ? n : LOAD_BURST, NULL);
	for (uint32_t i = 0; i < n; i++) {
		mr_sync_enter(m[i]);
		load_check_frame(s, m[i]);
		mr_sync_leave(m[i]);
	}
	s->received += n;
	rte_pktmbuf_free_bulk(m, n);
}

uint64_t load_side_stop(struct load_side *s)
{
	const struct mr_counters *c = &s->lane->counters;
	uint64_t dropped;

	mr_lane_want(s->lane, MR_LANE_DRAIN);
	pthread_join(s->thread, NULL);
	mr_store_release(&s->host->exit, 1);
	for (uint32_t w = 0; w < s->conf.workers; w++)
		pthread_join(s->worker[w], NULL);
	dropped = mr_counters_dropped(c);
	if (mr_lane_in_flight(s->lane) != 0 || !mr_counters_balanced(c, 0) ||
		c->c[MR_C_rx_packets] != s->sent || c->c[MR_C_tx_packets] != s->received ||
		s->received + dropped != s->sent)
		load_die("the lane's counters do not balance");
	if (rte_ring_count(s->in) != 0 || rte_ring_count(s->out) != 0 ||
		rte_mempool_avail_count(s->pool) != s->conf.buffers)
		load_die("a buffer was lost or came twice");
	return dropped;
}
