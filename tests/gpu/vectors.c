/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every stage on a device against the same stage on the software device.
 *
 *     vectors DEVICE [--slots N] [--seed N] [--plant] [--patience N]
 *
 * The same random and hostile slots go through both: frames of every small length
 * and of large ones, lengths and heads that leave the buffer, positions that leave
 * the region, half of them with headers that the tables of the stages know. Results, packet
 * memory and counters must be the same to the byte. Behind them the limit of ICMP errors, which
 * goes by the clock, is held to its burst. With --plant one answer of the device is falsified,
 * so that the comparison must fail. With --patience the device may take N times as long.
 */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 4u
#define BATCH 64u
#define ROOM 2048u
#define HEAD 128u

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % below;
}

static uint32_t draw_length(void)
{
	switch (draw(4)) {
	case 0:
		return draw(80);
	case 1:
		return ROOM - HEAD - draw(4);
	default:
		return 14 + draw(1500);
	}
}

/* One packet of ten has a descriptor that no lane would write. */
static struct mr_desc_in draw_descriptor(uint32_t buffer)
{
	struct mr_desc_in d = {.position = buffer * (ROOM / MR_UNIT),
		.length = (uint16_t)draw_length(),
		.head = HEAD};

	switch (draw(30)) {
	case 0:
		d.length = (uint16_t)draw(65536);
		break;
	case 1:
		d.head = (uint16_t)draw(65536);
		break;
	case 2:
		d.position = (uint32_t)(state & UINT32_MAX);
		break;
	}
	return d;
}

static void put(uint8_t *at, uint32_t bytes, uint64_t x)
{
	for (uint32_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(x >> 8 * (bytes - 1 - i));
}

/* Of an IPv4 header without options. */
static void put_checksum(uint8_t *ip)
{
	uint32_t sum = 0;

	put(ip + 10, 2, 0);
	for (uint32_t i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put(ip + 10, 2, ~((sum & 0xffff) + (sum >> 16)));
}

/* Ethernet to a router, up to two tags, IPv4 or IPv6 from and to one of few, UDP, TCP or ICMP. */
static void put_headers(uint8_t *f, uint32_t length, uint32_t ttl)
{
	static const uint8_t protocols[] = {17, 6, 1, 58};
	uint32_t at = 14, protocol = protocols[draw(4)];

	put(f, 6, 0x024d52000001);
	put(f + 6, 6, 0x020000000099);
	for (uint32_t tags = draw(3); tags > 0; tags--, at += 4)
		put(f + at - 2, 2, 0x8100);
	if (draw(2) == 0) {
		put(f + at - 2, 2, 0x0800);
		put(f + at, 4, 0x45000000 | (uint16_t)(length - at));
		put(f + at + 6, 4, ttl << 8 | protocol);
		/* From this machine itself now and then, which no router forwards. */
		put(f + at + 12, 4, (draw(16) == 0 ? 0x7f000000 : 0x0a000000) | draw(4));
		put(f + at + 16, 4, 0x0a000000 | draw(8) << 8 | draw(4));
		put_checksum(f + at);
		at += 20;
	} else {
		put(f + at - 2, 2, 0x86dd);
		put(f + at, 4, 0x60000000);
		put(f + at + 4, 4,
			(uint32_t)(uint16_t)(length - at - 40) << 16 | protocol << 8 | ttl);
		put(f + at + 8, 8, 0xfd00000000000000);
		put(f + at + 16, 8, draw(4));
		put(f + at + 24, 8, 0xfd00000000000000 | (uint64_t)draw(8) << 48);
		put(f + at + 32, 8, draw(4));
		at += 40;
	}
	put(f + at, 4, draw(3) << 16 | draw(3));
	put(f + at + 4, 2, length - at);
	put(f + at + 12, 1, 0x50);
}

/* What the tables of the stages know of these. */
static const char filter_text[] = "count src 10.0.0.1\ndeny proto icmp dst 10.0.1.0/24\n"
				  "permit proto udp dst_port 0-1\ndeny dst fd01::/16 src_port 2\n"
				  "permit dst fd02::/15\ncount proto 0-60\n"
				  "permit src 10.0.0.2/31\n";
static const char route_text[] = "10.0.0.0/22 via 02:00:00:00:00:01 port 0\n10.0.2.0/24 pass\n"
				 "10.0.3.1 via 02:00:00:00:00:02 port 0\n10.0.5.0/24 drop\n"
				 "fd00::/14 via 02:00:00:00:00:03 port 0\nfd02::/16 pass\n"
				 "fd05::2 drop\n";
static const char seqtrack_text[] = "custom udp 1 id 0:1 shift 6 bits 2 seq 1:1 units 1\n"
				    "custom udp 2 id 0:1 shift 7 bits 1 seq 1:1 shift 2 bits 6\n";
static const struct rig_param seqtrack_param[] = {{"streams", "8"}, {"events", "16"},
	{"templates", "16"}, {"window", "8"}, {"result_dst", "10.0.0.9"},
	{"result_src", "10.0.0.8"}, {NULL, NULL}};
static const char unpack_text[] = "custom udp 1 id 0:1 shift 6 bits 2 seq 1:1 payload 2\n"
				  "custom udp 2 seq 1:1 shift 2 bits 6 time 2:1 1ms\n";
static const struct rig_param unpack_param[] = {{"streams", "8"}, {"results", "4"}, {"bits", "12"},
	{"channels", "2"}, {"window_units", "4"}, {"window_us", "40000"}, {"forward", "false"},
	{"result_dst", "10.0.0.9"}, {"result_src", "10.0.0.8"}, {NULL, NULL}};
static const struct rig_param route_param[] = {
	{"addresses", "10.0.0.99,fd00::99"}, {"errors_per_second", "0"}, {NULL, NULL}};
static const struct rig_param limited_param[] = {{"addresses", "10.0.0.99,fd00::99"},
	{"errors_per_second", "1"}, {"errors_burst", "100"}, {NULL, NULL}};

static void fill(struct rig *r[2], uint32_t slot, struct mr_desc_in *d)
{
	static uint8_t frame[ROOM];

	for (uint32_t i = 0; i < BATCH; i++) {
		uint32_t buffer = slot % SLOTS * BATCH + i;

		for (uint32_t k = 0; k < ROOM; k += 8) {
			(void)draw(2);
			memcpy(frame + k, &state, 8);
		}
		d[i] = draw_descriptor(buffer);
		if (draw(2) == 0)
			put_headers(frame + HEAD, d[i].length, draw(4) == 0 ? 1 : 64);
		for (uint32_t k = 0; k < 2; k++)
			rig_write(r[k], buffer, 0, frame, ROOM);
	}
}

static const struct mr_desc_out *answer(struct rig *r)
{
	const uint64_t began = mr_clock_ns();
	const struct mr_slot_out *out;

	while ((out = mr_ring_take(&r->ring)) == NULL)
		if (mr_clock_ns() - began > rig_patience * 20000000000ull)
			rig_die("device '%s': a slot did not come back", r->d->name);
	return mr_slot_desc_out(out);
}

static uint32_t compare(struct rig *r[2], uint32_t slot, const struct mr_desc_in *d, bool plant)
{
	const struct mr_desc_out *out[2] = {answer(r[0]), answer(r[1])};
	static uint8_t bytes[2][ROOM];

	for (uint32_t i = 0; i < BATCH; i++) {
		uint32_t buffer = slot % SLOTS * BATCH + i;

		for (uint32_t k = 0; k < 2; k++)
			rig_read(r[k], buffer, 0, bytes[k], ROOM);
		if (plant && slot == 0 && i == 7)
			bytes[0][HEAD + 3] ^= 1;
		if (memcmp(&out[0][i], &out[1][i], sizeof(out[0][i])) == 0 &&
			memcmp(bytes[0], bytes[1], ROOM) == 0)
			continue;
		printf("slot %u packet %u (position %u length %u head %u) differs: verdict %u/%u "
		       "length %u/%u arg %u/%u\n",
			slot, i, d[i].position, d[i].length, d[i].head, out[0][i].verdict,
			out[1][i].verdict, out[0][i].length, out[1][i].length, out[0][i].arg,
			out[1][i].arg);
		return 1;
	}
	for (uint32_t k = 0; k < 2; k++)
		mr_ring_release(&r[k]->ring);
	return 0;
}

/* Over all workers. */
static uint64_t counted(const struct rig *r, uint32_t counter)
{
	uint64_t sum = 0;

	for (uint32_t w = 0; w < r->plan.workers; w++)
		sum += r->counters[w * MR_COUNTERS_MAX + counter];
	return sum;
}

/* By its name; the stage is the first of the chain. */
static uint64_t counted_by(const struct rig *r, const struct mr_stage_desc *stage, const char *name)
{
	uint32_t i = 0;

	while (strcmp(stage->counters[i].name, name) != 0)
		i++;
	return counted(r, i);
}

/*
 * The most that drawn frames can do to a stage with a table is to make all its counters rise, but
 * for one; of a stage with streams, which have many that are rare, those of its way to a result.
 */
static uint32_t check_reach(struct rig *r, const struct mr_stage_desc *stage)
{
	uint32_t rose = 0;

	if (stage->ticks) {
		if (counted_by(r, stage, "placed") != 0 && counted_by(r, stage, "results") != 0)
			return 0;
		printf("%s: nothing was placed, or nothing told\n", stage->name);
		return 1;
	}
	for (uint32_t c = 0; c < stage->counters_count; c++)
		rose += counted(r, c) != 0;
	if (stage->table == NULL || rose + 1 >= stage->counters_count)
		return 0;
	printf("%s: only %u of %u counters rose\n", stage->name, rose, stage->counters_count);
	return 1;
}

static uint32_t compare_counters(struct rig *r[2], const char *chain)
{
	for (uint32_t c = 0; c < MR_COUNTERS_MAX; c++) {
		const uint64_t sum[2] = {counted(r[0], c), counted(r[1], c)};

		if (sum[0] == sum[1])
			continue;
		printf("%s: counter %u is %llu, should be %llu\n", chain, c,
			(unsigned long long)sum[0], (unsigned long long)sum[1]);
		return 1;
	}
	return 0;
}

static uint32_t run(struct rig_device d[2], const struct rig_plan *plan, const char *chain,
	uint32_t slots, bool plant)
{
	struct rig rig[2], *r[2] = {&rig[0], &rig[1]};
	uint32_t wrong = 0, ticks;

	for (uint32_t k = 0; k < 2; k++) {
		rig_make(&d[k], plan, r[k]);
		rig_start(r[k]);
	}
	for (uint32_t s = 0; s < slots && wrong == 0; s++) {
		struct mr_desc_in in[BATCH];

		fill(r, s, in);
		/* Blank buffers now and then, and those of the end. */
		ticks = r[0]->threads != 32 || (s % 4 != 3 && s + 2 < slots) ? 0
			: s + 2 < slots                                      ? MR_SLOT_TICK
					: MR_SLOT_TICK | MR_SLOT_LAST;
		for (uint32_t i = 0; ticks != 0 && i < BATCH; i++) {
			in[i].length = 0;
			in[i].head = HEAD;
		}
		for (uint32_t k = 0; k < 2; k++) {
			mr_ring_in(&r[k]->ring, r[k]->ring.head)->flags = (uint8_t)ticks;
			memcpy(mr_slot_desc_in(mr_ring_in(&r[k]->ring, r[k]->ring.head)), in,
				sizeof(in));
			mr_ring_give(&r[k]->ring, BATCH, 0);
		}
		wrong = compare(r, s, in, plant);
	}
	for (uint32_t k = 0; k < 2; k++)
		rig_stop(r[k]);
	if (wrong == 0)
		wrong = compare_counters(r, chain);
	if (wrong == 0 && slots > 8)
		wrong = check_reach(r[0], mr_stage_at((uint32_t)plan->chain[0]));
	for (uint32_t k = 0; k < 2; k++)
		rig_free(r[k]);
	printf("%-24s %s memory, %u workers: %s\n", chain, plan->host ? "host" : "device",
		plan->workers, wrong == 0 ? "same" : "DIFFERENT");
	return wrong;
}

/* All slots at once, of packets that all want an ICMP error. */
static void run_limit(struct rig *r)
{
	uint8_t frame[100];

	for (uint32_t i = 0; i < SLOTS * BATCH; i++) {
		/* UDP to an address without a route; back there is one. */
		do
			put_headers(frame, sizeof(frame), 64);
		while (frame[12] != 0x08 || frame[23] != 17 || frame[26] != 10 || frame[32] < 6);
		rig_write(r, i, HEAD, frame, sizeof(frame));
	}
	rig_start(r);
	for (uint32_t s = 0; s < SLOTS; s++) {
		struct mr_desc_in *in = mr_slot_desc_in(mr_ring_in(&r->ring, r->ring.head));

		for (uint32_t i = 0; i < BATCH; i++)
			in[i] = (struct mr_desc_in){
				(s * BATCH + i) * (ROOM / MR_UNIT), sizeof(frame), HEAD};
		mr_ring_give(&r->ring, BATCH, 0);
	}
	for (uint32_t s = 0; s < SLOTS; s++) {
		(void)answer(r);
		mr_ring_release(&r->ring);
	}
	rig_stop(r);
}

/* The burst passes, and what its rate brings meanwhile; the rest is counted. */
static uint32_t limit(struct rig_device *d)
{
	static const enum mr_stage_id chain[] = {MR_STAGE_route};
	const struct rig_plan plan = {.slots = SLOTS,
		.batch = BATCH,
		.workers = 3,
		.buffers = SLOTS * BATCH,
		.room = ROOM,
		.chain = chain,
		.chain_len = 1,
		.table = {[MR_STAGE_route] = route_text},
		.param = {[MR_STAGE_route] = limited_param}};
	const uint64_t began = mr_clock_ns();
	uint64_t answered, limited, most;
	struct rig r;
	bool right;

	rig_make(d, &plan, &r);
	run_limit(&r);
	answered = counted_by(&r, mr_stage_at(MR_STAGE_route), "answered");
	limited = counted_by(&r, mr_stage_at(MR_STAGE_route), "limited");
	rig_free(&r);
	most = 101 + (mr_clock_ns() - began) / 1000000000u;
	right = answered >= 100 && answered <= most && answered + limited == SLOTS * BATCH;
	printf("%-24s %llu of %u answered, %llu held back: %s\n", "limit of route",
		(unsigned long long)answered, SLOTS * BATCH, (unsigned long long)limited,
		right ? "right" : "WRONG");
	return !right;
}

int main(int argc, char **argv)
{
	uint32_t slots = 64, wrong = 0;
	bool plant = false;
	struct rig_device d[2];

	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--plant") == 0)
			plant = true;
		else if (strcmp(argv[i], "--slots") == 0 && i + 1 < argc)
			slots = (uint32_t)atoi(argv[++i]);
		else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
			state = (uint64_t)atoll(argv[++i]) | 1;
		else if (strcmp(argv[i], "--patience") == 0 && i + 1 < argc)
			rig_patience = (uint32_t)atoi(argv[++i]);
		else
			argc = 0;
	}
	if (argc < 2)
		rig_die("usage: vectors DEVICE [--slots N] [--seed N] [--plant] [--patience N]");
	rig_open(argv[1], &d[0]);
	rig_open("sim,mem=64MiB", &d[1]);
	for (uint32_t i = 0; i < MR_STAGE_COUNT; i++)
		for (uint32_t k = 0; k < 4; k++) {
			enum mr_stage_id chain[] = {(enum mr_stage_id)i, MR_STAGE_l2swap};
			struct rig_plan plan = {.slots = SLOTS,
				.batch = BATCH,
				.workers = k < 2 || mr_stage_at(i)->ticks ? 1 : 3,
				.buffers = SLOTS * BATCH,
				.room = ROOM,
				.host = k % 2 != 0,
				.chain = chain,
				.chain_len = k < 2 ? 1 : 2,
				.table = {[MR_STAGE_filter] = filter_text,
					[MR_STAGE_route] = route_text,
					[MR_STAGE_seqtrack] = seqtrack_text,
					[MR_STAGE_unpack] = unpack_text},
				.param = {[MR_STAGE_route] = route_param,
					[MR_STAGE_seqtrack] = seqtrack_param,
					[MR_STAGE_unpack] = unpack_param}};
			char name[64];

			snprintf(name, sizeof(name), "%s%s", mr_stage_at(i)->name,
				k < 2 ? "" : ", l2swap");
			wrong += run(d, &plan, name, slots, plant);
		}
	wrong += limit(&d[0]);
	return wrong == 0 ? 0 : 1;
}
