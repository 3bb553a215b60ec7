/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE 1
#include "mr_host.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES_MAX (64u << 10) /* /proc/cpuinfo: the first processors are enough */

/* Reads at most FILE_BYTES_MAX - 1 bytes of root/path and ends them with NUL. */
static int read_text(const char *root, const char *path, char text[FILE_BYTES_MAX])
{
	char full[1024];
	size_t bytes = 0;
	ssize_t got;
	int fd;

	if (snprintf(full, sizeof(full), "%s/%s", root, path) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	/* A replayed folder may hold a pipe where a file belongs: never wait for it. */
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	do {
		got = read(fd, text + bytes, FILE_BYTES_MAX - 1 - bytes);
		if (got > 0)
			bytes += (size_t)got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	got = got < 0 ? -errno : 0;
	close(fd);
	text[bytes] = '\0';
	return (int)got;
}

/* A decimal number at *text, which is moved behind it. */
static bool take_number(const char **text, uint64_t *ret_value)
{
	const char *s = *text;
	uint64_t v = 0;

	while (*s >= '0' && *s <= '9') {
		if (v > (UINT64_MAX - 9) / 10)
			return false;
		v = v * 10 + (uint64_t)(*s++ - '0');
	}
	if (s == *text)
		return false;
	*text = s;
	*ret_value = v;
	return true;
}

/* A cpu list as the kernel writes it ("0-3,8\n"); numbers beyond MR_CPUS_MAX are left out. */
static bool parse_cpu_list(const char *text, bool set[MR_CPUS_MAX], uint32_t *ret_end)
{
	uint64_t from, to;

	*ret_end = 0;
	for (;;) {
		if (!take_number(&text, &from))
			return false;
		to = from;
		if (*text == '-') {
			text++;
			if (!take_number(&text, &to) || to < from)
				return false;
		}
		for (uint64_t i = from; i <= to && i < MR_CPUS_MAX; i++) {
			set[i] = true;
			*ret_end = (uint32_t)i + 1;
		}
		if (*text == '\n' || *text == '\0')
			return true;
		if (*text++ != ',')
			return false;
	}
}

static int read_cpus(const char *root, char *text, struct mr_host *h, struct mr_err *err)
{
	bool possible[MR_CPUS_MAX] = {false};
	uint32_t end;
	int rc = read_text(root, "sys/devices/system/cpu/possible", text);

	if (rc != 0)
		return mr_err_set(err, rc,
			"cannot read %s/sys/devices/system/cpu/possible: %s; is sysfs mounted?",
			root, strerror(-rc));
	if (!parse_cpu_list(text, possible, &h->cpus))
		return mr_err_set(err, -EBADMSG,
			"%s/sys/devices/system/cpu/possible is not a list of CPUs", root);
	/* A kernel without CPU hotplug has no list of those online: all are. */
	if (read_text(root, "sys/devices/system/cpu/online", text) != 0) {
		memcpy(h->cpu_online, possible, sizeof(possible));
		return 0;
	}
	if (!parse_cpu_list(text, h->cpu_online, &end))
		return mr_err_set(err, -EBADMSG,
			"%s/sys/devices/system/cpu/online is not a list of CPUs", root);
	return 0;
}

/* Only the running machine has an affinity; in a replayed one every CPU that is on is allowed. */
static int read_affinity(const char *root, struct mr_host *h, struct mr_err *err)
{
	cpu_set_t set;

	if (strcmp(root, "/") != 0) {
		memcpy(h->cpu_allowed, h->cpu_online, sizeof(h->cpu_allowed));
		return 0;
	}
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return mr_err_set(err, -errno, "sched_getaffinity failed: %s", strerror(errno));
	for (uint32_t i = 0; i < MR_CPUS_MAX && i < CPU_SETSIZE; i++)
		h->cpu_allowed[i] = CPU_ISSET(i, &set);
	return 0;
}

/* The value in kB of a line of /proc/meminfo, in bytes; 0 where there is none. */
static uint64_t meminfo_bytes(const char *text, const char *key)
{
	size_t n = strlen(key);
	uint64_t v;

	while (text != NULL) {
		if (strncmp(text, key, n) == 0 && text[n] == ':') {
			text += n + 1;
			text += strspn(text, " \t");
			return take_number(&text, &v) && v <= UINT64_MAX / 1024 ? v * 1024 : 0;
		}
		text = strchr(text, '\n');
		if (text != NULL)
			text++;
	}
	return 0;
}

static void read_memory(const char *root, char *text, struct mr_host *h)
{
	const char *s = text;
	char path[128];

	if (read_text(root, "proc/meminfo", text) != 0)
		return;
	h->memory_bytes = meminfo_bytes(text, "MemAvailable");
	h->hugepage_bytes = meminfo_bytes(text, "Hugepagesize");
	if (h->hugepage_bytes == 0)
		return;
	snprintf(path, sizeof(path), "sys/kernel/mm/hugepages/hugepages-%llukB/free_hugepages",
		(unsigned long long)h->hugepage_bytes / 1024);
	if (read_text(root, path, text) != 0 || !take_number(&s, &h->hugepages_free) ||
		h->hugepages_free > UINT64_MAX / h->hugepage_bytes)
		h->hugepages_free = 0;
}

/* "ospke": the CPU has protection keys and the kernel has switched them on. */
static void read_flags(const char *root, char *text, struct mr_host *h)
{
	const char *line;
	const char *end;

	if (read_text(root, "proc/cpuinfo", text) != 0)
		return;
	line = strstr(text, "\nflags");
	if (line == NULL)
		return;
	end = strchr(line + 1, '\n');
	for (line = strstr(line, " ospke"); line != NULL && (end == NULL || line < end);
		line = strstr(line + 1, " ospke"))
		if (line[6] == ' ' || line[6] == '\n' || line[6] == '\0')
			h->protection_keys = true;
}

int mr_host_read(const char *root, struct mr_host *ret_host, struct mr_err *err)
{
	struct mr_host *h = ret_host;
	char *text = malloc(FILE_BYTES_MAX);
	int rc;

	memset(h, 0, sizeof(*h));
	if (text == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory while reading the host's facts");
	rc = read_cpus(root, text, h, err);
	if (rc == 0)
		rc = read_affinity(root, h, err);
	if (rc == 0) {
		read_memory(root, text, h);
		read_flags(root, text, h);
		h->known = true;
	}
	free(text);
	return rc;
}
