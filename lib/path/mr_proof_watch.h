/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_proof_watch - what the kernel shows of a path, at the start and while lanes run.
 *
 *     open ─► add each device ─► look ... ─► close
 *
 * A look compares with what was there when a device was added: where it is in the PCI
 * tree, and the width and speed to which its link was trained (of a GPU the width only:
 * an idle GPU slows its link by itself), and the PCIe errors by which packets were lost. And
 * it reads the counters of the peer-memory module: bytes that NICs registered, and
 * registrations that the GPU's driver took back.
 *
 * Thread   one at a time.
 * Source   Linux Documentation/ABI/testing/sysfs-bus-pci and
 *          sysfs-bus-pci-devices-aer_stats; drivers/dma-buf/dma-buf.c; ib_peer_mem.h of
 *          MLNX_OFED
 */
#ifndef MR_PROOF_WATCH_H
#define MR_PROOF_WATCH_H

#include "mr_proof.h"
#include "mr_root.h"

#define MR_PROOF_WATCH_MAX 48u

struct mr_proof_device {
	char bdf[MR_BDF_MAX];
	bool gpu;
	bool said; /* its change was told */
	bool attached_known;
	uint32_t attached; /* dma-bufs, when it was added */
	char path[MR_ROOT_PATH_MAX];
	char width[32], speed[32]; /* as the kernel writes them; "" not readable */
	bool counts_errors;
	uint64_t errors; /* that are not corrected */
};

struct mr_proof_watch {
	struct mr_root root;
	struct mr_proof_device device[MR_PROOF_WATCH_MAX];
	uint32_t count;
	uint64_t registered; /* bytes, when opened */
	uint64_t revoked;
	bool counts;   /* the module's counters can be read */
	char from[96]; /* where */
	bool revoked_said;
};

/* root is "/" for this machine. */
MR_MUST_USE int mr_proof_watch_open(struct mr_proof_watch *w, const char *root, struct mr_err *err);
void mr_proof_watch_close(struct mr_proof_watch *w);

/* A device that is there already is not added again. */
void mr_proof_watch_add(struct mr_proof_watch *w, const char *bdf, bool gpu);

/*
 * mr_proof_watch_judge_registered: since open, ports registered so many bytes of GPU memory. PASS:
 * the module counted them, and perhaps others'; FAIL: fewer; NA: there is no module that counts;
 * UNKNOWN: what it counts cannot be read.
 */
void mr_proof_watch_judge_registered(
	struct mr_proof_watch *w, uint64_t mapped, struct mr_proof *ret_proof);

/*
 * mr_proof_watch_judge_attached: the dma-bufs that a NIC is attached to. PASS: how many, and how
 * many of them since it was added; NA: the kernel has no such list; UNKNOWN: it cannot be read, or
 * there are fewer than then, since another process has ended and the list has no owners.
 */
void mr_proof_watch_judge_attached(
	struct mr_proof_watch *w, const char *bdf, struct mr_proof *ret_proof);

/* Bytes that were registered since open; false: the counters cannot be read. */
bool mr_proof_watch_registered(struct mr_proof_watch *w, uint64_t *ret_bytes);

/*
 * mr_proof_watch_attached counts the dma-bufs that a device is attached to, which is how a NIC
 * holds memory that it did not register by peer memory; false: debugfs cannot be read.
 */
bool mr_proof_watch_attached(struct mr_proof_watch *w, const char *bdf, uint32_t *ret_count);

/* mr_proof_watch_look tells, once, of each change: of a device, or of all (bdf ""). */
typedef void mr_proof_tell(void *ctx, const char *bdf, const char *sentence);
void mr_proof_watch_look(struct mr_proof_watch *w, mr_proof_tell *tell, void *ctx);

#endif
