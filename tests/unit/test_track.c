/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The books of one stream, on streams with programmed faults, whose counts are known by how they
 * were made; and on drawn ones, held to what must be true of any.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mr_base.h"
#include "mr_track.h"

#define EVENTS 64u

static struct world {
	struct mr_track_queue queue;
	struct mr_track_event events[EVENTS];
	struct mr_books b;
	struct mr_stream st;
} w;

static int setup(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.b = (struct mr_books){.queue = &w.queue,
		.events = w.events,
		.events_mask = EVENTS - 1,
		.now_ns = 1,
		.window = 4096,
		.leap = 1u << 24};
	return 0;
}

static enum mr_track_class numbered(uint64_t seq, uint64_t units, uint64_t modulus)
{
	const struct mr_seen s = {.seq = modulus != 0 ? seq % modulus : seq,
		.units = units,
		.modulus = modulus,
		.track = MR_TRACK_COUNT,
		.state = MR_SEEN_OK};

	w.st.received++;
	return mr_track_packet(&w.b, &w.st, &s, units, 1);
}

static enum mr_track_class packet(uint64_t seq, uint64_t modulus)
{
	return numbered(seq, 1, modulus);
}

static enum mr_track_class clocked(uint64_t seq, uint64_t time_ps)
{
	const struct mr_seen s = {.seq = seq % 16,
		.units = 1,
		.modulus = 16,
		.time_s = time_ps / 1000000000000,
		.time_ps = time_ps % 1000000000000,
		.flags = MR_SEEN_TIME,
		.track = MR_TRACK_CLOCK,
		.state = MR_SEEN_OK};

	w.st.received++;
	return mr_track_packet(&w.b, &w.st, &s, 1, 1);
}

static enum mr_track_class frame(uint64_t second, uint64_t number)
{
	const struct mr_seen s = {.seq = number,
		.units = 1,
		.modulus = 1u << 24,
		.time_s = second,
		.flags = MR_SEEN_TIME,
		.track = MR_TRACK_SECOND,
		.state = MR_SEEN_OK};

	w.st.received++;
	return mr_track_packet(&w.b, &w.st, &s, 1, 1);
}

static enum mr_track_class part(uint64_t heap, uint64_t at, uint64_t bytes, uint64_t whole)
{
	const struct mr_seen s = {.seq = heap,
		.units = bytes,
		.modulus = 1ull << 48,
		.heap_at = at,
		.heap_bytes = whole,
		.track = MR_TRACK_HEAP,
		.state = MR_SEEN_OK};

	w.b.now_ns++;
	w.st.received++;
	return mr_track_packet(&w.b, &w.st, &s, bytes, 1);
}

static void assert_books(void)
{
	const struct mr_stream *s = &w.st;

	assert_int_equal(s->received,
		s->placed + s->duplicate + s->late + s->malformed + s->unknown + s->filtered +
			s->holds);
}

/* All that waits is given up, as at the end. */
static void end(void)
{
	mr_track_age(&w.b, &w.st, 0);
	assert_int_equal(mr_track_open(&w.st), 0);
	assert_books();
}

/* The i-th event that was told. */
static void told(uint32_t i, uint32_t kind, uint64_t at, uint64_t units)
{
	assert_true(i < w.queue.head);
	assert_int_equal(w.events[i].kind, kind);
	assert_int_equal(w.events[i].at, at);
	assert_int_equal(w.events[i].units, units);
}

/* 0: 2^64; the rest are those of the formats, and odd ones. */
static const uint64_t moduli[] = {
	16, 100, 256, 1000, 1u << 16, 1u << 22, 1u << 24, 1ull << 32, 1ull << 48, 0};

/* One wrap of the short ones, and one within the run of the long ones. */
static uint64_t first_of(uint64_t modulus)
{
	return modulus == 0 ? UINT64_MAX - 500 : modulus > 500 ? modulus - 500 : modulus - 3;
}

static void a_whole_stream_is_whole_across_the_wrap_of_every_modulus(void **state)
{
	for (uint32_t m = 0; m < MR_ARRAY_LEN(moduli); m++) {
		setup(state);
		for (uint64_t i = 0; i < 1000; i++) {
			assert_int_equal(
				packet(first_of(moduli[m]) + i, moduli[m]), MR_TRACK_PLACED);
			assert_int_equal(w.b.at, first_of(moduli[m]) + moduli[m] + i);
		}
		end();
		assert_int_equal(w.st.placed, 1000);
		assert_int_equal(w.st.units, 1000);
		assert_int_equal(w.st.missing, 0);
		assert_int_equal(w.queue.head, 0);
	}
}

/* Lost at 100 (1), 200 (2) and 300 (5); twice: 400; swapped: 500 and 501; late by 3: 600. */
static void programmed_faults_are_counted_exactly_at_every_modulus(void **state)
{
	for (uint32_t m = 0; m < MR_ARRAY_LEN(moduli); m++) {
		const uint64_t from = first_of(moduli[m]), modulus = moduli[m];

		setup(state);
		for (uint64_t i = 0; i < 1000; i++) {
			if (i == 100 || (i >= 200 && i < 202) || (i >= 300 && i < 305))
				continue;
			if (i == 500 || i == 600)
				continue;
			assert_int_equal(packet(from + i, modulus), MR_TRACK_PLACED);
			if (i == 400)
				assert_int_equal(packet(from + i, modulus), MR_TRACK_DUPLICATE);
			if (i == 501)
				assert_int_equal(packet(from + 500, modulus), MR_TRACK_PLACED);
			if (i == 603)
				assert_int_equal(packet(from + 600, modulus), MR_TRACK_PLACED);
		}
		end();
		assert_int_equal(w.st.placed, 992);
		assert_int_equal(w.st.missing, 8);
		assert_int_equal(w.st.duplicate, 1);
		assert_int_equal(w.st.reordered, 2);
		assert_int_equal(w.st.late, 0);
		assert_int_equal(w.st.restarts, 0);
		assert_int_equal(w.queue.head, 3);
		told(0, MR_TRACK_MISSED, modulus != 0 ? (from + 100) % modulus : from + 100, 1);
		told(1, MR_TRACK_MISSED, modulus != 0 ? (from + 200) % modulus : from + 200, 2);
		told(2, MR_TRACK_MISSED, modulus != 0 ? (from + 300) % modulus : from + 300, 5);
	}
}

/* NetFlow v5 and IPFIX: numbers go on by what the packet before had. */
static void records_are_the_unit_where_numbers_count_them(void **state)
{
	uint64_t next = UINT32_MAX - 300;

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		if (i == 50)
			next += 29; /* one packet of 29 records is lost */
		assert_int_equal(numbered(next, i % 30, 1ull << 32), MR_TRACK_PLACED);
		if (i == 70) /* of 10 records, again */
			assert_int_equal(numbered(next, i % 30, 1ull << 32), MR_TRACK_DUPLICATE);
		next += i % 30;
	}
	end();
	assert_int_equal(w.st.placed, 100);
	assert_int_equal(w.st.missing, 29);
	assert_int_equal(w.st.units + w.st.missing, next - (UINT32_MAX - 300));
}

static void a_gap_of_exactly_one_modulus_is_seen_by_a_clock_and_by_nothing_else(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 40; i++)
		assert_int_equal(packet(i < 20 ? i : i + 256, 256), MR_TRACK_PLACED);
	end();
	assert_int_equal(w.st.missing, 0);
	setup(state);
	for (uint64_t i = 0; i < 40; i++)
		assert_int_equal(clocked(i < 20 ? i : i + 16, 1000000 * (i < 20 ? i : i + 16)),
			MR_TRACK_PLACED);
	end();
	assert_int_equal(w.st.missing, 16);
	assert_int_equal(w.st.steps, 0);
	told(0, MR_TRACK_MISSED, 20 % 16, 16);
}

/* DIFI example 1: a period of 720 us by a clock that counts 1.024 us. */
static void a_clock_may_be_off_by_a_part_of_its_period(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3000; i++) {
		if (i % 100 >= 90 - i / 100) /* a gap of 10 to 39 */
			continue;
		assert_int_equal(clocked(i, i * 720000000 / 1024000 * 1024000), MR_TRACK_PLACED);
	}
	end();
	/* Of each hundred i, 10 + i; those of the last lie behind the last packet. */
	assert_int_equal(w.st.missing, 29 * 10 + 28 * 29 / 2);
	assert_int_equal(w.st.units, 3000 - 30 * 10 - 29 * 30 / 2);
	assert_int_equal(w.st.steps, 0);
}

static void a_clock_that_is_set_is_told_and_nothing_is_missing_for_it(void **state)
{
	const uint64_t set_ps[] = {1000000 * 7 + 600000, 0};

	for (uint32_t k = 0; k < 2; k++) {
		setup(state);
		for (uint64_t i = 0; i < 100; i++)
			assert_int_equal(
				clocked(i,
					400000000 + i * 1000000 +
						(i < 50                  ? 0
								: k == 0 ? set_ps[0]
									 : (uint64_t)-100300000)),
				MR_TRACK_PLACED);
		end();
		assert_int_equal(w.st.steps, 1);
		assert_int_equal(w.st.missing, 0);
		assert_int_equal(w.st.restarts, 0);
		told(0, MR_TRACK_STEP, 50 % 16, 0);
	}
}

/* From some second on a sender has fewer frames in each. */
static void a_second_may_have_fewer_frames(void **state)
{
	(void)state;
	for (uint64_t s = 0; s < 20; s++)
		for (uint64_t n = 0; n < (s < 5 ? 8u : 4u); n++)
			assert_int_equal(frame(s, n), MR_TRACK_PLACED);
	end();
	/* It takes some seconds to be sure. */
	assert_int_equal(w.st.missing, MR_TRACK_SECONDS * 4);
	assert_int_equal(w.st.restarts, 0);
}

/* 9 s without a packet, of a clock that is off by a thousandth. */
static void a_long_gap_is_counted_though_the_clock_is_not_exact(void **state)
{
	static const uint64_t lost[] = {1, 15, 16, 17, 1000, 6400, 12800, 100000};

	for (uint32_t k = 0; k < MR_ARRAY_LEN(lost); k++) {
		setup(state);
		for (uint64_t i = 0; i < 2000; i++) {
			const uint64_t n = i < 1000 ? i : i + lost[k];

			assert_int_equal(
				clocked(n, n * 720000000 / 1024000 * 1024000), MR_TRACK_PLACED);
		}
		end();
		/* Of so many that the clock is off by more than the counter's 16, near enough. */
		if (lost[k] < 10000)
			assert_int_equal(w.st.missing, lost[k]);
		else
			assert_in_range(
				w.st.missing, lost[k] - lost[k] / 100, lost[k] + lost[k] / 100);
		assert_int_equal(w.st.missing % 16, lost[k] % 16);
		assert_int_equal(w.st.steps, 0);
	}
}

/* Half a period is the tolerance. */
static void a_clock_that_is_off_by_more_than_half_a_period_was_set(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 20; i++)
		(void)clocked(i, 1000000 * i + (i < 10 ? 0 : 490000));
	assert_int_equal(w.st.steps, 0);
	setup(state);
	for (uint64_t i = 0; i < 20; i++)
		(void)clocked(i, 1000000 * i + (i < 10 ? 0 : 600000));
	assert_int_equal(w.st.steps, 1);
	assert_int_equal(w.st.placed, 20);
}

/* Slowly the period is followed; at once it is learned anew, by one step of the clock. */
static void a_rate_may_change(void **state)
{
	uint64_t t = 0, period = 1000000;

	(void)state;
	for (uint64_t i = 0; i < 300; i++) {
		assert_int_equal(clocked(i, t), MR_TRACK_PLACED);
		t += period;
		period += period / 100;
	}
	assert_int_equal(w.st.steps, 0);
	period *= 3;
	for (uint64_t i = 300; i < 400; i++) {
		t += period;
		assert_int_equal(clocked(i, t), MR_TRACK_PLACED);
	}
	end();
	assert_int_equal(w.st.steps, 1);
	assert_int_equal(w.st.missing, 0);
}

static void reorder_and_duplicates_are_seen_by_a_clock(void **state)
{
	static const uint64_t order[] = {0, 1, 2, 4, 3, 5, 5, 6, 8, 9, 7, 10, 11};

	(void)state;
	for (uint32_t i = 0; i < MR_ARRAY_LEN(order); i++)
		(void)clocked(order[i], order[i] * 1000000);
	end();
	assert_int_equal(w.st.placed, 12);
	assert_int_equal(w.st.duplicate, 1);
	assert_int_equal(w.st.reordered, 2);
	assert_int_equal(w.st.missing, 0);
}

static void frames_begin_anew_each_second(void **state)
{
	for (uint64_t frames = 250; frames < 252; frames++) {
		setup(state);
		for (uint64_t s = 0; s < 10; s++)
			for (uint64_t n = 0; n < frames; n++) {
				if ((s == 3 && n >= 240) || (s == 4 && n < 5) ||
					(s == 7 && n == 100))
					continue;
				assert_int_equal(frame(1000 + s, n), MR_TRACK_PLACED);
			}
		end();
		assert_int_equal(w.st.placed, 10 * frames - (frames - 240) - 6);
		assert_int_equal(w.st.missing, frames - 240 + 6);
		assert_int_equal(w.queue.head, 2);
		told(0, MR_TRACK_MISSED, 3 * frames + 240, frames - 240 + 5);
		told(1, MR_TRACK_MISSED, 7 * frames + 100, 1);
	}
	/* Seconds that were: a sender that begins anew, further back than the window. */
	w.b.window = 100;
	assert_int_equal(frame(1002, 0), MR_TRACK_HELD);
	assert_int_equal(frame(1002, 1), MR_TRACK_PLACED);
	assert_int_equal(w.st.restarts, 1);
	assert_int_equal(frame(100, 250), MR_TRACK_HELD);
	assert_int_equal(frame(101, 0), MR_TRACK_PLACED);
	assert_int_equal(w.st.restarts, 2);
	assert_books();
}

static void a_sender_that_begins_anew_is_told_and_its_packets_are_placed(void **state)
{
	static const uint64_t anew[] = {0, 5, 1000000, (1ull << 31) + 77};

	for (uint32_t k = 0; k < MR_ARRAY_LEN(anew); k++) {
		setup(state);
		for (uint64_t i = 0; i < 100; i++)
			(void)packet(3000000000u + i, 1ull << 32);
		assert_int_equal(packet(anew[k], 1ull << 32), MR_TRACK_HELD);
		assert_books();
		assert_int_equal(packet(anew[k] + 1, 1ull << 32), MR_TRACK_PLACED);
		for (uint64_t i = 2; i < 100; i++)
			assert_int_equal(packet(anew[k] + i, 1ull << 32), MR_TRACK_PLACED);
		end();
		assert_int_equal(w.st.restarts, 1);
		assert_int_equal(w.st.placed, 200);
		assert_int_equal(w.st.units, 200);
		assert_int_equal(w.st.missing, 0);
		told(0, MR_TRACK_RESTART, anew[k], 0);
	}
}

static void what_follows_the_last_number_is_the_first(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		(void)packet(30000 + i, 1u << 16);
	assert_int_equal(packet(65535, 1u << 16), MR_TRACK_HELD);
	assert_int_equal(packet(0, 1u << 16), MR_TRACK_PLACED);
	assert_int_equal(w.st.restarts, 1);
	/* Of a short number three quarters lie ahead, and the rest behind. */
	setup(state);
	assert_int_equal(packet(0, 256), MR_TRACK_PLACED);
	assert_int_equal(packet(192, 256), MR_TRACK_PLACED);
	assert_int_equal(mr_track_open(&w.st), 191);
	assert_int_equal(packet(193 - 64, 256), MR_TRACK_PLACED);
	assert_int_equal(w.st.reordered, 1);
	assert_int_equal(packet(193 + 191, 256), MR_TRACK_PLACED);
	assert_int_equal(w.st.reordered, 1);
	end();
	assert_int_equal(w.st.missing, 190 + 191);
}

/* What was sent before, and goes on from there, is a sender that began anew. */
static void a_row_of_packets_that_had_come_is_a_restart(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		(void)packet(i, 1u << 16);
	for (uint64_t i = 0; i < MR_TRACK_RUN; i++)
		assert_int_equal(packet(500 + i, 1u << 16), MR_TRACK_DUPLICATE);
	for (uint64_t i = MR_TRACK_RUN; i < 700; i++)
		assert_int_equal(packet(500 + i, 1u << 16), MR_TRACK_PLACED);
	assert_int_equal(w.st.restarts, 1);
	assert_int_equal(w.st.missing, 0);
	told(0, MR_TRACK_RESTART, 500 + MR_TRACK_RUN, 0);
	/* Each twice is no such row. */
	setup(state);
	for (uint64_t i = 0; i < 1000; i++) {
		(void)packet(i, 1u << 16);
		(void)packet(i, 1u << 16);
	}
	assert_int_equal(w.st.restarts, 0);
	assert_int_equal(w.st.duplicate, 1000);
	assert_books();
}

static void a_packet_that_is_expected_follows_nothing_that_is_held(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3000; i++)
		(void)clocked(i, 1000000 * i);
	w.b.window = 100;
	/* From far back, and its number is the one before that of the next. */
	assert_int_equal(clocked(2999 - 1600, 1000000 * (2999 - 1600)), MR_TRACK_HELD);
	assert_int_equal(clocked(3000, 1000000 * 3000ull), MR_TRACK_PLACED);
	end();
	assert_int_equal(w.st.restarts, 0);
	assert_int_equal(w.st.late, 1);
	/* But one that follows it in number and time does begin anew. */
	assert_int_equal(clocked(5, 7000000), MR_TRACK_HELD);
	assert_int_equal(clocked(6, 8000000), MR_TRACK_PLACED);
	assert_int_equal(w.st.restarts, 1);
}

static void packets_without_units_are_neither_twice_nor_late(void **state)
{
	(void)state;
	(void)numbered(10, 5, 1ull << 32);
	(void)numbered(15, 5, 1ull << 32);
	assert_int_equal(numbered(15, 0, 1ull << 32), MR_TRACK_PLACED);
	assert_int_equal(numbered(20, 0, 1ull << 32), MR_TRACK_PLACED);
	end();
	assert_int_equal(w.st.reordered, 0);
	assert_int_equal(w.st.units, 10);
}

static void what_is_open_at_a_restart_is_missing(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		if (i != 90)
			(void)packet(3000000000u + i, 1ull << 32);
	(void)packet(0, 1ull << 32);
	(void)packet(1, 1ull << 32);
	assert_int_equal(w.st.missing, 1);
	told(0, MR_TRACK_MISSED, 3000000090u, 1);
	told(1, MR_TRACK_RESTART, 0, 0);
	end();
}

static void one_packet_from_far_away_is_late_and_changes_nothing(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		(void)packet(1000000 + i, 1ull << 32);
	assert_int_equal(packet(7, 1ull << 32), MR_TRACK_HELD);
	assert_int_equal(packet(1000100, 1ull << 32), MR_TRACK_PLACED);
	/* Two from far away that are not neighbours. */
	assert_int_equal(packet(7, 1ull << 32), MR_TRACK_HELD);
	assert_int_equal(packet(9, 1ull << 32), MR_TRACK_HELD);
	end();
	assert_int_equal(w.st.late, 3);
	assert_int_equal(w.st.restarts, 0);
	assert_int_equal(w.st.placed, 101);
}

/* sFlow and NetFlow say how long they run; a value that wraps is no restart. */
static void an_uptime_that_goes_back_is_a_restart_at_once(void **state)
{
	struct mr_seen s = {.seq = 500,
		.units = 1,
		.modulus = 1ull << 32,
		.flags = MR_SEEN_UPTIME,
		.uptime_ms = UINT32_MAX - 5000,
		.state = MR_SEEN_OK};

	(void)state;
	assert_int_equal(mr_track_packet(&w.b, &w.st, &s, 1, 1), MR_TRACK_PLACED);
	s.seq = 501;
	s.uptime_ms = 3000; /* 49.7 days are over */
	assert_int_equal(mr_track_packet(&w.b, &w.st, &s, 1, 1), MR_TRACK_PLACED);
	assert_int_equal(w.st.restarts, 0);
	s.seq = 502;
	s.uptime_ms = 100000;
	assert_int_equal(mr_track_packet(&w.b, &w.st, &s, 1, 1), MR_TRACK_PLACED);
	s.seq = 503; /* within what is expected, but from after the boot */
	s.uptime_ms = 10;
	assert_int_equal(mr_track_packet(&w.b, &w.st, &s, 1, 1), MR_TRACK_PLACED);
	assert_int_equal(w.st.restarts, 1);
	assert_int_equal(w.st.missing, 0);
}

static void gaps_are_given_up_by_number_by_window_and_by_age(void **state)
{
	(void)state;
	/* Each second one is missing: more gaps than are kept. */
	for (uint64_t i = 0; i < 20; i += 2)
		(void)packet(i, 1ull << 32);
	assert_int_equal(w.st.missing, 9 - MR_TRACK_GAPS);
	assert_int_equal(mr_track_open(&w.st), MR_TRACK_GAPS);
	told(0, MR_TRACK_MISSED, 1, 1);
	/* Late: its gap was given up. Placed: its gap is there. Twice: a duplicate. */
	assert_int_equal(packet(1, 1ull << 32), MR_TRACK_LATE);
	assert_int_equal(packet(17, 1ull << 32), MR_TRACK_PLACED);
	assert_int_equal(packet(17, 1ull << 32), MR_TRACK_DUPLICATE);
	assert_int_equal(mr_track_open(&w.st), MR_TRACK_GAPS - 1);
	w.b.now_ns = 1000;
	mr_track_age(&w.b, &w.st, 1000);
	assert_int_equal(mr_track_open(&w.st), MR_TRACK_GAPS - 1);
	w.b.now_ns = 1001;
	mr_track_age(&w.b, &w.st, 1000);
	assert_int_equal(mr_track_open(&w.st), 0);
	setup(state);
	w.b.window = 10;
	(void)packet(0, 1ull << 32);
	for (uint64_t i = 2; i < 12; i++)
		(void)packet(i, 1ull << 32);
	assert_int_equal(w.st.missing, 0);
	(void)packet(12, 1ull << 32);
	assert_int_equal(w.st.missing, 1);
	end();
}

/* A gap that is filled from the middle becomes two, with and without a place for it. */
static void a_gap_that_is_filled_from_the_middle_becomes_two(void **state)
{
	(void)state;
	(void)packet(0, 0);
	(void)packet(10, 0);
	assert_int_equal(packet(5, 0), MR_TRACK_PLACED);
	assert_int_equal(w.st.u.span.gaps, 2);
	(void)packet(20, 0);
	assert_int_equal(w.st.u.span.gaps, 3);
	/* 1-4, 6-9, 11-19: the middle of the last takes the place of the first. */
	assert_int_equal(packet(15, 0), MR_TRACK_PLACED);
	assert_int_equal(w.st.missing, 4);
	told(0, MR_TRACK_MISSED, 1, 4);
	/* 6-9, 11-14, 16-19: of the first itself what lies before is given up. */
	assert_int_equal(packet(7, 0), MR_TRACK_PLACED);
	told(1, MR_TRACK_MISSED, 6, 1);
	assert_int_equal(packet(6, 0), MR_TRACK_LATE);
	assert_int_equal(packet(8, 0), MR_TRACK_PLACED);
	assert_int_equal(packet(9, 0), MR_TRACK_PLACED);
	assert_int_equal(mr_track_open(&w.st), 8);
	for (uint64_t i = 11; i < 20; i++)
		if (i != 15)
			assert_int_equal(packet(i, 0), MR_TRACK_PLACED);
	end();
	assert_int_equal(w.st.missing, 5);
	assert_int_equal(w.st.units + w.st.missing, 21);
}

static void heaps_are_whole_when_all_their_bytes_came(void **state)
{
	(void)state;
	for (uint64_t h = 0; h < 10; h++)
		for (uint64_t at = 0; at < 8000; at += 1000) {
			if (h == 4 && at == 3000)
				continue;
			if (h == 5 && at == 7000) /* the end: only the heap's length tells it */
				continue;
			assert_int_equal(part(70 - h, at, 1000, 8000), MR_TRACK_PLACED);
			if (h == 6 && at == 2000)
				assert_int_equal(part(70 - h, at, 1000, 8000), MR_TRACK_DUPLICATE);
		}
	/* The last is whole, so what comes again of it is a duplicate; of 66, late. */
	assert_int_equal(part(61, 0, 1000, 8000), MR_TRACK_DUPLICATE);
	end();
	assert_int_equal(w.st.missing, 2000);
	assert_int_equal(w.st.units, 78000);
	assert_int_equal(w.st.duplicate, 2);
	assert_int_equal(w.queue.head, 2);
	told(0, MR_TRACK_MISSED, 66, 1000);
	told(1, MR_TRACK_MISSED, 65, 1000);
}

static void parts_of_two_heaps_may_come_mixed_and_in_any_order(void **state)
{
	(void)state;
	for (int at = 7; at >= 0; at--)
		for (uint64_t h = 0; h < 2; h++)
			(void)part(h, (uint64_t)at * 100, 100, 800);
	/* From behind: each part lies before all that came, so no gap is split. */
	assert_int_equal(w.st.placed, 16);
	assert_int_equal(w.st.missing, 0);
	assert_int_equal(part(0, 0, 100, 800), MR_TRACK_DUPLICATE);
	/* A third makes room by the one that waits longest. */
	(void)part(2, 0, 100, 800);
	(void)part(3, 0, 100, 800);
	(void)part(4, 0, 100, 800);
	assert_int_equal(w.st.missing, 700);
	told(0, MR_TRACK_MISSED, 2, 700);
	assert_int_equal(part(2, 100, 100, 800), MR_TRACK_LATE);
	end();
}

static void a_heap_that_is_whole_gives_its_place_away(void **state)
{
	(void)state;
	(void)part(1, 0, 100, 200);
	(void)part(2, 0, 100, 200);
	(void)part(2, 100, 100, 200);
	(void)part(3, 0, 100, 200);
	assert_int_equal(part(1, 100, 100, 200), MR_TRACK_PLACED);
	assert_int_equal(part(3, 100, 100, 200), MR_TRACK_PLACED);
	end();
	assert_int_equal(w.st.missing, 0);
}

/* All at one time, as the packets of one batch are. */
static void the_heap_that_was_opened_first_gives_way(void **state)
{
	static const uint8_t heap[] = {1, 2, 1, 1, 3, 4, 3, 4}, at[] = {0, 0, 1, 2, 0, 0, 1, 1};

	(void)state;
	w.b.now_ns = 0;
	for (uint32_t i = 0; i < MR_ARRAY_LEN(heap); i++) {
		(void)part(heap[i], at[i] * 100, 100, heap[i] > 2 ? 200 : 400);
		w.b.now_ns = 0;
	}
	/* 1 has three of four parts, 2 one; 3 and 4 are whole. */
	assert_int_equal(w.st.missing, 100 + 300);
	assert_int_equal(w.st.late, 0);
	told(0, MR_TRACK_MISSED, 1, 100);
	told(1, MR_TRACK_MISSED, 2, 300);
	setup(state);
	(void)part(1, 0, 100, 200);
	w.b.now_ns = w.st.u.h.heap[0].since_ns;
	mr_track_age(&w.b, &w.st, 1000);
	assert_int_equal(w.st.missing, 0);
}

static void a_heap_without_a_length_misses_what_lies_between(void **state)
{
	(void)state;
	(void)part(9, 0, 100, 0);
	(void)part(9, 300, 100, 0);
	end();
	assert_int_equal(w.st.missing, 200);
	told(0, MR_TRACK_MISSED, 9, 200);
}

/* IPFIX of unknown templates: how far the number goes on is not known. */
static void after_unknown_units_the_next_number_is_believed(void **state)
{
	const struct mr_seen unknown = {
		.seq = 115, .modulus = 1ull << 32, .track = MR_TRACK_COUNT, .state = MR_SEEN_OK};

	(void)state;
	(void)numbered(100, 5, 1ull << 32);
	(void)numbered(110, 5, 1ull << 32);
	w.st.received++;
	w.st.unknown++;
	(void)mr_track_packet(&w.b, &w.st, &unknown, 0, 0);
	assert_int_equal(w.st.missing, 5);
	assert_int_equal(numbered(130, 5, 1ull << 32), MR_TRACK_PLACED);
	assert_int_equal(numbered(135, 5, 1ull << 32), MR_TRACK_PLACED);
	end();
	assert_int_equal(w.st.missing, 5);
	assert_int_equal(w.st.units, 20);
}

static void events_that_find_the_queue_full_are_counted(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 2 * (EVENTS + 10 + MR_TRACK_GAPS) + 1; i += 2)
		(void)packet(i, 1ull << 32);
	assert_int_equal(w.queue.head, EVENTS);
	assert_int_equal(w.queue.lost, 10);
	assert_int_equal(w.st.missing, EVENTS + 10);
}

static uint64_t drawn = 1;

static uint32_t draw(uint32_t below)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(drawn >> 33) % below;
}

/*
 * Any order within 40 packets, with loss and repetition: nothing is placed twice, a duplicate was
 * placed before, and what was sent up to the last is there, missing, or open.
 */
static void whatever_comes_the_books_are_right(void **state)
{
	static uint8_t placed[4000];

	for (uint32_t run = 0; run < 300; run++) {
		const uint64_t modulus = moduli[2 + draw(MR_ARRAY_LEN(moduli) - 2)];
		const uint64_t from = first_of(modulus);
		const uint32_t spread = 1 + draw(40), loss = draw(20);
		uint64_t highest = 0;

		setup(state);
		memset(placed, 0, sizeof(placed));
		assert_int_equal(packet(from, modulus), MR_TRACK_PLACED);
		placed[0] = 1;
		for (uint32_t i = 1; i < 3000; i++) {
			const uint64_t n = i + draw(spread);
			enum mr_track_class c;

			if (draw(100) < loss)
				continue;
			c = packet(from + n, modulus);
			if (c == MR_TRACK_PLACED) {
				assert_int_equal(placed[n], 0);
				placed[n] = 1;
			} else if (c == MR_TRACK_DUPLICATE) {
				assert_int_equal(placed[n], 1);
			} else {
				assert_int_equal(c, MR_TRACK_LATE);
			}
			highest = n > highest ? n : highest;
			assert_int_equal(
				w.st.units + w.st.missing + mr_track_open(&w.st), highest + 1);
			assert_books();
		}
		end();
		assert_int_equal(w.st.units + w.st.missing, highest + 1);
	}
}

#define CASE(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_whole_stream_is_whole_across_the_wrap_of_every_modulus),
		CASE(programmed_faults_are_counted_exactly_at_every_modulus),
		CASE(records_are_the_unit_where_numbers_count_them),
		CASE(a_gap_of_exactly_one_modulus_is_seen_by_a_clock_and_by_nothing_else),
		CASE(a_clock_may_be_off_by_a_part_of_its_period),
		CASE(a_clock_that_is_set_is_told_and_nothing_is_missing_for_it),
		CASE(a_clock_that_is_off_by_more_than_half_a_period_was_set),
		CASE(a_rate_may_change),
		CASE(reorder_and_duplicates_are_seen_by_a_clock),
		CASE(frames_begin_anew_each_second),
		CASE(a_sender_that_begins_anew_is_told_and_its_packets_are_placed),
		CASE(what_follows_the_last_number_is_the_first),
		CASE(a_row_of_packets_that_had_come_is_a_restart),
		CASE(a_packet_that_is_expected_follows_nothing_that_is_held),
		CASE(packets_without_units_are_neither_twice_nor_late),
		CASE(a_second_may_have_fewer_frames),
		CASE(a_long_gap_is_counted_though_the_clock_is_not_exact),
		CASE(the_heap_that_was_opened_first_gives_way),
		CASE(what_is_open_at_a_restart_is_missing),
		CASE(one_packet_from_far_away_is_late_and_changes_nothing),
		CASE(an_uptime_that_goes_back_is_a_restart_at_once),
		CASE(gaps_are_given_up_by_number_by_window_and_by_age),
		CASE(a_gap_that_is_filled_from_the_middle_becomes_two),
		CASE(heaps_are_whole_when_all_their_bytes_came),
		CASE(parts_of_two_heaps_may_come_mixed_and_in_any_order),
		CASE(a_heap_that_is_whole_gives_its_place_away),
		CASE(a_heap_without_a_length_misses_what_lies_between),
		CASE(after_unknown_units_the_next_number_is_believed),
		CASE(events_that_find_the_queue_full_are_counted),
		CASE(whatever_comes_the_books_are_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
