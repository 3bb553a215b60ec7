/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_prove.h"
#include "mr_gpu_priv.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_gpudev.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_MAX (2 * MR_GPU_PAGE)

static const uint8_t mac[6] = {0x02, 0, 0, 0, 0, 1}; /* of nobody: it never leaves */

struct memory_job {
	struct mr_gpu *g;
	const struct mr_gpu_region *region;
	struct mr_proof *proof;
};

static int memory_job(void *arg, struct mr_err *err)
{
	struct memory_job *j = arg;
	const struct mr_gpu_region *r = j->region;
	const bool device = r->memory == MR_GPU_MEMORY_DEVICE;
	const unsigned int want = device ? MR_CU_MEMORYTYPE_DEVICE : MR_CU_MEMORYTYPE_HOST;

	for (int end = 0; end < 2; end++) {
		const uint8_t *at = (const uint8_t *)r->addr + (end == 0 ? 0 : r->bytes - 1);
		struct mr_gpu_drv_owner m;
		int rc = mr_gpu_drv_owner_of(j->g->drv, at, &m, err);

		if (rc < 0)
			return rc;
		if (m.type != want || m.managed)
			mr_proof_set(j->proof, MR_FAIL,
				"asked for %s memory, and the driver says of %p that it is %s%s",
				device ? "GPU" : "host", (const void *)at,
				m.type == MR_CU_MEMORYTYPE_DEVICE ? "GPU memory" : "host memory",
				m.managed ? ", managed" : "");
		else if (m.bytes != 0 &&
			((uintptr_t)r->addr < m.base ||
				r->bytes > m.bytes - ((uintptr_t)r->addr - m.base)))
			mr_proof_set(j->proof, MR_FAIL,
				"the driver's allocation is %zu bytes at %#llx, which does not "
				"hold %zu at %p",
				m.bytes, (unsigned long long)m.base, r->bytes, r->addr);
	}
	mr_proof_set(j->proof, MR_PASS, "%s of device '%s', %zu bytes at %p, as the driver says",
		device ? "GPU memory" : "page-locked host memory", j->g->name, r->bytes, r->addr);
	return 0;
}

/* As mr_gpu_job, with a driver that hangs noted. */
static int job(struct mr_gpu *g, const char *what, mr_gpu_job_fn *fn, void *arg, struct mr_err *err)
{
	struct mr_err why = {0};
	int rc = mr_gpu_job(g->name, what, g->driver_ms, fn, arg, &why);

	if (rc == -ETIMEDOUT)
		mr_gpu_abandon(g, &why);
	return rc < 0 ? mr_err_set(err, rc, "%s", why.msg) : 0;
}

int mr_gpu_prove_memory(struct mr_gpu *g, const struct mr_gpu_region *region,
	struct mr_proof *ret_proof, struct mr_err *err)
{
	struct memory_job j = {g, region, ret_proof};

	return job(g, "looking at packet memory", memory_job, &j, err);
}

/* One test frame between its guards. */
struct window {
	struct mr_gpu *g;
	const struct mr_gpu_region *r;
	const uint32_t *sizes;
	uint32_t count;
	struct mr_proof *proof;
	uint8_t *view;       /* the device's memory as the CPU sees it, of the two pages */
	size_t pages;        /* where they begin */
	size_t offset;       /* of the first guard in the region */
	uint32_t size, seed; /* of the frame */
	uint8_t want[WINDOW_MAX], got[WINDOW_MAX];
};

static uint32_t span(const struct window *w)
{
	return MR_PROOF_GUARD + w->size + MR_PROOF_GUARD;
}

static void make(struct window *w)
{
	memset(w->want, MR_PROOF_CANARY, span(w));
	mr_proof_frame(w->want + MR_PROOF_GUARD, w->size, mac, ++w->seed);
}

/* Notes where `got` is not what was written; returns whether it differs. */
static bool differs(struct window *w, const uint8_t *got, const char *what)
{
	uint32_t at = mr_proof_differs(got, w->want, span(w));

	if (at == span(w))
		return false;
	mr_proof_set(w->proof, MR_FAIL,
		"%s: a frame of %u bytes at %zu of the region differs at byte %d%s", what, w->size,
		w->offset + MR_PROOF_GUARD, (int)at - (int)MR_PROOF_GUARD,
		at < MR_PROOF_GUARD || at >= MR_PROOF_GUARD + w->size ? ", in its guard" : "");
	return true;
}

/* Host memory is coherent: what is written there needs no flush. */
static bool flushes(const struct window *w)
{
	return w->g->info.flush_needed && w->r->memory == MR_GPU_MEMORY_DEVICE;
}

static int flush(struct window *w, struct mr_err *err)
{
	return flushes(w) ? mr_gpu_drv_flush(w->g->drv, err) : 0;
}

/* The port's side writes; the device must see it without having been asked to copy. */
static int try_in(struct window *w, struct mr_err *err)
{
	uint8_t *cpu = (uint8_t *)w->r->addr + w->offset;
	bool stale;
	int rc;

	make(w);
	memset(cpu, MR_PROOF_CANARY, span(w));
	rc = flush(w, err);
	if (rc < 0)
		return rc;
	memcpy(cpu + MR_PROOF_GUARD, w->want + MR_PROOF_GUARD, w->size);
	rc = flush(w, err);
	if (rc < 0)
		return rc;
	stale = w->view != NULL &&
		mr_proof_differs(w->view + (w->offset - w->pages), w->want, span(w)) != span(w);
	rc = mr_gpu_drv_download(w->g->drv, w->got, w->r->kernel + w->offset, span(w), err);
	if (rc < 0)
		return rc;
	if (!differs(w, w->got,
		    flushes(w) ? "what ports write is not what kernels read, flushed or not"
			       : "what ports write is not what kernels read") &&
		stale)
		mr_proof_set(w->proof, MR_FAIL,
			"what ports write gets to where kernels read only when the driver is "
			"called: it is copied behind the back");
	return 0;
}

static int try_out(struct window *w, struct mr_err *err)
{
	int rc;

	make(w);
	rc = mr_gpu_drv_upload(w->g->drv, w->r->kernel + w->offset, w->want, span(w), err);
	if (rc < 0)
		return rc;
	memcpy(w->got, (const uint8_t *)w->r->addr + w->offset, span(w));
	(void)differs(w, w->got, "what kernels write is not what ports read");
	return 0;
}

/* Two pages from `pages` on: in the first, across, and at the end of the second. */
static int try_pages(struct window *w, struct mr_err *err)
{
	for (uint32_t i = 0; i < w->count; i++) {
		size_t starts[3];

		w->size = w->sizes[i];
		starts[0] = 0;
		starts[1] = MR_GPU_PAGE - span(w) / 2;
		starts[2] = WINDOW_MAX - span(w);
		for (int k = 0; k < 3; k++) {
			int rc;

			w->offset = w->pages + starts[k];
			rc = try_in(w, err);
			if (rc == 0)
				rc = try_out(w, err);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

/* The first two pages and the last two, which may be the same. */
static int window_job(void *arg, struct mr_err *err)
{
	struct window *w = arg;
	const bool device = w->r->memory == MR_GPU_MEMORY_DEVICE;
	const bool map = device && w->g->info.can_map;
	int rc = 0;

	for (int end = 0; end < 2 && rc == 0; end++) {
		uint8_t *at;

		w->pages = end == 0 ? 0 : w->r->bytes - WINDOW_MAX;
		at = (uint8_t *)w->r->addr + w->pages;
		w->view = map ? rte_gpu_mem_cpu_map(w->g->id, WINDOW_MAX, at) : NULL;
		if (map && w->view == NULL) {
			struct mr_err words;

			mr_gpu_drv_last_error(&words);
			return mr_err_set(err, words.code != 0 ? words.code : -rte_errno, "%s",
				words.code != 0 ? words.msg : rte_strerror(rte_errno));
		}
		rc = try_pages(w, err);
		if (map)
			(void)rte_gpu_mem_cpu_unmap(w->g->id, at);
	}
	if (rc == 0 && device && !map)
		mr_proof_set(w->proof, MR_UNKNOWN,
			"bytes arrive both ways, but GPU memory cannot be mapped for the CPU, so "
			"that copies behind the back cannot be told from none");
	if (rc == 0)
		mr_proof_set(w->proof, MR_PASS,
			"%u sizes of %u to %u bytes, both ways, within a page, across 64 KiB and "
			"to the last byte, guards untouched",
			w->count, w->sizes[0], w->sizes[w->count - 1]);
	return rc;
}

int mr_gpu_prove_window(struct mr_gpu *g, const struct mr_gpu_region *region, const uint32_t *sizes,
	uint32_t count, struct mr_proof *ret_proof, struct mr_err *err)
{
	struct window *w;
	int rc;

	if (region->bytes < WINDOW_MAX || sizes[count - 1] + 2 * MR_PROOF_GUARD > MR_GPU_PAGE)
		return mr_err_set(err, -EINVAL,
			"device '%s': a region of %zu bytes is too small to be tried with frames "
			"of %u",
			g->name, region->bytes, sizes[count - 1]);
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return mr_err_set(err, -ENOMEM, "device '%s': out of memory", g->name);
	*w = (struct window){
		.g = g, .r = region, .sizes = sizes, .count = count, .proof = ret_proof};
	rc = job(g, "reading packet memory back", window_job, w, err);
	/* A thread that was left behind may still use it. */
	if (rc != -ETIMEDOUT)
		free(w);
	return rc;
}

struct peer_job {
	struct mr_gpu *g;
	const struct mr_gpu_region *region;
};

static int attach_job(void *arg, struct mr_err *err)
{
	struct peer_job *j = arg;

	return mr_gpu_drv_peer_attach(j->g->drv, j->region->addr, j->region->bytes, err);
}

int mr_gpu_peer_attach(struct mr_gpu *g, const struct mr_gpu_region *region, struct mr_err *err)
{
	struct peer_job j = {g, region};

	return job(g, "registering packet memory", attach_job, &j, err);
}

void mr_gpu_peer_detach(struct mr_gpu *g, const struct mr_gpu_region *region)
{
	/* Only the software device keeps books, and it answers at once. */
	if (mr_gpu_is_sim(g))
		mr_gpu_drv_peer_detach(g->drv, region->addr, region->bytes);
}

int mr_gpu_peer_counts(struct mr_gpu *g, uint64_t *ret_bytes, uint64_t *ret_revoked)
{
	return mr_gpu_is_sim(g) ? mr_gpu_drv_peer_counts(g->drv, ret_bytes, ret_revoked) : -ENOTSUP;
}

struct copy_job {
	struct mr_gpu *g;
	uint64_t at;
	const void *from;
	void *to;
	size_t bytes;
};

static int copy_job(void *arg, struct mr_err *err)
{
	struct copy_job *j = arg;

	if (j->from != NULL)
		return mr_gpu_drv_upload(j->g->drv, j->at, j->from, j->bytes, err);
	return mr_gpu_drv_download(j->g->drv, j->to, j->at, j->bytes, err);
}

int mr_gpu_put(struct mr_gpu *g, const struct mr_gpu_region *region, size_t offset,
	const void *from, size_t bytes, struct mr_err *err)
{
	struct copy_job j = {g, region->kernel + offset, from, NULL, bytes};

	return job(g, "writing packet memory", copy_job, &j, err);
}

int mr_gpu_get(struct mr_gpu *g, const struct mr_gpu_region *region, size_t offset, void *to,
	size_t bytes, struct mr_err *err)
{
	struct copy_job j = {g, region->kernel + offset, NULL, to, bytes};

	return job(g, "reading packet memory", copy_job, &j, err);
}
