/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_gpu_drv_priv - one device of the driver, below gpudev.
 *
 *     mr_gpu_vdev.c   DPDK: probe, gpudev operations, log
 *     mr_gpu_dev.c    open and close a device of either provider
 *     mr_gpu_mem.c    all memory of the device, one list under one lock
 *     mr_gpu_drv.c    images, launches, copies, flush
 *     mr_gpu_stream.c copies while kernels run
 *     mr_gpu_call.c   which call of the table a thread is in
 *
 * Only mr_gpu_vdev.c knows DPDK. Every function here and in mr_gpu_drv.h enters
 * the device's primary context first and leaves it before it returns.
 */
#ifndef MR_GPU_DRV_PRIV_H
#define MR_GPU_DRV_PRIV_H

#include "mr_gpu_call.h"
#include "mr_gpu_drv.h"

#include <pthread.h>

/* Pages in which NICs and GDRCopy map GPU memory, and the alignment of all we give. */
#define MR_GPU_DRV_PAGE ((size_t)64 << 10)

enum mr_gpu_drv_memory {
	MR_GPU_DRV_MEMORY_DEVICE,     /* cuMemAlloc */
	MR_GPU_DRV_MEMORY_HOST,       /* cuMemHostAlloc */
	MR_GPU_DRV_MEMORY_REGISTERED, /* cuMemHostRegister */
	MR_GPU_DRV_MEMORY_MAPPED,     /* a CPU mapping of part of a DEVICE entry */
};

struct mr_gpu_drv_entry {
	struct mr_gpu_drv_entry *next;
	enum mr_gpu_drv_memory kind;
	uint8_t *ptr;   /* what the caller was given, or gave */
	size_t bytes;   /* as asked for */
	uintptr_t base; /* what CUDA gave; MAPPED: the mapping's first byte */
};

struct mr_gpu_drv {
	struct mr_gpu_drv *next;
	int16_t dev_id;
	char name[64]; /* of the vdev; begins every sentence */
	const struct mr_cuda_api *api;
	mr_cu_device device;
	mr_cu_context context;
	struct mr_gpu_drv_info info;
	size_t memory_bytes;
	mr_cu_stream copies;     /* uploads, downloads, flushes */
	mr_cu_deviceptr flushed; /* word that a MEMOPS flush waits on, always 0 */
	bool shut;               /* the driver has got everything back */
	bool abandoned;          /* a thread is left in the driver */
	pthread_mutex_t lock;    /* for the lists */
	struct mr_gpu_drv_entry *memory;
	struct mr_gpu_drv_launch *launches; /* until mr_gpu_drv_launch_free */
	struct mr_gpu_drv_stream *streams;  /* until mr_gpu_drv_stream_close */
	struct mr_gpu_drv_module *modules;  /* until mr_gpu_drv_module_unload */
};

struct mr_gpu_drv_module {
	struct mr_gpu_drv_module *next;
	struct mr_gpu_drv *drv;
	mr_cu_module module;
};

struct mr_gpu_drv_stream {
	struct mr_gpu_drv_stream *next;
	struct mr_gpu_drv *drv;
	mr_cu_stream stream;
};

struct mr_gpu_drv_launch {
	struct mr_gpu_drv_launch *next;
	struct mr_gpu_drv *drv;
	mr_cu_stream stream;
	char kernel[64];
};

/*
 * mr_gpu_drv_open takes device `device` of the table, retains its context and
 * makes it known to mr_gpu_drv_get as dev_id. guard is one of the words of
 * mr_guard_init.
 */
MR_MUST_USE int mr_gpu_drv_open(const struct mr_cuda_api *api, mr_cu_device device,
	const char *name, const char *guard, int16_t dev_id, struct mr_gpu_drv **ret_drv,
	struct mr_err *err);

/*
 * mr_gpu_drv_close frees what is still allocated; errors of a lost device are
 * ignored. A real device on which a kernel still runs is left as it is, since
 * every call that gives something back would wait for the kernel; the end of the
 * process ends both. The software device ends its kernels by force. Of a device that
 * was abandoned nothing is touched.
 */
void mr_gpu_drv_close(struct mr_gpu_drv *d);

/* enter makes the device's context current on this thread; leave restores what was. */
MR_MUST_USE int mr_gpu_drv_enter(struct mr_gpu_drv *d, struct mr_err *err);
void mr_gpu_drv_leave(struct mr_gpu_drv *d);

/*
 * mr_gpu_drv_fail writes "device NAME: FMT: CUDA_ERROR_X (number, words)" and returns
 * the -errno for r. fmt says which CUDA function failed on what.
 */
int mr_gpu_drv_fail(const struct mr_gpu_drv *d, struct mr_err *err, mr_cu_result r, const char *fmt,
	...) MR_PRINTF(4, 5);

/* Whether a kernel runs that was launched here; the context must be current. */
bool mr_gpu_drv_busy(struct mr_gpu_drv *d);

/* Device memory, aligned to align or 64 KiB, whichever is more. -ENOMEM, -E2BIG. */
MR_MUST_USE int mr_gpu_drv_mem_alloc(
	struct mr_gpu_drv *d, size_t bytes, size_t align, void **ret_ptr, struct mr_err *err);
/*
 * Mappings of the memory are ended first. -ENOENT: ptr is not the start of one;
 * -EBUSY: a kernel runs, behind which CUDA would wait.
 */
MR_MUST_USE int mr_gpu_drv_mem_free(struct mr_gpu_drv *d, void *ptr, struct mr_err *err);

/* Memory of the caller; kernels reach it at the same address. -EEXIST if it overlaps. */
MR_MUST_USE int mr_gpu_drv_mem_register(
	struct mr_gpu_drv *d, void *ptr, size_t bytes, struct mr_err *err);
MR_MUST_USE int mr_gpu_drv_mem_unregister(struct mr_gpu_drv *d, void *ptr, struct mr_err *err);

/* A CPU mapping of [ptr, ptr + bytes) within one allocation. One at a time for each ptr. */
MR_MUST_USE int mr_gpu_drv_mem_map(
	struct mr_gpu_drv *d, void *ptr, size_t bytes, void **ret_host, struct mr_err *err);
/* ptr is the device address that was mapped, as in rte_gpu_mem_cpu_unmap. */
MR_MUST_USE int mr_gpu_drv_mem_unmap(struct mr_gpu_drv *d, void *ptr, struct mr_err *err);

/* Ends mappings, then allocations, whatever the device answers. */
void mr_gpu_drv_mem_free_all(struct mr_gpu_drv *d);
/* Empties the list without asking the device. */
void mr_gpu_drv_mem_forget(struct mr_gpu_drv *d);

#endif
