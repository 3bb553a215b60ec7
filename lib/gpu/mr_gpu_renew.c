/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_priv.h"

#include <errno.h>
#include <rte_gpudev.h>
#include <stddef.h>

static int upload_table(struct mr_gpu *g, const struct mr_gpu_lane_run *run, uint32_t stage,
	uint32_t half, const struct mr_gpu_stage *s, struct mr_err *err)
{
	if (s->table == NULL)
		return 0;
	if (s->table_bytes > run->table_room[stage])
		return mr_err_set(err, -ENOSPC,
			"device '%s', lane '%s': a table of %zu bytes, there is room for %zu",
			g->name, run->name, s->table_bytes, run->table_room[stage]);
	return mr_gpu_drv_upload(g->drv, run->table[stage] + half * run->table_room[stage],
		s->table, s->table_bytes, err);
}

int mr_gpu_tables_make(struct mr_gpu *g, const struct mr_gpu_lane *l, struct mr_gpu_lane_run *run,
	struct mr_lane_dev *dev, struct mr_err *err)
{
	size_t bytes = 0;
	uint64_t at;
	int rc;

	for (uint32_t i = 0; i < l->stages_count; i++) {
		run->table_room[i] = MR_ALIGN_UP(l->stages[i].table_room, MR_CACHE_LINE);
		bytes += 2 * run->table_room[i];
	}
	if (bytes == 0)
		return 0;
	rc = mr_gpu_device_alloc(g, bytes, "tables", &run->tables_device, err);
	if (rc == 0)
		rc = mr_gpu_drv_kernel_address(g->drv, run->tables_device, &at, err);
	for (uint32_t i = 0; rc == 0 && i < l->stages_count; i++) {
		if (run->table_room[i] == 0)
			continue;
		run->table[i] = at;
		dev->chain[i].table[0] = at;
		dev->chain[i].table[1] = at + run->table_room[i];
		at += 2 * run->table_room[i];
		rc = upload_table(g, run, i, 0, &l->stages[i], err);
	}
	return rc;
}

struct renew_job {
	struct mr_gpu *g;
	const struct mr_gpu_lane_run *lane;
	const struct mr_gpu_stage *stages;
	uint32_t half; /* to be written */
};

static int renew_job(void *arg, struct mr_err *err)
{
	const struct renew_job *j = arg;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < j->lane->stages; i++) {
		rc = upload_table(j->g, j->lane, i, j->half, &j->stages[i], err);
		if (rc < 0)
			return rc;
		rc = mr_gpu_drv_upload(j->g->drv,
			j->lane->chain + i * sizeof(struct mr_chain_dev) +
				offsetof(struct mr_chain_dev, params) + j->half * MR_PARAM_BYTES,
			j->stages[i].params, MR_PARAM_BYTES, err);
	}
	return rc;
}

int mr_gpu_renew(struct mr_gpu *g, uint32_t lane, const struct mr_gpu_stage *stages,
	mr_gpu_meanwhile *meanwhile, void *ctx, struct mr_err *err)
{
	struct renew_job job = {
		g, &g->lanes[lane], stages, 1 - mr_load_relaxed(&g->host_ctl->generation) % 2};
	struct mr_err why = {0};
	int rc;

	if (mr_gpu_taken(g, err) < 0)
		return -EBUSY;
	if (g->abandoned)
		return mr_err_set(err, -ETIMEDOUT, "%s", g->lost.msg);
	/* Who watches meanwhile may find a reason to wait less long. */
	rc = mr_gpu_job_meanwhile(g->name, "writing tables and parameters", &g->driver_ms,
		renew_job, &job, meanwhile, ctx, &why);
	if (rc == -ETIMEDOUT)
		mr_gpu_abandon(g, &why);
	return rc < 0 ? mr_err_set(err, rc, "%s", why.msg) : 0;
}

void mr_gpu_publish(struct mr_gpu *g)
{
	uint32_t *word = &g->host_ctl->generation;

	mr_store_release(word, mr_load_relaxed(word) + 1);
}

int mr_gpu_taken(const struct mr_gpu *g, struct mr_err *err)
{
	uint32_t generation = mr_load_relaxed(&g->host_ctl->generation);

	for (uint32_t i = 0; i < g->workers_count; i++) {
		const struct mr_gpu_worker *w = &g->workers[i];
		const struct mr_gpu_lane_run *l = &g->lanes[w->lane];

		if (mr_load_acquire(&l->ctl[w->worker].generation) != generation)
			return mr_err_set(err, -EAGAIN,
				"device '%s': worker %u of lane '%s' has not yet taken the last "
				"reload",
				g->name, w->worker, l->name);
	}
	return 0;
}
