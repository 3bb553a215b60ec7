/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_tap_abi - what a capture and the kernel share, read by both compilers.
 *
 * A tap copies the first bytes of a lane's packets, before and after the chain, into a ring of
 * host memory that each of the lane's workers has to itself:
 *
 *     host: spec, then the tap word of mr_host_ctl ──► worker: its own copy of the spec
 *     worker: records ─ release head ──► host: acquire head ─ reads ─ tail ──► worker
 *
 * Between two slots a worker looks whether the tap word has changed, takes a copy of its lane's
 * spec into GPU memory, where the filter runs, and says by `taken` that it did. The host
 * changes the spec only while it is not active and every worker has taken that.
 *
 * head and tail count bytes for ever in 32 bits; byte n lies at n modulo the ring's size, a
 * power of two. A record is a header and the frame's bytes in whole 16 bytes, and may go round
 * the end of the ring. A record that does not fit is lost and counted; the packet goes its way.
 * head moves between slots only, so what it has passed are whole slots.
 *
 * The filter is a program of classic BPF (McCanne and Jacobson, "The BSD Packet Filter",
 * USENIX 1993; opcodes as in linux/bpf_common.h).
 */
#ifndef MR_TAP_ABI_H
#define MR_TAP_ABI_H

#include <stdint.h>

#define MR_TAP_INSNS_MAX 1024u /* instructions of a filter */
#define MR_TAP_WORDS 16u       /* memory words of a filter, BPF_MEMWORDS */
#define MR_TAP_THREADS 256u    /* threads of a block */
#define MR_TAP_SNAP_MAX 65535u /* bytes copied of a frame */
#define MR_TAP_ANY_REASON UINT32_MAX

/* One instruction, laid out as struct bpf_insn and struct sock_filter are. */
struct mr_tap_insn {
	uint16_t code;
	uint8_t jt, jf;
	uint32_t k;
};

/* What is wanted of a lane; written by the host. */
struct mr_tap_spec {
	uint32_t active;
	uint32_t snaplen;     /* bytes of a frame, 1..MR_TAP_SNAP_MAX */
	uint32_t verdicts;    /* bit v: packets with verdict v (enum mr_verdict) */
	uint32_t reason;      /* enum mr_reason of a drop, or MR_TAP_ANY_REASON */
	uint32_t insns_count; /* 0: every packet */
	uint32_t spare[11];
	struct mr_tap_insn insns[MR_TAP_INSNS_MAX];
};

/* One worker's ring. The first cache line is written by the worker, the second by the host. */
struct mr_tap_ends {
	uint32_t head;     /* bytes written so far */
	uint32_t taken;    /* the tap word that it works by */
	uint64_t lost;     /* records that did not fit */
	uint64_t clock_ns; /* of the device, when head was last written */
	uint32_t spare[10];
	uint32_t tail; /* bytes read so far */
	uint32_t spare2[15];
};

/* In the ring, aligned to 16 bytes, in front of `shift` bytes that are not the frame's. */
struct mr_tap_record {
	uint32_t bytes; /* of the record, a multiple of 16 */
	uint32_t seq;   /* number of its slot */
	uint64_t time_ns;
	uint16_t index; /* of the packet in its slot */
	uint8_t point;  /* enum mr_tap_point */
	uint8_t shift;  /* bytes between this header and the frame, 0..15 */
	uint16_t length;
	uint16_t kept;   /* bytes of it that follow */
	uint8_t verdict; /* as in struct mr_desc_out, of the chain: known in both records */
	uint8_t port;
	uint16_t arg;
	uint32_t unwanted; /* 1: its verdict is not among those that are wanted */
};

enum mr_tap_point {
	MR_TAP_BEFORE, /* the chain, as it was received */
	MR_TAP_AFTER,  /* the chain, as it is sent */
};

/* What a worker has in GPU memory. uint32_t mark[batch] follows. */
struct mr_tap_worker {
	uint32_t snaplen, verdicts, reason, insns_count;
	uint64_t lost;
	struct mr_tap_insn insns[MR_TAP_INSNS_MAX];
	uint32_t words[MR_TAP_THREADS][MR_TAP_WORDS];
};

/* Part of mr_lane_dev; addresses are the kernel's own. spec 0: the lane has no tap. */
struct mr_tap_lane {
	uint64_t spec;    /* struct mr_tap_spec */
	uint64_t ends;    /* struct mr_tap_ends [workers] */
	uint64_t ring;    /* [workers][ring_bytes] */
	uint64_t workers; /* struct mr_tap_worker, each worker_stride bytes */
	uint32_t ring_bytes;
	uint32_t worker_stride;
};

#endif
