/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mr_guard.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int mr_guard_init(struct mr_guard *g, const char *want, struct mr_err *err)
{
	memset(g, 0, sizeof(*g));
	g->key = -1;
	pthread_mutex_init(&g->window, NULL);
	if (strcmp(want, "off") == 0)
		return 0;
	if (strcmp(want, "mprotect") == 0) {
		g->kind = MR_GUARD_MPROTECT;
		return 0;
	}
	if (strcmp(want, "auto") != 0 && strcmp(want, "pkey") != 0)
		return mr_err_set(err, -EINVAL,
			"guard '%s' is not known: use auto, pkey, mprotect or off", want);
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	/*
	 * EINVAL and ENOSPC both mean "no keys on this CPU"; the kernel does not tell.
	 * Under ThreadSanitizer the software device's kernels share the lane's addresses,
	 * which a key would close to them.
	 */
	g->key = pkey_alloc(0, 0);
	if (g->key >= 0) {
		g->kind = MR_GUARD_KEY;
		g->deny_bits = 3u << (2 * g->key);
		return 0;
	}
	if (errno != EINVAL && errno != ENOSPC)
		g->refused = errno;
#endif
	if (strcmp(want, "pkey") == 0 && g->refused != 0)
		return mr_err_set(err, -g->refused,
			"guard 'pkey': pkey_alloc: %s; a service needs SystemCallFilter=@pkey; use "
			"guard=auto or guard=mprotect",
			strerror(g->refused));
	if (strcmp(want, "pkey") == 0)
		return mr_err_set(err, -ENOTSUP,
			"guard 'pkey' needs a CPU with memory protection keys ('ospke' in "
			"/proc/cpuinfo); use guard=auto or guard=mprotect");
	return 0;
}

int mr_guard_protect(struct mr_guard *g, void *addr, size_t bytes, struct mr_err *err)
{
	int rc = 0;

	if (g->kind == MR_GUARD_NONE)
		return 0;
	if (g->ranges == MR_GUARD_RANGES)
		return mr_err_set(err, -ENOSPC, "guard holds at most %d ranges", MR_GUARD_RANGES);
	if (g->kind == MR_GUARD_KEY)
		rc = pkey_mprotect(addr, bytes, PROT_READ | PROT_WRITE, g->key);
	if (rc != 0)
		return mr_err_set(err, -errno, "pkey_mprotect of %zu bytes at %p: %s", bytes, addr,
			strerror(errno));
	g->range[g->ranges].addr = addr;
	g->range[g->ranges].bytes = bytes;
	g->ranges++;
	return 0;
}

/* A guard that cannot move must not be claimed, so a failure here is the end. */
static void set_protection(const struct mr_guard *g, int prot)
{
	for (uint32_t i = 0; i < g->ranges; i++)
		if (mprotect(g->range[i].addr, g->range[i].bytes, prot) != 0)
			__builtin_trap();
}

void mr_guard_mprotect_open(struct mr_guard *g)
{
	pthread_mutex_lock(&g->window);
	set_protection(g, PROT_READ | PROT_WRITE);
}

void mr_guard_mprotect_close(struct mr_guard *g)
{
	set_protection(g, PROT_NONE);
	pthread_mutex_unlock(&g->window);
}

void mr_guard_deny(struct mr_guard *g)
{
	if (g == NULL || g->kind == MR_GUARD_NONE)
		return;
	if (g->kind == MR_GUARD_MPROTECT)
		pthread_mutex_lock(&g->window);
	mr_guard_close(g);
}

void mr_guard_fini(struct mr_guard *g)
{
	if (g->kind == MR_GUARD_MPROTECT)
		set_protection(g, PROT_READ | PROT_WRITE);
	if (g->kind == MR_GUARD_KEY) {
		/* A freed key may be handed out again, so no page may keep it. */
		for (uint32_t i = 0; i < g->ranges; i++)
			(void)pkey_mprotect(
				g->range[i].addr, g->range[i].bytes, PROT_READ | PROT_WRITE, 0);
		pkey_free(g->key);
	}
	pthread_mutex_destroy(&g->window);
	memset(g, 0, sizeof(*g));
	g->key = -1;
}

const char *mr_guard_kind_name(enum mr_guard_kind kind)
{
	switch (kind) {
	case MR_GUARD_KEY:
		return "pkey";
	case MR_GUARD_MPROTECT:
		return "mprotect";
	case MR_GUARD_NONE:
		break;
	}
	return "none";
}
