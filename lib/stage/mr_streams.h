/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_streams - the streams that a stage remembers, found by who they are, in memory of fixed size.
 *
 *     key ─ hash ─► first of a chain ─ next ─ next ─► stream
 *
 * A stream is a sender's address and ports, a format, and the identity that the format has (struct
 * mr_seen), so two senders with the same identity are two streams, and so are two programs of one
 * machine (RFC 7011 2: a UDP transport session). Whatever a stage keeps of one
 * begins with a struct mr_stream_head. There is room for `capacity`; then a new one takes the
 * place of one that was idle for long and has nothing to tell, if a short search finds one, and
 * else there is none for it. The hash has a seed that senders do not know, and of a chain a bounded
 * number is looked at, so that a flood of identities costs what any packet costs.
 *
 * Memory is the first stream of each hash, then the streams; zeroes are its beginning.
 *
 * Thread   one at a time, in the order of the packets (an ORDER stage's turn).
 */
#ifndef MR_STREAMS_H
#define MR_STREAMS_H

#include "mr_format.h"
#include "mr_stage.h"

#define MR_STREAMS_CHAIN 64u       /* most streams of one hash that are looked at */
#define MR_STREAMS_SEARCH 16u      /* and that a new one looks at for a place */
#define MR_STREAMS_SCAN 256u       /* that a blank buffer looks at, */
#define MR_STREAMS_SCAN_LAST 4096u /* and one of the last ticks */

/* What the parameters of a stage with streams begin with. */
struct mr_streams_params {
	uint32_t streams, formats_max, idle_s;
	uint32_t forward;
	char formats[MR_PARAM_FILE_MAX];
};

struct mr_stream_key {
	uint64_t id[3];   /* struct mr_seen */
	uint32_t from[4]; /* the sender's address, IPv4 as in RFC 4291 2.5.5.2; without IP its
			     Ethernet address, in the last 6 bytes */
	uint32_t ports;   /* UDP source and destination, 16 bits each; 0 without UDP */
	uint32_t format;  /* enum mr_format */
};

#define MR_STREAM_UNTOLD 1u /* there is something that was not told */
#define MR_STREAM_WAITS 2u  /* something of it waits for a packet, or for its time */

struct mr_stream_head {
	struct mr_stream_key key;
	uint32_t chain;   /* next stream of the same hash, + 1 */
	uint32_t dirty;   /* MR_STREAM_ bits */
	uint64_t seen_ns; /* device's clock at its last packet */
};

/* Which streams there are; in the stage's state, beside their memory. */
struct mr_streams {
	uint32_t capacity; /* 0: not begun */
	uint32_t stride;   /* bytes of a stream, a multiple of 8 */
	uint32_t hashes;   /* mr_streams_hashes(capacity) */
	uint32_t used;     /* places that were ever taken */
	uint32_t search;   /* where to look for an idle one next */
	uint32_t cursor;   /* which a tick looks at next */
	uint32_t left;     /* that this tick has not looked at */
	uint32_t last;     /* 1: the last ticks have begun */
	uint32_t spare;
	uint64_t tick_ns; /* when this tick was */
	uint64_t seed;
};

/* Hashes: a power of two that is not below capacity. */
MR_HD uint32_t mr_streams_hashes(uint32_t capacity)
{
	uint32_t n = 2;

	while (n < capacity)
		n *= 2;
	return n;
}

/* Bytes of memory for so many; capacity is 1 to 2^24. */
MR_HD uint64_t mr_streams_bytes(uint32_t capacity, uint32_t stride)
{
	return (uint64_t)mr_streams_hashes(capacity) * sizeof(uint32_t) +
		(uint64_t)capacity * stride;
}

/* mr_streams_begin does it once; now_ns is what senders cannot know. */
MR_HD void mr_streams_begin(
	struct mr_streams *s, uint32_t capacity, uint32_t stride, uint64_t now_ns)
{
	s->capacity = capacity;
	s->stride = stride;
	s->hashes = mr_streams_hashes(capacity);
	s->seed = now_ns * 0x9e3779b97f4a7c15u;
}

MR_HD struct mr_stream_head *mr_streams_at(const struct mr_streams *s, void *memory, uint32_t i)
{
	return (struct mr_stream_head *)((uint8_t *)memory + s->hashes * sizeof(uint32_t) +
		(uint64_t)i * s->stride);
}

/* mr_streams_key says whose packet it is. */
MR_HD void mr_streams_key(const struct mr_view *v, const struct mr_headers *h,
	const struct mr_seen *s, struct mr_stream_key *k)
{
	const struct mr_ip ip = mr_walked_source(v, h);
	const uint32_t ipv6 = ip.family == 6, ipv4 = ip.family == 4;

	for (uint32_t i = 0; i < 3; i++)
		k->id[i] = s->id[i];
	k->from[0] = ipv6 ? ip.word[0] : 0;
	k->from[1] = ipv6 ? ip.word[1] : 0;
	k->from[2] = ipv6 ? ip.word[2] : ipv4 ? 0xffff : mr_get_be16(v, 6);
	k->from[3] = ipv6 ? ip.word[3] : ipv4 ? ip.word[0] : mr_get_be32(v, 8);
	k->ports = (h->has & MR_HAS_UDP) != 0 ? mr_get_be32(v, h->l4) : 0;
	k->format = s->format;
}

/* What differs in any bit of y differs in all of x, so no pair of differences cancels out. */
MR_HD uint64_t mr_streams_mix(uint64_t x, uint64_t y)
{
	x ^= y;
	x = (x ^ x >> 32) * 0xff51afd7ed558ccdu;
	x = (x ^ x >> 29) * 0xc4ceb9fe1a85ec53u;
	return x ^ x >> 32;
}

/* mr_streams_sender is a number of who sends, whatever the identity. */
MR_HD uint64_t mr_streams_sender(const struct mr_streams *s, const struct mr_stream_key *k)
{
	uint64_t x = mr_streams_mix(s->seed, (uint64_t)k->from[0] << 32 | k->from[1]);

	x = mr_streams_mix(x, (uint64_t)k->from[2] << 32 | k->from[3]);
	return mr_streams_mix(x, k->ports);
}

/* The first stream of the key's hash, + 1. */
MR_HD uint32_t *mr_streams_first(
	const struct mr_streams *s, void *memory, const struct mr_stream_key *k)
{
	uint64_t x = mr_streams_mix(mr_streams_sender(s, k), k->format);

	for (uint32_t i = 0; i < 3; i++)
		x = mr_streams_mix(x, k->id[i]);
	x ^= x >> 16;
	return (uint32_t *)memory + ((uint32_t)x & (s->hashes - 1));
}

MR_HD int mr_streams_same(const struct mr_stream_key *a, const struct mr_stream_key *b)
{
	return a->id[0] == b->id[0] && a->id[1] == b->id[1] && a->id[2] == b->id[2] &&
		a->from[0] == b->from[0] && a->from[1] == b->from[1] && a->from[2] == b->from[2] &&
		a->from[3] == b->from[3] && a->ports == b->ports && a->format == b->format;
}

/* A place for a new stream, which is counted; capacity: there is none. */
MR_HD uint32_t mr_streams_place(const struct mr_ctx *ctx, struct mr_streams *s, void *memory,
	uint32_t idle_s, uint32_t counter)
{
	if (s->used < s->capacity) {
		mr_count(ctx, counter, 1);
		return s->used++;
	}
	for (uint32_t k = 0; k < MR_STREAMS_SEARCH; k++) {
		const uint32_t i = s->search;
		struct mr_stream_head *h = mr_streams_at(s, memory, i);
		uint32_t *at;

		s->search = i + 1 < s->capacity ? i + 1 : 0;
		if (h->dirty != 0 || ctx->now_ns - h->seen_ns < idle_s * 1000000000ull)
			continue;
		at = mr_streams_first(s, memory, &h->key);
		while (*at != i + 1)
			at = &mr_streams_at(s, memory, *at - 1)->chain;
		*at = h->chain;
		mr_count(ctx, counter, 1);
		mr_count(ctx, counter + 1, 1);
		return i;
	}
	return s->capacity;
}

/*
 * mr_streams_find gives the stream of a key; a new one is zeroes but for its head. NULL: there
 * is no place for it. `counter` is of new streams, the one behind it of those that took the place
 * of one that was idle for idle_s.
 */
MR_HD struct mr_stream_head *mr_streams_find(const struct mr_ctx *ctx, struct mr_streams *s,
	void *memory, const struct mr_stream_key *key, uint32_t idle_s, uint32_t counter)
{
	uint32_t *first = mr_streams_first(s, memory, key), at = *first, steps = 0;
	struct mr_stream_head *h;

	for (; at != 0; at = h->chain) {
		h = mr_streams_at(s, memory, at - 1);
		if (mr_streams_same(&h->key, key)) {
			h->seen_ns = ctx->now_ns;
			return h;
		}
		if (++steps == MR_STREAMS_CHAIN)
			return NULL;
	}
	at = mr_streams_place(ctx, s, memory, idle_s, counter);
	if (at == s->capacity)
		return NULL;
	h = mr_streams_at(s, memory, at);
	MR_ROLLED
	for (uint32_t i = 0; i < s->stride / 8; i++)
		((uint64_t *)h)[i] = 0;
	h->key = *key;
	h->chain = *first;
	h->seen_ns = ctx->now_ns;
	*first = at + 1;
	return h;
}

/*
 * mr_streams_share says how many streams a blank buffer looks at, a packet's none: of those of one
 * tick each is looked at once. The last ticks go through all once, from the first.
 */
MR_HD uint32_t mr_streams_share(const struct mr_ctx *ctx, struct mr_streams *s)
{
	uint32_t most = MR_STREAMS_SCAN;

	if (ctx->tick == MR_TICK_NOT)
		return 0;
	if (ctx->tick == MR_TICK_LAST) {
		if (!s->last)
			s->cursor = 0;
		s->last = 1;
		return MR_STREAMS_SCAN_LAST;
	}
	if (s->tick_ns != ctx->now_ns || ctx->now_ns == 0)
		s->left = s->used;
	s->tick_ns = ctx->now_ns;
	most = s->left < most ? s->left : most;
	s->left -= most;
	return most;
}

/* The stream at the cursor, which the caller moves; NULL: no tick looks at any more. */
MR_HD struct mr_stream_head *mr_streams_next(
	const struct mr_ctx *ctx, struct mr_streams *s, void *memory)
{
	if (s->cursor >= s->used) {
		if (ctx->tick == MR_TICK_LAST || s->used == 0)
			return NULL;
		s->cursor = 0;
	}
	return mr_streams_at(s, memory, s->cursor);
}

/*
 * mr_streams_go_on ends what a blank buffer was for that tells nothing. While the last ticks have
 * streams to look at it is taken, so that the lane asks again.
 */
MR_HD enum mr_flow mr_streams_go_on(
	const struct mr_ctx *ctx, const struct mr_streams *s, struct mr_view *v)
{
	if (ctx->tick == MR_TICK_LAST && s->cursor < s->used)
		return mr_drop(v, MR_REASON_consumed);
	return MR_NEXT;
}

#if !defined(__CUDACC__)
/* Rows of the parameters that begin with a struct mr_streams_params: how many streams there may
 * be, how many there are if nobody says, and what of. */
#define MR_STREAMS_PARAMS(most, usual, what)                                                       \
	{.name = "formats",                                                                        \
		.type = MR_PARAM_FILE,                                                             \
		.offset = offsetof(struct mr_streams_params, formats),                             \
		.def = "",                                                                         \
		.unit = "",                                                                        \
		.help = "table of which format comes where; without it, the ports that are "       \
			"usual"},                                                                  \
		{.name = "formats_max",                                                            \
			.type = MR_PARAM_U32,                                                      \
			.offset = offsetof(struct mr_streams_params, formats_max),                 \
			.min = MR_FORMAT_ROWS_MIN,                                                 \
			.max = MR_FORMAT_ROWS_MAX,                                                 \
			.def = "64",                                                               \
			.unit = "rows",                                                            \
			.help = "what the table has room for"},                                    \
		{.name = "streams",                                                                \
			.type = MR_PARAM_U32,                                                      \
			.offset = offsetof(struct mr_streams_params, streams),                     \
			.min = 1,                                                                  \
			.max = most,                                                               \
			.def = usual,                                                              \
			.unit = "streams",                                                         \
			.help = what},                                                             \
		{.name = "idle_s",                                                                 \
			.type = MR_PARAM_U32,                                                      \
			.offset = offsetof(struct mr_streams_params, idle_s),                      \
			.min = 1,                                                                  \
			.max = 1000000,                                                            \
			.def = "300",                                                              \
			.unit = "s",                                                               \
			.help = "after which a stream may give its place to a new one"},           \
	{                                                                                          \
		.name = "forward", .type = MR_PARAM_BOOL,                                          \
		.offset = offsetof(struct mr_streams_params, forward), .def = "true", .unit = "",  \
		.help = "whether packets of streams go on, or end here"                            \
	}

/* What each such stage counts by these names. */
#define MR_STREAMS_COUNTERS(of)                                                                    \
	[of##_RECEIVED] = {"received", "packets of a format in the table"},                        \
	[of##_DUPLICATE] = {"duplicate", "packets that had come before"},                          \
	[of##_MALFORMED] = {"malformed", "packets whose lengths or marks contradict"},             \
	[of##_FILTERED] = {"filtered", "packets that say of themselves that they are invalid"},    \
	[of##_OVERFLOW] = {"overflow", "packets of streams that there was no place for"},          \
	[of##_RESTARTS] = {"restarts", "times that a sender began anew"},                          \
	[of##_STREAMS] = {"streams", "streams that began"},                                        \
	[of##_REPLACED] = {"replaced", "of them, those that took an idle one's place"},            \
	[of##_RESULTS] = {"results", "records that were told"}

/* The table of formats that such parameters name. */
extern const struct mr_table_desc mr_streams_table;
#endif

#endif
