/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every stage on a device against the same stage on the software device.
 *
 *     vectors DEVICE [--slots N] [--seed N] [--plant] [--patience N]
 *
 * The same random and hostile slots go through both: frames of every small length
 * and of large ones, lengths and heads that leave the buffer, positions that leave
 * the region. Results, packet memory and counters must be the same to the byte. With
 * --plant one answer of the device is falsified, so that the comparison must fail. With
 * --patience the device may take N times as long.
 */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 4u
#define BATCH 64u
#define ROOM 2048u
#define HEAD 128u

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % below;
}

static uint32_t draw_length(void)
{
	switch (draw(4)) {
	case 0:
		return draw(80);
	case 1:
		return ROOM - HEAD - draw(4);
	default:
		return 14 + draw(1500);
	}
}

/* One packet of ten has a descriptor that no lane would write. */
static struct mr_desc_in draw_descriptor(uint32_t buffer)
{
	struct mr_desc_in d = {.position = buffer * (ROOM / MR_UNIT),
		.length = (uint16_t)draw_length(),
		.head = HEAD};

	switch (draw(30)) {
	case 0:
		d.length = (uint16_t)draw(65536);
		break;
	case 1:
		d.head = (uint16_t)draw(65536);
		break;
	case 2:
		d.position = (uint32_t)(state & UINT32_MAX);
		break;
	}
	return d;
}

static void fill(struct rig *r[2], uint32_t slot, struct mr_desc_in *d)
{
	static uint8_t frame[ROOM];

	for (uint32_t i = 0; i < BATCH; i++) {
		uint32_t buffer = slot % SLOTS * BATCH + i;

		for (uint32_t k = 0; k < ROOM; k += 8) {
			(void)draw(2);
			memcpy(frame + k, &state, 8);
		}
		d[i] = draw_descriptor(buffer);
		for (uint32_t k = 0; k < 2; k++)
			rig_write(r[k], buffer, 0, frame, ROOM);
	}
}

static const struct mr_desc_out *answer(struct rig *r)
{
	const uint64_t began = mr_clock_ns();
	const struct mr_slot_out *out;

	while ((out = mr_ring_take(&r->ring)) == NULL)
		if (mr_clock_ns() - began > rig_patience * 20000000000ull)
			rig_die("device '%s': a slot did not come back", r->d->name);
	return mr_slot_desc_out(out);
}

static uint32_t compare(struct rig *r[2], uint32_t slot, const struct mr_desc_in *d, bool plant)
{
	const struct mr_desc_out *out[2] = {answer(r[0]), answer(r[1])};
	static uint8_t bytes[2][ROOM];

	for (uint32_t i = 0; i < BATCH; i++) {
		uint32_t buffer = slot % SLOTS * BATCH + i;

		for (uint32_t k = 0; k < 2; k++)
			rig_read(r[k], buffer, 0, bytes[k], ROOM);
		if (plant && slot == 0 && i == 7)
			bytes[0][HEAD + 3] ^= 1;
		if (memcmp(&out[0][i], &out[1][i], sizeof(out[0][i])) == 0 &&
			memcmp(bytes[0], bytes[1], ROOM) == 0)
			continue;
		printf("slot %u packet %u (position %u length %u head %u) differs: verdict %u/%u "
		       "length %u/%u arg %u/%u\n",
			slot, i, d[i].position, d[i].length, d[i].head, out[0][i].verdict,
			out[1][i].verdict, out[0][i].length, out[1][i].length, out[0][i].arg,
			out[1][i].arg);
		return 1;
	}
	for (uint32_t k = 0; k < 2; k++)
		mr_ring_release(&r[k]->ring);
	return 0;
}

static uint32_t compare_counters(struct rig *r[2], const char *chain)
{
	for (uint32_t c = 0; c < MR_COUNTERS_MAX; c++) {
		uint64_t sum[2] = {0};

		for (uint32_t k = 0; k < 2; k++)
			for (uint32_t w = 0; w < r[k]->plan.workers; w++)
				sum[k] += r[k]->counters[w * MR_COUNTERS_MAX + c];
		if (sum[0] == sum[1])
			continue;
		printf("%s: counter %u is %llu, should be %llu\n", chain, c,
			(unsigned long long)sum[0], (unsigned long long)sum[1]);
		return 1;
	}
	return 0;
}

static uint32_t run(struct rig_device d[2], const struct rig_plan *plan, const char *chain,
	uint32_t slots, bool plant)
{
	struct rig rig[2], *r[2] = {&rig[0], &rig[1]};
	uint32_t wrong = 0;

	for (uint32_t k = 0; k < 2; k++) {
		rig_make(&d[k], plan, r[k]);
		rig_start(r[k]);
	}
	for (uint32_t s = 0; s < slots && wrong == 0; s++) {
		struct mr_desc_in in[BATCH];

		fill(r, s, in);
		for (uint32_t k = 0; k < 2; k++) {
			memcpy(mr_slot_desc_in(mr_ring_in(&r[k]->ring, r[k]->ring.head)), in,
				sizeof(in));
			mr_ring_give(&r[k]->ring, BATCH, 0);
		}
		wrong = compare(r, s, in, plant);
	}
	for (uint32_t k = 0; k < 2; k++)
		rig_stop(r[k]);
	if (wrong == 0)
		wrong = compare_counters(r, chain);
	for (uint32_t k = 0; k < 2; k++)
		rig_free(r[k]);
	printf("%-24s %s memory, %u workers: %s\n", chain, plan->host ? "host" : "device",
		plan->workers, wrong == 0 ? "same" : "DIFFERENT");
	return wrong;
}

int main(int argc, char **argv)
{
	uint32_t slots = 64, wrong = 0;
	bool plant = false;
	struct rig_device d[2];

	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--plant") == 0)
			plant = true;
		else if (strcmp(argv[i], "--slots") == 0 && i + 1 < argc)
			slots = (uint32_t)atoi(argv[++i]);
		else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
			state = (uint64_t)atoll(argv[++i]) | 1;
		else if (strcmp(argv[i], "--patience") == 0 && i + 1 < argc)
			rig_patience = (uint32_t)atoi(argv[++i]);
		else
			argc = 0;
	}
	if (argc < 2)
		rig_die("usage: vectors DEVICE [--slots N] [--seed N] [--plant] [--patience N]");
	rig_open(argv[1], &d[0]);
	rig_open("sim,mem=64MiB", &d[1]);
	for (uint32_t i = 0; i < MR_STAGE_COUNT; i++)
		for (uint32_t k = 0; k < 4; k++) {
			enum mr_stage_id chain[] = {(enum mr_stage_id)i, MR_STAGE_l2swap};
			struct rig_plan plan = {.slots = SLOTS,
				.batch = BATCH,
				.workers = k < 2 ? 1 : 3,
				.buffers = SLOTS * BATCH,
				.room = ROOM,
				.host = k % 2 != 0,
				.chain = chain,
				.chain_len = k < 2 ? 1 : 2};
			char name[64];

			snprintf(name, sizeof(name), "%s%s", mr_stage_at(i)->name,
				k < 2 ? "" : ", l2swap");
			wrong += run(d, &plan, name, slots, plant);
		}
	return wrong == 0 ? 0 : 1;
}
