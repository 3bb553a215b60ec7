/* SPDX-License-Identifier: BSD-3-Clause */
/* Which frames of a port a lane takes. */
#include "mr_plan_priv.h"

#include <stdio.h>
#include <string.h>

#define SOFTWARE_HINT "set steering: software for the port, or remove match"

/* The names of stage `match`'s other parameters are no fields. Returns whether all are well. */
static bool parse_match(struct mr_plan_work *w, uint32_t lane, uint8_t params[MR_PARAM_BYTES])
{
	const struct mr_config_lane *c = &w->cfg->lanes[lane];
	const struct mr_stage_desc *stage = mr_stage_find("match");
	uint32_t before = w->ps->count;

	mr_stage_param_defaults(stage, params);
	for (uint32_t k = 0; k < c->match_count; k++) {
		const struct mr_config_param *given = &c->match[k];
		const struct mr_param_desc *p = mr_stage_param_find(stage, given->key);
		struct mr_err err;
		char key[96];

		snprintf(key, sizeof(key), "lanes[%u].match.%s", lane, given->key);
		if (p != NULL && !mr_match_is_field(p))
			mr_plan_refuse(w, key, "name fields of frames, as in match: {dst_port: 53}",
				"is not a field of a frame");
		else if (p != NULL && given->is_list)
			mr_plan_refuse(w, key, p->help, "must be a single value, not a list");
		else if (mr_stage_param_set(stage, given->key, given->value, NULL, params, &err) !=
			0)
			mr_plan_refuse(
				w, key, p != NULL ? p->help : "see millrace stages", "%s", err.msg);
	}
	return w->ps->count == before;
}

bool mr_plan_match(struct mr_plan_work *w, uint32_t lane)
{
	struct mr_plan_lane *l = &w->plan->lanes[lane];
	uint8_t params[MR_PARAM_BYTES] = {0};
	const char *field;
	struct mr_err err;
	char key[96];

	l->group = lane;
	if (w->cfg->lanes[lane].match_count == 0 || !parse_match(w, lane, params))
		return false;
	memcpy(&l->match, params, sizeof(l->match));
	if (mr_match_settle(&l->match, &l->settled, &field, &err) < 0) {
		snprintf(key, sizeof(key), "lanes[%u].match%s%s", lane, *field != '\0' ? "." : "",
			field);
		mr_plan_refuse(w, key,
			*field != '\0' ? "leave out one of the two, or all of match"
				       : "give one a value, or leave out match",
			"%s", err.msg);
		return false;
	}
	mr_match_print(&l->match, l->match_text, sizeof(l->match_text));
	return l->rx_port != MR_PLAN_NONE &&
		w->plan->ports[l->rx_port].steering == MR_STEERING_SOFTWARE;
}

/* Drivers of virtual devices without rte_flow; what any other one can is known as it starts. */
static bool has_no_rules(const struct mr_plan_port *p)
{
	static const char *const blind[] = {
		"net_null", "net_pcap", "net_ring", "net_af_packet", "net_memif", NULL};

	for (size_t i = 0; p->kind != MR_PORT_PCI && blind[i] != NULL; i++)
		if (strncmp(p->device, blind[i], strlen(blind[i])) == 0)
			return true;
	return false;
}

/* What a NIC is asked for has to fit it. */
static void check_rules(struct mr_plan_work *w, uint32_t lane, const char *key)
{
	const struct mr_plan_lane *l = &w->plan->lanes[lane];
	const struct mr_plan_port *p = &w->plan->ports[l->rx_port];
	uint32_t rules = mr_match_rules(&l->settled);

	if (has_no_rules(p))
		mr_plan_refuse(w, key, SOFTWARE_HINT,
			"port '%s' (%s) has no rules that steer frames to queues", p->name,
			p->device);
	else if (rules > MR_MATCH_RULES_MAX)
		mr_plan_refuse(w, key,
			"narrow a range to blocks as 1024-2047, or set steering: software for the "
			"port",
			"takes %u rules of the NIC, of which a match may take %u: one for each "
			"kind of frame and each aligned block of its ranges",
			rules, MR_MATCH_RULES_MAX);
}

/* It has a match that could not be read, which was told. */
static bool is_unread(const struct mr_plan_work *w, uint32_t lane)
{
	return w->cfg->lanes[lane].match_count > 0 && w->plan->lanes[lane].match_text[0] == '\0';
}

/* Compares a lane with those before it on its port; false: it was refused. */
static bool check_lane(struct mr_plan_work *w, uint32_t lane, const char *key)
{
	struct mr_plan_lane *l = &w->plan->lanes[lane];
	bool matches = l->match_text[0] != '\0';

	for (uint32_t i = 0; i < lane; i++) {
		const struct mr_plan_lane *o = &w->plan->lanes[i];

		if (o->rx_port != l->rx_port || is_unread(w, i))
			continue;
		if ((o->match_text[0] != '\0') != matches) {
			mr_plan_refuse(w, key, "give every lane of a port a match, or none",
				"lane '%s' has %s match, but lane '%s' of the same port has %s",
				l->name, matches ? "a" : "no", o->name, matches ? "none" : "one");
			return false;
		}
		if (!matches || o->group != i)
			continue;
		if (memcmp(&o->settled, &l->settled, sizeof(l->settled)) == 0) {
			l->group = i;
			continue;
		}
		if (!mr_match_overlaps(&o->settled, &l->settled))
			continue;
		mr_plan_refuse(w, key,
			"write the same match to share frames, or fields that exclude each other",
			"a frame can match this and lane '%s' (%.200s)", o->name, o->match_text);
		return false;
	}
	return true;
}

/* Once for each port that is to be isolated. */
static void tell_rest(struct mr_plan_work *w, const struct mr_plan_port *p)
{
	if (w->cfg->readback == MR_READBACK_PORT)
		mr_plan_refuse(w, "proof.readback",
			"use auto, or set steering: software for the port",
			"port '%s' receives only what a match names, so no frame of the read-back "
			"would come back",
			p->name);
	if (p->kind == MR_PORT_PCI && !mr_plan_is_mlx5(w->host, p->device))
		mr_plan_warn(w,
			"port '%s': its kernel driver gave way to DPDK's, so frames that no lane's "
			"match names are dropped by the NIC",
			p->name);
}

void mr_plan_steer(struct mr_plan_work *w)
{
	for (uint32_t i = 0; i < w->plan->lanes_count; i++) {
		const struct mr_plan_lane *l = &w->plan->lanes[i];
		struct mr_plan_port *p;
		char key[64];

		if (l->rx_port == MR_PLAN_NONE || is_unread(w, i))
			continue;
		p = &w->plan->ports[l->rx_port];
		snprintf(key, sizeof(key), "lanes[%u].match", i);
		if (!check_lane(w, i, key) || l->match_text[0] == '\0' || p->device[0] == '\0')
			continue;
		if (p->steering == MR_STEERING_NIC && l->group == i)
			check_rules(w, i, key);
		if (!p->steered && p->steering == MR_STEERING_NIC)
			tell_rest(w, p);
		p->steered = true;
	}
}
