/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/gpu share: one open device. */
#ifndef MR_GPU_PRIV_H
#define MR_GPU_PRIV_H

#include "mr_gpu.h"
#include "mr_gpu_drv.h"

#include <pthread.h>

#define MR_GPU_PAGE 65536u
#define MR_GPU_BLOCK_THREADS 256u

/* One worker as the watch sees it. */
struct mr_gpu_worker {
	uint32_t lane, worker;
	enum mr_work work;
	uint32_t beat, seq;       /* last seen */
	uint64_t beat_ns, seq_ns; /* when they last changed */
};

/* One lane while its kernel runs. */
struct mr_gpu_lane_run {
	char name[MR_NAME_MAX];
	uint32_t workers;
	enum mr_work work;
	const uint64_t *slots_given;
	uint8_t *host;            /* in, out, control lines, counters */
	void *in_device, *in_map; /* READY in GPU memory, and the CPU's mapping */
	struct mr_worker_ctl *ctl;
	uint64_t *counters; /* [workers][MR_COUNTERS_MAX] */
};

struct mr_gpu {
	char name[MR_NAME_MAX];
	char vdev[64];
	int16_t id; /* of gpudev */
	struct mr_gpu_drv *drv;
	struct mr_gpu_info info;
	uint32_t regions; /* alive */

	struct mr_gpu_lane_run *lanes;
	uint32_t lanes_count;
	struct mr_host_ctl *host_ctl;
	void *device; /* lanes, maps, launches, accumulated counters */
	struct mr_gpu_drv_module *module;
	struct mr_gpu_drv_launch *launch[MR_WORK_COUNT];
	struct mr_gpu_worker *workers;
	uint32_t workers_count;
	bool launched, stopped;

	/* The prober asks the driver, so that the control thread never waits for it. */
	pthread_t prober;
	bool probing;
	uint32_t probe_stop;     /* mr_sync word */
	uint32_t probe_answer;   /* mr_sync word: 1 + index of launch that ended, or 0 */
	uint64_t probe_ns;       /* mr_sync word: clock of the last answer */
	struct mr_err probe_err; /* written before probe_answer is released */
	bool probe_died;         /* the same: died, or ended by itself */
};

/* The kernel's entry for a work division. */
const char *mr_gpu_kernel_name(enum mr_work work);

/* Starts and stops the prober; mr_gpu_watch.c. stop gives up after timeout_ms. */
MR_MUST_USE int mr_gpu_probe_start(struct mr_gpu *g, struct mr_err *err);
MR_MUST_USE int mr_gpu_probe_stop(struct mr_gpu *g, uint32_t timeout_ms);

/* Undoes what launch allocated, as far as it came; mr_gpu_launch.c. */
void mr_gpu_launch_free(struct mr_gpu *g);

#endif
