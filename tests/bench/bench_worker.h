/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_worker - the software kernel as a function: one worker of one lane, which takes the
 * slots that are ready and leaves.
 */
#ifndef BENCH_WORKER_H
#define BENCH_WORKER_H

#include "mr_image.h"
#include "mr_ring.h"
#include "mr_stage.h"
#include "mr_tap.h"

struct bench_worker {
	struct mr_lane_dev lane; /* chain and its length are the caller's */
	enum mr_work work;       /* the kernel that runs it */
	struct mr_worker_ctl ctl;
	struct mr_worker_map map;
	struct mr_host_ctl host;
	struct mr_launch launch;
	uint64_t counters[2][MR_COUNTERS_MAX];
	struct mr_tap tap;
	struct mr_tap_order order;
	struct mr_tap_ctl tap_ctl;
};

static inline uint64_t bench_address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static inline void bench_worker_init(struct bench_worker *w, const struct mr_ring *r,
	const void *region, uint64_t region_bytes, uint32_t room)
{
	*w = (struct bench_worker){.lane = {.region = bench_address(region),
					   .in = bench_address(r->in),
					   .out = bench_address(r->out),
					   .workers_ctl = bench_address(&w->ctl),
					   .counters_out = bench_address(w->counters[0]),
					   .counters_acc = bench_address(w->counters[1]),
					   .region_units = (uint32_t)(region_bytes / MR_UNIT),
					   .room = room,
					   .in_stride = r->stride,
					   .out_stride = r->stride,
					   .slots = r->mask + 1,
					   .batch = r->batch,
					   .workers = 1,
					   .tx_count = 1},
		.host = {.exit = 1},
		.launch = {.lanes = bench_address(&w->lane),
			.map = bench_address(&w->map),
			.host_ctl = bench_address(&w->host),
			.blocks = 1}};
}

/* Captures all packets from here on, into records of which there are as many as in a slot. */
static inline void bench_worker_tap(struct bench_worker *w, void *records, uint32_t snaplen)
{
	w->lane.tap = bench_address(&w->tap);
	w->lane.tap_order = bench_address(&w->order);
	w->order = (struct mr_tap_order){.ctl = bench_address(&w->tap_ctl),
		.records = bench_address(records),
		.mask = MR_BATCH_MAX - 1,
		.stride = MR_TAP_STRIDE(snaplen),
		.snaplen = snaplen};
	w->host.tap = MR_TAP_NEXT + 1;
}

static inline void bench_worker_run(const struct bench_worker *w)
{
	mr_image_sim.kernels[w->work].entry(bench_address(&w->launch), 0, NULL);
}

#endif
