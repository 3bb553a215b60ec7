/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the actors do, and what must come of it. This file is compiled with the
 * compiler's instrumentation, and the ring and the kernel are compiled in it, so
 * that every access of theirs comes by model_memory.c. MODEL_RING_H, MODEL_RING_C,
 * MODEL_SLOT_H and MODEL_KERNEL_H, which includes it, name the sources: the shipped ones,
 * or copies with a fault.
 */
#include "model.h"

#include <time.h>

/* The kernel's clock must be the same in every replay, and copies must be seen. */
int model_clock(clockid_t id, struct timespec *ret_now);
void *model_memcpy(void *to, const void *from, unsigned long bytes);
#define clock_gettime model_clock
#define memcpy model_memcpy

#include MODEL_RING_H
#include MODEL_RING_C
#include MODEL_SLOT_H
#include MODEL_KERNEL_H

#define COUNT_MAX 8u
#define ROOM 128u
#define BUFFERS (MODEL_SLOTS * MODEL_BATCH)
#define SLOT_BYTES 64u
#define ZONE _Alignas(64) uint8_t
#define TX_PORT 3u
#define RX_PORT 5u

_Static_assert(SLOT_BYTES == MR_SLOT_BYTES(MODEL_BATCH), "a slot of the model");

/* Everything that lane, workers and control share, with room between that nobody may touch. */
static struct world {
	ZONE zone0[64], in[MODEL_SLOTS * SLOT_BYTES];
	ZONE zone1[64], in_map[MODEL_SLOTS * SLOT_BYTES];
	ZONE zone2[64], out[MODEL_SLOTS * SLOT_BYTES];
	ZONE zone3[64], region[BUFFERS * ROOM];
	ZONE zone4[64];
	struct mr_host_ctl host;
	ZONE zone5[64];
	struct mr_worker_ctl ctl[MODEL_WORKERS];
	ZONE zone6[64];
	uint64_t counters_out[MODEL_WORKERS][MR_COUNTERS_MAX];
	ZONE zone7[64];
	uint64_t counters_acc[MODEL_WORKERS][MR_COUNTERS_MAX];
	ZONE zone8[64];
	struct mr_lane_dev lane;
	struct mr_worker_map map[MODEL_WORKERS];
	struct mr_launch launch;
	ZONE zone9[64];
} world;

static const struct model_area areas[] = {
	{"the slots built by the lane", world.in, sizeof(world.in)},
	{"the slots mapped for the lane", world.in_map, sizeof(world.in_map)},
	{"the slots of results", world.out, sizeof(world.out)},
	{"the packets", world.region, sizeof(world.region)},
	{"the host's words", &world.host, sizeof(world.host)},
	{"the workers' words", world.ctl, sizeof(world.ctl)},
	{"the published counters", world.counters_out, sizeof(world.counters_out)},
	{"the counters", world.counters_acc, sizeof(world.counters_acc)},
	{"the lane as the kernel sees it", &world.lane, sizeof(world.lane)},
	{"the launch", world.map, sizeof(world.map) + sizeof(world.launch)},
};

/* What has become of the slot with number first_seq + k. */
struct fate {
	bool given, in_hand, done, taken;
	enum model_actor worker;
};

static struct {
	struct model_case c;
	struct mr_ring ring;
	uint32_t given, released; /* slots by rx, by tx */
	struct fate fate[COUNT_MAX];
	uint32_t calls[MODEL_ACTORS]; /* of the clock */
} lane;

/* Words: READY of each slot, DONE of each slot, exit. */
#define EXIT_WORD (2 * MODEL_SLOTS)

const char *model_word_name(uint32_t word)
{
	static const char *const names[MODEL_WORDS] = {
		"READY[0]", "READY[1]", "DONE[0]", "DONE[1]", "exit"};

	return names[word];
}

/* Every look at the clock finds all intervals over, so that the kernel's rounds are made. */
int model_clock(clockid_t id, struct timespec *ret_now)
{
	(void)id;
	*ret_now = (struct timespec){.tv_nsec = 10000000 * ++lane.calls[model_current()]};
	return 0;
}

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/*
 * On the host to another port, so that every result says something; mapped by way
 * of every byte and to the first port, so that every slot is plain.
 */
static void setup_chain(void)
{
	struct mr_chain_dev *c = world.lane.chain;
	uint32_t port = TX_PORT;

	c[0].stage = MR_STAGE_l2swap;
	c[1].stage = lane.c.mapped ? MR_STAGE_checksum : MR_STAGE_forward;
	if (!lane.c.mapped)
		__builtin_memcpy(c[1].params[0], &port, sizeof(port));
	world.lane.chain_len = 2;
}

void model_setup(const struct model_case *c)
{
	uint8_t *in = c->mapped ? world.in_map : world.in;
	uint32_t *words[MODEL_WORDS] = {[EXIT_WORD] = &world.host.exit};
	struct mr_err err;

	memset(&world, 0, sizeof(world));
	memset(&lane, 0, sizeof(lane));
	lane.c = *c;
	if (c->count > COUNT_MAX || c->workers > MODEL_WORKERS ||
		mr_ring_init(&lane.ring, world.in, c->mapped ? in : NULL, world.out, MODEL_SLOTS,
			MODEL_BATCH, c->first_seq, &err) < 0)
		__builtin_trap();
	world.lane = (struct mr_lane_dev){.region = address(world.region),
		.in = address(in),
		.out = address(world.out),
		.workers_ctl = address(world.ctl),
		.counters_out = address(world.counters_out),
		.counters_acc = address(world.counters_acc),
		.region_units = sizeof(world.region) / MR_UNIT,
		.room = ROOM,
		.in_stride = SLOT_BYTES,
		.out_stride = SLOT_BYTES,
		.slots = MODEL_SLOTS,
		.batch = MODEL_BATCH,
		.workers = c->workers,
		.tx_count = TX_PORT + 1,
		.first_seq = c->first_seq};
	for (uint32_t i = 0; i < c->workers; i++)
		world.map[i] = (struct mr_worker_map){.lane = 0, .worker = i};
	world.launch = (struct mr_launch){.lanes = address(&world.lane),
		.map = address(world.map),
		.host_ctl = address(&world.host),
		.blocks = c->workers};
	setup_chain();
	for (uint32_t i = 0; i < MODEL_SLOTS; i++) {
		words[i] = &((struct mr_slot_in *)(in + i * SLOT_BYTES))->ready;
		words[MODEL_SLOTS + i] =
			&((struct mr_slot_out *)(world.out + i * SLOT_BYTES))->done;
	}
	model_memory_reset(&world, sizeof(world), areas, MR_ARRAY_LEN(areas), words);
}

/* The k-th slot has one packet or two; no two packets have the same length, head or bytes. */
static uint32_t packets_of(uint32_t k)
{
	return 1 + k % 2;
}

static struct mr_desc_in packet(uint32_t k, uint32_t i)
{
	uint32_t slot = (lane.c.first_seq + k) % MODEL_SLOTS;

	return (struct mr_desc_in){.position = (slot * MODEL_BATCH + i) * (ROOM / MR_UNIT),
		.length = (uint16_t)(MR_FRAME_MIN + 3 * k + i),
		.head = (uint16_t)(8 + 4 * k + i)};
}

static uint8_t *frame_of(struct mr_desc_in d)
{
	return world.region + (size_t)d.position * MR_UNIT + d.head;
}

static uint8_t byte_of(uint32_t k, uint32_t i, uint32_t at)
{
	return (uint8_t)(1 + k * 61 + i * 31 + at);
}

static bool not_full(void)
{
	return !mr_ring_full(&lane.ring);
}

static bool not_empty(void)
{
	return mr_ring_outstanding(&lane.ring) != 0;
}

static void wait_until(bool (*condition)(void))
{
	struct model_op op = {MODEL_OP_NONE, 0, condition};

	if (!condition())
		(void)model_yield(&op);
}

/* Open, fill, give: frames arrive in buffers, their descriptors go into the open slot. */
static void act_rx(void)
{
	struct mr_ring *r = &lane.ring;

	for (uint32_t k = 0; k < lane.c.count; k++) {
		struct mr_desc_in *d;

		wait_until(not_full);
		d = mr_slot_desc_in(mr_ring_in(r, r->head));
		for (uint32_t i = 0; i < packets_of(k); i++) {
			struct mr_desc_in p = packet(k, i);

			for (uint32_t at = 0; at < p.length; at++)
				frame_of(p)[at] = byte_of(k, i, at);
			d[i] = p;
		}
		lane.given++;
		mr_ring_give(r, packets_of(k), RX_PORT);
	}
}

/* The addresses have changed places once, the rest is as it came. */
static bool frame_is_swapped(const uint8_t *frame, uint32_t k, uint32_t i, uint32_t length)
{
	for (uint32_t at = 0; at < length; at++) {
		uint32_t from = at < 6 ? at + 6 : at < 12 ? at - 6 : at;

		if (frame[at] != byte_of(k, i, from))
			return false;
	}
	return true;
}

static void check_result(const struct mr_slot_out *s, uint32_t k, uint32_t i)
{
	struct mr_desc_out d = mr_slot_desc_out(s)[i];
	struct mr_desc_in p = packet(k, i);
	uint32_t port = lane.c.mapped ? 0 : TX_PORT;

	if (s->plain != (port == 0))
		model_fail(MODEL_DATA, "slot %u comes back plain or not, as it should not", k);
	if (d.length != p.length || d.head != p.head || d.verdict != MR_TX || d.port != port ||
		d.arg != 0)
		model_fail(MODEL_DATA,
			"packet %u of slot %u comes back as %u+%u, verdict %u, port %u", i, k,
			d.head, d.length, d.verdict, d.port);
	if (!frame_is_swapped(frame_of(p), k, i, p.length))
		model_fail(MODEL_DATA, "packet %u of slot %u has other bytes", i, k);
}

/* Take, check, release; a slot of two packets is sent in two turns, as when a port is full. */
static void act_tx(void)
{
	struct mr_ring *r = &lane.ring;
	uint32_t cursor = 0;

	while (lane.released < lane.c.count) {
		uint32_t k = lane.released;
		const struct mr_slot_out *s;

		wait_until(not_empty);
		s = mr_ring_take(r);
		if (s == NULL)
			continue;
		if (r->tail != lane.c.first_seq + k || !lane.fate[k].done)
			model_fail(MODEL_ONCE, "slot %u is taken before it is done", k);
		model_memory_progress();
		check_result(s, k, cursor);
		if (++cursor < packets_of(k))
			continue;
		cursor = 0;
		lane.fate[k].taken = true;
		lane.released++;
		mr_ring_release(r);
	}
}

void model_act(enum model_actor a)
{
	struct mr_block block = {.threads = 1};

	switch (a) {
	case MODEL_RX:
		act_rx();
		break;
	case MODEL_TX:
		act_tx();
		break;
	case MODEL_STOP:
		mr_store_release(&world.host.exit, 1);
		break;
	default:
		block.index = a - MODEL_GPU;
		mr_kernel_body(
			&world.launch, &block, lane.c.mapped ? MR_WORK_WARP : MR_WORK_THREAD);
	}
}

bool model_all_through(void)
{
	return lane.given == lane.c.count && lane.released == lane.c.count;
}

void model_saw_load(enum model_actor a, uint32_t word, uint32_t value)
{
	uint32_t k = value - 1 - lane.c.first_seq;

	/* Only a worker loads READY, and what a lap before left is below first_seq or done. */
	if (word >= MODEL_SLOTS || k >= lane.c.count || k % lane.c.workers != a - MODEL_GPU)
		return;
	if (!lane.fate[k].given)
		model_fail(
			MODEL_ONCE, "%s sees slot %u, which was not given", model_actor_name(a), k);
	lane.fate[k].in_hand = true;
}

static void saw_ready(uint32_t word, uint32_t k)
{
	if (k >= lane.c.count || (lane.c.first_seq + k) % MODEL_SLOTS != word)
		model_fail(MODEL_ONCE, "%s is stored with a wrong number", model_word_name(word));
	if (lane.fate[k].given || (k != 0 && !lane.fate[k - 1].given))
		model_fail(MODEL_ONCE, "slot %u is given again or out of order", k);
	if (k >= MODEL_SLOTS && !lane.fate[k - MODEL_SLOTS].taken)
		model_fail(MODEL_OWNER, "slot %u is given while the lap before is out", k);
	lane.fate[k].given = true;
}

static void saw_done(enum model_actor a, uint32_t word, uint32_t k)
{
	struct fate *f = &lane.fate[k];

	if (k >= lane.c.count || (lane.c.first_seq + k) % MODEL_SLOTS != word - MODEL_SLOTS)
		model_fail(MODEL_ONCE, "%s is stored with a wrong number", model_word_name(word));
	if (!f->given || f->done || k % lane.c.workers != a - MODEL_GPU)
		model_fail(MODEL_ONCE, "%s does slot %u, which was not given to it, or again",
			model_actor_name(a), k);
	f->worker = a;
	f->done = true;
}

void model_saw_store(enum model_actor a, uint32_t word, uint32_t value)
{
	uint32_t k = value - 1 - lane.c.first_seq;

	if (word < MODEL_SLOTS)
		saw_ready(word, k);
	else if (word < EXIT_WORD)
		saw_done(a, word, k);
}

/* A worker that has left has said why and how much, and its counters are those slots'. */
static void check_worker(uint32_t w)
{
	const struct mr_worker_ctl *ctl = &world.ctl[w];
	uint32_t slots = 0, packets = 0;

	for (uint32_t k = w; k < lane.c.count; k += lane.c.workers) {
		const struct fate *f = &lane.fate[k];

		if (f->in_hand && !f->done)
			model_fail(MODEL_FINISHES, "gpu%u leaves slot %u half done", w, k);
		slots += f->done;
		packets += f->done ? packets_of(k) : 0;
	}
	if (ctl->hello != 1 || ctl->left != MR_LEFT_EXIT || ctl->seq != slots)
		model_fail(MODEL_FINISHES, "gpu%u says hello %u, left %u, %u slots of %u", w,
			ctl->hello, ctl->left, ctl->seq, slots);
	if (lane.c.mapped && world.counters_out[w][MR_CHECKSUM_FRAMES] != packets)
		model_fail(MODEL_FINISHES, "gpu%u publishes another number of packets than %u", w,
			packets);
}

void model_check_end(void)
{
	for (uint32_t w = 0; w < lane.c.workers; w++)
		check_worker(w);
	for (uint32_t k = lane.released; k < lane.c.count; k++)
		if (lane.fate[k].done && k == lane.released)
			model_fail(MODEL_STUCK, "slot %u is done and is never taken", k);
}
