/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_cmd_log - what a run tells while it runs: records where stderr is the journal, else sentences.
 *
 *     running ─► path, clock, reload_key, reload ... ─► stopping ─► drained ─► stopped
 *
 * deploy/README.md says what fields each of these records has. The sentences of drained, of
 * stopped and of a stopping without a failure are for the journal alone: elsewhere the report at
 * the end tells the same.
 *
 * Nothing here waits for who reads, since the control thread is what kernels take for the host's
 * life, but for the sentences on stderr that lanes run and that something failed.
 *
 * Thread   the control thread.
 */
#ifndef MR_CMD_LOG_H
#define MR_CMD_LOG_H

#include "mr_report.h"
#include "mr_setup_reload.h"

struct mr_log {
	const char *instance;
	uint32_t untold;            /* sentences that nobody read or that found no room */
	bool torn;                  /* the last of them may be there in part */
	int64_t day_ns;             /* from mr_clock_ns to the time of day; 0: not known yet */
	struct mr_report_lane lane; /* for reading one; large */
	uint64_t sent, dropped;     /* before the drain */
	const char *reason;         /* of the end; NULL: nothing came to run */
	bool balanced;              /* with a reason */
};

/*
 * mr_log_note writes a sentence to stderr. What nobody reads, or a full disk refuses, is counted,
 * and that is told later.
 */
void mr_log_note(void *log, const char *sentence);

void mr_log_running(struct mr_log *log, const struct mr_report_source *src);

/* mr_log_clock, to be called over and over, tells where the time of day was set. */
void mr_log_clock(struct mr_log *log);

/* The last argument of mr_setup_alarms and the functions of mr_setup_reload_told. */
void mr_log_path(void *log, const struct mr_setup_alarm *alarm);
void mr_log_change(void *log, const struct mr_config_change *change);
void mr_log_reloaded(void *log, enum mr_setup_reloaded what, uint32_t tables, const char *sentence);

/* drain_ms: at most, 0 for no drain; failure is its sentence, or NULL. */
void mr_log_stopping(struct mr_log *log, const struct mr_report_source *src, const char *reason,
	uint32_t drain_ms, const char *failure);

/* all: nothing was left, whatever ended the drain. */
void mr_log_drained(struct mr_log *log, const struct mr_report_source *src,
	enum mr_setup_drained how, bool all);

/* The last one, whatever came of the run. */
void mr_log_stopped(struct mr_log *log, int status);

#endif
