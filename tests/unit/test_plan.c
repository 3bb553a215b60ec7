/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan: what is computed, what is refused, and the table of bad configurations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_facts.h"
#include "mr_plan.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mr_problems problems;
static struct mr_plan plan;
static struct mr_host host; /* --no-host unless a test sets it */

/* Four CPUs: 2 is offline and 3 is outside the cpuset. */
static void set_host(uint64_t hugepages_free)
{
	memset(&host, 0, sizeof(host));
	host.known = true;
	host.cpus = 4;
	host.cpu_online[0] = host.cpu_online[1] = host.cpu_online[3] = true;
	host.cpu_allowed[0] = host.cpu_allowed[1] = true;
	host.hugepage_bytes = 2 << 20;
	host.hugepages_free = hugepages_free;
	host.memory_bytes = 1ull << 30;
}

static int setup(void **state)
{
	(void)state;
	memset(&host, 0, sizeof(host));
	return 0;
}

static int build_named(const char *text, const char *name)
{
	struct mr_config cfg;
	int rc = mr_config_parse("dir/file.yaml", text, strlen(text), &cfg, &problems);

	if (rc == 0) {
		rc = mr_plan_build(&cfg, &host, name, &plan, &problems);
		mr_config_free(&cfg);
	}
	if (rc != 0 && problems.count == 0)
		fail_msg("refused without a problem");
	return rc;
}

static int build(const char *text)
{
	return build_named(text, NULL);
}

#define MLX5_OURS                                                                                  \
	"txq_inline_max=0,mprq_en=0,mr_ext_memseg_en=0,mr_mempool_reg_en=0,rxq_pkt_pad_en=1"

#define LANE(name, queue, core, path, more)                                                        \
	"  - {name: " name ", rx: {port: p0, queue: " queue "}, tx: [{port: p0, queue: " queue     \
	"}], "                                                                                     \
	"core: " core ", device: g0, path: " path more "}\n"
#define TEXT(device, port, lanes)                                                                  \
	"devices: [{name: g0, device: \"" device "\"}]\n"                                          \
	"ports: [{name: p0, device: \"" port "\"}]\n"                                              \
	"lanes:\n" lanes

static bool has_arg(const char *arg)
{
	for (uint32_t i = 0; i < plan.eal_args_count; i++)
		if (strcmp(plan.eal_args[i], arg) == 0)
			return true;
	return false;
}

static const char *after_arg(const char *arg)
{
	for (uint32_t i = 0; i + 1 < plan.eal_args_count; i++)
		if (strcmp(plan.eal_args[i], arg) == 0)
			return plan.eal_args[i + 1];
	return "";
}

static void pool_is_the_sum_of_all_places(void **state)
{
	const struct mr_plan_lane *l = &plan.lanes[0];

	(void)state;
	assert_int_equal(
		build("devices: [{name: g0, device: sim}]\n"
		      "ports:\n"
		      "  - {name: p0, device: net_null0, rx_ring: 128, tx_ring: 64}\n"
		      "  - {name: p1, device: net_null1, tx_ring: 256}\n"
		      "lanes:\n"
		      "  - {name: l0, rx: {port: p0, queue: 0}, core: any, device: g0,\n"
		      "     tx: [{port: p0, queue: 0}, {port: p1, queue: 0}],\n"
		      "     path: [direct], batch: {packets: 32}, slots: 8, tick_us: 100}\n"),
		0);
	assert_int_equal(l->cache, 64);
	assert_int_equal(l->reserve, 32);
	assert_int_equal(l->buffers_min, 128 + 8 * 32 + 2 * 64 + 2 * 256 + 64 + 32);
	assert_int_equal(l->buffers, l->buffers_min);
	assert_string_equal(l->sum,
		"rx_ring 128 + slots 8 x batch 32 + tx_ring 64 + backlog 64 + tx_ring 256 + "
		"backlog 256 + control cache 64 + tick reserve 32 = 1120");
	assert_int_equal(l->element_bytes, 1664); /* 128 + 1522, up to 64 */
	assert_int_equal(l->room, l->element_bytes);
	assert_int_equal(l->pool_bytes, 1120 * 1664);
	assert_int_equal(plan.ports[1].rx_queues, 0);
	assert_int_equal(plan.ports[1].tx_queues, 1);
	assert_int_equal(l->tx[1].backlog, 256);
}

/* A ring hands buffers on: those of l0 reach l3 by l1 and l2. */
static void pool_counts_what_other_lanes_hold_of_it(void **state)
{
	(void)state;
	assert_int_equal(
		build("devices: [{name: g0, device: sim}]\n"
		      "ports:\n"
		      "  - {name: p0, device: net_null0, rx_ring: 128, tx_ring: 64}\n"
		      "  - {name: p1, device: net_ring0, rx_ring: 128, tx_ring: 128}\n"
		      "lanes:\n"
		      "  - {name: l0, rx: {port: p0, queue: 0}, core: any, device: g0,\n"
		      "     tx: [{port: p1, queue: 0}], path: [direct], batch: {packets: 32},\n"
		      "     slots: 8, overload: shed}\n"
		      "  - {name: l1, rx: {port: p1, queue: 0}, core: any, device: g0,\n"
		      "     tx: [{port: p1, queue: 1}], path: [direct], batch: {packets: 16},\n"
		      "     slots: 4}\n"
		      "  - {name: l2, rx: {port: p1, queue: 1}, core: any, device: g0,\n"
		      "     tx: [{port: p1, queue: 2}], path: [direct], batch: {packets: 8},\n"
		      "     slots: 2, overload: shed}\n"
		      "  - {name: l3, rx: {port: p1, queue: 2}, core: any, device: g0,\n"
		      "     tx: [{port: p0, queue: 0}], path: [direct], batch: {packets: 8},\n"
		      "     slots: 2}\n"),
		0);
	/* Each frees with a cache of the pool's size, one and a half times full. */
	assert_string_equal(plan.lanes[0].sum,
		"rx_ring 128 + slots 8 x batch 32 + net_ring 1024 + backlog 128 + shed burst 64 + "
		"control cache 64 + lane l1 1312 + lane l2 1328 + lane l3 240 = 4544");
	assert_string_equal(plan.lanes[2].sum,
		"rx_ring 128 + slots 2 x batch 8 + net_ring 1024 + backlog 128 + shed burst 64 + "
		"control cache 32 + lane l3 192 = 1584");
	assert_string_equal(plan.lanes[3].sum,
		"rx_ring 128 + slots 2 x batch 8 + tx_ring 64 + backlog 64 + control cache 32 = "
		"304");
}

/* Frames of a ring lie in the buffers of who received them, however long the ring's may be. */
static void a_lane_behind_a_ring_has_the_room_of_the_buffers_that_it_gets(void **state)
{
	char text[1024];

	(void)state;
	for (int moves = 0; moves < 2; moves++) {
		snprintf(text, sizeof(text),
			"devices: [{name: g0, device: sim, region: 512MiB}]\n"
			"ports:\n"
			"  - {name: p0, device: net_null0}\n"
			"  - {name: p1, device: net_ring0, mtu: 2000}\n"
			"  - {name: p2, device: net_ring1, mtu: 9000}\n"
			"  - {name: p3, device: net_null1, mtu: 9000}\n"
			"lanes:\n"
			"  - {name: l2, rx: {port: p2, queue: 0}, core: any, device: g0,\n"
			"     tx: [{port: p3, queue: 0}], path: [direct]}\n"
			"  - {name: l1, rx: {port: p1, queue: 0}, core: any, device: g0,\n"
			"     tx: [{port: p2, queue: 0}], %s}\n"
			"  - {name: l0, rx: {port: p0, queue: 0}, core: any, device: g0,\n"
			"     tx: [{port: p1, queue: 0}], path: [direct]}\n",
			moves ? "path: [direct], tx_path: [pinned]" : "path: [direct]");
		assert_int_equal(build(text), 0);
		assert_int_equal(plan.lanes[2].room, 1664);
		assert_int_equal(plan.lanes[1].room, 1664);
		/* A lane that moves frames sends them on in buffers of its own. */
		assert_int_equal(plan.lanes[0].room, moves ? plan.lanes[1].element_bytes : 1664);
		assert_int_equal(plan.lanes[1].element_bytes, 2176);
		assert_int_equal(plan.lanes[0].element_bytes, 9152);
	}
}

/*
 * DPDK lib/mbuf rte_pktmbuf_pool_create_extbuf: elements are wider than their 16 bits, or fewer
 * than asked for.
 */
static void largest_lane_fits_its_types(void **state)
{
	const struct mr_plan_lane *l = &plan.lanes[0];

	(void)state;
	assert_int_equal(build("devices: [{name: g0, device: sim, region: 64GiB}]\n"
			       "ports: [{name: p0, device: net_null0, mtu: 9600, rx_ring: 32768,\n"
			       "         tx_ring: 32768}]\n"
			       "lanes:\n" LANE("l0", "0", "any", "[direct]",
				       ", batch: {packets: 1024}, slots: 4096, workers: 64")),
		0);
	assert_int_equal(l->cache, 512);
	assert_int_equal(l->buffers, 3u * 32768 + 4096u * 1024 + 512);
	assert_int_equal(l->element_bytes, 9792);
	assert_true(l->pool_bytes == (uint64_t)l->buffers * 9792);
	assert_int_equal(plan.devices[0].blocks[MR_WORK_THREAD], 64);
}

/*
 * DPDK drivers/common/mlx5/mlx5_common_mr.c:1402: of the last element only the page in which it
 * begins is registered.
 */
static void pools_of_a_region_do_not_overlap(void **state)
{
	uint64_t end[MR_PATH_COUNT] = {0};

	(void)state;
	assert_int_equal(
		build(TEXT("sim", "net_null0",
			LANE("a", "0", "any", "[direct]", "") LANE("b", "1", "any", "[pinned]", "")
				LANE("c", "2", "any", "[direct]", ", slots: 8"))),
		0);
	for (uint32_t i = 0; i < plan.lanes_count; i++) {
		const struct mr_plan_lane *l = &plan.lanes[i];

		assert_true(l->pool_offset == end[l->rx_path]);
		assert_int_equal(l->pool_offset % MR_UNIT, 0);
		end[l->rx_path] += l->pool_bytes;
	}
	for (uint32_t k = 0; k < MR_PATH_STAGED; k++) {
		const struct mr_plan_region *r = &plan.devices[0].region[k];

		assert_true(r->used);
		assert_true(r->need_bytes == end[k]);
		assert_int_equal(r->bytes % MR_REGION_PAGE, 0);
		assert_true(r->need_bytes + MR_REGION_PAGE <= r->bytes);
	}
	assert_false(plan.devices[0].region[MR_PATH_STAGED].used);
	assert_int_equal(plan.ports[0].rx_queues, 3);
}

static void region_hint_suffices(void **state)
{
	char text[1024];
	unsigned int mib = 0;

	(void)state;
	for (uint32_t slots = 2; slots <= 4096; slots *= 2) {
		snprintf(text, sizeof(text),
			"devices: [{name: g0, device: sim, region: 1MiB}]\n"
			"ports: [{name: p0, device: net_null0}]\nlanes:\n" LANE(
				"l0", "0", "any", "[direct]", ", slots: %u"),
			slots);
		assert_int_equal(build(text), -EINVAL);
		assert_int_equal(problems.count, 1);
		assert_int_equal(sscanf(problems.p[0].hint, "set region: %uMiB", &mib), 1);
		for (uint32_t less = 0; less < 2; less++) {
			snprintf(text, sizeof(text),
				"devices: [{name: g0, device: sim, region: %uMiB}]\n"
				"ports: [{name: p0, device: net_null0}]\nlanes:\n" LANE(
					"l0", "0", "any", "[direct]", ", slots: %u"),
				mib - less, slots);
			assert_int_equal(build(text), less == 0 ? 0 : -EINVAL);
		}
	}
}

static void path_takes_the_first_that_holds(void **state)
{
	static const struct {
		const char *device, *port, *list;
		enum mr_path path; /* MR_PATH_COUNT: refused */
		const char *why;
	} rows[] = {
		{"sim", "net_null0", "[direct]", MR_PATH_DIRECT, "first that holds"},
		{"sim", "net_null0", "[pinned, direct]", MR_PATH_PINNED, "first choice"},
		{"sim", "kernel:veth0", "[direct, pinned]", MR_PATH_DIRECT, "port's driver"},
		{"sim", "5e:00.0", "[direct]", MR_PATH_DIRECT, "the NIC"},
		{"3b:00.0", "0000:5e:00.0", "[direct]", MR_PATH_DIRECT, "proven at start-up"},
		{"3b:00.0", "net_null0", "[direct, pinned]", MR_PATH_PINNED, "copy with the CPU"},
		{"3b:00.0", "net_null0", "[pinned]", MR_PATH_PINNED, "first choice"},
		{"sim", "net_null0", "[staged, direct]", MR_PATH_STAGED, "copied to and from"},
		{"3b:00.0", "net_null0", "[direct, staged, pinned]", MR_PATH_STAGED,
			"second choice: the driver of port 'p0' would copy with the CPU"},
		{"3b:00.0", "net_null0", "[direct]", MR_PATH_COUNT, "copy with the CPU"},
		{"3b:00.0", "kernel:veth0", "[direct]", MR_PATH_COUNT, "copy with the CPU"},
		{"3b:00.0", "net_tap0", "[direct]", MR_PATH_COUNT, "copy with the CPU"},
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		snprintf(text, sizeof(text), TEXT("%s", "%s", LANE("l0", "0", "any", "%s", "")),
			rows[i].device, rows[i].port, rows[i].list);
		if (rows[i].path == MR_PATH_COUNT) {
			assert_int_equal(build(text), -EINVAL);
			assert_non_null(strstr(problems.p[0].message, rows[i].why));
			assert_string_equal(problems.p[0].hint, "add pinned to the list");
			continue;
		}
		assert_int_equal(build(text), 0);
		assert_int_equal(plan.lanes[0].rx_path, rows[i].path);
		assert_int_equal(plan.lanes[0].tx_path, rows[i].path);
		assert_non_null(strstr(plan.lanes[0].path_why, rows[i].why));
	}
}

static void sending_port_counts_for_the_path(void **state)
{
	(void)state;
	assert_int_equal(
		build("devices: [{name: g0, device: \"3b:00.0\"}]\n"
		      "ports: [{name: p0, device: \"5e:00.0\"}, {name: p1, device: net_null0}]\n"
		      "lanes:\n"
		      "  - {name: l0, rx: {port: p0, queue: 0}, tx: [{port: p1, queue: 0}],\n"
		      "     core: any, device: g0, path: [direct, pinned]}\n"),
		0);
	assert_int_equal(plan.lanes[0].rx_path, MR_PATH_PINNED);
	assert_int_equal(plan.lanes[0].tx_path, MR_PATH_PINNED);
	assert_non_null(strstr(plan.lanes[0].path_why, "port 'p1'"));
}

/* What rests in slots rests in both pools, what waits for a port in the second only. */
static void a_lane_whose_paths_differ_has_two_pools(void **state)
{
	const struct mr_plan_lane *l = &plan.lanes[0];

	(void)state;
	assert_int_equal(build("devices: [{name: g0, device: sim}]\n"
			       "ports: [{name: p0, device: net_null0, rx_ring: 128, tx_ring: 64}]\n"
			       "lanes:\n" LANE("l0", "0", "any", "[direct]",
				       ", rx_path: [pinned], tx_path: [direct, staged], slots: 8, "
				       "batch: {packets: 32}") LANE("l1", "1", "any", "[staged]",
				       ", slots: 8, batch: {packets: 32}")),
		0);
	assert_int_equal(l->rx_path, MR_PATH_PINNED);
	assert_int_equal(l->tx_path, MR_PATH_DIRECT);
	assert_non_null(strstr(l->path_why, "in: first choice: host memory that device 'g0' maps"));
	assert_non_null(strstr(l->path_why, "out: first that holds: memory of the software"));
	assert_string_equal(l->sum, "rx_ring 128 + slots 8 x batch 32 + control cache 64 = 448");
	assert_string_equal(l->tx_sum, "slots 8 x batch 32 + tx_ring 64 + backlog 64 = 384");
	assert_int_equal(l->buffers, 448);
	assert_int_equal(l->tx_buffers, 384);
	assert_int_equal(l->copies_bytes, 0);
	assert_int_equal(plan.devices[0].region[MR_PATH_PINNED].need_bytes, 448 * 1664);
	assert_int_equal(plan.devices[0].region[MR_PATH_DIRECT].need_bytes, 384 * 1664);
	/* A lane that is staged both ways has one pool, and buffers of its slots. */
	assert_int_equal(plan.lanes[1].tx_buffers, 0);
	assert_int_equal(plan.lanes[1].copies_bytes, 8 * 32 * 1664);
	assert_int_equal(plan.devices[0].region[MR_PATH_STAGED].need_bytes,
		(uint64_t)plan.lanes[1].buffers * 1664);
	/* One side's list is judged by that side's ports, and no path is taken that it lacks. */
	assert_int_equal(build(TEXT("3b:00.0", "net_null0",
				 LANE("l0", "0", "any", "[staged]", ", tx_path: [direct]"))),
		-EINVAL);
	assert_string_equal(problems.p[0].key, "lanes[0].tx_path");
	assert_int_equal(
		build(TEXT("3b:00.0", "net_null0",
			LANE("l0", "0", "any", "[staged]", ", tx_path: [direct, pinned]"))),
		0);
	assert_int_equal(plan.lanes[0].rx_path, MR_PATH_STAGED);
	assert_int_equal(plan.lanes[0].tx_path, MR_PATH_PINNED);
}

static void port_strings_become_dpdk_devices(void **state)
{
	static const struct {
		const char *text;
		enum mr_port_kind kind;
		const char *device, *args, *ifname;
	} rows[] = {
		{"net_pcap0,rx_pcap=a,tx_pcap=b", MR_PORT_VDEV, "net_pcap0", "rx_pcap=a,tx_pcap=b",
			""},
		{"net_null_x", MR_PORT_VDEV, "net_null_x", "", ""},
		{"net_tap0,iface=x", MR_PORT_VDEV, "net_tap0", "iface=x", ""},
		{"0000:5E:00.1", MR_PORT_PCI, "0000:5e:00.1", MLX5_OURS, ""},
		{"5e:1f.7,dv_flow_en=1", MR_PORT_PCI, "0000:5e:1f.7", "dv_flow_en=1," MLX5_OURS,
			""},
		{"10000:5e:00.0", MR_PORT_PCI, "10000:5e:00.0", MLX5_OURS, ""},
		{"kernel:veth0", MR_PORT_KERNEL, "net_pcap_kernel0",
			"rx_iface_in=veth0,tx_iface=veth0", "veth0"},
	};
	static const char *const bad[] = {"net_", "net", "5e:00", "5e:00.8", "5e:20.0", "5e:00.0x",
		"5e:00.0:1", "000:5e:00.0", "g:5e:00.0", "kernel:", "kernel:.", "kernel:a b",
		"kernel:abcdefghijklmnop", "net_a b", "net_0123456789012345678901234567", "::.",
		":", "., ", "eth_ring0"};
	char text[512];

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		const struct mr_plan_port *p = &plan.ports[0];

		snprintf(text, sizeof(text),
			TEXT("sim", "%s", LANE("l0", "0", "any", "[pinned]", "")), rows[i].text);
		assert_int_equal(build(text), 0);
		assert_int_equal(p->kind, rows[i].kind);
		assert_string_equal(p->device, rows[i].device);
		assert_string_equal(p->args, rows[i].args);
		assert_string_equal(p->ifname, rows[i].ifname);
		assert_int_equal(p->frame_max, 1522);
	}
	for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++) {
		snprintf(text, sizeof(text),
			TEXT("sim", "%s", LANE("l0", "0", "any", "[pinned]", "")), bad[i]);
		assert_int_equal(build(text), -EINVAL);
		assert_int_equal(problems.count, 1);
		assert_string_equal(problems.p[0].key, "ports[0].device");
	}
}

static void kernel_port_sends_on_as_many_sockets_as_queues(void **state)
{
	(void)state;
	assert_int_equal(
		build("devices: [{name: g0, device: sim}]\n"
		      "ports: [{name: k, device: \"kernel:veth0\"}, {name: n, device: net_null0}]\n"
		      "lanes:\n"
		      "  - {name: a, rx: {port: k, queue: 0}, tx: [{port: k, queue: 0}],\n"
		      "     core: any, device: g0, path: [direct]}\n"
		      "  - {name: b, rx: {port: n, queue: 0}, tx: [{port: k, queue: 1}],\n"
		      "     core: any, device: g0, path: [direct]}\n"),
		0);
	assert_string_equal(plan.ports[0].args, "rx_iface_in=veth0,tx_iface=veth0,tx_iface=veth0");
}

static void kernel_port_opens_no_socket_that_no_lane_uses(void **state)
{
	(void)state;
	assert_int_equal(build("devices: [{name: g0, device: sim}]\n"
			       "ports: [{name: i, device: \"kernel:a0\"}, {name: o, device: "
			       "\"kernel:b0\"}]\n"
			       "lanes:\n"
			       "  - {name: l, rx: {port: i, queue: 0}, tx: [{port: o, queue: 0}],\n"
			       "     core: any, device: g0, path: [direct]}\n"),
		0);
	assert_string_equal(plan.ports[0].args, "rx_iface_in=a0");
	assert_string_equal(plan.ports[1].args, "tx_iface=b0");
}

static void af_packet_is_taken_with_a_warning(void **state)
{
	(void)state;
	assert_int_equal(build(TEXT("sim", "net_af_packet0,iface=veth0",
				 LANE("l0", "0", "any", "[direct]", ""))),
		0);
	assert_int_equal(plan.warnings_count, 1);
	assert_non_null(strstr(plan.warnings[0], "loses the VLAN tags"));
}

static void device_strings_become_driver_arguments(void **state)
{
	(void)state;
	assert_int_equal(build(TEXT("sim,guard=mprotect", "net_null0",
				 LANE("l0", "0", "any", "[direct]", ""))),
		0);
	assert_string_equal(plan.devices[0].args, "device=sim,guard=mprotect");
	assert_true(plan.devices[0].sim);
	assert_int_equal(
		build(TEXT("3B:00.0,x=1", "net_null0", LANE("l0", "0", "any", "[pinned]", ""))), 0);
	assert_string_equal(plan.devices[0].args, "device=0000:3b:00.0,x=1");
	assert_false(plan.devices[0].sim);
	assert_true(has_arg("--no-pci"));
}

static void heaviest_stage_chooses_the_kernel(void **state)
{
	const struct mr_plan_lane *l = &plan.lanes[0];

	(void)state;
	assert_int_equal(build(TEXT("sim", "net_null0",
				 LANE("a", "0", "any", "[direct]",
					 ", workers: 3, stages: [{use: l2swap}, {use: checksum}, "
					 "{use: checksum}, {use: drop, params: {reason: runt}}]")
					 LANE("b", "1", "any", "[direct]", ", workers: 2"))),
		0);
	assert_int_equal(l->work, MR_WORK_WARP);
	assert_int_equal(plan.lanes[1].work, MR_WORK_THREAD);
	assert_int_equal(plan.devices[0].blocks[MR_WORK_WARP], 3);
	assert_int_equal(plan.devices[0].blocks[MR_WORK_THREAD], 2);
	assert_int_equal(l->stages[1].counter_base, 0);
	assert_int_equal(l->stages[2].counter_base, 3);
	assert_int_equal(l->counters_count, 6);
	assert_string_equal(l->stages[3].text, "reason=runt");
	assert_string_equal(l->workers_why, "");
}

static void ticks_leave_one_worker_and_say_why(void **state)
{
	(void)state;
	assert_int_equal(build(TEXT("sim", "net_null0",
				 LANE("a", "0", "any", "[direct]", ", workers: 4, tick_us: 10"))),
		0);
	assert_int_equal(plan.lanes[0].workers, 1);
	assert_non_null(strstr(plan.lanes[0].workers_why, "1 of 4"));
	assert_int_equal(plan.lanes[0].work, MR_WORK_ORDER);
	assert_int_equal(plan.devices[0].blocks[MR_WORK_ORDER], 1);
	assert_int_equal(
		build(TEXT("sim", "net_null0", LANE("a", "0", "any", "[direct]", ", tick_us: 10"))),
		0);
	assert_string_equal(plan.lanes[0].workers_why, "");
}

static void cores_are_judged_by_the_host_only_where_it_is_known(void **state)
{
	static const struct {
		const char *core;
		const char *message; /* NULL: taken */
	} rows[] = {
		{"0", NULL},
		{"1", NULL},
		{"any", NULL},
		{"2", "core 2 is offline"},
		{"3", "is not among the CPUs"},
		{"4", "this machine has no core 4"},
		{"1023", "this machine has no core 1023"},
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		snprintf(text, sizeof(text),
			TEXT("sim", "net_null0", LANE("l0", "0", "%s", "[direct]", "")),
			rows[i].core);
		memset(&host, 0, sizeof(host));
		assert_int_equal(build(text), 0);
		set_host(0);
		assert_int_equal(build(text), rows[i].message == NULL ? 0 : -EINVAL);
		if (rows[i].message == NULL)
			continue;
		assert_int_equal(problems.count, 1);
		assert_string_equal(problems.p[0].key, "lanes[0].core");
		assert_non_null(strstr(problems.p[0].message, rows[i].message));
	}
}

static void control_thread_floats_beside_the_lanes(void **state)
{
	(void)state;
	set_host(0);
	assert_int_equal(build(TEXT("sim", "net_null0", LANE("a", "0", "any", "[direct]", ""))), 0);
	assert_string_equal(after_arg("--lcores"), "0@(0-1)");
	assert_int_equal(build(TEXT("sim", "net_null0", LANE("a", "0", "1", "[direct]", ""))), 0);
	assert_string_equal(after_arg("--lcores"), "0@(0)");
	assert_int_equal(
		build(TEXT("sim", "net_null0",
			LANE("a", "0", "1", "[direct]", "") LANE("b", "1", "0", "[direct]", ""))),
		0);
	assert_string_equal(after_arg("--lcores"), "0@(0-1)");
	memset(&host, 0, sizeof(host));
	assert_int_equal(build(TEXT("sim", "net_null0", LANE("a", "0", "any", "[direct]", ""))), 0);
	assert_false(has_arg("--lcores"));
}

static void a_long_cpu_list_is_cut_and_not_broken(void **state)
{
	const char *list;

	(void)state;
	set_host(0);
	host.cpus = MR_CPUS_MAX;
	for (uint32_t i = 0; i < MR_CPUS_MAX; i += 2)
		host.cpu_online[i] = host.cpu_allowed[i] = true;
	assert_int_equal(build(TEXT("sim", "net_null0", LANE("a", "0", "any", "[direct]", ""))), 0);
	list = after_arg("--lcores");
	assert_true(strlen(list) > 100);
	assert_int_equal(list[strlen(list) - 1], ')');
	assert_true(list[strlen(list) - 2] >= '0' && list[strlen(list) - 2] <= '9');
}

static void hugepages_are_taken_if_enough_are_free(void **state)
{
	const char *text = TEXT("sim", "net_null0", LANE("a", "0", "any", "[direct]", ""));
	const char *off = "eal: {hugepages: off}\n" TEXT(
		"sim", "net_null0", LANE("a", "0", "any", "[direct]", ""));

	(void)state;
	set_host(1000);
	assert_int_equal(build(text), 0);
	assert_true(plan.hugepages && has_arg("--in-memory") && !has_arg("--no-huge"));
	assert_int_equal(build(off), 0);
	assert_true(!plan.hugepages && !has_arg("--in-memory") && has_arg("--no-huge"));
	set_host(plan.eal_memory_mib / 2 - 1);
	assert_int_equal(build(text), 0);
	assert_false(plan.hugepages);
	set_host(plan.eal_memory_mib / 2);
	assert_int_equal(build(text), 0);
	assert_true(plan.hugepages);
	host.known = false;
	assert_int_equal(build(text), 0);
	assert_false(plan.hugepages);
	assert_int_equal(atoi(after_arg("-m")), plan.eal_memory_mib);
	assert_true(plan.eal_memory_mib >= 64);
}

/*
 * DPDK lib/eal/common/eal_common_memory.c: registered memory has no bus address unless that is the
 * virtual one.
 */
static void eal_arguments_name_the_instance_and_end_with_the_users(void **state)
{
	(void)state;
	assert_int_equal(build_named("eal: {args: [-v, --match-allocations]}\n"
				     "log: {level: error}\n" TEXT("sim", "5e:00.0,dv_flow_en=1",
					     LANE("a", "0", "any", "[direct]", "")),
				 "edge"),
		0);
	assert_string_equal(after_arg("--file-prefix"), "millrace-edge");
	assert_string_equal(after_arg("--iova-mode"), "va");
	assert_string_equal(after_arg("--log-level"), "*:error");
	assert_true(has_arg("--allow=0000:5e:00.0,dv_flow_en=1," MLX5_OURS));
	assert_false(has_arg("--no-pci"));
	assert_false(has_arg("--no-telemetry"));
	assert_string_equal(plan.eal_args[plan.eal_args_count - 2], "-v");
	assert_string_equal(plan.eal_args[plan.eal_args_count - 1], "--match-allocations");
}

static void eal_arguments_fit_the_largest_plan(void **state)
{
	char text[16384] =
		"devices: [{name: g0, device: sim, region: 2GiB}]\n"
		"eal: {args: [a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, last]}\nports:\n";
	size_t n = strlen(text);

	(void)state;
	set_host(0);
	for (uint32_t i = 0; i < MR_PORTS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"  - {name: p%u, device: \"%02x:00.0\"}\n", i, i);
	n += (size_t)snprintf(text + n, sizeof(text) - n, "lanes:\n");
	for (uint32_t i = 0; i < MR_PORTS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"  - {name: l%u, rx: {port: p%u, queue: 0}, tx: [{port: p%u, queue: 0}], "
			"core: any, device: g0, path: [direct]}\n",
			i, i, i);
	assert_int_equal(build(text), 0);
	assert_true(plan.eal_args_count < MR_EAL_ARGS_MAX);
	assert_string_equal(plan.eal_args[plan.eal_args_count - 1], "last");
}

static void name_comes_from_argument_then_key_then_stem(void **state)
{
	const char *text = TEXT("sim", "net_null0", LANE("a", "0", "any", "[direct]", ""));
	const char *named =
		"name: key\n" TEXT("sim", "net_null0", LANE("a", "0", "any", "[direct]", ""));

	(void)state;
	assert_int_equal(build_named(named, "arg"), 0);
	assert_string_equal(plan.name, "arg");
	assert_int_equal(build(named), 0);
	assert_string_equal(plan.name, "key");
	assert_int_equal(build(text), 0);
	assert_string_equal(plan.name, "file");
	assert_int_equal(build_named(text, "a/b"), -EINVAL);
	assert_int_equal(build_named(text, ""), -EINVAL);
	assert_int_equal(build_named(text, "0123456789012345678901234567890"), 0);
	assert_int_equal(build_named(text, "01234567890123456789012345678901"), -EINVAL);
	assert_string_equal(problems.p[0].key, "name");
}

static void too_little_memory_is_a_warning(void **state)
{
	(void)state;
	set_host(0);
	host.memory_bytes = 32 << 20;
	assert_int_equal(build(TEXT("sim", "net_null0", LANE("a", "0", "any", "[direct]", ""))), 0);
	assert_int_equal(plan.warnings_count, 1);
	assert_non_null(strstr(plan.warnings[0], "64 MiB of memory, but only 32"));
}

static bool reported(const char *expect)
{
	char key[128] = "", fragment[512];
	unsigned int line;
	const char *bar = strchr(expect, '|');
	const char *second = strchr(bar + 1, '|');

	assert_int_equal(sscanf(expect, "%u |", &line), 1);
	sscanf(bar + 1, " %127[^| ]", key);
	snprintf(fragment, sizeof(fragment), "%.*s", (int)strcspn(second + 2, "\n"), second + 2);
	for (uint32_t i = 0; i < problems.count; i++)
		if (problems.p[i].line == line && strcmp(problems.p[i].key, key) == 0 &&
			(strstr(problems.p[i].message, fragment) != NULL ||
				strstr(problems.p[i].hint, fragment) != NULL))
			return true;
	return false;
}

static void judge_bad(const char *file)
{
	static const char mark[] = "# expect: ";
	struct mr_config cfg = {0};
	char line[1024];
	uint32_t expected = 0;
	FILE *f = fopen(file, "r");
	int rc = mr_config_load(file, &cfg, &problems);

	if (rc == 0)
		rc = mr_plan_build(&cfg, &host, NULL, &plan, &problems);
	mr_config_free(&cfg);
	if (rc != -EINVAL)
		fail_msg("%s is taken", file);
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f)); /* the licence */
	while (fgets(line, sizeof(line), f) != NULL && strncmp(line, mark, strlen(mark)) == 0) {
		expected++;
		if (!reported(line + strlen(mark)))
			fail_msg("%s: not reported: %s but %u: %s: %s; %s", file, line,
				problems.p[0].line, problems.p[0].key, problems.p[0].message,
				problems.p[0].hint);
	}
	fclose(f);
	if (problems.count != expected)
		fail_msg("%s: %u problems, not %u", file, problems.count, expected);
}

static void every_bad_configuration_is_refused_as_it_says(void **state)
{
	glob_t found;

	(void)state;
	set_host(0);
	assert_int_equal(glob(MILLRACE_SOURCE "/tests/e2e/bad_configs/*.yaml", 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 60);
	for (size_t i = 0; i < found.gl_pathc; i++)
		judge_bad(found.gl_pathv[i]);
	globfree(&found);
}

static void shipped_configurations_are_planned(void **state)
{
	static const char *const files[] = {"millrace", "demo"};
	char path[512];

	(void)state;
	set_host(0);
	for (size_t i = 0; i < MR_ARRAY_LEN(files); i++) {
		struct mr_config cfg;

		snprintf(path, sizeof(path), MILLRACE_SOURCE "/config/%s.yaml", files[i]);
		assert_int_equal(mr_config_load(path, &cfg, &problems), 0);
		assert_int_equal(mr_plan_build(&cfg, &host, NULL, &plan, &problems), 0);
		mr_config_free(&cfg);
		assert_string_equal(plan.name, files[i]);
		assert_int_equal(plan.warnings_count, 0);
	}
}

/* A NIC that was looked at, of this vendor. */
static struct mr_host_facts *nic_of(uint64_t vendor)
{
	struct mr_host_facts *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->pci_count = f->nics_count = 1;
	snprintf(f->pci[0].bdf, sizeof(f->pci[0].bdf), "0000:3e:00.0");
	f->pci[0].vendor = (struct mr_fact_u64){MR_FACT_KNOWN, vendor};
	set_host(0);
	host.facts = f;
	return f;
}

static void an_mlx5_port_gets_the_options_that_it_needs(void **state)
{
	struct mr_host_facts *f = nic_of(0x15b3);

	(void)state;
	assert_int_equal(build(TEXT("sim", "0000:3e:00.0,dv_flow_en=1",
				 LANE("l0", "0", "any", "[pinned]", ""))),
		0);
	assert_string_equal(plan.ports[0].args, "dv_flow_en=1," MLX5_OURS);
	assert_true(has_arg("--allow=0000:3e:00.0,dv_flow_en=1," MLX5_OURS));
	assert_string_equal(after_arg("--iova-mode"), "va");
	assert_int_equal(build(TEXT("sim", "0000:3e:00.0,mprq_en=1,txq_inline_min=18",
				 LANE("l0", "0", "any", "[pinned]", ""))),
		-EINVAL);
	assert_int_equal(problems.count, 2);
	assert_string_equal(problems.p[0].key, "ports[0].device");
	assert_int_equal(problems.p[0].line, 2);
	free(f);
}

static void a_nic_of_another_make_keeps_its_own_options(void **state)
{
	struct mr_host_facts *f = nic_of(0x1af4);

	(void)state;
	assert_int_equal(build(TEXT("sim", "0000:3e:00.0,mrg_rxbuf=1",
				 LANE("l0", "0", "any", "[pinned]", ""))),
		0);
	assert_string_equal(plan.ports[0].args, "mrg_rxbuf=1");
	/* One that was not looked at is taken for an mlx5. */
	host.facts = NULL;
	assert_int_equal(
		build(TEXT("sim", "0000:3e:00.0", LANE("l0", "0", "any", "[pinned]", ""))), 0);
	assert_string_equal(plan.ports[0].args, MLX5_OURS);
	free(f);
}

static void options_of_a_port_are_not_cut(void **state)
{
	char text[1024], fill[371];

	(void)state;
	memset(fill, '1', sizeof(fill) - 1);
	fill[sizeof(fill) - 1] = '\0';
	snprintf(text, sizeof(text),
		"devices: [{name: g0, device: sim}]\n"
		"ports: [{name: p0, device: \"0000:3e:00.0,tx_pp=%s\"}]\n"
		"lanes:\n" LANE("l0", "0", "any", "[pinned]", ""),
		fill);
	assert_int_equal(build(text), -EINVAL);
	assert_string_equal(problems.p[0].message,
		"the port's options are too long together with those that Millrace adds");
}

/* net_ring has queues of its own; what is asked of a NIC is known without it. */
#define STEERED(port, m0, m1, more)                                                                \
	"devices: [{name: g0, device: sim}]\nports: [" port                                        \
	"]\nlanes:\n" LANE("l0", "0", "any", "[pinned]", ", match: " m0 more)                      \
		LANE("l1", "1", "any", "[pinned]", ", match: " m1)

static void software_steering_is_a_stage_in_front_of_the_chain(void **state)
{
	const struct mr_plan_lane *l = &plan.lanes[0];

	(void)state;
	assert_int_equal(build(STEERED("{name: p0, device: net_ring0, steering: software}",
				 "{dst_port: 53, src: 10.0.0.0/8}", "{vlan: 5, dst: \"fd00::/8\"}",
				 ", stages: [{use: checksum}, {use: l2swap}]")),
		0);
	assert_int_equal(l->stages_count, 3);
	assert_string_equal(l->stages[0].desc->name, "match");
	assert_string_equal(l->stages[0].text,
		"ethertype=any vlan=any src=10.0.0.0/8 dst=any protocol=any src_port=any "
		"dst_port=53 vni=any action=continue port=p0 otherwise=drop other_port=p0 "
		"reason=unmatched");
	assert_string_equal(l->stages[1].desc->name, "checksum");
	assert_string_equal(l->stages[2].desc->name, "l2swap");
	assert_int_equal(l->stages[1].counter_base, l->stages[0].desc->counters_count);
	assert_int_equal(l->work, MR_WORK_WARP);
	assert_string_equal(l->match_text, "src=10.0.0.0/8 dst_port=53");
	assert_int_equal(plan.lanes[1].stages_count, 1);
	assert_string_equal(plan.lanes[1].match_text, "vlan=5 dst=fd00::/8");
	assert_true(plan.ports[0].steered);
	assert_false(mr_plan_port_isolated(&plan.ports[0]));
	/* Errors of the lane's own stages are told where they are written. */
	assert_int_equal(build(STEERED("{name: p0, device: net_ring0, steering: software}",
				 "{vlan: 4}", "{vlan: 5}",
				 ", stages: [{use: checksum}, {use: forward, params: {port: 9}}]")),
		-EINVAL);
	assert_string_equal(problems.p[0].key, "lanes[0].stages[1].params.port");
}

static void a_nics_steering_isolates_the_port_and_adds_no_stage(void **state)
{
	(void)state;
	assert_int_equal(build(STEERED("{name: p0, device: \"0000:3e:00.0\"}", "{vni: 5}",
				 "{vni: 6}", ", stages: [{use: checksum}]")),
		0);
	assert_int_equal(plan.lanes[0].stages_count, 1);
	assert_true(mr_plan_port_isolated(&plan.ports[0]));
	assert_int_equal(plan.lanes[0].group, 0);
	assert_int_equal(plan.lanes[1].group, 1);
	assert_int_equal(plan.warnings_count, 0);
	/* One match, by whatever fields it is written. */
	assert_int_equal(build(STEERED("{name: p0, device: \"0000:3e:00.0\"}", "{vni: 5}",
				 "{vni: 5, protocol: 17, dst_port: 4789}", "")),
		0);
	assert_int_equal(plan.lanes[1].group, 0);
	/* The frames of the read-back are in no match. */
	assert_int_equal(
		build("proof: {readback: port}\n" STEERED(
			"{name: p0, device: \"0000:3e:00.0\"}", "{vni: 5}", "{vni: 6}", "")),
		-EINVAL);
	assert_int_equal(problems.count, 1);
	assert_string_equal(problems.p[0].key, "proof.readback");
	/* Without any the port is everyone's. */
	assert_int_equal(build(STEERED("{name: p0, device: \"0000:3e:00.0\"}", "{}", "{}", "")), 0);
	assert_false(mr_plan_port_isolated(&plan.ports[0]));
	assert_int_equal(plan.lanes[1].group, 1);
}

static void what_no_match_names_is_said_to_be_lost_where_the_kernel_is_not_there(void **state)
{
	struct mr_host_facts *f = nic_of(0x8086);

	(void)state;
	assert_int_equal(build(STEERED("{name: p0, device: \"0000:3e:00.0\"}", "{vlan: 5}",
				 "{vlan: 6}", "")),
		0);
	assert_int_equal(plan.warnings_count, 1); /* once for the port */
	assert_non_null(strstr(plan.warnings[0], "no lane's match names are dropped by the NIC"));
	free(f);
	f = nic_of(0x15b3);
	assert_int_equal(build(STEERED("{name: p0, device: \"0000:3e:00.0\"}", "{vlan: 5}",
				 "{vlan: 6}", "")),
		0);
	for (uint32_t i = 0; i < plan.warnings_count; i++)
		assert_null(strstr(plan.warnings[i], "dropped by the NIC"));
	free(f);
}

static void a_split_port_gives_its_lanes_two_pools_of_their_path(void **state)
{
	const struct mr_plan_lane *l = plan.lanes;

	(void)state;
	assert_int_equal(
		build("devices: [{name: g0, device: sim}]\n"
		      "ports: [{name: p0, device: \"3e:00.0\", split: {header_bytes: 100}}]\n"
		      "lanes:\n" LANE("l0", "0", "any", "[direct]", "")
				LANE("l1", "1", "any", "[direct]", ", stages: [{use: l2swap}]")),
		0);
	assert_int_equal(l->element_bytes, 256); /* 128 + 100, up to 64 */
	assert_int_equal(l->room, 256);
	assert_int_equal(l->rest_element_bytes, 2048);
	assert_true(l->pool_bytes == 256ull * l->buffers);
	assert_true(l->rest_pool_bytes == 2048ull * l->buffers);
	assert_int_equal(l[0].pool_offset, 0);
	assert_true(l[0].rest_pool_offset == l[0].pool_bytes);
	assert_true(l[1].pool_offset == l[0].rest_pool_offset + l[0].rest_pool_bytes);
	assert_true(l[1].rest_pool_offset == l[1].pool_offset + l[1].pool_bytes);
	assert_true(plan.devices[0].region[MR_PATH_DIRECT].need_bytes ==
		l[1].rest_pool_offset + l[1].rest_pool_bytes);
	assert_true(plan.ports[0].sends_parts);
	assert_int_equal(plan.warnings_count, 1);
	assert_string_equal(plan.warnings[0],
		"lane 'l1': its stages see the first 100 bytes of a frame as if they were all of "
		"it");
	assert_int_equal(build(TEXT("sim", "3e:00.0", LANE("l0", "0", "any", "[direct]", ""))), 0);
	assert_int_equal(l->rest_pool_bytes, 0);
	assert_false(plan.ports[0].sends_parts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(pool_is_the_sum_of_all_places, setup),
		cmocka_unit_test_setup(pool_counts_what_other_lanes_hold_of_it, setup),
		cmocka_unit_test_setup(
			a_lane_behind_a_ring_has_the_room_of_the_buffers_that_it_gets, setup),
		cmocka_unit_test_setup(largest_lane_fits_its_types, setup),
		cmocka_unit_test_setup(pools_of_a_region_do_not_overlap, setup),
		cmocka_unit_test_setup(region_hint_suffices, setup),
		cmocka_unit_test_setup(path_takes_the_first_that_holds, setup),
		cmocka_unit_test_setup(a_lane_whose_paths_differ_has_two_pools, setup),
		cmocka_unit_test_setup(sending_port_counts_for_the_path, setup),
		cmocka_unit_test_setup(port_strings_become_dpdk_devices, setup),
		cmocka_unit_test_setup(kernel_port_sends_on_as_many_sockets_as_queues, setup),
		cmocka_unit_test_setup(kernel_port_opens_no_socket_that_no_lane_uses, setup),
		cmocka_unit_test_setup(af_packet_is_taken_with_a_warning, setup),
		cmocka_unit_test_setup(device_strings_become_driver_arguments, setup),
		cmocka_unit_test_setup(heaviest_stage_chooses_the_kernel, setup),
		cmocka_unit_test_setup(ticks_leave_one_worker_and_say_why, setup),
		cmocka_unit_test_setup(cores_are_judged_by_the_host_only_where_it_is_known, setup),
		cmocka_unit_test_setup(control_thread_floats_beside_the_lanes, setup),
		cmocka_unit_test_setup(a_long_cpu_list_is_cut_and_not_broken, setup),
		cmocka_unit_test_setup(hugepages_are_taken_if_enough_are_free, setup),
		cmocka_unit_test_setup(
			eal_arguments_name_the_instance_and_end_with_the_users, setup),
		cmocka_unit_test_setup(eal_arguments_fit_the_largest_plan, setup),
		cmocka_unit_test_setup(name_comes_from_argument_then_key_then_stem, setup),
		cmocka_unit_test_setup(too_little_memory_is_a_warning, setup),
		cmocka_unit_test_setup(every_bad_configuration_is_refused_as_it_says, setup),
		cmocka_unit_test_setup(shipped_configurations_are_planned, setup),
		cmocka_unit_test_setup(an_mlx5_port_gets_the_options_that_it_needs, setup),
		cmocka_unit_test_setup(a_nic_of_another_make_keeps_its_own_options, setup),
		cmocka_unit_test_setup(options_of_a_port_are_not_cut, setup),
		cmocka_unit_test_setup(a_split_port_gives_its_lanes_two_pools_of_their_path, setup),
		cmocka_unit_test_setup(software_steering_is_a_stage_in_front_of_the_chain, setup),
		cmocka_unit_test_setup(a_nics_steering_isolates_the_port_and_adds_no_stage, setup),
		cmocka_unit_test_setup(
			what_no_match_names_is_said_to_be_lost_where_the_kernel_is_not_there,
			setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
