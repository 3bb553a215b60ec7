/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_cmd_notify - what a run tells the service manager that started it.
 *
 *     each step of bring-up   STATUS=, EXTEND_TIMEOUT_USEC= (registering memory may take long)
 *     every lane runs, and on a path that is proven        READY=1, once
 *     now and then            STATUS=, and where a watchdog is wanted WATCHDOG=1
 *     the end                 STOPPING=1, EXTEND_TIMEOUT_USEC= (for the drain)
 *
 * The watchdog is fed only while every lane turns its loop, each of its workers beats, and packets
 * end where some are in flight: that the process lives is no reason. A path that is not proven is
 * never READY, even where the configuration lets lanes go on.
 *
 * Without $NOTIFY_SOCKET all of this does nothing. A manager that does not read is not waited
 * for: what it has no room for is told it at the next look, as far as it still holds.
 *
 * Thread   the control thread.
 * Source   sd_notify(3), sd_watchdog_enabled(3), systemd.service(5)
 */
#ifndef MR_CMD_NOTIFY_H
#define MR_CMD_NOTIFY_H

#include "mr_plan.h"
#include "mr_report.h"

struct mr_notify {
	bool wanted, ready;
	uint64_t every_ns; /* between two looks at the lanes */
	uint64_t looked_ns;
	bool watchdog;
	struct mr_report_lane lane; /* for reading one; large */
	uint64_t turns[MR_LANES_MAX], ended[MR_LANES_MAX];
	uint32_t beats[MR_LANES_MAX][MR_REPORT_WORKERS_MAX];
	char status[512];
};

void mr_notify_init(struct mr_notify *n);
void mr_notify_step(const struct mr_notify *n, const char *step);

/* mr_notify_turn looks at the lanes when it is time to. */
void mr_notify_turn(struct mr_notify *n, const struct mr_report_source *src, uint64_t now_ns);

/* drain_ms: how long the lanes may drain. */
void mr_notify_stopping(const struct mr_notify *n, uint32_t drain_ms);

#endif
