/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_tap_link - how a client asks a running instance for a capture.
 *
 * The instance listens on a socket of its own beside DPDK's, `capture` in its runtime
 * directory, since DPDK's answers are one message each. Whoever may open that may capture.
 *
 *     client ─ struct mr_tap_request ─► instance
 *            ◄─ struct mr_tap_reply ───
 *            ◄─ pcapng ...             until so many packets, the client shuts its side of the
 *            ◄─ statistics, end        connection down, or the instance ends
 *
 * The filter comes as a program, which the instance checks: it has no expressions to parse.
 * A stream that does not end with the statistics of both interfaces was broken off.
 *
 * Thread   the caller's.
 */
#ifndef MR_TAP_LINK_H
#define MR_TAP_LINK_H

#include "mr_bpf.h"

#define MR_TAP_SOCKET "capture"
#define MR_TAP_MAGIC 0x3154524du /* another number where the request is another one */
#define MR_TAP_ANY UINT32_MAX

/* Interfaces of the capture. */
enum mr_tap_side {
	MR_TAP_BEFORE,
	MR_TAP_AFTER,
	MR_TAP_SIDES,
};

struct mr_tap_request {
	uint32_t magic;
	uint32_t snaplen; /* bytes of a frame; 0: all */
	uint32_t verdict; /* enum mr_verdict, or MR_TAP_ANY */
	uint32_t count;   /* instructions of the filter; 0: every packet */
	uint64_t packets; /* after which it ends; 0: it does not by itself */
	char lane[MR_NAME_MAX];
	struct mr_bpf program[MR_BPF_MAX];
};

struct mr_tap_reply {
	int32_t code;        /* 0, or -errno */
	char sentence[1028]; /* why it was refused */
};

/*
 * mr_tap_open asks instance `name` and gives the connection, from which pcapng follows. -ENOENT: it
 * is not running; -EINVAL, -EBUSY, ...: it refused, and said why; else the connection failed.
 */
MR_MUST_USE int mr_tap_open(
	const char *name, const struct mr_tap_request *request, int *ret_fd, struct mr_err *err);

#endif
