/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_gen_config - what `millrace gen` is asked for, and what that becomes.
 *
 *     file ─ mr_gen_config_load ─► struct mr_gen_config ─ mr_gen_plan_build ─► mr_gen_plan
 *
 * The intent begins with a struct mr_config of which name, eal, ports and log are used,
 * and the plan with a struct mr_plan that has ports and no lanes: lib/setup brings both
 * kinds up by the same steps.
 *
 * Sizes are those of RFC 2544: a frame on the wire with its FCS of 4 bytes, and without
 * the 20 bytes of preamble and gap, which only bits per second count (IEEE 802.3).
 *
 * Thread   the control thread.
 * Owner    the caller frees the configuration; a plan has no pointers of its own.
 * Errors   as in mr_config.h: all of them, each with its line and key.
 * Source   RFC 2544; the mix of sizes is FD.io CSIT's IMIX, 28 x 64, 16 x 570, 4 x 1518
 */
#ifndef MR_GEN_CONFIG_H
#define MR_GEN_CONFIG_H

#include "mr_plan.h"

#define MR_GEN_STREAMS_MAX 64u
#define MR_GEN_SIZE_MIN 64u /* the shortest frame of Ethernet holds all that the sink needs */
#define MR_GEN_SIZE_MAX 9622u
#define MR_GEN_SIZES_MAX (MR_GEN_SIZE_MAX - MR_GEN_SIZE_MIN + 1u)
#define MR_GEN_FCS 4u
#define MR_GEN_GAP 20u /* preamble, start of frame, gap between frames */
#define MR_GEN_PPM 1000000u

enum mr_gen_sizes {
	MR_GEN_FIXED,
	MR_GEN_SWEEP, /* from size to size_end by size_step, and again */
	MR_GEN_IMIX,
};

enum mr_gen_search {
	MR_GEN_SEARCH_NONE,
	MR_GEN_SEARCH_ZERO_LOSS,    /* RFC 2544 section 26.1 */
	MR_GEN_SEARCH_PARTIAL_LOSS, /* the same with a loss that is accepted */
};

struct mr_gen_send {
	char *port;
	int32_t core; /* -1: any */
	uint32_t rate_pps, rate_mbps;
	uint32_t burst;       /* packets with one intended time */
	uint32_t packets;     /* 0: by duration alone */
	uint32_t duration_ms; /* of a trial */
	uint32_t late_us;
	uint32_t calibrate_ms; /* 0: no calibration */
};

struct mr_gen_receive {
	char *port; /* NULL: only send */
	int32_t core;
	uint32_t wait_ms;
};

struct mr_gen_frames {
	enum mr_gen_sizes sizes;
	uint32_t size, size_end, size_step;
	uint32_t streams;
	uint32_t vlan; /* 0: untagged */
	char *src_mac, *dst_mac, *src_ip, *dst_ip;
	uint32_t src_port, dst_port;
};

struct mr_gen_find {
	enum mr_gen_search search;
	uint32_t loss_ppm;
	uint32_t resolution_ppm; /* of the highest rate */
};

struct mr_gen_config {
	struct mr_config base; /* first: the rows that both kinds of file share are its */
	struct mr_gen_send send;
	struct mr_gen_receive receive;
	struct mr_gen_frames frames;
	struct mr_gen_find find;
};

/* What goes before the sequence number of a frame, in host order. */
struct mr_gen_headers {
	uint8_t dst_mac[6], src_mac[6];
	uint16_t vlan; /* 0: untagged */
	uint32_t src_ip, dst_ip;
	uint16_t src_port, dst_port; /* of stream 0; a stream adds its number to src_port */
};

struct mr_gen_plan {
	struct mr_plan plan;                          /* ports, and no lanes */
	uint32_t send_port, receive_port, floor_port; /* indices, or MR_GEN_NO_PORT */
	int32_t send_core, receive_core;              /* -1: any */
	struct mr_gen_headers headers;
	uint32_t streams;
	enum mr_gen_sizes sizes_kind;
	uint16_t sizes[MR_GEN_SIZES_MAX]; /* in turn, with FCS */
	uint32_t sizes_count;
	/*
	 * Intended time between two packets, in 2^-20 ns, at the whole rate; 0 where the rate
	 * is what calibration measures. Sums of up to an hour fit 64 bits.
	 */
	uint64_t gap;
	uint32_t burst, packets, duration_ms, late_us, calibrate_ms, wait_ms;
	enum mr_gen_search search;
	uint32_t loss_ppm, resolution_ppm;
};

#define MR_GEN_NO_PORT UINT32_MAX
#define MR_GEN_GAP_SHIFT 20u

/* As mr_config_load and mr_config_parse. */
MR_MUST_USE int mr_gen_config_load(
	const char *file, struct mr_gen_config *ret_cfg, struct mr_problems *problems);
MR_MUST_USE int mr_gen_config_parse(const char *file, const char *text, size_t bytes,
	struct mr_gen_config *ret_cfg, struct mr_problems *problems);
void mr_gen_config_free(struct mr_gen_config *cfg);

/* As mr_plan_build: pure, and all problems in one run. */
MR_MUST_USE int mr_gen_plan_build(const struct mr_gen_config *cfg, const struct mr_host *host,
	const char *name, struct mr_gen_plan *ret_plan, struct mr_problems *problems);

/* The mean of a plan's frames on the wire, gap included, in bits, times sizes_count. */
uint64_t mr_gen_plan_wire_bits(const struct mr_gen_plan *p);

const char *mr_gen_sizes_name(enum mr_gen_sizes sizes);
const char *mr_gen_search_name(enum mr_gen_search search);

#endif
