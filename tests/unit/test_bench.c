/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics, crossovers, the cost model and virtual time: with numbers whose answer is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mr_bench.h"
#include "mr_bench_model.h"
#include "mr_bench_report.h"
#include "mr_bench_virtual.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void near(double got, double wanted, double share)
{
	if (!(fabs(got - wanted) <= share * fabs(wanted)))
		fail_msg("got %.9g, wanted %.9g within %g of it", got, wanted, share);
}

static void lists_ascend_and_hold_numbers_only(void **state)
{
	static const char *const bad[] = {"", ",", "1,", ",1", "1,,2", "2,1", "1,1", "1 ,2", "-1",
		"1x", "0x1", "99999999999", "11", "1,2,3,4,5"};
	uint32_t list[4], count;
	struct mr_err err;

	(void)state;
	assert_int_equal(mr_bench_list("1,5,10", 1, 10, list, 4, &count, &err), 0);
	assert_int_equal(count, 3);
	assert_int_equal(list[0] * 10000 + list[1] * 100 + list[2], 10510);
	for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++) {
		err.msg[0] = '\0';
		if (mr_bench_list(bad[i], 1, 10, list, 4, &count, &err) == 0)
			fail_msg("'%s' was taken", bad[i]);
		assert_true(strlen(err.msg) > 10);
	}
}

static void medians_are_the_middle_and_percentiles_the_nearest_rank(void **state)
{
	double odd[] = {5, 1, 9}, even[] = {4, 1, 3, 100}, many[100];

	(void)state;
	assert_true(mr_bench_median(odd, 3) == 5);
	assert_true(mr_bench_median(even, 4) == 3.5);
	assert_true(mr_bench_median(odd, 0) == 0);
	for (int i = 0; i < 100; i++)
		many[i] = 100 - i;
	assert_true(mr_bench_percentile(many, 100, 0.025) == 3);
	assert_true(mr_bench_percentile(many, 100, 0.975) == 98);
	assert_true(mr_bench_percentile(many, 100, 1) == 100);
	assert_true(mr_bench_percentile(many, 100, 0) == 1);
}

static void intervals_hold_the_median_repeat_themselves_and_narrow_with_repeats(void **state)
{
	double few[8], many[64];
	struct mr_bench_interval a, b;
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < 64; i++)
		many[i] = 1000 + (double)(mr_bench_random(&seed) % 101);
	memcpy(few, many, sizeof(few));
	a = mr_bench_interval_of(few, 8, 1);
	b = mr_bench_interval_of(few, 8, 1);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_true(a.lo <= a.median && a.median <= a.hi && a.lo < a.hi && a.n == 8);
	b = mr_bench_interval_of(many, 64, 1);
	assert_true(b.hi - b.lo < a.hi - a.lo);
	assert_true(b.lo <= 1050 && b.hi >= 1045); /* the middle of what was drawn from is 1050 */
	assert_int_equal(mr_bench_interval_of(many, 0, 1).n, 0);
}

static void ratios_are_of_medians_and_of_nothing_without_both(void **state)
{
	double a[] = {100, 101, 99}, b[] = {200, 202, 198}, zero[] = {0, 0, 0};
	struct mr_bench_interval r = mr_bench_ratio_of(a, 3, b, 3, 1);

	(void)state;
	assert_true(r.median == 2);
	assert_true(r.lo >= 198 / 101.0 && r.lo < 2 && r.hi > 2 && r.hi <= 202 / 99.0);
	assert_int_equal(mr_bench_ratio_of(a, 3, b, 0, 1).n, 0);
	assert_int_equal(mr_bench_ratio_of(zero, 3, b, 3, 1).n, 0);
}

static void a_shuffle_keeps_all_and_every_place_is_likely(void **state)
{
	uint32_t at_first[5] = {0};
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		uint32_t items[] = {0, 1, 2, 3, 4}, seen = 0;

		mr_bench_shuffle(items, 5, &seed);
		for (int k = 0; k < 5; k++)
			seen |= 1u << items[k];
		assert_int_equal(seen, 31);
		at_first[items[0]]++;
	}
	for (int k = 0; k < 5; k++)
		assert_in_range(at_first[k], 850, 1150);
}

#define SIZES 5
static const double sizes[SIZES] = {64, 256, 1024, 4096, 8192};

/* Three repeats of both at each size, noise apart. */
static struct mr_bench_cross cross(const double *a, const double *b, double noise)
{
	static double values[2][SIZES][3];
	struct mr_bench_pair pairs[SIZES];

	for (int i = 0; i < SIZES; i++) {
		for (int k = 0; k < 3; k++) {
			values[0][i][k] = a[i] * (1 + noise * (k - 1));
			values[1][i][k] = b[i] * (1 - noise * (k - 1));
		}
		pairs[i] = (struct mr_bench_pair){sizes[i], values[0][i], values[1][i], 3, 3};
	}
	return mr_bench_cross_of(pairs, SIZES, 1);
}

static void a_crossover_is_found_between_the_sizes_by_their_logarithms(void **state)
{
	const double a[SIZES] = {8, 8, 8, 8, 8}, b[SIZES] = {2, 4, 4, 16, 32};
	struct mr_bench_cross c = cross(a, b, 0.01);

	(void)state;
	/* b / a is 1/2 at 1024 and 2 at 4096: half-way between them by their logarithms. */
	assert_int_equal(c.verdict, MR_BENCH_B_OVER_A);
	near(c.size, 2048, 1e-9);
	assert_true(c.lo < c.size && c.size < c.hi && c.lo > 1900 && c.hi < 2200);
	assert_true(c.share == 1);
	c = cross(b, a, 0.01);
	assert_int_equal(c.verdict, MR_BENCH_A_OVER_B);
	near(c.size, 2048, 1e-9);
}

static void who_is_always_ahead_is_named_and_so_is_nobody(void **state)
{
	const double one[SIZES] = {1, 1, 1, 1, 1}, two[SIZES] = {2, 2, 2, 2, 2},
		     like_one[SIZES] = {1.01, 0.99, 1.04, 0.97, 1};
	struct mr_bench_cross c = cross(one, two, 0.1);

	(void)state;
	assert_int_equal(c.verdict, MR_BENCH_B_AHEAD);
	assert_true(c.size == 0);
	assert_int_equal(cross(two, one, 0.1).verdict, MR_BENCH_A_AHEAD);
	assert_int_equal(cross(one, like_one, 0).verdict, MR_BENCH_EVEN);
	assert_int_equal(mr_bench_cross_of(NULL, 0, 1).verdict, MR_BENCH_NOTHING);
}

static void what_the_draws_do_not_agree_on_is_undecided(void **state)
{
	const double a[SIZES] = {10, 10, 10, 10, 10}, b[SIZES] = {8, 9, 10.1, 10.6, 10.8},
		     twice[SIZES] = {8, 12, 8, 12, 12};
	struct mr_bench_cross c = cross(a, b, 0.3);

	(void)state;
	assert_int_equal(c.guess, MR_BENCH_B_OVER_A);
	assert_int_equal(c.verdict, MR_BENCH_UNDECIDED);
	assert_true(c.share > 0 && c.share < MR_BENCH_SURE);
	c = cross(a, twice, 0);
	assert_int_equal(c.guess, MR_BENCH_UNDECIDED);
}

/* Costs of a grid, by known coefficients. */
static uint32_t grid_of(const double term[MR_BENCH_TERMS], double overlap, double copies,
	struct mr_bench_cost *costs)
{
	uint32_t n = 0;

	for (int s = 0; s < SIZES; s++)
		for (double batch = 1; batch <= 1024; batch *= 8)
			for (int t = 0; t < 3; t++) {
				struct mr_bench_model m = {.overlap = overlap};
				double touched = t == 0 ? 64 : t == 1 ? sizes[s] / 2 : sizes[s];

				memcpy(m.term, term, sizeof(m.term));
				costs[n] = (struct mr_bench_cost){batch, batch * touched,
					batch * sizes[s] * copies, batch * sizes[s], 0};
				costs[n].ns = mr_bench_model_ns(&m, &costs[n]);
				n++;
			}
	return n;
}

static uint32_t grid(const double term[MR_BENCH_TERMS], double copies, struct mr_bench_cost *costs)
{
	return grid_of(term, 1, copies, costs);
}

static void the_model_finds_the_coefficients_it_was_made_of(void **state)
{
	static const double known[][MR_BENCH_TERMS] = {{850, 30, 0.12, 0, 0},
		{8000, 12.5, 0.002, 0, 0.08}, {0, 40, 0, 0, 0}, {500, 0, 0.25, 0, 0}};
	static struct mr_bench_cost costs[SIZES * 4 * 3];
	struct mr_bench_model m;

	(void)state;
	for (size_t k = 0; k < MR_ARRAY_LEN(known); k++) {
		uint32_t n = grid(known[k], 0, costs);

		assert_true(mr_bench_model_fit(costs, n, &m));
		for (uint32_t t = 0; t < MR_BENCH_TERMS; t++)
			if (fabs(m.term[t] - known[k][t]) > 1e-6 * (1 + known[k][t]))
				fail_msg("term %u of row %zu: %.9g", t, k, m.term[t]);
		assert_true(m.error < 1e-6 && m.cells == n);
	}
	assert_false(mr_bench_model_fit(costs, 0, &m));
}

/* Of a pipeline the slowest part decides: no sum of terms comes near to that. */
static void the_model_finds_how_far_its_terms_overlap(void **state)
{
	static const double known[MR_BENCH_TERMS] = {3000, 30, 0.12, 0, 0.08};
	static struct mr_bench_cost costs[SIZES * 4 * 3];
	struct mr_bench_model m;
	uint32_t n;

	(void)state;
	for (double overlap = 1; overlap <= 8; overlap *= 2) {
		n = grid_of(known, overlap, 0, costs);
		assert_true(mr_bench_model_fit(costs, n, &m));
		near(m.overlap, overlap, 1e-9);
		for (uint32_t t = 0; t < MR_BENCH_TERMS; t++)
			assert_true(fabs(m.term[t] - known[t]) < 1e-4 * (1 + known[t]));
	}
	for (uint32_t i = 0; i < n; i++)
		costs[i].ns = fmax(fmax(3000, 30 * costs[i].packets),
			fmax(0.12 * costs[i].touched_bytes, 0.08 * costs[i].moved_bytes));
	assert_true(mr_bench_model_fit(costs, n, &m));
	assert_true(m.overlap >= 4 && m.error < 0.05);
}

static void terms_that_always_vary_together_are_one(void **state)
{
	static const double known[MR_BENCH_TERMS] = {4000, 20, 0.1, 0.3, 0};
	static struct mr_bench_cost costs[SIZES * 4 * 3];
	struct mr_bench_model m;
	uint32_t n = grid(known, 2, costs);

	(void)state;
	assert_true(mr_bench_model_fit(costs, n, &m));
	assert_true(m.error < 1e-6);
	/* 2 bytes are copied for each that is moved, and one of both terms carries it. */
	near(2 * m.term[3] + m.term[4], 0.6, 1e-6);
	assert_true(m.term[3] == 0 || m.term[4] == 0);
}

static void no_term_of_the_model_is_below_zero(void **state)
{
	struct mr_bench_cost costs[] = {{1, 64, 0, 64, 900}, {8, 512, 0, 512, 1000},
		{64, 4096, 0, 4096, 1100}, {1, 9000, 0, 9000, 800}, {8, 72000, 0, 72000, 900}};
	struct mr_bench_model m;

	(void)state;
	assert_true(mr_bench_model_fit(costs, MR_ARRAY_LEN(costs), &m));
	for (uint32_t t = 0; t < MR_BENCH_TERMS; t++)
		assert_true(m.term[t] >= 0);
	assert_true(m.error < 0.2);
}

static void pcie_carries_its_overheads(void **state)
{
	(void)state;
	assert_true(mr_bench_pcie_write(64) == 88);
	assert_true(mr_bench_pcie_write(257) == 257 + 48);
	assert_true(mr_bench_pcie_read(1514) == 1514 + 120);
	assert_true(mr_bench_pcie_lines(64) == 148);
	assert_true(mr_bench_pcie_lines(129) == 296);
}

static struct mr_bench_machine free_machine(void)
{
	return (struct mr_bench_machine){.wire_rate = 1e9,
		.link_rate = 1e9,
		.host_rate = 1e9,
		.p2p_write_rate = 1e9,
		.p2p_read_rate = 1e9,
		.copy_rate = 1e9,
		.gather_rate = 1e9,
		.kernel_rate = 1e9,
		.outstanding = 1e9,
		.round_trip_ns = 1};
}

static void virtual_time_is_that_of_the_slowest_server(void **state)
{
	struct mr_bench_machine m = free_machine();
	struct mr_bench_load load = {MR_PATH_DIRECT, 1000, 16, 8, 64};
	struct mr_bench_lane lane;

	(void)state;
	m.core_batch_ns = 400;
	m.core_packet_ns = 10;
	lane = mr_bench_virtual_run(&m, &load);
	near(lane.rate, 16 / 560e-9, 0.02); /* 400 + 16 x 10 ns a batch */
	assert_true(lane.copied == 0);
	m.p2p_read_rate = 8; /* 16 frames of 1000 bytes take 2000 ns */
	near(mr_bench_virtual_run(&m, &load).rate, 16 / 2000e-9, 0.01);
	load.path = MR_PATH_STAGED; /* does not read GPU memory, but copies */
	near(mr_bench_virtual_run(&m, &load).rate, 16 / 560e-9, 0.02);
	assert_true(mr_bench_virtual_run(&m, &load).copied == 2000);
	m.copy_cpu_ns = 4000;
	near(mr_bench_virtual_run(&m, &load).rate, 16 / 8560e-9, 0.02);
}

static void virtual_slots_hide_delays_and_latency_is_the_round_trip(void **state)
{
	struct mr_bench_machine m = free_machine();
	struct mr_bench_load load = {MR_PATH_DIRECT, 64, 1, 2, 64};
	struct mr_bench_lane lane;

	(void)state;
	m.core_batch_ns = 100;
	m.push_ns = 600;
	m.done_ns = 300;
	lane = mr_bench_virtual_run(&m, &load);
	near(lane.rate, 2 / 1000e-9, 0.05); /* two slots in flight over 1000 ns, seldom at once */
	assert_true(lane.p50_ns >= 999 && lane.p99_ns < 1110);
	load.slots = 16; /* more than 10 and the core is what counts */
	near(mr_bench_virtual_run(&m, &load).rate, 1 / 100e-9, 0.02);
	load.path = MR_PATH_PINNED;
	m.round_trip_ns = 5000;
	assert_true(mr_bench_virtual_run(&m, &load).p50_ns > lane.p50_ns);
}

static struct mr_bench_settings settings(void)
{
	return (struct mr_bench_settings){.sizes = {60, 64, 1518},
		.sizes_count = 3,
		.batches = {1, 32},
		.batches_count = 2,
		.touched = {MR_BENCH_HEADER, MR_BENCH_HALF, MR_BENCH_ALL},
		.touched_count = 3,
		.paths = {MR_PATH_DIRECT, MR_PATH_PINNED, MR_PATH_STAGED},
		.paths_count = 3,
		.repeats = 3,
		.run_ms = 10,
		.slots = 4,
		.core = -1,
		.seed = 5,
		.clock = MR_BENCH_CPU,
		.device = "sim"};
}

static void a_round_holds_every_run_of_what_is_available_once_in_an_order_of_its_own(void **state)
{
	struct mr_bench_settings set = settings();
	struct mr_bench b;
	struct mr_bench_run *first, *again, *next;
	uint32_t count, times[18][MR_PATH_COUNT][2] = {0};

	(void)state;
	assert_int_equal(mr_bench_new(&set, &b, NULL), 0);
	snprintf(b.reason[MR_PATH_STAGED], sizeof(b.reason[0]), "not here");
	first = mr_bench_round(&b, 0, &count);
	assert_int_equal(count, 18 * 2 * 2);
	again = mr_bench_round(&b, 0, &count);
	next = mr_bench_round(&b, 1, &count);
	assert_memory_equal(first, again, count * sizeof(*first));
	assert_memory_not_equal(first, next, count * sizeof(*first));
	/* Of a cell first the rates and then the latencies of all paths, with nothing between. */
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(next[i].cell, next[i / 4 * 4].cell);
		assert_int_equal(next[i].latency, i % 4 >= 2);
	}
	for (uint32_t i = 0; i < count; i++)
		times[next[i].cell][next[i].path][next[i].latency]++;
	for (uint32_t c = 0; c < 18; c++)
		for (uint32_t p = 0; p < MR_PATH_COUNT; p++)
			for (int l = 0; l < 2; l++)
				assert_int_equal(times[c][p][l], p != MR_PATH_STAGED);
	free(first);
	free(again);
	free(next);
	mr_bench_free(&b);
}

static void cells_touch_the_header_half_or_all(void **state)
{
	struct mr_bench_settings set = settings();
	struct mr_bench_cell c = mr_bench_cell_at(&set, 2);

	(void)state;
	assert_int_equal(c.size, 1518);
	assert_int_equal(c.batch, 1);
	assert_int_equal(c.touched_bytes, MR_BENCH_HEADER_BYTES);
	assert_int_equal(mr_bench_cell_at(&set, 0).touched_bytes, 60);
	assert_int_equal(mr_bench_cell_at(&set, 2 + 3 + 6).touched_bytes, 759);
	assert_int_equal(mr_bench_cell_at(&set, 2 + 3 + 6).batch, 32);
	assert_int_equal(mr_bench_cell_at(&set, 17).touched_bytes, 1518);
}

/* Samples by a law: direct costs 1000 + bytes / 8, pinned 2000 + bytes / 16; staged failed. */
static void sample_all(struct mr_bench *b)
{
	for (uint32_t c = 0; c < b->cells; c++)
		for (uint32_t r = 0; r < b->set->repeats; r++)
			for (uint32_t p = 0; p < MR_PATH_STAGED; p++) {
				struct mr_bench_cell cell = mr_bench_cell_at(b->set, c);
				double bytes = (double)cell.batch * cell.touched_bytes;
				double ns =
					p == MR_PATH_DIRECT ? 1000 + bytes / 8 : 2000 + bytes / 16;

				*mr_bench_sample_at(b, c, (enum mr_path)p,
					r) = (struct mr_bench_sample){true, true,
					cell.batch / ns * 1e9 * (1 + 0.001 * r), 1, 0, ns, 2 * ns};
			}
}

static const struct mr_bench_about somewhere = {.version = "1",
	.revision = "r",
	.date = "d",
	.cpu = "c",
	.kernel = "k",
	.topology = "t",
	.cores = 1,
	.provider = "sim",
	.guard = "unavailable"};

static void the_report_advises_what_is_fastest_and_misses_what_was_not_measured(void **state)
{
	struct mr_bench_settings set = settings();
	struct mr_bench_about about = somewhere;
	struct mr_bench b;
	const json_t *cell;
	json_t *j;
	char *text;
	size_t i;

	(void)state;
	about.stopped = "a \"signal\"";
	assert_int_equal(mr_bench_new(&set, &b, NULL), 0);
	sample_all(&b);
	j = mr_bench_json(&b, &about);
	assert_non_null(j);
	json_array_foreach(json_object_get(j, "cells"), i, cell) {
		const json_t *advice = json_object_get(cell, "advice");
		double bytes = json_number_value(json_object_get(cell, "batch")) *
			json_number_value(json_object_get(cell, "touched_bytes"));

		assert_string_equal(json_string_value(json_object_get(advice, "path")),
			bytes < 16000 ? "direct" : "pinned");
		assert_true(json_number_value(json_object_get(advice, "behind_best")) == 0);
		cell = json_array_get(json_object_get(cell, "paths"), MR_PATH_STAGED);
		assert_true(json_is_null(json_object_get(cell, "packets_per_second")));
	}
	assert_int_equal(i, 18);
	assert_true(json_is_true(json_object_get(json_object_get(j, "advice"), "held_out")));
	assert_true(json_is_true(json_object_get(json_object_get(j, "advice"), "holds")));
	assert_true(json_is_false(json_object_get(j, "complete")));
	text = mr_bench_text(j);
	assert_non_null(strstr(text, "PARTIAL"));
	free(text);
	text = mr_bench_plot(j, "it's");
	assert_non_null(strstr(text, "set output 'it''s'"));
	free(text);
	text = mr_bench_csv(j);
	assert_non_null(strstr(text, "\n60,1,header,60,staged,,,,"));
	free(text);
	json_decref(j);
	mr_bench_free(&b);
}

/* The machine is ten times as fast in one round as in another, and pinned 2 % ahead in each. */
static void paths_are_compared_round_by_round(void **state)
{
	static const double speed[] = {1e6, 2e6, 1e7};
	struct mr_bench_settings set = settings();
	struct mr_bench_about about = somewhere;
	struct mr_bench b;
	const json_t *advice;
	double ratios[MR_BENCH_REPEATS_MAX];
	json_t *j;

	(void)state;
	set.sizes_count = set.batches_count = set.touched_count = 1;
	set.repeats = 3;
	assert_int_equal(mr_bench_new(&set, &b, NULL), 0);
	for (uint32_t r = 0; r < 3; r++) {
		*mr_bench_sample_at(&b, 0, MR_PATH_DIRECT, r) =
			(struct mr_bench_sample){true, false, speed[r], 1, 0, 0, 0};
		*mr_bench_sample_at(&b, 0, MR_PATH_PINNED, r) =
			(struct mr_bench_sample){r < 2, false, speed[r] * 1.02, 1, 0, 0, 0};
	}
	assert_int_equal(mr_bench_ratios(&b, 0, MR_PATH_DIRECT, MR_PATH_PINNED, ratios), 2);
	near(ratios[0], 1.02, 1e-9);
	near(ratios[1], 1.02, 1e-9);
	/* By the medians of all its rounds pinned would be a quarter slower. */
	j = mr_bench_json(&b, &about);
	advice = json_object_get(json_array_get(json_object_get(j, "cells"), 0), "advice");
	assert_string_equal(json_string_value(json_object_get(advice, "best")), "pinned");
	assert_string_equal(json_string_value(json_object_get(advice, "path")), "direct");
	near(json_number_value(json_object_get(advice, "behind_best")), 1 - 1 / 1.02, 1e-9);
	assert_true(json_is_false(json_object_get(json_object_get(j, "advice"), "held_out")));
	json_decref(j);
	mr_bench_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_ascend_and_hold_numbers_only),
		cmocka_unit_test(medians_are_the_middle_and_percentiles_the_nearest_rank),
		cmocka_unit_test(
			intervals_hold_the_median_repeat_themselves_and_narrow_with_repeats),
		cmocka_unit_test(ratios_are_of_medians_and_of_nothing_without_both),
		cmocka_unit_test(a_shuffle_keeps_all_and_every_place_is_likely),
		cmocka_unit_test(a_crossover_is_found_between_the_sizes_by_their_logarithms),
		cmocka_unit_test(who_is_always_ahead_is_named_and_so_is_nobody),
		cmocka_unit_test(what_the_draws_do_not_agree_on_is_undecided),
		cmocka_unit_test(the_model_finds_the_coefficients_it_was_made_of),
		cmocka_unit_test(the_model_finds_how_far_its_terms_overlap),
		cmocka_unit_test(terms_that_always_vary_together_are_one),
		cmocka_unit_test(no_term_of_the_model_is_below_zero),
		cmocka_unit_test(pcie_carries_its_overheads),
		cmocka_unit_test(virtual_time_is_that_of_the_slowest_server),
		cmocka_unit_test(virtual_slots_hide_delays_and_latency_is_the_round_trip),
		cmocka_unit_test(
			a_round_holds_every_run_of_what_is_available_once_in_an_order_of_its_own),
		cmocka_unit_test(paths_are_compared_round_by_round),
		cmocka_unit_test(cells_touch_the_header_half_or_all),
		cmocka_unit_test(
			the_report_advises_what_is_fastest_and_misses_what_was_not_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
