/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_staged.h"

#include "mr_relay_slot.h"

#include <string.h>

/* The buffer of the i-th packet of a slot, in host memory. */
static uint8_t *buffer(const struct mr_staged *s, uint32_t seq, uint32_t i)
{
	return s->copier.host + (seq & s->copier.mask) * s->copier.slot_bytes +
		(size_t)i * s->relay.lane->tx.room;
}

/* The position of the same on the GPU. */
static uint32_t position(const struct mr_staged *s, uint32_t seq, uint32_t i)
{
	return ((seq & s->copier.mask) * s->relay.kernel.batch + i) *
		(s->relay.lane->tx.room / MR_UNIT);
}

/* Copies a slot's frames to its buffer; returns how much of the buffer they take. */
static size_t gather(struct mr_staged *s, uint32_t seq)
{
	const struct mr_ring_note *note = mr_relay_note(&s->relay, seq);
	struct mr_desc_in *d = mr_slot_desc_in(mr_ring_in(&s->relay.kernel, seq));

	for (uint32_t i = 0; i < note->count; i++) {
		memcpy(buffer(s, seq, i) + d[i].head,
			rte_pktmbuf_mtod(note->mbufs[i], const uint8_t *), d[i].length);
		d[i].position = position(s, seq, i);
	}
	s->relay.lane->counters.c[MR_C_host_bytes_copied] += note->bytes;
	if (note->count == 0)
		return 0;
	return (size_t)(note->count - 1) * s->relay.lane->tx.room + d[note->count - 1].head +
		d[note->count - 1].length;
}

static uint32_t give(struct mr_staged *s)
{
	struct mr_relay *r = &s->relay;
	uint32_t seq = r->kernel.head, count;
	size_t bytes;

	mr_relay_describe(r);
	count = mr_relay_note(r, seq)->count;
	if (s->scatters && r->kernel.tx_positions) {
		uint32_t *to = mr_ring_tx_position(&r->kernel, mr_ring_in(&r->kernel, seq));

		for (uint32_t i = 0; i < count; i++)
			to[i] = position(s, seq, i);
	}
	if (!s->gathers) {
		mr_ring_give(&r->kernel, count, (uint8_t)r->lane->rx.port);
		return count;
	}
	bytes = gather(s, seq);
	mr_ring_give_unready(&r->kernel, count, (uint8_t)r->lane->rx.port);
	s->failed = mr_gpu_copier_in(&s->copier, seq, bytes) != 0;
	return count;
}

/* Whether the i-th frame leaves within its buffer; what does not, tx drops by name. */
static bool leaves(const struct mr_staged *s, const struct mr_desc_out *d)
{
	return d->verdict != MR_DROP && (uint32_t)d->head + d->length <= s->relay.lane->tx.room;
}

/* Queues the way back of a slot that the kernel did. */
static void fetch(struct mr_staged *s)
{
	const struct mr_desc_out *d = mr_slot_desc_out(mr_ring_out(&s->relay.kernel, s->back));
	uint32_t count = mr_relay_note(&s->relay, s->back)->count;
	size_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		if (leaves(s, &d[i]))
			bytes = (size_t)i * s->relay.lane->tx.room + d[i].head + d[i].length;
	s->failed = mr_gpu_copier_out(&s->copier, s->back, bytes) != 0;
	s->back++;
}

/* Copies a slot's frames from its buffer to the mbufs that they leave in. */
static void scatter(struct mr_staged *s, uint32_t seq)
{
	const struct mr_ring_note *note = mr_relay_note(&s->relay, seq);
	const struct mr_desc_out *d = mr_slot_desc_out(note->out);
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < note->count; i++) {
		if (!leaves(s, &d[i]))
			continue;
		memcpy((uint8_t *)note->mbufs[i]->buf_addr + d[i].head,
			buffer(s, seq, i) + d[i].head, d[i].length);
		bytes += d[i].length;
	}
	s->relay.lane->counters.c[MR_C_host_bytes_copied] += bytes;
}

/* The oldest slot that the device has, back to tx if all of it is done. */
static uint32_t take(struct mr_staged *s)
{
	struct mr_relay *r = &s->relay;
	uint32_t seq = r->kernel.tail, count = mr_relay_note(r, seq)->count;

	if (s->scatters) {
		if (s->back == seq ||
			mr_load_acquire(&s->copier.copied[seq & s->copier.mask]) != seq + 1)
			return 0;
	} else if (mr_ring_take(&r->kernel) == NULL) {
		return 0;
	}
	mr_relay_results(r);
	if (s->scatters)
		scatter(s, seq);
	mr_relay_return(r);
	return count;
}

uint32_t mr_staged_moves(struct mr_staged *s)
{
	struct mr_relay *r = &s->relay;
	uint32_t moved = 0;

	while (!s->failed && mr_relay_waits(r))
		moved += give(s);
	if (s->scatters && !s->failed && s->back != r->kernel.head &&
		mr_load_acquire(&mr_ring_out(&r->kernel, s->back)->done) == s->back + 1)
		fetch(s);
	return moved + take(s);
}

void mr_staged_loop(struct mr_staged *s)
{
	struct mr_lane *lane = s->relay.lane;
	struct mr_lane_clock clock;

	s->back = s->relay.kernel.tail;
	mr_lane_begin(lane, &clock);
	while (lane->state != MR_LANE_HALT) {
		uint64_t then = clock.now;

		mr_lane_books(lane, &clock, mr_staged_moves(s) + mr_lane_moves(lane, then));
	}
	mr_lane_end(lane);
}
