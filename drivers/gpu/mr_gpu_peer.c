/* SPDX-License-Identifier: BSD-3-Clause */
/* What a proof of the path asks of the driver: whose memory it is, and who registered it. */
#include "mr_gpu_drv_priv.h"

#include <errno.h>

int mr_gpu_drv_owner_of(struct mr_gpu_drv *d, const void *ptr, struct mr_gpu_drv_owner *ret_owner,
	struct mr_err *err)
{
	const mr_cu_deviceptr at = (mr_cu_deviceptr)(uintptr_t)ptr;
	unsigned int managed = 0;
	mr_cu_result r;
	int rc = mr_gpu_drv_enter(d, err);

	if (rc != 0)
		return rc;
	*ret_owner = (struct mr_gpu_drv_owner){0};
	r = MR_GPU_CALL(d->api, cuPointerGetAttribute, &ret_owner->type,
		MR_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
	if (r == MR_CUDA_SUCCESS)
		r = MR_GPU_CALL(d->api, cuPointerGetAttribute, &managed,
			MR_CU_POINTER_ATTRIBUTE_IS_MANAGED, at);
	/* Of host memory the driver need not know a range. */
	if (r == MR_CUDA_SUCCESS &&
		MR_GPU_CALL(d->api, cuMemGetAddressRange_v2, &ret_owner->base, &ret_owner->bytes,
			at) != MR_CUDA_SUCCESS)
		ret_owner->base = ret_owner->bytes = 0;
	mr_gpu_drv_leave(d);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "cuPointerGetAttribute of %p", ptr);
	ret_owner->managed = managed != 0;
	return 0;
}

int mr_gpu_drv_peer_attach(struct mr_gpu_drv *d, void *ptr, size_t bytes, struct mr_err *err)
{
	mr_cu_result r;
	int rc;

	if (d->api->peer_attach == NULL)
		return 0;
	rc = mr_gpu_drv_enter(d, err);
	if (rc != 0)
		return rc;
	r = MR_GPU_CALL(d->api, peer_attach, (mr_cu_deviceptr)(uintptr_t)ptr, bytes);
	mr_gpu_drv_leave(d);
	if (r == MR_CUDA_SUCCESS)
		return 0;
	return mr_gpu_drv_fail(d, err, r, "registration of %zu bytes at %p", bytes, ptr);
}

void mr_gpu_drv_peer_detach(struct mr_gpu_drv *d, void *ptr, size_t bytes)
{
	if (d->api->peer_detach == NULL || mr_gpu_drv_enter(d, NULL) != 0)
		return;
	(void)MR_GPU_CALL(d->api, peer_detach, (mr_cu_deviceptr)(uintptr_t)ptr, bytes);
	mr_gpu_drv_leave(d);
}

int mr_gpu_drv_peer_counts(struct mr_gpu_drv *d, uint64_t *ret_bytes, uint64_t *ret_revoked)
{
	mr_cu_result r;
	int rc;

	if (d->api->peer_counts == NULL)
		return -ENOTSUP;
	rc = mr_gpu_drv_enter(d, NULL);
	if (rc != 0)
		return rc;
	r = MR_GPU_CALL(d->api, peer_counts, ret_bytes, ret_revoked);
	mr_gpu_drv_leave(d);
	return r == MR_CUDA_SUCCESS ? 0 : -EIO;
}
