/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_tap_client - asks a running instance for copies of a lane's packets.
 *
 *     open ─► next ... (records, counters) ─► ended, or close whenever the caller likes
 *
 * What comes is not trusted: sizes have bounds, and records are looked at by mr_tap_client_record.
 *
 * Thread   one; the structure is the caller's memory.
 * Errors   0 or -errno with one sentence.
 */
#ifndef MR_TAP_CLIENT_H
#define MR_TAP_CLIENT_H

#include "mr_err.h"
#include "mr_tap_wire.h"

#include <stdbool.h>

struct mr_tap_client {
	int fd;
	struct mr_tap_message message; /* the last one, */
	uint8_t *data;                 /* what it holds, and a 0 behind it */
	size_t room;
};

/* dir is the instance's runtime directory. -ENOENT: nobody listens there. */
MR_MUST_USE int mr_tap_client_open(struct mr_tap_client *c, const char *dir,
	const struct mr_tap_request *request, const struct mr_tap_insn *insns, struct mr_err *err);

/*
 * mr_tap_client_next waits for a message; records come as whole slots. -EAGAIN: none came within
 * 200 ms, or a signal did; -EPERM: refused, in the instance's words; -ECONNRESET: the instance is
 * gone.
 */
MR_MUST_USE int mr_tap_client_next(struct mr_tap_client *c, struct mr_err *err);

/*
 * mr_tap_client_record gives the record at *at of the last message, which are records, and its
 * frame, and moves *at behind it; false: there is none, or what is there is none.
 */
bool mr_tap_client_record(const struct mr_tap_client *c, size_t *at,
	struct mr_tap_record *ret_record, const uint8_t **ret_frame);

/*
 * mr_tap_client_finish ends the capture and throws away what is still to come, for at most two
 * seconds; message.lost is the whole number then.
 */
void mr_tap_client_finish(struct mr_tap_client *c);

void mr_tap_client_close(struct mr_tap_client *c);

#endif
