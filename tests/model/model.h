/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model - every interleaving of the hand-over, driven through the shipped code.
 *
 *     rx  ── open, fill, give ─►  READY  ─►  gpu 0 .. W-1  ─►  DONE  ── take, release ─►  tx
 *                                              ▲ exit ── stop
 *
 * Actors are coroutines of one thread. rx and tx are the lane: they run mr_ring.h.
 * A gpu actor runs mr_kernel_body(). All of that is compiled with the
 * instrumentation of ThreadSanitizer, but not linked with its runtime: what the
 * compiler calls before each access is in model_memory.c. So the sources carry
 * nothing for this test, and every access of theirs is seen with the memory order
 * that it was written with.
 *
 * Schedules (model_schedule.c). Before an access to a word that is handed over -
 * READY, DONE, exit - the actor stops and the scheduler picks who goes on. All
 * choices are tried, depth first, each by a run from the start. Where a schedule
 * comes to a state in which another has been, it would go on alike: it is not run
 * further, and the schedules from there are counted for it too. A state is every
 * word's values, clocks, and what each actor has seen that was new to it and is
 * about to do; the rest follows from these as long as no rule is broken. A poll
 * that can only see what it saw changes nothing (but the kernel's count of polls,
 * which matters at every 64th) and is not run again until it can see something
 * new; that keeps schedules finite.
 *
 * Memory (model_memory.c) is that of C11 without load buffering. Of a word's
 * values a load may return any that coherence and happens-before leave, so a
 * store may arrive as late as allowed; only an acquire load of a value that was
 * release-stored orders anything. Plain data has no stale values: two accesses
 * to a byte, one of them a write, that are not ordered by happens-before are a
 * failure, whichever value they would have seen.
 *
 * Not modelled: executions in which loads are overtaken by later stores in a
 * circle; the fences around a write-combining mapping (mr_ring_give_mapped is run,
 * its sfence does nothing here); the beats; and the block's barrier, which the host
 * form does not have.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_WORKERS 3u /* at most */
#define MODEL_SLOTS 2u   /* of the ring */
#define MODEL_BATCH 2u
#define MODEL_WORDS (2 * MODEL_SLOTS + 1) /* READY and DONE of each slot, exit */

/* Coroutines, and the threads of execution that they belong to: rx and tx share the lane's. */
enum model_actor {
	MODEL_RX,
	MODEL_TX,
	MODEL_STOP,
	MODEL_GPU,
	MODEL_ACTORS = 3 + MODEL_WORKERS
};
enum {
	MODEL_LANE,
	MODEL_CONTROL,
	MODEL_WORKER,
	MODEL_THREADS = 2 + MODEL_WORKERS
};

/* What must hold; a failure names one of these. */
enum model_rule {
	MODEL_HOLDS,
	MODEL_OWNER,    /* a byte has one owner at a time */
	MODEL_ONCE,     /* a slot is given once, then done once, by its worker */
	MODEL_DATA,     /* what is taken is the result of what was given, in order */
	MODEL_STUCK,    /* without a stop, every slot gets through */
	MODEL_LEAVES,   /* after a stop every worker leaves */
	MODEL_FINISHES, /* no worker leaves a slot half done, or forgets to say what it did */
	MODEL_BOUNDS,   /* nobody reaches beside what it was given */
	MODEL_RULES
};

/* One model to run. */
struct model_case {
	uint32_t workers;
	uint32_t first_seq;
	uint32_t count; /* slots that rx gives */
	bool mapped;    /* the worker reads the copy that mr_ring_give_mapped makes */
};

enum model_op_kind {
	MODEL_OP_NONE, /* a wait of the lane for itself */
	MODEL_OP_LOAD,
	MODEL_OP_STORE,
};

/* What an actor is about to do. */
struct model_op {
	enum model_op_kind kind;
	uint32_t word;           /* index of LOAD and STORE */
	bool (*condition)(void); /* NONE: may go on when true */
};

struct model_count {
	double schedules;      /* different ones, all covered */
	uint64_t runs, states; /* from the start; different states seen */
	uint64_t steps;
	uint32_t deepest; /* steps of the longest schedule */
};

/* model_schedule.c */
enum model_rule model_run(const struct model_case *c, struct model_count *ret_count);
/* Stops the calling actor until it is picked; returns which of the readable values to take. */
uint32_t model_yield(const struct model_op *op);
enum model_actor model_current(void);
/* Ends the run: rule is broken. Called by an actor it does not return. */
void model_fail(enum model_rule rule, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *model_failure(void);
const char *model_actor_name(enum model_actor a);
/* Adds a line to the trace of the running schedule. */
void model_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* model_memory.c */
struct model_area {
	const char *name;
	const void *start;
	uint32_t bytes;
};

/* Forgets all; words and areas lie in the memory [base, base + bytes) and stay the caller's. */
void model_memory_reset(const void *base, uint32_t bytes, const struct model_area *areas,
	uint32_t areas_count, uint32_t *const words[MODEL_WORDS]);
/* From here on accesses of the running actor are recorded, or no longer. */
void model_memory_record(bool on);
/* How many values the actor's next load could return; 0: nothing but what it saw. */
uint32_t model_memory_choices(enum model_actor a, const struct model_op *op);
/* The running actor has changed its own state: what it polls next is news. */
void model_memory_progress(void);
uint64_t model_mix(uint64_t hash, uint64_t v);
/* Mixes all that the memory and the actors' pasts hold into a hash. */
uint64_t model_memory_state(uint64_t hash);
uint32_t model_thread(enum model_actor a);

/* model_actors.c */
void model_setup(const struct model_case *c);
void model_act(enum model_actor a);
bool model_all_through(void);
void model_check_end(void);
void model_saw_load(enum model_actor a, uint32_t word, uint32_t value);
void model_saw_store(enum model_actor a, uint32_t word, uint32_t value);
const char *model_word_name(uint32_t word);

#endif
