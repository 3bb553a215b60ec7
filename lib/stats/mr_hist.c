/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_hist.h"

uint64_t mr_hist_bound(uint32_t i)
{
	uint32_t shift;

	if (i < MR_HIST_SUB)
		return i;
	if (i >= MR_HIST_BUCKETS - 1)
		return UINT64_MAX; /* it also holds all that is beyond the scale */
	shift = i / MR_HIST_SUB - 1;
	return ((uint64_t)(MR_HIST_SUB + i % MR_HIST_SUB + 1) << shift) - 1;
}

uint64_t mr_hist_quantile(const struct mr_hist *h, uint32_t per_million)
{
	/* Rounded up: at least that share lies at or below. 128 bits hold the product. */
	uint64_t rank = (uint64_t)(((unsigned __int128)h->count * per_million + 999999) / 1000000);
	uint64_t seen = 0;

	if (h->count == 0)
		return 0;
	if (rank == 0)
		rank = 1;
	for (uint32_t i = 0; i < MR_HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen >= rank) {
			uint64_t bound = mr_hist_bound(i);

			return bound < h->max_ns ? bound : h->max_ns;
		}
	}
	return h->max_ns;
}
