/* SPDX-License-Identifier: BSD-3-Clause */
/* Header split: which ports and lanes can have it. */
#include "mr_plan_priv.h"

#include <stdio.h>
#include <string.h>

static void check_port(struct mr_plan_work *w, uint32_t port, const char *key)
{
	const struct mr_plan_port *p = &w->plan->ports[port];

	if (p->device[0] == '\0')
		return;
	if (p->split_bytes < MR_UNIT)
		mr_plan_refuse(w, key, "use 64 to 1024, or 0 for whole frames",
			"%u bytes hold no headers", p->split_bytes);
	else if (p->split_bytes >= p->frame_max)
		mr_plan_refuse(w, key, "leave split out",
			"no frame of port '%s' is longer than %u bytes", p->name, p->frame_max);
	else if (p->kind != MR_PORT_PCI)
		mr_plan_refuse(w, key, "leave split out, or use a NIC by its PCI address",
			"port '%s' (%s) cannot split frames, as no virtual device can", p->name,
			p->device);
}

/* A frame in two parts cannot be copied by what sees one of them. */
static void check_lane(struct mr_plan_work *w, uint32_t lane, const char *key)
{
	const struct mr_plan_lane *l = &w->plan->lanes[lane];
	const struct mr_plan_port *p = &w->plan->ports[l->rx_port];

	if (mr_plan_lane_moves(l) || mr_plan_lane_copies(l))
		mr_plan_refuse(w, key, "leave split out, or let the lane have one path, not staged",
			"lane '%s' copies frames, but of a split one it has the first %u bytes",
			l->name, p->split_bytes);
	else if (p->steering == MR_STEERING_SOFTWARE && l->settled.ip != 0)
		mr_plan_refuse(w, key, "leave split out, or set steering: nic",
			"the match of lane '%s' is of IP packets, which stage match cannot tell by "
			"their first %u bytes",
			l->name, p->split_bytes);
	for (uint32_t t = 0; t < l->tx_count; t++) {
		struct mr_plan_port *to = &w->plan->ports[l->tx[t].port];

		to->sends_parts = true;
		if (mr_plan_is_net_ring(to))
			mr_plan_refuse(w, key, "leave split out, or send to another port",
				"port '%s' would hand on frames in two parts, which no lane takes",
				to->name);
	}
	if (l->stages_count > 0)
		mr_plan_warn(w,
			"lane '%s': its stages see the first %u bytes of a frame as if they were "
			"all of it",
			l->name, p->split_bytes);
	for (uint32_t k = 0; k < l->stages_count; k++)
		if (l->stages[k].desc != NULL && l->stages[k].desc->ticks)
			mr_plan_refuse(w, key, "give the whole frame one buffer",
				"stage '%s' of lane '%s' writes results into buffers, and these "
				"are for headers",
				l->stages[k].desc->name, l->name);
}

static bool is_resolved(const struct mr_plan_lane *l)
{
	bool all = l->rx_port != MR_PLAN_NONE && l->device != MR_PLAN_NONE &&
		l->rx_path != MR_PATH_COUNT && l->tx_path != MR_PATH_COUNT;

	for (uint32_t t = 0; t < l->tx_count; t++)
		all &= l->tx[t].port != MR_PLAN_NONE;
	return all;
}

void mr_plan_split(struct mr_plan_work *w)
{
	char key[64];

	for (uint32_t i = 0; i < w->plan->ports_count; i++) {
		snprintf(key, sizeof(key), "ports[%u].split.header_bytes", i);
		if (w->plan->ports[i].split_bytes != 0)
			check_port(w, i, key);
	}
	for (uint32_t i = 0; i < w->plan->lanes_count; i++) {
		const struct mr_plan_lane *l = &w->plan->lanes[i];

		if (!is_resolved(l) || w->plan->ports[l->rx_port].split_bytes == 0)
			continue;
		snprintf(key, sizeof(key), "ports[%u].split.header_bytes", l->rx_port);
		check_lane(w, i, key);
	}
}
