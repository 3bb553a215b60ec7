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
