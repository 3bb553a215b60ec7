/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fields, header walk and checksums. Frames end at a page that cannot be accessed and begin
 * behind one, so that a byte beyond either end is a crash; the packets were made by scapy and
 * their offsets counted by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_stage.h"

#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u

static uint8_t *page; /* one page between two that trap */

static int map_page(void **state)
{
	uint8_t *p = mmap(NULL, 3 * (size_t)PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	if (p == MAP_FAILED)
		return -1;
	page = p + PAGE;
	return mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

/* The frame's last byte is the page's last. */
static struct mr_view at_end(const uint8_t *bytes, uint32_t length)
{
	struct mr_view v = {.frame = page + PAGE - length,
		.length = length,
		.head = PAGE - length,
		.room = PAGE};

	memset(page, 0xee, PAGE);
	memcpy(v.frame, bytes, length);
	return v;
}

static struct mr_view at_start(const uint8_t *bytes, uint32_t length)
{
	struct mr_view v = {.frame = page, .length = length, .head = 0, .room = PAGE};

	memset(page, 0xee, PAGE);
	memcpy(v.frame, bytes, length);
	return v;
}

static uint32_t digit(char c)
{
	return (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static uint32_t unhex(const char *text, uint8_t *ret_bytes)
{
	uint32_t n = 0;

	for (; text[2 * n] != '\0'; n++)
		ret_bytes[n] = (uint8_t)(digit(text[2 * n]) << 4 | digit(text[2 * n + 1]));
	return n;
}

static const struct vector {
	const char *name;
	struct mr_headers h; /* h.end 0: the frame's */
	bool sums;           /* its checksums are right */
	const char *bytes;
} vectors[] = {
	{"arp", {MR_HAS_ARP, 0x806, 0, 0, 14, 0, 0, 0, 0}, false,
		"0200000000010200000000020806000108000604000102000000"
		"00020a0000020000000000000a000001"},
	{"udp", {MR_HAS_IPV4 | MR_HAS_UDP, 0x800, 0, 0, 14, 17, 34, 42, 47}, true,
		"02000000000102000000000208004500002100010000401166c90a0000020a000001"
		"03e80007000da41068656c6c6f"},
	{"udp with padding", {MR_HAS_IPV4 | MR_HAS_UDP, 0x800, 0, 0, 14, 17, 34, 42, 47}, true,
		"02000000000102000000000208004500002100010000401166c90a0000020a000001"
		"03e80007000da41068656c6c6feeeeeeeeeeeeeeeeeeeeeeeeee"},
	{"tcp with options under two tags",
		{MR_HAS_VLAN | MR_HAS_IPV4 | MR_HAS_OPTIONS | MR_HAS_TCP, 0x800, 0xa064, 2, 22, 6,
			46, 70, 71},
		true,
		"0200000000010200000000028100a06481000007080046000031000100004006d1bf0a000002"
		"0a0000019404000003e80050000000000000000060022000e7ea0000020405b478"},
	{"icmp", {MR_HAS_IPV4 | MR_HAS_ICMP, 0x800, 0, 0, 14, 1, 34, 42, 45}, true,
		"02000000000102000000000208004500001f00010000400166db0a0000020a000001"
		"0800339a00010002616263"},
	{"first fragment",
		{MR_HAS_IPV4 | MR_HAS_FRAGMENT | MR_HAS_UDP, 0x800, 0, 0, 14, 17, 34, 42, 47},
		false,
		"02000000000102000000000208004500002100012000401146c90a0000020a000001"
		"03e8000707d0123468656c6c6f"},
	{"later fragment",
		{MR_HAS_IPV4 | MR_HAS_FRAGMENT | MR_HAS_LATER, 0x800, 0, 0, 14, 17, 34, 0, 47},
		false,
		"02000000000102000000000208004500002100010064401166650a0000020a000001"
		"03e80007000d000068656c6c6f"},
	{"udp over ipv6", {MR_HAS_IPV6 | MR_HAS_UDP, 0x86dd, 0, 0, 14, 17, 54, 62, 67}, true,
		"02000000000102000000000286dd60000000000d1140fd000000000000000000000000000002"
		"fd00000000000000000000000000000103e80007000dbe0e68656c6c6f"},
	{"icmp behind two extension headers",
		{MR_HAS_IPV6 | MR_HAS_OPTIONS | MR_HAS_ICMP6, 0x86dd, 0, 0, 14, 58, 70, 78, 82},
		true,
		"02000000000102000000000286dd60000000001c0040fd000000000000000000000000000002"
		"fd0000000000000000000000000000013c000502000001003a00010400000000"
		"8000c0ea0001000261626364"},
	{"first fragment of ipv6",
		{MR_HAS_IPV6 | MR_HAS_OPTIONS | MR_HAS_FRAGMENT | MR_HAS_UDP, 0x86dd, 0, 0, 14, 17,
			62, 70, 75},
		false,
		"02000000000102000000000286dd6000000000152c40fd000000000000000000000000000002"
		"fd000000000000000000000000000001110000010000000003e8000707d01234"
		"68656c6c6f"},
	{"later fragment of ipv6",
		{MR_HAS_IPV6 | MR_HAS_OPTIONS | MR_HAS_FRAGMENT | MR_HAS_LATER, 0x86dd, 0, 0, 14,
			17, 62, 0, 70},
		false,
		"02000000000102000000000286dd6000000000102c40fd000000000000000000000000000002"
		"fd00000000000000000000000000000111000048000000000000000000000000"},
	{"vxlan", {MR_HAS_IPV4 | MR_HAS_UDP | MR_HAS_VXLAN, 0x800, 0, 0, 14, 17, 34, 42, 93}, true,
		"02000000000102000000000208004500004f000100004011669b0a0000020a000001"
		"03e812b5003b68cb08000000123456000200000000030200000000040800"
		"4500001d0001000040116abc01020304050607080009003500097e8a71"},
	{"length instead of a type", {0, 0x26, 0, 0, 14, 0, 0, 0, 0}, false,
		"02000000000102000000000200264242030000000000"},
};

static void check_headers(const char *name, const struct mr_headers *h, const struct mr_headers *w)
{
	if (memcmp(h, w, sizeof(*h)) == 0)
		return;
	fail_msg("%s: has %x type %x vlan %x/%u l3 %u protocol %u l4 %u payload %u end %u", name,
		h->has, h->ethertype, h->vlan, h->vlans, h->l3, h->protocol, h->l4, h->payload,
		h->end);
}

static void a_walk_finds_every_header(void **state)
{
	uint8_t bytes[PAGE];

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(vectors); i++) {
		struct mr_headers h, want = vectors[i].h;
		struct mr_view v = at_end(bytes, unhex(vectors[i].bytes, bytes));

		want.end = want.end != 0 ? want.end : v.length;
		mr_walk(&v, 0, &h);
		check_headers(vectors[i].name, &h, &want);
		if ((h.has & MR_HAS_IPV4) != 0)
			assert_true(mr_sum_ipv4_ok(&v, &h));
		if (h.payload != 0)
			assert_int_equal(mr_sum_transport_ok(&v, &h), vectors[i].sums);
	}
}

static void a_walk_from_the_inner_frame_finds_its_headers(void **state)
{
	const struct mr_headers want = {MR_HAS_IPV4 | MR_HAS_UDP, 0x800, 0, 0, 64, 17, 84, 92, 93};
	uint8_t bytes[PAGE];
	struct mr_headers h;

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(vectors); i++) {
		struct mr_view v = at_end(bytes, unhex(vectors[i].bytes, bytes));

		mr_walk(&v, 0, &h);
		if ((h.has & MR_HAS_VXLAN) == 0)
			continue;
		assert_int_equal(mr_get_be(&v, h.payload + 4, 3), 0x123456);
		mr_walk(&v, mr_vxlan_inner(&h), &h);
		check_headers("inner", &h, &want);
		assert_true(mr_sum_transport_ok(&v, &h));
		return;
	}
	fail();
}

/* What holds for every walk of anything. */
static void check_sound(const struct mr_view *v)
{
	const uint32_t transport = MR_HAS_UDP | MR_HAS_TCP | MR_HAS_ICMP | MR_HAS_ICMP6;
	const uint32_t ip = MR_HAS_IPV4 | MR_HAS_IPV6;
	struct mr_headers h;

	mr_walk(v, 0, &h);
	assert_true(h.end <= v->length && h.vlans <= MR_WALK_VLANS && h.vlan <= UINT16_MAX);
	assert_true(h.l3 == 14 + 4 * h.vlans);
	assert_true((h.has & ip) != ip);
	if (h.l4 != 0)
		assert_true((h.has & ip) != 0 && h.l3 + 20 <= h.l4 && h.l4 <= h.end);
	if ((h.has & transport) != 0)
		assert_true(h.payload >= h.l4 + 8 && h.payload <= h.end);
	else
		assert_int_equal(h.payload, 0);
	if ((h.has & MR_HAS_LATER) != 0)
		assert_true((h.has & MR_HAS_FRAGMENT) != 0 && (h.has & transport) == 0);
	if ((h.has & MR_HAS_MALFORMED) != 0)
		assert_int_equal(h.has & (transport | MR_HAS_ARP), 0);
	if ((h.has & MR_HAS_VXLAN) != 0) {
		assert_true(mr_has(v, mr_vxlan_inner(&h), MR_FRAME_MIN));
		mr_walk(v, mr_vxlan_inner(&h), &h);
		assert_true(h.end <= v->length);
	}
	(void)mr_sum_transport_ok(v, &h);
}

static void a_frame_cut_anywhere_is_never_left(void **state)
{
	uint8_t bytes[PAGE];

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(vectors); i++) {
		uint32_t whole = unhex(vectors[i].bytes, bytes);

		for (uint32_t n = MR_FRAME_MIN; n < whole; n++) {
			struct mr_view v = at_end(bytes, n);
			struct mr_headers h;

			check_sound(&v);
			mr_walk(&v, 0, &h);
			/* Padding and 802.3 may be cut; anything else is seen. */
			if (vectors[i].h.end != 0 ? n < vectors[i].h.end
						  : (vectors[i].h.has & MR_HAS_ARP) != 0)
				assert_true((h.has & MR_HAS_MALFORMED) != 0 ||
					(h.ethertype != 0x800 && h.ethertype != 0x86dd));
		}
	}
}

static void every_value_of_every_byte_is_survived(void **state)
{
	uint8_t bytes[PAGE];

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(vectors); i++) {
		uint32_t n = unhex(vectors[i].bytes, bytes);
		struct mr_view v = at_end(bytes, n);

		for (uint32_t k = 12; k < n; k++) {
			for (uint32_t x = 0; x < 256; x++) {
				v.frame[k] = (uint8_t)x;
				check_sound(&v);
			}
			/* Lengths are 16 bits, mostly. */
			if (k + 1 < n)
				v.frame[k + 1] ^= 0xff;
			check_sound(&v);
			memcpy(v.frame, bytes, n);
		}
	}
}

static void lengths_that_contradict_are_malformed(void **state)
{
	static const struct {
		uint32_t vector, at, n, value;
	} lies[] = {
		{1, 14, 1, 0x44}, {1, 14, 1, 0x65}, /* header of 16 bytes; version 6 */
		{1, 16, 2, 19}, {1, 16, 2, 34},     /* total below the header; beyond the frame */
		{1, 38, 2, 7}, {1, 38, 2, 14},      /* UDP below its header; beyond the datagram */
		{1, 16, 2, 27},                     /* no room for a UDP header */
		{3, 58, 1, 0x40}, {3, 58, 1, 0x70}, /* TCP of 16 bytes; beyond the datagram */
		{4, 16, 2, 27},                     /* 7 bytes of ICMP */
		{7, 14, 1, 0x45}, {7, 18, 2, 14},   /* version 4; beyond the frame */
		{7, 18, 2, 7},                      /* no room for a UDP header */
		{8, 55, 1, 4},                      /* a hop-by-hop header beyond the datagram */
		{9, 18, 2, 7},                      /* half a fragment header */
	};
	uint8_t bytes[PAGE];

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(lies); i++) {
		struct mr_view v = at_end(bytes, unhex(vectors[lies[i].vector].bytes, bytes));
		struct mr_headers h;

		mr_put_be(&v, lies[i].at, lies[i].n, lies[i].value);
		mr_walk(&v, 0, &h);
		if ((h.has & MR_HAS_MALFORMED) == 0)
			fail_msg("%s: %u at %u passes", vectors[lies[i].vector].name, lies[i].value,
				lies[i].at);
	}
}

static void tags_and_extension_headers_have_a_limit(void **state)
{
	uint8_t bytes[PAGE] = {0};
	struct mr_headers h;
	struct mr_view v;

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		memcpy(bytes + 12 + 4 * i, "\x88\xa8", 2);
	v = at_end(bytes, 60);
	mr_walk(&v, 0, &h);
	assert_int_equal(h.vlans, MR_WALK_VLANS);
	assert_int_equal(h.ethertype, MR_ETHER_SERVICE);
	assert_int_equal(h.has, MR_HAS_VLAN | MR_HAS_MALFORMED);
	v = at_end(bytes, 17); /* in the first */
	mr_walk(&v, 0, &h);
	assert_int_equal(h.has, MR_HAS_MALFORMED);
	for (uint32_t n = MR_WALK_HEADERS; n < MR_WALK_HEADERS + 2; n++) {
		memset(bytes, 0, sizeof(bytes));
		memcpy(bytes + 12, "\x86\xdd\x60", 3);
		bytes[19] = (uint8_t)(8 * n);
		bytes[54 + 8 * (n - 1)] = MR_IP_NONE;
		v = at_end(bytes, 54 + 8 * n);
		mr_walk(&v, 0, &h);
		assert_int_equal((h.has & MR_HAS_MALFORMED) != 0, n > MR_WALK_HEADERS);
		assert_int_equal(h.l4, n > MR_WALK_HEADERS ? 0 : 54 + 8 * n);
	}
}

static struct mr_headers walk_with(uint32_t vector, uint32_t at, uint32_t n, uint64_t value)
{
	uint8_t bytes[PAGE];
	struct mr_view v = at_end(bytes, unhex(vectors[vector].bytes, bytes));
	struct mr_headers h;

	mr_put_be(&v, at, n, value);
	mr_walk(&v, 0, &h);
	return h;
}

static void near_relatives_are_told_apart(void **state)
{
	struct mr_headers h;

	(void)state;
	/* The highest bit of a fragment's offset. */
	h = walk_with(6, 20, 2, 0x1000);
	assert_int_equal(h.has, MR_HAS_IPV4 | MR_HAS_FRAGMENT | MR_HAS_LATER);
	/* VXLAN's port without the I flag, and with no room for a frame. */
	assert_int_equal(walk_with(11, 42, 1, 0xf7).has, MR_HAS_IPV4 | MR_HAS_UDP);
	assert_int_equal(walk_with(11, 38, 2, 29).has, MR_HAS_IPV4 | MR_HAS_UDP);
	assert_int_equal(walk_with(11, 38, 2, 30).has, MR_HAS_IPV4 | MR_HAS_UDP | MR_HAS_VXLAN);
	/* An authentication header counts in 4 bytes, the first two not (RFC 4302 2.2). */
	h = walk_with(8, 20, 1, MR_IP_AH);
	assert_int_equal(h.has, MR_HAS_IPV6 | MR_HAS_OPTIONS | MR_HAS_ICMP6);
	assert_int_equal(h.l4, 70);
	/* ICMP of the other IP. */
	assert_int_equal(walk_with(4, 23, 1, MR_IP_ICMP6).has, MR_HAS_IPV4);
	assert_int_equal(walk_with(8, 62, 1, MR_IP_ICMP).has, MR_HAS_IPV6 | MR_HAS_OPTIONS);
}

static void fields_are_read_and_written_in_both_orders(void **state)
{
	static const uint8_t bytes[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	struct mr_view v = at_end(bytes, sizeof(bytes));

	(void)state;
	assert_true(mr_get_be(&v, 0, 8) == 0x0102030405060708);
	assert_true(mr_get_le(&v, 8, 8) == 0x100f0e0d0c0b0a09);
	assert_int_equal(mr_get_be(&v, 1, 3), 0x020304);
	assert_int_equal(mr_get_le(&v, 1, 3), 0x040302);
	assert_int_equal(mr_get_u8(&v, 15), 16);
	assert_int_equal(mr_get_be16(&v, 14), 0x0f10);
	assert_int_equal(mr_get_be32(&v, 12), 0x0d0e0f10);
	mr_put_be(&v, 0, 8, 0x8877665544332211);
	mr_put_le(&v, 8, 8, 0x8877665544332211);
	assert_memory_equal(
		v.frame, "\x88\x77\x66\x55\x44\x33\x22\x11\x11\x22\x33\x44\x55\x66\x77\x88", 16);
	mr_put_be16(&v, 1, 0xffff0102);
	assert_memory_equal(v.frame, "\x88\x01\x02\x55", 4);
	mr_swap(&v, 0, 4, 2);
	assert_memory_equal(v.frame, "\x44\x33\x02\x55\x88\x01", 6);
	assert_true(mr_equal(&v, 14, (const uint8_t *)"\x77\x88", 2));
	assert_false(mr_equal(&v, 14, (const uint8_t *)"\x77\x87", 2));
}

static void no_field_is_beyond_the_frame(void **state)
{
	static const uint32_t far[] = {UINT32_MAX, UINT32_MAX - 1, UINT32_MAX - 8, 1u << 31, 65536};
	uint8_t bytes[20], before[PAGE];
	struct mr_view v[2];

	(void)state;
	memset(bytes, 0x55, sizeof(bytes));
	v[1] = at_start(bytes, sizeof(bytes));
	v[0] = at_end(bytes, sizeof(bytes));
	memcpy(v[1].frame, bytes, sizeof(bytes));
	memcpy(before, page, PAGE);
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t n = 1; n <= 8; n++)
			for (uint32_t k = 0; k < n + 5; k++) {
				uint32_t at = k < n ? 20 - n + 1 + k : far[k - n];

				assert_true(mr_get_be(&v[i], at, n) == 0);
				assert_true(mr_get_le(&v[i], at, n) == 0);
				assert_int_equal(mr_sum_bytes(&v[i], at, n), 0);
				assert_false(mr_equal(&v[i], at, bytes, n));
				mr_put_be(&v[i], at, n, 0);
				mr_put_le(&v[i], at, n, 0);
				mr_put_bytes(&v[i], at, before, n);
				mr_swap(&v[i], at, 0, n);
				mr_swap(&v[i], 0, at, n);
			}
	assert_memory_equal(page, before, PAGE);
	assert_true(mr_has(&v[0], 20, 0) && mr_has(&v[0], 0, 20));
	assert_false(mr_has(&v[0], 21, 0) || mr_has(&v[0], 0, 21));
}

static void head_and_end_move_within_the_buffer(void **state)
{
	uint8_t bytes[60] = {0};
	struct mr_view v = at_end(bytes, sizeof(bytes));
	uint8_t *frame = v.frame;

	(void)state;
	assert_false(mr_view_push(&v, v.head + 1));
	assert_false(mr_view_resize(&v, 61));
	assert_false(mr_view_pull(&v, 47));
	assert_false(mr_view_pull(&v, UINT32_MAX));
	assert_false(mr_view_resize(&v, 13));
	assert_true(v.frame == frame && v.length == 60 && v.head == PAGE - 60);
	assert_true(mr_view_pull(&v, 46));
	assert_true(v.frame == frame + 46 && v.length == 14 && v.head == PAGE - 14);
	assert_true(mr_view_push(&v, PAGE - 14));
	assert_true(v.frame == page && v.length == PAGE && v.head == 0);
	assert_true(mr_view_resize(&v, 14));
	assert_int_equal(v.length, 14);
	v.room = 70000;
	assert_false(mr_view_resize(&v, 65536));
	v.head = 65530;
	v.length = 100;
	assert_false(mr_view_push(&v, 65500));
}

/* RFC 1071 section 3's example, and an update for every pair of words around the carries. */
static void checksums_are_those_of_the_rfcs(void **state)
{
	static const uint32_t words[] = {0, 1, 0x7fff, 0x8000, 0xfffe, 0xffff, 0x5555, 0x1234};
	static const uint8_t example[16] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7, 0xab};
	struct mr_view v = at_end(example, sizeof(example));

	(void)state;
	assert_int_equal(mr_sum_fold(mr_sum_bytes(&v, 0, 8)), 0xddf2);
	assert_int_equal(mr_sum_fold(mr_sum_bytes(&v, 0, 9)), 0x88f3);
	assert_int_equal(mr_sum_end(0xffffffffffffffff), 0);
	/* RFC 1624 section 4's example. */
	assert_int_equal(mr_sum_replace(0xdd2f, 0x5555, 0x3285), 0x0000);
	for (uint32_t i = 0; i < 8; i++)
		for (uint32_t k = 0; k < 8; k++)
			for (uint32_t j = 0; j < 8; j++) {
				uint32_t was = words[i] << 16 | words[j];
				uint32_t is = words[j] << 16 | words[k];

				assert_int_equal(mr_sum_replace(mr_sum_end(words[i] + 0x4500),
							 words[i], words[k]),
					mr_sum_end(words[k] + 0x4500));
				assert_int_equal(
					mr_sum_replace_32(
						mr_sum_end(words[i] + words[j] + 0x4500), was, is),
					mr_sum_end(words[j] + words[k] + 0x4500));
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_walk_finds_every_header),
		cmocka_unit_test(a_walk_from_the_inner_frame_finds_its_headers),
		cmocka_unit_test(a_frame_cut_anywhere_is_never_left),
		cmocka_unit_test(every_value_of_every_byte_is_survived),
		cmocka_unit_test(lengths_that_contradict_are_malformed),
		cmocka_unit_test(tags_and_extension_headers_have_a_limit),
		cmocka_unit_test(near_relatives_are_told_apart),
		cmocka_unit_test(fields_are_read_and_written_in_both_orders),
		cmocka_unit_test(no_field_is_beyond_the_frame),
		cmocka_unit_test(head_and_end_move_within_the_buffer),
		cmocka_unit_test(checksums_are_those_of_the_rfcs),
	};

	return cmocka_run_group_tests(tests, map_page, NULL);
}
