/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_host - what this machine is, as the plan and the paths need it.
 *
 * The facts are gathered once by mr_host_read() and are constant afterwards; a
 * test fills the structure by hand. Everything is read below root, so a whole
 * machine can be replayed from a folder. It is the part of mr_facts.h that a plan
 * needs.
 *
 * Thread   the control thread.
 * Source   sysfs-devices-system-cpu (kernel ABI), proc(5), hugetlbpage.rst
 */
#ifndef MR_HOST_H
#define MR_HOST_H

#include "mr_err.h"

#include <stdbool.h>

#define MR_CPUS_MAX 1024u
#define MR_HOST_LANES_MAX 64u
#define MR_HOST_WHY_MAX 256u

struct mr_host_facts;

struct mr_host {
	bool known;    /* false: --no-host, nothing below may be judged by */
	uint32_t cpus; /* highest possible cpu number + 1 */
	bool cpu_online[MR_CPUS_MAX];
	bool cpu_allowed[MR_CPUS_MAX]; /* this process's affinity (cpuset) */
	uint64_t hugepage_bytes;       /* default hugepage size, 0: none */
	uint64_t hugepages_free;       /* number of free ones of that size */
	uint64_t memory_bytes;         /* MemAvailable */
	bool protection_keys;
	/* All that was read of the machine (mr_facts.h), this among it; NULL: only this. */
	const struct mr_host_facts *facts;
	/* False: the machine has such a list and it could not be read, so the widest was taken. */
	bool online_told, allowed_told;
	/*
	 * Why this machine keeps a lane from being direct, by the lane's place in the
	 * configuration; "" nothing does. Who judges a plan writes it, and plans again.
	 */
	char no_direct[MR_HOST_LANES_MAX][MR_HOST_WHY_MAX];
	/* The same of what was not asked yet and may turn out to keep it: names of checks. */
	char unasked[MR_HOST_LANES_MAX][MR_HOST_WHY_MAX];
};

struct mr_root;

/* mr_host_read fills *ret_host from below root ("/" for this machine). */
MR_MUST_USE int mr_host_read(const char *root, struct mr_host *ret_host, struct mr_err *err);

/* The same from a root that is open. */
MR_MUST_USE int mr_host_read_root(
	struct mr_root *root, struct mr_host *ret_host, struct mr_err *err);

#endif
