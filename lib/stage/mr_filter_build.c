/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_filter.h"

#include "mr_base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A value of any field, addresses of IPv6 being the longest. */
__extension__ typedef unsigned __int128 mr_filter_key;

#define IPV4_LAST UINT32_MAX
#define IPV6_LAST (~(mr_filter_key)0)
#define PORT_LAST MR_FILTER_NO_PORT
#define PROTOCOL_LAST 255u

static const mr_filter_key last_of[MR_FILTER_FIELDS] = {
	IPV4_LAST, IPV4_LAST, IPV6_LAST, IPV6_LAST, PROTOCOL_LAST, PORT_LAST, PORT_LAST};

struct span {
	mr_filter_key from, to;
	bool none; /* no value of the field: an address of the other family */
};

struct rule {
	struct span field[MR_FILTER_FIELDS];
	uint32_t given; /* bit of each key that was written */
	uint8_t action;
};

enum {
	KEY_SRC,
	KEY_DST,
	KEY_PROTO,
	KEY_SRC_PORT,
	KEY_DST_PORT,
	KEYS,
};

static const char *const keys[KEYS] = {"src", "dst", "proto", "src_port", "dst_port"};
static const char *const actions[] = {"permit", "deny", "count"};

/* An end of a rule's range of a field: from here on its bit is set, or no more. */
struct point {
	mr_filter_key at;
	uint32_t rule;
	bool set;
};

struct build {
	struct rule *rules;
	uint32_t count, room;
	struct mr_filter_table *t;
	struct point *points;
	uint64_t *now;  /* the set at the point of a sweep */
	uint32_t *hash; /* set number + 1, or 0 */
	uint32_t hash_mask, sets;
};

static uint32_t words_of(uint32_t rules)
{
	return (rules + 63) / 64;
}

static uint32_t intervals_max(uint32_t rules, uint32_t field)
{
	uint64_t n = 2 * (uint64_t)rules + 1;

	return n <= last_of[field] ? (uint32_t)n : (uint32_t)last_of[field] + 1;
}

/* Addresses are prefixes: as many sets as prefixes and, for each family, that of none. */
static uint32_t sets_max(uint32_t rules)
{
	return 2 * (rules + 2) + intervals_max(rules, MR_FILTER_PROTOCOL) +
		2 * intervals_max(rules, MR_FILTER_SRC_PORT);
}

static uint32_t key_words(uint32_t field)
{
	return field == MR_FILTER_SRC6 || field == MR_FILTER_DST6 ? 4 : 1;
}

/* Lays out a table of so many rules; the sets come last. */
static void lay_out(uint32_t rules, struct mr_filter_table *t)
{
	uint32_t at = MR_ALIGN_UP(sizeof(*t), 8);

	t->rules = rules;
	t->summary = words_of(words_of(rules));
	t->stride = t->summary + words_of(rules);
	for (uint32_t f = 0; f < MR_FILTER_FIELDS; f++) {
		uint32_t most = intervals_max(rules, f);

		t->field[f].bounds = at;
		at += most * key_words(f) * 4;
		t->field[f].sets = at;
		at += most * 4;
		t->field[f].count = 0;
	}
	t->actions = at;
	t->sets = MR_ALIGN_UP(at + rules, 8);
}

size_t mr_filter_bytes(uint32_t rules_max)
{
	struct mr_filter_table t;

	lay_out(rules_max, &t);
	return t.sets + (size_t)sets_max(rules_max) * t.stride * 8;
}

static mr_filter_key key_of(const struct mr_ip *ip)
{
	mr_filter_key k = 0;

	if (ip->family == 4)
		return ip->word[0];
	for (uint32_t i = 0; i < 4; i++)
		k = k << 32 | ip->word[i];
	return k;
}

/* A prefix of one family is nothing of the other. */
static int parse_prefix(const char *text, struct rule *r, uint32_t field4)
{
	uint32_t field6 = field4 + MR_FILTER_SRC6 - MR_FILTER_SRC4, field, bits;
	struct mr_prefix p;

	if (strcmp(text, "any") == 0)
		return 0;
	if (mr_param_prefix_parse(text, &p) < 0)
		return -EINVAL;
	field = p.ip.family == 4 ? field4 : field6;
	bits = p.ip.family == 4 ? 32 : 128;
	r->field[p.ip.family == 4 ? field6 : field4].none = true;
	r->field[field].from = key_of(&p.ip);
	r->field[field].to = r->field[field].from |
		(p.bits == 0 ? last_of[field] : (((mr_filter_key)1 << (bits - p.bits)) - 1));
	return 0;
}

static int parse_range(const char *text, struct span *s, uint32_t last)
{
	struct mr_range range;

	if (strcmp(text, "any") == 0)
		return 0;
	if (mr_param_range_parse(text, 0, last, &range) < 0)
		return -EINVAL;
	s->from = range.from;
	s->to = range.to;
	return 0;
}

static int parse_protocol(const char *text, struct span *s)
{
	static const struct {
		const char *name;
		uint32_t number;
	} names[] = {{"tcp", MR_IP_TCP}, {"udp", MR_IP_UDP}, {"icmp", MR_IP_ICMP},
		{"icmp6", MR_IP_ICMP6}};

	for (size_t i = 0; i < MR_ARRAY_LEN(names); i++)
		if (strcmp(text, names[i].name) == 0) {
			s->from = s->to = names[i].number;
			return 0;
		}
	return parse_range(text, s, PROTOCOL_LAST);
}

static void parse_value(struct mr_table_text *t, struct rule *r, uint32_t key, const char *text)
{
	static const char *const takes[KEYS] = {
		"a prefix as in 10.0.0.0/8 or 2001:db8::/32 with no bit set behind it, or any",
		"a prefix as in 10.0.0.0/8 or 2001:db8::/32 with no bit set behind it, or any",
		"tcp, udp, icmp, icmp6, or a number or range from 0 to 255",
		"a number or range from 0 to 65535", "a number or range from 0 to 65535"};
	int rc;

	if ((r->given & 1u << key) != 0) {
		mr_table_refuse(t, "'%s' is there twice", keys[key]);
		return;
	}
	r->given |= 1u << key;
	if (key == KEY_SRC || key == KEY_DST)
		rc = parse_prefix(text, r, key == KEY_SRC ? MR_FILTER_SRC4 : MR_FILTER_DST4);
	else if (key == KEY_PROTO)
		rc = parse_protocol(text, &r->field[MR_FILTER_PROTOCOL]);
	else
		rc = parse_range(text,
			&r->field[key == KEY_SRC_PORT ? MR_FILTER_SRC_PORT : MR_FILTER_DST_PORT],
			UINT16_MAX);
	if (rc < 0)
		mr_table_refuse(t, "'%s' takes %s, not '%.40s'", keys[key], takes[key], text);
}

static uint32_t index_of(const char *const *words, uint32_t count, const char *text)
{
	uint32_t i = 0;

	while (i < count && strcmp(words[i], text) != 0)
		i++;
	return i;
}

static void parse_rule(struct mr_table_text *t, struct rule *r)
{
	memset(r, 0, sizeof(*r));
	for (uint32_t f = 0; f < MR_FILTER_FIELDS; f++)
		r->field[f].to = last_of[f];
	r->action = (uint8_t)index_of(actions, MR_ARRAY_LEN(actions), t->word[0]);
	if (r->action == MR_ARRAY_LEN(actions))
		mr_table_refuse(
			t, "a rule begins with permit, deny or count, not '%.40s'", t->word[0]);
	for (uint32_t i = 1; i < t->words; i += 2) {
		uint32_t key = index_of(keys, KEYS, t->word[i]);

		if (key == KEYS)
			mr_table_refuse(t, "'%.40s' is none of src, dst, proto, src_port, dst_port",
				t->word[i]);
		else if (i + 1 == t->words)
			mr_table_refuse(t, "'%s' lacks its value", keys[key]);
		else
			parse_value(t, r, key, t->word[i + 1]);
	}
	if ((r->field[MR_FILTER_SRC4].none && r->field[MR_FILTER_DST6].none) ||
		(r->field[MR_FILTER_SRC6].none && r->field[MR_FILTER_DST4].none))
		mr_table_refuse(t, "src and dst are of two families, so no packet has both");
}

static int parse(struct mr_table_text *t, struct build *b, uint32_t rules_max)
{
	while (mr_table_next(t)) {
		if (b->count == rules_max) {
			mr_table_refuse(t, "more than %u rules; raise rules_max, at most to %u",
				rules_max, MR_FILTER_RULES_MAX);
			return 0;
		}
		if (b->count == b->room) {
			uint32_t room = 2 * b->room + 64;
			struct rule *more = realloc(b->rules, room * sizeof(*more));

			if (more == NULL)
				return -ENOMEM;
			b->rules = more;
			b->room = room;
		}
		parse_rule(t, &b->rules[b->count++]);
	}
	return 0;
}

static int compare_points(const void *a, const void *b)
{
	mr_filter_key x = ((const struct point *)a)->at, y = ((const struct point *)b)->at;

	return x < y ? -1 : x > y;
}

static uint64_t *set_at(const struct build *b, uint32_t set)
{
	return (uint64_t *)((uint8_t *)b->t + b->t->sets) + (size_t)set * b->t->stride;
}

static void turn(struct build *b, const struct point *p)
{
	uint64_t *word = &b->now[b->t->summary + p->rule / 64];
	uint64_t bit = (uint64_t)1 << p->rule % 64, in = (uint64_t)1 << p->rule / 64 % 64;

	*word = p->set ? *word | bit : *word & ~bit;
	if (*word != 0)
		b->now[p->rule / 64 / 64] |= in;
	else
		b->now[p->rule / 64 / 64] &= ~in;
}

/* The number of the set that is now; equal ones are one. */
static uint32_t number_set(struct build *b)
{
	size_t bytes = b->t->stride * sizeof(uint64_t);
	uint64_t h = 0;
	uint32_t at;

	for (uint32_t i = 0; i < b->t->stride; i++) {
		h = (h ^ b->now[i]) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	for (at = (uint32_t)h & b->hash_mask; b->hash[at] != 0; at = (at + 1) & b->hash_mask)
		if (memcmp(set_at(b, b->hash[at] - 1), b->now, bytes) == 0)
			return b->hash[at] - 1;
	memcpy(set_at(b, b->sets), b->now, bytes);
	b->hash[at] = ++b->sets;
	return b->sets - 1;
}

static void add_interval(struct build *b, uint32_t field, mr_filter_key from)
{
	struct mr_filter_field *f = &b->t->field[field];
	uint32_t *bounds = (uint32_t *)((uint8_t *)b->t + f->bounds);
	uint32_t *sets = (uint32_t *)((uint8_t *)b->t + f->sets);
	uint32_t words = key_words(field), set = number_set(b);

	if (f->count > 0 && sets[f->count - 1] == set)
		return;
	for (uint32_t i = 0; i < words; i++)
		bounds[f->count * words + i] = (uint32_t)(from >> 32 * (words - 1 - i));
	sets[f->count++] = set;
}

/* From the lowest value upwards, with a new interval wherever a rule begins or has ended. */
static void sweep(struct build *b, uint32_t field)
{
	uint32_t points = 0, i = 0;

	for (uint32_t r = 0; r < b->count; r++) {
		const struct span *s = &b->rules[r].field[field];

		if (s->none)
			continue;
		b->points[points++] = (struct point){s->from, r, true};
		if (s->to != last_of[field])
			b->points[points++] = (struct point){s->to + 1, r, false};
	}
	qsort(b->points, points, sizeof(*b->points), compare_points);
	memset(b->now, 0, b->t->stride * sizeof(*b->now));
	if (points == 0 || b->points[0].at != 0)
		add_interval(b, field, 0);
	while (i < points) {
		mr_filter_key at = b->points[i].at;

		while (i < points && b->points[i].at == at)
			turn(b, &b->points[i++]);
		add_interval(b, field, at);
	}
}

static int make(struct build *b)
{
	uint32_t slots = 64;

	while (slots < 2 * sets_max(b->count))
		slots *= 2;
	lay_out(b->count, b->t);
	b->hash_mask = slots - 1;
	b->hash = calloc(slots, sizeof(*b->hash));
	b->points = calloc(2 * (size_t)b->count + 1, sizeof(*b->points));
	b->now = calloc(b->t->stride + 1, sizeof(*b->now));
	if (b->hash == NULL || b->points == NULL || b->now == NULL)
		return -ENOMEM;
	for (uint32_t f = 0; f < MR_FILTER_FIELDS; f++)
		sweep(b, f);
	for (uint32_t r = 0; r < b->count; r++)
		((uint8_t *)b->t)[b->t->actions + r] = b->rules[r].action;
	return 0;
}

int mr_filter_build(struct mr_table_text *text, uint32_t rules_max, void *table, size_t *ret_bytes)
{
	struct build b = {.t = table};
	int rc = parse(text, &b, rules_max);

	if (rc == 0 && text->errors->count == 0)
		rc = make(&b);
	if (rc == 0 && text->errors->count == 0)
		*ret_bytes = b.t->sets + (size_t)b.sets * b.t->stride * sizeof(uint64_t);
	free(b.rules);
	free(b.points);
	free(b.now);
	free(b.hash);
	return rc;
}
