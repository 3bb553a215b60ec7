/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_port - a pool and ports that a fuzz target plays, at DPDK's own seams.
 *
 *     rte_eth_rx_burst / tx_burst ── rte_eth_fp_ops ────────► the target's functions
 *     rte_pktmbuf_free ───────────── rte_mempool_ops_table ─► fuzz_pool
 *
 * The shipped code runs unchanged and without EAL, so a run takes microseconds. The
 * pool knows of every buffer whether it is out, and ends the run when one comes back
 * twice, to the wrong pool, or not as a free buffer has to be.
 *
 * Thread   one.
 * Owner    the target; pools and ports are never closed.
 */
#ifndef FUZZ_PORT_H
#define FUZZ_PORT_H

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_BUFFERS 128u

/* fuzz_fail prints what does not hold and ends the run as a crash. */
void fuzz_fail(const char *what) __attribute__((noreturn));

/* The fuzzer's bytes; what is taken beyond their end is 0. */
struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

/* fuzz_take gives the next bytes, at most eight, as a little-endian number. */
uint64_t fuzz_take(struct fuzz_input *in, uint32_t bytes);

struct fuzz_pool {
	struct rte_mempool mp;
	struct rte_pktmbuf_pool_private priv; /* where rte_mempool_get_priv() looks */
	uint8_t *buffers;
	size_t stride;
	struct rte_mbuf mbuf[FUZZ_BUFFERS];
	struct rte_mbuf_ext_shared_info shared[FUZZ_BUFFERS];
	uint16_t spare[FUZZ_BUFFERS]; /* a stack of those that are in */
	bool out[FUZZ_BUFFERS];
	uint32_t out_count;
};

/* fuzz_lines gives zeroed memory of exactly n x size bytes from a cache line on, to free(). */
void *fuzz_lines(size_t n, size_t size);

/* fuzz_pool_init: buffer i is room bytes at buffers + i x stride; room to 65535. */
void fuzz_pool_init(struct fuzz_pool *p, uint8_t *buffers, size_t stride, uint32_t room);

/* fuzz_pool_take gives a buffer as a driver fills it, without data; NULL: all are out. */
struct rte_mbuf *fuzz_pool_take(struct fuzz_pool *p);

/* fuzz_pool_index gives the number of one of the pool's buffers. */
uint32_t fuzz_pool_index(const struct fuzz_pool *p, const struct rte_mbuf *m);

/* fuzz_port_open makes these the burst functions of queue 0; queue is their first argument. */
void fuzz_port_open(uint16_t port, eth_rx_burst_t rx, eth_tx_burst_t tx, void *queue);

#endif
