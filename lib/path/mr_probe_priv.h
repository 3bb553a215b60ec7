/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_probe_priv - the child's side of mr_probe_live: each writes "KEY VALUE" lines to fd. */
#ifndef MR_PROBE_PRIV_H
#define MR_PROBE_PRIV_H

#include "mr_root.h"

/* The first name in a folder of the NIC's: net, infiniband. */
bool mr_probe_nic_first(
	struct mr_root *root, const char *bdf, const char *folder, char ret_name[64]);

void mr_probe_say(int fd, const char *key, long long value);

void mr_probe_child_gpu(const char *bdf, int fd);
void mr_probe_child_nic(struct mr_root *root, const char *bdf, int fd);
/* GPU's and NIC's address with a '+' between them. */
void mr_probe_child_pair(struct mr_root *root, const char *bdfs, int fd);

#endif
