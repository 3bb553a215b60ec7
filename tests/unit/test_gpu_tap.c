/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/gpu's reader of captures over rings that the test writes as a kernel would: threads in any
 * order, workers ahead of each other, rings that wrap or are full, and what no kernel should write.
 */
#include "mr_gpu_tap.h"

#include "mr_gpu_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOM 4096u
#define WORKERS 3u
#define FIRST (UINT32_MAX - 20) /* the numbers of slots wrap in every test */

/* A kernel's side of it: where its words are is the order's to say. */
struct rig {
	struct mr_gpu g;
	struct mr_gpu_lane_run lane;
	struct mr_host_ctl host;
	struct mr_worker_ctl ctl[WORKERS];
	struct mr_gpu_worker worker[WORKERS];
	struct mr_err err;
	uint64_t random;
	const struct mr_tap_order *order;
};

static uint32_t draw(struct rig *r, uint32_t below)
{
	r->random = r->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(r->random >> 33) % below;
}

static struct mr_tap_ctl *ctl(struct rig *r, uint32_t worker)
{
	return (struct mr_tap_ctl *)(uintptr_t)r->order->ctl + worker;
}

static struct mr_tap_record *at(struct rig *r, uint32_t worker, uint32_t number)
{
	uint64_t i = (uint64_t)worker * (r->order->mask + 1) + (number & r->order->mask);

	return (struct mr_tap_record *)(uintptr_t)(r->order->records + i * r->order->stride);
}

static void see(struct rig *r)
{
	for (uint32_t w = 0; w < WORKERS; w++)
		mr_store_release(&r->ctl[w].tap, r->host.tap);
}

static struct rig *begin(uint32_t workers, uint32_t snaplen)
{
	struct rig *r = calloc(1, sizeof(*r));

	r->lane = (struct mr_gpu_lane_run){
		.name = "l0", .workers = workers, .room = ROOM, .ctl = r->ctl};
	r->g.lanes = &r->lane;
	r->g.lanes_count = 1;
	r->g.host_ctl = &r->host;
	r->g.workers = r->worker;
	r->g.workers_count = workers;
	for (uint32_t w = 0; w < workers; w++)
		r->worker[w].worker = w;
	r->order = aligned_alloc(MR_CACHE_LINE, MR_GPU_TAP_BYTES);
	mr_gpu_tap_init(&r->g, (void *)(uintptr_t)r->order, (uintptr_t)r->order);
	assert_int_equal(mr_gpu_tap_start(&r->g, 0, r->order->program, 0, snaplen, &r->err), 0);
	assert_false(mr_gpu_tap_seen(&r->g));
	for (uint32_t w = 0; w < workers; w++)
		ctl(r, w)->next = FIRST + w;
	see(r);
	assert_true(mr_gpu_tap_seen(&r->g));
	return r;
}

static void end(struct rig *r)
{
	free((void *)(uintptr_t)r->order);
	free(r);
}

static void put(struct rig *r, uint32_t worker, uint32_t number, uint32_t slot, uint32_t packet)
{
	struct mr_tap_record *to = at(r, worker, number);

	*to = (struct mr_tap_record){.packet = (uint64_t)slot << 32 | packet,
		.in = {.head = (uint16_t)(packet % 16), .length = 60},
		.out = {.head = (uint16_t)(packet * 3 % 16), .length = 61}};
	((uint8_t *)(to + 1))[packet % 16] = (uint8_t)packet;
	((uint8_t *)(to + 1))[MR_TAP_AREA(r->order->snaplen) + packet * 3 % 16] = (uint8_t)slot;
}

/* A worker's way through a slot of n packets: every step-th is picked, threads in any order. */
static uint32_t serve(struct rig *r, uint32_t worker, uint32_t n, uint32_t step)
{
	struct mr_tap_ctl *c = ctl(r, worker);
	const uint32_t room = r->order->mask + 1 - (c->head - mr_load_acquire(&c->tail));
	uint32_t packet[MR_BATCH_MAX], picked = 0;

	for (uint32_t i = 0; i < n; i += step)
		packet[picked++] = i;
	for (uint32_t i = picked; i > 1; i--) {
		uint32_t other = draw(r, i), kept = packet[i - 1];

		packet[i - 1] = packet[other];
		packet[other] = kept;
	}
	n = picked < room ? picked : room;
	for (uint32_t i = 0; i < n; i++)
		put(r, worker, c->head + i, c->next, packet[i]);
	mr_store_relaxed_u64(&c->lost, c->lost + picked - n);
	mr_store_release(&c->head, c->head + n);
	mr_store_release(&c->next, c->next + r->lane.workers);
	return n;
}

static void is_next(struct rig *r, uint32_t slot, uint32_t packet)
{
	struct mr_gpu_tap_copy copy;

	if (!mr_gpu_tap_next(&r->g, &copy))
		fail_msg("no packet %u of slot %u", packet, slot - FIRST);
	assert_int_equal(copy.record->packet >> 32, slot);
	assert_int_equal((uint32_t)copy.record->packet, packet);
	assert_int_equal(*copy.before, (uint8_t)packet);
	assert_int_equal(*copy.after, (uint8_t)slot);
	assert_int_equal(copy.before_kept, 60);
	assert_int_equal(copy.after_kept, 61);
}

static void none_is_next(struct rig *r)
{
	struct mr_gpu_tap_copy copy;

	assert_false(mr_gpu_tap_next(&r->g, &copy));
}

static void records_in_any_order_come_out_in_that_of_packets(void **state)
{
	static const uint32_t sizes[] = {1, 2, 63, MR_BATCH_MAX, 0, 256, MR_BATCH_MAX, 33};
	struct rig *r = begin(1, 64);

	(void)state;
	for (uint32_t turn = 0; turn < 100; turn++) {
		const uint32_t n = sizes[turn % MR_ARRAY_LEN(sizes)], step = 1 + turn % 3;

		assert_int_equal(serve(r, 0, n, step), (n + step - 1) / step);
		for (uint32_t i = 0; i < n; i += step)
			is_next(r, FIRST + turn, i);
		none_is_next(r);
		assert_int_equal(ctl(r, 0)->tail, ctl(r, 0)->head);
	}
	assert_int_equal(mr_gpu_tap_lost(&r->g), 0);
	end(r);
}

/* The ring holds a few slots; what does not fit is lost, counted, and the rest is in order. */
static void full_rings_lose_what_they_count_and_wrap(void **state)
{
	struct rig *r = begin(2, ROOM);
	uint32_t kept[2], given = 0, got = 0, slot = FIRST;

	(void)state;
	assert_in_range(r->order->mask + 1, 256, 511);
	for (uint32_t turn = 0; turn < 200; turn++) {
		struct mr_gpu_tap_copy copy;

		for (uint32_t w = 0; w < 2; w++) {
			kept[w] = serve(r, w, 300, 1);
			given += 300;
		}
		for (uint32_t w = 0; w < 2; w++, slot++) {
			uint32_t last = 0;

			for (uint32_t i = 0; i < kept[w]; i++, got++) {
				assert_true(mr_gpu_tap_next(&r->g, &copy));
				assert_int_equal(copy.record->packet >> 32, slot);
				assert_true(i == 0 || (uint32_t)copy.record->packet > last);
				last = (uint32_t)copy.record->packet;
			}
		}
		none_is_next(r);
	}
	assert_true(mr_gpu_tap_lost(&r->g) > 0);
	assert_int_equal(got + mr_gpu_tap_lost(&r->g), given);
	/* What is counted in 64 bits stays so. */
	ctl(r, 0)->lost += (uint64_t)1 << 40;
	assert_int_equal(got + mr_gpu_tap_lost(&r->g), given + ((uint64_t)1 << 40));
	end(r);
}

static void slots_of_several_workers_come_out_in_order(void **state)
{
	struct rig *r = begin(WORKERS, 64);
	uint32_t at_slot = 0, at_packet = 0, done[WORKERS] = {0};

	(void)state;
	/* Workers go on as chance has it; a slot has as many packets as its number says. */
	for (uint32_t turn = 0; turn < 3000; turn++) {
		const uint32_t w = draw(r, WORKERS), slot = w + done[w] * WORKERS;
		struct mr_gpu_tap_copy copy;

		if (slot <= at_slot + 16) { /* slots of the lane's ring */
			serve(r, w, slot % 5, 1);
			done[w]++;
		}
		while (draw(r, 4) != 0 && mr_gpu_tap_next(&r->g, &copy)) {
			for (; at_packet == at_slot % 5; at_packet = 0)
				at_slot++;
			assert_int_equal(copy.record->packet >> 32, FIRST + at_slot);
			assert_int_equal((uint32_t)copy.record->packet, at_packet++);
		}
	}
	assert_true(at_slot > 500);
	end(r);
}

static void a_slot_waits_for_those_before_until_the_capture_ends(void **state)
{
	struct rig *r = begin(WORKERS, 64);

	(void)state;
	serve(r, 1, 2, 1);
	none_is_next(r);
	serve(r, 0, 0, 1); /* nothing of it was wanted */
	is_next(r, FIRST + 1, 0);
	is_next(r, FIRST + 1, 1);
	serve(r, 1, 1, 1);
	serve(r, 0, 1, 1);
	none_is_next(r); /* slot 2 is in hand */
	mr_gpu_tap_stop(&r->g);
	see(r);
	is_next(r, FIRST + 3, 0);
	is_next(r, FIRST + 4, 0);
	none_is_next(r);
	end(r);
}

static void a_record_twice_or_beyond_its_slot_is_lost_and_the_others_are_there(void **state)
{
	struct rig *r = begin(1, 64);
	const uint32_t records = r->order->mask + 1;

	(void)state;
	put(r, 0, 0, FIRST, 7);
	put(r, 0, 1, FIRST, MR_BATCH_MAX);
	put(r, 0, 2, FIRST, 3);
	put(r, 0, 3, FIRST, 7);
	put(r, 0, 4, FIRST, UINT32_MAX);
	put(r, 0, 5, FIRST, MR_BATCH_MAX - 1);
	put(r, 0, 6, FIRST + 1, MR_BATCH_MAX + 3); /* and none that is good */
	put(r, 0, 7, FIRST + 2, 0);
	mr_store_release(&ctl(r, 0)->head, 8);
	is_next(r, FIRST, 3);
	is_next(r, FIRST, 7);
	is_next(r, FIRST, MR_BATCH_MAX - 1);
	is_next(r, FIRST + 2, 0);
	none_is_next(r);
	assert_int_equal(mr_gpu_tap_lost(&r->g), 4);
	/* A whole ring of the same record. */
	for (uint32_t i = 0; i < records; i++)
		put(r, 0, 8 + i, FIRST + 3, 5);
	mr_store_release(&ctl(r, 0)->head, 8 + records);
	is_next(r, FIRST + 3, 5);
	none_is_next(r);
	assert_int_equal(mr_gpu_tap_lost(&r->g), 4 + records - 1);
	assert_int_equal(ctl(r, 0)->tail, 8 + records);
	end(r);
}

static void a_head_beyond_the_ring_is_lost_and_what_follows_is_there(void **state)
{
	struct rig *r = begin(1, 64);
	const uint32_t records = r->order->mask + 1;

	(void)state;
	for (uint32_t head = records + 1, turn = 0; turn < 3; turn++, head = UINT32_MAX - turn) {
		const uint64_t lost = mr_gpu_tap_lost(&r->g);
		const uint32_t more = head - ctl(r, 0)->head;

		mr_store_release(&ctl(r, 0)->head, head);
		none_is_next(r);
		assert_int_equal(mr_gpu_tap_lost(&r->g), lost + more);
		assert_int_equal(serve(r, 0, 2, 1), 2);
		is_next(r, FIRST + turn, 0);
		is_next(r, FIRST + turn, 1);
		none_is_next(r);
	}
	end(r);
}

static void lengths_that_cannot_be_have_no_bytes_and_an_order_written_over_harms_nothing(
	void **state)
{
	struct rig *r = begin(1, 100);
	struct mr_tap_order *order = (struct mr_tap_order *)(uintptr_t)r->order;
	struct mr_tap_record *bad = at(r, 0, 1);
	const uint8_t *from = (const uint8_t *)(bad + 1);
	struct mr_gpu_tap_copy copy;

	(void)state;
	put(r, 0, 0, FIRST, 1);
	put(r, 0, 1, FIRST, 0);
	bad->in = (struct mr_desc_in){.head = UINT16_MAX, .length = UINT16_MAX};
	bad->out = (struct mr_desc_out){.head = 131, .length = UINT16_MAX};
	mr_store_release(&ctl(r, 0)->head, 2);
	order->snaplen = UINT32_MAX;
	order->stride = UINT32_MAX;
	order->mask = 0;
	assert_true(mr_gpu_tap_next(&r->g, &copy));
	assert_int_equal(copy.before_kept, 0);
	assert_int_equal(copy.after_kept, 100);
	assert_ptr_equal(copy.before, from + 15);
	assert_ptr_equal(copy.after, from + MR_TAP_AREA(100) + 131 % 16);
	assert_int_equal(mr_gpu_tap_snaplen(&r->g), 100);
	is_next(r, FIRST, 1);
	none_is_next(r);
	end(r);
}

/* The kernel's clock, which began elsewhere, at so many nanoseconds a second more than the host's.
 */
static uint64_t kernel_ns(uint64_t host_ns, uint64_t began_ns, int64_t faster)
{
	const int64_t passed = (int64_t)(host_ns - began_ns);

	return (uint64_t)(5000000000000 + passed + passed / 1000 * faster / 1000000);
}

/* A look at the clocks, which takes as long as it likes. */
static void look(struct rig *r, uint64_t now, uint64_t set, uint64_t slow)
{
	mr_gpu_tap_follow(&r->g, now, now + set + draw(r, 2) * slow, now + slow);
}

/* Two hours of a capture, with a worker that takes up to 1 ms to answer. */
static void times_are_right_where_clocks_drift_or_are_set(void **state)
{
	static const int64_t faster[] = {0, 100000, -100000};
	const uint64_t second = 1000000000u, day = 86400 * second;

	(void)state;
	for (uint32_t k = 0; k < MR_ARRAY_LEN(faster); k++) {
		struct rig *r = begin(1, 64);
		const uint64_t began = mr_clock_ns();
		uint64_t now = began, set = 3 * day;
		uint32_t word = r->host.tap, asked = 0;
		struct mr_gpu_tap_copy copy;

		ctl(r, 0)->clock_ns = kernel_ns(began, began, faster[k]);
		for (uint32_t turn = 0; turn < 72000; turn++, now += second / 10) {
			const uint64_t slow = turn % 7 == 0 ? draw(r, 50000000) : draw(r, 1000);

			if (turn % 1000 == 999)
				set += draw(r, 2) == 0 ? day : -second;
			look(r, now, set, slow);
			look(r, now + slow, set, 10); /* too early for an answer */
			serve(r, 0, 1, 1);
			at(r, 0, turn)->time_ns = kernel_ns(now, began, faster[k]);
			assert_true(mr_gpu_tap_next(&r->g, &copy));
			/* Within 2 ms of the time of day, before or behind. */
			assert_in_range(copy.time_ns - now - set + 2000000, 0, 4000000);
			if (r->host.tap == word)
				continue;
			word = r->host.tap;
			asked++;
			ctl(r, 0)->clock_ns =
				kernel_ns(now + slow + draw(r, 1000000), began, faster[k]);
			look(r, now + slow + 1000000, set, 1000);
		}
		assert_in_range(asked, 6000, 7200);
		end(r);
	}
}

static void no_clock_is_asked_for_after_the_stop(void **state)
{
	struct rig *r = begin(1, 64);
	const uint64_t later = mr_clock_ns() + 2000000000u;
	uint32_t word;

	(void)state;
	ctl(r, 0)->clock_ns = 1;
	mr_gpu_tap_stop(&r->g);
	word = r->host.tap;
	look(r, later, 0, 1000);
	assert_int_equal(r->host.tap, word);
	end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_in_any_order_come_out_in_that_of_packets),
		cmocka_unit_test(full_rings_lose_what_they_count_and_wrap),
		cmocka_unit_test(slots_of_several_workers_come_out_in_order),
		cmocka_unit_test(a_slot_waits_for_those_before_until_the_capture_ends),
		cmocka_unit_test(
			a_record_twice_or_beyond_its_slot_is_lost_and_the_others_are_there),
		cmocka_unit_test(a_head_beyond_the_ring_is_lost_and_what_follows_is_there),
		cmocka_unit_test(
			lengths_that_cannot_be_have_no_bytes_and_an_order_written_over_harms_nothing),
		cmocka_unit_test(times_are_right_where_clocks_drift_or_are_set),
		cmocka_unit_test(no_clock_is_asked_for_after_the_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
