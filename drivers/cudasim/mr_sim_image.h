/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_sim_image - a kernel image for the software CUDA device.
 *
 * The C compiler's build of the kernel source is described by a table of entry
 * points; cuModuleLoadData of the software device takes a pointer to it. The
 * magic tells it from a fatbin, which the software device refuses.
 */
#ifndef MR_SIM_IMAGE_H
#define MR_SIM_IMAGE_H

#include <stdint.h>

#define MR_SIM_IMAGE_MAGIC 0x6d72696du /* "mrim" */

/* What the software device orders a block to play, in a word that it may change. */
enum mr_sim_fault {
	MR_SIM_FAULT_NONE,
	MR_SIM_FAULT_STALL, /* stand still: no beat, no progress, deaf to the exit word */
	MR_SIM_FAULT_DIE,   /* return at once; the launch then reports a failure */
	MR_SIM_FAULT_IDLE,  /* beat without making progress */
};

/*
 * What a block has of the device that it runs on. fault is read while the block polls.
 * fence, unless NULL, is called with ctx where the kernel fences with system scope:
 * what the block wrote so far is then where a NIC reads it.
 */
struct mr_sim_orders {
	uint32_t fault; /* enum mr_sim_fault */
	void (*fence)(void *ctx);
	void *ctx;
};

/*
 * One block of the grid, run on one host thread. argument is the kernel's
 * parameter; orders may be NULL.
 */
typedef void (*mr_sim_entry)(uint64_t argument, uint32_t block, const struct mr_sim_orders *orders);

struct mr_sim_kernel {
	const char *name;
	mr_sim_entry entry;
};

struct mr_sim_image {
	uint32_t magic;
	uint32_t kernels_count;
	const struct mr_sim_kernel *kernels;
};

#endif
