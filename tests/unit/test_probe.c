/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to libraries, over stand-ins that LD_LIBRARY_PATH shows as the machine's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_probe_aside.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GPU "0000:3b:00.0"
#define NIC "0000:5e:00.0"
#define DEVICES "/sys/bus/pci/devices/" NIC

static char folder[] = "/tmp/mr-probe-XXXXXX";
static struct mr_root root;
static struct mr_probe_machine machine = {.root = &root, .wait_ms = 20000};
static struct mr_probe probe = {.ctx = &machine, .ask = mr_probe_live};

static void make(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s%s", folder, path);
	for (char *s = full + strlen(folder) + 1; *s != '\0'; s++)
		if (*s == '/') {
			*s = '\0';
			mkdir(full, 0700);
			*s = '/';
		}
	mkdir(full, 0700);
}

static int setup(void **state)
{
	struct mr_err err;

	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	make(DEVICES "/infiniband/mlx5_1");
	make(DEVICES "/net/lo");
	setenv("MILLRACE_STANDIN", "device=" GPU, 1);
	return mr_root_open(&root, folder, &err);
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	mr_root_close(&root);
	snprintf(command, sizeof(command), "rm -r '%s'", folder);
	return system(command);
}

static void a_gpu_answers_from_both_libraries(void **state)
{
	struct mr_probe_gpu g;

	(void)state;
	mr_probe_ask_gpu(&probe, GPU, &g);
	assert_int_equal(g.error, 0);
	assert_true(g.cuda_version.known && g.cuda_version.v == 13000);
	assert_true(g.integrated.known && g.integrated.v == 0);
	assert_true(g.gdr_supported.known && g.dma_buf_supported.known);
	assert_true(g.writes_ordering.known && g.flush_options.known);
	assert_true(g.bar1_free.known && g.bar1_free.v == 2ll << 30);
	assert_true(g.ecc_uncorrected.v == 5 && g.remap_pending.v == 1 && g.remap_failed.known);
	assert_true(g.recovery_action.v == 2 && g.compute_mode.v == 3 && g.processes.v == 4);
	assert_true(g.mig.known && g.mig.v == 0 && g.throttle.v == 1);
	assert_true(g.sm_mhz.v == 345 && g.sm_mhz_max.v == 1980);
}

static void a_gpu_that_the_libraries_do_not_have_is_not_known(void **state)
{
	struct mr_probe_gpu g;

	(void)state;
	mr_probe_ask_gpu(&probe, "0000:99:00.0", &g);
	assert_false(g.integrated.known || g.compute_mode.known);
}

static void a_driver_that_hangs_is_left_behind_in_time(void **state)
{
	struct mr_probe_machine hasty = {.root = &root, .wait_ms = 300};
	struct mr_probe p = {.ctx = &hasty, .ask = mr_probe_live};
	uint64_t began = mr_clock_ns();
	struct mr_probe_gpu g;

	(void)state;
	setenv("MILLRACE_NVML", "hang", 1);
	mr_probe_ask_gpu(&p, GPU, &g);
	unsetenv("MILLRACE_NVML");
	assert_int_equal(g.error, -ETIMEDOUT);
	assert_false(g.integrated.known);
	assert_true(mr_clock_ns() - began < 10000000000ull);
}

static void a_nic_answers_by_its_own_verbs_device(void **state)
{
	struct mr_probe_nic n;

	(void)state;
	mr_probe_ask_nic(&probe, NIC, &n);
	assert_int_equal(n.error, 0);
	assert_true(n.dmabuf_errno.known && n.dmabuf_errno.v == EBADF);
	assert_false(n.health_bad.known || n.trust.known);
	mr_probe_ask_nic(&probe, "0000:5f:00.0", &n);
	assert_false(n.dmabuf_errno.known);
}

static void a_gpu_buffer_is_registered_or_the_error_told(void **state)
{
	struct mr_probe_pair p;

	(void)state;
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	mr_probe_ask_pair(&probe, GPU, NIC, &p);
	assert_int_equal(p.error, 0);
	assert_true(p.register_errno.known && p.register_errno.v == 0);
	assert_false(p.readback.known);
	setenv("MILLRACE_VERBS", "14", 1);
	mr_probe_ask_pair(&probe, GPU, NIC, &p);
	unsetenv("MILLRACE_VERBS");
	assert_true(p.register_errno.known && p.register_errno.v == EFAULT);
	mr_probe_ask_pair(&probe, "0000:99:00.0", NIC, &p);
	assert_false(p.register_errno.known);
}

static void no_probe_knows_nothing(void **state)
{
	struct mr_probe_software s;
	struct mr_probe_gpu g;

	(void)state;
	mr_probe_ask_gpu(NULL, GPU, &g);
	assert_int_equal(g.error, -ENOTSUP);
	assert_false(g.integrated.known);
	mr_probe_ask_software(&probe, &s);
	assert_true(s.extmem_dmabuf.known && s.extmem_dmabuf.v == 0);
	assert_false(mr_probe_prefix_lives(&probe, "no-such-prefix"));
}

static int kept(void *ctx, const char *question, char text[MR_PROBE_TEXT_MAX])
{
	(void)question;
	snprintf(text, MR_PROBE_TEXT_MAX, "%s", (const char *)ctx);
	return 0;
}

static void a_value_is_a_whole_number_of_its_own_line(void **state)
{
	static const char *const bad[] = {"integrated\n", "integrated x\n", "integrated 1x\n",
		"xintegrated 1\n", " integrated 1\n", "integrated 99999999999999999999\n", ""};
	struct mr_probe p = {.ask = kept};
	struct mr_probe_gpu g;

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++) {
		p.ctx = (void *)(uintptr_t)bad[i];
		mr_probe_ask_gpu(&p, GPU, &g);
		assert_false(g.integrated.known);
	}
	p.ctx = (void *)(uintptr_t) "mig 0\nintegrated -1\n";
	mr_probe_ask_gpu(&p, GPU, &g);
	assert_true(g.integrated.known && g.integrated.v == -1 && g.mig.known);
}

/* The same answer as without it, again and again; and none from one that has died. */
static void a_process_aside_asks_in_the_place_of_its_parent(void **state)
{
	struct mr_probe_aside a;
	struct mr_probe p = {.ctx = &a, .ask = mr_probe_aside_ask};
	struct mr_probe_gpu g, direct;
	struct mr_err err;

	(void)state;
	assert_int_equal(mr_probe_aside_open(&a, 20000, &err), 0);
	mr_probe_ask_gpu(&probe, GPU, &direct);
	for (int i = 0; i < 3; i++) {
		mr_probe_ask_gpu(&p, GPU, &g);
		assert_memory_equal(&g, &direct, sizeof(g));
	}
	mr_probe_ask_gpu(&p, "0000:99:00.0", &g);
	assert_false(g.bar1_free.known);
	assert_int_equal(kill(a.pid, SIGTERM), 0);
	mr_probe_ask_gpu(&p, GPU, &g);
	assert_true(g.bar1_free.known);
	assert_int_equal(kill(a.pid, SIGKILL), 0);
	for (int i = 0; i < 2; i++) {
		mr_probe_ask_gpu(&p, GPU, &g);
		assert_int_equal(g.error, -ENOTSUP);
	}
	mr_probe_aside_close(&a);
	assert_int_equal(a.pid, 0);
	mr_probe_ask_gpu(&p, GPU, &g);
	assert_int_equal(g.error, -ENOTSUP);
	mr_probe_aside_close(&a);
}

static void a_driver_that_hangs_is_left_by_the_process_aside_too(void **state)
{
	struct mr_probe_aside a;
	struct mr_probe p = {.ctx = &a, .ask = mr_probe_aside_ask};
	struct mr_probe_gpu g;
	struct mr_err err;

	(void)state;
	setenv("MILLRACE_NVML", "hang", 1);
	assert_int_equal(mr_probe_aside_open(&a, 300, &err), 0);
	unsetenv("MILLRACE_NVML");
	mr_probe_ask_gpu(&p, GPU, &g);
	assert_int_equal(g.error, -ETIMEDOUT);
	mr_probe_aside_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gpu_answers_from_both_libraries),
		cmocka_unit_test(a_gpu_that_the_libraries_do_not_have_is_not_known),
		cmocka_unit_test(a_driver_that_hangs_is_left_behind_in_time),
		cmocka_unit_test(a_nic_answers_by_its_own_verbs_device),
		cmocka_unit_test(a_gpu_buffer_is_registered_or_the_error_told),
		cmocka_unit_test(a_process_aside_asks_in_the_place_of_its_parent),
		cmocka_unit_test(a_driver_that_hangs_is_left_by_the_process_aside_too),
		cmocka_unit_test(no_probe_knows_nothing),
		cmocka_unit_test(a_value_is_a_whole_number_of_its_own_line),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
