/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_host.h"

#include "mr_parse.h"
#include "mr_root.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX (64u << 10) /* /proc/cpuinfo: the first processors are enough */
#define POSSIBLE "sys/devices/system/cpu/possible"
#define ONLINE "sys/devices/system/cpu/online"

static int read_text(struct mr_root *root, const char *path, char *text)
{
	int rc = mr_root_read(root, path, text, FILE_BYTES_MAX, NULL);

	return rc == -EFBIG ? 0 : rc;
}

static int read_cpus(struct mr_root *root, char *text, struct mr_host *h, struct mr_err *err)
{
	bool possible[MR_CPUS_MAX] = {false};
	uint32_t end;
	int rc = read_text(root, POSSIBLE, text);

	if (rc != 0)
		return mr_err_set(err, rc, "cannot read %s/" POSSIBLE ": %s; is sysfs mounted?",
			root->path, strerror(-rc));
	if (!mr_parse_list(text, possible, MR_CPUS_MAX, &h->cpus) || h->cpus == 0)
		return mr_err_set(
			err, -EBADMSG, "%s/" POSSIBLE " is not a list of CPUs", root->path);
	/* A kernel without CPU hotplug has no list of those online: all are. */
	rc = read_text(root, ONLINE, text);
	h->online_told = rc == 0 || rc == -ENOENT;
	if (rc != 0) {
		memcpy(h->cpu_online, possible, sizeof(possible));
		return 0;
	}
	if (!mr_parse_list(text, h->cpu_online, MR_CPUS_MAX, &end) || end == 0)
		return mr_err_set(err, -EBADMSG, "%s/" ONLINE " is not a list of CPUs", root->path);
	return 0;
}

/* Where the machine does not say, every CPU that is on is allowed. */
static void read_affinity(struct mr_root *root, char *text, struct mr_host *h)
{
	const char *list = NULL;
	char word[4096];
	uint32_t end = 0;

	if (read_text(root, "proc/self/status", text) == 0)
		list = mr_parse_line(text, "Cpus_allowed_list");
	if (list != NULL) {
		mr_parse_word(list, word, sizeof(word));
		h->allowed_told = mr_parse_list(word, h->cpu_allowed, MR_CPUS_MAX, &end) && end > 0;
		if (h->allowed_told)
			return;
	}
	memcpy(h->cpu_allowed, h->cpu_online, sizeof(h->cpu_allowed));
}

/* The value in kB of a line of /proc/meminfo, in bytes; 0 where there is none. */
static uint64_t meminfo_bytes(const char *text, const char *key)
{
	const char *s = mr_parse_line(text, key);
	uint64_t v;

	return s != NULL && mr_parse_take_u64(&s, &v) && v <= UINT64_MAX / 1024 ? v * 1024 : 0;
}

static void read_memory(struct mr_root *root, char *text, struct mr_host *h)
{
	char path[128];

	if (read_text(root, "proc/meminfo", text) != 0)
		return;
	h->memory_bytes = meminfo_bytes(text, "MemAvailable");
	h->hugepage_bytes = meminfo_bytes(text, "Hugepagesize");
	if (h->hugepage_bytes == 0)
		return;
	snprintf(path, sizeof(path), "sys/kernel/mm/hugepages/hugepages-%llukB/free_hugepages",
		(unsigned long long)h->hugepage_bytes / 1024);
	if (read_text(root, path, text) != 0 || !mr_parse_u64(text, &h->hugepages_free) ||
		h->hugepages_free > UINT64_MAX / h->hugepage_bytes)
		h->hugepages_free = 0;
}

/* "ospke": the CPU has protection keys and the kernel has switched them on. */
static void read_flags(struct mr_root *root, char *text, struct mr_host *h)
{
	char *flags, *end;

	if (read_text(root, "proc/cpuinfo", text) != 0)
		return;
	flags = strstr(text, "\nflags");
	if (flags == NULL)
		return;
	end = strchr(flags + 1, '\n');
	if (end != NULL)
		*end = '\0';
	h->protection_keys = mr_parse_token(flags, "ospke") != NULL;
}

int mr_host_read_root(struct mr_root *root, struct mr_host *ret_host, struct mr_err *err)
{
	struct mr_host *h = ret_host;
	char *text = malloc(FILE_BYTES_MAX);
	int rc;

	memset(h, 0, sizeof(*h));
	if (text == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory while reading the host's facts");
	rc = read_cpus(root, text, h, err);
	if (rc == 0) {
		read_affinity(root, text, h);
		read_memory(root, text, h);
		read_flags(root, text, h);
		h->known = true;
	}
	free(text);
	return rc;
}

int mr_host_read(const char *root, struct mr_host *ret_host, struct mr_err *err)
{
	struct mr_root r;
	int rc;

	memset(ret_host, 0, sizeof(*ret_host));
	rc = mr_root_open(&r, root, err);
	if (rc != 0)
		return rc;
	rc = mr_host_read_root(&r, ret_host, err);
	mr_root_close(&r);
	return rc;
}
