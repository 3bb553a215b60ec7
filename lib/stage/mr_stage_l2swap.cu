/* SPDX-License-Identifier: BSD-3-Clause */
/* l2swap: exchange destination and source address of the Ethernet header (IEEE 802.3 3.2). */
#include "mr_stage.h"

MR_HD enum mr_flow mr_stage_l2swap(const struct mr_ctx *ctx, struct mr_view *v)
{
	uint8_t *f = v->frame;

	(void)ctx;
	for (int i = 0; i < 6; i++) {
		uint8_t t = f[i];

		f[i] = f[6 + i];
		f[6 + i] = t;
	}
	return MR_NEXT;
}

#if defined(MR_STAGE_DESCRIBE)
const struct mr_stage_desc mr_stage_desc_l2swap = {
	.name = "l2swap",
	.help = "exchange the Ethernet addresses",
	.id = MR_STAGE_l2swap,
	.work = MR_WORK_THREAD,
};
#endif
