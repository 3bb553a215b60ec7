/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_tap.h"

#include "mr_gpu_priv.h"

#include <errno.h>
#include <string.h>

/* The order, the workers' words, then the records. */
#define CTL_AT MR_ALIGN_UP(sizeof(struct mr_tap_order), MR_CACHE_LINE)
#define RECORDS_AT (CTL_AT + MR_WORKERS_MAX * sizeof(struct mr_tap_ctl))
#define RECORDS_MIN 4u
#define NO_RECORD UINT32_MAX
#define ASK_NS 1000000000u /* from one question for the kernel's clock to the next */

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
	const struct mr_gpu_tap_reader *t = &g->tap;
	size_t at = (size_t)worker * (t->mask + 1) + (number & t->mask);

	return (const struct mr_tap_record *)(t->host + RECORDS_AT + at * t->stride);
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
	g->tap = (struct mr_gpu_tap_reader){.host = g->tap.host,
		.kernel = g->tap.kernel,
		.lane = lane,
		.mask = o->mask,
		.stride = o->stride,
		.snaplen = snaplen,
		.host_ns = INT64_MIN,
		.day_ns = INT64_MIN,
		.asked_ns = mr_clock_ns()};
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

/*
 * An offset is left alone where it can be right, so that one slow look at a clock does no harm. The
 * first one is the least, as if a question were answered at once.
 */
static void hold(int64_t *offset, uint64_t least, uint64_t most)
{
	if (*offset < (int64_t)least)
		*offset = (int64_t)least;
	else if (*offset > (int64_t)most)
		*offset = (int64_t)most;
}

void mr_gpu_tap_follow(
	struct mr_gpu *g, uint64_t before_ns, uint64_t time_of_day_ns, uint64_t after_ns)
{
	struct mr_gpu_tap_reader *t = &g->tap;
	uint64_t *told_ns = &ctl_of(g, 0)->clock_ns;
	const uint64_t clock_ns = mr_load_relaxed_u64(told_ns);
	uint32_t *word = &g->host_ctl->tap;

	hold(&t->day_ns, time_of_day_ns - after_ns, time_of_day_ns - before_ns);
	if (clock_ns == 0)
		return;
	/* It was told between the question and now. */
	hold(&t->host_ns, t->asked_ns - clock_ns, after_ns - clock_ns);
	/* After a stop another word would have to be seen by all workers too. */
	if (after_ns - t->asked_ns < ASK_NS || MR_TAP_LANE(mr_load_relaxed(word)) == 0)
		return;
	t->asked_ns = after_ns;
	mr_store_relaxed_u64(told_ns, 0);
	mr_store_release(word, mr_load_relaxed(word) + MR_TAP_NEXT);
}

uint32_t mr_gpu_tap_snaplen(const struct mr_gpu *g)
{
	return g->tap.snaplen;
}

uint64_t mr_gpu_tap_lost(const struct mr_gpu *g)
{
	uint64_t lost = g->tap.broken;

	for (uint32_t w = 0; w < g->lanes[g->tap.lane].workers; w++)
		lost += mr_load_relaxed_u64(&ctl_of(g, w)->lost);
	return lost;
}

static uint32_t slot_of(const struct mr_tap_record *r)
{
	return (uint32_t)(r->packet >> 32);
}

static void give_back(struct mr_gpu *g, uint32_t worker, uint32_t records)
{
	g->tap.tail[worker] += records;
	mr_store_release(&ctl_of(g, worker)->tail, g->tap.tail[worker]);
}

static uint32_t ready(struct mr_gpu *g, uint32_t worker)
{
	uint32_t n = mr_load_acquire(&ctl_of(g, worker)->head) - g->tap.tail[worker];

	if (n <= g->tap.mask + 1)
		return n;
	/* It went over what was not taken yet. */
	g->tap.broken += n;
	give_back(g, worker, n);
	return 0;
}

/* Finds the worker that is at the oldest slot; 0: it has no records, of that or at all. */
static uint32_t oldest(struct mr_gpu *g)
{
	struct mr_gpu_tap_reader *t = &g->tap;
	const bool stopped = MR_TAP_LANE(mr_load_relaxed(&g->host_ctl->tap)) == 0;
	uint32_t least = 0, records = 0;
	bool found = false;

	for (uint32_t w = 0; w < g->lanes[t->lane].workers; w++) {
		/* Before head, which then has all records of slots before. */
		uint32_t slot = mr_load_acquire(&ctl_of(g, w)->next), n = ready(g, w);

		if (n > 0)
			slot = slot_of(record(g, w, t->tail[w]));
		else if (stopped)
			continue;
		if (found && (int32_t)(slot - least) >= 0)
			continue;
		found = true;
		least = slot;
		records = n;
		t->worker = w;
	}
	return records;
}

/* Takes the oldest slot in hand and finds how its records lie. */
static bool begin_slot(struct mr_gpu *g)
{
	struct mr_gpu_tap_reader *t = &g->tap;
	const uint32_t records = oldest(g);
	uint32_t slot;

	if (records == 0)
		return false;
	slot = slot_of(record(g, t->worker, t->tail[t->worker]));
	memset(t->place, 0xff, sizeof(t->place));
	for (t->count = 0; t->count < records; t->count++) {
		const struct mr_tap_record *r = record(g, t->worker, t->tail[t->worker] + t->count);
		const uint32_t packet = (uint32_t)r->packet;

		if (slot_of(r) != slot)
			break;
		if (packet >= MR_BATCH_MAX || t->place[packet] != NO_RECORD) {
			t->broken++;
			continue;
		}
		t->place[packet] = t->count;
		t->left++;
	}
	t->index = 0;
	return true;
}

static uint32_t kept(const struct mr_gpu *g, uint32_t head, uint32_t length)
{
	const uint32_t snaplen = g->tap.snaplen, n = length < snaplen ? length : snaplen;

	/* As the kernel: nothing of a frame that is said to lie beyond its buffer. */
	return head + n <= g->lanes[g->tap.lane].room ? n : 0;
}

bool mr_gpu_tap_next(struct mr_gpu *g, struct mr_gpu_tap_copy *ret_copy)
{
	struct mr_gpu_tap_reader *t = &g->tap;
	const struct mr_tap_record *r;

	while (t->left == 0) {
		give_back(g, t->worker, t->count);
		t->count = 0;
		if (!begin_slot(g))
			return false;
	}
	while (t->place[t->index] == NO_RECORD)
		t->index++;
	t->left--;
	r = record(g, t->worker, t->tail[t->worker] + t->place[t->index++]);
	ret_copy->record = r;
	ret_copy->time_ns = r->time_ns + (uint64_t)t->host_ns + (uint64_t)t->day_ns;
	ret_copy->before = (const uint8_t *)(r + 1) + r->in.head % 16;
	ret_copy->after = (const uint8_t *)(r + 1) + MR_TAP_AREA(t->snaplen) + r->out.head % 16;
	ret_copy->before_kept = kept(g, r->in.head, r->in.length);
	ret_copy->after_kept = kept(g, r->out.head, r->out.length);
	return true;
}
