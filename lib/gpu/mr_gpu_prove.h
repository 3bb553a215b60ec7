/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_gpu_prove - what the device can tell of the path, between region_alloc and load.
 *
 * Thread   the control thread; attach, put and get before lanes run.
 * Errors   0 or -errno with the driver's sentence; -ETIMEDOUT as everywhere (mr_gpu.h).
 */
#ifndef MR_GPU_PROVE_H
#define MR_GPU_PROVE_H

#include "mr_gpu.h"
#include "mr_proof.h"

/* Whose memory a region is, as the driver says now of both its ends. */
MR_MUST_USE int mr_gpu_prove_memory(struct mr_gpu *g, const struct mr_gpu_region *region,
	struct mr_proof *ret_proof, struct mr_err *err);

/*
 * mr_gpu_prove_window, for a region that the CPU reaches (host memory, or memory of the
 * software device): for each size, within a page, across a boundary of 64 KiB and at the
 * region's end, with guards on both sides, the CPU writes as a port's driver does, and the
 * device reads by its mapping and by a copy; and the other way round. What is in the
 * region is lost. A device that cannot be mapped leaves it UNKNOWN whether the driver
 * copies behind the back.
 */
MR_MUST_USE int mr_gpu_prove_window(struct mr_gpu *g, const struct mr_gpu_region *region,
	const uint32_t *sizes, uint32_t count, struct mr_proof *ret_proof, struct mr_err *err);

/* A NIC's registration of the region; on a real device they do nothing. */
MR_MUST_USE int mr_gpu_peer_attach(
	struct mr_gpu *g, const struct mr_gpu_region *region, struct mr_err *err);
void mr_gpu_peer_detach(struct mr_gpu *g, const struct mr_gpu_region *region);
/* Bytes registered now and registrations revoked so far; -ENOTSUP: the kernel counts them. */
MR_MUST_USE int mr_gpu_peer_counts(struct mr_gpu *g, uint64_t *ret_bytes, uint64_t *ret_revoked);

/* Copies by the device, never by the CPU, to and from bytes at offset of the region. */
MR_MUST_USE int mr_gpu_put(struct mr_gpu *g, const struct mr_gpu_region *region, size_t offset,
	const void *from, size_t bytes, struct mr_err *err);
MR_MUST_USE int mr_gpu_get(struct mr_gpu *g, const struct mr_gpu_region *region, size_t offset,
	void *to, size_t bytes, struct mr_err *err);

#endif
