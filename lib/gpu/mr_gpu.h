/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_gpu - one device: packet regions, the kernel image, launch, watch, stop.
 *
 *     open ─► region_alloc ... ─► load ─► launch ─► watch ... ─► stop ─► region_free ─► close
 *
 * Everything that could block behind a persistent kernel (module load,
 * allocation, registration) happens in load. Launch starts, on all devices of the
 * process at once, one kernel per image and work division in use, one block per worker, and
 * waits until every worker has said hello; if one is missing after a second the
 * start fails and names it. Meanwhile it beats for all of them.
 *
 * A reload gives running kernels other parameters and tables: renew fills the half that they do not
 * read, lane by lane, publish has them change over, and the half that they have left is
 * theirs no more when taken says so.
 *
 * Thread   the control thread. mr_gpu_counters may be called from any thread
 *          between launch and close.
 * Owner    the caller. Close ends a launch that still runs; regions that were not
 *          freed go with the device.
 * Errors   0 or -errno with one sentence naming the device and the call. -ETIMEDOUT:
 *          one call of the driver did not return within driver_ms. Its thread is left
 *          in it; the device can only be closed, which frees nothing then, and the
 *          process has to end by _exit, past what the driver does at exit.
 */
#ifndef MR_GPU_H
#define MR_GPU_H

#include "mr_err.h"
#include "mr_plugin.h"
#include "mr_ring.h"
#include "mr_stage.h"

#include <stdbool.h>

struct mr_gpu;

struct mr_gpu_info {
	char name[64];
	char provider[8]; /* "sim" or "cuda" */
	char guard[16];   /* what the device arguments ask of the guard */
	int multiprocessors;
	bool gpudirect_rdma;
	bool dma_buf;
	int writes_ordering; /* 0 none, 100 owner, 200 all devices */
	int flush_options;   /* bit 0 host, bit 1 memops */
	bool flush_needed;   /* ordering none: the lane flushes before READY */
	bool can_map;        /* READY may lie in GPU memory */
	char pci[17];        /* "" for a software device */
	char klog[128];      /* kernel log that the watch reads; "": none */
	int klog_rc;         /* 0, or -errno: it cannot be read */
};

/*
 * mr_gpu_open probes the vdev gpu_millrace_<name> with those arguments and
 * opens it. EAL must be up. driver_ms is the longest time that one call of the driver
 * may take, here and later; 0: for ever. -ENOTSUP: writes are not ordered and no flush
 * option is supported.
 */
MR_MUST_USE int mr_gpu_open(const char *name, const char *args, uint32_t driver_ms,
	struct mr_gpu **ret_gpu, struct mr_err *err);

/* mr_gpu_set_driver_ms changes that limit for the calls to come. The thread of the watch. */
void mr_gpu_set_driver_ms(struct mr_gpu *g, uint32_t driver_ms);

/*
 * mr_gpu_close frees what open, region_alloc and launch made; NULL is accepted. A
 * real device whose kernels or driver hang is left as it is, memory and handle
 * included, since every call into it could block; the process's end takes it. A driver
 * that hangs is -ETIMEDOUT, a kernel that stays is -EBUSY; both need _exit.
 */
int mr_gpu_close(struct mr_gpu *g, struct mr_err *err);

const struct mr_gpu_info *mr_gpu_info(const struct mr_gpu *g);

enum mr_gpu_memory {
	MR_GPU_MEMORY_DEVICE, /* GPU memory: packets arrive there without a host copy */
	MR_GPU_MEMORY_HOST,   /* page-locked host memory that kernels reach over PCIe */
};

/*
 * Memory for packets. addr is what DPDK and the NIC use, kernel what kernels use.
 * bytes are rounded up to 64 KiB; -EINVAL: none, or more than positions of 32 bits
 * in MR_UNIT reach (256 GiB); -ENOTSUP: GPU memory, but the GPU has no GPUDirect RDMA.
 * Whether GPU memory exports as a dma-buf, by which a NIC's driver may register it, is
 * tried at once; dmabuf has code 0, or says why it does not.
 */
struct mr_gpu_region {
	enum mr_gpu_memory memory;
	void *addr;
	uint64_t kernel;
	size_t bytes; /* multiple of 64 KiB; addr is aligned to 64 KiB */
	struct mr_err dmabuf;
};

MR_MUST_USE int mr_gpu_region_alloc(struct mr_gpu *g, enum mr_gpu_memory memory, size_t bytes,
	struct mr_gpu_region *ret_region, struct mr_err *err);
/* A zeroed region is accepted. Memory of kernels that did not leave goes with close. */
void mr_gpu_region_free(struct mr_gpu *g, struct mr_gpu_region *region);

/*
 * mr_gpu_flush makes what the NIC wrote visible to running kernels; lane i calls it
 * per slot where info.flush_needed, between launch and close, from its own thread.
 * Returns 0 or -errno; then the slot must not be given, and the watch says LOST. It says
 * so too when a flush does not return.
 */
int mr_gpu_flush(struct mr_gpu *g, uint32_t lane);

/*
 * mr_gpu_copier - the copies of one staged lane, on a stream of its own.
 *
 *     host buffer of the slot ── copier_in ──► GPU buffer of the slot, then READY
 *     GPU buffer of the slot  ── copier_out ─► host buffer of the slot, then COPIED
 *
 * A slot has a buffer of slot_bytes on both sides, batch x the lane's room; slot number n's
 * begins at (n modulo slots) x slot_bytes. Only the lane's thread calls in and out, between launch
 * and close; a call that fails is kept for the watch, which then says LOST, as with mr_gpu_flush.
 */
struct mr_gpu_copier {
	struct mr_gpu *gpu;
	uint32_t lane;          /* index in the launch */
	uint8_t *host;          /* [slots] x slot_bytes, page-locked */
	const uint32_t *copied; /* [slots] COPIED: number + 1 once the slot's copy is back */
	size_t slot_bytes;
	uint32_t mask; /* slots - 1 */
};

/* Copies bytes of slot number seq, from `from` on, to the GPU, and writes READY behind them. */
MR_MUST_USE int mr_gpu_copier_in(
	const struct mr_gpu_copier *c, uint32_t seq, size_t from, size_t bytes);
/* Copies so many of it back, and writes COPIED behind. */
MR_MUST_USE int mr_gpu_copier_out(
	const struct mr_gpu_copier *c, uint32_t seq, size_t from, size_t bytes);

/* One stage of a lane's chain. */
struct mr_gpu_stage {
	const struct mr_stage_desc *desc;
	uint32_t counter_base;
	const void *table;  /* copied by load and renew; NULL: none */
	size_t table_bytes; /* of it */
	size_t table_room;  /* that load sets aside for it, twice; 0: the stage has none */
	uint8_t params[MR_PARAM_BYTES] __attribute__((aligned(8)));
};

/* What launch needs to know of a lane, and where it answers. */
struct mr_gpu_lane {
	const char *name;
	const struct mr_gpu_region *region; /* where its packets lie; NULL: the copier's buffers */
	/* Where they are copied to at last, if tx_copy; NULL: the copier's buffers. */
	const struct mr_gpu_region *tx_region;
	bool tx_copy;
	struct mr_gpu_copier *copier; /* load fills it; NULL: a lane without copies */
	uint32_t slots, batch, workers, room, tx_count;
	uint32_t first_seq; /* number of the first slot; 0 unless a test wants a wrap */
	enum mr_work work;
	const struct mr_plugin *plugin; /* whose image serves it; NULL: the built-in one */
	const struct mr_gpu_stage *stages;
	uint32_t stages_count;
	struct mr_ring *ring; /* launch lays it out and calls mr_ring_init */
	/* Slots given so far, as the lane publishes it, for the watch; NULL: not watched. */
	const uint64_t *slots_given;
};

/*
 * mr_gpu_load allocates rings, control words and counters for all lanes of the
 * device, and what their stages keep, and loads the images. Once per open. A failure leaves nothing
 * behind: the rings are void, the device can only be closed. host_timeout_ms 0: kernels never leave
 * on a silent host. backoff_ns is the longest pause of a worker between two polls.
 *
 * -EINVAL: a lane asks for what the slot ABI cannot say, or has a stage that its
 * work division does not run; -ENOSPC: the workers do not fit the device at once;
 * -ENOEXEC: no image for this device; -EALREADY: loaded before; else what the
 * driver said.
 */
MR_MUST_USE int mr_gpu_load(struct mr_gpu *g, const struct mr_gpu_lane *lanes, uint32_t lanes_count,
	uint32_t host_timeout_ms, uint32_t backoff_ns, struct mr_err *err);

/*
 * mr_gpu_launch starts the kernels of these devices, each loaded and none launched
 * before. Any failure but -EINVAL ends them all, and they can only be closed.
 *
 * -ETIME: a worker did not say hello; -EIO: a device was lost meanwhile; -EINVAL: not
 * loaded, or launched before; else what the driver said.
 */
MR_MUST_USE int mr_gpu_launch(struct mr_gpu *const *gpus, uint32_t count, struct mr_err *err);

enum mr_gpu_health {
	MR_GPU_HEALTHY,
	MR_GPU_STALLED,     /* a worker does not beat, or beats without progress */
	MR_GPU_LOST,        /* the driver reports the device or a kernel gone */
	MR_GPU_HOST_SILENT, /* workers left because the host did not beat */
};

/*
 * mr_gpu_watch beats for the host and judges device and workers, and what the kernel's
 * log says of the device; call it every
 * 100 ms at the latest. A worker that owes slots for stall_ms without finishing
 * one is stalled, and so is a stream of copies of which none ends. A driver that does not answer
 * for stall_ms is lost; the call itself never waits for the driver. Of the time between two calls
 * at most 200 ms count, so a process that was stopped does not blame its device. On a software
 * device the CPU time of the worker's thread is not visible, so give a generous
 * stall_ms there. On anything but HEALTHY err holds the sentence.
 */
enum mr_gpu_health mr_gpu_watch(struct mr_gpu *g, uint32_t stall_ms, struct mr_err *err);

/*
 * mr_gpu_stop tells the kernels to leave and waits at most timeout_ms. -ETIME:
 * a kernel or the prober is still there; the device can then only be closed. Rings stay
 * readable until close. Without a launch it is a no-op.
 */
MR_MUST_USE int mr_gpu_stop(struct mr_gpu *g, uint32_t timeout_ms, struct mr_err *err);

/*
 * mr_gpu_renew writes the parameters and tables of all stages of lane i, for what publish
 * begins. stages are those of load but for these. -EBUSY: a worker has not taken what was
 * published last, and nothing was written; -ENOSPC: a table has more than load's table_room.
 * It waits for the driver, and meanwhile, if not NULL, is called every 20 ms: kernels leave
 * a host that does not beat. -ETIMEDOUT: a call did not return, and the device is lost.
 */
typedef void mr_gpu_meanwhile(void *ctx);
MR_MUST_USE int mr_gpu_renew(struct mr_gpu *g, uint32_t lane, const struct mr_gpu_stage *stages,
	mr_gpu_meanwhile *meanwhile, void *ctx, struct mr_err *err);
/* mr_gpu_publish begins what was written for all lanes; each worker takes it between slots. */
void mr_gpu_publish(struct mr_gpu *g);
/* mr_gpu_taken: 0 all workers have, -EAGAIN one has not, and err says which. */
MR_MUST_USE int mr_gpu_taken(const struct mr_gpu *g, struct mr_err *err);

/* mr_gpu_counters sums the stage counters of lane i over its workers. */
void mr_gpu_counters(const struct mr_gpu *g, uint32_t lane, uint64_t ret_counters[MR_COUNTERS_MAX]);

/*
 * mr_gpu_beats gives the heartbeats of each of lane i's workers, which wrap, 0 behind the last,
 * and returns their sum. A worker's grow while it polls.
 */
uint64_t mr_gpu_beats(const struct mr_gpu *g, uint32_t lane, uint32_t ret_beats[MR_WORKERS_MAX]);

#endif
