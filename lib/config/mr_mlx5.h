/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_mlx5 - how an mlx5 port must be driven so that no CPU touches a packet byte.
 *
 *     options of the user ─ mr_mlx5_devargs ─► options of the port, or sentences
 *
 * The rules are the rows of mr_mlx5.def. They hold for packets in GPU memory and in
 * host memory alike: the lane's core has no right to read either, and the driver
 * copies with the lane's core. What the user writes and does not contradict a rule
 * is kept, in front of what Millrace adds.
 *
 * Thread   any; the function is pure.
 * Source   DPDK 22.11, doc/guides/platform/mlx5.rst and doc/guides/nics/mlx5.rst
 */
#ifndef MR_MLX5_H
#define MR_MLX5_H

#include "mr_base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_MLX5_VENDOR 0x15b3u /* of PCI: Mellanox */

/* Called for each option that cannot stay: what is wrong, and what to write. */
typedef void mr_mlx5_tell(void *ctx, const char *sentence, const char *remedy);

/*
 * mr_mlx5_devargs writes the options of the port. 0, -EINVAL after tell was called for
 * each option that contradicts a rule, or -E2BIG, told too, where bytes are too few.
 */
MR_MUST_USE int mr_mlx5_devargs(
	const char *user, mr_mlx5_tell *tell, void *ctx, char *ret_args, size_t bytes);

/* The i-th key of the rules, NULL behind the last; *ret_set: Millrace itself writes it. */
const char *mr_mlx5_key(uint32_t i, bool *ret_set);

#endif
