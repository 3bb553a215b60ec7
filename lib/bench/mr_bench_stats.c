/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_bench_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t mr_bench_random(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

void mr_bench_draw(const double *values, uint32_t n, uint64_t *seed, double *ret)
{
	for (uint32_t i = 0; i < n; i++)
		ret[i] = values[mr_bench_random(seed) % n];
}

void mr_bench_shuffle(uint32_t *items, uint32_t n, uint64_t *seed)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = (uint32_t)(mr_bench_random(seed) % i);
		uint32_t item = items[i - 1];

		items[i - 1] = items[k];
		items[k] = item;
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double mr_bench_median(const double *values, uint32_t n)
{
	double sorted[MR_BENCH_REPEATS_MAX];

	if (n == 0 || n > MR_BENCH_REPEATS_MAX)
		return 0;
	memcpy(sorted, values, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return n % 2 != 0 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double mr_bench_percentile(double *values, uint32_t n, double share)
{
	double rank = ceil(share * n);

	if (n == 0)
		return 0;
	qsort(values, n, sizeof(*values), by_value);
	return values[rank < 1 ? 0 : rank > n ? n - 1 : (uint32_t)rank - 1];
}

static struct mr_bench_interval ends(double middle, double draws[MR_BENCH_DRAWS], uint32_t n)
{
	return (struct mr_bench_interval){.median = middle,
		.lo = mr_bench_percentile(draws, MR_BENCH_DRAWS, 0.025),
		.hi = mr_bench_percentile(draws, MR_BENCH_DRAWS, 0.975),
		.n = n};
}

struct mr_bench_interval mr_bench_interval_of(const double *values, uint32_t n, uint64_t seed)
{
	double drawn[MR_BENCH_REPEATS_MAX], draws[MR_BENCH_DRAWS];

	if (n == 0 || n > MR_BENCH_REPEATS_MAX)
		return (struct mr_bench_interval){0};
	if (n == 1)
		return (struct mr_bench_interval){values[0], values[0], values[0], 1};
	for (uint32_t i = 0; i < MR_BENCH_DRAWS; i++) {
		mr_bench_draw(values, n, &seed, drawn);
		draws[i] = mr_bench_median(drawn, n);
	}
	return ends(mr_bench_median(values, n), draws, n);
}

struct mr_bench_interval mr_bench_ratio_of(
	const double *a, uint32_t a_n, const double *b, uint32_t b_n, uint64_t seed)
{
	double drawn[MR_BENCH_REPEATS_MAX], draws[MR_BENCH_DRAWS];
	double middle = mr_bench_median(a, a_n);

	if (b_n == 0 || b_n > MR_BENCH_REPEATS_MAX || middle <= 0)
		return (struct mr_bench_interval){0};
	for (uint32_t i = 0; i < MR_BENCH_DRAWS; i++) {
		double below;

		mr_bench_draw(a, a_n, &seed, drawn);
		below = mr_bench_median(drawn, a_n);
		mr_bench_draw(b, b_n, &seed, drawn);
		if (below <= 0)
			return (struct mr_bench_interval){0};
		draws[i] = mr_bench_median(drawn, b_n) / below;
	}
	return ends(mr_bench_median(b, b_n) / middle, draws, a_n < b_n ? a_n : b_n);
}
