/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_gen_priv - the two threads of a trial.
 *
 * Each has its own cache lines; they share what is marked so, and nothing else.
 */
#ifndef MR_GEN_PRIV_H
#define MR_GEN_PRIV_H

#include "mr_gen.h"

#include <pthread.h>

struct rte_mempool;

#define MR_GEN_BURST 32u

struct mr_gen_thread {
	pthread_t id;
	bool made, joined;
	int32_t core;
	int rc; /* of its own start; read after the join */
};

/* Everything of one trial that threads work with. */
struct mr_gen_rig {
	const struct mr_gen_plan *plan;
	const struct mr_gen_frame *frame;
	uint16_t run;
	uint8_t trial;
	uint16_t tx_port, rx_port; /* of DPDK */
	struct rte_mempool *pool;
	uint64_t start_ns, duration_ns, gap, total;
	uint32_t burst, wait_ms;
	struct mr_gen_thread sender, sink;

	/* shared: written by the control thread */
	uint32_t stop_sender MR_CACHE_ALIGNED;
	uint32_t stop_sink;

	/* shared: written by the sender */
	uint64_t issued MR_CACHE_ALIGNED; /* before it sends */
	uint32_t sent_all;                /* it is leaving */

	/* the sender's own, the control thread's after the join */
	struct mr_gen_trial *out MR_CACHE_ALIGNED;
	uint64_t ran_ns; /* of the trial's time, when it left */

	/* the sink's own, the control thread's after the join */
	struct mr_gen_sink counts MR_CACHE_ALIGNED;
};

/* Bodies of the two threads; arg is the rig. */
void *mr_gen_sender_main(void *arg);
void *mr_gen_sink_main(void *arg);

#endif
