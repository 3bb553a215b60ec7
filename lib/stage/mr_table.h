/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_table - from a text file of routes or rules to what a stage looks them up in.
 *
 *     file ─ lines ─ words ─► the stage's build ─► table ─ copied ─► device memory
 *                                  └─► errors, each with its line
 *
 * A line is words between blanks; what is behind a # is for people, and a line without words
 * is nothing. build takes the lines one by one and goes on after a mistake, so that one run
 * tells all of them, up to a bound. It makes a table that holds offsets and no addresses, in
 * memory of at most bytes(params); that much is set aside on the device twice, so a reload
 * needs no memory.
 *
 * Thread   any; build keeps nothing.
 * Owner    the caller of mr_stage_table_build.
 * Errors   in struct mr_table_errors.
 */
#ifndef MR_TABLE_H
#define MR_TABLE_H

#include "mr_err.h"
#include "mr_param.h"

#include <stdbool.h>
#include <stddef.h>

#define MR_TABLE_FILE_MAX (256u << 20) /* bytes of a file */
#define MR_TABLE_WORDS_MAX 64u         /* words of a line; those behind them are not kept */
#define MR_TABLE_ERRORS_MAX 16u

struct mr_table_errors {
	uint32_t count; /* may exceed MR_TABLE_ERRORS_MAX; the rest was not kept */
	struct {
		uint32_t line; /* 0: of the file as a whole */
		char message[256];
	} e[MR_TABLE_ERRORS_MAX];
};

/* The text while it is read, and the line that mr_table_next found. */
struct mr_table_text {
	char *at; /* the rest, ended by a 0 */
	uint32_t line;
	uint32_t words;
	char *word[MR_TABLE_WORDS_MAX];
	struct mr_table_errors *errors;
};

/* mr_table_next finds the next line with words; false: there is none. */
bool mr_table_next(struct mr_table_text *t);

/* mr_table_refuse adds an error at the line that was found last. */
void mr_table_refuse(struct mr_table_text *t, const char *fmt, ...) MR_PRINTF(2, 3);

struct mr_table_desc {
	const char *file;     /* parameter of MR_PARAM_FILE */
	const char *capacity; /* parameter that bounds the entries */
	/* Bytes that a table takes at most. */
	size_t (*bytes)(const uint8_t params[MR_PARAM_BYTES]);
	/* Fills table and says how much of it is used. -ENOMEM; other errors are in text. */
	int (*build)(struct mr_table_text *text, const uint8_t params[MR_PARAM_BYTES],
		const struct mr_param_env *env, void *table, size_t *ret_bytes);
};

#endif
