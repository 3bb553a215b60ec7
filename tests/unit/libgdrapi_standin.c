/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library in the place of libgdrapi.so.2. It maps nothing; it keeps count and
 * notes every call that real GDRCopy would not survive.
 *
 *     STANDIN_NO_MODULE   gdr_open fails, as without the gdrdrv kernel module
 */
#include <stdint.h>
#include <stdlib.h>

struct gdr_handle {
	unsigned long h;
};

struct pin {
	unsigned long addr;
	size_t bytes;
	void *host;
	int pinned;
};

static struct pin pins[16];
static int library;
int standin_gdr_wrong; /* calls in the wrong order or with wrong arguments */
int standin_gdr_pinned, standin_gdr_mapped;
int standin_gdr_fail_map; /* the next gdr_map fails */

void *gdr_open(void)
{
#ifdef STANDIN_NO_MODULE
	return NULL;
#else
	return &library;
#endif
}

int gdr_pin_buffer(void *g, unsigned long addr, size_t size, uint64_t p2p_token, uint32_t va_space,
	struct gdr_handle *handle)
{
	standin_gdr_wrong += g != &library || addr % 65536 != 0 || size % 65536 != 0 ||
		p2p_token != 0 || va_space != 0;
	for (unsigned long i = 1; i < 16; i++) {
		if (pins[i].pinned)
			continue;
		pins[i] = (struct pin){addr, size, NULL, 1};
		handle->h = i;
		standin_gdr_pinned++;
		return 0;
	}
	return 12;
}

int gdr_unpin_buffer(void *g, struct gdr_handle handle)
{
	standin_gdr_wrong += g != &library || !pins[handle.h].pinned || pins[handle.h].host != NULL;
	pins[handle.h].pinned = 0;
	standin_gdr_pinned--;
	return 0;
}

int gdr_map(void *g, struct gdr_handle handle, void **va, size_t size)
{
	standin_gdr_wrong +=
		g != &library || !pins[handle.h].pinned || size != pins[handle.h].bytes;
	if (standin_gdr_fail_map) {
		standin_gdr_fail_map = 0;
		return 12;
	}
	pins[handle.h].host = malloc(size);
	*va = pins[handle.h].host;
	standin_gdr_mapped++;
	return 0;
}

int gdr_unmap(void *g, struct gdr_handle handle, void *va, size_t size)
{
	standin_gdr_wrong +=
		g != &library || va != pins[handle.h].host || size != pins[handle.h].bytes;
	free(pins[handle.h].host);
	pins[handle.h].host = NULL;
	standin_gdr_mapped--;
	return 0;
}
