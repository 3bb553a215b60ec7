/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_track - the books of one stream: what came, what is missing, what came twice or too late.
 *
 *     struct mr_seen ─► how far ahead of what is expected ─► place in a span ─► class
 *                                                               │
 *                                                    gaps that are given up ─► events
 *
 * Positions. Units are numbered through without end: a position is the number on the wire plus a
 * multiple of its modulus, so it does not wrap where the number does. VDIF, whose numbers begin
 * anew each second, has frames since the second in which the stream began.
 *
 * Span. Everything from `floor` to `next` came, but for the gaps, which are at most
 * MR_TRACK_GAPS. A packet in a gap fills it and is out of order; one that is between floor and
 * next but in no gap is a duplicate; one before floor is late. A gap is given up, told and counted
 * as missing when another one needs its place, when it lies further back than the window, when
 * it is older than may be, or at the end; floor moves behind it.
 *
 * Leaps. A packet far from what is expected is held. If the next one follows it, the sender has
 * started anew and both are placed; if not, it is late (after RFC 3550 A.1). How far is far:
 * mr_track_limit. A sender whose uptime goes back has started anew at once.
 *
 * A short counter and a clock (VITA 49.2). A gap of n packets and one of n + 16 count alike, so
 * the time says how many: that number which the counter allows and which comes nearest to the
 * elapsed time over the period, learned from packets in a row. Where that leaves more than half a
 * period, and a 64th of the elapsed time, the clock was set: the counter alone is believed, and the
 * period is learned anew.
 *
 * Heaps (SPEAD). A heap number is a name, so each heap is a span of its own, of bytes. Up to
 * MR_TRACK_HEAPS are open; another one gives up that which was opened first.
 *
 * Books. In packets: received = placed + duplicate + late + malformed + unknown + filtered, and
 * one more while one is held. In units: expected = units + missing + what is in gaps yet.
 *
 * Thread   one at a time, in the order of the packets (an ORDER stage's turn).
 */
#ifndef MR_TRACK_H
#define MR_TRACK_H

#include "mr_streams.h"

#define MR_TRACK_GAPS 3u
#define MR_TRACK_HEAPS 2u
#define MR_TRACK_CLOSED 4u  /* numbers of heaps that are remembered when they are closed */
#define MR_TRACK_SECONDS 3u /* more, that end alike, until a second has fewer frames */
#define MR_TRACK_RUN 16u    /* packets in a row that came before: the sender began anew */
#define MR_TRACK_UPTIME_MS                                                                         \
	10000u /* an uptime that went back by less is of a packet that was late */

/* What became of a packet. */
enum mr_track_class {
	MR_TRACK_PLACED,
	MR_TRACK_DUPLICATE,
	MR_TRACK_LATE,
	MR_TRACK_HELD,
};

enum mr_track_event_kind {
	MR_TRACK_MISSED = 1, /* `units` units from number `at` on (a heap: of heap `at`) */
	MR_TRACK_TOTALS = 2,
	MR_TRACK_RESTART = 3, /* the sender begins anew at number `at` */
	MR_TRACK_STEP = 4,    /* its clock was set, by the packet with number `at` */
};

struct mr_track_gap {
	uint64_t start, units;
	uint64_t since_ns;
};

struct mr_track_span {
	uint64_t floor, next;
	uint32_t gaps, spare;
	struct mr_track_gap gap[MR_TRACK_GAPS]; /* by start */
};

struct mr_track_heap {
	struct mr_track_span span;
	uint64_t id, bytes, got; /* bytes 0: not said */
	uint64_t since_ns;       /* the last packet; 0: the place is free */
	uint64_t order;          /* when it was opened, by count */
};

struct mr_stream {
	struct mr_stream_head head;

	uint64_t received, placed, duplicate, late, malformed, unknown, filtered; /* packets */
	uint64_t reordered;      /* of those that were placed */
	uint64_t units, missing; /* units that were placed, and that are given up */
	uint32_t restarts, steps;

	uint64_t told_ns; /* when its totals were told */
	uint64_t modulus;
	uint64_t seq, time_s, time_ps; /* of the packet that is furthest ahead */
	uint64_t period; /* CLOCK: of a packet; SECOND: frames of a second; 0: unknown */
	uint64_t uptime_ms;
	uint64_t held_seq, held_units, held_s, held_ps;
	uint64_t run_next;  /* number behind the last packet that had come before */
	uint64_t fewer;     /* SECOND: frames of the last second, */
	uint32_t fewer_run; /* and in how many before it they were as many */
	uint32_t run;       /* packets in a row that had come before, or were late */
	uint32_t track;     /* enum mr_track of its last packet */
	uint32_t holds;     /* 1: a packet is held */
	uint32_t begun;     /* 1: the span has a beginning */
	uint32_t spare;

	union {
		struct mr_track_span span;
		struct {
			struct mr_track_heap heap[MR_TRACK_HEAPS];
			uint64_t closed[MR_TRACK_CLOSED]; /* number * 2 + 1 if it was complete */
			uint32_t closed_next, spare;
			uint64_t opened;
		} h;
	} u;
};

struct mr_track_event {
	struct mr_stream_key key;
	uint32_t kind; /* enum mr_track_event_kind */
	uint64_t at, units;
	uint64_t time_s, time_ps; /* of the packet that told of it, as its format has it */
};

/* Events that wait to be told, a ring in the caller's memory. */
struct mr_track_queue {
	uint32_t head, tail; /* counted up for ever */
	uint32_t lost;       /* events that found it full */
	uint32_t spare;
};

/* What the functions below work with. */
struct mr_books {
	struct mr_track_queue *queue;
	struct mr_track_event *events; /* [events_mask + 1] */
	uint32_t events_mask;
	uint64_t now_ns;
	uint64_t window; /* units that a gap may lie back */
	uint64_t leap;   /* most that is ahead and still a gap */
	uint64_t at;     /* position of the packet that was placed, or is a duplicate or late; not
			    of a heap's */
	/* how often, for the caller's counters */
	uint32_t gaps, restarts, steps;
};

MR_HD void mr_track_tell(
	struct mr_books *t, const struct mr_stream *st, uint32_t kind, uint64_t at, uint64_t units)
{
	struct mr_track_queue *q = t->queue;
	struct mr_track_event *e = &t->events[q->head & t->events_mask];

	if (q->head - q->tail > t->events_mask) {
		q->lost++;
		return;
	}
	e->key = st->head.key;
	e->kind = kind;
	e->at = at;
	e->units = units;
	e->time_s = st->time_s;
	e->time_ps = st->time_ps;
	q->head++;
}

/* The number on the wire of a position; VDIF's begin anew each second, so they stay positions. */
MR_HD uint64_t mr_track_wire(const struct mr_stream *st, uint64_t position)
{
	if (st->track == MR_TRACK_SECOND)
		return position - st->modulus;
	return st->modulus == 0 ? position : position % st->modulus;
}

/* Gives up the first gap; of a heap nothing is told but when it is closed. */
MR_HD void mr_track_give_up(
	struct mr_books *t, struct mr_stream *st, struct mr_track_span *s, int told)
{
	const uint64_t units = s->gap[0].units;

	if (told) {
		mr_track_tell(t, st, MR_TRACK_MISSED, mr_track_wire(st, s->gap[0].start), units);
		st->missing += units;
		t->gaps++;
	}
	s->floor = s->gap[0].start + units;
	s->gaps--;
	for (uint32_t i = 0; i < s->gaps; i++)
		s->gap[i] = s->gap[i + 1];
}

/* Gives up gaps from the first on: those further back than `window` units, or older than late_ns.
 */
MR_HD void mr_track_expire(
	struct mr_books *t, struct mr_stream *st, uint64_t window, uint64_t late_ns)
{
	struct mr_track_span *s = &st->u.span;

	while (s->gaps != 0 &&
		(s->next - (s->gap[0].start + s->gap[0].units) > window ||
			t->now_ns - s->gap[0].since_ns >= late_ns))
		mr_track_give_up(t, st, s, 1);
}

/* Puts a gap behind gap i - 1; there is a place for it. */
MR_HD void mr_track_put_gap(
	struct mr_track_span *s, uint32_t i, uint64_t start, uint64_t units, uint64_t since_ns)
{
	for (uint32_t k = s->gaps++; k > i; k--)
		s->gap[k] = s->gap[k - 1];
	s->gap[i].start = start;
	s->gap[i].units = units;
	s->gap[i].since_ns = since_ns;
}

/* The gap in which n units from p on lie whole; gaps: there is none. */
MR_HD uint32_t mr_track_gap_of(const struct mr_track_span *s, uint64_t p, uint64_t n)
{
	uint32_t i = 0;

	for (; i < s->gaps; i++) {
		const uint64_t in = p - s->gap[i].start;

		if (in < s->gap[i].units && n <= s->gap[i].units - in)
			break;
	}
	return i;
}

/*
 * Takes n units from position p on into a span. Where one more gap is needed and there is no
 * place for it, the first one makes room; that may be what lies before p in the first itself.
 */
MR_HD enum mr_track_class mr_track_place(struct mr_books *t, struct mr_stream *st,
	struct mr_track_span *s, int told, uint64_t p, uint64_t n)
{
	const int ahead = (int64_t)(p - s->next) >= 0;
	uint64_t before = 0, behind = 0, start = 0;
	uint32_t i = s->gaps;

	if (!ahead) {
		if (n == 0)
			return MR_TRACK_PLACED; /* without units nothing can be said of it */
		if ((int64_t)(p - s->floor) < 0)
			return MR_TRACK_LATE;
		i = mr_track_gap_of(s, p, n);
		if (i == s->gaps)
			return MR_TRACK_DUPLICATE;
		start = s->gap[i].start;
		before = p - start;
		behind = s->gap[i].units - before - n;
		st->reordered++;
	}
	if (s->gaps == MR_TRACK_GAPS && (ahead ? p != s->next : before != 0 && behind != 0)) {
		if (!ahead && i == 0)
			s->gap[0].units = before;
		mr_track_give_up(t, st, s, told);
		if (!ahead && i == 0)
			before = 0;
		else
			i--;
		if (!ahead && before == 0)
			mr_track_put_gap(s, 0, p, n + behind, t->now_ns);
	}
	if (ahead) {
		if (p != s->next)
			mr_track_put_gap(s, i, s->next, p - s->next, t->now_ns);
		s->next = p + n;
		return MR_TRACK_PLACED;
	}
	s->gap[i].units = before;
	if (before != 0 && behind != 0) {
		mr_track_put_gap(s, i + 1, p + n, behind, s->gap[i].since_ns);
	} else if (before == 0 && behind != 0) {
		s->gap[i].start = p + n;
		s->gap[i].units = behind;
	} else if (before == 0) {
		s->gaps--;
		for (uint32_t k = i; k < s->gaps; k++)
			s->gap[k] = s->gap[k + 1];
	}
	return MR_TRACK_PLACED;
}

/*
 * How far ahead, or behind, a packet may be that is not held: a 16th of the modulus (RFC 3550 A.1
 * has 3000 and 100 of 65536), and no more than is set. A short number has no room for leaps.
 */
MR_HD int64_t mr_track_limit(uint64_t modulus, uint64_t set)
{
	const uint64_t most = modulus == 0 ? 1ull << 62 : modulus <= 256 ? modulus : modulus / 16;

	return (int64_t)(set < most ? set : most);
}

/*
 * seq less what is expected next, by the shorter way round; of a short number what is further back
 * than a quarter is ahead, since packets are lost in longer rows than they are late.
 */
MR_HD int64_t mr_track_round(uint64_t modulus, uint64_t seq, uint64_t next)
{
	const uint64_t back = modulus <= 256 ? modulus / 4 : modulus / 2;
	uint64_t ahead;

	if (modulus == 0)
		return (int64_t)(seq - next);
	ahead = seq >= next ? seq - next : modulus - next + seq;
	return modulus - ahead > back ? (int64_t)ahead : -(int64_t)(modulus - ahead);
}

/*
 * Time since the packet that is furthest ahead, in ps or whatever is counted; 0: not known, or
 * more than any period may be: 2^58, which of picoseconds is three days.
 */
MR_HD int mr_track_elapsed(const struct mr_stream *st, const struct mr_seen *s, int64_t *ret)
{
	const int64_t seconds = (int64_t)(s->time_s - st->time_s);
	/* Unsigned, since a sender may change what it counts. */
	uint64_t t = s->time_ps - st->time_ps;

	if (seconds != 0) {
		if ((s->flags & MR_SEEN_TIME) == 0 || seconds > 250000 || seconds < -250000)
			return 0;
		t += (uint64_t)seconds * 1000000000000u;
	}
	*ret = (int64_t)t;
	return *ret < 1ll << 58 && *ret > -(1ll << 58);
}

/* Packets ahead of the last one by counter and clock; 1 is the next one. */
MR_HD int64_t mr_track_clock(struct mr_books *t, struct mr_stream *st, const struct mr_seen *s)
{
	const int64_t modulus = (int64_t)s->modulus;
	const int64_t count = mr_track_round(s->modulus, s->seq, st->seq);
	int64_t elapsed, period = (int64_t)st->period, off, n, lax;

	if (!mr_track_elapsed(st, s, &elapsed))
		return count;
	if (period == 0) {
		if (count == 1 && elapsed > 0)
			st->period = (uint64_t)elapsed;
		return count;
	}
	off = elapsed - period;
	if (count == 1 && off <= period / 2 && off >= -(period / 2)) {
		st->period = (uint64_t)(period + off / 8);
		return 1;
	}
	n = (elapsed + (elapsed < 0 ? -(period / 2) : period / 2)) / period;
	/* The nearest that the counter allows. */
	off = (count - n) % modulus;
	off = off > modulus / 2 ? off - modulus : off < -(modulus / 2) ? off + modulus : off;
	/* The period is known to some percent, so the more of them, the less is said by the rest.
	 */
	lax = n < 0 ? -n : n;
	lax = period / 2 + (lax < 448 ? lax : 448) * (period / 64);
	off = elapsed - (n + off) * period;
	if (off > lax || off < -lax) {
		st->steps++;
		t->steps++;
		mr_track_tell(t, st, MR_TRACK_STEP, s->seq, 0);
		st->period = 0;
		return count;
	}
	return (elapsed - off) / period;
}

/*
 * Frames ahead of the last one. A second has as many as were seen in one, or as several seconds in
 * a row had where those were fewer.
 */
MR_HD int64_t mr_track_second(struct mr_stream *st, const struct mr_seen *s)
{
	const int64_t seconds = (int64_t)(s->time_s - st->time_s);
	const uint64_t had = st->seq + 1;

	if (seconds == 1) {
		st->fewer_run = had == st->fewer ? st->fewer_run + 1 : 0;
		st->fewer = had;
		if (had > st->period || st->fewer_run == MR_TRACK_SECONDS)
			st->period = had;
	}
	if (st->period < had)
		st->period = had;
	if (seconds > 1000000 || seconds < -1000000)
		return seconds > 0 ? 1ll << 61 : -(1ll << 61);
	return seconds * (int64_t)st->period + (int64_t)s->seq - (int64_t)st->seq;
}

/* Units ahead of what is expected next. */
MR_HD int64_t mr_track_ahead(struct mr_books *t, struct mr_stream *st, const struct mr_seen *s)
{
	if (s->track == MR_TRACK_CLOCK)
		return mr_track_clock(t, st, s) - 1;
	if (s->track == MR_TRACK_SECOND)
		return mr_track_second(st, s) - 1;
	return mr_track_round(s->modulus, s->seq, mr_track_wire(st, st->u.span.next));
}

MR_HD void mr_track_note(struct mr_stream *st, const struct mr_seen *s)
{
	st->seq = s->seq;
	st->time_s = s->time_s;
	st->time_ps = s->time_ps;
}

/* Begins a span at number seq; one modulus below it, positions have room. */
MR_HD void mr_track_begin(struct mr_stream *st, const struct mr_seen *s, uint64_t seq)
{
	st->begun = 1;
	st->u.span.floor = seq + s->modulus;
	st->u.span.next = seq + s->modulus;
	st->u.span.gaps = 0;
}

/* The held packet, if there is one, does not begin anything. */
MR_HD void mr_track_release(struct mr_stream *st)
{
	st->late += st->holds;
	st->holds = 0;
}

/* The number behind n units of number seq. */
MR_HD uint64_t mr_track_behind(uint64_t modulus, uint64_t seq, uint64_t n)
{
	return modulus == 0 ? seq + n : (seq + n) % modulus;
}

/*
 * Whether a packet follows the one that is held, and is not what is expected without it. A short
 * counter says little, so the clock has to say it too: not long after.
 */
MR_HD int mr_track_follows(const struct mr_stream *st, const struct mr_seen *s)
{
	const uint64_t seconds = s->time_s - st->held_s;
	const int64_t elapsed = (int64_t)(s->time_ps - st->held_ps + seconds * 1000000000000u);

	if (st->holds == 0)
		return 0;
	if (s->track == MR_TRACK_SECOND && s->time_s != st->held_s)
		return s->time_s == st->held_s + 1 && s->seq == 0;
	if (s->seq != mr_track_behind(s->modulus, st->held_seq, st->held_units))
		return 0;
	if (s->track == MR_TRACK_CLOCK)
		return st->period == 0 ||
			(seconds <= 1000000 && elapsed > 0 && elapsed / 2 <= (int64_t)st->period);
	return s->track == MR_TRACK_SECOND ||
		mr_track_round(s->modulus, s->seq, mr_track_wire(st, st->u.span.next)) != 0;
}

/*
 * Whether the sender began anew within what came before: a row of packets, each behind the other,
 * all of which are duplicates or late. Those before the last of them are counted as that.
 */
MR_HD int mr_track_runs(struct mr_stream *st, const struct mr_seen *s)
{
	if (st->run == 0 || s->seq != st->run_next)
		st->run = 0;
	return st->run >= MR_TRACK_RUN;
}

/* An uptime goes back at a restart; after 2^32 ms it goes back too (sFlow 5, RFC 3954). */
MR_HD int mr_track_rebooted(struct mr_stream *st, const struct mr_seen *s)
{
	const uint64_t before = st->uptime_ms;

	if ((s->flags & MR_SEEN_UPTIME) == 0)
		return 0;
	if (s->uptime_ms + MR_TRACK_UPTIME_MS < before &&
		before - s->uptime_ms < (1ull << 32) - 60 * MR_TRACK_UPTIME_MS) {
		st->uptime_ms = s->uptime_ms;
		return st->begun;
	}
	if (s->uptime_ms > before || before - s->uptime_ms > MR_TRACK_UPTIME_MS)
		st->uptime_ms = s->uptime_ms;
	return 0;
}

/*
 * Takes a packet with a number into the span of its stream; known 0: how many units it has nobody
 * knows, so the next one begins a new span.
 */
MR_HD enum mr_track_class mr_track_numbered(struct mr_books *t, struct mr_stream *st,
	const struct mr_seen *s, uint64_t units, int known)
{
	const int rebooted = mr_track_rebooted(st, s) | mr_track_runs(st, s);
	const int follows = !rebooted && mr_track_follows(st, s);
	struct mr_track_span *span = &st->u.span;
	enum mr_track_class c;
	uint64_t modulus;
	int64_t ahead;

	if (!known || rebooted || follows) {
		mr_track_expire(t, st, 0, 0);
		st->begun = 0;
		st->period = 0;
		st->run = 0;
	}
	if (!known) {
		mr_track_release(st);
		return MR_TRACK_LATE;
	}
	if (!st->begun) {
		const uint64_t first = follows ? st->held_seq : s->seq;

		mr_track_note(st, s);
		mr_track_begin(st, s, first);
		if (rebooted || follows) {
			st->restarts++;
			t->restarts++;
			mr_track_tell(t, st, MR_TRACK_RESTART, first, 0);
		}
		if (follows) {
			span->next += st->held_units;
			st->units += st->held_units;
			st->placed++;
			st->holds = 0;
		}
		mr_track_release(st);
		t->at = span->next;
		span->next += units;
		return MR_TRACK_PLACED;
	}
	mr_track_release(st);
	ahead = mr_track_ahead(t, st, s);
	/* A clock goes further than the number. */
	modulus = s->track == MR_TRACK_COUNT ? s->modulus : 0;
	if (ahead > mr_track_limit(modulus, t->leap) ||
		ahead < -mr_track_limit(modulus, t->window)) {
		st->holds = 1;
		st->held_seq = s->seq;
		st->held_units = units;
		st->held_s = s->time_s;
		st->held_ps = s->time_ps;
		return MR_TRACK_HELD;
	}
	t->at = span->next + (uint64_t)ahead;
	c = mr_track_place(t, st, span, 1, t->at, units);
	st->run = c == MR_TRACK_PLACED ? 0 : st->run + 1;
	st->run_next = mr_track_behind(s->modulus, s->seq, units);
	if (ahead >= 0) {
		mr_track_note(st, s);
		mr_track_expire(t, st, t->window, UINT64_MAX);
	}
	return c;
}

/* Remembers a heap's number, and whether all of it came, and frees its place. */
MR_HD void mr_track_heap_forget(struct mr_stream *st, struct mr_track_heap *h, uint32_t whole)
{
	st->u.h.closed[st->u.h.closed_next++ % MR_TRACK_CLOSED] = h->id * 2 + whole;
	h->since_ns = 0;
}

/* Closes a heap: what of it did not come is missing. */
MR_HD void mr_track_heap_close(struct mr_books *t, struct mr_stream *st, struct mr_track_heap *h)
{
	const uint64_t missing = (h->bytes != 0 ? h->bytes : h->span.next) - h->got;

	if (h->since_ns == 0)
		return;
	if (missing != 0) {
		mr_track_tell(t, st, MR_TRACK_MISSED, h->id, missing);
		st->missing += missing;
		t->gaps++;
	}
	mr_track_heap_forget(st, h, missing == 0);
}

/* The heap of a packet, opened if it is new; NULL: it was closed before, as *ret_class says. */
MR_HD struct mr_track_heap *mr_track_heap_of(struct mr_books *t, struct mr_stream *st,
	const struct mr_seen *s, enum mr_track_class *ret_class)
{
	struct mr_track_heap *h = &st->u.h.heap[0];

	for (uint32_t i = 0; i < MR_TRACK_HEAPS; i++)
		if (st->u.h.heap[i].since_ns != 0 && st->u.h.heap[i].id == s->seq)
			return &st->u.h.heap[i];
	for (uint32_t i = 0; i < MR_TRACK_CLOSED && i < st->u.h.closed_next; i++)
		if (st->u.h.closed[i] >> 1 == s->seq) {
			*ret_class =
				(st->u.h.closed[i] & 1) != 0 ? MR_TRACK_DUPLICATE : MR_TRACK_LATE;
			return NULL;
		}
	for (uint32_t i = 1; i < MR_TRACK_HEAPS; i++)
		if (h->since_ns != 0 &&
			(st->u.h.heap[i].since_ns == 0 || st->u.h.heap[i].order < h->order))
			h = &st->u.h.heap[i];
	mr_track_heap_close(t, st, h);
	h->order = ++st->u.h.opened;
	h->id = s->seq;
	h->bytes = 0;
	h->got = 0;
	h->span.floor = 0;
	h->span.next = 0;
	h->span.gaps = 0;
	return h;
}

MR_HD enum mr_track_class mr_track_heap(
	struct mr_books *t, struct mr_stream *st, const struct mr_seen *s)
{
	const uint64_t reach = s->heap_at + s->units;
	enum mr_track_class c = MR_TRACK_LATE;
	struct mr_track_heap *h = NULL;

	mr_track_note(st, s);
	/* No more is believed to be missing than may be. */
	if (reach <= t->leap && s->heap_bytes <= t->leap)
		h = mr_track_heap_of(t, st, s, &c);

	st->begun = 1;
	if (h == NULL)
		return c;
	h->since_ns = t->now_ns != 0 ? t->now_ns : 1;
	if (s->heap_bytes > h->bytes)
		h->bytes = s->heap_bytes;
	c = mr_track_place(t, st, &h->span, 0, s->heap_at, s->units);
	if (c == MR_TRACK_PLACED)
		h->got += s->units;
	if (h->bytes != 0 && h->got >= h->bytes)
		mr_track_heap_forget(st, h, 1);
	return c;
}

/*
 * mr_track_packet takes a packet that is MR_SEEN_OK into the books of its stream; units is
 * s->units, or what mr_ipfix_count() counted, and known 0 where it could not. What then comes back
 * says nothing.
 */
MR_HD enum mr_track_class mr_track_packet(struct mr_books *t, struct mr_stream *st,
	const struct mr_seen *s, uint64_t units, int known)
{
	enum mr_track_class c;

	if (st->begun && (st->track == MR_TRACK_HEAP) != (s->track == MR_TRACK_HEAP))
		return MR_TRACK_LATE; /* no format has both */
	st->track = s->track;
	st->modulus = s->modulus;
	c = s->track == MR_TRACK_HEAP ? mr_track_heap(t, st, s)
				      : mr_track_numbered(t, st, s, units, known);
	if (!known)
		return c;
	if (c == MR_TRACK_PLACED) {
		st->placed++;
		st->units += units;
	}
	st->duplicate += c == MR_TRACK_DUPLICATE;
	st->late += c == MR_TRACK_LATE;
	return c;
}

/* mr_track_age gives up what waits further back than the window or for longer than late_ns; 0: all.
 */
MR_HD void mr_track_age(struct mr_books *t, struct mr_stream *st, uint64_t late_ns)
{
	if (st->track == MR_TRACK_HEAP) {
		for (uint32_t i = 0; i < MR_TRACK_HEAPS; i++)
			if (t->now_ns - st->u.h.heap[i].since_ns >= late_ns)
				mr_track_heap_close(t, st, &st->u.h.heap[i]);
		return;
	}
	if (t->now_ns - st->head.seen_ns >= late_ns)
		mr_track_release(st);
	mr_track_expire(t, st, t->window, late_ns);
}

/* Whether a gap, a heap or a packet waits. */
MR_HD int mr_track_waits(const struct mr_stream *st)
{
	if (st->track == MR_TRACK_HEAP)
		return st->u.h.heap[0].since_ns != 0 || st->u.h.heap[1].since_ns != 0;
	return st->u.span.gaps != 0 || st->holds != 0;
}

/* What is in gaps yet. */
MR_HD uint64_t mr_track_open(const struct mr_stream *st)
{
	uint64_t units = 0;

	if (st->track == MR_TRACK_HEAP) {
		for (uint32_t i = 0; i < MR_TRACK_HEAPS; i++) {
			const struct mr_track_heap *h = &st->u.h.heap[i];

			if (h->since_ns != 0)
				units += (h->bytes != 0 ? h->bytes : h->span.next) - h->got;
		}
		return units;
	}
	for (uint32_t i = 0; i < st->u.span.gaps; i++)
		units += st->u.span.gap[i].units;
	return units;
}

#endif
