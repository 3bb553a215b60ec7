/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device build: one entry per work division, at most 256 threads a block. The
 * 2 is the least number of blocks, that is workers, on a multiprocessor. It leaves
 * 128 registers a thread; with 3 or 4 the stages that walk headers spill.
 */
#include "mr_kernel.h"

#define MR_IMAGE_THREADS 256

MR_ENTRY void __launch_bounds__(MR_IMAGE_THREADS, 2) mr_kernel_thread(const struct mr_launch *l)
{
	struct mr_block b = {blockIdx.x, threadIdx.x, blockDim.x, NULL};

	mr_kernel_body(l, &b, MR_WORK_THREAD);
}

MR_ENTRY void __launch_bounds__(MR_IMAGE_THREADS, 2) mr_kernel_warp(const struct mr_launch *l)
{
	struct mr_block b = {blockIdx.x, threadIdx.x, blockDim.x, NULL};

	mr_kernel_body(l, &b, MR_WORK_WARP);
}

/* One warp, so a thread may have all the registers that it asks for. */
MR_ENTRY void __launch_bounds__(32, 1) mr_kernel_order(const struct mr_launch *l)
{
	struct mr_block b = {blockIdx.x, threadIdx.x, blockDim.x, NULL};

	mr_kernel_body(l, &b, MR_WORK_ORDER);
}
