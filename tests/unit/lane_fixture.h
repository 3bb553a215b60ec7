/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane_fixture - a lane between two rings of DPDK's net_ring driver, with the test playing
 * the kernel: whatever a kernel could answer can be answered here.
 */
#ifndef LANE_FIXTURE_H
#define LANE_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "mr_lane_turn.h"

#define SLOTS 4u
#define BATCH 8u
#define ELEMENT 2048u
#define BUFFERS 256u
#define TX_RING 16u /* holds 15 */
#define REGION ((size_t)BUFFERS * ELEMENT + ELEMENT)
#define TIMEOUT 1000u
#define TX_TIMEOUT 5000u

static struct {
	struct rte_mempool *pool, *foreign;
	uint8_t *region;
	struct rte_ring *in, *out[2];
	uint16_t port_in, port_out[2];
} env;

struct world {
	struct mr_lane *l;
	struct rte_mbuf *mbufs[SLOTS * BATCH];
	struct mr_ring_note notes[SLOTS];
	uint8_t *in, *out;
	struct rte_mbuf *wait[2][BATCH];
	uint64_t wait_tsc[2][BATCH];
};

static inline void drain_ring(struct rte_ring *r)
{
	struct rte_mbuf *m;

	while (rte_ring_dequeue(r, (void **)&m) == 0)
		rte_pktmbuf_free(m);
}

static inline int setup(void **state)
{
	struct world *w = aligned_alloc(64, sizeof(*w));
	struct mr_err err = {0};

	memset(w, 0, sizeof(*w));
	w->l = aligned_alloc(64, sizeof(*w->l));
	memset(w->l, 0, sizeof(*w->l));
	w->in = aligned_alloc(64, SLOTS * MR_SLOT_BYTES(BATCH));
	w->out = aligned_alloc(64, SLOTS * MR_SLOT_BYTES(BATCH));
	assert_int_equal(mr_ring_init(&w->l->ring, w->in, NULL, w->out, SLOTS, BATCH, 0, &err), 0);
	w->l->rx = (struct mr_rx){.ring = &w->l->ring,
		.counters = &w->l->counters,
		.timeout_tsc = TIMEOUT,
		.describe = mr_rx_describe_best(),
		.workers = 1,
		.port = env.port_in};
	mr_rx_window_init(&w->l->rx.window, (uint64_t)(uintptr_t)env.region, REGION, ELEMENT);
	w->l->tx.ring = &w->l->ring;
	w->l->tx.counters = &w->l->counters;
	w->l->tx.latency = &w->l->latency;
	w->l->mbufs = w->mbufs;
	w->l->slots = w->notes;
	mr_lane_link(w->l);
	w->l->tx.room = ELEMENT;
	w->l->tx.tx_count = 2;
	w->l->tx.timeout_tsc = TX_TIMEOUT;
	w->l->tx.ns_per_tsc = 1u << MR_TX_TSC_SHIFT;
	for (int i = 0; i < 2; i++) {
		w->l->tx.q[i] = (struct mr_txq){.port = env.port_out[i],
			.wait = w->wait[i],
			.wait_tsc = w->wait_tsc[i],
			.mask = BATCH - 1,
			.limit = BATCH};
	}
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	for (uint32_t s = w->l->ring.tail; s != w->l->ring.head; s++) {
		uint32_t done = s == w->l->ring.tail ? w->l->tx.cursor : 0;

		for (uint32_t i = done; i < w->notes[s % SLOTS].count; i++)
			rte_pktmbuf_free(w->mbufs[s % SLOTS * BATCH + i]);
	}
	for (uint32_t i = 0; i < mr_rx_fill(&w->l->rx); i++)
		rte_pktmbuf_free(w->mbufs[w->l->ring.head % SLOTS * BATCH + i]);
	for (int i = 0; i < 2; i++)
		for (struct mr_txq *q = &w->l->tx.q[i]; q->tail != q->head; q->tail++)
			rte_pktmbuf_free(q->wait[q->tail & q->mask]);
	drain_ring(env.in);
	drain_ring(env.out[0]);
	drain_ring(env.out[1]);
	/* Every case gives every buffer back. */
	assert_int_equal(rte_mempool_avail_count(env.pool), BUFFERS);
	free(w->in);
	free(w->out);
	free(w->l);
	free(w);
	return 0;
}

static inline struct rte_mbuf *take(struct rte_ring *r)
{
	void *m = NULL;

	assert_int_equal(rte_ring_dequeue(r, &m), 0);
	return m;
}

static inline struct rte_mbuf *frame(uint16_t length)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(env.pool);

	assert_non_null(m);
	m->data_len = length;
	m->pkt_len = length;
	return m;
}

static inline void send_frames(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(rte_ring_enqueue(env.in, frame((uint16_t)(60 + i))), 0);
}

static inline uint64_t counter(struct world *w, enum mr_counter c)
{
	return w->l->counters.c[c];
}

static inline void assert_balanced(struct world *w)
{
	assert_true(mr_counters_balanced(&w->l->counters, mr_lane_in_flight(w->l)));
}

/*
 * Plays the worker for slot seq: each result is the input unless change() says otherwise.
 * A slot is plain when nothing could change it.
 */
static inline void finish(struct world *w, uint32_t seq,
	void (*change)(uint32_t i, struct mr_desc_out *d, void *arg), void *arg)
{
	struct mr_slot_in *in = mr_ring_in(&w->l->ring, seq);
	struct mr_slot_out *out =
		(struct mr_slot_out *)(w->out + (seq % SLOTS) * MR_SLOT_BYTES(BATCH));
	struct mr_desc_out *d = (struct mr_desc_out *)(out + 1);

	assert_int_equal(in->ready, seq + 1);
	for (uint32_t i = 0; i < in->count; i++) {
		d[i] = (struct mr_desc_out){.length = mr_slot_desc_in(in)[i].length,
			.head = mr_slot_desc_in(in)[i].head};
		if (change != NULL)
			change(i, &d[i], arg);
	}
	out->plain = change == NULL;
	mr_store_release(&out->done, seq + 1);
}

static inline uint16_t make_port(const char *name, struct rte_ring *rx, struct rte_ring *tx)
{
	struct rte_eth_conf conf = {0};
	int port = rte_eth_from_rings(name, &rx, 1, &tx, 1, 0);

	assert_true(port >= 0);
	assert_int_equal(rte_eth_dev_configure((uint16_t)port, 1, 1, &conf), 0);
	assert_int_equal(
		rte_eth_rx_queue_setup((uint16_t)port, 0, 64, SOCKET_ID_ANY, NULL, env.pool), 0);
	assert_int_equal(rte_eth_tx_queue_setup((uint16_t)port, 0, 64, SOCKET_ID_ANY, NULL), 0);
	assert_int_equal(rte_eth_dev_start((uint16_t)port), 0);
	return (uint16_t)port;
}

static inline int setup_env(void **state)
{
	struct rte_pktmbuf_extmem mem = {.buf_len = REGION, .elt_size = ELEMENT};
	struct rte_ring *unused;

	(void)state;
	env.region = aligned_alloc(65536, MR_ALIGN_UP(REGION, 65536));
	mem.buf_ptr = env.region;
	mem.buf_iova = (uint64_t)(uintptr_t)env.region;
	env.pool = rte_pktmbuf_pool_create_extbuf(
		"own", BUFFERS, 0, 0, ELEMENT, SOCKET_ID_ANY, &mem, 1);
	env.foreign = rte_pktmbuf_pool_create("foreign", 16, 0, 0, ELEMENT, SOCKET_ID_ANY);
	env.in = rte_ring_create("in", 64, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	env.out[0] = rte_ring_create("out0", TX_RING, SOCKET_ID_ANY, 0);
	env.out[1] = rte_ring_create("out1", TX_RING, SOCKET_ID_ANY, 0);
	unused = rte_ring_create("unused", 64, SOCKET_ID_ANY, 0);
	assert_true(env.pool && env.foreign && env.in && env.out[0] && env.out[1] && unused);
	env.port_in = make_port("a", env.in, unused);
	env.port_out[0] = make_port("b", unused, env.out[0]);
	env.port_out[1] = make_port("c", unused, env.out[1]);
	return 0;
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
