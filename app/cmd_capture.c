/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * capture: packets of a running instance as pcapng. The expression is compiled here, so that the
 * instance parses none, and whole blocks are written, so that what there is can be read.
 */
#include "mr_cmd.h"

#include "mr_pcapng.h"
#include "mr_report.h"
#include "mr_sync.h"
#include "mr_tap_link.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)1 << 20)
#define LOOK_MS 100

struct capture {
	struct mr_tap_request want;
	const char *file;
	int in, out;
	bool told; /* the instance, that it is enough */
	uint8_t *buffer;
	size_t used;
	uint64_t packets;    /* before the chain, that is, each once */
	uint64_t lost;       /* as the last statistics say */
	uint32_t statistics; /* of each side at the start and at the end */
};

/* In an instance's way to write numbers: digits and nothing else. */
static bool number(const char *text, uint64_t most, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *ret >= 1 &&
		*ret <= most;
}

static int bad(const char *option, const char *value, const char *words)
{
	fprintf(stderr, "millrace: %s '%.200s': %s\n", option, value, words);
	return MR_EXIT_USAGE;
}

/* Whether it reads what Linux tells its sockets beside a frame, at offsets below 0. */
static bool asks_beside(const struct bpf_program *p)
{
	bool beside = false;

	for (uint32_t i = 0; i < p->bf_len; i++)
		beside |= MR_BPF_CLASS(p->bf_insns[i].code) == MR_BPF_LD &&
			MR_BPF_MODE(p->bf_insns[i].code) == MR_BPF_ABS &&
			p->bf_insns[i].k > INT32_MAX;
	return beside;
}

static int compile(const char *expression, struct mr_tap_request *want)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, UINT16_MAX);
	struct bpf_program program;
	struct mr_err err;
	int status = MR_EXIT_CLEAN;

	if (pcap == NULL)
		return bad("--filter", expression, "out of memory");
	if (pcap_compile(pcap, &program, expression, 1, PCAP_NETMASK_UNKNOWN) != 0) {
		status = bad("--filter", expression, pcap_geterr(pcap));
		pcap_close(pcap);
		return status;
	}
	_Static_assert(sizeof(struct bpf_insn) == sizeof(struct mr_bpf), "the same instructions");
	if (mr_bpf_check((const struct mr_bpf *)program.bf_insns, program.bf_len, &err) < 0) {
		status = bad("--filter", expression, err.msg);
	} else if (asks_beside(&program)) {
		status = bad("--filter", expression, "asks for more than is in a frame");
	} else {
		want->count = program.bf_len;
		memcpy(want->program, program.bf_insns, program.bf_len * sizeof(struct mr_bpf));
	}
	pcap_freecode(&program);
	pcap_close(pcap);
	return status;
}

static int verdict(const char *name, struct mr_tap_request *want)
{
	static const char *const names[] = {
		[MR_TX] = "tx", [MR_TX_MASK] = "tx_mask", [MR_DROP] = "drop"};

	for (uint32_t i = 0; i < MR_ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0) {
			want->verdict = i;
			return MR_EXIT_CLEAN;
		}
	return bad("--verdict", name, "not one of tx, tx_mask, drop");
}

static int parse(
	const struct mr_cmd *self, int argc, char **argv, struct capture *c, const char **ret_name)
{
	int key, status = MR_EXIT_CLEAN;
	uint64_t n;

	while (status == MR_EXIT_CLEAN && (key = mr_cmd_next(self, argc, argv)) != -1) {
		if (key == 'c' && !number(optarg, UINT64_MAX, &c->want.packets))
			status = bad("-c", optarg, "not a number of packets");
		else if (key == 's' && !number(optarg, UINT16_MAX, &n))
			status = bad("-s", optarg, "not a number of bytes, 1 to 65535");
		else if (key == 's')
			c->want.snaplen = (uint32_t)n;
		else if (key == 'f')
			status = compile(optarg, &c->want);
		else if (key == 'v')
			status = verdict(optarg, &c->want);
		else if (key == 'w')
			c->file = optarg;
		else if (key == 'n')
			*ret_name = optarg;
		else if (key != 'c')
			return mr_cmd_usage(self);
	}
	if (status != MR_EXIT_CLEAN)
		return status;
	if (optind + 1 != argc || c->file == NULL)
		return mr_cmd_usage(self);
	if (strlen(argv[optind]) >= sizeof(c->want.lane))
		return bad("LANE", argv[optind], "too long for the name of a lane");
	snprintf(c->want.lane, sizeof(c->want.lane), "%s", argv[optind]);
	if (c->file[0] == '\0')
		return bad("-w", c->file, "no name of a file");
	if (strcmp(c->file, "-") == 0 && isatty(STDOUT_FILENO))
		return bad(
			"-w", c->file, "standard output is a terminal; pcapng is not for people");
	return MR_EXIT_CLEAN;
}

/* What it saw is its user's own. */
static bool open_file(struct capture *c)
{
	const bool ends = mr_load_relaxed(&mr_cmd_signal_seen) != 0;

	if (strcmp(c->file, "-") == 0)
		c->out = STDOUT_FILENO;
	else if (!ends)
		c->out = open(c->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (c->out < 0 && (ends || errno == EINTR))
		fprintf(stderr, "millrace: ended by a signal before %s was open\n", c->file);
	else if (c->out < 0)
		fprintf(stderr, "millrace: %s: %s\n", c->file, strerror(errno));
	return c->out >= 0;
}

static uint32_t word(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* Of so many bytes of the buffer those that are whole blocks. */
static size_t whole_blocks(const struct capture *c, size_t bytes)
{
	size_t at = 0;

	while (at + 8 <= bytes && at + word(c->buffer + at + 4) <= bytes)
		at += word(c->buffer + at + 4);
	return at;
}

/* Takes the part of a block away that was written at the end of a file. */
static void cut(const struct capture *c, size_t done)
{
	off_t end = lseek(c->out, 0, SEEK_CUR);
	struct stat st;

	if (end >= 0 && fstat(c->out, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == end)
		(void)!ftruncate(c->out, end - (off_t)(done - whole_blocks(c, done)));
}

/* A signal has the instance make an end; a second one does not wait for who should read. */
static bool goes_on(struct capture *c)
{
	if (mr_load_relaxed(&mr_cmd_signal_seen) != 0 && !c->told) {
		shutdown(c->in, SHUT_WR);
		c->told = true;
	}
	return mr_load_relaxed(&mr_cmd_signal_fast) == 0;
}

/* The statistics end with what was lost, its end of options and the block's length. */
static void count_block(struct capture *c, const uint8_t *block, uint32_t bytes)
{
	const uint32_t type = word(block);

	c->statistics += type == MR_PCAPNG_STATISTICS;
	if (type == MR_PCAPNG_PACKET && word(block + 8) == MR_TAP_BEFORE)
		c->packets++;
	if (type == MR_PCAPNG_STATISTICS && bytes >= 32)
		memcpy(&c->lost, block + bytes - 16, sizeof(c->lost));
}

/* Of so many bytes, which are written, the whole blocks. */
static void count_blocks(struct capture *c, size_t bytes)
{
	for (size_t at = 0, whole = whole_blocks(c, bytes); at < whole;
		at += word(c->buffer + at + 4))
		count_block(c, c->buffer + at, word(c->buffer + at + 4));
}

static bool put(struct capture *c, size_t bytes)
{
	size_t done = 0;

	/* A signal ends a write in its middle as well. */
	while (done < bytes && goes_on(c)) {
		ssize_t n = write(c->out, c->buffer + done, bytes - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			fprintf(stderr, "millrace: %s could not be written: %s\n",
				c->out == STDOUT_FILENO ? "standard output" : c->file,
				strerror(errno));
			break;
		}
		done += (size_t)n;
	}
	count_blocks(c, done);
	if (done < bytes) {
		cut(c, done);
		return false;
	}
	memmove(c->buffer, c->buffer + bytes, c->used - bytes);
	c->used -= bytes;
	return true;
}

/* Writes the whole blocks that have come; false: they cannot be written, or are none. */
static bool pass_on(struct capture *c)
{
	size_t whole = 0;

	while (c->used - whole >= 12) {
		const uint32_t bytes = word(c->buffer + whole + 4);

		if (bytes < 12 || bytes % 4 != 0 || bytes > BUFFER_BYTES) {
			fprintf(stderr, "millrace: what the instance sends is not pcapng\n");
			return false;
		}
		if (bytes > c->used - whole)
			break;
		whole += bytes;
	}
	return whole == 0 || put(c, whole);
}

/* Until the instance has sent all; false: it ended before. */
static bool receive(struct capture *c)
{
	for (;;) {
		struct pollfd fd = {.fd = c->in, .events = POLLIN};
		ssize_t n;

		if (!goes_on(c))
			return false;
		if (poll(&fd, 1, LOOK_MS) <= 0)
			continue;
		n = recv(c->in, c->buffer + c->used, BUFFER_BYTES - c->used, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		c->used += (size_t)n;
		if (!pass_on(c))
			return false;
	}
	if (c->used == 0 && c->statistics == 2 * MR_TAP_SIDES)
		return true;
	fprintf(stderr, "millrace: the instance ended in the middle of the capture%s\n",
		c->told ? ", or did not wait for the rest to be read" : "");
	return false;
}

static int run(struct capture *c, const char *name)
{
	struct mr_err err = {0};
	bool whole, all;

	if (mr_tap_open(name, &c->want, &c->in, &err) < 0) {
		fprintf(stderr, "millrace: %s\n",
			mr_load_relaxed(&mr_cmd_signal_seen) != 0
				? "ended by a signal before the capture began"
				: err.msg);
		return MR_EXIT_FAILURE;
	}
	whole = open_file(c) && receive(c);
	close(c->in);
	if (c->out > STDOUT_FILENO && close(c->out) != 0) {
		fprintf(stderr, "millrace: %s could not be written: %s\n", c->file,
			strerror(errno));
		whole = false;
	}
	all = c->want.packets != 0 && c->packets == c->want.packets;
	fprintf(stderr, "millrace: %llu packets, ", (unsigned long long)c->packets);
	/* Statistics come at the start and at the end. */
	if (whole)
		fprintf(stderr, "%llu copies lost%s\n", (unsigned long long)c->lost,
			!c->told && !all ? "; the instance stops" : "");
	else
		fprintf(stderr, "and nobody knows how many copies were lost\n");
	return whole ? MR_EXIT_CLEAN : MR_EXIT_FAILURE;
}

int mr_cmd_capture(const struct mr_cmd *self, int argc, char **argv)
{
	struct capture c = {
		.want = {.magic = MR_TAP_MAGIC, .verdict = MR_TAP_ANY}, .in = -1, .out = -1};
	const char *name = NULL;
	char found[MR_NAME_MAX];
	struct mr_err err = {0};
	int status = parse(self, argc, argv, &c, &name);

	if (status != MR_EXIT_CLEAN)
		return status;
	if (name == NULL && mr_report_find(found, &err) < 0) {
		fprintf(stderr, "millrace: %s\n", err.msg);
		return MR_EXIT_FAILURE;
	}
	c.buffer = malloc(BUFFER_BYTES);
	if (c.buffer == NULL) {
		fprintf(stderr, "millrace: out of memory\n");
		return MR_EXIT_FAILURE;
	}
	/* A pipe that nobody reads, or that nobody has opened, is left. */
	mr_cmd_catch_signals(true);
	status = run(&c, name != NULL ? name : found);
	free(c.buffer);
	return status;
}
