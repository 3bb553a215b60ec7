/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_topology_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a configuration holds (lib/config/mr_config.h, which this module does not see). */
#define CONFIG_DEVICES_MAX 8u
#define CONFIG_PORTS_MAX 32u
#define CONFIG_REGION_MIB 64u /* for one lane of default size */

struct draw {
	FILE *f;
	const struct mr_topology *t;
	struct mr_topology_place *places; /* of GPUs and NICs, in the order of the tree */
	uint32_t count;
};

static const char *address(
	const struct mr_topology *t, uint32_t function, char text[MR_PCI_ADDR_BYTES])
{
	mr_pci_addr_format(&t->facts->functions[function].addr, text);
	return text;
}

static void put_name(FILE *f, const char *before, const char *name, const char *after)
{
	if (name == NULL || name[0] == '\0')
		return;
	fprintf(f, "%s", before);
	for (; *name != '\0'; name++)
		fputc(*name >= ' ' && *name <= '~' ? *name : '?', f);
	fprintf(f, "%s", after);
}

static int by_place(const void *a, const void *b)
{
	const struct mr_topology_place *x = a, *y = b;
	size_t shorter = x->root_bytes < y->root_bytes ? x->root_bytes : y->root_bytes;
	int order;

	if (x->placed != y->placed)
		return x->placed ? -1 : 1;
	order = memcmp(x->root, y->root, shorter);
	if (order != 0 || x->root_bytes != y->root_bytes)
		return order != 0 ? order : x->root_bytes < y->root_bytes ? -1 : 1;
	for (uint32_t k = 0; k <= x->depth && k <= y->depth; k++) {
		order = mr_pci_addr_compare(&x->nodes[k], &y->nodes[k]);
		if (order != 0)
			return order;
	}
	return (x->depth > y->depth) - (x->depth < y->depth);
}

/* "  x8 16.0 GT/s of x16 32.0 GT/s", where the node has a link. */
static void put_link(const struct draw *d, const struct mr_topology_place *p, uint32_t k)
{
	struct mr_pci_link now, max;
	char text[MR_PCI_LINK_BYTES];

	if (!mr_topology_place_link(d->t->facts, p, k, &now, &max))
		return;
	mr_pci_link_format(&now, text);
	fprintf(d->f, "  %s", text);
	if (now.width >= max.width && now.speed_mts >= max.speed_mts)
		return;
	mr_pci_link_format(&max, text);
	fprintf(d->f, " of %s", text);
	if (k == p->depth && now.speed_mts < max.speed_mts &&
		mr_topology_kind_of(&d->t->facts->functions[p->function]) == MR_TOPOLOGY_GPU)
		fprintf(d->f, " (an idle GPU's link is slow)");
}

/* Marks the narrowest link of the ways that were chosen. */
static void put_marks(const struct draw *d, uint32_t function)
{
	const struct mr_topology *t = d->t;
	char gpu[MR_PCI_ADDR_BYTES], nic[MR_PCI_ADDR_BYTES];
	const char *before = "  <- narrowest of ";

	for (uint32_t i = 0; i < t->advice_count; i++) {
		const struct mr_topology_pair *pair = &t->pairs[t->advice[i].pair];

		if (!t->advice[i].has_pair || !pair->narrowest_known || pair->narrowest != function)
			continue;
		fprintf(d->f, "%s%s - %s", before, address(t, pair->gpu, gpu),
			address(t, pair->nic, nic));
		before = ", ";
	}
}

static void put_node(const struct draw *d, const struct mr_topology_place *p, uint32_t k)
{
	static const char *const kinds[] = {"bridge", "GPU", "NIC"};
	const struct mr_topology_function *f = NULL;
	char text[MR_PCI_ADDR_BYTES];

	mr_pci_addr_format(&p->nodes[k], text);
	fprintf(d->f, "%*s%s", (int)(2 * k + 2), "", text);
	if (p->index[k] != MR_TOPOLOGY_NONE)
		f = &d->t->facts->functions[p->index[k]];
	fprintf(d->f, "  %s", f != NULL ? kinds[mr_topology_kind_of(f)] : "bridge");
	if (f != NULL)
		put_name(d->f, " ", f->name, "");
	put_link(d, p, k);
	if (f != NULL) {
		put_marks(d, p->index[k]);
		if (f->reserved && k == p->depth)
			fprintf(d->f, "  (not usable as it is)");
	}
	fputc('\n', d->f);
}

static void put_root(const struct draw *d, const struct mr_topology_place *p)
{
	int32_t node = d->t->facts->functions[p->function].numa_node;

	if (!p->placed) {
		fprintf(d->f, "not in the tree\n");
		return;
	}
	fprintf(d->f, "%.*s", (int)p->root_bytes, p->root);
	if (node >= 0)
		fprintf(d->f, ", NUMA node %" PRId32 "\n", node);
	else
		fprintf(d->f, ", NUMA node not known\n");
}

static void put_tree(const struct draw *d)
{
	for (uint32_t i = 0; i < d->count; i++) {
		const struct mr_topology_place *p = &d->places[i];
		const struct mr_topology_place *last = i > 0 ? p - 1 : NULL;
		uint32_t k = 0;

		if (last == NULL ||
			(p->placed ? !mr_topology_place_together(last, p) : last->placed))
			put_root(d, p);
		else
			while (k < p->depth && k < last->depth &&
				mr_pci_addr_compare(&p->nodes[k], &last->nodes[k]) == 0)
				k++;
		for (; k <= p->depth; k++)
			put_node(d, p, k);
	}
}

static void put_pairs(const struct draw *d)
{
	const struct mr_topology *t = d->t;
	char gpu[MR_PCI_ADDR_BYTES], nic[MR_PCI_ADDR_BYTES], link[MR_PCI_LINK_BYTES];

	if (t->pairs_count != 0)
		fprintf(d->f, "\n%-16s  %-16s  %-5s %-8s %s\n", "GPU", "NIC", "way", "switches",
			"narrowest link");
	for (uint32_t i = 0; i < t->pairs_count; i++) {
		const struct mr_topology_pair *p = &t->pairs[i];

		fprintf(d->f, "%-16s  %-16s  %-4s%c %-8" PRIu32 " ", address(t, p->gpu, gpu),
			address(t, p->nic, nic), mr_topology_near_name(p->near),
			p->uncertain ? '?' : ' ', p->switches);
		if (p->narrowest_known) {
			mr_pci_link_format(&p->narrow_link, link);
			fprintf(d->f, "%s above %s, %" PRIu64 " Mbit/s", link,
				address(t, p->narrowest, nic), mr_pci_link_mbps(&p->narrow_link));
		} else {
			fprintf(d->f, "not known");
		}
		if (p->narrowest_known && p->links_unknown != 0)
			fprintf(d->f, " (%" PRIu32 " not known)", p->links_unknown);
		fputc('\n', d->f);
	}
}

/* "CPUs 2 4 6, isolated" */
static void put_cores(FILE *f, const struct mr_topology_advice *a)
{
	fprintf(f, "CPUs");
	for (uint32_t i = 0; i < a->cores_count; i++)
		fprintf(f, " %" PRIu32, a->cores[i]);
	if (a->cores_count == 0)
		fprintf(f, ": none is left");
	else
		fprintf(f, ", %s%s", a->cores_isolated ? "isolated" : "not isolated",
			a->cores_elsewhere ? ", of another NUMA node" : "");
}

static void put_advice(const struct draw *d)
{
	const struct mr_topology *t = d->t;
	char text[MR_PCI_ADDR_BYTES];

	if (t->advice_count != 0)
		fputc('\n', d->f);
	for (uint32_t i = 0; i < t->advice_count; i++) {
		const struct mr_topology_advice *a = &t->advice[i];

		fprintf(d->f, "NIC %s", address(t, a->nic, text));
		put_name(d->f, " (", t->facts->functions[a->nic].name, ")");
		if (a->has_pair)
			fprintf(d->f, ": GPU %s (%s%s)", address(t, t->pairs[a->pair].gpu, text),
				mr_topology_near_name(t->pairs[a->pair].near),
				t->pairs[a->pair].uncertain ? "?" : "");
		else
			fprintf(d->f, ": no GPU");
		if (a->numa_node >= 0)
			fprintf(d->f, ", NUMA node %" PRId32 ", ", a->numa_node);
		else
			fprintf(d->f, ", NUMA node not known, ");
		put_cores(d->f, a);
		fputc('\n', d->f);
	}
}

char *mr_topology_text(const struct mr_topology *topology)
{
	const struct mr_topology_facts *facts = topology->facts;
	struct draw d = {.t = topology};
	char *text = NULL;
	size_t bytes;

	d.places = calloc(facts->functions_count + (size_t)1, sizeof(*d.places));
	if (d.places != NULL)
		d.f = open_memstream(&text, &bytes);
	if (d.f == NULL) {
		free(d.places);
		return NULL;
	}
	for (uint32_t i = 0; i < facts->functions_count; i++)
		if (mr_topology_kind_of(&facts->functions[i]) != MR_TOPOLOGY_OTHER)
			mr_topology_place_find(facts, i, &d.places[d.count++]);
	if (d.count > 1)
		qsort(d.places, d.count, sizeof(*d.places), by_place);
	if (d.count == 0)
		fprintf(d.f, "no GPU and no NIC on PCI\n");
	put_tree(&d);
	put_pairs(&d);
	put_advice(&d);
	free(d.places);
	if (fclose(d.f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* The advice that becomes a lane, and the devices that those name. */
struct chosen {
	const struct mr_topology_advice *lanes[CONFIG_PORTS_MAX];
	uint32_t lane_device[CONFIG_PORTS_MAX];
	uint32_t lanes_count;
	uint32_t devices[CONFIG_DEVICES_MAX]; /* functions */
	uint32_t device_lanes[CONFIG_DEVICES_MAX];
	uint32_t devices_count;
};

static void choose(const struct mr_topology *t, struct chosen *c)
{
	for (uint32_t i = 0; i < t->advice_count && c->lanes_count < CONFIG_PORTS_MAX; i++) {
		const struct mr_topology_advice *a = &t->advice[i];
		uint32_t g = 0;

		if (!a->has_pair || a->cores_count == 0)
			continue;
		while (g < c->devices_count && c->devices[g] != t->pairs[a->pair].gpu)
			g++;
		if (g == CONFIG_DEVICES_MAX)
			continue;
		if (g == c->devices_count)
			c->devices[c->devices_count++] = t->pairs[a->pair].gpu;
		c->device_lanes[g]++;
		c->lane_device[c->lanes_count] = g;
		c->lanes[c->lanes_count++] = a;
	}
}

static void put_lane(FILE *f, const struct mr_topology *t, const struct chosen *c, uint32_t i)
{
	const struct mr_topology_advice *a = c->lanes[i];
	const struct mr_topology_pair *pair = &t->pairs[a->pair];
	bool near = pair->near <= MR_TOPOLOGY_PXB;

	fprintf(f, "  # %s%s to its GPU. ", mr_topology_near_name(pair->near),
		pair->uncertain ? " or nearer" : "");
	if (a->numa_node >= 0)
		fprintf(f, "Hugepages belong on NUMA node %" PRId32 ". ", a->numa_node);
	put_cores(f, a);
	fprintf(f, "\n  - name: l%" PRIu32 "\n", i);
	fprintf(f, "    rx: {port: p%" PRIu32 ", queue: 0}\n", i);
	fprintf(f, "    tx: [{port: p%" PRIu32 ", queue: 0}]\n", i);
	fprintf(f, "    core: %" PRIu32 "\n", a->cores[0]);
	fprintf(f, "    device: g%" PRIu32 "\n", c->lane_device[i]);
	fprintf(f, "    path: [%s]\n", near ? "direct" : "direct, pinned");
}

char *mr_topology_config(const struct mr_topology *topology)
{
	const struct mr_topology *t = topology;
	struct chosen c = {.lanes_count = 0};
	char address_text[MR_PCI_ADDR_BYTES];
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);

	if (f == NULL)
		return NULL;
	choose(t, &c);
	if (c.lanes_count == 0)
		fprintf(f, "# No NIC that reaches GPU memory has a GPU and a core here.\n");
	else
		fprintf(f, "devices:\n");
	for (uint32_t i = 0; i < c.devices_count; i++)
		fprintf(f, "  - {name: g%" PRIu32 ", device: \"%s\", region: %" PRIu32 "MiB}\n", i,
			address(t, c.devices[i], address_text),
			CONFIG_REGION_MIB * c.device_lanes[i]);
	if (c.lanes_count != 0)
		fprintf(f, "ports:\n");
	for (uint32_t i = 0; i < c.lanes_count; i++) {
		fprintf(f, "  - {name: p%" PRIu32 ", device: \"%s\"}", i,
			address(t, c.lanes[i]->nic, address_text));
		put_name(f, " # ", t->facts->functions[c.lanes[i]->nic].name, "");
		fputc('\n', f);
	}
	if (c.lanes_count != 0)
		fprintf(f, "lanes:\n");
	for (uint32_t i = 0; i < c.lanes_count; i++)
		put_lane(f, t, &c, i);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
