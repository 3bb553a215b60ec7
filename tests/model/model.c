/* SPDX-License-Identifier: BSD-3-Clause */
/*
 *     model                      all cases; fails where a rule is broken
 *     model --caught-by RULE     fails unless RULE is the first that is broken
 */
#include "model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const rules[MODEL_RULES] = {
	"holds", "owner", "once", "data", "stuck", "leaves", "finishes", "bounds"};

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static enum model_rule run_case(const struct model_case *c, double *schedules)
{
	struct model_count n;
	double start = seconds();
	enum model_rule broken = model_run(c, &n);

	*schedules += n.schedules;
	printf("%u worker%s, %u slots from %10u, %-6s: ", c->workers, c->workers == 1 ? " " : "s",
		c->count, c->first_seq, c->mapped ? "mapped" : "host");
	if (broken != MODEL_HOLDS)
		printf("%s: %s\n", rules[broken], model_failure());
	else
		printf("%.3g schedules of up to %u steps, %" PRIu64 " states, %" PRIu64
		       " runs, %.1f s\n",
			n.schedules, n.deepest, n.states, n.runs, seconds() - start);
	(void)fflush(stdout);
	return broken;
}

/* The cases up to the first that breaks a rule. */
static enum model_rule run_all(void)
{
	/* Two laps of a ring of two and one slot more; three workers for two slots, one lap. */
	static const struct model_case cases[] = {
		{.workers = 1, .count = 5, .first_seq = 0},
		{.workers = 1, .count = 5, .first_seq = 0, .mapped = true},
		{.workers = 1, .count = 5, .first_seq = UINT32_MAX - 1},
		{.workers = 1, .count = 5, .first_seq = UINT32_MAX - 1, .mapped = true},
		{.workers = 2, .count = 5, .first_seq = 0},
		{.workers = 2, .count = 5, .first_seq = 0, .mapped = true},
		{.workers = 2, .count = 5, .first_seq = UINT32_MAX - 1},
		{.workers = 2, .count = 5, .first_seq = UINT32_MAX - 1, .mapped = true},
		{.workers = 3, .count = 3, .first_seq = UINT32_MAX - 1},
	};
	enum model_rule broken = MODEL_HOLDS;
	double schedules = 0;

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && broken == MODEL_HOLDS; i++)
		broken = run_case(&cases[i], &schedules);
	printf("%.4g schedules: %s\n", schedules,
		broken == MODEL_HOLDS ? "every rule holds" : "a rule is broken");
	return broken;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--caught-by") == 0)
		return strcmp(rules[run_all()], argv[2]) != 0;
	if (argc != 1) {
		(void)fprintf(stderr, "usage: %s [--caught-by RULE]\n", argv[0]);
		return 2;
	}
	return run_all() != MODEL_HOLDS;
}
