/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_report_shape.h"

#include <stdlib.h>
#include <string.h>

/* JSON integers of jansson are signed. */
static json_t *number(uint64_t v)
{
	return json_integer(v > INT64_MAX ? (json_int_t)INT64_MAX : (json_int_t)v);
}

json_t *mr_report_string(const char *text)
{
	json_t *s = json_string(text);
	char *ascii;

	if (s != NULL)
		return s;
	ascii = strdup(text);
	if (ascii == NULL)
		return NULL;
	for (char *p = ascii; *p != '\0'; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	s = json_string(ascii);
	free(ascii);
	return s;
}

void mr_report_latency_read(const struct mr_hist *h, struct mr_report_latency *ret_latency)
{
	ret_latency->count = h->count;
	ret_latency->sum_ns = h->sum_ns;
	ret_latency->p50_ns = mr_hist_quantile(h, 500000);
	ret_latency->p99_ns = mr_hist_quantile(h, 990000);
	ret_latency->p999_ns = mr_hist_quantile(h, 999000);
	ret_latency->max_ns = h->max_ns;
}

/* Setters return 0 or -1 like jansson's, so that one `|` chain tells. */
static int set_number(json_t *o, const char *key, uint64_t v)
{
	return json_object_set_new(o, key, number(v));
}

static int set_string(json_t *o, const char *key, const char *v)
{
	return json_object_set_new(o, key, mr_report_string(v));
}

static bool is_top_level(size_t counter)
{
	switch (counter) {
	case MR_C_rx_packets:
	case MR_C_rx_bytes:
	case MR_C_made_packets:
	case MR_C_tx_packets:
	case MR_C_tx_bytes:
	case MR_C_host_bytes_copied:
		return true;
	default:
		return false;
	}
}

static int set_counters(json_t *o, const struct mr_counters *c, enum mr_counter_kind kind)
{
	int failed = 0;

	for (size_t i = 0; i < MR_C_COUNT; i++)
		if (mr_counter_descs[i].kind == kind && !is_top_level(i))
			failed |= set_number(o, mr_counter_descs[i].name, c->c[i]);
	return failed;
}

static json_t *drops_json(const struct mr_counters *c)
{
	json_t *o = json_object();

	if (o != NULL && set_counters(o, c, MR_COUNTER_DROP) != 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static json_t *others_json(const struct mr_counters *c)
{
	json_t *o = json_object();

	if (o != NULL &&
		(set_counters(o, c, MR_COUNTER_AUX) | set_counters(o, c, MR_COUNTER_PACKETS)) !=
			0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static json_t *evidence_json(const struct mr_report_lane *lane)
{
	json_t *list = json_array();
	int failed = 0;

	for (uint32_t i = 0; i < lane->evidence_count && i < MR_REPORT_EVIDENCE_MAX; i++) {
		json_t *o = json_object();

		failed |= set_string(o, "check", lane->evidence[i].check);
		failed |= set_string(o, "verdict", lane->evidence[i].verdict);
		failed |= set_string(o, "value", lane->evidence[i].value);
		failed |= json_array_append_new(list, o);
	}
	if (failed == 0)
		return list;
	json_decref(list);
	return NULL;
}

static json_t *latency_json(const struct mr_report_latency *l)
{
	json_t *o = json_object();

	if ((set_number(o, "count", l->count) | set_number(o, "sum", l->sum_ns) |
		    set_number(o, "p50", l->p50_ns) | set_number(o, "p99", l->p99_ns) |
		    set_number(o, "p999", l->p999_ns) | set_number(o, "max", l->max_ns)) == 0)
		return o;
	json_decref(o);
	return NULL;
}

static json_t *pool_json(const struct mr_report_lane *lane)
{
	json_t *o = json_object();

	if ((set_number(o, "buffers", lane->pool_buffers) |
		    set_number(o, "free", lane->pool_free)) == 0)
		return o;
	json_decref(o);
	return NULL;
}

static json_t *stages_json(const struct mr_report_lane *lane)
{
	json_t *list = json_array();
	int failed = 0;

	for (uint32_t i = 0; i < lane->stages_count && i < MR_CHAIN_MAX; i++) {
		const struct mr_report_stage *stage = &lane->stages[i];
		json_t *counters = json_object();
		json_t *o = json_object();

		for (uint32_t n = 0; n < stage->counters_count && n < MR_REPORT_COUNTERS_MAX; n++)
			failed |= set_number(
				counters, stage->counters[n].name, stage->counters[n].value);
		failed |= set_string(o, "name", stage->name);
		failed |= json_object_set_new(o, "counters", counters);
		failed |= json_array_append_new(list, o);
	}
	if (failed == 0)
		return list;
	json_decref(list);
	return NULL;
}

json_t *mr_report_lane_json(
	const struct mr_report_lane *lane, const struct mr_report_latency *latency)
{
	const struct mr_counters *c = &lane->pub.counters;
	uint64_t rx = c->c[MR_C_rx_packets];
	double cycles = rx == 0 ? 0.0 : (double)c->c[MR_C_busy_cycles] / (double)rx;
	json_t *o = json_object();
	int failed = 0;

	failed |= set_string(o, "name", lane->name);
	failed |= set_string(o, "state", lane->state);
	failed |= set_string(o, "rx_path", lane->rx_path);
	failed |= set_string(o, "tx_path", lane->tx_path);
	failed |= set_string(o, "path_verdict", lane->path_verdict);
	failed |= json_object_set_new(o, "evidence", evidence_json(lane));
	failed |= set_string(o, "guard", lane->guard);
	failed |= set_string(o, "guard_by", lane->guard_by);
	failed |= set_number(o, "rx_packets", rx);
	failed |= set_number(o, "rx_bytes", c->c[MR_C_rx_bytes]);
	failed |= set_number(o, "made_packets", c->c[MR_C_made_packets]);
	failed |= set_number(o, "tx_packets", c->c[MR_C_tx_packets]);
	failed |= set_number(o, "tx_bytes", c->c[MR_C_tx_bytes]);
	failed |= json_object_set_new(o, "drops", drops_json(c));
	failed |= set_number(o, "in_flight", lane->pub.in_flight);
	failed |= set_number(o, "host_bytes_copied", c->c[MR_C_host_bytes_copied]);
	failed |= json_object_set_new(o, "latency_ns", latency_json(latency));
	failed |= json_object_set_new(o, "cycles_per_packet", json_real(cycles));
	failed |= set_number(o, "kernel_beats", lane->kernel_beats);
	failed |= json_object_set_new(o, "pool", pool_json(lane));
	failed |= json_object_set_new(o, "counters", others_json(c));
	failed |= json_object_set_new(o, "stages", stages_json(lane));
	if (failed == 0)
		return o;
	json_decref(o);
	return NULL;
}

json_t *mr_report_port_json(const struct mr_report_port *port)
{
	json_t *o = json_object();
	int failed = 0;

	failed |= set_string(o, "name", port->name);
	failed |= set_string(o, "driver", port->driver);
	failed |= set_string(o, "link", port->link_up ? "up" : "down");
	failed |= json_object_set_new(
		o, "rx_missed", port->has_missed ? number(port->rx_missed) : json_null());
	failed |= set_number(o, "rx_errors", port->rx_errors);
	failed |= set_number(o, "rx_nombuf", port->rx_nombuf);
	failed |= set_number(o, "tx_errors", port->tx_errors);
	if (failed == 0)
		return o;
	json_decref(o);
	return NULL;
}

json_t *mr_report_device_json(const struct mr_report_device *device)
{
	json_t *o = json_object();

	if ((set_string(o, "name", device->name) | set_string(o, "provider", device->provider) |
		    set_string(o, "health", device->health)) == 0)
		return o;
	json_decref(o);
	return NULL;
}

json_t *mr_report_assemble(
	const char *instance, json_t *lanes, json_t *ports, json_t *devices, bool balanced)
{
	json_t *o = json_object();
	int failed = 0;

	failed |= set_string(o, "instance", instance);
	failed |= json_object_set_new(o, "lanes", lanes);
	failed |= json_object_set_new(o, "ports", ports);
	failed |= json_object_set_new(o, "devices", devices);
	failed |= json_object_set_new(o, "balanced", json_boolean(balanced));
	if (failed == 0)
		return o;
	json_decref(o);
	return NULL;
}

json_t *mr_report_json(const struct mr_report_source *src)
{
	json_t *lanes = json_array(), *ports = json_array(), *devices = json_array();
	bool balanced = true;
	int failed = 0;
	json_t *report;

	for (uint32_t i = 0; i < src->lanes; i++) {
		struct mr_report_lane lane = {0};
		struct mr_report_latency latency;

		src->lane(src->ctx, i, &lane);
		mr_report_latency_read(&lane.pub.latency, &latency);
		balanced &= mr_counters_balanced(&lane.pub.counters, lane.pub.in_flight);
		failed |= json_array_append_new(lanes, mr_report_lane_json(&lane, &latency));
	}
	for (uint32_t i = 0; i < src->ports; i++) {
		struct mr_report_port port = {0};

		src->port(src->ctx, i, &port);
		failed |= json_array_append_new(ports, mr_report_port_json(&port));
	}
	for (uint32_t i = 0; i < src->devices; i++) {
		struct mr_report_device device = {0};

		src->device(src->ctx, i, &device);
		failed |= json_array_append_new(devices, mr_report_device_json(&device));
	}
	report = mr_report_assemble(src->instance, lanes, ports, devices, balanced);
	if (failed == 0)
		return report;
	json_decref(report);
	return NULL;
}
