/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simt - a GPU's grid of blocks, executed in one thread, that finds what silicon forgives.
 *
 *     mr_image.cu ─ gcc, device macros, ThreadSanitizer's instrumentation ─┐
 *     simt_cuda.h ─ in the place of mr_device.h and CUDA's built-ins ──────┤
 *                                                                          ▼
 *     host() ◄─ arena: rings, packets, control words ─► lanes: 32 a warp, fibres
 *
 * The kernel and every stage are the shipped sources in their device form. Each
 * lane is a coroutine. It runs until it calls a built-in that others can notice;
 * then the scheduler picks who goes on, by the seed: upwards, downwards or drawn.
 * The host is one more actor; its side is compiled with the instrumentation too
 * (simt_host.c) and runs as a step between two turns of lanes.
 *
 * Lanes (simt.c). A shuffle or vote goes on when every lane of its mask has come
 * to the same call, with the same mask, and each reads only lanes in the mask. A
 * barrier of the block goes on when every lane of the block has come to the same
 * call. Whatever else - a lane that is not in its own mask, comes to another
 * call, or has left - is a fault. The instrumented code is not optimised, so that
 * a call in the source is one place.
 *
 * Memory (simt_memory.c). Actors carry vector clocks. Two accesses to a byte, one
 * a write, not both atomic, that no order separates are a fault, whatever they
 * read. Order is made
 *     within a block   by __syncthreads; within a mask by __syncwarp; by no shuffle
 *     to the host      by __threadfence_system and then, after a barrier where
 *                      another lane does it, st.release.sys that ld.acquire reads
 *     from the host    by a release store that ld.acquire.sys reads
 * which is less than the PTX memory model grants: there a release covers what the
 * barrier before it ordered, without the fence. The fence is this project's rule.
 * A lane may touch its own stack, shared memory that was written since the block
 * began, and what the test has allowed in the arena; else it is a fault.
 *
 * Not modelled: stale values. A race is reported, so no run depends on them. Nor
 * loads past the L1 cache, which tests/lint/image.py reads in the PTX.
 */
#ifndef SIMT_H
#define SIMT_H

#include <stdbool.h>
#include <stdint.h>

#define SIMT_WARP 32u
#define SIMT_LANES_MAX 512u /* of all blocks */
#define SIMT_BLOCKS_MAX 4u
#define SIMT_NAME 48u
#define SIMT_HOST 0u /* actor; lane l of the grid is actor 1 + l */
#define SIMT_ACTORS_MAX (1 + SIMT_LANES_MAX)

struct simt_grid {
	void (*entry)(const void *argument);
	const void *argument;
	uint32_t blocks, threads; /* threads a block */
	uint64_t seed;            /* 0: the lowest lane goes first, 1: the highest, else drawn */
	uint32_t turns_max;       /* of lanes and host; more is a fault */
	bool (*host)(void *);     /* one step of the host, true after its last; or NULL */
	void *host_argument;
};

/*
 * simt_run runs a grid to its end. NULL: all lanes left, the host made its last
 * step and nothing was wrong; else the sentence that says what was, valid until the next run. The
 * memory that actors share is laid by simt_memory_init before.
 */
const char *simt_run(const struct simt_grid *g);

/* The longest that a lane of the last run slept at a time. */
uint32_t simt_longest_nap_ns(void);

/* simt.c, for the memory */
uint32_t simt_actor(void);         /* who runs */
bool simt_on_stack(const void *p); /* of the running lane */
void simt_fault(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *simt_actor_name(uint32_t actor, char name[SIMT_NAME]);

/*
 * simt_memory_init lays the arena: what host and lanes share, `bytes` at `base`.
 * All of it is allowed to lanes. simt_memory_allow changes that for a part.
 */
void simt_memory_init(void *base, uint32_t bytes);
void simt_memory_allow(const void *p, uint32_t bytes, bool allowed);

/* A launch and its end: both order all before with all after. */
void simt_memory_begin(uint32_t blocks, uint32_t threads);
void simt_memory_end(void);
/* The shared memory of a block becomes the one that its lanes see. */
void simt_memory_block(uint32_t block);
/* All lanes first .. first + 31 with a bit in mask, or a whole block, have met. */
void simt_memory_meet_warp(uint32_t first_actor, uint32_t mask);
void simt_memory_meet_block(uint32_t block);
/* What the running lane does by built-ins. */
void simt_memory_atomic(const void *p, uint32_t bytes, bool write);
void simt_memory_plain(const void *p, uint32_t bytes, bool write);
void simt_memory_acquire(const void *p);
void simt_memory_release(const void *p);
void simt_memory_relaxed(const void *p); /* a store that releases nothing */
void simt_memory_fence_system(void);

#endif
