/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames out of a port of DPDK's net_ring driver and in again. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "mr_port_loop.h"

#define RING 8u

static struct {
	struct rte_mempool *pool;
	struct rte_ring *in, *out; /* of a port whose frames go elsewhere */
} env;

static struct mr_port open_port(struct rte_ring *rx, struct rte_ring *tx)
{
	const struct rte_eth_conf conf = {0};
	struct mr_port p = {.name = "p0", .driver = "net_ring"};
	static uint32_t number;
	char name[32];
	int id;

	snprintf(name, sizeof(name), "loop%u", number++);
	id = rte_eth_from_rings(name, &rx, 1, &tx, 1, 0);
	assert_true(id >= 0);
	p.id = (uint16_t)id;
	assert_int_equal(rte_eth_dev_configure(p.id, 1, 1, &conf), 0);
	assert_int_equal(rte_eth_rx_queue_setup(p.id, 0, 64, SOCKET_ID_ANY, NULL, env.pool), 0);
	assert_int_equal(rte_eth_tx_queue_setup(p.id, 0, 64, SOCKET_ID_ANY, NULL), 0);
	assert_int_equal(rte_eth_dev_start(p.id), 0);
	return p;
}

static void close_port(const struct mr_port *p)
{
	rte_eth_dev_stop(p->id);
	rte_eth_dev_close(p->id);
	assert_true(rte_ring_empty(env.in) && rte_ring_empty(env.out));
}

static struct mr_port_loop *open_loop(const struct mr_port *p)
{
	struct mr_port_loop *l;
	struct mr_err err;
	int rc = mr_port_loop_open(p, &l, &err);

	if (rc != 0)
		fail_msg("%s", err.msg);
	return l;
}

static uint32_t pools;

static void count_pool(struct rte_mempool *pool, void *arg)
{
	(void)arg;
	pools += strncmp(pool->name, "mr-loop", 7) == 0;
}

static void close_loop(struct mr_port_loop *l, uint32_t left)
{
	mr_port_loop_close(l);
	pools = 0;
	rte_mempool_walk(count_pool, NULL);
	assert_int_equal(pools, left);
}

/* More rounds than the loop has headers: each is given back. */
static void what_is_sent_comes_back_from_where_it_lay_and_nothing_is_kept(void **state)
{
	static uint8_t frame[1522];
	struct mr_port p = open_port(env.in, env.in);
	struct mr_port_loop *l = open_loop(&p);
	struct rte_ether_addr own;
	uint8_t mac[6];

	(void)state;
	mr_port_loop_mac(l, mac);
	assert_int_equal(rte_eth_macaddr_get(p.id, &own), 0);
	assert_memory_equal(mac, own.addr_bytes, 6);
	for (uint32_t i = 0; i < 300; i++) {
		const void *addr = NULL;
		uint32_t bytes = 0;

		assert_int_equal(mr_port_loop_send(l, frame, 60 + i, 0), 0);
		assert_int_equal(mr_port_loop_receive(l, 0, &addr, &bytes), 0);
		assert_ptr_equal(addr, frame);
		assert_int_equal(bytes, 60 + i);
	}
	close_loop(l, 0);
	close_port(&p);
}

static void what_does_not_come_back_is_waited_for_no_longer_than_asked(void **state)
{
	struct mr_port p = open_port(env.in, env.out);
	struct mr_port_loop *l = open_loop(&p);
	struct rte_mbuf *gone = NULL;
	static uint8_t frame[60];
	const void *addr;
	uint32_t bytes;

	(void)state;
	assert_int_equal(mr_port_loop_send(l, frame, sizeof(frame), 0), 0);
	assert_int_equal(mr_port_loop_receive(l, 20, &addr, &bytes), -ETIME);
	assert_int_equal(rte_ring_dequeue(env.out, (void **)&gone), 0);
	rte_pktmbuf_free(gone);
	close_loop(l, 0);
	close_port(&p);
}

static void a_port_that_takes_nothing_more_is_told_from_one_that_does(void **state)
{
	struct mr_port p = open_port(env.in, env.out);
	struct mr_port_loop *l = open_loop(&p);
	struct rte_mbuf *gone = NULL;
	static uint8_t frame[60];
	uint32_t sent = 0;

	(void)state;
	while (mr_port_loop_send(l, frame, sizeof(frame), 0) == 0)
		sent++;
	assert_int_equal(sent, RING - 1);
	assert_int_equal(mr_port_loop_send(l, frame, sizeof(frame), 5), -EAGAIN);
	while (rte_ring_dequeue(env.out, (void **)&gone) == 0)
		rte_pktmbuf_free(gone);
	close_loop(l, 0);
	close_port(&p);
}

/* Its header is the frame's until that is given back, so the pool outlives the loop. */
static void a_header_that_a_driver_keeps_is_not_freed_under_it(void **state)
{
	struct mr_port p = open_port(env.in, env.out);
	struct mr_port_loop *l = open_loop(&p);
	struct rte_mbuf *gone = NULL;
	static uint8_t frame[60];

	(void)state;
	assert_int_equal(mr_port_loop_send(l, frame, sizeof(frame), 0), 0);
	close_loop(l, 1);
	assert_int_equal(rte_ring_dequeue(env.out, (void **)&gone), 0);
	rte_pktmbuf_free(gone);
	close_port(&p);
}

/* Frames of others come from the port's own pool and go back to it. */
static void frames_of_others_are_seen_and_given_back(void **state)
{
	struct mr_port p = open_port(env.in, env.out);
	struct mr_port_loop *l = open_loop(&p);
	const uint32_t free_before = rte_mempool_avail_count(env.pool);
	const void *addr;
	uint32_t bytes;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(env.pool);

		assert_non_null(m);
		assert_non_null(rte_pktmbuf_append(m, (uint16_t)(100 + i)));
		assert_int_equal(rte_ring_enqueue(env.in, m), 0);
		assert_int_equal(mr_port_loop_receive(l, 0, &addr, &bytes), 0);
		assert_int_equal(bytes, 100 + i);
	}
	close_loop(l, 0);
	assert_int_equal(rte_mempool_avail_count(env.pool), free_before);
	close_port(&p);
}

static void only_a_port_whose_frames_stay_in_it_offers_a_way_back(void **state)
{
	static const struct {
		const char *driver, *args, *ifname, *why;
		bool offered;
	} rows[] = {
		{"net_ring", "", "", "its rings are its own", true},
		{"net_ring", "nodeaction=r0:0:ATTACH", "", "somebody else's", false},
		{"net_null", "", "", "drops what is sent", false},
		{"net_pcap", "", "", "the user's capture", false},
		{"net_pcap", "", "eth0", "leaves the machine's hands", false},
		{"net_tap", "", "", "leaves the machine's hands", false},
		{"mlx5_pci", "", "", "leaves the machine's hands", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mr_port p = {.name = "p0"};
		const char *why = NULL;

		snprintf(p.driver, sizeof(p.driver), "%s", rows[i].driver);
		snprintf(p.kernel.ifname, sizeof(p.kernel.ifname), "%s", rows[i].ifname);
		assert_int_equal(mr_port_loop_offered(&p, rows[i].args, &why), rows[i].offered);
		assert_non_null(strstr(why, rows[i].why));
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sent_comes_back_from_where_it_lay_and_nothing_is_kept),
		cmocka_unit_test(what_does_not_come_back_is_waited_for_no_longer_than_asked),
		cmocka_unit_test(frames_of_others_are_seen_and_given_back),
		cmocka_unit_test(only_a_port_whose_frames_stay_in_it_offers_a_way_back),
		cmocka_unit_test(a_port_that_takes_nothing_more_is_told_from_one_that_does),
		cmocka_unit_test(a_header_that_a_driver_keeps_is_not_freed_under_it),
	};
	char prefix[64];
	char *eal[] = {argv[0], "--no-huge", "--no-pci", "--no-telemetry", "-m", "64",
		"--log-level", "critical", prefix};
	int failed;

	(void)argc;
	snprintf(prefix, sizeof(prefix), "--file-prefix=mr-test-loop-%d", (int)getpid());
	if (rte_eal_init((int)(sizeof(eal) / sizeof(eal[0])), eal) < 0)
		return 1;
	env.pool = rte_pktmbuf_pool_create("others", 63, 0, 0, 2048, SOCKET_ID_ANY);
	env.in = rte_ring_create("in", RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	env.out = rte_ring_create("out", RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (env.pool == NULL || env.in == NULL || env.out == NULL)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rte_eal_cleanup();
	return failed;
}
