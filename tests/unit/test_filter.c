/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter against DPDK's rte_acl and against rules looked at one by one, on rules and packets
 * that are drawn; and what is said of a file that is not one of rules.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_acl.h>
#include <rte_byteorder.h>
#include <rte_eal.h>

#include "mr_filter.h"
#include "mr_kernel.h"

#define ROOM 128u

static uint64_t drawn = 1;

static uint32_t draw(uint32_t below)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(drawn >> 33) % below;
}

/* A rule as drawn, and a packet; addresses are of four words, IPv4 in the first. */
struct drawn_rule {
	uint32_t family; /* 0: of both */
	uint32_t src[4], dst[4], src_bits, dst_bits;
	int32_t proto; /* -1: any */
	uint32_t port[2][2];
	uint32_t action;
};

struct drawn_packet {
	uint32_t family, src[4], dst[4], proto, port[2];
	bool ports; /* it has some: UDP or TCP, and no later fragment */
};

static struct drawn_rule rules[MR_FILTER_RULES_MAX];
static const char *const words[] = {"permit", "deny", "count"};

/* Few values of each part, so that prefixes nest and packets meet rules. */
static void draw_address(uint32_t family, uint32_t a[4])
{
	memset(a, 0, 4 * sizeof(*a));
	a[0] = family == 4 ? 0x0a000000 | draw(3) << 16 | draw(4) << 8 | draw(4) : 0x20010db8;
	if (family == 6) {
		a[1] = draw(3) << 16;
		a[2] = draw(2);
		a[3] = draw(5);
	}
}

static void mask_address(uint32_t a[4], uint32_t bits)
{
	for (uint32_t i = 0; i < 4; i++)
		a[i] &= mr_ip_mask(bits > 32 * i ? bits - 32 * i : 0);
}

static uint32_t draw_bits(uint32_t family)
{
	static const uint32_t v4[] = {0, 8, 14, 16, 23, 24, 30, 31, 32};
	static const uint32_t v6[] = {0, 3, 32, 33, 48, 64, 95, 96, 126, 127, 128};

	return family == 4 ? v4[draw(9)] : family == 6 ? v6[draw(11)] : 0;
}

static void draw_rule(struct drawn_rule *r, uint32_t family, uint32_t kinds)
{
	static const int32_t protos[] = {-1, 17, 6, 1, 58};

	memset(r, 0, sizeof(*r));
	r->family = family;
	draw_address(family, r->src);
	draw_address(family, r->dst);
	r->src_bits = draw_bits(family);
	r->dst_bits = draw_bits(family);
	mask_address(r->src, r->src_bits);
	mask_address(r->dst, r->dst_bits);
	r->proto = protos[draw(5)];
	for (uint32_t i = 0; i < 2; i++) {
		r->port[i][1] = UINT32_MAX;
		if (draw(2) == 0)
			continue;
		r->port[i][0] = draw(8) == 0 ? 65530 + draw(6) : draw(12);
		r->port[i][1] =
			r->port[i][0] + draw(65536 - r->port[i][0] < 9 ? 65536 - r->port[i][0] : 9);
	}
	r->action = draw(kinds);
}

static int print_address(char *at, uint32_t family, const uint32_t a[4], uint32_t bits)
{
	if (family == 4)
		return sprintf(at, "%u.%u.%u.%u/%u", a[0] >> 24, a[0] >> 16 & 255, a[0] >> 8 & 255,
			a[0] & 255, bits);
	return sprintf(at, "%x:%x:%x:%x:%x:%x:%x:%x/%u", a[0] >> 16, a[0] & 0xffff, a[1] >> 16,
		a[1] & 0xffff, a[2] >> 16, a[2] & 0xffff, a[3] >> 16, a[3] & 0xffff, bits);
}

static int print_rule(char *at, const struct drawn_rule *r)
{
	char *begin = at;

	at += sprintf(at, "%s", words[r->action]);
	if (r->family != 0) {
		at += sprintf(at, " src ");
		at += print_address(at, r->family, r->src, r->src_bits);
		at += sprintf(at, "  dst ");
		at += print_address(at, r->family, r->dst, r->dst_bits);
	}
	if (r->proto >= 0)
		at += sprintf(at, "\tproto %d", r->proto);
	for (uint32_t i = 0; i < 2; i++)
		if (r->port[i][1] != UINT32_MAX)
			at += sprintf(at, " %s_port %u-%u", i == 0 ? "src" : "dst", r->port[i][0],
				r->port[i][1]);
	at += sprintf(at, "  # %d\n", (int)(r - rules));
	return (int)(at - begin);
}

/* The table of a text, or the errors. */
static void *build(char *text, uint32_t rules_max, struct mr_table_errors *errors)
{
	struct mr_table_text t = {.at = text, .errors = errors};
	void *table = aligned_alloc(64, MR_ALIGN_UP(mr_filter_bytes(rules_max), 64));
	size_t bytes = 0;

	errors->count = 0;
	assert_int_equal(mr_filter_build(&t, rules_max, table, &bytes), 0);
	assert_true(bytes <= mr_filter_bytes(rules_max));
	return table;
}

static void *build_drawn(uint32_t count)
{
	struct mr_table_errors errors;
	char *text = malloc(count * 256 + 1), *at = text;
	void *table;

	*at = '\0';
	for (uint32_t i = 0; i < count; i++)
		at += print_rule(at, &rules[i]);
	table = build(text, count > 0 ? count : 1, &errors);
	if (errors.count > 0)
		fail_msg("line %u: %s", errors.e[0].line, errors.e[0].message);
	free(text);
	return table;
}

static bool in_prefix(const uint32_t a[4], const uint32_t prefix[4], uint32_t bits)
{
	for (uint32_t i = 0; i < bits; i++)
		if ((a[i / 32] ^ prefix[i / 32]) >> (31 - i % 32) & 1)
			return false;
	return true;
}

static bool meets(const struct drawn_rule *r, const struct drawn_packet *p)
{
	bool all = (r->family == 0 || r->family == p->family) &&
		in_prefix(p->src, r->src, r->src_bits) && in_prefix(p->dst, r->dst, r->dst_bits) &&
		(r->proto < 0 || (uint32_t)r->proto == p->proto);

	for (uint32_t i = 0; i < 2; i++)
		if (r->port[i][1] != UINT32_MAX)
			all &= p->ports && p->port[i] >= r->port[i][0] &&
				p->port[i] <= r->port[i][1];
	return all;
}

static uint32_t one_by_one(uint32_t count, const struct drawn_packet *p, uint32_t *ret_counted)
{
	*ret_counted = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (!meets(&rules[i], p))
			continue;
		if (rules[i].action != MR_FILTER_COUNT)
			return i;
		++*ret_counted;
	}
	return count;
}

static uint32_t put(uint8_t *frame, uint32_t at, uint32_t bytes, uint64_t x)
{
	for (uint32_t i = 0; i < bytes; i++)
		frame[at + i] = (uint8_t)(x >> 8 * (bytes - 1 - i));
	return at + bytes;
}

/* Draws a packet and its frame; returns the length. */
static uint32_t draw_packet(struct drawn_packet *p, uint8_t *frame)
{
	static const uint8_t protos[] = {17, 6, 1, 58, 47};
	uint32_t at = 14, later, left = 24;

	memset(p, 0, sizeof(*p));
	memset(frame, 0, ROOM);
	p->family = draw(2) == 0 ? 4 : 6;
	draw_address(p->family, p->src);
	draw_address(p->family, p->dst);
	p->proto = protos[draw(5)];
	later = draw(8) == 0;
	p->ports = (p->proto == 17 || p->proto == 6) && later == 0;
	for (uint32_t i = 0; i < 2; i++)
		p->port[i] = draw(8) == 0 ? 65529 + draw(7) : draw(20);
	if (draw(4) == 0) {
		put(frame, 12, 4, 0x81000007);
		at += 4;
	}
	put(frame, at - 2, 2, p->family == 4 ? 0x0800 : 0x86dd);
	if (p->family == 4) {
		put(frame, at, 4, 0x45000000 | (20 + left));
		put(frame, at + 6, 4, later << 16 | 64 << 8 | p->proto);
		put(frame, at + 12, 4, p->src[0]);
		at = put(frame, at + 16, 4, p->dst[0]);
	} else {
		put(frame, at, 8,
			0x6000000000000000 | (uint64_t)(left + 8 * later) << 16 |
				(later ? 44 : p->proto) << 8 | 64);
		for (uint32_t i = 0; i < 4; i++) {
			put(frame, at + 8 + 4 * i, 4, p->src[i]);
			put(frame, at + 24 + 4 * i, 4, p->dst[i]);
		}
		at += 40;
		if (later)
			at = put(frame, at, 8, (uint64_t)p->proto << 56 | 8ull << 32);
	}
	put(frame, at, 2, p->port[0]);
	put(frame, at + 2, 2, p->port[1]);
	put(frame, at + 4, 2, left);
	if (p->proto == 6)
		frame[at + 12] = 5 << 4;
	return at + left;
}

static uint32_t find(const void *table, uint8_t *frame, uint32_t length, uint32_t *ret_counted)
{
	struct mr_view v = {.frame = frame, .length = length, .room = ROOM};
	struct mr_headers h;

	mr_walk(&v, 0, &h);
	assert_int_equal(h.has & MR_HAS_MALFORMED, 0);
	return mr_filter_find(table, &v, &h, ret_counted);
}

static void drawn_rules_hold_as_one_by_one(void **state)
{
	static const uint32_t counts[] = {0, 1, 2, 63, 64, 65, 700, 4097, MR_FILTER_RULES_MAX};

	(void)state;
	for (size_t k = 0; k < MR_ARRAY_LEN(counts); k++) {
		uint32_t count = counts[k], met = 0;
		void *table;

		/* Of many rules most are narrow, or a packet would hardly get beyond the first. */
		for (uint32_t i = 0; i < count; i++)
			do
				draw_rule(&rules[i], draw(8) == 0 ? 0 : 4 + 2 * draw(2), 3);
			while (count > 100 && (rules[i].family == 0 || rules[i].src_bits < 30) &&
				i < count - 100);
		table = build_drawn(count);
		for (uint32_t i = 0; i < 2000; i++) {
			uint32_t wanted, wanted_counted, counted;
			uint8_t frame[ROOM];
			struct drawn_packet p;
			uint32_t length = draw_packet(&p, frame);

			wanted = one_by_one(count, &p, &wanted_counted);
			assert_int_equal(find(table, frame, length, &counted), wanted);
			assert_int_equal(counted, wanted_counted);
			met += wanted != count;
		}
		assert_true(count < 60 || met > 500);
		free(table);
	}
}

#define ACL_FIELDS4 5
#define ACL_FIELDS6 11
RTE_ACL_RULE_DEF(acl_rule, ACL_FIELDS6);

static const struct rte_acl_field_def acl4[ACL_FIELDS4] = {
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, 0, 0, 0},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 1, 1, 4},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 2, 2, 8},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, 3, 3, 12},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, 4, 3, 14},
};

static const struct rte_acl_field_def acl6[ACL_FIELDS6] = {
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, 0, 0, 0},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 1, 1, 4},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 2, 2, 8},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 3, 3, 12},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 4, 4, 16},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 5, 5, 20},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 6, 6, 24},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 7, 7, 28},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 8, 8, 32},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, 9, 9, 36},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, 10, 9, 38},
};

static void acl_rule_of(const struct drawn_rule *r, uint32_t i, struct acl_rule *a)
{
	uint32_t words4 = r->family == 4 ? 1 : 4, at = 1;

	memset(a, 0, sizeof(*a));
	a->data.category_mask = 1;
	a->data.priority = (int32_t)(RTE_ACL_MAX_PRIORITY - i);
	a->data.userdata = i + 1;
	a->field[0].value.u8 = r->proto < 0 ? 0 : (uint8_t)r->proto;
	a->field[0].mask_range.u8 = r->proto < 0 ? 0 : 0xff;
	for (uint32_t side = 0; side < 2; side++)
		for (uint32_t w = 0; w < words4; w++, at++) {
			uint32_t bits = side == 0 ? r->src_bits : r->dst_bits;

			bits = bits > 32 * w ? bits - 32 * w : 0;
			a->field[at].value.u32 = side == 0 ? r->src[w] : r->dst[w];
			a->field[at].mask_range.u32 = bits > 32 ? 32 : bits;
		}
	for (uint32_t side = 0; side < 2; side++, at++) {
		a->field[at].value.u16 = (uint16_t)r->port[side][0];
		a->field[at].mask_range.u16 = (uint16_t)(r->port[side][1] & 0xffff);
	}
}

static struct rte_acl_ctx *acl_build(uint32_t family, uint32_t count)
{
	uint32_t fields = family == 4 ? ACL_FIELDS4 : ACL_FIELDS6;
	struct rte_acl_param param = {.name = "judge",
		.socket_id = SOCKET_ID_ANY,
		.rule_size = RTE_ACL_RULE_SZ(ACL_FIELDS6),
		.max_rule_num = count};
	struct rte_acl_config config = {.num_categories = 1, .num_fields = fields};
	struct rte_acl_ctx *ctx = rte_acl_create(&param);

	assert_non_null(ctx);
	memcpy(config.defs, family == 4 ? acl4 : acl6, fields * sizeof(config.defs[0]));
	for (uint32_t i = 0; i < count; i++) {
		struct acl_rule a;

		acl_rule_of(&rules[i], i, &a);
		assert_int_equal(rte_acl_add_rules(ctx, (struct rte_acl_rule *)&a, 1), 0);
	}
	assert_int_equal(rte_acl_build(ctx, &config), 0);
	return ctx;
}

static uint32_t acl_find(struct rte_acl_ctx *ctx, const struct drawn_packet *p)
{
	uint8_t key[64] = {0};
	const uint8_t *keys = key;
	uint32_t result = 0, words4 = p->family == 4 ? 1 : 4, at = 4;

	key[0] = (uint8_t)p->proto;
	for (uint32_t w = 0; w < words4; w++)
		at = put(key, at, 4, p->src[w]);
	for (uint32_t w = 0; w < words4; w++)
		at = put(key, at, 4, p->dst[w]);
	at = put(key, at, 2, p->port[0]);
	put(key, at, 2, p->port[1]);
	assert_int_equal(
		rte_acl_classify_alg(ctx, &keys, &result, 1, 1, RTE_ACL_CLASSIFY_SCALAR), 0);
	return result;
}

static void drawn_rules_hold_as_in_rte_acl(void **state)
{
	static const uint32_t counts[] = {1, 40, 400};

	(void)state;
	for (uint32_t k = 0; k < 2 * MR_ARRAY_LEN(counts); k++) {
		uint32_t family = k % 2 == 0 ? 4 : 6, count = counts[k / 2], met = 0, seen = 0;
		struct rte_acl_ctx *ctx;
		void *table;

		for (uint32_t i = 0; i < count; i++)
			draw_rule(&rules[i], family, 2);
		table = build_drawn(count);
		ctx = acl_build(family, count);
		while (seen < 3000) {
			uint32_t wanted, got, counted;
			uint8_t frame[ROOM];
			struct drawn_packet p;
			uint32_t length = draw_packet(&p, frame);

			if (p.family != family || !p.ports)
				continue;
			seen++;
			wanted = acl_find(ctx, &p);
			got = find(table, frame, length, &counted);
			assert_int_equal(got == count ? 0 : got + 1, wanted);
			met += wanted != 0;
		}
		assert_true(count == 1 || met > 300);
		rte_acl_free(ctx);
		free(table);
	}
}

struct run {
	const struct mr_chain_dev *c;
	uint64_t counters[6];
	void *table;
};

static enum mr_flow run(struct run *r, uint8_t *frame, uint32_t length, struct mr_view *v)
{
	const struct mr_ctx ctx = {
		.params = r->c->params[0], .table = r->table, .counters = r->counters, .size = 1};

	*v = (struct mr_view){.frame = frame, .length = length, .room = ROOM};
	return mr_stage_filter(&ctx, v);
}

static void set(struct mr_chain_dev *c, const char *name, const char *value)
{
	struct mr_err err;

	if (mr_stage_param_set(mr_stage_find("filter"), name, value, NULL, c->params[0], &err) != 0)
		fail_msg("%s", err.msg);
}

static void what_is_met_is_done_and_counted(void **state)
{
	char text[] = "count proto udp\npermit src 10.0.0.0/8 dst_port 53\ndeny proto 17\n";
	uint8_t udp[] = "\2\0\0\0\0\1\2\0\0\0\0\2\x08\0\x45\0\0\x1c\0\0\0\0\x40\x11\0\0\x0a\0\0\1"
			"\x0a\0\0\2\0\7\0\x35\0\x08\0\0";
	uint8_t tagged[sizeof(udp) + 4 * (MR_WALK_VLANS + 1)];
	static const uint64_t wanted[] = {1, 1, 2, 3, 2, 2};
	struct mr_table_errors errors;
	struct mr_chain_dev c = {0};
	struct run r = {.c = &c};
	struct mr_view v;

	(void)state;
	mr_stage_param_defaults(mr_stage_find("filter"), c.params[0]);
	r.table = build(text, 3, &errors);
	assert_int_equal(run(&r, udp, sizeof(udp) - 1, &v), MR_NEXT);
	udp[37] = 54;
	assert_int_equal(run(&r, udp, sizeof(udp) - 1, &v), MR_STOP);
	assert_int_equal(v.arg, MR_REASON_policy);
	udp[23] = 1; /* ICMP, which meets none */
	assert_int_equal(run(&r, udp, sizeof(udp) - 1, &v), MR_STOP);
	set(&c, "otherwise", "permit");
	assert_int_equal(run(&r, udp, sizeof(udp) - 1, &v), MR_NEXT);
	assert_int_equal(run(&r, udp, sizeof(udp) - 2, &v), MR_STOP); /* cut off */
	assert_int_equal(v.arg, MR_REASON_malformed);
	memcpy(tagged, udp, 12); /* one tag more than is walked, and none of its IP */
	for (uint32_t i = 12; i < 12 + 4 * (MR_WALK_VLANS + 1); i += 4)
		memcpy(tagged + i, "\x81\0\0\1", 4);
	memcpy(tagged + 12 + 4 * (MR_WALK_VLANS + 1), udp + 12, sizeof(udp) - 12);
	assert_int_equal(run(&r, tagged, sizeof(tagged) - 1, &v), MR_STOP);
	assert_int_equal(v.arg, MR_REASON_malformed);
	udp[12] = 9;
	assert_int_equal(run(&r, udp, sizeof(udp) - 1, &v), MR_NEXT);
	set(&c, "non_ip", "deny");
	assert_int_equal(run(&r, udp, sizeof(udp) - 1, &v), MR_STOP);
	free(r.table);
	r.table = NULL; /* no rules at all */
	udp[12] = 8;
	assert_int_equal(run(&r, udp, sizeof(udp) - 1, &v), MR_NEXT);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(r.counters[i], wanted[i]);
}

/* Each frame ends where its memory does, so that what is beyond is seen by a sanitizer. */
static void no_byte_and_no_length_of_a_header_leads_out_of_the_frame(void **state)
{
	static const uint8_t values[] = {0, 1, 5, 0x0f, 0x44, 0x45, 0x7f, 0x80, 0xff};
	struct mr_chain_dev c = {0};
	struct run r = {.c = &c};

	(void)state;
	for (uint32_t i = 0; i < 300; i++)
		draw_rule(&rules[i], draw(8) == 0 ? 0 : 4 + 2 * draw(2), 3);
	r.table = build_drawn(300);
	mr_stage_param_defaults(mr_stage_find("filter"), c.params[0]);
	for (uint32_t k = 0; k < 12; k++) {
		uint8_t frame[ROOM];
		struct drawn_packet p;
		uint32_t whole = draw_packet(&p, frame);

		for (uint32_t length = MR_FRAME_MIN; length <= whole; length++)
			for (uint32_t at = 12; at < length; at++)
				for (size_t i = 0; i < sizeof(values); i++) {
					uint8_t *end = malloc(length);
					struct mr_view v;

					memcpy(end, frame, length);
					end[at] = values[i];
					(void)run(&r, end, length, &v);
					assert_true(v.verdict == MR_TX ||
						v.arg == MR_REASON_policy ||
						v.arg == MR_REASON_malformed);
					free(end);
				}
	}
	free(r.table);
}

static void every_mistake_of_a_file_is_told_with_its_line(void **state)
{
	char text[] = "# rules\n\nallow src any\npermit src 10.0.0.1/8\ndeny dst_port 70000\n"
		      "permit src\n  deny src 10.0.0.0/8 dst fd00::/8 # no such packet\r\n"
		      "permit src any src any\ndeny colour red proto 300\ncount\n";
	static const struct {
		uint32_t line;
		const char *words;
	} wanted[] = {{3, "permit, deny or count, not 'allow'"}, {4, "'10.0.0.1/8'"},
		{5, "'dst_port' takes a number or range from 0 to 65535"}, {6, "lacks its value"},
		{7, "two families"}, {8, "'src' is there twice"}, {9, "'colour' is none of"},
		{9, "'proto' takes tcp"}};
	struct mr_table_errors errors;
	char many[] = "deny\ndeny\ndeny\n";

	(void)state;
	free(build(text, 100, &errors));
	assert_int_equal(errors.count, MR_ARRAY_LEN(wanted));
	for (size_t i = 0; i < MR_ARRAY_LEN(wanted); i++) {
		assert_int_equal(errors.e[i].line, wanted[i].line);
		if (strstr(errors.e[i].message, wanted[i].words) == NULL)
			fail_msg("'%s' is not '%s'", errors.e[i].message, wanted[i].words);
	}
	free(build(many, 2, &errors));
	assert_int_equal(errors.count, 1);
	assert_int_equal(errors.e[0].line, 3);
}

int main(void)
{
	char *argv[] = {"test", "--no-huge", "--no-pci", "-m", "256", "-l", "0", "--file-prefix",
		"mr-test-filter", "--no-telemetry", "--no-shconf", "--log-level", "error", NULL};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drawn_rules_hold_as_one_by_one),
		cmocka_unit_test(drawn_rules_hold_as_in_rte_acl),
		cmocka_unit_test(what_is_met_is_done_and_counted),
		cmocka_unit_test(no_byte_and_no_length_of_a_header_leads_out_of_the_frame),
		cmocka_unit_test(every_mistake_of_a_file_is_told_with_its_line),
	};

	if (rte_eal_init(MR_ARRAY_LEN(argv) - 1, argv) < 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
