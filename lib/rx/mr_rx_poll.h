/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_rx_poll - one receive poll, inlined into the lane's loop.
 *
 * Receive and send share one function's frame and registers: as two calls they cost
 * the lane a third of its own instructions per batch. What is not the frames' usual
 * way is out of line in mr_rx.c.
 *
 * Thread   the lane's core.
 */
#ifndef MR_RX_POLL_H
#define MR_RX_POLL_H

#include "mr_rx.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

uint32_t mr_rx_guarded_burst(struct mr_rx *rx, struct rte_mbuf **m, uint32_t n);

/* Polls with frames in the open slot already, or with no free slot. */
uint32_t mr_rx_poll_open(struct mr_rx *rx, uint64_t now);

/* Flushes the device if it has to be, and gives the slot wherever READY lies, or withholds it. */
void mr_rx_give_by_call(struct mr_rx *rx, uint32_t count);

/* Takes a burst of n frames, 0 or more, up into the open slot, and gives it if it is due. */
uint32_t mr_rx_take_up(struct mr_rx *rx, uint32_t n, uint64_t now);

static inline uint64_t *mr_rx_desc(struct mr_slot_in *in, uint32_t from)
{
	return (uint64_t *)mr_slot_desc_in(in) + from;
}

static inline uint32_t mr_rx_burst(struct mr_rx *rx, struct rte_mbuf **m, uint32_t n)
{
	if (MR_UNLIKELY(rx->guard != NULL))
		n = mr_rx_guarded_burst(rx, m, n);
	else
		n = rte_eth_rx_burst(rx->port, rx->queue, m, (uint16_t)n);
	for (uint32_t i = 0; i < n; i++)
		mr_sync_enter(m[i]);
	return n;
}

static inline void mr_rx_give(struct mr_rx *rx, struct mr_ring_note *slot, uint32_t count)
{
	slot->count = count;
	rx->open = slot->next;
	rx->counters->c[MR_C_slots_given]++;
	if (MR_UNLIKELY(rx->by_call))
		mr_rx_give_by_call(rx, count);
	else
		mr_ring_give_slot(rx->ring, slot->in, count, false);
}

/*
 * mr_rx_poll takes at most one burst and returns the number of frames the port
 * gave. now is the turn's TSC.
 */
static inline uint32_t mr_rx_poll(struct mr_rx *rx, uint64_t now)
{
	struct mr_ring_note *slot = rx->open;
	uint64_t bytes;
	uint32_t n;

	if (MR_UNLIKELY(slot->count != 0))
		return mr_rx_poll_open(rx, now);
	n = mr_rx_burst(rx, slot->mbufs, rx->batch);
#ifdef MR_TEST_TOUCH_PAYLOAD
	/* The guard's negative test: payload bytes read on the control core. */
	if (n != 0)
		(void)mr_load_relaxed(rte_pktmbuf_mtod(slot->mbufs[0], const uint32_t *));
#endif
	if (MR_UNLIKELY(n != rx->batch))
		return n == 0 ? 0 : mr_rx_take_up(rx, n, now);
	bytes = rx->describe(&rx->window, slot->mbufs, n, mr_rx_desc(slot->in, 0));
	if (MR_UNLIKELY(bytes == MR_RX_DESCRIBE_BAD))
		return mr_rx_take_up(rx, n, now);
	rx->counters->c[MR_C_rx_packets] += n;
	rx->counters->c[MR_C_rx_bytes] += bytes;
	rx->counters->c[MR_C_slots_full]++;
	slot->opened_tsc = now;
	slot->bytes = bytes;
	mr_rx_give(rx, slot, n);
	return n;
}

#endif
