/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any packets of one stream through its books: whatever a sender says, they add up, and no gap
 * lies outside of what was seen.
 *
 * Input: fuzz_seen.h; before the packets window and leap, a byte each.
 *
 * MR_FUZZ_PLANTED says that the queue is twice as long as it is.
 */
#include "fuzz_seen.h"
#include "mr_track.h"

#include <stdlib.h>
#include <string.h>

#define EVENTS 8u
#if defined(MR_FUZZ_PLANTED)
#define MASK (2 * EVENTS - 1)
#else
#define MASK (EVENTS - 1)
#endif

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of the heap, where what lies behind it is nobody's. */
	struct mr_track_event *events = malloc(EVENTS * sizeof(*events));
	struct mr_track_queue queue = {0};
	struct mr_stream st = {0};
	struct mr_books b = {.queue = &queue, .events = events, .events_mask = MASK};
	struct input in = {data, size};
	struct mr_seen s;

	input_begin(&in, &s);
	b.window = 1 + input_take(&in, 1) * 16;
	b.leap = 1 + input_take(&in, 1) * 256;
	while (in.left != 0) {
		const uint32_t what = input_change(&in, &s, 1, 8, 4);
		/* Only IPFIX may have units that nobody knows. */
		const int known = s.track != MR_TRACK_COUNT || (what & 128) == 0;

		b.now_ns += what;
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
