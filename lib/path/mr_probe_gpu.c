/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_probe_gpu - the child that asks CUDA and NVML; it ends with what they leave behind. */
#include "mr_probe_priv.h"

#include "mr_cuda_api.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NVML_LIBRARY "libnvidia-ml.so.1"
#define CUDA_LIBRARY "libcuda.so.1"

/* dlsym gives a data pointer; POSIX lets it become a function's. */
#define SYMBOL(handle, fn, name) (*(void **)&(fn) = dlsym(handle, name), (fn) != NULL)

static void ask_cuda(const char *bdf, int fd)
{
	static const struct {
		const char *key;
		unsigned int attribute;
	} attributes[] = {
		{"integrated", MR_CU_ATTR_INTEGRATED},
		{"gdr_supported", MR_CU_ATTR_GPU_DIRECT_RDMA_SUPPORTED},
		{"flush_options", MR_CU_ATTR_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS},
		{"writes_ordering", MR_CU_ATTR_GPU_DIRECT_RDMA_WRITES_ORDERING},
		{"dma_buf_supported", MR_CU_ATTR_DMA_BUF_SUPPORTED},
	};
	void *lib = dlopen(CUDA_LIBRARY, RTLD_NOW);
	mr_cu_result (*init)(unsigned int);
	mr_cu_result (*version)(int *);
	mr_cu_result (*by_bus)(mr_cu_device *, const char *);
	mr_cu_result (*attribute)(int *, unsigned int, mr_cu_device);
	mr_cu_device dev;
	int v;

	mr_probe_say(fd, "libcuda", lib != NULL);
	if (lib == NULL)
		return;
	if (SYMBOL(lib, version, "cuDriverGetVersion") && version(&v) == MR_CUDA_SUCCESS)
		mr_probe_say(fd, "cuda_version", v);
	if (!SYMBOL(lib, init, "cuInit") || !SYMBOL(lib, by_bus, "cuDeviceGetByPCIBusId") ||
		!SYMBOL(lib, attribute, "cuDeviceGetAttribute"))
		return;
	if (init(0) != MR_CUDA_SUCCESS || by_bus(&dev, bdf) != MR_CUDA_SUCCESS)
		return;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attribute(&v, attributes[i].attribute, dev) == MR_CUDA_SUCCESS)
			mr_probe_say(fd, attributes[i].key, v);
}

/* The parts of NVML's ABI that are asked for (NVML API Reference). */
typedef struct nvml_device_opaque *nvml_device;

enum {
	NVML_SUCCESS = 0,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_UNCORRECTED = 1,
	NVML_VOLATILE = 0,
	NVML_CLOCK_SM = 1,
	NVML_FIELD_RECOVERY_ACTION = 230,
};

struct nvml_bar1 {
	unsigned long long total, free, used;
};

/* nvmlFieldValue_t */
struct nvml_field {
	unsigned int id, scope;
	long long timestamp, latency_us;
	unsigned int type;
	int result;
	union {
		unsigned int u32;
		unsigned long long u64;
	} value;
};

static void ask_recovery(void *lib, nvml_device dev, int fd)
{
	struct nvml_field field = {.id = NVML_FIELD_RECOVERY_ACTION};
	int (*fields)(nvml_device, int, struct nvml_field *);

	if (SYMBOL(lib, fields, "nvmlDeviceGetFieldValues") &&
		fields(dev, 1, &field) == NVML_SUCCESS && field.result == NVML_SUCCESS)
		mr_probe_say(fd, "recovery_action", field.value.u32);
}

static void ask_health(void *lib, nvml_device dev, int fd)
{
	int (*ecc)(nvml_device, int, int, unsigned long long *);
	int (*rows)(nvml_device, unsigned int *, unsigned int *, unsigned int *, unsigned int *);
	unsigned int corrected, uncorrected, pending, failed;
	unsigned long long errors;

	if (SYMBOL(lib, ecc, "nvmlDeviceGetTotalEccErrors") &&
		ecc(dev, NVML_UNCORRECTED, NVML_VOLATILE, &errors) == NVML_SUCCESS)
		mr_probe_say(fd, "ecc_uncorrected", (long long)(errors & INT64_MAX));
	if (SYMBOL(lib, rows, "nvmlDeviceGetRemappedRows") &&
		rows(dev, &corrected, &uncorrected, &pending, &failed) == NVML_SUCCESS) {
		mr_probe_say(fd, "remap_pending", pending);
		mr_probe_say(fd, "remap_failed", failed);
	}
}

static void ask_use(void *lib, nvml_device dev, int fd)
{
	int (*mode)(nvml_device, unsigned int *);
	int (*mig)(nvml_device, unsigned int *, unsigned int *);
	int (*processes)(nvml_device, unsigned int *, void *);
	unsigned int now, next, count = 0;
	int rc;

	if (SYMBOL(lib, mode, "nvmlDeviceGetComputeMode") && mode(dev, &now) == NVML_SUCCESS)
		mr_probe_say(fd, "compute_mode", now);
	if (SYMBOL(lib, mig, "nvmlDeviceGetMigMode") && mig(dev, &now, &next) == NVML_SUCCESS)
		mr_probe_say(fd, "mig", now);
	if (!SYMBOL(lib, processes, "nvmlDeviceGetComputeRunningProcesses_v3"))
		return;
	/* Without room for them it says how many there are. */
	rc = processes(dev, &count, NULL);
	if (rc == NVML_SUCCESS || rc == NVML_INSUFFICIENT_SIZE)
		mr_probe_say(fd, "processes", count);
}

static void ask_clocks(void *lib, nvml_device dev, int fd)
{
	int (*reasons)(nvml_device, unsigned long long *);
	int (*clock)(nvml_device, int, unsigned int *);
	int (*clock_max)(nvml_device, int, unsigned int *);
	unsigned long long bits;
	unsigned int mhz;

	if (SYMBOL(lib, reasons, "nvmlDeviceGetCurrentClocksThrottleReasons") &&
		reasons(dev, &bits) == NVML_SUCCESS)
		mr_probe_say(fd, "throttle", (long long)(bits & INT64_MAX));
	if (SYMBOL(lib, clock, "nvmlDeviceGetClockInfo") &&
		clock(dev, NVML_CLOCK_SM, &mhz) == NVML_SUCCESS)
		mr_probe_say(fd, "sm_mhz", mhz);
	if (SYMBOL(lib, clock_max, "nvmlDeviceGetMaxClockInfo") &&
		clock_max(dev, NVML_CLOCK_SM, &mhz) == NVML_SUCCESS)
		mr_probe_say(fd, "sm_mhz_max", mhz);
}

static void ask_nvml(const char *bdf, int fd)
{
	void *lib = dlopen(NVML_LIBRARY, RTLD_NOW);
	int (*init)(void);
	int (*by_bus)(const char *, nvml_device *);
	int (*bar1)(nvml_device, struct nvml_bar1 *);
	struct nvml_bar1 bar;
	nvml_device dev;

	if (lib == NULL || !SYMBOL(lib, init, "nvmlInit_v2") ||
		!SYMBOL(lib, by_bus, "nvmlDeviceGetHandleByPciBusId_v2"))
		return;
	if (init() != NVML_SUCCESS || by_bus(bdf, &dev) != NVML_SUCCESS)
		return;
	if (SYMBOL(lib, bar1, "nvmlDeviceGetBAR1MemoryInfo") && bar1(dev, &bar) == NVML_SUCCESS)
		mr_probe_say(fd, "bar1_free", (long long)(bar.free & INT64_MAX));
	ask_health(lib, dev, fd);
	ask_recovery(lib, dev, fd);
	ask_use(lib, dev, fd);
	ask_clocks(lib, dev, fd);
}

/* NVML first: CUDA itself counts as a process that uses the GPU. */
void mr_probe_child_gpu(const char *bdf, int fd)
{
	ask_nvml(bdf, fd);
	ask_cuda(bdf, fd);
}
