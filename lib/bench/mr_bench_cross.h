/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_bench_cross - at which size one path overtakes another.
 *
 * Between two sizes at which different paths lead, log(b / a) is taken for a straight
 * line over log(size); where it is 0 they cross. The repeats are drawn anew as for an
 * interval: what holds in at least 95 % of the draws is said, and what does not is
 * called undecided, with the share of the draws in which it held.
 *
 *     even        neither is ahead by more than MR_BENCH_NEAR at any size
 *     ahead       one leads at every size
 *     crosses     the lead changes once; size with its interval
 *     undecided   the draws disagree, or the lead changes more than once
 *
 * Thread   any; pure.
 */
#ifndef MR_BENCH_CROSS_H
#define MR_BENCH_CROSS_H

#include "mr_bench_stats.h"

#define MR_BENCH_SIZES_MAX 32u
#define MR_BENCH_SURE 0.95
#define MR_BENCH_NEAR 0.05 /* a rate this far from another's is as good */

enum mr_bench_verdict {
	MR_BENCH_NOTHING,   /* there are no sizes at which both were measured */
	MR_BENCH_EVEN,      /* neither leads by more than MR_BENCH_NEAR, at any size */
	MR_BENCH_A_AHEAD,   /* at every size */
	MR_BENCH_B_AHEAD,   /* at every size */
	MR_BENCH_B_OVER_A,  /* a leads below the size, b above it */
	MR_BENCH_A_OVER_B,  /* b leads below the size, a above it */
	MR_BENCH_UNDECIDED, /* no such thing holds in enough of the draws */
};

/* Repeats of one size: more is better. */
struct mr_bench_pair {
	double size;
	const double *a, *b;
	uint32_t a_n, b_n;
};

struct mr_bench_cross {
	enum mr_bench_verdict verdict;
	enum mr_bench_verdict guess; /* what the medians say, decided or not */
	double size, lo, hi;         /* of the lead's first change; 0: it does not change */
	double share;                /* of the draws that agree with the guess */
};

/*
 * mr_bench_cross_of judges pairs in ascending order of size, at most MR_BENCH_SIZES_MAX;
 * those in which one has no repeats are left out.
 */
struct mr_bench_cross mr_bench_cross_of(
	const struct mr_bench_pair *pairs, uint32_t count, uint64_t seed);

/* "even", "a_ahead", "b_ahead", "b_over_a", "a_over_b", "undecided", "nothing". */
const char *mr_bench_verdict_name(enum mr_bench_verdict verdict);

#endif
