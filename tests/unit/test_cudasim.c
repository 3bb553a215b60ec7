/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mr_cudasim.h"
#include "mr_sim_image.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE ((size_t)64 << 10)
#define BLOCKS_MAX 256

/* What the test kernel and the test share; its address is the kernel's argument. */
struct shared {
	uint32_t exit;
	uint32_t hello[BLOCKS_MAX];
	uint32_t beats[BLOCKS_MAX];
	uint32_t cpus[BLOCKS_MAX];
	uint32_t blocked[BLOCKS_MAX]; /* SIGTERM is blocked */
	char name[BLOCKS_MAX][16];
};

static void nap(void)
{
	struct timespec t = {.tv_nsec = 200000};

	nanosleep(&t, NULL);
}

/* Notes who it is, then polls as the real kernel does. */
static void kernel_poll(uint64_t argument, uint32_t block, const struct mr_sim_orders *orders)
{
	struct shared *s = (struct shared *)(uintptr_t)argument;
	cpu_set_t cpus;
	sigset_t mask;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	s->cpus[block] = (uint32_t)CPU_COUNT(&cpus);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	s->blocked[block] = (uint32_t)sigismember(&mask, SIGTERM);
	pthread_getname_np(pthread_self(), s->name[block], sizeof(s->name[block]));
	__atomic_store_n(&s->hello[block], 1, __ATOMIC_RELEASE);
	for (;;) {
		uint32_t order = __atomic_load_n(&orders->fault, __ATOMIC_RELAXED);

		if (order == MR_SIM_FAULT_DIE)
			return;
		if (order != MR_SIM_FAULT_STALL)
			__atomic_fetch_add(&s->beats[block], 1, __ATOMIC_RELAXED);
		if (order == MR_SIM_FAULT_NONE && __atomic_load_n(&s->exit, __ATOMIC_ACQUIRE) != 0)
			return;
		nap();
	}
}

static const struct mr_sim_kernel kernels[] = {{"poll", kernel_poll}};
static const struct mr_sim_image image = {MR_SIM_IMAGE_MAGIC, 1, kernels};

/* A device with its context current, a stream and the test kernel. */
struct rig {
	const struct mr_cuda_api *api;
	mr_cu_device dev;
	mr_cu_context ctx;
	mr_cu_stream stream;
	mr_cu_function fn;
};

static void rig_open(struct rig *g, const char *options)
{
	struct mr_err err = {0};
	mr_cu_module module;

	if (mr_cudasim_add(options, &g->dev, &err) != 0)
		fail_msg("%s", err.msg);
	g->api = mr_cudasim_api(g->dev);
	assert_int_equal(g->api->cuInit(0), MR_CUDA_SUCCESS);
	assert_int_equal(g->api->cuDevicePrimaryCtxRetain(&g->ctx, g->dev), MR_CUDA_SUCCESS);
	assert_int_equal(g->api->cuCtxPushCurrent_v2(g->ctx), MR_CUDA_SUCCESS);
	assert_int_equal(
		g->api->cuStreamCreate(&g->stream, MR_CU_STREAM_NON_BLOCKING), MR_CUDA_SUCCESS);
	assert_int_equal(g->api->cuModuleLoadData(&module, &image), MR_CUDA_SUCCESS);
	assert_int_equal(g->api->cuModuleGetFunction(&g->fn, module, "poll"), MR_CUDA_SUCCESS);
}

static void rig_close(struct rig *g)
{
	mr_cu_context popped;

	assert_int_equal(g->api->cuCtxPopCurrent_v2(&popped), MR_CUDA_SUCCESS);
	assert_ptr_equal(popped, g->ctx);
	assert_int_equal(g->api->cuDevicePrimaryCtxRelease_v2(g->dev), MR_CUDA_SUCCESS);
	mr_cudasim_remove(g->dev);
}

static mr_cu_result rig_launch(
	struct rig *g, unsigned int blocks, unsigned int threads, struct shared *s)
{
	uint64_t argument = (uint64_t)(uintptr_t)s;
	void *params[] = {&argument};

	return g->api->cuLaunchKernel(
		g->fn, blocks, 1, 1, threads, 1, 1, 0, g->stream, params, NULL);
}

/* True once the word is at least that, within five seconds. */
static bool wait_word(const uint32_t *word, uint32_t at_least)
{
	for (int i = 0; i < 25000; i++) {
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) >= at_least)
			return true;
		nap();
	}
	return false;
}

static mr_cu_result wait_result(struct rig *g, mr_cu_result until)
{
	mr_cu_result r = MR_CUDA_SUCCESS;

	for (int i = 0; i < 25000; i++) {
		r = g->api->cuStreamQuery(g->stream);
		if (r == until)
			break;
		nap();
	}
	return r;
}

static void set_exit(struct shared *s)
{
	__atomic_store_n(&s->exit, 1, __ATOMIC_RELEASE);
}

static void a_bar_that_is_not_there_is_named(void **state)
{
	struct mr_err err = {0};
	mr_cu_device dev;

	(void)state;
	assert_int_equal(mr_cudasim_add("bar=ffff:ff:1f.7", &dev, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "bar=ffff:ff:1f.7: No such file"));
}

static void options_that_are_wrong_are_refused_by_name(void **state)
{
	static const struct {
		const char *options, *says;
	} bad[] = {
		{"mem=1", "mem=1 "},
		{"mem=-64KiB", "mem=-64KiB"},
		{"mem=64kb", "mem=64kb"},
		{"mem=99999999999999999999", "mem="},
		{"mem=17592186044416GiB", "mem="},
		{"bar=0000:00:04", "neither a size nor the address"},
		{"bar=0000:00:04.0,ordering=none", "short cannot be played"},
		{"bar=0000:00:04.0,fault=hiddencopy", "short cannot be played"},
		{"bar=0000:00:04.0,fault=short", "short cannot be played"},
		{"fault=attach", "fault=attach"},
		{"fault=revoke", "fault=revoke"},
		{"fault=revoke@0:5", "fault=revoke@0:5"},
		{"fault=short@1", "fault=short@1"},
		{"bar=100KiB", "bar=100KiB"},
		{"sms=0", "sms=0"},
		{"sms=x", "sms=x"},
		{"sms=4x", "sms=4x"},
		{"ordering=some", "ordering=some"},
		{"flush=yes", "flush=yes"},
		{"gdr=2", "gdr=2"},
		{"map=", "map="},
		{"seed=-1", "seed=-1"},
		{"memory=1GiB", "'memory' is not known"},
		{"mem", "'mem' is not of the form"},
		{"fault=alloc", "fault=alloc"},
		{"fault=late@1", "fault=late@1"},
		{"fault=alloc@0", "fault=alloc@0"},
		{"fault=alloc@1:2", "fault=alloc@1:2"},
		{"fault=allo@1", "fault=allo@1"},
		{"fault=stall@1", "fault=stall@1"},
		{"fault=lost@1:2", "fault=lost@1:2"},
		{"fault=lost@", "fault=lost@"},
		{"fault=die@0:99999999999", "fault=die@0:99999999999"},
		{"fault=any,fault=any,fault=any,fault=any,fault=any,fault=any,fault=any,fault=any,"
		 "fault=any",
			"more than 8"},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++) {
		struct mr_err err = {0};
		mr_cu_device dev;

		assert_int_equal(mr_cudasim_add(bad[i].options, &dev, &err), -EINVAL);
		if (strstr(err.msg, bad[i].says) == NULL)
			fail_msg("'%s' gave '%s'", bad[i].options, err.msg);
	}
}

static void options_show_as_attributes(void **state)
{
	static const struct {
		const char *options;
		int attribute, value;
	} rows[] = {
		{"sms=7", MR_CU_ATTR_MULTIPROCESSOR_COUNT, 7},
		{"", MR_CU_ATTR_MULTIPROCESSOR_COUNT, 4},
		{"ordering=none", MR_CU_ATTR_GPU_DIRECT_RDMA_WRITES_ORDERING, 0},
		{"ordering=owner", MR_CU_ATTR_GPU_DIRECT_RDMA_WRITES_ORDERING, 100},
		{"", MR_CU_ATTR_GPU_DIRECT_RDMA_WRITES_ORDERING, 200},
		{"flush=none", MR_CU_ATTR_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 0},
		{"flush=memops", MR_CU_ATTR_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 2},
		{"", MR_CU_ATTR_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 3},
		{"gdr=0", MR_CU_ATTR_GPU_DIRECT_RDMA_SUPPORTED, 0},
		{"", MR_CU_ATTR_GPU_DIRECT_RDMA_SUPPORTED, 1},
		{"dmabuf=0", MR_CU_ATTR_DMA_BUF_SUPPORTED, 0},
		{"", MR_CU_ATTR_DMA_BUF_SUPPORTED, 1},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		struct rig g;
		int value = -1;

		rig_open(&g, rows[i].options);
		assert_int_equal(g.api->cuDeviceGetAttribute(&value, rows[i].attribute, g.dev), 0);
		assert_int_equal(value, rows[i].value);
		assert_int_equal(g.api->cuDeviceGetAttribute(&value, 99999, g.dev),
			MR_CUDA_ERROR_INVALID_VALUE);
		rig_close(&g);
	}
}

/* nvidia-holoscan/daqiri #283: a worker thread has no current context. */
static void a_call_without_a_context_fails(void **state)
{
	struct rig g;
	mr_cu_context popped;
	mr_cu_deviceptr ptr = 0;
	mr_cu_stream stream;
	mr_cu_module module;
	void *host;
	char byte;

	(void)state;
	rig_open(&g, "mem=1MiB");
	assert_int_equal(g.api->cuCtxPopCurrent_v2(&popped), 0);
	assert_int_equal(g.api->cuCtxPopCurrent_v2(&popped), MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(g.api->cuMemAlloc_v2(&ptr, 1), MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(g.api->cuMemFree_v2(ptr), MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(g.api->cuMemHostAlloc(&host, 1, 0), MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(g.api->cuMemHostRegister_v2(&byte, 1, 0), MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(g.api->cuStreamCreate(&stream, 0), MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(g.api->cuModuleLoadData(&module, &image), MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(g.api->cuStreamQuery(g.stream), MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(g.api->cuFlushGPUDirectRDMAWrites(0, MR_CU_FLUSH_TO_OWNER),
		MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(g.api->map(0, PAGE, &host), MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(g.api->kernel_address(&byte, &ptr), MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(g.api->cuCtxPushCurrent_v2(g.ctx), 0);
	rig_close(&g);
}

static void *other_thread(void *argument)
{
	struct rig *g = argument;
	mr_cu_deviceptr ptr;

	return (void *)(intptr_t)g->api->cuMemAlloc_v2(&ptr, 1);
}

static void the_context_belongs_to_the_thread_and_nests(void **state)
{
	struct rig a, b;
	mr_cu_context popped;
	mr_cu_deviceptr ptr, base;
	size_t bytes;
	pthread_t thread;
	void *r;

	(void)state;
	rig_open(&a, "mem=1MiB");
	assert_int_equal(pthread_create(&thread, NULL, other_thread, &a), 0);
	pthread_join(thread, &r);
	assert_int_equal((intptr_t)r, MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(a.api->cuMemAlloc_v2(&ptr, 100), 0);
	rig_open(&b, "mem=1MiB");
	/* b is current now, and knows nothing of a's memory. */
	assert_int_equal(
		b.api->cuMemGetAddressRange_v2(&base, &bytes, ptr), MR_CUDA_ERROR_NOT_FOUND);
	assert_int_equal(b.api->cuMemFree_v2(ptr), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(b.api->cuCtxPopCurrent_v2(&popped), 0);
	assert_ptr_equal(popped, b.ctx);
	assert_int_equal(a.api->cuMemGetAddressRange_v2(&base, &bytes, ptr + 50), 0);
	assert_true(base == ptr && bytes == 100);
	assert_int_equal(b.api->cuCtxPushCurrent_v2(b.ctx), 0);
	rig_close(&b);
	rig_close(&a);
}

static void a_removed_device_leaves_a_dead_context(void **state)
{
	struct rig g;
	mr_cu_deviceptr ptr;
	mr_cu_context popped;

	(void)state;
	rig_open(&g, "mem=1MiB");
	mr_cudasim_remove(g.dev);
	assert_int_equal(g.api->cuMemAlloc_v2(&ptr, 1), MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(g.api->cuCtxPushCurrent_v2(g.ctx), MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(g.api->cuCtxPopCurrent_v2(&popped), 0);
}

static void device_memory_fills_up_and_is_reused(void **state)
{
	struct rig g;
	mr_cu_deviceptr p[16], extra;

	(void)state;
	rig_open(&g, "mem=1MiB");
	for (size_t i = 0; i < 16; i++) {
		assert_int_equal(g.api->cuMemAlloc_v2(&p[i], i % 2 != 0 ? 1 : PAGE), 0);
		assert_int_equal(p[i] % PAGE, 0);
	}
	assert_int_equal(g.api->cuMemAlloc_v2(&extra, 1), MR_CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(g.api->cuMemFree_v2(p[3] + 1), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->cuMemFree_v2(p[3]), 0);
	assert_int_equal(g.api->cuMemFree_v2(p[3]), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->cuMemAlloc_v2(&extra, 2 * PAGE), MR_CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(g.api->cuMemFree_v2(p[4]), 0);
	assert_int_equal(g.api->cuMemAlloc_v2(&extra, 2 * PAGE), 0);
	assert_true(extra == p[3]);
	assert_int_equal(g.api->cuMemAlloc_v2(&extra, 0), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->cuMemAlloc_v2(&extra, SIZE_MAX), MR_CUDA_ERROR_OUT_OF_MEMORY);
	rig_close(&g);
}

static void kernels_reach_the_same_bytes_past_a_guard(void **state)
{
	struct rig g;
	mr_cu_deviceptr device, alias;
	void *host;
	char out[4] = {0};

	(void)state;
	rig_open(&g, "mem=1MiB,alias=1");
	assert_int_equal(g.api->cuMemAlloc_v2(&device, PAGE), 0);
	assert_int_equal(g.api->cuMemHostAlloc(&host, PAGE, MR_CU_MEMHOSTALLOC_PORTABLE), 0);
	for (int i = 0; i < 2; i++) {
		uint8_t *primary = i == 0 ? (uint8_t *)(uintptr_t)device : host;

		memcpy(primary + 100, "abc", 4);
		assert_int_equal(g.api->kernel_address(primary + 100, &alias), 0);
		assert_true(alias != (mr_cu_deviceptr)(uintptr_t)(primary + 100));
		assert_string_equal((char *)(uintptr_t)alias, "abc");
		assert_int_equal(mprotect(primary, PAGE, PROT_NONE), 0);
		memcpy((void *)(uintptr_t)alias, "xyz", 4);
		assert_int_equal(g.api->cuMemcpyDtoHAsync_v2(out,
					 (mr_cu_deviceptr)(uintptr_t)(primary + 100), 4, g.stream),
			0);
		assert_string_equal(out, "xyz");
		assert_int_equal(mprotect(primary, PAGE, PROT_READ | PROT_WRITE), 0);
	}
	/* From one to the other while both are closed. */
	assert_int_equal(mprotect(host, PAGE, PROT_NONE), 0);
	assert_int_equal(mprotect((void *)(uintptr_t)device, PAGE, PROT_NONE), 0);
	assert_int_equal(g.api->cuMemcpyHtoDAsync_v2(device, host, PAGE, g.stream), 0);
	assert_int_equal(g.api->cuMemFreeHost(host), 0);
	assert_int_equal(g.api->cuMemFreeHost(host), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->kernel_address(&g, &alias), MR_CUDA_ERROR_INVALID_VALUE);
	rig_close(&g);
}

static void copies_stay_within_allocations(void **state)
{
	struct rig g;
	mr_cu_deviceptr p;
	char buffer[64] = "payload";

	(void)state;
	rig_open(&g, "mem=1MiB");
	assert_int_equal(g.api->cuMemAlloc_v2(&p, 64), 0);
	assert_int_equal(g.api->cuMemcpyHtoDAsync_v2(p, buffer, 64, g.stream), 0);
	assert_int_equal(g.api->cuMemcpyHtoDAsync_v2(p + 1, buffer, 64, g.stream),
		MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->cuMemcpyHtoDAsync_v2(p - 1, buffer, 1, g.stream),
		MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->cuMemcpyDtoHAsync_v2(buffer, p, SIZE_MAX, g.stream),
		MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		g.api->cuMemcpyDtoHAsync_v2(buffer, p, 1, NULL), MR_CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(
		g.api->cuMemcpyDtoHAsync_v2(NULL, p, 1, g.stream), MR_CUDA_ERROR_INVALID_VALUE);
	rig_close(&g);
}

static void host_memory_is_registered_once(void **state)
{
	static char memory[8192];
	struct rig g;
	mr_cu_deviceptr at;
	unsigned int type = 0;

	(void)state;
	rig_open(&g, "mem=1MiB");
	assert_int_equal(
		g.api->cuMemHostUnregister(memory), MR_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	assert_int_equal(g.api->cuMemHostRegister_v2(memory, 4096, 2), 0);
	assert_int_equal(g.api->cuMemHostRegister_v2(memory, 4096, 2),
		MR_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	assert_int_equal(g.api->cuMemHostRegister_v2(memory + 4095, 10, 2),
		MR_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	assert_int_equal(g.api->cuMemHostRegister_v2(memory + 4096, 10, 2), 0);
	assert_int_equal(g.api->kernel_address(memory + 7, &at), 0);
	assert_true(at == (mr_cu_deviceptr)(uintptr_t)(memory + 7));
	assert_int_equal(g.api->cuMemHostGetDevicePointer_v2(&at, memory, 0), 0);
	assert_true(at == (mr_cu_deviceptr)(uintptr_t)memory);
	assert_int_equal(
		g.api->cuPointerGetAttribute(&type, MR_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at), 0);
	assert_int_equal(type, MR_CU_MEMORYTYPE_HOST);
	assert_int_equal(
		g.api->cuMemHostUnregister(memory + 1), MR_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	assert_int_equal(g.api->cuMemHostUnregister(memory), 0);
	assert_int_equal(
		g.api->cuMemHostUnregister(memory), MR_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	assert_int_equal(g.api->cuMemHostRegister_v2(memory, 0, 2), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->cuMemHostRegister_v2(memory, 1, 64), MR_CUDA_ERROR_INVALID_VALUE);
	rig_close(&g);
}

static void the_window_has_a_size(void **state)
{
	struct rig g;
	mr_cu_deviceptr p;
	void *a, *b;

	(void)state;
	rig_open(&g, "mem=1MiB,bar=128KiB,alias=1");
	assert_int_equal(g.api->cuMemAlloc_v2(&p, 4 * PAGE), 0);
	assert_int_equal(g.api->map(p, PAGE / 2, &a), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->map(p + 4096, PAGE, &a), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->map(p + 3 * PAGE, 2 * PAGE, &a), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->map(p, 3 * PAGE, &a), MR_CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(g.api->map(p + PAGE, PAGE, &a), 0);
	assert_int_equal(g.api->map(p, PAGE, &b), 0);
	assert_ptr_equal((char *)b + PAGE, a);
	memcpy(a, "word", 5);
	assert_string_equal((char *)(uintptr_t)(p + PAGE), "word");
	assert_int_equal(g.api->map(p, PAGE, &b), MR_CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(g.api->cuMemFree_v2(p), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->unmap(a), 0);
	assert_int_equal(g.api->unmap(a), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->unmap((void *)(uintptr_t)p), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->unmap(b), 0);
	assert_int_equal(g.api->cuMemFree_v2(p), 0);
	rig_close(&g);
	rig_open(&g, "map=0,alias=1");
	assert_null(g.api->map);
	assert_null(g.api->unmap);
	rig_close(&g);
}

static void device_memory_exports_as_a_file(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rig g;
	mr_cu_deviceptr p;
	int fd = -1;

	(void)state;
	rig_open(&g, "mem=1MiB");
	assert_int_equal(g.api->cuMemAlloc_v2(&p, PAGE), 0);
	assert_int_equal(g.api->cuMemGetHandleForAddressRange(&fd, p + 1, page, 1, 0),
		MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->cuMemGetHandleForAddressRange(&fd, p, PAGE, 1, 0), 0);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	rig_close(&g);
	rig_open(&g, "mem=1MiB,dmabuf=0");
	assert_int_equal(g.api->cuMemAlloc_v2(&p, PAGE), 0);
	assert_int_equal(g.api->cuMemGetHandleForAddressRange(&fd, p, PAGE, 1, 0),
		MR_CUDA_ERROR_NOT_SUPPORTED);
	rig_close(&g);
}

static void only_an_image_for_the_host_loads(void **state)
{
	static const uint32_t fatbin[4] = {0x466243b1, 1};
	struct rig g;
	mr_cu_module module;
	mr_cu_function fn;

	(void)state;
	rig_open(&g, "mem=1MiB");
	assert_int_equal(g.api->cuModuleLoadData(&module, fatbin), MR_CUDA_ERROR_INVALID_IMAGE);
	assert_int_equal(g.api->cuModuleLoadData(&module, NULL), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->cuModuleLoadData(&module, &image), 0);
	assert_int_equal(
		g.api->cuModuleGetFunction(&fn, module, "nothing"), MR_CUDA_ERROR_NOT_FOUND);
	assert_int_equal(g.api->cuModuleUnload(module), 0);
	assert_int_equal(g.api->cuModuleUnload(module), MR_CUDA_ERROR_INVALID_HANDLE);
	rig_close(&g);
}

static void blocks_run_where_the_launching_thread_may(void **state)
{
	static struct shared s;
	struct rig g;
	cpu_set_t all, one;
	int first;
	char name[16];

	(void)state;
	memset(&s, 0, sizeof(s));
	rig_open(&g, "mem=1MiB");
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (first = 0; !CPU_ISSET(first, &all); first++)
		;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(rig_launch(&g, 3, 128, &s), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(wait_word(&s.hello[i], 1));
		assert_int_equal(s.cpus[i], 1);
		assert_int_equal(s.blocked[i], 1);
		snprintf(name, sizeof(name), "mr-sim-%u", i);
		assert_string_equal(s.name[i], name);
	}
	assert_int_equal(g.api->cuStreamQuery(g.stream), MR_CUDA_ERROR_NOT_READY);
	/* A second kernel or a copy behind a running one is not played. */
	assert_int_equal(rig_launch(&g, 1, 128, &s), MR_CUDA_ERROR_NOT_SUPPORTED);
	set_exit(&s);
	assert_int_equal(g.api->cuStreamSynchronize(g.stream), 0);
	assert_int_equal(g.api->cuStreamQuery(g.stream), 0);
	rig_close(&g);
}

static uint32_t hellos(const struct shared *s)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < BLOCKS_MAX; i++)
		sum += __atomic_load_n(&s->hello[i], __ATOMIC_ACQUIRE);
	return sum;
}

static void blocks_beyond_the_device_wait_in_silence(void **state)
{
	static struct shared s;
	struct rig g;
	int blocks = 0;

	(void)state;
	memset(&s, 0, sizeof(s));
	rig_open(&g, "mem=1MiB,sms=1");
	assert_int_equal(
		g.api->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, g.fn, 1024, 0), 0);
	assert_int_equal(blocks, 2);
	assert_int_equal(
		g.api->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, g.fn, 32, 0), 0);
	assert_int_equal(blocks, 32);
	assert_int_equal(
		g.api->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, g.fn, 1025, 0), 0);
	assert_int_equal(blocks, 0);
	assert_int_equal(rig_launch(&g, 1, 1025, &s), MR_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	assert_int_equal(rig_launch(&g, 0, 32, &s), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(rig_launch(&g, 3, 1024, &s), 0);
	for (int i = 0; i < 25000 && hellos(&s) < 2; i++)
		nap();
	for (int i = 0; i < 100; i++)
		nap();
	assert_int_equal(hellos(&s), 2);
	set_exit(&s);
	assert_int_equal(g.api->cuStreamSynchronize(g.stream), 0);
	assert_int_equal(hellos(&s), 3);
	rig_close(&g);
}

static void a_counted_fault_hits_one_call(void **state)
{
	static char memory[64];
	struct rig g;
	mr_cu_deviceptr p;
	mr_cu_module module;
	void *host;
	static struct shared s;

	(void)state;
	memset(&s, 0, sizeof(s));
	rig_open(&g,
		"mem=1MiB,fault=alloc@2,fault=hostalloc@1,fault=register@1,fault=map@1,"
		"fault=module@2,fault=launch@1");
	assert_int_equal(g.api->cuMemAlloc_v2(&p, 1), 0);
	assert_int_equal(g.api->map(p, PAGE, &host), MR_CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(g.api->map(p, PAGE, &host), 0);
	assert_int_equal(g.api->cuMemAlloc_v2(&p, 1), MR_CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(g.api->cuMemAlloc_v2(&p, 1), 0);
	assert_int_equal(g.api->cuMemHostAlloc(&host, 1, 0), MR_CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(g.api->cuMemHostAlloc(&host, 1, 0), 0);
	assert_int_equal(g.api->cuMemHostRegister_v2(memory, 64, 0), MR_CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(g.api->cuMemHostRegister_v2(memory, 64, 0), 0);
	assert_int_equal(g.api->cuModuleLoadData(&module, &image), MR_CUDA_ERROR_NO_BINARY_FOR_GPU);
	assert_int_equal(g.api->cuModuleLoadData(&module, &image), 0);
	assert_int_equal(rig_launch(&g, 1, 32, &s), MR_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	set_exit(&s);
	assert_int_equal(rig_launch(&g, 1, 32, &s), 0);
	assert_int_equal(g.api->cuStreamSynchronize(g.stream), 0);
	rig_close(&g);
}

/*
 * Whether a block stands still while another beats 50 times: on a busy machine an order of the
 * device reaches a block late.
 */
static bool stands_still(const struct shared *s, uint32_t block, uint32_t other)
{
	for (int i = 0; i < 100; i++) {
		const uint32_t still = __atomic_load_n(&s->beats[block], __ATOMIC_RELAXED);
		const uint32_t from = __atomic_load_n(&s->beats[other], __ATOMIC_RELAXED);

		if (!wait_word(&s->beats[other], from + 50))
			return false;
		if (__atomic_load_n(&s->beats[block], __ATOMIC_RELAXED) == still)
			return true;
	}
	return false;
}

static void a_stalled_block_is_deaf_and_an_idle_one_beats(void **state)
{
	static struct shared s;
	struct rig g;

	(void)state;
	memset(&s, 0, sizeof(s));
	rig_open(&g, "mem=1MiB,fault=stall@1:0,fault=idle@2:0");
	assert_int_equal(rig_launch(&g, 3, 32, &s), 0);
	for (int i = 0; i < 3; i++)
		assert_true(wait_word(&s.hello[i], 1));
	assert_true(stands_still(&s, 1, 2));
	set_exit(&s);
	assert_true(stands_still(&s, 1, 2));
	assert_int_equal(g.api->cuStreamQuery(g.stream), MR_CUDA_ERROR_NOT_READY);
	/* The stream goes, the kernel does not; the end of the context ends it. */
	assert_int_equal(g.api->cuStreamDestroy_v2(g.stream), 0);
	rig_close(&g);
}

static void a_kernel_that_comes_later_meets_the_fault_too(void **state)
{
	static struct shared a, b;
	struct rig g;
	uint64_t argument = (uint64_t)(uintptr_t)&b;
	void *params[] = {&argument};
	mr_cu_stream second;

	(void)state;
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	rig_open(&g, "mem=1MiB,fault=stall@1:0");
	assert_int_equal(rig_launch(&g, 1, 32, &a), 0);
	for (int i = 0; i < 100; i++)
		nap();
	assert_int_equal(g.api->cuStreamCreate(&second, MR_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(
		g.api->cuLaunchKernel(g.fn, 2, 1, 1, 32, 1, 1, 0, second, params, NULL), 0);
	assert_true(wait_word(&b.hello[1], 1));
	assert_true(stands_still(&b, 1, 0));
	set_exit(&a);
	set_exit(&b);
	assert_int_equal(g.api->cuStreamSynchronize(g.stream), 0);
	assert_int_equal(g.api->cuStreamQuery(second), MR_CUDA_ERROR_NOT_READY);
	rig_close(&g);
}

static void a_block_that_dies_takes_the_context_along(void **state)
{
	static struct shared s;
	struct rig g;
	mr_cu_deviceptr p;

	(void)state;
	memset(&s, 0, sizeof(s));
	rig_open(&g, "mem=1MiB,fault=die@0:5");
	assert_int_equal(rig_launch(&g, 2, 32, &s), 0);
	assert_int_equal(wait_result(&g, MR_CUDA_ERROR_LAUNCH_FAILED), MR_CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(g.api->cuStreamSynchronize(g.stream), MR_CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(g.api->cuMemAlloc_v2(&p, 1), MR_CUDA_ERROR_LAUNCH_FAILED);
	/* A new context is a new start. */
	assert_int_equal(g.api->cuDevicePrimaryCtxRelease_v2(g.dev), 0);
	assert_int_equal(g.api->cuDevicePrimaryCtxRetain(&g.ctx, g.dev), 0);
	assert_int_equal(g.api->cuMemAlloc_v2(&p, 1), 0);
	rig_close(&g);
}

static void a_lost_device_answers_every_call_with_its_loss(void **state)
{
	static struct shared s;
	struct rig g;
	mr_cu_deviceptr p;
	mr_cu_stream stream;
	void *host;

	(void)state;
	memset(&s, 0, sizeof(s));
	rig_open(&g, "mem=1MiB,fault=lost@5");
	assert_int_equal(g.api->cuMemAlloc_v2(&p, 1), 0);
	assert_int_equal(rig_launch(&g, 2, 32, &s), 0);
	assert_int_equal(
		wait_result(&g, MR_CUDA_ERROR_ECC_UNCORRECTABLE), MR_CUDA_ERROR_ECC_UNCORRECTABLE);
	assert_int_equal(g.api->cuMemFree_v2(p), MR_CUDA_ERROR_ECC_UNCORRECTABLE);
	assert_int_equal(g.api->cuStreamCreate(&stream, 0), MR_CUDA_ERROR_ECC_UNCORRECTABLE);
	assert_int_equal(g.api->map(p, PAGE, &host), MR_CUDA_ERROR_ECC_UNCORRECTABLE);
	assert_int_equal(g.api->cuFlushGPUDirectRDMAWrites(0, MR_CU_FLUSH_TO_OWNER),
		MR_CUDA_ERROR_ECC_UNCORRECTABLE);
	rig_close(&g);
}

/* Which call of the first eight allocations fails under those options; 0: none. */
static unsigned int failing_alloc(const char *options)
{
	unsigned int failed = 0;
	struct mr_err err = {0};
	const struct mr_cuda_api *api;
	mr_cu_context ctx;
	mr_cu_deviceptr p;
	mr_cu_device dev;

	assert_int_equal(mr_cudasim_add(options, &dev, &err), 0);
	api = mr_cudasim_api(dev);
	assert_int_equal(api->cuDevicePrimaryCtxRetain(&ctx, dev), 0);
	assert_int_equal(api->cuCtxPushCurrent_v2(ctx), 0);
	for (unsigned int i = 1; i <= 8 && failed == 0; i++)
		if (api->cuMemAlloc_v2(&p, 1) != 0)
			failed = i;
	assert_int_equal(api->cuCtxPopCurrent_v2(&ctx), 0);
	mr_cudasim_remove(dev);
	return failed;
}

/* What a stream has to do, it does in order, and the last shows that all is done. */
static void copies_of_page_locked_memory_and_values_behind_them_keep_their_order(void **state)
{
	const uint64_t until = mr_clock_ns() + 20000000000ull;
	uint32_t *host, *word;
	mr_cu_deviceptr p, w;
	void *memory;
	struct rig g;

	(void)state;
	rig_open(&g, "mem=1MiB");
	assert_int_equal(g.api->cuMemAlloc_v2(&p, PAGE), 0);
	assert_int_equal(g.api->cuMemHostAlloc(&memory, PAGE, MR_CU_MEMHOSTALLOC_DEVICEMAP), 0);
	host = memory;
	word = host + 1024;
	assert_int_equal(g.api->kernel_address(word, &w), 0);
	for (uint32_t round = 1; round <= 200; round++) {
		for (uint32_t i = 0; i < 512; i++)
			host[i] = round * 1000 + i;
		memset(host + 512, 0, 2048);
		assert_int_equal(g.api->cuMemcpyHtoDAsync_v2(p, host, 2048, g.stream), 0);
		assert_int_equal(g.api->cuMemcpyDtoHAsync_v2(host + 512, p, 2048, g.stream), 0);
		assert_int_equal(g.api->cuStreamWriteValue32_v2(g.stream, w, round, 0), 0);
		while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != round)
			assert_true(mr_clock_ns() < until);
		assert_memory_equal(host, host + 512, 2048);
	}
	assert_int_equal(g.api->cuStreamSynchronize(g.stream), 0);
	assert_int_equal(g.api->cuStreamQuery(g.stream), 0);
	assert_int_equal(
		g.api->cuStreamWriteValue32_v2(g.stream, w, 1, 2), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		g.api->cuStreamWriteValue32_v2(g.stream, w + 1, 1, 0), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		g.api->cuStreamWriteValue32_v2(NULL, w, 1, 0), MR_CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(g.api->cuMemFreeHost(memory), 0);
	rig_close(&g);
}

static void a_copy_is_refused_or_its_stream_stands_still_and_no_other(void **state)
{
	mr_cu_stream other;
	mr_cu_deviceptr p;
	void *host;
	struct rig g;

	(void)state;
	rig_open(&g, "mem=1MiB,fault=copy@2,fault=copystall@3");
	assert_int_equal(g.api->cuMemAlloc_v2(&p, PAGE), 0);
	assert_int_equal(g.api->cuMemHostAlloc(&host, PAGE, MR_CU_MEMHOSTALLOC_DEVICEMAP), 0);
	assert_int_equal(g.api->cuStreamCreate(&other, MR_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(g.api->cuMemcpyHtoDAsync_v2(p, host, 64, g.stream), 0);
	assert_int_equal(g.api->cuMemcpyHtoDAsync_v2(p, host, 64, g.stream), MR_CUDA_ERROR_UNKNOWN);
	assert_int_equal(g.api->cuStreamSynchronize(g.stream), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(g.api->cuMemcpyHtoDAsync_v2(p, host, 64, g.stream), 0);
	assert_int_equal(g.api->cuMemcpyHtoDAsync_v2(p, host, 64, other), 0);
	assert_int_equal(g.api->cuStreamSynchronize(other), 0);
	assert_int_equal(g.api->cuStreamQuery(g.stream), MR_CUDA_ERROR_NOT_READY);
	/* What stands still does not hold up the end. */
	assert_int_equal(g.api->cuMemFreeHost(host), 0);
	assert_int_equal(g.api->cuStreamDestroy_v2(g.stream), 0);
	assert_int_equal(g.api->cuStreamCreate(&g.stream, MR_CU_STREAM_NON_BLOCKING), 0);
	rig_close(&g);
}

static void registrations_of_nics_are_counted_and_fail_and_go_as_asked(void **state)
{
	static struct shared s;
	uint64_t bytes, revoked;
	mr_cu_deviceptr p;
	struct rig g;

	(void)state;
	memset(&s, 0, sizeof(s));
	rig_open(&g, "mem=1MiB,fault=attach@2,fault=revoke@20");
	assert_int_equal(g.api->cuMemAlloc_v2(&p, 2 * PAGE), 0);
	assert_int_equal(g.api->peer_attach(p, 2 * PAGE), 0);
	assert_int_equal(g.api->peer_attach(p, PAGE), MR_CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(g.api->peer_attach(p + PAGE, PAGE), 0);
	assert_int_equal(g.api->peer_attach(p, 3 * PAGE), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->peer_counts(&bytes, &revoked), 0);
	assert_int_equal(bytes, 3 * PAGE);
	assert_int_equal(g.api->peer_detach(p, 2 * PAGE), 0);
	assert_int_equal(g.api->peer_detach(p, 2 * PAGE), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(g.api->peer_counts(&bytes, &revoked), 0);
	assert_int_equal(bytes, PAGE);
	/* Its time is counted from the first launch. */
	for (int i = 0; i < 200; i++)
		nap();
	assert_int_equal(g.api->peer_counts(&bytes, &revoked), 0);
	assert_int_equal(revoked, 0);
	set_exit(&s);
	assert_int_equal(rig_launch(&g, 1, 32, &s), 0);
	assert_int_equal(g.api->cuStreamSynchronize(g.stream), 0);
	for (int i = 0; i < 25000 && revoked == 0; i++) {
		nap();
		assert_int_equal(g.api->peer_counts(&bytes, &revoked), 0);
	}
	assert_int_equal(revoked, 1);
	rig_close(&g);
}

/* A byte at `at` from the NIC's side to a copy by the device, and from a copy to the NIC's. */
static void crosses(struct rig *g, mr_cu_deviceptr p, size_t at, bool in, bool out)
{
	uint8_t *nic = (uint8_t *)(uintptr_t)p;
	uint8_t byte = 0;

	__atomic_store_n(&nic[at], 0x11, __ATOMIC_RELAXED);
	assert_int_equal(g->api->cuFlushGPUDirectRDMAWrites(0, MR_CU_FLUSH_TO_OWNER), 0);
	assert_int_equal(g->api->cuMemcpyDtoHAsync_v2(&byte, p + at, 1, g->stream), 0);
	assert_int_equal(g->api->cuStreamSynchronize(g->stream), 0);
	if ((byte == 0x11) != in)
		fail_msg("byte %zu: what a NIC wrote was %s", at, in ? "not read" : "read");
	byte = 0x22;
	assert_int_equal(g->api->cuMemcpyHtoDAsync_v2(p + at, &byte, 1, g->stream), 0);
	assert_int_equal(g->api->cuStreamSynchronize(g->stream), 0);
	if ((__atomic_load_n(&nic[at], __ATOMIC_RELAXED) == 0x22) != out)
		fail_msg("byte %zu: what was copied in was %s a NIC", at,
			out ? "not seen by" : "seen by");
}

static void what_nics_reach_is_as_the_fault_has_it(void **state)
{
	static const struct {
		const char *options;
		bool in, out, last;
	} rows[] = {
		{"mem=1MiB,alias=1", true, true, true},
		{"mem=1MiB,alias=1,fault=short", true, true, false},
		{"mem=1MiB,alias=1,fault=noread", true, false, true},
		{"mem=1MiB,alias=1,fault=hiddencopy", true, true, true},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		const bool last = rows[i].last;
		mr_cu_deviceptr p, again;
		struct rig g;

		rig_open(&g, rows[i].options);
		assert_int_equal(g.api->cuMemAlloc_v2(&p, 2 * PAGE), 0);
		crosses(&g, p, 0, rows[i].in, rows[i].out);
		crosses(&g, p, PAGE - 1, rows[i].in, rows[i].out);
		crosses(&g, p, PAGE, rows[i].in && last, rows[i].out && last);
		/* A page that was out of reach is whole again for who gets it next. */
		assert_int_equal(g.api->cuMemFree_v2(p), 0);
		assert_int_equal(g.api->cuMemAlloc_v2(&again, 3 * PAGE), 0);
		assert_int_equal(again, p);
		crosses(&g, p, PAGE, rows[i].in, rows[i].out);
		rig_close(&g);
	}
}

static void a_hidden_copy_comes_only_when_the_driver_is_called(void **state)
{
	uint8_t *nic, *view;
	mr_cu_deviceptr p;
	struct rig g;
	void *host;

	(void)state;
	rig_open(&g, "mem=1MiB,alias=1,fault=hiddencopy");
	assert_int_equal(g.api->cuMemAlloc_v2(&p, PAGE), 0);
	assert_int_equal(g.api->map(p, PAGE, &host), 0);
	nic = (uint8_t *)(uintptr_t)p;
	view = host;
	__atomic_store_n(nic, 0x33, __ATOMIC_RELAXED);
	assert_int_not_equal(__atomic_load_n(view, __ATOMIC_RELAXED), 0x33);
	assert_int_equal(g.api->cuStreamQuery(g.stream), 0);
	assert_int_equal(__atomic_load_n(view, __ATOMIC_RELAXED), 0x33);
	assert_int_equal(g.api->unmap(host), 0);
	rig_close(&g);
}

static void a_seed_draws_the_same_fault_again(void **state)
{
	unsigned int hits = 0, last = 0, kinds = 0;
	char options[64];

	(void)state;
	for (unsigned int seed = 0; seed < 200; seed++) {
		unsigned int failed;

		snprintf(options, sizeof(options), "mem=1MiB,seed=%u,fault=any", seed);
		failed = failing_alloc(options);
		assert_int_equal(failing_alloc(options), failed);
		hits += failed != 0;
		kinds += failed != 0 && last != 0 && failed != last;
		last = failed != 0 ? failed : last;
	}
	/* One kind in ten, and not always the same call. */
	assert_in_range(hits, 5, 60);
	assert_true(kinds != 0);
}

static void a_flush_needs_its_option(void **state)
{
	static const struct {
		const char *options;
		mr_cu_result host, memops;
	} rows[] = {
		{"flush=none", MR_CUDA_ERROR_NOT_SUPPORTED, MR_CUDA_ERROR_NOT_SUPPORTED},
		{"flush=host", MR_CUDA_SUCCESS, MR_CUDA_ERROR_NOT_SUPPORTED},
		{"flush=memops", MR_CUDA_ERROR_NOT_SUPPORTED, MR_CUDA_SUCCESS},
		{"flush=both", MR_CUDA_SUCCESS, MR_CUDA_SUCCESS},
	};
	const uint32_t zero = 0;

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		struct rig g;
		mr_cu_deviceptr p;

		rig_open(&g, rows[i].options);
		assert_int_equal(g.api->cuMemAlloc_v2(&p, 4), 0);
		assert_int_equal(g.api->cuMemcpyHtoDAsync_v2(p, &zero, 4, g.stream), 0);
		assert_int_equal(
			g.api->cuFlushGPUDirectRDMAWrites(0, MR_CU_FLUSH_TO_OWNER), rows[i].host);
		assert_int_equal(g.api->cuStreamWaitValue32_v2(
					 g.stream, p, 0, MR_CU_STREAM_WAIT_VALUE_FLUSH),
			rows[i].memops);
		assert_int_equal(
			mr_cudasim_flushes(g.dev), (rows[i].host == 0) + (rows[i].memops == 0));
		assert_int_equal(g.api->cuStreamWaitValue32_v2(g.stream, p, 1, 0),
			MR_CUDA_ERROR_NOT_SUPPORTED);
		rig_close(&g);
	}
}

/* Fences as the real kernel does before it says that a slot is done. */
static void kernel_copy(uint64_t argument, uint32_t block, const struct mr_sim_orders *orders)
{
	uint32_t *word = (uint32_t *)(uintptr_t)argument;

	(void)block;
	__atomic_store_n(&word[1], __atomic_load_n(&word[0], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	__atomic_store_n(&word[PAGE / 4], 7, __ATOMIC_RELAXED);
	if (orders->fence != NULL)
		orders->fence(orders->ctx);
}

static const struct mr_sim_kernel copy_kernels[] = {{"copy", kernel_copy}};
static const struct mr_sim_image copy_image = {MR_SIM_IMAGE_MAGIC, 1, copy_kernels};

/* What the NIC reads after a kernel has copied what the NIC wrote. */
static void late_round(struct rig *g, uint32_t *nic, uint32_t written, bool flush, uint32_t wanted)
{
	uint64_t argument;
	void *params[] = {&argument};

	nic[0] = written;
	if (flush)
		assert_int_equal(g->api->cuFlushGPUDirectRDMAWrites(0, MR_CU_FLUSH_TO_OWNER), 0);
	assert_int_equal(g->api->kernel_address(nic, &argument), 0);
	assert_int_equal(
		g->api->cuLaunchKernel(g->fn, 1, 1, 1, 1, 1, 1, 0, g->stream, params, NULL), 0);
	assert_int_equal(g->api->cuStreamSynchronize(g->stream), 0);
	assert_int_equal(nic[1], wanted);
	/* A kernel's own writes never wait for a flush, also where no NIC has written. */
	assert_int_equal(nic[PAGE / 4], 7);
}

static void a_nics_writes_are_late_until_a_flush_that_works(void **state)
{
	static const struct {
		const char *options;
		bool late, flush_works;
	} rows[] = {
		{"mem=1MiB,alias=1", false, true},
		{"mem=1MiB,alias=1,ordering=none", true, true},
		{"mem=1MiB,alias=1,fault=late", true, true},
		{"mem=1MiB,alias=1,ordering=none,fault=noflush", true, false},
		{"mem=1MiB,alias=1,fault=noflush", false, true},
		{"mem=1MiB,alias=0,ordering=none", false, true},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		const uint32_t first = rows[i].late && !rows[i].flush_works ? 0 : 5;
		struct rig g;
		mr_cu_deviceptr p;
		mr_cu_module module;
		uint32_t *nic;

		rig_open(&g, rows[i].options);
		assert_int_equal(g.api->cuModuleLoadData(&module, &copy_image), 0);
		assert_int_equal(g.api->cuModuleGetFunction(&g.fn, module, "copy"), 0);
		assert_int_equal(g.api->cuMemAlloc_v2(&p, 2 * PAGE), 0);
		nic = (uint32_t *)(uintptr_t)p;
		late_round(&g, nic, 5, true, first);
		late_round(&g, nic, 6, false, rows[i].late ? first : 6);
		late_round(&g, nic, 6, true, first == 0 ? 0 : 6);
		assert_int_equal(mr_cudasim_flushes(g.dev), 2);
		/* Memory that is given again holds nothing of its former owner on either side. */
		assert_int_equal(g.api->cuMemFree_v2(p), 0);
		assert_int_equal(g.api->cuMemAlloc_v2(&p, 2 * PAGE), 0);
		nic = (uint32_t *)(uintptr_t)p;
		late_round(&g, nic, 9, false, rows[i].late ? 0 : 9);
		rig_close(&g);
	}
}

static void the_last_release_frees_what_the_context_held(void **state)
{
	static struct shared s;
	struct rig g;
	mr_cu_context popped;
	mr_cu_deviceptr p;
	void *host;

	(void)state;
	memset(&s, 0, sizeof(s));
	rig_open(&g, "mem=64KiB,bar=64KiB");
	assert_int_equal(g.api->cuMemAlloc_v2(&p, PAGE), 0);
	assert_int_equal(g.api->map(p, PAGE, &host), 0);
	assert_int_equal(rig_launch(&g, 2, 32, &s), 0);
	assert_int_equal(g.api->cuDevicePrimaryCtxRetain(&g.ctx, g.dev), 0);
	assert_int_equal(g.api->cuDevicePrimaryCtxRelease_v2(g.dev), 0);
	assert_int_equal(g.api->cuStreamQuery(g.stream), MR_CUDA_ERROR_NOT_READY);
	assert_int_equal(g.api->cuDevicePrimaryCtxRelease_v2(g.dev), 0);
	assert_int_equal(g.api->cuDevicePrimaryCtxRelease_v2(g.dev), MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(g.api->cuMemAlloc_v2(&p, PAGE), MR_CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(g.api->cuCtxPopCurrent_v2(&popped), 0);
	assert_int_equal(g.api->cuDevicePrimaryCtxRetain(&g.ctx, g.dev), 0);
	assert_int_equal(g.api->cuCtxPushCurrent_v2(g.ctx), 0);
	assert_int_equal(g.api->cuMemAlloc_v2(&p, PAGE), 0);
	assert_int_equal(g.api->map(p, PAGE, &host), 0);
	assert_int_equal(g.api->cuStreamQuery(g.stream), MR_CUDA_ERROR_INVALID_HANDLE);
	rig_close(&g);
}

static void devices_are_found_by_their_synthetic_address(void **state)
{
	struct rig a, b;
	mr_cu_device dev = -1;
	int count = 0;
	char id[32];

	(void)state;
	rig_open(&a, "mem=1MiB");
	rig_open(&b, "mem=2MiB");
	assert_int_equal(a.api->cuDeviceGetCount(&count), 0);
	assert_int_equal(count, 2);
	snprintf(id, sizeof(id), "ffff:%02x:00.0", (unsigned int)b.dev);
	assert_int_equal(a.api->cuDeviceGetByPCIBusId(&dev, id), 0);
	assert_int_equal(dev, b.dev);
	assert_int_equal(
		a.api->cuDeviceGetByPCIBusId(&dev, "0000:00:00.0"), MR_CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(a.api->cuDeviceGet(&dev, 31), MR_CUDA_ERROR_INVALID_DEVICE);
	rig_close(&b);
	rig_close(&a);
}

static void errors_have_names_and_words(void **state)
{
	const char *text = NULL;
	struct rig g;

	(void)state;
	rig_open(&g, "mem=1MiB");
	assert_int_equal(g.api->cuGetErrorName(712, &text), 0);
	assert_string_equal(text, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED");
	assert_int_equal(g.api->cuGetErrorString(2, &text), 0);
	assert_string_equal(text, "out of memory");
	assert_int_equal(g.api->cuGetErrorName(123456, &text), MR_CUDA_ERROR_INVALID_VALUE);
	assert_null(text);
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bar_that_is_not_there_is_named),
		cmocka_unit_test(options_that_are_wrong_are_refused_by_name),
		cmocka_unit_test(options_show_as_attributes),
		cmocka_unit_test(a_call_without_a_context_fails),
		cmocka_unit_test(the_context_belongs_to_the_thread_and_nests),
		cmocka_unit_test(a_removed_device_leaves_a_dead_context),
		cmocka_unit_test(device_memory_fills_up_and_is_reused),
		cmocka_unit_test(kernels_reach_the_same_bytes_past_a_guard),
		cmocka_unit_test(copies_stay_within_allocations),
		cmocka_unit_test(host_memory_is_registered_once),
		cmocka_unit_test(the_window_has_a_size),
		cmocka_unit_test(device_memory_exports_as_a_file),
		cmocka_unit_test(only_an_image_for_the_host_loads),
		cmocka_unit_test(blocks_run_where_the_launching_thread_may),
		cmocka_unit_test(blocks_beyond_the_device_wait_in_silence),
		cmocka_unit_test(a_counted_fault_hits_one_call),
		cmocka_unit_test(a_stalled_block_is_deaf_and_an_idle_one_beats),
		cmocka_unit_test(a_kernel_that_comes_later_meets_the_fault_too),
		cmocka_unit_test(a_block_that_dies_takes_the_context_along),
		cmocka_unit_test(a_lost_device_answers_every_call_with_its_loss),
		cmocka_unit_test(
			copies_of_page_locked_memory_and_values_behind_them_keep_their_order),
		cmocka_unit_test(a_copy_is_refused_or_its_stream_stands_still_and_no_other),
		cmocka_unit_test(registrations_of_nics_are_counted_and_fail_and_go_as_asked),
		cmocka_unit_test(what_nics_reach_is_as_the_fault_has_it),
		cmocka_unit_test(a_hidden_copy_comes_only_when_the_driver_is_called),
		cmocka_unit_test(a_seed_draws_the_same_fault_again),
		cmocka_unit_test(a_flush_needs_its_option),
		cmocka_unit_test(a_nics_writes_are_late_until_a_flush_that_works),
		cmocka_unit_test(the_last_release_frees_what_the_context_held),
		cmocka_unit_test(devices_are_found_by_their_synthetic_address),
		cmocka_unit_test(errors_have_names_and_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
