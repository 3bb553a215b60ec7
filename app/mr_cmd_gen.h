/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_cmd_gen - what `millrace gen` found, for people and as JSON. */
#ifndef MR_CMD_GEN_H
#define MR_CMD_GEN_H

#include "mr_cmd.h"
#include "mr_gen.h"

/* What else the report tells. */
struct mr_cmd_gen_run {
	const struct mr_gen_plan *plan;
	const struct mr_gen_report *report;
	const char *exit_reason;
	double duration_s;
};

/* mr_cmd_gen_clean tells whether the report is of what was wanted: nothing lost, or found. */
bool mr_cmd_gen_clean(const struct mr_cmd_gen_run *run);

/* The report as an object (tests/schema/gen.schema.json), and printed to f. */
json_t *mr_cmd_gen_json(const struct mr_cmd_gen_run *run);
void mr_cmd_gen_print(const struct mr_cmd_gen_run *run, FILE *f);

#endif
