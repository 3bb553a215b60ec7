/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_facts.h"
#include "mr_setup_priv.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* At a stop a file that is still being read is waited for so long. */
#define READ_MS 2000u
/* Who asked looks every 50 ms, and by a new connection each time. */
#define HEAR_MS 5000u

/* What the reading thread fills; it is the control thread's again once done is set. */
struct mr_setup_reading {
	struct mr_setup_reload_spec spec;
	struct mr_config *cfg;
	struct mr_config_changes changes;
	const struct mr_plan *before;
	struct mr_plan plan;
	struct mr_setup_tables tables;
	struct mr_problems problems;
	uint32_t done;
};

static void *read_main(void *arg)
{
	struct mr_setup_reading *r = arg;
	int rc = mr_config_load(r->spec.file, r->cfg, &r->problems);

	if (rc == 0)
		rc = mr_config_compare(r->spec.cfg, r->cfg, &r->changes, &r->problems);
	if (rc == 0)
		rc = mr_config_same_plugins(r->cfg, r->spec.cfg->loaded, &r->problems);
	r->cfg->loaded = r->spec.cfg->loaded;
	if (rc == 0)
		rc = mr_plan_build(
			r->cfg, &r->spec.facts->host, r->spec.name, &r->plan, &r->problems);
	if (rc == 0)
		rc = mr_setup_tables_fit(r->cfg, r->before, &r->plan, &r->problems);
	if (rc == 0)
		rc = mr_setup_tables_build(r->cfg, &r->plan, &r->tables, &r->problems);
	if (rc < 0 && r->problems.count == 0)
		mr_problem_add(&r->problems, 0, "", "", "%s", strerror(-rc));
	mr_store_release(&r->done, 1);
	return NULL;
}

static int start_reading(struct mr_setup_reload *r, const struct mr_plan *before_plan)
{
	struct mr_setup_reading *reading = calloc(1, sizeof(*reading));
	sigset_t all, before;
	int rc;

	if (reading == NULL)
		return -ENOMEM;
	reading->cfg = calloc(1, sizeof(*reading->cfg));
	if (reading->cfg == NULL) {
		free(reading);
		return -ENOMEM;
	}
	reading->spec = r->spec;
	reading->before = before_plan;
	/* Signals are the control thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&r->thread, NULL, read_main, reading);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0) {
		free(reading->cfg);
		free(reading);
	} else {
		r->reading = reading;
	}
	return -rc;
}

static void free_config(struct mr_config *cfg)
{
	if (cfg != NULL)
		mr_config_free(cfg);
	free(cfg);
}

static void end_reading(struct mr_setup_reload *r)
{
	pthread_join(r->thread, NULL);
	free_config(r->reading->cfg);
	mr_setup_tables_free(&r->reading->tables);
	free(r->reading);
	r->reading = NULL;
}

/* Under the lock: one sentence more of what the last reload came to. */
static void say(struct mr_report_reload *a, const char *fmt, ...) MR_PRINTF(2, 3);

static void say(struct mr_report_reload *a, const char *fmt, ...)
{
	va_list ap;

	if (a->sentences_count == MR_REPORT_SENTENCES_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(a->sentences[a->sentences_count++], MR_REPORT_SENTENCE_MAX, fmt, ap);
	va_end(ap);
}

static void say_problems(struct mr_report_reload *a, const struct mr_problems *ps)
{
	for (uint32_t i = 0; i < ps->count && i < MR_PROBLEMS_MAX; i++) {
		const struct mr_problem *p = &ps->p[i];
		char line[16] = "";

		if (i == MR_REPORT_SENTENCES_MAX - 1 && ps->count > MR_REPORT_SENTENCES_MAX) {
			say(a, "%.300s: and %u more problems", ps->file, ps->count - i);
			return;
		}
		if (p->line > 0)
			snprintf(line, sizeof(line), "%u:", p->line);
		say(a, "%.300s:%s %s%s%s%s%s", ps->file, line, p->key, *p->key != '\0' ? ": " : "",
			p->message, *p->hint != '\0' ? "; " : "", p->hint);
	}
}

static void tell(const struct mr_setup_reload *r, const struct mr_report_reload *a,
	const struct mr_setup_reload_told *told)
{
	uint32_t kept = r->changes.count;
	char more[64];

	if (kept > MR_CONFIG_CHANGES_MAX)
		kept = MR_CONFIG_CHANGES_MAX;
	for (uint32_t i = 0; !a->refused && i < kept; i++)
		told->change(told->ctx, &r->changes.c[i]);
	if (!a->refused && r->changes.count > kept) {
		snprintf(more, sizeof(more), "and %u more keys changed", r->changes.count - kept);
		told->sentence(told->ctx, more);
	}
	for (uint32_t i = 0; i < a->sentences_count; i++)
		told->sentence(told->ctx, a->sentences[i]);
	if (a->refused)
		told->end(told->ctx, MR_SETUP_RELOAD_REFUSED, 0,
			"reload refused: nothing was changed");
	else if (a->failed)
		told->end(told->ctx, MR_SETUP_RELOAD_UNTAKEN, r->tables,
			"reload failed: what was read is in force, but not with all workers");
	else
		told->end(told->ctx, MR_SETUP_RELOADED, r->tables, "reloaded");
}

/* Ends the reload: what was said, or that it is done, is its answer. */
static void finish(struct mr_setup *s, const struct mr_setup_reload_told *told)
{
	struct mr_setup_reload *r = &s->reload;
	struct mr_report_reload *a = &r->answer, answer;
	bool published = r->state == MR_SETUP_RELOAD_TAKING, said;

	r->state = MR_SETUP_RELOAD_NONE;
	pthread_mutex_lock(&r->lock);
	said = a->sentences_count > 0;
	a->refused = said && !published;
	a->failed = said && published;
	a->pending = false;
	/* From here on somebody may ask for the next one, which begins with an answer of its own.
	 */
	answer = *a;
	pthread_mutex_unlock(&r->lock);
	r->answered_ns = mr_clock_ns();
	if (told != NULL)
		tell(r, &answer, told);
}

static void watch(void *s)
{
	(void)mr_setup_look(s);
}

/* All of all lanes, changed or not, since it goes into the half that was not in force. */
static int renew(struct mr_setup *s, const struct mr_setup_reading *r, struct mr_err *err)
{
	const struct mr_plan *plan = &r->plan;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < plan->lanes_count; i++) {
		struct mr_setup_lane *l = &s->lanes[i];

		mr_setup_tables_give(&r->tables, plan, i, l->stages);
		rc = mr_gpu_renew(l->gpu, l->launch_index, l->stages, watch, s, err);
	}
	for (uint32_t i = 0; rc == 0 && i < plan->devices_count; i++)
		if (s->devices[i].lanes > 0)
			mr_gpu_publish(s->devices[i].gpu);
	return rc;
}

static int taken(const struct mr_setup *s, struct mr_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < s->plan->devices_count; i++)
		if (s->devices[i].lanes > 0)
			rc = mr_gpu_taken(s->devices[i].gpu, err);
	return rc;
}

/* What the kernels were told to take is what the next reload is compared with. */
static void put_in_force(struct mr_setup *s, struct mr_setup_reading *reading)
{
	struct mr_setup_reload *r = &s->reload;
	struct mr_config *before = r->kept;

	mr_setup_take_limits(s, &reading->plan);
	for (uint32_t i = 0; i < s->plan->lanes_count; i++)
		mr_setup_lane_limit(s, i, &reading->plan.lanes[i]);
	mr_setup_log_levels(&reading->plan);
	r->changes = reading->changes;
	r->tables = reading->tables.from_files;
	r->kept = reading->cfg;
	reading->cfg = NULL;
	pthread_mutex_lock(&r->lock);
	r->spec.cfg = r->kept;
	pthread_mutex_unlock(&r->lock);
	free_config(before);
}

static void turn_reading(struct mr_setup *s, const struct mr_setup_reload_told *told)
{
	struct mr_setup_reload *r = &s->reload;
	struct mr_err err = {0};
	int rc;

	if (mr_load_acquire(&r->reading->done) == 0)
		return;
	pthread_mutex_lock(&r->lock);
	say_problems(&r->answer, &r->reading->problems);
	pthread_mutex_unlock(&r->lock);
	rc = r->reading->problems.count > 0 ? -EINVAL : renew(s, r->reading, &err);
	if (rc < 0 && r->reading->problems.count == 0) {
		pthread_mutex_lock(&r->lock);
		say(&r->answer, "%s", err.msg);
		pthread_mutex_unlock(&r->lock);
	}
	if (rc == 0)
		put_in_force(s, r->reading);
	end_reading(r);
	if (rc < 0) {
		finish(s, told);
		return;
	}
	r->state = MR_SETUP_RELOAD_TAKING;
	r->since_ns = mr_clock_ns();
}

static void turn_taking(struct mr_setup *s, const struct mr_setup_reload_told *told)
{
	struct mr_setup_reload *r = &s->reload;
	uint64_t waited_ns = mr_clock_ns() - r->since_ns;
	struct mr_err err = {0};
	int rc = taken(s, &err);

	if (rc < 0 && (s->driver_ms == 0 || waited_ns < s->driver_ms * 1000000ull))
		return;
	if (rc < 0) {
		pthread_mutex_lock(&r->lock);
		say(&r->answer, "%s", err.msg);
		pthread_mutex_unlock(&r->lock);
	}
	finish(s, told);
}

void mr_setup_reload_turn(struct mr_setup *s, const struct mr_setup_reload_told *told)
{
	struct mr_setup_reload *r = &s->reload;
	bool asked;
	int rc;

	if (r->state == MR_SETUP_RELOAD_READING) {
		turn_reading(s, told);
		return;
	}
	if (r->state == MR_SETUP_RELOAD_TAKING) {
		turn_taking(s, told);
		return;
	}
	pthread_mutex_lock(&r->lock);
	asked = r->answer.pending;
	rc = asked ? start_reading(r, s->plan) : 0;
	if (rc < 0)
		say(&r->answer, "%s", strerror(-rc));
	pthread_mutex_unlock(&r->lock);
	if (asked)
		r->state = MR_SETUP_RELOAD_READING;
	if (rc < 0)
		finish(s, told);
}

int mr_setup_reload_ask(struct mr_setup *s, bool awaited, uint64_t *ret_ticket)
{
	struct mr_setup_reload *r = &s->reload;
	int rc = 0;

	pthread_mutex_lock(&r->lock);
	if (!r->allowed)
		rc = -ENOTSUP;
	else if (r->answer.pending)
		rc = -EBUSY;
	if (rc == 0) {
		r->answer.ticket++;
		r->answer.pending = true;
		r->awaited = awaited;
		r->answer.refused = false;
		r->answer.failed = false;
		r->answer.sentences_count = 0;
	}
	*ret_ticket = r->answer.ticket;
	pthread_mutex_unlock(&r->lock);
	return rc;
}

void mr_setup_reload_answer(struct mr_setup *s, struct mr_report_reload *ret_answer)
{
	pthread_mutex_lock(&s->reload.lock);
	*ret_answer = s->reload.answer;
	pthread_mutex_unlock(&s->reload.lock);
}

void mr_setup_reload_heard(struct mr_setup *s, uint64_t ticket)
{
	struct mr_setup_reload *r = &s->reload;

	pthread_mutex_lock(&r->lock);
	if (ticket == r->answer.ticket && !r->answer.pending)
		r->awaited = false;
	pthread_mutex_unlock(&r->lock);
}

static bool is_awaited(struct mr_setup_reload *r)
{
	bool awaited;

	pthread_mutex_lock(&r->lock);
	awaited = r->awaited;
	pthread_mutex_unlock(&r->lock);
	return awaited;
}

void mr_setup_reload_let_hear(struct mr_setup *s, const uint32_t *fast)
{
	struct mr_setup_reload *r = &s->reload;

	while (is_awaited(r) && mr_load_relaxed(fast) == 0 &&
		mr_clock_ns() - r->answered_ns < HEAR_MS * 1000000ull)
		usleep(1000);
}

void mr_setup_reload_init(struct mr_setup *s)
{
	pthread_mutex_init(&s->reload.lock, NULL);
}

void mr_setup_reload_fini(struct mr_setup *s)
{
	/* A thread that is still reading compares with it, and goes with the process. */
	if (s->reload.reading == NULL)
		free_config(s->reload.kept);
}

void mr_setup_reload_allow(struct mr_setup *s, const struct mr_setup_reload_spec *spec)
{
	pthread_mutex_lock(&s->reload.lock);
	s->reload.spec = *spec;
	s->reload.allowed = true;
	pthread_mutex_unlock(&s->reload.lock);
}

void mr_setup_reload_end(struct mr_setup *s)
{
	struct mr_setup_reload *r = &s->reload;

	pthread_mutex_lock(&r->lock);
	r->allowed = false;
	if (r->answer.pending)
		say(&r->answer, "the instance '%s' stops", s->plan->name);
	pthread_mutex_unlock(&r->lock);
	if (r->answer.pending)
		finish(s, NULL);
}

void mr_setup_reload_join(struct mr_setup *s, const uint32_t *fast)
{
	struct mr_setup_reload *r = &s->reload;
	uint64_t until = mr_clock_ns() + READ_MS * 1000000ull;

	while (r->reading != NULL && mr_load_acquire(&r->reading->done) == 0) {
		if (mr_clock_ns() >= until || mr_load_relaxed(fast) != 0) {
			pthread_detach(r->thread);
			return;
		}
		(void)mr_setup_look(s);
		usleep(1000);
	}
	if (r->reading != NULL)
		end_reading(r);
}
