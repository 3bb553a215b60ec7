/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * format_fixture - tables of formats from text, and frames around bytes that are written by hand.
 */
#ifndef FORMAT_FIXTURE_H
#define FORMAT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mr_base.h"
#include "mr_format.h"

#define ROOM 2048u
#define ROWS 20u

/* RFC 7011 A.2 to A.4: templates and data, then options and theirs; without the header. */
#define RFC7011_EXAMPLE                                                                            \
	"0002 001c 0100 0005 0008 0004 000c 0004 000f 0004 0002 0004 0001 0004"                    \
	"0100 0040 c000020c c00002fe c0000201 00001391 00518c81"                                   \
	"c000021b c0000217 c0000202 000002ec 0005ef46 c0000238 c0000241 c0000203 00000005"         \
	"00001986 0003 0018 0102 0003 0001 008d 0004 0029 0002 002a 0002 0000"                     \
	"0102 0014 00000001 0159 27d9 00000002 02b2 4fb2"

/* The bytes of a hexadecimal text with blanks. */
static inline uint32_t unhex(const char *text, uint8_t *ret_bytes)
{
	uint32_t n = 0;

	for (; *text != '\0'; text++) {
		char pair[3] = {text[0], text[1], '\0'};

		if (*text == ' ')
			continue;
		ret_bytes[n++] = (uint8_t)strtoul(pair, NULL, 16);
		text++;
	}
	return n;
}

static inline struct mr_format_table *build(
	const char *text, uint32_t rows_max, struct mr_table_errors *ret_errors)
{
	char *copy = strdup(text);
	struct mr_table_text t = {.at = copy, .errors = ret_errors};
	struct mr_format_table *table = malloc(mr_format_bytes(rows_max));
	size_t bytes = 0;

	ret_errors->count = 0;
	assert_int_equal(mr_format_build(&t, rows_max, table, &bytes), 0);
	assert_true(bytes <= mr_format_bytes(rows_max));
	free(copy);
	return table;
}

static inline struct mr_format_table *must_build(const char *text)
{
	struct mr_table_errors errors;
	struct mr_format_table *table = build(text, ROWS, &errors);

	if (errors.count != 0)
		fail_msg("%s: line %u: %s", text, errors.e[0].line, errors.e[0].message);
	return table;
}

/* What is around a datagram. */
enum envelope {
	PLAIN,
	TAGGED,
	TWICE_TAGGED,
	OPTIONS,
	IPV6,
	ENVELOPES,
};

static inline void put16(uint8_t *at, uint32_t x)
{
	at[0] = (uint8_t)(x >> 8);
	at[1] = (uint8_t)x;
}

/* A frame with n bytes of a datagram to a port, or of an EtherType; returns where they begin. */
static inline uint32_t seal(
	uint8_t *frame, enum envelope e, uint32_t key, const uint8_t *bytes, uint32_t n)
{
	uint32_t at = 12, ip = e == OPTIONS ? 24 : 20;

	memset(frame, 0, 128);
	if (e == TWICE_TAGGED) {
		put16(frame + at, 0x88a8);
		at += 4;
	}
	if (e == TAGGED || e == TWICE_TAGGED) {
		put16(frame + at, 0x8100);
		at += 4;
	}
	put16(frame + at, key >= MR_FORMAT_ETHER ? key & 0xffff : e == IPV6 ? 0x86dd : 0x0800);
	at += 2;
	if (key < MR_FORMAT_ETHER) {
		if (e == IPV6) {
			frame[at] = 0x60;
			put16(frame + at + 4, 8 + n);
			frame[at + 6] = 17;
			at += 40;
		} else {
			frame[at] = (uint8_t)(0x40 | ip / 4);
			put16(frame + at + 2, ip + 8 + n);
			frame[at + 9] = 17;
			at += ip;
		}
		put16(frame + at + 2, key);
		put16(frame + at + 4, 8 + n);
		at += 8;
	}
	memcpy(frame + at, bytes, n);
	return at;
}

#endif
