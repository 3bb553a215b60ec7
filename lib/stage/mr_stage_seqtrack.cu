/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seqtrack - loss, duplicates, order and restarts of every stream of sensors and telemetry.
 *
 *     packet ─ table of formats ─► struct mr_seen ─ its stream ─► books (mr_track.h)
 *                                                                    │
 *                            tick ─► gaps that are too old ─► events, totals ─► results
 *
 * What a stream is, and how many there may be: mr_streams.h. A packet of one that has no place
 * is counted as such and looked at no further.
 *
 * Results are of kind MR_RESULT_STREAMS. Records (struct mr_track_event; numbers of 8 bytes):
 *
 *     MISSED   number of the first unit that is missing, how many; time of the packet furthest
 *              ahead: seconds, and picoseconds or what its format counts
 *     RESTART  number that the sender began anew with, 0; time as above
 *     STEP     number of the packet, 0; time as above
 *     TOTALS   expected, units, missing, open (in gaps yet); received, placed, duplicate, late,
 *              reordered, malformed, unknown, filtered, restarts, clock steps
 *
 * expected = units + missing + open; received = placed + duplicate + late + malformed + unknown +
 * filtered, and one more while a packet is held. Totals of a stream are told at most every
 * report_ms, when something came. Events wait in a queue of `events`; one that finds it full is
 * lost and counted, and so are those that wait when a reload takes result_dst away. With
 * `forward: false` packets end here, and their buffers bear results too.
 */
#ifndef MR_STAGE_SEQTRACK_CU
#define MR_STAGE_SEQTRACK_CU

#include "mr_stage.h"

#include "mr_ipfix.h"
#include "mr_result.h"
#include "mr_track.h"

#define MR_SEQTRACK_EVENT (MR_RESULT_STREAM + 8 * 4)
#define MR_SEQTRACK_TOTALS_NUMBERS 14u
#define MR_SEQTRACK_TOTALS (MR_RESULT_STREAM + 8 * MR_SEQTRACK_TOTALS_NUMBERS)

struct mr_seqtrack_params {
	struct mr_streams_params common;
	struct mr_result_to to;
	uint64_t window, leap;
	uint32_t events, templates;
	uint32_t late_ms, report_ms;
};

enum mr_seqtrack_counter {
	MR_SEQTRACK_RECEIVED,
	MR_SEQTRACK_PLACED,
	MR_SEQTRACK_DUPLICATE,
	MR_SEQTRACK_LATE,
	MR_SEQTRACK_MALFORMED,
	MR_SEQTRACK_UNKNOWN,
	MR_SEQTRACK_FILTERED,
	MR_SEQTRACK_OVERFLOW,
	MR_SEQTRACK_REORDERED,
	MR_SEQTRACK_UNITS,
	MR_SEQTRACK_MISSING,
	MR_SEQTRACK_GAPS,
	MR_SEQTRACK_RESTARTS,
	MR_SEQTRACK_STEPS,
	MR_SEQTRACK_STREAMS,
	MR_SEQTRACK_REPLACED,
	MR_SEQTRACK_RESULTS,
	MR_SEQTRACK_RESULTS_LOST,
};

/*
 * The lane's memory: this, events, templates, streams. How many there are of each is written
 * once, so that parameters of a reload cannot lay it out anew.
 */
struct mr_seqtrack_state {
	struct mr_streams streams;
	uint32_t events, templates;
	uint32_t number; /* of the next result */
	uint32_t lost;   /* queue.lost that was counted */
	struct mr_track_queue queue;
};

MR_HD uint32_t mr_seqtrack_power(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

MR_HD struct mr_track_event *mr_seqtrack_events(struct mr_seqtrack_state *st)
{
	return (struct mr_track_event *)(st + 1);
}

MR_HD struct mr_ipfix_template *mr_seqtrack_templates(struct mr_seqtrack_state *st)
{
	return (struct mr_ipfix_template *)(mr_seqtrack_events(st) + st->events);
}

MR_HD void *mr_seqtrack_streams(struct mr_seqtrack_state *st)
{
	return mr_seqtrack_templates(st) + st->templates;
}

MR_HD uint64_t mr_seqtrack_bytes(const struct mr_seqtrack_params *p)
{
	return sizeof(struct mr_seqtrack_state) +
		(uint64_t)mr_seqtrack_power(p->events) * sizeof(struct mr_track_event) +
		(uint64_t)p->templates * sizeof(struct mr_ipfix_template) +
		mr_streams_bytes(p->common.streams, sizeof(struct mr_stream));
}

MR_HD void mr_seqtrack_begin(const struct mr_ctx *ctx, struct mr_seqtrack_state *st)
{
	const struct mr_seqtrack_params *p = (const struct mr_seqtrack_params *)ctx->params;
	const uint32_t waiting = st->queue.head - st->queue.tail;

	if (st->streams.capacity == 0) {
		mr_streams_begin(
			&st->streams, p->common.streams, sizeof(struct mr_stream), ctx->now_ns);
		st->events = mr_seqtrack_power(p->events);
		st->templates = p->templates;
	}
	if (waiting != 0 && !mr_result_wanted(&p->to)) {
		mr_count(ctx, MR_SEQTRACK_RESULTS_LOST, waiting);
		st->queue.tail = st->queue.head;
		st->queue.lost += waiting;
		st->lost += waiting;
	}
}

MR_HD struct mr_books mr_seqtrack_books(const struct mr_ctx *ctx, struct mr_seqtrack_state *st)
{
	const struct mr_seqtrack_params *p = (const struct mr_seqtrack_params *)ctx->params;
	struct mr_books b;

	b.queue = &st->queue;
	b.events = mr_seqtrack_events(st);
	b.events_mask = st->events - 1;
	b.now_ns = ctx->now_ns;
	b.window = p->window;
	b.leap = p->leap;
	b.gaps = b.restarts = b.steps = 0;
	return b;
}

/* What of a stream may change with a packet or a tick. */
struct mr_seqtrack_before {
	uint64_t placed, duplicate, late, reordered, units, missing;
};

MR_HD struct mr_seqtrack_before mr_seqtrack_before(const struct mr_stream *s)
{
	struct mr_seqtrack_before b;

	b.placed = s->placed;
	b.duplicate = s->duplicate;
	b.late = s->late;
	b.reordered = s->reordered;
	b.units = s->units;
	b.missing = s->missing;
	return b;
}

MR_HD void mr_seqtrack_more(
	const struct mr_ctx *ctx, enum mr_seqtrack_counter c, uint64_t now, uint64_t before)
{
	if (now != before)
		mr_count(ctx, c, now - before);
}

/* Counts what changed in the books of a stream; where results are off nothing waits. */
MR_HD void mr_seqtrack_settle(const struct mr_ctx *ctx, struct mr_seqtrack_state *st,
	const struct mr_books *b, struct mr_stream *s, const struct mr_seqtrack_before *was)
{
	const struct mr_seqtrack_params *p = (const struct mr_seqtrack_params *)ctx->params;

	mr_seqtrack_more(ctx, MR_SEQTRACK_PLACED, s->placed, was->placed);
	mr_seqtrack_more(ctx, MR_SEQTRACK_UNITS, s->units, was->units);
	mr_seqtrack_more(ctx, MR_SEQTRACK_DUPLICATE, s->duplicate, was->duplicate);
	mr_seqtrack_more(ctx, MR_SEQTRACK_LATE, s->late, was->late);
	mr_seqtrack_more(ctx, MR_SEQTRACK_REORDERED, s->reordered, was->reordered);
	s->head.dirty =
		(s->head.dirty & MR_STREAM_UNTOLD) | (mr_track_waits(s) ? MR_STREAM_WAITS : 0);
	if (s->units != was->units || s->late != was->late || s->missing != was->missing)
		s->head.dirty |= MR_STREAM_UNTOLD;
	if ((b->gaps | b->restarts | b->steps) == 0)
		return;
	mr_seqtrack_more(ctx, MR_SEQTRACK_MISSING, s->missing, was->missing);
	mr_count(ctx, MR_SEQTRACK_GAPS, b->gaps);
	mr_count(ctx, MR_SEQTRACK_RESTARTS, b->restarts);
	mr_count(ctx, MR_SEQTRACK_STEPS, b->steps);
	if (!mr_result_wanted(&p->to))
		st->queue.tail = st->queue.head;
	else
		mr_seqtrack_more(ctx, MR_SEQTRACK_RESULTS_LOST, st->queue.lost, st->lost);
	st->lost = st->queue.lost;
}

/* How many units the packet bears; 0: nobody knows, or it is malformed. */
MR_HD int mr_seqtrack_units(struct mr_seqtrack_state *st, const struct mr_view *v,
	const struct mr_stream_key *key, struct mr_seen *s)
{
	enum mr_ipfix_result r;
	uint32_t replaced = 0;

	if (s->format != MR_FORMAT_ipfix)
		return 1;
	r = mr_ipfix_count(mr_seqtrack_templates(st), st->templates,
		mr_streams_sender(&st->streams, key), (uint32_t)s->id[0], v, s->payload, s->end,
		&s->units, &replaced);
	if (r == MR_IPFIX_MALFORMED)
		s->state = MR_SEEN_MALFORMED;
	return r == MR_IPFIX_OK;
}

/* Takes a packet into the books of its stream. */
MR_HD void mr_seqtrack_judge(const struct mr_ctx *ctx, struct mr_seqtrack_state *st,
	const struct mr_view *v, struct mr_seen *s, struct mr_stream *stream)
{
	const struct mr_seqtrack_before before = mr_seqtrack_before(stream);
	struct mr_books b = mr_seqtrack_books(ctx, st);
	int known = s->state != MR_SEEN_OK || mr_seqtrack_units(st, v, &stream->head.key, s);

	if (stream->received++ == 0)
		stream->told_ns = ctx->now_ns;
	stream->head.dirty |= MR_STREAM_UNTOLD;
	if (s->state == MR_SEEN_MALFORMED) {
		stream->malformed++;
		mr_count(ctx, MR_SEQTRACK_MALFORMED, 1);
	} else if (s->state == MR_SEEN_INVALID) {
		stream->filtered++;
		mr_count(ctx, MR_SEQTRACK_FILTERED, 1);
	} else if (s->state == MR_SEEN_OTHER || !known) {
		stream->unknown++;
		mr_count(ctx, MR_SEQTRACK_UNKNOWN, 1);
	}
	if (s->state == MR_SEEN_OK)
		(void)mr_track_packet(&b, stream, s, s->units, known);
	mr_seqtrack_settle(ctx, st, &b, stream, &before);
}

/* A packet of a format, in its turn. */
MR_HD void mr_seqtrack_packet(const struct mr_ctx *ctx, struct mr_seqtrack_state *st,
	const struct mr_view *v, const struct mr_headers *h, struct mr_seen *s)
{
	const struct mr_seqtrack_params *p = (const struct mr_seqtrack_params *)ctx->params;
	struct mr_stream *stream;
	struct mr_stream_key key;

	mr_count(ctx, MR_SEQTRACK_RECEIVED, 1);
	if (!s->id_known) {
		mr_count(ctx,
			s->state == MR_SEEN_MALFORMED         ? MR_SEQTRACK_MALFORMED
				: s->state == MR_SEEN_INVALID ? MR_SEQTRACK_FILTERED
							      : MR_SEQTRACK_UNKNOWN,
			1);
		return;
	}
	mr_streams_key(v, h, s, &key);
	stream = (struct mr_stream *)mr_streams_find(ctx, &st->streams, mr_seqtrack_streams(st),
		&key, p->common.idle_s, MR_SEQTRACK_STREAMS);
	if (stream == NULL)
		mr_count(ctx, MR_SEQTRACK_OVERFLOW, 1);
	else
		mr_seqtrack_judge(ctx, st, v, s, stream);
}

MR_HD void mr_seqtrack_put_event(
	const struct mr_view *v, struct mr_result *r, const struct mr_track_event *e)
{
	mr_result_stream(v, r, e->kind, 0, &e->key, 4);
	mr_result_put(v, r, 8, e->at);
	mr_result_put(v, r, 8, e->units);
	mr_result_put(v, r, 8, e->time_s);
	mr_result_put(v, r, 8, e->time_ps);
}

MR_HD void mr_seqtrack_put_totals(
	const struct mr_view *v, struct mr_result *r, const struct mr_stream *s)
{
	const uint64_t open = mr_track_open(s);

	mr_result_stream(v, r, MR_TRACK_TOTALS, 0, &s->head.key, MR_SEQTRACK_TOTALS_NUMBERS);
	mr_result_put(v, r, 8, s->units + s->missing + open);
	mr_result_put(v, r, 8, s->units);
	mr_result_put(v, r, 8, s->missing);
	mr_result_put(v, r, 8, open);
	mr_result_put(v, r, 8, s->received);
	mr_result_put(v, r, 8, s->placed);
	mr_result_put(v, r, 8, s->duplicate);
	mr_result_put(v, r, 8, s->late);
	mr_result_put(v, r, 8, s->reordered);
	mr_result_put(v, r, 8, s->malformed);
	mr_result_put(v, r, 8, s->unknown);
	mr_result_put(v, r, 8, s->filtered);
	mr_result_put(v, r, 8, s->restarts);
	mr_result_put(v, r, 8, s->steps);
}

/* The next stream that a tick looks at, with what is too old given up; NULL: it was the last. */
MR_HD struct mr_stream *mr_seqtrack_next(const struct mr_ctx *ctx, struct mr_seqtrack_state *st)
{
	const struct mr_seqtrack_params *p = (const struct mr_seqtrack_params *)ctx->params;
	const int last = ctx->tick == MR_TICK_LAST;
	struct mr_books b = mr_seqtrack_books(ctx, st);
	struct mr_seqtrack_before before;
	struct mr_stream *s;

	s = (struct mr_stream *)mr_streams_next(ctx, &st->streams, mr_seqtrack_streams(st));
	if (s == NULL)
		return NULL;
	before = mr_seqtrack_before(s);
	mr_track_age(&b, s, last ? 0 : (uint64_t)p->late_ms * 1000000u);
	mr_seqtrack_settle(ctx, st, &b, s, &before);
	return s;
}

/*
 * Writes what there is to tell: events, and of a tick the totals of streams that are due, each
 * behind the events of its stream. It ends where a record has no room.
 */
MR_HD void mr_seqtrack_write(const struct mr_ctx *ctx, struct mr_seqtrack_state *st,
	const struct mr_view *v, struct mr_result *r, int wanted)
{
	const struct mr_seqtrack_params *p = (const struct mr_seqtrack_params *)ctx->params;
	const uint64_t report_ns =
		ctx->tick == MR_TICK_LAST ? 0 : (uint64_t)p->report_ms * 1000000u;
	uint32_t left = mr_streams_share(ctx, &st->streams);
	struct mr_track_queue *q = &st->queue;
	struct mr_stream *s = NULL;

	for (;;) {
		while (q->tail != q->head && mr_result_fits(v, r, MR_SEQTRACK_EVENT))
			mr_seqtrack_put_event(
				v, r, &mr_seqtrack_events(st)[q->tail++ & (st->events - 1)]);
		/* A gap can wait in its stream for longer than in a full queue. */
		if (wanted && q->tail != q->head)
			return;
		if (s != NULL && !wanted) {
			s->head.dirty &= ~MR_STREAM_UNTOLD;
		} else if (s != NULL && (s->head.dirty & MR_STREAM_UNTOLD) != 0 &&
			ctx->now_ns - s->told_ns >= report_ns) {
			if (!mr_result_fits(v, r, MR_SEQTRACK_TOTALS))
				return;
			mr_seqtrack_put_totals(v, r, s);
			s->head.dirty &= ~MR_STREAM_UNTOLD;
			s->told_ns = ctx->now_ns;
		}
		st->streams.cursor += s != NULL;
		if (left-- == 0)
			return;
		s = mr_seqtrack_next(ctx, st);
		if (s == NULL)
			return;
	}
}

/* Makes a result in the view, if there is something to tell; MR_NEXT: there is not. */
MR_HD enum mr_flow mr_seqtrack_tell(
	const struct mr_ctx *ctx, struct mr_seqtrack_state *st, struct mr_view *v)
{
	const struct mr_seqtrack_params *p = (const struct mr_seqtrack_params *)ctx->params;
	const uint32_t length = v->length;
	struct mr_result r = {0};
	int wanted;

	r.at = v->room; /* where there are no results nothing fits */
	wanted = mr_result_wanted(&p->to) && mr_result_begin(v, &p->to, &r);
	mr_seqtrack_write(ctx, st, v, &r, wanted);
	if (r.records != 0) {
		mr_count(ctx, MR_SEQTRACK_RESULTS, r.records);
		mr_result_end(v, &p->to, &r, MR_RESULT_STREAMS, st->number++, st->queue.lost,
			ctx->now_ns);
		return mr_send(v, p->to.port);
	}
	v->length = length;
	return mr_streams_go_on(ctx, &st->streams, v);
}

/* A packet of a stream, or a blank buffer, in its turn. */
MR_HD enum mr_flow mr_seqtrack_turn(const struct mr_ctx *ctx, struct mr_seqtrack_state *st,
	struct mr_view *v, const struct mr_headers *h, struct mr_seen *seen)
{
	const struct mr_seqtrack_params *p = (const struct mr_seqtrack_params *)ctx->params;

	mr_seqtrack_begin(ctx, st);
	if (ctx->tick == MR_TICK_NOT) {
		mr_seqtrack_packet(ctx, st, v, h, seen);
		if (p->common.forward)
			return MR_NEXT;
		(void)mr_drop(v, MR_REASON_consumed);
		/* Events that would not fill a frame wait for a tick. */
		if (st->queue.head - st->queue.tail < (p->to.bytes - 128) / MR_SEQTRACK_EVENT)
			return MR_STOP;
	}
	return mr_seqtrack_tell(ctx, st, v) == MR_STOP || ctx->tick == MR_TICK_NOT ? MR_STOP
										   : MR_NEXT;
}

MR_HD enum mr_flow mr_stage_seqtrack(const struct mr_ctx *ctx, struct mr_view *v)
{
	struct mr_seqtrack_state *st = (struct mr_seqtrack_state *)ctx->state;
	const struct mr_format_table *table = (const struct mr_format_table *)ctx->table;
	const struct mr_format_row *row = NULL;
	enum mr_flow flow = MR_NEXT;
	/* Zeroed, since a compiler does not see that a row is what fills them. */
	struct mr_headers h = {0};
	struct mr_seen seen = {0};

	/* What needs no order, and so is done by all threads at a time. */
	if (ctx->live && ctx->tick == MR_TICK_NOT && table != NULL) {
		mr_walk(v, 0, &h);
		row = mr_format_find(table, v, &h);
		if (row != NULL)
			mr_format_read(row, v, &h, &seen);
	}
	MR_ROLLED
	for (uint32_t turn = 0; turn < mr_turns(); turn = mr_turn_next(turn)) {
		if (turn != ctx->rank || !ctx->live || st == NULL)
			continue;
		if (row != NULL || ctx->tick != MR_TICK_NOT)
			flow = mr_seqtrack_turn(ctx, st, v, &h, &seen);
	}
	return flow;
}

#if defined(MR_STAGE_DESCRIBE)
static const struct mr_param_desc seqtrack_params[] = {
	MR_STREAMS_PARAMS(
		1u << 24, "4096", "that are kept at a time, some 600 bytes of GPU memory each"),
	{.name = "templates",
		.type = MR_PARAM_U32,
		.offset = offsetof(struct mr_seqtrack_params, templates),
		.min = 16,
		.max = 1u << 20,
		.def = "1024",
		.unit = "templates",
		.help = "of IPFIX that are remembered"},
	{.name = "window",
		.type = MR_PARAM_U64,
		.offset = offsetof(struct mr_seqtrack_params, window),
		.min = 1,
		.max = 1u << 30,
		.def = "4096",
		.unit = "units",
		.help = "how far behind the newest a missing one is waited for"},
	{.name = "late_ms",
		.type = MR_PARAM_U32,
		.offset = offsetof(struct mr_seqtrack_params, late_ms),
		.min = 1,
		.max = 1000000,
		.def = "100",
		.unit = "ms",
		.help = "how long; needs tick_us"},
	{.name = "leap",
		.type = MR_PARAM_U64,
		.offset = offsetof(struct mr_seqtrack_params, leap),
		.min = 1,
		.max = 1ull << 40,
		.def = "16777216",
		.unit = "units",
		.help = "most that may be missing at once; beyond it, or a 16th of the modulus, "
			"the sender is taken to begin anew, and larger heaps are late"},
	{.name = "events",
		.type = MR_PARAM_U32,
		.offset = offsetof(struct mr_seqtrack_params, events),
		.min = 16,
		.max = 1u << 20,
		.def = "4096",
		.unit = "events",
		.help = "that may wait to be told, rounded up to a power of two"},
	{.name = "report_ms",
		.type = MR_PARAM_U32,
		.offset = offsetof(struct mr_seqtrack_params, report_ms),
		.min = 1,
		.max = 1000000,
		.def = "1000",
		.unit = "ms",
		.help = "how often a stream's totals are told at most"},
	MR_RESULT_PARAMS(mr_seqtrack_params, to),
};

static uint64_t seqtrack_state_bytes(const uint8_t params[MR_PARAM_BYTES])
{
	return mr_seqtrack_bytes((const struct mr_seqtrack_params *)params);
}

static const struct mr_state_desc seqtrack_state = {seqtrack_state_bytes, NULL, "streams"};

static int seqtrack_check(
	const uint8_t params[MR_PARAM_BYTES], uint32_t frame_bytes, struct mr_err *err)
{
	const struct mr_seqtrack_params *p = (const struct mr_seqtrack_params *)params;

	return mr_result_check("seqtrack", &p->to, frame_bytes, err);
}

/* As mr_streams.h has it. */
_Static_assert(
	offsetof(struct mr_seqtrack_params, common) == 0, "parameters begin with those of streams");
_Static_assert(MR_SEQTRACK_REPLACED == MR_SEQTRACK_STREAMS + 1,
	"a stream that is new is counted in one place");

static const struct mr_stage_counter seqtrack_counters[] = {
	MR_STREAMS_COUNTERS(MR_SEQTRACK),
	[MR_SEQTRACK_PLACED] = {"placed", "of them, packets that came for the first time"},
	[MR_SEQTRACK_LATE] = {"late", "packets whose gap was given up, or far from their stream"},
	[MR_SEQTRACK_UNKNOWN] = {"unknown",
		"packets without a number, and IPFIX with data of unknown templates"},
	[MR_SEQTRACK_REORDERED] = {"reordered", "of those placed, packets that filled a gap"},
	[MR_SEQTRACK_UNITS] = {"units", "packets, records or bytes that were placed"},
	[MR_SEQTRACK_MISSING] = {"missing", "of the same, those that were given up"},
	[MR_SEQTRACK_GAPS] = {"gaps", "times that some were given up"},
	[MR_SEQTRACK_STEPS] = {"clock_steps", "times that a sender's clock was set"},
	[MR_SEQTRACK_RESULTS_LOST] = {"results_lost",
		"events that found their queue full, or result_dst taken away"},
};

const struct mr_stage_desc mr_stage_desc_seqtrack = {
	.name = "seqtrack",
	.help = "find loss, duplicates, order and restarts in streams of sensors and telemetry",
	.id = MR_STAGE_seqtrack,
	.work = MR_WORK_ORDER,
	.timed = true,
	.ticks = true,
	.params = seqtrack_params,
	.params_count = MR_ARRAY_LEN(seqtrack_params),
	.check = seqtrack_check,
	.table = &mr_streams_table,
	.counters = seqtrack_counters,
	.counters_count = MR_ARRAY_LEN(seqtrack_counters),
	.state = &seqtrack_state,
};
#endif

#endif
