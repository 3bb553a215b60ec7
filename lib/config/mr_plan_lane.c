/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_plan_priv.h"

#include "mr_nearest.h"

#include <stdio.h>
#include <string.h>

static void print_params(struct mr_plan_stage *s, const struct mr_param_env *env)
{
	size_t used = 0;

	for (uint32_t k = 0; k < s->desc->params_count && used < sizeof(s->text); k++) {
		const struct mr_param_desc *p = &s->desc->params[k];
		char value[MR_TEXT_MAX];
		int n;

		mr_param_print(p, s->params, env, value, sizeof(value));
		n = snprintf(s->text + used, sizeof(s->text) - used, "%s%s=%s", k > 0 ? " " : "",
			p->name, value);
		used += n > 0 ? (size_t)n : 0;
	}
}

/* Of the longest frame, without tags. */
static uint32_t frame_bytes(const struct mr_plan *p, uint32_t port)
{
	return port == MR_PLAN_NONE ? UINT32_MAX : MR_FRAME_MIN + p->ports[port].mtu;
}

static void plan_stage(struct mr_plan_work *w, uint32_t lane, uint32_t i, struct mr_plan_stage *s,
	const struct mr_param_env *env)
{
	const struct mr_config_stage *c = &w->cfg->lanes[lane].stages[i];
	bool whole = true;
	struct mr_err err;
	char key[96];

	mr_stage_param_defaults(s->desc, s->params);
	for (uint32_t k = 0; k < c->params_count; k++) {
		const struct mr_config_param *given = &c->params[k];
		const struct mr_param_desc *p = mr_stage_param_find(s->desc, given->key);

		snprintf(key, sizeof(key), "lanes[%u].stages[%u].params.%s", lane, i, given->key);
		if (given->is_list && p != NULL && p->list_max == 0) {
			mr_plan_refuse(w, key, p->help, "must be a single value, not a list");
			continue;
		}
		if (mr_stage_param_set(s->desc, given->key, given->value, env, s->params, &err) ==
			0)
			continue;
		mr_plan_refuse(w, key, "see millrace stages", "%s", err.msg);
		whole = false;
	}
	snprintf(key, sizeof(key), "lanes[%u].stages[%u].params", lane, i);
	if (whole && s->desc->check != NULL &&
		s->desc->check(
			s->params, frame_bytes(w->plan, w->plan->lanes[lane].rx_port), &err) != 0)
		mr_plan_refuse(w, key, "see millrace stages", "%s", err.msg);
	s->state_bytes = MR_ALIGN_UP(mr_stage_lane_bytes(s->desc, s->params), MR_REGION_PAGE);
	s->shared_bytes = MR_ALIGN_UP(mr_stage_device_bytes(s->desc, s->params), MR_REGION_PAGE);
	print_params(s, env);
}

/* What the lane's match does not name, the first stage of its chain drops. */
static void plan_match_stage(struct mr_plan_lane *l, const struct mr_param_env *env)
{
	struct mr_plan_stage *s = &l->stages[0];

	s->desc = mr_stage_find("match");
	mr_stage_param_defaults(s->desc, s->params);
	memcpy(s->params, &l->match, sizeof(l->match));
	(void)!mr_stage_param_set(s->desc, "otherwise", "drop", env, s->params, NULL);
	(void)!mr_stage_param_set(s->desc, "reason", "unmatched", env, s->params, NULL);
	print_params(s, env);
}

/* Finds the stage that is written there, among the built-in ones and those of plug-ins. */
static const struct mr_stage_desc *find_stage(struct mr_plan_work *w, uint32_t lane, uint32_t i)
{
	const char *use = w->cfg->lanes[lane].stages[i].use;
	const struct mr_stage_desc *desc = mr_stage_find(use);
	struct mr_plan_lane *l = &w->plan->lanes[lane];
	const struct mr_plugin_object *plugin = NULL;
	char hint[128] = "see millrace stages", key[96];
	struct mr_nearest n;

	snprintf(key, sizeof(key), "lanes[%u].stages[%u].use", lane, i);
	if (desc == NULL)
		desc = mr_plugins_find(w->cfg->loaded, use, &plugin);
	if (plugin != NULL && l->plugin != NULL && l->plugin != plugin)
		mr_plan_refuse(w, key,
			"take the stages of one plug-in, or build them into one plug-in",
			"stage '%s' is of plug-in '%s', and the chain has stages of '%s': a lane "
			"is served by one kernel",
			use, plugin->path, l->plugin->path);
	if (plugin != NULL)
		l->plugin = plugin;
	if (desc != NULL)
		return desc;
	mr_nearest_init(&n, use);
	for (uint32_t k = 0; mr_stage_at(k) != NULL; k++)
		mr_nearest_offer(&n, mr_stage_at(k)->name);
	for (uint32_t p = 0; w->cfg->loaded != NULL && p < w->cfg->loaded->count; p++)
		for (uint32_t k = 0; k < w->cfg->loaded->object[p].plugin->stages_count; k++)
			mr_nearest_offer(&n, w->cfg->loaded->object[p].stages[k].name);
	if (mr_nearest_get(&n) != NULL)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", mr_nearest_get(&n));
	mr_plan_refuse(w, key, hint, "there is no stage '%s'", use);
	return NULL;
}

void mr_plan_stages(struct mr_plan_work *w, uint32_t lane)
{
	const struct mr_config_lane *c = &w->cfg->lanes[lane];
	struct mr_plan_lane *l = &w->plan->lanes[lane];
	const char *tx[MR_TX_MAX];
	const struct mr_param_env env = {tx, c->tx_count};
	uint32_t first = mr_plan_match(w, lane) ? 1 : 0;
	char key[96];

	for (uint32_t t = 0; t < c->tx_count; t++)
		tx[t] = c->tx[t].port;
	snprintf(key, sizeof(key), "lanes[%u].stages", lane);
	if (first + c->stages_count > MR_CHAIN_MAX) {
		mr_plan_refuse(w, key, "use fewer stages",
			"%u stages and the one that applies match are more than the %u of a chain",
			c->stages_count, MR_CHAIN_MAX);
		return;
	}
	if (first != 0)
		plan_match_stage(l, &env);
	for (uint32_t i = 0; i < c->stages_count; i++) {
		struct mr_plan_stage *s = &l->stages[first + i];

		s->desc = find_stage(w, lane, i);
		if (s->desc != NULL)
			plan_stage(w, lane, i, s, &env);
	}
	l->stages_count = first + c->stages_count;
	l->stages_added = first;
	for (uint32_t i = 0; i < l->stages_count; i++) {
		struct mr_plan_stage *s = &l->stages[i];

		if (s->desc == NULL)
			continue;
		s->counter_base = l->counters_count;
		l->counters_count += s->desc->counters_count;
		if (s->desc->work > l->work)
			l->work = s->desc->work;
	}
	snprintf(key, sizeof(key), "lanes[%u].stages", lane);
	if (l->counters_count > MR_COUNTERS_MAX)
		mr_plan_refuse(w, key, "use fewer stages",
			"the stages have %u counters together, a lane has room for %u",
			l->counters_count, MR_COUNTERS_MAX);
}

/* A stage that waits for what is late, and tells what it found, does so by ticks. */
static void check_ticks(struct mr_plan_work *w, uint32_t lane)
{
	const struct mr_config_lane *c = &w->cfg->lanes[lane];
	const struct mr_plan_lane *l = &w->plan->lanes[lane];
	const char *ticks = NULL;
	char key[64];

	for (uint32_t i = 0; i < l->stages_count; i++)
		if (l->stages[i].desc != NULL && l->stages[i].desc->ticks)
			ticks = l->stages[i].desc->name;
	snprintf(key, sizeof(key), "lanes[%u].tick_us", lane);
	if (ticks != NULL && c->tick_us == 0)
		mr_plan_refuse(w, key, "set it, as in tick_us: 1000",
			"stage '%s' needs ticks: by them it gives up what is late, and tells what "
			"it found without traffic",
			ticks);
	else if (ticks == NULL && c->tick_us != 0)
		mr_plan_warn(w, "lane '%s': no stage of it takes the buffers that tick_us makes",
			l->name);
}

/* Order is kept by one worker: a second would run beside the first. */
static void plan_workers(struct mr_plan_work *w, uint32_t lane)
{
	const struct mr_config_lane *c = &w->cfg->lanes[lane];
	struct mr_plan_lane *l = &w->plan->lanes[lane];
	const char *ordered = NULL;
	char key[64];

	l->workers = c->workers;
	snprintf(key, sizeof(key), "lanes[%u].workers", lane);
	if (c->workers > c->slots)
		mr_plan_refuse(w, key, "give at least as many slots as workers",
			"%u workers cannot share %u slots", c->workers, c->slots);
	for (uint32_t i = 0; i < l->stages_count; i++)
		if (l->stages[i].desc != NULL && mr_stage_in_order(l->stages[i].desc))
			ordered = l->stages[i].desc->name;
	if (ordered == NULL && c->tick_us == 0)
		return;
	l->work = MR_WORK_ORDER;
	if (c->workers == 1)
		return;
	l->workers = 1;
	if (ordered != NULL)
		snprintf(l->workers_why, sizeof(l->workers_why),
			"1 of %u: stage '%s' needs every packet of the lane in order", c->workers,
			ordered);
	else
		snprintf(l->workers_why, sizeof(l->workers_why),
			"1 of %u: a tick must reach all of the lane's state, which is one worker's",
			c->workers);
}

void mr_plan_core(struct mr_plan_work *w, int32_t core, const char *key)
{
	char hint[96];

	if (!w->host->known || core < 0)
		return;
	snprintf(hint, sizeof(hint), "use 0 to %u, or any", w->host->cpus - 1);
	if ((uint32_t)core >= w->host->cpus || core >= (int32_t)MR_CPUS_MAX)
		mr_plan_refuse(w, key, hint, "this machine has no core %d", core);
	else if (!w->host->cpu_online[core])
		mr_plan_refuse(w, key, "switch it on, or use another", "core %d is offline", core);
	else if (!w->host->cpu_allowed[core])
		mr_plan_refuse(w, key,
			"widen the cpuset or affinity of this process, or use another",
			"core %d is not among the CPUs that this process may use", core);
}

static void check_core(struct mr_plan_work *w, uint32_t lane)
{
	int32_t core = w->plan->lanes[lane].core;
	char key[64];

	snprintf(key, sizeof(key), "lanes[%u].core", lane);
	if (core < 0)
		return;
	for (uint32_t k = 0; k < lane; k++) {
		if (w->plan->lanes[k].core != core)
			continue;
		mr_plan_refuse(w, key, "give each lane a core of its own, or any",
			"core %d already polls for lane '%s'", core, w->plan->lanes[k].name);
		break;
	}
	mr_plan_core(w, core, key);
}

static void plan_tx(struct mr_plan_work *w, uint32_t lane)
{
	const struct mr_config_lane *c = &w->cfg->lanes[lane];
	struct mr_plan_lane *l = &w->plan->lanes[lane];
	char key[64];

	l->tx_count = c->tx_count;
	for (uint32_t t = 0; t < c->tx_count; t++) {
		snprintf(key, sizeof(key), "lanes[%u].tx[%u].port", lane, t);
		l->tx[t].port = mr_plan_find_port(w, c->tx[t].port, key);
		l->tx[t].queue = c->tx[t].queue;
		if (l->tx[t].port == MR_PLAN_NONE)
			continue;
		l->tx[t].backlog = w->plan->ports[l->tx[t].port].tx_ring;
		if (l->rx_port == MR_PLAN_NONE ||
			w->plan->ports[l->rx_port].mtu <= w->plan->ports[l->tx[t].port].mtu)
			continue;
		mr_plan_refuse(w, key, "give both ports the same mtu, or the sending one more",
			"port '%s' takes frames of mtu %u, which port '%s' (mtu %u) cannot send",
			w->plan->ports[l->rx_port].name, w->plan->ports[l->rx_port].mtu,
			w->plan->ports[l->tx[t].port].name, w->plan->ports[l->tx[t].port].mtu);
	}
}

static bool port_resolved(const struct mr_plan *p, uint32_t port)
{
	return port != MR_PLAN_NONE && p->ports[port].device[0] != '\0';
}

/* Whether all that the lane names exists and could be read. */
static bool is_resolved(const struct mr_plan *p, const struct mr_plan_lane *l)
{
	bool all = port_resolved(p, l->rx_port) && l->device != MR_PLAN_NONE &&
		p->devices[l->device].args[0] != '\0';

	for (uint32_t t = 0; t < l->tx_count; t++)
		all &= port_resolved(p, l->tx[t].port);
	return all;
}

static void plan_lane(struct mr_plan_work *w, uint32_t i)
{
	const struct mr_config_lane *c = &w->cfg->lanes[i];
	struct mr_plan_lane *l = &w->plan->lanes[i];
	bool lists;
	char key[64];

	snprintf(l->name, sizeof(l->name), "%s", c->name);
	l->core = c->core;
	l->batch = c->batch_packets;
	l->timeout_us = c->batch_timeout_us;
	l->slots = c->slots;
	l->overload = c->overload;
	l->tick_us = c->tick_us;
	l->tx_timeout_us = c->tx_timeout_us;
	l->rx_queue = c->rx.queue;
	snprintf(key, sizeof(key), "lanes[%u].rx.port", i);
	l->rx_port = mr_plan_find_port(w, c->rx.port, key);
	snprintf(key, sizeof(key), "lanes[%u].device", i);
	l->device = mr_plan_find_device(w, c->device, key);
	plan_tx(w, i);
	snprintf(key, sizeof(key), "lanes[%u].slots", i);
	if ((c->slots & (c->slots - 1)) != 0)
		mr_plan_refuse(
			w, key, "use 2, 4, 8, ... 4096", "%u is not a power of two", c->slots);
	check_core(w, i);
	mr_plan_stages(w, i);
	plan_workers(w, i);
	check_ticks(w, i);
	lists = mr_plan_path_lists(w, i);
	if (lists && is_resolved(w->plan, l))
		mr_plan_path(w, i);
	if (l->device != MR_PLAN_NONE)
		w->plan->devices[l->device].blocks[l->work] += l->workers;
}

void mr_plan_lanes(struct mr_plan_work *w)
{
	w->plan->lanes_count = w->cfg->lanes_count;
	for (uint32_t i = 0; i < w->cfg->lanes_count; i++) {
		char key[64];

		plan_lane(w, i);
		snprintf(key, sizeof(key), "lanes[%u].name", i);
		for (uint32_t k = 0; k < i; k++) {
			if (strcmp(w->plan->lanes[k].name, w->plan->lanes[i].name) != 0)
				continue;
			mr_plan_refuse(w, key, "give each lane its own name",
				"lane '%s' is already in line %u", w->plan->lanes[i].name,
				w->cfg->lanes[k].line);
			break;
		}
	}
}
