/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_probe_live - the libraries and commands of this machine, asked in a child.
 *
 * A driver may block for ever, end the process or leave threads behind, and CUDA
 * cannot be started twice in one process. So each question has a child of its
 * own, which writes its lines into a pipe; what it wrote in time is the answer.
 */
#define _GNU_SOURCE 1
#include "mr_probe.h"
#include "mr_probe_priv.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void mr_probe_say(int fd, const char *key, long long value)
{
	char line[96];
	int n = snprintf(line, sizeof(line), "%.60s %lld\n", key, value);
	ssize_t done = write(fd, line, (size_t)n); /* less than PIPE_BUF: whole or not at all */

	(void)done;
}

/* True where a living process has a lock on the file; what may not be opened is *denied. */
static bool is_locked(const char *path, bool *denied)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int rc;

	if (fd < 0) {
		*denied |= errno == EACCES || errno == EPERM;
		return false;
	}
	rc = fcntl(fd, F_GETLK, &lock);
	close(fd);
	return rc == 0 && lock.l_type != F_UNLCK;
}

/*
 * DPDK marks a live process by a lock on its configuration file. That lies below the runtime
 * folder that a service manager or a login gave it (/run/NAME, /run/user/UID), else in /run or
 * /tmp.
 */
static bool has_configuration(const char *prefix, bool *denied)
{
	static const char *const bases[] = {
		"/run/dpdk", "/tmp/dpdk", "/run/*/dpdk", "/run/*/*/dpdk"};
	bool lives = false;
	char path[128];
	glob_t found;

	for (size_t i = 0; i < MR_ARRAY_LEN(bases) && !lives; i++) {
		snprintf(path, sizeof(path), "%s/%.64s/config", bases[i], prefix);
		if (glob(path, GLOB_NOSORT, NULL, &found) != 0)
			continue;
		for (size_t k = 0; k < found.gl_pathc && !lives; k++)
			lives = is_locked(found.gl_pathv[k], denied);
		globfree(&found);
	}
	return lives;
}

static bool maps_a_page(const char *pid, const char *page, bool *denied)
{
	char path[64], line[512];
	bool found = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%.16s/maps", pid);
	maps = fopen(path, "re");
	/* One that has ended meanwhile is not there: ENOENT, ESRCH. */
	*denied |= maps == NULL && (errno == EACCES || errno == EPERM);
	while (!found && maps != NULL && fgets(line, sizeof(line), maps) != NULL)
		found = strstr(line, page) != NULL;
	if (maps != NULL)
		fclose(maps);
	return found;
}

/* Whatever it calls its folder: a process that has one of the prefix's pages in its memory. */
static bool has_pages(const char *prefix, bool *denied)
{
	DIR *proc = opendir("/proc");
	const struct dirent *e;
	bool lives = false;
	char page[80];

	snprintf(page, sizeof(page), "/%.64smap_", prefix);
	/* Where processes of others are hidden, the first one is. */
	*denied |= proc == NULL || access("/proc/1", F_OK) != 0;
	while (proc != NULL && !lives && (e = readdir(proc)) != NULL)
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			lives = maps_a_page(e->d_name, page, denied);
	if (proc != NULL)
		closedir(proc);
	return lives;
}

static void tell_prefix(const char *prefix, char text[MR_PROBE_TEXT_MAX])
{
	bool denied = false;
	bool lives = has_configuration(prefix, &denied) || has_pages(prefix, &denied);

	snprintf(text, MR_PROBE_TEXT_MAX, "%s\n",
		lives            ? "live 1"
			: denied ? "denied 1"
				 : "live 0");
}

static void answer(struct mr_root *root, const char *question, int fd)
{
	if (strncmp(question, "gpu/", 4) == 0)
		mr_probe_child_gpu(question + 4, fd);
	else if (strncmp(question, "nic/", 4) == 0)
		mr_probe_child_nic(root, question + 4, fd);
	else if (strncmp(question, "pair/", 5) == 0)
		mr_probe_child_pair(root, question + 5, fd);
}

/* What libraries print of themselves has no place in a report. */
static void silence(void)
{
	int null = open("/dev/null", O_RDWR);

	for (int i = 0; null >= 0 && i <= 2; i++)
		dup2(null, i);
	signal(SIGPIPE, SIG_IGN);
}

static int collect(int fd, uint64_t wait_ms, char text[MR_PROBE_TEXT_MAX])
{
	uint64_t end = mr_clock_ns() + wait_ms * 1000000;
	size_t have = 0;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now = mr_clock_ns();
		ssize_t got;

		text[have] = '\0';
		if (now >= end)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)((end - now) / 1000000) + 1) <= 0)
			continue;
		got = read(fd, text + have, MR_PROBE_TEXT_MAX - 1 - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0 || have + (size_t)got >= MR_PROBE_TEXT_MAX - 1) {
			if (got > 0)
				have += (size_t)got;
			text[have] = '\0';
			return have > 0 ? 0 : -ENOENT;
		}
		have += (size_t)got;
	}
}

static int ask_child(
	const struct mr_probe_machine *m, const char *question, char text[MR_PROBE_TEXT_MAX])
{
	int pipes[2];
	int status, rc;
	pid_t child;

	if (pipe2(pipes, O_CLOEXEC) != 0)
		return -errno;
	child = fork();
	if (child == 0) {
		m->root->recorder = NULL;
		silence();
		answer(m->root, question, pipes[1]);
		_exit(0);
	}
	close(pipes[1]);
	if (child < 0) {
		close(pipes[0]);
		return -EAGAIN;
	}
	rc = collect(pipes[0], m->wait_ms, text);
	close(pipes[0]);
	kill(child, SIGKILL);
	/* One that sleeps in a driver cannot be ended; init takes it over then. */
	if (rc != -ETIMEDOUT)
		waitpid(child, &status, 0);
	return rc;
}

int mr_probe_live(void *ctx, const char *question, char text[MR_PROBE_TEXT_MAX])
{
	struct mr_probe_machine *m = ctx;
	struct mr_root *root = m->root;
	char path[MR_ROOT_PATH_MAX];
	int rc = 0;

	if (strcmp(question, "software") == 0)
		snprintf(text, MR_PROBE_TEXT_MAX, "extmem_dmabuf %d\n",
			dlsym(RTLD_DEFAULT, "rte_extmem_register_dmabuf") != NULL);
	else if (strncmp(question, "prefix/", 7) == 0)
		tell_prefix(question + 7, text);
	else
		rc = ask_child(m, question, text);
	if (rc == 0 && root->recorder != NULL) {
		snprintf(path, sizeof(path), "millrace/probe/%s", question);
		root->recorder(root->recorder_ctx, MR_ROOT_SEEN_FILE, path, text, strlen(text));
	}
	return rc;
}
