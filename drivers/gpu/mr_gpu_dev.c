/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_drv_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mr_gpu_drv *devices;

static int to_errno(mr_cu_result r)
{
	switch (r) {
	case MR_CUDA_ERROR_OUT_OF_MEMORY:
		return -ENOMEM;
	case MR_CUDA_ERROR_INVALID_VALUE:
	case MR_CUDA_ERROR_INVALID_HANDLE:
		return -EINVAL;
	case MR_CUDA_ERROR_NO_DEVICE:
	case MR_CUDA_ERROR_INVALID_DEVICE:
		return -ENODEV;
	case MR_CUDA_ERROR_INVALID_IMAGE:
	case MR_CUDA_ERROR_NO_BINARY_FOR_GPU:
		return -ENOEXEC;
	case MR_CUDA_ERROR_NOT_FOUND:
	case MR_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED:
		return -ENOENT;
	case MR_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED:
		return -EEXIST;
	case MR_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
	case MR_CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
		return -ENOSPC;
	case MR_CUDA_ERROR_OPERATING_SYSTEM: /* of the calls that fail, those for threads */
		return -EAGAIN;
	case MR_CUDA_ERROR_NOT_SUPPORTED:
		return -ENOTSUP;
	case MR_CUDA_ERROR_NOT_READY:
		return -EBUSY;
	default:
		/* Errors that a context does not survive, and all that no caller can mend. */
		return -EIO;
	}
}

int mr_gpu_drv_fail(
	const struct mr_gpu_drv *d, struct mr_err *err, mr_cu_result r, const char *fmt, ...)
{
	const char *name = NULL, *text = NULL;
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (d->api->cuGetErrorName(r, &name) != MR_CUDA_SUCCESS || name == NULL)
		name = "an unknown CUDA error";
	if (d->api->cuGetErrorString(r, &text) != MR_CUDA_SUCCESS || text == NULL)
		text = "no description";
	return mr_err_set(
		err, to_errno(r), "device '%s': %s: %s (%d, %s)", d->name, what, name, r, text);
}

int mr_gpu_drv_enter(struct mr_gpu_drv *d, struct mr_err *err)
{
	mr_cu_result r = MR_GPU_CALL(d->api, cuCtxPushCurrent_v2, d->context);

	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "cuCtxPushCurrent_v2");
	return 0;
}

void mr_gpu_drv_leave(struct mr_gpu_drv *d)
{
	mr_cu_context ignored;

	(void)MR_GPU_CALL(d->api, cuCtxPopCurrent_v2, &ignored);
}

struct mr_gpu_drv *mr_gpu_drv_get(int16_t dev_id)
{
	struct mr_gpu_drv *d;

	pthread_mutex_lock(&devices_lock);
	for (d = devices; d != NULL && d->dev_id != dev_id; d = d->next)
		;
	pthread_mutex_unlock(&devices_lock);
	return d;
}

static void devices_add(struct mr_gpu_drv *d)
{
	pthread_mutex_lock(&devices_lock);
	d->next = devices;
	devices = d;
	pthread_mutex_unlock(&devices_lock);
}

static void devices_remove(const struct mr_gpu_drv *d)
{
	struct mr_gpu_drv **link = &devices;

	pthread_mutex_lock(&devices_lock);
	while (*link != NULL && *link != d)
		link = &(*link)->next;
	if (*link != NULL)
		*link = d->next;
	pthread_mutex_unlock(&devices_lock);
}

static int attribute(struct mr_gpu_drv *d, int id, int *ret_value, struct mr_err *err)
{
	mr_cu_result r = MR_GPU_CALL(d->api, cuDeviceGetAttribute, ret_value, id, d->device);

	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "cuDeviceGetAttribute %d", id);
	return 0;
}

static int read_info(struct mr_gpu_drv *d, struct mr_err *err)
{
	struct mr_gpu_drv_info *info = &d->info;
	int gdr = 0, dma_buf = 0, domain = 0, bus = 0, slot = 0;
	const struct {
		int id, *ret_value;
	} wanted[] = {
		{MR_CU_ATTR_MULTIPROCESSOR_COUNT, &info->multiprocessors},
		{MR_CU_ATTR_GPU_DIRECT_RDMA_SUPPORTED, &gdr},
		{MR_CU_ATTR_DMA_BUF_SUPPORTED, &dma_buf},
		{MR_CU_ATTR_GPU_DIRECT_RDMA_WRITES_ORDERING, &info->writes_ordering},
		{MR_CU_ATTR_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, &info->flush_options},
		{MR_CU_ATTR_PCI_DOMAIN_ID, &domain},
		{MR_CU_ATTR_PCI_BUS_ID, &bus},
		{MR_CU_ATTR_PCI_DEVICE_ID, &slot},
	};
	mr_cu_result r;
	int rc;

	for (size_t i = 0; i < MR_ARRAY_LEN(wanted); i++) {
		rc = attribute(d, wanted[i].id, wanted[i].ret_value, err);
		if (rc != 0)
			return rc;
	}
	info->gpudirect_rdma = gdr != 0;
	info->dma_buf = dma_buf != 0;
	info->can_map = d->api->map != NULL;
	snprintf(info->provider, sizeof(info->provider), "%s", d->api->provider);
	if (strcmp(info->provider, "sim") != 0)
		snprintf(info->pci, sizeof(info->pci), "%04x:%02x:%02x.0", (unsigned int)domain,
			(unsigned int)bus & 0xff, (unsigned int)slot & 0xff);
	r = MR_GPU_CALL(d->api, cuDriverGetVersion, &info->driver_version);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "cuDriverGetVersion");
	r = MR_GPU_CALL(d->api, cuDeviceGetName, info->name, sizeof(info->name), d->device);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "cuDeviceGetName");
	r = MR_GPU_CALL(d->api, cuDeviceTotalMem_v2, &d->memory_bytes, d->device);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "cuDeviceTotalMem_v2");
	return 0;
}

/* What a call behind a running kernel could not make any more. */
static int make_streams(struct mr_gpu_drv *d, struct mr_err *err)
{
	static const uint32_t zero;
	const bool by_host = (d->info.flush_options & MR_CU_FLUSH_OPTION_HOST) != 0 &&
		d->api->cuFlushGPUDirectRDMAWrites != NULL;
	const bool by_memops = (d->info.flush_options & MR_CU_FLUSH_OPTION_MEMOPS) != 0 &&
		d->api->cuStreamWaitValue32_v2 != NULL;
	void *word;
	mr_cu_result r;
	int rc;

	r = MR_GPU_CALL(d->api, cuStreamCreate, &d->copies, MR_CU_STREAM_NON_BLOCKING);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "cuStreamCreate");
	/* An option whose function the driver lacks is none. */
	d->info.flush_options = (by_host ? MR_CU_FLUSH_OPTION_HOST : 0) |
		(by_memops ? MR_CU_FLUSH_OPTION_MEMOPS : 0);
	if (by_host || !by_memops || d->info.writes_ordering != MR_CU_WRITES_ORDERING_NONE)
		return 0;
	rc = mr_gpu_drv_mem_alloc(d, MR_GPU_DRV_PAGE, 0, &word, err);
	if (rc != 0)
		return rc;
	d->flushed = (mr_cu_deviceptr)(uintptr_t)word;
	return mr_gpu_drv_upload(d, d->flushed, &zero, sizeof(zero), err);
}

int mr_gpu_drv_open(const struct mr_cuda_api *api, mr_cu_device device, const char *name,
	const char *guard, int16_t dev_id, struct mr_gpu_drv **ret_drv, struct mr_err *err)
{
	struct mr_gpu_drv *d = calloc(1, sizeof(*d));
	mr_cu_result r;
	int rc;

	if (d == NULL)
		return mr_err_set(err, -ENOMEM, "device '%s': no memory for its driver", name);
	d->api = api;
	d->device = device;
	d->dev_id = dev_id;
	snprintf(d->name, sizeof(d->name), "%s", name);
	snprintf(d->info.guard, sizeof(d->info.guard), "%s", guard);
	pthread_mutex_init(&d->lock, NULL);
	rc = read_info(d, err);
	if (rc != 0)
		goto fail;
	r = MR_GPU_CALL(api, cuDevicePrimaryCtxRetain, &d->context, device);
	if (r != MR_CUDA_SUCCESS) {
		rc = mr_gpu_drv_fail(d, err, r, "cuDevicePrimaryCtxRetain");
		goto fail;
	}
	rc = mr_gpu_drv_enter(d, err);
	if (rc == 0) {
		rc = make_streams(d, err);
		mr_gpu_drv_leave(d);
	}
	if (rc == 0) {
		devices_add(d);
		*ret_drv = d;
		return 0;
	}
fail:
	mr_gpu_drv_close(d);
	return rc;
}

void mr_gpu_drv_shut(struct mr_gpu_drv *d)
{
	bool busy = false;

	if (d->shut || d->abandoned)
		return;
	d->shut = true;
	if (d->context != NULL && mr_gpu_drv_enter(d, NULL) == 0) {
		busy = mr_gpu_drv_busy(d);
		if (!busy) {
			mr_gpu_drv_mem_free_all(d);
			if (d->copies != NULL)
				(void)MR_GPU_CALL(d->api, cuStreamDestroy_v2, d->copies);
		}
		mr_gpu_drv_leave(d);
	}
	/* The software device ends its kernels with the context, before their memory. */
	if (d->context != NULL && (!busy || strcmp(d->info.provider, "sim") == 0))
		(void)MR_GPU_CALL(d->api, cuDevicePrimaryCtxRelease_v2, d->device);
}

void mr_gpu_drv_abandon(struct mr_gpu_drv *d)
{
	d->abandoned = true;
}

void mr_gpu_drv_close(struct mr_gpu_drv *d)
{
	devices_remove(d);
	if (d->abandoned)
		return;
	mr_gpu_drv_shut(d);
	while (d->launches != NULL) {
		struct mr_gpu_drv_launch *l = d->launches;

		d->launches = l->next;
		free(l);
	}
	while (d->streams != NULL) {
		struct mr_gpu_drv_stream *s = d->streams;

		d->streams = s->next;
		free(s);
	}
	while (d->modules != NULL) {
		struct mr_gpu_drv_module *m = d->modules;

		d->modules = m->next;
		free(m);
	}
	mr_gpu_drv_mem_forget(d);
	pthread_mutex_destroy(&d->lock);
	free(d);
}
