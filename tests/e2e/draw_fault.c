/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * draw_fault FIRST COUNT - what fault=any is for each seed: lines of seed, kind, block
 * and at (see mr_cudasim.h), by the software device's own parser.
 */
#include "mr_cudasim_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	static const char *const kinds[SIM_FAULT_KINDS] = {[SIM_FAULT_ALLOC] = "alloc",
		[SIM_FAULT_HOSTALLOC] = "hostalloc",
		[SIM_FAULT_REGISTER] = "register",
		[SIM_FAULT_MAP] = "map",
		[SIM_FAULT_MODULE] = "module",
		[SIM_FAULT_LAUNCH] = "launch",
		[SIM_FAULT_LATE] = "late",
		[SIM_FAULT_STALL] = "stall",
		[SIM_FAULT_IDLE] = "idle",
		[SIM_FAULT_DIE] = "die",
		[SIM_FAULT_LOST] = "lost"};
	uint64_t first, count;

	if (argc != 3)
		return 2;
	first = strtoull(argv[1], NULL, 10);
	count = strtoull(argv[2], NULL, 10);
	for (uint64_t seed = first; seed < first + count; seed++) {
		struct sim_options o;
		struct mr_err err;
		char text[64];

		snprintf(text, sizeof(text), "seed=%" PRIu64 ",fault=any", seed);
		if (mr_sim_options_parse(text, &o, &err) < 0) {
			fprintf(stderr, "%s\n", err.msg);
			return 1;
		}
		printf("%" PRIu64 " %s %" PRIu32 " %" PRIu32 "\n", seed, kinds[o.fault[0].kind],
			o.fault[0].block, o.fault[0].at);
	}
	return 0;
}
