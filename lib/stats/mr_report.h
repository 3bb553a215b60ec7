/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_report - one shape for everything a running instance says about itself.
 *
 *     setup ── struct mr_report_source ──► report of `run`      (JSON, text)
 *                                     └──► telemetry socket ──► `stats`
 *
 * The source fills plain structures from the live instance; this module turns
 * them into JSON (jansson), offers them on DPDK's telemetry socket, one command
 * per object because a reply is at most 16 KiB, and turns the JSON of an
 * instance into text for people and into Prometheus text.
 *
 *     /millrace/instance          name, version, pid, uptime, how many of each
 *     /millrace/lanes             names          /millrace/lane,NAME
 *     /millrace/latency,NAME      /millrace/stages,NAME,I   /millrace/evidence,NAME,I
 *     /millrace/ports             names          /millrace/port,NAME
 *     /millrace/devices           names          /millrace/device,NAME
 *     /millrace/reload            asks for one   /millrace/reloaded     what came of it
 *     /millrace/refusal,TICKET,I  why it was refused
 *     /millrace/heard,TICKET      says that all of it was heard
 *
 * A reply is a flat dict of numbers and strings, so that DPDK's own telemetry
 * clients can read it. Each holds the name it was asked for, since DPDK 22.11
 * parses requests with strtok() and two clients at one time can get each
 * other's argument: mr_report_fetch compares and asks again. Strings are ASCII
 * with JSON escapes (DPDK loses other bytes), and one that does not fit into 127
 * characters goes on in KEY_1, KEY_2, ...
 *
 * Sockets. DPDK puts the socket of the file prefix millrace-NAME into
 * BASE/dpdk/millrace-NAME/dpdk_telemetry.v2, with the suffix :N where a living
 * process has that one already. BASE is $RUNTIME_DIRECTORY if set (systemd),
 * else /var/run for root and $XDG_RUNTIME_DIR or /tmp for others. A client looks
 * there and, unless $RUNTIME_DIRECTORY is set, in /run/millrace, where a service
 * with RuntimeDirectory=millrace has it. A socket that
 * refuses the connection is left over from a killed instance. Every wait is
 * bounded (2 s for a reply, 10 s in all) and so is every reply.
 *
 * Thread   the source's functions are called by the control thread and by
 *          DPDK's telemetry threads, one at a time, so they read published
 *          values only. serve and unserve: the control thread. The rest: any.
 * Source   DPDK Telemetry Library guide (limits: rte_telemetry.h),
 *          Prometheus text exposition format 0.0.4
 */
#ifndef MR_REPORT_H
#define MR_REPORT_H

#include "mr_err.h"
#include "mr_stats.h"

#include <jansson.h>

#define MR_REPORT_EVIDENCE_MAX 96u
#define MR_REPORT_COUNTERS_MAX MR_STAGE_COUNTERS_MAX
#define MR_REPORT_WORKERS_MAX MR_WORKERS_MAX

struct mr_report_evidence {
	char check[32];
	char verdict[16]; /* PASS WARN FAIL UNKNOWN NA */
	char value[256];
};

struct mr_report_stage {
	char name[MR_NAME_MAX];
	uint32_t counters_count;
	struct {
		const char *name;
		const char *help;
		uint64_t value;
	} counters[MR_REPORT_COUNTERS_MAX];
};

struct mr_report_lane {
	char name[MR_NAME_MAX];
	const char *state;   /* boot run drain halt */
	const char *rx_path; /* direct pinned staged */
	const char *tx_path;
	const char *path_verdict; /* direct pinned staged unproven */
	const char *guard;        /* on on(software-dma) off unavailable */
	const char *guard_by;     /* pkey mprotect none */
	struct mr_report_evidence evidence[MR_REPORT_EVIDENCE_MAX];
	uint32_t evidence_count;
	struct mr_report_stage stages[MR_CHAIN_MAX];
	uint32_t stages_count;
	struct mr_published pub; /* a snapshot */
	uint64_t kernel_beats;   /* heartbeats of its workers, together */
	/* Each worker's: for who watches this process, in no rendering. */
	uint32_t worker_beats[MR_REPORT_WORKERS_MAX];
	uint32_t workers;
	/*
	 * Of the pool that it receives into, since an end of that one loses packets; not of those
	 * that results and rests of split frames lie in. Both are 0 where there is no pool.
	 */
	uint32_t pool_buffers, pool_free;
};

struct mr_report_port {
	char name[MR_NAME_MAX];
	char driver[MR_NAME_MAX];
	bool link_up;
	bool has_missed; /* false: the driver cannot count misses, reported as null */
	uint64_t rx_missed, rx_errors, rx_nombuf, tx_errors;
};

struct mr_report_device {
	char name[MR_NAME_MAX];
	const char *provider; /* sim cuda */
	const char *health;   /* healthy stalled lost host_silent */
};

#define MR_REPORT_SENTENCES_MAX 16u
#define MR_REPORT_SENTENCE_MAX 1200

/* The last reload. */
struct mr_report_reload {
	uint64_t ticket; /* counts them; 0: there was none */
	bool pending;
	bool refused;             /* nothing was changed */
	bool failed;              /* it is in force, but some worker has not taken it */
	uint32_t sentences_count; /* why it was refused, or failed */
	char sentences[MR_REPORT_SENTENCES_MAX][MR_REPORT_SENTENCE_MAX];
};

struct mr_report_source {
	const char *instance;
	uint32_t lanes, ports, devices;
	void *ctx;
	void (*lane)(void *ctx, uint32_t i, struct mr_report_lane *ret);
	void (*port)(void *ctx, uint32_t i, struct mr_report_port *ret);
	void (*device)(void *ctx, uint32_t i, struct mr_report_device *ret);
	/* Asks for a reload; false: one is under way, or there are none. NULL: there are none. */
	bool (*reload)(void *ctx, uint64_t *ret_ticket);
	void (*reloaded)(void *ctx, struct mr_report_reload *ret);
	/* Who asked for that reload has heard what came of it. NULL: nobody is told. */
	void (*heard)(void *ctx, uint64_t ticket);
};

/*
 * mr_report_json builds {instance, lanes[], ports[], devices[], balanced}
 * for `run --json`; the caller adds what only it knows (duration_s,
 * exit_reason) and owns the reference. Counters beyond 2^63 - 1 read as that,
 * bytes that are not UTF-8 as '?'. tests/schema/run.schema.json is its shape.
 * NULL when memory is short.
 */
json_t *mr_report_json(const struct mr_report_source *src);

/*
 * mr_report_serve registers the telemetry commands (after rte_eal_init) and
 * answers them from a copy of *src; what that points to must live until
 * mr_report_unserve. DPDK keeps the commands of a process for ever, so there is
 * one source at a time: -EBUSY while another is served. SIGPIPE is set to be
 * ignored unless it has a handler: DPDK answers with write(), and a client that
 * has gone must not end the instance.
 */
MR_MUST_USE int mr_report_serve(const struct mr_report_source *src, struct mr_err *err);

/*
 * mr_report_unserve waits for the answer in progress; from then on the source
 * is not called and every command answers null. Call it before anything that
 * the source reads is torn down. Without a source it does nothing.
 */
void mr_report_unserve(void);

/*
 * mr_report_now is mr_report_json of the source that is served, or NULL where there is none
 * or memory is short. Any thread.
 */
json_t *mr_report_now(void);

/*
 * mr_report_status is mr_report_now with what only a whole process knows of itself:
 * version, uptime_s, and latency_buckets, {LANE: [[bound_ns, packets], ...]} from short to long
 * without empty ones, from whose differences a reader has the latencies of any time.
 * tests/schema/status.schema.json. As mr_report_now.
 */
json_t *mr_report_status(void);

/*
 * mr_report_fetch asks the running instance `name` over its telemetry socket
 * and rebuilds the JSON of mr_report_json. -ENOENT: no such instance;
 * -ETIMEDOUT, -EPROTO, -ECONNRESET: it does not answer as one does.
 */
MR_MUST_USE int mr_report_fetch(const char *name, json_t **ret_report, struct mr_err *err);

/*
 * mr_report_reload has the running instance read its configuration again and waits for
 * what comes of it, which the instance bounds. -EINVAL: refused, and tell was called with
 * each sentence that says why; -EIO: it is in force with some workers and tell says with which
 * not; -EBUSY: one is under way, or the instance takes none; else as
 * fetch.
 */
typedef void mr_report_tell(void *ctx, const char *sentence);
MR_MUST_USE int mr_report_reload(
	const char *name, mr_report_tell *tell, void *ctx, struct mr_err *err);

/*
 * mr_report_dir gives the directory that DPDK of this process would use for instance
 * `name`; it may not exist yet.
 */
#define MR_REPORT_DIR_MAX 384
MR_MUST_USE int mr_report_dir(
	const char *name, char ret_dir[MR_REPORT_DIR_MAX], struct mr_err *err);

/*
 * mr_report_find gives the name of the only running instance. -ENOENT: none,
 * -EEXIST: several, and the sentence lists them.
 */
MR_MUST_USE int mr_report_find(char ret_name[MR_NAME_MAX], struct mr_err *err);

/* Renderings; the caller frees the string. NULL when memory is short. */
char *mr_report_text(const json_t *report);
char *mr_report_prometheus(const json_t *report);

/*
 * mr_report_rates renders what changed from one report to the next, a line per
 * lane: packets, bits and drops per second. A counter that went backwards (the
 * instance was started anew) counts from 0.
 */
char *mr_report_rates(const json_t *before, const json_t *now, double seconds);

/*
 * mr_report_metric_name writes the Prometheus name of a counter: prefix
 * millrace_, suffix _total, and `_ns` becomes `_seconds`.
 */
void mr_report_metric_name(const char *counter, char *ret_name, size_t bytes);

#endif
