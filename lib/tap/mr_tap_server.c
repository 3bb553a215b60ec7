/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mr_tap_server.h"

#include "mr_gpu.h"
#include "mr_tap_check.h"
#include "mr_tap_wire.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENTS_MAX 32u
#define REQUEST_NS 2000000000u /* that a client may take to say what it wants */
#define LINGER_NS 1000000000u  /* that clients may take to read the rest */
#define COUNTERS_NS 100000000u /* between two looks at the stages' counters */
#define LEARN_NS 200000u       /* that a device's clock is looked at, when a capture begins */
#define TURN_MS 1              /* between two looks at the rings */
#define ROOM (sizeof(struct mr_tap_message) + MR_TAP_TEXT_MAX)

struct client {
	int fd;
	uint64_t since_ns; /* it has been here, or was done */
	bool asks;         /* its request is not whole yet */
	bool ended;        /* its tap; what is in the rings is not for it any more */
	bool closing;      /* once out is sent */
	uint32_t lane;
	union {
		struct mr_tap_request request;
		uint8_t bytes[sizeof(struct mr_tap_request) +
			MR_TAP_INSNS_MAX * sizeof(struct mr_tap_insn)];
	} in;
	size_t in_bytes;
	uint8_t out[ROOM];
	size_t out_bytes, out_at;
	size_t piece;    /* bytes of worker's ring that are still to follow out */
	uint32_t worker; /* whose records are being sent, */
	uint32_t turn;   /* and who is asked first for the next ones; */
	bool more;       /* only they may follow, since a slot is not whole */
	uint64_t lost;   /* of the lane, when it began */
	uint64_t counters_ns;
	char counters[MR_TAP_TEXT_MAX];
};

struct lane {
	struct client *client; /* that has its tap */
	bool ends;             /* its workers have not all taken that it ended */
	bool timed;            /* offset_ns is of this capture */
	int64_t offset_ns;     /* of the device's clock to CLOCK_MONOTONIC */
};

struct mr_tap_server {
	struct mr_tap_source source;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int fd, stop;
	pthread_t thread;
	bool runs;
	int64_t real_ns; /* from CLOCK_MONOTONIC to CLOCK_REALTIME, when it began to serve */
	struct lane *lanes;
	struct client *clients[CLIENTS_MAX];
	uint32_t clients_count;
};

static int64_t real_offset(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec - (int64_t)mr_clock_ns();
}

/*
 * The clock of a device is known by what it says and when that is seen; the least delay of some
 * looks counts. Once for a capture, so that times do not go back.
 */
static void learn_clock(struct mr_tap_server *s, uint32_t lane, uint32_t worker)
{
	const struct mr_tap_target *t = &s->source.lanes[lane];
	const uint64_t begun = mr_clock_ns();
	struct lane *l = &s->lanes[lane];
	uint64_t now = begun;

	if (l->timed)
		return;
	while (now - begun < LEARN_NS) {
		int64_t offset = (int64_t)(now - mr_gpu_tap_clock_ns(t->gpu, t->index, worker));

		if (!l->timed || offset < l->offset_ns)
			l->offset_ns = offset;
		l->timed = true;
		now = mr_clock_ns();
	}
}

/* Puts a message before what the client is sent next; text goes with it. */
static void put(struct mr_tap_server *s, struct client *c, enum mr_tap_kind kind,
	struct mr_tap_message m, const char *text)
{
	const struct mr_tap_target *t = &s->source.lanes[c->lane];

	m.kind = kind;
	if (!c->asks) {
		m.lost = mr_gpu_tap_lost(t->gpu, t->index) - c->lost;
		m.offset_ns = s->lanes[c->lane].offset_ns + s->real_ns;
	}
	if (text != NULL)
		m.bytes = (uint32_t)strlen(text);
	memcpy(c->out, &m, sizeof(m));
	if (text != NULL)
		memcpy(c->out + sizeof(m), text, m.bytes);
	c->out_bytes = sizeof(m) + (text != NULL ? m.bytes : 0);
	c->out_at = 0;
}

static void end_tap(struct mr_tap_server *s, struct client *c)
{
	const struct mr_tap_target *t = &s->source.lanes[c->lane];

	if (!c->asks && !c->ended)
		mr_gpu_tap_end(t->gpu, t->index);
	c->ended = true;
	c->since_ns = mr_clock_ns();
}

static void drop(struct mr_tap_server *s, uint32_t i)
{
	struct client *c = s->clients[i];

	end_tap(s, c);
	if (s->lanes[c->lane].client == c) {
		s->lanes[c->lane].client = NULL;
		s->lanes[c->lane].ends = true;
	}
	close(c->fd);
	free(c);
	s->clients[i] = s->clients[--s->clients_count];
}

static void refuse(struct mr_tap_server *s, struct client *c, const char *sentence)
{
	put(s, c, MR_TAP_REFUSED, (struct mr_tap_message){0}, sentence);
	c->closing = true;
}

/* The names of all lanes, for who asks for another. */
static void list_lanes(const struct mr_tap_server *s, char *ret_text, size_t bytes)
{
	size_t used = 0;

	ret_text[0] = '\0';
	for (uint32_t i = 0; i < s->source.lanes_count && used < bytes; i++)
		used += (size_t)snprintf(ret_text + used, bytes - used, "%s%s", i > 0 ? ", " : "",
			s->source.lanes[i].name);
}

static bool find_lane(struct mr_tap_server *s, struct client *c)
{
	char text[MR_TAP_TEXT_MAX], list[4096];

	c->in.request.lane[MR_NAME_MAX - 1] = '\0';
	for (c->lane = 0; c->lane < s->source.lanes_count; c->lane++)
		if (strcmp(s->source.lanes[c->lane].name, c->in.request.lane) == 0)
			return true;
	c->lane = 0;
	list_lanes(s, list, sizeof(list));
	snprintf(text, sizeof(text), "there is no lane '%s'; choose one of: %s", c->in.request.lane,
		list);
	refuse(s, c, text);
	return false;
}

/* Begins what a whole request asks for, or refuses it. */
static void begin(struct mr_tap_server *s, struct client *c)
{
	const struct mr_tap_request *r = &c->in.request;
	struct mr_gpu_tap tap = {r->snaplen, r->verdicts, r->reason,
		(const struct mr_tap_insn *)(r + 1), r->insns_count};
	const struct mr_tap_target *t;
	struct mr_err why = {0};
	char text[MR_TAP_TEXT_MAX];

	if (!find_lane(s, c))
		return;
	t = &s->source.lanes[c->lane];
	if (r->snaplen == 0 || r->snaplen > MR_TAP_SNAP_MAX)
		return refuse(s, c, "the length of copies is 1 to 65535 bytes");
	if (r->insns_count > 0 && mr_tap_check(tap.insns, r->insns_count, &why) < 0)
		return refuse(s, c, why.msg);
	if (s->lanes[c->lane].client != NULL || s->lanes[c->lane].ends) {
		snprintf(text, sizeof(text),
			"lane '%s' is being captured already, and only one capture of a lane runs "
			"at a time; end that one first",
			t->name);
		return refuse(s, c, text);
	}
	s->lanes[c->lane] = (struct lane){.client = c};
	c->asks = false;
	c->lost = mr_gpu_tap_lost(t->gpu, t->index);
	s->source.counters(s->source.ctx, c->lane, c->counters, sizeof(c->counters));
	put(s, c, MR_TAP_STARTED, (struct mr_tap_message){0}, c->counters);
	c->counters_ns = mr_clock_ns();
	mr_gpu_tap_begin(t->gpu, t->index, &tap);
}

/* Takes what the client says; false: it is gone, or says what nobody asked for. */
static bool hear(struct mr_tap_server *s, struct client *c)
{
	const struct mr_tap_request *r = &c->in.request;
	size_t want = sizeof(*r);
	ssize_t n;

	if (!c->asks || c->closing) {
		n = recv(c->fd, c->in.bytes, 1, MSG_DONTWAIT);
		/* It has enough, or is gone, which sending to it will tell. */
		if (n == 0)
			end_tap(s, c);
		return n == 0 || (n < 0 && errno == EAGAIN);
	}
	if (c->in_bytes >= want)
		want += r->insns_count * sizeof(struct mr_tap_insn);
	n = recv(c->fd, c->in.bytes + c->in_bytes, want - c->in_bytes, MSG_DONTWAIT);
	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	c->in_bytes += (size_t)n;
	if (c->in_bytes < sizeof(*r))
		return true;
	if (memcmp(r->magic, MR_TAP_MAGIC, sizeof(r->magic)) != 0 ||
		r->insns_count > MR_TAP_INSNS_MAX) {
		refuse(s, c, "the client is of another version; use the one of the instance");
		return true;
	}
	if (c->in_bytes == sizeof(*r) + r->insns_count * sizeof(struct mr_tap_insn))
		begin(s, c);
	return true;
}

/* What is to be said next, if anything is; false: nothing. */
static bool next(struct mr_tap_server *s, struct client *c)
{
	const struct mr_tap_target *t = &s->source.lanes[c->lane];
	uint64_t now = mr_clock_ns();
	char text[MR_TAP_TEXT_MAX];
	const uint8_t *bytes;

	if (c->ended) {
		put(s, c, MR_TAP_ENDED, (struct mr_tap_message){0}, "");
		c->closing = true;
		return true;
	}
	if (!c->more && now - c->counters_ns >= COUNTERS_NS) {
		c->counters_ns = now;
		s->source.counters(s->source.ctx, c->lane, text, sizeof(text));
		if (strcmp(text, c->counters) != 0) {
			memcpy(c->counters, text, sizeof(text));
			put(s, c, MR_TAP_COUNTERS, (struct mr_tap_message){0}, text);
			return true;
		}
	}
	for (uint32_t k = 0; k < t->workers; k++) {
		c->worker = (c->turn + k) % t->workers;
		c->piece = mr_gpu_tap_read(t->gpu, t->index, c->worker, &bytes, &c->more);
		if (c->piece == 0)
			continue;
		learn_clock(s, c->lane, c->worker);
		put(s, c, MR_TAP_RECORDS,
			(struct mr_tap_message){
				.bytes = (uint32_t)c->piece, .worker = c->worker, .more = c->more},
			NULL);
		c->turn = c->more ? c->worker : (c->worker + 1) % t->workers;
		return true;
	}
	return false;
}

/* Sends as much as the client takes; false: it is gone. *ret_idle: there is no more. */
static bool tell(struct mr_tap_server *s, struct client *c, bool *ret_idle)
{
	const struct mr_tap_target *t = &s->source.lanes[c->lane];

	*ret_idle = false;
	for (;;) {
		const uint8_t *from = c->out + c->out_at;
		size_t bytes = c->out_bytes - c->out_at;
		bool more;
		ssize_t n;

		if (bytes == 0 && c->piece > 0) {
			bytes = mr_gpu_tap_read(t->gpu, t->index, c->worker, &from, &more);
			bytes = bytes < c->piece ? bytes : c->piece;
		}
		if (bytes == 0) {
			if (c->closing)
				return false;
			if (c->asks || !next(s, c)) {
				*ret_idle = true;
				return true;
			}
			continue;
		}
		n = send(c->fd, from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (c->out_at < c->out_bytes) {
			c->out_at += (size_t)n;
		} else {
			mr_gpu_tap_pass(t->gpu, t->index, c->worker, (size_t)n);
			c->piece -= (size_t)n;
		}
	}
}

static void take_client(struct mr_tap_server *s)
{
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
	struct client *c;

	if (fd < 0)
		return;
	c = s->clients_count < CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (c == NULL) {
		close(fd);
		return;
	}
	c->fd = fd;
	c->asks = true;
	c->since_ns = mr_clock_ns();
	s->clients[s->clients_count++] = c;
}

/* Lanes whose workers have all taken that a capture ended may have another one. */
static bool settle(struct mr_tap_server *s)
{
	bool open = false;

	for (uint32_t i = 0; i < s->source.lanes_count; i++) {
		const struct mr_tap_target *t = &s->source.lanes[i];

		if (s->lanes[i].ends && mr_gpu_tap_taken(t->gpu, t->index))
			s->lanes[i].ends = false;
		open |= s->lanes[i].ends;
	}
	return open;
}

/* The rest of the rings, and why there is no more. */
static void say_goodbye(struct mr_tap_server *s)
{
	uint64_t until = mr_clock_ns() + LINGER_NS;
	bool said[CLIENTS_MAX] = {false};

	while (s->clients_count > 0 && mr_clock_ns() < until) {
		for (uint32_t i = 0; i < s->clients_count; i++) {
			struct client *c = s->clients[i];
			bool idle, there = !c->asks && tell(s, c, &idle);

			if (there && idle && !said[i]) {
				put(s, c, MR_TAP_ENDED, (struct mr_tap_message){0},
					"the instance stops");
				c->closing = said[i] = true;
				there = tell(s, c, &idle);
			}
			if (!there) {
				drop(s, i);
				said[i] = said[s->clients_count];
				i--;
			}
		}
		usleep(TURN_MS * 1000);
	}
}

static void serve_clients(struct mr_tap_server *s, const struct pollfd *p, uint32_t count)
{
	uint64_t now = mr_clock_ns();

	for (uint32_t i = count; i-- > 0;) {
		struct client *c = s->clients[i];
		bool idle, there = true;

		if ((p[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
			there = hear(s, c);
		if (there && (c->ended || (c->asks && !c->closing)) &&
			now > c->since_ns + REQUEST_NS)
			there = false;
		if (there)
			there = tell(s, c, &idle);
		if (!there)
			drop(s, i);
	}
}

static void *serve(void *arg)
{
	struct mr_tap_server *s = arg;
	bool open = false;

	for (;;) {
		struct pollfd p[CLIENTS_MAX + 2] = {
			{.fd = s->stop, .events = POLLIN}, {.fd = s->fd, .events = POLLIN}};
		uint32_t count = s->clients_count;

		for (uint32_t i = 0; i < count; i++)
			p[2 + i] = (struct pollfd){.fd = s->clients[i]->fd,
				.events = s->clients[i]->ended ? POLLOUT : POLLIN};
		if (poll(p, 2 + count, count > 0 || open ? TURN_MS : -1) < 0 && errno != EINTR)
			break;
		if (p[0].revents != 0)
			break;
		serve_clients(s, p + 2, count);
		if (p[1].revents != 0)
			take_client(s);
		open = settle(s);
	}
	say_goodbye(s);
	while (s->clients_count > 0)
		drop(s, 0);
	return NULL;
}

static int listen_at(struct mr_tap_server *s, const char *dir, struct mr_err *err)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int n = snprintf(at.sun_path, sizeof(at.sun_path), "%s/" MR_TAP_SOCKET, dir);
	mode_t mask;
	int rc;

	if (n >= (int)sizeof(at.sun_path))
		return mr_err_set(err, -ENAMETOOLONG,
			"the socket of captures in '%s' has too long a name", dir);
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The name is this process's own: one that is there was left by a killed one. */
	(void)unlink(at.sun_path);
	mask = umask(0177);
	rc = s->fd < 0 || bind(s->fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
			listen(s->fd, (int)CLIENTS_MAX) != 0
		? -errno
		: 0;
	umask(mask);
	if (rc < 0)
		return mr_err_set(
			err, rc, "the socket of captures '%s': %s", at.sun_path, strerror(-rc));
	memcpy(s->path, at.sun_path, sizeof(s->path));
	return 0;
}

static int start(struct mr_tap_server *s, struct mr_err *err)
{
	sigset_t all, before;
	int rc;

	s->stop = eventfd(0, EFD_CLOEXEC);
	if (s->stop < 0)
		return mr_err_set(err, -errno, "no way to stop captures by: %s", strerror(errno));
	/* Signals are the control thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&s->thread, NULL, serve, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		return mr_err_set(err, -rc, "no thread for captures: %s", strerror(rc));
	s->runs = true;
	(void)pthread_setname_np(s->thread, "capture");
	return 0;
}

int mr_tap_serve(const char *dir, const struct mr_tap_source *source,
	struct mr_tap_server **ret_server, struct mr_err *err)
{
	struct mr_tap_server *s = calloc(1, sizeof(*s));
	int rc;

	if (s == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory for captures");
	s->source = *source;
	s->fd = s->stop = -1;
	s->real_ns = real_offset();
	s->lanes = calloc(source->lanes_count, sizeof(*s->lanes));
	rc = s->lanes == NULL ? mr_err_set(err, -ENOMEM, "out of memory for captures")
			      : listen_at(s, dir, err);
	if (rc == 0)
		rc = start(s, err);
	if (rc < 0) {
		mr_tap_unserve(s);
		return rc;
	}
	*ret_server = s;
	return 0;
}

void mr_tap_unserve(struct mr_tap_server *s)
{
	const uint64_t one = 1;

	if (s == NULL)
		return;
	if (s->runs && write(s->stop, &one, sizeof(one)) == sizeof(one))
		pthread_join(s->thread, NULL);
	if (s->path[0] != '\0')
		(void)unlink(s->path);
	if (s->fd >= 0)
		close(s->fd);
	if (s->stop >= 0)
		close(s->stop);
	free(s->lanes);
	free(s);
}
