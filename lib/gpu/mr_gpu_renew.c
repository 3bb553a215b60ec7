/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_priv.h"

#include <errno.h>
#include <stddef.h>

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

	for (uint32_t i = 0; rc == 0 && i < j->lane->stages; i++)
		rc = mr_gpu_drv_upload(j->g->drv,
			j->lane->chain + i * sizeof(struct mr_chain_dev) +
				offsetof(struct mr_chain_dev, params) + j->half * MR_PARAM_BYTES,
			j->stages[i].params, MR_PARAM_BYTES, err);
	return rc;
}

int mr_gpu_renew(
	struct mr_gpu *g, uint32_t lane, const struct mr_gpu_stage *stages, struct mr_err *err)
{
	struct renew_job job = {
		g, &g->lanes[lane], stages, 1 - mr_load_relaxed(&g->host_ctl->generation) % 2};
	struct mr_err why = {0};
	int rc;

	if (mr_gpu_taken(g, err) < 0)
		return -EBUSY;
	if (g->abandoned)
		return mr_err_set(err, -ETIMEDOUT, "%s", g->lost.msg);
	rc = mr_gpu_job(g->name, "writing parameters", g->driver_ms, renew_job, &job, &why);
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
