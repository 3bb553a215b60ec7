/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_bench_report - a measurement as one JSON object, and what is made of that.
 *
 *     struct mr_bench ─► JSON ─┬─► text, CSV, gnuplot
 *                              └─► compare with another ─► JSON ─► text
 *
 * The object holds every single run, so that whatever is derived from it can be derived
 * again. tests/schema/bench.schema.json is its shape; MR_BENCH_SCHEMA changes when that
 * does so that older readers would misread it.
 *
 * Thread   any.
 * Errors   NULL when memory is short.
 */
#ifndef MR_BENCH_REPORT_H
#define MR_BENCH_REPORT_H

#include "mr_bench.h"
#include "mr_bench_model.h"
#include "mr_bench_virtual.h"

#include <jansson.h>

#define MR_BENCH_SCHEMA 1
#define MR_BENCH_NEAR_SHARE 0.95 /* of the cells in which an advice should be near the best */

/* What the measurement does not know of itself. */
struct mr_bench_about {
	const char *version, *revision; /* of the program */
	const char *date;               /* UTC, ISO 8601 */
	const char *cpu, *kernel, *topology;
	uint32_t cores;
	const char *provider, *guard;           /* "sim", "cuda", "model" */
	const struct mr_bench_machine *machine; /* in virtual time, else NULL */
	const char *stopped;                    /* NULL, or why not all runs were made */
};

json_t *mr_bench_json(const struct mr_bench *b, const struct mr_bench_about *about);

/* Of the object: for people; a row for each cell and path; a script that draws FILE. */
char *mr_bench_text(const json_t *bench);
char *mr_bench_csv(const json_t *bench);
char *mr_bench_plot(const json_t *bench, const char *file);

/*
 * mr_bench_load reads an object that was written before. -EINVAL: it is none, or of
 * another schema.
 */
MR_MUST_USE int mr_bench_load(const char *file, json_t **ret_bench, struct mr_err *err);

/*
 * mr_bench_compare puts two side by side: rates and latencies of what both have, as the
 * ratio of b to a with its interval, and their crossovers.
 */
json_t *mr_bench_compare(const json_t *a, const json_t *b, const char *a_name, const char *b_name);
char *mr_bench_compare_text(const json_t *comparison);

#endif
