/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd.h"

#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {
	[MR_PORT_VDEV] = "vdev", [MR_PORT_PCI] = "pci", [MR_PORT_KERNEL] = "kernel"};
static const char *const levels[] = {"error", "warning", "info", "debug"};

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

static void print_device(const struct mr_plan_device *d)
{
	printf("device %-12s %s\n", d->name, d->args);
	for (uint32_t k = 0; k < MR_PATH_COUNT; k++)
		if (d->region[k].used)
			printf("  %-7s region   %.1f MiB, of which pools take %.1f MiB\n",
				mr_path_name((enum mr_path)k), mib(d->region[k].bytes),
				mib(d->region[k].need_bytes));
	for (uint32_t k = 0; k < MR_WORK_COUNT; k++)
		if (d->blocks[k] > 0)
			printf("  %-7s kernel   %u block%s\n", mr_work_name((enum mr_work)k),
				d->blocks[k], d->blocks[k] == 1 ? "" : "s");
}

static void print_port(const struct mr_plan_port *p)
{
	printf("port   %-12s %s %s\n", p->name, kinds[p->kind], p->device);
	if (p->args[0] != '\0')
		printf("  arguments        %s\n", p->args);
	printf("  frames           mtu %u, at most %u bytes\n", p->mtu, p->frame_max);
	printf("  queues           %u receive of %u, %u send of %u\n", p->rx_queues, p->rx_ring,
		p->tx_queues, p->tx_ring);
	if (p->split_bytes != 0)
		printf("  split            the first %u bytes of a frame, and the rest apart\n",
			p->split_bytes);
	if (mr_plan_port_isolated(p))
		printf("  steering         nic: isolated, only what the lanes' match names is "
		       "received\n");
	else if (p->steered)
		printf("  steering         software\n");
}

static const char *steering(const struct mr_plan_port *p)
{
	return p->steering == MR_STEERING_SOFTWARE ? "software" : "nic";
}

/* What reaches the lane of what its port receives, and with whom it shares that. */
static void print_match(const struct mr_plan *p, const struct mr_plan_lane *l)
{
	const struct mr_plan_port *port = &p->ports[l->rx_port];
	uint32_t rules = mr_match_rules(&l->settled);

	if (l->match_text[0] == '\0')
		return;
	printf("  match            %s", l->match_text);
	if (mr_plan_port_isolated(port))
		printf(": %u rule%s of the NIC", rules, rules == 1 ? "" : "s");
	else
		printf(": stage match drops what else is in the queue");
	for (uint32_t i = 0; i < p->lanes_count; i++)
		if (&p->lanes[i] != l && p->lanes[i].rx_port == l->rx_port &&
			p->lanes[i].group == l->group)
			printf(", shared with %s", p->lanes[i].name);
	printf("\n");
}

static void print_stages(const struct mr_plan_lane *l)
{
	printf("  stages           %s", l->stages_count == 0 ? "none: forward to tx[0]" : "");
	for (uint32_t i = 0; i < l->stages_count; i++) {
		const struct mr_plan_stage *s = &l->stages[i];

		printf("%s%s%s%s%s", i > 0 ? " > " : "", s->desc->name,
			s->text[0] != '\0' ? " (" : "", s->text, s->text[0] != '\0' ? ")" : "");
	}
	printf("\n");
}

/* What stages keep between packets. */
static void print_states(const struct mr_plan_lane *l)
{
	const char *before = "  states           ";

	for (uint32_t i = 0; i < l->stages_count; i++) {
		const struct mr_plan_stage *s = &l->stages[i];

		if (s->state_bytes + s->shared_bytes == 0)
			continue;
		printf("%s%s %.1f MiB", before, s->desc->name, mib(s->state_bytes));
		if (s->shared_bytes != 0)
			printf(" and %.1f MiB that lanes share", mib(s->shared_bytes));
		before = ", ";
	}
	if (before[0] == ',')
		printf(" on the device\n");
}

static const char *const choices[] = {[MR_CHOICE_TAKEN] = "taken",
	[MR_CHOICE_REFUSED] = "refused",
	[MR_CHOICE_NEXT] = "not looked at"};

/* A list of more than one path: what becomes of each. */
static void print_choices(
	const struct mr_plan_lane *l, const char *way, const struct mr_plan_choice *c, uint32_t n)
{
	for (uint32_t i = 0; n > 1 && i < n; i++) {
		bool unasked = c[i].what == MR_CHOICE_TAKEN && c[i].path == MR_PATH_DIRECT &&
			l->path_unasked[0] != '\0' && i + 1 < n;

		printf("    %u. %s%-8s %s%s%s", i + 1, way, mr_path_name(c[i].path),
			choices[c[i].what], c[i].why[0] != '\0' ? ": " : "", c[i].why);
		if (unasked)
			printf(", unless one of these fails, which only run asks: %s",
				l->path_unasked);
		printf("\n");
	}
}

static void print_lane(const struct mr_plan *p, const struct mr_plan_lane *l)
{
	if (l->core < 0)
		printf("lane   %-12s any core: left to the scheduler\n", l->name);
	else
		printf("lane   %-12s core %d\n", l->name, l->core);
	printf("  from             %s queue %u\n", p->ports[l->rx_port].name, l->rx_queue);
	print_match(p, l);
	for (uint32_t t = 0; t < l->tx_count; t++)
		printf("  to tx[%u]%s        %s queue %u, backlog %u\n", t, t < 10 ? " " : "",
			p->ports[l->tx[t].port].name, l->tx[t].queue, l->tx[t].backlog);
	if (mr_plan_lane_moves(l))
		printf("  path             %s in, %s out; %s\n", mr_path_name(l->rx_path),
			mr_path_name(l->tx_path), l->path_why);
	else
		printf("  path             %s; %s\n", mr_path_name(l->rx_path), l->path_why);
	print_choices(l, l->one_list ? "" : "in ", l->rx_choice, l->rx_choices);
	if (!l->one_list)
		print_choices(l, "out ", l->tx_choice, l->tx_choices);
	print_stages(l);
	printf("  kernel           %s on %s, %u worker%s%s%s\n", mr_work_name(l->work),
		p->devices[l->device].name, l->workers, l->workers == 1 ? "" : "s",
		l->workers_why[0] != '\0' ? "; " : "", l->workers_why);
	if (l->plugin != NULL)
		printf("  plug-in          %s: its image serves the lane\n", l->plugin->path);
	printf("  ring             %u slots of %u packets, given after %u us\n", l->slots, l->batch,
		l->timeout_us);
	printf("  limits           overload %s, tx timeout %u us, tick %u us\n",
		mr_overload_name(l->overload), l->tx_timeout_us, l->tick_us);
	printf("  pool             %u buffers of %u bytes, cache %u: %.1f MiB at %llu\n",
		l->buffers, l->element_bytes, l->cache, mib(l->pool_bytes),
		(unsigned long long)l->pool_offset);
	printf("  pool at least    %s\n", l->sum);
	if (l->rest_pool_bytes != 0)
		printf("  pool of rests    %u buffers of %u bytes: %.1f MiB at %llu\n", l->buffers,
			l->rest_element_bytes, mib(l->rest_pool_bytes),
			(unsigned long long)l->rest_pool_offset);
	if (l->tx_buffers != 0)
		printf("  pool to leave    %u buffers: %s\n", l->tx_buffers, l->tx_sum);
	print_states(l);
	if (l->copies_bytes != 0)
		printf("  slots' copies    %.1f MiB on the host and on the device, frames %s\n",
			mib(l->copies_bytes),
			l->copies_packed ? "side by side"
					 : "with their room, since a stage may "
					   "make them longer");
}

void mr_cmd_print_plan(const struct mr_plan *p)
{
	printf("plan   %s\n", p->name);
	for (uint32_t i = 0; i < p->devices_count; i++)
		print_device(&p->devices[i]);
	for (uint32_t i = 0; i < p->ports_count; i++)
		print_port(&p->ports[i]);
	for (uint32_t i = 0; i < p->lanes_count; i++)
		print_lane(p, &p->lanes[i]);
	printf("run\n");
	printf("  memory           %s, %llu MiB for packet headers\n",
		p->hugepages ? "hugepages" : "ordinary pages",
		(unsigned long long)p->eal_memory_mib);
	printf("  EAL             ");
	for (uint32_t i = 0; i < p->eal_args_count; i++)
		printf(" %s", p->eal_args[i]);
	printf("\n");
	printf("  stop             drains for at most %u ms\n", p->drain_ms);
	if (p->host_timeout_ms > 0)
		printf("  kernels          leave when the host is silent for %u ms\n",
			p->host_timeout_ms);
	else
		printf("  kernels          never leave on a silent host\n");
	if (p->backoff_ns > 0)
		printf("  kernels          pause for at most %u ns between polls\n", p->backoff_ns);
	else
		printf("  kernels          poll without a pause\n");
	if (p->stall_ms > 0)
		printf("  stall            what stands still for %u ms has failed\n", p->stall_ms);
	if (p->http_listen[0] != '\0')
		printf("  http             %s, %s\n", p->http_listen,
			p->http_users[0] != '\0' ? p->http_users : "no users");
	printf("  log              %s\n", levels[p->log_level]);
	for (uint32_t i = 0; i < p->warnings_count; i++)
		printf("warning: %s\n", p->warnings[i]);
}

static json_t *device_json(const struct mr_plan_device *d)
{
	json_t *regions = json_array();
	json_t *blocks = json_object();

	for (uint32_t k = 0; k < MR_PATH_COUNT; k++)
		if (d->region[k].used)
			json_array_append_new(regions,
				json_pack("{s:s, s:I, s:I}", "path", mr_path_name((enum mr_path)k),
					"bytes", (json_int_t)d->region[k].bytes, "need_bytes",
					(json_int_t)d->region[k].need_bytes));
	for (uint32_t k = 0; k < MR_WORK_COUNT; k++)
		json_object_set_new(
			blocks, mr_work_name((enum mr_work)k), json_integer(d->blocks[k]));
	return json_pack("{s:s, s:s, s:o, s:o, s:o}", "name", d->name, "provider",
		d->sim ? "sim" : "cuda", "args", mr_cmd_json_text(d->args), "regions", regions,
		"blocks", blocks);
}

static json_t *port_json(const struct mr_plan_port *p)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:b, s:I}",
		"name", p->name, "kind", kinds[p->kind], "device", p->device, "args",
		mr_cmd_json_text(p->args), "mtu", (json_int_t)p->mtu, "frame_max",
		(json_int_t)p->frame_max, "rx_ring", (json_int_t)p->rx_ring, "tx_ring",
		(json_int_t)p->tx_ring, "rx_queues", (json_int_t)p->rx_queues, "tx_queues",
		(json_int_t)p->tx_queues, "steering", steering(p), "isolated",
		mr_plan_port_isolated(p), "split_bytes", (json_int_t)p->split_bytes);
}

static json_t *stages_json(const struct mr_plan_lane *l)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < l->stages_count; i++) {
		const struct mr_plan_stage *s = &l->stages[i];

		json_array_append_new(all,
			json_pack("{s:s, s:s, s:s, s:I, s:I}", "name", s->desc->name, "work",
				mr_work_name(s->desc->work), "params", s->text, "state_bytes",
				(json_int_t)s->state_bytes, "shared_bytes",
				(json_int_t)s->shared_bytes));
	}
	return all;
}

static json_t *pool_json(const struct mr_plan_lane *l)
{
	json_t *j = json_pack("{s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "buffers",
		(json_int_t)l->buffers, "buffers_min", (json_int_t)l->buffers_min, "sum", l->sum,
		"element_bytes", (json_int_t)l->element_bytes, "cache", (json_int_t)l->cache,
		"reserve", (json_int_t)l->reserve, "offset", (json_int_t)l->pool_offset, "bytes",
		(json_int_t)l->pool_bytes, "copies_bytes", (json_int_t)l->copies_bytes,
		"copies_packed", l->copies_packed);

	if (j != NULL && l->rest_pool_bytes != 0)
		json_object_set_new(j, "rest",
			json_pack("{s:I, s:I, s:I}", "element_bytes",
				(json_int_t)l->rest_element_bytes, "offset",
				(json_int_t)l->rest_pool_offset, "bytes",
				(json_int_t)l->rest_pool_bytes));
	if (j != NULL && l->tx_buffers != 0)
		json_object_set_new(j, "tx",
			json_pack("{s:I, s:s, s:I, s:I}", "buffers", (json_int_t)l->tx_buffers,
				"sum", l->tx_sum, "offset", (json_int_t)l->tx_pool_offset, "bytes",
				(json_int_t)l->tx_pool_bytes));
	return j;
}

static json_t *choices_json(const struct mr_plan_choice *c, uint32_t n)
{
	static const char *const words[] = {[MR_CHOICE_TAKEN] = "taken",
		[MR_CHOICE_REFUSED] = "refused",
		[MR_CHOICE_NEXT] = "next"};
	json_t *all = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(all,
			json_pack("{s:s, s:s, s:o}", "path", mr_path_name(c[i].path), "choice",
				words[c[i].what], "why", mr_cmd_json_text(c[i].why)));
	return all;
}

static json_t *lane_json(const struct mr_plan *p, const struct mr_plan_lane *l)
{
	json_t *tx = json_array();
	json_t *j;

	for (uint32_t t = 0; t < l->tx_count; t++)
		json_array_append_new(tx,
			json_pack("{s:s, s:I, s:I}", "port", p->ports[l->tx[t].port].name, "queue",
				(json_int_t)l->tx[t].queue, "backlog",
				(json_int_t)l->tx[t].backlog));
	j = json_pack("{s:s, s:{s:s, s:I}, s:o, s:o, s:s, s:s, s:s, s:s}", "name", l->name, "rx",
		"port", p->ports[l->rx_port].name, "queue", (json_int_t)l->rx_queue, "tx", tx,
		"core", l->core < 0 ? json_string("any") : json_integer(l->core), "device",
		p->devices[l->device].name, "rx_path", mr_path_name(l->rx_path), "tx_path",
		mr_path_name(l->tx_path), "path_why", l->path_why);
	if (j == NULL)
		return NULL;
	json_object_update_new(j,
		json_pack("{s:{s:o, s:o}, s:o}", "paths", "rx",
			choices_json(l->rx_choice, l->rx_choices), "tx",
			choices_json(l->tx_choice, l->tx_choices), "path_unasked",
			mr_cmd_json_text(l->path_unasked)));
	json_object_update_new(j,
		json_pack("{s:s, s:{s:I, s:I}, s:I, s:I, s:s, s:s, s:I, s:I, s:s, s:o, s:o}",
			"match", l->match_text, "batch", "packets", (json_int_t)l->batch,
			"timeout_us", (json_int_t)l->timeout_us, "slots", (json_int_t)l->slots,
			"workers", (json_int_t)l->workers, "workers_why", l->workers_why,
			"overload", mr_overload_name(l->overload), "tick_us",
			(json_int_t)l->tick_us, "tx_timeout_us", (json_int_t)l->tx_timeout_us,
			"work", mr_work_name(l->work), "stages", stages_json(l), "pool",
			pool_json(l)));
	if (l->plugin != NULL)
		json_object_set_new(j, "plugin", mr_cmd_json_text(l->plugin->path));
	return j;
}

json_t *mr_cmd_plan_json(const struct mr_plan *p)
{
	json_t *devices = json_array(), *ports = json_array(), *lanes = json_array();
	json_t *args = json_array(), *warnings = json_array();

	for (uint32_t i = 0; i < p->devices_count; i++)
		json_array_append_new(devices, device_json(&p->devices[i]));
	for (uint32_t i = 0; i < p->ports_count; i++)
		json_array_append_new(ports, port_json(&p->ports[i]));
	for (uint32_t i = 0; i < p->lanes_count; i++)
		json_array_append_new(lanes, lane_json(p, &p->lanes[i]));
	for (uint32_t i = 0; i < p->eal_args_count; i++)
		json_array_append_new(args, mr_cmd_json_text(p->eal_args[i]));
	for (uint32_t i = 0; i < p->warnings_count; i++)
		json_array_append_new(warnings, mr_cmd_json_text(p->warnings[i]));
	return json_pack(
		"{s:s, s:{s:b, s:I, s:o}, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:{s:s, s:s}, "
		"s:s, s:o}",
		"name", p->name, "eal", "hugepages", p->hugepages, "memory_mib",
		(json_int_t)p->eal_memory_mib, "args", args, "devices", devices, "ports", ports,
		"lanes", lanes, "drain_ms", (json_int_t)p->drain_ms, "host_timeout_ms",
		(json_int_t)p->host_timeout_ms, "backoff_ns", (json_int_t)p->backoff_ns, "stall_ms",
		(json_int_t)p->stall_ms, "driver_ms", (json_int_t)p->driver_ms, "http", "listen",
		p->http_listen, "users", p->http_users, "log_level", levels[p->log_level],
		"warnings", warnings);
}
