/* SPDX-License-Identifier: BSD-3-Clause */
/* match against a table of rules and frames, by the host form of the kernel's chain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_kernel.h"

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
};

static enum mr_flow run(const struct mr_chain_dev *c, const char *frame, uint32_t length,
	uint64_t counters[2], struct mr_view *v)
{
	static uint8_t bytes[256];
	const struct mr_ctx ctx = {.params = c->params[0], .counters = counters, .size = 1};

	memcpy(bytes, frame, length);
	*v = (struct mr_view){.frame = bytes, .length = length, .room = sizeof(bytes)};
	return mr_kernel_thread_stage(MR_STAGE_match, &ctx, v);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_match_what_they_say),
		cmocka_unit_test(both_outcomes_send_drop_or_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
