/* SPDX-License-Identifier: BSD-3-Clause */
/* What captures need to know of the lanes. */
#include "mr_setup_priv.h"

#include <stdio.h>

static void counters(void *ctx, uint32_t lane, char *ret_text, size_t bytes)
{
	struct mr_setup *s = ctx;
	const struct mr_plan_lane *p = &s->plan->lanes[lane];
	uint64_t values[MR_COUNTERS_MAX];
	size_t used = 0;

	ret_text[0] = '\0';
	mr_gpu_counters(s->lanes[lane].gpu, s->lanes[lane].launch_index, values);
	for (uint32_t k = 0; k < p->stages_count; k++)
		for (uint32_t c = 0; c < p->stages[k].desc->counters_count && used < bytes; c++)
			used += (size_t)snprintf(ret_text + used, bytes - used, "%s %s %llu\n",
				p->stages[k].desc->name, p->stages[k].desc->counters[c].name,
				(unsigned long long)values[p->stages[k].counter_base + c]);
}

int mr_setup_tap_up(struct mr_setup *s, struct mr_err *err)
{
	const struct mr_tap_source source = {.lanes = s->taps,
		.lanes_count = s->plan->lanes_count,
		.counters = counters,
		.ctx = s};

	for (uint32_t i = 0; i < s->plan->lanes_count; i++)
		s->taps[i] = (struct mr_tap_target){s->plan->lanes[i].name, s->lanes[i].gpu,
			s->lanes[i].launch_index, s->plan->lanes[i].workers};
	return s->plan->lanes_count == 0 ? 0 : mr_tap_serve(s->dir, &source, &s->tap_server, err);
}

void mr_setup_tap_down(struct mr_setup *s)
{
	mr_tap_unserve(s->tap_server);
	s->tap_server = NULL;
}
