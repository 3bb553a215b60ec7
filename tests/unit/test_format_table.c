/* SPDX-License-Identifier: BSD-3-Clause */
/* How tables of formats are made, and what is found in them. */
#include "format_fixture.h"

static uint32_t format_at(const struct mr_format_table *t, uint32_t key)
{
	uint8_t frame[ROOM], bytes[64] = {0};
	uint32_t at = seal(frame, PLAIN, key, bytes, sizeof(bytes));
	struct mr_view v = {.frame = frame, .length = at + sizeof(bytes), .room = ROOM};
	const struct mr_format_row *row;
	struct mr_headers h;

	mr_walk(&v, 0, &h);
	row = mr_format_find(t, &v, &h);
	return row != NULL ? row->format : MR_FORMATS;
}

static void without_rows_there_are_the_usual_ones(void **state)
{
	static const struct {
		uint32_t key, format;
	} rows[] = {{4991, MR_FORMAT_vrt}, {6343, MR_FORMAT_sflow}, {2055, MR_FORMAT_flow},
		{4739, MR_FORMAT_flow}, {7148, MR_FORMAT_spead}, {5004, MR_FORMAT_rtp},
		{MR_FORMAT_ETHER | 0xaefe, MR_FORMAT_ecpri}};
	static const char *const texts[] = {"", "\n  # nothing\n"};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(texts); i++) {
		struct mr_table_errors errors;
		struct mr_format_table *t = build(texts[i], MR_FORMAT_ROWS_MIN, &errors);
		uint32_t known = 0;

		assert_int_equal(errors.count, 0);
		assert_int_equal(t->rows, MR_FORMAT_ROWS_MIN);
		for (size_t k = 0; k < MR_ARRAY_LEN(rows); k++)
			assert_int_equal(format_at(t, rows[k].key), rows[k].format);
		for (uint32_t port = 0; port < 65536; port++)
			known += format_at(t, port) != MR_FORMATS;
		assert_int_equal(known, 6);
		assert_string_equal(mr_format_name(mr_format_rows(t)[0].format), "flow");
		free(t);
	}
}

static void ports_are_found_between_the_ends_of_a_range_in_any_order(void **state)
{
	struct mr_format_table *t = must_build("rtp udp 65535\ncustom ether 0x88b5 seq 0:1\n"
					       "vrt udp 100-200 # both ends\nspead udp 1\n"
					       "vdif udp 201\necpri ether 0xffff\nint2 udp 0x63");
	static const struct {
		uint32_t key, format;
	} want[] = {{0, MR_FORMATS}, {1, MR_FORMAT_spead}, {2, MR_FORMATS}, {98, MR_FORMATS},
		{99, MR_FORMAT_int2}, {100, MR_FORMAT_vrt}, {150, MR_FORMAT_vrt},
		{200, MR_FORMAT_vrt}, {201, MR_FORMAT_vdif}, {202, MR_FORMATS}, {65534, MR_FORMATS},
		{65535, MR_FORMAT_rtp}, {MR_FORMAT_ETHER | 0x88b4, MR_FORMATS},
		{MR_FORMAT_ETHER | 0x88b5, MR_FORMAT_custom},
		{MR_FORMAT_ETHER | 0x88b6, MR_FORMATS},
		{MR_FORMAT_ETHER | 0xffff, MR_FORMAT_ecpri}};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(want); i++)
		assert_int_equal(format_at(t, want[i].key), want[i].format);
	free(t);
}

static void what_is_no_row_is_refused_with_its_line_and_a_remedy(void **state)
{
	static const struct {
		const char *text;
		uint32_t line;
		const char *message;
	} wrong[] = {
		{"\nvrtt udp 1", 2, "did you mean 'vrt'?"},
		{"zzzzzz udp 1", 1, "a row begins with vrt, spead,"},
		{"vrt", 1, "there has to be 'udp PORT' or 'ether TYPE'"},
		{"vrt udp", 1, "there has to be 'udp PORT' or 'ether TYPE'"},
		{"vrt tcp 1", 1, "there has to be 'udp PORT' or 'ether TYPE'"},
		{"vrt udp 0", 1, "from 1 to 65535"},
		{"vrt udp 65536", 1, "not '65536'"},
		{"vrt udp 5-4", 1, "with the lower one first, not '5-4'"},
		{"vrt udp any", 1, "not 'any'"},
		{"vrt ether 0x88b5", 1, "'vrt' comes in UDP alone: 'vrt udp PORT'"},
		{"ecpri ether 0x5ff", 1, "from 0x600 to 0xffff"},
		{"ecpri ether 0x0800", 1, "not of IP or a tag"},
		{"ecpri ether 0x8100", 1, "not of IP or a tag"},
		{"ecpri ether 0x88a8", 1, "not of IP or a tag"},
		{"ecpri ether 0x86dd", 1, "not of IP or a tag"},
		{"ecpri ether 0xaefe-0xaeff", 1, "takes an EtherType"},
		{"ecpri ether 0x10000", 1, "takes an EtherType"},
		{"rtp udp 5004 seq 0:2", 1, "'rtp' knows its fields; 'seq' is for a custom row"},
		{"vrt udp 1\nrtp udp 2\nspead udp 1", 3,
			"one of its UDP ports is in line 1 already"},
		{"vrt udp 1-10\nrtp udp 5\nspead udp 10", 2, "is in line 1 already"},
		{"vrt udp 1-10\nrtp udp 5\nspead udp 10", 3, "is in line 1 already"},
		{"vrt udp 5\nrtp udp 1-9", 2, "is in line 1 already"},
		{"ecpri ether 0xaefe\ncustom ether 0xaefe seq 0:1", 2,
			"its EtherType is in line 1 already"},
		{"custom udp 1", 1, "a custom row needs 'seq OFFSET:BYTES'"},
		{"custom udp 1 id 0:4", 1, "a custom row needs 'seq OFFSET:BYTES'"},
		{"custom udp 1 seq", 1, "'seq' takes OFFSET:BYTES"},
		{"custom udp 1 seq 4", 1, "1 to 8 bytes at an offset from 0 to 65535, not '4'"},
		{"custom udp 1 seq 0:0", 1, "not '0:0'"},
		{"custom udp 1 seq 0:9", 1, "not '0:9'"},
		{"custom udp 1 seq 65536:1", 1, "not '65536:1'"},
		{"custom udp 1 seq 0:1:2", 1, "not '0:1:2'"},
		{"custom udp 1 seq 0:1 seq 1:1", 1, "'seq' is there twice"},
		{"custom udp 1 sequ 0:1", 1, "did you mean 'seq'?"},
		{"custom udp 1 seq 0:1 shfit 2", 1, "did you mean 'shift'?"},
		{"custom udp 1 seq 0:1 zzzzzzzz", 1, "is none of id, seq, modulus"},
		{"custom udp 1 le seq 0:1", 1, "'le' stands behind the field that it is of"},
		{"custom udp 1 seq 0:1 modulus 8 bits 3", 1, "'bits' stands behind the field"},
		{"custom udp 1 seq 0:1 bits 0", 1, "'bits' takes a number from 1 to 64, not '0'"},
		{"custom udp 1 seq 0:1 bits 65", 1, "not '65'"},
		{"custom udp 1 seq 0:1 bits", 1, "'bits' takes a number"},
		{"custom udp 1 seq 0:1 shift 64", 1, "from 0 to 63, not '64'"},
		{"custom udp 1 seq 0:1 bits 9", 1, "'seq' has 8 bits, so shift and bits are 8"},
		{"custom udp 1 seq 0:1 shift 8", 1, "'seq' has 8 bits"},
		{"custom udp 1 seq 0:2 shift 9 bits 8", 1, "'seq' has 16 bits"},
		{"custom udp 1 seq 0:1 id 0:1 bits 9", 1, "'id' has 8 bits"},
		{"custom udp 1 id 0:1 id 1:1 id 2:1 id 3:1 seq 4:1", 1,
			"more than three fields 'id'"},
		{"custom udp 1 seq 0:1 modulus 257", 1,
			"modulus 257 is above what 8 bits of 'seq' hold"},
		{"custom udp 1 seq 0:1 bits 4 modulus 17", 1, "above what 4 bits"},
		{"custom udp 1 seq 0:1 modulus 1", 1, "a number above 1, not '1'"},
		{"custom udp 1 seq 0:8 modulus 18446744073709551616", 1, "a number above 1"},
		{"custom udp 1 seq 0:1 modulus", 1, "a number above 1, not ''"},
		{"custom udp 1 seq 0:1 units 0", 1, "'units' takes packets, bytes, field"},
		{"custom udp 1 seq 0:1 units records", 1, "not 'records'"},
		{"custom udp 1 seq 0:1 units", 1, "not ''"},
		{"custom udp 1 seq 0:1 units field", 1, "'units field' takes OFFSET:BYTES"},
		{"custom ether 0x88b5 seq 0:1 units bytes", 1, "what pads a short frame"},
		{"custom udp 1 seq 0:1 payload x", 1, "'payload' takes an offset"},
		{"custom udp 1 seq 0:1 time 1:4", 1, "'time' needs its tick behind the field"},
		{"custom udp 1 seq 0:1 time 1:4 units 3 ns", 1, "'ns' is none of"},
		{"custom udp 1 seq 0:1 time 1:4 3ns", 1, "'time' needs its tick"},
		{"custom udp 1 seq 0:1 time 1:4 0ns", 1, "'time' needs its tick"},
		{"custom udp 1 seq 0:1 time 1:4 ns", 1, "'time' needs its tick"},
		{"custom udp 1 seq 0:1 time 1:4 2000ms", 1, "'time' needs its tick"},
		{"custom udp 1 seq 0:1 time 1:4 18446744073709552ms", 1, "'time' needs its tick"},
		{"custom udp 1 seq 0:1 time 1:4 1min", 1, "'time' needs its tick"},
		{"custom udp 1 seq 0:1 time 1:4 2s", 1, "'time' needs its tick"},
		{"custom udp 1 seq 0:1 valid 1", 1, "'valid' takes OFFSET:MASK:VALUE"},
		{"custom udp 1 seq 0:1 valid 1:0:0", 1, "'valid' takes OFFSET:MASK:VALUE"},
		{"custom udp 1 seq 0:1 valid 1:256:0", 1, "'valid' takes OFFSET:MASK:VALUE"},
		{"custom udp 1 seq 0:1 valid 1:1:2", 1, "a value within it"},
	};
	struct mr_table_errors errors;

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(wrong); i++) {
		bool found = false;

		free(build(wrong[i].text, ROWS, &errors));
		for (uint32_t k = 0; k < errors.count && k < MR_TABLE_ERRORS_MAX; k++)
			found |= errors.e[k].line == wrong[i].line &&
				strstr(errors.e[k].message, wrong[i].message) != NULL;
		if (!found)
			fail_msg("'%s': %u errors, line %u: %s", wrong[i].text, errors.count,
				errors.e[0].line, errors.count > 0 ? errors.e[0].message : "");
	}
	free(build("vrt udp 1\nrtp udp 2\n", 2, &errors));
	assert_int_equal(errors.count, 0);
	free(build("vrt udp 1\nrtp udp 2\nspead udp 3\nvdif udp 4", 2, &errors));
	assert_int_equal(errors.count, 1);
	assert_int_equal(errors.e[0].line, 3);
	assert_string_equal(
		errors.e[0].message, "more than 2 rows; raise formats_max, at most to 1000");
}

static void one_mistake_of_a_tick_or_a_carrier_is_one_sentence(void **state)
{
	static const struct {
		const char *text, *message;
	} wrong[] = {
		{"custom udp 1 seq 0:1 time 1:4 3ns", "'time' needs its tick"},
		{"custom udp 1 seq 0:1 time 1:4 ns", "1us or 1s, not 'ns'"},
		{"custom udp 1 seq 0:1 time 1:4 le 0ns", "1us or 1s, not '0ns'"},
		{"custom udp 1 seq 0:1 time 1:4", "8ns, 1us or 1s"},
		{"custom udp 1 seq 0:1 time 1:4 8ns 8ns", "'8ns' is none of"},
		{"custom seq 0:4", "there has to be 'udp PORT' or 'ether TYPE'"},
		{"custom tcp 1 id 0:4", "there has to be 'udp PORT' or 'ether TYPE'"},
		{"rtp tcp 1 id 0:4", "there has to be 'udp PORT' or 'ether TYPE'"},
		{"vrt ether 1", "'vrt' comes in UDP alone"},
	};
	struct mr_table_errors errors;

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(wrong); i++) {
		free(build(wrong[i].text, ROWS, &errors));
		if (errors.count != 1 || strstr(errors.e[0].message, wrong[i].message) == NULL ||
			strstr(errors.e[0].message, "''") != NULL)
			fail_msg("'%s': %u errors: %s", wrong[i].text, errors.count,
				errors.count > 0 ? errors.e[0].message : "");
	}
}

/* Of the first line alone: elsewhere it is no mark. */
static void a_byte_order_mark_in_front_is_no_word(void **state)
{
	struct mr_format_table *t = must_build("\xef\xbb\xbfvrt udp 7");
	struct mr_table_errors errors;

	(void)state;
	assert_int_equal(format_at(t, 7), MR_FORMAT_vrt);
	free(t);
	free(build("rtp udp 1\n\xef\xbb\xbfvrt udp 7", ROWS, &errors));
	assert_int_equal(errors.count, 1);
	assert_int_equal(errors.e[0].line, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_rows_there_are_the_usual_ones),
		cmocka_unit_test(ports_are_found_between_the_ends_of_a_range_in_any_order),
		cmocka_unit_test(what_is_no_row_is_refused_with_its_line_and_a_remedy),
		cmocka_unit_test(one_mistake_of_a_tick_or_a_carrier_is_one_sentence),
		cmocka_unit_test(a_byte_order_mark_in_front_is_no_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
