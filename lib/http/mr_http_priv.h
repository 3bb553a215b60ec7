/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_http_priv - who may ask. */
#ifndef MR_HTTP_PRIV_H
#define MR_HTTP_PRIV_H

#include "mr_http.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_http_users;

enum mr_http_access {
	MR_HTTP_GRANTED,
	MR_HTTP_DENIED,
	MR_HTTP_LATER, /* too many wrong passwords just now */
};

MR_MUST_USE int mr_http_users_read(
	const char *file, struct mr_http_users **ret_users, struct mr_err *err);
void mr_http_users_free(struct mr_http_users *u);

/*
 * name or password may be NULL. One caller at a time; a hash takes some milliseconds. Wrong
 * passwords of a second are counted by peer, any number for where a request comes from, so
 * that who guesses does not keep others out.
 */
enum mr_http_access mr_http_users_ask(struct mr_http_users *u, uint32_t peer, const char *name,
	const char *password, uint64_t now_ns);

#endif
