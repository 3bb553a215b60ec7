/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long long number(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

/*
 * A report may come from another process: what a terminal would obey (C0, DEL,
 * and C1, which UTF-8 spells C2 80 .. C2 9F) is replaced in every string.
 */
static void make_printable(json_t *o)
{
	const char *key;
	json_t *v;
	size_t i;

	json_object_foreach(o, key, v)
		make_printable(v);
	json_array_foreach(o, i, v)
		make_printable(v);
	if (json_is_string(o)) {
		char *text = strdup(json_string_value(o));

		for (unsigned char *p = (unsigned char *)text; p != NULL && *p != 0; p++) {
			if (*p < 0x20 || *p == 0x7f)
				*p = '?';
			else if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f)
				p[0] = p[1] = '?';
		}
		json_string_set(o, text != NULL ? text : "?");
		free(text);
	}
}

static const char *string(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s != NULL ? s : "";
}

static long long dropped(const json_t *lane)
{
	long long sum = 0;
	const char *name;
	json_t *v;

	json_object_foreach(json_object_get(lane, "drops"), name, v)
		sum += json_integer_value(v);
	return sum;
}

/* Counters go by their names in the list, which are those of JSON and Prometheus. */
static void print_row(FILE *f, const char *name, long long v)
{
	fprintf(f, "  %-20s %18lld\n", name, v);
}

static void print_named(FILE *f, json_t *counters, bool zero_too)
{
	const char *name;
	json_t *v;

	json_object_foreach(counters, name, v)
		if (zero_too || json_integer_value(v) != 0)
			print_row(f, name, json_integer_value(v));
}

static void print_latency(FILE *f, const json_t *lane)
{
	const json_t *l = json_object_get(lane, "latency_ns");

	if (number(l, "count") == 0)
		return;
	fprintf(f, "  %-20s p50 %.1f us, p99 %.1f us, p99.9 %.1f us, max %.1f us\n", "latency",
		(double)number(l, "p50") / 1e3, (double)number(l, "p99") / 1e3,
		(double)number(l, "p999") / 1e3, (double)number(l, "max") / 1e3);
}

static void print_pool(FILE *f, const json_t *pool)
{
	fprintf(f, "  %-20s %18lld of %lld buffers\n", "pool_free", number(pool, "free"),
		number(pool, "buffers"));
}

static void print_lane(FILE *f, const json_t *lane)
{
	static const char *const rows[] = {"rx_packets", "rx_bytes", "made_packets", "tx_packets",
		"tx_bytes", "in_flight", "host_bytes_copied"};
	size_t i;
	json_t *o;

	fprintf(f, "\nlane %s: %s, rx %s, tx %s, proven %s, guard %s (%s)\n", string(lane, "name"),
		string(lane, "state"), string(lane, "rx_path"), string(lane, "tx_path"),
		string(lane, "path_verdict"), string(lane, "guard"), string(lane, "guard_by"));
	for (i = 0; i < MR_ARRAY_LEN(rows); i++)
		print_row(f, rows[i], number(lane, rows[i]));
	print_row(f, "drops", dropped(lane));
	print_named(f, json_object_get(lane, "drops"), false);
	print_latency(f, lane);
	fprintf(f, "  %-20s %18.1f\n", "cycles_per_packet",
		json_real_value(json_object_get(lane, "cycles_per_packet")));
	print_row(f, "kernel_beats", number(lane, "kernel_beats"));
	print_pool(f, json_object_get(lane, "pool"));
	print_named(f, json_object_get(lane, "counters"), true);
	json_array_foreach(json_object_get(lane, "stages"), i, o) {
		fprintf(f, "  stage %zu: %s\n", i, string(o, "name"));
		print_named(f, json_object_get(o, "counters"), true);
	}
	json_array_foreach(json_object_get(lane, "evidence"), i, o)
		fprintf(f, "  %-7s %-20s %s\n", string(o, "verdict"), string(o, "check"),
			string(o, "value"));
}

static void print_port(FILE *f, const json_t *port)
{
	const json_t *missed = json_object_get(port, "rx_missed");

	fprintf(f, "port %s: %s, link %s, ", string(port, "name"), string(port, "driver"),
		string(port, "link"));
	if (json_is_integer(missed))
		fprintf(f, "missed %lld", (long long)json_integer_value(missed));
	else
		fprintf(f, "missed not counted by this driver");
	fprintf(f, ", rx errors %lld, no buffer %lld, tx errors %lld\n", number(port, "rx_errors"),
		number(port, "rx_nombuf"), number(port, "tx_errors"));
}

/* Closes the stream; the string is whole only if every write went well. */
static char *finish(FILE *f, char **text)
{
	int failed = ferror(f);

	failed |= fclose(f);
	if (failed == 0)
		return *text;
	free(*text);
	return NULL;
}

char *mr_report_text(const json_t *original)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&text, &bytes);
	json_t *report = json_deep_copy(original);
	size_t i;
	json_t *o;

	make_printable(report);
	if (f == NULL || report == NULL) {
		if (f != NULL)
			fclose(f);
		free(text);
		json_decref(report);
		return NULL;
	}
	fprintf(f, "instance %s: %s\n", string(report, "instance"),
		json_is_true(json_object_get(report, "balanced"))
			? "balanced, every packet is accounted for"
			: "NOT BALANCED, packets are unaccounted for");
	json_array_foreach(json_object_get(report, "lanes"), i, o)
		print_lane(f, o);
	fprintf(f, "\n");
	json_array_foreach(json_object_get(report, "ports"), i, o)
		print_port(f, o);
	json_array_foreach(json_object_get(report, "devices"), i, o)
		fprintf(f, "device %s: %s, %s\n", string(o, "name"), string(o, "provider"),
			string(o, "health"));
	json_decref(report);
	return finish(f, &text);
}

static const json_t *lane_named(const json_t *report, const char *name)
{
	size_t i;
	json_t *o;

	json_array_foreach(json_object_get(report, "lanes"), i, o)
		if (strcmp(string(o, "name"), name) == 0)
			return o;
	return NULL;
}

static double per_second(long long before, long long now, double seconds)
{
	long long grown = now >= before ? now - before : now;

	return seconds > 0 ? (double)grown / seconds : 0.0;
}

char *mr_report_rates(const json_t *before, const json_t *original, double seconds)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&text, &bytes);
	json_t *now = json_deep_copy(original);
	size_t i;
	json_t *lane;

	make_printable(now);
	if (f == NULL || now == NULL) {
		if (f != NULL)
			fclose(f);
		free(text);
		json_decref(now);
		return NULL;
	}
	fprintf(f, "%-16s %-6s %12s %15s %12s %15s %12s %10s\n", "lane", "state", "rx pps",
		"rx bit/s", "tx pps", "tx bit/s", "drops/s", "in flight");
	json_array_foreach(json_object_get(now, "lanes"), i, lane) {
		const json_t *as_sent = json_array_get(json_object_get(original, "lanes"), i);
		const json_t *was = lane_named(before, string(as_sent, "name"));

		fprintf(f, "%-16s %-6s %12.0f %15.0f %12.0f %15.0f %12.0f %10lld\n",
			string(lane, "name"), string(lane, "state"),
			per_second(number(was, "rx_packets"), number(lane, "rx_packets"), seconds),
			8 * per_second(number(was, "rx_bytes"), number(lane, "rx_bytes"), seconds),
			per_second(number(was, "tx_packets"), number(lane, "tx_packets"), seconds),
			8 * per_second(number(was, "tx_bytes"), number(lane, "tx_bytes"), seconds),
			per_second(dropped(was), dropped(lane), seconds),
			number(lane, "in_flight"));
	}
	json_decref(now);
	return finish(f, &text);
}
