/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The generator's frames, the sink's counts, times and searches, without a port. What a
 * network may do to frames is done to them here: lost, doubled, reordered, changed, made up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mr_gen.h"
#include "mr_gen_schedule.h"

#define RUN 0x1234u
#define TRIAL 5u
#define START 1000000000ull
#define LATENCY 7000u

static const struct mr_gen_headers headers = {.dst_mac = {2, 0, 0, 0, 0, 2},
	.src_mac = {2, 0, 0, 0, 0, 1},
	.src_ip = 0xc6120001,
	.dst_ip = 0xc6120002,
	.src_port = 49152,
	.dst_port = 9};

static struct mr_gen_frame frame;
static struct mr_gen_sink sink;
static uint64_t issued;

static int start(void **state)
{
	struct mr_err err;

	(void)state;
	mr_gen_frame_init(&frame, &headers, 3);
	if (mr_gen_sink_init(&sink, &frame, &issued, &err) != 0)
		return -1;
	sink.run = RUN;
	sink.trial = TRIAL;
	sink.start_ns = START;
	issued = UINT64_MAX / 2;
	return 0;
}

static int stop(void **state)
{
	(void)state;
	mr_gen_sink_fini(&sink);
	return 0;
}

/* In a buffer of its exact length, so that a byte too far is seen by AddressSanitizer. */
static enum mr_gen_seen read_exact(const uint8_t *data, uint32_t bytes, struct mr_gen_stamp *ret)
{
	uint8_t *copy = malloc(bytes != 0 ? bytes : 1);
	enum mr_gen_seen seen;

	assert_non_null(copy);
	memcpy(copy, data, bytes);
	seen = mr_gen_frame_read(&frame, copy, bytes, ret);
	free(copy);
	return seen;
}

static void take_stamp(const struct mr_gen_stamp *stamp)
{
	uint8_t data[60];

	mr_gen_frame_write(&frame, stamp, sizeof(data), data);
	mr_gen_sink_take(&sink, data, sizeof(data), START + stamp->time_ns + LATENCY);
}

static void take(uint32_t stream, uint64_t number)
{
	const struct mr_gen_stamp stamp = {.run = RUN,
		.trial = TRIAL,
		.stream = (uint8_t)stream,
		.sequence = (uint32_t)number,
		.time_ns = number * 1000};

	take_stamp(&stamp);
}

static void expect(
	uint32_t stream, uint64_t received, uint64_t duplicates, uint64_t reordered, uint64_t stale)
{
	const struct mr_gen_counts *c = &sink.stream[stream].c;

	assert_int_equal(c->received, received);
	assert_int_equal(c->duplicates, duplicates);
	assert_int_equal(c->reordered, reordered);
	assert_int_equal(c->stale, stale);
}

static void frames_of_every_size_are_read_as_they_were_written(void **state)
{
	static uint8_t data[MR_GEN_SIZE_MAX];
	struct mr_gen_headers tagged = headers;

	(void)state;
	tagged.vlan = 100;
	for (uint32_t tag = 0; tag <= 4; tag += 4) {
		mr_gen_frame_init(&frame, tag != 0 ? &tagged : &headers, 3);
		for (uint32_t bytes = 60 + tag; bytes <= MR_GEN_SIZE_MAX - 4; bytes++) {
			const struct mr_gen_stamp in = {.run = 0xfedc,
				.trial = 255,
				.stream = 2,
				.sequence = 0xfffffffe,
				.time_ns = (1ull << MR_GEN_TIME_BITS) - 2};
			struct mr_gen_stamp out = {0};
			uint32_t sum = 0;

			mr_gen_frame_write(&frame, &in, bytes, data);
			assert_int_equal(read_exact(data, bytes, &out), MR_GEN_OURS);
			assert_memory_equal(&in, &out, sizeof(in));
			for (uint32_t i = 0; i < 20; i += 2)
				sum += (uint32_t)data[14 + tag + i] << 8 | data[15 + tag + i];
			assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
		}
	}
}

static void a_bit_changed_in_the_payload_is_corrupt(void **state)
{
	const struct mr_gen_stamp in = {.run = RUN, .trial = TRIAL, .sequence = 77};
	struct mr_gen_stamp out;
	uint8_t data[200];

	(void)state;
	mr_gen_frame_write(&frame, &in, sizeof(data), data);
	for (uint32_t bit = 42 * 8; bit < sizeof(data) * 8; bit++) {
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(read_exact(data, sizeof(data), &out), MR_GEN_CORRUPT);
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void a_frame_cut_short_or_with_wrong_lengths_is_never_ours(void **state)
{
	const struct mr_gen_stamp in = {.run = RUN, .trial = TRIAL, .sequence = 77};
	struct mr_gen_stamp out;
	uint8_t data[200];

	(void)state;
	mr_gen_frame_write(&frame, &in, sizeof(data), data);
	for (uint32_t bytes = 0; bytes < sizeof(data); bytes++)
		assert_int_not_equal(read_exact(data, bytes, &out), MR_GEN_OURS);
	for (uint32_t at = 16; at <= 38; at += 22) /* of IPv4 and of UDP */
		for (uint32_t v = 0; v < 65536; v++) {
			uint8_t was[2] = {data[at], data[at + 1]};

			data[at] = (uint8_t)(v >> 8);
			data[at + 1] = (uint8_t)v;
			if (memcmp(was, data + at, 2) != 0)
				assert_int_not_equal(
					read_exact(data, sizeof(data), &out), MR_GEN_OURS);
			memcpy(data + at, was, 2);
		}
}

/* What a switch or router may do, and a frame's padding behind its packet. */
static void frames_are_ours_whatever_a_device_does_to_their_headers(void **state)
{
	const struct mr_gen_stamp in = {.run = RUN, .trial = TRIAL, .stream = 1, .sequence = 77};
	struct mr_gen_stamp out;
	uint8_t data[76], changed[84] = {0};

	(void)state;
	mr_gen_frame_write(&frame, &in, sizeof(data), data);
	memcpy(changed, data, sizeof(data));
	assert_int_equal(read_exact(changed, sizeof(changed), &out), MR_GEN_OURS);
	memcpy(changed, data + 6, 6);
	memcpy(changed + 6, data, 6);
	memcpy(changed + 26, data + 30, 4); /* addresses and ports the other way round */
	memcpy(changed + 30, data + 26, 4);
	memcpy(changed + 34, data + 36, 2);
	memcpy(changed + 36, data + 34, 2);
	changed[22]--; /* hops */
	assert_int_equal(read_exact(changed, sizeof(data), &out), MR_GEN_OURS);
	assert_int_equal(out.sequence, 77);
	for (uint32_t tags = 1; tags <= 2; tags++) {
		memmove(changed + 16, changed + 12, sizeof(changed) - 16);
		memcpy(changed + 12, tags == 1 ? "\x81\x00\x00\x64" : "\x88\xa8\x00\x65", 4);
		assert_int_equal(read_exact(changed, sizeof(data) + 4 * tags, &out), MR_GEN_OURS);
	}
}

static void other_traffic_is_foreign(void **state)
{
	const struct mr_gen_stamp in = {.run = RUN, .trial = TRIAL, .sequence = 77};
	static const struct {
		uint32_t at;
		uint8_t v;
	} changes[] = {{12, 0x86}, {14, 0x65}, {14, 0x44}, {23, 6}, {20, 0x20}, {21, 1}, {34, 1},
		{35, 3}, {37, 10}};
	struct mr_gen_stamp out;
	uint8_t data[60];

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(changes); i++) {
		mr_gen_frame_write(&frame, &in, sizeof(data), data);
		data[changes[i].at] = changes[i].v;
		assert_int_equal(read_exact(data, sizeof(data), &out), MR_GEN_FOREIGN);
	}
	memset(data, 0xff, sizeof(data));
	assert_int_equal(read_exact(data, sizeof(data), &out), MR_GEN_FOREIGN);
}

/* Those that come after a higher number, as many as there are of them. */
static void reordering_is_that_of_rfc_4737(void **state)
{
	static const uint8_t few[] = {1, 2, 4, 3, 5}, many[] = {1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11};

	(void)state;
	for (size_t i = 0; i < sizeof(few); i++)
		take(0, few[i]);
	expect(0, 5, 0, 1, 0);
	for (size_t i = 0; i < sizeof(many); i++)
		take(1, many[i]);
	expect(1, 11, 0, 3, 0);
}

static void every_copy_but_the_first_is_a_duplicate_wherever_it_comes(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		take(0, i);
		take(0, i);
	}
	expect(0, 1000, 1000, 0, 0);
	for (uint32_t i = 0; i < 1000; i++)
		take(0, i);
	expect(0, 1000, 2000, 0, 0);
	take(0, 1001);
	take(0, 1000); /* late is not double */
	take(0, 1000);
	expect(0, 1002, 2001, 1, 0);
}

static void what_is_behind_the_window_is_stale_and_what_is_in_it_is_known(void **state)
{
	(void)state;
	take(0, 0);
	take(0, MR_GEN_WINDOW + 10);
	take(0, 11); /* the last of the window */
	take(0, 10); /* the first behind it */
	take(0, 0);
	expect(0, 3, 0, 1, 2);
	take(0, 11);
	expect(0, 3, 1, 1, 2);
	take(0, 10ull * MR_GEN_WINDOW);
	take(0, 10ull * MR_GEN_WINDOW - 1);
	take(0, 10ull * MR_GEN_WINDOW - 2);
	expect(0, 6, 1, 3, 2);
}

/* A number has the place in the window of one that is a window older. */
static void a_window_that_moves_on_forgets(void **state)
{
	(void)state;
	take(0, 5);
	take(0, MR_GEN_WINDOW);
	take(0, MR_GEN_WINDOW + 10);
	take(0, MR_GEN_WINDOW + 5);
	expect(0, 4, 0, 1, 0);
	take(0, 4ull * MR_GEN_WINDOW + 20);
	take(0, 4ull * MR_GEN_WINDOW + 10);
	expect(0, 6, 0, 2, 0);
}

static void numbers_go_on_beyond_32_bits(void **state)
{
	uint64_t n = (1ull << 32) - 3;

	(void)state;
	sink.stream[2].next = n;
	for (uint32_t i = 0; i < 6; i++)
		take(2, n + i);
	take(2, n + 1);
	expect(2, 6, 1, 0, 0);
	assert_int_equal(sink.stream[2].next, n + 6);
}

static void streams_are_counted_apart(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 30; i++)
		take(i % 3, i / 3);
	for (uint32_t i = 0; i < 3; i++)
		expect(i, 10, 0, 0, 0);
	assert_int_equal(sink.latency.count, 30);
	assert_int_equal(sink.latency.max_ns, LATENCY);
}

/* Whatever is made up moves no stream's window. */
static void forged_frames_are_foreign_and_harm_no_count(void **state)
{
	struct mr_gen_stamp stamp = {.run = RUN, .trial = TRIAL, .sequence = 4};

	(void)state;
	issued = 12; /* four of each stream */
	take_stamp(&stamp);
	stamp.sequence = 0x7fffffff;
	take_stamp(&stamp);
	stamp.sequence = 0xffffffff;
	take_stamp(&stamp);
	stamp.sequence = 0;
	stamp.stream = 3;
	take_stamp(&stamp);
	stamp.stream = 0;
	stamp.run = RUN + 1;
	take_stamp(&stamp);
	assert_int_equal(sink.foreign, 5);
	stamp.run = RUN;
	stamp.trial = TRIAL - 1;
	take_stamp(&stamp);
	assert_int_equal(sink.stray, 1);
	for (uint32_t i = 0; i < 4; i++)
		take(0, i);
	expect(0, 4, 0, 0, 0);
}

/* The CRC does not cover the UDP port, so the two may disagree. */
static void a_stream_that_there_is_not_is_foreign_whatever_its_port(void **state)
{
	(void)state;
	for (uint32_t stream = 3; stream < 256; stream++) {
		const struct mr_gen_stamp stamp = {
			.run = RUN, .trial = TRIAL, .stream = (uint8_t)stream};
		uint8_t data[60];

		mr_gen_frame_write(&frame, &stamp, sizeof(data), data);
		data[34] = 49152 >> 8;
		data[35] = 0;
		mr_gen_sink_take(&sink, data, sizeof(data), START);
	}
	assert_int_equal(sink.foreign, 253);
}

static void a_frame_from_the_future_is_foreign(void **state)
{
	const struct mr_gen_stamp stamp = {.run = RUN, .trial = TRIAL, .time_ns = 1000};
	uint8_t data[60];

	(void)state;
	mr_gen_frame_write(&frame, &stamp, sizeof(data), data);
	mr_gen_sink_take(&sink, data, sizeof(data), START + 999);
	assert_int_equal(sink.foreign, 1);
	expect(0, 0, 0, 0, 0);
}

/* Random faults, and a second count of them. */
static void a_network_that_does_everything_is_counted_exactly(void **state)
{
	enum {
		N = 20000,
		SPREAD = 50
	};
	static uint8_t seen[N];
	uint64_t received = 0, duplicates = 0, reordered = 0, corrupted = 0, next = 0;
	uint64_t order[N];
	uint8_t data[100];

	(void)state;
	srand(7);
	issued = 3 * N;
	for (uint32_t i = 0; i < N; i++)
		order[i] = i;
	for (uint32_t i = 0; i + SPREAD < N; i++)
		if (rand() % 10 == 0) {
			uint32_t k = i + (uint32_t)(rand() % SPREAD);
			uint64_t t = order[i];

			order[i] = order[k];
			order[k] = t;
		}
	for (uint32_t i = 0; i < N; i++) {
		const struct mr_gen_stamp stamp = {
			.run = RUN, .trial = TRIAL, .sequence = (uint32_t)order[i]};
		uint32_t fate = (uint32_t)(rand() % 20);

		mr_gen_frame_write(&frame, &stamp, sizeof(data), data);
		if (fate == 0)
			continue; /* lost */
		if (fate == 1) {
			data[42 + rand() % 58] ^= (uint8_t)(1 + rand() % 255);
			corrupted++;
		}
		for (uint32_t copies = fate == 2 ? 2 : 1; copies > 0; copies--) {
			mr_gen_sink_take(&sink, data, sizeof(data), START + LATENCY);
			if (fate == 1)
				continue;
			duplicates += seen[order[i]];
			received += !seen[order[i]];
			reordered += !seen[order[i]] && order[i] < next;
			seen[order[i]] = 1;
			if (order[i] >= next)
				next = order[i] + 1;
		}
	}
	assert_true(reordered > 500 && duplicates > 500 && corrupted > 500);
	expect(0, received, duplicates, reordered, 0);
	assert_int_equal(sink.corrupted, corrupted);
	assert_int_equal(sink.foreign, 0);
}

static void any_bytes_are_taken(void **state)
{
	uint8_t data[128];

	(void)state;
	srand(11);
	for (uint32_t i = 0; i < 20000; i++) {
		const struct mr_gen_stamp stamp = {.run = RUN, .trial = TRIAL, .sequence = i};
		uint32_t bytes = (uint32_t)rand() % sizeof(data);
		uint8_t *exact;

		mr_gen_frame_write(&frame, &stamp, sizeof(data), data);
		for (uint32_t k = (uint32_t)rand() % 4; k > 0; k--)
			data[rand() % 60] = (uint8_t)rand();
		exact = malloc(bytes + 1);
		assert_non_null(exact);
		memcpy(exact, data, bytes);
		mr_gen_sink_take(&sink, exact, bytes, START);
		free(exact);
	}
	assert_int_equal(sink.stream[0].c.received, 0);
}

static void times_are_fixed_by_the_number_alone(void **state)
{
	const uint64_t gap = (1000000000ull << MR_GEN_GAP_SHIFT) / 3;

	(void)state;
	assert_int_equal(mr_gen_due(gap, 1, 0), 0);
	assert_int_equal(mr_gen_due(gap, 1, 1), 333333333);
	assert_int_equal(mr_gen_due(gap, 1, 3), 999999999);
	for (uint32_t k = 0; k < 100; k++)
		assert_int_equal(mr_gen_due(gap, 10, k), mr_gen_due(gap, 1, k / 10 * 10));
	/* An hour of the fastest rate stays within a millionth. */
	assert_in_range(
		mr_gen_due((1000000000ull << MR_GEN_GAP_SHIFT) / 100000000, 1, 100000000ull * 3600),
		3600ull * 999999000, 3600ull * 1000001000);
}

static void as_many_are_scheduled_as_have_a_time_within_the_duration(void **state)
{
	const uint64_t gap = (1000000000ull << MR_GEN_GAP_SHIFT) / 1000;

	(void)state;
	assert_int_equal(mr_gen_total(gap, 1, 1000000000, 0), 1000);
	assert_int_equal(mr_gen_total(gap, 1, 1000000001, 0), 1001);
	assert_int_equal(mr_gen_total(gap, 32, 1000000000, 0), 1024); /* the last burst begins */
	assert_int_equal(mr_gen_total(gap, 1, 1000000000, 10), 10);
	assert_int_equal(mr_gen_total(gap, 1, 1000000000, 4000), 1000);
	assert_int_equal(mr_gen_total(0, 1, 1000000000, 0), UINT64_MAX);
	/* The slowest and longest do not run over. */
	assert_int_equal(
		mr_gen_total(1000000000ull << MR_GEN_GAP_SHIFT, 65536, 3600000000000, 0), 65536);
	for (uint64_t burst = 1; burst < 70; burst += 3) {
		uint64_t n = mr_gen_total(gap, (uint32_t)burst, 777000000, 0);

		assert_true(mr_gen_due(gap, (uint32_t)burst, n - 1) < 777000000);
		assert_true(mr_gen_due(gap, (uint32_t)burst, n) >= 777000000);
	}
}

static void a_search_finds_every_capacity_within_its_resolution(void **state)
{
	static const uint32_t resolutions[] = {100, 999, 10000, 500000};

	(void)state;
	for (size_t r = 0; r < MR_ARRAY_LEN(resolutions); r++)
		for (uint32_t capacity = 0; capacity <= MR_GEN_PPM; capacity += 4999) {
			struct mr_gen_halving h;
			uint32_t steps = 0;

			for (mr_gen_halving_init(&h, resolutions[r]); h.next != 0; steps++)
				mr_gen_halving_tell(&h, h.next <= capacity);
			assert_true(steps <= MR_GEN_TRIALS_MAX);
			assert_true(h.low <= capacity);
			assert_true(capacity - h.low <= resolutions[r] || capacity == MR_GEN_PPM);
			if (capacity >= MR_GEN_PPM)
				assert_int_equal(h.low, MR_GEN_PPM);
		}
}

static struct mr_problems problems;
static struct mr_gen_plan plan;

#define PORTS "ports:\n  - {name: a, device: net_ring0}\n  - {name: b, device: \"kernel:veth0\"}\n"

static int plan_text(const char *text)
{
	static struct mr_host host = {.known = true, .cpus = 2};
	struct mr_gen_config cfg;
	int rc;

	host.cpu_online[0] = host.cpu_online[1] = true;
	host.cpu_allowed[0] = host.cpu_allowed[1] = true;
	rc = mr_gen_config_parse("g.yaml", text, strlen(text), &cfg, &problems);
	if (rc == 0) {
		rc = mr_gen_plan_build(&cfg, &host, NULL, &plan, &problems);
		mr_gen_config_free(&cfg);
	}
	return rc;
}

static void the_plan_has_ports_rates_and_sizes(void **state)
{
	(void)state;
	assert_int_equal(plan_text(PORTS "send: {port: a, rate_mbps: 100}\n"
					 "receive: {port: b}\n"
					 "frames: {sizes: imix, vlan: 7, streams: 64}\n"),
		0);
	assert_int_equal(plan.send_port, 0);
	assert_int_equal(plan.receive_port, 1);
	assert_string_equal(plan.plan.ports[1].args, "rx_iface_in=veth0");
	assert_string_equal(plan.plan.ports[plan.floor_port].device, "net_ring_floor");
	assert_int_equal(plan.sizes_count, 12);
	assert_int_equal(mr_gen_plan_wire_bits(&plan), (7 * 88 + 4 * 594 + 1542) * 8);
	/* 100 Mbit/s over a mean of 377.8 bytes of the wire */
	assert_float_equal(mr_gen_gap_pps(plan.gap), 33083.3, 1);
	assert_true(plan.plan.host_buffers > 4096);
	assert_int_equal(plan_text(PORTS "send: {port: a, rate_pps: 3}\n"
					 "receive: {port: a}\n"),
		-EINVAL);
	assert_string_equal(problems.p[0].key, "ports[1]");
	assert_int_equal(plan_text("ports: [{name: a, device: net_null0}]\n"
				   "send: {port: a, rate_pps: 1, calibrate_ms: 0}\n"
				   "frames: {sizes: sweep, size: 64, size_end: 256}\n"),
		0);
	assert_int_equal(plan.sizes_count, 4);
	assert_int_equal(plan.sizes[3], 256);
	assert_int_equal(plan.floor_port, MR_GEN_NO_PORT);
	assert_int_equal(plan.receive_port, MR_GEN_NO_PORT);
}

static void mistakes_are_refused_at_their_line(void **state)
{
	static const struct {
		const char *send, *rest, *key;
	} bad[] = {
		{"{port: c, rate_pps: 1}", "receive: {port: b}", "send.port"},
		{"{port: a, rate_pps: 1}", "receive: {port: c}", "receive.port"},
		{"{port: a, rate_pps: 1, rate_mbps: 1}", "receive: {port: b}", "send.rate_mbps"},
		{"{port: a, calibrate_ms: 0}", "receive: {port: b}", "send.rate_pps"},
		{"{port: a, core: 2}", "receive: {port: b}", "send.core"},
		{"{port: a, core: 1}", "receive: {port: b, core: 1}", "receive.core"},
		{"{port: a}", "frames: {size: 1519}\nreceive: {port: b}", "frames.size"},
		{"{port: a}", "frames: {size: 64, vlan: 1}\nreceive: {port: b}", "frames.size"},
		{"{port: a}", "frames: {sizes: sweep, size: 99, size_end: 98}\nreceive: {port: b}",
			"frames.size_end"},
		{"{port: a}", "frames: {sizes: sweep, size_end: 1600}\nreceive: {port: b}",
			"frames.size_end"},
		{"{port: a}", "frames: {src_mac: \"02-00-00-00-00-01\"}\nreceive: {port: b}",
			"frames.src_mac"},
		{"{port: a}", "frames: {src_mac: \"01:00:00:00:00:01\"}\nreceive: {port: b}",
			"frames.src_mac"},
		{"{port: a}", "frames: {dst_ip: 198.18.0.256}\nreceive: {port: b}",
			"frames.dst_ip"},
		{"{port: a}", "frames: {dst_port: 49153, streams: 2}\nreceive: {port: b}",
			"frames.dst_port"},
		{"{port: a, rat_pps: 1}", "receive: {port: b}", "send.rat_pps"},
		{"{port: a}", "receive: {port: b}\nfind: {search: zero}", "find.search"},
		{"{port: a}", "receive: {}", "receive.port"},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++) {
		char text[512];

		snprintf(text, sizeof(text), "%s%s\nsend: %s\n", PORTS, bad[i].rest, bad[i].send);
		assert_int_equal(plan_text(text), -EINVAL);
		if (problems.count != 1 || strcmp(problems.p[0].key, bad[i].key) != 0)
			fail_msg("%s: %u problems, the first %s: %s", bad[i].key, problems.count,
				problems.p[0].key, problems.p[0].message);
		assert_true(problems.p[0].line >= 1);
	}
	assert_int_equal(plan_text("ports: [{name: a, device: net_ring0}]\n"), -EINVAL);
	assert_string_equal(problems.p[0].key, "send");
	assert_int_equal(plan_text("ports: [{name: a, device: net_ring0}]\nsend: {port: a}\n"
				   "find: {search: zero-loss}\n"),
		-EINVAL);
	assert_string_equal(problems.p[0].key, "find.search");
}

static void the_manual_is_planned_as_a_loop(void **state)
{
	static struct mr_host host;
	struct mr_gen_config cfg;

	(void)state;
	assert_int_equal(
		mr_gen_config_load(MILLRACE_SOURCE "/config/gen.yaml", &cfg, &problems), 0);
	assert_int_equal(mr_gen_plan_build(&cfg, &host, NULL, &plan, &problems), 0);
	assert_int_equal(plan.send_port, plan.receive_port);
	assert_int_equal(plan.gap, 0);
	mr_gen_config_free(&cfg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			frames_of_every_size_are_read_as_they_were_written, start, stop),
		cmocka_unit_test_setup_teardown(
			a_bit_changed_in_the_payload_is_corrupt, start, stop),
		cmocka_unit_test_setup_teardown(
			a_frame_cut_short_or_with_wrong_lengths_is_never_ours, start, stop),
		cmocka_unit_test_setup_teardown(
			frames_are_ours_whatever_a_device_does_to_their_headers, start, stop),
		cmocka_unit_test_setup_teardown(other_traffic_is_foreign, start, stop),
		cmocka_unit_test_setup_teardown(reordering_is_that_of_rfc_4737, start, stop),
		cmocka_unit_test_setup_teardown(
			every_copy_but_the_first_is_a_duplicate_wherever_it_comes, start, stop),
		cmocka_unit_test_setup_teardown(
			what_is_behind_the_window_is_stale_and_what_is_in_it_is_known, start, stop),
		cmocka_unit_test_setup_teardown(a_window_that_moves_on_forgets, start, stop),
		cmocka_unit_test_setup_teardown(numbers_go_on_beyond_32_bits, start, stop),
		cmocka_unit_test_setup_teardown(streams_are_counted_apart, start, stop),
		cmocka_unit_test_setup_teardown(
			forged_frames_are_foreign_and_harm_no_count, start, stop),
		cmocka_unit_test_setup_teardown(
			a_stream_that_there_is_not_is_foreign_whatever_its_port, start, stop),
		cmocka_unit_test_setup_teardown(a_frame_from_the_future_is_foreign, start, stop),
		cmocka_unit_test_setup_teardown(
			a_network_that_does_everything_is_counted_exactly, start, stop),
		cmocka_unit_test_setup_teardown(any_bytes_are_taken, start, stop),
		cmocka_unit_test(times_are_fixed_by_the_number_alone),
		cmocka_unit_test(as_many_are_scheduled_as_have_a_time_within_the_duration),
		cmocka_unit_test(a_search_finds_every_capacity_within_its_resolution),
		cmocka_unit_test(the_plan_has_ports_rates_and_sizes),
		cmocka_unit_test(mistakes_are_refused_at_their_line),
		cmocka_unit_test(the_manual_is_planned_as_a_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
