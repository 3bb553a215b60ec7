/* SPDX-License-Identifier: BSD-3-Clause */
#include "simt.h"

#include "simt_cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES 262144u /* not optimised, all of a kernel is one frame */

enum state {
	READY,
	AT_WARP,  /* in a shuffle, vote or __syncwarp */
	AT_BLOCK, /* in a barrier of the block */
	GONE,
};

enum kind {
	SHUFFLE,
	SHUFFLE_XOR,
	BALLOT,
	SYNCWARP,
	BARRIER,
	BARRIER_AND,
};

static const char *const kind_name[] = {"__shfl_sync", "__shfl_xor_sync", "a vote", "__syncwarp",
	"__syncthreads", "__syncthreads_and"};

/* A call that waits for other lanes. */
struct call {
	enum kind kind;
	const void *site; /* the caller's place in the code */
	uint32_t mask;
	uint32_t source; /* lane, or bits of SHUFFLE_XOR */
	uint64_t value;
};

struct lane {
	ucontext_t begin; /* where the lane starts */
	jmp_buf at;       /* where it goes on */
	bool started;
	enum state state;
	struct call call;
	uint64_t result;
};

static struct {
	const struct simt_grid *grid;
	jmp_buf scheduler;
	struct lane lane[SIMT_LANES_MAX];
	uint8_t *stacks;
	uint32_t lanes, gone;
	uint32_t now; /* actor that runs */
	uint64_t draw, clock_ns;
	uint32_t longest_nap_ns;
	char fault[512];
} s;

uint32_t simt_actor(void)
{
	return s.now;
}

static struct lane *me(void)
{
	return &s.lane[s.now - 1];
}

static uint32_t threads(void)
{
	return s.grid->threads;
}

const char *simt_actor_name(uint32_t actor, char name[SIMT_NAME])
{
	if (actor == SIMT_HOST)
		snprintf(name, SIMT_NAME, "the host");
	else
		snprintf(name, SIMT_NAME, "thread %u of block %u", (actor - 1) % threads(),
			(actor - 1) / threads());
	return name;
}

bool simt_on_stack(const void *p)
{
	uintptr_t at = (uintptr_t)p - (uintptr_t)(s.stacks + (s.now - 1) * (size_t)STACK_BYTES);

	return at < STACK_BYTES;
}

/* A lane does not return from this; the first fault of a run is the one that counts. */
void simt_fault(const char *fmt, ...)
{
	va_list args;

	if (s.fault[0] == '\0') {
		va_start(args, fmt);
		vsnprintf(s.fault, sizeof(s.fault), fmt, args);
		va_end(args);
	}
	if (s.now != SIMT_HOST)
		_longjmp(s.scheduler, 1);
}

static uint32_t draw(uint32_t below)
{
	s.draw ^= s.draw << 13;
	s.draw ^= s.draw >> 7;
	s.draw ^= s.draw << 17;
	return (uint32_t)((s.draw >> 32) % below);
}

/* Back to the scheduler, until it picks this lane again. */
static void yield(void)
{
	if (_setjmp(me()->at) == 0)
		_longjmp(s.scheduler, 1);
}

/* swapcontext would do, but makes two system calls for the signal mask. */
static void resume(struct lane *l)
{
	if (_setjmp(s.scheduler) != 0)
		return;
	if (l->started)
		_longjmp(l->at, 1);
	l->started = true;
	setcontext(&l->begin);
}

/* Lanes that have come to a call while this one has must have come to the same. */
static void check_same(uint32_t other, const struct call *c)
{
	const struct call *o = &s.lane[other].call;
	char a[SIMT_NAME], b[SIMT_NAME];

	if (o->kind == c->kind && o->site == c->site && o->mask == c->mask &&
		(c->kind != SHUFFLE_XOR || o->source == c->source))
		return;
	simt_fault("divergence: %s is at %s with mask %08x, %s at another call or place, %s with "
		   "mask %08x",
		simt_actor_name(s.now, a), kind_name[c->kind], c->mask,
		simt_actor_name(1 + other, b), kind_name[o->kind], o->mask);
}

static uint64_t warp_result(uint32_t first, uint32_t lane, const struct call *c)
{
	uint32_t from = c->kind == SHUFFLE ? c->source % SIMT_WARP : lane ^ c->source;
	uint64_t votes = 0;
	char name[SIMT_NAME];

	if (c->kind == SYNCWARP)
		return 0;
	if (c->kind == BALLOT) {
		for (uint32_t i = 0; i < SIMT_WARP; i++)
			if ((c->mask >> i & 1) && s.lane[first + i].call.value != 0)
				votes |= 1u << i;
		return votes;
	}
	if (from >= SIMT_WARP)
		return c->value;
	if ((c->mask >> from & 1) == 0)
		simt_fault("%s reads lane %u, which is not in the mask %08x",
			simt_actor_name(1 + first + lane, name), from, c->mask);
	return s.lane[first + from].call.value;
}

static uint64_t warp_call(const struct call *c)
{
	uint32_t self = s.now - 1, rank = self % threads() % SIMT_WARP, first = self - rank;
	uint32_t waiting = 0;
	char name[SIMT_NAME];

	me()->call = *c;
	if ((c->mask >> rank & 1) == 0)
		simt_fault("%s calls %s with mask %08x, in which it is not itself",
			simt_actor_name(s.now, name), kind_name[c->kind], c->mask);
	for (uint32_t i = 0; i < SIMT_WARP; i++) {
		uint32_t other = first + i;

		if ((c->mask >> i & 1) == 0)
			continue;
		if (self % threads() - rank + i >= threads() || s.lane[other].state == GONE)
			simt_fault("%s waits in %s for lane %u of its warp, which has left",
				simt_actor_name(s.now, name), kind_name[c->kind], i);
		if (s.lane[other].state == AT_WARP) {
			check_same(other, c);
			waiting |= 1u << i;
		}
	}
	if ((waiting | 1u << rank) != c->mask) {
		me()->state = AT_WARP;
		yield();
		return me()->result;
	}
	for (uint32_t i = 0; i < SIMT_WARP; i++)
		if (c->mask >> i & 1)
			s.lane[first + i].result = warp_result(first, i, &s.lane[first + i].call);
	for (uint32_t i = 0; i < SIMT_WARP; i++)
		if (c->mask >> i & 1)
			s.lane[first + i].state = READY;
	if (c->kind == SYNCWARP)
		simt_memory_meet_warp(1 + first, c->mask);
	yield();
	return me()->result;
}

static uint64_t block_call(const struct call *c)
{
	uint32_t block = (s.now - 1) / threads(), first = block * threads(), waiting = 0;
	uint64_t all = c->value;
	char name[SIMT_NAME];

	me()->call = *c;
	for (uint32_t i = first; i < first + threads(); i++) {
		if (s.lane[i].state == GONE)
			simt_fault("divergence: %s comes to %s, which thread %u has left without",
				simt_actor_name(s.now, name), kind_name[c->kind], i - first);
		if (s.lane[i].state == AT_BLOCK) {
			check_same(i, c);
			waiting++;
			all = all && s.lane[i].call.value;
		}
	}
	if (waiting + 1 != threads()) {
		me()->state = AT_BLOCK;
		yield();
		return me()->result;
	}
	for (uint32_t i = first; i < first + threads(); i++) {
		s.lane[i].result = all;
		s.lane[i].state = READY;
	}
	simt_memory_meet_block(block);
	yield();
	return me()->result;
}

static void run_lane(void)
{
	uint32_t first;

	s.grid->entry(s.grid->argument);
	me()->state = GONE;
	s.gone++;
	first = (s.now - 1) / threads() * threads();
	for (uint32_t i = first; i < first + threads(); i++)
		if (s.lane[i].state == AT_BLOCK)
			simt_fault("divergence: thread %u leaves without %s, where thread %u waits",
				s.now - 1 - first, kind_name[s.lane[i].call.kind], i - first);
	yield();
}

/* The lane that goes on next, by the seed; s.lanes where none can. Blocks take turns. */
static uint32_t pick(uint32_t turn)
{
	uint32_t from = s.grid->seed < 2 ? turn % s.grid->blocks * threads() : draw(s.lanes);

	for (uint32_t i = 0; i < s.lanes; i++) {
		uint32_t l = (from + (s.grid->seed == 1 ? s.lanes - 1 - i : i)) % s.lanes;

		if (s.lane[l].state == READY)
			return l;
	}
	return s.lanes;
}

static void begin(const struct simt_grid *g)
{
	s.grid = g;
	s.lanes = g->blocks * g->threads;
	s.gone = 0;
	s.now = SIMT_HOST;
	s.draw = (g->seed + 1) * 0x9e3779b97f4a7c15u;
	s.clock_ns = 1;
	s.longest_nap_ns = 0;
	s.fault[0] = '\0';
	if (s.lanes > SIMT_LANES_MAX || g->blocks > SIMT_BLOCKS_MAX)
		abort();
	if (s.stacks == NULL) {
		s.stacks = mmap(NULL, (size_t)SIMT_LANES_MAX * STACK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (s.stacks == MAP_FAILED)
			abort();
	}
	for (uint32_t i = 0; i < s.lanes; i++) {
		struct lane *l = &s.lane[i];

		getcontext(&l->begin);
		l->begin.uc_stack.ss_sp = s.stacks + i * (size_t)STACK_BYTES;
		l->begin.uc_stack.ss_size = STACK_BYTES;
		l->begin.uc_link = NULL;
		l->started = false;
		l->state = READY;
		makecontext(&l->begin, run_lane, 0);
	}
	simt_memory_begin(g->blocks, g->threads);
}

static void fault_stuck(void)
{
	char name[SIMT_NAME];

	for (uint32_t i = 0; i < s.lanes; i++)
		if (s.lane[i].state == AT_WARP)
			simt_fault("divergence: %s waits in %s with mask %08x for lanes that do "
				   "not come",
				simt_actor_name(1 + i, name), kind_name[s.lane[i].call.kind],
				s.lane[i].call.mask);
	simt_fault("divergence: threads wait at a barrier for threads that do not come");
}

const char *simt_run(const struct simt_grid *g)
{
	bool host_done = g->host == NULL;
	uint32_t l;

	begin(g);
	for (uint32_t turn = 0; s.fault[0] == '\0'; turn++) {
		if (turn == g->turns_max)
			simt_fault("the kernel does not end");
		if (!host_done && (s.gone == s.lanes || draw(4) == 0)) {
			host_done = g->host(g->host_argument);
			continue;
		}
		if (s.gone == s.lanes)
			break;
		l = pick(turn);
		if (l == s.lanes) {
			fault_stuck();
			break;
		}
		s.now = 1 + l;
		simt_memory_block(l / g->threads);
		resume(&s.lane[l]);
		s.now = SIMT_HOST;
	}
	simt_memory_end();
	return s.fault[0] != '\0' ? s.fault : NULL;
}

/* What simt_cuda.h declares. */

struct simt_index simt_thread_idx(void)
{
	return (struct simt_index){(s.now - 1) % threads()};
}

struct simt_index simt_block_idx(void)
{
	return (struct simt_index){(s.now - 1) / threads()};
}

struct simt_index simt_block_dim(void)
{
	return (struct simt_index){threads()};
}

#define SITE __builtin_return_address(0)

void simt_syncthreads(void)
{
	(void)block_call(&(struct call){.kind = BARRIER, .site = SITE});
}

int simt_syncthreads_and(int v)
{
	return block_call(&(struct call){.kind = BARRIER_AND, .site = SITE, .value = v != 0}) != 0;
}

void simt_syncwarp(uint32_t mask)
{
	(void)warp_call(&(struct call){.kind = SYNCWARP, .site = SITE, .mask = mask});
}

uint64_t simt_shuffle(uint32_t mask, uint64_t v, uint32_t source)
{
	return warp_call(&(struct call){SHUFFLE, SITE, mask, source, v});
}

uint64_t simt_shuffle_xor(uint32_t mask, uint64_t v, uint32_t bits)
{
	return warp_call(&(struct call){SHUFFLE_XOR, SITE, mask, bits, v});
}

uint32_t simt_ballot(uint32_t mask, int v)
{
	return (uint32_t)warp_call(
		&(struct call){.kind = BALLOT, .site = SITE, .mask = mask, .value = v != 0});
}

unsigned long long simt_atomic_add(unsigned long long *p, unsigned long long v)
{
	unsigned long long before;

	yield();
	simt_memory_atomic(p, sizeof(*p), true);
	before = *p;
	*p += v;
	return before;
}

unsigned long long simt_atomic_cas(
	unsigned long long *p, unsigned long long now, unsigned long long then)
{
	unsigned long long before;

	yield();
	simt_memory_atomic(p, sizeof(*p), true);
	before = *p;
	if (before == now)
		*p = then;
	return before;
}

void simt_threadfence_system(void)
{
	simt_memory_fence_system();
}

/* It sleeps for anything between nothing and twice what it is given (PTX ISA, nanosleep). */
void simt_nanosleep(uint32_t ns)
{
	const uint32_t nap = draw(2 * ns + 1);

	s.clock_ns += nap;
	s.longest_nap_ns = nap > s.longest_nap_ns ? nap : s.longest_nap_ns;
	yield();
}

uint32_t simt_longest_nap_ns(void)
{
	return s.longest_nap_ns;
}

uint64_t mr_device_clock_ns(void)
{
	s.clock_ns += 50 + draw(100);
	yield();
	return s.clock_ns;
}

uint32_t mr_device_load_acquire(const uint32_t *p)
{
	yield();
	simt_memory_atomic(p, sizeof(*p), false);
	simt_memory_acquire(p);
	return *p;
}

uint32_t mr_device_load_relaxed(const uint32_t *p)
{
	yield();
	simt_memory_atomic(p, sizeof(*p), false);
	return *p;
}

uint64_t mr_device_load_relaxed_u64(const uint64_t *p)
{
	simt_memory_atomic(p, sizeof(*p), false);
	return *p;
}

void mr_device_store_release(uint32_t *p, uint32_t v)
{
	yield();
	simt_memory_atomic(p, sizeof(*p), true);
	simt_memory_release(p);
	*p = v;
}

void mr_device_store_relaxed(uint32_t *p, uint32_t v)
{
	yield();
	simt_memory_atomic(p, sizeof(*p), true);
	simt_memory_relaxed(p);
	*p = v;
}

void mr_device_store_relaxed_u64(uint64_t *p, uint64_t v)
{
	simt_memory_atomic(p, sizeof(*p), true);
	*p = v;
}

/* The frame's bytes are ordered like any other plain data. */
uint32_t mr_device_load_1(const uint8_t *p)
{
	simt_memory_plain(p, 1, false);
	return *p;
}

void mr_device_load_16(const uint8_t *p, uint32_t ret_words[4])
{
	if ((uintptr_t)p % 16 != 0)
		simt_fault("a 16-byte load from an address that is not a multiple of 16");
	simt_memory_plain(p, 16, false);
	memcpy(ret_words, p, 16);
}

void mr_device_store_16(uint8_t *p, const uint32_t words[4])
{
	if ((uintptr_t)p % 16 != 0)
		simt_fault("a 16-byte store to an address that is not a multiple of 16");
	simt_memory_plain(p, 16, true);
	memcpy(p, words, 16);
}
