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

#define MR_STREAMS_CHAIN 64u  /* most streams of one hash that are looked at */
#define MR_STREAMS_SEARCH 16u /* and that a new one looks at for a place */

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
	uint32_t spare;
	uint64_t seed;
};

enum mr_streams_found {
	MR_STREAMS_KNOWN,
	MR_STREAMS_NEW,
	MR_STREAMS_REPLACED, /* new, in the place of an idle one */
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

/* A place for a new stream; capacity: there is none. */
MR_HD uint32_t mr_streams_place(struct mr_streams *s, void *memory, uint64_t now_ns,
	uint64_t idle_ns, enum mr_streams_found *ret_found)
{
	*ret_found = MR_STREAMS_NEW;
	if (s->used < s->capacity)
		return s->used++;
	*ret_found = MR_STREAMS_REPLACED;
	for (uint32_t k = 0; k < MR_STREAMS_SEARCH; k++) {
		const uint32_t i = s->search;
		struct mr_stream_head *h = mr_streams_at(s, memory, i);
		uint32_t *at;

		s->search = i + 1 < s->capacity ? i + 1 : 0;
		if (h->dirty != 0 || now_ns - h->seen_ns < idle_ns)
			continue;
		at = mr_streams_first(s, memory, &h->key);
		while (*at != i + 1)
			at = &mr_streams_at(s, memory, *at - 1)->chain;
		*at = h->chain;
		return i;
	}
	return s->capacity;
}

/*
 * mr_streams_find gives the stream of a key; a new one is zeroes but for its head. NULL: there
 * is no place for it.
 */
MR_HD struct mr_stream_head *mr_streams_find(struct mr_streams *s, void *memory,
	const struct mr_stream_key *key, uint64_t now_ns, uint64_t idle_ns,
	enum mr_streams_found *ret_found)
{
	uint32_t *first = mr_streams_first(s, memory, key), at = *first, steps = 0;
	struct mr_stream_head *h;

	for (; at != 0; at = h->chain) {
		h = mr_streams_at(s, memory, at - 1);
		*ret_found = MR_STREAMS_KNOWN;
		if (mr_streams_same(&h->key, key)) {
			h->seen_ns = now_ns;
			return h;
		}
		if (++steps == MR_STREAMS_CHAIN)
			return NULL;
	}
	at = mr_streams_place(s, memory, now_ns, idle_ns, ret_found);
	if (at == s->capacity)
		return NULL;
	h = mr_streams_at(s, memory, at);
	MR_ROLLED
	for (uint32_t i = 0; i < s->stride / 8; i++)
		((uint64_t *)h)[i] = 0;
	h->key = *key;
	h->chain = *first;
	h->seen_ns = now_ns;
	*first = at + 1;
	return h;
}

#endif
