/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mr_gpu_priv.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROBE_US 50000u

/*
 * A query may block for ever on a lost device, so it has a thread of its own that
 * can be left behind; the watch judges how fresh its answer is.
 */
static void *probe(void *arg)
{
	struct mr_gpu *g = arg;

	while (mr_load_acquire(&g->probe_stop) == 0) {
		for (uint32_t k = 0; k < MR_WORK_COUNT; k++) {
			struct mr_err err = {0};
			int rc;

			if (g->launch[k] == NULL)
				continue;
			rc = mr_gpu_drv_launch_query(g->launch[k], &err);
			if (rc > 0)
				continue;
			g->probe_err = err;
			g->probe_died = rc < 0;
			mr_store_release(&g->probe_answer, 1 + k);
			return NULL;
		}
		mr_store_relaxed_u64(&g->probe_ns, mr_clock_ns());
		usleep(PROBE_US);
	}
	return NULL;
}

int mr_gpu_probe_start(struct mr_gpu *g, struct mr_err *err)
{
	sigset_t all, before;
	int rc;

	mr_store_relaxed_u64(&g->probe_ns, mr_clock_ns());
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&g->prober, NULL, probe, g);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		return mr_err_set(err, -rc, "device '%s': thread: %s", g->name, strerror(rc));
	g->probing = true;
	(void)pthread_setname_np(g->prober, "mr-gpu-probe");
	return 0;
}

int mr_gpu_probe_stop(struct mr_gpu *g, uint32_t timeout_ms)
{
	struct timespec until;

	if (!g->probing)
		return 0;
	mr_store_release(&g->probe_stop, 1);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	if (pthread_timedjoin_np(g->prober, NULL, &until) != 0)
		return -ETIME;
	g->probing = false;
	return 0;
}

static bool host_was_silent(const struct mr_gpu *g)
{
	for (uint32_t i = 0; i < g->workers_count; i++) {
		const struct mr_gpu_worker *w = &g->workers[i];

		if (mr_load_acquire(&g->lanes[w->lane].ctl[w->worker].left) == MR_LEFT_HOST_SILENT)
			return true;
	}
	return false;
}

static enum mr_gpu_health judge_probe(
	struct mr_gpu *g, uint64_t now, uint32_t stall_ms, struct mr_err *err)
{
	uint32_t answer = mr_load_acquire(&g->probe_answer);

	if (answer == 0) {
		if (now - mr_load_relaxed_u64(&g->probe_ns) <= (uint64_t)stall_ms * 1000000u)
			return MR_GPU_HEALTHY;
		mr_err_set(err, -EIO, "device '%s': the driver has not answered for %u ms", g->name,
			stall_ms);
		return MR_GPU_LOST;
	}
	if (host_was_silent(g)) {
		mr_err_set(err, -EIO,
			"device '%s': its kernels left because the host did not beat; the process "
			"was "
			"stopped or starved for longer than host_timeout_ms",
			g->name);
		return MR_GPU_HOST_SILENT;
	}
	if (g->probe_died)
		mr_err_set(err, -EIO, "%s", g->probe_err.msg);
	else
		mr_err_set(err, -EIO, "device '%s': kernel %s ended by itself", g->name,
			mr_gpu_kernel_name((enum mr_work)(answer - 1)));
	return MR_GPU_LOST;
}

/* Slots that worker w of W was given out of `given`. */
static uint64_t share(uint64_t given, uint32_t w, uint32_t workers)
{
	return given > w ? (given - w - 1) / workers + 1 : 0;
}

static enum mr_gpu_health judge_worker(struct mr_gpu *g, struct mr_gpu_worker *w, uint64_t now,
	uint32_t stall_ms, struct mr_err *err)
{
	const struct mr_gpu_lane_run *l = &g->lanes[w->lane];
	uint32_t beat = mr_load_relaxed(&l->ctl[w->worker].beat);
	uint32_t seq = mr_load_relaxed(&l->ctl[w->worker].seq);
	uint64_t limit = (uint64_t)stall_ms * 1000000u, given = 0;

	if (beat != w->beat) {
		w->beat = beat;
		w->beat_ns = now;
	}
	if (l->slots_given != NULL)
		given = mr_load_relaxed_u64(l->slots_given);
	/* seq wraps at 32 bits, as the numbers of slots do. */
	if (seq != w->seq || (int32_t)((uint32_t)share(given, w->worker, l->workers) - seq) <= 0) {
		w->seq = seq;
		w->seq_ns = now;
	}
	if (now - w->beat_ns > limit) {
		mr_err_set(err, -EIO,
			"device '%s': worker %u of lane '%s' has not beaten for %u ms: its kernel "
			"hangs",
			g->name, w->worker, l->name, stall_ms);
		return MR_GPU_STALLED;
	}
	if (now - w->seq_ns > limit) {
		mr_err_set(err, -EIO,
			"device '%s': worker %u of lane '%s' beats, but has finished no slot for "
			"%u ms "
			"though slots wait for it",
			g->name, w->worker, l->name, stall_ms);
		return MR_GPU_STALLED;
	}
	return MR_GPU_HEALTHY;
}

enum mr_gpu_health mr_gpu_watch(struct mr_gpu *g, uint32_t stall_ms, struct mr_err *err)
{
	uint64_t now = mr_clock_ns();
	enum mr_gpu_health health;

	if (!g->probing || g->stopped)
		return MR_GPU_HEALTHY;
	mr_store_relaxed(&g->host_ctl->beat, g->host_ctl->beat + 1);
	health = judge_probe(g, now, stall_ms, err);
	for (uint32_t i = 0; health == MR_GPU_HEALTHY && i < g->workers_count; i++)
		health = judge_worker(g, &g->workers[i], now, stall_ms, err);
	return health;
}
