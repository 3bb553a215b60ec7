/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_port_capture - how far the records of a capture can be followed.
 *
 * Only lengths are read, of both formats and byte orders, as libpcap takes them.
 *
 * Thread   any.
 * Source   draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng; libpcap 1.10 sf-pcap.c
 *          and sf-pcapng.c for the bounds
 */
#ifndef MR_PORT_CAPTURE_H
#define MR_PORT_CAPTURE_H

#include "mr_base.h"

#include <stdbool.h>

/* Bytes in front of the first frame, and of each frame, as libpcap writes them. */
#define MR_PORT_CAPTURE_HEAD 24u
#define MR_PORT_CAPTURE_RECORD 16u

struct mr_port_capture {
	uint64_t packets; /* whole ones seen */
	uint64_t offset;  /* bytes in front of the record where the walk ended */
	bool damaged;     /* it does not fit there */
	const char *why;  /* in words, where damaged */
};

/* mr_port_capture_is tells whether a file begins as a capture does. */
bool mr_port_capture_is(int fd);

/*
 * mr_port_capture_walk follows the records over at most `packets` packets, and looks
 * at the one behind them. Returns 0, or -errno where the file cannot be read or is
 * no capture.
 */
MR_MUST_USE int mr_port_capture_walk(int fd, uint64_t packets, struct mr_port_capture *ret_found);

#endif
