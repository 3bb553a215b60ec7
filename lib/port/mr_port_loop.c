/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_port_loop.h"

#include <errno.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOP_MBUFS 63u
#define LOOP_STEP_US 50u

struct mr_port_loop {
	uint16_t port;
	struct rte_mempool *pool; /* of headers: frames lie elsewhere */
	struct rte_mbuf_ext_shared_info shared;
	struct rte_mbuf *held; /* the frame that was received last */
	struct rte_ether_addr mac;
	struct mr_port_loop *next; /* of those that a driver kept */
};

/* Closed, but a driver still has headers of theirs and looks at `shared`: for ever. */
static struct mr_port_loop *kept;

bool mr_port_loop_offered(const struct mr_port *p, const char *args, const char **ret_why)
{
	if (strcmp(p->driver, "net_ring") == 0) {
		*ret_why = args[0] == '\0' ? "its rings are its own"
					   : "its rings may be somebody else's";
		return args[0] == '\0';
	}
	if (strcmp(p->driver, "net_null") == 0)
		*ret_why = "net_null drops what is sent";
	else if (strcmp(p->driver, "net_pcap") == 0 && p->kernel.ifname[0] == '\0')
		*ret_why = "what net_pcap sends is in the user's capture";
	else
		*ret_why = "what is sent leaves the machine's hands";
	return false;
}

static void nothing_to_free(void *addr, void *opaque)
{
	(void)addr;
	(void)opaque;
}

int mr_port_loop_open(const struct mr_port *p, struct mr_port_loop **ret_loop, struct mr_err *err)
{
	struct mr_port_loop *l = calloc(1, sizeof(*l));
	char name[RTE_MEMPOOL_NAMESIZE];

	if (l == NULL)
		return mr_err_set(err, -ENOMEM, "port '%s': out of memory", p->name);
	snprintf(name, sizeof(name), "mr-loop-%u", p->id);
	l->port = p->id;
	l->shared.free_cb = nothing_to_free;
	rte_mbuf_ext_refcnt_set(&l->shared, 1); /* ours, never given back */
	l->pool = rte_pktmbuf_pool_create(name, LOOP_MBUFS, 0, 0, 0, SOCKET_ID_ANY);
	if (l->pool == NULL) {
		free(l);
		return mr_err_set(err, -rte_errno,
			"port '%s': a pool of %u headers for the read-back: %s", p->name,
			LOOP_MBUFS, rte_strerror(rte_errno));
	}
	if (rte_eth_macaddr_get(p->id, &l->mac) != 0)
		l->mac = (struct rte_ether_addr){.addr_bytes = {0x02, 0, 0, 0, 0, 1}};
	*ret_loop = l;
	return 0;
}

void mr_port_loop_close(struct mr_port_loop *l)
{
	if (l == NULL)
		return;
	rte_pktmbuf_free(l->held);
	/* A driver gives back what it has sent when it sends the next, or when asked. */
	for (uint32_t i = 0; i < 100 && !rte_mempool_full(l->pool); i++) {
		(void)rte_eth_tx_done_cleanup(l->port, 0, 0);
		rte_delay_us_sleep(LOOP_STEP_US);
	}
	/* Headers that a driver still has outlive the pool's name only. */
	if (rte_mempool_full(l->pool)) {
		rte_mempool_free(l->pool);
		free(l);
		return;
	}
	l->next = kept;
	kept = l;
}

void mr_port_loop_mac(const struct mr_port_loop *l, uint8_t ret_mac[6])
{
	memcpy(ret_mac, l->mac.addr_bytes, 6);
}

int mr_port_loop_send(struct mr_port_loop *l, void *addr, uint32_t bytes, uint32_t wait_ms)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(l->pool);

	if (m == NULL)
		return -ENOBUFS;
	rte_mbuf_ext_refcnt_update(&l->shared, 1);
	rte_pktmbuf_attach_extbuf(
		m, addr, (rte_iova_t)(uintptr_t)addr, (uint16_t)bytes, &l->shared);
	m->data_off = 0;
	m->data_len = (uint16_t)bytes;
	m->pkt_len = bytes;
	for (uint64_t waited = 0; rte_eth_tx_burst(l->port, 0, &m, 1) != 1;
		waited += LOOP_STEP_US) {
		if (waited >= wait_ms * 1000ull) {
			rte_pktmbuf_free(m);
			return -EAGAIN;
		}
		rte_delay_us_sleep(LOOP_STEP_US);
	}
	return 0;
}

int mr_port_loop_receive(
	struct mr_port_loop *l, uint32_t wait_ms, const void **ret_addr, uint32_t *ret_bytes)
{
	rte_pktmbuf_free(l->held);
	l->held = NULL;
	for (uint64_t waited = 0; rte_eth_rx_burst(l->port, 0, &l->held, 1) != 1;
		waited += LOOP_STEP_US) {
		if (waited >= wait_ms * 1000ull)
			return -ETIME;
		rte_delay_us_sleep(LOOP_STEP_US);
	}
	*ret_addr = rte_pktmbuf_mtod(l->held, const void *);
	*ret_bytes = l->held->pkt_len;
	return 0;
}
