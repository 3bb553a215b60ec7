/* SPDX-License-Identifier: BSD-3-Clause */
/* l2swap: exchange destination and source address of the Ethernet header (IEEE 802.3 3.2). */
#include "mr_stage.h"

MR_HD enum mr_flow mr_stage_l2swap(const struct mr_ctx *ctx, struct mr_view *v)
{
	uint8_t *f = v->frame;

	(void)ctx;
	/* Both addresses are three words, and their exchange is a rotation by six bytes. */
	if (((uintptr_t)f & 3) == 0) {
		uint32_t *w = (uint32_t *)(void *)f;
		uint32_t a = w[0], b = w[1], c = w[2];

		w[0] = b >> 16 | c << 16;
		w[1] = c >> 16 | a << 16;
		w[2] = a >> 16 | b << 16;
		return MR_NEXT;
	}
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
	.in_place = true,
};
#endif
