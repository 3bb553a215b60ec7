/* SPDX-License-Identifier: BSD-3-Clause */
/* simt_image - the kernel entries that simt_image.c compiles from device sources. */
#ifndef SIMT_IMAGE_H
#define SIMT_IMAGE_H

#include "mr_stage.h"

struct simt_share {
	const struct mr_view *given;
	struct mr_view *got;
	uint32_t *flow;
};

struct simt_sum {
	uint64_t *given, *got;
};

/* Whether each lane may, of a word that all share. */
struct simt_limit {
	uint64_t *word;
	uint32_t *passes;
	uint64_t now_ns;
	uint32_t per_second, burst;
};

void mr_kernel_thread(const struct mr_launch *l);
void mr_kernel_warp(const struct mr_launch *l);
void mr_kernel_order(const struct mr_launch *l);
void simt_entry_share(const void *argument);
void simt_entry_group_sum(const void *argument);
void simt_entry_group_others(const void *argument);
void simt_entry_warp_sync(const void *argument);
void simt_entry_limit(const void *argument);

#endif
