/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest pool that a plan allows, with every place of its sum full at once, and one
 * buffer less.
 *
 *     load_pool BATCH
 *
 * The test is a NIC: frames come without end, a receive ring is filled by the control
 * thread at first and then by the lane, buffer for buffer; a send ring keeps its frames for
 * as long as the link stands still. Then slots, backlog and both rings fill up. With the
 * computed minimum the receive ring is full all the while, now and after a hundred pools;
 * with one buffer less it is not, so the minimum is no more than that.
 */
#include "load_rig.h"

#include "../fuzz/fuzz_port.h"

#include <rte_cycles.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 4u
#define RING_MIN 128u
#define RING_MAX 512u
#define PORT 7u
#define STANDS 5u /* how often the link stands still */
#define POOLS 20u /* that pass between */

/* The lane's thread is in it, but for the orders of the main thread. */
struct nic {
	struct load_side *side;
	struct rte_mbuf *posted[RING_MAX], *held[RING_MAX];
	uint32_t posted_first, posted_count, held_count;
	uint32_t dry; /* refills that found no buffer */
	uint32_t stands, closed;
};

static void complete(struct nic *n)
{
	for (uint32_t i = 0; i < n->held_count; i++) {
		load_check_frame(n->side, n->held[i]);
		n->side->received++;
		rte_pktmbuf_free(n->held[i]);
	}
	n->held_count = 0;
}

static struct rte_mbuf *take_posted(struct nic *n)
{
	struct rte_mbuf *m = n->posted[n->posted_first];

	n->posted_first = (n->posted_first + 1) % n->side->conf.rx_ring;
	n->posted_count--;
	return m;
}

static void refill(struct nic *n)
{
	uint32_t ring = n->side->conf.rx_ring;

	while (n->posted_count < ring) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(n->side->pool);

		if (m == NULL) {
			mr_store_release(&n->dry, n->dry + 1);
			return;
		}
		n->posted[(n->posted_first + n->posted_count++) % ring] = m;
	}
}

static uint16_t receive(void *queue, struct rte_mbuf **m, uint16_t count)
{
	struct nic *n = queue;
	uint16_t got = 0;

	if (mr_load_acquire(&n->closed) != 0) {
		while (n->posted_count != 0)
			rte_pktmbuf_free(take_posted(n));
		complete(n);
		mr_store_release(&n->closed, 2);
		return 0;
	}
	for (; got < count && n->posted_count != 0; got++) {
		m[got] = take_posted(n);
		load_write_frame(m[got], n->side->sent++);
	}
	refill(n);
	return got;
}

static uint16_t transmit(void *queue, struct rte_mbuf **m, uint16_t count)
{
	struct nic *n = queue;
	uint16_t taken = 0;

	if (mr_load_acquire(&n->stands) == 0)
		complete(n);
	while (taken < count && n->held_count < n->side->conf.tx_ring)
		n->held[n->held_count++] = m[taken++];
	if (mr_load_acquire(&n->closed) != 0)
		complete(n);
	return taken;
}

static void look(struct nic *n, struct mr_published *ret_seen)
{
	mr_stats_snapshot(&n->side->lane->pub, ret_seen);
	if (!mr_counters_balanced(&ret_seen->counters, ret_seen->in_flight))
		load_die("published counters do not balance");
	sched_yield();
}

/*
 * Until slots and backlog are full, but for `spare` places, and bursts are shed where that is
 * the mode.
 */
static void wait_full(struct nic *n, uint32_t spare)
{
	const struct load_conf *c = &n->side->conf;
	uint64_t since = rte_rdtsc(), shed = UINT64_MAX;
	struct mr_published seen;

	for (;;) {
		look(n, &seen);
		if (rte_rdtsc() - since > 20 * rte_get_tsc_hz())
			load_die("the lane's places do not fill up");
		if (seen.in_flight + spare < c->slots * c->batch + c->backlog)
			continue;
		if (!c->shed)
			return;
		if (shed == UINT64_MAX)
			shed = seen.counters.c[MR_C_rx_drop_shed];
		else if (seen.counters.c[MR_C_rx_drop_shed] >= shed + 2 * MR_SHED_BURST)
			return;
	}
}

static void pass(struct nic *n, uint64_t packets)
{
	struct mr_published seen;
	uint64_t since = rte_rdtsc(), until;

	look(n, &seen);
	until = seen.counters.c[MR_C_tx_packets] + packets;
	while (seen.counters.c[MR_C_tx_packets] < until) {
		look(n, &seen);
		if (rte_rdtsc() - since > 20 * rte_get_tsc_hz())
			load_die("nothing moves any more");
	}
}

static void stop(struct nic *n)
{
	mr_store_release(&n->stands, 0);
	mr_store_release(&n->closed, 1);
	while (mr_load_acquire(&n->closed) != 2)
		sched_yield();
	(void)load_side_stop(n->side);
}

static void run(struct nic *n, struct load_side *s, struct load_conf c, uint32_t fewer)
{
	uint32_t dry;

	load_plan(&c);
	c.buffers -= fewer;
	load_side_make(s, &c);
	n->side = s;
	s->lane->rx.port = PORT;
	s->lane->tx.q[0].port = PORT;
	fuzz_port_open(PORT, receive, transmit, n);
	/* As drivers do that fill a ring at once: the cache is left with all it can fetch. */
	n->posted_count = c.rx_ring;
	if (rte_pktmbuf_alloc_bulk(s->pool, n->posted, c.rx_ring) != 0)
		load_die("the receive ring cannot be filled");
	n->stands = 1;
	load_side_start(s);
	wait_full(n, 0);
	dry = mr_load_acquire(&n->dry);
	printf("batch %u, %s: %u buffers, %u below the minimum, all places full: %u refills "
	       "failed\n",
		c.batch, c.shed ? "shed" : "block", c.buffers, fewer, dry);
	fflush(stdout);
	if ((dry != 0) != (fewer != 0))
		load_die(fewer != 0 ? "one buffer below the minimum is enough"
				    : "the minimum is not enough");
	/* All that is left lies in the cache of this thread. */
	if (!c.shed && fewer == 0 && rte_mempool_avail_count(s->pool) != c.cache)
		load_die("a place of the sum is not full");
	for (uint32_t i = 0; i < STANDS && fewer == 0; i++) {
		mr_store_release(&n->stands, 0);
		pass(n, (uint64_t)POOLS * c.buffers);
		mr_store_release(&n->stands, 1);
		wait_full(n, c.batch - 1); /* the oldest slot stops anywhere */
	}
	if (fewer == 0 && mr_load_acquire(&n->dry) != 0)
		load_die("the minimum is not enough for ever");
	stop(n);
}

int main(int argc, char **argv)
{
	static struct load_side sides[4];
	static struct nic nics[4];
	struct load_conf c = {.slots = SLOTS, .workers = 1, .timeout_us = 20};

	if (argc != 2)
		load_die("usage: load_pool BATCH");
	c.batch = (uint32_t)atoi(argv[1]);
	/* Both rings of a sender hold whole batches, so that no slot stops half way. */
	c.rx_ring = c.tx_ring = c.batch > RING_MIN ? RING_MAX : RING_MIN;
	load_eal("mr-load-pool", "192");
	for (uint32_t i = 0; i < 4; i++) {
		c.shed = i >= 2;
		run(&nics[i], &sides[i], c, i % 2);
	}
	return 0;
}
