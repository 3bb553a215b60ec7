/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_probe_aside - questions from a process that may not fork.
 *
 *     open ─► a child that waits ─► ask, a question and its answer ─► close, it ends
 *
 * A fork shares pages until one side writes them, and what a NIC writes then goes to the copy
 * that the other side does not see (ibv_fork_init(3)). So the child is made before a NIC
 * knows of any memory, and later asks in the place of its parent, as mr_probe_live does. It
 * ends when its parent closes it or is no more.
 *
 * Thread   one at a time.
 */
#ifndef MR_PROBE_ASIDE_H
#define MR_PROBE_ASIDE_H

#include "mr_err.h"
#include "mr_probe.h"

#include <sys/types.h>

struct mr_probe_aside {
	pid_t pid; /* 0: not open */
	int fd;    /* -1: it did not answer once, and is not asked again */
	uint32_t wait_ms;
};

/* On failure it is not open. */
int mr_probe_aside_open(struct mr_probe_aside *a, uint32_t wait_ms, struct mr_err *err);

/* The ask of a struct mr_probe; ctx is the struct mr_probe_aside. -ENOTSUP: not open. */
int mr_probe_aside_ask(void *ctx, const char *question, char text[MR_PROBE_TEXT_MAX]);

void mr_probe_aside_close(struct mr_probe_aside *a);

#endif
