/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cudasim.h"
#include "mr_gpu_drv_priv.h"
#include "mr_sim_image.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DEV_ID 5

/* Beats the word that its argument points to until told to go, as a lane's kernel does. */
static void kernel_beat(uint64_t argument, uint32_t block, const struct mr_sim_orders *orders)
{
	uint32_t *word = (uint32_t *)(uintptr_t)argument;
	const struct timespec nap = {.tv_nsec = 200000};

	(void)block;
	for (;;) {
		uint32_t order = __atomic_load_n(&orders->fault, __ATOMIC_RELAXED);

		if (order == MR_SIM_FAULT_DIE)
			return;
		if (order == MR_SIM_FAULT_NONE) {
			if (__atomic_load_n(&word[0], __ATOMIC_ACQUIRE) != 0)
				return;
			__atomic_fetch_add(&word[1], 1, __ATOMIC_RELEASE);
		}
		nanosleep(&nap, NULL);
	}
}

static const struct mr_sim_kernel kernels[] = {{"beat", kernel_beat}};
static const struct mr_sim_image sim_image = {MR_SIM_IMAGE_MAGIC, 1, kernels};
static const struct mr_gpu_drv_image image = {.sim = &sim_image};

/*
 * One device of the driver, while another device's context is current on this
 * thread: whatever the driver does, that one must still be current after it.
 */
struct rig {
	struct mr_gpu_drv *d;
	mr_cu_device dev, other;
	mr_cu_context other_ctx;
	const struct mr_cuda_api *api;
	struct mr_err err;
};

static void rig_open_api(struct rig *g, const char *options, const struct mr_cuda_api *api)
{
	memset(g, 0, sizeof(*g));
	if (mr_cudasim_add(options, &g->dev, &g->err) != 0)
		fail_msg("%s", g->err.msg);
	assert_int_equal(mr_cudasim_add("mem=1MiB", &g->other, &g->err), 0);
	g->api = api != NULL ? api : mr_cudasim_api(g->dev);
	assert_int_equal(g->api->cuInit(0), 0);
	assert_int_equal(g->api->cuDevicePrimaryCtxRetain(&g->other_ctx, g->other), 0);
	assert_int_equal(g->api->cuCtxPushCurrent_v2(g->other_ctx), 0);
	if (mr_gpu_drv_open(g->api, g->dev, "t", "auto", DEV_ID, &g->d, &g->err) != 0)
		fail_msg("%s", g->err.msg);
}

static void rig_open(struct rig *g, const char *options)
{
	rig_open_api(g, options, NULL);
}

static void rig_close(struct rig *g)
{
	mr_cu_context popped;

	if (g->d != NULL)
		mr_gpu_drv_close(g->d);
	assert_int_equal(g->api->cuCtxPopCurrent_v2(&popped), 0);
	assert_ptr_equal(popped, g->other_ctx);
	assert_int_equal(g->api->cuCtxPopCurrent_v2(&popped), MR_CUDA_ERROR_INVALID_CONTEXT);
	mr_cudasim_remove(g->dev);
	mr_cudasim_remove(g->other);
}

static void says(const struct rig *g, const char *words)
{
	if (strstr(g->err.msg, "device 't': ") != g->err.msg || strstr(g->err.msg, words) == NULL ||
		strchr(g->err.msg, '\n') != NULL)
		fail_msg("'%s' does not say '%s'", g->err.msg, words);
}

static void a_device_says_what_it_is(void **state)
{
	struct rig g;
	struct mr_gpu_drv_info info;

	(void)state;
	rig_open(&g, "sms=3,ordering=owner,flush=host,dmabuf=0,map=0");
	assert_ptr_equal(mr_gpu_drv_get(DEV_ID), g.d);
	assert_null(mr_gpu_drv_get(DEV_ID + 1));
	assert_int_equal(mr_gpu_drv_info(g.d, &info, &g.err), 0);
	assert_string_equal(info.provider, "sim");
	assert_string_equal(info.guard, "auto");
	assert_int_equal(info.driver_version, 13000);
	assert_int_equal(info.multiprocessors, 3);
	assert_true(info.gpudirect_rdma);
	assert_false(info.dma_buf);
	assert_false(info.can_map);
	assert_int_equal(info.writes_ordering, MR_CU_WRITES_ORDERING_OWNER);
	assert_int_equal(info.flush_options, MR_CU_FLUSH_OPTION_HOST);
	rig_close(&g);
	assert_null(mr_gpu_drv_get(DEV_ID));
}

static void memory_is_aligned_and_found_by_its_start_only(void **state)
{
	struct rig g;
	void *p, *q, *host;

	(void)state;
	rig_open(&g, "mem=16MiB");
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 1, 0, &p, &g.err), 0);
	assert_int_equal((uintptr_t)p % MR_GPU_DRV_PAGE, 0);
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 1000, (size_t)2 << 20, &q, &g.err), 0);
	assert_int_equal((uintptr_t)q % ((size_t)2 << 20), 0);
	assert_int_equal(mr_gpu_drv_host_alloc(g.d, 100, &host, &g.err), 0);
	assert_int_equal((uintptr_t)host % MR_GPU_DRV_PAGE, 0);
	memset(host, 1, MR_GPU_DRV_PAGE);
	assert_int_equal(mr_gpu_drv_mem_free(g.d, (char *)p + 16, &g.err), -ENOENT);
	says(&g, "is not the start of device memory");
	assert_int_equal(mr_gpu_drv_mem_free(g.d, host, &g.err), -ENOENT);
	assert_int_equal(mr_gpu_drv_host_free(g.d, p, &g.err), -ENOENT);
	assert_int_equal(mr_gpu_drv_host_free(g.d, host, &g.err), 0);
	assert_int_equal(mr_gpu_drv_host_free(g.d, host, &g.err), -ENOENT);
	assert_int_equal(mr_gpu_drv_mem_free(g.d, p, &g.err), 0);
	assert_int_equal(mr_gpu_drv_mem_free(g.d, p, &g.err), -ENOENT);
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 1, 3 << 16, &p, &g.err), -EINVAL);
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 0, 0, &p, &g.err), -EINVAL);
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, SIZE_MAX, 0, &p, &g.err), -E2BIG);
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, (size_t)1 << 40, 0, &p, &g.err), -ENOMEM);
	says(&g, "cuMemAlloc_v2 of 1099511627776 bytes: CUDA_ERROR_OUT_OF_MEMORY");
	rig_close(&g);
}

/*
 * Free the last of the list, then add: a list with a stale tail breaks here. DPDK
 * drivers/gpu/cuda/cuda.c:584: the list of allocations has a stale tail, and a failed one in its
 * place.
 */
static void the_list_survives_freeing_its_ends(void **state)
{
	struct rig g;
	void *p[4];

	(void)state;
	rig_open(&g, "mem=1MiB");
	for (size_t victim = 0; victim < 3; victim++) {
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 64, 0, &p[i], &g.err), 0);
		assert_int_equal(mr_gpu_drv_mem_free(g.d, p[victim], &g.err), 0);
		assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 64, 0, &p[victim], &g.err), 0);
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(mr_gpu_drv_mem_free(g.d, p[i], &g.err), 0);
	}
	/* All 16 pages are there again. */
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 16 * MR_GPU_DRV_PAGE, 0, &p[0], &g.err), 0);
	rig_close(&g);
}

static mr_cu_result (*true_alloc)(mr_cu_deviceptr *, size_t);
static mr_cu_result (*true_free)(mr_cu_deviceptr);

/* What CUDA promises and no more: 256 bytes. */
static mr_cu_result crooked_alloc(mr_cu_deviceptr *ret_ptr, size_t bytes)
{
	mr_cu_result r = true_alloc(ret_ptr, bytes + 256);

	*ret_ptr += 256;
	return r;
}

static mr_cu_result crooked_free(mr_cu_deviceptr ptr)
{
	return true_free(ptr - 256);
}

/* NVIDIA/l2fwd-nv src/main.cpp:731: memory aligned to 4 KB is registered in pages of 64 KB. */
static void memory_is_aligned_where_cuda_is_not(void **state)
{
	struct rig g;
	struct mr_cuda_api crooked;
	static char bytes[MR_GPU_DRV_PAGE];
	void *p, *host;

	(void)state;
	rig_open(&g, "mem=1MiB");
	crooked = *g.api;
	rig_close(&g);
	true_alloc = crooked.cuMemAlloc_v2;
	true_free = crooked.cuMemFree_v2;
	crooked.cuMemAlloc_v2 = crooked_alloc;
	crooked.cuMemFree_v2 = crooked_free;
	rig_open_api(&g, "mem=256KiB", &crooked);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(mr_gpu_drv_mem_alloc(g.d, MR_GPU_DRV_PAGE, 0, &p, &g.err), 0);
		assert_int_equal((uintptr_t)p % MR_GPU_DRV_PAGE, 0);
		/* All of it lies within what CUDA gave. */
		assert_int_equal(
			mr_gpu_drv_upload(g.d, (uintptr_t)p, bytes, sizeof(bytes), &g.err), 0);
		assert_int_equal(mr_gpu_drv_mem_map(g.d, p, MR_GPU_DRV_PAGE, &host, &g.err), 0);
		assert_int_equal(mr_gpu_drv_mem_free(g.d, p, &g.err), 0);
	}
	rig_close(&g);
}

static mr_cu_result managed_attribute(void *ret_data, unsigned int attribute, mr_cu_deviceptr ptr)
{
	const unsigned int value =
		attribute == MR_CU_POINTER_ATTRIBUTE_MEMORY_TYPE ? MR_CU_MEMORYTYPE_DEVICE : 1;

	(void)ptr;
	memcpy(ret_data, &value, sizeof(value));
	return MR_CUDA_SUCCESS;
}

static void memory_that_is_not_for_gpudirect_is_refused(void **state)
{
	struct rig g;
	struct mr_cuda_api managed;
	void *p;

	(void)state;
	rig_open(&g, "mem=1MiB");
	managed = *g.api;
	rig_close(&g);
	managed.cuPointerGetAttribute = managed_attribute;
	rig_open_api(&g, "mem=64KiB", &managed);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 64, 0, &p, &g.err), -EIO);
		says(&g, "managed");
	}
	rig_close(&g);
}

/*
 * DPDK drivers/gpu/cuda/cuda.c cuda_mem_cpu_map: the size of a mapping is ignored, and memory
 * aligned to 4 KB has none.
 */
static void a_mapping_has_the_size_that_was_asked_for(void **state)
{
	struct rig g;
	uint8_t *p, *host, *second;

	(void)state;
	rig_open(&g, "mem=1MiB,bar=128KiB,alias=1");
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 4 * MR_GPU_DRV_PAGE, 0, (void **)&p, &g.err), 0);
	/* The whole allocation would not fit into the window; one page does. */
	assert_int_equal(
		mr_gpu_drv_mem_map(g.d, p, 4 * MR_GPU_DRV_PAGE, (void **)&host, &g.err), -ENOMEM);
	assert_int_equal(mr_gpu_drv_mem_map(g.d, p, 100, (void **)&host, &g.err), 0);
	assert_ptr_not_equal(p, host);
	host[99] = 42;
	assert_int_equal(p[99], 42);
	assert_int_equal(mr_gpu_drv_mem_map(g.d, p, 100, (void **)&second, &g.err), -EEXIST);
	says(&g, "is mapped already");
	/* An address inside a page gives that byte of the mapping. */
	assert_int_equal(
		mr_gpu_drv_mem_map(g.d, p + 2 * MR_GPU_DRV_PAGE + 5, 10, (void **)&second, &g.err),
		0);
	second[0] = 43;
	assert_int_equal(p[2 * MR_GPU_DRV_PAGE + 5], 43);
	assert_int_equal(
		mr_gpu_drv_mem_map(g.d, p + 4 * MR_GPU_DRV_PAGE - 5, 10, (void **)&second, &g.err),
		-EINVAL);
	assert_int_equal(mr_gpu_drv_mem_map(g.d, &g, 10, (void **)&second, &g.err), -EINVAL);
	says(&g, "not within one allocation");
	assert_int_equal(mr_gpu_drv_mem_unmap(g.d, host, &g.err), -ENOENT);
	assert_int_equal(mr_gpu_drv_mem_unmap(g.d, p, &g.err), 0);
	assert_int_equal(mr_gpu_drv_mem_unmap(g.d, p, &g.err), -ENOENT);
	/* The other mapping is ended with the memory. */
	assert_int_equal(mr_gpu_drv_mem_free(g.d, p, &g.err), 0);
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 2 * MR_GPU_DRV_PAGE, 0, (void **)&p, &g.err), 0);
	assert_int_equal(
		mr_gpu_drv_mem_map(g.d, p, 2 * MR_GPU_DRV_PAGE, (void **)&host, &g.err), 0);
	rig_close(&g);
	rig_open(&g, "mem=1MiB,map=0");
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 64, 0, (void **)&p, &g.err), 0);
	assert_int_equal(mr_gpu_drv_mem_map(g.d, p, 64, (void **)&host, &g.err), -ENOTSUP);
	rig_close(&g);
}

static mr_cu_result short_range(mr_cu_deviceptr *ret_base, size_t *ret_bytes, mr_cu_deviceptr ptr)
{
	*ret_base = ptr;
	*ret_bytes = MR_GPU_DRV_PAGE;
	return MR_CUDA_SUCCESS;
}

/*
 * The software device's dma-buf is its whole memory, so only its first allocation lies where a
 * real one would show it. linux-rdma/perftest src/cuda_memory.c: an export that does not begin and
 * end with a page is refused.
 */
static void a_dma_buf_shows_the_bytes_at_the_offset_of_their_address(void **state)
{
	struct rig g;
	struct mr_cuda_api cut;
	uint64_t offset = 1;
	uint8_t *p, *q;
	int fd = -1, again = -1;
	char byte = 0;

	(void)state;
	rig_open(&g, "mem=1MiB");
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 4 * MR_GPU_DRV_PAGE, 0, (void **)&p, &g.err), 0);
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 100, 0, (void **)&q, &g.err), 0);
	assert_int_equal(mr_gpu_drv_dmabuf(g.d, p, 1, &fd, &offset, &g.err), 0);
	assert_int_equal(offset, 0);
	p[2 * MR_GPU_DRV_PAGE + 77] = 42;
	assert_int_equal(
		mr_gpu_drv_dmabuf(g.d, p + 2 * MR_GPU_DRV_PAGE + 77, 9, &again, &offset, &g.err),
		0);
	assert_int_equal(offset, 2 * MR_GPU_DRV_PAGE + 77);
	assert_int_equal(pread(again, &byte, 1, (off_t)offset), 1);
	assert_int_equal(byte, 42);
	assert_int_equal(close(fd) | close(again), 0);
	/* A part of an allocation, not of two, nor of none. */
	assert_int_equal(mr_gpu_drv_dmabuf(g.d, q, 101, &fd, &offset, &g.err), -EINVAL);
	assert_int_equal(mr_gpu_drv_dmabuf(g.d, p, 0, &fd, &offset, &g.err), -EINVAL);
	assert_int_equal(mr_gpu_drv_dmabuf(g.d, &g, 1, &fd, &offset, &g.err), -EINVAL);
	says(&g, "are not within one allocation");
	cut = *g.api;
	rig_close(&g);
	/* What the driver takes for the allocation decides what may be registered. */
	cut.cuMemGetAddressRange_v2 = short_range;
	rig_open_api(&g, "mem=1MiB", &cut);
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 2 * MR_GPU_DRV_PAGE, 0, (void **)&p, &g.err), 0);
	assert_int_equal(mr_gpu_drv_dmabuf(g.d, p, 1, &fd, &offset, &g.err), -EINVAL);
	says(&g, "which does not hold 131072 bytes");
	rig_close(&g);
	rig_open(&g, "mem=1MiB,dmabuf=0");
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 64, 0, (void **)&p, &g.err), 0);
	assert_int_equal(mr_gpu_drv_dmabuf(g.d, p, 1, &fd, &offset, &g.err), -ENOTSUP);
	says(&g, "cannot be exported");
	rig_close(&g);
	cut.cuMemGetHandleForAddressRange = NULL;
	rig_open_api(&g, "mem=1MiB", &cut);
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 64, 0, (void **)&p, &g.err), 0);
	assert_int_equal(mr_gpu_drv_dmabuf(g.d, p, 1, &fd, &offset, &g.err), -ENOTSUP);
	rig_close(&g);
}

/*
 * DPDK drivers/gpu/cuda/cuda.c cuda_mem_register: an error leaves the context switched and a
 * half-made entry.
 */
static void registered_memory_keeps_its_address(void **state)
{
	static char memory[8192];
	struct rig g;
	uint64_t at = 0;

	(void)state;
	rig_open(&g, "mem=1MiB,fault=register@1");
	assert_int_equal(mr_gpu_drv_mem_register(g.d, memory, 4096, &g.err), -ENOMEM);
	says(&g, "cuMemHostRegister_v2 of 4096 bytes");
	assert_int_equal(mr_gpu_drv_mem_register(g.d, memory, 4096, &g.err), 0);
	assert_int_equal(mr_gpu_drv_mem_register(g.d, memory, 4096, &g.err), -EEXIST);
	assert_int_equal(mr_gpu_drv_kernel_address(g.d, memory + 9, &at, &g.err), 0);
	assert_true(at == (uintptr_t)(memory + 9));
	assert_int_equal(mr_gpu_drv_mem_unregister(g.d, memory + 1, &g.err), -ENOENT);
	assert_int_equal(mr_gpu_drv_mem_unregister(g.d, memory, &g.err), 0);
	assert_int_equal(mr_gpu_drv_kernel_address(g.d, memory, &at, &g.err), -EINVAL);
	/* What is left registered goes with the device. */
	assert_int_equal(mr_gpu_drv_mem_register(g.d, memory, 8192, &g.err), 0);
	rig_close(&g);
}

static void copies_arrive_by_either_address(void **state)
{
	struct rig g;
	void *p;
	uint64_t kernel;
	char out[16] = {0};

	(void)state;
	rig_open(&g, "mem=1MiB");
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 64, 0, &p, &g.err), 0);
	assert_int_equal(mr_gpu_drv_kernel_address(g.d, p, &kernel, &g.err), 0);
	assert_int_equal(mr_gpu_drv_upload(g.d, (uintptr_t)p, "one", 4, &g.err), 0);
	assert_int_equal(mr_gpu_drv_download(g.d, out, kernel, 4, &g.err), 0);
	assert_string_equal(out, "one");
	assert_int_equal(mr_gpu_drv_upload(g.d, kernel, "two", 4, &g.err), 0);
	assert_int_equal(mr_gpu_drv_download(g.d, out, (uintptr_t)p, 4, &g.err), 0);
	assert_string_equal(out, "two");
	assert_int_equal(mr_gpu_drv_upload(g.d, (uintptr_t)p + 62, "two", 4, &g.err), 0);
	assert_int_equal(
		mr_gpu_drv_upload(g.d, (uintptr_t)p + MR_GPU_DRV_PAGE - 2, "two", 4, &g.err),
		-EINVAL);
	says(&g, "cuMemcpyHtoDAsync_v2 of 4 bytes");
	rig_close(&g);
}

/* DPDK drivers/gpu/cuda/cuda.c:1139: the flush options are compared as a number and are a mask. */
static void a_flush_takes_any_option_of_the_mask(void **state)
{
	static const struct {
		const char *options;
		int rc;
	} rows[] = {
		{"mem=1MiB,ordering=none,flush=none", -ENOTSUP},
		{"mem=1MiB,ordering=none,flush=host", 0},
		{"mem=1MiB,ordering=none,flush=memops", 0},
		{"mem=1MiB,ordering=none,flush=both", 0},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		struct rig g;

		rig_open(&g, rows[i].options);
		assert_int_equal(mr_gpu_drv_flush(g.d, &g.err), rows[i].rc);
		assert_int_equal(mr_cudasim_flushes(g.dev), rows[i].rc == 0);
		rig_close(&g);
	}
}

static bool wait_above(const uint32_t *word, uint32_t value)
{
	const struct timespec nap = {.tv_nsec = 1000000};

	for (int i = 0; i < 5000; i++) {
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) > value)
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}

static int wait_query(struct mr_gpu_drv_launch *l, int until, struct mr_err *err)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	int rc = 1;

	for (int i = 0; i < 5000 && rc != until; i++) {
		rc = mr_gpu_drv_launch_query(l, err);
		nanosleep(&nap, NULL);
	}
	return rc;
}

/* A rig with its kernel running on a word of host memory. */
struct running {
	struct rig g;
	struct mr_gpu_drv_module *module;
	struct mr_gpu_drv_launch *launch;
	uint32_t *word;
	uint64_t kernel;
};

static void run_open(struct running *r, const char *options)
{
	rig_open(&r->g, options);
	assert_int_equal(mr_gpu_drv_host_alloc(r->g.d, 64, (void **)&r->word, &r->g.err), 0);
	assert_int_equal(mr_gpu_drv_kernel_address(r->g.d, r->word, &r->kernel, &r->g.err), 0);
	/* TSan and the kernel see the other address. */
	r->word = (uint32_t *)(uintptr_t)r->kernel;
	assert_int_equal(mr_gpu_drv_module_load(r->g.d, &image, &r->module, &r->g.err), 0);
	assert_int_equal(
		mr_gpu_drv_launch(r->module, "beat", 1, 32, r->kernel, &r->launch, &r->g.err), 0);
}

/* NVIDIA/nccl #48: allocating and freeing wait for the kernel that runs. */
static void a_kernel_runs_until_it_is_told_to_go(void **state)
{
	struct running r;
	void *p;

	(void)state;
	run_open(&r, "mem=1MiB");
	assert_true(wait_above(&r.word[1], 3));
	assert_int_equal(mr_gpu_drv_launch_query(r.launch, &r.g.err), 1);
	assert_int_equal(mr_gpu_drv_launch_free(r.launch, &r.g.err), -EBUSY);
	says(&r.g, "kernel beat still runs");
	/* Copies and flushes go on beside it; giving memory back would wait for it. */
	assert_int_equal(mr_gpu_drv_mem_alloc(r.g.d, 64, 0, &p, &r.g.err), 0);
	assert_int_equal(mr_gpu_drv_upload(r.g.d, (uintptr_t)p, "x", 1, &r.g.err), 0);
	assert_int_equal(mr_gpu_drv_flush(r.g.d, &r.g.err), 0);
	assert_int_equal(mr_gpu_drv_mem_free(r.g.d, p, &r.g.err), -EBUSY);
	says(&r.g, "while a kernel runs");
	__atomic_store_n(&r.word[0], 1, __ATOMIC_RELEASE);
	assert_int_equal(wait_query(r.launch, 0, &r.g.err), 0);
	assert_int_equal(mr_gpu_drv_launch_free(r.launch, &r.g.err), 0);
	assert_int_equal(mr_gpu_drv_mem_free(r.g.d, p, &r.g.err), 0);
	assert_int_equal(mr_gpu_drv_module_unload(r.module, &r.g.err), 0);
	rig_close(&r.g);
}

static void a_stalled_kernel_ends_with_the_device(void **state)
{
	struct running r;
	struct timespec nap = {.tv_nsec = 20000000};

	(void)state;
	run_open(&r, "mem=1MiB,fault=stall@0:1");
	nanosleep(&nap, NULL);
	__atomic_store_n(&r.word[0], 1, __ATOMIC_RELEASE);
	nanosleep(&nap, NULL);
	assert_int_equal(mr_gpu_drv_launch_query(r.launch, &r.g.err), 1);
	assert_int_equal(mr_gpu_drv_module_unload(r.module, &r.g.err), 0);
	rig_close(&r.g);
}

static void a_kernel_that_dies_and_a_lost_device_are_eio(void **state)
{
	static const struct {
		const char *options, *says;
	} rows[] = {
		{"mem=1MiB,fault=die@0:2", "CUDA_ERROR_LAUNCH_FAILED"},
		{"mem=1MiB,fault=lost@2", "CUDA_ERROR_ECC_UNCORRECTABLE"},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		struct running r;
		void *p;

		run_open(&r, rows[i].options);
		assert_int_equal(wait_query(r.launch, -EIO, &r.g.err), -EIO);
		says(&r.g, rows[i].says);
		assert_int_equal(mr_gpu_drv_mem_alloc(r.g.d, 64, 0, &p, &r.g.err), -EIO);
		assert_int_equal(mr_gpu_drv_flush(r.g.d, &r.g.err), -EIO);
		assert_int_equal(mr_gpu_drv_launch_free(r.launch, &r.g.err), 0);
		assert_int_equal(mr_gpu_drv_module_unload(r.module, &r.g.err), -EIO);
		rig_close(&r.g);
	}
}

static void images_and_launches_fail_with_the_callers_name(void **state)
{
	const struct mr_gpu_drv_image fatbin_only = {.fatbin = "x", .fatbin_bytes = 1};
	struct mr_gpu_drv_module *m;
	struct mr_gpu_drv_launch *l;
	struct rig g;
	uint32_t word[2] = {1, 0}, blocks = 0;

	(void)state;
	rig_open(&g, "mem=1MiB,fault=module@1,fault=launch@1");
	assert_int_equal(mr_gpu_drv_module_load(g.d, &fatbin_only, &m, &g.err), -ENOEXEC);
	assert_int_equal(mr_gpu_drv_module_load(g.d, &image, &m, &g.err), -ENOEXEC);
	says(&g, "cuModuleLoadData");
	assert_int_equal(mr_gpu_drv_module_load(g.d, &image, &m, &g.err), 0);
	assert_int_equal(mr_gpu_drv_occupancy(m, "none", 32, &blocks, &g.err), -ENOENT);
	says(&g, "cuModuleGetFunction of none");
	assert_int_equal(mr_gpu_drv_occupancy(m, "beat", 128, &blocks, &g.err), 0);
	assert_int_equal(blocks, 16);
	assert_int_equal(mr_gpu_drv_launch(m, "none", 1, 32, 0, &l, &g.err), -ENOENT);
	assert_int_equal(mr_gpu_drv_launch(m, "beat", 1, 32, (uintptr_t)word, &l, &g.err), -ENOSPC);
	says(&g, "cuLaunchKernel of beat, 1 blocks of 32 threads");
	assert_int_equal(mr_gpu_drv_launch(m, "beat", 1, 32, (uintptr_t)word, &l, &g.err), 0);
	assert_int_equal(wait_query(l, 0, &g.err), 0);
	assert_int_equal(mr_gpu_drv_launch_free(l, &g.err), 0);
	assert_int_equal(mr_gpu_drv_module_unload(m, &g.err), 0);
	rig_close(&g);
}

/*
 * DPDK drivers/gpu/cuda/cuda.c:584: the list of allocations has a stale tail, and a failed one in
 * its place. DPDK drivers/gpu/cuda/cuda.c cuda_mem_register: an error leaves the context switched
 * and a half-made entry.
 */
static void every_failed_allocation_leaves_nothing_behind(void **state)
{
	(void)state;
	for (unsigned int k = 1; k <= 3; k++) {
		struct rig g;
		char options[64];
		void *p[3] = {NULL}, *host = NULL;

		snprintf(
			options, sizeof(options), "mem=192KiB,fault=alloc@%u,fault=hostalloc@1", k);
		rig_open(&g, options);
		assert_int_equal(mr_gpu_drv_host_alloc(g.d, 64, &host, &g.err), -ENOMEM);
		says(&g, "cuMemHostAlloc of 65536 bytes");
		assert_null(host);
		for (unsigned int i = 0; i < 3; i++)
			assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 64, 0, &p[i], &g.err),
				i + 1 == k ? -ENOMEM : 0);
		assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 64, 0, &p[k - 1], &g.err), 0);
		rig_close(&g);
	}
}

static mr_cu_result (*true_free_host)(void *);
static uint32_t frees;

static mr_cu_result refused_once_free(mr_cu_deviceptr ptr)
{
	return frees++ == 0 ? MR_CUDA_ERROR_UNKNOWN : true_free(ptr);
}

static mr_cu_result refused_free_host(void *ptr)
{
	frees++;
	(void)true_free_host(ptr);
	return MR_CUDA_ERROR_UNKNOWN;
}

/*
 * DPDK lib/gpudev/gpudev.c rte_gpu_comm_destroy_list: the first error keeps all that would follow.
 */
static void what_is_not_taken_back_does_not_keep_the_rest(void **state)
{
	static char registered[4096];
	struct mr_cuda_api table;
	struct rig g;
	void *p[3], *host;

	(void)state;
	rig_open(&g, "mem=1MiB");
	table = *g.api;
	rig_close(&g);
	true_free = table.cuMemFree_v2;
	true_free_host = table.cuMemFreeHost;
	table.cuMemFree_v2 = refused_once_free;
	table.cuMemFreeHost = refused_free_host;
	rig_open_api(&g, "mem=1MiB", &table);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 64, 0, &p[i], &g.err), 0);
	assert_int_equal(mr_gpu_drv_host_alloc(g.d, 64, &host, &g.err), 0);
	assert_int_equal(mr_gpu_drv_mem_register(g.d, registered, sizeof(registered), &g.err), 0);
	frees = 0;
	/* What CUDA kept is in the list as before, and goes at the next try. */
	assert_int_equal(mr_gpu_drv_mem_free(g.d, p[1], &g.err), -EIO);
	assert_int_equal(mr_gpu_drv_mem_free(g.d, p[1], &g.err), 0);
	assert_int_equal(mr_gpu_drv_mem_free(g.d, p[1], &g.err), -ENOENT);
	frees = 0;
	rig_close(&g);
	assert_int_equal(frees, 3);
}

static void *allocate_and_free(void *arg)
{
	struct mr_gpu_drv *d = arg;
	void *p[2], *host;
	intptr_t wrong = 0;

	for (uint32_t i = 0; i < 300; i++) {
		for (uint32_t k = 0; k < 2; k++)
			wrong |= mr_gpu_drv_mem_alloc(d, 64, 0, &p[k], NULL);
		wrong |= mr_gpu_drv_mem_map(d, p[1], 64, &host, NULL);
		wrong |= mr_gpu_drv_mem_free(d, p[i % 2], NULL);
		wrong |= mr_gpu_drv_mem_free(d, p[1 - i % 2], NULL);
	}
	return (void *)wrong;
}

/*
 * DPDK drivers/gpu/cuda/cuda.c:584: no lock guards the list. Without one it is ThreadSanitizer that
 * finds it, in the build that has it.
 */
static void threads_share_the_list(void **state)
{
	pthread_t thread[4];
	struct rig g;
	void *all, *wrong;

	(void)state;
	rig_open(&g, "mem=1MiB,alias=1");
	for (size_t i = 0; i < MR_ARRAY_LEN(thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, allocate_and_free, g.d), 0);
	for (size_t i = 0; i < MR_ARRAY_LEN(thread); i++) {
		pthread_join(thread[i], &wrong);
		assert_null(wrong);
	}
	assert_int_equal(mr_gpu_drv_mem_alloc(g.d, 16 * MR_GPU_DRV_PAGE, 0, &all, &g.err), 0);
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_says_what_it_is),
		cmocka_unit_test(memory_is_aligned_and_found_by_its_start_only),
		cmocka_unit_test(the_list_survives_freeing_its_ends),
		cmocka_unit_test(memory_is_aligned_where_cuda_is_not),
		cmocka_unit_test(memory_that_is_not_for_gpudirect_is_refused),
		cmocka_unit_test(a_mapping_has_the_size_that_was_asked_for),
		cmocka_unit_test(a_dma_buf_shows_the_bytes_at_the_offset_of_their_address),
		cmocka_unit_test(registered_memory_keeps_its_address),
		cmocka_unit_test(copies_arrive_by_either_address),
		cmocka_unit_test(a_flush_takes_any_option_of_the_mask),
		cmocka_unit_test(a_kernel_runs_until_it_is_told_to_go),
		cmocka_unit_test(a_stalled_kernel_ends_with_the_device),
		cmocka_unit_test(a_kernel_that_dies_and_a_lost_device_are_eio),
		cmocka_unit_test(images_and_launches_fail_with_the_callers_name),
		cmocka_unit_test(every_failed_allocation_leaves_nothing_behind),
		cmocka_unit_test(what_is_not_taken_back_does_not_keep_the_rest),
		cmocka_unit_test(threads_share_the_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
