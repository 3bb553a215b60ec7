/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stand-in for the NVIDIA driver: the software device behind libcuda.so.1's own entry
 * points, so that the provider `cuda` runs from dlopen to the last free. It stands where the
 * loader finds it first (LD_LIBRARY_PATH) and takes its orders from MILLRACE_STANDIN, words
 * with blanks between:
 *
 *     device=PCI[,OPTIONS]  a GPU at that address, with the options of mr_cudasim.h; may be
 *                           given more than once, ordinals are in the order given
 *     version=N             what cuDriverGetVersion says, default 13000
 *     skew=BYTES            cuMemAlloc gives addresses so far behind a page
 *     block=CALL@K          the K-th call of that function never returns, and none after it
 *     stick=CALL@K          the K-th call of that function never returns, others do
 *     fail=CALL@K:CODE      the K-th call of that function returns CODE
 *     log=FILE              what the driver saw, a line each: "wrong ..." for what an
 *                           application must not do, "left ..." for what it did not give
 *                           back, "count CALL N" when the context goes
 *
 * It is stricter than the software device, as the driver is:
 *   - calls that allocate, free, register or load wait while a kernel runs
 *   - without CUDA_MODULE_LOADING=EAGER at cuInit, a kernel's first launch waits as well
 *   - kernels reach page-locked host memory at an address of their own
 *   - at exit it waits for kernels that run, and for calls that never return
 *   - images are fatbins, of which it takes any and runs the kernels that Millrace has
 */
#include "mr_cudasim_priv.h"
#include "mr_cudasim.h"
#include "mr_image.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FATBIN_MAGIC 0xba55ed50u
#define DEVICES_MAX 4
#define ORDERS_MAX 8
#define STREAMS_MAX 64
#define LAUNCHED_MAX 16

enum call {
#define CALL_NUMBER(name, args) CALL_##name,
	MR_CUDA_API_REQUIRED(CALL_NUMBER) MR_CUDA_API_OPTIONAL(CALL_NUMBER) CALLS_COUNT
};

static const char *const call_names[CALLS_COUNT] = {
#define CALL_NAME(name, args) #name,
	MR_CUDA_API_REQUIRED(CALL_NAME) MR_CUDA_API_OPTIONAL(CALL_NAME)};

struct order {
	enum call call;
	uint32_t at;
	bool block, stick;
	mr_cu_result code;
};

struct device {
	unsigned int domain, bus, slot;
	mr_cu_device sim;
	uint32_t context_refs;
};

static struct {
	pthread_mutex_t lock;
	bool ready;
	struct device device[DEVICES_MAX];
	uint32_t devices;
	struct order order[ORDERS_MAX];
	uint32_t orders;
	int version;
	size_t skew;
	char log[256];
	bool eager, blocked;
	const struct mr_cuda_api *sim; /* those entries that are not mr_sim_ functions */
	uint32_t calls[CALLS_COUNT], refused[CALLS_COUNT];
	mr_cu_stream kernels[STREAMS_MAX]; /* streams with a launch, NULL: free */
	mr_cu_function launched[LAUNCHED_MAX];
} standin = {.lock = PTHREAD_MUTEX_INITIALIZER, .version = 13000};

static void log_line(const char *fmt, ...) MR_PRINTF(1, 2);

static void log_line(const char *fmt, ...)
{
	FILE *f = standin.log[0] != '\0' ? fopen(standin.log, "ae") : NULL;
	va_list ap;

	if (f == NULL)
		return;
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	fputc('\n', f);
	fclose(f);
}

/* A test that cannot say what it wants has no use for a driver. */
static void misunderstood(const char *word)
{
	fprintf(stderr, "stand-in of libcuda: MILLRACE_STANDIN: '%s' is not understood\n", word);
	abort();
}

static void take_device(const char *word, const char *value)
{
	struct device *d = &standin.device[standin.devices];
	const char *options = strchr(value, ',');
	struct mr_err err = {0};

	if (standin.devices == DEVICES_MAX ||
		sscanf(value, "%x:%x:%x.0", &d->domain, &d->bus, &d->slot) != 3)
		misunderstood(word);
	if (mr_cudasim_add(options != NULL ? options + 1 : "", &d->sim, &err) != 0)
		misunderstood(err.msg);
	standin.devices++;
}

static void take_order(const char *word, const char *value, bool block)
{
	struct order *o = &standin.order[standin.orders];
	char name[64];
	int code = 0;

	if (standin.orders == ORDERS_MAX ||
		sscanf(value, "%63[a-zA-Z0-9_]@%u:%d", name, &o->at, &code) < (block ? 2 : 3))
		misunderstood(word);
	o->block = block;
	o->code = code;
	for (uint32_t i = 0; i < CALLS_COUNT; i++) {
		if (strcmp(call_names[i], name) == 0) {
			o->call = (enum call)i;
			standin.orders++;
			return;
		}
	}
	misunderstood(word);
}

static void take_words(const char *words)
{
	char text[1024], *rest = text, *word;

	snprintf(text, sizeof(text), "%s", words);
	while ((word = strsep(&rest, " ")) != NULL) {
		if (strncmp(word, "device=", 7) == 0)
			take_device(word, word + 7);
		else if (strncmp(word, "version=", 8) == 0)
			standin.version = atoi(word + 8);
		else if (strncmp(word, "skew=", 5) == 0)
			standin.skew = (size_t)atoi(word + 5);
		else if (strncmp(word, "block=", 6) == 0)
			take_order(word, word + 6, true);
		else if (strncmp(word, "stick=", 6) == 0) {
			take_order(word, word + 6, true);
			standin.order[standin.orders - 1].stick = true;
		} else if (strncmp(word, "fail=", 5) == 0)
			take_order(word, word + 5, false);
		else if (strncmp(word, "log=", 4) == 0)
			snprintf(standin.log, sizeof(standin.log), "%s", word + 4);
		else if (word[0] != '\0')
			misunderstood(word);
	}
}

static __attribute__((constructor)) void standin_start(void)
{
	const char *words = getenv("MILLRACE_STANDIN");

	take_words(words != NULL ? words : "device=0000:3b:00.0");
	standin.sim = mr_cudasim_api(0);
}

/* Counts the call and carries out what was ordered for it; 0: go on. */
static mr_cu_result enter(enum call call)
{
	mr_cu_result code = MR_CUDA_SUCCESS;
	bool stuck = false;

	pthread_mutex_lock(&standin.lock);
	standin.calls[call]++;
	for (uint32_t i = 0; i < standin.orders; i++) {
		const struct order *o = &standin.order[i];

		if (o->call != call || o->at != standin.calls[call])
			continue;
		log_line("%s %s %u", o->block ? "blocks" : "fails", call_names[call], o->at);
		standin.blocked |= o->block && !o->stick;
		stuck |= o->block;
		standin.refused[call]++;
		code = o->code;
	}
	stuck |= standin.blocked;
	pthread_mutex_unlock(&standin.lock);
	while (stuck)
		pause();
	return code;
}

static bool kernel_runs(void)
{
	bool runs = false;

	pthread_mutex_lock(&standin.lock);
	for (uint32_t i = 0; i < STREAMS_MAX; i++)
		if (standin.kernels[i] != NULL)
			runs |= mr_sim_stream_query(standin.kernels[i]) == MR_CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&standin.lock);
	return runs;
}

/* What the driver may do to a call behind a kernel, this one always does. */
static mr_cu_result enter_after_kernels(enum call call)
{
	mr_cu_result r = enter(call);

	if (r == MR_CUDA_SUCCESS && kernel_runs()) {
		log_line("wrong %s while a kernel runs", call_names[call]);
		while (kernel_runs())
			usleep(1000);
	}
	return r;
}

/* ENTRY: the call goes to the software device as it is; WAITS: after running kernels. */
#define ENTRY_BY(enter_by, name, args, call)                                                       \
	mr_cu_result name args                                                                     \
	{                                                                                          \
		mr_cu_result r = enter_by(CALL_##name);                                            \
                                                                                                   \
		return r != MR_CUDA_SUCCESS ? r : (call);                                          \
	}
#define ENTRY(name, args, call) ENTRY_BY(enter, name, args, call)
#define WAITS(name, args, call) ENTRY_BY(enter_after_kernels, name, args, call)

ENTRY(cuGetErrorName, (mr_cu_result code, const char **ret_name),
	standin.sim->cuGetErrorName(code, ret_name))
ENTRY(cuGetErrorString, (mr_cu_result code, const char **ret_text),
	standin.sim->cuGetErrorString(code, ret_text))
ENTRY(cuDeviceGetCount, (int *ret_count), standin.sim->cuDeviceGetCount(ret_count))
ENTRY(cuDeviceGet, (mr_cu_device * ret_dev, int ordinal),
	standin.sim->cuDeviceGet(ret_dev, ordinal))
ENTRY(cuDeviceTotalMem_v2, (size_t * ret_bytes, mr_cu_device dev),
	standin.sim->cuDeviceTotalMem_v2(ret_bytes, dev))
ENTRY(cuCtxPushCurrent_v2, (mr_cu_context ctx), standin.sim->cuCtxPushCurrent_v2(ctx))
ENTRY(cuCtxPopCurrent_v2, (mr_cu_context * ret_ctx), standin.sim->cuCtxPopCurrent_v2(ret_ctx))
WAITS(cuMemAlloc_v2, (mr_cu_deviceptr * ret_ptr, size_t bytes),
	(r = mr_sim_mem_alloc(ret_ptr, bytes + standin.skew), *ret_ptr += standin.skew, r))
WAITS(cuMemFree_v2, (mr_cu_deviceptr ptr), mr_sim_mem_free(ptr - standin.skew))
WAITS(cuMemHostAlloc, (void **ret_ptr, size_t bytes, unsigned int flags),
	mr_sim_mem_host_alloc(ret_ptr, bytes, flags))
WAITS(cuMemFreeHost, (void *ptr), mr_sim_mem_free_host(ptr))
WAITS(cuMemHostRegister_v2, (void *ptr, size_t bytes, unsigned int flags),
	mr_sim_mem_host_register(ptr, bytes, flags))
WAITS(cuMemHostUnregister, (void *ptr), mr_sim_mem_host_unregister(ptr))
ENTRY(cuPointerGetAttribute, (void *ret_data, unsigned int attribute, mr_cu_deviceptr ptr),
	mr_sim_pointer_get(ret_data, attribute, ptr))
ENTRY(cuPointerSetAttribute, (const void *value, unsigned int attribute, mr_cu_deviceptr ptr),
	mr_sim_pointer_set(value, attribute, ptr))
WAITS(cuModuleUnload, (mr_cu_module module), mr_sim_module_unload(module))
ENTRY(cuModuleGetFunction, (mr_cu_function * ret_fn, mr_cu_module module, const char *name),
	mr_sim_module_function(ret_fn, module, name))
ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor,
	(int *ret_blocks, mr_cu_function fn, int block_size, size_t shared_bytes),
	mr_sim_occupancy(ret_blocks, fn, block_size, shared_bytes))
ENTRY(cuStreamQuery, (mr_cu_stream stream), mr_sim_stream_query(stream))
ENTRY(cuStreamSynchronize, (mr_cu_stream stream), mr_sim_stream_synchronize(stream))
ENTRY(cuMemcpyHtoDAsync_v2,
	(mr_cu_deviceptr to, const void *from, size_t bytes, mr_cu_stream stream),
	mr_sim_copy_in(to, from, bytes, stream))
ENTRY(cuMemcpyDtoHAsync_v2, (void *to, mr_cu_deviceptr from, size_t bytes, mr_cu_stream stream),
	mr_sim_copy_out(to, from, bytes, stream))
ENTRY(cuFlushGPUDirectRDMAWrites, (unsigned int target, unsigned int scope),
	standin.sim->cuFlushGPUDirectRDMAWrites(target, scope))
ENTRY(cuStreamWaitValue32_v2,
	(mr_cu_stream stream, mr_cu_deviceptr ptr, uint32_t value, unsigned int flags),
	mr_sim_stream_wait_value(stream, ptr, value, flags))
ENTRY(cuStreamWriteValue32_v2,
	(mr_cu_stream stream, mr_cu_deviceptr ptr, uint32_t value, unsigned int flags),
	mr_sim_stream_write_value(stream, ptr, value, flags))
ENTRY(cuMemGetHandleForAddressRange,
	(void *ret_handle, mr_cu_deviceptr ptr, size_t bytes, unsigned int type,
		unsigned long long flags),
	mr_sim_mem_handle(ret_handle, ptr, bytes, type, flags))

mr_cu_result cuInit(unsigned int flags)
{
	const char *loading = getenv("CUDA_MODULE_LOADING");
	mr_cu_result r = enter(CALL_cuInit);

	if (r != MR_CUDA_SUCCESS)
		return r;
	standin.eager = loading != NULL && strcmp(loading, "EAGER") == 0;
	return standin.devices == 0 ? MR_CUDA_ERROR_NO_DEVICE : standin.sim->cuInit(flags);
}

mr_cu_result cuDriverGetVersion(int *ret_version)
{
	mr_cu_result r = enter(CALL_cuDriverGetVersion);

	*ret_version = standin.version;
	return r;
}

mr_cu_result cuDeviceGetByPCIBusId(mr_cu_device *ret_dev, const char *bus_id)
{
	unsigned int domain, bus, slot;
	mr_cu_result r = enter(CALL_cuDeviceGetByPCIBusId);

	if (r != MR_CUDA_SUCCESS)
		return r;
	if (sscanf(bus_id, "%x:%x:%x.0", &domain, &bus, &slot) != 3)
		return MR_CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < standin.devices; i++) {
		const struct device *d = &standin.device[i];

		if (d->domain == domain && d->bus == bus && d->slot == slot)
			return standin.sim->cuDeviceGet(ret_dev, (int)i);
	}
	return MR_CUDA_ERROR_INVALID_DEVICE;
}

mr_cu_result cuDeviceGetName(char *ret_name, int bytes, mr_cu_device dev)
{
	mr_cu_result r = enter(CALL_cuDeviceGetName);

	if (r == MR_CUDA_SUCCESS)
		r = standin.sim->cuDeviceGetName(ret_name, bytes, dev);
	if (r == MR_CUDA_SUCCESS)
		snprintf(ret_name, (size_t)bytes, "stand-in GPU %d", dev);
	return r;
}

mr_cu_result cuDeviceGetAttribute(int *ret_value, unsigned int attribute, mr_cu_device dev)
{
	mr_cu_result r = enter(CALL_cuDeviceGetAttribute);

	if (r == MR_CUDA_SUCCESS)
		r = standin.sim->cuDeviceGetAttribute(ret_value, attribute, dev);
	if (r != MR_CUDA_SUCCESS)
		return r;
	if (attribute == MR_CU_ATTR_PCI_DOMAIN_ID)
		*ret_value = (int)standin.device[dev].domain;
	if (attribute == MR_CU_ATTR_PCI_BUS_ID)
		*ret_value = (int)standin.device[dev].bus;
	if (attribute == MR_CU_ATTR_PCI_DEVICE_ID)
		*ret_value = (int)standin.device[dev].slot;
	return r;
}

mr_cu_result cuDevicePrimaryCtxRetain(mr_cu_context *ret_ctx, mr_cu_device dev)
{
	mr_cu_result r = enter(CALL_cuDevicePrimaryCtxRetain);

	if (r == MR_CUDA_SUCCESS)
		r = standin.sim->cuDevicePrimaryCtxRetain(ret_ctx, dev);
	if (r == MR_CUDA_SUCCESS)
		standin.device[dev].context_refs++;
	return r;
}

/* What calls made and no call undid. */
static void log_left(void)
{
	static const struct {
		enum call makes, undoes;
		const char *what;
	} pairs[] = {
		{CALL_cuMemAlloc_v2, CALL_cuMemFree_v2, "device memory"},
		{CALL_cuMemHostAlloc, CALL_cuMemFreeHost, "host memory"},
		{CALL_cuMemHostRegister_v2, CALL_cuMemHostUnregister, "registered memory"},
		{CALL_cuModuleLoadData, CALL_cuModuleUnload, "modules"},
		{CALL_cuStreamCreate, CALL_cuStreamDestroy_v2, "streams"},
		{CALL_cuCtxPushCurrent_v2, CALL_cuCtxPopCurrent_v2, "pushed contexts"},
	};

	for (size_t i = 0; i < MR_ARRAY_LEN(pairs); i++) {
		enum call makes = pairs[i].makes, undoes = pairs[i].undoes;
		int left = (int)(standin.calls[makes] - standin.refused[makes]) -
			(int)(standin.calls[undoes] - standin.refused[undoes]);

		if (left != 0)
			log_line("left %d of %s", left, pairs[i].what);
	}
	for (uint32_t i = 0; i < CALLS_COUNT; i++)
		log_line("count %s %u", call_names[i], standin.calls[i]);
}

mr_cu_result cuDevicePrimaryCtxRelease_v2(mr_cu_device dev)
{
	bool last = true;
	mr_cu_result r = enter(CALL_cuDevicePrimaryCtxRelease_v2);

	if (r == MR_CUDA_SUCCESS)
		r = standin.sim->cuDevicePrimaryCtxRelease_v2(dev);
	if (r != MR_CUDA_SUCCESS)
		return r;
	standin.device[dev].context_refs--;
	for (uint32_t i = 0; i < standin.devices; i++)
		last &= standin.device[i].context_refs == 0;
	if (last)
		log_left();
	return r;
}

mr_cu_result cuMemGetAddressRange_v2(
	mr_cu_deviceptr *ret_base, size_t *ret_bytes, mr_cu_deviceptr ptr)
{
	mr_cu_result r = enter(CALL_cuMemGetAddressRange_v2);

	if (r == MR_CUDA_SUCCESS)
		r = mr_sim_mem_address_range(ret_base, ret_bytes, ptr);
	if (r == MR_CUDA_SUCCESS) {
		*ret_base += standin.skew;
		*ret_bytes -= standin.skew;
	}
	return r;
}

/* Its kernels' address of page-locked memory, which the guard of packet memory leaves open. */
mr_cu_result cuMemHostGetDevicePointer_v2(
	mr_cu_deviceptr *ret_ptr, void *host_ptr, unsigned int flags)
{
	mr_cu_result r = enter(CALL_cuMemHostGetDevicePointer_v2);

	if (r == MR_CUDA_SUCCESS)
		r = mr_sim_mem_host_device_pointer(ret_ptr, host_ptr, flags);
	return r == MR_CUDA_SUCCESS ? mr_sim_kernel_address(host_ptr, ret_ptr) : r;
}

mr_cu_result cuModuleLoadData(mr_cu_module *ret_module, const void *image)
{
	uint32_t magic = 0;
	mr_cu_result r = enter_after_kernels(CALL_cuModuleLoadData);

	if (r != MR_CUDA_SUCCESS)
		return r;
	memcpy(&magic, image, sizeof(magic));
	if (magic != FATBIN_MAGIC)
		return MR_CUDA_ERROR_INVALID_IMAGE;
	return mr_sim_module_load(ret_module, &mr_image_sim);
}

/* Whether the kernel's code is on the device already; it is from now on. */
static bool was_launched(mr_cu_function fn)
{
	for (uint32_t i = 0; i < LAUNCHED_MAX; i++) {
		if (standin.launched[i] == fn)
			return true;
		if (standin.launched[i] == NULL) {
			standin.launched[i] = fn;
			return false;
		}
	}
	return false;
}

mr_cu_result cuLaunchKernel(mr_cu_function fn, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared_bytes, mr_cu_stream stream, void **params, void **extra)
{
	bool loaded = was_launched(fn) || standin.eager;
	mr_cu_result r =
		loaded ? enter(CALL_cuLaunchKernel) : enter_after_kernels(CALL_cuLaunchKernel);

	if (r == MR_CUDA_SUCCESS)
		r = mr_sim_launch_kernel(fn, grid_x, grid_y, grid_z, block_x, block_y, block_z,
			shared_bytes, stream, params, extra);
	if (r != MR_CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&standin.lock);
	for (uint32_t i = 0; i < STREAMS_MAX; i++) {
		if (standin.kernels[i] != NULL)
			continue;
		standin.kernels[i] = stream;
		break;
	}
	pthread_mutex_unlock(&standin.lock);
	return r;
}

mr_cu_result cuStreamCreate(mr_cu_stream *ret_stream, unsigned int flags)
{
	mr_cu_result r = enter(CALL_cuStreamCreate);

	/* Such a stream waits for the legacy stream, and that for every kernel. */
	if (flags != MR_CU_STREAM_NON_BLOCKING)
		log_line("wrong cuStreamCreate without NON_BLOCKING");
	return r != MR_CUDA_SUCCESS ? r : mr_sim_stream_create(ret_stream, flags);
}

mr_cu_result cuStreamDestroy_v2(mr_cu_stream stream)
{
	mr_cu_result r = enter(CALL_cuStreamDestroy_v2);

	if (r != MR_CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&standin.lock);
	for (uint32_t i = 0; i < STREAMS_MAX; i++)
		if (standin.kernels[i] == stream)
			standin.kernels[i] = NULL;
	pthread_mutex_unlock(&standin.lock);
	return mr_sim_stream_destroy(stream);
}

/* As the driver at exit, which gives back what the process did not. */
static __attribute__((destructor)) void standin_end(void)
{
	while (kernel_runs())
		usleep(1000);
	while (standin.blocked)
		pause();
	/* A library that is closed again has to leave nothing. */
	for (uint32_t i = 0; i < standin.devices; i++)
		mr_cudasim_remove(standin.device[i].sim);
}

/* For the stand-in of GDRCopy, whose kernel module knows the GPU's memory. */
mr_cu_result standin_map(mr_cu_deviceptr ptr, size_t bytes, void **ret_host)
{
	mr_cu_result r = mr_sim_map(ptr, bytes, ret_host);

	/* Where kernels read: the software device's own alias may be memory of its own. */
	if (r == MR_CUDA_SUCCESS)
		*ret_host = (void *)(uintptr_t)ptr;
	return r;
}

mr_cu_result standin_unmap(void *host)
{
	mr_cu_deviceptr alias = 0;
	mr_cu_result r = mr_sim_kernel_address(host, &alias);

	return r == MR_CUDA_SUCCESS ? mr_sim_unmap((void *)(uintptr_t)alias) : r;
}
