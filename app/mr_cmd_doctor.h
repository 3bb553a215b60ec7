/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_cmd_doctor - what `doctor` and `run` share: a machine judged against a plan.
 *
 *     init ─► examine ─► findings, printed or refused by ─► fini
 */
#ifndef MR_CMD_DOCTOR_H
#define MR_CMD_DOCTOR_H

#include "mr_checks.h"
#include "mr_cmd.h"

#define MR_DOCTOR_WATCH_S 2u

struct mr_doctor {
	struct mr_root root;
	struct mr_probe_machine machine;
	struct mr_probe probe;
	struct mr_host_facts *facts;
	struct mr_facts_topology *topology;
	struct mr_needs *needs;
	struct mr_finding findings[MR_CHECKS_COUNT];
	struct mr_plugins plugins;  /* of the configuration that is judged */
	bool skip[MR_CHECKS_COUNT]; /* checks that are not to count */
	bool watch;                 /* counters for MR_DOCTOR_WATCH_S, where there are devices */
	bool ask_instance;          /* whether one of the plan's name runs already */
};

/* Opens the root; "/" is this machine. fini is for what init was given, also in vain. */
MR_MUST_USE int mr_doctor_init(struct mr_doctor *d, const char *root, struct mr_err *err);
void mr_doctor_fini(struct mr_doctor *d);

/* From here on no device of this machine is asked; what only they know is UNKNOWN. */
void mr_doctor_spare_devices(struct mr_doctor *d);

/* Puts the check of this id into the set; false, with a sentence on stderr, if there is none. */
bool mr_doctor_take_check(const char *id, bool set[MR_CHECKS_COUNT]);

/* Reads the facts; then judges them, against the general question where plan is NULL. */
MR_MUST_USE int mr_doctor_read(struct mr_doctor *d, struct mr_err *err);
MR_MUST_USE int mr_doctor_judge(
	struct mr_doctor *d, const struct mr_plan *plan, bool strict, struct mr_err *err);

/*
 * mr_doctor_plan plans a configuration for the machine that was read, and judges that.
 * A lane that this machine keeps from being direct, and that lists another path, is planned
 * with that one; which, and why, is in the plan.
 */
MR_MUST_USE int mr_doctor_plan(struct mr_doctor *d, const struct mr_config *cfg, const char *name,
	bool strict, struct mr_plan *ret_plan, struct mr_problems *problems, struct mr_err *err);

/* What `count` lanes of a plan ask of a machine, from `first` on. */
void mr_doctor_needs(const struct mr_plan *plan, uint32_t first, uint32_t count,
	const struct mr_host_facts *f, struct mr_needs *ret_needs);

/* The report for people, and as an object (tests/schema/doctor.schema.json); plan or NULL. */
void mr_doctor_print(const struct mr_doctor *d, const struct mr_plan *plan);
json_t *mr_doctor_json(const struct mr_doctor *d, const struct mr_plan *plan);

#endif
