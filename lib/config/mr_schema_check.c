/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_schema.h"

#include "mr_nearest.h"

#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789"
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "_-"

/* One value under judgement. */
struct place {
	const struct mr_schema *schema;
	const struct mr_schema_row *row;
	const struct mr_yaml_node *node;
	const char *path; /* lanes[0].batch.packets */
	struct mr_problems *ps;
};

static const char *kind(const struct mr_yaml_node *n)
{
	if (n->type == MR_YAML_LIST)
		return "a list";
	if (n->type == MR_YAML_MAPPING)
		return "a mapping";
	if (n->bytes == 0 && n->plain)
		return "nothing";
	return n->plain ? "a word" : "text in quotes";
}

static void wrong_kind(const struct place *at, const char *wanted)
{
	const char *hint = at->row->help;

	if (at->row->type == MR_SCHEMA_PATHS)
		hint = "write [direct]";
	else if (strcmp(at->row->path, "lanes[].tx") == 0)
		hint = "write [{port: NAME, queue: 0}]";
	mr_problem_add(at->ps, at->node->line, at->path, hint, "must be %s, not %s", wanted,
		kind(at->node));
}

static void bounds(const struct place *at, const char *text)
{
	const struct mr_schema_row *r = at->row;
	char hint[128];

	if (r->type == MR_SCHEMA_SIZE)
		snprintf(hint, sizeof(hint), "use %lluMiB to %lluGiB",
			(unsigned long long)r->min >> 20, (unsigned long long)r->max >> 30);
	else
		snprintf(hint, sizeof(hint), "use %llu to %llu%s%s", (unsigned long long)r->min,
			(unsigned long long)r->max, *r->unit != '\0' ? " " : "", r->unit);
	mr_problem_add(at->ps, at->node->line, at->path, hint, "%.40s is out of bounds", text);
}

/* Decimal digits at the start of text; false: more than 64 bits. */
static bool decimal(const char *text, size_t digits, uint64_t *ret_value)
{
	uint64_t v = 0;

	for (size_t i = 0; i < digits; i++) {
		uint64_t d = (uint64_t)(text[i] - '0');

		if (v > (UINT64_MAX - d) / 10)
			return false;
		v = v * 10 + d;
	}
	*ret_value = v;
	return true;
}

static void check_number(const struct place *at)
{
	const char *text = at->node->text;
	size_t digits = strspn(text, DIGITS);
	char hint[160] = "write decimal digits only";
	uint64_t v;

	if (digits != at->node->bytes || digits == 0 || !at->node->plain ||
		(digits > 1 && text[0] == '0')) {
		if (!at->node->plain && digits == at->node->bytes && digits > 0)
			snprintf(hint, sizeof(hint), "remove the quotes");
		else if (digits > 0 && *at->row->unit != '\0' && text[0] != '0')
			snprintf(hint, sizeof(hint), "write %.*s alone, the unit is %s",
				(int)(digits < 20 ? digits : 20), text, at->row->unit);
		mr_problem_add(at->ps, at->node->line, at->path, hint,
			"must be a whole number, not '%.40s'", text);
		return;
	}
	if (!decimal(text, digits, &v) || v < at->row->min || v > at->row->max)
		bounds(at, text);
}

static void check_size(const struct place *at)
{
	const char *text = at->node->text;
	size_t digits = strspn(text, DIGITS);
	const char *unit = text + digits;
	uint32_t shift = 0;
	uint64_t v = 0;

	if (strcmp(unit, "KiB") == 0)
		shift = 10;
	else if (strcmp(unit, "MiB") == 0)
		shift = 20;
	else if (strcmp(unit, "GiB") == 0)
		shift = 30;
	if (digits == 0 || shift == 0 || (digits > 1 && text[0] == '0') ||
		strlen(text) != at->node->bytes) {
		mr_problem_add(at->ps, at->node->line, at->path,
			"write digits followed by KiB, MiB or GiB, as in 64MiB",
			"must be a size with its unit, not '%.40s'", text);
		return;
	}
	if (!decimal(text, digits, &v) || v > UINT64_MAX >> shift || v << shift < at->row->min ||
		v << shift > at->row->max)
		bounds(at, text);
}

static bool is_null(const struct mr_yaml_node *n)
{
	return n->plain &&
		(n->bytes == 0 || strcmp(n->text, "~") == 0 || strcmp(n->text, "null") == 0 ||
			strcmp(n->text, "Null") == 0 || strcmp(n->text, "NULL") == 0);
}

static bool check_length(const struct place *at)
{
	const struct mr_schema_row *r = at->row;
	bool item = r->type == MR_SCHEMA_WORDS || r->type == MR_SCHEMA_PARAMS;
	uint64_t min = item ? 1 : r->min;
	uint64_t max = item ? 400 : r->max;
	char hint[64];

	if (at->node->bytes >= min && at->node->bytes <= max)
		return true;
	snprintf(hint, sizeof(hint), "use %llu to %llu characters", (unsigned long long)min,
		(unsigned long long)max);
	mr_problem_add(
		at->ps, at->node->line, at->path, hint, "has %zu characters", at->node->bytes);
	return false;
}

static void check_text(const struct place *at)
{
	if (!check_length(at))
		return;
	for (size_t i = 0; i < at->node->bytes; i++) {
		unsigned char c = (unsigned char)at->node->text[i];

		if (c < 0x20 || c == 0x7f) {
			mr_problem_add(at->ps, at->node->line, at->path,
				"write printable characters", "holds a control character");
			return;
		}
	}
}

static void check_name(const struct place *at)
{
	if (!check_length(at))
		return;
	if (strspn(at->node->text, NAME_CHARACTERS) != at->node->bytes)
		mr_problem_add(at->ps, at->node->line, at->path, "use letters, digits, '_' and '-'",
			"'%.40s' is not a name", at->node->text);
}

static void check_core(const struct place *at)
{
	const char *text = at->node->text;
	size_t digits = strspn(text, DIGITS);
	uint64_t v;

	if (strcmp(text, "any") == 0 && at->node->bytes == 3)
		return;
	if (digits == 0 || digits != at->node->bytes || !at->node->plain ||
		(digits > 1 && text[0] == '0')) {
		mr_problem_add(at->ps, at->node->line, at->path,
			"write the number of a CPU without quotes, or any",
			"must be a number or any, not '%.40s'", text);
		return;
	}
	if (!decimal(text, digits, &v) || v > at->row->max)
		bounds(at, text);
}

static void check_word(const struct place *at)
{
	uint32_t count;
	const cyaml_strval_t *words = mr_schema_words(at->row->type, &count);
	char hint[128] = "";
	size_t used = 0;
	struct mr_nearest n;
	const char *near;

	mr_nearest_init(&n, at->node->text);
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(words[i].str, at->node->text) == 0 &&
			strlen(words[i].str) == at->node->bytes)
			return;
		mr_nearest_offer(&n, words[i].str);
		used += (size_t)snprintf(hint + used, sizeof(hint) - used, "%s%s",
			i == 0 ? "use " : ", ", words[i].str);
	}
	near = mr_nearest_get(&n);
	if (near != NULL)
		snprintf(hint + used, sizeof(hint) - used, "; did you mean '%s'?", near);
	mr_problem_add(at->ps, at->node->line, at->path, hint, "'%.40s' is not one of its words",
		at->node->text);
}

static void check_scalar(const struct place *at)
{
	if (at->node->type != MR_YAML_SCALAR) {
		wrong_kind(at, "a single value");
		return;
	}
	if (is_null(at->node)) {
		mr_problem_add(at->ps, at->node->line, at->path, at->row->help, "has no value");
		return;
	}
	switch (at->row->type) {
	case MR_SCHEMA_NUMBER:
		check_number(at);
		break;
	case MR_SCHEMA_SIZE:
		check_size(at);
		break;
	case MR_SCHEMA_NAME:
		check_name(at);
		break;
	case MR_SCHEMA_CORE:
		check_core(at);
		break;
	case MR_SCHEMA_TEXT:
	case MR_SCHEMA_WORDS:
	case MR_SCHEMA_PARAMS:
		check_text(at);
		break;
	default:
		check_word(at);
		break;
	}
}

#define PATH_BYTES 256u

/* The path of a key or a list entry below path; what does not fit is cut. */
static void below(char to[PATH_BYTES], const char *path, const char *key)
{
	int n = snprintf(to, PATH_BYTES, "%s%s%.64s", path, *path != '\0' ? "." : "", key);

	if (n < 0)
		*to = '\0';
}

static void entry(char to[PATH_BYTES], const char *path, uint32_t i)
{
	int n = snprintf(to, PATH_BYTES, "%s[%u]", path, i);

	if (n < 0)
		*to = '\0';
}

/* A key twice in one mapping; the second is at fault. */
static bool is_duplicate(const struct mr_yaml_node *map, const struct mr_yaml_node *node,
	const char *path, struct mr_problems *ps)
{
	for (const struct mr_yaml_node *n = map->child; n != node; n = n->next) {
		if (strcmp(n->key, node->key) != 0)
			continue;
		mr_problem_add(ps, node->line, path, "keep one of them",
			"is given twice, first in line %u", n->line);
		return true;
	}
	return false;
}

/* One value, or a list of them. */
static void check_param(const struct place *at)
{
	uint32_t i = 0;

	if (at->node->type != MR_YAML_LIST) {
		check_scalar(at);
		return;
	}
	for (const struct mr_yaml_node *n = at->node->child; n != NULL; n = n->next, i++) {
		char path[PATH_BYTES];
		struct place item = {at->schema, at->row, n, path, at->ps};

		entry(path, at->path, i);
		check_scalar(&item);
	}
}

static void check_params(const struct place *at)
{
	const struct mr_yaml_node *map = at->node;

	if (map->type != MR_YAML_MAPPING) {
		wrong_kind(at, "a mapping of parameters to values");
		return;
	}
	for (const struct mr_yaml_node *n = map->child; n != NULL; n = n->next) {
		char path[PATH_BYTES];
		struct place value = {at->schema, at->row, n, path, at->ps};

		below(path, at->path, n->key);
		if (n->key_bytes == 0 || n->key_bytes >= MR_NAME_MAX ||
			strspn(n->key, NAME_CHARACTERS) != n->key_bytes)
			mr_problem_add(at->ps, n->line, path, "see millrace stages",
				"'%.40s' is not the name of a parameter", n->key);
		else if (!is_duplicate(map, n, path, at->ps))
			check_param(&value);
	}
}

static void check_mapping(const struct mr_schema *s, const struct mr_yaml_node *map,
	const char *pattern, const char *path, struct mr_problems *ps);

static void check_list(const struct place *at)
{
	const struct mr_schema_row *r = at->row;
	uint32_t i = 0;
	char hint[64];

	if (at->node->type != MR_YAML_LIST) {
		wrong_kind(at, "a list");
		return;
	}
	if (at->node->count < r->min || at->node->count > r->max) {
		snprintf(hint, sizeof(hint), "give %llu to %llu", (unsigned long long)r->min,
			(unsigned long long)r->max);
		mr_problem_add(
			at->ps, at->node->line, at->path, hint, "has %u entries", at->node->count);
		return;
	}
	for (const struct mr_yaml_node *n = at->node->child; n != NULL; n = n->next, i++) {
		char path[PATH_BYTES];
		char pattern[PATH_BYTES];
		struct place item = {at->schema, r, n, path, at->ps};

		entry(path, at->path, i);
		snprintf(pattern, sizeof(pattern), "%s[]", r->path);
		if (r->type != MR_SCHEMA_MAPPINGS)
			check_scalar(&item);
		else if (n->type != MR_YAML_MAPPING)
			wrong_kind(&item, "a mapping");
		else
			check_mapping(at->schema, n, pattern, path, at->ps);
	}
}

static void check_value(const struct place *at)
{
	switch (at->row->type) {
	case MR_SCHEMA_MAPPING:
		if (at->node->type != MR_YAML_MAPPING)
			wrong_kind(at, "a mapping");
		else
			check_mapping(at->schema, at->node, at->row->path, at->path, at->ps);
		break;
	case MR_SCHEMA_MAPPINGS:
	case MR_SCHEMA_WORDS:
	case MR_SCHEMA_PATHS:
		check_list(at);
		break;
	case MR_SCHEMA_PARAMS:
		check_params(at);
		break;
	default:
		check_scalar(at);
		break;
	}
}

static const struct mr_schema_row *find_row(
	const struct mr_schema *s, const char *pattern, const char *key)
{
	const struct mr_schema_row *row;

	for (uint32_t i = 0; (row = mr_schema_at(s, i)) != NULL; i++)
		if (mr_schema_is_below(row, pattern) && strcmp(mr_schema_key(row), key) == 0)
			return row;
	return NULL;
}

/* The nearest key of this mapping, else where else the file has a key of that name. */
static void unknown_key(const struct mr_schema *s, const struct mr_yaml_node *node,
	const char *pattern, const char *path, struct mr_problems *ps)
{
	const struct mr_schema_row *row;
	struct mr_nearest n;
	char hint[256];

	snprintf(hint, sizeof(hint), "see %s for all keys", s->manual);
	mr_nearest_init(&n, node->key);
	for (uint32_t i = 0; (row = mr_schema_at(s, i)) != NULL; i++) {
		if (mr_schema_is_below(row, pattern))
			mr_nearest_offer(&n, mr_schema_key(row));
		else if (strcmp(mr_schema_key(row), node->key) == 0)
			snprintf(hint, sizeof(hint), "it belongs into %s", row->path);
	}
	if (mr_nearest_get(&n) != NULL)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", mr_nearest_get(&n));
	mr_problem_add(ps, node->line, path, hint, "is not a key");
}

static void check_mapping(const struct mr_schema *s, const struct mr_yaml_node *map,
	const char *pattern, const char *path, struct mr_problems *ps)
{
	const struct mr_schema_row *row;
	char key[PATH_BYTES];

	for (const struct mr_yaml_node *n = map->child; n != NULL; n = n->next) {
		struct place at = {s, find_row(s, pattern, n->key), n, key, ps};

		below(key, path, n->key);
		if (at.row == NULL || strlen(n->key) != n->key_bytes)
			unknown_key(s, n, pattern, key, ps);
		else if (!is_duplicate(map, n, key, ps))
			check_value(&at);
	}
	for (uint32_t i = 0; (row = mr_schema_at(s, i)) != NULL; i++) {
		if (!row->required || !mr_schema_is_below(row, pattern) ||
			mr_yaml_find(map, mr_schema_key(row)) != NULL)
			continue;
		below(key, path, mr_schema_key(row));
		mr_problem_add(ps, map->line, key, row->help, "is missing");
	}
}

void mr_schema_check(
	const struct mr_schema *s, const struct mr_yaml_node *top, struct mr_problems *ps)
{
	char hint[64];

	if (top->type != MR_YAML_MAPPING) {
		snprintf(hint, sizeof(hint), "start it with keys, as in %s",
			s == &mr_schema_run ? "config/demo.yaml" : s->manual);
		mr_problem_add(ps, top->line, "", hint,
			is_null(top) ? "the file is empty"
				     : "the file is not a mapping of keys to values");
		return;
	}
	check_mapping(s, top, "", "", ps);
}
