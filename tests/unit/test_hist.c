/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_hist.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed = 88172645463325252u;

/* xorshift64, Marsaglia 2003: the same numbers on every machine. */
static uint64_t random_u64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void assert_within_one_32nd(uint64_t ns)
{
	uint32_t i = mr_hist_index(ns);
	uint64_t bound = mr_hist_bound(i);

	assert_true(i < MR_HIST_BUCKETS);
	assert_true(bound >= ns);
	assert_true(bound <= ns + ns / 32 + 1);
	/* Closed below as well: the bucket before ends under this value. */
	if (i > 0)
		assert_true(mr_hist_bound(i - 1) < ns);
}

static void every_small_value_is_within_one_32nd_of_its_bound(void **state)
{
	(void)state;
	for (uint64_t ns = 0; ns < (1u << 20); ns++)
		assert_within_one_32nd(ns);
}

static void powers_of_two_and_their_neighbours_are_within_one_32nd(void **state)
{
	(void)state;
	for (uint32_t bit = 1; bit < MR_HIST_MAX_BITS; bit++) {
		uint64_t power = (uint64_t)1 << bit;

		assert_within_one_32nd(power - 1);
		assert_within_one_32nd(power);
		assert_within_one_32nd(power + 1);
	}
	for (uint32_t i = 0; i < 1000000; i++)
		assert_within_one_32nd(random_u64() %
			(((uint64_t)1 << MR_HIST_MAX_BITS) -
				((uint64_t)1 << (MR_HIST_MAX_BITS - 5))));
}

static void each_bound_falls_into_its_own_bucket_and_the_next_value_into_the_next(void **state)
{
	(void)state;
	for (uint32_t i = 0; i + 1 < MR_HIST_BUCKETS; i++) {
		assert_int_equal(mr_hist_index(mr_hist_bound(i)), i);
		assert_int_equal(mr_hist_index(mr_hist_bound(i) + 1), i + 1);
		assert_true(mr_hist_bound(i) < mr_hist_bound(i + 1));
	}
}

static void values_beyond_the_scale_share_the_last_bucket(void **state)
{
	(void)state;
	assert_int_equal(mr_hist_index((uint64_t)1 << MR_HIST_MAX_BITS), MR_HIST_BUCKETS - 1);
	assert_int_equal(mr_hist_index(((uint64_t)1 << MR_HIST_MAX_BITS) - 1), MR_HIST_BUCKETS - 1);
	assert_int_equal(mr_hist_index(UINT64_MAX), MR_HIST_BUCKETS - 1);
	assert_true(mr_hist_bound(MR_HIST_BUCKETS - 1) == UINT64_MAX);
}

static void an_empty_histogram_has_quantile_zero(void **state)
{
	static struct mr_hist h;

	(void)state;
	assert_true(mr_hist_quantile(&h, 0) == 0);
	assert_true(mr_hist_quantile(&h, 1000000) == 0);
}

static void one_value_is_every_quantile(void **state)
{
	static struct mr_hist h;

	(void)state;
	mr_hist_add(&h, 1000003, 1);
	assert_true(mr_hist_quantile(&h, 0) == 1000003);
	assert_true(mr_hist_quantile(&h, 500000) == 1000003);
	assert_true(mr_hist_quantile(&h, 1000000) == 1000003);
}

static void quantiles_count_by_weight(void **state)
{
	static struct mr_hist h;

	(void)state;
	mr_hist_add(&h, 5, 999);
	mr_hist_add(&h, 20, 1);
	assert_true(h.count == 1000);
	assert_true(h.sum_ns == 999 * 5 + 20);
	assert_true(mr_hist_quantile(&h, 999000) == 5);
	assert_true(mr_hist_quantile(&h, 999001) == 20);
	assert_true(mr_hist_quantile(&h, 1000000) == 20);
}

static void a_quantile_of_a_huge_count_does_not_overflow(void **state)
{
	static struct mr_hist h;

	(void)state;
	mr_hist_add(&h, 7, (uint64_t)1 << 62);
	mr_hist_add(&h, 9, (uint64_t)1 << 62);
	assert_true(mr_hist_quantile(&h, 500000) == 7);
	assert_true(mr_hist_quantile(&h, 500001) == 9);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void quantiles_agree_with_a_sorted_array(void **state)
{
	enum {
		N = 20011
	};
	static const uint32_t asked[] = {
		1, 1000, 10000, 250000, 500000, 900000, 990000, 999000, 999900, 1000000};
	static uint64_t value[N];

	(void)state;
	for (uint32_t round = 0; round < 20; round++) {
		static struct mr_hist h;

		memset(&h, 0, sizeof(h));
		for (size_t i = 0; i < N; i++) {
			/* A random exponent spreads the values over the whole scale. */
			value[i] = random_u64() >> (24 + random_u64() % 40);
			mr_hist_add(&h, value[i], 1);
		}
		qsort(value, N, sizeof(value[0]), compare_u64);
		for (size_t q = 0; q < sizeof(asked) / sizeof(asked[0]); q++) {
			uint64_t rank = ((uint64_t)N * asked[q] + 999999) / 1000000;
			uint64_t exact = value[rank - 1];
			uint64_t got = mr_hist_quantile(&h, asked[q]);

			assert_true(got >= exact);
			assert_true(got <= exact + exact / 32 + 1);
		}
		assert_true(mr_hist_quantile(&h, 1000000) == value[N - 1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_small_value_is_within_one_32nd_of_its_bound),
		cmocka_unit_test(powers_of_two_and_their_neighbours_are_within_one_32nd),
		cmocka_unit_test(
			each_bound_falls_into_its_own_bucket_and_the_next_value_into_the_next),
		cmocka_unit_test(values_beyond_the_scale_share_the_last_bucket),
		cmocka_unit_test(an_empty_histogram_has_quantile_zero),
		cmocka_unit_test(one_value_is_every_quantile),
		cmocka_unit_test(quantiles_count_by_weight),
		cmocka_unit_test(a_quantile_of_a_huge_count_does_not_overflow),
		cmocka_unit_test(quantiles_agree_with_a_sorted_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
