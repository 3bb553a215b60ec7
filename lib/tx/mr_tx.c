/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_tx.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

/* Out of line, so that the frames' way stays short. */
#define COLD __attribute__((noinline, cold))

static __attribute__((noinline)) uint32_t guarded_burst(
	struct mr_txq *q, struct rte_mbuf **m, uint32_t n)
{
	uint32_t sent;

	mr_guard_open(q->guard);
	sent = rte_eth_tx_burst(q->port, q->queue, m, (uint16_t)n);
	mr_guard_close(q->guard);
	return sent;
}

static inline uint32_t burst(struct mr_txq *q, struct rte_mbuf **m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		mr_sync_leave(m[i]);
	if (MR_UNLIKELY(q->guard != NULL))
		return guarded_burst(q, m, n);
	return rte_eth_tx_burst(q->port, q->queue, m, (uint16_t)n);
}

static inline void free_one(struct rte_mbuf *m)
{
	mr_sync_leave(m);
	rte_pktmbuf_free(m);
}

static inline uint32_t wait_len(const struct mr_txq *q)
{
	return q->head - q->tail;
}

/*
 * The mbuf belongs to the driver once it is sent, so lengths are added up before
 * and what was refused is taken off again.
 */
static uint64_t bytes_of(struct rte_mbuf *const *m, uint32_t n)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += m[i]->data_len;
	return bytes;
}

static COLD void drop_waiting(struct mr_tx *tx, struct mr_txq *q, uint32_t n, enum mr_counter why)
{
	tx->counters->c[why] += n;
	tx->waiting -= n;
	for (; n != 0; n--)
		free_one(q->wait[q->tail++ & q->mask]);
}

/* Tries to send a backlog and frees what has waited too long; returns packets gone. */
static COLD uint32_t flush_queue(struct mr_tx *tx, struct mr_txq *q, uint64_t now)
{
	uint32_t before = wait_len(q), late = 0;

	while (wait_len(q) != 0) {
		uint32_t at = q->tail & q->mask;
		uint32_t n = wait_len(q), sent;
		uint64_t bytes;

		if (n > q->mask + 1 - at)
			n = q->mask + 1 - at;
		bytes = bytes_of(&q->wait[at], n);
		sent = burst(q, &q->wait[at], n);
		tx->counters->c[MR_C_tx_packets] += sent;
		tx->counters->c[MR_C_tx_bytes] += bytes - bytes_of(&q->wait[at + sent], n - sent);
		q->tail += sent;
		tx->waiting -= sent;
		if (sent < n)
			break;
	}
	if (wait_len(q) != 0 && mr_load_relaxed(&q->link_down) != 0)
		drop_waiting(tx, q, wait_len(q), MR_C_tx_drop_link);
	while (late < wait_len(q) && tx->timeout_tsc != 0 &&
		now - q->wait_tsc[(q->tail + late) & q->mask] >= tx->timeout_tsc)
		late++;
	if (late != 0)
		drop_waiting(tx, q, late, MR_C_tx_drop_stalled);
	return before - wait_len(q);
}

static inline bool has_room(struct mr_tx *tx, struct mr_txq *q, uint64_t now)
{
	return wait_len(q) < q->limit || flush_queue(tx, q, now) != 0;
}

static void put(struct mr_tx *tx, struct mr_txq *q, struct rte_mbuf *m, uint64_t now)
{
	uint32_t at = q->head++ & q->mask;

	q->wait[at] = m;
	q->wait_tsc[at] = now;
	tx->waiting++;
}

/* Sends one packet to every port of a mask; false: a backlog is full, nothing was done. */
static COLD bool send_mask(struct mr_tx *tx, struct rte_mbuf *m, uint32_t mask, uint64_t now)
{
	uint32_t copies = (uint32_t)__builtin_popcount(mask);
	uint32_t known = mask & ((1u << tx->tx_count) - 1);
	uint32_t lost = copies - (uint32_t)__builtin_popcount(known);

	for (uint32_t i = 0; i < tx->tx_count; i++)
		if ((known >> i & 1) != 0 && !has_room(tx, &tx->q[i], now))
			return false;
	if (copies == 0)
		lost = copies = 1;
	tx->counters->c[MR_C_made_packets] += copies - 1;
	tx->counters->c[MR_C_tx_drop_no_port] += lost;
	if (known == 0) {
		free_one(m);
		return true;
	}
	rte_mbuf_refcnt_update(m, (int16_t)(copies - lost - 1));
	for (uint32_t i = 0; i < tx->tx_count; i++)
		if ((known >> i & 1) != 0)
			put(tx, &tx->q[i], m, now);
	return true;
}

static void drop(struct mr_tx *tx, struct rte_mbuf *m, enum mr_counter why)
{
	tx->counters->c[why]++;
	free_one(m);
}

/* Deals with one packet by its result; false: it has to wait for room in a backlog. */
static bool complete_packet(
	struct mr_tx *tx, struct rte_mbuf *m, struct mr_desc_out r, uint64_t now)
{
	if (r.verdict == MR_DROP) {
		if (r.arg >= MR_REASON_COUNT)
			drop(tx, m, MR_C_tx_drop_bad_result);
		else
			drop(tx, m, (enum mr_counter)(MR_C_gpu_drop_window + r.arg));
		return true;
	}
	if (r.verdict > MR_DROP || r.length < MR_FRAME_MIN ||
		(uint32_t)r.head + r.length > tx->room) {
		drop(tx, m, MR_C_tx_drop_bad_result);
		return true;
	}
	if (r.verdict == MR_TX && r.port >= tx->tx_count) {
		drop(tx, m, MR_C_tx_drop_no_port);
		return true;
	}
	if (r.verdict == MR_TX && !has_room(tx, &tx->q[r.port], now))
		return false;
	m->data_off = r.head;
	m->data_len = r.length;
	m->pkt_len = r.length;
	if (r.verdict == MR_TX_MASK)
		return send_mask(tx, m, r.arg, now);
	put(tx, &tx->q[r.port], m, now);
	return true;
}

/* Packet by packet from the cursor; returns how many, and leaves the cursor where it stopped. */
static COLD uint32_t complete_each(struct mr_tx *tx, struct rte_mbuf **m,
	const struct mr_desc_out *out, uint32_t count, uint64_t now)
{
	uint32_t before = tx->cursor;

	while (tx->cursor < count) {
		if (!complete_packet(tx, m[tx->cursor], out[tx->cursor], now))
			break;
		tx->cursor++;
	}
	for (uint32_t i = 0; i < tx->tx_count; i++)
		if (wait_len(&tx->q[i]) != 0)
			flush_queue(tx, &tx->q[i], now);
	return tx->cursor - before;
}

/* A plain slot in one burst; returns how many, and what the port refused lies at the cursor. */
static inline uint32_t complete_all(
	struct mr_tx *tx, struct rte_mbuf **m, uint32_t count, uint64_t bytes)
{
	uint32_t sent;

	tx->counters->c[MR_C_tx_bytes] += bytes;
	sent = burst(&tx->q[0], m, count);
	tx->counters->c[MR_C_tx_packets] += sent;
	if (MR_UNLIKELY(sent != count)) {
		tx->counters->c[MR_C_tx_bytes] -= bytes_of(m + sent, count - sent);
		tx->cursor = sent;
	}
	return sent;
}

static COLD uint32_t flush_all(struct mr_tx *tx, uint64_t now)
{
	uint32_t moved = 0;

	for (uint32_t i = 0; i < tx->tx_count; i++)
		if (wait_len(&tx->q[i]) != 0)
			moved += flush_queue(tx, &tx->q[i], now);
	return moved;
}

uint32_t mr_tx_poll(struct mr_tx *tx, uint64_t now)
{
	struct mr_ring *ring = tx->ring;
	uint32_t moved = 0;

	if (MR_UNLIKELY(tx->waiting != 0))
		moved = flush_all(tx, now);
	for (uint32_t k = 0; k < MR_TX_SLOTS; k++) {
		uint32_t index = ring->tail & ring->mask, sent = 0, count;
		const struct mr_slot_out *out = mr_ring_take(ring);
		struct mr_ring_note *slot;
		struct rte_mbuf **m;

		if (out == NULL)
			break;
		slot = &tx->slots[index];
		count = slot->count;
		m = &tx->mbufs[(size_t)index * ring->batch];
		if (MR_LIKELY(out->plain != 0 && tx->cursor == 0 && wait_len(&tx->q[0]) == 0))
			sent = complete_all(tx, m, count, slot->bytes);
		if (MR_UNLIKELY(sent != count)) {
			sent += complete_each(tx, m, mr_slot_desc_out(out), count, now);
			if (tx->cursor != count)
				return moved + sent;
			tx->cursor = 0;
		}
		moved += sent;
		mr_hist_add(tx->latency,
			((now - slot->opened_tsc) * tx->ns_per_tsc) >> MR_TX_TSC_SHIFT, count);
		mr_ring_release(ring);
	}
	return moved;
}
