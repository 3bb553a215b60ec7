/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_facts_topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_UNKNOWN 0xffffu

static void fill_function(const struct mr_facts_pci *p, struct mr_topology_function *out)
{
	if (!mr_pci_addr_parse(p->bdf, &out->addr))
		memset(&out->addr, 0, sizeof(out->addr));
	out->path = p->path[0] != '\0' ? p->path : NULL;
	out->vendor = p->vendor.state == MR_FACT_KNOWN ? (uint16_t)p->vendor.v : ID_UNKNOWN;
	out->device = p->device.state == MR_FACT_KNOWN ? (uint16_t)p->device.v : ID_UNKNOWN;
	out->class_code = p->class.state == MR_FACT_KNOWN ? (uint32_t)p->class.v & 0xffffff : 0;
	out->numa_node = -1;
	if (p->node.state == MR_FACT_KNOWN && p->node.v >= 0 && p->node.v <= INT16_MAX)
		out->numa_node = (int32_t)p->node.v;
	out->link = p->link;
	out->link_max = p->link_max;
}

static void label_nic(const struct mr_facts_nic *n, const struct mr_facts_pci *p,
	struct mr_topology_function *out, char label[MR_FACTS_LABEL_MAX])
{
	snprintf(label, MR_FACTS_LABEL_MAX, "%s%s%s",
		n->verbs.state == MR_FACT_KNOWN ? n->verbs.v : "",
		n->verbs.state == MR_FACT_KNOWN && n->netdev.state == MR_FACT_KNOWN ? " " : "",
		n->netdev.state == MR_FACT_KNOWN ? n->netdev.v : "");
	out->name = label[0] != '\0' ? label : NULL;
	/* One that no lane could use is drawn and not recommended. */
	out->reserved = p->driver.state == MR_FACT_KNOWN && strcmp(p->driver.v, "mlx5_core") != 0;
	out->reserved |=
		n->port_state.state == MR_FACT_KNOWN && strcmp(n->port_state.v, "ACTIVE") != 0;
}

static void fill_cpus(const struct mr_host_facts *f, struct mr_facts_topology *t)
{
	for (uint32_t i = 0; i < f->host.cpus && i < MR_CPUS_MAX; i++) {
		struct mr_topology_cpu *c = &t->cpus[t->facts.cpus_count];

		if (!f->host.cpu_online[i])
			continue;
		c->cpu = i;
		c->numa_node = f->cpu[i].node;
		c->sibling = f->cpu[i].core < 0 ? i : (uint32_t)f->cpu[i].core;
		c->isolated = f->cpu[i].isolated;
		c->usable = f->host.cpu_allowed[i] &&
			(f->process.cpuset_state != MR_FACT_KNOWN || f->process.cpuset[i]);
		t->facts.cpus_count++;
	}
}

struct mr_facts_topology *mr_facts_topology_new(const struct mr_host_facts *f, struct mr_err *err)
{
	struct mr_facts_topology *t = calloc(1, sizeof(*t));

	if (t == NULL) {
		mr_err_set(err, -ENOMEM, "out of memory while the topology is built");
		return NULL;
	}
	for (uint32_t i = 0; i < f->pci_count; i++)
		fill_function(&f->pci[i], &t->functions[i]);
	for (uint32_t i = 0; i < f->nics_count; i++) {
		uint32_t p = f->nics[i].pci;

		label_nic(&f->nics[i], &f->pci[p], &t->functions[p], t->labels[p]);
	}
	for (uint32_t i = 0; i < f->gpus_count; i++) {
		const struct mr_facts_pci *p = &f->pci[f->gpus[i].pci];

		t->functions[f->gpus[i].pci].stand_in = f->gpus[i].stand_in;
		t->functions[f->gpus[i].pci].reserved = f->gpus[i].stand_in ||
			(p->driver.state == MR_FACT_KNOWN && strcmp(p->driver.v, "nvidia") != 0);
	}
	fill_cpus(f, t);
	t->facts.functions = t->functions;
	t->facts.functions_count = f->pci_count;
	t->facts.cpus = t->cpus;
	if (mr_topology_build(&t->facts, &t->topology, err) != 0) {
		free(t);
		return NULL;
	}
	return t;
}

void mr_facts_topology_free(struct mr_facts_topology *t)
{
	if (t != NULL)
		mr_topology_fini(&t->topology);
	free(t);
}

const struct mr_topology_pair *mr_facts_topology_pair(const struct mr_facts_topology *t,
	const struct mr_host_facts *f, uint32_t gpu, uint32_t nic)
{
	for (uint32_t i = 0; i < t->topology.pairs_count; i++) {
		const struct mr_topology_pair *p = &t->topology.pairs[i];

		if (p->gpu == f->gpus[gpu].pci && p->nic == f->nics[nic].pci)
			return p;
	}
	return NULL;
}
