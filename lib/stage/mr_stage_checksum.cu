/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checksum: read every byte of the frame and add up the 16-bit one's-complement
 * sums (RFC 1071 section 1: big-endian words, an odd last byte padded with zero
 * on the right, carries folded). The frame is not changed.
 */
#include "mr_stage.h"

enum {
	MR_CHECKSUM_FRAMES,
	MR_CHECKSUM_BYTES,
	MR_CHECKSUM_SUM,
};

MR_HD uint32_t mr_checksum_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)sum;
}

MR_HD enum mr_flow mr_stage_checksum(const struct mr_ctx *ctx, struct mr_view *v)
{
	const uint8_t *f = v->frame;
	uint32_t words = v->length / 2;
	uint64_t sum = 0;

	for (uint32_t i = ctx->rank; i < words; i += ctx->size)
		sum += (uint32_t)f[2 * i] << 8 | f[2 * i + 1];
	if ((v->length & 1) != 0 && ctx->rank == 0)
		sum += (uint32_t)f[v->length - 1] << 8;
	sum = mr_group_sum(ctx, sum);
	if (ctx->rank == 0) {
		mr_count(ctx, MR_CHECKSUM_FRAMES, 1);
		mr_count(ctx, MR_CHECKSUM_BYTES, v->length);
		mr_count(ctx, MR_CHECKSUM_SUM, mr_checksum_fold(sum));
	}
	return MR_NEXT;
}

#if defined(MR_STAGE_DESCRIBE)
static const struct mr_stage_counter checksum_counters[] = {
	[MR_CHECKSUM_FRAMES] = {"frames", "frames summed"},
	[MR_CHECKSUM_BYTES] = {"bytes", "bytes of those frames"},
	[MR_CHECKSUM_SUM] = {"sum", "total of the frames' 16-bit one's-complement sums"},
};

const struct mr_stage_desc mr_stage_desc_checksum = {
	.name = "checksum",
	.help = "read every byte and total the frames' 16-bit one's-complement sums (RFC 1071)",
	.id = MR_STAGE_checksum,
	.work = MR_WORK_WARP,
	.counters = checksum_counters,
	.counters_count = MR_ARRAY_LEN(checksum_counters),
};
#endif
