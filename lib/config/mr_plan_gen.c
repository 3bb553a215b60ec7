/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gen_config.h"
#include "mr_plan_priv.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FLOOR_NAME "mr-floor"
#define CACHE 256u
#define CACHE_HELD (CACHE * 3 / 2)
#define THREADS 3u     /* sender, sink, and the control thread that fills receive rings */
#define ROOM_MIN 2048u /* drivers expect as much of any pool (RTE_MBUF_DEFAULT_DATAROOM) */
#define BURSTS 128u

struct gen_work {
	struct mr_plan_work w;
	const struct mr_gen_config *cfg;
	struct mr_gen_plan *plan;
};

static void plan_ports(struct gen_work *g)
{
	struct mr_plan *p = &g->plan->plan;
	char key[64];

	mr_plan_ports(&g->w);
	g->plan->send_port = mr_plan_find_port(&g->w, g->cfg->send.port, "send.port");
	g->plan->receive_port = MR_GEN_NO_PORT;
	if (g->cfg->receive.port != NULL)
		g->plan->receive_port =
			mr_plan_find_port(&g->w, g->cfg->receive.port, "receive.port");
	if (g->w.ps->count > 0)
		return;
	p->ports[g->plan->send_port].tx_queues = 1;
	if (g->plan->receive_port != MR_GEN_NO_PORT)
		p->ports[g->plan->receive_port].rx_queues = 1;
	for (uint32_t i = 0; i < p->ports_count; i++) {
		snprintf(key, sizeof(key), "ports[%u]", i);
		if (p->ports[i].rx_queues + p->ports[i].tx_queues == 0)
			mr_plan_refuse(&g->w, key, "remove it, or name it in send or receive",
				"port '%s' is not used", p->ports[i].name);
		mr_plan_port_args(&g->w, i);
	}
}

/* The loop in memory that tells how much of a latency is the generator's own. */
static void plan_floor(struct gen_work *g)
{
	struct mr_plan *p = &g->plan->plan;
	struct mr_plan_port *f = &p->ports[p->ports_count];

	g->plan->floor_port = MR_GEN_NO_PORT;
	if (g->cfg->receive.port == NULL || g->cfg->send.calibrate_ms == 0 ||
		p->ports_count == MR_PORTS_MAX)
		return;
	g->plan->floor_port = p->ports_count++;
	*f = (struct mr_plan_port){.name = FLOOR_NAME,
		.kind = MR_PORT_VDEV,
		.device = "net_ring_floor",
		.mtu = p->ports[g->plan->send_port].mtu,
		.frame_max = p->ports[g->plan->send_port].frame_max,
		.rx_ring = 32,
		.tx_ring = 32,
		.rx_queues = 1,
		.tx_queues = 1};
}

static void plan_cores(struct gen_work *g)
{
	int32_t send = g->cfg->send.core, receive = g->cfg->receive.core;

	g->plan->send_core = send;
	g->plan->receive_core = receive;
	mr_plan_core(&g->w, send, "send.core");
	if (g->cfg->receive.port == NULL)
		return;
	mr_plan_core(&g->w, receive, "receive.core");
	if (send >= 0 && send == receive)
		mr_plan_refuse(&g->w, "receive.core", "give each a core of its own, or any",
			"core %d already polls for the sender", receive);
}

static bool parse_mac(const char *text, uint8_t ret_mac[6])
{
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t v = 0;

		for (uint32_t k = 0; k < 2; k++) {
			char c = text[3 * i + k];

			if (!isxdigit((unsigned char)c))
				return false;
			v = v * 16 +
				(uint32_t)(isdigit((unsigned char)c)
						? c - '0'
						: tolower((unsigned char)c) - 'a' + 10);
		}
		if (text[3 * i + 2] != (i < 5 ? ':' : '\0'))
			return false;
		ret_mac[i] = (uint8_t)v;
	}
	return true;
}

static void plan_mac(struct gen_work *g, const char *text, uint8_t ret_mac[6], const char *key)
{
	if (!parse_mac(text, ret_mac))
		mr_plan_refuse(&g->w, key, "write six bytes as 02:00:00:00:00:01",
			"'%.40s' is not an Ethernet address", text);
}

static void plan_ip(struct gen_work *g, const char *text, uint32_t *ret_ip, const char *key)
{
	struct in_addr a;

	if (inet_pton(AF_INET, text, &a) == 1)
		*ret_ip = ntohl(a.s_addr);
	else
		mr_plan_refuse(&g->w, key, "write it as 198.18.0.1",
			"'%.40s' is not an IPv4 address", text);
}

static void plan_headers(struct gen_work *g)
{
	const struct mr_gen_frames *f = &g->cfg->frames;
	struct mr_gen_headers *h = &g->plan->headers;

	plan_mac(g, f->src_mac, h->src_mac, "frames.src_mac");
	plan_mac(g, f->dst_mac, h->dst_mac, "frames.dst_mac");
	if ((h->src_mac[0] & 1) != 0)
		mr_plan_refuse(&g->w, "frames.src_mac", "make its first byte even",
			"'%.40s' is a group address, and cannot be a source", f->src_mac);
	plan_ip(g, f->src_ip, &h->src_ip, "frames.src_ip");
	plan_ip(g, f->dst_ip, &h->dst_ip, "frames.dst_ip");
	h->vlan = (uint16_t)f->vlan;
	h->src_port = (uint16_t)f->src_port;
	h->dst_port = (uint16_t)f->dst_port;
	g->plan->streams = f->streams;
	if (f->dst_port >= f->src_port && f->dst_port < f->src_port + f->streams)
		mr_plan_refuse(&g->w, "frames.dst_port", "use one outside of them",
			"port %u is also the source of a stream, so the way of a frame could not "
			"be told",
			f->dst_port);
}

static void plan_sizes(struct gen_work *g)
{
	static const uint16_t imix[] = {64, 570, 64, 64, 570, 64, 1518, 64, 570, 64, 570, 64};
	const struct mr_gen_frames *f = &g->cfg->frames;
	struct mr_gen_plan *p = g->plan;
	uint32_t tag = f->vlan != 0 ? 4 : 0;
	uint32_t limit, longest = f->size;
	const char *key = "frames.size";

	p->sizes_kind = f->sizes;
	if (f->sizes == MR_GEN_IMIX) {
		key = "frames.sizes";
		memcpy(p->sizes, imix, sizeof(imix));
		p->sizes_count = MR_ARRAY_LEN(imix);
		longest = 1518;
		/* The tag comes on top, as where a switch adds it. */
		for (uint32_t i = 0; i < p->sizes_count; i++)
			p->sizes[i] = (uint16_t)(p->sizes[i] + tag);
		longest += tag;
	} else if (f->sizes == MR_GEN_SWEEP) {
		key = "frames.size_end";
		longest = f->size_end;
		if (f->size_end < f->size)
			mr_plan_refuse(&g->w, key, "write the longest frame there",
				"%u is shorter than frames.size, %u", f->size_end, f->size);
		for (uint32_t size = f->size; size <= f->size_end; size += f->size_step)
			p->sizes[p->sizes_count++] = (uint16_t)size;
	} else {
		p->sizes[p->sizes_count++] = (uint16_t)f->size;
	}
	if (f->sizes != MR_GEN_IMIX && f->size < MR_GEN_SIZE_MIN + tag)
		mr_plan_refuse(&g->w, "frames.size", "use 68 or more",
			"a frame of %u bytes has no room for a VLAN tag", f->size);
	if (p->send_port == MR_PLAN_NONE)
		return;
	limit = p->plan.ports[p->send_port].mtu + 14 + tag + MR_GEN_FCS;
	if (longest > limit)
		mr_plan_refuse(&g->w, key, "shorten the frames, or raise mtu of the port",
			"a frame of %u bytes is above the %u that port '%s' takes", longest, limit,
			p->plan.ports[p->send_port].name);
}

uint64_t mr_gen_plan_wire_bits(const struct mr_gen_plan *p)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < p->sizes_count; i++)
		bytes += p->sizes[i] + MR_GEN_GAP;
	return bytes * 8;
}

static void plan_rate(struct gen_work *g)
{
	const struct mr_gen_send *s = &g->cfg->send;
	struct mr_gen_plan *p = g->plan;

	if (s->rate_pps != 0 && s->rate_mbps != 0)
		mr_plan_refuse(&g->w, "send.rate_mbps", "keep one of them",
			"the rate is already given as rate_pps");
	else if (s->rate_pps != 0)
		p->gap = (1000000000ull << MR_GEN_GAP_SHIFT) / s->rate_pps;
	else if (s->rate_mbps != 0 && p->sizes_count > 0)
		/* A bit takes 1000 / rate_mbps ns. */
		p->gap = (uint64_t)(((unsigned __int128)mr_gen_plan_wire_bits(p) * 1000
					    << MR_GEN_GAP_SHIFT) /
			((uint64_t)s->rate_mbps * p->sizes_count));
	else if (s->rate_mbps == 0 && s->calibrate_ms == 0)
		mr_plan_refuse(&g->w, "send.rate_pps",
			"give a rate, or let calibrate_ms measure it",
			"there is no rate to send at");
	p->burst = s->burst;
	p->packets = s->packets;
	p->duration_ms = s->duration_ms;
	p->late_us = s->late_us;
	p->calibrate_ms = s->calibrate_ms;
	p->wait_ms = g->cfg->receive.wait_ms;
	p->search = g->cfg->find.search;
	p->loss_ppm = p->search == MR_GEN_SEARCH_PARTIAL_LOSS ? g->cfg->find.loss_ppm : 0;
	p->resolution_ppm = g->cfg->find.resolution_ppm;
	if (p->search != MR_GEN_SEARCH_NONE && g->cfg->receive.port == NULL)
		mr_plan_refuse(&g->w, "find.search",
			"add receive:", "a search needs to know what comes back");
}

/* Every place where a buffer can rest at one time. */
static void plan_pool(struct gen_work *g)
{
	struct mr_plan *p = &g->plan->plan;
	uint32_t buffers = THREADS * CACHE_HELD + BURSTS;
	uint32_t frame_max = 0;

	for (uint32_t i = 0; i < p->ports_count; i++) {
		buffers += p->ports[i].rx_ring + p->ports[i].tx_ring + MR_NET_RING_SLOTS;
		if (p->ports[i].frame_max > frame_max)
			frame_max = p->ports[i].frame_max;
	}
	p->host_buffers = buffers;
	p->host_cache = CACHE;
	if (frame_max < ROOM_MIN)
		frame_max = ROOM_MIN;
	p->host_element_bytes = MR_ALIGN_UP(MR_HEADROOM + frame_max, MR_UNIT);
}

int mr_gen_plan_build(const struct mr_gen_config *cfg, const struct mr_host *host, const char *name,
	struct mr_gen_plan *ret_plan, struct mr_problems *problems)
{
	struct gen_work g = {{&cfg->base, host, &ret_plan->plan, problems}, cfg, ret_plan};
	uint32_t before = problems->count;

	memset(ret_plan, 0, sizeof(*ret_plan));
	ret_plan->plan.log_level = cfg->base.log_level;
	mr_plan_name(&g.w, name);
	plan_ports(&g);
	plan_cores(&g);
	plan_headers(&g);
	plan_sizes(&g);
	plan_rate(&g);
	if (problems->count > before)
		return -EINVAL;
	plan_floor(&g);
	plan_pool(&g);
	mr_plan_eal(&g.w);
	return problems->count == before ? 0 : -EINVAL;
}
