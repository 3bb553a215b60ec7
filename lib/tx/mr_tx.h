/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_tx - finished slots out to the ports, in order.
 *
 *     kernel ── DONE ─► take ─► check results ─► tx[port] ── burst ─► port
 *                                              └► free and count
 *
 * Slots are completed in the order in which they were given, so the order of
 * packets within a lane is kept. A slot that the kernel calls plain, all packets
 * unchanged and to the first port, is one burst of the slot's own array; its
 * results are not read. Everything else goes packet by packet.
 *
 * The kernel's answer is not trusted: what it changed must stay in the buffer and
 * hold an Ethernet header, and the verdict must exist, or the packet is
 * tx_drop_bad_result and never reaches a port. Of a plain slot nothing is taken
 * over but that it may leave.
 *
 * A split lane's packets are in two segments, of which the kernel saw the first; here they are
 * put together again (mr_tx_join), and lengths are of both.
 *
 * Each port queue has a backlog of at most one of its rings. A packet that waited
 * there for timeout is freed as tx_drop_stalled, with the link down at once as
 * tx_drop_link; the other queues of the lane go on. When a backlog is full the
 * slot in hand waits at its cursor.
 *
 * Thread   the lane's core; link_down is written by the control thread.
 * Owns     the mbufs of a slot from take until the port accepts them.
 * Errors   none; see the tx_* counters.
 */
#ifndef MR_TX_H
#define MR_TX_H

#include "mr_guard.h"
#include "mr_ring.h"
#include "mr_stats.h"

struct rte_mbuf;

/* One entry of the lane's tx list. */
struct mr_txq {
	uint16_t port, queue;
	uint32_t link_down;     /* mr_sync word */
	struct mr_guard *guard; /* NULL for hardware ports */
	struct rte_mbuf **wait; /* ring of mask + 1 packets not yet accepted */
	uint64_t *wait_tsc;     /* when each was put there */
	uint32_t mask;
	uint32_t limit; /* packets the backlog may hold, at most mask + 1 */
	uint32_t head, tail;
};

struct mr_tx {
	/* touched on every poll */
	struct mr_ring *ring;
	struct mr_counters *counters;
	struct mr_hist *latency;
	struct mr_ring_note *oldest; /* the slot to complete next */
	uint32_t cursor;             /* packets of the oldest slot already dealt with */
	uint32_t waiting;            /* packets in all backlogs */
	uint32_t room;               /* bytes of a buffer */
	uint32_t tx_count;
	bool split;           /* a packet may be in two segments */
	uint64_t timeout_tsc; /* 0: for ever */
	uint64_t ns_per_tsc;  /* fixed point, MR_TX_TSC_SHIFT bits of fraction */
	/* of the tick that is out, or was last (mr_lane.h) */
	bool tick_out;
	bool tick_filled;    /* stages used all of its buffers: they may have more to tell */
	bool last_tick_back; /* it was one that says that no packet comes any more */
	struct mr_txq q[MR_TX_MAX];
};

#define MR_TX_TSC_SHIFT 20

#endif
