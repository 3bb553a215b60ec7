/* SPDX-License-Identifier: BSD-3-Clause */
/* drop: free the frame and count it under a reason. */
#include "mr_stage.h"

struct mr_drop_params {
	uint32_t reason;
};

MR_HD enum mr_flow mr_stage_drop(const struct mr_ctx *ctx, struct mr_view *v)
{
	const struct mr_drop_params *p = (const struct mr_drop_params *)ctx->params;

	return mr_drop(v, (enum mr_reason)p->reason);
}

#if defined(MR_STAGE_DESCRIBE)
static const struct mr_param_desc drop_params[] = {
	{.name = "reason",
		.type = MR_PARAM_REASON,
		.offset = offsetof(struct mr_drop_params, reason),
		.def = "policy",
		.unit = "",
		.help = "the gpu_drop_<reason> counter that the frame is counted under"},
};

const struct mr_stage_desc mr_stage_desc_drop = {
	.name = "drop",
	.help = "free the frame and count it under a reason",
	.id = MR_STAGE_drop,
	.work = MR_WORK_THREAD,
	.in_place = true,
	.params = drop_params,
	.params_count = MR_ARRAY_LEN(drop_params),
};
#endif
