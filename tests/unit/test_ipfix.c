/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an IPFIX message says that is learned and counted. Sets are written by hand, one is the
 * example of RFC 7011 A; their records were counted by hand too.
 */
#include "format_fixture.h"

#include "mr_ipfix.h"

struct memory {
	struct mr_ipfix_template *templates;
	uint32_t capacity;
};

static struct memory memory_of(uint32_t capacity)
{
	return (struct memory){calloc(capacity, sizeof(struct mr_ipfix_template)), capacity};
}

/* Sets in hexadecimal, 16 bytes behind where a frame begins. */
static enum mr_ipfix_result count(struct memory *m, uint64_t exporter, uint32_t domain,
	const char *sets, uint64_t *ret_records, uint32_t *ret_replaced)
{
	uint8_t bytes[ROOM], *frame;
	uint32_t n = unhex(sets, bytes);
	enum mr_ipfix_result result;
	struct mr_view v;

	frame = malloc(16 + n);
	memcpy(frame + 16, bytes, n);
	v = (struct mr_view){.frame = frame, .length = 16 + n, .room = 16 + n};
	result = mr_ipfix_count(m->templates, m->capacity, exporter, domain, &v, 16, 16 + n,
		ret_records, ret_replaced);
	free(frame);
	return result;
}

/* Records of sets of exporter 1 and domain 1; none may be malformed or lost. */
static int64_t records(struct memory *m, const char *sets)
{
	uint64_t n;
	uint32_t replaced;
	enum mr_ipfix_result result = count(m, 1, 1, sets, &n, &replaced);

	assert_int_not_equal(result, MR_IPFIX_MALFORMED);
	assert_int_equal(replaced, 0);
	return result == MR_IPFIX_UNKNOWN ? -1 - (int64_t)n : (int64_t)n;
}

static bool is_malformed(struct memory *m, const char *sets)
{
	uint64_t n;
	uint32_t replaced;

	return count(m, 1, 1, sets, &n, &replaced) == MR_IPFIX_MALFORMED;
}

/* 3 records of flows and 2 of options; what the templates' own records are is not counted. */
static void the_example_of_rfc_7011_has_five_data_records(void **state)
{
	struct memory m = memory_of(64);

	(void)state;
	assert_int_equal(records(&m, RFC7011_EXAMPLE), 5);
	assert_int_equal(records(&m, strstr(RFC7011_EXAMPLE, "0102 0014")), 2);
	free(m.templates);
}

static void records_have_the_length_that_their_template_says(void **state)
{
	struct memory m = memory_of(64);

	(void)state;
	/* 2 and 4 bytes, the first of an enterprise; padding of 5 bytes is no record */
	assert_int_equal(records(&m, "0002 0014 0100 0002 8001 0002 00007ed9 0008 0004"), 0);
	assert_int_equal(records(&m, "0100 0004"), 0);
	assert_int_equal(records(&m, "0100 0009 0000000000"), 0);
	assert_int_equal(records(&m, "0100 000a 010203040506"), 1);
	assert_int_equal(records(&m, "0100 0015 010203040506 010203040506 0000000000"), 2);
	/* two sets with padding behind the first, another in between */
	assert_int_equal(
		records(&m, "0100 000c 010203040506 0000  0004 0006 0000  0100 000a 010203040506"),
		2);
	/* two templates in a set, and padding that is none */
	assert_int_equal(records(&m,
				 "0002 0017 0101 0001 0001 0001 0102 0001 0001 0002 000000"
				 "0101 0007 010203 0102 0007 010203"),
		4);
	/* the same id means something else from here on */
	assert_int_equal(
		records(&m, "0002 000c 0100 0001 0001 0008 0100 000c 0102030405060708"), 1);
	assert_int_equal(records(&m, "0100 000a 010203040506"), 0);
	free(m.templates);
}

/* RFC 7011 7: a length of one byte, or 255 and two. */
static void fields_of_variable_length_are_walked(void **state)
{
	struct memory m = memory_of(64);

	(void)state;
	/* 2 bytes, a string of an enterprise, 1 byte, a string, no byte behind it */
	assert_int_equal(
		records(&m, "0002 001c 0100 0004 0001 0002 8052 ffff 00000009 0004 0001 0052 ffff"),
		0);
	assert_int_equal(records(&m, "0100 0009 0000 00 00 00"), 1);
	assert_int_equal(records(&m, "0100 000f 0000 03 010203 00 02 0102 00"), 1);
	assert_int_equal(records(&m,
				 "0100 0018 0000 ff 0003 010203 00 ff 0000"
				 "0000 01 01 00 00 0000"),
		2);
	/* less than the 5 bytes that a record has is padding */
	assert_int_equal(records(&m, "0100 000d 0000 00 00 00 0000 0000"), 1);
	assert_true(is_malformed(&m, "0100 0009 0000 01 00 00"));
	assert_true(is_malformed(&m, "0100 0009 0000 ff 00 00"));
	assert_true(is_malformed(&m, "0100 000b 0000 ff ffff 00 00"));
	assert_true(is_malformed(&m, "0100 0009 0000 00 00 01"));
	assert_true(is_malformed(&m, "0100 000b 0000 00 00 fe 0102"));
	/* fixed ones behind the last string */
	assert_int_equal(records(&m,
				 "0002 0010 0101 0002 0052 ffff 0001 0004"
				 "0101 0010 02 0102 00000000 00 00000000"),
		2);
	free(m.templates);
}

static void options_are_records_too_and_their_template_has_a_scope(void **state)
{
	struct memory m = memory_of(64);

	(void)state;
	assert_int_equal(records(&m,
				 "0003 0012 0100 0002 0001 0095 0004 0022 0004"
				 "0100 0014 0000000000000000 0000000000000000"),
		2);
	/* padded, and withdrawn by what has no scope */
	assert_int_equal(records(&m,
				 "0003 0010 0101 0001 0001 0095 0004 0000"
				 "0101 0008 00000000"),
		1);
	assert_int_equal(records(&m, "0003 0008 0101 0000 0101 0008 00000000"), -1);
	assert_true(is_malformed(&m, "0003 0009 0101 0001 00"));
	assert_true(is_malformed(&m, "0003 000d 0101 0001 0001 0095 00"));
	free(m.templates);
}

static void data_of_a_template_that_is_not_known_is_unknown_and_the_rest_is_counted(void **state)
{
	struct memory m = memory_of(MR_IPFIX_PROBES);
	uint64_t n;
	uint32_t replaced;

	(void)state;
	assert_int_equal(records(&m, "0100 0008 00000000"), -1);
	/* the template comes behind its data, and holds from there on */
	assert_int_equal(records(&m,
				 "0100 0008 00000000 0002 000c 0100 0001 0001 0004"
				 "0100 0008 00000000"),
		-2);
	assert_int_equal(records(&m, "0100 0008 00000000"), 1);
	/* of another domain and another exporter it is not */
	assert_int_equal(count(&m, 1, 2, "0100 0008 00000000", &n, &replaced), MR_IPFIX_UNKNOWN);
	assert_int_equal(count(&m, 2, 1, "0100 0008 00000000", &n, &replaced), MR_IPFIX_UNKNOWN);
	/* withdrawn, one alone; that of all is skipped */
	assert_int_equal(records(&m,
				 "0002 000c 0101 0001 0001 0004 0002 0008 0002 0000"
				 "0003 0008 0003 0000 0100 0008 00000000"),
		1);
	assert_int_equal(records(&m, "0002 0008 0100 0000 0100 0008 00000000"), -1);
	assert_int_equal(records(&m, "0101 0008 00000000"), 1);
	assert_int_equal(records(&m, "0002 0008 0100 0000"), 0);
	free(m.templates);
}

/* A template of so many variable fields, each of a string without characters. */
static const char *many_fields(uint32_t fields)
{
	static char text[2048];
	size_t at =
		(size_t)snprintf(text, sizeof(text), "0002%04x0100%04x", 8 + 4 * fields, fields);

	for (uint32_t i = 0; i < fields; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "0052ffff");
	at += (size_t)snprintf(text + at, sizeof(text) - at, "0100%04x", 4 + 2 * fields);
	for (uint32_t i = 0; i < fields; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "0000");
	return text;
}

static void a_template_that_cannot_be_kept_is_unknown(void **state)
{
	struct memory m = memory_of(2);

	(void)state;
	assert_int_equal(records(&m, many_fields(MR_IPFIX_VARIABLE)), 2);
	assert_int_equal(records(&m, many_fields(MR_IPFIX_VARIABLE + 1)), -1);
	assert_int_equal(records(&m, many_fields(100)), -1);
	/* a record of no bytes would be there without end */
	assert_int_equal(records(&m, "0002 000c 0100 0001 0001 0000 0100 0008 00000000"), -1);
	/* one above all that a message holds is never there, nor is it of what 16 bits leave */
	assert_int_equal(
		records(&m, "0002 0010 0100 0002 0001 8000 0001 8004 0100 0008 00000000"), 0);
	assert_int_equal(
		records(&m, "0002 0014 0100 0003 0001 fffe 0001 fffe 0001 fffe 0100 0008 00000000"),
		0);
	assert_int_equal(records(&m,
				 "0002 0018 0100 0004 0001 fffe 0001 fffe 0001 ffff 0001 0001"
				 "0100 0008 00000000"),
		0);
	free(m.templates);
}

static void what_contradicts_in_sets_is_malformed(void **state)
{
	static const char *const sets[] = {"00", "000200", "0002 0000", "0002 0003", "0100 0003",
		"0004 0002 0006 0000", "0002 0005", "0100 0005", "0100 ffff 00000000", "0004 ffff",
		"0002 0008 00ff 0001", /* no id of a template */
		"0002 0008 0000 0000", /* zeros where a template could be */
		"0002 0008 0100 0001", "0002 000b 0100 0001 0001 00",
		"0002 000c 0100 0002 0001 0008", "0002 000c 0100 ffff 0001 0004",
		"0002 000c 0100 0001 8001 0004", /* without its enterprise */
		"0002 000f 0100 0001 8001 0004 000000"};
	struct memory m = memory_of(64);

	(void)state;
	assert_int_equal(records(&m, "0002 000c 0100 0001 0001 0004"), 0);
	for (size_t i = 0; i < MR_ARRAY_LEN(sets); i++) {
		if (!is_malformed(&m, sets[i]))
			fail_msg("%s", sets[i]);
		/* and what was known still is */
		assert_int_equal(records(&m, "0100 0008 00000000"), 1);
	}
	free(m.templates);
}

static void a_full_memory_loses_one_template_for_another_and_counts_it(void **state)
{
	struct memory m = memory_of(4);
	uint32_t replaced, lost = 0, known = 0;
	uint64_t n;

	(void)state;
	for (uint32_t domain = 0; domain < 100; domain++) {
		const char *set = "0002 000c 0100 0001 0001 0004 0100 0008 00000000";

		assert_int_equal(count(&m, 1, domain, set, &n, &replaced), MR_IPFIX_OK);
		assert_int_equal(n, 1);
		lost += replaced;
		/* again, and it is there already */
		assert_int_equal(count(&m, 1, domain, set, &n, &replaced), MR_IPFIX_OK);
		assert_int_equal(replaced, 0);
	}
	assert_int_equal(lost, 96);
	for (uint32_t domain = 0; domain < 100; domain++)
		known += count(&m, 1, domain, "0100 0008 00000000", &n, &replaced) == MR_IPFIX_OK;
	assert_int_equal(known, 4);
	free(m.templates);
}

/* In a memory that is half full hardly one is lost, wherever exporters, domains and ids lie. */
static void templates_spread_over_the_memory(void **state)
{
	struct memory m = memory_of(2048);
	uint32_t replaced, lost = 0;
	char set[64];
	uint64_t n;

	(void)state;
	for (uint32_t i = 0; i < 1024; i++) {
		sprintf(set, "0002000c%04x000100010004", 256 + i % 8);
		assert_int_equal(count(&m, i / 64, i / 8 % 8, set, &n, &replaced), MR_IPFIX_OK);
		lost += replaced;
	}
	assert_true(lost < 16);
	free(m.templates);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_of_rfc_7011_has_five_data_records),
		cmocka_unit_test(records_have_the_length_that_their_template_says),
		cmocka_unit_test(fields_of_variable_length_are_walked),
		cmocka_unit_test(options_are_records_too_and_their_template_has_a_scope),
		cmocka_unit_test(
			data_of_a_template_that_is_not_known_is_unknown_and_the_rest_is_counted),
		cmocka_unit_test(a_template_that_cannot_be_kept_is_unknown),
		cmocka_unit_test(what_contradicts_in_sets_is_malformed),
		cmocka_unit_test(a_full_memory_loses_one_template_for_another_and_counts_it),
		cmocka_unit_test(templates_spread_over_the_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
