/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_port_flow.h"

#include <string.h>

/* A field whose mask has no bit is not compared. */
#define SET_16(flow, item, member, field)                                                          \
	do {                                                                                       \
		(flow)->item.member = rte_cpu_to_be_16((uint16_t)(field).value);                   \
		(flow)->item##_mask.member = rte_cpu_to_be_16((uint16_t)(field).mask);             \
	} while (0)
#define SET_8(flow, item, member, field)                                                           \
	do {                                                                                       \
		(flow)->item.member = (uint8_t)(field).value;                                      \
		(flow)->item##_mask.member = (uint8_t)(field).mask;                                \
	} while (0)
/* Appends an item, with what is compared of it if anything is. */
#define ADD(flow, n, type, item, compares, field)                                                  \
	add(flow, n, RTE_FLOW_ITEM_TYPE_##type, &(flow)->item, &(flow)->item##_mask, compares,     \
		field)

static void add(struct mr_port_flow *f, uint32_t *n, enum rte_flow_item_type type, const void *spec,
	const void *mask, bool compares, const char *field)
{
	f->pattern[*n] = (struct rte_flow_item){
		.type = type, .spec = compares ? spec : NULL, .mask = compares ? mask : NULL};
	f->fields[(*n)++] = field;
}

static void add_frame(struct mr_port_flow *f, uint32_t *n, const struct mr_match_rule *r)
{
	bool type = r->ethertype.mask != 0;

	if (!r->tagged) {
		SET_16(f, eth, hdr.ether_type, r->ethertype);
		ADD(f, n, ETH, eth, type, "ethertype");
		return;
	}
	ADD(f, n, ETH, eth, false, "vlan");
	SET_16(f, vlan, hdr.vlan_tci, r->vlan);
	SET_16(f, vlan, hdr.eth_proto, r->ethertype);
	ADD(f, n, VLAN, vlan, type || r->vlan.mask != 0, "vlan");
}

static void address(const struct mr_prefix *p, uint32_t words, void *ret_value, void *ret_mask)
{
	for (uint32_t i = 0; i < words; i++) {
		uint32_t bits = p->ip.family != 0 && p->bits > 32 * i ? p->bits - 32 * i : 0;
		rte_be32_t value = rte_cpu_to_be_32(p->ip.word[i]);
		rte_be32_t mask = rte_cpu_to_be_32(mr_ip_mask(bits));

		memcpy((rte_be32_t *)ret_value + i, &value, sizeof(value));
		memcpy((rte_be32_t *)ret_mask + i, &mask, sizeof(mask));
	}
}

static bool compares(const struct mr_prefix *p)
{
	return p->ip.family != 0 && p->bits != 0;
}

static void add_ip(struct mr_port_flow *f, uint32_t *n, const struct mr_match_rule *r)
{
	const char *field = compares(&r->src) ? "src" : compares(&r->dst) ? "dst" : "protocol";
	bool any = !compares(&r->src) && !compares(&r->dst) && r->protocol.mask == 0;

	if (r->ip == MR_MATCH_IP4) {
		address(&r->src, 1, &f->ip4.hdr.src_addr, &f->ip4_mask.hdr.src_addr);
		address(&r->dst, 1, &f->ip4.hdr.dst_addr, &f->ip4_mask.hdr.dst_addr);
		SET_8(f, ip4, hdr.next_proto_id, r->protocol);
		ADD(f, n, IPV4, ip4, !any, field);
	} else if (r->ip == MR_MATCH_IP6) {
		address(&r->src, 4, f->ip6.hdr.src_addr, f->ip6_mask.hdr.src_addr);
		address(&r->dst, 4, f->ip6.hdr.dst_addr, f->ip6_mask.hdr.dst_addr);
		SET_8(f, ip6, hdr.proto, r->protocol);
		ADD(f, n, IPV6, ip6, !any, field);
	}
}

static void add_ports(struct mr_port_flow *f, uint32_t *n, const struct mr_match_rule *r)
{
	const char *field = r->dst_port.mask != 0 ? "dst_port" : "src_port";
	bool any = r->src_port.mask == 0 && r->dst_port.mask == 0;

	if (r->l4 == MR_MATCH_UDP) {
		SET_16(f, udp, hdr.src_port, r->src_port);
		SET_16(f, udp, hdr.dst_port, r->dst_port);
		ADD(f, n, UDP, udp, !any, field);
	} else if (r->l4 == MR_MATCH_TCP) {
		SET_16(f, tcp, hdr.src_port, r->src_port);
		SET_16(f, tcp, hdr.dst_port, r->dst_port);
		ADD(f, n, TCP, tcp, !any, field);
	}
	if (r->vni.mask == 0)
		return;
	for (uint32_t i = 0; i < 3; i++) {
		f->vxlan.vni[i] = (uint8_t)(r->vni.value >> (16 - 8 * i));
		f->vxlan_mask.vni[i] = (uint8_t)(r->vni.mask >> (16 - 8 * i));
	}
	ADD(f, n, VXLAN, vxlan, true, "vni");
}

void mr_port_flow_compile(const struct mr_match_rule *rule, const uint16_t *queues,
	uint32_t queues_count, uint64_t rss_types, struct mr_port_flow *ret_flow)
{
	struct mr_port_flow *f = ret_flow;
	uint32_t n = 0;

	memset(f, 0, sizeof(*f));
	f->attr.ingress = 1;
	add_frame(f, &n, rule);
	add_ip(f, &n, rule);
	add_ports(f, &n, rule);
	f->pattern[n].type = RTE_FLOW_ITEM_TYPE_END;
	f->fields[n] = "match";
	f->queue.index = queues[0];
	f->rss = (struct rte_flow_action_rss){.func = RTE_ETH_HASH_FUNCTION_DEFAULT,
		.types = rss_types,
		.queue_num = queues_count,
		.queue = queues};
	if (queues_count == 1)
		f->actions[0] = (struct rte_flow_action){RTE_FLOW_ACTION_TYPE_QUEUE, &f->queue};
	else
		f->actions[0] = (struct rte_flow_action){RTE_FLOW_ACTION_TYPE_RSS, &f->rss};
	f->actions[1].type = RTE_FLOW_ACTION_TYPE_END;
}

const char *mr_port_flow_blame(const struct mr_port_flow *flow, const struct rte_flow_error *error)
{
	const void *cause = error->cause;

	for (uint32_t i = 0; cause != NULL && i < MR_PORT_FLOW_ITEMS; i++) {
		const struct rte_flow_item *item = &flow->pattern[i];

		if (item->type == RTE_FLOW_ITEM_TYPE_END)
			break;
		if (cause == item || cause == item->spec || cause == item->mask)
			return flow->fields[i];
	}
	return "match";
}
