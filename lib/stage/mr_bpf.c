/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_bpf.h"

#include <errno.h>

/* Whether the machine has it; what no instruction uses has to be 0. */
static bool is_known(uint32_t code)
{
	uint32_t mode = MR_BPF_MODE(code), size = MR_BPF_SIZE(code), op = MR_BPF_OP(code);

	if (code > 0xff)
		return false;
	switch (MR_BPF_CLASS(code)) {
	case MR_BPF_LD:
		return ((mode == MR_BPF_ABS || mode == MR_BPF_IND) && size <= MR_BPF_8) ||
			(size == MR_BPF_32 &&
				(mode == MR_BPF_IMM || mode == MR_BPF_MEM || mode == MR_BPF_LEN));
	case MR_BPF_LDX:
		return (mode == MR_BPF_MSH && size == MR_BPF_8) ||
			(size == MR_BPF_32 &&
				(mode == MR_BPF_IMM || mode == MR_BPF_MEM || mode == MR_BPF_LEN));
	case MR_BPF_ALU:
		return op <= MR_BPF_XOR && (op != MR_BPF_NEG || (code & MR_BPF_X) == 0);
	case MR_BPF_JMP:
		return op <= MR_BPF_JSET && (op != MR_BPF_JA || (code & MR_BPF_X) == 0);
	case MR_BPF_RET:
		return (code & ~MR_BPF_A) == MR_BPF_RET;
	case MR_BPF_MISC:
		return (code & ~MR_BPF_TXA) == MR_BPF_MISC;
	default:
		return code == MR_BPF_ST || code == MR_BPF_STX;
	}
}

/* Why a constant of the instruction cannot be; NULL: it can. */
static const char *constant(const struct mr_bpf *i)
{
	uint32_t op = MR_BPF_OP(i->code), class = MR_BPF_CLASS(i->code);
	bool load = class == MR_BPF_LD || class == MR_BPF_LDX;

	if (((load && MR_BPF_MODE(i->code) == MR_BPF_MEM) || class == MR_BPF_ST ||
		    class == MR_BPF_STX) &&
		i->k >= MR_BPF_WORDS)
		return "names a word of memory that there is not";
	if (class != MR_BPF_ALU || (i->code & MR_BPF_X) != 0)
		return NULL;
	if ((op == MR_BPF_DIV || op == MR_BPF_MOD) && i->k == 0)
		return "divides by 0";
	if ((op == MR_BPF_LSH || op == MR_BPF_RSH) && i->k > 31)
		return "shifts by more than 31";
	return NULL;
}

int mr_bpf_check(const struct mr_bpf *program, uint32_t count, struct mr_err *err)
{
	/* The words of M that have been written on every way to an instruction. */
	uint32_t written[MR_BPF_MAX];
	const char *wrong = NULL;

	if (count == 0 || count > MR_BPF_MAX)
		return mr_err_set(err, -EINVAL,
			"the filter is of %u instructions, and there may be 1 to %u", count,
			MR_BPF_MAX);
	for (uint32_t n = 0; n < count; n++)
		written[n] = n == 0 ? 0 : UINT32_MAX;
	for (uint32_t n = 0; n < count; n++) {
		const struct mr_bpf *i = &program[n];
		uint32_t class = MR_BPF_CLASS(i->code), left = count - n - 1;
		bool jump = class == MR_BPF_JMP, always = jump && MR_BPF_OP(i->code) == MR_BPF_JA;
		uint32_t far = always ? i->k : jump ? i->jt : 0;
		uint32_t near = jump && !always ? i->jf : far;

		wrong = is_known(i->code) ? constant(i) : "is not one of the machine";
		if (wrong == NULL && class <= MR_BPF_LDX && MR_BPF_MODE(i->code) == MR_BPF_MEM &&
			(written[n] >> i->k & 1) == 0)
			wrong = "reads a word of memory that may not have been written";
		if (wrong == NULL && class != MR_BPF_RET && (far >= left || near >= left))
			wrong = "goes back, or on beyond the end";
		if (wrong != NULL)
			return mr_err_set(
				err, -EINVAL, "instruction %u of the filter %s", n, wrong);
		if (class == MR_BPF_ST || class == MR_BPF_STX)
			written[n] |= 1u << i->k;
		if (class == MR_BPF_RET)
			continue;
		written[n + 1 + far] &= written[n];
		written[n + 1 + near] &= written[n];
	}
	return 0;
}
