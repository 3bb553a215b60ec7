/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_guard - packet memory that control cores cannot touch.
 *
 * A software NIC copies packets on the lane's own core, so a guard has to tell
 * the driver's access from the lane's. Every range of packet memory that the
 * CPU can map is put under one guard; a thread has no access to it except
 * between mr_guard_open() and mr_guard_close(), which the lane calls around
 * rte_eth_rx_burst() and rte_eth_tx_burst() of software ports only. Any other
 * touch by that thread is a SIGSEGV.
 *
 *     key       memory protection key (pkeys(7)); rights are per thread and
 *               cost one WRPKRU instruction, no system call.
 *     mprotect  for CPUs without keys, chosen by name only: rights are per
 *               process, so the windows of all threads take turns, and a burst
 *               costs two system calls. A test tool.
 *
 * A system call that is handed guarded memory by a closed thread fails with
 * EFAULT instead of a signal. Kernel workers of the software device reach the
 * same bytes through a second mapping that is not guarded.
 *
 * Thread   init, protect and fini: the control thread, before lanes start and
 *          after they ended. deny: every thread that the control thread makes,
 *          first thing, since it inherits the rights of its maker; and the
 *          control thread itself before it makes the first. open and close: any
 *          thread, for itself, always in pairs.
 * Source   pkeys(7), Linux Documentation/core-api/protection-keys.rst
 */
#ifndef MR_GUARD_H
#define MR_GUARD_H

#include "mr_err.h"

#include <pthread.h>

#define MR_GUARD_RANGES 64

enum mr_guard_kind {
	MR_GUARD_NONE,     /* not wanted, or the CPU has no keys */
	MR_GUARD_KEY,      /* protection key */
	MR_GUARD_MPROTECT, /* page protection of the whole process */
};

struct mr_guard {
	enum mr_guard_kind kind;
	int key;
	int refused; /* errno: not the CPU, but the kernel or a filter refuses keys; or 0 */
	/* PKRU images with the key's two bits set or clear; only KEY uses them. */
	uint32_t deny_bits;
	pthread_mutex_t window; /* MPROTECT: held while a window is open */
	uint32_t ranges;
	struct {
		void *addr;
		size_t bytes;
	} range[MR_GUARD_RANGES];
};

/*
 * mr_guard_init picks the kind: "auto" is a key or nothing, "pkey" a key or
 * -ENOTSUP (-errno where keys are refused), "mprotect" and "off" are what they say. Another word is
 * -EINVAL.
 */
MR_MUST_USE int mr_guard_init(struct mr_guard *g, const char *want, struct mr_err *err);

/* mr_guard_protect puts page-aligned [addr, addr + bytes) under the guard. */
MR_MUST_USE int mr_guard_protect(struct mr_guard *g, void *addr, size_t bytes, struct mr_err *err);

/* mr_guard_fini opens every range again for everybody and gives the key back. */
void mr_guard_fini(struct mr_guard *g);

/* mr_guard_kind_name gives "pkey", "mprotect" or "none". */
const char *mr_guard_kind_name(enum mr_guard_kind kind);

/* The mprotect kind's window, out of line: open waits until no other is open. */
void mr_guard_mprotect_open(struct mr_guard *g);
void mr_guard_mprotect_close(struct mr_guard *g);

/* mr_guard_deny takes the calling thread's access away for good; g may be NULL. */
void mr_guard_deny(struct mr_guard *g);

#if defined(__x86_64__)
static inline uint32_t mr_guard_rdpkru(void)
{
	uint32_t eax, edx;

	__asm__ volatile(".byte 0x0f,0x01,0xee" : "=a"(eax), "=d"(edx) : "c"(0));
	return eax;
}

/* The memory clobber keeps the compiler from moving an access across. */
static inline void mr_guard_wrpkru(uint32_t eax)
{
	__asm__ volatile(".byte 0x0f,0x01,0xef" : : "a"(eax), "c"(0), "d"(0) : "memory");
}
#endif

/* mr_guard_open gives this thread access until mr_guard_close; g may be NULL. */
static inline void mr_guard_open(struct mr_guard *g)
{
	if (g == NULL || g->kind == MR_GUARD_NONE)
		return;
#if defined(__x86_64__)
	if (g->kind == MR_GUARD_KEY) {
		mr_guard_wrpkru(mr_guard_rdpkru() & ~g->deny_bits);
		return;
	}
#endif
	mr_guard_mprotect_open(g);
}

/* mr_guard_close ends the window; g may be NULL. */
static inline void mr_guard_close(struct mr_guard *g)
{
	if (g == NULL || g->kind == MR_GUARD_NONE)
		return;
#if defined(__x86_64__)
	if (g->kind == MR_GUARD_KEY) {
		mr_guard_wrpkru(mr_guard_rdpkru() | g->deny_bits);
		return;
	}
#endif
	mr_guard_mprotect_close(g);
}

#endif
