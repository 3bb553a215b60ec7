/* SPDX-License-Identifier: BSD-3-Clause */
#define MR_STAGE_DESCRIBE 1
#include "mr_stage.h"

#include "mr_nearest.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/*
 * The stage sources again, for their tables. The include list cannot come from
 * mr_stages.def, since the preprocessor builds no file names from rows; a stage
 * that is missing here does not compile below.
 */
#include "mr_stage_forward.cu"
#include "mr_stage_l2swap.cu"
#include "mr_stage_drop.cu"
#include "mr_stage_checksum.cu"
#include "mr_stage_match.cu"
#include "mr_stage_reflect.cu"
#include "mr_stage_filter.cu"
#include "mr_stage_route.cu"
#include "mr_stage_seqtrack.cu"
#include "mr_stage_unpack.cu"

static const struct mr_stage_desc *const stages[MR_STAGE_COUNT] = {
#define STAGE(name, work) [MR_STAGE_##name] = &mr_stage_desc_##name,
#include "mr_stages.def"
#undef STAGE
};

const struct mr_stage_desc *mr_stage_at(uint32_t i)
{
	return i < MR_STAGE_COUNT ? stages[i] : NULL;
}

const struct mr_stage_desc *mr_stage_find(const char *name)
{
	for (uint32_t i = 0; i < MR_STAGE_COUNT; i++)
		if (strcmp(stages[i]->name, name) == 0)
			return stages[i];
	return NULL;
}

const struct mr_param_desc *mr_stage_param_find(const struct mr_stage_desc *stage, const char *name)
{
	for (uint32_t i = 0; i < stage->params_count; i++)
		if (strcmp(stage->params[i].name, name) == 0)
			return &stage->params[i];
	return NULL;
}

static int param_unknown(const struct mr_stage_desc *stage, const char *name, struct mr_err *err)
{
	struct mr_nearest n;
	const char *near;

	if (stage->params_count == 0)
		return mr_err_set(err, -ENOENT, "stage '%s' has no parameters, so no '%.40s'",
			stage->name, name);
	mr_nearest_init(&n, name);
	for (uint32_t i = 0; i < stage->params_count; i++)
		mr_nearest_offer(&n, stage->params[i].name);
	near = mr_nearest_get(&n);
	if (near == NULL)
		near = stage->params[0].name;
	return mr_err_set(err, -ENOENT, "stage '%s' has no parameter '%.40s'; did you mean '%s'?",
		stage->name, name, near);
}

int mr_stage_param_set(const struct mr_stage_desc *stage, const char *name, const char *value,
	const struct mr_param_env *env, uint8_t params[MR_PARAM_BYTES], struct mr_err *err)
{
	const struct mr_param_desc *p = mr_stage_param_find(stage, name);

	if (p == NULL)
		return param_unknown(stage, name, err);
	return mr_param_parse(p, stage->name, value, env, params, err);
}

void mr_stage_param_defaults(const struct mr_stage_desc *stage, uint8_t params[MR_PARAM_BYTES])
{
	memset(params, 0, MR_PARAM_BYTES);
	/* The unit test proves that every default is accepted. */
	for (uint32_t i = 0; i < stage->params_count; i++)
		if (mr_param_parse(&stage->params[i], stage->name, stage->params[i].def, NULL,
			    params, NULL) != 0)
			continue;
}

uint64_t mr_stage_lane_bytes(
	const struct mr_stage_desc *stage, const uint8_t params[MR_PARAM_BYTES])
{
	return stage->state != NULL && stage->state->lane_bytes != NULL
		? stage->state->lane_bytes(params)
		: 0;
}

uint64_t mr_stage_device_bytes(
	const struct mr_stage_desc *stage, const uint8_t params[MR_PARAM_BYTES])
{
	return stage->state != NULL && stage->state->device_bytes != NULL
		? stage->state->device_bytes(params)
		: 0;
}

const char *mr_work_name(enum mr_work work)
{
	static const char *const names[] = {"thread", "warp", "order"};

	return names[work];
}
