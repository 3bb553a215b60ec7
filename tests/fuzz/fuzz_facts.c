/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A machine of whose files the fuzzer writes some: the reader, the topology and every check
 * take it. An input is a list of (file, length of two bytes, bytes); files beyond the list
 * are named modulo its length. What was not written is not there, so no check that rests on
 * it alone may pass.
 */
#include "mr_checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GPU "sys/devices/pci0000:3a/0000:3a:00.0/0000:3d:00.0/"
#define NIC "sys/devices/pci0000:3a/0000:3a:00.0/0000:3e:00.0/"

/* A file, and the check that cannot pass without it; NULL: others bear it too. */
static const struct {
	const char *path;
	const char *check;
} files[] = {
	{"proc/sys/kernel/osrelease", NULL},
	{"proc/cmdline", "iommu.cmdline"},
	{"proc/cpuinfo", NULL},
	{"proc/meminfo", NULL},
	{"proc/self/status", "process.capabilities"},
	{"proc/self/limits", "limits.memlock"},
	{"proc/self/mounts", "memory.hugetlbfs"},
	{"proc/self/cgroup", NULL},
	{"proc/irq/7/smp_affinity_list", NULL},
	{"proc/driver/nvidia/version", "gpu.kernel_module"},
	{"proc/driver/nvidia/gpus/0000:3d:00.0/information", NULL},
	{"dev/kmsg", "gpu.kernel_log"},
	{"sys/kernel/security/lockdown", NULL},
	{"sys/devices/system/clocksource/clocksource0/current_clocksource", "kernel.clocksource"},
	{"sys/devices/system/cpu/online", NULL},
	{"sys/devices/system/cpu/isolated", NULL},
	{"sys/devices/system/cpu/cpu1/topology/thread_siblings_list", NULL},
	{"sys/devices/system/node/node0/cpulist", NULL},
	{"sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", NULL},
	{"sys/module/nvidia/version", "pair.peermem"},
	{"sys/module/nvidia_peermem/version", NULL},
	{"sys/fs/cgroup/cpuset.cpus.effective", NULL},
	{GPU "config", NULL},
	{GPU "resource", "gpu.bar"},
	{GPU "numa_node", "pair.numa"},
	{GPU "current_link_width", "gpu.pcie_link"},
	{GPU "max_link_width", NULL},
	{NIC "config", "nic.mrrs"},
	{NIC "numa_node", "pair.numa"},
	{NIC "current_link_speed", "nic.pcie_link"},
	{NIC "aer_dev_fatal", NULL},
	{NIC "net/eth0/carrier", "nic.link"},
	{NIC "net/eth0/mtu", "nic.link"},
	{NIC "infiniband/mlx5_0/ports/1/state", "nic.port"},
	{NIC "infiniband/mlx5_0/fw_ver", "nic.firmware"},
	{"sys/devices/pci0000:3a/0000:3a:00.0/config", NULL},
	{"millrace/probe/gpu/0000:3d:00.0", "gpu.ordering"},
	{"millrace/probe/nic/0000:3e:00.0", "nic.pause"},
	{"millrace/probe/pair/0000:3d:00.0+0000:3e:00.0", "pair.readback"},
	{"millrace/probe/software", NULL},
	{"millrace/denied", NULL},
};

static char folder[] = "/tmp/mr-fuzz-XXXXXX";

static void make_folders(char *full)
{
	for (char *s = full + sizeof(folder); *s != '\0'; s++)
		if (*s == '/') {
			*s = '\0';
			mkdir(full, 0700);
			*s = '/';
		}
}

static void put(const char *path, const void *data, size_t bytes)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", folder, path);
	make_folders(full);
	f = fopen(full, "w");
	if (f == NULL)
		abort();
	fwrite(data, 1, bytes, f);
	fclose(f);
}

static void remove_file(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", folder, path);
	unlink(full);
}

static void place(const char *bdf, const char *to, const char *vendor, const char *class)
{
	char path[256], target[256];

	snprintf(path, sizeof(path), "%svendor", to);
	put(path, vendor, strlen(vendor));
	snprintf(path, sizeof(path), "%sclass", to);
	put(path, class, strlen(class));
	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s", folder, bdf);
	make_folders(path);
	snprintf(target, sizeof(target), "/%.*s", (int)strlen(to) - 1, to);
	if (symlink(target, path) != 0)
		abort();
}

static void clear(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r '%s'", folder);
	if (system(command) != 0)
		fprintf(stderr, "%s is left\n", folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	if (mkdtemp(folder) == NULL)
		return -1;
	atexit(clear);
	put("sys/devices/system/cpu/possible", "0-3\n", 4);
	place("0000:3d:00.0", GPU, "0x10de\n", "0x030200\n");
	place("0000:3e:00.0", NIC, "0x15b3\n", "0x020000\n");
	return 0;
}

static void judge(struct mr_root *root, const bool written[])
{
	static struct mr_needs needs;
	struct mr_host_facts *f = calloc(1, sizeof(*f));
	struct mr_probe probe = {.ctx = root, .ask = mr_probe_files};
	struct mr_finding findings[MR_CHECKS_COUNT];
	struct mr_check_in in = {.f = f, .needs = &needs};
	struct mr_facts_topology *t;
	struct mr_err err;

	if (f == NULL || mr_facts_read(root, &probe, f, &err) != 0) {
		free(f);
		return;
	}
	t = mr_facts_topology_new(f, &err);
	if (t == NULL)
		abort();
	mr_needs_general(f, t, &needs);
	mr_needs_probe(&needs, &probe, f);
	mr_facts_read_later(root, f);
	in.topology = t;
	mr_checks_run(&in, findings);
	for (size_t i = 0; i < MR_ARRAY_LEN(files); i++) {
		const struct mr_finding *found =
			files[i].check == NULL ? NULL : &findings[mr_checks_find(files[i].check)];

		if (found != NULL && !written[i] && found->verdict == MR_PASS) {
			fprintf(stderr, "%s passes without %s: %s\n", files[i].check, files[i].path,
				found->value);
			abort();
		}
	}
	free(mr_topology_text(&t->topology));
	free(mr_topology_config(&t->topology));
	mr_facts_topology_free(t);
	free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool written[MR_ARRAY_LEN(files)] = {false};
	struct mr_root root;
	struct mr_err err;

	while (size >= 3) {
		uint32_t i = data[0] % MR_ARRAY_LEN(files);
		size_t bytes = (size_t)(data[1] | data[2] << 8);

		data += 3;
		size -= 3;
		if (bytes > size)
			bytes = size;
		put(files[i].path, data, bytes);
		written[i] = true;
		data += bytes;
		size -= bytes;
	}
	if (mr_root_open(&root, folder, &err) != 0)
		abort();
	judge(&root, written);
	mr_root_close(&root);
	for (size_t i = 0; i < MR_ARRAY_LEN(files); i++)
		if (written[i])
			remove_file(files[i].path);
	return 0;
}
