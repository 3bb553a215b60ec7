/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

struct options {
	const char *config;
	const char *name;
	bool json;
	bool no_host;
};

/* What a check works with; large, so on the heap. */
struct check {
	struct mr_config cfg;
	struct mr_host host;
	struct mr_plan plan;
	struct mr_problems problems;
};

static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"json", no_argument, NULL, 'j'},
		{"no-host", no_argument, NULL, 'h'}, {"name", required_argument, NULL, 'n'},
		{NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
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
		default:
			return -1;
		}
	}
	if (optind + 1 != argc)
		return -1;
	o->config = argv[optind];
	return 0;
}

static int plan(struct check *c, const struct options *o)
{
	struct mr_err err;
	int rc = mr_config_load(o->config, &c->cfg, &c->problems);

	if (rc != 0)
		return rc;
	if (!o->no_host) {
		rc = mr_host_read("/", &c->host, &err);
		if (rc != 0) {
			mr_problem_add(&c->problems, 0, "", "use --no-host to plan without it",
				"%s", err.msg);
			return rc;
		}
	}
	return mr_plan_build(&c->cfg, &c->host, o->name, &c->plan, &c->problems);
}

static int print_json(json_t *j)
{
	char *line = j != NULL ? json_dumps(j, JSON_COMPACT) : NULL;

	json_decref(j);
	if (line == NULL) {
		fprintf(stderr, "millrace: out of memory\n");
		return MR_EXIT_FAILURE;
	}
	puts(line);
	free(line);
	return MR_EXIT_CLEAN;
}

int mr_cmd_check(const struct mr_cmd *self, int argc, char **argv)
{
	struct options o = {0};
	struct check *c;
	int status = MR_EXIT_CLEAN;
	int rc;

	if (parse_options(argc, argv, &o) != 0)
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
	free(c);
	return status;
}
