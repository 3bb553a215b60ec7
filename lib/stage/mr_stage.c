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

static const struct mr_stage_desc *const stages[MR_STAGE_COUNT] = {
#define STAGE(name, work) [MR_STAGE_##name] = &mr_stage_desc_##name,
#include "mr_stages.def"
#undef STAGE
};

static const char *const reasons[MR_REASON_COUNT] = {
#define REASON(name, help) [MR_REASON_##name] = #name,
#include "mr_reasons.def"
#undef REASON
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

static const struct mr_param_desc *param_find(const struct mr_stage_desc *stage, const char *name)
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

static int param_u32(const struct mr_stage_desc *stage, const struct mr_param_desc *p,
	const char *value, uint32_t *ret_value, struct mr_err *err)
{
	size_t digits = strspn(value, "0123456789");
	uint64_t v = 0;

	if (digits == 0 || value[digits] != '\0' || (digits > 1 && value[0] == '0'))
		return mr_err_set(err, -EINVAL,
			"parameter '%s' of stage '%s' takes a decimal number, not '%.40s'", p->name,
			stage->name, value);
	for (size_t i = 0; i < digits && v <= UINT32_MAX; i++)
		v = v * 10 + (uint64_t)(value[i] - '0');
	if (v < p->min || v > p->max)
		return mr_err_set(err, -ERANGE,
			"parameter '%s' of stage '%s' is %.40s, outside %u to %u%s%s", p->name,
			stage->name, value, p->min, p->max, *p->unit != '\0' ? " " : "", p->unit);
	*ret_value = (uint32_t)v;
	return 0;
}

static int param_reason(const struct mr_stage_desc *stage, const struct mr_param_desc *p,
	const char *value, uint32_t *ret_value, struct mr_err *err)
{
	struct mr_nearest n;
	const char *near;

	mr_nearest_init(&n, value);
	for (uint32_t i = 0; i < MR_REASON_COUNT; i++) {
		if (strcmp(reasons[i], value) == 0) {
			*ret_value = i;
			return 0;
		}
		mr_nearest_offer(&n, reasons[i]);
	}
	near = mr_nearest_get(&n);
	return mr_err_set(err, -EINVAL,
		"parameter '%s' of stage '%s' takes a drop reason, not '%.40s'; %s '%s'%s", p->name,
		stage->name, value, near != NULL ? "did you mean" : "use",
		near != NULL ? near : p->def,
		near != NULL ? "?" : " or another row of mr_reasons.def");
}

int mr_stage_param_set(const struct mr_stage_desc *stage, const char *name, const char *value,
	uint8_t params[MR_PARAM_BYTES], struct mr_err *err)
{
	const struct mr_param_desc *p = param_find(stage, name);
	uint32_t v = 0;
	int rc = -EINVAL;

	if (p == NULL)
		return param_unknown(stage, name, err);
	switch (p->type) {
	case MR_PARAM_U32:
		rc = param_u32(stage, p, value, &v, err);
		break;
	case MR_PARAM_REASON:
		rc = param_reason(stage, p, value, &v, err);
		break;
	}
	if (rc == 0)
		memcpy(params + p->offset, &v, sizeof(v));
	return rc;
}

void mr_stage_param_defaults(const struct mr_stage_desc *stage, uint8_t params[MR_PARAM_BYTES])
{
	memset(params, 0, MR_PARAM_BYTES);
	for (uint32_t i = 0; i < stage->params_count; i++) {
		const struct mr_param_desc *p = &stage->params[i];

		/* The unit test proves that every default is accepted. */
		if (mr_stage_param_set(stage, p->name, p->def, params, NULL) != 0)
			memset(params + p->offset, 0, sizeof(uint32_t));
	}
}

const char *mr_work_name(enum mr_work work)
{
	return work == MR_WORK_WARP ? "warp" : "thread";
}

const char *mr_reason_name(enum mr_reason reason)
{
	return (uint32_t)reason < MR_REASON_COUNT ? reasons[reason] : "unknown";
}
