/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device build: one entry per work division, at most 256 threads a block. The
 * 1 is the least number of blocks on a multiprocessor: where that is left open,
 * ptxas spills at 48 registers instead of using the 64 that it may.
 */
#include "mr_kernel.h"

#define MR_IMAGE_THREADS 256

MR_ENTRY void __launch_bounds__(MR_IMAGE_THREADS, 1) mr_kernel_thread(const struct mr_launch *l)
{
	struct mr_block b = {blockIdx.x, threadIdx.x, blockDim.x, NULL};

	mr_kernel_body(l, &b, MR_WORK_THREAD);
}

MR_ENTRY void __launch_bounds__(MR_IMAGE_THREADS, 1) mr_kernel_warp(const struct mr_launch *l)
{
	struct mr_block b = {blockIdx.x, threadIdx.x, blockDim.x, NULL};

	mr_kernel_body(l, &b, MR_WORK_WARP);
}
