/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_kernel_slot - what a worker of mr_kernel.h does with a slot: every packet down the chain.
 *
 * Every descriptor is checked against region and buffer, and the bounds of what a stage leaves are
 * the lane's to check. A packet that fails is dropped by name, its bytes untouched.
 *
 * Divisions. mr_kernel_thread() gives a packet to a thread; mr_kernel_warp() gives it to a warp,
 * in which THREAD stages are run by the first thread and their view is handed to the others.
 * mr_kernel_order() is for chains that need every packet in order: a block is one warp, each thread
 * has a packet, and they go down the chain together, stage by stage; WARP stages take one packet
 * after the other.
 *
 * Ticks. A slot of blank buffers is offered to the stages that tick, beginning with another one
 * each time, so that one with much to tell does not keep the others from it. What a stage has
 * filled and sent is a result; it goes down no further.
 *
 * Where a lane's frames leave from other memory than they arrive in, the last step is a
 * copy: each frame that leaves goes to the buffer that the slot names for it, by the
 * threads of a warp together. Buffers of both regions have the same room and the head
 * stays, so a frame lies in both alike and no bound but the buffer's start is new.
 *
 * Thread   the kernel's: all of a block, or the software device's one.
 */
#ifndef MR_KERNEL_SLOT_H
#define MR_KERNEL_SLOT_H

#include "mr_stage.h"

#include "mr_stage_forward.cu"
#include "mr_stage_l2swap.cu"
#include "mr_stage_drop.cu"
#include "mr_stage_checksum.cu"
#include "mr_stage_match.cu"
#include "mr_stage_reflect.cu"
#include "mr_stage_filter.cu"
#include "mr_stage_route.cu"
#include "mr_stage_seqtrack.cu"
#include "mr_stage_unpack.cu"

/* The stages of a plug-in (mr_plugin.h), in whose image they stand beside the built-in ones. */
#if !defined(MR_PLUGIN_STAGES)
#define MR_PLUGIN_STAGES(ROW)
#endif

#if defined(__CUDA_ARCH__)
#define MR_KERNEL_WARP 32u
#else
#include "mr_sim_image.h"

#define MR_KERNEL_WARP 1u
#endif

#define MR_KERNEL_STAYS UINT32_MAX /* a frame leaves from where it lies */

/* Which block and thread this is, and what it has of a software device. */
struct mr_block {
	uint32_t index;
	uint32_t thread, threads;
	const struct mr_sim_orders *sim; /* NULL on a real device */
};

/* What thread 0 of a worker remembers between slots. */
struct mr_worker {
	const struct mr_launch *launch;
	const struct mr_lane_dev *lane;
	struct mr_worker_ctl *ctl;
	const struct mr_host_ctl *host;
	uint64_t *acc;                          /* counters added to, device memory */
	uint64_t *out;                          /* where the host reads them */
	uint64_t beat_ns, counters_ns, host_ns; /* clock at the last of each */
	uint32_t host_beat;
	uint32_t beat;
	uint32_t polls;
	uint32_t done;       /* slots completed */
	uint64_t now_ns;     /* clock at the slot in hand, or 0; every thread's own copy */
	uint32_t generation; /* of the parameters; every thread's own copy */
	uint32_t ticks;      /* slots of blank buffers completed; every thread's own copy */
	uint32_t *tap;       /* the host's word of captures, last seen; the block's */
#if !defined(__CUDACC__)
	struct mr_ctx ctx[MR_CHAIN_MAX]; /* of the slot in hand */
#endif
};

/* What a thread of a warp wrote, the others read from here on; shuffles alone do not order. */
MR_HD void mr_kernel_warp_sync(void)
{
#if defined(__CUDA_ARCH__)
	__syncwarp(0xffffffffu);
#endif
}

/* Whether a position is one of a buffer within a region of so many units. */
MR_HD int mr_kernel_within(uint32_t position, uint32_t room, uint32_t units)
{
	return (uint64_t)position * MR_UNIT + room <= (uint64_t)units * MR_UNIT;
}

/* Fills the view of a packet; false: the packet is dropped for view->arg, untouched. */
MR_HD int mr_kernel_view(const struct mr_lane_dev *lane, uint8_t rx_port,
	const struct mr_desc_in *in, uint32_t to, struct mr_view *v)
{
	struct mr_desc_in d = *in;

	v->length = d.length;
	v->head = d.head;
	v->room = lane->room;
	v->rx_port = rx_port;
	v->verdict = MR_TX;
	v->port = 0;
	v->arg = 0;
	if (!mr_kernel_within(d.position, lane->room, lane->region_units) ||
		(lane->tx_region != 0 &&
			!mr_kernel_within(to, lane->room, lane->tx_region_units)) ||
		v->head + v->length > lane->room) {
		(void)mr_drop(v, MR_REASON_window);
		return 0;
	}
	v->frame = (uint8_t *)(uintptr_t)(lane->region + (uint64_t)d.position * MR_UNIT + v->head);
	if (v->length < MR_FRAME_MIN) {
		(void)mr_drop(v, MR_REASON_runt);
		return 0;
	}
	return 1;
}

/* The buffer that the i-th packet of a slot leaves from, or MR_KERNEL_STAYS. */
MR_HD uint32_t mr_kernel_to(const struct mr_lane_dev *lane, const struct mr_desc_in *in, uint32_t i)
{
	return lane->tx_region != 0 ? ((const uint32_t *)(in + lane->batch))[i] : MR_KERNEL_STAYS;
}

/* What the lane would not send, because of its verdict or its bounds, is not copied. */
MR_HD int mr_kernel_leaves(const struct mr_view *v)
{
	return v->verdict != MR_DROP && v->length <= v->room && v->head <= v->room - v->length;
}

/* Copies a frame, all the 16 bytes that it begins or ends in, as one of size threads. */
MR_HD void mr_kernel_copy(const struct mr_lane_dev *lane, uint32_t from, uint32_t to, uint32_t head,
	uint32_t length, uint32_t rank, uint32_t size)
{
	const uint8_t *source =
		(const uint8_t *)(uintptr_t)(lane->region + (uint64_t)from * MR_UNIT);
	uint8_t *target = (uint8_t *)(uintptr_t)(lane->tx_region + (uint64_t)to * MR_UNIT);

	for (uint32_t at = head / 16 * 16 + 16 * rank; at < head + length; at += 16 * size) {
		uint32_t words[4];

		mr_frame_load_16(source + at, words);
		mr_frame_store_16(target + at, words);
	}
}

/* The packets of a warp's threads, one after the other, each by all of its threads. */
MR_HD void mr_kernel_copy_each(const struct mr_lane_dev *lane, const struct mr_block *b,
	uint32_t from, uint32_t to, uint32_t place)
{
	for (uint32_t k = 0; k < MR_KERNEL_WARP; k++) {
#if defined(__CUDA_ARCH__)
		uint32_t k_to = __shfl_sync(0xffffffffu, to, (int)k);
		uint32_t k_from = __shfl_sync(0xffffffffu, from, (int)k);
		uint32_t k_place = __shfl_sync(0xffffffffu, place, (int)k);
#else
		uint32_t k_to = to, k_from = from, k_place = place;
#endif

		if (k_to != MR_KERNEL_STAYS)
			mr_kernel_copy(lane, k_from, k_to, k_place & 0xffff, k_place >> 16,
				b->thread % MR_KERNEL_WARP, MR_KERNEL_WARP);
	}
}

/* Writes a packet's result; 0: it goes unchanged to the first port. */
MR_HD uint32_t mr_kernel_result(
	struct mr_desc_out *out, const struct mr_view *v, const struct mr_desc_in *in)
{
	struct mr_desc_out d;

	d.length = (uint16_t)v->length;
	d.head = (uint16_t)v->head;
	d.verdict = v->verdict;
	d.port = v->port;
	d.arg = v->arg;
	*out = d;
	return (v->length ^ in->length) | (v->head ^ in->head) | v->verdict | v->port | v->arg;
}

/*
 * How a stage is reached. On the device every entry has the stages of its division inlined; the
 * others cannot be in the chain. The host reaches each by its address, so that there is one copy.
 */
#if defined(__CUDACC__)
#define MR_KERNEL_CASE(name)                                                                       \
	case MR_STAGE_##name:                                                                      \
		return mr_stage_##name(ctx, v);
#define MR_KERNEL_NO_CASE(name)

MR_HD enum mr_flow mr_kernel_thread_stage(
	uint32_t stage, const struct mr_ctx *ctx, struct mr_view *v)
{
	switch (stage) {
#define MR_KERNEL_CASE_THREAD MR_KERNEL_CASE
#define MR_KERNEL_CASE_WARP MR_KERNEL_NO_CASE
#define MR_KERNEL_CASE_ORDER MR_KERNEL_NO_CASE
#define STAGE(name, work) MR_KERNEL_CASE_##work(name)
#include "mr_stages.def"
		MR_PLUGIN_STAGES(STAGE)
#undef STAGE
#undef MR_KERNEL_CASE_THREAD
#undef MR_KERNEL_CASE_WARP
#undef MR_KERNEL_CASE_ORDER
	}
	return MR_NEXT;
}

MR_HD enum mr_flow mr_kernel_warp_stage(uint32_t stage, const struct mr_ctx *ctx, struct mr_view *v)
{
	switch (stage) {
#define MR_KERNEL_CASE_THREAD MR_KERNEL_NO_CASE
#define MR_KERNEL_CASE_WARP MR_KERNEL_CASE
#define MR_KERNEL_CASE_ORDER MR_KERNEL_NO_CASE
#define STAGE(name, work) MR_KERNEL_CASE_##work(name)
#include "mr_stages.def"
		MR_PLUGIN_STAGES(STAGE)
#undef STAGE
#undef MR_KERNEL_CASE_THREAD
#undef MR_KERNEL_CASE_WARP
#undef MR_KERNEL_CASE_ORDER
	}
	return MR_NEXT;
}

MR_HD enum mr_flow mr_kernel_order_stage(
	uint32_t stage, const struct mr_ctx *ctx, struct mr_view *v)
{
	switch (stage) {
#define MR_KERNEL_CASE_THREAD MR_KERNEL_NO_CASE
#define MR_KERNEL_CASE_WARP MR_KERNEL_NO_CASE
#define MR_KERNEL_CASE_ORDER MR_KERNEL_CASE
#define STAGE(name, work) MR_KERNEL_CASE_##work(name)
#include "mr_stages.def"
		MR_PLUGIN_STAGES(STAGE)
#undef STAGE
#undef MR_KERNEL_CASE_THREAD
#undef MR_KERNEL_CASE_WARP
#undef MR_KERNEL_CASE_ORDER
	}
	return MR_NEXT;
}

MR_HD enum mr_work mr_kernel_work_of(uint32_t stage)
{
	switch (stage) {
#define STAGE(name, work)                                                                          \
	case MR_STAGE_##name:                                                                      \
		return MR_WORK_##work;
#include "mr_stages.def"
		MR_PLUGIN_STAGES(STAGE)
#undef STAGE
	}
	return MR_WORK_THREAD;
}
#else
#define STAGE(name, work)                                                                          \
	static __attribute__((noinline)) enum mr_flow mr_kernel_run_##name(                        \
		const struct mr_ctx *ctx, struct mr_view *v)                                       \
	{                                                                                          \
		return mr_stage_##name(ctx, v);                                                    \
	}
#include "mr_stages.def"
MR_PLUGIN_STAGES(STAGE)
#undef STAGE

static enum mr_flow (*const mr_kernel_stages[])(const struct mr_ctx *ctx, struct mr_view *v) = {
#define STAGE(name, work) [MR_STAGE_##name] = mr_kernel_run_##name,
#include "mr_stages.def"
	MR_PLUGIN_STAGES(STAGE)
#undef STAGE
};

#endif

MR_HD struct mr_ctx mr_kernel_ctx(
	const struct mr_worker *w, const struct mr_chain_dev *c, uint32_t rank, uint32_t size)
{
	struct mr_ctx ctx;

	ctx.params = c->params[w->generation % 2];
	ctx.table = (const void *)(uintptr_t)c->table[w->generation % 2];
	ctx.state = (void *)(uintptr_t)c->state;
	ctx.shared = (void *)(uintptr_t)c->shared;
	ctx.counters = w->acc + c->counter_base;
	ctx.now_ns = w->now_ns;
	ctx.rank = rank;
	ctx.size = size;
	ctx.live = 1;
	ctx.tick = MR_TICK_NOT;
	return ctx;
}

/* Makes a blank buffer of a tick's view, which is too short for a packet; 0: it is no tick's. */
MR_HD int mr_kernel_blank(enum mr_tick tick, struct mr_view *v)
{
	if (tick == MR_TICK_NOT || v->arg != MR_REASON_runt)
		return 0;
	v->length = 0;
	(void)mr_drop(v, MR_REASON_blank);
	return 1;
}

/* Where in the chain a slot begins. */
MR_HD uint32_t mr_kernel_first(const struct mr_worker *w, enum mr_tick tick)
{
	return tick != MR_TICK_NOT && w->lane->chain_len != 0 ? w->ticks % w->lane->chain_len : 0;
}

#if defined(__CUDACC__)
MR_HD void mr_kernel_chain_thread(const struct mr_worker *w, enum mr_tick tick, struct mr_view *v)
{
	const struct mr_lane_dev *lane = w->lane;

	(void)tick; /* ordered chains alone have them */
	for (uint32_t s = 0; s < lane->chain_len; s++) {
		struct mr_ctx ctx = mr_kernel_ctx(w, &lane->chain[s], 0, 1);

		if (mr_kernel_thread_stage(lane->chain[s].stage, &ctx, v) == MR_STOP)
			break;
	}
}
#else
/* What every packet of a slot is handed to its stages with. */
static inline void mr_kernel_prepare(struct mr_worker *w, enum mr_tick tick)
{
	for (uint32_t s = 0; s < w->lane->chain_len; s++) {
		w->ctx[s] = mr_kernel_ctx(w, &w->lane->chain[s], 0, 1);
		w->ctx[s].tick = tick;
	}
}

/* All stages alike: one thread is the block, the warp and the order. */
MR_HD void mr_kernel_chain_thread(const struct mr_worker *w, enum mr_tick tick, struct mr_view *v)
{
	const struct mr_chain_dev *chain = w->lane->chain;
	const uint32_t count = w->lane->chain_len;

	if (tick == MR_TICK_NOT) {
		for (uint32_t s = 0; s < count; s++)
			if (mr_kernel_stages[chain[s].stage](&w->ctx[s], v) == MR_STOP)
				return;
		return;
	}
	for (uint32_t i = 0, s = mr_kernel_first(w, tick); i < count; i++) {
		if ((chain[s].flags & MR_CHAIN_TICKS) != 0 &&
			mr_kernel_stages[chain[s].stage](&w->ctx[s], v) == MR_STOP)
			return;
		s = s + 1 == count ? 0 : s + 1;
	}
}
#endif

/* A packet per thread; 0: all of this thread's go unchanged to the first port. */
MR_HD uint32_t mr_kernel_slot_thread(const struct mr_worker *w, const struct mr_block *b,
	uint32_t count, enum mr_tick tick, uint8_t rx_port, const struct mr_desc_in *in,
	struct mr_desc_out *out)
{
	const struct mr_lane_dev *lane = w->lane;
	uint32_t changed = 0;

	/* Whole warps go round, since they copy together. */
	for (uint32_t i = b->thread;
		i < (count + MR_KERNEL_WARP - 1) / MR_KERNEL_WARP * MR_KERNEL_WARP;
		i += b->threads) {
		uint32_t to = MR_KERNEL_STAYS, from = 0, place = 0;

		if (i < count) {
			struct mr_view v;

			to = mr_kernel_to(lane, in, i);
			if (mr_kernel_view(lane, rx_port, &in[i], to, &v) ||
				mr_kernel_blank(tick, &v))
				mr_kernel_chain_thread(w, tick, &v);
			changed |= mr_kernel_result(&out[i], &v, &in[i]);
			from = in[i].position;
			place = v.head | v.length << 16;
			if (!mr_kernel_leaves(&v))
				to = MR_KERNEL_STAYS;
		}
		if (lane->tx_region != 0) {
			mr_kernel_warp_sync();
			mr_kernel_copy_each(lane, b, from, to, place);
		}
	}
	return changed;
}

#if defined(__CUDACC__)
/* Hands the first thread's view and flow to the rest of the warp. */
MR_HD enum mr_flow mr_kernel_share(struct mr_view *v, enum mr_flow flow)
{
#if defined(__CUDA_ARCH__)
	uint32_t words[2];

	words[0] = v->length | v->head << 16;
	words[1] = v->verdict | (uint32_t)v->port << 8 | (uint32_t)v->arg << 16;
	words[0] = __shfl_sync(0xffffffffu, words[0], 0);
	words[1] = __shfl_sync(0xffffffffu, words[1], 0);
	flow = (enum mr_flow)__shfl_sync(0xffffffffu, (int)flow, 0);
	v->frame += (int32_t)((words[0] >> 16) - v->head);
	v->length = words[0] & 0xffff;
	v->head = words[0] >> 16;
	v->verdict = (uint8_t)words[1];
	v->port = (uint8_t)(words[1] >> 8);
	v->arg = (uint16_t)(words[1] >> 16);
#else
	(void)v;
#endif
	return flow;
}

/* A packet per warp; 0 as above. */
MR_HD uint32_t mr_kernel_slot_warp(const struct mr_worker *w, const struct mr_block *b,
	uint32_t count, uint8_t rx_port, const struct mr_desc_in *in, struct mr_desc_out *out)
{
	const struct mr_lane_dev *lane = w->lane;
	uint32_t rank = b->thread % MR_KERNEL_WARP;
	uint32_t warps = b->threads / MR_KERNEL_WARP;
	uint32_t changed = 0;

	for (uint32_t i = b->thread / MR_KERNEL_WARP; i < count; i += warps) {
		enum mr_flow flow = MR_NEXT;
		struct mr_view v;

		if (mr_kernel_view(lane, rx_port, &in[i], mr_kernel_to(lane, in, i), &v)) {
			for (uint32_t s = 0; s < lane->chain_len && flow == MR_NEXT; s++) {
				struct mr_ctx ctx =
					mr_kernel_ctx(w, &lane->chain[s], rank, MR_KERNEL_WARP);
				uint32_t stage = lane->chain[s].stage;

				if (mr_kernel_work_of(stage) == MR_WORK_WARP) {
					flow = mr_kernel_warp_stage(stage, &ctx, &v);
				} else {
					ctx.size = 1;
					if (rank == 0)
						flow = mr_kernel_thread_stage(stage, &ctx, &v);
					flow = mr_kernel_share(&v, flow);
				}
				mr_kernel_warp_sync();
			}
		}
		if (rank == 0)
			changed |= mr_kernel_result(&out[i], &v, &in[i]);
		/* Read again, so that no register holds it while stages run. */
		if (lane->tx_region != 0 && mr_kernel_leaves(&v))
			mr_kernel_copy(lane, in[i].position, mr_kernel_to(lane, in, i), v.head,
				v.length, rank, MR_KERNEL_WARP);
	}
	return changed;
}

/* A WARP stage on the packets of a warp's threads, one after the other, each by all of them. */
MR_HD enum mr_flow mr_kernel_warp_each(
	uint32_t stage, const struct mr_ctx *ctx, struct mr_view *v, enum mr_flow flow)
{
	MR_ROLLED
	for (uint32_t k = 0; k < MR_KERNEL_WARP; k++) {
		struct mr_view of_k = *v;
		enum mr_flow k_flow;

		if (!mr_turn_view(k, flow == MR_NEXT, &of_k))
			continue;
		k_flow = mr_kernel_warp_stage(stage, ctx, &of_k);
		mr_kernel_warp_sync();
		if (ctx->rank == k) {
			*v = of_k;
			flow = k_flow;
		}
	}
	return flow;
}

/* One stage of an ordered chain, by all threads of the warp; flow says who has a packet for it. */
MR_HD enum mr_flow mr_kernel_order_step(const struct mr_worker *w, const struct mr_block *b,
	uint32_t s, enum mr_tick tick, struct mr_view *v, enum mr_flow flow)
{
	const struct mr_chain_dev *c = &w->lane->chain[s];
	struct mr_ctx ctx = mr_kernel_ctx(w, c, b->thread, MR_KERNEL_WARP);
	enum mr_work work = mr_kernel_work_of(c->stage);

	ctx.live = flow == MR_NEXT;
	ctx.tick = tick;
	if (work == MR_WORK_WARP)
		return mr_kernel_warp_each(c->stage, &ctx, v, flow);
	if (work == MR_WORK_ORDER) {
		enum mr_flow own = mr_kernel_order_stage(c->stage, &ctx, v);

		flow = ctx.live ? own : MR_STOP;
	} else if (ctx.live) {
		ctx.size = 1;
		ctx.rank = 0;
		flow = mr_kernel_thread_stage(c->stage, &ctx, v);
	}
	mr_kernel_warp_sync();
	return flow;
}

/* Down the chain with a packet per thread, or with a blank buffer per thread. */
MR_HD void mr_kernel_order_chain(const struct mr_worker *w, const struct mr_block *b,
	enum mr_tick tick, struct mr_view *v, enum mr_flow flow)
{
	const struct mr_lane_dev *lane = w->lane;
	uint32_t s = mr_kernel_first(w, tick);

	for (uint32_t i = 0; i < lane->chain_len; i++) {
		if (tick == MR_TICK_NOT || (lane->chain[s].flags & MR_CHAIN_TICKS) != 0)
			flow = mr_kernel_order_step(w, b, s, tick, v, flow);
		s = s + 1 == lane->chain_len ? 0 : s + 1;
	}
}

/* A packet per thread, all threads together from stage to stage; 0 as above. */
MR_HD uint32_t mr_kernel_slot_order(const struct mr_worker *w, const struct mr_block *b,
	uint32_t count, enum mr_tick tick, uint8_t rx_port, const struct mr_desc_in *in,
	struct mr_desc_out *out)
{
	const struct mr_lane_dev *lane = w->lane;
	uint32_t changed = 0;

	for (uint32_t first = 0; first < count; first += MR_KERNEL_WARP) {
		uint32_t i = first + b->thread, to = MR_KERNEL_STAYS, from = 0, place = 0;
		enum mr_flow flow = MR_STOP;
		struct mr_view v;

		v.frame = 0;
		v.length = v.head = v.rx_port = v.verdict = v.port = v.arg = 0;
		v.room = lane->room;
		if (i < count) {
			to = mr_kernel_to(lane, in, i);
			if (mr_kernel_view(lane, rx_port, &in[i], to, &v) ||
				mr_kernel_blank(tick, &v))
				flow = MR_NEXT;
		}
		mr_kernel_order_chain(w, b, tick, &v, flow);
		if (i < count) {
			from = in[i].position;
			changed |= mr_kernel_result(&out[i], &v, &in[i]);
			place = v.head | v.length << 16;
			if (!mr_kernel_leaves(&v))
				to = MR_KERNEL_STAYS;
		}
		/* Each step of the chain has ordered what its threads wrote. */
		if (lane->tx_region != 0)
			mr_kernel_copy_each(lane, b, from, to, place);
	}
	return changed;
}
#endif

/* A slot by the division that this kernel is of; 0 as above. */
MR_HD uint32_t mr_kernel_slot(struct mr_worker *w, const struct mr_block *b, enum mr_work work,
	const struct mr_slot_in *in, struct mr_slot_out *out)
{
	const struct mr_desc_in *d = (const struct mr_desc_in *)(in + 1);
	struct mr_desc_out *to = (struct mr_desc_out *)(out + 1);
	uint32_t count = in->count < w->lane->batch ? in->count : w->lane->batch;
	enum mr_tick tick = (in->flags & MR_SLOT_TICK) == 0 || work != MR_WORK_ORDER ? MR_TICK_NOT
		: (in->flags & MR_SLOT_LAST) != 0                                    ? MR_TICK_LAST
										     : MR_TICK;
	uint32_t changed;

#if defined(__CUDACC__)
	if (work == MR_WORK_WARP)
		changed = mr_kernel_slot_warp(w, b, count, in->rx_port, d, to);
	else if (work == MR_WORK_ORDER)
		changed = mr_kernel_slot_order(w, b, count, tick, in->rx_port, d, to);
	else
		changed = mr_kernel_slot_thread(w, b, count, MR_TICK_NOT, in->rx_port, d, to);
#else
	mr_kernel_prepare(w, tick);
	changed = mr_kernel_slot_thread(w, b, count, tick, in->rx_port, d, to);
#endif
	w->ticks += tick != MR_TICK_NOT;
	return changed;
}

#endif
