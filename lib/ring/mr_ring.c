/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_ring.h"

#include <errno.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static void store_fence(void)
{
#if defined(__x86_64__)
	_mm_sfence();
#elif defined(__aarch64__)
	__asm__ volatile("dmb oshst" ::: "memory");
#endif
}

int mr_ring_init(struct mr_ring *r, void *in, void *in_map, void *out, uint32_t slots,
	uint32_t batch, uint32_t first_seq, struct mr_err *err)
{
	uint32_t stride = MR_SLOT_BYTES(batch);

	if (slots < 2 || slots > MR_SLOTS_MAX || (slots & (slots - 1)) != 0)
		return mr_err_set(err, -EINVAL, "ring of %u slots: use a power of two from 2 to %u",
			slots, MR_SLOTS_MAX);
	if (batch < 1 || batch > MR_BATCH_MAX)
		return mr_err_set(
			err, -EINVAL, "ring with batch %u: use 1 to %u", batch, MR_BATCH_MAX);
	if (((uintptr_t)in | (uintptr_t)in_map | (uintptr_t)out) % 64 != 0)
		return mr_err_set(err, -EINVAL, "ring memory is not aligned to 64 bytes");

	*r = (struct mr_ring){.in = in,
		.in_map = in_map,
		.out = out,
		.stride = stride,
		.mask = slots - 1,
		.batch = batch,
		.head = first_seq,
		.tail = first_seq};
	memset(in, 0, (size_t)slots * stride);
	memset(out, 0, (size_t)slots * stride);
	for (uint32_t i = 0; i < slots; i++) {
		uint32_t seq = first_seq + i;
		size_t at = (size_t)(seq & r->mask) * stride;

		((struct mr_slot_in *)(r->in + at))->ready = seq + 1 - slots;
		((struct mr_slot_out *)((uint8_t *)out + at))->done = seq + 1 - slots;
	}
	if (in_map != NULL) {
		memcpy(in_map, in, (size_t)slots * stride);
		store_fence();
	}
	return 0;
}

void mr_ring_give_mapped(struct mr_ring *r, uint32_t count)
{
	size_t at = (size_t)(r->head & r->mask) * r->stride;
	struct mr_slot_in *from = (struct mr_slot_in *)(r->in + at);
	struct mr_slot_in *to = (struct mr_slot_in *)(r->in_map + at);

	/* Everything behind READY first; the word itself must be the last to arrive. */
	memcpy((uint8_t *)to + sizeof(uint32_t), (uint8_t *)from + sizeof(uint32_t),
		MR_SLOT_HEADER - sizeof(uint32_t) + (size_t)count * sizeof(struct mr_desc_in));
	store_fence();
	mr_store_release(&to->ready, r->head + 1);
	store_fence();
}
