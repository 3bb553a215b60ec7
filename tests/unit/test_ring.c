/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mr_ring.h"

#define SLOTS 4u
#define BATCH 5u

struct world {
	struct mr_ring r;
	uint8_t *in, *map, *out;
};

static void setup(struct world *w, uint32_t first, bool mapped)
{
	struct mr_err err = {0};
	size_t bytes = SLOTS * MR_SLOT_BYTES(BATCH);

	w->in = aligned_alloc(64, bytes);
	w->out = aligned_alloc(64, bytes);
	w->map = mapped ? aligned_alloc(64, bytes) : NULL;
	/* Memory as it comes, which is not zeroed. */
	memset(w->in, 0xff, bytes);
	memset(w->out, 0xff, bytes);
	if (mapped)
		memset(w->map, 0xff, bytes);
	assert_int_equal(mr_ring_init(&w->r, w->in, w->map, w->out, SLOTS, BATCH, first, &err), 0);
}

static void teardown(struct world *w)
{
	free(w->in);
	free(w->out);
	free(w->map);
}

/* The worker's side, as the kernel plays it. */
static struct mr_slot_in *slot_in(struct world *w, uint32_t seq)
{
	uint8_t *base = w->map != NULL ? w->map : w->in;

	return (struct mr_slot_in *)(base + (seq % SLOTS) * MR_SLOT_BYTES(BATCH));
}

static bool ready(struct world *w, uint32_t seq)
{
	return mr_load_acquire(&slot_in(w, seq)->ready) == seq + 1;
}

static void done(struct world *w, uint32_t seq)
{
	struct mr_slot_out *o =
		(struct mr_slot_out *)(w->out + (seq % SLOTS) * MR_SLOT_BYTES(BATCH));

	mr_store_release(&o->done, seq + 1);
}

static void fill_and_give(struct world *w, uint32_t mark)
{
	struct mr_desc_in *d = mr_slot_desc_in(mr_ring_in(&w->r, w->r.head));

	for (uint32_t i = 0; i < BATCH; i++)
		d[i] = (struct mr_desc_in){.position = mark + i, .length = 60, .head = 128};
	mr_ring_give(&w->r, BATCH, 3);
}

static void bad_sizes_are_refused_with_a_sentence(void **state)
{
	static const struct {
		uint32_t slots, batch;
		const char *says;
	} bad[] = {
		{1, 1, "power of two"},
		{3, 1, "power of two"},
		{0, 1, "power of two"},
		{2 * MR_SLOTS_MAX, 1, "power of two"},
		{2, 0, "batch 0"},
		{2, MR_BATCH_MAX + 1, "batch 1025"},
	};
	uint8_t *m = aligned_alloc(64, 4096);

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct mr_err err = {0};
		struct mr_ring r;

		assert_int_equal(
			mr_ring_init(&r, m, NULL, m, bad[i].slots, bad[i].batch, 0, &err), -22);
		assert_non_null(strstr(err.msg, bad[i].says));
	}
	struct mr_err err = {0};
	struct mr_ring r;

	assert_int_equal(mr_ring_init(&r, m + 8, NULL, m, 2, 1, 0, &err), -22);
	assert_non_null(strstr(err.msg, "aligned"));
	free(m);
}

static void nothing_is_ready_or_done_after_init(uint32_t first)
{
	struct world w;

	setup(&w, first, first % 2 != 0);
	for (uint32_t i = 0; i < 3 * SLOTS; i++)
		assert_false(ready(&w, first + i));
	assert_null(mr_ring_take(&w.r));
	assert_int_equal(mr_ring_outstanding(&w.r), 0);
	/* Nor is a slot that was given done, the first of the ring as little as any other. */
	for (uint32_t i = 0; i < SLOTS; i++) {
		fill_and_give(&w, 0);
		assert_null(mr_ring_take(&w.r));
		done(&w, first + i);
		assert_non_null(mr_ring_take(&w.r));
		mr_ring_release(&w.r);
	}
	teardown(&w);
}

/*
 * DPDK lib/gpudev/gpudev.c:957: item 0 of a list is never set free, and the list's memory is not
 * zeroed.
 */
static void a_fresh_ring_has_nothing_at_any_start(void **state)
{
	(void)state;
	nothing_is_ready_or_done_after_init(0);
	nothing_is_ready_or_done_after_init(7);
	nothing_is_ready_or_done_after_init(UINT32_MAX - 1);
	nothing_is_ready_or_done_after_init(UINT32_MAX);
}

static void walk(uint32_t first, bool mapped)
{
	struct world w;

	setup(&w, first, mapped);
	for (uint32_t lap = 0; lap < 5; lap++) {
		for (uint32_t i = 0; i < SLOTS; i++) {
			uint32_t seq = first + lap * SLOTS + i;

			assert_false(mr_ring_full(&w.r));
			assert_false(ready(&w, seq));
			fill_and_give(&w, seq * 10);
			assert_true(ready(&w, seq));
			assert_int_equal(slot_in(&w, seq)->count, BATCH);
			assert_int_equal(slot_in(&w, seq)->rx_port, 3);
			assert_int_equal(mr_slot_desc_in(slot_in(&w, seq))[BATCH - 1].position,
				seq * 10 + BATCH - 1);
		}
		assert_true(mr_ring_full(&w.r));
		/* Completed out of order, taken in order. */
		for (uint32_t i = SLOTS; i-- > 0;) {
			assert_null(mr_ring_take(&w.r));
			done(&w, first + lap * SLOTS + i);
		}
		for (uint32_t i = 0; i < SLOTS; i++) {
			assert_non_null(mr_ring_take(&w.r));
			mr_ring_release(&w.r);
		}
		/* A slot that was done a lap ago is not taken again. */
		assert_null(mr_ring_take(&w.r));
	}
	teardown(&w);
}

/*
 * NVIDIA/l2fwd-nv src/kernel.cu:126: the kernel leaves in silence on an item that the sender has
 * not freed for a lap.
 */
static void slots_are_taken_in_order_over_laps_and_the_wrap(void **state)
{
	(void)state;
	walk(0, false);
	walk(UINT32_MAX - 9, false);
	walk(UINT32_MAX - 2 * SLOTS + 1, false);
}

static void a_mapped_ring_shows_the_worker_the_same_slots(void **state)
{
	(void)state;
	walk(0, true);
	walk(UINT32_MAX - 9, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_sizes_are_refused_with_a_sentence),
		cmocka_unit_test(a_fresh_ring_has_nothing_at_any_start),
		cmocka_unit_test(slots_are_taken_in_order_over_laps_and_the_wrap),
		cmocka_unit_test(a_mapped_ring_shows_the_worker_the_same_slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
