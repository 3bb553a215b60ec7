/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_window - the windows of streams of samples: which packet is of which, when one is closed,
 * and what it should bear.
 *
 *     packet ─ mr_window_find ─► open window ─► sums (the caller's) ─ mr_window_settle ─┐
 *                  │ duplicate, late                                   complete, passed │
 *                  ▼                                                   mr_window_age    ▼
 *               counts                                                           closed: a queue
 *
 * Which. A packet is of the window of its first sample, whole.
 *
 *     MR_WINDOW_TIME     so many microseconds of the stream's own time, from multiples of that
 *                        since its epoch, where packets tell a time of day
 *     MR_WINDOW_NUMBER   so many units of its sequence numbers, from multiples of that since 0
 *     MR_WINDOW_HEAP     a heap (SPEAD); units are bytes
 *
 * VDIF tells whole seconds, so its windows are of frames, numbered on from the second in which
 * the stream began: they begin with each second if that has a multiple of frames.
 *
 * When. At most two are open, the newest and the one before it; the packet that is furthest
 * ahead says which is the newest. A window is closed when all that it should bear came, when
 * the packet furthest ahead is two windows on or further, or anywhere else (a clock that was
 * set), when the sender begins anew, or when no packet was added for some time. A packet of a
 * window that is closed, or has MR_WINDOW_SAMPLES_MAX, or from in front of the stream's beginning,
 * is late.
 *
 * What. A window of numbers should bear them all, or those since the stream began. One of time
 * should bear what lies between its first packet and that of the next window: what is lost at
 * the border counts to the first of both. Without a next one it is known what came, no more
 * (MR_WINDOW_LEAST). So what is expected adds up to all that was sent, whatever was lost where.
 * Of a heap its packets say it. Windows of which nothing came are not made.
 *
 * Where packets are in their stream, and whether the sender began anew, mr_track.h says; its
 * packet that is held is late. Duplicates of packets of one unit are known exactly among
 * MR_WINDOW_SEEN behind the furthest, and what lies further back is late; with other units
 * mr_track.h says that too.
 *
 * Memory. Windows are a pool, so that a closed one needs no copy: it waits in a queue until it is
 * told. There are two for each stream, and those that may wait besides; when a new one is
 * wanted and none is free, the one that has waited for longest is lost. Zeroes are its beginning.
 *
 * Thread   one at a time, in the order of the packets.
 */
#ifndef MR_WINDOW_H
#define MR_WINDOW_H

#include "mr_track.h"
#include "mr_unpack.h"

#define MR_WINDOW_CHANNELS 4u
#define MR_WINDOW_SEEN 512u

/* What one channel had. */
struct mr_window_channel {
	struct mr_unpack_sum sum;
	uint32_t bins[MR_UNPACK_BINS];
};

/* A channel with more takes none: its bins stay below 2^32. */
#define MR_WINDOW_SAMPLES_MAX 0xfff00000u

enum mr_window_kind {
	MR_WINDOW_NONE,
	MR_WINDOW_TIME,
	MR_WINDOW_NUMBER,
	MR_WINDOW_HEAP,
};

/* Flags of a window. */
#define MR_WINDOW_INCOMPLETE (1u << 0) /* less came than expected */
#define MR_WINDOW_CLIPPED (1u << 1)    /* a sample was at an end of what its bits can say */
#define MR_WINDOW_NO_TIME (1u << 2)    /* its packets had no time */
#define MR_WINDOW_AGED (1u << 3)       /* closed since nothing more came */
#define MR_WINDOW_BEGAN (1u << 4)      /* the stream began, or began anew, in it */
#define MR_WINDOW_LEAST (1u << 5)      /* what is expected is the least that it was */

/* What samples are, and windows; when it changes, windows begin anew. */
struct mr_window_setting {
	struct mr_unpack_format format;
	int32_t threshold;
	uint64_t us, units; /* length of windows of time, and of numbers */
};

/* Behind it lie the struct mr_window_channel of all channels. */
struct mr_window {
	struct mr_stream_key key;
	uint32_t next; /* in the list that it is in, + 1 */
	uint32_t kind; /* enum mr_window_kind */
	uint32_t flags;
	uint32_t bits;
	uint32_t told;   /* channels of it that were told */
	uint64_t number; /* window of the stream; a heap's number */
	uint64_t length; /* us, units, or the heap's bytes */
	uint64_t at;     /* number on the wire of its first unit (TIME: that came); the heap's */
	uint64_t time_s, time_ps; /* TIME: when it begins; else of its first packet that came */
	uint64_t first, end;      /* positions: of the first unit that came, behind the last */
	uint64_t from;            /* NUMBER: of the first unit that should come */
	uint64_t expected, units; /* that came */
	uint64_t packets;         /* added */
	uint64_t duplicate, late; /* packets; late: since the stream's last window was closed */
	uint64_t added_ns;        /* device's clock at the last of them */
};

struct mr_window_stream {
	struct mr_stream track;             /* begins with its head; dirty: windows are open */
	uint64_t seen[MR_WINDOW_SEEN / 64]; /* bits of positions that came, up to `next` */
	uint64_t next;
	uint64_t begin;  /* position of its first packet */
	uint64_t over;   /* NUMBER: where the stream began; end of a packet in two windows */
	uint64_t border; /* TIME: what lies before it was expected of closed windows */
	uint64_t newest; /* window of the packet furthest ahead */
	uint64_t late;   /* packets that no window has told yet */
	uint64_t duplicate;
	uint64_t edge_at, edge_heap; /* behind the packet whose last samples are in edge */
	int32_t edge[MR_WINDOW_CHANNELS];
	uint32_t open[2]; /* windows, + 1 */
	uint32_t done;    /* bit 0: the newest window is closed, bit 1: the one before it */
	uint32_t kind;    /* enum mr_window_kind; NONE: it has not begun */
	uint32_t setting; /* that it has */
	uint32_t several; /* 1: a packet had other than one unit */
};

/* The pool, and what came of windows since the caller counted it. */
struct mr_windows {
	uint32_t capacity, stride; /* stride: bytes of a window, a multiple of 8 */
	uint32_t used;             /* that were ever taken */
	uint32_t free;             /* first of those that are free, + 1 */
	uint32_t oldest, last;     /* of those that wait, + 1 */
	uint32_t closed, incomplete, aged, lost;
	uint32_t lost_told; /* channels of lost ones that were told */
	uint32_t waiting;   /* how many wait */
};

/* What the functions below work with. */
struct mr_window_books {
	struct mr_windows *pool;
	uint8_t *memory; /* of the windows */
	struct mr_books track;
	struct mr_window_setting setting;
	uint32_t setting_number; /* changes with it */
	uint32_t waits;          /* 0: nobody is told, so closed windows are free at once */
};

/* What became of a packet. */
enum mr_window_class {
	MR_WINDOW_PLACED,
	MR_WINDOW_DUPLICATE,
	MR_WINDOW_LATE,
};

MR_HD uint32_t mr_window_stride(uint32_t channels)
{
	return (uint32_t)(sizeof(struct mr_window) + channels * sizeof(struct mr_window_channel));
}

MR_HD struct mr_window *mr_window_at(const struct mr_windows *p, uint8_t *memory, uint32_t i)
{
	return (struct mr_window *)(memory + (uint64_t)(i - 1) * p->stride);
}

MR_HD struct mr_window_channel *mr_window_channels(struct mr_window *w)
{
	return (struct mr_window_channel *)(w + 1);
}

/* Takes the window that has waited for longest out of the queue. */
MR_HD uint32_t mr_window_unqueue(struct mr_windows *p, uint8_t *memory)
{
	const uint32_t i = p->oldest;

	p->oldest = mr_window_at(p, memory, i)->next;
	if (p->oldest == 0)
		p->last = 0;
	p->waiting--;
	return i;
}

MR_HD void mr_window_free(struct mr_windows *p, uint8_t *memory, uint32_t i)
{
	mr_window_at(p, memory, i)->next = p->free;
	p->free = i;
}

MR_HD uint32_t mr_window_take(struct mr_windows *p, uint8_t *memory)
{
	const uint32_t i = p->free;

	if (i != 0) {
		p->free = mr_window_at(p, memory, i)->next;
		return i;
	}
	if (p->used < p->capacity)
		return ++p->used;
	p->lost++;
	p->lost_told += mr_window_at(p, memory, p->oldest)->told;
	return mr_window_unqueue(p, memory);
}

/* mr_window_forget gives up all that wait, since nobody is told any more. */
MR_HD void mr_window_forget(struct mr_windows *p, uint8_t *memory)
{
	if (p->waiting == 0)
		return;
	p->lost += p->waiting;
	p->lost_told += mr_window_at(p, memory, p->oldest)->told;
	mr_window_at(p, memory, p->last)->next = p->free;
	p->free = p->oldest;
	p->oldest = p->last = p->waiting = 0;
}

/* The open window of a number, or NULL; *ret_i says which of both it is. */
MR_HD struct mr_window *mr_window_open_of(struct mr_window_books *b,
	const struct mr_window_stream *s, uint64_t number, uint32_t *ret_i)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct mr_window *w =
			s->open[i] == 0 ? NULL : mr_window_at(b->pool, b->memory, s->open[i]);

		*ret_i = i;
		if (w != NULL && w->number == number)
			return w;
	}
	return NULL;
}

/* What a window should bear, as far as it is known; *ret_known 0: it may be more. */
MR_HD uint64_t mr_window_expects(struct mr_window_books *b, const struct mr_window_stream *s,
	const struct mr_window *w, int *ret_known)
{
	const struct mr_window *next = NULL;
	uint64_t end = w->end;
	uint32_t i;

	*ret_known = 1;
	if (w->kind == MR_WINDOW_NUMBER)
		return (w->number + 1) * w->length - w->from;
	if (w->kind == MR_WINDOW_HEAP) {
		*ret_known = w->length != 0;
		return *ret_known ? w->length : w->units;
	}
	if (w->number != s->newest)
		next = mr_window_open_of(b, s, s->newest, &i);
	if (next != NULL)
		end = next->first;
	*ret_known = next != NULL;
	return (int64_t)(end - s->border) > 0 ? end - s->border : 0;
}

/* Closes one of both open windows. */
MR_HD void mr_window_close(
	struct mr_window_books *b, struct mr_window_stream *s, uint32_t i, uint32_t flags)
{
	const uint32_t index = s->open[i];
	struct mr_window *w = mr_window_at(b->pool, b->memory, index);
	int known;

	w->expected = mr_window_expects(b, s, w, &known);
	w->flags |= flags;
	if (!known)
		w->flags |= MR_WINDOW_LEAST;
	if (w->kind == MR_WINDOW_TIME) {
		w->at = mr_track_wire(&s->track, w->first + s->track.modulus);
		s->border += w->expected;
	}
	if (w->units < w->expected)
		w->flags |= MR_WINDOW_INCOMPLETE;
	if (s->newest - w->number < 2)
		s->done |= 1u << (s->newest - w->number);
	w->late = s->late;
	w->duplicate += s->duplicate;
	s->late = 0;
	s->duplicate = 0;
	s->open[i] = 0;
	s->track.head.dirty = (s->open[0] | s->open[1]) != 0 ? MR_STREAM_WAITS : 0;
	b->pool->closed++;
	b->pool->incomplete += w->flags & MR_WINDOW_INCOMPLETE;
	b->pool->aged += (w->flags & MR_WINDOW_AGED) != 0;
	if (!b->waits) {
		mr_window_free(b->pool, b->memory, index);
		return;
	}
	w->next = 0;
	if (b->pool->last != 0)
		mr_window_at(b->pool, b->memory, b->pool->last)->next = index;
	else
		b->pool->oldest = index;
	b->pool->last = index;
	b->pool->waiting++;
}

/* Closes both open windows, the earlier first. */
MR_HD void mr_window_close_all(struct mr_window_books *b, struct mr_window_stream *s)
{
	uint32_t i;

	if (mr_window_open_of(b, s, s->newest - 1, &i) != NULL)
		mr_window_close(b, s, i, 0);
	for (i = 0; i < 2; i++)
		if (s->open[i] != 0)
			mr_window_close(b, s, i, 0);
}

/* Whether the packet at a position came before; from now on it did. */
MR_HD enum mr_window_class mr_window_saw(struct mr_window_stream *s, uint64_t at)
{
	uint64_t *word = &s->seen[at % MR_WINDOW_SEEN / 64], bit = 1ull << at % 64;

	if ((int64_t)(at - s->next) >= 0) {
		uint64_t n = at - s->next < MR_WINDOW_SEEN ? at - s->next + 1 : MR_WINDOW_SEEN;

		MR_ROLLED
		for (; n > 0; n--)
			s->seen[(at - n + 1) % MR_WINDOW_SEEN / 64] &= ~(1ull << (at - n + 1) % 64);
		s->next = at + 1;
	} else if (s->next - at > MR_WINDOW_SEEN) {
		return MR_WINDOW_LATE;
	}
	if ((*word & bit) != 0)
		return MR_WINDOW_DUPLICATE;
	*word |= bit;
	return MR_WINDOW_PLACED;
}

MR_HD enum mr_window_kind mr_window_kind_of(const struct mr_seen *seen)
{
	if (seen->track == MR_TRACK_HEAP)
		return MR_WINDOW_HEAP;
	return (seen->flags & MR_SEEN_TIME) != 0 && seen->track != MR_TRACK_SECOND
		? MR_WINDOW_TIME
		: MR_WINDOW_NUMBER;
}

MR_HD uint64_t mr_window_number_of(
	const struct mr_window_books *b, const struct mr_seen *seen, uint32_t kind, uint64_t at)
{
	if (kind == MR_WINDOW_HEAP)
		return seen->seq;
	if (kind == MR_WINDOW_NUMBER)
		return at / b->setting.units;
	return (seen->time_s * 1000000 + seen->time_ps / 1000000) / b->setting.us;
}

/* Begins a stream, or begins it anew, with the packet at a position. */
MR_HD void mr_window_begin(struct mr_window_books *b, struct mr_window_stream *s, uint32_t kind,
	uint64_t number, uint64_t at)
{
	mr_window_close_all(b, s);
	s->kind = kind;
	s->setting = b->setting_number;
	s->next = at;
	s->begin = at;
	s->over = at;
	s->border = at;
	s->newest = number;
	s->done = 0;
	for (uint32_t i = 0; i < MR_WINDOW_CHANNELS; i++)
		s->edge[i] = INT32_MAX; /* no threshold is above it */
	for (uint32_t i = 0; i < MR_WINDOW_SEEN / 64; i++)
		s->seen[i] = 0;
}

/* A heap's window is open as long as mr_track.h has the heap open. */
MR_HD int mr_window_heap_is_open(const struct mr_window_stream *s, uint64_t number)
{
	for (uint32_t i = 0; i < MR_TRACK_HEAPS; i++)
		if (s->track.u.h.heap[i].since_ns != 0 && s->track.u.h.heap[i].id == number)
			return 1;
	return 0;
}

/*
 * mr_window_settle closes windows that are complete, and those of heaps that were given up; that
 * of number `but` stays.
 */
MR_HD void mr_window_settle(struct mr_window_books *b, struct mr_window_stream *s, uint64_t but)
{
	for (uint32_t i = 0; i < 2; i++) {
		const struct mr_window *w;
		uint64_t expected;
		int known;

		if (s->open[i] == 0)
			continue;
		w = mr_window_at(b->pool, b->memory, s->open[i]);
		expected = mr_window_expects(b, s, w, &known);
		if (w->number != but &&
			(w->kind == MR_WINDOW_HEAP ? !mr_window_heap_is_open(s, w->number)
						   : known && w->units >= expected))
			mr_window_close(b, s, i, 0);
	}
}

/* Moves on to the window of the packet that is furthest ahead. */
MR_HD void mr_window_advance(struct mr_window_books *b, struct mr_window_stream *s, uint64_t number)
{
	uint32_t i;

	if (number == s->newest || number + 1 == s->newest)
		return;
	if (number == s->newest + 1) {
		if (mr_window_open_of(b, s, s->newest - 1, &i) != NULL)
			mr_window_close(b, s, i, 0);
		s->done = s->done << 1 & 3;
	} else {
		mr_window_close_all(b, s);
		s->done = 0;
	}
	s->newest = number;
}

/* Opens a window; its channels are the caller's to begin. */
MR_HD struct mr_window *mr_window_open(struct mr_window_books *b, struct mr_window_stream *s,
	const struct mr_seen *seen, uint64_t number, uint64_t at)
{
	const uint32_t index = mr_window_take(b->pool, b->memory);
	struct mr_window *w = mr_window_at(b->pool, b->memory, index);

	s->open[s->open[0] != 0] = index;
	s->track.head.dirty = MR_STREAM_WAITS;
	w->key = s->track.head.key;
	w->kind = s->kind;
	w->flags = s->kind != MR_WINDOW_HEAP && s->begin == at ? MR_WINDOW_BEGAN : 0;
	w->bits = b->setting.format.bits;
	w->told = 0;
	w->number = number;
	w->length = s->kind == MR_WINDOW_TIME ? b->setting.us
		: s->kind == MR_WINDOW_NUMBER ? b->setting.units
					      : seen->heap_bytes;
	w->at = s->kind == MR_WINDOW_NUMBER
		? mr_track_wire(&s->track, number * w->length + s->track.modulus)
		: number;
	w->first = at;
	w->end = at;
	/* Not in front of the stream, nor within a packet of the window before. */
	w->from = number * w->length;
	if (s->over - w->from <= w->length)
		w->from = s->over;
	w->time_s = seen->time_s;
	w->time_ps = seen->time_ps;
	if ((seen->flags & (MR_SEEN_TIME | MR_SEEN_SAMPLES | MR_SEEN_TICKS)) == 0)
		w->flags |= MR_WINDOW_NO_TIME;
	if (s->kind == MR_WINDOW_TIME) {
		w->time_s = number * w->length / 1000000;
		w->time_ps = number * w->length % 1000000 * 1000000;
	}
	w->units = 0;
	w->packets = 0;
	w->duplicate = 0;
	return w;
}

/* Enters a packet in its window. */
MR_HD void mr_window_enter(struct mr_window_books *b, struct mr_window_stream *s,
	struct mr_window *w, const struct mr_seen *seen, uint64_t at)
{
	const uint64_t left = (w->number + 1) * w->length - at;
	struct mr_window *next;
	uint32_t i;

	w->packets++;
	w->added_ns = b->track.now_ns;
	w->units += seen->units;
	if (w->kind == MR_WINDOW_NUMBER && seen->units > left) {
		w->units -= seen->units - left;
		s->over = at + seen->units;
		next = mr_window_open_of(b, s, w->number + 1, &i);
		if (next != NULL && seen->units - left <= w->length)
			next->from = s->over;
	}
	if (w->kind == MR_WINDOW_HEAP && seen->heap_bytes > w->length)
		w->length = seen->heap_bytes;
	if ((int64_t)(at - w->first) < 0) {
		w->first = at;
		if (w->kind != MR_WINDOW_TIME) {
			w->time_s = seen->time_s;
			w->time_ps = seen->time_ps;
		}
	}
	if ((int64_t)(at + seen->units - w->end) > 0)
		w->end = at + seen->units;
}

/* What became of a packet at a position, but for its window. */
MR_HD enum mr_window_class mr_window_class_of(
	struct mr_window_stream *s, enum mr_track_class c, uint64_t at)
{
	if (s->kind != MR_WINDOW_HEAP && (int64_t)(at - s->begin) < 0)
		return MR_WINDOW_LATE;
	if (s->kind != MR_WINDOW_HEAP && !s->several)
		return mr_window_saw(s, at);
	return c == MR_TRACK_PLACED       ? MR_WINDOW_PLACED
		: c == MR_TRACK_DUPLICATE ? MR_WINDOW_DUPLICATE
					  : MR_WINDOW_LATE;
}

/* Whether a packet's window takes it: it is open, or may be opened. */
MR_HD int mr_window_takes(const struct mr_window_stream *s, struct mr_window *w, uint64_t number)
{
	if (w != NULL)
		return mr_window_channels(w)->sum.count <= MR_WINDOW_SAMPLES_MAX;
	return s->kind == MR_WINDOW_HEAP ||
		(s->newest - number < 2 && (s->done >> (s->newest - number) & 1) == 0);
}

/*
 * mr_window_find gives the window that a packet that is MR_SEEN_OK is added to; NULL: none, and
 * *ret_class says why. *ret_at is the packet's position, *ret_new 1 if the window is new. Behind
 * the samples mr_window_settle is to be called.
 */
MR_HD struct mr_window *mr_window_find(struct mr_window_books *b, struct mr_window_stream *s,
	const struct mr_seen *seen, enum mr_window_class *ret_class, uint64_t *ret_at,
	uint32_t *ret_new)
{
	const uint32_t kind = mr_window_kind_of(seen);
	enum mr_track_class c;
	struct mr_window *w;
	uint64_t number;
	uint32_t i;

	*ret_class = MR_WINDOW_LATE;
	*ret_new = 0;
	b->track.window = MR_WINDOW_SEEN * (seen->units < 65536 ? seen->units + 1 : 65536);
	c = mr_track_packet(&b->track, &s->track, seen, seen->units, 1);
	if (c == MR_TRACK_HELD) {
		s->late++;
		return NULL;
	}
	/* From 0 as the wire has it; mr_track.h begins one modulus on. */
	*ret_at = kind == MR_WINDOW_HEAP ? seen->heap_at : b->track.at - seen->modulus;
	number = mr_window_number_of(b, seen, kind, *ret_at);
	if (b->track.restarts != 0 || s->kind != kind || s->setting != b->setting_number)
		mr_window_begin(b, s, kind, number, *ret_at);
	s->several |= seen->units != 1;
	*ret_class = mr_window_class_of(s, c, *ret_at);
	if (kind == MR_WINDOW_HEAP)
		mr_window_settle(b, s, number);
	else if (*ret_class == MR_WINDOW_PLACED &&
		b->track.at + seen->units == s->track.u.span.next)
		mr_window_advance(b, s, number);
	w = mr_window_open_of(b, s, number, &i);
	if (*ret_class == MR_WINDOW_PLACED && !mr_window_takes(s, w, number))
		*ret_class = MR_WINDOW_LATE;
	if (*ret_class == MR_WINDOW_DUPLICATE)
		*(w != NULL ? &w->duplicate : &s->duplicate) += 1;
	s->late += *ret_class == MR_WINDOW_LATE;
	if (*ret_class != MR_WINDOW_PLACED)
		return NULL;
	if (w == NULL) {
		w = mr_window_open(b, s, seen, number, *ret_at);
		*ret_new = 1;
	}
	mr_window_enter(b, s, w, seen, *ret_at);
	return w;
}

/* mr_window_age closes windows to which nothing was added for late_ns; 0: all. */
MR_HD void mr_window_age(struct mr_window_books *b, struct mr_window_stream *s, uint64_t late_ns)
{
	uint32_t first;

	if (s->kind == MR_WINDOW_HEAP)
		mr_track_age(&b->track, &s->track, late_ns);
	(void)mr_window_open_of(b, s, s->newest - 1, &first);
	for (uint32_t k = 0; k < 2; k++) {
		const uint32_t i = first ^ k;

		if (s->open[i] == 0)
			continue;
		/* The later one does not go before the earlier. */
		if (b->track.now_ns - mr_window_at(b->pool, b->memory, s->open[i])->added_ns <
			late_ns)
			return;
		mr_window_close(b, s, i, MR_WINDOW_AGED);
	}
}

#endif
