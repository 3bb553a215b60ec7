/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_bench_report.h"

#include "mr_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEED 1u /* of the draws; the object's own are of what it measured */

static const char *const metrics[] = {
	"packets_per_second", "latency_p50_ns", "latency_p99_ns", "host_bytes_copied_per_packet"};

int mr_bench_load(const char *file, json_t **ret_bench, struct mr_err *err)
{
	json_error_t why;
	struct mr_err words;
	const char *kind;
	json_t *j;
	int fd, rc = mr_file_open(file, &fd, &words);

	if (rc < 0)
		return mr_err_set(err, rc, "'%s' %s", file, words.msg);
	j = json_loadfd(fd, 0, &why);
	close(fd);
	if (j == NULL)
		return mr_err_set(err, -EINVAL, "'%s': line %d: %s; it is not what bench writes",
			file, why.line, why.text);
	kind = json_string_value(json_object_get(j, "bench"));
	if (kind == NULL || strcmp(kind, "crossover") != 0)
		rc = mr_err_set(err, -EINVAL, "'%s' is not what bench crossover writes", file);
	else if (json_integer_value(json_object_get(j, "schema")) != MR_BENCH_SCHEMA)
		rc = mr_err_set(err, -EINVAL,
			"'%s' is of schema %lld and this millrace reads schema %d; measure again, "
			"or use the millrace that wrote it",
			file, (long long)json_integer_value(json_object_get(j, "schema")),
			MR_BENCH_SCHEMA);
	if (rc < 0)
		json_decref(j);
	else
		*ret_bench = j;
	return rc;
}

static const json_t *find_cell(const json_t *bench, const json_t *like)
{
	const json_t *cell;
	size_t i;

	json_array_foreach(json_object_get(bench, "cells"), i, cell)
		if (json_equal(json_object_get(cell, "size"), json_object_get(like, "size")) &&
			json_equal(
				json_object_get(cell, "batch"), json_object_get(like, "batch")) &&
			json_equal(
				json_object_get(cell, "touched"), json_object_get(like, "touched")))
			return cell;
	return NULL;
}

static const json_t *find_path(const json_t *cell, const json_t *like)
{
	const json_t *path;
	size_t i;

	json_array_foreach(json_object_get(cell, "paths"), i, path)
		if (json_equal(json_object_get(path, "path"), json_object_get(like, "path")))
			return path;
	return NULL;
}

static uint32_t values_of(const json_t *path, const char *metric, double ret[MR_BENCH_REPEATS_MAX])
{
	const json_t *list = json_object_get(json_object_get(path, "runs"), metric);
	const json_t *v;
	uint32_t n = 0;
	size_t i;

	json_array_foreach(list, i, v)
		if (n < MR_BENCH_REPEATS_MAX)
			ret[n++] = json_number_value(v);
	return n;
}

static json_t *ratio_json(const json_t *a_path, const json_t *b_path, const char *metric)
{
	double a[MR_BENCH_REPEATS_MAX], b[MR_BENCH_REPEATS_MAX];
	uint32_t a_n = values_of(a_path, metric, a), b_n = values_of(b_path, metric, b);
	struct mr_bench_interval r = mr_bench_ratio_of(a, a_n, b, b_n, SEED);
	json_t *j =
		json_pack("{s:f, s:f}", "a", mr_bench_median(a, a_n), "b", mr_bench_median(b, b_n));

	if (a_n == 0 || b_n == 0) {
		json_decref(j);
		return json_null();
	}
	json_object_set_new(j, "ratio",
		r.n == 0
			? json_null()
			: json_pack("{s:f, s:f, s:f}", "median", r.median, "lo", r.lo, "hi", r.hi));
	return j;
}

static json_t *rows_json(const json_t *a, const json_t *b)
{
	json_t *rows = json_array();
	const json_t *cell, *path;
	size_t i, k;

	json_array_foreach(json_object_get(a, "cells"), i, cell) {
		const json_t *other = find_cell(b, cell);

		json_array_foreach(json_object_get(cell, "paths"), k, path) {
			const json_t *other_path = other != NULL ? find_path(other, path) : NULL;
			json_t *row;

			if (other_path == NULL)
				continue;
			row = json_pack("{s:O, s:O, s:O, s:O}", "size",
				json_object_get(cell, "size"), "batch",
				json_object_get(cell, "batch"), "touched",
				json_object_get(cell, "touched"), "path",
				json_object_get(path, "path"));
			for (size_t m = 0; m < MR_ARRAY_LEN(metrics); m++)
				json_object_set_new(
					row, metrics[m], ratio_json(path, other_path, metrics[m]));
			json_array_append_new(rows, row);
		}
	}
	return rows;
}

static bool same_cross(const json_t *a, const json_t *b)
{
	static const char *const keys[] = {"batch", "touched", "metric", "a", "b"};

	for (size_t i = 0; i < MR_ARRAY_LEN(keys); i++)
		if (!json_equal(json_object_get(a, keys[i]), json_object_get(b, keys[i])))
			return false;
	return true;
}

static json_t *crossovers_json(const json_t *a, const json_t *b)
{
	json_t *list = json_array();
	const json_t *c, *d;
	size_t i, k;

	json_array_foreach(json_object_get(a, "crossovers"), i, c)
		json_array_foreach(json_object_get(b, "crossovers"), k, d)
			if (same_cross(c, d))
				json_array_append_new(
					list, json_pack("{s:O, s:O}", "a", c, "b", d));
	return list;
}

/* What makes the two hard to compare, a sentence each. */
static json_t *differences_json(const json_t *a, const json_t *b)
{
	static const char *const keys[] = {
		"version", "revision", "machine", "device", "clock", "model_machine", "settings"};
	json_t *list = json_array();

	for (size_t i = 0; i < MR_ARRAY_LEN(keys); i++)
		if (!json_equal(json_object_get(a, keys[i]), json_object_get(b, keys[i])))
			json_array_append_new(list, json_string(keys[i]));
	if (!json_is_true(json_object_get(a, "complete")) ||
		!json_is_true(json_object_get(b, "complete")))
		json_array_append_new(list, json_string("complete"));
	return list;
}

json_t *mr_bench_compare(const json_t *a, const json_t *b, const char *a_name, const char *b_name)
{
	return json_pack("{s:s, s:i, s:s, s:s, s:o, s:o, s:o}", "bench", "compare", "schema",
		MR_BENCH_SCHEMA, "a", a_name, "b", b_name, "differ", differences_json(a, b), "rows",
		rows_json(a, b), "crossovers", crossovers_json(a, b));
}

static void print_ratio(FILE *f, const json_t *row, const char *metric)
{
	const json_t *r = json_object_get(json_object_get(row, metric), "ratio");

	if (!json_is_object(r)) {
		fprintf(f, " %8s %17s", "-", "");
		return;
	}
	fprintf(f, " %8.3f (%6.3f to %6.3f)", json_number_value(json_object_get(r, "median")),
		json_number_value(json_object_get(r, "lo")),
		json_number_value(json_object_get(r, "hi")));
}

static void print_cross(FILE *f, const json_t *c)
{
	fprintf(f, " %-10s", json_string_value(json_object_get(c, "verdict")));
	if (json_is_number(json_object_get(c, "size")))
		fprintf(f, " %6.0f (%.0f to %.0f)", json_number_value(json_object_get(c, "size")),
			json_number_value(json_object_get(c, "lo")),
			json_number_value(json_object_get(c, "hi")));
}

static void print_compared(FILE *f, const json_t *comparison)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(comparison, "differ"), i, row)
		fprintf(f, "%s '%s'", i == 0 ? "they differ in" : ",", json_string_value(row));
	if (i > 0)
		fputc('\n', f);
	fprintf(f, "b / a   %6s %5s %-6s %-6s %28s %28s\n", "size", "batch", "reads", "path",
		"packets per second", "median latency");
	json_array_foreach(json_object_get(comparison, "rows"), i, row) {
		fprintf(f, "        %6d %5d %-6s %-6s",
			(int)json_integer_value(json_object_get(row, "size")),
			(int)json_integer_value(json_object_get(row, "batch")),
			json_string_value(json_object_get(row, "touched")),
			json_string_value(json_object_get(row, "path")));
		print_ratio(f, row, "packets_per_second");
		print_ratio(f, row, "latency_p50_ns");
		fputc('\n', f);
	}
	fputs("crossovers\n", f);
	json_array_foreach(json_object_get(comparison, "crossovers"), i, row) {
		const json_t *a = json_object_get(row, "a");

		fprintf(f, "  batch %4d %-6s %-11s %s and %s: ",
			(int)json_integer_value(json_object_get(a, "batch")),
			json_string_value(json_object_get(a, "touched")),
			json_string_value(json_object_get(a, "metric")),
			json_string_value(json_object_get(a, "a")),
			json_string_value(json_object_get(a, "b")));
		print_cross(f, a);
		fputs("  then ", f);
		print_cross(f, json_object_get(row, "b"));
		fputc('\n', f);
	}
}

char *mr_bench_compare_text(const json_t *comparison)
{
	size_t size = 0;
	char *out = NULL;
	FILE *f = open_memstream(&out, &size);
	int bad;

	if (f == NULL)
		return NULL;
	fprintf(f, "a is '%s', b is '%s'\n", json_string_value(json_object_get(comparison, "a")),
		json_string_value(json_object_get(comparison, "b")));
	print_compared(f, comparison);
	bad = ferror(f);
	if (fclose(f) == 0 && bad == 0)
		return out;
	free(out);
	return NULL;
}
