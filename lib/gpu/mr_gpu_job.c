/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mr_gpu_priv.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_MS 20u
#define LOOK_STEP_NS 200000000u

/* Some job of this process was left in the driver, perhaps with locks of DPDK's. */
static uint32_t left_behind;

/* What the thread and who waits for it share; it stays with a thread that is left behind. */
struct job {
	mr_gpu_job_fn *fn;
	void *arg;
	struct mr_gpu_call call;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool done;
	int rc;
	struct mr_err err;
};

static void *job_main(void *arg)
{
	struct job *j = arg;
	struct mr_err err = {0};
	int rc;

	mr_gpu_call_follow(&j->call);
	rc = j->fn(j->arg, &err);
	mr_gpu_call_follow(NULL);
	pthread_mutex_lock(&j->lock);
	j->rc = rc;
	j->err = err;
	j->done = true;
	pthread_cond_signal(&j->ended);
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

static bool wait_done(struct job *j)
{
	const uint64_t until = mr_clock_ns() + LOOK_MS * 1000000u;
	const struct timespec ts = {
		.tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u)};
	bool done;

	pthread_mutex_lock(&j->lock);
	if (!j->done)
		(void)pthread_cond_timedwait(&j->ended, &j->lock, &ts);
	done = j->done;
	pthread_mutex_unlock(&j->lock);
	return done;
}

/* How long one call has been waited for, without the time in which nobody could wait. */
struct wait {
	uint64_t since_ns, look_ns, waited_ns;
};

static const char *look(struct job *j, struct wait *w)
{
	uint64_t now = mr_clock_ns(), step = now - w->look_ns, since;
	const char *call = mr_gpu_call_name(&j->call, &since);

	w->waited_ns += step < LOOK_STEP_NS ? step : LOOK_STEP_NS;
	if (since != w->since_ns)
		w->waited_ns = 0;
	w->since_ns = since;
	w->look_ns = now;
	return call;
}

static int job_start(struct job *j, pthread_t *ret_thread)
{
	pthread_condattr_t monotonic;
	sigset_t all, before;
	int rc;

	mr_gpu_call_init(&j->call);
	pthread_mutex_init(&j->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&j->ended, &monotonic);
	pthread_condattr_destroy(&monotonic);
	/* Signals are for the application's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(ret_thread, NULL, job_main, j);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		(void)pthread_setname_np(*ret_thread, "mr-gpu-job");
	return rc;
}

static void job_free(struct job *j)
{
	pthread_cond_destroy(&j->ended);
	pthread_mutex_destroy(&j->lock);
	mr_gpu_call_fini(&j->call);
	free(j);
}

int mr_gpu_job(const char *device, const char *what, uint32_t timeout_ms, mr_gpu_job_fn *fn,
	void *arg, struct mr_err *err)
{
	return mr_gpu_job_meanwhile(device, what, &timeout_ms, fn, arg, NULL, NULL, err);
}

int mr_gpu_job_meanwhile(const char *device, const char *what, const uint32_t *timeout_ms,
	mr_gpu_job_fn *fn, void *arg, mr_gpu_meanwhile *meanwhile, void *ctx, struct mr_err *err)
{
	struct job *j = calloc(1, sizeof(*j));
	struct wait w = {0};
	pthread_t thread;
	int rc;

	if (j == NULL)
		return mr_err_set(err, -ENOMEM, "device '%s': out of memory", device);
	j->fn = fn;
	j->arg = arg;
	rc = job_start(j, &thread);
	if (rc != 0) {
		job_free(j);
		return mr_err_set(
			err, -rc, "device '%s': starting a thread: %s", device, strerror(rc));
	}
	while (!wait_done(j)) {
		const char *call = look(j, &w);

		if (meanwhile != NULL)
			meanwhile(ctx);
		if (*timeout_ms == 0 || call == NULL ||
			w.waited_ns < (uint64_t)*timeout_ms * 1000000u ||
			!mr_gpu_call_abandon(&j->call, w.since_ns))
			continue;
		pthread_detach(thread);
		mr_store_relaxed(&left_behind, 1);
		return mr_err_set(err, -ETIMEDOUT,
			"device '%s': %s has not returned for %u ms while %s; the device is left "
			"as it is until the process ends",
			device, call, *timeout_ms, what);
	}
	pthread_join(thread, NULL);
	rc = j->rc;
	if (rc < 0 && err != NULL)
		*err = j->err;
	job_free(j);
	return rc;
}

bool mr_gpu_job_left_behind(void)
{
	return mr_load_relaxed(&left_behind) != 0;
}
