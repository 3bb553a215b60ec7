/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The filter machine against libpcap's own, over frames that hang together, frames that
 * are cut off and frames of noise; and what the check refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pcap.h>

#include "mr_base.h"
#include "mr_bpf.h"

#define FRAME_MAX 256u
#define FRAMES 4000u

/* Each is met by some of the frames and not by others. */
static const char *const expressions[] = {
	"ip",
	"ip6",
	"arp",
	"tcp",
	"udp",
	"icmp",
	"icmp6",
	"not ip",
	"vlan",
	"vlan 7",
	"vlan and ip",
	"vlan and vlan and udp",
	"port 53",
	"not port 53",
	"src port 53 or dst port 80",
	"tcp port 80",
	"udp portrange 50-90",
	"host 10.0.0.1",
	"src host 10.0.0.1 and dst host 10.0.0.2",
	"net 10.0.0.0/24",
	"dst net fd00::/64",
	"ip6 host fd00::1",
	"ip6 and tcp",
	"ether host 02:00:00:00:00:01",
	"ether src 02:00:00:00:00:01 and not arp",
	"ether broadcast",
	"ether multicast",
	"ether proto 0x88cc",
	"ip proto 47",
	"ip broadcast or ip multicast",
	"greater 100",
	"less 60",
	"len >= 64 and len <= 128",
	"ip[8] < 5",
	"ip[6:2] & 0x1fff != 0",
	"tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
	"ip[2:2] - ((ip[0] & 0xf) << 2) > 40",
	"ip[2:2] / (ip[8] + 0) > 7",
	"ip[2:2] % ip[9] = 3",
	"(udp[4:2] ^ ip[2:2]) | 1 > 0x35",
	"ether[12] >> 3 = 1 and ether[len - 1] != 0",
	"icmp[icmptype] = icmp-echo",
	"arp host 10.0.0.1",
	"tcp[(tcp[12] & 0xf0) >> 2] > 0x47",
	"mpls",
	"ip and (tcp port 80 or (udp and not port 53)) and greater 70",
};

static uint64_t drawn = 1;

static uint32_t draw(uint32_t below)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(drawn >> 33) % below;
}

static void put(uint8_t *frame, uint32_t at, uint32_t bytes, uint64_t v)
{
	for (uint32_t i = 0; i < bytes && at + i < FRAME_MAX; i++)
		frame[at + i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
}

/* Headers of few addresses and ports, over noise. */
static uint32_t make_frame(uint8_t frame[FRAME_MAX])
{
	static const uint32_t types[] = {
		0x800, 0x800, 0x800, 0x86dd, 0x86dd, 0x806, 0x88cc, 0x8847};
	static const uint8_t protocols[] = {6, 17, 1, 58, 47};
	static const uint32_t ports[] = {53, 80, 1000};
	uint32_t type = types[draw(MR_ARRAY_LEN(types))];
	uint32_t protocol = protocols[draw(MR_ARRAY_LEN(protocols))];
	uint32_t at = 12;

	for (uint32_t i = 0; i < FRAME_MAX; i++)
		frame[i] = (uint8_t)draw(256);
	if (draw(10) == 0)
		return 14 + draw(FRAME_MAX - 13);
	put(frame, 0, 6, draw(4) == 0 ? 0xffffffffffff : 0x020000000001 + draw(2));
	put(frame, 6, 6, 0x020000000001 + draw(2));
	for (uint32_t tags = draw(3); tags > 0; tags--, at += 4)
		put(frame, at, 4, 0x81000000 | (6 + draw(3)));
	put(frame, at, 2, type);
	at += 2;
	if (type == 0x806) {
		put(frame, at, 8, 0x0001080006040001);
		put(frame, at + 14, 4, 0x0a000001 + draw(2));
		put(frame, at + 24, 4, 0x0a000001 + draw(2));
	} else if (type == 0x800) {
		uint32_t options = draw(3);

		put(frame, at, 1, 0x45 + options);
		put(frame, at + 2, 2, 20 + draw(100));
		put(frame, at + 6, 2, draw(3) == 0 ? draw(65536) : 0);
		put(frame, at + 8, 1, draw(10));
		put(frame, at + 9, 1, protocol);
		put(frame, at + 12, 4, draw(4) == 0 ? draw(UINT32_MAX) : 0x0a000001 + draw(2));
		put(frame, at + 16, 4, draw(4) == 0 ? 0xe0000001 : 0x0a000001 + draw(2));
		at += 20 + 4 * options;
	} else if (type == 0x86dd) {
		put(frame, at, 4, 0x60000000);
		put(frame, at + 6, 1, protocol);
		for (uint32_t i = 8; i < 40; i += 16) {
			put(frame, at + i, 8, 0xfd00000000000000);
			put(frame, at + i + 8, 8, 1 + draw(2));
		}
		at += 40;
	}
	if (type != 0x806) {
		put(frame, at, 2, ports[draw(MR_ARRAY_LEN(ports))]);
		put(frame, at + 2, 2, ports[draw(MR_ARRAY_LEN(ports))]);
		put(frame, at + 4, 2, draw(30));
		put(frame, at + 12, 1, 0x50);
		if (protocol == 1 && draw(2) == 0)
			put(frame, at, 1, 8);
	}
	return 14 + draw(draw(2) == 0 ? 60 : FRAME_MAX - 13);
}

static uint32_t run(const struct bpf_program *p, uint8_t *frame, uint32_t length)
{
	struct mr_view v = {.frame = frame, .length = length, .room = FRAME_MAX};
	uint32_t words[MR_BPF_WORDS];

	return mr_bpf_run((const struct mr_bpf *)p->bf_insns, &v, words, 1);
}

static void every_expression_means_what_libpcap_means_by_it(void **state)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 262144);

	(void)state;
	_Static_assert(sizeof(struct mr_bpf) == sizeof(struct bpf_insn), "the same instructions");
	for (uint32_t e = 0; e < MR_ARRAY_LEN(expressions); e++)
		for (int optimize = 0; optimize < 2; optimize++) {
			struct bpf_program p;
			struct mr_err err = {0};
			uint32_t met = 0;

			if (pcap_compile(pcap, &p, expressions[e], optimize, 0xffffff00) != 0)
				fail_msg("%s: %s", expressions[e], pcap_geterr(pcap));
			if (mr_bpf_check((struct mr_bpf *)p.bf_insns, p.bf_len, &err) != 0)
				fail_msg("%s: %s", expressions[e], err.msg);
			for (uint32_t i = 0; i < FRAMES; i++) {
				uint8_t frame[FRAME_MAX];
				uint32_t length = make_frame(frame);
				struct pcap_pkthdr h = {.caplen = length, .len = length};
				int wanted = pcap_offline_filter(&p, &h, frame);

				if (run(&p, frame, length) != (uint32_t)wanted)
					fail_msg("%s: not so for a frame of %u bytes",
						expressions[e], length);
				met += wanted != 0;
			}
			if (met == 0 || met == FRAMES)
				fail_msg("%s: %u of %u frames meet it, which tells nothing",
					expressions[e], met, FRAMES);
			pcap_freecode(&p);
		}
	pcap_close(pcap);
}

static void refused(const struct mr_bpf *program, uint32_t count, const char *words)
{
	struct mr_err err = {0};

	if (mr_bpf_check(program, count, &err) == 0)
		fail_msg("taken, and is to be refused: %s", words);
	if (strstr(err.msg, words) == NULL)
		fail_msg("refused with '%s', not '%s'", err.msg, words);
}

#define RET                                                                                        \
	{                                                                                          \
		MR_BPF_RET, 0, 0, 1                                                                \
	}
#define REFUSED(words, ...)                                                                        \
	refused((const struct mr_bpf[]){__VA_ARGS__},                                              \
		sizeof((const struct mr_bpf[]){__VA_ARGS__}) / sizeof(struct mr_bpf), words)

static void what_could_not_run_is_refused(void **state)
{
	struct mr_bpf many[MR_BPF_MAX + 1];

	(void)state;
	for (uint32_t i = 0; i <= MR_BPF_MAX; i++)
		many[i] = (struct mr_bpf)RET;
	assert_int_equal(mr_bpf_check(many, MR_BPF_MAX, NULL), 0);
	refused(many, MR_BPF_MAX + 1, "257 instructions");
	refused(many, 0, "0 instructions");
	REFUSED("instruction 0 of the filter goes back, or on beyond the end",
		{MR_BPF_LD | MR_BPF_IMM, 0, 0, 1});
	REFUSED("goes back, or on beyond", {MR_BPF_JMP | MR_BPF_JA, 0, 0, 1}, RET);
	REFUSED("goes back, or on beyond", {MR_BPF_JMP | MR_BPF_JA, 0, 0, UINT32_MAX}, RET);
	REFUSED("goes back, or on beyond", {MR_BPF_JMP | MR_BPF_JEQ, 1, 0, 0}, RET);
	REFUSED("goes back, or on beyond", {MR_BPF_JMP | MR_BPF_JEQ, 0, 1, 0}, RET);
	REFUSED("divides by 0", {MR_BPF_ALU | MR_BPF_DIV, 0, 0, 0}, RET);
	REFUSED("divides by 0", {MR_BPF_ALU | MR_BPF_MOD, 0, 0, 0}, RET);
	REFUSED("shifts by more", {MR_BPF_ALU | MR_BPF_LSH, 0, 0, 32}, RET);
	REFUSED("shifts by more", {MR_BPF_ALU | MR_BPF_RSH, 0, 0, 32}, RET);
	REFUSED("a word of memory that there is not", {MR_BPF_ST, 0, 0, 16}, RET);
	REFUSED("a word of memory that there is not", {MR_BPF_STX, 0, 0, 16}, RET);
	REFUSED("may not have been written", {MR_BPF_LD | MR_BPF_MEM, 0, 0, 3}, RET);
	/* Written on one way only. */
	REFUSED("instruction 2 of the filter reads", {MR_BPF_JMP | MR_BPF_JEQ, 1, 0, 0},
		{MR_BPF_ST, 0, 0, 3}, {MR_BPF_LDX | MR_BPF_MEM, 0, 0, 3}, RET);
	for (uint32_t code = 0; code <= UINT16_MAX; code++) {
		struct mr_bpf one[] = {{(uint16_t)code, 0, 0, 1}, RET};
		struct mr_bpf stored[] = {{MR_BPF_ST, 0, 0, 1}, one[0], RET};
		struct bpf_insn theirs[3];

		memcpy(theirs, stored, sizeof(theirs));
		/* libpcap takes code 0xc, which it does not run, for instance. */
		if (mr_bpf_check(stored, 3, NULL) == 0 && bpf_validate(theirs, 3) == 0)
			fail_msg("code %04x is taken, libpcap refuses it", code);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_expression_means_what_libpcap_means_by_it),
		cmocka_unit_test(what_could_not_run_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
