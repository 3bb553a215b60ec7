/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd_doctor.h"
#include "mr_cmd_log.h"
#include "mr_cmd_notify.h"

#include "mr_http.h"
#include "mr_plan.h"
#include "mr_report.h"
#include "mr_sync.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_DEBUG 3 /* of log.level */

struct options {
	const char *config;
	const char *name;
	double duration_s;  /* 0: until told */
	double idle_exit_s; /* 0: never */
	bool json;
	bool strict; /* what could not be read in a check that gates fails it */
	bool skip[MR_CHECKS_COUNT];
};

/* What is to run; large, so on the heap. */
struct job {
	struct mr_config cfg;
	struct mr_plugins plugins;
	struct mr_host_facts *facts; /* of the machine that the plan was made for */
	struct mr_plan plan;
	json_t *findings; /* what doctor says of it; NULL: nobody is told */
	struct mr_log log;
};

static bool parse_seconds(const char *text, double *ret_s)
{
	char *end;

	errno = 0;
	*ret_s = strtod(text, &end);
	return errno == 0 && end != text && *end == '\0' && isfinite(*ret_s) && *ret_s > 0 &&
		*ret_s <= 1e9;
}

static int parse_options(const struct mr_cmd *self, int argc, char **argv, struct options *o)
{
	double *seconds;
	int c;

	memset(o, 0, sizeof(*o));
	while ((c = mr_cmd_next(self, argc, argv)) != -1) {
		switch (c) {
		case 'd':
		case 'i':
			seconds = c == 'd' ? &o->duration_s : &o->idle_exit_s;
			if (!parse_seconds(optarg, seconds)) {
				fprintf(stderr,
					"millrace: '%s' is not a number of seconds above 0\n",
					optarg);
				return -EINVAL;
			}
			break;
		case 'j':
			o->json = true;
			break;
		case 'n':
			o->name = optarg;
			break;
		case 's':
			o->strict = true;
			break;
		case 'k':
			if (!mr_doctor_take_check(optarg, o->skip))
				return -EINVAL;
			break;
		default:
			return -EINVAL;
		}
	}
	if (optind + 1 != argc)
		return -EINVAL;
	o->config = argv[optind];
	return 0;
}

/* What the machine lacks becomes problems; what was not to be looked at goes with the plan. */
static int preflight(const struct mr_doctor *d, struct mr_plan *plan, struct mr_problems *problems)
{
	size_t used = 0;

	for (uint32_t i = 0; i < MR_CHECKS_COUNT; i++) {
		const struct mr_finding *f = &d->findings[i];

		if (f->skipped && used < sizeof(plan->skipped_checks))
			used += (size_t)snprintf(plan->skipped_checks + used,
				sizeof(plan->skipped_checks) - used, "%s%s", used > 0 ? ", " : "",
				mr_checks[i].id);
		else if (!f->skipped && f->verdict == MR_FAIL)
			mr_problem_add(
				problems, 0, "", f->hint, "%s: %s", mr_checks[i].id, f->value);
	}
	return problems->count > 0 ? -EINVAL : 0;
}

static int load_for(
	const struct options *o, struct mr_doctor *d, struct job *job, struct mr_problems *problems)
{
	struct mr_err err = {0};
	int rc = mr_config_load(o->config, &job->cfg, problems);

	if (rc == 0)
		rc = mr_config_load_plugins(&job->cfg, &job->plugins, problems);
	if (rc == 0)
		rc = mr_doctor_read(d, &err);
	if (rc == 0)
		rc = mr_doctor_plan(d, &job->cfg, o->name, o->strict, &job->plan, problems, &err);
	if (rc == 0)
		rc = mr_setup_check(&job->cfg, &job->plan, problems);
	if (rc == 0)
		rc = preflight(d, &job->plan, problems);
	if (rc == 0 && job->plan.http_listen[0] != '\0') {
		json_t *told = mr_doctor_json(d, &job->plan);

		job->findings = json_incref(json_object_get(told, "checks"));
		json_decref(told);
	}
	if (rc == 0) {
		/* A reload plans for the machine that the lanes were planned for. */
		job->facts = d->facts;
		d->facts = NULL;
	}
	if (rc < 0 && problems->count == 0)
		mr_problem_add(problems, 0, "", "", "%s", err.code != 0 ? err.msg : strerror(-rc));
	return rc;
}

static int load_plan(const struct options *o, struct job *job)
{
	struct mr_problems *problems = calloc(1, sizeof(*problems));
	struct mr_doctor *d = calloc(1, sizeof(*d));
	struct mr_err err = {0};
	int status = MR_EXIT_CLEAN;

	if (problems == NULL || d == NULL) {
		status = mr_cmd_fail(o->config, o->json, "out of memory", MR_EXIT_FAILURE);
	} else if (mr_doctor_init(d, "/", &err) != 0) {
		status = mr_cmd_fail(o->config, o->json, err.msg, MR_EXIT_FAILURE);
	} else {
		memcpy(d->skip, o->skip, sizeof(d->skip));
		if (load_for(o, d, job, problems) < 0) {
			mr_cmd_print_problems(problems);
			mr_cmd_print_failure(o->json, mr_cmd_problems_json(problems));
			status = MR_EXIT_CONFIG;
		}
		mr_doctor_fini(d);
	}
	free(problems);
	free(d);
	return status;
}

struct outcome {
	const char *reason;
	int status;
	bool fail_closed;
};

static struct outcome judge_event(enum mr_setup_event event)
{
	switch (event) {
	case MR_SETUP_GPU_LOST:
		return (struct outcome){"gpu_lost", MR_EXIT_GPU, true};
	case MR_SETUP_GPU_STALLED:
		return (struct outcome){"gpu_stalled", MR_EXIT_GPU, true};
	case MR_SETUP_HOST_SILENT:
		return (struct outcome){"host_silent", MR_EXIT_FAILURE, true};
	case MR_SETUP_PORT_LOST:
		return (struct outcome){"port_lost", MR_EXIT_PORT, false};
	case MR_SETUP_PATH_LOST:
		return (struct outcome){"path_unproven", MR_EXIT_FAILURE, true};
	case MR_SETUP_OK:
		break;
	}
	return (struct outcome){NULL, MR_EXIT_CLEAN, false};
}

static void print_sentence(void *ctx, const char *sentence)
{
	(void)ctx;
	fprintf(stderr, "millrace: %s\n", sentence);
}

static void reload(struct mr_setup *s, struct mr_log *log)
{
	const struct mr_setup_reload_told told = {mr_log_change, mr_log_note, mr_log_reloaded, log};
	uint64_t ticket;

	if (mr_load_relaxed(&mr_cmd_reload_wanted) != 0) {
		mr_store_relaxed(&mr_cmd_reload_wanted, 0);
		if (mr_setup_reload_ask(s, false, &ticket) < 0)
			mr_log_note(log, "a reload is under way, so there is no second one");
	}
	mr_setup_reload_turn(s, &told);
}

/* The control thread's work while lanes run, until there is a reason to stop. */
static struct outcome control(struct mr_setup *s, const struct options *o, struct mr_notify *n,
	struct mr_log *log, uint64_t start_ns, struct mr_err *err)
{
	uint64_t activity = 0, in_flight = 0, moved_ns = start_ns;

	for (;;) {
		struct outcome out = judge_event(mr_setup_watch(s, err));
		uint64_t now = mr_clock_ns();
		uint64_t seen = mr_setup_activity(s, &in_flight);

		mr_setup_alarms(s, mr_log_path, log);
		mr_log_clock(log);
		if (out.reason != NULL)
			return out;
		if (mr_load_relaxed(&mr_cmd_signal_seen) != 0)
			return (struct outcome){"signal", MR_EXIT_CLEAN, false};
		if (o->duration_s > 0 && (double)(now - start_ns) >= o->duration_s * 1e9)
			return (struct outcome){"duration", MR_EXIT_CLEAN, false};
		if (seen != activity || in_flight != 0)
			moved_ns = now;
		activity = seen;
		if (o->idle_exit_s > 0 && (double)(now - moved_ns) >= o->idle_exit_s * 1e9)
			return (struct outcome){"idle", MR_EXIT_CLEAN, false};
		reload(s, log);
		mr_notify_turn(n, mr_setup_source(s), now);
		usleep(MR_SETUP_WATCH_MS * 1000);
	}
}

static int report(struct mr_setup *s, const struct options *o, const struct outcome *out,
	double duration_s, bool *ret_balanced)
{
	json_t *j = mr_report_json(mr_setup_source(s));
	char *text;

	*ret_balanced = json_is_true(json_object_get(j, "balanced"));
	json_object_set_new(j, "duration_s", json_real(duration_s));
	json_object_set_new(j, "exit_reason", json_string(out->reason));
	text = mr_report_text(j);
	if (text != NULL && o->json)
		fputs(text, stderr);
	else if (text != NULL)
		mr_cmd_print(text);
	free(text);
	if (o->json)
		mr_cmd_print_json(json_incref(j));
	json_decref(j);
	mr_cmd_print("");
	if (!*ret_balanced) {
		fprintf(stderr,
			"millrace: packets are unaccounted for; this is a fault of "
			"Millrace, please report it with the output above\n");
		return MR_EXIT_FAILURE;
	}
	return out->status;
}

struct begun {
	const struct mr_plan *plan;
	const struct mr_notify *notify;
};

/* On real devices a step may take seconds; a signal does not wait for all of them. */
static bool before_step(void *ctx, const char *step)
{
	const struct begun *b = ctx;

	if (mr_load_relaxed(&mr_cmd_signal_seen) != 0)
		return false;
	mr_notify_step(b->notify, step);
	if (b->plan->log_level >= LOG_DEBUG)
		fprintf(stderr, "millrace: step %s\n", step);
	return true;
}

/* The JSON of a run that was told to stop before it had lanes. */
static void print_stopped(const struct options *o, const struct mr_plan *plan)
{
	if (o->json)
		mr_cmd_print_json(json_pack("{s:s, s:[], s:[], s:[], s:b, s:f, s:s}", "instance",
			plan->name, "lanes", "ports", "devices", "balanced", 1, "duration_s", 0.0,
			"exit_reason", "signal"));
}

/* A thread hangs in a driver, whose own clean-up at exit would wait for it. */
static _Noreturn void leave(struct mr_log *log, int status)
{
	mr_log_stopped(log, status);
	fflush(stdout);
	_exit(status);
}

/* Which ports and which device a lane has: reports name each by itself. */
static json_t *layout_json(const struct mr_plan *plan)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < plan->lanes_count; i++) {
		const struct mr_plan_lane *l = &plan->lanes[i];
		json_t *tx = json_array();

		for (uint32_t t = 0; t < l->tx_count; t++)
			json_array_append_new(
				tx, mr_cmd_json_text(plan->ports[l->tx[t].port].name));
		json_array_append_new(all,
			json_pack("{s:s, s:s, s:o, s:s}", "name", l->name, "rx",
				plan->ports[l->rx_port].name, "tx", tx, "device",
				plan->devices[l->device].name));
	}
	return all;
}

/* What ends a run that goes on is no cleaner in one that was told to stop. */
static void judge_drain(const struct mr_setup *s, struct outcome *out)
{
	struct mr_err err = {0};
	struct outcome seen = judge_event(mr_setup_seen(s, &err));

	if (seen.reason == NULL)
		return;
	*out = seen;
	fprintf(stderr, "millrace: %s\n", err.msg);
}

static int run_lanes(
	const struct options *o, struct job *job, struct mr_http *http, struct mr_notify *notify)
{
	const struct mr_plan *plan = &job->plan;
	struct begun begun = {plan, notify};
	struct mr_log *log = &job->log;
	struct mr_setup *s;
	struct mr_err err = {0};
	struct outcome out;
	enum mr_setup_drained drained;
	uint64_t start_ns;
	int rc, status;

	rc = mr_setup_up(plan, before_step, &begun, &s, &err);
	if (rc == -ECANCELED) {
		print_stopped(o, plan);
		log->reason = "signal";
		log->balanced = true;
		return MR_EXIT_CLEAN;
	}
	if (rc < 0) {
		status = mr_cmd_fail(o->config, o->json, err.msg,
			rc == -EALREADY ? MR_EXIT_CONFIG : MR_EXIT_FAILURE);
		if (rc == -ETIMEDOUT)
			leave(log, MR_EXIT_GPU);
		return status;
	}
	if (http != NULL) {
		mr_http_add(http, "layout", layout_json(plan));
		mr_http_add(http, "findings", json_incref(job->findings));
	}
	/* From here on this thread keeps off the lanes' cores, and the server's does. */
	if (http != NULL && mr_http_serve(http, &err) < 0)
		fprintf(stderr, "millrace: %s\n", err.msg);
	start_ns = mr_clock_ns();
	mr_log_running(log, mr_setup_source(s));
	mr_setup_reload_allow(
		s, &(struct mr_setup_reload_spec){o->config, &job->cfg, job->facts, o->name});
	out = control(s, o, notify, log, start_ns, &err);
	mr_log_stopping(log, mr_setup_source(s), out.reason,
		out.fail_closed ? 0 : mr_setup_drain_ms(s),
		out.status != MR_EXIT_CLEAN ? err.msg : NULL);
	mr_notify_stopping(notify, out.fail_closed ? 0 : mr_setup_drain_ms(s));
	rc = mr_setup_stop(
		s, mr_setup_drain_ms(s), &mr_cmd_signal_fast, out.fail_closed, &drained, &err);
	if (out.status == MR_EXIT_CLEAN)
		judge_drain(s, &out);
	mr_setup_alarms(s, mr_log_path, log);
	mr_log_drained(log, mr_setup_source(s), drained, rc == 0);
	/* What a failed device leaves in flight needs no second sentence. */
	if (rc == -ETIME || (rc < 0 && out.status == MR_EXIT_CLEAN))
		fprintf(stderr, "millrace: %s\n", err.msg);
	if (rc < 0 && out.status == MR_EXIT_CLEAN)
		out.status = MR_EXIT_UNDRAINED;
	if (rc != -ETIME && mr_setup_judge(s, print_sentence, NULL) > 0 &&
		out.status == MR_EXIT_CLEAN)
		out = (struct outcome){"error", MR_EXIT_FAILURE, false};
	log->reason = out.reason;
	status = report(s, o, &out, (double)(mr_clock_ns() - start_ns) / 1e9, &log->balanced);
	if (rc == -ETIME)
		leave(log, status); /* a thread is still in its driver: nothing may be freed */
	rc = mr_setup_down(s, &err);
	if (rc == 0)
		return status;
	if (err.msg[0] != '\0')
		fprintf(stderr, "millrace: %s\n", err.msg);
	leave(log, rc == -ETIMEDOUT && status == MR_EXIT_CLEAN ? MR_EXIT_GPU : status);
}

static int run(const struct options *o, struct job *job)
{
	struct mr_notify *notify = calloc(1, sizeof(*notify));
	struct mr_http *http = NULL;
	struct mr_err err = {0};
	int status, rc = 0;

	if (notify == NULL)
		return mr_cmd_fail(o->config, o->json, "out of memory", MR_EXIT_FAILURE);
	mr_notify_init(notify);
	if (job->plan.http_listen[0] != '\0')
		rc = mr_http_open(job->plan.http_listen, job->plan.http_users, &http, &err);
	if (rc < 0)
		status = mr_cmd_fail(o->config, o->json, err.msg,
			rc == -EINVAL ? MR_EXIT_CONFIG : MR_EXIT_FAILURE);
	else
		status = run_lanes(o, job, http, notify);
	mr_http_close(http);
	free(notify);
	return status;
}

int mr_cmd_run(const struct mr_cmd *self, int argc, char **argv)
{
	struct options o;
	struct job *job;
	int status;

	if (parse_options(self, argc, argv, &o) < 0)
		return mr_cmd_usage(self);
	mr_cmd_catch_signals(false);
	mr_cmd_catch_reload();
	job = calloc(1, sizeof(*job));
	if (job == NULL)
		return mr_cmd_fail(o.config, o.json, "out of memory", MR_EXIT_FAILURE);
	status = load_plan(&o, job);
	/* What was refused may not have come as far as to its name. */
	job->log.instance = job->plan.name[0] != '\0' ? job->plan.name
		: o.name != NULL                      ? o.name
						      : o.config;
	if (status == MR_EXIT_CLEAN)
		status = run(&o, job);
	mr_log_stopped(&job->log, status);
	mr_config_free(&job->cfg);
	mr_plugins_free(&job->plugins);
	json_decref(job->findings);
	free(job->facts);
	free(job);
	return status;
}
