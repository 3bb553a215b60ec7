/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_tap_filter - runs a classic BPF program on a frame, for both compilers.
 *
 * mr_tap_filter_check (mr_tap_check.h) has said before that a program is one. Should
 * it not be, this still ends, since every step goes forward, and still reads only the frame and
 * the given words; it then keeps or rejects as it may.
 *
 * A load beyond the frame, or a division by zero, rejects, as in the BSD and Linux
 * interpreters. A shift by 32 or more gives 0, as in libpcap's.
 */
#ifndef MR_TAP_FILTER_H
#define MR_TAP_FILTER_H

#include "mr_stage.h"

#include <linux/bpf_common.h>

/* Of linux/filter.h and pcap/bpf.h. */
#define MR_TAP_RVAL(code) ((code)&0x18)
#define MR_TAP_MISCOP(code) ((code)&0xf8)
#define MR_TAP_RET_A 0x10
#define MR_TAP_TXA 0x80

/* Bytes that a load takes by its size. */
MR_HD uint32_t mr_tap_size(uint32_t code)
{
	return BPF_SIZE(code) == BPF_W ? 4 : BPF_SIZE(code) == BPF_H ? 2 : 1;
}

/* Reads a number in network order; 0: not within the frame. */
MR_HD int mr_tap_load(
	const uint8_t *frame, uint32_t length, uint64_t at, uint32_t size, uint32_t *ret_value)
{
	uint32_t v = 0;

	if (at + size > length)
		return 0;
	for (uint32_t i = 0; i < size; i++)
		v = v << 8 | mr_frame_load_1(frame + at + i);
	*ret_value = v;
	return 1;
}

/* An operation of BPF_ALU; 0: a division by zero. */
MR_HD int mr_tap_alu(uint32_t op, uint32_t with, uint32_t *a)
{
	switch (op) {
	case BPF_ADD:
		*a += with;
		break;
	case BPF_SUB:
		*a -= with;
		break;
	case BPF_MUL:
		*a *= with;
		break;
	case BPF_DIV:
	case BPF_MOD:
		if (with == 0)
			return 0;
		*a = op == BPF_DIV ? *a / with : *a % with;
		break;
	case BPF_OR:
		*a |= with;
		break;
	case BPF_AND:
		*a &= with;
		break;
	case BPF_XOR:
		*a ^= with;
		break;
	case BPF_LSH:
		*a = with < 32 ? *a << with : 0;
		break;
	case BPF_RSH:
		*a = with < 32 ? *a >> with : 0;
		break;
	case BPF_NEG:
		*a = 0u - *a;
		break;
	}
	return 1;
}

/* Whether a conditional jump goes by jt. */
MR_HD int mr_tap_jumps(uint32_t op, uint32_t a, uint32_t with)
{
	switch (op) {
	case BPF_JEQ:
		return a == with;
	case BPF_JGT:
		return a > with;
	case BPF_JGE:
		return a >= with;
	case BPF_JSET:
		return (a & with) != 0;
	}
	return 0;
}

/*
 * mr_tap_filter returns what the program returns: 0 rejects the frame. words are
 * MR_TAP_WORDS of memory that the calling thread has to itself.
 */
MR_HD uint32_t mr_tap_filter(const struct mr_tap_insn *insns, uint32_t count, const uint8_t *frame,
	uint32_t length, uint32_t *words)
{
	uint32_t a = 0, x = 0;

	for (uint64_t pc = 0; pc < count; pc++) {
		const struct mr_tap_insn i = insns[pc];
		const uint32_t with = BPF_SRC(i.code) == BPF_X ? x : i.k;
		uint32_t v = i.k;

		switch (BPF_CLASS(i.code)) {
		case BPF_LD:
		case BPF_LDX:
			if (BPF_MODE(i.code) == BPF_ABS || BPF_MODE(i.code) == BPF_IND ||
				BPF_MODE(i.code) == BPF_MSH) {
				uint64_t at = (uint64_t)i.k + (BPF_MODE(i.code) == BPF_IND ? x : 0);

				if (!mr_tap_load(frame, length, at, mr_tap_size(i.code), &v))
					return 0;
				if (BPF_MODE(i.code) == BPF_MSH)
					v = (v & 0xf) * 4;
			} else if (BPF_MODE(i.code) == BPF_MEM) {
				v = words[i.k % MR_TAP_WORDS];
			} else if (BPF_MODE(i.code) == BPF_LEN) {
				v = length;
			}
			if (BPF_CLASS(i.code) == BPF_LD)
				a = v;
			else
				x = v;
			break;
		case BPF_ST:
			words[i.k % MR_TAP_WORDS] = a;
			break;
		case BPF_STX:
			words[i.k % MR_TAP_WORDS] = x;
			break;
		case BPF_ALU:
			if (!mr_tap_alu(BPF_OP(i.code), with, &a))
				return 0;
			break;
		case BPF_JMP:
			if (BPF_OP(i.code) == BPF_JA)
				pc += i.k;
			else
				pc += mr_tap_jumps(BPF_OP(i.code), a, with) ? i.jt : i.jf;
			break;
		case BPF_RET:
			return MR_TAP_RVAL(i.code) == MR_TAP_RET_A ? a : i.k;
		case BPF_MISC:
			if (MR_TAP_MISCOP(i.code) == MR_TAP_TXA)
				a = x;
			else
				x = a;
			break;
		}
	}
	return 0;
}

#endif
