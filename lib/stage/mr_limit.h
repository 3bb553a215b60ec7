/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_limit - how often something may happen, kept in one word that all threads share.
 *
 * The generic cell rate algorithm (ITU-T I.371, virtual scheduling), which lets through what a
 * token bucket does that holds `burst` and is full at the beginning: the word is the time at
 * which the bucket would be full again. Each that passes moves it on by the time of one. So the
 * beginning of the word is 0, a clock may begin anywhere, and one compare-and-swap is enough for
 * any number of threads and workers: exactly as many pass as may.
 *
 * A rate that does not divide 10^9 is rounded up, by less than a thousandth up to 10^6 a second.
 */
#ifndef MR_LIMIT_H
#define MR_LIMIT_H

#include "mr_sync.h"

#define MR_LIMIT_RATE_MAX 1000000u
#define MR_LIMIT_BURST_MAX 1000000u
#define MR_LIMIT_SLACK_NS 1000000000u

/*
 * mr_limit_take tells whether one more may happen at now_ns; per_second and burst are from 1 to
 * their MAX, and may change between calls. now_ns is of one clock, but may be older than
 * another thread's. A word that lies further ahead than burst and rate can bring it was
 * written under others, and is brought back to an empty bucket of these.
 */
MR_HD int mr_limit_take(uint64_t *word, uint64_t now_ns, uint32_t per_second, uint32_t burst)
{
	const uint64_t each_ns = 1000000000u / per_second;

	for (;;) {
		uint64_t full = mr_load_relaxed_u64(word);
		uint64_t from = full > now_ns ? full : now_ns;
		int passes = from - now_ns <= (burst - 1) * each_ns;

		if (!passes && from - now_ns <= burst * each_ns + MR_LIMIT_SLACK_NS)
			return 0;
		from = passes ? from + each_ns : now_ns + burst * each_ns;
		if (mr_swap_u64(word, full, from))
			return passes;
	}
}

#endif
