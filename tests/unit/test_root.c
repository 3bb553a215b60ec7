/* SPDX-License-Identifier: BSD-3-Clause */
/* Files below a root that is not trusted, and what the kernel writes into them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_capture.h"
#include "mr_parse.h"
#include "mr_root.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[] = "/tmp/mr-root-XXXXXX";
static char folder[64];
static struct mr_root root;
static struct mr_err err;

static const char *at(const char *path)
{
	static char full[256];

	snprintf(full, sizeof(full), "%s/%s", folder, path);
	return full;
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(at(path), "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void link_to(const char *path, const char *to)
{
	assert_int_equal(symlink(to, at(path)), 0);
}

/* The secret lies beside the root: nothing may lead there. */
static int make(void **state)
{
	char secret[64];
	FILE *f;

	(void)state;
	if (mkdtemp(base) == NULL)
		return -1;
	snprintf(secret, sizeof(secret), "%s/secret", base);
	f = fopen(secret, "w");
	fputs("secret\n", f);
	fclose(f);
	snprintf(folder, sizeof(folder), "%s/r", base);
	mkdir(folder, 0700);
	mkdir(at("dir"), 0700);
	put("dir/file", "inside\n");
	put("secret", "mine\n");
	return mr_root_open(&root, folder, &err);
}

static int clear(void **state)
{
	char command[64];

	(void)state;
	mr_root_close(&root);
	snprintf(command, sizeof(command), "rm -r '%s'", base);
	return system(command);
}

static void links_stay_inside(void **state)
{
	char text[32], path[MR_ROOT_PATH_MAX];

	(void)state;
	link_to("absolute", "/dir/file");
	link_to("dots", "../../../../secret");
	link_to("dir/up", "../dir");
	link_to("loop", "loop");
	assert_int_equal(mr_root_read(&root, "absolute", text, sizeof(text), NULL), 0);
	assert_string_equal(text, "inside\n");
	assert_int_equal(mr_root_read(&root, "dots", text, sizeof(text), NULL), 0);
	assert_string_equal(text, "mine\n");
	assert_int_equal(mr_root_read(&root, "../secret", text, sizeof(text), NULL), 0);
	assert_string_equal(text, "mine\n");
	assert_int_equal(mr_root_real(&root, "dir/up/file", path), 0);
	assert_string_equal(path, "dir/file");
	assert_int_equal(mr_root_read(&root, "loop", text, sizeof(text), NULL), -ELOOP);
	assert_string_equal(text, "");
}

static void only_regular_files_are_read_and_none_is_waited_for(void **state)
{
	char text[32];

	(void)state;
	assert_int_equal(mkfifo(at("pipe"), 0600), 0);
	link_to("null", "/dev/null");
	assert_int_equal(mr_root_read(&root, "pipe", text, sizeof(text), NULL), -EISDIR);
	assert_int_equal(mr_root_read(&root, "dir", text, sizeof(text), NULL), -EISDIR);
	assert_int_equal(mr_root_read(&root, "null", text, sizeof(text), NULL), -ENOENT);
	assert_int_equal(mr_root_read(&root, "nothing", text, sizeof(text), NULL), -ENOENT);
	assert_int_equal(mr_root_open_stream(&root, "pipe"), -EISDIR);
}

static void a_long_file_is_cut_and_says_so(void **state)
{
	size_t bytes;
	char text[5];

	(void)state;
	put("four", "1234");
	put("five", "12345");
	assert_int_equal(mr_root_read(&root, "four", text, sizeof(text), &bytes), 0);
	assert_int_equal(bytes, 4);
	assert_int_equal(mr_root_read(&root, "five", text, sizeof(text), &bytes), -EFBIG);
	assert_string_equal(text, "1234");
}

static void what_was_denied_stays_denied(void **state)
{
	struct mr_root again;
	char text[32];

	(void)state;
	mkdir(at("millrace"), 0700);
	put("millrace/denied", "r dir/file\nw secret\nr dir\n");
	assert_int_equal(mr_root_open(&again, folder, &err), 0);
	assert_int_equal(mr_root_read(&again, "dir/file", text, sizeof(text), NULL), -EACCES);
	assert_int_equal(mr_root_read(&again, "secret", text, sizeof(text), NULL), 0);
	assert_int_equal(mr_root_may(&again, "secret", R_OK), 0);
	assert_int_equal(mr_root_may(&again, "secret", R_OK | W_OK), -EACCES);
	assert_int_equal(mr_root_may(&again, "nothing", R_OK), -ENOENT);
	mr_root_close(&again);
}

static void names_are_sorted(void **state)
{
	struct mr_root_names names;

	(void)state;
	mkdir(at("many"), 0700);
	put("many/b", "");
	put("many/a", "");
	put("many/.c", "");
	assert_int_equal(mr_root_list(&root, "many", &names), 0);
	assert_int_equal(names.count, 3);
	assert_string_equal(names.name[0], ".c");
	assert_string_equal(names.name[2], "b");
	mr_root_names_free(&names);
	assert_int_equal(mr_root_list(&root, "secret", &names), -ENOTDIR);
}

static void a_root_that_is_none_is_a_sentence(void **state)
{
	struct mr_root r;

	(void)state;
	assert_int_equal(mr_root_open(&r, "/nonexistent", &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/nonexistent"));
	assert_int_equal(mr_root_open(&r, at("pipe"), &err), -ENOTDIR);
	assert_int_equal(mr_root_open(&r, at("secret"), &err), -EBADMSG);
	mr_root_close(&r);
}

static void numbers_are_whole_or_nothing(void **state)
{
	static const char *const bad[] = {"", " ", "x", "1x", "-", "18446744073709551616",
		"99999999999999999999999", "1 2", "0x10"};
	uint64_t v;
	int64_t i;

	(void)state;
	for (size_t k = 0; k < MR_ARRAY_LEN(bad); k++)
		assert_false(mr_parse_u64(bad[k], &v));
	assert_true(mr_parse_u64("18446744073709551615\n", &v) && v == UINT64_MAX);
	assert_true(mr_parse_u64("65536", &v) && v == 65536);
	assert_true(mr_parse_hex("0xfF\n", &v) && v == 255);
	assert_true(mr_parse_hex("ffffffffffffffff", &v) && v == UINT64_MAX);
	assert_false(mr_parse_hex("10000000000000000", &v));
	assert_true(mr_parse_i64("-1\n", &i) && i == -1);
	assert_false(mr_parse_i64("9223372036854775808", &i));
}

static void lists_are_whole_or_nothing(void **state)
{
	static const char *const bad[] = {
		"x", "0-", "-1", "3-1", "0,,1", "0 1", "0-1-2", ",", "(null)"};
	bool set[8];
	uint32_t end;

	(void)state;
	for (size_t k = 0; k < MR_ARRAY_LEN(bad); k++)
		assert_false(mr_parse_list(bad[k], set, 8, &end));
	memset(set, 0, sizeof(set));
	assert_true(mr_parse_list("5,0-2,7-18446744073709551605\n", set, 8, &end));
	assert_int_equal(end, 8);
	assert_true(set[0] && set[2] && !set[3] && set[5] && !set[6] && set[7]);
	assert_true(mr_parse_list("\n", set, 8, &end) && end == 0);
}

static void words_are_whole(void **state)
{
	char word[4];

	(void)state;
	assert_non_null(mr_parse_token("quiet iommu=pt", "iommu=pt"));
	assert_null(mr_parse_token("xiommu=pt iommu=ptx", "iommu=pt"));
	assert_non_null(mr_parse_token("a iommu=pt", "iommu="));
	assert_string_equal(mr_parse_line("MemX: 1\nMem:\t 2\n", "Mem"), "2\n");
	assert_null(mr_parse_line(" Mem: 2\n", "Mem"));
	mr_parse_word("longer\n", word, sizeof(word));
	assert_string_equal(word, "lon");
}

static void replacements_are_as_long_and_the_same_for_the_same(void **state)
{
	struct mr_capture *c = mr_capture_start(&root);
	char text[] = "aa:bb:cc:dd:ee:0f x AA:BB:CC:DD:EE:0F y aa:bb:cc:dd:ee:1f "
		      "enxaabbccddee0f 0000:3b:00.0 6fd1b9a4-5c3e-4d1f-9a7b-0123456789ab "
		      "e41d:2d03:00aa:bbcc 12:34:56 0xffffffffffffffff";
	const char wanted[] = "02:00:00:00:00:01 x 02:00:00:00:00:01 y 02:00:00:00:00:02 "
			      "enx000000000001 0000:3b:00.0 00000000-0000-0000-0000-000000000003 "
			      "0000:0000:0000:0004 12:34:56 0xffffffffffffffff";

	(void)state;
	assert_non_null(c);
	mr_capture_scrub(c, text, sizeof(text) - 1);
	mr_capture_free(c);
	assert_string_equal(text, wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_stay_inside),
		cmocka_unit_test(only_regular_files_are_read_and_none_is_waited_for),
		cmocka_unit_test(a_long_file_is_cut_and_says_so),
		cmocka_unit_test(what_was_denied_stays_denied),
		cmocka_unit_test(names_are_sorted),
		cmocka_unit_test(a_root_that_is_none_is_a_sentence),
		cmocka_unit_test(numbers_are_whole_or_nothing),
		cmocka_unit_test(lists_are_whole_or_nothing),
		cmocka_unit_test(words_are_whole),
		cmocka_unit_test(replacements_are_as_long_and_the_same_for_the_same),
	};

	return cmocka_run_group_tests(tests, make, clear);
}
