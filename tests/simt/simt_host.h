/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simt_host - the lane and the NIC of a SIMT run, on the shipped ring.
 *
 * The same slots go through the device form of the kernel, lanes against host, and
 * through the host form, which is the specification; the results are compared by
 * test_simt.c. This side writes frames before it gives their slot and reads them
 * after it has taken it, as DMA would, so that an order that is missing is seen.
 */
#ifndef SIMT_HOST_H
#define SIMT_HOST_H

#include "mr_image.h"
#include "mr_ring.h"
#include "mr_stage.h"
#include "mr_tap.h"

#define SIMT_SLOTS 4u
#define SIMT_BATCH 40u
#define SIMT_ROOM 1088u
#define SIMT_GROWS 8u  /* bytes that a stage may add behind a frame: reflect's option */
#define SIMT_FRONT 48u /* and in front of it: route's answer */
#define SIMT_WORKERS 2u
#define SIMT_TABLE_BYTES 6144u
#define SIMT_STATE_BYTES 81920u
#define SIMT_RECORDS 32u  /* of a worker, for a capture: less than a slot has packets */
#define SIMT_SNAPLEN 100u /* bytes of a frame in them, at most */
#define SIMT_GIVEN 7u     /* slots a run: the ring is lapped */
#define SIMT_FIRST_SEQ (UINT32_MAX - 2)

/* What host and lanes share. */
struct simt_arena {
	uint8_t region[SIMT_SLOTS * SIMT_BATCH * SIMT_ROOM] __attribute__((aligned(64)));
	uint8_t tx_region[SIMT_SLOTS * SIMT_BATCH * SIMT_ROOM] __attribute__((aligned(64)));
	uint8_t in[SIMT_SLOTS * MR_SLOT_BYTES_TX(SIMT_BATCH)] __attribute__((aligned(64)));
	uint8_t out[SIMT_SLOTS * MR_SLOT_BYTES_TX(SIMT_BATCH)] __attribute__((aligned(64)));
	struct mr_host_ctl host __attribute__((aligned(64)));
	struct mr_worker_ctl ctl[SIMT_WORKERS];
	uint64_t counters_out[SIMT_WORKERS][MR_COUNTERS_MAX];
	uint64_t counters_acc[SIMT_WORKERS][MR_COUNTERS_MAX];
	uint8_t table[MR_STAGE_COUNT][SIMT_TABLE_BYTES] __attribute__((aligned(64)));
	uint8_t state[MR_CHAIN_MAX][SIMT_STATE_BYTES] __attribute__((aligned(64)));
	struct mr_tap tap[SIMT_WORKERS];
	struct mr_tap_ctl tap_ctl[SIMT_WORKERS] __attribute__((aligned(64)));
	struct mr_tap_order order;
	uint8_t records[SIMT_WORKERS * SIMT_RECORDS * MR_TAP_STRIDE(SIMT_SNAPLEN)]
		__attribute__((aligned(64)));
	struct mr_lane_dev lane;
	struct mr_worker_map map[SIMT_WORKERS];
	struct mr_launch launch;
};

/* A packet to give; the frame is in the buffer where the descriptor is good. */
struct simt_packet {
	struct mr_desc_in d;
	bool good;
	uint32_t to;  /* position of the buffer that it is to be copied to */
	bool to_good; /* that is one */
	uint8_t frame[SIMT_ROOM];
};

struct simt_slot {
	uint32_t count;
	uint8_t rx_port;
	uint8_t flags; /* MR_SLOT_TICK: the packets are blank buffers */
	struct simt_packet packet[SIMT_BATCH];
};

/* What came of them. */
struct simt_taken {
	uint32_t plain;
	struct mr_desc_out d[SIMT_BATCH];
	uint8_t copy[SIMT_BATCH][SIMT_ROOM];   /* where there is one */
	uint8_t buffer[SIMT_BATCH][SIMT_ROOM]; /* of good packets, as far as there was a frame */
};

struct simt_outcome {
	struct simt_taken slot[SIMT_GIVEN];
	uint64_t counters[MR_COUNTERS_MAX]; /* sum over the workers */
	uint32_t done, left;                /* sum of slots; OR of the workers' enum mr_left */
};

/* Whether packets are copied for a capture, and when. */
enum simt_capture {
	SIMT_CAPTURE_NONE,
	SIMT_CAPTURE_ALL,  /* from before the first slot on */
	SIMT_CAPTURE_PARTS /* begun and ended meanwhile */
};

struct simt_host {
	struct simt_arena *arena;
	const struct simt_slot *slots; /* SIMT_GIVEN */
	uint32_t workers;
	uint64_t draw;
	bool lanes;  /* the other side are lanes: they are allowed frames slot by slot */
	bool whole;  /* a stage may write its buffer to the end: results */
	bool silent; /* gives nothing and does not beat */
	struct mr_ring ring;
	uint32_t given, taken;
	uint32_t idle; /* steps in which it gives and takes nothing */
	struct simt_outcome *outcome;
	enum simt_capture capture;
	uint32_t copied[SIMT_WORKERS]; /* records of this capture that were looked at */
	uint32_t wanted;               /* packets that should have been copied */
	uint32_t found;                /* that were, or were counted as lost */
	const char *wrong;             /* what a record should not be; NULL: all were right */
};

/* Lays out the arena for a run; chain and counters are the caller's. With a tx_region other
 * than 0 in the chain's lane, frames are copied. */
void simt_host_init(struct simt_host *h);
/* A step of the run against lanes, for struct simt_grid; argument is the simt_host. */
bool simt_host_step(void *argument);
/* All slots through an entry of the host form. */
void simt_host_reference(struct simt_host *h, mr_sim_entry entry);

/* Waits for word 0 of struct simt_seen and reads the others. */
struct simt_seen {
	const uint32_t *words;
	uint32_t words_count;
	bool right; /* all others were 1 */
};
bool simt_host_words_step(void *argument);

#endif
