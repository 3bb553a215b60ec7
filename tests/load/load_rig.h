/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load_rig - one lane under load: generator, rings, lane, kernel, sink.
 *
 *     load_generate ─► ring ─► lane + kernel ─► ring ─► load_collect
 *
 * The lane library and the host build of the kernel run in threads of their own over
 * DPDK's net_ring. Frames carry a number and come back with their addresses exchanged by
 * the l2swap of the chain. Threads yield, since there are more of them than cores.
 *
 * Thread   the main thread, which EAL knows.
 * Errors   whatever is wrong ends the program with a sentence and status 1.
 */
#ifndef LOAD_RIG_H
#define LOAD_RIG_H

#include "mr_image.h"
#include "mr_lane.h"
#include "mr_stage.h"

#include <pthread.h>

#define LOAD_ELEMENT 256u
#define LOAD_BURST 32u

struct rte_mbuf;
struct rte_mempool;
struct rte_ring;

struct load_conf {
	uint32_t batch, slots, workers;
	uint32_t rx_ring, tx_ring, backlog; /* packets; powers of two */
	uint32_t buffers, cache;            /* of the pool */
	uint32_t timeout_us, tx_timeout_us; /* tx: 0 is for ever */
	bool shed;
	void (*fence)(void *ctx); /* called by a worker before it completes a slot, or NULL */
	void *fence_ctx;
};

struct load_side {
	struct load_conf conf;
	struct mr_lane *lane;
	struct mr_lane_dev dev;
	struct mr_worker_ctl *ctl;
	struct mr_host_ctl *host;
	struct mr_worker_map map[MR_WORKERS_MAX];
	struct mr_launch launch;
	uint64_t *counters;
	struct rte_mempool *pool;
	struct rte_ring *in, *out;
	uint64_t sent, received;
	uint64_t next;    /* the least number that may come */
	uint64_t starved; /* the pool was empty while the receive ring had room */
	struct mr_sim_orders orders;
	pthread_t thread, worker[MR_WORKERS_MAX];
};

void load_die(const char *what) __attribute__((noreturn));

/* EAL with memory_mib of ordinary memory, its threads free to run on all cores. */
void load_eal(const char *program, const char *memory_mib);

/* load_plan takes backlog, buffers and cache from the plan of such a lane. */
void load_plan(struct load_conf *c);

/* s is zeroed memory that stays until the program's end. */
void load_side_make(struct load_side *s, const struct load_conf *conf);
void load_side_start(struct load_side *s);

/* Sends up to n frames, at most a burst, up to the total. */
void load_generate(struct load_side *s, uint32_t n, uint64_t total);

/* Takes up to n frames, at most a burst; numbers may be left out, never come twice or back. */
void load_collect(struct load_side *s, uint32_t n);

/* What load_generate writes, and load_collect checks, for a test that is the port itself. */
void load_write_frame(struct rte_mbuf *m, uint64_t number);
void load_check_frame(struct load_side *s, struct rte_mbuf *m);

/* Drains and stops, then looks for every packet and every buffer; returns what was dropped. */
uint64_t load_side_stop(struct load_side *s);

#endif
