/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the model over all schedules: depth first, from the start each time, the
 * choices so far replayed. A node is a state in which somebody has to be picked.
 */
#include "model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#define STEPS_MAX 400u
#define STACK_BYTES 65536u
#define TRACE_BYTES 32768u
#define KNOWN_MAX (1u << 19) /* a power of two */

struct node {
	uint32_t may;                   /* actors that can go on, a bit each */
	uint32_t choices[MODEL_ACTORS]; /* ways in which its step can go */
	uint32_t actor, choice;         /* picked */
	uint64_t state;
	double schedules; /* complete ones from here, of what was tried */
	uint32_t longest; /* steps of the longest of those */
};

/* A state that is done with. */
struct known {
	uint64_t state; /* 0: a free place */
	double schedules;
	uint32_t longest;
};

struct actor {
	jmp_buf start, at; /* of its stack */
	struct model_op op;
	bool ended;
};

static struct {
	ucontext_t context; /* while stacks are made */
	jmp_buf at;
	struct actor actor[MODEL_ACTORS];
	uint32_t actors;
	enum model_actor current;
	uint32_t choice;
	struct node node[STEPS_MAX];
	uint32_t depth; /* of the node at hand */
	uint32_t taken; /* steps of the running schedule */
	struct known known[KNOWN_MAX];
	enum model_rule broken;
	bool inside; /* an actor runs */
	char failure[512];
	bool tracing;
	char trace[TRACE_BYTES];
	uint32_t trace_bytes;
} run;

static const char *const actor_names[MODEL_ACTORS] = {"rx", "tx", "stop", "gpu0", "gpu1", "gpu2"};

const char *model_actor_name(enum model_actor a)
{
	return actor_names[a];
}

enum model_actor model_current(void)
{
	return run.current;
}

const char *model_failure(void)
{
	return run.failure;
}

/* From the actor that runs to the scheduler; comes back when the actor is picked. */
static void leave(void)
{
	if (_setjmp(run.actor[run.current].at) == 0)
		_longjmp(run.at, 1);
}

void model_trace(const char *fmt, ...)
{
	va_list args;

	if (!run.tracing)
		return;
	va_start(args, fmt);
	run.trace_bytes += (uint32_t)vsnprintf(
		run.trace + run.trace_bytes, TRACE_BYTES - run.trace_bytes, fmt, args);
	va_end(args);
	if (run.trace_bytes + 2 < TRACE_BYTES)
		run.trace[run.trace_bytes++] = '\n';
	else
		run.trace_bytes = TRACE_BYTES - 2;
	run.trace[run.trace_bytes] = '\0';
}

void model_fail(enum model_rule rule, const char *fmt, ...)
{
	va_list args;

	if (run.broken == MODEL_HOLDS) {
		run.broken = rule;
		va_start(args, fmt);
		(void)vsnprintf(run.failure, sizeof(run.failure), fmt, args);
		va_end(args);
	}
	if (run.inside)
		leave();
}

uint32_t model_yield(const struct model_op *op)
{
	run.actor[run.current].op = *op;
	leave();
	return run.choice;
}

/* The bottom of an actor's stack: the first visit leaves a mark to start from, again and again. */
static void actor_main(void)
{
	static ucontext_t unused;

	if (_setjmp(run.actor[run.current].start) == 0)
		(void)swapcontext(&unused, &run.context);
	model_act(run.current);
	run.actor[run.current].ended = true;
	leave();
}

/* Jumps are cheaper than swapcontext, which makes two system calls. */
static void make_stacks(void)
{
	static uint8_t stacks[MODEL_ACTORS][STACK_BYTES] __attribute__((aligned(64)));
	ucontext_t c;

	for (uint32_t i = 0; i < MODEL_ACTORS; i++) {
		(void)getcontext(&c);
		c.uc_stack.ss_sp = stacks[i];
		c.uc_stack.ss_size = STACK_BYTES;
		c.uc_link = NULL;
		makecontext(&c, actor_main, 0);
		run.current = (enum model_actor)i;
		(void)swapcontext(&run.context, &c);
	}
}

static void resume(uint32_t a, uint32_t choice)
{
	run.current = (enum model_actor)a;
	run.choice = choice;
	run.inside = true;
	model_memory_record(true);
	if (_setjmp(run.at) == 0)
		_longjmp(run.actor[a].at, 1);
	model_memory_record(false);
	run.inside = false;
}

/* Everybody from the start to the first point where it has to be picked. */
static void begin(const struct model_case *c)
{
	model_setup(c);
	run.actors = MODEL_GPU + c->workers;
	run.trace_bytes = 0;
	run.trace[0] = '\0';
	for (uint32_t i = 0; i < run.actors && run.broken == MODEL_HOLDS; i++) {
		run.actor[i].ended = false;
		memcpy(run.actor[i].at, run.actor[i].start, sizeof(jmp_buf));
		resume(i, 0);
	}
}

static void look(struct node *n)
{
	n->may = 0;
	n->schedules = 0;
	n->longest = 0;
	n->state = model_memory_state(0);
	for (uint32_t i = 0; i < run.actors; i++) {
		const struct actor *a = &run.actor[i];

		n->state = model_mix(
			n->state, a->ended ? UINT64_MAX : (uint64_t)a->op.kind << 32 | a->op.word);
		n->choices[i] = a->ended ? 0 : model_memory_choices((enum model_actor)i, &a->op);
		if (n->choices[i] != 0)
			n->may |= 1u << i;
	}
}

static struct known *find(uint64_t state)
{
	uint32_t at = (uint32_t)(state >> 40) & (KNOWN_MAX - 1);

	while (run.known[at].state != state && run.known[at].state != 0)
		at = (at + 1) & (KNOWN_MAX - 1);
	return &run.known[at];
}

static const struct known *remember(const struct node *n, struct model_count *count)
{
	struct known *k = find(n->state);

	if (++count->states > KNOWN_MAX / 2)
		model_fail(MODEL_STUCK, "more than %u states", KNOWN_MAX / 2);
	k->state = n->state;
	k->schedules = n->schedules;
	k->longest = n->longest;
	return k;
}

static void check_stuck(const struct node *n)
{
	if (n->may == 1u << MODEL_STOP && !model_all_through())
		model_fail(MODEL_STUCK, "nobody can go on, and not every slot is through");
	for (uint32_t i = MODEL_GPU; n->may == 0 && i < run.actors; i++)
		if (!run.actor[i].ended)
			model_fail(MODEL_LEAVES, "%s waits for ever after the stop",
				model_actor_name((enum model_actor)i));
}

/*
 * One schedule: the first `known` choices again, then new ones, until its end or
 * a state that is done with. Returns that state, NULL where a rule is broken.
 */
static const struct known *schedule(
	const struct model_case *c, uint32_t known, struct model_count *count)
{
	run.taken = 0;
	begin(c);
	for (uint32_t d = 0; run.broken == MODEL_HOLDS; d++) {
		struct node *n = &run.node[d];

		run.depth = d;
		if (d >= known) {
			const struct known *k;

			look(n);
			k = find(n->state);
			if (k->state != 0)
				return k;
			check_stuck(n);
			if (d == STEPS_MAX - 1)
				model_fail(MODEL_STUCK, "no end after %u steps", d);
			if (run.broken != MODEL_HOLDS)
				break;
			if (n->may == 0) {
				model_check_end();
				n->schedules = 1;
				return run.broken == MODEL_HOLDS ? remember(n, count) : NULL;
			}
			n->actor = (uint32_t)__builtin_ctz(n->may);
			n->choice = 0;
		}
		count->steps++;
		run.taken = d + 1;
		resume(n->actor, n->choice);
	}
	return NULL;
}

/*
 * The deepest choice that has another way left becomes that; false: none has.
 * What was found below a node is added to the one above when all its ways are done.
 */
static bool advance(const struct known *found, struct model_count *count)
{
	while (run.depth-- > 0) {
		struct node *n = &run.node[run.depth];
		uint32_t rest = n->may & ~((2u << n->actor) - 1);

		n->schedules += found->schedules;
		if (n->longest < found->longest + 1)
			n->longest = found->longest + 1;
		if (++n->choice < n->choices[n->actor])
			return true;
		n->choice = 0;
		if (rest != 0) {
			n->actor = (uint32_t)__builtin_ctz(rest);
			return true;
		}
		found = remember(n, count);
	}
	count->schedules = found->schedules;
	count->deepest = found->longest;
	return false;
}

/* Runs the schedule that broke a rule once more and prints its steps. */
static void explain(const struct model_case *c)
{
	struct model_count ignored = {0};
	enum model_rule broken = run.broken;

	run.tracing = true;
	run.broken = MODEL_HOLDS;
	(void)schedule(c, run.taken, &ignored);
	run.tracing = false;
	if (run.broken != broken)
		(void)fprintf(stderr, "a second run of this schedule went another way:\n");
	(void)fprintf(stderr, "%s", run.trace);
	run.broken = broken;
}

enum model_rule model_run(const struct model_case *c, struct model_count *ret_count)
{
	uint32_t known = 0;
	const struct known *found;

	*ret_count = (struct model_count){0};
	make_stacks();
	memset(run.known, 0, sizeof(run.known));
	run.broken = MODEL_HOLDS;
	do {
		found = schedule(c, known, ret_count);
		ret_count->runs++;
		if (run.broken != MODEL_HOLDS) {
			explain(c);
			break;
		}
	} while (advance(found, ret_count) && (known = run.depth + 1) != 0);
	return run.broken;
}
