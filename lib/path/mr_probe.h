/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_probe - what only libraries and commands know of a machine.
 *
 * A probe is one function that answers a question with lines "KEY VALUE". Two
 * give answers: mr_probe_live asks CUDA, NVML, libibverbs, ethtool and devlink in
 * a process of its own, which is ended when it does not answer in time (a driver
 * can block for ever); mr_probe_files reads millrace/probe/QUESTION below a root,
 * which is where a capture puts the answers. Both end in one parser, so what a
 * file says and what a device says are judged alike.
 *
 *     gpu/BDF           attributes, memory health, processes of a GPU
 *     nic/BDF           pause frames, devlink reporters, dma-buf probe
 *     pair/BDF+BDF      registration of a GPU buffer with a NIC; GPU first
 *     prefix/NAME       live 1: a DPDK process of this file prefix runs, 0: none; else nobody may
 * tell software          versions of Millrace and DPDK, and what this DPDK can do
 *
 * Thread   the control thread.
 * Errors   -ENOENT nobody knows · -ETIMEDOUT no answer · -ENOTSUP cannot be asked
 */
#ifndef MR_PROBE_H
#define MR_PROBE_H

#include "mr_root.h"

#define MR_PROBE_TEXT_MAX 4096u

/* A number that a probe may not have given. */
struct mr_probe_value {
	bool known;
	int64_t v;
};

/* One row per key: what it is called in an answer and its member. */
#define MR_PROBE_GPU_KEYS(KEY)                                                                     \
	KEY(libcuda)      /* 1: loads, 0: does not */                                              \
	KEY(cuda_version) /* of the driver: 13000 is 13.0 */                                       \
	KEY(integrated)                                                                            \
	KEY(gdr_supported)                                                                         \
	KEY(dma_buf_supported)                                                                     \
	KEY(writes_ordering) /* 0, 100, 200 */                                                     \
	KEY(flush_options)   /* bit 0: host */                                                     \
	KEY(bar1_free)       /* bytes */                                                           \
	KEY(ecc_uncorrected)                                                                       \
	KEY(remap_pending)                                                                         \
	KEY(remap_failed)                                                                          \
	KEY(recovery_action) /* 0: none */                                                         \
	KEY(compute_mode)    /* 0 default, 2 prohibited, 3 exclusive process */                    \
	KEY(mig)                                                                                   \
	KEY(processes) /* that use it for computing */                                             \
	KEY(throttle)  /* bits of the clocks' event reasons */                                     \
	KEY(sm_mhz)                                                                                \
	KEY(sm_mhz_max)

#define MR_PROBE_NIC_KEYS(KEY)                                                                     \
	KEY(pause_rx)                                                                              \
	KEY(pause_tx)                                                                              \
	KEY(health_bad)    /* devlink reporters that are not healthy */                            \
	KEY(health_errors) /* errors that they count */                                            \
	KEY(dmabuf_errno)  /* of ibv_reg_dmabuf_mr with descriptor -1 */                           \
	KEY(trust)         /* of a VF */                                                           \
	KEY(spoofchk)

#define MR_PROBE_PAIR_KEYS(KEY)                                                                    \
	KEY(register_errno) /* of a 2 MiB GPU buffer, 0: registered */                             \
	KEY(readback)       /* 1: bytes compared equal both ways, 0: not */

#define MR_PROBE_SOFTWARE_KEYS(KEY) KEY(extmem_dmabuf) /* this DPDK registers memory by dma-buf */

#define MR_PROBE_MEMBER(key) struct mr_probe_value key;
struct mr_probe_gpu {
	int error; /* -errno: nothing below is known */
	MR_PROBE_GPU_KEYS(MR_PROBE_MEMBER)
};
struct mr_probe_nic {
	int error;
	MR_PROBE_NIC_KEYS(MR_PROBE_MEMBER)
};
struct mr_probe_pair {
	int error;
	MR_PROBE_PAIR_KEYS(MR_PROBE_MEMBER)
};
struct mr_probe_software {
	int error;
	MR_PROBE_SOFTWARE_KEYS(MR_PROBE_MEMBER)
};
#undef MR_PROBE_MEMBER

struct mr_probe {
	void *ctx;
	/* Fills text, ended with NUL. */
	int (*ask)(void *ctx, const char *question, char text[MR_PROBE_TEXT_MAX]);
};

/* Answers from files below a root; ctx is the struct mr_root. */
int mr_probe_files(void *ctx, const char *question, char text[MR_PROBE_TEXT_MAX]);

/* How this machine is asked. */
struct mr_probe_machine {
	struct mr_root *root; /* where devices are looked up, and whose recorder sees answers */
	uint32_t wait_ms;     /* for one answer */
};

#define MR_PROBE_WAIT_MS 10000u /* a driver that has to wake a GPU takes seconds */

/* Answers from this machine; ctx is a struct mr_probe_machine. */
int mr_probe_live(void *ctx, const char *question, char text[MR_PROBE_TEXT_MAX]);

/* Ask and parse; a probe that is NULL answers -ENOTSUP. */
void mr_probe_ask_gpu(const struct mr_probe *p, const char *bdf, struct mr_probe_gpu *ret);
void mr_probe_ask_nic(const struct mr_probe *p, const char *bdf, struct mr_probe_nic *ret);
void mr_probe_ask_pair(
	const struct mr_probe *p, const char *gpu, const char *nic, struct mr_probe_pair *ret);
void mr_probe_ask_software(const struct mr_probe *p, struct mr_probe_software *ret);
/* Does a process of this file prefix live? Not known where nobody answers. */
struct mr_probe_value mr_probe_prefix_lives(const struct mr_probe *p, const char *prefix);

#endif
