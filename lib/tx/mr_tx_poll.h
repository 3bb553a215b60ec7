/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_tx_poll - one send poll, inlined into the lane's loop; see mr_rx_poll.h.
 *
 * Thread   the lane's core.
 */
#ifndef MR_TX_POLL_H
#define MR_TX_POLL_H

#include "mr_tx.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

uint32_t mr_tx_guarded_burst(struct mr_txq *q, struct rte_mbuf **m, uint32_t n);
uint64_t mr_tx_bytes_of(struct rte_mbuf *const *m, uint32_t n);

/* Puts the two segments of each split packet together; those that are, and whole ones, stay. */
void mr_tx_join(struct rte_mbuf *const *m, uint32_t n);

/* Polls with something held back: a backlog, or a slot that stopped at its cursor. */
uint32_t mr_tx_poll_held(struct mr_tx *tx, uint64_t now);

/* Goes on with the slot in hand packet by packet, from the cursor. */
uint32_t mr_tx_poll_each(struct mr_tx *tx, uint64_t now);

static inline uint32_t mr_tx_wait_len(const struct mr_txq *q)
{
	return q->head - q->tail;
}

static inline uint32_t mr_tx_burst(struct mr_txq *q, struct rte_mbuf **m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		mr_sync_leave(m[i]);
	if (MR_UNLIKELY(q->guard != NULL))
		return mr_tx_guarded_burst(q, m, n);
	return rte_eth_tx_burst(q->port, q->queue, m, (uint16_t)n);
}

/* The slot in hand is dealt with. */
static inline void mr_tx_finish(
	struct mr_tx *tx, struct mr_ring_note *slot, uint32_t count, uint64_t now)
{
	mr_hist_add(
		tx->latency, ((now - slot->opened_tsc) * tx->ns_per_tsc) >> MR_TX_TSC_SHIFT, count);
	slot->count = 0;
	tx->oldest = slot->next;
	mr_ring_release(tx->ring);
}

/*
 * mr_tx_poll sends what waits, then completes the oldest slot if it is done. Returns
 * the number of packets dealt with. now is the turn's TSC.
 */
static inline uint32_t mr_tx_poll(struct mr_tx *tx, uint64_t now)
{
	struct mr_ring_note *slot = tx->oldest;
	uint32_t count, sent;

	if (MR_UNLIKELY((tx->cursor | tx->waiting) != 0))
		return mr_tx_poll_held(tx, now);
	if (!mr_ring_done(tx->ring, slot->out))
		return 0;
	/* A tick is never plain, whatever its answer says. */
	if (MR_UNLIKELY(slot->out->plain == 0 || slot->tick))
		return mr_tx_poll_each(tx, now);
	count = slot->count;
	if (MR_UNLIKELY(tx->split))
		mr_tx_join(slot->mbufs, count);
	sent = mr_tx_burst(&tx->q[0], slot->mbufs, count);
	tx->counters->c[MR_C_tx_packets] += sent;
	tx->counters->c[MR_C_tx_bytes] += slot->bytes;
	if (MR_UNLIKELY(sent != count)) {
		tx->counters->c[MR_C_tx_bytes] -= mr_tx_bytes_of(slot->mbufs + sent, count - sent);
		tx->cursor = sent;
		return sent + mr_tx_poll_each(tx, now);
	}
	mr_tx_finish(tx, slot, count, now);
	return sent;
}

#endif
