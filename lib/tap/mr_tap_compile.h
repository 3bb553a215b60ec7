/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_tap_compile - a pcap filter expression becomes a program of classic BPF.
 *
 * By libpcap (pcap-filter(7)), for whole Ethernet frames as they lie in memory: VLAN tags are in
 * them, and words that ask the kernel of a live interface, such as `inbound`, are refused.
 * mr_tap_check has seen what comes out.
 *
 * Thread   one at a time.
 * Errors   -EINVAL: libpcap does not take the expression, or makes too long a program of it;
 *          -ENOMEM.
 */
#ifndef MR_TAP_COMPILE_H
#define MR_TAP_COMPILE_H

#include "mr_base.h"
#include "mr_err.h"
#include "mr_tap_abi.h"

MR_MUST_USE int mr_tap_compile(const char *expression,
	struct mr_tap_insn ret_insns[MR_TAP_INSNS_MAX], uint32_t *ret_count, struct mr_err *err);

#endif
