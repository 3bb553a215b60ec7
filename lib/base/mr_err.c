/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_err.h"

#include <stdarg.h>
#include <stdio.h>

int mr_err_set(struct mr_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (err == NULL)
		return code;
	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return code;
}
