/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_lane_turn - one turn of the lane's loop, in one function's frame.
 *
 * Thread   the lane's core.
 */
#ifndef MR_LANE_TURN_H
#define MR_LANE_TURN_H

#include "mr_lane.h"
#include "mr_rx_poll.h"
#include "mr_tx_poll.h"

#include <rte_cycles.h>
#include <sched.h>

/* What the loop keeps from turn to turn; TSC ticks. */
struct mr_lane_clock {
	uint64_t now;
	uint64_t due;   /* when to publish next */
	uint32_t empty; /* turns in a row that moved nothing */
};

/* mr_lane_tick gives a tick, or leaves it due where that cannot be yet. */
void mr_lane_tick(struct mr_lane *lane, uint64_t now);

/* mr_lane_moves polls once; returns how many packets moved. */
static inline uint32_t mr_lane_moves(struct mr_lane *lane, uint64_t now)
{
	uint32_t moved = mr_tx_poll(&lane->tx, now);

	if (MR_UNLIKELY(now >= lane->tick_due))
		mr_lane_tick(lane, now);
	if (MR_LIKELY(lane->state == MR_LANE_RUN))
		moved += mr_rx_poll(&lane->rx, now);
	return moved;
}

/*
 * mr_lane_keep follows what the control thread wants, and publishes when it is due;
 * returns when that is next.
 */
uint64_t mr_lane_keep(struct mr_lane *lane, uint64_t now, uint64_t due);

/*
 * mr_lane_books keeps the books of a turn that moved so many packets since clock->now. Turns
 * without a packet have the time for it, so theirs is what is measured.
 */
static inline void mr_lane_books(struct mr_lane *lane, struct mr_lane_clock *clock, uint32_t moved)
{
	uint64_t then = clock->now;

	lane->counters.c[MR_C_turns]++;
	clock->now = rte_rdtsc();
	if (MR_LIKELY(moved != 0)) {
		clock->empty = 0;
	} else {
		lane->idle_tsc += clock->now - then;
		if (lane->yield_polls != 0 && ++clock->empty >= lane->yield_polls) {
			clock->empty = 0;
			sched_yield();
		}
	}
	if (MR_UNLIKELY(clock->now >= clock->due || mr_load_relaxed(&lane->want) != MR_LANE_RUN))
		clock->due = mr_lane_keep(lane, clock->now, clock->due);
}

/* mr_lane_turn polls once and keeps the books; returns how many packets moved. */
static inline uint32_t mr_lane_turn(struct mr_lane *lane, struct mr_lane_clock *clock)
{
	uint32_t moved = mr_lane_moves(lane, clock->now);

	mr_lane_books(lane, clock, moved);
	return moved;
}

/* What a loop of a lane's turns begins and ends with; between them until MR_LANE_HALT. */
void mr_lane_begin(struct mr_lane *lane, struct mr_lane_clock *clock);
void mr_lane_end(struct mr_lane *lane, const struct mr_lane_clock *clock);

#endif
