/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_gen_frame - a frame that proves itself.
 *
 *     Ethernet 14 [ VLAN 4 ] IPv4 20  UDP 8 │ crc 4  run 2  trial 1  stream 1  sequence 4
 *                                           │ time 6 │ pattern ...
 *
 * The 18 bytes of the stamp are what the shortest frame has room for. All of it is in
 * network order. The CRC is CRC-32C over the rest of the UDP payload, the pattern
 * included; run is a number that each run of the program draws, so that what an earlier
 * one left in the network is not taken for this one's; time is the intended send time in
 * nanoseconds since the trial began.
 *
 * A frame is ours by its UDP ports, in either direction, since a device under test may
 * swap addresses, route, or add a tag. Frames that are ours and do not agree with their
 * CRC or their lengths are corrupt. A frame whose ports were hit is foreign, and its
 * number is lost.
 *
 * Thread   any; a frame is constant after init.
 * Errors   none: whatever bytes come, the answer is one of three.
 * Source   RFC 791, RFC 768 (no checksum), IEEE 802.1Q; CRC-32C of RFC 3720
 */
#ifndef MR_GEN_FRAME_H
#define MR_GEN_FRAME_H

#include "mr_gen_config.h"

#define MR_GEN_STAMP_BYTES 18u
#define MR_GEN_TIME_BITS 48u

struct mr_gen_stamp {
	uint16_t run;
	uint8_t trial;
	uint8_t stream;
	uint32_t sequence; /* the low 32 bits */
	uint64_t time_ns;  /* below 2^48: 78 hours */
};

struct mr_gen_frame {
	uint8_t head[46]; /* up to the UDP payload */
	uint32_t ip_at;   /* where IPv4 begins */
	uint32_t streams;
	uint16_t src_port, dst_port;
	uint8_t pattern[256];
};

enum mr_gen_seen {
	MR_GEN_OURS,
	MR_GEN_CORRUPT,
	MR_GEN_FOREIGN,
};

void mr_gen_frame_init(
	struct mr_gen_frame *f, const struct mr_gen_headers *headers, uint32_t streams);

/* mr_gen_frame_write makes a frame of `bytes`, without FCS, at `to`. */
void mr_gen_frame_write(const struct mr_gen_frame *f, const struct mr_gen_stamp *stamp,
	uint32_t bytes, uint8_t *to);

/* mr_gen_frame_read judges any bytes; *ret_stamp is valid for MR_GEN_OURS. */
enum mr_gen_seen mr_gen_frame_read(const struct mr_gen_frame *f, const uint8_t *data,
	uint32_t bytes, struct mr_gen_stamp *ret_stamp);

#endif
