/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_device - what device code needs and CUDA has no name for.
 *
 * MR_HD begins a function of both compilers, MR_ENTRY a kernel entry. Below are
 * the only lines of PTX in the tree; all else in device code is CUDA's own
 * built-ins. So whoever stands in the place of CUDA replaces this header and
 * defines those built-ins (tests/simt), and compiles every other line as it is.
 *
 * Every access has system scope: it is ordered against the CPU and the NIC, and
 * no load is served from the L1 cache, which DMA does not refresh (PTX ISA,
 * "Memory Consistency Model"; "ld": a relaxed load is performed at its scope).
 */
#ifndef MR_DEVICE_H
#define MR_DEVICE_H

#include <stdint.h>

#if defined(__CUDACC__)
#define MR_HD __host__ __device__ static __forceinline__
#define MR_ENTRY extern "C" __global__
#else
#define MR_HD static inline __attribute__((always_inline))
#endif

#if defined(__CUDA_ARCH__)

#define MR_DEVICE_LOAD(name, type, ptx, reg)                                                       \
	static __device__ __forceinline__ type mr_device_##name(const type *p)                     \
	{                                                                                          \
		type v;                                                                            \
                                                                                                   \
		asm volatile(ptx " %0, [%1];" : "=" reg(v) : "l"(p) : "memory");                   \
		return v;                                                                          \
	}
#define MR_DEVICE_STORE(name, type, ptx, reg)                                                      \
	static __device__ __forceinline__ void mr_device_##name(type *p, type v)                   \
	{                                                                                          \
		asm volatile(ptx " [%0], %1;" : : "l"(p), reg(v) : "memory");                      \
	}
MR_DEVICE_LOAD(load_acquire, uint32_t, "ld.acquire.sys.global.u32", "r")
MR_DEVICE_LOAD(load_relaxed, uint32_t, "ld.relaxed.sys.global.u32", "r")
MR_DEVICE_LOAD(load_relaxed_u64, uint64_t, "ld.relaxed.sys.global.u64", "l")
MR_DEVICE_STORE(store_release, uint32_t, "st.release.sys.global.u32", "r")
MR_DEVICE_STORE(store_relaxed, uint32_t, "st.relaxed.sys.global.u32", "r")
MR_DEVICE_STORE(store_relaxed_u64, uint64_t, "st.relaxed.sys.global.u64", "l")

/* A byte of a frame. */
static __device__ __forceinline__ uint32_t mr_device_load_1(const uint8_t *p)
{
	uint32_t v;

	asm volatile("ld.relaxed.sys.global.u8 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
}

/* 16 bytes of a frame in one access, read or written; p is aligned to 16. */
static __device__ __forceinline__ void mr_device_load_16(const uint8_t *p, uint32_t ret_words[4])
{
	asm volatile(
		"ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
		: "=r"(ret_words[0]), "=r"(ret_words[1]), "=r"(ret_words[2]), "=r"(ret_words[3])
		: "l"(p)
		: "memory");
}

static __device__ __forceinline__ void mr_device_store_16(uint8_t *p, const uint32_t words[4])
{
	asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};"
		     :
		     : "l"(p), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
		     : "memory");
}

/* Nanoseconds; the same clock in every block. */
static __device__ __forceinline__ uint64_t mr_device_clock_ns(void)
{
	uint64_t t;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
	return t;
}

#undef MR_DEVICE_LOAD
#undef MR_DEVICE_STORE
#endif

#endif
