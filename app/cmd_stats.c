/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd.h"

#include "mr_report.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
	const char *name; /* NULL: the only one that runs */
	bool watch, json, prometheus;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

/* Prints a rendering and frees it; false when stdout or memory fails. */
static bool print_text(char *text)
{
	bool ok = text != NULL && fputs(text, stdout) >= 0 && fflush(stdout) == 0;

	free(text);
	return ok;
}

static bool print_json(const json_t *report)
{
	return json_dumpf(report, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6)) == 0 &&
		putchar('\n') != EOF && fflush(stdout) == 0;
}

static bool print_report(const struct options *opt, const json_t *report)
{
	if (opt->json)
		return print_json(report);
	if (opt->prometheus)
		return print_text(mr_report_prometheus(report));
	return print_text(mr_report_text(report));
}

/* With --json the failure is also the one line of stdout. */
static int fail(const struct options *opt, const struct mr_err *err)
{
	fprintf(stderr, "millrace: %s\n", err->msg);
	if (opt->json) {
		json_t *o = json_pack("{s:[{s:n,s:n,s:n,s:s,s:n}]}", "errors", "file", "line",
			"key", "message", err->msg, "hint");

		if (o != NULL)
			print_json(o);
		json_decref(o);
	}
	return MR_EXIT_FAILURE;
}

static int fail_to_print(const struct options *opt)
{
	struct mr_err err;

	mr_err_set(&err, -EIO, "the statistics could not be written: %s", strerror(errno));
	return fail(opt, &err);
}

static void sleep_until(uint64_t ns)
{
	while (!interrupted && mr_clock_ns() < ns) {
		struct timespec at = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
}

/* One report as it is, then each second what changed, until SIGINT. */
static int watch(const struct options *opt, const char *name, json_t *before, uint64_t before_ns)
{
	struct sigaction on = {.sa_handler = on_interrupt};
	uint64_t next = before_ns;
	struct mr_err err;
	int status = MR_EXIT_CLEAN;

	sigaction(SIGINT, &on, NULL);
	sigaction(SIGTERM, &on, NULL);
	while (status == MR_EXIT_CLEAN) {
		json_t *now;
		uint64_t now_ns;
		bool printed;

		next += 1000000000u;
		sleep_until(next);
		if (interrupted)
			break;
		if (mr_report_fetch(name, &now, &err) != 0) {
			status = interrupted ? MR_EXIT_CLEAN : fail(opt, &err);
			break;
		}
		now_ns = mr_clock_ns();
		printed = opt->json ? print_json(now)
				    : print_text(mr_report_rates(
					      before, now, (double)(now_ns - before_ns) / 1e9));
		if (!printed)
			status = fail_to_print(opt);
		json_decref(before);
		before = now;
		before_ns = now_ns;
	}
	json_decref(before);
	return status;
}

static int parse(const struct mr_cmd *self, int argc, char **argv, struct options *opt)
{
	int c;

	optind = 1;
	while ((c = mr_cmd_next(self, argc, argv)) != -1) {
		switch (c) {
		case 'n':
			opt->name = optarg;
			break;
		case 'w':
			opt->watch = true;
			break;
		case 'j':
			opt->json = true;
			break;
		case 'p':
			opt->prometheus = true;
			break;
		default:
			return mr_cmd_usage(self);
		}
	}
	if (optind != argc || (opt->prometheus && (opt->json || opt->watch)))
		return mr_cmd_usage(self);
	return 0;
}

int mr_cmd_stats(const struct mr_cmd *self, int argc, char **argv)
{
	struct options opt = {0};
	char name[MR_NAME_MAX];
	struct mr_err err;
	json_t *report;
	uint64_t now_ns;
	int status = parse(self, argc, argv, &opt);

	if (status != 0)
		return status;
	if (opt.name == NULL) {
		if (mr_report_find(name, &err) != 0)
			return fail(&opt, &err);
		opt.name = name;
	}
	if (mr_report_fetch(opt.name, &report, &err) != 0)
		return fail(&opt, &err);
	now_ns = mr_clock_ns();
	if (!print_report(&opt, report)) {
		json_decref(report);
		return fail_to_print(&opt);
	}
	if (opt.watch)
		return watch(&opt, opt.name, report, now_ns);
	json_decref(report);
	return MR_EXIT_CLEAN;
}
