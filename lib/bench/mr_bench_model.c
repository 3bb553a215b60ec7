/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_bench_model.h"

#include "mr_base.h"

#include <math.h>
#include <string.h>

/* A column that another explains but for this share of itself counts as explained. */
#define EXPLAINED 1e-9

static const double overlaps[] = {1, 2, 4, 8}; /* powers of two */

/* x to that power, and back. */
static double power(double x, double overlap)
{
	for (; overlap > 1; overlap /= 2)
		x *= x;
	return x;
}

static double root(double x, double overlap)
{
	for (; overlap > 1; overlap /= 2)
		x = sqrt(x);
	return x;
}

static void row_of(const struct mr_bench_cost *c, double overlap, double row[MR_BENCH_TERMS])
{
	row[0] = 1;
	row[1] = power(c->packets, overlap);
	row[2] = power(c->touched_bytes, overlap);
	row[3] = power(c->copied_bytes, overlap);
	row[4] = power(c->moved_bytes, overlap);
}

/* Gauss and Jordan with the terms of the set; false: they do not determine each other. */
static bool solve(double m[MR_BENCH_TERMS][MR_BENCH_TERMS + 1], uint32_t set)
{
	for (uint32_t k = 0; k < MR_BENCH_TERMS; k++) {
		double pivot = m[k][k];

		if ((set >> k & 1) == 0)
			continue;
		if (!(pivot > EXPLAINED))
			return false;
		for (uint32_t c = 0; c <= MR_BENCH_TERMS; c++)
			m[k][c] /= pivot;
		for (uint32_t r = 0; r < MR_BENCH_TERMS; r++) {
			double factor = m[r][k];

			if (r == k)
				continue;
			for (uint32_t c = 0; c <= MR_BENCH_TERMS; c++)
				m[r][c] -= factor * m[k][c];
		}
	}
	return true;
}

/* Columns are scaled to length 1, so that the pivots are shares. Powers make it linear. */
static bool fit_set(const struct mr_bench_cost *costs, uint32_t count, uint32_t set, double overlap,
	struct mr_bench_model *ret_model)
{
	double m[MR_BENCH_TERMS][MR_BENCH_TERMS + 1] = {0};
	double length[MR_BENCH_TERMS] = {0};
	double row[MR_BENCH_TERMS];

	for (uint32_t i = 0; i < count; i++) {
		double ns = power(costs[i].ns, overlap);

		row_of(&costs[i], overlap, row);
		for (uint32_t r = 0; r < MR_BENCH_TERMS; r++) {
			for (uint32_t c = 0; c < MR_BENCH_TERMS; c++)
				m[r][c] += row[r] / ns * row[c] / ns;
			m[r][MR_BENCH_TERMS] += row[r] / ns;
		}
	}
	for (uint32_t k = 0; k < MR_BENCH_TERMS; k++)
		length[k] = sqrt(m[k][k]);
	for (uint32_t r = 0; r < MR_BENCH_TERMS; r++) {
		for (uint32_t c = 0; c < MR_BENCH_TERMS; c++)
			if (length[r] > 0 && length[c] > 0)
				m[r][c] /= length[r] * length[c];
		if (length[r] > 0)
			m[r][MR_BENCH_TERMS] /= length[r];
	}
	if (!solve(m, set))
		return false;
	*ret_model = (struct mr_bench_model){.overlap = overlap};
	for (uint32_t k = 0; k < MR_BENCH_TERMS; k++) {
		if ((set >> k & 1) == 0)
			continue;
		if (m[k][MR_BENCH_TERMS] < 0)
			return false;
		ret_model->term[k] = root(m[k][MR_BENCH_TERMS] / length[k], overlap);
	}
	return true;
}

bool mr_bench_model_fit(
	const struct mr_bench_cost *costs, uint32_t count, struct mr_bench_model *ret_model)
{
	const uint32_t sets = 1u << MR_BENCH_TERMS;
	bool found = false;

	memset(ret_model, 0, sizeof(*ret_model));
	for (uint32_t k = 0; k < sets * MR_ARRAY_LEN(overlaps); k++) {
		struct mr_bench_model m;
		double sum = 0;

		if (count == 0 || k % sets == 0 ||
			!fit_set(costs, count, k % sets, overlaps[k / sets], &m))
			continue;
		for (uint32_t i = 0; i < count; i++) {
			double e = mr_bench_model_ns(&m, &costs[i]) / costs[i].ns - 1;

			sum += e * e;
		}
		m.error = sqrt(sum / count);
		m.cells = count;
		if (found && m.error >= ret_model->error)
			continue;
		*ret_model = m;
		found = true;
	}
	return found;
}

double mr_bench_model_ns(const struct mr_bench_model *model, const struct mr_bench_cost *cost)
{
	double row[MR_BENCH_TERMS];
	double sum = 0;

	row_of(cost, model->overlap, row);
	for (uint32_t k = 0; k < MR_BENCH_TERMS; k++)
		sum += power(model->term[k], model->overlap) * row[k];
	return root(sum, model->overlap);
}
