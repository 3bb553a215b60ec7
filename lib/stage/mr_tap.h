/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_tap - copies of packets for the host, made by the kernel beside its work.
 *
 * Packets in GPU memory are seen by nobody but the kernel. While somebody captures a lane, its
 * workers copy the first bytes of each selected packet, before and after the chain, into
 * records in host memory, of which each worker has a ring of its own:
 *
 *     worker, per slot                                        reader, host
 *       pick      whom the filter wants, as long as there       takes what lies between
 *                 is room; who finds none is counted            tail and head, and moves
 *       before    descriptor and bytes into a record            tail
 *       (chain)
 *       after     result and bytes into the same record
 *       ... fence, barrier ...  release of head, then of next
 *
 * No copy waits: where the ring is full the copy is lost, and the packet is not. What does not lie
 * in a buffer, and so has no bytes, is not copied.
 *
 * Order. The threads of a block take a slot's records in any order. A worker's slots lie in the
 * order of their numbers, and what it has not come to yet is `next` or behind it, so that the
 * reader can put the slots of several workers in order.
 *
 * Costs. Without a capture a worker looks at one word a slot. With one, a record is filled raw, and
 * the reader makes sense of it: the bytes lie behind the head of the record as they lie in
 * the buffer, from the last multiple of 16 before the frame on, so that they are copied by 16.
 * All records have the same size. What a slot needs is read once and not for each packet.
 *
 * Start and stop. The host writes an order and then a word (mr_host_ctl.tap) that says for which
 * lane it is; each worker takes it between two slots, copies it to its own memory, where reading is
 * cheap, begins at record 0, and says so (mr_worker_ctl.tap). The same word without a lane ends
 * it: who has said that it saw that writes no record any more. Another word for the lane that is
 * captured asks for the worker's clock, since that may go at another pace than the host's.
 *
 * Thread   the kernel's, but where it says host.
 */
#ifndef MR_TAP_H
#define MR_TAP_H

#include "mr_bpf.h"
#include "mr_stage.h"

#define MR_TAP_THREADS 256u /* of a block, at most */

/* On the host a function of its own, which does not share registers with the stages. */
#if defined(__CUDACC__)
#define MR_TAP_OWN MR_HD
#else
#define MR_TAP_OWN static __attribute__((noinline, unused))
#endif

/* One packet. `area` bytes of before follow, and as many of after. */
struct mr_tap_record {
	uint64_t packet;  /* number of its slot, 32 bits, and its index in that, 32 bits */
	uint64_t time_ns; /* when the kernel took the slot, by its own clock */
	struct mr_desc_in in;
	struct mr_desc_out out;
};

/* One worker's ring, in host memory; a line each for who writes it. */
struct mr_tap_ctl {
	uint32_t head;     /* records written, by the worker */
	uint32_t next;     /* slot that it comes to next: all records of those before are there */
	uint64_t lost;     /* copies that found no room */
	uint64_t clock_ns; /* the worker's clock when it took the last word */
	uint32_t spare[10];
	uint32_t tail; /* records taken, by the host */
	uint32_t spare_too[15];
};

/* What the host wants, in host memory. */
struct mr_tap_order {
	uint64_t ctl;     /* struct mr_tap_ctl [workers] */
	uint64_t records; /* of worker 0, then of the others */
	uint32_t mask;    /* records of a worker, a power of two, less 1 */
	uint32_t stride;  /* bytes of a record: MR_TAP_STRIDE */
	uint32_t snaplen; /* bytes of a frame that are copied at most */
	uint32_t count;   /* instructions of the filter; 0: all packets */
	struct mr_bpf program[MR_BPF_MAX];
};

#define MR_TAP_AREA(snaplen) (((snaplen) + 15u) / 16u * 16u + 16u)
#define MR_TAP_STRIDE(snaplen) (sizeof(struct mr_tap_record) + 2 * MR_TAP_AREA(snaplen))

/* A worker's own, in device memory; zeroed before the launch. */
struct mr_tap {
	struct mr_tap_order order;
	uint8_t *records; /* this worker's */
	struct mr_tap_ctl *ctl;
	uint64_t picked; /* of the slot in hand */
	uint64_t now_ns; /* when it was taken */
	uint32_t room;   /* records free when it began */
	uint64_t lost;
	uint32_t head;
	uint32_t index[MR_BATCH_MAX]; /* of packets that are wanted */
	uint32_t words[MR_BPF_WORDS * MR_TAP_THREADS];
};

MR_ABI_ASSERT(sizeof(struct mr_tap_record) == 32);
MR_ABI_ASSERT(sizeof(struct mr_tap_ctl) == 128);
MR_ABI_ASSERT(sizeof(struct mr_tap_order) == 32 + 8 * MR_BPF_MAX);

/* mr_tap_take makes an order this worker's, which comes to slot `next` now; thread 0. */
MR_TAP_OWN void mr_tap_take(
	struct mr_tap *t, const struct mr_tap_order *order, uint32_t worker, uint32_t next)
{
	const uint32_t count = order->count;

	t->order.mask = order->mask;
	t->order.stride = order->stride;
	t->order.snaplen = order->snaplen;
	t->order.count = count;
	MR_ROLLED
	for (uint32_t i = 0; i < count; i++)
		t->order.program[i] = order->program[i];
	t->ctl = (struct mr_tap_ctl *)(uintptr_t)order->ctl + worker;
	t->records = (uint8_t *)(uintptr_t)order->records +
		(uint64_t)worker * (order->mask + 1) * order->stride;
	mr_store_relaxed(&t->ctl->next, next);
	t->head = 0;
	t->lost = 0;
}

/* mr_tap_begin opens a slot; thread 0. */
MR_TAP_OWN void mr_tap_begin(struct mr_tap *t, uint64_t now_ns)
{
	t->now_ns = now_ns;
	t->room = t->order.mask + 1 - (t->head - mr_load_acquire(&t->ctl->tail));
	t->picked = 0;
}

/* Whether a packet lies in a buffer of which the last one begins there. */
MR_HD int mr_tap_lies(const struct mr_desc_in *d, uint64_t last, uint32_t length)
{
	return d->position <= last && (uint32_t)d->head + d->length <= length;
}

/* Packet i is wanted; whether there is a record left for it says mr_tap_picked. */
MR_HD void mr_tap_want(struct mr_tap *t, uint32_t i)
{
	t->index[mr_add_u64(&t->picked, 1)] = i;
}

/* mr_tap_pick gives each packet that lies in a buffer and that the filter wants a record. */
MR_TAP_OWN void mr_tap_pick(struct mr_tap *t, const struct mr_lane_dev *lane,
	const struct mr_desc_in *in, uint32_t packets, uint32_t thread, uint32_t threads)
{
	const uint64_t region = lane->region, bytes = (uint64_t)lane->region_units * MR_UNIT;
	const uint32_t length = lane->room, filter = t->order.count;
	const uint64_t last = bytes / MR_UNIT - (length + MR_UNIT - 1) / MR_UNIT;
	struct mr_view v;

	if (bytes < length)
		return;
	/* A loop of its own, since most captures are of all packets. */
	for (uint32_t i = filter == 0 ? thread : packets; i < packets; i += threads)
		if (mr_tap_lies(&in[i], last, length))
			mr_tap_want(t, i);
	for (uint32_t i = filter != 0 ? thread : packets; i < packets; i += threads) {
		if (!mr_tap_lies(&in[i], last, length))
			continue;
		v.frame = (uint8_t *)(uintptr_t)(region + (uint64_t)in[i].position * MR_UNIT +
			in[i].head);
		v.length = in[i].length;
		if (mr_bpf_run(t->order.program, &v, &t->words[thread], MR_TAP_THREADS) != 0)
			mr_tap_want(t, i);
	}
}

MR_HD uint32_t mr_tap_picked(const struct mr_tap *t)
{
	return t->picked < t->room ? (uint32_t)t->picked : t->room;
}

/* Bytes from..to of a buffer into the record, as one of size threads. */
MR_HD void mr_tap_copy(uint8_t *target, const uint8_t *buffer, uint32_t from, uint32_t to,
	uint32_t rank, uint32_t size)
{
	const uint8_t *at = buffer + (from & ~15u) + 16 * rank, *end = buffer + to;

	MR_ROLLED
	for (target += 16 * rank; at < end; at += 16 * size, target += 16 * size) {
		uint32_t words[4];

		mr_frame_load_16(at, words);
		mr_frame_store_16(target, words);
	}
}

/* mr_tap_before fills in what packets are and how they came; all threads, after a barrier. */
MR_TAP_OWN void mr_tap_before(const struct mr_tap *t, const struct mr_lane_dev *lane,
	const struct mr_desc_in *in, uint64_t slot, uint32_t thread, uint32_t threads,
	uint32_t warp)
{
	const uint32_t picked = mr_tap_picked(t), head = t->head, mask = t->order.mask;
	const uint32_t stride = t->order.stride, snaplen = t->order.snaplen, rank = thread % warp;
	const uint64_t now_ns = t->now_ns;
	const uint8_t *const region = (const uint8_t *)(uintptr_t)lane->region;
	uint8_t *const records = t->records;

	slot <<= 32;
	for (uint32_t k = thread / warp; k < picked; k += threads / warp) {
		uint8_t *at = records + (uint64_t)((head + k) & mask) * stride;
		struct mr_tap_record *r = (struct mr_tap_record *)at;
		const uint32_t i = t->index[k];
		const uint32_t from = in[i].head, length = in[i].length;

		if (rank == 0) {
			r->packet = slot | i;
			r->time_ns = now_ns;
			__builtin_memcpy(&r->in, &in[i], sizeof(r->in));
		}
		mr_tap_copy(at + sizeof(*r), region + (uint64_t)in[i].position * MR_UNIT, from,
			from + (length < snaplen ? length : snaplen), rank, warp);
	}
}

/* mr_tap_after adds how they left; all threads, after a barrier. */
MR_TAP_OWN void mr_tap_after(const struct mr_tap *t, const struct mr_lane_dev *lane,
	const struct mr_desc_in *in, const struct mr_desc_out *out, uint32_t thread,
	uint32_t threads, uint32_t warp)
{
	const uint32_t picked = mr_tap_picked(t), head = t->head, mask = t->order.mask;
	const uint32_t stride = t->order.stride, snaplen = t->order.snaplen, rank = thread % warp;
	const uint32_t room = lane->room;
	const uint64_t area = sizeof(struct mr_tap_record) + MR_TAP_AREA(snaplen);
	const uint8_t *const region = (const uint8_t *)(uintptr_t)lane->region;
	uint8_t *const records = t->records;

	for (uint32_t k = thread / warp; k < picked; k += threads / warp) {
		uint8_t *at = records + (uint64_t)((head + k) & mask) * stride;
		const uint32_t i = t->index[k];
		const uint32_t from = out[i].head, length = out[i].length;
		const uint32_t to = from + (length < snaplen ? length : snaplen);

		if (rank == 0)
			__builtin_memcpy(
				&((struct mr_tap_record *)at)->out, &out[i], sizeof(out[i]));
		/* A stage may have said what cannot be; the lane drops it by name. */
		if (to <= room)
			mr_tap_copy(at + area, region + (uint64_t)in[i].position * MR_UNIT, from,
				to, rank, warp);
	}
}

/* mr_tap_end hands the slot's records over, `next` follows; thread 0, after fence and barrier. */
MR_TAP_OWN void mr_tap_end(struct mr_tap *t, uint32_t next)
{
	const uint32_t taken = mr_tap_picked(t);

	t->head += taken;
	t->lost += t->picked - taken;
	mr_store_relaxed_u64(&t->ctl->lost, t->lost);
	mr_store_release(&t->ctl->head, t->head);
	mr_store_release(&t->ctl->next, next);
}

#endif
