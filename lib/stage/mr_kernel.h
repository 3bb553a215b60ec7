/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_kernel - the persistent kernel, one source for the device and the host.
 *
 * One block is one worker of one lane. Per slot it waits for READY, runs the chain over the
 * packets, and releases DONE:
 *
 *     thread 0: wait READY ─ barrier ─ all: chain ─ fence ─ barrier ─ thread 0: DONE
 *
 * There is one entry per work division, so that header programs do not pay the
 * registers of payload programs. This is a worker's life; mr_kernel_slot.h is its work.
 *
 * The host build is a block of one thread and a warp of one, so that it has one way for all
 * divisions. It is what the software device runs, and the specification of the CUDA build.
 *
 * Leaving. A worker leaves on the exit word, or by itself when the host's beat
 * stands still for host_timeout_ns. It finishes the slot in hand, publishes its
 * counters and says why in its control line.
 *
 * Reload. Parameters and tables are there twice. Between two slots, when no thread of the block
 * reads any, thread 0 looks for a new generation, and says that it has it, so that the host may
 * write the half of the one before:
 *
 *     host: writes the idle half ─ release ─► worker: acquire ─ release ─► host: acquire
 *
 * Capture. While the host captures the lane, packets are copied to it before and after the
 * chain (mr_tap.h); one word tells a slot whether that is so.
 *
 * Visibility. The acquire of READY has system scope and is made by thread 0; the
 * barrier after it extends it to the block (PTX memory model, causality order).
 * Every thread fences with system scope before the barrier that precedes DONE.
 */
#ifndef MR_KERNEL_H
#define MR_KERNEL_H

#include "mr_kernel_slot.h"
#include "mr_tap.h"

#if defined(__CUDA_ARCH__)
#define MR_KERNEL_SHARED(what) __shared__ what
#else
#include <sched.h>
#include <time.h>
/* The only thread writes it before it reads it, which a compiler may not see. */
#define MR_KERNEL_SHARED(what) what = 0
#endif

#define MR_KERNEL_BEAT_NS 1000000u     /* control line written this often while polling */
#define MR_KERNEL_COUNTERS_NS 5000000u /* counters published this often */
#define MR_KERNEL_POLLS 64u            /* empty polls between two looks at the clock */
#define MR_KERNEL_SLOTS 16u            /* slots between two looks at the clock */

MR_HD uint64_t mr_kernel_clock_ns(void)
{
#if defined(__CUDA_ARCH__)
	return mr_device_clock_ns();
#else
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
#endif
}

MR_HD void mr_kernel_block_sync(void)
{
#if defined(__CUDA_ARCH__)
	__syncthreads();
#endif
}

/* The same, and tells every thread whether x is 0 in all of them. */
MR_HD int mr_kernel_block_none(uint32_t x)
{
#if defined(__CUDA_ARCH__)
	return __syncthreads_and(x == 0);
#else
	return x == 0;
#endif
}

/* What this block wrote is seen by CPU and NIC before what it writes from here on. */
MR_HD void mr_kernel_fence(const struct mr_block *b)
{
	mr_sync_fence();
#if !defined(__CUDACC__)
	if (b->sim != NULL && b->sim->fence != NULL)
		b->sim->fence(b->sim->ctx);
#endif
	(void)b;
}

/*
 * Gives the processor away for a moment: nanosleep on the device, which sleeps for up to twice
 * what it is given (PTX ISA, nanosleep), yield on the host.
 */
MR_HD void mr_kernel_pause(uint32_t backoff_ns)
{
#if defined(__CUDA_ARCH__)
	if (backoff_ns > 1)
		__nanosleep(backoff_ns / 2);
#else
	(void)backoff_ns;
	sched_yield();
#endif
}

MR_HD void mr_kernel_publish(struct mr_worker *w)
{
	for (uint32_t i = 0; i < MR_COUNTERS_MAX; i++)
		mr_store_relaxed_u64(&w->out[i], mr_load_relaxed_u64(&w->acc[i]));
}

/* Takes over what a reload has brought. */
MR_HD void mr_kernel_renew(struct mr_worker *w)
{
	uint32_t generation = mr_load_acquire(&w->host->generation);

	if (generation == w->generation)
		return;
	w->generation = generation;
	mr_store_release(&w->ctl->generation, generation);
}

/* Its number among the lane's. */
MR_HD uint32_t mr_kernel_number(const struct mr_worker *w)
{
	return (uint32_t)(w->ctl - (struct mr_worker_ctl *)(uintptr_t)w->lane->workers_ctl);
}

/* What a worker keeps of a capture. */
MR_HD struct mr_tap *mr_kernel_tap(const struct mr_worker *w)
{
	return (struct mr_tap *)(uintptr_t)w->lane->tap + mr_kernel_number(w);
}

/* Whether its lane is captured. */
MR_HD int mr_kernel_tapped(const struct mr_worker *w)
{
	return MR_TAP_LANE(*w->tap) - 1 == w->lane->index;
}

/* Begins or ends copies for a capture, or tells it the clock. */
MR_HD void mr_kernel_renew_tap(struct mr_worker *w)
{
	const uint32_t tap = mr_load_acquire(&w->host->tap), before = *w->tap;

	if (tap == before)
		return;
	*w->tap = tap;
	if (mr_kernel_tapped(w)) {
		struct mr_tap *t = mr_kernel_tap(w);
		const uint32_t worker = mr_kernel_number(w);

		if (MR_TAP_LANE(tap) != MR_TAP_LANE(before))
			mr_tap_take(t, (const struct mr_tap_order *)(uintptr_t)w->lane->tap_order,
				worker, w->lane->first_seq + worker + w->done * w->lane->workers);
		mr_store_relaxed_u64(&t->ctl->clock_ns, mr_kernel_clock_ns());
	}
	mr_store_release(&w->ctl->tap, tap);
}

/* Beats, publishes and looks what the host wants and whether it beats; returns enum mr_left. */
MR_HD uint32_t mr_kernel_housekeeping(struct mr_worker *w)
{
	uint64_t now = mr_kernel_clock_ns();
	uint32_t host_beat;

	mr_kernel_renew(w);
	mr_kernel_renew_tap(w);

	if (now - w->beat_ns >= MR_KERNEL_BEAT_NS) {
		w->beat_ns = now;
		mr_store_relaxed(&w->ctl->seq, w->done);
		mr_store_relaxed(&w->ctl->beat, ++w->beat);
	}
	if (now - w->counters_ns >= MR_KERNEL_COUNTERS_NS) {
		w->counters_ns = now;
		mr_kernel_publish(w);
	}
	host_beat = mr_load_relaxed(&w->host->beat);
	if (host_beat != w->host_beat) {
		w->host_beat = host_beat;
		w->host_ns = now;
	} else if (w->launch->host_timeout_ns != 0 &&
		now - w->host_ns > w->launch->host_timeout_ns) {
		return MR_LEFT_HOST_SILENT;
	}
	return MR_LEFT_NOT;
}

#if !defined(__CUDACC__)
/* Plays a fault that the software device orders: die, stand still, or beat without progress. */
MR_HD uint32_t mr_kernel_fault(struct mr_worker *w, uint32_t fault)
{
	if (fault == MR_SIM_FAULT_DIE)
		return MR_LEFT_DIED;
	if (fault == MR_SIM_FAULT_IDLE) {
		(void)mr_kernel_housekeeping(w);
		if (mr_load_relaxed(&w->host->exit) != 0)
			return MR_LEFT_EXIT;
	}
	mr_kernel_pause(0);
	return MR_LEFT_NOT;
}
#endif

/* Waits until the slot's READY is seq + 1; anything but MR_LEFT_NOT is a reason to leave. */
MR_HD uint32_t mr_kernel_wait(
	struct mr_worker *w, const struct mr_block *b, const struct mr_slot_in *slot, uint32_t seq)
{
	uint32_t left;

	if (w->done % MR_KERNEL_SLOTS == 0) {
		left = mr_kernel_housekeeping(w);
		if (left != MR_LEFT_NOT)
			return left;
	}
	for (;;) {
#if !defined(__CUDACC__)
		if (b->sim != NULL && mr_load_relaxed(&b->sim->fault) != MR_SIM_FAULT_NONE) {
			left = mr_kernel_fault(w, mr_load_relaxed(&b->sim->fault));
			if (left != MR_LEFT_NOT)
				return left;
			continue;
		}
#endif
		(void)b;
		if (mr_load_acquire(&slot->ready) == seq + 1)
			return MR_LEFT_NOT;
		if (mr_load_relaxed(&w->host->exit) != 0)
			return MR_LEFT_EXIT;
		if (++w->polls % MR_KERNEL_POLLS == 0) {
			left = mr_kernel_housekeeping(w);
			if (left != MR_LEFT_NOT)
				return left;
			mr_kernel_pause(w->launch->backoff_ns);
		}
	}
}

/* Copies for a capture, before the chain. */
MR_HD void mr_kernel_tap_before(const struct mr_worker *w, const struct mr_block *b,
	const struct mr_slot_in *slot, uint32_t seq)
{
	const struct mr_desc_in *in = (const struct mr_desc_in *)(slot + 1);
	const struct mr_lane_dev *lane = w->lane;
	struct mr_tap *tap = mr_kernel_tap(w);

	mr_tap_pick(tap, lane, in, slot->count < lane->batch ? slot->count : lane->batch, b->thread,
		b->threads);
	mr_kernel_block_sync();
	mr_tap_before(tap, lane, in, seq, b->thread, b->threads, MR_KERNEL_WARP);
	mr_kernel_block_sync();
}

/* And after it. */
MR_HD void mr_kernel_tap_after(const struct mr_worker *w, const struct mr_block *b,
	const struct mr_slot_in *in, const struct mr_slot_out *out)
{
	mr_kernel_block_sync();
	mr_tap_after(mr_kernel_tap(w), w->lane, (const struct mr_desc_in *)(in + 1),
		(const struct mr_desc_out *)(out + 1), b->thread, b->threads, MR_KERNEL_WARP);
}

MR_HD void mr_kernel_worker_init(struct mr_worker *w, const struct mr_launch *l, uint32_t index)
{
	const struct mr_worker_map *map = (const struct mr_worker_map *)(uintptr_t)l->map + index;
	const struct mr_lane_dev *lane =
		(const struct mr_lane_dev *)(uintptr_t)l->lanes + map->lane;

	w->launch = l;
	w->lane = lane;
	w->ctl = (struct mr_worker_ctl *)(uintptr_t)lane->workers_ctl + map->worker;
	w->host = (const struct mr_host_ctl *)(uintptr_t)l->host_ctl;
	w->acc = (uint64_t *)(uintptr_t)lane->counters_acc + map->worker * MR_COUNTERS_MAX;
	w->out = (uint64_t *)(uintptr_t)lane->counters_out + map->worker * MR_COUNTERS_MAX;
	w->host_ns = mr_kernel_clock_ns();
	w->beat_ns = w->host_ns;
	w->counters_ns = w->host_ns;
	w->host_beat = mr_load_relaxed(&w->host->beat);
	w->beat = 0;
	w->polls = 0;
	w->done = 0;
	w->generation = 0;
	w->now_ns = 0;
	w->ticks = 0;
}

MR_HD void mr_kernel_body(const struct mr_launch *l, const struct mr_block *b, enum mr_work work)
{
	const struct mr_worker_map *map =
		(const struct mr_worker_map *)(uintptr_t)l->map + b->index;
	MR_KERNEL_SHARED(uint32_t left);
	MR_KERNEL_SHARED(uint32_t generation);
	MR_KERNEL_SHARED(uint64_t now_ns);
	MR_KERNEL_SHARED(uint32_t tap);
	struct mr_worker w;

	mr_kernel_worker_init(&w, l, b->index);
	w.tap = &tap;
	if (b->thread == 0) {
		tap = 0;
		mr_store_relaxed(&w.ctl->hello, 1);
	}
	for (uint32_t seq = w.lane->first_seq + map->worker;; seq += w.lane->workers) {
		size_t at = seq & (w.lane->slots - 1);
		const struct mr_slot_in *in =
			(const struct mr_slot_in *)(uintptr_t)(w.lane->in + at * w.lane->in_stride);
		struct mr_slot_out *out =
			(struct mr_slot_out *)(uintptr_t)(w.lane->out + at * w.lane->out_stride);
		uint32_t changed;
		int plain;

		if (b->thread == 0) {
			left = mr_kernel_wait(&w, b, in, seq);
			generation = w.generation;
			now_ns = (w.lane->flags & MR_LANE_TIMED) != 0 ? mr_kernel_clock_ns() : 0;
			if (mr_kernel_tapped(&w))
				mr_tap_begin(mr_kernel_tap(&w), mr_kernel_clock_ns());
		}
		mr_kernel_block_sync();
		if (left != MR_LEFT_NOT)
			break;
		w.generation = generation;
		w.now_ns = now_ns;
		if (mr_kernel_tapped(&w))
			mr_kernel_tap_before(&w, b, in, seq);
		changed = mr_kernel_slot(&w, b, work, in, out);
		if (mr_kernel_tapped(&w))
			mr_kernel_tap_after(&w, b, in, out);
		mr_kernel_fence(b);
		plain = mr_kernel_block_none(changed);
		w.done++;
		if (b->thread == 0) {
			if (mr_kernel_tapped(&w))
				mr_tap_end(mr_kernel_tap(&w), seq + w.lane->workers);
			out->plain = (uint32_t)plain;
			mr_store_release(&out->done, seq + 1);
		}
	}
	if (b->thread == 0 && left != MR_LEFT_DIED) {
		mr_kernel_publish(&w);
		mr_store_relaxed(&w.ctl->seq, w.done);
		mr_store_release(&w.ctl->left, left);
	}
}

#endif
