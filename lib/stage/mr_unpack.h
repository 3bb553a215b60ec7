/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_unpack - packed samples of a few bits, and what is told of a window of them.
 *
 *     bytes ─ mr_unpack_load ─► 8 samples ─ mr_unpack_value ─► mr_unpack_add ─► struct
 * mr_unpack_sum
 *
 * Samples of n bits lie side by side without padding, so 8 of them are n bytes: a group. Big-endian
 * packs them as VITA 49.2 and DIFI do: the first sample is in the most significant bits of the
 * first byte. Little-endian is its mirror: the first sample is in the least significant bits of
 * the first byte, which for 1, 2, 4, 8 and 16 bits is how VDIF packs its words (VDIF 1.1,
 * section 6). Values are two's complement, or offset binary: 0 is -2^(n-1).
 *
 * All of it is integer arithmetic, so a GPU gives the host's results to the bit. Sums are exact
 * for up to MR_UNPACK_SAMPLES_MAX samples. Sums of parts of a window add up by mr_unpack_merge,
 * in whatever order; only crossings between two parts are the caller's to add.
 */
#ifndef MR_UNPACK_H
#define MR_UNPACK_H

#include "mr_sync.h"

#include <stdint.h>

#define MR_UNPACK_GROUP 8u
#define MR_UNPACK_BINS 256u
#define MR_UNPACK_SAMPLES_MAX (1ull << 33) /* 2^33 squares of 2^30 stay below 2^64 */

struct mr_unpack_format {
	uint32_t bits;   /* 1, 2, 4, 8, 10, 12 or 16 */
	uint32_t little; /* 0: the first sample is in the highest bits */
	uint32_t offset; /* 0: two's complement */
};

struct mr_unpack_sum {
	uint64_t count;
	int64_t total;
	uint64_t squares;
	uint64_t clipped;    /* samples at either end of what the bits can say */
	uint64_t rising;     /* a sample below the threshold, and the next one not */
	int32_t least, most; /* of a count of 0: INT32_MAX and INT32_MIN */
};

/* The bytes of a group as one number of 128 bits. */
struct mr_unpack_group {
	uint64_t high, low;
};

MR_HD void mr_unpack_sum_init(struct mr_unpack_sum *s)
{
	s->count = 0;
	s->total = 0;
	s->squares = 0;
	s->clipped = 0;
	s->rising = 0;
	s->least = INT32_MAX;
	s->most = INT32_MIN;
}

/* mr_unpack_push appends the next byte of a group, from its first on. */
MR_HD void mr_unpack_push(
	struct mr_unpack_group *g, const struct mr_unpack_format *f, uint32_t byte)
{
	if (f->little) {
		g->low = g->low >> 8 | g->high << 56;
		g->high = g->high >> 8 | (uint64_t)byte << 56;
	} else {
		g->high = g->high << 8 | g->low >> 56;
		g->low = g->low << 8 | byte;
	}
}

/* mr_unpack_value gives the k-th sample of a group of which all bytes were pushed. */
MR_HD int32_t mr_unpack_value(
	const struct mr_unpack_group *g, const struct mr_unpack_format *f, uint32_t k)
{
	const uint32_t n = f->bits;
	/* The group fills the upper bits if it was pushed from above, the lower ones else. */
	const uint32_t at =
		f->little ? 128 - (MR_UNPACK_GROUP - k) * n : (MR_UNPACK_GROUP - 1 - k) * n;
	const uint64_t shifted = at >= 64 ? g->high >> (at - 64)
		: at > 0                  ? g->low >> at | g->high << (64 - at)
					  : g->low;
	const uint32_t raw = (uint32_t)shifted & ((1u << n) - 1), half = 1u << (n - 1);

	return f->offset ? (int32_t)raw - (int32_t)half : (int32_t)(raw ^ half) - (int32_t)half;
}

/* mr_unpack_bin gives the bin of a value: the top 8 bits of its distance from the least. */
MR_HD uint32_t mr_unpack_bin(const struct mr_unpack_format *f, int32_t value)
{
	uint32_t up = (uint32_t)(value + (int32_t)(1u << (f->bits - 1)));

	return f->bits > 8 ? up >> (f->bits - 8) : up;
}

/* mr_unpack_add enters a sample; before is the one in front of it, or itself at the beginning. */
MR_HD void mr_unpack_add(struct mr_unpack_sum *s, const struct mr_unpack_format *f, int32_t value,
	int32_t before, int32_t threshold)
{
	const int32_t half = (int32_t)(1u << (f->bits - 1));

	s->count++;
	s->total += value;
	s->squares += (uint64_t)((int64_t)value * value);
	s->clipped += value == -half || value == half - 1;
	s->rising += before < threshold && value >= threshold;
	s->least = value < s->least ? value : s->least;
	s->most = value > s->most ? value : s->most;
}

MR_HD void mr_unpack_merge(struct mr_unpack_sum *s, const struct mr_unpack_sum *more)
{
	s->count += more->count;
	s->total += more->total;
	s->squares += more->squares;
	s->clipped += more->clipped;
	s->rising += more->rising;
	s->least = more->least < s->least ? more->least : s->least;
	s->most = more->most > s->most ? more->most : s->most;
}

/* mr_unpack_mean gives the mean times 2^32, rounded towards zero; 0 of no samples. */
MR_HD int64_t mr_unpack_mean(const struct mr_unpack_sum *s)
{
	uint64_t all = s->total < 0 ? 0 - (uint64_t)s->total : (uint64_t)s->total, mean;

	if (s->count == 0)
		return 0;
	mean = all / s->count << 32;
	/* The rest is below count, so that it stays below 2^64 by the limit of samples. */
	mean |= (all % s->count << 30) / s->count << 2;
	return s->total < 0 ? -(int64_t)mean : (int64_t)mean;
}

MR_HD uint64_t mr_unpack_root(uint64_t x)
{
	uint64_t root = 0;

	for (uint64_t bit = 1ull << 31; bit != 0; bit >>= 1)
		if ((root | bit) * (root | bit) <= x)
			root |= bit;
	return root;
}

/*
 * mr_unpack_rms gives the root of the mean square times 2^32, to 30 bits of its value and never
 * above it; 0 of no samples. The mean square is scaled by a power of 4 first, so that its root
 * has 31 bits.
 */
MR_HD uint64_t mr_unpack_rms(const struct mr_unpack_sum *s)
{
	uint64_t square, rest;
	uint32_t scale = 0; /* square is the mean square times 4^scale */

	if (s->squares == 0)
		return 0;
	square = s->squares / s->count;
	rest = s->squares % s->count;
	while (square < 1ull << 60) {
		rest *= 4;
		square = square * 4 + rest / s->count;
		rest %= s->count;
		scale++;
	}
	square = mr_unpack_root(square);
	return scale <= 32 ? square << (32 - scale) : square >> (scale - 32);
}

#endif
