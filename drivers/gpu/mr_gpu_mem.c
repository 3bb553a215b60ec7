/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_drv_priv.h"

#include <errno.h>
#include <stdlib.h>

/* The link that points to the entry that begins at ptr; the lock is held. */
static struct mr_gpu_drv_entry **entry_link(
	struct mr_gpu_drv *d, enum mr_gpu_drv_memory kind, const void *ptr)
{
	struct mr_gpu_drv_entry **link = &d->memory;

	while (*link != NULL && ((*link)->kind != kind || (*link)->ptr != ptr))
		link = &(*link)->next;
	return link;
}

/* The allocation that holds [ptr, ptr + bytes); the lock is held. */
static const struct mr_gpu_drv_entry *entry_holding(
	struct mr_gpu_drv *d, const uint8_t *ptr, size_t bytes)
{
	for (const struct mr_gpu_drv_entry *e = d->memory; e != NULL; e = e->next)
		if (e->kind == MR_GPU_DRV_MEMORY_DEVICE && ptr >= e->ptr &&
			ptr < e->ptr + e->bytes && bytes <= e->bytes - (size_t)(ptr - e->ptr))
			return e;
	return NULL;
}

static struct mr_gpu_drv_entry *entry_new(
	struct mr_gpu_drv *d, enum mr_gpu_drv_memory kind, size_t bytes, struct mr_err *err)
{
	struct mr_gpu_drv_entry *e = calloc(1, sizeof(*e));

	if (e == NULL) {
		(void)mr_err_set(err, -ENOMEM, "device '%s': no memory for the list of allocations",
			d->name);
		return NULL;
	}
	e->kind = kind;
	e->bytes = bytes;
	return e;
}

static void entry_add(struct mr_gpu_drv *d, struct mr_gpu_drv_entry *e)
{
	pthread_mutex_lock(&d->lock);
	e->next = d->memory;
	d->memory = e;
	pthread_mutex_unlock(&d->lock);
}

/* Takes an entry out of the list; NULL and a sentence if there is none. */
static struct mr_gpu_drv_entry *entry_take(struct mr_gpu_drv *d, enum mr_gpu_drv_memory kind,
	const void *ptr, const char *what, struct mr_err *err)
{
	struct mr_gpu_drv_entry **link, *e;

	pthread_mutex_lock(&d->lock);
	link = entry_link(d, kind, ptr);
	e = *link;
	if (e != NULL)
		*link = e->next;
	pthread_mutex_unlock(&d->lock);
	if (e == NULL)
		(void)mr_err_set(
			err, -ENOENT, "device '%s': %p is not the start of %s", d->name, ptr, what);
	return e;
}

static const char *const alloc_call[] = {
	[MR_GPU_DRV_MEMORY_DEVICE] = "cuMemAlloc_v2",
	[MR_GPU_DRV_MEMORY_HOST] = "cuMemHostAlloc",
};

static const char *const free_call[] = {
	[MR_GPU_DRV_MEMORY_DEVICE] = "cuMemFree_v2",
	[MR_GPU_DRV_MEMORY_HOST] = "cuMemFreeHost",
};

static mr_cu_result cuda_alloc(
	struct mr_gpu_drv *d, enum mr_gpu_drv_memory kind, size_t bytes, uintptr_t *ret_base)
{
	mr_cu_deviceptr device = 0;
	void *host = NULL;
	mr_cu_result r;

	if (kind == MR_GPU_DRV_MEMORY_HOST) {
		r = MR_GPU_CALL(d->api, cuMemHostAlloc, &host, bytes,
			MR_CU_MEMHOSTALLOC_PORTABLE | MR_CU_MEMHOSTALLOC_DEVICEMAP);
		*ret_base = (uintptr_t)host;
		return r;
	}
	r = MR_GPU_CALL(d->api, cuMemAlloc_v2, &device, bytes);
	*ret_base = (uintptr_t)device;
	return r;
}

static mr_cu_result cuda_free(struct mr_gpu_drv *d, enum mr_gpu_drv_memory kind, uintptr_t base)
{
	if (kind == MR_GPU_DRV_MEMORY_HOST)
		return MR_GPU_CALL(d->api, cuMemFreeHost, (void *)base);
	return MR_GPU_CALL(d->api, cuMemFree_v2, (mr_cu_deviceptr)base);
}

/* GPUDirect needs plain device memory, and copies that have landed when they return. */
static int check_device_memory(struct mr_gpu_drv *d, const void *ptr, struct mr_err *err)
{
	const mr_cu_deviceptr at = (mr_cu_deviceptr)(uintptr_t)ptr;
	unsigned int type = 0, managed = 0, on = 1;
	mr_cu_result r;

	r = MR_GPU_CALL(
		d->api, cuPointerGetAttribute, &type, MR_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
	if (r == MR_CUDA_SUCCESS)
		r = MR_GPU_CALL(d->api, cuPointerGetAttribute, &managed,
			MR_CU_POINTER_ATTRIBUTE_IS_MANAGED, at);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "cuPointerGetAttribute of %p", ptr);
	if (type != MR_CU_MEMORYTYPE_DEVICE || managed != 0)
		return mr_err_set(err, -EIO,
			"device '%s': cuMemAlloc_v2 gave memory of type %u%s instead of device "
			"memory",
			d->name, type, managed != 0 ? ", managed" : "");
	r = MR_GPU_CALL(
		d->api, cuPointerSetAttribute, &on, MR_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "cuPointerSetAttribute SYNC_MEMOPS of %p", ptr);
	return 0;
}

/*
 * CUDA promises 256 bytes of alignment and mostly gives more. Only where it does
 * not, the block is given back and a longer one taken.
 */
static int alloc_aligned(
	struct mr_gpu_drv *d, struct mr_gpu_drv_entry *e, size_t align, struct mr_err *err)
{
	size_t bytes = MR_ALIGN_UP(e->bytes, MR_GPU_DRV_PAGE);
	mr_cu_result r;
	int rc;

	r = cuda_alloc(d, e->kind, bytes, &e->base);
	if (r == MR_CUDA_SUCCESS && e->base % align != 0) {
		(void)cuda_free(d, e->kind, e->base);
		bytes += align;
		r = cuda_alloc(d, e->kind, bytes, &e->base);
	}
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "%s of %zu bytes", alloc_call[e->kind], bytes);
	e->ptr = (uint8_t *)MR_ALIGN_UP(e->base, align);
	rc = e->kind == MR_GPU_DRV_MEMORY_DEVICE ? check_device_memory(d, e->ptr, err) : 0;
	if (rc != 0)
		(void)cuda_free(d, e->kind, e->base);
	return rc;
}

static int alloc(struct mr_gpu_drv *d, enum mr_gpu_drv_memory kind, size_t bytes, size_t align,
	void **ret_ptr, struct mr_err *err)
{
	struct mr_gpu_drv_entry *e;
	int rc;

	if (align < MR_GPU_DRV_PAGE)
		align = MR_GPU_DRV_PAGE;
	if (bytes == 0 || (align & (align - 1)) != 0)
		return mr_err_set(err, -EINVAL,
			"device '%s': cannot allocate %zu bytes aligned to %zu", d->name, bytes,
			align);
	if (bytes > SIZE_MAX / 2 - align)
		return mr_err_set(err, -E2BIG, "device '%s': %zu bytes are beyond any memory",
			d->name, bytes);
	e = entry_new(d, kind, bytes, err);
	if (e == NULL)
		return -ENOMEM;
	rc = mr_gpu_drv_enter(d, err);
	if (rc == 0) {
		rc = alloc_aligned(d, e, align, err);
		mr_gpu_drv_leave(d);
	}
	if (rc != 0) {
		free(e);
		return rc;
	}
	*ret_ptr = e->ptr;
	entry_add(d, e);
	return 0;
}

int mr_gpu_drv_mem_alloc(
	struct mr_gpu_drv *d, size_t bytes, size_t align, void **ret_ptr, struct mr_err *err)
{
	return alloc(d, MR_GPU_DRV_MEMORY_DEVICE, bytes, align, ret_ptr, err);
}

int mr_gpu_drv_host_alloc(struct mr_gpu_drv *d, size_t bytes, void **ret_ptr, struct mr_err *err)
{
	return alloc(d, MR_GPU_DRV_MEMORY_HOST, bytes, 0, ret_ptr, err);
}

/* Ends the mappings that lie in [ptr, ptr + bytes); the context is current. */
static void unmap_within(struct mr_gpu_drv *d, const uint8_t *ptr, size_t bytes)
{
	struct mr_gpu_drv_entry **link, *e;

	pthread_mutex_lock(&d->lock);
	for (link = &d->memory; *link != NULL;) {
		e = *link;
		if (e->kind != MR_GPU_DRV_MEMORY_MAPPED ||
			(uintptr_t)e->ptr - (uintptr_t)ptr >= bytes) {
			link = &e->next;
			continue;
		}
		*link = e->next;
		(void)MR_GPU_CALL(d->api, unmap, (void *)e->base);
		free(e);
	}
	pthread_mutex_unlock(&d->lock);
}

/* An entry whose memory CUDA did not take back stays in the list. */
static int release(struct mr_gpu_drv *d, struct mr_gpu_drv_entry *e, struct mr_err *err)
{
	mr_cu_result r;
	int rc = mr_gpu_drv_enter(d, err);

	if (rc == 0 && mr_gpu_drv_busy(d)) {
		mr_gpu_drv_leave(d);
		rc = mr_err_set(err, -EBUSY,
			"device '%s': memory at %p cannot be freed while a kernel runs", d->name,
			(void *)e->ptr);
	} else if (rc == 0) {
		if (e->kind == MR_GPU_DRV_MEMORY_DEVICE)
			unmap_within(d, e->ptr, e->bytes);
		r = cuda_free(d, e->kind, e->base);
		mr_gpu_drv_leave(d);
		if (r != MR_CUDA_SUCCESS)
			rc = mr_gpu_drv_fail(
				d, err, r, "%s of %p", free_call[e->kind], (void *)e->ptr);
	}
	if (rc != 0)
		entry_add(d, e);
	else
		free(e);
	return rc;
}

int mr_gpu_drv_mem_free(struct mr_gpu_drv *d, void *ptr, struct mr_err *err)
{
	struct mr_gpu_drv_entry *e =
		entry_take(d, MR_GPU_DRV_MEMORY_DEVICE, ptr, "device memory", err);

	return e != NULL ? release(d, e, err) : -ENOENT;
}

int mr_gpu_drv_host_free(struct mr_gpu_drv *d, void *ptr, struct mr_err *err)
{
	struct mr_gpu_drv_entry *e =
		entry_take(d, MR_GPU_DRV_MEMORY_HOST, ptr, "host memory of the device", err);

	return e != NULL ? release(d, e, err) : -ENOENT;
}

/* gpudev hands kernels the host's own pointer, so the device must use the same one. */
static int register_same(struct mr_gpu_drv *d, void *ptr, size_t bytes, struct mr_err *err)
{
	mr_cu_deviceptr at = 0;
	mr_cu_result r;

	r = MR_GPU_CALL(d->api, cuMemHostRegister_v2, ptr, bytes,
		MR_CU_MEMHOSTREGISTER_PORTABLE | MR_CU_MEMHOSTREGISTER_DEVICEMAP);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(
			d, err, r, "cuMemHostRegister_v2 of %zu bytes at %p", bytes, ptr);
	r = MR_GPU_CALL(d->api, cuMemHostGetDevicePointer_v2, &at, ptr, 0);
	if (r == MR_CUDA_SUCCESS && at == (mr_cu_deviceptr)(uintptr_t)ptr)
		return 0;
	(void)MR_GPU_CALL(d->api, cuMemHostUnregister, ptr);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "cuMemHostGetDevicePointer_v2 of %p", ptr);
	return mr_err_set(err, -ENOTSUP,
		"device '%s': registered memory at %p has another address on the device", d->name,
		ptr);
}

int mr_gpu_drv_mem_register(struct mr_gpu_drv *d, void *ptr, size_t bytes, struct mr_err *err)
{
	struct mr_gpu_drv_entry *e = entry_new(d, MR_GPU_DRV_MEMORY_REGISTERED, bytes, err);
	int rc;

	if (e == NULL)
		return -ENOMEM;
	e->ptr = ptr;
	e->base = (uintptr_t)ptr;
	rc = mr_gpu_drv_enter(d, err);
	if (rc == 0) {
		rc = register_same(d, ptr, bytes, err);
		mr_gpu_drv_leave(d);
	}
	if (rc == 0)
		entry_add(d, e);
	else
		free(e);
	return rc;
}

int mr_gpu_drv_mem_unregister(struct mr_gpu_drv *d, void *ptr, struct mr_err *err)
{
	struct mr_gpu_drv_entry *e =
		entry_take(d, MR_GPU_DRV_MEMORY_REGISTERED, ptr, "registered memory", err);
	mr_cu_result r;
	int rc;

	if (e == NULL)
		return -ENOENT;
	rc = mr_gpu_drv_enter(d, err);
	if (rc == 0) {
		r = MR_GPU_CALL(d->api, cuMemHostUnregister, ptr);
		mr_gpu_drv_leave(d);
		if (r != MR_CUDA_SUCCESS)
			rc = mr_gpu_drv_fail(d, err, r, "cuMemHostUnregister of %p", ptr);
	}
	if (rc != 0)
		entry_add(d, e);
	else
		free(e);
	return rc;
}

/* Maps whole pages and answers with the byte that was asked for. */
static int map_pages(
	struct mr_gpu_drv *d, struct mr_gpu_drv_entry *e, void **ret_host, struct mr_err *err)
{
	const uintptr_t first = (uintptr_t)e->ptr / MR_GPU_DRV_PAGE * MR_GPU_DRV_PAGE;
	const size_t head = (uintptr_t)e->ptr - first;
	const size_t span = MR_ALIGN_UP(head + e->bytes, MR_GPU_DRV_PAGE);
	void *host = NULL;
	mr_cu_result r = MR_GPU_CALL(d->api, map, (mr_cu_deviceptr)first, span, &host);

	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(
			d, err, r, "mapping for the CPU %zu bytes at %p", span, (void *)first);
	e->base = (uintptr_t)host;
	*ret_host = (uint8_t *)host + head;
	return 0;
}

int mr_gpu_drv_mem_map(
	struct mr_gpu_drv *d, void *ptr, size_t bytes, void **ret_host, struct mr_err *err)
{
	struct mr_gpu_drv_entry *e;
	int rc;

	if (d->api->map == NULL)
		return mr_err_set(err, -ENOTSUP,
			"device '%s': its memory cannot be mapped for the CPU (a real device needs "
			"GDRCopy: libgdrapi.so.2 and the gdrdrv module)",
			d->name);
	e = entry_new(d, MR_GPU_DRV_MEMORY_MAPPED, bytes, err);
	if (e == NULL)
		return -ENOMEM;
	e->ptr = ptr;
	rc = mr_gpu_drv_enter(d, err);
	if (rc != 0) {
		free(e);
		return rc;
	}
	pthread_mutex_lock(&d->lock);
	if (bytes == 0 || entry_holding(d, ptr, bytes) == NULL)
		rc = mr_err_set(err, -EINVAL,
			"device '%s': %zu bytes at %p are not within one allocation", d->name,
			bytes, ptr);
	else if (*entry_link(d, MR_GPU_DRV_MEMORY_MAPPED, ptr) != NULL)
		rc = mr_err_set(err, -EEXIST, "device '%s': %p is mapped already", d->name, ptr);
	else
		rc = map_pages(d, e, ret_host, err);
	if (rc == 0) {
		e->next = d->memory;
		d->memory = e;
	}
	pthread_mutex_unlock(&d->lock);
	mr_gpu_drv_leave(d);
	if (rc != 0)
		free(e);
	return rc;
}

int mr_gpu_drv_mem_unmap(struct mr_gpu_drv *d, void *ptr, struct mr_err *err)
{
	struct mr_gpu_drv_entry *e =
		entry_take(d, MR_GPU_DRV_MEMORY_MAPPED, ptr, "mapped device memory", err);
	mr_cu_result r;
	int rc;

	if (e == NULL)
		return -ENOENT;
	rc = mr_gpu_drv_enter(d, err);
	if (rc == 0) {
		r = MR_GPU_CALL(d->api, unmap, (void *)e->base);
		mr_gpu_drv_leave(d);
		if (r != MR_CUDA_SUCCESS)
			rc = mr_gpu_drv_fail(d, err, r, "unmapping from the CPU %p", ptr);
	}
	if (rc != 0)
		entry_add(d, e);
	else
		free(e);
	return rc;
}

/* The driver's allocation has to hold ours, whole pages of it. */
static int export_range(
	struct mr_gpu_drv *d, mr_cu_deviceptr start, size_t bytes, int *ret_fd, struct mr_err *err)
{
	mr_cu_deviceptr base = 0;
	size_t size = 0;
	mr_cu_result r = MR_GPU_CALL(d->api, cuMemGetAddressRange_v2, &base, &size, start);

	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(
			d, err, r, "cuMemGetAddressRange_v2 of 0x%llx", (unsigned long long)start);
	if (start < base || bytes > size || start - base > size - bytes)
		return mr_err_set(err, -EINVAL,
			"device '%s': the allocation of 0x%llx is %zu bytes at 0x%llx for the "
			"driver, which does not hold %zu bytes",
			d->name, (unsigned long long)start, size, (unsigned long long)base, bytes);
	r = MR_GPU_CALL(d->api, cuMemGetHandleForAddressRange, ret_fd, start, bytes,
		MR_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r,
			"cuMemGetHandleForAddressRange of %zu bytes at 0x%llx", bytes,
			(unsigned long long)start);
	return 0;
}

int mr_gpu_drv_dmabuf(struct mr_gpu_drv *d, const void *ptr, size_t bytes, int *ret_fd,
	uint64_t *ret_offset, struct mr_err *err)
{
	const struct mr_gpu_drv_entry *e;
	mr_cu_deviceptr start = 0;
	size_t span = 0;
	int rc;

	if (!d->info.dma_buf || d->api->cuMemGetHandleForAddressRange == NULL)
		return mr_err_set(err, -ENOTSUP,
			"device '%s': its memory cannot be exported as a dma-buf (a real device "
			"needs the open kernel modules and Linux 5.12)",
			d->name);
	pthread_mutex_lock(&d->lock);
	e = bytes != 0 ? entry_holding(d, ptr, bytes) : NULL;
	if (e != NULL) {
		start = (mr_cu_deviceptr)(uintptr_t)e->ptr;
		span = MR_ALIGN_UP(e->bytes, MR_GPU_DRV_PAGE);
	}
	pthread_mutex_unlock(&d->lock);
	if (e == NULL)
		return mr_err_set(err, -EINVAL,
			"device '%s': %zu bytes at %p are not within one allocation", d->name,
			bytes, ptr);
	rc = mr_gpu_drv_enter(d, err);
	if (rc != 0)
		return rc;
	rc = export_range(d, start, span, ret_fd, err);
	mr_gpu_drv_leave(d);
	if (rc == 0)
		*ret_offset = (uint64_t)(uintptr_t)ptr - start;
	return rc;
}

void mr_gpu_drv_mem_free_all(struct mr_gpu_drv *d)
{
	struct mr_gpu_drv_entry *e;

	unmap_within(d, NULL, SIZE_MAX);
	while (d->memory != NULL) {
		e = d->memory;
		d->memory = e->next;
		if (e->kind == MR_GPU_DRV_MEMORY_REGISTERED)
			(void)MR_GPU_CALL(d->api, cuMemHostUnregister, e->ptr);
		else
			(void)cuda_free(d, e->kind, e->base);
		free(e);
	}
}

void mr_gpu_drv_mem_forget(struct mr_gpu_drv *d)
{
	while (d->memory != NULL) {
		struct mr_gpu_drv_entry *e = d->memory;

		d->memory = e->next;
		free(e);
	}
}
