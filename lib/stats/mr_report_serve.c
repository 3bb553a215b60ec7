/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_report_shape.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_telemetry.h>

/*
 * DPDK hands its callbacks no context and cannot unregister them, so the source
 * is the one state of the process that they share, behind a lock.
 */
static struct {
	pthread_mutex_t lock;
	bool registered;
	bool serving;
	uint64_t since_ns;
	char instance[MR_NAME_MAX];
	struct mr_report_source src;
	char (*names)[MR_NAME_MAX]; /* of lanes, then ports, then devices */
} served = {.lock = PTHREAD_MUTEX_INITIALIZER};

/*
 * add_string writes any string as ASCII with JSON escapes, in pieces: KEY,
 * KEY_1, ... A reader joins them and undoes the escapes.
 */
static int add_string(struct rte_tel_data *d, const char *key, const char *text)
{
	json_t *s = mr_report_string(text);
	char *quoted = json_dumps(s, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	int rc = quoted == NULL ? -ENOMEM : 0;

	json_decref(s);
	if (rc == 0) {
		size_t left = strlen(quoted) - 2;
		const char *at = quoted + 1;

		for (unsigned int n = 0; rc == 0 && (n == 0 || left > 0); n++) {
			size_t take = left < MR_REPORT_CHUNK ? left : MR_REPORT_CHUNK;
			char piece[MR_REPORT_CHUNK + 1], name[64];

			memcpy(piece, at, take);
			piece[take] = '\0';
			snprintf(name, sizeof(name), n == 0 ? "%s" : "%s_%u", key, n);
			rc = rte_tel_data_add_dict_string(d, name, piece);
			at += take;
			left -= take;
		}
	}
	free(quoted);
	return rc;
}

static int add_number(struct rte_tel_data *d, const char *key, uint64_t v)
{
	return rte_tel_data_add_dict_u64(d, key, v);
}

static int add_names(struct rte_tel_data *d, uint32_t first, uint32_t count)
{
	int rc = rte_tel_data_start_dict(d);

	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		char key[16];

		snprintf(key, sizeof(key), "%u", i);
		rc = add_string(d, key, served.names[first + i]);
	}
	return rc;
}

/* Which of `count` names from `first` on is it; count when none. */
static uint32_t index_of(uint32_t first, uint32_t count, const char *name)
{
	uint32_t i = 0;

	while (i < count && strcmp(served.names[first + i], name) != 0)
		i++;
	return i;
}

/* "NAME,I" into both; false when there is no number behind a comma. */
static bool split_params(const char *params, char name[MR_NAME_MAX], uint32_t *ret_i)
{
	const char *comma = strrchr(params, ',');
	char *end;
	unsigned long i;

	if (comma == NULL || (size_t)(comma - params) >= MR_NAME_MAX)
		return false;
	if (comma[1] < '0' || comma[1] > '9')
		return false;
	errno = 0;
	i = strtoul(comma + 1, &end, 10);
	if (errno != 0 || *end != '\0' || i > UINT32_MAX)
		return false;
	memcpy(name, params, (size_t)(comma - params));
	name[comma - params] = '\0';
	*ret_i = (uint32_t)i;
	return true;
}

static bool read_lane(const char *name, struct mr_report_lane *ret_lane)
{
	uint32_t i = index_of(0, served.src.lanes, name);

	if (i == served.src.lanes)
		return false;
	memset(ret_lane, 0, sizeof(*ret_lane));
	served.src.lane(served.src.ctx, i, ret_lane);
	return true;
}

static int answer_instance(const char *params, struct rte_tel_data *d)
{
	int rc = rte_tel_data_start_dict(d);

	(void)params;
	rc = rc != 0 ? rc : add_string(d, "name", served.instance);
	rc = rc != 0 ? rc : add_string(d, "version", MR_VERSION);
	rc = rc != 0 ? rc : add_number(d, "pid", (uint64_t)getpid());
	rc = rc != 0 ? rc : add_number(d, "uptime_ns", mr_clock_ns() - served.since_ns);
	rc = rc != 0 ? rc : add_number(d, "lanes", served.src.lanes);
	rc = rc != 0 ? rc : add_number(d, "ports", served.src.ports);
	return rc != 0 ? rc : add_number(d, "devices", served.src.devices);
}

static int answer_lanes(const char *params, struct rte_tel_data *d)
{
	(void)params;
	return add_names(d, 0, served.src.lanes);
}

static int answer_lane(const char *params, struct rte_tel_data *d)
{
	struct mr_report_lane lane;
	int rc = rte_tel_data_start_dict(d);

	if (!read_lane(params, &lane))
		return -ENOENT;
	rc = rc != 0 ? rc : add_string(d, "name", lane.name);
	rc = rc != 0 ? rc : add_string(d, "state", lane.state);
	rc = rc != 0 ? rc : add_string(d, "rx_path", lane.rx_path);
	rc = rc != 0 ? rc : add_string(d, "tx_path", lane.tx_path);
	rc = rc != 0 ? rc : add_string(d, "path_verdict", lane.path_verdict);
	rc = rc != 0 ? rc : add_string(d, "guard", lane.guard);
	rc = rc != 0 ? rc : add_string(d, "guard_by", lane.guard_by);
	rc = rc != 0 ? rc : add_number(d, "evidence", lane.evidence_count);
	rc = rc != 0 ? rc : add_number(d, "stages", lane.stages_count);
	rc = rc != 0 ? rc : add_number(d, "in_flight", lane.pub.in_flight);
	rc = rc != 0 ? rc : add_number(d, "kernel_beats", lane.kernel_beats);
	rc = rc != 0 ? rc : add_number(d, "pool_buffers", lane.pool_buffers);
	rc = rc != 0 ? rc : add_number(d, "pool_free", lane.pool_free);
	for (size_t i = 0; rc == 0 && i < MR_C_COUNT; i++)
		rc = add_number(d, mr_counter_descs[i].name, lane.pub.counters.c[i]);
	return rc;
}

static int answer_latency(const char *params, struct rte_tel_data *d)
{
	struct mr_report_lane lane;
	struct mr_report_latency latency;
	int rc = rte_tel_data_start_dict(d);

	if (!read_lane(params, &lane))
		return -ENOENT;
	mr_report_latency_read(&lane.pub.latency, &latency);
	rc = rc != 0 ? rc : add_string(d, "name", lane.name);
	rc = rc != 0 ? rc : add_number(d, "count", latency.count);
	rc = rc != 0 ? rc : add_number(d, "sum_ns", latency.sum_ns);
	rc = rc != 0 ? rc : add_number(d, "p50_ns", latency.p50_ns);
	rc = rc != 0 ? rc : add_number(d, "p99_ns", latency.p99_ns);
	rc = rc != 0 ? rc : add_number(d, "p999_ns", latency.p999_ns);
	return rc != 0 ? rc : add_number(d, "max_ns", latency.max_ns);
}

/* A stage's counters are named by stages and plug-ins: they get a prefix. */
static int answer_stages(const char *params, struct rte_tel_data *d)
{
	struct mr_report_lane lane;
	char name[MR_NAME_MAX];
	uint32_t i;
	int rc = rte_tel_data_start_dict(d);

	if (!split_params(params, name, &i) || !read_lane(name, &lane) || i >= lane.stages_count ||
		i >= MR_CHAIN_MAX)
		return -ENOENT;
	rc = rc != 0 ? rc : add_string(d, "name", lane.name);
	rc = rc != 0 ? rc : add_number(d, "index", i);
	rc = rc != 0 ? rc : add_string(d, "stage", lane.stages[i].name);
	for (uint32_t n = 0; rc == 0 && n < lane.stages[i].counters_count; n++) {
		char key[RTE_TEL_MAX_STRING_LEN];

		snprintf(key, sizeof(key), "counters/%s", lane.stages[i].counters[n].name);
		rc = add_number(d, key, lane.stages[i].counters[n].value);
	}
	return rc;
}

static int answer_evidence(const char *params, struct rte_tel_data *d)
{
	struct mr_report_lane lane;
	char name[MR_NAME_MAX];
	uint32_t i;
	int rc = rte_tel_data_start_dict(d);

	if (!split_params(params, name, &i) || !read_lane(name, &lane) ||
		i >= lane.evidence_count || i >= MR_REPORT_EVIDENCE_MAX)
		return -ENOENT;
	rc = rc != 0 ? rc : add_string(d, "name", lane.name);
	rc = rc != 0 ? rc : add_number(d, "index", i);
	rc = rc != 0 ? rc : add_string(d, "check", lane.evidence[i].check);
	rc = rc != 0 ? rc : add_string(d, "verdict", lane.evidence[i].verdict);
	return rc != 0 ? rc : add_string(d, "value", lane.evidence[i].value);
}

static int answer_ports(const char *params, struct rte_tel_data *d)
{
	(void)params;
	return add_names(d, served.src.lanes, served.src.ports);
}

/* A port that cannot count misses has no key rx_missed. */
static int answer_port(const char *params, struct rte_tel_data *d)
{
	uint32_t i = index_of(served.src.lanes, served.src.ports, params);
	struct mr_report_port port = {0};
	int rc = rte_tel_data_start_dict(d);

	if (i == served.src.ports)
		return -ENOENT;
	served.src.port(served.src.ctx, i, &port);
	rc = rc != 0 ? rc : add_string(d, "name", port.name);
	rc = rc != 0 ? rc : add_string(d, "driver", port.driver);
	rc = rc != 0 ? rc : add_number(d, "link_up", port.link_up);
	if (port.has_missed)
		rc = rc != 0 ? rc : add_number(d, "rx_missed", port.rx_missed);
	rc = rc != 0 ? rc : add_number(d, "rx_errors", port.rx_errors);
	rc = rc != 0 ? rc : add_number(d, "rx_nombuf", port.rx_nombuf);
	return rc != 0 ? rc : add_number(d, "tx_errors", port.tx_errors);
}

static int answer_devices(const char *params, struct rte_tel_data *d)
{
	(void)params;
	return add_names(d, served.src.lanes + served.src.ports, served.src.devices);
}

static int answer_device(const char *params, struct rte_tel_data *d)
{
	uint32_t i = index_of(served.src.lanes + served.src.ports, served.src.devices, params);
	struct mr_report_device device = {0};
	int rc = rte_tel_data_start_dict(d);

	if (i == served.src.devices)
		return -ENOENT;
	served.src.device(served.src.ctx, i, &device);
	rc = rc != 0 ? rc : add_string(d, "name", device.name);
	rc = rc != 0 ? rc : add_string(d, "provider", device.provider);
	return rc != 0 ? rc : add_string(d, "health", device.health);
}

static int answer_reload(const char *params, struct rte_tel_data *d)
{
	uint64_t ticket = 0;
	bool accepted = served.src.reload != NULL && served.src.reload(served.src.ctx, &ticket);
	int rc = rte_tel_data_start_dict(d);

	(void)params;
	rc = rc != 0 ? rc : add_number(d, "ticket", ticket);
	return rc != 0 ? rc : add_number(d, "accepted", accepted);
}

static void read_reload(struct mr_report_reload *ret_reload)
{
	memset(ret_reload, 0, sizeof(*ret_reload));
	if (served.src.reloaded != NULL)
		served.src.reloaded(served.src.ctx, ret_reload);
}

static int answer_reloaded(const char *params, struct rte_tel_data *d)
{
	struct mr_report_reload reload;
	int rc = rte_tel_data_start_dict(d);

	(void)params;
	read_reload(&reload);
	rc = rc != 0 ? rc : add_number(d, "ticket", reload.ticket);
	rc = rc != 0 ? rc : add_number(d, "pending", reload.pending);
	rc = rc != 0 ? rc : add_number(d, "refused", reload.refused);
	rc = rc != 0 ? rc : add_number(d, "failed", reload.failed);
	return rc != 0 ? rc : add_number(d, "sentences", reload.sentences_count);
}

static int answer_heard(const char *params, struct rte_tel_data *d)
{
	int rc = rte_tel_data_start_dict(d);

	if (params == NULL)
		return -EINVAL;
	if (served.src.heard != NULL)
		served.src.heard(served.src.ctx, strtoull(params, NULL, 10));
	return rc != 0 ? rc : add_string(d, "name", params);
}

static int answer_refusal(const char *params, struct rte_tel_data *d)
{
	struct mr_report_reload reload;
	char ticket[MR_NAME_MAX], now[MR_NAME_MAX];
	uint32_t i;
	int rc = rte_tel_data_start_dict(d);

	read_reload(&reload);
	snprintf(now, sizeof(now), "%llu", (unsigned long long)reload.ticket);
	if (!split_params(params, ticket, &i) || strcmp(ticket, now) != 0 ||
		i >= reload.sentences_count)
		return -ENOENT;
	rc = rc != 0 ? rc : add_string(d, "name", now);
	rc = rc != 0 ? rc : add_number(d, "index", i);
	return rc != 0 ? rc : add_string(d, "sentence", reload.sentences[i]);
}

static const struct {
	const char *cmd;
	const char *help;
	bool needs_params;
	int (*answer)(const char *params, struct rte_tel_data *d);
} commands[] = {
	{MR_REPORT_CMD_INSTANCE, "Returns the instance. No parameters", false, answer_instance},
	{MR_REPORT_CMD_LANES, "Returns the lanes' names. No parameters", false, answer_lanes},
	{MR_REPORT_CMD_LANE, "Returns a lane's state and counters. Parameters: lane", true,
		answer_lane},
	{MR_REPORT_CMD_LATENCY, "Returns a lane's latency. Parameters: lane", true, answer_latency},
	{MR_REPORT_CMD_STAGES, "Returns a stage's counters. Parameters: lane, position in chain",
		true, answer_stages},
	{MR_REPORT_CMD_EVIDENCE, "Returns a check of a lane's path. Parameters: lane, number", true,
		answer_evidence},
	{MR_REPORT_CMD_PORTS, "Returns the ports' names. No parameters", false, answer_ports},
	{MR_REPORT_CMD_PORT, "Returns a port's counters. Parameters: port", true, answer_port},
	{MR_REPORT_CMD_DEVICES, "Returns the devices' names. No parameters", false, answer_devices},
	{MR_REPORT_CMD_DEVICE, "Returns a device's health. Parameters: device", true,
		answer_device},
	{MR_REPORT_CMD_RELOAD, "Reads the configuration again. No parameters", false,
		answer_reload},
	{MR_REPORT_CMD_RELOADED, "Returns the last reload. No parameters", false, answer_reloaded},
	{MR_REPORT_CMD_HEARD, "Says that the answer was heard. Parameter: ticket", true,
		answer_heard},
	{MR_REPORT_CMD_REFUSAL, "Returns why it was refused. Parameters: ticket, number", true,
		answer_refusal},
};

/* Any code but 0, E2BIG of DPDK included, would be a reply that is not whole. */
static int on_command(const char *cmd, const char *params, struct rte_tel_data *d)
{
	int rc = -ENOENT;

	for (size_t i = 0; i < MR_ARRAY_LEN(commands); i++) {
		if (strcmp(cmd, commands[i].cmd) != 0)
			continue;
		if (commands[i].needs_params && params == NULL)
			return -EINVAL;
		pthread_mutex_lock(&served.lock);
		if (served.serving)
			rc = commands[i].answer(params, d);
		pthread_mutex_unlock(&served.lock);
	}
	return rc == 0 ? 0 : -1;
}

static int register_commands(struct mr_err *err)
{
	for (size_t i = 0; i < MR_ARRAY_LEN(commands); i++) {
		int rc = rte_telemetry_register_cmd(commands[i].cmd, on_command, commands[i].help);

		if (rc != 0)
			return mr_err_set(err, rc, "DPDK did not register telemetry command %s: %s",
				commands[i].cmd, strerror(-rc));
	}
	return 0;
}

/* The names do not change while it runs; requests are matched against them. */
static char (*collect_names(const struct mr_report_source *src))[MR_NAME_MAX]
{
	uint32_t total = src->lanes + src->ports + src->devices;
	char(*names)[MR_NAME_MAX] = calloc(total + 1, sizeof(*names));
	uint32_t n = 0;

	if (names == NULL)
		return NULL;
	for (uint32_t i = 0; i < src->lanes; i++) {
		struct mr_report_lane lane = {0};

		src->lane(src->ctx, i, &lane);
		snprintf(names[n++], MR_NAME_MAX, "%s", lane.name);
	}
	for (uint32_t i = 0; i < src->ports; i++) {
		struct mr_report_port port = {0};

		src->port(src->ctx, i, &port);
		snprintf(names[n++], MR_NAME_MAX, "%s", port.name);
	}
	for (uint32_t i = 0; i < src->devices; i++) {
		struct mr_report_device device = {0};

		src->device(src->ctx, i, &device);
		snprintf(names[n++], MR_NAME_MAX, "%s", device.name);
	}
	return names;
}

static void ignore_sigpipe(void)
{
	struct sigaction now;

	if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL) {
		now.sa_handler = SIG_IGN;
		sigaction(SIGPIPE, &now, NULL);
	}
}

int mr_report_serve(const struct mr_report_source *src, struct mr_err *err)
{
	char(*names)[MR_NAME_MAX];
	int rc = 0;

	pthread_mutex_lock(&served.lock);
	if (served.serving) {
		rc = mr_err_set(err, -EBUSY,
			"statistics of instance '%s' are served already, one per process",
			served.instance);
		goto out;
	}
	names = collect_names(src);
	if (names == NULL) {
		rc = mr_err_set(err, -ENOMEM, "no memory for the names of the statistics");
		goto out;
	}
	served.src = *src;
	snprintf(served.instance, sizeof(served.instance), "%s", src->instance);
	served.names = names;
	served.since_ns = mr_clock_ns();
	ignore_sigpipe();
	if (!served.registered)
		rc = register_commands(err);
	served.registered = true;
	served.serving = rc == 0;
	if (rc != 0) {
		free(served.names);
		served.names = NULL;
	}
out:
	pthread_mutex_unlock(&served.lock);
	return rc;
}

json_t *mr_report_now(void)
{
	json_t *report;

	pthread_mutex_lock(&served.lock);
	report = served.serving ? mr_report_json(&served.src) : NULL;
	pthread_mutex_unlock(&served.lock);
	return report;
}

static json_t *buckets_json(const struct mr_hist *h)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < MR_HIST_BUCKETS; i++) {
		uint64_t bound = mr_hist_bound(i);

		if (h->bucket[i] > 0)
			json_array_append_new(list,
				json_pack("[I, I]",
					(json_int_t)(bound < INT64_MAX ? bound : INT64_MAX),
					(json_int_t)h->bucket[i]));
	}
	return list;
}

json_t *mr_report_status(void)
{
	json_t *report = NULL, *all = json_object();

	pthread_mutex_lock(&served.lock);
	if (served.serving)
		report = mr_report_json(&served.src);
	for (uint32_t i = 0; report != NULL && i < served.src.lanes; i++) {
		struct mr_report_lane lane;

		if (read_lane(served.names[i], &lane))
			json_object_set_new(all, lane.name, buckets_json(&lane.pub.latency));
	}
	if (report != NULL) {
		json_object_set_new(report, "version", json_string(MR_VERSION));
		json_object_set_new(report, "uptime_s",
			json_real((double)(mr_clock_ns() - served.since_ns) / 1e9));
		json_object_set(report, "latency_buckets", all);
	}
	pthread_mutex_unlock(&served.lock);
	json_decref(all);
	return report;
}

void mr_report_unserve(void)
{
	pthread_mutex_lock(&served.lock);
	served.serving = false;
	free(served.names);
	served.names = NULL;
	pthread_mutex_unlock(&served.lock);
}
