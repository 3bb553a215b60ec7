/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mr_setup_priv.h"

#include <errno.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * EAL's own threads (telemetry, interrupts) take the CPUs that the process may use and no lcore
 * does, and that would be just those of the lanes. Without any they take the lcore's.
 */
static void keep_off_lanes(const struct mr_plan *p)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		return;
	for (uint32_t i = 0; i < p->lanes_count; i++)
		if (p->lanes[i].core >= 0)
			CPU_CLR((size_t)p->lanes[i].core, &cpus);
	if (CPU_COUNT(&cpus) > 0)
		(void)sched_setaffinity(0, sizeof(cpus), &cpus);
}

static int eal_up(struct mr_setup *s, struct mr_err *err)
{
	static bool started; /* EAL is once per process; nothing else here is global */
	char name[] = "millrace";
	char *argv[MR_EAL_ARGS_MAX + 1] = {name};
	int argc = 1;

	if (started)
		return mr_err_set(err, -EPERM,
			"DPDK's EAL starts only once in a process, and it was up before");
	/* Without it there is less evidence, and that stops nothing. */
	for (uint32_t i = 0; i < s->plan->devices_count && s->aside.pid == 0; i++)
		if (!s->plan->devices[i].sim)
			(void)mr_probe_aside_open(&s->aside, MR_PROBE_WAIT_MS, err);
	/* A first launch that loads lazily would wait behind the persistent kernel. */
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	for (uint32_t i = 0; i < s->plan->eal_args_count; i++)
		argv[argc++] = (char *)s->plan->eal_args[i];
	keep_off_lanes(s->plan);
	if (rte_eal_init(argc, argv) < 0)
		/* Not every way to fail sets rte_errno. */
		return mr_err_set(err, rte_errno > 0 ? -rte_errno : -EIO,
			"DPDK's EAL did not start: %s; its own messages are above, 'millrace "
			"check' shows its arguments",
			rte_errno > 0 ? rte_strerror(rte_errno) : "no reason given");
	started = true;
	s->eal_runs = true;
	return 0;
}

static void eal_down(struct mr_setup *s)
{
	if (s->eal_runs)
		(void)rte_eal_cleanup();
	mr_probe_aside_close(&s->aside);
}

static int devices_up(struct mr_setup *s, struct mr_err *err)
{
	for (uint32_t i = 0; i < s->plan->devices_count; i++) {
		const struct mr_plan_device *d = &s->plan->devices[i];
		int rc = mr_gpu_open(d->name, d->args, s->plan->driver_ms, &s->devices[i].gpu, err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

static void devices_down(struct mr_setup *s)
{
	for (uint32_t i = s->plan->devices_count; i-- > 0;) {
		struct mr_err why = {0};
		int rc = mr_gpu_close(s->devices[i].gpu, &why);

		/* What the watch or the stop has seen, it has said. */
		if (rc == -ETIMEDOUT && s->left.msg[0] == '\0' &&
			mr_load_relaxed(&s->devices[i].health) != MR_GPU_LOST)
			s->left = why;
		if (rc < 0)
			s->left.code = -ETIMEDOUT;
		s->devices[i].gpu = NULL;
	}
}

static int ports_up(struct mr_setup *s, struct mr_err *err)
{
	for (uint32_t i = 0; i < s->plan->ports_count; i++) {
		struct mr_port_spec spec = mr_setup_port_spec(&s->plan->ports[i]);
		int rc = mr_port_probe(&s->ports[i], &spec, err);

		if (rc < 0)
			return rc;
		s->ports_probed = i + 1;
	}
	return 0;
}

static void ports_down(struct mr_setup *s)
{
	while (s->ports_probed > 0)
		mr_port_remove(&s->ports[--s->ports_probed]);
}

/* A queue receives into the pools of its lane. */
static int rx_queue_up(struct mr_setup *s, uint32_t port, uint32_t queue, struct mr_err *err)
{
	const struct mr_plan_port *p = &s->plan->ports[port];
	/* A port that is only sent to still needs a receive queue for some drivers. */
	struct rte_mempool *pool = s->plan->lanes_count == 0 ? s->host_pool : s->lanes[0].pool;

	for (uint32_t i = 0; i < s->plan->lanes_count; i++) {
		if (s->plan->lanes[i].rx_port != port || s->plan->lanes[i].rx_queue != queue)
			continue;
		pool = s->lanes[i].pool;
		if (p->split_bytes != 0)
			return mr_port_split_queue(&s->ports[port], queue, p->rx_ring, pool,
				s->lanes[i].rest_pool, p->split_bytes, err);
		break;
	}
	return mr_port_rx_queue(&s->ports[port], queue, p->rx_ring, pool, err);
}

static int queues_up(struct mr_setup *s, struct mr_err *err)
{
	for (uint32_t i = 0; i < s->plan->ports_count; i++) {
		const struct mr_plan_port *p = &s->plan->ports[i];
		struct mr_port_spec spec = mr_setup_port_spec(p);
		int rc = mr_port_configure(&s->ports[i], &spec, err);

		for (uint32_t q = 0; rc == 0 && q < p->rx_queues; q++)
			rc = rx_queue_up(s, i, q, err);
		for (uint32_t q = 0; rc == 0 && q < p->tx_queues; q++)
			rc = mr_port_tx_queue(&s->ports[i], q, p->tx_ring, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void queues_down(struct mr_setup *s)
{
	for (uint32_t i = s->plan->ports_count; i-- > 0;)
		mr_port_close(&s->ports[i]);
}

static int start_up(struct mr_setup *s, struct mr_err *err)
{
	for (uint32_t i = 0; i < s->plan->ports_count; i++) {
		int rc = mr_port_start(&s->ports[i], err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

static void start_down(struct mr_setup *s)
{
	for (uint32_t i = s->plan->ports_count; i-- > 0;)
		mr_port_stop(&s->ports[i]);
}

/* The lanes of a port with the same match share its frames. */
static int steer_port(struct mr_setup *s, uint32_t port, struct mr_err *err)
{
	struct mr_port_steer steer[MR_LANES_MAX];
	uint16_t queues[MR_LANES_MAX];
	uint32_t count = 0, used = 0;

	for (uint32_t i = 0; i < s->plan->lanes_count; i++) {
		const struct mr_plan_lane *first = &s->plan->lanes[i];

		if (first->rx_port != port || first->group != i)
			continue;
		steer[count] = (struct mr_port_steer){
			.lane = first->name, .match = &first->settled, .queues = &queues[used]};
		for (uint32_t k = i; k < s->plan->lanes_count; k++) {
			const struct mr_plan_lane *l = &s->plan->lanes[k];

			if (l->rx_port != port || l->group != i)
				continue;
			queues[used++] = (uint16_t)l->rx_queue;
			steer[count].queues_count++;
		}
		count++;
	}
	return mr_port_steer(&s->ports[port], steer, count, err);
}

static int steer_up(struct mr_setup *s, struct mr_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < s->plan->ports_count; i++)
		if (mr_plan_port_isolated(&s->plan->ports[i]))
			rc = steer_port(s, i, err);
	return rc;
}

static void steer_down(struct mr_setup *s)
{
	for (uint32_t i = s->plan->ports_count; i-- > 0;)
		mr_port_unsteer(&s->ports[i]);
}

/*
 * After registration, since pinning pages needs open rights, and before the first
 * thread is made, since a thread inherits its maker's rights.
 */
static int guard_up(struct mr_setup *s, struct mr_err *err)
{
	const char *want = "auto";
	int rc;

	for (uint32_t i = 0; i < s->plan->devices_count; i++)
		if (strcmp(mr_gpu_info(s->devices[i].gpu)->guard, "auto") != 0)
			want = mr_gpu_info(s->devices[i].gpu)->guard;
	s->guard_off = strcmp(want, "off") == 0;
	rc = mr_guard_init(&s->guard, want, err);
	for (uint32_t i = 0; rc == 0 && i < s->plan->devices_count; i++)
		for (uint32_t k = 0; rc == 0 && k < MR_PATH_COUNT; k++) {
			struct mr_gpu_region *r = &s->devices[i].region[k];

			/* Staged frames are the CPU's, and a real device's memory has no mapping.
			 */
			if (r->addr != NULL &&
				(k == MR_PATH_PINNED ||
					(k == MR_PATH_DIRECT && s->plan->devices[i].sim)))
				rc = mr_guard_protect(&s->guard, r->addr, r->bytes, err);
		}
	if (rc == 0)
		mr_guard_deny(&s->guard);
	return rc;
}

static void guard_down(struct mr_setup *s)
{
	mr_guard_fini(&s->guard);
}

static int load_device(struct mr_setup *s, uint32_t device, const struct mr_setup_tables *tables,
	struct mr_err *err)
{
	struct mr_setup_device *d = &s->devices[device];
	struct mr_gpu_lane *lanes = calloc(s->plan->lanes_count, sizeof(*lanes));
	int rc;

	if (lanes == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory");
	d->lanes = 0;
	for (uint32_t i = 0; i < s->plan->lanes_count; i++) {
		const struct mr_plan_lane *l = &s->plan->lanes[i];

		if (l->device != device)
			continue;
		for (uint32_t k = 0; k < l->stages_count; k++) {
			struct mr_gpu_stage *st = &s->lanes[i].stages[k];

			st->desc = l->stages[k].desc;
			st->counter_base = l->stages[k].counter_base;
		}
		mr_setup_tables_give(tables, s->plan, i, s->lanes[i].stages);
		s->lanes[i].launch_index = d->lanes;
		d->lane[d->lanes] = i;
		lanes[d->lanes++] = (struct mr_gpu_lane){.name = l->name,
			.region = l->rx_path == MR_PATH_STAGED ? NULL : mr_setup_region(s, i),
			.tx_region = l->tx_path == MR_PATH_STAGED ? NULL : mr_setup_tx_region(s, i),
			.tx_copy = mr_plan_lane_moves(l),
			.copier = mr_plan_lane_copies(l) ? &s->lanes[i].hop.copier : NULL,
			.slots = l->slots,
			.batch = l->batch,
			.workers = l->workers,
			.room = l->room,
			.tx_count = l->tx_count,
			.work = l->work,
			.plugin = l->plugin != NULL ? l->plugin->plugin : NULL,
			.stages = s->lanes[i].stages,
			.stages_count = l->stages_count,
			.ring = mr_setup_hops(l) ? &s->lanes[i].hop.relay.kernel
						 : &s->lanes[i].lane->ring,
			.slots_given = &s->lanes[i].lane->pub.counters.c[MR_C_slots_given]};
	}
	rc = d->lanes == 0 ? 0
			   : mr_gpu_load(d->gpu, lanes, d->lanes, s->plan->host_timeout_ms,
				     s->plan->backoff_ns, err);
	free(lanes);
	return rc;
}

/* Their files were read and judged before (mr_setup_check), but may have changed since. */
static int load_devices(struct mr_setup *s, struct mr_err *err)
{
	struct mr_setup_tables *tables = malloc(sizeof(*tables));
	struct mr_problems *problems = calloc(1, sizeof(*problems));
	int rc = 0;

	if (tables == NULL || problems == NULL)
		rc = mr_err_set(err, -ENOMEM, "out of memory");
	else if (mr_setup_tables_build(NULL, s->plan, tables, problems) < 0)
		rc = mr_err_set(err, -EINVAL, "%s: %s", problems->p[0].key, problems->p[0].message);
	else {
		for (uint32_t i = 0; rc == 0 && i < s->plan->devices_count; i++)
			rc = load_device(s, i, tables, err);
		mr_setup_tables_free(tables);
	}
	free(tables);
	free(problems);
	return rc;
}

static int launch_up(struct mr_setup *s, struct mr_err *err)
{
	struct mr_gpu *gpus[MR_DEVICES_MAX];
	uint32_t count = 0;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < s->plan->lanes_count; i++)
		rc = mr_setup_lane_prepare(s, i, err);
	if (rc == 0)
		rc = load_devices(s, err);
	/* The last, and all at once: kernels leave when the host is busy for too long. */
	for (uint32_t i = 0; i < s->plan->devices_count; i++)
		if (s->devices[i].lanes > 0)
			gpus[count++] = s->devices[i].gpu;
	return rc == 0 ? mr_gpu_launch(gpus, count, err) : rc;
}

static void launch_down(struct mr_setup *s)
{
	for (uint32_t i = s->plan->devices_count; i-- > 0;)
		if (s->devices[i].gpu != NULL)
			/* A kernel that does not leave is ended by the context's end. */
			(void)!mr_gpu_stop(s->devices[i].gpu,
				s->devices[i].kernel_stays ? 0 : MR_SETUP_GPU_STOP_MS, NULL);
	for (uint32_t i = s->plan->lanes_count; i-- > 0;)
		mr_setup_lane_free(s, i);
}

static int lanes_up(struct mr_setup *s, struct mr_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < s->plan->lanes_count; i++)
		rc = mr_setup_lane_start(s, i, err);
	return rc;
}

static void lanes_down(struct mr_setup *s)
{
	for (uint32_t i = 0; i < s->plan->lanes_count; i++)
		if (s->lanes[i].created)
			mr_lane_want(s->lanes[i].lane, MR_LANE_HALT);
	for (uint32_t i = 0; i < s->plan->lanes_count; i++)
		if (mr_setup_lane_join(s, i, NULL) < 0)
			s->stuck = true;
}

static int serve_up(struct mr_setup *s, struct mr_err *err)
{
	mr_setup_source_init(s);
	s->served = true;
	return mr_report_serve(&s->source, err);
}

static void serve_down(struct mr_setup *s)
{
	if (s->served)
		mr_report_unserve();
	s->served = false;
}

/* All that exists, in order. */
static const struct mr_step {
	const char *name;
	int (*up)(struct mr_setup *s, struct mr_err *err);
	void (*down)(struct mr_setup *s); /* takes a half-built step; NULL: leaves nothing */
} steps[] = {
	{"instance", mr_setup_instance_up, mr_setup_instance_down}, /* its name */
	{"eal", eal_up, eal_down},                                  /* DPDK itself */
	{"devices", devices_up, devices_down},                      /* GPUs, through gpudev */
	{"regions", mr_setup_regions_up, mr_setup_regions_down}, /* packet memory, known to DPDK */
	{"ports", ports_up, ports_down},                         /* NICs and what stands for them */
	{"maps", mr_setup_maps_up, mr_setup_maps_down}, /* packet memory, known to each NIC */
	{"proof", mr_setup_proof_up, NULL},             /* whose memory it is, and that it is one */
	{"pools", mr_setup_pools_up, mr_setup_pools_down}, /* mbufs over packet memory */
	{"queues", queues_up, queues_down},                /* receive and send queues */
	{"start", start_up, start_down},                   /* NICs run */
	{"readback", mr_setup_readback_up, NULL},          /* frames out of ports and in again */
	{"steer", steer_up, steer_down},                 /* which frames they give to which lane */
	{"guard", guard_up, guard_down},                 /* CPU shut out of packet memory */
	{"launch", launch_up, launch_down},              /* rings, persistent kernels */
	{"lanes", lanes_up, lanes_down},                 /* cores */
	{"serve", serve_up, serve_down},                 /* telemetry */
	{"capture", mr_setup_tap_up, mr_setup_tap_down}, /* for who wants to see packets */
};
#define STEPS_ONCE 2u /* instance and EAL: a process's, whatever its plans */

static void take_down(struct mr_setup *s, uint32_t until)
{
	while (s->steps_up > until && !s->stuck)
		if (steps[--s->steps_up].down != NULL)
			steps[s->steps_up].down(s);
}

/* What is still there when all was taken down: only the process's end ends it. */
static int judge_left(const struct mr_setup *s, struct mr_err *err)
{
	if (s->stuck)
		return mr_err_set(err, -ETIMEDOUT, "%s",
			s->left.msg[0] != '\0' ? s->left.msg : "a lane's thread does not end");
	if (s->left.code < 0)
		return mr_err_set(err, -ETIMEDOUT, "%s", s->left.msg);
	if (s->reload.reading != NULL)
		return mr_err_set(err, -ETIME,
			"'%s', or a file that it names, was being read for a reload and does not "
			"come; the thread that reads ends with the process",
			s->reload.spec.file);
	return 0;
}

int mr_setup_down(struct mr_setup *s, struct mr_err *err)
{
	int rc;

	take_down(s, 0);
	rc = judge_left(s, err);
	/* What a thread still uses is left to the process's end. */
	if (!s->stuck) {
		mr_setup_reload_fini(s);
		free(s);
	}
	return rc;
}

static int bring_up(
	struct mr_setup *s, mr_setup_before_step *before_step, void *ctx, struct mr_err *err)
{
	while (s->steps_up < MR_ARRAY_LEN(steps)) {
		const struct mr_step *step = &steps[s->steps_up];
		int rc;

		if (before_step != NULL && !before_step(ctx, step->name))
			return mr_err_set(
				err, -ECANCELED, "told to stop before step %s", step->name);
		rc = step->up(s, err);
		s->steps_up++; /* also a step that failed half-way is taken down */
		if (rc < 0) {
			/* Not every way to fail has the code: EAL calls most by other names. */
			if (rc == -ENOMEM || rc == -EFBIG || rc == -EAGAIN || step->up == eal_up)
				mr_setup_name_limits(err);
			return rc;
		}
	}
	return 0;
}

static struct mr_setup *setup_new(const struct mr_plan *plan, struct mr_err *err)
{
	struct mr_setup *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		(void)mr_err_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	s->plan = plan;
	mr_setup_take_limits(s, plan);
	s->guard.key = -1;
	s->lock_fd = -1;
	s->tap.listen_fd = -1;
	s->tap.wake_fd = -1;
	mr_setup_reload_init(s);
	return s;
}

int mr_setup_up(const struct mr_plan *plan, mr_setup_before_step *before_step, void *ctx,
	struct mr_setup **ret_setup, struct mr_err *err)
{
	struct mr_setup *s = setup_new(plan, err);
	int rc;

	if (s == NULL)
		return err->code;
	rc = bring_up(s, before_step, ctx, err);
	if (rc == 0) {
		*ret_setup = s;
		return 0;
	}
	/* The first sentence is the cause, but how to end is the last's to say. */
	if (mr_setup_down(s, rc == -ECANCELED ? err : NULL) < 0)
		rc = -ETIMEDOUT;
	return rc;
}

struct trial {
	mr_setup_before_step *before_step;
	void *ctx;
	bool proven; /* it came as far as all that proves a path */
};

static bool goes_on(void *trial, const char *step)
{
	struct trial *t = trial;

	if (t->before_step != NULL && !t->before_step(t->ctx, step))
		return false;
	t->proven = strcmp(step, "guard") == 0;
	return !t->proven;
}

int mr_setup_try(const struct mr_plan *plan, mr_setup_before_step *before_step, void *ctx,
	struct mr_proof ret_lanes[MR_LANES_MAX], struct mr_err *err)
{
	struct trial t = {.before_step = before_step, .ctx = ctx};
	struct mr_setup *s = setup_new(plan, err);
	int rc;

	if (s == NULL)
		return err->code;
	rc = bring_up(s, goes_on, &t, err);
	if (t.proven) {
		rc = 0;
		for (uint32_t i = 0; i < plan->lanes_count; i++)
			mr_setup_proof_tell(s, i, &ret_lanes[i]);
	}
	if (mr_setup_down(s, rc == 0 || rc == -ECANCELED ? err : NULL) < 0)
		rc = -ETIMEDOUT;
	return rc;
}

/* What a plan brought up and took down again is as before the first one. */
static void forget(struct mr_setup *s)
{
	memset(s->devices, 0, sizeof(s->devices));
	memset(s->ports, 0, sizeof(s->ports));
	memset(s->lanes, 0, sizeof(s->lanes));
	s->links_ns = 0;
	s->seen = MR_SETUP_OK;
	s->guard_off = false;
}

int mr_setup_again(struct mr_setup *s, const struct mr_plan *plan, struct mr_err *err)
{
	int rc;

	if (strcmp(plan->name, s->plan->name) != 0)
		return mr_err_set(err, -EINVAL,
			"the instance '%s' is up and cannot become '%s' without a new process",
			s->plan->name, plan->name);
	take_down(s, STEPS_ONCE);
	if (judge_left(s, err) < 0)
		return -ETIMEDOUT;
	forget(s);
	s->plan = plan;
	mr_setup_take_limits(s, plan);
	rc = bring_up(s, NULL, NULL, err);
	if (rc == 0)
		return 0;
	take_down(s, STEPS_ONCE);
	return judge_left(s, NULL) < 0 ? -ETIMEDOUT : rc;
}

const struct mr_report_source *mr_setup_source(struct mr_setup *s)
{
	return &s->source;
}

struct mr_port *mr_setup_port(struct mr_setup *s, uint32_t port)
{
	return &s->ports[port];
}

struct rte_mempool *mr_setup_host_pool(struct mr_setup *s)
{
	return s->host_pool;
}
