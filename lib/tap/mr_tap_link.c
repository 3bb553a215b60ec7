/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_tap_link.h"

#include "mr_report_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Workers have to see it first, and they look within milliseconds. */
#define ANSWER_S 5

static int connect_to(const char *name, int *ret_fd, struct mr_err *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const struct timeval wait = {.tv_sec = ANSWER_S};
	struct mr_report_client client;
	int fd, rc = mr_report_client_open(&client, name, err);

	if (rc != 0)
		return rc;
	mr_report_client_close(&client);
	if (snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", client.dir, MR_TAP_SOCKET) >=
		(int)sizeof(addr.sun_path))
		return mr_err_set(err, -ENAMETOOLONG,
			"the runtime directory of instance '%s' has too long a name", name);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return mr_err_set(err, -errno, "a socket cannot be made: %s", strerror(errno));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
		rc = mr_err_set(err, -errno, "instance '%s' takes no captures, at %s: %s", name,
			addr.sun_path, strerror(errno));
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

int mr_tap_open(
	const char *name, const struct mr_tap_request *request, int *ret_fd, struct mr_err *err)
{
	const struct timeval for_ever = {0};
	struct mr_tap_reply reply = {0};
	int fd = -1, rc = connect_to(name, &fd, err);

	if (rc != 0)
		return rc;
	/* Who is refused at once may find nobody there to read this, and an answer all the same. */
	(void)!send(fd, request, sizeof(*request), MSG_NOSIGNAL);
	if (recv(fd, &reply, sizeof(reply), MSG_WAITALL) != sizeof(reply))
		rc = mr_err_set(err, -ECONNRESET,
			"instance '%s' did not answer; it is starting, stopping or of another "
			"version",
			name);
	reply.sentence[sizeof(reply.sentence) - 1] = '\0';
	if (rc == 0 && reply.code != 0)
		rc = mr_err_set(err, reply.code < 0 ? reply.code : -EPROTO, "%s", reply.sentence);
	if (rc == 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &for_ever, sizeof(for_ever)) == 0) {
		*ret_fd = fd;
		return 0;
	}
	close(fd);
	return rc;
}
