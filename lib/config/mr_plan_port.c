/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_plan_priv.h"

#include "mr_facts.h"
#include "mr_mlx5.h"
#include "mr_nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NOT_FOUND_HINT(hint, near)                                                                 \
	do {                                                                                       \
		if ((near) != NULL)                                                                \
			snprintf(hint, sizeof(hint), "did you mean '%s'?", near);                  \
	} while (0)

uint32_t mr_plan_find_port(struct mr_plan_work *w, const char *name, const char *key)
{
	char hint[128] = "add it to ports:";
	struct mr_nearest n;

	mr_nearest_init(&n, name);
	for (uint32_t i = 0; i < w->plan->ports_count; i++) {
		if (strcmp(w->plan->ports[i].name, name) == 0)
			return i;
		mr_nearest_offer(&n, w->plan->ports[i].name);
	}
	NOT_FOUND_HINT(hint, mr_nearest_get(&n));
	mr_plan_refuse(w, key, hint, "there is no port '%s'", name);
	return MR_PLAN_NONE;
}

uint32_t mr_plan_find_device(struct mr_plan_work *w, const char *name, const char *key)
{
	char hint[128] = "add it to devices:";
	struct mr_nearest n;

	mr_nearest_init(&n, name);
	for (uint32_t i = 0; i < w->plan->devices_count; i++) {
		if (strcmp(w->plan->devices[i].name, name) == 0)
			return i;
		mr_nearest_offer(&n, w->plan->devices[i].name);
	}
	NOT_FOUND_HINT(hint, mr_nearest_get(&n));
	mr_plan_refuse(w, key, hint, "there is no device '%s'", name);
	return MR_PLAN_NONE;
}

static bool take_hex(const char **text, uint32_t min, uint32_t max, unsigned long *ret_value)
{
	const char *s = *text;
	unsigned long v = 0;
	uint32_t n;

	for (n = 0; isxdigit((unsigned char)s[n]) && n < max; n++)
		v = v * 16 +
			(unsigned long)(isdigit((unsigned char)s[n])
					? s[n] - '0'
					: tolower((unsigned char)s[n]) - 'a' + 10);
	if (n < min)
		return false;
	*text = s + n;
	*ret_value = v;
	return true;
}

/* DDDD:BB:DD.F or BB:DD.F at the start of text, written out in ret_address. */
static bool parse_pci(const char *text, char ret_address[MR_NAME_MAX], const char **ret_rest)
{
	unsigned long domain = 0, bus, slot, function;
	const char *s = text;
	size_t first = strcspn(text, ":.,");
	bool full = text[first] == ':' && text[first + 1 + strcspn(text + first + 1, ":.,")] == ':';

	if (full && (!take_hex(&s, 4, 8, &domain) || *s++ != ':'))
		return false;
	if (!take_hex(&s, 2, 2, &bus) || *s++ != ':' || !take_hex(&s, 2, 2, &slot) || *s++ != '.' ||
		!take_hex(&s, 1, 1, &function))
		return false;
	if (slot > 0x1f || function > 7 || (*s != '\0' && *s != ','))
		return false;
	snprintf(ret_address, MR_NAME_MAX, "%04lx:%02lx:%02lx.%lx", domain, bus, slot, function);
	*ret_rest = s;
	return true;
}

static void plan_device(struct mr_plan_work *w, uint32_t i)
{
	const struct mr_config_device *c = &w->cfg->devices[i];
	struct mr_plan_device *d = &w->plan->devices[i];
	char address[MR_NAME_MAX];
	const char *rest = c->device + 3;
	char key[64];

	snprintf(d->name, sizeof(d->name), "%s", c->name);
	snprintf(key, sizeof(key), "devices[%u].device", i);
	d->sim = strncmp(c->device, "sim", 3) == 0 && (*rest == '\0' || *rest == ',');
	if (d->sim)
		snprintf(address, sizeof(address), "sim");
	else if (!parse_pci(c->device, address, &rest)) {
		mr_plan_refuse(w, key, "write sim, or the GPU's PCI address as nvidia-smi shows it",
			"'%.80s' is neither sim nor a PCI address", c->device);
		return;
	}
	snprintf(d->args, sizeof(d->args), "device=%s%s", address, rest);
	for (uint32_t k = 0; k < i && !d->sim; k++)
		if (strncmp(w->plan->devices[k].args, d->args,
			    strlen("device=") + strlen(address)) == 0)
			mr_plan_refuse(w, key, "let the lanes of both use one device",
				"GPU %s is also device '%s'", address, w->plan->devices[k].name);
}

void mr_plan_devices(struct mr_plan_work *w)
{
	w->plan->devices_count = w->cfg->devices_count;
	for (uint32_t i = 0; i < w->cfg->devices_count; i++) {
		char key[64];

		plan_device(w, i);
		snprintf(key, sizeof(key), "devices[%u].name", i);
		for (uint32_t k = 0; k < i; k++) {
			if (strcmp(w->plan->devices[k].name, w->plan->devices[i].name) != 0)
				continue;
			mr_plan_refuse(w, key, "give each device its own name",
				"device '%s' is already in line %u", w->plan->devices[i].name,
				w->cfg->devices[k].line);
			break;
		}
	}
}

static bool parse_kernel(struct mr_plan_port *p, uint32_t i, const char *ifname)
{
	size_t n = strlen(ifname);

	if (n == 0 || n > 15 || strpbrk(ifname, "/,: \t") != NULL || strcmp(ifname, ".") == 0 ||
		strcmp(ifname, "..") == 0)
		return false;
	p->kind = MR_PORT_KERNEL;
	/* DPDK finds the driver by the start of a virtual device's name. */
	snprintf(p->device, sizeof(p->device), "net_pcap_kernel%u", i);
	snprintf(p->ifname, sizeof(p->ifname), "%s", ifname);
	return true;
}

static bool parse_vdev(struct mr_plan_port *p, const char *text)
{
	size_t n = strcspn(text, ",");

	if (strncmp(text, "net_", 4) != 0)
		return false;
	if (n < 5 || n >= sizeof(p->device))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && strchr("_-.", text[i]) == NULL)
			return false;
	p->kind = MR_PORT_VDEV;
	memcpy(p->device, text, n);
	snprintf(p->args, sizeof(p->args), "%s", text[n] == ',' ? text + n + 1 : "");
	return true;
}

struct refusal {
	struct mr_plan_work *w;
	const char *key;
};

static void refuse_option(void *ctx, const char *sentence, const char *remedy)
{
	const struct refusal *r = ctx;

	mr_plan_refuse(r->w, r->key, remedy, "%s", sentence);
}

bool mr_plan_is_mlx5(const struct mr_host *h, const char *bdf)
{
	uint32_t nic = h->facts != NULL ? mr_facts_find_nic(h->facts, bdf) : MR_FACTS_NONE;
	const struct mr_facts_pci *pci;

	if (nic == MR_FACTS_NONE)
		return true;
	pci = &h->facts->pci[h->facts->nics[nic].pci];
	return pci->vendor.state != MR_FACT_KNOWN || pci->vendor.v == MR_MLX5_VENDOR;
}

static void plan_pci(struct mr_plan_work *w, struct mr_plan_port *p, const char *key)
{
	struct refusal r = {w, key};
	char user[MR_TEXT_MAX];

	/* What a NIC of another make takes as options is its driver's affair. */
	if (!mr_plan_is_mlx5(w->host, p->device))
		return;
	memcpy(user, p->args, sizeof(user));
	if (mr_mlx5_devargs(user, refuse_option, &r, p->args, MR_PORT_ARGS_MAX) < 0)
		p->args[0] = '\0'; /* each option was told */
}

static void plan_port_device(struct mr_plan_work *w, uint32_t i, const char *key)
{
	struct mr_plan_port *p = &w->plan->ports[i];
	const char *text = w->cfg->ports[i].device;
	char hint[160] =
		"write a PCI address, kernel:IFNAME, or a virtual device such as net_pcap0";
	const char *rest;

	if (strncmp(text, "kernel:", 7) == 0) {
		if (!parse_kernel(p, i, text + 7))
			mr_plan_refuse(w, key, "write kernel: and the name that ip link shows",
				"'%.40s' is not the name of an interface", text + 7);
		return;
	}
	if (parse_pci(text, p->device, &rest)) {
		p->kind = MR_PORT_PCI;
		snprintf(p->args, sizeof(p->args), "%s", *rest == ',' ? rest + 1 : "");
		plan_pci(w, p, key);
		return;
	}
	if (!parse_vdev(p, text)) {
		/* One spelling, since plans go by a driver's name. */
		if (strncmp(text, "eth_", 4) == 0)
			snprintf(hint, sizeof(hint), "write net_%.80s, as DPDK does today",
				text + 4);
		else if (strlen(text) <= 15 && strpbrk(text, "/,: \t") == NULL)
			snprintf(hint, sizeof(hint), "for the kernel's interface write kernel:%s",
				text);
		mr_plan_refuse(w, key, hint, "'%.80s' is not a port that DPDK can open", text);
		p->device[0] = '\0';
		return;
	}
	if (strncmp(p->device, "net_af_xdp", 10) == 0)
		mr_plan_refuse(w, key, "use kernel:IFNAME or the NIC's PCI address",
			"net_af_xdp takes no packet memory but its own, so no path can hold in "
			"this "
			"version");
	if (strncmp(p->device, "net_af_packet", 13) == 0)
		mr_plan_warn(w,
			"port '%s': net_af_packet loses the VLAN tags of received frames and cuts "
			"long ones; kernel:IFNAME keeps both",
			p->name);
}

void mr_plan_ports(struct mr_plan_work *w)
{
	w->plan->ports_count = w->cfg->ports_count;
	for (uint32_t i = 0; i < w->cfg->ports_count; i++) {
		const struct mr_config_port *c = &w->cfg->ports[i];
		struct mr_plan_port *p = &w->plan->ports[i];
		char key[64];

		snprintf(p->name, sizeof(p->name), "%s", c->name);
		p->mtu = c->mtu;
		p->frame_max = c->mtu + 14 + 8;
		p->rx_ring = c->rx_ring;
		p->tx_ring = c->tx_ring;
		p->steering = c->steering;
		p->split_bytes = c->split_header_bytes;
		snprintf(key, sizeof(key), "ports[%u].device", i);
		plan_port_device(w, i, key);
		for (uint32_t k = 0; k < i; k++) {
			const struct mr_plan_port *o = &w->plan->ports[k];

			if ((p->device[0] != '\0' && strcmp(p->device, o->device) == 0) ||
				(p->ifname[0] != '\0' && strcmp(p->ifname, o->ifname) == 0))
				mr_plan_refuse(w, key, "use one port with several queues",
					"port '%s' already has this device", o->name);
			if (strcmp(p->name, o->name) == 0) {
				snprintf(key, sizeof(key), "ports[%u].name", i);
				mr_plan_refuse(w, key, "give each port its own name",
					"port '%s' is already in line %u", p->name,
					w->cfg->ports[k].line);
				break;
			}
		}
	}
}

/* How often `name=` is among the arguments of a virtual device. */
static uint32_t count_args(const char *args, const char *name)
{
	size_t n = strlen(name);
	uint32_t count = 0;

	while (*args != '\0') {
		count += strncmp(args, name, n) == 0 && args[n] == '=';
		args += strcspn(args, ",");
		args += *args == ',';
	}
	return count;
}

/* net_pcap has as many queues as its arguments name files and interfaces. */
static void check_pcap(struct mr_plan_work *w, uint32_t port)
{
	const struct mr_plan_port *p = &w->plan->ports[port];
	uint32_t iface = count_args(p->args, "iface");
	uint32_t rx = iface + count_args(p->args, "rx_pcap") + count_args(p->args, "rx_iface") +
		count_args(p->args, "rx_iface_in");
	uint32_t tx = iface + count_args(p->args, "tx_pcap") + count_args(p->args, "tx_iface");
	char key[64];

	snprintf(key, sizeof(key), "ports[%u].device", port);
	if (rx > 0 && p->rx_queues > rx)
		mr_plan_refuse(w, key, "add an rx_pcap= or rx_iface_in= for each receive queue",
			"net_pcap has %u receive queue%s, but lanes use %u", rx, rx == 1 ? "" : "s",
			p->rx_queues);
	if (tx > 0 && p->tx_queues > tx)
		mr_plan_refuse(w, key, "add a tx_pcap= or tx_iface= for each send queue",
			"net_pcap has %u send queue%s, but lanes use %u", tx, tx == 1 ? "" : "s",
			p->tx_queues);
}

/*
 * The kernel gives every socket every frame, so a second receive queue would double
 * traffic. A side that no lane uses gets no socket: it would copy frames that nobody
 * reads, and net_pcap closes only those of queues that are set up.
 */
static void plan_kernel(struct mr_plan_work *w, uint32_t port)
{
	struct mr_plan_port *p = &w->plan->ports[port];
	char ifname[MR_NAME_MAX];
	size_t used = 0;
	char key[64];

	snprintf(key, sizeof(key), "ports[%u].device", port);
	if (p->rx_queues > 1)
		mr_plan_refuse(w, key, "let one lane receive from it, with more workers",
			"a kernel: port has one receive queue, but lanes use %u", p->rx_queues);
	memcpy(ifname, p->ifname, sizeof(ifname));
	if (p->rx_queues > 0)
		used = (size_t)snprintf(p->args, sizeof(p->args), "rx_iface_in=%s", ifname);
	for (uint32_t q = 0; q < p->tx_queues; q++) {
		if (used >= sizeof(p->args)) {
			mr_plan_refuse(w, key, "send with fewer lanes",
				"a kernel: port cannot have %u send queues", p->tx_queues);
			return;
		}
		used += (size_t)snprintf(p->args + used, sizeof(p->args) - used, "%stx_iface=%s",
			used > 0 ? "," : "", ifname);
	}
}

void mr_plan_port_args(struct mr_plan_work *w, uint32_t port)
{
	if (w->plan->ports[port].kind == MR_PORT_KERNEL)
		plan_kernel(w, port);
	else if (strncmp(w->plan->ports[port].device, "net_pcap", 8) == 0)
		check_pcap(w, port);
}

struct queue_use {
	uint32_t port, queue;
	char key[64];
	const char *lane;
};

/* Queues used twice, and numbers that nobody uses below one that is used. */
static void check_uses(
	struct mr_plan_work *w, const char *what, const struct queue_use *use, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t k = 0; k < i; k++) {
			if (use[k].port != use[i].port || use[k].queue != use[i].queue)
				continue;
			mr_plan_refuse(w, use[i].key, "give each lane a queue of its own",
				"%s queue %u of port '%s' is already used by lane '%s'", what,
				use[i].queue, w->plan->ports[use[i].port].name, use[k].lane);
			break;
		}
		for (uint32_t q = 0; q < use[i].queue; q++) {
			bool found = false;

			for (uint32_t k = 0; k < count; k++)
				found |= use[k].port == use[i].port && use[k].queue == q;
			if (found)
				continue;
			mr_plan_refuse(w, use[i].key, "number a port's queues from 0 without a gap",
				"%s queue %u of port '%s' is used, but queue %u is not", what,
				use[i].queue, w->plan->ports[use[i].port].name, q);
			break;
		}
	}
}

static void collect(const struct mr_plan *p, struct queue_use *rx, uint32_t *ret_rx,
	struct queue_use *tx, uint32_t *ret_tx)
{
	for (uint32_t i = 0; i < p->lanes_count; i++) {
		const struct mr_plan_lane *l = &p->lanes[i];

		if (l->rx_port != MR_PLAN_NONE) {
			rx[*ret_rx] = (struct queue_use){l->rx_port, l->rx_queue, "", l->name};
			snprintf(rx[(*ret_rx)++].key, 64, "lanes[%u].rx.queue", i);
		}
		for (uint32_t t = 0; t < l->tx_count; t++) {
			if (l->tx[t].port == MR_PLAN_NONE)
				continue;
			tx[*ret_tx] =
				(struct queue_use){l->tx[t].port, l->tx[t].queue, "", l->name};
			snprintf(tx[(*ret_tx)++].key, 64, "lanes[%u].tx[%u].queue", i, t);
		}
	}
}

static void unused(struct mr_plan_work *w)
{
	bool device_used[MR_DEVICES_MAX] = {false};
	char key[64];

	for (uint32_t i = 0; i < w->plan->lanes_count; i++)
		if (w->plan->lanes[i].device != MR_PLAN_NONE)
			device_used[w->plan->lanes[i].device] = true;
	for (uint32_t i = 0; i < w->plan->devices_count; i++) {
		snprintf(key, sizeof(key), "devices[%u]", i);
		if (!device_used[i])
			mr_plan_refuse(w, key, "remove it, or name it in a lane",
				"device '%s' is used by no lane", w->plan->devices[i].name);
	}
	for (uint32_t i = 0; i < w->plan->ports_count; i++) {
		const struct mr_plan_port *p = &w->plan->ports[i];

		snprintf(key, sizeof(key), "ports[%u]", i);
		if (p->rx_queues == 0 && p->tx_queues == 0)
			mr_plan_refuse(w, key, "remove it, or name it in a lane",
				"port '%s' is used by no lane", p->name);
	}
}

void mr_plan_queues(struct mr_plan_work *w)
{
	struct queue_use rx[MR_LANES_MAX] = {0};
	struct queue_use tx[MR_LANES_MAX * MR_TX_MAX];
	uint32_t rx_count = 0, tx_count = 0;
	uint32_t before = w->ps->count;

	collect(w->plan, rx, &rx_count, tx, &tx_count);
	check_uses(w, "receive", rx, rx_count);
	check_uses(w, "send", tx, tx_count);
	for (uint32_t i = 0; i < rx_count; i++)
		if (w->plan->ports[rx[i].port].rx_queues <= rx[i].queue)
			w->plan->ports[rx[i].port].rx_queues = rx[i].queue + 1;
	for (uint32_t i = 0; i < tx_count; i++)
		if (w->plan->ports[tx[i].port].tx_queues <= tx[i].queue)
			w->plan->ports[tx[i].port].tx_queues = tx[i].queue + 1;
	/* A wrong name elsewhere leaves the right one unused: one sentence is enough. */
	if (before == 0)
		unused(w);
	if (w->ps->count > before)
		return;
	for (uint32_t i = 0; i < w->plan->ports_count; i++)
		mr_plan_port_args(w, i);
}
