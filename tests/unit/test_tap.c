/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filters of captures: what the checker takes, and that the kernel's interpreter does with a
 * program what libpcap's does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pcap/pcap.h>

#include "mr_base.h"
#include "mr_tap_check.h"
#include "mr_tap_compile.h"
/* Behind pcap's header, which names the same opcodes alike. */
#include "mr_tap_filter.h"

static const struct mr_tap_insn keep = {BPF_RET | BPF_K, 0, 0, 1};

static void refused(const struct mr_tap_insn *insns, uint32_t count, const char *words)
{
	struct mr_err err = {0};

	assert_int_equal(mr_tap_check(insns, count, &err), -22);
	if (strstr(err.msg, words) == NULL)
		fail_msg("'%s' is not in '%s'", words, err.msg);
}

static void a_program_that_could_leave_its_bounds_is_refused_by_number(void **state)
{
	static const struct {
		struct mr_tap_insn bad;
		const char *words;
	} cases[] = {
		{{0xffff, 0, 0, 0}, "instruction 0 of the filter is none"},
		{{BPF_LD | 0x18 | BPF_ABS, 0, 0, 0}, "is none of classic BPF"},
		{{BPF_LDX | BPF_W | BPF_ABS, 0, 0, 0}, "is none of classic BPF"},
		{{BPF_LD | BPF_MEM, 0, 0, 16}, "memory word that does not exist"},
		{{BPF_LD | BPF_MEM, 0, 0, 15}, "was not stored"},
		{{BPF_ST, 0, 0, 16}, "memory word that does not exist"},
		{{BPF_STX, 0, 0, UINT32_MAX}, "memory word that does not exist"},
		{{BPF_JMP | BPF_JA, 0, 0, 1}, "jumps out"},
		{{BPF_JMP | BPF_JA, 0, 0, UINT32_MAX}, "jumps out"},
		{{BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0}, "jumps out"},
		{{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0}, "jumps out"},
		{{BPF_ALU | BPF_DIV | BPF_K, 0, 0, 0}, "divides by zero"},
		{{BPF_ALU | BPF_MOD | BPF_K, 0, 0, 0}, "divides by zero"},
		{{BPF_ALU | BPF_LSH | BPF_K, 0, 0, 32}, "shifts by more"},
	};
	struct mr_tap_insn long_one[MR_TAP_INSNS_MAX + 1];

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
		const struct mr_tap_insn p[] = {cases[i].bad, keep};

		refused(p, 2, cases[i].words);
	}
	for (size_t i = 0; i < MR_ARRAY_LEN(long_one); i++)
		long_one[i] = keep;
	refused(long_one, 0, "1 to 1024");
	refused(long_one, MR_ARRAY_LEN(long_one), "use a shorter one");
	long_one[MR_TAP_INSNS_MAX - 1].code = BPF_LD | BPF_IMM;
	refused(long_one, MR_TAP_INSNS_MAX, "instruction 1023 of the filter is the last");
	long_one[MR_TAP_INSNS_MAX - 1] = keep;
	assert_int_equal(mr_tap_check(long_one, MR_TAP_INSNS_MAX, NULL), 0);
}

static void a_word_counts_as_stored_only_if_it_is_on_every_way(void **state)
{
	struct mr_tap_insn p[] = {
		{BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0},
		{BPF_ST, 0, 0, 3},
		{BPF_LD | BPF_MEM, 0, 0, 3},
		{BPF_RET | 0x10, 0, 0, 0},
	};

	(void)state;
	refused(p, 4, "instruction 2 of the filter loads a memory word that was not stored");
	p[0].jt = 0;
	assert_int_equal(mr_tap_check(p, 4, NULL), 0);
}

static void what_libpcap_does_not_take_is_told_in_its_words(void **state)
{
	struct mr_tap_insn insns[MR_TAP_INSNS_MAX];
	struct mr_err err = {0};
	char too_long[32768] = "port 1";
	uint32_t count;

	(void)state;
	assert_int_equal(mr_tap_compile("tcp port", insns, &count, &err), -22);
	assert_non_null(strstr(err.msg, "the filter 'tcp port' is not understood: "));
	assert_non_null(strstr(err.msg, "pcap-filter(7)"));
	assert_int_equal(mr_tap_compile("inbound", insns, &count, &err), -22);
	assert_non_null(strstr(err.msg, "what an interface knows"));
	for (int i = 2; i < 1500; i++)
		sprintf(too_long + strlen(too_long), " or port %d", i * 7);
	assert_int_equal(mr_tap_compile(too_long, insns, &count, &err), -22);
	assert_non_null(strstr(err.msg, "use a shorter one"));
}

static uint32_t seed = 1;

static uint32_t any(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(seed ^ seed >> 15) % below);
}

/* An instruction that the checker may take, more often than chance would make one. */
static struct mr_tap_insn any_insn(uint32_t left)
{
	static const uint16_t codes[] = {0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x80, 0x00, 0x60, 0x81,
		0xb1, 0x01, 0x61, 0x02, 0x03, 0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3c, 0x44,
		0x4c, 0x54, 0x5c, 0x64, 0x6c, 0x74, 0x7c, 0x84, 0x94, 0x9c, 0xa4, 0xac, 0x05, 0x15,
		0x1d, 0x25, 0x2d, 0x35, 0x3d, 0x45, 0x4d, 0x06, 0x16, 0x07, 0x87};
	struct mr_tap_insn i = {.code = codes[any(MR_ARRAY_LEN(codes))],
		.jt = (uint8_t)any(left + 1),
		.jf = (uint8_t)any(left + 1),
		.k = any(8) == 0 ? any(UINT32_MAX) : any(40)};

	if (i.code == (BPF_JMP | BPF_JA))
		i.k = any(left + 1);
	return i;
}

static void random_programs_end_as_libpcaps_interpreter_ends_them(void **state)
{
	uint32_t words[MR_TAP_WORDS], programs = 0, kept = 0, rejected = 0;

	(void)state;
	for (uint32_t n = 0; n < 400000; n++) {
		struct mr_tap_insn p[24];
		struct bpf_insn theirs[24];
		const uint32_t count = 2 + any(22), length = any(60);
		uint8_t *frame = malloc(length + 1);
		uint32_t mine;

		for (uint32_t i = 0; i < count; i++)
			p[i] = i + 1 < count ? any_insn(count - 2 - i)
					     : (struct mr_tap_insn){BPF_RET | 0x10, 0, 0, 0};
		for (uint32_t i = 0; i < length; i++)
			frame[i] = (uint8_t)any(256);
		if (mr_tap_check(p, count, NULL) == 0) {
			for (uint32_t i = 0; i < count; i++)
				theirs[i] = (struct bpf_insn){p[i].code, p[i].jt, p[i].jf, p[i].k};
			mine = mr_tap_filter(p, count, frame, length, words);
			assert_int_equal(mine, bpf_filter(theirs, frame, length, length));
			programs++;
			kept += mine != 0;
			rejected += mine == 0;
		}
		free(frame);
	}
	/* There were enough of both. */
	assert_true(programs > 20000 && kept > 2000 && rejected > 2000);
}

static void even_what_the_checker_refuses_ends_within_the_frame(void **state)
{
	uint32_t *words = malloc(MR_TAP_WORDS * sizeof(*words));

	(void)state;
	memset(words, 0, MR_TAP_WORDS * sizeof(*words));
	for (uint32_t n = 0; n < 100000; n++) {
		const uint32_t count = 1 + any(16), length = any(20);
		struct mr_tap_insn *p = malloc(count * sizeof(*p));
		uint8_t *frame = malloc(length + 1);

		for (size_t i = 0; i < count * sizeof(*p); i++)
			((uint8_t *)p)[i] = (uint8_t)any(256);
		memset(frame, 7, length + 1);
		(void)mr_tap_filter(p, count, frame, length, words);
		free(frame);
		free(p);
	}
	free(words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_could_leave_its_bounds_is_refused_by_number),
		cmocka_unit_test(a_word_counts_as_stored_only_if_it_is_on_every_way),
		cmocka_unit_test(what_libpcap_does_not_take_is_told_in_its_words),
		cmocka_unit_test(random_programs_end_as_libpcaps_interpreter_ends_them),
		cmocka_unit_test(even_what_the_checker_refuses_ends_within_the_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
