/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_config - what the operator wants, as written in the configuration file.
 *
 * A struct mr_config is intent only: nothing in it was computed and nothing of
 * the machine was looked at. Every key has one row in mr_schema.def, which is
 * the only list of keys (type, unit, bounds, default, help).
 *
 *     file ─ mr_config_load ─► struct mr_config ─ mr_plan_build ─► struct mr_plan
 *
 * Thread   the control thread.
 * Owner    the caller frees with mr_config_free; every pointer inside belongs
 *          to the structure.
 * Errors   all of a run are reported, not the first only: struct mr_problem
 *          names file, line, key, what is wrong and what to do.
 */
#ifndef MR_CONFIG_H
#define MR_CONFIG_H

#include "mr_err.h"
#include "mr_plugins.h"
#include "mr_ring_abi.h"

#include <stdbool.h>

#define MR_DEVICES_MAX 8u
#define MR_PORTS_MAX 32u
#define MR_LANES_MAX 64u

enum mr_path {
	MR_PATH_DIRECT, /* GPU memory */
	MR_PATH_PINNED, /* host memory that the device maps */
	MR_PATH_STAGED, /* host memory, explicit copies */
	MR_PATH_COUNT,
};

enum mr_overload {
	MR_OVERLOAD_BLOCK, /* stop polling; the NIC counts the loss */
	MR_OVERLOAD_SHED,  /* receive, free and count */
};

/* Who picks the frames that a lane's match names. */
enum mr_steering {
	MR_STEERING_NIC,      /* rules of the port's driver (rte_flow) */
	MR_STEERING_SOFTWARE, /* stage match, in front of the lane's own */
};

enum mr_hugepages {
	MR_HUGEPAGES_AUTO, /* use them if the machine has free ones */
	MR_HUGEPAGES_OFF,
};

/* Frames out of a port and in again, before lanes run. */
enum mr_readback {
	MR_READBACK_AUTO, /* on ports that give back what is sent without anybody seeing it */
	MR_READBACK_OFF,
	MR_READBACK_PORT, /* on every port: something behind it sends frames back */
};

/* What a path that is not, or no longer, what it was asked to be does to the run. */
enum mr_alarm {
	MR_ALARM_AUTO, /* stop for lanes that are direct, else go on */
	MR_ALARM_STOP,
	MR_ALARM_GO_ON,
};

/* One sentence about one place; line 0 where the file has none. */
struct mr_problem {
	uint32_t line;
	char key[128]; /* path of the key, as in lanes[0].batch.packets */
	char message[512];
	char hint[512];
};

#define MR_PROBLEMS_MAX 64u

struct mr_problems {
	char file[4096]; /* PATH_MAX */
	uint32_t count;  /* may exceed MR_PROBLEMS_MAX; the rest was not kept */
	struct mr_problem p[MR_PROBLEMS_MAX];
};

struct mr_config_device {
	uint32_t line;
	char *name;
	char *device;          /* "sim,seed=7,fault=alloc@3" or "0000:3b:00.0" */
	uint64_t region_bytes; /* packet memory of each kind that lanes use */
};

struct mr_config_port {
	uint32_t line;
	char *name;
	char *device; /* DPDK vdev with arguments, PCI address, or kernel:IFNAME */
	uint32_t mtu; /* bytes of payload, Ethernet header and tags not counted */
	uint32_t rx_ring;
	uint32_t tx_ring;
	enum mr_steering steering;
	uint32_t
		split_header_bytes; /* of each frame in a buffer of its own; 0: frames stay whole */
};

struct mr_config_queue {
	char *port;
	uint32_t queue;
};

struct mr_config_param {
	uint32_t line;
	char *key;
	char *value;  /* a list has commas between its values */
	bool is_list; /* written as one */
};

struct mr_config_stage {
	uint32_t line;
	char *use;
	struct mr_config_param *params;
	uint32_t params_count;
};

struct mr_config_lane {
	uint32_t line;
	char *name;
	struct mr_config_queue rx;
	struct mr_config_queue *tx; /* owned by this lane alone; verdicts index it */
	uint32_t tx_count;
	int32_t core; /* -1: any */
	char *device;
	enum mr_path path[MR_PATH_COUNT]; /* order of preference */
	uint32_t path_count;
	enum mr_path rx_path[MR_PATH_COUNT]; /* 0 entries: as path */
	uint32_t rx_path_count;
	enum mr_path tx_path[MR_PATH_COUNT];
	uint32_t tx_path_count;
	uint32_t batch_packets;
	uint32_t batch_timeout_us;
	uint32_t slots;
	uint32_t workers;
	uint32_t buffers; /* 0: as many as the plan computes */
	enum mr_overload overload;
	uint32_t tick_us;
	uint32_t tx_timeout_us;        /* 0: a packet waits for its port for ever */
	struct mr_config_param *match; /* fields of stage match; none: every frame */
	uint32_t match_count;
	struct mr_config_stage *stages;
	uint32_t stages_count;
};

struct mr_config {
	char *name; /* NULL: the file's stem */
	enum mr_hugepages hugepages;
	char **eal_args;
	uint32_t eal_args_count;
	char **plugins; /* paths */
	uint32_t plugins_count;
	const struct mr_plugins *loaded; /* those, once they are; the caller's. NULL: none */
	struct mr_config_device *devices;
	uint32_t devices_count;
	struct mr_config_port *ports;
	uint32_t ports_count;
	struct mr_config_lane *lanes;
	uint32_t lanes_count;
	uint32_t drain_ms;        /* longest time a stop waits for packets in flight */
	uint32_t host_timeout_ms; /* kernels leave when the host is silent; 0: never */
	uint32_t backoff_ns;      /* longest pause of a kernel between two polls */
	uint32_t stall_ms;        /* what stands still for so long has failed; 0: by device */
	uint32_t driver_ms;       /* longest driver call at the start or the end; 0: no limit */
	enum mr_readback readback;
	enum mr_alarm alarm;
	char *http_listen, *http_users; /* NULL or "": none */
	uint32_t log_level;             /* 0 error, 1 warning, 2 info, 3 debug */
	/* Key path to line, for errors found later (by the plan). */
	struct mr_config_lines *lines;
};

/*
 * mr_config_load reads, checks and fills *ret_cfg. Returns 0, -errno where the
 * file cannot be read, or -EINVAL with at least one problem; *ret_cfg is valid
 * only on 0. problems is cleared first.
 */
MR_MUST_USE int mr_config_load(
	const char *file, struct mr_config *ret_cfg, struct mr_problems *problems);

/* The same from memory; file is the name that problems carry. */
MR_MUST_USE int mr_config_parse(const char *file, const char *text, size_t bytes,
	struct mr_config *ret_cfg, struct mr_problems *problems);

/* mr_config_free accepts a zeroed and a half-filled structure. */
void mr_config_free(struct mr_config *cfg);

#define MR_CONFIG_CHANGES_MAX 64u
#define MR_CONFIG_VALUE_MAX 128u

/* A key that is not as before and may change while packets move. */
struct mr_config_change {
	char key[128]; /* path of the key, as in lanes[0].tx_timeout_us */
	char before[MR_CONFIG_VALUE_MAX], now[MR_CONFIG_VALUE_MAX]; /* one line, maybe cut short */
};

struct mr_config_changes {
	uint32_t count; /* may exceed MR_CONFIG_CHANGES_MAX; the rest was not kept */
	struct mr_config_change c[MR_CONFIG_CHANGES_MAX];
};

/*
 * mr_config_compare fills *ret_changes with the keys that are not as before and may change while
 * packets move, and adds a problem, at its line in now, for each other one. 0, or -EINVAL with
 * at least one problem.
 */
MR_MUST_USE int mr_config_compare(const struct mr_config *before, const struct mr_config *now,
	struct mr_config_changes *ret_changes, struct mr_problems *problems);

/*
 * mr_config_load_plugins loads the plug-ins that cfg names into the empty *ret_plugins, for
 * mr_plan_build to find their stages. -EINVAL with a problem for each that cannot be; the
 * caller frees *ret_plugins (mr_plugins_free) in any case, after the plans made of cfg.
 */
MR_MUST_USE int mr_config_load_plugins(
	struct mr_config *cfg, struct mr_plugins *ret_plugins, struct mr_problems *problems);

/* mr_config_same_plugins adds a problem if a file is not the one that was loaded. 0 or -EINVAL. */
MR_MUST_USE int mr_config_same_plugins(
	const struct mr_config *cfg, const struct mr_plugins *loaded, struct mr_problems *problems);

/* mr_config_line gives the line of a key path, of its nearest parent, or 0. */
uint32_t mr_config_line(const struct mr_config *cfg, const char *key);

/* mr_problem_add appends a problem; key and message are printf-formatted by the caller. */
void mr_problem_add(struct mr_problems *ps, uint32_t line, const char *key, const char *hint,
	const char *fmt, ...) MR_PRINTF(5, 6);

const char *mr_path_name(enum mr_path path);
const char *mr_overload_name(enum mr_overload overload);

#endif
