/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is read of the formats of ingest. Packets are written by hand from the standards; what
 * they say was counted by hand too.
 */
#include "format_fixture.h"

#define SEEN_BYTES (offsetof(struct mr_seen, end) + sizeof(uint32_t)) /* and padding */

/* What a frame of `length` bytes says; 0: it is of no row. */
static int look(
	const struct mr_format_table *t, uint8_t *frame, uint32_t length, struct mr_seen *ret_seen)
{
	struct mr_view v = {.frame = frame, .length = length, .room = length};
	const struct mr_format_row *row;
	struct mr_headers h;

	mr_walk(&v, 0, &h);
	row = mr_format_find(t, &v, &h);
	memset(ret_seen, 0xee, sizeof(*ret_seen)); /* what is not written shows */
	if (row == NULL)
		return 0;
	mr_format_read(row, &v, &h, ret_seen);
	if (ret_seen->payload > ret_seen->end || ret_seen->end > h.end)
		fail_msg("%u .. %u of %u", ret_seen->payload, ret_seen->end, h.end);
	if (ret_seen->state != MR_SEEN_MALFORMED && ret_seen->modulus != 0)
		assert_true(ret_seen->seq < ret_seen->modulus);
	return 1;
}

/*
 * A packet and what it says. Offsets are from the datagram's first byte. `least` bytes of it are
 * the fewest that are not malformed, and with `named` bytes the id is known.
 */
struct vector {
	const char *name, *row;
	uint32_t least, named;
	struct mr_seen want;
	const char *bytes;
};

#define VDIF_EPOCH 709948800u /* 2000-01-01 to 2022-07-01 */

static const struct vector vectors[] = {
	{"vrt with all its parts", "vrt udp 7", 40, 8,
		{.id = {0x12345678, 1},
			.seq = 5,
			.units = 1,
			.modulus = 16,
			.time_s = 0x65000000,
			.time_ps = 999999999999,
			.format = MR_FORMAT_vrt,
			.track = MR_TRACK_CLOCK,
			.flags = MR_SEEN_TIME,
			.payload = 28,
			.end = 36},
		"1c65000a 12345678 006a621e 00000000 65000000 000000e8d4a50fff"
		"0102030405060708 40040000"},
	{"vrt without a stream", "vrt udp 7", 8, 4,
		{.seq = 15,
			.units = 1,
			.modulus = 16,
			.format = MR_FORMAT_vrt,
			.payload = 4,
			.end = 8},
		"000f0002 01020304"},
	{"vrt extension data without a stream, but with a trailer", "vrt udp 7", 8, 4,
		{.id = {0, 2},
			.units = 1,
			.modulus = 16,
			.format = MR_FORMAT_vrt,
			.payload = 4,
			.end = 4},
		"24000002 80000000"},
	{"vrt that counts samples of a second", "vrt udp 7", 20, 8,
		{.id = {7, 3},
			.units = 1,
			.modulus = 16,
			.time_s = 9,
			.time_ps = 0x0102030405060708,
			.format = MR_FORMAT_vrt,
			.track = MR_TRACK_CLOCK,
			.flags = MR_SEEN_SAMPLES,
			.payload = 20,
			.end = 20},
		"30900005 00000007 00000009 0102030405060708"},
	{"vrt with a free-running count", "vrt udp 7", 16, 8,
		{.id = {7, 1},
			.units = 1,
			.modulus = 16,
			.time_ps = UINT64_MAX,
			.format = MR_FORMAT_vrt,
			.track = MR_TRACK_CLOCK,
			.flags = MR_SEEN_TICKS,
			.payload = 16,
			.end = 16},
		"10300004 00000007 ffffffffffffffff"},
	{"vrt with a part of no second", "vrt udp 7", 16, 8,
		{.id = {7, 1},
			.units = 1,
			.modulus = 16,
			.format = MR_FORMAT_vrt,
			.payload = 16,
			.end = 16},
		"10200004 00000007 ffffffffffffffff"},
	{"vrt with seconds alone", "vrt udp 7", 12, 8,
		{.id = {7, 1},
			.units = 1,
			.modulus = 16,
			.time_s = 0xffffffff,
			.format = MR_FORMAT_vrt,
			.flags = MR_SEEN_TIME,
			.payload = 12,
			.end = 12},
		"10400003 00000007 ffffffff"},
	{"vrt context, whose bit 26 is of no trailer", "vrt udp 7", 24, 8,
		{.id = {0xffffffff, 4},
			.seq = 1,
			.units = 1,
			.modulus = 16,
			.time_s = 1,
			.time_ps = 2,
			.format = MR_FORMAT_vrt,
			.flags = MR_SEEN_TIME,
			.payload = 20,
			.end = 24},
		"44610006 ffffffff 00000001 0000000000000002 00000000"},
	{"vrt command", "vrt udp 7", 8, 8,
		{.id = {1, 6},
			.seq = 2,
			.units = 1,
			.modulus = 16,
			.format = MR_FORMAT_vrt,
			.payload = 8,
			.end = 8},
		"64020002 00000001"},
	{"spead", "spead udp 7148", 56, 8,
		{.seq = 0xfffffffffffe,
			.units = 8,
			.modulus = 1ull << 48,
			.heap_at = 4096,
			.heap_bytes = 4104,
			.format = MR_FORMAT_spead,
			.track = MR_TRACK_HEAP,
			.payload = 48,
			.end = 56},
		"53040206 00000005 8001fffffffffffe 8002000000001008 8003000000001000"
		"8004000000000008 8006000000000003 0102030405060708"},
	{"spead that ends its stream, of unknown length", "spead udp 7148", 48, 8,
		{.seq = 1,
			.modulus = 1ull << 48,
			.heap_at = 0xffffffffffff,
			.format = MR_FORMAT_spead,
			.track = MR_TRACK_HEAP,
			.flags = MR_SEEN_ENDS,
			.payload = 48,
			.end = 48},
		"53040206 00000005 8006000000000002 8004000000000000 8003ffffffffffff"
		"0001000000000005 8001000000000001"},
	{"vdif", "vdif udp 7", 48, 16,
		{.id = {0x4142, 0x355},
			.seq = 0xabcdef,
			.units = 1,
			.modulus = 1 << 24,
			.time_s = VDIF_EPOCH + 0x01234567,
			.format = MR_FORMAT_vdif,
			.track = MR_TRACK_SECOND,
			.flags = MR_SEEN_TIME,
			.payload = 32,
			.end = 48},
		"67452301 efcdab2d 06000020 42415587 00000000 00000000 00000000 00000000"
		"0102030405060708090a0b0c0d0e0f10"},
	{"vdif with a legacy header", "vdif udp 7", 24, 16,
		{.id = {1, 0},
			.units = 1,
			.modulus = 1 << 24,
			.time_s = 15724800, /* 182 days of a leap year */
			.format = MR_FORMAT_vdif,
			.track = MR_TRACK_SECOND,
			.flags = MR_SEEN_TIME,
			.payload = 16,
			.end = 24},
		"00000040 00000001 03000020 01000000 0102030405060708"},
	{"vdif that is invalid", "vdif udp 7", 32, 16,
		{.id = {2, 1},
			.seq = 3,
			.units = 1,
			.modulus = 1 << 24,
			.time_s = 31622400 + 1, /* 366 days */
			.format = MR_FORMAT_vdif,
			.state = MR_SEEN_INVALID,
			.track = MR_TRACK_SECOND,
			.flags = MR_SEEN_TIME,
			.payload = 32,
			.end = 32},
		"01000080 03000002 04000020 02000100 00000000 00000000 00000000 00000000"},
	{"vdif that fills a gap", "vdif udp 7", 40, UINT32_MAX,
		{.units = 1,
			.modulus = 1 << 24,
			.format = MR_FORMAT_vdif,
			.state = MR_SEEN_INVALID,
			.track = MR_TRACK_SECOND,
			.flags = MR_SEEN_TIME,
			.payload = 32,
			.end = 40},
		"00000080 00000000 05000000 00000000 44332211 44332211 44332211 44332211"
		"4433221144332211"},
	{"vtp", "vtp udp 7", 32, 8,
		{.seq = 0xfffefdfcfbfaf9f8,
			.units = 1,
			.time_s = 1,
			.format = MR_FORMAT_vtp,
			.flags = MR_SEEN_TIME,
			.payload = 24,
			.end = 32},
		"f8f9fafbfcfdfeff 01000040 05000000 03000000 02000100 0102030405060708"},
	{"vtp with a frame that fills a gap", "vtp udp 7", 24, 8,
		{.seq = 1,
			.units = 1,
			.format = MR_FORMAT_vtp,
			.state = MR_SEEN_INVALID,
			.flags = MR_SEEN_TIME,
			.payload = 24,
			.end = 24},
		"0100000000000000 000000c0 00000000 02000000 00000000"},
	{"sflow with two samples, padded", "sflow udp 6343", 56, 28,
		{.id = {0, 0xc0000201, 0x100000003},
			.seq = 0xffffffff,
			.units = 1,
			.modulus = 1ull << 32,
			.uptime_ms = 0xfedcba98,
			.format = MR_FORMAT_sflow,
			.flags = MR_SEEN_UPTIME,
			.payload = 28,
			.end = 56},
		"00000005 00000001 c0000201 00000003 ffffffff fedcba98 00000002"
		"00000001 00000005 0102030405000000 00000002 00000004 01020304"},
	{"sflow of an agent with IPv6, without samples but with more behind", "sflow udp 6343", 40,
		40,
		{.id = {0x20010db800000000, 1, 0x2ffffffff},
			.seq = 2,
			.units = 1,
			.modulus = 1ull << 32,
			.uptime_ms = 3,
			.format = MR_FORMAT_sflow,
			.flags = MR_SEEN_UPTIME,
			.payload = 40,
			.end = 40},
		"00000005 00000002 20010db8 00000000 00000000 00000001 ffffffff 00000002 00000003"
		"00000000 00000001 00000000"},
	{"netflow5 with two flows", "flow udp 2055", 120, 24,
		{.id = {0x0102},
			.seq = 0xfffffffe,
			.units = 2,
			.modulus = 1ull << 32,
			.time_s = 7,
			.time_ps = 999999999000,
			.uptime_ms = 6,
			.format = MR_FORMAT_netflow5,
			.flags = MR_SEEN_UPTIME | MR_SEEN_TIME,
			.payload = 24,
			.end = 120},
		"0005 0002 00000006 00000007 3b9ac9ff fffffffe 01 02 4001"
		"000000000000000000000000000000000000000000000000"
		"000000000000000000000000000000000000000000000000"
		"000000000000000000000000000000000000000000000000"
		"000000000000000000000000000000000000000000000000"},
	{"netflow5 whose nanoseconds are none", "netflow5 udp 2055", 24, 24,
		{.seq = 1,
			.modulus = 1ull << 32,
			.uptime_ms = 6,
			.format = MR_FORMAT_netflow5,
			.flags = MR_SEEN_UPTIME,
			.payload = 24,
			.end = 24},
		"0005 0000 00000006 00000007 3b9aca00 00000001 00 00 0000"},
	{"netflow9", "flow udp 2055", 20, 20,
		{.id = {0xdeadbeef},
			.seq = 0x80000000,
			.units = 1,
			.modulus = 1ull << 32,
			.time_s = 8,
			.uptime_ms = 9,
			.format = MR_FORMAT_netflow9,
			.flags = MR_SEEN_UPTIME | MR_SEEN_TIME,
			.payload = 20,
			.end = 44},
		"0009 0002 00000009 00000008 80000000 deadbeef"
		"0000 000c 0100 0001 0001 0004  0100 000c 00000001 00000002"},
	{"ipfix, the example of RFC 7011 A", "flow udp 4739", 152, 16,
		{.id = {0x0a0b0c0d},
			.seq = 0xffffffff,
			.modulus = 1ull << 32,
			.time_s = 0x60000000,
			.format = MR_FORMAT_ipfix,
			.flags = MR_SEEN_TIME,
			.payload = 16,
			.end = 152},
		"000a 0098 60000000 ffffffff 0a0b0c0d" RFC7011_EXAMPLE},
	{"int2, the example of the standard and a second report", "int2 udp 7", 68, 8,
		{.id = {0xc0a80001, 0x3f},
			.seq = 0x3fffff,
			.units = 1,
			.modulus = 1 << 22,
			.format = MR_FORMAT_int2,
			.payload = 8,
			.end = 76},
		"2fffffff c0a80001 14 0e 02 20 6000 0000 0000 0000 00000001 00000002"
		"4500002800000000400600000a0000010a000002 00010002000000000000000050000000 00000000"
		"03 01 09 00 01020304"},
	{"ecpri uplink data", "ecpri ether 0xaefe", 16, 12,
		{.id = {0x0102, 0},
			.seq = 255,
			.units = 1,
			.modulus = 256,
			.format = MR_FORMAT_ecpri,
			.payload = 8,
			.end = 16},
		"10 00 000c 0102 ff 80 00 00 0000 00000000"},
	{"ecpri control downlink over udp", "ecpri udp 7", 12, 12,
		{.id = {0xffff, 5},
			.seq = 1,
			.units = 1,
			.modulus = 256,
			.format = MR_FORMAT_ecpri,
			.payload = 8,
			.end = 12},
		"10 02 0008 ffff 01 80 90 00 0000"},
	{"ecpri, a later part of a message", "ecpri ether 0xaefe", 12, 12,
		{.id = {1, 1},
			.format = MR_FORMAT_ecpri,
			.state = MR_SEEN_OTHER,
			.payload = 8,
			.end = 12},
		"10 00 0008 0001 01 81 90 00 0000"},
	{"rtp with all its parts", "rtp udp 5004", 29, 12,
		{.id = {0xfedcba98},
			.seq = 0xffff,
			.units = 1,
			.modulus = 1 << 16,
			.format = MR_FORMAT_rtp,
			.payload = 28,
			.end = 31},
		"b2 e0 ffff 00000001 fedcba98 00000001 00000002 bede 0001 00000000"
		"010203 00000000 05"},
	{"rtp", "rtp udp 5004", 12, 12,
		{.id = {1},
			.units = 1,
			.modulus = 1 << 16,
			.format = MR_FORMAT_rtp,
			.payload = 12,
			.end = 13},
		"80 3f 0000 00000000 00000001 00"},
	{"custom",
		"custom udp 9000-9010 id 0:4 id 4:2 le seq 6:4 le shift 4 bits 20 modulus 1000000 "
		"units field 10:2 payload 13 time 12:8 be 8ns valid 20:0xf0:0xa0",
		21, 6,
		{.id = {0x01020304, 0x0605},
			.seq = 999999,
			.units = 0x0102,
			.modulus = 1000000,
			.time_s = 2,
			.time_ps = 8000,
			.format = MR_FORMAT_custom,
			.flags = MR_SEEN_TIME,
			.payload = 13,
			.end = 22},
		"01020304 0506 f723f4ff 0102 000000000ee6b281 af 00"},
	{"custom with what is not said", "custom ether 0x88b5 seq 0:8", 8, 0,
		{.seq = UINT64_MAX,
			.units = 1,
			.format = MR_FORMAT_custom,
			.payload = 0,
			.end = 10},
		"ffffffffffffffff 0102"},
	{"custom that counts bytes and says that it is invalid",
		"custom udp 1 seq 0:2 le units bytes payload 3 valid 2:1:1", 3, 0,
		{.seq = 0x0201,
			.units = 2,
			.modulus = 1 << 16,
			.format = MR_FORMAT_custom,
			.state = MR_SEEN_INVALID,
			.payload = 3,
			.end = 5},
		"0102 fe 0102"},
	{"custom with three ids, a number of units and ticks of a second",
		"custom udp 1 id 0:1 bits 4 id 0:1 shift 4 id 1:8 le seq 9:1 shift 1 units 7 "
		"time 9:3 shift 1 1s",
		12, 9,
		{.id = {2, 1, 0x0908070605040302},
			.seq = 0x7f,
			.units = 7,
			.modulus = 128,
			.time_s = 0x7f8001,
			.format = MR_FORMAT_custom,
			.flags = MR_SEEN_TIME,
			.payload = 0,
			.end = 12},
		"12 0203040506070809 ff 0002"},
};

static uint32_t key_of(const struct mr_format_table *t)
{
	return mr_format_rows(t)[0].from;
}

static void check(
	const char *name, const struct mr_seen *got, const struct mr_seen *wanted, uint32_t at)
{
	struct mr_seen want = *wanted;

	want.payload += at;
	want.end += at;
	if (memcmp(got, &want, SEEN_BYTES) == 0)
		return;
	fail_msg(
		"%s: id %lx %lx %lx seq %lu units %lu modulus %lu time %lu %lu heap %lu %lu up %lu "
		"format %u state %u track %u known %u flags %u at %u..%u, begins at %u",
		name, got->id[0], got->id[1], got->id[2], got->seq, got->units, got->modulus,
		got->time_s, got->time_ps, got->heap_at, got->heap_bytes, got->uptime_ms,
		got->format, got->state, got->track, got->id_known, got->flags, got->payload,
		got->end, at);
}

static void every_format_says_what_its_standard_does(void **state)
{
	uint8_t bytes[ROOM], frame[ROOM];
	struct mr_seen seen;

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(vectors); i++) {
		struct mr_format_table *t = must_build(vectors[i].row);
		uint32_t n = unhex(vectors[i].bytes, bytes);

		for (enum envelope e = 0; e < ENVELOPES; e++) {
			uint32_t at = seal(frame, e, key_of(t), bytes, n);
			struct mr_seen want = vectors[i].want;

			want.id_known = vectors[i].named <= n;
			assert_true(look(t, frame, at + n, &seen));
			check(vectors[i].name, &seen, &want, at);
		}
		free(t);
	}
}

/* Padding that is all ones or all zeros is as if it were not there. */
static void a_datagram_cut_anywhere_is_malformed_and_what_pads_the_frame_says_nothing(void **state)
{
	uint8_t bytes[ROOM], frame[ROOM];
	struct mr_seen seen, padded;

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(vectors); i++) {
		const struct vector *vec = &vectors[i];
		struct mr_format_table *t = must_build(vec->row);
		uint32_t whole = unhex(vec->bytes, bytes), key = key_of(t);

		for (uint32_t n = 0; n <= whole; n++) {
			uint32_t at = seal(frame, PLAIN, key, bytes, n);

			assert_true(look(t, frame, at + n, &seen));
			if ((seen.state == MR_SEEN_MALFORMED) != (n < vec->least) &&
				!(seen.state == MR_SEEN_MALFORMED && n >= vec->least && n < whole))
				fail_msg("%s: state %u with %u bytes", vec->name, seen.state, n);
			if (seen.id_known != (n >= vec->named))
				fail_msg("%s: id %s with %u bytes", vec->name,
					seen.id_known ? "known" : "unknown", n);
			if (seen.id_known)
				assert_memory_equal(seen.id, vec->want.id, sizeof(seen.id));
			for (int fill = 0; fill < 512 && key < MR_FORMAT_ETHER; fill += 255) {
				memset(frame + at + n, fill, 300);
				assert_true(look(t, frame, at + n + 300, &padded));
				if (memcmp(&padded, &seen, SEEN_BYTES) != 0)
					fail_msg("%s: padding counts with %u bytes", vec->name, n);
			}
		}
		free(t);
	}
}

static const struct vector *vector_of(const char *name)
{
	for (size_t i = 0; i < MR_ARRAY_LEN(vectors); i++)
		if (strcmp(vectors[i].name, name) == 0)
			return &vectors[i];
	fail_msg("no vector '%s'", name);
	return NULL;
}

/* A packet of above with other bytes at an offset, and bytes more at its end. */
static const struct {
	const char *name;
	uint32_t at;
	const char *bytes;
	uint32_t more;
	enum mr_seen_state state;
	bool known;
} changes[] = {
	/* sizes in words: 7 of header and 1 of trailer, 10 in all */
	{"vrt with all its parts", 2, "0000", 0, MR_SEEN_MALFORMED, true},
	{"vrt with all its parts", 2, "0007", 0, MR_SEEN_MALFORMED, true},
	{"vrt with all its parts", 2, "000b", 0, MR_SEEN_MALFORMED, true},
	{"vrt with all its parts", 2, "000b", 4, MR_SEEN_OK, true},
	{"vrt with all its parts", 2, "ffff", 0, MR_SEEN_MALFORMED, true},
	{"vrt with all its parts", 0, "18650009", 0, MR_SEEN_OK, true}, /* no trailer */
	{"vrt with all its parts", 20, "000000e8d4a51000", 0, MR_SEEN_MALFORMED, true},
	{"vrt with all its parts", 36, "40000000", 0, MR_SEEN_INVALID, true},
	{"vrt with all its parts", 36, "00040000", 0, MR_SEEN_OK, true},
	{"vrt with all its parts", 36, "00000000", 0, MR_SEEN_OK, true},
	{"vrt with all its parts", 36, "bffbffff", 0, MR_SEEN_OK, true},
	{"vrt without a stream", 0, "00000000", 0, MR_SEEN_MALFORMED, true},
	{"vrt without a stream", 0, "00000001", 0, MR_SEEN_OK, true},
	{"vrt without a stream", 0, "04000001", 0, MR_SEEN_MALFORMED, true}, /* a trailer */
	{"vrt without a stream", 0, "80000002", 0, MR_SEEN_OTHER, false},    /* reserved types */
	{"vrt without a stream", 0, "f0000000", 0, MR_SEEN_OTHER, false},

	{"spead", 0, "54", 0, MR_SEEN_MALFORMED, false},
	{"spead", 1, "05", 0, MR_SEEN_MALFORMED, false},
	{"spead", 2, "0305", 0, MR_SEEN_MALFORMED, false},
	{"spead", 3, "05", 0, MR_SEEN_MALFORMED, false},
	{"spead", 4, "ffff", 0, MR_SEEN_OK, true}, /* reserved */
	{"spead", 6, "0000", 0, MR_SEEN_MALFORMED, true},
	{"spead", 6, "0003", 0, MR_SEEN_MALFORMED, true},
	{"spead", 6, "0004", 0, MR_SEEN_OK, true},
	{"spead", 6, "0006", 0, MR_SEEN_MALFORMED, true},
	{"spead", 6, "0007", 0, MR_SEEN_MALFORMED, true},
	{"spead", 6, "ffff", 0, MR_SEEN_MALFORMED, true},
	{"spead", 8, "8007", 0, MR_SEEN_MALFORMED, true},  /* no heap */
	{"spead", 24, "8007", 0, MR_SEEN_MALFORMED, true}, /* no offset */
	{"spead", 32, "8007", 0, MR_SEEN_MALFORMED, true}, /* no length */
	{"spead", 8, "0001", 0, MR_SEEN_MALFORMED, true},  /* an address */
	{"spead", 18, "000000000000", 0, MR_SEEN_MALFORMED, true},
	{"spead", 18, "000000001007", 0, MR_SEEN_MALFORMED, true},
	{"spead", 16, "8007", 0, MR_SEEN_OK, true}, /* of unknown length */
	{"spead", 26, "000000001001", 0, MR_SEEN_MALFORMED, true},
	{"spead", 26, "ffffffffffff", 0, MR_SEEN_MALFORMED, true},
	{"spead", 34, "000000000000", 0, MR_SEEN_OK, true},
	{"spead", 34, "000000000009", 0, MR_SEEN_MALFORMED, true},
	{"spead", 34, "000000000009", 1, MR_SEEN_MALFORMED, true}, /* more than the heap */
	{"spead", 34, "000100000008", 0, MR_SEEN_MALFORMED, true},
	{"spead", 34, "ffffffffffff", 0, MR_SEEN_MALFORMED, true},
	{"spead", 40, "9600", 9, MR_SEEN_OK, true},

	{"vdif", 8, "000000", 0, MR_SEEN_MALFORMED, true},
	{"vdif", 8, "030000", 0, MR_SEEN_MALFORMED, true},
	{"vdif", 8, "040000", 0, MR_SEEN_OK, true},
	{"vdif", 8, "070000", 0, MR_SEEN_MALFORMED, true},
	{"vdif", 8, "070000", 8, MR_SEEN_OK, true},
	{"vdif", 8, "ffffff", 0, MR_SEEN_MALFORMED, true},
	{"vdif with a legacy header", 8, "010000", 0, MR_SEEN_MALFORMED, true},
	{"vdif with a legacy header", 8, "020000", 0, MR_SEEN_OK, true},
	{"vdif that fills a gap", 8, "000000", 0, MR_SEEN_MALFORMED, false},
	{"vdif that fills a gap", 4, "01", 0, MR_SEEN_INVALID, true},
	{"vtp", 16, "ffffff", 0, MR_SEEN_MALFORMED, true},

	{"sflow with two samples, padded", 0, "00000004", 0, MR_SEEN_MALFORMED, false},
	{"sflow with two samples, padded", 4, "00000000", 0, MR_SEEN_MALFORMED, false},
	{"sflow with two samples, padded", 4, "00000003", 0, MR_SEEN_MALFORMED, false},
	{"sflow with two samples, padded", 24, "00000000", 0, MR_SEEN_OK, true},
	{"sflow with two samples, padded", 24, "00000001", 0, MR_SEEN_OK, true},
	{"sflow with two samples, padded", 24, "00000003", 0, MR_SEEN_MALFORMED, true},
	{"sflow with two samples, padded", 24, "00000003", 8, MR_SEEN_OK, true},
	{"sflow with two samples, padded", 24, "ffffffff", 0, MR_SEEN_MALFORMED, true},
	{"sflow with two samples, padded", 32, "fffffffd", 0, MR_SEEN_MALFORMED, true},
	{"sflow with two samples, padded", 32, "ffffffff", 0, MR_SEEN_MALFORMED, true},
	{"sflow with two samples, padded", 48, "00000005", 0, MR_SEEN_MALFORMED, true},
	{"sflow with two samples, padded", 48, "00000005", 1, MR_SEEN_MALFORMED, true},
	{"sflow with two samples, padded", 48, "00000005", 4, MR_SEEN_OK, true},
	{"sflow with two samples, padded", 48, "fffffffd", 0, MR_SEEN_MALFORMED, true},
	{"sflow with two samples, padded", 48, "00000000", 0, MR_SEEN_OK, true},

	{"netflow5 with two flows", 0, "0006", 0, MR_SEEN_MALFORMED, false},
	{"netflow5 with two flows", 2, "0000", 0, MR_SEEN_OK, true},
	{"netflow5 with two flows", 2, "0003", 0, MR_SEEN_MALFORMED, true},
	{"netflow5 with two flows", 2, "ffff", 0, MR_SEEN_MALFORMED, true},
	{"netflow5 whose nanoseconds are none", 0, "0009", 0, MR_SEEN_MALFORMED, false},

	{"netflow9", 22, "0000", 0, MR_SEEN_MALFORMED, true},
	{"netflow9", 22, "0003", 0, MR_SEEN_MALFORMED, true},
	{"netflow9", 22, "0002000a", 0, MR_SEEN_MALFORMED, true}, /* in itself, from there */
	{"netflow9", 22, "0004", 0, MR_SEEN_MALFORMED, true}, /* 256 follows as an id, of 1 byte */
	{"netflow9", 34, "000b", 0, MR_SEEN_MALFORMED, true},
	{"netflow9", 34, "000d", 0, MR_SEEN_MALFORMED, true},
	{"netflow9", 34, "ffff", 0, MR_SEEN_MALFORMED, true},
	{"netflow9", 34, "0008", 0, MR_SEEN_MALFORMED, true},
	{"netflow9", 34, "000d", 1, MR_SEEN_OK, true},

	{"ipfix, the example of RFC 7011 A", 2, "0000", 0, MR_SEEN_MALFORMED, true},
	{"ipfix, the example of RFC 7011 A", 2, "000f", 0, MR_SEEN_MALFORMED, true},
	{"ipfix, the example of RFC 7011 A", 2, "0010", 0, MR_SEEN_OK, true},
	{"ipfix, the example of RFC 7011 A", 2, "002c", 0, MR_SEEN_OK, true},
	{"ipfix, the example of RFC 7011 A", 2, "002b", 0, MR_SEEN_MALFORMED, true},
	{"ipfix, the example of RFC 7011 A", 2, "0099", 0, MR_SEEN_MALFORMED, true},
	{"ipfix, the example of RFC 7011 A", 2, "0099", 1, MR_SEEN_MALFORMED, true},
	{"ipfix, the example of RFC 7011 A", 2, "ffff", 0, MR_SEEN_MALFORMED, true},
	{"ipfix, the example of RFC 7011 A", 18, "0000", 0, MR_SEEN_MALFORMED, true},
	{"ipfix, the example of RFC 7011 A", 134, "0015", 0, MR_SEEN_MALFORMED, true},

	{"int2, the example of the standard and a second report", 0, "1f", 0, MR_SEEN_MALFORMED,
		false},
	{"int2, the example of the standard and a second report", 0, "3f", 0, MR_SEEN_MALFORMED,
		false},
	/* 2 words more and 2 of metadata */
	{"int2, the example of the standard and a second report", 9, "00", 0, MR_SEEN_MALFORMED,
		true},
	{"int2, the example of the standard and a second report", 10, "0c", 0, MR_SEEN_OK, true},
	{"int2, the example of the standard and a second report", 10, "0d", 0, MR_SEEN_MALFORMED,
		true},
	{"int2, the example of the standard and a second report", 10, "ff", 0, MR_SEEN_MALFORMED,
		true},
	{"int2, the example of the standard and a second report", 69, "02", 0, MR_SEEN_MALFORMED,
		true},
	{"int2, the example of the standard and a second report", 69, "02", 4, MR_SEEN_OK, true},
	{"int2, the example of the standard and a second report", 69, "ff", 0, MR_SEEN_MALFORMED,
		true},
	{"int2, the example of the standard and a second report", 69, "00090001000000", 0,
		MR_SEEN_OK, true},
	{"int2, the example of the standard and a second report", 68, "04", 3, MR_SEEN_MALFORMED,
		true},

	{"ecpri uplink data", 0, "00", 0, MR_SEEN_MALFORMED, false},
	{"ecpri uplink data", 0, "20", 0, MR_SEEN_MALFORMED, false},
	{"ecpri uplink data", 2, "0000", 0, MR_SEEN_MALFORMED, true},
	{"ecpri uplink data", 2, "0007", 0, MR_SEEN_MALFORMED, true},
	{"ecpri uplink data", 2, "0008", 0, MR_SEEN_OK, true},
	{"ecpri uplink data", 2, "000d", 0, MR_SEEN_MALFORMED, true},
	{"ecpri uplink data", 2, "ffff", 0, MR_SEEN_MALFORMED, true},
	{"ecpri uplink data", 2, "000c", 40, MR_SEEN_OK, true},
	{"ecpri uplink data", 1, "05", 0, MR_SEEN_OTHER, false},
	{"ecpri uplink data", 1, "050000", 0, MR_SEEN_OTHER, false},

	{"rtp", 0, "00", 0, MR_SEEN_MALFORMED, false},
	{"rtp", 0, "40", 0, MR_SEEN_MALFORMED, false},
	{"rtp", 0, "c0", 0, MR_SEEN_MALFORMED, false},
	{"rtp", 0, "81", 0, MR_SEEN_MALFORMED, true},
	{"rtp", 0, "81", 3, MR_SEEN_OK, true},
	{"rtp", 0, "90", 0, MR_SEEN_MALFORMED, true},
	{"rtp", 0, "90", 3, MR_SEEN_OK, true},
	{"rtp", 0, "a0", 0, MR_SEEN_MALFORMED, true}, /* of padding 0 */
	{"rtp", 1, "bf", 0, MR_SEEN_OK, true},
	{"rtp", 1, "c0", 0, MR_SEEN_OTHER, false}, /* RTCP */
	{"rtp", 1, "c8", 0, MR_SEEN_OTHER, false},
	{"rtp", 1, "df", 0, MR_SEEN_OTHER, false},
	{"rtp", 1, "60", 0, MR_SEEN_OK, true},
	{"rtp with all its parts", 0, "bf", 0, MR_SEEN_MALFORMED, true},
	{"rtp with all its parts", 22, "0000", 0, MR_SEEN_OK, true},
	{"rtp with all its parts", 22, "0002", 0, MR_SEEN_MALFORMED, true} /* and padding */,
	{"rtp with all its parts", 22, "0003", 0, MR_SEEN_MALFORMED, true},
	{"rtp with all its parts", 22, "ffff", 0, MR_SEEN_MALFORMED, true},
	{"rtp with all its parts", 35, "00", 0, MR_SEEN_MALFORMED, true},
	{"rtp with all its parts", 35, "08", 0, MR_SEEN_OK, true},
	{"rtp with all its parts", 35, "09", 0, MR_SEEN_MALFORMED, true},
	{"rtp with all its parts", 35, "ff", 0, MR_SEEN_MALFORMED, true},

	{"custom", 6, "f023f4ff", 0, MR_SEEN_OK, true},
	{"custom", 6, "0024f4ff", 0, MR_SEEN_MALFORMED, true}, /* 1000000, of which there is none */
	{"custom", 20, "bf", 0, MR_SEEN_INVALID, true},
	{"custom", 20, "a0", 0, MR_SEEN_OK, true},
};

static void what_contradicts_a_format_is_malformed_and_what_borders_on_it_is_not(void **state)
{
	uint8_t bytes[ROOM], frame[ROOM];
	struct mr_seen seen;

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(changes); i++) {
		const struct vector *vec = vector_of(changes[i].name);
		struct mr_format_table *t = must_build(vec->row);
		uint32_t n, at;

		memset(bytes, 0, sizeof(bytes));
		n = unhex(vec->bytes, bytes) + changes[i].more;
		unhex(changes[i].bytes, bytes + changes[i].at);
		at = seal(frame, PLAIN, key_of(t), bytes, n);
		assert_true(look(t, frame, at + n, &seen));
		if (seen.state != changes[i].state || seen.id_known != changes[i].known)
			fail_msg("%s with %s at %u: state %u, known %u", vec->name,
				changes[i].bytes, changes[i].at, seen.state, seen.id_known);
		free(t);
	}
}

/* The header of what follows says more than the fragment holds. */
static void a_fragment_is_never_whole(void **state)
{
	struct mr_format_table *t = must_build("rtp udp 5004");
	uint8_t bytes[ROOM], frame[ROOM];
	uint32_t n = unhex(vector_of("rtp")->bytes, bytes);
	uint32_t at = seal(frame, PLAIN, 5004, bytes, n);
	struct mr_seen seen;

	(void)state;
	frame[20] = 0x20; /* more fragments */
	assert_true(look(t, frame, at + n, &seen));
	assert_int_equal(seen.state, MR_SEEN_MALFORMED);
	assert_int_equal(seen.id_known, 1);
	assert_int_equal(seen.id[0], 1);
	put16(frame + 20, 1); /* a later one has no port */
	assert_false(look(t, frame, at + n, &seen));
	free(t);
}

/* A number of 24 bits of half-years and their seconds; days by the calendar. */
static void the_epochs_of_vdif_are_half_years_since_2000(void **state)
{
	static const uint32_t begins[][2] = {{0, 0}, {1, 15724800}, {2, 31622400}, {45, VDIF_EPOCH},
		{49, 773107200}, {63, 993945600}};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(begins); i++)
		assert_int_equal(mr_format_vdif_epoch(begins[i][0]), begins[i][1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format_says_what_its_standard_does),
		cmocka_unit_test(
			a_datagram_cut_anywhere_is_malformed_and_what_pads_the_frame_says_nothing),
		cmocka_unit_test(
			what_contradicts_a_format_is_malformed_and_what_borders_on_it_is_not),
		cmocka_unit_test(a_fragment_is_never_whole),
		cmocka_unit_test(the_epochs_of_vdif_are_half_years_since_2000),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
