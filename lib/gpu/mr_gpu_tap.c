/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures: the memory of their rings, and the words by which they begin and end. */
#include "mr_gpu_priv.h"

#include <string.h>

#define RINGS_BYTES (4u << 20) /* of a lane, shared among its workers */
#define RING_LEAST (64u << 10)

/* A power of two, and more than any record. */
static uint32_t ring_bytes(const struct mr_gpu_lane *l)
{
	uint32_t bytes = RINGS_BYTES;

	while (bytes > RING_LEAST && bytes > RINGS_BYTES / l->workers)
		bytes /= 2;
	while (bytes < 2 * (l->room + (uint32_t)sizeof(struct mr_tap_record)))
		bytes *= 2;
	return bytes;
}

static size_t worker_stride(const struct mr_gpu_lane *l)
{
	return MR_ALIGN_UP(
		sizeof(struct mr_tap_worker) + l->batch * sizeof(uint32_t), MR_CACHE_LINE);
}

size_t mr_gpu_tap_host_bytes(const struct mr_gpu_lane *l)
{
	return sizeof(struct mr_tap_spec) +
		l->workers * (sizeof(struct mr_tap_ends) + (size_t)ring_bytes(l));
}

size_t mr_gpu_tap_device_bytes(const struct mr_gpu_lane *l)
{
	return l->workers * worker_stride(l);
}

int mr_gpu_tap_make(struct mr_gpu *g, const struct mr_gpu_lane *l, struct mr_gpu_lane_run *run,
	uint8_t *host, struct mr_lane_dev *dev, struct mr_err *err)
{
	int rc;

	run->tap_spec = (struct mr_tap_spec *)host;
	run->tap_ends = (struct mr_tap_ends *)(run->tap_spec + 1);
	run->tap_rings = (uint8_t *)(run->tap_ends + l->workers);
	run->tap_ring_bytes = ring_bytes(l);
	memset(run->tap_spec, 0, sizeof(*run->tap_spec));
	memset(run->tap_ends, 0, l->workers * sizeof(*run->tap_ends));
	dev->tap.ring_bytes = run->tap_ring_bytes;
	dev->tap.worker_stride = (uint32_t)worker_stride(l);
	rc = mr_gpu_drv_kernel_address(g->drv, run->tap_spec, &dev->tap.spec, err);
	if (rc == 0)
		rc = mr_gpu_drv_kernel_address(g->drv, run->tap_ends, &dev->tap.ends, err);
	if (rc == 0)
		rc = mr_gpu_drv_kernel_address(g->drv, run->tap_rings, &dev->tap.ring, err);
	return rc;
}

/* Workers look at the spec once they see that the word has changed. */
static void tell(struct mr_gpu *g, struct mr_tap_spec *spec, uint32_t active)
{
	mr_store_release(&spec->active, active);
	mr_store_release(&g->host_ctl->tap, mr_load_relaxed(&g->host_ctl->tap) + 1);
}

void mr_gpu_tap_begin(struct mr_gpu *g, uint32_t lane, const struct mr_gpu_tap *tap)
{
	struct mr_gpu_lane_run *l = &g->lanes[lane];
	struct mr_tap_spec *spec = l->tap_spec;

	for (uint32_t w = 0; w < l->workers; w++)
		mr_store_release(&l->tap_ends[w].tail, mr_load_acquire(&l->tap_ends[w].head));
	spec->snaplen = tap->snaplen;
	spec->verdicts = tap->verdicts;
	spec->reason = tap->reason;
	spec->insns_count = tap->insns_count;
	if (tap->insns_count > 0)
		memcpy(spec->insns, tap->insns, tap->insns_count * sizeof(*tap->insns));
	tell(g, spec, 1);
}

void mr_gpu_tap_end(struct mr_gpu *g, uint32_t lane)
{
	tell(g, g->lanes[lane].tap_spec, 0);
}

bool mr_gpu_tap_taken(const struct mr_gpu *g, uint32_t lane)
{
	const struct mr_gpu_lane_run *l = &g->lanes[lane];
	uint32_t word = mr_load_relaxed(&g->host_ctl->tap);

	for (uint32_t w = 0; w < l->workers; w++)
		if (mr_load_acquire(&l->tap_ends[w].taken) != word &&
			mr_load_acquire(&l->ctl[w].left) == MR_LEFT_NOT)
			return false;
	return true;
}

size_t mr_gpu_tap_read(const struct mr_gpu *g, uint32_t lane, uint32_t worker,
	const uint8_t **ret_bytes, bool *ret_more)
{
	const struct mr_gpu_lane_run *l = &g->lanes[lane];
	const struct mr_tap_ends *ends = &l->tap_ends[worker];
	uint32_t tail = mr_load_relaxed(&ends->tail);
	uint32_t bytes = mr_load_acquire(&ends->head) - tail;
	uint32_t at = tail % l->tap_ring_bytes, piece = l->tap_ring_bytes - at;

	*ret_bytes = l->tap_rings + (size_t)worker * l->tap_ring_bytes + at;
	*ret_more = bytes > piece;
	return *ret_more ? piece : bytes;
}

void mr_gpu_tap_pass(struct mr_gpu *g, uint32_t lane, uint32_t worker, size_t bytes)
{
	uint32_t *tail = &g->lanes[lane].tap_ends[worker].tail;

	mr_store_release(tail, mr_load_relaxed(tail) + (uint32_t)bytes);
}

uint64_t mr_gpu_tap_clock_ns(const struct mr_gpu *g, uint32_t lane, uint32_t worker)
{
	return mr_load_relaxed_u64(&g->lanes[lane].tap_ends[worker].clock_ns);
}

uint64_t mr_gpu_tap_lost(const struct mr_gpu *g, uint32_t lane)
{
	const struct mr_gpu_lane_run *l = &g->lanes[lane];
	uint64_t lost = 0;

	for (uint32_t w = 0; w < l->workers; w++)
		lost += mr_load_relaxed_u64(&l->tap_ends[w].lost);
	return lost;
}
