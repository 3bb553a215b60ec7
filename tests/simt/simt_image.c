/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device sources as the lanes run them, and the helpers of the kernel and the
 * stage SDK that no built-in chain tells apart, as kernels of their own.
 */
#include "simt_cuda.h"
#include "mr_image.cu"

#include "simt_image.h"

/* Every lane gives what only it has; all must get lane 0's. */
void simt_entry_share(const void *argument)
{
	const struct simt_share *a = argument;
	uint32_t i = threadIdx.x;
	struct mr_view v = a->given[i];
	enum mr_flow flow = mr_kernel_share(&v, i == 0 ? MR_STOP : MR_NEXT);

	a->got[i] = v;
	a->flow[i] = (uint32_t)flow;
}

void simt_entry_group_sum(const void *argument)
{
	const struct simt_sum *a = argument;
	uint32_t i = threadIdx.x;
	struct mr_ctx ctx = {.rank = i, .size = MR_KERNEL_WARP};

	a->got[i] = mr_group_sum(&ctx, a->given[i]);
}

/* The other reductions: 32 results each, one behind the other. */
void simt_entry_group_others(const void *argument)
{
	const struct simt_sum *a = argument;
	uint32_t i = threadIdx.x;
	struct mr_ctx ctx = {.rank = i, .size = MR_KERNEL_WARP};

	a->got[i] = mr_group_max(&ctx, a->given[i]);
	a->got[MR_KERNEL_WARP + i] = mr_group_min(&ctx, a->given[i]);
	a->got[2 * MR_KERNEL_WARP + i] = mr_group_or(&ctx, a->given[i]);
}

/* What lane 0 wrote before the call, all read after it. */
void simt_entry_warp_sync(const void *argument)
{
	const struct simt_sum *a = argument;

	if (threadIdx.x == 0)
		a->given[0] = 7;
	mr_kernel_warp_sync();
	a->got[threadIdx.x] = a->given[0];
}

/* Every lane asks twice. */
void simt_entry_limit(const void *argument)
{
	const struct simt_limit *a = argument;
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	for (uint32_t k = 0; k < 2; k++)
		a->passes[i] +=
			(uint32_t)mr_limit_take(a->word, a->now_ns + k, a->per_second, a->burst);
}
