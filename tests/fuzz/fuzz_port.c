/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz_port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(offsetof(struct fuzz_pool, priv) == sizeof(struct rte_mempool), "");

void fuzz_fail(const char *what)
{
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

uint64_t fuzz_take(struct fuzz_input *in, uint32_t bytes)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < bytes && in->left != 0; i++, in->left--)
		v |= (uint64_t)*in->at++ << 8 * i;
	return v;
}

uint32_t fuzz_pool_index(const struct fuzz_pool *p, const struct rte_mbuf *m)
{
	if (m < p->mbuf || m >= p->mbuf + FUZZ_BUFFERS)
		fuzz_fail("a buffer is one of its pool's");
	return (uint32_t)(m - p->mbuf);
}

void *fuzz_lines(size_t n, size_t size)
{
	void *p = NULL;

	if (posix_memalign(&p, 64, n * size) != 0)
		fuzz_fail("there is memory");
	memset(p, 0, n * size);
	return p;
}

static int put(struct rte_mempool *mp, void *const *objects, unsigned int n)
{
	struct fuzz_pool *p = (struct fuzz_pool *)mp;

	for (unsigned int i = 0; i < n; i++) {
		struct rte_mbuf *m = objects[i];
		uint32_t index = fuzz_pool_index(p, m);

		if (!p->out[index])
			fuzz_fail("no buffer is freed twice");
		if (rte_mbuf_refcnt_read(m) != 1 || m->nb_segs != 1 || m->next != NULL)
			fuzz_fail("a free buffer has one owner and one segment");
		p->out[index] = false;
		p->out_count--;
		p->spare[FUZZ_BUFFERS - 1 - p->out_count] = (uint16_t)index;
	}
	return 0;
}

static int get(struct rte_mempool *mp, void **objects, unsigned int n)
{
	(void)mp;
	(void)objects;
	(void)n;
	fuzz_fail("the lane allocates nothing");
}

static unsigned int count(const struct rte_mempool *mp)
{
	return FUZZ_BUFFERS - ((const struct fuzz_pool *)mp)->out_count;
}

void fuzz_pool_init(struct fuzz_pool *p, uint8_t *buffers, size_t stride, uint32_t room)
{
	static const struct rte_mempool_ops ops = {
		.name = "fuzz", .enqueue = put, .dequeue = get, .get_count = count};

	memset(p, 0, sizeof(*p));
	rte_mempool_ops_table.ops[RTE_MEMPOOL_MAX_OPS_IDX - 1] = ops;
	p->mp.ops_index = RTE_MEMPOOL_MAX_OPS_IDX - 1;
	p->mp.size = FUZZ_BUFFERS;
	p->priv.mbuf_data_room_size = (uint16_t)room;
	p->priv.flags = RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF;
	p->buffers = buffers;
	p->stride = stride;
	for (uint32_t i = 0; i < FUZZ_BUFFERS; i++)
		p->spare[i] = (uint16_t)i;
}

struct rte_mbuf *fuzz_pool_take(struct fuzz_pool *p)
{
	struct rte_mbuf *m;
	uint32_t index;

	if (p->out_count == FUZZ_BUFFERS)
		return NULL;
	index = p->spare[FUZZ_BUFFERS - 1 - p->out_count++];
	m = &p->mbuf[index];
	p->out[index] = true;
	p->shared[index].refcnt = 1;
	*m = (struct rte_mbuf){.buf_addr = p->buffers + index * p->stride,
		.buf_len = p->priv.mbuf_data_room_size,
		.data_off = RTE_PKTMBUF_HEADROOM,
		.refcnt = 1,
		.nb_segs = 1,
		.ol_flags = RTE_MBUF_F_EXTERNAL,
		.shinfo = &p->shared[index],
		.pool = &p->mp};
	return m;
}

void fuzz_port_open(uint16_t port, eth_rx_burst_t rx, eth_tx_burst_t tx, void *queue)
{
	static void *queues[RTE_MAX_ETHPORTS], *callbacks[1];
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[port];

	queues[port] = queue;
	*ops = (struct rte_eth_fp_ops){.rx_pkt_burst = rx,
		.tx_pkt_burst = tx,
		.rxq = {&queues[port], callbacks},
		.txq = {&queues[port], callbacks}};
}
