/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_hist - a log-linear histogram of nanoseconds.
 *
 * Values below 32 have a bucket each; above, every power of two is divided into
 * 32 equal buckets, so a reported value is at most 1/32 (3.2 %) above the true
 * one. Values of 2^44 ns (5 hours) and more share the last bucket; the exact
 * maximum is kept besides.
 *
 * Thread   one writer; readers take a copy through mr_stats_snapshot.
 * Source   the layout is that of HdrHistogram (hdrhistogram.org) with 5 bits of
 *          precision, without its auto-sizing.
 */
#ifndef MR_HIST_H
#define MR_HIST_H

#include <stddef.h>
#include <stdint.h>

#define MR_HIST_SUB_BITS 5u
#define MR_HIST_SUB (1u << MR_HIST_SUB_BITS)
#define MR_HIST_MAX_BITS 44u
#define MR_HIST_BUCKETS ((MR_HIST_MAX_BITS - MR_HIST_SUB_BITS + 1u) * MR_HIST_SUB)

struct mr_hist {
	uint64_t count;
	uint64_t sum_ns;
	uint64_t max_ns;
	uint64_t bucket[MR_HIST_BUCKETS];
};

/* All in words of an address, so that no half is cleared on the way. */
static inline size_t mr_hist_index(uint64_t ns)
{
	/* Bits below the SUB_BITS + 1 that count; the highest of those is the 32 of the bucket. */
	size_t shift = (63u ^ (uint32_t)__builtin_clzll(ns | MR_HIST_SUB)) - MR_HIST_SUB_BITS;

	if (__builtin_expect(ns >> MR_HIST_MAX_BITS != 0, 0))
		return MR_HIST_BUCKETS - 1;
	return shift * MR_HIST_SUB + (ns >> shift);
}

/* mr_hist_add counts `weight` packets that took ns nanoseconds. */
static inline void mr_hist_add(struct mr_hist *h, uint64_t ns, uint64_t weight)
{
	h->bucket[mr_hist_index(ns)] += weight;
	h->count += weight;
	h->sum_ns += ns * weight;
	if (ns > h->max_ns)
		h->max_ns = ns;
}

/* mr_hist_bound gives the largest value that bucket i holds. */
uint64_t mr_hist_bound(uint32_t i);

/*
 * mr_hist_quantile gives the smallest bucket bound that at least per_million of
 * the packets do not exceed (500000: p50), never more than max_ns; 0 when empty.
 */
uint64_t mr_hist_quantile(const struct mr_hist *h, uint32_t per_million);

#endif
