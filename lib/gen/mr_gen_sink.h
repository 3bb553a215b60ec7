/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_gen_sink - what came back, counted.
 *
 * For every stream, and so for all of them: sent = received + lost. A packet is received
 * once; what comes again is a duplicate and apart from that sum.
 *
 *     received    each number's first arrival
 *     duplicates  arrivals of a number that was received (RFC 5560)
 *     reordered   those received whose number is below that of one received before
 *                 (RFC 4737 section 3.3: s < NextExp)
 *     stale       arrivals so far behind that a duplicate cannot be told from the first:
 *                 more than MR_GEN_WINDOW packets of the stream; they count as lost
 *     corrupted   ours, and do not agree with their CRC or lengths; the number in one is
 *                 not trusted, so it counts as lost too
 *     stray       of an earlier trial of this run
 *     foreign     all else, also numbers that were not sent, and other runs'
 *
 * The latency of a received packet counts from its intended send time.
 *
 * Thread   the sink's; `issued` is the sender's, which stores it before it sends.
 * Owner    init allocates the windows, fini frees them; the caller reads the counters
 *          after the thread ended.
 */
#ifndef MR_GEN_SINK_H
#define MR_GEN_SINK_H

#include "mr_gen_frame.h"
#include "mr_hist.h"

#ifndef MR_GEN_WINDOW_BITS /* a narrow window comes to its end sooner, under a fuzzer */
#define MR_GEN_WINDOW_BITS 20u
#endif
#define MR_GEN_WINDOW (1u << MR_GEN_WINDOW_BITS)

struct mr_gen_counts {
	uint64_t received, duplicates, reordered, stale;
};

struct mr_gen_stream {
	uint64_t next;  /* NextExp of RFC 4737 */
	uint64_t *seen; /* a bit for each of the last MR_GEN_WINDOW numbers */
	struct mr_gen_counts c;
};

struct mr_gen_sink {
	const struct mr_gen_frame *frame;
	const uint64_t *issued; /* packets of all streams, in turn */
	uint16_t run;
	uint8_t trial;
	uint64_t start_ns; /* of the trial, by mr_clock_ns */
	struct mr_gen_stream stream[MR_GEN_STREAMS_MAX];
	uint64_t corrupted, stray, foreign;
	struct mr_hist latency;
};

MR_MUST_USE int mr_gen_sink_init(struct mr_gen_sink *s, const struct mr_gen_frame *frame,
	const uint64_t *issued, struct mr_err *err);
void mr_gen_sink_fini(struct mr_gen_sink *s);

/* mr_gen_sink_take counts a frame that was there at now_ns; any bytes will do. */
void mr_gen_sink_take(struct mr_gen_sink *s, const uint8_t *data, uint32_t bytes, uint64_t now_ns);

/* mr_gen_issued tells how many of `issued` packets are of that stream. */
static inline uint64_t mr_gen_issued(uint64_t issued, uint32_t streams, uint32_t stream)
{
	return (issued + streams - 1 - stream) / streams;
}

#endif
