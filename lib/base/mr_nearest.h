/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_nearest - which known name a mistyped one was meant to be.
 *
 *     mr_nearest_init(&n, word); mr_nearest_offer(&n, each known name) ...;
 *     mr_nearest_get(&n)
 *
 * The distance is the number of inserted, removed, changed or swapped
 * characters, letters compared without case (optimal string alignment).
 *
 * Thread   any; the words offered must live as long as the structure.
 * Errors   none; a word without a likely neighbour gets NULL.
 */
#ifndef MR_NEAREST_H
#define MR_NEAREST_H

#include <stdint.h>

#define MR_NEAREST_MAX 64u /* longer words have no neighbours */

struct mr_nearest {
	const char *word;
	const char *best;
	uint32_t distance; /* of best */
};

void mr_nearest_init(struct mr_nearest *n, const char *word);
void mr_nearest_offer(struct mr_nearest *n, const char *known);

/* mr_nearest_get returns the best offer, or NULL if over a third of it would have to change. */
const char *mr_nearest_get(const struct mr_nearest *n);

#endif
