/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device form of the kernel and of every stage, lane by lane (simt.h), against
 * the host form: same slots, same frames, same counters, whatever the schedule.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mr_base.h"
#include "mr_stage.h"
#include "simt.h"
#include "simt_faults.h"
#include "simt_host.h"
#include "simt_image.h"

#define TURNS 3000000u

static struct simt_slot slots[SIMT_GIVEN];
static struct simt_outcome by_lanes, by_host;
static struct simt_arena arena;
static struct simt_host host;

static uint64_t drawn;

static uint32_t draw(uint32_t below)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(drawn >> 33) % below;
}

static void entry_thread(const void *argument)
{
	mr_kernel_thread(argument);
}

static void entry_warp(const void *argument)
{
	mr_kernel_warp(argument);
}

static void entry_order(const void *argument)
{
	mr_kernel_order(argument);
}

static void (*const entries[MR_WORK_COUNT])(const void *argument) = {
	entry_thread, entry_warp, entry_order};

/* What is run: an entry, its division, and the shape of the grid. */
struct shape {
	enum mr_work work;
	uint32_t blocks, threads;
};

static const struct shape shapes[] = {
	{MR_WORK_THREAD, 1, 64},
	{MR_WORK_WARP, 1, 64},
	{MR_WORK_THREAD, 2, 32},
	{MR_WORK_WARP, 2, 32},
	{MR_WORK_ORDER, 1, 32},
	{MR_WORK_WARP, 1, 96},
	{MR_WORK_WARP, 2, 256},
	{MR_WORK_THREAD, 1, 256},
};

/* A descriptor that must be dropped: out of the region, of the buffer, or a runt. */
static struct mr_desc_in hostile(uint32_t position)
{
	const uint32_t units = sizeof(arena.region) / MR_UNIT;

	switch (draw(7)) {
	case 0:
		return (struct mr_desc_in){UINT32_MAX - draw(100), 60, 0};
	case 1:
		return (struct mr_desc_in){units - SIMT_ROOM / MR_UNIT + 1 + draw(16), 60, 0};
	case 2:
		return (struct mr_desc_in){position, SIMT_ROOM, (uint16_t)(1 + draw(60000))};
	case 3:
		return (struct mr_desc_in){position, UINT16_MAX, UINT16_MAX};
	case 4:
		return (struct mr_desc_in){position, 14, SIMT_ROOM - 13};
	case 5:
		return (struct mr_desc_in){position, 0, (uint16_t)draw(SIMT_ROOM)};
	default:
		return (struct mr_desc_in){position, (uint16_t)draw(MR_FRAME_MIN), 128};
	}
}

static struct mr_desc_in friendly(uint32_t position)
{
	uint32_t length = MR_FRAME_MIN + draw(SIMT_ROOM - MR_FRAME_MIN + 1);
	uint32_t head = draw(SIMT_ROOM - length + 1);

	switch (draw(4)) {
	case 0:
		head = SIMT_ROOM - length; /* to the buffer's last byte */
		break;
	case 1:
		length = MR_FRAME_MIN + draw(48);
		head = 128;
		break;
	default:
		break;
	}
	return (struct mr_desc_in){position, (uint16_t)length, (uint16_t)head};
}

/* A buffer to be copied to that is none. */
static uint32_t hostile_copy(void)
{
	const uint32_t units = sizeof(arena.tx_region) / MR_UNIT;

	return draw(2) == 0 ? UINT32_MAX - draw(3) : units - SIMT_ROOM / MR_UNIT + 1 + draw(16);
}

static void put(uint8_t *frame, uint32_t at, uint32_t bytes, uint64_t v)
{
	for (uint32_t i = 0; i < bytes && at + i < SIMT_ROOM; i++)
		frame[at + i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
}

/* One of few addresses: drawn parameters have the same. */
static uint32_t draw_address(void)
{
	return 0x0a000000 + draw(2);
}

static void put_checksum(uint8_t *frame, uint32_t at, uint32_t bytes)
{
	uint32_t sum = 0;

	put(frame, at + 10, 2, 0);
	for (uint32_t i = at; i < at + bytes; i += 2)
		sum += (uint32_t)frame[i] << 8 | frame[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put(frame, at + 10, 2, ~((sum & 0xffff) + (sum >> 16)));
}

static uint32_t fill_ipv4(uint8_t *frame, uint32_t at, uint32_t end)
{
	uint32_t options = draw(4) == 0 ? 4 * draw(11) : 0;

	put(frame, at, 1, 0x45 + options / 4);
	put(frame, at + 2, 2, end - at);
	put(frame, at + 6, 2, draw(4) == 0 ? draw(65536) : 0);
	put(frame, at + 9, 1, draw(2) == 0 ? 17 : draw(2) == 0 ? 6 : 1);
	put(frame, at + 12, 4, draw_address());
	put(frame, at + 16, 4, draw_address());
	if (draw(4) == 0)
		put(frame, at + 8, 1, 1);
	if (draw(8) != 0)
		put_checksum(frame, at, 20 + options);
	return at + 20 + options;
}

static uint32_t fill_ipv6(uint8_t *frame, uint32_t at, uint32_t end)
{
	static const uint8_t protocols[] = {17, 6, 58, 0, 60, 44, 51};
	uint32_t extension = draw(3) == 0;

	put(frame, at, 4, 0x60000000);
	put(frame, at + 4, 2, end - at - 40);
	put(frame, at + 6, 2, protocols[extension ? 3 + draw(4) : draw(3)] << 8 | 255);
	for (uint32_t i = 8; i < 40; i += 4)
		put(frame, at + i, 4, i % 16 == 4 ? draw_address() : i % 16 == 8 ? 0xfd000000 : 0);
	if (extension)
		put(frame, at + 40, 8, (uint64_t)protocols[draw(7)] << 56);
	return at + 40 + (extension ? 8 : 0);
}

/* A neighbour solicitation without options, behind an IPv6 header of 40 bytes. */
static void fill_solicitation(uint8_t *frame, uint32_t at)
{
	uint32_t sum = 58 + 24;

	put(frame, at - 36, 3, 24 << 8 | 58);
	put(frame, at, 8, 0x8700000000000000);
	for (uint32_t i = 8; i < 24; i += 4)
		put(frame, at + i, 4, i == 20 ? draw_address() : i == 8 ? 0xfd000000 : 0);
	for (uint32_t i = at - 32; i < at + 24; i += 2)
		sum += (uint32_t)frame[i] << 8 | frame[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put(frame, at + 2, 2, ~((sum & 0xffff) + (sum >> 16)));
}

/* Headers that hang together, mostly; what they say is drawn. */
static void fill_headers(uint8_t *frame, uint32_t length)
{
	uint32_t at = 14, kind = draw(5);

	put(frame, 0, 1, 2);
	if (draw(2) == 0)
		put(frame, 0, 6, 0x024d52000001); /* route's own */
	put(frame, 6, 1, 2);
	for (uint32_t tags = draw(3); tags > 0; tags--, at += 4)
		put(frame, at - 2, 2, 0x8100);
	put(frame, at - 2, 2, kind == 0 ? 0x806 : kind < 3 ? 0x800 : 0x86dd);
	if (kind == 0) {
		put(frame, at, 8, 0x0001080006040001);
		put(frame, at + 24, 4, draw_address());
		return;
	}
	at = kind < 3 ? fill_ipv4(frame, at, length) : fill_ipv6(frame, at, length);
	switch (draw(6)) {
	case 4: /* of a stream, that begins near its number: lost, again, late, anew */
	case 5:
		put(frame, at, 8, 0x03e8232800000000 | (length - at) << 16);
		put(frame, at + 8, 2, draw(2) << 8 | (draw(8) == 0 ? draw(256) : draw(12)));
		break;
	case 0:
		put(frame, at, 8, 0x03e8000700000000 | (length - at) << 16);
		break;
	case 1:
		put(frame, at, 8, 0x03e812b500000000 | (length - at) << 16);
		put(frame, at + 8, 1, 8);
		break;
	case 2:
		put(frame, at, 2, kind < 3 ? 0x0800 : 0x8000);
		break;
	default:
		fill_solicitation(frame, at);
		break;
	}
}

static void fill(uint8_t *frame, uint32_t length)
{
	uint32_t kind = draw(8);

	for (uint32_t i = 0; i < SIMT_ROOM; i++)
		frame[i] = kind == 0 ? 0 : kind == 1 ? 0xff : (uint8_t)draw(256);
	if (kind > 3)
		fill_headers(frame, length);
}

/* Slots of packets, and where the lane keeps order of blank buffers too. */
static void make_slots(enum mr_work work)
{
	uint32_t bad = draw(4); /* in eighths */

	for (uint32_t i = 0; i < SIMT_GIVEN; i++) {
		struct simt_slot *s = &slots[i];

		s->count = draw(4) == 0 ? draw(2) * SIMT_BATCH : 1 + draw(SIMT_BATCH);
		s->rx_port = (uint8_t)draw(256);
		s->flags = 0;
		if (work == MR_WORK_ORDER && (i + 2 >= SIMT_GIVEN || draw(3) == 0))
			s->flags = i + 2 >= SIMT_GIVEN ? MR_SLOT_TICK | MR_SLOT_LAST : MR_SLOT_TICK;
		for (uint32_t k = 0; k < s->count; k++) {
			struct simt_packet *p = &s->packet[k];
			uint32_t position = (i % SIMT_SLOTS * SIMT_BATCH + k) * SIMT_ROOM / MR_UNIT;

			p->good = draw(8) >= bad;
			p->d = p->good ? friendly(position) : hostile(position);
			/* What is too short for a packet is no fault of a blank buffer. */
			p->good |= s->flags != 0 && p->d.length < MR_FRAME_MIN;
			if (s->flags != 0 && p->good)
				p->d = (struct mr_desc_in){position, 0, 128};
			p->to_good = draw(16) != 0;
			p->to = p->to_good ? position : hostile_copy();
			fill(p->frame, p->d.length);
		}
	}
}

/* Any text that the type takes; often its default, or hardly a frame would match all. */
static void draw_param(const struct mr_param_desc *p, uint8_t params[MR_PARAM_BYTES])
{
	uint32_t at = draw(2), words = 0;
	char text[64];
	struct mr_err err;

	while (p->type == MR_PARAM_WORD && p->words[words] != NULL)
		words++;
	switch (p->type) {
	case MR_PARAM_U32:
	case MR_PARAM_U64:
	case MR_PARAM_SIZE:
		if (draw(2) == 0)
			return;
		snprintf(text, sizeof(text), "%llu",
			(unsigned long long)(p->min +
				draw((uint32_t)(p->max - p->min < 1u << 30 ? p->max - p->min + 1
									   : 1u << 30))));
		break;
	case MR_PARAM_WORD:
		snprintf(text, sizeof(text), "%s", p->words[draw(words)]);
		break;
	case MR_PARAM_REASON:
		snprintf(text, sizeof(text), "%s",
			mr_reason_name((enum mr_reason)draw(MR_REASON_COUNT)));
		break;
	case MR_PARAM_PORT:
		snprintf(text, sizeof(text), "%u", draw(MR_TX_MAX));
		break;
	case MR_PARAM_IP:
		snprintf(text, sizeof(text),
			p->list_max != 0 ? "10.0.0.%u,fd00::a00:%u" : "10.0.0.%u", at, at);
		break;
	case MR_PARAM_PREFIX:
		snprintf(text, sizeof(text), draw(2) == 0 ? "10.0.0.%u" : "fd00::a00:%u", at);
		break;
	case MR_PARAM_RANGE:
		snprintf(text, sizeof(text), "%u-%u", draw(30), (uint32_t)p->max - draw(30));
		break;
	default:
		return;
	}
	if (p->type == MR_PARAM_PREFIX && draw(3) != 0)
		return;
	if (mr_param_parse(p, "drawn", text, NULL, params, &err) != 0)
		fail_msg("%s", err.msg);
}

/* What a stage of tables is given; the words of both lines meet drawn frames. */
static const char *const table_text[MR_STAGE_COUNT] = {
	[MR_STAGE_filter] = "count src 10.0.0.0\ndeny proto icmp dst 10.0.0.1\n"
			    "permit proto udp dst_port 0-7\ndeny src fd00::/120 src_port 1000\n"
			    "permit dst fd00::a00:1\ncount proto 0-60\npermit src 10.0.0.0/31\n",
	[MR_STAGE_route] = "10.0.0.0 via 02:00:00:00:00:01 port 3\n10.0.0.0/8 pass\n"
			   "fd00::/64 via 02:00:00:00:00:02 port 0\nfd00::a00:1 drop\n",
	[MR_STAGE_seqtrack] = "custom udp 9000 id 0:1 seq 1:1 units 1\nflow udp 7\nvrt udp 4789\n",
	[MR_STAGE_unpack] = "custom udp 9000 id 0:1 seq 1:1 payload 2\nrtp udp 7\nvrt udp 4789\n",
};

/* What bounds a stage's memory, so that it fits SIMT_STATE_BYTES. */
static const char *const small[][2] = {
	{"streams", "6"}, {"events", "16"}, {"templates", "16"}, {"results", "2"}};

/* Memory of a stage in the arena, where it was drawn to have some. */
static uint64_t make_state(const struct mr_stage_desc *stage, uint32_t place, uint8_t *params)
{
	for (uint32_t i = 0; i < MR_ARRAY_LEN(small); i++)
		if (mr_stage_param_find(stage, small[i][0]) != NULL &&
			mr_stage_param_set(stage, small[i][0], small[i][1], NULL, params, NULL) !=
				0)
			fail_msg("%s: %s", stage->name, small[i][0]);
	assert_true(mr_stage_lane_bytes(stage, params) <= SIMT_STATE_BYTES);
	return mr_stage_lane_bytes(stage, params) != 0 && stage->work == MR_WORK_ORDER
		? (uint64_t)(uintptr_t)arena.state[place]
		: 0;
}

/* Into the arena, where a stage was drawn to have one. */
static void make_tables(struct mr_lane_dev *lane)
{
	for (uint32_t i = 0; i < lane->chain_len; i++) {
		const struct mr_stage_desc *stage = mr_stage_at(lane->chain[i].stage);
		uint8_t *table = arena.table[stage->id];
		struct mr_table_errors errors = {0};
		char text[1024];
		struct mr_table_text t = {.at = text, .errors = &errors};
		size_t bytes = 0;

		if (lane->chain[i].table[0] == 0)
			continue;
		snprintf(text, sizeof(text), "%s", table_text[stage->id]);
		if (stage->table->build(&t, lane->chain[i].params[0], NULL, table, &bytes) != 0 ||
			errors.count != 0)
			fail_msg("%s: line %u: %s", stage->name, errors.e[0].line,
				errors.e[0].message);
		assert_true(bytes <= SIMT_TABLE_BYTES);
		lane->chain[i].table[0] = (uint64_t)(uintptr_t)table;
	}
}

static void add_stage(struct mr_lane_dev *lane, const struct mr_stage_desc *stage, uint32_t *base)
{
	struct mr_chain_dev *c = &lane->chain[lane->chain_len++];

	c->stage = (uint16_t)stage->id;
	c->counter_base = (uint16_t)*base;
	*base += stage->counters_count;
	c->table[0] = stage->table != NULL && draw(4) != 0; /* make_tables() */
	mr_stage_param_defaults(stage, c->params[0]);
	for (uint32_t i = 0; i < stage->params_count; i++)
		draw_param(&stage->params[i], c->params[0]);
	c->flags = stage->ticks ? MR_CHAIN_TICKS : 0;
	c->state = make_state(stage, lane->chain_len - 1, c->params[0]);
}

static bool runs_in(const struct mr_stage_desc *stage, enum mr_work work)
{
	return stage->work <= work && (!stage->ordered || work == MR_WORK_ORDER);
}

/* A chain of `length` stages, or of one given. */
static struct mr_lane_dev make_chain(
	enum mr_work work, uint32_t length, const struct mr_stage_desc *only)
{
	/* Half of the lanes copy. */
	struct mr_lane_dev lane = {.tx_region = draw(2)};
	uint32_t base = 0;

	if (only != NULL)
		add_stage(&lane, only, &base);
	while (lane.chain_len < length) {
		const struct mr_stage_desc *stage = mr_stage_at(draw(MR_STAGE_COUNT));

		/* A drop ends the chain; mostly behind it there is nothing to see. */
		if (runs_in(stage, work) && (stage->id != MR_STAGE_drop || draw(4) == 0))
			add_stage(&lane, stage, &base);
	}
	return lane;
}

static void prepare(const struct mr_lane_dev *lane, uint32_t workers, enum simt_capture capture,
	struct simt_outcome *o)
{
	memset(&arena, 0, sizeof(arena));
	memset(arena.region, 0xee, sizeof(arena.region));
	memset(arena.tx_region, 0xdd, sizeof(arena.tx_region));
	memset(o, 0, sizeof(*o));
	arena.lane = *lane;
	make_tables(&arena.lane);
	host = (struct simt_host){.arena = &arena,
		.whole = true,
		.slots = slots,
		.workers = workers,
		.outcome = o,
		.draw = draw(1u << 31),
		.capture = capture};
	simt_host_init(&host);
}

static const char *run_lanes(const struct mr_lane_dev *lane, const struct shape *s, uint64_t seed)
{
	prepare(lane, s->blocks, (enum simt_capture)draw(3), &by_lanes);
	arena.launch.host_timeout_ns = 1000000000;
	arena.launch.backoff_ns = 500;
	host.lanes = true;
	simt_memory_init(&arena, sizeof(arena));
	simt_memory_allow(arena.region, sizeof(arena.region), false);
	simt_memory_allow(arena.tx_region, sizeof(arena.tx_region), false);
	return simt_run(&(struct simt_grid){
		.entry = entries[s->work],
		.argument = &arena.launch,
		.blocks = s->blocks,
		.threads = s->threads,
		.seed = seed,
		.turns_max = TURNS,
		.host = simt_host_step,
		.host_argument = &host,
	});
}

static void run_host(const struct mr_lane_dev *lane, const struct shape *s)
{
	prepare(lane, s->blocks, SIMT_CAPTURE_NONE, &by_host);
	simt_host_reference(&host, mr_image_sim.kernels[s->work].entry);
}

static void compare(const struct mr_lane_dev *lane, const struct shape *s, uint64_t seed)
{
	static uint8_t region[sizeof(arena.region)], tx_region[sizeof(arena.tx_region)];
	static uint8_t state[sizeof(arena.state)];
	const char *fault;

	make_slots(s->work);
	fault = run_lanes(lane, s, seed);
	if (fault != NULL)
		fail_msg("%s, %u blocks of %u, seed %llu, first stage %s: %s",
			mr_work_name(s->work), s->blocks, s->threads, (unsigned long long)seed,
			lane->chain_len == 0 ? "none" : mr_stage_at(lane->chain[0].stage)->name,
			fault);
	if (host.wrong != NULL)
		fail_msg("capture: %s", host.wrong);
	if (host.capture == SIMT_CAPTURE_ALL)
		assert_int_equal(host.found, host.wanted);
	memcpy(region, arena.region, sizeof(region));
	memcpy(tx_region, arena.tx_region, sizeof(tx_region));
	memcpy(state, arena.state, sizeof(state));
	run_host(lane, s);
	assert_memory_equal(state, arena.state, sizeof(state));
	assert_memory_equal(tx_region, arena.tx_region, sizeof(tx_region));
	assert_memory_equal(region, arena.region, sizeof(region));
	assert_memory_equal(by_lanes.slot, by_host.slot, sizeof(by_host.slot));
	assert_memory_equal(by_lanes.counters, by_host.counters, sizeof(by_host.counters));
	assert_int_equal(by_lanes.done, SIMT_GIVEN);
	assert_int_equal(by_lanes.left, MR_LEFT_EXIT);
}

static void every_fault_of_lanes_is_found(void **state)
{
	static struct {
		struct simt_words w;
		uint32_t words[SIMT_WORDS];
	} a __attribute__((aligned(64)));

	(void)state;
	for (uint32_t i = 0; i < simt_fault_rows_count; i++) {
		const struct simt_fault_row *r = &simt_fault_rows[i];

		for (uint64_t seed = 0; seed < 6; seed++) {
			struct simt_seen seen = {a.words, 65, false};
			const char *fault;

			memset(&a, 0, sizeof(a));
			a.w.words = a.words;
			simt_memory_init(&a, sizeof(a));
			simt_memory_allow(&a.words[SIMT_REFUSED], 4, false);
			fault = simt_run(&(struct simt_grid){
				.entry = r->entry,
				.argument = &a.w,
				.blocks = 1,
				.threads = 64,
				.seed = seed,
				.turns_max = 20000,
				.host = r->host ? simt_host_words_step : NULL,
				.host_argument = &seen,
			});
			if (r->found == NULL ? fault != NULL || !seen.right
					     : fault == NULL || strstr(fault, r->found) == NULL)
				fail_msg("%s, seed %u: %s", r->name, (unsigned)seed,
					fault != NULL ? fault : "nothing was found");
		}
	}
}

static const char *run_helper(void (*entry)(const void *), const void *a, uint64_t seed)
{
	return simt_run(&(struct simt_grid){.entry = entry,
		.argument = a,
		.blocks = 1,
		.threads = SIMT_WARP,
		.seed = seed,
		.turns_max = TURNS});
}

/* Frame and room stay each lane's own: the frame moves with the head. */
static void a_view_is_shared_whole(void **state)
{
	static struct {
		struct simt_share a;
		struct mr_view given[SIMT_WARP], got[SIMT_WARP];
		uint32_t flow[SIMT_WARP];
		uint8_t frame[256];
	} m __attribute__((aligned(64)));

	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++) {
		memset(&m, 0, sizeof(m));
		m.a = (struct simt_share){m.given, m.got, m.flow};
		for (uint32_t i = 0; i < SIMT_WARP; i++) {
			uint32_t head = seed % 2 == 0 ? 16 + i : 60 - i;

			m.given[i] = (struct mr_view){.frame = m.frame + head,
				.length = (uint32_t)(65535 - 97 * i),
				.head = head,
				.room = 65535,
				.rx_port = 9,
				.verdict = (uint8_t)(i % 3),
				.port = (uint8_t)(255 - i),
				.arg = (uint16_t)(65535 - i)};
		}
		m.given[0].verdict = MR_TX_MASK;
		simt_memory_init(&m, sizeof(m));
		assert_null(run_helper(simt_entry_share, &m.a, seed));
		for (uint32_t i = 0; i < SIMT_WARP; i++) {
			assert_memory_equal(&m.got[i], &m.given[0], sizeof(m.got[i]));
			assert_int_equal(m.flow[i], MR_STOP);
		}
	}
}

static void a_group_sum_is_of_all_and_in_all(void **state)
{
	static struct {
		struct simt_sum a;
		uint64_t given[SIMT_WARP], got[SIMT_WARP];
	} m __attribute__((aligned(64)));

	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++) {
		m.a = (struct simt_sum){m.given, m.got};
		for (uint32_t i = 0; i < SIMT_WARP; i++)
			m.given[i] = (uint64_t)1 << (seed % 2 == 0 ? i : 63 - i);
		simt_memory_init(&m, sizeof(m));
		assert_null(run_helper(simt_entry_group_sum, &m.a, seed));
		for (uint32_t i = 0; i < SIMT_WARP; i++)
			assert_true(
				m.got[i] == (seed % 2 == 0 ? UINT32_MAX : ~(uint64_t)UINT32_MAX));
	}
}

/* The one that stands out is each lane's in turn. */
static void a_group_finds_the_one_that_stands_out(void **state)
{
	static struct {
		struct simt_sum a;
		uint64_t given[SIMT_WARP], got[3 * SIMT_WARP];
	} m __attribute__((aligned(64)));

	(void)state;
	for (uint32_t at = 0; at < 2 * SIMT_WARP; at++) {
		uint32_t high = at < SIMT_WARP;

		m.a = (struct simt_sum){m.given, m.got};
		for (uint32_t i = 0; i < SIMT_WARP; i++)
			m.given[i] = high ? 4 : UINT64_MAX - 4;
		m.given[at % SIMT_WARP] = high ? (uint64_t)1 << 63 : 4;
		simt_memory_init(&m, sizeof(m));
		assert_null(run_helper(simt_entry_group_others, &m.a, at));
		for (uint32_t i = 0; i < SIMT_WARP; i++) {
			assert_true(m.got[i] == (high ? (uint64_t)1 << 63 : UINT64_MAX - 4));
			assert_true(m.got[SIMT_WARP + i] == 4);
			assert_true(m.got[2 * SIMT_WARP + i] ==
				(high ? ((uint64_t)1 << 63 | 4) : UINT64_MAX));
		}
	}
}

static void a_warp_sees_what_one_wrote_before_it_met(void **state)
{
	static struct {
		struct simt_sum a;
		uint64_t given[SIMT_WARP], got[SIMT_WARP];
	} m __attribute__((aligned(64)));

	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++) {
		memset(&m, 0, sizeof(m));
		m.a = (struct simt_sum){m.given, m.got};
		simt_memory_init(&m, sizeof(m));
		assert_null(run_helper(simt_entry_warp_sync, &m.a, seed));
		for (uint32_t i = 0; i < SIMT_WARP; i++)
			assert_int_equal(m.got[i], 7);
	}
}

/* As many lanes of two blocks pass as a burst has, whoever asks first. */
static void a_limit_lets_its_burst_through_and_no_more(void **state)
{
	static struct {
		struct simt_limit a;
		uint64_t word;
		uint32_t passes[2 * SIMT_WARP];
	} m __attribute__((aligned(64)));

	(void)state;
	for (uint64_t seed = 0; seed < 24; seed++) {
		const uint32_t burst = 1 + (uint32_t)seed % 12 * 6;
		uint32_t passed = 0;

		memset(&m, 0, sizeof(m));
		m.a = (struct simt_limit){&m.word, m.passes, 1000000, 100, burst};
		simt_memory_init(&m, sizeof(m));
		assert_null(simt_run(&(struct simt_grid){.entry = simt_entry_limit,
			.argument = &m.a,
			.blocks = 2,
			.threads = SIMT_WARP,
			.seed = seed,
			.turns_max = TURNS}));
		for (uint32_t i = 0; i < MR_ARRAY_LEN(m.passes); i++)
			passed += m.passes[i];
		assert_int_equal(passed, burst);
	}
}

/* NVIDIA/l2fwd-nv src/kernel.cu:35: packets beyond the threads of a block pass unprocessed. */
static void every_stage_alone_does_on_lanes_what_it_does_on_the_host(void **state)
{
	(void)state;
	for (uint32_t i = 0; mr_stage_at(i) != NULL; i++)
		for (uint32_t k = 0; k < 6; k++) {
			const struct mr_stage_desc *stage = mr_stage_at(i);

			if (!runs_in(stage, shapes[k].work))
				continue;
			for (uint64_t seed = 0; seed < 2; seed++) {
				struct mr_lane_dev lane;

				drawn = seed * 100 + i * 10 + k;
				lane = make_chain(shapes[k].work, 1, stage);
				lane.tx_region = seed;
				compare(&lane, &shapes[k], seed);
			}
		}
}

/* What one stage writes, the next one's lanes read, and the other way round. */
static void every_two_stages_are_ordered_between_lanes(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < MR_STAGE_COUNT * MR_STAGE_COUNT; i++) {
		const struct mr_stage_desc *one = mr_stage_at(i / MR_STAGE_COUNT);
		const struct mr_stage_desc *two = mr_stage_at(i % MR_STAGE_COUNT);
		const struct shape warps = {MR_WORK_WARP, 1, 64}, order = {MR_WORK_ORDER, 1, 32};
		struct mr_lane_dev lane = {0};
		uint32_t base = 0;

		drawn = i;
		add_stage(&lane, one, &base);
		add_stage(&lane, two, &base);
		if (runs_in(one, warps.work) && runs_in(two, warps.work))
			compare(&lane, &warps, i);
		compare(&lane, &order, i);
	}
}

static void chains_do_on_lanes_what_they_do_on_the_host(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 21; seed++) {
		const struct shape *s = &shapes[seed % MR_ARRAY_LEN(shapes)];
		struct mr_lane_dev lane;

		drawn = seed;
		lane = make_chain(s->work, draw(MR_CHAIN_MAX + 1), NULL);
		compare(&lane, s, seed);
	}
}

static void workers_leave_by_themselves_when_the_host_is_silent(void **state)
{
	struct mr_lane_dev lane = {0};

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		prepare(&lane, shapes[i].blocks, SIMT_CAPTURE_NONE, &by_lanes);
		host.silent = true;
		arena.launch.host_timeout_ns = 200000;
		arena.launch.backoff_ns = 5000;
		simt_memory_init(&arena, sizeof(arena));
		assert_null(simt_run(&(struct simt_grid){
			.entry = entries[shapes[i].work],
			.argument = &arena.launch,
			.blocks = shapes[i].blocks,
			.threads = shapes[i].threads,
			.seed = i,
			.turns_max = TURNS,
			.host = simt_host_step,
			.host_argument = &host,
		}));
		assert_int_equal(by_lanes.left, MR_LEFT_HOST_SILENT);
		/* Many sleeps, so one came near to the longest that it can be. */
		assert_in_range(simt_longest_nap_ns(), 4000, 5000);
	}
}

static int mutant;

int simt_mutated(int number)
{
	return number == mutant;
}

/* With --mutant N (mutate.py) the tests end with the first that fails: it is found by then. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_view_is_shared_whole),
		cmocka_unit_test(a_group_sum_is_of_all_and_in_all),
		cmocka_unit_test(a_group_finds_the_one_that_stands_out),
		cmocka_unit_test(a_warp_sees_what_one_wrote_before_it_met),
		cmocka_unit_test(a_limit_lets_its_burst_through_and_no_more),
		cmocka_unit_test(every_stage_alone_does_on_lanes_what_it_does_on_the_host),
		cmocka_unit_test(every_two_stages_are_ordered_between_lanes),
		cmocka_unit_test(chains_do_on_lanes_what_they_do_on_the_host),
		cmocka_unit_test(workers_leave_by_themselves_when_the_host_is_silent),
		cmocka_unit_test(every_fault_of_lanes_is_found),
	};

	if (argc < 3 || strcmp(argv[1], "--mutant") != 0)
		return cmocka_run_group_tests(tests, NULL, NULL);
	mutant = atoi(argv[2]);
	for (size_t i = 0; i < MR_ARRAY_LEN(tests); i++)
		if (_cmocka_run_group_tests(tests[i].name, &tests[i], 1, NULL, NULL) != 0)
			return 1;
	return 0;
}
