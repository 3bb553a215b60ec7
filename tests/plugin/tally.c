/* SPDX-License-Identifier: BSD-3-Clause */
/* tally: count UDP frames by destination port, and drop those for a port that is closed. */
#include "mr_plugin.h"

struct tally_params {
	uint32_t closed;
};

enum tally_counter {
	TALLY_UDP,
	TALLY_CLOSED,
};

MR_HD enum mr_flow mr_stage_tally(const struct mr_ctx *ctx, struct mr_view *v)
{
	const struct tally_params *p = (const struct tally_params *)ctx->params;
	struct mr_headers h;

	mr_walk(v, 0, &h);
	if ((h.has & MR_HAS_UDP) == 0)
		return MR_NEXT;
	mr_count(ctx, TALLY_UDP, 1);
	if (p->closed == 0 || mr_get_be16(v, h.l4 + 2) != p->closed)
		return MR_NEXT;
	mr_count(ctx, TALLY_CLOSED, 1);
	return mr_drop(v, MR_REASON_policy);
}

#if !defined(__CUDACC__)
static const struct mr_param_desc tally_params[] = {
	{.name = "closed",
		.type = MR_PARAM_U32,
		.offset = offsetof(struct tally_params, closed),
		.max = 65535,
		.def = "0",
		.unit = "",
		.help = "UDP port whose frames are dropped; 0: none"},
};

static const struct mr_stage_counter tally_counters[] = {
	[TALLY_UDP] = {"udp", "frames that are UDP"},
	[TALLY_CLOSED] = {"closed", "frames for the closed port"},
};

static const struct mr_stage_desc mr_stage_desc_tally = {
	.name = "tally",
	.help = "count UDP frames, and drop those for one port",
	.work = MR_WORK_THREAD,
	.params = tally_params,
	.params_count = MR_ARRAY_LEN(tally_params),
	.counters = tally_counters,
	.counters_count = MR_ARRAY_LEN(tally_counters),
};
#endif

#define MR_PLUGIN_STAGES(ROW) ROW(tally, THREAD)
#include "mr_plugin_image.cu"
