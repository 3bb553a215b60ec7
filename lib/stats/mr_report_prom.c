/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mr_report_metric_name(const char *counter, char *ret_name, size_t bytes)
{
	size_t n = strlen(counter);

	if (n > 3 && strcmp(counter + n - 3, "_ns") == 0)
		snprintf(ret_name, bytes, "millrace_%.*s_seconds_total", (int)(n - 3), counter);
	else
		snprintf(ret_name, bytes, "millrace_%s_total", counter);
}

/* One rendering in progress. */
struct prom {
	FILE *f;
	const json_t *report;
	const json_t *lanes;
};

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

static long long number(const json_t *o, const char *key)
{
	return json_integer_value(get(o, key));
}

static void print_escaped(FILE *f, const char *text, bool quotes)
{
	for (; text != NULL && *text != '\0'; text++) {
		if (*text == '\n')
			fputs("\\n", f);
		else if (*text == '\\' || (quotes && *text == '"'))
			fprintf(f, "\\%c", *text);
		else
			fputc(*text, f);
	}
}

/* Every family is opened once, with all its samples behind it. */
static void open_family(struct prom *p, const char *name, const char *type, const char *help)
{
	fprintf(p->f, "# HELP %s ", name);
	print_escaped(p->f, help, false);
	fprintf(p->f, "\n# TYPE %s %s\n", name, type);
}

static void print_label(struct prom *p, const char *key, const char *value)
{
	fprintf(p->f, ",%s=\"", key);
	print_escaped(p->f, value, true);
	fputc('"', p->f);
}

/* NAME{instance="...",KIND="..." and leaves the braces open for more labels. */
static void open_sample(struct prom *p, const char *name, const char *kind, const json_t *o)
{
	fprintf(p->f, "%s{instance=\"", name);
	print_escaped(p->f, json_string_value(get(p->report, "instance")), true);
	fputc('"', p->f);
	if (kind != NULL)
		print_label(p, kind, json_string_value(get(o, "name")));
}

static void label_of(struct prom *p, const json_t *o, const char *key)
{
	print_label(p, key, json_string_value(get(o, key)));
}

static void close_sample(struct prom *p, long long v)
{
	fprintf(p->f, "} %lld\n", v);
}

/* In decimal, because a sum of nanoseconds soon has more digits than a double. */
static void close_seconds(struct prom *p, long long ns)
{
	fprintf(p->f, "} %lld.%09lld\n", ns / 1000000000, ns % 1000000000);
}

/* Where a lane's object holds a counter of the list. */
static const json_t *counter_of(const json_t *lane, const char *name)
{
	const json_t *v = get(lane, name);

	if (v == NULL)
		v = get(get(lane, "drops"), name);
	return v != NULL ? v : get(get(lane, "counters"), name);
}

static void print_counters(struct prom *p)
{
	for (size_t c = 0; c < MR_C_COUNT; c++) {
		const struct mr_counter_desc *d = &mr_counter_descs[c];
		char name[128];
		size_t i, n = strlen(d->name);
		json_t *lane;

		mr_report_metric_name(d->name, name, sizeof(name));
		open_family(p, name, "counter", d->help);
		json_array_foreach(p->lanes, i, lane) {
			long long v = json_integer_value(counter_of(lane, d->name));

			open_sample(p, name, "lane", lane);
			if (n > 3 && strcmp(d->name + n - 3, "_ns") == 0)
				close_seconds(p, v);
			else
				close_sample(p, v);
		}
	}
}

static void print_stage_counters(struct prom *p)
{
	static const char family[] = "millrace_stage_events_total";
	size_t i, position;
	json_t *lane, *stage, *v;
	const char *counter;

	open_family(p, family, "counter",
		"a counter of a stage; position is its place in the chain, from 0");
	json_array_foreach(p->lanes, i, lane)
		json_array_foreach(get(lane, "stages"), position, stage)
			json_object_foreach((json_t *)get(stage, "counters"), counter, v) {
				open_sample(p, family, "lane", lane);
				fprintf(p->f, ",position=\"%zu\"", position);
				print_label(p, "stage", json_string_value(get(stage, "name")));
				print_label(p, "counter", counter);
				close_sample(p, json_integer_value(v));
			}
}

static void print_latency(struct prom *p)
{
	static const char family[] = "millrace_latency_seconds";
	static const struct {
		const char *quantile, *key;
	} q[] = {{"0.5", "p50"}, {"0.99", "p99"}, {"0.999", "p999"}};
	size_t i;
	json_t *lane;

	open_family(p, family, "summary",
		"receive to hand-over to the port, or to its backlog, per packet, since the start");
	json_array_foreach(p->lanes, i, lane) {
		const json_t *l = get(lane, "latency_ns");

		for (size_t k = 0; k < MR_ARRAY_LEN(q); k++) {
			open_sample(p, family, "lane", lane);
			print_label(p, "quantile", q[k].quantile);
			if (number(l, "count") != 0)
				close_seconds(p, number(l, q[k].key));
			else
				fputs("} NaN\n", p->f); /* the quantile of nothing */
		}
		open_sample(p, "millrace_latency_seconds_sum", "lane", lane);
		close_seconds(p, number(l, "sum"));
		open_sample(p, "millrace_latency_seconds_count", "lane", lane);
		close_sample(p, number(l, "count"));
	}
	open_family(p, "millrace_latency_max_seconds", "gauge", "the longest since the start");
	json_array_foreach(p->lanes, i, lane) {
		open_sample(p, "millrace_latency_max_seconds", "lane", lane);
		close_seconds(p, number(get(lane, "latency_ns"), "max"));
	}
}

static void print_pools(struct prom *p)
{
	static const struct {
		const char *key, *family, *help;
	} gauge[] = {
		{"buffers", "millrace_pool_buffers", "buffers of the pool the lane receives into"},
		{"free", "millrace_pool_free", "those of them that nobody holds"},
	};
	size_t i;
	json_t *lane;

	for (size_t g = 0; g < MR_ARRAY_LEN(gauge); g++) {
		open_family(p, gauge[g].family, "gauge", gauge[g].help);
		json_array_foreach(p->lanes, i, lane) {
			open_sample(p, gauge[g].family, "lane", lane);
			close_sample(p, number(get(lane, "pool"), gauge[g].key));
		}
	}
}

static void print_lane_states(struct prom *p)
{
	size_t i, n;
	json_t *lane, *e;

	open_family(p, "millrace_in_flight_packets", "gauge", "packets in slots and backlogs");
	json_array_foreach(p->lanes, i, lane) {
		open_sample(p, "millrace_in_flight_packets", "lane", lane);
		close_sample(p, number(lane, "in_flight"));
	}
	open_family(p, "millrace_kernel_beats_total", "counter",
		"heartbeats of the kernel workers of the lane");
	json_array_foreach(p->lanes, i, lane) {
		open_sample(p, "millrace_kernel_beats_total", "lane", lane);
		close_sample(p, number(lane, "kernel_beats"));
	}
	open_family(p, "millrace_lane_info", "gauge",
		"1; state, paths as chosen and as proven, and the guard of packet memory");
	json_array_foreach(p->lanes, i, lane) {
		open_sample(p, "millrace_lane_info", "lane", lane);
		label_of(p, lane, "state");
		label_of(p, lane, "rx_path");
		label_of(p, lane, "tx_path");
		label_of(p, lane, "path_verdict");
		label_of(p, lane, "guard");
		label_of(p, lane, "guard_by");
		close_sample(p, 1);
	}
	open_family(p, "millrace_path_proven", "gauge",
		"1 if the evidence carries the path that was chosen; 0: unproven");
	json_array_foreach(p->lanes, i, lane) {
		const char *verdict = json_string_value(get(lane, "path_verdict"));

		open_sample(p, "millrace_path_proven", "lane", lane);
		label_of(p, lane, "rx_path");
		label_of(p, lane, "tx_path");
		close_sample(p, verdict != NULL && strcmp(verdict, "unproven") != 0);
	}
	open_family(p, "millrace_path_evidence_info", "gauge",
		"1; a check that the path verdict rests on");
	json_array_foreach(p->lanes, i, lane)
		json_array_foreach(get(lane, "evidence"), n, e) {
			open_sample(p, "millrace_path_evidence_info", "lane", lane);
			fprintf(p->f, ",position=\"%zu\"", n);
			label_of(p, e, "check");
			label_of(p, e, "verdict");
			label_of(p, e, "value");
			close_sample(p, 1);
		}
}

static void print_ports(struct prom *p)
{
	static const struct {
		const char *key, *family, *help;
	} counter[] = {
		{"rx_missed", "millrace_port_rx_missed_total",
			"frames the port had no descriptor for; absent if the driver cannot count"},
		{"rx_errors", "millrace_port_rx_errors_total", "frames received with errors"},
		{"rx_nombuf", "millrace_port_rx_nombuf_total", "receive buffer allocations failed"},
		{"tx_errors", "millrace_port_tx_errors_total", "frames the port failed to send"},
	};
	const json_t *ports = get(p->report, "ports");
	size_t i;
	json_t *port;

	for (size_t c = 0; c < MR_ARRAY_LEN(counter); c++) {
		open_family(p, counter[c].family, "counter", counter[c].help);
		json_array_foreach(ports, i, port) {
			if (!json_is_integer(get(port, counter[c].key)))
				continue;
			open_sample(p, counter[c].family, "port", port);
			close_sample(p, number(port, counter[c].key));
		}
	}
	open_family(p, "millrace_port_link_up", "gauge", "1 if the port's link is up");
	json_array_foreach(ports, i, port) {
		const char *link = json_string_value(get(port, "link"));

		open_sample(p, "millrace_port_link_up", "port", port);
		label_of(p, port, "driver");
		close_sample(p, link != NULL && strcmp(link, "up") == 0);
	}
}

static void print_devices(struct prom *p)
{
	size_t i;
	json_t *device;

	open_family(p, "millrace_device_healthy", "gauge", "1 if the device works");
	json_array_foreach(get(p->report, "devices"), i, device) {
		const char *health = json_string_value(get(device, "health"));

		open_sample(p, "millrace_device_healthy", "device", device);
		label_of(p, device, "provider");
		close_sample(p, health != NULL && strcmp(health, "healthy") == 0);
	}
}

char *mr_report_prometheus(const json_t *report)
{
	char *text = NULL;
	size_t bytes = 0;
	struct prom p = {
		.f = open_memstream(&text, &bytes),
		.report = report,
		.lanes = get(report, "lanes"),
	};
	int failed;

	if (p.f == NULL)
		return NULL;
	print_counters(&p);
	print_stage_counters(&p);
	print_latency(&p);
	print_lane_states(&p);
	print_pools(&p);
	open_family(&p, "millrace_balanced", "gauge",
		"1 if every packet of every lane is accounted for");
	open_sample(&p, "millrace_balanced", NULL, NULL);
	close_sample(&p, json_is_true(get(report, "balanced")));
	print_ports(&p);
	print_devices(&p);
	failed = ferror(p.f);
	failed |= fclose(p.f);
	if (failed == 0)
		return text;
	free(text);
	return NULL;
}
