/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two lanes under load, judged by sequence numbers.
 *
 *     load_lanes PACKETS [BATCH [SLOTS [WORKERS]]]
 *
 * The main thread writes a number into every frame and looks for it again: none lost,
 * none twice, none out of order, none touched but by the l2swap of the chain. Pools are
 * as small as the places where frames rest allow, so buffers go round all the while.
 */
#include "load_rig.h"

#include <rte_cycles.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define LANES 2u
#define RING 256u
#define BACKLOG 256u

static struct load_side sides[LANES];

/* Sends and receives until all are back; gives up when nothing moves for 20 s. */
static void drive(uint64_t each)
{
	uint64_t moved = rte_rdtsc(), last = 0, sum;

	do {
		sum = 0;
		for (uint32_t i = 0; i < LANES; i++) {
			load_generate(&sides[i], LOAD_BURST, each);
			load_collect(&sides[i], LOAD_BURST);
			sum += sides[i].received;
		}
		if (sum == last)
			sched_yield();
		else
			moved = rte_rdtsc();
		last = sum;
		if (rte_rdtsc() - moved > 20 * rte_get_tsc_hz())
			load_die("nothing moves any more");
	} while (sum < LANES * each);
}

int main(int argc, char **argv)
{
	struct load_conf c = {.batch = 32,
		.slots = 8,
		.workers = 1,
		.rx_ring = RING,
		.tx_ring = RING,
		.backlog = BACKLOG,
		.timeout_us = 20};
	uint64_t each, start;

	if (argc < 2 || argc > 5)
		load_die("usage: load_lanes PACKETS [BATCH [SLOTS [WORKERS]]]");
	each = strtoull(argv[1], NULL, 10) / LANES;
	c.batch = argc > 2 ? (uint32_t)atoi(argv[2]) : c.batch;
	c.slots = argc > 3 ? (uint32_t)atoi(argv[3]) : c.slots;
	c.workers = argc > 4 ? (uint32_t)atoi(argv[4]) : c.workers;
	/* Frames at rest: both rings, slots, the open batch, the backlog, and one burst in hand. */
	c.buffers = 2 * RING + c.slots * c.batch + c.batch + BACKLOG + 2 * LOAD_BURST;
	load_eal("mr-load-lanes", "128");
	for (uint32_t i = 0; i < LANES; i++)
		load_side_make(&sides[i], &c);
	for (uint32_t i = 0; i < LANES; i++)
		load_side_start(&sides[i]);
	start = rte_rdtsc();
	drive(each);
	for (uint32_t i = 0; i < LANES; i++)
		if (load_side_stop(&sides[i]) != 0)
			load_die("a frame was dropped");
	printf("%llu packets over %u lanes, batch %u, slots %u, workers %u: none lost, doubled or "
	       "out of order, %.2f s\n",
		(unsigned long long)(LANES * each), LANES, c.batch, c.slots, c.workers,
		(double)(rte_rdtsc() - start) / (double)rte_get_tsc_hz());
	return 0;
}
