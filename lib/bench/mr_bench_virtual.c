/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_bench_virtual.h"

#include "mr_bench_stats.h"

#include <math.h>
#include <string.h>

#define TLP_BYTES 256.0 /* most data in one TLP */
#define WRITE_BYTES 24.0
#define COMPLETION_BYTES 20.0
#define LINE_BYTES 128.0
#define WIRE_BYTES 24.0 /* check sequence, preamble and gap */
#define BATCHES 256u    /* measured, behind as many that are not */
#define SLOTS_MAX 256u

/* PCIe 4.0 x16 and 100 Gb/s but for the last, which is of PCIe 3.0. */
#define COMMON                                                                                     \
	.wire_rate = 12.5, .copy_cpu_ns = 4000, .copy_latency_ns = 1800, .gather_rate = 10,        \
	.gather_packet_ns = 5, .round_trip_ns = 1200, .outstanding = 65536, .push_ns = 600,        \
	.done_ns = 500, .core_batch_ns = 300, .core_packet_ns = 25, .kernel_batch_ns = 500,        \
	.kernel_packet_ns = 2, .kernel_rate = 500

static const struct mr_bench_machine machines[] = {
	{.name = "switch",
		.help = "NIC and GPU below one PCIe switch: the direct way is as wide as any",
		.link_rate = 28.4,
		.host_rate = 23,
		.p2p_write_rate = 23,
		.p2p_read_rate = 23,
		.copy_rate = 23,
		COMMON},
	{.name = "sockets",
		.help = "GPU beyond another socket: 11 GB/s to it, 23 to host memory",
		.link_rate = 28.4,
		.host_rate = 23,
		.p2p_write_rate = 11,
		.p2p_read_rate = 11,
		.copy_rate = 23,
		COMMON},
	{.name = "old",
		.help = "reads from GPU memory at 3.4 GB/s through the host bridge, 6 to host "
			"memory",
		.link_rate = 14.2,
		.host_rate = 6,
		.p2p_write_rate = 6,
		.p2p_read_rate = 3.4,
		.copy_rate = 6,
		COMMON},
};

const struct mr_bench_machine *mr_bench_machine_at(uint32_t i)
{
	return i < sizeof(machines) / sizeof(machines[0]) ? &machines[i] : NULL;
}

double mr_bench_pcie_write(double n)
{
	return n + WRITE_BYTES * ceil(n / TLP_BYTES);
}

double mr_bench_pcie_read(double n)
{
	return n + COMPLETION_BYTES * ceil(n / TLP_BYTES);
}

double mr_bench_pcie_lines(double n)
{
	return ceil(n / LINE_BYTES) * (LINE_BYTES + COMPLETION_BYTES);
}

enum server {
	WIRE,
	NIC_IN,
	CORE,
	COPY_IN,
	KERNEL,
	COPY_OUT,
	NIC_OUT,
	SERVERS,
};

struct step {
	enum server server;
	double ns;    /* the server is taken for so long */
	double delay; /* and then the job is away for so long */
	bool receive; /* its start is what latency counts from */
	bool send;    /* its end is what latency counts to */
};

#define STEPS_MAX 9u

static double slower(double a, double b)
{
	return a > b ? a : b;
}

/* A rate of data and a link's of all bytes: whichever takes longer. */
static double nic(const struct mr_bench_machine *m, double data, double link, double rate)
{
	return slower(link / m->link_rate, data / rate);
}

static double kernel_ns(const struct mr_bench_machine *m, const struct mr_bench_load *l)
{
	double n = l->batch;
	double ns = m->kernel_batch_ns + n * (m->kernel_packet_ns + l->touched / m->kernel_rate);
	double lines = n * ceil(l->touched / LINE_BYTES) * LINE_BYTES;

	if (l->path != MR_PATH_PINNED)
		return ns;
	return m->kernel_batch_ns + m->round_trip_ns +
		slower(ns - m->kernel_batch_ns,
			slower(n * mr_bench_pcie_lines(l->touched) / m->link_rate,
				lines / (m->outstanding / m->round_trip_ns)));
}

static uint32_t build(const struct mr_bench_machine *m, const struct mr_bench_load *l,
	struct step steps[STEPS_MAX])
{
	double n = l->batch, bytes = n * l->size;
	bool direct = l->path == MR_PATH_DIRECT, staged = l->path == MR_PATH_STAGED;
	double core = m->core_batch_ns / 2 + n * m->core_packet_ns / 2;
	double gather = n * m->gather_packet_ns + bytes / m->gather_rate + m->copy_cpu_ns;
	uint32_t s = 0;

	steps[s++] = (struct step){WIRE, (bytes + n * WIRE_BYTES) / m->wire_rate, 0, false, false};
	steps[s++] = (struct step){NIC_IN,
		nic(m, bytes, n * mr_bench_pcie_write(l->size),
			direct ? m->p2p_write_rate : m->host_rate),
		0, false, false};
	steps[s++] = (struct step){
		CORE, core + (staged ? gather : 0), staged ? 0 : m->push_ns, true, false};
	if (staged)
		steps[s++] = (struct step){COPY_IN,
			nic(m, bytes, mr_bench_pcie_read(bytes), m->copy_rate), m->copy_latency_ns,
			false, false};
	steps[s++] = (struct step){KERNEL, kernel_ns(m, l), staged ? 0 : m->done_ns, false, false};
	if (staged)
		steps[s++] = (struct step){COPY_OUT,
			nic(m, bytes, mr_bench_pcie_write(bytes), m->copy_rate), m->copy_latency_ns,
			false, false};
	steps[s++] = (struct step){CORE, core + (staged ? gather : 0), 0, false, true};
	steps[s++] = (struct step){NIC_OUT,
		nic(m, bytes, n * mr_bench_pcie_read(l->size),
			direct ? m->p2p_read_rate : m->host_rate),
		direct ? m->round_trip_ns : 0, false, false};
	return s;
}

struct job {
	uint32_t step;
	double ready;
	double received;
};

/* The job that can start first, the older one of two. */
static uint32_t next(const struct job *jobs, uint32_t slots, const struct step *steps,
	const double free_at[SERVERS], double *ret_start)
{
	uint32_t best = 0;

	*ret_start = INFINITY;
	for (uint32_t i = 0; i < slots; i++) {
		double start = slower(jobs[i].ready, free_at[steps[jobs[i].step].server]);

		if (start > *ret_start ||
			(start == *ret_start && jobs[i].ready >= jobs[best].ready))
			continue;
		*ret_start = start;
		best = i;
	}
	return best;
}

struct mr_bench_lane mr_bench_virtual_run(
	const struct mr_bench_machine *m, const struct mr_bench_load *load)
{
	struct step steps[STEPS_MAX];
	uint32_t count = build(m, load, steps), done = 0;
	uint32_t slots = load->slots < SLOTS_MAX ? load->slots : SLOTS_MAX;
	struct job jobs[SLOTS_MAX] = {0};
	double free_at[SERVERS] = {0}, latency[BATCHES], begun = 0, ended = 0;
	double bytes = load->path == MR_PATH_STAGED ? 2.0 * load->size : 0;

	while (done < 2 * BATCHES) {
		double start;
		struct job *j = &jobs[next(jobs, slots, steps, free_at, &start)];
		const struct step *s = &steps[j->step];

		free_at[s->server] = start + s->ns;
		if (s->receive)
			j->received = start;
		j->ready = start + s->ns + s->delay;
		if (s->send && done >= BATCHES)
			latency[done - BATCHES] = start + s->ns - j->received;
		if (s->send && done++ == BATCHES)
			begun = start + s->ns;
		ended = s->send ? start + s->ns : ended;
		j->step = j->step + 1 < count ? j->step + 1 : 0;
	}
	return (struct mr_bench_lane){
		.rate = (BATCHES - 1) * (double)load->batch / (ended - begun) * 1e9,
		.p50_ns = mr_bench_percentile(latency, BATCHES, 0.5),
		.p99_ns = mr_bench_percentile(latency, BATCHES, 0.99),
		.copied = bytes};
}
