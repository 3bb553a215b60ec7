/* SPDX-License-Identifier: BSD-3-Clause */
/* rx and tx of a lane. */
#include "lane_fixture.h"

static void an_idle_kernel_gets_a_partial_slot_at_once(void **state)
{
	struct world *w = *state;

	send_frames(3);
	assert_int_equal(mr_rx_poll(&w->l->rx, 100), 3);
	assert_int_equal(counter(w, MR_C_slots_given), 1);
	assert_int_equal(mr_ring_in(&w->l->ring, 0)->count, 3);
	assert_int_equal(counter(w, MR_C_rx_bytes), 60 + 61 + 62);
	assert_int_equal(mr_lane_in_flight(w->l), 3);
	assert_balanced(w);
}

/* NVIDIA/l2fwd-nv src/main.cpp:432: a batch waits for ever for the packets that it lacks. */
static void a_busy_kernel_gets_a_partial_slot_after_the_timeout(void **state)
{
	struct world *w = *state;

	send_frames(1);
	mr_rx_poll(&w->l->rx, 100);
	send_frames(2);
	assert_int_equal(mr_rx_poll(&w->l->rx, 200), 2);
	assert_int_equal(mr_rx_poll(&w->l->rx, 200 + TIMEOUT - 1), 0);
	assert_int_equal(counter(w, MR_C_slots_given), 1);
	assert_int_equal(mr_lane_in_flight(w->l), 3);
	mr_rx_poll(&w->l->rx, 200 + TIMEOUT);
	assert_int_equal(counter(w, MR_C_slots_given), 2);
	assert_int_equal(counter(w, MR_C_slots_timeout), 1);
	assert_balanced(w);
}

static void a_full_slot_is_given_and_the_next_burst_opens_another(void **state)
{
	struct world *w = *state;

	send_frames(BATCH + 3);
	mr_rx_poll(&w->l->rx, 1);
	mr_rx_poll(&w->l->rx, 2);
	assert_int_equal(counter(w, MR_C_slots_full), 1);
	assert_int_equal(counter(w, MR_C_slots_given), 1);
	assert_int_equal(mr_rx_fill(&w->l->rx), 3);
	assert_int_equal(mr_lane_in_flight(w->l), BATCH + 3);
	assert_balanced(w);
}

static void descriptors_say_where_the_frame_is(void **state)
{
	struct world *w = *state;
	struct rte_mbuf *m = frame(77);
	struct mr_desc_in *d;

	m->data_off = 131; /* a head that an earlier lane's stage moved */
	assert_int_equal(rte_ring_enqueue(env.in, m), 0);
	mr_rx_poll(&w->l->rx, 1);
	d = mr_slot_desc_in(mr_ring_in(&w->l->ring, 0));
	assert_ptr_equal(env.region + (size_t)d->position * MR_UNIT, m->buf_addr);
	assert_int_equal(d->head, 131);
	assert_int_equal(d->length, 77);
}

static void unusable_buffers_are_dropped_by_name_and_the_rest_keeps_its_order(void **state)
{
	struct world *w = *state;
	struct rte_mbuf *shared = frame(61), *chained = frame(62),
			*good[2] = {frame(60), frame(64)};
	struct rte_mbuf *foreign = rte_pktmbuf_alloc(env.foreign);

	foreign->data_len = 63;
	foreign->pkt_len = 63;
	rte_mbuf_refcnt_update(shared, 1);
	rte_pktmbuf_chain(chained, frame(100));
	rte_ring_enqueue(env.in, good[0]);
	rte_ring_enqueue(env.in, shared);
	rte_ring_enqueue(env.in, chained);
	rte_ring_enqueue(env.in, foreign);
	rte_ring_enqueue(env.in, good[1]);
	assert_int_equal(mr_rx_poll(&w->l->rx, 1), 5);
	assert_int_equal(counter(w, MR_C_rx_packets), 5);
	assert_int_equal(counter(w, MR_C_rx_bytes), 60 + 61 + 162 + 63 + 64);
	assert_int_equal(counter(w, MR_C_rx_drop_shared), 1);
	assert_int_equal(counter(w, MR_C_rx_drop_oversize), 1);
	assert_int_equal(counter(w, MR_C_rx_drop_foreign), 1);
	assert_int_equal(mr_ring_in(&w->l->ring, 0)->count, 2);
	assert_int_equal(mr_slot_desc_in(mr_ring_in(&w->l->ring, 0))[0].length, 60);
	assert_int_equal(mr_slot_desc_in(mr_ring_in(&w->l->ring, 0))[1].length, 64);
	assert_ptr_equal(w->mbufs[1], good[1]);
	assert_balanced(w);
	rte_pktmbuf_free(shared);
}

static void a_frame_that_leaves_its_buffer_or_its_segment_is_dropped_as_oversize(void **state)
{
	struct world *w = *state;
	struct rte_mbuf *far = frame(60), *lies = frame(60), *last = frame(60);

	far->data_off = ELEMENT - 59;
	lies->pkt_len = 61;
	last->data_off = ELEMENT - 60;
	rte_ring_enqueue(env.in, far);
	rte_ring_enqueue(env.in, lies);
	rte_ring_enqueue(env.in, last);
	assert_int_equal(mr_rx_poll(&w->l->rx, 1), 3);
	assert_int_equal(counter(w, MR_C_rx_drop_oversize), 2);
	assert_int_equal(mr_ring_in(&w->l->ring, 0)->count, 1);
	assert_int_equal(mr_slot_desc_in(mr_ring_in(&w->l->ring, 0))[0].head, ELEMENT - 60);
	assert_balanced(w);
}

/* NVIDIA/l2fwd-nv src/main.cpp:421: the program exits when the next item is not free. */
static void a_full_ring_blocks_and_counts_nothing_lost(void **state)
{
	struct world *w = *state;

	send_frames(SLOTS * BATCH + 5);
	for (uint32_t i = 0; i < SLOTS + 3; i++)
		mr_rx_poll(&w->l->rx, i);
	assert_int_equal(counter(w, MR_C_rx_packets), SLOTS * BATCH);
	assert_int_equal(counter(w, MR_C_ring_full), 3);
	assert_int_equal(rte_ring_count(env.in), 5);
	assert_int_equal(mr_counters_dropped(&w->l->counters), 0);
	assert_balanced(w);
}

/* NVIDIA/l2fwd-nv src/main.cpp:421: the program exits when the next item is not free. */
static void a_full_ring_sheds_by_name(void **state)
{
	struct world *w = *state;

	w->l->rx.shed = true;
	send_frames(SLOTS * BATCH + 5);
	for (uint32_t i = 0; i < SLOTS + 3; i++)
		mr_rx_poll(&w->l->rx, i);
	assert_int_equal(counter(w, MR_C_rx_packets), SLOTS * BATCH + 5);
	assert_int_equal(counter(w, MR_C_rx_drop_shed), 5);
	assert_int_equal(rte_ring_count(env.in), 0);
	assert_balanced(w);
}

/*
 * DPDK lib/gpudev/gpudev.c rte_gpu_comm_cleanup_list: packets are forgotten instead of freed, and
 * those behind an address of 0 are not.
 */
static void unchanged_slots_leave_in_order_through_the_first_port(void **state)
{
	struct world *w = *state;
	struct rte_mbuf *m;

	send_frames(6);
	mr_rx_poll(&w->l->rx, 10);
	assert_int_equal(mr_tx_poll(&w->l->tx, 20), 0);
	finish(w, 0, NULL, NULL);
	assert_int_equal(mr_tx_poll(&w->l->tx, 30), 6);
	assert_int_equal(counter(w, MR_C_tx_packets), 6);
	assert_int_equal(counter(w, MR_C_tx_bytes), counter(w, MR_C_rx_bytes));
	for (uint32_t i = 0; i < 6; i++) {
		m = take(env.out[0]);
		assert_int_equal(m->data_len, 60 + i);
		rte_pktmbuf_free(m);
	}
	assert_int_equal(w->l->latency.count, 6);
	assert_int_equal(w->l->latency.max_ns, 20);
	assert_int_equal(mr_lane_in_flight(w->l), 0);
	assert_balanced(w);
}

static void fill_out(int port)
{
	while (rte_ring_free_count(env.out[port]) > 0)
		assert_int_equal(rte_ring_enqueue(env.out[port], frame(60)), 0);
}

static void nothing(uint32_t i, struct mr_desc_out *d, void *arg)
{
	(void)i;
	(void)d;
	(void)arg;
}

static void a_slot_that_is_not_called_plain_leaves_by_its_results(void **state)
{
	struct world *w = *state;

	send_frames(BATCH);
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, nothing, NULL);
	assert_int_equal(mr_tx_poll(&w->l->tx, 2), BATCH);
	assert_int_equal(rte_ring_count(env.out[0]), BATCH);
	assert_int_equal(counter(w, MR_C_tx_bytes), counter(w, MR_C_rx_bytes));
	assert_int_equal(w->l->latency.count, BATCH);
	assert_balanced(w);
}

static void of_a_plain_slot_no_result_is_believed(void **state)
{
	struct world *w = *state;
	struct rte_mbuf *m;

	send_frames(3);
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, NULL, NULL);
	memset(w->out + sizeof(struct mr_slot_out), 0xff, 3 * sizeof(struct mr_desc_out));
	assert_int_equal(mr_tx_poll(&w->l->tx, 2), 3);
	for (uint32_t i = 0; i < 3; i++) {
		m = take(env.out[0]);
		assert_int_equal(m->data_len, 60 + i);
		assert_int_equal(m->data_off, RTE_PKTMBUF_HEADROOM);
		rte_pktmbuf_free(m);
	}
	assert_balanced(w);
}

static void a_plain_slot_that_is_refused_in_part_waits_and_leaves_in_order(void **state)
{
	struct world *w = *state;
	struct rte_mbuf *m;

	fill_out(0);
	for (int i = 0; i < 3; i++)
		rte_pktmbuf_free(take(env.out[0]));
	send_frames(8);
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, NULL, NULL);
	assert_int_equal(mr_tx_poll(&w->l->tx, 2), 8);
	assert_int_equal(counter(w, MR_C_tx_packets), 3);
	assert_int_equal(counter(w, MR_C_tx_bytes), 60 + 61 + 62);
	assert_int_equal(w->l->tx.waiting, 5);
	assert_int_equal(w->l->tx.cursor, 0);
	assert_balanced(w);
	while (rte_ring_count(env.out[0]) > 3)
		rte_pktmbuf_free(take(env.out[0]));
	assert_int_equal(mr_tx_poll(&w->l->tx, 3), 5);
	for (uint32_t i = 0; i < 8; i++) {
		m = take(env.out[0]);
		assert_int_equal(m->data_len, 60 + i);
		rte_pktmbuf_free(m);
	}
	assert_int_equal(counter(w, MR_C_tx_bytes), counter(w, MR_C_rx_bytes));
	assert_balanced(w);
}

static void to_second_port_shorter(uint32_t i, struct mr_desc_out *d, void *arg)
{
	(void)arg;
	if (i == 2) {
		d->port = 1;
		d->length = 20;
		d->head += 14;
	}
}

static void a_changed_frame_leaves_with_its_new_head_and_length(void **state)
{
	struct world *w = *state;
	struct rte_mbuf *m;

	send_frames(4);
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, to_second_port_shorter, NULL);
	assert_int_equal(mr_tx_poll(&w->l->tx, 2), 4);
	assert_int_equal(rte_ring_count(env.out[0]), 3);
	m = take(env.out[1]);
	assert_int_equal(m->data_len, 20);
	assert_int_equal(m->pkt_len, 20);
	assert_int_equal(m->data_off, RTE_PKTMBUF_HEADROOM + 14);
	rte_pktmbuf_free(m);
	assert_int_equal(counter(w, MR_C_tx_bytes), 60 + 61 + 63 + 20);
	assert_balanced(w);
}

static void bad(uint32_t i, struct mr_desc_out *d, void *arg)
{
	(void)arg;
	switch (i) {
	case 0:
		d->length = ELEMENT; /* head + length runs into the neighbour */
		break;
	case 1:
		d->head = UINT16_MAX;
		break;
	case 2:
		d->verdict = MR_DROP + 1;
		break;
	case 3:
		d->verdict = MR_DROP;
		d->arg = MR_REASON_COUNT;
		break;
	case 4:
		d->length = MR_FRAME_MIN - 1;
		break;
	case 5:
		d->port = 2;
		break;
	case 6:
		d->verdict = MR_DROP;
		d->arg = MR_REASON_consumed;
		break;
	default:
		break;
	}
}

static void impossible_results_never_reach_a_port(void **state)
{
	struct world *w = *state;

	send_frames(BATCH);
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, bad, NULL);
	assert_int_equal(mr_tx_poll(&w->l->tx, 2), BATCH);
	assert_int_equal(counter(w, MR_C_tx_drop_bad_result), 5);
	assert_int_equal(counter(w, MR_C_tx_drop_no_port), 1);
	assert_int_equal(counter(w, MR_C_gpu_drop_consumed), 1);
	assert_int_equal(counter(w, MR_C_tx_packets), 1);
	assert_int_equal(rte_ring_count(env.out[0]), 1);
	assert_balanced(w);
}

static void reason(uint32_t i, struct mr_desc_out *d, void *arg)
{
	(void)arg;
	d->verdict = MR_DROP;
	d->arg = (uint16_t)i;
}

static void every_reason_has_its_counter(void **state)
{
	struct world *w = *state;

	send_frames(MR_REASON_COUNT);
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, reason, NULL);
	mr_tx_poll(&w->l->tx, 2);
#define REASON(name, help) assert_int_equal(counter(w, MR_C_gpu_drop_##name), 1);
#include "mr_reasons.def"
#undef REASON
	assert_balanced(w);
}

static void masks(uint32_t i, struct mr_desc_out *d, void *arg)
{
	static const uint16_t mask[] = {3, 2, 0, 6, 0x8000};

	(void)arg;
	d->verdict = MR_TX_MASK;
	d->arg = mask[i];
}

static void a_mask_sends_one_buffer_to_several_ports(void **state)
{
	struct world *w = *state;
	struct rte_mbuf *a, *b;

	send_frames(5);
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, masks, NULL);
	assert_int_equal(mr_tx_poll(&w->l->tx, 2), 5);
	/* 3: both. 2: second. 0: nowhere. 6: second, and one that is not there. 0x8000: not there.
	 */
	assert_int_equal(counter(w, MR_C_made_packets), 2);
	assert_int_equal(counter(w, MR_C_tx_packets), 4);
	assert_int_equal(counter(w, MR_C_tx_drop_no_port), 3);
	assert_balanced(w);
	a = take(env.out[0]);
	b = take(env.out[1]);
	assert_ptr_equal(a, b);
	assert_int_equal(rte_mbuf_refcnt_read(a), 2);
	rte_pktmbuf_free(a);
	rte_pktmbuf_free(b);
}

/* A lane whose port splits frames: the kernel sees HEADER bytes of each. */
#define HEADER 64u

static void split(struct world *w)
{
	w->l->rx.describe = mr_rx_describe_split;
	w->l->tx.split = true;
}

static struct rte_mbuf *split_frame(uint16_t rest)
{
	struct rte_mbuf *m = frame(HEADER);

	assert_int_equal(rte_pktmbuf_chain(m, frame(rest)), 0);
	return m;
}

/* A frame that left, in two parts and of so many bytes. */
static void is_split(struct rte_ring *r, uint32_t header, uint32_t rest)
{
	struct rte_mbuf *m = take(r);

	assert_int_equal(m->nb_segs, 2);
	assert_int_equal(m->data_len, header);
	assert_int_equal(m->pkt_len, header + rest);
	assert_int_equal(m->next->data_len, rest);
	assert_null(m->next->next);
	rte_pktmbuf_free(m);
}

static void of_a_split_frame_the_kernel_sees_the_first_part_and_all_of_it_leaves(void **state)
{
	struct world *w = *state;
	struct rte_mbuf *m, *first = split_frame(1000);

	split(w);
	rte_ring_enqueue(env.in, first);
	rte_ring_enqueue(env.in, frame(60)); /* ends in the first buffer */
	rte_ring_enqueue(env.in, split_frame(1));
	assert_int_equal(mr_rx_poll(&w->l->rx, 1), 3);
	assert_int_equal(counter(w, MR_C_rx_bytes), HEADER + 1000 + 60 + HEADER + 1);
	assert_int_equal(mr_slot_desc_in(mr_ring_in(&w->l->ring, 0))[0].length, HEADER);
	assert_int_equal(mr_slot_desc_in(mr_ring_in(&w->l->ring, 0))[1].length, 60);
	assert_ptr_equal(env.region +
			(size_t)mr_slot_desc_in(mr_ring_in(&w->l->ring, 0))[0].position * MR_UNIT,
		first->buf_addr);
	finish(w, 0, NULL, NULL);
	assert_int_equal(mr_tx_poll(&w->l->tx, 2), 3);
	assert_int_equal(counter(w, MR_C_tx_bytes), counter(w, MR_C_rx_bytes));
	is_split(env.out[0], HEADER, 1000);
	m = take(env.out[0]);
	assert_int_equal(m->nb_segs, 1);
	assert_int_equal(m->pkt_len, 60);
	rte_pktmbuf_free(m);
	is_split(env.out[0], HEADER, 1);
	assert_balanced(w);
}

static void a_split_frames_first_part_may_move_and_the_rest_follows(void **state)
{
	struct world *w = *state;

	split(w);
	for (uint16_t i = 0; i < 4; i++)
		rte_ring_enqueue(env.in, split_frame((uint16_t)(100 + i)));
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, to_second_port_shorter, NULL);
	assert_int_equal(mr_tx_poll(&w->l->tx, 2), 4);
	is_split(env.out[0], HEADER, 100);
	is_split(env.out[0], HEADER, 101);
	is_split(env.out[1], 20, 102);
	is_split(env.out[0], HEADER, 103);
	assert_int_equal(counter(w, MR_C_tx_bytes), 3 * HEADER + 20 + 406);
	assert_balanced(w);
}

static void a_split_slot_that_is_refused_in_part_counts_what_left(void **state)
{
	struct world *w = *state;

	split(w);
	fill_out(0);
	rte_pktmbuf_free(take(env.out[0]));
	for (uint16_t i = 0; i < 3; i++)
		rte_ring_enqueue(env.in, split_frame((uint16_t)(100 + i)));
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, NULL, NULL);
	assert_int_equal(mr_tx_poll(&w->l->tx, 2), 3);
	assert_int_equal(counter(w, MR_C_tx_bytes), HEADER + 100);
	assert_int_equal(w->l->tx.waiting, 2);
	while (rte_ring_count(env.out[0]) > 1)
		rte_pktmbuf_free(take(env.out[0]));
	assert_int_equal(mr_tx_poll(&w->l->tx, 3), 2);
	assert_int_equal(counter(w, MR_C_tx_bytes), counter(w, MR_C_rx_bytes));
	for (uint32_t i = 0; i < 3; i++)
		is_split(env.out[0], HEADER, 100 + i);
	assert_balanced(w);
}

static void both_parts_of_a_split_frame_are_sent_to_several_ports_or_freed(void **state)
{
	struct world *w = *state;
	struct rte_mbuf *a, *b;

	split(w);
	for (uint16_t i = 0; i < 5; i++)
		rte_ring_enqueue(env.in, split_frame(100));
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, masks, NULL);
	assert_int_equal(mr_tx_poll(&w->l->tx, 2), 5);
	assert_int_equal(counter(w, MR_C_tx_packets), 4);
	assert_int_equal(counter(w, MR_C_tx_drop_no_port), 3);
	assert_balanced(w);
	a = take(env.out[0]);
	b = take(env.out[1]);
	assert_ptr_equal(a, b);
	assert_int_equal(rte_mbuf_refcnt_read(a), 2);
	assert_int_equal(rte_mbuf_refcnt_read(a->next), 2);
	rte_pktmbuf_free(a);
	assert_int_equal(rte_mbuf_refcnt_read(b->next), 1);
	rte_pktmbuf_free(b);
}

static void split_frames_that_are_not_as_they_should_be_are_dropped_whole(void **state)
{
	struct world *w = *state;
	struct rte_mbuf *three = split_frame(100), *shared = split_frame(101), *rest;

	split(w);
	rest = shared->next;
	rte_pktmbuf_chain(three, frame(100));
	rte_mbuf_refcnt_update(rest, 1);
	rte_ring_enqueue(env.in, split_frame(99));
	rte_ring_enqueue(env.in, three);
	rte_ring_enqueue(env.in, shared);
	rte_ring_enqueue(env.in, split_frame(102));
	assert_int_equal(mr_rx_poll(&w->l->rx, 1), 4);
	assert_int_equal(counter(w, MR_C_rx_bytes), 4 * HEADER + 99 + 200 + 101 + 102);
	assert_int_equal(counter(w, MR_C_rx_drop_oversize), 1);
	assert_int_equal(counter(w, MR_C_rx_drop_shared), 1);
	assert_int_equal(mr_ring_in(&w->l->ring, 0)->count, 2);
	finish(w, 0, NULL, NULL);
	assert_int_equal(mr_tx_poll(&w->l->tx, 2), 2);
	assert_int_equal(counter(w, MR_C_tx_bytes), 2 * HEADER + 99 + 102);
	is_split(env.out[0], HEADER, 99);
	is_split(env.out[0], HEADER, 102);
	assert_balanced(w);
	rte_pktmbuf_free(rest);
}

static void to_port_i_mod_2(uint32_t i, struct mr_desc_out *d, void *arg)
{
	(void)arg;
	d->port = i % 2;
}

static void a_stalled_port_loses_by_name_and_the_other_goes_on(void **state)
{
	struct world *w = *state;

	fill_out(0);
	send_frames(8);
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, to_port_i_mod_2, NULL);
	mr_tx_poll(&w->l->tx, 100);
	assert_int_equal(rte_ring_count(env.out[1]), 4);
	assert_int_equal(w->l->tx.waiting, 4);
	assert_int_equal(mr_lane_in_flight(w->l), 4);
	assert_balanced(w);
	mr_tx_poll(&w->l->tx, 100 + TX_TIMEOUT - 1);
	assert_int_equal(w->l->tx.waiting, 4);
	mr_tx_poll(&w->l->tx, 100 + TX_TIMEOUT);
	assert_int_equal(counter(w, MR_C_tx_drop_stalled), 4);
	assert_int_equal(mr_lane_in_flight(w->l), 0);
	assert_balanced(w);
}

static void a_port_that_recovers_gets_what_waited_in_order(void **state)
{
	struct world *w = *state;
	struct rte_mbuf *m;

	fill_out(0);
	send_frames(8);
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, NULL, NULL);
	mr_tx_poll(&w->l->tx, 100);
	assert_int_equal(w->l->tx.waiting, 8);
	drain_ring(env.out[0]);
	assert_int_equal(mr_tx_poll(&w->l->tx, 200), 8);
	/* A latency ends where the wait in a backlog begins. */
	assert_int_equal(w->l->latency.count, 8);
	assert_int_equal(w->l->latency.max_ns, 99);
	for (uint32_t i = 0; i < 8; i++) {
		m = take(env.out[0]);
		assert_int_equal(m->data_len, 60 + i);
		rte_pktmbuf_free(m);
	}
	assert_int_equal(counter(w, MR_C_tx_bytes), counter(w, MR_C_rx_bytes));
	assert_balanced(w);
}

static void limits_that_are_given_are_in_force_once_the_lane_publishes(void **state)
{
	struct world *w = *state;

	w->l->publish_tsc = 50;
	fill_out(0);
	send_frames(8);
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, NULL, NULL);
	mr_tx_poll(&w->l->tx, 100);
	assert_int_equal(mr_lane_keep(w->l, 100, 100), 150);
	assert_int_equal(w->l->tx.timeout_tsc, TX_TIMEOUT);
	mr_lane_limit(w->l, 77, 0);
	assert_int_equal(mr_lane_keep(w->l, 149, 150), 150);
	assert_int_equal(w->l->tx.timeout_tsc, TX_TIMEOUT);
	assert_int_equal(mr_lane_keep(w->l, 150, 150), 200);
	assert_int_equal(w->l->rx.timeout_tsc, 77);
	/* What waits already does so for ever now, and then by another limit. */
	mr_tx_poll(&w->l->tx, 100 + 10 * TX_TIMEOUT);
	assert_int_equal(w->l->tx.waiting, 8);
	mr_lane_limit(w->l, 78, 2 * TX_TIMEOUT);
	mr_lane_limit(w->l, 79, 3 * TX_TIMEOUT);
	assert_int_equal(mr_lane_keep(w->l, 300, 200), 350);
	assert_int_equal(w->l->rx.timeout_tsc, 79);
	mr_tx_poll(&w->l->tx, 100 + 3 * TX_TIMEOUT - 1);
	assert_int_equal(w->l->tx.waiting, 8);
	mr_tx_poll(&w->l->tx, 100 + 3 * TX_TIMEOUT);
	assert_int_equal(counter(w, MR_C_tx_drop_stalled), 8);
	assert_balanced(w);
}

static void a_full_backlog_holds_the_slot_at_its_cursor(void **state)
{
	struct world *w = *state;

	w->l->tx.q[0].limit = 5;
	fill_out(0);
	send_frames(8);
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, NULL, NULL);
	mr_tx_poll(&w->l->tx, 100);
	assert_int_equal(w->l->tx.waiting, 5);
	assert_int_equal(w->l->tx.cursor, 5);
	assert_int_equal(mr_ring_outstanding(&w->l->ring), 1);
	assert_int_equal(mr_lane_in_flight(w->l), 8);
	assert_balanced(w);
	mr_tx_poll(&w->l->tx, 100 + TX_TIMEOUT);
	assert_int_equal(counter(w, MR_C_tx_drop_stalled), 5);
	assert_int_equal(w->l->tx.waiting, 3);
	assert_int_equal(mr_ring_outstanding(&w->l->ring), 0);
	assert_balanced(w);
}

static void a_port_without_link_loses_at_once_by_name(void **state)
{
	struct world *w = *state;

	fill_out(0);
	w->l->tx.q[0].link_down = 1;
	send_frames(3);
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, NULL, NULL);
	mr_tx_poll(&w->l->tx, 2);
	mr_tx_poll(&w->l->tx, 3);
	assert_int_equal(counter(w, MR_C_tx_drop_link), 3);
	assert_int_equal(mr_lane_in_flight(w->l), 0);
	assert_balanced(w);
}

static void without_a_timeout_a_packet_waits_for_ever(void **state)
{
	struct world *w = *state;

	w->l->tx.timeout_tsc = 0;
	fill_out(0);
	send_frames(3);
	mr_rx_poll(&w->l->rx, 1);
	finish(w, 0, NULL, NULL);
	mr_tx_poll(&w->l->tx, 2);
	mr_tx_poll(&w->l->tx, UINT64_MAX / 2);
	assert_int_equal(w->l->tx.waiting, 3);
	assert_int_equal(mr_counters_dropped(&w->l->counters), 0);
}

static void slots_finished_out_of_order_leave_in_order(void **state)
{
	struct world *w = *state;

	send_frames(2 * BATCH);
	mr_rx_poll(&w->l->rx, 1);
	mr_rx_poll(&w->l->rx, 2);
	w->l->rx.workers = 2;
	mr_rx_flush(&w->l->rx);
	finish(w, 1, NULL, NULL);
	assert_int_equal(mr_tx_poll(&w->l->tx, 3), 0);
	finish(w, 0, NULL, NULL);
	assert_int_equal(mr_tx_poll(&w->l->tx, 4), BATCH);
	assert_int_equal(mr_tx_poll(&w->l->tx, 5), BATCH);
	assert_balanced(w);
}

static int flush_once(void *arg)
{
	uint32_t *flushes = arg;

	return (*flushes)++ == 1 ? -EIO : 0;
}

/*
 * The kernel could read what was in the slot's buffers before, and the lane send it. DPDK
 * lib/gpudev/gpudev.c rte_gpu_comm_populate_list_pkts: a barrier that failed is ignored.
 */
static void a_slot_whose_flush_failed_is_never_seen_and_nothing_behind_it_leaves(void **state)
{
	struct world *w = *state;
	uint32_t flushes = 0;

	w->l->rx.flush = flush_once;
	w->l->rx.flush_arg = &flushes;
	w->l->rx.by_call = true;
	w->l->rx.workers = 3;
	for (uint32_t seq = 0; seq < 3; seq++) {
		send_frames(2);
		assert_int_equal(mr_rx_poll(&w->l->rx, seq), 2);
	}
	assert_int_equal(flushes, 3);
	assert_int_equal(mr_load_relaxed(&mr_ring_in(&w->l->ring, 0)->ready), 1);
	assert_int_not_equal(mr_load_relaxed(&mr_ring_in(&w->l->ring, 1)->ready), 2);
	assert_int_equal(mr_load_relaxed(&mr_ring_in(&w->l->ring, 2)->ready), 3);
	finish(w, 0, NULL, NULL);
	finish(w, 2, NULL, NULL);
	assert_int_equal(mr_tx_poll(&w->l->tx, 4), 2);
	assert_int_equal(mr_tx_poll(&w->l->tx, 5), 0);
	assert_int_equal(mr_lane_in_flight(w->l), 4);
	assert_int_equal(counter(w, MR_C_tx_packets), 2);
	assert_balanced(w);
}

int main(void)
{
	char *argv[] = {"test_lane", "--no-huge", "--no-pci", "-m", "128", "--no-telemetry",
		"--no-shconf", "--file-prefix", "mr-test-lane", "--log-level", "error", "-l", "0"};
	const struct CMUnitTest tests[] = {
		CASE(an_idle_kernel_gets_a_partial_slot_at_once),
		CASE(a_busy_kernel_gets_a_partial_slot_after_the_timeout),
		CASE(a_full_slot_is_given_and_the_next_burst_opens_another),
		CASE(descriptors_say_where_the_frame_is),
		CASE(unusable_buffers_are_dropped_by_name_and_the_rest_keeps_its_order),
		CASE(a_frame_that_leaves_its_buffer_or_its_segment_is_dropped_as_oversize),
		CASE(a_full_ring_blocks_and_counts_nothing_lost),
		CASE(a_full_ring_sheds_by_name),
		CASE(unchanged_slots_leave_in_order_through_the_first_port),
		CASE(a_slot_that_is_not_called_plain_leaves_by_its_results),
		CASE(of_a_plain_slot_no_result_is_believed),
		CASE(a_plain_slot_that_is_refused_in_part_waits_and_leaves_in_order),
		CASE(a_changed_frame_leaves_with_its_new_head_and_length),
		CASE(impossible_results_never_reach_a_port),
		CASE(every_reason_has_its_counter),
		CASE(a_mask_sends_one_buffer_to_several_ports),
		CASE(of_a_split_frame_the_kernel_sees_the_first_part_and_all_of_it_leaves),
		CASE(a_split_frames_first_part_may_move_and_the_rest_follows),
		CASE(a_split_slot_that_is_refused_in_part_counts_what_left),
		CASE(both_parts_of_a_split_frame_are_sent_to_several_ports_or_freed),
		CASE(split_frames_that_are_not_as_they_should_be_are_dropped_whole),
		CASE(a_stalled_port_loses_by_name_and_the_other_goes_on),
		CASE(a_port_that_recovers_gets_what_waited_in_order),
		CASE(limits_that_are_given_are_in_force_once_the_lane_publishes),
		CASE(a_full_backlog_holds_the_slot_at_its_cursor),
		CASE(a_port_without_link_loses_at_once_by_name),
		CASE(without_a_timeout_a_packet_waits_for_ever),
		CASE(slots_finished_out_of_order_leave_in_order),
		CASE(a_slot_whose_flush_failed_is_never_seen_and_nothing_behind_it_leaves),
	};

	if (rte_eal_init((int)(sizeof(argv) / sizeof(argv[0])), argv) < 0)
		return 1;
	return cmocka_run_group_tests(tests, setup_env, NULL);
}
