/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mr_bench_run.h"

#include "mr_setup.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RING 512u          /* of the port, packets */
#define SPARE 4096u        /* buffers beside those of the slots: rings, backlog, caches */
#define ELEMENT_MAX 10240u /* bytes of a buffer, at most */
#define DRAIN_MS 2000u
#define POLL_US 500u
#define PUBLISH_HZ 10000u /* how far what is read of a lane may lie behind processor time */
#define BUSY 20u          /* a busy machine may make a run so many times as long */
#define PATIENCE_MS 3000u /* longest wait for a lane's word beyond what a run takes */

struct mr_bench_runner {
	struct mr_bench *bench;
	const struct mr_host *host;
	const uint32_t *stop;
	struct mr_setup *setup;
	struct mr_plan *plan[2]; /* the one that is up, and the next */
	uint32_t up;
	struct mr_problems *problems;
	struct mr_report_lane *report;
	uint64_t eal_mib;
	char provider[8], guard[20];
};

/* What a lane had counted, and when. */
struct mark {
	struct mr_published pub;
	uint64_t cpu_ns;
};

static uint64_t read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Processor time of the lanes and of a software device, without this thread's. */
static uint64_t lanes_cpu_ns(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID) - read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* The plan of one run; problems say why there is none. */
static int plan_run(const struct mr_bench *b, const struct mr_host *host,
	const struct mr_bench_run *run, uint64_t eal_mib, struct mr_plan *ret_plan,
	struct mr_problems *problems)
{
	const struct mr_bench_settings *set = b->set;
	struct mr_bench_cell cell = mr_bench_cell_at(set, run->cell);
	uint32_t slots = run->latency ? MR_BENCH_SLOTS_LATENCY : set->slots;
	char port_device[64], bytes[16], memory[24], name[MR_NAME_MAX];
	char minus_m[] = "-m", in[] = "p", gpu[] = "g", lane_name[] = "bench", use[] = "checksum",
	     key[] = "bytes";
	char *eal_args[] = {minus_m, memory};
	struct mr_config_param param = {.key = key, .value = bytes};
	struct mr_config_stage stage = {0, use, &param, 1};
	struct mr_config_queue tx = {in, 0};
	struct mr_config_device device = {0, gpu, (char *)(uintptr_t)set->device,
		MR_ALIGN_UP(((slots + 2ull) * cell.batch + SPARE) * ELEMENT_MAX, 1ull << 20)};
	struct mr_config_port port = {.name = in,
		.device = port_device,
		.mtu = cell.size > 74 ? cell.size - 14 : 60,
		.rx_ring = RING,
		.tx_ring = RING};
	struct mr_config_lane lane = {.name = lane_name,
		.rx = tx,
		.tx = &tx,
		.tx_count = 1,
		.core = set->core,
		.device = gpu,
		.path = {run->path},
		.path_count = 1,
		.batch_packets = cell.batch,
		.batch_timeout_us = 1000,
		.slots = slots,
		.workers = 1,
		.overload = MR_OVERLOAD_BLOCK,
		.tx_timeout_us = 1000,
		.stages = &stage,
		.stages_count = 1};
	struct mr_config cfg = {.hugepages = MR_HUGEPAGES_OFF,
		.eal_args = eal_args,
		.eal_args_count = eal_mib != 0 ? 2 : 0,
		.devices = &device,
		.devices_count = 1,
		.ports = &port,
		.ports_count = 1,
		.lanes = &lane,
		.lanes_count = 1,
		.drain_ms = DRAIN_MS,
		.host_timeout_ms = 5000,
		.driver_ms = 60000,
		.log_level = 1};

	int rc;

	snprintf(port_device, sizeof(port_device), "net_null0,size=%u,copy=0", cell.size);
	snprintf(bytes, sizeof(bytes), "%u", cell.touched_bytes);
	snprintf(memory, sizeof(memory), "%llu", (unsigned long long)eal_mib);
	snprintf(name, sizeof(name), "bench-%d", (int)getpid());
	problems->count = 0;
	rc = mr_plan_build(&cfg, host, name, ret_plan, problems);
	ret_plan->publish_hz = PUBLISH_HZ;
	return rc;
}

static int refused(const struct mr_problems *p, struct mr_err *err)
{
	return mr_err_set(err, -EINVAL, "%s%s%s", p->p[0].message,
		p->p[0].hint[0] != '\0' ? "; " : "", p->p[0].hint);
}

int mr_bench_probe(struct mr_bench *b, const struct mr_host *host, struct mr_err *err)
{
	struct mr_problems *problems = calloc(1, sizeof(*problems));
	struct mr_plan *plan = malloc(sizeof(*plan));
	uint32_t left = 0;
	int rc = problems == NULL || plan == NULL ? mr_err_set(err, -ENOMEM, "out of memory") : 0;

	for (uint32_t p = 0; rc == 0 && p < b->set->paths_count; p++) {
		struct mr_bench_run run = {0, b->set->paths[p], false};
		struct mr_err why;

		if (plan_run(b, host, &run, 0, plan, problems) == 0) {
			left++;
			continue;
		}
		(void)refused(problems, &why);
		snprintf(b->reason[run.path], sizeof(b->reason[0]), "%.500s", why.msg);
	}
	if (rc == 0 && left == 0)
		rc = mr_err_set(err, -ENOENT, "no path can be measured: %s: %s",
			mr_path_name(b->set->paths[0]), b->reason[b->set->paths[0]]);
	free(problems);
	free(plan);
	return rc;
}

/* EAL starts once, so with what the largest run takes; the first run that can be planned. */
static int largest(struct mr_bench_runner *r, struct mr_bench_run *ret_first, struct mr_err *err)
{
	struct mr_bench *b = r->bench;
	bool found = false;

	for (uint32_t c = b->cells; c-- > 0;)
		for (uint32_t p = 0; p < b->set->paths_count; p++) {
			struct mr_bench_run run = {c, b->set->paths[p], false};

			if (b->reason[run.path][0] != '\0' ||
				plan_run(b, r->host, &run, 0, r->plan[0], r->problems) < 0)
				continue;
			if (r->plan[0]->eal_memory_mib > r->eal_mib)
				r->eal_mib = r->plan[0]->eal_memory_mib;
			*ret_first = run;
			found = true;
		}
	return found ? 0 : refused(r->problems, err);
}

/* Waits for a lane's word at or after a time; the device is watched meanwhile. */
static int take_mark(struct mr_bench_runner *r, uint64_t not_before_ns, struct mark *ret_mark,
	struct mr_err *err)
{
	const struct mr_report_source *source = mr_setup_source(r->setup);
	uint64_t give_up = mr_clock_ns() + PATIENCE_MS * 1000000ull, seen = 0;

	if (give_up < not_before_ns + PATIENCE_MS * 1000000ull)
		give_up = not_before_ns + PATIENCE_MS * 1000000ull;
	for (;;) {
		uint64_t now = mr_clock_ns();

		if (mr_load_relaxed(r->stop) != 0)
			return mr_err_set(err, -ECANCELED, "told to stop");
		if (mr_setup_watch(r->setup, err) != MR_SETUP_OK)
			return -ENODEV;
		if (now < not_before_ns) {
			uint64_t left_us = (not_before_ns - now) / 1000 + 1;

			usleep(left_us < MR_SETUP_WATCH_MS * 1000 ? (useconds_t)left_us
								  : MR_SETUP_WATCH_MS * 1000);
			continue;
		}
		source->lane(source->ctx, 0, r->report);
		ret_mark->cpu_ns = lanes_cpu_ns();
		ret_mark->pub = r->report->pub;
		if (seen != 0 && ret_mark->pub.beat_ns != seen)
			return 0;
		seen = ret_mark->pub.beat_ns;
		if (now >= give_up)
			return mr_err_set(
				err, -EIO, "the lane said nothing for %u ms", PATIENCE_MS);
		usleep(POLL_US);
	}
}

static int fill_sample(const struct mr_bench_settings *set, const struct mr_bench_run *run,
	const struct mark *a, const struct mark *b, struct mr_bench_sample *sample,
	struct mr_err *err)
{
	const uint64_t *from = a->pub.counters.c, *to = b->pub.counters.c;
	double packets = (double)(to[MR_C_tx_packets] - from[MR_C_tx_packets]);
	double wall_s = (double)(b->pub.beat_ns - a->pub.beat_ns) / 1e9;
	double cpu_s = ((double)b->cpu_ns - (double)a->cpu_ns) / 1e9;
	uint64_t dropped = mr_counters_dropped(&b->pub.counters);

	if (dropped != 0)
		return mr_err_set(
			err, -EIO, "%llu packets were dropped", (unsigned long long)dropped);
	if (packets <= 0 || wall_s <= 0 || cpu_s <= 0)
		return mr_err_set(err, -EIO, "no packet moved");
	if (!run->latency) {
		double rate = packets / (set->clock == MR_BENCH_CPU ? cpu_s : wall_s);

		/* What else the machine does only ever makes a window slower. */
		if (!sample->rated || rate > sample->rate) {
			sample->wall_rate = packets / wall_s;
			sample->rate = rate;
		}
		sample->rated = true;
	} else {
		static struct mr_hist h; /* large */

		h = b->pub.latency;
		h.count -= a->pub.latency.count;
		for (uint32_t i = 0; i < MR_HIST_BUCKETS; i++)
			h.bucket[i] -= a->pub.latency.bucket[i];
		if (h.count == 0)
			return mr_err_set(err, -EIO, "no packet was timed");
		sample->p50_ns = (double)mr_hist_quantile(&h, 500000);
		sample->p99_ns = (double)mr_hist_quantile(&h, 990000);
		sample->timed = true;
	}
	return 0;
}

/* The first word at which so many packets went, and a time was up; the last one is patience's. */
static int take_when(struct mr_bench_runner *r, const struct mark *from, uint64_t ns,
	uint64_t packets, struct mark *ret_mark, struct mr_err *err)
{
	bool by_cpu = r->bench->set->clock == MR_BENCH_CPU;
	uint64_t start = mr_clock_ns();
	int rc = take_mark(r, start + ns, ret_mark, err);

	while (rc == 0) {
		uint64_t late = mr_clock_ns() - start;
		uint64_t went = ret_mark->pub.counters.c[MR_C_tx_packets] -
			from->pub.counters.c[MR_C_tx_packets];
		bool worked = !by_cpu || ret_mark->cpu_ns - from->cpu_ns >= ns || late > BUSY * ns;

		if ((went >= packets && worked) || late > ns + PATIENCE_MS * 1000000ull)
			break;
		rc = take_mark(r, 0, ret_mark, err);
	}
	return rc;
}

/*
 * The lane is up. Until each of its buffers was there twice, and then for as long as a run is: a
 * rate in windows of which the best counts, a latency in one.
 */
static int measure(struct mr_bench_runner *r, const struct mr_bench_run *run,
	struct mr_bench_sample *sample, struct mr_err *err)
{
	static struct mark up, mark[2]; /* large */
	const struct mr_plan_lane *l = &r->plan[r->up]->lanes[0];
	uint64_t run_ns = r->bench->set->run_ms * 1000000ull;
	uint32_t windows = run->latency ? 1 : MR_BENCH_WINDOWS;
	int rc;

	memset(&up, 0, sizeof(up));
	up.cpu_ns = lanes_cpu_ns();
	rc = take_when(r, &up, run_ns / 4, 2ull * l->buffers, &mark[0], err);
	for (uint32_t i = 0; rc == 0 && i < windows; i++) {
		const struct mark *from = &mark[i % 2];
		struct mark *to = &mark[1 - i % 2];

		rc = take_when(r, from, run_ns / windows, 2ull * l->slots * l->batch, to, err);
		if (rc == 0)
			rc = fill_sample(r->bench->set, run, from, to, sample, err);
	}
	if (rc != 0)
		*(run->latency ? &sample->timed : &sample->rated) = false;
	return rc;
}

/* Threads inherit the processors of their maker, so it goes to one while they are made. */
static int bring_up(struct mr_bench_runner *r, struct mr_err *err)
{
	bool one = r->bench->set->clock == MR_BENCH_CPU;
	cpu_set_t all, here;
	int cpu = sched_getcpu(), rc;

	one &= cpu >= 0 && sched_getaffinity(0, sizeof(all), &all) == 0;
	if (one) {
		CPU_ZERO(&here);
		CPU_SET((size_t)cpu, &here);
		one = sched_setaffinity(0, sizeof(here), &here) == 0;
	}
	rc = mr_setup_again(r->setup, r->plan[1 - r->up], err);
	if (one && sched_setaffinity(0, sizeof(all), &all) != 0 && rc == 0)
		rc = mr_err_set(err, -errno, "sched_setaffinity: %s", strerror(errno));
	r->up = 1 - r->up; /* also one that failed is the setup's now */
	return rc;
}

/* Codes that mean something to the caller are kept for that. */
static int this_one_only(int rc)
{
	return rc == -ECANCELED || rc == -ENODEV || rc == -ETIMEDOUT ? -EIO : rc;
}

/* Of the whole run: between two words, packets that were copied one way only would count. */
static double copied_per_packet(struct mr_bench_runner *r)
{
	const struct mr_report_source *source = mr_setup_source(r->setup);
	const uint64_t *c = r->report->pub.counters.c;

	source->lane(source->ctx, 0, r->report);
	return (double)c[MR_C_host_bytes_copied] / (double)c[MR_C_tx_packets];
}

int mr_bench_run_one(struct mr_bench_runner *r, const struct mr_bench_run *run, uint32_t round,
	struct mr_err *err)
{
	struct mr_bench_sample *sample = mr_bench_sample_at(r->bench, run->cell, run->path, round);
	struct mr_err why;
	int rc, stopped;

	if (plan_run(r->bench, r->host, run, r->eal_mib, r->plan[1 - r->up], r->problems) < 0)
		return this_one_only(refused(r->problems, err));
	rc = bring_up(r, err);
	if (rc < 0)
		return rc == -ETIMEDOUT ? rc : this_one_only(rc);
	rc = measure(r, run, sample, err);
	stopped = mr_setup_stop(r->setup, DRAIN_MS, r->stop, rc == -ENODEV, NULL, &why);
	if (stopped == -ETIME) {
		*err = why;
		return -ETIMEDOUT;
	}
	if (rc == 0 && !run->latency)
		sample->copied = copied_per_packet(r);
	if (rc == 0 && stopped < 0 && mr_load_relaxed(r->stop) == 0) {
		*(run->latency ? &sample->timed : &sample->rated) = false;
		*err = why;
		return -EIO;
	}
	return rc;
}

static int start(struct mr_bench_runner *r, struct mr_err *err)
{
	struct mr_bench_run first;
	const struct mr_report_source *source;
	struct mr_report_device device;
	int rc = largest(r, &first, err);

	if (rc == 0 && plan_run(r->bench, r->host, &first, r->eal_mib, r->plan[0], r->problems) < 0)
		rc = refused(r->problems, err);
	if (rc < 0)
		return rc;
	rc = mr_setup_up(r->plan[0], NULL, NULL, &r->setup, err);
	if (rc < 0)
		return rc;
	source = mr_setup_source(r->setup);
	source->device(source->ctx, 0, &device);
	source->lane(source->ctx, 0, r->report);
	snprintf(r->provider, sizeof(r->provider), "%s", device.provider);
	snprintf(r->guard, sizeof(r->guard), "%s", r->report->guard);
	rc = mr_setup_stop(r->setup, DRAIN_MS, r->stop, false, NULL, err);
	return rc == -ETIME ? -ETIMEDOUT : 0;
}

int mr_bench_open(struct mr_bench *b, const struct mr_host *host, const uint32_t *stop,
	struct mr_bench_runner **ret_runner, struct mr_err *err)
{
	struct mr_bench_runner *r = calloc(1, sizeof(*r));
	int rc;

	if (r == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory");
	r->bench = b;
	r->host = host;
	r->stop = stop;
	r->plan[0] = malloc(sizeof(*r->plan[0]));
	r->plan[1] = malloc(sizeof(*r->plan[1]));
	r->problems = calloc(1, sizeof(*r->problems));
	r->report = malloc(sizeof(*r->report));
	if (r->plan[0] == NULL || r->plan[1] == NULL || r->problems == NULL || r->report == NULL)
		rc = mr_err_set(err, -ENOMEM, "out of memory");
	else
		rc = start(r, err);
	if (rc == 0)
		*ret_runner = r;
	else if (rc != -ETIMEDOUT) /* which leaves all as it is, to the process's end */
		(void)mr_bench_close(r, NULL);
	return rc;
}

int mr_bench_close(struct mr_bench_runner *r, struct mr_err *err)
{
	int rc;

	if (r == NULL)
		return 0;
	rc = r->setup != NULL ? mr_setup_down(r->setup, err) : 0;
	if (rc == -ETIMEDOUT)
		return rc;
	free(r->plan[0]);
	free(r->plan[1]);
	free(r->problems);
	free(r->report);
	free(r);
	return rc;
}

const char *mr_bench_provider(const struct mr_bench_runner *r)
{
	return r->provider;
}

const char *mr_bench_guard(const struct mr_bench_runner *r)
{
	return r->guard;
}
