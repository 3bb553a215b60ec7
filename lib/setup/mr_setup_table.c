/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_setup_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Says what is wrong with a table, at the line of the configuration that names its file. */
static void tell_errors(const struct mr_config *cfg, const char *key, const char *file,
	const struct mr_table_errors *errors, struct mr_problems *problems)
{
	uint32_t line = cfg != NULL ? mr_config_line(cfg, key) : 0;
	uint32_t kept = errors->count < MR_TABLE_ERRORS_MAX ? errors->count : MR_TABLE_ERRORS_MAX;

	for (uint32_t i = 0; i < kept; i++) {
		if (errors->e[i].line == 0)
			mr_problem_add(
				problems, line, key, "", "'%s' %s", file, errors->e[i].message);
		else
			mr_problem_add(problems, line, key, "", "%s:%u: %s", file,
				errors->e[i].line, errors->e[i].message);
	}
	if (errors->count > kept)
		mr_problem_add(problems, line, key, "", "%s: and %u more mistakes", file,
			errors->count - kept);
}

static int build(const struct mr_config *cfg, const struct mr_plan *plan, uint32_t lane,
	uint32_t stage, struct mr_setup_table *t, struct mr_problems *problems)
{
	const struct mr_plan_lane *l = &plan->lanes[lane];
	const struct mr_stage_desc *desc = l->stages[stage].desc;
	const char *tx[MR_TX_MAX];
	const struct mr_param_env env = {tx, l->tx_count};
	struct mr_table_errors errors;
	char key[96];
	int rc;

	for (uint32_t i = 0; i < l->tx_count; i++)
		tx[i] = plan->ports[l->tx[i].port].name;
	rc = mr_stage_table_build(
		desc, l->stages[stage].params, &env, &t->data, &t->bytes, &errors);
	if (rc == 0)
		return 0;
	snprintf(key, sizeof(key), "lanes[%u].stages[%u].params.%s", lane, stage - l->stages_added,
		desc->table->file);
	if (rc == -ENOMEM)
		mr_problem_add(problems, 0, key, "", "out of memory for its table");
	else
		tell_errors(cfg, key, mr_stage_table_file(desc, l->stages[stage].params), &errors,
			problems);
	return rc;
}

int mr_setup_tables_build(const struct mr_config *cfg, const struct mr_plan *plan,
	struct mr_setup_tables *ret_tables, struct mr_problems *problems)
{
	int rc = 0;

	memset(ret_tables, 0, sizeof(*ret_tables));
	for (uint32_t i = 0; i < plan->lanes_count; i++)
		for (uint32_t k = 0; k < plan->lanes[i].stages_count; k++) {
			const struct mr_plan_stage *stage = &plan->lanes[i].stages[k];

			if (stage->desc->table == NULL)
				continue;
			if (*mr_stage_table_file(stage->desc, stage->params) != '\0')
				ret_tables->from_files++;
			if (build(cfg, plan, i, k, &ret_tables->of[i][k], problems) < 0)
				rc = -EINVAL;
		}
	if (rc < 0)
		mr_setup_tables_free(ret_tables);
	return rc;
}

void mr_setup_tables_free(struct mr_setup_tables *tables)
{
	for (uint32_t i = 0; i < MR_LANES_MAX; i++)
		for (uint32_t k = 0; k < MR_CHAIN_MAX; k++)
			free(tables->of[i][k].data);
	memset(tables, 0, sizeof(*tables));
}

void mr_setup_tables_give(const struct mr_setup_tables *tables, const struct mr_plan *plan,
	uint32_t lane, struct mr_gpu_stage stages[MR_CHAIN_MAX])
{
	const struct mr_plan_lane *l = &plan->lanes[lane];

	for (uint32_t k = 0; k < l->stages_count; k++) {
		const struct mr_table_desc *desc = l->stages[k].desc->table;

		memcpy(stages[k].params, l->stages[k].params, sizeof(stages[k].params));
		stages[k].table = tables->of[lane][k].data;
		stages[k].table_bytes = tables->of[lane][k].bytes;
		stages[k].table_room = desc != NULL ? desc->bytes(stages[k].params) : 0;
	}
}

static bool same_state(const struct mr_stage_desc *stage, const uint8_t *before, const uint8_t *now)
{
	return mr_stage_lane_bytes(stage, now) == mr_stage_lane_bytes(stage, before) &&
		mr_stage_device_bytes(stage, now) == mr_stage_device_bytes(stage, before);
}

/* The first parameter whose change alone asks for another state; NULL: no single one does. */
static const char *state_param(
	const struct mr_stage_desc *stage, const uint8_t *before, const uint8_t *now)
{
	for (uint32_t i = 0; i < stage->params_count; i++) {
		const struct mr_param_desc *p = &stage->params[i];
		uint8_t params[MR_PARAM_BYTES] __attribute__((aligned(8)));

		if (p->list_max != 0)
			continue;
		memcpy(params, before, sizeof(params));
		memcpy(params + p->offset, now + p->offset, mr_param_bytes(p->type));
		if (!same_state(stage, before, params))
			return p->name;
	}
	return NULL;
}

/* The kernels have the state that they were started with. */
static void check_state(const struct mr_config *cfg, const struct mr_plan_stage *before,
	const struct mr_plan_stage *now, uint32_t lane, uint32_t stage,
	struct mr_problems *problems)
{
	const char *param = state_param(now->desc, before->params, now->params);
	char key[96];

	if (same_state(now->desc, before->params, now->params))
		return;
	snprintf(key, sizeof(key), "lanes[%u].stages[%u].params%s%s", lane, stage,
		param != NULL ? "." : "", param != NULL ? param : "");
	mr_problem_add(problems, mr_config_line(cfg, key), key,
		"put the old value back, or stop the instance and start it with this file",
		"cannot change while the instance runs, since what the stage keeps has its size");
}

int mr_setup_tables_fit(const struct mr_config *cfg, const struct mr_plan *before,
	const struct mr_plan *now, struct mr_problems *problems)
{
	uint32_t count = problems->count;

	for (uint32_t i = 0; i < now->lanes_count; i++)
		for (uint32_t k = 0; k < now->lanes[i].stages_count; k++) {
			const struct mr_table_desc *desc = now->lanes[i].stages[k].desc->table;
			char key[96];

			check_state(cfg, &before->lanes[i].stages[k], &now->lanes[i].stages[k], i,
				k - now->lanes[i].stages_added, problems);
			if (desc == NULL ||
				desc->bytes(now->lanes[i].stages[k].params) <=
					desc->bytes(before->lanes[i].stages[k].params))
				continue;
			snprintf(key, sizeof(key), "lanes[%u].stages[%u].params.%s", i,
				k - now->lanes[i].stages_added, desc->capacity);
			mr_problem_add(problems, mr_config_line(cfg, key), key,
				"put the old value back, or stop the instance and start it with "
				"this file",
				"cannot grow while the instance runs");
		}
	return problems->count == count ? 0 : -EINVAL;
}

int mr_setup_check_tables(
	const struct mr_config *cfg, const struct mr_plan *plan, struct mr_problems *problems)
{
	struct mr_setup_tables *tables = malloc(sizeof(*tables));
	int rc;

	if (tables == NULL) {
		mr_problem_add(problems, 0, "", "", "out of memory");
		return -EINVAL;
	}
	rc = mr_setup_tables_build(cfg, plan, tables, problems);
	if (rc == 0)
		mr_setup_tables_free(tables);
	free(tables);
	return rc;
}
