/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd_doctor.h"
#include "mr_cmd_gen.h"
#include "mr_setup.h"
#include "mr_sync.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
	const char *config;
	const char *name;
	bool json;
};

/* What a run works with; large, so on the heap. */
struct gen {
	struct mr_gen_config cfg;
	struct mr_doctor machine;
	struct mr_gen_plan plan;
	struct mr_problems problems;
	struct mr_gen_report report;
};

static int parse_options(const struct mr_cmd *self, int argc, char **argv, struct options *o)
{
	int c;

	memset(o, 0, sizeof(*o));
	while ((c = mr_cmd_next(self, argc, argv)) != -1) {
		if (c == 'j')
			o->json = true;
		else if (c == 'n')
			o->name = optarg;
		else
			return -EINVAL;
	}
	if (optind + 1 != argc)
		return -EINVAL;
	o->config = argv[optind];
	return 0;
}

static int plan(struct gen *g, const struct options *o)
{
	struct mr_err err = {0};
	int rc = mr_doctor_init(&g->machine, "/", &err);

	if (rc == 0)
		rc = mr_gen_config_load(o->config, &g->cfg, &g->problems);
	if (rc == 0) {
		mr_doctor_spare_devices(&g->machine);
		rc = mr_doctor_read(&g->machine, &err);
	}
	if (rc == 0)
		rc = mr_gen_plan_build(
			&g->cfg, &g->machine.facts->host, o->name, &g->plan, &g->problems);
	if (rc == 0)
		rc = mr_setup_check(&g->cfg.base, &g->plan.plan, &g->problems);
	if (rc < 0 && g->problems.count == 0)
		mr_problem_add(&g->problems, 0, "", "", "%s", err.msg);
	return rc;
}

static bool before_step(void *ctx, const char *step)
{
	(void)ctx;
	(void)step;
	return mr_load_relaxed(&mr_cmd_signal_seen) == 0;
}

static enum mr_gen_wish ask(void *ctx)
{
	(void)ctx;
	if (mr_load_relaxed(&mr_cmd_signal_fast) != 0)
		return MR_GEN_END_NOW;
	return mr_load_relaxed(&mr_cmd_signal_seen) != 0 ? MR_GEN_END : MR_GEN_GO_ON;
}

static void print_loss(void *ctx, const char *sentence)
{
	(void)ctx;
	fprintf(stderr, "millrace: %s\n", sentence);
}

static int report(struct gen *g, const struct options *o, double duration_s)
{
	static const char *const reasons[] = {
		[MR_GEN_DONE] = "done", [MR_GEN_TOLD] = "signal", [MR_GEN_PORT_LOST] = "port_lost"};
	const struct mr_cmd_gen_run run = {
		&g->plan, &g->report, reasons[g->report.end], duration_s};

	mr_cmd_gen_print(&run, o->json ? stderr : stdout);
	if (o->json)
		mr_cmd_print_json(mr_cmd_gen_json(&run));
	mr_cmd_print("");
	if (g->report.end == MR_GEN_PORT_LOST)
		return MR_EXIT_PORT;
	return mr_cmd_gen_clean(&run) ? MR_EXIT_CLEAN : MR_EXIT_FAILURE;
}

static int run(struct gen *g, const struct options *o)
{
	uint64_t start_ns = mr_clock_ns();
	struct mr_err err = {0};
	struct mr_setup *s;
	int status, rc;

	rc = mr_setup_up(&g->plan.plan, before_step, NULL, &s, &err);
	if (rc == -ECANCELED) {
		g->report.end = MR_GEN_TOLD;
		g->report.found = -1;
		return report(g, o, 0);
	}
	if (rc < 0)
		return mr_cmd_fail(o->config, o->json, err.msg,
			rc == -EALREADY ? MR_EXIT_CONFIG : MR_EXIT_FAILURE);
	fprintf(stderr, "millrace: '%s' runs and sends on port '%s'\n", g->plan.plan.name,
		g->plan.plan.ports[g->plan.send_port].name);
	rc = mr_gen_run(s, &g->plan, ask, NULL, &g->report, &err);
	if (rc == -ETIME) {
		status = mr_cmd_fail(o->config, o->json, err.msg, MR_EXIT_FAILURE);
		fflush(stdout);
		_exit(status); /* a thread is still in its driver: nothing may be freed */
	}
	if (rc < 0) {
		status = mr_cmd_fail(o->config, o->json, err.msg, MR_EXIT_FAILURE);
	} else {
		if (g->report.end == MR_GEN_PORT_LOST)
			fprintf(stderr, "millrace: %s\n", err.msg);
		status = report(g, o, (double)(mr_clock_ns() - start_ns) / 1e9);
		if (mr_setup_judge(s, print_loss, NULL) > 0 && status == MR_EXIT_CLEAN)
			status = MR_EXIT_FAILURE;
	}
	if (mr_setup_down(s, &err) < 0 && status == MR_EXIT_CLEAN)
		status = MR_EXIT_FAILURE;
	return status;
}

int mr_cmd_gen(const struct mr_cmd *self, int argc, char **argv)
{
	struct options o;
	struct gen *g;
	int status;

	if (parse_options(self, argc, argv, &o) < 0)
		return mr_cmd_usage(self);
	mr_cmd_catch_signals(false);
	g = calloc(1, sizeof(*g));
	if (g == NULL)
		return mr_cmd_fail(o.config, o.json, "out of memory", MR_EXIT_FAILURE);
	if (plan(g, &o) < 0) {
		mr_cmd_print_problems(&g->problems);
		mr_cmd_print_failure(o.json, mr_cmd_problems_json(&g->problems));
		status = MR_EXIT_CONFIG;
	} else {
		status = run(g, &o);
	}
	mr_gen_config_free(&g->cfg);
	mr_doctor_fini(&g->machine);
	free(g);
	return status;
}
