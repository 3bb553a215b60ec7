/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_rx.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#define SHED_BURST 64

/* Something in the burst is not as it should be: keep the good, free and count the rest. */
static __attribute__((noinline, cold)) uint32_t describe_each(
	struct mr_rx *rx, struct rte_mbuf **m, uint32_t n, uint64_t *desc, uint64_t *ret_bytes)
{
	uint32_t kept = 0;

	*ret_bytes = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t offset = (uint64_t)(uintptr_t)m[i]->buf_addr - rx->region, bytes;

		if (mr_rx_describe_scalar(
			    &m[i], 1, rx->region, rx->region_limit, &desc[kept], &bytes)) {
			*ret_bytes += bytes;
			m[kept++] = m[i];
			continue;
		}
		if (m[i]->nb_segs != 1)
			rx->counters->c[MR_C_rx_drop_oversize]++;
		else if (offset > rx->region_limit || offset % MR_UNIT != 0)
			rx->counters->c[MR_C_rx_drop_foreign]++;
		else
			rx->counters->c[MR_C_rx_drop_shared]++;
		rx->counters->c[MR_C_rx_bytes] += m[i]->pkt_len;
		rte_pktmbuf_free(m[i]);
	}
	return kept;
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
	uint64_t *desc, bytes;
	uint32_t index, n, kept;

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
		if (rx->fill == 0) {
			slot->opened_tsc = now;
			slot->bytes = 0;
		}
		rx->counters->c[MR_C_rx_packets] += n;
		kept = n;
		if (MR_UNLIKELY(!rx->describe(m, n, rx->region, rx->region_limit, desc, &bytes)))
			kept = describe_each(rx, m, n, desc, &bytes);
		rx->counters->c[MR_C_rx_bytes] += bytes;
		slot->bytes += bytes;
		rx->fill += kept;
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
