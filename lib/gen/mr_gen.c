/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mr_gen.h"

#include "mr_gen_priv.h"
#include "mr_gen_schedule.h"
#include "mr_join.h"
#include "mr_port.h"
#include "mr_setup.h"
#include "mr_sync.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START_NS 10000000u /* threads are made before a trial's start */
#define LOOK_US 2000u
#define JOIN_S 3
#define FLOOR_WAIT_MS 100u /* a loop in memory keeps nothing for long */
#define CEILING_SHARE 5u   /* without a rate: all but one part of so many of the ceiling */

struct series {
	struct mr_setup *setup;
	const struct mr_gen_plan *plan;
	mr_gen_ask *ask;
	void *ctx;
	struct mr_gen_report *report;
	struct mr_gen_frame frame;
	uint16_t run;
	uint8_t trials; /* so far; the number goes into the frames */
	struct mr_err *err;
};

/* What one trial differs in. */
struct order {
	uint32_t send_port, receive_port; /* of the plan */
	uint64_t gap, duration_ns, packets;
	uint32_t burst, wait_ms;
};

static int thread_make(
	struct mr_gen_thread *t, int32_t core, void *(*main)(void *), void *arg, struct mr_err *err)
{
	sigset_t all, before;
	pthread_attr_t attr;
	cpu_set_t cpus;
	int rc = pthread_attr_init(&attr);

	t->core = core;
	if (rc == 0 && core >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET((size_t)core, &cpus);
		rc = pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	}
	/* Signals are the control thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (rc == 0)
		rc = pthread_create(&t->id, &attr, main, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	t->made = rc == 0;
	if (rc != 0)
		return mr_err_set(err, -rc, "thread on core %d: %s", core, strerror(rc));
	return 0;
}

static int thread_join(struct mr_gen_thread *t, const char *what, struct mr_err *err)
{
	if (!t->made || t->joined)
		return 0;
	if (!mr_join(t->id, JOIN_S))
		return mr_err_set(err, -ETIME,
			"the %s did not stop within %d s: the driver of its port does not return",
			what, JOIN_S);
	t->joined = true;
	if (t->rc < 0)
		return mr_err_set(
			err, t->rc, "%s: rte_thread_register: %s", what, strerror(-t->rc));
	return 0;
}

/* Whether to go on; notes in the report why not. */
static enum mr_gen_wish look(struct series *s)
{
	enum mr_gen_wish wish = s->ask(s->ctx);

	if (s->report->end == MR_GEN_PORT_LOST)
		return MR_GEN_END_NOW;
	if (mr_setup_watch(s->setup, s->err) == MR_SETUP_PORT_LOST) {
		s->report->end = MR_GEN_PORT_LOST;
		return MR_GEN_END_NOW;
	}
	if (wish != MR_GEN_GO_ON)
		s->report->end = MR_GEN_TOLD;
	return wish;
}

static void follow(struct series *s, struct mr_gen_rig *r)
{
	uint64_t until;

	while (mr_load_acquire(&r->sent_all) == 0) {
		if (look(s) != MR_GEN_GO_ON) {
			mr_store_relaxed(&r->stop_sender, 1);
			r->out->cut = true;
			break;
		}
		usleep(LOOK_US);
	}
	/* A sender that hangs in its driver is found by the join. */
	if (!r->sink.made)
		return;
	until = mr_clock_ns() + r->wait_ms * 1000000ull;
	while (mr_clock_ns() < until && look(s) != MR_GEN_END_NOW)
		usleep(LOOK_US);
	mr_store_relaxed(&r->stop_sink, 1);
}

static uint64_t rx_missed(struct series *s, uint32_t port)
{
	struct mr_port_stats st;

	mr_port_stats_read(mr_setup_port(s->setup, port), &st);
	return st.rx_missed;
}

static bool passes(const struct mr_gen_plan *p, const struct mr_gen_trial *t)
{
	bool whole = t->missed == 0 && !t->cut && t->sent > 0;

	if (p->search != MR_GEN_SEARCH_PARTIAL_LOSS)
		return whole && !mr_gen_faults(t);
	return whole && t->corrupted == 0 && t->duplicates == 0 &&
		(unsigned __int128)t->lost * MR_GEN_PPM <= (unsigned __int128)t->sent * p->loss_ppm;
}

static void judge(struct series *s, struct mr_gen_rig *r)
{
	struct mr_gen_trial *t = r->out;
	const struct mr_gen_sink *c = &r->counts;

	if (t->sent > 0) /* a packet takes the time until the next, which the last has not */
		t->send_ns += r->gap * r->burst >> MR_GEN_GAP_SHIFT;
	if (r->gap == 0)
		t->scheduled = t->sent;
	else if (t->cut)
		/* Those whose time has come by its end; the rest was called off. */
		t->scheduled = mr_gen_total(r->gap, r->burst, r->ran_ns, r->total);
	else
		t->scheduled = r->total;
	t->missed = t->scheduled - t->sent;
	t->judged = r->sink.made;
	if (t->judged) {
		for (uint32_t i = 0; i < s->plan->streams; i++) {
			const struct mr_gen_counts *k = &c->stream[i].c;

			t->stream[i].c = *k;
			t->stream[i].sent = mr_gen_issued(t->sent, s->plan->streams, i);
			t->stream[i].lost = t->stream[i].sent - k->received;
			t->received += k->received;
			t->duplicates += k->duplicates;
			t->reordered += k->reordered;
			t->stale += k->stale;
		}
		t->lost = t->sent - t->received;
		t->corrupted = c->corrupted;
		t->stray = c->stray;
		t->foreign = c->foreign;
		t->latency = c->latency;
	}
	t->passed = passes(s->plan, t);
}

static int try(struct series *s, const struct order *o, struct mr_gen_trial *t)
{
	struct mr_gen_rig *r = aligned_alloc(MR_CACHE_LINE, sizeof(*r));
	bool listens = o->receive_port != MR_GEN_NO_PORT;
	uint64_t missed = 0;
	int rc;

	if (r == NULL)
		return mr_err_set(s->err, -ENOMEM, "out of memory");
	memset(t, 0, sizeof(*t));
	*r = (struct mr_gen_rig){.plan = s->plan,
		.frame = &s->frame,
		.run = s->run,
		.trial = s->trials++,
		.tx_port = mr_setup_port(s->setup, o->send_port)->id,
		.pool = mr_setup_host_pool(s->setup),
		.duration_ns = o->duration_ns,
		.gap = o->gap,
		.burst = o->burst,
		.wait_ms = o->wait_ms,
		.total = mr_gen_total(o->gap, o->burst, o->duration_ns, o->packets),
		.out = t};
	t->gap = o->gap;
	rc = mr_gen_sink_init(&r->counts, &s->frame, &r->issued, s->err);
	r->counts.run = r->run;
	r->counts.trial = r->trial;
	r->start_ns = mr_clock_ns() + START_NS;
	r->counts.start_ns = r->start_ns;
	if (rc == 0 && listens) {
		r->rx_port = mr_setup_port(s->setup, o->receive_port)->id;
		missed = rx_missed(s, o->receive_port);
		rc = thread_make(&r->sink, s->plan->receive_core, mr_gen_sink_main, r, s->err);
	}
	if (rc == 0)
		rc = thread_make(&r->sender, s->plan->send_core, mr_gen_sender_main, r, s->err);
	if (rc == 0)
		follow(s, r);
	mr_store_relaxed(&r->stop_sender, 1);
	mr_store_relaxed(&r->stop_sink, 1);
	if (rc == 0)
		rc = thread_join(&r->sender, "sender", s->err);
	if (rc != -ETIME) {
		int joined = thread_join(&r->sink, "sink", rc < 0 ? NULL : s->err);

		rc = joined < 0 ? joined : rc;
	}
	if (rc == -ETIME)
		return rc; /* a thread still works with the rig */
	if (rc == 0)
		judge(s, r);
	if (rc == 0 && listens)
		t->rx_missed = rx_missed(s, o->receive_port) - missed;
	mr_gen_sink_fini(&r->counts);
	free(r);
	return rc;
}

/* Floor and ceiling; the highest rate, where the plan gives none. */
static int calibrate(struct series *s)
{
	const struct mr_gen_plan *p = s->plan;
	struct mr_gen_report *rep = s->report;
	uint64_t duration_ns = p->calibrate_ms * 1000000ull;
	struct order floor = {p->floor_port, p->floor_port,
		(1000000000ull << MR_GEN_GAP_SHIFT) / MR_GEN_FLOOR_PPS, duration_ns, 0, 1,
		p->wait_ms < FLOOR_WAIT_MS ? p->wait_ms : FLOOR_WAIT_MS};
	struct order ceiling = {p->send_port, p->receive_port, 0, duration_ns, 0, 1, p->wait_ms};
	int rc = 0;

	if (p->calibrate_ms == 0)
		return 0;
	if (p->floor_port != MR_GEN_NO_PORT) {
		rc = try(s, &floor, &rep->floor);
		rep->has_floor = rc == 0;
	}
	if (rc == 0 && rep->end == MR_GEN_DONE) {
		rc = try(s, &ceiling, &rep->ceiling);
		rep->has_ceiling = rc == 0;
	}
	if (rc < 0 || rep->end != MR_GEN_DONE || p->gap != 0)
		return rc;
	if (rep->ceiling.sent == 0)
		return mr_err_set(s->err, -EIO,
			"port '%s' took no packet in %u ms, so there is no rate to send at",
			p->plan.ports[p->send_port].name, p->calibrate_ms);
	rep->gap = (uint64_t)(((unsigned __int128)rep->ceiling.send_ns << MR_GEN_GAP_SHIFT) /
		rep->ceiling.sent);
	if (p->search == MR_GEN_SEARCH_NONE)
		rep->gap = rep->gap * CEILING_SHARE / (CEILING_SHARE - 1);
	return 0;
}

static int try_rate(struct series *s, uint32_t rate_ppm)
{
	const struct mr_gen_plan *p = s->plan;
	struct mr_gen_report *rep = s->report;
	struct mr_gen_trial *t = &rep->trial[rep->count];
	struct order o = {p->send_port, p->receive_port,
		(uint64_t)((unsigned __int128)rep->gap * MR_GEN_PPM / rate_ppm),
		p->duration_ms * 1000000ull, p->packets, p->burst, p->wait_ms};
	int rc = try(s, &o, t);

	if (rc < 0)
		return rc;
	t->rate_ppm = rate_ppm;
	/* Cut off in front of its first packet it says nothing. */
	if (t->sent == 0 && t->cut)
		return 0;
	if (t->passed && (rep->found < 0 || rate_ppm > rep->trial[rep->found].rate_ppm))
		rep->found = (int32_t)rep->count;
	rep->count++;
	return 0;
}

int mr_gen_run(struct mr_setup *setup, const struct mr_gen_plan *plan, mr_gen_ask *ask, void *ctx,
	struct mr_gen_report *ret_report, struct mr_err *err)
{
	uint64_t now = mr_clock_ns();
	struct series s = {.setup = setup,
		.plan = plan,
		.ask = ask,
		.ctx = ctx,
		.report = ret_report,
		.run = (uint16_t)(now ^ now >> 16 ^ (uint64_t)getpid()),
		.err = err};
	struct mr_gen_halving h;
	int rc;

	memset(ret_report, 0, sizeof(*ret_report));
	ret_report->found = -1;
	ret_report->gap = plan->gap;
	mr_gen_frame_init(&s.frame, &plan->headers, plan->streams);
	mr_gen_halving_init(&h, plan->resolution_ppm);
	rc = calibrate(&s);
	while (rc == 0 && ret_report->end == MR_GEN_DONE && h.next != 0 &&
		ret_report->count < MR_GEN_TRIALS_MAX) {
		rc = try_rate(&s, h.next);
		if (rc < 0 || ret_report->end != MR_GEN_DONE)
			break;
		mr_gen_halving_tell(&h, ret_report->trial[ret_report->count - 1].passed);
		if (plan->search == MR_GEN_SEARCH_NONE)
			break;
	}
	return rc;
}

bool mr_gen_faults(const struct mr_gen_trial *t)
{
	return t->missed + t->lost + t->duplicates + t->reordered + t->corrupted > 0;
}

double mr_gen_sent_pps(const struct mr_gen_trial *t)
{
	return t->send_ns == 0 ? 0 : (double)t->sent * 1e9 / (double)t->send_ns;
}

double mr_gen_sent_bps(const struct mr_gen_trial *t)
{
	return t->send_ns == 0 ? 0 : (double)t->wire_bits * 1e9 / (double)t->send_ns;
}
