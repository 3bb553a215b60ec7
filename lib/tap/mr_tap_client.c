/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_tap_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DATA_MAX (64u << 20) /* of a message; a lane's rings are less */
#define WAIT_MS 200
#define FINISH_NS 2000000000u

static int receive(struct mr_tap_client *c, void *to, size_t bytes, struct mr_err *err)
{
	size_t got = 0;

	while (got < bytes) {
		ssize_t n = recv(c->fd, (uint8_t *)to + got, bytes - got, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return mr_err_set(
				err, -errno, "reading from the instance: %s", strerror(errno));
		if (n == 0)
			return mr_err_set(err, -ECONNRESET,
				"the instance ended the capture without a word; did it end?");
		got += (size_t)n;
	}
	return 0;
}

static int say(struct mr_tap_client *c, const void *from, size_t bytes, struct mr_err *err)
{
	size_t at = 0;

	while (at < bytes) {
		ssize_t n = send(c->fd, (const uint8_t *)from + at, bytes - at, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return mr_err_set(err, -errno, "asking the instance: %s", strerror(errno));
		at += (size_t)n;
	}
	return 0;
}

int mr_tap_client_open(struct mr_tap_client *c, const char *dir,
	const struct mr_tap_request *request, const struct mr_tap_insn *insns, struct mr_err *err)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int n = snprintf(to.sun_path, sizeof(to.sun_path), "%s/" MR_TAP_SOCKET, dir), rc = 0;

	memset(c, 0, sizeof(*c));
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (n >= (int)sizeof(to.sun_path))
		rc = mr_err_set(err, -ENAMETOOLONG, "socket path in '%s' is too long", dir);
	else if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof(to)) != 0)
		rc = mr_err_set(err, -errno,
			"no capture through '%s': %s; has it lanes, and is it "
			"this user's?",
			to.sun_path, strerror(errno));
	if (rc == 0)
		rc = say(c, request, sizeof(*request), err);
	if (rc == 0)
		rc = say(c, insns, request->insns_count * sizeof(*insns), err);
	if (rc < 0)
		mr_tap_client_close(c);
	return rc;
}

/* Makes room for so many bytes and a 0, and keeps what is there. */
static int make_room(struct mr_tap_client *c, size_t bytes, struct mr_err *err)
{
	uint8_t *data;

	if (bytes > DATA_MAX)
		return mr_err_set(err, -EPROTO, "the instance speaks of %zu bytes at once", bytes);
	if (bytes + 1 <= c->room)
		return 0;
	data = realloc(c->data, bytes + 1);
	if (data == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory for %zu bytes of records", bytes);
	c->data = data;
	c->room = bytes + 1;
	return 0;
}

/* A message behind the `got` bytes of those that it goes on with. */
static int receive_message(struct mr_tap_client *c, size_t got, struct mr_err *err)
{
	struct mr_tap_message *m = &c->message;
	int rc = receive(c, m, sizeof(*m), err);

	if (rc == 0 && got > 0 && m->kind != MR_TAP_RECORDS)
		rc = mr_err_set(err, -EPROTO, "the instance breaks off within a slot");
	if (rc == 0)
		rc = make_room(c, got + m->bytes, err);
	if (rc == 0)
		rc = receive(c, c->data + got, m->bytes, err);
	if (rc < 0)
		return rc;
	m->bytes += (uint32_t)got;
	c->data[m->bytes] = '\0';
	return 0;
}

int mr_tap_client_next(struct mr_tap_client *c, struct mr_err *err)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	struct mr_tap_message *m = &c->message;
	int rc;

	if (poll(&p, 1, WAIT_MS) <= 0)
		return -EAGAIN;
	rc = receive_message(c, 0, err);
	while (rc == 0 && m->kind == MR_TAP_RECORDS && m->more != 0)
		rc = receive_message(c, m->bytes, err);
	if (rc == 0 && m->kind == MR_TAP_REFUSED)
		rc = mr_err_set(err, -EPERM, "%s", (const char *)c->data);
	return rc;
}

bool mr_tap_client_record(const struct mr_tap_client *c, size_t *at,
	struct mr_tap_record *ret_record, const uint8_t **ret_frame)
{
	struct mr_tap_record *r = ret_record;
	size_t left = c->message.bytes - *at;

	if (c->message.kind != MR_TAP_RECORDS || left < sizeof(*r))
		return false;
	memcpy(r, c->data + *at, sizeof(*r));
	if (r->bytes < sizeof(*r) || r->bytes > left || r->kept > r->length ||
		sizeof(*r) + r->shift + r->kept > r->bytes)
		return false;
	*ret_frame = c->data + *at + sizeof(*r) + r->shift;
	*at += r->bytes;
	return true;
}

void mr_tap_client_finish(struct mr_tap_client *c)
{
	uint64_t until = mr_clock_ns() + FINISH_NS;
	int rc = shutdown(c->fd, SHUT_WR) == 0 ? 0 : -errno;

	while ((rc == 0 || rc == -EAGAIN) && c->message.kind != MR_TAP_ENDED &&
		mr_clock_ns() < until)
		rc = mr_tap_client_next(c, NULL);
}

void mr_tap_client_close(struct mr_tap_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->data);
	*c = (struct mr_tap_client){.fd = -1};
}
