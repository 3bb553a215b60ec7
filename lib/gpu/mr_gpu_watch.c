/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_priv.h"

#include <errno.h>
#include <string.h>

#define WATCH_STEP_NS 200000000u
#define SUSPECT_MS 2000u

static bool host_was_silent(const struct mr_gpu *g)
{
	for (uint32_t i = 0; i < g->workers_count; i++) {
		const struct mr_gpu_worker *w = &g->workers[i];

		if (mr_load_acquire(&g->lanes[w->lane].ctl[w->worker].left) == MR_LEFT_HOST_SILENT)
			return true;
	}
	return false;
}

static enum mr_gpu_health judge_device(struct mr_gpu *g, uint64_t limit_ns, struct mr_err *err)
{
	const char *call;
	uint64_t since;
	uint32_t answers;
	/* Asked first: what the workers left in their lines is then complete. */
	bool ended = mr_gpu_probe_ended(g, &answers, err);

	/* The others follow, but the first that left serves no slot any more. */
	if (host_was_silent(g)) {
		mr_err_set(err, -EIO,
			"device '%s': its kernels left because the host did not beat; the process "
			"was stopped or starved for longer than host_timeout_ms",
			g->name);
		return MR_GPU_HOST_SILENT;
	}
	if (ended)
		return MR_GPU_LOST;
	if (answers != g->answers) {
		g->answers = answers;
		g->answers_ns = g->watch_now_ns;
	}
	if (g->watch_now_ns - g->answers_ns <= limit_ns)
		return MR_GPU_HEALTHY;
	call = mr_gpu_call_name(&g->probe.call, &since);
	mr_err_set(err, -EIO, "device '%s': the driver has not answered for %u ms%s%s", g->name,
		(uint32_t)(limit_ns / 1000000u), call != NULL ? ", in " : "",
		call != NULL ? call : "");
	return MR_GPU_LOST;
}

/* Slots that worker w of W was given out of `given`. */
static uint64_t share(uint64_t given, uint32_t w, uint32_t workers)
{
	return given > w ? (given - w - 1) / workers + 1 : 0;
}

static enum mr_gpu_health judge_worker(
	struct mr_gpu *g, struct mr_gpu_worker *w, uint64_t limit_ns, struct mr_err *err)
{
	const struct mr_gpu_lane_run *l = &g->lanes[w->lane];
	uint32_t beat = mr_load_relaxed(&l->ctl[w->worker].beat);
	uint32_t seq = mr_load_relaxed(&l->ctl[w->worker].seq);
	uint64_t now = g->watch_now_ns, given = 0;

	if (beat != w->beat) {
		w->beat = beat;
		w->beat_ns = now;
	}
	if (l->slots_given != NULL)
		given = mr_load_relaxed_u64(l->slots_given);
	/* seq wraps at 32 bits, as the numbers of slots do. */
	/* Nor is it owed what its copies may not have brought. */
	if (seq != w->seq || mr_load_relaxed(&l->copies_queued) != 0 ||
		(int32_t)((uint32_t)share(given, w->worker, l->workers) - seq) <= 0) {
		w->seq = seq;
		w->seq_ns = now;
	}
	if (now - w->beat_ns > limit_ns) {
		mr_err_set(err, -EIO,
			"device '%s': worker %u of lane '%s' has not beaten for %u ms: its kernel "
			"hangs",
			g->name, w->worker, l->name, (uint32_t)(limit_ns / 1000000u));
		return MR_GPU_STALLED;
	}
	if (now - w->seq_ns > limit_ns) {
		mr_err_set(err, -EIO,
			"device '%s': worker %u of lane '%s' beats, but has finished no slot for "
			"%u ms though slots wait for it",
			g->name, w->worker, l->name, (uint32_t)(limit_ns / 1000000u));
		return MR_GPU_STALLED;
	}
	return MR_GPU_HEALTHY;
}

/* A lane whose flush or copy failed has stopped; one whose call hangs cannot say so itself. */
static enum mr_gpu_health judge_call(
	struct mr_gpu *g, struct mr_gpu_lane_run *l, uint64_t limit_ns, struct mr_err *err)
{
	uint64_t since;
	const char *call = mr_gpu_call_name(&l->call, &since);

	if (mr_load_acquire(&l->call_failed) != 0) {
		mr_err_set(err, -EIO, "lane '%s' cannot %s and has stopped: %s", l->name,
			l->call_what, l->call_err.msg);
		return MR_GPU_LOST;
	}
	if (call == NULL || since != l->call_since) {
		l->call_since = since;
		l->call_ns = g->watch_now_ns;
	}
	if (g->watch_now_ns - l->call_ns <= limit_ns)
		return MR_GPU_HEALTHY;
	mr_err_set(err, -EIO, "device '%s': %s of lane '%s' has not returned for %u ms", g->name,
		call, l->name, (uint32_t)(limit_ns / 1000000u));
	return MR_GPU_LOST;
}

/* Grows with every slot that a worker did, and with every one that was copied back. */
static uint64_t progress(const struct mr_gpu_lane_run *l)
{
	const uint32_t *copied = (const uint32_t *)(const void *)l->copies_host;
	uint64_t sum = 0;

	for (uint32_t w = 0; w < l->workers; w++)
		sum += mr_load_relaxed(&l->ctl[w].seq);
	for (uint32_t i = 0; i < l->slots; i++)
		sum += mr_load_relaxed(&copied[i]);
	return sum;
}

static enum mr_gpu_health judge_copies(
	struct mr_gpu *g, struct mr_gpu_lane_run *l, uint64_t limit_ns, struct mr_err *err)
{
	uint64_t now_at;

	if (l->stream == NULL)
		return MR_GPU_HEALTHY;
	now_at = progress(l);
	if (mr_load_relaxed(&l->copies_queued) == 0 || now_at != l->copies_progress) {
		l->copies_progress = now_at;
		l->copies_ns = g->watch_now_ns;
	}
	if (g->watch_now_ns - l->copies_ns <= limit_ns)
		return MR_GPU_HEALTHY;
	mr_err_set(err, -EIO,
		"device '%s': the copies of lane '%s' are queued, but none has ended for %u ms: "
		"their stream stands still",
		g->name, l->name, (uint32_t)(limit_ns / 1000000u));
	return MR_GPU_STALLED;
}

/* What the kernel's log has to say of this device since the last look. */
static enum mr_gpu_health judge_klog(struct mr_gpu *g, struct mr_err *err)
{
	struct mr_klog_event e;

	while (mr_klog_next(&g->klog, &e)) {
		if (!e.named || mr_pci_addr_compare(&e.gpu, &g->pci) != 0)
			continue;
		memcpy(g->klog_text, e.text, sizeof(g->klog_text));
		if (e.effect != MR_KLOG_LOST)
			continue;
		mr_err_set(err, -EIO, "device '%s' (%s) is lost, the kernel's log says: %s",
			g->name, g->info.pci, e.text);
		return MR_GPU_LOST;
	}
	return MR_GPU_HEALTHY;
}

/* The device's own words say what ended, the kernel's often why. */
static void add_klog(struct mr_gpu *g, struct mr_err *err)
{
	struct mr_err words;

	(void)judge_klog(g, NULL);
	if (err == NULL || g->klog_text[0] == '\0' || strstr(err->msg, g->klog_text) != NULL)
		return;
	words = *err;
	mr_err_set(err, words.code, "%.700s; the kernel's log says: %s", words.msg, g->klog_text);
}

enum mr_gpu_health mr_gpu_watch(struct mr_gpu *g, uint32_t stall_ms, struct mr_err *err)
{
	uint64_t limit_ns = (uint64_t)stall_ms * 1000000u, now = mr_clock_ns(), step;
	enum mr_gpu_health health;

	if (!g->probe.runs || g->stopped)
		return MR_GPU_HEALTHY;
	step = now - g->watch_ns;
	g->watch_ns = now;
	g->watch_now_ns += step < WATCH_STEP_NS ? step : WATCH_STEP_NS;
	mr_store_relaxed(&g->host_ctl->beat, g->host_ctl->beat + 1);
	if (g->abandoned) {
		mr_err_set(err, -EIO, "%s", g->lost.msg);
		return MR_GPU_LOST;
	}
	health = judge_klog(g, err);
	if (health == MR_GPU_HEALTHY)
		health = judge_device(g, limit_ns, err);
	for (uint32_t i = 0; health == MR_GPU_HEALTHY && i < g->lanes_count; i++)
		health = judge_call(g, &g->lanes[i], limit_ns, err);
	for (uint32_t i = 0; health == MR_GPU_HEALTHY && i < g->lanes_count; i++)
		health = judge_copies(g, &g->lanes[i], limit_ns, err);
	for (uint32_t i = 0; health == MR_GPU_HEALTHY && i < g->workers_count; i++)
		health = judge_worker(g, &g->workers[i], limit_ns, err);
	if (health == MR_GPU_HEALTHY)
		return health;
	add_klog(g, err);
	/* Whoever waits now waits for a driver that may have lost its device. */
	if (g->driver_ms == 0 || g->driver_ms > SUSPECT_MS)
		g->driver_ms = SUSPECT_MS;
	return health;
}
