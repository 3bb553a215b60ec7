/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_tap - the kernel's part of a capture: copies of packets into a ring of host memory.
 *
 * Around the chain of a slot, by all threads of the block:
 *
 *     before: which packets ─ where in the ring ─ copies │ chain │ after: verdicts, copies again
 *
 * Which packets: a thread each, by the filter on the frame as it was received. Where: by thread 0,
 * in the packets' order, so that a ring that is full loses the later ones. Copies: a warp each.
 * On the host, a block of one thread, a packet is taken through all three before the next.
 *
 * mark[i] holds what is known of the slot's i-th packet: the bytes that its record takes, then
 * where it is, or MR_TAP_NONE. A packet without a record before the chain has none behind it.
 *
 * What was written is told of at the next slot, or when the worker looks round, since only
 * then every thread has fenced. A worker without a tap pays for none of it: whether there
 * is one comes with the reason why it stopped waiting.
 */
#ifndef MR_TAP_H
#define MR_TAP_H

#include "mr_block.h"
#include "mr_tap_filter.h"

#define MR_TAP_GO 0x80u /* in the place of MR_LEFT_NOT: this slot is to be tapped */
#define MR_TAP_NONE UINT32_MAX

/* On the host, where a block is one thread, it stays out of the loop, which mostly runs without. */
#if defined(__CUDACC__)
#define MR_TAP_COLD MR_HD
#define MR_TAP_TILE MR_BATCH_MAX
#define MR_TAP_THREAD(b) ((b)->thread)
#define MR_TAP_BLOCK(b) ((b)->threads)
#else
#define MR_TAP_COLD static __attribute__((noinline, unused))
#define MR_TAP_TILE 1u
#define MR_TAP_THREAD(b) ((void)(b), 0u)
#define MR_TAP_BLOCK(b) ((void)(b), 1u)
#endif

/* A worker's tap during a slot; the same in every thread. */
struct mr_tap {
	struct mr_tap_worker *worker;
	uint32_t *mark;
	uint8_t *ring;
	const uint8_t *region;
	uint32_t mask;
	uint32_t room, last; /* bytes of a buffer, and the last position of one */
	uint32_t snaplen;
	uint32_t seq;
	uint32_t limit; /* head may come as far */
};

/* Words that a block has in common; only thread 0 writes them. */
struct mr_tap_shared {
	uint32_t *head, *limit;
};

MR_HD struct mr_tap_worker *mr_tap_worker_of(const struct mr_lane_dev *lane, uint32_t worker)
{
	return (struct mr_tap_worker *)(uintptr_t)(lane->tap.workers +
		(uint64_t)worker * lane->tap.worker_stride);
}

MR_HD struct mr_tap_ends *mr_tap_ends_of(const struct mr_lane_dev *lane, uint32_t worker)
{
	return (struct mr_tap_ends *)(uintptr_t)lane->tap.ends + worker;
}

/* Tells the host of what lies before head. */
MR_HD void mr_tap_tell(const struct mr_lane_dev *lane, uint32_t worker, uint32_t head)
{
	struct mr_tap_ends *ends = mr_tap_ends_of(lane, worker);

	mr_store_relaxed_u64(&ends->lost, mr_tap_worker_of(lane, worker)->lost);
	mr_store_relaxed_u64(&ends->clock_ns, mr_kernel_clock_ns());
	mr_store_release(&ends->head, head);
}

/* Takes over what the host wants now; 1: the lane's packets are to be copied. */
MR_TAP_COLD int mr_tap_take(const struct mr_lane_dev *lane, uint32_t worker, uint32_t word)
{
	const struct mr_tap_spec *spec = (const struct mr_tap_spec *)(uintptr_t)lane->tap.spec;
	struct mr_tap_worker *w = mr_tap_worker_of(lane, worker);
	uint32_t active = mr_load_acquire(&spec->active);

	if (active != 0) {
		w->snaplen = spec->snaplen;
		w->verdicts = spec->verdicts;
		w->reason = spec->reason;
		w->insns_count =
			spec->insns_count < MR_TAP_INSNS_MAX ? spec->insns_count : MR_TAP_INSNS_MAX;
		for (uint32_t i = 0; i < w->insns_count; i++)
			w->insns[i] = spec->insns[i];
	}
	mr_store_release(&mr_tap_ends_of(lane, worker)->taken, word);
	return active != 0;
}

/* Bytes of a frame that are kept. */
MR_HD uint32_t mr_tap_kept(const struct mr_tap *t, uint32_t length)
{
	return length < t->snaplen ? length : t->snaplen;
}

/* Bytes of the record of a frame that begins so far into its buffer. */
MR_HD uint32_t mr_tap_bytes(const struct mr_tap *t, uint32_t head, uint32_t length)
{
	return (uint32_t)sizeof(struct mr_tap_record) +
		((head % 16 + mr_tap_kept(t, length) + 15) & ~15u);
}

/* Bytes that a packet's first record takes; 0: it is not wanted. */
MR_HD uint32_t mr_tap_wants(
	const struct mr_tap *t, const struct mr_block *b, const struct mr_desc_in *in)
{
	const struct mr_desc_in d = *in;
	struct mr_tap_worker *w = t->worker;

	if (d.length == 0 || (uint32_t)d.head + d.length > t->room || d.position > t->last)
		return 0;
	if (w->insns_count != 0 &&
		mr_tap_filter(w->insns, w->insns_count,
			t->region + (uint64_t)d.position * MR_UNIT + d.head, d.length,
			w->words[MR_TAP_THREAD(b) % MR_TAP_THREADS]) == 0)
		return 0;
	return mr_tap_bytes(t, d.head, d.length);
}

/* Gives the record of every packet of a tile, in their order, its place. */
MR_HD uint32_t mr_tap_place(const struct mr_tap *t, uint32_t head, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		uint32_t bytes = t->mark[i];

		t->mark[i] = MR_TAP_NONE;
		if (bytes == 0)
			continue;
		if (bytes > t->limit - head) {
			t->worker->lost++;
			continue;
		}
		t->mark[i] = head;
		head += bytes;
	}
	return head;
}

/* Writes a packet's record, as one of size threads. */
MR_HD void mr_tap_write(const struct mr_tap *t, const struct mr_desc_in *in, uint32_t at,
	uint32_t index_point, uint64_t now, uint32_t head, uint32_t length, uint32_t result,
	uint32_t rank, uint32_t size)
{
	const uint8_t *source = t->region + (uint64_t)in->position * MR_UNIT + head / 16 * 16;
	const uint32_t bytes = mr_tap_bytes(t, head, length);
	const uint32_t first[4] = {bytes, t->seq, (uint32_t)now, (uint32_t)(now >> 32)};
	const uint32_t second[4] = {
		index_point | head % 16 << 24, length | mr_tap_kept(t, length) << 16, result, 0};

#if !defined(__CUDACC__)
	if ((at & t->mask) + bytes <= t->mask) {
		uint8_t *record = t->ring + (at & t->mask);

		mr_frame_store_16(record, first);
		mr_frame_store_16(record + 16, second);
		__builtin_memcpy(record + 32, source, bytes - 32);
		return;
	}
#endif
	if (rank == 0) {
		mr_frame_store_16(t->ring + (at & t->mask), first);
		mr_frame_store_16(t->ring + ((at + 16) & t->mask), second);
	}
	at += (uint32_t)sizeof(struct mr_tap_record);
	for (uint32_t k = 16 * rank; k < bytes - sizeof(struct mr_tap_record); k += 16 * size) {
		uint32_t words[4];

		mr_frame_load_16(source + k, words);
		mr_frame_store_16(t->ring + ((at + k) & t->mask), words);
	}
}

/* Says in the first record what became of the packet; bytes of its second, or 0. */
MR_HD uint32_t mr_tap_judge(const struct mr_tap *t, const struct mr_desc_out *out, uint32_t at)
{
	const struct mr_desc_out d = *out;
	const uint32_t result = d.verdict | (uint32_t)d.port << 8 | (uint32_t)d.arg << 16;
	const struct mr_tap_worker *w = t->worker;
	uint32_t wanted = w->verdicts >> (d.verdict & 31) & 1;

	if (w->reason != MR_TAP_ANY_REASON && (d.verdict != MR_DROP || d.arg != w->reason))
		wanted = 0;
	*(uint32_t *)(t->ring + ((at + 16) & t->mask) + 8) = result;
	*(uint32_t *)(t->ring + ((at + 16) & t->mask) + 12) = 1 - wanted;
	if (wanted == 0 || d.verdict >= MR_DROP || d.length == 0 || d.length > t->room ||
		d.head > t->room - d.length)
		return 0;
	return mr_tap_bytes(t, d.head, d.length);
}

/* The tap of this slot, as every thread of the block sees it, without its limit. */
MR_HD struct mr_tap mr_tap_of(const struct mr_lane_dev *lane, uint32_t worker, uint32_t seq)
{
	struct mr_tap t;

	t.worker = mr_tap_worker_of(lane, worker);
	t.mark = (uint32_t *)(t.worker + 1);
	t.ring = (uint8_t *)(uintptr_t)(lane->tap.ring + (uint64_t)worker * lane->tap.ring_bytes);
	t.region = (const uint8_t *)(uintptr_t)lane->region;
	t.mask = lane->tap.ring_bytes - 1;
	t.room = lane->room;
	/* A region holds a buffer. */
	t.last = lane->region_units - (lane->room + MR_UNIT - 1) / MR_UNIT;
	t.snaplen = t.worker->snaplen;
	t.seq = seq;
	t.limit = 0;
	return t;
}

/*
 * Before the chain. head is thread 0's, the end of what was written; every thread
 * gets the new one.
 */
MR_TAP_COLD uint32_t mr_tap_before(const struct mr_lane_dev *lane, uint32_t worker,
	const struct mr_block *b, uint32_t seq, const struct mr_slot_in *slot, uint32_t head,
	struct mr_tap_shared shared)
{
	const struct mr_desc_in *in = (const struct mr_desc_in *)(slot + 1);
	const uint32_t count = slot->count < lane->batch ? slot->count : lane->batch;
	struct mr_tap t = mr_tap_of(lane, worker, seq);
	const uint64_t now = mr_kernel_clock_ns();

	if (MR_TAP_THREAD(b) == 0) {
		mr_tap_tell(lane, worker, head);
		*shared.head = head;
		*shared.limit =
			mr_load_acquire(&mr_tap_ends_of(lane, worker)->tail) + lane->tap.ring_bytes;
	}
	mr_kernel_block_sync();
	t.limit = *shared.limit;
	for (uint32_t from = 0; from < count; from += MR_TAP_TILE) {
		const uint32_t to = count - from < MR_TAP_TILE ? count : from + MR_TAP_TILE;

		for (uint32_t i = from + MR_TAP_THREAD(b); i < to; i += MR_TAP_BLOCK(b))
			t.mark[i] = mr_tap_wants(&t, b, &in[i]);
		mr_kernel_block_sync();
		if (MR_TAP_THREAD(b) == 0)
			*shared.head = mr_tap_place(&t, *shared.head, from, to);
		mr_kernel_block_sync();
		for (uint32_t i = from + MR_TAP_THREAD(b) / MR_KERNEL_WARP; i < to;
			i += MR_TAP_BLOCK(b) / MR_KERNEL_WARP)
			if (t.mark[i] != MR_TAP_NONE)
				mr_tap_write(&t, &in[i], t.mark[i], i | MR_TAP_BEFORE << 16, now,
					in[i].head, in[i].length, 0,
					MR_TAP_THREAD(b) % MR_KERNEL_WARP, MR_KERNEL_WARP);
	}
	mr_kernel_block_sync();
	return *shared.head;
}

/* Behind the chain, before its results are handed over. */
MR_TAP_COLD uint32_t mr_tap_after(const struct mr_lane_dev *lane, uint32_t worker,
	const struct mr_block *b, uint32_t seq, const struct mr_slot_in *slot,
	const struct mr_slot_out *results, struct mr_tap_shared shared)
{
	const struct mr_desc_in *in = (const struct mr_desc_in *)(slot + 1);
	const struct mr_desc_out *out = (const struct mr_desc_out *)(results + 1);
	const uint32_t count = slot->count < lane->batch ? slot->count : lane->batch;
	struct mr_tap t = mr_tap_of(lane, worker, seq);
	const uint64_t now = mr_kernel_clock_ns();

	t.limit = *shared.limit;
	mr_kernel_block_sync();
	for (uint32_t from = 0; from < count; from += MR_TAP_TILE) {
		const uint32_t to = count - from < MR_TAP_TILE ? count : from + MR_TAP_TILE;

		for (uint32_t i = from + MR_TAP_THREAD(b); i < to; i += MR_TAP_BLOCK(b))
			t.mark[i] =
				t.mark[i] != MR_TAP_NONE ? mr_tap_judge(&t, &out[i], t.mark[i]) : 0;
		mr_kernel_block_sync();
		if (MR_TAP_THREAD(b) == 0)
			*shared.head = mr_tap_place(&t, *shared.head, from, to);
		mr_kernel_block_sync();
		for (uint32_t i = from + MR_TAP_THREAD(b) / MR_KERNEL_WARP; i < to;
			i += MR_TAP_BLOCK(b) / MR_KERNEL_WARP)
			if (t.mark[i] != MR_TAP_NONE) {
				const struct mr_desc_out d = out[i];

				mr_tap_write(&t, &in[i], t.mark[i], i | MR_TAP_AFTER << 16, now,
					d.head, d.length,
					d.verdict | (uint32_t)d.port << 8 | (uint32_t)d.arg << 16,
					MR_TAP_THREAD(b) % MR_KERNEL_WARP, MR_KERNEL_WARP);
			}
	}
	mr_kernel_block_sync();
	return *shared.head;
}

#endif
