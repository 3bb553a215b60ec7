/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: test_cuda FOLDER, which holds the stand-in libraries. */
#include "mr_cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE 65536u

static const char *folder;

static const char *in_folder(char *path, size_t bytes, const char *name)
{
	snprintf(path, bytes, "%s/lib%s.so", folder, name);
	return path;
}

static int load(const char *cuda, const char *gdr, struct mr_cuda_api *api, struct mr_err *err)
{
	char cuda_path[1024], gdr_path[1024];

	memset(api, 0, sizeof(*api));
	memset(err, 0, sizeof(*err));
	in_folder(cuda_path, sizeof(cuda_path), cuda);
	if (gdr != NULL)
		in_folder(gdr_path, sizeof(gdr_path), gdr);
	return mr_cuda_load(cuda_path, gdr != NULL ? gdr_path : NULL, api, err);
}

static void says(const struct mr_err *err, const char *words)
{
	if (strstr(err->msg, words) == NULL || strchr(err->msg, '\n') != NULL)
		fail_msg("'%s' does not say '%s'", err->msg, words);
}

static void every_function_of_the_table_is_found(void **state)
{
	struct mr_cuda_api api;
	struct mr_err err;

	(void)state;
	assert_int_equal(load("cuda_standin", NULL, &api, &err), 0);
	assert_string_equal(api.provider, "cuda");
#define IS_FOUND(name, args) assert_non_null(api.name);
	MR_CUDA_API_REQUIRED(IS_FOUND)
	MR_CUDA_API_OPTIONAL(IS_FOUND)
#undef IS_FOUND
	/* Each in its own place: the stand-in's functions answer with their names' sizes. */
	assert_int_equal(api.cuMemFree_v2(0), 1000 + sizeof("cuMemFree_v2"));
	assert_int_equal(api.cuStreamSynchronize(NULL), 1000 + sizeof("cuStreamSynchronize"));
	assert_int_equal(
		api.cuDevicePrimaryCtxRelease_v2(0), 1000 + sizeof("cuDevicePrimaryCtxRelease_v2"));
	assert_null(api.map);
	assert_null(api.unmap);
}

static void kernels_find_device_memory_at_itself(void **state)
{
	struct mr_cuda_api api;
	struct mr_err err;
	mr_cu_deviceptr at = 0;

	(void)state;
	assert_int_equal(load("cuda_standin", NULL, &api, &err), 0);
	assert_int_equal(api.kernel_address((void *)0x5000, &at), 0);
	assert_int_equal(at, 0x5000);
	assert_int_equal(api.kernel_address((void *)0x200000, &at), 0);
	assert_int_equal(at, 0x201000);
	assert_int_equal(api.kernel_address(NULL, &at), MR_CUDA_ERROR_INVALID_VALUE);
}

static void a_missing_optional_function_is_null(void **state)
{
	struct mr_cuda_api api;
	struct mr_err err;

	(void)state;
	assert_int_equal(load("cuda_standin_lacks_optional", NULL, &api, &err), 0);
	assert_null(api.cuFlushGPUDirectRDMAWrites);
	assert_non_null(api.cuStreamWaitValue32_v2);
}

static void a_driver_that_cannot_be_used_says_why(void **state)
{
	struct mr_cuda_api api;
	struct mr_err err;

	(void)state;
	assert_int_equal(load("cuda_standin_lacks_required", NULL, &api, &err), -ENOTSUP);
	says(&err, "has no function cuStreamSynchronize");
	says(&err, "CUDA 13.0");
	assert_int_equal(load("cuda_standin_old", NULL, &api, &err), -ENOTSUP);
	says(&err, "supports CUDA 12.8, but the kernels need 13.0");
	assert_int_equal(load("cuda_standin_no_device", NULL, &api, &err), -ENODEV);
	says(&err, "finds no CUDA device");
	assert_int_equal(load("cuda_standin_broken", NULL, &api, &err), -EIO);
	says(&err, "failed with 999 (the stand-in's words)");
	assert_null(api.provider);
}

static void no_driver_is_one_sentence(void **state)
{
	struct mr_cuda_api api = {0};
	struct mr_err err = {0};

	(void)state;
	assert_int_equal(load("cuda_standin_that_is_not_there", NULL, &api, &err), -ENOENT);
	says(&err, "no NVIDIA driver (");
	/* This machine may have the real one. */
	if (dlopen(MR_CUDA_LIBRARY, RTLD_LAZY) != NULL)
		return;
	assert_int_equal(mr_cuda_load(MR_CUDA_LIBRARY, MR_CUDA_GDR_LIBRARY, &api, &err), -ENOENT);
	says(&err, "no NVIDIA driver (libcuda.so.1: ");
}

static int *counter(const char *name)
{
	char path[1024];
	void *library =
		dlopen(in_folder(path, sizeof(path), "gdrapi_standin"), RTLD_NOW | RTLD_LOCAL);
	int *c;

	assert_non_null(library);
	c = dlsym(library, name);
	assert_non_null(c);
	return c;
}

/*
 * DPDK drivers/gpu/cuda/cuda.c:1043: the device's address is unmapped instead of the mapping.
 * NVIDIA/gdrcopy #314: memory is unpinned before it is unmapped.
 */
static void gdrcopy_maps_and_unmaps_in_order(void **state)
{
	int *wrong = counter("standin_gdr_wrong"), *pinned = counter("standin_gdr_pinned");
	int *mapped = counter("standin_gdr_mapped"), *fail_map = counter("standin_gdr_fail_map");
	struct mr_cuda_api api;
	struct mr_err err;
	void *a = NULL, *b = NULL, *c = NULL;

	(void)state;
	assert_int_equal(load("cuda_standin", "gdrapi_standin", &api, &err), 0);
	assert_non_null(api.map);
	assert_int_equal(api.map(PAGE, PAGE, &a), 0);
	assert_int_equal(api.map(4 * PAGE, 2 * PAGE, &b), 0);
	memset(b, 1, 2 * PAGE);
	assert_int_equal(*pinned, 2);
	assert_int_equal(api.map(PAGE + 1, PAGE, &c), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(api.map(PAGE, 100, &c), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(api.map(PAGE, 0, &c), MR_CUDA_ERROR_INVALID_VALUE);
	*fail_map = 1;
	assert_int_equal(api.map(PAGE, PAGE, &c), MR_CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(*pinned, 2);
	/* The device's address is not a mapping. */
	assert_int_equal(api.unmap((void *)(uintptr_t)PAGE), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(api.unmap(a), 0);
	assert_int_equal(api.unmap(a), MR_CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(api.unmap(b), 0);
	assert_int_equal(*pinned, 0);
	assert_int_equal(*mapped, 0);
	assert_int_equal(*wrong, 0);
}

static void without_gdrcopy_there_are_no_mappings(void **state)
{
	struct mr_cuda_api api;
	struct mr_err err;

	(void)state;
	assert_int_equal(load("cuda_standin", "gdrapi_standin_no_module", &api, &err), 0);
	assert_null(api.map);
	assert_int_equal(load("cuda_standin", "gdrapi_that_is_not_there", &api, &err), 0);
	assert_null(api.map);
	/* A library without the functions. */
	assert_int_equal(load("cuda_standin", "cuda_standin", &api, &err), 0);
	assert_null(api.map);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_function_of_the_table_is_found),
		cmocka_unit_test(kernels_find_device_memory_at_itself),
		cmocka_unit_test(a_missing_optional_function_is_null),
		cmocka_unit_test(a_driver_that_cannot_be_used_says_why),
		cmocka_unit_test(no_driver_is_one_sentence),
		cmocka_unit_test(gdrcopy_maps_and_unmaps_in_order),
		cmocka_unit_test(without_gdrcopy_there_are_no_mappings),
	};

	if (argc != 2)
		return 2;
	folder = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
