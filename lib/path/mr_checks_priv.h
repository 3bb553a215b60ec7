/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_checks_priv - what the checks share: how a finding grows, and what is needed. */
#ifndef MR_CHECKS_PRIV_H
#define MR_CHECKS_PRIV_H

#include "mr_checks.h"

#define MR_CHECK(number, function, id, title, scope, gating)                                       \
	void mr_check_##function(const struct mr_check_in *in, struct mr_finding *f);
#include "mr_checks.def"
#undef MR_CHECK

/*
 * mr_find adds what one device or file shows: the worst verdict stays, values are
 * put one behind another. True where this is now the worst, so its hint belongs.
 */
bool mr_find(struct mr_finding *f, enum mr_check_verdict v, const char *fmt, ...) MR_PRINTF(3, 4);

/* mr_hint replaces the hint. Commands stand between backticks; a lint checks them. */
void mr_hint(struct mr_finding *f, const char *fmt, ...) MR_PRINTF(2, 3);

/* mr_find_unread says why a fact cannot be judged: UNKNOWN, or FAIL where ABSENT must not be. */
void mr_find_unread(struct mr_finding *f, enum mr_fact_state state, const char *what);

/*
 * mr_find_left_out: true where the machine has more devices than are looked at, so that one that
 * was not found may be there all the same; it is UNKNOWN then.
 */
bool mr_find_left_out(const struct mr_check_in *in, struct mr_finding *f, const char *what);

/* GPU memory is registered by dma-buf here, not by the peer-memory module. */
bool mr_check_by_dmabuf(const struct mr_check_in *in);

/* Bridges between a GPU and a NIC, their common ones left out; indices into f->pci. */
uint32_t mr_check_way(const struct mr_host_facts *f, uint32_t gpu, uint32_t nic,
	uint32_t ret_way[2 * MR_FACTS_CHAIN_MAX]);

/* A function's link against what it and the port above can; rests: the speed may be low. */
void mr_check_link_of(const struct mr_host_facts *h, const struct mr_facts_pci *p, bool rests,
	struct mr_finding *f);

/* The value of a driver option KEY=N in "a=1,b=2", or -1. */
long mr_check_option(const char *args, const char *key);

/* The IOMMU translates what this function sends. */
bool mr_check_translates(const struct mr_facts_pci *p);

/* Those of the needed devices that the machine has. */
#define MR_EACH_GPU(in, n)                                                                         \
	for (const struct mr_needs_gpu *n = (in)->needs->gpus;                                     \
		n < (in)->needs->gpus + (in)->needs->gpus_count; n++)                              \
		if (n->gpu != MR_FACTS_NONE)
#define MR_EACH_NIC(in, n)                                                                         \
	for (const struct mr_needs_nic *n = (in)->needs->nics;                                     \
		n < (in)->needs->nics + (in)->needs->nics_count; n++)                              \
		if (n->nic != MR_FACTS_NONE)
#define MR_EACH_PAIR(in, p)                                                                        \
	for (const struct mr_needs_pair *p = (in)->needs->pairs;                                   \
		p < (in)->needs->pairs + (in)->needs->pairs_count; p++)                            \
		if ((p)->gpu != MR_FACTS_NONE && (p)->nic != MR_FACTS_NONE)

#endif
