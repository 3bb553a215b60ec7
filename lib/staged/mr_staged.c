/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_staged.h"

#include "mr_relay_slot.h"

#include <string.h>

/* A part of a slot's buffer: what a copy moves. */
struct span {
	size_t from, to;
};

/* Slot number seq's buffer in host memory, and its position on the GPU. */
static uint8_t *buffer(const struct mr_staged *s, uint32_t seq)
{
	return s->copier.host + (seq & s->copier.mask) * s->copier.slot_bytes;
}

static uint32_t position(const struct mr_staged *s, uint32_t seq)
{
	return (uint32_t)((seq & s->copier.mask) * (s->copier.slot_bytes / MR_UNIT));
}

/*
 * Where the i-th frame's buffer begins, in MR_UNIT from the slot's. *at: how far the frames
 * before it reach, in whole units, since kernels copy 16 bytes at a time. That is never more
 * than i x room, so all fit.
 */
static uint32_t place(const struct mr_staged *s, uint32_t i, const struct mr_desc_in *d, size_t *at)
{
	size_t units = *at > d->head ? (*at - d->head + MR_UNIT - 1) / MR_UNIT : 0;

	if (!s->packed)
		return i * (s->relay.lane->tx.room / MR_UNIT);
	*at = MR_ALIGN_UP(units * MR_UNIT + d->head + d->length, MR_UNIT);
	return (uint32_t)units;
}

/* The bytes before the i-th frame's buffer, as the kernel was told. */
static size_t offset(const struct mr_staged *s, uint32_t seq, uint32_t i)
{
	struct mr_slot_in *in = mr_ring_in(&s->relay.kernel, seq);
	uint32_t at = s->relay.kernel.tx_positions ? mr_ring_tx_position(&s->relay.kernel, in)[i]
						   : mr_slot_desc_in(in)[i].position;

	return (size_t)(at - position(s, seq)) * MR_UNIT;
}

static void widen(struct span *span, size_t at, uint32_t length)
{
	if (span->to == 0)
		span->from = at;
	span->to = at + length;
}

/* Copies a slot's frames to its buffer; returns the part that they take. */
static struct span gather(struct mr_staged *s, uint32_t seq)
{
	const struct mr_ring_note *note = mr_relay_note(&s->relay, seq);
	struct mr_desc_in *d = mr_slot_desc_in(mr_ring_in(&s->relay.kernel, seq));
	struct span span = {0};
	size_t at = 0;

	for (uint32_t i = 0; i < note->count; i++) {
		uint32_t units = place(s, i, &d[i], &at);
		size_t from = (size_t)units * MR_UNIT + d[i].head;

		memcpy(buffer(s, seq) + from, rte_pktmbuf_mtod(note->mbufs[i], const uint8_t *),
			d[i].length);
		d[i].position = position(s, seq) + units;
		widen(&span, from, d[i].length);
	}
	s->relay.lane->counters.c[MR_C_host_bytes_copied] += note->bytes;
	return span;
}

/* Names the places in the slot's buffer to which the kernel is to copy what leaves. */
static void name_places(struct mr_staged *s, uint32_t seq, uint32_t count)
{
	struct mr_slot_in *in = mr_ring_in(&s->relay.kernel, seq);
	const struct mr_desc_in *d = mr_slot_desc_in(in);
	uint32_t *to = mr_ring_tx_position(&s->relay.kernel, in);
	size_t at = 0;

	for (uint32_t i = 0; i < count; i++)
		to[i] = position(s, seq) + place(s, i, &d[i], &at);
}

static uint32_t give(struct mr_staged *s)
{
	struct mr_relay *r = &s->relay;
	uint32_t seq = r->kernel.head, count;
	struct span span;

	mr_relay_describe(r);
	count = mr_relay_note(r, seq)->count;
	if (s->scatters && r->kernel.tx_positions)
		name_places(s, seq, count);
	if (!s->gathers) {
		mr_ring_give(&r->kernel, count, (uint8_t)r->lane->rx.port);
		return count;
	}
	span = gather(s, seq);
	mr_ring_give_unready(&r->kernel, count, (uint8_t)r->lane->rx.port);
	s->relay.lane->counters.c[MR_C_bus_bytes_copied] += span.to - span.from;
	s->failed = mr_gpu_copier_in(&s->copier, seq, span.from, span.to - span.from) != 0;
	return count;
}

/* Whether a result lies where its frame may: packed, what is beside it is another's. */
static bool lies_within(
	const struct mr_staged *s, const struct mr_desc_in *in, const struct mr_desc_out *d)
{
	uint32_t end = (uint32_t)d->head + d->length;

	return s->packed ? d->head >= in->head && end <= (uint32_t)in->head + in->length
			 : end <= s->relay.lane->tx.room;
}

/* Queues the way back of a slot that the kernel did. */
static void fetch(struct mr_staged *s)
{
	const struct mr_desc_out *d = mr_slot_desc_out(mr_ring_out(&s->relay.kernel, s->back));
	const struct mr_desc_in *in = mr_slot_desc_in(mr_ring_in(&s->relay.kernel, s->back));
	uint32_t count = mr_relay_note(&s->relay, s->back)->count;
	struct span span = {0};

	for (uint32_t i = 0; i < count; i++)
		if (d[i].verdict != MR_DROP && lies_within(s, &in[i], &d[i]))
			widen(&span, offset(s, s->back, i) + d[i].head, d[i].length);
	s->relay.lane->counters.c[MR_C_bus_bytes_copied] += span.to - span.from;
	s->failed = mr_gpu_copier_out(&s->copier, s->back, span.from, span.to - span.from) != 0;
	s->back++;
}

/* Copies a slot's frames from its buffer to the mbufs that they leave in. */
static void scatter(struct mr_staged *s, uint32_t seq)
{
	const struct mr_ring_note *note = mr_relay_note(&s->relay, seq);
	const struct mr_desc_in *in = mr_slot_desc_in(mr_ring_in(&s->relay.kernel, seq));
	const struct mr_desc_out *d = mr_slot_desc_out(note->out);
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < note->count; i++) {
		if (d[i].verdict == MR_DROP || !lies_within(s, &in[i], &d[i]))
			continue;
		memcpy((uint8_t *)note->mbufs[i]->buf_addr + d[i].head,
			buffer(s, seq) + offset(s, seq, i) + d[i].head, d[i].length);
		bytes += d[i].length;
	}
	s->relay.lane->counters.c[MR_C_host_bytes_copied] += bytes;
}

/* What lies beside its frame becomes a result that cannot be, which tx drops by name. */
static void refuse_beside(struct mr_staged *s, uint32_t seq)
{
	const struct mr_ring_note *note = mr_relay_note(&s->relay, seq);
	const struct mr_desc_in *in = mr_slot_desc_in(mr_ring_in(&s->relay.kernel, seq));
	/* The lane's ring is ours to write, as the kernel's is the kernel's. */
	struct mr_desc_out *d = (struct mr_desc_out *)(uintptr_t)mr_slot_desc_out(note->out);

	for (uint32_t i = 0; i < note->count; i++)
		if (!lies_within(s, &in[i], &d[i]))
			d[i].length = UINT16_MAX;
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
	if (s->packed && mr_relay_note(r, seq)->out->plain == 0)
		refuse_beside(s, seq);
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

		mr_lane_books(lane, &clock, mr_staged_moves(s) + mr_relay_lane_moves(lane, then));
	}
	mr_lane_end(lane, &clock);
}
