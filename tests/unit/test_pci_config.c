/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pci_config_fixture.h"

#include <stdlib.h>

static uint8_t space[MR_PCI_CONFIG_BYTES];
static struct mr_pci_config c;

/* Parses the first size bytes, which lie in memory of just that size. */
static void parse(size_t size)
{
	uint8_t *exact = malloc(size != 0 ? size : 1);

	assert_non_null(exact);
	memcpy(exact, space, size);
	mr_pci_config_parse(exact, size, &c);
	free(exact);
	assert_true(pci_config_holds(&c, size));
}

static int nic(void **state)
{
	(void)state;
	make_nic(space);
	return 0;
}

static void all_parts_of_a_nic_are_read(void **state)
{
	(void)state;
	parse(4096);
	assert_int_equal(c.header, MR_PCI_PRESENT);
	assert_int_equal(c.vendor, 0x15b3);
	assert_int_equal(c.device, 0x1021);
	assert_int_equal(c.class_code, 0x020000);
	assert_int_equal(c.header_type, 0);
	assert_true(c.multifunction && !c.virtual_function);
	assert_int_equal(c.express.seen, MR_PCI_PRESENT);
	assert_int_equal(c.express.port, MR_PCI_PORT_ENDPOINT);
	assert_int_equal(c.express.mps_supported_bytes, 512);
	assert_true(c.express.extended_tag_supported && c.express.control_valid);
	assert_int_equal(c.express.mps_bytes, 256);
	assert_int_equal(c.express.mrrs_bytes, 4096);
	assert_true(c.express.relaxed_ordering && c.express.extended_tag && c.express.no_snoop);
	assert_int_equal(c.express.link_max.speed_mts, 32000);
	assert_int_equal(c.express.link_max.width, 16);
	assert_int_equal(c.express.link.speed_mts, 16000);
	assert_int_equal(c.express.link.width, 8);
	assert_int_equal(c.acs.seen, MR_PCI_PRESENT);
	assert_int_equal(c.acs.supported, 0x5c);
	assert_int_equal(
		c.acs.control, MR_PCI_ACS_REQUEST_REDIRECT | MR_PCI_ACS_COMPLETION_REDIRECT);
	assert_true((c.acs.control & MR_PCI_ACS_DETOUR) != 0);
	assert_int_equal(c.rebar.seen, MR_PCI_PRESENT);
	assert_int_equal(c.rebar.count, 1);
	assert_int_equal(c.rebar.bars[0].bar, 2);
	assert_true(c.rebar.bars[0].supported_sizes == 0x7fff);
	assert_true(c.rebar.bars[0].bytes == 8ull << 30);
	assert_int_equal(c.sriov.seen, MR_PCI_PRESENT);
	assert_true(c.sriov.enabled);
	assert_int_equal(c.sriov.vfs_total, 16);
	assert_int_equal(c.sriov.vfs, 4);
}

static void control_bits_are_told_apart(void **state)
{
	static const struct {
		uint16_t control;
		bool ordering, tag, snoop;
	} rows[] = {{0x0010, true, false, false}, {0x0100, false, true, false},
		{0x0800, false, false, true}};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		put16(space, 0x68, rows[i].control);
		parse(4096);
		assert_int_equal(c.express.relaxed_ordering, rows[i].ordering);
		assert_int_equal(c.express.extended_tag, rows[i].tag);
		assert_int_equal(c.express.no_snoop, rows[i].snoop);
		assert_int_equal(c.express.mps_bytes, 128);
		assert_int_equal(c.express.mrrs_bytes, 128);
	}
}

static void a_port_of_a_switch_has_buses_and_a_slot(void **state)
{
	(void)state;
	space[0x0e] = 0x01;
	space[0x19] = 0x3d;
	space[0x1a] = 0x3f;
	put16(space, 0x62, 0x0162);
	put32(space, 0x74, 0x002a0000);
	parse(4096);
	assert_int_equal(c.header_type, 1);
	assert_int_equal(c.bus_secondary, 0x3d);
	assert_int_equal(c.bus_subordinate, 0x3f);
	assert_int_equal(c.express.port, MR_PCI_PORT_DOWNSTREAM);
	assert_true(c.express.slot);
	assert_int_equal(c.express.slot_number, 5);
}

static void sixty_four_bytes_need_root(void **state)
{
	(void)state;
	parse(64);
	assert_int_equal(c.header, MR_PCI_PRESENT);
	assert_int_equal(c.vendor, 0x15b3);
	assert_int_equal(c.express.seen, MR_PCI_UNREAD);
	assert_int_equal(c.acs.seen, MR_PCI_UNREAD);
	assert_int_equal(c.rebar.seen, MR_PCI_UNREAD);
	assert_int_equal(c.sriov.seen, MR_PCI_UNREAD);
	assert_non_null(strstr(mr_pci_config_reason(&c, c.acs.seen), "unknown: root is needed"));
}

static void conventional_space_has_no_extended_part(void **state)
{
	(void)state;
	parse(256);
	assert_int_equal(c.express.seen, MR_PCI_PRESENT);
	assert_int_equal(c.express.mrrs_bytes, 4096);
	assert_int_equal(c.acs.seen, MR_PCI_UNREAD);
	assert_non_null(strstr(mr_pci_config_reason(&c, c.acs.seen), "MMCONFIG"));
	/* Without express the rest cannot be there. */
	space[0x60] = 0x05;
	parse(256);
	assert_int_equal(c.express.seen, MR_PCI_ABSENT);
	assert_int_equal(c.acs.seen, MR_PCI_ABSENT);
}

static void no_list_means_no_capability_even_without_root(void **state)
{
	(void)state;
	put16(space, 0x06, 0);
	parse(64);
	assert_int_equal(c.express.seen, MR_PCI_ABSENT);
	assert_int_equal(c.acs.seen, MR_PCI_ABSENT);
}

static void every_length_is_read_without_a_step_beyond(void **state)
{
	(void)state;
	for (size_t size = 0; size <= 600; size++) {
		parse(size);
		assert_int_equal(c.express.seen == MR_PCI_PRESENT, size >= 0x74);
		assert_int_equal(c.acs.seen == MR_PCI_PRESENT, size >= 0x1c0 + 4);
		assert_int_equal(c.sriov.seen == MR_PCI_PRESENT, size >= 0x1c0 + 0x40);
	}
	parse(0);
	assert_non_null(strstr(mr_pci_config_reason(&c, c.express.seen), "could not be read"));
}

static void a_device_that_is_gone_is_told(void **state)
{
	(void)state;
	for (size_t size = 64; size <= 4096; size *= 4) {
		memset(space, 0xff, sizeof(space));
		parse(size);
		assert_int_equal(c.header, MR_PCI_LOST);
		assert_int_equal(c.express.seen, MR_PCI_LOST);
		assert_int_equal(c.acs.seen, MR_PCI_LOST);
	}
	assert_non_null(strstr(mr_pci_config_reason(&c, c.header), "does not answer"));
	/* Still starting: "retry". */
	make_nic(space);
	put32(space, 0, 0xffff0001);
	parse(4096);
	assert_int_equal(c.header, MR_PCI_LOST);
	/* It left between the reads. */
	make_nic(space);
	memset(space + 0x40, 0xff, sizeof(space) - 0x40);
	parse(4096);
	assert_int_equal(c.header, MR_PCI_PRESENT);
	assert_int_equal(c.express.seen, MR_PCI_LOST);
	make_nic(space);
	memset(space + 0x100, 0xff, sizeof(space) - 0x100);
	parse(4096);
	assert_int_equal(c.express.seen, MR_PCI_PRESENT);
	assert_int_equal(c.acs.seen, MR_PCI_LOST);
}

static void a_virtual_function_has_no_control_of_its_own(void **state)
{
	(void)state;
	put32(space, 0, 0xffffffff);
	put32(space, 0x10, 0);
	parse(4096);
	assert_int_equal(c.header, MR_PCI_PRESENT);
	assert_true(c.virtual_function);
	assert_int_equal(c.vendor, 0);
	assert_int_equal(c.class_code, 0x020000);
	assert_int_equal(c.express.seen, MR_PCI_PRESENT);
	assert_false(c.express.control_valid);
	assert_int_equal(c.express.mrrs_bytes, 0);
	assert_int_equal(c.express.link.width, 0);
	/* With a BAR it is no virtual function but nonsense. */
	put32(space, 0x24, 0xe000000c);
	parse(4096);
	assert_int_equal(c.header, MR_PCI_BROKEN);
}

static void headers_of_no_device_are_broken(void **state)
{
	static const uint32_t ids[] = {0x00000000, 0x12340000, 0x12340001, 0x1234ffff};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(ids); i++) {
		put32(space, 0, ids[i]);
		parse(4096);
		assert_int_equal(c.header, MR_PCI_BROKEN);
	}
	make_nic(space);
	space[0x0e] = 0x03;
	parse(4096);
	assert_int_equal(c.header, MR_PCI_BROKEN);
	assert_int_equal(c.express.seen, MR_PCI_BROKEN);
	memset(space, 0, sizeof(space));
	parse(4096);
	assert_int_equal(c.header, MR_PCI_BROKEN);
}

static void lists_that_do_not_end_are_broken(void **state)
{
	(void)state;
	space[0x61] = 0x40; /* back to the first */
	parse(4096);
	assert_int_equal(c.express.seen, MR_PCI_BROKEN);
	assert_int_equal(c.acs.seen, MR_PCI_BROKEN);
	space[0x61] = 0x60; /* to itself */
	parse(4096);
	assert_int_equal(c.express.seen, MR_PCI_BROKEN);
	space[0x61] = 0x10; /* into the header */
	parse(4096);
	assert_int_equal(c.express.seen, MR_PCI_BROKEN);
	make_nic(space);
	space[0x34] = 0xfc; /* the last dword: an empty capability ends the list */
	parse(4096);
	assert_int_equal(c.express.seen, MR_PCI_ABSENT);
	make_nic(space);
	put32(space, 0x1c0, 0x15010010); /* back to ACS */
	parse(4096);
	assert_int_equal(c.acs.seen, MR_PCI_BROKEN);
	assert_int_equal(c.express.seen, MR_PCI_PRESENT);
	put32(space, 0x1c0, 0x08010010); /* into conventional space */
	parse(4096);
	assert_int_equal(c.sriov.seen, MR_PCI_BROKEN);
	put32(space, 0x1c0, 0x00000010); /* version 0 */
	parse(4096);
	assert_int_equal(c.rebar.seen, MR_PCI_BROKEN);
}

static void a_port_that_its_header_denies_is_broken(void **state)
{
	(void)state;
	put16(space, 0x62, 0x0052); /* a switch's port with a device's header */
	parse(4096);
	assert_int_equal(c.express.seen, MR_PCI_BROKEN);
	assert_int_equal(c.acs.seen, MR_PCI_BROKEN);
	put16(space, 0x62, 0x00f2); /* no such type */
	parse(4096);
	assert_int_equal(c.express.seen, MR_PCI_BROKEN);
	put16(space, 0x62, 0x0000); /* no version */
	parse(4096);
	assert_int_equal(c.express.seen, MR_PCI_BROKEN);
}

static void an_express_part_across_the_end_is_broken(void **state)
{
	(void)state;
	space[0x41] = 0xf0;
	put16(space, 0xf0, 0x0010);
	put16(space, 0xf2, 0x0002);
	parse(4096);
	assert_int_equal(c.express.seen, MR_PCI_PRESENT); /* reaches into what is read */
	parse(256);
	assert_int_equal(c.express.seen, MR_PCI_BROKEN);
	space[0x41] = 0xec; /* version 1 has no more than these bytes */
	put16(space, 0xec, 0x0010);
	put16(space, 0xee, 0x0001);
	parse(256);
	assert_int_equal(c.express.seen, MR_PCI_PRESENT);
}

static void every_width_of_the_standard_is_known(void **state)
{
	static const uint32_t widths[] = {1, 2, 4, 8, 12, 16, 32};

	(void)state;
	for (uint32_t code = 1, i = 0; code < 64; code++) {
		bool standard = i < MR_ARRAY_LEN(widths) && widths[i] == code;

		put16(space, 0x72, code << 4 | 5);
		parse(4096);
		assert_int_equal(c.express.link.width, standard ? code : 0);
		i += standard;
	}
}

static void reserved_codes_are_not_known(void **state)
{
	(void)state;
	put16(space, 0x68, 0x70e0);      /* sizes of code 7 */
	put32(space, 0x6c, 0x0000007f);  /* speed 15, width 7 */
	put16(space, 0x72, 0x0004);      /* width 0: the link is down */
	put32(space, 0x188, 0x00003f22); /* BAR of 2^83 bytes */
	parse(4096);
	assert_int_equal(c.express.seen, MR_PCI_PRESENT);
	assert_int_equal(c.express.mps_bytes, 0);
	assert_int_equal(c.express.mrrs_bytes, 0);
	assert_int_equal(c.express.link_max.speed_mts, 0);
	assert_int_equal(c.express.link_max.width, 0);
	assert_int_equal(c.express.link.speed_mts, 0);
	assert_true(c.rebar.bars[0].bytes == 0);
	put16(space, 0x68, 0x0060); /* 1024 bytes where 512 are supported */
	parse(4096);
	assert_int_equal(c.express.mps_bytes, 0);
}

static void settings_that_are_not_supported_are_broken(void **state)
{
	(void)state;
	put16(space, 0x156, 0x0020);
	put32(space, 0x188, 0x00000d26); /* BAR 6 */
	put16(space, 0x1d0, 17);
	parse(4096);
	assert_int_equal(c.acs.seen, MR_PCI_BROKEN);
	assert_int_equal(c.rebar.seen, MR_PCI_BROKEN);
	assert_int_equal(c.sriov.seen, MR_PCI_BROKEN);
	make_nic(space);
	put32(space, 0x188, 0x00000d42);
	parse(4096);
	assert_int_equal(c.rebar.count, 2);
	assert_int_equal(c.rebar.bars[1].bar, 5);
	put32(space, 0x188, 0x00000d02); /* of no BAR at all */
	parse(4096);
	assert_int_equal(c.rebar.seen, MR_PCI_BROKEN);
	put32(space, 0x188, 0x00000de2); /* of seven */
	parse(4096);
	assert_int_equal(c.rebar.seen, MR_PCI_BROKEN);
}

static void a_capability_at_the_very_end_is_broken(void **state)
{
	(void)state;
	put32(space, 0x1c0, 0xffc10010);
	put32(space, 0xffc, 0x0001000d);
	put32(space, 0x150, 0x18010001);
	parse(4096);
	assert_int_equal(c.acs.seen, MR_PCI_BROKEN);
	assert_int_equal(c.sriov.seen, MR_PCI_PRESENT);
	/* Room for one BAR, and it says two. */
	put32(space, 0x1c0, 0xff010010);
	put32(space, 0xff0, 0x00010015);
	put32(space, 0xff8, 0x00000542);
	put32(space, 0x180, 0x1c010001);
	parse(4096);
	assert_int_equal(c.rebar.seen, MR_PCI_BROKEN);
	put32(space, 0xff8, 0x00000522);
	parse(4096);
	assert_int_equal(c.rebar.seen, MR_PCI_PRESENT);
}

/* Random bytes, and a good machine with a few of them. xorshift64*, the same every time. */
static uint32_t roll(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return (uint32_t)(*seed * 0x2545f4914f6cdd1dull >> 32);
}

static void random_bytes_end_and_give_nothing_without_its_part(void **state)
{
	uint64_t seed = 1;
	uint32_t whole = 0, present = 0;

	(void)state;
	for (uint32_t turn = 0; turn < 20000; turn++) {
		size_t size = roll(&seed) % 3 == 0 ? roll(&seed) % 4200 : 4096;

		size = size < sizeof(space) ? size : sizeof(space);
		if (turn % 2 == 0) {
			for (size_t i = 0; i < size; i += 4)
				put32(space, (uint32_t)i, roll(&seed));
			space[0x0e] &= 0x81;
		} else {
			make_nic(space);
			for (uint32_t n = roll(&seed) % 20; n > 0; n--)
				space[roll(&seed) % 0x200] = (uint8_t)roll(&seed);
		}
		parse(size);
		whole += turn % 2 == 0 && c.acs.seen == MR_PCI_PRESENT;
		present += c.acs.seen == MR_PCI_PRESENT;
	}
	assert_int_equal(whole, 0);
	assert_true(present > 1000); /* the good ones are not all thrown away */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_parts_of_a_nic_are_read, nic),
		cmocka_unit_test_setup(control_bits_are_told_apart, nic),
		cmocka_unit_test_setup(a_port_of_a_switch_has_buses_and_a_slot, nic),
		cmocka_unit_test_setup(sixty_four_bytes_need_root, nic),
		cmocka_unit_test_setup(conventional_space_has_no_extended_part, nic),
		cmocka_unit_test_setup(no_list_means_no_capability_even_without_root, nic),
		cmocka_unit_test_setup(every_length_is_read_without_a_step_beyond, nic),
		cmocka_unit_test_setup(a_device_that_is_gone_is_told, nic),
		cmocka_unit_test_setup(a_virtual_function_has_no_control_of_its_own, nic),
		cmocka_unit_test_setup(headers_of_no_device_are_broken, nic),
		cmocka_unit_test_setup(lists_that_do_not_end_are_broken, nic),
		cmocka_unit_test_setup(a_port_that_its_header_denies_is_broken, nic),
		cmocka_unit_test_setup(an_express_part_across_the_end_is_broken, nic),
		cmocka_unit_test_setup(every_width_of_the_standard_is_known, nic),
		cmocka_unit_test_setup(reserved_codes_are_not_known, nic),
		cmocka_unit_test_setup(settings_that_are_not_supported_are_broken, nic),
		cmocka_unit_test_setup(a_capability_at_the_very_end_is_broken, nic),
		cmocka_unit_test_setup(random_bytes_end_and_give_nothing_without_its_part, nic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
