/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_setup_reload - a running instance takes what its configuration says now.
 *
 *     ask ─► a thread reads and judges the file ─► kernels take it between slots ─► told
 *      └── refused: a reload      └── refused: all    └── failed: some have it, and one
 *          is under way               that is wrong       has not taken it within driver_ms
 *
 * The whole file is judged as at the start. What can change while packets move are the
 * stages' parameters, the tables that they load from files, a match that is a stage, limits of time
 * and the log's level (mr_config_compare); any other key that changed, and any mistake, refuses
 * all of it, and what was in force stays so. No packet is lost or meets half of a change: each
 * slot is worked by one generation of all of its lane's stages. A lane takes its limits as it next
 * publishes.
 *
 * Reading takes as long as the files are large, so it has a thread of its own, which looks at
 * nothing that runs; the control thread goes on to beat and hands the kernels what was read.
 *
 * Thread   ask: any, a signal handler not among them. The rest: the control thread.
 */
#ifndef MR_SETUP_RELOAD_H
#define MR_SETUP_RELOAD_H

#include "mr_setup.h"

/* What a reload starts from; all of it is borrowed while the plan is up. */
struct mr_setup_reload_spec {
	const char *file;
	const struct mr_config *cfg;       /* in force */
	const struct mr_host_facts *facts; /* of the machine that the plan was made for */
	const char *name;                  /* from the command line, or NULL */
};

/* mr_setup_reload_allow makes reloads possible; without it they are refused. */
void mr_setup_reload_allow(struct mr_setup *s, const struct mr_setup_reload_spec *spec);

/*
 * mr_setup_reload_ask: -EBUSY one is under way; -ENOTSUP this program does not, or it stops.
 * awaited: who asks fetches the answer by reports, and a stop gives it five seconds for that.
 */
MR_MUST_USE int mr_setup_reload_ask(struct mr_setup *s, bool awaited, uint64_t *ret_ticket);

enum mr_setup_reloaded {
	MR_SETUP_RELOADED,       /* all of it is in force */
	MR_SETUP_RELOAD_REFUSED, /* nothing was changed */
	MR_SETUP_RELOAD_UNTAKEN, /* in force, but not with all workers */
};

/* Who is told when a reload ends, in this order: each key that changed or what was wrong, the end.
 */
struct mr_setup_reload_told {
	void (*change)(void *ctx, const struct mr_config_change *change);
	mr_setup_tell *sentence;
	/* tables: how many were read anew from their files and are in force, changed or not. */
	void (*end)(void *ctx, enum mr_setup_reloaded what, uint32_t tables, const char *sentence);
	void *ctx;
};

/* mr_setup_reload_turn goes on with a reload, if there is one; call it as often as the watch. */
void mr_setup_reload_turn(struct mr_setup *s, const struct mr_setup_reload_told *told);

#endif
