/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t kept(const struct mr_problems *ps)
{
	return ps->count < MR_PROBLEMS_MAX ? ps->count : MR_PROBLEMS_MAX;
}

void mr_cmd_print_problems(const struct mr_problems *ps)
{
	for (uint32_t i = 0; i < kept(ps); i++) {
		const struct mr_problem *p = &ps->p[i];

		fprintf(stderr, "%s:", ps->file);
		if (p->line > 0)
			fprintf(stderr, "%u:", p->line);
		fprintf(stderr, " %s%s%s%s%s\n", p->key, p->key[0] != '\0' ? ": " : "", p->message,
			p->hint[0] != '\0' ? "; " : "", p->hint);
	}
	if (ps->count > kept(ps))
		fprintf(stderr, "%s: and %u more problems\n", ps->file, ps->count - kept(ps));
}

json_t *mr_cmd_json_text(const char *text)
{
	json_t *j = json_string(text);
	char *copy;

	if (j != NULL)
		return j;
	copy = strdup(text);
	if (copy == NULL)
		return NULL;
	for (char *s = copy; *s != '\0'; s++)
		if ((unsigned char)*s >= 0x80)
			*s = '?';
	j = json_string(copy);
	free(copy);
	return j;
}

json_t *mr_cmd_problems_json(const struct mr_problems *ps)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < kept(ps); i++) {
		const struct mr_problem *p = &ps->p[i];
		json_t *j = json_pack("{s:o, s:I, s:o, s:o, s:o}", "file",
			mr_cmd_json_text(ps->file), "line", (json_int_t)p->line, "key",
			mr_cmd_json_text(p->key), "message", mr_cmd_json_text(p->message), "hint",
			mr_cmd_json_text(p->hint));

		if (json_array_append_new(all, j) != 0) {
			json_decref(all);
			return NULL;
		}
	}
	return all;
}

void mr_cmd_print_json(json_t *j)
{
	char *text = j == NULL ? NULL : json_dumps(j, JSON_COMPACT);

	if (text != NULL) {
		mr_cmd_print(text);
		mr_cmd_print("\n");
	}
	free(text);
	json_decref(j);
}

void mr_cmd_print_failure(bool json, json_t *errors)
{
	if (json)
		mr_cmd_print_json(json_pack("{s:o, s:f, s:s}", "errors", errors, "duration_s", 0.0,
			"exit_reason", "error"));
	else
		json_decref(errors);
}

int mr_cmd_fail(const char *config, bool json, const char *sentence, int status)
{
	fprintf(stderr, "millrace: %s\n", sentence);
	mr_cmd_print_failure(json,
		json_pack("[{s:o, s:i, s:s, s:o, s:s}]", "file", mr_cmd_json_text(config), "line",
			0, "key", "", "message", mr_cmd_json_text(sentence), "hint", ""));
	return status;
}
