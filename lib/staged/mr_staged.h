/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_staged - a lane that copies its frames: the old road, for comparison and where no
 * other holds.
 *
 *     rx mbufs ── gather ─► host buffer ── stream ─► GPU buffer, READY ─► kernel
 *     tx mbufs ◄─ scatter ─ host buffer ◄─ stream ── GPU buffer   ◄─ DONE ──┘
 *                             COPIED
 *
 * It is a relay (mr_relay.h) with copies: the lane's core gathers the frames of a slot in
 * the slot's page-locked buffer, one copy takes them to the GPU and the stream itself
 * writes READY; once the kernel is done, one copy brings them back and the stream writes
 * COPIED, and only then the core scatters them to the mbufs and sends. Either half alone is
 * there too: frames that arrive staged and leave from GPU memory need no way back, frames
 * that leave staged but arrive in GPU memory no way in; the kernel copies them between.
 *
 * Packed, the frames of a slot follow each other in its buffer, each from the next 64 bytes on
 * with no room of its own, so that one copy moves little else than frames: a copy's price is the
 * call, and then its bytes, so a copy for each frame would cost more than all of them weigh.
 * What a kernel leaves outside the bytes that a frame came in is then a result that cannot be.
 * Spread, each frame has a whole buffer's room, and what lies between two goes with them.
 *
 * This is the only code by which a CPU touches packet bytes, and only a staged lane's
 * thread runs it: direct and pinned lanes run mr_lane_loop or mr_relay_loop, which do not
 * lead here.
 *
 * Thread   the lane's core.
 * Owner    the caller.
 * Errors   none. A copy that fails stops the lane's slots where they are; the watch of the
 *          device says why.
 */
#ifndef MR_STAGED_H
#define MR_STAGED_H

#include "mr_gpu.h"
#include "mr_relay.h"

struct mr_staged {
	struct mr_relay relay;
	struct mr_gpu_copier copier;
	bool gathers;  /* frames arrive in host memory that the kernel does not reach */
	bool scatters; /* and leave from such */
	bool packed;   /* the chain leaves frames in place, so they need no room */
	bool failed;   /* a copy did; nothing is given to the device any more */
	uint32_t back; /* number of the slot whose way back is to begin next */
};

/* mr_staged_moves does the copies' part of one turn; returns how many packets moved. */
uint32_t mr_staged_moves(struct mr_staged *staged);

/* mr_staged_loop is mr_lane_loop for a staged lane. */
void mr_staged_loop(struct mr_staged *staged);

#endif
