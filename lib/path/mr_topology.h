/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_topology - how far a GPU and a NIC are apart, and which belong together.
 *
 *     functions, CPUs ──build──► pairs, advice ──┬──► text (tree, pairs, advice)
 *     (facts of sysfs)                           └──► configuration to start from
 *
 * The way of a pair is what two /sys/devices paths have not in common:
 *
 *     pci0000:3a / 3a:00.0 / 3b:00.0 / 3c:00.0 / 3d:00.0 GPU
 *                  root      switch ┌ 3c:00.0    endpoint      PIX  one switch
 *                  port      up     └ 3c:10.0 / 3e:00.0 NIC    PXB  more than one
 *     PHB   same root (host bridge), no bridge in common
 *     NODE  two roots, same NUMA node
 *     SYS   two roots, two NUMA nodes, or one is not known
 *
 * Behind a root port bridges come in twos, a switch's port up and its port down,
 * so a switch counts once whatever number of bridges it shows. A root inside
 * another root's device (VMD) is a root of its own.
 *
 * A link belongs to the function at its lower end. Its speed now is taken unless
 * that end is a GPU: an idle GPU's link sleeps at 2.5 GT/s and wakes under load, so
 * there the width now and the speed that both ends can are taken. The narrowest
 * link of a way carries the fewest bits; links whose speed or width is not known
 * are left out, and `links_unknown` counts them.
 *
 * Thread   any; pure. Facts are the caller's and must outlive the result, which
 *          points into them.
 * Errors   any facts give a result. A path that does not lead to the function's own
 *          address, or is deeper than MR_TOPOLOGY_DEPTH_MAX, leaves the function
 *          unplaced: its pairs are SYS and uncertain. Only memory can fail.
 * Source   nvidia-smi topo (legend); NCCL src/graph/paths.cc for counting switches
 */
#ifndef MR_TOPOLOGY_H
#define MR_TOPOLOGY_H

#include "mr_err.h"
#include "mr_pci.h"

#include <stdbool.h>

#define MR_TOPOLOGY_DEPTH_MAX 32u /* bridges above a function */
#define MR_TOPOLOGY_CORES_MAX 8u  /* recommended for one NIC */

enum mr_topology_near {
	MR_TOPOLOGY_PIX,
	MR_TOPOLOGY_PXB,
	MR_TOPOLOGY_PHB,
	MR_TOPOLOGY_NODE,
	MR_TOPOLOGY_SYS,
};

enum mr_topology_kind {
	MR_TOPOLOGY_OTHER, /* bridges and all else: only what lies on a way is drawn */
	MR_TOPOLOGY_GPU,   /* NVIDIA (10de), class 0300 or 0302; or what stands in for one */
	MR_TOPOLOGY_NIC,   /* class 0200 or 0207 */
};

struct mr_topology_function {
	struct mr_pci_addr addr;
	/*
	 * What the link in /sys/bus/pci/devices resolves to; what precedes its first
	 * pciDDDD:BB does not matter. NULL: not known.
	 */
	const char *path;
	uint16_t vendor;
	uint16_t device;
	uint32_t class_code; /* 24 bits, as in the file class */
	int32_t numa_node;   /* -1: not known */
	struct mr_pci_link link;
	struct mr_pci_link link_max;
	const char *name; /* shown behind the address: "mlx5_0 eth2", "H200"; may be NULL */
	/*
	 * Classified and drawn, but neither recommended nor configured: carries the machine's
	 * own traffic, is down, belongs to another.
	 */
	bool reserved;
	bool stand_in; /* placed as if it were a GPU */
};

struct mr_topology_cpu {
	uint32_t cpu;      /* number */
	int32_t numa_node; /* -1: not known */
	uint32_t sibling; /* lowest number of the CPUs on the same physical core; itself if alone */
	bool usable;      /* online and in this process's cpuset */
	bool isolated;    /* the scheduler keeps off */
};

struct mr_topology_facts {
	const struct mr_topology_function *functions; /* in any order, bridges among them */
	uint32_t functions_count;
	const struct mr_topology_cpu *cpus; /* in any order */
	uint32_t cpus_count;
};

struct mr_topology_pair {
	uint32_t gpu; /* indices into functions */
	uint32_t nic;
	enum mr_topology_near near;
	bool uncertain;    /* a NUMA node or a place was missing: it may be nearer than SYS */
	uint32_t switches; /* between them; 0 where no bridge is in common */
	bool narrowest_known;
	uint32_t narrowest;             /* function at the lower end of the narrowest link */
	struct mr_pci_link narrow_link; /* as it was judged */
	uint32_t links_unknown;
};

/* For a NIC of Mellanox/NVIDIA (15b3), the only ones that reach GPU memory, not reserved. */
struct mr_topology_advice {
	uint32_t nic;
	bool has_pair;
	/* Index into pairs: the nearest GPU, then the widest way, then the least given. */
	uint32_t pair;
	/*
	 * Where its hugepages and cores belong: its own node, or where that is not known the
	 * GPU's under the same root. -1: not known.
	 */
	int32_t numa_node;
	/*
	 * CPUs for its lanes, by their number: on that node, one of each physical core, only
	 * isolated ones where there are any, none that another NIC was given, and CPU 0's
	 * core only where there is no other. NICs of one node share its cores evenly. May be
	 * none.
	 */
	uint32_t cores[MR_TOPOLOGY_CORES_MAX];
	uint32_t cores_count;
	bool cores_isolated;  /* all of them */
	bool cores_elsewhere; /* the node has none that is usable: these are of another one */
};

struct mr_topology {
	const struct mr_topology_facts *facts;
	struct mr_topology_pair *pairs; /* every GPU with every NIC, by their addresses */
	uint32_t pairs_count;
	struct mr_topology_advice *advice; /* by the NICs' addresses */
	uint32_t advice_count;
};

/* mr_topology_build judges facts. ret_topology is fini'd by the caller if 0 is returned. */
MR_MUST_USE int mr_topology_build(const struct mr_topology_facts *facts,
	struct mr_topology *ret_topology, struct mr_err *err);
void mr_topology_fini(struct mr_topology *topology);

enum mr_topology_kind mr_topology_kind_of(const struct mr_topology_function *function);

/* "PIX", "PXB", "PHB", "NODE", "SYS". */
const char *mr_topology_near_name(enum mr_topology_near near);

/*
 * mr_topology_chain gives the indices of the bridges above function, from the root
 * down, as far as they are among facts; a pair's way is checked along them (access
 * control, payload sizes). Returns their number, at most MR_TOPOLOGY_DEPTH_MAX.
 */
uint32_t mr_topology_chain(const struct mr_topology_facts *facts, uint32_t function,
	uint32_t ret_chain[MR_TOPOLOGY_DEPTH_MAX]);

/*
 * mr_topology_text draws the branches that end in a GPU or a NIC, with each link and
 * the narrowest of a best pair marked, then the pairs, then the advice. Allocated; NULL
 * where memory is out. Bytes of names that are not printable ASCII are shown as '?'.
 */
char *mr_topology_text(const struct mr_topology *topology);

/*
 * mr_topology_config writes a configuration with one lane for each NIC that has a GPU
 * and a core: a whole file (devices, ports, lanes) that `millrace check` takes, with
 * comments that say what was chosen why, and at most 8 devices and 32 ports. Allocated;
 * NULL where memory is out. Where there is nothing to configure it is one comment.
 */
char *mr_topology_config(const struct mr_topology *topology);

#endif
