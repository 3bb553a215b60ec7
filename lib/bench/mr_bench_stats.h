/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_bench_stats - what repeated measurements say, and how sure they are.
 *
 * The middle is the median, since a machine that others use only ever makes a run
 * slower. Intervals are bootstrap percentile intervals of 95 %: the repeats are drawn
 * anew, with replacement, MR_BENCH_DRAWS times; the 2.5th and 97.5th percentile of the
 * medians are the ends. With few repeats such an interval is narrower than it should be,
 * and it never leaves the range of what was measured.
 *
 * Thread   any; no state but the caller's.
 * Source   B. Efron, R. Tibshirani, An Introduction to the Bootstrap, chapter 13;
 *          the generator is SplitMix64 (G. Steele et al., OOPSLA 2014).
 */
#ifndef MR_BENCH_STATS_H
#define MR_BENCH_STATS_H

#include <stdint.h>

#define MR_BENCH_DRAWS 1000u
#define MR_BENCH_REPEATS_MAX 64u

struct mr_bench_interval {
	double median, lo, hi;
	uint32_t n; /* repeats; 0: nothing was measured, and the rest is 0 */
};

/* mr_bench_random gives the next number of a generator whose state is *seed. */
uint64_t mr_bench_random(uint64_t *seed);

/* mr_bench_draw fills ret with n of the values, drawn with replacement. */
void mr_bench_draw(const double *values, uint32_t n, uint64_t *seed, double *ret);

/* mr_bench_shuffle puts items into a random order (Fisher and Yates). */
void mr_bench_shuffle(uint32_t *items, uint32_t n, uint64_t *seed);

/* mr_bench_median may be given at most MR_BENCH_REPEATS_MAX values; 0 of none. */
double mr_bench_median(const double *values, uint32_t n);

/* mr_bench_percentile sorts the values and gives the nearest rank; share is 0 to 1. */
double mr_bench_percentile(double *values, uint32_t n, double share);

/* mr_bench_interval_of is the median with its interval. */
struct mr_bench_interval mr_bench_interval_of(const double *values, uint32_t n, uint64_t seed);

/* mr_bench_ratio_of is median(b) / median(a) with its interval; n 0 where one has none. */
struct mr_bench_interval mr_bench_ratio_of(
	const double *a, uint32_t a_n, const double *b, uint32_t b_n, uint64_t seed);

#endif
