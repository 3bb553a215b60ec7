/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any packets of one stream through its books: whatever a sender says, they add up, and no gap
 * lies outside of what was seen.
 *
 * Input: how loss is found, modulus, window, leap (a byte each); then a byte of what changes, and
 * the bytes of it, for each packet.
 *
 * MR_FUZZ_PLANTED says that the queue is twice as long as it is.
 */
#include "mr_track.h"

#include <stdlib.h>
#include <string.h>

#define EVENTS 8u
#if defined(MR_FUZZ_PLANTED)
#define MASK (2 * EVENTS - 1)
#else
#define MASK (EVENTS - 1)
#endif

struct input {
	const uint8_t *at;
	size_t left;
};

static uint64_t take(struct input *in, uint32_t bytes)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < bytes && in->left != 0; i++, in->left--)
		v |= (uint64_t)*in->at++ << 8 * i;
	return v;
}

static void check_span(const struct mr_track_span *s)
{
	uint64_t at = s->floor;

	if (s->gaps > MR_TRACK_GAPS)
		abort();
	for (uint32_t i = 0; i < s->gaps; i++) {
		if (s->gap[i].units == 0 || (int64_t)(s->gap[i].start - at) < 0)
			abort();
		at = s->gap[i].start + s->gap[i].units;
	}
	if ((int64_t)(s->next - at) < 0)
		abort();
}

static void check(const struct mr_stream *st, const struct mr_track_queue *q)
{
	if (st->received != st->placed + st->duplicate + st->late + st->unknown + st->holds)
		abort();
	if (st->reordered > st->placed || q->head - q->tail > EVENTS)
		abort();
	if (st->track == MR_TRACK_HEAP)
		for (uint32_t i = 0; i < MR_TRACK_HEAPS; i++)
			check_span(&st->u.h.heap[i].span);
	else
		check_span(&st->u.span);
}

/* The next packet: what the one before was, but for what the input changes. */
static int change(struct input *in, struct mr_seen *s, struct mr_books *b, uint64_t modulus)
{
	const uint32_t what = (uint32_t)take(in, 1);

	s->seq += (what & 1) != 0 ? (uint64_t)(int8_t)take(in, 1) : s->units;
	if ((what & 2) != 0)
		s->seq = take(in, 8);
	if (modulus != 0)
		s->seq %= modulus;
	s->time_ps += (what & 4) != 0 ? take(in, 8) : 1000;
	if ((what & 8) != 0)
		s->time_s += (uint64_t)(int32_t)take(in, 4);
	if ((what & 16) != 0)
		s->units = s->track == MR_TRACK_COUNT || s->track == MR_TRACK_HEAP ? take(in, 4)
										   : s->units;
	if ((what & 32) != 0) {
		s->heap_at = take(in, 6);
		s->heap_bytes = take(in, 6);
		if (s->heap_bytes != 0 && s->heap_at + s->units > s->heap_bytes)
			s->heap_bytes = s->heap_at + s->units;
	}
	if ((what & 64) != 0) {
		s->uptime_ms = take(in, 4);
		s->flags ^= (uint32_t)take(in, 1) & 15;
	}
	b->now_ns += what;
	/* Only IPFIX may have units that nobody knows. */
	return s->track != MR_TRACK_COUNT || (what & 128) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t moduli[] = {
		0, 2, 16, 100, 256, 65536, 1u << 24, 1ull << 32, 1ull << 48};
	/* Of the heap, where what lies behind it is nobody's. */
	struct mr_track_event *events = malloc(EVENTS * sizeof(*events));
	struct mr_track_queue queue = {0};
	struct mr_stream st = {0};
	struct mr_seen s = {.state = MR_SEEN_OK, .units = 1, .flags = MR_SEEN_TIME};
	struct mr_books b = {.queue = &queue, .events = events, .events_mask = MASK};
	struct input in = {data, size};

	s.track = (uint32_t)take(&in, 1) % 4;
	s.modulus = moduli[take(&in, 1) % (sizeof(moduli) / sizeof(moduli[0]))];
	/* What the formats of these have. */
	if (s.track == MR_TRACK_CLOCK)
		s.modulus = 16;
	else if (s.track == MR_TRACK_SECOND)
		s.modulus = 1u << 24;
	b.window = 1 + take(&in, 1) * 16;
	b.leap = 1 + take(&in, 1) * 256;
	while (in.left != 0) {
		const int known = change(&in, &s, &b, s.modulus);

		st.received++;
		st.unknown += !known;
		(void)mr_track_packet(&b, &st, &s, s.units, known);
		check(&st, &queue);
		/* Nobody reads them here, and yet they are to be written. */
		__asm__ volatile("" : : "r"(events) : "memory");
		if (b.now_ns % 16 == 0)
			mr_track_age(&b, &st, 100);
		queue.tail = b.now_ns % 8 == 0 ? queue.head : queue.tail;
	}
	mr_track_age(&b, &st, 0);
	check(&st, &queue);
	if (mr_track_open(&st) != 0 || st.holds != 0)
		abort();
	free(events);
	return 0;
}
