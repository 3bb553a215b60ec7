/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_drv_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int mr_gpu_drv_info(struct mr_gpu_drv *d, struct mr_gpu_drv_info *ret_info, struct mr_err *err)
{
	(void)err;
	*ret_info = d->info;
	return 0;
}

int mr_gpu_drv_kernel_address(
	struct mr_gpu_drv *d, const void *ptr, uint64_t *ret_address, struct mr_err *err)
{
	mr_cu_result r;
	int rc = mr_gpu_drv_enter(d, err);

	if (rc != 0)
		return rc;
	r = MR_GPU_CALL(d->api, kernel_address, ptr, ret_address);
	mr_gpu_drv_leave(d);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "finding the kernel's address of %p", ptr);
	return 0;
}

int mr_gpu_drv_upload(
	struct mr_gpu_drv *d, uint64_t to, const void *from, size_t bytes, struct mr_err *err)
{
	mr_cu_result r;
	int rc = mr_gpu_drv_enter(d, err);

	if (rc != 0)
		return rc;
	r = MR_GPU_CALL(d->api, cuMemcpyHtoDAsync_v2, to, from, bytes, d->copies);
	if (r == MR_CUDA_SUCCESS)
		r = MR_GPU_CALL(d->api, cuStreamSynchronize, d->copies);
	mr_gpu_drv_leave(d);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "cuMemcpyHtoDAsync_v2 of %zu bytes to 0x%llx",
			bytes, (unsigned long long)to);
	return 0;
}

int mr_gpu_drv_download(
	struct mr_gpu_drv *d, void *to, uint64_t from, size_t bytes, struct mr_err *err)
{
	mr_cu_result r;
	int rc = mr_gpu_drv_enter(d, err);

	if (rc != 0)
		return rc;
	r = MR_GPU_CALL(d->api, cuMemcpyDtoHAsync_v2, to, from, bytes, d->copies);
	if (r == MR_CUDA_SUCCESS)
		r = MR_GPU_CALL(d->api, cuStreamSynchronize, d->copies);
	mr_gpu_drv_leave(d);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "cuMemcpyDtoHAsync_v2 of %zu bytes from 0x%llx",
			bytes, (unsigned long long)from);
	return 0;
}

int mr_gpu_drv_flush(struct mr_gpu_drv *d, struct mr_err *err)
{
	const char *call = "cuFlushGPUDirectRDMAWrites";
	mr_cu_result r;
	int rc;

	/* The options are a mask: either bit will do, and host is the faster way. */
	if (d->info.flush_options == 0)
		return mr_err_set(err, -ENOTSUP,
			"device '%s': it has no way to flush GPUDirect RDMA writes", d->name);
	rc = mr_gpu_drv_enter(d, err);
	if (rc != 0)
		return rc;
	if ((d->info.flush_options & MR_CU_FLUSH_OPTION_HOST) != 0) {
		r = MR_GPU_CALL(d->api, cuFlushGPUDirectRDMAWrites, MR_CU_FLUSH_TARGET_CURRENT_CTX,
			MR_CU_FLUSH_TO_OWNER);
	} else if (d->flushed != 0) {
		call = "cuStreamWaitValue32_v2";
		r = MR_GPU_CALL(d->api, cuStreamWaitValue32_v2, d->copies, d->flushed, 0,
			MR_CU_STREAM_WAIT_VALUE_FLUSH);
		if (r == MR_CUDA_SUCCESS)
			r = MR_GPU_CALL(d->api, cuStreamSynchronize, d->copies);
	} else {
		r = MR_CUDA_SUCCESS; /* writes are ordered, so there is nothing to flush */
	}
	mr_gpu_drv_leave(d);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "%s", call);
	return 0;
}

int mr_gpu_drv_module_load(struct mr_gpu_drv *d, const struct mr_gpu_drv_image *image,
	struct mr_gpu_drv_module **ret_module, struct mr_err *err)
{
	const bool sim = strcmp(d->info.provider, "sim") == 0;
	const void *data = sim ? (const void *)image->sim : image->fatbin;
	struct mr_gpu_drv_module *m;
	mr_cu_result r;
	int rc;

	if (data == NULL)
		return mr_err_set(err, -ENOEXEC,
			"device '%s': the kernel image has no form for %s; %s", d->name,
			d->info.name,
			sim ? "build it for the host as well"
			    : "build Millrace where nvcc is installed");
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return mr_err_set(err, -ENOMEM, "device '%s': no memory for a module", d->name);
	m->drv = d;
	rc = mr_gpu_drv_enter(d, err);
	if (rc == 0) {
		r = MR_GPU_CALL(d->api, cuModuleLoadData, &m->module, data);
		mr_gpu_drv_leave(d);
		if (r != MR_CUDA_SUCCESS)
			rc = mr_gpu_drv_fail(d, err, r, "cuModuleLoadData");
	}
	if (rc != 0) {
		free(m);
		return rc;
	}
	pthread_mutex_lock(&d->lock);
	m->next = d->modules;
	d->modules = m;
	pthread_mutex_unlock(&d->lock);
	*ret_module = m;
	return 0;
}

int mr_gpu_drv_module_unload(struct mr_gpu_drv_module *m, struct mr_err *err)
{
	struct mr_gpu_drv *d = m->drv;
	struct mr_gpu_drv_module **link = &d->modules;
	mr_cu_result r = MR_CUDA_SUCCESS;
	int rc = mr_gpu_drv_enter(d, err);

	if (rc == 0) {
		r = MR_GPU_CALL(d->api, cuModuleUnload, m->module);
		mr_gpu_drv_leave(d);
		if (r != MR_CUDA_SUCCESS)
			rc = mr_gpu_drv_fail(d, err, r, "cuModuleUnload");
	}
	pthread_mutex_lock(&d->lock);
	while (*link != m)
		link = &(*link)->next;
	*link = m->next;
	pthread_mutex_unlock(&d->lock);
	/* What a lost device still holds goes with its context. */
	free(m);
	return rc;
}

static int find_kernel(
	struct mr_gpu_drv_module *m, const char *kernel, mr_cu_function *ret_fn, struct mr_err *err)
{
	mr_cu_result r = MR_GPU_CALL(m->drv->api, cuModuleGetFunction, ret_fn, m->module, kernel);

	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(m->drv, err, r, "cuModuleGetFunction of %s", kernel);
	return 0;
}

int mr_gpu_drv_occupancy(struct mr_gpu_drv_module *m, const char *kernel, uint32_t threads,
	uint32_t *ret_blocks, struct mr_err *err)
{
	struct mr_gpu_drv *d = m->drv;
	mr_cu_function fn;
	mr_cu_result r;
	int blocks = 0;
	int rc = mr_gpu_drv_enter(d, err);

	if (rc != 0)
		return rc;
	rc = find_kernel(m, kernel, &fn, err);
	if (rc == 0) {
		r = MR_GPU_CALL(d->api, cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, fn,
			(int)threads, 0);
		if (r != MR_CUDA_SUCCESS)
			rc = mr_gpu_drv_fail(d, err, r,
				"cuOccupancyMaxActiveBlocksPerMultiprocessor of %s with %u threads",
				kernel, threads);
	}
	mr_gpu_drv_leave(d);
	if (rc == 0)
		*ret_blocks = (uint32_t)blocks;
	return rc;
}

/* The context is current; the stream is the launch's own. */
static int launch(struct mr_gpu_drv_launch *l, mr_cu_function fn, uint32_t blocks, uint32_t threads,
	uint64_t argument, struct mr_err *err)
{
	struct mr_gpu_drv *d = l->drv;
	void *params[] = {&argument};
	mr_cu_result r;
	int rc;

	r = MR_GPU_CALL(d->api, cuStreamCreate, &l->stream, MR_CU_STREAM_NON_BLOCKING);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "cuStreamCreate for %s", l->kernel);
	r = MR_GPU_CALL(d->api, cuLaunchKernel, fn, blocks, 1, 1, threads, 1, 1, 0, l->stream,
		params, NULL);
	if (r == MR_CUDA_SUCCESS)
		return 0;
	rc = mr_gpu_drv_fail(d, err, r, "cuLaunchKernel of %s, %u blocks of %u threads", l->kernel,
		blocks, threads);
	(void)MR_GPU_CALL(d->api, cuStreamDestroy_v2, l->stream);
	return rc;
}

int mr_gpu_drv_launch(struct mr_gpu_drv_module *m, const char *kernel, uint32_t blocks,
	uint32_t threads, uint64_t argument, struct mr_gpu_drv_launch **ret_launch,
	struct mr_err *err)
{
	struct mr_gpu_drv_launch *l = calloc(1, sizeof(*l));
	mr_cu_function fn;
	int rc;

	if (l == NULL)
		return mr_err_set(
			err, -ENOMEM, "device '%s': no memory for a launch", m->drv->name);
	l->drv = m->drv;
	strncpy(l->kernel, kernel, sizeof(l->kernel) - 1);
	rc = mr_gpu_drv_enter(m->drv, err);
	if (rc == 0) {
		rc = find_kernel(m, kernel, &fn, err);
		if (rc == 0)
			rc = launch(l, fn, blocks, threads, argument, err);
		mr_gpu_drv_leave(m->drv);
	}
	if (rc != 0) {
		free(l);
		return rc;
	}
	pthread_mutex_lock(&m->drv->lock);
	l->next = m->drv->launches;
	m->drv->launches = l;
	pthread_mutex_unlock(&m->drv->lock);
	*ret_launch = l;
	return 0;
}

bool mr_gpu_drv_busy(struct mr_gpu_drv *d)
{
	bool busy = false;

	pthread_mutex_lock(&d->lock);
	for (const struct mr_gpu_drv_launch *l = d->launches; l != NULL; l = l->next)
		busy |= MR_GPU_CALL(d->api, cuStreamQuery, l->stream) == MR_CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&d->lock);
	return busy;
}

int mr_gpu_drv_launch_query(struct mr_gpu_drv_launch *l, struct mr_err *err)
{
	struct mr_gpu_drv *d = l->drv;
	mr_cu_result r;
	int rc = mr_gpu_drv_enter(d, err);

	if (rc != 0)
		return -EIO;
	r = MR_GPU_CALL(d->api, cuStreamQuery, l->stream);
	mr_gpu_drv_leave(d);
	if (r == MR_CUDA_SUCCESS)
		return 0;
	if (r == MR_CUDA_ERROR_NOT_READY)
		return 1;
	(void)mr_gpu_drv_fail(d, err, r, "cuStreamQuery of kernel %s", l->kernel);
	return -EIO;
}

int mr_gpu_drv_launch_free(struct mr_gpu_drv_launch *l, struct mr_err *err)
{
	struct mr_gpu_drv *d = l->drv;
	struct mr_gpu_drv_launch **link = &d->launches;

	if (mr_gpu_drv_launch_query(l, NULL) == 1)
		return mr_err_set(
			err, -EBUSY, "device '%s': kernel %s still runs", d->name, l->kernel);
	pthread_mutex_lock(&d->lock);
	while (*link != l)
		link = &(*link)->next;
	*link = l->next;
	pthread_mutex_unlock(&d->lock);
	if (mr_gpu_drv_enter(d, NULL) == 0) {
		(void)MR_GPU_CALL(d->api, cuStreamDestroy_v2, l->stream);
		mr_gpu_drv_leave(d);
	}
	free(l);
	return 0;
}
