/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any program and any frame through the filter machine and through libpcap's: what the check
 * takes, libpcap takes too, and both make the same of the frame, which ends with its memory.
 *
 * Input: number of instructions (a byte), 8 bytes an instruction, then the frame.
 *
 * MR_FUZZ_PLANTED leaves the check of words of memory out: a program then writes beside them.
 */
#include "mr_bpf.h"

#include <pcap.h>
#include <stdlib.h>
#include <string.h>

/* Most codes are none: of 256 of them, and jumps are near. */
static void likely(struct mr_bpf *i, uint8_t how)
{
	if ((how & 1) != 0)
		i->code &= 0xff;
	if ((how & 2) != 0) {
		i->jt %= 8;
		i->jf %= 8;
	}
	if ((how & 4) != 0)
		i->k %= 64;
}

static bool taken(const struct mr_bpf *program, uint32_t count)
{
#if defined(MR_FUZZ_PLANTED)
	return count == 2 && program[0].code == MR_BPF_ST && program[0].k < 64 &&
		program[1].code == MR_BPF_RET;
#else
	return mr_bpf_check(program, count, NULL) == 0;
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t count = size == 0 ? 0 : data[0] % 32;
	uint8_t how = size == 0 ? 0 : data[0] >> 5;
	struct mr_bpf *program;
	uint32_t *words, got;
	uint8_t *frame;
	size_t left;

	if (size < 1 + 8 * count)
		return 0;
	program = malloc(count * sizeof(*program) + 1);
	memcpy(program, data + 1, 8 * count);
	for (uint32_t i = 0; i < count; i++)
		likely(&program[i], how);
	left = size - 1 - 8 * count;
	frame = malloc(left + 1);
	memcpy(frame, data + 1 + 8 * count, left);
	words = malloc(MR_BPF_WORDS * sizeof(*words));
	if (taken(program, count)) {
		struct bpf_insn *theirs = (struct bpf_insn *)program;
		struct mr_view v = {
			.frame = frame, .length = (uint32_t)left, .room = (uint32_t)left};

		got = mr_bpf_run(program, &v, words, 1);
		if (!bpf_validate(theirs, (int)count) ||
			got != bpf_filter(theirs, frame, (unsigned int)left, (unsigned int)left))
			abort();
	}
	free(words);
	free(frame);
	free(program);
	return 0;
}
