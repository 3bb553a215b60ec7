/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cudasim_priv.h"

mr_cu_result mr_sim_peer_attach(mr_cu_deviceptr ptr, size_t bytes)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);

	if (dev == NULL)
		return r;
	if (mr_sim_range_find(dev, (void *)(uintptr_t)ptr, bytes) == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	if (mr_sim_fault_now(dev, SIM_FAULT_ATTACH))
		return mr_sim_leave(dev, MR_CUDA_ERROR_NOT_SUPPORTED);
	dev->peer_bytes += bytes;
	return mr_sim_leave(dev, r);
}

mr_cu_result mr_sim_peer_detach(mr_cu_deviceptr ptr, size_t bytes)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);

	(void)ptr;
	if (dev == NULL)
		return r;
	if (bytes > dev->peer_bytes)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	dev->peer_bytes -= bytes;
	return mr_sim_leave(dev, r);
}

mr_cu_result mr_sim_peer_counts(uint64_t *ret_bytes, uint64_t *ret_revoked)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);

	if (dev == NULL)
		return r;
	*ret_bytes = dev->peer_bytes;
	*ret_revoked = 0;
	for (uint32_t i = 0; i < dev->options.faults_count; i++) {
		const struct sim_fault *f = &dev->options.fault[i];

		if (f->kind == SIM_FAULT_REVOKE && dev->first_launch_ns != 0 &&
			mr_clock_ns() >= dev->first_launch_ns + (uint64_t)f->at * 1000000u)
			++*ret_revoked;
	}
	return mr_sim_leave(dev, r);
}
