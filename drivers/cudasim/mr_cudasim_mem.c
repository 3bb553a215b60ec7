/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cudasim_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Address space of that size, aligned to a device page as real device memory is. */
uint8_t *mr_sim_map_aligned(int fd, size_t bytes)
{
	uint8_t *raw = mmap(NULL, bytes + SIM_PAGE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *at;
	size_t head;

	if (raw == MAP_FAILED)
		return NULL;
	head = MR_ALIGN_UP((uintptr_t)raw, SIM_PAGE) - (uintptr_t)raw;
	at = raw + head;
	if (head != 0)
		munmap(raw, head);
	if (head != SIM_PAGE)
		munmap(at + bytes, SIM_PAGE - head);
	if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
		    0) == MAP_FAILED) {
		munmap(at, bytes);
		return NULL;
	}
	/* Packets are nobody's business in a core file, and the arena is large. */
	(void)madvise(at, bytes, MADV_DONTDUMP);
	return at;
}

/* Ordinary memory that can be mapped more than once; a file descriptor or -errno. */
static int memory_file(size_t bytes)
{
	int fd = memfd_create("mr-sim", MFD_CLOEXEC);
	int code;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) == 0)
		return fd;
	code = -errno;
	close(fd);
	return code;
}

/* The same bytes at two addresses, or at one without an alias. */
static int map_twice(int fd, bool alias, size_t bytes, uint8_t **ret_primary, uint8_t **ret_alias)
{
	int code;

	*ret_primary = mr_sim_map_aligned(fd, bytes);
	*ret_alias = *ret_primary;
	if (*ret_primary != NULL && alias)
		*ret_alias = mr_sim_map_aligned(fd, bytes);
	if (*ret_primary != NULL && *ret_alias != NULL)
		return 0;
	code = -errno;
	if (*ret_primary != NULL)
		munmap(*ret_primary, bytes);
	return code;
}

static void unmap_twice(uint8_t *primary, uint8_t *alias, size_t bytes)
{
	munmap(primary, bytes);
	if (alias != primary)
		munmap(alias, bytes);
}

int mr_sim_memory_init(struct sim_device *dev, struct mr_err *err)
{
	const bool late = mr_sim_is_split(&dev->options);
	int rc;

	if (dev->options.bar_address[0] != '\0') {
		rc = mr_sim_bar_open(dev, err);
		if (rc != 0)
			return rc;
		mr_sim_bar_catch();
	} else {
		dev->arena_fd = memory_file(dev->options.mem_bytes);
	}
	rc = dev->arena_fd < 0 ? dev->arena_fd
			       : map_twice(dev->arena_fd, dev->options.alias && !late,
					 dev->options.mem_bytes, &dev->arena, &dev->arena_alias);
	if (rc != 0 && dev->arena_fd >= 0) {
		close(dev->arena_fd);
		dev->arena_fd = -1;
	}
	if (rc == 0 && late) {
		rc = mr_sim_late_init(dev);
		if (rc != 0)
			mr_sim_memory_fini(dev);
	}
	if (rc != 0)
		return mr_err_set(err, rc, "software device: %zu bytes of device memory: %s",
			dev->options.mem_bytes, strerror(-rc));
	return 0;
}

/*
 * SHORT: the last page of an allocation is, for NICs, other memory. Whole again when it is
 * freed; without the fault, or in an allocation of one page, nothing is done.
 */
static void window_cut(struct sim_device *dev, const struct sim_range *range, bool cut)
{
	uint8_t *last = range->primary + range->span - SIM_PAGE;

	if (!mr_sim_fault_has(&dev->options, SIM_FAULT_SHORT) || range->span == SIM_PAGE)
		return;
	(void)mmap(last, SIM_PAGE, PROT_READ | PROT_WRITE,
		MAP_FIXED | (cut ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED),
		cut ? -1 : dev->arena_fd, cut ? 0 : last - dev->arena);
}

static void range_release(struct sim_device *dev, struct sim_range *range)
{
	if (range->memory == SIM_MEMORY_HOST)
		unmap_twice(range->primary, range->alias, range->span);
	/* A freed page costs the machine nothing until it is used again. */
	if (range->memory == SIM_MEMORY_DEVICE)
		window_cut(dev, range, false);
	if (range->memory == SIM_MEMORY_DEVICE)
		mr_sim_late_drop(dev, (size_t)(range->primary - dev->arena), range->span);
	if (range->memory == SIM_MEMORY_DEVICE)
		(void)fallocate(dev->arena_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			range->primary - dev->arena, (off_t)range->span);
	free(range);
}

void mr_sim_memory_reset(struct sim_device *dev)
{
	while (dev->views != NULL) {
		struct sim_view *v = dev->views;

		dev->views = v->next;
		free(v);
	}
	dev->shown_bytes = 0;
	while (dev->ranges != NULL) {
		struct sim_range *range = dev->ranges;

		dev->ranges = range->next;
		range_release(dev, range);
	}
}

void mr_sim_memory_fini(struct sim_device *dev)
{
	mr_sim_memory_reset(dev);
	if (dev->arena_fd < 0)
		return;
	mr_sim_late_fini(dev);
	unmap_twice(dev->arena, dev->arena_alias, dev->options.mem_bytes);
	close(dev->arena_fd);
	dev->arena_fd = -1;
}

static bool covers(const uint8_t *base, size_t size, const uint8_t *ptr, size_t bytes)
{
	return ptr >= base && ptr < base + size && bytes <= size - (size_t)(ptr - base);
}

struct sim_range *mr_sim_range_find(struct sim_device *dev, const void *ptr, size_t bytes)
{
	struct sim_range *r;

	for (r = dev->ranges; r != NULL; r = r->next)
		if (covers(r->primary, r->bytes, ptr, bytes) ||
			covers(r->alias, r->bytes, ptr, bytes))
			break;
	return r;
}

uint8_t *mr_sim_alias(const struct sim_range *range, const void *ptr)
{
	const uint8_t *p = ptr;

	if (covers(range->alias, range->bytes, p, 0))
		return range->alias + (p - range->alias);
	return range->alias + (p - range->primary);
}

/* The link that points to the range that begins at ptr. */
static struct sim_range **range_link(
	struct sim_device *dev, const void *ptr, enum sim_memory memory)
{
	struct sim_range **link = &dev->ranges;

	while (*link != NULL && ((*link)->memory != memory || (*link)->primary != ptr))
		link = &(*link)->next;
	return link;
}

static void *to_ptr(mr_cu_deviceptr ptr)
{
	return (void *)(uintptr_t)ptr;
}

/* First fit. The list keeps the arena's ranges in address order, others anywhere. */
mr_cu_result mr_sim_mem_alloc(mr_cu_deviceptr *ret_ptr, size_t bytes)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	struct sim_range **link, *range;
	uint8_t *at;
	size_t span;

	if (dev == NULL)
		return r;
	if (bytes == 0)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	if (mr_sim_fault_now(dev, SIM_FAULT_ALLOC) || bytes > dev->options.mem_bytes)
		return mr_sim_leave(dev, MR_CUDA_ERROR_OUT_OF_MEMORY);
	span = MR_ALIGN_UP(bytes, SIM_PAGE);
	at = dev->arena;
	for (link = &dev->ranges; *link != NULL; link = &(*link)->next) {
		if ((*link)->memory != SIM_MEMORY_DEVICE)
			continue;
		if ((size_t)((*link)->primary - at) >= span)
			break;
		at = (*link)->primary + (*link)->span;
	}
	if (span > dev->options.mem_bytes - (size_t)(at - dev->arena))
		return mr_sim_leave(dev, MR_CUDA_ERROR_OUT_OF_MEMORY);
	range = calloc(1, sizeof(*range));
	if (range == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_OUT_OF_MEMORY);
	range->memory = SIM_MEMORY_DEVICE;
	range->primary = at;
	range->alias = dev->arena_alias + (at - dev->arena);
	range->bytes = bytes;
	range->span = span;
	range->next = *link;
	*link = range;
	window_cut(dev, range, true);
	*ret_ptr = (mr_cu_deviceptr)(uintptr_t)at;
	return mr_sim_leave(dev, MR_CUDA_SUCCESS);
}

/* Takes the range out of the list and frees it; device memory must not be mapped. */
static mr_cu_result range_end(const void *ptr, enum sim_memory memory, mr_cu_result unknown)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	struct sim_range **link, *range;

	if (dev == NULL)
		return r;
	mr_sim_streams_drain(dev);
	link = range_link(dev, ptr, memory);
	range = *link;
	if (range == NULL)
		return mr_sim_leave(dev, unknown);
	for (struct sim_view *v = dev->views; v != NULL; v = v->next)
		if (v->range == range)
			return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	*link = range->next;
	range_release(dev, range);
	return mr_sim_leave(dev, MR_CUDA_SUCCESS);
}

mr_cu_result mr_sim_mem_free(mr_cu_deviceptr ptr)
{
	return range_end(to_ptr(ptr), SIM_MEMORY_DEVICE, MR_CUDA_ERROR_INVALID_VALUE);
}

mr_cu_result mr_sim_mem_address_range(
	mr_cu_deviceptr *ret_base, size_t *ret_bytes, mr_cu_deviceptr ptr)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	const struct sim_range *range;

	if (dev == NULL)
		return r;
	range = mr_sim_range_find(dev, to_ptr(ptr), 0);
	if (range == NULL || range->memory == SIM_MEMORY_REGISTERED)
		return mr_sim_leave(dev, MR_CUDA_ERROR_NOT_FOUND);
	*ret_base = (mr_cu_deviceptr)(uintptr_t)range->primary;
	*ret_bytes = range->bytes;
	return mr_sim_leave(dev, r);
}

static mr_cu_result range_add(struct sim_device *dev, const struct sim_range *from)
{
	struct sim_range *range = malloc(sizeof(*range));

	if (range == NULL)
		return MR_CUDA_ERROR_OUT_OF_MEMORY;
	*range = *from;
	range->next = dev->ranges;
	dev->ranges = range;
	return MR_CUDA_SUCCESS;
}

mr_cu_result mr_sim_mem_host_alloc(void **ret_ptr, size_t bytes, unsigned int flags)
{
	const unsigned int known = MR_CU_MEMHOSTALLOC_PORTABLE | MR_CU_MEMHOSTALLOC_DEVICEMAP;
	struct sim_range range = {.memory = SIM_MEMORY_HOST, .bytes = bytes};
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	int fd, rc;

	if (dev == NULL)
		return r;
	if (bytes == 0 || (flags & ~known) != 0)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	range.span = MR_ALIGN_UP(bytes, SIM_PAGE);
	if (mr_sim_fault_now(dev, SIM_FAULT_HOSTALLOC) || range.span < bytes)
		return mr_sim_leave(dev, MR_CUDA_ERROR_OUT_OF_MEMORY);
	fd = memory_file(range.span);
	if (fd < 0)
		return mr_sim_leave(dev, MR_CUDA_ERROR_OUT_OF_MEMORY);
	rc = map_twice(fd, dev->options.alias, range.span, &range.primary, &range.alias);
	close(fd);
	if (rc != 0)
		return mr_sim_leave(dev, MR_CUDA_ERROR_OUT_OF_MEMORY);
	r = range_add(dev, &range);
	if (r != MR_CUDA_SUCCESS)
		unmap_twice(range.primary, range.alias, range.span);
	else
		*ret_ptr = range.primary;
	return mr_sim_leave(dev, r);
}

mr_cu_result mr_sim_mem_free_host(void *ptr)
{
	return range_end(ptr, SIM_MEMORY_HOST, MR_CUDA_ERROR_INVALID_VALUE);
}

mr_cu_result mr_sim_mem_host_register(void *ptr, size_t bytes, unsigned int flags)
{
	const unsigned int known = MR_CU_MEMHOSTREGISTER_PORTABLE | MR_CU_MEMHOSTREGISTER_DEVICEMAP;
	struct sim_range range = {.memory = SIM_MEMORY_REGISTERED,
		.primary = ptr,
		.alias = ptr,
		.bytes = bytes,
		.span = bytes};
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);

	if (dev == NULL)
		return r;
	if (ptr == NULL || bytes == 0 || bytes > UINTPTR_MAX - (uintptr_t)ptr ||
		(flags & ~known) != 0)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	if (mr_sim_fault_now(dev, SIM_FAULT_REGISTER))
		return mr_sim_leave(dev, MR_CUDA_ERROR_OUT_OF_MEMORY);
	for (const struct sim_range *o = dev->ranges; o != NULL; o = o->next)
		if (o->primary < range.primary + bytes && range.primary < o->primary + o->bytes)
			return mr_sim_leave(dev, MR_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	return mr_sim_leave(dev, range_add(dev, &range));
}

mr_cu_result mr_sim_mem_host_unregister(void *ptr)
{
	return range_end(ptr, SIM_MEMORY_REGISTERED, MR_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

mr_cu_result mr_sim_mem_host_device_pointer(
	mr_cu_deviceptr *ret_ptr, void *host_ptr, unsigned int flags)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	const struct sim_range *range;

	if (dev == NULL)
		return r;
	range = mr_sim_range_find(dev, host_ptr, 0);
	if (range == NULL || range->memory == SIM_MEMORY_DEVICE || flags != 0)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	*ret_ptr = (mr_cu_deviceptr)(uintptr_t)host_ptr;
	return mr_sim_leave(dev, r);
}

mr_cu_result mr_sim_pointer_get(void *ret_data, unsigned int attribute, mr_cu_deviceptr ptr)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	const struct sim_range *range;
	unsigned int value = 0;

	if (dev == NULL)
		return r;
	range = mr_sim_range_find(dev, to_ptr(ptr), 0);
	if (range == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	switch (attribute) {
	case MR_CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		value = range->memory == SIM_MEMORY_DEVICE ? MR_CU_MEMORYTYPE_DEVICE
							   : MR_CU_MEMORYTYPE_HOST;
		break;
	case MR_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		value = (unsigned int)range->sync_memops;
		break;
	case MR_CU_POINTER_ATTRIBUTE_IS_MANAGED:
		break;
	default:
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	}
	memcpy(ret_data, &value, sizeof(value));
	return mr_sim_leave(dev, r);
}

mr_cu_result mr_sim_pointer_set(const void *value, unsigned int attribute, mr_cu_deviceptr ptr)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	struct sim_range *range;
	unsigned int on;

	if (dev == NULL)
		return r;
	range = mr_sim_range_find(dev, to_ptr(ptr), 0);
	if (range == NULL || range->memory != SIM_MEMORY_DEVICE ||
		attribute != MR_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	if (mr_sim_fault_now(dev, SIM_FAULT_REGISTER))
		return mr_sim_leave(dev, MR_CUDA_ERROR_NOT_SUPPORTED);
	memcpy(&on, value, sizeof(on));
	range->sync_memops = on != 0;
	return mr_sim_leave(dev, r);
}

mr_cu_result mr_sim_mem_handle(void *ret_handle, mr_cu_deviceptr ptr, size_t bytes,
	unsigned int type, unsigned long long flags)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	const struct sim_range *range;
	int fd;

	if (dev == NULL)
		return r;
	if (!dev->options.dmabuf)
		return mr_sim_leave(dev, MR_CUDA_ERROR_NOT_SUPPORTED);
	range = mr_sim_range_find(dev, to_ptr(ptr), bytes);
	if (type != MR_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags != 0 || range == NULL ||
		range->memory != SIM_MEMORY_DEVICE || bytes == 0 || ptr % page != 0 ||
		bytes % page != 0)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	fd = fcntl(dev->arena_fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return mr_sim_leave(dev, MR_CUDA_ERROR_UNKNOWN);
	memcpy(ret_handle, &fd, sizeof(fd));
	return mr_sim_leave(dev, r);
}

mr_cu_result mr_sim_map(mr_cu_deviceptr ptr, size_t bytes, void **ret_host)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	struct sim_range *range;
	struct sim_view *view;

	if (dev == NULL)
		return r;
	/* The last page of an allocation is mapped whole, so look for its start only. */
	range = mr_sim_range_find(dev, to_ptr(ptr), 0);
	if (range == NULL || range->memory != SIM_MEMORY_DEVICE || ptr % SIM_PAGE != 0 ||
		bytes == 0 || bytes % SIM_PAGE != 0 ||
		bytes > range->span - (size_t)(mr_sim_alias(range, to_ptr(ptr)) - range->alias))
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	if (mr_sim_fault_now(dev, SIM_FAULT_MAP) ||
		bytes > dev->options.bar_bytes - dev->shown_bytes)
		return mr_sim_leave(dev, MR_CUDA_ERROR_OUT_OF_MEMORY);
	view = malloc(sizeof(*view));
	if (view == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_OUT_OF_MEMORY);
	view->range = range;
	view->host = mr_sim_alias(range, to_ptr(ptr));
	view->bytes = bytes;
	view->next = dev->views;
	dev->views = view;
	dev->shown_bytes += bytes;
	*ret_host = view->host;
	return mr_sim_leave(dev, r);
}

mr_cu_result mr_sim_unmap(void *host)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	struct sim_view **link, *view;

	if (dev == NULL)
		return r;
	for (link = &dev->views; *link != NULL && (*link)->host != host; link = &(*link)->next)
		;
	view = *link;
	if (view == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	*link = view->next;
	dev->shown_bytes -= view->bytes;
	free(view);
	return mr_sim_leave(dev, r);
}

mr_cu_result mr_sim_kernel_address(const void *ptr, mr_cu_deviceptr *ret_address)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	const struct sim_range *range;

	if (dev == NULL)
		return r;
	range = mr_sim_range_find(dev, ptr, 0);
	if (range == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	*ret_address = (mr_cu_deviceptr)(uintptr_t)mr_sim_alias(range, ptr);
	return mr_sim_leave(dev, r);
}
