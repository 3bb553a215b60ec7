/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checksum: read every byte of the frame, or its first ones only, and add up the
 * 16-bit one's-complement sums (RFC 1071 section 1: big-endian words, an odd last byte
 * padded with zero on the right, carries folded). The frame is not changed.
 *
 * It is read in aligned pieces of 16 bytes, a thread one piece, and summed as
 * 32-bit little-endian words: 2^32 and 2^16 are both 1 modulo 2^16 - 1.
 */
#include "mr_stage.h"

enum {
	MR_CHECKSUM_FRAMES,
	MR_CHECKSUM_BYTES,
	MR_CHECKSUM_SUM,
};

struct mr_checksum_params {
	uint32_t bytes; /* 0: all */
};

/* The sum of what [begin, end) has of the 16 bytes at p, as little-endian words. */
MR_HD uint64_t mr_checksum_chunk(const uint8_t *p, const uint8_t *begin, const uint8_t *end)
{
	uint64_t sum = 0;

	if (p >= begin && p + 16 <= end) {
		uint32_t w[4];

		mr_frame_load_16(p, w);
		return (uint64_t)w[0] + w[1] + w[2] + w[3];
	}
	for (uint32_t i = p < begin ? (uint32_t)(begin - p) : 0; i < 16 && p + i < end; i++)
		sum += mr_frame_load_1(p + i) << (i % 2 * 8);
	return sum;
}

MR_HD enum mr_flow mr_stage_checksum(const struct mr_ctx *ctx, struct mr_view *v)
{
	const struct mr_checksum_params *param = (const struct mr_checksum_params *)ctx->params;
	uint32_t before = (uint32_t)((uintptr_t)v->frame % 16);
	uint32_t bytes = param->bytes != 0 && param->bytes < v->length ? param->bytes : v->length;
	const uint8_t *end = v->frame + bytes;
	uint64_t sum = 0;

	for (const uint8_t *p = v->frame - before + 16 * ctx->rank; p < end; p += 16 * ctx->size)
		sum += mr_checksum_chunk(p, v->frame, end);
	sum = mr_sum_fold(mr_group_sum(ctx, sum));
	/* The sum of swapped words is the swapped sum (RFC 1071 section 2 B). */
	if (before % 2 == 0)
		sum = (sum & 0xff) << 8 | sum >> 8;
	if (ctx->rank == 0) {
		mr_count(ctx, MR_CHECKSUM_FRAMES, 1);
		mr_count(ctx, MR_CHECKSUM_BYTES, bytes);
		mr_count(ctx, MR_CHECKSUM_SUM, sum);
	}
	return MR_NEXT;
}

#if defined(MR_STAGE_DESCRIBE)
static const struct mr_param_desc checksum_params[] = {
	{.name = "bytes",
		.type = MR_PARAM_U32,
		.offset = offsetof(struct mr_checksum_params, bytes),
		.max = UINT16_MAX,
		.def = "0",
		.unit = "bytes",
		.help = "sum no more than so many of a frame's first bytes; 0: all"},
};

static const struct mr_stage_counter checksum_counters[] = {
	[MR_CHECKSUM_FRAMES] = {"frames", "frames summed"},
	[MR_CHECKSUM_BYTES] = {"bytes", "bytes summed of them"},
	[MR_CHECKSUM_SUM] = {"sum", "total of the frames' 16-bit one's-complement sums"},
};

const struct mr_stage_desc mr_stage_desc_checksum = {
	.name = "checksum",
	.help = "read the frames' bytes and total their 16-bit one's-complement sums (RFC 1071)",
	.id = MR_STAGE_checksum,
	.work = MR_WORK_WARP,
	.in_place = true,
	.params = checksum_params,
	.params_count = MR_ARRAY_LEN(checksum_params),
	.counters = checksum_counters,
	.counters_count = MR_ARRAY_LEN(checksum_counters),
};
#endif
