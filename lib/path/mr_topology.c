/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_topology_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VENDOR_MELLANOX 0x15b3u

/* What is needed while building and no longer. */
struct work {
	const struct mr_topology_facts *facts;
	struct mr_topology_place *gpus; /* by address */
	struct mr_topology_place *nics;
	uint32_t gpus_count;
	uint32_t nics_count;
	uint32_t *given;              /* NICs that have the GPU */
	struct mr_topology_cpu *cpus; /* by number, one of each usable physical core */
	bool *taken;
	uint32_t cpus_count;
};

const char *mr_topology_near_name(enum mr_topology_near near)
{
	static const char *const names[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};

	return (unsigned int)near < MR_ARRAY_LEN(names) ? names[near] : "SYS";
}

static const struct mr_topology_function *function_of(
	const struct work *w, const struct mr_topology_place *p)
{
	return &w->facts->functions[p->function];
}

/* Takes the link above node k into account, if it has one. */
static void judge_link(const struct work *w, const struct mr_topology_place *p, uint32_t k,
	struct mr_topology_pair *pair)
{
	struct mr_pci_link now, max;
	uint32_t function = p->index[k];

	if (!mr_topology_place_link(w->facts, p, k, &now, &max))
		return;
	if (k == p->depth && mr_topology_kind_of(function_of(w, p)) == MR_TOPOLOGY_GPU &&
		max.speed_mts > now.speed_mts)
		now.speed_mts = max.speed_mts;
	if (mr_pci_link_mbps(&now) == 0 || function == MR_TOPOLOGY_NONE) {
		pair->links_unknown++;
		return;
	}
	if (pair->narrowest_known && mr_pci_link_mbps(&pair->narrow_link) <= mr_pci_link_mbps(&now))
		return;
	pair->narrowest_known = true;
	pair->narrowest = function;
	pair->narrow_link = now;
}

static enum mr_topology_near judge_apart(
	const struct work *w, const struct mr_topology_place *g, const struct mr_topology_place *n)
{
	int32_t a = function_of(w, g)->numa_node;
	int32_t b = function_of(w, n)->numa_node;

	return a >= 0 && a == b && g->placed && n->placed ? MR_TOPOLOGY_NODE : MR_TOPOLOGY_SYS;
}

static void judge_pair(const struct work *w, const struct mr_topology_place *g,
	const struct mr_topology_place *n, struct mr_topology_pair *pair)
{
	uint32_t common = 0, below_g, below_n;

	*pair = (struct mr_topology_pair){.gpu = g->function, .nic = n->function};
	if (mr_topology_place_together(g, n)) {
		while (common < g->depth && common < n->depth &&
			mr_pci_addr_compare(&g->nodes[common], &n->nodes[common]) == 0)
			common++;
		below_g = g->depth - common;
		below_n = n->depth - common;
		/* A single port below the shared one is the other half of that one's switch. */
		if (common != 0)
			pair->switches = below_g / 2 + below_n / 2 + ((below_g | below_n) & 1);
		pair->near = common == 0      ? MR_TOPOLOGY_PHB
			: pair->switches <= 1 ? MR_TOPOLOGY_PIX
					      : MR_TOPOLOGY_PXB;
	} else {
		pair->near = judge_apart(w, g, n);
		pair->uncertain = !g->placed || !n->placed || function_of(w, g)->numa_node < 0 ||
			function_of(w, n)->numa_node < 0;
	}
	for (uint32_t k = common; k <= g->depth && g->placed; k++)
		judge_link(w, g, k, pair);
	for (uint32_t k = common; k <= n->depth && n->placed; k++)
		judge_link(w, n, k, pair);
}

static int by_address(const void *a, const void *b)
{
	const struct mr_topology_place *x = a, *y = b;

	return mr_pci_addr_compare(&x->nodes[x->depth], &y->nodes[y->depth]);
}

static int by_number(const void *a, const void *b)
{
	const struct mr_topology_cpu *x = a, *y = b;

	return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

static void sort(void *first, uint32_t count, size_t size, int (*order)(const void *, const void *))
{
	if (count > 1)
		qsort(first, count, size, order);
}

static void collect(struct work *w)
{
	const struct mr_topology_facts *f = w->facts;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->functions_count; i++) {
		enum mr_topology_kind kind = mr_topology_kind_of(&f->functions[i]);

		if (kind == MR_TOPOLOGY_GPU)
			mr_topology_place_find(f, i, &w->gpus[w->gpus_count++]);
		else if (kind == MR_TOPOLOGY_NIC)
			mr_topology_place_find(f, i, &w->nics[w->nics_count++]);
	}
	sort(w->gpus, w->gpus_count, sizeof(*w->gpus), by_address);
	sort(w->nics, w->nics_count, sizeof(*w->nics), by_address);
	for (uint32_t i = 0; i < f->cpus_count; i++)
		if (f->cpus[i].usable)
			w->cpus[w->cpus_count++] = f->cpus[i];
	sort(w->cpus, w->cpus_count, sizeof(*w->cpus), by_number);
	for (uint32_t i = 0; i < w->cpus_count; i++) {
		bool known = false;

		for (uint32_t k = 0; k < kept && !known; k++)
			known = w->cpus[k].sibling == w->cpus[i].sibling;
		if (!known)
			w->cpus[kept++] = w->cpus[i];
	}
	w->cpus_count = kept;
}

/* Is a better than b for a NIC? Between equals the one that fewer have, then the first. */
static bool is_better(const struct mr_topology_pair *a, uint32_t given_a,
	const struct mr_topology_pair *b, uint32_t given_b)
{
	uint64_t way_a = mr_pci_link_mbps(&a->narrow_link);
	uint64_t way_b = mr_pci_link_mbps(&b->narrow_link);

	if (a->near != b->near)
		return a->near < b->near;
	if (way_a != way_b)
		return way_a > way_b;
	return given_a < given_b;
}

static void advise_gpu(
	struct work *w, const struct mr_topology *t, uint32_t n, struct mr_topology_advice *a)
{
	uint32_t best = 0;

	for (uint32_t g = 0; g < w->gpus_count; g++) {
		uint32_t pair = g * w->nics_count + n;

		if (function_of(w, &w->gpus[g])->reserved)
			continue;
		if (a->has_pair &&
			!is_better(
				&t->pairs[pair], w->given[g], &t->pairs[a->pair], w->given[best]))
			continue;
		a->has_pair = true;
		a->pair = pair;
		best = g;
	}
	if (!a->has_pair)
		return;
	w->given[best]++;
	if (a->numa_node < 0 && t->pairs[a->pair].near <= MR_TOPOLOGY_PHB)
		a->numa_node = function_of(w, &w->gpus[best])->numa_node;
}

/* How well does a core fit? 0: not at all. */
static uint32_t fit(const struct work *w, uint32_t i, int32_t node)
{
	const struct mr_topology_cpu *c = &w->cpus[i];

	if (w->taken[i])
		return 0;
	return 1 + (c->sibling != 0 && c->cpu != 0) + 2u * c->isolated +
		4u * (node < 0 || c->numa_node == node);
}

static void advise_cores(struct work *w, uint32_t nics, struct mr_topology_advice *a)
{
	uint32_t best = 0, alike = 0, share;

	for (uint32_t i = 0; i < w->cpus_count; i++) {
		uint32_t f = fit(w, i, a->numa_node);

		alike = f > best ? 1 : alike + (f == best && f != 0);
		best = f > best ? f : best;
	}
	share = alike / nics > 0 ? alike / nics : 1;
	for (uint32_t i = 0; i < w->cpus_count && best != 0; i++) {
		if (a->cores_count == share || a->cores_count == MR_TOPOLOGY_CORES_MAX)
			break;
		if (fit(w, i, a->numa_node) != best)
			continue;
		a->cores[a->cores_count++] = w->cpus[i].cpu;
		w->taken[i] = true;
	}
	a->cores_isolated = a->cores_count != 0 && ((best - 1) & 2) != 0;
	a->cores_elsewhere = a->cores_count != 0 && best < 5;
}

static void advise(struct work *w, struct mr_topology *t)
{
	struct mr_topology_advice *a = t->advice;
	uint32_t left;

	for (uint32_t n = 0; n < w->nics_count; n++) {
		const struct mr_topology_function *f = function_of(w, &w->nics[n]);

		if (f->vendor != VENDOR_MELLANOX || f->reserved)
			continue;
		*a = (struct mr_topology_advice){.nic = w->nics[n].function,
			.numa_node = f->numa_node < 0 ? -1 : f->numa_node};
		advise_gpu(w, t, n, a++);
		t->advice_count++;
	}
	for (uint32_t i = 0; i < t->advice_count; i++) {
		/* Those that are still to be served on the same node share what is left. */
		left = 0;
		for (uint32_t k = i; k < t->advice_count; k++)
			left += t->advice[k].numa_node == t->advice[i].numa_node;
		advise_cores(w, left, &t->advice[i]);
	}
}

static void drop(struct work *w)
{
	free(w->gpus);
	free(w->nics);
	free(w->given);
	free(w->cpus);
	free(w->taken);
}

/* An array of count elements, at least one so that NULL means out of memory. */
static void *array(uint64_t count, size_t size)
{
	return calloc(count != 0 ? count : 1, size);
}

int mr_topology_build(
	const struct mr_topology_facts *facts, struct mr_topology *ret_topology, struct mr_err *err)
{
	struct mr_topology *t = ret_topology;
	struct work w = {.facts = facts};
	uint32_t count[3] = {0};

	*t = (struct mr_topology){.facts = facts};
	for (uint32_t i = 0; i < facts->functions_count; i++)
		count[mr_topology_kind_of(&facts->functions[i])]++;
	w.gpus = array(count[MR_TOPOLOGY_GPU], sizeof(*w.gpus));
	w.nics = array(count[MR_TOPOLOGY_NIC], sizeof(*w.nics));
	w.given = array(count[MR_TOPOLOGY_GPU], sizeof(*w.given));
	w.cpus = array(facts->cpus_count, sizeof(*w.cpus));
	w.taken = array(facts->cpus_count, sizeof(*w.taken));
	t->pairs =
		array((uint64_t)count[MR_TOPOLOGY_GPU] * count[MR_TOPOLOGY_NIC], sizeof(*t->pairs));
	t->advice = array(count[MR_TOPOLOGY_NIC], sizeof(*t->advice));
	if (w.gpus == NULL || w.nics == NULL || w.given == NULL || w.cpus == NULL ||
		w.taken == NULL || t->pairs == NULL || t->advice == NULL) {
		drop(&w);
		mr_topology_fini(t);
		return mr_err_set(err, -ENOMEM,
			"out of memory for the pairs of %u GPUs and %u NICs",
			count[MR_TOPOLOGY_GPU], count[MR_TOPOLOGY_NIC]);
	}
	collect(&w);
	for (uint32_t g = 0; g < w.gpus_count; g++)
		for (uint32_t n = 0; n < w.nics_count; n++)
			judge_pair(&w, &w.gpus[g], &w.nics[n], &t->pairs[t->pairs_count++]);
	advise(&w, t);
	drop(&w);
	return 0;
}

void mr_topology_fini(struct mr_topology *topology)
{
	free(topology->pairs);
	free(topology->advice);
	*topology = (struct mr_topology){0};
}
