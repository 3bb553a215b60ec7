/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cuda.h"
#include "mr_cuda_gdr.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	size_t offset;
	bool required;
} functions[] = {
#define CUDA_REQUIRED(symbol, args) {#symbol, offsetof(struct mr_cuda_api, symbol), true},
#define CUDA_OPTIONAL(symbol, args) {#symbol, offsetof(struct mr_cuda_api, symbol), false},
	MR_CUDA_API_REQUIRED(CUDA_REQUIRED) MR_CUDA_API_OPTIONAL(CUDA_OPTIONAL)
#undef CUDA_REQUIRED
#undef CUDA_OPTIONAL
};

/*
 * What kernel_address asks the driver; one process has one libcuda, so the last
 * load's function is every table's.
 */
static mr_cu_result (*pointer_attribute)(void *, unsigned int, mr_cu_deviceptr);
static mr_cu_result (*host_pointer)(mr_cu_deviceptr *, void *, unsigned int);

/* Device memory is itself; host memory is where the driver mapped it. */
static mr_cu_result kernel_address(const void *ptr, mr_cu_deviceptr *ret_address)
{
	unsigned int type = 0;
	mr_cu_result r = pointer_attribute(
		&type, MR_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (mr_cu_deviceptr)(uintptr_t)ptr);

	if (r != MR_CUDA_SUCCESS)
		return r;
	if (type == MR_CU_MEMORYTYPE_HOST)
		return host_pointer(ret_address, (void *)(uintptr_t)ptr, 0);
	*ret_address = (mr_cu_deviceptr)(uintptr_t)ptr;
	return MR_CUDA_SUCCESS;
}

static int find_functions(
	void *library, const char *name, struct mr_cuda_api *api, struct mr_err *err)
{
	char words[32] = "an unknown version";
	const char *missing = NULL;
	int version;

	for (size_t i = 0; i < MR_ARRAY_LEN(functions); i++) {
		void *function = dlsym(library, functions[i].name);

		/* ISO C has no cast from an object to a function pointer; POSIX has the bits. */
		memcpy((char *)api + functions[i].offset, &function, sizeof(function));
		if (function == NULL && functions[i].required && missing == NULL)
			missing = functions[i].name;
	}
	if (api->cuDriverGetVersion != NULL &&
		api->cuDriverGetVersion(&version) == MR_CUDA_SUCCESS) {
		/* A driver that is too old lacks functions as well; its age is the cause. */
		if (version < MR_CUDA_VERSION_MIN)
			return mr_err_set(err, -ENOTSUP,
				"the NVIDIA driver supports CUDA %d.%d, but the kernels need "
				"%d.%d: "
				"install a driver of the 580 line or newer",
				version / 1000, version % 1000 / 10, MR_CUDA_VERSION_MIN / 1000,
				MR_CUDA_VERSION_MIN % 1000 / 10);
		snprintf(words, sizeof(words), "CUDA %d.%d", version / 1000, version % 1000 / 10);
	}
	if (missing != NULL)
		return mr_err_set(err, -ENOTSUP,
			"%s (%s) has no function %s: this NVIDIA driver cannot be used", name,
			words, missing);
	return 0;
}

static int start(struct mr_cuda_api *api, const char *name, struct mr_err *err)
{
	const char *words = NULL;
	mr_cu_result r;

	/* cuInit reads it. A kernel loaded at its first launch would wait for those that run. */
	(void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	r = api->cuInit(0);
	if (r == MR_CUDA_SUCCESS)
		return 0;
	if (r == MR_CUDA_ERROR_NO_DEVICE)
		return mr_err_set(err, -ENODEV,
			"the NVIDIA driver finds no CUDA device: is one installed, and is "
			"CUDA_VISIBLE_DEVICES empty?");
	if (api->cuGetErrorString(r, &words) != MR_CUDA_SUCCESS || words == NULL)
		words = "no description";
	return mr_err_set(err, -EIO,
		"cuInit of %s failed with %d (%s): is the nvidia kernel module "
		"loaded and of the same version?",
		name, r, words);
}

int mr_cuda_load(const char *cuda_library, const char *gdr_library, struct mr_cuda_api *ret_api,
	struct mr_err *err)
{
	struct mr_cuda_api api = {.provider = "cuda"};
	void *library = dlopen(cuda_library, RTLD_NOW | RTLD_LOCAL);
	int rc;

	if (library == NULL)
		return mr_err_set(err, -ENOENT, "no NVIDIA driver (%s)", dlerror());
	rc = find_functions(library, cuda_library, &api, err);
	if (rc != 0) {
		dlclose(library);
		return rc;
	}
	/* From here on the driver may have threads of its own, so it stays. */
	rc = start(&api, cuda_library, err);
	if (rc != 0)
		return rc;
	pointer_attribute = api.cuPointerGetAttribute;
	host_pointer = api.cuMemHostGetDevicePointer_v2;
	api.kernel_address = kernel_address;
	if (gdr_library != NULL && mr_cuda_gdr_open(gdr_library)) {
		api.map = mr_cuda_gdr_map;
		api.unmap = mr_cuda_gdr_unmap;
	}
	*ret_api = api;
	return 0;
}
