/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Instructions of a lane, counted and not timed.
 *
 *     bench_lane lane|floor|toggles|chainN|copyN ring|null BATCH LENGTH TURNS [forward|route]
 *
 * lane: one lane over a software port; the test plays the kernel between two turns,
 * so that no turn is an empty poll and every slot is full. floor: one receive and
 * one send burst on the same port and nothing else. toggles: nothing at all. chainN: the
 * kernel's host form, which runs a chain of that stage N times. copyN: the same of one stage, while
 * a capture copies N bytes of each packet, before and after it. Under
 * callgrind with --collect-atstart=no only that is collected; the difference of two
 * run lengths removes what is left of the start. Prints the packets moved.
 *
 *     ring   net_ring looped onto itself: the cheapest driver there is
 *     null   net_null, whose receive allocates and whose send frees every buffer
 *
 * With a stage the host form of the kernel answers instead, route by 100,000 prefixes, so that
 * what the lane gets is what that stage makes of packets.
 *
 * Packet memory is inaccessible while the turns run, but for copyN: a touch ends the program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_version.h>
#include <sys/mman.h>
#include <valgrind/callgrind.h>

#include "bench_worker.h"
#include "mr_lane_turn.h"
#include "mr_stage.h"

#define SLOTS 4u
#define RING 512u
#define CACHE 512u

static void die(const char *what)
{
	fprintf(stderr, "bench_lane: %s\n", what);
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

static uint16_t open_port(
	const char *kind, uint32_t length, struct rte_mempool *pool, struct rte_ring *loop)
{
	struct rte_eth_conf conf = {.rxmode.mtu = 9000};
	char args[64];
	uint16_t port = 0;

	if (strcmp(kind, "ring") == 0) {
		port = (uint16_t)rte_eth_from_rings("loop", &loop, 1, &loop, 1, 0);
	} else {
		snprintf(args, sizeof(args), "size=%u,copy=0", length);
		if (rte_vdev_init("net_null0", args) != 0 ||
			rte_eth_dev_get_port_by_name("net_null0", &port) != 0)
			die("net_null");
	}
	if (rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
		rte_eth_rx_queue_setup(port, 0, RING, SOCKET_ID_ANY, NULL, pool) != 0 ||
		rte_eth_tx_queue_setup(port, 0, RING, SOCKET_ID_ANY, NULL) != 0 ||
		rte_eth_dev_start(port) != 0)
		die("port");
	return port;
}

/* Answers every outstanding slot: unchanged, to the first port. */
static void play_kernel(struct mr_ring *r, uint8_t *out)
{
	for (uint32_t seq = r->tail; seq != r->head; seq++) {
		struct mr_slot_in *in = mr_ring_in(r, seq);
		struct mr_slot_out *o =
			(struct mr_slot_out *)(out + (size_t)(seq & r->mask) * r->stride);
		struct mr_desc_out *d = (struct mr_desc_out *)(o + 1);

		for (uint32_t i = 0; i < in->count; i++)
			d[i] = (struct mr_desc_out){.length = mr_slot_desc_in(in)[i].length,
				.head = mr_slot_desc_in(in)[i].head};
		o->plain = 1;
		mr_store_release(&o->done, seq + 1);
	}
}

#define PREFIXES 100000u

/* Where a stage answers: its worker, and what it works on. */
static struct {
	bool used;
	void *memory;
	size_t bytes;
	struct bench_worker worker;
} kernel;

/* Routes to all of 10.0.0.0/8 in pieces of 25 bits, and more. */
static void make_table(struct mr_chain_dev *c)
{
	const struct mr_stage_desc *route = mr_stage_at(MR_STAGE_route);
	char *text = zeroed(PREFIXES * 64), *at = text;
	struct mr_table_errors errors = {0};
	struct mr_table_text t = {.at = text, .errors = &errors};
	void *table;
	size_t bytes;

	if (mr_stage_param_set(route, "routes_max", "100000", NULL, c->params[0], NULL) != 0)
		die("routes_max");
	for (uint32_t i = 0; i < PREFIXES; i++) {
		uint32_t ip = 0x0a000000 + (i << 7);

		at += sprintf(at, "%u.%u.%u.%u/25 via 02:00:00:00:00:%02x port 0\n", ip >> 24,
			ip >> 16 & 255, ip >> 8 & 255, ip & 255, i % 256);
	}
	table = zeroed(route->table->bytes(c->params[0]));
	if (route->table->build(&t, c->params[0], NULL, table, &bytes) != 0 || errors.count > 0)
		die("table");
	c->table[0] = bench_address(table);
}

/* Chains are of `length` stages, all of them the same. */
static void make_kernel(const char *name, uint32_t length, const struct mr_lane *l,
	const struct rte_pktmbuf_extmem *mem)
{
	const struct mr_stage_desc *stage = mr_stage_find(name);
	struct mr_chain_dev *c = kernel.worker.lane.chain;

	if (stage == NULL || length < 1 || length > MR_CHAIN_MAX)
		die("no such stage, or too many");
	kernel.memory = mem->buf_ptr;
	kernel.bytes = MR_ALIGN_UP(mem->buf_len, 65536);
	bench_worker_init(&kernel.worker, &l->ring, mem->buf_ptr, mem->buf_len, mem->elt_size);
	kernel.worker.lane.chain_len = length;
	for (uint32_t i = 0; i < length; i++) {
		c[i].stage = (uint16_t)stage->id;
		mr_stage_param_defaults(stage, c[i].params[0]);
	}
	if (stage->id == MR_STAGE_route)
		make_table(c);
	kernel.used = true;
}

/* A frame for route: to an address of its own, UDP over IPv4. */
static void refresh(uint8_t *f, uint32_t length, uint32_t number)
{
	static const uint8_t head[24] = {
		2, 0x4d, 0x52, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17};
	uint32_t sum = 0;

	memset(f, 0, 40);
	memcpy(f, head, sizeof(head));
	f[16] = (uint8_t)((length - 14) >> 8);
	f[17] = (uint8_t)(length - 14);
	f[26] = 10;
	f[29] = 9;
	f[30] = 10;
	f[31] = (uint8_t)(number >> 8 & 0x7f);
	f[32] = (uint8_t)number;
	for (uint32_t i = 14; i < 34; i += 2)
		sum += (uint32_t)f[i] << 8 | f[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	f[24] = (uint8_t)(~sum >> 8);
	f[25] = (uint8_t)~sum;
}

static void run_kernel(struct mr_ring *r)
{
	static uint32_t number;

	if (mprotect(kernel.memory, kernel.bytes, PROT_READ | PROT_WRITE) != 0)
		die("mprotect");
	for (uint32_t seq = r->tail; seq != r->head; seq++) {
		const struct mr_slot_in *in = mr_ring_in(r, seq);
		const struct mr_desc_in *d = (const struct mr_desc_in *)(in + 1);

		for (uint32_t i = 0; i < in->count; i++)
			refresh((uint8_t *)kernel.memory + (size_t)d[i].position * MR_UNIT +
					d[i].head,
				d[i].length, number += 7919);
	}
	kernel.worker.lane.first_seq = r->tail;
	bench_worker_run(&kernel.worker);
	if (mprotect(kernel.memory, kernel.bytes, PROT_NONE) != 0)
		die("mprotect");
}

/* Of its own, so that what is counted is compiled alike whoever answers. */
static __attribute__((noinline)) void answer(struct mr_ring *r, uint8_t *out)
{
	if (kernel.used)
		run_kernel(r);
	else
		play_kernel(r, out);
}

/* One packet in, one packet out, by the port's driver alone; returns packets moved. */
static uint32_t floor_turn(struct mr_lane *l, struct rte_mbuf **m, uint32_t batch)
{
	uint16_t n = rte_eth_rx_burst(l->rx.port, 0, m, (uint16_t)batch);

	return rte_eth_tx_burst(l->rx.port, 0, m, n);
}

/* From here on packets are copied, which is to touch them. */
static void make_copies(const char *what)
{
	uint32_t snaplen = (uint32_t)atoi(what + 4);

	if (snaplen < 1 || snaplen > 9000)
		die("copyN");
	bench_worker_tap(&kernel.worker, zeroed(MR_BATCH_MAX * MR_TAP_STRIDE(snaplen)), snaplen);
	if (mprotect(kernel.memory, kernel.bytes, PROT_READ | PROT_WRITE) != 0)
		die("mprotect");
}

/* The kernel alone, and no byte of a packet: a chain of stages that read none passes over none. */
static void chain_turn(struct mr_lane *l, struct mr_lane_clock *clock)
{
	mr_lane_turn(l, clock);
	kernel.worker.lane.first_seq = l->ring.tail;
	CALLGRIND_TOGGLE_COLLECT;
	bench_worker_run(&kernel.worker);
	CALLGRIND_TOGGLE_COLLECT;
}

/* Not inlined and not known: what is collected is a call, as in the lane's loop. */
static __attribute__((noinline, flatten)) uint64_t run(
	const char *what, struct mr_lane *l, uint8_t *out, uint32_t batch, uint32_t turns)
{
	struct rte_mbuf *m[MR_BATCH_MAX];
	struct mr_lane_clock clock = {.due = UINT64_MAX};
	uint64_t moved = 0;

	for (uint32_t i = 0; i < turns && what[0] == 'l'; i++) {
		CALLGRIND_TOGGLE_COLLECT;
		mr_lane_turn(l, &clock);
		CALLGRIND_TOGGLE_COLLECT;
		answer(&l->ring, out);
	}
	for (uint32_t i = 0; i < turns && what[0] == 'c'; i++)
		chain_turn(l, &clock);
	for (uint32_t i = 0; i < turns && what[0] == 'f'; i++) {
		CALLGRIND_TOGGLE_COLLECT;
		moved += floor_turn(l, m, batch);
		CALLGRIND_TOGGLE_COLLECT;
	}
	for (uint32_t i = 0; i < turns && what[0] == 't'; i++) {
		CALLGRIND_TOGGLE_COLLECT;
		CALLGRIND_TOGGLE_COLLECT;
		moved += batch;
	}
	return what[0] == 'l' || what[0] == 'c' ? l->counters.c[MR_C_tx_packets] : moved;
}

int main(int argc, char **argv)
{
	char *eal[] = {argv[0], "--no-huge", "--no-pci", "-m", "256", "--no-telemetry",
		"--no-shconf", "--file-prefix", "mr-bench-lane", "--log-level", "error", "-l", "0"};
	uint32_t batch, length, turns, element, buffers = 4096;
	const char *kind = argc >= 6 ? argv[2] : "";
	uint64_t moved;
	struct rte_pktmbuf_extmem mem = {0};
	struct rte_mempool *pool;
	struct mr_lane *l = zeroed(sizeof(*l));
	struct rte_ring *loop;
	uint8_t *out;

	if (argc != 6 && argc != 7)
		die("usage: bench_lane lane|floor|toggles|chainN|copyN ring|null BATCH LENGTH "
		    "TURNS "
		    "[STAGE]");
	batch = (uint32_t)atoi(argv[3]);
	length = (uint32_t)atoi(argv[4]);
	turns = (uint32_t)atoi(argv[5]);
	if (batch < 1 || batch > MR_BATCH_MAX || length < MR_FRAME_MIN || length > 9000)
		die("BATCH or LENGTH");
	if (rte_eal_init((int)(sizeof(eal) / sizeof(eal[0])), eal) < 0)
		die("EAL");
	element = MR_ALIGN_UP(RTE_PKTMBUF_HEADROOM + length, MR_UNIT);
	mem.elt_size = (uint16_t)element;
	mem.buf_len = (size_t)buffers * element;
	mem.buf_ptr = zeroed(mem.buf_len);
	mem.buf_iova = (uint64_t)(uintptr_t)mem.buf_ptr;
	pool = rte_pktmbuf_pool_create_extbuf(
		"bench", buffers, CACHE, 0, (uint16_t)element, SOCKET_ID_ANY, &mem, 1);
	loop = rte_ring_create("loop", 4096, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (pool == NULL || loop == NULL)
		die("pool");
	out = zeroed(SLOTS * MR_SLOT_BYTES(batch));
	if (mr_ring_init(&l->ring, zeroed(SLOTS * MR_SLOT_BYTES(batch)), NULL, out, SLOTS, batch, 0,
		    NULL) != 0)
		die("ring");
	l->state = MR_LANE_RUN;
	l->want = MR_LANE_RUN;
	l->rx = (struct mr_rx){.ring = &l->ring,
		.counters = &l->counters,
		.timeout_tsc = UINT64_MAX,
		.describe = mr_rx_describe_best(),
		.workers = 1,
		.port = open_port(kind, length, pool, loop)};
	mr_rx_window_init(&l->rx.window, mem.buf_iova, mem.buf_len, element);
	l->tx.ring = &l->ring;
	l->tx.counters = &l->counters;
	l->tx.latency = &l->latency;
	l->mbufs = zeroed(SLOTS * batch * sizeof(void *));
	l->slots = zeroed(SLOTS * sizeof(struct mr_ring_note));
	mr_lane_link(l);
	l->tx.room = element;
	l->tx.tx_count = 1;
	l->tx.ns_per_tsc = 1u << MR_TX_TSC_SHIFT;
	l->tx.q[0] = (struct mr_txq){.port = l->rx.port,
		.wait = zeroed(RING * sizeof(void *)),
		.wait_tsc = zeroed(RING * sizeof(uint64_t)),
		.mask = RING - 1,
		.limit = RING};
	for (uint32_t i = 0; strcmp(kind, "ring") == 0 && i < batch * 2; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

		m->data_len = (uint16_t)length;
		m->pkt_len = length;
		rte_ring_enqueue(loop, m);
	}
	if (argc == 7)
		make_kernel(argv[6],
			strncmp(argv[1], "chain", 5) == 0 ? (uint32_t)atoi(argv[1] + 5) : 1, l,
			&mem);
	if (mprotect(mem.buf_ptr, MR_ALIGN_UP(mem.buf_len, 65536), PROT_NONE) != 0)
		die("mprotect");
	if (strncmp(argv[1], "copy", 4) == 0)
		make_copies(argv[1]);
	moved = run(argv[1], l, out, batch, turns);
	printf("%llu packets\n", (unsigned long long)moved);
	/* What the count depends on besides our own source. */
	printf("made with compiler %s, %s, %s\n", __VERSION__, rte_version(),
		l->rx.describe == mr_rx_describe_scalar ? "scalar" : "vectors");
	/* All of them were routed, and none came to the lane as anything but sent. */
	if (kernel.used && kernel.worker.lane.chain[0].stage == MR_STAGE_route &&
		(moved == 0 || kernel.worker.counters[1][0] < moved))
		die("not all packets were routed");
	if (strncmp(argv[1], "copy", 4) == 0 &&
		(kernel.worker.tap_ctl.head != batch || kernel.worker.tap_ctl.lost != 0))
		die("not all packets were copied");
	return mr_counters_balanced(&l->counters, mr_lane_in_flight(l)) ? 0 : 1;
}
