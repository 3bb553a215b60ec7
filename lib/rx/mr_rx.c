/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_rx.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#define SHED_BURST 64

/* Out of line, so that the frames' way stays short. */
#define COLD __attribute__((noinline, cold))

static inline uint64_t *descriptors(struct mr_slot_in *in, uint32_t from)
{
	return (uint64_t *)mr_slot_desc_in(in) + from;
}

/* Something in the burst is not as it should be: keep the good, free and count the rest. */
static COLD uint32_t describe_each(struct mr_rx *rx, struct mr_ring_note *slot, struct rte_mbuf **m,
	uint32_t n, struct mr_slot_in *in)
{
	uint64_t *desc = descriptors(in, rx->fill);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t offset = (uint64_t)(uintptr_t)m[i]->buf_addr - rx->window.region;
		uint64_t bytes = mr_rx_describe_scalar(&rx->window, &m[i], 1, &desc[kept]);

		rx->counters->c[MR_C_rx_bytes] += m[i]->pkt_len;
		if (bytes != MR_RX_DESCRIBE_BAD) {
			slot->bytes += bytes;
			m[kept++] = m[i];
			continue;
		}
		if (m[i]->nb_segs != 1)
			rx->counters->c[MR_C_rx_drop_oversize]++;
		else if (offset > rx->window.limit || offset % MR_UNIT != 0)
			rx->counters->c[MR_C_rx_drop_foreign]++;
		else
			rx->counters->c[MR_C_rx_drop_shared]++;
		mr_sync_leave(m[i]);
		rte_pktmbuf_free(m[i]);
	}
	return kept;
}

static __attribute__((noinline)) uint32_t guarded_burst(
	struct mr_rx *rx, struct rte_mbuf **m, uint32_t n)
{
	uint32_t got;

	mr_guard_open(rx->guard);
	got = rte_eth_rx_burst(rx->port, rx->queue, m, (uint16_t)n);
	mr_guard_close(rx->guard);
	return got;
}

static inline uint32_t burst(struct mr_rx *rx, struct rte_mbuf **m, uint32_t n)
{
	if (MR_UNLIKELY(rx->guard != NULL))
		n = guarded_burst(rx, m, n);
	else
		n = rte_eth_rx_burst(rx->port, rx->queue, m, (uint16_t)n);
	for (uint32_t i = 0; i < n; i++)
		mr_sync_enter(m[i]);
	return n;
}

static inline void give(struct mr_rx *rx, struct mr_ring *ring, struct mr_slot_in *in,
	struct mr_ring_note *slot, uint32_t count)
{
	slot->count = count;
	rx->fill = 0;
	rx->counters->c[MR_C_slots_given]++;
	if (MR_UNLIKELY(rx->flush != NULL))
		(void)rx->flush(rx->flush_arg);
	mr_ring_give_slot(ring, in, count, (uint8_t)rx->port);
}

/* No free slot: leaves the frames with the port, or takes and loses them by name. */
static COLD uint32_t full(struct mr_rx *rx)
{
	struct rte_mbuf *m[SHED_BURST];
	uint32_t n;

	rx->counters->c[MR_C_ring_full]++;
	if (!rx->shed)
		return 0;
	n = burst(rx, m, SHED_BURST);
	for (uint32_t i = 0; i < n; i++) {
		rx->counters->c[MR_C_rx_bytes] += m[i]->pkt_len;
		mr_sync_leave(m[i]);
	}
	rx->counters->c[MR_C_rx_packets] += n;
	rx->counters->c[MR_C_rx_drop_shed] += n;
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

/* A slot that is not full waits while the lane's workers are busy, up to its timeout. */
static inline bool has_to_wait(struct mr_rx *rx, const struct mr_ring_note *slot, uint64_t now)
{
	if (mr_ring_outstanding(rx->ring) < rx->workers)
		return false;
	if (now - slot->opened_tsc < rx->timeout_tsc)
		return true;
	rx->counters->c[MR_C_slots_timeout]++;
	return false;
}

uint32_t mr_rx_poll(struct mr_rx *rx, uint64_t now)
{
	struct mr_ring *ring = rx->ring;
	uint32_t index = ring->head & ring->mask, fill = rx->fill, n;
	struct mr_ring_note *slot = &rx->slots[index];
	struct mr_slot_in *in = mr_ring_in(ring, ring->head);
	struct rte_mbuf **m = &rx->mbufs[(size_t)index * ring->batch + fill];

	if (MR_UNLIKELY(mr_ring_full(ring)))
		return full(rx);
	n = burst(rx, m, ring->batch - fill);
	if (n != 0) {
		uint64_t bytes = rx->describe(&rx->window, m, n, descriptors(in, fill));

#ifdef MR_TEST_TOUCH_PAYLOAD
		/* The guard's negative test: payload bytes read on the control core. */
		(void)mr_load_relaxed(rte_pktmbuf_mtod(m[0], const uint32_t *));
#endif
		rx->counters->c[MR_C_rx_packets] += n;
		if (MR_LIKELY(fill == 0)) {
			slot->opened_tsc = now;
			slot->bytes = 0;
		}
		if (MR_UNLIKELY(bytes == MR_RX_DESCRIBE_BAD)) {
			fill += describe_each(rx, slot, m, n, in);
		} else {
			slot->bytes += bytes;
			rx->counters->c[MR_C_rx_bytes] += bytes;
			fill += n;
		}
	}
	if (MR_LIKELY(fill == ring->batch)) {
		rx->counters->c[MR_C_slots_full]++;
	} else if (fill == 0 || has_to_wait(rx, slot, now)) {
		rx->fill = fill;
		return n;
	}
	give(rx, ring, in, slot, fill);
	return n;
}

void mr_rx_flush(struct mr_rx *rx)
{
	struct mr_ring *ring = rx->ring;

	if (rx->fill != 0)
		give(rx, ring, mr_ring_in(ring, ring->head), &rx->slots[ring->head & ring->mask],
			rx->fill);
}
