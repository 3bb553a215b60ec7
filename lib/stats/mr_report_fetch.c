/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_report_shape.h"
#include "mr_report_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RELOAD_LOOK_NS 50000000
#define OBJECTS_MAX 256u /* entries of a telemetry dict: lanes, ports, devices each */

/* A reply being taken apart: the first thing that is missing ends it with words. */
struct reply {
	struct mr_report_client *client;
	const char *cmd;
	json_t *dict; /* owned */
	json_t *keep; /* array that owns the strings handed out */
	int rc;
	struct mr_err *err;
};

static void lacks(struct reply *r, const char *key)
{
	if (r->rc == 0)
		r->rc = mr_err_set(r->err, -EPROTO,
			"instance '%s' answered %s without '%s'; it runs version %s, this is %s",
			r->client->name, r->cmd, key, r->client->version, MR_VERSION);
}

static uint64_t take_number(struct reply *r, const char *key)
{
	const json_t *v = json_object_get(r->dict, key);

	if (!json_is_integer(v) || json_integer_value(v) < 0) {
		lacks(r, key);
		return 0;
	}
	return (uint64_t)json_integer_value(v);
}

static uint32_t take_count(struct reply *r, const char *key, uint32_t max)
{
	uint64_t n = take_number(r, key);

	if (n > max)
		lacks(r, key);
	return n > max ? 0 : (uint32_t)n;
}

/* Joins KEY, KEY_1, ... and undoes the escapes; valid as long as r->keep. */
static const char *take_string(struct reply *r, const char *key)
{
	char text[MR_REPORT_REPLY_MAX];
	size_t used = 1;
	json_t *s;

	text[0] = '"';
	for (unsigned int n = 0;; n++) {
		char name[64];
		const char *piece;

		snprintf(name, sizeof(name), n == 0 ? "%s" : "%s_%u", key, n);
		piece = json_string_value(json_object_get(r->dict, name));
		if (piece == NULL && n > 0)
			break;
		if (piece == NULL || used + strlen(piece) + 1 > sizeof(text)) {
			lacks(r, key);
			return "";
		}
		memcpy(text + used, piece, strlen(piece));
		used += strlen(piece);
	}
	text[used++] = '"';
	s = json_loadb(text, used, JSON_DECODE_ANY, NULL);
	if (!json_is_string(s) || json_array_append_new(r->keep, s) != 0) {
		if (!json_is_string(s))
			json_decref(s);
		lacks(r, key);
		return "";
	}
	return json_string_value(s);
}

static void copy_string(struct reply *r, const char *key, char *to, size_t bytes)
{
	const char *text = take_string(r, key);

	if (strlen(text) >= bytes)
		lacks(r, key);
	snprintf(to, bytes, "%s", text);
}

/* A reply to another client's argument is asked for again, see mr_report.h. */
static bool is_about(struct reply *r, const char *name, int64_t index)
{
	int rc = r->rc;
	bool same;

	if (name == NULL)
		return true;
	same = strcmp(take_string(r, "name"), name) == 0 && r->rc == 0;
	if (index >= 0)
		same &= json_integer_value(json_object_get(r->dict, "index")) == index;
	r->rc = rc;
	return same;
}

/* Asks for cmd[,name[,index]] until the reply is about just that; r->rc tells. */
static void ask(struct reply *r, const char *cmd, const char *name, int64_t index)
{
	char request[128];

	if (r->rc != 0)
		return;
	r->cmd = cmd;
	if (name == NULL)
		snprintf(request, sizeof(request), "%s", cmd);
	else if (index < 0)
		snprintf(request, sizeof(request), "%s,%s", cmd, name);
	else
		snprintf(request, sizeof(request), "%s,%s,%d", cmd, name, (int)index);
	for (int tries = 0; tries < 5; tries++) {
		json_decref(r->dict);
		r->dict = NULL;
		r->rc = mr_report_client_ask(r->client, request, cmd, &r->dict, r->err);
		if (r->rc != 0)
			return;
		if (json_is_object(r->dict) && is_about(r, name, index))
			return;
	}
	r->rc = mr_err_set(r->err, -ECONNRESET,
		"instance '%s' does not answer %s: it is starting, stopping or of another version",
		r->client->name, request);
}

static void fetch_evidence(struct reply *r, struct mr_report_lane *lane, uint32_t i)
{
	struct mr_report_evidence *e = &lane->evidence[i];

	ask(r, MR_REPORT_CMD_EVIDENCE, lane->name, i);
	copy_string(r, "check", e->check, sizeof(e->check));
	copy_string(r, "verdict", e->verdict, sizeof(e->verdict));
	copy_string(r, "value", e->value, sizeof(e->value));
}

/* The only keys of a report that the server chooses. */
static bool is_name(const char *key)
{
	return key[0] != '\0' && key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

static void fetch_stage(struct reply *r, struct mr_report_lane *lane, uint32_t i)
{
	static const char prefix[] = "counters/";
	struct mr_report_stage *stage = &lane->stages[i];
	const char *key;
	json_t *value;

	ask(r, MR_REPORT_CMD_STAGES, lane->name, i);
	copy_string(r, "stage", stage->name, sizeof(stage->name));
	if (r->rc != 0)
		return;
	/* The keys live in the dict. */
	json_array_append(r->keep, r->dict);
	json_object_foreach(r->dict, key, value) {
		if (strncmp(key, prefix, sizeof(prefix) - 1) != 0)
			continue;
		if (stage->counters_count == MR_REPORT_COUNTERS_MAX ||
			!is_name(key + sizeof(prefix) - 1)) {
			lacks(r, "proper counters");
			return;
		}
		stage->counters[stage->counters_count].name = key + sizeof(prefix) - 1;
		stage->counters[stage->counters_count++].value = take_number(r, key);
	}
}

static json_t *fetch_lane(struct reply *r, const char *name, bool *balanced)
{
	struct mr_report_lane lane = {0};
	struct mr_report_latency latency;

	ask(r, MR_REPORT_CMD_LANE, name, -1);
	copy_string(r, "name", lane.name, sizeof(lane.name));
	lane.state = take_string(r, "state");
	lane.rx_path = take_string(r, "rx_path");
	lane.tx_path = take_string(r, "tx_path");
	lane.path_verdict = take_string(r, "path_verdict");
	lane.guard = take_string(r, "guard");
	lane.guard_by = take_string(r, "guard_by");
	lane.evidence_count = take_count(r, "evidence", MR_REPORT_EVIDENCE_MAX);
	lane.stages_count = take_count(r, "stages", MR_CHAIN_MAX);
	lane.pub.in_flight = take_number(r, "in_flight");
	lane.kernel_beats = take_number(r, "kernel_beats");
	lane.pool_buffers = take_count(r, "pool_buffers", UINT32_MAX);
	lane.pool_free = take_count(r, "pool_free", UINT32_MAX);
	for (size_t i = 0; i < MR_C_COUNT; i++)
		lane.pub.counters.c[i] = take_number(r, mr_counter_descs[i].name);

	ask(r, MR_REPORT_CMD_LATENCY, name, -1);
	latency.count = take_number(r, "count");
	latency.sum_ns = take_number(r, "sum_ns");
	latency.p50_ns = take_number(r, "p50_ns");
	latency.p99_ns = take_number(r, "p99_ns");
	latency.p999_ns = take_number(r, "p999_ns");
	latency.max_ns = take_number(r, "max_ns");

	for (uint32_t i = 0; i < lane.evidence_count; i++)
		fetch_evidence(r, &lane, i);
	for (uint32_t i = 0; i < lane.stages_count; i++)
		fetch_stage(r, &lane, i);
	*balanced &= mr_counters_balanced(&lane.pub.counters, lane.pub.in_flight);
	return r->rc == 0 ? mr_report_lane_json(&lane, &latency) : NULL;
}

static json_t *fetch_port(struct reply *r, const char *name, bool *balanced)
{
	struct mr_report_port port = {0};

	(void)balanced;
	ask(r, MR_REPORT_CMD_PORT, name, -1);
	copy_string(r, "name", port.name, sizeof(port.name));
	copy_string(r, "driver", port.driver, sizeof(port.driver));
	port.link_up = take_number(r, "link_up") != 0;
	port.has_missed = json_object_get(r->dict, "rx_missed") != NULL;
	if (port.has_missed)
		port.rx_missed = take_number(r, "rx_missed");
	port.rx_errors = take_number(r, "rx_errors");
	port.rx_nombuf = take_number(r, "rx_nombuf");
	port.tx_errors = take_number(r, "tx_errors");
	return r->rc == 0 ? mr_report_port_json(&port) : NULL;
}

static json_t *fetch_device(struct reply *r, const char *name, bool *balanced)
{
	struct mr_report_device device = {0};

	(void)balanced;
	ask(r, MR_REPORT_CMD_DEVICE, name, -1);
	copy_string(r, "name", device.name, sizeof(device.name));
	device.provider = take_string(r, "provider");
	device.health = take_string(r, "health");
	return r->rc == 0 ? mr_report_device_json(&device) : NULL;
}

/* One array of the report: the names of the list, then each by its own command. */
static json_t *fetch_list(struct reply *r, const char *cmd, uint32_t count,
	json_t *(*fetch_one)(struct reply *r, const char *name, bool *balanced), bool *balanced)
{
	json_t *list = json_array();
	const char **names = calloc(count + 1, sizeof(*names));

	if (names == NULL || list == NULL)
		r->rc = mr_err_set(r->err, -ENOMEM, "no memory for the report");
	ask(r, cmd, NULL, -1);
	for (uint32_t i = 0; r->rc == 0 && i < count; i++) {
		char key[16];

		snprintf(key, sizeof(key), "%u", i);
		names[i] = take_string(r, key);
		if (strlen(names[i]) >= MR_NAME_MAX)
			lacks(r, key);
	}
	for (uint32_t i = 0; r->rc == 0 && i < count; i++) {
		json_t *one = fetch_one(r, names[i], balanced);

		if (r->rc == 0 && json_array_append_new(list, one) != 0)
			r->rc = mr_err_set(r->err, -ENOMEM, "no memory for the report");
	}
	free(names);
	return list;
}

static int fetch_from(struct mr_report_client *client, json_t **ret_report, struct mr_err *err)
{
	struct reply r = {.client = client, .keep = json_array(), .err = err};
	json_t *lanes, *ports, *devices;
	uint32_t lanes_count, ports_count, devices_count;
	const char *instance;
	bool balanced = true;

	/* Its name was compared when the client was opened. */
	ask(&r, MR_REPORT_CMD_INSTANCE, NULL, -1);
	instance = take_string(&r, "name");
	lanes_count = take_count(&r, "lanes", OBJECTS_MAX);
	ports_count = take_count(&r, "ports", OBJECTS_MAX);
	devices_count = take_count(&r, "devices", OBJECTS_MAX);
	lanes = fetch_list(&r, MR_REPORT_CMD_LANES, lanes_count, fetch_lane, &balanced);
	ports = fetch_list(&r, MR_REPORT_CMD_PORTS, ports_count, fetch_port, NULL);
	devices = fetch_list(&r, MR_REPORT_CMD_DEVICES, devices_count, fetch_device, NULL);
	*ret_report = mr_report_assemble(instance, lanes, ports, devices, balanced);
	if (r.rc == 0 && *ret_report == NULL)
		r.rc = mr_err_set(err, -ENOMEM, "no memory for the report");
	if (r.rc != 0) {
		json_decref(*ret_report);
		*ret_report = NULL;
	}
	json_decref(r.dict);
	json_decref(r.keep);
	return r.rc;
}

int mr_report_fetch(const char *name, json_t **ret_report, struct mr_err *err)
{
	struct mr_report_client client;
	int rc;

	*ret_report = NULL;
	rc = mr_report_client_open(&client, name, err);
	if (rc != 0)
		return rc;
	rc = fetch_from(&client, ret_report, err);
	mr_report_client_close(&client);
	return rc;
}

/* How the reload with that ticket stands; 1: under way. */
static int look_at_reload(
	struct reply *r, uint64_t ticket, mr_report_tell *tell, void *ctx, struct mr_err *err)
{
	uint32_t sentences;
	char name[MR_NAME_MAX];
	bool refused, failed, pending;

	ask(r, MR_REPORT_CMD_RELOADED, NULL, -1);
	pending = take_number(r, "pending") != 0;
	refused = take_number(r, "refused") != 0;
	failed = take_number(r, "failed") != 0;
	sentences = take_count(r, "sentences", MR_REPORT_SENTENCES_MAX);
	if (r->rc == 0 && take_number(r, "ticket") != ticket)
		return mr_err_set(err, -EBUSY,
			"instance '%s' was reloaded again before it said what came of this",
			r->client->name);
	snprintf(name, sizeof(name), "%llu", (unsigned long long)ticket);
	if (r->rc != 0 || pending)
		return r->rc != 0 ? r->rc : 1;
	for (uint32_t i = 0; r->rc == 0 && i < sentences; i++) {
		const char *text;

		ask(r, MR_REPORT_CMD_REFUSAL, name, i);
		text = take_string(r, "sentence");
		if (r->rc == 0)
			tell(ctx, text);
	}
	if (r->rc != 0)
		return r->rc;
	/* A run that ends waits for this, and all was heard where it does not any more. */
	ask(r, MR_REPORT_CMD_HEARD, name, -1);
	r->rc = 0;
	if (!refused && !failed)
		return 0;
	if (failed)
		return mr_err_set(err, -EIO,
			"instance '%s' has the reload in force, but not with all of its workers",
			r->client->name);
	return mr_err_set(err, -EINVAL, "instance '%s' refused the reload; nothing was changed",
		r->client->name);
}

int mr_report_reload(const char *name, mr_report_tell *tell, void *ctx, struct mr_err *err)
{
	const struct timespec pause = {.tv_nsec = RELOAD_LOOK_NS};
	struct mr_report_client client;
	uint64_t ticket = 0;
	struct mr_err why = {0};
	int rc = 1;

	for (bool asked = false; rc == 1; asked = true) {
		struct reply r = {.client = &client, .keep = json_array(), .err = &why};
		bool lost;

		rc = mr_report_client_open(&client, name, &why);
		lost = rc != 0;
		if (rc == 0 && !asked) {
			ask(&r, MR_REPORT_CMD_RELOAD, NULL, -1);
			ticket = take_number(&r, "ticket");
			rc = r.rc == 0 && take_number(&r, "accepted") == 0
				? mr_err_set(&why, -EBUSY,
					  "instance '%s' is being reloaded or stops, or takes no "
					  "reload",
					  name)
				: r.rc;
		}
		if (rc == 0)
			rc = look_at_reload(&r, ticket, tell, ctx, &why);
		lost = lost || r.rc != 0;
		if (rc < 0 && lost && ticket != 0)
			rc = mr_err_set(err, rc,
				"instance '%s' took the request and ended, or does not answer, "
				"before "
				"it said what came of it; see its log: %.300s",
				name, why.msg);
		else if (rc < 0)
			rc = mr_err_set(err, rc, "%s", why.msg);
		mr_report_client_close(&client);
		json_decref(r.dict);
		json_decref(r.keep);
		if (rc == 1)
			nanosleep(&pause, NULL);
	}
	return rc;
}
