/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_schema.h"

#include "mr_gen_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBER_BYTES(structure, member) sizeof(((structure *)NULL)->member)

#define KEY(path_, type_, s, m, min_, max_, def_, unit_, help_)                                    \
	{.path = path_,                                                                            \
		.type = MR_SCHEMA_##type_,                                                         \
		.required = (def_) == NULL,                                                        \
		.offset = offsetof(s, m),                                                          \
		.size = MEMBER_BYTES(s, m),                                                        \
		.min = min_,                                                                       \
		.max = max_,                                                                       \
		.def = def_,                                                                       \
		.unit = unit_,                                                                     \
		.help = help_},
#define LIST(path_, type_, s, m, element, min_, max_, help_)                                       \
	{.path = path_,                                                                            \
		.type = MR_SCHEMA_##type_,                                                         \
		.required = (min_) > 0,                                                            \
		.offset = offsetof(s, m),                                                          \
		.count_offset = offsetof(s, m##_count),                                            \
		.size = sizeof(element),                                                           \
		.min = min_,                                                                       \
		.max = max_,                                                                       \
		.unit = "entries",                                                                 \
		.help = help_},
#define MAPPING(path_, help_) {.path = path_, .type = MR_SCHEMA_MAPPING, .unit = "", .help = help_},
#define PART(path_, s, m, type_, help_)                                                            \
	{.path = path_,                                                                            \
		.type = MR_SCHEMA_MAPPING,                                                         \
		.required = true,                                                                  \
		.offset = offsetof(s, m),                                                          \
		.size = sizeof(type_),                                                             \
		.unit = "",                                                                        \
		.help = help_},
#define PARAMS(path_, s, m, help_)                                                                 \
	{.path = path_,                                                                            \
		.type = MR_SCHEMA_PARAMS,                                                          \
		.offset = offsetof(s, m),                                                          \
		.count_offset = offsetof(s, m##_count),                                            \
		.unit = "",                                                                        \
		.help = help_},
static const struct mr_schema_row run_rows[] = {
#include "mr_schema.def"
};
static const struct mr_schema_row gen_rows[] = {
#include "mr_schema_gen.def"
};
#undef KEY
#undef LIST
#undef MAPPING
#undef PART
#undef PARAMS

const struct mr_schema mr_schema_run = {
	run_rows, MR_ARRAY_LEN(run_rows), sizeof(struct mr_config), "config/millrace.yaml"};
const struct mr_schema mr_schema_gen = {
	gen_rows, MR_ARRAY_LEN(gen_rows), sizeof(struct mr_gen_config), "config/gen.yaml"};

static const cyaml_strval_t level_words[] = {
	{"error", 0}, {"warning", 1}, {"info", 2}, {"debug", 3}};
static const cyaml_strval_t overload_words[] = {
	{"block", MR_OVERLOAD_BLOCK}, {"shed", MR_OVERLOAD_SHED}};
static const cyaml_strval_t hugepages_words[] = {
	{"auto", MR_HUGEPAGES_AUTO}, {"off", MR_HUGEPAGES_OFF}};
static const cyaml_strval_t steering_words[] = {
	{"nic", MR_STEERING_NIC}, {"software", MR_STEERING_SOFTWARE}};
static const cyaml_strval_t sizes_words[] = {
	{"fixed", MR_GEN_FIXED}, {"sweep", MR_GEN_SWEEP}, {"imix", MR_GEN_IMIX}};
static const cyaml_strval_t search_words[] = {{"none", MR_GEN_SEARCH_NONE},
	{"zero-loss", MR_GEN_SEARCH_ZERO_LOSS}, {"partial-loss", MR_GEN_SEARCH_PARTIAL_LOSS}};
static const cyaml_strval_t readback_words[] = {
	{"auto", MR_READBACK_AUTO}, {"off", MR_READBACK_OFF}, {"port", MR_READBACK_PORT}};
static const cyaml_strval_t alarm_words[] = {
	{"auto", MR_ALARM_AUTO}, {"stop", MR_ALARM_STOP}, {"go_on", MR_ALARM_GO_ON}};
static const cyaml_strval_t path_words[] = {
	{"direct", MR_PATH_DIRECT}, {"pinned", MR_PATH_PINNED}, {"staged", MR_PATH_STAGED}};

const struct mr_schema_row *mr_schema_at(const struct mr_schema *s, uint32_t i)
{
	return i < s->count ? &s->rows[i] : NULL;
}

const char *mr_schema_key(const struct mr_schema_row *row)
{
	const char *dot = strrchr(row->path, '.');

	return dot != NULL ? dot + 1 : row->path;
}

const cyaml_strval_t *mr_schema_words(enum mr_schema_type type, uint32_t *ret_count)
{
	switch (type) {
	case MR_SCHEMA_LEVEL:
		*ret_count = MR_ARRAY_LEN(level_words);
		return level_words;
	case MR_SCHEMA_OVERLOAD:
		*ret_count = MR_ARRAY_LEN(overload_words);
		return overload_words;
	case MR_SCHEMA_HUGEPAGES:
		*ret_count = MR_ARRAY_LEN(hugepages_words);
		return hugepages_words;
	case MR_SCHEMA_STEERING:
		*ret_count = MR_ARRAY_LEN(steering_words);
		return steering_words;
	case MR_SCHEMA_SIZES:
		*ret_count = MR_ARRAY_LEN(sizes_words);
		return sizes_words;
	case MR_SCHEMA_SEARCH:
		*ret_count = MR_ARRAY_LEN(search_words);
		return search_words;
	case MR_SCHEMA_READBACK:
		*ret_count = MR_ARRAY_LEN(readback_words);
		return readback_words;
	case MR_SCHEMA_ALARM:
		*ret_count = MR_ARRAY_LEN(alarm_words);
		return alarm_words;
	case MR_SCHEMA_PATHS:
		*ret_count = MR_ARRAY_LEN(path_words);
		return path_words;
	default:
		*ret_count = 0;
		return NULL;
	}
}

bool mr_schema_is_below(const struct mr_schema_row *row, const char *pattern)
{
	size_t n = strlen(pattern);
	const char *key = row->path;

	if (n > 0) {
		if (strncmp(row->path, pattern, n) != 0 || row->path[n] != '.')
			return false;
		key = row->path + n + 1;
	}
	return strchr(key, '.') == NULL;
}

/* libcyaml's structures are made from the rows at run time: they nest, rows do not. */
#define ROWS_MAX                                                                                   \
	(MR_ARRAY_LEN(run_rows) > MR_ARRAY_LEN(gen_rows) ? MR_ARRAY_LEN(run_rows)                  \
							 : MR_ARRAY_LEN(gen_rows))

struct loader {
	const struct mr_schema *schema;
	cyaml_schema_field_t fields[2 * ROWS_MAX];
	cyaml_schema_value_t elements[ROWS_MAX];
	uint32_t fields_count, elements_count;
};

static const cyaml_schema_field_t *make_fields(struct loader *l, const char *pattern);

static const cyaml_schema_value_t *make_element(struct loader *l, const struct mr_schema_row *row)
{
	cyaml_schema_value_t *v = &l->elements[l->elements_count++];
	char pattern[128];

	if (row->type == MR_SCHEMA_MAPPINGS) {
		snprintf(pattern, sizeof(pattern), "%s[]", row->path);
		v->type = CYAML_MAPPING;
		v->data_size = row->size;
		v->mapping.fields = make_fields(l, pattern);
	} else if (row->type == MR_SCHEMA_WORDS) {
		v->type = CYAML_STRING;
		v->flags = CYAML_FLAG_POINTER;
		v->data_size = sizeof(char);
		v->string.max = UINT32_MAX;
	} else {
		v->type = CYAML_ENUM;
		v->flags = CYAML_FLAG_STRICT;
		v->data_size = row->size;
		v->enumeration.strings = mr_schema_words(row->type, &v->enumeration.count);
	}
	return v;
}

static void make_field(struct loader *l, const struct mr_schema_row *row, cyaml_schema_field_t *f)
{
	cyaml_schema_value_t *v = &f->value;
	uint32_t flags = CYAML_FLAG_OPTIONAL; /* what must be given was checked */

	f->key = mr_schema_key(row);
	f->data_offset = row->offset;
	v->data_size = row->size;
	switch (row->type) {
	case MR_SCHEMA_NUMBER:
		v->type = CYAML_UINT;
		break;
	case MR_SCHEMA_NAME:
	case MR_SCHEMA_TEXT:
		v->type = CYAML_STRING;
		flags |= CYAML_FLAG_POINTER;
		v->data_size = sizeof(char);
		v->string.max = UINT32_MAX;
		break;
	case MR_SCHEMA_LEVEL:
	case MR_SCHEMA_OVERLOAD:
	case MR_SCHEMA_HUGEPAGES:
	case MR_SCHEMA_STEERING:
	case MR_SCHEMA_SIZES:
	case MR_SCHEMA_SEARCH:
	case MR_SCHEMA_READBACK:
	case MR_SCHEMA_ALARM:
		v->type = CYAML_ENUM;
		flags |= CYAML_FLAG_STRICT;
		v->enumeration.strings = mr_schema_words(row->type, &v->enumeration.count);
		break;
	case MR_SCHEMA_MAPPING:
		v->type = CYAML_MAPPING;
		v->mapping.fields = make_fields(l, row->path);
		break;
	case MR_SCHEMA_MAPPINGS:
	case MR_SCHEMA_WORDS:
		flags |= CYAML_FLAG_POINTER;
		/* fall through */
	case MR_SCHEMA_PATHS:
		v->type = CYAML_SEQUENCE;
		f->count_offset = row->count_offset;
		f->count_size = sizeof(uint32_t);
		v->sequence.entry = make_element(l, row);
		v->sequence.max = (uint32_t)row->max;
		break;
	case MR_SCHEMA_SIZE:
	case MR_SCHEMA_CORE:
	case MR_SCHEMA_PARAMS:
		v->type = CYAML_IGNORE; /* mr_schema_fill() */
		break;
	}
	v->flags = (enum cyaml_flag)flags;
}

static const cyaml_schema_field_t *make_fields(struct loader *l, const char *pattern)
{
	cyaml_schema_field_t *first = &l->fields[l->fields_count];
	const struct mr_schema_row *rows = l->schema->rows;
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->schema->count; i++)
		n += mr_schema_is_below(&rows[i], pattern);
	l->fields_count += n + 1; /* the last stays zero and ends the array */
	n = 0;
	for (uint32_t i = 0; i < l->schema->count; i++)
		if (mr_schema_is_below(&rows[i], pattern))
			make_field(l, &rows[i], &first[n++]);
	return first;
}

int mr_schema_load(const struct mr_schema *s, const char *text, size_t bytes, void *ret_cfg,
	struct mr_problems *ps)
{
	const cyaml_config_t config = {.mem_fn = cyaml_mem, .flags = CYAML_CFG_NO_ALIAS};
	struct loader *l = calloc(1, sizeof(*l));
	cyaml_schema_value_t top = {.type = CYAML_MAPPING,
		.flags = CYAML_FLAG_POINTER,
		.data_size = (uint32_t)s->bytes};
	void *cfg = NULL;
	cyaml_err_t rc = CYAML_ERR_OOM;

	if (l != NULL) {
		l->schema = s;
		top.mapping.fields = make_fields(l, "");
		rc = cyaml_load_data((const uint8_t *)text, bytes, &config, &top, &cfg, NULL);
		free(l);
	}
	if (rc != CYAML_OK) {
		mr_problem_add(ps, 0, "", "report this file as a fault",
			"libcyaml refuses a checked file: %s", cyaml_strerror(rc));
		return -EINVAL;
	}
	memcpy(ret_cfg, cfg, s->bytes);
	free(cfg); /* cyaml_mem() is realloc() and free() */
	return 0;
}

static uint64_t size_value(const char *text)
{
	char *end;
	uint64_t v = strtoull(text, &end, 10);

	return v << (*end == 'K' ? 10 : *end == 'M' ? 20 : 30);
}

/* A parameter as the stage's table takes it: a list is its values with commas between. */
static char *param_text(const struct mr_yaml_node *node)
{
	size_t bytes = 1;
	char *text, *at;

	if (node->type != MR_YAML_LIST)
		return strdup(node->text);
	for (const struct mr_yaml_node *n = node->child; n != NULL; n = n->next)
		bytes += n->bytes + 1;
	text = malloc(bytes);
	if (text == NULL)
		return NULL;
	at = text;
	for (const struct mr_yaml_node *n = node->child; n != NULL; n = n->next) {
		if (n != node->child)
			*at++ = ',';
		memcpy(at, n->text, n->bytes);
		at += n->bytes;
	}
	*at = '\0';
	return text;
}

static int fill_params(const struct mr_yaml_node *node, const struct mr_schema_row *row, char *base)
{
	struct mr_config_param *p;
	uint32_t i = 0;

	if (node == NULL || node->count == 0)
		return 0;
	p = calloc(node->count, sizeof(*p));
	if (p == NULL)
		return -ENOMEM;
	memcpy(base + row->offset, &p, sizeof(p));
	memcpy(base + row->count_offset, &node->count, sizeof(uint32_t));
	for (const struct mr_yaml_node *n = node->child; n != NULL; n = n->next, i++) {
		p[i].line = n->line;
		p[i].is_list = n->type == MR_YAML_LIST;
		p[i].key = strdup(n->key);
		p[i].value = param_text(n);
		if (p[i].key == NULL || p[i].value == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int fill_mapping(const struct mr_schema *s, const struct mr_yaml_node *node,
	const char *pattern, char *base);

static int fill_list(const struct mr_schema *s, const struct mr_yaml_node *node,
	const struct mr_schema_row *row, char *base)
{
	char pattern[128];
	char *element;
	int rc = 0;

	if (node == NULL)
		return 0;
	snprintf(pattern, sizeof(pattern), "%s[]", row->path);
	memcpy(&element, base + row->offset, sizeof(element));
	for (const struct mr_yaml_node *n = node->child; n != NULL && rc == 0; n = n->next) {
		rc = fill_mapping(s, n, pattern, element);
		element += row->size;
	}
	return rc;
}

/* A word's number; the rows' defaults are proven by the unit test. */
static uint32_t word_value(enum mr_schema_type type, const char *word)
{
	uint32_t count;
	const cyaml_strval_t *words = mr_schema_words(type, &count);

	for (uint32_t i = 0; i < count; i++)
		if (strcmp(words[i].str, word) == 0)
			return (uint32_t)words[i].val;
	return 0;
}

static void fill_scalar(const struct mr_yaml_node *node, const struct mr_schema_row *row, char *at)
{
	const char *text = node != NULL ? node->text : row->def;
	uint64_t size;
	uint32_t number;

	if (text == NULL || *text == '\0')
		return;
	switch (row->type) {
	case MR_SCHEMA_SIZE:
		size = size_value(text);
		memcpy(at, &size, sizeof(size));
		return;
	case MR_SCHEMA_CORE:
		number = strcmp(text, "any") == 0 ? UINT32_MAX : (uint32_t)strtoul(text, NULL, 10);
		break;
	case MR_SCHEMA_NUMBER:
		number = (uint32_t)strtoul(text, NULL, 10);
		break;
	default:
		number = word_value(row->type, text);
		break;
	}
	memcpy(at, &number, sizeof(number));
}

static int fill_text(const struct mr_schema_row *row, char *at)
{
	char *text;

	if (row->def == NULL || *row->def == '\0')
		return 0;
	text = strdup(row->def);
	memcpy(at, &text, sizeof(text));
	return text != NULL ? 0 : -ENOMEM;
}

static int fill_mapping(
	const struct mr_schema *s, const struct mr_yaml_node *node, const char *pattern, char *base)
{
	int rc = 0;

	for (uint32_t i = 0; i < s->count && rc == 0; i++) {
		const struct mr_schema_row *row = &s->rows[i];
		const struct mr_yaml_node *n;

		if (!mr_schema_is_below(row, pattern))
			continue;
		n = mr_yaml_find(node, mr_schema_key(row));
		switch (row->type) {
		case MR_SCHEMA_MAPPING:
			rc = fill_mapping(s, n, row->path, base + row->offset);
			break;
		case MR_SCHEMA_MAPPINGS:
			rc = fill_list(s, n, row, base);
			break;
		case MR_SCHEMA_PARAMS:
			rc = fill_params(n, row, base);
			break;
		case MR_SCHEMA_NAME:
		case MR_SCHEMA_TEXT:
			rc = n != NULL ? 0 : fill_text(row, base + row->offset);
			break;
		case MR_SCHEMA_WORDS:
		case MR_SCHEMA_PATHS:
			break;
		default:
			fill_scalar(n, row, base + row->offset);
			break;
		}
	}
	return rc;
}

static int add_lines(
	struct mr_config_lines *lines, const struct mr_yaml_node *node, const char *path)
{
	uint32_t i = 0;
	int rc = 0;

	lines->at[lines->count].key = strdup(path);
	if (lines->at[lines->count].key == NULL)
		return -ENOMEM;
	lines->at[lines->count++].line = node->line;
	for (const struct mr_yaml_node *n = node->child; n != NULL && rc == 0; n = n->next, i++) {
		char below[256];

		if (n->key == NULL)
			snprintf(below, sizeof(below), "%s[%u]", path, i);
		else
			snprintf(below, sizeof(below), "%s%s%s", path, *path != '\0' ? "." : "",
				n->key);
		rc = add_lines(lines, n, below);
	}
	return rc;
}

static uint32_t count_nodes(const struct mr_yaml_node *node)
{
	uint32_t count = 1;

	for (const struct mr_yaml_node *n = node->child; n != NULL; n = n->next)
		count += count_nodes(n);
	return count;
}

int mr_schema_fill(const struct mr_schema *s, const struct mr_yaml_node *top, void *cfg)
{
	uint32_t count = count_nodes(top);
	struct mr_config_lines *lines = calloc(1, sizeof(*lines) + count * sizeof(lines->at[0]));
	int rc;

	if (lines == NULL)
		return -ENOMEM;
	((struct mr_config *)cfg)->lines = lines;
	rc = add_lines(lines, top, "");
	return rc != 0 ? rc : fill_mapping(s, top, "", cfg);
}
