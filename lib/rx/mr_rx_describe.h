/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_rx_describe - descriptors for a burst of mbufs, in every form we have.
 *
 * A form writes one struct mr_desc_in per mbuf, adds up the lengths, and says
 * whether every mbuf is as it should be: its buffer starts in the region at a
 * multiple of MR_UNIT, it has one owner and one segment. It does not say which is
 * not; the caller then looks at each.
 *
 * The scalar form is the specification. The AVX2 form takes eight mbufs at a time
 * with gathers and leaves the rest to the scalar one. All checks are collected in
 * three words and judged once at the end, so that there is no branch per packet.
 *
 * Thread   the lane's core; stateless.
 */
#ifndef MR_RX_DESCRIBE_H
#define MR_RX_DESCRIBE_H

#include <stdbool.h>
#include <stdint.h>

struct rte_mbuf;

/*
 * region is the packet region's address, limit the last offset at which a buffer
 * may start. desc is an array of n struct mr_desc_in as words: position | length
 * << 32 | head << 48. Returns true when all are good.
 */
typedef bool (*mr_rx_describe_fn)(struct rte_mbuf *const *m, uint32_t n, uint64_t region,
	uint64_t limit, uint64_t *desc, uint64_t *ret_bytes);

bool mr_rx_describe_scalar(struct rte_mbuf *const *m, uint32_t n, uint64_t region, uint64_t limit,
	uint64_t *desc, uint64_t *ret_bytes);
#if defined(__x86_64__)
bool mr_rx_describe_avx2(struct rte_mbuf *const *m, uint32_t n, uint64_t region, uint64_t limit,
	uint64_t *desc, uint64_t *ret_bytes);
#endif

/* mr_rx_describe_best gives the fastest form that this CPU runs. */
mr_rx_describe_fn mr_rx_describe_best(void);

#endif
