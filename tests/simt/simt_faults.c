/* SPDX-License-Identifier: BSD-3-Clause */
#include "simt_cuda.h"
#include "simt_faults.h"

#define ALL 0xffffffffu

__shared__ uint32_t box[64];

/* A value that nobody uses is not read. */
static void use(uint32_t v)
{
	(void)v;
}

static void fault_leaves(const void *argument)
{
	(void)argument;
	if (threadIdx.x == 5)
		return;
	__syncthreads();
}

static void fault_other_barrier(const void *argument)
{
	(void)argument;
	if (threadIdx.x < 32)
		__syncthreads();
	else
		__syncthreads();
}

static void fault_not_in_mask(const void *argument)
{
	(void)argument;
	(void)__shfl_sync(0x7fffffffu, threadIdx.x, 0);
}

static void fault_few_come(const void *argument)
{
	(void)argument;
	if (threadIdx.x % 32 < 16)
		(void)__shfl_sync(ALL, threadIdx.x, 0);
	__syncthreads();
}

static void fault_named_has_left(const void *argument)
{
	(void)argument;
	if (threadIdx.x % 32 < 16)
		(void)__ballot_sync(ALL, 1);
}

static void fault_other_mask(const void *argument)
{
	(void)argument;
	(void)__ballot_sync(threadIdx.x % 32 < 16 ? ALL : 0xfffffffeu, 1);
}

static void fault_other_shuffle(const void *argument)
{
	(void)argument;
	if (threadIdx.x % 32 < 16)
		(void)__shfl_sync(ALL, threadIdx.x, 0);
	else
		(void)__shfl_sync(ALL, threadIdx.x, 0);
}

static void fault_inactive_source(const void *argument)
{
	(void)argument;
	if (threadIdx.x % 32 < 16)
		(void)__shfl_sync(0xffffu, threadIdx.x, 20);
}

static void fault_shared_race(const void *argument)
{
	(void)argument;
	box[threadIdx.x] = 1;
	__syncthreads();
	box[threadIdx.x] += box[threadIdx.x ^ 1];
}

static void fault_shared_across_warps(const void *argument)
{
	(void)argument;
	box[threadIdx.x] = 1;
	__syncthreads();
	box[threadIdx.x] = 2;
	__syncwarp(ALL);
	use(box[threadIdx.x ^ 32]);
}

static void fault_shuffle_orders_nothing(const void *argument)
{
	(void)argument;
	box[threadIdx.x] = 1;
	__syncthreads();
	box[threadIdx.x] = 2;
	(void)__shfl_xor_sync(ALL, threadIdx.x, 1);
	use(box[threadIdx.x ^ 1]);
}

static void fault_read_then_written(const void *argument)
{
	(void)argument;
	box[threadIdx.x] = 1;
	__syncthreads();
	use(box[(threadIdx.x + 1) % 64]);
	box[threadIdx.x] = 2;
}

static void fault_shared_unwritten(const void *argument)
{
	(void)argument;
	use(box[0]);
}

static void fault_beside(const void *argument)
{
	const struct simt_words *w = argument;

	if (threadIdx.x == 0)
		(&w->words[SIMT_WORDS])[0] = 1;
}

static void fault_not_allowed(const void *argument)
{
	const struct simt_words *w = argument;

	if (threadIdx.x == 0)
		use(w->words[SIMT_REFUSED]);
}

static void fault_global_race(const void *argument)
{
	const struct simt_words *w = argument;

	w->words[0] = threadIdx.x;
}

static void fault_no_fence(const void *argument)
{
	const struct simt_words *w = argument;

	w->words[1 + threadIdx.x] = threadIdx.x;
	__syncthreads();
	if (threadIdx.x == 0)
		mr_device_store_release(&w->words[0], 1);
}

static void fault_fence_before_write(const void *argument)
{
	const struct simt_words *w = argument;

	__threadfence_system();
	w->words[1 + threadIdx.x] = threadIdx.x;
	__syncthreads();
	if (threadIdx.x == 0)
		mr_device_store_release(&w->words[0], 1);
}

static void fault_relaxed(const void *argument)
{
	const struct simt_words *w = argument;

	w->words[1 + threadIdx.x] = threadIdx.x;
	__threadfence_system();
	__syncthreads();
	if (threadIdx.x == 0)
		mr_device_store_relaxed(&w->words[0], 1);
}

static void fault_unaligned(const void *argument)
{
	uint32_t words[4];

	mr_device_load_16((const uint8_t *)argument + 8, words);
}

static void fault_polls_for_ever(const void *argument)
{
	const struct simt_words *w = argument;

	while (mr_device_load_relaxed(&w->words[0]) == 0)
		__nanosleep(10);
}

/* All of it right: each lane's words come to the host by fence, barrier and release. */
static void right(const void *argument)
{
	const struct simt_words *w = argument;
	uint32_t t = threadIdx.x, v;

	box[t] = t + blockIdx.x;
	__syncthreads();
	v = box[63 - t] == 63 - t + blockIdx.x;
	v = v && __shfl_sync(ALL, t, 7) == t / 32 * 32 + 7;
	v = v && __shfl_xor_sync(ALL, (uint64_t)t << 40, 3) == (uint64_t)(t ^ 3) << 40;
	v = v && __ballot_sync(ALL, t % 3 == 0) == (t < 32 ? 0x49249249u : 0x92492492u);
	v = v && !__any_sync(ALL, 0) && __any_sync(ALL, t % 32 == 9);
	if (t % 32 < 8)
		v = v && __shfl_sync(0xffu, t, 3) == t / 32 * 32 + 3;
	v = v && !__syncthreads_and(t != 20) && __syncthreads_and(t < blockDim.x);
	w->words[1 + t] = v;
	__threadfence_system();
	__syncthreads();
	if (t == 0)
		mr_device_store_release(&w->words[0], 1);
}

/* The same, where one lane fences for those whose barrier it has passed. */
static void right_one_fence(const void *argument)
{
	const struct simt_words *w = argument;

	w->words[1 + threadIdx.x] = 1;
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence_system();
		mr_device_store_release(&w->words[0], 1);
	}
}

const struct simt_fault_row simt_fault_rows[] = {
	{"a lane leaves before a barrier", fault_leaves, "divergence", false},
	{"warps at two barriers", fault_other_barrier, "divergence", false},
	{"a lane that is not in its mask", fault_not_in_mask, "in which it is not itself", false},
	{"a mask that names more than come", fault_few_come, "divergence", false},
	{"a mask that names one who left", fault_named_has_left, "", false},
	{"two masks at one vote", fault_other_mask, "", false},
	{"two shuffles at once", fault_other_shuffle, "divergence", false},
	{"a source out of the mask", fault_inactive_source, "not in the mask", false},
	{"shared memory without a barrier", fault_shared_race, "race", false},
	{"__syncwarp between warps", fault_shared_across_warps, "race", false},
	{"a shuffle as a barrier", fault_shuffle_orders_nothing, "race", false},
	{"a write after others' reads", fault_read_then_written, "race", false},
	{"shared memory that is not written", fault_shared_unwritten, "nobody has written", false},
	{"a write beside the arena", fault_beside, "outside of all memory", false},
	{"a read that is not allowed", fault_not_allowed, "was not given", false},
	{"global memory by all lanes", fault_global_race, "race", false},
	{"a release without a fence", fault_no_fence, "race: the host reads", true},
	{"a fence before the write", fault_fence_before_write, "race: the host reads", true},
	{"a relaxed hand-over", fault_relaxed, "race: the host reads", true},
	{"a 16-byte load from elsewhere", fault_unaligned, "multiple of 16", false},
	{"a poll without end", fault_polls_for_ever, "does not end", false},
	{"all as it should be", right, NULL, true},
	{"all as it should be, one fence", right_one_fence, NULL, true},
};
const uint32_t simt_fault_rows_count = sizeof(simt_fault_rows) / sizeof(simt_fault_rows[0]);
