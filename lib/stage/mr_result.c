/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_err.h"

#include <errno.h>
#include <stddef.h>

#include "mr_result.h"

int mr_result_check(const char *stage, const struct mr_result_to *to, struct mr_err *err)
{
	if (to->dst.family == to->src.family)
		return 0;
	if (to->src.family == 0)
		return mr_err_set(err, -EINVAL,
			"stage '%s' has a result_dst, but no result_src that results come from",
			stage);
	if (to->dst.family == 0)
		return mr_err_set(err, -EINVAL,
			"stage '%s' has a result_src, but no result_dst that results go to", stage);
	return mr_err_set(err, -EINVAL,
		"stage '%s' has result_dst and result_src of two families: one is IPv4, the other "
		"IPv6",
		stage);
}
