/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd_doctor.h"

#include "mr_capture.h"
#include "mr_setup.h"
#include "mr_sync.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
	const char *config; /* NULL: the general question */
	const char *root;
	const char *capture;
	bool skip[MR_CHECKS_COUNT];
	bool json, strict, readback;
};

static int parse_options(const struct mr_cmd *self, int argc, char **argv, struct options *o)
{
	int c;

	*o = (struct options){.root = "/"};
	while ((c = mr_cmd_next(self, argc, argv)) != -1) {
		switch (c) {
		case 'r':
			o->root = optarg;
			break;
		case 'j':
			o->json = true;
			break;
		case 's':
			o->strict = true;
			break;
		case 'k':
			if (!mr_doctor_take_check(optarg, o->skip))
				return -EINVAL;
			break;
		case 'b':
			o->readback = true;
			break;
		case 'c':
			o->capture = optarg;
			break;
		default:
			return -EINVAL;
		}
	}
	if (optind < argc)
		o->config = argv[optind++];
	/* What is tried are this machine's devices, as a configuration uses them. */
	if (o->readback && (o->config == NULL || strcmp(o->root, "/") != 0))
		return -EINVAL;
	return optind == argc ? 0 : -EINVAL;
}

static int print_json(json_t *j)
{
	char *line = j != NULL ? json_dumps(j, JSON_COMPACT) : NULL;

	json_decref(j);
	if (line == NULL) {
		fprintf(stderr, "millrace: out of memory\n");
		return MR_EXIT_FAILURE;
	}
	mr_cmd_print(line);
	mr_cmd_print("\n");
	free(line);
	return MR_EXIT_CLEAN;
}

/* A sentence for people, and for --json an object that holds it. */
static int refuse(const struct options *o, struct mr_problems *problems, int status)
{
	mr_cmd_print_problems(problems);
	if (o->json &&
		print_json(json_pack("{s:o}", "errors", mr_cmd_problems_json(problems))) !=
			MR_EXIT_CLEAN)
		return MR_EXIT_FAILURE;
	return status;
}

static int status_of(enum mr_check_verdict worst)
{
	return worst == MR_FAIL   ? MR_EXIT_CONFIG
		: worst > MR_PASS ? MR_EXIT_FAILURE
				  : MR_EXIT_CLEAN;
}

/* Against the plan for the machine that was read, so that a replayed one is asked the same. */
static int judge(const struct options *o, struct mr_doctor *d, struct mr_plan *ret_plan,
	struct mr_problems *problems, struct mr_err *err)
{
	struct mr_config cfg = {0};
	int rc;

	if (o->config == NULL)
		return mr_doctor_judge(d, NULL, o->strict, err);
	rc = mr_config_load(o->config, &cfg, problems);
	if (rc == 0)
		rc = mr_config_load_plugins(&cfg, &d->plugins, problems);
	if (rc == 0)
		rc = mr_doctor_plan(d, &cfg, NULL, o->strict, ret_plan, problems, err);
	/* What names files that are not there is told as a run tells it. */
	if (rc == 0 && o->readback)
		rc = mr_setup_check(&cfg, ret_plan, problems);
	mr_config_free(&cfg);
	return rc;
}

static bool before_step(void *ctx, const char *step)
{
	(void)ctx;
	(void)step;
	return mr_load_relaxed(&mr_cmd_signal_seen) == 0;
}

static const char *hint_of(enum mr_check_verdict verdict, bool stopped)
{
	if (stopped)
		return "ask again, and let it end";
	return verdict == MR_FAIL
		? "do not use this path as it is; look at iommu.type, pcie.acs and pair.peermem"
		: "frames tell more than memory: put a plug or a peer behind the port that sends "
		  "them back, and write proof: {readback: port}";
}

/*
 * The read-back: check 47 as the devices themselves answer it. Where another check fails it is
 * not tried. A signal ends it early, with all undone that was done to ports and files.
 * *ret_stuck: a thread is still in a driver, so nothing may be freed.
 */
static void read_back(struct mr_doctor *d, struct mr_plan *plan, bool *ret_stuck)
{
	static struct mr_proof lanes[MR_LANES_MAX];
	struct mr_finding *f = &d->findings[mr_checks_find("pair.readback")];
	struct mr_err err = {0};
	size_t used = 0;
	int rc;

	if (mr_checks_worst(d->findings) == MR_FAIL)
		return;
	plan->alarm = MR_ALARM_GO_ON;
	mr_cmd_catch_signals(false);
	rc = mr_setup_try(plan, before_step, NULL, lanes, &err);
	*ret_stuck = rc == -ETIMEDOUT;
	*f = (struct mr_finding){.verdict = MR_PASS, .gating = f->gating};
	if (rc < 0)
		f->verdict = rc == -ECANCELED ? MR_UNKNOWN : MR_FAIL;
	snprintf(f->value, sizeof(f->value), "%.500s", err.msg);
	for (uint32_t i = 0; rc == 0 && i < plan->lanes_count; i++) {
		if (lanes[i].verdict > f->verdict)
			f->verdict = lanes[i].verdict;
		if (used < sizeof(f->value))
			used += (size_t)snprintf(f->value + used, sizeof(f->value) - used, "%s%s",
				used > 0 ? "; " : "", lanes[i].value);
	}
	if (f->verdict != MR_PASS)
		snprintf(f->hint, sizeof(f->hint), "%s", hint_of(f->verdict, rc == -ECANCELED));
}

/*
 * While an unpacked archive or half a capture lies on the disk a signal waits, so that it
 * is cleaned up; to unpack ends early when one does.
 */
static void keep_signals_back(sigset_t *ret_before)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, ret_before);
}

static int write_capture(struct mr_capture *c, const char *file, struct mr_err *err)
{
	sigset_t before;
	int rc;

	keep_signals_back(&before);
	rc = mr_capture_write(c, file, err);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}

/* Adds what a call failed for, where it told no problem itself. */
static void complain(struct mr_problems *problems, int rc, const struct mr_err *err)
{
	if (rc != 0 && problems->count == 0)
		mr_problem_add(
			problems, 0, "", "", "%s", err->code != 0 ? err->msg : strerror(-rc));
}

/* *ret_status is what an error ends with: a machine that cannot be asked is 78. */
static int examine(const struct options *o, struct mr_doctor *d, struct mr_plan *plan,
	struct mr_problems *problems, int *ret_status)
{
	struct mr_capture *capture = NULL;
	struct mr_err err = {0};
	int rc = mr_doctor_init(d, o->root, &err);

	*ret_status = MR_EXIT_CONFIG;
	if (rc != 0)
		goto out;
	memcpy(d->skip, o->skip, sizeof(d->skip));
	d->watch = d->ask_instance = true;
	if (o->capture != NULL) {
		capture = mr_capture_start(&d->root);
		if (capture == NULL)
			rc = mr_err_set(&err, -ENOMEM, "out of memory for a capture");
	}
	if (rc == 0)
		rc = mr_doctor_read(d, &err);
	if (rc == 0) {
		rc = judge(o, d, plan, problems, &err);
		complain(problems, rc, &err);
		/* What was read is worth having most where a configuration is refused. */
		if (capture != NULL && write_capture(capture, o->capture, &err) < 0) {
			mr_problem_add(problems, 0, "", "", "%s", err.msg);
			if (rc == 0)
				*ret_status = MR_EXIT_FAILURE;
			rc = -EIO;
		}
	}
	mr_capture_free(capture);
	if (rc != 0)
		mr_doctor_fini(d);
out:
	complain(problems, rc, &err);
	return rc;
}

int mr_cmd_doctor(const struct mr_cmd *self, int argc, char **argv)
{
	struct mr_problems *problems = calloc(1, sizeof(*problems));
	struct mr_doctor *d = calloc(1, sizeof(*d));
	struct mr_plan *plan = calloc(1, sizeof(*plan));
	struct options o;
	int status = MR_EXIT_FAILURE;
	bool stuck = false;
	sigset_t before;

	sigprocmask(SIG_SETMASK, NULL, &before);
	if (parse_options(self, argc, argv, &o) != 0) {
		status = mr_cmd_usage(self);
		goto out;
	}
	if (strcmp(o.root, "/") != 0)
		keep_signals_back(&before);
	if (problems == NULL || d == NULL || plan == NULL) {
		fprintf(stderr, "millrace: out of memory\n");
	} else if (examine(&o, d, plan, problems, &status) != 0) {
		snprintf(problems->file, sizeof(problems->file), "%s",
			o.config != NULL ? o.config : "doctor");
		status = refuse(&o, problems, status);
	} else {
		if (o.readback)
			read_back(d, plan, &stuck);
		status = status_of(mr_checks_worst(d->findings));
		if (o.json &&
			print_json(mr_doctor_json(d, o.config != NULL ? plan : NULL)) !=
				MR_EXIT_CLEAN)
			status = MR_EXIT_FAILURE;
		else if (!o.json)
			mr_doctor_print(d, o.config != NULL ? plan : NULL);
		if (stuck) {
			fflush(stdout);
			_exit(status);
		}
		mr_doctor_fini(d);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
out:
	free(problems);
	free(d);
	free(plan);
	return status;
}
