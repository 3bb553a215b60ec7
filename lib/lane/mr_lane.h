/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_lane - one core that moves queue entries: tx poll, rx poll, housekeeping.
 *
 *                 start            stop               nothing in flight
 *        BOOT ──────────► RUN ──────────► DRAIN ──────────────────────► HALT
 *                          │                │                            ▲
 *                          └────────────────┴──── fast stop ─────────────┘
 *
 * The control thread writes `want` (RUN, DRAIN, HALT); the lane writes its own
 * state and publishes it. In DRAIN no frame is received any more; the lane goes
 * to HALT by itself when the last packet has left. A lane that is told to HALT
 * with packets in flight leaves them where they are, and says how many.
 *
 * Ticks. Every tick_tsc the lane gives the kernel a slot of blank buffers, for results that
 * stages have to tell: between tx and rx, so that packets that come faster than the kernel
 * takes them do not keep the ticks off, and one at a time. They come from tick_pool, where
 * mr_plan.h keeps a reserve for them. The last of all is given in DRAIN, when no packet is out
 * any more, and again as long as stages fill all of its buffers.
 *
 * The loop takes no lock, allocates nothing, logs nothing and makes no system
 * call; a lane without a core of its own (yield_polls) gives the processor away
 * after that many empty turns. What it may call is tests/lint/hot_symbols.allow.
 *
 * Thread   mr_lane_loop: the lane's own. want: the control thread. pub: any.
 * Owner    the caller; every array is the caller's memory.
 */
#ifndef MR_LANE_H
#define MR_LANE_H

#include "mr_rx.h"
#include "mr_tx.h"

enum mr_lane_state {
	MR_LANE_BOOT,
	MR_LANE_RUN,
	MR_LANE_DRAIN,
	MR_LANE_HALT,
};

struct mr_lane {
	/* the lane's core alone */
	struct mr_rx rx MR_CACHE_ALIGNED;
	struct mr_tx tx;
	struct mr_ring ring;
	struct mr_ring_note *slots; /* [slots of the ring] */
	struct rte_mbuf **mbufs;    /* [slots][batch] */
	struct mr_counters counters;
	struct mr_hist latency;
	enum mr_lane_state state;
	uint64_t tick_due; /* when to give the next tick; UINT64_MAX: never */
	uint64_t tick_tsc; /* so often; 0: never */
	struct rte_mempool *tick_pool;
	bool told;            /* the last tick came back and no stage had more to tell */
	uint32_t yield_polls; /* 0: the core is the lane's own and it never yields */
	uint64_t publish_tsc; /* publish this often */
	uint64_t begun_tsc;   /* when the loop began, */
	uint64_t idle_tsc;    /* and its turns that moved nothing since, in ticks */
	struct mr_guard *guard;
	uint32_t limits_taken; /* which of those that were given are in force */

	/* written by the control thread */
	uint32_t want MR_CACHE_ALIGNED; /* enum mr_lane_state */
	uint32_t limits_given;          /* how often those below were */
	uint64_t batch_timeout_tsc, tx_timeout_tsc;

	/* written by the lane, read by any */
	struct mr_published pub MR_CACHE_ALIGNED;
};

/*
 * mr_lane_link ties slots and mbufs to the ring, which is laid out, and points rx and
 * tx at them; the ring is empty. mr_lane_loop does it first thing.
 */
void mr_lane_link(struct mr_lane *lane);

/* mr_lane_loop runs the lane on the calling thread until HALT. */
void mr_lane_loop(struct mr_lane *lane);

/* mr_lane_want asks for a state; states are only left forwards. */
static inline void mr_lane_want(struct mr_lane *lane, enum mr_lane_state state)
{
	mr_store_release(&lane->want, state);
}

/*
 * mr_lane_limit gives the lane other limits than it was set up with, in TSC ticks: how long a
 * batch waits to be full (rx.timeout_tsc) and a packet for its port (tx.timeout_tsc). It takes
 * both as it next publishes. Control thread.
 */
void mr_lane_limit(struct mr_lane *lane, uint64_t batch_timeout_tsc, uint64_t tx_timeout_tsc);

/*
 * mr_lane_in_flight counts the packets in the open slot, in slots with the
 * kernel, and in backlogs: by looking, not by subtraction, so that the balance
 * of the counters can fail.
 */
uint64_t mr_lane_in_flight(const struct mr_lane *lane);

const char *mr_lane_state_name(enum mr_lane_state state);

#endif
