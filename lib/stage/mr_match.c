/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_match.h"

#include "mr_stage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ETHERTYPE_IP4 0x0800u
#define ETHERTYPE_IP6 0x86ddu
#define PROTOCOL_TCP 6u
#define PROTOCOL_UDP 17u

static const struct mr_range any = {0, UINT32_MAX};

#define REFUSE(field, ...) (*ret_field = (field), mr_err_set(err, -EINVAL, __VA_ARGS__))

static bool given(const struct mr_range *r)
{
	return !mr_range_is_any(r);
}

/* The first field that only UDP and TCP have; NULL: none is given. */
static const char *field_of_ports(const struct mr_match *m)
{
	if (given(&m->dst_port))
		return "dst_port";
	if (given(&m->src_port))
		return "src_port";
	return given(&m->vni) ? "vni" : NULL;
}

static const char *field_of_ip(const struct mr_match *m)
{
	if (m->src.ip.family != 0)
		return "src";
	if (m->dst.ip.family != 0)
		return "dst";
	return given(&m->protocol) ? "protocol" : field_of_ports(m);
}

static int settle_prefix(const struct mr_prefix *p, const char *name, struct mr_match_settled *s,
	const char **ret_field, struct mr_err *err)
{
	if (p->ip.family == 0)
		return 0;
	s->ip &= p->ip.family == 4 ? MR_MATCH_IP4 : MR_MATCH_IP6;
	if (s->ip != 0)
		return 0;
	return REFUSE(name,
		"is an IPv%u prefix, but the fields before it leave no IPv%u frame: an address and "
		"the EtherType must be of one family",
		p->ip.family, p->ip.family);
}

static int settle_ip(const struct mr_match *m, struct mr_match_settled *s, const char **ret_field,
	struct mr_err *err)
{
	const char *field = field_of_ip(m);
	int rc;

	if (field == NULL)
		return 0;
	if (mr_range_has(&m->ethertype, ETHERTYPE_IP4))
		s->ip |= MR_MATCH_IP4;
	if (mr_range_has(&m->ethertype, ETHERTYPE_IP6))
		s->ip |= MR_MATCH_IP6;
	if (s->ip == 0)
		return REFUSE(field,
			"is a field of IP packets, but ethertype leaves out 0x0800 (IPv4) and "
			"0x86dd (IPv6)");
	s->m.ethertype = any;
	rc = settle_prefix(&m->src, "src", s, ret_field, err);
	return rc == 0 ? settle_prefix(&m->dst, "dst", s, ret_field, err) : rc;
}

static int settle_ports(const struct mr_match *m, struct mr_match_settled *s,
	const char **ret_field, struct mr_err *err)
{
	const char *field = field_of_ports(m);

	if (field == NULL)
		return 0;
	if (mr_range_has(&m->protocol, PROTOCOL_UDP))
		s->l4 |= MR_MATCH_UDP;
	if (mr_range_has(&m->protocol, PROTOCOL_TCP))
		s->l4 |= MR_MATCH_TCP;
	if (s->l4 == 0)
		return REFUSE(field,
			"is a field of UDP and TCP, but protocol leaves out 17 (UDP) and 6 (TCP)");
	s->m.protocol = any;
	if (!given(&m->vni))
		return 0;
	s->l4 &= MR_MATCH_UDP;
	if (s->l4 == 0)
		return REFUSE("vni", "is carried by UDP, but protocol leaves out 17 (UDP)");
	if (!mr_range_has(&m->dst_port, MR_MATCH_VXLAN_PORT))
		return REFUSE("vni",
			"is looked for behind UDP port %u, but dst_port leaves that out",
			MR_MATCH_VXLAN_PORT);
	s->m.dst_port = (struct mr_range){MR_MATCH_VXLAN_PORT, MR_MATCH_VXLAN_PORT};
	return 0;
}

int mr_match_settle(const struct mr_match *m, struct mr_match_settled *ret_settled,
	const char **ret_field, struct mr_err *err)
{
	int rc;

	*ret_settled = (struct mr_match_settled){.m = *m};
	if (field_of_ip(m) == NULL && !given(&m->ethertype) && !given(&m->vlan))
		return REFUSE("", "names no field, so every frame would match");
	rc = settle_ip(m, ret_settled, ret_field, err);
	return rc == 0 ? settle_ports(m, ret_settled, ret_field, err) : rc;
}

static bool ranges_meet(const struct mr_range *a, const struct mr_range *b)
{
	return a->from <= b->to && b->from <= a->to;
}

/* Of two prefixes of a family either one holds the other, or they have nothing in common. */
static bool prefixes_meet(const struct mr_prefix *a, const struct mr_prefix *b)
{
	const struct mr_prefix *wide = a->bits < b->bits ? a : b;

	return a->ip.family == 0 || b->ip.family == 0 ||
		mr_prefix_has(wide, wide == a ? &b->ip : &a->ip);
}

/* Whether it takes frames of that EtherType, its other fields aside. */
static bool takes_ip(const struct mr_match_settled *s, uint32_t ip)
{
	if (s->ip != 0)
		return (s->ip & ip) != 0;
	return mr_range_has(&s->m.ethertype, ip == MR_MATCH_IP4 ? ETHERTYPE_IP4 : ETHERTYPE_IP6);
}

static bool takes_protocol(const struct mr_match_settled *s, uint32_t protocol)
{
	if (s->l4 == 0)
		return mr_range_has(&s->m.protocol, protocol);
	return (protocol == PROTOCOL_UDP && (s->l4 & MR_MATCH_UDP) != 0) ||
		(protocol == PROTOCOL_TCP && (s->l4 & MR_MATCH_TCP) != 0);
}

static bool protocols_meet(const struct mr_match_settled *a, const struct mr_match_settled *b)
{
	for (uint32_t p = 0; p < 256; p++)
		if (takes_protocol(a, p) && takes_protocol(b, p))
			return true;
	return false;
}

bool mr_match_overlaps(const struct mr_match_settled *a, const struct mr_match_settled *b)
{
	bool types = false;

	for (uint32_t ip = MR_MATCH_IP4; ip <= MR_MATCH_IP6; ip++)
		types |= takes_ip(a, ip) && takes_ip(b, ip);
	if (a->ip == 0 && b->ip == 0)
		types = ranges_meet(&a->m.ethertype, &b->m.ethertype);
	return types && ranges_meet(&a->m.vlan, &b->m.vlan) && protocols_meet(a, b) &&
		ranges_meet(&a->m.src_port, &b->m.src_port) &&
		ranges_meet(&a->m.dst_port, &b->m.dst_port) && ranges_meet(&a->m.vni, &b->m.vni) &&
		prefixes_meet(&a->m.src, &b->m.src) && prefixes_meet(&a->m.dst, &b->m.dst);
}

/*
 * How many aligned blocks make up a range of a field of that many bits, and which is the
 * wanted one; at most 2 x bits - 2.
 */
static uint32_t take_block(
	const struct mr_range *r, uint32_t bits, uint32_t wanted, struct mr_masked *ret_block)
{
	uint32_t end = 1u << bits, count = 0;

	if (mr_range_is_any(r)) {
		*ret_block = (struct mr_masked){0, 0};
		return 1;
	}
	for (uint32_t from = r->from; from <= r->to;) {
		uint32_t size = from != 0 ? from & -from : end;

		while (size - 1 > r->to - from)
			size /= 2;
		if (count++ == wanted)
			*ret_block = (struct mr_masked){from, (end - 1) & ~(size - 1)};
		from += size;
	}
	return count;
}

/* The lowest bit that is set, or the one above it; 0 if none is. */
static uint32_t take_bit(uint32_t set, uint32_t wanted)
{
	uint32_t low = set & -set;

	return wanted == 0 ? low : set & ~low;
}

static uint32_t bits_of(uint32_t set)
{
	return set == 3 ? 2 : 1;
}

/* Splits i by a count: the remainder chooses, the rest goes on. */
static uint32_t digit(uint32_t *i, uint32_t count)
{
	uint32_t d = *i % count;

	*i /= count;
	return d;
}

static const struct {
	uint32_t bits;
	size_t from, to;
} ranges[] = {
#define RANGE(field, bits)                                                                         \
	{                                                                                          \
		bits, offsetof(struct mr_match, field), offsetof(struct mr_match_rule, field)      \
	}
	RANGE(ethertype, 16),
	RANGE(vlan, 12),
	RANGE(protocol, 8),
	RANGE(src_port, 16),
	RANGE(dst_port, 16),
	RANGE(vni, 24),
#undef RANGE
};

static const struct mr_range *range_of(const struct mr_match_settled *s, size_t k)
{
	return (const struct mr_range *)((const char *)&s->m + ranges[k].from);
}

static uint32_t tags_of(const struct mr_match_settled *s)
{
	return given(&s->m.vlan) ? 1 : 2;
}

uint32_t mr_match_rules(const struct mr_match_settled *s)
{
	/* Below 2^32 with the most blocks of every range. */
	uint32_t count = tags_of(s) * bits_of(s->ip) * bits_of(s->l4);
	struct mr_masked block;

	for (size_t k = 0; k < MR_ARRAY_LEN(ranges); k++)
		count *= take_block(range_of(s, k), ranges[k].bits, 0, &block);
	return count;
}

void mr_match_rule(const struct mr_match_settled *s, uint32_t i, struct mr_match_rule *ret_rule)
{
	*ret_rule = (struct mr_match_rule){.src = s->m.src, .dst = s->m.dst};
	ret_rule->tagged = digit(&i, tags_of(s)) == 1 || given(&s->m.vlan);
	ret_rule->ip = take_bit(s->ip, digit(&i, bits_of(s->ip)));
	ret_rule->l4 = take_bit(s->l4, digit(&i, bits_of(s->l4)));
	for (size_t k = 0; k < MR_ARRAY_LEN(ranges); k++) {
		struct mr_masked *to = (struct mr_masked *)((char *)ret_rule + ranges[k].to);
		const struct mr_range *r = range_of(s, k);
		uint32_t count = take_block(r, ranges[k].bits, 0, to);

		(void)take_block(r, ranges[k].bits, digit(&i, count), to);
	}
}

void mr_match_print(const struct mr_match *m, char *text, size_t bytes)
{
	const struct mr_stage_desc *stage = mr_stage_find("match");
	uint8_t params[MR_PARAM_BYTES] = {0};
	size_t used = 0;

	memcpy(params, m, sizeof(*m));
	*text = '\0';
	for (uint32_t i = 0; i < stage->params_count && used < bytes; i++) {
		char value[64];
		int n;

		if (!mr_match_is_field(&stage->params[i]))
			continue;
		mr_param_print(&stage->params[i], params, NULL, value, sizeof(value));
		if (strcmp(value, "any") == 0)
			continue;
		n = snprintf(text + used, bytes - used, "%s%s=%s", used > 0 ? " " : "",
			stage->params[i].name, value);
		used += n > 0 ? (size_t)n : 0;
	}
}
