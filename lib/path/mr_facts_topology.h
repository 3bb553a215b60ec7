/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_facts_topology - the facts as mr_topology takes them.
 *
 * Thread   any.
 * Owner    from build to fini it points into the facts.
 */
#ifndef MR_FACTS_TOPOLOGY_H
#define MR_FACTS_TOPOLOGY_H

#include "mr_facts.h"
#include "mr_topology.h"

#define MR_FACTS_LABEL_MAX 160

struct mr_facts_topology {
	struct mr_topology_function functions[MR_FACTS_PCI_MAX];
	char labels[MR_FACTS_PCI_MAX][MR_FACTS_LABEL_MAX];
	struct mr_topology_cpu cpus[MR_CPUS_MAX];
	struct mr_topology_facts facts;
	struct mr_topology topology;
};

/* mr_facts_topology_new gives a new one, NULL where memory is out. */
struct mr_facts_topology *mr_facts_topology_new(const struct mr_host_facts *f, struct mr_err *err);
void mr_facts_topology_free(struct mr_facts_topology *t);

/* The pair of a GPU and a NIC of the facts, by their indices there; NULL: unknown. */
const struct mr_topology_pair *mr_facts_topology_pair(const struct mr_facts_topology *t,
	const struct mr_host_facts *f, uint32_t gpu, uint32_t nic);

#endif
