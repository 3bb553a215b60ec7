/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks as functions: what nobody read is never good, and the numbers at their edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mr_host_facts *facts;
static struct mr_needs *needs;
static struct mr_facts_topology *topology;
static struct mr_finding findings[MR_CHECKS_COUNT];
static struct mr_err err;

/* A GPU, a NIC and a lane that are needed, of which nothing is known. */
static int setup(void **state)
{
	(void)state;
	facts = calloc(1, sizeof(*facts));
	needs = calloc(1, sizeof(*needs));
	assert_non_null(facts);
	assert_non_null(needs);
	facts->pci_count = 2;
	snprintf(facts->pci[0].bdf, sizeof(facts->pci[0].bdf), "0000:3d:00.0");
	snprintf(facts->pci[1].bdf, sizeof(facts->pci[1].bdf), "0000:3e:00.0");
	facts->gpus_count = facts->nics_count = 1;
	facts->nics[0].pci = 1;
	needs->configured = needs->hugepages = true;
	needs->hugepages_bytes = needs->locked_bytes = 64 << 20;
	needs->gpus_count = needs->nics_count = needs->pairs_count = needs->lanes_count = 1;
	needs->gpus[0] = (struct mr_needs_gpu){.bdf = "0000:3d:00.0", .direct = true};
	needs->nics[0] = (struct mr_needs_nic){.bdf = "0000:3e:00.0", .direct = true, .mtu = 1500};
	needs->lanes[0] = (struct mr_needs_lane){.name = "l0", .core = 2, .direct = true};
	facts->cpu[2].core = facts->cpu[2].node = -1; /* as the reader leaves them */
	facts->host.cpu_online[2] = facts->host.cpu_allowed[2] = true;
	facts->host.online_told = facts->host.allowed_told = true;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mr_facts_topology_free(topology);
	topology = NULL;
	free(facts);
	free(needs);
	return 0;
}

static struct mr_finding *run(const char *id)
{
	struct mr_check_in in = {.f = facts, .needs = needs};

	mr_facts_topology_free(topology);
	topology = mr_facts_topology_new(facts, &err);
	assert_non_null(topology);
	in.topology = topology;
	mr_checks_run(&in, findings);
	return id == NULL ? NULL : &findings[mr_checks_find(id)];
}

/* These judge the configuration, or say what holds of every machine. */
static bool needs_no_facts(const char *id)
{
	static const char *const ids[] = {"runtime.folder", "config.roles", "pool.size",
		"pool.alignment", "register.time", "nic.tx_inline", "nic.rx_options", "gpu.gpudev"};

	for (size_t i = 0; i < MR_ARRAY_LEN(ids); i++)
		if (strcmp(ids[i], id) == 0)
			return true;
	return false;
}

static void what_nobody_read_never_passes(void **state)
{
	(void)state;
	run(NULL);
	for (uint32_t i = 0; i < MR_CHECKS_COUNT; i++) {
		if (findings[i].verdict == MR_PASS && !needs_no_facts(mr_checks[i].id))
			fail_msg("%s passes: %s", mr_checks[i].id, findings[i].value);
		if (findings[i].verdict > MR_PASS && findings[i].hint[0] == '\0')
			fail_msg("%s has no hint", mr_checks[i].id);
		assert_true(findings[i].value[0] != '\0');
	}
}

/* The states that decide most. */
static void what_may_not_be_read_never_passes(void **state)
{
	(void)state;
	for (int s = MR_FACT_DENIED; s <= MR_FACT_STRANGE; s++) {
		enum mr_fact_state st = (enum mr_fact_state)s;

		facts->pci[0].iommu.state = facts->pci[1].iommu.state = st;
		facts->kernel.lockdown.state = facts->kernel.log_state = st;
		facts->modules.peermem.state = facts->modules.driver_state = st;
		facts->irqs_state = facts->isolated_state = facts->process.cpuset_state = st;
		facts->pci[0].aer_fatal.state = facts->pci[1].aer_fatal.state = st;
		facts->kernel.numa_balancing.state = st;
		run(NULL);
		for (uint32_t i = 0; i < MR_CHECKS_COUNT; i++)
			if (findings[i].verdict == MR_PASS && !needs_no_facts(mr_checks[i].id))
				fail_msg("%s passes: %s", mr_checks[i].id, findings[i].value);
		assert_int_equal(run("cpu.irqs")->verdict, MR_UNKNOWN);
		assert_int_equal(run("gpu.kernel_module")->verdict, MR_UNKNOWN);
	}
}

static void hugepages_are_counted_in_64_bits(void **state)
{
	struct mr_facts_node *n = &facts->nodes[0];

	(void)state;
	facts->pci[1].node = (struct mr_fact_i64){MR_FACT_KNOWN, 0};
	facts->nodes_count = 2;
	facts->nodes[1].number = 1;
	n->sizes_count = 1;
	n->sizes[0].page_bytes = 2 << 20;
	n->sizes[0].free = (struct mr_fact_u64){MR_FACT_KNOWN, 65536};
	needs->hugepages_bytes = 128ull << 30;
	assert_int_equal(run("memory.hugepages")->verdict, MR_PASS);
	needs->hugepages_bytes++;
	assert_int_equal(run("memory.hugepages")->verdict, MR_WARN);
	n->sizes[0].free.v = UINT64_MAX;
	assert_int_equal(run("memory.hugepages")->verdict, MR_PASS);
	/* Enough, but on the other node. */
	facts->nodes[1] = *n;
	facts->nodes[1].number = 1;
	n->sizes[0].free.v = 0;
	assert_int_equal(run("memory.hugepages")->verdict, MR_FAIL);
	assert_non_null(strstr(findings[mr_checks_find("memory.hugepages")].hint, "node0/"));
}

static void the_pool_rule_is_met_at_its_edge(void **state)
{
	struct mr_needs_lane *l = &needs->lanes[0];

	(void)state;
	l->rx_ring = 512;
	l->batch = 64;
	l->buffers = 768; /* 1.5 x ring is more than ring + 2 x batch */
	assert_int_equal(run("pool.size")->verdict, MR_PASS);
	l->buffers--;
	assert_int_equal(run("pool.size")->verdict, MR_FAIL);
	l->batch = 256;
	l->buffers = 1024;
	assert_int_equal(run("pool.size")->verdict, MR_PASS);
	l->buffers--;
	assert_int_equal(run("pool.size")->verdict, MR_FAIL);
}

static void regions_are_whole_pages_and_not_too_many(void **state)
{
	(void)state;
	needs->gpus[0].direct_bytes = 10ull << 30;
	assert_int_equal(run("pool.alignment")->verdict, MR_PASS);
	assert_int_equal(run("register.time")->verdict, MR_PASS);
	needs->gpus[0].direct_bytes += 4096;
	assert_int_equal(run("pool.alignment")->verdict, MR_FAIL);
	assert_int_equal(run("register.time")->verdict, MR_WARN);
}

static void two_lanes_on_one_core_and_a_name_in_use_fail(void **state)
{
	(void)state;
	assert_int_equal(run("config.roles")->verdict, MR_PASS);
	needs->lanes_count = 2;
	needs->lanes[1] = needs->lanes[0];
	assert_int_equal(run("config.roles")->verdict, MR_FAIL);
	needs->lanes[0].core = needs->lanes[1].core = -1;
	assert_int_equal(run("config.roles")->verdict, MR_PASS);
	assert_int_equal(run("runtime.folder")->verdict, MR_PASS);
	snprintf(needs->runtime, sizeof(needs->runtime), "/run");
	needs->runtime_open = true;
	assert_int_equal(run("runtime.folder")->verdict, MR_FAIL);
	needs->running = true;
	assert_int_equal(run("runtime.folder")->verdict, MR_FAIL);
	assert_non_null(strstr(findings[mr_checks_find("runtime.folder")].value, "runs already"));
}

/* A plan refuses these already; what is judged here is any other source of options. */
static void options_that_let_the_cpu_copy_fail(void **state)
{
	static const char *const inlines[] = {
		"txq_inline_max=290", "dv_flow_en=1,txq_inline_min=18", "txq_inline_mpw=268"};
	static const char *const receives[] = {"mprq_en=1", "lro_timeout_usec=32"};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(inlines); i++) {
		snprintf(needs->nics[0].args, sizeof(needs->nics[0].args), "%s", inlines[i]);
		assert_int_equal(run("nic.tx_inline")->verdict, MR_FAIL);
	}
	for (size_t i = 0; i < MR_ARRAY_LEN(receives); i++) {
		snprintf(needs->nics[0].args, sizeof(needs->nics[0].args), "%s", receives[i]);
		assert_int_equal(run("nic.rx_options")->verdict, MR_FAIL);
	}
	snprintf(needs->nics[0].args, sizeof(needs->nics[0].args),
		"txq_inline_max=0,xmprq_en=1,mprq_en=0");
	assert_int_equal(run("nic.tx_inline")->verdict, MR_PASS);
	assert_int_equal(run("nic.rx_options")->verdict, MR_PASS);
}

static void folders_that_cannot_be_written_warn(void **state)
{
	(void)state;
	facts->dumps = MR_FACT_DENIED;
	assert_int_equal(run("runtime.dumps")->verdict, MR_WARN);
	facts->dumps = MR_FACT_KNOWN;
	assert_int_equal(run("runtime.dumps")->verdict, MR_PASS);
	facts->hugetlbfs.state = MR_FACT_KNOWN;
	facts->hugetlbfs.mounted = true;
	assert_int_equal(run("memory.hugetlbfs")->verdict, MR_WARN);
	facts->hugetlbfs.writable = true;
	assert_int_equal(run("memory.hugetlbfs")->verdict, MR_PASS);
}

/* Of several devices the worst decides, and all are named. */
static void the_worst_of_several_decides(void **state)
{
	struct mr_finding *f;

	(void)state;
	facts->pci[0].iommu.state = MR_FACT_ABSENT;
	facts->pci[1].iommu.state = MR_FACT_KNOWN;
	snprintf(facts->pci[1].iommu.v, sizeof(facts->pci[1].iommu.v), "DMA-FQ");
	f = run("iommu.type");
	assert_int_equal(f->verdict, MR_FAIL);
	assert_non_null(strstr(f->value, "0000:3d:00.0"));
	assert_non_null(strstr(f->value, "0000:3e:00.0"));
	assert_non_null(strstr(f->hint, "iommu=pt"));
}

static void the_order_of_verdicts_is_that_of_the_contract(void **state)
{
	(void)state;
	memset(findings, 0, sizeof(findings));
	assert_int_equal(mr_checks_worst(findings), MR_PASS);
	findings[0].verdict = MR_WARN;
	findings[1].verdict = MR_UNKNOWN;
	assert_int_equal(mr_checks_worst(findings), MR_UNKNOWN);
	mr_checks_be_strict(findings);
	assert_int_equal(findings[1].verdict, MR_UNKNOWN);
	findings[1].gating = true;
	mr_checks_be_strict(findings);
	assert_int_equal(mr_checks_worst(findings), MR_FAIL);
	findings[1].skipped = true;
	assert_int_equal(mr_checks_worst(findings), MR_WARN);
}

static void ids_and_numbers_are_unique(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < MR_CHECKS_COUNT; i++) {
		assert_int_equal(mr_checks[i].number, i + 1);
		assert_int_equal(mr_checks_find(mr_checks[i].id), i);
	}
	assert_int_equal(mr_checks_find("nothing"), MR_CHECKS_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_nobody_read_never_passes, setup, teardown),
		cmocka_unit_test_setup_teardown(what_may_not_be_read_never_passes, setup, teardown),
		cmocka_unit_test_setup_teardown(hugepages_are_counted_in_64_bits, setup, teardown),
		cmocka_unit_test_setup_teardown(the_pool_rule_is_met_at_its_edge, setup, teardown),
		cmocka_unit_test_setup_teardown(
			regions_are_whole_pages_and_not_too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(
			two_lanes_on_one_core_and_a_name_in_use_fail, setup, teardown),
		cmocka_unit_test_setup_teardown(
			options_that_let_the_cpu_copy_fail, setup, teardown),
		cmocka_unit_test_setup_teardown(
			folders_that_cannot_be_written_warn, setup, teardown),
		cmocka_unit_test_setup_teardown(the_worst_of_several_decides, setup, teardown),
		cmocka_unit_test(the_order_of_verdicts_is_that_of_the_contract),
		cmocka_unit_test(ids_and_numbers_are_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
