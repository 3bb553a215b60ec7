/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_relay_slot - the steps of a relay, for its own loop and for lib/staged's.
 *
 * Thread   the lane's core.
 */
#ifndef MR_RELAY_SLOT_H
#define MR_RELAY_SLOT_H

#include "mr_lane_turn.h"
#include "mr_relay.h"

/* Whether rx gave a slot that the relay has not given on, and may: none from a withheld one on. */
static inline bool mr_relay_waits(const struct mr_relay *r)
{
	const struct mr_ring *from = &r->lane->ring;

	return r->kernel.head != from->head &&
		!(from->withholds && r->kernel.head == from->withheld);
}

/* What the lane keeps of slot number seq. */
static inline struct mr_ring_note *mr_relay_note(const struct mr_relay *r, uint32_t seq)
{
	return &r->lane->slots[seq & r->kernel.mask];
}

static inline struct rte_mbuf **mr_relay_tx_mbufs(const struct mr_relay *r, uint32_t seq)
{
	return &r->tx_mbufs[(size_t)(seq & r->kernel.mask) * r->kernel.batch];
}

/*
 * mr_relay_describe writes the descriptors of the next slot for the kernel; frames that
 * are to leave from other memory get a buffer there, or are dropped if there is none.
 */
void mr_relay_describe(struct mr_relay *r);

/* mr_relay_results hands the verdicts of the slot that the kernel did to tx, not yet the slot. */
void mr_relay_results(struct mr_relay *r);

/* mr_relay_moves does what there is to do in one turn; returns how many packets moved. */
uint32_t mr_relay_moves(struct mr_relay *r);

/*
 * mr_relay_lane_moves is mr_lane_moves for a relay's lane, whose slots may be out and hold
 * nothing: that the ring is full does not show in the count of the slot to open next.
 */
static inline uint32_t mr_relay_lane_moves(struct mr_lane *lane, uint64_t now)
{
	uint32_t moved = mr_tx_poll(&lane->tx, now);

	if (MR_UNLIKELY(now >= lane->tick_due))
		mr_lane_tick(lane, now);
	if (MR_UNLIKELY(lane->state != MR_LANE_RUN))
		return moved;
	return moved +
		(mr_ring_full(&lane->ring) ? mr_rx_poll_open(&lane->rx, now)
					   : mr_rx_poll(&lane->rx, now));
}

/* mr_relay_return hands that slot itself back: tx finds it done. */
void mr_relay_return(struct mr_relay *r);

#endif
