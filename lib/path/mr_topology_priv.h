/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_topology_priv - where a function sits, shared by judging and drawing.
 */
#ifndef MR_TOPOLOGY_PRIV_H
#define MR_TOPOLOGY_PRIV_H

#include "mr_topology.h"

#define MR_TOPOLOGY_NONE UINT32_MAX

/*
 * nodes[0] is the bridge below the root, nodes[depth] the function itself. Behind a root
 * port, those with an odd index have a link towards the root.
 */
struct mr_topology_place {
	uint32_t function; /* whose place it is */
	bool placed;
	const char *root; /* "pciDDDD:BB", the last one of the path with all before it */
	size_t root_bytes;
	uint32_t depth;
	struct mr_pci_addr nodes[MR_TOPOLOGY_DEPTH_MAX + 1];
	uint32_t index[MR_TOPOLOGY_DEPTH_MAX + 1]; /* into functions; NONE: not among them */
};

void mr_topology_place_find(const struct mr_topology_facts *facts, uint32_t function,
	struct mr_topology_place *ret_place);

/* Same root? */
bool mr_topology_place_together(
	const struct mr_topology_place *a, const struct mr_topology_place *b);

/*
 * The link above node k of a place, from what both of its ends say: now, and at most.
 * False where the node has none.
 */
bool mr_topology_place_link(const struct mr_topology_facts *facts,
	const struct mr_topology_place *place, uint32_t k, struct mr_pci_link *ret_now,
	struct mr_pci_link *ret_max);

#endif
