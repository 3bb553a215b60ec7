/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_rx_describe.h"

#include "mr_ring_abi.h"

#include <rte_mbuf.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/*
 * refcnt and nb_segs are the second and third 16-bit words from data_off on, so
 * one masked compare says "one owner, one segment".
 */
#define REARM_MASK UINT64_C(0x0000ffffffff0000)
#define REARM_GOOD UINT64_C(0x0000000100010000)
_Static_assert(offsetof(struct rte_mbuf, refcnt) == offsetof(struct rte_mbuf, data_off) + 2, "");
_Static_assert(offsetof(struct rte_mbuf, nb_segs) == offsetof(struct rte_mbuf, data_off) + 4, "");
/* data_len is the upper half of the eight bytes that start with pkt_len. */
_Static_assert(offsetof(struct rte_mbuf, data_len) == offsetof(struct rte_mbuf, pkt_len) + 4, "");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "descriptors are built as words");
/* A shift by six is the division by a unit. */
_Static_assert(MR_UNIT == 64, "");

/*
 * offset is wrong when it is above the limit, before the region (then it is
 * negative), or not a multiple of a unit. The first two are sign bits, because
 * regions are far below 2^63 bytes.
 */
static inline bool judge(uint64_t offsets, uint64_t above, uint64_t rearm)
{
	return ((offsets | above) >> 63) == 0 && (offsets & (MR_UNIT - 1)) == 0 &&
		(rearm & REARM_MASK) == 0;
}

bool mr_rx_describe_scalar(struct rte_mbuf *const *m, uint32_t n, uint64_t region, uint64_t limit,
	uint64_t *desc, uint64_t *ret_bytes)
{
	uint64_t offsets = 0, above = 0, different = 0, bytes = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t offset = (uint64_t)(uintptr_t)m[i]->buf_addr - region, rearm;

		memcpy(&rearm, &m[i]->data_off, sizeof(rearm));
		offsets |= offset;
		above |= limit - offset;
		different |= rearm ^ REARM_GOOD;
		desc[i] = (offset >> 6 & UINT32_MAX) | (uint64_t)m[i]->data_len << 32 | rearm << 48;
		bytes += m[i]->data_len;
	}
	*ret_bytes = bytes;
	return judge(offsets, above, different);
}

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))

static inline AVX2 __m256i gather(__m256i pointers, size_t offset)
{
	/* Base NULL plus the pointers themselves as indices. */
	return _mm256_i64gather_epi64((const long long *)(uintptr_t)offset, pointers, 1);
}

static inline AVX2 uint64_t fold_or(__m256i v)
{
	__m128i x = _mm_or_si128(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

	return (uint64_t)_mm_cvtsi128_si64(x) | (uint64_t)_mm_extract_epi64(x, 1);
}

AVX2 bool mr_rx_describe_avx2(struct rte_mbuf *const *m, uint32_t n, uint64_t region,
	uint64_t limit, uint64_t *desc, uint64_t *ret_bytes)
{
	const __m256i vregion = _mm256_set1_epi64x((long long)region);
	const __m256i vlimit = _mm256_set1_epi64x((long long)limit);
	const __m256i good = _mm256_set1_epi64x((long long)REARM_GOOD);
	const __m256i zero = _mm256_setzero_si256();
	__m256i offsets = zero, above = zero, different = zero, bytes = zero;
	uint32_t whole = n & ~7u;
	uint64_t rest, sum;
	bool ok;

	for (uint32_t i = 0; i < whole; i += 8) {
#pragma GCC unroll 2
		for (uint32_t k = 0; k < 8; k += 4) {
			__m256i p = _mm256_loadu_si256((const __m256i *)&m[i + k]);
			__m256i offset = _mm256_sub_epi64(
				gather(p, offsetof(struct rte_mbuf, buf_addr)), vregion);
			__m256i rearm = gather(p, offsetof(struct rte_mbuf, data_off));
			__m256i length = gather(p, offsetof(struct rte_mbuf, pkt_len));
			__m256i d;

			offsets = _mm256_or_si256(offsets, offset);
			above = _mm256_or_si256(above, _mm256_sub_epi64(vlimit, offset));
			different = _mm256_or_si256(different, _mm256_xor_si256(rearm, good));
			/* 16-bit words 0-1: position, 2: length, 3: head. */
			d = _mm256_blend_epi16(_mm256_srli_epi64(offset, 6), length, 0x44);
			bytes = _mm256_add_epi64(bytes, _mm256_blend_epi16(zero, length, 0x44));
			d = _mm256_blend_epi16(d, _mm256_slli_epi64(rearm, 48), 0x88);
			_mm256_storeu_si256((__m256i *)&desc[i + k], d);
		}
	}
	/* Lengths were added up in the upper halves: 1024 of them stay below 2^32. */
	bytes = _mm256_srli_epi64(bytes, 32);
	bytes = _mm256_add_epi64(bytes, _mm256_permute4x64_epi64(bytes, 0x4e));
	sum = (uint64_t)_mm256_extract_epi64(bytes, 0) + (uint64_t)_mm256_extract_epi64(bytes, 1);
	ok = judge(fold_or(offsets), fold_or(above), fold_or(different));
	if (whole != n) {
		ok &= mr_rx_describe_scalar(
			m + whole, n - whole, region, limit, desc + whole, &rest);
		sum += rest;
	}
	*ret_bytes = sum;
	return ok;
}
#endif

mr_rx_describe_fn mr_rx_describe_best(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return mr_rx_describe_avx2;
#endif
	return mr_rx_describe_scalar;
}
