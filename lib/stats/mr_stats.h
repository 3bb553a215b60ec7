/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_stats - counters with one writer, published for anybody.
 *
 *     lane core: counters ── every N turns ──► published copy ──► telemetry,
 *                (private)   mr_stats_publish     (epoch)         report, stats
 *
 * A lane counts in its own struct mr_counters with plain adds. In housekeeping
 * it copies them into a struct mr_published under an epoch; readers copy that
 * out and try again if the epoch moved. Nobody ever stops the writer.
 *
 * Thread   counters: the lane. publish: the lane. snapshot: any other.
 * Units    packets unless the name says bytes, ns or cycles.
 */
#ifndef MR_STATS_H
#define MR_STATS_H

#include "mr_base.h"
#include "mr_hist.h"
#include "mr_ring_abi.h"

#include <stdbool.h>

enum mr_counter {
#define COUNTER(name, kind, help) MR_C_##name,
#include "mr_counters.def"
#undef COUNTER
	MR_C_COUNT
};

enum mr_counter_kind {
	MR_COUNTER_PACKETS,
	MR_COUNTER_DROP,
	MR_COUNTER_AUX,
};

struct mr_counter_desc {
	const char *name;
	enum mr_counter_kind kind;
	const char *help;
};

extern const struct mr_counter_desc mr_counter_descs[MR_C_COUNT];

struct mr_counters {
	uint64_t c[MR_C_COUNT];
};

/* What a lane publishes. */
struct mr_published {
	uint32_t epoch MR_CACHE_ALIGNED;
	uint32_t state;     /* enum mr_lane_state */
	uint64_t in_flight; /* packets in slots, backlogs and in hand */
	uint64_t waiting;   /* of them, in backlogs: some port does not take them now */
	uint64_t beat_ns;   /* clock of the last publish */
	struct mr_counters counters;
	/*
	 * ns, per packet: from when its slot's first was received until all of the slot was with
	 * ports or in backlogs. What a packet waits in a backlog is not in it.
	 */
	struct mr_hist latency;
};

/* mr_stats_publish copies the lane's private values out; the lane's core only. */
void mr_stats_publish(struct mr_published *pub, const struct mr_counters *counters,
	const struct mr_hist *latency, uint64_t in_flight, uint64_t waiting, uint32_t state);

/* mr_stats_snapshot copies a consistent state; ret_snap->epoch is meaningless. */
void mr_stats_snapshot(struct mr_published *pub, struct mr_published *ret_snap);

/* Sum of all DROP counters. */
uint64_t mr_counters_dropped(const struct mr_counters *c);

/* rx + made = tx + dropped + in_flight */
bool mr_counters_balanced(const struct mr_counters *c, uint64_t in_flight);

#endif
