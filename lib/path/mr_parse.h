/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_parse - what the kernel writes into its text files.
 *
 * Every function takes text that is not trusted, accepts a whole value or
 * nothing, and never wraps around.
 *
 * Thread   any.
 * Source   Linux Documentation/admin-guide/cputopology.rst (lists), proc(5)
 */
#ifndef MR_PARSE_H
#define MR_PARSE_H

#include <stdbool.h>
#include <stdint.h>

/* A number in front of *text, which is moved behind it. */
bool mr_parse_take_u64(const char **text, uint64_t *ret_value);
bool mr_parse_take_hex(const char **text, uint64_t *ret_value);

/* The whole text is one number; white space may follow. "0x" may precede hex. */
bool mr_parse_u64(const char *text, uint64_t *ret_value);
bool mr_parse_hex(const char *text, uint64_t *ret_value);
bool mr_parse_i64(const char *text, int64_t *ret_value);

/*
 * A list as in "0-3,8"; sets its members below count. *ret_end is the highest of
 * them + 1. An empty text is an empty list.
 */
bool mr_parse_list(const char *text, bool *set, uint32_t count, uint32_t *ret_end);

/* The word (separated by white space) that is key, or begins with key if that ends in '='. */
const char *mr_parse_token(const char *text, const char *key);

/* The text behind "KEY:" or "KEY " at the start of a line, blanks skipped; NULL: none. */
const char *mr_parse_line(const char *text, const char *key);

/* Copies at most bytes - 1 characters up to white space or the end. */
void mr_parse_word(const char *text, char *ret_word, uint32_t bytes);

#endif
