/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_config_keys.h"

#include "mr_schema.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void add(struct mr_config_key *k, const char *fmt, ...) MR_PRINTF(2, 3);

static void add(struct mr_config_key *k, const char *fmt, ...)
{
	size_t used = strlen(k->kind);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(k->kind + used, sizeof(k->kind) - used, fmt, ap);
	va_end(ap);
}

static void add_size(struct mr_config_key *k, uint64_t bytes)
{
	if (bytes % (1u << 30) == 0)
		add(k, "%" PRIu64 "GiB", bytes >> 30);
	else if (bytes % (1u << 20) == 0)
		add(k, "%" PRIu64 "MiB", bytes >> 20);
	else
		add(k, "%" PRIu64 "KiB", bytes >> 10);
}

static void add_words(struct mr_config_key *k, enum mr_schema_type type)
{
	uint32_t count;
	const cyaml_strval_t *words = mr_schema_words(type, &count);

	for (uint32_t i = 0; i < count; i++)
		add(k, "%s%s", i > 0 ? ", " : "", words[i].str);
}

static void add_type(struct mr_config_key *k, const struct mr_schema_row *r)
{
	switch (r->type) {
	case MR_SCHEMA_NUMBER:
		add(k, "number, %" PRIu64 " to %" PRIu64, r->min, r->max);
		break;
	case MR_SCHEMA_SIZE:
		add(k, "size, ");
		add_size(k, r->min);
		add(k, " to ");
		add_size(k, r->max);
		break;
	case MR_SCHEMA_CORE:
		add(k, "number, %" PRIu64 " to %" PRIu64 ", or any", r->min, r->max);
		break;
	case MR_SCHEMA_NAME:
		add(k, "name, at most %" PRIu64 " characters", r->max);
		break;
	case MR_SCHEMA_TEXT:
		add(k, "text, at most %" PRIu64 " bytes", r->max);
		break;
	case MR_SCHEMA_MAPPINGS:
		add(k, "list, %" PRIu64 " to %" PRIu64 " entries", r->min, r->max);
		break;
	case MR_SCHEMA_WORDS:
		add(k, "list of text, at most %" PRIu64, r->max);
		break;
	case MR_SCHEMA_MAPPING:
	case MR_SCHEMA_PARAMS:
		add(k, "mapping");
		break;
	case MR_SCHEMA_PATHS:
		add(k, "list of ");
		/* fall through */
	default:
		add_words(k, r->type);
	}
}

bool mr_config_key_at(bool gen, uint32_t i, struct mr_config_key *ret_key)
{
	const struct mr_schema_row *r = mr_schema_at(gen ? &mr_schema_gen : &mr_schema_run, i);

	if (r == NULL)
		return false;
	*ret_key = (struct mr_config_key){.path = r->path, .help = r->help};
	add_type(ret_key, r);
	if (r->unit[0] != '\0' && strcmp(r->unit, "entries") != 0 && strcmp(r->unit, "bytes") != 0)
		add(ret_key, " %s", r->unit);
	else if (r->type == MR_SCHEMA_NUMBER && r->unit[0] != '\0')
		add(ret_key, " %s", r->unit);
	if (r->required)
		add(ret_key, "; required");
	else if (r->def != NULL && r->def[0] != '\0')
		add(ret_key, "; default %s", r->def);
	return true;
}
