/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_tap_check - whether instructions are a program that a tap may run.
 *
 * As the checkers of the BSD and Linux kernels (net/core/filter.c, bpf_check_classic): every
 * opcode is one of classic BPF's, jumps end within the program and go forward, memory words exist
 * and are stored before they are loaded, no constant divides by zero or shifts by 32 or more, and
 * the last instruction returns. Linux' ancillary loads are plain loads here, beyond any frame.
 *
 * Thread   any.
 * Errors   -EINVAL with the number of the instruction, from 0, and what is wrong with it.
 */
#ifndef MR_TAP_CHECK_H
#define MR_TAP_CHECK_H

#include "mr_base.h"
#include "mr_err.h"
#include "mr_tap_abi.h"

/* count is 1..MR_TAP_INSNS_MAX. */
MR_MUST_USE int mr_tap_check(const struct mr_tap_insn *insns, uint32_t count, struct mr_err *err);

#endif
