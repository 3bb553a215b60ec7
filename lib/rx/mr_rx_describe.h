/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_rx_describe - descriptors for a burst of mbufs, in every form we have.
 *
 * A form writes one struct mr_desc_in per mbuf, adds up the lengths, and says
 * whether every mbuf is as it should be: its buffer starts in the region at a
 * multiple of MR_UNIT, it has one owner and one segment, that segment is the whole
 * frame, and the frame lies in the buffer. It does not say which is not; the caller
 * then looks at each.
 *
 * Regions and buffers lie in user space, below 2^57: no driver can have written a frame
 * elsewhere, and with that a form may use the bits above for what it likes.
 *
 * The scalar form is the specification. The AVX2 form takes eight mbufs at a time
 * with gathers and leaves what is left over to the scalar one. All checks are collected and
 * judged once at the end, so that there is no branch per packet.
 *
 * The split form is for a port that splits frames: it takes the first of two segments for
 * the frame, by making it one until mr_tx puts them together again, and its sum is of both. A
 * frame that is freed before goes whole, as its first segment still leads to the second.
 *
 * Thread   the lane's core; stateless.
 */
#ifndef MR_RX_DESCRIBE_H
#define MR_RX_DESCRIBE_H

#include <stdint.h>

struct rte_mbuf;

/* Where a buffer of the lane may start. */
struct mr_rx_window {
	uint64_t region; /* address of the packet region */
	uint64_t limit;  /* last offset at which a buffer may start, below 2^38 */
	/* For the vector form: of a frame behind the usual headroom, the address less what
	   puts the head into the descriptor, and what each half of the descriptor is at most. */
	uint64_t start, highest;
	uint32_t room; /* bytes of a buffer */
};

/*
 * mr_rx_window_init describes a region of that many bytes, multiples of MR_UNIT, at
 * most 2^38. room: RTE_PKTMBUF_HEADROOM..65535 and at most bytes.
 */
void mr_rx_window_init(struct mr_rx_window *w, uint64_t region, uint64_t bytes, uint32_t room);

/* Returned instead of a sum when an mbuf is not as it should be. */
#define MR_RX_DESCRIBE_BAD UINT64_MAX

/*
 * n is at least 1; desc is an array of n struct mr_desc_in as words: position | length << 32 |
 * head << 48. Returns the sum of the lengths or MR_RX_DESCRIBE_BAD.
 */
typedef uint64_t (*mr_rx_describe_fn)(
	const struct mr_rx_window *w, struct rte_mbuf *const *m, uint32_t n, uint64_t *desc);

uint64_t mr_rx_describe_scalar(
	const struct mr_rx_window *w, struct rte_mbuf *const *m, uint32_t n, uint64_t *desc);
uint64_t mr_rx_describe_split(
	const struct mr_rx_window *w, struct rte_mbuf *const *m, uint32_t n, uint64_t *desc);
#if defined(__x86_64__)
uint64_t mr_rx_describe_avx2(
	const struct mr_rx_window *w, struct rte_mbuf *const *m, uint32_t n, uint64_t *desc);
#endif

/* mr_rx_describe_best gives the fastest form that this CPU runs; not for the loop. */
static inline mr_rx_describe_fn mr_rx_describe_best(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return mr_rx_describe_avx2;
#endif
	return mr_rx_describe_scalar;
}

#endif
