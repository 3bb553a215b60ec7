/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any answer of a kernel: results, `plain` and DONE of any bits, before their time and
 * while a slot waits at its cursor, to ports that take what they like. Whatever is sent
 * lies in its buffer, was allowed by an answer and keeps the order of its lane; every
 * packet is counted once, and every buffer comes back once.
 *
 * Around each buffer lies more poisoned memory than a head and a length can reach, and
 * the port writes each frame, so AddressSanitizer sees one that leaves its buffer.
 *
 * Input: batch, slots, tx_count, backlog (a byte each), timeout (2), first number (4),
 * then steps, one byte and what it takes.
 */
#include "fuzz_port.h"
#include "mr_lane_turn.h"

#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 256u
#define STRIDE ((size_t)(2 * (UINT16_MAX + 1)))
#define BATCH_FUZZ 16u
#define HELD_MAX 64u
#define DRAIN_POLLS 1000u

static uint8_t memory[(FUZZ_BUFFERS + 1) * STRIDE] __attribute__((aligned(64)));
static struct fuzz_pool pool;
static struct mr_lane lane; /* tx and its ring are used */

struct world {
	struct fuzz_input in;
	uint8_t *out;
	uint64_t now;
	bool drain; /* the ports take everything */
	/* per buffer of the pool */
	uint32_t allowed[FUZZ_BUFFERS]; /* bits of the tx list that an answer gave */
	uint64_t number[FUZZ_BUFFERS];
	/* the ports */
	uint64_t given, sent, sent_bytes, done;
	uint64_t last[MR_TX_MAX]; /* number of the last frame, from 1 */
	struct rte_mbuf *held[HELD_MAX];
	uint32_t held_count;
};

struct port {
	struct world *w;
	uint32_t index;
};

static struct mr_slot_out *out_of(const struct world *w, uint32_t seq)
{
	return (struct mr_slot_out *)(w->out + (size_t)(seq & lane.ring.mask) * lane.ring.stride);
}

static uint32_t known(void)
{
	return (1u << lane.tx.tx_count) - 1;
}

static struct rte_mbuf **mbufs_of(uint32_t seq)
{
	return &lane.mbufs[(size_t)(seq & lane.ring.mask) * lane.ring.batch];
}

/* What the answer that lies in a slot now allows, whether or not it is the last one. */
static void note_answer(struct world *w, uint32_t seq)
{
	const struct mr_slot_out *h = out_of(w, seq);
	const struct mr_desc_out *d = mr_slot_desc_out(h);

	for (uint32_t i = 0; i < lane.slots[seq & lane.ring.mask].count; i++) {
		uint32_t *allowed = &w->allowed[fuzz_pool_index(&pool, mbufs_of(seq)[i])];

		if (seq == lane.ring.tail && i < lane.tx.cursor)
			continue; /* not the slot's any more */
		*allowed |= h->plain != 0;
		if (d[i].verdict == MR_TX && d[i].port < lane.tx.tx_count)
			*allowed |= 1u << d[i].port;
		if (d[i].verdict == MR_TX_MASK)
			*allowed |= d[i].arg & known();
	}
}

static void check_frame(struct world *w, uint32_t port, const struct rte_mbuf *m)
{
	uint32_t index = fuzz_pool_index(&pool, m);

	if (!pool.out[index] || m->nb_segs != 1 || m->next != NULL ||
		m->buf_addr != memory + index * STRIDE)
		fuzz_fail("what is sent is a buffer of the lane");
	if (m->data_off + m->data_len > (int)ROOM || m->pkt_len != m->data_len)
		fuzz_fail("what is sent lies in its buffer");
	if ((w->allowed[index] >> port & 1) == 0)
		fuzz_fail("a frame leaves by a port that an answer names");
	if (w->number[index] <= w->last[port])
		fuzz_fail("frames leave a port in the order of their lane");
	w->last[port] = w->number[index];
}

static uint16_t transmit(void *queue, struct rte_mbuf **m, uint16_t n)
{
	struct port *p = queue;
	struct world *w = p->w;
	uint32_t take = w->drain ? n : (uint32_t)fuzz_take(&w->in, 1) % (n + 1u);

	for (uint32_t i = 0; i < take; i++) {
		memset((uint8_t *)m[i]->buf_addr + m[i]->data_off, 0xee, m[i]->data_len);
		check_frame(w, p->index, m[i]);
		w->sent++;
		w->sent_bytes += m[i]->data_len;
		/* A driver keeps some until they are on the wire. */
		if (w->held_count < HELD_MAX && (fuzz_take(&w->in, 1) & 1) != 0)
			w->held[w->held_count++] = m[i];
		else
			rte_pktmbuf_free(m[i]);
	}
	return (uint16_t)take;
}

static void give(struct world *w)
{
	uint32_t seq = lane.ring.head, count = 0;
	uint32_t wanted = 1 + (uint32_t)fuzz_take(&w->in, 1) % lane.ring.batch;
	struct mr_ring_note *note = &lane.slots[seq & lane.ring.mask];

	if (mr_ring_full(&lane.ring))
		return;
	note->opened_tsc = w->now;
	note->bytes = 0;
	for (; count < wanted; count++) {
		struct rte_mbuf *m = fuzz_pool_take(&pool);

		if (m == NULL)
			break;
		m->data_off = (uint16_t)fuzz_take(&w->in, 1);
		m->data_len = (uint16_t)(fuzz_take(&w->in, 1) % (ROOM - m->data_off + 1));
		m->pkt_len = m->data_len;
		note->bytes += m->data_len;
		w->allowed[fuzz_pool_index(&pool, m)] = 0;
		w->number[fuzz_pool_index(&pool, m)] = ++w->given;
		mr_slot_desc_in(mr_ring_in(&lane.ring, seq))[count] =
			(struct mr_desc_in){.length = m->data_len, .head = m->data_off};
		mbufs_of(seq)[count] = m;
	}
	if (count == 0)
		return;
	note->count = count;
	mr_ring_give(&lane.ring, count, 0);
	note_answer(w, seq);
}

static struct mr_desc_out result(struct world *w, const struct mr_desc_in *in)
{
	uint32_t how = (uint32_t)fuzz_take(&w->in, 1);
	struct mr_desc_out r = {.length = in->length, .head = in->head};

	if ((how & 1) != 0)
		r.verdict = (uint8_t)(how >> 4);
	if ((how & 2) != 0)
		r.port = (uint8_t)fuzz_take(&w->in, 1);
	if ((how & 4) != 0)
		r.arg = (uint16_t)fuzz_take(&w->in, 2);
	if ((how & 8) != 0) {
		r.length = (uint16_t)fuzz_take(&w->in, 2);
		r.head = (uint16_t)fuzz_take(&w->in, 2);
	}
	return r;
}

static void answer(struct world *w)
{
	uint32_t seq = lane.ring.tail, outstanding = mr_ring_outstanding(&lane.ring), how;
	struct mr_slot_out *h;

	if (outstanding == 0)
		return;
	seq += (uint32_t)fuzz_take(&w->in, 1) % outstanding;
	how = (uint32_t)fuzz_take(&w->in, 1);
	h = out_of(w, seq);
	for (uint32_t i = 0; i < lane.slots[seq & lane.ring.mask].count; i++)
		((struct mr_desc_out *)(h + 1))[i] =
			result(w, &mr_slot_desc_in(mr_ring_in(&lane.ring, seq))[i]);
	h->plain = (how & 1) != 0 ? (uint32_t)fuzz_take(&w->in, 4) : how >> 1 & 1;
	h->done = (how & 4) != 0 ? (uint32_t)fuzz_take(&w->in, 4) : seq + 1;
	note_answer(w, seq);
}

/* Adds what a result means to the counters, if it is the result that is gone by. */
static void judge(const struct mr_desc_out *r, struct mr_counters *c)
{
	uint32_t bits = (uint32_t)__builtin_popcount(r->arg);

	if (r->verdict == MR_DROP && r->arg < MR_REASON_COUNT)
		c->c[MR_C_gpu_drop_window + r->arg]++;
	else if (r->verdict >= MR_DROP || r->length < MR_FRAME_MIN ||
		r->head + r->length > (int)ROOM)
		c->c[MR_C_tx_drop_bad_result]++;
	else if (r->verdict == MR_TX)
		c->c[MR_C_tx_drop_no_port] += r->port >= lane.tx.tx_count;
	else if (bits == 0)
		c->c[MR_C_tx_drop_no_port]++;
	else {
		c->c[MR_C_made_packets] += bits - 1;
		c->c[MR_C_tx_drop_no_port] += bits - (uint32_t)__builtin_popcount(r->arg & known());
	}
}

/* The oldest slot before a poll. */
struct oldest {
	uint32_t seq, count, cursor;
};

/*
 * The packets that a poll dealt with, from the cursor it found to the one it left. Of a
 * plain slot results are gone by only where it could not leave as a whole.
 */
static void check_results(
	struct world *w, const struct mr_counters *before, const struct oldest *was)
{
	const struct mr_slot_out *h = out_of(w, was->seq);
	bool finished = lane.ring.tail != was->seq;
	uint32_t to = finished ? was->count : lane.tx.cursor;
	struct mr_counters least = *before, most = *before;

	if (lane.ring.tail - was->seq > 1 || (finished && lane.tx.cursor != 0))
		fuzz_fail("a poll completes one slot");
	for (uint32_t i = was->cursor; i < to; i++) {
		judge(&mr_slot_desc_out(h)[i], &most);
		if (h->plain == 0)
			judge(&mr_slot_desc_out(h)[i], &least);
	}
	w->done += finished ? was->count : 0;
	for (uint32_t c = 0; c < MR_C_COUNT; c++) {
		bool named = c == MR_C_made_packets || c == MR_C_tx_drop_bad_result ||
			c == MR_C_tx_drop_no_port ||
			(c >= MR_C_gpu_drop_window && c < MR_C_gpu_drop_window + MR_REASON_COUNT);

		if (named && (lane.counters.c[c] < least.c[c] || lane.counters.c[c] > most.c[c]))
			fuzz_fail("every result is counted once and by its name");
	}
}

static void check_counters(const struct world *w)
{
	const struct mr_counters *c = &lane.counters;
	uint64_t waiting = 0;

	for (uint32_t i = 0; i < lane.tx.tx_count; i++) {
		const struct mr_txq *q = &lane.tx.q[i];

		if (q->head - q->tail > q->limit)
			fuzz_fail("a backlog holds no more than its limit");
		waiting += q->head - q->tail;
	}
	if (waiting != lane.tx.waiting)
		fuzz_fail("what waits is what lies in backlogs");
	if (!mr_counters_balanced(c, mr_lane_in_flight(&lane)))
		fuzz_fail("the counters are balanced");
	if (c->c[MR_C_tx_packets] != w->sent || c->c[MR_C_tx_bytes] != w->sent_bytes)
		fuzz_fail("frames and bytes sent are those that ports took");
	if (lane.latency.count != w->done)
		fuzz_fail("the latency of every packet is in the histogram");
}

static void poll(struct world *w)
{
	struct mr_counters before = lane.counters;
	struct oldest was = {.seq = lane.ring.tail,
		.count = lane.slots[lane.ring.tail & lane.ring.mask].count,
		.cursor = lane.tx.cursor};

	w->now += fuzz_take(&w->in, 1);
	mr_tx_poll(&lane.tx, w->now);
	check_results(w, &before, &was);
	check_counters(w);
}

static void release_held(struct world *w)
{
	while (w->held_count != 0)
		rte_pktmbuf_free(w->held[--w->held_count]);
}

static void step(struct world *w)
{
	uint32_t how = (uint32_t)fuzz_take(&w->in, 1);

	switch (how % 8) {
	case 0:
	case 1:
		give(w);
		lane.counters.c[MR_C_rx_packets] = w->given;
		break;
	case 2:
	case 3:
		answer(w);
		break;
	case 4:
		release_held(w);
		break;
	case 5:
		lane.tx.q[how / 8 % lane.tx.tx_count].link_down ^= 1;
		break;
	default:
		poll(w);
		break;
	}
}

/* An honest kernel answers what is left, and the ports take it. */
static void drain(struct world *w)
{
	uint32_t polls = 0;

	w->drain = true;
	for (uint32_t i = 0; i < lane.tx.tx_count; i++)
		lane.tx.q[i].link_down = 0;
	for (uint32_t seq = lane.ring.tail; seq != lane.ring.head; seq++)
		out_of(w, seq)->done = seq + 1;
	while (mr_ring_outstanding(&lane.ring) != 0 || lane.tx.waiting != 0) {
		if (polls++ == DRAIN_POLLS)
			fuzz_fail("what is answered leaves when the ports take it");
		poll(w);
	}
	release_held(w);
	if (pool.out_count != 0)
		fuzz_fail("no buffer is lost");
}

static void open_queue(struct world *w, struct port *p, uint32_t i, uint32_t backlog)
{
	uint32_t size = 1;

	while (size < backlog)
		size *= 2;
	*p = (struct port){w, i};
	fuzz_port_open((uint16_t)i, NULL, transmit, p);
	lane.tx.q[i] = (struct mr_txq){.port = (uint16_t)i,
		.wait = fuzz_lines(size, sizeof(void *)),
		.wait_tsc = fuzz_lines(size, sizeof(uint64_t)),
		.mask = size - 1,
		.limit = backlog};
}

static void open_world(struct world *w, struct port *ports)
{
	uint32_t batch = 1 + (uint32_t)fuzz_take(&w->in, 1) % BATCH_FUZZ;
	uint32_t slots = 2u << fuzz_take(&w->in, 1) % 4;
	uint32_t tx_count = 1 + (uint32_t)fuzz_take(&w->in, 1) % MR_TX_MAX;
	uint32_t backlog = 1 + (uint32_t)fuzz_take(&w->in, 1) % 16;
	uint64_t timeout = fuzz_take(&w->in, 2);
	size_t stride = MR_SLOT_BYTES(batch);

	w->out = fuzz_lines(slots, stride);
	if (mr_ring_init(&lane.ring, fuzz_lines(slots, stride), NULL, w->out, slots, batch,
		    (uint32_t)fuzz_take(&w->in, 4), NULL) != 0)
		fuzz_fail("there is a ring");
	lane.mbufs = fuzz_lines((size_t)slots * batch, sizeof(*lane.mbufs));
	lane.slots = fuzz_lines(slots, sizeof(*lane.slots));
	lane.counters = (struct mr_counters){0};
	lane.latency.count = 0;
	lane.rx = (struct mr_rx){.ring = &lane.ring};
	lane.tx = (struct mr_tx){
		.ring = &lane.ring, .counters = &lane.counters, .latency = &lane.latency};
	mr_lane_link(&lane);
	lane.tx.room = ROOM;
	lane.tx.tx_count = tx_count;
	lane.tx.timeout_tsc = timeout;
	lane.tx.ns_per_tsc = 1u << MR_TX_TSC_SHIFT;
	for (uint32_t i = 0; i < tx_count; i++)
		open_queue(w, &ports[i], i, backlog);
}

static void close_world(struct world *w)
{
	for (uint32_t i = 0; i < lane.tx.tx_count; i++) {
		free(lane.tx.q[i].wait);
		free(lane.tx.q[i].wait_tsc);
	}
	free(lane.mbufs);
	free(lane.slots);
	free(lane.ring.in);
	free(w->out);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_pool_init(&pool, memory, STRIDE, ROOM);
	ASAN_POISON_MEMORY_REGION(memory, sizeof(memory));
	for (uint32_t i = 0; i < FUZZ_BUFFERS; i++)
		ASAN_UNPOISON_MEMORY_REGION(memory + i * STRIDE, ROOM);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct port ports[MR_TX_MAX];
	struct world w = {.in = {data, size}};

	open_world(&w, ports);
	while (w.in.left != 0)
		step(&w);
	drain(&w);
	close_world(&w);
	return 0;
}
