/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * match against a table of rules and frames, by the host form of the kernel's chain, and what
 * a NIC is told of the same rules.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_kernel.h"
#include "mr_match.h"

#include <errno.h>
#include <string.h>

/* Ethernet, tag 100 of priority 5, IPv4 10.0.0.2 to 10.0.0.1, UDP 1000 to 4789, VXLAN 0x123456. */
static const char vxlan[] =
	"\x02\0\0\0\0\1\x02\0\0\0\0\2\x81\0\xa0\x64\x08\0\x45\0\0\x4f\0\1\0\0\x40\x11\x66\x9b\x0a\0"
	"\0\2"
	"\x0a\0\0\1\x03\xe8\x12\xb5\0\x3b\x68\xcb\x08\0\0\0\x12\x34\x56\0\x02\0\0\0\0\3\x02\0\0\0\0"
	"\4"
	"\x08\0\x45\0\0\x1d\0\1\0\0\x40\x11\x6a\xbc\1\2\3\4\5\6\7\x08\0\x09\0\x35\0\x09\x7e\x8aq";
/* Ethernet, IPv6 fd00::2 to fd00::1, UDP 1000 to 7. */
static const char udp6[] = "\x02\0\0\0\0\1\x02\0\0\0\0\2\x86\xdd\x60\0\0\0\0\x0d\x11\x40\xfd\0\0\0"
			   "\0\0\0\0\0\0\0\0\0\0\0\2"
			   "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\x03\xe8\0\7\0\x0d\xbe\x0ehello";
/* ARP, untagged. */
static const char arp[] =
	"\x02\0\0\0\0\1\x02\0\0\0\0\2\x08\x06\0\1\x08\0\6\4\0\1\x02\0\0\0\0\2\x0a\0\0\2\0\0\0\0\0\0"
	"\x0a\0\0\1";

/* What is set, and which of vxlan (1), udp6 (2), arp (4) match. */
static const struct {
	const char *set[4];
	uint32_t match;
} rules[] = {
	{{NULL}, 7},
	{{"ethertype", "0x0800"}, 1},
	{{"ethertype", "0x0800-0x0806"}, 5},
	{{"ethertype", "0x8100"}, 0},
	{{"vlan", "100"}, 1},
	{{"vlan", "0-4095"}, 1},
	{{"vlan", "101-4095"}, 0},
	{{"src", "10.0.0.0/8"}, 1},
	{{"src", "0.0.0.0/0"}, 1},
	{{"src", "fd00::2"}, 2},
	{{"dst", "10.0.0.1"}, 1},
	{{"dst", "10.0.0.2"}, 0},
	{{"dst", "fd00::/127"}, 2},
	{{"protocol", "17"}, 3},
	{{"protocol", "0-16"}, 0},
	{{"src_port", "1000"}, 3},
	{{"src_port", "0-65535"}, 3},
	{{"dst_port", "7"}, 2},
	{{"dst_port", "8-4789"}, 1},
	{{"vni", "1193046"}, 1},
	{{"vni", "0-0x123455"}, 0},
	{{"dst_port", "7", "src", "fd00::/8"}, 2},
	{{"dst_port", "7", "src", "10.0.0.0/8"}, 0},
	{{"dst_port", "8-65534", "src_port", "3-1001"}, 1},
	{{"protocol", "6", "dst_port", "7"}, 0},
	{{"protocol", "17", "vni", "0x120000-0x13ffff"}, 1},
	{{"ethertype", "0x0806", "vlan", "0-4095"}, 0},
};

static enum mr_flow run(const struct mr_chain_dev *c, const char *frame, uint32_t length,
	uint64_t counters[2], struct mr_view *v)
{
	static uint8_t bytes[256];
	const struct mr_ctx ctx = {.params = c->params[0], .counters = counters, .size = 1};

	memcpy(bytes, frame, length);
	*v = (struct mr_view){.frame = bytes, .length = length, .room = sizeof(bytes)};
	return mr_stage_match(&ctx, v);
}

static void set(struct mr_chain_dev *c, const char *name, const char *value)
{
	struct mr_err err;

	if (mr_stage_param_set(mr_stage_find("match"), name, value, NULL, c->params[0], &err) != 0)
		fail_msg("%s", err.msg);
}

static void rules_match_what_they_say(void **state)
{
	static const struct {
		const char *bytes;
		uint32_t length;
	} frames[] = {{vxlan, sizeof(vxlan) - 1}, {udp6, sizeof(udp6) - 1}, {arp, sizeof(arp) - 1}};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rules); i++) {
		uint64_t counters[2] = {0};
		struct mr_chain_dev c = {0};
		uint32_t matched = 0;

		mr_stage_param_defaults(mr_stage_find("match"), c.params[0]);
		for (uint32_t k = 0; k < 4 && rules[i].set[k] != NULL; k += 2)
			set(&c, rules[i].set[k], rules[i].set[k + 1]);
		set(&c, "action", "drop");
		for (uint32_t k = 0; k < 3; k++) {
			struct mr_view v;

			if (run(&c, frames[k].bytes, frames[k].length, counters, &v) == MR_STOP)
				matched |= 1u << k;
			assert_int_equal(v.verdict, (matched >> k & 1) != 0 ? MR_DROP : MR_TX);
		}
		if (matched != rules[i].match)
			fail_msg("rule %zu (%s) matches %x", i,
				rules[i].set[0] != NULL ? rules[i].set[1] : "none", matched);
		assert_int_equal(counters[0], __builtin_popcount(matched));
		assert_int_equal(counters[1], 3 - __builtin_popcount(matched));
	}
}

static void both_outcomes_send_drop_or_go_on(void **state)
{
	static const char *const words[] = {"continue", "drop", "send"};

	(void)state;
	for (uint32_t i = 0; i < 9; i++)
		for (uint32_t k = 0; k < 2; k++) {
			uint32_t wanted = k == 0 ? i % 3 : i / 3;
			uint64_t counters[2] = {0};
			struct mr_chain_dev c = {0};
			struct mr_view v;

			mr_stage_param_defaults(mr_stage_find("match"), c.params[0]);
			set(&c, "ethertype", "0x0800");
			set(&c, "action", words[i % 3]);
			set(&c, "otherwise", words[i / 3]);
			set(&c, "port", "3");
			set(&c, "other_port", "5");
			assert_int_equal(run(&c, k == 0 ? vxlan : udp6, 67, counters, &v),
				wanted == 0 ? MR_NEXT : MR_STOP);
			assert_int_equal(v.verdict, wanted == 1 ? MR_DROP : MR_TX);
			assert_int_equal(v.port, wanted != 2 ? 0 : k == 0 ? 3 : 5);
			assert_int_equal(v.arg, wanted == 1 ? MR_REASON_policy : 0);
		}
}

/* What is in those frames, by hand. */
static const struct known {
	bool tagged, vxlan;
	uint32_t vlan, ethertype, ip, l4, protocol, src_port, dst_port, vni;
	struct mr_ip src, dst;
} known[] = {
	{true, true, 100, 0x0800, MR_MATCH_IP4, MR_MATCH_UDP, 17, 1000, 4789, 0x123456,
		{4, {0x0a000002}}, {4, {0x0a000001}}},
	{false, false, 0, 0x86dd, MR_MATCH_IP6, MR_MATCH_UDP, 17, 1000, 7, 0,
		{6, {0xfd000000, 0, 0, 2}}, {6, {0xfd000000, 0, 0, 1}}},
	{.ethertype = 0x0806},
};

static bool holds(struct mr_masked m, uint32_t x)
{
	return (x & m.mask) == m.value;
}

static bool nic_takes(const struct mr_match_rule *r, const struct known *k)
{
	if (r->tagged != k->tagged || !holds(r->ethertype, k->ethertype) ||
		(r->tagged && !holds(r->vlan, k->vlan)))
		return false;
	if (r->ip != 0 &&
		(r->ip != k->ip || !holds(r->protocol, k->protocol) ||
			!mr_prefix_has(&r->src, &k->src) || !mr_prefix_has(&r->dst, &k->dst)))
		return false;
	if (r->l4 != 0 &&
		(r->l4 != k->l4 || !holds(r->src_port, k->src_port) ||
			!holds(r->dst_port, k->dst_port)))
		return false;
	return r->vni.mask == 0 || (k->vxlan && holds(r->vni, k->vni));
}

/* The fields as a match holds them; names and values in turn up to NULL. */
static struct mr_match make(const char *const set_to[4])
{
	struct mr_chain_dev c = {0};
	struct mr_match m;

	mr_stage_param_defaults(mr_stage_find("match"), c.params[0]);
	for (uint32_t k = 0; k < 4 && set_to[k] != NULL; k += 2)
		set(&c, set_to[k], set_to[k + 1]);
	memcpy(&m, c.params[0], sizeof(m));
	return m;
}

static struct mr_match_settled settled(const char *const set_to[4])
{
	struct mr_match m = make(set_to);
	struct mr_match_settled s;
	const char *field;
	struct mr_err err;

	if (mr_match_settle(&m, &s, &field, &err) != 0)
		fail_msg("%s %s: %s", set_to[0], field, err.msg);
	return s;
}

static void a_nics_rules_take_what_the_stage_takes(void **state)
{
	(void)state;
	for (size_t i = 1; i < MR_ARRAY_LEN(rules); i++) {
		struct mr_match_settled s = settled(rules[i].set);
		uint32_t count = mr_match_rules(&s), matched = 0;

		for (uint32_t n = 0; n < count; n++) {
			struct mr_match_rule r;

			mr_match_rule(&s, n, &r);
			assert_true(r.l4 == 0 || r.ip != 0);
			for (uint32_t k = 0; k < 3; k++)
				matched |= (uint32_t)nic_takes(&r, &known[k]) << k;
		}
		if (matched != rules[i].match)
			fail_msg("rule %zu (%s %s) takes %x", i, rules[i].set[0], rules[i].set[1],
				matched);
	}
}

static void a_match_is_as_many_rules_as_kinds_and_blocks(void **state)
{
	static const struct {
		const char *set[4];
		uint32_t ip, l4, count;
	} rows[] = {
		{{"vlan", "7"}, 0, 0, 1},
		{{"ethertype", "0x88b5"}, 0, 0, 2}, /* with a tag and without */
		{{"src", "10.0.0.0/8"}, MR_MATCH_IP4, 0, 2},
		{{"dst", "::/0", "vlan", "7"}, MR_MATCH_IP6, 0, 1},
		{{"protocol", "1"}, 3, 0, 4},
		{{"dst_port", "53"}, 3, 3, 8},
		{{"dst_port", "53", "protocol", "17"}, 3, MR_MATCH_UDP, 4},
		{{"vni", "5"}, 3, MR_MATCH_UDP, 4},
		{{"vni", "0-0xffffff", "ethertype", "0x0800"}, MR_MATCH_IP4, MR_MATCH_UDP, 2},
		{{"dst_port", "1024-65535", "src", "10.0.0.1"}, MR_MATCH_IP4, 3, 2 * 2 * 6},
		{{"src_port", "1-65534", "dst_port", "1-65534"}, 3, 3, 8 * 30 * 30},
		{{"ethertype", "1-65534", "vlan", "1-4094"}, 0, 0, 30 * 22},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		struct mr_match_settled s = settled(rows[i].set);

		assert_int_equal(s.ip, rows[i].ip);
		assert_int_equal(s.l4, rows[i].l4);
		assert_int_equal(mr_match_rules(&s), rows[i].count);
	}
}

/* Every number of a range is in one block, and no other number is in any. */
static void blocks_of_a_range_are_its_numbers(void **state)
{
	static const char *const texts[] = {"0-65535", "1-65534", "7", "1000-1999", "65535", "0"};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(texts); i++) {
		const char *const set_to[4] = {"dst_port", texts[i], "vlan", "1"};
		struct mr_match_settled s = settled(set_to);

		s.ip = MR_MATCH_IP4;
		s.l4 = MR_MATCH_UDP;
		for (uint32_t x = 0; x < 65536; x++) {
			uint32_t in = 0;

			for (uint32_t n = 0; n < mr_match_rules(&s); n++) {
				struct mr_match_rule r;

				mr_match_rule(&s, n, &r);
				in += holds(r.dst_port, x);
			}
			if (in != (uint32_t)mr_range_has(&s.m.dst_port, x))
				fail_msg("%s has %u in %u blocks", texts[i], x, in);
		}
	}
}

static void fields_that_exclude_each_other_are_refused(void **state)
{
	static const struct {
		const char *set[4];
		const char *field, *says;
	} rows[] = {
		{{NULL}, "", "names no field"},
		{{"src", "any"}, "", "names no field"},
		{{"dst_port", "53", "ethertype", "0x0806"}, "dst_port", "leaves out 0x0800"},
		{{"src", "10.0.0.0/8", "ethertype", "0x86dd"}, "src", "is an IPv4 prefix"},
		{{"src", "10.0.0.0/8", "dst", "fd00::/8"}, "dst", "is an IPv6 prefix"},
		{{"dst_port", "53", "protocol", "1"}, "dst_port", "leaves out 17 (UDP) and 6"},
		{{"src_port", "0-65535", "protocol", "18-255"}, "src_port", "of UDP and TCP"},
		{{"vni", "5", "protocol", "6"}, "vni", "carried by UDP"},
		{{"vni", "5", "dst_port", "4790-65535"}, "vni", "UDP port 4789"},
		{{"protocol", "17", "ethertype", "0x0801-0x86dc"}, "protocol", "of IP packets"},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		struct mr_match m = make(rows[i].set);
		struct mr_match_settled s;
		const char *field = NULL;
		struct mr_err err;

		assert_int_equal(mr_match_settle(&m, &s, &field, &err), -EINVAL);
		assert_string_equal(field, rows[i].field);
		if (strstr(err.msg, rows[i].says) == NULL)
			fail_msg("row %zu: %s", i, err.msg);
	}
}

static void matches_overlap_if_one_frame_can_be_in_both(void **state)
{
	static const struct {
		const char *a[4], *b[4];
		bool overlap;
	} rows[] = {
		{{"vlan", "1-5"}, {"vlan", "5-9"}, true},
		{{"vlan", "1-5"}, {"vlan", "6-9"}, false},
		{{"vlan", "1"}, {"dst_port", "53"}, true},
		{{"ethertype", "0x0800"}, {"dst_port", "53"}, true},
		{{"ethertype", "0x0806"}, {"dst_port", "53"}, false},
		{{"ethertype", "0x0800"}, {"dst", "fd00::/8"}, false},
		{{"src", "10.0.0.0/8"}, {"src", "10.1.0.0/16"}, true},
		{{"src", "10.0.0.0/16"}, {"src", "10.1.0.0/16"}, false},
		{{"src", "10.0.0.0/8"}, {"dst", "10.0.0.0/8"}, true},
		{{"src", "10.0.0.0/8"}, {"src", "fd00::/8"}, false},
		{{"dst_port", "53"}, {"src_port", "53"}, true},
		{{"dst_port", "53"}, {"protocol", "1"}, false},
		{{"dst_port", "53", "protocol", "6"}, {"dst_port", "53", "protocol", "17"}, false},
		{{"dst_port", "53"}, {"protocol", "6-16"}, true},
		{{"vni", "5"}, {"dst_port", "4789"}, true},
		{{"vni", "5"}, {"dst_port", "4788"}, false},
		{{"vni", "5"}, {"vni", "6"}, false},
		{{"vni", "5"}, {"dst_port", "4789", "protocol", "6"}, false},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		struct mr_match_settled a = settled(rows[i].a), b = settled(rows[i].b);

		if (mr_match_overlaps(&a, &b) != rows[i].overlap ||
			mr_match_overlaps(&b, &a) != rows[i].overlap)
			fail_msg("row %zu is wrong", i);
		assert_true(mr_match_overlaps(&a, &a));
	}
}

static void what_no_match_names_is_dropped_under_its_own_reason(void **state)
{
	uint64_t counters[2] = {0};
	struct mr_chain_dev c = {0};
	struct mr_view v;

	(void)state;
	mr_stage_param_defaults(mr_stage_find("match"), c.params[0]);
	set(&c, "vlan", "100");
	set(&c, "otherwise", "drop");
	set(&c, "reason", "unmatched");
	assert_int_equal(run(&c, vxlan, sizeof(vxlan) - 1, counters, &v), MR_NEXT);
	assert_int_equal(run(&c, udp6, sizeof(udp6) - 1, counters, &v), MR_STOP);
	assert_int_equal(v.verdict, MR_DROP);
	assert_int_equal(v.arg, MR_REASON_unmatched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_match_what_they_say),
		cmocka_unit_test(both_outcomes_send_drop_or_go_on),
		cmocka_unit_test(what_no_match_names_is_dropped_under_its_own_reason),
		cmocka_unit_test(a_nics_rules_take_what_the_stage_takes),
		cmocka_unit_test(a_match_is_as_many_rules_as_kinds_and_blocks),
		cmocka_unit_test(blocks_of_a_range_are_its_numbers),
		cmocka_unit_test(fields_that_exclude_each_other_are_refused),
		cmocka_unit_test(matches_overlap_if_one_frame_can_be_in_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
