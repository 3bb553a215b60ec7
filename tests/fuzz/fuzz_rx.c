/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any mbufs out of a port: buffers anywhere, heads, lengths and owners of any number,
 * chains, and segment counts that lie. Every frame is described, so that it lies in a
 * buffer of the region, or dropped by the name of its fault; nothing is lost, and all
 * forms of mr_rx_describe say the same. The worker writes every frame where its
 * descriptor says, so AddressSanitizer sees one that is outside.
 *
 * Input: batch, slots, workers, how (a byte each), timeout (2), first number (4), a
 * second window for the forms (4 + 5 + 2), then steps, one byte and what it takes.
 *
 * What cannot be judged here are pointers of an mbuf to other memory of the process,
 * `pool` and `next`: whoever writes those needs no packet. Buffers lie below 2^57, as
 * mr_rx_describe.h says.
 */
#include "fuzz_port.h"
#include "mr_lane_turn.h"

#include <stdlib.h>
#include <string.h>

#define ELEMENT 256u
#define REGION_BYTES (FUZZ_BUFFERS * ELEMENT)
#define BATCH_FUZZ 40u
#define BURST_MAX 64u
#define PORT 3u
#define USER_SPACE ((UINT64_C(1) << 57) - 1)

static struct fuzz_pool own, foreign;
static struct mr_lane lane; /* rx and its ring are used */
static uint8_t *region;

struct world {
	struct fuzz_input in;
	struct mr_counters want;
	struct mr_rx_window second;
	uint64_t now;
	/* what the port gave last */
	struct rte_mbuf *burst[BURST_MAX];
	struct rte_mbuf before[BURST_MAX];
	uint32_t given;
};

enum hostile {
	FOREIGN = 1 << 0,
	LENGTH = 1 << 1,
	PACKET_LENGTH = 1 << 2,
	HEAD = 1 << 3,
	SEGMENTS = 1 << 4,
	OWNERS = 1 << 5,
	ADDRESS = 1 << 6,
	CHAIN = 1 << 7,
};

static void chain(struct world *w, struct rte_mbuf *m)
{
	uint32_t how = (uint32_t)fuzz_take(&w->in, 1);

	for (uint32_t n = how % 4; n != 0; n--) {
		struct rte_mbuf *s = fuzz_pool_take(&own);

		if (s == NULL)
			return;
		s->next = m->next;
		m->next = s;
		s->data_len = 16;
		m->nb_segs += (how & 16) == 0;
		m->pkt_len += (how & 32) == 0 ? 16 : 0;
	}
}

static struct rte_mbuf *make(struct world *w)
{
	uint32_t hostile = (uint32_t)fuzz_take(&w->in, 1);
	struct rte_mbuf *m = fuzz_pool_take((hostile & FOREIGN) != 0 ? &foreign : &own);

	if (m == NULL)
		return NULL;
	m->data_len = (uint16_t)(fuzz_take(&w->in, 1) % (ELEMENT - RTE_PKTMBUF_HEADROOM + 1));
	if ((hostile & LENGTH) != 0)
		m->data_len = (uint16_t)fuzz_take(&w->in, 2);
	m->pkt_len = m->data_len;
	if ((hostile & PACKET_LENGTH) != 0)
		m->pkt_len = (uint32_t)fuzz_take(&w->in, 4);
	if ((hostile & HEAD) != 0)
		m->data_off = (uint16_t)fuzz_take(&w->in, 2);
	if ((hostile & SEGMENTS) != 0)
		m->nb_segs = (uint16_t)fuzz_take(&w->in, 2);
	if ((hostile & OWNERS) != 0)
		rte_mbuf_refcnt_set(m, (uint16_t)fuzz_take(&w->in, 2));
	if ((hostile & ADDRESS) != 0) {
		uint32_t how = (uint32_t)fuzz_take(&w->in, 1);
		uint64_t at = fuzz_take(&w->in, (how & 1) != 0 ? 8 : 3);

		/* Half of those beside the region are moved to its ends, or hardly any were near.
		 */
		if ((how & 2) != 0)
			at = at % (REGION_BYTES / MR_UNIT + 4) * MR_UNIT - MR_UNIT;
		if ((how & 4) == 0)
			at += (uintptr_t)region;
		m->buf_addr = (void *)(uintptr_t)(at & USER_SPACE);
	}
	if ((hostile & CHAIN) != 0)
		chain(w, m);
	return m;
}

static void forms_agree(const struct mr_rx_window *window, struct rte_mbuf *const *m, uint32_t n)
{
#if defined(__x86_64__)
	uint64_t *a = malloc(n * sizeof(*a)), *b = malloc(n * sizeof(*b));
	uint64_t sum = mr_rx_describe_scalar(window, m, n, a);

	if (__builtin_cpu_supports("avx2")) {
		if (mr_rx_describe_avx2(window, m, n, b) != sum)
			fuzz_fail("the forms of describe give the same sum");
		if (sum != MR_RX_DESCRIBE_BAD && n != 0 && memcmp(a, b, n * sizeof(*a)) != 0)
			fuzz_fail("the forms of describe give the same descriptors");
	}
	free(a);
	free(b);
#endif
}

static uint16_t receive(void *queue, struct rte_mbuf **m, uint16_t n)
{
	struct world *w = queue;
	uint32_t wire = (uint32_t)fuzz_take(&w->in, 1);

	for (w->given = 0; w->given < n && w->given < wire; w->given++) {
		m[w->given] = make(w);
		if (m[w->given] == NULL)
			break;
		w->burst[w->given] = m[w->given];
		w->before[w->given] = *m[w->given];
	}
	if (w->given != 0) {
		forms_agree(&lane.rx.window, m, w->given);
		forms_agree(&w->second, m, w->given);
	}
	return (uint16_t)w->given;
}

/* The counter that mr_rx.h promises for an mbuf, rx_packets for one that is described. */
static enum mr_counter fate(const struct rte_mbuf *m)
{
	const uint8_t *at = m->buf_addr, *end = region + REGION_BYTES;

	if (m->nb_segs != 1)
		return MR_C_rx_drop_oversize;
	if (at < region || at >= end || end - at < (ptrdiff_t)ELEMENT ||
		(at - region) % MR_UNIT != 0)
		return MR_C_rx_drop_foreign;
	if (rte_mbuf_refcnt_read(m) != 1)
		return MR_C_rx_drop_shared;
	if (m->data_off + m->data_len > (int)ELEMENT || m->pkt_len != m->data_len)
		return MR_C_rx_drop_oversize;
	return MR_C_rx_packets;
}

static bool is_out(const struct rte_mbuf *m)
{
	const struct fuzz_pool *p = m >= own.mbuf && m < own.mbuf + FUZZ_BUFFERS ? &own : &foreign;

	return p->out[fuzz_pool_index(p, m)];
}

/* A dropped buffer: it is back, or has one owner less, for whom it is then freed. */
static void check_released(struct rte_mbuf *m, const struct rte_mbuf *before)
{
	uint16_t owners = rte_mbuf_refcnt_read(before);

	if (is_out(m) != (owners != 1))
		fuzz_fail("a dropped buffer goes back unless it is shared");
	if (owners == 1)
		return;
	if (rte_mbuf_refcnt_read(m) != (uint16_t)(owners - 1))
		fuzz_fail("a dropped buffer that is shared has one owner less");
	m->next = NULL;
	m->nb_segs = 1;
	rte_mbuf_refcnt_set(m, 1);
	rte_pktmbuf_free(m);
}

static void check_described(
	uint32_t seq, uint32_t at, struct rte_mbuf *m, const struct rte_mbuf *was)
{
	const struct mr_desc_in *d = mr_slot_desc_in(mr_ring_in(&lane.ring, seq)) + at;

	if (lane.mbufs[(size_t)(seq & lane.ring.mask) * lane.ring.batch + at] != m)
		fuzz_fail("the good buffers of a burst keep their order");
	if (memcmp(m, was, sizeof(*m)) != 0 || !is_out(m))
		fuzz_fail("a described buffer is untouched");
	if (region + (size_t)d->position * MR_UNIT != m->buf_addr || d->length != m->data_len ||
		d->head != m->data_off)
		fuzz_fail("a descriptor says where the frame is");
}

static void check_counters(struct world *w)
{
	/* Nothing is sent here; what left through a slot is taken as sent. */
	lane.counters.c[MR_C_tx_packets] = w->want.c[MR_C_tx_packets];
	for (uint32_t c = MR_C_rx_packets; c <= MR_C_rx_drop_shed; c++)
		if (lane.counters.c[c] != w->want.c[c])
			fuzz_fail("every frame is counted once and by its name");
	if (!mr_counters_balanced(&lane.counters, mr_lane_in_flight(&lane)))
		fuzz_fail("the counters are balanced");
}

/* The worker of the slot that a poll added to, frame by frame. */
static void work(uint32_t seq, uint32_t from, uint32_t to)
{
	const struct mr_desc_in *d = mr_slot_desc_in(mr_ring_in(&lane.ring, seq));

	for (uint32_t i = from; i < to; i++)
		memset(region + (size_t)d[i].position * MR_UNIT + d[i].head, 0xee, d[i].length);
}

static void poll(struct world *w)
{
	uint32_t seq = lane.ring.head, at = mr_rx_fill(&lane.rx), to;
	bool full = mr_ring_full(&lane.ring);

	w->given = 0;
	w->now += fuzz_take(&w->in, 1);
	if (mr_rx_poll(&lane.rx, w->now) != w->given)
		fuzz_fail("a poll gives the number of frames");
	to = full ? 0 : lane.slots[seq & lane.ring.mask].count;
	work(seq, at, to);
	for (uint32_t i = 0; i < w->given; i++) {
		enum mr_counter c = full ? MR_C_rx_drop_shed : fate(&w->before[i]);

		w->want.c[MR_C_rx_packets]++;
		w->want.c[MR_C_rx_bytes] += w->before[i].pkt_len;
		if (c == MR_C_rx_packets) {
			check_described(seq, at++, w->burst[i], &w->before[i]);
		} else {
			w->want.c[c]++;
			check_released(w->burst[i], &w->before[i]);
		}
	}
	if (!full && at != to)
		fuzz_fail("only good buffers are described");
	check_counters(w);
}

/* The kernel and tx: the oldest slots are done and their buffers go back. */
static void finish(struct world *w, uint32_t slots)
{
	for (; slots != 0 && lane.ring.tail != lane.ring.head; slots--) {
		uint32_t seq = lane.ring.tail, index = seq & lane.ring.mask;
		struct mr_slot_in *in = mr_ring_in(&lane.ring, seq);
		uint32_t count = lane.slots[index].count;
		uint64_t bytes = 0;

		if (in->ready != seq + 1 || in->count != count || in->rx_port != PORT || count == 0)
			fuzz_fail("a given slot says what it holds");
		for (uint32_t i = 0; i < count; i++) {
			struct rte_mbuf *m = lane.mbufs[(size_t)index * lane.ring.batch + i];
			struct rte_mbuf was = *m;

			check_described(seq, i, m, &was);
			bytes += m->data_len;
			rte_pktmbuf_free(m);
		}
		if (bytes != lane.slots[index].bytes)
			fuzz_fail("a slot's bytes are those of its frames");
		w->want.c[MR_C_tx_packets] += count;
		lane.slots[index].count = 0;
		mr_ring_release(&lane.ring);
	}
	check_counters(w);
}

static void step(struct world *w)
{
	uint32_t how = (uint32_t)fuzz_take(&w->in, 1);

	if (how % 8 == 0)
		finish(w, 1 + how / 8);
	else if (how % 8 == 1)
		mr_rx_flush(&lane.rx);
	else
		poll(w);
}

static void open_world(struct world *w)
{
	uint32_t batch = 1 + (uint32_t)fuzz_take(&w->in, 1) % BATCH_FUZZ;
	uint32_t slots = 2u << fuzz_take(&w->in, 1) % 3;
	uint32_t workers = 1 + (uint32_t)fuzz_take(&w->in, 1) % slots;
	uint32_t how = (uint32_t)fuzz_take(&w->in, 1), room;
	uint64_t timeout = fuzz_take(&w->in, 2), base, bytes;
	size_t stride = MR_SLOT_BYTES(batch);

	if (mr_ring_init(&lane.ring, fuzz_lines(slots, stride), NULL, fuzz_lines(slots, stride),
		    slots, batch, (uint32_t)fuzz_take(&w->in, 4), NULL) != 0)
		fuzz_fail("there is a ring");
	lane.mbufs = fuzz_lines((size_t)slots * batch, sizeof(*lane.mbufs));
	lane.slots = fuzz_lines(slots, sizeof(*lane.slots));
	lane.counters = (struct mr_counters){0};
	lane.rx = (struct mr_rx){.ring = &lane.ring,
		.counters = &lane.counters,
		.timeout_tsc = timeout,
		.describe = (how & 1) != 0 ? mr_rx_describe_scalar : mr_rx_describe_best(),
		.workers = workers,
		.port = PORT,
		.shed = (how & 2) != 0};
	mr_lane_link(&lane);
	mr_rx_window_init(&lane.rx.window, (uintptr_t)region, REGION_BYTES, ELEMENT);
	base = (uintptr_t)region - fuzz_take(&w->in, 4) * MR_UNIT;
	bytes = fuzz_take(&w->in, 5) % (UINT64_C(1) << 32) * MR_UNIT;
	room = RTE_PKTMBUF_HEADROOM +
		(uint32_t)fuzz_take(&w->in, 2) % (UINT16_MAX - RTE_PKTMBUF_HEADROOM + 1);
	mr_rx_window_init(
		&w->second, base, bytes > MR_ALIGN_UP(room, MR_UNIT) ? bytes : 1 << 16, room);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	region = fuzz_lines(FUZZ_BUFFERS, ELEMENT);
	fuzz_pool_init(&own, region, ELEMENT, ELEMENT);
	fuzz_pool_init(&foreign, fuzz_lines(FUZZ_BUFFERS, ELEMENT), ELEMENT, ELEMENT);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = {.in = {data, size}};

	open_world(&w);
	fuzz_port_open(PORT, receive, NULL, &w);
	while (w.in.left != 0)
		step(&w);
	mr_rx_flush(&lane.rx);
	finish(&w, UINT32_MAX);
	if (own.out_count != 0 || foreign.out_count != 0)
		fuzz_fail("no buffer is lost");
	free(lane.mbufs);
	free(lane.slots);
	free(lane.ring.in);
	free((void *)(uintptr_t)lane.ring.out);
	return 0;
}
