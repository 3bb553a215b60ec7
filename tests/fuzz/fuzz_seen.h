/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fuzzer's input as packets of one stream: how loss is found and the modulus, a byte each; then
 * a byte of what changes, and the bytes of it, for each packet.
 */
#ifndef FUZZ_SEEN_H
#define FUZZ_SEEN_H

#include "mr_format.h"

struct input {
	const uint8_t *at;
	size_t left;
};

/* The next bytes, the first of them the lowest; 0 behind the end. */
static inline uint64_t take(struct input *in, uint32_t bytes)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < bytes && in->left != 0; i++, in->left--)
		v |= (uint64_t)*in->at++ << 8 * i;
	return v;
}

static inline void begin(struct input *in, struct mr_seen *ret_seen)
{
	static const uint64_t moduli[] = {
		0, 2, 16, 100, 256, 65536, 1u << 24, 1ull << 32, 1ull << 48};

	*ret_seen = (struct mr_seen){.state = MR_SEEN_OK, .units = 1, .flags = MR_SEEN_TIME};
	ret_seen->track = (uint32_t)take(in, 1) % 4;
	ret_seen->modulus = moduli[take(in, 1) % (sizeof(moduli) / sizeof(moduli[0]))];
	/* What the formats of these have. */
	if (ret_seen->track == MR_TRACK_CLOCK)
		ret_seen->modulus = 16;
	else if (ret_seen->track == MR_TRACK_SECOND)
		ret_seen->modulus = 1u << 24;
}

/*
 * The next packet: what the one before was, but for what the input changes. Time goes on in steps
 * of `ps`, by 1000 of them or as many as time_bytes say; returns what changed.
 */
static inline uint32_t change(
	struct input *in, struct mr_seen *s, uint64_t ps, uint32_t time_bytes, uint32_t units_bytes)
{
	const uint32_t what = (uint32_t)take(in, 1), sign = 64 - 8 * time_bytes;

	s->seq += (what & 1) != 0 ? (uint64_t)(int8_t)take(in, 1) : s->units;
	if ((what & 2) != 0)
		s->seq = take(in, 8);
	if (s->modulus != 0)
		s->seq %= s->modulus;
	s->time_ps += ps *
		((what & 4) != 0 ? (uint64_t)((int64_t)(take(in, time_bytes) << sign) >> sign)
				 : 1000);
	if ((what & 8) != 0)
		s->time_s += (uint64_t)(int32_t)take(in, 4);
	if ((what & 16) != 0 && (s->track == MR_TRACK_COUNT || s->track == MR_TRACK_HEAP))
		s->units = take(in, units_bytes);
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
	return what;
}

#endif
