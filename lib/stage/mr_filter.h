/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_filter - the table of the filter stage: rules as sets of bits, a field at a time.
 *
 * Where the rules' ranges of a field begin and end, the field is cut into intervals; all
 * values in one meet the same rules. An interval names that set: a bit for each rule, the
 * first rule lowest, with a summary in front whose bit w says that word w is not 0.
 *
 *     source ─ search ─► set ┐
 *     target ─ search ─► set ┤
 *     protocol ────────► set ┼ and ─► lowest bit ─► rule
 *     ports ───────────► sets┘
 *
 * So a packet costs five searches of at most 16 steps and, for 10,000 rules, 3 words of
 * summaries and those of 157 words in which all five have rules: bounded whatever rules and
 * packets are (the bit vectors of Lakshman and Stiliadis, SIGCOMM 1998, with the aggregation
 * of Baboescu and Varghese, SIGCOMM 2001). Equal sets are stored once; addresses are
 * prefixes, which nest, so those have no more sets than rules.
 *
 * Offsets are bytes from the start of the table. Numbers are in the order of the machine,
 * 128-bit bounds their highest 32 bits first.
 */
#ifndef MR_FILTER_H
#define MR_FILTER_H

#include "mr_interval.h"
#include "mr_packet.h"

#define MR_FILTER_RULES_MAX 10000u
#define MR_FILTER_NO_PORT 65536u /* the port of what has none */

enum mr_filter_action {
	MR_FILTER_PERMIT,
	MR_FILTER_DENY,
	MR_FILTER_COUNT, /* and look further */
};

/* A field's intervals (mr_interval.h). */
struct mr_filter_field {
	uint32_t bounds; /* offset of uint32_t [count], or [count][4] for IPv6 */
	uint32_t sets;   /* offset of uint32_t [count]: numbers of sets */
	uint32_t count;  /* at least 1 */
};

enum mr_filter_field_id {
	MR_FILTER_SRC4,
	MR_FILTER_DST4,
	MR_FILTER_SRC6,
	MR_FILTER_DST6,
	MR_FILTER_PROTOCOL,
	MR_FILTER_SRC_PORT,
	MR_FILTER_DST_PORT,
	MR_FILTER_FIELDS,
};

struct mr_filter_table {
	uint32_t rules;
	uint32_t summary; /* words of 64 bits in front of a set */
	uint32_t stride;  /* words of a set, the summary among them */
	uint32_t sets;    /* offset of uint64_t [][stride] */
	uint32_t actions; /* offset of uint8_t [rules], enum mr_filter_action */
	struct mr_filter_field field[MR_FILTER_FIELDS];
};

MR_HD const void *mr_filter_at(const struct mr_filter_table *t, uint32_t offset)
{
	return (const uint8_t *)t + offset;
}

/* Where the set of an interval begins, in words behind t->sets. */
MR_HD uint32_t mr_filter_set(
	const struct mr_filter_table *t, const struct mr_filter_field *f, uint32_t interval)
{
	return ((const uint32_t *)mr_filter_at(t, f->sets))[interval] * t->stride;
}

MR_HD uint32_t mr_filter_by_number(
	const struct mr_filter_table *t, const struct mr_filter_field *f, uint32_t key)
{
	return mr_filter_set(t, f,
		mr_interval_search((const uint32_t *)mr_filter_at(t, f->bounds), f->count, key));
}

MR_HD uint32_t mr_filter_by_address(
	const struct mr_filter_table *t, uint32_t field, const struct mr_ip *ip)
{
	const struct mr_filter_field *f = &t->field[field];

	if (ip->family == 4)
		return mr_filter_by_number(t, f, ip->word[0]);
	f += MR_FILTER_SRC6 - MR_FILTER_SRC4;
	return mr_filter_set(t, f,
		mr_interval_search_6((const uint32_t *)mr_filter_at(t, f->bounds), f->count, ip));
}

/* The lowest bit that is set; there is one. */
MR_HD uint32_t mr_filter_lowest(uint64_t x)
{
#if defined(__CUDA_ARCH__)
	return (uint32_t)__ffsll((long long)x) - 1;
#else
	return (uint32_t)__builtin_ctzll(x);
#endif
}

/*
 * mr_filter_find gives the first rule that permits or denies the walked IP packet, or `rules`;
 * *ret_counted is how many rules before it count.
 */
MR_HD uint32_t mr_filter_find(const struct mr_filter_table *t, const struct mr_view *v,
	const struct mr_headers *h, uint32_t *ret_counted)
{
	const uint64_t *sets = (const uint64_t *)mr_filter_at(t, t->sets);
	uint32_t ports = h->has & (MR_HAS_UDP | MR_HAS_TCP);
	struct mr_ip ip = mr_walked_source(v, h);
	uint32_t src = mr_filter_by_address(t, MR_FILTER_SRC4, &ip), dst, protocol, from, to;

	ip = mr_walked_target(v, h);
	dst = mr_filter_by_address(t, MR_FILTER_DST4, &ip);
	protocol = mr_filter_by_number(t, &t->field[MR_FILTER_PROTOCOL], h->protocol);
	from = mr_filter_by_number(t, &t->field[MR_FILTER_SRC_PORT],
		ports != 0 ? mr_get_be16(v, h->l4) : MR_FILTER_NO_PORT);
	to = mr_filter_by_number(t, &t->field[MR_FILTER_DST_PORT],
		ports != 0 ? mr_get_be16(v, h->l4 + 2) : MR_FILTER_NO_PORT);
	*ret_counted = 0;
	for (uint32_t s = 0; s < t->summary; s++) {
		uint64_t words = sets[src + s] & sets[dst + s] & sets[protocol + s] &
			sets[from + s] & sets[to + s];

		while (words != 0) {
			uint32_t word = s * 64 + mr_filter_lowest(words), w = t->summary + word;
			uint64_t rules = sets[src + w] & sets[dst + w] & sets[protocol + w] &
				sets[from + w] & sets[to + w];

			words &= words - 1;
			while (rules != 0) {
				uint32_t rule = word * 64 + mr_filter_lowest(rules);

				if (((const uint8_t *)mr_filter_at(t, t->actions))[rule] !=
					MR_FILTER_COUNT)
					return rule;
				rules &= rules - 1;
				++*ret_counted;
			}
		}
	}
	return t->rules;
}

#if !defined(__CUDACC__)
#include "mr_table.h"

/* Of a table with at most so many rules. */
size_t mr_filter_bytes(uint32_t rules_max);

/* mr_filter_build makes the table of the rules in text; struct mr_table_desc says how. */
MR_MUST_USE int mr_filter_build(
	struct mr_table_text *text, uint32_t rules_max, void *table, size_t *ret_bytes);
#endif

#endif
