/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every form of mr_rx_describe against the scalar one, on mbufs made up here: good
 * ones, and each way in which one can be unusual or wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_mbuf.h>

#include "mr_base.h"
#include "mr_ring_abi.h"
#include "mr_rx_describe.h"

#define N_MAX 70u
#define BUFFER 2048u
#define REGION UINT64_C(0x7f1234560000)
#define REGION_BYTES (UINT64_C(8) << 30) /* offsets with bits on both sides of 32 */
#define SEED 0x6d696c6cu

static struct mr_rx_window window;
static struct rte_mbuf mbuf[N_MAX];
static struct rte_mbuf *burst[N_MAX];

static const struct {
	const char *name;
	mr_rx_describe_fn fn;
} form[] = {
	{"scalar", mr_rx_describe_scalar},
#if defined(__x86_64__)
	{"avx2", mr_rx_describe_avx2},
#endif
};

static bool runs_here(uint32_t f)
{
#if defined(__x86_64__)
	if (form[f].fn == mr_rx_describe_avx2)
		return __builtin_cpu_supports("avx2");
#endif
	return form[f].fn != NULL;
}

static uint64_t random_below(uint64_t n)
{
	static uint64_t x = SEED;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x % n;
}

static void at(struct rte_mbuf *m, uint64_t offset)
{
	m->buf_addr = (void *)(uintptr_t)(REGION + offset);
}

static void length_is(struct rte_mbuf *m, uint16_t length)
{
	m->data_len = length;
	m->pkt_len = length;
}

/* What a driver gives; everything that is not looked at is noise. */
static void make_good(uint32_t i)
{
	struct rte_mbuf *m = &mbuf[i];
	uint16_t length = (uint16_t)(14 + random_below(BUFFER - RTE_PKTMBUF_HEADROOM - 13));

	for (size_t b = 0; b < sizeof(*m); b++)
		((uint8_t *)m)[b] = (uint8_t)random_below(256);
	at(m, random_below(window.limit / MR_UNIT + 1) * MR_UNIT);
	m->data_off = RTE_PKTMBUF_HEADROOM;
	rte_mbuf_refcnt_set(m, 1);
	m->nb_segs = 1;
	length_is(m, length);
	burst[i] = m;
}

/* Changes to a good one; all from the first bad one on are to be refused. */
static void first_buffer(struct rte_mbuf *m)
{
	at(m, 0);
}
static void last_buffer(struct rte_mbuf *m)
{
	at(m, window.limit);
}
static void head_moved_on(struct rte_mbuf *m)
{
	m->data_off = 142;
	length_is(m, 60);
}
static void head_moved_back(struct rte_mbuf *m)
{
	m->data_off = 0;
}
static void head_at_the_end(struct rte_mbuf *m)
{
	m->data_off = BUFFER - 60;
	length_is(m, 60);
}
static void empty(struct rte_mbuf *m)
{
	length_is(m, 0);
}
static void longest(struct rte_mbuf *m)
{
	length_is(m, BUFFER - RTE_PKTMBUF_HEADROOM);
}
static void head_far(struct rte_mbuf *m)
{
	m->data_off = UINT16_MAX;
	length_is(m, 60);
}
static void head_too_far_by_one(struct rte_mbuf *m)
{
	m->data_off = BUFFER - 59;
	length_is(m, 60);
}
static void too_long_by_one(struct rte_mbuf *m)
{
	length_is(m, BUFFER - RTE_PKTMBUF_HEADROOM + 1);
}
static void of_all_lengths(struct rte_mbuf *m)
{
	length_is(m, UINT16_MAX);
}
static void longer_than_its_segment_by_one(struct rte_mbuf *m)
{
	m->pkt_len = m->data_len + 1u;
}
static void longer_than_its_segment_by_64_kib(struct rte_mbuf *m)
{
	m->pkt_len = m->data_len + (1u << 16);
}
static void shorter_than_its_segment(struct rte_mbuf *m)
{
	m->pkt_len = 0;
	m->data_len = 60;
}
static void beyond_by_a_unit(struct rte_mbuf *m)
{
	at(m, window.limit + MR_UNIT);
}
static void beyond_by_4_gib(struct rte_mbuf *m)
{
	at(m, window.limit + (UINT64_C(1) << 32));
}
static void beyond_what_a_position_holds(struct rte_mbuf *m)
{
	at(m, UINT64_C(1) << 38);
}
static void before_by_a_unit(struct rte_mbuf *m)
{
	at(m, -(uint64_t)MR_UNIT);
}
static void in_ordinary_memory(struct rte_mbuf *m)
{
	m->buf_addr = mbuf;
}
static void without_address(struct rte_mbuf *m)
{
	m->buf_addr = NULL;
}
static void off_by_one(struct rte_mbuf *m)
{
	m->buf_addr = (uint8_t *)m->buf_addr + 1;
}
static void off_by_half(struct rte_mbuf *m)
{
	m->buf_addr = (uint8_t *)m->buf_addr - MR_UNIT / 2;
}
static void shared(struct rte_mbuf *m)
{
	rte_mbuf_refcnt_set(m, 2);
}
static void shared_by_all(struct rte_mbuf *m)
{
	rte_mbuf_refcnt_set(m, UINT16_MAX);
}
static void owned_by_nobody(struct rte_mbuf *m)
{
	rte_mbuf_refcnt_set(m, 0);
}
static void of_two_segments(struct rte_mbuf *m)
{
	m->nb_segs = 2;
}
static void of_many_segments(struct rte_mbuf *m)
{
	m->nb_segs = 0x101;
}
static void of_no_segment(struct rte_mbuf *m)
{
	m->nb_segs = 0;
}

static const struct {
	void (*change)(struct rte_mbuf *m);
	bool good;
} kind[] = {
	{first_buffer, true},
	{last_buffer, true},
	{head_moved_on, true},
	{head_moved_back, true},
	{head_at_the_end, true},
	{empty, true},
	{longest, true},
	{head_far, false},
	{head_too_far_by_one, false},
	{too_long_by_one, false},
	{of_all_lengths, false},
	{longer_than_its_segment_by_one, false},
	{longer_than_its_segment_by_64_kib, false},
	{shorter_than_its_segment, false},
	{beyond_by_a_unit, false},
	{beyond_by_4_gib, false},
	{beyond_what_a_position_holds, false},
	{before_by_a_unit, false},
	{in_ordinary_memory, false},
	{without_address, false},
	{off_by_one, false},
	{off_by_half, false},
	{shared, false},
	{shared_by_all, false},
	{owned_by_nobody, false},
	{of_two_segments, false},
	{of_many_segments, false},
	{of_no_segment, false},
};

/* Runs every form on the first n; good: the sum and the descriptors are these. */
static void check(uint32_t n, bool good)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += mbuf[i].data_len;
	for (uint32_t f = 0; f < MR_ARRAY_LEN(form); f++) {
		struct mr_desc_in d[N_MAX + 1];

		if (!runs_here(f))
			continue;
		memset(d, 0xa5, sizeof(d));
		if (form[f].fn(&window, burst, n, (uint64_t *)d) !=
			(good ? sum : MR_RX_DESCRIBE_BAD))
			fail_msg("%s, %u mbufs: wrong sum or judgement", form[f].name, n);
		for (uint32_t i = 0; good && i < n; i++) {
			assert_true(REGION + (uint64_t)d[i].position * MR_UNIT ==
				(uint64_t)(uintptr_t)mbuf[i].buf_addr);
			assert_int_equal(d[i].length, mbuf[i].data_len);
			assert_int_equal(d[i].head, mbuf[i].data_off);
		}
		assert_int_equal(d[n].position, 0xa5a5a5a5);
	}
}

static void good_bursts_of_every_length_are_described(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= N_MAX; n++) {
		for (uint32_t i = 0; i < n; i++)
			make_good(i);
		check(n, true);
	}
}

static void one_of_each_kind_at_every_place_is_judged_alike(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < MR_ARRAY_LEN(kind); k++) {
		for (uint32_t n = 1; n <= N_MAX; n++) {
			for (uint32_t i = 0; i < n; i++)
				make_good(i);
			for (uint32_t i = 0; i < n; i++) {
				struct rte_mbuf before = mbuf[i];

				kind[k].change(&mbuf[i]);
				check(n, kind[k].good);
				mbuf[i] = before;
			}
		}
	}
}

static void mixtures_are_judged_alike(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 20000; round++) {
		uint32_t n = 1 + (uint32_t)random_below(N_MAX);
		bool good = true;

		for (uint32_t i = 0; i < n; i++) {
			make_good(i);
			if (random_below(32) == 0) {
				uint32_t k = (uint32_t)random_below(MR_ARRAY_LEN(kind));

				kind[k].change(&mbuf[i]);
				good &= kind[k].good;
			}
		}
		check(n, good);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_bursts_of_every_length_are_described),
		cmocka_unit_test(one_of_each_kind_at_every_place_is_judged_alike),
		cmocka_unit_test(mixtures_are_judged_alike),
	};

	mr_rx_window_init(&window, REGION, REGION_BYTES, BUFFER);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
