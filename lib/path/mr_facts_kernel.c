/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_facts_priv.h"

#include "mr_parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROC_BYTES_MAX (64u << 10)

/* "none [integrity] confidentiality": the word in brackets is in force. */
static void read_lockdown(struct mr_root *r, struct mr_fact_text *ret)
{
	char *from, *to;

	mr_facts_text_at(r, "sys/kernel/security/lockdown", ret);
	/* Only a list of security modules without it tells a kernel that has none. */
	if (ret->state == MR_FACT_ABSENT) {
		struct mr_fact_text lsm;

		mr_facts_text_at(r, "sys/kernel/security/lsm", &lsm);
		if (lsm.state != MR_FACT_KNOWN || strlen(lsm.v) + 1 == sizeof(lsm.v) ||
			strstr(lsm.v, "lockdown") != NULL)
			ret->state = MR_FACT_UNREAD;
	}
	if (ret->state != MR_FACT_KNOWN)
		return;
	from = strchr(ret->v, '[');
	to = from == NULL ? NULL : strchr(from, ']');
	if (to == NULL) {
		ret->state = MR_FACT_STRANGE;
		return;
	}
	*to = '\0';
	memmove(ret->v, from + 1, strlen(from + 1) + 1);
}

/* One line of printable ASCII; the kernel ends even an empty one. */
static bool is_line(const char *text, size_t bytes)
{
	for (size_t i = 0; i + 1 < bytes; i++)
		if ((text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7f)
			return false;
	return bytes > 0;
}

void mr_facts_kernel(struct mr_root *r, struct mr_host_facts *f)
{
	struct mr_facts_kernel *k = &f->kernel;
	size_t bytes = 0;
	int rc;

	mr_facts_text_at(r, "proc/sys/kernel/osrelease", &k->release);
	read_lockdown(r, &k->lockdown);
	mr_facts_text_at(r, "sys/devices/system/clocksource/clocksource0/current_clocksource",
		&k->clocksource);
	mr_facts_u64_at(r, "proc/sys/kernel/numa_balancing", &k->numa_balancing);
	mr_facts_u64_at(r, "proc/sys/vm/zone_reclaim_mode", &k->zone_reclaim_mode);
	rc = mr_root_read(r, "proc/cmdline", k->cmdline, sizeof(k->cmdline), &bytes);
	k->cmdline_state = mr_facts_state_of(rc);
	if (rc == 0 && !is_line(k->cmdline, bytes))
		k->cmdline_state = MR_FACT_STRANGE;
}

/* The soft limit behind its name in /proc/self/limits. */
static void read_limit(const char *text, const char *name, struct mr_fact_u64 *ret)
{
	const char *s = mr_parse_line(text, name);

	ret->state = MR_FACT_STRANGE;
	if (s == NULL)
		return;
	if (strncmp(s, "unlimited", 9) == 0) {
		ret->v = UINT64_MAX;
		ret->state = MR_FACT_KNOWN;
	} else if (mr_parse_take_u64(&s, &ret->v)) {
		ret->state = MR_FACT_KNOWN;
	}
}

/* Walks up from the process's own group to the first that has the file. */
static void read_cpuset_at(struct mr_root *r, const char *mount, const char *group,
	const char *file, struct mr_facts_process *p)
{
	char path[MR_ROOT_PATH_MAX];
	char list[PROC_BYTES_MAX / 4];
	char dir[512];
	uint32_t end;
	int rc;

	snprintf(dir, sizeof(dir), "%s", group);
	for (;;) {
		char *slash;

		snprintf(path, sizeof(path), "%s%s/%s", mount, strcmp(dir, "/") == 0 ? "" : dir,
			file);
		rc = mr_root_read(r, path, list, sizeof(list), NULL);
		p->cpuset_state = mr_facts_state_of(rc);
		if (rc == 0 && (!mr_parse_list(list, p->cpuset, MR_CPUS_MAX, &end) || end == 0))
			p->cpuset_state = MR_FACT_STRANGE;
		slash = strrchr(dir, '/');
		if (p->cpuset_state != MR_FACT_ABSENT || slash == NULL)
			return;
		*slash = '\0';
	}
}

static void read_cpuset(struct mr_root *r, char *text, struct mr_facts_process *p)
{
	char group[512] = "";
	int rc = mr_root_read(r, "proc/self/cgroup", text, PROC_BYTES_MAX, NULL);

	p->cpuset_state = mr_facts_state_of(rc);
	if (rc != 0)
		return;
	for (char *line = strtok_r(text, "\n", &text); line != NULL;
		line = strtok_r(NULL, "\n", &text)) {
		char *controller = strchr(line, ':');
		char *path = controller == NULL ? NULL : strchr(controller + 1, ':');

		if (path == NULL || path[1] != '/') {
			p->cpuset_state = MR_FACT_STRANGE;
			return;
		}
		*path++ = '\0';
		if (strcmp(controller + 1, "cpuset") == 0) {
			read_cpuset_at(r, "sys/fs/cgroup/cpuset", path, "cpuset.effective_cpus", p);
			return;
		}
		if (controller[1] == '\0')
			snprintf(group, sizeof(group), "%s", path);
	}
	p->cpuset_state = MR_FACT_ABSENT;
	if (group[0] != '\0')
		read_cpuset_at(r, "sys/fs/cgroup", group, "cpuset.cpus.effective", p);
}

void mr_facts_process(struct mr_root *r, struct mr_host_facts *f)
{
	struct mr_facts_process *p = &f->process;
	char *text = malloc(PROC_BYTES_MAX);
	const char *caps;
	int rc;

	if (text == NULL)
		return;
	rc = mr_root_read(r, "proc/self/limits", text, PROC_BYTES_MAX, NULL);
	p->memlock_bytes.state = p->open_files.state = mr_facts_state_of(rc);
	if (rc == 0) {
		read_limit(text, "Max locked memory", &p->memlock_bytes);
		read_limit(text, "Max open files", &p->open_files);
	}
	rc = mr_root_read(r, "proc/self/status", text, PROC_BYTES_MAX, NULL);
	p->caps_effective.state = mr_facts_state_of(rc);
	if (rc == 0) {
		caps = mr_parse_line(text, "CapEff");
		if (caps == NULL || !mr_parse_take_hex(&caps, &p->caps_effective.v))
			p->caps_effective.state = MR_FACT_STRANGE;
	}
	read_cpuset(r, text, p);
	free(text);
	f->dumps = mr_facts_state_of(mr_root_may(r, "var/log", R_OK | W_OK | X_OK));
}

static bool is_there(struct mr_root *r, const char *path)
{
	uint32_t mode;

	return mr_root_mode(r, path, &mode) == 0;
}

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build ..." */
static void read_driver(struct mr_root *r, struct mr_facts_modules *m)
{
	char line[512];
	int rc = mr_root_read(r, "proc/driver/nvidia/version", line, sizeof(line), NULL);
	const char *s;

	m->driver_state = mr_facts_state_of(rc == -EFBIG ? 0 : rc);
	if (m->driver_state != MR_FACT_KNOWN)
		return;
	m->driver_open = strstr(line, "Open Kernel Module") != NULL;
	s = strstr(line, "Kernel Module");
	s = s == NULL ? NULL : strpbrk(s, "0123456789\n");
	/* The x86_64 in between holds digits too: a version is a number with a dot. */
	while (s != NULL && *s != '\0' && *s != '\n') {
		size_t digits = strspn(s, "0123456789");

		if (digits > 0 && s[digits] == '.') {
			mr_parse_word(s, m->driver, sizeof(m->driver));
			return;
		}
		s += strcspn(s, " \n");
		s += strspn(s, " ");
	}
	m->driver_state = MR_FACT_STRANGE;
}

void mr_facts_modules(struct mr_root *r, struct mr_host_facts *f)
{
	struct mr_facts_modules *m = &f->modules;

	mr_facts_text_at(r, "sys/module/nvidia/version", &m->nvidia);
	mr_facts_text_at(r, "sys/module/nvidia_peermem/version", &m->peermem);
	mr_facts_text_at(r, "sys/module/nv_peer_mem/version", &m->peermem_legacy);
	mr_facts_text_at(r, "sys/kernel/mm/memory_peers/nv_mem/version", &m->memory_peers);
	if (m->memory_peers.state == MR_FACT_ABSENT)
		mr_facts_text_at(
			r, "sys/kernel/mm/memory_peers/nv_mem_nc/version", &m->memory_peers);
	mr_facts_text_at(r, "sys/module/mlx5_core/version", &m->mlx5_core);
	mr_facts_text_at(r, "sys/module/ib_core/version", &m->ib_core);
	m->peermem_loaded =
		is_there(r, "sys/module/nvidia_peermem") || is_there(r, "sys/module/nv_peer_mem");
	m->mlx5_loaded = is_there(r, "sys/module/mlx5_core");
	read_driver(r, m);
}
