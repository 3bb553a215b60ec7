/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_rx_describe.h"

#include "mr_base.h"
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
/* Tuned for a CPU whose unaligned 32-byte loads are one instruction, as all with AVX2. */
#define AVX2 __attribute__((target("avx2,tune=haswell")))

/* Eight bytes at that offset of four mbufs: base NULL plus the pointers as indices. */
#define GATHER(pointers, offset)                                                                   \
	_mm256_i64gather_epi64((const long long *)(uintptr_t)(offset), pointers, 1)

AVX2 bool mr_rx_describe_avx2(struct rte_mbuf *const *m, uint32_t n, uint64_t region,
	uint64_t limit, uint64_t *desc, uint64_t *ret_bytes)
{
	const __m256i first = _mm256_set1_epi64x((long long)region);
	const __m256i last = _mm256_set1_epi64x((long long)(region + limit));
	__m256i offsets = _mm256_setzero_si256(), above = offsets, bytes = offsets;
	__m256i any = offsets, all = _mm256_cmpeq_epi64(offsets, offsets), bad;
	uint32_t i = 0;
	__m128i half;
	bool ok;

	for (; i + 8 <= n; i += 8) {
#pragma GCC unroll 2
		for (uint32_t k = 0; k < 8; k += 4) {
			__m256i p = _mm256_loadu_si256((const __m256i *)&m[i + k]);
			__m256i start = GATHER(p, offsetof(struct rte_mbuf, buf_addr));
			__m256i rearm = GATHER(p, offsetof(struct rte_mbuf, data_off));
			__m256i length = GATHER(p, offsetof(struct rte_mbuf, pkt_len));
			__m256i offset = _mm256_sub_epi64(start, first), d;

			offsets = _mm256_or_si256(offsets, offset);
			above = _mm256_or_si256(above, _mm256_sub_epi64(last, start));
			any = _mm256_or_si256(any, rearm);
			all = _mm256_and_si256(all, rearm);
			/* Low halves add up pkt_len, which is data_len in one segment. */
			bytes = _mm256_add_epi64(bytes, length);
			/* 16-bit words 0-1: position, 2: length, 3: head. */
			d = _mm256_blend_epi16(_mm256_srli_epi64(offset, 6), length, 0x44);
			d = _mm256_blend_epi16(d, _mm256_slli_epi64(rearm, 48), 0x88);
			_mm256_storeu_si256((__m256i *)&desc[i + k], d);
		}
	}
	/* Every word is good where all and any agree: the same judgement as judge(). */
	bad = _mm256_or_si256(_mm256_xor_si256(any, _mm256_set1_epi64x((long long)REARM_GOOD)),
		_mm256_xor_si256(any, all));
	bad = _mm256_and_si256(bad, _mm256_set1_epi64x((long long)REARM_MASK));
	bad = _mm256_or_si256(bad, _mm256_srli_epi64(_mm256_or_si256(offsets, above), 63));
	bad = _mm256_or_si256(
		bad, _mm256_and_si256(offsets, _mm256_set1_epi64x((long long)MR_UNIT - 1)));
	ok = i == 0 || _mm256_testz_si256(bad, bad);
	half = _mm_add_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
	half = _mm_add_epi32(half, _mm_unpackhi_epi64(half, half));
	*ret_bytes = (uint32_t)_mm_cvtsi128_si32(half);
	if (MR_UNLIKELY(i != n)) {
		uint64_t rest;

		ok &= mr_rx_describe_scalar(m + i, n - i, region, limit, desc + i, &rest);
		*ret_bytes += rest;
	}
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
