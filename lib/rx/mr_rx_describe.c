/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_rx_describe.h"

#include "mr_base.h"
#include "mr_ring_abi.h"

#include <rte_mbuf.h>
#include <stdbool.h>
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

/* An offset carries the head, so that the shift that makes the position makes both. */
#define HEAD_USUAL ((uint64_t)RTE_PKTMBUF_HEADROOM << 48 << 6)

void mr_rx_window_init(struct mr_rx_window *w, uint64_t region, uint64_t bytes, uint32_t room)
{
	*w = (struct mr_rx_window){.region = region,
		.limit = bytes - room,
		.start = region - HEAD_USUAL,
		.highest = (bytes - room + HEAD_USUAL) >> 6 |
			(uint64_t)(room - RTE_PKTMBUF_HEADROOM) << 32,
		.room = room};
}

uint64_t mr_rx_describe_scalar(
	const struct mr_rx_window *w, struct rte_mbuf *const *m, uint32_t n, uint64_t *desc)
{
	uint64_t different = 0, bytes = 0;
	uint32_t incomplete = 0;
	bool outside = false;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t offset = (uint64_t)(uintptr_t)m[i]->buf_addr - w->region, rearm;

		memcpy(&rearm, &m[i]->data_off, sizeof(rearm));
		outside |= offset > w->limit || offset % MR_UNIT != 0;
		outside |= (uint32_t)m[i]->data_off + m[i]->data_len > w->room;
		incomplete |= m[i]->pkt_len ^ m[i]->data_len;
		different |= rearm ^ REARM_GOOD;
		desc[i] = (offset >> 6 & UINT32_MAX) | (uint64_t)m[i]->data_len << 32 | rearm << 48;
		bytes += m[i]->data_len;
	}
	return outside || incomplete != 0 || (different & REARM_MASK) != 0 ? MR_RX_DESCRIBE_BAD
									   : bytes;
}

uint64_t mr_rx_describe_split(
	const struct mr_rx_window *w, struct rte_mbuf *const *m, uint32_t n, uint64_t *desc)
{
	uint64_t bytes, rests = 0;
	bool shared = false;

	for (uint32_t i = 0; i < n; i++) {
		const struct rte_mbuf *rest = m[i]->next;

		/* Frames that end in the first buffer have one; they may come here twice. */
		if (rest == NULL)
			continue;
		if (m[i]->nb_segs == 2) {
			m[i]->nb_segs = 1;
			m[i]->pkt_len = m[i]->data_len;
		}
		shared |= rte_mbuf_refcnt_read(rest) != 1;
		rests += rest->data_len;
	}
	bytes = mr_rx_describe_scalar(w, m, n, desc);
	return bytes == MR_RX_DESCRIBE_BAD || shared ? MR_RX_DESCRIBE_BAD : bytes + rests;
}

#if defined(__x86_64__)
/* Tuned for a CPU whose unaligned 32-byte loads are one instruction, as all with AVX2. */
#define AVX2 __attribute__((target("avx2,tune=haswell")))

/* Eight bytes at that offset of four mbufs: base NULL plus the pointers as indices. */
#define GATHER(pointers, offset)                                                                   \
	_mm256_i64gather_epi64((const long long *)(uintptr_t)(offset), pointers, 1)
#define ALL(word) _mm256_set1_epi64x((long long)(word))
/* Without it the compiler copies what a loop gathers to another register and back. */
#define IN_PLACE(v) __asm__("" : "+x"(v))

/* What a driver leaves in data_off, refcnt and nb_segs, the lower 48 bits. */
#define REARM_USUAL (REARM_GOOD | RTE_PKTMBUF_HEADROOM)
/* Zero in an offset: what is below a unit, and what no region reaches. */
#define OFFSET_ZERO (~HEAD_USUAL & ~(UINT64_C(0xffffffff) << 6))
_Static_assert(RTE_PKTMBUF_HEADROOM < 1 << 9, "the head and six bits fit above 48 bits");

/* Bursts that are no multiple of eight: the last fewer than eight frames one by one. */
static __attribute__((noinline)) uint64_t describe_odd(
	const struct mr_rx_window *w, struct rte_mbuf *const *m, uint32_t n, uint64_t *desc)
{
	uint32_t whole = n & ~7u;
	uint64_t bytes = whole != 0 ? mr_rx_describe_avx2(w, m, whole, desc) : 0;
	uint64_t rest = mr_rx_describe_scalar(w, m + whole, n - whole, desc + whole);

	return bytes == MR_RX_DESCRIBE_BAD || rest == MR_RX_DESCRIBE_BAD ? MR_RX_DESCRIBE_BAD
									 : bytes + rest;
}

/* Constants as memory operands: the compiler would build each from three instructions. */
static const struct {
	uint64_t usual[4], offset_zero[4];
} constants __attribute__((aligned(32))) = {
	.usual = {REARM_USUAL, REARM_USUAL, REARM_USUAL, REARM_USUAL},
	.offset_zero = {OFFSET_ZERO, OFFSET_ZERO, OFFSET_ZERO, OFFSET_ZERO},
};
#define CONSTANT(name) _mm256_load_si256((const __m256i *)c->name)

AVX2 uint64_t mr_rx_describe_avx2(
	const struct mr_rx_window *w, struct rte_mbuf *const *m, uint32_t n, uint64_t *desc)
{
	const __typeof__(constants) *c = &constants;

	/* Keeps the compiler from looking through the pointer. */
	__asm__("" : "+r"(c));
	const __m256i usual = CONSTANT(usual), start = ALL(w->start);
	__m256i offsets = _mm256_setzero_si256(), different = offsets, bytes = offsets;
	__m256i highest = ALL(w->highest), incomplete = offsets;
	size_t i = 0;
	__m128i half;

	if (MR_UNLIKELY(n % 8 != 0))
		return describe_odd(w, m, n, desc);
	do {
		__m256i length[2], frames, beside;

#pragma GCC unroll 2
		for (size_t k = 0; k < 2; k++) {
			__m256i p = _mm256_loadu_si256((const __m256i *)&m[i + 4 * k]);
			__m256i rearm = GATHER(p, offsetof(struct rte_mbuf, data_off));
			__m256i buffer = GATHER(p, offsetof(struct rte_mbuf, buf_addr));
			__m256i offset = _mm256_sub_epi64(buffer, start), d;

			length[k] = GATHER(p, offsetof(struct rte_mbuf, pkt_len));
			different = _mm256_or_si256(different, _mm256_xor_si256(rearm, usual));
			offsets = _mm256_or_si256(offsets, offset);
			/* 16-bit words 0-1: position, 2: length, 3: head. */
			d = _mm256_blend_epi16(_mm256_srli_epi64(offset, 6), length[k], 0x44);
			highest = _mm256_max_epu32(highest, d);
			IN_PLACE(highest);
			_mm256_storeu_si256((__m256i *)&desc[i + 4 * k], d);
		}
		/* Of the eight pkt_len, and what data_len takes off them in the lower halves. */
		frames = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(length[0]),
			_mm256_castsi256_ps(length[1]), _MM_SHUFFLE(2, 0, 2, 0)));
		beside = _mm256_hsub_epi32(length[0], length[1]);
		bytes = _mm256_add_epi32(bytes, frames);
		IN_PLACE(bytes);
		incomplete = _mm256_or_si256(incomplete, _mm256_blend_epi16(beside, frames, 0xaa));
		i += 8;
	} while (i < n);
	/* An unusual head is as good; what is wrong is for the specification to say. */
	highest = _mm256_xor_si256(highest, ALL(w->highest));
	incomplete = _mm256_or_si256(incomplete, highest);
	incomplete = _mm256_or_si256(incomplete, _mm256_slli_epi64(different, 16));
	if (MR_UNLIKELY(!_mm256_testz_si256(offsets, CONSTANT(offset_zero)) ||
		    !_mm256_testz_si256(incomplete, incomplete)))
		return mr_rx_describe_scalar(w, m, n, desc);
	half = _mm_add_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
	half = _mm_hadd_epi32(half, half);
	half = _mm_hadd_epi32(half, half);
	return (uint32_t)_mm_cvtsi128_si32(half);
}
#endif
