/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_cuda_api - the seam: one table of CUDA driver API functions.
 *
 * drivers/gpu is written once against this table. Two providers fill it:
 * drivers/cuda from libcuda.so.1 at run time, drivers/cudasim with a software
 * CUDA device. No CUDA header is needed; the types and numbers below are the
 * parts of the driver ABI that Millrace uses, and a test compares each of them
 * with cuda.h where one is installed. Names are those of the exported symbols,
 * version suffix included.
 *
 * A provider's functions behave as the CUDA driver's do: a call that needs a
 * context returns MR_CUDA_ERROR_INVALID_CONTEXT on a thread that has none
 * current, and the current context is a stack per thread.
 *
 * Source   CUDA Driver API reference, cuda.h of toolkit 13.0
 */
#ifndef MR_CUDA_API_H
#define MR_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef int mr_cu_result;
typedef int mr_cu_device;
typedef uint64_t mr_cu_deviceptr;
typedef struct mr_cu_context_opaque *mr_cu_context;
typedef struct mr_cu_module_opaque *mr_cu_module;
typedef struct mr_cu_function_opaque *mr_cu_function;
typedef struct mr_cu_stream_opaque *mr_cu_stream;

enum {
	MR_CUDA_SUCCESS = 0,
	MR_CUDA_ERROR_INVALID_VALUE = 1,
	MR_CUDA_ERROR_OUT_OF_MEMORY = 2,
	MR_CUDA_ERROR_NOT_INITIALIZED = 3,
	MR_CUDA_ERROR_DEINITIALIZED = 4,
	MR_CUDA_ERROR_NO_DEVICE = 100,
	MR_CUDA_ERROR_INVALID_DEVICE = 101,
	MR_CUDA_ERROR_INVALID_IMAGE = 200,
	MR_CUDA_ERROR_INVALID_CONTEXT = 201,
	MR_CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
	MR_CUDA_ERROR_ECC_UNCORRECTABLE = 214,
	MR_CUDA_ERROR_OPERATING_SYSTEM = 304,
	MR_CUDA_ERROR_INVALID_HANDLE = 400,
	MR_CUDA_ERROR_NOT_FOUND = 500,
	MR_CUDA_ERROR_NOT_READY = 600,
	MR_CUDA_ERROR_ILLEGAL_ADDRESS = 700,
	MR_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
	MR_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
	MR_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
	MR_CUDA_ERROR_LAUNCH_FAILED = 719,
	MR_CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
	MR_CUDA_ERROR_NOT_SUPPORTED = 801,
	MR_CUDA_ERROR_UNKNOWN = 999,
};

/* CUdevice_attribute */
enum {
	MR_CU_ATTR_MULTIPROCESSOR_COUNT = 16,
	MR_CU_ATTR_INTEGRATED = 18,
	MR_CU_ATTR_PCI_BUS_ID = 33,
	MR_CU_ATTR_PCI_DEVICE_ID = 34,
	MR_CU_ATTR_PCI_DOMAIN_ID = 50,
	MR_CU_ATTR_COMPUTE_CAPABILITY_MAJOR = 75,
	MR_CU_ATTR_COMPUTE_CAPABILITY_MINOR = 76,
	MR_CU_ATTR_COOPERATIVE_LAUNCH = 95,
	MR_CU_ATTR_GPU_DIRECT_RDMA_SUPPORTED = 116,
	MR_CU_ATTR_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117,
	MR_CU_ATTR_GPU_DIRECT_RDMA_WRITES_ORDERING = 118,
	MR_CU_ATTR_DMA_BUF_SUPPORTED = 124,
};

enum {
	MR_CU_WRITES_ORDERING_NONE = 0,
	MR_CU_WRITES_ORDERING_OWNER = 100,
	MR_CU_WRITES_ORDERING_ALL_DEVICES = 200,
	MR_CU_FLUSH_OPTION_HOST = 1, /* bits of FLUSH_WRITES_OPTIONS */
	MR_CU_FLUSH_OPTION_MEMOPS = 2,
	MR_CU_FLUSH_TARGET_CURRENT_CTX = 0,
	MR_CU_FLUSH_TO_OWNER = 100,
	MR_CU_STREAM_NON_BLOCKING = 1,
	MR_CU_STREAM_WAIT_VALUE_FLUSH = 1 << 30,
	MR_CU_MEMHOSTALLOC_PORTABLE = 1,
	MR_CU_MEMHOSTALLOC_DEVICEMAP = 2,
	MR_CU_MEMHOSTREGISTER_PORTABLE = 1,
	MR_CU_MEMHOSTREGISTER_DEVICEMAP = 2,
	MR_CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
	MR_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
	MR_CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
	MR_CU_MEMORYTYPE_HOST = 1,
	MR_CU_MEMORYTYPE_DEVICE = 2,
	MR_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1,
};

/*
 * CUDA_API(return, symbol, arguments): the one list of functions. A provider
 * must fill all rows; OPTIONAL ones may be NULL where the driver lacks them.
 */
#define MR_CUDA_API_REQUIRED(CUDA_API)                                                             \
	CUDA_API(cuInit, (unsigned int flags))                                                     \
	CUDA_API(cuDriverGetVersion, (int *ret_version))                                           \
	CUDA_API(cuGetErrorName, (mr_cu_result r, const char **ret_name))                          \
	CUDA_API(cuGetErrorString, (mr_cu_result r, const char **ret_text))                        \
	CUDA_API(cuDeviceGetCount, (int *ret_count))                                               \
	CUDA_API(cuDeviceGet, (mr_cu_device * ret_dev, int ordinal))                               \
	CUDA_API(cuDeviceGetByPCIBusId, (mr_cu_device * ret_dev, const char *bus_id))              \
	CUDA_API(cuDeviceGetName, (char *ret_name, int bytes, mr_cu_device dev))                   \
	CUDA_API(cuDeviceTotalMem_v2, (size_t * ret_bytes, mr_cu_device dev))                      \
	CUDA_API(cuDeviceGetAttribute, (int *ret_value, unsigned int attribute, mr_cu_device dev)) \
	CUDA_API(cuDevicePrimaryCtxRetain, (mr_cu_context * ret_ctx, mr_cu_device dev))            \
	CUDA_API(cuDevicePrimaryCtxRelease_v2, (mr_cu_device dev))                                 \
	CUDA_API(cuCtxPushCurrent_v2, (mr_cu_context ctx))                                         \
	CUDA_API(cuCtxPopCurrent_v2, (mr_cu_context * ret_ctx))                                    \
	CUDA_API(cuMemAlloc_v2, (mr_cu_deviceptr * ret_ptr, size_t bytes))                         \
	CUDA_API(cuMemFree_v2, (mr_cu_deviceptr ptr))                                              \
	CUDA_API(cuMemGetAddressRange_v2,                                                          \
		(mr_cu_deviceptr * ret_base, size_t * ret_bytes, mr_cu_deviceptr ptr))             \
	CUDA_API(cuMemHostAlloc, (void **ret_ptr, size_t bytes, unsigned int flags))               \
	CUDA_API(cuMemFreeHost, (void *ptr))                                                       \
	CUDA_API(cuMemHostRegister_v2, (void *ptr, size_t bytes, unsigned int flags))              \
	CUDA_API(cuMemHostUnregister, (void *ptr))                                                 \
	CUDA_API(cuMemHostGetDevicePointer_v2,                                                     \
		(mr_cu_deviceptr * ret_ptr, void *host_ptr, unsigned int flags))                   \
	CUDA_API(cuPointerGetAttribute,                                                            \
		(void *ret_data, unsigned int attribute, mr_cu_deviceptr ptr))                     \
	CUDA_API(cuPointerSetAttribute,                                                            \
		(const void *value, unsigned int attribute, mr_cu_deviceptr ptr))                  \
	CUDA_API(cuModuleLoadData, (mr_cu_module * ret_module, const void *image))                 \
	CUDA_API(cuModuleUnload, (mr_cu_module module))                                            \
	CUDA_API(cuModuleGetFunction,                                                              \
		(mr_cu_function * ret_fn, mr_cu_module module, const char *name))                  \
	CUDA_API(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                      \
		(int *ret_blocks, mr_cu_function fn, int block_size, size_t shared_bytes))         \
	CUDA_API(cuLaunchKernel,                                                                   \
		(mr_cu_function fn, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, \
			unsigned int block_x, unsigned int block_y, unsigned int block_z,          \
			unsigned int shared_bytes, mr_cu_stream stream, void **params,             \
			void **extra))                                                             \
	CUDA_API(cuStreamCreate, (mr_cu_stream * ret_stream, unsigned int flags))                  \
	CUDA_API(cuStreamDestroy_v2, (mr_cu_stream stream))                                        \
	CUDA_API(cuStreamQuery, (mr_cu_stream stream))                                             \
	CUDA_API(cuStreamSynchronize, (mr_cu_stream stream))                                       \
	CUDA_API(cuMemcpyHtoDAsync_v2,                                                             \
		(mr_cu_deviceptr to, const void *from, size_t bytes, mr_cu_stream stream))         \
	CUDA_API(cuMemcpyDtoHAsync_v2,                                                             \
		(void *to, mr_cu_deviceptr from, size_t bytes, mr_cu_stream stream))

#define MR_CUDA_API_OPTIONAL(CUDA_API)                                                             \
	CUDA_API(cuFlushGPUDirectRDMAWrites, (unsigned int target, unsigned int scope))            \
	CUDA_API(cuStreamWaitValue32_v2,                                                           \
		(mr_cu_stream stream, mr_cu_deviceptr ptr, uint32_t value, unsigned int flags))    \
	CUDA_API(cuStreamWriteValue32_v2,                                                          \
		(mr_cu_stream stream, mr_cu_deviceptr ptr, uint32_t value, unsigned int flags))    \
	CUDA_API(cuMemGetHandleForAddressRange,                                                    \
		(void *ret_handle, mr_cu_deviceptr ptr, size_t bytes, unsigned int type,           \
			unsigned long long flags))

struct mr_cuda_api {
	const char *provider; /* "sim" or "cuda" */
#define MR_CUDA_API_MEMBER(name, args) mr_cu_result(*name) args;
	MR_CUDA_API_REQUIRED(MR_CUDA_API_MEMBER)
	MR_CUDA_API_OPTIONAL(MR_CUDA_API_MEMBER)
#undef MR_CUDA_API_MEMBER
	/*
	 * A CPU mapping of device memory (GDRCopy on real devices): bytes and ptr are
	 * multiples of 64 KiB. NULL where the provider has none.
	 */
	mr_cu_result (*map)(mr_cu_deviceptr ptr, size_t bytes, void **ret_host);
	mr_cu_result (*unmap)(void *host);
	/*
	 * The address by which kernels reach memory that this provider allocated or
	 * registered. On a real device that is the device pointer itself; the software
	 * device answers with its second, unguarded mapping.
	 */
	mr_cu_result (*kernel_address)(const void *ptr, mr_cu_deviceptr *ret_address);
	/*
	 * Memory that NICs have registered. On a real device the NIC's driver and a kernel
	 * module do this among themselves, and the module's counters tell of it: NULL. The
	 * software device has no module and keeps such books itself: bytes registered now,
	 * and how often a registration was revoked.
	 */
	mr_cu_result (*peer_attach)(mr_cu_deviceptr ptr, size_t bytes);
	mr_cu_result (*peer_detach)(mr_cu_deviceptr ptr, size_t bytes);
	mr_cu_result (*peer_counts)(uint64_t *ret_bytes, uint64_t *ret_revoked);
};

#endif
