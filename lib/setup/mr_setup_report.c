/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_setup_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

static void memory_evidence(struct mr_setup *s, const struct mr_plan_lane *p,
	const struct mr_gpu_region *region, struct mr_report_lane *r)
{
	evidence(r, "memory", "PASS", "%s of device '%s', %zu bytes at %p",
		region->memory == MR_GPU_MEMORY_DEVICE ? "GPU memory" : "page-locked host memory",
		s->plan->devices[p->device].name, region->bytes, region->addr);
	if (region->memory == MR_GPU_MEMORY_DEVICE && region->dmabuf.code == 0)
		evidence(r, "dma_buf", "PASS", "the memory exports as one dma-buf");
	else if (region->memory == MR_GPU_MEMORY_DEVICE)
		evidence(r, "dma_buf", region->dmabuf.code == -ENOTSUP ? "NA" : "WARN", "%s",
			region->dmabuf.msg);
}

/* Both ways together are as good as the worse. */
static enum mr_path worse_path(const struct mr_plan_lane *p)
{
	return p->rx_path > p->tx_path ? p->rx_path : p->tx_path;
}

static void path_evidence(struct mr_setup *s, uint32_t i, struct mr_report_lane *r)
{
	const struct mr_plan_lane *p = &s->plan->lanes[i];
	const struct mr_gpu_region *region = mr_setup_region(s, i);
	const struct mr_gpu_info *info = mr_gpu_info(s->devices[p->device].gpu);

	evidence(r, "choice", "PASS", "%s", p->path_why);
	if (s->plan->skipped_checks[0] != '\0')
		evidence(r, "preflight", "WARN", "not looked at: %s", s->plan->skipped_checks);
	memory_evidence(s, p, region, r);
	if (mr_plan_lane_moves(p))
		memory_evidence(s, p, mr_setup_tx_region(s, i), r);
	for (uint32_t m = 0; m < s->maps_count; m++) {
		const struct mr_setup_map *map = &s->maps[m];
		bool used = map->port == p->rx_port;

		for (uint32_t t = 0; t < p->tx_count; t++)
			used |= map->port == p->tx[t].port;
		if (used && map->device == p->device &&
			(map->path == p->rx_path || map->path == p->tx_path))
			evidence(r, "registration", "PASS", "port '%s' (%s): %s, whole region",
				s->ports[map->port].name, s->ports[map->port].driver, map->kind);
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

static void lane(void *ctx, uint32_t i, struct mr_report_lane *r)
{
	struct mr_setup *s = ctx;
	const struct mr_plan_lane *p = &s->plan->lanes[i];
	const struct mr_setup_device *d = &s->devices[p->device];
	uint64_t counters[MR_COUNTERS_MAX];

	memset(r, 0, sizeof(*r));
	snprintf(r->name, sizeof(r->name), "%s", p->name);
	mr_stats_snapshot(&s->lanes[i].lane->pub, &r->pub);
	r->state = mr_lane_state_name((enum mr_lane_state)r->pub.state);
	r->rx_path = mr_path_name(p->rx_path);
	r->tx_path = mr_path_name(p->tx_path);
	r->path_verdict = mr_load_relaxed(&d->health) == MR_GPU_HEALTHY
		? mr_path_name(worse_path(p))
		: "unproven";
	path_evidence(s, i, r);

	mr_gpu_counters(d->gpu, s->lanes[i].launch_index, counters);
	r->kernel_beats = mr_gpu_beats(d->gpu, s->lanes[i].launch_index);
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
	return mr_setup_reload_ask(ctx, ret_ticket) == 0;
}

static void reloaded(void *ctx, struct mr_report_reload *ret_answer)
{
	mr_setup_reload_answer(ctx, ret_answer);
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
		.reloaded = reloaded};
}
