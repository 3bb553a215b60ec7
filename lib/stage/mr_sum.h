/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_sum - the Internet checksum (RFC 1071) and its incremental update (RFC 1624).
 *
 *     sum of 16-bit big-endian words ─ fold ─► 16 bits ─ complement ─► checksum field
 *
 * A sum is kept unfolded in 32 bits, which holds 65537 words. A checksum is the number
 * that the field holds, in the order of this machine.
 *
 * A stage that changes a field of a few bytes updates the checksum from old and new
 * value; one that only exchanges words (addresses, ports) leaves it as it is, since a
 * sum has no order; only one that writes a packet anew sums it.
 */
#ifndef MR_SUM_H
#define MR_SUM_H

#include "mr_packet.h"

/* mr_sum_fold adds the carries back until 16 bits are left. */
MR_HD uint32_t mr_sum_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)sum;
}

/* mr_sum_bytes adds n bytes of the frame, a last odd one padded with 0; 0: not all there. */
MR_HD uint32_t mr_sum_bytes(const struct mr_view *v, uint32_t at, uint32_t n)
{
	uint32_t sum = 0;

	if (!mr_has(v, at, n))
		return 0;
	MR_ROLLED
	for (uint32_t i = 0; i + 1 < n; i += 2)
		sum += (uint32_t)v->frame[at + i] << 8 | v->frame[at + i + 1];
	return n % 2 != 0 ? sum + ((uint32_t)v->frame[at + n - 1] << 8) : sum;
}

/* mr_sum_end makes the checksum of a sum; UDP sends 0xffff in the place of 0. */
MR_HD uint32_t mr_sum_end(uint64_t sum)
{
	return ~mr_sum_fold(sum) & 0xffff;
}

/* mr_sum_replace is the checksum after a 16-bit word changed (RFC 1624 eqn. 3). */
MR_HD uint32_t mr_sum_replace(uint32_t checksum, uint32_t was, uint32_t is)
{
	return mr_sum_end((uint64_t)(~checksum & 0xffff) + (~was & 0xffff) + is);
}

/* The same for a 32-bit field that begins at an even offset of what is summed. */
MR_HD uint32_t mr_sum_replace_32(uint32_t checksum, uint32_t was, uint32_t is)
{
	return mr_sum_end((uint64_t)(~checksum & 0xffff) + (~was >> 16) + (~was & 0xffff) +
		(is >> 16) + (is & 0xffff));
}

/* mr_sum_pseudo adds the pseudo header of UDP, TCP and ICMPv6 (RFC 768, RFC 8200 8.1). */
MR_HD uint32_t mr_sum_pseudo(const struct mr_view *v, const struct mr_headers *h)
{
	uint32_t bytes = (h->has & MR_HAS_IPV6) != 0 ? 32 : 8;
	uint32_t at = (h->has & MR_HAS_IPV6) != 0 ? h->l3 + 8 : h->l3 + 12;

	return mr_sum_bytes(v, at, bytes) + h->protocol + (h->end - h->l4);
}

/* mr_sum_ipv4_ok tells whether the header's checksum holds; the walk found the header. */
MR_HD int mr_sum_ipv4_ok(const struct mr_view *v, const struct mr_headers *h)
{
	return mr_sum_fold(mr_sum_bytes(v, h->l3, h->l4 - h->l3)) == 0xffff;
}

/*
 * mr_sum_transport_ok tells whether the checksum of the walked UDP, TCP, ICMP or ICMPv6
 * holds; it reads all of it. UDP over IPv4 with checksum 0 has none and holds (RFC 768).
 */
MR_HD int mr_sum_transport_ok(const struct mr_view *v, const struct mr_headers *h)
{
	uint32_t sum = mr_sum_bytes(v, h->l4, h->end - h->l4);

	if ((h->has & MR_HAS_UDP) != 0 && mr_get_be16(v, h->l4 + 6) == 0)
		return (h->has & MR_HAS_IPV4) != 0;
	if ((h->has & MR_HAS_ICMP) == 0)
		sum += mr_sum_pseudo(v, h);
	return mr_sum_fold(sum) == 0xffff;
}

#endif
