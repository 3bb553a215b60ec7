/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two lanes under load, judged by sequence numbers.
 *
 *     load_lanes PACKETS [BATCH [SLOTS [WORKERS]]]
 *
 *     generator ─► ring ─► lane 0 + kernel ─► ring ─► sink
 *             └──► ring ─► lane 1 + kernel ─► ring ──┘
 *
 * The lane library and the host build of the kernel run in threads of their own
 * over DPDK's net_ring; the main thread writes a number into every frame and
 * looks for it again: none lost, none twice, none out of order, none touched but
 * by the l2swap of the chain. Pools are as small as the lanes' plan allows, so
 * buffers go round all the while. Threads yield, since there are more of them
 * than cores.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "mr_image.h"
#include "mr_lane.h"
#include "mr_stage.h"

#define LANES 2u
#define ELEMENT 256u
#define RING 256u
#define BACKLOG 256u
#define BURST 32u
#define FRAME 64u

struct side {
	struct mr_lane *lane;
	struct mr_lane_dev dev;
	struct mr_worker_ctl *ctl;
	struct mr_host_ctl *host;
	struct mr_worker_map map[MR_WORKERS_MAX];
	struct mr_launch launch;
	uint64_t *counters;
	struct rte_mempool *pool;
	struct rte_ring *in, *out;
	uint64_t sent, received;
	pthread_t thread, worker[MR_WORKERS_MAX];
};

static struct side sides[LANES];
static uint32_t batch = 32, slots = 8, workers = 1;

static void die(const char *what)
{
	fprintf(stderr, "load_lanes: %s\n", what);
	exit(1);
}

static void *zeroed(size_t bytes)
{
	void *p = aligned_alloc(65536, MR_ALIGN_UP(bytes, 65536));

	if (p == NULL)
		die("out of memory");
	memset(p, 0, bytes);
	return p;
}

static uint16_t make_port(uint32_t i, struct side *s)
{
	struct rte_eth_conf conf = {0};
	char name[32];
	int port;

	snprintf(name, sizeof(name), "in%u", i);
	s->in = rte_ring_create(name, RING, SOCKET_ID_ANY, 0);
	snprintf(name, sizeof(name), "out%u", i);
	s->out = rte_ring_create(name, RING, SOCKET_ID_ANY, 0);
	snprintf(name, sizeof(name), "port%u", i);
	port = rte_eth_from_rings(name, &s->in, 1, &s->out, 1, 0);
	if (port < 0 || rte_eth_dev_configure((uint16_t)port, 1, 1, &conf) != 0 ||
		rte_eth_rx_queue_setup((uint16_t)port, 0, RING, SOCKET_ID_ANY, NULL, s->pool) !=
			0 ||
		rte_eth_tx_queue_setup((uint16_t)port, 0, RING, SOCKET_ID_ANY, NULL) != 0 ||
		rte_eth_dev_start((uint16_t)port) != 0)
		die("port");
	return (uint16_t)port;
}

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* Frames at rest: both rings, slots, the open batch, the backlog, and one burst in hand. */
static uint32_t buffers(void)
{
	return 2 * RING + slots * batch + batch + BACKLOG + 2 * BURST;
}

static void make_kernel(struct side *s, uint8_t *region, size_t bytes, uint8_t *in, uint8_t *out)
{
	struct mr_chain_dev *c = s->dev.chain;

	s->ctl = zeroed(workers * sizeof(*s->ctl));
	s->host = zeroed(sizeof(*s->host));
	s->counters = zeroed(2 * workers * MR_COUNTERS_MAX * sizeof(uint64_t));
	s->dev = (struct mr_lane_dev){.region = address(region),
		.in = address(in),
		.out = address(out),
		.workers_ctl = address(s->ctl),
		.counters_out = address(s->counters),
		.counters_acc = address(s->counters + workers * MR_COUNTERS_MAX),
		.region_units = (uint32_t)(bytes / MR_UNIT),
		.room = ELEMENT,
		.in_stride = MR_SLOT_BYTES(batch),
		.out_stride = MR_SLOT_BYTES(batch),
		.slots = slots,
		.batch = batch,
		.workers = workers,
		.tx_count = 1,
		.first_seq = UINT32_MAX - 1000, /* the wrap lies inside the run */
		.chain_len = 1};
	c[0].stage = MR_STAGE_l2swap;
	for (uint32_t w = 0; w < workers; w++)
		s->map[w] = (struct mr_worker_map){.lane = 0, .worker = w};
	s->launch = (struct mr_launch){.lanes = address(&s->dev),
		.map = address(s->map),
		.host_ctl = address(s->host),
		.blocks = workers};
}

static void make_side(uint32_t i)
{
	struct side *s = &sides[i];
	size_t bytes = MR_ALIGN_UP((size_t)buffers() * ELEMENT, 65536) + 65536;
	struct rte_pktmbuf_extmem mem = {.buf_len = bytes, .elt_size = ELEMENT};
	uint8_t *region = zeroed(bytes), *in = zeroed(slots * MR_SLOT_BYTES(batch));
	uint8_t *out = zeroed(slots * MR_SLOT_BYTES(batch));
	struct mr_lane *l = zeroed(sizeof(*l));
	char name[32];

	mem.buf_ptr = region;
	mem.buf_iova = address(region);
	snprintf(name, sizeof(name), "pool%u", i);
	s->pool = rte_pktmbuf_pool_create_extbuf(
		name, buffers(), 0, 0, ELEMENT, SOCKET_ID_ANY, &mem, 1);
	if (s->pool == NULL)
		die("pool");
	s->lane = l;
	make_kernel(s, region, bytes, in, out);
	if (mr_ring_init(&l->ring, in, NULL, out, slots, batch, s->dev.first_seq, NULL) != 0)
		die("ring: slots a power of two, batch 1 to 1024");
	l->yield_polls = 64;
	l->publish_tsc = rte_get_tsc_hz() / 100;
	l->rx = (struct mr_rx){.ring = &l->ring,
		.counters = &l->counters,
		.timeout_tsc = rte_get_tsc_hz() / 50000,
		.window = {address(region), bytes - ELEMENT},
		.describe = mr_rx_describe_best(),
		.workers = workers,
		.port = make_port(i, s)};
	l->tx.ring = &l->ring;
	l->tx.counters = &l->counters;
	l->tx.latency = &l->latency;
	l->mbufs = zeroed((size_t)slots * batch * sizeof(void *));
	l->slots = zeroed(slots * sizeof(struct mr_ring_note));
	l->tx.room = ELEMENT;
	l->tx.tx_count = 1;
	l->tx.ns_per_tsc = (1000000000ull << MR_TX_TSC_SHIFT) / rte_get_tsc_hz();
	l->tx.q[0] = (struct mr_txq){.port = l->rx.port,
		.wait = zeroed(BACKLOG * sizeof(void *)),
		.wait_tsc = zeroed(BACKLOG * sizeof(uint64_t)),
		.mask = BACKLOG - 1,
		.limit = BACKLOG};
}

static void *lane_thread(void *arg)
{
	if (rte_thread_register() < 0)
		die("rte_thread_register");
	mr_lane_loop(arg);
	rte_thread_unregister();
	return NULL;
}

struct block {
	struct side *side;
	uint32_t index;
};

static void *worker_thread(void *arg)
{
	struct block b = *(struct block *)arg;

	free(arg);
	mr_image_sim.kernels[0].entry(address(&b.side->launch), b.index, NULL);
	return NULL;
}

static void start_side(struct side *s)
{
	for (uint32_t w = 0; w < workers; w++) {
		struct block *b = zeroed(sizeof(*b));

		*b = (struct block){s, w};
		if (pthread_create(&s->worker[w], NULL, worker_thread, b) != 0)
			die("thread");
	}
	mr_lane_want(s->lane, MR_LANE_RUN);
	if (pthread_create(&s->thread, NULL, lane_thread, s->lane) != 0)
		die("thread");
}

/* Destination holds the number, source its complement; l2swap exchanges them. */
static void write_frame(struct rte_mbuf *m, uint64_t number)
{
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	uint64_t inverse = ~number;

	memcpy(p, &number, 6);
	memcpy(p + 6, &inverse, 6);
	memcpy(p + 16, &number, 8);
	m->data_len = FRAME;
	m->pkt_len = FRAME;
}

static void check_frame(struct rte_mbuf *m, uint64_t number)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	uint64_t inverse = ~number, got;

	memcpy(&got, p + 16, 8);
	if (got != number) {
		fprintf(stderr, "load_lanes: frame %llu came where %llu was due\n",
			(unsigned long long)got, (unsigned long long)number);
		exit(1);
	}
	if (memcmp(p, &inverse, 6) != 0 || memcmp(p + 6, &number, 6) != 0)
		die("a frame was not swapped exactly once");
}

static void generate(struct side *s, uint64_t total)
{
	struct rte_mbuf *m[BURST];
	uint32_t n = 0, put;

	if (s->sent == total || rte_ring_free_count(s->in) < BURST)
		return;
	while (n < BURST && s->sent + n < total && (m[n] = rte_pktmbuf_alloc(s->pool)) != NULL) {
		write_frame(m[n], s->sent + n);
		n++;
	}
	put = rte_ring_enqueue_burst(s->in, (void **)m, n, NULL);
	s->sent += put;
	rte_pktmbuf_free_bulk(m + put, n - put);
}

static void collect(struct side *s)
{
	struct rte_mbuf *m[BURST];
	uint32_t n = rte_ring_dequeue_burst(s->out, (void **)m, BURST, NULL);

	for (uint32_t i = 0; i < n; i++)
		check_frame(m[i], s->received++);
	rte_pktmbuf_free_bulk(m, n);
}

/* Sends and receives until all are back; gives up when nothing moves for 20 s. */
static void drive(uint64_t each)
{
	uint64_t moved = rte_rdtsc(), last = 0, sum;

	do {
		sum = 0;
		for (uint32_t i = 0; i < LANES; i++) {
			generate(&sides[i], each);
			collect(&sides[i]);
			sum += sides[i].received;
		}
		if (sum == last)
			sched_yield();
		else
			moved = rte_rdtsc();
		last = sum;
		if (rte_rdtsc() - moved > 20 * rte_get_tsc_hz())
			die("nothing moves any more");
	} while (sum < LANES * each);
}

static void stop_side(struct side *s, uint64_t each)
{
	mr_lane_want(s->lane, MR_LANE_DRAIN);
	pthread_join(s->thread, NULL);
	mr_store_release(&s->host->exit, 1);
	for (uint32_t w = 0; w < workers; w++)
		pthread_join(s->worker[w], NULL);
	if (mr_lane_in_flight(s->lane) != 0 || !mr_counters_balanced(&s->lane->counters, 0) ||
		s->lane->counters.c[MR_C_tx_packets] != each ||
		mr_counters_dropped(&s->lane->counters) != 0)
		die("the lane's counters do not balance");
	if (rte_ring_count(s->in) != 0 || rte_ring_count(s->out) != 0 ||
		rte_mempool_avail_count(s->pool) != buffers())
		die("a buffer was lost or came twice");
}

int main(int argc, char **argv)
{
	char *eal[] = {argv[0], "--no-huge", "--no-pci", "-m", "128", "--no-telemetry",
		"--no-shconf", "--file-prefix", "mr-load-lanes", "--log-level", "error", "-l", "0"};
	uint64_t each, start;
	cpu_set_t cpus;

	if (argc < 2 || argc > 5)
		die("usage: load_lanes PACKETS [BATCH [SLOTS [WORKERS]]]");
	each = strtoull(argv[1], NULL, 10) / LANES;
	batch = argc > 2 ? (uint32_t)atoi(argv[2]) : batch;
	slots = argc > 3 ? (uint32_t)atoi(argv[3]) : slots;
	workers = argc > 4 ? (uint32_t)atoi(argv[4]) : workers;
	/* EAL pins the thread that starts it; the others are to have all cores. */
	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0 ||
		rte_eal_init((int)(sizeof(eal) / sizeof(eal[0])), eal) < 0 ||
		sched_setaffinity(0, sizeof(cpus), &cpus) != 0)
		die("EAL");
	for (uint32_t i = 0; i < LANES; i++)
		make_side(i);
	for (uint32_t i = 0; i < LANES; i++)
		start_side(&sides[i]);
	start = rte_rdtsc();
	drive(each);
	for (uint32_t i = 0; i < LANES; i++)
		stop_side(&sides[i], each);
	printf("%llu packets over %u lanes, batch %u, slots %u, workers %u: none lost, doubled or "
	       "out of order, %.2f s\n",
		(unsigned long long)(LANES * each), LANES, batch, slots, workers,
		(double)(rte_rdtsc() - start) / (double)rte_get_tsc_hz());
	return 0;
}
