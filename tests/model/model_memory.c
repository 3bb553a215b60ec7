/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of the model: what ThreadSanitizer's instrumentation calls.
 *
 * Threads carry vector clocks. A word that is handed over keeps all its values,
 * each with its writer's time and, if released, its writer's clock. Every other
 * byte keeps the time of its last write and of each thread's last read.
 */
#include "model.h"

#include <string.h>

#define BYTES_MAX 16384u
#define VALUES_MAX 16u
#define NOWHERE UINT32_MAX

struct clock {
	uint32_t at[MODEL_THREADS];
};

/* A value of a word; `released` is all zero for a relaxed store. */
struct value {
	uint32_t value;
	uint32_t thread, time;
	struct clock released;
};

struct word {
	uint32_t *place;
	uint32_t values;
	struct value value[VALUES_MAX];
	uint32_t read[MODEL_THREADS]; /* newest value that a thread has read or stored */
};

struct byte {
	uint32_t write_time;
	uint32_t write_thread;
	uint32_t read[MODEL_THREADS];
};

static struct {
	const uint8_t *base;
	uint32_t bytes;
	bool recording;
	const struct model_area *areas;
	uint32_t areas_count;
	uint8_t area[BYTES_MAX]; /* of a byte, areas_count where there is none */
	uint8_t word_of[BYTES_MAX];
	struct byte byte[BYTES_MAX];
	struct word word[MODEL_WORDS];
	struct clock clock[MODEL_THREADS];
	bool polled[MODEL_ACTORS][MODEL_WORDS]; /* read since the actor's last progress */
	uint64_t progress[MODEL_ACTORS];        /* hash of all that has changed the actor */
} mem;

uint32_t model_thread(enum model_actor a)
{
	return a == MODEL_RX || a == MODEL_TX ? MODEL_LANE
		: a == MODEL_STOP             ? MODEL_CONTROL
					      : MODEL_WORKER + (a - MODEL_GPU);
}

void model_memory_reset(const void *base, uint32_t bytes, const struct model_area *areas,
	uint32_t areas_count, uint32_t *const words[MODEL_WORDS])
{
	if (bytes > BYTES_MAX)
		__builtin_trap();
	mem.base = base;
	mem.bytes = bytes;
	mem.areas = areas;
	mem.areas_count = areas_count;
	memset(mem.area, (int)areas_count, bytes);
	memset(mem.word_of, MODEL_WORDS, bytes);
	memset(mem.byte, 0, bytes * sizeof(mem.byte[0]));
	memset(mem.polled, 0, sizeof(mem.polled));
	memset(mem.progress, 0, sizeof(mem.progress));
	for (uint32_t i = 0; i < areas_count; i++)
		memset(&mem.area[(const uint8_t *)areas[i].start - mem.base], (int)i,
			areas[i].bytes);
	for (uint32_t t = 0; t < MODEL_THREADS; t++)
		for (uint32_t i = 0; i < MODEL_THREADS; i++)
			mem.clock[t].at[i] = t == i;
	for (uint32_t i = 0; i < MODEL_WORDS; i++) {
		struct word *w = &mem.word[i];

		w->place = words[i];
		w->values = 1;
		w->value[0] = (struct value){.value = *words[i]};
		memset(w->read, 0, sizeof(w->read));
		memset(&mem.word_of[(const uint8_t *)words[i] - mem.base], (int)i,
			sizeof(uint32_t));
	}
}

void model_memory_record(bool on)
{
	mem.recording = on;
}

/* The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014) over a running value. */
uint64_t model_mix(uint64_t hash, uint64_t v)
{
	hash = (hash ^ v) + 0x9e3779b97f4a7c15u;
	hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
	hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
	return hash ^ hash >> 31;
}

void model_memory_progress(void)
{
	enum model_actor a = model_current();

	memset(mem.polled[a], 0, sizeof(mem.polled[a]));
	mem.progress[a] = model_mix(mem.progress[a], 1);
}

uint64_t model_memory_state(uint64_t hash)
{
	for (uint32_t i = 0; i < MODEL_WORDS; i++) {
		const struct word *w = &mem.word[i];

		for (uint32_t k = 0; k < w->values; k++) {
			const struct value *v = &w->value[k];

			hash = model_mix(
				hash, (uint64_t)v->value << 32 | v->thread << 16 | v->time);
			for (uint32_t t = 0; t < MODEL_THREADS; t++)
				hash = model_mix(hash, v->released.at[t]);
		}
		for (uint32_t t = 0; t < MODEL_THREADS; t++)
			hash = model_mix(hash, w->read[t]);
		for (uint32_t a = 0; a < MODEL_ACTORS; a++)
			hash = model_mix(hash, mem.polled[a][i]);
	}
	for (uint32_t t = 0; t < MODEL_THREADS; t++)
		for (uint32_t i = 0; i < MODEL_THREADS; i++)
			hash = model_mix(hash, mem.clock[t].at[i]);
	for (uint32_t a = 0; a < MODEL_ACTORS; a++)
		hash = model_mix(hash, mem.progress[a]);
	return hash;
}

static bool happened_before(uint32_t thread, uint32_t time, uint32_t observer)
{
	return mem.clock[observer].at[thread] >= time;
}

/* The oldest value that coherence and happens-before leave to a thread. */
static uint32_t oldest(const struct word *w, uint32_t thread)
{
	uint32_t i = w->values - 1;

	while (i > w->read[thread] &&
		!happened_before(w->value[i].thread, w->value[i].time, thread))
		i--;
	return i;
}

static bool other_news(enum model_actor a, uint32_t than)
{
	uint32_t thread = model_thread(a);

	for (uint32_t i = 0; i < MODEL_WORDS; i++)
		if (i != than && mem.polled[a][i] &&
			mem.word[i].read[thread] + 1 < mem.word[i].values)
			return true;
	return false;
}

uint32_t model_memory_choices(enum model_actor a, const struct model_op *op)
{
	const struct word *w = &mem.word[op->word];
	uint32_t thread = model_thread(a), from;

	if (op->kind == MODEL_OP_NONE)
		return op->condition();
	if (op->kind == MODEL_OP_STORE)
		return 1;
	from = oldest(w, thread);
	if (mem.polled[a][op->word]) {
		if (w->read[thread] + 1 == w->values)
			return other_news(a, op->word);
		if (from == w->read[thread])
			from++;
	}
	return w->values - from;
}

/* Offset of an access of an actor; NOWHERE if it is to the actor's own stack or constants. */
static uint32_t offset_of(const void *p, uint32_t bytes)
{
	uintptr_t at = (uintptr_t)p - (uintptr_t)mem.base;

	if (!mem.recording || at >= mem.bytes)
		return NOWHERE;
	for (uint32_t i = 0; i < bytes; i++)
		if (at + i >= mem.bytes || mem.area[at + i] == mem.areas_count ||
			mem.area[at + i] != mem.area[at])
			model_fail(MODEL_BOUNDS, "%s reaches byte %u of %u behind or before %s",
				model_actor_name(model_current()), i, bytes,
				mem.area[at] == mem.areas_count ? "any memory"
								: mem.areas[mem.area[at]].name);
	return (uint32_t)at;
}

static void race(uint32_t at, const char *what, const char *unordered)
{
	const struct model_area *a = &mem.areas[mem.area[at]];

	model_fail(MODEL_OWNER, "%s %s byte %u of %s, not ordered after %s of it",
		model_actor_name(model_current()), what,
		(uint32_t)(mem.base + at - (const uint8_t *)a->start), a->name, unordered);
}

static void plain(const void *p, uint32_t bytes, bool write)
{
	uint32_t at = offset_of(p, bytes), thread = model_thread(model_current());
	const char *what = write ? "writes" : "reads";

	if (at == NOWHERE)
		return;
	for (uint32_t i = at; i < at + bytes; i++) {
		struct byte *b = &mem.byte[i];

		if (mem.word_of[i] != MODEL_WORDS)
			race(i, what, "the atomic accesses");
		if (!happened_before(b->write_thread, b->write_time, thread))
			race(i, what, "a write");
		for (uint32_t t = 0; write && t < MODEL_THREADS; t++)
			if (!happened_before(t, b->read[t], thread))
				race(i, what, "a read");
		if (write) {
			b->write_thread = thread;
			b->write_time = mem.clock[thread].at[thread];
		} else {
			b->read[thread] = mem.clock[thread].at[thread];
		}
	}
}

/* The word at p, or NULL where nothing is handed over: that has one owner, like plain data. */
static struct word *word_at(const void *p, uint32_t bytes, bool write, struct model_op *ret_op)
{
	uint32_t at = offset_of(p, bytes);

	if (at == NOWHERE)
		return NULL;
	if (mem.word_of[at] == MODEL_WORDS) {
		plain(p, bytes, write);
		return NULL;
	}
	*ret_op = (struct model_op){write ? MODEL_OP_STORE : MODEL_OP_LOAD, mem.word_of[at], NULL};
	return &mem.word[mem.word_of[at]];
}

static uint32_t load(const uint32_t *p, int order)
{
	struct model_op op;
	struct word *w = word_at(p, sizeof(*p), false, &op);
	uint32_t thread = model_thread(model_current()), older, index;
	enum model_actor a = model_current();
	const struct value *v;

	if (w == NULL)
		return *p;
	older = model_yield(&op);
	index = w->values - 1 - older; /* others have stored since the call */
	v = &w->value[index];
	if (index != w->read[thread])
		mem.progress[a] = model_mix(mem.progress[a], (uint64_t)op.word << 32 | index);
	w->read[thread] = index;
	mem.polled[a][op.word] = true;
	if (order != __ATOMIC_RELAXED)
		for (uint32_t t = 0; t < MODEL_THREADS; t++)
			if (mem.clock[thread].at[t] < v->released.at[t])
				mem.clock[thread].at[t] = v->released.at[t];
	model_trace("%s loads %s: %u%s%s", model_actor_name(a), model_word_name(op.word), v->value,
		order == __ATOMIC_RELAXED ? "" : ", acquires",
		index + 1 == w->values ? "" : ", not the newest");
	model_saw_load(a, op.word, v->value);
	return v->value;
}

static void store(uint32_t *p, uint32_t value, int order)
{
	struct model_op op;
	struct word *w = word_at(p, sizeof(*p), true, &op);
	uint32_t thread = model_thread(model_current());
	enum model_actor a = model_current();
	struct value *v;

	if (w == NULL) {
		*p = value;
		return;
	}
	(void)model_yield(&op);
	v = &w->value[w->values - 1];
	if (!happened_before(v->thread, v->time, thread))
		model_fail(MODEL_OWNER, "%s stores %s, not ordered after another's store",
			model_actor_name(a), model_word_name(op.word));
	if (w->values == VALUES_MAX)
		model_fail(MODEL_ONCE, "%s is stored without end", model_word_name(op.word));
	v = &w->value[w->values++];
	*v = (struct value){.value = value, .thread = thread, .time = mem.clock[thread].at[thread]};
	if (order != __ATOMIC_RELAXED)
		v->released = mem.clock[thread];
	w->read[thread] = w->values - 1;
	mem.clock[thread].at[thread]++;
	*p = value;
	model_memory_progress();
	model_trace("%s stores %s = %u%s", model_actor_name(a), model_word_name(op.word), value,
		order == __ATOMIC_RELAXED ? "" : ", releases");
	model_saw_store(a, op.word, value);
}

/*
 * What gcc and clang call in instrumented code; the names are theirs and so are
 * reserved, which is why they are given as assembler names.
 */
#define CALLED_BY_COMPILER(name) __asm__("__tsan_" #name)

#define PLAIN(bytes)                                                                               \
	void model_read##bytes(const void *p) CALLED_BY_COMPILER(read##bytes);                     \
	void model_write##bytes(const void *p) CALLED_BY_COMPILER(write##bytes);                   \
	void model_unaligned_read##bytes(const void *p) CALLED_BY_COMPILER(unaligned_read##bytes); \
	void model_unaligned_write##bytes(const void *p)                                           \
		CALLED_BY_COMPILER(unaligned_write##bytes);                                        \
	void model_read##bytes(const void *p)                                                      \
	{                                                                                          \
		plain(p, bytes, false);                                                            \
	}                                                                                          \
	void model_write##bytes(const void *p)                                                     \
	{                                                                                          \
		plain(p, bytes, true);                                                             \
	}                                                                                          \
	void model_unaligned_read##bytes(const void *p)                                            \
	{                                                                                          \
		plain(p, bytes, false);                                                            \
	}                                                                                          \
	void model_unaligned_write##bytes(const void *p)                                           \
	{                                                                                          \
		plain(p, bytes, true);                                                             \
	}
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void model_read_range(const void *p, unsigned long bytes) CALLED_BY_COMPILER(read_range);
void model_write_range(const void *p, unsigned long bytes) CALLED_BY_COMPILER(write_range);
uint32_t model_load32(const uint32_t *p, int order) CALLED_BY_COMPILER(atomic32_load);
uint64_t model_load64(const uint64_t *p, int order) CALLED_BY_COMPILER(atomic64_load);
void model_store32(uint32_t *p, uint32_t v, int order) CALLED_BY_COMPILER(atomic32_store);
void model_store64(uint64_t *p, uint64_t v, int order) CALLED_BY_COMPILER(atomic64_store);
int model_swap64(uint64_t *p, uint64_t *now, uint64_t then, int order, int failed)
	CALLED_BY_COMPILER(atomic64_compare_exchange_strong);
void model_init(void) CALLED_BY_COMPILER(init);
void model_func_entry(const void *p) CALLED_BY_COMPILER(func_entry);
void model_func_exit(void) CALLED_BY_COMPILER(func_exit);
void *model_memcpy(void *to, const void *from, unsigned long bytes);
void *model_called_memcpy(void *to, const void *from, unsigned long bytes)
	CALLED_BY_COMPILER(memcpy);

void model_read_range(const void *p, unsigned long bytes)
{
	plain(p, (uint32_t)bytes, false);
}

void model_write_range(const void *p, unsigned long bytes)
{
	plain(p, (uint32_t)bytes, true);
}

uint32_t model_load32(const uint32_t *p, int order)
{
	return load(p, order);
}

void model_store32(uint32_t *p, uint32_t v, int order)
{
	store(p, v, order);
}

/* The counters: nothing is handed over by a word of 64 bits. */
uint64_t model_load64(const uint64_t *p, int order)
{
	(void)order;
	plain(p, sizeof(*p), false);
	return *p;
}

void model_store64(uint64_t *p, uint64_t v, int order)
{
	(void)order;
	plain(p, sizeof(*p), true);
	*p = v;
}

/* Threads that share such a word are those of one block, which tests/simt tries: here a race. */
int model_swap64(uint64_t *p, uint64_t *now, uint64_t then, int order, int failed)
{
	(void)order;
	(void)failed;
	plain(p, sizeof(*p), true);
	if (*p != *now) {
		*now = *p;
		return 0;
	}
	*p = then;
	return 1;
}

void model_init(void)
{
}

void model_func_entry(const void *p)
{
	(void)p;
}

void model_func_exit(void)
{
}

/* The C library is not instrumented; the sources under test are compiled to call this. */
void *model_memcpy(void *to, const void *from, unsigned long bytes)
{
	plain(from, (uint32_t)bytes, false);
	plain(to, (uint32_t)bytes, true);
	return memcpy(to, from, bytes);
}

void *model_called_memcpy(void *to, const void *from, unsigned long bytes)
{
	return model_memcpy(to, from, bytes);
}
