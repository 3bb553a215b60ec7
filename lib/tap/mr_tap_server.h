/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_tap_server - a running instance lends its lanes' taps to clients.
 *
 *     client ─► socket ─► thread: begin ─ ring ─► client ... ─ end, when the client is gone
 *
 * One thread serves all clients, one at a time for a lane. It sends what lies in the rings as it
 * lies there (mr_tap_wire.h) and never waits for a client: one that reads too slowly has full
 * rings, which lose copies and count them. Without a client it sleeps.
 *
 * The socket is the user's own, mode 0600. What a client asks for is judged before a kernel
 * sees it.
 *
 * Thread   serve and unserve: the control thread, while kernels are launched.
 * Owner    the source and what it points at are borrowed until unserve.
 * Errors   serve: 0 or -errno with one sentence.
 */
#ifndef MR_TAP_SERVER_H
#define MR_TAP_SERVER_H

#include "mr_base.h"
#include "mr_err.h"

struct mr_gpu;
struct mr_tap_server;

struct mr_tap_target {
	const char *name;
	struct mr_gpu *gpu;
	uint32_t index;   /* of the lane among those of its device */
	uint32_t workers; /* of the lane */
};

struct mr_tap_source {
	const struct mr_tap_target *lanes;
	uint32_t lanes_count;
	/* Writes a line "stage name value" for each counter of lane i's stages; called by the
	 * server's thread. */
	void (*counters)(void *ctx, uint32_t lane, char *ret_text, size_t bytes);
	void *ctx;
};

/* mr_tap_serve listens in the folder `dir`, where a socket that was left is replaced. */
MR_MUST_USE int mr_tap_serve(const char *dir, const struct mr_tap_source *source,
	struct mr_tap_server **ret_server, struct mr_err *err);

/*
 * mr_tap_unserve sends the clients what is still in the rings, for at most a second, tells them
 * that it ends, and removes the socket. NULL is accepted.
 */
void mr_tap_unserve(struct mr_tap_server *server);

#endif
