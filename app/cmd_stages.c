/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_param(const struct mr_param_desc *p)
{
	printf("    %-10s %s", p->name, p->help);
	if (p->type == MR_PARAM_U32)
		printf("; %u to %u", p->min, p->max);
	else
		for (uint32_t i = 0; i < MR_REASON_COUNT; i++)
			printf("%s%s", i == 0 ? "; " : ", ", mr_reason_name((enum mr_reason)i));
	printf("%s%s; default %s\n", *p->unit != '\0' ? " " : "", p->unit, p->def);
}

static void print_stage(const struct mr_stage_desc *s)
{
	printf("%-12s %s\n", s->name, s->help);
	printf("  a packet per %s%s\n", mr_work_name(s->work),
		s->ordered ? ", in order: one worker" : "");
	if (s->params_count > 0)
		printf("  parameters\n");
	for (uint32_t i = 0; i < s->params_count; i++)
		print_param(&s->params[i]);
	if (s->counters_count > 0)
		printf("  counters\n");
	for (uint32_t i = 0; i < s->counters_count; i++)
		printf("    %-10s %s\n", s->counters[i].name, s->counters[i].help);
}

static json_t *param_json(const struct mr_param_desc *p)
{
	json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", p->name, "type",
		p->type == MR_PARAM_U32 ? "number" : "reason", "default", p->def, "unit", p->unit,
		"help", p->help);

	if (p->type == MR_PARAM_U32) {
		json_object_set_new(j, "min", json_integer(p->min));
		json_object_set_new(j, "max", json_integer(p->max));
	} else {
		json_t *words = json_array();

		for (uint32_t i = 0; i < MR_REASON_COUNT; i++)
			json_array_append_new(
				words, json_string(mr_reason_name((enum mr_reason)i)));
		json_object_set_new(j, "words", words);
	}
	return j;
}

static json_t *stage_json(const struct mr_stage_desc *s)
{
	json_t *params = json_array();
	json_t *counters = json_array();

	for (uint32_t i = 0; i < s->params_count; i++)
		json_array_append_new(params, param_json(&s->params[i]));
	for (uint32_t i = 0; i < s->counters_count; i++)
		json_array_append_new(counters,
			json_pack("{s:s, s:s}", "name", s->counters[i].name, "help",
				s->counters[i].help));
	return json_pack("{s:s, s:s, s:s, s:b, s:o, s:o}", "name", s->name, "help", s->help, "work",
		mr_work_name(s->work), "ordered", s->ordered, "params", params, "counters",
		counters);
}

static int print_json(void)
{
	json_t *all = json_array();
	json_t *top;
	char *line;

	for (uint32_t i = 0; mr_stage_at(i) != NULL; i++)
		json_array_append_new(all, stage_json(mr_stage_at(i)));
	top = json_pack("{s:o}", "stages", all);
	line = top != NULL ? json_dumps(top, JSON_COMPACT) : NULL;
	json_decref(top);
	if (line == NULL) {
		fprintf(stderr, "millrace: out of memory\n");
		return MR_EXIT_FAILURE;
	}
	puts(line);
	free(line);
	return MR_EXIT_CLEAN;
}

int mr_cmd_stages(const struct mr_cmd *self, int argc, char **argv)
{
	static const struct option longs[] = {{"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
	bool json = false;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c != 'j')
			return mr_cmd_usage(self);
		json = true;
	}
	if (optind != argc)
		return mr_cmd_usage(self);
	if (json)
		return print_json();
	for (uint32_t i = 0; mr_stage_at(i) != NULL; i++)
		print_stage(mr_stage_at(i));
	return MR_EXIT_CLEAN;
}
