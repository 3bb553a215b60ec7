/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What mr_unpack.h makes of bytes, for a judge who has them too.
 *
 *     unpack < CASES
 *
 * A case is a line "BITS LITTLE OFFSET THRESHOLD COUNT PARTS SIZE" and so many bytes. The samples
 * are summed in that many parts, as threads of a warp would. Prints a line for each: count,
 * total, squares, clipped, rising, least, most, mean and rms times 2^32, then the bins.
 */
#include "mr_unpack.h"

#include <inttypes.h>
#include <stdio.h>

static uint8_t bytes[1 << 20];

static int32_t sample(const struct mr_unpack_format *f, uint64_t i)
{
	struct mr_unpack_group g = {0, 0};

	for (uint32_t k = 0; k < f->bits; k++)
		mr_unpack_push(&g, f, bytes[i / MR_UNPACK_GROUP * f->bits + k]);
	return mr_unpack_value(&g, f, i % MR_UNPACK_GROUP);
}

static void judge(
	const struct mr_unpack_format *f, int32_t threshold, uint64_t count, uint64_t parts)
{
	uint64_t bins[MR_UNPACK_BINS] = {0};
	struct mr_unpack_sum sum;

	mr_unpack_sum_init(&sum);
	for (uint64_t p = 0; p < parts; p++) {
		struct mr_unpack_sum part;

		mr_unpack_sum_init(&part);
		for (uint64_t i = count * p / parts; i < count * (p + 1) / parts; i++) {
			int32_t value = sample(f, i);

			mr_unpack_add(&part, f, value, i > 0 ? sample(f, i - 1) : value, threshold);
			bins[mr_unpack_bin(f, value)]++;
		}
		mr_unpack_merge(&sum, &part);
	}
	printf("%" PRIu64 " %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %d %" PRId64
	       " %" PRIu64,
		sum.count, sum.total, sum.squares, sum.clipped, sum.rising, sum.least, sum.most,
		mr_unpack_mean(&sum), mr_unpack_rms(&sum));
	for (uint32_t i = 0; i < MR_UNPACK_BINS; i++)
		printf(" %" PRIu64, bins[i]);
	printf("\n");
}

int main(void)
{
	uint64_t count, parts;
	struct mr_unpack_format f;
	int32_t threshold;
	size_t size;

	while (scanf("%u %u %u %d %" SCNu64 " %" SCNu64 " %zu", &f.bits, &f.little, &f.offset,
		       &threshold, &count, &parts, &size) == 7) {
		if (getchar() != '\n' || size > sizeof(bytes) ||
			fread(bytes, 1, size, stdin) != size)
			return 2;
		judge(&f, threshold, count, parts);
	}
	return feof(stdin) ? 0 : 2;
}
