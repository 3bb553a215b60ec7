/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_gen - an open-loop generator and the sink that verifies what comes back.
 *
 *     floor ─► ceiling ─► trial ...                   mr_gen_run, the control thread
 *                          │
 *     sender ─ rte_eth_tx_burst ─► network ─► rte_eth_rx_burst ─ sink     a thread each
 *
 * This is the one place of Millrace where the CPU touches packet bytes, on purpose: the
 * pool is ordinary host memory, the sender writes every frame and the sink reads it.
 *
 * A trial sends packets at times fixed beforehand (mr_gen_schedule.h). A packet that is
 * taken late_us or more after its time is late. One that the port has not taken
 * MR_GEN_CATCH_UP_MS after the trial's end is missed: it is counted and not sent. Then
 * the sink goes on for wait_ms, and what has not come is lost.
 *
 * Floor: the same over a loop in memory (net_ring) at MR_GEN_FLOOR_PPS. What is below it
 * is the generator's own, and no latency of a network can be told from it.
 * Ceiling: what the port takes when nothing holds the sender back; frames of the plan's
 * sizes, while the sink runs. A rate above it cannot be reached. Where the plan has no
 * rate, a search starts at the ceiling and a single trial is at four fifths of it.
 *
 * Thread   the control thread calls run; sender and sink are made for each trial and
 *          joined. They poll, on cores of their own or, with core: any, yielding.
 * Owner    the setup is borrowed; *ret_report is the caller's and large: allocate it.
 * Errors   0 or -errno; -ETIME: a thread is still in a driver, and only the process's end
 *          may follow. Loss is a result and no error.
 * Source   RFC 2544 section 26.1; RFC 4737; G. Tene, "How NOT to Measure Latency"
 */
#ifndef MR_GEN_H
#define MR_GEN_H

#include "mr_gen_sink.h"

struct mr_setup;

#define MR_GEN_CATCH_UP_MS 100u
#define MR_GEN_FLOOR_PPS 10000u
#define MR_GEN_TRIALS_MAX 24u

struct mr_gen_trial {
	uint32_t rate_ppm; /* of the highest rate */
	uint64_t gap;      /* 0: as fast as possible */
	/* the sender's */
	uint64_t scheduled; /* packets whose time came, or that were to come; sent + missed */
	uint64_t sent, missed, late;
	uint64_t wire_bits; /* of those sent, with preamble and gap */
	uint64_t send_ns;   /* that sending took: all / send_ns is the rate */
	uint64_t blocked;   /* bursts of which the port took only a part */
	struct mr_hist lag; /* from the intended time until the port took it */
	bool cut;           /* ended by the caller before its time */
	/* the sink's; without one all 0 */
	bool judged;
	uint64_t received, lost, duplicates, reordered, stale;
	uint64_t corrupted, stray, foreign;
	uint64_t rx_missed; /* dropped in front of the sink: the driver's count */
	struct mr_hist latency;
	struct {
		uint64_t sent, lost;
		struct mr_gen_counts c;
	} stream[MR_GEN_STREAMS_MAX];
	bool passed; /* as the search, or a single trial, asks for it */
};

enum mr_gen_end {
	MR_GEN_DONE,
	MR_GEN_TOLD,      /* by the caller */
	MR_GEN_PORT_LOST, /* with a sentence in err */
};

struct mr_gen_report {
	enum mr_gen_end end;
	bool has_floor, has_ceiling;
	struct mr_gen_trial floor, ceiling;
	uint64_t gap; /* of the highest rate */
	uint32_t count;
	struct mr_gen_trial trial[MR_GEN_TRIALS_MAX];
	int32_t found; /* index of the best that passed; -1: none */
};

/* What the caller wants; asked every few milliseconds. */
enum mr_gen_wish {
	MR_GEN_GO_ON,
	MR_GEN_END,     /* send no more, judge what comes, report */
	MR_GEN_END_NOW, /* and do not wait for what may come */
};
typedef enum mr_gen_wish mr_gen_ask(void *ctx);

MR_MUST_USE int mr_gen_run(struct mr_setup *s, const struct mr_gen_plan *plan, mr_gen_ask *ask,
	void *ctx, struct mr_gen_report *ret_report, struct mr_err *err);

/* mr_gen_faults tells whether anything but on-time, whole, single, ordered delivery was seen. */
bool mr_gen_faults(const struct mr_gen_trial *t);

/* Packets and bits per second of what was sent. */
double mr_gen_sent_pps(const struct mr_gen_trial *t);
double mr_gen_sent_bps(const struct mr_gen_trial *t);

#endif
