/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_gen_schedule - when each packet is to be sent, and the search for a rate.
 *
 * Packet k of a trial has its time fixed by its number alone: bursts begin at multiples
 * of burst x gap, and all of a burst have its time. So whatever holds the sender up, no
 * time is moved and none is left out, and a latency counted from it contains the hold-up
 * (this is what "coordinated omission" leaves out).
 *
 * The search halves the interval between the highest rate that passed and the lowest
 * that did not, in parts per million of the highest rate, which is tried first.
 *
 * Thread   any; nothing here keeps state of its own.
 * Source   RFC 2544 section 26.1
 */
#ifndef MR_GEN_SCHEDULE_H
#define MR_GEN_SCHEDULE_H

#include "mr_gen_config.h"

/* mr_gen_due gives the time of packet k since the trial's start, in ns. */
static inline uint64_t mr_gen_due(uint64_t gap, uint32_t burst, uint64_t k)
{
	return (k - k % burst) * gap >> MR_GEN_GAP_SHIFT;
}

/*
 * mr_gen_total tells how many packets have a time before duration_ns; packets, where not
 * 0, is a bound. Without a gap (as fast as possible) there is no other.
 */
static inline uint64_t mr_gen_total(
	uint64_t gap, uint32_t burst, uint64_t duration_ns, uint64_t packets)
{
	unsigned __int128 step = (unsigned __int128)gap * burst;
	unsigned __int128 end = (unsigned __int128)duration_ns << MR_GEN_GAP_SHIFT;
	uint64_t total = gap == 0 ? UINT64_MAX : (uint64_t)((end + step - 1) / step) * burst;

	return packets != 0 && packets < total ? packets : total;
}

/* mr_gen_gap_pps gives the rate that a gap means. */
static inline double mr_gen_gap_pps(uint64_t gap)
{
	return gap == 0 ? 0 : 1e9 * (double)(1u << MR_GEN_GAP_SHIFT) / (double)gap;
}

struct mr_gen_halving {
	uint32_t low, high; /* passed (0: none has), did not pass */
	uint32_t next;      /* to try; 0: the search has ended, and low is what it found */
	uint32_t resolution;
};

static inline void mr_gen_halving_init(struct mr_gen_halving *h, uint32_t resolution_ppm)
{
	*h = (struct mr_gen_halving){0, MR_GEN_PPM, MR_GEN_PPM, resolution_ppm};
}

/* mr_gen_halving_tell notes how `next` went and chooses the next. */
static inline void mr_gen_halving_tell(struct mr_gen_halving *h, bool passed)
{
	if (passed)
		h->low = h->next;
	else
		h->high = h->next;
	h->next = h->high - h->low > h->resolution ? h->low + (h->high - h->low) / 2 : 0;
}

#endif
