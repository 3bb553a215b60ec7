/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_fixture - a source of statistics that is full in every direction: all
 * counters, as many stages, counters of a stage and rows of evidence as the
 * structures hold, and strings that no format likes.
 */
#ifndef REPORT_FIXTURE_H
#define REPORT_FIXTURE_H

#include "mr_report.h"

#include <stdio.h>
#include <string.h>

struct fixture {
	uint32_t stages, evidence; /* of each lane */
	bool gone;                 /* torn down: nobody may ask any more */
	uint32_t asked_when_gone;
};

#define FIXTURE_COUNTER "a_counter_of_a_stage_with_a_long_name_"
static const char *const fixture_counter_names[MR_REPORT_COUNTERS_MAX] = {FIXTURE_COUNTER "0",
	FIXTURE_COUNTER "1", FIXTURE_COUNTER "2", FIXTURE_COUNTER "3", FIXTURE_COUNTER "4",
	FIXTURE_COUNTER "5", FIXTURE_COUNTER "6", FIXTURE_COUNTER "7", FIXTURE_COUNTER "8",
	FIXTURE_COUNTER "9", FIXTURE_COUNTER "10", FIXTURE_COUNTER "11", FIXTURE_COUNTER "12",
	FIXTURE_COUNTER "13", FIXTURE_COUNTER "14", FIXTURE_COUNTER "15", FIXTURE_COUNTER "16",
	FIXTURE_COUNTER "17", FIXTURE_COUNTER "18", FIXTURE_COUNTER "19", FIXTURE_COUNTER "20",
	FIXTURE_COUNTER "21", FIXTURE_COUNTER "22", FIXTURE_COUNTER "23", FIXTURE_COUNTER "24",
	FIXTURE_COUNTER "25", FIXTURE_COUNTER "26", FIXTURE_COUNTER "27", FIXTURE_COUNTER "28",
	FIXTURE_COUNTER "29", FIXTURE_COUNTER "30", FIXTURE_COUNTER "31"};

/* 255 bytes: quotes, backslashes, control characters, UTF-8 of two to four bytes. */
static inline void fixture_value(char *value, size_t bytes, uint32_t seed)
{
	static const char *const pieces[] = {"\"", "\\", "\n", "\t", "\x01", "\xc3\xa9",
		"\xe2\x89\xa5", "\xf0\x9f\x8c\x8a", "/", "a"};
	size_t used = (size_t)snprintf(value, bytes, "registration %u ", seed);

	for (uint32_t i = seed;; i++) {
		const char *piece = pieces[i % MR_ARRAY_LEN(pieces)];

		if (used + strlen(piece) >= bytes)
			break;
		memcpy(value + used, piece, strlen(piece) + 1);
		used += strlen(piece);
	}
}

static inline void fixture_ask(struct fixture *fx)
{
	if (__atomic_load_n(&fx->gone, __ATOMIC_RELAXED))
		__atomic_fetch_add(&fx->asked_when_gone, 1, __ATOMIC_RELAXED);
}

static inline void fixture_lane(void *ctx, uint32_t i, struct mr_report_lane *ret)
{
	struct fixture *fx = ctx;
	struct mr_counters *c = &ret->pub.counters;
	struct mr_hist *h = &ret->pub.latency;

	fixture_ask(fx);
	snprintf(ret->name, sizeof(ret->name), "lane%u_with_a_long_name", i);
	ret->state = "run";
	ret->rx_path = "direct";
	ret->tx_path = "pinned";
	ret->path_verdict = "unproven";
	ret->guard = "on(software-dma)";
	ret->guard_by = "pkey";
	ret->evidence_count = fx->evidence;
	for (uint32_t e = 0; e < fx->evidence; e++) {
		snprintf(ret->evidence[e].check, sizeof(ret->evidence[e].check), "check_%u", e);
		snprintf(ret->evidence[e].verdict, sizeof(ret->evidence[e].verdict), "%s",
			e % 2 == 0 ? "PASS" : "UNKNOWN");
		fixture_value(ret->evidence[e].value, sizeof(ret->evidence[e].value), e);
	}
	ret->stages_count = fx->stages;
	for (uint32_t s = 0; s < fx->stages; s++) {
		struct mr_report_stage *stage = &ret->stages[s];

		snprintf(stage->name, sizeof(stage->name), "stage%u", s / 2); /* names repeat */
		stage->counters_count = s == 1 ? 0 : MR_REPORT_COUNTERS_MAX;
		for (uint32_t n = 0; n < stage->counters_count; n++) {
			stage->counters[n].name = fixture_counter_names[n];
			stage->counters[n].help = "help";
			stage->counters[n].value =
				n == 0 ? INT64_MAX : (uint64_t)i * 1000000 + s * 1000 + n;
		}
	}
	for (size_t n = 0; n < MR_C_COUNT; n++)
		c->c[n] =
			mr_counter_descs[n].kind == MR_COUNTER_DROP ? n % 3 : (n + 1) * 1000003 + i;
	ret->pub.in_flight = 17;
	c->c[MR_C_made_packets] = 0;
	c->c[MR_C_rx_packets] = c->c[MR_C_tx_packets] + mr_counters_dropped(c) + 17;
	h->count = 1000;
	h->sum_ns = 123456789012345678;
	h->bucket[mr_hist_index(1500)] = 980;
	h->bucket[mr_hist_index(9000)] = 19;
	h->bucket[mr_hist_index(70000 + i)] = 1;
	h->max_ns = 70000 + i;
	ret->kernel_beats = 1234567 + i;
	ret->pool_buffers = 7000 + i;
	ret->pool_free = 600 + i;
}

static inline void fixture_port(void *ctx, uint32_t i, struct mr_report_port *ret)
{
	fixture_ask(ctx);
	snprintf(ret->name, sizeof(ret->name), "port%u", i);
	snprintf(ret->driver, sizeof(ret->driver), "net_pcap");
	ret->link_up = i != 1;
	ret->has_missed = i != 2;
	ret->rx_missed = 10 + i;
	ret->rx_errors = 20 + i;
	ret->rx_nombuf = 30 + i;
	ret->tx_errors = 40 + i;
}

static inline void fixture_device(void *ctx, uint32_t i, struct mr_report_device *ret)
{
	fixture_ask(ctx);
	snprintf(ret->name, sizeof(ret->name), "g%u", i);
	ret->provider = "sim";
	ret->health = i == 0 ? "healthy" : "stalled";
}

static inline struct mr_report_source fixture_source(
	struct fixture *fx, const char *instance, uint32_t lanes)
{
	struct mr_report_source src = {
		.instance = instance,
		.lanes = lanes,
		.ports = 3,
		.devices = 2,
		.ctx = fx,
		.lane = fixture_lane,
		.port = fixture_port,
		.device = fixture_device,
	};

	return src;
}

#endif
