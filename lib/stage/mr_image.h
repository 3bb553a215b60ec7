/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_image - the kernel with the built-in stages, in the forms devices take.
 *
 * Both forms are built from lib/stage/mr_kernel.h and have the entries
 * mr_kernel_thread, mr_kernel_warp and mr_kernel_order (enum mr_work).
 */
#ifndef MR_IMAGE_H
#define MR_IMAGE_H

#include "mr_sim_image.h"

#include <stddef.h>

extern const struct mr_sim_image mr_image_sim;

/* The fatbin that nvcc made; NULL and 0 bytes in a build without nvcc. */
const void *mr_image_fatbin(size_t *ret_bytes);

#endif
