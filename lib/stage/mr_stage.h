/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_stage - what a packet program is.
 *
 * A stage is one C source, compiled by nvcc into the persistent kernel and by
 * the C compiler into the software device; the host form is the specification
 * of the CUDA form. A chain of stages is run on every packet of a lane, in
 * order, and ends with a verdict; unless a stage says otherwise a packet goes
 * to the first entry of the lane's tx list.
 *
 *     struct mr_view ─► stage 1 ─ MR_NEXT ─► stage 2 ─ MR_STOP ─► verdict
 *
 * Work division. A THREAD stage is called by one GPU thread per packet (header
 * programs). A WARP stage is called by the 32 threads of a warp together with
 * the same packet (payload programs); ctx->rank and ctx->size tell a thread its
 * share, and the values it leaves in the view must be the same in all 32. On
 * the host both are called once with rank 0 and size 1. An ORDER stage needs the packets of
 * its lane in order: it is called by the 32 threads of one warp together, each with a packet of
 * its own, in the order of ctx->rank; a thread without one has live 0 and touches nothing. What
 * is to be done in order stands in a loop of turns:
 *
 *     for (uint32_t turn = 0; turn < mr_turns(); turn = mr_turn_next(turn))
 *         if (turn == ctx->rank && ctx->live) ...
 *
 * Or all threads work on the packet whose turn it is, as those of a WARP stage do; what they leave
 * in its view is the same in all, and its own thread takes it and what becomes of it:
 *
 *         struct mr_view view = *v;
 *         if (!mr_turn_view(turn, ctx->live, &view))
 *             continue;
 *         ...
 *         if (turn == ctx->rank)
 *             *v = view;
 *
 * On the host there is one turn, and ctx->rank is 0.
 *
 * Ticks. A stage that `ticks` is called every tick_us of its lane with blank buffers: ctx->tick
 * says so, and the view has length 0 and a verdict that drops it. It may make a frame there
 * (mr_view_resize, every byte written) and mr_send it, a result; with MR_NEXT the buffer is
 * offered to the chain's other stages that tick. With MR_TICK_LAST no packet comes any more:
 * what waits for one is told now. The buffers are few; what does not fit waits in the state.
 *
 * Packets. mr_packet.h is the view: fields that are read and written within the frame
 * whatever a packet says (mr_get_be, mr_put_le, ...), the header walk (mr_walk), and
 * moving the frame's ends. mr_sum.h has the checksums.
 *
 * Memory. Only view->frame[0 .. length-1] may be read and written, and what moving an
 * end has gained. Packet bytes are never reached through `const __restrict__` or __ldg:
 * the NIC rewrites them behind the compiler's back. A stage that reads whole frames does
 * it by mr_frame_load_16 and mr_frame_load_1, which the L1 cache never serves. What a
 * thread of a warp has written, the others may read after mr_group_sync; a shuffle orders
 * nothing, and between two stages of a chain the kernel does it. No allocation, no
 * printing, no recursion, no globals.
 *
 * Parameters. A stage declares a struct and a table (mr_param.h); the struct is what
 * ctx->params points at. A reload changes them between two slots, never within one, so
 * nothing of them may be kept.
 *
 * Tables. A stage that works by more than parameters hold, such as routes or rules, has a
 * struct mr_table_desc (mr_table.h): a parameter names a text file, the host makes of it what
 * the stage looks things up in, and ctx->table points at that, in device memory, until the
 * next reload. Without a file the table is made of nothing; NULL is to be taken for that.
 * Tables are only read, never through `const __restrict__`, __ldg or constant memory.
 *
 * State. What a stage remembers between packets lies in GPU memory beside packet memory; no
 * NIC reaches it. A struct mr_state_desc says how many bytes it is for a lane and for a device,
 * by the parameters that the lane starts with. Set-up allocates them before the kernel starts,
 * zeroed and aligned to 64 KiB, and frees them after it has left: ctx->state is the lane's own,
 * ctx->shared the same for all lanes of the device whose chains have the stage. Twice in one
 * chain, a stage has two states and the one shared. What a stage makes of zeroes is its
 * beginning. Threads of a block, and workers of a lane unless the stage is `ordered`, use the
 * state at the same time, so what several may write is written by atomics; it is never
 * reached through `const __restrict__` or __ldg.
 *
 * A reload of parameters keeps the state as it is. Its bytes are its layout: a reload whose
 * parameters ask for another number of them is refused. A stage that has to begin anew when
 * other parameters change keeps a copy of those in the state and compares.
 *
 * Time. A stage that is `timed` finds in ctx->now_ns when the kernel took the slot that the
 * packet came in: nanoseconds of the device's clock, which is one for all lanes of the device,
 * begins anywhere and is no time of day. It is the same for all packets of the slot; another
 * worker may have an older one in hand. mr_limit.h limits a rate by it.
 *
 * Groups. mr_group_sum, _max, _min and _or combine a value over the threads that share a
 * packet, mr_group_before hands it on, and mr_group_sync orders what they write; all of them call
 * it. On the host a group is one thread, and the first four give v.
 *
 * Verdicts. mr_send(v, port), mr_drop(v, reason), or MR_NEXT with the view as it is; a stage
 * that wants several ports sets verdict MR_TX_MASK and their bits in arg.
 *
 * Adding one. lib/stage/mr_stage_NAME.cu with the function mr_stage_NAME and, under
 * MR_STAGE_DESCRIBE, mr_stage_desc_NAME; a row in mr_stages.def; its include in mr_stage.c
 * and mr_kernel.h. mr_stage_forward.cu is the shortest with a parameter. A stage that is not
 * part of Millrace is a plug-in: mr_plugin.h.
 *
 * Counters. mr_count() adds to one of the stage's own counters. They are summed
 * over workers by the host.
 */
#ifndef MR_STAGE_H
#define MR_STAGE_H

#include "mr_packet.h"
#include "mr_param.h"
#include "mr_ring_abi.h"
#include "mr_sum.h"
#include "mr_sync.h"

/* How a stage divides its work; a lane is served by the kernel of its heaviest stage. */
enum mr_work {
	MR_WORK_THREAD,
	MR_WORK_WARP,
	MR_WORK_ORDER,
	MR_WORK_COUNT,
};

enum mr_stage_id {
#define STAGE(name, work) MR_STAGE_##name,
#include "mr_stages.def"
#undef STAGE
	MR_STAGE_COUNT
};

/* What a stage is called with. */
enum mr_tick {
	MR_TICK_NOT,  /* a packet */
	MR_TICK,      /* a blank buffer */
	MR_TICK_LAST, /* a blank buffer, and no packet comes any more */
};

struct mr_ctx {
	const void *params;  /* this stage's MR_PARAM_BYTES */
	const void *table;   /* what it made of its file, aligned to 64 bytes, or NULL */
	void *state;         /* its memory of this lane, or NULL */
	void *shared;        /* its memory of this device, or NULL */
	uint64_t *counters;  /* this stage's counters in the worker's block */
	uint64_t now_ns;     /* when the kernel took the packet, for stages that are `timed` */
	uint32_t rank, size; /* share of the work: thread in the warp; 0 of 1 on the host */
	uint32_t live;       /* 0: this thread of an ORDER stage has no packet */
	enum mr_tick tick;   /* what the view is, for stages that tick */
};

enum mr_flow {
	MR_NEXT, /* go on with the next stage of the chain */
	MR_STOP, /* the verdict in the view is final */
};

/* mr_count adds to counter i of this stage; call it from one thread only. */
MR_HD void mr_count(const struct mr_ctx *ctx, uint32_t i, uint64_t add)
{
#if defined(__CUDA_ARCH__)
	atomicAdd((unsigned long long *)&ctx->counters[i], (unsigned long long)add);
#else
	ctx->counters[i] += add;
#endif
}

/* mr_send ends the chain: the packet goes to entry `port` of the lane's tx list. */
MR_HD enum mr_flow mr_send(struct mr_view *v, uint32_t port)
{
	v->verdict = MR_TX;
	v->port = (uint8_t)port;
	return MR_STOP;
}

/* mr_drop ends the chain: the packet is freed and counted as gpu_drop_<reason>. */
MR_HD enum mr_flow mr_drop(struct mr_view *v, enum mr_reason reason)
{
	v->verdict = MR_DROP;
	v->arg = (uint16_t)reason;
	return MR_STOP;
}

/* How many turns an ORDER stage takes to serve its warp, and the end of one. */
MR_HD uint32_t mr_turns(void)
{
#if defined(__CUDA_ARCH__)
	return 32;
#else
	return 1;
#endif
}

MR_HD uint32_t mr_turn_next(uint32_t turn)
{
#if defined(__CUDA_ARCH__)
	__syncwarp(0xffffffffu);
#endif
	return turn + 1;
}

/*
 * mr_turn_view gives all threads of a warp the view of thread `turn`; 0: it says of itself that it
 * has no packet. Each hands in its own, and whether it has one.
 */
MR_HD int mr_turn_view(uint32_t turn, uint32_t live, struct mr_view *v)
{
#if defined(__CUDA_ARCH__)
	uint64_t frame = (uint64_t)(uintptr_t)v->frame;
	uint32_t words[4];

	words[0] = v->length | v->head << 16;
	words[1] = v->verdict | (uint32_t)v->port << 8 | (uint32_t)v->arg << 16;
	words[2] = v->rx_port | live << 8;
	words[3] = v->room;
	frame = __shfl_sync(0xffffffffu, frame, (int)turn);
	for (uint32_t i = 0; i < 4; i++)
		words[i] = __shfl_sync(0xffffffffu, words[i], (int)turn);
	v->frame = (uint8_t *)(uintptr_t)frame;
	v->length = words[0] & 0xffff;
	v->head = words[0] >> 16;
	v->room = words[3];
	v->verdict = (uint8_t)words[1];
	v->port = (uint8_t)(words[1] >> 8);
	v->arg = (uint16_t)(words[1] >> 16);
	v->rx_port = (uint8_t)words[2];
	live = words[2] >> 8;
#endif
	(void)turn;
	(void)v;
	return live != 0;
}

/* mr_frame_load_16 reads 16 bytes of a frame in one access; p is aligned to 16. */
MR_HD void mr_frame_load_16(const uint8_t *p, uint32_t ret_words[4])
{
#if defined(__CUDA_ARCH__)
	mr_device_load_16(p, ret_words);
#else
	__builtin_memcpy(ret_words, p, 16);
#endif
}

/* mr_frame_store_16 writes 16 bytes of a frame in one access; p is aligned to 16. */
MR_HD void mr_frame_store_16(uint8_t *p, const uint32_t words[4])
{
#if defined(__CUDA_ARCH__)
	mr_device_store_16(p, words);
#else
	__builtin_memcpy(p, words, 16);
#endif
}

/* mr_frame_load_1 reads one byte of a frame. */
MR_HD uint32_t mr_frame_load_1(const uint8_t *p)
{
#if defined(__CUDA_ARCH__)
	return mr_device_load_1(p);
#else
	return *p;
#endif
}

/* mr_group_sum adds v over the threads of a warp; every thread gets the sum. */
MR_HD uint64_t mr_group_sum(const struct mr_ctx *ctx, uint64_t v)
{
#if defined(__CUDA_ARCH__)
	for (int d = 16; d > 0; d /= 2)
		v += __shfl_xor_sync(0xffffffffu, v, d);
#endif
	(void)ctx;
	return v;
}

/* mr_group_max gives every thread of a warp the largest v. */
MR_HD uint64_t mr_group_max(const struct mr_ctx *ctx, uint64_t v)
{
#if defined(__CUDA_ARCH__)
	for (int d = 16; d > 0; d /= 2) {
		uint64_t other = __shfl_xor_sync(0xffffffffu, v, d);

		v = other > v ? other : v;
	}
#endif
	(void)ctx;
	return v;
}

/* mr_group_min gives every thread of a warp the smallest v. */
MR_HD uint64_t mr_group_min(const struct mr_ctx *ctx, uint64_t v)
{
#if defined(__CUDA_ARCH__)
	for (int d = 16; d > 0; d /= 2) {
		uint64_t other = __shfl_xor_sync(0xffffffffu, v, d);

		v = other < v ? other : v;
	}
#endif
	(void)ctx;
	return v;
}

/* mr_group_or gives every thread of a warp the bits that are set in any v. */
MR_HD uint64_t mr_group_or(const struct mr_ctx *ctx, uint64_t v)
{
#if defined(__CUDA_ARCH__)
	for (int d = 16; d > 0; d /= 2)
		v |= __shfl_xor_sync(0xffffffffu, v, d);
#endif
	(void)ctx;
	return v;
}

/*
 * mr_group_before gives a thread the v of the one before it, and the first one *carry, which
 * becomes the last one's v: so rows of threads go through a sequence one after the other.
 */
MR_HD uint64_t mr_group_before(const struct mr_ctx *ctx, uint64_t v, uint64_t *carry)
{
	uint64_t before = *carry;
#if defined(__CUDA_ARCH__)
	const uint64_t other = __shfl_sync(0xffffffffu, v, (int)(ctx->rank + 31) % 32);

	if (ctx->rank != 0)
		before = other;
	*carry = __shfl_sync(0xffffffffu, v, 31);
#else
	*carry = v;
#endif
	(void)ctx;
	return before;
}

/* mr_group_sync: what a thread of a warp wrote before it, the others read behind it. */
MR_HD void mr_group_sync(const struct mr_ctx *ctx)
{
#if defined(__CUDA_ARCH__)
	__syncwarp(0xffffffffu);
#endif
	(void)ctx;
}

#if !defined(__CUDACC__)
#include "mr_table.h"

struct mr_stage_counter {
	const char *name;
	const char *help;
};

#define MR_STATE_MAX (1ull << 40) /* bytes of either memory; a device has less */

/* Bytes that a stage keeps between packets, by its parameters; NULL or 0: none. */
struct mr_state_desc {
	uint64_t (*lane_bytes)(const uint8_t params[MR_PARAM_BYTES]);
	/* Of lanes that differ the largest is taken. */
	uint64_t (*device_bytes)(const uint8_t params[MR_PARAM_BYTES]);
	const char *capacity; /* the parameter that sets them, named when they do not fit;
				 NULL: no parameter does */
};

/* What the host knows of a stage: the source of `millrace stages` and the schema. */
struct mr_stage_desc {
	const char *name;
	const char *help;
	enum mr_stage_id id;
	enum mr_work work;
	bool ordered; /* a WARP stage that needs every packet in order, as all ORDER stages do */
	bool timed;   /* reads ctx->now_ns */
	bool ticks;   /* takes blank buffers */
	/*
	 * A frame never begins before or ends behind where it came: the stage neither pushes
	 * nor makes it longer. Where all of a chain say so, a staged lane's frames lie side by
	 * side, and no more than they are crosses the bus.
	 */
	bool in_place;
	const struct mr_param_desc *params;
	uint32_t params_count;
	/*
	 * What no single parameter says: -EINVAL and a sentence; NULL: there is nothing. The
	 * lane's frames have frame_bytes at most, without tags; UINT32_MAX: nobody knows.
	 */
	int (*check)(
		const uint8_t params[MR_PARAM_BYTES], uint32_t frame_bytes, struct mr_err *err);
	const struct mr_table_desc *table; /* NULL: it has none */
	const struct mr_stage_counter *counters;
	uint32_t counters_count;
	const struct mr_state_desc *state; /* NULL: it keeps nothing */
};

/* mr_stage_in_order tells whether a stage needs every packet of its lane in order. */
static inline bool mr_stage_in_order(const struct mr_stage_desc *stage)
{
	return stage->ordered || stage->work == MR_WORK_ORDER;
}

/* mr_stage_find returns the stage of that name, or NULL. */
const struct mr_stage_desc *mr_stage_find(const char *name);

/* mr_stage_at returns the i-th built-in stage, or NULL behind the last. */
const struct mr_stage_desc *mr_stage_at(uint32_t i);

/* mr_stage_param_find returns the row of a parameter, or NULL. */
const struct mr_param_desc *mr_stage_param_find(
	const struct mr_stage_desc *stage, const char *name);

/*
 * mr_stage_param_set checks one parameter as written and stores it (mr_param_parse);
 * -ENOENT: the stage has no such parameter. The sentence in err names the parameter, what is
 * allowed and the nearest name.
 */
MR_MUST_USE int mr_stage_param_set(const struct mr_stage_desc *stage, const char *name,
	const char *value, const struct mr_param_env *env, uint8_t params[MR_PARAM_BYTES],
	struct mr_err *err);

/* mr_stage_param_defaults fills params with the defaults of the stage's table. */
void mr_stage_param_defaults(const struct mr_stage_desc *stage, uint8_t params[MR_PARAM_BYTES]);

/*
 * mr_stage_table_build makes the table of a stage that has one, from the file that its
 * parameters name, in memory that the caller frees. -EINVAL: the file is not as it should be,
 * with at least one error; -ENOMEM.
 */
MR_MUST_USE int mr_stage_table_build(const struct mr_stage_desc *stage,
	const uint8_t params[MR_PARAM_BYTES], const struct mr_param_env *env, void **ret_table,
	size_t *ret_bytes, struct mr_table_errors *ret_errors);

/* The file that parameters name for the stage's table, "" for none. */
const char *mr_stage_table_file(
	const struct mr_stage_desc *stage, const uint8_t params[MR_PARAM_BYTES]);

/* Bytes of state with these parameters, of a lane and of a device. */
uint64_t mr_stage_lane_bytes(
	const struct mr_stage_desc *stage, const uint8_t params[MR_PARAM_BYTES]);
uint64_t mr_stage_device_bytes(
	const struct mr_stage_desc *stage, const uint8_t params[MR_PARAM_BYTES]);

const char *mr_work_name(enum mr_work work);

#endif
#endif
