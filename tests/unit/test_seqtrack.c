/* SPDX-License-Identifier: BSD-3-Clause */
/* The stage around the books: streams and their places, results, ticks, what is counted. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mr_base.h"
#include "mr_stage_seqtrack.cu"

#define ROOM 2048u
#define HEAD 128u
#define MS 1000000ull
#define RESULT_AT 66u /* of the records, with IPv4 */

static struct world {
	const struct mr_stage_desc *stage;
	uint8_t params[MR_PARAM_BYTES] __attribute__((aligned(8)));
	uint64_t counters[MR_STAGE_COUNTERS_MAX];
	void *table, *state;
	uint64_t now_ns;
	struct mr_view v;
	uint8_t buffer[ROOM];
} w;

static void set(const char *name, const char *value)
{
	struct mr_err err;

	if (mr_stage_param_set(w.stage, name, value, NULL, w.params, &err) != 0)
		fail_msg("%s", err.msg);
}

static int setup(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.stage = mr_stage_find("seqtrack");
	w.now_ns = 5000 * MS;
	mr_stage_param_defaults(w.stage, w.params);
	set("streams", "4");
	set("events", "16");
	set("templates", "16");
	return 0;
}

/* The rest of the beginning, when all parameters are set. */
static void begin(const char *formats)
{
	struct mr_table_errors errors = {0};
	char text[512];
	struct mr_table_text t = {.at = text, .errors = &errors};
	size_t bytes;

	snprintf(text, sizeof(text), "%s", formats);
	w.table = calloc(1, w.stage->table->bytes(w.params));
	assert_int_equal(w.stage->table->build(&t, w.params, NULL, w.table, &bytes), 0);
	assert_int_equal(errors.count, 0);
	w.state = calloc(1, mr_stage_lane_bytes(w.stage, w.params));
}

static void begin_with_results(const char *dst, const char *src)
{
	set("result_dst", dst);
	set("result_src", src);
	set("result_port", "3");
	begin("custom udp 9000 id 0:4 seq 4:4 valid 8:1:1\n");
}

static int teardown(void **state)
{
	(void)state;
	free(w.table);
	free(w.state);
	return 0;
}

static enum mr_flow call(enum mr_tick tick)
{
	const struct mr_ctx ctx = {.params = w.params,
		.table = w.table,
		.state = w.state,
		.counters = w.counters,
		.now_ns = w.now_ns,
		.size = 1,
		.live = 1,
		.tick = tick};

	return mr_stage_seqtrack(&ctx, &w.v);
}

/* A frame whose payload is put by the caller; what lies behind it is none of its own. */
static void frame(uint32_t from, uint32_t port, uint32_t bytes)
{
	memset(w.buffer, 0xee, sizeof(w.buffer));
	w.v = (struct mr_view){
		.frame = w.buffer + HEAD, .length = 42 + bytes, .head = HEAD, .room = ROOM};
	mr_put_be(&w.v, 12, 4, 0x08004500);
	mr_put_be(&w.v, 16, 4, (28 + bytes) << 16);
	mr_put_be(&w.v, 20, 4, 0x00004011);
	mr_put_be(&w.v, 26, 4, from);
	mr_put_be(&w.v, 34, 4, 1000u << 16 | port);
	mr_put_be(&w.v, 38, 4, (8 + bytes) << 16);
}

static enum mr_flow packet(uint32_t from, uint32_t id, uint32_t seq)
{
	frame(from, 9000, 9);
	mr_put_be32(&w.v, 42, id);
	mr_put_be32(&w.v, 46, seq);
	mr_put_u8(&w.v, 50, 1);
	return call(MR_TICK_NOT);
}

static enum mr_flow blank(enum mr_tick tick)
{
	memset(w.buffer, 0xee, sizeof(w.buffer));
	w.now_ns++; /* of a tick of its own */
	w.v = (struct mr_view){.frame = w.buffer + HEAD,
		.head = HEAD,
		.room = ROOM,
		.verdict = MR_DROP,
		.arg = MR_REASON_blank};
	return call(tick);
}

static uint64_t counter(enum mr_seqtrack_counter c)
{
	return w.counters[c];
}

static void assert_counters(void)
{
	assert_int_equal(counter(MR_SEQTRACK_RECEIVED),
		counter(MR_SEQTRACK_PLACED) + counter(MR_SEQTRACK_DUPLICATE) +
			counter(MR_SEQTRACK_LATE) + counter(MR_SEQTRACK_MALFORMED) +
			counter(MR_SEQTRACK_UNKNOWN) + counter(MR_SEQTRACK_FILTERED) +
			counter(MR_SEQTRACK_OVERFLOW));
}

/* The view is a result: sound headers, and so many records. */
static void assert_result(uint32_t records)
{
	struct mr_headers h;

	assert_int_equal(w.v.verdict, MR_TX);
	assert_int_equal(w.v.port, 3);
	mr_walk(&w.v, 0, &h);
	assert_int_equal(h.has & (MR_HAS_UDP | MR_HAS_MALFORMED), MR_HAS_UDP);
	assert_int_equal(h.end, w.v.length);
	assert_true((h.has & MR_HAS_IPV6) != 0 || mr_sum_ipv4_ok(&w.v, &h));
	assert_true(mr_get_be16(&w.v, h.l4 + 6) != 0);
	assert_true(mr_sum_transport_ok(&w.v, &h));
	assert_int_equal(mr_get_be32(&w.v, h.payload), MR_RESULT_MAGIC);
	assert_int_equal(mr_get_u8(&w.v, h.payload + 4), MR_RESULT_STREAMS);
	assert_int_equal(mr_get_be16(&w.v, h.payload + 6), records);
	assert_int_equal(mr_get_be(&w.v, h.payload + 16, 8), w.now_ns);
}

static uint64_t number(uint32_t record, uint32_t i)
{
	return mr_get_be(&w.v, record + MR_RESULT_STREAM + 8 * i, 8);
}

static void two_senders_with_one_identity_are_two_streams(void **state)
{
	(void)state;
	begin("custom udp 9000 id 0:4 seq 4:4\n");
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(packet(0x0a000001, 7, i), MR_NEXT);
		assert_int_equal(packet(0x0a000002, 7, 5000 + i), MR_NEXT);
		/* Another identity of the first. */
		assert_int_equal(packet(0x0a000001, 8, 70 + i), MR_NEXT);
	}
	assert_int_equal(counter(MR_SEQTRACK_STREAMS), 3);
	assert_int_equal(counter(MR_SEQTRACK_PLACED), 60);
	assert_int_equal(counter(MR_SEQTRACK_UNITS), 60);
	assert_int_equal(w.v.verdict, MR_TX);
	assert_counters();
}

static void other_packets_go_on_and_are_not_counted(void **state)
{
	(void)state;
	begin("custom udp 9000 id 0:4 seq 4:4\n");
	frame(0x0a000001, 9001, 100);
	assert_int_equal(call(MR_TICK_NOT), MR_NEXT);
	assert_int_equal(counter(MR_SEQTRACK_RECEIVED), 0);
	free(w.table);
	w.table = NULL;
	assert_int_equal(packet(1, 1, 1), MR_NEXT);
	assert_int_equal(counter(MR_SEQTRACK_RECEIVED), 0);
}

static void each_packet_is_in_one_counter(void **state)
{
	(void)state;
	begin_with_results("10.0.0.9", "10.0.0.8");
	for (uint32_t i = 0; i < 10; i++)
		packet(1, 1, i);
	packet(1, 1, 5);
	packet(1, 1, 12);
	packet(1, 1, 11);
	frame(1, 9000, 3); /* too short for an identity */
	call(MR_TICK_NOT);
	frame(1, 9000, 6); /* and for a number */
	mr_put_be32(&w.v, 42, 1);
	call(MR_TICK_NOT);
	frame(1, 9000, 9); /* says that it is invalid */
	mr_put_be(&w.v, 42, 8, 1ull << 32);
	mr_put_u8(&w.v, 50, 0);
	call(MR_TICK_NOT);
	assert_int_equal(counter(MR_SEQTRACK_RECEIVED), 16);
	assert_int_equal(counter(MR_SEQTRACK_PLACED), 12);
	assert_int_equal(counter(MR_SEQTRACK_DUPLICATE), 1);
	assert_int_equal(counter(MR_SEQTRACK_REORDERED), 1);
	assert_int_equal(counter(MR_SEQTRACK_MALFORMED), 2);
	assert_int_equal(counter(MR_SEQTRACK_FILTERED), 1);
	assert_int_equal(counter(MR_SEQTRACK_MISSING), 0);
	assert_counters();
	/* What waits to be told at the end: a gap of one, and the books. */
	assert_int_equal(blank(MR_TICK_LAST), MR_STOP);
	assert_result(2);
	assert_int_equal(mr_get_u8(&w.v, RESULT_AT), MR_TRACK_MISSED);
	assert_int_equal(number(RESULT_AT, 0), 10);
	assert_int_equal(number(RESULT_AT, 1), 1);
	/* Of the totals behind it: received, malformed, filtered. */
	assert_int_equal(number(RESULT_AT + MR_SEQTRACK_EVENT, 4), 15);
	assert_int_equal(number(RESULT_AT + MR_SEQTRACK_EVENT, 9), 1);
	assert_int_equal(number(RESULT_AT + MR_SEQTRACK_EVENT, 11), 1);
	assert_int_equal(counter(MR_SEQTRACK_MISSING), 1);
	assert_int_equal(counter(MR_SEQTRACK_GAPS), 1);
	assert_int_equal(blank(MR_TICK_LAST), MR_NEXT);
	assert_int_equal(w.v.length, 0);
	assert_int_equal(w.v.arg, MR_REASON_blank);
}

static void a_result_says_whose_and_how_many(void **state)
{
	static const uint64_t totals[] = {23, 20, 3, 0, 21, 20, 1, 0, 0, 0, 0, 0, 0, 0};
	uint32_t at = RESULT_AT;

	(void)state;
	begin_with_results("10.0.0.9", "10.0.0.8");
	for (uint32_t i = 0; i < 23; i++)
		if (i < 10 || i > 12)
			packet(0x0a000001, 0xabcd, 1000 + i);
	packet(0x0a000001, 0xabcd, 1000);
	/* Neither is the gap old enough, nor is it time for totals. */
	w.now_ns += 99 * MS;
	assert_int_equal(blank(MR_TICK), MR_NEXT);
	w.now_ns += MS;
	assert_int_equal(blank(MR_TICK), MR_STOP);
	assert_result(1);
	assert_int_equal(w.v.length, at + MR_SEQTRACK_EVENT);
	assert_int_equal(mr_get_be(&w.v, 0, 6), 0xffffffffffff);
	assert_int_equal(mr_get_be(&w.v, 6, 6), 0x024d52000001);
	assert_int_equal(mr_get_be32(&w.v, 26), 0x0a000008);
	assert_int_equal(mr_get_be32(&w.v, 30), 0x0a000009);
	assert_int_equal(mr_get_be32(&w.v, 34), 4990u << 16 | 4990);
	assert_int_equal(mr_get_u8(&w.v, at), MR_TRACK_MISSED);
	assert_int_equal(mr_get_u8(&w.v, at + 1), MR_FORMAT_custom);
	assert_int_equal(mr_get_be16(&w.v, at + 2), MR_SEQTRACK_EVENT);
	assert_int_equal(mr_get_be(&w.v, at + 8, 8), 0xabcd);
	assert_int_equal(mr_get_be(&w.v, at + 16, 8), 0);
	assert_int_equal(mr_get_be(&w.v, at + 40, 8), 0xffff0a000001);
	assert_int_equal(number(at, 0), 1010);
	assert_int_equal(number(at, 1), 3);
	assert_int_equal(blank(MR_TICK), MR_NEXT);
	w.now_ns += 900 * MS;
	assert_int_equal(blank(MR_TICK), MR_STOP);
	assert_result(1);
	assert_int_equal(mr_get_be32(&w.v, RESULT_AT - MR_RESULT_HEADER + 8), 1);
	assert_int_equal(mr_get_u8(&w.v, at), MR_TRACK_TOTALS);
	assert_int_equal(mr_get_be16(&w.v, at + 2), MR_SEQTRACK_TOTALS);
	for (uint32_t i = 0; i < MR_ARRAY_LEN(totals); i++)
		assert_int_equal(number(at, i), totals[i]);
	/* Nothing came since. */
	w.now_ns += 5000 * MS;
	assert_int_equal(blank(MR_TICK), MR_NEXT);
	assert_int_equal(counter(MR_SEQTRACK_RESULTS), 2);
	assert_counters();
}

static void results_go_to_ipv6_too(void **state)
{
	(void)state;
	begin_with_results("2001:db8::9", "2001:db8::8");
	packet(1, 1, 1);
	assert_int_equal(blank(MR_TICK_LAST), MR_STOP);
	assert_result(1);
	assert_int_equal(mr_get_be16(&w.v, 12), MR_ETHER_IPV6);
	assert_int_equal(mr_get_u8(&w.v, 37), 8);
	assert_int_equal(mr_get_u8(&w.v, 53), 9);
	assert_int_equal(w.v.length, RESULT_AT + 20 + MR_SEQTRACK_TOTALS);
}

static void without_addresses_nothing_is_told_and_all_is_counted(void **state)
{
	(void)state;
	begin("custom udp 9000 id 0:4 seq 4:4\n");
	for (uint32_t i = 0; i < 100; i += 2)
		packet(1, 1, i);
	w.now_ns += 100 * MS;
	assert_int_equal(blank(MR_TICK), MR_NEXT);
	assert_int_equal(counter(MR_SEQTRACK_MISSING), 49);
	assert_int_equal(counter(MR_SEQTRACK_RESULTS), 0);
	assert_int_equal(counter(MR_SEQTRACK_RESULTS_LOST), 0);
	assert_int_equal(blank(MR_TICK_LAST), MR_NEXT);
}

static void events_that_find_no_place_are_counted_and_said(void **state)
{
	(void)state;
	begin_with_results("10.0.0.9", "10.0.0.8");
	for (uint32_t i = 0; i < 2 * (16 + 5 + MR_TRACK_GAPS) + 1; i += 2)
		packet(1, 1, i);
	assert_int_equal(counter(MR_SEQTRACK_RESULTS_LOST), 5);
	assert_int_equal(counter(MR_SEQTRACK_MISSING), 21);
	assert_int_equal(blank(MR_TICK), MR_STOP);
	assert_result(16);
	assert_int_equal(mr_get_be32(&w.v, RESULT_AT - MR_RESULT_HEADER + 12), 5);
	/* The oldest are those that were kept. */
	assert_int_equal(number(RESULT_AT, 0), 1);
	assert_int_equal(number(RESULT_AT + 15 * MR_SEQTRACK_EVENT, 0), 31);
}

static void events_that_wait_when_the_address_goes_are_lost_and_counted(void **state)
{
	(void)state;
	begin_with_results("10.0.0.9", "10.0.0.8");
	for (uint32_t i = 0; i < 2 * (3 + MR_TRACK_GAPS) + 1; i += 2)
		packet(1, 1, i);
	assert_int_equal(counter(MR_SEQTRACK_MISSING), 3);
	set("result_dst", "");
	set("result_src", "");
	assert_int_equal(blank(MR_TICK), MR_NEXT);
	assert_int_equal(counter(MR_SEQTRACK_RESULTS_LOST), 3);
	/* What is found without an address waits for nobody. */
	w.now_ns += 100 * MS;
	blank(MR_TICK);
	assert_int_equal(counter(MR_SEQTRACK_MISSING), 3 + MR_TRACK_GAPS);
	assert_int_equal(counter(MR_SEQTRACK_RESULTS_LOST), 3);
	set("result_dst", "10.0.0.9");
	set("result_src", "10.0.0.8");
	packet(1, 1, 1000);
	w.now_ns += 100 * MS;
	assert_int_equal(blank(MR_TICK), MR_STOP);
	assert_result(1);
	assert_int_equal(mr_get_be32(&w.v, RESULT_AT - MR_RESULT_HEADER + 12), 3);
	assert_int_equal(counter(MR_SEQTRACK_RESULTS_LOST), 3);
}

static void where_packets_end_their_buffers_bear_results(void **state)
{
	uint32_t events = 0, stopped = 0;

	(void)state;
	set("forward", "false");
	set("result_bytes", "600");
	begin_with_results("10.0.0.9", "10.0.0.8");
	for (uint32_t i = 0; i < 200; i += 2) {
		assert_int_equal(packet(1, 1, i), MR_STOP);
		stopped++;
		if (w.v.verdict == MR_TX) {
			assert_result((600 - 128) / MR_SEQTRACK_EVENT);
			events += (600 - 128) / MR_SEQTRACK_EVENT;
			assert_true(w.v.length <= 600);
		} else {
			assert_int_equal(w.v.verdict, MR_DROP);
			assert_int_equal(w.v.arg, MR_REASON_consumed);
		}
	}
	assert_true(events > 80 && stopped == 100);
	assert_int_equal(counter(MR_SEQTRACK_RESULTS), events);
	assert_int_equal(counter(MR_SEQTRACK_RESULTS_LOST), 0);
}

static void streams_beyond_the_room_are_counted_and_idle_ones_give_way(void **state)
{
	(void)state;
	set("idle_s", "10");
	begin_with_results("10.0.0.9", "10.0.0.8");
	for (uint32_t i = 0; i < 6; i++)
		packet(1, i, 1);
	assert_int_equal(counter(MR_SEQTRACK_STREAMS), 4);
	assert_int_equal(counter(MR_SEQTRACK_OVERFLOW), 2);
	/* Idle, but what they had is not told yet. */
	w.now_ns += 10000 * MS;
	packet(1, 9, 1);
	assert_int_equal(counter(MR_SEQTRACK_OVERFLOW), 3);
	assert_int_equal(blank(MR_TICK), MR_STOP);
	assert_result(4);
	packet(1, 2, 2); /* one of them comes again, and stays */
	for (uint32_t i = 10; i < 13; i++)
		packet(1, i, 1);
	assert_int_equal(counter(MR_SEQTRACK_OVERFLOW), 3);
	assert_int_equal(counter(MR_SEQTRACK_REPLACED), 3);
	packet(1, 13, 1);
	assert_int_equal(counter(MR_SEQTRACK_OVERFLOW), 4);
	packet(1, 2, 3);
	for (uint32_t i = 10; i < 13; i++)
		packet(1, i, 2);
	assert_int_equal(counter(MR_SEQTRACK_STREAMS), 7);
	assert_int_equal(counter(MR_SEQTRACK_MISSING), 0);
	assert_counters();
}

/* All streams change again and again; none of the new ones inherits anything. */
static void a_place_that_changes_hands_is_as_new(void **state)
{
	(void)state;
	set("idle_s", "10");
	begin_with_results("10.0.0.9", "10.0.0.8");
	for (uint32_t round = 0; round < 200; round++) {
		for (uint32_t i = 0; i < 4; i++) {
			packet(1, 4 * round + i, 1000 * round);
			packet(1, 4 * round + i, 1000 * round + 1);
		}
		assert_int_equal(counter(MR_SEQTRACK_OVERFLOW), 0);
		w.now_ns += 10000 * MS;
		while (blank(MR_TICK) == MR_STOP)
			assert_result(4);
	}
	assert_int_equal(counter(MR_SEQTRACK_REPLACED), 4 * 199);
	assert_int_equal(counter(MR_SEQTRACK_PLACED), 8 * 200);
	assert_int_equal(counter(MR_SEQTRACK_RESTARTS) + counter(MR_SEQTRACK_MISSING), 0);
	assert_counters();
}

/* Idle is who sends nothing, not who has nothing to tell. */
static void a_stream_that_sends_keeps_its_place(void **state)
{
	(void)state;
	set("idle_s", "10");
	begin_with_results("10.0.0.9", "10.0.0.8");
	for (uint32_t i = 0; i < 4; i++)
		packet(1, i, 0);
	for (uint32_t s = 1; s < 15; s++) {
		w.now_ns += 1000 * MS;
		packet(1, 0, s); /* whose place is the first that is looked at */
		while (blank(MR_TICK) == MR_STOP)
			;
		packet(1, 100, s); /* finds no place until the others are idle */
		assert_int_equal(counter(MR_SEQTRACK_OVERFLOW), s < 10 ? s : 9);
	}
	assert_int_equal(counter(MR_SEQTRACK_REPLACED), 1);
	assert_int_equal(counter(MR_SEQTRACK_STREAMS), 5);
	assert_int_equal(counter(MR_SEQTRACK_MISSING), 0);
}

static void totals_come_no_more_often_than_is_set(void **state)
{
	uint32_t told = 0;

	(void)state;
	begin_with_results("10.0.0.9", "10.0.0.8");
	for (uint32_t i = 0; i < 100; i++) {
		packet(1, 1, i);
		w.now_ns += 100 * MS;
		told += blank(MR_TICK) == MR_STOP;
	}
	assert_in_range(told, 9, 10);
}

/* The last ticks begin with the first stream, wherever those before them stopped. */
static void the_last_ticks_begin_at_the_beginning(void **state)
{
	(void)state;
	set("streams", "1000");
	begin_with_results("10.0.0.9", "10.0.0.8");
	for (uint32_t i = 0; i < 1000; i++)
		packet(i, 1, 5);
	w.now_ns += 1000 * MS;
	for (uint32_t i = 0; i < 300; i++)
		blank(MR_TICK);
	for (uint32_t i = 0; i < 3; i++) { /* and so that it stands elsewhere */
		packet(0, 1, 6 + i);
		blank(MR_TICK);
	}
	assert_int_equal(blank(MR_TICK_LAST), MR_STOP);
	assert_result(1);
	assert_int_equal(number(RESULT_AT, 0), 4);
	assert_int_equal(blank(MR_TICK_LAST), MR_NEXT);
}

static void parameters_that_change_later_lay_nothing_out_anew(void **state)
{
	(void)state;
	begin_with_results("10.0.0.9", "10.0.0.8");
	for (uint32_t i = 0; i < 10; i++)
		packet(1, 1, i);
	set("streams", "16777216");
	set("events", "1048576");
	set("templates", "1048576");
	for (uint32_t i = 0; i < 8; i++)
		packet(1, 100 + i, 1);
	for (uint32_t i = 12; i < 100; i += 2)
		packet(1, 1, i);
	assert_int_equal(counter(MR_SEQTRACK_STREAMS), 4);
	assert_int_equal(counter(MR_SEQTRACK_OVERFLOW), 5);
	assert_true(counter(MR_SEQTRACK_RESULTS_LOST) > 0);
	assert_counters();
}

/* A set of one template with two fields of 4 bytes (id 256), and so many records of it. */
static void ipfix(uint32_t seq, int with_template, uint32_t records)
{
	uint32_t bytes = 16 + (with_template ? 16 : 0) + (records != 0 ? 4 + 8 * records : 0);
	uint32_t at = 42 + 16;

	frame(1, 4739, bytes);
	mr_put_be(&w.v, 42, 4, 10 << 16 | bytes);
	mr_put_be(&w.v, 46, 4, 0);
	mr_put_be(&w.v, 50, 4, seq);
	mr_put_be(&w.v, 54, 4, 77);
	if (with_template) {
		mr_put_be(&w.v, at, 8, 0x0002001001000002);
		mr_put_be(&w.v, at + 8, 8, 0x00080004000c0004);
		at += 16;
	}
	if (records != 0)
		mr_put_be(&w.v, at, 4, 256u << 16 | (4 + 8 * records));
	call(MR_TICK_NOT);
}

static void ipfix_counts_records_once_it_knows_their_template(void **state)
{
	(void)state;
	begin("");
	ipfix(1000, 0, 5); /* of an unknown template */
	assert_int_equal(counter(MR_SEQTRACK_UNKNOWN), 1);
	ipfix(1005, 1, 3);
	ipfix(1008, 0, 7);
	ipfix(1015, 0, 1);
	ipfix(1020, 0, 1); /* four are missing */
	assert_int_equal(counter(MR_SEQTRACK_PLACED), 4);
	assert_int_equal(counter(MR_SEQTRACK_UNITS), 12);
	w.now_ns += 100 * MS;
	blank(MR_TICK);
	assert_int_equal(counter(MR_SEQTRACK_MISSING), 4);
	assert_int_equal(counter(MR_SEQTRACK_UNKNOWN), 1);
	ipfix(1021, 0, 1);
	mr_put_be16(&w.v, 42 + 18, 3); /* a set shorter than its header */
	call(MR_TICK_NOT);
	assert_int_equal(counter(MR_SEQTRACK_MALFORMED), 1);
	assert_counters();
}

static void a_tick_goes_round_all_streams_in_parts(void **state)
{
	uint32_t told = 0, blanks = 0;

	(void)state;
	set("streams", "2000");
	begin_with_results("10.0.0.9", "10.0.0.8");
	for (uint32_t i = 0; i < 2000; i++)
		packet(i, 1, 5);
	w.now_ns += 1000 * MS;
	while (told < 2000 && blanks++ < 400)
		if (blank(MR_TICK) == MR_STOP)
			told += mr_get_be16(&w.v, RESULT_AT - MR_RESULT_HEADER + 6);
	assert_int_equal(told, 2000);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(blank(MR_TICK), MR_NEXT);
}

/* The last ticks tell all that is untold, however many streams are not. */
static void the_last_ticks_go_through_all_streams_once(void **state)
{
	uint32_t told = 0;

	(void)state;
	set("streams", "5000");
	begin_with_results("10.0.0.9", "10.0.0.8");
	for (uint32_t i = 0; i < 5000; i++)
		packet(i, 1, 5);
	w.now_ns += 1000 * MS;
	for (uint32_t i = 0; i < 1000; i++)
		blank(MR_TICK);
	w.now_ns += MS;
	packet(4999, 1, 7);
	packet(4999, 1, 8);
	while (blank(MR_TICK_LAST) == MR_STOP)
		told += mr_get_be16(&w.v, RESULT_AT - MR_RESULT_HEADER + 6);
	assert_int_equal(told, 2); /* the gap, the totals */
	assert_int_equal(counter(MR_SEQTRACK_MISSING), 1);
}

/* Of a sanitizer's builds each access costs many. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define MANY 50000u
#else
#define MANY 1000000u
#endif

static void a_million_streams_have_their_books_in_memory_of_fixed_size(void **state)
{
	const uint32_t streams = MANY, more = 1000;
	char text[16];

	(void)state;
	snprintf(text, sizeof(text), "%u", streams);
	set("streams", text);
	begin("custom udp 9000 id 0:4 seq 4:4\n");
	assert_true(mr_stage_lane_bytes(w.stage, w.params) < streams * 700ull);
	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t i = 0; i < streams + more; i++)
			packet(i % 1000, i, round < 2 ? round : 3);
	assert_int_equal(counter(MR_SEQTRACK_STREAMS), streams);
	assert_int_equal(counter(MR_SEQTRACK_OVERFLOW), 3 * more);
	assert_int_equal(counter(MR_SEQTRACK_PLACED), 3 * streams);
	/* In parts, each of which is asked for again. */
	while (blank(MR_TICK_LAST) == MR_STOP)
		assert_int_equal(w.v.arg, MR_REASON_consumed);
	assert_int_equal(counter(MR_SEQTRACK_MISSING), streams);
	assert_counters();
}

static void addresses_that_do_not_belong_together_are_refused(void **state)
{
	static const struct {
		const char *dst, *src, *says;
	} wrong[] = {{"10.0.0.1", "", "no result_src"}, {"", "10.0.0.1", "no result_dst"},
		{"10.0.0.1", "fd00::1", "two families"}, {"fd00::1", "10.0.0.1", "two families"}};
	struct mr_err err;

	(void)state;
	assert_int_equal(w.stage->check(w.params, MR_RESULT_FRAME_MIN, &err), 0);
	for (uint32_t i = 0; i < MR_ARRAY_LEN(wrong); i++) {
		set("result_dst", wrong[i].dst);
		set("result_src", wrong[i].src);
		assert_int_equal(w.stage->check(w.params, MR_RESULT_FRAME_MIN, &err), -EINVAL);
		assert_non_null(strstr(err.msg, wrong[i].says));
	}
	set("result_src", "fd00::2");
	set("result_dst", "fd00::1");
	assert_int_equal(w.stage->check(w.params, 1514, &err), 0);
	assert_int_equal(w.stage->check(w.params, 1513, &err), -EINVAL);
	set("result_bytes", "576");
	assert_int_equal(w.stage->check(w.params, MR_RESULT_FRAME_MIN, &err), 0);
	assert_int_equal(w.stage->check(w.params, MR_RESULT_FRAME_MIN - 1, &err), -EINVAL);
	/* Multicast has a group's address. */
	set("result_dst_mac", "33:33:00:00:00:01");
	assert_true(mr_stage_param_set(w.stage, "result_src_mac", "33:33:00:00:00:01", NULL,
			    w.params, &err) < 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(two_senders_with_one_identity_are_two_streams),
		CASE(other_packets_go_on_and_are_not_counted),
		CASE(each_packet_is_in_one_counter),
		CASE(a_result_says_whose_and_how_many),
		CASE(results_go_to_ipv6_too),
		CASE(without_addresses_nothing_is_told_and_all_is_counted),
		CASE(events_that_find_no_place_are_counted_and_said),
		CASE(events_that_wait_when_the_address_goes_are_lost_and_counted),
		CASE(where_packets_end_their_buffers_bear_results),
		CASE(streams_beyond_the_room_are_counted_and_idle_ones_give_way),
		CASE(a_place_that_changes_hands_is_as_new),
		CASE(a_stream_that_sends_keeps_its_place),
		CASE(totals_come_no_more_often_than_is_set),
		CASE(the_last_ticks_begin_at_the_beginning),
		CASE(parameters_that_change_later_lay_nothing_out_anew),
		CASE(ipfix_counts_records_once_it_knows_their_template),
		CASE(a_tick_goes_round_all_streams_in_parts),
		CASE(the_last_ticks_go_through_all_streams_once),
		CASE(a_million_streams_have_their_books_in_memory_of_fixed_size),
		CASE(addresses_that_do_not_belong_together_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
