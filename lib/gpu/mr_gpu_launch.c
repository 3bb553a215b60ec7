/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_priv.h"

#include "mr_tap.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_gpudev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAVE_MS 2000u

static uint32_t slot_stride(const struct mr_gpu_lane *l)
{
	return l->tx_copy ? MR_SLOT_BYTES_TX(l->batch) : MR_SLOT_BYTES(l->batch);
}

static size_t slots_bytes(const struct mr_gpu_lane *l)
{
	return MR_ALIGN_UP((size_t)l->slots * slot_stride(l), MR_CACHE_LINE);
}

static size_t ctl_bytes(const struct mr_gpu_lane *l)
{
	return l->workers * sizeof(struct mr_worker_ctl);
}

static size_t counters_bytes(const struct mr_gpu_lane *l)
{
	return (size_t)l->workers * MR_COUNTERS_MAX * sizeof(uint64_t);
}

static int address(struct mr_gpu *g, const void *p, uint64_t *ret_address, struct mr_err *err)
{
	return mr_gpu_drv_kernel_address(g->drv, p, ret_address, err);
}

static int host_alloc(
	struct mr_gpu *g, size_t bytes, const char *what, void **ret_ptr, struct mr_err *err)
{
	struct mr_err words = {0};
	int rc = mr_gpu_drv_host_alloc(g->drv, bytes, ret_ptr, &words);

	if (rc < 0)
		return mr_err_set(err, rc, "device '%s': %zu bytes of host memory for %s: %s",
			g->name, bytes, what, mr_gpu_words(g, &words));
	return 0;
}

/* READY and the descriptors in GPU memory that the CPU only writes. */
static int map_in(struct mr_gpu *g, struct mr_gpu_lane_run *run, size_t bytes, struct mr_err *err)
{
	struct mr_err words;
	int rc;

	bytes = MR_ALIGN_UP(bytes, MR_GPU_PAGE);
	rc = mr_gpu_device_alloc(g, bytes, "READY and descriptors", &run->in_device, err);
	if (rc < 0)
		return rc;
	run->in_map = rte_gpu_mem_cpu_map(g->id, bytes, run->in_device);
	if (run->in_map != NULL)
		return 0;
	mr_gpu_drv_last_error(&words);
	return mr_err_set(err, words.code != 0 ? words.code : -ENOMEM,
		"device '%s', lane '%s': mapping %zu bytes of GPU memory for READY: %s", g->name,
		run->name, bytes,
		words.code != 0 ? mr_gpu_words(g, &words) : rte_strerror(rte_errno));
}

/* Where the kernel finds the lane's packets, and where it is to copy them. */
static void tell_regions(
	const struct mr_gpu_lane *l, const struct mr_gpu_lane_run *run, struct mr_lane_dev *dev)
{
	const uint32_t copies = (uint32_t)((uint64_t)l->slots * l->batch * l->room / MR_UNIT);

	dev->region = l->region != NULL ? l->region->kernel : run->copies_kernel;
	dev->region_units = l->region != NULL ? (uint32_t)(l->region->bytes / MR_UNIT) : copies;
	if (!l->tx_copy)
		return;
	dev->tx_region = l->tx_region != NULL ? l->tx_region->kernel : run->copies_kernel;
	dev->tx_region_units =
		l->tx_region != NULL ? (uint32_t)(l->tx_region->bytes / MR_UNIT) : copies;
}

/* Memory of one lane, its ring, and what the kernel is told about them. */
static int prepare_lane(struct mr_gpu *g, uint32_t lane, const struct mr_gpu_lane *l,
	struct mr_lane_dev *dev, struct mr_err *err)
{
	struct mr_gpu_lane_run *run = &g->lanes[lane];
	size_t slots = slots_bytes(l);
	struct mr_err words = {0};
	uint8_t *in, *out;
	void *host;
	int rc;

	snprintf(run->name, sizeof(run->name), "%s", l->name);
	run->workers = l->workers;
	run->room = l->room;
	run->slots_given = l->slots_given;
	rc = host_alloc(g, 2 * slots + ctl_bytes(l) + counters_bytes(l), "a ring", &host, err);
	if (rc < 0)
		return rc;
	run->host = host;
	if (g->info.can_map)
		rc = map_in(g, run, slots, err);
	if (rc < 0)
		return rc;
	in = run->host;
	out = in + slots;
	run->ctl = (struct mr_worker_ctl *)(out + slots);
	run->counters = (uint64_t *)(out + slots + ctl_bytes(l));
	memset(run->ctl, 0, ctl_bytes(l) + counters_bytes(l));
	rc = (l->tx_copy ? mr_ring_init_tx : mr_ring_init)(
		l->ring, in, run->in_map, out, l->slots, l->batch, l->first_seq, &words);
	if (rc < 0)
		return mr_err_set(err, rc, "device '%s', lane '%s': %s", g->name, l->name,
			mr_gpu_words(g, &words));
	rc = address(g, run->in_map != NULL ? run->in_device : in, &dev->in, err);
	if (rc == 0)
		rc = address(g, out, &dev->out, err);
	if (rc == 0)
		rc = address(g, run->ctl, &dev->workers_ctl, err);
	if (rc == 0)
		rc = address(g, run->counters, &dev->counters_out, err);
	run->ready = dev->in;
	run->ready_stride = slot_stride(l);
	if (rc == 0 && l->copier != NULL)
		rc = mr_gpu_copier_make(g, lane, l, run, err);
	tell_regions(l, run, dev);
	dev->room = l->room;
	dev->in_stride = slot_stride(l);
	dev->out_stride = slot_stride(l);
	dev->slots = l->slots;
	dev->batch = l->batch;
	dev->workers = l->workers;
	dev->tx_count = l->tx_count;
	dev->first_seq = l->first_seq;
	dev->index = lane;
	dev->tap_order = g->tap.kernel;
	dev->chain_len = l->stages_count;
	run->stages = l->stages_count;
	for (uint32_t i = 0; i < l->stages_count; i++) {
		dev->chain[i].stage = (uint16_t)l->stages[i].desc->id;
		dev->chain[i].counter_base = (uint16_t)l->stages[i].counter_base;
		dev->chain[i].flags = l->stages[i].desc->ticks ? MR_CHAIN_TICKS : 0;
		dev->flags |= l->stages[i].desc->timed ? MR_LANE_TIMED : 0;
		memcpy(dev->chain[i].params[0], l->stages[i].params, MR_PARAM_BYTES);
	}
	return rc == 0 ? mr_gpu_tables_make(g, l, run, dev, err) : rc;
}

/* The block of device memory, built in host memory and uploaded once. */
struct image {
	size_t lanes, maps, launches, counters, taps, bytes; /* offsets */
	uint8_t *data;
};

static struct image image_layout(const struct mr_gpu_lane *lanes, uint32_t n, uint32_t workers)
{
	struct image im = {0};
	size_t counters = 0;

	for (uint32_t i = 0; i < n; i++)
		counters += counters_bytes(&lanes[i]);
	im.maps = MR_ALIGN_UP(n * sizeof(struct mr_lane_dev), MR_CACHE_LINE);
	im.launches = im.maps + MR_ALIGN_UP(workers * sizeof(struct mr_worker_map), MR_CACHE_LINE);
	im.counters = im.launches +
		MR_ALIGN_UP(MR_GPU_KERNELS_MAX * sizeof(struct mr_launch), MR_CACHE_LINE);
	im.taps = im.counters + counters;
	im.bytes = im.taps + workers * sizeof(struct mr_tap);
	return im;
}

/* Workers of one kernel are one grid: block b is maps[first + b]. */
static void number_workers(struct mr_gpu *g, struct mr_worker_map *maps, struct mr_launch *launch,
	uint64_t maps_address)
{
	uint32_t n = 0;

	for (uint32_t kernel = 0; kernel < MR_GPU_KERNELS_MAX; kernel++) {
		launch[kernel].map = maps_address + n * sizeof(*maps);
		for (uint32_t i = 0; i < g->lanes_count; i++)
			for (uint32_t w = 0;
				g->lanes[i].kernel == kernel && w < g->lanes[i].workers; w++) {
				maps[n] = (struct mr_worker_map){.lane = i, .worker = w};
				g->workers[n] = (struct mr_gpu_worker){
					.lane = i, .worker = w, .kernel = kernel};
				n++;
				launch[kernel].blocks++;
			}
	}
}

static int upload(struct mr_gpu *g, const struct mr_gpu_lane *lanes, struct image *im,
	uint32_t host_timeout_ms, uint32_t backoff_ns, struct mr_err *err)
{
	struct mr_lane_dev *dev = (struct mr_lane_dev *)im->data;
	struct mr_launch *launch = (struct mr_launch *)(im->data + im->launches);
	uint64_t base, host_ctl, counters, taps;
	void *host;
	int rc;

	rc = mr_gpu_device_alloc(g, im->bytes, "lanes and counters", &g->device, err);
	if (rc == 0)
		rc = address(g, g->device, &base, err);
	if (rc == 0)
		rc = host_alloc(
			g, sizeof(*g->host_ctl) + MR_GPU_TAP_BYTES, "control words", &host, err);
	if (rc < 0)
		return rc;
	g->host_ctl = host;
	rc = address(g, g->host_ctl, &host_ctl, err);
	if (rc < 0)
		return rc;
	memset(g->host_ctl, 0, sizeof(*g->host_ctl));
	mr_gpu_tap_init(g, g->host_ctl + 1, host_ctl + sizeof(*g->host_ctl));
	counters = base + im->counters;
	taps = base + im->taps;
	for (uint32_t i = 0; rc == 0 && i < g->lanes_count; i++) {
		rc = prepare_lane(g, i, &lanes[i], &dev[i], err);
		dev[i].counters_acc = counters;
		dev[i].tap = taps;
		taps += lanes[i].workers * sizeof(struct mr_tap);
		g->lanes[i].chain = base + i * sizeof(*dev) + offsetof(struct mr_lane_dev, chain);
		counters += counters_bytes(&lanes[i]);
	}
	if (rc == 0)
		rc = mr_gpu_states_make(g, lanes, dev, err);
	if (rc < 0)
		return rc;
	number_workers(g, (struct mr_worker_map *)(im->data + im->maps), launch, base + im->maps);
	for (uint32_t k = 0; k < MR_GPU_KERNELS_MAX; k++) {
		launch[k].lanes = base;
		launch[k].host_ctl = host_ctl;
		launch[k].host_timeout_ns = (uint64_t)host_timeout_ms * 1000000u;
		launch[k].backoff_ns = backoff_ns;
		g->blocks[k] = launch[k].blocks;
	}
	g->launches = base + im->launches;
	return mr_gpu_drv_upload(g->drv, base, im->data, im->bytes, err);
}

/* What the plan has checked is checked again where breaking it would run over memory. */
static int check_lane(const struct mr_gpu *g, const struct mr_gpu_lane *l, struct mr_err *err)
{
	const char *wrong = NULL;

	if (l->workers < 1 || l->workers > MR_WORKERS_MAX)
		wrong = "too few or too many workers";
	else if (l->stages_count > MR_CHAIN_MAX)
		wrong = "too many stages";
	else if (l->tx_count > MR_TX_MAX)
		wrong = "too many entries in its tx list";
	else if ((l->region == NULL || (l->tx_copy && l->tx_region == NULL)) && l->copier == NULL)
		wrong = "no packet memory";
	else if ((l->region != NULL && l->room > l->region->bytes) ||
		(l->tx_region != NULL && l->room > l->tx_region->bytes))
		wrong = "buffers larger than their region";
	else if (l->copier != NULL && l->room % MR_UNIT != 0)
		wrong = "buffers that are not of whole units";
	else if ((uint64_t)l->slots * l->batch * l->room / MR_UNIT > UINT32_MAX)
		wrong = "more buffers in its slots than positions reach";
	else if (l->work == MR_WORK_ORDER && l->workers != 1)
		wrong = "an order to keep, but several workers";
	for (uint32_t i = 0; wrong == NULL && i < l->stages_count; i++) {
		const struct mr_gpu_stage *s = &l->stages[i];

		if (s->desc->work > l->work ||
			(mr_stage_in_order(s->desc) && l->work != MR_WORK_ORDER))
			wrong = "a stage that its kernel does not run";
		else if (s->counter_base > MR_COUNTERS_MAX ||
			s->desc->counters_count > MR_COUNTERS_MAX - s->counter_base)
			wrong = "more counters than its block holds";
	}
	if (wrong != NULL)
		return mr_err_set(
			err, -EINVAL, "device '%s': lane '%s' has %s", g->name, l->name, wrong);
	return 0;
}

/* Numbers the images that lanes use, the built-in one first, and the lanes' kernels. */
static int number_kernels(struct mr_gpu *g, const struct mr_gpu_lane *lanes, struct mr_err *err)
{
	g->images = 1;
	for (uint32_t i = 0; i < g->lanes_count; i++) {
		uint32_t m = 0;

		while (m < g->images && g->image[m] != lanes[i].plugin)
			m++;
		if (m == MR_GPU_IMAGES_MAX)
			return mr_err_set(err, -EINVAL,
				"device '%s': its lanes use more than %u "
				"plug-ins",
				g->name, MR_GPU_IMAGES_MAX - 1);
		if (m == g->images)
			g->image[g->images++] = lanes[i].plugin;
		g->lanes[i].kernel = m * MR_WORK_COUNT + lanes[i].work;
	}
	return 0;
}

struct load_job {
	struct mr_gpu *g;
	const struct mr_gpu_lane *lanes;
	uint32_t host_timeout_ms, backoff_ns;
	struct image image;
};

static int load_job(void *arg, struct mr_err *err)
{
	struct load_job *j = arg;
	int rc = upload(j->g, j->lanes, &j->image, j->host_timeout_ms, j->backoff_ns, err);

	if (rc == 0)
		rc = mr_gpu_kernels_load(j->g, err);
	if (rc < 0 && mr_gpu_launch_free(j->g, err) == -ETIMEDOUT)
		return -ETIMEDOUT;
	return rc;
}

int mr_gpu_load(struct mr_gpu *g, const struct mr_gpu_lane *lanes, uint32_t lanes_count,
	uint32_t host_timeout_ms, uint32_t backoff_ns, struct mr_err *err)
{
	struct load_job job = {g, lanes, host_timeout_ms, backoff_ns, {0}};
	struct mr_err why = {0};
	int rc = 0;

	if (g->loaded)
		return mr_err_set(err, -EALREADY, "device '%s': loaded before", g->name);
	if (lanes_count == 0)
		return mr_err_set(err, -EINVAL, "device '%s': no lanes to launch", g->name);
	for (uint32_t i = 0; rc == 0 && i < lanes_count; i++)
		rc = check_lane(g, &lanes[i], err);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < lanes_count; i++)
		g->workers_count += lanes[i].workers;
	job.image = image_layout(lanes, lanes_count, g->workers_count);
	job.image.data = calloc(1, job.image.bytes);
	g->lanes = calloc(lanes_count, sizeof(*g->lanes));
	g->workers = calloc(g->workers_count, sizeof(*g->workers));
	g->lanes_count = lanes_count;
	g->loaded = true;
	for (uint32_t i = 0; g->lanes != NULL && i < lanes_count; i++)
		mr_gpu_call_init(&g->lanes[i].call);
	if (job.image.data == NULL || g->lanes == NULL || g->workers == NULL)
		rc = mr_err_set(&why, -ENOMEM, "device '%s': out of memory", g->name);
	else
		rc = number_kernels(g, lanes, &why);
	if (rc == 0)
		rc = mr_gpu_job(g->name, "loading its kernels", g->driver_ms, load_job, &job, &why);
	if (rc == -ETIMEDOUT) {
		mr_gpu_abandon(g, &why);
		return mr_err_set(err, rc, "%s", why.msg);
	}
	free(job.image.data);
	return rc < 0 ? mr_err_set(err, rc, "%s", why.msg) : 0;
}

int mr_gpu_launch_free(struct mr_gpu *g, struct mr_err *err)
{
	bool gone = mr_gpu_stop(g, LEAVE_MS, NULL) == 0;

	/* The prober is in the driver still, and everything here is its own. */
	if (g->abandoned)
		return mr_err_set(err, -ETIMEDOUT, "%s", g->lost.msg);
	/* A kernel that stays keeps its memory; only the process's end takes it. */
	for (uint32_t k = 0; gone && k < MR_GPU_KERNELS_MAX; k++)
		if (g->launch[k] != NULL && mr_gpu_drv_launch_free(g->launch[k], NULL) < 0)
			gone = false;
	for (uint32_t m = 0; gone && m < g->images; m++)
		if (g->module[m] != NULL)
			(void)!mr_gpu_drv_module_unload(g->module[m], NULL);
	for (uint32_t i = 0; gone && g->lanes != NULL && i < g->lanes_count; i++) {
		struct mr_gpu_lane_run *l = &g->lanes[i];

		mr_gpu_call_fini(&l->call);
		mr_gpu_copier_free(g, l);
		if (l->tables_device != NULL)
			(void)rte_gpu_mem_free(g->id, l->tables_device);
		if (l->in_map != NULL)
			(void)rte_gpu_mem_cpu_unmap(g->id, l->in_device);
		if (l->in_device != NULL)
			(void)rte_gpu_mem_free(g->id, l->in_device);
		if (l->host != NULL)
			(void)!mr_gpu_drv_host_free(g->drv, l->host, NULL);
	}
	if (gone)
		mr_gpu_states_free(g);
	if (gone && g->host_ctl != NULL)
		(void)!mr_gpu_drv_host_free(g->drv, g->host_ctl, NULL);
	if (gone && g->device != NULL)
		(void)rte_gpu_mem_free(g->id, g->device);
	free(g->shared);
	free(g->lanes);
	free(g->workers);
	g->shared = NULL;
	g->shared_count = 0;
	g->lanes = NULL;
	g->workers = NULL;
	g->host_ctl = NULL;
	g->device = NULL;
	memset(g->module, 0, sizeof(g->module));
	g->images = 0;
	memset(g->launch, 0, sizeof(g->launch));
	g->lanes_count = 0;
	g->workers_count = 0;
	return gone ? 0 : -EBUSY;
}
