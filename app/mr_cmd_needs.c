/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd_doctor.h"

#include <stdio.h>
#include <string.h>

#define RING_SLOT_BYTES 2048u /* in and out descriptors of a slot, generously */

/* "device=0000:3b:00.0,option": the address. */
static void gpu_address(const struct mr_plan_device *d, char ret_bdf[MR_BDF_MAX])
{
	const char *s = d->args + strlen("device=");
	size_t n = strcspn(s, ",");

	if (n >= MR_BDF_MAX)
		n = MR_BDF_MAX - 1;
	memcpy(ret_bdf, s, n);
	ret_bdf[n] = '\0';
}

static uint32_t add_gpu(
	struct mr_needs *n, const struct mr_host_facts *f, const struct mr_plan_device *d)
{
	char bdf[MR_BDF_MAX];
	struct mr_needs_gpu *g;

	gpu_address(d, bdf);
	for (uint32_t i = 0; i < n->gpus_count; i++)
		if (strcmp(n->gpus[i].bdf, bdf) == 0)
			return i;
	g = &n->gpus[n->gpus_count];
	memcpy(g->bdf, bdf, sizeof(g->bdf));
	g->gpu = mr_facts_find_gpu(f, bdf);
	g->direct_bytes = d->region[MR_PATH_DIRECT].used ? d->region[MR_PATH_DIRECT].bytes : 0;
	return n->gpus_count++;
}

static uint32_t add_nic(
	struct mr_needs *n, const struct mr_host_facts *f, const struct mr_plan_port *p)
{
	struct mr_needs_nic *k;

	for (uint32_t i = 0; i < n->nics_count; i++)
		if (strcmp(n->nics[i].bdf, p->device) == 0)
			return i;
	k = &n->nics[n->nics_count];
	snprintf(k->bdf, sizeof(k->bdf), "%.16s", p->device);
	k->nic = mr_facts_find_nic(f, k->bdf);
	k->mtu = p->mtu;
	snprintf(k->args, sizeof(k->args), "%s", p->args);
	return n->nics_count++;
}

/* Both are indices into the facts. */
static void add_pair(struct mr_needs *n, uint32_t gpu, uint32_t nic)
{
	for (uint32_t i = 0; i < n->pairs_count; i++)
		if (n->pairs[i].gpu == gpu && n->pairs[i].nic == nic)
			return;
	if (n->pairs_count == MR_ARRAY_LEN(n->pairs))
		return;
	n->pairs[n->pairs_count++] = (struct mr_needs_pair){.gpu = gpu, .nic = nic};
}

/* "device=sim,bar=0000:00:04.0": what the facts have at that address, if it is such memory. */
static uint32_t stand_in(const struct mr_host_facts *f, const struct mr_plan_device *d)
{
	const char *bar = strstr(d->args, ",bar=");

	for (uint32_t i = 0; bar != NULL && i < f->gpus_count; i++) {
		const char *bdf = f->pci[f->gpus[i].pci].bdf;
		size_t n = strlen(bdf);

		if (f->gpus[i].stand_in && strncmp(bar + 5, bdf, n) == 0 &&
			(bar[5 + n] == ',' || bar[5 + n] == '\0'))
			return i;
	}
	return MR_FACTS_NONE;
}

static void add_lane(struct mr_needs *n, const struct mr_host_facts *f, const struct mr_plan *plan,
	const struct mr_plan_lane *l)
{
	struct mr_needs_lane *out = &n->lanes[n->lanes_count++];
	const struct mr_plan_device *d = &plan->devices[l->device];
	uint32_t gpu = d->sim ? MR_FACTS_NONE : add_gpu(n, f, d);

	memcpy(out->name, l->name, sizeof(out->name));
	out->core = l->core;
	/* Where the paths differ, the two pools do what else one does. */
	out->buffers = l->buffers + l->tx_buffers;
	out->rx_ring = plan->ports[l->rx_port].rx_ring;
	out->batch = l->batch;
	out->gpu = d->sim ? stand_in(f, d) : n->gpus[gpu].gpu;
	out->nic = MR_FACTS_NONE;
	for (uint32_t i = 0; i <= l->tx_count; i++) {
		uint32_t port = i == 0 ? l->rx_port : l->tx[i - 1].port;
		enum mr_path path = i == 0 ? l->rx_path : l->tx_path;
		uint32_t nic;

		if (plan->ports[port].kind != MR_PORT_PCI)
			continue;
		nic = add_nic(n, f, &plan->ports[port]);
		if (i == 0)
			out->nic = n->nics[nic].nic;
		if (path != MR_PATH_DIRECT || (d->sim && out->gpu == MR_FACTS_NONE))
			continue;
		if (!d->sim)
			out->direct = n->gpus[gpu].direct = n->nics[nic].direct = true;
		add_pair(n, out->gpu, n->nics[nic].nic);
	}
}

void mr_doctor_needs(const struct mr_plan *plan, uint32_t first, uint32_t count,
	const struct mr_host_facts *f, struct mr_needs *ret_needs)
{
	struct mr_needs *n = ret_needs;

	memset(n, 0, sizeof(*n));
	n->configured = true;
	memcpy(n->name, plan->name, sizeof(n->name));
	n->hugepages = plan->hugepages;
	n->hugepages_bytes = plan->eal_memory_mib << 20;
	n->locked_bytes = plan->pinned_bytes;
	for (uint32_t i = first; i < first + count; i++) {
		n->locked_bytes += plan->lanes[i].copies_bytes +
			(uint64_t)plan->lanes[i].slots * plan->lanes[i].batch * RING_SLOT_BYTES /
				64;
		add_lane(n, f, plan, &plan->lanes[i]);
	}
}
