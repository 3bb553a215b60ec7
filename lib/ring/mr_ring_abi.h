/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_ring_abi - the slot, read by both compilers.
 *
 * A ring is `slots` slots (a power of two). A slot is up to `batch` packets
 * that a lane hands to one kernel worker and gets back with verdicts. It has
 * two halves with one writer each, so nothing is overwritten in place:
 *
 *     in   written by the lane    READY, count, descriptors   GPU memory where
 *                                                             it can be mapped
 *     out  written by the kernel  DONE, descriptors           always host memory
 *
 *              give: store-release READY          take: load-acquire DONE
 *     lane ────────────────────────► worker ────────────────────────► lane
 *
 * Hand-over is by sequence number. Slots are numbered 0, 1, 2, ... for ever in
 * 32 bits; number s lives in slot s % slots and is handed over when READY (and
 * then DONE) equals s + 1. Before that the word holds s + 1 - slots, so a word
 * left from an earlier lap can never be taken for the present one. Worker w of
 * W takes the numbers w, w + W, ...; the lane completes in order.
 *
 * Positions are in units of 64 bytes from the start of the packet region, which
 * reaches 256 GiB with 32 bits. The device checks every descriptor against the
 * region and the buffer before it forms an address.
 *
 * Where frames leave from other memory than they arrive in, a slot also says to which
 * buffer of a second region each frame is to be copied when the chain is done with it: an
 * array of positions behind the descriptors, present only then. The head stays the same.
 *
 * Sizes and offsets are asserted at the end; gcc and nvcc both compile them.
 */
#ifndef MR_RING_ABI_H
#define MR_RING_ABI_H

#include <stdint.h>

#define MR_UNIT 64u               /* bytes per position unit */
#define MR_BATCH_MAX 1024u        /* packets per slot */
#define MR_SLOTS_MAX 4096u        /* slots per ring, a power of two from 2 */
#define MR_TX_MAX 16u             /* entries of a lane's tx list; bits of a port mask */
#define MR_CHAIN_MAX 8u           /* stages per chain */
#define MR_WORKERS_MAX 64u        /* workers per lane */
#define MR_PARAM_BYTES 512u       /* a stage's parameters */
#define MR_COUNTERS_MAX 64u       /* counters of all stages of a lane, 64 bits each */
#define MR_STAGE_COUNTERS_MAX 32u /* of one stage */
#define MR_FRAME_MIN 14u          /* Ethernet header; shorter frames are runts */

/* Lane to kernel, 8 bytes a packet. */
struct mr_desc_in {
	uint32_t position; /* buffer's start in the region, in MR_UNIT */
	uint16_t length;   /* bytes of the frame */
	uint16_t head;     /* bytes from the buffer's start to the frame */
};

/* Kernel to lane, 8 bytes a packet. */
struct mr_desc_out {
	uint16_t length;
	uint16_t head;
	uint8_t verdict; /* enum mr_verdict */
	uint8_t port;    /* MR_TX: index into the lane's tx list */
	uint16_t arg;    /* MR_DROP: enum mr_reason; MR_TX_MASK: bits of the tx list */
};

enum mr_verdict {
	MR_TX = 0,      /* to tx[port] */
	MR_TX_MASK = 1, /* to every tx[i] whose bit i is set in arg */
	MR_DROP = 2,    /* free and count as reason arg */
};

/* Why a kernel drops; the names are counters gpu_drop_<name> in mr_reasons.def. */
enum mr_reason {
#define REASON(name, help) MR_REASON_##name,
#include "mr_reasons.def"
#undef REASON
	MR_REASON_COUNT
};

struct mr_slot_in {
	uint32_t ready;  /* sequence + 1 */
	uint16_t count;  /* packets, 1..batch; 0 hands over an empty slot */
	uint8_t rx_port; /* DPDK port id the packets came from */
	uint8_t flags;   /* MR_SLOT_TICK and MR_SLOT_LAST, or 0 */
			 /* struct mr_desc_in d[batch] follows; seven share the first cache line */
};

/*
 * A tick: the slot's buffers are blank, of length 0, for results that stages have to tell. Who
 * takes none leaves its verdict, MR_DROP for MR_REASON_blank. MR_SLOT_LAST: no packet comes
 * any more, so what waits for one is to be told now.
 */
#define MR_SLOT_TICK 1u
#define MR_SLOT_LAST 2u

struct mr_slot_out {
	uint32_t done;  /* sequence + 1 */
	uint32_t plain; /* 1: every packet goes unchanged to the first port, so the lane need
			   not read the descriptors; they are written all the same */
			/* struct mr_desc_out d[batch] follows */
};

#define MR_SLOT_HEADER 8u
#define MR_SLOT_BYTES(batch) (((MR_SLOT_HEADER + 8u * (batch)) + 63u) / 64u * 64u)
/* The same with uint32_t tx_position[batch] behind the descriptors. */
#define MR_SLOT_BYTES_TX(batch) (((MR_SLOT_HEADER + 12u * (batch)) + 63u) / 64u * 64u)

/* Written by the host, read by workers; host memory. One per launch. */
struct mr_host_ctl {
	uint32_t exit;       /* 1: leave once the slot in hand is done */
	uint32_t beat;       /* counted up by the control thread; a worker that sees no
				change for host_timeout_ns leaves */
	uint32_t generation; /* of parameters; its lowest bit chooses a half of them */
	uint32_t tap;        /* a number that changes, and in MR_TAP_LANE the lane's, from 1 */
	uint32_t spare[12];
};

/* Of mr_host_ctl.tap: the lane that is captured, its number plus 1; 0: none is. */
#define MR_TAP_LANE(tap) ((tap)&0xffu)
#define MR_TAP_NEXT 0x100u /* from one number to the next */

/* Written by one worker, read by the host; host memory, one cache line each. */
struct mr_worker_ctl {
	uint32_t hello;      /* 1 once the worker polls */
	uint32_t beat;       /* counted up while polling, at least every 10 ms */
	uint32_t seq;        /* slots completed */
	uint32_t left;       /* enum mr_left, 0 while running */
	uint32_t generation; /* that it works with; it reads nothing of the one before */
	uint32_t tap;        /* the word that it has seen; it copies nothing for those before */
	uint32_t spare[10];
};

enum mr_left {
	MR_LEFT_NOT = 0,
	MR_LEFT_EXIT,        /* the exit word */
	MR_LEFT_HOST_SILENT, /* the host stopped beating */
	MR_LEFT_DIED,        /* never stored: the software device's injected death */
};

/*
 * One stage of a chain. What a reload changes is there twice: workers read the half that
 * the generation chooses, and the host fills the other one before it counts that up.
 */
struct mr_chain_dev {
	uint16_t stage;        /* enum mr_stage_id */
	uint16_t counter_base; /* first of its counters in the lane's block */
	uint32_t flags;        /* MR_CHAIN_TICKS or 0 */
	uint64_t table[2];     /* what it loaded from a file, in device memory; 0: nothing */
	uint64_t state;        /* its memory of this lane; 0: it has none */
	uint64_t shared;       /* its memory of the device, the same for all lanes; 0: none */
	uint8_t params[2][MR_PARAM_BYTES] __attribute__((aligned(8)));
};

/* One lane as the kernel sees it; addresses are the kernel's own. */
struct mr_lane_dev {
	uint64_t region;       /* packet memory */
	uint64_t in;           /* slots x in_stride bytes */
	uint64_t out;          /* slots x out_stride bytes */
	uint64_t workers_ctl;  /* struct mr_worker_ctl [workers] */
	uint64_t counters_out; /* uint64_t [workers][MR_COUNTERS_MAX], host memory */
	uint64_t counters_acc; /* the same in device memory, added to */
	uint64_t tx_region;    /* packet memory that frames are copied to; 0: none is */
	uint64_t tap;          /* struct mr_tap [workers], mr_tap.h */
	uint64_t tap_order;    /* struct mr_tap_order, host memory */
	uint32_t region_units; /* region's size in MR_UNIT */
	uint32_t room;         /* bytes of a buffer from its start */
	uint32_t in_stride;    /* MR_SLOT_BYTES(batch) */
	uint32_t out_stride;
	uint32_t slots;
	uint32_t batch;
	uint32_t workers;
	uint32_t tx_count;  /* entries of the tx list */
	uint32_t first_seq; /* number of the first slot */
	uint32_t chain_len;
	uint32_t tx_region_units;
	uint32_t flags; /* MR_LANE_TIMED or 0 */
	uint32_t index; /* of the lane among its device's */
	uint32_t spare;
	struct mr_chain_dev chain[MR_CHAIN_MAX];
};

#define MR_CHAIN_TICKS 1u /* blank buffers are offered to it */

#define MR_LANE_TIMED 2u /* a stage asks for the time */

/* Block b of the grid is worker map[b].worker of lane map[b].lane. */
struct mr_worker_map {
	uint32_t lane;
	uint32_t worker;
};

/* The one argument of every kernel entry, in device memory. */
struct mr_launch {
	uint64_t lanes;           /* struct mr_lane_dev [] */
	uint64_t map;             /* struct mr_worker_map [blocks] */
	uint64_t host_ctl;        /* struct mr_host_ctl */
	uint64_t host_timeout_ns; /* 0: never */
	uint32_t blocks;
	uint32_t backoff_ns; /* longest pause between two polls */
};

#if defined(__cplusplus)
#define MR_ABI_ASSERT(e) static_assert(e, #e)
#else
#define MR_ABI_ASSERT(e) _Static_assert(e, #e)
#endif
MR_ABI_ASSERT(sizeof(struct mr_desc_in) == 8);
MR_ABI_ASSERT(sizeof(struct mr_desc_out) == 8);
MR_ABI_ASSERT(sizeof(struct mr_slot_in) == MR_SLOT_HEADER);
MR_ABI_ASSERT(sizeof(struct mr_slot_out) == MR_SLOT_HEADER);
MR_ABI_ASSERT(sizeof(struct mr_host_ctl) == 64);
MR_ABI_ASSERT(sizeof(struct mr_worker_ctl) == 64);
MR_ABI_ASSERT(sizeof(struct mr_chain_dev) == 40 + 2 * MR_PARAM_BYTES);
MR_ABI_ASSERT(
	sizeof(struct mr_lane_dev) == 9 * 8 + 14 * 4 + MR_CHAIN_MAX * sizeof(struct mr_chain_dev));
MR_ABI_ASSERT(sizeof(struct mr_worker_map) == 8);
MR_ABI_ASSERT(sizeof(struct mr_launch) == 40);

#endif
