/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_route.h"

#include "mr_base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An address of either family; IPv4 is in the last 32 bits. */
__extension__ typedef unsigned __int128 mr_route_key;

struct route {
	mr_route_key from, to;
	uint32_t bits, family;
	uint32_t hop, line;
};

struct build {
	struct route *routes;
	uint32_t count, room;
	struct mr_route_table *t;
	struct mr_route_hop *hops;
	uint32_t hops_count;
	uint32_t *hash; /* hop number + 1, or 0 */
	uint32_t hash_mask;
};

static void lay_out(uint32_t routes, struct mr_route_table *t)
{
	uint32_t intervals = 2 * routes + 1, at = MR_ALIGN_UP(sizeof(*t), 16);

	memset(t, 0, sizeof(*t));
	t->v4.bounds = at;
	t->v4.hops = t->v4.bounds + intervals * 4;
	t->v6.bounds = MR_ALIGN_UP(t->v4.hops + intervals * 4, 16);
	t->v6.hops = t->v6.bounds + intervals * 16;
	t->index = t->v6.hops + intervals * 4;
	for (t->shift = 31;
		t->shift > 32 - MR_ROUTE_INDEX_BITS && 1u << (32 - t->shift) < intervals;)
		t->shift--;
	t->hop = MR_ALIGN_UP(t->index + ((1u << (32 - t->shift)) + 1) * 4, 8);
}

static size_t bytes_of(uint32_t routes, uint32_t hops)
{
	struct mr_route_table t;

	lay_out(routes, &t);
	return t.hop + (size_t)hops * sizeof(struct mr_route_hop);
}

size_t mr_route_bytes(uint32_t routes_max)
{
	return bytes_of(routes_max, routes_max + 1);
}

static mr_route_key key_of(const struct mr_ip *ip)
{
	mr_route_key k = 0;

	if (ip->family == 4)
		return ip->word[0];
	for (uint32_t i = 0; i < 4; i++)
		k = k << 32 | ip->word[i];
	return k;
}

static mr_route_key last_of(uint32_t family)
{
	return family == 4 ? UINT32_MAX : ~(mr_route_key)0;
}

/* The number of a hop; there are few, and equal ones are one. */
static uint32_t number_hop(struct build *b, const struct mr_route_hop *hop)
{
	uint64_t h;
	uint32_t at;

	memcpy(&h, hop, sizeof(h));
	h *= 0x9e3779b97f4a7c15u;
	for (at = (uint32_t)(h >> 32) & b->hash_mask; b->hash[at] != 0;
		at = (at + 1) & b->hash_mask)
		if (memcmp(&b->hops[b->hash[at] - 1], hop, sizeof(*hop)) == 0)
			return b->hash[at] - 1;
	b->hops[b->hops_count] = *hop;
	b->hash[at] = ++b->hops_count;
	return b->hops_count - 1;
}

static bool parse_port(const char *text, const struct mr_param_env *env, uint8_t *ret_port)
{
	uint32_t count = env != NULL ? env->tx_count : MR_TX_MAX;
	uint64_t v;

	for (uint32_t i = 0; env != NULL && i < env->tx_count; i++)
		if (strcmp(env->tx[i], text) == 0) {
			*ret_port = (uint8_t)i;
			return true;
		}
	if (mr_param_number_parse(text, &v) < 0 || v >= count)
		return false;
	*ret_port = (uint8_t)v;
	return true;
}

/* What stands behind the prefix of a line. */
static void parse_hop(
	struct mr_table_text *t, const struct mr_param_env *env, struct mr_route_hop *hop)
{
	struct mr_mac mac;

	memset(hop, 0, sizeof(*hop));
	if (t->words == 2 && strcmp(t->word[1], "pass") == 0) {
		hop->kind = MR_ROUTE_PASS;
	} else if (t->words == 2 && strcmp(t->word[1], "drop") == 0) {
		hop->kind = MR_ROUTE_DROP;
	} else if (t->words == 5 && strcmp(t->word[1], "via") == 0 &&
		strcmp(t->word[3], "port") == 0) {
		hop->kind = MR_ROUTE_VIA;
		if (mr_param_mac_parse(t->word[2], &mac) < 0 || (mac.byte[0] & 1) != 0)
			mr_table_refuse(t,
				"'via' takes the address of one station as in "
				"02:00:5e:10:00:01, not '%.40s'",
				t->word[2]);
		else
			memcpy(hop->mac, mac.byte, sizeof(hop->mac));
		if (!parse_port(t->word[4], env, &hop->port))
			mr_table_refuse(t, "'port' takes a port of the lane's tx list, not '%.40s'",
				t->word[4]);
	} else {
		mr_table_refuse(t,
			"behind the prefix there has to be 'via MAC port PORT', 'pass' or 'drop'");
	}
}

static void parse_route(struct mr_table_text *t, const struct mr_param_env *env, struct build *b)
{
	struct route *r = &b->routes[b->count];
	struct mr_route_hop hop;
	struct mr_prefix p;

	if (mr_param_prefix_parse(t->word[0], &p) < 0) {
		mr_table_refuse(t,
			"a route begins with a prefix as in 10.0.0.0/8 or 2001:db8::/32 with no "
			"bit set behind it, not '%.50s'",
			t->word[0]);
		return;
	}
	parse_hop(t, env, &hop);
	r->family = p.ip.family;
	r->bits = p.bits;
	r->line = t->line;
	r->from = key_of(&p.ip);
	/* A shift by all of the type's bits is undefined. */
	r->to = r->from | (p.bits == 128 ? 0 : last_of(p.ip.family) >> p.bits);
	r->hop = number_hop(b, &hop);
	b->count++;
}

static int parse(struct mr_table_text *t, struct build *b, uint32_t routes_max,
	const struct mr_param_env *env)
{
	while (mr_table_next(t)) {
		if (b->count == routes_max) {
			mr_table_refuse(t, "more than %u routes; raise routes_max, at most to %u",
				routes_max, MR_ROUTE_ROUTES_MAX);
			return 0;
		}
		if (b->count == b->room) {
			uint32_t room = 2 * b->room + 1024;
			struct route *more = realloc(b->routes, room * sizeof(*more));

			if (more == NULL)
				return -ENOMEM;
			b->routes = more;
			b->room = room;
		}
		parse_route(t, env, b);
	}
	return 0;
}

/* By family and first address, the wider of two that begin together first. */
static int compare_routes(const void *a, const void *b)
{
	const struct route *x = a, *y = b;

	if (x->family != y->family)
		return x->family < y->family ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->bits != y->bits)
		return x->bits < y->bits ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static void refuse_twice(struct mr_table_text *t, const struct build *b)
{
	for (uint32_t i = 1; i < b->count; i++) {
		const struct route *r = &b->routes[i];

		if (r->family != r[-1].family || r->from != r[-1].from || r->bits != r[-1].bits)
			continue;
		t->line = r->line;
		mr_table_refuse(t, "this prefix has a route already, in line %u", r[-1].line);
	}
}

/* From `from` on the hop is another; what begins there already, or goes on, is not two. */
static void begin(
	struct build *b, struct mr_route_family *f, uint32_t words, mr_route_key from, uint32_t hop)
{
	uint32_t *bounds = (uint32_t *)((uint8_t *)b->t + f->bounds);
	uint32_t *hops = (uint32_t *)((uint8_t *)b->t + f->hops);
	mr_route_key last = 0;

	for (uint32_t i = 0; f->count > 0 && i < words; i++)
		last = last << 32 | bounds[(f->count - 1) * words + i];
	if (f->count > 0 && last == from)
		f->count--;
	if (f->count > 0 && hops[f->count - 1] == hop)
		return;
	for (uint32_t i = 0; i < words; i++)
		bounds[f->count * words + i] = (uint32_t)(from >> 32 * (words - 1 - i));
	hops[f->count++] = hop;
}

/* Those around the present one, the narrowest last: a prefix a length at most. */
struct around {
	const struct route *route[130];
	uint32_t count;
};

static uint32_t hop_around(const struct around *a)
{
	return a->count > 0 ? a->route[a->count - 1]->hop : 0;
}

/* Behind the end of those that end before `from`, the ones around them hold again. */
static void leave(struct build *b, struct mr_route_family *f, uint32_t words, struct around *a,
	mr_route_key last, const struct route *until)
{
	while (a->count > 0 && (until == NULL || a->route[a->count - 1]->to < until->from)) {
		mr_route_key to = a->route[--a->count]->to;

		if (to != last)
			begin(b, f, words, to + 1, hop_around(a));
	}
}

static void cut(struct build *b, struct mr_route_family *f, uint32_t family)
{
	uint32_t words = family == 4 ? 1 : 4;
	struct around a = {.count = 0};

	begin(b, f, words, 0, 0);
	for (uint32_t i = 0; i < b->count; i++) {
		const struct route *r = &b->routes[i];

		if (r->family != family)
			continue;
		leave(b, f, words, &a, last_of(family), r);
		begin(b, f, words, r->from, r->hop);
		a.route[a.count++] = r;
	}
	leave(b, f, words, &a, last_of(family), NULL);
}

static void make_index(struct build *b)
{
	const uint32_t *bounds = (const uint32_t *)((const uint8_t *)b->t + b->t->v4.bounds);
	uint32_t *index = (uint32_t *)((uint8_t *)b->t + b->t->index);

	uint32_t entries = 1u << (32 - b->t->shift);

	for (uint32_t i = 0, at = 0; i < entries; i++) {
		while (at + 1 < b->t->v4.count && bounds[at + 1] <= i << b->t->shift)
			at++;
		index[i] = at;
	}
	index[entries] = b->t->v4.count - 1;
}

static void make(struct build *b)
{
	lay_out(b->count, b->t);
	cut(b, &b->t->v4, 4);
	cut(b, &b->t->v6, 6);
	make_index(b);
	memcpy((uint8_t *)b->t + b->t->hop, b->hops, b->hops_count * sizeof(*b->hops));
}

int mr_route_build(struct mr_table_text *text, uint32_t routes_max, const struct mr_param_env *env,
	void *table, size_t *ret_bytes)
{
	static const struct mr_route_hop none = {.kind = MR_ROUTE_NONE};
	struct build b = {.t = table};
	uint32_t slots = 64;
	int rc = -ENOMEM;

	while (slots < 2 * (routes_max + 1))
		slots *= 2;
	b.hash_mask = slots - 1;
	b.hash = calloc(slots, sizeof(*b.hash));
	b.hops = calloc((size_t)routes_max + 1, sizeof(*b.hops));
	if (b.hash != NULL && b.hops != NULL) {
		(void)number_hop(&b, &none);
		rc = parse(text, &b, routes_max, env);
	}
	if (rc == 0 && b.count > 0) {
		qsort(b.routes, b.count, sizeof(*b.routes), compare_routes);
		refuse_twice(text, &b);
	}
	if (rc == 0 && text->errors->count == 0) {
		make(&b);
		*ret_bytes = bytes_of(b.count, b.hops_count);
	}
	free(b.routes);
	free(b.hash);
	free(b.hops);
	return rc;
}
