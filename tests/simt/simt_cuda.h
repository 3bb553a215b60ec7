/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simt_cuda - what stands in the place of lib/ring/mr_device.h and of CUDA's built-ins.
 *
 * A device source is compiled with this file included before it and the macros of
 * nvcc's device pass set. What is not declared here the sources may not use: it
 * does not compile. The functions are in simt.c.
 */
#ifndef SIMT_CUDA_H
#define SIMT_CUDA_H

#include <stddef.h>
#include <stdint.h>

/* In the place of mr_device.h. */
#define MR_DEVICE_H
#define MR_HD static inline __attribute__((always_inline))
#define MR_ENTRY
uint32_t mr_device_load_acquire(const uint32_t *p);
uint32_t mr_device_load_relaxed(const uint32_t *p);
uint64_t mr_device_load_relaxed_u64(const uint64_t *p);
void mr_device_store_release(uint32_t *p, uint32_t v);
void mr_device_store_relaxed(uint32_t *p, uint32_t v);
void mr_device_store_relaxed_u64(uint64_t *p, uint64_t v);
uint32_t mr_device_load_1(const uint8_t *p);
void mr_device_load_16(const uint8_t *p, uint32_t ret_words[4]);
void mr_device_store_16(uint8_t *p, const uint32_t words[4]);
uint64_t mr_device_clock_ns(void);

/* In the place of CUDA's. */
#define __CUDACC__ 1
#define __CUDA_ARCH__ 800
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("simt_shared")))

struct simt_index {
	uint32_t x;
};

struct simt_index simt_thread_idx(void);
struct simt_index simt_block_idx(void);
struct simt_index simt_block_dim(void);
#define threadIdx (simt_thread_idx())
#define blockIdx (simt_block_idx())
#define blockDim (simt_block_dim())

void simt_syncthreads(void);
int simt_syncthreads_and(int v);
void simt_syncwarp(uint32_t mask);
uint64_t simt_shuffle(uint32_t mask, uint64_t v, uint32_t source);
uint64_t simt_shuffle_xor(uint32_t mask, uint64_t v, uint32_t bits);
uint32_t simt_ballot(uint32_t mask, int v);
#define __syncthreads simt_syncthreads
#define __syncthreads_and simt_syncthreads_and
#define __syncwarp simt_syncwarp
#define __ffsll __builtin_ffsll
#define __shfl_sync(mask, v, source)                                                               \
	((__typeof__(v))simt_shuffle(mask, (uint64_t)(v), (uint32_t)(source)))
#define __shfl_xor_sync(mask, v, bits)                                                             \
	((__typeof__(v))simt_shuffle_xor(mask, (uint64_t)(v), (uint32_t)(bits)))
#define __ballot_sync simt_ballot
#define __any_sync(mask, v) (simt_ballot(mask, v) != 0)

unsigned long long simt_atomic_add(unsigned long long *p, unsigned long long v);
unsigned long long simt_atomic_cas(
	unsigned long long *p, unsigned long long now, unsigned long long then);
void simt_threadfence_system(void);
void simt_nanosleep(uint32_t ns);
#define atomicAdd simt_atomic_add
#define atomicCAS_system simt_atomic_cas
#define __threadfence_system simt_threadfence_system
#define __nanosleep simt_nanosleep

/* 1 in the program of mutate.py that was told to be this mutant. */
int simt_mutated(int number);

#endif
