/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_lane.h"

#include <rte_cycles.h>
#include <sched.h>

uint64_t mr_lane_in_flight(const struct mr_lane *lane)
{
	const struct mr_ring *r = &lane->ring;
	uint64_t n = lane->rx.fill + lane->tx.waiting;

	for (uint32_t seq = r->tail; seq != r->head; seq++)
		n += lane->rx.slots[seq & r->mask].count;
	return n - lane->tx.cursor;
}

static void publish(struct mr_lane *lane)
{
	mr_stats_publish(
		&lane->pub, &lane->counters, &lane->latency, mr_lane_in_flight(lane), lane->state);
}

static bool drained(const struct mr_lane *lane)
{
	return lane->rx.fill == 0 && mr_ring_outstanding(&lane->ring) == 0 && lane->tx.waiting == 0;
}

/* Follows what the control thread wants, as far as the state diagram allows. */
static void follow(struct mr_lane *lane)
{
	enum mr_lane_state want = (enum mr_lane_state)mr_load_acquire(&lane->want);

	if (want > lane->state)
		lane->state = want;
	if (lane->state == MR_LANE_DRAIN) {
		mr_rx_flush(&lane->rx);
		if (drained(lane))
			lane->state = MR_LANE_HALT;
	}
}

void mr_lane_loop(struct mr_lane *lane)
{
	uint64_t now = rte_rdtsc(), published = now;
	uint32_t empty = 0;

	mr_guard_deny(lane->guard);
	lane->state = MR_LANE_RUN;
	publish(lane);
	while (lane->state != MR_LANE_HALT) {
		uint32_t moved = mr_lane_turn(lane, now);
		uint64_t then = now;

		now = rte_rdtsc();
		if (moved != 0) {
			lane->counters.c[MR_C_busy_cycles] += now - then;
			empty = 0;
		} else if (lane->yield_polls != 0 && ++empty >= lane->yield_polls) {
			empty = 0;
			sched_yield();
		}
		if (MR_UNLIKELY(now - published >= lane->publish_tsc) ||
			MR_UNLIKELY(mr_load_relaxed(&lane->want) != lane->state)) {
			follow(lane);
			if (now - published >= lane->publish_tsc) {
				publish(lane);
				published = now;
			}
		}
	}
	publish(lane);
}

const char *mr_lane_state_name(enum mr_lane_state state)
{
	static const char *const names[] = {"boot", "run", "drain", "halt"};

	return names[state];
}
