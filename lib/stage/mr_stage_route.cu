/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route: forward IPv4 and IPv6 by the longest prefix, as a router does.
 *
 *     # prefix, and where to
 *     10.0.0.0/8        via 02:00:5e:00:53:01 port up
 *     2001:db8::/32     via 02:00:5e:00:53:02 port 1
 *     10.9.0.1          pass      # to the next stage: what is this router's own
 *     10.66.0.0/16      drop
 *
 * Taken are frames for `mac`, all else goes on to the next stage. A packet that is forwarded
 * loses one of its TTL or hop limit, with the checksum updated from that (RFC 1624), and gets
 * the hop's address and `mac` as Ethernet addresses. Its transport header is not looked at.
 *
 * A packet whose TTL ends here is answered with time exceeded, and one that no prefix holds
 * with destination unreachable (RFC 792, RFC 4443), from the first of `addresses` that is of
 * its family and by the route back; without these it is dropped. The answer is made in the packet's
 * own buffer, in front of it, and quotes as much as fits 576 bytes (RFC 1812 4.3.2.3) or 1280 (RFC
 * 4443 3.1). Not answered are ICMP errors, later fragments and frames without room in front (RFC
 * 1122 3.2.2, RFC 4443 2.4 e). What goes to or claims to come from more or less than one host, or a
 * link-local address, is neither forwarded nor answered, but a route may pass it on.
 * A lane sends no more answers than `errors_per_second`, and `errors_burst` of them at once (RFC
 * 1812 4.3.2.8, RFC 4443 2.4 f); what that holds back is dropped and counted as `limited`.
 *
 * No route of the packet's own is used (options and extension headers are left alone), and
 * none is fragmented: the plan sees that a port takes what another receives.
 */
#include "mr_limit.h"
#include "mr_route.h"
#include "mr_stage.h"

#define MR_ROUTE_TTL 64u
#define MR_ROUTE_ADDRESSES 2u
#define MR_ROUTE_QUOTE4 (576u - 28u)
#define MR_ROUTE_QUOTE6 (1280u - 48u)

enum {
	MR_ROUTE_FORWARDED,
	MR_ROUTE_PASSED,
	MR_ROUTE_DROPPED,
	MR_ROUTE_NO_ROUTE,
	MR_ROUTE_HOP_LIMIT,
	MR_ROUTE_ANSWERED,
	MR_ROUTE_MALFORMED,
	MR_ROUTE_LIMITED,
	MR_ROUTE_MARTIAN,
};

struct mr_route_params {
	struct mr_mac mac;
	struct mr_ip address[MR_ROUTE_ADDRESSES];
	uint32_t addresses, routes_max, errors_per_second, errors_burst;
	char routes[MR_PARAM_FILE_MAX];
};

/* Whether an address is one that a single host may send from (RFC 1122 3.2.1.3, RFC 4291). */
MR_HD int mr_route_is_host(const struct mr_ip *ip)
{
	uint32_t first = ip->word[0] >> 24;

	if (ip->family == 4)
		return first != 0 && first != 127 && first < 224;
	return first != 0xff && (ip->word[0] | ip->word[1] | ip->word[2] | ip->word[3] >> 1) != 0;
}

/*
 * Whether a packet from or to it is forwarded, and answered with an ICMP error. Link-local
 * addresses stay on their link (RFC 3927 7, RFC 4291 2.5.6), and those of no host or of many
 * are no unicast router's (RFC 1812 5.3.7, RFC 4291 2.5.2 and 2.5.3).
 */
MR_HD int mr_route_travels(const struct mr_ip *ip)
{
	if (ip->family == 4)
		return mr_route_is_host(ip) && ip->word[0] >> 16 != 0xa9fe;
	return mr_route_is_host(ip) && ip->word[0] >> 22 != 0xfe80 >> 6;
}

/* This router's address of a family, or NULL. */
MR_HD const struct mr_ip *mr_route_own(const struct mr_route_params *p, uint32_t family)
{
	for (uint32_t i = 0; i < p->addresses && i < MR_ROUTE_ADDRESSES; i++)
		if (p->address[i].family == family)
			return &p->address[i];
	return NULL;
}

/* Whether the walked packet may be answered with an ICMP error. */
MR_HD int mr_route_may_answer(const struct mr_view *v, const struct mr_headers *h)
{
	uint32_t type = mr_get_u8(v, h->l4);

	if ((h->has & MR_HAS_LATER) != 0 || h->l4 == 0)
		return 0;
	/* Behind `end` lies padding. */
	if ((h->has & MR_HAS_IPV4) != 0)
		return h->protocol != MR_IP_ICMP ||
			(h->l4 < h->end && (type == 0 || type == 8 || type >= 13));
	/* Errors are below 128, and a redirect is not answered either. */
	return h->protocol != MR_IP_ICMP6 || (h->l4 < h->end && type >= 128 && type != 137);
}

/*
 * The IP and ICMP headers at l3, in front of the quoted packet, whose source they go to; type
 * and code are two bytes.
 */
MR_HD void mr_route_write_4(const struct mr_view *v, uint32_t l3, uint32_t quote, uint32_t type,
	const struct mr_ip *own)
{
	mr_put_be32(v, l3, 0x45c00000 | (28 + quote)); /* internetwork control, RFC 1812 4.3.2.5 */
	mr_put_be32(v, l3 + 4, 0x00004000);
	mr_put_be32(v, l3 + 8, MR_ROUTE_TTL << 24 | MR_IP_ICMP << 16);
	mr_put_be32(v, l3 + 12, own->word[0]);
	mr_put_be32(v, l3 + 16, mr_get_be32(v, l3 + 28 + 12));
	mr_put_be16(v, l3 + 10, mr_sum_end(mr_sum_bytes(v, l3, 20)));
	mr_put_be(v, l3 + 20, 8, (uint64_t)type << 48);
	mr_put_be16(v, l3 + 22, mr_sum_end(mr_sum_bytes(v, l3 + 20, 8 + quote)));
}

MR_HD void mr_route_write_6(const struct mr_view *v, uint32_t l3, uint32_t quote, uint32_t type,
	const struct mr_ip *own)
{
	mr_put_be32(v, l3, 0x60000000);
	mr_put_be32(v, l3 + 4, (8 + quote) << 16 | MR_IP_ICMP6 << 8 | MR_ROUTE_TTL);
	for (uint32_t i = 0; i < 4; i++) {
		mr_put_be32(v, l3 + 8 + 4 * i, own->word[i]);
		mr_put_be32(v, l3 + 24 + 4 * i, mr_get_be32(v, l3 + 48 + 8 + 4 * i));
	}
	mr_put_be(v, l3 + 40, 8, (uint64_t)type << 48);
	/* With the pseudo header: both addresses, length and protocol. */
	mr_put_be16(v, l3 + 42,
		mr_sum_end((uint64_t)mr_sum_bytes(v, l3 + 8, 32 + 8 + quote) + 8 + quote +
			MR_IP_ICMP6));
}

/*
 * Turns the packet into an ICMP error to its source, or drops it. type is 11 << 8 or 3 << 8
 * of IPv4, whose counterparts of IPv6 are 3 << 8 and 1 << 8.
 */
MR_HD enum mr_flow mr_route_answer(
	const struct mr_ctx *ctx, struct mr_view *v, const struct mr_headers *h, uint32_t type)
{
	const struct mr_route_params *p = (const struct mr_route_params *)ctx->params;
	int ipv4 = (h->has & MR_HAS_IPV4) != 0;
	uint32_t grow = ipv4 ? 28 : 48, most = ipv4 ? MR_ROUTE_QUOTE4 : MR_ROUTE_QUOTE6;
	/* What the IP header says, not the transport's. */
	uint32_t quote = ipv4 ? mr_get_be16(v, h->l3 + 2) : 40 + mr_get_be16(v, h->l3 + 4);
	const struct mr_ip *own = mr_route_own(p, ipv4 ? 4 : 6);
	const struct mr_route_hop *hop;
	struct mr_ip to;

	if (ctx->table == NULL || own == NULL || !mr_route_may_answer(v, h))
		return mr_drop(v, MR_REASON_policy);
	to = mr_walked_source(v, h);
	hop = mr_route_find((const struct mr_route_table *)ctx->table, &to);
	if (hop->kind != MR_ROUTE_VIA || !mr_view_push(v, grow))
		return mr_drop(v, MR_REASON_policy);
	if (p->errors_per_second != 0 && ctx->state != NULL &&
		!mr_limit_take((uint64_t *)ctx->state, ctx->now_ns, p->errors_per_second,
			p->errors_burst)) {
		mr_count(ctx, MR_ROUTE_LIMITED, 1);
		return mr_drop(v, MR_REASON_policy);
	}
	quote = quote < most ? quote : most;
	/* The EtherType and tags go to the front; Ethernet addresses are written anew. */
	MR_ROLLED
	for (uint32_t i = 12; i < h->l3; i++)
		v->frame[i] = v->frame[i + grow];
	mr_put_bytes(v, 0, hop->mac, 6);
	mr_put_bytes(v, 6, p->mac.byte, 6);
	if (ipv4)
		mr_route_write_4(v, h->l3, quote, type, own);
	else
		mr_route_write_6(v, h->l3, quote, type == 11 << 8 ? 3 << 8 : 1 << 8, own);
	(void)mr_view_resize(v, h->l3 + grow + quote);
	mr_count(ctx, MR_ROUTE_ANSWERED, 1);
	return mr_send(v, hop->port);
}

MR_HD enum mr_flow mr_route_forward(const struct mr_ctx *ctx, struct mr_view *v,
	const struct mr_headers *h, const struct mr_route_hop *hop)
{
	const struct mr_route_params *p = (const struct mr_route_params *)ctx->params;
	int ipv4 = (h->has & MR_HAS_IPV4) != 0;
	uint32_t at = ipv4 ? h->l3 + 8 : h->l3 + 7, ttl = mr_get_u8(v, at), word;

	if (ttl <= 1) {
		mr_count(ctx, MR_ROUTE_HOP_LIMIT, 1);
		return mr_route_answer(ctx, v, h, 11 << 8);
	}
	if (ipv4) {
		word = mr_get_be16(v, at);
		mr_put_be16(v, h->l3 + 10,
			mr_sum_replace(mr_get_be16(v, h->l3 + 10), word, word - 0x100));
	}
	mr_put_u8(v, at, ttl - 1);
	mr_put_bytes(v, 0, hop->mac, 6);
	mr_put_bytes(v, 6, p->mac.byte, 6);
	mr_count(ctx, MR_ROUTE_FORWARDED, 1);
	return mr_send(v, hop->port);
}

MR_HD enum mr_flow mr_stage_route(const struct mr_ctx *ctx, struct mr_view *v)
{
	const struct mr_route_params *p = (const struct mr_route_params *)ctx->params;
	const struct mr_route_hop *hop = NULL;
	struct mr_headers h;
	struct mr_ip to, from;

	if (!mr_equal(v, 0, p->mac.byte, 6))
		return MR_NEXT;
	mr_walk(v, 0, &h);
	if (h.ethertype != MR_ETHER_IPV4 && h.ethertype != MR_ETHER_IPV6)
		return MR_NEXT;
	if ((h.has & (MR_HAS_IPV4 | MR_HAS_IPV6)) == 0 ||
		((h.has & MR_HAS_IPV4) != 0 && !mr_sum_ipv4_ok(v, &h))) {
		mr_count(ctx, MR_ROUTE_MALFORMED, 1);
		return mr_drop(v, MR_REASON_malformed);
	}
	to = mr_walked_target(v, &h);
	from = mr_walked_source(v, &h);
	if (ctx->table != NULL)
		hop = mr_route_find((const struct mr_route_table *)ctx->table, &to);
	if (hop != NULL && hop->kind == MR_ROUTE_PASS) {
		mr_count(ctx, MR_ROUTE_PASSED, 1);
		return MR_NEXT;
	}
	if (hop != NULL && hop->kind == MR_ROUTE_DROP) {
		mr_count(ctx, MR_ROUTE_DROPPED, 1);
		return mr_drop(v, MR_REASON_policy);
	}
	if (!mr_route_travels(&from) || !mr_route_travels(&to)) {
		mr_count(ctx, MR_ROUTE_MARTIAN, 1);
		return mr_drop(v, MR_REASON_policy);
	}
	if (hop != NULL && hop->kind == MR_ROUTE_VIA)
		return mr_route_forward(ctx, v, &h, hop);
	mr_count(ctx, MR_ROUTE_NO_ROUTE, 1);
	return mr_route_answer(ctx, v, &h, 3 << 8);
}

#if defined(MR_STAGE_DESCRIBE)
static const struct mr_param_desc route_params[] = {
	{.name = "routes",
		.type = MR_PARAM_FILE,
		.offset = offsetof(struct mr_route_params, routes),
		.def = "",
		.unit = "",
		.help = "file of routes, a line each: a prefix, then via MAC port PORT, pass or "
			"drop"},
	{.name = "routes_max",
		.type = MR_PARAM_U32,
		.offset = offsetof(struct mr_route_params, routes_max),
		.min = 1,
		.max = MR_ROUTE_ROUTES_MAX,
		.def = "1000",
		.unit = "routes",
		.help = "most routes that a reload may bring; 1000 take 1 MiB of GPU memory, "
			"100000 "
			"take 14"},
	{.name = "mac",
		.type = MR_PARAM_MAC,
		.offset = offsetof(struct mr_route_params, mac),
		.def = "02:4d:52:00:00:01",
		.unit = "",
		.help = "Ethernet address of this router, on all its ports"},
	{.name = "addresses",
		.type = MR_PARAM_IP,
		.offset = offsetof(struct mr_route_params, address),
		.list_max = MR_ROUTE_ADDRESSES,
		.count_offset = offsetof(struct mr_route_params, addresses),
		.def = "",
		.unit = "",
		.help = "where ICMP errors come from, one for each family; without it there are "
			"none; ports take them with an mtu of 576, for IPv6 1280"},
	{.name = "errors_per_second",
		.type = MR_PARAM_U32,
		.offset = offsetof(struct mr_route_params, errors_per_second),
		.max = MR_LIMIT_RATE_MAX,
		.def = "1000",
		.unit = "errors",
		.help = "most ICMP errors that a lane sends in a second, in the long run; 0: as "
			"many as are due"},
	{.name = "errors_burst",
		.type = MR_PARAM_U32,
		.offset = offsetof(struct mr_route_params, errors_burst),
		.min = 1,
		.max = MR_LIMIT_BURST_MAX,
		.def = "50",
		.unit = "errors",
		.help = "how many of them may be sent at once, after a pause"},
};

/* The word of mr_limit_take. */
static uint64_t route_state_bytes(const uint8_t params[MR_PARAM_BYTES])
{
	(void)params;
	return sizeof(uint64_t);
}

static const struct mr_state_desc route_state = {route_state_bytes, NULL, NULL};

static size_t route_bytes(const uint8_t params[MR_PARAM_BYTES])
{
	return mr_route_bytes(((const struct mr_route_params *)params)->routes_max);
}

static int route_build(struct mr_table_text *text, const uint8_t params[MR_PARAM_BYTES],
	const struct mr_param_env *env, void *table, size_t *ret_bytes)
{
	return mr_route_build(
		text, ((const struct mr_route_params *)params)->routes_max, env, table, ret_bytes);
}

static const struct mr_table_desc route_table = {"routes", "routes_max", route_bytes, route_build};

static const struct mr_stage_counter route_counters[] = {
	[MR_ROUTE_FORWARDED] = {"forwarded", "packets sent to a next hop"},
	[MR_ROUTE_PASSED] = {"passed", "packets of a route that passes them to the next stage"},
	[MR_ROUTE_DROPPED] = {"dropped", "packets of a route that drops them"},
	[MR_ROUTE_NO_ROUTE] = {"no_route", "packets that no prefix holds"},
	[MR_ROUTE_HOP_LIMIT] = {"hop_limit", "packets whose TTL or hop limit ended here"},
	[MR_ROUTE_ANSWERED] = {"answered", "ICMP errors sent for these; the others were dropped"},
	[MR_ROUTE_LIMITED] = {"limited", "ICMP errors that the limit of their rate held back"},
	[MR_ROUTE_MALFORMED] = {"malformed", "IP headers that contradict or have a wrong checksum"},
	[MR_ROUTE_MARTIAN] = {"martian",
		"packets from or to addresses that no router forwards (RFC 1812 5.3.7)"},
};

const struct mr_stage_desc mr_stage_desc_route = {
	.name = "route",
	.help = "forward IPv4 and IPv6 by the longest prefix, with ICMP errors",
	.id = MR_STAGE_route,
	.work = MR_WORK_THREAD,
	.timed = true,
	.params = route_params,
	.params_count = MR_ARRAY_LEN(route_params),
	.table = &route_table,
	.counters = route_counters,
	.counters_count = MR_ARRAY_LEN(route_counters),
	.state = &route_state,
};
#endif
