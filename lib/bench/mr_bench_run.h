/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_bench_run - one lane after the other, in one process.
 *
 *     probe every path ─► open (EAL, once) ─► run ─► run ... ─► close
 *
 * A run is a configuration of its own: one lane over a port that makes frames of one size
 * out of nothing and takes all that it is given (net_null), with a chain of the stage
 * `checksum`, which reads so many bytes of each frame. The lane is planned and brought up
 * as any other, runs, and is taken down; what it counted between two of its publications
 * is the sample.
 *
 * Thread   the control thread.
 * Owner    the host facts are borrowed and must outlive the runner.
 * Errors   a sentence. What fails one run need not fail the next: -EIO and below that are
 *          of a device or thread that is lost are told apart, see mr_bench_run_one.
 */
#ifndef MR_BENCH_RUN_H
#define MR_BENCH_RUN_H

#include "mr_bench.h"
#include "mr_host.h"

struct mr_bench_runner;

/*
 * mr_bench_probe plans every path of every cell, opens nothing, and fills b->reason for a
 * path that the plan refuses, with its words. -ENOENT: there is none left.
 */
MR_MUST_USE int mr_bench_probe(struct mr_bench *b, const struct mr_host *host, struct mr_err *err);

/*
 * mr_bench_open starts EAL with the memory that the largest cell takes. *stop is looked at
 * all the while, here and in runs: not 0 ends a run with -ECANCELED.
 */
MR_MUST_USE int mr_bench_open(struct mr_bench *b, const struct mr_host *host, const uint32_t *stop,
	struct mr_bench_runner **ret_runner, struct mr_err *err);

/*
 * mr_bench_run_one measures one run into the sample of that round. Returns 0; -ECANCELED;
 * -ENODEV: the device was lost or stalled, and no more runs can follow; -ETIMEDOUT: a driver
 * or thread does not return, and the process has to end by _exit, without a close; else only
 * this run failed.
 */
MR_MUST_USE int mr_bench_run_one(struct mr_bench_runner *r, const struct mr_bench_run *run,
	uint32_t round, struct mr_err *err);

/* -ETIMEDOUT: as above. NULL is accepted. */
int mr_bench_close(struct mr_bench_runner *r, struct mr_err *err);

/* What gave the packets and worked on them; valid between open and close. */
const char *mr_bench_provider(const struct mr_bench_runner *r);
const char *mr_bench_guard(const struct mr_bench_runner *r);

#endif
