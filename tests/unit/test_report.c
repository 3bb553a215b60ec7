/* SPDX-License-Identifier: BSD-3-Clause */
/* The report's JSON, and its renderings for people and for Prometheus. */
#include "mr_report.h"
#include "report_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct fixture full = {.stages = MR_CHAIN_MAX, .evidence = 3};

static json_t *report_of(const char *instance, uint32_t lanes)
{
	struct mr_report_source src = fixture_source(&full, instance, lanes);
	json_t *report = mr_report_json(&src);

	assert_non_null(report);
	return report;
}

static json_t *lane_of(const json_t *report, size_t i)
{
	return json_array_get(json_object_get(report, "lanes"), i);
}

static void assert_keys(json_t *o, const char *const *keys, size_t n)
{
	size_t i = 0;
	const char *key;
	json_t *v;

	json_object_foreach(o, key, v) {
		assert_true(i < n);
		assert_string_equal(key, keys[i++]);
	}
	assert_int_equal(i, n);
}

static void the_keys_are_those_that_scripts_rely_on(void **state)
{
	static const char *const top[] = {"instance", "lanes", "ports", "devices", "balanced"};
	static const char *const of_lane[] = {"name", "state", "rx_path", "tx_path", "path_verdict",
		"evidence", "guard", "guard_by", "rx_packets", "rx_bytes", "made_packets",
		"tx_packets", "tx_bytes", "drops", "in_flight", "host_bytes_copied", "latency_ns",
		"cycles_per_packet", "kernel_beats", "pool", "counters", "stages"};
	static const char *const of_port[] = {
		"name", "driver", "link", "rx_missed", "rx_errors", "rx_nombuf", "tx_errors"};
	static const char *const of_device[] = {"name", "provider", "health"};
	json_t *report = report_of("edge0", 2);

	(void)state;
	assert_keys(report, top, MR_ARRAY_LEN(top));
	assert_keys(lane_of(report, 1), of_lane, MR_ARRAY_LEN(of_lane));
	assert_keys(json_array_get(json_object_get(report, "ports"), 0), of_port,
		MR_ARRAY_LEN(of_port));
	assert_keys(json_array_get(json_object_get(report, "devices"), 0), of_device,
		MR_ARRAY_LEN(of_device));
	json_decref(report);
}

static void every_counter_of_the_list_is_in_one_place(void **state)
{
	json_t *report = report_of("edge0", 1);
	json_t *lane = lane_of(report, 0), *drops = json_object_get(lane, "drops");
	json_t *others = json_object_get(lane, "counters");
	struct mr_report_lane expected = {0};
	size_t zero = 0;

	(void)state;
	fixture_lane(&full, 0, &expected);
	for (size_t i = 0; i < MR_C_COUNT; i++) {
		const char *name = mr_counter_descs[i].name;
		bool is_drop = mr_counter_descs[i].kind == MR_COUNTER_DROP;
		json_t *const found[] = {json_object_get(lane, name), json_object_get(drops, name),
			json_object_get(others, name)};
		size_t places = 0;

		for (size_t p = 0; p < MR_ARRAY_LEN(found); p++) {
			if (found[p] == NULL)
				continue;
			places++;
			assert_int_equal(json_integer_value(found[p]), expected.pub.counters.c[i]);
		}
		assert_int_equal(places, 1);
		assert_int_equal(is_drop, found[1] != NULL);
		zero += is_drop && expected.pub.counters.c[i] == 0;
	}
	assert_true(zero > 0); /* counters that are zero are there as well */
	json_decref(report);
}

static void a_port_that_cannot_count_misses_reports_null(void **state)
{
	json_t *report = report_of("edge0", 1), *ports = json_object_get(report, "ports");

	(void)state;
	assert_int_equal(
		json_integer_value(json_object_get(json_array_get(ports, 0), "rx_missed")), 10);
	assert_true(json_is_null(json_object_get(json_array_get(ports, 2), "rx_missed")));
	json_decref(report);
}

static void a_pool_says_how_many_it_has_and_how_many_are_free(void **state)
{
	json_t *report = report_of("edge0", 2);
	json_t *pool = json_object_get(lane_of(report, 1), "pool");

	(void)state;
	assert_int_equal(json_object_size(pool), 2);
	assert_int_equal(json_integer_value(json_object_get(pool, "buffers")), 7001);
	assert_int_equal(json_integer_value(json_object_get(pool, "free")), 601);
	json_decref(report);
}

static void lane_that_lost_one(void *ctx, uint32_t i, struct mr_report_lane *ret)
{
	fixture_lane(ctx, i, ret);
	if (i == 1)
		ret->pub.counters.c[MR_C_rx_packets]++;
}

static void one_unbalanced_lane_makes_the_report_unbalanced(void **state)
{
	struct mr_report_source src = fixture_source(&full, "edge0", 3);
	json_t *report = mr_report_json(&src);

	(void)state;
	assert_true(json_is_true(json_object_get(report, "balanced")));
	json_decref(report);
	src.lane = lane_that_lost_one;
	report = mr_report_json(&src);
	assert_true(json_is_false(json_object_get(report, "balanced")));
	json_decref(report);
}

static void lane_of_extremes(void *ctx, uint32_t i, struct mr_report_lane *ret)
{
	fixture_lane(ctx, i, ret);
	ret->pub.counters.c[MR_C_turns] = UINT64_MAX;
	ret->pub.counters.c[MR_C_rx_packets] = 0;
	snprintf(ret->evidence[0].value, sizeof(ret->evidence[0].value), "caf\xe9");
}

static void extremes_stay_valid_json(void **state)
{
	struct mr_report_source src = fixture_source(&full, "edge0", 1);
	json_t *report, *lane;

	(void)state;
	src.lane = lane_of_extremes;
	report = mr_report_json(&src);
	assert_non_null(report);
	lane = lane_of(report, 0);
	assert_true(json_integer_value(json_object_get(
			    json_object_get(lane, "counters"), "turns")) == INT64_MAX);
	assert_true(json_real_value(json_object_get(lane, "cycles_per_packet")) == 0.0);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(json_object_get(lane, "evidence"), 0), "value")),
		"caf?");
	json_decref(report);
}

/* --- schema --- */

static int validate(const char *schema, const char *text)
{
	char command[512];
	FILE *f;
	int status;

	snprintf(command, sizeof(command),
		"/usr/bin/python3 " MR_SCHEMA_DIR "/validate.py " MR_SCHEMA_DIR
		"/%s.schema.json - 2>/dev/null",
		schema);
	f = popen(command, "w");
	assert_non_null(f);
	fputs(text, f);
	fputc('\n', f);
	status = pclose(f);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int validate_json(const char *schema, const json_t *report)
{
	char *text = json_dumps(report, JSON_COMPACT);
	int rc = validate(schema, text);

	free(text);
	return rc;
}

static void reports_satisfy_their_schemas_and_mistakes_do_not(void **state)
{
	json_t *report = report_of("edge0", 2);

	(void)state;
	if (validate("stats", "{}") == 77) {
		json_decref(report);
		skip();
	}
	assert_int_equal(validate_json("stats", report), 0);
	assert_int_equal(validate_json("run", report), 1); /* how it ended is missing */
	json_object_set_new(report, "duration_s", json_real(1.5));
	json_object_set_new(report, "exit_reason", json_string("idle"));
	assert_int_equal(validate_json("run", report), 0);
	json_object_set_new(report, "exit_reason", json_string("bored"));
	assert_int_equal(validate_json("run", report), 1);
	json_object_set_new(report, "exit_reason", json_string("host_silent"));
	assert_int_equal(validate_json("run", report), 0);
	json_object_set_new(lane_of(report, 0), "rx_missed", json_integer(1));
	assert_int_equal(validate_json("run", report), 1);
	json_object_del(lane_of(report, 0), "rx_missed");
	json_object_set_new(json_object_get(lane_of(report, 0), "drops"), "lost", json_integer(1));
	assert_int_equal(validate_json("run", report), 1);
	json_object_del(json_object_get(lane_of(report, 0), "drops"), "lost");
	json_object_del(json_object_get(lane_of(report, 1), "pool"), "free");
	assert_int_equal(validate_json("run", report), 1);
	json_object_set_new(json_object_get(lane_of(report, 1), "pool"), "free", json_integer(0));
	assert_int_equal(validate_json("run", report), 0);
	json_object_set_new(lane_of(report, 1), "guard", json_string("perhaps"));
	assert_int_equal(validate_json("run", report), 1);
	json_decref(report);

	assert_int_equal(validate("run",
				 "{\"errors\":[{\"file\":\"a.yaml\",\"line\":3,\"key\":\"lanes\","
				 "\"message\":\"bad\",\"hint\":null}]}"),
		0);
	assert_int_equal(validate("run", "{\"errors\":[]}"), 1);
	assert_int_equal(validate("run", "{\"errors\":[{\"message\":\"bad\"}]}"), 1);
	assert_int_equal(validate("run", "{}\n{}"), 1);
}

/* --- text --- */

static void text_has_a_block_per_lane_and_names_what_was_dropped(void **state)
{
	json_t *report = report_of("edge0", 2);
	char *text = mr_report_text(report);

	(void)state;
	assert_non_null(text);
	assert_non_null(strstr(text, "instance edge0: balanced"));
	assert_non_null(strstr(text, "\nlane lane0_with_a_long_name: run, rx direct, tx pinned"));
	assert_non_null(strstr(text, "\nlane lane1_with_a_long_name: run"));
	assert_non_null(strstr(text, "rx_drop_shed"));
	assert_null(strstr(text, "rx_drop_foreign ")); /* is zero */
	assert_non_null(strstr(text, "p50 1.5 us"));
	assert_non_null(strstr(text, "max 70.0 us"));
	assert_non_null(strstr(text, " 601 of 7001 buffers\n"));
	assert_non_null(strstr(text, "port port2: net_pcap, link up, missed not counted"));
	assert_non_null(strstr(text, "port port1: net_pcap, link down, missed 11"));
	assert_non_null(strstr(text, "device g1: sim, stalled"));
	free(text);
	json_object_set_new(report, "balanced", json_false());
	text = mr_report_text(report);
	assert_non_null(strstr(text, "NOT BALANCED"));
	free(text);
	json_decref(report);
}

static void text_holds_nothing_that_a_terminal_would_obey(void **state)
{
	json_t *report = report_of("edge\x1b[2J\xc2\x9b"
				   "0\r\x7f",
		1);
	char *text = mr_report_text(report);

	(void)state;
	assert_non_null(strstr(text, "instance edge?[2J??0??: balanced"));
	assert_non_null(strstr(text, "\xc3\xa9\xe2\x89\xa5")); /* other UTF-8 is kept */
	for (const char *p = text; *p != '\0'; p++)
		assert_true((unsigned char)*p >= 0x20 || *p == '\n');
	/* The report itself is as it was. */
	assert_string_equal(json_string_value(json_object_get(report, "instance")),
		"edge\x1b[2J\xc2\x9b"
		"0\r\x7f");
	free(text);
	json_decref(report);
}

static void grow(json_t *o, const char *key, json_int_t by)
{
	json_object_set_new(o, key, json_integer(json_integer_value(json_object_get(o, key)) + by));
}

static void rates_are_differences_per_second(void **state)
{
	json_t *before = report_of("edge0", 2), *now = json_deep_copy(before);
	json_t *lane = lane_of(now, 1);
	char name[64], state_word[16];
	double rx, rx_bits, tx, tx_bits, drops;
	unsigned long long in_flight;
	char *text, *line;

	(void)state;
	grow(lane, "rx_packets", 1000);
	grow(lane, "rx_bytes", 64000);
	grow(lane, "tx_packets", 900);
	grow(lane, "tx_bytes", 57600);
	grow(json_object_get(lane, "drops"), "gpu_drop_policy", 60);
	grow(json_object_get(lane, "drops"), "tx_drop_link", 40);
	text = mr_report_rates(before, now, 2.0);
	assert_non_null(text);
	line = strstr(text, "\nlane1");
	assert_non_null(line);
	assert_int_equal(sscanf(line, " %63s %15s %lf %lf %lf %lf %lf %llu", name, state_word, &rx,
				 &rx_bits, &tx, &tx_bits, &drops, &in_flight),
		8);
	assert_true(rx == 500 && rx_bits == 256000 && tx == 450 && tx_bits == 230400);
	assert_true(drops == 50 && in_flight == 17);
	line = strstr(text, "\nlane0");
	assert_int_equal(sscanf(line, " %63s %15s %lf", name, state_word, &rx), 3);
	assert_true(rx == 0);
	free(text);

	/* An instance that was started anew counts from 0, never below. */
	json_object_set_new(lane, "rx_packets", json_integer(10));
	text = mr_report_rates(before, now, 1.0);
	line = strstr(text, "\nlane1");
	assert_int_equal(sscanf(line, " %63s %15s %lf", name, state_word, &rx), 3);
	assert_true(rx == 10);
	free(text);
	json_decref(before);
	json_decref(now);
}

/* --- Prometheus --- */

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"

struct exposition {
	char family[256][128]; /* opened so far */
	char type[256][16];
	size_t families, samples;
	char seen[8192][512]; /* name and labels of every sample */
};

/* {key="value",...}: returns what is behind it, or NULL. */
static const char *parse_labels(const char *at)
{
	if (*at != '{')
		return at;
	at++;
	while (*at != '}') {
		size_t n = strspn(at, NAME_CHARS "0123456789");

		if (n == 0 || strspn(at, "0123456789") > 0 || strncmp(at + n, "=\"", 2) != 0)
			return NULL;
		for (at += n + 2; *at != '"'; at++) {
			if (*at == '\0' || *at == '\n')
				return NULL;
			if (*at == '\\' && (*++at == '\0' || strchr("\\\"n", *at) == NULL))
				return NULL;
		}
		at++;
		if (*at == ',' && at[1] != '}')
			at++;
		else if (*at != '}')
			return NULL;
	}
	return at + 1;
}

static bool belongs_to(const char *sample, size_t n, const char *family, const char *type)
{
	size_t f = strlen(family);

	if (n == f && strncmp(sample, family, f) == 0)
		return true;
	return strcmp(type, "summary") == 0 && strncmp(sample, family, f) == 0 &&
		((n == f + 4 && strncmp(sample + f, "_sum", 4) == 0) ||
			(n == f + 6 && strncmp(sample + f, "_count", 6) == 0));
}

static const char *check_sample(struct exposition *x, const char *line)
{
	size_t n = strspn(line, NAME_CHARS "0123456789:");
	size_t last = x->families - 1;
	const char *behind = parse_labels(line + n);
	char *end;

	if (n == 0 || x->families == 0)
		return "no name, or no family before it";
	if (!belongs_to(line, n, x->family[last], x->type[last]))
		return "sample outside its family's group";
	if (behind == NULL || *behind != ' ')
		return "labels";
	snprintf(x->seen[x->samples], sizeof(x->seen[0]), "%.*s", (int)(behind - line), line);
	for (size_t i = 0; i < x->samples; i++)
		if (strcmp(x->seen[i], x->seen[x->samples]) == 0)
			return "the same sample twice";
	x->samples++;
	(void)strtod(behind + 1, &end);
	if (end == behind + 1 || *end != '\0')
		return "value";
	if (strcmp(x->type[last], "counter") == 0 && behind[1] == '-')
		return "negative counter";
	return NULL;
}

/* HELP and TYPE come once per family, in this order, before its samples. */
static const char *check_comment(struct exposition *x, const char *line, const char *next)
{
	char name[128], type[16], what[8], help[2];

	if (sscanf(line, "# HELP %127s %1s", name, help) != 2)
		return "comment that is neither HELP nor TYPE";
	if (next == NULL ||
		sscanf(next, "# %7s %127s %15s", what, x->family[x->families], type) != 3)
		return "HELP without TYPE";
	if (strcmp(what, "TYPE") != 0 || strcmp(x->family[x->families], name) != 0)
		return "HELP of one and TYPE of another";
	if (strcmp(type, "counter") != 0 && strcmp(type, "gauge") != 0 &&
		strcmp(type, "summary") != 0)
		return "type";
	if (strspn(name, NAME_CHARS "0123456789:") != strlen(name) ||
		strncmp(name, "millrace_", 9) != 0)
		return "family name";
	if ((strcmp(type, "counter") == 0) !=
		(strlen(name) > 6 && strcmp(name + strlen(name) - 6, "_total") == 0))
		return "counters and only they end in _total";
	for (size_t i = 0; i < x->families; i++)
		if (strcmp(x->family[i], name) == 0)
			return "family twice";
	memcpy(x->type[x->families], type, sizeof(type));
	x->families++;
	return NULL;
}

/* Returns what is wrong with the exposition, or NULL. */
static const char *check_exposition(struct exposition *x, const char *text)
{
	char *copy = strdup(text), *save = NULL, *line, *next;
	const char *wrong = NULL;

	memset(x, 0, sizeof(*x));
	if (text[0] == '\0' || text[strlen(text) - 1] != '\n')
		wrong = "the last line has no end";
	line = strtok_r(copy, "\n", &save);
	while (wrong == NULL && line != NULL) {
		next = strtok_r(NULL, "\n", &save);
		if (line[0] == '#') {
			wrong = check_comment(x, line, next);
			next = strtok_r(NULL, "\n", &save);
		} else {
			wrong = check_sample(x, line);
		}
		line = next;
	}
	free(copy);
	return wrong;
}

static void the_checker_of_expositions_finds_mistakes(void **state)
{
	static struct exposition x;
	static const char head[] = "# HELP millrace_a_total h\n# TYPE millrace_a_total counter\n";
	static const char *const bad[] = {"millrace_a_total{b=\"c} 1\n", "millrace_a_total 1",
		"millrace_a_total{b=\"\\c\"} 1\n", "millrace_a_total{1b=\"c\"} 1\n",
		"millrace_a_total{b=\"c\",} 1\n", "millrace_b_total 1\n", "millrace_a_total x\n",
		"millrace_a_total -1\n", "millrace_a_total 1\nmillrace_a_total 2\n",
		"# HELP millrace_a_total h\n# TYPE millrace_a_total counter\n",
		"# HELP millrace_b h\nmillrace_b 1\n",
		"# HELP millrace_b h\n# TYPE millrace_b counter\n"};
	char text[512];

	(void)state;
	snprintf(text, sizeof(text), "%smillrace_a_total{b=\"\\\"\\\\\\n}\",c=\"\"} 1\n", head);
	assert_null(check_exposition(&x, text));
	for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++) {
		snprintf(text, sizeof(text), "%s%s", head, bad[i]);
		assert_non_null(check_exposition(&x, text));
	}
}

static void assert_promtool_agrees(const char *text)
{
	FILE *f;
	int status;

	if (system("command -v promtool >/dev/null") != 0) {
		print_message("promtool is not installed: its part was left out\n");
		return;
	}
	f = popen("promtool check metrics", "w");
	assert_non_null(f);
	fputs(text, f);
	status = pclose(f);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void the_exposition_is_strictly_valid(void **state)
{
	static struct exposition x;
	json_t *report = report_of("e\"dg\\e\n0", 16);
	char *text = mr_report_prometheus(report);
	const char *wrong = check_exposition(&x, text);

	(void)state;
	if (wrong != NULL)
		print_error("%s at sample %zu of family %zu\n", wrong, x.samples, x.families);
	assert_null(wrong);
	/* Every counter for every lane, and the rest. */
	assert_true(x.samples > 16 * (MR_C_COUNT + 7 * MR_REPORT_COUNTERS_MAX));
	assert_non_null(
		strstr(text, "{instance=\"e\\\"dg\\\\e\\n0\",lane=\"lane0_with_a_long_name\"}"));
	assert_promtool_agrees(text);
	free(text);
	json_decref(report);
}

static double sample(const char *text, const char *name_and_labels)
{
	const char *at = strstr(text, name_and_labels);

	if (at == NULL)
		print_error("there is no %s\n", name_and_labels);
	assert_non_null(at);
	return strtod(at + strlen(name_and_labels), NULL);
}

static void the_exposition_has_the_values_of_the_report(void **state)
{
	json_t *report = report_of("i", 2);
	char *text = mr_report_prometheus(report);
	struct mr_report_lane lane = {0};
	char key[256], name[128];

#define L1 "{instance=\"i\",lane=\"lane1_with_a_long_name\""
	(void)state;
	fixture_lane(&full, 1, &lane);
	for (size_t i = 0; i < MR_C_COUNT; i++) {
		mr_report_metric_name(mr_counter_descs[i].name, name, sizeof(name));
		snprintf(key, sizeof(key), "\n%s" L1 "} ", name);
		assert_true(sample(text, key) == (double)lane.pub.counters.c[i]);
	}
	assert_true(sample(text, "millrace_latency_seconds" L1 ",quantile=\"0.999\"} ") ==
		(double)mr_hist_quantile(&lane.pub.latency, 999000) / 1e9);
	assert_true(sample(text, "millrace_latency_seconds_count" L1 "} ") == 1000);
	assert_non_null(strstr(text, "millrace_latency_seconds_sum" L1 "} 123456789.012345678\n"));
	assert_true(sample(text, "millrace_in_flight_packets" L1 "} ") == 17);
	assert_true(sample(text, "millrace_pool_buffers" L1 "} ") == 7001);
	assert_true(sample(text, "millrace_pool_free" L1 "} ") == 601);
	assert_true(sample(text,
			    "millrace_stage_events_total" L1
			    ",position=\"7\",stage=\"stage3\",counter=\"a_counter_of_a_stage_"
			    "with_a_long_name_5\"} ") == 1007005);
	assert_true(sample(text, "millrace_port_rx_missed_total{instance=\"i\",port=\"port1\"} ") ==
		11);
	assert_null(strstr(text, "millrace_port_rx_missed_total{instance=\"i\",port=\"port2\"}"));
	assert_true(sample(text,
			    "millrace_port_link_up{instance=\"i\",port=\"port1\",driver=\"net_"
			    "pcap\"} ") == 0);
	assert_true(sample(text,
			    "millrace_device_healthy{instance=\"i\",device=\"g1\",provider="
			    "\"sim\"} ") == 0);
	assert_true(sample(text, "millrace_balanced{instance=\"i\"} ") == 1);
	free(text);
	json_decref(report);
}

static void no_latency_yet_is_not_a_latency_of_zero(void **state)
{
	json_t *report = report_of("i", 1);
	char *text;

	(void)state;
	json_object_set_new(
		json_object_get(lane_of(report, 0), "latency_ns"), "count", json_integer(0));
	text = mr_report_prometheus(report);
	assert_non_null(strstr(text, "quantile=\"0.5\"} NaN\n"));
	free(text);
	json_decref(report);
}

static void metric_names_follow_from_counter_names(void **state)
{
	char name[64];

	(void)state;
	mr_report_metric_name("rx_packets", name, sizeof(name));
	assert_string_equal(name, "millrace_rx_packets_total");
	mr_report_metric_name("gpu_wait_ns", name, sizeof(name));
	assert_string_equal(name, "millrace_gpu_wait_seconds_total");
	mr_report_metric_name("rx_turns", name, sizeof(name)); /* `ns`, but no unit */
	assert_string_equal(name, "millrace_rx_turns_total");
	print_message("%-24s %s\n", "counter", "Prometheus");
	for (size_t i = 0; i < MR_C_COUNT; i++) {
		mr_report_metric_name(mr_counter_descs[i].name, name, sizeof(name));
		print_message("%-24s %s\n", mr_counter_descs[i].name, name);
		assert_int_equal(
			strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(name));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_keys_are_those_that_scripts_rely_on),
		cmocka_unit_test(every_counter_of_the_list_is_in_one_place),
		cmocka_unit_test(a_port_that_cannot_count_misses_reports_null),
		cmocka_unit_test(a_pool_says_how_many_it_has_and_how_many_are_free),
		cmocka_unit_test(one_unbalanced_lane_makes_the_report_unbalanced),
		cmocka_unit_test(extremes_stay_valid_json),
		cmocka_unit_test(reports_satisfy_their_schemas_and_mistakes_do_not),
		cmocka_unit_test(text_has_a_block_per_lane_and_names_what_was_dropped),
		cmocka_unit_test(text_holds_nothing_that_a_terminal_would_obey),
		cmocka_unit_test(rates_are_differences_per_second),
		cmocka_unit_test(the_checker_of_expositions_finds_mistakes),
		cmocka_unit_test(the_exposition_is_strictly_valid),
		cmocka_unit_test(the_exposition_has_the_values_of_the_report),
		cmocka_unit_test(no_latency_yet_is_not_a_latency_of_zero),
		cmocka_unit_test(metric_names_follow_from_counter_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
