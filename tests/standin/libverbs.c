/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stand-in for libibverbs.so.1 with the devices mlx5_0 and mlx5_1. MILLRACE_VERBS is the
 * error of a registration of memory, 0 or none: it is taken.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static const char *const names[] = {"mlx5_0", "mlx5_1"};
static const void *devices[] = {&names[0], &names[1], NULL};
static int context, domain, region;

const void **ibv_get_device_list(int *count)
{
	if (count != NULL)
		*count = 2;
	return devices;
}

const char *ibv_get_device_name(void *device)
{
	return *(const char *const *)device;
}

void *ibv_open_device(void *device)
{
	return device == &names[1] ? &context : NULL;
}

void *ibv_alloc_pd(void *from)
{
	return from == &context ? &domain : NULL;
}

void *ibv_reg_mr(void *pd, void *addr, size_t bytes, int access)
{
	const char *order = getenv("MILLRACE_VERBS");

	errno = order != NULL ? atoi(order) : 0;
	if (pd != &domain || addr == NULL || bytes != 2u << 20 || access != 1)
		errno = EINVAL;
	return errno == 0 ? &region : NULL;
}

void *ibv_reg_dmabuf_mr(void *pd, uint64_t offset, size_t bytes, uint64_t iova, int fd, int access)
{
	errno = pd == &domain && offset == 0 && bytes == 0 && iova == 0 && fd == -1 && access == 0
		? EBADF
		: EINVAL;
	return NULL;
}

int ibv_dereg_mr(void *mr)
{
	return mr == &region ? 0 : EINVAL;
}
