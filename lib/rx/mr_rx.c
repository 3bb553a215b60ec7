/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_rx_poll.h"

/* Out of line, so that the frames' way stays short. */
#define COLD __attribute__((noinline, cold))

/* The second part of a split frame that describe took for one in a single segment, or NULL. */
static const struct rte_mbuf *rest_of(const struct mr_rx *rx, const struct rte_mbuf *m)
{
	return rx->describe == mr_rx_describe_split && m->nb_segs == 1 ? m->next : NULL;
}

/* Something in the burst is not as it should be: keep the good, free and count the rest. */
static COLD uint32_t describe_each(struct mr_rx *rx, struct mr_ring_note *slot, uint32_t n)
{
	uint64_t *desc = mr_rx_desc(slot->in, slot->count);
	struct rte_mbuf **m = slot->mbufs + slot->count;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t offset = (uint64_t)(uintptr_t)m[i]->buf_addr - rx->window.region;
		uint64_t bytes = rx->describe(&rx->window, &m[i], 1, &desc[kept]);

		const struct rte_mbuf *rest = rest_of(rx, m[i]);

		rx->counters->c[MR_C_rx_bytes] +=
			m[i]->pkt_len + (rest != NULL ? rest->data_len : 0);
		if (bytes != MR_RX_DESCRIBE_BAD) {
			slot->bytes += bytes;
			m[kept++] = m[i];
			continue;
		}
		if (m[i]->nb_segs != 1)
			rx->counters->c[MR_C_rx_drop_oversize]++;
		else if (offset > rx->window.limit || offset % MR_UNIT != 0)
			rx->counters->c[MR_C_rx_drop_foreign]++;
		else if (rte_mbuf_refcnt_read(m[i]) != 1 ||
			(rest != NULL && rte_mbuf_refcnt_read(rest) != 1))
			rx->counters->c[MR_C_rx_drop_shared]++;
		else
			rx->counters->c[MR_C_rx_drop_oversize]++;
		mr_sync_leave(m[i]);
		rte_pktmbuf_free_bulk(&m[i], 1);
	}
	return kept;
}

COLD uint32_t mr_rx_guarded_burst(struct mr_rx *rx, struct rte_mbuf **m, uint32_t n)
{
	uint32_t got;

	mr_guard_open(rx->guard);
	got = rte_eth_rx_burst(rx->port, rx->queue, m, (uint16_t)n);
	mr_guard_close(rx->guard);
	return got;
}

/* No free slot: leaves the frames with the port, or takes and loses them by name. */
static COLD uint32_t full(struct mr_rx *rx)
{
	struct rte_mbuf *m[MR_SHED_BURST];
	uint32_t n;

	rx->counters->c[MR_C_ring_full]++;
	if (!rx->shed)
		return 0;
	n = mr_rx_burst(rx, m, MR_SHED_BURST);
	for (uint32_t i = 0; i < n; i++) {
		rx->counters->c[MR_C_rx_bytes] += m[i]->pkt_len;
		mr_sync_leave(m[i]);
	}
	rx->counters->c[MR_C_rx_packets] += n;
	rx->counters->c[MR_C_rx_drop_shed] += n;
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

void mr_rx_give_by_call(struct mr_rx *rx, uint32_t count)
{
	/* A kernel that saw this slot could read what was in its buffers before. */
	if (rx->flush != NULL && rx->flush(rx->flush_arg) != 0) {
		mr_ring_withhold(rx->ring);
		return;
	}
	mr_ring_give(rx->ring, count, (uint8_t)rx->port);
}

/* A slot that is not full waits while the lane's workers are busy, up to its timeout. */
static bool has_to_wait(struct mr_rx *rx, const struct mr_ring_note *slot, uint64_t now)
{
	if (mr_ring_outstanding(rx->ring) < rx->workers)
		return false;
	if (now - slot->opened_tsc < rx->timeout_tsc)
		return true;
	rx->counters->c[MR_C_slots_timeout]++;
	return false;
}

uint32_t mr_rx_take_up(struct mr_rx *rx, uint32_t n, uint64_t now)
{
	struct mr_ring_note *slot = rx->open;

	if (n != 0) {
		uint64_t bytes = rx->describe(&rx->window, slot->mbufs + slot->count, n,
			mr_rx_desc(slot->in, slot->count));

		rx->counters->c[MR_C_rx_packets] += n;
		if (slot->count == 0) {
			slot->opened_tsc = now;
			slot->bytes = 0;
		}
		if (MR_UNLIKELY(bytes == MR_RX_DESCRIBE_BAD)) {
			slot->count += describe_each(rx, slot, n);
		} else {
			slot->bytes += bytes;
			rx->counters->c[MR_C_rx_bytes] += bytes;
			slot->count += n;
		}
	}
	if (slot->count == rx->batch)
		rx->counters->c[MR_C_slots_full]++;
	else if (slot->count == 0 || has_to_wait(rx, slot, now))
		return n;
	mr_rx_give(rx, slot, slot->count);
	return n;
}

uint32_t mr_rx_poll_open(struct mr_rx *rx, uint64_t now)
{
	const struct mr_ring_note *slot = rx->open;
	uint32_t n;

	if (mr_ring_full(rx->ring))
		return full(rx);
	n = mr_rx_burst(rx, slot->mbufs + slot->count, rx->batch - slot->count);
	return mr_rx_take_up(rx, n, now);
}

COLD bool mr_rx_tick(struct mr_rx *rx, struct rte_mempool *pool, uint32_t flags, uint64_t now)
{
	const uint32_t n = rx->batch < MR_TICK_BUFFERS ? rx->batch : MR_TICK_BUFFERS;
	struct rte_mbuf *blank[MR_TICK_BUFFERS];
	struct mr_ring_note *slot;
	struct mr_desc_in *d;

	/* The open slot goes first, if it holds a packet, so that two are needed. */
	if (mr_ring_outstanding(rx->ring) + (mr_rx_fill(rx) != 0) > rx->ring->mask ||
		rte_mempool_get_bulk(pool, (void **)blank, n) != 0)
		return false;
	mr_rx_flush(rx);
	slot = rx->open;
	d = mr_slot_desc_in(slot->in);
	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *m = blank[i];

		mr_sync_enter(m);
		rte_pktmbuf_reset(m);
		slot->mbufs[i] = m;
		d[i].position = (uint32_t)(((uint64_t)(uintptr_t)m->buf_addr - rx->window.region) /
			MR_UNIT);
		d[i].length = 0;
		d[i].head = m->data_off;
	}
	rx->counters->c[MR_C_made_packets] += n;
	slot->in->flags = (uint8_t)flags;
	slot->tick = true;
	slot->opened_tsc = now;
	slot->bytes = 0;
	mr_rx_give(rx, slot, n);
	return true;
}

void mr_rx_flush(struct mr_rx *rx)
{
	if (mr_rx_fill(rx) != 0)
		mr_rx_give(rx, rx->open, rx->open->count);
}
