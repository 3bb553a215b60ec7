/* SPDX-License-Identifier: BSD-3-Clause */
/* Is each lane's path the one that was asked for? At the start, and while lanes run. */
#include "mr_gpu_prove.h"
#include "mr_setup_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MACHINE_NS 1000000000u

static const struct mr_plan_lane *lane_of(const struct mr_setup *s, uint32_t i)
{
	return &s->plan->lanes[i];
}

static bool is_direct(const struct mr_plan_lane *l)
{
	return l->rx_path == MR_PATH_DIRECT || l->tx_path == MR_PATH_DIRECT;
}

bool mr_setup_proof_port(const struct mr_plan_lane *l, uint32_t port)
{
	bool used = l->rx_port == port;

	for (uint32_t t = 0; t < l->tx_count; t++)
		used |= l->tx[t].port == port;
	return used;
}

static uint32_t longest_frame(const struct mr_plan *p)
{
	uint32_t longest = 0;

	for (uint32_t i = 0; i < p->ports_count; i++)
		if (p->ports[i].frame_max > longest)
			longest = p->ports[i].frame_max;
	return longest;
}

static int prove_region(struct mr_setup *s, uint32_t device, uint32_t kind, struct mr_err *err)
{
	struct mr_setup_device *d = &s->devices[device];
	struct mr_setup_proof *p = &s->proof;
	const struct mr_gpu_region *r = &d->region[kind];
	uint32_t sizes[MR_PROOF_SIZES_MAX];
	uint32_t count = mr_proof_sizes(longest_frame(s->plan), sizes);
	int rc = mr_gpu_prove_memory(d->gpu, r, &p->memory[device][kind], err);

	if (rc < 0)
		return rc;
	if (kind != MR_PATH_DIRECT || s->plan->devices[device].sim)
		return mr_gpu_prove_window(d->gpu, r, sizes, count, &p->window[device][kind], err);
	mr_proof_set(&p->window[device][kind], MR_NA, "the CPU does not reach it");
	return 0;
}

/* What was registered of a device's memory of this kind, by all ports. */
static uint64_t mapped_bytes(const struct mr_setup *s, uint32_t device, uint32_t kind)
{
	uint64_t bytes = 0;

	for (uint32_t m = 0; m < s->maps_count; m++)
		if (s->maps[m].device == device && s->maps[m].path == kind)
			bytes += s->devices[device].region[kind].bytes;
	return bytes;
}

static void compare(struct mr_proof *p, uint64_t counted, uint64_t mapped)
{
	mr_proof_set(p, counted == mapped ? MR_PASS : MR_FAIL,
		"the software device's own books: %" PRIu64 " bytes were registered, by ports "
		"%" PRIu64,
		counted, mapped);
}

/* "device=0000:3b:00.0,option": the address. */
static const char *address_of(const struct mr_plan_device *d, char ret_bdf[MR_BDF_MAX])
{
	const char *at = d->args + strlen("device=");

	snprintf(ret_bdf, MR_BDF_MAX, "%.*s", (int)strcspn(at, ","), at);
	return ret_bdf;
}

static struct mr_probe_value bar1_free(struct mr_setup *s, uint32_t device)
{
	const struct mr_probe probe = {.ctx = &s->aside, .ask = mr_probe_aside_ask};
	struct mr_probe_gpu gpu;
	char bdf[MR_BDF_MAX];

	mr_probe_ask_gpu(&probe, address_of(&s->plan->devices[device], bdf), &gpu);
	return gpu.error < 0 ? (struct mr_probe_value){0} : gpu.bar1_free;
}

/* The kernel's module counts for all GPUs together, a software device for itself. */
static void prove_counters(struct mr_setup *s)
{
	uint64_t mapped = 0, counted, revoked;
	struct mr_proof real = {0};

	for (uint32_t i = 0; i < s->plan->devices_count; i++) {
		struct mr_proof *p = &s->proof.counters[i];

		if (s->plan->devices[i].sim) {
			if (mr_gpu_peer_counts(s->devices[i].gpu, &counted, &revoked) == 0)
				compare(p, counted,
					mapped_bytes(s, i, MR_PATH_DIRECT) +
						mapped_bytes(s, i, MR_PATH_PINNED) +
						mapped_bytes(s, i, MR_PATH_STAGED));
		} else if (mapped_bytes(s, i, MR_PATH_DIRECT) == 0) {
			mr_proof_set(p, MR_NA, "no NIC registered memory of this GPU");
		}
		if (!s->plan->devices[i].sim)
			mapped += mapped_bytes(s, i, MR_PATH_DIRECT);
	}
	for (uint32_t i = 0; i < s->plan->devices_count; i++)
		if (!s->plan->devices[i].sim) {
			struct mr_probe_value now = bar1_free(s, i);

			/* Several NICs that registered the same bytes may share the room. */
			mr_proof_bar1(&s->proof.bar1_before[i], &now,
				mapped_bytes(s, i, MR_PATH_DIRECT) == 0
					? 0
					: s->devices[i].region[MR_PATH_DIRECT].bytes,
				&s->proof.bar1[i]);
		}
	mr_proof_watch_judge_registered(&s->proof.machine, mapped, &real);
	for (uint32_t i = 0; i < s->plan->devices_count; i++)
		if (!s->plan->devices[i].sim && mapped_bytes(s, i, MR_PATH_DIRECT) > 0)
			mr_proof_set(&s->proof.counters[i], real.verdict, "%s", real.value);
}

/* The NICs that reach GPU memory: what each holds of it by dma-buf. */
static void count_buffers(struct mr_setup *s)
{
	for (uint32_t m = 0; m < s->maps_count; m++) {
		const struct mr_plan_port *port = &s->plan->ports[s->maps[m].port];

		if (port->kind == MR_PORT_PCI && s->maps[m].path == MR_PATH_DIRECT)
			mr_proof_watch_judge_attached(&s->proof.machine, port->device,
				&s->proof.attached[s->maps[m].port]);
	}
}

static void watch_devices(struct mr_setup *s)
{
	struct mr_proof_watch *w = &s->proof.machine;

	for (uint32_t i = 0; i < s->plan->devices_count; i++) {
		char bdf[MR_BDF_MAX];

		if (s->plan->devices[i].sim)
			continue;
		mr_proof_watch_add(w, address_of(&s->plan->devices[i], bdf), true);
		s->proof.bar1_before[i] = bar1_free(s, i);
	}
	for (uint32_t i = 0; i < s->plan->ports_count; i++)
		if (s->plan->ports[i].kind == MR_PORT_PCI)
			mr_proof_watch_add(w, s->plan->ports[i].device, false);
}

int mr_setup_proof_begin(struct mr_setup *s, struct mr_err *err)
{
	int rc;

	memset(&s->proof, 0, sizeof(s->proof)); /* of the plan before */
	rc = mr_proof_watch_open(&s->proof.machine, "/", err);

	if (rc == 0)
		watch_devices(s);
	return rc;
}

void mr_setup_proof_end(struct mr_setup *s)
{
	if (s->proof.machine.root.fd > 0)
		mr_proof_watch_close(&s->proof.machine);
	s->proof.machine.root.fd = -1;
}

/* What NICs count of the read-back speaks against a path, and without the rest not for it. */
static enum mr_check_verdict worst_counters(const struct mr_setup *s, const struct mr_plan_lane *l)
{
	enum mr_check_verdict v = s->proof.counters[l->device].verdict;

	for (uint32_t i = 0; i < s->plan->ports_count; i++)
		if (mr_setup_proof_port(l, i) && s->proof.traffic[i].verdict == MR_FAIL)
			v = MR_FAIL;
	return v;
}

/* The worst of a kind over all that the lane uses. */
static enum mr_check_verdict worst(
	const struct mr_setup *s, const struct mr_plan_lane *l, enum mr_proof_kind kind, uint32_t i)
{
	const struct mr_setup_proof *p = &s->proof;
	uint32_t rx = l->rx_path, tx = l->tx_path;
	const struct mr_proof *a, *b;

	switch (kind) {
	case MR_PROOF_MEMORY:
		a = &p->memory[l->device][rx];
		b = &p->memory[l->device][tx];
		break;
	case MR_PROOF_WINDOW:
		a = &p->window[l->device][rx];
		b = &p->window[l->device][tx];
		break;
	case MR_PROOF_COUNTERS:
		return worst_counters(s, l);
	case MR_PROOF_WATCH:
		return mr_load_acquire(&p->alarmed[i]) != 0 ? MR_FAIL : MR_PASS;
	default: /* REGISTRATION: a port that did not register ended the start */
		return MR_PASS;
	}
	return a->verdict > b->verdict ? a->verdict : b->verdict;
}

enum mr_check_verdict mr_setup_proof_readback(const struct mr_setup *s,
	const struct mr_plan_lane *l, uint32_t port, const char **ret_value)
{
	const struct mr_proof *p = &s->proof.readback[port];

	if (p->verdict == MR_PASS && port == l->rx_port &&
		!s->proof.arrived[port][l->device][l->rx_path]) {
		*ret_value = "no test frame came into the memory that this lane receives into";
		return MR_NA;
	}
	*ret_value = p->value;
	return p->verdict;
}

/* One port that was not tried is not made up for by another that was. */
static enum mr_check_verdict worst_readback(const struct mr_setup *s, const struct mr_plan_lane *l)
{
	enum mr_check_verdict worst = MR_PASS;
	const char *value;
	bool tried = true;

	for (uint32_t i = 0; i < s->plan->ports_count; i++) {
		enum mr_check_verdict v;

		if (!mr_setup_proof_port(l, i))
			continue;
		v = mr_setup_proof_readback(s, l, i, &value);
		tried &= v != MR_NA;
		if (v > worst)
			worst = v;
	}
	return worst == MR_PASS && !tried ? MR_NA : worst;
}

/* Who moves the lane's bytes, and to what memory. */
static enum mr_proof_path kind_of(const struct mr_setup *s, const struct mr_plan_lane *l)
{
	bool software = true;

	if (!is_direct(l))
		return MR_PROOF_HOST;
	if (!s->plan->devices[l->device].sim)
		return MR_PROOF_DIRECT_NIC;
	for (uint32_t i = 0; i < s->plan->ports_count; i++)
		software &= s->ports[i].software || !mr_setup_proof_port(l, i);
	return software ? MR_PROOF_DIRECT_SOFTWARE : MR_PROOF_DIRECT_STAND_IN;
}

bool mr_setup_proof_lane(struct mr_setup *s, uint32_t i, enum mr_proof_kind *ret_why,
	enum mr_check_verdict *ret_verdict)
{
	const struct mr_plan_lane *l = lane_of(s, i);
	enum mr_check_verdict v[MR_PROOF_KINDS];
	bool holds;

	for (int k = 0; k < MR_PROOF_KINDS; k++)
		v[k] = k == MR_PROOF_READBACK ? worst_readback(s, l)
					      : worst(s, l, (enum mr_proof_kind)k, i);
	holds = mr_proof_judge(kind_of(s, l), v, ret_why);
	*ret_verdict = holds ? MR_PASS : v[*ret_why];
	return holds;
}

/* What a lane's verdict of a kind says: the first of its ports or regions that has it. */
static const char *words(
	struct mr_setup *s, uint32_t i, enum mr_proof_kind kind, enum mr_check_verdict v)
{
	const struct mr_plan_lane *l = lane_of(s, i);
	uint32_t rx = l->rx_path, tx = l->tx_path, d = l->device;
	const struct mr_setup_proof *p = &s->proof;
	const char *value;

	switch (kind) {
	case MR_PROOF_MEMORY:
		return p->memory[d][p->memory[d][rx].verdict == v ? rx : tx].value;
	case MR_PROOF_WINDOW:
		return p->window[d][p->window[d][rx].verdict == v ? rx : tx].value;
	case MR_PROOF_COUNTERS:
		for (uint32_t k = 0; k < s->plan->ports_count && v == MR_FAIL; k++)
			for (uint32_t n = 0; n < 2 && mr_setup_proof_port(l, k); n++) {
				const struct mr_proof *c =
					n == 0 ? &p->traffic[k] : &p->attached[k];

				if (c->verdict == MR_FAIL)
					return c->value;
			}
		return p->counters[d].value;
	case MR_PROOF_READBACK:
		for (uint32_t k = 0; k < s->plan->ports_count; k++)
			if (mr_setup_proof_port(l, k) &&
				mr_setup_proof_readback(s, l, k, &value) == v)
				return value;
		return "";
	case MR_PROOF_WATCH:
		return p->watch[i].value;
	default:
		return "";
	}
}

static bool stops(const struct mr_setup *s, uint32_t i)
{
	return s->plan->alarm == MR_ALARM_STOP ||
		(s->plan->alarm == MR_ALARM_AUTO && is_direct(lane_of(s, i)));
}

void mr_setup_proof_tell(struct mr_setup *s, uint32_t i, struct mr_proof *ret_proof)
{
	const struct mr_plan_lane *l = lane_of(s, i);
	const char *path = mr_path_name(mr_plan_lane_path(l));
	enum mr_check_verdict v;
	enum mr_proof_kind why;

	*ret_proof = (struct mr_proof){0};
	if (!mr_setup_proof_lane(s, i, &why, &v))
		mr_proof_set(ret_proof, v == MR_FAIL ? MR_FAIL : MR_UNKNOWN,
			"lane '%s' is unproven as %s: %s: %s", l->name, path,
			mr_proof_kind_name(why), words(s, i, why, v));
	else if (worst_readback(s, l) == MR_PASS)
		mr_proof_set(ret_proof, MR_PASS, "lane '%s' is %s: readback: %s", l->name, path,
			words(s, i, MR_PROOF_READBACK, MR_PASS));
	else
		mr_proof_set(ret_proof,
			worst(s, l, MR_PROOF_WINDOW, i) == MR_PASS ? MR_PASS : MR_UNKNOWN,
			"lane '%s' is %s: window: %s; readback %s", l->name, path,
			words(s, i, MR_PROOF_WINDOW, worst(s, l, MR_PROOF_WINDOW, i)),
			words(s, i, MR_PROOF_READBACK, worst_readback(s, l)));
}

/* Evidence against a path is enough to stop; evidence that is missing is not. */
int mr_setup_proof_judge(struct mr_setup *s, struct mr_err *err)
{
	for (uint32_t i = 0; i < s->plan->lanes_count; i++) {
		enum mr_check_verdict v;
		enum mr_proof_kind why;

		if (mr_setup_proof_lane(s, i, &why, &v) || v != MR_FAIL || !stops(s, i))
			continue;
		return mr_err_set(err, -EIO,
			"lane '%s': path %s is not what it seems: %s: %s; 'proof: {alarm: go_on}' "
			"lets it run as unproven",
			lane_of(s, i)->name, mr_path_name(mr_plan_lane_path(lane_of(s, i))),
			mr_proof_kind_name(why), words(s, i, why, v));
	}
	return 0;
}

int mr_setup_proof_up(struct mr_setup *s, struct mr_err *err)
{
	for (uint32_t i = 0; i < s->plan->devices_count; i++)
		for (uint32_t k = 0; k < MR_PATH_COUNT; k++) {
			int rc = s->devices[i].region[k].addr == NULL ? 0
								      : prove_region(s, i, k, err);

			if (rc < 0)
				return rc;
		}
	prove_counters(s);
	count_buffers(s);
	return mr_setup_proof_judge(s, err);
}

/* Once for each lane: what comes later does not make it worse. */
static void alarm_lane(struct mr_setup *s, uint32_t i, const char *sentence)
{
	struct mr_setup_proof *p = &s->proof;

	if (mr_load_relaxed(&p->alarmed[i]) != 0)
		return;
	mr_proof_set(&p->watch[i], MR_FAIL, "%s", sentence);
	mr_store_release(&p->alarmed[i], 1);
}

static void alarm_machine(void *ctx, const char *bdf, const char *sentence)
{
	struct mr_setup *s = ctx;

	for (uint32_t i = 0; i < s->plan->lanes_count; i++) {
		const struct mr_plan_lane *l = lane_of(s, i);
		const struct mr_plan_device *d = &s->plan->devices[l->device];
		bool mine = bdf[0] == '\0' && is_direct(l) && !d->sim;

		if (bdf[0] != '\0')
			mine = strstr(d->args, bdf) != NULL;
		for (uint32_t k = 0; bdf[0] != '\0' && k < s->plan->ports_count; k++)
			mine |= mr_setup_proof_port(l, k) &&
				strcmp(s->plan->ports[k].device, bdf) == 0;
		if (mine)
			alarm_lane(s, i, sentence);
	}
}

static void watch_sim(struct mr_setup *s, uint32_t device)
{
	uint64_t bytes, revoked;

	if (mr_gpu_peer_counts(s->devices[device].gpu, &bytes, &revoked) < 0 || revoked == 0)
		return;
	for (uint32_t i = 0; i < s->plan->lanes_count; i++)
		if (lane_of(s, i)->device == device)
			alarm_lane(s, i, "a registration of packet memory was revoked");
}

enum mr_setup_event mr_setup_proof_watch(struct mr_setup *s, uint64_t now_ns, struct mr_err *err)
{
	for (uint32_t i = 0; i < s->plan->devices_count; i++)
		if (s->plan->devices[i].sim)
			watch_sim(s, i);
	if (now_ns - s->proof.machine_ns >= MACHINE_NS) {
		s->proof.machine_ns = now_ns;
		mr_proof_watch_look(&s->proof.machine, alarm_machine, s);
	}
	for (uint32_t i = 0; i < s->plan->lanes_count; i++) {
		if (mr_load_relaxed(&s->proof.alarmed[i]) == 0 || !stops(s, i))
			continue;
		mr_err_set(err, -EIO, "lane '%s': path %s no longer holds, so it stops: %s",
			lane_of(s, i)->name, mr_path_name(mr_plan_lane_path(lane_of(s, i))),
			s->proof.watch[i].value);
		return MR_SETUP_PATH_LOST;
	}
	return MR_SETUP_OK;
}

/* Whether nothing but what the watch found is missing of the lane's proof. */
static bool held_before(struct mr_setup *s, uint32_t i)
{
	enum mr_check_verdict v;
	enum mr_proof_kind why;

	/* The watch is judged last. */
	return mr_setup_proof_lane(s, i, &why, &v) || why == MR_PROOF_WATCH;
}

void mr_setup_alarms(struct mr_setup *s, mr_setup_tell_alarm *tell, void *ctx)
{
	char sentence[512];

	for (uint32_t i = 0; i < s->plan->lanes_count; i++) {
		const struct mr_plan_lane *l = lane_of(s, i);
		const char *path = mr_path_name(mr_plan_lane_path(l));
		const char *const evidence = s->proof.watch[i].value;
		const bool ends = s->seen != MR_SETUP_OK;
		bool goes_on, held;

		if (mr_load_acquire(&s->proof.alarmed[i]) == 0 || s->proof.told[i])
			continue;
		s->proof.told[i] = true;
		held = held_before(s, i);
		goes_on = !ends && mr_load_relaxed(&s->lanes[i].lane->pub.state) != MR_LANE_HALT;
		snprintf(sentence, sizeof(sentence), "lane '%s': path %s %s%s: %s", l->name, path,
			held ? "is unproven from now on" : "was unproven and stays so",
			goes_on ? ", and the lane goes on" : "", evidence);
		tell(ctx,
			&(struct mr_setup_alarm){.lane = l->name,
				.path = held ? path : "unproven",
				.evidence = evidence,
				.sentence = sentence,
				.stops = ends});
	}
}
