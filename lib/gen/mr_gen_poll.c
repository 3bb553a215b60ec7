/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mr_gen_priv.h"
#include "mr_gen_schedule.h"
#include "mr_sync.h"

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_pause.h>
#include <sched.h>
#include <time.h>

#define YIELD_POLLS 64u
#define FAR_NS 300000u /* without a core of its own, a sender sleeps if there is so much time */
#define NAP_NS 100000u

/* Packets that were written and that the port has not taken. */
struct batch {
	struct rte_mbuf *mbuf[MR_GEN_BURST];
	uint64_t due[MR_GEN_BURST];
	uint32_t first, count;
};

/* How many packets from k on are due, at most a burst. */
static uint32_t due_now(const struct mr_gen_rig *r, uint64_t k, uint64_t age)
{
	uint32_t n = 0;

	while (n < MR_GEN_BURST && k + n < r->total && mr_gen_due(r->gap, r->burst, k + n) <= age)
		n++;
	return n;
}

static void write_batch(struct mr_gen_rig *r, struct batch *b, uint64_t k, uint32_t n)
{
	const struct mr_gen_plan *p = r->plan;

	for (uint32_t i = 0; i < n; i++, k++) {
		uint32_t bytes = p->sizes[k % p->sizes_count] - MR_GEN_FCS;
		struct mr_gen_stamp stamp = {.run = r->run,
			.trial = r->trial,
			.stream = (uint8_t)(k % p->streams),
			.sequence = (uint32_t)(k / p->streams),
			.time_ns = mr_gen_due(r->gap, r->burst, k)};
		struct rte_mbuf *m = b->mbuf[i];

		mr_sync_enter(m);
		rte_pktmbuf_reset(m);
		m->data_len = (uint16_t)bytes;
		m->pkt_len = bytes;
		mr_gen_frame_write(r->frame, &stamp, bytes, rte_pktmbuf_mtod(m, uint8_t *));
		b->due[i] = stamp.time_ns;
		mr_sync_leave(m);
	}
	b->first = 0;
	b->count = n;
}

/* What the port takes now, counted. */
static void send_batch(struct mr_gen_rig *r, struct batch *b)
{
	const struct mr_gen_plan *p = r->plan;
	struct mr_gen_trial *t = r->out;
	uint64_t late_ns = (uint64_t)p->late_us * 1000;
	uint16_t taken = rte_eth_tx_burst(
		r->tx_port, 0, b->mbuf + b->first, (uint16_t)(b->count - b->first));
	uint64_t age = mr_clock_ns() - r->start_ns;

	for (uint32_t i = 0; i < taken; i++) {
		uint64_t lag = age - b->due[b->first + i];

		mr_hist_add(&t->lag, lag, 1);
		t->late += lag >= late_ns;
		t->wire_bits += (p->sizes[(t->sent + i) % p->sizes_count] + MR_GEN_GAP) * 8u;
	}
	b->first += taken;
	t->sent += taken;
	t->blocked += b->first < b->count;
	if (taken > 0)
		t->send_ns = age;
}

/* Nothing is due. */
static void idle(const struct mr_gen_rig *r, uint64_t k, uint64_t age)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};

	if (r->sender.core >= 0)
		rte_pause();
	else if (k < r->total && mr_gen_due(r->gap, r->burst, k) > age + FAR_NS)
		nanosleep(&nap, NULL);
	else
		sched_yield();
}

static void send_all(struct mr_gen_rig *r)
{
	uint64_t end = r->duration_ns + (r->gap == 0 ? 0 : MR_GEN_CATCH_UP_MS * 1000000ull);
	struct batch b = {.count = 0};
	uint64_t k = 0;

	while (mr_load_relaxed(&r->stop_sender) == 0 && r->out->sent < r->total) {
		uint64_t now = mr_clock_ns();
		/* It may be made a moment before the trial's start. */
		uint64_t age = now > r->start_ns ? now - r->start_ns : 0;

		r->ran_ns = age;
		if (age > end)
			break;
		if (b.first == b.count) {
			uint32_t n = now < r->start_ns ? 0 : due_now(r, k, age);

			if (n == 0) {
				idle(r, k, age);
				continue;
			}
			/* No buffer: the network holds them all. Time goes on. */
			if (rte_mempool_get_bulk(r->pool, (void **)b.mbuf, n) != 0) {
				r->out->blocked++;
				sched_yield();
				continue;
			}
			write_batch(r, &b, k, n);
			k += n;
			mr_store_relaxed_u64(&r->issued, k);
		}
		send_batch(r, &b);
		if (b.first < b.count && r->sender.core < 0)
			sched_yield();
	}
	if (b.first < b.count)
		rte_pktmbuf_free_bulk(b.mbuf + b.first, b.count - b.first);
}

void *mr_gen_sender_main(void *arg)
{
	struct mr_gen_rig *r = arg;

	/* A DPDK id of its own gives the thread its mempool caches. */
	r->sender.rc = rte_thread_register() < 0 ? -rte_errno : 0;
	if (r->sender.rc == 0) {
		send_all(r);
		rte_thread_unregister();
	}
	mr_store_release(&r->sent_all, 1);
	return NULL;
}

static void take_batch(struct mr_gen_rig *r, struct rte_mbuf **m, uint32_t n)
{
	uint64_t now = mr_clock_ns();

	for (uint32_t i = 0; i < n; i++) {
		mr_sync_enter(m[i]);
		/* Ours have one segment; of what others sent the first is enough to tell. */
		mr_gen_sink_take(
			&r->counts, rte_pktmbuf_mtod(m[i], const uint8_t *), m[i]->data_len, now);
		mr_sync_leave(m[i]);
	}
	rte_pktmbuf_free_bulk(m, n);
}

void *mr_gen_sink_main(void *arg)
{
	struct mr_gen_rig *r = arg;
	struct rte_mbuf *m[MR_GEN_BURST];
	uint32_t empty = 0;

	r->sink.rc = rte_thread_register() < 0 ? -rte_errno : 0;
	if (r->sink.rc != 0)
		return NULL;
	while (mr_load_relaxed(&r->stop_sink) == 0) {
		uint16_t n = rte_eth_rx_burst(r->rx_port, 0, m, MR_GEN_BURST);

		if (n > 0) {
			take_batch(r, m, n);
			empty = 0;
		} else if (r->sink.core < 0 && ++empty >= YIELD_POLLS) {
			sched_yield();
		} else {
			rte_pause();
		}
	}
	rte_thread_unregister();
	return NULL;
}
