/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_bench_model.h"

#include <math.h>
#include <string.h>

/* A column that another explains but for this share of itself counts as explained. */
#define EXPLAINED 1e-9

static void row_of(const struct mr_bench_cost *c, double row[MR_BENCH_TERMS])
{
	row[0] = 1;
	row[1] = c->packets;
	row[2] = c->touched_bytes;
	row[3] = c->copied_bytes;
	row[4] = c->moved_bytes;
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

/* Columns are scaled to length 1, so that the pivots are shares. */
static bool fit_set(const struct mr_bench_cost *costs, uint32_t count, uint32_t set,
	struct mr_bench_model *ret_model)
{
	double m[MR_BENCH_TERMS][MR_BENCH_TERMS + 1] = {0};
	double length[MR_BENCH_TERMS] = {0};
	double row[MR_BENCH_TERMS];

	for (uint32_t i = 0; i < count; i++) {
		row_of(&costs[i], row);
		for (uint32_t r = 0; r < MR_BENCH_TERMS; r++) {
			for (uint32_t c = 0; c < MR_BENCH_TERMS; c++)
				m[r][c] += row[r] / costs[i].ns * row[c] / costs[i].ns;
			m[r][MR_BENCH_TERMS] += row[r] / costs[i].ns;
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
	memset(ret_model, 0, sizeof(*ret_model));
	for (uint32_t k = 0; k < MR_BENCH_TERMS; k++) {
		if ((set >> k & 1) == 0)
			continue;
		ret_model->term[k] = m[k][MR_BENCH_TERMS] / length[k];
		if (ret_model->term[k] < 0)
			return false;
	}
	return true;
}

bool mr_bench_model_fit(
	const struct mr_bench_cost *costs, uint32_t count, struct mr_bench_model *ret_model)
{
	bool found = false;

	memset(ret_model, 0, sizeof(*ret_model));
	for (uint32_t set = 1; set < 1u << MR_BENCH_TERMS; set++) {
		struct mr_bench_model m;
		double sum = 0;

		if (count == 0 || !fit_set(costs, count, set, &m))
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
	double ns = 0;

	row_of(cost, row);
	for (uint32_t k = 0; k < MR_BENCH_TERMS; k++)
		ns += model->term[k] * row[k];
	return ns;
}
