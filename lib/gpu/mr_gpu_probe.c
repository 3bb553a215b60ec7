/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mr_gpu_priv.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define PROBE_NS 50000000u
#define PROBE_HURRY_NS 500000u
#define PROBE_LEAVE_MS 500u /* a prober that is not inside the driver leaves within this */

void mr_gpu_probe_init(struct mr_gpu_probe *p)
{
	pthread_condattr_t monotonic;

	mr_gpu_call_init(&p->call);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void mr_gpu_probe_fini(struct mr_gpu_probe *p)
{
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	mr_gpu_call_fini(&p->call);
}

/* Waits for a change until the clock says until_ns; the lock is held. */
static void wait_until(struct mr_gpu_probe *p, uint64_t until_ns)
{
	const struct timespec ts = {.tv_sec = (time_t)(until_ns / 1000000000u),
		.tv_nsec = (long)(until_ns % 1000000000u)};

	(void)pthread_cond_timedwait(&p->changed, &p->lock, &ts);
}

/* One round over the kernels and the streams of copies; the lock is not held, since the driver may
 * not return. */
static void ask(
	struct mr_gpu *g, int answer[MR_GPU_KERNELS_MAX], struct mr_err err[MR_GPU_KERNELS_MAX])
{
	for (uint32_t k = 0; k < MR_GPU_KERNELS_MAX; k++)
		if (g->launch[k] != NULL)
			answer[k] = mr_gpu_drv_launch_query(g->launch[k], &err[k]);
	/* What failed here, the kernels' answers say too. */
	for (uint32_t i = 0; i < g->lanes_count; i++)
		if (g->lanes[i].stream != NULL)
			mr_store_relaxed(&g->lanes[i].copies_queued,
				mr_gpu_drv_stream_query(g->lanes[i].stream, NULL) > 0);
}

static void note(struct mr_gpu *g, const int answer[MR_GPU_KERNELS_MAX],
	const struct mr_err err[MR_GPU_KERNELS_MAX])
{
	struct mr_gpu_probe *p = &g->probe;

	p->answers++;
	p->running = false;
	for (uint32_t k = 0; k < MR_GPU_KERNELS_MAX; k++) {
		if (g->launch[k] == NULL)
			continue;
		if (answer[k] > 0) {
			p->running = true;
			p->last = k;
		} else if (!p->ended) {
			p->ended = true;
			p->first = k;
			p->died = answer[k] < 0;
			p->err = err[k];
		}
	}
}

static void *probe(void *arg)
{
	struct mr_gpu *g = arg;
	struct mr_gpu_probe *p = &g->probe;

	mr_gpu_call_follow(&p->call);
	pthread_mutex_lock(&p->lock);
	do {
		struct mr_err err[MR_GPU_KERNELS_MAX] = {0};
		int answer[MR_GPU_KERNELS_MAX] = {0};

		pthread_mutex_unlock(&p->lock);
		ask(g, answer, err);
		pthread_mutex_lock(&p->lock);
		note(g, answer, err);
		if (p->running && !p->stop)
			wait_until(p, mr_clock_ns() + (p->hurry ? PROBE_HURRY_NS : PROBE_NS));
	} while (p->running && !p->stop);
	p->left = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int mr_gpu_probe_start(struct mr_gpu *g, struct mr_err *err)
{
	struct mr_gpu_probe *p = &g->probe;
	sigset_t all, before;
	int rc;

	p->hurry = false;
	p->stop = false;
	p->left = false;
	p->running = true;
	/* Signals are for the application's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&p->thread, NULL, probe, g);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		return mr_err_set(
			err, -rc, "device '%s': starting a thread: %s", g->name, strerror(rc));
	p->runs = true;
	(void)pthread_setname_np(p->thread, "mr-gpu-probe");
	return 0;
}

int mr_gpu_probe_wait(struct mr_gpu *g, uint32_t timeout_ms, struct mr_err *err)
{
	struct mr_gpu_probe *p = &g->probe;
	uint64_t deadline = mr_clock_ns() + (uint64_t)timeout_ms * 1000000u, since;
	const char *call;
	bool left, running;

	pthread_mutex_lock(&p->lock);
	p->hurry = true;
	pthread_cond_broadcast(&p->changed);
	while (!p->left && mr_clock_ns() < deadline)
		wait_until(p, deadline);
	p->stop = true;
	pthread_cond_broadcast(&p->changed);
	deadline = mr_clock_ns() + PROBE_LEAVE_MS * 1000000ull;
	while (!p->left && mr_clock_ns() < deadline)
		wait_until(p, deadline);
	left = p->left;
	running = p->running;
	pthread_mutex_unlock(&p->lock);
	if (!left) {
		call = mr_gpu_call_name(&p->call, &since);
		(void)mr_gpu_call_abandon(&p->call, since);
		return mr_err_set(err, -ETIME,
			"device '%s': %s does not return; the device is left as it is until the "
			"process ends",
			g->name, call != NULL ? call : "the driver");
	}
	pthread_join(p->thread, NULL);
	p->runs = false;
	if (running)
		return mr_err_set(err, -ETIME, "device '%s': kernel %s did not leave within %u ms",
			g->name, mr_gpu_kernel_name(p->last), timeout_ms);
	return 0;
}

bool mr_gpu_probe_ended(struct mr_gpu *g, uint32_t *ret_answers, struct mr_err *err)
{
	struct mr_gpu_probe *p = &g->probe;
	bool ended;

	pthread_mutex_lock(&p->lock);
	*ret_answers = p->answers;
	ended = p->ended;
	if (ended && p->died)
		(void)mr_err_set(err, -EIO, "%s", p->err.msg);
	else if (ended)
		(void)mr_err_set(err, -EIO, "device '%s': kernel %s ended by itself", g->name,
			mr_gpu_kernel_name(p->first));
	pthread_mutex_unlock(&p->lock);
	return ended;
}
