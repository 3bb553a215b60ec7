/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unpack - what streams of samples are like: least, most, mean, RMS, clipped samples, histogram
 * and threshold crossings of each window.
 *
 *     packet ─ table of formats ─► its stream ─► its window (mr_window.h)    rank 0
 *       └─ payload ─ n-bit samples (mr_unpack.h) ─► sums of the window       all threads
 *                       closed windows ─ queue ─► results                    all threads
 *
 * Payload is samples of `bits` from its first byte on, packed without padding; what is left
 * behind the last whole one is not looked at. With several channels they take turns, beginning
 * with channel 0 in each packet (I and Q are two). Formats that bear no samples, and packets of
 * others that do not (VITA 49.2 context, eCPRI control), are counted as unknown and pass.
 *
 * A crossing is a sample below the threshold and the next one of its channel at or above it.
 * Between the last sample of a packet and the first of the next it counts, in the window of the
 * latter, if the one came right behind the other; what came between or was lost is not made up for.
 *
 * Results are of kind MR_RESULT_WINDOWS: a record for each channel of a window. What it tells is
 * enum mr_window_kind, its flags are MR_WINDOW_*; numbers of 8 bytes:
 *
 *      0  number on the wire of the window's first unit (of time: that came); a heap's number
 *      1  time: seconds, 2 picoseconds: of time, where the window begins; else of its first
 *         packet, as its format has it
 *      3  length: microseconds; units of the sequence number; bytes of the heap, 0 if not known
 *      4  units expected, 5 units received, 6 packets added, 7 duplicates
 *      8  late packets of the stream, since the window that was told before
 *      9  channel, channels, bits, bins: 2 bytes each
 *     10  samples, 11 their sum, 12 sum of squares, 13 least, 14 most (11, 13, 14: signed)
 *     15  mean times 2^32 (signed), 16 RMS times 2^32
 *     17  clipped samples, 18 crossings
 *     19  bins of 4 bytes: samples by the top bits of their distance from the least value; 256,
 *         or as many as there are values, or 64 where a frame does not hold 256
 *
 * With `forward: false` packets end here, and their buffers bear results too.
 */
#ifndef MR_STAGE_UNPACK_CU
#define MR_STAGE_UNPACK_CU

#include "mr_stage.h"

#include "mr_result.h"
#include "mr_window.h"

#define MR_UNPACK_NUMBERS 19u
#define MR_UNPACK_RECORD (MR_RESULT_STREAM + 8 * MR_UNPACK_NUMBERS) /* without bins */
#define MR_UNPACK_BINS_FEW 64u

struct mr_unpack_params {
	struct mr_streams_params common;
	struct mr_result_to to;
	uint64_t window_us, window_units;
	uint32_t bits, order, coding; /* places in their lists of words */
	uint32_t channels;
	uint32_t threshold, threshold_negative;
	uint32_t results;
	uint32_t late_ms;
};

enum mr_unpack_counter {
	MR_UNPACK_RECEIVED,
	MR_UNPACK_PLACED,
	MR_UNPACK_DUPLICATE,
	MR_UNPACK_LATE,
	MR_UNPACK_MALFORMED,
	MR_UNPACK_UNKNOWN,
	MR_UNPACK_FILTERED,
	MR_UNPACK_OVERFLOW,
	MR_UNPACK_SAMPLES,
	MR_UNPACK_WINDOWS,
	MR_UNPACK_INCOMPLETE,
	MR_UNPACK_AGED,
	MR_UNPACK_RESTARTS,
	MR_UNPACK_STREAMS,
	MR_UNPACK_REPLACED,
	MR_UNPACK_RESULTS,
	MR_UNPACK_RESULTS_LOST,
};

/*
 * The lane's memory: this, windows, streams. How many there are of each is written once, so
 * that parameters of a reload cannot lay it out anew.
 */
struct mr_unpack_state {
	struct mr_streams streams;
	struct mr_windows pool;
	struct mr_window_setting setting; /* that was last */
	uint32_t setting_number;
	uint32_t channels;
	uint32_t number; /* of the next result */
	uint32_t lost;   /* records of windows that were lost */
	/* Events of mr_track.h are not told. */
	struct mr_track_queue queue;
	struct mr_track_event event;
};

MR_HD uint8_t *mr_unpack_windows(struct mr_unpack_state *st)
{
	return (uint8_t *)(st + 1);
}

MR_HD void *mr_unpack_streams(struct mr_unpack_state *st)
{
	return mr_unpack_windows(st) + (uint64_t)st->pool.capacity * st->pool.stride;
}

MR_HD uint64_t mr_unpack_bytes(const struct mr_unpack_params *p)
{
	return sizeof(struct mr_unpack_state) +
		(2ull * p->common.streams + p->results) * mr_window_stride(p->channels) +
		mr_streams_bytes(p->common.streams, sizeof(struct mr_window_stream));
}

MR_HD struct mr_window_setting mr_unpack_setting(const struct mr_unpack_params *p)
{
	struct mr_window_setting s;

	s.format.bits = (uint32_t)(0x100c0a08040201 >> 8 * p->bits & 0xff); /* 1 2 4 8 10 12 16 */
	s.format.little = p->order;
	s.format.offset = p->coding;
	s.threshold = p->threshold_negative ? -(int32_t)p->threshold : (int32_t)p->threshold;
	s.us = p->window_us;
	s.units = p->window_units;
	return s;
}

MR_HD void mr_unpack_begin(const struct mr_ctx *ctx, struct mr_unpack_state *st)
{
	const struct mr_unpack_params *p = (const struct mr_unpack_params *)ctx->params;
	const struct mr_window_setting now = mr_unpack_setting(p), *was = &st->setting;

	if (st->streams.capacity == 0) {
		mr_streams_begin(&st->streams, p->common.streams, sizeof(struct mr_window_stream),
			ctx->now_ns);
		st->channels = p->channels;
		st->pool.capacity = 2 * p->common.streams + p->results;
		st->pool.stride = mr_window_stride(p->channels);
	}
	if (!mr_result_wanted(&p->to))
		mr_window_forget(&st->pool, mr_unpack_windows(st));
	if (now.format.bits != was->format.bits || now.format.little != was->format.little ||
		now.format.offset != was->format.offset || now.threshold != was->threshold ||
		now.us != was->us || now.units != was->units) {
		st->setting = now;
		st->setting_number++;
	}
}

MR_HD struct mr_window_books mr_unpack_books(const struct mr_ctx *ctx, struct mr_unpack_state *st)
{
	const struct mr_unpack_params *p = (const struct mr_unpack_params *)ctx->params;
	struct mr_window_books b;

	b.pool = &st->pool;
	b.memory = mr_unpack_windows(st);
	b.setting = st->setting;
	b.setting_number = st->setting_number;
	b.waits = (uint32_t)mr_result_wanted(&p->to);
	st->queue.tail = st->queue.head;
	b.track.queue = &st->queue;
	b.track.events = &st->event;
	b.track.events_mask = 0;
	b.track.now_ns = ctx->now_ns;
	b.track.window = 0; /* mr_window_find() */
	b.track.leap = 1u << 24;
	b.track.at = 0;
	b.track.gaps = b.track.restarts = b.track.steps = 0;
	return b;
}

/* Counts what came of windows. */
MR_HD void mr_unpack_settle(const struct mr_ctx *ctx, struct mr_unpack_state *st)
{
	struct mr_windows *p = &st->pool;
	const uint32_t lost = p->lost * st->channels - p->lost_told;

	if ((p->closed | p->lost) == 0)
		return;
	mr_count(ctx, MR_UNPACK_WINDOWS, p->closed);
	mr_count(ctx, MR_UNPACK_INCOMPLETE, p->incomplete);
	mr_count(ctx, MR_UNPACK_AGED, p->aged);
	mr_count(ctx, MR_UNPACK_RESULTS_LOST, lost);
	st->lost += lost;
	p->closed = p->incomplete = p->aged = p->lost = p->lost_told = 0;
}

/* Whether packets like it bear samples. */
MR_HD int mr_unpack_bears(const struct mr_seen *s)
{
	switch (s->format) {
	case MR_FORMAT_vrt:
		return s->id[1] < 4; /* data and extension data */
	case MR_FORMAT_ecpri:
		return s->id[1] < 2; /* IQ data */
	case MR_FORMAT_spead:
	case MR_FORMAT_vdif:
	case MR_FORMAT_vtp:
	case MR_FORMAT_rtp:
	case MR_FORMAT_custom:
		return 1;
	default:
		return 0;
	}
}

/* What rank 0 knows of the packet in hand. */
struct mr_unpack_packet {
	struct mr_window_stream *stream;
	struct mr_window *window; /* NULL: its samples are not added */
	uint64_t at;
	uint32_t is_new;
};

/* Finds the window of a packet, and counts it. */
MR_HD void mr_unpack_place(const struct mr_ctx *ctx, struct mr_unpack_state *st,
	const struct mr_view *v, const struct mr_headers *h, const struct mr_seen *seen,
	struct mr_unpack_packet *p)
{
	const struct mr_unpack_params *params = (const struct mr_unpack_params *)ctx->params;
	struct mr_window_books b = mr_unpack_books(ctx, st);
	enum mr_window_class c;
	struct mr_stream_key key;

	mr_count(ctx, MR_UNPACK_RECEIVED, 1);
	if (seen->state == MR_SEEN_MALFORMED || seen->state == MR_SEEN_INVALID) {
		mr_count(ctx,
			seen->state == MR_SEEN_MALFORMED ? MR_UNPACK_MALFORMED : MR_UNPACK_FILTERED,
			1);
		return;
	}
	if (seen->state == MR_SEEN_OTHER || !mr_unpack_bears(seen)) {
		mr_count(ctx, MR_UNPACK_UNKNOWN, 1);
		return;
	}
	mr_streams_key(v, h, seen, &key);
	p->stream = (struct mr_window_stream *)mr_streams_find(ctx, &st->streams,
		mr_unpack_streams(st), &key, params->common.idle_s, MR_UNPACK_STREAMS);
	if (p->stream == NULL) {
		mr_count(ctx, MR_UNPACK_OVERFLOW, 1);
		return;
	}
	p->window = mr_window_find(&b, p->stream, seen, &c, &p->at, &p->is_new);
	mr_count(ctx,
		c == MR_WINDOW_PLACED              ? MR_UNPACK_PLACED
			: c == MR_WINDOW_DUPLICATE ? MR_UNPACK_DUPLICATE
						   : MR_UNPACK_LATE,
		1);
	if (b.track.restarts != 0)
		mr_count(ctx, MR_UNPACK_RESTARTS, b.track.restarts);
	if (p->window == NULL)
		return;
	/* The samples before are those of the packet before, or unknown. */
	if (p->at != p->stream->edge_at ||
		(seen->track == MR_TRACK_HEAP && seen->seq != p->stream->edge_heap))
		for (uint32_t i = 0; i < st->channels; i++)
			p->stream->edge[i] = INT32_MAX;
	p->stream->edge_at = p->at + seen->units;
	p->stream->edge_heap = seen->seq;
}

/* Adds n to a bin, as any thread; the other bin of its 8 bytes keeps its own, by their bounds. */
MR_HD void mr_unpack_bin_add(uint32_t *bins, uint32_t bin, uint32_t n)
{
#if defined(__CUDA_ARCH__)
	atomicAdd((unsigned long long *)&bins[bin & ~1u], (unsigned long long)n << 32 * (bin & 1));
#else
	bins[bin] += n;
#endif
}

/* A group of samples of the payload; what lies behind its end is 0. */
MR_HD struct mr_unpack_group mr_unpack_load(const struct mr_view *v, const struct mr_seen *seen,
	const struct mr_unpack_format *f, uint32_t group)
{
	const uint32_t at = seen->payload + group * f->bits;
	struct mr_unpack_group g;

	g.high = 0;
	g.low = 0;
	for (uint32_t i = at; i < at + f->bits; i++)
		mr_unpack_push(&g, f, i < seen->end ? mr_frame_load_1(v->frame + i) : 0);
	return g;
}

/*
 * Adds up one channel of a packet, a thread a group of samples, and all threads a row of groups
 * at a time. edge is the sample before, which only rank 0 has to know, and the last one
 * afterwards, for all.
 */
MR_HD void mr_unpack_channel(const struct mr_ctx *ctx, const struct mr_view *v,
	const struct mr_seen *seen, const struct mr_window_setting *set, uint32_t channel,
	uint32_t channels, uint32_t *bins, int32_t *edge, struct mr_unpack_sum *sum)
{
	const struct mr_unpack_format *f = &set->format;
	const uint32_t samples = (seen->end - seen->payload) * 8 / f->bits;
	uint64_t carry = (uint32_t)*edge;
	uint32_t bin = 0, run = 0;

	mr_unpack_sum_init(sum);
	MR_ROLLED
	for (uint32_t row = 0; row < samples; row += MR_UNPACK_GROUP * ctx->size) {
		const uint32_t first = row + MR_UNPACK_GROUP * ctx->rank;
		const struct mr_unpack_group g =
			mr_unpack_load(v, seen, f, first / MR_UNPACK_GROUP);
		uint32_t k = (channels + channel - first % channels) % channels;
		/* The channel's last one of these eight is the one before its first of the next. */
		const uint32_t end = k + (MR_UNPACK_GROUP - 1 - k) / channels * channels;
		int32_t before = (int32_t)(uint32_t)mr_group_before(
			ctx, (uint32_t)mr_unpack_value(&g, f, end), &carry);

		for (; k < MR_UNPACK_GROUP && first + k < samples; k += channels) {
			const int32_t value = mr_unpack_value(&g, f, k);
			const uint32_t in = mr_unpack_bin(f, value);

			mr_unpack_add(sum, f, value, before, set->threshold);
			before = value;
			/* Neighbours are often alike. */
			if (in != bin && run != 0) {
				mr_unpack_bin_add(bins, bin, run);
				run = 0;
			}
			bin = in;
			run++;
		}
	}
	if (run != 0)
		mr_unpack_bin_add(bins, bin, run);
	if (samples > channel) {
		const uint32_t end = channel + (samples - 1 - channel) / channels * channels;
		const struct mr_unpack_group g = mr_unpack_load(v, seen, f, end / MR_UNPACK_GROUP);

		*edge = mr_unpack_value(&g, f, end % MR_UNPACK_GROUP);
	}
	sum->count = mr_group_sum(ctx, sum->count);
	sum->total = (int64_t)mr_group_sum(ctx, (uint64_t)sum->total);
	sum->squares = mr_group_sum(ctx, sum->squares);
	sum->clipped = mr_group_sum(ctx, sum->clipped);
	sum->rising = mr_group_sum(ctx, sum->rising);
	/* Of two's complement, to numbers in the same order. */
	sum->least =
		(int32_t)((uint32_t)mr_group_min(ctx, (uint32_t)sum->least ^ 1u << 31) ^ 1u << 31);
	sum->most =
		(int32_t)((uint32_t)mr_group_max(ctx, (uint32_t)sum->most ^ 1u << 31) ^ 1u << 31);
}

/* Adds a packet's samples to the window that rank 0 found, by all threads. */
MR_HD void mr_unpack_samples(const struct mr_ctx *ctx, struct mr_unpack_state *st,
	const struct mr_view *v, const struct mr_seen *seen, struct mr_window_stream *stream,
	struct mr_window *w, uint32_t is_new)
{
	const struct mr_window_setting set = st->setting;
	struct mr_window_channel *to = mr_window_channels(w);

	for (uint32_t i = ctx->rank; is_new && i < MR_UNPACK_BINS * st->channels; i += ctx->size)
		to[i / MR_UNPACK_BINS].bins[i % MR_UNPACK_BINS] = 0;
	mr_group_sync(ctx);
	for (uint32_t c = 0; c < st->channels; c++, to++) {
		int32_t edge = ctx->rank == 0 ? stream->edge[c] : 0;
		struct mr_unpack_sum sum;

		mr_unpack_channel(ctx, v, seen, &set, c, st->channels, to->bins, &edge, &sum);
		if (ctx->rank != 0)
			continue;
		stream->edge[c] = edge;
		if (is_new)
			mr_unpack_sum_init(&to->sum);
		mr_unpack_merge(&to->sum, &sum);
		mr_count(ctx, MR_UNPACK_SAMPLES, sum.count);
		if (sum.clipped != 0)
			w->flags |= MR_WINDOW_CLIPPED;
	}
	mr_group_sync(ctx);
}

/* How many bins are told of so many bits, if the frame has room for `room` bytes of them. */
MR_HD uint32_t mr_unpack_bins_told(uint32_t bits, uint32_t room)
{
	const uint32_t bins = bits < 8 ? 1u << bits : MR_UNPACK_BINS;

	return 4 * bins <= room ? bins : MR_UNPACK_BINS_FEW;
}

/* Writes the numbers of a record, all but its bins. */
MR_HD void mr_unpack_put_numbers(const struct mr_view *v, struct mr_result *r, struct mr_window *w,
	uint32_t channel, uint32_t channels, uint32_t bins)
{
	const struct mr_unpack_sum *s = &mr_window_channels(w)[channel].sum;

	mr_result_stream(v, r, w->kind, w->flags, &w->key, MR_UNPACK_NUMBERS + bins / 2);
	mr_result_put(v, r, 8, w->at);
	mr_result_put(v, r, 8, w->time_s);
	mr_result_put(v, r, 8, w->time_ps);
	mr_result_put(v, r, 8, w->length);
	mr_result_put(v, r, 8, w->expected);
	mr_result_put(v, r, 8, w->units);
	mr_result_put(v, r, 8, w->packets);
	mr_result_put(v, r, 8, w->duplicate);
	mr_result_put(v, r, 8, w->late);
	mr_result_put(v, r, 2, channel);
	mr_result_put(v, r, 2, channels);
	mr_result_put(v, r, 2, w->bits);
	mr_result_put(v, r, 2, bins);
	mr_result_put(v, r, 8, s->count);
	mr_result_put(v, r, 8, (uint64_t)s->total);
	mr_result_put(v, r, 8, s->squares);
	mr_result_put(v, r, 8, (uint64_t)(s->count != 0 ? s->least : 0));
	mr_result_put(v, r, 8, (uint64_t)(s->count != 0 ? s->most : 0));
	mr_result_put(v, r, 8, (uint64_t)mr_unpack_mean(s));
	mr_result_put(v, r, 8, mr_unpack_rms(s));
	mr_result_put(v, r, 8, s->clipped);
	mr_result_put(v, r, 8, s->rising);
}

/* Writes records of closed windows, as many as fit, by all threads. */
MR_HD void mr_unpack_put(const struct mr_ctx *ctx, struct mr_unpack_state *st,
	const struct mr_view *v, struct mr_result *r)
{
	/* An empty frame says how many bins fit, so that all records of a run are alike. */
	const uint32_t room = v->length - r->at - MR_UNPACK_RECORD;

	while (st->pool.oldest != 0) {
		struct mr_window *w =
			mr_window_at(&st->pool, mr_unpack_windows(st), st->pool.oldest);
		const uint32_t bins = mr_unpack_bins_told(w->bits, room);
		const uint32_t each = (w->bits < 8 ? 1u << w->bits : MR_UNPACK_BINS) / bins;
		const uint32_t *bin = mr_window_channels(w)[w->told].bins;

		if (!mr_result_fits(v, r, MR_UNPACK_RECORD + 4 * bins))
			return;
		for (uint32_t i = ctx->rank; i < bins; i += ctx->size) {
			uint32_t n = 0;

			for (uint32_t k = 0; k < each; k++)
				n += bin[i * each + k];
			mr_put_be32(v, r->at + MR_UNPACK_RECORD + 4 * i, n);
		}
		if (ctx->rank == 0) {
			mr_unpack_put_numbers(v, r, w, w->told, st->channels, bins);
			r->at += 4 * bins;
		} else {
			r->at += MR_UNPACK_RECORD + 4 * bins;
			r->records++;
		}
		mr_group_sync(ctx);
		if (ctx->rank == 0 && ++w->told == st->channels)
			mr_window_free(&st->pool, mr_unpack_windows(st),
				mr_window_unqueue(&st->pool, mr_unpack_windows(st)));
		mr_group_sync(ctx);
	}
}

/* Makes a result in the view, by all threads; MR_NEXT: there is nothing to tell. */
MR_HD enum mr_flow mr_unpack_tell(
	const struct mr_ctx *ctx, struct mr_unpack_state *st, struct mr_view *v)
{
	const struct mr_unpack_params *p = (const struct mr_unpack_params *)ctx->params;
	const uint32_t length = v->length;
	struct mr_result r;

	if (st->pool.oldest == 0 || !mr_result_wanted(&p->to) || !mr_result_begin(v, &p->to, &r))
		return MR_NEXT;
	mr_unpack_put(ctx, st, v, &r);
	if (r.records == 0) {
		v->length = length;
		return MR_NEXT;
	}
	if (ctx->rank == 0) {
		mr_count(ctx, MR_UNPACK_RESULTS, r.records);
		mr_result_end(
			v, &p->to, &r, MR_RESULT_WINDOWS, st->number++, st->lost, ctx->now_ns);
	}
	(void)mr_view_resize(v, r.at);
	return mr_send(v, p->to.port);
}

/* Looks through streams for windows that are too old; on the last ticks, once through all. */
MR_HD void mr_unpack_scan(const struct mr_ctx *ctx, struct mr_unpack_state *st)
{
	const struct mr_unpack_params *p = (const struct mr_unpack_params *)ctx->params;
	struct mr_window_books b = mr_unpack_books(ctx, st);
	const uint64_t late_ns = ctx->tick == MR_TICK_LAST ? 0 : (uint64_t)p->late_ms * 1000000u;

	for (uint32_t left = mr_streams_share(ctx, &st->streams); left != 0; left--) {
		struct mr_stream_head *h =
			mr_streams_next(ctx, &st->streams, mr_unpack_streams(st));

		if (h == NULL)
			break;
		mr_window_age(&b, (struct mr_window_stream *)h, late_ns);
		st->streams.cursor++;
	}
	mr_unpack_settle(ctx, st);
}

/* A packet of a format, by all threads. */
MR_HD void mr_unpack_take(const struct mr_ctx *ctx, struct mr_unpack_state *st,
	const struct mr_view *v, const struct mr_headers *h, const struct mr_seen *seen)
{
	struct mr_unpack_packet p;
	uint64_t word = 0; /* what all have to know: where the window is, and whether it is new */

	p.stream = NULL;
	p.window = NULL;
	p.at = 0;
	p.is_new = 0;
	if (ctx->rank == 0) {
		mr_unpack_place(ctx, st, v, h, seen, &p);
		if (p.window != NULL)
			word = (uint64_t)((uint8_t *)p.window - mr_unpack_windows(st)) << 2 |
				p.is_new << 1 | 1;
	}
	word = mr_group_or(ctx, word);
	mr_group_sync(ctx);
	if (word != 0)
		mr_unpack_samples(ctx, st, v, seen, p.stream,
			(struct mr_window *)(mr_unpack_windows(st) + (word >> 2)), word >> 1 & 1);
	if (ctx->rank == 0) {
		struct mr_window_books b = mr_unpack_books(ctx, st);

		if (p.window != NULL)
			mr_window_settle(&b, p.stream, UINT64_MAX);
		mr_unpack_settle(ctx, st);
	}
	mr_group_sync(ctx);
}

/* A packet or a blank buffer, by all threads. */
MR_HD enum mr_flow mr_unpack_turn(
	const struct mr_ctx *ctx, struct mr_unpack_state *st, struct mr_view *v)
{
	const struct mr_format_table *table = (const struct mr_format_table *)ctx->table;
	const struct mr_format_row *row = NULL;
	/* Zeroed, since a compiler does not see that a row is what fills them. */
	struct mr_headers h = {0};
	struct mr_seen seen = {0};

	if (ctx->tick == MR_TICK_NOT && table != NULL) {
		mr_walk(v, 0, &h);
		row = mr_format_find(table, v, &h);
	}
	if (ctx->tick == MR_TICK_NOT && row == NULL)
		return MR_NEXT;
	if (ctx->rank == 0)
		mr_unpack_begin(ctx, st);
	if (row != NULL) {
		mr_format_read(row, v, &h, &seen);
		mr_unpack_take(ctx, st, v, &h, &seen);
		if (((const struct mr_unpack_params *)ctx->params)->common.forward)
			return MR_NEXT;
		(void)mr_drop(v, MR_REASON_consumed);
	} else {
		if (ctx->rank == 0)
			mr_unpack_scan(ctx, st);
		mr_group_sync(ctx);
	}
	if (mr_unpack_tell(ctx, st, v) == MR_STOP || row != NULL)
		return MR_STOP;
	return mr_streams_go_on(ctx, &st->streams, v);
}

MR_HD enum mr_flow mr_stage_unpack(const struct mr_ctx *ctx, struct mr_view *v)
{
	enum mr_flow flow = MR_NEXT;

	MR_ROLLED
	for (uint32_t turn = 0; turn < mr_turns(); turn = mr_turn_next(turn)) {
		struct mr_view view = *v;
		enum mr_flow all;

		if (!mr_turn_view(turn, ctx->live, &view) || ctx->state == NULL)
			continue;
		all = mr_unpack_turn(ctx, (struct mr_unpack_state *)ctx->state, &view);
		if (ctx->rank == turn) {
			*v = view;
			flow = all;
		}
	}
	return flow;
}

#if defined(MR_STAGE_DESCRIBE)
static const char *const unpack_bits[] = {"1", "2", "4", "8", "10", "12", "16", NULL};
static const char *const unpack_orders[] = {"big", "little", NULL};
static const char *const unpack_codings[] = {"twos", "offset", NULL};

static const struct mr_param_desc unpack_params[] = {
	MR_STREAMS_PARAMS(1u << 20, "256",
		"that are kept at a time, some 1200 bytes of GPU memory each, and 2200 for each "
		"channel"),
	{.name = "bits",
		.type = MR_PARAM_WORD,
		.offset = offsetof(struct mr_unpack_params, bits),
		.words = unpack_bits,
		.def = "8",
		.unit = "bits",
		.help = "of a sample; samples lie side by side without padding"},
	{.name = "order",
		.type = MR_PARAM_WORD,
		.offset = offsetof(struct mr_unpack_params, order),
		.words = unpack_orders,
		.def = "big",
		.unit = "",
		.help = "big: the first sample is in the highest bits of the first byte; little: "
			"in the lowest"},
	{.name = "coding",
		.type = MR_PARAM_WORD,
		.offset = offsetof(struct mr_unpack_params, coding),
		.words = unpack_codings,
		.def = "twos",
		.unit = "",
		.help = "twos: two's complement; offset: all bits 0 are the least value"},
	{.name = "channels",
		.type = MR_PARAM_U32,
		.offset = offsetof(struct mr_unpack_params, channels),
		.min = 1,
		.max = MR_WINDOW_CHANNELS,
		.def = "1",
		.unit = "",
		.help = "whose samples take turns; I and Q are two"},
	{.name = "threshold",
		.type = MR_PARAM_U32,
		.offset = offsetof(struct mr_unpack_params, threshold),
		.max = 32768,
		.def = "0",
		.unit = "",
		.help = "value that crossings are counted of, from below it to it or above"},
	{.name = "threshold_negative",
		.type = MR_PARAM_BOOL,
		.offset = offsetof(struct mr_unpack_params, threshold_negative),
		.def = "false",
		.unit = "",
		.help = "whether it is so much below 0"},
	{.name = "window_us",
		.type = MR_PARAM_U64,
		.offset = offsetof(struct mr_unpack_params, window_us),
		.min = 1,
		.max = 1ull << 40,
		.def = "100000",
		.unit = "us",
		.help = "of a window, by the time of the stream, where packets have one"},
	{.name = "window_units",
		.type = MR_PARAM_U64,
		.offset = offsetof(struct mr_unpack_params, window_units),
		.min = 1,
		.max = 1ull << 40,
		.def = "1024",
		.unit = "units",
		.help = "of a window, by sequence numbers, where packets have no time"},
	{.name = "late_ms",
		.type = MR_PARAM_U32,
		.offset = offsetof(struct mr_unpack_params, late_ms),
		.min = 1,
		.max = 1000000,
		.def = "100",
		.unit = "ms",
		.help = "after which a window is closed if nothing more came; needs tick_us"},
	{.name = "results",
		.type = MR_PARAM_U32,
		.offset = offsetof(struct mr_unpack_params, results),
		.min = 1,
		.max = 1u << 20,
		.def = "256",
		.unit = "windows",
		.help = "that may wait to be told, besides two for each stream"},
	MR_RESULT_PARAMS(mr_unpack_params, to),
};

static uint64_t unpack_state_bytes(const uint8_t params[MR_PARAM_BYTES])
{
	return mr_unpack_bytes((const struct mr_unpack_params *)params);
}

static const struct mr_state_desc unpack_state = {unpack_state_bytes, NULL, "streams"};

static int unpack_check(
	const uint8_t params[MR_PARAM_BYTES], uint32_t frame_bytes, struct mr_err *err)
{
	const struct mr_unpack_params *p = (const struct mr_unpack_params *)params;

	return mr_result_check("unpack", &p->to, frame_bytes, err);
}

/* As mr_streams.h has it. */
_Static_assert(
	offsetof(struct mr_unpack_params, common) == 0, "parameters begin with those of streams");
_Static_assert(MR_UNPACK_REPLACED == MR_UNPACK_STREAMS + 1,
	"a stream that is new is counted in one place");

static const struct mr_stage_counter unpack_counters[] = {
	MR_STREAMS_COUNTERS(MR_UNPACK),
	[MR_UNPACK_PLACED] = {"placed", "of them, packets whose samples were added to a window"},
	[MR_UNPACK_LATE] = {"late", "packets whose window was closed, or far from their stream"},
	[MR_UNPACK_UNKNOWN] = {"unknown", "packets without samples or without a number"},
	[MR_UNPACK_SAMPLES] = {"samples", "samples that were added"},
	[MR_UNPACK_WINDOWS] = {"windows", "windows that were closed"},
	[MR_UNPACK_INCOMPLETE] = {"incomplete", "of them, those that lacked something"},
	[MR_UNPACK_AGED] = {"aged", "of them, those that were closed since nothing more came"},
	[MR_UNPACK_RESULTS_LOST] = {"results_lost",
		"records of windows that nobody took in time, or result_dst taken away"},
};

const struct mr_stage_desc mr_stage_desc_unpack = {
	.name = "unpack",
	.help = "unpack samples of 1 to 16 bits: extremes, mean, RMS, clipping, histogram by "
		"window",
	.id = MR_STAGE_unpack,
	.work = MR_WORK_ORDER,
	.timed = true,
	.ticks = true,
	.params = unpack_params,
	.params_count = MR_ARRAY_LEN(unpack_params),
	.check = unpack_check,
	.table = &mr_streams_table,
	.counters = unpack_counters,
	.counters_count = MR_ARRAY_LEN(unpack_counters),
	.state = &unpack_state,
};
#endif

#endif
