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

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
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

/* DPDK marks a live process by a lock on its configuration file. */
static bool prefix_lives(const char *prefix)
{
	static const char *const bases[] = {"/run/dpdk", "/tmp/dpdk"};
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[256];
	int fd, rc;

	for (size_t i = 0; i < MR_ARRAY_LEN(bases); i++) {
		snprintf(path, sizeof(path), "%s/%.64s/config", bases[i], prefix);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			continue;
		rc = fcntl(fd, F_GETLK, &lock);
		close(fd);
		if (rc == 0 && lock.l_type != F_UNLCK)
			return true;
	}
	return false;
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
		snprintf(text, MR_PROBE_TEXT_MAX, "live %d\n", prefix_lives(question + 7));
	else
		rc = ask_child(m, question, text);
	if (rc == 0 && root->recorder != NULL) {
		snprintf(path, sizeof(path), "millrace/probe/%s", question);
		root->recorder(root->recorder_ctx, MR_ROOT_SEEN_FILE, path, text, strlen(text));
	}
	return rc;
}
