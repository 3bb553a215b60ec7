/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_port_flow - a rule of a match as a rule of a NIC (rte_flow).
 *
 *     struct mr_match_rule ─ mr_port_flow_compile ─► attributes, pattern, actions
 *
 *     pattern    ETH, VLAN where it is tagged, IPV4 or IPV6, UDP or TCP, VXLAN, END
 *     actions    QUEUE, or RSS over several queues; END
 *
 * A header that a field needs is named, and has a specification and a mask only for what
 * the rule compares, in network order; drivers take an item without them for "any". The
 * EtherType is compared in the header in front of which it stands: Ethernet or the tag.
 *
 * Pure; any thread. Source: DPDK Programmer's Guide, Flow API.
 */
#ifndef MR_PORT_FLOW_H
#define MR_PORT_FLOW_H

#include "mr_match.h"

#include <rte_flow.h>

#define MR_PORT_FLOW_ITEMS 6u

/* pattern and actions point into the structure, so it stays where it was compiled. */
struct mr_port_flow {
	struct rte_flow_attr attr;
	struct rte_flow_item pattern[MR_PORT_FLOW_ITEMS];
	struct rte_flow_action actions[2];
	const char *fields[MR_PORT_FLOW_ITEMS]; /* which each item stands for, for people */
	struct rte_flow_item_eth eth, eth_mask;
	struct rte_flow_item_vlan vlan, vlan_mask;
	struct rte_flow_item_ipv4 ip4, ip4_mask;
	struct rte_flow_item_ipv6 ip6, ip6_mask;
	struct rte_flow_item_udp udp, udp_mask;
	struct rte_flow_item_tcp tcp, tcp_mask;
	struct rte_flow_item_vxlan vxlan, vxlan_mask;
	struct rte_flow_action_queue queue;
	struct rte_flow_action_rss rss;
};

/*
 * mr_port_flow_compile fills *ret_flow. One queue is chosen outright; over several the NIC
 * spreads by rss_types (RTE_ETH_RSS_*). queues must outlive the structure.
 */
void mr_port_flow_compile(const struct mr_match_rule *rule, const uint16_t *queues,
	uint32_t queues_count, uint64_t rss_types, struct mr_port_flow *ret_flow);

/* mr_port_flow_blame gives the field that an error's cause stands for, or "match". */
const char *mr_port_flow_blame(const struct mr_port_flow *flow, const struct rte_flow_error *error);

#endif
