/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/gpu share: one open device. */
#ifndef MR_GPU_PRIV_H
#define MR_GPU_PRIV_H

#include "mr_gpu.h"
#include "mr_gpu_call.h"
#include "mr_gpu_drv.h"
#include "mr_klog.h"

#include <pthread.h>

/* Images of a device: the built-in one and those of plug-ins that its lanes use. */
#define MR_GPU_IMAGES_MAX 9u
/* A kernel is an image's entry for a work division: image * MR_WORK_COUNT + work. */
#define MR_GPU_KERNELS_MAX (MR_GPU_IMAGES_MAX * MR_WORK_COUNT)

#define MR_GPU_PAGE 65536u
#define MR_GPU_BLOCK_THREADS 256u

/* One worker as the watch sees it; times are of the watch's own clock. */
struct mr_gpu_worker {
	uint32_t lane, worker;
	uint32_t kernel;
	uint32_t beat, seq;       /* last seen */
	uint64_t beat_ns, seq_ns; /* when they last changed */
};

/* One lane while its kernel runs. */
struct mr_gpu_lane_run {
	char name[MR_NAME_MAX];
	uint32_t workers;
	uint32_t room;
	uint32_t kernel;
	uint32_t stages; /* of its chain */
	uint64_t chain;  /* the kernel's address of it */
	void *tables_device;
	uint64_t table[MR_CHAIN_MAX]; /* the kernel's addresses of both halves, side by side */
	size_t table_room[MR_CHAIN_MAX];
	void *state[MR_CHAIN_MAX]; /* GPU memory of its stages */
	const uint64_t *slots_given;
	uint8_t *host;            /* in, out, control lines, counters */
	void *in_device, *in_map; /* READY in GPU memory, and the CPU's mapping */
	struct mr_worker_ctl *ctl;
	uint64_t *counters; /* [workers][MR_COUNTERS_MAX] */

	/* What a staged lane has besides: its buffers on the GPU and where its words are. */
	struct mr_gpu_drv_stream *stream;
	void *copies_device;
	uint8_t *copies_host;                  /* COPIED words, then the slots' buffers */
	uint64_t copies_kernel, ready, copied; /* kernel's addresses; READY of slot 0 */
	uint32_t ready_stride, slots;
	uint32_t copies_queued;              /* some were when the prober asked last */
	uint64_t copies_progress, copies_ns; /* the watch's: what had ended, and since when */

	struct mr_gpu_call call; /* of the driver, that the lane is in */
	uint32_t call_failed;    /* the lane sets it, once, after what follows */
	const char *call_what;   /* it could not do */
	struct mr_err call_err;
	uint64_t call_since, call_ns; /* the watch's: which call it saw, and when first */
};

/*
 * The prober asks the driver whether the kernels still run. On a lost device such
 * a call may block for ever, so it has a thread of its own that can be left
 * behind; everybody else only reads here and judges how fresh the answer is.
 */
struct mr_gpu_probe {
	pthread_t thread;
	bool runs; /* the thread is to be joined; control thread only */
	struct mr_gpu_call call;
	pthread_mutex_t lock; /* for what follows; never held over a driver call */
	pthread_cond_t changed;
	bool hurry; /* ask often: kernels were told to leave */
	bool stop;  /* leave although kernels run */
	bool left;
	uint32_t answers; /* rounds that the driver answered */
	bool ended;       /* a kernel ended, */
	bool died;        /* and not by itself: err says why */
	uint32_t first;   /* the first kernel that ended */
	bool running;     /* in the last round, at least one ran */
	uint32_t last;    /* one that ran then */
	struct mr_err err;
};

/* The ring of captures, and how far the host has read it (mr_gpu_tap.h). */
struct mr_gpu_tap_reader {
	uint8_t *host;
	uint64_t kernel; /* the kernel's address of it */
	uint32_t lane;
	uint32_t mask, stride, snaplen; /* as ordered; the kernel could write to the order */
	uint32_t tail[MR_WORKERS_MAX];
	uint64_t broken; /* records that no sane worker wrote */
	/* From the kernel's clock to the host's, and from that to the time of day. */
	int64_t host_ns, day_ns;
	uint64_t asked_ns; /* the kernel for its clock, by the host's */
	/* The slot in hand: its records begin at the worker's tail. */
	uint32_t worker, count, left, index;
	uint32_t place[MR_BATCH_MAX]; /* of the packet's record among them, or NO_RECORD */
};

struct mr_gpu {
	char name[MR_NAME_MAX];
	char vdev[64];
	const char *args; /* while it is opened */
	int16_t id;       /* of gpudev */
	struct mr_gpu_drv *drv;
	struct mr_gpu_info info;

	struct mr_gpu_lane_run *lanes;
	uint32_t lanes_count;
	struct mr_host_ctl *host_ctl;
	void *device;  /* lanes, maps, launches, accumulated counters */
	void **shared; /* GPU memory of stages, for all lanes that have them */
	uint32_t shared_count;
	/* Whose image it is, NULL for the built-in one, and its module; unused: no module. */
	const struct mr_plugin *image[MR_GPU_IMAGES_MAX];
	struct mr_gpu_drv_module *module[MR_GPU_IMAGES_MAX];
	uint32_t images;
	uint64_t launches; /* the kernel's address of struct mr_launch[MR_GPU_KERNELS_MAX] */
	uint32_t blocks[MR_GPU_KERNELS_MAX];
	struct mr_gpu_drv_launch *launch[MR_GPU_KERNELS_MAX];
	struct mr_gpu_worker *workers;
	uint32_t workers_count;
	bool loaded, launched, stopped;
	uint32_t driver_ms; /* longest time for one call of a job; 0: for ever */
	bool abandoned;     /* a job or the prober is left in the driver; */
	struct mr_err lost; /* why */
	struct mr_gpu_probe probe;
	struct mr_gpu_tap_reader tap;

	struct mr_klog_reader klog;
	struct mr_pci_addr pci;             /* function 0, as the log names it */
	char klog_text[MR_KLOG_TEXT_BYTES]; /* the last that it said of this device */

	uint64_t watch_ns;     /* clock at the last look */
	uint64_t watch_now_ns; /* the watch's own clock, which does not jump */
	uint32_t answers;      /* of the prober, last seen */
	uint64_t answers_ns;
};

/*
 * mr_gpu_job runs fn on a thread of its own and waits for it. If one call of the driver
 * does not return within timeout_ms (0: never mind), the thread is left behind and the
 * result is -ETIMEDOUT with a sentence that names the call and what it was for. Until then
 * fn may use what the caller owns; a thread that was left behind uses nothing any more.
 */
typedef int mr_gpu_job_fn(void *arg, struct mr_err *err);
MR_MUST_USE int mr_gpu_job(const char *device, const char *what, uint32_t timeout_ms,
	mr_gpu_job_fn *fn, void *arg, struct mr_err *err);
/* The same, calling meanwhile(ctx) every 20 ms; *timeout_ms is read each time. */
MR_MUST_USE int mr_gpu_job_meanwhile(const char *device, const char *what,
	const uint32_t *timeout_ms, mr_gpu_job_fn *fn, void *arg, mr_gpu_meanwhile *meanwhile,
	void *ctx, struct mr_err *err);
/* Whether that happened in this process. */
bool mr_gpu_job_left_behind(void);

/* Notes that nothing of the driver may be asked any more, and why. */
void mr_gpu_abandon(struct mr_gpu *g, const struct mr_err *why);

/* The name of a kernel's entry, which all images have alike. */
const char *mr_gpu_kernel_name(uint32_t kernel);

bool mr_gpu_is_sim(const struct mr_gpu *g);

/* A sentence of the driver without the "device 'NAME': " that it begins with. */
const char *mr_gpu_words(const struct mr_gpu *g, const struct mr_err *words);

/* GPU memory aligned to 64 KiB; `what` it is for goes into the sentence. */
MR_MUST_USE int mr_gpu_device_alloc(
	struct mr_gpu *g, size_t bytes, const char *what, void **ret_ptr, struct mr_err *err);

/*
 * For a lane's thread around its calls of the driver: end keeps what failed for the watch, and
 * `what` the lane did it for, a verb and its object.
 */
void mr_gpu_lane_call_begin(struct mr_gpu_lane_run *l);
int mr_gpu_lane_call_end(
	struct mr_gpu_lane_run *l, const char *what, int rc, const struct mr_err *err);

/* mr_gpu_renew.c: memory for a lane's tables, and the first of them; inside a job. */
MR_MUST_USE int mr_gpu_tables_make(struct mr_gpu *g, const struct mr_gpu_lane *l,
	struct mr_gpu_lane_run *run, struct mr_lane_dev *dev, struct mr_err *err);

/* mr_gpu_state.c: zeroed memory for what stages of all lanes keep; inside a job. */
MR_MUST_USE int mr_gpu_states_make(struct mr_gpu *g, const struct mr_gpu_lane *lanes,
	struct mr_lane_dev *dev, struct mr_err *err);
void mr_gpu_states_free(struct mr_gpu *g);

/* mr_gpu_tap.c: host memory for what captures copy, by both addresses of it. */
#define MR_GPU_TAP_BYTES ((size_t)8 << 20)
void mr_gpu_tap_init(struct mr_gpu *g, void *host, uint64_t kernel);

/* mr_gpu_copy.c: a staged lane's buffers, words and stream, tried once; inside a job. */
MR_MUST_USE int mr_gpu_copier_make(struct mr_gpu *g, uint32_t lane, const struct mr_gpu_lane *l,
	struct mr_gpu_lane_run *run, struct mr_err *err);
void mr_gpu_copier_free(struct mr_gpu *g, struct mr_gpu_lane_run *run);

/* mr_gpu_kernel.c: the images, and whether their kernels fit; inside a job. */
MR_MUST_USE int mr_gpu_kernels_load(struct mr_gpu *g, struct mr_err *err);

/* mr_gpu_probe.c: init and fini frame the life of an open device. */
void mr_gpu_probe_init(struct mr_gpu_probe *p);
void mr_gpu_probe_fini(struct mr_gpu_probe *p);
MR_MUST_USE int mr_gpu_probe_start(struct mr_gpu *g, struct mr_err *err);
/*
 * Waits at most timeout_ms until all kernels ended. -ETIME: one did not, or the
 * driver does not answer; in that case probe.runs stays true and the thread still
 * uses g.
 */
MR_MUST_USE int mr_gpu_probe_wait(struct mr_gpu *g, uint32_t timeout_ms, struct mr_err *err);
/* Whether a kernel ended; err then says which and why. */
bool mr_gpu_probe_ended(struct mr_gpu *g, uint32_t *ret_answers, struct mr_err *err);

/*
 * Ends what was launched and undoes what load allocated, as far as it came; mr_gpu_launch.c.
 * -ETIMEDOUT: the prober is left in the driver, and nothing was undone; -EBUSY: a kernel stays.
 */
MR_MUST_USE int mr_gpu_launch_free(struct mr_gpu *g, struct mr_err *err);

#endif
