/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mr_setup_priv.h"

#include "mr_join.h"

#include <errno.h>
#include <pthread.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLISH_HZ 200u /* a lane publishes this often */
#define YIELD_POLLS 64u
#define JOIN_S 3

static void *alloc_lines(size_t n, size_t size)
{
	size_t bytes = MR_ALIGN_UP(n * size, MR_CACHE_LINE);
	void *p = aligned_alloc(MR_CACHE_LINE, bytes);

	if (p != NULL)
		memset(p, 0, bytes);
	return p;
}

static int prepare_txq(
	struct mr_setup *s, const struct mr_plan_tx *t, struct mr_txq *q, struct mr_err *err)
{
	uint32_t size = rte_align32pow2(t->backlog);

	q->port = s->ports[t->port].id;
	q->queue = (uint16_t)t->queue;
	q->guard = s->ports[t->port].software ? &s->guard : NULL;
	q->limit = t->backlog;
	q->mask = size - 1;
	q->wait = alloc_lines(size, sizeof(*q->wait));
	q->wait_tsc = alloc_lines(size, sizeof(*q->wait_tsc));
	if (q->wait == NULL || q->wait_tsc == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory");
	return 0;
}

static int flush_device(void *lane)
{
	const struct mr_setup_lane *sl = lane;

	return mr_gpu_flush(sl->gpu, sl->launch_index);
}

/* The lane's own ring and what the hop to the kernel's needs; the device lays out that one. */
static int prepare_hop(struct mr_setup *s, uint32_t i, struct mr_err *err)
{
	const struct mr_plan_lane *p = &s->plan->lanes[i];
	struct mr_setup_lane *sl = &s->lanes[i];
	struct mr_lane *l = sl->lane;
	void *in = alloc_lines(p->slots, MR_SLOT_BYTES(p->batch));
	void *out = alloc_lines(p->slots, MR_SLOT_BYTES(p->batch));

	sl->hop = (struct mr_staged){
		.relay = {.lane = l,
			.tx_pool = sl->tx_pool,
			.tx_region = (uint64_t)(uintptr_t)mr_setup_tx_region(s, i)->addr},
		.gathers = p->rx_path == MR_PATH_STAGED,
		.scatters = p->tx_path == MR_PATH_STAGED,
		.packed = p->copies_packed};
	sl->hop.relay.tx_mbufs = alloc_lines((size_t)p->slots * p->batch, sizeof(*l->mbufs));
	/* The ring holds them from here on. */
	l->ring.in = in;
	l->ring.out = out;
	if (in == NULL || out == NULL || sl->hop.relay.tx_mbufs == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory");
	return mr_ring_init(&l->ring, in, NULL, out, p->slots, p->batch, 0, err);
}

static int check_touch(const struct mr_port *port, const char *lane, const char *key,
	enum mr_path path, struct mr_err *err)
{
	const char *touch = mr_port_touches(port, key[0] == 't');

	if (touch == NULL || path == MR_PATH_STAGED)
		return 0;
	return mr_err_set(err, -EINVAL,
		"lane '%s': the CPU does not reach packets of %s %s, but the driver %s of port "
		"'%s' %s; set %s: [staged]",
		lane, key, mr_path_name(path), port->driver, port->name, touch, key);
}

/* What only the probed driver tells. */
static int check_ports(struct mr_setup *s, const struct mr_plan_lane *p, struct mr_err *err)
{
	int rc = check_touch(&s->ports[p->rx_port], p->name, "rx_path", p->rx_path, err);

	for (uint32_t t = 0; rc == 0 && t < p->tx_count; t++)
		rc = check_touch(&s->ports[p->tx[t].port], p->name, "tx_path", p->tx_path, err);
	return rc;
}

static uint64_t ticks(uint32_t us)
{
	return rte_get_tsc_hz() / 1000000u * us;
}

void mr_setup_lane_limit(struct mr_setup *s, uint32_t i, const struct mr_plan_lane *p)
{
	mr_lane_limit(s->lanes[i].lane, ticks(p->timeout_us), ticks(p->tx_timeout_us));
}

int mr_setup_lane_prepare(struct mr_setup *s, uint32_t i, struct mr_err *err)
{
	const struct mr_plan_lane *p = &s->plan->lanes[i];
	struct mr_setup_lane *sl = &s->lanes[i];
	const struct mr_gpu_region *region = mr_setup_region(s, i);
	struct mr_gpu *gpu = s->devices[p->device].gpu;
	uint64_t hz = rte_get_tsc_hz();
	bool split = s->plan->ports[p->rx_port].split_bytes != 0;
	struct mr_lane *l;
	int rc = check_ports(s, p, err);

	if (rc < 0)
		return rc;
	l = alloc_lines(1, sizeof(*l));
	sl->lane = l;
	if (l == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory");
	l->mbufs = alloc_lines((size_t)p->slots * p->batch, sizeof(*l->mbufs));
	l->slots = alloc_lines(p->slots, sizeof(*l->slots));
	if (l->mbufs == NULL || l->slots == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory");
	l->guard = &s->guard;
	l->yield_polls = p->core < 0 ? YIELD_POLLS : 0;
	l->publish_tsc = hz / (s->plan->publish_hz != 0 ? s->plan->publish_hz : PUBLISH_HZ);
	l->tick_tsc = ticks(p->tick_us);
	l->tick_pool = sl->pool;
	l->rx = (struct mr_rx){.ring = &l->ring,
		.counters = &l->counters,
		.guard = s->ports[p->rx_port].software ? &s->guard : NULL,
		.timeout_tsc = ticks(p->timeout_us),
		.describe = split ? mr_rx_describe_split : mr_rx_describe_best(),
		.workers = p->workers,
		.port = s->ports[p->rx_port].id,
		.queue = (uint16_t)p->rx_queue,
		.shed = p->overload == MR_OVERLOAD_SHED,
		/* What a staged lane receives, the copy's stream orders. */
		.flush = mr_gpu_info(gpu)->flush_needed && p->rx_path != MR_PATH_STAGED
			? flush_device
			: NULL,
		.flush_arg = sl};
	sl->gpu = gpu;
	mr_rx_window_init(&l->rx.window, (uint64_t)(uintptr_t)region->addr, region->bytes, p->room);
	l->tx.ring = &l->ring;
	l->tx.counters = &l->counters;
	l->tx.latency = &l->latency;
	l->tx.room = p->room;
	l->tx.split = split;
	l->tx.tx_count = p->tx_count;
	l->tx.timeout_tsc = ticks(p->tx_timeout_us);
	l->tx.ns_per_tsc = (1000000000ull << MR_TX_TSC_SHIFT) / hz;
	for (uint32_t t = 0; t < p->tx_count; t++) {
		rc = prepare_txq(s, &p->tx[t], &l->tx.q[t], err);
		if (rc < 0)
			return rc;
	}
	return mr_setup_hops(p) ? prepare_hop(s, i, err) : 0;
}

void mr_setup_lane_free(struct mr_setup *s, uint32_t i)
{
	struct mr_setup_lane *sl = &s->lanes[i];

	for (uint32_t t = 0; sl->lane != NULL && t < MR_TX_MAX; t++) {
		free(sl->lane->tx.q[t].wait);
		free(sl->lane->tx.q[t].wait_tsc);
	}
	if (sl->lane != NULL) {
		free(sl->lane->mbufs);
		free(sl->lane->slots);
		free(sl->hop.relay.tx_mbufs);
		if (mr_setup_hops(&s->plan->lanes[i])) {
			free(sl->lane->ring.in);
			free((void *)(uintptr_t)sl->lane->ring.out);
		}
	}
	free(sl->lane);
	sl->lane = NULL;
}

/* What the thread needs and answers while it starts. */
struct start {
	struct mr_setup *s;
	uint32_t index;
};

static void *lane_thread(void *arg)
{
	struct start start = *(struct start *)arg;
	struct mr_setup_lane *sl = &start.s->lanes[start.index];

	free(arg);
	/* A DPDK id of its own gives the thread its mempool caches. */
	sl->start_rc = rte_thread_register() < 0 ? -rte_errno : 0;
	mr_store_release(&sl->started, 1);
	if (sl->start_rc == 0) {
		if (mr_plan_lane_copies(&start.s->plan->lanes[start.index]))
			mr_staged_loop(&sl->hop);
		else if (mr_plan_lane_moves(&start.s->plan->lanes[start.index]))
			mr_relay_loop(&sl->hop.relay);
		else
			mr_lane_loop(sl->lane);
		rte_thread_unregister();
	}
	return NULL;
}

static int thread_attr(struct mr_setup *s, uint32_t i, pthread_attr_t *attr, struct mr_err *err)
{
	const struct mr_plan_lane *p = &s->plan->lanes[i];
	cpu_set_t cpus;
	int rc = pthread_attr_init(attr);

	if (rc == 0 && p->core >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET((size_t)p->core, &cpus);
		rc = pthread_attr_setaffinity_np(attr, sizeof(cpus), &cpus);
	}
	if (rc != 0)
		return mr_err_set(
			err, -rc, "lane '%s': core %d: %s", p->name, p->core, strerror(rc));
	return 0;
}

int mr_setup_lane_start(struct mr_setup *s, uint32_t i, struct mr_err *err)
{
	struct mr_setup_lane *sl = &s->lanes[i];
	const char *name = s->plan->lanes[i].name;
	struct start *start = malloc(sizeof(*start));
	sigset_t all, before;
	pthread_attr_t attr;
	char comm[16];
	int rc;

	if (start == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory");
	*start = (struct start){.s = s, .index = i};
	rc = thread_attr(s, i, &attr, err);
	if (rc < 0) {
		free(start);
		return rc;
	}
	mr_lane_want(sl->lane, MR_LANE_RUN);
	/* Signals are the control thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&sl->thread, &attr, lane_thread, start);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (rc != 0) {
		free(start);
		return mr_err_set(err, -rc, "lane '%s': thread: %s; core %d may not exist", name,
			strerror(rc), s->plan->lanes[i].core);
	}
	sl->created = true;
	snprintf(comm, sizeof(comm), "lane-%s", name);
	(void)pthread_setname_np(sl->thread, comm);
	while (mr_load_acquire(&sl->started) == 0)
		rte_delay_us_sleep(50);
	if (sl->start_rc < 0)
		return mr_err_set(err, sl->start_rc, "lane '%s': rte_thread_register: %s", name,
			strerror(-sl->start_rc));
	return 0;
}

int mr_setup_lane_join(struct mr_setup *s, uint32_t i, struct mr_err *err)
{
	struct mr_setup_lane *sl = &s->lanes[i];

	if (!sl->created || sl->joined)
		return 0;
	if (!mr_join(sl->thread, JOIN_S))
		return mr_err_set(err, -ETIME,
			"lane '%s' did not stop within %d s: a driver of its ports or its device "
			"does "
			"not return",
			s->plan->lanes[i].name, JOIN_S);
	sl->joined = true;
	return 0;
}
