/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host build of the persistent kernel over slots made by hand: what it does
 * with descriptors, chains, stages, its control words, and hostile descriptors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <unistd.h>

#include "mr_base.h"
#include "mr_image.h"
#include "mr_ring.h"
#include "mr_stage.h"
#include "mr_tap.h"

#define SLOTS 4u
#define BATCH 16u
#define ROOM 2048u
#define BUFFERS 64u
#define GUARD 64u /* bytes before and after the region that must stay as they are */

struct world {
	uint8_t *memory; /* guard, region, guard */
	uint8_t *region;
	uint8_t *in, *out;
	struct mr_ring ring;
	struct mr_lane_dev lane;
	struct mr_worker_map map[4];
	struct mr_worker_ctl ctl[4] MR_CACHE_ALIGNED;
	struct mr_host_ctl host MR_CACHE_ALIGNED;
	struct mr_launch launch;
	uint64_t counters_out[4][MR_COUNTERS_MAX], counters_acc[4][MR_COUNTERS_MAX];
	struct mr_sim_orders orders[4];
	pthread_t thread[4];
	const char *kernel;
	struct mr_tap tap[4];
	struct mr_tap_order order;
	struct mr_tap_ctl tap_ctl[4];
	uint8_t *records;
};

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static int setup(void **state)
{
	struct world *w = aligned_alloc(64, MR_ALIGN_UP(sizeof(*w), 64));
	struct mr_err err = {0};

	memset(w, 0, sizeof(*w));
	w->memory = aligned_alloc(64, BUFFERS * ROOM + 2 * GUARD);
	memset(w->memory, 0xee, BUFFERS * ROOM + 2 * GUARD);
	w->region = w->memory + GUARD;
	w->in = aligned_alloc(64, SLOTS * MR_SLOT_BYTES(BATCH));
	w->out = aligned_alloc(64, SLOTS * MR_SLOT_BYTES(BATCH));
	assert_int_equal(
		mr_ring_init(&w->ring, w->in, NULL, w->out, SLOTS, BATCH, UINT32_MAX - 2, &err), 0);
	w->lane = (struct mr_lane_dev){.region = address(w->region),
		.in = address(w->in),
		.out = address(w->out),
		.workers_ctl = address(w->ctl),
		.counters_out = address(w->counters_out),
		.counters_acc = address(w->counters_acc),
		.region_units = BUFFERS * ROOM / MR_UNIT,
		.room = ROOM,
		.in_stride = MR_SLOT_BYTES(BATCH),
		.out_stride = MR_SLOT_BYTES(BATCH),
		.slots = SLOTS,
		.batch = BATCH,
		.workers = 1,
		.tx_count = 1,
		.first_seq = UINT32_MAX - 2,
		.tap = address(w->tap),
		.tap_order = address(&w->order)};
	for (uint32_t i = 0; i < 4; i++)
		w->map[i] = (struct mr_worker_map){.lane = 0, .worker = i};
	w->launch = (struct mr_launch){.lanes = address(&w->lane),
		.map = address(w->map),
		.host_ctl = address(&w->host),
		.blocks = 1};
	w->kernel = "mr_kernel_thread";
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	for (uint32_t i = 0; i < GUARD; i++) {
		assert_int_equal(w->memory[i], 0xee);
		assert_int_equal(w->region[BUFFERS * ROOM + i], 0xee);
	}
	free(w->memory);
	free(w->in);
	free(w->out);
	free(w->records);
	free(w);
	return 0;
}

struct block {
	struct world *w;
	uint32_t index;
};

static void *block_thread(void *arg)
{
	struct block b = *(struct block *)arg;

	free(arg);
	for (uint32_t i = 0; i < mr_image_sim.kernels_count; i++)
		if (strcmp(mr_image_sim.kernels[i].name, b.w->kernel) == 0)
			mr_image_sim.kernels[i].entry(
				address(&b.w->launch), b.index, &b.w->orders[b.index]);
	return NULL;
}

static void start(struct world *w)
{
	for (uint32_t i = 0; i < w->lane.workers; i++) {
		struct block *b = malloc(sizeof(*b));

		*b = (struct block){w, i};
		assert_int_equal(pthread_create(&w->thread[i], NULL, block_thread, b), 0);
	}
}

static void stop(struct world *w)
{
	mr_store_relaxed(&w->host.exit, 1);
	for (uint32_t i = 0; i < w->lane.workers; i++)
		pthread_join(w->thread[i], NULL);
}

static void stage(struct world *w, enum mr_stage_id id, uint32_t param)
{
	struct mr_chain_dev *c = &w->lane.chain[w->lane.chain_len++];

	c->stage = (uint16_t)id;
	memcpy(c->params[0], &param, sizeof(param));
}

static void give(struct world *w, const struct mr_desc_in *d, uint32_t n)
{
	while (mr_ring_full(&w->ring))
		usleep(10);
	memcpy(mr_slot_desc_in(mr_ring_in(&w->ring, w->ring.head)), d, n * sizeof(*d));
	mr_ring_give(&w->ring, n, 0);
}

static const struct mr_desc_out *take(struct world *w)
{
	const struct mr_slot_out *o;

	while ((o = mr_ring_take(&w->ring)) == NULL)
		usleep(10);
	mr_ring_release(&w->ring);
	return mr_slot_desc_out(o);
}

static uint8_t *frame_at(struct world *w, struct mr_desc_in d)
{
	return w->region + (size_t)d.position * MR_UNIT + d.head;
}

static struct mr_desc_in make(struct world *w, uint32_t buffer, uint32_t length)
{
	struct mr_desc_in d = {
		.position = buffer * ROOM / MR_UNIT, .length = (uint16_t)length, .head = 128};

	for (uint32_t i = 0; i < length; i++)
		frame_at(w, d)[i] = (uint8_t)(i * 7 + buffer);
	return d;
}

static void every_stage_of_a_chain_runs_in_order(void **state)
{
	struct world *w = *state;
	struct mr_desc_in d[3] = {make(w, 1, 60), make(w, 2, 1514), make(w, 3, 61)};
	const struct mr_desc_out *r;

	/* The addresses of the last begin at no multiple of four. */
	d[2].head = 131;
	for (uint32_t i = 0; i < 61; i++)
		frame_at(w, d[2])[i] = (uint8_t)(i * 7 + 3);
	stage(w, MR_STAGE_l2swap, 0);
	stage(w, MR_STAGE_forward, 3);
	start(w);
	give(w, d, 3);
	r = take(w);
	stop(w);
	for (uint32_t k = 0; k < 3; k++) {
		assert_int_equal(r[k].verdict, MR_TX);
		assert_int_equal(r[k].port, 3);
		assert_int_equal(r[k].length, d[k].length);
		assert_int_equal(r[k].head, d[k].head);
		for (uint32_t i = 0; i < d[k].length; i++) {
			uint32_t from = i < 6 ? i + 6 : i < 12 ? i - 6 : i;

			assert_int_equal(frame_at(w, d[k])[i], (uint8_t)(from * 7 + k + 1));
		}
	}
}

static void a_drop_ends_the_chain_and_says_why(void **state)
{
	struct world *w = *state;
	struct mr_desc_in d = make(w, 0, 60);
	const struct mr_desc_out *r;

	stage(w, MR_STAGE_drop, MR_REASON_malformed);
	stage(w, MR_STAGE_forward, 0);
	start(w);
	give(w, &d, 1);
	r = take(w);
	stop(w);
	assert_int_equal(r->verdict, MR_DROP);
	assert_int_equal(r->arg, MR_REASON_malformed);
}

static void descriptors_outside_the_window_are_dropped_untouched(void **state)
{
	struct world *w = *state;
	const uint32_t last = BUFFERS * ROOM / MR_UNIT - ROOM / MR_UNIT;
	const struct mr_desc_in d[] = {
		{.position = last, .length = 60, .head = 128},             /* the last good */
		{.position = last + 1, .length = 60, .head = 0},           /* one unit late */
		{.position = UINT32_MAX, .length = 60, .head = 0},         /* far away */
		{.position = 0, .length = ROOM, .head = 1},                /* one byte long */
		{.position = 0, .length = 14, .head = ROOM - 13},          /* head too far */
		{.position = 0, .length = UINT16_MAX, .head = UINT16_MAX}, /* both */
		{.position = 0, .length = 13, .head = 0},                  /* runt */
		{.position = 0, .length = 0, .head = 0},                   /* nothing */
		{.position = 0, .length = ROOM, .head = 0},                /* exactly the buffer */
	};
	static const int expect[] = {-1, MR_REASON_window, MR_REASON_window, MR_REASON_window,
		MR_REASON_window, MR_REASON_window, MR_REASON_runt, MR_REASON_runt, -1};
	const struct mr_desc_out *r;

	stage(w, MR_STAGE_l2swap, 0);
	start(w);
	give(w, d, MR_ARRAY_LEN(d));
	r = take(w);
	stop(w);
	for (uint32_t i = 0; i < MR_ARRAY_LEN(d); i++) {
		assert_int_equal(r[i].verdict, expect[i] < 0 ? MR_TX : MR_DROP);
		assert_int_equal(r[i].arg, expect[i] < 0 ? 0 : expect[i]);
	}
}

/* A chain, a frame's length, and whether its slot, with good frames around it, is plain. */
static void a_slot_is_plain_if_every_packet_leaves_unchanged_by_the_first_port(void **state)
{
	static const char *const kernel[] = {"mr_kernel_thread", "mr_kernel_warp"};
	static const struct {
		enum mr_stage_id stage;
		uint32_t param, length;
		bool plain;
	} row[] = {
		{MR_STAGE_l2swap, 0, 60, true}, {MR_STAGE_forward, 0, 60, true},
		{MR_STAGE_forward, 1, 60, false}, {MR_STAGE_drop, MR_REASON_policy, 60, false},
		{MR_STAGE_l2swap, 0, 13, false}, /* a runt among them */
	};
	struct world *w = *state;

	start(w);
	for (uint32_t k = 0; k < 2 * MR_ARRAY_LEN(row); k++) {
		struct mr_desc_in d[3] = {
			make(w, 1, 60), make(w, 2, row[k / 2].length), make(w, 3, 1514)};
		const struct mr_desc_out *r;

		stop(w);
		w->host.exit = 0;
		w->kernel = kernel[k % 2];
		w->lane.chain_len = 0;
		w->lane.first_seq = w->ring.head;
		stage(w, row[k / 2].stage, row[k / 2].param);
		start(w);
		give(w, d, 3);
		r = take(w);
		assert_int_equal(((const struct mr_slot_out *)r - 1)->plain, row[k / 2].plain);
	}
	stop(w);
}

static uint32_t reference_sum(const uint8_t *p, uint32_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		sum += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

/* limit 0: all bytes. */
static void sum_frames(struct world *w, uint32_t limit)
{
	struct mr_desc_in d[BATCH];
	uint64_t bytes = 0, sum = 0;

	w->kernel = "mr_kernel_warp";
	stage(w, MR_STAGE_checksum, limit);
	w->lane.chain[0].counter_base = 5;
	for (uint32_t i = 0; i < BATCH; i++) {
		uint32_t length = 14 + i * 101;
		uint32_t summed = limit != 0 && limit < length ? limit : length;

		d[i] = make(w, i, length);
		d[i].head = (uint16_t)(d[i].head + i * 3); /* every place in 16 bytes */
		bytes += summed;
		sum += reference_sum(frame_at(w, d[i]), summed);
	}
	start(w);
	give(w, d, BATCH);
	(void)take(w);
	stop(w);
	assert_int_equal(w->counters_out[0][5], BATCH);
	assert_int_equal(w->counters_out[0][6], bytes);
	assert_int_equal(w->counters_out[0][7], sum);
}

static void checksum_adds_up_what_the_frames_hold(void **state)
{
	sum_frames(*state, 0);
}

static void checksum_stops_at_the_bytes_that_it_was_given(void **state)
{
	sum_frames(*state, 115);
}

static void header_stages_work_in_the_payload_kernel(void **state)
{
	struct world *w = *state;
	struct mr_desc_in d = make(w, 0, 61);
	const struct mr_desc_out *r;

	w->kernel = "mr_kernel_warp";
	stage(w, MR_STAGE_l2swap, 0);
	stage(w, MR_STAGE_checksum, 0);
	stage(w, MR_STAGE_drop, MR_REASON_policy);
	stage(w, MR_STAGE_checksum, 0);
	w->lane.chain[3].counter_base = 10;
	start(w);
	give(w, &d, 1);
	r = take(w);
	stop(w);
	assert_int_equal(r->verdict, MR_DROP);
	assert_int_equal(frame_at(w, d)[0], (uint8_t)(6 * 7));
	assert_int_equal(w->counters_out[0][0], 1);
	assert_int_equal(w->counters_out[0][10], 0); /* behind the drop */
}

static void workers_share_slots_and_order_is_kept(void **state)
{
	struct world *w = *state;
	uint32_t taken = 0, given = 0;

	w->lane.workers = 3; /* does not divide the slots, nor 2^32 */
	stage(w, MR_STAGE_forward, 0);
	start(w);
	while (taken < 3000) {
		while (given < 3000 && !mr_ring_full(&w->ring)) {
			struct mr_desc_in d = {
				.position = 0, .length = (uint16_t)(14 + given % 1000)};

			give(w, &d, 1);
			given++;
		}
		assert_int_equal(take(w)->length, 14 + taken % 1000);
		taken++;
	}
	stop(w);
	assert_int_equal(w->ctl[0].seq + w->ctl[1].seq + w->ctl[2].seq, 3000);
	assert_int_equal(w->ctl[0].seq, 1000);
}

/*
 * NVIDIA/l2fwd-nv src/kernel.cu:143: the guard of every item looks at item 0. DPDK
 * lib/gpudev/gpudev.c rte_gpu_comm_cleanup_list: packets are forgotten instead of freed, and those
 * behind an address of 0 are not.
 */
static void each_slot_is_judged_by_what_it_holds_itself(void **state)
{
	static const uint32_t counts[] = {0, 3, 0, BATCH, 1, 0, 0, 2, BATCH};
	static const uint8_t untouched[sizeof(struct mr_desc_out)] = {
		0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa};
	struct mr_desc_in d[BATCH];
	struct world *w = *state;

	for (uint32_t i = 0; i < BATCH; i++)
		d[i] = make(w, i, 60 + i);
	stage(w, MR_STAGE_forward, 0);
	start(w);
	for (uint32_t k = 0; k < MR_ARRAY_LEN(counts); k++) {
		const struct mr_desc_out *r;

		memset(w->out + (w->ring.head & w->ring.mask) * w->ring.stride + MR_SLOT_HEADER,
			0xaa, BATCH * sizeof(*r));
		give(w, d, counts[k]);
		r = take(w);
		for (uint32_t i = 0; i < BATCH; i++) {
			if (i < counts[k])
				assert_int_equal(r[i].length, 60 + i);
			else
				assert_memory_equal(&r[i], untouched, sizeof(untouched));
		}
	}
	stop(w);
}

/*
 * NVIDIA/l2fwd-nv src/kernel.cu:126: the kernel leaves in silence on an item that the sender has
 * not freed for a lap.
 */
static void a_worker_that_is_a_lap_ahead_waits_and_does_not_leave(void **state)
{
	struct world *w = *state;
	struct mr_desc_in d = make(w, 0, 60);

	stage(w, MR_STAGE_forward, 0);
	start(w);
	for (uint32_t lap = 0; lap < 3; lap++) {
		uint32_t beat;

		for (uint32_t i = 0; i < SLOTS; i++)
			give(w, &d, 1);
		while (mr_load_acquire(&mr_ring_out(&w->ring, w->ring.head - 1)->done) !=
			w->ring.head)
			usleep(10);
		/* All is done and nothing taken: the next slot says what it said a lap ago. */
		beat = mr_load_relaxed(&w->ctl[0].beat);
		while (mr_load_relaxed(&w->ctl[0].beat) - beat < 3) {
			assert_int_equal(mr_load_acquire(&w->ctl[0].left), MR_LEFT_NOT);
			usleep(100);
		}
		assert_int_equal(mr_load_relaxed(&w->ctl[0].seq), (lap + 1) * SLOTS);
		for (uint32_t i = 0; i < SLOTS; i++)
			assert_int_equal(take(w)->length, 60);
	}
	stop(w);
	assert_int_equal(w->ctl[0].left, MR_LEFT_EXIT);
}

static void workers_say_hello_beat_and_leave_on_the_exit_word(void **state)
{
	struct world *w = *state;
	uint32_t beat;

	start(w);
	while (mr_load_relaxed(&w->ctl[0].hello) == 0)
		usleep(100);
	beat = mr_load_relaxed(&w->ctl[0].beat);
	usleep(30000);
	assert_true(mr_load_relaxed(&w->ctl[0].beat) - beat >= 2);
	assert_int_equal(mr_load_acquire(&w->ctl[0].left), MR_LEFT_NOT);
	stop(w);
	assert_int_equal(w->ctl[0].left, MR_LEFT_EXIT);
}

/*
 * NVIDIA/l2fwd-nv src/kernel.cu:126: one thread polls without a heartbeat, and nothing ends the
 * kernel when its host stalls.
 */
static void workers_leave_when_the_host_is_silent(void **state)
{
	struct world *w = *state;
	uint64_t began = mr_clock_ns();

	w->launch.host_timeout_ns = 200000000;
	start(w);
	while (mr_clock_ns() - began < 400000000) { /* a beating host is not left */
		mr_store_relaxed(&w->host.beat, w->host.beat + 1);
		usleep(10000);
	}
	assert_int_equal(mr_load_acquire(&w->ctl[0].left), MR_LEFT_NOT);
	pthread_join(w->thread[0], NULL);
	assert_int_equal(w->ctl[0].left, MR_LEFT_HOST_SILENT);
}

/* The half that is not in force is the host's, whether there are packets or not. */
static void a_reload_is_taken_between_slots_by_busy_and_idle_workers(void **state)
{
	struct world *w = *state;
	struct mr_desc_in d = make(w, 0, 60);

	w->lane.workers = 2;
	stage(w, MR_STAGE_forward, 0);
	start(w);
	for (uint32_t generation = 1; generation < 6; generation++) {
		uint32_t port = generation;

		memcpy(w->lane.chain[0].params[generation % 2], &port, sizeof(port));
		for (uint32_t i = 0; i < 2; i++) {
			give(w, &d, 1);
			assert_int_equal(take(w)->port, generation - 1);
		}
		mr_store_release(&w->host.generation, generation);
		for (uint32_t i = 0; i < 2; i++)
			while (mr_load_acquire(&w->ctl[i].generation) != generation)
				usleep(10);
		give(w, &d, 1);
		assert_int_equal(take(w)->port, generation);
		give(w, &d, 1);
		assert_int_equal(take(w)->port, generation);
	}
	stop(w);
}

/* Has the lane captured: records of a worker, bytes of a frame, and a filter. */
static void capture(struct world *w, uint32_t records, uint32_t snaplen,
	const struct mr_bpf *program, uint32_t count)
{
	const uint32_t stride = MR_TAP_STRIDE(snaplen);

	w->records = realloc(w->records, 4 * records * stride);
	memset(w->records, 0xee, 4 * records * stride);
	w->order = (struct mr_tap_order){.ctl = address(w->tap_ctl),
		.records = address(w->records),
		.mask = records - 1,
		.stride = stride,
		.snaplen = snaplen,
		.count = count};
	memset(w->tap_ctl, 0, sizeof(w->tap_ctl));
	for (uint32_t i = 0; i < count; i++)
		w->order.program[i] = program[i];
	mr_store_release(&w->host.tap, (w->host.tap & ~0xffu) + MR_TAP_NEXT + 1);
}

static void capture_seen(struct world *w, uint32_t tap)
{
	for (uint32_t i = 0; i < w->lane.workers; i++)
		while (mr_load_acquire(&w->ctl[i].tap) != tap)
			usleep(10);
}

static const struct mr_tap_record *record(const struct world *w, uint32_t worker, uint32_t number)
{
	return (const struct mr_tap_record *)(w->records +
		(worker * (w->order.mask + 1) + (number & w->order.mask)) *
			(size_t)w->order.stride);
}

/* The bytes that lie behind it: as they were, and as the chain left them. */
static const uint8_t *before(const struct mr_tap_record *r)
{
	return (const uint8_t *)(r + 1) + r->in.head % 16;
}

static const uint8_t *after(const struct world *w, const struct mr_tap_record *r)
{
	return (const uint8_t *)(r + 1) + MR_TAP_AREA(w->order.snaplen) + r->out.head % 16;
}

static void packets_are_copied_before_and_after_the_chain(void **state)
{
	static const char *const kernel[] = {"mr_kernel_thread", "mr_kernel_warp"};
	struct world *w = *state;

	stage(w, MR_STAGE_l2swap, 0);
	stage(w, MR_STAGE_drop, MR_REASON_policy);
	for (uint32_t k = 0; k < 2; k++) {
		struct mr_desc_in d[4] = {
			make(w, 1, 60), make(w, 2, 13), make(w, 3, 33), make(w, 4, 1514)};
		uint32_t number = w->ring.head, n = 0;
		const struct mr_desc_out *out;

		d[3].head = 131;
		for (uint32_t i = 0; i < 1514; i++)
			frame_at(w, d[3])[i] = (uint8_t)(i * 7 + 4);
		w->kernel = kernel[k];
		w->host.exit = 0;
		w->lane.first_seq = number;
		capture(w, 4, 40, NULL, 0);
		start(w);
		give(w, d, 4);
		out = take(w);
		assert_int_equal(mr_load_acquire(&w->tap_ctl[0].head), 4);
		assert_int_equal(w->tap_ctl[0].lost, 0);
		stop(w);
		for (uint32_t i = 0; i < 4; i++) {
			const struct mr_tap_record *r = record(w, 0, n);
			uint32_t kept = d[i].length < 40 ? d[i].length : 40;

			n++;
			assert_int_equal(r->packet >> 32, number);
			assert_int_equal((uint32_t)r->packet, i);
			assert_in_range(r->time_ns, 1, mr_clock_ns());
			assert_memory_equal(&r->in, &d[i], sizeof(d[i]));
			assert_memory_equal(&r->out, &out[i], sizeof(out[i]));
			assert_int_equal(r->out.arg, i == 1 ? MR_REASON_runt : MR_REASON_policy);
			for (uint32_t at = 0; at < kept; at++) {
				/* A runt does not get to the chain. */
				uint32_t from = i == 1 || at >= 12 ? at : at < 6 ? at + 6 : at - 6;

				assert_int_equal(before(r)[at], (uint8_t)(at * 7 + i + 1));
				assert_int_equal(after(w, r)[at], (uint8_t)(from * 7 + i + 1));
			}
			/* Nothing beyond what was asked for, but to the next multiple of 16. */
			for (uint32_t at = (r->in.head % 16 + kept + 15) / 16 * 16;
				at < MR_TAP_AREA(40); at++)
				assert_int_equal(((const uint8_t *)(r + 1))[at], 0xee);
		}
	}
}

/* Of frames of 60 to 75 bytes, those longer than 70. */
static void a_filter_says_which_packets_are_copied(void **state)
{
	static const struct mr_bpf longer[] = {{MR_BPF_LD | MR_BPF_LEN, 0, 0, 0},
		{MR_BPF_ST, 0, 0, 3}, {MR_BPF_LDX | MR_BPF_MEM, 0, 0, 3},
		{MR_BPF_MISC | MR_BPF_TXA, 0, 0, 0}, {MR_BPF_JMP | MR_BPF_JGT, 0, 1, 70},
		{MR_BPF_RET, 0, 0, 1}, {MR_BPF_RET, 0, 0, 0}};
	struct mr_desc_in d[BATCH];
	struct world *w = *state;

	assert_int_equal(mr_bpf_check(longer, MR_ARRAY_LEN(longer), NULL), 0);
	for (uint32_t i = 0; i < BATCH; i++)
		d[i] = make(w, i, 60 + i);
	capture(w, 16, 64, longer, MR_ARRAY_LEN(longer));
	start(w);
	give(w, d, BATCH);
	(void)take(w);
	stop(w);
	assert_int_equal(w->tap_ctl[0].head, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(record(w, 0, i)->in.length, 71 + i);
}

/* All packets come back, and each copy is there or counted, over many laps. */
static void a_full_tap_loses_copies_and_no_packets(void **state)
{
	struct world *w = *state;
	uint32_t given = 0, taken = 0, copied[2] = {0, 0};
	uint64_t lost = 0;

	w->lane.workers = 2;
	stage(w, MR_STAGE_forward, 0);
	capture(w, 4, 16, NULL, 0);
	start(w);
	for (uint32_t turn = 0; turn < 200; turn++) {
		struct mr_desc_in d[3] = {make(w, 1, 60), make(w, 2, 60), make(w, 3, 60)};

		for (uint32_t i = 0; i < 3; i++)
			d[i].length = (uint16_t)(60 + (given + i) % 1000);
		give(w, d, 3);
		assert_int_equal(take(w)->length, 60 + given % 1000);
		given += 3;
		for (uint32_t k = 0; k < 2 && turn % 3 == 0; k++) {
			uint32_t head = mr_load_acquire(&w->tap_ctl[k].head);

			assert_in_range(head - copied[k], 0, 4);
			for (; copied[k] != head; copied[k]++, taken++)
				assert_int_equal(record(w, k, copied[k])->in.length,
					record(w, k, copied[k])->out.length);
			mr_store_release(&w->tap_ctl[k].tail, head);
		}
	}
	stop(w);
	for (uint32_t k = 0; k < 2; k++) {
		taken += w->tap_ctl[k].head - copied[k];
		lost += w->tap_ctl[k].lost;
		assert_int_equal(w->tap_ctl[k].next, w->lane.first_seq + 200 + k);
	}
	assert_true(lost > 0);
	assert_int_equal(taken + lost, given);
}

static void a_capture_ends_and_another_begins_anew(void **state)
{
	struct world *w = *state;
	struct mr_desc_in d = make(w, 0, 60);
	uint64_t asked_ns;

	stage(w, MR_STAGE_forward, 0);
	start(w);
	for (uint32_t turn = 0; turn < 3; turn++) {
		capture(w, 4, 16 + 16 * turn, NULL, 0);
		capture_seen(w, w->host.tap);
		assert_int_equal(w->tap_ctl[0].next, w->ring.head);
		give(w, &d, 1);
		(void)take(w);
		assert_int_equal(w->tap_ctl[0].next, w->ring.head);
		/* It tells its clock and goes on. */
		asked_ns = mr_clock_ns();
		mr_store_release(&w->host.tap, w->host.tap + MR_TAP_NEXT);
		capture_seen(w, w->host.tap);
		assert_in_range(w->tap_ctl[0].clock_ns, asked_ns, mr_clock_ns());
		give(w, &d, 1);
		(void)take(w);
		assert_int_equal(w->tap_ctl[0].head, 2);
		/* Another lane's. */
		mr_store_release(&w->host.tap, w->host.tap + 1);
		capture_seen(w, w->host.tap);
		give(w, &d, 1);
		(void)take(w);
		mr_store_release(&w->host.tap, w->host.tap & ~0xffu);
		capture_seen(w, w->host.tap);
		give(w, &d, 1);
		(void)take(w);
		assert_int_equal(w->tap_ctl[0].head, 2);
	}
	stop(w);
}

static void counters_reach_the_host_while_running(void **state)
{
	struct world *w = *state;
	struct mr_desc_in d = make(w, 0, 60);
	uint64_t began;

	w->kernel = "mr_kernel_warp";
	stage(w, MR_STAGE_checksum, 0);
	start(w);
	give(w, &d, 1);
	(void)take(w);
	began = mr_clock_ns();
	while (mr_load_relaxed_u64(&w->counters_out[0][0]) != 1)
		assert_true(mr_clock_ns() - began < 5000000000ull);
	stop(w);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(every_stage_of_a_chain_runs_in_order),
		CASE(a_drop_ends_the_chain_and_says_why),
		CASE(descriptors_outside_the_window_are_dropped_untouched),
		CASE(a_slot_is_plain_if_every_packet_leaves_unchanged_by_the_first_port),
		CASE(checksum_adds_up_what_the_frames_hold),
		CASE(checksum_stops_at_the_bytes_that_it_was_given),
		CASE(header_stages_work_in_the_payload_kernel),
		CASE(workers_share_slots_and_order_is_kept),
		CASE(each_slot_is_judged_by_what_it_holds_itself),
		CASE(a_worker_that_is_a_lap_ahead_waits_and_does_not_leave),
		CASE(workers_say_hello_beat_and_leave_on_the_exit_word),
		CASE(workers_leave_when_the_host_is_silent),
		CASE(a_reload_is_taken_between_slots_by_busy_and_idle_workers),
		CASE(packets_are_copied_before_and_after_the_chain),
		CASE(a_filter_says_which_packets_are_copied),
		CASE(a_full_tap_loses_copies_and_no_packets),
		CASE(a_capture_ends_and_another_begins_anew),
		CASE(counters_reach_the_host_while_running),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
