/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd_doctor.h"

#include "mr_http.h"
#include "mr_setup.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

struct options {
	const char *config;
	const char *name;
	const char *root; /* machine to plan for; "/" is this one */
	bool json;
	bool no_host;
};

/* What a check works with; large, so on the heap. */
struct check {
	struct mr_config cfg;
	struct mr_plugins plugins;
	struct mr_doctor machine; /* read unless --no-host */
	struct mr_plan plan;
	struct mr_problems problems;
};

static int parse_options(const struct mr_cmd *self, int argc, char **argv, struct options *o)
{
	int c;

	while ((c = mr_cmd_next(self, argc, argv)) != -1) {
		switch (c) {
		case 'j':
			o->json = true;
			break;
		case 'h':
			o->no_host = true;
			break;
		case 'n':
			o->name = optarg;
			break;
		case 'r':
			o->root = optarg;
			break;
		default:
			return -1;
		}
	}
	if (optind + 1 != argc || (o->no_host && o->root != NULL))
		return -1;
	o->config = argv[optind];
	return 0;
}

/* As run chooses its paths, but for what only the devices know: they are not opened. */
static int plan_for_machine(struct check *c, const struct options *o)
{
	struct mr_err err = {0};
	int rc = mr_doctor_init(&c->machine, o->root != NULL ? o->root : "/", &err);

	if (rc == 0)
		rc = mr_doctor_read(&c->machine, &err);
	if (rc == 0) {
		mr_doctor_spare_devices(&c->machine);
		rc = mr_doctor_plan(
			&c->machine, &c->cfg, o->name, false, &c->plan, &c->problems, &err);
	}
	if (rc != 0 && c->problems.count == 0)
		mr_problem_add(
			&c->problems, 0, "", "use --no-host to plan without it", "%s", err.msg);
	return rc;
}

static int plan(struct check *c, const struct options *o)
{
	static const struct mr_host unknown;
	struct mr_err err = {0};
	int rc = mr_config_load(o->config, &c->cfg, &c->problems);

	if (rc == 0)
		rc = mr_config_load_plugins(&c->cfg, &c->plugins, &c->problems);
	if (rc != 0)
		return rc;
	rc = o->no_host ? mr_plan_build(&c->cfg, &unknown, o->name, &c->plan, &c->problems)
			: plan_for_machine(c, o);
	if (rc == 0)
		rc = mr_setup_check_tables(&c->cfg, &c->plan, &c->problems);
	/* A file of who may ask belongs to the machine. */
	if (rc == 0 && !o->no_host && o->root == NULL) {
		rc = mr_http_check(c->plan.http_users, &err);
		if (rc < 0)
			mr_problem_add(&c->problems, 0, "http.users", "", "%s", err.msg);
	}
	return rc;
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

int mr_cmd_check(const struct mr_cmd *self, int argc, char **argv)
{
	struct options o = {0};
	struct check *c;
	int status = MR_EXIT_CLEAN;
	int rc;

	if (parse_options(self, argc, argv, &o) != 0)
		return mr_cmd_usage(self);
	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		fprintf(stderr, "millrace: out of memory\n");
		return MR_EXIT_FAILURE;
	}
	rc = plan(c, &o);
	if (rc != 0) {
		mr_cmd_print_problems(&c->problems);
		if (o.json)
			status = print_json(
				json_pack("{s:o}", "errors", mr_cmd_problems_json(&c->problems)));
		if (status == MR_EXIT_CLEAN)
			status = MR_EXIT_CONFIG;
	} else if (o.json) {
		status = print_json(mr_cmd_plan_json(&c->plan));
	} else {
		mr_cmd_print_plan(&c->plan);
	}
	mr_config_free(&c->cfg);
	mr_plugins_free(&c->plugins);
	mr_doctor_fini(&c->machine);
	free(c);
	return status;
}
