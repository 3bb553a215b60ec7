/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_sync - the only atomics of the tree, for both compilers.
 *
 * Host and device meet through naturally aligned words. On the device every
 * access here has system scope, so that it is ordered against the CPU and the
 * NIC and not only inside the GPU (PTX ISA, "Memory Consistency Model").
 *
 * mr_sync_fence() orders everything before it against everything after it with
 * system scope. The device needs it between the packet bytes and descriptors of
 * all threads of a block and the release of DONE by one of them; the host form
 * hands over by store-release alone and needs none.
 */
#ifndef MR_SYNC_H
#define MR_SYNC_H

#include "mr_device.h"

MR_HD uint32_t mr_load_acquire(const uint32_t *p)
{
#if defined(__CUDA_ARCH__)
	return mr_device_load_acquire(p);
#else
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
#endif
}

MR_HD void mr_store_release(uint32_t *p, uint32_t v)
{
#if defined(__CUDA_ARCH__)
	mr_device_store_release(p, v);
#else
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
#endif
}

MR_HD uint32_t mr_load_relaxed(const uint32_t *p)
{
#if defined(__CUDA_ARCH__)
	return mr_device_load_relaxed(p);
#else
	return __atomic_load_n(p, __ATOMIC_RELAXED);
#endif
}

MR_HD void mr_store_relaxed(uint32_t *p, uint32_t v)
{
#if defined(__CUDA_ARCH__)
	mr_device_store_relaxed(p, v);
#else
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
#endif
}

MR_HD void mr_store_relaxed_u64(uint64_t *p, uint64_t v)
{
#if defined(__CUDA_ARCH__)
	mr_device_store_relaxed_u64(p, v);
#else
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
#endif
}

MR_HD uint64_t mr_load_relaxed_u64(const uint64_t *p)
{
#if defined(__CUDA_ARCH__)
	return mr_device_load_relaxed_u64(p);
#else
	return __atomic_load_n(p, __ATOMIC_RELAXED);
#endif
}

/* mr_swap_u64 puts `then` where `now` is, in one step, and tells whether it was there; relaxed. */
MR_HD int mr_swap_u64(uint64_t *p, uint64_t now, uint64_t then)
{
#if defined(__CUDA_ARCH__)
	return atomicCAS_system((unsigned long long *)p, now, then) == now;
#else
	return __atomic_compare_exchange_n(p, &now, then, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
}

/* mr_add_u64 adds to *p among the threads of one block and gives what was there; relaxed. */
MR_HD uint64_t mr_add_u64(uint64_t *p, uint64_t v)
{
#if defined(__CUDA_ARCH__)
	return atomicAdd((unsigned long long *)p, (unsigned long long)v);
#else
	/* A block of the host form is one thread. */
	uint64_t before = *p;

	*p = before + v;
	return before;
#endif
}

MR_HD void mr_sync_fence(void)
{
#if defined(__CUDA_ARCH__)
	__threadfence_system();
#endif
}

/*
 * What DPDK's drivers and pools order among threads ThreadSanitizer does not see,
 * since they are built without it. mr_sync_leave() says that this thread hands
 * over what p points at, mr_sync_enter() that it takes it over; without
 * ThreadSanitizer both are nothing. What DPDK inlines is compiled here and is
 * seen, so an mbuf that was left is freed by rte_pktmbuf_free_bulk(), which is a
 * call, and one that was allocated is entered before it is reset.
 */
#if defined(__SANITIZE_THREAD__)
void __tsan_release(void *p);
void __tsan_acquire(void *p);
#endif

MR_HD void mr_sync_leave(void *p)
{
#if defined(__SANITIZE_THREAD__)
	__tsan_release(p);
#else
	(void)p;
#endif
}

MR_HD void mr_sync_enter(void *p)
{
#if defined(__SANITIZE_THREAD__)
	__tsan_acquire(p);
#else
	(void)p;
#endif
}

#if !defined(__CUDACC__)
/*
 * mr_publish_begin and mr_publish_end bracket a copy of counters by its only
 * writer; readers use mr_read_begin and mr_read_retry. The words in between are
 * stored and loaded relaxed, so a reader gets a consistent copy or tries again.
 *
 * Both sides close their bracket with a read-modify-write instead of a fence,
 * which ThreadSanitizer does not know. If a reader's comes first, the writer's
 * reads what it wrote and so all its loads happen before the new words; if the
 * writer's comes first, the reader sees the odd number. A plain store in front
 * of the writer's would break the first case (Boehm, "Can seqlocks get along
 * with programming language memory models?", MSPC 2012).
 */
MR_HD void mr_publish_begin(uint32_t *epoch)
{
	(void)__atomic_fetch_add(epoch, 1, __ATOMIC_ACQ_REL);
}

MR_HD void mr_publish_end(uint32_t *epoch)
{
	__atomic_store_n(epoch, __atomic_load_n(epoch, __ATOMIC_RELAXED) + 1, __ATOMIC_RELEASE);
}

MR_HD uint32_t mr_read_begin(const uint32_t *epoch)
{
	return __atomic_load_n(epoch, __ATOMIC_ACQUIRE);
}

MR_HD int mr_read_retry(uint32_t *epoch, uint32_t begun)
{
	/* A read-modify-write keeps the loads before it, as a fence would. */
	return (begun & 1u) != 0 || __atomic_fetch_add(epoch, 0, __ATOMIC_ACQ_REL) != begun;
}
#endif

#endif
