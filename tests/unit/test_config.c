/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration: loading, defaults, lines, and the manual against the list of keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SMALL                                                                                      \
	"devices: [{name: g0, device: sim}]\n"                                                     \
	"ports:\n"                                                                                 \
	"  - {name: p0, device: net_null0}\n"                                                      \
	"lanes:\n"                                                                                 \
	"  - name: l0\n"                                                                           \
	"    rx: {port: p0, queue: 0}\n"                                                           \
	"    tx: [{port: p0, queue: 0}]\n"                                                         \
	"    core: any\n"                                                                          \
	"    device: g0\n"                                                                         \
	"    path: [direct]\n"

static struct mr_problems problems;

static int parse(const char *text, struct mr_config *cfg)
{
	return mr_config_parse("t.yaml", text, strlen(text), cfg, &problems);
}

static void defaults_are_those_of_the_list(void **state)
{
	struct mr_config cfg;

	(void)state;
	assert_int_equal(parse(SMALL, &cfg), 0);
	assert_int_equal(problems.count, 0);
	assert_null(cfg.name);
	assert_int_equal(cfg.hugepages, MR_HUGEPAGES_AUTO);
	assert_int_equal(cfg.eal_args_count, 0);
	assert_int_equal(cfg.devices_count, 1);
	assert_int_equal(cfg.devices[0].region_bytes, 64 << 20);
	assert_int_equal(cfg.ports[0].mtu, 1500);
	assert_int_equal(cfg.ports[0].rx_ring, 512);
	assert_int_equal(cfg.ports[0].tx_ring, 512);
	assert_int_equal(cfg.lanes[0].core, -1);
	assert_int_equal(cfg.lanes[0].batch_packets, 64);
	assert_int_equal(cfg.lanes[0].batch_timeout_us, 20);
	assert_int_equal(cfg.lanes[0].slots, 64);
	assert_int_equal(cfg.lanes[0].workers, 1);
	assert_int_equal(cfg.lanes[0].buffers, 0);
	assert_int_equal(cfg.lanes[0].overload, MR_OVERLOAD_BLOCK);
	assert_int_equal(cfg.lanes[0].tick_us, 0);
	assert_int_equal(cfg.lanes[0].tx_timeout_us, 1000);
	assert_int_equal(cfg.lanes[0].stages_count, 0);
	assert_int_equal(cfg.lanes[0].rx_path_count, 0);
	assert_int_equal(cfg.drain_ms, 500);
	assert_int_equal(cfg.host_timeout_ms, 5000);
	assert_int_equal(cfg.backoff_ns, 100);
	assert_int_equal(cfg.stall_ms, 0);
	assert_int_equal(cfg.log_level, 2);
	mr_config_free(&cfg);
}

static void every_key_reaches_its_member(void **state)
{
	static const char text[] = "name: edge-0\n"
				   "eal: {hugepages: off, args: [-v, \"--foo=1\"]}\n"
				   "devices: [{name: g0, device: \"sim,seed=7\", region: 3GiB}]\n"
				   "ports: [{name: p0, device: net_null0, mtu: 9000, rx_ring: 64,\n"
				   "         tx_ring: 128}]\n"
				   "lanes:\n"
				   "  - name: l0\n"
				   "    rx: {port: p0, queue: 3}\n"
				   "    tx: [{port: p0, queue: 4}, {port: p0, queue: 5}]\n"
				   "    core: 7\n"
				   "    device: g0\n"
				   "    path: [pinned, direct]\n"
				   "    rx_path: [direct]\n"
				   "    tx_path: [staged]\n"
				   "    batch: {packets: 32, timeout_us: 0}\n"
				   "    slots: 16\n"
				   "    workers: 4\n"
				   "    buffers: 9999\n"
				   "    overload: shed\n"
				   "    tick_us: 250\n"
				   "    tx_timeout_us: 0\n"
				   "    stages:\n"
				   "      - use: drop\n"
				   "        params: {reason: \"runt\", other: 12}\n"
				   "      - use: l2swap\n"
				   "stop: {drain_ms: 1}\n"
				   "kernel: {host_timeout_ms: 0, stall_ms: 250, backoff_ns: 7}\n"
				   "log: {level: debug}\n";
	struct mr_config cfg;
	struct mr_config_lane *l;

	(void)state;
	assert_int_equal(parse(text, &cfg), 0);
	assert_string_equal(cfg.name, "edge-0");
	assert_int_equal(cfg.hugepages, MR_HUGEPAGES_OFF);
	assert_int_equal(cfg.eal_args_count, 2);
	assert_string_equal(cfg.eal_args[1], "--foo=1");
	assert_string_equal(cfg.devices[0].device, "sim,seed=7");
	assert_int_equal(cfg.devices[0].region_bytes, 3ull << 30);
	assert_int_equal(cfg.ports[0].mtu, 9000);
	assert_int_equal(cfg.ports[0].rx_ring, 64);
	assert_int_equal(cfg.ports[0].tx_ring, 128);
	l = &cfg.lanes[0];
	assert_string_equal(l->rx.port, "p0");
	assert_int_equal(l->rx.queue, 3);
	assert_int_equal(l->tx_count, 2);
	assert_int_equal(l->tx[1].queue, 5);
	assert_int_equal(l->core, 7);
	assert_string_equal(l->device, "g0");
	assert_int_equal(l->path_count, 2);
	assert_int_equal(l->path[0], MR_PATH_PINNED);
	assert_int_equal(l->path[1], MR_PATH_DIRECT);
	assert_int_equal(l->rx_path[0], MR_PATH_DIRECT);
	assert_int_equal(l->tx_path[0], MR_PATH_STAGED);
	assert_int_equal(l->batch_packets, 32);
	assert_int_equal(l->batch_timeout_us, 0);
	assert_int_equal(l->slots, 16);
	assert_int_equal(l->workers, 4);
	assert_int_equal(l->buffers, 9999);
	assert_int_equal(l->overload, MR_OVERLOAD_SHED);
	assert_int_equal(l->tick_us, 250);
	assert_int_equal(l->tx_timeout_us, 0);
	assert_int_equal(l->stages_count, 2);
	assert_string_equal(l->stages[0].use, "drop");
	assert_int_equal(l->stages[0].params_count, 2);
	assert_string_equal(l->stages[0].params[0].value, "runt");
	assert_string_equal(l->stages[0].params[1].key, "other");
	assert_int_equal(l->stages[0].params[1].line, 24);
	assert_int_equal(l->stages[1].params_count, 0);
	assert_int_equal(l->stages[1].line, 25);
	assert_int_equal(cfg.drain_ms, 1);
	assert_int_equal(cfg.host_timeout_ms, 0);
	assert_int_equal(cfg.stall_ms, 250);
	assert_int_equal(cfg.backoff_ns, 7);
	assert_int_equal(cfg.log_level, 3);
	mr_config_free(&cfg);
}

static void lines_are_those_of_the_key_or_its_nearest_parent(void **state)
{
	struct mr_config cfg;

	(void)state;
	assert_int_equal(parse(SMALL, &cfg), 0);
	assert_int_equal(mr_config_line(&cfg, "ports"), 2);
	assert_int_equal(mr_config_line(&cfg, "ports[0].device"), 3);
	assert_int_equal(mr_config_line(&cfg, "lanes[0].path[0]"), 10);
	assert_int_equal(mr_config_line(&cfg, "lanes[0].path[7]"), 10);
	assert_int_equal(mr_config_line(&cfg, "lanes[0].buffers"), 5);
	assert_int_equal(mr_config_line(&cfg, "lanes[9].buffers"), 4);
	assert_int_equal(mr_config_line(&cfg, "name"), 0);
	assert_int_equal(mr_config_line(&cfg, ""), 0);
	assert_int_equal(cfg.lanes[0].line, 5);
	mr_config_free(&cfg);
	assert_int_equal(mr_config_line(&cfg, "ports"), 0);
}

static void empty_text_is_refused(void **state)
{
	static const char *const empty[] = {
		"", "\n\n", "# only a comment\n", "---\n", "---\n...\n", "~\n"};
	struct mr_config cfg;

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(empty); i++) {
		assert_int_equal(parse(empty[i], &cfg), -EINVAL);
		assert_int_equal(problems.count, 1);
		assert_string_equal(problems.p[0].message, "the file is empty");
	}
}

static char *repeat(const char *head, const char *piece, uint32_t times, const char *tail)
{
	size_t n = strlen(piece);
	char *s = malloc(strlen(head) + n * times + strlen(tail) + 1);
	size_t at = strlen(head);

	assert_non_null(s);
	memcpy(s, head, at);
	for (uint32_t i = 0; i < times; i++, at += n)
		memcpy(s + at, piece, n);
	memcpy(s + at, tail, strlen(tail) + 1);
	return s;
}

static void hostile_sizes_are_bounded(void **state)
{
	static const struct {
		const char *head, *piece, *tail, *message;
		uint32_t times;
	} rows[] = {
		{"name: ", "[", "", "nested deeper", 100000},
		{"name: ", "{a: ", "", "nested deeper", 100000},
		{"name: [", "a,", "]", "more values", 100000},
		{"", "- - - - - - - - - - - - - - - - - - a\n", "", "nested deeper", 10},
		{"#", "x", "\n", "more than 1048576 bytes", 1100000},
		{"", "a: 1\n", "", "more keys", 1000},
		{"name: \"", "x", "\"\n", "has 500000 characters", 500000},
	};
	struct mr_config cfg;

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		char *text = repeat(rows[i].head, rows[i].piece, rows[i].times, rows[i].tail);

		assert_int_equal(parse(text, &cfg), -EINVAL);
		assert_non_null(strstr(problems.p[0].message, rows[i].message));
		free(text);
	}
}

static void more_problems_than_are_kept_are_counted(void **state)
{
	char *text = repeat(SMALL "    stages: [", "{x: 1}, ", 8, "]\n");
	char *many = repeat(text, "eal: {x: 1}\n", 100, "");
	struct mr_config cfg;

	(void)state;
	assert_int_equal(parse(many, &cfg), -EINVAL);
	assert_true(problems.count > MR_PROBLEMS_MAX);
	assert_string_equal(problems.p[0].key, "lanes[0].stages[0].x");
	free(text);
	free(many);
}

static void problems_are_one_printable_line(void **state)
{
	struct mr_problems *ps = &problems;

	(void)state;
	memset(ps, 0, sizeof(*ps));
	mr_problem_add(ps, 3, "k", "a\tb", "x\ny\x7f%s", "\xc3\xa4");
	assert_string_equal(ps->p[0].hint, "a?b");
	assert_string_equal(ps->p[0].message, "x?y?\xc3\xa4");
	mr_problem_add(ps, 3, "k", "", "a%.1s", "\xc3\xa4");
	assert_string_equal(ps->p[1].message, "a");
	mr_problem_add(ps, 3, "k", "", "a%.3s", "\xf0\x9f\x98\x80");
	assert_string_equal(ps->p[2].message, "a");
	mr_problem_add(ps, 3, "k", "", "a%.4s", "\xf0\x9f\x98\x80");
	assert_string_equal(ps->p[3].message, "a\xf0\x9f\x98\x80");
}

static void files_that_cannot_be_read_say_why(void **state)
{
	struct mr_config cfg;

	(void)state;
	assert_int_equal(mr_config_load("/nonexistent/x.yaml", &cfg, &problems), -ENOENT);
	assert_int_equal(problems.count, 1);
	assert_non_null(strstr(problems.p[0].message, "No such file"));
	assert_string_equal(problems.file, "/nonexistent/x.yaml");
	assert_int_equal(mr_config_load("/", &cfg, &problems), -EISDIR);
	assert_string_equal(problems.p[0].message, "is a directory, not a file");
	assert_int_equal(mr_config_load("/dev/zero", &cfg, &problems), -EINVAL);
	assert_string_equal(problems.p[0].message, "is a device, not a file");
	assert_int_equal(mr_config_load("", &cfg, &problems), -ENOENT);
	assert_string_equal(problems.file, "''");
}

static void files_without_end_or_content_are_refused(void **state)
{
	char path[] = "/tmp/test_config-XXXXXX";
	struct mr_config cfg;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(mr_config_load(path, &cfg, &problems), -EINVAL);
	assert_string_equal(problems.p[0].message, "the file is empty");
	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	assert_int_equal(mr_config_load(path, &cfg, &problems), -EINVAL);
	assert_non_null(strstr(problems.p[0].message, "1048576 bytes"));
	close(fd);
	unlink(path);
}

static void free_accepts_zeroed_and_half_filled(void **state)
{
	struct mr_config cfg;

	(void)state;
	memset(&cfg, 0, sizeof(cfg));
	mr_config_free(&cfg);
	cfg.lanes = calloc(2, sizeof(*cfg.lanes));
	cfg.lanes_count = 2;
	cfg.lanes[0].stages = calloc(1, sizeof(*cfg.lanes[0].stages));
	cfg.lanes[0].stages_count = 1;
	mr_config_free(&cfg);
	assert_null(cfg.lanes);
}

/* The rows themselves: a default must pass its own row's check. */
static void schema_is_sound(const struct mr_schema *s)
{
	const struct mr_schema_row *r;
	uint32_t count;

	for (uint32_t i = 0; (r = mr_schema_at(s, i)) != NULL; i++) {
		const cyaml_strval_t *words = mr_schema_words(r->type, &count);
		bool found = false;

		assert_true(strlen(r->help) > 10);
		assert_true(r->max >= r->min);
		for (uint32_t k = 0; k < i; k++)
			assert_string_not_equal(mr_schema_at(s, k)->path, r->path);
		if (r->def == NULL || *r->def == '\0' || words == NULL)
			continue;
		for (uint32_t k = 0; k < count; k++)
			found |= strcmp(words[k].str, r->def) == 0;
		assert_true(found);
	}
}

static void rows_are_sound(void **state)
{
	(void)state;
	schema_is_sound(&mr_schema_run);
	schema_is_sound(&mr_schema_gen);
}

static char *read_manual(const struct mr_schema *s, size_t *ret_bytes)
{
	char *text = calloc(1, MR_YAML_BYTES_MAX);
	char file[256];
	FILE *f;

	snprintf(file, sizeof(file), MILLRACE_SOURCE "/%s", s->manual);
	f = fopen(file, "r");
	assert_non_null(f);
	assert_non_null(text);
	*ret_bytes = fread(text, 1, MR_YAML_BYTES_MAX - 1, f);
	fclose(f);
	return text;
}

/* The node of a row's path, through the first entry of every list. */
static const struct mr_yaml_node *manual_node(const struct mr_yaml_node *top, const char *path)
{
	char copy[128];
	char *rest = copy;

	snprintf(copy, sizeof(copy), "%s", path);
	while (top != NULL && rest != NULL) {
		char *key = strsep(&rest, ".");
		char *list = strstr(key, "[]");

		if (list != NULL)
			*list = '\0';
		top = mr_yaml_find(top, key);
		if (top != NULL && list != NULL)
			top = top->child;
	}
	return top;
}

static void has_bounds_in_line(const char *text, uint32_t line, const struct mr_schema_row *r)
{
	char want[96];
	char have[256];
	size_t n;

	while (--line > 0)
		text = strchr(text, '\n') + 1;
	n = strcspn(text, "\n");
	assert_true(n < sizeof(have));
	memcpy(have, text, n);
	have[n] = '\0';
	snprintf(want, sizeof(want), "%llu to %llu%s%s", (unsigned long long)r->min,
		(unsigned long long)r->max, *r->unit != '\0' ? " " : "", r->unit);
	if (strstr(have, want) == NULL)
		fail_msg("the manual's line for %s has not '%s': %s", r->path, want, have);
}

static void manual_is_complete(const struct mr_schema *s)
{
	size_t bytes;
	char *text = read_manual(s, &bytes);
	struct mr_yaml_node *top;
	const struct mr_schema_row *r;

	memset(&problems, 0, sizeof(problems));
	assert_int_equal(mr_yaml_parse(text, bytes, &top, &problems), 0);
	for (uint32_t i = 0; (r = mr_schema_at(s, i)) != NULL; i++) {
		const struct mr_yaml_node *n = manual_node(top, r->path);

		if (n == NULL)
			fail_msg("the manual does not have %s", r->path);
		if (r->def != NULL && *r->def != '\0')
			assert_string_equal(n->text, r->def);
		if (r->type == MR_SCHEMA_NUMBER || r->type == MR_SCHEMA_CORE)
			has_bounds_in_line(text, n->line, r);
	}
	mr_yaml_free(top);
	free(text);
}

static void the_manuals_have_every_key_with_its_default(void **state)
{
	(void)state;
	manual_is_complete(&mr_schema_run);
	manual_is_complete(&mr_schema_gen);
}

/* The text with the first `was` in it replaced. */
static void parse_changed(const char *text, const char *was, const char *is, struct mr_config *now)
{
	const char *at = strstr(text, was);
	char other[2048];

	assert_non_null(at);
	assert_true(strlen(text) + strlen(is) < sizeof(other));
	snprintf(other, sizeof(other), "%.*s%s%s", (int)(at - text), text, is, at + strlen(was));
	assert_int_equal(parse(other, now), 0);
}

/* What is there instead, and the key that is named; none where it may change. */
static void every_change_that_has_to_wait_is_named_at_its_line(void **state)
{
	static const char text[] = "devices:\n  - {name: g0, device: sim, region: 64MiB}\n"
				   "ports:\n  - {name: p0, device: net_null0}\n"
				   "lanes:\n  - name: l0\n    rx: {port: p0, queue: 0}\n"
				   "    tx: [{port: p0, queue: 0}]\n    core: any\n    device: g0\n"
				   "    path: [direct]\n    batch: {packets: 64}\n"
				   "    stages: [{use: drop, params: {reason: policy}}]\n"
				   "    match: {vlan: 5}\n"
				   "eal: {args: [-v]}\nlog: {level: info}\n";
	static const struct {
		const char *was, *is, *key;
		uint32_t line;
	} change[] = {
		{"any", "3", "lanes[0].core", 9},
		{"region: 64MiB", "region: 1GiB", "devices[0].region", 2},
		{"net_null0", "net_null7", "ports[0].device", 4},
		{"rx: {port: p0, queue: 0", "rx: {port: p0, queue: 1", "lanes[0].rx.queue", 7},
		{"tx: [{port: p0, queue: 0", "tx: [{port: p0, queue: 2", "lanes[0].tx[0].queue", 8},
		{"tx: [{port: p0, queue: 0}", "tx: [{port: p0, queue: 0}, {port: p0, queue: 1}",
			"lanes[0].tx", 8},
		{"direct", "pinned", "lanes[0].path", 11},
		{"direct", "direct, pinned", "lanes[0].path", 11},
		{"packets: 64", "packets: 32", "lanes[0].batch.packets", 12},
		{"batch: {packets: 64}", "slots: 64", NULL, 0}, /* both are the defaults */
		{"use: drop", "use: l2swap", "lanes[0].stages[0].use", 13},
		/* Rules of a NIC are made one by one, so a frame would meet half of a change. */
		{"vlan: 5", "vlan: 6", "lanes[0].match", 14},
		{"vlan: 5", "src_port: 5", "lanes[0].match", 14},
		{"vlan: 5", "vlan: 5, src_port: 5", "lanes[0].match", 14},
		{"match: {vlan: 5}", "slots: 64", "lanes[0].match", 6},
		{"-v", "-w", "eal.args", 15},
		{"eal: {args: [-v]}", "name: x", "name", 15},
	};
	static struct mr_config_changes changes;
	struct mr_config before, now;

	(void)state;
	assert_int_equal(parse(text, &before), 0);
	for (size_t i = 0; i < MR_ARRAY_LEN(change); i++) {
		parse_changed(text, change[i].was, change[i].is, &now);
		if (mr_config_compare(&before, &now, &changes, &problems) !=
				(change[i].key != NULL ? -EINVAL : 0) ||
			changes.count != 0)
			fail_msg("row %zu: %u problems, %u changes", i, problems.count,
				changes.count);
		if (change[i].key != NULL) {
			assert_string_equal(problems.p[0].key, change[i].key);
			assert_int_equal(problems.p[0].line, change[i].line);
		}
		mr_config_free(&now);
	}
	mr_config_free(&before);
}

static void changes_that_need_not_wait_are_told_with_what_was_and_is(void **state)
{
	static const char text[] = "devices: [{name: g0, device: sim}]\n"
				   "ports: [{name: p0, device: net_null0, steering: software}]\n"
				   "lanes:\n"
				   "  - name: l0\n"
				   "    rx: {port: p0, queue: 0}\n"
				   "    tx: [{port: p0, queue: 0}]\n"
				   "    core: any\n"
				   "    device: g0\n"
				   "    path: [direct]\n"
				   "    batch: {timeout_us: 30}\n"
				   "    tx_timeout_us: 0\n"
				   "    stages: [{use: drop, params: {reason: policy}}]\n"
				   "    match: {vlan: 5, src_port: 7}\n"
				   "stop: {drain_ms: 5}\n"
				   "kernel: {stall_ms: 900, driver_ms: 8}\nlog: {level: info}\n";
	static const struct {
		const char *was, *is, *key, *before, *now; /* key NULL: it is refused */
	} change[] = {
		{"timeout_us: 30", "timeout_us: 1000000", "lanes[0].batch.timeout_us", "30",
			"1000000"},
		{"tx_timeout_us: 0", "tx_timeout_us: 7", "lanes[0].tx_timeout_us", "0", "7"},
		{"drain_ms: 5", "drain_ms: 6", "stop.drain_ms", "5", "6"},
		{"drain_ms: 5", "drain_ms: 500", "stop.drain_ms", "5", "500"},
		{"stall_ms: 900, ", "", "kernel.stall_ms", "900", "0"},
		{"driver_ms: 8", "driver_ms: 0", "kernel.driver_ms", "8", "0"},
		{"info", "debug", "log.level", "info", "debug"},
		{"policy", "runt", "lanes[0].stages[0].params", "reason=policy", "reason=runt"},
		{", params: {reason: policy}", "", "lanes[0].stages[0].params", "reason=policy",
			""},
		{"vlan: 5", "vlan: 6", "lanes[0].match", "vlan=5 src_port=7", "vlan=6 src_port=7"},
		/* No stage comes or goes. */
		{"{vlan: 5, src_port: 7}", "{}", NULL, NULL, NULL},
		{", steering: software", "", NULL, NULL, NULL},
	};
	static struct mr_config_changes changes;
	struct mr_config before, now;

	(void)state;
	assert_int_equal(parse(text, &before), 0);
	for (size_t i = 0; i < MR_ARRAY_LEN(change); i++) {
		parse_changed(text, change[i].was, change[i].is, &now);
		if (mr_config_compare(&before, &now, &changes, &problems) !=
			(change[i].key != NULL ? 0 : -EINVAL))
			fail_msg("row %zu: %u problems", i, problems.count);
		assert_int_equal(changes.count, change[i].key != NULL);
		if (change[i].key != NULL) {
			assert_string_equal(changes.c[0].key, change[i].key);
			assert_string_equal(changes.c[0].before, change[i].before);
			assert_string_equal(changes.c[0].now, change[i].now);
		}
		mr_config_free(&now);
	}
	mr_config_free(&before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_those_of_the_list),
		cmocka_unit_test(every_key_reaches_its_member),
		cmocka_unit_test(lines_are_those_of_the_key_or_its_nearest_parent),
		cmocka_unit_test(empty_text_is_refused),
		cmocka_unit_test(hostile_sizes_are_bounded),
		cmocka_unit_test(more_problems_than_are_kept_are_counted),
		cmocka_unit_test(problems_are_one_printable_line),
		cmocka_unit_test(files_that_cannot_be_read_say_why),
		cmocka_unit_test(files_without_end_or_content_are_refused),
		cmocka_unit_test(free_accepts_zeroed_and_half_filled),
		cmocka_unit_test(rows_are_sound),
		cmocka_unit_test(every_change_that_has_to_wait_is_named_at_its_line),
		cmocka_unit_test(changes_that_need_not_wait_are_told_with_what_was_and_is),
		cmocka_unit_test(the_manuals_have_every_key_with_its_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
