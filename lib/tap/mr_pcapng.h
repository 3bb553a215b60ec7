/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_pcapng - the blocks of a capture file, written into memory.
 *
 * Each function writes one whole block behind `to`, in this machine's byte order, and gives its
 * length, a multiple of 4. There is room for MR_PCAPNG_MAX bytes. Text is UTF-8 and is cut where
 * it is longer than MR_PCAPNG_TEXT.
 *
 * Thread   any.
 * Source   draft-ietf-opsawg-pcapng: 4.1 section header, 4.2 interface description, 4.3
 *          enhanced packet, 4.6 interface statistics, 3.5 options
 */
#ifndef MR_PCAPNG_H
#define MR_PCAPNG_H

#include "mr_base.h"

#include <stddef.h>

#define MR_PCAPNG_TEXT 4096u /* bytes of a comment, or of another text */
#define MR_PCAPNG_MAX (UINT16_MAX + 1u + 2u * MR_PCAPNG_TEXT) /* of a block */

#define MR_PCAPNG_SECTION 0x0a0d0d0au
#define MR_PCAPNG_INTERFACE 1u
#define MR_PCAPNG_STATISTICS 5u
#define MR_PCAPNG_PACKET 6u

/* Of mr_pcapng_packet: which way the frame went at its interface. */
#define MR_PCAPNG_INBOUND 1u
#define MR_PCAPNG_OUTBOUND 2u

/* A file begins with it, and tells which program wrote it. */
size_t mr_pcapng_section(uint8_t *to, const char *program);

/* Ethernet, times in nanoseconds. Interfaces are numbered from 0 in the order of their blocks. */
size_t mr_pcapng_interface(uint8_t *to, const char *name, uint32_t snaplen);

struct mr_pcapng_packet {
	uint32_t interface;
	uint64_t time_ns; /* since 1970 */
	const uint8_t *bytes;
	uint32_t kept, length; /* bytes that are there, and bytes of the frame */
	uint32_t direction;    /* MR_PCAPNG_INBOUND or MR_PCAPNG_OUTBOUND */
	uint64_t id;           /* the same for the same packet at another interface */
	const char *comment;
};

size_t mr_pcapng_packet(uint8_t *to, const struct mr_pcapng_packet *p);

/* What an interface has counted so far: packets seen, and copies of them that were lost. */
size_t mr_pcapng_statistics(uint8_t *to, uint32_t interface, uint64_t time_ns, uint64_t received,
	uint64_t lost, const char *comment);

#endif
