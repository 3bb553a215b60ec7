/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_bench_virtual - a lane in virtual time, over a model of PCIe.
 *
 * No packet moves: a batch is a job that passes a row of servers, each of which serves
 * one batch at a time; a slot is taken from the first server to the last, and a lane has
 * so many slots. Which servers there are, and how long each takes, is the path:
 *
 *     direct   wire ─ NIC writes GPU ─ core ─► push ─► kernel ─► done ─► core ─ NIC reads GPU
 *     pinned   wire ─ NIC writes host ─ core ─► push ─► kernel over PCIe ─► done ─► core ─ NIC
 *     staged   wire ─ NIC writes host ─ core gathers ─ copy in ─ kernel ─ copy out ─ core
 *              scatters ─ NIC reads host
 *
 *     ─►  a delay beside the servers: it adds to the latency and holds the slot only
 *
 * PCIe. A posted write carries 24 bytes of overhead for each 256, a read's completions 20
 * for each 256; a kernel reads host memory in lines of 128 bytes, 148 on the link, and no
 * faster than its outstanding bytes allow in a round trip.
 *
 * Latency is what a lane's histogram holds: from the core's receive to the hand-over to
 * the port. Everything is deterministic: p50 and p99 are those of the batches.
 *
 * Thread   any; pure.
 * Source   pcie-bench (R. Neugebauer et al., SIGCOMM 2018) for TLP overheads at a payload
 *          of 256 bytes; UCX for what an asynchronous copy costs the CPU (4 us) and its
 *          latency (1.8 us); NVIDIA gdrcopy's README for flags over PCIe (0.1 us to
 *          write, about 1 us there and back); perftest issue 241 (an A30 beyond the socket:
 *          11 GB/s, host memory 23) and the P2P reads of the Ivy Bridge generation (3.4
 *          and 6 GB/s) for the machines. The core's and the kernel's costs are assumed.
 */
#ifndef MR_BENCH_VIRTUAL_H
#define MR_BENCH_VIRTUAL_H

#include "mr_config.h"

/* Times in ns; rates in bytes per ns, which is GB/s. */
struct mr_bench_machine {
	const char *name;
	const char *help;
	double wire_rate;        /* of the port */
	double link_rate;        /* of a PCIe link, below its TLPs */
	double host_rate;        /* NIC to and from host memory, data */
	double p2p_write_rate;   /* NIC to GPU memory, data */
	double p2p_read_rate;    /* GPU memory to NIC, data */
	double copy_rate;        /* copy engine, each direction, data */
	double copy_cpu_ns;      /* one copy call, on the core */
	double copy_latency_ns;  /* beside the engine */
	double gather_rate;      /* memcpy on the core */
	double gather_packet_ns; /* and for each packet */
	double round_trip_ns;    /* of a read over PCIe */
	double outstanding;      /* bytes that kernels' reads may have under way */
	double push_ns, done_ns; /* a flag to the kernel, and back */
	double core_batch_ns, core_packet_ns;
	double kernel_batch_ns, kernel_packet_ns, kernel_rate;
};

/* mr_bench_machine_at gives the i-th machine, or NULL behind the last. */
const struct mr_bench_machine *mr_bench_machine_at(uint32_t i);

/* Bytes on a link for n bytes of data: written, read, and read by a kernel in lines. */
double mr_bench_pcie_write(double n);
double mr_bench_pcie_read(double n);
double mr_bench_pcie_lines(double n);

struct mr_bench_load {
	enum mr_path path;
	uint32_t size; /* bytes of a frame without its check sequence */
	uint32_t batch, slots;
	uint32_t touched; /* bytes of it that the kernel reads */
};

struct mr_bench_lane {
	double rate; /* packets per second */
	double p50_ns, p99_ns;
	double copied; /* host bytes copied per packet */
};

/* mr_bench_virtual_run plays a saturated lane until it is steady, and then measures it. */
struct mr_bench_lane mr_bench_virtual_run(
	const struct mr_bench_machine *m, const struct mr_bench_load *load);

#endif
