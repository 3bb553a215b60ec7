/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_priv.h"

#include <errno.h>
#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_gpudev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int find_id(struct mr_gpu *g, struct mr_err *err)
{
	int16_t id;

	RTE_GPU_FOREACH(id)
	{
		struct rte_gpu_info info;

		if (rte_gpu_info_get(id, &info) == 0 && strcmp(info.name, g->vdev) == 0) {
			g->id = id;
			g->drv = mr_gpu_drv_get(id);
			return g->drv != NULL
				? 0
				: mr_err_set(err, -ENODEV, "device '%s': another driver holds '%s'",
					  g->name, g->vdev);
		}
	}
	return mr_err_set(err, -ENODEV, "device '%s': gpudev does not list '%s'", g->name, g->vdev);
}

static int read_info(struct mr_gpu *g, struct mr_err *err)
{
	struct mr_gpu_drv_info d;
	int rc = mr_gpu_drv_info(g->drv, &d, err);

	if (rc < 0)
		return rc;
	snprintf(g->info.name, sizeof(g->info.name), "%s", d.name);
	snprintf(g->info.provider, sizeof(g->info.provider), "%s", d.provider);
	snprintf(g->info.guard, sizeof(g->info.guard), "%s", d.guard);
	g->info.multiprocessors = d.multiprocessors;
	g->info.gpudirect_rdma = d.gpudirect_rdma;
	g->info.dma_buf = d.dma_buf;
	g->info.writes_ordering = d.writes_ordering;
	g->info.flush_options = d.flush_options;
	g->info.can_map = d.can_map;
	memcpy(g->info.pci, d.pci, sizeof(g->info.pci));
	memcpy(g->info.klog, d.klog, sizeof(g->info.klog));
	g->info.flush_needed = d.writes_ordering == MR_CU_WRITES_ORDERING_NONE;
	if (g->info.flush_needed && d.flush_options == 0)
		return mr_err_set(err, -ENOTSUP,
			"device '%s' (%s) does not order a NIC's writes before the CPU's READY and "
			"offers no flush: a kernel could read stale packets, so no lane can run on "
			"it",
			g->name, g->info.name);
	return 0;
}

const char *mr_gpu_words(const struct mr_gpu *g, const struct mr_err *words)
{
	char start[MR_NAME_MAX + 16];
	int n = snprintf(start, sizeof(start), "device '%s': ", g->name);

	return strncmp(words->msg, start, (size_t)n) == 0 ? words->msg + n : words->msg;
}

static int probe_vdev(const struct mr_gpu *g, const char *args, struct mr_err *err)
{
	int rc = rte_vdev_init(g->vdev, args);
	struct mr_err words;

	if (rc >= 0)
		return 0;
	/* The words may be of an earlier call: the bus can refuse without asking the driver. */
	mr_gpu_drv_last_error(&words);
	return mr_err_set(err, rc, "device '%s': %s", g->name,
		words.code == rc        ? mr_gpu_words(g, &words)
			: rc == -EEXIST ? "it is open already"
					: strerror(-rc));
}

static int open_job(void *arg, struct mr_err *err)
{
	struct mr_gpu *g = arg;
	int rc = probe_vdev(g, g->args, err);

	if (rc < 0)
		return rc;
	rc = find_id(g, err);
	if (rc == 0)
		rc = read_info(g, err);
	if (rc < 0)
		(void)rte_vdev_uninit(g->vdev);
	return rc;
}

void mr_gpu_set_driver_ms(struct mr_gpu *g, uint32_t driver_ms)
{
	g->driver_ms = driver_ms;
}

int mr_gpu_open(const char *name, const char *args, uint32_t driver_ms, struct mr_gpu **ret_gpu,
	struct mr_err *err)
{
	struct mr_gpu *g = calloc(1, sizeof(*g));
	int rc;

	if (g == NULL)
		return mr_err_set(err, -ENOMEM, "device '%s': out of memory", name);
	snprintf(g->name, sizeof(g->name), "%s", name);
	snprintf(g->vdev, sizeof(g->vdev), "gpu_millrace_%s", name);
	g->args = args;
	g->driver_ms = driver_ms;
	rc = mr_gpu_job(name, "opening it", driver_ms, open_job, g, err);
	g->args = NULL;
	if (rc < 0) {
		if (rc != -ETIMEDOUT)
			free(g);
		return rc;
	}
	mr_gpu_probe_init(&g->probe);
	g->klog.fd = -1;
	if (g->info.klog[0] != '\0' && mr_pci_addr_parse(g->info.pci, &g->pci))
		g->info.klog_rc = mr_klog_open(&g->klog, g->info.klog);
	*ret_gpu = g;
	return 0;
}

void mr_gpu_abandon(struct mr_gpu *g, const struct mr_err *why)
{
	if (g->abandoned)
		return;
	g->abandoned = true;
	g->lost = *why;
	mr_gpu_drv_abandon(g->drv);
}

static int close_job(void *arg, struct mr_err *err)
{
	struct mr_gpu *g = arg;

	int rc = mr_gpu_launch_free(g, err);

	if (rc == -ETIMEDOUT)
		return rc;
	mr_gpu_drv_shut(g->drv);
	/* The bus has one lock for all, which a job that was left behind may hold. */
	if (!mr_gpu_job_left_behind())
		(void)rte_vdev_uninit(g->vdev);
	/* The software device's kernels ended with it. */
	return rc == -EBUSY && !mr_gpu_is_sim(g)
		? mr_err_set(err, rc, "device '%s': a kernel stays until the process ends", g->name)
		: 0;
}

int mr_gpu_close(struct mr_gpu *g, struct mr_err *err)
{
	struct mr_err why = {0};
	int rc = 0;

	if (g == NULL)
		return 0;
	mr_klog_close(&g->klog);
	if (!g->abandoned)
		rc = mr_gpu_job(g->name, "closing it", g->driver_ms, close_job, g, &why);
	if (rc == -ETIMEDOUT)
		mr_gpu_abandon(g, &why);
	if (g->abandoned)
		return mr_err_set(err, -ETIMEDOUT, "%s", g->lost.msg);
	mr_gpu_probe_fini(&g->probe);
	free(g);
	return rc < 0 ? mr_err_set(err, rc, "%s", why.msg) : 0;
}

const struct mr_gpu_info *mr_gpu_info(const struct mr_gpu *g)
{
	return &g->info;
}

void mr_gpu_lane_call_begin(struct mr_gpu_lane_run *l)
{
	mr_gpu_call_follow(&l->call);
}

int mr_gpu_lane_call_end(
	struct mr_gpu_lane_run *l, const char *what, int rc, const struct mr_err *err)
{
	mr_gpu_call_follow(NULL);
	if (rc < 0 && mr_load_relaxed(&l->call_failed) == 0) {
		l->call_what = what;
		l->call_err = *err;
		mr_store_release(&l->call_failed, 1);
	}
	return rc;
}

int mr_gpu_flush(struct mr_gpu *g, uint32_t lane)
{
	struct mr_gpu_lane_run *l = &g->lanes[lane];
	struct mr_err err = {0};

	mr_gpu_lane_call_begin(l);
	return mr_gpu_lane_call_end(
		l, "flush the NIC's writes", mr_gpu_drv_flush(g->drv, &err), &err);
}

bool mr_gpu_is_sim(const struct mr_gpu *g)
{
	return strcmp(g->info.provider, "sim") == 0;
}

int mr_gpu_device_alloc(
	struct mr_gpu *g, size_t bytes, const char *what, void **ret_ptr, struct mr_err *err)
{
	struct mr_err words;

	*ret_ptr = rte_gpu_mem_alloc(g->id, bytes, MR_GPU_PAGE);
	if (*ret_ptr != NULL)
		return 0;
	mr_gpu_drv_last_error(&words);
	return mr_err_set(err, words.code != 0 ? words.code : -ENOMEM,
		"device '%s': %zu bytes of GPU memory for %s: %s", g->name, bytes, what,
		words.code != 0 ? mr_gpu_words(g, &words) : rte_strerror(rte_errno));
}

struct region_job {
	struct mr_gpu *g;
	struct mr_gpu_region *region;
};

static void try_dmabuf(struct mr_gpu *g, struct mr_gpu_region *r)
{
	uint64_t offset;
	int fd;

	if (mr_gpu_drv_dmabuf(g->drv, r->addr, r->bytes, &fd, &offset, &r->dmabuf) == 0)
		close(fd);
}

static int alloc_job(void *arg, struct mr_err *err)
{
	struct mr_gpu *g = ((struct region_job *)arg)->g;
	struct mr_gpu_region *r = ((struct region_job *)arg)->region;
	int rc;

	if (r->memory == MR_GPU_MEMORY_DEVICE) {
		rc = mr_gpu_device_alloc(g, r->bytes, "packets", &r->addr, err);
		if (rc == 0)
			try_dmabuf(g, r);
	} else
		rc = mr_gpu_drv_host_alloc(g->drv, r->bytes, &r->addr, err);
	if (rc == 0)
		rc = mr_gpu_drv_kernel_address(g->drv, r->addr, &r->kernel, err);
	return rc;
}

static int free_job(void *arg, struct mr_err *err)
{
	struct mr_gpu *g = ((struct region_job *)arg)->g;
	struct mr_gpu_region *r = ((struct region_job *)arg)->region;

	/* What a lost device does not free goes with its context. */
	if (r->memory == MR_GPU_MEMORY_HOST)
		return mr_gpu_drv_host_free(g->drv, r->addr, err);
	return rte_gpu_mem_free(g->id, r->addr);
}

int mr_gpu_region_alloc(struct mr_gpu *g, enum mr_gpu_memory memory, size_t bytes,
	struct mr_gpu_region *ret_region, struct mr_err *err)
{
	struct mr_gpu_region r = {.memory = memory};
	struct region_job job = {g, &r};
	struct mr_err why = {0};
	int rc;

	if (bytes == 0 || bytes / MR_UNIT > UINT32_MAX - MR_GPU_PAGE / MR_UNIT)
		return mr_err_set(err, -EINVAL,
			"device '%s': a region of %zu bytes: use 1 byte to just under 256 GiB",
			g->name, bytes);
	if (memory == MR_GPU_MEMORY_DEVICE && !g->info.gpudirect_rdma)
		return mr_err_set(err, -ENOTSUP,
			"device '%s' (%s) has no GPUDirect RDMA, so no NIC can reach packets in "
			"its memory: use path: [pinned]",
			g->name, g->info.name);
	r.bytes = MR_ALIGN_UP(bytes, MR_GPU_PAGE);
	rc = mr_gpu_job(g->name, "allocating packet memory", g->driver_ms, alloc_job, &job, &why);
	if (rc == -ETIMEDOUT)
		mr_gpu_abandon(g, &why);
	if (rc < 0) {
		mr_gpu_region_free(g, &r);
		return mr_err_set(err, rc, "%s", why.msg);
	}
	*ret_region = r;
	return 0;
}

void mr_gpu_region_free(struct mr_gpu *g, struct mr_gpu_region *region)
{
	struct region_job job = {g, region};
	struct mr_err why = {0};

	if (region->addr == NULL)
		return;
	/* A kernel that did not leave may still use it: it goes with the context. */
	if (g->launched && !g->stopped) {
		memset(region, 0, sizeof(*region));
		return;
	}
	if (!g->abandoned &&
		mr_gpu_job(g->name, "freeing packet memory", g->driver_ms, free_job, &job, &why) ==
			-ETIMEDOUT)
		mr_gpu_abandon(g, &why);
	memset(region, 0, sizeof(*region));
}

void mr_gpu_counters(const struct mr_gpu *g, uint32_t lane, uint64_t ret_counters[MR_COUNTERS_MAX])
{
	const struct mr_gpu_lane_run *l = &g->lanes[lane];

	memset(ret_counters, 0, MR_COUNTERS_MAX * sizeof(*ret_counters));
	for (uint32_t w = 0; w < l->workers; w++)
		for (uint32_t i = 0; i < MR_COUNTERS_MAX; i++)
			ret_counters[i] +=
				mr_load_relaxed_u64(&l->counters[w * MR_COUNTERS_MAX + i]);
}

uint64_t mr_gpu_beats(const struct mr_gpu *g, uint32_t lane, uint32_t ret_beats[MR_WORKERS_MAX])
{
	const struct mr_gpu_lane_run *l = &g->lanes[lane];
	uint64_t sum = 0;

	memset(ret_beats, 0, MR_WORKERS_MAX * sizeof(*ret_beats));
	for (uint32_t w = 0; w < l->workers; w++) {
		ret_beats[w] = mr_load_relaxed(&l->ctl[w].beat);
		sum += ret_beats[w];
	}
	return sum;
}
