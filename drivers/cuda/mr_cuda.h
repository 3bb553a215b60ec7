/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_cuda - the table of mr_cuda_api.h filled from the NVIDIA driver.
 *
 * Nothing of CUDA is needed to build. libcuda.so.1 comes with the driver and is
 * opened when the first real device is asked for; libgdrapi.so.2 (GDRCopy) gives
 * map and unmap where it is installed and its kernel module answers.
 *
 * Thread   load: one at a time. The functions of the table: any.
 * Owner    the libraries stay open until the process ends: the CUDA driver
 *          cannot be taken down and started again.
 * Errors   -ENOENT no driver library; -ENOTSUP it is too old or lacks a function
 *          (the sentence names it); -ENODEV it finds no device; -EIO cuInit failed.
 */
#ifndef MR_CUDA_H
#define MR_CUDA_H

#include "mr_cuda_api.h"
#include "mr_err.h"

#define MR_CUDA_LIBRARY "libcuda.so.1"
#define MR_CUDA_GDR_LIBRARY "libgdrapi.so.2"
/* Images are built by nvcc 13, whose code older drivers do not take. */
#define MR_CUDA_VERSION_MIN 13000

/*
 * mr_cuda_load opens the libraries and fills the table; gdr_library may be NULL.
 * The names are arguments so that a test can give a library of its own. A table
 * that was filled stays good; a second load replaces the GDRCopy library of all.
 */
MR_MUST_USE int mr_cuda_load(const char *cuda_library, const char *gdr_library,
	struct mr_cuda_api *ret_api, struct mr_err *err);

#endif
