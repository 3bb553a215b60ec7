/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any slot and any chain through the host build of the kernel, in every work
 * division. All packet memory is poisoned but the frames of the descriptors that
 * pass, so AddressSanitizer sees a stage that leaves its frame. The results are
 * held to what mr_kernel.h says.
 *
 * With bit 1 of the mode the last step copies frames to a second region, of which nothing
 * is open but the buffers of those that pass; the last frame is compared. With bit 2 the slot
 * is one of blank buffers for the division that knows them, with bit 3 too the last one. With bit 4
 * a capture copies what lies in a buffer into records, of which there are fewer than packets in a
 * large slot.
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
#include "fuzz_seen.h"
#include "mr_kernel.h"

#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNITS_MAX 128u
#define BATCH_FUZZ 64u
#define UNTOUCHED 0xa5

static uint8_t region[UNITS_MAX * MR_UNIT + MR_UNIT] __attribute__((aligned(64)));
static uint8_t tx_region[sizeof(region)] __attribute__((aligned(64)));

/* What stages load from a file, each in memory that ends with it. */
static const char *const table_text[MR_STAGE_COUNT] = {
	[MR_STAGE_filter] = "count src 10.0.0.0\ndeny proto icmp dst 10.0.0.1\n"
			    "permit proto udp dst_port 0-7\ndeny src fd00::/120 src_port 1000\n"
			    "permit dst fd00::1\ncount proto 0-60\npermit src 10.0.0.0/30\n",
	[MR_STAGE_route] = "10.0.0.0 via 02:00:00:00:00:01 port 3\n10.0.0.0/8 pass\n"
			   "fd00::/64 via 02:00:00:00:00:02 port 0\nfd00::1 drop\n",
	[MR_STAGE_seqtrack] = "vrt udp 1\nspead udp 2\nvdif udp 3\nvtp udp 4\nsflow udp 5\n"
			      "flow udp 6\nint2 udp 8\necpri ether 0xaefe\nrtp udp 9\n"
			      "custom udp 10 id 0:1 seq 1:1 units 1\n",
	[MR_STAGE_unpack] = "vrt udp 1\nspead udp 2\nvdif udp 3\nvtp udp 4\nrtp udp 5\n"
			    "ecpri ether 0xaefe\ncustom udp 6 id 0:1 seq 1:1 payload 2\n"
			    "custom udp 7 seq 1:1 time 2:4 1us\ncustom udp 8 seq 0:8 units bytes\n",
};
static uint8_t *tables[MR_STAGE_COUNT];

struct slot {
	struct mr_lane_dev lane;
	uint32_t count; /* as the header says, hostile */
	uint8_t *in, *out;
	enum mr_work work;
	uint64_t acc[MR_COUNTERS_MAX], pub[MR_COUNTERS_MAX];
	bool raw;    /* parameters that the plan would refuse */
	bool grows;  /* a stage adds up to 8 bytes behind the frame, or 48 in front */
	bool whole;  /* a stage may use its buffer to the end: results */
	bool copies; /* frames leave from tx_region */
	bool tapped;
	struct mr_tap *tap;
	struct mr_tap_order order;
	struct mr_tap_ctl tap_ctl;
};

/* What stages with streams and results have. */
static void build_streams(
	struct mr_streams_params *streams, struct mr_result_to *to, uint32_t param, bool raw)
{
	streams->streams = 3;
	streams->forward = param & 1;
	to->dst = to->src = (struct mr_ip){raw ? param >> 1 & 7
			: param >> 1 & 1       ? 4
					       : 6,
		{0x0a000001, 2, 3, 4}};
	to->port = raw ? param : 0;
	to->bytes = raw ? param : 576 + param % 1000;
}

/* What is raw has any bytes; the addresses of reflect would hardly ever be met. */
static void build_params(struct mr_chain_dev *c, uint32_t param, bool raw)
{
	struct mr_match_params *match = (struct mr_match_params *)c->params[0];
	struct mr_reflect_params *reflect = (struct mr_reflect_params *)c->params[0];
	struct mr_route_params *route = (struct mr_route_params *)c->params[0];
	struct mr_seqtrack_params *seqtrack = (struct mr_seqtrack_params *)c->params[0];
	struct mr_unpack_params *unpack = (struct mr_unpack_params *)c->params[0];

	if (c->stage == MR_STAGE_reflect) {
		memset(reflect, 0, sizeof(*reflect));
		reflect->addresses = raw ? param : 2;
		reflect->address[0] = (struct mr_ip){4, {0x0a000001}};
		reflect->address[1] = (struct mr_ip){6, {0xfd000000, 0, 0, 1}};
		reflect->udp_port = 7;
		reflect->port = raw ? param : param % MR_TX_MAX;
		return;
	}
	if (c->stage == MR_STAGE_route) {
		memset(route, 0, sizeof(*route));
		route->mac = (struct mr_mac){{2, 0, 0, 0, 0, 1}, {0}};
		route->addresses = raw ? param : param % 3;
		route->address[0] = (struct mr_ip){4, {0x0a000009}};
		route->address[1] = (struct mr_ip){6, {0xfd000000, 0, 0, 9}};
		return;
	}
	if (c->stage == MR_STAGE_seqtrack) {
		const struct mr_stage_desc *stage = mr_stage_at(c->stage);

		/* What memory is laid out by is the plan's; the rest is as wild as may be. */
		mr_stage_param_defaults(stage, c->params[0]);
		build_streams(&seqtrack->common, &seqtrack->to, param >> 4, raw);
		seqtrack->events = seqtrack->templates = 16;
		seqtrack->window = raw ? param : 1 + param % 64;
		seqtrack->leap = raw ? param >> 8 : 1 + param % 1000;
		seqtrack->late_ms = seqtrack->report_ms = raw ? 0 : 1;
		return;
	}
	if (c->stage == MR_STAGE_unpack) {
		/* What it divides by is the plan's too. */
		mr_stage_param_defaults(mr_stage_at(c->stage), c->params[0]);
		build_streams(&unpack->common, &unpack->to, param >> 7, raw);
		unpack->results = 1 + param % 2;
		unpack->window_us = 1 + param % 64;
		unpack->window_units = 1 + param % 5;
		unpack->bits = param % 7;
		unpack->order = param >> 3 & 1;
		unpack->coding = param >> 4 & 1;
		unpack->channels = 1 + (param >> 5 & 3);
		unpack->threshold = raw ? param : param % 100;
		unpack->late_ms = raw ? 0 : 1;
		return;
	}
	if (!raw)
		param %= c->stage == MR_STAGE_drop ? MR_REASON_COUNT : MR_TX_MAX;
	if (c->stage != MR_STAGE_match || raw) {
		memcpy(c->params[0], &param, sizeof(param));
		return;
	}
	memset(match, 0, sizeof(*match));
	match->fields.ethertype.to = match->fields.vlan.to = match->fields.protocol.to = UINT32_MAX;
	match->fields.src_port.to = match->fields.dst_port.to = UINT32_MAX;
	match->fields.vni.to = 0xffff;
	match->port = match->other_port = param;
	match->action = param % 3;
}

static void build_table(struct mr_chain_dev *c)
{
	const struct mr_stage_desc *stage = mr_stage_at(c->stage);
	uint8_t params[MR_PARAM_BYTES];

	if (stage == NULL || stage->table == NULL)
		return;
	if (tables[c->stage] == NULL) {
		struct mr_table_errors errors = {0};
		char text[1024];
		struct mr_table_text t = {.at = text, .errors = &errors};
		size_t bytes;
		uint8_t *whole;

		snprintf(text, sizeof(text), "%s", table_text[c->stage]);
		mr_stage_param_defaults(stage, params);
		whole = malloc(stage->table->bytes(params));
		if (stage->table->build(&t, params, NULL, whole, &bytes) != 0 || errors.count != 0)
			abort();
		tables[c->stage] = malloc(bytes);
		memcpy(tables[c->stage], whole, bytes);
		free(whole);
	}
	c->table[0] = (uintptr_t)tables[c->stage];
}

static void build_chain(struct slot *s, struct input *in, uint32_t stages)
{
	s->lane.chain_len = stages;
	for (uint32_t i = 0; i < stages; i++) {
		struct mr_chain_dev *c = &s->lane.chain[i];
		uint32_t param;

		c->stage = (uint16_t)input_take(in, 1);
		param = input_take(in, 4);
		c->counter_base = (uint16_t)(i * (MR_COUNTERS_MAX / MR_CHAIN_MAX));
		memset(c->params, (int)param, sizeof(c->params));
		c->stage %= MR_STAGE_COUNT;
		build_params(c, param, s->raw);
		if (param % 8 != 0)
			build_table(c);
		s->grows |= !mr_stage_at(c->stage)->in_place;
		s->whole |= mr_stage_at(c->stage)->ticks;
		c->flags = mr_stage_at(c->stage)->ticks ? MR_CHAIN_TICKS : 0;
	}
}

static bool in_window(const struct slot *s, const struct mr_desc_in *d)
{
	return (uint64_t)d->position * MR_UNIT + s->lane.room <=
		(uint64_t)s->lane.region_units * MR_UNIT &&
		(uint32_t)d->head + d->length <= s->lane.room;
}

static uint32_t *tx_positions(const struct slot *s)
{
	return (uint32_t *)(s->in + MR_SLOT_HEADER + 8 * s->lane.batch);
}

static bool is_tick(const struct slot *s)
{
	return (((const struct mr_slot_in *)s->in)->flags & MR_SLOT_TICK) != 0;
}

/* Whether packet i is handed to the chain. */
static bool passes(const struct slot *s, const struct mr_desc_in *d, uint32_t i)
{
	struct mr_desc_in to = {.position = s->copies ? tx_positions(s)[i] : d[i].position};

	return in_window(s, &d[i]) && in_window(s, &to);
}

#define RECORDS 16u

static void build_tap(struct slot *s, uint32_t snaplen)
{
	s->tap = calloc(1, sizeof(*s->tap));
	s->order = (struct mr_tap_order){.ctl = (uintptr_t)&s->tap_ctl,
		.records = (uintptr_t)malloc(RECORDS * MR_TAP_STRIDE(snaplen)),
		.mask = RECORDS - 1,
		.stride = MR_TAP_STRIDE(snaplen),
		.snaplen = snaplen};
	s->lane.tap = (uintptr_t)s->tap;
	s->lane.tap_order = (uintptr_t)&s->order;
}

/* Half of the descriptors are moved near the region, or hardly any would pass. */
static void build_slot(struct slot *s, struct input *in, uint32_t flags)
{
	struct mr_slot_in *h = (struct mr_slot_in *)s->in;
	struct mr_desc_in *d = (struct mr_desc_in *)(h + 1);

	h->ready = 1;
	h->count = (uint16_t)s->count;
	h->rx_port = 3;
	h->flags = (uint8_t)(flags & (MR_SLOT_TICK | MR_SLOT_LAST));
	((struct mr_slot_in *)(s->in + s->lane.in_stride))->ready = 0;
	for (uint32_t i = 0; i < s->lane.batch && in->left != 0; i++) {
		uint32_t near = input_take(in, 1);

		d[i].position = input_take(in, 4);
		d[i].length = (uint16_t)input_take(in, 2);
		d[i].head = (uint16_t)input_take(in, 2);
		if ((near & 1) != 0)
			d[i].position %= s->lane.region_units + 1;
		if ((near & 2) != 0)
			d[i].length %= s->lane.room + 1;
		if ((near & 4) != 0)
			d[i].head %= s->lane.room - MR_UNIT + 1;
		if (s->copies)
			tx_positions(s)[i] = (near & 8) != 0
				? input_take(in, 4)
				: (near >> 4) * 7 % (s->lane.region_units + 1);
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

/* A capture takes all the 16 bytes that a frame begins or ends in, whatever comes of it. */
static void open_copied(const struct mr_desc_in *d)
{
	const uint32_t before = d->head % 16;

	ASAN_UNPOISON_MEMORY_REGION(region + (size_t)d->position * MR_UNIT + d->head - before,
		(d->length + before + 15u) / 16 * 16);
}

static void open_frames(const struct slot *s)
{
	const struct mr_desc_in *d = (const struct mr_desc_in *)(s->in + MR_SLOT_HEADER);

	ASAN_POISON_MEMORY_REGION(region, sizeof(region));
	ASAN_POISON_MEMORY_REGION(tx_region, sizeof(tx_region));
	for (uint32_t i = 0; i < checked(s); i++) {
		uint32_t front = !s->grows ? 0 : d[i].head < 48 ? d[i].head : 48;
		/* A copy takes all the 16 bytes that a frame begins or ends in. */
		bool whole = s->copies || s->tapped;
		uint32_t before = front + (whole ? (d[i].head - front) % 16 : 0);
		uint32_t bytes = d[i].length + before + (s->grows ? tail(s, &d[i]) : 0);

		if (s->tapped && in_window(s, &d[i]))
			open_copied(&d[i]);
		if (!passes(s, d, i) || (d[i].length < MR_FRAME_MIN && (!s->whole || !is_tick(s))))
			continue;
		if (s->whole)
			bytes = s->lane.room - d[i].head + before;
		ASAN_UNPOISON_MEMORY_REGION(
			region + (size_t)d[i].position * MR_UNIT + d[i].head - before,
			whole ? (bytes + 15) / 16 * 16 : bytes);
		if (s->copies)
			ASAN_UNPOISON_MEMORY_REGION(
				tx_region + (size_t)tx_positions(s)[i] * MR_UNIT, s->lane.room);
	}
}

static void check_result(const struct slot *s, const struct mr_desc_in *all, uint32_t i,
	const struct mr_desc_out *out)
{
	const struct mr_desc_in *in = &all[i];
	bool window = passes(s, all, i), runt = in->length < MR_FRAME_MIN;

	if (window && runt && s->work == MR_WORK_ORDER && is_tick(s)) {
		/* A blank buffer: what is no result is dropped for that. */
		if (out->verdict == MR_DROP ? out->length != 0 || out->arg != MR_REASON_blank
					    : out->length < MR_FRAME_MIN ||
					(uint32_t)out->head + out->length > s->lane.room)
			abort();
		return;
	}
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
	if (!s->grows && out->verdict != MR_DROP &&
		(out->head < in->head || out->head + out->length > in->head + in->length))
		abort();
}

/* Of the last frame, over which no other was copied, and into which none changed anything. */
static void check_copy(const struct mr_desc_in *in, const struct mr_desc_out *out, uint32_t to)
{
	if (out->verdict != MR_DROP &&
		memcmp(region + (size_t)in->position * MR_UNIT + out->head,
			tx_region + (size_t)to * MR_UNIT + out->head, out->length) != 0)
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
		check_result(s, in, i, &out[i]);
		if (out[i].length != in[i].length || out[i].head != in[i].head ||
			out[i].verdict != MR_TX || out[i].port != 0 || out[i].arg != 0)
			plain = 0;
	}
	if (h->plain != plain)
		abort();
	if (s->copies && checked(s) != 0)
		check_copy(
			&in[checked(s) - 1], &out[checked(s) - 1], tx_positions(s)[checked(s) - 1]);
	for (const uint8_t *p = (const uint8_t *)&out[checked(s)]; p < s->out + s->lane.out_stride;
		p++)
		if (*p != UNTOUCHED)
			abort();
}

/* What passes is copied in order, as long as there is room. */
static void check_tap(const struct slot *s)
{
	const struct mr_desc_in *in = (const struct mr_desc_in *)(s->in + MR_SLOT_HEADER);
	const struct mr_desc_out *out = (const struct mr_desc_out *)(s->out + MR_SLOT_HEADER);
	uint32_t n = 0;

	for (uint32_t i = 0; i < checked(s); i++) {
		const struct mr_tap_record *r =
			(const struct mr_tap_record *)(uintptr_t)(s->order.records +
				n * s->order.stride);

		if (!in_window(s, &in[i]))
			continue;
		if (n < RECORDS &&
			(r->packet != i || memcmp(&r->in, &in[i], sizeof(r->in)) != 0 ||
				memcmp(&r->out, &out[i], sizeof(r->out)) != 0))
			abort();
		n++;
	}
	if (s->tap_ctl.head != (n < RECORDS ? n : RECORDS) ||
		s->tap_ctl.lost != n - s->tap_ctl.head)
		abort();
}

/* Every frame is walked whatever the chain; what is found lies in it. */
static void walk_frames(const struct slot *s)
{
	const struct mr_desc_in *d = (const struct mr_desc_in *)(s->in + MR_SLOT_HEADER);

	for (uint32_t i = 0; i < checked(s); i++) {
		struct mr_headers h;
		struct mr_view v;

		if (!mr_kernel_view(&s->lane, 0, &d[i], mr_kernel_to(&s->lane, d, i), &v))
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
	struct mr_host_ctl host = {.exit = 1, .tap = s->tapped ? MR_TAP_NEXT + 1 : 0};
	struct mr_worker_ctl ctl = {0};
	struct mr_worker_map map = {0};
	struct mr_launch launch = {.lanes = (uintptr_t)&s->lane,
		.map = (uintptr_t)&map,
		.host_ctl = (uintptr_t)&host,
		.blocks = 1};
	struct mr_block block = {.threads = 1};

	s->work = work;
	/* Memory of its own for each stage that keeps order; the others do without. */
	for (uint32_t i = 0; work == MR_WORK_ORDER && i < s->lane.chain_len; i++) {
		const struct mr_stage_desc *stage = mr_stage_at(s->lane.chain[i].stage);

		if (stage->ticks)
			s->lane.chain[i].state = (uintptr_t)calloc(
				1, mr_stage_lane_bytes(stage, s->lane.chain[i].params[0]));
	}
	memset(s->out, UNTOUCHED, 2 * (size_t)s->lane.out_stride);
	s->lane.workers_ctl = (uintptr_t)&ctl;
	mr_kernel_body(&launch, &block, work);
	if (ctl.left != MR_LEFT_EXIT || ctl.seq != 1)
		abort();
	check_slot(s);
	if (s->tapped)
		check_tap(s);
	for (uint32_t i = 0; i < s->lane.chain_len; i++) {
		free((void *)(uintptr_t)s->lane.chain[i].state);
		s->lane.chain[i].state = 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct slot s = {0};
	uint32_t stages, mode;

	ASAN_UNPOISON_MEMORY_REGION(region, sizeof(region));
	s.lane.region_units = 1 + input_take(&in, 1) % UNITS_MAX;
	s.lane.room = MR_UNIT + input_take(&in, 1) * 8;
	mode = input_take(&in, 1);
	s.raw = (mode & 1) != 0;
	s.copies = (mode & 2) != 0;
	s.tapped = (mode & 16) != 0;
	if (s.tapped)
		build_tap(&s, 1 + mode);
	if (s.copies || s.tapped)
		s.lane.room = (s.lane.room + 15) / 16 * 16;
	stages = input_take(&in, 1) % (MR_CHAIN_MAX + 1);
	s.lane.batch = 1 + input_take(&in, 1) % BATCH_FUZZ;
	s.count = input_take(&in, 2);
	build_chain(&s, &in, stages);
	s.lane.in_stride = s.lane.out_stride =
		s.copies ? MR_SLOT_BYTES_TX(s.lane.batch) : MR_SLOT_BYTES(s.lane.batch);
	s.lane.slots = 2;
	s.lane.workers = 1;
	s.in = calloc(2, s.lane.in_stride);
	s.out = calloc(2, s.lane.out_stride);
	s.lane.region = (uintptr_t)region;
	if (s.copies) {
		s.lane.tx_region = (uintptr_t)tx_region;
		s.lane.tx_region_units = s.lane.region_units;
	}
	s.lane.in = (uintptr_t)s.in;
	s.lane.out = (uintptr_t)s.out;
	s.lane.counters_acc = (uintptr_t)s.acc;
	s.lane.counters_out = (uintptr_t)s.pub;
	build_slot(&s, &in, mode >> 2);
	memcpy(region, in.at, in.left < sizeof(region) ? in.left : sizeof(region));
	open_frames(&s);
	walk_frames(&s);
	run_slot(&s, MR_WORK_THREAD);
	run_slot(&s, MR_WORK_WARP);
	run_slot(&s, MR_WORK_ORDER);
	free(s.in);
	free(s.out);
	free(s.tap);
	free((void *)(uintptr_t)s.order.records);
	return 0;
}
