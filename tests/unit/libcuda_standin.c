/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library in the place of libcuda.so.1, for tests of the loader: it exports
 * every function of the table. Built more than once:
 *
 *     STANDIN_VERSION  what cuDriverGetVersion says, default 13000
 *     STANDIN_INIT     what cuInit says, default 0
 *     STANDIN_LACKS_REQUIRED, STANDIN_LACKS_OPTIONAL   one function is missing
 */
#include "mr_cuda_api.h"

#include <string.h>

#ifndef STANDIN_VERSION
#define STANDIN_VERSION 13000
#endif
#ifndef STANDIN_INIT
#define STANDIN_INIT 0
#endif

/* Addresses below are device memory, those from here on are host memory. */
#define STANDIN_HOST 0x100000u

mr_cu_result cuInit(unsigned int flags)
{
	return flags != 0 ? MR_CUDA_ERROR_INVALID_VALUE : STANDIN_INIT;
}

mr_cu_result cuDriverGetVersion(int *ret_version)
{
	*ret_version = STANDIN_VERSION;
	return MR_CUDA_SUCCESS;
}

mr_cu_result cuGetErrorString(mr_cu_result r, const char **ret_text)
{
	*ret_text = r == MR_CUDA_ERROR_UNKNOWN ? "the stand-in's words" : NULL;
	return *ret_text != NULL ? MR_CUDA_SUCCESS : MR_CUDA_ERROR_INVALID_VALUE;
}

mr_cu_result cuPointerGetAttribute(void *ret_data, unsigned int attribute, mr_cu_deviceptr ptr)
{
	const unsigned int type =
		ptr < STANDIN_HOST ? MR_CU_MEMORYTYPE_DEVICE : MR_CU_MEMORYTYPE_HOST;

	if (attribute != MR_CU_POINTER_ATTRIBUTE_MEMORY_TYPE || ptr == 0)
		return MR_CUDA_ERROR_INVALID_VALUE;
	memcpy(ret_data, &type, sizeof(type));
	return MR_CUDA_SUCCESS;
}

mr_cu_result cuMemHostGetDevicePointer_v2(
	mr_cu_deviceptr *ret_ptr, void *host_ptr, unsigned int flags)
{
	*ret_ptr = (mr_cu_deviceptr)(uintptr_t)host_ptr + 0x1000;
	return flags != 0 ? MR_CUDA_ERROR_INVALID_VALUE : MR_CUDA_SUCCESS;
}

/* The others answer with a number that tells them apart. */
#define STANDIN(name)                                                                              \
	mr_cu_result name(void)                                                                    \
	{                                                                                          \
		return 1000 + (mr_cu_result)sizeof(#name);                                         \
	}

STANDIN(cuGetErrorName)
STANDIN(cuDeviceGetCount)
STANDIN(cuDeviceGet)
STANDIN(cuDeviceGetByPCIBusId)
STANDIN(cuDeviceGetName)
STANDIN(cuDeviceTotalMem_v2)
STANDIN(cuDeviceGetAttribute)
STANDIN(cuDevicePrimaryCtxRetain)
STANDIN(cuDevicePrimaryCtxRelease_v2)
STANDIN(cuCtxPushCurrent_v2)
STANDIN(cuCtxPopCurrent_v2)
STANDIN(cuMemAlloc_v2)
STANDIN(cuMemFree_v2)
STANDIN(cuMemGetAddressRange_v2)
STANDIN(cuMemHostAlloc)
STANDIN(cuMemFreeHost)
STANDIN(cuMemHostRegister_v2)
STANDIN(cuMemHostUnregister)
STANDIN(cuPointerSetAttribute)
STANDIN(cuModuleLoadData)
STANDIN(cuModuleUnload)
STANDIN(cuModuleGetFunction)
STANDIN(cuOccupancyMaxActiveBlocksPerMultiprocessor)
STANDIN(cuLaunchKernel)
STANDIN(cuStreamCreate)
STANDIN(cuStreamDestroy_v2)
STANDIN(cuStreamQuery)
#ifndef STANDIN_LACKS_REQUIRED
STANDIN(cuStreamSynchronize)
#endif
STANDIN(cuMemcpyHtoDAsync_v2)
STANDIN(cuMemcpyDtoHAsync_v2)
#ifndef STANDIN_LACKS_OPTIONAL
STANDIN(cuFlushGPUDirectRDMAWrites)
#endif
STANDIN(cuStreamWaitValue32_v2)
STANDIN(cuStreamWriteValue32_v2)
STANDIN(cuMemGetHandleForAddressRange)
