/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_block - a block of threads, on the device and on the host, where it is one thread.
 */
#ifndef MR_BLOCK_H
#define MR_BLOCK_H

#include "mr_sync.h"

#if defined(__CUDA_ARCH__)
#define MR_KERNEL_SHARED(what) __shared__ what
#define MR_KERNEL_WARP 32u
#else
#include "mr_sim_image.h"

#include <sched.h>
#include <time.h>
/* The only thread writes it before it reads it, which a compiler may not see. */
#define MR_KERNEL_SHARED(what) what = 0
#define MR_KERNEL_WARP 1u
#endif

/* Which block and thread this is, and what it has of a software device. */
struct mr_block {
	uint32_t index;
	uint32_t thread, threads;
	const struct mr_sim_orders *sim; /* NULL on a real device */
};

MR_HD uint64_t mr_kernel_clock_ns(void)
{
#if defined(__CUDA_ARCH__)
	return mr_device_clock_ns();
#else
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
#endif
}

MR_HD void mr_kernel_block_sync(void)
{
#if defined(__CUDA_ARCH__)
	__syncthreads();
#endif
}

#endif
