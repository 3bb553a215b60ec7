/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gen_sink.h"

#include "mr_sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int mr_gen_sink_init(struct mr_gen_sink *s, const struct mr_gen_frame *frame,
	const uint64_t *issued, struct mr_err *err)
{
	memset(s, 0, sizeof(*s));
	s->frame = frame;
	s->issued = issued;
	for (uint32_t i = 0; i < frame->streams; i++) {
		s->stream[i].seen = calloc(MR_GEN_WINDOW / 64, sizeof(uint64_t));
		if (s->stream[i].seen == NULL) {
			mr_gen_sink_fini(s);
			return mr_err_set(err, -ENOMEM, "out of memory");
		}
	}
	return 0;
}

void mr_gen_sink_fini(struct mr_gen_sink *s)
{
	for (uint32_t i = 0; i < MR_GEN_STREAMS_MAX; i++) {
		free(s->stream[i].seen);
		s->stream[i].seen = NULL;
	}
}

/* The number with these low 32 bits that is nearest to next; false: it would be negative. */
static bool widen(uint64_t next, uint32_t low, uint64_t *ret_number)
{
	int32_t apart = (int32_t)(low - (uint32_t)next);

	if (apart < 0 && next < (uint64_t) - (int64_t)apart)
		return false;
	*ret_number = next + (uint64_t)(int64_t)apart;
	return true;
}

static uint64_t *word_of(struct mr_gen_stream *st, uint64_t number)
{
	return &st->seen[number % MR_GEN_WINDOW / 64];
}

/* The window moves up to number; what it takes in was not seen. */
static void advance(struct mr_gen_stream *st, uint64_t number)
{
	if (number - st->next >= MR_GEN_WINDOW)
		memset(st->seen, 0, MR_GEN_WINDOW / 8);
	else
		for (uint64_t n = st->next; n <= number; n++)
			*word_of(st, n) &= ~(1ull << n % 64);
	st->next = number + 1;
}

/* Whether it is the first arrival of that number. */
static bool count(struct mr_gen_stream *st, uint64_t number)
{
	uint64_t bit = 1ull << number % 64;

	if (number >= st->next) {
		advance(st, number);
	} else if (st->next - number > MR_GEN_WINDOW) {
		st->c.stale++;
		return false;
	} else if ((*word_of(st, number) & bit) != 0) {
		st->c.duplicates++;
		return false;
	} else {
		st->c.reordered++;
	}
	*word_of(st, number) |= bit;
	st->c.received++;
	return true;
}

static void take_ours(struct mr_gen_sink *s, const struct mr_gen_stamp *stamp, uint64_t now_ns)
{
	uint64_t age = now_ns - s->start_ns;
	struct mr_gen_stream *st;
	uint64_t number;

	if (stamp->run == s->run && stamp->trial != s->trial) {
		s->stray++;
		return;
	}
	/* Nothing arrives before it was to be sent, nor without having been sent. */
	if (stamp->run != s->run || stamp->stream >= s->frame->streams || stamp->time_ns > age) {
		s->foreign++;
		return;
	}
	st = &s->stream[stamp->stream];
	if (!widen(st->next, stamp->sequence, &number) ||
		number >= mr_gen_issued(mr_load_relaxed_u64(s->issued), s->frame->streams,
				  stamp->stream)) {
		s->foreign++;
		return;
	}
	if (count(st, number))
		mr_hist_add(&s->latency, age - stamp->time_ns, 1);
}

void mr_gen_sink_take(struct mr_gen_sink *s, const uint8_t *data, uint32_t bytes, uint64_t now_ns)
{
	struct mr_gen_stamp stamp;

	switch (mr_gen_frame_read(s->frame, data, bytes, &stamp)) {
	case MR_GEN_OURS:
		take_ours(s, &stamp, now_ns);
		break;
	case MR_GEN_CORRUPT:
		s->corrupted++;
		break;
	case MR_GEN_FOREIGN:
		s->foreign++;
		break;
	}
}
