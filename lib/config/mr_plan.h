/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_plan - what the configuration becomes: everything computed, nothing done.
 *
 *     intent (mr_config) + facts (mr_host) + stages ──► plan ──► setup
 *
 * mr_plan_build is pure: no file, device or clock is touched, so `millrace
 * check` prints exactly what `millrace run` would build. Setup follows the plan
 * and computes nothing of its own.
 *
 * Buffers. A lane's pool must cover every place where its buffers can rest at
 * one time, or the receive ring runs dry while it has room:
 *
 *     rx_ring + slots x batch + sum over tx of (tx_ring + backlog of one tx_ring)
 *     + cache of the control thread + what else applies
 *
 * The open batch is one of the slots. The control thread fills the receive ring, and
 * its mempool cache keeps what it fetched too much, at most the cache's size. The
 * lane's own cache is not counted: it is empty before the lane goes without a buffer.
 * What else: with overload shed one burst that is about to be freed, with tick_us a
 * batch, and where a tx port is a net_ring, what the lanes that receive from it can
 * hold of it, with a cache that is one and a half times full for each.
 *
 * A net_ring's queues hold 1024 packets, whatever its tx_ring says.
 *
 * The plan shows that sum and refuses fewer. tests/load/load_pool.c reaches it.
 *
 * A buffer is headroom plus the longest frame of the receiving port, from a PCI port at
 * least 2048 bytes. What a lane receives from a net_ring lies in buffers of other lanes, so
 * results there have the room of the smallest of them. A lane whose
 * receiving port takes longer frames than one of its sending ports is refused,
 * because such a frame would be lost at the far end of the lane.
 *
 * Paths. The first entry of the lane's list that can hold is taken: `direct`
 * cannot where the driver would copy with the CPU into the memory of a real GPU, or
 * where the host's no_direct says why this machine keeps the lane from it.
 * The plan says what can hold; that it does hold is proven at start-up. It keeps what became of
 * every entry of the list, and what a plan without its devices cannot know: the host's unasked.
 *
 * Where frames leave by another path than they arrive by, the lane has a second pool in the
 * memory of that path, and the kernel copies each frame that leaves. What rests in the slots
 * then rests in both pools, and what waits for a port only in the second:
 *
 *     slots x batch + sum over tx of (tx_ring + backlog of one tx_ring) + net_ring as above
 *
 * Where the receiving port splits frames (header split) the lane has two pools of as many
 * buffers each in the memory of its path: one for what stages see of a frame, with headroom, and
 * one for the rest. A lane's result moves and changes the first part alone.
 *
 * A staged lane has, for each slot, a buffer of batch x room bytes in page-locked memory and
 * one on the GPU besides. Where every stage of the chain leaves a frame within the bytes it came
 * in, the frames of a slot lie there side by side and only they are copied; else each has its
 * room, and the room that lies between frames is copied with them.
 *
 * Steering. A lane with a match takes the frames of its port that the match names. Lanes of
 * a port either all have one or none has. Those with the same match are a group, over whose
 * queues the NIC spreads the frames (RSS); any others must not overlap, so that it does not
 * matter in which order rules are looked at. With steering nic the port is isolated: what no
 * rule names never reaches a queue of ours. With steering software each lane drops, by
 * stage match in front of its own, what its queue received and its match does not name.
 *
 * Plug-ins. A lane whose chain has a stage of a plug-in is served by the kernel of that
 * plug-in, which has the built-in stages too. So a chain takes stages of one plug-in at most.
 *
 * Regions. There is one packet region per device and memory kind; every lane's
 * pool of that kind is carved from it, a whole number of 64-byte units each,
 * and it ends with one page of padding.
 *
 * Thread   any.
 * Errors   semantic errors are added to problems, all of them in one run.
 */
#ifndef MR_PLAN_H
#define MR_PLAN_H

#include "mr_config.h"
#include "mr_host.h"
#include "mr_match.h"
#include "mr_stage.h"

#define MR_TEXT_MAX 512u
#define MR_EAL_ARGS_MAX 64u
#define MR_REGION_PAGE 65536u /* GPU page, the unit of registration */
#define MR_HEADROOM 128u      /* RTE_PKTMBUF_HEADROOM */
#define MR_WARNINGS_MAX 32u

enum mr_port_kind {
	MR_PORT_VDEV, /* any DPDK virtual device */
	MR_PORT_PCI,
	MR_PORT_KERNEL, /* kernel:IFNAME over net_pcap */
};

struct mr_plan_region {
	bool used;
	uint64_t bytes;      /* multiple of MR_REGION_PAGE, the padding page included */
	uint64_t need_bytes; /* what the lanes' pools take */
};

struct mr_plan_device {
	char name[MR_NAME_MAX];
	char args[MR_TEXT_MAX]; /* arguments of the gpu_millrace vdev: device=sim,... */
	bool sim;
	struct mr_plan_region region[MR_PATH_COUNT]; /* one for each path of its lanes */
	uint32_t blocks[MR_WORK_COUNT];              /* workers by work division: one kernel each */
};

struct mr_plan_port {
	char name[MR_NAME_MAX];
	enum mr_port_kind kind;
	char device[MR_NAME_MAX]; /* DPDK device name: net_pcap0, 0000:5e:00.0 */
	char args[MR_TEXT_MAX];   /* its arguments, without the name */
	char ifname[MR_NAME_MAX]; /* KERNEL: interface whose offloads are switched off */
	uint32_t mtu;
	uint32_t frame_max; /* longest frame: mtu + 14 + two VLAN tags (8) */
	uint32_t rx_ring, tx_ring;
	uint32_t rx_queues, tx_queues;
	uint32_t split_bytes; /* of a frame that stages see, the rest is apart; 0: all of it */
	bool sends_parts;     /* frames of a split port leave by it */
	enum mr_steering steering;
	bool steered; /* its lanes have a match */
};

struct mr_plan_tx {
	uint32_t port; /* index into ports */
	uint32_t queue;
	uint32_t backlog; /* packets */
};

struct mr_plan_stage {
	const struct mr_stage_desc *desc;
	uint32_t counter_base;
	uint8_t params[MR_PARAM_BYTES] __attribute__((aligned(8)));
	char text[MR_TEXT_MAX]; /* "reason=policy", for people */
	/*
	 * GPU memory that it keeps between packets, whole pages: of this lane, and what lanes
	 * share, of which the device has as much as the lane that wants most.
	 */
	uint64_t state_bytes, shared_bytes;
};

/* An entry of a lane's list of paths, and what became of it. */
enum mr_choice {
	MR_CHOICE_TAKEN,
	MR_CHOICE_REFUSED, /* it cannot hold */
	MR_CHOICE_NEXT,    /* one before it is taken */
};

struct mr_plan_choice {
	enum mr_path path;
	enum mr_choice what;
	char why[MR_TEXT_MAX / 2]; /* REFUSED: what keeps it from holding; else "" */
};

struct mr_plan_lane {
	char name[MR_NAME_MAX];
	const struct mr_plugin_object *plugin; /* whose image serves it; NULL: the built-in one */
	uint32_t rx_port, rx_queue;
	struct mr_plan_tx tx[MR_TX_MAX];
	uint32_t tx_count;
	int32_t core; /* -1: any */
	uint32_t device;
	enum mr_path rx_path, tx_path;
	char path_why[MR_TEXT_MAX]; /* why this one of the list */
	struct mr_plan_choice rx_choice[MR_PATH_COUNT], tx_choice[MR_PATH_COUNT]; /* the lists */
	uint32_t rx_choices, tx_choices;
	bool one_list; /* path: for both ways, so that the two are the same */
	/* What may still keep the lane from the direct path that it takes; "" nothing. */
	char path_unasked[MR_TEXT_MAX];
	uint32_t batch, timeout_us, slots, workers;
	char workers_why[MR_TEXT_MAX]; /* "" unless fewer than asked */
	enum mr_overload overload;
	uint32_t tick_us, tx_timeout_us;
	char match_text[MR_TEXT_MAX]; /* "vlan=100 dst_port=53"; "": it takes every frame */
	struct mr_match match;
	struct mr_match_settled settled;
	uint32_t group; /* the first lane of the port with this match; itself, if there is none */
	struct mr_plan_stage stages[MR_CHAIN_MAX];
	uint32_t stages_count;
	uint32_t stages_added; /* in front of those that are written: 1 for match, else 0 */
	enum mr_work work;     /* division of the heaviest stage: which kernel serves it */
	uint32_t counters_count;
	/* pool */
	uint32_t element_bytes; /* headroom + frame_max, up to MR_UNIT */
	uint32_t room;          /* bytes of a buffer that frames may use = element_bytes */
	uint32_t buffers;       /* in the pool */
	uint32_t buffers_min;   /* the sum above */
	uint32_t cache;         /* mempool cache per core */
	uint32_t reserve;       /* tick buffers, part of buffers_min */
	uint64_t pool_offset;   /* in its region */
	uint64_t pool_bytes;
	char sum[MR_TEXT_MAX]; /* the sum in words and numbers */
	/* As many buffers for the rest of each frame, where the port splits them; else 0. */
	uint32_t rest_element_bytes;
	uint64_t rest_pool_offset, rest_pool_bytes;
	/* The second pool, where rx_path and tx_path differ; else 0. */
	uint32_t tx_buffers;
	uint64_t tx_pool_offset, tx_pool_bytes;
	char tx_sum[MR_TEXT_MAX];
	uint64_t copies_bytes; /* of a staged lane's slots, on each side; else 0 */
	bool copies_packed;    /* frames of a slot follow each other there, without their room */
};

struct mr_plan {
	char name[MR_NAME_MAX];
	bool hugepages;
	char eal_args[MR_EAL_ARGS_MAX][MR_TEXT_MAX]; /* complete, without argv[0] and --vdev */
	uint32_t eal_args_count;
	uint64_t eal_memory_mib;
	struct mr_plan_device devices[MR_DEVICES_MAX];
	uint32_t devices_count;
	struct mr_plan_port ports[MR_PORTS_MAX];
	uint32_t ports_count;
	struct mr_plan_lane lanes[MR_LANES_MAX];
	uint32_t lanes_count;
	/* Without lanes: one ordinary pool of host memory for every port. */
	uint32_t host_buffers, host_element_bytes, host_cache;
	uint32_t drain_ms, host_timeout_ms, log_level;
	char http_listen[MR_TEXT_MAX], http_users[MR_TEXT_MAX]; /* "" none */
	uint32_t backoff_ns; /* of kernels, between polls; 0: none */
	uint32_t stall_ms;   /* 0: as the device needs */
	uint32_t driver_ms;  /* 0: no limit */
	uint32_t publish_hz; /* how often lanes do; 0: as they do, a measurement's need only */
	enum mr_readback readback;
	enum mr_alarm alarm;
	uint64_t pinned_bytes, direct_bytes; /* totals; pinned: staged regions too */
	char skipped_checks[MR_TEXT_MAX];    /* of the preflight, by the operator's word; "" none */
	/* What the operator should know and may live with, a sentence each. */
	char warnings[MR_WARNINGS_MAX][MR_TEXT_MAX];
	uint32_t warnings_count;
};

/* Whether frames leave from other memory than they arrive in. */
static inline bool mr_plan_lane_moves(const struct mr_plan_lane *l)
{
	return l->rx_path != l->tx_path;
}

/* What is said of both ways together: the one that touches the host more. */
static inline enum mr_path mr_plan_lane_path(const struct mr_plan_lane *l)
{
	return l->rx_path > l->tx_path ? l->rx_path : l->tx_path;
}

/* Whether the CPU copies frames, on either way. */
static inline bool mr_plan_lane_copies(const struct mr_plan_lane *l)
{
	return l->rx_path == MR_PATH_STAGED || l->tx_path == MR_PATH_STAGED;
}

/* Whether rules of its driver steer the port, which is isolated then. */
static inline bool mr_plan_port_isolated(const struct mr_plan_port *p)
{
	return p->steered && p->steering == MR_STEERING_NIC;
}

/*
 * mr_plan_build fills *ret_plan. name is the instance name from the command
 * line, or NULL for the configuration's. Returns 0 or -EINVAL with at least
 * one problem added; *ret_plan is valid only on 0. The structure is large:
 * allocate it.
 */
MR_MUST_USE int mr_plan_build(const struct mr_config *cfg, const struct mr_host *host,
	const char *name, struct mr_plan *ret_plan, struct mr_problems *problems);

#endif
