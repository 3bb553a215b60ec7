/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_plan.h"
#include "mr_topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS_MAX 128
#define CPUS_MAX 64
#define PATHS_BYTES 256

/* The machine under test, as the reader of sysfs would hand it over. */
static struct mr_topology_function functions[FUNCTIONS_MAX];
static char paths[FUNCTIONS_MAX][PATHS_BYTES];
static struct mr_topology_cpu cpus[CPUS_MAX];
static struct mr_topology_facts facts;
static struct mr_topology t;
static struct mr_err err;

static const struct mr_pci_link gen5x16 = {32000, 16};

/*
 * Adds the function at the end of path, written as "pci0000:3a 3a:00.0 3b:00.0": domains are
 * left out. All links are x16 32 GT/s.
 */
static struct mr_topology_function *add(
	uint16_t vendor, uint32_t class, int32_t node, const char *path)
{
	struct mr_topology_function *f = &functions[facts.functions_count];
	char *to = paths[facts.functions_count];
	char domain[16] = "0000";
	char copy[PATHS_BYTES];
	char *rest, *part;

	assert_true(facts.functions_count++ < FUNCTIONS_MAX);
	snprintf(copy, sizeof(copy), "%s", path);
	strcpy(to, "/sys/devices");
	for (part = strtok_r(copy, " ", &rest); part != NULL; part = strtok_r(NULL, " ", &rest)) {
		bool root = strncmp(part, "pci", 3) == 0;

		if (root)
			snprintf(domain, sizeof(domain), "%.*s", (int)strcspn(part + 3, ":"),
				part + 3);
		to += strlen(to);
		if (root)
			snprintf(to, PATHS_BYTES / 4, "/%s", part);
		else
			snprintf(to, PATHS_BYTES / 4, "/%s:%s", domain, part);
	}
	*f = (struct mr_topology_function){.path = paths[facts.functions_count - 1],
		.vendor = vendor,
		.class_code = class,
		.numa_node = node,
		.link = gen5x16,
		.link_max = gen5x16};
	assert_true(mr_pci_addr_parse(strrchr(f->path, '/') + 1, &f->addr));
	return f;
}

static struct mr_topology_function *gpu(int32_t node, const char *path)
{
	return add(0x10de, 0x030200, node, path);
}

static struct mr_topology_function *nic(int32_t node, const char *path)
{
	return add(0x15b3, 0x020000, node, path);
}

static struct mr_topology_function *bridge(int32_t node, const char *path)
{
	return add(0x1000, 0x060400, node, path);
}

/* count CPUs from first on, on a node; each is alone on its core. */
static void add_cpus(uint32_t first, uint32_t count, int32_t node)
{
	for (uint32_t i = first; i < first + count; i++) {
		assert_true(facts.cpus_count < CPUS_MAX);
		cpus[facts.cpus_count++] = (struct mr_topology_cpu){
			.cpu = i, .numa_node = node, .sibling = i, .usable = true};
	}
}

static void build(void)
{
	mr_topology_fini(&t);
	assert_int_equal(mr_topology_build(&facts, &t, &err), 0);
}

static int nothing(void **state)
{
	(void)state;
	memset(functions, 0, sizeof(functions));
	memset(cpus, 0, sizeof(cpus));
	facts = (struct mr_topology_facts){.functions = functions, .cpus = cpus};
	return 0;
}

static int drop(void **state)
{
	(void)state;
	mr_topology_fini(&t);
	return 0;
}

/* A root port, a switch, a GPU and a NIC behind it; the switch's upstream link is x8. */
static int one_switch(void **state)
{
	nothing(state);
	bridge(0, "pci0000:3a 3a:00.0");
	bridge(0, "pci0000:3a 3a:00.0 3b:00.0")->link.width = 8;
	bridge(0, "pci0000:3a 3a:00.0 3b:00.0 3c:00.0");
	bridge(0, "pci0000:3a 3a:00.0 3b:00.0 3c:10.0");
	gpu(0, "pci0000:3a 3a:00.0 3b:00.0 3c:00.0 3d:00.0")->name = "H200";
	nic(0, "pci0000:3a 3a:00.0 3b:00.0 3c:10.0 3e:00.0")->name = "mlx5_0 eth2";
	add_cpus(0, 8, 0);
	return 0;
}

static void pair_is(const char *near, bool uncertain, uint32_t switches)
{
	build();
	assert_int_equal(t.pairs_count, 1);
	assert_string_equal(mr_topology_near_name(t.pairs[0].near), near);
	assert_int_equal(t.pairs[0].uncertain, uncertain);
	assert_int_equal(t.pairs[0].switches, switches);
}

static void one_switch_is_pix(void **state)
{
	(void)state;
	pair_is("PIX", false, 1);
}

static void two_functions_of_one_card_are_pix(void **state)
{
	(void)state;
	gpu(0, "pci0000:3a 3a:00.0 3b:00.0");
	nic(0, "pci0000:3a 3a:00.0 3b:00.1");
	pair_is("PIX", false, 0);
}

static void a_nic_with_a_switch_of_its_own_is_pxb(void **state)
{
	(void)state;
	gpu(0, "pci0000:3a 3a:00.0 3b:00.0 3c:00.0 3d:00.0");
	nic(0, "pci0000:3a 3a:00.0 3b:00.0 3c:10.0 3e:00.0 3f:00.0 40:00.0");
	pair_is("PXB", false, 2);
}

static void switches_on_both_sides_are_counted(void **state)
{
	(void)state;
	gpu(0, "pci0000:3a 3a:00.0 3b:00.0 3c:00.0 3d:00.0 3e:00.0 3f:00.0");
	nic(0, "pci0000:3a 3a:00.0 3b:00.0 3c:10.0 4d:00.0 4e:00.0 4f:00.0 50:00.0 51:00.0");
	pair_is("PXB", false, 4);
}

static void one_root_without_a_common_bridge_is_phb(void **state)
{
	(void)state;
	gpu(-1, "pci0000:3a 3a:00.0 3b:00.0");
	nic(-1, "pci0000:3a 3a:01.0 3c:00.0");
	pair_is("PHB", false, 0);
}

static void functions_of_the_root_itself_are_phb(void **state)
{
	(void)state;
	gpu(0, "pci0000:00 00:01.0");
	nic(0, "pci0000:00 00:02.0");
	pair_is("PHB", false, 0);
	assert_false(t.pairs[0].narrowest_known);
	assert_int_equal(t.pairs[0].links_unknown, 0);
}

static void roots_of_one_node_are_node(void **state)
{
	(void)state;
	gpu(1, "pci0000:3a 3a:00.0 3b:00.0");
	nic(1, "pci0000:5a 5a:00.0 5b:00.0");
	pair_is("NODE", false, 0);
}

static void roots_of_two_nodes_are_sys(void **state)
{
	(void)state;
	gpu(0, "pci0000:3a 3a:00.0 3b:00.0");
	nic(1, "pci0000:ba ba:00.0 bb:00.0");
	pair_is("SYS", false, 0);
}

static void an_unknown_node_is_sys_and_uncertain(void **state)
{
	(void)state;
	gpu(-1, "pci0000:3a 3a:00.0 3b:00.0");
	nic(-1, "pci0000:ba ba:00.0 bb:00.0");
	pair_is("SYS", true, 0);
	functions[0].numa_node = 0;
	pair_is("SYS", true, 0);
}

static void the_same_bus_in_another_domain_is_another_place(void **state)
{
	(void)state;
	gpu(0, "pci0000:3a 3a:00.0 3b:00.0");
	nic(0, "pci10000:3a 3a:00.0 3b:00.1");
	pair_is("NODE", false, 0);
}

static void a_root_inside_a_root_is_its_own(void **state)
{
	(void)state;
	gpu(0, "pci0000:5d 5d:00.5 pci10000:00 00:02.0 01:00.0");
	nic(0, "pci0000:5d 5d:00.5 pci10000:00 00:02.0 01:00.1");
	pair_is("PIX", false, 0);
	nothing(state);
	gpu(0, "pci0000:5d 5d:00.5 pci10000:00 00:02.0 01:00.0");
	nic(0, "pci0000:5d 5d:01.0 5e:00.0");
	pair_is("NODE", false, 0);
	nothing(state);
	gpu(0, "pci0000:5d 5d:01.0 5e:00.0");
	nic(0, "pci0000:5d 5d:00.5 pci10000:00 00:02.0 01:00.0");
	pair_is("NODE", false, 0);
	nothing(state);
	gpu(0, "pci0000:5d 5d:00.5 pci10000:00 00:02.0 01:00.0");
	nic(0, "pci0000:5d 5d:00.5 pci10000:00 00:03.0 02:00.0");
	pair_is("PHB", false, 0);
}

static void what_precedes_the_root_does_not_matter(void **state)
{
	(void)state;
	gpu(0, "pci0000:3a 3a:00.0 3b:00.0")->path =
		"../../../devices/platform/soc/pci0000:3a/0000:3a:00.0/0000:3b:00.0";
	nic(0, "pci0000:3a 3a:00.0 3b:00.1");
	pair_is("PIX", false, 0);
}

static void paths_that_lead_elsewhere_leave_it_unplaced(void **state)
{
	char deep[1024] = "pci0000:3a";
	const char *const bad[] = {NULL, "", "/", "pci0000:3a", "0000:3a:00.0/0000:3b:00.0",
		"pci0000:3a/0000:3a:00.0/0000:3b:00.1", "pci0000:3a/0000:3b:00.0/virtio0",
		"pci0000:3a/x/0000:3b:00.0", "pci:3a/0000:3b:00.0", "pci0000:3/0000:3b:00.0",
		"pci0000:3axx/0000:3b:00.0", "pci0000-3a/0000:3b:00.0", deep,
		"pci0000:3a/00000000000000000000000000:3b:00.0"};

	(void)state;
	while (strlen(deep) < 500)
		strcat(deep, "/0000:3a:00.0");
	strcat(deep, "/0000:3b:00.0");
	gpu(0, "pci0000:3a 3a:00.0 3b:00.0");
	nic(0, "pci0000:3a 3a:00.0 3b:00.1");
	for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++) {
		functions[0].path = bad[i];
		pair_is("SYS", true, 0);
		assert_int_equal(t.pairs[0].links_unknown, 0);
	}
}

static void the_deepest_place_is_still_one(void **state)
{
	char path[PATHS_BYTES * 4] = "pci0000:00";
	char part[32];
	char deeper[sizeof(path) + sizeof(part)];

	(void)state;
	for (uint32_t i = 0; i <= MR_TOPOLOGY_DEPTH_MAX; i++) {
		snprintf(part, sizeof(part), "/0000:%02x:00.0", i);
		strcat(path, part);
	}
	gpu(0, "pci0000:00 20:00.0")->path = path;
	nic(0, "pci0000:00 00:00.0 30:00.0");
	pair_is("PXB", false, 16);
	snprintf(deeper, sizeof(deeper), "pci0000:00/0000:50:00.0%s", path + strlen("pci0000:00"));
	functions[0].path = deeper;
	pair_is("SYS", true, 0);
}

static void the_narrowest_link_is_found_on_either_side(void **state)
{
	(void)state;
	build(); /* the x8 upstream link of the switch is not on the way */
	assert_true(t.pairs[0].narrowest_known);
	assert_int_equal(t.pairs[0].narrow_link.width, 16);
	functions[5].link = (struct mr_pci_link){16000, 16};
	build();
	assert_int_equal(t.pairs[0].narrowest, 5);
	assert_int_equal(t.pairs[0].narrow_link.speed_mts, 16000);
	functions[4].link.width = 4;
	build();
	assert_int_equal(t.pairs[0].narrowest, 4);
	assert_int_equal(t.pairs[0].narrow_link.width, 4);
}

static void across_the_root_all_links_count(void **state)
{
	(void)state;
	gpu(0, "pci0000:3a 3a:00.0 3b:00.0");
	bridge(0, "pci0000:3a 3a:01.0 3c:00.0")->link.width = 2;
	nic(0, "pci0000:3a 3a:01.0 3c:00.0 3d:00.0 3e:00.0");
	pair_is("PHB", false, 0);
	assert_int_equal(t.pairs[0].narrowest, 1);
}

static void a_sleeping_gpu_is_judged_by_what_both_ends_can(void **state)
{
	(void)state;
	functions[4].link.speed_mts = 2500;
	build();
	assert_int_equal(t.pairs[0].narrow_link.speed_mts, 32000);
	functions[2].link_max.speed_mts = 8000; /* the port above it */
	build();
	assert_int_equal(t.pairs[0].narrowest, 4);
	assert_int_equal(t.pairs[0].narrow_link.speed_mts, 8000);
	/* A NIC does not sleep. */
	functions[5].link.speed_mts = 2500;
	build();
	assert_int_equal(t.pairs[0].narrowest, 5);
	assert_int_equal(t.pairs[0].narrow_link.speed_mts, 2500);
}

static void an_unread_end_is_told_by_the_other(void **state)
{
	(void)state;
	functions[5].link = (struct mr_pci_link){8000, 0};
	functions[3].link = (struct mr_pci_link){8000, 4};
	build();
	assert_int_equal(t.pairs[0].narrowest, 5);
	assert_int_equal(t.pairs[0].narrow_link.width, 4);
	functions[3].link.speed_mts = 0;
	build();
	assert_int_equal(t.pairs[0].links_unknown, 1);
	assert_int_equal(t.pairs[0].narrowest, 4);
	functions[4].link.width = 0;
	functions[2].link.width = 0;
	build();
	assert_false(t.pairs[0].narrowest_known);
	assert_int_equal(t.pairs[0].links_unknown, 2);
}

static void kinds_are_told_by_class_and_vendor(void **state)
{
	static const struct {
		uint16_t vendor;
		uint32_t class;
		enum mr_topology_kind kind;
	} rows[] = {
		{0x10de, 0x030000, MR_TOPOLOGY_GPU},
		{0x10de, 0x030200, MR_TOPOLOGY_GPU},
		{0x10de, 0x040300, MR_TOPOLOGY_OTHER}, /* its sound */
		{0x10de, 0x068000, MR_TOPOLOGY_OTHER}, /* NVSwitch */
		{0x1002, 0x030200, MR_TOPOLOGY_OTHER},
		{0x15b3, 0x020000, MR_TOPOLOGY_NIC},
		{0x15b3, 0x020700, MR_TOPOLOGY_NIC},
		{0x8086, 0x020000, MR_TOPOLOGY_NIC},
		{0x15b3, 0x0c0500, MR_TOPOLOGY_OTHER},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++)
		assert_int_equal(mr_topology_kind_of(&(struct mr_topology_function){
					 .vendor = rows[i].vendor, .class_code = rows[i].class}),
			rows[i].kind);
}

static void bridges_above_are_listed_from_the_root(void **state)
{
	uint32_t chain[MR_TOPOLOGY_DEPTH_MAX];

	(void)state;
	assert_int_equal(mr_topology_chain(&facts, 5, chain), 3);
	assert_int_equal(chain[0], 0);
	assert_int_equal(chain[1], 1);
	assert_int_equal(chain[2], 3);
	functions[5].path = NULL;
	assert_int_equal(mr_topology_chain(&facts, 5, chain), 0);
}

static const struct mr_topology_pair *best(uint32_t advice)
{
	assert_true(advice < t.advice_count && t.advice[advice].has_pair);
	return &t.pairs[t.advice[advice].pair];
}

static void the_nearest_gpu_is_recommended(void **state)
{
	(void)state;
	gpu(1, "pci0000:10 10:00.0 11:00.0");
	gpu(0, "pci0000:3a 3a:01.0 4a:00.0");
	build();
	assert_int_equal(t.pairs_count, 3);
	assert_int_equal(best(0)->gpu, 4);
	functions[4].reserved = true;
	build();
	assert_int_equal(best(0)->gpu, 7);
	functions[7].reserved = true;
	build();
	assert_int_equal(best(0)->gpu, 6);
	functions[6].reserved = true;
	build();
	assert_false(t.advice[0].has_pair);
}

static void of_equally_near_gpus_the_widest_then_the_least_given(void **state)
{
	(void)state;
	bridge(0, "pci0000:3a 3a:00.0 3b:00.0 3c:01.0");
	gpu(0, "pci0000:3a 3a:00.0 3b:00.0 3c:01.0 4d:00.0");
	nic(0, "pci0000:3a 3a:00.0 3b:00.0 3c:10.0 3e:00.1");
	build();
	assert_int_equal(t.advice_count, 2);
	assert_int_equal(best(0)->gpu, 4);
	assert_int_equal(best(1)->gpu, 7);
	functions[4].link.width = 8;
	build();
	assert_int_equal(best(0)->gpu, 7);
	assert_int_equal(best(1)->gpu, 7);
}

static void only_nics_that_reach_a_gpu_are_recommended(void **state)
{
	(void)state;
	add(0x8086, 0x020000, 0, "pci0000:3a 3a:02.0 50:00.0");
	nic(0, "pci0000:3a 3a:03.0 51:00.0")->reserved = true;
	build();
	assert_int_equal(t.pairs_count, 3);
	assert_int_equal(t.advice_count, 1);
	assert_int_equal(t.advice[0].nic, 5);
}

static void cores_are(uint32_t advice, const char *wanted)
{
	char got[128] = "";

	for (uint32_t i = 0; i < t.advice[advice].cores_count; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%u", i > 0 ? " " : "",
			t.advice[advice].cores[i]);
	assert_string_equal(got, wanted);
}

static void cores_lie_on_the_nics_node_without_cpu_0(void **state)
{
	(void)state;
	add_cpus(8, 4, 1);
	build();
	assert_int_equal(t.advice[0].numa_node, 0);
	cores_are(0, "1 2 3 4 5 6 7");
	assert_false(t.advice[0].cores_isolated || t.advice[0].cores_elsewhere);
	functions[5].numa_node = 1;
	build();
	cores_are(0, "8 9 10 11");
}

static void isolated_cores_go_first_and_alone(void **state)
{
	(void)state;
	cpus[3].isolated = cpus[5].isolated = true;
	build();
	cores_are(0, "3 5");
	assert_true(t.advice[0].cores_isolated);
}

static void one_cpu_of_a_physical_core_is_enough(void **state)
{
	(void)state;
	for (uint32_t i = 4; i < 8; i++)
		cpus[i].sibling = i - 4;
	build();
	cores_are(0, "1 2 3");
	/* With its first one off, the second stands for the core; CPU 0's sibling is no gain. */
	cpus[1].usable = false;
	build();
	cores_are(0, "2 3 5");
	cpus[2].usable = cpus[3].usable = cpus[5].usable = cpus[6].usable = cpus[7].usable = false;
	build();
	cores_are(0, "0");
	cpus[0].usable = cpus[4].usable = false;
	build();
	cores_are(0, "");
	assert_false(t.advice[0].cores_isolated || t.advice[0].cores_elsewhere);
}

static void nics_of_a_node_share_its_cores(void **state)
{
	(void)state;
	nic(0, "pci0000:3a 3a:00.0 3b:00.0 3c:10.0 3e:00.1");
	nic(0, "pci0000:3a 3a:00.0 3b:00.0 3c:10.0 3e:00.2");
	build();
	cores_are(0, "1 2");
	cores_are(1, "3 4");
	cores_are(2, "5 6 7");
}

static void a_node_without_cpus_takes_those_of_another(void **state)
{
	(void)state;
	functions[5].numa_node = 3;
	build();
	cores_are(0, "1 2 3 4 5 6 7");
	assert_true(t.advice[0].cores_elsewhere);
	cpus[0].isolated = cpus[2].isolated = true;
	build();
	cores_are(0, "2");
	assert_true(t.advice[0].cores_elsewhere && t.advice[0].cores_isolated);
	cpus[0].isolated = cpus[2].isolated = false;
	/* Where it is not known, the GPU beside it says. */
	functions[5].numa_node = -1;
	for (uint32_t i = 0; i < 4; i++)
		cpus[i].numa_node = 1;
	build();
	assert_int_equal(t.advice[0].numa_node, 0);
	cores_are(0, "4 5 6 7");
	functions[4].numa_node = -1;
	build();
	assert_int_equal(t.advice[0].numa_node, -1);
	cores_are(0, "1 2 3 4 5 6 7");
	assert_false(t.advice[0].cores_elsewhere);
}

static void text_is(const char *wanted)
{
	char *text = mr_topology_text(&t);

	assert_non_null(text);
	assert_string_equal(text, wanted);
	free(text);
}

static void the_tree_shows_links_ways_and_advice(void **state)
{
	(void)state;
	functions[4].link.speed_mts = 2500;
	functions[5].link.width = 8;
	bridge(1, "pci0000:80 80:01.0");
	add(0x8086, 0x020000, 1, "pci0000:80 80:01.0 81:00.0")->reserved = true;
	build();
	text_is("pci0000:3a, NUMA node 0\n"
		"  0000:3a:00.0  bridge\n"
		"    0000:3b:00.0  bridge  x8 32.0 GT/s of x16 32.0 GT/s\n"
		"      0000:3c:00.0  bridge\n"
		"        0000:3d:00.0  GPU H200  x16 2.5 GT/s of x16 32.0 GT/s"
		" (an idle GPU's link is slow)\n"
		"      0000:3c:10.0  bridge\n"
		"        0000:3e:00.0  NIC mlx5_0 eth2  x8 32.0 GT/s of x16 32.0 GT/s"
		"  <- narrowest of 0000:3d:00.0 - 0000:3e:00.0\n"
		"pci0000:80, NUMA node 1\n"
		"  0000:80:01.0  bridge\n"
		"    0000:81:00.0  NIC  x16 32.0 GT/s  (not usable as it is)\n"
		"\n"
		"GPU               NIC               way   switches narrowest link\n"
		"0000:3d:00.0      0000:3e:00.0      PIX   1        x8 32.0 GT/s above "
		"0000:3e:00.0,"
		" 252061 Mbit/s\n"
		"0000:3d:00.0      0000:81:00.0      SYS   0        x8 32.0 GT/s above "
		"0000:3b:00.0,"
		" 252061 Mbit/s\n"
		"\n"
		"NIC 0000:3e:00.0 (mlx5_0 eth2): GPU 0000:3d:00.0 (PIX), NUMA node 0,"
		" CPUs 1 2 3 4 5 6 7, not isolated\n");
}

static void what_is_not_known_is_said(void **state)
{
	(void)state;
	nic(-1, "pci0000:00 00:03.0")->path = NULL;
	functions[0].name = "bell\a\033[31m\xff";
	gpu(-1, "pci0000:3a 3a:00.0 3b:00.0")->link = (struct mr_pci_link){0, 0};
	functions[1].link_max = (struct mr_pci_link){0, 0};
	build();
	text_is("pci0000:3a, NUMA node not known\n"
		"  0000:3a:00.0  bridge\n"
		"    0000:3b:00.0  GPU  x? ? GT/s\n"
		"not in the tree\n"
		"  0000:00:03.0  NIC bell??[31m?\n"
		"\n"
		"GPU               NIC               way   switches narrowest link\n"
		"0000:3b:00.0      0000:00:03.0      SYS ? 0        not known\n"
		"\n"
		"NIC 0000:00:03.0 (bell??[31m?): GPU 0000:3b:00.0 (SYS?), NUMA node not known,"
		" CPUs: none is left\n");
	nothing(state);
	build();
	text_is("no GPU and no NIC on PCI\n");
}

/* Is the configuration that it writes one that is taken? */
static void config_holds(struct mr_plan *ret_plan)
{
	static struct mr_problems problems;
	static const struct mr_host no_host;
	struct mr_config cfg;
	char *text = mr_topology_config(&t);

	assert_non_null(text);
	if (mr_config_parse("a.yaml", text, strlen(text), &cfg, &problems) != 0 ||
		mr_plan_build(&cfg, &no_host, NULL, ret_plan, &problems) != 0)
		fail_msg("%s: %s\n%s", problems.p[0].key, problems.p[0].message, text);
	mr_config_free(&cfg);
	free(text);
}

static void the_configuration_is_taken(void **state)
{
	static struct mr_plan plan;
	char *text;

	(void)state;
	build();
	config_holds(&plan);
	assert_int_equal(plan.lanes_count, 1);
	assert_string_equal(plan.ports[0].device, "0000:3e:00.0");
	text = mr_topology_config(&t);
	assert_string_equal(text,
		"devices:\n"
		"  - {name: g0, device: \"0000:3d:00.0\", region: 64MiB}\n"
		"ports:\n"
		"  - {name: p0, device: \"0000:3e:00.0\"} # mlx5_0 eth2\n"
		"lanes:\n"
		"  # PIX to its GPU. Hugepages belong on NUMA node 0. CPUs 1 2 3 4 5 6 7, not "
		"isolated\n"
		"  - name: l0\n"
		"    rx: {port: p0, queue: 0}\n"
		"    tx: [{port: p0, queue: 0}]\n"
		"    core: 1\n"
		"    device: g0\n"
		"    path: [direct]\n");
	free(text);
}

/* One GPU in each of nine domains, and so many NICs beside each. */
static void many(uint32_t nics)
{
	char path[64];

	nothing(NULL);
	for (uint32_t i = 0; i < 9; i++) {
		snprintf(path, sizeof(path), "pci1000%u:00 00:00.0 01:00.0", i);
		gpu(0, path);
	}
	for (uint32_t i = 0; i < 9 * nics; i++) {
		snprintf(path, sizeof(path), "pci1000%u:00 00:00.0 %02x:00.0", i % 9, 2 + i);
		nic(0, path)->name = "a\nb: [";
	}
	add_cpus(0, 64, 0);
	build();
}

static void the_largest_configurations_are_taken(void **state)
{
	static struct mr_plan plan;
	char *text;

	(void)state;
	many(5);
	assert_int_equal(t.advice_count, 45);
	text = mr_topology_config(&t);
	assert_non_null(strstr(text, "\"10000:01:00.0\", region: 320MiB"));
	free(text);
	config_holds(&plan);
	assert_int_equal(plan.lanes_count, MR_PORTS_MAX);
	many(2);
	config_holds(&plan);
	assert_int_equal(plan.devices_count, MR_DEVICES_MAX);
	assert_int_equal(plan.lanes_count, 16);
}

static void nothing_to_configure_is_a_comment(void **state)
{
	(void)state;
	nic(0, "pci0000:3a 3a:01.0 3c:00.0");
	add_cpus(0, 4, 0);
	for (uint32_t turn = 0; turn < 2; turn++) {
		char *text;

		build();
		text = mr_topology_config(&t);
		assert_int_equal(text[0], '#');
		assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
		free(text);
		/* And with a GPU, but without a core. */
		gpu(0, "pci0000:3a 3a:01.0 3c:00.1");
		facts.cpus_count = 0;
	}
}

static uint32_t roll(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return (uint32_t)(*seed * 0x2545f4914f6cdd1dull >> 32);
}

/* Random trees, addresses twice, pieces of paths in any order: an answer, and one that fits. */
static void any_facts_give_a_result(void **state)
{
	static const char *const parts[] = {"pci0000:3a", "pci10000:00", "0000:3a:00.0",
		"0000:3a:00.1", "0000:3b:00.0", "0000:3c:00.0", "", "x", "..", "\xff\xfe",
		"pci0000:", "0000:3a:00.0x"};
	uint64_t seed = 7;

	(void)state;
	for (uint32_t turn = 0; turn < 2000; turn++) {
		char *text;

		nothing(state);
		facts.functions_count = roll(&seed) % 20;
		for (uint32_t i = 0; i < facts.functions_count; i++) {
			paths[i][0] = '\0';
			for (uint32_t n = roll(&seed) % 8; n > 0; n--) {
				strcat(paths[i], parts[roll(&seed) % MR_ARRAY_LEN(parts)]);
				strcat(paths[i], "/");
			}
			functions[i] = (struct mr_topology_function){
				.addr = {0, 0x3a + roll(&seed) % 3, 0, roll(&seed) % 2},
				.path = paths[i],
				.vendor = roll(&seed) % 2 ? 0x10de : 0x15b3,
				.class_code = roll(&seed) % 2 ? 0x030200 : 0x020000,
				.numa_node = (int32_t)(roll(&seed) % 4) - 2,
				.link = {roll(&seed), roll(&seed)}};
		}
		add_cpus(0, roll(&seed) % 10, (int32_t)(roll(&seed) % 3) - 1);
		for (uint32_t i = 0; i < facts.cpus_count; i++)
			cpus[i].sibling = roll(&seed) % 4;
		build();
		for (uint32_t i = 0; i < t.advice_count; i++)
			assert_true(!t.advice[i].has_pair || t.advice[i].pair < t.pairs_count);
		text = mr_topology_text(&t);
		assert_non_null(text);
		free(text);
		text = mr_topology_config(&t);
		assert_non_null(text);
		free(text);
	}
}

#define ON(test, machine) cmocka_unit_test_setup_teardown(test, machine, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON(one_switch_is_pix, one_switch),
		ON(two_functions_of_one_card_are_pix, nothing),
		ON(a_nic_with_a_switch_of_its_own_is_pxb, nothing),
		ON(switches_on_both_sides_are_counted, nothing),
		ON(one_root_without_a_common_bridge_is_phb, nothing),
		ON(functions_of_the_root_itself_are_phb, nothing),
		ON(roots_of_one_node_are_node, nothing),
		ON(roots_of_two_nodes_are_sys, nothing),
		ON(an_unknown_node_is_sys_and_uncertain, nothing),
		ON(the_same_bus_in_another_domain_is_another_place, nothing),
		ON(a_root_inside_a_root_is_its_own, nothing),
		ON(what_precedes_the_root_does_not_matter, nothing),
		ON(paths_that_lead_elsewhere_leave_it_unplaced, nothing),
		ON(the_deepest_place_is_still_one, nothing),
		ON(the_narrowest_link_is_found_on_either_side, one_switch),
		ON(across_the_root_all_links_count, nothing),
		ON(a_sleeping_gpu_is_judged_by_what_both_ends_can, one_switch),
		ON(an_unread_end_is_told_by_the_other, one_switch),
		ON(kinds_are_told_by_class_and_vendor, nothing),
		ON(bridges_above_are_listed_from_the_root, one_switch),
		ON(the_nearest_gpu_is_recommended, one_switch),
		ON(of_equally_near_gpus_the_widest_then_the_least_given, one_switch),
		ON(only_nics_that_reach_a_gpu_are_recommended, one_switch),
		ON(cores_lie_on_the_nics_node_without_cpu_0, one_switch),
		ON(isolated_cores_go_first_and_alone, one_switch),
		ON(one_cpu_of_a_physical_core_is_enough, one_switch),
		ON(nics_of_a_node_share_its_cores, one_switch),
		ON(a_node_without_cpus_takes_those_of_another, one_switch),
		ON(the_tree_shows_links_ways_and_advice, one_switch),
		ON(what_is_not_known_is_said, nothing),
		ON(the_configuration_is_taken, one_switch),
		ON(the_largest_configurations_are_taken, nothing),
		ON(nothing_to_configure_is_a_comment, nothing),
		ON(any_facts_give_a_result, nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
