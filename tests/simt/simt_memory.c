/* SPDX-License-Identifier: BSD-3-Clause */
#include "simt.h"

#include <stdlib.h>
#include <string.h>

#define SHARED_MAX 4096u /* bytes a block */
#define NOWHERE UINT32_MAX
#define MANY 0x80000000u /* a byte's `read` is an index into mem.readers */

/* An actor's time: which of its accesses come before what others have seen. */
#define EPOCH(actor, time) ((time) << 10 | (actor))
#define EPOCH_ACTOR(e) ((e)&1023u)
#define EPOCH_TIME(e) ((e) >> 10)
#define TIME_MAX ((1u << 21) - 1)

struct clock {
	uint32_t at[SIMT_ACTORS_MAX];
};

struct byte {
	uint32_t write; /* epoch of the last write, 0: none since the launch */
	uint32_t read;  /* epoch of the last plain read, or MANY and an index */
	bool atomic;    /* the last write */
	bool refused;   /* to lanes */
	bool written;   /* shared memory: holds a value */
};

static struct {
	uint8_t *base;
	uint32_t bytes; /* of the arena; the blocks' shared memory follows in `byte` */
	struct byte *byte;
	struct clock **released; /* of each word of the arena: what its value carries */
	uint32_t (*readers)[SIMT_ACTORS_MAX];
	uint32_t readers_count, readers_max;
	uint32_t actors, blocks, threads, block;
	struct clock seen[SIMT_ACTORS_MAX];   /* what happened before the actor's present */
	struct clock fenced[SIMT_ACTORS_MAX]; /* of that, what the host would see after a release */
	uint8_t shared[SIMT_BLOCKS_MAX][SHARED_MAX];
} mem;

/* The linker's: where the shared memory of the compiled sources is. */
extern uint8_t simt_shared_start[] __asm__("__start_simt_shared");
extern uint8_t simt_shared_end[] __asm__("__stop_simt_shared");

static uint32_t shared_bytes(void)
{
	return (uint32_t)(simt_shared_end - simt_shared_start);
}

static uint32_t bytes_all(void)
{
	return mem.bytes + SIMT_BLOCKS_MAX * SHARED_MAX;
}

void simt_memory_init(void *base, uint32_t bytes)
{
	for (uint32_t i = 0; mem.released != NULL && i < mem.bytes / 4; i++)
		free(mem.released[i]);
	free(mem.released);
	free(mem.byte);
	mem.base = base;
	mem.bytes = bytes;
	mem.released = calloc(bytes / 4, sizeof(mem.released[0]));
	mem.byte = calloc(bytes_all(), sizeof(mem.byte[0]));
	if (mem.released == NULL || mem.byte == NULL || shared_bytes() > SHARED_MAX)
		abort();
	mem.actors = 0;
}

void simt_memory_allow(const void *p, uint32_t bytes, bool allowed)
{
	uint32_t at = (uint32_t)((const uint8_t *)p - mem.base);

	for (uint32_t i = at; i < at + bytes; i++)
		mem.byte[i].refused = !allowed;
}

void simt_memory_begin(uint32_t blocks, uint32_t threads)
{
	mem.blocks = blocks;
	mem.threads = threads;
	mem.actors = 1 + blocks * threads;
	mem.readers_count = 0;
	for (uint32_t i = 0; i < bytes_all(); i++) {
		mem.byte[i].write = 0;
		mem.byte[i].read = 0;
		mem.byte[i].written = false;
	}
	for (uint32_t i = 0; i < mem.bytes / 4; i++) {
		free(mem.released[i]);
		mem.released[i] = NULL;
	}
	memset(mem.seen, 0, sizeof(mem.seen));
	memset(mem.fenced, 0, sizeof(mem.fenced));
	for (uint32_t a = 0; a < mem.actors; a++)
		mem.seen[a].at[a] = 1;
	memset(mem.shared, 0xa5, sizeof(mem.shared));
	mem.block = 0;
	memcpy(simt_shared_start, mem.shared[0], shared_bytes());
}

void simt_memory_end(void)
{
	mem.actors = 0;
}

void simt_memory_block(uint32_t block)
{
	if (block == mem.block)
		return;
	memcpy(mem.shared[mem.block], simt_shared_start, shared_bytes());
	memcpy(simt_shared_start, mem.shared[block], shared_bytes());
	mem.block = block;
}

static void join(struct clock *to, const struct clock *from)
{
	for (uint32_t i = 0; i < mem.actors; i++)
		if (to->at[i] < from->at[i])
			to->at[i] = from->at[i];
}

/* What the actor does from here on is later than what others have seen of it. */
static void advance(uint32_t actor)
{
	if (++mem.seen[actor].at[actor] > TIME_MAX)
		simt_fault("the run is too long for the clocks");
}

static bool happened_before(uint32_t epoch, uint32_t actor)
{
	return mem.seen[actor].at[EPOCH_ACTOR(epoch)] >= EPOCH_TIME(epoch);
}

/* Index into mem.byte; NOWHERE where nobody else can see it. */
static uint32_t find(const void *p, uint32_t bytes, bool write)
{
	uintptr_t at = (uintptr_t)p - (uintptr_t)mem.base;
	uintptr_t at_shared = (uintptr_t)p - (uintptr_t)simt_shared_start;
	char name[SIMT_NAME];

	if (mem.actors == 0)
		return NOWHERE;
	if (at < mem.bytes && at + bytes <= mem.bytes)
		return (uint32_t)at;
	if (simt_actor() == SIMT_HOST)
		return NOWHERE;
	if (at_shared < shared_bytes() && at_shared + bytes <= shared_bytes())
		return mem.bytes + mem.block * SHARED_MAX + (uint32_t)at_shared;
	if (!simt_on_stack(p))
		simt_fault("%s %s outside of all memory that it was given",
			simt_actor_name(simt_actor(), name), write ? "writes" : "reads");
	return NOWHERE;
}

static void race(uint32_t at, bool write, uint32_t epoch, const char *what)
{
	char me[SIMT_NAME], other[SIMT_NAME];

	simt_fault("race: %s %s byte %u of %s, not ordered after %s by %s",
		simt_actor_name(simt_actor(), me), write ? "writes" : "reads",
		at < mem.bytes ? at : (at - mem.bytes) % SHARED_MAX,
		at < mem.bytes ? "the arena" : "shared memory", what,
		simt_actor_name(EPOCH_ACTOR(epoch), other));
}

static void check_place(uint32_t at, bool write)
{
	struct byte *b = &mem.byte[at];
	char name[SIMT_NAME];

	if (simt_actor() != SIMT_HOST && b->refused)
		simt_fault("%s %s byte %u of the arena, which it was not given",
			simt_actor_name(simt_actor(), name), write ? "writes" : "reads", at);
	if (at < mem.bytes)
		return;
	if (!write && !b->written)
		simt_fault("%s reads byte %u of shared memory, which nobody has written",
			simt_actor_name(simt_actor(), name), (at - mem.bytes) % SHARED_MAX);
	b->written = true;
}

/* A write must come after every plain read. */
static void check_readers(uint32_t at, uint32_t actor)
{
	const struct byte *b = &mem.byte[at];
	const uint32_t *time;

	if ((b->read & MANY) == 0) {
		if (!happened_before(b->read, actor))
			race(at, true, b->read, "a read");
		return;
	}
	time = mem.readers[b->read & ~MANY];
	for (uint32_t a = 0; a < mem.actors; a++)
		if (!happened_before(EPOCH(a, time[a]), actor))
			race(at, true, EPOCH(a, time[a]), "a read");
}

static void note_read(struct byte *b, uint32_t actor)
{
	uint32_t now = mem.seen[actor].at[actor], *time;

	if ((b->read & MANY) == 0 && happened_before(b->read, actor)) {
		b->read = EPOCH(actor, now);
		return;
	}
	if ((b->read & MANY) == 0) {
		if (mem.readers_count == mem.readers_max) {
			mem.readers_max = mem.readers_max * 2 + 1024;
			mem.readers =
				realloc(mem.readers, mem.readers_max * sizeof(mem.readers[0]));
			if (mem.readers == NULL)
				abort();
		}
		time = mem.readers[mem.readers_count];
		memset(time, 0, sizeof(mem.readers[0]));
		time[EPOCH_ACTOR(b->read)] = EPOCH_TIME(b->read);
		b->read = MANY | mem.readers_count++;
	}
	mem.readers[b->read & ~MANY][actor] = now;
}

static void access_bytes(const void *p, uint32_t bytes, bool write, bool atomic)
{
	uint32_t at = find(p, bytes, write), actor = simt_actor();

	if (at == NOWHERE)
		return;
	for (uint32_t i = at; i < at + bytes; i++) {
		struct byte *b = &mem.byte[i];

		check_place(i, write);
		if (!(atomic && b->atomic) && !happened_before(b->write, actor))
			race(i, write, b->write, "a write");
		if (write) {
			check_readers(i, actor);
			b->write = EPOCH(actor, mem.seen[actor].at[actor]);
			b->atomic = atomic;
			b->read = 0;
		} else if (!atomic) {
			note_read(b, actor);
		}
	}
}

void simt_memory_plain(const void *p, uint32_t bytes, bool write)
{
	access_bytes(p, bytes, write, false);
}

void simt_memory_atomic(const void *p, uint32_t bytes, bool write)
{
	access_bytes(p, bytes, write, true);
}

/* What the word at p carries, or NULL where it is not in the arena. */
static struct clock **released_at(const void *p)
{
	uintptr_t at = (uintptr_t)p - (uintptr_t)mem.base;

	return mem.actors != 0 && at < mem.bytes ? &mem.released[at / 4] : NULL;
}

void simt_memory_acquire(const void *p)
{
	struct clock **r = released_at(p);

	if (r == NULL || *r == NULL)
		return;
	join(&mem.seen[simt_actor()], *r);
	join(&mem.fenced[simt_actor()], *r);
}

void simt_memory_release(const void *p)
{
	struct clock **r = released_at(p);
	uint32_t actor = simt_actor();

	if (r == NULL)
		return;
	if (*r == NULL && (*r = malloc(sizeof(**r))) == NULL)
		abort();
	**r = actor == SIMT_HOST ? mem.seen[actor] : mem.fenced[actor];
	(*r)->at[actor] = mem.seen[actor].at[actor];
	advance(actor);
}

void simt_memory_relaxed(const void *p)
{
	struct clock **r = released_at(p);

	if (r != NULL) {
		free(*r);
		*r = NULL;
	}
}

void simt_memory_fence_system(void)
{
	mem.fenced[simt_actor()] = mem.seen[simt_actor()];
	advance(simt_actor());
}

static void meet(const uint32_t *actors, uint32_t count)
{
	struct clock seen = {0}, fenced = {0};

	for (uint32_t i = 0; i < count; i++) {
		join(&seen, &mem.seen[actors[i]]);
		join(&fenced, &mem.fenced[actors[i]]);
	}
	for (uint32_t i = 0; i < count; i++) {
		mem.seen[actors[i]] = seen;
		mem.fenced[actors[i]] = fenced;
		advance(actors[i]);
	}
}

void simt_memory_meet_warp(uint32_t first_actor, uint32_t mask)
{
	uint32_t actors[SIMT_WARP], count = 0;

	for (uint32_t i = 0; i < SIMT_WARP; i++)
		if (mask >> i & 1)
			actors[count++] = first_actor + i;
	meet(actors, count);
}

void simt_memory_meet_block(uint32_t block)
{
	uint32_t actors[SIMT_LANES_MAX];

	for (uint32_t i = 0; i < mem.threads; i++)
		actors[i] = 1 + block * mem.threads + i;
	meet(actors, mem.threads);
}

/*
 * What gcc and clang call in instrumented code; the names are theirs and so are
 * reserved, which is why they are given as assembler names.
 */
#define CALLED_BY_COMPILER(name) __asm__("__tsan_" #name)

#define PLAIN(name, bytes, write)                                                                  \
	void simt_##name(const void *p) CALLED_BY_COMPILER(name);                                  \
	void simt_##name(const void *p)                                                            \
	{                                                                                          \
		access_bytes(p, bytes, write, false);                                              \
	}
#define PLAIN_BYTES(bytes)                                                                         \
	PLAIN(read##bytes, bytes, false)                                                           \
	PLAIN(write##bytes, bytes, true)                                                           \
	PLAIN(unaligned_read##bytes, bytes, false)                                                 \
	PLAIN(unaligned_write##bytes, bytes, true)
PLAIN_BYTES(1)
PLAIN_BYTES(2)
PLAIN_BYTES(4)
PLAIN_BYTES(8)
PLAIN_BYTES(16)

void simt_read_range(const void *p, unsigned long bytes) CALLED_BY_COMPILER(read_range);
void simt_write_range(const void *p, unsigned long bytes) CALLED_BY_COMPILER(write_range);
uint32_t simt_load32(const uint32_t *p, int order) CALLED_BY_COMPILER(atomic32_load);
uint64_t simt_load64(const uint64_t *p, int order) CALLED_BY_COMPILER(atomic64_load);
void simt_store32(uint32_t *p, uint32_t v, int order) CALLED_BY_COMPILER(atomic32_store);
void simt_store64(uint64_t *p, uint64_t v, int order) CALLED_BY_COMPILER(atomic64_store);
void simt_init(void) CALLED_BY_COMPILER(init);
void simt_func_entry(const void *p) CALLED_BY_COMPILER(func_entry);
void simt_func_exit(void) CALLED_BY_COMPILER(func_exit);

void simt_read_range(const void *p, unsigned long bytes)
{
	access_bytes(p, (uint32_t)bytes, false, false);
}

void simt_write_range(const void *p, unsigned long bytes)
{
	access_bytes(p, (uint32_t)bytes, true, false);
}

uint32_t simt_load32(const uint32_t *p, int order)
{
	access_bytes(p, sizeof(*p), false, true);
	if (order != __ATOMIC_RELAXED)
		simt_memory_acquire(p);
	return *p;
}

void simt_store32(uint32_t *p, uint32_t v, int order)
{
	access_bytes(p, sizeof(*p), true, true);
	if (order == __ATOMIC_RELAXED)
		simt_memory_relaxed(p);
	else
		simt_memory_release(p);
	*p = v;
}

/* The counters: nothing is handed over by a word of 64 bits. */
uint64_t simt_load64(const uint64_t *p, int order)
{
	(void)order;
	access_bytes(p, sizeof(*p), false, true);
	return *p;
}

void simt_store64(uint64_t *p, uint64_t v, int order)
{
	(void)order;
	access_bytes(p, sizeof(*p), true, true);
	*p = v;
}

void simt_init(void)
{
}

void simt_func_entry(const void *p)
{
	(void)p;
}

void simt_func_exit(void)
{
}
