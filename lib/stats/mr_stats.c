/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_stats.h"

#include "mr_sync.h"

#include <sched.h>

#define COUNTER(name, kind, help) [MR_C_##name] = {#name, MR_COUNTER_##kind, help},
const struct mr_counter_desc mr_counter_descs[MR_C_COUNT] = {
#include "mr_counters.def"
};
#undef COUNTER

static void store_words(uint64_t *to, const uint64_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		mr_store_relaxed_u64(&to[i], from[i]);
}

static void load_words(uint64_t *to, const uint64_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = mr_load_relaxed_u64(&from[i]);
}

void mr_stats_publish(struct mr_published *pub, const struct mr_counters *counters,
	const struct mr_hist *latency, uint64_t in_flight, uint64_t waiting, uint32_t state)
{
	/* Any addition raises the count, so an equal count is an equal histogram. */
	bool same = mr_load_relaxed_u64(&pub->latency.count) == latency->count;

	mr_publish_begin(&pub->epoch);
	mr_store_relaxed(&pub->state, state);
	mr_store_relaxed_u64(&pub->in_flight, in_flight);
	mr_store_relaxed_u64(&pub->waiting, waiting);
	mr_store_relaxed_u64(&pub->beat_ns, mr_clock_ns());
	store_words(pub->counters.c, counters->c, MR_C_COUNT);
	if (!same) {
		mr_store_relaxed_u64(&pub->latency.count, latency->count);
		mr_store_relaxed_u64(&pub->latency.sum_ns, latency->sum_ns);
		mr_store_relaxed_u64(&pub->latency.max_ns, latency->max_ns);
		store_words(pub->latency.bucket, latency->bucket, MR_HIST_BUCKETS);
	}
	mr_publish_end(&pub->epoch);
}

void mr_stats_snapshot(struct mr_published *pub, struct mr_published *ret_snap)
{
	uint32_t begun;

	for (uint32_t tries = 1;; tries++) {
		begun = mr_read_begin(&pub->epoch);
		ret_snap->state = mr_load_relaxed(&pub->state);
		ret_snap->in_flight = mr_load_relaxed_u64(&pub->in_flight);
		ret_snap->waiting = mr_load_relaxed_u64(&pub->waiting);
		ret_snap->beat_ns = mr_load_relaxed_u64(&pub->beat_ns);
		load_words(ret_snap->counters.c, pub->counters.c, MR_C_COUNT);
		ret_snap->latency.count = mr_load_relaxed_u64(&pub->latency.count);
		ret_snap->latency.sum_ns = mr_load_relaxed_u64(&pub->latency.sum_ns);
		ret_snap->latency.max_ns = mr_load_relaxed_u64(&pub->latency.max_ns);
		load_words(ret_snap->latency.bucket, pub->latency.bucket, MR_HIST_BUCKETS);
		if (!mr_read_retry(&pub->epoch, begun))
			break;
		/* The writer may have lost its core in the middle. */
		if (tries % 16 == 0)
			sched_yield();
	}
	ret_snap->epoch = begun;
}

uint64_t mr_counters_dropped(const struct mr_counters *c)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < MR_C_COUNT; i++)
		if (mr_counter_descs[i].kind == MR_COUNTER_DROP)
			sum += c->c[i];
	return sum;
}

bool mr_counters_balanced(const struct mr_counters *c, uint64_t in_flight)
{
	return c->c[MR_C_rx_packets] + c->c[MR_C_made_packets] ==
		c->c[MR_C_tx_packets] + mr_counters_dropped(c) + in_flight;
}
