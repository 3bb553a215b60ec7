/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_relay - a lane whose frames change memory between receiving and sending.
 *
 *     rx ─► lane's ring ── relay ─► kernel's ring ─► kernel
 *     tx ◄─ lane's ring ◄─ relay ── kernel's ring ◄──┘
 *
 * rx and tx work on the lane's own ring as they always do; the relay plays the kernel for
 * it. What it gives on to the kernel's ring, slot by slot and in order, names for each
 * frame also a buffer of the pool that frames leave from, to which the kernel copies it.
 * When the kernel is done the relay frees the buffers that frames arrived in, puts the
 * others in their place, and hands the slot back. No CPU touches a packet byte here; a
 * lane that has to be staged by CPU copies is lib/staged's.
 *
 * Frames for which the pool has no buffer are tx_drop_no_buffer. The plan's pool is so
 * large that this only happens where somebody else keeps the lane's buffers.
 *
 * Thread   the lane's core.
 * Owner    the caller; every array is the caller's memory.
 * Errors   none; see the counters.
 */
#ifndef MR_RELAY_H
#define MR_RELAY_H

#include "mr_lane.h"

struct rte_mempool;

struct mr_relay {
	struct mr_lane *lane;
	struct mr_ring kernel;       /* as many slots as the lane's own */
	struct rte_mempool *tx_pool; /* NULL: frames leave in the buffers they arrived in */
	struct rte_mbuf **tx_mbufs;  /* [slots][batch] */
	uint64_t tx_region;          /* address from which their positions count */
};

/* mr_relay_loop is mr_lane_loop for a relay's lane. */
void mr_relay_loop(struct mr_relay *relay);

#endif
