/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cudasim.h"
#include "mr_cudasim_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIM_CONTEXT_DEPTH 16
#define SIM_PCI_DOMAIN 0xffff /* no machine has it, so no real device is met */
#define SIM_VERSION 13000

static pthread_mutex_t sim_table = PTHREAD_MUTEX_INITIALIZER;
static struct sim_device *sim_devices[SIM_DEVICES];
static bool sim_initialised;

static _Thread_local struct {
	struct sim_device *dev[SIM_CONTEXT_DEPTH];
	unsigned int depth;
} sim_current;

static bool is_device(const struct sim_device *dev)
{
	bool found = false;

	for (size_t i = 0; i < SIM_DEVICES; i++)
		found |= dev != NULL && sim_devices[i] == dev;
	return found;
}

/* A context may outlive its device on some thread's stack, so it is looked up each time. */
struct sim_device *mr_sim_enter(mr_cu_result *ret_r)
{
	struct sim_device *dev = NULL;

	*ret_r = MR_CUDA_ERROR_INVALID_CONTEXT;
	if (sim_current.depth == 0)
		return NULL;
	pthread_mutex_lock(&sim_table);
	dev = sim_current.dev[sim_current.depth - 1];
	if (is_device(dev))
		pthread_mutex_lock(&dev->lock);
	else
		dev = NULL;
	pthread_mutex_unlock(&sim_table);
	if (dev == NULL)
		return NULL;
	if (dev->context_refs == 0 || dev->sticky != MR_CUDA_SUCCESS) {
		if (dev->context_refs != 0)
			*ret_r = dev->sticky;
		pthread_mutex_unlock(&dev->lock);
		return NULL;
	}
	*ret_r = MR_CUDA_SUCCESS;
	return dev;
}

mr_cu_result mr_sim_leave(struct sim_device *dev, mr_cu_result r)
{
	pthread_mutex_unlock(&dev->lock);
	return r;
}

bool mr_sim_fault_has(const struct sim_options *o, enum sim_fault_kind kind)
{
	for (uint32_t i = 0; i < o->faults_count; i++)
		if (o->fault[i].kind == kind)
			return true;
	return false;
}

bool mr_sim_fault_now(struct sim_device *dev, enum sim_fault_kind kind)
{
	uint32_t number = ++dev->calls[kind];

	for (uint32_t i = 0; i < dev->options.faults_count; i++)
		if (dev->options.fault[i].kind == kind && dev->options.fault[i].at == number)
			return true;
	return false;
}

static mr_cu_result sim_init(unsigned int flags)
{
	if (flags != 0)
		return MR_CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_table);
	sim_initialised = true;
	pthread_mutex_unlock(&sim_table);
	return MR_CUDA_SUCCESS;
}

static mr_cu_result sim_driver_version(int *ret_version)
{
	*ret_version = SIM_VERSION;
	return MR_CUDA_SUCCESS;
}

static const struct {
	mr_cu_result r;
	const char *name, *text;
} sim_errors[] = {
	{MR_CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
	{MR_CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{MR_CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{MR_CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "not initialized"},
	{MR_CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{MR_CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "kernel image is invalid"},
	{MR_CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "no context is current"},
	{MR_CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
		"no kernel image for this device"},
	{MR_CUDA_ERROR_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE",
		"uncorrectable ECC error"},
	{MR_CUDA_ERROR_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM",
		"OS call failed or operation not supported on this OS"},
	{MR_CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{MR_CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{MR_CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
	{MR_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
		"too many resources requested for launch"},
	{MR_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
		"part or all of the memory is already registered"},
	{MR_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
		"pointer does not correspond to a registered memory region"},
	{MR_CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	{MR_CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	{MR_CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static mr_cu_result sim_error_name(mr_cu_result r, const char **ret_name)
{
	*ret_name = NULL;
	for (size_t i = 0; i < MR_ARRAY_LEN(sim_errors); i++)
		if (sim_errors[i].r == r)
			*ret_name = sim_errors[i].name;
	return *ret_name != NULL ? MR_CUDA_SUCCESS : MR_CUDA_ERROR_INVALID_VALUE;
}

static mr_cu_result sim_error_string(mr_cu_result r, const char **ret_text)
{
	*ret_text = NULL;
	for (size_t i = 0; i < MR_ARRAY_LEN(sim_errors); i++)
		if (sim_errors[i].r == r)
			*ret_text = sim_errors[i].text;
	return *ret_text != NULL ? MR_CUDA_SUCCESS : MR_CUDA_ERROR_INVALID_VALUE;
}

/* Locks the device with that ordinal. */
static struct sim_device *device_enter(mr_cu_device ordinal, mr_cu_result *ret_r)
{
	struct sim_device *dev = NULL;

	pthread_mutex_lock(&sim_table);
	*ret_r = sim_initialised ? MR_CUDA_ERROR_INVALID_DEVICE : MR_CUDA_ERROR_NOT_INITIALIZED;
	if (sim_initialised && ordinal >= 0 && ordinal < SIM_DEVICES)
		dev = sim_devices[ordinal];
	if (dev != NULL) {
		pthread_mutex_lock(&dev->lock);
		*ret_r = MR_CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sim_table);
	return dev;
}

static mr_cu_result sim_device_count(int *ret_count)
{
	mr_cu_result r = MR_CUDA_ERROR_NOT_INITIALIZED;

	*ret_count = 0;
	pthread_mutex_lock(&sim_table);
	for (size_t i = 0; i < SIM_DEVICES && sim_initialised; i++)
		*ret_count += sim_devices[i] != NULL;
	if (sim_initialised)
		r = MR_CUDA_SUCCESS;
	pthread_mutex_unlock(&sim_table);
	return r;
}

static mr_cu_result sim_device_get(mr_cu_device *ret_dev, int ordinal)
{
	mr_cu_result r;
	struct sim_device *dev = device_enter(ordinal, &r);

	if (dev == NULL)
		return r;
	*ret_dev = ordinal;
	return mr_sim_leave(dev, r);
}

static mr_cu_result sim_device_by_pci(mr_cu_device *ret_dev, const char *bus_id)
{
	unsigned int domain, bus, slot, function;

	if (sscanf(bus_id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4 ||
		domain != SIM_PCI_DOMAIN || bus >= SIM_DEVICES || slot != 0 || function != 0)
		return MR_CUDA_ERROR_INVALID_DEVICE;
	return sim_device_get(ret_dev, (int)bus);
}

static mr_cu_result sim_device_name(char *ret_name, int bytes, mr_cu_device ordinal)
{
	mr_cu_result r;
	struct sim_device *dev = device_enter(ordinal, &r);

	if (dev == NULL)
		return r;
	snprintf(ret_name, (size_t)bytes, "Millrace software CUDA device");
	return mr_sim_leave(dev, r);
}

static mr_cu_result sim_device_memory(size_t *ret_bytes, mr_cu_device ordinal)
{
	mr_cu_result r;
	struct sim_device *dev = device_enter(ordinal, &r);

	if (dev == NULL)
		return r;
	*ret_bytes = dev->options.mem_bytes;
	return mr_sim_leave(dev, r);
}

static mr_cu_result sim_device_attribute(
	int *ret_value, unsigned int attribute, mr_cu_device ordinal)
{
	mr_cu_result r;
	struct sim_device *dev = device_enter(ordinal, &r);

	if (dev == NULL)
		return r;
	switch (attribute) {
	case MR_CU_ATTR_MULTIPROCESSOR_COUNT:
		*ret_value = dev->options.multiprocessors;
		break;
	case MR_CU_ATTR_PCI_BUS_ID:
		*ret_value = ordinal;
		break;
	case MR_CU_ATTR_PCI_DOMAIN_ID:
		*ret_value = SIM_PCI_DOMAIN;
		break;
	case MR_CU_ATTR_INTEGRATED:
	case MR_CU_ATTR_PCI_DEVICE_ID:
	case MR_CU_ATTR_COMPUTE_CAPABILITY_MAJOR:
	case MR_CU_ATTR_COMPUTE_CAPABILITY_MINOR:
	case MR_CU_ATTR_COOPERATIVE_LAUNCH:
		*ret_value = 0;
		break;
	case MR_CU_ATTR_GPU_DIRECT_RDMA_SUPPORTED:
		*ret_value = dev->options.gdr;
		break;
	case MR_CU_ATTR_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS:
		*ret_value = dev->options.flush_options;
		break;
	case MR_CU_ATTR_GPU_DIRECT_RDMA_WRITES_ORDERING:
		*ret_value = dev->options.writes_ordering;
		break;
	case MR_CU_ATTR_DMA_BUF_SUPPORTED:
		*ret_value = dev->options.dmabuf;
		break;
	default:
		r = MR_CUDA_ERROR_INVALID_VALUE;
	}
	return mr_sim_leave(dev, r);
}

static mr_cu_result sim_context_retain(mr_cu_context *ret_ctx, mr_cu_device ordinal)
{
	mr_cu_result r;
	struct sim_device *dev = device_enter(ordinal, &r);

	if (dev == NULL)
		return r;
	dev->context_refs++;
	*ret_ctx = (mr_cu_context)dev;
	return mr_sim_leave(dev, r);
}

/* What the context owned goes with the last reference. */
static mr_cu_result sim_context_release(mr_cu_device ordinal)
{
	mr_cu_result r;
	struct sim_device *dev = device_enter(ordinal, &r);
	bool last;

	if (dev == NULL)
		return r;
	if (dev->context_refs == 0)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_CONTEXT);
	last = --dev->context_refs == 0;
	(void)mr_sim_leave(dev, r);
	if (last) {
		mr_sim_launch_fini(dev);
		mr_sim_memory_reset(dev);
		/* A new context heals what one kernel did, but not the device. */
		pthread_mutex_lock(&dev->lock);
		if (dev->sticky == MR_CUDA_ERROR_LAUNCH_FAILED)
			dev->sticky = MR_CUDA_SUCCESS;
		pthread_mutex_unlock(&dev->lock);
	}
	return r;
}

static mr_cu_result sim_context_push(mr_cu_context ctx)
{
	struct sim_device *dev = (struct sim_device *)ctx;
	mr_cu_result r = MR_CUDA_ERROR_INVALID_CONTEXT;

	if (sim_current.depth == SIM_CONTEXT_DEPTH)
		return MR_CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim_table);
	if (is_device(dev)) {
		pthread_mutex_lock(&dev->lock);
		if (dev->context_refs != 0)
			r = MR_CUDA_SUCCESS;
		pthread_mutex_unlock(&dev->lock);
	}
	pthread_mutex_unlock(&sim_table);
	if (r == MR_CUDA_SUCCESS)
		sim_current.dev[sim_current.depth++] = dev;
	return r;
}

static mr_cu_result sim_context_pop(mr_cu_context *ret_ctx)
{
	if (sim_current.depth == 0)
		return MR_CUDA_ERROR_INVALID_CONTEXT;
	sim_current.depth--;
	if (ret_ctx != NULL)
		*ret_ctx = (mr_cu_context)sim_current.dev[sim_current.depth];
	return MR_CUDA_SUCCESS;
}

static mr_cu_result sim_flush(unsigned int target, unsigned int scope)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);

	if (dev == NULL)
		return r;
	if (target != MR_CU_FLUSH_TARGET_CURRENT_CTX || scope != MR_CU_FLUSH_TO_OWNER)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	if ((dev->options.flush_options & MR_CU_FLUSH_OPTION_HOST) == 0)
		return mr_sim_leave(dev, MR_CUDA_ERROR_NOT_SUPPORTED);
	mr_sim_late_flush(dev);
	return mr_sim_leave(dev, r);
}

#define SIM_TABLE(map_fn, unmap_fn)                                                                \
	{                                                                                          \
		.provider = "sim", .cuInit = sim_init, .cuDriverGetVersion = sim_driver_version,   \
		.cuGetErrorName = sim_error_name, .cuGetErrorString = sim_error_string,            \
		.cuDeviceGetCount = sim_device_count, .cuDeviceGet = sim_device_get,               \
		.cuDeviceGetByPCIBusId = sim_device_by_pci, .cuDeviceGetName = sim_device_name,    \
		.cuDeviceTotalMem_v2 = sim_device_memory,                                          \
		.cuDeviceGetAttribute = sim_device_attribute,                                      \
		.cuDevicePrimaryCtxRetain = sim_context_retain,                                    \
		.cuDevicePrimaryCtxRelease_v2 = sim_context_release,                               \
		.cuCtxPushCurrent_v2 = sim_context_push, .cuCtxPopCurrent_v2 = sim_context_pop,    \
		.cuMemAlloc_v2 = mr_sim_mem_alloc, .cuMemFree_v2 = mr_sim_mem_free,                \
		.cuMemGetAddressRange_v2 = mr_sim_mem_address_range,                               \
		.cuMemHostAlloc = mr_sim_mem_host_alloc, .cuMemFreeHost = mr_sim_mem_free_host,    \
		.cuMemHostRegister_v2 = mr_sim_mem_host_register,                                  \
		.cuMemHostUnregister = mr_sim_mem_host_unregister,                                 \
		.cuMemHostGetDevicePointer_v2 = mr_sim_mem_host_device_pointer,                    \
		.cuPointerGetAttribute = mr_sim_pointer_get,                                       \
		.cuPointerSetAttribute = mr_sim_pointer_set,                                       \
		.cuModuleLoadData = mr_sim_module_load, .cuModuleUnload = mr_sim_module_unload,    \
		.cuModuleGetFunction = mr_sim_module_function,                                     \
		.cuOccupancyMaxActiveBlocksPerMultiprocessor = mr_sim_occupancy,                   \
		.cuLaunchKernel = mr_sim_launch_kernel, .cuStreamCreate = mr_sim_stream_create,    \
		.cuStreamDestroy_v2 = mr_sim_stream_destroy, .cuStreamQuery = mr_sim_stream_query, \
		.cuStreamSynchronize = mr_sim_stream_synchronize,                                  \
		.cuMemcpyHtoDAsync_v2 = mr_sim_copy_in, .cuMemcpyDtoHAsync_v2 = mr_sim_copy_out,   \
		.cuFlushGPUDirectRDMAWrites = sim_flush,                                           \
		.cuStreamWaitValue32_v2 = mr_sim_stream_wait_value,                                \
		.cuStreamWriteValue32_v2 = mr_sim_stream_write_value,                              \
		.cuMemGetHandleForAddressRange = mr_sim_mem_handle, .map = map_fn,                 \
		.unmap = unmap_fn, .kernel_address = mr_sim_kernel_address,                        \
		.peer_attach = mr_sim_peer_attach, .peer_detach = mr_sim_peer_detach,              \
		.peer_counts = mr_sim_peer_counts,                                                 \
	}

static const struct mr_cuda_api sim_api = SIM_TABLE(mr_sim_map, mr_sim_unmap);
static const struct mr_cuda_api sim_api_unmapped = SIM_TABLE(NULL, NULL);

const struct mr_cuda_api *mr_cudasim_api(mr_cu_device dev)
{
	bool map = true;

	pthread_mutex_lock(&sim_table);
	if (dev >= 0 && dev < SIM_DEVICES && sim_devices[dev] != NULL)
		map = sim_devices[dev]->options.map;
	pthread_mutex_unlock(&sim_table);
	return map ? &sim_api : &sim_api_unmapped;
}

uint64_t mr_cudasim_flushes(mr_cu_device ordinal)
{
	mr_cu_result r;
	struct sim_device *dev = device_enter(ordinal, &r);
	uint64_t flushes;

	if (dev == NULL)
		return 0;
	flushes = dev->flushes;
	(void)mr_sim_leave(dev, r);
	return flushes;
}

static void device_free(struct sim_device *dev)
{
	pthread_cond_destroy(&dev->changed);
	pthread_mutex_destroy(&dev->lock);
	free(dev);
}

static bool table_add(struct sim_device *dev)
{
	bool added = false;

	pthread_mutex_lock(&sim_table);
	for (int i = 0; i < SIM_DEVICES && !added; i++) {
		if (sim_devices[i] != NULL)
			continue;
		dev->ordinal = i;
		sim_devices[i] = dev;
		added = true;
	}
	pthread_mutex_unlock(&sim_table);
	return added;
}

int mr_cudasim_add(const char *options, mr_cu_device *ret_dev, struct mr_err *err)
{
	struct sim_device *dev = calloc(1, sizeof(*dev));
	pthread_condattr_t monotonic;
	int rc;

	if (dev == NULL)
		return mr_err_set(err, -ENOMEM, "software device: no memory for a device");
	pthread_mutex_init(&dev->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&dev->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	dev->arena_fd = -1;
	rc = mr_sim_options_parse(options, &dev->options, err);
	if (rc == 0)
		rc = mr_sim_memory_init(dev, err);
	if (rc != 0) {
		device_free(dev);
		return rc;
	}
	if (table_add(dev)) {
		*ret_dev = dev->ordinal;
		return 0;
	}
	mr_sim_memory_fini(dev);
	device_free(dev);
	return mr_err_set(err, -ENOSPC, "software device: there are %d already", SIM_DEVICES);
}

void mr_cudasim_remove(mr_cu_device ordinal)
{
	struct sim_device *dev = NULL;

	pthread_mutex_lock(&sim_table);
	if (ordinal >= 0 && ordinal < SIM_DEVICES) {
		dev = sim_devices[ordinal];
		sim_devices[ordinal] = NULL;
	}
	pthread_mutex_unlock(&sim_table);
	if (dev == NULL)
		return;
	mr_sim_launch_fini(dev);
	mr_sim_memory_fini(dev);
	device_free(dev);
}
