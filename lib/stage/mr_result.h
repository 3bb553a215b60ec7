/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_result - the packets in which stages tell what they found.
 *
 * A result is a UDP datagram (IPv4 or IPv6, with its checksum) from and to the addresses that
 * the stage's parameters name. All numbers are big-endian. In front of the records:
 *
 *     offset  bytes
 *      0      4     0x4d525231, "MRR1"
 *      4      1     kind of the records: 1 books of streams (seqtrack), 2 windows (unpack)
 *      5      1     0
 *      6      2     number of records
 *      8      4     number of this packet, counted by its stage from 0 in 32 bits
 *     12      4     records that were lost so far (results_lost of the stage), in 32 bits
 *     16      8     when it was made, nanoseconds of the device's clock
 *     24            records, one after the other
 *
 * Each record begins with the stream that it is of:
 *
 *      0      1     what it tells, by kind
 *      1      1     format, as enum mr_format counts
 *      2      2     bytes of the record, this included
 *      4      4     flags, by kind
 *      8      24    identity of the stream within its sender (struct mr_seen)
 *     32      16    sender's address, IPv4 as ::ffff:0:0/96 (RFC 4291 2.5.5.2); without IP its
 *                   Ethernet address, in the last 6 bytes
 *     48      2     UDP source port, 0 without
 *     50      2     UDP destination port, 0 without
 *     52      4     0
 *     56            numbers of 8 bytes, by kind
 *
 * The device's clock begins anywhere, as with mr_stage.h; times of streams are their own.
 *
 * Who takes results sees a lost one by the number of the packet, and one that never was sent by
 * the count of those that were lost.
 */
#ifndef MR_RESULT_H
#define MR_RESULT_H

#include "mr_streams.h"
#include "mr_sum.h"

#define MR_RESULT_MAGIC 0x4d525231u
#define MR_RESULT_STREAMS 1u
#define MR_RESULT_WINDOWS 2u
#define MR_RESULT_HEADER 24u
#define MR_RESULT_STREAM 56u
#define MR_RESULT_FRAME_MIN 576u /* the least that a result may take, so that a record fits */
#define MR_RESULT_FRAME_MAX 9018u

/* Where results go; a part of the parameters of stages that have them. */
struct mr_result_to {
	struct mr_mac dst_mac, src_mac;
	struct mr_ip dst, src; /* family 0: there are no results */
	uint32_t udp_port;     /* to this, and from this */
	uint32_t port;         /* entry of the tx list */
	uint32_t bytes;        /* of a frame, at most */
};

/* A result while it is written. */
struct mr_result {
	uint32_t udp; /* offset of the UDP header */
	uint32_t at;  /* where the next byte goes */
	uint32_t records;
};

MR_HD int mr_result_wanted(const struct mr_result_to *to)
{
	return to->dst.family != 0;
}

/*
 * mr_result_begin makes the frame of the view, blank or a packet that is given up, as large as a
 * result may be; 0 and no change: its buffer does not hold MR_RESULT_FRAME_MIN.
 */
MR_HD int mr_result_begin(struct mr_view *v, const struct mr_result_to *to, struct mr_result *r)
{
	const uint32_t room = v->room - v->head, bytes = to->bytes < room ? to->bytes : room;

	if (bytes < MR_RESULT_FRAME_MIN || !mr_view_resize(v, bytes))
		return 0;
	r->udp = MR_FRAME_MIN + (to->dst.family == 4 ? 20 : 40);
	r->at = r->udp + 8 + MR_RESULT_HEADER;
	r->records = 0;
	return 1;
}

/* Whether a record of so many bytes fits yet. */
MR_HD int mr_result_fits(const struct mr_view *v, const struct mr_result *r, uint32_t bytes)
{
	return mr_has(v, r->at, bytes);
}

MR_HD void mr_result_put(const struct mr_view *v, struct mr_result *r, uint32_t bytes, uint64_t x)
{
	mr_put_be(v, r->at, bytes, x);
	r->at += bytes;
}

/* mr_result_stream begins a record, which is to have `numbers` numbers of 8 bytes. */
MR_HD void mr_result_stream(const struct mr_view *v, struct mr_result *r, uint32_t what,
	uint32_t flags, const struct mr_stream_key *key, uint32_t numbers)
{
	mr_result_put(v, r, 1, what);
	mr_result_put(v, r, 1, key->format);
	mr_result_put(v, r, 2, MR_RESULT_STREAM + 8 * numbers);
	mr_result_put(v, r, 4, flags);
	for (uint32_t i = 0; i < 3; i++)
		mr_result_put(v, r, 8, key->id[i]);
	for (uint32_t i = 0; i < 4; i++)
		mr_result_put(v, r, 4, key->from[i]);
	mr_result_put(v, r, 4, key->ports);
	mr_result_put(v, r, 4, 0);
	r->records++;
}

MR_HD void mr_result_put_ip(const struct mr_view *v, uint32_t at, const struct mr_ip *ip)
{
	for (uint32_t i = 0; i < (ip->family == 4 ? 1u : 4u); i++)
		mr_put_be32(v, at + 4 * i, ip->word[i]);
}

/* mr_result_end writes what stands in front of the records, and cuts the frame behind them. */
MR_HD void mr_result_end(struct mr_view *v, const struct mr_result_to *to,
	const struct mr_result *r, uint32_t kind, uint32_t number, uint32_t lost, uint64_t now_ns)
{
	const uint32_t ipv4 = to->dst.family == 4, udp_bytes = r->at - r->udp, at = r->udp + 8;
	struct mr_headers h;

	mr_put_bytes(v, 0, to->dst_mac.byte, 6);
	mr_put_bytes(v, 6, to->src_mac.byte, 6);
	mr_put_be16(v, 12, ipv4 ? MR_ETHER_IPV4 : MR_ETHER_IPV6);
	if (ipv4) {
		mr_put_be(v, 14, 4, 0x45000000u | (udp_bytes + 20));
		mr_put_be(v, 18, 4, 0x00004000u); /* may not be cut into fragments (RFC 6864) */
		mr_put_be(v, 22, 4, 64u << 24 | MR_IP_UDP << 16);
		mr_result_put_ip(v, 26, &to->src);
		mr_result_put_ip(v, 30, &to->dst);
		mr_put_be16(v, 24, mr_sum_end(mr_sum_bytes(v, 14, 20)));
	} else {
		mr_put_be(v, 14, 4, 6u << 28);
		mr_put_be(v, 18, 4, udp_bytes << 16 | MR_IP_UDP << 8 | 64);
		mr_result_put_ip(v, 22, &to->src);
		mr_result_put_ip(v, 38, &to->dst);
	}
	mr_put_be16(v, r->udp, to->udp_port);
	mr_put_be16(v, r->udp + 2, to->udp_port);
	mr_put_be16(v, r->udp + 4, udp_bytes);
	mr_put_be16(v, r->udp + 6, 0);
	mr_put_be32(v, at, MR_RESULT_MAGIC);
	mr_put_be16(v, at + 4, kind << 8);
	mr_put_be16(v, at + 6, r->records);
	mr_put_be32(v, at + 8, number);
	mr_put_be32(v, at + 12, lost);
	mr_put_be(v, at + 16, 8, now_ns);
	(void)mr_view_resize(v, r->at);
	h.has = ipv4 ? MR_HAS_IPV4 : MR_HAS_IPV6;
	h.protocol = MR_IP_UDP;
	h.l3 = MR_FRAME_MIN;
	h.l4 = r->udp;
	h.end = r->at;
	number = mr_sum_end(mr_sum_pseudo(v, &h) + (uint64_t)mr_sum_bytes(v, r->udp, udp_bytes));
	mr_put_be16(v, r->udp + 6, number != 0 ? number : 0xffff);
}

#if !defined(__CUDACC__)
/* Rows of a stage's parameters, struct owner, for its member, a struct mr_result_to. */
#define MR_RESULT_PARAMS(owner, member)                                                            \
	{.name = "result_dst",                                                                     \
		.type = MR_PARAM_IP,                                                               \
		.offset = offsetof(struct owner, member.dst),                                      \
		.def = "",                                                                         \
		.unit = "",                                                                        \
		.help = "address that results are sent to; without one there are none"},           \
		{.name = "result_src",                                                             \
			.type = MR_PARAM_IP,                                                       \
			.offset = offsetof(struct owner, member.src),                              \
			.def = "",                                                                 \
			.unit = "",                                                                \
			.help = "address that results come from, of the same family"},             \
		{.name = "result_dst_mac",                                                         \
			.type = MR_PARAM_MAC,                                                      \
			.offset = offsetof(struct owner, member.dst_mac),                          \
			.max = 1,                                                                  \
			.def = "ff:ff:ff:ff:ff:ff",                                                \
			.unit = "",                                                                \
			.help = "Ethernet address that results are sent to, also of a group"},     \
		{.name = "result_src_mac",                                                         \
			.type = MR_PARAM_MAC,                                                      \
			.offset = offsetof(struct owner, member.src_mac),                          \
			.def = "02:4d:52:00:00:01",                                                \
			.unit = "",                                                                \
			.help = "Ethernet address that results come from"},                        \
		{.name = "result_udp_port",                                                        \
			.type = MR_PARAM_U32,                                                      \
			.offset = offsetof(struct owner, member.udp_port),                         \
			.min = 1,                                                                  \
			.max = 65535,                                                              \
			.def = "4990",                                                             \
			.unit = "",                                                                \
			.help = "UDP port that results are sent to, and from"},                    \
		{.name = "result_port",                                                            \
			.type = MR_PARAM_PORT,                                                     \
			.offset = offsetof(struct owner, member.port),                             \
			.def = "0",                                                                \
			.unit = "",                                                                \
			.help = "where results go"},                                               \
	{                                                                                          \
		.name = "result_bytes", .type = MR_PARAM_U32,                                      \
		.offset = offsetof(struct owner, member.bytes), .min = MR_RESULT_FRAME_MIN,        \
		.max = MR_RESULT_FRAME_MAX, .def = "1514", .unit = "bytes",                        \
		.help = "of a result's frame at most"                                              \
	}

/*
 * For the check of a stage's parameters; -EINVAL: only one address, two families, or results longer
 * than a frame may be.
 */
MR_MUST_USE int mr_result_check(
	const char *stage, const struct mr_result_to *to, uint32_t frame_bytes, struct mr_err *err);
#endif

#endif
