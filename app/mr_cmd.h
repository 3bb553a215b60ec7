/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_cmd - the commands of the one executable, a file each.
 *
 * A command parses its own arguments (mr_cmd_next), prints to stdout what was
 * asked for and to stderr one sentence per error, and returns an exit status of
 * enum mr_exit. With --json, stdout is exactly one line holding one JSON object,
 * whatever the status; only MR_EXIT_USAGE, where the arguments could not be
 * understood and --json with them, leaves stdout empty.
 */
#ifndef MR_CMD_H
#define MR_CMD_H

#include "mr_param.h"
#include "mr_plan.h"

#include <jansson.h>
#include <stdio.h>

enum mr_exit {
	MR_EXIT_CLEAN = 0,
	MR_EXIT_FAILURE = 1, /* run-time failure */
	MR_EXIT_USAGE = 2,
	MR_EXIT_GPU = 3,       /* GPU lost or stalled */
	MR_EXIT_PORT = 4,      /* port lost */
	MR_EXIT_UNDRAINED = 5, /* stopped before drained */
	MR_EXIT_CONFIG = 78,   /* configuration or preflight */
};

enum mr_cmd_use {
	MR_CMD_MAY,
	MR_CMD_INSTEAD, /* of the option before, not beside it */
	MR_CMD_MUST,
};

/* The rows of mr_cmd_table.c, which is the one place for a command, option or status. */
struct mr_cmd_option {
	const char *name;  /* without its dashes: one before a single letter, else two */
	const char *value; /* what it takes, as usage shows it; NULL: nothing */
	int key;           /* what mr_cmd_next gives for it */
	const char *help;  /* part of a sentence */
	enum mr_cmd_use use;
};

#define MR_CMD_OPTIONS_MAX 32u

struct mr_cmd {
	const char *name;
	const char *sub;                     /* a second word that chooses; NULL: none */
	const char *operands;                /* as usage shows them, "" for none */
	const char *help;                    /* part of a sentence */
	const struct mr_cmd_option *options; /* a name of NULL is behind the last */
	/* argv[0] is the command's name, or its second word. */
	int (*run)(const struct mr_cmd *self, int argc, char **argv);
};

struct mr_cmd_status {
	enum mr_exit status;
	const char *meaning;
};

extern const struct mr_cmd mr_cmds[];
extern const uint32_t mr_cmds_count;
extern const struct mr_cmd_status mr_cmd_statuses[];
extern const uint32_t mr_cmd_statuses_count;

int mr_cmd_run(const struct mr_cmd *self, int argc, char **argv);
int mr_cmd_check(const struct mr_cmd *self, int argc, char **argv);
int mr_cmd_doctor(const struct mr_cmd *self, int argc, char **argv);
int mr_cmd_stats(const struct mr_cmd *self, int argc, char **argv);
int mr_cmd_reload(const struct mr_cmd *self, int argc, char **argv);
int mr_cmd_capture(const struct mr_cmd *self, int argc, char **argv);
int mr_cmd_stages(const struct mr_cmd *self, int argc, char **argv);
int mr_cmd_gen(const struct mr_cmd *self, int argc, char **argv);
int mr_cmd_bench_crossover(const struct mr_cmd *self, int argc, char **argv);
int mr_cmd_bench_compare(const struct mr_cmd *self, int argc, char **argv);
int mr_cmd_manual(const struct mr_cmd *self, int argc, char **argv);

/* The key of the next option, -1 behind the last, '?' with a sentence on stderr: getopt(3). */
int mr_cmd_next(const struct mr_cmd *self, int argc, char **argv);

/* The dashes of an option. */
const char *mr_cmd_dashes(const struct mr_cmd_option *o);

/* "millrace NAME OPERANDS [--option VALUE] ...", without a new line; a line an option. */
void mr_cmd_print_usage(FILE *f, const struct mr_cmd *c);
void mr_cmd_print_options(FILE *f, const struct mr_cmd *c);

/* A stage's parameter: its type, words, bounds, unit and default, without a new line. */
void mr_cmd_print_param_kind(FILE *f, const struct mr_param_desc *p);

/* Prints "usage: millrace NAME ..." to stderr and returns MR_EXIT_USAGE. */
int mr_cmd_usage(const struct mr_cmd *self);

/* Writes text to stdout at once; main() tells of the first failure, and why. */
void mr_cmd_print(const char *text);

/* Prints "file:line: key: message; hint" to stderr, a line for each problem. */
void mr_cmd_print_problems(const struct mr_problems *ps);

/* A new array of {file, line, key, message, hint}; NULL without memory. */
json_t *mr_cmd_problems_json(const struct mr_problems *ps);

/* A new string; bytes that are not UTF-8 (a file's name may hold any) become '?'. */
json_t *mr_cmd_json_text(const char *text);

/* Prints the object as the one line of stdout and frees it; NULL: without memory, nothing. */
void mr_cmd_print_json(json_t *j);

/* The object of a command that never came to its work; takes errors, and without json frees it. */
void mr_cmd_print_failure(bool json, json_t *errors);

/* A sentence that has no line in the configuration: to stderr, and as such an object. */
int mr_cmd_fail(const char *config, bool json, const char *sentence, int status);

/*
 * SIGINT, SIGTERM and SIGHUP as words: written by the handler, read with mr_load_relaxed. The
 * first sets seen, a second one fast too; SIGPIPE is ignored. interrupt: calls that wait end with
 * EINTR, where they would go on else.
 */
extern uint32_t mr_cmd_signal_seen, mr_cmd_signal_fast;
void mr_cmd_catch_signals(bool interrupt);

/*
 * From here on SIGHUP sets wanted (mr_load_relaxed), while the terminal that this process had
 * is there; that it goes away is told by SIGHUP too, and ends the run as before. Under nohup
 * neither does anything.
 */
extern uint32_t mr_cmd_reload_wanted;
void mr_cmd_catch_reload(void);

/* A plan for people, and as an object (tests/schema/check.schema.json). */
void mr_cmd_print_plan(const struct mr_plan *p);
json_t *mr_cmd_plan_json(const struct mr_plan *p);

#endif
