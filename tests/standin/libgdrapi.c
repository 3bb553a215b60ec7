/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stand-in for GDRCopy beside the stand-in of the driver: its mappings show the software
 * device's memory. Misuse that real GDRCopy would not survive ends the program.
 */
#include "mr_cuda_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PINS_MAX 64u

struct gdr_handle {
	unsigned long h;
};

static struct {
	unsigned long addr;
	size_t bytes;
	void *host;
} pins[PINS_MAX];
static mr_cu_result (*map_memory)(mr_cu_deviceptr ptr, size_t bytes, void **ret_host);
static mr_cu_result (*unmap_memory)(void *host);

static void must(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "stand-in of libgdrapi: %s\n", what);
	abort();
}

void *gdr_open(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *map = driver != NULL ? dlsym(driver, "standin_map") : NULL;
	void *unmap = driver != NULL ? dlsym(driver, "standin_unmap") : NULL;

	memcpy(&map_memory, &map, sizeof(map));
	memcpy(&unmap_memory, &unmap, sizeof(unmap));
	return map != NULL && unmap != NULL ? &pins : NULL;
}

int gdr_pin_buffer(void *g, unsigned long addr, size_t size, uint64_t p2p_token, uint32_t va_space,
	struct gdr_handle *handle)
{
	unsigned long i = 1;

	must(g == &pins && p2p_token == 0 && va_space == 0, "wrong arguments to gdr_pin_buffer");
	must(addr % 65536 == 0 && size % 65536 == 0, "a pinned buffer is not of whole pages");
	while (i < PINS_MAX && pins[i].bytes != 0)
		i++;
	if (i == PINS_MAX)
		return 12;
	pins[i].addr = addr;
	pins[i].bytes = size;
	handle->h = i;
	return 0;
}

int gdr_unpin_buffer(void *g, struct gdr_handle handle)
{
	must(g == &pins && pins[handle.h].bytes != 0, "unpinned what is not pinned");
	must(pins[handle.h].host == NULL, "unpinned under a live mapping");
	pins[handle.h].bytes = 0;
	return 0;
}

int gdr_map(void *g, struct gdr_handle handle, void **va, size_t size)
{
	must(g == &pins && size == pins[handle.h].bytes, "mapped another size than was pinned");
	if (map_memory(pins[handle.h].addr, size, va) != MR_CUDA_SUCCESS)
		return 12;
	pins[handle.h].host = *va;
	return 0;
}

int gdr_unmap(void *g, struct gdr_handle handle, void *va, size_t size)
{
	must(g == &pins && va != NULL && va == pins[handle.h].host && size == pins[handle.h].bytes,
		"unmapped what is not the mapping");
	pins[handle.h].host = NULL;
	return unmap_memory(va) == MR_CUDA_SUCCESS ? 0 : 22;
}
