/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_cuda_gdr - CPU mappings of GPU memory through GDRCopy.
 *
 * A mapping is pinned first and mapped then, and taken down in the reverse
 * order: unpinning under a live mapping is a use after free in gdrdrv before
 * 2.4.4. What is unmapped is the mapping's own address, not the device's.
 *
 * Source   GDRCopy 2.x, include/gdrapi.h
 */
#ifndef MR_CUDA_GDR_H
#define MR_CUDA_GDR_H

#include "mr_cuda_api.h"

#include <stdbool.h>

/* Opens the library and its kernel module; false: there are no CPU mappings. */
bool mr_cuda_gdr_open(const char *library);

/* As map and unmap of the table. */
mr_cu_result mr_cuda_gdr_map(mr_cu_deviceptr ptr, size_t bytes, void **ret_host);
mr_cu_result mr_cuda_gdr_unmap(void *host);

#endif
