/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any slot and any chain through the host build of the kernel, in both work
 * divisions. All packet memory is poisoned but the frames of the descriptors that
 * pass, so AddressSanitizer sees a stage that leaves its frame. The results are
 * held to what mr_kernel.h says.
 *
 * Input: units, room, mode, chain, batch (a byte each), count (2), a stage and its
 * first parameter (1 + 4) per stage, 9 bytes per descriptor, then the packet bytes.
 *
 * MR_FUZZ_PLANTED builds a kernel that runs its stages on runts: l2swap then leaves
 * short frames, which the fuzzer has to find.
 */
#include "mr_ring_abi.h"
#if defined(MR_FUZZ_PLANTED)
#undef MR_FRAME_MIN
#define MR_FRAME_MIN 0u
#endif
#include "mr_kernel.h"

#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>

#define UNITS_MAX 128u
#define BATCH_FUZZ 64u
#define UNTOUCHED 0xa5

static uint8_t region[UNITS_MAX * MR_UNIT + MR_UNIT] __attribute__((aligned(64)));

struct input {
	const uint8_t *at;
	size_t left;
};

static uint32_t take(struct input *in, uint32_t bytes)
{
	uint32_t v = 0;

	for (uint32_t i = 0; i < bytes && in->left != 0; i++, in->left--)
		v |= (uint32_t)*in->at++ << 8 * i;
	return v;
}

struct slot {
	struct mr_lane_dev lane;
	uint32_t count; /* as the header says, hostile */
	uint8_t *in, *out;
	uint64_t acc[MR_COUNTERS_MAX], pub[MR_COUNTERS_MAX];
	bool raw;   /* parameters that the plan would refuse */
	bool grows; /* a stage adds up to 8 bytes behind the frame */
};

/* What is raw has any bytes; the addresses of reflect would hardly ever be met. */
static void build_params(struct mr_chain_dev *c, uint32_t param, bool raw)
{
	struct mr_match_params *match = (struct mr_match_params *)c->params;
	struct mr_reflect_params *reflect = (struct mr_reflect_params *)c->params;

	if (c->stage == MR_STAGE_reflect) {
		memset(reflect, 0, sizeof(*reflect));
		reflect->addresses = raw ? param : 2;
		reflect->address[0] = (struct mr_ip){4, {0x0a000001}};
		reflect->address[1] = (struct mr_ip){6, {0xfd000000, 0, 0, 1}};
		reflect->udp_port = 7;
		reflect->port = raw ? param : param % MR_TX_MAX;
		return;
	}
	if (!raw)
		param %= c->stage == MR_STAGE_drop ? MR_REASON_COUNT : MR_TX_MAX;
	if (c->stage != MR_STAGE_match || raw) {
		memcpy(c->params, &param, sizeof(param));
		return;
	}
	memset(match, 0, sizeof(*match));
	match->ethertype.to = match->vlan.to = match->protocol.to = UINT32_MAX;
	match->src_port.to = match->dst_port.to = UINT32_MAX;
	match->vni.to = 0xffff;
	match->port = match->other_port = param;
	match->action = param % 3;
}

static void build_chain(struct slot *s, struct input *in, uint32_t stages)
{
	s->lane.chain_len = stages;
	for (uint32_t i = 0; i < stages; i++) {
		struct mr_chain_dev *c = &s->lane.chain[i];
		uint32_t param;

		c->stage = (uint16_t)take(in, 1);
		param = take(in, 4);
		c->counter_base = (uint16_t)(i * (MR_COUNTERS_MAX / MR_CHAIN_MAX));
		memset(c->params, (int)param, sizeof(c->params));
		if (!s->raw)
			c->stage %= MR_STAGE_COUNT;
		build_params(c, param, s->raw);
		s->grows |= c->stage == MR_STAGE_reflect;
	}
}

static bool in_window(const struct slot *s, const struct mr_desc_in *d)
{
	return (uint64_t)d->position * MR_UNIT + s->lane.room <=
		(uint64_t)s->lane.region_units * MR_UNIT &&
		(uint32_t)d->head + d->length <= s->lane.room;
}

/* Half of the descriptors are moved near the region, or hardly any would pass. */
static void build_slot(struct slot *s, struct input *in)
{
	struct mr_slot_in *h = (struct mr_slot_in *)s->in;
	struct mr_desc_in *d = (struct mr_desc_in *)(h + 1);

	h->ready = 1;
	h->count = (uint16_t)s->count;
	h->rx_port = 3;
	((struct mr_slot_in *)(s->in + s->lane.in_stride))->ready = 0;
	for (uint32_t i = 0; i < s->lane.batch && in->left != 0; i++) {
		uint32_t near = take(in, 1);

		d[i].position = take(in, 4);
		d[i].length = (uint16_t)take(in, 2);
		d[i].head = (uint16_t)take(in, 2);
		if ((near & 1) != 0)
			d[i].position %= s->lane.region_units + 1;
		if ((near & 2) != 0)
			d[i].length %= s->lane.room + 1;
		if ((near & 4) != 0)
			d[i].head %= s->lane.room - MR_UNIT + 1;
	}
}

static uint32_t checked(const struct slot *s)
{
	return s->count < s->lane.batch ? s->count : s->lane.batch;
}

/* What of 8 bytes behind a frame is in its buffer. */
static uint32_t tail(const struct slot *s, const struct mr_desc_in *d)
{
	uint32_t left = s->lane.room - d->head - d->length;

	return left < 8 ? left : 8;
}

static void open_frames(const struct slot *s)
{
	const struct mr_desc_in *d = (const struct mr_desc_in *)(s->in + MR_SLOT_HEADER);

	ASAN_POISON_MEMORY_REGION(region, sizeof(region));
	for (uint32_t i = 0; i < checked(s); i++)
		if (in_window(s, &d[i]) && d[i].length >= MR_FRAME_MIN)
			ASAN_UNPOISON_MEMORY_REGION(
				region + (size_t)d[i].position * MR_UNIT + d[i].head,
				d[i].length + (s->grows ? tail(s, &d[i]) : 0));
}

static void check_result(
	const struct slot *s, const struct mr_desc_in *in, const struct mr_desc_out *out)
{
	bool window = in_window(s, in), runt = in->length < MR_FRAME_MIN;

	if (!window || runt) {
		if (out->verdict != MR_DROP || out->length != in->length || out->head != in->head ||
			out->arg != (window ? MR_REASON_runt : MR_REASON_window))
			abort();
		return;
	}
	if (out->verdict > MR_DROP || (uint32_t)out->head + out->length > s->lane.room)
		abort();
	if (!s->raw && out->verdict == MR_DROP && out->arg >= MR_REASON_COUNT)
		abort();
	if (!s->raw && out->verdict == MR_TX && out->port >= MR_TX_MAX)
		abort();
}

static void check_slot(const struct slot *s)
{
	const struct mr_slot_out *h = (const struct mr_slot_out *)s->out;
	const struct mr_desc_in *in = (const struct mr_desc_in *)(s->in + MR_SLOT_HEADER);
	const struct mr_desc_out *out = (const struct mr_desc_out *)(h + 1);
	uint32_t plain = 1;

	if (h->done != 1)
		abort();
	for (uint32_t i = 0; i < checked(s); i++) {
		check_result(s, &in[i], &out[i]);
		if (out[i].length != in[i].length || out[i].head != in[i].head ||
			out[i].verdict != MR_TX || out[i].port != 0 || out[i].arg != 0)
			plain = 0;
	}
	if (h->plain != plain)
		abort();
	for (const uint8_t *p = (const uint8_t *)&out[checked(s)]; p < s->out + s->lane.out_stride;
		p++)
		if (*p != UNTOUCHED)
			abort();
}

/* Every frame is walked whatever the chain; what is found lies in it. */
static void walk_frames(const struct slot *s)
{
	const struct mr_desc_in *d = (const struct mr_desc_in *)(s->in + MR_SLOT_HEADER);

	for (uint32_t i = 0; i < checked(s); i++) {
		struct mr_headers h;
		struct mr_view v;

		if (!mr_kernel_view(&s->lane, 0, &d[i], 0, &v))
			continue;
		mr_walk(&v, 0, &h);
		if (h.end > v.length || h.l4 > h.end || h.payload > h.end)
			abort();
		if ((h.has & MR_HAS_VXLAN) != 0)
			mr_walk(&v, mr_vxlan_inner(&h), &h);
		if (h.end > v.length || h.l4 > h.end || h.payload > h.end)
			abort();
	}
}

/* The exit word is set before: the worker takes the one slot that is ready and leaves. */
static void run_slot(struct slot *s, enum mr_work work)
{
	struct mr_host_ctl host = {.exit = 1};
	struct mr_worker_ctl ctl = {0};
	struct mr_worker_map map = {0};
	struct mr_launch launch = {.lanes = (uintptr_t)&s->lane,
		.map = (uintptr_t)&map,
		.host_ctl = (uintptr_t)&host,
		.blocks = 1};
	struct mr_block block = {.threads = 1};

	memset(s->out, UNTOUCHED, 2 * (size_t)s->lane.out_stride);
	s->lane.workers_ctl = (uintptr_t)&ctl;
	mr_kernel_body(&launch, &block, work);
	if (ctl.left != MR_LEFT_EXIT || ctl.seq != 1)
		abort();
	check_slot(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct slot s = {0};
	uint32_t stages;

	ASAN_UNPOISON_MEMORY_REGION(region, sizeof(region));
	s.lane.region_units = 1 + take(&in, 1) % UNITS_MAX;
	s.lane.room = MR_UNIT + take(&in, 1) * 8;
	s.raw = (take(&in, 1) & 1) != 0;
	stages = take(&in, 1) % (MR_CHAIN_MAX + 1);
	s.lane.batch = 1 + take(&in, 1) % BATCH_FUZZ;
	s.count = take(&in, 2);
	build_chain(&s, &in, stages);
	s.lane.in_stride = s.lane.out_stride = MR_SLOT_BYTES(s.lane.batch);
	s.lane.slots = 2;
	s.lane.workers = 1;
	s.in = calloc(2, s.lane.in_stride);
	s.out = calloc(2, s.lane.out_stride);
	s.lane.region = (uintptr_t)region;
	s.lane.in = (uintptr_t)s.in;
	s.lane.out = (uintptr_t)s.out;
	s.lane.counters_acc = (uintptr_t)s.acc;
	s.lane.counters_out = (uintptr_t)s.pub;
	build_slot(&s, &in);
	memcpy(region, in.at, in.left < sizeof(region) ? in.left : sizeof(region));
	open_frames(&s);
	walk_frames(&s);
	run_slot(&s, MR_WORK_THREAD);
	run_slot(&s, MR_WORK_WARP);
	free(s.in);
	free(s.out);
	return 0;
}
