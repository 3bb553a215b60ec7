/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_tap_check.h"

#include <errno.h>
#include <linux/bpf_common.h>
#include <stdbool.h>
#include <string.h>

#define RET_A 0x10 /* of linux/filter.h, as the next two */
#define TAX 0x00
#define TXA 0x80

static bool known(uint16_t code)
{
	static const uint16_t codes[] = {
		BPF_LD | BPF_W | BPF_ABS,
		BPF_LD | BPF_H | BPF_ABS,
		BPF_LD | BPF_B | BPF_ABS,
		BPF_LD | BPF_W | BPF_IND,
		BPF_LD | BPF_H | BPF_IND,
		BPF_LD | BPF_B | BPF_IND,
		BPF_LD | BPF_W | BPF_LEN,
		BPF_LD | BPF_IMM,
		BPF_LD | BPF_MEM,
		BPF_LDX | BPF_W | BPF_LEN,
		BPF_LDX | BPF_B | BPF_MSH,
		BPF_LDX | BPF_IMM,
		BPF_LDX | BPF_MEM,
		BPF_ST,
		BPF_STX,
		BPF_JMP | BPF_JA,
		BPF_ALU | BPF_NEG,
		BPF_RET | BPF_K,
		BPF_RET | RET_A,
		BPF_MISC | TAX,
		BPF_MISC | TXA,
	};
	static const uint16_t either[] = {
		/* with a constant, or with X */
		BPF_ALU | BPF_ADD,
		BPF_ALU | BPF_SUB,
		BPF_ALU | BPF_MUL,
		BPF_ALU | BPF_DIV,
		BPF_ALU | BPF_MOD,
		BPF_ALU | BPF_OR,
		BPF_ALU | BPF_AND,
		BPF_ALU | BPF_XOR,
		BPF_ALU | BPF_LSH,
		BPF_ALU | BPF_RSH,
		BPF_JMP | BPF_JEQ,
		BPF_JMP | BPF_JGT,
		BPF_JMP | BPF_JGE,
		BPF_JMP | BPF_JSET,
	};

	for (size_t i = 0; i < MR_ARRAY_LEN(codes); i++)
		if (code == codes[i])
			return true;
	for (size_t i = 0; i < MR_ARRAY_LEN(either); i++)
		if ((code & ~BPF_X) == either[i])
			return true;
	return false;
}

static bool stores(uint16_t code)
{
	return BPF_CLASS(code) == BPF_ST || BPF_CLASS(code) == BPF_STX;
}

static bool loads(uint16_t code)
{
	return code == (BPF_LD | BPF_MEM) || code == (BPF_LDX | BPF_MEM);
}

/* What is wrong with an instruction by itself; left are those behind it. NULL: nothing. */
static const char *wrong(const struct mr_tap_insn *i, uint32_t left)
{
	const uint16_t alu = BPF_ALU | BPF_OP(i->code);

	if (!known(i->code))
		return "is none of classic BPF";
	if ((stores(i->code) || loads(i->code)) && i->k >= MR_TAP_WORDS)
		return "names a memory word that does not exist";
	if (BPF_CLASS(i->code) == BPF_JMP) {
		if (BPF_OP(i->code) == BPF_JA ? i->k >= left : i->jt >= left || i->jf >= left)
			return "jumps out of the program";
	} else if (BPF_CLASS(i->code) == BPF_ALU && BPF_SRC(i->code) == BPF_K) {
		if ((alu == (BPF_ALU | BPF_DIV) || alu == (BPF_ALU | BPF_MOD)) && i->k == 0)
			return "divides by zero";
		if ((alu == (BPF_ALU | BPF_LSH) || alu == (BPF_ALU | BPF_RSH)) && i->k > 31)
			return "shifts by more than 31";
	}
	if (left == 0 && BPF_CLASS(i->code) != BPF_RET)
		return "is the last and does not return";
	return NULL;
}

static int bad(struct mr_err *err, uint32_t at, const char *what)
{
	return mr_err_set(err, -EINVAL, "instruction %u of the filter %s", at, what);
}

int mr_tap_check(const struct mr_tap_insn *insns, uint32_t count, struct mr_err *err)
{
	/* Words that are stored on every way to an instruction; jumps go forward only. */
	uint16_t stored[MR_TAP_INSNS_MAX];

	if (count == 0 || count > MR_TAP_INSNS_MAX)
		return mr_err_set(err, -EINVAL,
			"a filter of %u instructions: 1 to %u are possible; use a shorter one",
			count, MR_TAP_INSNS_MAX);
	memset(stored, 0xff, sizeof(stored));
	stored[0] = 0;
	for (uint32_t at = 0; at < count; at++) {
		const struct mr_tap_insn *i = &insns[at];
		const char *what = wrong(i, count - 1 - at);
		uint16_t words = stored[at];

		if (what != NULL)
			return bad(err, at, what);
		if (loads(i->code) && (words >> i->k & 1) == 0)
			return bad(err, at, "loads a memory word that was not stored");
		if (stores(i->code))
			words |= (uint16_t)(1u << i->k);
		if (BPF_CLASS(i->code) == BPF_RET)
			continue;
		if (BPF_CLASS(i->code) != BPF_JMP) {
			stored[at + 1] &= words;
		} else if (BPF_OP(i->code) == BPF_JA) {
			stored[at + 1 + i->k] &= words;
		} else {
			stored[at + 1 + i->jt] &= words;
			stored[at + 1 + i->jf] &= words;
		}
	}
	return 0;
}
