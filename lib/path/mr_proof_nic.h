/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_proof_nic - did the NIC itself see the frames of the read-back?
 *
 *     read ─► frames out of the port and in again ─► read ─► judge
 *
 * A frame that came back whole tells that it was sent and received, and not by whom: what is
 * looped in software comes back as well. The NIC's own counters tell: its port has to have
 * counted at least what was sent and received. Two more are of its PCIe side: transactions
 * that waited for credits for long, as they do before a slow peer, and buffers that
 * overflowed.
 *
 * On this machine they are read from the interface of the NIC's kernel driver, which mlx5
 * keeps while DPDK uses the NIC. Of another root they are lines "NAME VALUE" in
 * millrace/probe/counters/BDF.
 *
 * Thread   one at a time for a root.
 * Source   Linux Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst
 */
#ifndef MR_PROOF_NIC_H
#define MR_PROOF_NIC_H

#include "mr_proof.h"
#include "mr_root.h"

enum mr_proof_nic_counter {
	MR_PROOF_NIC_SENT,     /* bytes that the port's function sent, DPDK's included */
	MR_PROOF_NIC_RECEIVED, /* and received */
	MR_PROOF_NIC_OVERFLOW,
	MR_PROOF_NIC_STALLED_READS,  /* seconds in which more than 30 % went by waiting */
	MR_PROOF_NIC_STALLED_WRITES, /* the same of writes */
	MR_PROOF_NIC_COUNTERS,
};

struct mr_proof_nic {
	bool known[MR_PROOF_NIC_COUNTERS];
	uint64_t value[MR_PROOF_NIC_COUNTERS];
	char why[128]; /* none could be read: why; else "" */
};

void mr_proof_nic_read(struct mr_root *root, const char *bdf, struct mr_proof_nic *ret);

/*
 * mr_proof_nic_judge: the port moved so many bytes of test frames between the two readings.
 * FAIL: the NIC counted fewer; WARN: they passed, and its buffers overflowed; NA: it does not
 * tell, with the reason.
 */
void mr_proof_nic_judge(const struct mr_proof_nic *before, const struct mr_proof_nic *after,
	uint64_t sent, uint64_t received, struct mr_proof *ret_proof);

#endif
