/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reflect: answer, in place, what asks for the configured addresses. All else goes on.
 *
 *     ARP request (RFC 826)                     reply with `mac`
 *     ICMP echo (RFC 792), ICMPv6 (RFC 4443)    echo reply
 *     neighbour solicitation (RFC 4861)         advertisement with `mac`
 *     UDP echo (RFC 862)                        the same payload back
 *
 * Echoes keep the checksum of their payload (RFC 1624), so a damaged request gives a reply
 * that is damaged alike, and no byte of the payload is read. Not answered: fragments, packets
 * with IPv4 options or IPv6 extension headers, requests to or from a group address, and UDP
 * from the echo port itself, which would make two echo servers talk for ever.
 */
#include "mr_stage.h"

#define MR_REFLECT_ADDRESSES 16u
#define MR_REFLECT_TTL 64u

enum {
	MR_REFLECT_ARP,
	MR_REFLECT_ICMP,
	MR_REFLECT_ICMP6,
	MR_REFLECT_ND,
	MR_REFLECT_UDP,
};

struct mr_reflect_params {
	struct mr_ip address[MR_REFLECT_ADDRESSES];
	uint32_t addresses;
	struct mr_mac mac;
	uint32_t port, udp_port;
};

MR_HD int mr_reflect_is_ours(const struct mr_reflect_params *p, const struct mr_ip *ip)
{
	for (uint32_t i = 0; i < p->addresses && i < MR_REFLECT_ADDRESSES; i++)
		if (mr_ip_equal(&p->address[i], ip))
			return 1;
	return 0;
}

/* The answer goes where the question came from. */
MR_HD enum mr_flow mr_reflect_send(
	const struct mr_ctx *ctx, struct mr_view *v, uint32_t counter, int swap)
{
	const struct mr_reflect_params *p = (const struct mr_reflect_params *)ctx->params;

	if (swap)
		mr_swap(v, 0, 6, 6);
	mr_put_bytes(v, 6, p->mac.byte, 6);
	mr_count(ctx, counter, 1);
	return mr_send(v, p->port);
}

MR_HD enum mr_flow mr_reflect_arp(
	const struct mr_ctx *ctx, struct mr_view *v, const struct mr_headers *h)
{
	const struct mr_reflect_params *p = (const struct mr_reflect_params *)ctx->params;
	struct mr_ip ip = mr_get_ip(v, h->l3 + 24, 4);

	if (mr_get_be16(v, h->l3 + 6) != 1 || !mr_reflect_is_ours(p, &ip))
		return MR_NEXT;
	mr_put_be16(v, h->l3 + 6, 2);
	mr_swap(v, h->l3 + 8, h->l3 + 18, 10);
	mr_put_bytes(v, h->l3 + 8, p->mac.byte, 6);
	return mr_reflect_send(ctx, v, MR_REFLECT_ARP, 1);
}

/* RFC 4861 7.1.1: what a solicitation has to fulfil before it is answered. */
MR_HD int mr_reflect_is_solicitation(const struct mr_view *v, const struct mr_headers *h)
{
	uint32_t at = h->l4 + 24;
	int probe = (mr_get_be(v, h->l3 + 8, 8) | mr_get_be(v, h->l3 + 16, 8)) == 0;

	if (mr_get_u8(v, h->l3 + 7) != 255 || mr_get_u8(v, h->l4 + 1) != 0 || h->end < at ||
		mr_get_u8(v, h->l4 + 8) == 0xff)
		return 0;
	/* From :: only to a solicited-node address, ff02::1:ff00:0/104. */
	if (probe &&
		(mr_get_be(v, h->l3 + 24, 8) != 0xff02000000000000 ||
			mr_get_be(v, h->l3 + 32, 5) != 0x00000001ff))
		return 0;
	while (at < h->end) {
		uint32_t bytes = at + 1 < h->end ? mr_get_u8(v, at + 1) * 8 : 0;

		/* Nor does who has no address yet give one of his link (option 1). */
		if (bytes == 0 || bytes > h->end - at || (probe && mr_get_u8(v, at) == 1))
			return 0;
		at += bytes;
	}
	return mr_sum_transport_ok(v, h);
}

/* The advertisement: 24 bytes and one option of 8. To the one who asks, or from :: to all. */
MR_HD enum mr_flow mr_reflect_nd(
	const struct mr_ctx *ctx, struct mr_view *v, const struct mr_headers *h)
{
	const struct mr_reflect_params *p = (const struct mr_reflect_params *)ctx->params;
	struct mr_ip target = mr_get_ip(v, h->l4 + 8, 6), asks = mr_walked_source(v, h);
	int probe = (asks.word[0] | asks.word[1] | asks.word[2] | asks.word[3]) == 0;
	struct mr_headers reply = *h;

	if (asks.word[0] >> 24 == 0xff || !mr_reflect_is_ours(p, &target) ||
		!mr_reflect_is_solicitation(v, h) || !mr_view_resize(v, h->l4 + 32))
		return MR_NEXT;
	mr_put_be16(v, h->l3 + 4, 32);
	for (uint32_t i = 0; i < 4; i++) {
		mr_put_be32(v, h->l3 + 8 + 4 * i, target.word[i]);
		mr_put_be32(v, h->l3 + 24 + 4 * i, asks.word[i]);
		mr_put_be32(v, h->l4 + 8 + 4 * i, target.word[i]);
	}
	mr_swap(v, 0, 6, 6);
	if (probe) { /* RFC 4861 7.2.4 and RFC 2464 7: all nodes */
		mr_put_be(v, 0, 6, 0x333300000001);
		mr_put_be32(v, h->l3 + 24, 0xff020000);
		mr_put_be32(v, h->l3 + 36, 1);
	}
	mr_put_be32(v, h->l4, 136u << 24);
	mr_put_be32(v, h->l4 + 4, probe ? 0x20000000 : 0x60000000); /* override, solicited */
	mr_put_be16(v, h->l4 + 24, 0x0201);
	mr_put_bytes(v, h->l4 + 26, p->mac.byte, 6);
	reply.end = h->l4 + 32;
	mr_put_be16(v, h->l4 + 2,
		mr_sum_end((uint64_t)mr_sum_bytes(v, h->l4, 32) + mr_sum_pseudo(v, &reply)));
	return mr_reflect_send(ctx, v, MR_REFLECT_ND, 0);
}

/* Which counter an echo request belongs to, and its answer's type; -1: it is none. */
MR_HD int mr_reflect_echo(
	const struct mr_reflect_params *p, const struct mr_view *v, const struct mr_headers *h)
{
	uint32_t word = mr_get_be16(v, h->l4);

	if ((h->has & MR_HAS_ICMP) != 0 && word == 0x0800)
		return MR_REFLECT_ICMP;
	if ((h->has & MR_HAS_ICMP6) != 0 && word == 0x8000)
		return MR_REFLECT_ICMP6;
	if ((h->has & MR_HAS_UDP) != 0 && p->udp_port != 0 && word != p->udp_port &&
		mr_get_be16(v, h->l4 + 2) == p->udp_port)
		return MR_REFLECT_UDP;
	return -1;
}

MR_HD enum mr_flow mr_reflect_ip(
	const struct mr_ctx *ctx, struct mr_view *v, const struct mr_headers *h)
{
	const struct mr_reflect_params *p = (const struct mr_reflect_params *)ctx->params;
	struct mr_ip to = mr_walked_target(v, h), from = mr_walked_source(v, h);
	int ipv4 = (h->has & MR_HAS_IPV4) != 0, echo = mr_reflect_echo(p, v, h);
	uint32_t first = from.word[0] >> 24, at, was;

	if (echo < 0 || !mr_reflect_is_ours(p, &to) || first >= (ipv4 ? 224u : 255u) ||
		(from.word[0] | from.word[1] | from.word[2] | from.word[3]) == 0)
		return MR_NEXT;
	if (ipv4) {
		was = mr_get_be16(v, h->l3 + 8);
		mr_put_u8(v, h->l3 + 8, MR_REFLECT_TTL);
		mr_put_be16(v, h->l3 + 10,
			mr_sum_replace(mr_get_be16(v, h->l3 + 10), was,
				(was & 0xff) | MR_REFLECT_TTL << 8));
		mr_swap(v, h->l3 + 12, h->l3 + 16, 4);
	} else {
		mr_put_u8(v, h->l3 + 7, MR_REFLECT_TTL);
		mr_swap(v, h->l3 + 8, h->l3 + 24, 16);
	}
	if (echo == MR_REFLECT_UDP) {
		mr_swap(v, h->l4, h->l4 + 2, 2);
	} else {
		at = h->l4 + 2;
		was = mr_get_be16(v, h->l4);
		mr_put_be16(v, h->l4, ipv4 ? 0x0000 : 0x8100);
		mr_put_be16(v, at, mr_sum_replace(mr_get_be16(v, at), was, ipv4 ? 0x0000 : 0x8100));
	}
	return mr_reflect_send(ctx, v, (uint32_t)echo, 1);
}

MR_HD enum mr_flow mr_stage_reflect(const struct mr_ctx *ctx, struct mr_view *v)
{
	struct mr_headers h;

	mr_walk(v, 0, &h);
	if ((mr_get_u8(v, 6) & 1) != 0)
		return MR_NEXT;
	if ((h.has & MR_HAS_ARP) != 0)
		return mr_reflect_arp(ctx, v, &h);
	if ((h.has & (MR_HAS_OPTIONS | MR_HAS_FRAGMENT | MR_HAS_MALFORMED)) != 0)
		return MR_NEXT;
	if ((h.has & MR_HAS_ICMP6) != 0 && mr_get_u8(v, h.l4) == 135)
		return mr_reflect_nd(ctx, v, &h);
	if ((h.has & (MR_HAS_ICMP | MR_HAS_ICMP6 | MR_HAS_UDP)) == 0 || (mr_get_u8(v, 0) & 1) != 0)
		return MR_NEXT;
	return mr_reflect_ip(ctx, v, &h);
}

#if defined(MR_STAGE_DESCRIBE)
static const struct mr_param_desc reflect_params[] = {
	{.name = "addresses",
		.type = MR_PARAM_IP,
		.offset = offsetof(struct mr_reflect_params, address),
		.list_max = MR_REFLECT_ADDRESSES,
		.count_offset = offsetof(struct mr_reflect_params, addresses),
		.def = "",
		.unit = "",
		.help = "what is answered for"},
	{.name = "mac",
		.type = MR_PARAM_MAC,
		.offset = offsetof(struct mr_reflect_params, mac),
		.def = "02:4d:52:00:00:01",
		.unit = "",
		.help = "Ethernet address of the answers, and in those of ARP and neighbour "
			"discovery"},
	{.name = "port",
		.type = MR_PARAM_PORT,
		.offset = offsetof(struct mr_reflect_params, port),
		.def = "0",
		.unit = "",
		.help = "where answers go"},
	{.name = "udp_port",
		.type = MR_PARAM_U32,
		.offset = offsetof(struct mr_reflect_params, udp_port),
		.max = 65535,
		.def = "7",
		.unit = "",
		.help = "UDP port that echoes; 0: none"},
};

static const struct mr_stage_counter reflect_counters[] = {
	[MR_REFLECT_ARP] = {"arp", "ARP requests answered"},
	[MR_REFLECT_ICMP] = {"icmp", "ICMP echo requests answered"},
	[MR_REFLECT_ICMP6] = {"icmp6", "ICMPv6 echo requests answered"},
	[MR_REFLECT_ND] = {"nd", "IPv6 neighbour solicitations answered"},
	[MR_REFLECT_UDP] = {"udp", "UDP datagrams echoed"},
};

const struct mr_stage_desc mr_stage_desc_reflect = {
	.name = "reflect",
	.help = "answer ARP, ICMP and ICMPv6 echo, neighbour discovery and UDP echo for addresses",
	.id = MR_STAGE_reflect,
	.work = MR_WORK_THREAD,
	.params = reflect_params,
	.params_count = MR_ARRAY_LEN(reflect_params),
	.counters = reflect_counters,
	.counters_count = MR_ARRAY_LEN(reflect_counters),
};
#endif
