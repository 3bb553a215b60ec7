/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mr_bench_list(const char *text, uint32_t min, uint32_t max, uint32_t *list, uint32_t list_max,
	uint32_t *ret_count, struct mr_err *err)
{
	const char *s = text;

	*ret_count = 0;
	do {
		uint64_t v = 0;
		const char *from = s;

		for (; *s >= '0' && *s <= '9' && s - from < 10; s++)
			v = v * 10 + (uint64_t)(*s - '0');
		if (s == from || (*s != ',' && *s != '\0') || v < min || v > max)
			return mr_err_set(err, -EINVAL,
				"'%s' is not a list of numbers from %u to %u with commas between "
				"them",
				text, min, max);
		if (*ret_count > 0 && v <= list[*ret_count - 1])
			return mr_err_set(err, -EINVAL, "the numbers of '%s' do not ascend", text);
		if (*ret_count == list_max)
			return mr_err_set(
				err, -EINVAL, "'%s' holds more than %u numbers", text, list_max);
		list[(*ret_count)++] = (uint32_t)v;
	} while (*s++ == ',');
	return 0;
}

const char *mr_bench_touched_name(enum mr_bench_touched touched)
{
	static const char *const names[] = {"header", "half", "all"};

	return names[touched];
}

const char *mr_bench_clock_name(enum mr_bench_clock clock)
{
	static const char *const names[] = {"cpu", "wall", "virtual"};

	return names[clock];
}

int mr_bench_new(
	const struct mr_bench_settings *set, struct mr_bench *ret_bench, struct mr_err *err)
{
	memset(ret_bench, 0, sizeof(*ret_bench));
	ret_bench->set = set;
	ret_bench->cells = set->sizes_count * set->batches_count * set->touched_count;
	ret_bench->samples = calloc((size_t)ret_bench->cells * MR_PATH_COUNT * set->repeats,
		sizeof(*ret_bench->samples));
	if (ret_bench->samples == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory for %u cells", ret_bench->cells);
	return 0;
}

void mr_bench_free(struct mr_bench *b)
{
	free(b->samples);
	b->samples = NULL;
}

struct mr_bench_cell mr_bench_cell_at(const struct mr_bench_settings *set, uint32_t cell)
{
	uint32_t above = cell / set->sizes_count;
	struct mr_bench_cell c = {.size = set->sizes[cell % set->sizes_count],
		.batch = set->batches[above % set->batches_count],
		.touched = set->touched[above / set->batches_count]};

	c.touched_bytes = c.touched == MR_BENCH_ALL ? c.size
		: c.touched == MR_BENCH_HALF        ? c.size / 2
		: c.size < MR_BENCH_HEADER_BYTES    ? c.size
						    : MR_BENCH_HEADER_BYTES;
	return c;
}

struct mr_bench_sample *mr_bench_sample_at(
	const struct mr_bench *b, uint32_t cell, enum mr_path path, uint32_t repeat)
{
	return &b->samples[((size_t)cell * MR_PATH_COUNT + path) * b->set->repeats + repeat];
}

/* The paths of a cell that are available, in an order drawn anew; returns how many. */
static uint32_t add_cell(const struct mr_bench *b, uint32_t cell, bool latency, uint64_t *seed,
	struct mr_bench_run *ret_runs)
{
	uint32_t order[MR_PATH_COUNT], n = 0;

	for (uint32_t p = 0; p < b->set->paths_count; p++)
		if (b->reason[b->set->paths[p]][0] == '\0')
			order[n++] = (uint32_t)b->set->paths[p];
	mr_bench_shuffle(order, n, seed);
	for (uint32_t i = 0; i < n; i++)
		ret_runs[i] = (struct mr_bench_run){cell, (enum mr_path)order[i], latency};
	return n;
}

struct mr_bench_run *mr_bench_round(const struct mr_bench *b, uint32_t round, uint32_t *ret_count)
{
	uint64_t seed = b->set->seed + round;
	struct mr_bench_run *runs =
		calloc((size_t)b->cells * b->set->paths_count * 2, sizeof(*runs));
	uint32_t *cells = calloc(b->cells, sizeof(*cells));
	uint32_t n = 0;

	for (uint32_t c = 0; cells != NULL && c < b->cells; c++)
		cells[c] = c;
	if (runs == NULL || cells == NULL) {
		free(runs);
		runs = NULL;
	} else {
		mr_bench_shuffle(cells, b->cells, &seed);
		for (uint32_t c = 0; c < b->cells; c++) {
			n += add_cell(b, cells[c], false, &seed, runs + n);
			n += add_cell(b, cells[c], true, &seed, runs + n);
		}
	}
	free(cells);
	*ret_count = n;
	return runs;
}

uint32_t mr_bench_values(const struct mr_bench *b, uint32_t cell, enum mr_path path,
	enum mr_bench_metric metric, double ret[MR_BENCH_REPEATS_MAX])
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < b->set->repeats; r++) {
		const struct mr_bench_sample *s = mr_bench_sample_at(b, cell, path, r);
		bool latency = metric == MR_BENCH_P50 || metric == MR_BENCH_P99;

		if (latency ? !s->timed : !s->rated)
			continue;
		ret[n++] = metric == MR_BENCH_RATE     ? s->rate
			: metric == MR_BENCH_WALL_RATE ? s->wall_rate
			: metric == MR_BENCH_P50       ? s->p50_ns
			: metric == MR_BENCH_P99       ? s->p99_ns
						       : s->copied;
	}
	return n;
}

uint32_t mr_bench_ratios(const struct mr_bench *b, uint32_t cell, enum mr_path below,
	enum mr_path above, double ret[MR_BENCH_REPEATS_MAX])
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < b->set->repeats; r++) {
		const struct mr_bench_sample *x = mr_bench_sample_at(b, cell, below, r);
		const struct mr_bench_sample *y = mr_bench_sample_at(b, cell, above, r);

		if (x->rated && y->rated && x->rate > 0)
			ret[n++] = y->rate / x->rate;
	}
	return n;
}
