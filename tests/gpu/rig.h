/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig - one lane's ring and the persistent kernel on a device, without DPDK.
 *
 *     rig_open ─► rig_make ─► rig_start ─► give and take ─► rig_stop ─► rig_free
 *
 * Talks to the table of CUDA functions alone, so that what is measured or compared
 * is the device, its driver and the kernel. The caller plays the lane through
 * lib/ring. What goes wrong ends the program with a sentence.
 *
 * Thread   one at a time for each device.
 */
#ifndef RIG_H
#define RIG_H

#include "mr_base.h"
#include "mr_cuda_api.h"
#include "mr_ring.h"
#include "mr_stage.h"

#define RIG_SKIP 77 /* exit status: there is no such device here */

/* How many times longer than usual a device may take; more than 1 below a sanitizer. */
extern uint32_t rig_patience;

struct rig_device {
	const struct mr_cuda_api *cu;
	mr_cu_device id;
	mr_cu_context context; /* its primary one */
	mr_cu_module module;
	char name[64];
	int driver; /* 13000 is 13.0 */
	int multiprocessors;
	bool sim;
	bool can_map; /* READY can lie in device memory */
};

struct rig_plan {
	uint32_t slots, batch, workers;
	uint32_t buffers, room;
	bool host;   /* packets in page-locked host memory (path pinned) */
	bool mapped; /* READY in device memory, where the device can map it */
	const enum mr_stage_id *chain;
	uint32_t chain_len;
	/* By stage, for any in the chain: what its table is made of, and a parameter that is
	 * not the default; NULL for none. */
	const char *table[MR_STAGE_COUNT];
	const struct rig_param *param[MR_STAGE_COUNT];
};

/* Parameters of a stage as written; behind the last one without a name. */
struct rig_param {
	const char *name, *value;
};

struct rig {
	struct rig_device *d;
	struct rig_plan plan;
	struct mr_ring ring;
	mr_cu_deviceptr region; /* as copies take it */
	uint8_t *host_region;   /* plan.host */
	uint8_t *host;          /* in, out, control lines, counters, host control */
	mr_cu_deviceptr in_device;
	void *in_map;
	mr_cu_deviceptr device; /* lane, map, launch, accumulated counters */
	mr_cu_deviceptr table[MR_CHAIN_MAX], state[MR_CHAIN_MAX]; /* 0: there is none */
	uint64_t argument;                                        /* of the kernel */
	struct mr_worker_ctl *ctl;
	uint64_t *counters;
	struct mr_host_ctl *host_ctl;
	mr_cu_function function;
	uint32_t threads;    /* of a block */
	mr_cu_stream stream; /* the kernel's */
	mr_cu_stream copies; /* beside it: the kernel does not end */
};

/* where: "sim[,option...]" or a PCI address. Without a driver or device: exit RIG_SKIP. */
void rig_open(const char *where, struct rig_device *ret_device);

void rig_make(struct rig_device *d, const struct rig_plan *plan, struct rig *ret_rig);
void rig_free(struct rig *r);

/* rig_start launches and waits until every worker said hello. */
void rig_start(struct rig *r);
void rig_stop(struct rig *r);

/* One launch more on the rig's stream; waits for nothing. */
void rig_launch(struct rig *r);

/* rig_wait waits for the end of what was launched. */
void rig_wait(struct rig *r);

/* Frames into and out of buffer i, from head on. */
void rig_write(struct rig *r, uint32_t buffer, uint32_t head, const void *frame, uint32_t bytes);
void rig_read(struct rig *r, uint32_t buffer, uint32_t head, void *ret_frame, uint32_t bytes);

/* A call of the table with the device's context current; ends the program if it fails. */
#define RIG_CU(d, call) (rig_enter(d), rig_leave(d, (d)->cu->call, #call))
void rig_enter(const struct rig_device *d);
void rig_leave(const struct rig_device *d, mr_cu_result rc, const char *call);
_Noreturn void rig_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
