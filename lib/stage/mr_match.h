/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_match - which frames: the fields of struct mr_match, and what they mean.
 *
 *     match: {vlan: 100, dst_port: 53}            as written; the rows of stage `match`
 *           │ the plan
 *           ▼
 *     struct mr_match ─────────────► stage `match`, on the GPU: looks at each frame
 *           │ mr_match_settle
 *           ▼
 *     struct mr_match_settled ── mr_match_rule, i of mr_match_rules ─► rules of a NIC
 *
 * A frame matches when every field that is not `any` is there and is within its range or
 * prefix. EtherType is that behind all tags, VLAN the id of the outermost tag, addresses,
 * protocol and ports those of the outermost IP packet, VNI that of VXLAN on UDP port 4789.
 *
 * A NIC's rule is one conjunction of fields under masks, over headers that it names. So a
 * match is settled first: what its fields imply (ports: UDP or TCP, an IPv4 prefix: IPv4)
 * is made explicit, and fields that exclude each other are refused. Then it is taken apart
 * into rules: one for each kind of frame that it allows and each aligned block of its
 * ranges. Where a NIC and the stage differ: a NIC looks at the first header behind the
 * fixed one of IPv6 where the stage walks extension headers, and behind more than one tag
 * only if its driver says so.
 *
 * The upper half is read by both compilers, the lower by the host. Pure; any thread.
 * Source   RFC 768, 791, 7348, 8200, 9293; IEEE 802.1Q
 */
#ifndef MR_MATCH_H
#define MR_MATCH_H

#include "mr_param.h"

struct mr_match {
	struct mr_range ethertype, vlan, protocol, src_port, dst_port, vni;
	struct mr_prefix src, dst;
};

#if !defined(__CUDACC__)
#include "mr_err.h"

#include <stdbool.h>

#define MR_MATCH_RULES_MAX 64u /* of a NIC, for one match: a NIC's first table is small */
#define MR_MATCH_VXLAN_PORT 4789u

enum {
	MR_MATCH_IP4 = 1,
	MR_MATCH_IP6 = 2,
};

enum {
	MR_MATCH_UDP = 1,
	MR_MATCH_TCP = 2,
};

/* Two matches that take the same frames for the same reason are equal byte by byte. */
struct mr_match_settled {
	struct mr_match m; /* ethertype is any where ip says it, protocol where l4 does */
	uint32_t ip;       /* MR_MATCH_IP4, _IP6 or both; 0: no field needs IP */
	uint32_t l4;       /* MR_MATCH_UDP, _TCP or both; 0: no field needs ports */
};

/* A field as a NIC compares it: frame & mask == value; mask 0 is any. */
struct mr_masked {
	uint32_t value, mask;
};

struct mr_match_rule {
	bool tagged;     /* a tag in front of what follows */
	uint32_t ip, l4; /* one bit of them, or 0: that header is not named */
	struct mr_masked ethertype, vlan, protocol, src_port, dst_port, vni;
	struct mr_prefix src, dst; /* of the family of ip, or family 0 */
};

/*
 * mr_match_settle: 0, or -EINVAL where no frame, or every one, could match; then err says why
 * and *ret_field names the field at fault ("" for the whole).
 */
MR_MUST_USE int mr_match_settle(const struct mr_match *m, struct mr_match_settled *ret_settled,
	const char **ret_field, struct mr_err *err);

/* mr_match_overlaps tells whether one frame can match both. */
bool mr_match_overlaps(const struct mr_match_settled *a, const struct mr_match_settled *b);

/* mr_match_rules gives the number of rules, which may be far above MR_MATCH_RULES_MAX. */
uint32_t mr_match_rules(const struct mr_match_settled *s);

/* mr_match_rule gives rule i of them. */
void mr_match_rule(const struct mr_match_settled *s, uint32_t i, struct mr_match_rule *ret_rule);

/* mr_match_is_field tells whether a row of stage `match` is a field of frames. */
static inline bool mr_match_is_field(const struct mr_param_desc *row)
{
	return row->offset < sizeof(struct mr_match);
}

/* mr_match_print writes the fields that are not any: "vlan=100 dst_port=53". */
void mr_match_print(const struct mr_match *m, char *text, size_t bytes);

#endif
#endif
