/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any frames at the generator's sink: raw ones, and ones with a stamp that is made up and
 * a CRC that holds, since chance finds none. Every frame is in exactly one count, and no
 * stream counts what was not sent.
 *
 * Input: packets issued (4), streams, then records: a byte with its lowest bit set and a
 * stamp (15 bytes), or a length and as many bytes of a frame.
 */
#include "mr_gen_sink.h"

#include <stdlib.h>
#include <string.h>

#define START 1000000u

static const struct mr_gen_headers headers = {.src_port = 49152, .dst_port = 9};

/* Copies into memory of its exact length, so that AddressSanitizer sees a byte too far. */
static void give(struct mr_gen_sink *s, const uint8_t *data, uint32_t bytes, uint64_t now)
{
	uint8_t *exact = malloc(bytes != 0 ? bytes : 1);

	if (exact == NULL)
		abort();
	if (bytes != 0)
		memcpy(exact, data, bytes);
	mr_gen_sink_take(s, exact, bytes, now);
	free(exact);
}

static uint32_t number(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static void judge(const struct mr_gen_sink *s, uint64_t given, uint64_t issued)
{
	uint64_t seen = s->corrupted + s->stray + s->foreign, received = 0;

	for (uint32_t i = 0; i < s->frame->streams; i++) {
		const struct mr_gen_stream *st = &s->stream[i];

		if (st->next > mr_gen_issued(issued, s->frame->streams, i) ||
			st->c.received > st->next || st->c.reordered > st->c.received)
			abort();
		seen += st->c.received + st->c.duplicates + st->c.stale;
		received += st->c.received;
	}
	if (seen != given || received != s->latency.count)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mr_gen_sink s;
	struct mr_gen_frame f;
	uint64_t given = 0, issued;
	const uint8_t *end = data + size;

	if (size < 5)
		return 0;
	issued = number(data);
	mr_gen_frame_init(&f, &headers, 1 + data[4] % 4u);
	if (mr_gen_sink_init(&s, &f, &issued, NULL) != 0)
		abort();
	s.start_ns = START;
	for (data += 5; data < end; given++) {
		uint32_t kind = *data++;

		if ((kind & 1) != 0 && end - data >= 15) {
			const struct mr_gen_stamp stamp = {.run = data[0] & 1,
				.trial = data[1] & 1,
				.stream = data[2],
				.sequence = number(data + 3),
				.time_ns = number(data + 7)};
			uint8_t frame[60];

			mr_gen_frame_write(&f, &stamp, sizeof(frame), frame);
			give(&s, frame, sizeof(frame), START + number(data + 11));
			data += 15;
		} else {
			uint32_t n = kind < (size_t)(end - data) ? kind : (uint32_t)(end - data);

			give(&s, data, n, START);
			data += n;
		}
	}
	judge(&s, given, issued);
	mr_gen_sink_fini(&s);
	return 0;
}
