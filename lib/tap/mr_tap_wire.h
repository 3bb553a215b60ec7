/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_tap_wire - what a capture's client and a running instance say to each other.
 *
 *     client ── request, program ──► instance ── started ─ records ... ─ ended ──► client
 *                                            └── refused
 *
 * Over a stream socket named MR_TAP_SOCKET in the instance's runtime directory, of one machine
 * and one version. The client ends a capture by closing its end, however it comes to that.
 *
 * Every message is a header and so many bytes behind it. Records are as in the worker's ring,
 * mr_tap_abi.h; all up to one without `more` are whole slots. The other kinds are text: started
 * and counters hold a line "stage name value" for each counter of a stage, refused and ended a
 * sentence.
 */
#ifndef MR_TAP_WIRE_H
#define MR_TAP_WIRE_H

#include "mr_base.h"
#include "mr_tap_abi.h"

#define MR_TAP_SOCKET "capture"
#define MR_TAP_MAGIC "mrtap-1"
#define MR_TAP_TEXT_MAX 16384u

struct mr_tap_request {
	char magic[8];
	char lane[MR_NAME_MAX];
	uint32_t snaplen, verdicts, reason; /* as in struct mr_tap_spec */
	uint32_t insns_count;               /* struct mr_tap_insn that follow */
};

enum mr_tap_kind {
	MR_TAP_STARTED = 1,
	MR_TAP_REFUSED,
	MR_TAP_RECORDS,
	MR_TAP_COUNTERS,
	MR_TAP_ENDED,
};

struct mr_tap_message {
	uint32_t kind; /* enum mr_tap_kind */
	uint32_t bytes;
	uint32_t worker;
	uint32_t more;
	uint64_t lost;     /* copies of this capture that found the ring full, so far */
	int64_t offset_ns; /* of the device's clock to CLOCK_REALTIME, with records */
};

#endif
