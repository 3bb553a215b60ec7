/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_plan_priv.h"

#include "mr_ring.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CACHE_MAX 512u /* RTE_MEMPOOL_CACHE_MAX_SIZE */

_Static_assert(MR_HEADROOM + 9600 + 22 + MR_UNIT <= UINT16_MAX, "a buffer's size is 16 bits");

/*
 * What every driver of DPDK expects to find (RTE_MBUF_DEFAULT_DATAROOM): some fill a buffer
 * only up to a whole KiB or a power of two, and would split longer frames.
 */
#define PCI_ROOM_MIN 2048u

static uint32_t frame_room(const struct mr_plan_port *p)
{
	return p->kind == MR_PORT_PCI && p->frame_max < PCI_ROOM_MIN ? PCI_ROOM_MIN : p->frame_max;
}

static uint32_t cache_size(uint32_t batch)
{
	uint32_t cache = MR_ALIGN_UP(2 * batch, 32u);

	return cache < CACHE_MAX ? cache : CACHE_MAX;
}

/* The sum of a lane's places, in numbers and in words; below 2^32 by the schema's bounds. */
struct sum {
	uint64_t total;
	char *text; /* of MR_TEXT_MAX */
	size_t used;
};

static MR_PRINTF(3, 4) void add(struct sum *s, uint64_t buffers, const char *fmt, ...)
{
	va_list args;

	s->total += buffers;
	if (s->used >= MR_TEXT_MAX)
		return;
	va_start(args, fmt);
	s->used += (size_t)vsnprintf(s->text + s->used, MR_TEXT_MAX - s->used, fmt, args);
	va_end(args);
}

/* What a queue of a port that is sent to may hold. */
static uint32_t tx_slots(const struct mr_plan_port *p)
{
	return mr_plan_is_net_ring(p) && p->tx_ring < MR_NET_RING_SLOTS ? MR_NET_RING_SLOTS
									: p->tx_ring;
}

/* In front of the ports that a lane sends to. */
static uint64_t rests_at_ports(const struct mr_plan *p, const struct mr_plan_lane *l)
{
	uint64_t n = 0;

	for (uint32_t t = 0; t < l->tx_count; t++)
		n += tx_slots(&p->ports[l->tx[t].port]) + l->tx[t].backlog;
	return n;
}

/* Of what a lane receives: in slots, with shed in hand, and as far as it leaves, at ports. */
static uint64_t rests_in(const struct mr_plan *p, const struct mr_plan_lane *l)
{
	uint64_t n = (uint64_t)l->slots * l->batch;

	if (l->overload == MR_OVERLOAD_SHED)
		n += MR_SHED_BURST;
	return mr_plan_lane_moves(l) ? n : n + rests_at_ports(p, l);
}

/*
 * A net_ring hands buffers on to the lane that receives from it, and that one to the
 * next. A thread that frees them has a cache, which is flushed beyond one and a half
 * times its size (rte_mempool.h: flushthresh).
 */
static void add_travels(const struct mr_plan *p, struct sum *s, uint32_t cache, uint32_t from,
	bool seen[MR_LANES_MAX])
{
	const struct mr_plan_lane *l = &p->lanes[from];

	seen[from] = true;
	for (uint32_t t = 0; t < l->tx_count; t++) {
		if (!mr_plan_is_net_ring(&p->ports[l->tx[t].port]))
			continue;
		for (uint32_t i = 0; i < p->lanes_count; i++) {
			const struct mr_plan_lane *r = &p->lanes[i];
			uint64_t n = rests_in(p, r) + cache * 3 / 2;

			if (seen[i] || r->rx_port != l->tx[t].port || r->rx_queue != l->tx[t].queue)
				continue;
			add(s, n, " + lane %s %llu", r->name, (unsigned long long)n);
			if (!mr_plan_lane_moves(r))
				add_travels(p, s, cache, i, seen);
		}
	}
}

static void name_ports(const struct mr_plan *p, const struct mr_plan_lane *l, struct sum *s)
{
	for (uint32_t t = 0; t < l->tx_count && t < 4; t++) {
		const struct mr_plan_port *to = &p->ports[l->tx[t].port];

		add(s, 0, " + %s %u + backlog %u",
			tx_slots(to) != to->tx_ring ? "net_ring" : "tx_ring", tx_slots(to),
			l->tx[t].backlog);
	}
	if (l->tx_count > 4)
		add(s, 0, " + the same of %u more", l->tx_count - 4);
}

/* The pool that frames leave from, where it is another: they have a buffer of it in slots. */
static uint32_t add_up_tx(struct mr_plan *p, uint32_t lane)
{
	struct mr_plan_lane *l = &p->lanes[lane];
	bool seen[MR_LANES_MAX] = {false};
	struct sum s = {.text = l->tx_sum};

	add(&s, (uint64_t)l->slots * l->batch, "slots %u x batch %u", l->slots, l->batch);
	add(&s, rests_at_ports(p, l), "%s", "");
	name_ports(p, l, &s);
	add_travels(p, &s, l->cache, lane, seen);
	add(&s, 0, " = %llu", (unsigned long long)s.total);
	return (uint32_t)s.total;
}

static uint32_t add_up(struct mr_plan *p, uint32_t lane)
{
	struct mr_plan_lane *l = &p->lanes[lane];
	uint32_t rx_ring = p->ports[l->rx_port].rx_ring;
	bool seen[MR_LANES_MAX] = {false};
	struct sum s = {.text = l->sum};

	add(&s, rx_ring, "rx_ring %u", rx_ring);
	add(&s, rests_in(p, l), " + slots %u x batch %u", l->slots, l->batch);
	if (!mr_plan_lane_moves(l))
		name_ports(p, l, &s);
	if (l->overload == MR_OVERLOAD_SHED)
		add(&s, 0, " + shed burst %u", MR_SHED_BURST);
	add(&s, l->cache, " + control cache %u", l->cache);
	if (l->reserve > 0)
		add(&s, l->reserve, " + tick reserve %u", l->reserve);
	if (!mr_plan_lane_moves(l))
		add_travels(p, &s, l->cache, lane, seen);
	add(&s, 0, " = %llu", (unsigned long long)s.total);
	return (uint32_t)s.total;
}

static bool all_in_place(const struct mr_plan_lane *l)
{
	bool all = true;

	for (uint32_t i = 0; i < l->stages_count; i++)
		all &= l->stages[i].desc != NULL && l->stages[i].desc->in_place;
	return all;
}

static void plan_element(struct mr_plan *p, struct mr_plan_lane *l)
{
	const struct mr_plan_port *port = &p->ports[l->rx_port];

	l->element_bytes = MR_ALIGN_UP(
		MR_HEADROOM + (port->split_bytes != 0 ? port->split_bytes : frame_room(port)),
		MR_UNIT);
	l->room = l->element_bytes;
}

/* A net_ring's frames lie in the buffers of who sent them; true: some lane's room shrank. */
static bool hand_on_room(struct mr_plan *p, const struct mr_plan_lane *l)
{
	uint32_t room = mr_plan_lane_moves(l) ? l->element_bytes : l->room;
	bool changed = false;

	for (uint32_t t = 0; t < l->tx_count; t++)
		for (uint32_t i = 0; i < p->lanes_count; i++) {
			struct mr_plan_lane *r = &p->lanes[i];

			if (!mr_plan_is_net_ring(&p->ports[l->tx[t].port]) || r->room <= room ||
				r->rx_port != l->tx[t].port || r->rx_queue != l->tx[t].queue)
				continue;
			r->room = room;
			changed = true;
		}
	return changed;
}

static void plan_rooms(struct mr_plan *p)
{
	bool changed = true;

	for (uint32_t i = 0; i < p->lanes_count; i++)
		plan_element(p, &p->lanes[i]);
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < p->lanes_count; i++)
			changed |= hand_on_room(p, &p->lanes[i]);
	}
}

static void plan_pool(struct mr_plan_work *w, uint32_t lane)
{
	const struct mr_config_lane *c = &w->cfg->lanes[lane];
	struct mr_plan_lane *l = &w->plan->lanes[lane];
	const struct mr_plan_port *port = &w->plan->ports[l->rx_port];
	char key[64];
	char hint[96];

	l->cache = cache_size(l->batch);
	l->reserve = l->tick_us > 0 ? l->batch : 0;
	l->buffers_min = add_up(w->plan, lane);
	if (mr_plan_lane_moves(l)) {
		l->tx_buffers = add_up_tx(w->plan, lane);
		l->tx_pool_bytes = (uint64_t)l->tx_buffers * l->element_bytes;
	}
	l->buffers = c->buffers != 0 ? c->buffers : l->buffers_min;
	l->pool_bytes = (uint64_t)l->buffers * l->element_bytes;
	/* The NIC fills a rest from its buffer's start. */
	if (port->split_bytes != 0)
		l->rest_element_bytes = MR_ALIGN_UP(frame_room(port), MR_UNIT);
	l->rest_pool_bytes = (uint64_t)l->buffers * l->rest_element_bytes;
	if (mr_plan_lane_copies(l)) {
		l->copies_bytes = (uint64_t)l->slots * l->batch * l->room;
		l->copies_packed = all_in_place(l);
	}
	snprintf(key, sizeof(key), "lanes[%u].buffers", lane);
	snprintf(hint, sizeof(hint), "give %u or more, or leave it out", l->buffers_min);
	if (l->buffers < l->buffers_min)
		mr_plan_refuse(w, key, hint, "%u buffers are fewer than can rest in the lane: %s",
			l->buffers, l->sum);
}

/* The smallest region for need bytes of pools, in the largest unit that keeps it short. */
static void print_region(char *text, size_t size, uint64_t need)
{
	uint64_t bytes = MR_ALIGN_UP(need, MR_REGION_PAGE) + MR_REGION_PAGE;

	snprintf(text, size, "set region: %lluMiB",
		(unsigned long long)(MR_ALIGN_UP(bytes, 1ull << 20) >> 20));
}

static void plan_region(struct mr_plan_work *w, uint32_t device, enum mr_path path)
{
	struct mr_plan_region *r = &w->plan->devices[device].region[path];
	uint64_t bytes = w->cfg->devices[device].region_bytes;
	char key[64];
	char hint[64];

	for (uint32_t i = 0; i < w->plan->lanes_count; i++) {
		struct mr_plan_lane *l = &w->plan->lanes[i];

		if (l->device != device)
			continue;
		if (l->rx_path == path) {
			l->pool_offset = r->need_bytes;
			r->need_bytes += l->pool_bytes;
			l->rest_pool_offset = r->need_bytes;
			r->need_bytes += l->rest_pool_bytes;
			r->used = true;
		}
		if (l->tx_buffers != 0 && l->tx_path == path) {
			l->tx_pool_offset = r->need_bytes;
			r->need_bytes += l->tx_pool_bytes;
			r->used = true;
		}
	}
	if (!r->used)
		return;
	r->bytes = bytes;
	if (path == MR_PATH_DIRECT)
		w->plan->direct_bytes += bytes;
	else
		w->plan->pinned_bytes += bytes;
	snprintf(key, sizeof(key), "devices[%u].region", device);
	print_region(hint, sizeof(hint), r->need_bytes);
	if (MR_ALIGN_UP(r->need_bytes, MR_REGION_PAGE) + MR_REGION_PAGE > bytes)
		mr_plan_refuse(w, key, hint,
			"the %s pools of its lanes take %llu bytes and a page of padding %u, but "
			"the "
			"region has %llu",
			mr_path_name(path), (unsigned long long)r->need_bytes, MR_REGION_PAGE,
			(unsigned long long)bytes);
}

/* What the plan takes of ordinary memory: pinned and staged, and all of a software device's. */
static void check_memory(struct mr_plan_work *w)
{
	uint64_t bytes = w->plan->pinned_bytes;

	for (uint32_t i = 0; i < w->plan->devices_count; i++)
		if (w->plan->devices[i].sim)
			bytes += w->plan->devices[i].region[MR_PATH_DIRECT].bytes;
	for (uint32_t i = 0; i < w->plan->lanes_count; i++)
		bytes += w->plan->lanes[i].copies_bytes *
			(w->plan->devices[w->plan->lanes[i].device].sim ? 2 : 1);
	if (w->host->known && w->host->memory_bytes > 0 && bytes > w->host->memory_bytes)
		mr_plan_warn(w,
			"packet regions take %llu MiB of memory, but only %llu are available",
			(unsigned long long)bytes >> 20,
			(unsigned long long)w->host->memory_bytes >> 20);
}

void mr_plan_pools(struct mr_plan_work *w)
{
	for (uint32_t i = 0; i < w->cfg->devices_count; i++) {
		char key[64];

		snprintf(key, sizeof(key), "devices[%u].region", i);
		if (w->cfg->devices[i].region_bytes % MR_REGION_PAGE != 0)
			mr_plan_refuse(w, key, "use whole MiB",
				"a region is registered in pages of 64KiB and must be a multiple");
	}
	/* Sums over things that were refused would only mislead. */
	if (w->ps->count > 0)
		return;
	plan_rooms(w->plan);
	for (uint32_t i = 0; i < w->plan->lanes_count; i++)
		plan_pool(w, i);
	if (w->ps->count > 0)
		return;
	for (uint32_t i = 0; i < w->plan->devices_count; i++)
		for (uint32_t k = 0; k < MR_PATH_COUNT; k++)
			plan_region(w, i, (enum mr_path)k);
	check_memory(w);
}
