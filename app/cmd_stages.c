/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd.h"
#include "mr_plugins.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The words of a parameter that takes one of a set, NULL behind the last. */
static const char *param_word(const struct mr_param_desc *p, uint32_t i)
{
	if (p->type == MR_PARAM_WORD)
		return p->words[i];
	return p->type == MR_PARAM_REASON && i < MR_REASON_COUNT ? mr_reason_name((enum mr_reason)i)
								 : NULL;
}

/* Of a MAC, max says that it may be of a group. */
static bool has_bounds(const struct mr_param_desc *p)
{
	return p->max > 0 && p->type != MR_PARAM_MAC;
}

void mr_cmd_print_param_kind(FILE *f, const struct mr_param_desc *p)
{
	fprintf(f, "%s%s", mr_param_type_name(p->type), p->list_max > 0 ? "s" : "");
	for (uint32_t i = 0; param_word(p, i) != NULL; i++)
		fprintf(f, "%s%s", i == 0 ? ": " : ", ", param_word(p, i));
	if (p->list_max > 0)
		fprintf(f, ", at most %u", p->list_max);
	if (has_bounds(p))
		fprintf(f, ", %" PRIu64 " to %" PRIu64, p->min, p->max);
	fprintf(f, "%s%s; default %s", *p->unit != '\0' ? " " : "", p->unit,
		*p->def != '\0' ? p->def : "none");
}

static void print_param(const struct mr_param_desc *p)
{
	printf("    %-12s %s; ", p->name, p->help);
	mr_cmd_print_param_kind(stdout, p);
	printf("\n");
}

static void print_stage(const struct mr_stage_desc *s)
{
	printf("%-12s %s\n", s->name, s->help);
	printf("  a packet per %s%s\n", s->work == MR_WORK_WARP ? "warp" : "thread",
		mr_stage_in_order(s) ? ", in order: one worker" : "");
	if (s->params_count > 0)
		printf("  parameters\n");
	for (uint32_t i = 0; i < s->params_count; i++)
		print_param(&s->params[i]);
	if (s->counters_count > 0)
		printf("  counters\n");
	for (uint32_t i = 0; i < s->counters_count; i++)
		printf("    %-12s %s\n", s->counters[i].name, s->counters[i].help);
}

static json_t *param_json(const struct mr_param_desc *p)
{
	json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", p->name, "type",
		mr_param_type_name(p->type), "default", p->def, "unit", p->unit, "help", p->help);
	json_t *words = json_array();

	if (has_bounds(p)) {
		json_object_set_new(j, "min", json_integer((json_int_t)p->min));
		json_object_set_new(j, "max", json_integer((json_int_t)p->max));
	}
	if (p->list_max > 0)
		json_object_set_new(j, "list_max", json_integer(p->list_max));
	for (uint32_t i = 0; param_word(p, i) != NULL; i++)
		json_array_append_new(words, json_string(param_word(p, i)));
	if (json_array_size(words) > 0)
		json_object_set(j, "words", words);
	json_decref(words);
	return j;
}

/* plugin: its path, or NULL for a built-in stage. */
static json_t *stage_json(const struct mr_stage_desc *s, const char *plugin)
{
	json_t *params = json_array();
	json_t *counters = json_array();
	json_t *j;

	for (uint32_t i = 0; i < s->params_count; i++)
		json_array_append_new(params, param_json(&s->params[i]));
	for (uint32_t i = 0; i < s->counters_count; i++)
		json_array_append_new(counters,
			json_pack("{s:s, s:s}", "name", s->counters[i].name, "help",
				s->counters[i].help));
	j = json_pack("{s:s, s:s, s:s, s:b, s:o, s:o}", "name", s->name, "help", s->help, "work",
		mr_work_name(s->work), "ordered", mr_stage_in_order(s), "params", params,
		"counters", counters);
	if (plugin != NULL)
		json_object_set_new(j, "plugin", mr_cmd_json_text(plugin));
	return j;
}

static int print_json(const struct mr_plugins *p)
{
	json_t *all = json_array();
	json_t *top;
	char *line;

	for (uint32_t i = 0; mr_stage_at(i) != NULL; i++)
		json_array_append_new(all, stage_json(mr_stage_at(i), NULL));
	for (uint32_t i = 0; i < p->count; i++)
		for (uint32_t k = 0; k < p->object[i].plugin->stages_count; k++)
			json_array_append_new(
				all, stage_json(&p->object[i].stages[k], p->object[i].path));
	top = json_pack("{s:o}", "stages", all);
	line = top != NULL ? json_dumps(top, JSON_COMPACT) : NULL;
	json_decref(top);
	if (line == NULL) {
		fprintf(stderr, "millrace: out of memory\n");
		return MR_EXIT_FAILURE;
	}
	mr_cmd_print(line);
	mr_cmd_print("\n");
	free(line);
	return MR_EXIT_CLEAN;
}

static int print_text(const struct mr_plugins *p)
{
	for (uint32_t i = 0; mr_stage_at(i) != NULL; i++)
		print_stage(mr_stage_at(i));
	for (uint32_t i = 0; i < p->count; i++) {
		printf("\nof plug-in %s\n", p->object[i].path);
		for (uint32_t k = 0; k < p->object[i].plugin->stages_count; k++)
			print_stage(&p->object[i].stages[k]);
	}
	return MR_EXIT_CLEAN;
}

int mr_cmd_stages(const struct mr_cmd *self, int argc, char **argv)
{
	const char *paths[MR_PLUGINS_MAX];
	struct mr_plugins plugins = {0};
	uint32_t count = 0;
	bool json = false;
	int c, status = MR_EXIT_CLEAN;

	while ((c = mr_cmd_next(self, argc, argv)) != -1) {
		if (c == 'p' && count < MR_PLUGINS_MAX)
			paths[count++] = optarg;
		else if (c == 'j')
			json = true;
		else
			return mr_cmd_usage(self);
	}
	if (optind != argc)
		return mr_cmd_usage(self);
	for (uint32_t i = 0; status == MR_EXIT_CLEAN && i < count; i++) {
		struct mr_err err;

		if (mr_plugins_add(&plugins, paths[i], &err) < 0)
			status = mr_cmd_fail(paths[i], json, err.msg, MR_EXIT_CONFIG);
	}
	if (status == MR_EXIT_CLEAN)
		status = json ? print_json(&plugins) : print_text(&plugins);
	mr_plugins_free(&plugins);
	return status;
}
