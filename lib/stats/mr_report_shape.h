/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_report_shape - what the serving and the fetching side share.
 *
 *     server: source ─► structures ─► telemetry dicts
 *     client:           structures ◄─ telemetry dicts
 *     both:             structures ─► JSON
 *
 * Both sides build the JSON with the functions below from the same structures,
 * so a fetched report cannot differ in shape from the one of `run --json`. The
 * keys of the dicts are the members' names and the counters' names.
 *
 * Thread   any; nothing here keeps state.
 */
#ifndef MR_REPORT_SHAPE_H
#define MR_REPORT_SHAPE_H

#include "mr_report.h"

#define MR_REPORT_CMD_INSTANCE "/millrace/instance"
#define MR_REPORT_CMD_LANES "/millrace/lanes"
#define MR_REPORT_CMD_LANE "/millrace/lane"
#define MR_REPORT_CMD_LATENCY "/millrace/latency"
#define MR_REPORT_CMD_STAGES "/millrace/stages"
#define MR_REPORT_CMD_EVIDENCE "/millrace/evidence"
#define MR_REPORT_CMD_PORTS "/millrace/ports"
#define MR_REPORT_CMD_PORT "/millrace/port"
#define MR_REPORT_CMD_DEVICES "/millrace/devices"
#define MR_REPORT_CMD_DEVICE "/millrace/device"
#define MR_REPORT_CMD_RELOAD "/millrace/reload"
#define MR_REPORT_CMD_RELOADED "/millrace/reloaded"
#define MR_REPORT_CMD_REFUSAL "/millrace/refusal"
#define MR_REPORT_CMD_HEARD "/millrace/heard"

#define MR_REPORT_PREFIX "millrace-" /* of DPDK's file prefix */
#define MR_REPORT_CHUNK 127u         /* characters of a string in a reply */

/* The part of a histogram that is reported. */
struct mr_report_latency {
	uint64_t count; /* packets */
	uint64_t sum_ns, p50_ns, p99_ns, p999_ns, max_ns;
};

void mr_report_latency_read(const struct mr_hist *h, struct mr_report_latency *ret_latency);

/* One object each; a new reference, or NULL when memory is short. */
json_t *mr_report_lane_json(
	const struct mr_report_lane *lane, const struct mr_report_latency *latency);
json_t *mr_report_port_json(const struct mr_report_port *port);
json_t *mr_report_device_json(const struct mr_report_device *device);

/*
 * mr_report_assemble puts the whole together and takes the three references,
 * also when it fails.
 */
json_t *mr_report_assemble(
	const char *instance, json_t *lanes, json_t *ports, json_t *devices, bool balanced);

/* mr_report_string is json_string() for bytes that may not be UTF-8. */
json_t *mr_report_string(const char *text);

#endif
