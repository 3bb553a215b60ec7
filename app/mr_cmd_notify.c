/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd_notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define LOOK_NS 1000000000ull
#define FEEDS 4u /* looks within the time that the watchdog gives */
#define STEP_US 90000000ull
#define LEAVE_US 20000000ull /* for what follows a drain: kernels, captures, devices */

/*
 * sd_notify waits while the manager does not read, and this thread is what kernels and
 * watchdog take for the host's life. Returns 0 or -errno; -EAGAIN: it does not read now.
 */
static int tell(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t bytes = path != NULL ? strlen(path) : 0;
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd, rc = 0;

	if (bytes < 2 || bytes >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return -EINVAL;
	memcpy(to.sun_path, path, bytes);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&to,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

void mr_notify_init(struct mr_notify *n)
{
	uint64_t watchdog_us = 0;
	int rc;

	memset(n, 0, sizeof(*n));
	rc = tell("STATUS=starting");
	n->wanted = rc == 0 || rc == -EAGAIN;
	n->watchdog = n->wanted && sd_watchdog_enabled(0, &watchdog_us) > 0;
	n->every_ns = LOOK_NS;
	if (n->watchdog && watchdog_us * 1000 / FEEDS < n->every_ns)
		n->every_ns = watchdog_us * 1000 / FEEDS;
}

void mr_notify_step(const struct mr_notify *n, const char *step)
{
	char text[128];

	snprintf(
		text, sizeof(text), "STATUS=starting: %s\nEXTEND_TIMEOUT_USEC=%llu", step, STEP_US);
	if (n->wanted)
		(void)tell(text);
}

/* What the lanes have come to since the last look. */
struct look {
	bool run, proven, move;
	uint64_t received, sent, dropped;
	char name[MR_NAME_MAX]; /* of the first lane that is not proven */
};

/* Whether each worker has beaten since the last look. */
static bool beats(uint32_t before[MR_REPORT_WORKERS_MAX], const struct mr_report_lane *l)
{
	bool all = true;

	for (uint32_t w = 0; w < l->workers; w++) {
		all &= l->worker_beats[w] != before[w];
		before[w] = l->worker_beats[w];
	}
	return all;
}

static void look_at(
	struct mr_notify *n, const struct mr_report_source *src, uint32_t i, struct look *k)
{
	struct mr_report_lane *l = &n->lane;
	uint64_t turns, ended;

	memset(l, 0, sizeof(*l));
	src->lane(src->ctx, i, l);
	turns = l->pub.counters.c[MR_C_turns];
	ended = l->pub.counters.c[MR_C_tx_packets] + mr_counters_dropped(&l->pub.counters);
	k->run &= strcmp(l->state, "run") == 0;
	k->move &= beats(n->beats[i], l) && turns != n->turns[i];
	/* What a port does not take waits there for ever, if it is to, and is the peer's fault. */
	k->move &= l->pub.in_flight == 0 || l->pub.waiting != 0 || ended != n->ended[i];
	n->turns[i] = turns;
	n->ended[i] = ended;
	k->received += l->pub.counters.c[MR_C_rx_packets];
	k->sent += l->pub.counters.c[MR_C_tx_packets];
	k->dropped += mr_counters_dropped(&l->pub.counters);
	if (strcmp(l->path_verdict, "unproven") == 0 && k->proven) {
		k->proven = false;
		snprintf(k->name, sizeof(k->name), "%s", l->name);
	}
}

void mr_notify_turn(struct mr_notify *n, const struct mr_report_source *src, uint64_t now_ns)
{
	struct look k = {.run = true, .proven = true, .move = true};
	char status[sizeof(n->status)], text[sizeof(status) + 8];
	bool first;

	if (!n->wanted || now_ns - n->looked_ns < n->every_ns)
		return;
	/* The first look has nothing to compare with. */
	first = n->looked_ns == 0;
	n->looked_ns = now_ns;
	for (uint32_t i = 0; i < src->lanes && i < MR_LANES_MAX; i++)
		look_at(n, src, i, &k);
	k.move |= first;
	if (!k.run)
		snprintf(status, sizeof(status), "lanes start");
	else if (!k.proven)
		snprintf(status, sizeof(status), "the path of lane %s is unproven", k.name);
	else if (!k.move)
		snprintf(status, sizeof(status), "a lane or its kernel stands still");
	else
		snprintf(status, sizeof(status),
			"%u lane%s run%s; packets: %llu received, %llu sent, %llu dropped",
			src->lanes, src->lanes == 1 ? "" : "s", src->lanes == 1 ? "s" : "",
			(unsigned long long)k.received, (unsigned long long)k.sent,
			(unsigned long long)k.dropped);
	if (k.run && k.proven && !n->ready)
		n->ready = tell("READY=1") == 0;
	if (n->watchdog && k.move)
		(void)tell("WATCHDOG=1");
	snprintf(text, sizeof(text), "STATUS=%s", status);
	if (strcmp(status, n->status) != 0 && tell(text) == 0)
		memcpy(n->status, status, sizeof(status));
}

void mr_notify_stopping(const struct mr_notify *n, uint32_t drain_ms)
{
	char text[128];

	snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%llu\nSTOPPING=1\nSTATUS=drains",
		drain_ms * 1000ull + LEAVE_US);
	if (n->wanted)
		(void)tell(text);
}
