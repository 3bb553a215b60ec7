/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_err.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "mr_result.h"

/* RFC 1122 3.2.1.3, RFC 4291 2.5.2 and 2.7: nobody's, or of a group. */
static bool is_nobody(const struct mr_ip *ip)
{
	return (ip->word[0] | ip->word[1] | ip->word[2] | ip->word[3]) == 0 ||
		(ip->family == 4 && ip->word[0] >> 24 == 0);
}

static bool is_group(const struct mr_ip *ip)
{
	return ip->family == 4 ? ip->word[0] >> 28 >= 14 : ip->word[0] >> 24 == 0xff;
}

int mr_result_check(
	const char *stage, const struct mr_result_to *to, uint32_t frame_bytes, struct mr_err *err)
{
	if (to->dst.family == 0 && to->src.family == 0)
		return 0;
	if (to->dst.family == to->src.family) {
		if (is_nobody(&to->src) || is_group(&to->src))
			return mr_err_set(err, -EINVAL,
				"stage '%s' has a result_src that no packet may come from", stage);
		if (is_nobody(&to->dst))
			return mr_err_set(err, -EINVAL,
				"stage '%s' has a result_dst that is nobody's address", stage);
		if (frame_bytes < MR_RESULT_FRAME_MIN)
			return mr_err_set(err, -EINVAL,
				"stage '%s' tells results in frames of %u bytes or more, but the "
				"receiving port's mtu allows %u; raise it to %u, or leave "
				"result_dst out",
				stage, MR_RESULT_FRAME_MIN, frame_bytes,
				MR_RESULT_FRAME_MIN - MR_FRAME_MIN);
		if (frame_bytes < to->bytes)
			return mr_err_set(err, -EINVAL,
				"stage '%s' tells results in frames of up to %u bytes, but the "
				"receiving port's mtu allows %u; set result_bytes to that, or "
				"raise mtu to %u",
				stage, to->bytes, frame_bytes, to->bytes - MR_FRAME_MIN);
		return 0;
	}
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
