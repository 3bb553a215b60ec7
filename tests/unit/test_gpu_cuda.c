/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for packets as the driver gives it: drivers/gpu over the provider `cuda` and the
 * stand-in of libcuda.so.1 that LD_LIBRARY_PATH names, which gives addresses 512 bytes
 * behind a page, as CUDA may.
 */
#include "mr_cuda.h"
#include "mr_gpu_drv_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MEMORY ((size_t)1 << 20)

static struct mr_cuda_api api;
static struct mr_gpu_drv *drv;
static struct mr_err err;

static int load(void **state)
{
	(void)state;
	setenv("MILLRACE_STANDIN",
		"device=0000:af:00.0,mem=64KiB device=0000:3b:00.0,mem=1MiB skew=512", 1);
	return mr_cuda_load(MR_CUDA_LIBRARY, NULL, &api, &err);
}

static void open_with(const struct mr_cuda_api *table)
{
	mr_cu_device dev = -1;

	assert_int_equal(api.cuDeviceGetByPCIBusId(&dev, "0000:3b:00.0"), 0);
	if (mr_gpu_drv_open(table, dev, "g0", "auto", 0, &drv, &err) != 0)
		fail_msg("%s", err.msg);
}

static unsigned int attribute(const void *ptr, unsigned int which)
{
	unsigned int value = 99;

	assert_int_equal(mr_gpu_drv_enter(drv, &err), 0);
	assert_int_equal(
		api.cuPointerGetAttribute(&value, which, (mr_cu_deviceptr)(uintptr_t)ptr), 0);
	mr_gpu_drv_leave(drv);
	return value;
}

/*
 * NVIDIA/l2fwd-nv src/main.cpp:731: memory aligned to 4 KB is registered in pages of 64 KB.
 * NVIDIA/gdrcopy README.md: cuMemAlloc promises no alignment to the 64 KB that mappings need.
 */
static void packet_memory_is_whole_pages_of_device_memory_with_synchronous_copies(void **state)
{
	static const size_t sizes[] = {
		1, MR_GPU_DRV_PAGE - 1, MR_GPU_DRV_PAGE, 3 * MR_GPU_DRV_PAGE};

	(void)state;
	open_with(&api);
	for (size_t i = 0; i < MR_ARRAY_LEN(sizes); i++) {
		const size_t span = MR_ALIGN_UP(sizes[i], MR_GPU_DRV_PAGE);
		mr_cu_deviceptr base = 0;
		size_t bytes = 0;
		void *p;

		assert_int_equal(mr_gpu_drv_mem_alloc(drv, sizes[i], 0, &p, &err), 0);
		assert_int_equal((uintptr_t)p % MR_GPU_DRV_PAGE, 0);
		assert_int_equal(mr_gpu_drv_enter(drv, &err), 0);
		assert_int_equal(
			api.cuMemGetAddressRange_v2(&base, &bytes, (mr_cu_deviceptr)(uintptr_t)p),
			0);
		mr_gpu_drv_leave(drv);
		/* The driver's address is crooked, and what was made of it lies within. */
		assert_int_equal(base % MR_GPU_DRV_PAGE, 512);
		assert_true(base <= (uintptr_t)p && (uintptr_t)p + span <= base + bytes);
		assert_int_equal(
			attribute(p, MR_CU_POINTER_ATTRIBUTE_MEMORY_TYPE), MR_CU_MEMORYTYPE_DEVICE);
		assert_int_equal(attribute(p, MR_CU_POINTER_ATTRIBUTE_IS_MANAGED), 0);
		assert_int_equal(attribute(p, MR_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), 1);
		assert_int_equal(mr_gpu_drv_mem_free(drv, p, &err), 0);
	}
	mr_gpu_drv_close(drv);
}

/* Where the driver has another answer for one attribute, and the answer. */
static struct {
	unsigned int attribute, value;
	mr_cu_result r;
} other;

static mr_cu_result other_attribute(void *ret_data, unsigned int which, mr_cu_deviceptr ptr)
{
	if (which != other.attribute)
		return api.cuPointerGetAttribute(ret_data, which, ptr);
	memcpy(ret_data, &other.value, sizeof(other.value));
	return other.r;
}

static mr_cu_result no_attribute(const void *value, unsigned int which, mr_cu_deviceptr ptr)
{
	(void)value;
	(void)which;
	(void)ptr;
	return MR_CUDA_ERROR_NOT_SUPPORTED;
}

static void memory_of_another_kind_is_refused_with_a_sentence_and_given_back(void **state)
{
	static const struct {
		unsigned int attribute, value;
		mr_cu_result r;
		const char *says;
	} rows[] = {
		{MR_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, MR_CU_MEMORYTYPE_HOST, 0,
			"gave memory of type 1 instead of device memory"},
		{MR_CU_POINTER_ATTRIBUTE_IS_MANAGED, 1, 0, "of type 2, managed instead"},
		{MR_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0, MR_CUDA_ERROR_INVALID_VALUE,
			"cuPointerGetAttribute of 0x"},
		{MR_CU_POINTER_ATTRIBUTE_IS_MANAGED, 0, MR_CUDA_ERROR_INVALID_VALUE,
			"CUDA_ERROR_INVALID_VALUE"},
		{0, 0, 0, "cuPointerSetAttribute SYNC_MEMOPS of 0x"},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		struct mr_cuda_api table = api;
		void *p;

		if (rows[i].attribute != 0)
			table.cuPointerGetAttribute = other_attribute;
		else
			table.cuPointerSetAttribute = no_attribute;
		other.attribute = rows[i].attribute;
		other.value = rows[i].value;
		other.r = rows[i].r;
		open_with(&table);
		/* Were one of them kept, the memory would not last. */
		for (int k = 0; k < 3; k++) {
			assert_true(mr_gpu_drv_mem_alloc(drv, MEMORY / 2, 0, &p, &err) < 0);
			if (strstr(err.msg, "device 'g0': ") != err.msg ||
				strstr(err.msg, rows[i].says) == NULL)
				fail_msg("'%s' does not say '%s'", err.msg, rows[i].says);
		}
		mr_gpu_drv_close(drv);
	}
}

/* Where the word lies in what the descriptor shows. */
static uint64_t find_word(int fd, uint64_t word)
{
	static uint64_t all[MEMORY / sizeof(uint64_t)];
	ssize_t n = pread(fd, all, sizeof(all), 0);

	for (ssize_t i = 0; i < n / (ssize_t)sizeof(*all); i++)
		if (all[i] == word)
			return (uint64_t)i * sizeof(*all);
	fail_msg("the memory's bytes are not in its dma-buf");
	return 0;
}

/*
 * The stand-in's descriptor shows all of the device's memory, so an allocation begins somewhere in
 * it: from there on the offset of an address finds the address's bytes. linux-rdma/perftest
 * src/cuda_memory.c: an export that does not begin and end with a page is refused.
 */
static void a_dma_buf_shows_the_bytes_of_an_address_at_its_offset(void **state)
{
	static const size_t at[] = {0, 4096, 2 * MR_GPU_DRV_PAGE + 64};
	uint8_t *first, *second;

	(void)state;
	open_with(&api);
	assert_int_equal(mr_gpu_drv_mem_alloc(drv, 100, 0, (void **)&first, &err), 0);
	assert_int_equal(
		mr_gpu_drv_mem_alloc(drv, 3 * MR_GPU_DRV_PAGE, 0, (void **)&second, &err), 0);
	for (size_t i = 0; i < MR_ARRAY_LEN(at); i++) {
		const uint64_t word = 0x6d696c6c72616365 + i;
		static uint64_t begin;
		uint64_t offset = 1;
		int fd = -1;

		memcpy(second + at[i], &word, sizeof(word));
		assert_int_equal(mr_gpu_drv_dmabuf(drv, second + at[i], 64, &fd, &offset, &err), 0);
		assert_int_equal(offset, at[i]);
		if (i == 0)
			begin = find_word(fd, word);
		assert_int_equal(find_word(fd, word), begin + offset);
		assert_int_equal(close(fd), 0);
	}
	assert_int_equal(mr_gpu_drv_mem_free(drv, first, &err), 0);
	assert_int_equal(mr_gpu_drv_mem_free(drv, second, &err), 0);
	mr_gpu_drv_close(drv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			packet_memory_is_whole_pages_of_device_memory_with_synchronous_copies),
		cmocka_unit_test(memory_of_another_kind_is_refused_with_a_sentence_and_given_back),
		cmocka_unit_test(a_dma_buf_shows_the_bytes_of_an_address_at_its_offset),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
