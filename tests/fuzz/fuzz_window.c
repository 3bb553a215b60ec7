/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any packets of one stream through its windows: whatever a sender says, each window of the pool
 * is open, waits, or is free, and none takes more than it should bear.
 *
 * Input: fuzz_seen.h; before the packets the length of windows and who is told, a byte each.
 *
 * MR_FUZZ_PLANTED says that the pool is twice as large as it is.
 */
#include "fuzz_seen.h"
#include "mr_window.h"

#include <stdlib.h>
#include <string.h>

#define WINDOWS 5u
#if defined(MR_FUZZ_PLANTED)
#define CAPACITY (2 * WINDOWS)
#else
#define CAPACITY WINDOWS
#endif

struct place {
	struct mr_window w;
	struct mr_window_channel channel;
};

/* Marks the window, which is in one place alone. */
static struct mr_window *mark(const struct mr_window_books *b, uint32_t i, uint32_t *seen)
{
	if (i == 0 || i > b->pool->used || (*seen >> i & 1) != 0)
		abort();
	*seen |= 1u << i;
	return mr_window_at(b->pool, b->memory, i);
}

static void check(const struct mr_window_books *b, const struct mr_window_stream *s)
{
	const struct mr_windows *p = b->pool;
	uint32_t seen = 0, last = 0, waiting = 0;

	if (p->used > p->capacity)
		abort();
	for (uint32_t i = p->free; i != 0; i = mr_window_at(p, b->memory, i)->next)
		(void)mark(b, i, &seen);
	for (uint32_t i = p->oldest; i != 0; i = mr_window_at(p, b->memory, i)->next) {
		const struct mr_window *w = mark(b, i, &seen);

		last = i;
		waiting++;
		if (w->packets == 0 ||
			((w->flags & MR_WINDOW_INCOMPLETE) != 0) != (w->units < w->expected))
			abort();
		if (w->kind == MR_WINDOW_NUMBER && w->units > w->expected)
			abort();
	}
	if (last != p->last || waiting != p->waiting)
		abort();
	for (uint32_t i = 0; i < 2; i++) {
		const struct mr_window *w;

		if (s->open[i] == 0)
			continue;
		w = mark(b, s->open[i], &seen);
		if (w->kind != s->kind || (s->kind != MR_WINDOW_HEAP && s->newest - w->number > 1))
			abort();
	}
	if ((s->track.head.dirty != 0) != ((s->open[0] | s->open[1]) != 0) ||
		seen != (2u << p->used) - 2)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_track_event event;
	struct mr_track_queue queue = {0};
	struct mr_window_stream st = {0};
	struct place *memory = calloc(WINDOWS, sizeof(*memory));
	struct mr_windows pool = {.capacity = CAPACITY, .stride = sizeof(*memory)};
	struct mr_window_books b = {.pool = &pool,
		.memory = (uint8_t *)memory,
		.track = {.queue = &queue, .events = &event, .leap = 1u << 24},
		.setting_number = 1};
	struct input in = {data, size};
	struct mr_seen s;

	input_begin(&in, &s);
	b.setting.us = b.setting.units = 1 + input_take(&in, 1);
	b.setting.format.bits = 8;
	b.waits = (uint32_t)input_take(&in, 1) & 1;
	while (in.left != 0) {
		const uint32_t what = input_change(&in, &s, 1000, 4, 2);
		enum mr_window_class c;
		struct mr_window *w;
		uint64_t at = 0;
		uint32_t is_new;

		b.track.now_ns += what;
		b.setting_number += (what & 0xc0) == 0xc0;
		b.track.restarts = 0;
		queue.tail = queue.head;
		w = mr_window_find(&b, &st, &s, &c, &at, &is_new);
		if ((w != NULL) != (c == MR_WINDOW_PLACED))
			abort();
		if (w != NULL && is_new)
			mr_unpack_sum_init(&mr_window_channels(w)->sum);
		if (w != NULL)
			mr_window_settle(&b, &st, UINT64_MAX);
		check(&b, &st);
		if (b.track.now_ns % 16 == 0)
			mr_window_age(&b, &st, 100);
		if (b.track.now_ns % 8 == 0 && pool.oldest != 0)
			mr_window_free(&pool, b.memory, mr_window_unqueue(&pool, b.memory));
		if (b.track.now_ns % 32 == 5)
			mr_window_forget(&pool, b.memory);
	}
	mr_window_age(&b, &st, 0);
	check(&b, &st);
	if ((st.open[0] | st.open[1]) != 0)
		abort();
	free(memory);
	return 0;
}
