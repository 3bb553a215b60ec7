/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_lane_turn.h"

uint64_t mr_lane_in_flight(const struct mr_lane *lane)
{
	uint64_t n = lane->tx.waiting;

	for (uint32_t i = 0; i <= lane->ring.mask; i++)
		n += lane->slots[i].count;
	return n - lane->tx.cursor;
}

static void publish(struct mr_lane *lane, uint64_t now)
{
	lane->counters.c[MR_C_busy_cycles] = now - lane->begun_tsc - lane->idle_tsc;
	mr_stats_publish(&lane->pub, &lane->counters, &lane->latency, mr_lane_in_flight(lane),
		lane->tx.waiting, lane->state);
}

static bool drained(const struct mr_lane *lane)
{
	return mr_rx_fill(&lane->rx) == 0 && mr_ring_outstanding(&lane->ring) == 0 &&
		lane->tx.waiting == 0;
}

void mr_lane_tick(struct mr_lane *lane, uint64_t now)
{
	const bool last = lane->state == MR_LANE_DRAIN;

	if (lane->tx.tick_out)
		return;
	if (!mr_rx_tick(&lane->rx, lane->tick_pool,
		    last ? MR_SLOT_TICK | MR_SLOT_LAST : MR_SLOT_TICK, now))
		return;
	lane->tx.tick_out = true;
	lane->tick_due = last ? UINT64_MAX : now + lane->tick_tsc;
}

/* The last tick of all, as often as stages fill it; true once nothing is left to tell. */
static bool tell(struct mr_lane *lane, uint64_t now)
{
	if (lane->tick_tsc == 0 || lane->told)
		return true;
	lane->told = lane->tx.last_tick_back && !lane->tx.tick_filled;
	if (!lane->told)
		mr_lane_tick(lane, now);
	return lane->told;
}

/* Follows what the control thread wants, as far as the state diagram allows. */
static void follow(struct mr_lane *lane, uint64_t now)
{
	enum mr_lane_state want = (enum mr_lane_state)mr_load_acquire(&lane->want);

	if (want > lane->state)
		lane->state = want;
	if (lane->state == MR_LANE_DRAIN) {
		mr_rx_flush(&lane->rx);
		lane->tick_due = UINT64_MAX;
		if (drained(lane) && tell(lane, now))
			lane->state = MR_LANE_HALT;
	}
}

void mr_lane_limit(struct mr_lane *lane, uint64_t batch_timeout_tsc, uint64_t tx_timeout_tsc)
{
	mr_store_relaxed_u64(&lane->batch_timeout_tsc, batch_timeout_tsc);
	mr_store_relaxed_u64(&lane->tx_timeout_tsc, tx_timeout_tsc);
	mr_store_release(&lane->limits_given, mr_load_relaxed(&lane->limits_given) + 1);
}

static void take_limits(struct mr_lane *lane)
{
	uint32_t given = mr_load_acquire(&lane->limits_given);

	if (given == lane->limits_taken)
		return;
	lane->limits_taken = given;
	lane->rx.timeout_tsc = mr_load_relaxed_u64(&lane->batch_timeout_tsc);
	lane->tx.timeout_tsc = mr_load_relaxed_u64(&lane->tx_timeout_tsc);
}

uint64_t mr_lane_keep(struct mr_lane *lane, uint64_t now, uint64_t due)
{
	follow(lane, now);
	if (now < due)
		return due;
	take_limits(lane);
	publish(lane, now);
	return now + lane->publish_tsc;
}

void mr_lane_link(struct mr_lane *lane)
{
	const struct mr_ring *r = &lane->ring;

	for (uint32_t i = 0; i <= r->mask; i++) {
		mr_ring_in(r, i)->rx_port = (uint8_t)lane->rx.port;
		lane->slots[i] = (struct mr_ring_note){
			.in = mr_ring_in(r, i),
			.out = mr_ring_out(r, i),
			.mbufs = &lane->mbufs[(size_t)i * r->batch],
			.next = &lane->slots[(i + 1) & r->mask],
		};
	}
	lane->tick_due = UINT64_MAX;
	lane->rx.batch = r->batch;
	lane->rx.by_call = lane->rx.flush != NULL || r->in_map != NULL;
	lane->rx.open = &lane->slots[r->head & r->mask];
	lane->tx.oldest = &lane->slots[r->tail & r->mask];
}

void mr_lane_begin(struct mr_lane *lane, struct mr_lane_clock *clock)
{
	uint64_t now = rte_rdtsc();

	*clock = (struct mr_lane_clock){.now = now, .due = now + lane->publish_tsc};
	mr_guard_deny(lane->guard);
	mr_lane_link(lane);
	lane->state = MR_LANE_RUN;
	lane->begun_tsc = now;
	if (lane->tick_tsc != 0)
		lane->tick_due = now + lane->tick_tsc;
	publish(lane, now);
}

void mr_lane_end(struct mr_lane *lane, const struct mr_lane_clock *clock)
{
	publish(lane, clock->now);
}

void mr_lane_loop(struct mr_lane *lane)
{
	struct mr_lane_clock clock;

	mr_lane_begin(lane, &clock);
	while (lane->state != MR_LANE_HALT)
		mr_lane_turn(lane, &clock);
	mr_lane_end(lane, &clock);
}

const char *mr_lane_state_name(enum mr_lane_state state)
{
	static const char *const names[] = {"boot", "run", "drain", "halt"};

	return names[state];
}
