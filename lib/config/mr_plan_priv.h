/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_plan_priv - the parts of mr_plan_build and what they share.
 *
 * A part reads the intent, fills its members of the plan and adds a problem for
 * everything it refuses. Later parts skip what an earlier one could not resolve
 * (an index of MR_PLAN_NONE), so that one mistake gives one sentence.
 */
#ifndef MR_PLAN_PRIV_H
#define MR_PLAN_PRIV_H

#include "mr_plan.h"

#include <string.h>

#define MR_PLAN_NONE UINT32_MAX
#define MR_PORT_ARGS_MAX 440u   /* of a NIC, behind --allow= and its address */
#define MR_NET_RING_SLOTS 1024u /* of each ring of a net_ring, whatever is asked for */

struct mr_plan_work {
	const struct mr_config *cfg;
	const struct mr_host *host;
	struct mr_plan *plan;
	struct mr_problems *ps;
};

/* Whether what is sent to a port is received from it, in the same buffers. */
static inline bool mr_plan_is_net_ring(const struct mr_plan_port *p)
{
	return strncmp(p->device, "net_ring", 8) == 0;
}

/* mr_plan_refuse adds a problem at the line of key. */
void mr_plan_refuse(struct mr_plan_work *w, const char *key, const char *hint, const char *fmt, ...)
	MR_PRINTF(4, 5);
void mr_plan_warn(struct mr_plan_work *w, const char *fmt, ...) MR_PRINTF(2, 3);

/* The index of a name among ports or devices, or MR_PLAN_NONE after a problem at key. */
uint32_t mr_plan_find_port(struct mr_plan_work *w, const char *name, const char *key);
uint32_t mr_plan_find_device(struct mr_plan_work *w, const char *name, const char *key);

/* mr_plan_name takes the command line's, else the file's own, else the file's stem. */
void mr_plan_name(struct mr_plan_work *w, const char *name);
/* mr_plan_core refuses a core that this machine or process does not have. */
void mr_plan_core(struct mr_plan_work *w, int32_t core, const char *key);
/* mr_plan_port_args completes or judges a port's arguments by the queues that are used. */
void mr_plan_port_args(struct mr_plan_work *w, uint32_t port);

/* mr_plan_is_mlx5 takes a NIC that was not looked at for one, as the only kind with direct lanes.
 */
bool mr_plan_is_mlx5(const struct mr_host *h, const char *bdf);

void mr_plan_devices(struct mr_plan_work *w);
void mr_plan_ports(struct mr_plan_work *w);
void mr_plan_lanes(struct mr_plan_work *w);
void mr_plan_queues(struct mr_plan_work *w); /* after lanes */
void mr_plan_stages(struct mr_plan_work *w, uint32_t lane);
bool mr_plan_match(struct mr_plan_work *w, uint32_t lane); /* whether a stage applies it */
/* mr_plan_path_lists refuses a path that a list names twice; false: the lane's are not judged. */
bool mr_plan_path_lists(struct mr_plan_work *w, uint32_t lane);
/* mr_plan_path chooses; the lane's ports and device have been found. */
void mr_plan_path(struct mr_plan_work *w, uint32_t lane);
void mr_plan_split(struct mr_plan_work *w); /* after lanes */
void mr_plan_steer(struct mr_plan_work *w); /* after lanes */
void mr_plan_pools(struct mr_plan_work *w); /* after queues */
void mr_plan_eal(struct mr_plan_work *w);   /* last */

#endif
