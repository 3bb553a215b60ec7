/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_stats.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void every_name_obeys_the_naming_law_and_is_unique(void **state)
{
	static const char *const stages[] = {"rx_", "made_", "gpu_", "tx_", "host_", "bus_",
		"slots_", "ring_", "turns", "tap_", "busy_"};

	(void)state;
	for (size_t i = 0; i < MR_C_COUNT; i++) {
		const struct mr_counter_desc *d = &mr_counter_descs[i];
		bool known = false;

		for (size_t s = 0; s < MR_ARRAY_LEN(stages); s++)
			known |= strncmp(d->name, stages[s], strlen(stages[s])) == 0;
		assert_true(known);
		assert_int_equal(
			strspn(d->name, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(d->name));
		assert_int_equal(d->kind == MR_COUNTER_DROP, strstr(d->name, "_drop_") != NULL);
		assert_true(strlen(d->help) > 0);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(d->name, mr_counter_descs[j].name);
	}
}

static void every_drop_counter_enters_the_sum_and_nothing_else_does(void **state)
{
	(void)state;
	for (size_t i = 0; i < MR_C_COUNT; i++) {
		struct mr_counters c = {0};

		c.c[i] = 7;
		assert_int_equal(mr_counters_dropped(&c),
			mr_counter_descs[i].kind == MR_COUNTER_DROP ? 7 : 0);
	}
}

static void balance_holds_exactly_and_breaks_by_one_packet(void **state)
{
	struct mr_counters c = {0};

	(void)state;
	assert_true(mr_counters_balanced(&c, 0));
	assert_false(mr_counters_balanced(&c, 1));
	c.c[MR_C_rx_packets] = 100;
	c.c[MR_C_made_packets] = 5;
	c.c[MR_C_tx_packets] = 90;
	c.c[MR_C_gpu_drop_policy] = 8;
	c.c[MR_C_tx_drop_link] = 3;
	assert_true(mr_counters_balanced(&c, 4));
	assert_false(mr_counters_balanced(&c, 3));
	assert_false(mr_counters_balanced(&c, 5));
	c.c[MR_C_turns] = 1000; /* AUX does not matter */
	assert_true(mr_counters_balanced(&c, 4));
	c.c[MR_C_rx_drop_shed]++;
	assert_false(mr_counters_balanced(&c, 4));
}

static void a_snapshot_is_what_was_published(void **state)
{
	static struct mr_published pub, snap;
	static struct mr_counters c;
	static struct mr_hist h;
	uint64_t before = mr_clock_ns();

	(void)state;
	for (size_t i = 0; i < MR_C_COUNT; i++)
		c.c[i] = 1000 + i;
	mr_hist_add(&h, 123, 4);
	mr_hist_add(&h, (uint64_t)1 << 50, 1);
	mr_stats_publish(&pub, &c, &h, 42, 7, 3);
	mr_stats_snapshot(&pub, &snap);
	assert_memory_equal(&snap.counters, &c, sizeof(c));
	assert_memory_equal(&snap.latency, &h, sizeof(h));
	assert_int_equal(snap.in_flight, 42);
	assert_int_equal(snap.waiting, 7);
	assert_int_equal(snap.state, 3);
	assert_true(snap.beat_ns >= before && snap.beat_ns <= mr_clock_ns());

	/* The histogram alone moves on, then the counters alone. */
	mr_hist_add(&h, 124, 1);
	mr_stats_publish(&pub, &c, &h, 42, 7, 3);
	mr_stats_snapshot(&pub, &snap);
	assert_memory_equal(&snap.latency, &h, sizeof(h));
	c.c[MR_C_turns]++;
	mr_stats_publish(&pub, &c, &h, 41, 7, 3);
	mr_stats_snapshot(&pub, &snap);
	assert_memory_equal(&snap.counters, &c, sizeof(c));
	assert_memory_equal(&snap.latency, &h, sizeof(h));
	assert_int_equal(snap.in_flight, 41);
}

/* One writer whose words are all equal at every publish: any mixture is a torn read. */
struct race {
	struct mr_published pub;
	uint32_t stop;
	uint64_t torn;
	uint64_t reads;
	uint64_t distinct;
};

static void *read_until_stopped(void *arg)
{
	struct race *r = arg;
	struct mr_published snap;
	uint64_t torn = 0, reads = 0, distinct = 0, last = 0;

	while (__atomic_load_n(&r->stop, __ATOMIC_RELAXED) == 0) {
		uint64_t v;

		mr_stats_snapshot(&r->pub, &snap);
		v = snap.in_flight;
		for (size_t i = 0; i < MR_C_COUNT; i++)
			torn += snap.counters.c[i] != v;
		torn += snap.state != (uint32_t)v;
		torn += snap.latency.count != v || snap.latency.sum_ns != v;
		torn += snap.latency.bucket[1] != v;
		torn += snap.latency.bucket[MR_HIST_BUCKETS - 1] != v;
		torn += v < last; /* a published state never goes back */
		distinct += v != last;
		last = v;
		reads++;
	}
	__atomic_fetch_add(&r->torn, torn, __ATOMIC_RELAXED);
	__atomic_fetch_add(&r->reads, reads, __ATOMIC_RELAXED);
	__atomic_fetch_add(&r->distinct, distinct, __ATOMIC_RELAXED);
	return NULL;
}

static void readers_never_see_half_a_publish(void **state)
{
	enum {
		READERS = 3
	};
	static struct race r;
	static struct mr_counters c;
	static struct mr_hist h;
	pthread_t reader[READERS];
	uint64_t end;

	(void)state;
	for (size_t i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&reader[i], NULL, read_until_stopped, &r), 0);
	end = mr_clock_ns() + 2000000000u;
	for (uint64_t v = 1; mr_clock_ns() < end; v++) {
		for (size_t i = 0; i < MR_C_COUNT; i++)
			c.c[i] = v;
		h.count = v;
		h.sum_ns = v;
		h.bucket[1] = v;
		h.bucket[MR_HIST_BUCKETS - 1] = v;
		mr_stats_publish(&r.pub, &c, &h, v, v, (uint32_t)v);
		/* A writer that publishes without pause would starve the readers. */
		for (uint64_t until = mr_clock_ns() + v % 8 * 1000; mr_clock_ns() < until;)
			;
	}
	__atomic_store_n(&r.stop, 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < READERS; i++)
		pthread_join(reader[i], NULL);
	assert_int_equal(r.torn, 0);
	/* The readers did meet the writer at work. */
	assert_true(r.reads > 100);
	assert_true(r.distinct > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_name_obeys_the_naming_law_and_is_unique),
		cmocka_unit_test(every_drop_counter_enters_the_sum_and_nothing_else_does),
		cmocka_unit_test(balance_holds_exactly_and_breaks_by_one_packet),
		cmocka_unit_test(a_snapshot_is_what_was_published),
		cmocka_unit_test(readers_never_see_half_a_publish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
