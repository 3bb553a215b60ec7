/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_gpu_drv - what the gpu_millrace driver offers beyond gpudev.
 *
 * DPDK's gpudev knows memory; a persistent kernel also needs host memory that
 * the device may map, images, launches and copies. lib/gpu finds a device with
 * gpudev and asks here for the rest; every call goes through the same table of
 * CUDA functions (mr_cuda_api.h) with the device's primary context pushed and
 * popped around it, so the calling thread's own context is never changed.
 *
 * Thread   any; calls on one device are not synchronised with each other.
 * Errors   0 or -errno with a sentence naming the device, the CUDA function and
 *          its error in words. -EIO: the device is lost (sticky error).
 */
#ifndef MR_GPU_DRV_H
#define MR_GPU_DRV_H

#include "mr_cuda_api.h"
#include "mr_err.h"

#include <stdbool.h>

struct mr_gpu_drv; /* one device */

/* One kernel image in the forms that the providers take. */
struct mr_gpu_drv_image {
	const void *fatbin; /* provider "cuda"; NULL where nvcc was not there */
	size_t fatbin_bytes;
	const struct mr_sim_image *sim; /* provider "sim", mr_sim_image.h */
};

struct mr_gpu_drv_info {
	char name[64];
	char provider[8];   /* "sim" or "cuda" */
	char pci[17];       /* "" for a software device */
	char klog[128];     /* kernel log in which to look for its faults; "": none */
	char guard[16];     /* guard wanted: "auto", "pkey", "mprotect", "off" */
	int driver_version; /* as cuDriverGetVersion: 13000 is 13.0 */
	int multiprocessors;
	bool gpudirect_rdma;
	bool dma_buf;
	int writes_ordering; /* MR_CU_WRITES_ORDERING_* */
	int flush_options;   /* MR_CU_FLUSH_OPTION_* bits that mr_gpu_drv_flush can use */
	bool can_map;        /* device memory can be mapped for the CPU */
};

/* mr_gpu_drv_get gives the device behind a gpudev id, or NULL if another driver has it. */
struct mr_gpu_drv *mr_gpu_drv_get(int16_t dev_id);

/*
 * mr_gpu_drv_shut makes all calls of the driver that closing the device needs, so that
 * the device's end by gpudev or by EAL makes none. Nothing else may be done with it then.
 */
void mr_gpu_drv_shut(struct mr_gpu_drv *d);

/*
 * mr_gpu_drv_abandon: a thread was left behind in a call for this device
 * (mr_gpu_call.h). Its end by gpudev or by EAL leaves everything as it is.
 */
void mr_gpu_drv_abandon(struct mr_gpu_drv *d);

/*
 * gpudev and the vdev bus hand on no words and few codes. mr_gpu_drv_last_error
 * gives the sentence of this thread's last gpudev call or probe that this driver
 * refused; code is 0 if there was none.
 */
void mr_gpu_drv_last_error(struct mr_err *ret_err);

MR_MUST_USE int mr_gpu_drv_info(
	struct mr_gpu_drv *d, struct mr_gpu_drv_info *ret_info, struct mr_err *err);

/*
 * Page-locked host memory that kernels reach, aligned to 64 KiB; bytes are rounded
 * up to that. Freeing any memory while a kernel runs is -EBUSY: CUDA would wait.
 */
MR_MUST_USE int mr_gpu_drv_host_alloc(
	struct mr_gpu_drv *d, size_t bytes, void **ret_ptr, struct mr_err *err);
MR_MUST_USE int mr_gpu_drv_host_free(struct mr_gpu_drv *d, void *ptr, struct mr_err *err);

/* Where a kernel finds memory that this device allocated or registered. */
MR_MUST_USE int mr_gpu_drv_kernel_address(
	struct mr_gpu_drv *d, const void *ptr, uint64_t *ret_address, struct mr_err *err);

/* Copies that have ended when the call returns, on a stream of their own. */
MR_MUST_USE int mr_gpu_drv_upload(
	struct mr_gpu_drv *d, uint64_t to, const void *from, size_t bytes, struct mr_err *err);
MR_MUST_USE int mr_gpu_drv_download(
	struct mr_gpu_drv *d, void *to, uint64_t from, size_t bytes, struct mr_err *err);

/*
 * mr_gpu_drv_dmabuf exports the allocation of device memory that holds [ptr, ptr + bytes)
 * as a dma-buf, for drivers that register memory by one (ibv_reg_dmabuf_mr). *ret_offset
 * is where ptr lies in it: the distance from the allocation's start, which is a whole page
 * of the host, so that all of a region shares one dma-buf. The caller closes *ret_fd, after
 * everything that was registered with it and before the memory is freed.
 *
 * -ENOTSUP: the device, the driver or the kernel module has no dma-buf; -EINVAL: not within
 * one allocation, or the driver's own bounds of it are others.
 */
MR_MUST_USE int mr_gpu_drv_dmabuf(struct mr_gpu_drv *d, const void *ptr, size_t bytes, int *ret_fd,
	uint64_t *ret_offset, struct mr_err *err);

/*
 * A stream for copies that go on while kernels run. Each call queues one copy (none where
 * bytes is 0) of page-locked memory, and behind it a value that is written to a word:
 * whoever sees the value there sees all that was copied. Addresses are kernels' own, but
 * for host memory copied from or to. What was queued must stay until it has ended.
 * -ENOTSUP: the driver cannot write values.
 */
struct mr_gpu_drv_stream;
MR_MUST_USE int mr_gpu_drv_stream_open(
	struct mr_gpu_drv *d, struct mr_gpu_drv_stream **ret_stream, struct mr_err *err);
/* Does not wait for what is queued. */
void mr_gpu_drv_stream_close(struct mr_gpu_drv_stream *s);
MR_MUST_USE int mr_gpu_drv_stream_in(struct mr_gpu_drv_stream *s, uint64_t to, const void *from,
	size_t bytes, uint64_t word, uint32_t value, struct mr_err *err);
MR_MUST_USE int mr_gpu_drv_stream_out(struct mr_gpu_drv_stream *s, void *to, uint64_t from,
	size_t bytes, uint64_t word, uint32_t value, struct mr_err *err);
/* 1 something is queued, 0 nothing, -EIO it failed or the device is lost. Does not block. */
int mr_gpu_drv_stream_query(struct mr_gpu_drv_stream *s, struct mr_err *err);

/* What the driver itself says of an address. */
struct mr_gpu_drv_owner {
	unsigned int type; /* MR_CU_MEMORYTYPE_* */
	bool managed;      /* may move between host and device */
	uint64_t base;     /* of the allocation that holds it; 0: the driver does not say */
	size_t bytes;
};
MR_MUST_USE int mr_gpu_drv_owner_of(struct mr_gpu_drv *d, const void *ptr,
	struct mr_gpu_drv_owner *ret_owner, struct mr_err *err);

/*
 * What a NIC's registration of memory is to the device. Real devices learn of it without
 * us: then attach and detach do nothing and counts is -ENOTSUP.
 */
MR_MUST_USE int mr_gpu_drv_peer_attach(
	struct mr_gpu_drv *d, void *ptr, size_t bytes, struct mr_err *err);
void mr_gpu_drv_peer_detach(struct mr_gpu_drv *d, void *ptr, size_t bytes);
MR_MUST_USE int mr_gpu_drv_peer_counts(
	struct mr_gpu_drv *d, uint64_t *ret_bytes, uint64_t *ret_revoked);

/* Makes NIC writes visible to running kernels (writes_ordering NONE). */
MR_MUST_USE int mr_gpu_drv_flush(struct mr_gpu_drv *d, struct mr_err *err);

struct mr_gpu_drv_module;
struct mr_gpu_drv_launch;

MR_MUST_USE int mr_gpu_drv_module_load(struct mr_gpu_drv *d, const struct mr_gpu_drv_image *image,
	struct mr_gpu_drv_module **ret_module, struct mr_err *err);
MR_MUST_USE int mr_gpu_drv_module_unload(struct mr_gpu_drv_module *m, struct mr_err *err);

/* Blocks of `threads` threads of a kernel that one multiprocessor holds at once. */
MR_MUST_USE int mr_gpu_drv_occupancy(struct mr_gpu_drv_module *m, const char *kernel,
	uint32_t threads, uint32_t *ret_blocks, struct mr_err *err);

/*
 * mr_gpu_drv_launch starts `blocks` blocks of `threads` threads on a
 * non-blocking stream of its own. argument is the kernel's only parameter, a
 * device address. The launch runs until the kernel ends by itself.
 */
MR_MUST_USE int mr_gpu_drv_launch(struct mr_gpu_drv_module *m, const char *kernel, uint32_t blocks,
	uint32_t threads, uint64_t argument, struct mr_gpu_drv_launch **ret_launch,
	struct mr_err *err);

/* 1 running, 0 ended, -EIO died or device lost. Does not block. */
int mr_gpu_drv_launch_query(struct mr_gpu_drv_launch *l, struct mr_err *err);

/* Gives the stream back; -EBUSY while the kernel runs. */
MR_MUST_USE int mr_gpu_drv_launch_free(struct mr_gpu_drv_launch *l, struct mr_err *err);

#endif
