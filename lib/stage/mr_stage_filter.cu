/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter: the first rule that a packet meets permits or denies it. State-free.
 *
 *     # what it does, and what a packet has to be; what is left out may be anything
 *     count  proto icmp
 *     permit proto udp  src 10.0.0.0/8  dst_port 53
 *     permit proto tcp  src 2001:db8::/32  dst 2001:db8:1::7  src_port 1024-65535  dst_port 443
 *     deny   src 10.66.0.0/16
 *
 * Words of a rule: src and dst (prefix or address), proto (number, range, or tcp, udp, icmp,
 * icmp6), src_port and dst_port (number or range). A rule with a port is for UDP and TCP
 * alone. A rule that counts goes on with the next one. A permitted packet goes on to the
 * next stage, a denied one is dropped with reason policy.
 *
 * Addresses, protocol and ports are those of the outermost IP packet, behind all VLAN tags and
 * extension headers. A later fragment has no ports and meets only rules without. What is
 * malformed is dropped as such, since what it is cannot be known.
 */
#include "mr_filter.h"
#include "mr_stage.h"

enum {
	MR_FILTER_PERMITTED,
	MR_FILTER_DENIED,
	MR_FILTER_COUNTED,
	MR_FILTER_OTHER,
	MR_FILTER_NON_IP,
	MR_FILTER_MALFORMED,
};

struct mr_filter_params {
	uint32_t rules_max, otherwise, non_ip;
	char rules[MR_PARAM_FILE_MAX];
};

/* What becomes of a packet, and what it counts as. */
MR_HD uint32_t mr_filter_ip(const struct mr_ctx *ctx, const struct mr_view *v,
	const struct mr_headers *h, uint32_t *ret_counter)
{
	const struct mr_filter_params *p = (const struct mr_filter_params *)ctx->params;
	const struct mr_filter_table *t = (const struct mr_filter_table *)ctx->table;
	uint32_t counted = 0, rule = 0;

	*ret_counter = MR_FILTER_OTHER;
	if (t == NULL)
		return p->otherwise;
	rule = mr_filter_find(t, v, h, &counted);
	if (counted != 0)
		mr_count(ctx, MR_FILTER_COUNTED, counted);
	if (rule == t->rules)
		return p->otherwise;
	*ret_counter = ((const uint8_t *)mr_filter_at(t, t->actions))[rule] == MR_FILTER_PERMIT
		? MR_FILTER_PERMITTED
		: MR_FILTER_DENIED;
	return *ret_counter == MR_FILTER_PERMITTED ? MR_FILTER_PERMIT : MR_FILTER_DENY;
}

MR_HD enum mr_flow mr_stage_filter(const struct mr_ctx *ctx, struct mr_view *v)
{
	const struct mr_filter_params *p = (const struct mr_filter_params *)ctx->params;
	uint32_t counter = MR_FILTER_NON_IP, action = p->non_ip;
	struct mr_headers h;

	mr_walk(v, 0, &h);
	if ((h.has & MR_HAS_MALFORMED) != 0) {
		mr_count(ctx, MR_FILTER_MALFORMED, 1);
		return mr_drop(v, MR_REASON_malformed);
	}
	if ((h.has & (MR_HAS_IPV4 | MR_HAS_IPV6)) != 0)
		action = mr_filter_ip(ctx, v, &h, &counter);
	mr_count(ctx, counter, 1);
	return action == MR_FILTER_PERMIT ? MR_NEXT : mr_drop(v, MR_REASON_policy);
}

#if defined(MR_STAGE_DESCRIBE)
static const char *const filter_words[] = {
	[MR_FILTER_PERMIT] = "permit", [MR_FILTER_DENY] = "deny", NULL};

static const struct mr_param_desc filter_params[] = {
	{.name = "rules",
		.type = MR_PARAM_FILE,
		.offset = offsetof(struct mr_filter_params, rules),
		.def = "",
		.unit = "",
		.help = "file of rules, a line each: permit, deny or count, then src, dst, proto, "
			"src_port and dst_port with a value each, where they matter"},
	{.name = "rules_max",
		.type = MR_PARAM_U32,
		.offset = offsetof(struct mr_filter_params, rules_max),
		.min = 1,
		.max = MR_FILTER_RULES_MAX,
		.def = "1000",
		.unit = "rules",
		.help = "most rules that a reload may bring; 1000 take 2 MiB of GPU memory, 10000 "
			"take 150"},
	{.name = "otherwise",
		.type = MR_PARAM_WORD,
		.offset = offsetof(struct mr_filter_params, otherwise),
		.words = filter_words,
		.def = "deny",
		.unit = "",
		.help = "what becomes of an IP packet that meets no rule"},
	{.name = "non_ip",
		.type = MR_PARAM_WORD,
		.offset = offsetof(struct mr_filter_params, non_ip),
		.words = filter_words,
		.def = "permit",
		.unit = "",
		.help = "what becomes of a frame that is neither IPv4 nor IPv6, such as ARP"},
};

static size_t filter_bytes(const uint8_t params[MR_PARAM_BYTES])
{
	return mr_filter_bytes(((const struct mr_filter_params *)params)->rules_max);
}

static int filter_build(struct mr_table_text *text, const uint8_t params[MR_PARAM_BYTES],
	const struct mr_param_env *env, void *table, size_t *ret_bytes)
{
	(void)env;
	return mr_filter_build(
		text, ((const struct mr_filter_params *)params)->rules_max, table, ret_bytes);
}

static const struct mr_table_desc filter_table = {"rules", "rules_max", filter_bytes, filter_build};

static const struct mr_stage_counter filter_counters[] = {
	[MR_FILTER_PERMITTED] = {"permitted", "packets that a rule permitted"},
	[MR_FILTER_DENIED] = {"denied", "packets that a rule denied"},
	[MR_FILTER_COUNTED] = {"counted", "rules met that count"},
	[MR_FILTER_OTHER] = {"other", "IP packets that met no rule"},
	[MR_FILTER_NON_IP] = {"non_ip", "frames that are not IP"},
	[MR_FILTER_MALFORMED] = {"malformed", "frames whose headers are cut off or contradict"},
};

const struct mr_stage_desc mr_stage_desc_filter = {
	.name = "filter",
	.help = "permit, deny or count by rules of addresses, protocol and ports; the first holds",
	.id = MR_STAGE_filter,
	.work = MR_WORK_THREAD,
	.in_place = true,
	.params = filter_params,
	.params_count = MR_ARRAY_LEN(filter_params),
	.table = &filter_table,
	.counters = filter_counters,
	.counters_count = MR_ARRAY_LEN(filter_counters),
};
#endif
