/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stand-in for libnvidia-ml.so.1 with one GPU at 0000:3b:00.0, by the ABI of the NVML API
 * Reference. MILLRACE_NVML=hang makes its start never return, as a driver's can.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SUCCESS,
	INVALID_ARGUMENT = 2,
	NOT_FOUND = 6,
	INSUFFICIENT_SIZE = 7
};

struct field {
	unsigned int id, scope;
	long long timestamp, latency_us;
	unsigned int type;
	int result;
	union {
		unsigned int u32;
		unsigned long long u64;
	} value;
};

static int gpu;

int nvmlInit_v2(void)
{
	const char *order = getenv("MILLRACE_NVML");

	while (order != NULL && strcmp(order, "hang") == 0)
		pause();
	return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **ret)
{
	*ret = &gpu;
	return strcmp(bus, "0000:3b:00.0") == 0 ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetBAR1MemoryInfo(void *dev, unsigned long long ret[3])
{
	ret[0] = 3ull << 30;
	ret[1] = 2ull << 30;
	ret[2] = 1ull << 30;
	return dev == &gpu ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetTotalEccErrors(void *dev, int type, int counter, unsigned long long *ret)
{
	*ret = type == 1 && counter == 0 ? 5 : 99;
	return dev == &gpu ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetRemappedRows(void *dev, unsigned int *corrected, unsigned int *uncorrected,
	unsigned int *pending, unsigned int *failed)
{
	*corrected = 11;
	*uncorrected = 12;
	*pending = 1;
	*failed = 0;
	return dev == &gpu ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetFieldValues(void *dev, int count, struct field *fields)
{
	if (dev != &gpu || count != 1 || fields[0].id != 230)
		return INVALID_ARGUMENT;
	fields[0].result = SUCCESS;
	fields[0].value.u32 = 2;
	return SUCCESS;
}

int nvmlDeviceGetComputeMode(void *dev, unsigned int *ret)
{
	*ret = 3;
	return dev == &gpu ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetMigMode(void *dev, unsigned int *now, unsigned int *next)
{
	*now = 0;
	*next = 1;
	return dev == &gpu ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *dev, unsigned int *count, void *infos)
{
	unsigned int room = *count;

	*count = 4;
	if (dev != &gpu)
		return INVALID_ARGUMENT;
	return room < 4 || infos == NULL ? INSUFFICIENT_SIZE : SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *dev, unsigned long long *ret)
{
	*ret = 1;
	return dev == &gpu ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetClockInfo(void *dev, int type, unsigned int *ret)
{
	*ret = type == 1 ? 345 : 9999;
	return dev == &gpu ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetMaxClockInfo(void *dev, int type, unsigned int *ret)
{
	*ret = type == 1 ? 1980 : 9999;
	return dev == &gpu ? SUCCESS : INVALID_ARGUMENT;
}
