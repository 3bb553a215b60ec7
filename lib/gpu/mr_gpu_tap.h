/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_gpu_tap - the host's side of a capture: one lane of a device at a time.
 *
 *     start ─► seen ... next, next, ... ─► stop ─► seen ─► next ... until there is none
 *
 * All of it is words and records in host memory that was allocated with the rings (mr_tap.h), so
 * nothing here calls the driver or waits.
 *
 * Thread   one at a time, between launch and close; not the control thread's alone.
 */
#ifndef MR_GPU_TAP_H
#define MR_GPU_TAP_H

#include "mr_gpu.h"
#include "mr_tap.h"

/*
 * mr_gpu_tap_start has lane i captured: of each packet that the filter wants (count 0: of all),
 * at most snaplen bytes; 0: whole frames. The program was checked. -EBUSY: a worker
 * has not yet seen the end of the last one; -ENOSPC: the ring holds less than 4 such packets
 * for each of the lane's workers; -ENOTSUP: its buffers are not of whole pieces of 16 bytes.
 */
MR_MUST_USE int mr_gpu_tap_start(struct mr_gpu *g, uint32_t lane, const struct mr_bpf *program,
	uint32_t count, uint32_t snaplen, struct mr_err *err);
void mr_gpu_tap_stop(struct mr_gpu *g);

/* mr_gpu_tap_seen: whether all workers have seen the last start or stop, or have left. */
bool mr_gpu_tap_seen(const struct mr_gpu *g);

/*
 * mr_gpu_tap_follow has the times of what comes next be times of day, of which one lay between two
 * of mr_clock_ns(). To be called over and over: the kernel's clock may go at another pace than the
 * host's, so it is asked for it once a second, and the time of day may be set.
 */
void mr_gpu_tap_follow(
	struct mr_gpu *g, uint64_t before_ns, uint64_t time_of_day_ns, uint64_t after_ns);

struct mr_gpu_tap_copy {
	const struct mr_tap_record *record;
	uint64_t time_ns;                 /* since 1970, when the kernel took the slot */
	const uint8_t *before, *after;    /* the frame's first byte */
	uint32_t before_kept, after_kept; /* bytes that there are of it */
};

/*
 * mr_gpu_tap_next fills in the next copy; false: there is none now. What it points at is the
 * caller's until the next call. Copies come in the order of the lane's packets: those of a slot
 * wait for those of the slots before, which workers have in hand; after stop they do not. What no
 * sane worker wrote (a head beyond the ring, a packet twice or beyond its slot) counts as lost.
 */
bool mr_gpu_tap_next(struct mr_gpu *g, struct mr_gpu_tap_copy *ret_copy);

/* Bytes of a frame that a record holds at most, and copies lost, both of the present capture. */
uint32_t mr_gpu_tap_snaplen(const struct mr_gpu *g);
uint64_t mr_gpu_tap_lost(const struct mr_gpu *g);

#endif
