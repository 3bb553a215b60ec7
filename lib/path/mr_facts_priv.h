/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_facts_priv - what the parts of the reader share.
 *
 * Each part reads its corner of the machine into the facts; what it cannot read
 * leaves a state other than MR_FACT_KNOWN behind and is no error.
 */
#ifndef MR_FACTS_PRIV_H
#define MR_FACTS_PRIV_H

#include "mr_facts.h"

enum mr_fact_state mr_facts_state_of(int rc);

/* A file of one line; bytes that are not printable ASCII make it STRANGE. */
void mr_facts_text_at(struct mr_root *r, const char *path, struct mr_fact_text *ret);
void mr_facts_u64_at(struct mr_root *r, const char *path, struct mr_fact_u64 *ret);
void mr_facts_hex_at(struct mr_root *r, const char *path, struct mr_fact_u64 *ret);
void mr_facts_i64_at(struct mr_root *r, const char *path, struct mr_fact_i64 *ret);
/* The last name of the path that a link leads to. */
void mr_facts_link_at(struct mr_root *r, const char *path, struct mr_fact_text *ret);
/* The first name of a folder, in sorted order. */
void mr_facts_first_in(struct mr_root *r, const char *path, struct mr_fact_text *ret);

void mr_facts_kernel(struct mr_root *r, struct mr_host_facts *f);
void mr_facts_process(struct mr_root *r, struct mr_host_facts *f);
void mr_facts_modules(struct mr_root *r, struct mr_host_facts *f);
void mr_facts_cpus(struct mr_root *r, struct mr_host_facts *f);
void mr_facts_nodes(struct mr_root *r, struct mr_host_facts *f);
void mr_facts_hugetlbfs(struct mr_root *r, const struct mr_probe *p, struct mr_host_facts *f);
void mr_facts_pci(struct mr_root *r, struct mr_host_facts *f);
void mr_facts_devices(struct mr_root *r, struct mr_host_facts *f);
/* After the devices: what the kernel says is told apart by their addresses. */
void mr_facts_log(struct mr_root *r, struct mr_host_facts *f);

/* The counters that must stand still: the sum of AER's fatal and nonfatal errors. */
void mr_facts_aer(struct mr_root *r, const char *folder, struct mr_facts_pci *p);
/* sys/bus/pci/devices/BDF */
void mr_facts_pci_path(const struct mr_facts_pci *p, char ret_path[MR_ROOT_PATH_MAX]);

#endif
