/* SPDX-License-Identifier: BSD-3-Clause */
/* millrace capture: from a running instance's tap into a file of pcapng. */
#include "mr_cmd.h"

#include "mr_base.h"
#include "mr_pcapng.h"
#include "mr_report.h"
#include "mr_report_client.h"
#include "mr_ring_abi.h"
#include "mr_sync.h"
#include "mr_tap_client.h"
#include "mr_tap_compile.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PACKETS_MAX UINT64_C(1000000000000)
#define EVERY_VERDICT UINT32_MAX

static const char *const reasons[] = {
#define REASON(name, help) #name,
#include "mr_reasons.def"
#undef REASON
};

struct options {
	const char *name, *filter, *file;
	uint64_t packets; /* 0: until told */
	struct mr_tap_request request;
	struct mr_tap_insn insns[MR_TAP_INSNS_MAX];
};

/* Up to which packet a worker's are taken, once enough were. */
struct last {
	uint32_t seq;
	uint16_t index;
};

struct capture {
	struct options o;
	struct mr_report_client instance;
	struct mr_tap_client client;
	struct mr_pcapng out;
	uint64_t packets, copies[2], lost;
	uint64_t time_ns; /* of the last packet */
	bool enough;
	struct last last[MR_WORKERS_MAX];
	char counters[MR_PCAPNG_COMMENT_MAX]; /* of stages, as they were told last */
	bool counters_new;
};

static int bad(const char *fmt, const char *text)
{
	fprintf(stderr, "millrace: ");
	fprintf(stderr, fmt, text);
	fputc('\n', stderr);
	return MR_EXIT_USAGE;
}

static bool parse_number(const char *text, uint64_t most, uint64_t *ret_v)
{
	char *end;

	errno = 0;
	*ret_v = strtoull(text, &end, 10);
	return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' && *ret_v > 0 &&
		*ret_v <= most;
}

static bool parse_verdict(const char *text, struct mr_tap_request *r)
{
	static const char *const names[] = {
		[MR_TX] = "tx", [MR_TX_MASK] = "tx_mask", [MR_DROP] = "drop"};

	for (uint32_t v = 0; v < MR_ARRAY_LEN(names); v++)
		if (strcmp(text, names[v]) == 0) {
			r->verdicts = 1u << v;
			return true;
		}
	for (uint32_t k = 0; k < MR_ARRAY_LEN(reasons); k++)
		if (strcmp(text, reasons[k]) == 0) {
			r->verdicts = 1u << MR_DROP;
			r->reason = k;
			return true;
		}
	return false;
}

static int bad_verdict(const char *text)
{
	fprintf(stderr, "millrace: --verdict '%s' is none; choose one of: tx, tx_mask, drop", text);
	for (uint32_t k = 0; k < MR_ARRAY_LEN(reasons); k++)
		fprintf(stderr, ", %s", reasons[k]);
	fputc('\n', stderr);
	return MR_EXIT_USAGE;
}

static int take_option(struct options *o, int c)
{
	uint64_t v;

	switch (c) {
	case 'c':
		if (!parse_number(optarg, PACKETS_MAX, &o->packets))
			return bad("-c '%s' is not a number of packets; give 1 to 10^12", optarg);
		return 0;
	case 's':
		if (!parse_number(optarg, MR_TAP_SNAP_MAX, &v))
			return bad("-s '%s' is not a length; give 1 to 65535 bytes", optarg);
		o->request.snaplen = (uint32_t)v;
		return 0;
	case 'f':
		o->filter = optarg;
		return 0;
	case 'v':
		return parse_verdict(optarg, &o->request) ? 0 : bad_verdict(optarg);
	case 'w':
		o->file = optarg;
		return 0;
	case 'n':
		o->name = optarg;
		return 0;
	}
	return -1;
}

static int parse_options(const struct mr_cmd *self, int argc, char **argv, struct options *o)
{
	struct mr_err err = {0};
	int c;

	memcpy(o->request.magic, MR_TAP_MAGIC, sizeof(o->request.magic));
	o->request.snaplen = MR_TAP_SNAP_MAX;
	o->request.verdicts = EVERY_VERDICT;
	o->request.reason = MR_TAP_ANY_REASON;
	while ((c = mr_cmd_next(self, argc, argv)) != -1) {
		int status = take_option(o, c);

		if (status != 0)
			return status < 0 ? mr_cmd_usage(self) : status;
	}
	if (optind + 1 != argc)
		return mr_cmd_usage(self);
	if (strlen(argv[optind]) >= sizeof(o->request.lane))
		return bad("'%s' is longer than the name of a lane; 'millrace stats' lists them",
			argv[optind]);
	memcpy(o->request.lane, argv[optind], strlen(argv[optind]));
	if (o->file == NULL)
		return bad("%s",
			"a capture is written somewhere: add -w FILE, or -w - for "
			"standard output");
	if (strcmp(o->file, "-") == 0 && isatty(STDOUT_FILENO))
		return bad("%s",
			"a capture is not for a terminal: send standard output through a "
			"pipe, or give -w FILE");
	if (o->filter != NULL &&
		mr_tap_compile(o->filter, o->insns, &o->request.insns_count, &err) < 0)
		return bad("%s", err.msg);
	return 0;
}

/* What became of a packet, in words. */
static void comment(const struct capture *k, const struct mr_tap_record *r, char text[256])
{
	int n = snprintf(text, 256, "lane=%s verdict=", k->o.request.lane);

	if (r->verdict == MR_DROP)
		snprintf(text + n, 256 - (size_t)n, "drop reason=%s",
			r->arg < MR_ARRAY_LEN(reasons) ? reasons[r->arg] : "?");
	else if (r->verdict == MR_TX_MASK)
		snprintf(text + n, 256 - (size_t)n, "tx_mask tx=0x%x", r->arg);
	else
		snprintf(text + n, 256 - (size_t)n, "%s tx=%u", r->verdict == MR_TX ? "tx" : "?",
			r->port);
}

/* Whether a record is one of the packets that are wanted, up to -c. */
static bool wanted(struct capture *k, const struct mr_tap_record *r)
{
	struct last *last = &k->last[k->client.message.worker % MR_WORKERS_MAX];
	int32_t later = (int32_t)(r->seq - last->seq);

	if (r->unwanted != 0)
		return false;
	if (r->point == MR_TAP_AFTER)
		return !k->enough || later < 0 || (later == 0 && r->index <= last->index);
	if (k->enough)
		return false;
	*last = (struct last){r->seq, r->index};
	k->packets++;
	k->enough = k->packets == k->o.packets;
	return true;
}

static int write_record(
	struct capture *k, const struct mr_tap_record *r, const uint8_t *frame, struct mr_err *err)
{
	const struct mr_tap_message *m = &k->client.message;
	bool after = r->point == MR_TAP_AFTER;
	struct mr_pcapng_packet p = {.interface = after ? 1 : 0,
		.time_ns = r->time_ns + (uint64_t)m->offset_ns,
		.frame = frame,
		.kept = r->kept,
		.length = r->length,
		.outbound = after,
		.dropped = m->lost - k->lost};
	char text[256];

	comment(k, r, text);
	p.comments[0] = text;
	if (k->counters_new)
		p.comments[1] = k->counters;
	k->counters_new = false;
	k->lost = m->lost;
	k->time_ns = p.time_ns;
	k->copies[after]++;
	return mr_pcapng_packet(&k->out, &p, err);
}

static int take_records(struct capture *k, struct mr_err *err)
{
	const struct mr_tap_message *m = &k->client.message;
	struct mr_tap_record r;
	const uint8_t *frame;
	size_t at = 0;
	int rc = 0;

	while (rc == 0 && mr_tap_client_record(&k->client, &at, &r, &frame))
		if (wanted(k, &r))
			rc = write_record(k, &r, frame, err);
	if (rc == 0 && at != m->bytes)
		return mr_err_set(err, -EPROTO, "the instance sent a record that is none");
	/* Who reads a pipe sees each packet at once. */
	return rc == 0 ? mr_pcapng_flush(&k->out, err) : rc;
}

/* "stage name value" a line becomes "stages: stage.name=value ...". */
static void take_counters(struct capture *k)
{
	const char *line = (const char *)k->client.data;
	size_t used = (size_t)snprintf(k->counters, sizeof(k->counters), "stages:");
	char stage[64], name[64], value[32];
	int n;

	while (sscanf(line, "%63s %63s %31s\n%n", stage, name, value, &n) == 3 &&
		used < sizeof(k->counters)) {
		used += (size_t)snprintf(k->counters + used, sizeof(k->counters) - used,
			" %s.%s=%s", stage, name, value);
		line += n;
	}
	k->counters_new = line != (const char *)k->client.data;
}

/* 0: enough, or told to end, or the instance stopped. */
static int capture(struct capture *k, struct mr_err *err)
{
	while (mr_load_relaxed(&mr_cmd_signal_seen) == 0) {
		const struct mr_tap_message *m = &k->client.message;
		int rc = mr_tap_client_next(&k->client, err);

		if (rc == -EAGAIN)
			continue;
		if (rc < 0)
			return rc;
		if (m->kind == MR_TAP_ENDED) {
			fprintf(stderr, "millrace: %s\n", (const char *)k->client.data);
			return 0;
		}
		if (m->kind == MR_TAP_RECORDS)
			rc = take_records(k, err);
		else
			take_counters(k);
		if (rc < 0)
			return rc;
		if (k->enough)
			return 0;
	}
	return 0;
}

static int begin_file(struct capture *k, int fd, struct mr_err *err)
{
	const struct options *o = &k->o;
	const char *lane = o->request.lane;
	char name[2][64], about[256];
	int rc = 0;

	snprintf(about, sizeof(about), "millrace %s", MR_VERSION);
	mr_pcapng_begin(
		&k->out, strcmp(o->file, "-") == 0 ? "standard output" : o->file, fd, about);
	snprintf(name[0], sizeof(name[0]), "%s-before", lane);
	snprintf(name[1], sizeof(name[1]), "%s-after", lane);
	for (uint32_t i = 0; rc == 0 && i < 2; i++) {
		snprintf(about, sizeof(about), "lane %s of instance %s, %s the chain", lane,
			k->instance.name, i == 0 ? "before" : "behind");
		rc = mr_pcapng_interface(&k->out, name[i], about, o->request.snaplen, err);
	}
	return rc == 0 ? mr_pcapng_flush(&k->out, err) : rc;
}

static int end_file(struct capture *k, struct mr_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < 2; i++)
		rc = mr_pcapng_statistics(&k->out, i, k->time_ns, k->copies[i],
			i == 0 ? k->client.message.lost : 0,
			k->counters[0] != '\0' ? k->counters : NULL, err);
	return rc == 0 ? mr_pcapng_flush(&k->out, err) : rc;
}

/* The instance is there and takes the capture before a file is touched. */
static int run(struct capture *k, struct mr_err *err)
{
	const struct options *o = &k->o;
	int fd = STDOUT_FILENO;
	int rc = mr_tap_client_open(&k->client, k->instance.dir, &o->request, o->insns, err);

	while (rc == 0 && (rc = mr_tap_client_next(&k->client, err)) == -EAGAIN)
		rc = mr_load_relaxed(&mr_cmd_signal_seen) != 0
			? mr_err_set(err, -EINTR, "told to end before the instance answered")
			: 0;
	if (rc < 0)
		return rc;
	take_counters(k);
	if (strcmp(o->file, "-") != 0)
		fd = open(o->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return mr_err_set(err, -errno,
			"'%s' cannot be written: %s; name another file with "
			"-w",
			o->file, strerror(errno));
	rc = begin_file(k, fd, err);
	if (rc == 0)
		rc = capture(k, err);
	mr_tap_client_finish(&k->client);
	/* What came is whole, however it ended. */
	if (rc == 0 || rc == -ECONNRESET)
		rc = end_file(k, rc == 0 ? err : NULL) < 0 && rc == 0 ? err->code : rc;
	if (fd != STDOUT_FILENO && close(fd) != 0 && rc == 0)
		rc = mr_err_set(err, -errno, "'%s': %s", o->file, strerror(errno));
	fprintf(stderr, "millrace: %" PRIu64 " packets, %" PRIu64 " copies, %" PRIu64 " lost\n",
		k->packets, k->copies[0] + k->copies[1], k->client.message.lost);
	return rc;
}

int mr_cmd_capture(const struct mr_cmd *self, int argc, char **argv)
{
	struct capture *k = calloc(1, sizeof(*k));
	char name[MR_NAME_MAX];
	struct mr_err err = {0};
	int status, rc = 0;

	if (k == NULL) {
		fprintf(stderr, "millrace: out of memory\n");
		return MR_EXIT_FAILURE;
	}
	k->client.fd = -1;
	status = parse_options(self, argc, argv, &k->o);
	if (status != 0) {
		free(k);
		return status;
	}
	mr_cmd_catch_signals();
	if (k->o.name == NULL) {
		rc = mr_report_find(name, &err);
		k->o.name = name;
	}
	if (rc == 0)
		rc = mr_report_client_open(&k->instance, k->o.name, &err);
	if (rc == 0) {
		mr_report_client_close(&k->instance);
		rc = run(k, &err);
	}
	mr_tap_client_close(&k->client);
	free(k);
	/* Who reads the pipe has enough. */
	if (rc == 0 || rc == -EPIPE)
		return MR_EXIT_CLEAN;
	fprintf(stderr, "millrace: %s\n", err.msg);
	return MR_EXIT_FAILURE;
}
