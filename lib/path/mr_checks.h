/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_checks - does this machine have what is asked of it?
 *
 *     facts + needs ─ mr_checks_run ─► one finding per row of mr_checks.def
 *
 * Every check is a pure function: it reads no file and keeps no state. A fact
 * that could not be read is UNKNOWN and never PASS; a check whose question does
 * not arise is NA and says why. Each finding that is not PASS or NA carries one
 * hint, in which `commands` stand between backticks.
 *
 * Several devices in one check: the worst decides, and all are named.
 *
 * Thread   any.
 */
#ifndef MR_CHECKS_H
#define MR_CHECKS_H

#include "mr_facts_topology.h"
#include "mr_needs.h"

/* From good to bad, so that the worst is the highest. */
enum mr_check_verdict {
	MR_NA,
	MR_PASS,
	MR_WARN,
	MR_UNKNOWN,
	MR_FAIL,
};

struct mr_finding {
	enum mr_check_verdict verdict;
	bool gating;  /* without it the lanes that are asked for cannot run */
	bool skipped; /* as asked; the verdict does not count */
	char value[512];
	char hint[384];
};

/* When a check's question arises; the others are NA with the reason. */
enum mr_check_scope {
	MR_SCOPE_ALWAYS,
	MR_SCOPE_REAL,   /* a lane has a core of its own, or hardware is used */
	MR_SCOPE_CONFIG, /* a configuration was given */
	MR_SCOPE_LANES,  /* a lane of a configuration has a core of its own */
	MR_SCOPE_GPU,    /* a real GPU is used */
	MR_SCOPE_NIC,    /* a NIC is used by DPDK's PCI driver */
	MR_SCOPE_DIRECT, /* packets travel between NIC and GPU memory */
	MR_SCOPE_GPUMEM, /* the same, and it is a GPU's: not what stands in for one */
	MR_SCOPE_PEERMEM,
	MR_SCOPE_DMABUF,
};

struct mr_check_in {
	const struct mr_host_facts *f;
	const struct mr_facts_topology *topology;
	const struct mr_needs *needs;
};

struct mr_check {
	uint32_t number;
	const char *id;
	const char *title;
	enum mr_check_scope scope;
	bool gating;
	void (*judge)(const struct mr_check_in *in, struct mr_finding *ret);
};

#define MR_CHECKS_COUNT 60u
extern const struct mr_check mr_checks[MR_CHECKS_COUNT];

/* The findings of all checks, in the order of the table. */
void mr_checks_run(const struct mr_check_in *in, struct mr_finding ret_findings[MR_CHECKS_COUNT]);

/* UNKNOWN on a gating check becomes FAIL. */
void mr_checks_be_strict(struct mr_finding findings[MR_CHECKS_COUNT]);

/* The worst that counts; PASS when nothing else is left. */
enum mr_check_verdict mr_checks_worst(const struct mr_finding findings[MR_CHECKS_COUNT]);

/* Index of the check of this id, or MR_CHECKS_COUNT. */
uint32_t mr_checks_find(const char *id);

const char *mr_check_verdict_name(enum mr_check_verdict v);

#endif
