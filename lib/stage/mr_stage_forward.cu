/* SPDX-License-Identifier: BSD-3-Clause */
/* forward: send the frame unchanged to one entry of the lane's tx list. */
#include "mr_stage.h"

struct mr_forward_params {
	uint32_t port;
};

MR_HD enum mr_flow mr_stage_forward(const struct mr_ctx *ctx, struct mr_view *v)
{
	const struct mr_forward_params *p = (const struct mr_forward_params *)ctx->params;

	v->verdict = MR_TX;
	v->port = (uint8_t)p->port;
	return MR_NEXT;
}

#if defined(MR_STAGE_DESCRIBE)
static const struct mr_param_desc forward_params[] = {
	{.name = "port",
		.type = MR_PARAM_PORT,
		.offset = offsetof(struct mr_forward_params, port),
		.def = "0",
		.unit = "",
		.help = "where it goes"},
};

const struct mr_stage_desc mr_stage_desc_forward = {
	.name = "forward",
	.help = "send the frame unchanged to one entry of the lane's tx list",
	.id = MR_STAGE_forward,
	.work = MR_WORK_THREAD,
	.in_place = true,
	.params = forward_params,
	.params_count = MR_ARRAY_LEN(forward_params),
};
#endif
