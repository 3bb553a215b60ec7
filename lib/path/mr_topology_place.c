/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_topology_priv.h"

#include <string.h>

#define CLASS_ETHERNET 0x0200u
#define CLASS_INFINIBAND 0x0207u
#define CLASS_VGA 0x0300u
#define CLASS_3D 0x0302u
#define VENDOR_NVIDIA 0x10deu

enum mr_topology_kind mr_topology_kind_of(const struct mr_topology_function *function)
{
	uint32_t class = function->class_code >> 8;

	if (function->stand_in)
		return MR_TOPOLOGY_GPU;
	if (function->vendor == VENDOR_NVIDIA && (class == CLASS_VGA || class == CLASS_3D))
		return MR_TOPOLOGY_GPU;
	if (class == CLASS_ETHERNET || class == CLASS_INFINIBAND)
		return MR_TOPOLOGY_NIC;
	return MR_TOPOLOGY_OTHER;
}

static uint32_t find(const struct mr_topology_facts *facts, const struct mr_pci_addr *addr)
{
	for (uint32_t i = 0; i < facts->functions_count; i++)
		if (mr_pci_addr_compare(&facts->functions[i].addr, addr) == 0)
			return i;
	return MR_TOPOLOGY_NONE;
}

/* "pci" and DOMAIN:BUS: a host bridge. */
static bool is_root(const char *part, size_t bytes)
{
	static const char hex[] = "0123456789abcdef";
	size_t domain;

	if (bytes < 10 || memcmp(part, "pci", 3) != 0)
		return false;
	domain = strspn(part + 3, hex);
	return domain >= 4 && domain <= 8 && part[3 + domain] == ':' && bytes == domain + 6 &&
		strspn(part + 4 + domain, hex) >= 2;
}

static bool is_address(const char *part, size_t bytes, struct mr_pci_addr *ret_addr)
{
	char text[MR_PCI_ADDR_BYTES];

	if (bytes >= sizeof(text))
		return false;
	memcpy(text, part, bytes);
	text[bytes] = '\0';
	return mr_pci_addr_parse(text, ret_addr);
}

/* Fills root and nodes; false where the path is none of a PCI function or too deep. */
static bool walk(const char *path, struct mr_topology_place *p)
{
	const char *first = NULL;
	uint32_t nodes = 0;
	size_t bytes;

	for (const char *part = path; *part != '\0'; part += bytes + (part[bytes] == '/')) {
		bytes = strcspn(part, "/");
		if (is_root(part, bytes)) {
			first = first != NULL ? first : part;
			p->root = first;
			p->root_bytes = (size_t)(part + bytes - first);
			nodes = 0;
		} else if (first != NULL && bytes != 0) {
			if (nodes > MR_TOPOLOGY_DEPTH_MAX ||
				!is_address(part, bytes, &p->nodes[nodes]))
				return false;
			nodes++;
		}
	}
	p->depth = nodes - 1;
	return nodes != 0;
}

void mr_topology_place_find(const struct mr_topology_facts *facts, uint32_t function,
	struct mr_topology_place *ret_place)
{
	const struct mr_topology_function *f = &facts->functions[function];
	struct mr_topology_place *p = ret_place;

	memset(p, 0, sizeof(*p));
	p->function = function;
	p->placed = f->path != NULL && walk(f->path, p) &&
		mr_pci_addr_compare(&p->nodes[p->depth], &f->addr) == 0;
	if (!p->placed) {
		p->root = "";
		p->root_bytes = 0;
		p->depth = 0;
		p->nodes[0] = f->addr;
	}
	for (uint32_t k = 0; k < p->depth; k++)
		p->index[k] = find(facts, &p->nodes[k]);
	p->index[p->depth] = function;
}

bool mr_topology_place_together(
	const struct mr_topology_place *a, const struct mr_topology_place *b)
{
	return a->placed && b->placed && a->root_bytes == b->root_bytes &&
		memcmp(a->root, b->root, a->root_bytes) == 0;
}

static uint32_t least_known(uint32_t a, uint32_t b)
{
	if (a == 0 || b == 0)
		return a | b;
	return a < b ? a : b;
}

bool mr_topology_place_link(const struct mr_topology_facts *facts,
	const struct mr_topology_place *place, uint32_t k, struct mr_pci_link *ret_now,
	struct mr_pci_link *ret_max)
{
	static const struct mr_topology_function nothing;
	const struct mr_topology_function *low = &nothing, *high = &nothing;

	*ret_now = *ret_max = (struct mr_pci_link){0, 0};
	if (k == 0 || (k % 2 == 0 && k != place->depth))
		return false;
	if (place->index[k] != MR_TOPOLOGY_NONE)
		low = &facts->functions[place->index[k]];
	if (place->index[k - 1] != MR_TOPOLOGY_NONE)
		high = &facts->functions[place->index[k - 1]];
	*ret_now = low->link.speed_mts != 0 && low->link.width != 0 ? low->link : high->link;
	ret_max->speed_mts = least_known(low->link_max.speed_mts, high->link_max.speed_mts);
	ret_max->width = least_known(low->link_max.width, high->link_max.width);
	return true;
}

uint32_t mr_topology_chain(const struct mr_topology_facts *facts, uint32_t function,
	uint32_t ret_chain[MR_TOPOLOGY_DEPTH_MAX])
{
	struct mr_topology_place place;
	uint32_t count = 0;

	mr_topology_place_find(facts, function, &place);
	for (uint32_t k = 0; k < place.depth; k++)
		if (place.index[k] != MR_TOPOLOGY_NONE)
			ret_chain[count++] = place.index[k];
	return count;
}
