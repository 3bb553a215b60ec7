/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_drv.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_gpudev.h>
#include <rte_log.h>

#define PAGE ((size_t)64 << 10)

static int16_t id_of(const char *name)
{
	struct rte_gpu_info info;
	int16_t id;

	RTE_GPU_FOREACH(id)
	if (rte_gpu_info_get(id, &info) == 0 && strcmp(info.name, name) == 0)
		return id;
	return RTE_GPU_ID_NONE;
}

static void each_vdev_is_a_device_of_its_own(void **state)
{
	struct mr_gpu_drv_info info;
	struct rte_gpu_info gpu;
	struct mr_err err = {0};
	int16_t a, b;

	(void)state;
	assert_int_equal(rte_vdev_init("gpu_millrace0", ""), 0);
	assert_int_equal(rte_vdev_init("gpu_millrace_g1", "sim,sms=9,mem=1MiB,guard=off"), 0);
	assert_int_equal(rte_vdev_init("gpu_millrace_g1", ""), -EEXIST);
	assert_int_equal(rte_gpu_count_avail(), 2);
	a = id_of("gpu_millrace0");
	b = id_of("gpu_millrace_g1");
	assert_true(a >= 0 && b >= 0 && a != b);
	assert_int_equal(rte_gpu_info_get(b, &gpu), 0);
	assert_int_equal(gpu.processor_count, 9);
	assert_int_equal(gpu.total_memory, 1 << 20);
	assert_int_equal(gpu.page_size, PAGE);
	assert_int_equal(gpu.numa_node, -1);
	assert_true(gpu.context != 0);
	assert_non_null(mr_gpu_drv_get(a));
	assert_ptr_not_equal(mr_gpu_drv_get(a), mr_gpu_drv_get(b));
	assert_int_equal(mr_gpu_drv_info(mr_gpu_drv_get(b), &info, &err), 0);
	assert_string_equal(info.guard, "off");
	/* Closed by the application first, then by the bus: both are fine. */
	assert_int_equal(rte_gpu_close(b), 0);
	assert_null(mr_gpu_drv_get(b));
	assert_int_equal(rte_vdev_uninit("gpu_millrace_g1"), 0);
	assert_int_equal(rte_vdev_uninit("gpu_millrace0"), 0);
	assert_int_equal(rte_gpu_count_avail(), 0);
	/* The name is free again, and a device that went leaves its place. */
	for (int i = 0; i < 40; i++) {
		assert_int_equal(rte_vdev_init("gpu_millrace0", "device=sim,mem=1MiB"), 0);
		assert_int_equal(rte_vdev_uninit("gpu_millrace0"), 0);
	}
}

static void wrong_arguments_leave_a_sentence_and_no_device(void **state)
{
	static const struct {
		const char *args, *says;
	} bad[] = {
		{"nvidia", "neither sim nor a PCI address"},
		{"device=", "device="},
		{"sim,guard=maybe", "guard=maybe"},
		{"sim,speed=9", "'speed' is not known"},
		{"sms=4,sim", "'sim' is not of the form"},
		{"sim,bar=0000:00:04", "neither a size nor the address"},
		{"device=0000:01:00.0,mem=1GiB", "is an option of the software device"},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++) {
		struct mr_err err = {0};

		assert_true(rte_vdev_init("gpu_millrace_bad", bad[i].args) < 0);
		mr_gpu_drv_last_error(&err);
		assert_true(err.code < 0);
		if (strncmp(err.msg, "device 'bad': ", 14) != 0 ||
			strstr(err.msg, bad[i].says) == NULL)
			fail_msg("'%s' gave '%s'", bad[i].args, err.msg);
		assert_int_equal(rte_gpu_count_avail(), 0);
	}
}

static void gpudev_memory_calls_do_what_they_say(void **state)
{
	static char registered[4096];
	struct mr_err err = {0};
	uint8_t *p, *q, *map;
	int16_t id;

	(void)state;
	assert_int_equal(rte_vdev_init("gpu_millrace0", "mem=1MiB,bar=128KiB"), 0);
	id = id_of("gpu_millrace0");
	p = rte_gpu_mem_alloc(id, 1000, 4096);
	q = rte_gpu_mem_alloc(id, 1000, 0);
	assert_non_null(p);
	assert_non_null(q);
	assert_int_equal((uintptr_t)p % PAGE, 0);
	assert_int_equal(rte_gpu_mem_free(id, p + 0x700), -EPERM);
	mr_gpu_drv_last_error(&err);
	assert_non_null(strstr(err.msg, "is not the start of device memory"));
	map = rte_gpu_mem_cpu_map(id, 1000, p);
	assert_non_null(map);
	map[7] = 77;
	assert_int_equal(p[7], 77);
	assert_null(rte_gpu_mem_cpu_map(id, 2000, q));
	assert_int_equal(rte_gpu_mem_cpu_unmap(id, p), 0);
	assert_int_equal(rte_gpu_mem_free(id, p), 0);
	assert_null(rte_gpu_mem_alloc(id, 2 << 20, 0));
	assert_int_equal(rte_errno, ENOMEM);
	assert_int_equal(rte_gpu_mem_register(id, sizeof(registered), registered), 0);
	assert_int_equal(rte_gpu_mem_register(id, sizeof(registered), registered), -EPERM);
	assert_int_equal(rte_gpu_mem_unregister(id, registered), 0);
	assert_int_equal(rte_gpu_mem_unregister(id, registered), -EPERM);
	/* q is left to the device's end. */
	assert_int_equal(rte_vdev_uninit("gpu_millrace0"), 0);
}

/*
 * A barrier succeeds with every mask that has an option, and where none is needed. DPDK
 * drivers/gpu/cuda/cuda.c:1139: the flush options are compared as a number and are a mask.
 */
static void a_barrier_reads_the_flush_options_as_a_mask(void **state)
{
	static const struct {
		const char *args;
		int rc;
	} rows[] = {
		{"ordering=all,flush=none", 0},
		{"ordering=owner,flush=none", 0},
		{"ordering=none,flush=host", 0},
		{"ordering=none,flush=memops", 0},
		{"ordering=none,flush=both", 0},
		{"ordering=none,flush=none", -EPERM},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		assert_int_equal(rte_vdev_init("gpu_millrace0", rows[i].args), 0);
		assert_int_equal(rte_gpu_wmb(id_of("gpu_millrace0")), rows[i].rc);
		assert_int_equal(rte_vdev_uninit("gpu_millrace0"), 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_vdev_is_a_device_of_its_own),
		cmocka_unit_test(wrong_arguments_leave_a_sentence_and_no_device),
		cmocka_unit_test(gpudev_memory_calls_do_what_they_say),
		cmocka_unit_test(a_barrier_reads_the_flush_options_as_a_mask),
	};
	char prefix[64];
	char *eal[] = {argv[0], "--no-huge", "--no-pci", "--no-telemetry", "-m", "64",
		"--log-level", "critical", prefix};
	int failed;

	(void)argc;
	snprintf(prefix, sizeof(prefix), "--file-prefix=mr-test-vdev-%d", (int)getpid());
	if (rte_eal_init((int)MR_ARRAY_LEN(eal), eal) < 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rte_eal_cleanup();
	return failed;
}
