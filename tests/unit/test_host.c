/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's facts, read from folders that stand for machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CPU "sys/devices/system/cpu/"

static char root[] = "/tmp/mr-host-XXXXXX";
static struct mr_host host;
static struct mr_err err;

/* Writes root/path, folders included; text NULL removes it. */
static void put(const char *path, const char *text)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	if (text == NULL) {
		unlink(full);
		return;
	}
	for (char *s = full + strlen(root) + 1; *s != '\0'; s++) {
		if (*s != '/')
			continue;
		*s = '\0';
		mkdir(full, 0700);
		*s = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	assert_int_equal(fputs(text, f) >= 0, 1);
	fclose(f);
}

static int make_root(void **state)
{
	(void)state;
	return mkdtemp(root) == NULL;
}

static int remove_root(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r '%s'", root);
	return system(command);
}

static int machine(void **state)
{
	(void)state;
	put(CPU "possible", "0-7\n");
	put(CPU "online", "0-2,5\n");
	put("proc/meminfo", "MemTotal: 100 kB\nMemAvailable:    2048 kB\nHugepagesize: 2048 kB\n");
	put("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "12\n");
	put("proc/cpuinfo", "processor: 0\nflags\t\t: fpu pku ospke sse\nbugs\t: x\n");
	return 0;
}

static uint32_t count(const bool set[MR_CPUS_MAX])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MR_CPUS_MAX; i++)
		n += set[i];
	return n;
}

static void facts_of_a_folder_are_read(void **state)
{
	(void)state;
	assert_int_equal(mr_host_read(root, &host, &err), 0);
	assert_true(host.known);
	assert_int_equal(host.cpus, 8);
	assert_int_equal(count(host.cpu_online), 4);
	assert_true(host.cpu_online[5] && !host.cpu_online[3]);
	assert_memory_equal(host.cpu_allowed, host.cpu_online, sizeof(host.cpu_online));
	assert_int_equal(host.hugepage_bytes, 2 << 20);
	assert_int_equal(host.hugepages_free, 12);
	assert_int_equal(host.memory_bytes, 2 << 20);
	assert_true(host.protection_keys);
}

static void this_machine_allows_what_it_runs_on(void **state)
{
	(void)state;
	assert_int_equal(mr_host_read("/", &host, &err), 0);
	assert_true(host.known && host.cpus >= 1 && host.cpus <= MR_CPUS_MAX);
	assert_true(count(host.cpu_online) >= 1 && count(host.cpu_allowed) >= 1);
	assert_true(host.memory_bytes > 0);
}

static void missing_and_broken_cpu_lists_are_errors(void **state)
{
	static const char *const broken[] = {"", "\n", "x", "0-", "-1", "3-1", "0,,1", "0 1",
		"0-1-2", "99999999999999999999999"};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(broken); i++) {
		put(CPU "possible", broken[i]);
		assert_int_equal(mr_host_read(root, &host, &err), -EBADMSG);
		assert_false(host.known);
	}
	put(CPU "possible", "0-3\n");
	put(CPU "online", "x\n");
	assert_int_equal(mr_host_read(root, &host, &err), -EBADMSG);
	put(CPU "online", NULL);
	assert_int_equal(mr_host_read(root, &host, &err), 0);
	assert_int_equal(count(host.cpu_online), 4);
	put(CPU "possible", NULL);
	assert_int_equal(mr_host_read(root, &host, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "possible"));
	assert_int_equal(mr_host_read("/nonexistent", &host, &err), -ENOENT);
}

static void cpus_beyond_the_limit_are_left_out(void **state)
{
	(void)state;
	put(CPU "possible", "0-18446744073709551605\n");
	put(CPU "online", "1020-4000000000,5000000000\n");
	assert_int_equal(mr_host_read(root, &host, &err), 0);
	assert_int_equal(host.cpus, MR_CPUS_MAX);
	assert_int_equal(count(host.cpu_online), 4);
}

static void strange_memory_is_unknown(void **state)
{
	static const char *const strange[] = {"", "MemAvailable: x kB\nHugepagesize:\n",
		"MemAvailable: 99999999999999999999999 kB\nHugepagesize: 18014398509481985 kB\n",
		"MemAvailableX: 5 kB\n MemAvailable: 5 kB\n"};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(strange); i++) {
		put("proc/meminfo", strange[i]);
		assert_int_equal(mr_host_read(root, &host, &err), 0);
		assert_int_equal(host.memory_bytes, 0);
		assert_int_equal(host.hugepage_bytes, 0);
		assert_int_equal(host.hugepages_free, 0);
	}
	put("proc/meminfo", "Hugepagesize: 2048 kB\n");
	put("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "18446744073709551600\n");
	assert_int_equal(mr_host_read(root, &host, &err), 0);
	assert_int_equal(host.hugepages_free, 0);
}

static void protection_keys_need_the_whole_flag_of_the_kernel(void **state)
{
	static const char *const without[] = {"", "flags : pku\n", "x\nflags : ospkex pku\n",
		"x\nflags : pku\nother : ospke\n", "x\nbugs : ospke\n"};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(without); i++) {
		put("proc/cpuinfo", without[i]);
		assert_int_equal(mr_host_read(root, &host, &err), 0);
		assert_false(host.protection_keys);
	}
	put("proc/cpuinfo", "x\nflags : ospkex ospke");
	assert_int_equal(mr_host_read(root, &host, &err), 0);
	assert_true(host.protection_keys);
}

static void pipes_and_long_roots_do_not_hold_it_up(void **state)
{
	char full[256];
	char deep[2000];

	(void)state;
	snprintf(full, sizeof(full), "%s/proc/cpuinfo", root);
	unlink(full);
	assert_int_equal(mkfifo(full, 0600), 0);
	assert_int_equal(mr_host_read(root, &host, &err), 0);
	unlink(full);
	memset(deep, 'x', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(mr_host_read(deep, &host, &err), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(facts_of_a_folder_are_read, machine),
		cmocka_unit_test_setup(this_machine_allows_what_it_runs_on, machine),
		cmocka_unit_test_setup(missing_and_broken_cpu_lists_are_errors, machine),
		cmocka_unit_test_setup(cpus_beyond_the_limit_are_left_out, machine),
		cmocka_unit_test_setup(strange_memory_is_unknown, machine),
		cmocka_unit_test_setup(protection_keys_need_the_whole_flag_of_the_kernel, machine),
		cmocka_unit_test_setup(pipes_and_long_roots_do_not_hold_it_up, machine),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
