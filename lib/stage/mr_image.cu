/* SPDX-License-Identifier: BSD-3-Clause */
/* The device build: one entry per work division, at most 256 threads a block. */
#include "mr_kernel.h"

#define MR_IMAGE_THREADS 256

extern "C" __global__ void __launch_bounds__(MR_IMAGE_THREADS)
	mr_kernel_thread(const struct mr_launch *l)
{
	struct mr_block b = {blockIdx.x, threadIdx.x, blockDim.x, NULL};

	mr_kernel_body(l, &b, MR_WORK_THREAD);
}

extern "C" __global__ void __launch_bounds__(MR_IMAGE_THREADS)
	mr_kernel_warp(const struct mr_launch *l)
{
	struct mr_block b = {blockIdx.x, threadIdx.x, blockDim.x, NULL};

	mr_kernel_body(l, &b, MR_WORK_WARP);
}
