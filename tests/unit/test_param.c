/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_stage.h"

#include <errno.h>
#include <string.h>

static const char *const words[] = {"keep", "drop", NULL};
static const char *const tx[] = {"in", "up"};
static const struct mr_param_env env = {tx, 2};

/* One row: as written, what comes, and as printed; NULL: as written. */
static const struct {
	enum mr_param_type type;
	uint64_t min, max;
	const char *text;
	int rc;
	const char *printed;
} rows[] = {
	{MR_PARAM_U32, 2, 9, "2", 0, NULL},
	{MR_PARAM_U32, 2, 9, "1", -ERANGE, NULL},
	{MR_PARAM_U32, 2, 9, "10", -ERANGE, NULL},
	{MR_PARAM_U32, 0, UINT32_MAX, "4294967295", 0, NULL},
	{MR_PARAM_U32, 0, UINT32_MAX, "4294967296", -ERANGE, NULL},
	{MR_PARAM_U32, 0, 9, "0x1", -EINVAL, NULL},
	{MR_PARAM_U32, 0, 9, "01", -EINVAL, NULL},
	{MR_PARAM_U32, 0, 9, "1 ", -EINVAL, NULL},
	{MR_PARAM_U64, 0, UINT64_MAX, "18446744073709551615", 0, NULL},
	{MR_PARAM_U64, 0, UINT64_MAX, "18446744073709551616", -ERANGE, NULL},
	{MR_PARAM_U64, 0, UINT64_MAX, "99999999999999999999999", -ERANGE, NULL},
	{MR_PARAM_SIZE, 1, 1 << 20, "4096", 0, NULL},
	{MR_PARAM_SIZE, 1, 1 << 20, "64KiB", 0, "65536"},
	{MR_PARAM_SIZE, 1, 1 << 20, "1MiB", 0, "1048576"},
	{MR_PARAM_SIZE, 1, 1 << 20, "1GiB", -ERANGE, NULL},
	{MR_PARAM_SIZE, 0, UINT64_MAX, "17179869184GiB", -ERANGE, NULL},
	{MR_PARAM_SIZE, 1, 1 << 20, "1MB", -EINVAL, NULL},
	{MR_PARAM_SIZE, 1, 1 << 20, "KiB", -EINVAL, NULL},
	{MR_PARAM_BOOL, 0, 0, "true", 0, NULL},
	{MR_PARAM_BOOL, 0, 0, "false", 0, NULL},
	{MR_PARAM_BOOL, 0, 0, "yes", -EINVAL, NULL},
	{MR_PARAM_WORD, 0, 0, "drop", 0, NULL},
	{MR_PARAM_WORD, 0, 0, "dropp", -EINVAL, NULL},
	{MR_PARAM_WORD, 0, 0, "", -EINVAL, NULL},
	{MR_PARAM_REASON, 0, 0, "malformed", 0, NULL},
	{MR_PARAM_REASON, 0, 0, "none", -EINVAL, NULL},
	{MR_PARAM_PORT, 0, 0, "up", 0, NULL},
	{MR_PARAM_PORT, 0, 0, "0", 0, "in"},
	{MR_PARAM_PORT, 0, 0, "2", -ERANGE, NULL},
	{MR_PARAM_PORT, 0, 0, "99999999999999999999999", -ERANGE, NULL},
	{MR_PARAM_PORT, 0, 0, "down", -EINVAL, NULL},
	{MR_PARAM_RANGE, 0, 4095, "any", 0, NULL},
	{MR_PARAM_RANGE, 0, 4095, "7", 0, NULL},
	{MR_PARAM_RANGE, 0, 4095, "7-7", 0, "7"},
	{MR_PARAM_RANGE, 0, 4095, "0-4095", 0, NULL},
	{MR_PARAM_RANGE, 0, 4095, "0x10-0xff", 0, "16-255"},
	{MR_PARAM_RANGE, 0, 4095, "7-6", -EINVAL, NULL},
	{MR_PARAM_RANGE, 0, 4095, "0-4096", -ERANGE, NULL},
	{MR_PARAM_RANGE, 3, 4095, "2-7", -ERANGE, NULL},
	{MR_PARAM_RANGE, 0, 4095, "-7", -EINVAL, NULL},
	{MR_PARAM_RANGE, 0, 4095, "1-2-3", -EINVAL, NULL},
	{MR_PARAM_RANGE, 0, 4095, "0x", -EINVAL, NULL},
	{MR_PARAM_RANGE, 0, 4095, "0x100000000", -EINVAL, NULL},
	{MR_PARAM_MAC, 0, 0, "02:00:5e:10:00:fF", 0, "02:00:5e:10:00:ff"},
	{MR_PARAM_MAC, 0, 0, "02:00:5e:10:00", -EINVAL, NULL},
	{MR_PARAM_MAC, 0, 0, "02:00:5e:10:00:01:", -EINVAL, NULL},
	{MR_PARAM_MAC, 0, 0, "02-00-5e-10-00-01", -EINVAL, NULL},
	{MR_PARAM_MAC, 0, 0, "2:0:5e:10:0:1", -EINVAL, NULL},
	{MR_PARAM_MAC, 0, 0, "", -EINVAL, NULL},
	{MR_PARAM_IP, 0, 0, "192.0.2.1", 0, NULL},
	{MR_PARAM_IP, 0, 0, "2001:DB8:0::1", 0, "2001:db8::1"},
	{MR_PARAM_IP, 0, 0, "", 0, NULL},
	{MR_PARAM_IP, 0, 0, "192.0.2", -EINVAL, NULL},
	{MR_PARAM_IP, 0, 0, "2001:db8::1%eth0", -EINVAL, NULL},
	{MR_PARAM_PREFIX, 0, 0, "any", 0, NULL},
	{MR_PARAM_PREFIX, 0, 0, "10.0.0.0/8", 0, NULL},
	{MR_PARAM_PREFIX, 0, 0, "0.0.0.0/0", 0, NULL},
	{MR_PARAM_PREFIX, 0, 0, "10.0.0.1", 0, "10.0.0.1/32"},
	{MR_PARAM_PREFIX, 0, 0, "2001:db8:8000::/33", 0, NULL},
	{MR_PARAM_PREFIX, 0, 0, "::1", 0, "::1/128"},
	{MR_PARAM_PREFIX, 0, 0, "10.0.0.1/8", -EINVAL, NULL},
	{MR_PARAM_PREFIX, 0, 0, "2001:db8:8000::/32", -EINVAL, NULL},
	{MR_PARAM_PREFIX, 0, 0, "10.0.0.0/33", -EINVAL, NULL},
	{MR_PARAM_PREFIX, 0, 0, "::/129", -EINVAL, NULL},
	{MR_PARAM_PREFIX, 0, 0, "10.0.0.0/", -EINVAL, NULL},
	{MR_PARAM_PREFIX, 0, 0, "/8", -EINVAL, NULL},
};

static void every_type_takes_what_its_row_says_and_prints_it(void **state)
{
	char long_text[300];

	(void)state;
	memset(long_text, '1', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		const struct mr_param_desc p = {.name = "p",
			.type = rows[i].type,
			.offset = 8,
			.min = rows[i].min,
			.max = rows[i].max,
			.def = "",
			.unit = "",
			.words = words};
		const char *want = rows[i].printed != NULL ? rows[i].printed : rows[i].text;
		uint8_t params[MR_PARAM_BYTES], before[MR_PARAM_BYTES];
		struct mr_err err;
		char text[100];
		int rc;

		memset(params, 0x5a, sizeof(params));
		memset(before, 0x5a, sizeof(before));
		rc = mr_param_parse(&p, "s", rows[i].text, &env, params, &err);
		if (rc != rows[i].rc)
			fail_msg("%s '%s': %d", mr_param_type_name(p.type), rows[i].text, rc);
		assert_true(mr_param_parse(&p, "s", long_text, &env, before, NULL) < 0);
		if (rc < 0) {
			assert_memory_equal(params, before, sizeof(params));
			assert_non_null(strstr(err.msg, "parameter 'p' of stage 's'"));
			continue;
		}
		mr_param_print(&p, params, &env, text, sizeof(text));
		assert_string_equal(text, want);
		memcpy(params + 8, before, mr_param_bytes(p.type));
		assert_memory_equal(params, before, sizeof(params));
	}
}

static void lists_are_stored_with_their_number(void **state)
{
	const struct mr_param_desc p = {.name = "p",
		.type = MR_PARAM_U32,
		.offset = 4,
		.max = 9,
		.def = "",
		.unit = "",
		.list_max = 3,
		.count_offset = 0};
	uint8_t params[MR_PARAM_BYTES];
	uint32_t stored[4];
	struct mr_err err;
	char text[5];

	(void)state;
	memset(params, 0xff, sizeof(params));
	assert_int_equal(mr_param_parse(&p, "s", "1, 2,3", NULL, params, &err), 0);
	memcpy(stored, params, sizeof(stored));
	assert_true(stored[0] == 3 && stored[1] == 1 && stored[2] == 2 && stored[3] == 3);
	mr_param_print(&p, params, NULL, text, sizeof(text));
	assert_string_equal(text, "1,2,");
	assert_int_equal(mr_param_parse(&p, "s", "1,2,3,4", NULL, params, &err), -ERANGE);
	assert_int_equal(mr_param_parse(&p, "s", "1,,2", NULL, params, &err), -EINVAL);
	assert_int_equal(mr_param_parse(&p, "s", "1,10", NULL, params, &err), -ERANGE);
	memcpy(stored, params, sizeof(stored));
	assert_int_equal(stored[0], 3);
	assert_int_equal(mr_param_parse(&p, "s", "", NULL, params, &err), 0);
	memcpy(stored, params, sizeof(stored));
	assert_int_equal(stored[0], 0);
}

static void prefixes_hold_what_they_hold(void **state)
{
	static const struct {
		const char *prefix, *ip;
		int has;
	} cases[] = {
		{"10.0.0.0/8", "10.255.255.255", 1},
		{"10.0.0.0/8", "11.0.0.0", 0},
		{"0.0.0.0/0", "1.2.3.4", 1},
		{"0.0.0.0/0", "::1", 0},
		{"::/0", "::1", 1},
		{"::/0", "0.0.0.1", 0},
		{"192.0.2.1", "192.0.2.1", 1},
		{"192.0.2.1", "192.0.2.0", 0},
		{"2001:db8:8000::/33", "2001:db8:ffff::", 1},
		{"2001:db8:8000::/33", "2001:db8:7fff::", 0},
		{"2001:db8::1/128", "2001:db8::2", 0},
		{"2001:db8::/64", "2001:db8:0:0:1::", 1},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
		struct mr_prefix p, any = {0};
		struct mr_ip ip;

		assert_int_equal(mr_param_prefix_parse(cases[i].prefix, &p), 0);
		assert_int_equal(mr_param_ip_parse(cases[i].ip, &ip), 0);
		assert_int_equal(mr_prefix_has(&p, &ip), cases[i].has);
		assert_true(mr_prefix_has(&any, &ip));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_takes_what_its_row_says_and_prints_it),
		cmocka_unit_test(lists_are_stored_with_their_number),
		cmocka_unit_test(prefixes_hold_what_they_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
