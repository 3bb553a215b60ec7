/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes whose frames change memory, by the kernel or by copies of the CPU, between two rings
 * of DPDK's net_ring driver. The test plays the kernel: it moves heads, changes lengths and
 * gives answers that cannot be, which no built-in stage does. Copies are the software device's.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "mr_gpu_priv.h"
#include "mr_relay_slot.h"
#include "mr_staged.h"

#define SLOTS 4u
#define BATCH 8u
#define ELEMENT 1024u
#define BUFFERS 64u
#define RING 64u
#define FRAME 100u
#define PATIENCE_NS 20000000000ull

static struct {
	struct rte_mempool *rx_pool, *tx_pool;
	uint8_t *rx_region, *tx_region;
	struct rte_ring *in, *out;
	uint16_t port_in, port_out;
	struct mr_gpu *gpu;
} env;

struct world {
	struct mr_lane lane;
	struct mr_staged hop;
	struct mr_ring_note notes[SLOTS];
	struct rte_mbuf *mbufs[SLOTS * BATCH], *tx_mbufs[SLOTS * BATCH], *wait[RING];
	uint64_t wait_tsc[RING];
	uint8_t in[SLOTS * MR_SLOT_BYTES(BATCH)] MR_CACHE_ALIGNED;
	uint8_t out[SLOTS * MR_SLOT_BYTES(BATCH)] MR_CACHE_ALIGNED;
	bool staged;         /* the copier is there */
	uint64_t region, to; /* where the kernel finds frames, and copies them to */
	uint32_t seq;        /* the kernel's next slot */
	struct mr_err err;
};

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* A lane of which frames arrive or leave staged, or in the two regions. */
static struct world *open_world(bool gathers, bool scatters, bool moves)
{
	struct world *w = aligned_alloc(MR_CACHE_LINE, MR_ALIGN_UP(sizeof(*w), MR_CACHE_LINE));
	struct mr_gpu_region rx = {.kernel = address(env.rx_region), .bytes = BUFFERS * ELEMENT};
	struct mr_gpu_region tx = {.kernel = address(env.tx_region), .bytes = BUFFERS * ELEMENT};
	struct mr_gpu_lane l = {.name = "l0",
		.region = gathers ? NULL : &rx,
		.tx_region = scatters ? NULL : &tx,
		.tx_copy = moves,
		.slots = SLOTS,
		.batch = BATCH,
		.workers = 1,
		.room = ELEMENT,
		.tx_count = 1};

	memset(w, 0, sizeof(*w));
	w->staged = gathers || scatters;
	l.copier = w->staged ? &w->hop.copier : NULL;
	l.ring = &w->hop.relay.kernel;
	if (mr_gpu_open("g0", "sim,mem=4MiB,map=0", 60000, &env.gpu, &w->err) != 0 ||
		mr_gpu_load(env.gpu, &l, 1, 0, 100, &w->err) != 0)
		fail_msg("%s", w->err.msg);
	w->region = gathers ? env.gpu->lanes[0].copies_kernel : rx.kernel;
	w->to = scatters ? env.gpu->lanes[0].copies_kernel : tx.kernel;
	assert_int_equal(
		mr_ring_init(&w->lane.ring, w->in, NULL, w->out, SLOTS, BATCH, 0, &w->err), 0);
	w->lane.rx = (struct mr_rx){.ring = &w->lane.ring,
		.counters = &w->lane.counters,
		.describe = mr_rx_describe_best(),
		.workers = 1,
		.port = env.port_in};
	mr_rx_window_init(&w->lane.rx.window, address(env.rx_region), BUFFERS * ELEMENT, ELEMENT);
	w->lane.tx = (struct mr_tx){.ring = &w->lane.ring,
		.counters = &w->lane.counters,
		.latency = &w->lane.latency,
		.room = ELEMENT,
		.tx_count = 1,
		.ns_per_tsc = 1u << MR_TX_TSC_SHIFT};
	w->lane.tx.q[0] = (struct mr_txq){.port = env.port_out,
		.wait = w->wait,
		.wait_tsc = w->wait_tsc,
		.mask = RING - 1,
		.limit = RING};
	w->lane.mbufs = w->mbufs;
	w->lane.slots = w->notes;
	mr_lane_link(&w->lane);
	w->lane.state = MR_LANE_RUN;
	w->hop.relay.lane = &w->lane;
	w->hop.relay.tx_pool = moves ? env.tx_pool : NULL;
	w->hop.relay.tx_mbufs = w->tx_mbufs;
	w->hop.relay.tx_region = address(env.tx_region);
	w->hop.gathers = gathers;
	w->hop.scatters = scatters;
	return w;
}

/* Every buffer is back, and every packet has a name. */
static void close_world(struct world *w)
{
	void *m;

	while (rte_ring_dequeue(env.out, &m) == 0)
		rte_pktmbuf_free(m);
	assert_int_equal(mr_lane_in_flight(&w->lane), 0);
	assert_true(mr_counters_balanced(&w->lane.counters, 0));
	assert_int_equal(rte_mempool_avail_count(env.rx_pool), BUFFERS);
	assert_int_equal(rte_mempool_avail_count(env.tx_pool), BUFFERS);
	assert_int_equal(mr_gpu_close(env.gpu, &w->err), 0);
	free(w);
}

/* Frame number n: of FRAME + n bytes, each of them n. */
static void send_frame(uint32_t n)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(env.rx_pool);

	assert_non_null(m);
	memset(m->buf_addr, 0xee, ELEMENT);
	m->data_len = (uint16_t)(FRAME + n);
	m->pkt_len = FRAME + n;
	memset(rte_pktmbuf_mtod(m, void *), (int)n, FRAME + n);
	assert_int_equal(rte_ring_enqueue(env.in, m), 0);
}

static uint32_t turn(struct world *w)
{
	uint32_t moved = w->staged ? mr_staged_moves(&w->hop) : mr_relay_moves(&w->hop.relay);

	return moved + mr_relay_lane_moves(&w->lane, 0);
}

/* What the kernel answers for packet i of a slot. */
typedef void answer_fn(struct mr_desc_out *d, uint8_t *frame, uint32_t i);

/* Plays the kernel for one slot, its last step, the copy, included; false: none is ready. */
static bool serve(struct world *w, answer_fn *answer)
{
	struct mr_ring *r = &w->hop.relay.kernel;
	struct mr_slot_in *in = mr_ring_in(r, w->seq);
	struct mr_slot_out *out = (struct mr_slot_out *)(uintptr_t)mr_ring_out(r, w->seq);
	const struct mr_desc_in *d = mr_slot_desc_in(in);
	struct mr_desc_out *o = (struct mr_desc_out *)(out + 1);

	if (mr_load_acquire(&in->ready) != w->seq + 1)
		return false;
	out->plain = answer == NULL;
	for (uint32_t i = 0; i < in->count; i++) {
		uint8_t *buffer = (uint8_t *)(uintptr_t)(w->region + d[i].position * 64ull);

		o[i] = (struct mr_desc_out){.length = d[i].length, .head = d[i].head};
		assert_int_equal(d[i].head, RTE_PKTMBUF_HEADROOM);
		if (answer != NULL)
			answer(&o[i], buffer, i);
		if (r->tx_positions && o[i].verdict != MR_DROP &&
			o[i].head + o[i].length <= ELEMENT)
			memcpy((uint8_t *)(uintptr_t)w->to + mr_ring_tx_position(r, in)[i] * 64ull +
					o[i].head,
				buffer + o[i].head, o[i].length);
	}
	mr_store_release(&out->done, ++w->seq);
	return true;
}

/* Until n packets have left or were dropped; copies take their time. */
static void run(struct world *w, uint32_t n, answer_fn *answer)
{
	uint64_t until = mr_clock_ns() + PATIENCE_NS;
	const uint64_t *c = w->lane.counters.c;

	while (c[MR_C_tx_packets] + mr_counters_dropped(&w->lane.counters) < n) {
		turn(w);
		serve(w, answer);
		if (mr_clock_ns() > until)
			fail_msg("nothing moves any more");
	}
}

/* Takes the next frame that left, which must be this one from `from` on, in its own pool. */
static void expect(uint32_t n, uint32_t length, uint32_t head, const struct rte_mempool *pool)
{
	struct rte_mbuf *m = NULL;

	assert_int_equal(rte_ring_dequeue(env.out, (void **)&m), 0);
	assert_ptr_equal(m->pool, pool);
	assert_int_equal(m->data_off, head);
	assert_int_equal(m->data_len, length);
	assert_int_equal(m->pkt_len, length);
	for (uint32_t i = 0; i < length; i++)
		assert_int_equal(*rte_pktmbuf_mtod_offset(m, uint8_t *, i), n);
	rte_pktmbuf_free(m);
}

/* Every way but the one without a hop, and what the counters have to say of each. */
static const struct way_row {
	bool gathers, scatters, moves;
} ways[] = {
	{false, false, true},
	{true, false, true},
	{false, true, true},
	{true, true, false},
};

static void check_copies(const struct world *w, const struct way_row *r, uint64_t in, uint64_t out)
{
	const uint64_t *c = w->lane.counters.c;

	assert_int_equal(
		c[MR_C_host_bytes_copied], (r->gathers ? in : 0) + (r->scatters ? out : 0));
	assert_int_equal(c[MR_C_gpu_bytes_copied], r->moves ? out : 0);
}

static void plain_frames_leave_whole_and_in_order_from_the_pool_of_their_way_out(void **state)
{
	(void)state;
	for (size_t k = 0; k < MR_ARRAY_LEN(ways); k++) {
		const struct way_row *r = &ways[k];
		struct world *w = open_world(r->gathers, r->scatters, r->moves);
		uint64_t bytes = 0;

		for (uint32_t n = 0; n < 40; n++) {
			send_frame(n);
			bytes += FRAME + n;
		}
		run(w, 40, NULL);
		for (uint32_t n = 0; n < 40; n++)
			expect(n, FRAME + n, RTE_PKTMBUF_HEADROOM,
				r->moves ? env.tx_pool : env.rx_pool);
		check_copies(w, r, bytes, bytes);
		assert_int_equal(w->lane.counters.c[MR_C_tx_bytes], bytes);
		close_world(w);
	}
}

/* By position: a head moved down and up, a drop, a tail cut, and answers that cannot be. */
static void change(struct mr_desc_out *d, uint8_t *buffer, uint32_t i)
{
	switch (i % 8) {
	case 0: /* four bytes more in front */
		d->head -= 4;
		d->length += 4;
		memset(buffer + d->head, buffer[d->head + 4], 4);
		break;
	case 1: /* twenty less */
		d->head += 20;
		d->length -= 20;
		break;
	case 2:
		d->verdict = MR_DROP;
		d->arg = MR_REASON_policy;
		break;
	case 3: /* to the buffer's last byte */
		memset(buffer + d->head, buffer[d->head], ELEMENT - d->head);
		d->length = (uint16_t)(ELEMENT - d->head);
		break;
	case 4:
		d->length = UINT16_MAX;
		break;
	case 5: /* to the buffer's first byte */
		memset(buffer, buffer[d->head], d->head);
		d->length += d->head;
		d->head = 0;
		break;
	case 6:
		d->head = UINT16_MAX;
		break;
	default:
		d->length -= 30;
	}
}

static void moved_heads_new_lengths_and_wrong_answers_are_as_on_any_path(void **state)
{
	(void)state;
	for (size_t k = 0; k < MR_ARRAY_LEN(ways); k++) {
		const struct way_row *r = &ways[k];
		const struct rte_mempool *pool = r->moves ? env.tx_pool : env.rx_pool;
		struct world *w = open_world(r->gathers, r->scatters, r->moves);
		const uint64_t *c = w->lane.counters.c;

		for (uint32_t n = 0; n < 24; n++)
			send_frame(n);
		run(w, 24, change);
		for (uint32_t n = 0; n < 24; n++) {
			uint32_t head = RTE_PKTMBUF_HEADROOM, length = FRAME + n;

			if (n % 8 == 0)
				expect(n, length + 4, head - 4, pool);
			else if (n % 8 == 1)
				expect(n, length - 20, head + 20, pool);
			else if (n % 8 == 3)
				expect(n, ELEMENT - head, head, pool);
			else if (n % 8 == 5)
				expect(n, length + head, 0, pool);
			else if (n % 8 == 7)
				expect(n, length - 30, head, pool);
		}
		assert_int_equal(c[MR_C_gpu_drop_policy], 3);
		assert_int_equal(c[MR_C_tx_drop_bad_result], 6);
		close_world(w);
	}
}

/* By position: what a chain may do in place, and what it must not have done. */
static void change_in_place(struct mr_desc_out *d, uint8_t *buffer, uint32_t i)
{
	switch (i % 6) {
	case 0:
		d->head += 20;
		d->length -= 20;
		break;
	case 1: /* a byte in front is the neighbour's */
		d->head--;
		break;
	case 2:
		d->verdict = MR_DROP;
		d->arg = MR_REASON_policy;
		break;
	case 3:
		d->length -= 30;
		break;
	case 4: /* and so is one behind */
		d->length++;
		break;
	default:
		memset(buffer + d->head, 0x5a, d->length);
	}
}

static void packed_frames_move_little_else_and_no_result_may_lie_beside_its_frame(void **state)
{
	(void)state;
	for (size_t k = 1; k < MR_ARRAY_LEN(ways); k++) {
		const struct way_row *r = &ways[k];
		const struct rte_mempool *pool = r->moves ? env.tx_pool : env.rx_pool;
		struct world *w = open_world(r->gathers, r->scatters, r->moves);
		const uint64_t *c = w->lane.counters.c;
		uint64_t bytes = 0, sent = 0, spread;

		/* With their room first, for the difference. */
		for (uint32_t n = 0; n < 24; n++)
			send_frame(n);
		run(w, 24, NULL);
		for (uint32_t n = 0; n < 24; n++)
			expect(n, FRAME + n, RTE_PKTMBUF_HEADROOM, pool);
		spread = c[MR_C_bus_bytes_copied];
		w->hop.packed = true;
		for (uint32_t n = 0; n < 24; n++) {
			send_frame(n);
			bytes += FRAME + n;
		}
		run(w, 48, NULL);
		for (uint32_t n = 0; n < 24; n++)
			expect(n, FRAME + n, RTE_PKTMBUF_HEADROOM, pool);
		sent = bytes * (uint64_t)(r->gathers + r->scatters);
		assert_in_range(c[MR_C_bus_bytes_copied] - spread, sent,
			sent + 24 * 63 * (uint64_t)(r->gathers + r->scatters));
		assert_true(spread > 3 * (c[MR_C_bus_bytes_copied] - spread));

		for (uint32_t n = 0; n < 24; n++)
			send_frame(n);
		run(w, 72, change_in_place);
		for (uint32_t n = 0; n < 24; n++) {
			uint32_t head = RTE_PKTMBUF_HEADROOM, length = FRAME + n, i = n % BATCH % 6;

			if (i == 0)
				expect(n, length - 20, head + 20, pool);
			else if (i == 3)
				expect(n, length - 30, head, pool);
			else if (i == 5)
				expect(0x5a, length, head, pool);
		}
		assert_int_equal(c[MR_C_gpu_drop_policy], 3);
		assert_int_equal(c[MR_C_tx_drop_bad_result], 9);
		close_world(w);
	}
}

/* Somebody keeps the second pool but for five buffers. */
static void frames_without_a_buffer_to_leave_in_are_dropped_by_name(void **state)
{
	struct rte_mbuf *kept[BUFFERS - 5];

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		struct world *w = open_world(ways[k].gathers, ways[k].scatters, true);
		uint32_t came = 0;

		assert_int_equal(rte_pktmbuf_alloc_bulk(env.tx_pool, kept, BUFFERS - 5), 0);
		for (uint32_t n = 0; n < 16; n++)
			send_frame(n);
		run(w, 16, NULL);
		for (; rte_ring_count(env.out) != 0; came++)
			/* The first of each slot found one. */
			expect(came, FRAME + came, RTE_PKTMBUF_HEADROOM, env.tx_pool);
		assert_int_equal(came, w->lane.counters.c[MR_C_tx_packets]);
		assert_int_equal(came, 5);
		assert_int_equal(w->lane.counters.c[MR_C_tx_drop_no_buffer], 11);
		assert_int_equal(w->lane.counters.c[MR_C_tx_bytes], 5 * FRAME + 0 + 1 + 2 + 3 + 4);
		rte_pktmbuf_free_bulk(kept, BUFFERS - 5);
		close_world(w);
	}
}

/* Slots that no frame found a buffer for are out as others are: none is opened over them. */
static void slots_without_frames_fill_the_ring_as_others_do(void **state)
{
	struct rte_mbuf *kept[BUFFERS];

	(void)state;
	/* The last frame's slot full, and one frame short of it. */
	for (uint32_t less = 0; less < 2; less++) {
		struct world *w = open_world(false, false, true);
		uint32_t offered = (SLOTS + 1) * BATCH - less;

		w->lane.rx.workers = SLOTS + 1; /* a part of a slot is given at once */
		assert_int_equal(rte_pktmbuf_alloc_bulk(env.tx_pool, kept, BUFFERS), 0);
		for (uint32_t n = 0; n < offered; n++)
			send_frame(n);
		for (uint32_t i = 0; i < SLOTS + 2; i++) {
			turn(w);
			assert_in_range(mr_ring_outstanding(&w->lane.ring), 0, SLOTS);
		}
		assert_int_equal(mr_ring_outstanding(&w->lane.ring), SLOTS);
		assert_int_equal(rte_ring_count(env.in), BATCH - less);
		assert_int_equal(w->lane.counters.c[MR_C_tx_drop_no_buffer], SLOTS * BATCH);
		run(w, offered, NULL);
		rte_pktmbuf_free_bulk(kept, BUFFERS);
		close_world(w);
	}
}

static int flush_fails_the_second_time(void *times)
{
	return ++*(uint32_t *)times == 2 ? -EIO : 0;
}

/* What its buffers held before could be read if the kernel saw the slot, or one behind it. */
static void no_slot_is_given_on_from_the_one_that_was_not_flushed(void **state)
{
	(void)state;
	for (size_t k = 0; k < MR_ARRAY_LEN(ways); k++) {
		struct world *w = open_world(ways[k].gathers, ways[k].scatters, ways[k].moves);
		uint32_t times = 0;

		if (ways[k].gathers) { /* not flushed: the copy's stream orders its frames */
			close_world(w);
			continue;
		}
		w->lane.rx.flush = flush_fails_the_second_time;
		w->lane.rx.flush_arg = &times;
		mr_lane_link(&w->lane);
		for (uint32_t n = 0; n < 3 * BATCH; n++)
			send_frame(n);
		run(w, BATCH, NULL);
		for (uint32_t i = 0; i < 8; i++) {
			turn(w);
			assert_false(serve(w, NULL));
		}
		assert_int_equal(times, 3);
		assert_int_equal(w->hop.relay.kernel.head, 1);
		assert_int_equal(w->lane.counters.c[MR_C_tx_packets], BATCH);
		assert_int_equal(mr_lane_in_flight(&w->lane), 2 * BATCH);
		/* As the end of the process, with the books in order. */
		for (uint32_t i = 1; i < 3; i++) {
			rte_pktmbuf_free_bulk(w->notes[i].mbufs, BATCH);
			w->notes[i].count = 0;
		}
		w->lane.counters.c[MR_C_tx_drop_stalled] += 2 * BATCH;
		close_world(w);
	}
}

/* A slot that is done is not sent before its frames are back. */
static void a_staged_slot_waits_for_its_copy_back(void **state)
{
	struct world *w = open_world(true, true, false);
	const uint32_t *copied = &w->hop.copier.copied[0];
	uint64_t until = mr_clock_ns() + PATIENCE_NS;
	uint32_t before = *copied;

	(void)state;
	send_frame(1);
	while (!serve(w, NULL) && mr_clock_ns() < until)
		turn(w);
	assert_int_equal(w->seq, 1);
	/* Done, but nobody has asked for the copy: the lane's turn alone sends nothing. */
	for (int i = 0; i < 100; i++)
		mr_relay_lane_moves(&w->lane, 0);
	assert_int_equal(mr_load_acquire(copied), before);
	assert_int_equal(rte_ring_count(env.out), 0);
	run(w, 1, NULL);
	assert_int_equal(mr_load_acquire(copied), 1);
	expect(1, FRAME + 1, RTE_PKTMBUF_HEADROOM, env.rx_pool);
	close_world(w);
}

static struct rte_mempool *make_pool(const char *name, uint8_t **ret_region)
{
	uint8_t *region = aligned_alloc(65536, BUFFERS * ELEMENT);
	struct rte_pktmbuf_extmem mem = {.buf_ptr = region,
		.buf_iova = address(region),
		.buf_len = BUFFERS * ELEMENT,
		.elt_size = ELEMENT};

	*ret_region = region;
	return rte_pktmbuf_pool_create_extbuf(name, BUFFERS, 0, 0, ELEMENT, SOCKET_ID_ANY, &mem, 1);
}

static uint16_t make_port(const char *name, struct rte_ring **ret_ring)
{
	struct rte_eth_conf conf = {0};
	int port;

	*ret_ring = rte_ring_create(name, RING * 2, SOCKET_ID_ANY, 0);
	port = rte_eth_from_rings(name, ret_ring, 1, ret_ring, 1, 0);
	if (port < 0 || rte_eth_dev_configure((uint16_t)port, 1, 1, &conf) != 0 ||
		rte_eth_rx_queue_setup((uint16_t)port, 0, RING, SOCKET_ID_ANY, NULL, env.rx_pool) !=
			0 ||
		rte_eth_tx_queue_setup((uint16_t)port, 0, RING, SOCKET_ID_ANY, NULL) != 0 ||
		rte_eth_dev_start((uint16_t)port) != 0)
		exit(1);
	return (uint16_t)port;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			plain_frames_leave_whole_and_in_order_from_the_pool_of_their_way_out),
		cmocka_unit_test(moved_heads_new_lengths_and_wrong_answers_are_as_on_any_path),
		cmocka_unit_test(
			packed_frames_move_little_else_and_no_result_may_lie_beside_its_frame),
		cmocka_unit_test(frames_without_a_buffer_to_leave_in_are_dropped_by_name),
		cmocka_unit_test(slots_without_frames_fill_the_ring_as_others_do),
		cmocka_unit_test(no_slot_is_given_on_from_the_one_that_was_not_flushed),
		cmocka_unit_test(a_staged_slot_waits_for_its_copy_back),
	};
	char *eal[] = {"test_relay", "--no-huge", "--no-pci", "-m", "64", "--no-telemetry",
		"--no-shconf", "--file-prefix", "mr-test-relay", "--log-level", "error", "-l", "0"};

	if (rte_eal_init((int)MR_ARRAY_LEN(eal), eal) < 0)
		return 1;
	env.rx_pool = make_pool("rx", &env.rx_region);
	env.tx_pool = make_pool("tx", &env.tx_region);
	if (env.rx_pool == NULL || env.tx_pool == NULL)
		return 1;
	env.port_in = make_port("in", &env.in);
	env.port_out = make_port("out", &env.out);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
