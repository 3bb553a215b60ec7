/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_proof_nic.h"

#include "mr_ethtool.h"
#include "mr_parse.h"
#include "mr_probe_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 4096u

static const char *const names[] = {
	[MR_PROOF_NIC_SENT] = "tx_vport_unicast_bytes",
	[MR_PROOF_NIC_RECEIVED] = "rx_vport_unicast_bytes",
	[MR_PROOF_NIC_OVERFLOW] = "outbound_pci_buffer_overflow",
	[MR_PROOF_NIC_STALLED_READS] = "outbound_pci_stalled_rd_events",
	[MR_PROOF_NIC_STALLED_WRITES] = "outbound_pci_stalled_wr_events",
};

static void read_live(struct mr_root *root, const char *bdf, struct mr_proof_nic *ret)
{
	struct mr_ethtool_counter c[MR_PROOF_NIC_COUNTERS];
	char interface[64];
	int rc;

	if (!mr_probe_nic_first(root, bdf, "net", interface)) {
		snprintf(ret->why, sizeof(ret->why), "%.32s has no network interface to ask", bdf);
		return;
	}
	for (uint32_t i = 0; i < MR_PROOF_NIC_COUNTERS; i++)
		c[i].name = names[i];
	rc = mr_ethtool_read(interface, c, MR_PROOF_NIC_COUNTERS);
	if (rc < 0)
		snprintf(ret->why, sizeof(ret->why), "counters of %.32s: %s", interface,
			strerror(-rc));
	for (uint32_t i = 0; rc == 0 && i < MR_PROOF_NIC_COUNTERS; i++) {
		ret->known[i] = c[i].known;
		ret->value[i] = c[i].value;
	}
}

static void read_file(struct mr_root *root, const char *bdf, struct mr_proof_nic *ret)
{
	char path[96], text[TEXT_MAX];

	snprintf(path, sizeof(path), "millrace/probe/counters/%.32s", bdf);
	if (mr_root_read(root, path, text, sizeof(text), NULL) != 0) {
		snprintf(ret->why, sizeof(ret->why), "/%s is not there", path);
		return;
	}
	for (uint32_t i = 0; i < MR_PROOF_NIC_COUNTERS; i++) {
		const char *s = mr_parse_line(text, names[i]);
		char word[32];

		if (s == NULL)
			continue;
		mr_parse_word(s, word, sizeof(word));
		ret->known[i] = mr_parse_u64(word, &ret->value[i]);
	}
}

void mr_proof_nic_read(struct mr_root *root, const char *bdf, struct mr_proof_nic *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (root->live)
		read_live(root, bdf, ret);
	else
		read_file(root, bdf, ret);
	if (ret->why[0] == '\0' &&
		(!ret->known[MR_PROOF_NIC_SENT] || !ret->known[MR_PROOF_NIC_RECEIVED]))
		snprintf(ret->why, sizeof(ret->why), "its driver has no %s",
			names[ret->known[MR_PROOF_NIC_SENT] ? MR_PROOF_NIC_RECEIVED
							    : MR_PROOF_NIC_SENT]);
}

/* By how much it rose; 0 where it is not told, or was set back. */
static uint64_t rise(const struct mr_proof_nic *before, const struct mr_proof_nic *after,
	enum mr_proof_nic_counter i)
{
	return before->known[i] && after->known[i] && after->value[i] > before->value[i]
		? after->value[i] - before->value[i]
		: 0;
}

/* " stalled reads 3", or that they are not told. */
static void tell(const struct mr_proof_nic *before, const struct mr_proof_nic *after,
	enum mr_proof_nic_counter i, const char *what, char *text, size_t bytes)
{
	size_t used = strlen(text);

	if (before->known[i] && after->known[i])
		snprintf(text + used, bytes - used, "; %s %" PRIu64, what, rise(before, after, i));
	else
		snprintf(text + used, bytes - used, "; %s not told", what);
}

void mr_proof_nic_judge(const struct mr_proof_nic *before, const struct mr_proof_nic *after,
	uint64_t sent, uint64_t received, struct mr_proof *ret_proof)
{
	uint64_t out = rise(before, after, MR_PROOF_NIC_SENT);
	uint64_t in = rise(before, after, MR_PROOF_NIC_RECEIVED);
	char pcie[160] = "";

	tell(before, after, MR_PROOF_NIC_STALLED_READS, "stalled PCIe reads", pcie, sizeof(pcie));
	tell(before, after, MR_PROOF_NIC_STALLED_WRITES, "writes", pcie, sizeof(pcie));
	tell(before, after, MR_PROOF_NIC_OVERFLOW, "PCIe buffer overflows", pcie, sizeof(pcie));
	if (before->why[0] != '\0' || after->why[0] != '\0')
		mr_proof_set(ret_proof, MR_NA, "not told: %s",
			before->why[0] != '\0' ? before->why : after->why);
	else if (out < sent || in < received)
		mr_proof_set(ret_proof, MR_FAIL,
			"the NIC counted %" PRIu64 " bytes sent and %" PRIu64
			" received while the read-back moved %" PRIu64 " and %" PRIu64
			": frames did not pass through it",
			out, in, sent, received);
	else
		mr_proof_set(ret_proof,
			rise(before, after, MR_PROOF_NIC_OVERFLOW) > 0 ? MR_WARN : MR_PASS,
			"the NIC counted %" PRIu64 " bytes sent and %" PRIu64
			" received, the read-back moved %" PRIu64 " and %" PRIu64 "%s",
			out, in, sent, received, pcie);
}
