/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_parse.h"

#include <stddef.h>
#include <string.h>

static bool take(const char **text, uint32_t base, uint64_t *ret_value)
{
	const char *s = *text;
	uint64_t v = 0;

	for (;; s++) {
		uint32_t d = base;

		if (*s >= '0' && *s <= '9')
			d = (uint32_t)(*s - '0');
		else if (*s >= 'a' && *s <= 'f')
			d = (uint32_t)(*s - 'a') + 10;
		else if (*s >= 'A' && *s <= 'F')
			d = (uint32_t)(*s - 'A') + 10;
		if (d >= base)
			break;
		if (v > (UINT64_MAX - d) / base)
			return false;
		v = v * base + d;
	}
	if (s == *text)
		return false;
	*text = s;
	*ret_value = v;
	return true;
}

bool mr_parse_take_u64(const char **text, uint64_t *ret_value)
{
	return take(text, 10, ret_value);
}

bool mr_parse_take_hex(const char **text, uint64_t *ret_value)
{
	if ((*text)[0] == '0' && ((*text)[1] == 'x' || (*text)[1] == 'X'))
		*text += 2;
	return take(text, 16, ret_value);
}

static bool is_end(const char *text)
{
	return text[strspn(text, " \t\n\r")] == '\0';
}

bool mr_parse_u64(const char *text, uint64_t *ret_value)
{
	return mr_parse_take_u64(&text, ret_value) && is_end(text);
}

bool mr_parse_hex(const char *text, uint64_t *ret_value)
{
	return mr_parse_take_hex(&text, ret_value) && is_end(text);
}

bool mr_parse_i64(const char *text, int64_t *ret_value)
{
	bool minus = *text == '-';
	uint64_t v;

	if (!mr_parse_u64(text + minus, &v) || v > INT64_MAX)
		return false;
	*ret_value = minus ? -(int64_t)v : (int64_t)v;
	return true;
}

bool mr_parse_list(const char *text, bool *set, uint32_t count, uint32_t *ret_end)
{
	uint64_t from, to;

	*ret_end = 0;
	if (is_end(text))
		return true;
	for (;;) {
		if (!mr_parse_take_u64(&text, &from))
			return false;
		to = from;
		if (*text == '-') {
			text++;
			if (!mr_parse_take_u64(&text, &to) || to < from)
				return false;
		}
		for (uint64_t i = from; i <= to && i < count; i++) {
			set[i] = true;
			if (i + 1 > *ret_end)
				*ret_end = (uint32_t)i + 1;
		}
		if (is_end(text))
			return true;
		if (*text++ != ',')
			return false;
	}
}

const char *mr_parse_token(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (;;) {
		size_t word;

		text += strspn(text, " \t\n");
		word = strcspn(text, " \t\n");
		if (word == 0)
			return NULL;
		if (word >= n && memcmp(text, key, n) == 0 && (word == n || key[n - 1] == '='))
			return text;
		text += word;
	}
}

const char *mr_parse_line(const char *text, const char *key)
{
	size_t n = strlen(key);

	while (text != NULL) {
		if (strncmp(text, key, n) == 0 &&
			(text[n] == ':' || text[n] == ' ' || text[n] == '\t')) {
			text += n + (text[n] == ':');
			return text + strspn(text, " \t");
		}
		text = strchr(text, '\n');
		if (text != NULL)
			text++;
	}
	return NULL;
}

void mr_parse_word(const char *text, char *ret_word, uint32_t bytes)
{
	size_t n = strcspn(text, " \t\r\n");

	if (n >= bytes)
		n = bytes - 1;
	memcpy(ret_word, text, n);
	ret_word[n] = '\0';
}
