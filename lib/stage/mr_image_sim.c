/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_image.h"

#include "mr_base.h"
#include "mr_kernel.h"

static void run(
	uint64_t argument, uint32_t block, const struct mr_sim_orders *orders, enum mr_work work)
{
	struct mr_block b = {.index = block, .thread = 0, .threads = 1, .sim = orders};

	mr_kernel_body((const struct mr_launch *)(uintptr_t)argument, &b, work);
}

static void kernel_thread(uint64_t argument, uint32_t block, const struct mr_sim_orders *orders)
{
	run(argument, block, orders, MR_WORK_THREAD);
}

static void kernel_warp(uint64_t argument, uint32_t block, const struct mr_sim_orders *orders)
{
	run(argument, block, orders, MR_WORK_WARP);
}

static void kernel_order(uint64_t argument, uint32_t block, const struct mr_sim_orders *orders)
{
	run(argument, block, orders, MR_WORK_ORDER);
}

static const struct mr_sim_kernel kernels[] = {
	{"mr_kernel_thread", kernel_thread},
	{"mr_kernel_warp", kernel_warp},
	{"mr_kernel_order", kernel_order},
};

const struct mr_sim_image mr_image_sim = {
	.magic = MR_SIM_IMAGE_MAGIC,
	.kernels_count = MR_ARRAY_LEN(kernels),
	.kernels = kernels,
};
