/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_bench - the paths measured beside each other, over a grid of cells.
 *
 * A cell is a frame size, a batch and how much of a frame the kernel reads. Every cell is
 * run on every path, as often as there are repeats, and twice each time: for the rate with
 * `slots` slots and for the latency with two, the fewest a ring can have. A round is
 * one repeat of everything: the cells in an order drawn anew, and within a cell the paths, one
 * directly after the other. So whatever else the machine does falls on the paths of a cell alike,
 * and they are compared round by round. And as it only ever makes a lane slower, a run for a rate
 * is cut into windows, of which the best counts. A run that was ended leaves whole rounds, and part
 * of one.
 *
 *     settings ─► mr_bench_new ─ mr_bench_round ─► order of runs
 *                      ▲                               │
 *                      └── sample ◄── mr_bench_run, mr_bench_virtual
 *
 * Before a run counts, a quarter of its time goes by and every buffer of the lane has been
 * round twice: the first touch of memory is the kernel's work and not a path's.
 *
 * The clock. On a GPU, rates are packets per second of wall time. On the software device
 * lane and kernel are threads of this machine, which others use as well: there a rate is
 * packets per second of processor time of the whole process, which is kept on one
 * processor meanwhile; wall time is recorded beside it. A latency is wall time always.
 *
 * Thread   the control thread.
 * Owner    the caller frees with mr_bench_free.
 */
#ifndef MR_BENCH_H
#define MR_BENCH_H

#include "mr_bench_cross.h"
#include "mr_config.h"

#define MR_BENCH_BATCHES_MAX 16u
#define MR_BENCH_SLOTS_LATENCY 2u
#define MR_BENCH_WINDOWS 4u /* of a run for a rate */

enum mr_bench_touched {
	MR_BENCH_HEADER, /* the first MR_BENCH_HEADER_BYTES */
	MR_BENCH_HALF,
	MR_BENCH_ALL,
	MR_BENCH_TOUCHED_COUNT,
};
#define MR_BENCH_HEADER_BYTES 64u

enum mr_bench_clock {
	MR_BENCH_CPU,
	MR_BENCH_WALL,
	MR_BENCH_VIRTUAL,
};

struct mr_bench_settings {
	uint32_t sizes[MR_BENCH_SIZES_MAX], sizes_count; /* bytes of a frame, ascending */
	uint32_t batches[MR_BENCH_BATCHES_MAX], batches_count;
	enum mr_bench_touched touched[MR_BENCH_TOUCHED_COUNT];
	uint32_t touched_count;
	enum mr_path paths[MR_PATH_COUNT];
	uint32_t paths_count;
	uint32_t repeats;
	uint32_t run_ms; /* of the clock, of each run; what comes before it does not count */
	uint32_t slots;
	int32_t core; /* of the lane; -1: any */
	uint64_t seed;
	enum mr_bench_clock clock;
	const char *device; /* as in a configuration */
};

struct mr_bench_cell {
	uint32_t size, batch, touched_bytes;
	enum mr_bench_touched touched;
};

/* What the two runs of a cell, a path and a repeat have shown. */
struct mr_bench_sample {
	bool rated, timed; /* which of the two there are */
	double rate;       /* packets per second of the clock */
	double wall_rate;  /* and of wall time */
	double copied;     /* host bytes copied per packet */
	double p50_ns, p99_ns;
};

struct mr_bench {
	const struct mr_bench_settings *set;
	uint32_t cells;
	struct mr_bench_sample *samples; /* [cell][path][repeat] */
	char reason[MR_PATH_COUNT][512]; /* why a path, by enum mr_path, is not available; "" */
	uint32_t runs, runs_wanted;
	uint32_t failed;          /* runs that gave no sample */
	char first_failure[1024]; /* the sentence of the first of them */
};

/* mr_bench_list reads "64,512,9000", ascending and each once, into list. */
MR_MUST_USE int mr_bench_list(const char *text, uint32_t min, uint32_t max, uint32_t *list,
	uint32_t list_max, uint32_t *ret_count, struct mr_err *err);

const char *mr_bench_touched_name(enum mr_bench_touched touched);
const char *mr_bench_clock_name(enum mr_bench_clock clock);

MR_MUST_USE int mr_bench_new(
	const struct mr_bench_settings *set, struct mr_bench *ret_bench, struct mr_err *err);
void mr_bench_free(struct mr_bench *b);

/* Cells are numbered so that sizes follow each other. */
struct mr_bench_cell mr_bench_cell_at(const struct mr_bench_settings *set, uint32_t cell);

struct mr_bench_sample *mr_bench_sample_at(
	const struct mr_bench *b, uint32_t cell, enum mr_path path, uint32_t repeat);

struct mr_bench_run {
	uint32_t cell;
	enum mr_path path;
	bool latency;
};

/*
 * mr_bench_round gives the runs of a round in their order: those of the paths that are
 * available, of a cell first all rates and then all latencies. The array is the caller's to free;
 * NULL without memory.
 */
struct mr_bench_run *mr_bench_round(const struct mr_bench *b, uint32_t round, uint32_t *ret_count);

enum mr_bench_metric {
	MR_BENCH_RATE,
	MR_BENCH_WALL_RATE,
	MR_BENCH_P50,
	MR_BENCH_P99,
	MR_BENCH_COPIED,
};

/* mr_bench_values collects a metric's values of all repeats that have one; returns how many. */
uint32_t mr_bench_values(const struct mr_bench *b, uint32_t cell, enum mr_path path,
	enum mr_bench_metric metric, double ret[MR_BENCH_REPEATS_MAX]);

/* Rates of `above` over those of `below`, of each round that has both; returns how many. */
uint32_t mr_bench_ratios(const struct mr_bench *b, uint32_t cell, enum mr_path below,
	enum mr_path above, double ret[MR_BENCH_REPEATS_MAX]);

#endif
