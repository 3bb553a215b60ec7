/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_setup_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <rte_mempool.h>

static void evidence(struct mr_report_lane *r, const char *check, const char *verdict,
	const char *fmt, ...) MR_PRINTF(4, 5);

static void evidence(
	struct mr_report_lane *r, const char *check, const char *verdict, const char *fmt, ...)
{
	struct mr_report_evidence *e = &r->evidence[r->evidence_count];
	va_list ap;

	if (r->evidence_count == MR_REPORT_EVIDENCE_MAX)
		return;
	r->evidence_count++;
	snprintf(e->check, sizeof(e->check), "%s", check);
	snprintf(e->verdict, sizeof(e->verdict), "%s", verdict);
	va_start(ap, fmt);
	vsnprintf(e->value, sizeof(e->value), fmt, ap);
	va_end(ap);
}

static void guard_report(struct mr_setup *s, uint32_t i, struct mr_report_lane *r)
{
	const struct mr_lane *l = s->lanes[i].lane;
	bool software = l->rx.guard != NULL;

	for (uint32_t t = 0; t < l->tx.tx_count; t++)
		software |= l->tx.q[t].guard != NULL;
	r->guard_by = mr_guard_kind_name(s->guard.kind);
	if (mr_plan_lane_copies(&s->plan->lanes[i])) {
		r->guard = "unavailable";
		evidence(r, "guard", "NA", "a staged lane's core copies packets itself");
		return;
	}
	if (s->guard.kind == MR_GUARD_NONE && s->guard.refused != 0) {
		r->guard = "unavailable";
		evidence(r, "guard", "WARN",
			"pkey_alloc: %s; a service needs SystemCallFilter=@pkey",
			strerror(s->guard.refused));
		return;
	}
	if (s->guard.kind == MR_GUARD_NONE) {
		r->guard = s->guard_off ? "off" : "unavailable";
		evidence(r, "guard", s->guard_off ? "WARN" : "NA", "%s",
			s->guard_off ? "switched off by the device's options"
				     : "this CPU has no memory protection keys");
		return;
	}
	r->guard = software ? "on(software-dma)" : "on";
	evidence(r, "guard", "PASS", "%s: the lane's core can touch packet memory %s", r->guard_by,
		software ? "only while a software driver plays the NIC's DMA" : "never");
}

static const char *ordering_name(int ordering)
{
	return ordering >= 200 ? "all devices" : ordering >= 100 ? "owner" : "none";
}

static void proof_evidence(struct mr_report_lane *r, const char *check, const struct mr_proof *p)
{
	evidence(r, check, mr_check_verdict_name(p->verdict), "%s", p->value);
}

static void memory_evidence(
	struct mr_setup *s, uint32_t device, enum mr_path path, struct mr_report_lane *r)
{
	const struct mr_gpu_region *region = &s->devices[device].region[path];

	proof_evidence(r, "memory", &s->proof.memory[device][path]);
	proof_evidence(r, "window", &s->proof.window[device][path]);
	if (region->memory == MR_GPU_MEMORY_DEVICE && region->dmabuf.code == 0)
		evidence(r, "dma_buf", "PASS", "the memory exports as one dma-buf");
	else if (region->memory == MR_GPU_MEMORY_DEVICE)
		evidence(r, "dma_buf", region->dmabuf.code == -ENOTSUP ? "NA" : "WARN", "%s",
			region->dmabuf.msg);
}

/* DPDK's call says no more of GPU memory than of any other. */
static bool by_peer_memory(const struct mr_setup *s, const struct mr_setup_map *m)
{
	return m->path == MR_PATH_DIRECT && !s->plan->devices[m->device].sim &&
		!s->ports[m->port].software;
}

static void registration_evidence(
	struct mr_setup *s, const struct mr_setup_map *m, struct mr_report_lane *r)
{
	const struct mr_gpu_region *region = &s->devices[m->device].region[m->path];

	evidence(r, "registration", "PASS", "port '%s' (%s): %s, %zu bytes at %p, the whole region",
		s->ports[m->port].name, s->ports[m->port].driver,
		by_peer_memory(s, m) ? "dma-map through the peer-memory module, since DPDK 22.11 "
				       "registers no dma-buf"
				     : m->kind,
		region->bytes, region->addr);
}

static void nic_evidence(
	const struct mr_proof *traffic, const struct mr_proof *back, struct mr_report_lane *r)
{
	if (traffic->value[0] != '\0')
		proof_evidence(r, "nic_counters", traffic);
	else
		evidence(r, "nic_counters", "NA", "no test frame to count: read-back %s",
			back->value);
}

static void path_evidence(struct mr_setup *s, uint32_t i, struct mr_report_lane *r)
{
	const struct mr_plan_lane *p = &s->plan->lanes[i];
	const struct mr_gpu_info *info = mr_gpu_info(s->devices[p->device].gpu);

	evidence(r, "choice", "PASS", "%s", p->path_why);
	if (s->plan->skipped_checks[0] != '\0')
		evidence(r, "preflight", "WARN", "not looked at: %s", s->plan->skipped_checks);
	memory_evidence(s, p->device, p->rx_path, r);
	if (mr_plan_lane_moves(p))
		memory_evidence(s, p->device, p->tx_path, r);
	for (uint32_t m = 0; m < s->maps_count; m++) {
		const struct mr_setup_map *map = &s->maps[m];
		bool used = map->port == p->rx_port;

		for (uint32_t t = 0; t < p->tx_count; t++)
			used |= map->port == p->tx[t].port;
		if (used && map->device == p->device &&
			(map->path == p->rx_path || map->path == p->tx_path))
			registration_evidence(s, map, r);
	}
	proof_evidence(r, "counters", &s->proof.counters[p->device]);
	if (!s->plan->devices[p->device].sim) {
		proof_evidence(r, "bar1", &s->proof.bar1[p->device]);
		evidence(r, "gpu_traffic", "NA",
			"what NVML tells of PCIe is the mean of 20 ms in KB/s, in which test "
			"frames do not show");
	}
	for (uint32_t k = 0; k < s->plan->ports_count; k++)
		if (mr_setup_proof_port(p, k)) {
			const struct mr_proof *back = &s->proof.readback[k];
			const char *value;
			enum mr_check_verdict v = mr_setup_proof_readback(s, p, k, &value);

			evidence(r, "readback", mr_check_verdict_name(v), "port '%s': %s",
				s->ports[k].name, value);
			if (s->proof.attached[k].value[0] != '\0')
				proof_evidence(r, "attachments", &s->proof.attached[k]);
			if (s->plan->ports[k].kind == MR_PORT_PCI)
				nic_evidence(&s->proof.traffic[k], back, r);
		}
	evidence(r, "ordering", "PASS", "NIC writes before READY: %s%s",
		ordering_name(info->writes_ordering),
		!info->flush_needed                    ? ""
			: p->rx_path == MR_PATH_STAGED ? "; not relied on, the stream orders"
						       : ", flushed per slot");
	if (info->klog[0] != '\0')
		evidence(r, "kernel_log", info->klog_rc == 0 ? "PASS" : "WARN", "%s: %s",
			info->klog,
			info->klog_rc == 0 ? "faults of the GPU that it tells of end the run"
					   : strerror(-info->klog_rc));
	evidence(r, "ready", "PASS", "READY words and descriptors in %s",
		info->can_map ? "GPU memory, mapped for the CPU"
			      : "host memory: GPU memory cannot be mapped for the CPU");
	evidence(r, "position", "PASS",
		"every buffer is checked against the region before it is handed over");
	guard_report(s, i, r);
}

static void path_verdict(struct mr_setup *s, uint32_t i, struct mr_report_lane *r)
{
	bool healthy =
		mr_load_relaxed(&s->devices[s->plan->lanes[i].device].health) == MR_GPU_HEALTHY;
	enum mr_check_verdict v;
	enum mr_proof_kind why;
	bool holds = mr_setup_proof_lane(s, i, &why, &v);

	if (mr_load_acquire(&s->proof.alarmed[i]) != 0)
		evidence(r, "watch", "FAIL", "%s", s->proof.watch[i].value);
	else
		evidence(r, "watch", healthy ? "PASS" : "FAIL", "%s",
			healthy ? "registrations, links and topology are as they were at the start"
				: "the device is not healthy");
	r->path_verdict =
		holds && healthy ? mr_path_name(mr_plan_lane_path(&s->plan->lanes[i])) : "unproven";
	if (holds)
		return;
	evidence(r, "verdict", mr_check_verdict_name(v == MR_FAIL ? v : MR_UNKNOWN),
		"unproven, since of %s there is %s", mr_proof_kind_name(why),
		v == MR_FAIL ? "evidence against it" : "no evidence");
}

/* A look at its ring and at its caches, which the lane goes on using: near enough, and it waits
 * for nobody. */
static void pool_report(const struct rte_mempool *pool, struct mr_report_lane *r)
{
	if (pool == NULL)
		return;
	r->pool_buffers = pool->size;
	r->pool_free = rte_mempool_avail_count(pool);
}

static void lane(void *ctx, uint32_t i, struct mr_report_lane *r)
{
	struct mr_setup *s = ctx;
	const struct mr_plan_lane *p = &s->plan->lanes[i];
	const struct mr_setup_device *d = &s->devices[p->device];
	uint64_t counters[MR_COUNTERS_MAX];

	memset(r, 0, sizeof(*r));
	snprintf(r->name, sizeof(r->name), "%s", p->name);
	mr_stats_snapshot(&s->lanes[i].lane->pub, &r->pub);
	r->pub.counters.c[MR_C_tap_packets] = mr_load_relaxed_u64(&s->tap.packets[i]);
	r->pub.counters.c[MR_C_tap_lost] = mr_load_relaxed_u64(&s->tap.lost[i]);
	r->state = mr_lane_state_name((enum mr_lane_state)r->pub.state);
	r->rx_path = mr_path_name(p->rx_path);
	r->tx_path = mr_path_name(p->tx_path);
	path_evidence(s, i, r);
	path_verdict(s, i, r);

	mr_gpu_counters(d->gpu, s->lanes[i].launch_index, counters);
	r->kernel_beats = mr_gpu_beats(d->gpu, s->lanes[i].launch_index, r->worker_beats);
	r->workers = p->workers;
	pool_report(s->lanes[i].pool, r);
	r->stages_count = p->stages_count;
	for (uint32_t k = 0; k < p->stages_count; k++) {
		const struct mr_stage_desc *desc = p->stages[k].desc;
		struct mr_report_stage *st = &r->stages[k];

		snprintf(st->name, sizeof(st->name), "%s", desc->name);
		st->counters_count = desc->counters_count;
		for (uint32_t c = 0; c < desc->counters_count; c++) {
			st->counters[c].name = desc->counters[c].name;
			st->counters[c].help = desc->counters[c].help;
			st->counters[c].value = counters[p->stages[k].counter_base + c];
		}
	}
}

static void port(void *ctx, uint32_t i, struct mr_report_port *r)
{
	struct mr_setup *s = ctx;
	const struct mr_port *p = &s->ports[i];
	struct mr_port_stats st;

	memset(r, 0, sizeof(*r));
	mr_port_stats_read(p, &st);
	snprintf(r->name, sizeof(r->name), "%s", p->name);
	snprintf(r->driver, sizeof(r->driver), "%s", p->driver);
	r->link_up = st.link_up;
	r->has_missed = p->counts_missed;
	r->rx_missed = st.rx_missed;
	r->rx_errors = st.rx_errors;
	r->rx_nombuf = st.rx_nombuf;
	r->tx_errors = st.tx_errors;
}

static void device(void *ctx, uint32_t i, struct mr_report_device *r)
{
	static const char *const health[] = {
		[MR_GPU_HEALTHY] = "healthy",
		[MR_GPU_STALLED] = "stalled",
		[MR_GPU_LOST] = "lost",
		[MR_GPU_HOST_SILENT] = "host_silent",
	};
	struct mr_setup *s = ctx;

	memset(r, 0, sizeof(*r));
	snprintf(r->name, sizeof(r->name), "%s", s->plan->devices[i].name);
	r->provider = mr_gpu_info(s->devices[i].gpu)->provider;
	r->health = health[mr_load_relaxed(&s->devices[i].health)];
}

static bool reload(void *ctx, uint64_t *ret_ticket)
{
	return mr_setup_reload_ask(ctx, true, ret_ticket) == 0;
}

static void reloaded(void *ctx, struct mr_report_reload *ret_answer)
{
	mr_setup_reload_answer(ctx, ret_answer);
}

static void heard(void *ctx, uint64_t ticket)
{
	mr_setup_reload_heard(ctx, ticket);
}

void mr_setup_source_init(struct mr_setup *s)
{
	s->source = (struct mr_report_source){.instance = s->plan->name,
		.lanes = s->plan->lanes_count,
		.ports = s->plan->ports_count,
		.devices = s->plan->devices_count,
		.ctx = s,
		.lane = lane,
		.port = port,
		.device = device,
		.reload = reload,
		.reloaded = reloaded,
		.heard = heard};
}
