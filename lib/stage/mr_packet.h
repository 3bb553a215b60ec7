/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_packet - a packet as a stage sees it, and how it is read and written.
 *
 *     buffer   0          head                       head + length       room
 *              │ headroom │ frame[0] ... frame[length - 1] │ tailroom     │
 *
 * Fields. mr_get_be(v, at, n) reads n bytes (1 to 8) at offset `at` of the frame as
 * one number, first byte most significant (network order); mr_get_le() the first
 * least. A field that does not lie in the frame whole reads as 0, and writing it does
 * nothing: no offset, whatever a packet says, leaves the frame. There is no flag of
 * that, since it would cost every stage a register; who must tell 0 from absent asks
 * mr_has() first, or walks the headers, which says what is there whole. A constant n
 * costs n byte accesses and one comparison. Frames lie at any alignment.
 *
 * Headers. mr_walk() looks from the Ethernet header inwards and fills a struct
 * mr_headers with offsets, types and MR_HAS_ bits; a bit means that the header is there
 * whole and that its own lengths fit what is around it. It reads some 40 bytes of the
 * frame's first cache lines, so stages of a chain walk again rather than pass it on.
 *
 * Room. mr_view_push() and mr_view_pull() move the frame's first byte (encapsulation),
 * mr_view_resize() its end. What is gained holds whatever lay there before, so it has
 * to be written.
 *
 * All functions may be called by any thread that has the view; what changes the view
 * must do so alike in all threads of a warp. Nothing fails otherwise than by returning 0.
 */
#ifndef MR_PACKET_H
#define MR_PACKET_H

#include "mr_param.h"
#include "mr_ring_abi.h"
#include "mr_sync.h"

/* In front of a loop that is seldom run: nvcc is not to spend registers on its speed. */
#if defined(__NVCC__)
#define MR_ROLLED _Pragma("unroll 1")
#else
#define MR_ROLLED
#endif

/* One packet as a stage sees it. */
struct mr_view {
	uint8_t *frame;  /* first byte of the Ethernet header */
	uint32_t length; /* bytes of the frame, at least MR_FRAME_MIN */
	uint32_t head;   /* bytes of the buffer before the frame */
	uint32_t room;   /* bytes of the whole buffer; head + length <= room */
	uint8_t rx_port; /* DPDK port id it came from */
	uint8_t verdict; /* enum mr_verdict, MR_TX at the start */
	uint8_t port;    /* 0 at the start */
	uint16_t arg;
};

/* mr_has tells whether bytes at .. at + n - 1 are all in the frame; n may be 0. */
MR_HD int mr_has(const struct mr_view *v, uint32_t at, uint32_t n)
{
	return n <= v->length && at <= v->length - n;
}

/* The number in n bytes at offset `at`, big-endian; 0 where they are not all in the frame. */
MR_HD uint64_t mr_get_be(const struct mr_view *v, uint32_t at, uint32_t n)
{
	uint64_t x = 0;

	if (mr_has(v, at, n))
		for (uint32_t i = 0; i < n; i++)
			x = x << 8 | v->frame[at + i];
	return x;
}

/* The same, little-endian. */
MR_HD uint64_t mr_get_le(const struct mr_view *v, uint32_t at, uint32_t n)
{
	uint64_t x = 0;

	if (mr_has(v, at, n))
		for (uint32_t i = n; i-- > 0;)
			x = x << 8 | v->frame[at + i];
	return x;
}

/* Writes the low n bytes of x, big-endian; nothing where they would not all be in the frame. */
MR_HD void mr_put_be(const struct mr_view *v, uint32_t at, uint32_t n, uint64_t x)
{
	if (mr_has(v, at, n))
		for (uint32_t i = 0; i < n; i++)
			v->frame[at + i] = (uint8_t)(x >> 8 * (n - 1 - i));
}

/* The same, little-endian. */
MR_HD void mr_put_le(const struct mr_view *v, uint32_t at, uint32_t n, uint64_t x)
{
	if (mr_has(v, at, n))
		for (uint32_t i = 0; i < n; i++)
			v->frame[at + i] = (uint8_t)(x >> 8 * i);
}

MR_HD uint32_t mr_get_u8(const struct mr_view *v, uint32_t at)
{
	return (uint32_t)mr_get_be(v, at, 1);
}

MR_HD uint32_t mr_get_be16(const struct mr_view *v, uint32_t at)
{
	return (uint32_t)mr_get_be(v, at, 2);
}

MR_HD uint32_t mr_get_be32(const struct mr_view *v, uint32_t at)
{
	return (uint32_t)mr_get_be(v, at, 4);
}

MR_HD void mr_put_u8(const struct mr_view *v, uint32_t at, uint32_t x)
{
	mr_put_be(v, at, 1, x);
}

MR_HD void mr_put_be16(const struct mr_view *v, uint32_t at, uint32_t x)
{
	mr_put_be(v, at, 2, x);
}

MR_HD void mr_put_be32(const struct mr_view *v, uint32_t at, uint32_t x)
{
	mr_put_be(v, at, 4, x);
}

/* mr_put_bytes writes n bytes of memory into the frame, or nothing. */
MR_HD void mr_put_bytes(const struct mr_view *v, uint32_t at, const uint8_t *from, uint32_t n)
{
	if (mr_has(v, at, n))
		for (uint32_t i = 0; i < n; i++)
			v->frame[at + i] = from[i];
}

/* mr_equal tells whether n bytes of the frame are there and are those of memory. */
MR_HD int mr_equal(const struct mr_view *v, uint32_t at, const uint8_t *with, uint32_t n)
{
	uint32_t differ = 0;

	if (!mr_has(v, at, n))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		differ |= v->frame[at + i] ^ with[i];
	return differ == 0;
}

/* mr_swap exchanges n bytes at a with n bytes at b; nothing where one of them is not there. */
MR_HD void mr_swap(const struct mr_view *v, uint32_t a, uint32_t b, uint32_t n)
{
	if (!mr_has(v, a, n) || !mr_has(v, b, n))
		return;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t t = v->frame[a + i];

		v->frame[a + i] = v->frame[b + i];
		v->frame[b + i] = t;
	}
}

/* mr_view_push puts n bytes in front of the frame; 0 and no change: the headroom is less. */
MR_HD int mr_view_push(struct mr_view *v, uint32_t n)
{
	if (n > v->head || n > UINT16_MAX - v->length)
		return 0;
	v->frame -= n;
	v->head -= n;
	v->length += n;
	return 1;
}

/* mr_view_pull takes n bytes off the front; 0 and no change: less than MR_FRAME_MIN would stay. */
MR_HD int mr_view_pull(struct mr_view *v, uint32_t n)
{
	if (n > v->length - MR_FRAME_MIN)
		return 0;
	v->frame += n;
	v->head += n;
	v->length -= n;
	return 1;
}

/* mr_view_resize moves the frame's end; 0 and no change: no room, or less than MR_FRAME_MIN. */
MR_HD int mr_view_resize(struct mr_view *v, uint32_t length)
{
	if (length < MR_FRAME_MIN || length > UINT16_MAX || length > v->room - v->head)
		return 0;
	v->length = length;
	return 1;
}

/* mr_get_ip reads an IPv4 (family 4) or IPv6 (6) address; family 0: it is not there whole. */
MR_HD struct mr_ip mr_get_ip(const struct mr_view *v, uint32_t at, uint32_t family)
{
	uint32_t words = family == 4 ? 1 : 4;
	struct mr_ip ip;

	ip.family = mr_has(v, at, words * 4) ? family : 0;
	for (uint32_t i = 0; i < 4; i++)
		ip.word[i] = i < words ? mr_get_be32(v, at + 4 * i) : 0;
	return ip;
}

/* EtherTypes (IEEE 802 numbers), IP protocols and UDP ports (IANA) that the walk knows. */
#define MR_ETHER_IPV4 0x0800u
#define MR_ETHER_ARP 0x0806u
#define MR_ETHER_VLAN 0x8100u    /* IEEE 802.1Q C-tag */
#define MR_ETHER_SERVICE 0x88a8u /* IEEE 802.1ad S-tag */
#define MR_ETHER_IPV6 0x86ddu
#define MR_IP_HOP_BY_HOP 0u
#define MR_IP_ICMP 1u
#define MR_IP_TCP 6u
#define MR_IP_UDP 17u
#define MR_IP_ROUTING 43u
#define MR_IP_FRAGMENT 44u
#define MR_IP_ESP 50u
#define MR_IP_AH 51u
#define MR_IP_ICMP6 58u
#define MR_IP_NONE 59u
#define MR_IP_OPTIONS 60u
#define MR_IP_MOBILITY 135u
#define MR_IP_HIP 139u
#define MR_IP_SHIM6 140u
#define MR_UDP_VXLAN 4789u

#define MR_WALK_VLANS 4u    /* tags walked; one more is the frame's EtherType */
#define MR_WALK_HEADERS 16u /* IPv6 extension headers walked; with more it is malformed */

/* What a walk found; each means that the header is there whole and its lengths are sound. */
#define MR_HAS_VLAN (1u << 0)
#define MR_HAS_ARP (1u << 1)        /* of IPv4 over Ethernet: 28 bytes at l3 (RFC 826) */
#define MR_HAS_IPV4 (1u << 2)       /* header with its options (RFC 791) */
#define MR_HAS_IPV6 (1u << 3)       /* fixed header (RFC 8200) */
#define MR_HAS_OPTIONS (1u << 4)    /* IPv4 options, or IPv6 extension headers */
#define MR_HAS_FRAGMENT (1u << 5)   /* a part of a datagram */
#define MR_HAS_LATER (1u << 6)      /* of those not the first: no transport header at l4 */
#define MR_HAS_UDP (1u << 7)        /* RFC 768 */
#define MR_HAS_TCP (1u << 8)        /* with its options (RFC 9293) */
#define MR_HAS_ICMP (1u << 9)       /* first 8 bytes (RFC 792) */
#define MR_HAS_ICMP6 (1u << 10)     /* first 8 bytes (RFC 4443) */
#define MR_HAS_VXLAN (1u << 11)     /* over UDP, with a VNI; `payload` is the header (RFC 7348) */
#define MR_HAS_MALFORMED (1u << 12) /* a header after the bits before is cut off or contradicts */

/*
 * Offsets are bytes from the start of the frame; 0 where there is none. What lies between
 * `end` and the frame's end is padding, not part of any datagram.
 */
struct mr_headers {
	uint32_t has;       /* MR_HAS_ bits */
	uint32_t ethertype; /* of what lies at l3, behind all tags; below 0x600 it is a length */
	uint32_t vlan;      /* outermost tag: priority, DEI and VLAN id (TCI), 16 bits */
	uint32_t vlans;     /* tags */
	uint32_t l3;        /* behind EtherType and tags */
	uint32_t protocol;  /* IP protocol of what lies at l4 */
	uint32_t l4;        /* behind the IP headers; 0: not IP, or malformed before */
	uint32_t payload;   /* behind the UDP, TCP or ICMP header (8 bytes of the last) */
	uint32_t end;       /* of the innermost header with a length; the frame's without */
};

/* mr_walked_source and mr_walked_target give the IP addresses that were found; family 0: none. */
MR_HD struct mr_ip mr_walked_source(const struct mr_view *v, const struct mr_headers *h)
{
	if ((h->has & MR_HAS_IPV4) != 0)
		return mr_get_ip(v, h->l3 + 12, 4);
	return mr_get_ip(v, h->l3 + 8, (h->has & MR_HAS_IPV6) != 0 ? 6 : 0);
}

MR_HD struct mr_ip mr_walked_target(const struct mr_view *v, const struct mr_headers *h)
{
	if ((h->has & MR_HAS_IPV4) != 0)
		return mr_get_ip(v, h->l3 + 16, 4);
	return mr_get_ip(v, h->l3 + 24, (h->has & MR_HAS_IPV6) != 0 ? 6 : 0);
}

/* The Ethernet frame in a VXLAN packet begins here; mr_walk() from here walks that. */
MR_HD uint32_t mr_vxlan_inner(const struct mr_headers *h)
{
	return h->payload + 8;
}

MR_HD void mr_walk_ipv4(const struct mr_view *v, struct mr_headers *h)
{
	uint32_t first = mr_get_u8(v, h->l3), header = (first & 15) * 4;
	uint32_t total = mr_get_be16(v, h->l3 + 2), fragment = mr_get_be16(v, h->l3 + 6);

	if (first >> 4 != 4 || header < 20 || total < header || !mr_has(v, h->l3, total)) {
		h->has |= MR_HAS_MALFORMED;
		return;
	}
	h->has |= MR_HAS_IPV4;
	if (header > 20)
		h->has |= MR_HAS_OPTIONS;
	if ((fragment & 0x3fff) != 0) /* more fragments, or an offset */
		h->has |= MR_HAS_FRAGMENT;
	if ((fragment & 0x1fff) != 0)
		h->has |= MR_HAS_LATER;
	h->protocol = mr_get_u8(v, h->l3 + 9);
	h->l4 = h->l3 + header;
	h->end = h->l3 + total;
}

/* Bytes of the extension header at `at` (RFC 8200 4, RFC 4302); 0: it is none that is walked. */
MR_HD uint32_t mr_walk_extension(const struct mr_view *v, uint32_t protocol, uint32_t at)
{
	uint32_t units = mr_get_u8(v, at + 1);

	if (protocol == MR_IP_FRAGMENT)
		return 8;
	if (protocol == MR_IP_AH)
		return (units + 2) * 4;
	if (protocol == MR_IP_HOP_BY_HOP || protocol == MR_IP_ROUTING ||
		protocol == MR_IP_OPTIONS || protocol == MR_IP_MOBILITY || protocol == MR_IP_HIP ||
		protocol == MR_IP_SHIM6)
		return (units + 1) * 8;
	return 0;
}

MR_HD void mr_walk_ipv6(const struct mr_view *v, struct mr_headers *h)
{
	uint32_t total = 40 + mr_get_be16(v, h->l3 + 4), at = h->l3 + 40;
	uint32_t protocol = mr_get_u8(v, h->l3 + 6), bytes;

	if (mr_get_u8(v, h->l3) >> 4 != 6 || !mr_has(v, h->l3, total)) {
		h->has |= MR_HAS_MALFORMED;
		return;
	}
	h->has |= MR_HAS_IPV6;
	h->end = h->l3 + total;
	for (uint32_t i = 0; (h->has & MR_HAS_LATER) == 0; i++) {
		bytes = mr_walk_extension(v, protocol, at);
		if (bytes == 0)
			break;
		if (i == MR_WALK_HEADERS || bytes > h->end - at) {
			h->has |= MR_HAS_MALFORMED;
			return;
		}
		h->has |= MR_HAS_OPTIONS;
		if (protocol == MR_IP_FRAGMENT) {
			uint32_t fragment = mr_get_be16(v, at + 2);

			if ((fragment & 0xfff9) != 0) /* more fragments, or an offset */
				h->has |= MR_HAS_FRAGMENT;
			if ((fragment & 0xfff8) != 0)
				h->has |= MR_HAS_LATER;
		}
		protocol = mr_get_u8(v, at);
		at += bytes;
	}
	h->protocol = protocol;
	h->l4 = at;
}

/* Bytes of UDP header; the datagram must fit, or in a first fragment be longer. */
MR_HD uint32_t mr_walk_udp(const struct mr_view *v, struct mr_headers *h)
{
	uint32_t left = h->end - h->l4, bytes = mr_get_be16(v, h->l4 + 4);

	if (left < 8 || bytes < 8)
		return 0;
	if (bytes <= left)
		h->end = h->l4 + bytes;
	else if ((h->has & MR_HAS_FRAGMENT) == 0)
		return 0;
	return 8;
}

MR_HD void mr_walk_transport(const struct mr_view *v, struct mr_headers *h)
{
	uint32_t left = h->end - h->l4, bytes = 0, found = 0;

	if (h->protocol == MR_IP_UDP) {
		found = MR_HAS_UDP;
		bytes = mr_walk_udp(v, h);
	} else if (h->protocol == MR_IP_TCP) {
		found = MR_HAS_TCP;
		bytes = left >= 20 ? (mr_get_u8(v, h->l4 + 12) >> 4) * 4 : 0;
		bytes = bytes >= 20 && bytes <= left ? bytes : 0;
	} else if (h->protocol == MR_IP_ICMP && (h->has & MR_HAS_IPV4) != 0) {
		found = MR_HAS_ICMP;
		bytes = left >= 8 ? 8 : 0;
	} else if (h->protocol == MR_IP_ICMP6 && (h->has & MR_HAS_IPV6) != 0) {
		found = MR_HAS_ICMP6;
		bytes = left >= 8 ? 8 : 0;
	} else {
		return;
	}
	if (bytes == 0) {
		h->has |= MR_HAS_MALFORMED;
		return;
	}
	h->has |= found;
	h->payload = h->l4 + bytes;
	/* The I flag says that there is a VNI (RFC 7348 5). */
	if (found == MR_HAS_UDP && mr_get_be16(v, h->l4 + 2) == MR_UDP_VXLAN &&
		h->end - h->payload >= 8 + MR_FRAME_MIN && (mr_get_u8(v, h->payload) & 8) != 0)
		h->has |= MR_HAS_VXLAN;
}

/*
 * mr_walk fills *h from the Ethernet header at offset `at` (0, or mr_vxlan_inner()).
 * IPv4 header checksums are not looked at (mr_sum_ipv4_ok). IPv6 jumbograms (RFC 2675) are
 * malformed, since no frame holds one.
 */
MR_HD void mr_walk(const struct mr_view *v, uint32_t at, struct mr_headers *h)
{
	h->has = 0;
	h->vlan = 0;
	h->vlans = 0;
	h->protocol = 0;
	h->l4 = 0;
	h->payload = 0;
	h->end = v->length;
	h->ethertype = mr_get_be16(v, at + 12);
	h->l3 = at + MR_FRAME_MIN;
	while ((h->ethertype == MR_ETHER_VLAN || h->ethertype == MR_ETHER_SERVICE) &&
		h->vlans < MR_WALK_VLANS && mr_has(v, h->l3, 4)) {
		if (h->vlans++ == 0)
			h->vlan = mr_get_be16(v, h->l3);
		h->has |= MR_HAS_VLAN;
		h->ethertype = mr_get_be16(v, h->l3 + 2);
		h->l3 += 4;
	}
	if (!mr_has(v, at, MR_FRAME_MIN)) {
		h->has = MR_HAS_MALFORMED;
	} else if (h->ethertype == MR_ETHER_VLAN || h->ethertype == MR_ETHER_SERVICE) {
		/* More tags than are walked, or one that is cut short: what it bears is unknown. */
		h->has |= MR_HAS_MALFORMED;
	} else if (h->ethertype == MR_ETHER_IPV4) {
		mr_walk_ipv4(v, h);
	} else if (h->ethertype == MR_ETHER_IPV6) {
		mr_walk_ipv6(v, h);
	} else if (h->ethertype == MR_ETHER_ARP) {
		/* Ethernet (1), IPv4, 6 and 4 bytes of address. */
		if (!mr_has(v, h->l3, 28))
			h->has |= MR_HAS_MALFORMED;
		else if (mr_get_be(v, h->l3, 6) == 0x000108000604)
			h->has |= MR_HAS_ARP;
	}
	if (h->l4 != 0 && (h->has & MR_HAS_LATER) == 0)
		mr_walk_transport(v, h);
}

#endif
