/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_ring - the lane's side of a ring: open, give, take, release.
 *
 *     head ── open ─► fill descriptors ── give ─► worker ─► take ── release ─► tail
 *
 * One thread owns a ring: its lane. At most one slot is open at a time; it is
 * number head. Slots tail .. head-1 are outstanding. The descriptors of a slot
 * are built in host memory; where READY lies in GPU memory that the CPU can map
 * (in_map), give() copies the finished block there in one sweep, stores READY
 * last and fences on both sides because that mapping is write-combining. The
 * CPU never reads through in_map.
 *
 * Errors   none; a full ring is mr_ring_full().
 */
#ifndef MR_RING_H
#define MR_RING_H

#include "mr_base.h"
#include "mr_err.h"
#include "mr_ring_abi.h"
#include "mr_sync.h"

#include <stdbool.h>
#include <string.h>

struct rte_mbuf;

/* With overload shed: most frames that a full ring makes a lane receive and free at once. */
#define MR_SHED_BURST 64u

struct mr_ring {
	uint8_t *in;        /* slots x stride, host memory, where slots are built */
	uint8_t *in_map;    /* the same in GPU memory mapped for the CPU, or NULL */
	const uint8_t *out; /* slots x stride, host memory */
	uint32_t stride;    /* MR_SLOT_BYTES(batch) */
	uint32_t mask;      /* slots - 1 */
	uint32_t batch;
	uint32_t head;     /* number of the open slot, or of the next to open */
	uint32_t tail;     /* number of the oldest slot not yet released */
	bool tx_positions; /* slots carry them: MR_SLOT_BYTES_TX(batch) */
	bool withholds;    /* some slot was withheld, */
	uint32_t withheld; /* number of the first one */
};

/*
 * What the lane keeps beside a slot; the kernel never sees it. A note leads to all
 * there is of its slot and to the next note, so the loop multiplies no index.
 */
struct mr_ring_note {
	struct mr_slot_in *in;
	const struct mr_slot_out *out;
	struct rte_mbuf **mbufs; /* [batch] */
	struct mr_ring_note *next;
	uint64_t opened_tsc; /* its first packet arrived */
	uint64_t bytes;      /* of its frames */
	uint32_t count;      /* packets; 0 once the slot is released */
	bool tick;           /* they are blank buffers */
} MR_CACHE_ALIGNED;

/*
 * mr_ring_init lays a ring over memory of slots x MR_SLOT_BYTES(batch) bytes
 * each and writes READY and DONE as if the lap before first_seq had ended.
 * -EINVAL: slots not a power of two in 2..MR_SLOTS_MAX, batch not in
 * 1..MR_BATCH_MAX, or memory not aligned to 64 bytes.
 */
MR_MUST_USE int mr_ring_init(struct mr_ring *r, void *in, void *in_map, void *out, uint32_t slots,
	uint32_t batch, uint32_t first_seq, struct mr_err *err);

/* The same for slots with tx_position, of MR_SLOT_BYTES_TX(batch) bytes each. */
MR_MUST_USE int mr_ring_init_tx(struct mr_ring *r, void *in, void *in_map, void *out,
	uint32_t slots, uint32_t batch, uint32_t first_seq, struct mr_err *err);

static inline uint32_t mr_ring_outstanding(const struct mr_ring *r)
{
	return r->head - r->tail;
}

static inline bool mr_ring_full(const struct mr_ring *r)
{
	return mr_ring_outstanding(r) > r->mask;
}

static inline struct mr_slot_in *mr_ring_in(const struct mr_ring *r, uint32_t seq)
{
	return (struct mr_slot_in *)(r->in + (size_t)(seq & r->mask) * r->stride);
}

/* The descriptors of a slot follow its header. */
static inline struct mr_desc_in *mr_slot_desc_in(struct mr_slot_in *s)
{
	return (struct mr_desc_in *)(s + 1);
}

static inline const struct mr_desc_out *mr_slot_desc_out(const struct mr_slot_out *s)
{
	return (const struct mr_desc_out *)(s + 1);
}

/* Where frames of slot s of r are to be copied to; only with tx_positions. */
static inline uint32_t *mr_ring_tx_position(const struct mr_ring *r, struct mr_slot_in *s)
{
	return (uint32_t *)(mr_slot_desc_in(s) + r->batch);
}

void mr_ring_give_mapped(struct mr_ring *r, uint32_t count);

/*
 * mr_ring_give_unready hands the open slot over but for READY, which somebody else stores
 * when its frames have arrived.
 */
void mr_ring_give_unready(struct mr_ring *r, uint32_t count, uint8_t rx_port);

/* For a caller who knows in_map != NULL, and has the slot at hand with its rx_port written. */
static inline void mr_ring_give_slot(
	struct mr_ring *r, struct mr_slot_in *s, uint32_t count, bool mapped)
{
	s->count = (uint16_t)count;
	if (mapped)
		mr_ring_give_mapped(r, count);
	else
		mr_store_release(&s->ready, r->head + 1);
	r->head++;
}

/* mr_ring_give hands the open slot with count descriptors to its worker. */
static inline void mr_ring_give(struct mr_ring *r, uint32_t count, uint8_t rx_port)
{
	struct mr_slot_in *s = mr_ring_in(r, r->head);

	s->rx_port = rx_port;
	mr_ring_give_slot(r, s, count, r->in_map != NULL);
}

/* mr_ring_withhold takes the open slot out of use for good: it is never seen, never done. */
static inline void mr_ring_withhold(struct mr_ring *r)
{
	if (!r->withholds)
		r->withheld = r->head;
	r->withholds = true;
	r->head += 1;
}

static inline const struct mr_slot_out *mr_ring_out(const struct mr_ring *r, uint32_t seq)
{
	return (const struct mr_slot_out *)(r->out + (size_t)(seq & r->mask) * r->stride);
}

/* mr_ring_done says whether s, the oldest outstanding slot if there is any, is done. */
static inline bool mr_ring_done(const struct mr_ring *r, const struct mr_slot_out *s)
{
	uint32_t tail = r->tail;

	return r->head != tail && mr_load_acquire(&s->done) == tail + 1;
}

/* mr_ring_take returns the oldest outstanding slot if it is done, else NULL. */
static inline const struct mr_slot_out *mr_ring_take(const struct mr_ring *r)
{
	const struct mr_slot_out *s = mr_ring_out(r, r->tail);

	return mr_ring_done(r, s) ? s : NULL;
}

/* mr_ring_release gives the slot that take returned back for filling. */
static inline void mr_ring_release(struct mr_ring *r)
{
	r->tail++;
}

#endif
