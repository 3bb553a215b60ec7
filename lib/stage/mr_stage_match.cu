/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * match: compare header fields with ranges and prefixes, and send, drop or go on.
 *
 * mr_match.h says which fields, and when a frame matches; a later fragment has no ports.
 */
#include "mr_match.h"
#include "mr_stage.h"

enum {
	MR_MATCH_MATCHED,
	MR_MATCH_OTHER,
};

enum {
	MR_MATCH_CONTINUE,
	MR_MATCH_DROP,
	MR_MATCH_SEND,
};

struct mr_match_params {
	struct mr_match fields;
	uint32_t action, otherwise, port, other_port, reason;
};

/* A field that has to be there, and the number in it. */
MR_HD int mr_match_field(const struct mr_range *r, uint32_t there, uint32_t x)
{
	return mr_range_is_any(r) || (there != 0 && mr_range_has(r, x));
}

MR_HD int mr_match_frame(const struct mr_match *p, const struct mr_view *v)
{
	struct mr_headers h;
	struct mr_ip ip;
	uint32_t ports;

	mr_walk(v, 0, &h);
	if (!mr_match_field(&p->ethertype, 1, h.ethertype) ||
		!mr_match_field(&p->vlan, h.has & MR_HAS_VLAN, h.vlan & 0xfff) ||
		!mr_match_field(&p->protocol, h.l4, h.protocol))
		return 0;
	ports = h.has & (MR_HAS_UDP | MR_HAS_TCP);
	if (!mr_match_field(&p->src_port, ports, mr_get_be16(v, h.l4)) ||
		!mr_match_field(&p->dst_port, ports, mr_get_be16(v, h.l4 + 2)) ||
		!mr_match_field(
			&p->vni, h.has & MR_HAS_VXLAN, (uint32_t)mr_get_be(v, h.payload + 4, 3)))
		return 0;
	ip = mr_walked_source(v, &h);
	if (!mr_prefix_has(&p->src, &ip))
		return 0;
	ip = mr_walked_target(v, &h);
	return mr_prefix_has(&p->dst, &ip);
}

MR_HD enum mr_flow mr_stage_match(const struct mr_ctx *ctx, struct mr_view *v)
{
	const struct mr_match_params *p = (const struct mr_match_params *)ctx->params;
	int matched = mr_match_frame(&p->fields, v);
	uint32_t action = matched ? p->action : p->otherwise;

	mr_count(ctx, matched ? MR_MATCH_MATCHED : MR_MATCH_OTHER, 1);
	if (action == MR_MATCH_SEND)
		return mr_send(v, matched ? p->port : p->other_port);
	return action == MR_MATCH_DROP ? mr_drop(v, (enum mr_reason)p->reason) : MR_NEXT;
}

#if defined(MR_STAGE_DESCRIBE)
static const char *const match_words[] = {
	[MR_MATCH_CONTINUE] = "continue", [MR_MATCH_DROP] = "drop", [MR_MATCH_SEND] = "send", NULL};

#define MATCH_RANGE(name_, max_, help_)                                                            \
	{                                                                                          \
		.name = #name_, .type = MR_PARAM_RANGE,                                            \
		.offset = offsetof(struct mr_match_params, fields.name_), .max = max_,             \
		.def = "any", .unit = "", .help = help_                                            \
	}
#define MATCH_OTHER(name_, member_, type_, def_, help_)                                            \
	{                                                                                          \
		.name = #name_, .type = MR_PARAM_##type_,                                          \
		.offset = offsetof(struct mr_match_params, member_), .words = match_words,         \
		.def = def_, .unit = "", .help = help_                                             \
	}
static const struct mr_param_desc match_params[] = {
	MATCH_RANGE(ethertype, 0xffff, "EtherType behind all VLAN tags, as in 0x0800"),
	MATCH_RANGE(vlan, 4095, "VLAN id of the outermost tag"),
	MATCH_OTHER(src, fields.src, PREFIX, "any", "source address"),
	MATCH_OTHER(dst, fields.dst, PREFIX, "any", "destination address"),
	MATCH_RANGE(protocol, 255, "IP protocol behind extension headers: 6 TCP, 17 UDP"),
	MATCH_RANGE(src_port, 65535, "UDP or TCP source port"),
	MATCH_RANGE(dst_port, 65535, "UDP or TCP destination port"),
	MATCH_RANGE(vni, 0xffffff, "network identifier of VXLAN on UDP port 4789"),
	MATCH_OTHER(action, action, WORD, "continue", "what becomes of a frame that matches"),
	MATCH_OTHER(port, port, PORT, "0", "where send sends it"),
	MATCH_OTHER(otherwise, otherwise, WORD, "continue", "what becomes of any other frame"),
	MATCH_OTHER(other_port, other_port, PORT, "0", "where send sends that"),
	MATCH_OTHER(
		reason, reason, REASON, "policy", "counter gpu_drop_<reason> of what drop drops"),
};

static const struct mr_stage_counter match_counters[] = {
	[MR_MATCH_MATCHED] = {"matched", "frames that matched"},
	[MR_MATCH_OTHER] = {"other", "frames that did not"},
};

const struct mr_stage_desc mr_stage_desc_match = {
	.name = "match",
	.help = "compare headers with given fields, and send, drop or go on",
	.id = MR_STAGE_match,
	.work = MR_WORK_THREAD,
	.in_place = true,
	.params = match_params,
	.params_count = MR_ARRAY_LEN(match_params),
	.counters = match_counters,
	.counters_count = MR_ARRAY_LEN(match_counters),
};
#endif
