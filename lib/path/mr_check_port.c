/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_check_port - checks 54 to 57 and 60: what the configuration asks of ports and pools. */
#include "mr_checks_priv.h"

#include <stdio.h>
#include <string.h>

long mr_check_option(const char *args, const char *key)
{
	size_t n = strlen(key);

	for (const char *s = args; *s != '\0'; s += strcspn(s, ","), s += *s == ',')
		if (strncmp(s, key, n) == 0 && s[n] == '=') {
			long v = 0;

			for (s += n + 1; *s >= '0' && *s <= '9' && v < 1000000; s++)
				v = v * 10 + (*s - '0');
			return v;
		}
	return -1;
}

void mr_check_pool_size(const struct mr_check_in *in, struct mr_finding *f)
{
	for (uint32_t i = 0; i < in->needs->lanes_count; i++) {
		const struct mr_needs_lane *l = &in->needs->lanes[i];
		uint64_t half = l->rx_ring + l->rx_ring / 2ull;
		uint64_t batches = l->rx_ring + 2ull * l->batch;
		uint64_t need = half > batches ? half : batches;

		if (l->buffers >= need)
			mr_find(f, MR_PASS, "%s: %u buffers, %llu needed", l->name, l->buffers,
				(unsigned long long)need);
		else if (mr_find(f, MR_FAIL, "%s: %u buffers, %llu needed", l->name, l->buffers,
				 (unsigned long long)need))
			mr_hint(f, "raise the lane's buffers to %llu, or leave the key out",
				(unsigned long long)need);
	}
}

/* Only what is asked for can be wrong: without the option the plan sets what fits. */
void mr_check_nic_tx_inline(const struct mr_check_in *in, struct mr_finding *f)
{
	static const char *const keys[] = {"txq_inline_min", "txq_inline_max", "txq_inline_mpw"};

	MR_EACH_NIC(in, n) {
		bool copies = false;

		for (size_t i = 0; i < MR_ARRAY_LEN(keys); i++) {
			long v = mr_check_option(n->args, keys[i]);

			if (v <= 0 || !n->direct)
				continue;
			copies = true;
			if (mr_find(f, MR_FAIL, "%s: %s=%ld makes the CPU copy from GPU memory",
				    n->bdf, keys[i], v))
				mr_hint(f, "write %s=0 in the port's options, or leave it out",
					keys[i]);
		}
		if (!copies)
			mr_find(f, MR_PASS, "%s copies nothing", n->bdf);
	}
}

void mr_check_nic_rx_options(const struct mr_check_in *in, struct mr_finding *f)
{
	static const char *const keys[] = {"mprq_en", "lro_timeout_usec", "lro_en"};

	MR_EACH_NIC(in, n) {
		bool bad = false;

		for (size_t i = 0; i < MR_ARRAY_LEN(keys); i++) {
			if (!n->direct || mr_check_option(n->args, keys[i]) <= 0)
				continue;
			bad = true;
			if (mr_find(f, MR_FAIL, "%s: %s is on", n->bdf, keys[i]))
				mr_hint(f, "write %s=0 in the port's options, or leave it out",
					keys[i]);
		}
		if (!bad)
			mr_find(f, MR_PASS, "%s receives into the pool", n->bdf);
	}
}

/* A plan with a core, a queue or a device in two roles is never made. */
void mr_check_config_roles(const struct mr_check_in *in, struct mr_finding *f)
{
	for (uint32_t i = 0; i < in->needs->lanes_count; i++)
		for (uint32_t k = 0; k < i; k++) {
			const struct mr_needs_lane *a = &in->needs->lanes[k],
						   *b = &in->needs->lanes[i];

			if (a->core >= 0 && a->core == b->core &&
				mr_find(f, MR_FAIL, "lanes %s and %s both have core %d", a->name,
					b->name, a->core))
				mr_hint(f, "give each lane a core of its own");
		}
	if (f->verdict < MR_WARN)
		mr_find(f, MR_PASS, "%u lanes", in->needs->lanes_count);
}

/*
 * That a ConnectX-6 Dx VF cannot take one area for all its send queues (txq_mem_algn) came
 * with a later DPDK than the one that is linked, which has no such option.
 */
void mr_check_nic_vf(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_NIC(in, n) {
		const struct mr_probe_nic *p = &in->f->nics[n->nic].probe;
		const struct mr_facts_pci *pci = &in->f->pci[in->f->nics[n->nic].pci];

		if (pci->vendor.state != MR_FACT_KNOWN) {
			mr_find_unread(f, pci->vendor.state, pci->bdf);
		} else if (pci->physfn == MR_FACT_UNREAD) {
			mr_find_unread(f, pci->physfn, pci->bdf);
		} else if (pci->physfn != MR_FACT_KNOWN) {
			mr_find(f, MR_PASS, "%s is a physical function", pci->bdf);
		} else if (!p->trust.known || !p->spoofchk.known) {
			if (mr_find(f, MR_UNKNOWN,
				    "%s is a virtual function; only the host tells of its trust "
				    "and "
				    "spoof check",
				    pci->bdf))
				mr_hint(f,
					"on the host: `ip link set dev PF vf 0 trust on spoofchk "
					"off`");
		} else if (p->trust.v == 0 || p->spoofchk.v != 0) {
			if (mr_find(f, MR_WARN, "%s: trust %s, spoof check %s", pci->bdf,
				    p->trust.v != 0 ? "on" : "off",
				    p->spoofchk.v != 0 ? "on" : "off"))
				mr_hint(f,
					"on the host: `ip link set dev PF vf 0 trust on spoofchk "
					"off`");
		} else {
			mr_find(f, MR_PASS, "%s is trusted", pci->bdf);
		}
	}
}
