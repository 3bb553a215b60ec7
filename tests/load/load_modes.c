/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane that is given more than it can carry, in every overload mode, over the pool that
 * the plan computes for it.
 *
 *     load_modes BATCH      each mode, with more than ten times the pool
 *     load_modes forever    a hundred times the pool, at full speed and with a slow sink
 *     load_modes trickle    one packet a second
 *
 * At every publish that is seen, and at the end, rx + made = tx + dropped + in flight, and
 * a frame that does not come has a counter. The pool is the computed minimum, and must
 * never be empty while the receive ring has room; that all of it is needed is load_pool's.
 */
#include "load_rig.h"

#include <rte_cycles.h>
#include <rte_ring.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RINGS 128u
#define SLOTS 4u
#define STAGE_US 60u /* of a slow stage, for each slot */
#define OVERLOAD_MS 10000u
#define SINK_PAUSE_US 700u
#define SINK_TAKES 40u
#define TIMEOUT_MS 50u
#define SLACK_MS 900u /* for a machine with no time; a full batch would take a minute */

struct mode {
	const char *name;
	bool shed, slow_stage, slow_sink;
	uint32_t tx_timeout_us;
	bool loses; /* and must, or the mode was not reached */
};

static const struct mode modes[] = {
	{"block", false, false, false, 0, false},
	{"block, slow stage", false, true, false, 0, false},
	{"block, slow sink", false, false, true, 0, false},
	{"block, slow sink that is given up", false, false, true, 50, true},
	{"shed, slow stage", true, true, false, 0, true},
	{"shed, slow sink", true, false, true, 0, true},
	{"shed, slow stage, slow sink that is given up", true, true, true, 50, true},
};

static void sleep_us(uint64_t us)
{
	struct timespec t = {
		.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000)};

	nanosleep(&t, NULL);
}

/* What the lane last published, which has to balance. */
static void look(struct load_side *s, struct mr_published *ret_seen)
{
	mr_stats_snapshot(&s->lane->pub, ret_seen);
	if (!mr_counters_balanced(&ret_seen->counters, ret_seen->in_flight))
		load_die("published counters do not balance");
}

/* Did it come to what the mode is about? */
static bool is_overloaded(const struct mode *m, const struct mr_published *seen)
{
	return m->loses ? mr_counters_dropped(&seen->counters) != 0
			: seen->counters.c[MR_C_ring_full] != 0;
}

struct slow {
	const struct mode *mode;
	struct load_side *side;
	bool reached;
};

/* Its first slot takes until there is an overload, however slow the source is here. */
static void slow_fence(void *ctx)
{
	struct slow *w = ctx;
	struct mr_published seen;

	for (uint32_t ms = 0; !w->reached && ms < OVERLOAD_MS; ms++) {
		sleep_us(1000);
		look(w->side, &seen);
		w->reached = is_overloaded(w->mode, &seen);
	}
	w->reached = true;
	sleep_us(STAGE_US);
}

/*
 * The pool as the plan computes it. The lane only frees here and the thread with the ports
 * allocates, so the cache that is not at hand is the lane's: once and a half its size.
 */
static void plan_pool(struct load_conf *c)
{
	load_plan(c);
	c->buffers += c->cache / 2;
}

/*
 * Keeps the receive ring full and lets the sink take as the mode says, until all are accounted
 * for. A slow sink opens for the first time when there is an overload.
 */
static void drive(struct load_side *s, const struct mode *m, uint64_t total)
{
	uint64_t hz = rte_get_tsc_hz(), moved = rte_rdtsc(), last = 0, opens = moved, now;
	struct mr_published seen;
	bool reached = false;

	look(s, &seen);
	do {
		now = rte_rdtsc();
		load_generate(s, LOAD_BURST, total);
		if (!m->slow_sink) {
			load_collect(s, LOAD_BURST);
		} else if (now >= opens && (reached = reached || is_overloaded(m, &seen))) {
			for (uint32_t n = 0; n < SINK_TAKES; n += 8)
				load_collect(s, 8);
			opens = now + hz / 1000000 * SINK_PAUSE_US;
		}
		look(s, &seen);
		if (s->received + s->sent != last)
			moved = now;
		else
			sched_yield();
		last = s->received + s->sent;
		if (now - moved > 20 * hz)
			load_die("nothing moves any more");
	} while (s->sent < total || s->received + mr_counters_dropped(&seen.counters) < total);
}

static void run_mode(const struct mode *m, struct load_conf c, uint32_t times)
{
	static struct load_side sides[MR_ARRAY_LEN(modes)];
	struct load_side *s = &sides[m - modes];
	struct slow slow = {m, s, false};
	const uint64_t *n;
	uint64_t total, dropped, start = rte_rdtsc();

	c.shed = m->shed;
	c.tx_timeout_us = m->tx_timeout_us;
	c.fence = m->slow_stage ? slow_fence : NULL;
	c.fence_ctx = &slow;
	plan_pool(&c);
	total = (uint64_t)times * c.buffers + 1;
	load_side_make(s, &c);
	load_side_start(s);
	drive(s, m, total);
	dropped = load_side_stop(s);
	n = s->lane->counters.c;
	printf("batch %u, %s: %llu packets over %u buffers, %llu sent on, %llu shed, %llu given "
	       "up, "
	       "%.2f s\n",
		c.batch, m->name, (unsigned long long)total, c.buffers,
		(unsigned long long)s->received, (unsigned long long)n[MR_C_rx_drop_shed],
		(unsigned long long)n[MR_C_tx_drop_stalled],
		(double)(rte_rdtsc() - start) / (double)rte_get_tsc_hz());
	fflush(stdout);
	if (s->starved != 0)
		load_die("the pool was empty while the receive ring had room");
	if (n[MR_C_rx_drop_shed] + n[MR_C_tx_drop_stalled] != dropped)
		load_die("a frame was dropped for another reason than overload");
	if ((dropped != 0) != m->loses)
		load_die(m->loses ? "nothing was lost, so there was no overload"
				  : "a frame was lost");
	/* What is given up makes room in the ring; that something was is enough. */
	if ((m->slow_stage || m->slow_sink) && !m->loses && n[MR_C_ring_full] == 0)
		load_die("the ring was never full, so there was no overload");
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void hold_fence(void *ctx)
{
	while (mr_load_acquire(ctx) != 0)
		sleep_us(1000);
}

static uint64_t slots_given(struct load_side *s)
{
	struct mr_published seen;

	look(s, &seen);
	return seen.counters.c[MR_C_slots_given];
}

/* Waits for `received` frames and `given` slots; returns the milliseconds since `since`. */
static uint64_t wait_for(struct load_side *s, uint64_t received, uint64_t given, uint64_t since)
{
	while (s->received < received || slots_given(s) < given) {
		load_collect(s, LOAD_BURST);
		sleep_us(200);
		if (now_ms() - since > 10000)
			load_die("a lone packet waits for a batch that does not come");
	}
	return now_ms() - since;
}

static void trickle(struct load_conf c)
{
	static struct load_side s;
	static uint32_t hold;
	uint64_t at, took;

	c.timeout_us = TIMEOUT_MS * 1000;
	c.fence = hold_fence;
	c.fence_ctx = &hold;
	plan_pool(&c);
	load_side_make(&s, &c);
	load_side_start(&s);
	for (uint32_t i = 1; i <= 3; i++) {
		at = now_ms();
		load_generate(&s, 1, i);
		took = wait_for(&s, i, i, at);
		printf("a packet a second, worker idle: through after %llu ms\n",
			(unsigned long long)took);
		if (took > TIMEOUT_MS + SLACK_MS)
			load_die("a lone packet was delayed by more than the batch timeout");
		sleep_us(1000000 - 1000 * (took < 1000 ? took : 1000));
	}
	/* The next is held by its worker, and the one after has to wait for its timeout alone. */
	mr_store_release(&hold, 1);
	load_generate(&s, 1, 4);
	(void)wait_for(&s, 3, 4, now_ms());
	at = now_ms();
	load_generate(&s, 1, 5);
	took = wait_for(&s, 3, 5, at);
	printf("worker busy: handed over after %llu ms, timeout %u ms\n", (unsigned long long)took,
		TIMEOUT_MS);
	if (took + 1 < TIMEOUT_MS || took > TIMEOUT_MS + SLACK_MS)
		load_die("a lone packet was not handed over after the batch timeout");
	mr_store_release(&hold, 0);
	(void)wait_for(&s, 5, 5, now_ms());
	if (load_side_stop(&s) != 0 || s.lane->counters.c[MR_C_slots_timeout] != 1)
		load_die("the batch timeout did not give exactly one slot");
}

int main(int argc, char **argv)
{
	struct load_conf c = {.batch = 64,
		.slots = SLOTS,
		.workers = 1,
		.rx_ring = RINGS,
		.tx_ring = RINGS,
		.timeout_us = 20};
	bool forever, trickles;

	if (argc != 2)
		load_die("usage: load_modes BATCH|forever|trickle");
	forever = strcmp(argv[1], "forever") == 0;
	trickles = strcmp(argv[1], "trickle") == 0;
	if (!forever && !trickles)
		c.batch = (uint32_t)atoi(argv[1]);
	load_eal("mr-load-modes", "192");
	if (trickles) {
		trickle(c);
		return 0;
	}
	for (size_t i = 0; i < MR_ARRAY_LEN(modes); i++)
		if (!forever)
			run_mode(&modes[i], c, 10);
		else if (!modes[i].shed && !modes[i].slow_stage && !modes[i].loses)
			run_mode(&modes[i], c, 100);
	return 0;
}
