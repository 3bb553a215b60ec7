/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/* What carries a path, the frames that are tried, and what the kernel shows of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_ethtool.h"
#include "mr_proof_nic.h"
#include "mr_proof_watch.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GPU "0000:3b:00.0"
#define NIC "0000:5e:00.0"
#define PEERS "sys/kernel/mm/memory_peers/"

static void bad_news_stays_and_good_news_only_fills(void **state)
{
	struct mr_proof p = {0};

	(void)state;
	mr_proof_set(&p, MR_PASS, "good");
	mr_proof_set(&p, MR_FAIL, "bad %d", 1);
	mr_proof_set(&p, MR_PASS, "good again");
	mr_proof_set(&p, MR_FAIL, "bad 2");
	assert_int_equal(p.verdict, MR_FAIL);
	assert_string_equal(p.value, "bad 1");
	p = (struct mr_proof){0};
	mr_proof_set(&p, MR_NA, "not asked");
	assert_string_equal(p.value, "not asked");
	mr_proof_set(&p, MR_PASS, "asked");
	assert_string_equal(p.value, "asked");
}

/* Of each kind, by path: the worst verdict with which the path still holds. */
static void a_path_holds_as_its_table_says(void **state)
{
	static const enum mr_check_verdict worst[][MR_PROOF_KINDS] = {
		[MR_PROOF_DIRECT_NIC] = {MR_PASS, MR_PASS, MR_PASS, MR_UNKNOWN, MR_PASS,
			MR_UNKNOWN},
		[MR_PROOF_DIRECT_STAND_IN] = {MR_PASS, MR_PASS, MR_UNKNOWN, MR_PASS, MR_PASS,
			MR_UNKNOWN},
		[MR_PROOF_DIRECT_SOFTWARE] = {MR_PASS, MR_UNKNOWN, MR_UNKNOWN, MR_PASS, MR_UNKNOWN,
			MR_UNKNOWN},
		[MR_PROOF_HOST] = {MR_PASS, MR_UNKNOWN, MR_UNKNOWN, MR_UNKNOWN, MR_UNKNOWN,
			MR_UNKNOWN},
	};

	(void)state;
	for (size_t path = 0; path < MR_ARRAY_LEN(worst); path++)
		for (int kind = 0; kind < MR_PROOF_KINDS; kind++)
			for (int v = MR_NA; v <= MR_FAIL; v++) {
				enum mr_check_verdict all[MR_PROOF_KINDS];
				enum mr_proof_kind why;
				/* Where PASS is needed, not having looked is not enough. */
				const bool holds = worst[path][kind] == MR_PASS
					? v == MR_PASS
					: v <= (int)worst[path][kind];

				for (int k = 0; k < MR_PROOF_KINDS; k++)
					all[k] = MR_PASS;
				all[kind] = (enum mr_check_verdict)v;
				if (mr_proof_judge((enum mr_proof_path)path, all, &why) != holds)
					fail_msg("path %zu, %s %s", path,
						mr_proof_kind_name((enum mr_proof_kind)kind),
						mr_check_verdict_name((enum mr_check_verdict)v));
				assert_int_equal(why, holds ? MR_PROOF_KINDS : kind);
			}
}

static void registered_memory_takes_room_in_bar1(void **state)
{
	static const struct {
		struct mr_probe_value before, after;
		uint64_t bytes;
		enum mr_check_verdict verdict;
	} row[] = {
		{{true, 1000}, {true, 900}, 100, MR_PASS},
		{{true, 1000}, {true, 800}, 100, MR_PASS},
		{{true, 1000}, {true, 901}, 100, MR_UNKNOWN},
		{{true, 1000}, {true, 1000}, 100, MR_UNKNOWN},
		{{true, 1000}, {true, 2000}, 100, MR_UNKNOWN}, /* another process left it */
		{{true, 1000}, {true, 900}, 0, MR_NA},
		{{false, 0}, {true, 900}, 100, MR_NA},
		{{true, 1000}, {false, 0}, 100, MR_NA},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(row); i++) {
		struct mr_proof p = {0};

		mr_proof_bar1(&row[i].before, &row[i].after, row[i].bytes, &p);
		if (p.verdict != row[i].verdict)
			fail_msg("row %zu: %s", i, p.value);
	}
}

static void two_frames_are_never_taken_for_each_other(void **state)
{
	static const uint8_t mac[6] = {2, 3, 4, 5, 6, 7};
	uint8_t a[1522], b[1522];

	(void)state;
	memset(a, MR_PROOF_CANARY, sizeof(a));
	mr_proof_frame(a, 60, mac, 1);
	assert_memory_equal(a, mac, 6);
	assert_int_equal(a[12] << 8 | a[13], 0x88b5);
	for (size_t i = 60; i < sizeof(a); i++)
		assert_int_equal(a[i], MR_PROOF_CANARY);
	for (uint32_t seed = 0; seed < 1000; seed++) {
		mr_proof_frame(a, sizeof(a), mac, seed);
		mr_proof_frame(b, sizeof(b), mac, seed);
		assert_int_equal(mr_proof_differs(a, b, sizeof(a)), sizeof(a));
		mr_proof_frame(b, sizeof(b), mac, seed + 1);
		assert_in_range(mr_proof_differs(a, b, sizeof(a)), 14, 24);
	}
	memcpy(b, a, sizeof(b));
	b[sizeof(b) - 1] ^= 1;
	assert_int_equal(mr_proof_differs(a, b, sizeof(b)), sizeof(b) - 1);
	b[0] ^= 1;
	assert_int_equal(mr_proof_differs(a, b, sizeof(b)), 0);
}

static void sizes_go_from_the_shortest_frame_to_the_longest(void **state)
{
	static const uint32_t longest[] = {60, 61, 1514, 1522, 9022, 65535};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(longest); i++) {
		uint32_t sizes[MR_PROOF_SIZES_MAX];
		uint32_t count = mr_proof_sizes(longest[i], sizes);

		assert_in_range(count, 1, MR_PROOF_SIZES_MAX);
		assert_int_equal(sizes[0], 60);
		assert_int_equal(sizes[count - 1], longest[i]);
		for (uint32_t k = 1; k < count; k++)
			assert_true(sizes[k - 1] < sizes[k]);
	}
}

static char base[] = "/tmp/mr-proof-XXXXXX";
static struct mr_proof_watch watch;

static void put(const char *path, const char *text)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", base, path);
	for (char *at = full + strlen(base) + 1; (at = strchr(at, '/')) != NULL; at++) {
		*at = '\0';
		(void)mkdir(full, 0700);
		*at = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* The device lies below that bridge. */
static void plug(const char *bdf, const char *bridge)
{
	char link[256], to[128];

	snprintf(to, sizeof(to), "sys/devices/pci0000:00/%s/%s/current_link_width", bridge, bdf);
	put(to, "16\n");
	snprintf(to, sizeof(to), "sys/devices/pci0000:00/%s/%s/current_link_speed", bridge, bdf);
	put(to, "32.0 GT/s PCIe\n");
	put("sys/bus/pci/devices/none", "");
	snprintf(link, sizeof(link), "%s/sys/bus/pci/devices/%s", base, bdf);
	snprintf(to, sizeof(to), "../../../devices/pci0000:00/%s/%s", bridge, bdf);
	(void)unlink(link);
	assert_int_equal(symlink(to, link), 0);
}

static void set(const char *bdf, const char *file, const char *text)
{
	char path[160];

	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/%s", bdf, file);
	put(path, text);
}

static void set_counts(const char *module, const char *registered, const char *revoked)
{
	char path[96];

	snprintf(path, sizeof(path), PEERS "%s/num_reg_bytes", module);
	put(path, registered);
	snprintf(path, sizeof(path), PEERS "%s/num_free_callbacks", module);
	put(path, revoked);
}

static int make(void **state)
{
	struct mr_err err;

	(void)state;
	snprintf(base, sizeof(base), "/tmp/mr-proof-XXXXXX");
	if (mkdtemp(base) == NULL)
		return -1;
	plug(GPU, "0000:00:01.0");
	plug(NIC, "0000:00:02.0");
	set_counts("nv_mem", "1000\n", "7\n");
	if (mr_proof_watch_open(&watch, base, &err) != 0)
		return -1;
	mr_proof_watch_add(&watch, GPU, true);
	mr_proof_watch_add(&watch, NIC, false);
	mr_proof_watch_add(&watch, NIC, false);
	return 0;
}

static int clean(void **state)
{
	char command[64];

	(void)state;
	mr_proof_watch_close(&watch);
	snprintf(command, sizeof(command), "rm -r %s", base);
	return system(command);
}

struct told {
	uint32_t count;
	char bdf[MR_BDF_MAX], sentence[256];
};

static void take(void *ctx, const char *bdf, const char *sentence)
{
	struct told *t = ctx;

	t->count++;
	snprintf(t->bdf, sizeof(t->bdf), "%s", bdf);
	snprintf(t->sentence, sizeof(t->sentence), "%s", sentence);
}

/* One change is told, and told once; none: nothing is. */
static void tells(const char *bdf, const char *sentence)
{
	struct told t = {0};

	mr_proof_watch_look(&watch, take, &t);
	assert_int_equal(t.count, sentence != NULL);
	if (sentence != NULL) {
		assert_string_equal(t.bdf, bdf);
		assert_string_equal(t.sentence, sentence);
	}
	t = (struct told){0};
	mr_proof_watch_look(&watch, take, &t);
	assert_int_equal(t.count, 0);
}

static void what_stays_as_it_was_is_not_told(void **state)
{
	(void)state;
	assert_int_equal(watch.count, 2);
	tells(NULL, NULL);
}

static void a_link_trained_to_less_is_told_with_both_widths(void **state)
{
	(void)state;
	set(NIC, "current_link_width", "8\n");
	tells(NIC, "the PCIe link of " NIC " was trained anew: width 8, it was 16");
	set(GPU, "current_link_width", "4\n");
	tells(GPU, "the PCIe link of " GPU " was trained anew: width 4, it was 16");
}

static void an_idle_gpu_may_slow_its_link_and_a_nic_may_not(void **state)
{
	(void)state;
	set(GPU, "current_link_speed", "2.5 GT/s PCIe\n");
	tells(NULL, NULL);
	set(NIC, "current_link_speed", "2.5 GT/s PCIe\n");
	tells(NIC,
		"the PCIe link of " NIC " was trained anew: 2.5 GT/s PCIe, it was 32.0 GT/s PCIe");
}

static void what_cannot_be_read_is_no_change(void **state)
{
	(void)state;
	set(NIC, "current_link_width", "");
	set(NIC, "current_link_speed", "");
	tells(NULL, NULL);
}

static void errors_that_lost_something_are_told_and_corrected_ones_are_not(void **state)
{
	(void)state;
	set(NIC, "aer_dev_correctable", "RxErr 9\nTOTAL_ERR_COR 9\n");
	tells(NULL, NULL);
	/* They could not be read before. */
	set(NIC, "aer_dev_fatal", "TLP 0\nTOTAL_ERR_FATAL 0\n");
	set(NIC, "aer_dev_nonfatal", "TLP 3\nTOTAL_ERR_NONFATAL 3\n");
	tells(NULL, NULL);
	mr_proof_watch_close(&watch);
	assert_int_equal(mr_proof_watch_open(&watch, base, &(struct mr_err){0}), 0);
	mr_proof_watch_add(&watch, NIC, false);
	tells(NULL, NULL);
	set(NIC, "aer_dev_correctable", "RxErr 99\nTOTAL_ERR_COR 99\n");
	tells(NULL, NULL);
	set(NIC, "aer_dev_fatal", "TLP 0\nTOTAL_ERR_FATAL 1\n");
	set(NIC, "aer_dev_nonfatal", "TLP 3\nTOTAL_ERR_NONFATAL 5\n");
	tells(NIC, NIC " counts 3 PCIe errors that nothing corrected since the start");
}

static void attachments_of_a_nic_are_counted_over_all_buffers(void **state)
{
	uint32_t count = 9;

	(void)state;
	assert_false(mr_proof_watch_attached(&watch, NIC, &count));
	put("sys/kernel/debug/dma_buf/bufinfo",
		"\nDma-buf Objects:\nsize\tflags\tmode\tcount\texp_name\tino\tname\n"
		"02097152\t00000002\t00080007\t00000003\tnvidia_p2p\t00000042\t<none>\n"
		"\tAttached Devices:\n\t" NIC "\n\t0000:5e:00.1\nTotal 2 devices attached\n\n"
		"02097152\t00000002\t00080007\t00000003\tnvidia_p2p\t00000043\t" NIC "\n"
		"\tAttached Devices:\n\t" NIC "\nTotal 1 devices attached\n\n"
		"\nTotal 2 objects, 4194304 bytes\n");
	assert_true(mr_proof_watch_attached(&watch, NIC, &count));
	assert_int_equal(count, 2);
	assert_true(mr_proof_watch_attached(&watch, GPU, &count));
	assert_int_equal(count, 0);
}

static void a_device_that_moved_or_went_is_told(void **state)
{
	char link[128];

	(void)state;
	plug(NIC, "0000:00:03.0");
	tells(NIC, NIC " is no longer where it was in the PCI tree");
	snprintf(link, sizeof(link), "%s/sys/bus/pci/devices/" GPU, base);
	unlink(link);
	tells(GPU, GPU " is no longer where it was in the PCI tree, and nowhere else");
}

static void a_revoked_registration_is_told_and_another_registration_is_not(void **state)
{
	uint64_t bytes;

	(void)state;
	assert_true(mr_proof_watch_registered(&watch, &bytes));
	assert_int_equal(bytes, 0);
	set_counts("nv_mem", "66536\n", "7\n");
	tells(NULL, NULL);
	assert_true(mr_proof_watch_registered(&watch, &bytes));
	assert_int_equal(bytes, 65536);
	set_counts("nv_mem", "66536\n", "9\n");
	tells("",
		"registrations of GPU memory were revoked: num_free_callbacks in "
		"/" PEERS "nv_mem went from 7 to 9");
}

/* The module counts for the whole machine: more is others', less is ours. */
static void registrations_are_judged_by_what_the_module_counted(void **state)
{
	struct mr_proof p = {0};

	(void)state;
	set_counts("nv_mem", "132072\n", "7\n");
	mr_proof_watch_judge_registered(&watch, 131072, &p);
	assert_int_equal(p.verdict, MR_PASS);
	assert_string_equal(
		p.value, "/" PEERS "nv_mem: 131072 bytes were registered, by ports 131072");
	p = (struct mr_proof){0};
	mr_proof_watch_judge_registered(&watch, 131071, &p);
	assert_int_equal(p.verdict, MR_PASS);
	p = (struct mr_proof){0};
	set_counts("nv_mem", "1000\n", "7\n");
	mr_proof_watch_judge_registered(&watch, 65536, &p);
	assert_int_equal(p.verdict, MR_FAIL);
	assert_string_equal(p.value, "/" PEERS "nv_mem: 0 bytes were registered, by ports 65536");
	p = (struct mr_proof){0};
	set_counts("nv_mem", "many\n", "7\n");
	mr_proof_watch_judge_registered(&watch, 65536, &p);
	assert_int_equal(p.verdict, MR_UNKNOWN);
}

static void attachments_are_judged_by_what_there_was_at_the_start(void **state)
{
	static const char *const buffers = "sys/kernel/debug/dma_buf/bufinfo";
	static const char two[] = "\tAttached Devices:\n\t" NIC "\n\n\t" NIC "\n";
	static const char one[] = "\tAttached Devices:\n\t" NIC "\n";
	struct mr_proof p = {0};

	(void)state;
	mr_proof_watch_judge_attached(&watch, NIC, &p);
	assert_int_equal(p.verdict, MR_NA);
	assert_string_equal(p.value, "there is no /sys/kernel/debug/dma_buf/bufinfo");
	/* There at the judgement only, so nothing to compare with. */
	put(buffers, one);
	p = (struct mr_proof){0};
	mr_proof_watch_judge_attached(&watch, NIC, &p);
	assert_int_equal(p.verdict, MR_PASS);
	assert_null(strstr(p.value, "before the start"));
	mr_proof_watch_close(&watch);
	assert_int_equal(mr_proof_watch_open(&watch, base, &(struct mr_err){0}), 0);
	mr_proof_watch_add(&watch, NIC, false);
	put(buffers, two);
	p = (struct mr_proof){0};
	mr_proof_watch_judge_attached(&watch, NIC, &p);
	assert_int_equal(p.verdict, MR_PASS);
	assert_non_null(strstr(p.value, "to 2 dma-bufs, and was to 1 before the start"));
	put(buffers, "none\n");
	p = (struct mr_proof){0};
	mr_proof_watch_judge_attached(&watch, NIC, &p);
	assert_int_equal(p.verdict, MR_UNKNOWN);
	assert_non_null(strstr(p.value, "to 0 dma-bufs, and was to 1 before the start"));
}

#define COUNTERS "millrace/probe/counters/" NIC

static struct mr_proof judge_frames(const char *before, const char *after)
{
	struct mr_proof_nic a, b;
	struct mr_proof p = {0};

	if (before != NULL)
		put(COUNTERS, before);
	mr_proof_nic_read(&watch.root, NIC, &a);
	if (after != NULL)
		put(COUNTERS, after);
	mr_proof_nic_read(&watch.root, NIC, &b);
	mr_proof_nic_judge(&a, &b, 5000, 4000, &p);
	return p;
}

static void frames_that_a_nic_did_not_count_did_not_pass_through_it(void **state)
{
	static const char from[] = "tx_vport_unicast_bytes 100\nrx_vport_unicast_bytes 200\n"
				   "outbound_pci_buffer_overflow 3\n"
				   "outbound_pci_stalled_wr_events 1\n";
	struct mr_proof p;

	(void)state;
	p = judge_frames(NULL, NULL);
	assert_int_equal(p.verdict, MR_NA);
	assert_string_equal(p.value, "not told: /" COUNTERS " is not there");
	p = judge_frames(from,
		"tx_vport_unicast_bytes 5100\nrx_vport_unicast_bytes 4200\n"
		"outbound_pci_buffer_overflow 3\noutbound_pci_stalled_wr_events 3\n");
	assert_int_equal(p.verdict, MR_PASS);
	assert_string_equal(p.value,
		"the NIC counted 5000 bytes sent and 4000 received, the read-back moved 5000 and "
		"4000; stalled PCIe reads not told; writes 2; PCIe buffer overflows 0");
	p = judge_frames(from, "tx_vport_unicast_bytes 5099\nrx_vport_unicast_bytes 4200\n");
	assert_int_equal(p.verdict, MR_FAIL);
	assert_non_null(strstr(p.value, "counted 4999 bytes sent and 4000 received while"));
	p = judge_frames(from, "tx_vport_unicast_bytes 5100\nrx_vport_unicast_bytes 4199\n");
	assert_int_equal(p.verdict, MR_FAIL);
	p = judge_frames(from, from);
	assert_int_equal(p.verdict, MR_FAIL);
	assert_non_null(strstr(p.value, "frames did not pass through it"));
	p = judge_frames(from,
		"tx_vport_unicast_bytes 5100\nrx_vport_unicast_bytes 4200\n"
		"outbound_pci_buffer_overflow 4\n");
	assert_int_equal(p.verdict, MR_WARN);
	p = judge_frames(from, "tx_vport_unicast_bytes 5100\n");
	assert_int_equal(p.verdict, MR_NA);
	assert_string_equal(p.value, "not told: its driver has no rx_vport_unicast_bytes");
}

/* veth counts what its peer's number is; the loopback interface counts nothing. */
static void a_drivers_own_counters_are_read_by_their_names(void **state)
{
	struct mr_ethtool_counter c[] = {{"peer_ifindex", false, 0}, {"nobody_has_this", true, 1}};

	(void)state;
	assert_int_equal(mr_ethtool_read("no-such-if", c, 2), -ENODEV);
	assert_int_equal(mr_ethtool_read("a-name-that-is-too-long", c, 2), -ENODEV);
	assert_int_equal(mr_ethtool_read("lo", c, 2), -EOPNOTSUPP);
	if (unshare(CLONE_NEWNET) != 0 ||
		system("ip link add mr0 type veth peer name mr1 2>/dev/null") != 0)
		skip();
	assert_int_equal(mr_ethtool_read("mr0", c, 2), 0);
	assert_true(c[0].known);
	assert_int_equal(c[0].value, if_nametoindex("mr1"));
	assert_false(c[1].known);
}

static void counters_that_are_not_there_are_not_read_as_none(void **state)
{
	struct mr_proof_watch w;
	struct mr_proof p = {0};
	char folder[64];
	struct mr_err err;
	uint64_t bytes;

	(void)state;
	snprintf(folder, sizeof(folder), "%s/empty", base);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(mr_proof_watch_open(&w, folder, &err), 0);
	assert_false(mr_proof_watch_registered(&w, &bytes));
	mr_proof_watch_judge_registered(&w, 65536, &p);
	assert_int_equal(p.verdict, MR_NA);
	assert_non_null(strstr(p.value, "no module counts"));
	mr_proof_watch_close(&w);
	/* The module has two names. */
	put("empty/" PEERS "nv_mem_nc/num_reg_bytes", "5\n");
	put("empty/" PEERS "nv_mem_nc/num_free_callbacks", "0\n");
	assert_int_equal(mr_proof_watch_open(&w, folder, &err), 0);
	assert_true(mr_proof_watch_registered(&w, &bytes));
	mr_proof_watch_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_news_stays_and_good_news_only_fills),
		cmocka_unit_test(a_path_holds_as_its_table_says),
		cmocka_unit_test(registered_memory_takes_room_in_bar1),
		cmocka_unit_test(two_frames_are_never_taken_for_each_other),
		cmocka_unit_test(sizes_go_from_the_shortest_frame_to_the_longest),
		cmocka_unit_test_setup_teardown(what_stays_as_it_was_is_not_told, make, clean),
		cmocka_unit_test_setup_teardown(
			a_link_trained_to_less_is_told_with_both_widths, make, clean),
		cmocka_unit_test_setup_teardown(
			an_idle_gpu_may_slow_its_link_and_a_nic_may_not, make, clean),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_is_no_change, make, clean),
		cmocka_unit_test_setup_teardown(
			errors_that_lost_something_are_told_and_corrected_ones_are_not, make,
			clean),
		cmocka_unit_test_setup_teardown(
			attachments_of_a_nic_are_counted_over_all_buffers, make, clean),
		cmocka_unit_test_setup_teardown(a_device_that_moved_or_went_is_told, make, clean),
		cmocka_unit_test_setup_teardown(
			a_revoked_registration_is_told_and_another_registration_is_not, make,
			clean),
		cmocka_unit_test_setup_teardown(
			registrations_are_judged_by_what_the_module_counted, make, clean),
		cmocka_unit_test_setup_teardown(
			attachments_are_judged_by_what_there_was_at_the_start, make, clean),
		cmocka_unit_test_setup_teardown(
			frames_that_a_nic_did_not_count_did_not_pass_through_it, make, clean),
		cmocka_unit_test(a_drivers_own_counters_are_read_by_their_names),
		cmocka_unit_test_setup_teardown(
			counters_that_are_not_there_are_not_read_as_none, make, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
