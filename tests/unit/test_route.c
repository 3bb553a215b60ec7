/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route: longest prefixes against DPDK's rte_lpm and rte_lpm6 on tables that are drawn, what
 * becomes of a packet's bytes, which ICMP errors are sent and which are not, and what is said
 * of a file that is not one of routes. tests/e2e/test_route.py has the kernel for a judge.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>

#include <rte_eal.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>

#include "mr_kernel.h"

#define ROOM 2048u
#define HEAD 128u
#define ROUTES 100000u
#define LINE 128u

static uint64_t drawn = 1;

static uint32_t draw(uint32_t below)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(drawn >> 33) % below;
}

/* The table of a text, or the errors. */
static void *build(char *text, uint32_t routes_max, const struct mr_param_env *env,
	struct mr_table_errors *errors)
{
	struct mr_table_text t = {.at = text, .errors = errors};
	void *table = aligned_alloc(64, MR_ALIGN_UP(mr_route_bytes(routes_max), 64));
	size_t bytes = 0;

	errors->count = 0;
	assert_int_equal(mr_route_build(&t, routes_max, env, table, &bytes), 0);
	assert_true(bytes <= mr_route_bytes(routes_max));
	return table;
}

static void *must_build(const char *text, uint32_t routes_max)
{
	struct mr_table_errors errors;
	char *copy = strdup(text);
	void *table = build(copy, routes_max, NULL, &errors);

	if (errors.count > 0)
		fail_msg("line %u: %s", errors.e[0].line, errors.e[0].message);
	free(copy);
	return table;
}

/* Route number i is by a next hop of that number. */
static int print_via(char *at, uint32_t i)
{
	return sprintf(at, " via 02:00:%02x:%02x:%02x:%02x port %u\n", i >> 24, i >> 16 & 255,
		i >> 8 & 255, i & 255, i % 16);
}

/* That number, or -1 for none. */
static int64_t number_of(const struct mr_route_hop *hop)
{
	uint32_t i =
		(uint32_t)hop->mac[2] << 24 | hop->mac[3] << 16 | hop->mac[4] << 8 | hop->mac[5];

	if (hop->kind == MR_ROUTE_NONE)
		return -1;
	assert_int_equal(hop->kind, MR_ROUTE_VIA);
	assert_int_equal(hop->port, i % 16);
	return i;
}

static uint32_t draw_address(uint32_t wide)
{
	return wide ? draw(1u << 16) << 16 | draw(1u << 16)
		    : 0x0a000000 | draw(1u << 13) << draw(8);
}

static void prefixes_of_ipv4_are_those_of_rte_lpm(void **state)
{
	static const uint32_t counts[] = {0, 1, 40, 3000, ROUTES};
	struct rte_lpm_config config = {.max_rules = ROUTES, .number_tbl8s = 1u << 15};
	struct rte_lpm *lpm = rte_lpm_create("judge", SOCKET_ID_ANY, &config);
	char *text = malloc(ROUTES * LINE + 1);

	(void)state;
	assert_non_null(lpm);
	for (size_t k = 0; k < MR_ARRAY_LEN(counts); k++) {
		uint32_t wide = counts[k] == ROUTES, held = 0;
		char *at = text;
		void *table;

		rte_lpm_delete_all(lpm);
		*at = '\0';
		for (uint32_t i = 0; i < counts[k];) {
			uint32_t bits = wide && draw(8) != 0 ? 12 + draw(13) : draw(33), hop;
			uint32_t ip = draw_address(wide) & mr_ip_mask(bits);

			/* rte_lpm has no prefix of length 0. */
			if (bits == 0 || rte_lpm_is_rule_present(lpm, ip, (uint8_t)bits, &hop) == 1)
				continue;
			assert_int_equal(rte_lpm_add(lpm, ip, (uint8_t)bits, i), 0);
			at += sprintf(at, "%u.%u.%u.%u/%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255,
				ip & 255, bits);
			at += print_via(at, i++);
		}
		table = must_build(text, ROUTES);
		for (uint32_t i = 0; i < 40000; i++) {
			struct mr_ip ip = {4, {draw_address(wide)}};
			uint32_t hop;
			int64_t wanted =
				rte_lpm_lookup(lpm, ip.word[0], &hop) == 0 ? (int64_t)hop : -1;

			assert_int_equal(number_of(mr_route_find(table, &ip)), wanted);
			held += wanted >= 0;
		}
		assert_true(counts[k] < 2 || held > 1000);
		free(table);
	}
	free(text);
	rte_lpm_free(lpm);
}

static void draw_address_6(uint8_t ip[16])
{
	static const uint8_t bytes[] = {0, 1, 0x7f, 0x80, 0xff};

	memset(ip, 0, 16);
	ip[0] = draw(8) == 0 ? 0x20 : 0xfd;
	for (uint32_t i = 0; i < 5; i++)
		ip[1 + draw(15)] = bytes[draw(5)];
}

static struct mr_ip ip_of(const uint8_t bytes[16])
{
	struct mr_ip ip = {.family = 6};

	for (uint32_t i = 0; i < 16; i++)
		ip.word[i / 4] = ip.word[i / 4] << 8 | bytes[i];
	return ip;
}

static void prefixes_of_ipv6_are_those_of_rte_lpm6(void **state)
{
	static const uint32_t counts[] = {1, 40, 3000};
	struct rte_lpm6_config config = {.max_rules = 3000, .number_tbl8s = 1u << 15};
	char *text = malloc(3000 * LINE + 1);

	(void)state;
	for (size_t k = 0; k < MR_ARRAY_LEN(counts); k++) {
		struct rte_lpm6 *lpm = rte_lpm6_create("judge6", SOCKET_ID_ANY, &config);
		uint32_t held = 0;
		char *at = text;
		void *table;

		assert_non_null(lpm);
		for (uint32_t i = 0; i < counts[k];) {
			uint32_t bits = 1 + draw(128), hop;
			uint8_t ip[16];

			draw_address_6(ip);
			for (uint32_t b = bits; b < 128; b++)
				ip[b / 8] &= (uint8_t) ~(0x80 >> b % 8);
			if (rte_lpm6_is_rule_present(lpm, ip, (uint8_t)bits, &hop) == 1)
				continue;
			assert_int_equal(rte_lpm6_add(lpm, ip, (uint8_t)bits, i), 0);
			for (uint32_t b = 0; b < 16; b += 2)
				at += sprintf(at, "%s%x", b > 0 ? ":" : "", ip[b] << 8 | ip[b + 1]);
			at += sprintf(at, "/%u", bits);
			at += print_via(at, i++);
		}
		table = must_build(text, 3000);
		for (uint32_t i = 0; i < 40000; i++) {
			uint8_t bytes[16];
			struct mr_ip ip;
			uint32_t hop;
			int64_t wanted;

			draw_address_6(bytes);
			ip = ip_of(bytes);
			wanted = rte_lpm6_lookup(lpm, bytes, &hop) == 0 ? (int64_t)hop : -1;
			assert_int_equal(number_of(mr_route_find(table, &ip)), wanted);
			held += wanted >= 0;
		}
		assert_true(counts[k] < 2 || held > 1000);
		free(table);
		rte_lpm6_free(lpm);
	}
	free(text);
}

/* The ends of an address space, and a default route, which rte_lpm does not have. */
static void prefixes_reach_to_the_last_address(void **state)
{
	static const char text[] = "0.0.0.0/0 via 02:00:00:00:00:00 port 0\n"
				   "255.255.255.255 via 02:00:00:00:00:01 port 1\n"
				   "128.0.0.0/1 via 02:00:00:00:00:02 port 2\n"
				   "255.0.0.0/8 via 02:00:00:00:00:03 port 3\n"
				   "ffff::/16 via 02:00:00:00:00:04 port 4\n"
				   "::/1 via 02:00:00:00:00:05 port 5\n";
	static const struct {
		struct mr_ip ip;
		int64_t hop;
	} row[] = {
		{{4, {0}}, 0},
		{{4, {0x7fffffff}}, 0},
		{{4, {0x80000000}}, 2},
		{{4, {0xfeffffff}}, 2},
		{{4, {0xff000000}}, 3},
		{{4, {0xfffffffe}}, 3},
		{{4, {0xffffffff}}, 1},
		{{6, {0}}, 5},
		{{6, {0x7fffffff, ~0u, ~0u, ~0u}}, 5},
		{{6, {0x80000000}}, -1},
		{{6, {0xfffeffff, ~0u, ~0u, ~0u}}, -1},
		{{6, {0xffff0000}}, 4},
		{{6, {~0u, ~0u, ~0u, ~0u}}, 4},
	};
	void *table = must_build(text, 6);

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(row); i++)
		assert_int_equal(number_of(mr_route_find(table, &row[i].ip)), row[i].hop);
	free(table);
}

/* 10.0.0.2 and fd00::2 ask, by way of 10.1.0.1 and fd01::1. */
static const char routes[] = "10.0.0.0/24 via 02:00:00:00:00:aa port 1\n"
			     "10.1.0.0/16 via 02:00:00:00:00:bb port 2\n"
			     "10.1.9.0/24 drop\n10.1.8.0/24 pass\n224.0.0.0/4 drop\n"
			     "fd00::/64 via 02:00:00:00:00:aa port 1\n"
			     "fd01::/16 via 02:00:00:00:00:bb port 2\n";
static const uint8_t mac[6] = {2, 0x4d, 0x52, 0, 0, 1};

struct world {
	struct mr_chain_dev c;
	void *table;
	uint64_t counters[16];
	uint64_t limit, now_ns;
	bool limited;
	uint8_t buffer[ROOM];
	struct mr_view v;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	const struct mr_stage_desc *route = mr_stage_find("route");
	struct mr_err err;

	mr_stage_param_defaults(route, w->c.params[0]);
	assert_int_equal(mr_stage_param_set(route, "addresses", "10.0.0.1,fd00::1", NULL,
				 w->c.params[0], &err),
		0);
	w->table = must_build(routes, 10);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	free(w->table);
	free(w);
	return 0;
}

static void put(uint8_t *at, uint32_t bytes, uint64_t x)
{
	for (uint32_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(x >> 8 * (bytes - 1 - i));
}

static uint32_t sum(const uint8_t *p, uint32_t bytes)
{
	uint32_t s = 0;

	for (uint32_t i = 0; i < bytes; i++)
		s += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

/* A frame for this router with `tags` tags, an IP header and a payload of so many bytes. */
struct packet {
	uint32_t family, tags, ttl, protocol, payload;
	uint32_t target; /* last word of 10.x.x.x; of IPv6 its first: fd01... */
	uint32_t source; /* as target, 0: 10.0.0.2 or fd00::2 */
	uint32_t fragment;
	uint8_t type;     /* first byte of the payload */
	bool group;       /* to a group address of Ethernet */
	uint32_t padding; /* bytes behind the packet */
};

static uint8_t *make(struct world *w, const struct packet *p, uint32_t head)
{
	uint8_t *f = w->buffer + head, *ip;
	uint32_t l3 = 14 + 4 * p->tags, at = l3 + (p->family == 4 ? 20 : 40);

	memset(w->buffer, 0xee, ROOM);
	memcpy(f, mac, 6);
	put(f + 6, 6, 0x020000000099);
	for (uint32_t i = 0; i < p->tags; i++)
		put(f + 12 + 4 * i, 4, 0x81000064 + i);
	put(f + l3 - 2, 2, p->family == 4 ? 0x0800 : 0x86dd);
	ip = f + l3;
	memset(ip, 0, 40);
	if (p->family == 4) {
		put(ip, 4, 0x45000000 | (20 + p->payload));
		put(ip + 6, 2, p->fragment);
		put(ip + 8, 2, p->ttl << 8 | p->protocol);
		put(ip + 12, 4, p->source != 0 ? p->source : 0x0a000002);
		put(ip + 16, 4, p->target);
		put(ip + 10, 2, ~sum(ip, 20));
	} else {
		put(ip, 8,
			0x6000000000000000 | (uint64_t)p->payload << 16 | p->protocol << 8 |
				p->ttl);
		put(ip + 8, 4, p->source != 0 ? p->source : 0xfd000000);
		ip[23] = 2;
		put(ip + 24, 4, p->target);
		ip[39] = 1;
	}
	for (uint32_t i = 0; i < p->payload + p->padding; i++)
		f[at + i] = (uint8_t)(i * 7);
	f[at] = p->type;
	w->v = (struct mr_view){.frame = f,
		.length = at + p->payload + p->padding,
		.head = head,
		.room = ROOM,
		.verdict = MR_TX};
	return f;
}

static enum mr_flow run(struct world *w)
{
	const struct mr_ctx ctx = {.params = w->c.params[0],
		.table = w->table,
		.state = w->limited ? &w->limit : NULL,
		.counters = w->counters,
		.now_ns = w->now_ns,
		.size = 1};

	return mr_stage_route(&ctx, &w->v);
}

static void a_forwarded_packet_changes_in_addresses_ttl_and_checksum_alone(void **state)
{
	struct world *w = *state;

	for (uint32_t k = 0; k < 400; k++) {
		struct packet p = {.family = k % 2 == 0 ? 4 : 6,
			.tags = k % 3,
			.ttl = 2 + draw(254),
			.protocol = 17,
			.payload = draw(1400)};
		uint8_t before[ROOM], *f;
		uint32_t l3 = 14 + 4 * p.tags;

		p.target = p.family == 4 ? 0x0a010000 | draw(0x700) : 0xfd010000;
		f = make(w, &p, HEAD);
		memcpy(before, w->buffer, ROOM);
		assert_int_equal(run(w), MR_STOP);
		assert_int_equal(w->v.verdict, MR_TX);
		assert_int_equal(w->v.port, 2);
		assert_ptr_equal(w->v.frame, f);
		put(before + HEAD, 6, 0x0200000000bb);
		memcpy(before + HEAD + 6, mac, 6);
		if (p.family == 4) {
			before[HEAD + l3 + 8]--;
			put(before + HEAD + l3 + 10, 2, 0);
			put(before + HEAD + l3 + 10, 2, ~sum(before + HEAD + l3, 20));
		} else {
			before[HEAD + l3 + 7]--;
		}
		assert_memory_equal(w->buffer, before, ROOM);
	}
	assert_int_equal(w->counters[0], 400);
}

/* The frame is an answer to what was made before: the quote, both checksums, both addresses. */
static void check_answer(
	struct world *w, const struct packet *p, const uint8_t *before, uint32_t type)
{
	uint32_t l3 = 14 + 4 * p->tags, ip = p->family == 4 ? 20 : 40, all;
	uint32_t quote = ip + p->payload, most = p->family == 4 ? 548 : 1232;
	const uint8_t *f = w->v.frame;
	uint8_t pseudo[40 + 1300] = {0};

	quote = quote < most ? quote : most;
	all = 8 + quote;
	assert_int_equal(w->v.verdict, MR_TX);
	assert_int_equal(w->v.port, 1);
	assert_int_equal(w->v.length, l3 + ip + all);
	assert_int_equal(w->v.head, HEAD - ip - 8);
	assert_ptr_equal(f, w->buffer + w->v.head);
	assert_int_equal(f[5], 0xaa);
	assert_memory_equal(f + 6, mac, 6);
	assert_memory_equal(f + 12, before + HEAD + 12, l3 - 12);
	assert_memory_equal(f + l3 + ip + 8, before + HEAD + l3, quote);
	assert_int_equal(f[l3 + ip], type);
	assert_int_equal(f[l3 + ip + 1], 0);
	if (p->family == 4) {
		assert_int_equal(sum(f + l3, 20), 0xffff);
		assert_int_equal(sum(f + l3 + 20, all), 0xffff);
		assert_int_equal(f[l3 + 2] << 8 | f[l3 + 3], 20 + all);
		assert_memory_equal(f + l3 + 12, "\x0a\0\0\1\x0a\0\0\2", 8);
		return;
	}
	assert_int_equal(f[l3 + 4] << 8 | f[l3 + 5], all);
	assert_int_equal(f[l3 + 6], 58);
	memcpy(pseudo, f + l3 + 8, 32);
	assert_memory_equal(
		pseudo, "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2", 32);
	put(pseudo + 32, 4, all);
	pseudo[39] = 58;
	memcpy(pseudo + 40, f + l3 + 40, all);
	assert_int_equal(sum(pseudo, 40 + all), 0xffff);
}

static void what_ends_here_or_has_no_route_is_answered_in_its_own_buffer(void **state)
{
	static const uint32_t payloads[] = {1, 8, 9, 500, 528, 529, 1192, 1193, 1400};
	struct world *w = *state;
	uint32_t answered = 0;

	for (uint32_t k = 0; k < 8 * MR_ARRAY_LEN(payloads); k++) {
		bool ends = (k & 1) != 0;
		struct packet p = {.family = (k & 2) != 0 ? 4 : 6,
			.tags = k / 4 % 2,
			.ttl = ends ? k & 1 : 9,
			.protocol = 17,
			.payload = payloads[k / 8]};
		uint8_t before[ROOM];

		p.target = p.family == 4 ? (ends ? 0x0a010001 : 0x0b000000)
					 : (ends ? 0xfd010000 : 0xfe000000);
		make(w, &p, HEAD);
		memcpy(before, w->buffer, ROOM);
		assert_int_equal(run(w), MR_STOP);
		check_answer(w, &p, before, p.family == 4 ? (ends ? 11 : 3) : (ends ? 3 : 1));
		assert_int_equal(w->counters[5], ++answered);
	}
}

static void what_may_not_be_answered_is_dropped(void **state)
{
	static const struct packet row[] = {
		/* errors, and what is not known not to be one */
		{.family = 4, .protocol = 1, .type = 3},
		{.family = 4, .protocol = 1, .type = 11},
		{.family = 4, .protocol = 1, .type = 5},
		{.family = 6, .protocol = 58, .type = 1},
		{.family = 6, .protocol = 58, .type = 127},
		{.family = 6, .protocol = 58, .type = 137},
		{.family = 4, .protocol = 17, .fragment = 1},
		/* from no host, or to many */
		{.family = 4, .protocol = 17, .source = 0xe0000001},
		{.family = 4, .protocol = 17, .source = 0xffffffff},
		{.family = 4, .protocol = 17, .source = 0x7f000001},
		{.family = 4, .protocol = 17, .source = 0x00000001},
		{.family = 6, .protocol = 17, .source = 0xff020000},
		{.family = 6, .protocol = 17, .source = 0xfe800000},
		{.family = 4, .protocol = 17, .target = 0xf0000001},
		{.family = 6, .protocol = 17, .target = 0xff020000},
		{.family = 4, .protocol = 17, .source = 0xa9fe0001},
		{.family = 4, .protocol = 17, .target = 0xa9fe0001},
		{.family = 6, .protocol = 17, .target = 0xfe800000},
		/* a type that is padding's */
		{.family = 4, .protocol = 1, .padding = 20},
		{.family = 6, .protocol = 58, .type = 128, .padding = 20},
		/* no route back */
		{.family = 4, .protocol = 17, .source = 0x0c000001},
	};
	struct world *w = *state;

	for (size_t i = 0; i < MR_ARRAY_LEN(row); i++) {
		struct packet p = row[i];
		uint8_t before[ROOM];

		p.ttl = 1;
		p.payload = 20 - p.padding;
		if (p.target == 0)
			p.target = p.family == 4 ? 0x0b000001 : 0xfe000000;
		make(w, &p, HEAD);
		memcpy(before, w->buffer, ROOM);
		assert_int_equal(run(w), MR_STOP);
		if (w->v.verdict != MR_DROP || w->v.arg != MR_REASON_policy)
			fail_msg("row %zu was answered", i);
		assert_memory_equal(w->buffer, before, ROOM);
	}
	/* Those beside them are: echo, and a first fragment. */
	for (uint32_t i = 0; i < 3; i++) {
		struct packet p = {.family = i == 1 ? 6 : 4,
			.protocol = i == 2 ? 17
				: i == 1   ? 58
					   : 1,
			.type = i == 0 ? 8 : 128,
			.fragment = i == 2 ? 0x2000 : 0,
			.ttl = 1,
			.payload = 24,
			.target = i == 1 ? 0xfe000000 : 0x0b000001};

		make(w, &p, HEAD);
		(void)run(w);
		assert_int_equal(w->v.verdict, MR_TX);
	}
	/* No room in front. */
	make(w, &(struct packet){.family = 4, .ttl = 9, .payload = 9, .target = 0x0b000001}, 27);
	(void)run(w);
	assert_int_equal(w->v.verdict, MR_DROP);
}

/* A bucket of `burst` that fills by one each `each_ns`, in nanoseconds. */
static bool bucket_takes(uint64_t *level, uint64_t passed_ns, uint64_t each_ns, uint64_t burst)
{
	*level = *level + passed_ns < burst * each_ns ? *level + passed_ns : burst * each_ns;
	if (*level < each_ns)
		return false;
	*level -= each_ns;
	return true;
}

static void a_limit_is_a_bucket_of_tokens(void **state)
{
	static const uint32_t rates[] = {1, 3, 50, 1000, 999999, MR_LIMIT_RATE_MAX};
	static const uint32_t bursts[] = {1, 2, 50, MR_LIMIT_BURST_MAX};

	(void)state;
	for (uint32_t k = 0; k < MR_ARRAY_LEN(rates) * MR_ARRAY_LEN(bursts); k++) {
		const uint32_t rate = rates[k / MR_ARRAY_LEN(bursts)];
		const uint32_t burst = bursts[k % MR_ARRAY_LEN(bursts)];
		const uint64_t each = 1000000000u / rate;
		uint64_t word = 0, now = draw(2) == 0 ? 0 : 1ull << 62, level = burst * each;

		for (uint32_t i = 0; i < 3000; i++) {
			uint64_t passed = draw(3) == 0 ? draw(1u << 31) % (3 * each + 1) : 0;

			passed *= draw(50) == 0 ? burst : 1;
			now += passed;
			assert_int_equal(mr_limit_take(&word, now, rate, burst),
				bucket_takes(&level, passed, each, burst));
		}
	}
}

static void a_limit_knows_no_other_parameters_than_its_own(void **state)
{
	const uint64_t second = 1000000000u, now = 5 * second;
	uint64_t word = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(mr_limit_take(&word, now, 1, 1000));
	assert_false(mr_limit_take(&word, now, 1, 1000));
	/* A thousand seconds ahead; of the new rate it is empty, and full after its own time. */
	assert_false(mr_limit_take(&word, now, 1000, 10));
	assert_true(mr_limit_take(&word, now + 1000000, 1000, 10));
	assert_false(mr_limit_take(&word, now + 1000000, 1000, 10));
	/* What is older than another thread's time takes nothing back. */
	assert_false(mr_limit_take(&word, now - second / 2, 1000, 10));
	assert_true(mr_limit_take(&word, now + 2000000, 1000, 10));
	assert_false(mr_limit_take(&word, now + 2000000, 1000, 10));
}

static void *take_many(void *word)
{
	uintptr_t passed = 0;

	for (uint32_t i = 0; i < 600000; i++)
		passed += (uintptr_t)mr_limit_take(word, 1000, 1000, MR_LIMIT_BURST_MAX);
	return (void *)passed;
}

static void threads_share_a_limit(void **state)
{
	pthread_t thread[4];
	uint64_t word = 0;
	uintptr_t all = 0;

	(void)state;
	for (uint32_t i = 0; i < MR_ARRAY_LEN(thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, take_many, &word), 0);
	for (uint32_t i = 0; i < MR_ARRAY_LEN(thread); i++) {
		void *passed;

		assert_int_equal(pthread_join(thread[i], &passed), 0);
		all += (uintptr_t)passed;
	}
	assert_int_equal(all, MR_LIMIT_BURST_MAX);
}

/* How many of `count` packets that end here are answered; the others are dropped and counted. */
static uint32_t answers(struct world *w, uint32_t count)
{
	const struct packet p = {
		.family = 4, .protocol = 17, .ttl = 1, .payload = 20, .target = 0x0b000001};
	const uint64_t limited = w->counters[7];
	uint32_t answered = 0;

	for (uint32_t i = 0; i < count; i++) {
		make(w, &p, HEAD);
		assert_int_equal(run(w), MR_STOP);
		answered += w->v.verdict == MR_TX;
		if (w->v.verdict != MR_TX)
			assert_int_equal(w->v.arg, MR_REASON_policy);
	}
	assert_int_equal(w->counters[7] - limited, count - answered);
	return answered;
}

static void answers_keep_to_their_rate(void **state)
{
	const struct mr_stage_desc *route = mr_stage_find("route");
	struct world *w = *state;
	struct packet own = {.family = 4, .protocol = 1, .type = 3, .ttl = 1, .payload = 20};
	struct mr_err err;

	w->limited = true;
	w->now_ns = 1ull << 40;
	assert_int_equal(route->state->lane_bytes(w->c.params[0]), sizeof(w->limit));
	assert_true(route->timed);
	/* As many as the manual says, and one more each millisecond. */
	assert_int_equal(answers(w, 80), 50);
	w->now_ns += 3000000;
	assert_int_equal(answers(w, 80), 3);
	/* What is not to be answered takes nothing from those that are. */
	w->now_ns += 1000000;
	own.target = 0x0b000001;
	make(w, &own, HEAD);
	assert_int_equal(run(w), MR_STOP);
	assert_int_equal(w->v.verdict, MR_DROP);
	assert_int_equal(answers(w, 2), 1);
	assert_int_equal(
		mr_stage_param_set(route, "errors_per_second", "0", NULL, w->c.params[0], &err), 0);
	assert_int_equal(answers(w, 80), 80);
}

static void what_is_not_to_be_routed_goes_on_or_is_dropped(void **state)
{
	struct packet p = {.family = 4, .ttl = 9, .payload = 30, .protocol = 17};
	struct world *w = *state;
	uint8_t *f;

	p.target = 0x0a010801; /* pass */
	make(w, &p, HEAD);
	assert_int_equal(run(w), MR_NEXT);
	p.target = 0x0a010901; /* drop */
	make(w, &p, HEAD);
	assert_int_equal(run(w), MR_STOP);
	assert_int_equal(w->v.verdict, MR_DROP);
	p.target = 0x0a010001;
	f = make(w, &p, HEAD);
	f[5] ^= 1; /* for another */
	assert_int_equal(run(w), MR_NEXT);
	f = make(w, &p, HEAD);
	put(f + 12, 2, 0x0806);
	assert_int_equal(run(w), MR_NEXT);
	f = make(w, &p, HEAD);
	f[24] ^= 1; /* its checksum */
	assert_int_equal(run(w), MR_STOP);
	assert_int_equal(w->v.arg, MR_REASON_malformed);
	make(w, &p, HEAD);
	w->v.length -= 1; /* cut off */
	assert_int_equal(run(w), MR_STOP);
	assert_int_equal(w->v.arg, MR_REASON_malformed);
	/* A transport header that is none is none of a router's business. */
	p.payload = 3;
	make(w, &p, HEAD);
	assert_int_equal(run(w), MR_STOP);
	assert_int_equal(w->v.verdict, MR_TX);
	free(w->table);
	w->table = NULL;
	make(w, &p, HEAD);
	assert_int_equal(run(w), MR_STOP);
	assert_int_equal(w->v.verdict, MR_DROP);
}

/* With default routes: RFC 1812 5.3.7, RFC 3927 7, RFC 4291 2.5.2, 2.5.3 and 2.5.6. */
static void what_no_router_forwards_is_dropped_but_may_be_its_own(void **state)
{
	static const struct {
		uint32_t family, address;
	} row[] = {{4, 0x00000001}, {4, 0x7f000001}, {4, 0xa9fe0001}, {4, 0xe0000001},
		{4, 0xffffffff}, {6, 0xfe800000}, {6, 0xff020000}};
	struct world *w = *state;

	for (uint32_t own = 0; own < 2; own++) {
		free(w->table);
		w->table = must_build(own ? "0.0.0.0/0 pass\n::/0 pass\n"
					  : "0.0.0.0/0 via 02:00:00:00:00:01 port 0\n"
					    "::/0 via 02:00:00:00:00:01 port 0\n",
			10);
		for (uint32_t i = 0; i < 2 * MR_ARRAY_LEN(row); i++) {
			struct packet p = {.family = row[i / 2].family,
				.ttl = 9,
				.protocol = 17,
				.payload = 30,
				.target = row[i / 2].family == 4 ? 0x0b000001 : 0xfd000000};

			if ((i & 1) != 0)
				p.source = row[i / 2].address;
			else
				p.target = row[i / 2].address;
			make(w, &p, HEAD);
			if (run(w) != (own ? MR_NEXT : MR_STOP) ||
				w->v.verdict != (own ? MR_TX : MR_DROP))
				fail_msg("row %u", i);
			assert_int_equal(w->counters[8], own ? 0 : i + 1);
		}
		memset(w->counters, 0, sizeof(w->counters));
	}
}

static void no_byte_and_no_length_of_a_header_leads_out_of_the_frame(void **state)
{
	static const uint8_t values[] = {0, 1, 5, 0x0f, 0x44, 0x4f, 0x60, 0x7f, 0x80, 0xff};
	struct world *w = *state;
	uint8_t untouched[ROOM];

	memset(untouched, 0xee, ROOM);
	for (uint32_t k = 0; k < 8; k++) {
		struct packet p = {.family = k % 2 == 0 ? 4 : 6,
			.tags = k / 4,
			.ttl = k / 2 % 2 == 0 ? 1 : 9,
			.protocol = 17,
			.payload = 12,
			.target = k % 2 == 0 ? 0x0a010001 : 0xfd010000};
		uint32_t whole;

		make(w, &p, HEAD);
		whole = w->v.length;
		for (uint32_t length = MR_FRAME_MIN; length <= whole; length++)
			for (uint32_t at = 12; at < length; at++)
				for (size_t i = 0; i < sizeof(values); i++) {
					uint8_t *f = make(w, &p, HEAD);

					f[at] = values[i];
					/* Its room ends with it, so that no byte behind is its own.
					 */
					memset(f + length, 0xee, ROOM - HEAD - length);
					w->v.length = length;
					w->v.room = HEAD + length;
					(void)run(w);
					assert_true(w->v.head + w->v.length <= HEAD + length);
					assert_memory_equal(
						f + length, untouched, ROOM - HEAD - length);
					assert_memory_equal(w->buffer, untouched, HEAD - 48);
				}
	}
}

static void every_mistake_of_a_file_is_told_with_its_line(void **state)
{
	static const char *const tx[] = {"in", "up"};
	const struct mr_param_env env = {tx, 2};
	char text[] = "10.0.0.0/8 via 02:00:00:00:00:01 port up # good\n10.0.0.1/8 pass\n"
		      "10.1.0.0/16\n10.2.0.0/16 via 02:00:00:00:01 port in\n"
		      "10.3.0.0/16 via 02:00:00:00:00:01 port 2\n10.4.0.0/16 drop it\n"
		      "fd00::/8 drop\n\n10.0.0.0/8 pass\n0/0 drop\n"
		      "10.5.0.0/16 via 03:00:00:00:00:01 port up\n";
	static const struct {
		uint32_t line;
		const char *words;
	} wanted[] = {{2, "not '10.0.0.1/8'"}, {3, "'via MAC port PORT', 'pass' or 'drop'"},
		{4, "'via' takes the address of one"}, {5, "not '2'"}, {6, "behind the prefix"},
		{10, "not '0/0'"}, {11, "one station"}, {9, "has a route already, in line 1"}};
	struct mr_table_errors errors;
	char many[] = "10.0.0.0/8 drop\n11.0.0.0/8 drop\n12.0.0.0/8 drop\n";

	(void)state;
	free(build(text, 100, &env, &errors));
	for (size_t i = 0; i < MR_ARRAY_LEN(wanted); i++) {
		if (strstr(errors.e[i].message, wanted[i].words) == NULL)
			fail_msg("'%s' is not '%s'", errors.e[i].message, wanted[i].words);
		assert_int_equal(errors.e[i].line, wanted[i].line);
	}
	assert_int_equal(errors.count, MR_ARRAY_LEN(wanted));
	free(build(many, 2, &env, &errors));
	assert_int_equal(errors.count, 1);
	assert_int_equal(errors.e[0].line, 3);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	char *argv[] = {"test", "--no-huge", "--no-pci", "-m", "320", "-l", "0", "--file-prefix",
		"mr-test-route", "--no-telemetry", "--no-shconf", "--log-level", "error", NULL};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefixes_of_ipv4_are_those_of_rte_lpm),
		cmocka_unit_test(prefixes_of_ipv6_are_those_of_rte_lpm6),
		cmocka_unit_test(prefixes_reach_to_the_last_address),
		CASE(a_forwarded_packet_changes_in_addresses_ttl_and_checksum_alone),
		CASE(what_ends_here_or_has_no_route_is_answered_in_its_own_buffer),
		CASE(what_may_not_be_answered_is_dropped),
		cmocka_unit_test(a_limit_is_a_bucket_of_tokens),
		cmocka_unit_test(a_limit_knows_no_other_parameters_than_its_own),
		cmocka_unit_test(threads_share_a_limit),
		CASE(answers_keep_to_their_rate),
		CASE(what_is_not_to_be_routed_goes_on_or_is_dropped),
		CASE(what_no_router_forwards_is_dropped_but_may_be_its_own),
		CASE(no_byte_and_no_length_of_a_header_leads_out_of_the_frame),
		cmocka_unit_test(every_mistake_of_a_file_is_told_with_its_line),
	};

	if (rte_eal_init(MR_ARRAY_LEN(argv) - 1, argv) < 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
