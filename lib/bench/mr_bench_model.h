/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_bench_model - what a batch costs on a path, of five terms.
 *
 *     terms  batch, packet x packets, touched x bytes that the kernel reads,
 *            copied x bytes that the host copies, moved x bytes of the frames
 *
 *     ns = (sum of terms ^ overlap) ^ (1 / overlap)
 *
 * How the terms add up is fitted as well. Where one processor does all of them, one after the
 * other, overlap is 1 and the cost is their sum. Where different parts of a machine do them at the
 * same time, batch after batch, the slowest decides: the higher the overlap, the nearer the cost is
 * to the largest term alone. 1, 2, 4 and 8 are tried.
 *
 * The coefficients are those that make the sum of the squared relative errors least,
 * none of them below 0: for each overlap all 31 subsets of the terms are fitted by the normal
 * equations of the powers, and the best of those without a negative coefficient is taken. A term
 * that never varies, or only as another does, is left at 0.
 *
 * Thread   any; pure.
 */
#ifndef MR_BENCH_MODEL_H
#define MR_BENCH_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define MR_BENCH_TERMS 5u /* batch, packet, touched, copied, moved */

/* One measured cell, of whole batches. */
struct mr_bench_cost {
	double packets;
	double touched_bytes;
	double copied_bytes;
	double moved_bytes;
	double ns;
};

struct mr_bench_model {
	double term[MR_BENCH_TERMS]; /* ns; ns a packet; ns a byte of each kind */
	double overlap;              /* 1: the terms are done one after the other */
	double error;                /* root mean square of the relative errors */
	uint32_t cells;              /* fitted to; 0: there is no model */
};

/* mr_bench_model_fit takes costs with ns above 0; false: nothing could be fitted. */
bool mr_bench_model_fit(
	const struct mr_bench_cost *costs, uint32_t count, struct mr_bench_model *ret_model);

/* mr_bench_model_ns is what the model says of a batch; its ns is not looked at. */
double mr_bench_model_ns(const struct mr_bench_model *model, const struct mr_bench_cost *cost);

#endif
