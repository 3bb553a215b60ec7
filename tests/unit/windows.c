/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host form of the stage `unpack` on the packets of a judge, who has them too.
 *
 *     windows < ORDERS
 *
 * Orders are lines: "P NAME VALUE" sets a parameter, also while it runs, to nothing without a
 * value; "Z BYTES" and so many bytes are the table of formats; "S" begins with memory of zeroes. "F
 * NS BYTES" and so many bytes are a frame at that time of the device's clock, "T NS ROOM LAST" is a
 * blank buffer of so many bytes. Both print "FLOW VERDICT REASON PORT" and, where that sends a
 * result, its bytes. "C" prints the counters, "M" says of the first window that it has all samples
 * that it may have.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mr_stage_unpack.cu"

#define ROOM 9216u

static const struct mr_stage_desc *stage;
static uint64_t counters[MR_COUNTERS_MAX];
static _Alignas(8) uint8_t params[MR_PARAM_BYTES];
static char none[1], *text = none;
static struct mr_ctx ctx = {.params = params, .counters = counters, .size = 1, .live = 1};

static void die(const char *what)
{
	fprintf(stderr, "windows: %s\n", what);
	exit(2);
}

/* So many bytes of the input, with a 0 behind them, in memory that ends with it. */
static void *take(size_t bytes)
{
	char *p = malloc(bytes + 1);

	if (p == NULL || fread(p, 1, bytes, stdin) != bytes)
		die("the input ends");
	p[bytes] = '\0';
	return p;
}

static void begin(void)
{
	struct mr_table_errors errors = {0};
	struct mr_table_text t = {.at = text, .errors = &errors};
	size_t bytes;
	struct mr_err err;
	void *table = malloc(stage->table->bytes(params));

	if (stage->check(params, UINT32_MAX, &err) != 0)
		die(err.msg);
	if (stage->table->build(&t, params, NULL, table, &bytes) != 0 || errors.count != 0)
		die(errors.e[0].message);
	ctx.table = table;
	ctx.state = calloc(1, mr_stage_lane_bytes(stage, params));
	memset(counters, 0, sizeof(counters));
}

static void run(struct mr_view *v)
{
	enum mr_flow flow = mr_stage_unpack(&ctx, v);

	printf("%d %u %u %u ", flow, v->verdict, v->arg, v->port);
	for (uint32_t i = 0; flow == MR_STOP && v->verdict == MR_TX && i < v->length; i++)
		printf("%02x", v->frame[i]);
	printf("\n");
}

static void frame(size_t bytes)
{
	const int forward = ((const struct mr_unpack_params *)params)->common.forward != 0;
	/* One that goes on ends with its buffer, so that a sanitizer sees who reads on. */
	const uint32_t room = forward ? 128 + (uint32_t)bytes : ROOM;
	uint8_t *from = take(bytes), *buffer = malloc(room);
	struct mr_view v = {.frame = buffer + 128,
		.length = (uint32_t)bytes,
		.head = 128,
		.room = room,
		.verdict = MR_TX};

	memcpy(v.frame, from, bytes);
	ctx.tick = MR_TICK_NOT;
	run(&v);
	if ((forward || v.verdict != MR_TX) &&
		(v.length != bytes || memcmp(v.frame, from, bytes) != 0))
		die("a packet was changed");
	free(from);
	free(buffer);
}

static void blank(uint32_t room, int last)
{
	uint8_t *buffer = malloc(room);
	struct mr_view v = {.frame = buffer, .room = room};

	(void)mr_drop(&v, MR_REASON_blank);
	ctx.tick = last ? MR_TICK_LAST : MR_TICK;
	run(&v);
	free(buffer);
}

int main(void)
{
	char line[512], name[64], value[256];
	struct mr_err err;
	uint32_t room;
	size_t bytes;
	int last;

	stage = mr_stage_find("unpack");
	mr_stage_param_defaults(stage, params);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		value[0] = '\0';
		if (sscanf(line, "P %63s %255s", name, value) >= 1) {
			if (mr_stage_param_set(stage, name, value, NULL, params, &err) != 0)
				die(err.msg);
		} else if (sscanf(line, "Z %zu", &bytes) == 1) {
			text = take(bytes);
		} else if (strcmp(line, "S\n") == 0) {
			begin();
		} else if (sscanf(line, "F %" SCNu64 " %zu", &ctx.now_ns, &bytes) == 2) {
			frame(bytes);
		} else if (sscanf(line, "T %" SCNu64 " %" SCNu32 " %d", &ctx.now_ns, &room,
				   &last) == 3) {
			blank(room, last);
		} else if (strcmp(line, "M\n") == 0) {
			struct mr_unpack_state *st = ctx.state;

			mr_window_channels(mr_window_at(&st->pool, mr_unpack_windows(st), 1))
				->sum.count = MR_WINDOW_SAMPLES_MAX + 1ull;
		} else if (strcmp(line, "C\n") == 0) {
			for (uint32_t i = 0; i < stage->counters_count; i++)
				printf("%s=%" PRIu64 " ", stage->counters[i].name, counters[i]);
			printf("\n");
		} else {
			die(line);
		}
	}
	return 0;
}
