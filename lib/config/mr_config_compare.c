/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_schema.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * What may change while packets move. The rest has become memory, queues, threads or a kernel's
 * arguments by then, or is a NIC's rules, which are made one by one.
 */
static const char *const live[] = {
	"lanes[].stages[].params",
	"lanes[].batch.timeout_us",
	"lanes[].tx_timeout_us",
	"stop.drain_ms",
	"kernel.stall_ms",
	"kernel.driver_ms",
	"log.level",
};

struct compare {
	const struct mr_schema *schema;
	const struct mr_config *now;
	struct mr_config_changes *changes;
	struct mr_problems *ps;
};

static void differs(const struct compare *c, const char *key)
{
	mr_problem_add(c->ps, mr_config_line(c->now, key), key,
		"put the old value back, or stop the instance and start it with this file",
		"cannot change while the instance runs");
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static void *pointer_at(const char *at)
{
	void *p;

	memcpy(&p, at, sizeof(p));
	return p;
}

static uint32_t number_at(const char *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static bool same_words(const struct mr_schema_row *row, const char *before, const char *now)
{
	uint32_t count = number_at(before + row->count_offset);
	char **a = pointer_at(before + row->offset), **b = pointer_at(now + row->offset);
	bool same = count == number_at(now + row->count_offset);

	for (uint32_t i = 0; same && i < count; i++)
		same = same_text(a[i], b[i]);
	return same;
}

/* In their order: who writes them in another one has changed them. */
static bool same_params(const struct mr_schema_row *row, const char *before, const char *now)
{
	uint32_t count = number_at(before + row->count_offset);
	const struct mr_config_param *a = pointer_at(before + row->offset);
	const struct mr_config_param *b = pointer_at(now + row->offset);
	bool same = count == number_at(now + row->count_offset);

	for (uint32_t i = 0; same && i < count; i++)
		same = strcmp(a[i].key, b[i].key) == 0 && strcmp(a[i].value, b[i].value) == 0;
	return same;
}

/* Whether this lane's match is a stage of its chain, before and now. */
static bool is_staged_match(const struct compare *c, const char *before, const char *now)
{
	const struct mr_config_lane *a = (const void *)before, *b = (const void *)now;

	if (a->match_count == 0 || b->match_count == 0)
		return false;
	for (uint32_t i = 0; i < c->now->ports_count; i++)
		if (same_text(c->now->ports[i].name, b->rx.port))
			return c->now->ports[i].steering == MR_STEERING_SOFTWARE;
	return false;
}

static bool is_live(const struct compare *c, const struct mr_schema_row *row, const char *before,
	const char *now)
{
	if (strcmp(row->path, "lanes[].match") == 0)
		return is_staged_match(c, before, now);
	for (size_t i = 0; i < MR_ARRAY_LEN(live); i++)
		if (strcmp(row->path, live[i]) == 0)
			return true;
	return false;
}

/* As it is written in the file, cut at the size of ret_text. */
static void print_value(
	const struct mr_schema_row *row, const char *at, char ret_text[MR_CONFIG_VALUE_MAX])
{
	const cyaml_strval_t *words;
	uint32_t count, used = 0;

	ret_text[0] = '\0';
	if (row->type == MR_SCHEMA_PARAMS) {
		const struct mr_config_param *p = pointer_at(at + row->offset);

		count = number_at(at + row->count_offset);
		for (uint32_t i = 0; i < count && used < MR_CONFIG_VALUE_MAX; i++)
			used += (uint32_t)snprintf(ret_text + used, MR_CONFIG_VALUE_MAX - used,
				"%s%s=%s", i > 0 ? " " : "", p[i].key, p[i].value);
	} else if (row->type == MR_SCHEMA_NUMBER) {
		snprintf(ret_text, MR_CONFIG_VALUE_MAX, "%u", number_at(at + row->offset));
	} else {
		words = mr_schema_words(row->type, &count);
		for (uint32_t i = 0; i < count; i++)
			if (words[i].val == (int64_t)number_at(at + row->offset))
				snprintf(ret_text, MR_CONFIG_VALUE_MAX, "%s", words[i].str);
	}
}

static void changes(const struct compare *c, const struct mr_schema_row *row, const char *key,
	const char *before, const char *now)
{
	struct mr_config_change *change;

	if (c->changes->count++ >= MR_CONFIG_CHANGES_MAX)
		return;
	change = &c->changes->c[c->changes->count - 1];
	snprintf(change->key, sizeof(change->key), "%s", key);
	print_value(row, before, change->before);
	print_value(row, now, change->now);
}

static void compare_mapping(const struct compare *c, const char *pattern, const char *path,
	const char *before, const char *now);

static void compare_list(const struct compare *c, const struct mr_schema_row *row, const char *key,
	const char *before, const char *now)
{
	const char *a = pointer_at(before + row->offset), *b = pointer_at(now + row->offset);
	uint32_t count = number_at(before + row->count_offset);
	char pattern[128], path[144];

	if (count != number_at(now + row->count_offset)) {
		differs(c, key);
		return;
	}
	snprintf(pattern, sizeof(pattern), "%s[]", row->path);
	for (uint32_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s[%u].", key, i);
		compare_mapping(c, pattern, path, a + i * row->size, b + i * row->size);
	}
}

static void compare_row(const struct compare *c, const struct mr_schema_row *row, const char *path,
	const char *before, const char *now)
{
	char key[128], below[132];
	bool same = true;

	snprintf(key, sizeof(key), "%s%s", path, mr_schema_key(row));
	switch (row->type) {
	case MR_SCHEMA_MAPPING:
		snprintf(below, sizeof(below), "%s.", key);
		compare_mapping(c, row->path, below, before + row->offset, now + row->offset);
		return;
	case MR_SCHEMA_MAPPINGS:
		compare_list(c, row, key, before, now);
		return;
	case MR_SCHEMA_PARAMS:
		same = same_params(row, before, now);
		break;
	case MR_SCHEMA_NAME:
	case MR_SCHEMA_TEXT:
		same = same_text(pointer_at(before + row->offset), pointer_at(now + row->offset));
		break;
	case MR_SCHEMA_WORDS:
		same = same_words(row, before, now);
		break;
	case MR_SCHEMA_PATHS:
		same = number_at(before + row->count_offset) ==
				number_at(now + row->count_offset) &&
			memcmp(before + row->offset, now + row->offset,
				(size_t)number_at(before + row->count_offset) * row->size) == 0;
		break;
	default:
		same = memcmp(before + row->offset, now + row->offset, row->size) == 0;
		break;
	}
	if (!same && is_live(c, row, before, now))
		changes(c, row, key, before, now);
	else if (!same)
		differs(c, key);
}

static void compare_mapping(const struct compare *c, const char *pattern, const char *path,
	const char *before, const char *now)
{
	const struct mr_schema_row *row;

	for (uint32_t i = 0; (row = mr_schema_at(c->schema, i)) != NULL; i++)
		if (mr_schema_is_below(row, pattern))
			compare_row(c, row, path, before, now);
}

int mr_config_compare(const struct mr_config *before, const struct mr_config *now,
	struct mr_config_changes *ret_changes, struct mr_problems *problems)
{
	const struct compare c = {&mr_schema_run, now, ret_changes, problems};
	uint32_t count = problems->count;

	ret_changes->count = 0;
	compare_mapping(&c, "", "", (const char *)before, (const char *)now);
	return problems->count == count ? 0 : -EINVAL;
}
