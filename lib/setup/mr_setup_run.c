/* SPDX-License-Identifier: BSD-3-Clause */
/* While lanes run, and how they stop. */
#include "mr_setup_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <rte_cycles.h>

/* On a software device a worker shares the CPU with everything else. */
#define STALL_MS_SIM 5000u
#define STALL_MS 1000u
#define GPU_STOP_FAST_MS 200u /* in a hurry */
#define LINKS_NS 100000000u

static void watch_links(struct mr_setup *s, uint32_t port, bool up)
{
	for (uint32_t i = 0; i < s->plan->lanes_count; i++)
		for (uint32_t t = 0; t < s->plan->lanes[i].tx_count; t++)
			if (s->plan->lanes[i].tx[t].port == port)
				mr_store_relaxed(&s->lanes[i].lane->tx.q[t].link_down, !up);
}

static uint32_t stall_ms(const struct mr_setup *s, uint32_t device)
{
	if (s->stall_ms != 0)
		return s->stall_ms;
	return s->plan->devices[device].sim ? STALL_MS_SIM : STALL_MS;
}

void mr_setup_take_limits(struct mr_setup *s, const struct mr_plan *plan)
{
	s->drain_ms = plan->drain_ms;
	s->stall_ms = plan->stall_ms;
	s->driver_ms = plan->driver_ms;
	/* A device that seems lost was given less, and the run ends. */
	for (uint32_t i = 0; s->seen == MR_SETUP_OK && i < plan->devices_count; i++)
		if (s->devices[i].gpu != NULL)
			mr_gpu_set_driver_ms(s->devices[i].gpu, plan->driver_ms);
}

uint32_t mr_setup_drain_ms(const struct mr_setup *s)
{
	return s->drain_ms;
}

static enum mr_setup_event look(struct mr_setup *s, struct mr_err *err)
{
	uint64_t now = mr_clock_ns();

	for (uint32_t i = 0; i < s->plan->devices_count; i++) {
		struct mr_setup_device *d = &s->devices[i];
		enum mr_gpu_health health;

		if (d->lanes == 0)
			continue;
		health = mr_gpu_watch(d->gpu, stall_ms(s, i), err);
		mr_store_relaxed(&d->health, health);
		if (health == MR_GPU_STALLED)
			return MR_SETUP_GPU_STALLED;
		if (health == MR_GPU_LOST)
			return MR_SETUP_GPU_LOST;
		if (health == MR_GPU_HOST_SILENT)
			return MR_SETUP_HOST_SILENT;
	}
	if (now - s->links_ns < LINKS_NS)
		return MR_SETUP_OK;
	s->links_ns = now;
	for (uint32_t i = 0; i < s->plan->ports_count; i++) {
		struct mr_port_stats st;

		mr_port_stats_read(&s->ports[i], &st);
		if (!st.present) {
			mr_err_set(err, -ENODEV, "port '%s' (%s) was removed", s->ports[i].name,
				s->ports[i].device);
			return MR_SETUP_PORT_LOST;
		}
		watch_links(s, i, st.link_up);
	}
	return mr_setup_proof_watch(s, now, err);
}

enum mr_setup_event mr_setup_look(struct mr_setup *s)
{
	struct mr_err err = {0};
	enum mr_setup_event event = look(s, &err);

	if (s->seen == MR_SETUP_OK && event != MR_SETUP_OK) {
		s->seen = event;
		s->seen_err = err;
	}
	return event;
}

enum mr_setup_event mr_setup_seen(const struct mr_setup *s, struct mr_err *err)
{
	if (s->seen != MR_SETUP_OK)
		(void)mr_err_set(err, s->seen_err.code, "%s", s->seen_err.msg);
	return s->seen;
}

enum mr_setup_event mr_setup_watch(struct mr_setup *s, struct mr_err *err)
{
	(void)mr_setup_look(s);
	return mr_setup_seen(s, err);
}

uint64_t mr_setup_activity(struct mr_setup *s, uint64_t *ret_in_flight)
{
	uint64_t sum = 0;

	*ret_in_flight = 0;
	for (uint32_t i = 0; i < s->plan->lanes_count; i++) {
		struct mr_published *p = &s->lanes[i].lane->pub;
		uint64_t in_flight = mr_load_relaxed_u64(&p->in_flight);

		sum += mr_load_relaxed_u64(&p->counters.c[MR_C_rx_packets]);
		/* A tick that is out, and results that come of it, are no traffic. */
		if (s->plan->lanes[i].tick_us == 0)
			sum += mr_load_relaxed_u64(&p->counters.c[MR_C_tx_packets]);
		else if (in_flight <= MR_TICK_BUFFERS)
			in_flight = 0;
		*ret_in_flight += in_flight;
	}
	return sum;
}

static bool all_halted(struct mr_setup *s)
{
	for (uint32_t i = 0; i < s->plan->lanes_count; i++)
		if (mr_load_relaxed(&s->lanes[i].lane->pub.state) != MR_LANE_HALT)
			return false;
	return true;
}

/* Until all lanes have drained, or there is a reason not to wait for it. */
static enum mr_setup_drained drain(struct mr_setup *s, uint32_t drain_ms, const uint32_t *fast)
{
	uint64_t deadline = mr_clock_ns() + (uint64_t)drain_ms * 1000000u;

	while (!all_halted(s)) {
		enum mr_setup_event event;

		if (mr_load_relaxed(fast) != 0)
			return MR_SETUP_DRAIN_FAST;
		if (mr_clock_ns() >= deadline)
			return MR_SETUP_DRAIN_TIME;
		event = mr_setup_look(s);
		/* What does not leave by a port that is gone is dropped by name. */
		if (event != MR_SETUP_OK && event != MR_SETUP_PORT_LOST)
			return MR_SETUP_DRAIN_FAILED;
		rte_delay_us_sleep(1000);
	}
	return MR_SETUP_DRAINED;
}

/* The last counters of the kernels are stored as they leave. */
static int stop_devices(struct mr_setup *s, const uint32_t *fast, struct mr_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < s->plan->devices_count; i++)
		if (mr_gpu_stop(s->devices[i].gpu,
			    mr_load_relaxed(fast) != 0 ? GPU_STOP_FAST_MS : MR_SETUP_GPU_STOP_MS,
			    rc == 0 ? err : NULL) < 0) {
			s->devices[i].kernel_stays = true;
			rc = -EBUSY;
		}
	return rc;
}

/* Packets that lanes left where they were, and whether a stage had something to tell yet. */
static uint64_t left_over(struct mr_setup *s, bool *ret_untold)
{
	uint64_t left = 0;

	*ret_untold = false;
	for (uint32_t i = 0; i < s->plan->lanes_count; i++) {
		const struct mr_plan_lane *l = &s->plan->lanes[i];

		left += mr_load_relaxed_u64(&s->lanes[i].lane->pub.in_flight);
		for (uint32_t k = 0; k < l->stages_count; k++)
			*ret_untold |= l->stages[k].desc->ticks && !s->lanes[i].lane->told;
	}
	return left;
}

static int stop(struct mr_setup *s, uint32_t drain_ms, const uint32_t *fast, bool fail_closed,
	enum mr_setup_drained *ret_drained, struct mr_err *err)
{
	struct mr_err why = {0};
	bool untold;
	uint64_t left;
	int rc = 0;

	mr_setup_reload_end(s);
	for (uint32_t i = 0; i < s->plan->lanes_count; i++)
		mr_lane_want(s->lanes[i].lane, fail_closed ? MR_LANE_HALT : MR_LANE_DRAIN);
	*ret_drained = fail_closed ? MR_SETUP_DRAIN_FAILED : drain(s, drain_ms, fast);
	for (uint32_t i = 0; i < s->plan->lanes_count; i++)
		mr_lane_want(s->lanes[i].lane, MR_LANE_HALT);
	for (uint32_t i = 0; i < s->plan->lanes_count && rc == 0; i++)
		rc = mr_setup_lane_join(s, i, err);
	if (rc < 0)
		return rc;
	mr_setup_reload_join(s, fast);
	rc = stop_devices(s, fast, &why);
	left = left_over(s, &untold);
	if (untold)
		return mr_err_set(err, -EBUSY,
			"%.800s%sstopped with %" PRIu64
			" packets in flight, and before stages had told all that they found: give "
			"stop.drain_ms more time",
			why.msg, why.msg[0] != '\0' ? "; " : "", left);
	if (left != 0)
		return mr_err_set(err, -EBUSY, "%.800s%sstopped with %" PRIu64 " packets in flight",
			why.msg, why.msg[0] != '\0' ? "; " : "", left);
	return rc < 0 ? mr_err_set(err, rc, "%s", why.msg) : 0;
}

int mr_setup_stop(struct mr_setup *s, uint32_t drain_ms, const uint32_t *fast, bool fail_closed,
	enum mr_setup_drained *ret_drained, struct mr_err *err)
{
	enum mr_setup_drained drained;
	int rc = stop(s, drain_ms, fast, fail_closed, &drained, err);

	if (ret_drained != NULL)
		*ret_drained = drained;
	/* Kernels have left, and with them the last copies have come. */
	mr_setup_tap_end(s);
	mr_setup_reload_let_hear(s, fast);
	return rc;
}
