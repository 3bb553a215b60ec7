/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What mr_unpack.h makes of bytes, for a judge who has them too.
 *
 *     unpack BITS LITTLE OFFSET THRESHOLD COUNT PARTS < BYTES
 *
 * The samples are summed in that many parts, as threads of a warp would. Prints a line: count,
 * total, squares, clipped, rising, least, most, mean and rms times 2^32, then the bins.
 */
#include "mr_unpack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint8_t bytes[1 << 20];
static uint64_t bins[MR_UNPACK_BINS];

static int32_t sample(const struct mr_unpack_format *f, uint64_t i)
{
	struct mr_unpack_group g = {0, 0};

	for (uint32_t k = 0; k < f->bits; k++)
		mr_unpack_push(&g, f, bytes[i / MR_UNPACK_GROUP * f->bits + k]);
	return mr_unpack_value(&g, f, i % MR_UNPACK_GROUP);
}

int main(int argc, char **argv)
{
	struct mr_unpack_sum sum;
	struct mr_unpack_format f;
	int32_t threshold;
	uint64_t count, parts;

	if (argc != 7 || fread(bytes, 1, sizeof(bytes), stdin) == sizeof(bytes))
		return 2;
	f = (struct mr_unpack_format){
		(uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3])};
	threshold = atoi(argv[4]);
	count = strtoull(argv[5], NULL, 10);
	parts = strtoull(argv[6], NULL, 10);
	mr_unpack_sum_init(&sum);
	for (uint64_t p = 0; p < parts; p++) {
		struct mr_unpack_sum part;

		mr_unpack_sum_init(&part);
		for (uint64_t i = count * p / parts; i < count * (p + 1) / parts; i++) {
			int32_t value = sample(&f, i);

			mr_unpack_add(
				&part, &f, value, i > 0 ? sample(&f, i - 1) : value, threshold);
			bins[mr_unpack_bin(&f, value)]++;
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
	return 0;
}
