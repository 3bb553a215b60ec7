/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to libraries, over stand-ins that LD_LIBRARY_PATH shows as the machine's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_probe_aside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
	assert_false(mr_probe_prefix_lives(NULL, "no-such-prefix").known);
}

/* As iproute2's: for a device alone it wants a reporter's name, and says how it is used. */
static void health_is_that_of_the_device_in_what_devlink_tells_of_all(void **state)
{
	static const char script[] = "#!/bin/sh\n"
				     "[ \"$*\" = 'health show' ] || { echo Usage >&2; exit 1; }\n"
				     "cat <<'END'\n"
				     "pci/0000:5e:00.1:\n  reporter fw\n"
				     "    state error error 9 recover 0 auto_dump true\n"
				     "pci/" NIC ":\n  reporter fw\n"
				     "    state healthy error 2 recover 2 auto_dump true\n"
				     "  reporter fw_fatal\n    state error error 1 recover 0\n"
				     "pci/" NIC "/65535:\n  reporter tx\n"
				     "    state healthy error 4 recover 4 grace_period 500\n"
				     "pci/0000:5e:00.02:\n  reporter fw\n    state error error 9\n"
				     "END\n";
	char path[256], *before = strdup(getenv("PATH"));
	struct mr_probe_nic n;
	FILE *f;

	(void)state;
	make("/bin");
	snprintf(path, sizeof(path), "%s/bin/devlink", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(script, f) >= 0);
	assert_int_equal(fchmod(fileno(f), 0700), 0);
	assert_int_equal(fclose(f), 0);
	snprintf(path, sizeof(path), "%s/bin:%.200s", folder, before);
	setenv("PATH", path, 1);
	mr_probe_ask_nic(&probe, NIC, &n);
	assert_true(n.health_bad.known && n.health_bad.v == 1);
	assert_true(n.health_errors.known && n.health_errors.v == 7);
	mr_probe_ask_nic(&probe, "0000:5f:00.0", &n);
	assert_false(n.health_bad.known);
	setenv("PATH", before, 1);
	free(before);
}

/* A child that has what hold() took, for as long as the function runs. */
static struct mr_probe_value while_held(bool (*hold)(void), const char *prefix)
{
	struct mr_probe_value v;
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		byte = hold() ? 'y' : 'n';
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	v = mr_probe_prefix_lives(&probe, prefix);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	return v;
}

static bool hold_page(void)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/heldmap_0", folder);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	return fd >= 0 && ftruncate(fd, 4096) == 0 &&
		mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED;
}

static char runtime[64];

static bool hold_lock(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/dpdk/elsewhere/config", runtime);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	return fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0;
}

static void a_program_lives_that_has_a_page_or_a_lock_wherever_it_keeps_them(void **state)
{
	int first = open("/proc/1/maps", O_RDONLY); /* root of a container may not, either */
	struct mr_probe_value v = while_held(hold_page, "held");
	char command[160];
	bool all = first >= 0;

	(void)state;
	close(first);
	assert_true(v.known && v.v == 1);
	v = mr_probe_prefix_lives(&probe, "held");
	assert_int_equal(v.known, all);
	assert_int_equal(v.v, 0);
	/* As under a service manager. */
	snprintf(runtime, sizeof(runtime), "/run/mr-probe-%d", (int)getpid());
	snprintf(command, sizeof(command), "mkdir -p %s/dpdk/elsewhere 2>/dev/null", runtime);
	if (system(command) != 0) {
		print_message("only root makes a folder in /run: its part was left out\n");
		return;
	}
	v = while_held(hold_lock, "elsewhere");
	assert_true(v.known && v.v == 1);
	v = mr_probe_prefix_lives(&probe, "elsewhere");
	assert_int_equal(v.v, 0);
	snprintf(command, sizeof(command), "rm -r %s", runtime);
	assert_int_equal(system(command), 0);
}

/* Pages of others' programs cannot be seen, so they are not dead. */
static void who_may_not_look_does_not_know_who_lives(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0) {
		print_message("this takes root\n");
		return;
	}
	pid = fork();
	if (pid == 0)
		_exit(seteuid(65534) != 0                                        ? 1
				: mr_probe_prefix_lives(&probe, "nobodys").known ? 2
										 : 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
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
		cmocka_unit_test(health_is_that_of_the_device_in_what_devlink_tells_of_all),
		cmocka_unit_test(a_program_lives_that_has_a_page_or_a_lock_wherever_it_keeps_them),
		cmocka_unit_test(who_may_not_look_does_not_know_who_lives),
		cmocka_unit_test(no_probe_knows_nothing),
		cmocka_unit_test(a_value_is_a_whole_number_of_its_own_line),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
