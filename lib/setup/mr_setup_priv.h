/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/setup share: the running system. */
#ifndef MR_SETUP_PRIV_H
#define MR_SETUP_PRIV_H

#include "mr_gpu.h"
#include "mr_guard.h"
#include "mr_lane.h"
#include "mr_port.h"
#include "mr_probe_aside.h"
#include "mr_proof_nic.h"
#include "mr_proof_watch.h"
#include "mr_setup_reload.h"
#include "mr_staged.h"

#include <pthread.h>

#define MR_SETUP_GPU_STOP_MS 2000u /* kernels leave within; one that is well takes microseconds */
#define MR_SETUP_MAPS_MAX (MR_DEVICES_MAX * MR_PATH_COUNT * MR_PORTS_MAX)

struct rte_mempool;

struct mr_setup_device {
	struct mr_gpu *gpu;
	struct mr_gpu_region region[MR_PATH_COUNT];
	bool registered[MR_PATH_COUNT]; /* with rte_extmem_register */
	uint32_t lane[MR_LANES_MAX];    /* launch index to lane index */
	uint32_t lanes;
	uint32_t health;   /* enum mr_gpu_health; the watch writes, telemetry reads */
	bool kernel_stays; /* it did not leave when it was told to */
};

struct mr_setup_lane {
	struct mr_lane *lane;               /* cache-aligned, of its own */
	struct rte_mempool *pool, *tx_pool; /* tx: where the paths differ */
	struct rte_mempool *rest_pool;      /* of frames that the port splits */
	struct mr_staged hop; /* the way to the kernel's ring, if the lane's is another */
	struct mr_gpu_stage stages[MR_CHAIN_MAX];
	struct mr_gpu *gpu;
	uint32_t launch_index; /* among the lanes of its device */
	pthread_t thread;
	bool created, joined;
	int start_rc; /* of the thread's own set-up, mr_sync word pair with started */
	uint32_t started;
};

/* What the stages of a plan have made of their files; mr_setup_table.c. */
struct mr_setup_table {
	void *data;
	size_t bytes;
};

struct mr_setup_tables {
	struct mr_setup_table of[MR_LANES_MAX][MR_CHAIN_MAX];
	uint32_t from_files; /* how many */
};

enum mr_setup_reload_state {
	MR_SETUP_RELOAD_NONE,    /* or asked for */
	MR_SETUP_RELOAD_READING, /* a thread reads and judges the file */
	MR_SETUP_RELOAD_TAKING,  /* the kernels change over */
};

struct mr_setup_reload {
	pthread_mutex_t lock; /* of spec, allowed and answer; never held for long */
	struct mr_setup_reload_spec spec;
	bool allowed;
	struct mr_report_reload answer; /* pending from ask on */
	bool awaited;                   /* somebody has yet to hear the answer, and fetches it */
	/* The control thread's own. */
	struct mr_config *kept;           /* what the last reload put in force; NULL: none did */
	struct mr_config_changes changes; /* of the one that is being taken */
	uint32_t tables;                  /* that it read from files */
	enum mr_setup_reload_state state;
	pthread_t thread;
	struct mr_setup_reading *reading;
	uint64_t since_ns;    /* when the kernels were told */
	uint64_t answered_ns; /* when the last one ended */
};

/* Captures: who listens for those who want one, and what was copied so far. */
struct mr_setup_tap {
	int listen_fd, wake_fd; /* -1 */
	pthread_t thread;
	bool runs;
	uint32_t ending;                                    /* the control thread stores */
	uint64_t packets[MR_LANES_MAX], lost[MR_LANES_MAX]; /* the thread stores */
};

struct mr_setup_map {
	uint32_t port, device;
	enum mr_path path;
	const char *kind;
	bool attached; /* the device knows of it */
};

/* Evidence of the paths: by device and kind of memory, by port, and by lane. */
struct mr_setup_proof {
	struct mr_proof memory[MR_DEVICES_MAX][MR_PATH_COUNT];
	struct mr_proof window[MR_DEVICES_MAX][MR_PATH_COUNT];
	struct mr_proof counters[MR_DEVICES_MAX];
	struct mr_proof bar1[MR_DEVICES_MAX];
	struct mr_probe_value bar1_before[MR_DEVICES_MAX];
	struct mr_proof readback[MR_PORTS_MAX];
	/* Into whose memory test frames came. */
	bool arrived[MR_PORTS_MAX][MR_DEVICES_MAX][MR_PATH_COUNT];
	struct mr_proof attached[MR_PORTS_MAX]; /* dma-bufs that its NIC holds */
	struct mr_proof traffic[MR_PORTS_MAX];  /* what it counted of the read-back */
	struct mr_proof watch[MR_LANES_MAX];    /* written once, before alarmed */
	uint32_t alarmed[MR_LANES_MAX];         /* the watch stores, telemetry loads */
	bool told[MR_LANES_MAX];
	struct mr_proof_watch machine;
	uint64_t machine_ns; /* when it was last looked at */
};

struct mr_setup {
	const struct mr_plan *plan;
	/* The plan's, until a reload brings other ones; milliseconds. */
	uint32_t drain_ms, stall_ms, driver_ms;
	uint32_t steps_up;
	char dir[MR_REPORT_DIR_MAX]; /* EAL's runtime directory */
	int lock_fd;                 /* held while up; -1 */
	bool eal_runs;
	struct mr_setup_device devices[MR_DEVICES_MAX];
	struct mr_port ports[MR_PORTS_MAX];
	uint32_t ports_probed;
	struct mr_setup_map maps[MR_SETUP_MAPS_MAX];
	uint32_t maps_count;
	struct rte_mempool *host_pool; /* of a plan without lanes */
	struct mr_setup_proof proof;
	struct mr_probe_aside aside; /* asks NVML of the plan's GPUs */
	struct mr_guard guard;
	bool guard_off; /* by configuration */
	struct mr_setup_lane lanes[MR_LANES_MAX];
	enum mr_setup_event seen; /* what the watch found first, and its sentence */
	struct mr_err seen_err;
	uint64_t links_ns; /* when links were last looked at */
	bool served;
	bool stuck;         /* a lane's thread did not end: nothing more may be freed */
	struct mr_err left; /* why a device was left as it is; code 0: none was */
	struct mr_report_source source;
	struct mr_setup_reload reload;
	struct mr_setup_tap tap;
};

/* Fills source; mr_setup_report.c. */
void mr_setup_source_init(struct mr_setup *s);

/*
 * mr_setup_tables_build makes all of them, or adds a problem for each mistake; without cfg
 * problems have no line. -EINVAL. give puts a lane's into what the device takes, with its
 * parameters. fit adds a problem for each that may grow beyond what the device has set aside.
 */
MR_MUST_USE int mr_setup_tables_build(const struct mr_config *cfg, const struct mr_plan *plan,
	struct mr_setup_tables *ret_tables, struct mr_problems *problems);
void mr_setup_tables_free(struct mr_setup_tables *tables);
void mr_setup_tables_give(const struct mr_setup_tables *tables, const struct mr_plan *plan,
	uint32_t lane, struct mr_gpu_stage stages[MR_CHAIN_MAX]);
MR_MUST_USE int mr_setup_tables_fit(const struct mr_config *cfg, const struct mr_plan *before,
	const struct mr_plan *now, struct mr_problems *problems);

/* mr_setup_run.c: the limits of a plan that need nothing built; its lanes' are mr_setup_lane_limit.
 */
void mr_setup_take_limits(struct mr_setup *s, const struct mr_plan *plan);

/* mr_setup_log.c: DPDK's messages, as the plan has EAL take them at a start. */
void mr_setup_log_levels(const struct mr_plan *plan);

/* mr_setup_run.c: the watch, but for the sentence; returns what is the matter now. */
enum mr_setup_event mr_setup_look(struct mr_setup *s);

/*
 * mr_setup_reload.c; end refuses further ones and answers who waits for one; join waits for the
 * reading thread, not for ever: one that does not return keeps reload.reading.
 */
void mr_setup_reload_init(struct mr_setup *s);
void mr_setup_reload_fini(struct mr_setup *s);
void mr_setup_reload_answer(struct mr_setup *s, struct mr_report_reload *ret_answer);
void mr_setup_reload_end(struct mr_setup *s);
void mr_setup_reload_join(struct mr_setup *s, const uint32_t *fast);
void mr_setup_reload_heard(struct mr_setup *s, uint64_t ticket);
/* Lets who asked hear the answer before the process ends, for a short while. */
void mr_setup_reload_let_hear(struct mr_setup *s, const uint32_t *fast);

/*
 * mr_setup_tap.c: the thread that serves captures. end has it finish the one that goes on, with
 * what kernels have copied until then, and waits for it; down does so too.
 */
MR_MUST_USE int mr_setup_tap_up(struct mr_setup *s, struct mr_err *err);
void mr_setup_tap_end(struct mr_setup *s);
void mr_setup_tap_down(struct mr_setup *s);

/* Packet memory as steps of bring-up; mr_setup_memory.c. */
MR_MUST_USE int mr_setup_regions_up(struct mr_setup *s, struct mr_err *err);
void mr_setup_regions_down(struct mr_setup *s);
MR_MUST_USE int mr_setup_maps_up(struct mr_setup *s, struct mr_err *err);
void mr_setup_maps_down(struct mr_setup *s);
MR_MUST_USE int mr_setup_pools_up(struct mr_setup *s, struct mr_err *err);
void mr_setup_pools_down(struct mr_setup *s);

/* The lock on the instance's name; mr_setup_instance.c. */
MR_MUST_USE int mr_setup_instance_up(struct mr_setup *s, struct mr_err *err);
void mr_setup_instance_down(struct mr_setup *s);

/* mr_setup_check.c. name_limits appends the limits that this process was given. */
struct mr_port_spec mr_setup_port_spec(const struct mr_plan_port *p);
void mr_setup_name_limits(struct mr_err *err);

/*
 * mr_setup_proof.c: begin before memory is registered; up before a port may write to it,
 * since it writes there itself; readback while ports run and lanes do not. All refuse what
 * speaks against a path that stops on alarm.
 */
MR_MUST_USE int mr_setup_proof_begin(struct mr_setup *s, struct mr_err *err);
void mr_setup_proof_end(struct mr_setup *s);
MR_MUST_USE int mr_setup_proof_up(struct mr_setup *s, struct mr_err *err);
/* Evidence against a path is enough to stop; evidence that is missing is not. */
MR_MUST_USE int mr_setup_proof_judge(struct mr_setup *s, struct mr_err *err);
MR_MUST_USE int mr_setup_readback_up(struct mr_setup *s, struct mr_err *err);
enum mr_setup_event mr_setup_proof_watch(struct mr_setup *s, uint64_t now_ns, struct mr_err *err);
/* Whether the lane receives from the port or sends to it. */
bool mr_setup_proof_port(const struct mr_plan_lane *l, uint32_t port);
/* What the read-back of one of its ports says for this lane; *ret_value are the words. */
enum mr_check_verdict mr_setup_proof_readback(const struct mr_setup *s,
	const struct mr_plan_lane *l, uint32_t port, const char **ret_value);
/* Whether lane i's path holds; else the first kind of evidence that does not, and how. */
bool mr_setup_proof_lane(struct mr_setup *s, uint32_t i, enum mr_proof_kind *ret_why,
	enum mr_check_verdict *ret_verdict);

/* PASS where lane i's path holds and bytes were seen to go that way. */
void mr_setup_proof_tell(struct mr_setup *s, uint32_t i, struct mr_proof *ret_proof);

/* The lane's threads and arrays; mr_setup_lane.c. */
void mr_setup_lane_limit(struct mr_setup *s, uint32_t i, const struct mr_plan_lane *p);
MR_MUST_USE int mr_setup_lane_prepare(struct mr_setup *s, uint32_t i, struct mr_err *err);
void mr_setup_lane_free(struct mr_setup *s, uint32_t i);
MR_MUST_USE int mr_setup_lane_start(struct mr_setup *s, uint32_t i, struct mr_err *err);
MR_MUST_USE int mr_setup_lane_join(struct mr_setup *s, uint32_t i, struct mr_err *err);

/* Whether the lane has a ring of its own, and a hop between it and the kernel's. */
static inline bool mr_setup_hops(const struct mr_plan_lane *l)
{
	return mr_plan_lane_moves(l) || mr_plan_lane_copies(l);
}

static inline struct mr_gpu_region *mr_setup_region(struct mr_setup *s, uint32_t lane)
{
	const struct mr_plan_lane *l = &s->plan->lanes[lane];

	return &s->devices[l->device].region[l->rx_path];
}

static inline struct mr_gpu_region *mr_setup_tx_region(struct mr_setup *s, uint32_t lane)
{
	const struct mr_plan_lane *l = &s->plan->lanes[lane];

	return &s->devices[l->device].region[l->tx_path];
}

#endif
