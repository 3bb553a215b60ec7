/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_interval - which of the intervals that a table cuts a field into a value is in.
 *
 * Interval i begins at bounds[i] and ends before bounds[i + 1]; the first begins at 0, so
 * there is always one. An IPv6 bound is four words, the highest first. A search takes as many
 * steps as count has bits, whatever it finds, so that the threads of a warp stay together.
 */
#ifndef MR_INTERVAL_H
#define MR_INTERVAL_H

#include "mr_param.h"

/* The last of count bounds that is not above key. */
MR_HD uint32_t mr_interval_search(const uint32_t *bounds, uint32_t count, uint32_t key)
{
	uint32_t at = 0;

	while (count > 1) {
		uint32_t half = count / 2;

		if (bounds[at + half] <= key)
			at += half;
		count -= half;
	}
	return at;
}

/* Whether four words are not above an address. */
MR_HD int mr_interval_reaches(const uint32_t *bound, const struct mr_ip *ip)
{
	if (bound[0] != ip->word[0])
		return bound[0] < ip->word[0];
	if (bound[1] != ip->word[1])
		return bound[1] < ip->word[1];
	if (bound[2] != ip->word[2])
		return bound[2] < ip->word[2];
	return bound[3] <= ip->word[3];
}

MR_HD uint32_t mr_interval_search_6(const uint32_t *bounds, uint32_t count, const struct mr_ip *ip)
{
	uint32_t at = 0;

	while (count > 1) {
		uint32_t half = count / 2;

		if (mr_interval_reaches(bounds + 4 * (at + half), ip))
			at += half;
		count -= half;
	}
	return at;
}

#endif
