/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cuda_gdr.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define GDR_PAGE ((size_t)64 << 10)

struct gdr_handle {
	unsigned long h;
};

struct gdr_mapping {
	struct gdr_mapping *next;
	struct gdr_handle handle;
	void *host;
	size_t bytes;
};

static struct {
	pthread_mutex_t lock;
	void *library;
	void *gdr;
	void *(*open)(void);
	int (*pin_buffer)(void *g, unsigned long addr, size_t size, uint64_t p2p_token,
		uint32_t va_space, struct gdr_handle *handle);
	int (*unpin_buffer)(void *g, struct gdr_handle handle);
	int (*map)(void *g, struct gdr_handle handle, void **va, size_t size);
	int (*unmap)(void *g, struct gdr_handle handle, void *va, size_t size);
	struct gdr_mapping *mappings;
} gdr = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool find_functions(void *library)
{
	const struct {
		const char *name;
		void *ret_function;
	} wanted[] = {
		{"gdr_open", &gdr.open},
		{"gdr_pin_buffer", &gdr.pin_buffer},
		{"gdr_unpin_buffer", &gdr.unpin_buffer},
		{"gdr_map", &gdr.map},
		{"gdr_unmap", &gdr.unmap},
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *function = dlsym(library, wanted[i].name);

		if (function == NULL)
			return false;
		/* ISO C has no cast from an object to a function pointer; POSIX has the bits. */
		memcpy(wanted[i].ret_function, &function, sizeof(function));
	}
	return true;
}

bool mr_cuda_gdr_open(const char *library)
{
	bool opened;

	pthread_mutex_lock(&gdr.lock);
	gdr.gdr = NULL;
	gdr.library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (gdr.library != NULL && find_functions(gdr.library))
		gdr.gdr = gdr.open();
	opened = gdr.gdr != NULL;
	if (!opened && gdr.library != NULL)
		dlclose(gdr.library);
	pthread_mutex_unlock(&gdr.lock);
	return opened;
}

mr_cu_result mr_cuda_gdr_map(mr_cu_deviceptr ptr, size_t bytes, void **ret_host)
{
	struct gdr_mapping *m;

	if (bytes == 0 || ptr % GDR_PAGE != 0 || bytes % GDR_PAGE != 0)
		return MR_CUDA_ERROR_INVALID_VALUE;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return MR_CUDA_ERROR_OUT_OF_MEMORY;
	m->bytes = bytes;
	pthread_mutex_lock(&gdr.lock);
	/* What does not fit into the BAR fails here or in the next call. */
	if (gdr.pin_buffer(gdr.gdr, (unsigned long)ptr, bytes, 0, 0, &m->handle) != 0)
		goto fail;
	if (gdr.map(gdr.gdr, m->handle, &m->host, bytes) != 0) {
		(void)gdr.unpin_buffer(gdr.gdr, m->handle);
		goto fail;
	}
	m->next = gdr.mappings;
	gdr.mappings = m;
	*ret_host = m->host;
	pthread_mutex_unlock(&gdr.lock);
	return MR_CUDA_SUCCESS;
fail:
	pthread_mutex_unlock(&gdr.lock);
	free(m);
	return MR_CUDA_ERROR_OUT_OF_MEMORY;
}

mr_cu_result mr_cuda_gdr_unmap(void *host)
{
	struct gdr_mapping **link, *m;
	int rc;

	pthread_mutex_lock(&gdr.lock);
	for (link = &gdr.mappings; *link != NULL && (*link)->host != host; link = &(*link)->next)
		;
	m = *link;
	if (m == NULL) {
		pthread_mutex_unlock(&gdr.lock);
		return MR_CUDA_ERROR_INVALID_VALUE;
	}
	*link = m->next;
	rc = gdr.unmap(gdr.gdr, m->handle, m->host, m->bytes);
	if (gdr.unpin_buffer(gdr.gdr, m->handle) != 0)
		rc = -1;
	pthread_mutex_unlock(&gdr.lock);
	free(m);
	return rc == 0 ? MR_CUDA_SUCCESS : MR_CUDA_ERROR_UNKNOWN;
}
