/* SPDX-License-Identifier: BSD-3-Clause */
/* A turn of the lane: its books and its ticks. */
#include "lane_fixture.h"

static uint64_t published(struct world *w, enum mr_counter c)
{
	struct mr_published snap;

	mr_stats_snapshot(&w->l->pub, &snap);
	return snap.counters.c[c];
}

/* The clock starts far enough back that it cannot stand still. */
static void a_turn_is_busy_if_it_moved_a_packet_and_all_is_published_when_due(void **state)
{
	struct world *w = *state;
	struct mr_lane_clock clock;

	w->l->publish_tsc = UINT64_MAX / 2;
	mr_lane_want(w->l, MR_LANE_RUN);
	mr_lane_begin(w->l, &clock);
	clock.now -= 1000;
	w->l->begun_tsc -= 1000;
	assert_int_equal(mr_lane_turn(w->l, &clock), 0);
	send_frames(2);
	assert_int_equal(published(w, MR_C_turns), 0);
	clock.due = clock.now;
	clock.now -= 5000;
	w->l->begun_tsc -= 5000;
	assert_int_equal(mr_lane_turn(w->l, &clock), 2);
	assert_int_equal(published(w, MR_C_turns), 2);
	assert_true(clock.due > clock.now);
	assert_true(published(w, MR_C_busy_cycles) >= 5000);
	assert_int_equal(
		published(w, MR_C_busy_cycles), clock.now - w->l->begun_tsc - w->l->idle_tsc);
	assert_true(w->l->idle_tsc >= 1000);
	finish(w, 0, NULL, NULL);
	mr_lane_want(w->l, MR_LANE_DRAIN);
	assert_int_equal(mr_lane_turn(w->l, &clock), 2);
	assert_int_equal(w->l->state, MR_LANE_HALT);
	mr_lane_end(w->l, &clock);
	assert_int_equal(published(w, MR_C_tx_packets), 2);
}

/* A lane that runs, with a tick due at its next turn and no other for long. */
static void begin_with_ticks(struct world *w, struct mr_lane_clock *clock)
{
	w->l->publish_tsc = UINT64_MAX / 2;
	w->l->tick_tsc = UINT64_MAX / 4;
	w->l->tick_pool = env.pool;
	mr_lane_want(w->l, MR_LANE_RUN);
	mr_lane_begin(w->l, clock);
	assert_true(w->l->tick_due > clock->now);
	w->l->tick_due = clock->now;
}

/* Plays a chain that makes a result of the first *arg buffers. */
static void results(uint32_t i, struct mr_desc_out *d, void *arg)
{
	const uint32_t *n = arg;

	if (i < *n)
		d->length = 100;
	else
		*d = (struct mr_desc_out){
			.head = d->head, .verdict = MR_DROP, .arg = MR_REASON_blank};
}

static void finish_tick(struct world *w, uint32_t seq, uint32_t n)
{
	finish(w, seq, results, &n);
}

static void a_tick_gives_blank_buffers_and_counts_those_that_come_back(void **state)
{
	struct world *w = *state;
	struct mr_lane_clock clock;
	struct mr_slot_in *in;

	begin_with_ticks(w, &clock);
	assert_int_equal(mr_lane_turn(w->l, &clock), 0);
	in = mr_ring_in(&w->l->ring, 0);
	assert_int_equal(in->ready, 1);
	assert_int_equal(in->flags, MR_SLOT_TICK);
	assert_int_equal(in->count, BATCH);
	for (uint32_t i = 0; i < BATCH; i++) {
		struct mr_desc_in d = mr_slot_desc_in(in)[i];

		assert_int_equal(d.length, 0);
		assert_int_equal(d.head, RTE_PKTMBUF_HEADROOM);
		assert_ptr_equal(
			env.region + (size_t)d.position * MR_UNIT, w->notes[0].mbufs[i]->buf_addr);
	}
	assert_int_equal(counter(w, MR_C_made_packets), BATCH);
	assert_int_equal(mr_lane_in_flight(w->l), BATCH);
	assert_balanced(w);
	/* One at a time. */
	w->l->tick_due = clock.now;
	mr_lane_turn(w->l, &clock);
	assert_int_equal(mr_ring_outstanding(&w->l->ring), 1);
	w->l->tick_due = UINT64_MAX;
	finish_tick(w, 0, 3);
	assert_int_equal(mr_lane_turn(w->l, &clock), BATCH);
	assert_int_equal(counter(w, MR_C_gpu_drop_blank), BATCH - 3);
	assert_int_equal(counter(w, MR_C_tx_packets), 3);
	assert_int_equal(counter(w, MR_C_tx_bytes), 300);
	assert_int_equal(rte_ring_count(env.out[0]), 3);
	assert_int_equal(w->l->latency.count, 0);
	assert_balanced(w);
	/* What comes in the slot next is packets again. */
	assert_int_equal(in->flags, 0);
}

/* Whatever the kernel says, no buffer of length 0 leaves, and the next tick comes. */
static void a_tick_that_is_called_plain_is_judged_all_the_same(void **state)
{
	struct world *w = *state;
	struct mr_lane_clock clock;

	begin_with_ticks(w, &clock);
	mr_lane_turn(w->l, &clock);
	finish(w, 0, NULL, NULL);
	mr_lane_turn(w->l, &clock);
	assert_int_equal(counter(w, MR_C_tx_drop_bad_result), BATCH);
	assert_int_equal(rte_ring_count(env.out[0]), 0);
	assert_int_equal(mr_ring_in(&w->l->ring, 0)->flags, 0);
	assert_balanced(w);
	w->l->tick_due = clock.now;
	mr_lane_turn(w->l, &clock);
	assert_int_equal(mr_ring_in(&w->l->ring, 1)->flags, MR_SLOT_TICK);
	finish_tick(w, 1, 0);
	mr_lane_turn(w->l, &clock);
}

static void what_was_received_goes_before_a_tick(void **state)
{
	struct world *w = *state;
	struct mr_lane_clock clock;

	begin_with_ticks(w, &clock);
	w->l->tick_due = UINT64_MAX;
	w->l->rx.workers = 0; /* always busy: what is not full waits */
	w->l->rx.timeout_tsc = UINT64_MAX;
	send_frames(3);
	assert_int_equal(mr_lane_turn(w->l, &clock), 3);
	assert_int_equal(mr_ring_outstanding(&w->l->ring), 0);
	w->l->tick_due = clock.now;
	mr_lane_turn(w->l, &clock);
	assert_int_equal(mr_ring_outstanding(&w->l->ring), 2);
	assert_int_equal(mr_ring_in(&w->l->ring, 0)->count, 3);
	assert_int_equal(mr_ring_in(&w->l->ring, 0)->flags, 0);
	assert_int_equal(mr_ring_in(&w->l->ring, 1)->flags, MR_SLOT_TICK);
	finish(w, 0, NULL, NULL);
	finish_tick(w, 1, 0);
	mr_lane_turn(w->l, &clock);
	mr_lane_turn(w->l, &clock);
	assert_balanced(w);
}

static void a_tick_takes_the_first_slot_that_a_full_ring_gives_back(void **state)
{
	struct world *w = *state;
	struct mr_lane_clock clock;

	begin_with_ticks(w, &clock);
	w->l->tick_due = UINT64_MAX;
	for (uint32_t i = 0; i < SLOTS; i++) {
		send_frames(BATCH);
		mr_lane_turn(w->l, &clock);
	}
	assert_true(mr_ring_full(&w->l->ring));
	send_frames(2 * BATCH);
	w->l->tick_due = clock.now;
	mr_lane_turn(w->l, &clock);
	finish(w, 0, NULL, NULL);
	mr_lane_turn(w->l, &clock);
	assert_int_equal(mr_ring_in(&w->l->ring, SLOTS)->flags, MR_SLOT_TICK);
	assert_int_equal(rte_ring_count(env.in), 2 * BATCH);
	for (uint32_t i = 1; i < SLOTS; i++)
		finish(w, i, NULL, NULL);
	finish_tick(w, SLOTS, 0);
	drain_ring(env.out[0]);
	for (uint32_t i = 0; i < SLOTS; i++) {
		mr_lane_turn(w->l, &clock);
		drain_ring(env.out[0]);
	}
	assert_int_equal(counter(w, MR_C_gpu_drop_blank), BATCH);
	assert_balanced(w);
}

static void a_tick_waits_for_the_buffers_of_its_pool(void **state)
{
	struct world *w = *state;
	struct mr_lane_clock clock;
	struct rte_mbuf *m[BUFFERS];

	begin_with_ticks(w, &clock);
	assert_int_equal(rte_pktmbuf_alloc_bulk(env.pool, m, BUFFERS - BATCH + 1), 0);
	mr_lane_turn(w->l, &clock);
	assert_int_equal(mr_ring_outstanding(&w->l->ring), 0);
	assert_int_equal(counter(w, MR_C_made_packets), 0);
	rte_pktmbuf_free_bulk(m, BUFFERS - BATCH + 1);
	mr_lane_turn(w->l, &clock);
	assert_int_equal(mr_ring_outstanding(&w->l->ring), 1);
	finish_tick(w, 0, 0);
	mr_lane_turn(w->l, &clock);
}

static void the_last_tick_comes_when_nothing_is_out_and_again_while_stages_fill_it(void **state)
{
	struct world *w = *state;
	struct mr_lane_clock clock;

	begin_with_ticks(w, &clock);
	w->l->tick_due = UINT64_MAX;
	send_frames(2);
	mr_lane_turn(w->l, &clock);
	mr_lane_want(w->l, MR_LANE_DRAIN);
	mr_lane_turn(w->l, &clock);
	assert_int_equal(mr_ring_outstanding(&w->l->ring), 1);
	finish(w, 0, NULL, NULL);
	mr_lane_turn(w->l, &clock);
	for (uint32_t i = 1; i < 4; i++) {
		assert_int_equal(w->l->state, MR_LANE_DRAIN);
		assert_int_equal(mr_ring_outstanding(&w->l->ring), 1);
		assert_int_equal(mr_ring_in(&w->l->ring, i)->flags, MR_SLOT_TICK | MR_SLOT_LAST);
		finish_tick(w, i, i == 3 ? BATCH - 1 : BATCH);
		mr_lane_turn(w->l, &clock);
		drain_ring(env.out[0]);
	}
	assert_int_equal(w->l->state, MR_LANE_HALT);
	assert_int_equal(counter(w, MR_C_made_packets), 3 * BATCH);
	assert_int_equal(counter(w, MR_C_tx_packets), 2 + 3 * BATCH - 1);
	assert_balanced(w);
	mr_lane_end(w->l, &clock);
}

int main(void)
{
	char *argv[] = {"test_lane_turn", "--no-huge", "--no-pci", "-m", "128", "--no-telemetry",
		"--no-shconf", "--file-prefix", "mr-test-lane-turn", "--log-level", "error", "-l",
		"0"};
	const struct CMUnitTest tests[] = {
		CASE(a_turn_is_busy_if_it_moved_a_packet_and_all_is_published_when_due),
		CASE(a_tick_gives_blank_buffers_and_counts_those_that_come_back),
		CASE(a_tick_that_is_called_plain_is_judged_all_the_same),
		CASE(what_was_received_goes_before_a_tick),
		CASE(a_tick_takes_the_first_slot_that_a_full_ring_gives_back),
		CASE(a_tick_waits_for_the_buffers_of_its_pool),
		CASE(the_last_tick_comes_when_nothing_is_out_and_again_while_stages_fill_it),
	};

	if (rte_eal_init((int)(sizeof(argv) / sizeof(argv[0])), argv) < 0)
		return 1;
	return cmocka_run_group_tests(tests, setup_env, NULL);
}
