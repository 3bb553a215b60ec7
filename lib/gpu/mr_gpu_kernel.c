/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_priv.h"
#include "mr_image.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A software device's workers wait for a core like anybody else. */
#define HELLO_MS 1000u
#define HELLO_MS_SIM 10000u
/* Of the time between two looks no more counts: where this thread waits for a core, others do. */
#define LOOK_STEP_NS 5000000u

const char *mr_gpu_kernel_name(uint32_t kernel)
{
	static const char *const names[MR_WORK_COUNT] = {
		"mr_kernel_thread", "mr_kernel_warp", "mr_kernel_order"};

	return names[kernel % MR_WORK_COUNT];
}

/* An ordered worker is one warp. */
static uint32_t block_threads(uint32_t kernel)
{
	return kernel % MR_WORK_COUNT == MR_WORK_ORDER ? 32 : MR_GPU_BLOCK_THREADS;
}

static struct mr_gpu_drv_image image_of(const struct mr_plugin *plugin)
{
	struct mr_gpu_drv_image image = {.sim = &mr_image_sim};

	if (plugin == NULL) {
		image.fatbin = mr_image_fatbin(&image.fatbin_bytes);
		return image;
	}
	image.sim = plugin->sim;
	image.fatbin = plugin->fatbin;
	image.fatbin_bytes = (size_t)((uintptr_t)plugin->fatbin_end - (uintptr_t)plugin->fatbin);
	return image;
}

static int load(struct mr_gpu *g, uint32_t m, struct mr_err *err)
{
	const struct mr_gpu_drv_image image = image_of(g->image[m]);

	if (image.fatbin == NULL && !mr_gpu_is_sim(g))
		return mr_err_set(err, -ENOEXEC,
			"device '%s': %s has no CUDA image: nvcc was not found when it was built; "
			"install the CUDA toolkit and build again",
			g->name,
			g->image[m] != NULL ? "the plug-in of one of its lanes" : "this build");
	return mr_gpu_drv_module_load(g->drv, &image, &g->module[m], err);
}

/* All kernels of a device together have to be resident, or some would never poll. */
static int check_resident(struct mr_gpu *g, struct mr_err *err)
{
	uint32_t need = 0, total = 0;

	for (uint32_t k = 0; k < MR_GPU_KERNELS_MAX; k++) {
		uint32_t per_sm;
		int rc;

		if (g->blocks[k] == 0)
			continue;
		rc = mr_gpu_drv_occupancy(g->module[k / MR_WORK_COUNT], mr_gpu_kernel_name(k),
			block_threads(k), &per_sm, err);
		if (rc < 0)
			return rc;
		if (per_sm == 0)
			return mr_err_set(err, -ENOSPC,
				"device '%s': kernel %s does not fit a multiprocessor", g->name,
				mr_gpu_kernel_name(k));
		need += (g->blocks[k] + per_sm - 1) / per_sm;
		total += g->blocks[k];
	}
	if (need > (uint32_t)g->info.multiprocessors)
		return mr_err_set(err, -ENOSPC,
			"device '%s': %u workers need %u multiprocessors at once, it has %d; use "
			"fewer workers",
			g->name, total, need, g->info.multiprocessors);
	return 0;
}

int mr_gpu_kernels_load(struct mr_gpu *g, struct mr_err *err)
{
	int rc = 0;

	for (uint32_t k = 0; rc == 0 && k < MR_GPU_KERNELS_MAX; k++)
		if (g->blocks[k] != 0 && g->module[k / MR_WORK_COUNT] == NULL)
			rc = load(g, k / MR_WORK_COUNT, err);
	return rc == 0 ? check_resident(g, err) : rc;
}

/* Beats for the host. 0: every worker said hello; 1: not yet. */
static int look(struct mr_gpu *g, uint64_t waited_ns, struct mr_err *err)
{
	uint32_t ms = mr_gpu_is_sim(g) ? HELLO_MS_SIM : HELLO_MS, answers;

	mr_store_relaxed(&g->host_ctl->beat, g->host_ctl->beat + 1);
	if (mr_gpu_probe_ended(g, &answers, err))
		return -EIO;
	for (uint32_t i = 0; i < g->workers_count; i++) {
		const struct mr_gpu_worker *w = &g->workers[i];

		if (mr_load_relaxed(&g->lanes[w->lane].ctl[w->worker].hello) != 0)
			continue;
		if (waited_ns <= ms * 1000000ull)
			return 1;
		return mr_err_set(err, -ETIME,
			"device '%s': worker %u of lane '%s' (kernel %s) did not start within %u "
			"ms: other work may hold the multiprocessors",
			g->name, w->worker, g->lanes[w->lane].name, mr_gpu_kernel_name(w->kernel),
			ms);
	}
	return 0;
}

/* The host is there for all of them, whichever is late. */
static int wait_hello(struct mr_gpu *const *gpus, uint32_t count, struct mr_err *err)
{
	uint64_t waited_ns = 0, look_ns = mr_clock_ns();

	for (;;) {
		const uint64_t now = mr_clock_ns(), step = now - look_ns;
		bool missing = false;

		waited_ns += step < LOOK_STEP_NS ? step : LOOK_STEP_NS;
		look_ns = now;

		for (uint32_t i = 0; i < count; i++) {
			int rc = look(gpus[i], waited_ns, err);

			if (rc < 0)
				return rc;
			missing |= rc > 0;
		}
		if (!missing)
			return 0;
		usleep(200);
	}
}

static int start_job(void *arg, struct mr_err *err)
{
	struct mr_gpu *g = arg;
	int rc = 0;

	g->launched = true;
	for (uint32_t k = 0; rc == 0 && k < MR_GPU_KERNELS_MAX; k++)
		if (g->blocks[k] != 0)
			rc = mr_gpu_drv_launch(g->module[k / MR_WORK_COUNT], mr_gpu_kernel_name(k),
				g->blocks[k], block_threads(k),
				g->launches + k * sizeof(struct mr_launch), &g->launch[k], err);
	return rc == 0 ? mr_gpu_probe_start(g, err) : rc;
}

static int end_job(void *arg, struct mr_err *err)
{
	return mr_gpu_launch_free(arg, err) == -ETIMEDOUT ? -ETIMEDOUT : 0;
}

/* A job that notes where it was left behind. */
static int job(struct mr_gpu *g, const char *what, mr_gpu_job_fn *fn, struct mr_err *err)
{
	struct mr_err why = {0};
	int rc;

	if (g->abandoned)
		return mr_err_set(err, -ETIMEDOUT, "%s", g->lost.msg);
	rc = mr_gpu_job(g->name, what, g->driver_ms, fn, g, &why);
	if (rc == -ETIMEDOUT)
		mr_gpu_abandon(g, &why);
	return rc < 0 ? mr_err_set(err, rc, "%s", why.msg) : 0;
}

int mr_gpu_launch(struct mr_gpu *const *gpus, uint32_t count, struct mr_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < count; i++)
		if (gpus[i]->host_ctl == NULL || gpus[i]->launched)
			return mr_err_set(err, -EINVAL,
				"device '%s': not loaded, or launched before", gpus[i]->name);
	for (uint32_t i = 0; rc == 0 && i < count; i++)
		rc = job(gpus[i], "launching its kernels", start_job, err);
	if (rc == 0)
		rc = wait_hello(gpus, count, err);
	for (uint32_t i = 0; i < count; i++) {
		gpus[i]->watch_ns = mr_clock_ns();
		if (rc < 0)
			(void)!job(gpus[i], "ending its kernels", end_job, NULL);
	}
	return rc;
}

int mr_gpu_stop(struct mr_gpu *g, uint32_t timeout_ms, struct mr_err *err)
{
	struct mr_err why = {0};
	bool any = false;
	int rc = 0;

	if (g->abandoned)
		return mr_err_set(err, -ETIMEDOUT, "%s", g->lost.msg);
	if (!g->launched || g->stopped)
		return 0;
	if (g->host_ctl != NULL)
		mr_store_release(&g->host_ctl->exit, 1);
	for (uint32_t k = 0; k < MR_GPU_KERNELS_MAX; k++)
		any |= g->launch[k] != NULL;
	/* None after a start that failed half-way, and after a stop that was too short. */
	if (any && !g->probe.runs)
		rc = mr_gpu_probe_start(g, &why);
	if (any && rc == 0)
		rc = mr_gpu_probe_wait(g, timeout_ms, &why);
	g->stopped = rc == 0;
	if (g->probe.runs)
		mr_gpu_abandon(g, &why);
	return rc < 0 ? mr_err_set(err, rc, "%s", why.msg) : 0;
}
