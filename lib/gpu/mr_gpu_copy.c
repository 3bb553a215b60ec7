/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_priv.h"

#include <errno.h>
#include <rte_gpudev.h>
#include <string.h>
#include <unistd.h>

#define TRY_MS 5000u
#define TRY_BYTES 64u
#define TRY_BYTE 0x5a

/* COPIED words, then the slots' buffers. */
static size_t words_bytes(const struct mr_gpu_lane *l)
{
	return MR_ALIGN_UP(l->slots * sizeof(uint32_t), MR_GPU_PAGE);
}

static int wait_stream(struct mr_gpu *g, struct mr_gpu_lane_run *run, struct mr_err *err)
{
	uint64_t until_ns = mr_clock_ns() + TRY_MS * 1000000ull;
	int rc;

	while ((rc = mr_gpu_drv_stream_query(run->stream, err)) > 0 && mr_clock_ns() < until_ns)
		usleep(100);
	if (rc <= 0)
		return rc;
	return mr_err_set(err, -ETIME,
		"device '%s', lane '%s': a copy of %u bytes to the GPU and back has not ended "
		"within %u ms",
		g->name, run->name, TRY_BYTES, TRY_MS);
}

/*
 * There and back once while no kernel runs, so that a stream which cannot do it is found
 * before the lane relies on it.
 */
static int try_copies(struct mr_gpu *g, struct mr_gpu_lane_run *run, uint32_t *words,
	uint8_t *buffers, struct mr_err *err)
{
	uint8_t *back = buffers + TRY_BYTES;
	int rc;

	memset(buffers, TRY_BYTE, TRY_BYTES);
	memset(back, 0, TRY_BYTES);
	words[0] = 0;
	rc = mr_gpu_drv_stream_in(
		run->stream, run->copies_kernel, buffers, TRY_BYTES, run->copied, 1, err);
	if (rc == 0)
		rc = mr_gpu_drv_stream_out(
			run->stream, back, run->copies_kernel, TRY_BYTES, run->copied, 2, err);
	if (rc == 0)
		rc = wait_stream(g, run, err);
	if (rc < 0)
		return rc;
	if (mr_load_acquire(&words[0]) != 2 || memcmp(buffers, back, TRY_BYTES) != 0)
		return mr_err_set(err, -EIO,
			"device '%s', lane '%s': what was copied to the GPU did not come back the "
			"same",
			g->name, run->name);
	return 0;
}

static int allocate(struct mr_gpu *g, const struct mr_gpu_lane *l, struct mr_gpu_lane_run *run,
	size_t bytes, struct mr_err *err)
{
	struct mr_err words = {0};
	void *host;
	int rc;

	rc = mr_gpu_device_alloc(g, bytes, "a staged lane's slots", &run->copies_device, err);
	if (rc < 0)
		return rc;
	rc = mr_gpu_drv_host_alloc(g->drv, words_bytes(l) + bytes, &host, &words);
	if (rc < 0)
		return mr_err_set(err, rc,
			"device '%s': %zu bytes of host memory for a staged lane's slots: %s",
			g->name, words_bytes(l) + bytes, mr_gpu_words(g, &words));
	run->copies_host = host;
	rc = mr_gpu_drv_kernel_address(g->drv, run->copies_device, &run->copies_kernel, err);
	if (rc == 0)
		rc = mr_gpu_drv_kernel_address(g->drv, host, &run->copied, err);
	return rc == 0 ? mr_gpu_drv_stream_open(g->drv, &run->stream, err) : rc;
}

int mr_gpu_copier_make(struct mr_gpu *g, uint32_t lane, const struct mr_gpu_lane *l,
	struct mr_gpu_lane_run *run, struct mr_err *err)
{
	size_t slot_bytes = (size_t)l->batch * l->room;
	uint8_t *buffers;
	uint32_t *words;
	int rc = allocate(g, l, run, l->slots * slot_bytes, err);

	if (rc < 0)
		return rc;
	run->slots = l->slots;
	words = (uint32_t *)(void *)run->copies_host;
	buffers = run->copies_host + words_bytes(l);
	rc = try_copies(g, run, words, buffers, err);
	for (uint32_t i = 0; i < l->slots; i++) {
		uint32_t seq = l->first_seq + i;

		words[seq & (l->slots - 1)] = seq + 1 - l->slots;
	}
	*l->copier = (struct mr_gpu_copier){.gpu = g,
		.lane = lane,
		.host = buffers,
		.copied = words,
		.slot_bytes = slot_bytes,
		.mask = l->slots - 1};
	return rc;
}

void mr_gpu_copier_free(struct mr_gpu *g, struct mr_gpu_lane_run *run)
{
	if (run->stream != NULL)
		mr_gpu_drv_stream_close(run->stream);
	if (run->copies_host != NULL)
		(void)!mr_gpu_drv_host_free(g->drv, run->copies_host, NULL);
	if (run->copies_device != NULL)
		(void)rte_gpu_mem_free(g->id, run->copies_device);
}

int mr_gpu_copier_in(const struct mr_gpu_copier *c, uint32_t seq, size_t from, size_t bytes)
{
	struct mr_gpu_lane_run *l = &c->gpu->lanes[c->lane];
	size_t slot = seq & c->mask, at = slot * c->slot_bytes + from;
	struct mr_err err = {0};
	int rc;

	mr_gpu_lane_call_begin(l);
	rc = mr_gpu_drv_stream_in(l->stream, l->copies_kernel + at, c->host + at, bytes,
		l->ready + slot * l->ready_stride, seq + 1, &err);
	return mr_gpu_lane_call_end(l, "copy its packets", rc, &err);
}

int mr_gpu_copier_out(const struct mr_gpu_copier *c, uint32_t seq, size_t from, size_t bytes)
{
	struct mr_gpu_lane_run *l = &c->gpu->lanes[c->lane];
	size_t slot = seq & c->mask, at = slot * c->slot_bytes + from;
	struct mr_err err = {0};
	int rc;

	mr_gpu_lane_call_begin(l);
	rc = mr_gpu_drv_stream_out(l->stream, c->host + at, l->copies_kernel + at, bytes,
		l->copied + slot * sizeof(uint32_t), seq + 1, &err);
	return mr_gpu_lane_call_end(l, "copy its packets", rc, &err);
}
