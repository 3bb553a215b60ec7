/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_bench_cross.h"

#include <math.h>
#include <stdbool.h>

struct look {
	enum mr_bench_verdict verdict;
	double size;
};

#define LEADS 0.001 /* by less, nobody does */

/* log(b / a) by size, first to last, to what it means. */
static struct look judge(const double *sizes, const double *lead, uint32_t n)
{
	struct look look = {MR_BENCH_EVEN, 0};
	uint32_t changes = 0, led = n;
	bool even = true;

	for (uint32_t i = 0; i < n; i++) {
		even &= fabs(lead[i]) <= log(1 + MR_BENCH_NEAR);
		if (fabs(lead[i]) < LEADS)
			continue;
		if (led == n) {
			look.verdict = lead[i] > 0 ? MR_BENCH_B_AHEAD : MR_BENCH_A_AHEAD;
		} else if ((lead[i] > 0) != (lead[led] > 0) && changes++ == 0) {
			double step = log(sizes[i] / sizes[led]);

			look.size = sizes[led] * exp(step * lead[led] / (lead[led] - lead[i]));
			look.verdict = lead[i] > 0 ? MR_BENCH_B_OVER_A : MR_BENCH_A_OVER_B;
		}
		led = i;
	}
	if (even)
		return (struct look){MR_BENCH_EVEN, 0};
	if (changes > 1)
		look.verdict = MR_BENCH_UNDECIDED;
	return look;
}

static double draw_median(const double *values, uint32_t n, uint64_t *seed)
{
	double drawn[MR_BENCH_REPEATS_MAX];

	mr_bench_draw(values, n, seed, drawn);
	return mr_bench_median(drawn, n);
}

struct mr_bench_cross mr_bench_cross_of(
	const struct mr_bench_pair *pairs, uint32_t count, uint64_t seed)
{
	struct mr_bench_cross cross = {0};
	struct mr_bench_pair kept[MR_BENCH_SIZES_MAX];
	double sizes[MR_BENCH_SIZES_MAX], lead[MR_BENCH_SIZES_MAX];
	double found[MR_BENCH_DRAWS];
	uint32_t n = 0, agree = 0, draws = 1;
	struct look look;

	for (uint32_t i = 0; i < count && n < MR_BENCH_SIZES_MAX; i++)
		if (pairs[i].a_n > 0 && pairs[i].b_n > 0)
			kept[n++] = pairs[i];
	if (n == 0)
		return cross;
	for (uint32_t i = 0; i < n; i++) {
		/* Of single repeats there is one draw. */
		if (kept[i].a_n > 1 || kept[i].b_n > 1)
			draws = MR_BENCH_DRAWS;
		sizes[i] = kept[i].size;
		lead[i] = log(mr_bench_median(kept[i].b, kept[i].b_n) /
			mr_bench_median(kept[i].a, kept[i].a_n));
	}
	look = judge(sizes, lead, n);
	cross.guess = look.verdict;
	cross.size = look.size;
	for (uint32_t d = 0; d < draws; d++) {
		for (uint32_t i = 0; i < n; i++) {
			double a = draw_median(kept[i].a, kept[i].a_n, &seed);

			lead[i] = log(draw_median(kept[i].b, kept[i].b_n, &seed) / a);
		}
		look = judge(sizes, lead, n);
		if (look.verdict == cross.guess)
			found[agree++] = look.size;
	}
	cross.share = agree / (double)draws;
	cross.verdict = cross.share >= MR_BENCH_SURE ? cross.guess : MR_BENCH_UNDECIDED;
	if (cross.size > 0) {
		cross.lo = mr_bench_percentile(found, agree, 0.025);
		cross.hi = mr_bench_percentile(found, agree, 0.975);
	}
	return cross;
}

const char *mr_bench_verdict_name(enum mr_bench_verdict verdict)
{
	static const char *const names[] = {[MR_BENCH_NOTHING] = "nothing",
		[MR_BENCH_EVEN] = "even",
		[MR_BENCH_A_AHEAD] = "a_ahead",
		[MR_BENCH_B_AHEAD] = "b_ahead",
		[MR_BENCH_B_OVER_A] = "b_over_a",
		[MR_BENCH_A_OVER_B] = "a_over_b",
		[MR_BENCH_UNDECIDED] = "undecided"};

	return names[verdict];
}
