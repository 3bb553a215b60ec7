/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_proof - is the path the one that was asked for?
 *
 *     evidence: memory ─ registration ─ counters ─ window ─ readback ─ watch
 *                    └──────────────┬──────────────────────────────┘
 *                              mr_proof_judge ─► direct | pinned | staged, or unproven
 *
 * Packets that take another road than the one that is named arrive all the same, so only
 * evidence tells. Each kind has one verdict: of several ports the worst. What has to hold
 * depends on the path and on who moves the bytes:
 *
 *                     memory   registration  counters   window    readback   watch
 *   direct, NIC       PASS     PASS          PASS       -         PASS       no FAIL
 *   direct, stand-in  PASS     PASS          no FAIL    PASS      PASS       no FAIL
 *   direct, software  PASS     no FAIL       no FAIL    PASS      no FAIL    no FAIL
 *   pinned, staged    PASS     no FAIL       -          no FAIL   no FAIL    no FAIL
 *
 * "Stand-in" is a NIC before the software device, whose memory then lies in the BAR of some
 * other PCI device. The CPU sees that memory, and whether the NIC reaches it only the NIC shows.
 *
 *   memory        whose memory it is, as the driver says of its address
 *   registration  each port's own: kind, address and length
 *   counters      what the kernel counts of registrations; moves by as much as was registered.
 *                 Dma-bufs that a NIC lost, or frames that came back and it did not count, speak
 *                 against a path, and never for it alone
 *   window        where the CPU reaches packet memory: what one side writes, the other reads,
 *                 at once and to the last byte
 *   readback      frames out of a port and in again
 *   watch         the counters, links and topology while lanes run
 *
 * Evidence that cannot be had is UNKNOWN or NA, and a NIC's direct path without it is
 * unproven: what nobody saw is not claimed.
 *
 * Thread   any; nothing here keeps state.
 */
#ifndef MR_PROOF_H
#define MR_PROOF_H

#include "mr_checks.h"
#include "mr_probe.h"

#define MR_PROOF_GUARD 64u /* bytes before and after a test frame that must not change */
#define MR_PROOF_CANARY 0xa5u

enum mr_proof_kind {
	MR_PROOF_MEMORY,
	MR_PROOF_REGISTRATION,
	MR_PROOF_COUNTERS,
	MR_PROOF_WINDOW,
	MR_PROOF_READBACK,
	MR_PROOF_WATCH,
	MR_PROOF_KINDS,
};

const char *mr_proof_kind_name(enum mr_proof_kind kind);

struct mr_proof {
	enum mr_check_verdict verdict;
	char value[256];
};

/* mr_proof_set replaces what is there by something worse or as bad; good news only fills. */
void mr_proof_set(struct mr_proof *p, enum mr_check_verdict verdict, const char *fmt, ...)
	MR_PRINTF(3, 4);

enum mr_proof_path {
	MR_PROOF_DIRECT_NIC,
	MR_PROOF_DIRECT_STAND_IN,
	MR_PROOF_DIRECT_SOFTWARE,
	MR_PROOF_HOST, /* pinned, staged */
};

/*
 * mr_proof_judge: does the evidence carry the path? *ret_why is the first kind that does
 * not, MR_PROOF_KINDS if all do.
 */
bool mr_proof_judge(enum mr_proof_path path, const enum mr_check_verdict verdict[MR_PROOF_KINDS],
	enum mr_proof_kind *ret_why);

/*
 * mr_proof_bar1: how much less of a GPU's BAR1 is free since NICs registered bytes of its
 * memory. They reach it through BAR1, so what was registered takes room there. Less than that
 * is UNKNOWN and no FAIL: a driver may map all memory there from the beginning.
 * Source: NVML API Reference, nvmlDeviceGetBAR1MemoryInfo.
 */
void mr_proof_bar1(const struct mr_probe_value *before, const struct mr_probe_value *after,
	uint64_t bytes, struct mr_proof *ret_proof);

/*
 * A test frame of bytes (at least 60): addressed to mac, EtherType 0x88b5 (IEEE 802, local
 * experiments), and noise drawn from the seed. Without the noise a frame of one run would
 * pass for one of another.
 */
void mr_proof_frame(uint8_t *ret_frame, uint32_t bytes, const uint8_t mac[6], uint32_t seed);

/* Where two differ first; bytes if nowhere. */
uint32_t mr_proof_differs(const uint8_t *a, const uint8_t *b, uint32_t bytes);

/* The sizes that are tried for ports of these longest frames: 60 to longest, count of them. */
#define MR_PROOF_SIZES_MAX 8u
uint32_t mr_proof_sizes(uint32_t longest, uint32_t ret_sizes[MR_PROOF_SIZES_MAX]);

#endif
