/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a configuration of either kind: parsing and planning end without a crash,
 * and what they refuse, they explain. libcyaml never refuses what the checks took.
 *
 *     fuzz_config -max_total_time=60 CORPUS tests/e2e/bad_configs config
 */
#include "mr_gen_config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct mr_problems problems;
static struct mr_plan plan;

static void explained(int rc)
{
	if (rc == 0 && problems.count == 0)
		return;
	if (rc == 0 || problems.count == 0 || problems.p[0].message[0] == '\0' ||
		strncmp(problems.p[0].message, "libcyaml", 8) == 0)
		abort();
}

/* A pool begins at a unit and ends, with a page of padding behind it, in its region. */
static void placed(const struct mr_plan_lane *l, enum mr_path path, uint64_t offset, uint64_t bytes)
{
	const struct mr_plan_region *r = &plan.devices[l->device].region[path];

	if (!r->used || offset % MR_UNIT != 0 || offset + bytes + MR_REGION_PAGE > r->bytes)
		abort();
}

/* What setup relies on without looking again. */
static void sound(void)
{
	for (uint32_t i = 0; i < plan.lanes_count; i++) {
		const struct mr_plan_lane *l = &plan.lanes[i];
		bool moves = mr_plan_lane_moves(l);

		if (l->rx_port >= plan.ports_count || l->device >= plan.devices_count ||
			l->rx_path >= MR_PATH_COUNT || l->tx_path >= MR_PATH_COUNT ||
			moves != (l->tx_buffers > 0) ||
			mr_plan_lane_copies(l) != (l->copies_bytes > 0))
			abort();
		if (l->stages_count > MR_CHAIN_MAX || l->group > i ||
			plan.lanes[l->group].rx_port != l->rx_port ||
			(mr_plan_port_isolated(&plan.ports[l->rx_port]) &&
				(l->match_text[0] == '\0' ||
					mr_match_rules(&l->settled) > MR_MATCH_RULES_MAX)))
			abort();
		placed(l, l->rx_path, l->pool_offset, l->pool_bytes);
		if ((l->rest_pool_bytes != 0) != (plan.ports[l->rx_port].split_bytes != 0) ||
			(l->rest_pool_bytes != 0 && (moves || mr_plan_lane_copies(l))))
			abort();
		placed(l, l->rx_path, l->rest_pool_offset, l->rest_pool_bytes);
		if (moves)
			placed(l, l->tx_path, l->tx_pool_offset, l->tx_pool_bytes);
		if (l->element_bytes % MR_UNIT != 0 || l->buffers < l->buffers_min ||
			l->cache * 3 / 2 > l->buffers)
			abort();
		for (uint32_t t = 0; t < l->tx_count; t++)
			if (l->tx[t].port >= plan.ports_count ||
				l->tx[t].queue >= plan.ports[l->tx[t].port].tx_queues)
				abort();
	}
}

/* The same bytes for the generator; what its threads rely on. */
static void as_gen(const uint8_t *data, size_t size, const struct mr_host *host)
{
	static struct mr_gen_plan g;
	struct mr_gen_config cfg;
	int rc = mr_gen_config_parse("fuzz.yaml", (const char *)data, size, &cfg, &problems);

	explained(rc);
	if (rc != 0)
		return;
	rc = mr_gen_plan_build(&cfg, host, NULL, &g, &problems);
	explained(rc);
	mr_gen_config_free(&cfg);
	if (rc != 0)
		return;
	if (g.send_port >= g.plan.ports_count || g.sizes_count == 0 || g.burst == 0 ||
		(g.gap == 0 && g.calibrate_ms == 0))
		abort();
	for (uint32_t i = 0; i < g.sizes_count; i++)
		if (g.sizes[i] < MR_GEN_SIZE_MIN ||
			g.sizes[i] - MR_GEN_FCS + MR_HEADROOM > g.plan.host_element_bytes)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mr_host host = {.known = true, .cpus = 4, .memory_bytes = 1 << 30};
	struct mr_config cfg;
	int rc;

	for (uint32_t i = 0; i < host.cpus; i++)
		host.cpu_online[i] = host.cpu_allowed[i] = true;
	as_gen(data, size, &host);
	rc = mr_config_parse("fuzz.yaml", (const char *)data, size, &cfg, &problems);
	explained(rc);
	if (rc != 0)
		return 0;
	rc = mr_plan_build(&cfg, &host, NULL, &plan, &problems);
	explained(rc);
	if (rc == 0)
		sound();
	mr_config_free(&cfg);
	return 0;
}
