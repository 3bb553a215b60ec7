/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_rx - frames from a port into the open slot, by descriptor.
 *
 *     port ── burst ─► [mbufs of the open slot] ── describe ─► slot ── give ─► kernel
 *
 * The burst lands in the slot's own array of mbufs, so no pointer is moved
 * again. A descriptor is made from the mbuf's head alone; packet bytes are not
 * touched. A slot is given when it is full, timeout after its first packet, or at
 * once while fewer slots are outstanding than the lane has workers.
 *
 * Before a position is formed the buffer is checked against the lane's region:
 * another device's or lane's memory kind is rx_drop_foreign, never an alias. A
 * buffer that something else refers to is rx_drop_shared, a frame that leaves its
 * buffer or is in more than one segment rx_drop_oversize. Of several faults of one
 * frame segments come first, then foreign, then shared.
 *
 * Without a free slot the lane stops polling, so that the port counts the loss
 * (overload: block), or receives, frees and counts rx_drop_shed (overload: shed).
 *
 * Thread   the lane's core.
 * Owns     mbufs from the burst until the slot is given.
 * Errors   none; see the rx_* counters.
 */
#ifndef MR_RX_H
#define MR_RX_H

#include "mr_guard.h"
#include "mr_ring.h"
#include "mr_rx_describe.h"
#include "mr_stats.h"

#define MR_TICK_BUFFERS 32u /* most that a tick gives; a warp's worth */

struct rte_mempool;

struct mr_rx {
	/* touched on every poll */
	struct mr_ring *ring;
	struct mr_counters *counters;
	struct mr_ring_note *open; /* the slot that is filled, or is to be next */
	struct mr_guard *guard;    /* NULL for hardware ports: their driver copies nothing */
	uint64_t timeout_tsc;
	struct mr_rx_window window;
	mr_rx_describe_fn describe;
	uint32_t workers;
	uint32_t batch; /* of the ring */
	uint16_t port, queue;
	bool shed;
	bool by_call; /* a flush, or READY in mapped memory: mr_rx_give_by_call */
	/* For devices that do not order the NIC's writes before READY; NULL elsewhere. A slot
	 * whose flush fails is withheld: it stays in flight, and so does all behind it. */
	int (*flush)(void *arg);
	void *flush_arg;
};

/* mr_rx_fill counts the packets in the open slot. */
static inline uint32_t mr_rx_fill(const struct mr_rx *rx)
{
	return mr_ring_full(rx->ring) ? 0 : rx->open->count;
}

/* mr_rx_flush gives the open slot if it holds a packet; for draining and before a tick. */
void mr_rx_flush(struct mr_rx *rx);

/*
 * mr_rx_tick gives a slot of blank buffers of the pool: MR_TICK_BUFFERS, or as many as a batch
 * has; flags are the slot's. The open slot is given before if it holds a packet. false: there are
 * no slots or buffers for it, and nothing was done.
 */
bool mr_rx_tick(struct mr_rx *rx, struct rte_mempool *pool, uint32_t flags, uint64_t now);

#endif
