/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_plan_priv.h"

#include <stdio.h>
#include <string.h>

/*
 * A mempool cache holds up to one and a half times its size before it gives
 * back, and two threads of a lane's pool have one: the lane and the control
 * thread, which fills the receive rings (rte_mempool.h: cache_size, flushthresh).
 */
#define CACHE_MAX 512u /* RTE_MEMPOOL_CACHE_MAX_SIZE */
#define CACHE_THREADS 2u

_Static_assert(MR_HEADROOM + 9600 + 22 + MR_UNIT <= UINT16_MAX, "a buffer's size is 16 bits");

static uint32_t cache_size(uint32_t batch)
{
	uint32_t cache = MR_ALIGN_UP(2 * batch, 32u);

	return cache < CACHE_MAX ? cache : CACHE_MAX;
}

static void plan_pool(struct mr_plan_work *w, uint32_t lane)
{
	const struct mr_config_lane *c = &w->cfg->lanes[lane];
	struct mr_plan_lane *l = &w->plan->lanes[lane];
	const struct mr_plan_port *rx = &w->plan->ports[l->rx_port];
	uint32_t held;
	uint64_t min;
	size_t used;
	char key[64];
	char hint[96];

	l->element_bytes = MR_ALIGN_UP(MR_HEADROOM + rx->frame_max, MR_UNIT);
	l->room = l->element_bytes;
	l->cache = cache_size(l->batch);
	l->reserve = l->tick_us > 0 ? l->batch : 0;
	held = l->cache * 3 / 2;
	min = (uint64_t)rx->rx_ring + (uint64_t)l->slots * l->batch + l->batch;
	used = (size_t)snprintf(l->sum, sizeof(l->sum),
		"rx_ring %u + slots %u x batch %u + open batch %u", rx->rx_ring, l->slots, l->batch,
		l->batch);
	for (uint32_t t = 0; t < l->tx_count; t++) {
		uint32_t ring = w->plan->ports[l->tx[t].port].tx_ring;

		min += ring + l->tx[t].backlog;
		if (used < sizeof(l->sum) && t < 4)
			used += (size_t)snprintf(l->sum + used, sizeof(l->sum) - used,
				" + tx_ring %u + backlog %u", ring, l->tx[t].backlog);
		else if (used < sizeof(l->sum) && t == 4)
			used += (size_t)snprintf(l->sum + used, sizeof(l->sum) - used,
				" + the same of %u more", l->tx_count - t);
	}
	min += CACHE_THREADS * held + l->reserve;
	if (used < sizeof(l->sum))
		snprintf(l->sum + used, sizeof(l->sum) - used,
			" + caches %u x %u + tick reserve %u = %llu", CACHE_THREADS, held,
			l->reserve, (unsigned long long)min);
	l->buffers_min = (uint32_t)min; /* below 2^26 by the schema's bounds */
	l->buffers = c->buffers != 0 ? c->buffers : l->buffers_min;
	l->pool_bytes = (uint64_t)l->buffers * l->element_bytes;
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

		if (l->device != device || l->rx_path != path)
			continue;
		l->pool_offset = r->need_bytes;
		r->need_bytes += l->pool_bytes;
		r->used = true;
	}
	if (!r->used)
		return;
	r->bytes = bytes;
	if (path == MR_PATH_PINNED)
		w->plan->pinned_bytes += bytes;
	else
		w->plan->direct_bytes += bytes;
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

/* What the plan takes of ordinary memory: pinned regions, and all of a software device's. */
static void check_memory(struct mr_plan_work *w)
{
	uint64_t bytes = w->plan->pinned_bytes;

	for (uint32_t i = 0; i < w->plan->devices_count; i++)
		if (w->plan->devices[i].sim)
			bytes += w->plan->devices[i].region[MR_PATH_DIRECT].bytes;
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
	for (uint32_t i = 0; i < w->plan->lanes_count; i++)
		plan_pool(w, i);
	if (w->ps->count > 0)
		return;
	for (uint32_t i = 0; i < w->plan->devices_count; i++) {
		plan_region(w, i, MR_PATH_DIRECT);
		plan_region(w, i, MR_PATH_PINNED);
	}
	check_memory(w);
}
