/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_mlx5.h"

#include "mr_nearest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define OPTION_MAX 128u

enum rule {
	SET,
	ONLY,
	NEVER,
	FREE,
};

static const struct row {
	const char *key;
	enum rule rule;
	const char *value, *why;
} rows[] = {
#define MR_MLX5(key, rule, value, why) {key, rule, value, why},
#include "mr_mlx5.def"
#undef MR_MLX5
};

const char *mr_mlx5_key(uint32_t i, bool *ret_set)
{
	if (i >= MR_ARRAY_LEN(rows))
		return NULL;
	*ret_set = rows[i].rule == SET;
	return rows[i].key;
}

/* A value in brackets may have commas of its own: representor=[0,2]. */
static size_t option_length(const char *s)
{
	size_t n = 0;
	int depth = 0;

	for (; s[n] != '\0' && (s[n] != ',' || depth > 0); n++)
		depth += s[n] == '[' ? 1 : s[n] == ']' ? -1 : 0;
	return n;
}

static const struct row *find(const char *key)
{
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].key, key) == 0)
			return &rows[i];
	return NULL;
}

static int refuse_unknown(const char *key, mr_mlx5_tell *tell, void *ctx)
{
	char sentence[256], remedy[128] = "remove it";
	struct mr_nearest near;

	mr_nearest_init(&near, key);
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++)
		mr_nearest_offer(&near, rows[i].key);
	if (mr_nearest_get(&near) != NULL)
		snprintf(remedy, sizeof(remedy), "did you mean '%s'?", mr_nearest_get(&near));
	snprintf(sentence, sizeof(sentence), "the mlx5 driver of DPDK 22.11 has no option '%s'",
		key);
	tell(ctx, sentence, remedy);
	return -EINVAL;
}

/* Numbers compare as the driver reads them: 0x0 and 00 are 0. */
static bool same_value(const char *a, const char *b)
{
	while (a[0] == '0' && a[1] != '\0')
		a += a[1] == 'x' || a[1] == 'X' ? 2 : 1;
	return strcmp(a, b) == 0;
}

static int judge(char *option, mr_mlx5_tell *tell, void *ctx)
{
	char *value = strchr(option, '=');
	char sentence[OPTION_MAX + 256], remedy[128];
	const struct row *r;

	if (value != NULL)
		*value++ = '\0';
	r = find(option);
	if (r == NULL)
		return refuse_unknown(option, tell, ctx);
	if (r->rule == FREE || (r->rule != NEVER && value != NULL && same_value(value, r->value)))
		return 0;
	snprintf(sentence, sizeof(sentence), "%s=%s: %s", r->key, value != NULL ? value : "",
		r->why);
	if (r->rule == NEVER)
		snprintf(remedy, sizeof(remedy), "remove %s", r->key);
	else
		snprintf(remedy, sizeof(remedy), "remove %s, or write %s=%s", r->key, r->key,
			r->value);
	tell(ctx, sentence, remedy);
	return -EINVAL;
}

/* Whether the user's options name this key. */
static bool names(const char *user, const char *key)
{
	size_t n = strlen(key);

	for (const char *s = user; *s != '\0'; s += option_length(s), s += *s == ',')
		if (strncmp(s, key, n) == 0 && s[n] == '=')
			return true;
	return false;
}

int mr_mlx5_devargs(const char *user, mr_mlx5_tell *tell, void *ctx, char *ret_args, size_t bytes)
{
	size_t used = (size_t)snprintf(ret_args, bytes, "%s", user);
	int rc = 0;

	for (const char *s = user; *s != '\0';) {
		size_t n = option_length(s);
		char option[OPTION_MAX];

		snprintf(option, sizeof(option), "%.*s", (int)n, s);
		if (judge(option, tell, ctx) < 0)
			rc = -EINVAL;
		s += n;
		s += *s == ',';
	}
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++)
		if (rows[i].rule == SET && !names(user, rows[i].key))
			used += (size_t)snprintf(ret_args + (used < bytes ? used : bytes),
				used < bytes ? bytes - used : 0, "%s%s=%s", used > 0 ? "," : "",
				rows[i].key, rows[i].value);
	if (rc == 0 && used >= bytes) {
		tell(ctx, "the port's options are too long together with those that Millrace adds",
			"use fewer");
		rc = -E2BIG;
	}
	return rc;
}
