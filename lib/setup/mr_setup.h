/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_setup - from a plan to running lanes, and back.
 *
 * Bring-up is a table of steps (mr_setup.c): up in order, down in reverse over
 * what came up, so that whatever fails, exactly what was made is undone.
 *
 *     mr_setup_check ─► mr_setup_up ─► mr_setup_watch ... ─► mr_setup_stop
 *                                            ─► mr_setup_judge ─► mr_setup_down
 *
 * Thread   the control thread, for everything but the report source.
 * Owner    the plan is borrowed and must outlive the structure.
 * Errors   one sentence; after a failed up nothing is left behind. EAL starts once in
 *          a process, so after an up that got so far another one is -EPERM.
 */
#ifndef MR_SETUP_H
#define MR_SETUP_H

#include "mr_plan.h"
#include "mr_proof.h"
#include "mr_report.h"

struct mr_setup;
struct mr_port;
struct rte_mempool;

/*
 * mr_setup_check looks at what the plan names on this machine, before anything is
 * opened: files and limits, where DPDK's own words would mislead. Returns 0, or
 * -EINVAL with a problem for each; cfg is for their lines.
 */
MR_MUST_USE int mr_setup_check(
	const struct mr_config *cfg, const struct mr_plan *plan, struct mr_problems *problems);

/* The part of it that reads the tables of stages, for who opens nothing else. */
MR_MUST_USE int mr_setup_check_tables(
	const struct mr_config *cfg, const struct mr_plan *plan, struct mr_problems *problems);

/*
 * mr_setup_up brings everything up. -EALREADY: an instance of that name runs, and
 * nothing else was looked at. before_step may be NULL; it is called with the
 * step's name before each step. Where it returns false, nothing more is brought up:
 * -ECANCELED, with everything undone as after a failure. -ETIMEDOUT: see down.
 */
typedef bool mr_setup_before_step(void *ctx, const char *step);
MR_MUST_USE int mr_setup_up(const struct mr_plan *plan, mr_setup_before_step *before_step,
	void *ctx, struct mr_setup **ret_setup, struct mr_err *err);

/*
 * mr_setup_try brings a plan up as far as its paths are proven, lets no lane run, and takes
 * everything down again. One proof for each lane of the plan: PASS where bytes were seen to
 * go its way. Where the plan's alarm is go_on, evidence against a path is no error.
 * before_step, -EALREADY, -ECANCELED and -ETIMEDOUT: see up. The process starts no other plan
 * after it.
 */
MR_MUST_USE int mr_setup_try(const struct mr_plan *plan, mr_setup_before_step *before_step,
	void *ctx, struct mr_proof ret_lanes[MR_LANES_MAX], struct mr_err *err);

enum mr_setup_event {
	MR_SETUP_OK,
	MR_SETUP_GPU_LOST,
	MR_SETUP_GPU_STALLED,
	MR_SETUP_HOST_SILENT,
	MR_SETUP_PORT_LOST,
	MR_SETUP_PATH_LOST, /* evidence against a path that stops on alarm */
};

/*
 * mr_setup_watch beats for the host, follows links and judges devices and ports;
 * call it every MR_SETUP_WATCH_MS. err holds the sentence of anything but OK. What it
 * finds first it goes on to return.
 */
#define MR_SETUP_WATCH_MS 20u
enum mr_setup_event mr_setup_watch(struct mr_setup *s, struct mr_err *err);

/* mr_setup_seen is what the watch has found first, in the course of a stop too. */
enum mr_setup_event mr_setup_seen(const struct mr_setup *s, struct mr_err *err);

typedef void mr_setup_tell(void *ctx, const char *sentence);

/*
 * mr_setup_alarms, after each watch and after a stop, tells once of each lane against whose path
 * the watch found evidence. There is no way back: a path is proven at the start. What an alarm
 * points at is for the call alone.
 */
struct mr_setup_alarm {
	const char *lane, *evidence;
	const char *path; /* direct, pinned or staged; unproven: it was that before */
	const char *sentence;
	bool stops; /* the watch has found a reason to end the run: this, or another */
};
typedef void mr_setup_tell_alarm(void *ctx, const struct mr_setup_alarm *alarm);
void mr_setup_alarms(struct mr_setup *s, mr_setup_tell_alarm *tell, void *ctx);

/*
 * mr_setup_activity sums a number over all lanes that changes whenever a packet
 * moved; *ret_in_flight is the number of packets in flight. Ticks and results are left out.
 */
uint64_t mr_setup_activity(struct mr_setup *s, uint64_t *ret_in_flight);

/* mr_setup_drain_ms is how long the configuration that is in force lets a stop drain. */
uint32_t mr_setup_drain_ms(const struct mr_setup *s);

/* What ended a drain. */
enum mr_setup_drained {
	MR_SETUP_DRAINED,
	MR_SETUP_DRAIN_TIME,
	MR_SETUP_DRAIN_FAST,
	MR_SETUP_DRAIN_FAILED, /* the watch has found something, or it did not begin */
};

/*
 * mr_setup_stop drains the lanes for at most drain_ms and stops them; it looks at
 * *fast all the while and stops at once when it is not 0. fail_closed skips the
 * drain (the device is gone). Returns 0 when every lane drained, -EBUSY when
 * packets were left in flight, a stage had results to tell yet, or a kernel stays, -ETIME when a
 * lane's thread did not end: then only the process's end frees what it holds. *ret_drained, which
 * may be NULL, is what ended the drain, whatever came after it. Devices and ports are
 * watched meanwhile; with anything but a port lost the drain ends (mr_setup_seen). Who asked for a
 * reload, and has yet to hear what came of it, is let do so for at most five seconds after that was
 * known.
 */
MR_MUST_USE int mr_setup_stop(struct mr_setup *s, uint32_t drain_ms, const uint32_t *fast,
	bool fail_closed, enum mr_setup_drained *ret_drained, struct mr_err *err);

/*
 * mr_setup_judge, between a stop that was not -ETIME and down, tells a sentence for
 * every port whose files do not hold what was counted: captures cut short on the way
 * in, frames that a full disk refused on the way out. Returns how many.
 */
uint32_t mr_setup_judge(struct mr_setup *s, mr_setup_tell *tell, void *ctx);

/*
 * mr_setup_down undoes all steps; after a -ETIME of stop it must not be called.
 * -ETIMEDOUT: a device's driver does not return, or a kernel stays. Everything else was
 * undone, and the process has to end by _exit; the sentence is empty if it was told before.
 * -ETIME: all was undone, but the thread that reads for a reload does not return; to be ended
 * by _exit too.
 */
int mr_setup_down(struct mr_setup *s, struct mr_err *err);

/*
 * mr_setup_again takes everything but the instance and EAL down and brings it up by
 * another plan of the same name, after a stop that was not -ETIME: for programs that run
 * many plans in turn. What EAL was started with stays as it is, its memory included. plan
 * is borrowed from now on. After a failure only the instance and EAL are up, and again and
 * down may follow; after -ETIMEDOUT only the process's end, by _exit.
 */
MR_MUST_USE int mr_setup_again(struct mr_setup *s, const struct mr_plan *plan, struct mr_err *err);

/* Of a plan without lanes, whose ports the caller polls itself; valid while it is up. */
struct mr_port *mr_setup_port(struct mr_setup *s, uint32_t port);
struct rte_mempool *mr_setup_host_pool(struct mr_setup *s);

/* The source of reports; valid while a plan is up. */
const struct mr_report_source *mr_setup_source(struct mr_setup *s);

#endif
