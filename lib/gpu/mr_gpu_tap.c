/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_tap.h"

#include "mr_gpu_priv.h"

#include <errno.h>
#include <string.h>

/* The order, the workers' words, then the records. */
#define CTL_AT MR_ALIGN_UP(sizeof(struct mr_tap_order), MR_CACHE_LINE)
#define RECORDS_AT (CTL_AT + MR_WORKERS_MAX * sizeof(struct mr_tap_ctl))
#define RECORDS_MIN 4u

static struct mr_tap_order *order_of(const struct mr_gpu *g)
{
	return (struct mr_tap_order *)g->tap.host;
}

static struct mr_tap_ctl *ctl_of(const struct mr_gpu *g, uint32_t worker)
{
	return (struct mr_tap_ctl *)(g->tap.host + CTL_AT) + worker;
}

void mr_gpu_tap_init(struct mr_gpu *g, void *host, uint64_t kernel)
{
	g->tap.host = host;
	g->tap.kernel = kernel;
	/* Records are not touched before there is a capture. */
	memset(host, 0, RECORDS_AT);
}

static const struct mr_tap_record *record(const struct mr_gpu *g, uint32_t worker, uint32_t number)
{
	const struct mr_tap_order *o = order_of(g);
	size_t at = (size_t)worker * (o->mask + 1) + (number & o->mask);

	return (const struct mr_tap_record *)(g->tap.host + RECORDS_AT + at * o->stride);
}

int mr_gpu_tap_start(struct mr_gpu *g, uint32_t lane, const struct mr_bpf *program, uint32_t count,
	uint32_t snaplen, struct mr_err *err)
{
	const struct mr_gpu_lane_run *run = &g->lanes[lane];
	uint32_t *word = &g->host_ctl->tap;
	struct mr_tap_order *o = order_of(g);
	uint32_t records = 1u << 20;
	size_t stride;

	if (!mr_gpu_tap_seen(g))
		return mr_err_set(err, -EBUSY,
			"device '%s': a worker has not yet seen the end of the last capture",
			g->name);
	if (run->room % 16 != 0)
		return mr_err_set(err, -ENOTSUP,
			"device '%s', lane '%s': buffers of %u bytes cannot be captured", g->name,
			run->name, run->room);
	if (snaplen == 0 || snaplen > run->room)
		snaplen = run->room;
	stride = MR_TAP_STRIDE(snaplen);
	while (records >= RECORDS_MIN &&
		records * stride * run->workers > MR_GPU_TAP_BYTES - RECORDS_AT)
		records /= 2;
	if (records < RECORDS_MIN)
		return mr_err_set(err, -ENOSPC,
			"lane '%s': %u bytes of a packet are too much for %u workers; capture "
			"less of it by -s",
			run->name, snaplen, run->workers);
	o->ctl = g->tap.kernel + CTL_AT;
	o->records = g->tap.kernel + RECORDS_AT;
	o->mask = records - 1;
	o->stride = (uint32_t)stride;
	o->snaplen = snaplen;
	o->count = count;
	memcpy(o->program, program, count * sizeof(*program));
	memset(ctl_of(g, 0), 0, MR_WORKERS_MAX * sizeof(struct mr_tap_ctl));
	g->tap.lane = lane;
	g->tap.left = 0;
	g->tap.count = 0;
	memset(g->tap.tail, 0, sizeof(g->tap.tail));
	mr_store_release(word, (mr_load_relaxed(word) & ~0xffu) + MR_TAP_NEXT + lane + 1);
	return 0;
}

void mr_gpu_tap_stop(struct mr_gpu *g)
{
	uint32_t *word = &g->host_ctl->tap;

	mr_store_release(word, mr_load_relaxed(word) & ~0xffu);
}

bool mr_gpu_tap_seen(const struct mr_gpu *g)
{
	uint32_t tap = mr_load_relaxed(&g->host_ctl->tap);

	for (uint32_t i = 0; i < g->workers_count; i++) {
		const struct mr_worker_ctl *ctl =
			&g->lanes[g->workers[i].lane].ctl[g->workers[i].worker];

		if (mr_load_acquire(&ctl->tap) != tap && mr_load_acquire(&ctl->left) == MR_LEFT_NOT)
			return false;
	}
	return true;
}

uint64_t mr_gpu_tap_began_ns(const struct mr_gpu *g)
{
	return ctl_of(g, 0)->began_ns;
}

uint32_t mr_gpu_tap_snaplen(const struct mr_gpu *g)
{
	return order_of(g)->snaplen;
}

uint64_t mr_gpu_tap_lost(const struct mr_gpu *g)
{
	uint64_t lost = 0;

	for (uint32_t w = 0; w < g->lanes[g->tap.lane].workers; w++)
		lost += mr_load_relaxed(&ctl_of(g, w)->lost);
	return lost;
}

static uint32_t slot_of(const struct mr_tap_record *r)
{
	return (uint32_t)(r->packet >> 32);
}

/* Finds the worker whose next slot is the oldest, and how its records lie. */
static bool begin_slot(struct mr_gpu *g)
{
	struct mr_gpu_tap_reader *t = &g->tap;
	const struct mr_tap_record *oldest = NULL;
	uint32_t ready = 0;

	for (uint32_t w = 0; w < g->lanes[t->lane].workers; w++) {
		uint32_t n = mr_load_acquire(&ctl_of(g, w)->head) - t->tail[w];
		const struct mr_tap_record *r = record(g, w, t->tail[w]);

		if (n == 0 || (oldest != NULL && (int32_t)(slot_of(r) - slot_of(oldest)) >= 0))
			continue;
		oldest = r;
		ready = n;
		t->worker = w;
	}
	if (oldest == NULL)
		return false;
	memset(t->place, 0xff, sizeof(t->place));
	/* Threads of a block took records in any order. */
	for (t->count = 0; t->count < ready; t->count++) {
		const struct mr_tap_record *r = record(g, t->worker, t->tail[t->worker] + t->count);

		if (slot_of(r) != slot_of(oldest))
			break;
		t->place[r->packet % MR_BATCH_MAX] = (uint16_t)t->count;
	}
	t->left = t->count;
	t->index = 0;
	return true;
}

static uint32_t kept(const struct mr_gpu *g, uint32_t head, uint32_t length)
{
	const uint32_t snaplen = order_of(g)->snaplen, n = length < snaplen ? length : snaplen;

	/* As the kernel: nothing of a frame that is said to lie beyond its buffer. */
	return head + n <= g->lanes[g->tap.lane].room ? n : 0;
}

bool mr_gpu_tap_next(struct mr_gpu *g, struct mr_gpu_tap_copy *ret_copy)
{
	struct mr_gpu_tap_reader *t = &g->tap;
	const struct mr_tap_record *r;

	if (t->left == 0 && t->count != 0) {
		t->tail[t->worker] += t->count;
		t->count = 0;
		mr_store_release(&ctl_of(g, t->worker)->tail, t->tail[t->worker]);
	}
	if (t->left == 0 && !begin_slot(g))
		return false;
	while (t->index < MR_BATCH_MAX - 1 && t->place[t->index] == UINT16_MAX)
		t->index++;
	t->left--;
	r = record(g, t->worker, t->tail[t->worker] + t->place[t->index++]);
	ret_copy->record = r;
	ret_copy->before = (const uint8_t *)(r + 1) + r->in.head % 16;
	ret_copy->after =
		(const uint8_t *)(r + 1) + MR_TAP_AREA(order_of(g)->snaplen) + r->out.head % 16;
	ret_copy->before_kept = kept(g, r->in.head, r->in.length);
	ret_copy->after_kept = kept(g, r->out.head, r->out.length);
	return true;
}
