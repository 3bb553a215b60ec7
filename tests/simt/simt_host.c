/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compiled with the instrumentation of ThreadSanitizer: what this file and the
 * ring's header read and write is the host's. It copies by loops, since the C
 * library is not instrumented.
 */
#include "simt_host.h"

#include "mr_base.h"
#include "simt.h"

#include <stdlib.h>

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static uint32_t draw(struct simt_host *h, uint32_t below)
{
	h->draw = h->draw * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(h->draw >> 33) % below;
}

/* By a word of memory, of which each thread has its own: frames longer than some, or all. */
static void begin_capture(struct simt_host *h)
{
	struct simt_arena *a = h->arena;
	struct mr_tap_order *o = &a->order;
	uint32_t k = 0;

	o->ctl = address(a->tap_ctl);
	o->records = address(a->records);
	o->mask = SIMT_RECORDS / 2 * (1 + draw(h, 2)) - 1;
	o->snaplen = 1 + draw(h, SIMT_SNAPLEN);
	o->stride = MR_TAP_STRIDE(o->snaplen);
	if (draw(h, 2) == 0) {
		o->program[k++] = (struct mr_bpf){MR_BPF_LD | MR_BPF_LEN, 0, 0, 0};
		o->program[k++] = (struct mr_bpf){MR_BPF_ST, 0, 0, 9};
		o->program[k++] = (struct mr_bpf){MR_BPF_LDX | MR_BPF_MEM, 0, 0, 9};
		o->program[k++] = (struct mr_bpf){MR_BPF_MISC | MR_BPF_TXA, 0, 0, 0};
		o->program[k++] =
			(struct mr_bpf){MR_BPF_JMP | MR_BPF_JGT, 0, 1, draw(h, SIMT_ROOM)};
		o->program[k++] = (struct mr_bpf){MR_BPF_RET, 0, 0, 1};
		o->program[k++] = (struct mr_bpf){MR_BPF_RET, 0, 0, 0};
	}
	o->count = k;
	for (uint32_t w = 0; w < SIMT_WORKERS; w++) {
		h->copied[w] = 0;
		mr_store_relaxed(&a->tap_ctl[w].head, 0);
		mr_store_relaxed_u64(&a->tap_ctl[w].lost, 0);
		mr_store_relaxed(&a->tap_ctl[w].tail, 0);
	}
	mr_store_release(&a->host.tap, (a->host.tap & ~0xffu) + MR_TAP_NEXT + 1);
}

void simt_host_init(struct simt_host *h)
{
	struct simt_arena *a = h->arena;
	struct mr_err err;

	if ((a->lane.tx_region != 0 ? mr_ring_init_tx : mr_ring_init)(&h->ring, a->in, NULL, a->out,
		    SIMT_SLOTS, SIMT_BATCH, SIMT_FIRST_SEQ, &err) != 0)
		abort();
	a->lane.region = address(a->region);
	a->lane.in = address(a->in);
	a->lane.out = address(a->out);
	a->lane.workers_ctl = address(a->ctl);
	a->lane.counters_out = address(a->counters_out);
	a->lane.counters_acc = address(a->counters_acc);
	a->lane.region_units = sizeof(a->region) / MR_UNIT;
	a->lane.room = SIMT_ROOM;
	a->lane.in_stride = h->ring.stride;
	a->lane.out_stride = h->ring.stride;
	if (a->lane.tx_region != 0) {
		a->lane.tx_region = address(a->tx_region);
		a->lane.tx_region_units = sizeof(a->tx_region) / MR_UNIT;
	}
	a->lane.slots = SIMT_SLOTS;
	a->lane.batch = SIMT_BATCH;
	a->lane.workers = h->workers;
	a->lane.tx_count = MR_TX_MAX;
	a->lane.first_seq = SIMT_FIRST_SEQ;
	for (uint32_t i = 0; i < SIMT_WORKERS; i++) {
		a->map[i].lane = 0;
		a->map[i].worker = i;
	}
	a->lane.tap = address(a->tap);
	a->lane.tap_order = address(&a->order);
	h->idle = 0;
	h->wanted = 0;
	h->found = 0;
	h->wrong = NULL;
	if (h->capture == SIMT_CAPTURE_ALL)
		begin_capture(h);
	a->launch.lanes = address(&a->lane);
	a->launch.map = address(a->map);
	a->launch.host_ctl = address(&a->host);
	a->launch.blocks = h->workers;
	h->given = 0;
	h->taken = 0;
}

static uint8_t *frame_of(const struct simt_host *h, const struct simt_packet *p)
{
	return h->arena->region + (size_t)p->d.position * MR_UNIT + p->d.head;
}

static uint8_t *copy_of(const struct simt_host *h, const struct simt_packet *p)
{
	return h->arena->tx_region + (size_t)p->to * MR_UNIT + p->d.head;
}

/* A copy takes all the 16 bytes that the frame begins and ends in. */
static void allow_copy(uint8_t *frame, uint32_t length, bool allowed)
{
	uint32_t before = (uint32_t)((uintptr_t)frame % 16);

	simt_memory_allow(frame - before, (length + before + 15) / 16 * 16, allowed);
}

/* A frame, and what a stage may add behind it (SIMT_GROWS). */
static uint32_t grown(const struct simt_host *h, const struct simt_packet *p)
{
	uint32_t left = SIMT_ROOM - p->d.head;

	if (h->whole)
		return left;
	return p->d.length + SIMT_GROWS < left ? p->d.length + SIMT_GROWS : left;
}

/* The same in front of it. */
static uint32_t front(const struct simt_packet *p)
{
	return p->d.head < SIMT_FRONT ? p->d.head : SIMT_FRONT;
}

static bool lies_in_a_buffer(const struct simt_packet *p)
{
	return (uint64_t)p->d.position * MR_UNIT + SIMT_ROOM <=
		sizeof(((struct simt_arena *)0)->region) &&
		(uint32_t)p->d.head + p->d.length <= SIMT_ROOM;
}

static void allow(const struct simt_host *h, const struct simt_slot *s, bool allowed)
{
	for (uint32_t i = 0; h->lanes && i < s->count; i++) {
		const struct simt_packet *p = &s->packet[i];

		if (p->good && !h->ring.tx_positions)
			simt_memory_allow(
				frame_of(h, p) - front(p), grown(h, p) + front(p), allowed);
		if (h->capture != SIMT_CAPTURE_NONE && p->good)
			allow_copy(frame_of(h, p) - front(p), grown(h, p) + front(p), allowed);
		else if (h->capture != SIMT_CAPTURE_NONE && lies_in_a_buffer(p))
			allow_copy(frame_of(h, p), p->d.length, allowed);
		if (!p->good || !p->to_good || !h->ring.tx_positions)
			continue;
		allow_copy(frame_of(h, p) - front(p), grown(h, p) + front(p), allowed);
		allow_copy(copy_of(h, p) - front(p), grown(h, p) + front(p), allowed);
	}
}

static void give(struct simt_host *h)
{
	const struct simt_slot *s = &h->slots[h->given++];
	struct mr_desc_in *d = mr_slot_desc_in(mr_ring_in(&h->ring, h->ring.head));

	for (uint32_t i = 0; i < s->count; i++) {
		const struct simt_packet *p = &s->packet[i];

		for (uint32_t k = 0; p->good && k < p->d.length; k++)
			frame_of(h, p)[k] = p->frame[k];
		d[i] = p->d;
		if (h->ring.tx_positions)
			mr_ring_tx_position(&h->ring, mr_ring_in(&h->ring, h->ring.head))[i] =
				p->to;
	}
	allow(h, s, true);
	mr_ring_in(&h->ring, h->ring.head)->flags = s->flags;
	mr_ring_give(&h->ring, s->count, s->rx_port);
}

static uint32_t slot_of(const struct mr_tap_record *r)
{
	return (uint32_t)(r->packet >> 32);
}

static bool is_wanted(const struct mr_tap_order *o, uint32_t length)
{
	return o->count == 0 || length > o->program[4].k;
}

static bool same(const uint8_t *a, const uint8_t *b, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

static const char *look_at(
	const struct simt_host *h, const struct mr_tap_record *r, const struct mr_desc_out *out)
{
	const struct mr_tap_order *o = &h->arena->order;
	const struct simt_slot *s = &h->slots[h->taken];
	const uint8_t *bytes = (const uint8_t *)(r + 1);
	const uint32_t index = (uint32_t)r->packet;
	const struct simt_packet *p;

	if (slot_of(r) != SIMT_FIRST_SEQ + h->taken || index >= s->count)
		return "a record of another slot";
	p = &s->packet[index];
	out += index;
	if (!lies_in_a_buffer(p) || !is_wanted(o, p->d.length))
		return "a copy of what was not to be copied";
	if (r->time_ns == 0 || !same((const uint8_t *)&r->in, (const uint8_t *)&p->d, 8) ||
		!same((const uint8_t *)&r->out, (const uint8_t *)out, 8))
		return "a record whose descriptors are not the packet's";
	if (p->good &&
		!same(bytes + p->d.head % 16, p->frame,
			p->d.length < o->snaplen ? p->d.length : o->snaplen))
		return "other bytes than before the chain";
	/* What left is in the region still, as the chain left it. */
	if (!same(bytes + MR_TAP_AREA(o->snaplen) + out->head % 16,
		    h->arena->region + (size_t)p->d.position * MR_UNIT + out->head,
		    out->length < o->snaplen ? out->length : o->snaplen))
		return "other bytes than behind the chain";
	return NULL;
}

/* The records of the slot that comes next; some stay and make the ring full. */
static void look_at_records(struct simt_host *h, const struct mr_desc_out *out)
{
	struct simt_arena *a = h->arena;
	uint32_t w = h->taken % h->workers, head;
	const struct mr_tap_order *o = &a->order;

	if (h->capture == SIMT_CAPTURE_NONE || MR_TAP_LANE(a->host.tap) == 0)
		return;
	head = mr_load_acquire(&a->tap_ctl[w].head);
	for (; h->copied[w] != head; h->copied[w]++) {
		const uint8_t *at = a->records +
			(w * (o->mask + 1) + (h->copied[w] & o->mask)) * (size_t)o->stride;
		const struct mr_tap_record *r = (const struct mr_tap_record *)at;

		/* What comes of a slot behind is looked at with it. */
		if ((int32_t)(slot_of(r) - SIMT_FIRST_SEQ - h->taken) > 0)
			break;
		if (h->wrong == NULL)
			h->wrong = look_at(h, r, out);
	}
	if (draw(h, 4) != 0)
		mr_store_release(&a->tap_ctl[w].tail, h->copied[w]);
}

static bool take(struct simt_host *h)
{
	const struct simt_slot *s = &h->slots[h->taken];
	struct simt_taken *t = &h->outcome->slot[h->taken];
	const struct mr_slot_out *out = mr_ring_take(&h->ring);

	if (out == NULL)
		return false;
	t->plain = out->plain;
	for (uint32_t i = 0; i < s->count; i++) {
		const struct simt_packet *p = &s->packet[i];

		t->d[i] = mr_slot_desc_out(out)[i];
		for (uint32_t k = 0;
			h->ring.tx_positions && p->good && p->to_good && k < p->d.length; k++)
			t->copy[i][k] = copy_of(h, p)[k];
		for (uint32_t k = 0; p->good && k < p->d.length; k++)
			t->buffer[i][k] = frame_of(h, p)[k];
	}
	look_at_records(h, t->d);
	for (uint32_t i = 0; i < s->count; i++)
		h->wanted += lies_in_a_buffer(&s->packet[i]) &&
			is_wanted(&h->arena->order, s->packet[i].d.length);
	allow(h, s, false);
	mr_ring_release(&h->ring);
	h->taken++;
	return true;
}

/* What the workers leave behind; false while one has not left. */
static bool finish(struct simt_host *h)
{
	struct simt_outcome *o = h->outcome;
	struct simt_arena *a = h->arena;
	uint32_t left[SIMT_WORKERS];

	for (uint32_t w = 0; w < h->workers; w++) {
		left[w] = mr_load_acquire(&a->ctl[w].left);
		if (left[w] == MR_LEFT_NOT)
			return false;
	}
	for (uint32_t w = 0; w < h->workers; w++) {
		o->left |= left[w];
		o->done += a->ctl[w].seq;
		for (uint32_t i = 0; i < MR_COUNTERS_MAX; i++)
			o->counters[i] += a->counters_out[w][i];
		h->found += mr_load_relaxed(&a->tap_ctl[w].head) +
			(uint32_t)mr_load_relaxed_u64(&a->tap_ctl[w].lost);
	}
	return true;
}

/* A reload once every worker has the last one: the same parameters, in the other half. */
static void renew(struct simt_host *h)
{
	struct simt_arena *a = h->arena;
	uint32_t half = a->host.generation % 2;

	for (uint32_t w = 0; w < h->workers; w++)
		if (mr_load_acquire(&a->ctl[w].generation) != a->host.generation)
			return;
	for (uint32_t i = 0; i < a->lane.chain_len; i++) {
		a->lane.chain[i].table[1 - half] = a->lane.chain[i].table[half];
		for (uint32_t k = 0; k < MR_PARAM_BYTES; k += 8)
			*(uint64_t *)(a->lane.chain[i].params[1 - half] + k) =
				*(uint64_t *)(a->lane.chain[i].params[half] + k);
	}
	mr_store_release(&a->host.generation, a->host.generation + 1);
}

/* Begins or ends a capture once every worker has seen the last word. */
static void turn_capture(struct simt_host *h)
{
	struct simt_arena *a = h->arena;

	for (uint32_t w = 0; w < h->workers; w++)
		if (mr_load_acquire(&a->ctl[w].tap) != a->host.tap)
			return;
	if (MR_TAP_LANE(a->host.tap) != 0)
		mr_store_release(&a->host.tap, a->host.tap & ~0xffu);
	else
		begin_capture(h);
}

bool simt_host_step(void *argument)
{
	struct simt_host *h = argument;

	if (h->silent)
		return finish(h);
	mr_store_relaxed(&h->arena->host.beat, mr_load_relaxed(&h->arena->host.beat) + 1);
	if (draw(h, 8) == 0)
		renew(h);
	if (h->capture == SIMT_CAPTURE_PARTS && draw(h, 2) == 0)
		turn_capture(h);
	/* Long enough for idle workers to see more than one change, with slots that nobody took. */
	if (h->idle == 0 && draw(h, 32) == 0)
		h->idle = draw(h, 300);
	if (h->idle > 0)
		h->idle--;
	else if (h->given < SIMT_GIVEN && !mr_ring_full(&h->ring) && draw(h, 2) == 0)
		give(h);
	else if (h->taken < h->given)
		(void)take(h);
	if (h->taken < SIMT_GIVEN)
		return false;
	mr_store_relaxed(&h->arena->host.exit, 1);
	return finish(h);
}

void simt_host_reference(struct simt_host *h, mr_sim_entry entry)
{
	while (h->taken < SIMT_GIVEN) {
		h->arena->lane.first_seq = h->ring.head;
		while (h->given < SIMT_GIVEN && !mr_ring_full(&h->ring))
			give(h);
		mr_store_relaxed(&h->arena->host.exit, 1);
		for (uint32_t w = 0; w < h->workers; w++)
			entry(address(&h->arena->launch), w, NULL);
		while (take(h))
			;
		for (uint32_t i = 0; i < MR_COUNTERS_MAX; i++)
			h->outcome->counters[i] = 0;
		(void)finish(h);
	}
}

bool simt_host_words_step(void *argument)
{
	struct simt_seen *seen = argument;

	if (mr_load_acquire(&seen->words[0]) == 0)
		return false;
	seen->right = true;
	for (uint32_t i = 1; i < seen->words_count; i++)
		if (seen->words[i] != 1)
			seen->right = false;
	return true;
}
