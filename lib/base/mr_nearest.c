/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_nearest.h"

#include <ctype.h>
#include <string.h>

static uint32_t min3(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t m = a < b ? a : b;

	return m < c ? m : c;
}

static int low(const char *s, size_t i)
{
	return tolower((unsigned char)s[i]);
}

/* Rows of the distance matrix are kept three at a time: a swap looks two back. */
static uint32_t distance(const char *a, size_t an, const char *b, size_t bn)
{
	uint32_t rows[3][MR_NEAREST_MAX + 1];

	for (size_t j = 0; j <= bn; j++)
		rows[0][j] = (uint32_t)j;
	for (size_t i = 1; i <= an; i++) {
		uint32_t *now = rows[i % 3];
		const uint32_t *last = rows[(i + 2) % 3];
		const uint32_t *before = rows[(i + 1) % 3];

		now[0] = (uint32_t)i;
		for (size_t j = 1; j <= bn; j++) {
			uint32_t change = low(a, i - 1) != low(b, j - 1);

			now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + change);
			if (i > 1 && j > 1 && low(a, i - 1) == low(b, j - 2) &&
				low(a, i - 2) == low(b, j - 1) && before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
	}
	return rows[an % 3][bn];
}

void mr_nearest_init(struct mr_nearest *n, const char *word)
{
	n->word = word;
	n->best = NULL;
	n->distance = UINT32_MAX;
}

void mr_nearest_offer(struct mr_nearest *n, const char *known)
{
	size_t an = strnlen(n->word, MR_NEAREST_MAX + 1);
	size_t bn = strnlen(known, MR_NEAREST_MAX + 1);
	uint32_t d;

	if (an > MR_NEAREST_MAX || bn > MR_NEAREST_MAX)
		return;
	d = distance(n->word, an, known, bn);
	if (d < n->distance) {
		n->distance = d;
		n->best = known;
	}
}

const char *mr_nearest_get(const struct mr_nearest *n)
{
	if (n->best == NULL || n->distance > (strlen(n->best) + 2) / 3)
		return NULL;
	return n->best;
}
