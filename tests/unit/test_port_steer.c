/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steering and header split, with a flow API and an ethdev of the test's own (the linker's --wrap):
 * what a NIC is asked for, field by field in network order, and what is left when it refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_port.h"
#include "mr_port_flow.h"
#include "mr_stage.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <string.h>

#define PORT_ID 7
#define RULES 64u

/* What the double was asked for, and where it refuses. */
static struct {
	uint32_t validated, created, destroyed, isolated, promiscuous;
	uint32_t refuse_validate, refuse_create; /* counted from 1; 0: never */
	enum rte_flow_item_type blame;           /* the item that an error is about */
	const char *message;
	int isolate_rc;
	uint64_t rss;
	bool alive[RULES]; /* rules in force */
	uint16_t queue[RULES][4];
	uint32_t queues[RULES];
	uint64_t types[RULES];
	struct rte_eth_conf conf;
	uint64_t rx_offloads, tx_offloads; /* that it offers */
	uint32_t parts;                    /* that a frame may be split into */
	bool pools;                        /* each of a pool of its own */
	union rte_eth_rxseg seg[4];        /* what the last queue was set up with */
	uint32_t segs;
	struct rte_mempool *pool;
} nic;

static const struct rte_flow_item *find(
	const struct rte_flow_item *pattern, enum rte_flow_item_type type)
{
	for (; pattern->type != RTE_FLOW_ITEM_TYPE_END; pattern++)
		if (pattern->type == type)
			return pattern;
	return NULL;
}

static int refuse(const struct rte_flow_item *pattern, struct rte_flow_error *error)
{
	const struct rte_flow_item *item = find(pattern, nic.blame);

	return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM, item, nic.message);
}

static void well_formed(const struct rte_flow_attr *attr, const struct rte_flow_action *actions)
{
	assert_int_equal(attr->ingress, 1);
	assert_int_equal(attr->egress | attr->transfer | attr->group | attr->priority, 0);
	assert_int_equal(actions[1].type, RTE_FLOW_ACTION_TYPE_END);
}

int __wrap_rte_flow_validate(uint16_t id, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error);
int __wrap_rte_flow_validate(uint16_t id, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error)
{
	assert_int_equal(id, PORT_ID);
	assert_int_equal(nic.created, 0);
	well_formed(attr, actions);
	return ++nic.validated == nic.refuse_validate ? refuse(pattern, error) : 0;
}

struct rte_flow *__wrap_rte_flow_create(uint16_t id, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error);
struct rte_flow *__wrap_rte_flow_create(uint16_t id, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error)
{
	uint32_t i = nic.created++;

	assert_int_equal(id, PORT_ID);
	well_formed(attr, actions);
	if (nic.created == nic.refuse_create) {
		refuse(pattern, error);
		return NULL;
	}
	if (actions[0].type == RTE_FLOW_ACTION_TYPE_QUEUE) {
		const struct rte_flow_action_queue *q = actions[0].conf;

		nic.queues[i] = 1;
		nic.queue[i][0] = q->index;
	} else {
		const struct rte_flow_action_rss *r = actions[0].conf;

		assert_int_equal(actions[0].type, RTE_FLOW_ACTION_TYPE_RSS);
		assert_int_equal(r->func, RTE_ETH_HASH_FUNCTION_DEFAULT);
		assert_true(r->level == 0 && r->key == NULL && r->key_len == 0);
		assert_true(r->queue_num <= 4);
		nic.queues[i] = r->queue_num;
		nic.types[i] = r->types;
		memcpy(nic.queue[i], r->queue, r->queue_num * sizeof(uint16_t));
	}
	nic.alive[i] = true;
	return (struct rte_flow *)&nic.alive[i];
}

int __wrap_rte_flow_destroy(uint16_t id, struct rte_flow *flow, struct rte_flow_error *error);
int __wrap_rte_flow_destroy(uint16_t id, struct rte_flow *flow, struct rte_flow_error *error)
{
	bool *alive = (bool *)flow;

	(void)error;
	assert_int_equal(id, PORT_ID);
	assert_true(*alive);
	*alive = false;
	nic.destroyed++;
	return 0;
}

int __wrap_rte_flow_isolate(uint16_t id, int set, struct rte_flow_error *error);
int __wrap_rte_flow_isolate(uint16_t id, int set, struct rte_flow_error *error)
{
	assert_int_equal(id, PORT_ID);
	assert_int_equal(set, 1);
	if (nic.isolate_rc < 0)
		return rte_flow_error_set(
			error, -nic.isolate_rc, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, NULL, nic.message);
	nic.isolated++;
	return 0;
}

int __wrap_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info)
{
	assert_int_equal(id, PORT_ID);
	memset(info, 0, sizeof(*info));
	info->max_rx_queues = info->max_tx_queues = 16;
	info->flow_type_rss_offloads = nic.rss;
	info->rx_offload_capa = nic.rx_offloads;
	info->tx_offload_capa = nic.tx_offloads;
	info->rx_seg_capa.max_nseg = (uint16_t)nic.parts;
	info->rx_seg_capa.multi_pools = nic.pools;
	info->default_rxconf.rx_free_thresh = 33;
	info->rx_desc_lim = (struct rte_eth_desc_lim){.nb_max = 4096, .nb_min = 64};
	return 0;
}

int __wrap_rte_eth_dev_configure(
	uint16_t id, uint16_t rx, uint16_t tx, const struct rte_eth_conf *conf);
int __wrap_rte_eth_dev_configure(
	uint16_t id, uint16_t rx, uint16_t tx, const struct rte_eth_conf *conf)
{
	(void)rx;
	(void)tx;
	assert_int_equal(id, PORT_ID);
	nic.conf = *conf;
	return 0;
}

int __wrap_rte_eth_rx_queue_setup(uint16_t id, uint16_t queue, uint16_t ring, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *pool);
int __wrap_rte_eth_rx_queue_setup(uint16_t id, uint16_t queue, uint16_t ring, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	assert_int_equal(id, PORT_ID);
	assert_int_equal(queue, 1);
	assert_int_equal(ring, 512);
	(void)socket;
	nic.pool = pool;
	nic.segs = conf != NULL ? conf->rx_nseg : 0;
	assert_true(nic.segs <= MR_ARRAY_LEN(nic.seg));
	if (nic.segs > 0) {
		/* What is not about parts is the driver's own. */
		assert_int_equal(conf->rx_free_thresh, 33);
		memcpy(nic.seg, conf->rx_seg, nic.segs * sizeof(nic.seg[0]));
	}
	return 0;
}

int __wrap_rte_eth_dev_start(uint16_t id);
int __wrap_rte_eth_dev_start(uint16_t id)
{
	assert_int_equal(id, PORT_ID);
	return 0;
}

int __wrap_rte_eth_promiscuous_enable(uint16_t id);
int __wrap_rte_eth_promiscuous_enable(uint16_t id)
{
	assert_int_equal(id, PORT_ID);
	nic.promiscuous++;
	return 0;
}

static struct mr_port port;
static struct mr_err err;

static int setup(void **state)
{
	(void)state;
	memset(&nic, 0, sizeof(nic));
	nic.rss = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_L2_PAYLOAD;
	nic.message = "not that one";
	port = (struct mr_port){
		.name = "p0", .device = "0000:5e:00.0", .driver = "net_sfc", .id = PORT_ID};
	memset(&err, 0, sizeof(err));
	return 0;
}

/* Names and values in turn up to NULL. */
static struct mr_match_settled settled(const char *const *set)
{
	const struct mr_stage_desc *stage = mr_stage_find("match");
	uint8_t params[MR_PARAM_BYTES];
	struct mr_match_settled s;
	struct mr_match m;
	const char *field;

	mr_stage_param_defaults(stage, params);
	for (; *set != NULL; set += 2)
		assert_int_equal(mr_stage_param_set(stage, set[0], set[1], NULL, params, &err), 0);
	memcpy(&m, params, sizeof(m));
	assert_int_equal(mr_match_settle(&m, &s, &field, &err), 0);
	return s;
}

#define MATCH(...) settled((const char *const[]){__VA_ARGS__, NULL})

static struct mr_port_flow compiled(const struct mr_match_settled *s, uint32_t i)
{
	static const uint16_t queues[] = {3};
	static struct mr_port_flow f;
	struct mr_match_rule r;

	mr_match_rule(s, i, &r);
	mr_port_flow_compile(&r, queues, 1, 0, &f);
	return f; /* its pointers lead to the static one, which is equal */
}

/* The items' types, END left out. */
static void has_items(const struct mr_port_flow *f, const enum rte_flow_item_type *types)
{
	uint32_t i = 0;

	for (; types[i] != RTE_FLOW_ITEM_TYPE_END; i++)
		assert_int_equal(f->pattern[i].type, types[i]);
	assert_int_equal(f->pattern[i].type, RTE_FLOW_ITEM_TYPE_END);
	for (i = 0; f->pattern[i].type != RTE_FLOW_ITEM_TYPE_END; i++)
		assert_null(f->pattern[i].last);
}

#define ITEMS(...)                                                                                 \
	((const enum rte_flow_item_type[]){                                                        \
		RTE_FLOW_ITEM_TYPE_ETH, __VA_ARGS__, RTE_FLOW_ITEM_TYPE_END})
#define VLAN RTE_FLOW_ITEM_TYPE_VLAN
#define IPV4 RTE_FLOW_ITEM_TYPE_IPV4
#define IPV6 RTE_FLOW_ITEM_TYPE_IPV6
#define UDP RTE_FLOW_ITEM_TYPE_UDP
#define TCP RTE_FLOW_ITEM_TYPE_TCP
#define VXLAN RTE_FLOW_ITEM_TYPE_VXLAN

/* An item's bytes: all are 0 but those at `at`. */
static void bytes_are(const void *item, size_t size, size_t at, const void *want, size_t n)
{
	const uint8_t *b = item;

	assert_non_null(item);
	for (size_t i = 0; i < size; i++)
		if (b[i] != (i >= at && i < at + n ? ((const uint8_t *)want)[i - at] : 0))
			fail_msg("byte %zu is %02x", i, b[i]);
}

#define SPEC(item, type, at, bytes)                                                                \
	bytes_are((item).spec, sizeof(type), at, bytes, sizeof(bytes) - 1)
#define MASK(item, type, at, bytes)                                                                \
	bytes_are((item).mask, sizeof(type), at, bytes, sizeof(bytes) - 1)
#define BLANK(item) assert_true((item).spec == NULL && (item).mask == NULL)

/* Offsets in headers as they are on the wire. */
static void ethertype_is_compared_in_front_of_what_it_names(void **state)
{
	struct mr_match_settled s = MATCH("ethertype", "0x88b5");
	struct mr_port_flow f = compiled(&s, 0);

	(void)state;
	assert_int_equal(mr_match_rules(&s), 2);
	assert_int_equal(f.pattern[0].type, RTE_FLOW_ITEM_TYPE_ETH);
	assert_int_equal(f.pattern[1].type, RTE_FLOW_ITEM_TYPE_END);
	SPEC(f.pattern[0], struct rte_flow_item_eth, 12, "\x88\xb5");
	MASK(f.pattern[0], struct rte_flow_item_eth, 12, "\xff\xff");
	f = compiled(&s, 1);
	has_items(&f, ITEMS(VLAN));
	BLANK(f.pattern[0]);
	SPEC(f.pattern[1], struct rte_flow_item_vlan, 2, "\x88\xb5");
	MASK(f.pattern[1], struct rte_flow_item_vlan, 2, "\xff\xff");
	s = MATCH("vlan", "100");
	f = compiled(&s, 0);
	has_items(&f, ITEMS(VLAN));
	SPEC(f.pattern[1], struct rte_flow_item_vlan, 0, "\0\x64");
	MASK(f.pattern[1], struct rte_flow_item_vlan, 0, "\x0f\xff");
	s = MATCH("vlan", "256-511");
	f = compiled(&s, 0);
	SPEC(f.pattern[1], struct rte_flow_item_vlan, 0, "\x01\0");
	MASK(f.pattern[1], struct rte_flow_item_vlan, 0, "\x0f\0");
	s = MATCH("vlan", "0-4095");
	f = compiled(&s, 0);
	has_items(&f, ITEMS(VLAN));
	BLANK(f.pattern[1]);
}

static void addresses_are_prefixes_of_their_family(void **state)
{
	struct mr_match_settled s = MATCH("src", "10.32.0.0/11", "dst", "192.0.2.1", "vlan", "1");
	struct mr_port_flow f = compiled(&s, 0);

	(void)state;
	assert_int_equal(mr_match_rules(&s), 1);
	has_items(&f, ITEMS(VLAN, IPV4));
	SPEC(f.pattern[2], struct rte_flow_item_ipv4, 12, "\x0a\x20\0\0\xc0\0\x02\x01");
	MASK(f.pattern[2], struct rte_flow_item_ipv4, 12, "\xff\xe0\0\0\xff\xff\xff\xff");
	s = MATCH("src", "2001:db8:8000::/33", "vlan", "1");
	f = compiled(&s, 0);
	has_items(&f, ITEMS(VLAN, IPV6));
	SPEC(f.pattern[2], struct rte_flow_item_ipv6, 8, "\x20\x01\x0d\xb8\x80");
	MASK(f.pattern[2], struct rte_flow_item_ipv6, 8, "\xff\xff\xff\xff\x80");
	s = MATCH("dst", "::/0", "vlan", "1");
	f = compiled(&s, 0);
	has_items(&f, ITEMS(VLAN, IPV6));
	BLANK(f.pattern[2]);
	s = MATCH("protocol", "1", "vlan", "1");
	f = compiled(&s, 0);
	has_items(&f, ITEMS(VLAN, IPV4));
	SPEC(f.pattern[2], struct rte_flow_item_ipv4, 9, "\x01");
	MASK(f.pattern[2], struct rte_flow_item_ipv4, 9, "\xff");
	f = compiled(&s, 1);
	has_items(&f, ITEMS(VLAN, IPV6));
	SPEC(f.pattern[2], struct rte_flow_item_ipv6, 6, "\x01");
	MASK(f.pattern[2], struct rte_flow_item_ipv6, 6, "\xff");
}

/* Without a protocol and an address: by IPv4 and IPv6, UDP and TCP, untagged and tagged. */
static void ports_are_of_udp_and_tcp_over_either_ip(void **state)
{
	static const enum rte_flow_item_type ips[] = {IPV4, IPV6}, l4s[] = {UDP, TCP};
	struct mr_match_settled s = MATCH("dst_port", "4000-4003", "src_port", "53");
	uint32_t seen = 0;

	(void)state;
	assert_int_equal(mr_match_rules(&s), 8);
	for (uint32_t i = 0; i < 8; i++) {
		struct mr_port_flow f = compiled(&s, i);
		uint32_t tag = f.pattern[1].type == VLAN, ip = f.pattern[1 + tag].type == IPV6;
		uint32_t l4 = f.pattern[2 + tag].type == TCP;
		const struct rte_flow_item *item = &f.pattern[2 + tag];

		seen |= 1u << (tag + 2 * ip + 4 * l4);
		BLANK(f.pattern[0]);
		BLANK(f.pattern[tag]);
		assert_int_equal(f.pattern[1 + tag].type, ips[ip]);
		BLANK(f.pattern[1 + tag]);
		assert_int_equal(item->type, l4s[l4]);
		assert_int_equal(item[1].type, RTE_FLOW_ITEM_TYPE_END);
		bytes_are(item->spec,
			l4 ? sizeof(struct rte_flow_item_tcp) : sizeof(struct rte_flow_item_udp), 0,
			"\0\x35\x0f\xa0", 4);
		bytes_are(item->mask,
			l4 ? sizeof(struct rte_flow_item_tcp) : sizeof(struct rte_flow_item_udp), 0,
			"\xff\xff\xff\xfc", 4);
	}
	assert_int_equal(seen, 0xff);
}

static void vni_is_that_of_vxlan_behind_its_udp_port(void **state)
{
	struct mr_match_settled s =
		MATCH("vni", "0x123456", "ethertype", "0x0800", "vlan", "9", "dst", "10.0.0.0/8");
	struct mr_port_flow f = compiled(&s, 0);

	(void)state;
	assert_int_equal(mr_match_rules(&s), 1);
	has_items(&f, ITEMS(VLAN, IPV4, UDP, VXLAN));
	SPEC(f.pattern[3], struct rte_flow_item_udp, 2, "\x12\xb5");
	MASK(f.pattern[3], struct rte_flow_item_udp, 2, "\xff\xff");
	SPEC(f.pattern[4], struct rte_flow_item_vxlan, 4, "\x12\x34\x56");
	MASK(f.pattern[4], struct rte_flow_item_vxlan, 4, "\xff\xff\xff");
}

/* Lane a alone with 2 rules, then lanes b and c with the same match of 1. */
static const uint16_t queues_a[] = {2}, queues_b[] = {0, 3};

static int steer(void)
{
	struct mr_match_settled a = MATCH("src", "10.0.0.0/8"),
				b = MATCH("vni", "5", "src", "192.0.2.0/24", "vlan", "7");
	const struct mr_port_steer steer[] = {{"a", &a, queues_a, 1}, {"b", &b, queues_b, 2}};

	port.isolated = true;
	return mr_port_steer(&port, steer, 2, &err);
}

static uint32_t in_force(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < RULES; i++)
		n += nic.alive[i];
	return n;
}

static void one_lane_gets_its_queue_and_a_group_is_spread_over(void **state)
{
	(void)state;
	assert_int_equal(steer(), 0);
	assert_int_equal(nic.validated, 3);
	assert_int_equal(in_force(), 3);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(nic.queues[i], 1);
		assert_int_equal(nic.queue[i][0], 2);
	}
	assert_int_equal(nic.queues[2], 2);
	assert_int_equal(nic.queue[2][0], 0);
	assert_int_equal(nic.queue[2][1], 3);
	assert_true(nic.types[2] == (RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP));
	mr_port_unsteer(&port);
	assert_int_equal(in_force(), 0);
	assert_int_equal(nic.destroyed, 3);
	mr_port_unsteer(&port);
	assert_int_equal(nic.destroyed, 3);
	nic.created = 0;
	assert_int_equal(steer(), 0);
	assert_int_equal(in_force(), 3);
	mr_port_stop(&port);
	assert_int_equal(in_force(), 0);
}

static void says(const char *words)
{
	if (strstr(err.msg, words) == NULL)
		fail_msg("'%s' is not in: %s", words, err.msg);
}

static void a_rule_that_is_not_valid_keeps_all_from_being_made(void **state)
{
	for (uint32_t k = 1; k <= 3; k++) {
		setup(state);
		nic.refuse_validate = k;
		nic.blame = k < 3 ? IPV4 : VXLAN;
		assert_int_equal(steer(), -ENOTSUP);
		assert_int_equal(nic.created, 0);
		assert_null(port.flows);
		says("port 'p0' (0000:5e:00.0): the driver net_sfc refuses match.");
		says(k < 3 ? "match.src of lane 'a'" : "match.vni of lane 'b'");
		says("rte_flow_validate: not that one; leave that out, or set steering: software");
	}
}

static void a_rule_that_cannot_be_made_removes_those_before_it(void **state)
{
	for (uint32_t k = 1; k <= 3; k++) {
		setup(state);
		nic.refuse_create = k;
		nic.message = NULL;
		assert_int_equal(steer(), -ENOTSUP);
		assert_int_equal(nic.validated, 3);
		assert_int_equal(nic.destroyed, k - 1);
		assert_int_equal(in_force(), 0);
		assert_null(port.flows);
		/* Neither an item nor a text was given: the whole match, and the code's words. */
		says(k < 3 ? "refuses match of lane 'a'" : "refuses match of lane 'b'");
		says("rte_flow_create: Operation not supported;");
	}
}

static void the_item_of_an_error_names_the_field(void **state)
{
	static const struct {
		const char *set[6];
		enum rte_flow_item_type item;
		const char *field;
	} rows[] = {
		{{"vlan", "7"}, VLAN, "vlan"},
		{{"ethertype", "0x0806"}, RTE_FLOW_ITEM_TYPE_ETH, "ethertype"},
		{{"dst", "10.0.0.0/8"}, IPV4, "dst"},
		{{"protocol", "1"}, IPV4, "protocol"},
		{{"src_port", "7"}, UDP, "src_port"},
		{{"dst_port", "7", "protocol", "6"}, TCP, "dst_port"},
		{{"vni", "7"}, VXLAN, "vni"},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		struct mr_match_settled s = settled(rows[i].set);
		struct mr_match_rule r;
		struct mr_port_flow f;
		struct rte_flow_error e = {0};

		mr_match_rule(&s, 0, &r);
		mr_port_flow_compile(&r, queues_a, 1, 0, &f);
		e.cause = find(f.pattern, rows[i].item);
		assert_non_null(e.cause);
		assert_string_equal(mr_port_flow_blame(&f, &e), rows[i].field);
		e.cause = ((const struct rte_flow_item *)e.cause)->mask;
		assert_string_equal(mr_port_flow_blame(&f, &e), rows[i].field);
		e.cause = &f.actions[0];
		assert_string_equal(mr_port_flow_blame(&f, &e), "match");
	}
}

static void a_group_is_refused_where_nothing_can_be_spread(void **state)
{
	(void)state;
	nic.rss = RTE_ETH_RSS_L2_PAYLOAD;
	assert_int_equal(steer(), -ENOTSUP);
	assert_int_equal(nic.validated, 0);
	says("cannot spread the frames of lane 'b' over the 2 lanes with the same match");
}

static int configure(bool isolated, bool pci, uint32_t queues)
{
	const struct mr_port_spec spec = {.name = "p0",
		.device = "0000:5e:00.0",
		.ifname = "",
		.pci = pci,
		.isolated = isolated,
		.mtu = 1500,
		.rx_queues = queues,
		.tx_queues = 1};

	return mr_port_configure(&port, &spec, &err);
}

static void an_isolated_port_takes_nothing_but_what_rules_name(void **state)
{
	(void)state;
	assert_int_equal(configure(true, true, 2), 0);
	assert_int_equal(nic.isolated, 1);
	assert_int_equal(nic.conf.rxmode.mq_mode, RTE_ETH_MQ_RX_NONE);
	assert_int_equal(mr_port_start(&port, &err), 0);
	assert_int_equal(nic.promiscuous, 0);
	setup(state);
	nic.isolate_rc = -ENOTSUP;
	assert_int_equal(configure(true, true, 2), -ENOTSUP);
	says("port 'p0' (0000:5e:00.0): the driver net_sfc cannot leave to others");
	says("rte_flow_isolate: not that one; set steering: software");
}

static void queues_without_a_match_share_what_the_port_receives(void **state)
{
	(void)state;
	assert_int_equal(configure(false, true, 2), 0);
	assert_int_equal(nic.isolated, 0);
	assert_int_equal(nic.conf.rxmode.mq_mode, RTE_ETH_MQ_RX_RSS);
	assert_true(nic.conf.rx_adv_conf.rss_conf.rss_hf ==
		(RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP));
	assert_int_equal(mr_port_start(&port, &err), 0);
	assert_int_equal(nic.promiscuous, 1);
	/* One queue gets all there is. */
	setup(state);
	assert_int_equal(configure(false, true, 1), 0);
	assert_int_equal(nic.conf.rxmode.mq_mode, RTE_ETH_MQ_RX_NONE);
	/* Queues of a virtual device have sources of their own; those of a NIC would starve. */
	setup(state);
	nic.rss = 0;
	assert_int_equal(configure(false, false, 2), 0);
	assert_int_equal(nic.conf.rxmode.mq_mode, RTE_ETH_MQ_RX_NONE);
	assert_int_equal(configure(false, true, 2), -ENOTSUP);
	says("cannot spread frames over 2 receive queues");
}

#define SPLIT (RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER)

static int configure_parts(uint32_t split_bytes, bool sends_parts)
{
	const struct mr_port_spec spec = {.name = "p0",
		.device = "0000:5e:00.0",
		.ifname = "",
		.pci = true,
		.sends_parts = sends_parts,
		.split_bytes = split_bytes,
		.mtu = 1500,
		.rx_queues = 1,
		.tx_queues = 1};

	return mr_port_configure(&port, &spec, &err);
}

static void frames_are_split_where_the_driver_offers_all_that_it_takes(void **state)
{
	(void)state;
	nic.rx_offloads = SPLIT | RTE_ETH_RX_OFFLOAD_CHECKSUM;
	nic.tx_offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	nic.parts = 2;
	nic.pools = true;
	assert_int_equal(configure_parts(128, true), 0);
	assert_true(nic.conf.rxmode.offloads == SPLIT);
	assert_true(nic.conf.txmode.offloads == RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
	assert_true(port.splits);
	/* Nothing of it is asked for where no lane wants it. */
	assert_int_equal(configure_parts(0, false), 0);
	assert_true(nic.conf.rxmode.offloads == 0 && nic.conf.txmode.offloads == 0);
	assert_false(port.splits);
}

static void a_driver_that_lacks_any_of_it_is_refused_by_name(void **state)
{
	static const struct {
		uint64_t rx, tx;
		uint32_t parts;
		bool pools;
		const char *says;
	} rows[] = {
		{RTE_ETH_RX_OFFLOAD_SCATTER, RTE_ETH_TX_OFFLOAD_MULTI_SEGS, 2, true,
			"net_sfc does not split frames over buffers of two pools"},
		{RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT, RTE_ETH_TX_OFFLOAD_MULTI_SEGS, 2, true,
			"(RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT); leave split.header_bytes out"},
		{SPLIT, RTE_ETH_TX_OFFLOAD_MULTI_SEGS, 1, true, "does not split frames"},
		{SPLIT, RTE_ETH_TX_OFFLOAD_MULTI_SEGS, 2, false, "does not split frames"},
		{SPLIT, 0, 2, true, "net_sfc does not send from several buffers"},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		nic.rx_offloads = rows[i].rx;
		nic.tx_offloads = rows[i].tx;
		nic.parts = rows[i].parts;
		nic.pools = rows[i].pools;
		assert_int_equal(configure_parts(128, true), -ENOTSUP);
		says("port 'p0' (0000:5e:00.0): the driver ");
		says(rows[i].says);
	}
	/* Whole frames ask for none of it. */
	nic.rx_offloads = nic.tx_offloads = nic.parts = 0;
	assert_int_equal(configure_parts(0, false), 0);
}

static void a_split_queue_receives_into_two_pools(void **state)
{
	struct rte_mempool *headers = (struct rte_mempool *)&nic.alive[1];
	struct rte_mempool *rests = (struct rte_mempool *)&nic.alive[2];

	(void)state;
	assert_int_equal(mr_port_split_queue(&port, 1, 512, headers, rests, 128, &err), 0);
	assert_null(nic.pool);
	assert_int_equal(nic.segs, 2);
	assert_ptr_equal(nic.seg[0].split.mp, headers);
	assert_int_equal(nic.seg[0].split.length, 128);
	assert_int_equal(nic.seg[0].split.offset, 0);
	assert_ptr_equal(nic.seg[1].split.mp, rests);
	assert_int_equal(nic.seg[1].split.length, 0); /* all that is left */
	assert_int_equal(nic.seg[1].split.offset, 0);
	assert_int_equal(mr_port_rx_queue(&port, 1, 512, headers, &err), 0);
	assert_ptr_equal(nic.pool, headers);
	assert_int_equal(nic.segs, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(ethertype_is_compared_in_front_of_what_it_names, setup),
		cmocka_unit_test_setup(addresses_are_prefixes_of_their_family, setup),
		cmocka_unit_test_setup(ports_are_of_udp_and_tcp_over_either_ip, setup),
		cmocka_unit_test_setup(vni_is_that_of_vxlan_behind_its_udp_port, setup),
		cmocka_unit_test_setup(one_lane_gets_its_queue_and_a_group_is_spread_over, setup),
		cmocka_unit_test_setup(a_rule_that_is_not_valid_keeps_all_from_being_made, setup),
		cmocka_unit_test_setup(a_rule_that_cannot_be_made_removes_those_before_it, setup),
		cmocka_unit_test_setup(the_item_of_an_error_names_the_field, setup),
		cmocka_unit_test_setup(a_group_is_refused_where_nothing_can_be_spread, setup),
		cmocka_unit_test_setup(an_isolated_port_takes_nothing_but_what_rules_name, setup),
		cmocka_unit_test_setup(queues_without_a_match_share_what_the_port_receives, setup),
		cmocka_unit_test_setup(
			frames_are_split_where_the_driver_offers_all_that_it_takes, setup),
		cmocka_unit_test_setup(a_driver_that_lacks_any_of_it_is_refused_by_name, setup),
		cmocka_unit_test_setup(a_split_queue_receives_into_two_pools, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
