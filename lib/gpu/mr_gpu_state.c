/* SPDX-License-Identifier: BSD-3-Clause */
/* What stages keep between packets: GPU memory beside packet memory, which no NIC reaches. */
#include "mr_gpu_priv.h"

#include <errno.h>
#include <rte_gpudev.h>
#include <stdlib.h>

#define ZEROES ((size_t)1 << 20) /* bytes of one copy */

static int zero(struct mr_gpu *g, uint64_t at, uint64_t bytes, struct mr_err *err)
{
	uint8_t *none = calloc(1, ZEROES);
	int rc = 0;

	if (none == NULL)
		return mr_err_set(err, -ENOMEM, "device '%s': out of memory", g->name);
	for (uint64_t done = 0; rc == 0 && done < bytes; done += ZEROES)
		rc = mr_gpu_drv_upload(g->drv, at + done, none,
			bytes - done < ZEROES ? bytes - done : ZEROES, err);
	free(none);
	return rc;
}

/* Memory of one stage; kind is whose it is, for the sentence. */
static int make(struct mr_gpu *g, const char *lane, const struct mr_stage_desc *stage,
	uint64_t bytes, const char *kind, void **ret_memory, uint64_t *ret_address,
	struct mr_err *err)
{
	const char *capacity = stage->state->capacity;
	struct mr_err why = {0};
	int rc;

	if (bytes > MR_STATE_MAX)
		rc = mr_err_set(&why, -ENOSPC, "device '%s': at most %llu bytes", g->name,
			(unsigned long long)MR_STATE_MAX);
	else
		rc = mr_gpu_device_alloc(
			g, MR_ALIGN_UP(bytes, MR_GPU_PAGE), "what a stage keeps", ret_memory, &why);
	if (rc < 0)
		return mr_err_set(err, rc,
			"device '%s', lane '%s': stage '%s' keeps %llu bytes for %s, which it "
			"does not get: %s; %s%s%s",
			g->name, lane, stage->name, (unsigned long long)bytes, kind,
			mr_gpu_words(g, &why), capacity != NULL ? "lower its parameter '" : "",
			capacity != NULL ? capacity : "leave the stage out of the chain",
			capacity != NULL ? "', or the device's region" : "");
	rc = mr_gpu_drv_kernel_address(g->drv, *ret_memory, ret_address, err);
	return rc == 0 ? zero(g, *ret_address, bytes, err) : rc;
}

static int make_own(struct mr_gpu *g, const struct mr_gpu_lane *l, struct mr_gpu_lane_run *run,
	struct mr_lane_dev *dev, struct mr_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < l->stages_count; i++) {
		const struct mr_gpu_stage *s = &l->stages[i];
		uint64_t bytes = mr_stage_lane_bytes(s->desc, s->params);

		if (bytes != 0)
			rc = make(g, l->name, s->desc, bytes, "this lane", &run->state[i],
				&dev->chain[i].state, err);
	}
	return rc;
}

/* The most that a lane's chain wants of a stage's memory of the device. */
static uint64_t shared_bytes(
	const struct mr_gpu *g, const struct mr_gpu_lane *lanes, const struct mr_stage_desc *stage)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < g->lanes_count; i++)
		for (uint32_t k = 0; k < lanes[i].stages_count; k++) {
			const struct mr_gpu_stage *s = &lanes[i].stages[k];
			uint64_t bytes =
				s->desc == stage ? mr_stage_device_bytes(stage, s->params) : 0;

			most = bytes > most ? bytes : most;
		}
	return most;
}

static void tell_shared(const struct mr_gpu *g, const struct mr_gpu_lane *lanes,
	const struct mr_stage_desc *stage, uint64_t address, struct mr_lane_dev *dev)
{
	for (uint32_t i = 0; i < g->lanes_count; i++)
		for (uint32_t k = 0; k < lanes[i].stages_count; k++)
			if (lanes[i].stages[k].desc == stage)
				dev[i].chain[k].shared = address;
}

static int make_shared(struct mr_gpu *g, const struct mr_gpu_lane *lanes, struct mr_lane_dev *dev,
	struct mr_err *err)
{
	g->shared = calloc((size_t)g->lanes_count * MR_CHAIN_MAX, sizeof(*g->shared));
	if (g->shared == NULL)
		return mr_err_set(err, -ENOMEM, "device '%s': out of memory", g->name);
	for (uint32_t i = 0; i < g->lanes_count; i++)
		for (uint32_t k = 0; k < lanes[i].stages_count; k++) {
			const struct mr_stage_desc *stage = lanes[i].stages[k].desc;
			uint64_t bytes = shared_bytes(g, lanes, stage), address;
			int rc;

			if (bytes == 0 || dev[i].chain[k].shared != 0)
				continue;
			rc = make(g, lanes[i].name, stage, bytes, "the device",
				&g->shared[g->shared_count++], &address, err);
			if (rc < 0)
				return rc;
			tell_shared(g, lanes, stage, address, dev);
		}
	return 0;
}

int mr_gpu_states_make(struct mr_gpu *g, const struct mr_gpu_lane *lanes, struct mr_lane_dev *dev,
	struct mr_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < g->lanes_count; i++)
		rc = make_own(g, &lanes[i], &g->lanes[i], &dev[i], err);
	return rc == 0 ? make_shared(g, lanes, dev, err) : rc;
}

void mr_gpu_states_free(struct mr_gpu *g)
{
	for (uint32_t i = 0; g->lanes != NULL && i < g->lanes_count; i++)
		for (uint32_t k = 0; k < MR_CHAIN_MAX; k++)
			if (g->lanes[i].state[k] != NULL)
				(void)rte_gpu_mem_free(g->id, g->lanes[i].state[k]);
	for (uint32_t i = 0; i < g->shared_count; i++)
		if (g->shared[i] != NULL)
			(void)rte_gpu_mem_free(g->id, g->shared[i]);
}
