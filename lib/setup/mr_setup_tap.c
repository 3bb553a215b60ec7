/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures. One thread listens in the runtime directory (mr_tap_link.h), takes one client at
 * a time, and while that has not enough moves copies from the kernel's ring into pcapng.
 * A client that does not read makes copies be lost, and nothing else wait.
 */
#define _GNU_SOURCE /* accept4 */
#include "mr_gpu_tap.h"
#include "mr_pcapng.h"
#include "mr_setup_priv.h"
#include "mr_tap_link.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define OUT_BYTES ((size_t)1 << 20)
#define REQUEST_S 2           /* for a client to say what it wants */
#define SEEN_NS 2000000000u   /* for workers to take a word */
#define FINISH_NS 2000000000u /* for a client to read on, at its end */
#define LOOK_MS 1             /* between two looks at an empty ring */
#define TAKE_MAX 1024u        /* packets between two looks at the client */

struct capture {
	struct mr_setup *s;
	uint32_t lane;
	struct mr_gpu *gpu;
	int fd;
	struct mr_tap_request want;
	uint8_t *out;
	size_t used;
	uint64_t packets, seen;               /* that it gets, and of all verdicts */
	uint64_t packets_before, lost_before; /* of the lane, by captures before */
	uint64_t deadline_ns;                 /* for the client to read; 0: there is none */
	bool enough, gone; /* the client wants no more, or is not there any more */
};

static uint64_t wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void pause_us(long us)
{
	const struct timespec ts = {.tv_nsec = us * 1000};

	nanosleep(&ts, NULL);
}

static void answer(int fd, int code, const char *sentence)
{
	struct mr_tap_reply reply = {.code = code};

	snprintf(reply.sentence, sizeof(reply.sentence), "%s", sentence);
	(void)!send(fd, &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Whoever comes meanwhile. */
static void refuse_others(struct mr_setup *s)
{
	int fd = accept4(s->tap.listen_fd, NULL, NULL, SOCK_CLOEXEC);
	char sentence[128];

	if (fd < 0)
		return;
	snprintf(sentence, sizeof(sentence),
		"instance '%s' is being captured already, by one client at a time", s->plan->name);
	answer(fd, -EBUSY, sentence);
	close(fd);
}

/* Waits for the client or for another one, at most so long; the first is asked for events. */
static void wait_for(struct capture *c, short events, int timeout_ms)
{
	struct pollfd fds[] = {{.fd = c->fd, .events = events},
		{.fd = c->s->tap.listen_fd, .events = POLLIN},
		{.fd = c->s->tap.wake_fd, .events = POLLIN}};
	bool ending = mr_load_acquire(&c->s->tap.ending) != 0;

	if (poll(fds, ending ? 2 : 3, timeout_ms) <= 0)
		return;
	/* It says nothing, so whatever comes of it is the end of its side. */
	if ((fds[0].revents & POLLIN) != 0)
		c->enough = true;
	if ((fds[0].revents & (POLLHUP | POLLERR)) != 0)
		c->gone = true;
	if (!c->gone && (fds[1].revents & POLLIN) != 0)
		refuse_others(c->s);
}

/* What `stats` tells. */
static void account(const struct capture *c)
{
	struct mr_setup_tap *t = &c->s->tap;

	mr_store_relaxed_u64(&t->packets[c->lane], c->packets_before + c->seen);
	mr_store_relaxed_u64(&t->lost[c->lane], c->lost_before + mr_gpu_tap_lost(c->gpu));
}

static void flush(struct capture *c)
{
	size_t done = 0;

	while (done < c->used && !c->gone) {
		ssize_t n = send(c->fd, c->out + done, c->used - done, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			done += (size_t)n;
			/* While this instance goes on, who reads may take its time. */
			if (c->deadline_ns != 0 && mr_load_acquire(&c->s->tap.ending) == 0)
				c->deadline_ns = mr_clock_ns() + FINISH_NS;
			continue;
		}
		if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
			c->gone = true;
		else if (c->deadline_ns != 0 && mr_clock_ns() > c->deadline_ns)
			c->gone = true;
		else if (c->deadline_ns == 0 &&
			(c->enough || mr_load_acquire(&c->s->tap.ending) != 0))
			c->deadline_ns = mr_clock_ns() + FINISH_NS;
		else
			wait_for(c, c->enough ? POLLOUT : POLLIN | POLLOUT, 20);
		account(c);
	}
	c->used = 0;
}

static void make_room(struct capture *c)
{
	if (c->used > OUT_BYTES - 2 * MR_PCAPNG_MAX)
		flush(c);
}

static void name_verdict(
	const struct capture *c, const struct mr_desc_out *d, char *to, size_t bytes)
{
	const struct mr_plan_lane *l = &c->s->plan->lanes[c->lane];

	if (d->verdict == MR_DROP)
		snprintf(to, bytes, "verdict=drop reason=%s",
			d->arg < MR_REASON_COUNT ? mr_reason_name((enum mr_reason)d->arg) : "none");
	else if (d->verdict == MR_TX && d->port < l->tx_count)
		snprintf(to, bytes, "verdict=tx port=%s",
			c->s->plan->ports[l->tx[d->port].port].name);
	else if (d->verdict == MR_TX)
		snprintf(to, bytes, "verdict=tx port=%u", d->port);
	else
		snprintf(to, bytes, "verdict=tx_mask ports=0x%x", d->arg);
}

static void add_packet(struct capture *c, const struct mr_gpu_tap_copy *copy)
{
	const struct mr_tap_record *r = copy->record;
	const char *name = c->s->plan->lanes[c->lane].name;
	char verdict[128], comment[256];
	struct mr_pcapng_packet p = {.interface = MR_TAP_BEFORE,
		.time_ns = copy->time_ns,
		.bytes = copy->before,
		.kept = copy->before_kept,
		.length = r->in.length,
		.direction = MR_PCAPNG_INBOUND,
		.id = r->packet,
		.comment = comment};

	/* A blank buffer that no stage used. */
	if (r->in.length == 0 && r->out.verdict == MR_DROP)
		return;
	c->seen++;
	if (c->want.verdict != MR_TAP_ANY && c->want.verdict != r->out.verdict)
		return;
	make_room(c);
	name_verdict(c, &r->out, verdict, sizeof(verdict));
	snprintf(comment, sizeof(comment), "lane=%s when=before %s", name, verdict);
	c->used += mr_pcapng_packet(c->out + c->used, &p);
	p.interface = MR_TAP_AFTER;
	p.bytes = copy->after;
	p.kept = copy->after_kept;
	p.length = r->out.length;
	p.direction = MR_PCAPNG_OUTBOUND;
	snprintf(comment, sizeof(comment), "lane=%s when=after %s", name, verdict);
	c->used += mr_pcapng_packet(c->out + c->used, &p);
	c->packets++;
}

static bool has_all(const struct capture *c)
{
	return c->want.packets != 0 && c->packets == c->want.packets;
}

/* Some of what is there now; whether there was something. */
static bool take(struct capture *c)
{
	const uint64_t before = c->seen, before_ns = mr_clock_ns(), day_ns = wall_ns();
	struct mr_gpu_tap_copy copy;

	mr_gpu_tap_follow(c->gpu, before_ns, day_ns, mr_clock_ns());
	while (!c->gone && !has_all(c) && c->seen - before < TAKE_MAX &&
		mr_gpu_tap_next(c->gpu, &copy))
		add_packet(c, &copy);
	flush(c);
	account(c);
	return c->seen != before;
}

/* Both interfaces, with what the lane's stages have counted so far. */
static void add_statistics(struct capture *c)
{
	const struct mr_plan_lane *l = &c->s->plan->lanes[c->lane];
	uint64_t counters[MR_COUNTERS_MAX], lost = mr_gpu_tap_lost(c->gpu);
	char comment[MR_PCAPNG_TEXT];
	size_t used = (size_t)snprintf(comment, sizeof(comment), "lane=%s", l->name);

	mr_gpu_counters(c->gpu, c->s->lanes[c->lane].launch_index, counters);
	for (uint32_t k = 0; k < l->stages_count; k++) {
		const struct mr_stage_desc *d = l->stages[k].desc;

		for (uint32_t i = 0; i < d->counters_count && used < sizeof(comment); i++)
			used += (size_t)snprintf(comment + used, sizeof(comment) - used,
				" %s[%u].%s=%llu", d->name, k, d->counters[i].name,
				(unsigned long long)counters[l->stages[k].counter_base + i]);
	}
	make_room(c);
	for (uint32_t i = 0; i < MR_TAP_SIDES; i++)
		c->used += mr_pcapng_statistics(
			c->out + c->used, i, wall_ns(), c->seen + lost, lost, comment);
}

static void add_head(struct capture *c)
{
	static const char *const side[MR_TAP_SIDES] = {"before", "after"};
	char name[MR_NAME_MAX + 16];

	c->used += mr_pcapng_section(c->out, "millrace " MR_VERSION);
	for (uint32_t i = 0; i < MR_TAP_SIDES; i++) {
		snprintf(name, sizeof(name), "%s %s", c->s->plan->lanes[c->lane].name, side[i]);
		c->used += mr_pcapng_interface(c->out + c->used, name, mr_gpu_tap_snaplen(c->gpu));
	}
	add_statistics(c);
}

/* Waits until workers have seen the last word. */
static bool seen(const struct capture *c)
{
	const uint64_t begun = mr_clock_ns();

	while (!mr_gpu_tap_seen(c->gpu)) {
		if (mr_clock_ns() - begun > SEEN_NS)
			return false;
		pause_us(50);
	}
	return true;
}

/* What is wrong with the request; fills in the lane. */
static int judge(struct capture *c, struct mr_err *err)
{
	struct mr_tap_request *w = &c->want;
	const struct mr_plan *plan = c->s->plan;

	if (w->magic != MR_TAP_MAGIC)
		return mr_err_set(
			err, -EPROTO, "the client is of another version, this is %s", MR_VERSION);
	w->lane[sizeof(w->lane) - 1] = '\0';
	while (c->lane < plan->lanes_count && strcmp(plan->lanes[c->lane].name, w->lane) != 0)
		c->lane++;
	if (c->lane == plan->lanes_count)
		return mr_err_set(
			err, -ENOENT, "instance '%s' has no lane '%s'", plan->name, w->lane);
	c->gpu = c->s->lanes[c->lane].gpu;
	return w->count != 0 ? mr_bpf_check(w->program, w->count, err) : 0;
}

static int begin(struct capture *c, struct mr_err *err)
{
	int rc = judge(c, err);

	if (rc == 0)
		rc = mr_gpu_tap_start(c->gpu, c->s->lanes[c->lane].launch_index, c->want.program,
			c->want.count, c->want.snaplen, err);
	if (rc < 0)
		return rc;
	if (!seen(c)) {
		mr_gpu_tap_stop(c->gpu);
		return mr_err_set(
			err, -ETIME, "the workers of lane '%s' do not take it up", c->want.lane);
	}
	c->packets_before = mr_load_relaxed_u64(&c->s->tap.packets[c->lane]);
	c->lost_before = mr_load_relaxed_u64(&c->s->tap.lost[c->lane]);
	return 0;
}

static void serve(struct capture *c)
{
	const struct timeval patience = {.tv_sec = REQUEST_S};
	struct mr_err err = {0};

	(void)setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (recv(c->fd, &c->want, sizeof(c->want), MSG_WAITALL) != sizeof(c->want))
		return;
	if (begin(c, &err) < 0) {
		answer(c->fd, err.code, err.msg);
		return;
	}
	answer(c->fd, 0, "");
	add_head(c);
	while (!has_all(c) && !c->enough && !c->gone && mr_load_acquire(&c->s->tap.ending) == 0)
		wait_for(c, POLLIN, take(c) ? 0 : LOOK_MS);
	mr_gpu_tap_stop(c->gpu);
	c->deadline_ns = mr_clock_ns() + FINISH_NS;
	(void)seen(c);
	while (take(c))
		;
	add_statistics(c);
	flush(c);
}

static void *tap_main(void *arg)
{
	struct mr_setup *s = arg;
	uint8_t *out = malloc(OUT_BYTES);

	while (out != NULL && mr_load_acquire(&s->tap.ending) == 0) {
		struct pollfd fds[] = {{.fd = s->tap.listen_fd, .events = POLLIN},
			{.fd = s->tap.wake_fd, .events = POLLIN}};
		struct capture c = {.s = s, .out = out};

		if (poll(fds, 2, -1) < 0 || (fds[0].revents & POLLIN) == 0)
			continue;
		c.fd = accept4(s->tap.listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (c.fd < 0)
			continue;
		serve(&c);
		close(c.fd);
	}
	free(out);
	return NULL;
}

static int socket_path(const struct mr_setup *s, struct sockaddr_un *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	return snprintf(addr->sun_path, sizeof(addr->sun_path), "%s/%s", s->dir, MR_TAP_SOCKET) <
			(int)sizeof(addr->sun_path)
		? 0
		: -ENAMETOOLONG;
}

static int listen_at(struct mr_setup *s, struct mr_err *err)
{
	struct sockaddr_un addr;

	s->tap.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	s->tap.wake_fd = eventfd(0, EFD_CLOEXEC);
	if (s->tap.listen_fd < 0 || s->tap.wake_fd < 0)
		return mr_err_set(
			err, -errno, "a socket for captures cannot be made: %s", strerror(errno));
	/* What an instance of this name left behind when it was killed; this one has the name. */
	if (socket_path(s, &addr) == 0)
		unlink(addr.sun_path);
	if (socket_path(s, &addr) < 0)
		errno = ENAMETOOLONG;
	else if (bind(s->tap.listen_fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 &&
		listen(s->tap.listen_fd, 4) == 0)
		return 0;
	return mr_err_set(err, -errno, "a socket for captures cannot be made at %s/%s: %s", s->dir,
		MR_TAP_SOCKET, strerror(errno));
}

int mr_setup_tap_up(struct mr_setup *s, struct mr_err *err)
{
	sigset_t all, before;
	int rc = 0;

	/* A plan without lanes has nothing to capture. */
	if (s->plan->lanes_count > 0)
		rc = listen_at(s, err);
	if (rc < 0 || s->plan->lanes_count == 0)
		return rc;
	/* Signals are the control thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&s->tap.thread, NULL, tap_main, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->tap.runs = rc == 0;
	return rc == 0 ? 0 : mr_err_set(err, -rc, "no thread for captures: %s", strerror(rc));
}

void mr_setup_tap_end(struct mr_setup *s)
{
	if (!s->tap.runs)
		return;
	mr_store_release(&s->tap.ending, 1);
	(void)!write(s->tap.wake_fd, &(uint64_t){1}, sizeof(uint64_t));
	pthread_join(s->tap.thread, NULL);
	s->tap.runs = false;
}

void mr_setup_tap_down(struct mr_setup *s)
{
	struct sockaddr_un addr;

	mr_setup_tap_end(s);
	if (s->tap.listen_fd >= 0) {
		close(s->tap.listen_fd);
		if (socket_path(s, &addr) == 0)
			unlink(addr.sun_path);
	}
	if (s->tap.wake_fd >= 0)
		close(s->tap.wake_fd);
	s->tap = (struct mr_setup_tap){.listen_fd = -1, .wake_fd = -1};
}
