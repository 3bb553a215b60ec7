/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_pci.h"

#include <string.h>

static void one_address_in_all_its_forms(void **state)
{
	static const char *const forms[] = {
		"0000:1a:02.3", "00000000:1A:02.3", "1a:02.3", "0000:1A:02.3\n"};
	struct mr_pci_addr a;
	char text[MR_PCI_ADDR_BYTES];

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(forms); i++) {
		assert_true(mr_pci_addr_parse(forms[i], &a));
		mr_pci_addr_format(&a, text);
		assert_string_equal(text, "0000:1a:02.3");
	}
}

static void wide_domains_keep_their_digits(void **state)
{
	static const char *const same[] = {"10000:01:00.0", "ffffffff:ff:1f.7", "e8a3:00:02.0"};
	struct mr_pci_addr a;
	char text[MR_PCI_ADDR_BYTES];

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(same); i++) {
		assert_true(mr_pci_addr_parse(same[i], &a));
		mr_pci_addr_format(&a, text);
		assert_string_equal(text, same[i]);
	}
	assert_true(mr_pci_addr_parse("10000:01:00.0", &a));
	assert_int_equal(a.domain, 0x10000);
}

static void what_is_no_address_is_refused(void **state)
{
	static const char *const bad[] = {"", "0000", "1a", "1a:", "1a:00", "1a:00.", "1a:00.8",
		"1a:20.0", "1a:0.0", "a:00.0", "01a:00.0", "000:1a:00.0", "000000000:1a:00.0",
		"0000:1a:00.0 ", "0000:1a:00.0\n\n", " 0000:1a:00.0", "0000:1a:00.0/x",
		"0000:1g:00.0", "0000:1a-00.0", "0000:1a:00:0", "0000::1a:00.0", "virtio0",
		"1a:00.00"};
	struct mr_pci_addr a;

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++)
		if (mr_pci_addr_parse(bad[i], &a))
			fail_msg("'%s' was taken for an address", bad[i]);
}

static void addresses_are_ordered_by_every_part(void **state)
{
	static const char *const order[] = {"0000:00:00.0", "0000:00:00.1", "0000:00:01.0",
		"0000:01:00.0", "0001:00:00.0", "10000:00:00.0"};
	struct mr_pci_addr a[MR_ARRAY_LEN(order)];

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(order); i++)
		assert_true(mr_pci_addr_parse(order[i], &a[i]));
	for (size_t i = 0; i < MR_ARRAY_LEN(order); i++)
		for (size_t k = 0; k < MR_ARRAY_LEN(order); k++)
			assert_int_equal(mr_pci_addr_compare(&a[i], &a[k]), (i > k) - (i < k));
}

static void links_are_read_in_old_and_new_words(void **state)
{
	static const struct {
		const char *speed, *width;
		uint32_t mts, lanes;
	} rows[] = {
		{"16.0 GT/s PCIe\n", "16\n", 16000, 16},
		{"16 GT/s\n", "8\n", 16000, 8},
		{"2.5 GT/s PCIe", "1", 2500, 1},
		{"64.0 GT/s PCIe\n", "32\n", 64000, 32},
		{"Unknown\n", "0\n", 0, 0},
		{"Unknown speed\n", "63\n", 0, 0},
		{"255 GT/s", "255", 0, 0},
		{"16.05 GT/s", "x16", 0, 0},
		{"16. GT/s", "-1", 0, 0},
		{"2.05 GT/s", "", 0, 0},
		{"2.50 GT/s", "", 0, 0},
		{"16.0", "16 ", 0, 0},
		{"16.0 GT/sec", "99999999999999999999", 0, 0},
		{"99999999999999999999 GT/s", "016000", 0, 0},
		{"", "", 0, 0},
		{NULL, NULL, 0, 0},
	};
	struct mr_pci_link l;

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		mr_pci_link_parse(rows[i].speed, rows[i].width, &l);
		assert_int_equal(l.speed_mts, rows[i].mts);
		assert_int_equal(l.width, rows[i].lanes);
	}
}

static void links_are_written_with_what_is_known(void **state)
{
	static const struct {
		struct mr_pci_link link;
		const char *text;
	} rows[] = {
		{{32000, 16}, "x16 32.0 GT/s"},
		{{2500, 1}, "x1 2.5 GT/s"},
		{{0, 8}, "x8 ? GT/s"},
		{{0, 0}, "x? ? GT/s"},
		{{UINT32_MAX, UINT32_MAX}, "x295 4294967.2 GT/s"},
	};
	char text[MR_PCI_LINK_BYTES];

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		mr_pci_link_format(&rows[i].link, text);
		assert_string_equal(text, rows[i].text);
	}
}

static void a_link_carries_what_its_coding_leaves(void **state)
{
	(void)state;
	assert_int_equal(mr_pci_link_mbps(&(struct mr_pci_link){2500, 16}), 32000);
	assert_int_equal(mr_pci_link_mbps(&(struct mr_pci_link){5000, 1}), 4000);
	assert_int_equal(mr_pci_link_mbps(&(struct mr_pci_link){8000, 8}), 63015);
	assert_int_equal(mr_pci_link_mbps(&(struct mr_pci_link){32000, 16}), 504123);
	assert_int_equal(mr_pci_link_mbps(&(struct mr_pci_link){64000, 16}), 968000);
	assert_int_equal(mr_pci_link_mbps(&(struct mr_pci_link){32000, 0}), 0);
	assert_int_equal(mr_pci_link_mbps(&(struct mr_pci_link){0, 16}), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_address_in_all_its_forms),
		cmocka_unit_test(wide_domains_keep_their_digits),
		cmocka_unit_test(what_is_no_address_is_refused),
		cmocka_unit_test(addresses_are_ordered_by_every_part),
		cmocka_unit_test(links_are_read_in_old_and_new_words),
		cmocka_unit_test(links_are_written_with_what_is_known),
		cmocka_unit_test(a_link_carries_what_its_coding_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
