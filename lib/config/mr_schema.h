/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_schema - the rows of the .def files as data, and what they check and load.
 *
 * There is a schema for each kind of configuration; both begin with the rows of
 * mr_schema_base.def.
 *
 *     tree (mr_yaml) ─ mr_schema_check ─► problems, key lines
 *     text ─ mr_schema_load ─► structures ─ mr_schema_fill ─► complete
 *
 * The work is split by what libcyaml 1.3.1 is good at. It allocates lists and
 * text and stores numbers and words, from schema structures made of the rows.
 * It cannot do the following, which is done on the tree instead: report every
 * error with its own line, refuse half-read numbers, duplicate keys and an empty
 * file, read sizes and `core`, put defaults, take a free-form mapping (params).
 *
 * Private to lib/config and its tests.
 *
 * Thread   any; the rows are constant.
 */
#ifndef MR_SCHEMA_H
#define MR_SCHEMA_H

#include "mr_config.h"
#include "mr_host.h"
#include "mr_yaml.h"

#include <cyaml/cyaml.h>

enum mr_schema_type {
	MR_SCHEMA_NUMBER,
	MR_SCHEMA_SIZE,
	MR_SCHEMA_NAME,
	MR_SCHEMA_TEXT,
	MR_SCHEMA_CORE,
	MR_SCHEMA_LEVEL,
	MR_SCHEMA_OVERLOAD,
	MR_SCHEMA_HUGEPAGES,
	MR_SCHEMA_STEERING,
	MR_SCHEMA_SIZES,
	MR_SCHEMA_SEARCH,
	MR_SCHEMA_READBACK,
	MR_SCHEMA_ALARM,
	MR_SCHEMA_MAPPINGS,
	MR_SCHEMA_WORDS,
	MR_SCHEMA_PATHS,
	MR_SCHEMA_MAPPING,
	MR_SCHEMA_PARAMS,
};

struct mr_schema_row {
	const char *path;
	enum mr_schema_type type;
	bool required;
	uint32_t offset;       /* of the member in the structure around it */
	uint32_t count_offset; /* lists */
	uint32_t size;         /* of the member; lists: of an element */
	uint64_t min, max;
	const char *def; /* as written; NULL or "": none */
	const char *unit;
	const char *help;
};

struct mr_config_lines {
	uint32_t count;
	struct {
		char *key;
		uint32_t line;
	} at[];
};

struct mr_schema {
	const struct mr_schema_row *rows;
	uint32_t count;
	size_t bytes;       /* of the structure, which begins with a struct mr_config */
	const char *manual; /* the file that shows every key */
};

extern const struct mr_schema mr_schema_run; /* struct mr_config */
extern const struct mr_schema mr_schema_gen; /* struct mr_gen_config */

/* mr_schema_at returns the i-th row, or NULL behind the last. */
const struct mr_schema_row *mr_schema_at(const struct mr_schema *s, uint32_t i);

/* mr_schema_key returns the last key of a row's path: "packets". */
const char *mr_schema_key(const struct mr_schema_row *row);

/* mr_schema_is_below tells whether a row is a key of the mapping with that path ("": the top). */
bool mr_schema_is_below(const struct mr_schema_row *row, const char *pattern);

/* mr_schema_words gives the words of a type that has them (LEVEL to PATHS). */
const cyaml_strval_t *mr_schema_words(enum mr_schema_type type, uint32_t *ret_count);

/* mr_schema_check adds a problem for everything in the tree that no row allows. */
void mr_schema_check(
	const struct mr_schema *s, const struct mr_yaml_node *top, struct mr_problems *ps);

/* mr_schema_load lets libcyaml make the structures of a checked text. */
MR_MUST_USE int mr_schema_load(const struct mr_schema *s, const char *text, size_t bytes,
	void *ret_cfg, struct mr_problems *ps);

/* mr_schema_fill adds sizes, cores, params, defaults and lines. -ENOMEM only. */
MR_MUST_USE int mr_schema_fill(
	const struct mr_schema *s, const struct mr_yaml_node *top, void *cfg);

/*
 * mr_schema_read does all of it for a file, or for text where text is not NULL. On a
 * failure, with a problem, what is in *ret_cfg is still to be freed.
 */
MR_MUST_USE int mr_schema_read(const struct mr_schema *s, const char *file, const char *text,
	size_t bytes, void *ret_cfg, struct mr_problems *ps);

#endif
