/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_relay_slot.h"

#include <string.h>

/* Gives each frame of a slot a buffer to leave in; frees and counts those that get none. */
static void take_buffers(struct mr_relay *r, struct mr_ring_note *note, struct rte_mbuf **m)
{
	uint32_t got = 0;

	if (rte_mempool_get_bulk(r->tx_pool, (void **)m, note->count) != 0) {
		while (got < note->count && (m[got] = rte_mbuf_raw_alloc(r->tx_pool)) != NULL)
			got++;
		for (uint32_t i = got; i < note->count; i++) {
			note->bytes -= note->mbufs[i]->data_len;
			mr_sync_leave(note->mbufs[i]);
		}
		rte_pktmbuf_free_bulk(note->mbufs + got, note->count - got);
		r->lane->counters.c[MR_C_tx_drop_no_buffer] += note->count - got;
		note->count = got;
	}
	for (uint32_t i = 0; i < note->count; i++) {
		mr_sync_enter(m[i]);
		rte_pktmbuf_reset(m[i]);
	}
}

void mr_relay_describe(struct mr_relay *r)
{
	uint32_t seq = r->kernel.head;
	struct mr_ring_note *note = mr_relay_note(r, seq);
	struct rte_mbuf **m;
	uint32_t *to;

	if (r->tx_pool != NULL) {
		m = mr_relay_tx_mbufs(r, seq);
		to = mr_ring_tx_position(&r->kernel, mr_ring_in(&r->kernel, seq));
		take_buffers(r, note, m);
		for (uint32_t i = 0; i < note->count; i++)
			to[i] = (uint32_t)(((uint64_t)(uintptr_t)m[i]->buf_addr - r->tx_region) /
				MR_UNIT);
	}
	mr_ring_in(&r->kernel, seq)->flags = note->in->flags;
	memcpy(mr_slot_desc_in(mr_ring_in(&r->kernel, seq)), mr_slot_desc_in(note->in),
		note->count * sizeof(struct mr_desc_in));
}

/* The buffers that frames leave in, in the place of those that they arrived in. */
static void exchange(struct mr_relay *r, struct mr_ring_note *note, uint32_t seq)
{
	const struct mr_desc_in *in = mr_slot_desc_in(mr_ring_in(&r->kernel, seq));
	struct rte_mbuf **m = mr_relay_tx_mbufs(r, seq);

	for (uint32_t i = 0; i < note->count; i++) {
		/* What of a frame changed, tx takes from the verdict when it has checked it. */
		m[i]->data_off = in[i].head;
		m[i]->data_len = in[i].length;
		m[i]->pkt_len = in[i].length;
		mr_sync_leave(note->mbufs[i]);
	}
	rte_pktmbuf_free_bulk(note->mbufs, note->count);
	memcpy(note->mbufs, m, note->count * sizeof(struct rte_mbuf *));
}

/* Of the frames that the kernel copied, those that leave. */
static uint64_t copied_bytes(const struct mr_desc_out *d, uint32_t count)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes += d[i].verdict != MR_DROP ? d[i].length : 0;
	return bytes;
}

void mr_relay_results(struct mr_relay *r)
{
	uint32_t seq = r->kernel.tail;
	struct mr_ring_note *note = mr_relay_note(r, seq);
	const struct mr_slot_out *from = mr_ring_out(&r->kernel, seq);
	/* The lane's ring is the relay's to write, as the kernel's is the kernel's. */
	struct mr_slot_out *to = (struct mr_slot_out *)(uintptr_t)note->out;

	to->plain = from->plain;
	memcpy(to + 1, from + 1, note->count * sizeof(struct mr_desc_out));
	if (r->kernel.tx_positions)
		r->lane->counters.c[MR_C_gpu_bytes_copied] +=
			copied_bytes(mr_slot_desc_out(to), note->count);
	if (r->tx_pool != NULL)
		exchange(r, note, seq);
}

void mr_relay_return(struct mr_relay *r)
{
	uint32_t seq = r->kernel.tail;
	struct mr_slot_out *to = (struct mr_slot_out *)(uintptr_t)mr_relay_note(r, seq)->out;

	mr_ring_release(&r->kernel);
	mr_store_release(&to->done, seq + 1);
}

uint32_t mr_relay_moves(struct mr_relay *r)
{
	uint32_t moved = 0;

	while (mr_relay_waits(r)) {
		mr_relay_describe(r);
		moved += mr_relay_note(r, r->kernel.head)->count;
		mr_ring_give(&r->kernel, mr_relay_note(r, r->kernel.head)->count,
			(uint8_t)r->lane->rx.port);
	}
	if (mr_ring_take(&r->kernel) != NULL) {
		moved += mr_relay_note(r, r->kernel.tail)->count;
		mr_relay_results(r);
		mr_relay_return(r);
	}
	return moved;
}

void mr_relay_loop(struct mr_relay *r)
{
	struct mr_lane *lane = r->lane;
	struct mr_lane_clock clock;

	mr_lane_begin(lane, &clock);
	while (lane->state != MR_LANE_HALT) {
		uint64_t then = clock.now;

		mr_lane_books(lane, &clock, mr_relay_moves(r) + mr_relay_lane_moves(lane, then));
	}
	mr_lane_end(lane, &clock);
}
