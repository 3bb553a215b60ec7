/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_tx_poll.h"

/* Out of line, so that the frames' way stays short. */
#define COLD __attribute__((noinline, cold))

COLD uint32_t mr_tx_guarded_burst(struct mr_txq *q, struct rte_mbuf **m, uint32_t n)
{
	uint32_t sent;

	mr_guard_open(q->guard);
	sent = rte_eth_tx_burst(q->port, q->queue, m, (uint16_t)n);
	mr_guard_close(q->guard);
	return sent;
}

static inline void free_one(struct rte_mbuf *m)
{
	mr_sync_leave(m);
	rte_pktmbuf_free_bulk(&m, 1);
}

/*
 * The mbuf belongs to the driver once it is sent, so lengths are added up before
 * and what was refused is taken off again.
 */
COLD uint64_t mr_tx_bytes_of(struct rte_mbuf *const *m, uint32_t n)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += m[i]->pkt_len;
	return bytes;
}

COLD void mr_tx_join(struct rte_mbuf *const *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct rte_mbuf *rest = m[i]->next;

		if (rest == NULL)
			continue;
		m[i]->nb_segs = 2;
		m[i]->pkt_len = (uint32_t)m[i]->data_len + rest->data_len;
	}
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
	uint32_t before = mr_tx_wait_len(q), late = 0;

	while (mr_tx_wait_len(q) != 0) {
		uint32_t at = q->tail & q->mask;
		uint32_t n = mr_tx_wait_len(q), sent;
		uint64_t bytes;

		if (n > q->mask + 1 - at)
			n = q->mask + 1 - at;
		bytes = mr_tx_bytes_of(&q->wait[at], n);
		sent = mr_tx_burst(q, &q->wait[at], n);
		tx->counters->c[MR_C_tx_packets] += sent;
		tx->counters->c[MR_C_tx_bytes] +=
			bytes - mr_tx_bytes_of(&q->wait[at + sent], n - sent);
		q->tail += sent;
		tx->waiting -= sent;
		if (sent < n)
			break;
	}
	if (mr_tx_wait_len(q) != 0 && mr_load_relaxed(&q->link_down) != 0)
		drop_waiting(tx, q, mr_tx_wait_len(q), MR_C_tx_drop_link);
	while (late < mr_tx_wait_len(q) && tx->timeout_tsc != 0 &&
		now - q->wait_tsc[(q->tail + late) & q->mask] >= tx->timeout_tsc)
		late++;
	if (late != 0)
		drop_waiting(tx, q, late, MR_C_tx_drop_stalled);
	return before - mr_tx_wait_len(q);
}

static inline bool has_room(struct mr_tx *tx, struct mr_txq *q, uint64_t now)
{
	return mr_tx_wait_len(q) < q->limit || flush_queue(tx, q, now) != 0;
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
	/* Drivers free segments each by its own count. */
	for (struct rte_mbuf *part = m; part != NULL; part = tx->split ? part->next : NULL)
		rte_mbuf_refcnt_update(part, (int16_t)(copies - lost - 1));
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
	if (MR_UNLIKELY(tx->split))
		mr_tx_join(&m, 1);
	if (r.verdict == MR_TX_MASK)
		return send_mask(tx, m, r.arg, now);
	put(tx, &tx->q[r.port], m, now);
	return true;
}

static COLD uint32_t flush_all(struct mr_tx *tx, uint64_t now)
{
	uint32_t moved = 0;

	for (uint32_t i = 0; i < tx->tx_count; i++)
		if (mr_tx_wait_len(&tx->q[i]) != 0)
			moved += flush_queue(tx, &tx->q[i], now);
	return moved;
}

/* A slot of blank buffers is done. Its time is no packet's latency. */
static COLD void finish_tick(struct mr_tx *tx, struct mr_ring_note *slot)
{
	const struct mr_desc_out *out = mr_slot_desc_out(slot->out);

	tx->tick_filled = true;
	for (uint32_t i = 0; i < slot->count; i++)
		tx->tick_filled &= out[i].verdict != MR_DROP || out[i].arg != MR_REASON_blank;
	tx->last_tick_back = (slot->in->flags & MR_SLOT_LAST) != 0;
	tx->tick_out = false;
	slot->in->flags = 0;
	slot->tick = false;
	slot->count = 0;
	tx->oldest = slot->next;
	mr_ring_release(tx->ring);
}

uint32_t mr_tx_poll_each(struct mr_tx *tx, uint64_t now)
{
	struct mr_ring_note *slot = tx->oldest;
	const struct mr_desc_out *out = mr_slot_desc_out(slot->out);
	uint32_t before = tx->cursor, moved;

	while (tx->cursor < slot->count &&
		complete_packet(tx, slot->mbufs[tx->cursor], out[tx->cursor], now))
		tx->cursor++;
	flush_all(tx, now);
	moved = tx->cursor - before;
	if (tx->cursor == slot->count) {
		tx->cursor = 0;
		if (MR_UNLIKELY(slot->tick))
			finish_tick(tx, slot);
		else
			mr_tx_finish(tx, slot, slot->count, now);
	}
	return moved;
}

COLD uint32_t mr_tx_poll_held(struct mr_tx *tx, uint64_t now)
{
	uint32_t moved = tx->waiting != 0 ? flush_all(tx, now) : 0;

	return mr_ring_done(tx->ring, tx->oldest->out) ? moved + mr_tx_poll_each(tx, now) : moved;
}
