/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_nearest.h"
#include "mr_stage.h"

#include <errno.h>
#include <string.h>

static uint32_t stored(const uint8_t params[MR_PARAM_BYTES], uint32_t offset)
{
	uint32_t v;

	memcpy(&v, params + offset, sizeof(v));
	return v;
}

static void every_row_is_found_by_its_name(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; mr_stage_at(i) != NULL; i++) {
		const struct mr_stage_desc *s = mr_stage_at(i);

		assert_int_equal(s->id, i);
		assert_true(s->work < MR_WORK_COUNT);
		assert_true(strlen(s->name) > 0 && strlen(s->name) < MR_NAME_MAX);
		assert_true(strlen(s->help) > 0);
		assert_ptr_equal(mr_stage_find(s->name), s);
	}
	assert_int_equal(i, MR_STAGE_COUNT);
	assert_null(mr_stage_find("l2swa"));
	assert_null(mr_stage_find(""));
	assert_null(mr_stage_at(UINT32_MAX));
}

static void defaults_are_accepted_and_stored(void **state)
{
	(void)state;
	for (uint32_t i = 0; mr_stage_at(i) != NULL; i++) {
		const struct mr_stage_desc *s = mr_stage_at(i);
		uint8_t set[MR_PARAM_BYTES] = {0};
		uint8_t defaults[MR_PARAM_BYTES];

		memset(defaults, 0xff, sizeof(defaults));
		mr_stage_param_defaults(s, defaults);
		for (uint32_t k = 0; k < s->params_count; k++) {
			struct mr_err err;

			assert_true(s->params[k].offset +
					mr_param_bytes(s->params[k].type) *
						(s->params[k].list_max > 0 ? s->params[k].list_max
									   : 1) <=
				MR_PARAM_BYTES);
			assert_true(
				s->params[k].type != MR_PARAM_WORD || s->params[k].words != NULL);
			assert_int_equal(mr_stage_param_set(s, s->params[k].name, s->params[k].def,
						 NULL, set, &err),
				0);
		}
		assert_memory_equal(set, defaults, MR_PARAM_BYTES);
	}
}

static void numbers_are_whole_tokens_within_bounds(void **state)
{
	static const char *const bad[] = {
		"", " 1", "1 ", "+1", "-1", "0x1", "01", "1.0", "one", "1,2", "1\n"};
	static const char *const outside[] = {"16", "4294967295", "4294967296",
		"18446744073709551616", "99999999999999999999999999999999"};
	const struct mr_stage_desc *s = mr_stage_find("forward");
	uint8_t params[MR_PARAM_BYTES] = {0};
	struct mr_err err;

	(void)state;
	assert_int_equal(mr_stage_param_set(s, "port", "15", NULL, params, &err), 0);
	assert_int_equal(stored(params, s->params[0].offset), 15);
	for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++)
		assert_int_equal(
			mr_stage_param_set(s, "port", bad[i], NULL, params, &err), -EINVAL);
	for (size_t i = 0; i < MR_ARRAY_LEN(outside); i++) {
		assert_int_equal(
			mr_stage_param_set(s, "port", outside[i], NULL, params, &err), -ERANGE);
		assert_non_null(strstr(err.msg, "but the tx list has 16"));
	}
	assert_int_equal(stored(params, s->params[0].offset), 15);
}

static void reasons_are_names_of_the_list(void **state)
{
	const struct mr_stage_desc *s = mr_stage_find("drop");
	uint8_t params[MR_PARAM_BYTES] = {0};
	struct mr_err err;

	(void)state;
	for (uint32_t i = 0; i < MR_REASON_COUNT; i++) {
		const char *name = mr_reason_name((enum mr_reason)i);

		assert_int_equal(mr_stage_param_set(s, "reason", name, NULL, params, &err), 0);
		assert_int_equal(stored(params, s->params[0].offset), i);
	}
	assert_int_equal(mr_stage_param_set(s, "reason", "runts", NULL, params, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "did you mean 'runt'?"));
	assert_int_equal(mr_stage_param_set(s, "reason", "2", NULL, params, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "'policy'"));
	assert_string_equal(mr_reason_name(MR_REASON_COUNT), "unknown");
}

static void unknown_parameters_name_the_nearest(void **state)
{
	uint8_t params[MR_PARAM_BYTES] = {0};
	char many[4000];
	struct mr_err err;

	(void)state;
	assert_int_equal(
		mr_stage_param_set(mr_stage_find("forward"), "prot", "0", NULL, params, &err),
		-ENOENT);
	assert_non_null(strstr(err.msg, "did you mean 'port'?"));
	assert_int_equal(
		mr_stage_param_set(mr_stage_find("l2swap"), "port", "0", NULL, params, &err),
		-ENOENT);
	assert_non_null(strstr(err.msg, "has no parameters"));
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	assert_int_equal(
		mr_stage_param_set(mr_stage_find("forward"), many, many, NULL, params, &err),
		-ENOENT);
	assert_int_equal(
		mr_stage_param_set(mr_stage_find("drop"), "reason", many, NULL, params, NULL),
		-EINVAL);
}

static const char *nearest(const char *word, const char *const *known, size_t count)
{
	struct mr_nearest n;

	mr_nearest_init(&n, word);
	for (size_t i = 0; i < count; i++)
		mr_nearest_offer(&n, known[i]);
	return mr_nearest_get(&n);
}

static void nearest_takes_slips_and_leaves_strangers(void **state)
{
	static const char *const known[] = {
		"slots", "stages", "workers", "tx_path", "rx_path", "mtu"};
	size_t n = MR_ARRAY_LEN(known);

	(void)state;
	assert_string_equal(nearest("slot", known, n), "slots");
	assert_string_equal(nearest("wrokers", known, n), "workers");
	assert_string_equal(nearest("WORKERS", known, n), "workers");
	assert_string_equal(nearest("tx-path", known, n), "tx_path");
	assert_string_equal(nearest("mut", known, n), "mtu");
	assert_null(nearest("frobnicate", known, n));
	assert_null(nearest("", known, n));
	assert_null(nearest("x", known, 0));
	assert_null(
		nearest("0123456789012345678901234567890123456789012345678901234567890123456789",
			known, n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_found_by_its_name),
		cmocka_unit_test(defaults_are_accepted_and_stored),
		cmocka_unit_test(numbers_are_whole_tokens_within_bounds),
		cmocka_unit_test(reasons_are_names_of_the_list),
		cmocka_unit_test(unknown_parameters_name_the_nearest),
		cmocka_unit_test(nearest_takes_slips_and_leaves_strangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
