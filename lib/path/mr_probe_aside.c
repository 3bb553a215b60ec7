/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE 1
#include "mr_probe_aside.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS 1000u /* for the child's own work, beside its wait for the answer */

struct answer {
	int32_t rc;
	char text[MR_PROBE_TEXT_MAX];
};

/* The child: nothing is left to it of its parent but the socket. */
static _Noreturn void serve(int fd, uint32_t wait_ms)
{
	struct mr_root root;
	struct mr_err err;
	struct mr_probe_machine m = {.root = &root, .wait_ms = wait_ms};
	char question[128];
	ssize_t got;

	/* A stop is the parent's to hear. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (dup2(fd, 3) != 3 || close_range(4, ~0u, 0) != 0 || mr_root_open(&root, "/", &err) < 0)
		_exit(1);
	while ((got = recv(3, question, sizeof(question) - 1, 0)) > 0) {
		struct answer a = {0};

		question[got] = '\0';
		a.rc = mr_probe_live(&m, question, a.text);
		if (send(3, &a, sizeof(a), MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

int mr_probe_aside_open(struct mr_probe_aside *a, uint32_t wait_ms, struct mr_err *err)
{
	int pair[2];

	*a = (struct mr_probe_aside){.fd = -1, .wait_ms = wait_ms};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return mr_err_set(err, -errno, "a socket for questions: %s", strerror(errno));
	a->pid = fork();
	if (a->pid == 0)
		serve(pair[1], wait_ms);
	close(pair[1]);
	a->fd = pair[0];
	if (a->pid < 0) {
		int code = errno;

		close(a->fd);
		*a = (struct mr_probe_aside){.fd = -1};
		return mr_err_set(err, -code, "a process for questions: %s", strerror(code));
	}
	return 0;
}

/* Its answer would be taken for that to a later question. */
static int give_up(struct mr_probe_aside *a, int rc)
{
	close(a->fd);
	a->fd = -1;
	return rc;
}

int mr_probe_aside_ask(void *ctx, const char *question, char text[MR_PROBE_TEXT_MAX])
{
	struct mr_probe_aside *a = ctx;
	struct pollfd p = {.fd = a->fd, .events = POLLIN};
	uint64_t end = mr_clock_ns() + (a->wait_ms + GRACE_MS) * 1000000ull;
	struct answer got;
	int rc;

	if (a->pid == 0 || a->fd < 0)
		return -ENOTSUP;
	if (send(a->fd, question, strlen(question), MSG_NOSIGNAL) < 0)
		return give_up(a, -ENOTSUP);
	do {
		uint64_t now = mr_clock_ns();

		rc = now >= end ? 0 : poll(&p, 1, (int)((end - now) / 1000000) + 1);
	} while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		return give_up(a, -ETIMEDOUT);
	if (recv(a->fd, &got, sizeof(got), MSG_DONTWAIT) != (ssize_t)sizeof(got))
		return give_up(a, -ENOTSUP);
	memcpy(text, got.text, sizeof(got.text));
	return got.rc;
}

void mr_probe_aside_close(struct mr_probe_aside *a)
{
	if (a->pid == 0)
		return;
	if (a->fd >= 0)
		close(a->fd);
	/* One that waits for a driver hears of nothing else. */
	kill(a->pid, SIGKILL);
	while (waitpid(a->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	*a = (struct mr_probe_aside){.fd = -1};
}
