/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that one core carries through a stage, by its own processor time.
 *
 *     bench_stage [--quick]
 *
 * The host form of the kernel, one worker, over slots of 64 frames of 64 bytes that lie in
 * memory, without lane and NIC; beside it a plain loop in C that does the same to the same
 * frames with DPDK's tables, and the lookups alone. Every figure is the best of five, since
 * what else the machine does only takes away. Tables: 100,000 routes of 12 to 24 bits and a
 * default route; 1,000 rules of addresses, protocol and ports. Streams: 64, of a format that a
 * table describes, whose packets come in turn and in order; each round begins anew.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_acl.h>
#include <rte_eal.h>
#include <rte_lpm.h>

#include "bench_worker.h"
#include "mr_filter.h"
#include "mr_route.h"

#define FRAMES 4096u
#define BATCH 64u
#define ROOM 256u
#define HEAD 128u
#define LENGTH 64u
#define ROUTES 100000u
#define RULES 1000u
#define BEST_OF 5u
#define STREAMS 64u

static uint64_t drawn = 1;
static uint8_t region[FRAMES * ROOM] __attribute__((aligned(64)));
static uint8_t fresh[sizeof(region)];
static struct rte_lpm *lpm;
static struct rte_acl_ctx *acl;
static uint32_t rounds = 40;

static uint32_t draw(uint32_t below)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(drawn >> 33) % below;
}

static void die(const char *what)
{
	fprintf(stderr, "bench_stage: %s\n", what);
	exit(1);
}

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void put(uint8_t *at, uint32_t bytes, uint64_t x)
{
	for (uint32_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(x >> 8 * (bytes - 1 - i));
}

static uint32_t get(const uint8_t *at, uint32_t bytes)
{
	uint32_t x = 0;

	for (uint32_t i = 0; i < bytes; i++)
		x = x << 8 | at[i];
	return x;
}

static uint32_t fold(uint32_t s)
{
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

static void make_frames(void)
{
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint8_t *f = fresh + i * ROOM + HEAD, *ip = f + 14;
		uint32_t s = 0;

		put(f, 6, 0x024d52000001);
		put(f + 6, 6, 0x020000000099);
		put(f + 12, 2, 0x0800);
		put(ip, 4, 0x45000000 | (LENGTH - 14));
		put(ip + 8, 2, 64 << 8 | 17);
		put(ip + 12, 4, 0x0a000000 | draw(1u << 16));
		/* Of what a router forwards: no loopback, multicast or nothing. */
		put(ip + 16, 4, (0x1000 + draw(0x6f00)) << 16 | draw(1u << 16));
		for (uint32_t k = 0; k < 20; k += 2)
			s += get(ip + k, 2);
		put(ip + 10, 2, ~fold(s));
		put(ip + 20, 2, draw(65536));
		put(ip + 22, 2, 1 + draw(1023));
		put(ip + 24, 2, LENGTH - 34);
		put(ip + 28, 4, i % STREAMS);
		put(ip + 32, 4, i / STREAMS);
	}
}

static void *build(enum mr_stage_id id, const uint8_t params[MR_PARAM_BYTES], char *text)
{
	const struct mr_stage_desc *stage = mr_stage_at(id);
	struct mr_table_errors errors = {0};
	struct mr_table_text t = {.at = text, .errors = &errors};
	void *table = aligned_alloc(64, MR_ALIGN_UP(stage->table->bytes(params), 64));
	size_t bytes;

	if (table == NULL || stage->table->build(&t, params, NULL, table, &bytes) != 0 ||
		errors.count > 0)
		die(errors.count > 0 ? errors.e[0].message : "no memory for a table");
	return table;
}

static void set(enum mr_stage_id id, const char *name, uint32_t value, uint8_t *params)
{
	char text[16];
	struct mr_err err;

	snprintf(text, sizeof(text), "%u", value);
	if (mr_stage_param_set(mr_stage_at(id), name, text, NULL, params, &err) != 0)
		die(err.msg);
}

/* Both tables of routes; returns the stage's. */
static void *make_routes(uint8_t params[MR_PARAM_BYTES])
{
	struct rte_lpm_config config = {.max_rules = ROUTES + 16, .number_tbl8s = 256};
	char *text = malloc((ROUTES + 1) * 64), *at = text;
	void *table;

	lpm = rte_lpm_create("bench", SOCKET_ID_ANY, &config);
	if (lpm == NULL || text == NULL)
		die("rte_lpm");
	set(MR_STAGE_route, "routes_max", ROUTES + 1, params);
	at += sprintf(at, "0.0.0.0/0 via 02:00:00:00:00:01 port 0\n");
	for (uint32_t i = 0; i < ROUTES;) {
		uint32_t bits = 12 + draw(13), hop;
		uint32_t ip = (draw(1u << 16) << 16 | draw(1u << 16)) & mr_ip_mask(bits);

		if (rte_lpm_is_rule_present(lpm, ip, (uint8_t)bits, &hop) == 1)
			continue;
		if (rte_lpm_add(lpm, ip, (uint8_t)bits, i % 64) != 0)
			die("rte_lpm_add");
		at += sprintf(at, "%u.%u.%u.%u/%u via 02:00:00:00:01:%02x port 0\n", ip >> 24,
			ip >> 16 & 255, ip >> 8 & 255, ip & 255, bits, i++ % 64);
	}
	table = build(MR_STAGE_route, params, text);
	free(text);
	return table;
}

static const struct rte_acl_field_def acl_fields[5] = {
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, 0, 0, 0},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 1, 1, 4},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 2, 2, 8},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, 3, 3, 12},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, 4, 3, 14},
};
RTE_ACL_RULE_DEF(acl_rule, 5);

/* Both tables of rules, the last of which permits all; returns the stage's. */
static void *make_rules(uint8_t params[MR_PARAM_BYTES])
{
	struct rte_acl_param param = {.name = "bench",
		.socket_id = SOCKET_ID_ANY,
		.rule_size = RTE_ACL_RULE_SZ(5),
		.max_rule_num = RULES};
	struct rte_acl_config config = {.num_categories = 1, .num_fields = 5};
	char *text = malloc(RULES * 128), *at = text;
	void *table;

	acl = rte_acl_create(&param);
	if (acl == NULL || text == NULL)
		die("rte_acl");
	memcpy(config.defs, acl_fields, sizeof(acl_fields));
	for (uint32_t i = 0; i < RULES; i++) {
		uint32_t last = i + 1 == RULES, src = 0x0a000000 | draw(1u << 16),
			 port = draw(1024);
		struct acl_rule r = {.data = {.category_mask = 1,
					     .priority = (int32_t)(RTE_ACL_MAX_PRIORITY - i),
					     .userdata = i + 1}};

		src &= mr_ip_mask(24);
		r.field[0].value.u8 = last ? 0 : 17;
		r.field[0].mask_range.u8 = last ? 0 : 0xff;
		r.field[1].value.u32 = last ? 0 : src;
		r.field[1].mask_range.u32 = last ? 0 : 24;
		r.field[3].mask_range.u16 = 65535;
		r.field[4].value.u16 = last ? 0 : (uint16_t)port;
		r.field[4].mask_range.u16 = last ? 65535 : (uint16_t)(port + 15);
		if (rte_acl_add_rules(acl, (struct rte_acl_rule *)&r, 1) != 0)
			die("rte_acl_add_rules");
		if (last)
			at += sprintf(at, "permit\n");
		else
			at += sprintf(at, "permit proto udp src %u.%u.%u.0/24 dst_port %u-%u\n",
				src >> 24, src >> 16 & 255, src >> 8 & 255, port, port + 15);
	}
	if (rte_acl_build(acl, &config) != 0)
		die("rte_acl_build");
	table = build(MR_STAGE_filter, params, text);
	free(text);
	return table;
}

/* The kernel's side: a ring that holds all frames, given anew for each round. */
struct side {
	struct mr_ring ring;
	struct bench_worker worker;
};

static void make_side(struct side *w)
{
	static uint8_t in[FRAMES / BATCH * MR_SLOT_BYTES(BATCH)] __attribute__((aligned(64)));
	static uint8_t out[sizeof(in)] __attribute__((aligned(64)));
	struct mr_err err;

	memset(w, 0, sizeof(*w));
	if (mr_ring_init(&w->ring, in, NULL, out, FRAMES / BATCH, BATCH, 0, &err) != 0)
		die(err.msg);
	bench_worker_init(&w->worker, &w->ring, region, sizeof(region), ROOM);
}

static void give_all(struct side *w)
{
	w->worker.lane.first_seq = w->ring.head;
	for (uint32_t s = 0; s < FRAMES / BATCH; s++) {
		struct mr_desc_in *d = mr_slot_desc_in(mr_ring_in(&w->ring, w->ring.head));

		for (uint32_t i = 0; i < BATCH; i++)
			d[i] = (struct mr_desc_in){.position = (s * BATCH + i) * ROOM / MR_UNIT,
				.length = LENGTH,
				.head = HEAD};
		mr_ring_give(&w->ring, BATCH, 0);
	}
}

static void take_all(struct side *w)
{
	for (uint32_t s = 0; s < FRAMES / BATCH; s++) {
		const struct mr_slot_out *o = mr_ring_take(&w->ring);

		if (o == NULL || mr_slot_desc_out(o)[0].verdict != MR_TX)
			die("a slot did not come back as it should");
		mr_ring_release(&w->ring);
	}
}

/* A round over all frames; the time of it alone counts. */
typedef void round_fn(struct side *w);

static void round_kernel(struct side *w)
{
	bench_worker_run(&w->worker);
}

/* What a plain router does: address, version, checksum, prefix, TTL, addresses. */
static void round_loop(struct side *w)
{
	(void)w;
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint8_t *f = region + i * ROOM + HEAD, *ip = f + 14;
		uint32_t s = 0, hop;

		if (get(f, 2) != 0x024d || get(f + 2, 4) != 0x52000001 || get(f + 12, 2) != 0x800 ||
			ip[0] != 0x45 || get(ip + 2, 2) > LENGTH - 14 || ip[8] < 2)
			continue;
		for (uint32_t k = 0; k < 20; k += 2)
			s += get(ip + k, 2);
		if (fold(s) != 0xffff || rte_lpm_lookup(lpm, get(ip + 16, 4), &hop) != 0)
			continue;
		put(ip + 10, 2, fold(get(ip + 10, 2) + 0x100));
		ip[8]--;
		put(f, 6, 0x020000000100 | hop);
		put(f + 6, 6, 0x024d52000001);
	}
}

static const void *route_table, *filter_table;
static uint64_t sink; /* what is looked up is looked up */

static void round_find(struct side *w)
{
	uint64_t s = 0;

	(void)w;
	for (uint32_t i = 0; i < FRAMES; i++) {
		struct mr_ip ip = {4, {get(region + i * ROOM + HEAD + 30, 4)}};

		s += mr_route_find(route_table, &ip)->port;
	}
	mr_store_relaxed_u64(&sink, s);
}

static void round_lpm(struct side *w)
{
	uint64_t s = 0;

	(void)w;
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint32_t hop;

		if (rte_lpm_lookup(lpm, get(region + i * ROOM + HEAD + 30, 4), &hop) == 0)
			s += hop;
	}
	mr_store_relaxed_u64(&sink, s);
}

static void round_filter(struct side *w)
{
	uint64_t s = 0;

	(void)w;
	for (uint32_t i = 0; i < FRAMES; i++) {
		struct mr_view v = {.frame = region + i * ROOM + HEAD, .length = LENGTH};
		struct mr_headers h = {
			.has = MR_HAS_IPV4 | MR_HAS_UDP, .l3 = 14, .l4 = 34, .protocol = 17};
		uint32_t counted;

		s += mr_filter_find(filter_table, &v, &h, &counted);
	}
	mr_store_relaxed_u64(&sink, s);
}

/* 32 at a time, as applications do; the keys are gathered as they would be. */
static void round_acl(struct side *w)
{
	uint64_t s = 0;

	(void)w;
	for (uint32_t i = 0; i < FRAMES; i += 32) {
		uint8_t keys[32][16];
		const uint8_t *data[32];
		uint32_t result[32];

		for (uint32_t k = 0; k < 32; k++) {
			const uint8_t *ip = region + (i + k) * ROOM + HEAD + 14;

			keys[k][0] = ip[9];
			memcpy(keys[k] + 4, ip + 12, 12);
			data[k] = keys[k];
		}
		if (rte_acl_classify(acl, data, result, 32, 1) != 0)
			die("rte_acl_classify");
		s += result[0];
	}
	mr_store_relaxed_u64(&sink, s);
}

/* What a plain program does: find the stream by its number, and see that none is missing. */
static uint32_t expected[STREAMS];

static void round_plain_streams(struct side *w)
{
	uint64_t missing = 0;

	(void)w;
	for (uint32_t i = 0; i < FRAMES; i++) {
		const uint8_t *udp = region + i * ROOM + HEAD + 34;
		uint32_t id = get(udp + 8, 4), seq = get(udp + 12, 4);

		if (get(udp, 2) == 0 || id >= STREAMS)
			continue;
		missing += seq - expected[id];
		expected[id] = seq + 1;
	}
	mr_store_relaxed_u64(&sink, missing);
}

static void *state;
static size_t state_bytes;

static void begin_anew(void)
{
	memcpy(region, fresh, sizeof(region));
	memset(expected, 0, sizeof(expected));
	if (state != NULL)
		memset(state, 0, state_bytes);
}

static void measure(const char *what, struct side *w, round_fn *round, bool kernel)
{
	double best = 0;

	for (uint32_t k = 0; k < BEST_OF; k++) {
		double took = 0;

		for (uint32_t i = 0; i < rounds; i++) {
			double began;

			begin_anew();
			if (kernel)
				give_all(w);
			began = cpu_s();
			round(w);
			took += cpu_s() - began;
			if (kernel)
				take_all(w);
		}
		if (FRAMES * rounds / took > best)
			best = FRAMES * rounds / took;
	}
	printf("%-44s %8.2f M packets/CPU-s\n", what, best / 1e6);
}

static void measure_stage(struct side *w, enum mr_stage_id id, const void *table,
	const uint8_t params[MR_PARAM_BYTES], const char *what)
{
	w->worker.lane.chain_len = 1;
	w->worker.lane.chain[0].stage = (uint16_t)id;
	w->worker.lane.chain[0].table[0] = bench_address(table);
	memcpy(w->worker.lane.chain[0].params[0], params, MR_PARAM_BYTES);
	measure(what, w, round_kernel, true);
}

/* A stage that keeps streams, by the kernel that keeps order, and what a plain program does. */
static void measure_streams(struct side *w, enum mr_stage_id id,
	const uint8_t params[MR_PARAM_BYTES], char *formats, const char *const what[2],
	round_fn *plain)
{
	const struct mr_stage_desc *stage = mr_stage_at(id);
	void *table = build(id, params, formats);

	state_bytes = mr_stage_lane_bytes(stage, params);
	state = aligned_alloc(64, MR_ALIGN_UP(state_bytes, 64));
	if (state == NULL)
		die("no memory for streams");
	w->worker.lane.chain[0].state = bench_address(state);
	w->worker.work = stage->work;
	memset(w->worker.counters, 0, sizeof(w->worker.counters));
	measure_stage(w, id, table, params, what[0]);
	if (w->worker.counters[1][1] != (uint64_t)FRAMES * rounds * BEST_OF)
		die("a stage did not place every packet");
	measure(what[1], w, plain, false);
	free(state);
	free(table);
}

static void measure_seqtrack(struct side *w)
{
	static uint8_t params[MR_PARAM_BYTES] __attribute__((aligned(8)));
	static const char *const what[] = {"seqtrack, kernel", "seqtrack, plain loop"};
	char formats[] = "custom udp 1-65535 id 0:4 seq 4:4";

	/* One sender; its checksum is nobody's matter here. */
	for (uint32_t i = 0; i < FRAMES; i++) {
		put(fresh + i * ROOM + HEAD + 26, 4, 0x0a000001);
		put(fresh + i * ROOM + HEAD + 34, 4, 1000 << 16 | 9000);
	}
	mr_stage_param_defaults(mr_stage_at(MR_STAGE_seqtrack), params);
	set(MR_STAGE_seqtrack, "streams", STREAMS, params);
	set(MR_STAGE_seqtrack, "events", 16, params);
	set(MR_STAGE_seqtrack, "templates", 16, params);
	measure_streams(w, MR_STAGE_seqtrack, params, formats, what, round_plain_streams);
}

/* What a plain program does: least, most, sums and bins of 8-bit samples. */
static void round_plain_samples(struct side *w)
{
	static uint32_t bins[STREAMS][256];
	uint64_t s = 0;

	(void)w;
	for (uint32_t i = 0; i < FRAMES; i++) {
		const uint8_t *udp = region + i * ROOM + HEAD + 34;
		int32_t least = 127, most = -128, total = 0, clipped = 0;
		uint32_t id = get(udp + 8, 4), squares = 0;

		for (uint32_t k = 16; id < STREAMS && k < LENGTH - 34; k++) {
			int32_t x = (int8_t)udp[k];

			least = x < least ? x : least;
			most = x > most ? x : most;
			total += x;
			squares += (uint32_t)(x * x);
			clipped += x == 127 || x == -128;
			bins[id][x + 128]++;
		}
		s += squares + (uint32_t)(least + most + total + clipped);
	}
	mr_store_relaxed_u64(&sink, s);
}

/* 14 samples of 8 bits in a packet. */
static void measure_unpack(struct side *w)
{
	static uint8_t params[MR_PARAM_BYTES] __attribute__((aligned(8)));
	static const char *const what[] = {
		"unpack, 14 samples a packet, kernel", "unpack, plain loop"};
	char formats[] = "custom udp 1-65535 id 0:4 seq 4:4 payload 8";

	mr_stage_param_defaults(mr_stage_at(MR_STAGE_unpack), params);
	set(MR_STAGE_unpack, "streams", STREAMS, params);
	set(MR_STAGE_unpack, "window_units", 16, params);
	measure_streams(w, MR_STAGE_unpack, params, formats, what, round_plain_samples);
}

int main(int argc, char **argv)
{
	char *eal[] = {argv[0], "--no-huge", "--no-pci", "-m", "256", "--no-telemetry",
		"--no-shconf", "--file-prefix", "mr-bench-stage", "--log-level", "error", "-l",
		"0"};
	static uint8_t forward[MR_PARAM_BYTES], route[MR_PARAM_BYTES], filter[MR_PARAM_BYTES];
	static struct side w;

	if (argc == 2 && strcmp(argv[1], "--quick") == 0)
		rounds = 2;
	else if (argc != 1)
		die("usage: bench_stage [--quick]");
	if (rte_eal_init((int)(sizeof(eal) / sizeof(eal[0])), eal) < 0)
		die("EAL");
	make_frames();
	mr_stage_param_defaults(mr_stage_at(MR_STAGE_forward), forward);
	mr_stage_param_defaults(mr_stage_at(MR_STAGE_route), route);
	mr_stage_param_defaults(mr_stage_at(MR_STAGE_filter), filter);
	route_table = make_routes(route);
	filter_table = make_rules(filter);
	make_side(&w);
	measure_stage(&w, MR_STAGE_forward, NULL, forward, "forward, kernel");
	measure_stage(&w, MR_STAGE_route, route_table, route, "route, kernel");
	measure("route, plain loop with rte_lpm", &w, round_loop, false);
	measure("route, lookup alone", &w, round_find, false);
	measure("rte_lpm, lookup alone", &w, round_lpm, false);
	measure_stage(&w, MR_STAGE_filter, filter_table, filter, "filter, kernel");
	measure("filter, lookup alone", &w, round_filter, false);
	measure("rte_acl, gathered keys and classify", &w, round_acl, false);
	measure_seqtrack(&w);
	measure_unpack(&w);
	return 0;
}
