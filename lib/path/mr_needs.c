/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_needs.h"

#include <string.h>

/* What a small lane takes: headers for two thousand buffers, and registered rings. */
#define HUGEPAGES_BYTES (64ull << 20)
#define LOCKED_BYTES (64ull << 20)
#define DIRECT_BYTES (64ull << 20)
#define MTU 1500u
#define VENDOR_MELLANOX 0x15b3u

/* Only these reach a GPU's memory; one that does not say what it is may be one. */
static bool may_reach(const struct mr_facts_pci *p)
{
	return p->vendor.state != MR_FACT_KNOWN || p->vendor.v == VENDOR_MELLANOX;
}

static uint32_t first_gpu(const struct mr_host_facts *f)
{
	for (uint32_t g = 0; g < f->gpus_count; g++)
		if (!f->gpus[g].stand_in)
			return g;
	return MR_FACTS_NONE;
}

/* Lower is better: what is usable comes before what is near. */
static uint32_t cost(const struct mr_host_facts *f, const struct mr_facts_topology *t, uint32_t gpu,
	uint32_t nic)
{
	const struct mr_topology_pair *p = mr_facts_topology_pair(t, f, gpu, nic);
	uint32_t g = f->gpus[gpu].pci, n = f->nics[nic].pci;

	return (t->functions[n].reserved ? 100 : 0) + (t->functions[g].reserved ? 100 : 0) +
		(f->pci[n].physfn == MR_FACT_KNOWN ? 50 : 0) +
		(p == NULL ? 10 : (uint32_t)p->near + (p->uncertain ? 1 : 0));
}

static void choose(const struct mr_host_facts *f, const struct mr_facts_topology *t,
	uint32_t *ret_gpu, uint32_t *ret_nic)
{
	uint32_t best = UINT32_MAX;

	*ret_gpu = first_gpu(f);
	*ret_nic = MR_FACTS_NONE;
	for (uint32_t n = 0; n < f->nics_count; n++) {
		if (!may_reach(&f->pci[f->nics[n].pci]))
			continue;
		if (*ret_nic == MR_FACTS_NONE)
			*ret_nic = n;
		for (uint32_t g = 0; g < f->gpus_count; g++) {
			uint32_t c = cost(f, t, g, n);

			if (f->gpus[g].stand_in || c >= best)
				continue;
			best = c;
			*ret_gpu = g;
			*ret_nic = n;
		}
	}
}

void mr_needs_general(const struct mr_host_facts *f, const struct mr_facts_topology *t,
	struct mr_needs *ret_needs)
{
	struct mr_needs *n = ret_needs;
	uint32_t gpu, nic;

	memset(n, 0, sizeof(*n));
	n->hugepages_bytes = HUGEPAGES_BYTES;
	n->locked_bytes = LOCKED_BYTES;
	choose(f, t, &gpu, &nic);
	if (gpu != MR_FACTS_NONE) {
		n->gpus[0] = (struct mr_needs_gpu){
			.gpu = gpu, .direct = true, .direct_bytes = DIRECT_BYTES};
		memcpy(n->gpus[0].bdf, f->pci[f->gpus[gpu].pci].bdf, sizeof(n->gpus[0].bdf));
		n->gpus_count = 1;
	}
	if (nic != MR_FACTS_NONE) {
		n->nics[0] = (struct mr_needs_nic){.nic = nic, .direct = true, .mtu = MTU};
		memcpy(n->nics[0].bdf, f->pci[f->nics[nic].pci].bdf, sizeof(n->nics[0].bdf));
		n->nics_count = 1;
	}
	if (gpu != MR_FACTS_NONE && nic != MR_FACTS_NONE) {
		n->pairs[0] = (struct mr_needs_pair){.gpu = gpu, .nic = nic};
		n->pairs_count = 1;
	}
}

void mr_needs_probe(const struct mr_needs *n, const struct mr_probe *probe, struct mr_host_facts *f)
{
	for (uint32_t i = 0; i < n->gpus_count; i++)
		if (n->gpus[i].gpu != MR_FACTS_NONE)
			mr_probe_ask_gpu(probe, n->gpus[i].bdf, &f->gpus[n->gpus[i].gpu].probe);
	for (uint32_t i = 0; i < n->nics_count; i++)
		if (n->nics[i].nic != MR_FACTS_NONE)
			mr_probe_ask_nic(probe, n->nics[i].bdf, &f->nics[n->nics[i].nic].probe);
	for (uint32_t i = 0; i < n->pairs_count; i++) {
		uint32_t g = n->pairs[i].gpu, k = n->pairs[i].nic;

		if (g != MR_FACTS_NONE && k != MR_FACTS_NONE && !f->gpus[g].stand_in)
			mr_probe_ask_pair(probe, f->pci[f->gpus[g].pci].bdf,
				f->pci[f->nics[k].pci].bdf, &f->pairs[g][k]);
	}
}
