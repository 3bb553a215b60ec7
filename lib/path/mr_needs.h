/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_needs - what is asked of a machine.
 *
 * Made of a plan, or, without a configuration, of the question whether a direct
 * lane could run here: then the best pair of GPU and NIC is what is needed.
 *
 * Thread   any.
 */
#ifndef MR_NEEDS_H
#define MR_NEEDS_H

#include "mr_facts_topology.h"

#define MR_NEEDS_LANES_MAX 64u
#define MR_NEEDS_DEVICES_MAX 32u

struct mr_needs_lane {
	char name[MR_NAME_MAX];
	int32_t core;      /* -1: any */
	uint32_t gpu, nic; /* indices into the facts, or MR_FACTS_NONE */
	bool direct;       /* packets in the memory of a real GPU */
	uint32_t buffers, rx_ring, batch;
};

struct mr_needs_gpu {
	char bdf[MR_BDF_MAX];
	uint32_t gpu; /* MR_FACTS_NONE: not on this machine */
	bool direct;  /* packets lie in it, and a NIC reaches them there */
	uint64_t direct_bytes;
};

struct mr_needs_nic {
	char bdf[MR_BDF_MAX];
	uint32_t nic;
	bool direct;
	uint32_t mtu;   /* 0: any */
	char args[512]; /* driver options */
};

struct mr_needs_pair {
	uint32_t gpu, nic; /* of the facts; MR_FACTS_NONE: not on this machine */
};

struct mr_needs {
	bool configured;
	bool running; /* an instance of this name runs already */
	char name[MR_NAME_MAX];
	char runtime[256];        /* folder in which DPDK makes its sockets; "" unknown */
	bool runtime_open;        /* anybody may replace what lies there */
	bool hugepages;           /* the plan takes hugepages */
	uint64_t hugepages_bytes; /* on each NIC's node, or anywhere without a NIC */
	uint64_t locked_bytes;    /* host memory that is registered */
	struct mr_needs_lane lanes[MR_NEEDS_LANES_MAX];
	uint32_t lanes_count;
	struct mr_needs_gpu gpus[MR_NEEDS_DEVICES_MAX];
	uint32_t gpus_count;
	struct mr_needs_nic nics[MR_NEEDS_DEVICES_MAX];
	uint32_t nics_count;
	struct mr_needs_pair pairs[MR_NEEDS_LANES_MAX * 2];
	uint32_t pairs_count;
};

/* The general question: fills *ret_needs with the best pair that the machine has. */
void mr_needs_general(const struct mr_host_facts *f, const struct mr_facts_topology *t,
	struct mr_needs *ret_needs);

/* mr_needs_probe asks the libraries about the devices and pairs that are needed. */
void mr_needs_probe(
	const struct mr_needs *n, const struct mr_probe *probe, struct mr_host_facts *f);

#endif
