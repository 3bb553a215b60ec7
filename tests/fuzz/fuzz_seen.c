/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz_seen.h"

uint64_t input_take(struct input *in, uint32_t bytes)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < bytes && in->left != 0; i++, in->left--)
		v |= (uint64_t)*in->at++ << 8 * i;
	return v;
}

void input_begin(struct input *in, struct mr_seen *ret_seen)
{
	static const uint64_t moduli[] = {
		0, 2, 16, 100, 256, 65536, 1u << 24, 1ull << 32, 1ull << 48};

	*ret_seen = (struct mr_seen){.state = MR_SEEN_OK, .units = 1, .flags = MR_SEEN_TIME};
	ret_seen->track = (uint32_t)input_take(in, 1) % 4;
	ret_seen->modulus = moduli[input_take(in, 1) % (sizeof(moduli) / sizeof(moduli[0]))];
	/* What the formats of these have. */
	if (ret_seen->track == MR_TRACK_CLOCK)
		ret_seen->modulus = 16;
	else if (ret_seen->track == MR_TRACK_SECOND)
		ret_seen->modulus = 1u << 24;
}

uint32_t input_change(
	struct input *in, struct mr_seen *s, uint64_t ps, uint32_t time_bytes, uint32_t units_bytes)
{
	const uint32_t what = (uint32_t)input_take(in, 1), sign = 64 - 8 * time_bytes;

	s->seq += (what & 1) != 0 ? (uint64_t)(int8_t)input_take(in, 1) : s->units;
	if ((what & 2) != 0)
		s->seq = input_take(in, 8);
	if (s->modulus != 0)
		s->seq %= s->modulus;
	s->time_ps += ps *
		((what & 4) != 0 ? (uint64_t)((int64_t)(input_take(in, time_bytes) << sign) >> sign)
				 : 1000);
	if ((what & 8) != 0)
		s->time_s += (uint64_t)(int32_t)input_take(in, 4);
	if ((what & 16) != 0 && (s->track == MR_TRACK_COUNT || s->track == MR_TRACK_HEAP))
		s->units = input_take(in, units_bytes);
	if ((what & 32) != 0) {
		s->heap_at = input_take(in, 6);
		s->heap_bytes = input_take(in, 6);
		if (s->heap_bytes != 0 && s->heap_at + s->units > s->heap_bytes)
			s->heap_bytes = s->heap_at + s->units;
	}
	if ((what & 64) != 0) {
		s->uptime_ms = input_take(in, 4);
		s->flags ^= (uint32_t)input_take(in, 1) & 15;
	}
	return what;
}
