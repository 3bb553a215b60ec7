/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_port.h"
#include "mr_port_flow.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <stdlib.h>
#include <string.h>

#define SOFTWARE "set steering: software for the port, or remove match"

uint64_t mr_port_rss_types(const struct mr_port *p)
{
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(p->id, &info) != 0)
		return 0;
	return info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP);
}

/* What rte_flow says of an error; not every driver gives words. */
static const char *words(const struct rte_flow_error *e, int code)
{
	return e->message != NULL && e->message[0] != '\0' ? e->message : strerror(code);
}

int mr_port_isolate(struct mr_port *p, struct mr_err *err)
{
	struct rte_flow_error e = {0};
	int rc = rte_flow_isolate(p->id, 1, &e);

	if (rc < 0)
		return mr_err_set(err, rc,
			"port '%s' (%s): the driver %s cannot leave to others what the lanes' "
			"match does not name: rte_flow_isolate: %s; " SOFTWARE,
			p->name, p->device, p->driver, words(&e, -rc));
	p->isolated = true;
	return 0;
}

static int refuse(const struct mr_port *p, const struct mr_port_steer *s,
	const struct mr_port_flow *flow, const struct rte_flow_error *e, const char *call, int code,
	struct mr_err *err)
{
	const char *field = mr_port_flow_blame(flow, e);

	return mr_err_set(err, -code,
		"port '%s' (%s): the driver %s refuses %s%s of lane '%s': %s: %s; leave that out, "
		"or set steering: software for the port",
		p->name, p->device, p->driver, strcmp(field, "match") == 0 ? "" : "match.", field,
		s->lane, call, words(e, code));
}

static int validate(const struct mr_port *p, const struct mr_port_steer *s,
	const struct mr_port_flow *flow, struct mr_err *err)
{
	struct rte_flow_error e = {0};
	int rc = rte_flow_validate(p->id, &flow->attr, flow->pattern, flow->actions, &e);

	return rc == 0 ? 0 : refuse(p, s, flow, &e, "rte_flow_validate", -rc, err);
}

static int create(struct mr_port *p, const struct mr_port_steer *s, const struct mr_port_flow *flow,
	struct mr_err *err)
{
	struct rte_flow_error e = {0};
	struct rte_flow *made =
		rte_flow_create(p->id, &flow->attr, flow->pattern, flow->actions, &e);

	if (made == NULL)
		return refuse(
			p, s, flow, &e, "rte_flow_create", rte_errno > 0 ? rte_errno : EIO, err);
	p->flows[p->flows_count++] = made;
	return 0;
}

/* Every rule of every match in turn: is it taken, or make it. */
static int each_rule(struct mr_port *p, const struct mr_port_steer *steer, uint32_t count,
	uint64_t rss_types, bool make, struct mr_err *err)
{
	struct mr_port_flow flow;
	int rc = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct mr_port_steer *s = &steer[i];

		for (uint32_t k = 0; rc == 0 && k < mr_match_rules(s->match); k++) {
			struct mr_match_rule rule;

			mr_match_rule(s->match, k, &rule);
			mr_port_flow_compile(&rule, s->queues, s->queues_count, rss_types, &flow);
			rc = make ? create(p, s, &flow, err) : validate(p, s, &flow, err);
		}
	}
	return rc;
}

int mr_port_steer(
	struct mr_port *p, const struct mr_port_steer *steer, uint32_t count, struct mr_err *err)
{
	uint64_t rss_types = mr_port_rss_types(p);
	uint32_t rules = 0;
	int rc;

	for (uint32_t i = 0; i < count; i++) {
		rules += mr_match_rules(steer[i].match);
		if (steer[i].queues_count > 1 && rss_types == 0)
			return mr_err_set(err, -ENOTSUP,
				"port '%s' (%s): the driver %s cannot spread the frames of lane "
				"'%s' over the %u lanes with the same match; give each a match of "
				"its own",
				p->name, p->device, p->driver, steer[i].lane,
				steer[i].queues_count);
	}
	p->flows = calloc(rules, sizeof(struct rte_flow *));
	if (p->flows == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory");
	rc = each_rule(p, steer, count, rss_types, false, err);
	if (rc == 0)
		rc = each_rule(p, steer, count, rss_types, true, err);
	if (rc < 0)
		mr_port_unsteer(p);
	return rc;
}

void mr_port_unsteer(struct mr_port *p)
{
	struct rte_flow_error e;

	/* What cannot be destroyed ends with the port. */
	while (p->flows_count > 0)
		(void)rte_flow_destroy(p->id, p->flows[--p->flows_count], &e);
	free(p->flows);
	p->flows = NULL;
}
