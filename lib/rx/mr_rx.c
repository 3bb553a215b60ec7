/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_rx.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#define SHED_BURST 64

/*
 * refcnt and nb_segs are the second and third 16-bit words from data_off on, so
 * one masked compare says "one owner, one segment".
 */
#define REARM_MASK UINT64_C(0x0000ffffffff0000)
#define REARM_GOOD UINT64_C(0x0000000100010000)
_Static_assert(offsetof(struct rte_mbuf, refcnt) == offsetof(struct rte_mbuf, data_off) + 2, "");
_Static_assert(offsetof(struct rte_mbuf, nb_segs) == offsetof(struct rte_mbuf, data_off) + 4, "");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "descriptors are built as words");

static inline uint64_t rearm_word(const struct rte_mbuf *m)
{
	uint64_t w;

	memcpy(&w, &m->data_off, sizeof(w));
	return w;
}

/* The descriptor as one word: position, length << 32, head << 48. */
static inline uint64_t describe(uint64_t offset, const struct rte_mbuf *m, uint64_t rearm)
{
	return offset / MR_UNIT | (uint64_t)m->data_len << 32 | rearm << 48;
}

static inline bool offset_bad(const struct mr_rx *rx, uint64_t offset)
{
	return offset > rx->region_bytes || offset % MR_UNIT != 0;
}

/* One packet of the burst is not as it should be: take the good, free and count the rest. */
static __attribute__((noinline)) uint32_t describe_checked(
	struct mr_rx *rx, struct rte_mbuf **m, uint32_t n, uint64_t *desc)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t offset = (uint64_t)(uintptr_t)m[i]->buf_addr - rx->region;
		uint64_t rearm = rearm_word(m[i]);

		if (m[i]->nb_segs != 1)
			rx->counters->c[MR_C_rx_drop_oversize]++;
		else if (offset_bad(rx, offset))
			rx->counters->c[MR_C_rx_drop_foreign]++;
		else if ((rearm & REARM_MASK) != REARM_GOOD)
			rx->counters->c[MR_C_rx_drop_shared]++;
		else {
			desc[kept] = describe(offset, m[i], rearm);
			m[kept++] = m[i];
			continue;
		}
		rx->counters->c[MR_C_rx_bytes] += m[i]->pkt_len;
		rte_pktmbuf_free(m[i]);
	}
	return kept;
}

/* Describes a burst; returns how many of it stay, moved to the front. */
static inline uint32_t describe_burst(
	struct mr_rx *rx, struct rte_mbuf **m, uint32_t n, uint64_t *desc)
{
	uint64_t bytes = 0, bad = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t offset = (uint64_t)(uintptr_t)m[i]->buf_addr - rx->region;
		uint64_t rearm = rearm_word(m[i]);

		bad |= (uint64_t)offset_bad(rx, offset) | ((rearm & REARM_MASK) ^ REARM_GOOD);
		desc[i] = describe(offset, m[i], rearm);
		bytes += m[i]->data_len;
	}
	rx->counters->c[MR_C_rx_packets] += n;
	if (MR_UNLIKELY(bad != 0)) {
		n = describe_checked(rx, m, n, desc);
		bytes = 0;
		for (uint32_t i = 0; i < n; i++)
			bytes += m[i]->data_len;
	}
	rx->counters->c[MR_C_rx_bytes] += bytes;
	return n;
}

static inline uint32_t burst(struct mr_rx *rx, struct rte_mbuf **m, uint32_t n)
{
	uint16_t got;

	mr_guard_open(rx->guard);
	got = rte_eth_rx_burst(rx->port, rx->queue, m, (uint16_t)n);
	mr_guard_close(rx->guard);
	return got;
}

static inline void give(struct mr_rx *rx)
{
	struct mr_ring_note *slot = &rx->slots[rx->ring->head & rx->ring->mask];

	slot->count = rx->fill;
	rx->counters->c[MR_C_slots_given]++;
	if (MR_UNLIKELY(rx->flush != NULL))
		(void)rx->flush(rx->flush_arg);
	mr_ring_give(rx->ring, rx->fill, (uint8_t)rx->port);
	rx->fill = 0;
}

static __attribute__((noinline)) uint32_t shed(struct mr_rx *rx)
{
	struct rte_mbuf *m[SHED_BURST];
	uint32_t n = burst(rx, m, SHED_BURST);

	for (uint32_t i = 0; i < n; i++)
		rx->counters->c[MR_C_rx_bytes] += m[i]->pkt_len;
	rx->counters->c[MR_C_rx_packets] += n;
	rx->counters->c[MR_C_rx_drop_shed] += n;
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

uint32_t mr_rx_poll(struct mr_rx *rx, uint64_t now)
{
	struct mr_ring *ring = rx->ring;
	struct mr_ring_note *slot;
	struct rte_mbuf **m;
	uint64_t *desc;
	uint32_t index, n;

	if (MR_UNLIKELY(mr_ring_full(ring))) {
		rx->counters->c[MR_C_ring_full]++;
		return rx->shed ? shed(rx) : 0;
	}
	index = ring->head & ring->mask;
	slot = &rx->slots[index];
	m = &rx->mbufs[(size_t)index * ring->batch + rx->fill];
	desc = (uint64_t *)mr_slot_desc_in(mr_ring_in(ring, ring->head)) + rx->fill;

	n = burst(rx, m, ring->batch - rx->fill);
	if (n != 0) {
#ifdef MR_TEST_TOUCH_PAYLOAD
		/* The guard's negative test: one payload byte read on the control core. */
		rx->counters->c[MR_C_rx_bytes] +=
			*rte_pktmbuf_mtod(m[0], const volatile uint8_t *) & 0;
#endif
		if (rx->fill == 0)
			slot->opened_tsc = now;
		rx->fill += describe_burst(rx, m, n, desc);
	}
	if (rx->fill == 0)
		return n;
	if (rx->fill == ring->batch)
		rx->counters->c[MR_C_slots_full]++;
	else if (mr_ring_outstanding(ring) >= rx->workers) {
		if (now - slot->opened_tsc < rx->timeout_tsc)
			return n;
		rx->counters->c[MR_C_slots_timeout]++;
	}
	give(rx);
	return n;
}

void mr_rx_flush(struct mr_rx *rx)
{
	if (rx->fill != 0)
		give(rx);
}
