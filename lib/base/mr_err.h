/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_err - an error goes up once, with words.
 *
 * Every control-path function that can fail returns 0 or -errno and takes a
 * struct mr_err last. The function that knows what went wrong writes one
 * sentence: what was tried, on what, what came back, what to do. Callers pass
 * it up unchanged; only app/ prints it. Libraries never log.
 *
 * Thread   any; the struct belongs to the caller.
 * Errors   err may be NULL, then only the code is returned.
 */
#ifndef MR_ERR_H
#define MR_ERR_H

#include "mr_base.h"

struct mr_err {
	int code;       /* -errno */
	char msg[1024]; /* one sentence without a newline */
};

/* mr_err_set fills err and returns code (which must be negative). */
int mr_err_set(struct mr_err *err, int code, const char *fmt, ...) MR_PRINTF(3, 4);

#endif
