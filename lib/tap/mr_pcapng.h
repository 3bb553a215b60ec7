/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_pcapng - writes a capture file that Wireshark and tshark read.
 *
 * One section with one interface for each side of a lane's chain; times in nanoseconds. Blocks
 * and options as in draft-ietf-opsawg-pcapng (IETF), byte order of this machine:
 *
 *     open: section header ─ interface ... ─ packet ... ─ close: interface statistics ...
 *
 * Blocks are gathered and written by flush, whole ones only: where a file takes no more, it is
 * cut behind the last whole block, so that what is there can be read.
 *
 * Thread   one.
 * Errors   -errno of write(2), with one sentence that names the file; -EPIPE is a reader
 *          that has enough.
 */
#ifndef MR_PCAPNG_H
#define MR_PCAPNG_H

#include "mr_base.h"
#include "mr_err.h"

#include <stdbool.h>

#define MR_PCAPNG_BUFFER 262144u
#define MR_PCAPNG_COMMENT_MAX 32768u

struct mr_pcapng {
	const char *name; /* of the file, for sentences */
	int fd;
	bool cuts;          /* it is a file that was empty */
	uint64_t written;   /* bytes of whole blocks in the file */
	size_t used, block; /* bytes in hand, and where the block begins that is being made */
	uint8_t buffer[MR_PCAPNG_BUFFER];
};

struct mr_pcapng_packet {
	uint32_t interface;
	uint64_t time_ns; /* since 1970 */
	const uint8_t *frame;
	uint32_t kept, length; /* bytes that are there, and that the frame has */
	bool outbound;
	uint64_t dropped;        /* copies lost since the packet before */
	const char *comments[2]; /* NULL: none */
};

/* Begins a section on an open file; the caller closes it. program is named in it. */
void mr_pcapng_begin(struct mr_pcapng *p, const char *name, int fd, const char *program);
/* An Ethernet interface; they count from 0. */
MR_MUST_USE int mr_pcapng_interface(struct mr_pcapng *p, const char *name, const char *description,
	uint32_t snaplen, struct mr_err *err);
/* kept is at most 65535 bytes, a comment is cut at MR_PCAPNG_COMMENT_MAX. */
MR_MUST_USE int mr_pcapng_packet(
	struct mr_pcapng *p, const struct mr_pcapng_packet *packet, struct mr_err *err);
MR_MUST_USE int mr_pcapng_statistics(struct mr_pcapng *p, uint32_t interface, uint64_t time_ns,
	uint64_t received, uint64_t dropped, const char *comment, struct mr_err *err);
MR_MUST_USE int mr_pcapng_flush(struct mr_pcapng *p, struct mr_err *err);

#endif
