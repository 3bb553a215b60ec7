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

static int init(struct mr_ring *r, void *in, void *in_map, void *out, uint32_t slots,
	uint32_t batch, uint32_t first_seq, bool tx_positions, struct mr_err *err)
{
	uint32_t stride = tx_positions ? MR_SLOT_BYTES_TX(batch) : MR_SLOT_BYTES(batch);

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
		.tail = first_seq,
		.tx_positions = tx_positions};
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

int mr_ring_init(struct mr_ring *r, void *in, void *in_map, void *out, uint32_t slots,
	uint32_t batch, uint32_t first_seq, struct mr_err *err)
{
	return init(r, in, in_map, out, slots, batch, first_seq, false, err);
}

int mr_ring_init_tx(struct mr_ring *r, void *in, void *in_map, void *out, uint32_t slots,
	uint32_t batch, uint32_t first_seq, struct mr_err *err)
{
	return init(r, in, in_map, out, slots, batch, first_seq, true, err);
}

/* Everything behind READY, which must be the last to arrive. */
static struct mr_slot_in *fill_mapped(struct mr_ring *r, uint32_t count)
{
	size_t at = (size_t)(r->head & r->mask) * r->stride;
	struct mr_slot_in *from = (struct mr_slot_in *)(r->in + at);
	struct mr_slot_in *to = (struct mr_slot_in *)(r->in_map + at);

	memcpy((uint8_t *)to + sizeof(uint32_t), (uint8_t *)from + sizeof(uint32_t),
		MR_SLOT_HEADER - sizeof(uint32_t) + (size_t)count * sizeof(struct mr_desc_in));
	if (r->tx_positions)
		memcpy(mr_ring_tx_position(r, to), mr_ring_tx_position(r, from),
			count * sizeof(uint32_t));
	store_fence();
	return to;
}

void mr_ring_give_mapped(struct mr_ring *r, uint32_t count)
{
	struct mr_slot_in *to = fill_mapped(r, count);

	mr_store_release(&to->ready, r->head + 1);
	store_fence();
}

void mr_ring_give_unready(struct mr_ring *r, uint32_t count, uint8_t rx_port)
{
	struct mr_slot_in *s = mr_ring_in(r, r->head);

	s->count = (uint16_t)count;
	s->rx_port = rx_port;
	if (r->in_map != NULL)
		(void)fill_mapped(r, count);
	r->head++;
}
