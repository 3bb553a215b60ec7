/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_bpf - the filter machine that pcap expressions are compiled for, in both compilers.
 *
 * A program is a list of instructions over a frame, two registers (A, X) and 16 words M,
 * whose result is 0 where the frame is not wanted. Whoever compiles an expression has it
 * from libpcap (pcap_compile for DLT_EN10MB); here is only what it runs on:
 *
 *     expression ─ libpcap ─► program ─ mr_bpf_check, host ─► mr_bpf_run, host or device
 *
 * mr_bpf_check takes what mr_bpf_run needs no more care for: known instructions, jumps that go
 * forward and stay inside, so that a run takes each instruction at most once and ends; words of M
 * that were written before they are read, whatever the way there; no constant that divides by 0 or
 * shifts by more than 31. A load beyond the frame and a division by an X of 0 end with 0, a shift
 * by an X beyond 31 gives 0: what libpcap's own interpreter does.
 *
 * M is memory of the caller, since a thread of a GPU has none that an index chooses from: word k
 * is words[k * stride].
 *
 * Thread   any.
 * Source   S. McCanne, V. Jacobson, "The BSD Packet Filter", USENIX Winter 1993, section 3;
 *          the codes are those of bpf(4).
 */
#ifndef MR_BPF_H
#define MR_BPF_H

#include "mr_packet.h"

#if !defined(__CUDACC__)
#include "mr_err.h"
#endif

#define MR_BPF_MAX 256u  /* instructions of a program */
#define MR_BPF_WORDS 16u /* of M */

/* As libpcap has it. */
struct mr_bpf {
	uint16_t code;
	uint8_t jt, jf; /* instructions to leave out where a condition holds, or does not */
	uint32_t k;
};
MR_ABI_ASSERT(sizeof(struct mr_bpf) == 8);

/* What a code is made of. */
#define MR_BPF_CLASS(code) ((code)&0x07u)
#define MR_BPF_LD 0x00u
#define MR_BPF_LDX 0x01u
#define MR_BPF_ST 0x02u
#define MR_BPF_STX 0x03u
#define MR_BPF_ALU 0x04u
#define MR_BPF_JMP 0x05u
#define MR_BPF_RET 0x06u
#define MR_BPF_MISC 0x07u

#define MR_BPF_SIZE(code) ((code)&0x18u) /* of a load: 32, 16 or 8 bits */
#define MR_BPF_32 0x00u
#define MR_BPF_16 0x08u
#define MR_BPF_8 0x10u

#define MR_BPF_MODE(code) ((code)&0xe0u) /* of a load */
#define MR_BPF_IMM 0x00u
#define MR_BPF_ABS 0x20u
#define MR_BPF_IND 0x40u
#define MR_BPF_MEM 0x60u
#define MR_BPF_LEN 0x80u
#define MR_BPF_MSH 0xa0u

#define MR_BPF_OP(code) ((code)&0xf0u) /* of arithmetic and jumps */
#define MR_BPF_ADD 0x00u
#define MR_BPF_SUB 0x10u
#define MR_BPF_MUL 0x20u
#define MR_BPF_DIV 0x30u
#define MR_BPF_OR 0x40u
#define MR_BPF_AND 0x50u
#define MR_BPF_LSH 0x60u
#define MR_BPF_RSH 0x70u
#define MR_BPF_NEG 0x80u
#define MR_BPF_MOD 0x90u
#define MR_BPF_XOR 0xa0u
#define MR_BPF_JA 0x00u
#define MR_BPF_JEQ 0x10u
#define MR_BPF_JGT 0x20u
#define MR_BPF_JGE 0x30u
#define MR_BPF_JSET 0x40u

#define MR_BPF_X 0x08u   /* the operand is X, not k */
#define MR_BPF_A 0x10u   /* what is returned is A, not k */
#define MR_BPF_TXA 0x80u /* A = X, not X = A */

#if !defined(__CUDACC__)
/* mr_bpf_check: 0, or -EINVAL with a sentence that names the instruction. */
MR_MUST_USE int mr_bpf_check(const struct mr_bpf *program, uint32_t count, struct mr_err *err);
#endif

/* A load into A or X; 0: it is not in the frame. */
MR_HD int mr_bpf_load(const struct mr_bpf *i, const struct mr_view *v, const uint32_t *words,
	uint32_t stride, uint32_t x, uint32_t *ret)
{
	uint32_t mode = MR_BPF_MODE(i->code), at = mode == MR_BPF_IND ? x + i->k : i->k;
	uint32_t bytes;

	switch (mode) {
	case MR_BPF_IMM:
		*ret = i->k;
		return 1;
	case MR_BPF_MEM:
		*ret = words[i->k * stride];
		return 1;
	case MR_BPF_LEN:
		*ret = v->length;
		return 1;
	}
	bytes = MR_BPF_SIZE(i->code) == MR_BPF_32 ? 4 : MR_BPF_SIZE(i->code) == MR_BPF_16 ? 2 : 1;
	if (at < i->k || !mr_has(v, at, bytes))
		return 0;
	*ret = bytes == 4 ? mr_get_be32(v, at) : bytes == 2 ? mr_get_be16(v, at) : mr_get_u8(v, at);
	/* The length of an IPv4 header from its first byte. */
	if (mode == MR_BPF_MSH)
		*ret = (*ret & 0xf) << 2;
	return 1;
}

/* Arithmetic on A with y, which is not 0 where it divides. */
MR_HD uint32_t mr_bpf_alu(uint32_t op, uint32_t a, uint32_t y)
{
	switch (op) {
	case MR_BPF_ADD:
		return a + y;
	case MR_BPF_SUB:
		return a - y;
	case MR_BPF_MUL:
		return a * y;
	case MR_BPF_DIV:
		return a / y;
	case MR_BPF_MOD:
		return a % y;
	case MR_BPF_OR:
		return a | y;
	case MR_BPF_AND:
		return a & y;
	case MR_BPF_XOR:
		return a ^ y;
	case MR_BPF_LSH:
		return y < 32 ? a << y : 0;
	case MR_BPF_RSH:
		return y < 32 ? a >> y : 0;
	default:
		return 0 - a;
	}
}

MR_HD int mr_bpf_holds(uint32_t op, uint32_t a, uint32_t y)
{
	switch (op) {
	case MR_BPF_JEQ:
		return a == y;
	case MR_BPF_JGT:
		return a > y;
	case MR_BPF_JGE:
		return a >= y;
	default:
		return (a & y) != 0;
	}
}

/* mr_bpf_run is what a program that was checked makes of a frame; 0: not wanted. */
MR_HD uint32_t mr_bpf_run(
	const struct mr_bpf *program, const struct mr_view *v, uint32_t *words, uint32_t stride)
{
	uint32_t a = 0, x = 0;

	MR_ROLLED
	for (uint32_t pc = 0; pc < MR_BPF_MAX; pc++) {
		struct mr_bpf i = program[pc];
		uint32_t op = MR_BPF_OP(i.code), y = (i.code & MR_BPF_X) != 0 ? x : i.k;

		switch (MR_BPF_CLASS(i.code)) {
		case MR_BPF_LD:
			if (!mr_bpf_load(&i, v, words, stride, x, &a))
				return 0;
			break;
		case MR_BPF_LDX:
			if (!mr_bpf_load(&i, v, words, stride, x, &x))
				return 0;
			break;
		case MR_BPF_ST:
			words[i.k * stride] = a;
			break;
		case MR_BPF_STX:
			words[i.k * stride] = x;
			break;
		case MR_BPF_ALU:
			if (y == 0 && (op == MR_BPF_DIV || op == MR_BPF_MOD))
				return 0;
			a = mr_bpf_alu(op, a, y);
			break;
		case MR_BPF_JMP:
			pc += op == MR_BPF_JA ? i.k : mr_bpf_holds(op, a, y) ? i.jt : i.jf;
			break;
		case MR_BPF_RET:
			return (i.code & MR_BPF_A) != 0 ? a : i.k;
		default:
			if ((i.code & MR_BPF_TXA) != 0)
				a = x;
			else
				x = a;
			break;
		}
	}
	return 0;
}

#endif
