/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_route - the table of the route stage: longest prefixes as intervals of addresses.
 *
 * Prefixes nest, so N of them cut the addresses of a family into at most 2 N + 1 intervals
 * whose longest prefix is one and the same; neighbours with the same hop are one. A lookup
 * is a search among their first addresses:
 *
 *     IPv4  address ─ first bits ─► index ─ search ─► interval ─► hop
 *     IPv6  address ─────────────────────────── search ─► interval ─► hop
 *
 * For 100,000 prefixes of a family that is at most 18 steps, and for IPv4, where the index
 * has narrowed it to one 65536th of all addresses, usually two or three in one cache line.
 * The table takes 2 N x 8 or 20 bytes whatever the prefixes are, so its capacity is exact.
 *
 * Offsets are bytes from the start of the table.
 */
#ifndef MR_ROUTE_H
#define MR_ROUTE_H

#include "mr_interval.h"
#include "mr_packet.h"

#define MR_ROUTE_ROUTES_MAX (1u << 20)
#define MR_ROUTE_INDEX_BITS 16u /* of an IPv4 address, at most */

enum mr_route_kind {
	MR_ROUTE_NONE, /* no prefix holds the address */
	MR_ROUTE_VIA,  /* to mac, by port */
	MR_ROUTE_PASS, /* to the next stage as it is */
	MR_ROUTE_DROP,
};

struct mr_route_hop {
	uint8_t mac[6];
	uint8_t kind; /* enum mr_route_kind */
	uint8_t port; /* index into the tx list */
};

struct mr_route_family {
	uint32_t bounds; /* offset of uint32_t [count], or [count][4] for IPv6 */
	uint32_t hops;   /* offset of uint32_t [count]: numbers of hops */
	uint32_t count;  /* intervals, at least 1 */
};

struct mr_route_table {
	struct mr_route_family v4, v6;
	uint32_t index; /* offset of uint32_t []: the interval of i << shift, for all i, and then
			   the last interval */
	uint32_t shift; /* 16 to 31: the index has as many entries as there are intervals */
	uint32_t hop;   /* offset of struct mr_route_hop []; the first is of no prefix */
};

MR_HD const void *mr_route_at(const struct mr_route_table *t, uint32_t offset)
{
	return (const uint8_t *)t + offset;
}

/* mr_route_find gives the hop of an address of either family. */
MR_HD const struct mr_route_hop *mr_route_find(
	const struct mr_route_table *t, const struct mr_ip *ip)
{
	const struct mr_route_family *f = ip->family == 4 ? &t->v4 : &t->v6;
	const uint32_t *bounds = (const uint32_t *)mr_route_at(t, f->bounds);
	uint32_t at;

	if (ip->family == 4) {
		const uint32_t *index = (const uint32_t *)mr_route_at(t, t->index);
		uint32_t first = index[ip->word[0] >> t->shift];
		uint32_t last = index[(ip->word[0] >> t->shift) + 1];

		at = first + mr_interval_search(bounds + first, last - first + 1, ip->word[0]);
	} else {
		at = mr_interval_search_6(bounds, f->count, ip);
	}
	return (const struct mr_route_hop *)mr_route_at(t, t->hop) +
		((const uint32_t *)mr_route_at(t, f->hops))[at];
}

#if !defined(__CUDACC__)
#include "mr_table.h"

/* Of a table with at most so many routes. */
size_t mr_route_bytes(uint32_t routes_max);

/*
 * mr_route_build makes the table of the routes in text; struct mr_table_desc says how. Ports
 * are names or numbers of env.
 */
MR_MUST_USE int mr_route_build(struct mr_table_text *text, uint32_t routes_max,
	const struct mr_param_env *env, void *table, size_t *ret_bytes);
#endif

#endif
