/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_check_pair - checks 24, 25, 43 to 48 and 59: what lies between a GPU and a NIC. */
#include "mr_checks_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GPU_PAGE 65536ull
#define VENDOR_INTEL 0x8086u
/*
 * DPDK 22.11 sorts all pages anew for each page, so time grows with the square of
 * their number; hours are reported for tens of GiB (DPDK pull request 70).
 */
#define REGISTER_BYTES_MAX (10ull << 30)

static const struct mr_facts_pci *gpu_pci(const struct mr_check_in *in, uint32_t gpu)
{
	return &in->f->pci[in->f->gpus[gpu].pci];
}

static const struct mr_facts_pci *nic_pci(const struct mr_check_in *in, uint32_t nic)
{
	return &in->f->pci[in->f->nics[nic].pci];
}

/* Payload sizes set and possible, 0 where none applies; false where they cannot be read. */
static bool payload(
	const struct mr_facts_pci *p, uint32_t *ret_bytes, uint32_t *ret_can, struct mr_finding *f)
{
	const struct mr_pci_express *e = &p->config.express;

	*ret_bytes = *ret_can = 0;
	if (e->seen == MR_PCI_ABSENT || (e->seen == MR_PCI_PRESENT && !e->control_valid))
		return true;
	if (e->seen == MR_PCI_PRESENT && e->mps_bytes != 0) {
		*ret_bytes = e->mps_bytes;
		*ret_can = e->mps_supported_bytes;
		return true;
	}
	if (mr_find(f, MR_UNKNOWN, "%s: %s", p->bdf, mr_pci_config_reason(&p->config, e->seen)))
		mr_hint(f, "run it as root: `sudo millrace doctor`");
	return false;
}

void mr_check_pcie_mps(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_PAIR(in, p) {
		const struct mr_facts_pci *ends[] = {gpu_pci(in, p->gpu), nic_pci(in, p->nic)};
		uint32_t way[2 * MR_FACTS_CHAIN_MAX];
		uint32_t count = mr_check_way(in->f, p->gpu, p->nic, way);
		uint32_t low = UINT32_MAX, high = 0, all_can = UINT32_MAX, bytes, can;
		bool known = true;

		for (uint32_t i = 0; i < count + 2; i++) {
			known &= payload(
				i < count ? &in->f->pci[way[i]] : ends[i - count], &bytes, &can, f);
			if (can != 0 && can < all_can)
				all_can = can;
			if (bytes != 0 && bytes < low)
				low = bytes;
			if (bytes > high)
				high = bytes;
		}
		if (known && low < high &&
			mr_find(f, MR_WARN, "%s to %s: %u and %u bytes on one path", ends[0]->bdf,
				ends[1]->bdf, low, high))
			mr_hint(f, "set one size in the BIOS, or boot with pci=pcie_bus_perf");
		else if (known && low == high && high < all_can &&
			mr_find(f, MR_WARN, "%s to %s: %u bytes, all of the path can take %u",
				ends[0]->bdf, ends[1]->bdf, high, all_can))
			mr_hint(f, "set it in the BIOS, or boot with pci=pcie_bus_perf");
		else if (known)
			mr_find(f, MR_PASS, "%s to %s: %u bytes", ends[0]->bdf, ends[1]->bdf, high);
	}
}

/*
 * Root ports of Xeon E5 and E7 v3 and v4 (Haswell, Broadwell), which take relaxed requests
 * more slowly than others; Linux marks them too (drivers/pci/quirks.c).
 */
static bool dislikes_relaxed(const struct mr_host_facts *h, const struct mr_facts_pci *p)
{
	const struct mr_facts_pci *root = p->chain_count > 0 ? &h->pci[p->chain[0]] : NULL;
	uint64_t model;

	if (root == NULL || root->vendor.v != VENDOR_INTEL || root->device.state != MR_FACT_KNOWN)
		return false;
	model = root->device.v & 0xff;
	return (root->device.v >> 8 == 0x2f || root->device.v >> 8 == 0x6f) && model >= 0x01 &&
		model <= 0x0e;
}

static void judge_relaxed(
	const struct mr_host_facts *h, const struct mr_facts_pci *p, struct mr_finding *f)
{
	const struct mr_pci_express *e = &p->config.express;
	bool dislikes = dislikes_relaxed(h, p);

	if (e->seen == MR_PCI_ABSENT || (e->seen == MR_PCI_PRESENT && !e->control_valid)) {
		mr_find(f, MR_PASS, "%s does not have it", p->bdf);
	} else if (e->seen != MR_PCI_PRESENT) {
		if (mr_find(f, MR_UNKNOWN, "%s: %s", p->bdf,
			    mr_pci_config_reason(&p->config, e->seen)))
			mr_hint(f, "run it as root: `sudo millrace doctor`");
	} else if (dislikes && e->relaxed_ordering) {
		if (mr_find(f, MR_WARN, "%s on, which the processor's root port takes badly",
			    p->bdf))
			mr_hint(f, "`setpci -s %s CAP_EXP+8.w=0:10`", p->bdf);
	} else if (dislikes || e->relaxed_ordering) {
		mr_find(f, MR_PASS, "%s %s", p->bdf, e->relaxed_ordering ? "on" : "off");
	} else if (mr_find(f, MR_WARN, "%s off", p->bdf)) {
		mr_hint(f,
			"`setpci -s %s CAP_EXP+8.w=10:10`; some processors lose a quarter of the "
			"bandwidth without it",
			p->bdf);
	}
}

void mr_check_pcie_relaxed(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_GPU(in, g)
		if (g->direct)
			judge_relaxed(in->f, gpu_pci(in, g->gpu), f);
	MR_EACH_NIC(in, n)
		if (n->direct)
			judge_relaxed(in->f, nic_pci(in, n->nic), f);
	MR_EACH_PAIR(in, p)
		if (in->f->gpus[p->gpu].stand_in)
			judge_relaxed(in->f, nic_pci(in, p->nic), f);
}

void mr_check_pair_topology(const struct mr_check_in *in, struct mr_finding *f)
{
	static const enum mr_check_verdict verdicts[] = {[MR_TOPOLOGY_PIX] = MR_PASS,
		[MR_TOPOLOGY_PXB] = MR_PASS,
		[MR_TOPOLOGY_PHB] = MR_WARN,
		[MR_TOPOLOGY_NODE] = MR_WARN,
		[MR_TOPOLOGY_SYS] = MR_FAIL};

	MR_EACH_PAIR(in, p) {
		const struct mr_topology_pair *t =
			mr_facts_topology_pair(in->topology, in->f, p->gpu, p->nic);
		const char *gpu = gpu_pci(in, p->gpu)->bdf, *nic = nic_pci(in, p->nic)->bdf;

		if (t == NULL) {
			mr_find_unread(f, MR_FACT_ABSENT, "place in the PCI tree");
		} else if (t->uncertain) {
			if (mr_find(f, MR_UNKNOWN, "%s to %s: %s, as no NUMA node is told", gpu,
				    nic, mr_topology_near_name(t->near)))
				mr_hint(f,
					"the firmware tells no NUMA node; `lspci -tv` shows the "
					"tree, the "
					"read-back decides");
		} else if (verdicts[t->near] == MR_PASS) {
			mr_find(f, MR_PASS, "%s to %s: %s", gpu, nic,
				mr_topology_near_name(t->near));
		} else if (mr_find(f, verdicts[t->near], "%s to %s: %s", gpu, nic,
				   mr_topology_near_name(t->near))) {
			mr_hint(f,
				"put both cards under one PCIe switch, or pair the NIC with "
				"another "
				"GPU: `nvidia-smi topo -m`");
		}
	}
}

static void judge_numa(
	const struct mr_check_in *in, const struct mr_needs_lane *l, struct mr_finding *f)
{
	const struct mr_facts_pci *n = nic_pci(in, l->nic);
	int16_t node = in->f->cpu[l->core].node;

	if (node < 0 || n->node.state != MR_FACT_KNOWN || n->node.v < 0)
		mr_find_unread(f, MR_FACT_ABSENT, "NUMA node of core or NIC");
	else if (n->node.v == node)
		mr_find(f, MR_PASS, "%s: core %d and NIC on node %d", l->name, l->core, node);
	else if (mr_find(f, MR_WARN, "%s: core %d on node %d, NIC on node %lld", l->name, l->core,
			 node, (long long)n->node.v))
		mr_hint(f, "choose one of `cat /sys/bus/pci/devices/%s/local_cpulist`", n->bdf);
}

void mr_check_pair_numa(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_PAIR(in, p) {
		const struct mr_facts_pci *g = gpu_pci(in, p->gpu), *n = nic_pci(in, p->nic);

		if (g->node.state != MR_FACT_KNOWN || n->node.state != MR_FACT_KNOWN ||
			g->node.v < 0 || n->node.v < 0)
			mr_find_unread(f, MR_FACT_ABSENT, "NUMA node of GPU or NIC");
		else if (g->node.v == n->node.v)
			mr_find(f, MR_PASS, "%s and %s on node %lld", g->bdf, n->bdf,
				(long long)g->node.v);
		else if (mr_find(f, MR_WARN, "%s on node %lld, %s on node %lld", g->bdf,
				 (long long)g->node.v, n->bdf, (long long)n->node.v))
			mr_hint(f, "pair devices of one node: `nvidia-smi topo -m`");
	}
	for (uint32_t i = 0; i < in->needs->lanes_count; i++)
		if (in->needs->lanes[i].core >= 0 &&
			in->needs->lanes[i].core < (int32_t)MR_CPUS_MAX &&
			in->needs->lanes[i].nic != MR_FACTS_NONE)
			judge_numa(in, &in->needs->lanes[i], f);
}

/* The module may be there without its version, and without what it shows in memory_peers. */
void mr_check_pair_peermem(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_facts_modules *m = &in->f->modules;
	const struct mr_fact_text *all[] = {&m->peermem, &m->memory_peers, &m->peermem_legacy};
	const struct mr_fact_text *have = NULL;
	bool integrated = true;

	MR_EACH_GPU(in, g)
		integrated &= in->f->gpus[g->gpu].probe.integrated.known &&
			in->f->gpus[g->gpu].probe.integrated.v != 0;
	if (integrated) {
		mr_find(f, MR_NA, "the GPU shares the host's memory");
		return;
	}
	for (size_t i = 0; i < MR_ARRAY_LEN(all); i++) {
		if (all[i]->state != MR_FACT_KNOWN && all[i]->state != MR_FACT_ABSENT) {
			mr_find_unread(f, all[i]->state, "peer-memory module");
			return;
		}
		if (have == NULL && all[i]->state == MR_FACT_KNOWN)
			have = all[i];
	}
	if (have == NULL && !m->peermem_loaded) {
		/* Modules from outside the kernel carry a version. */
		bool in_tree = m->mlx5_loaded && m->mlx5_core.state == MR_FACT_ABSENT;

		if (mr_find(f, MR_FAIL, "nvidia-peermem is not loaded%s",
			    in_tree ? ", and ib_core is the kernel's own" : "") &&
			in_tree)
			mr_hint(f,
				"it takes an ib_core that has ib_register_peer_memory_client, "
				"which "
				"comes with DOCA-OFED or MLNX_OFED: install that, build the NVIDIA "
				"modules anew, then `modprobe nvidia-peermem`");
		else if (!in_tree)
			mr_hint(f,
				"`modprobe nvidia-peermem`, and a line in /etc/modules-load.d to "
				"keep it");
	} else if (have == NULL || m->nvidia.state != MR_FACT_KNOWN) {
		if (mr_find(f, MR_UNKNOWN,
			    "nvidia-peermem is loaded; its version or the driver's is "
			    "not told"))
			mr_hint(f,
				"compare `modinfo -F version nvidia-peermem` with "
				"`modinfo -F version nvidia`");
	} else if (have == &m->peermem_legacy && strcmp(have->v, m->nvidia.v) != 0) {
		if (mr_find(f, MR_WARN, "nv_peer_mem %s, the module before nvidia-peermem",
			    have->v))
			mr_hint(f, "`rmmod nv_peer_mem; modprobe nvidia-peermem`");
	} else if (strcmp(have->v, m->nvidia.v) != 0) {
		if (mr_find(f, MR_FAIL, "peer-memory module %s, driver %s", have->v, m->nvidia.v))
			mr_hint(f,
				"build it anew with the driver, then "
				"`rmmod nvidia-peermem; modprobe nvidia-peermem`");
	} else {
		mr_find(f, MR_PASS, "%s%s", have->v,
			m->memory_peers.state == MR_FACT_KNOWN ? "" : ", without memory_peers");
	}
}

void mr_check_pair_dmabuf(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_NIC(in, n) {
		const struct mr_probe_value *v = &in->f->nics[n->nic].probe.dmabuf_errno;
		const char *bdf = nic_pci(in, n->nic)->bdf;

		if (!n->direct)
			continue;
		if (!v->known) {
			mr_find_unread(f, MR_FACT_UNREAD, "ibv_reg_dmabuf_mr");
		} else if (v->v == EBADF) {
			mr_find(f, MR_PASS, "%s offers it", bdf);
		} else if (v->v == EOPNOTSUPP || v->v == EPROTONOSUPPORT) {
			if (mr_find(f, MR_FAIL, "%s does not offer it (error %lld)", bdf,
				    (long long)v->v))
				mr_hint(f,
					"it takes Linux 5.12 and its mlx5_ib, or a newer driver "
					"package: "
					"`modinfo mlx5_ib`");
		} else if (mr_find(f, MR_UNKNOWN, "%s answers with error %lld", bdf,
				   (long long)v->v)) {
			mr_hint(f,
				"try it by hand: `ib_write_bw -d IBDEV --use_cuda=0 "
				"--use_cuda_dmabuf`");
		}
	}
}

/* The only authority over IOMMU, topology and module; whoever ran it leaves its verdict here. */
void mr_check_pair_readback(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_PAIR(in, p) {
		const struct mr_probe_pair *v = &in->f->pairs[p->gpu][p->nic];
		const char *gpu = gpu_pci(in, p->gpu)->bdf, *nic = nic_pci(in, p->nic)->bdf;

		if (v->register_errno.known && v->register_errno.v != 0) {
			if (mr_find(f, MR_FAIL, "%s cannot register memory of %s: %s", nic, gpu,
				    strerror((int)v->register_errno.v)))
				mr_hint(f,
					"the error hides its cause; look at pair.peermem, gpu.bar "
					"and "
					"limits.memlock, and at `dmesg | tail`");
		} else if (v->readback.known && v->readback.v == 0) {
			if (mr_find(f, MR_FAIL, "%s to %s: bytes differ", nic, gpu))
				mr_hint(f, "do not use this pair; look at iommu.type and pcie.acs");
		} else if (v->readback.known) {
			mr_find(f, MR_PASS, "%s to %s and back", nic, gpu);
		} else if (mr_find(f, MR_UNKNOWN, "%s to %s: %s", nic, gpu,
				   v->register_errno.known ? "registered, no bytes were sent"
							   : "nothing was tried")) {
			mr_hint(f,
				"nothing but bytes that arrive proves the path: `millrace doctor "
				"CONFIG --readback` sends them, with a plug or peer that returns "
				"frames and proof: {readback: port} in CONFIG");
		}
	}
}

void mr_check_pool_alignment(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_GPU(in, g) {
		if (!g->direct)
			continue;
		if (g->direct_bytes % GPU_PAGE == 0)
			mr_find(f, MR_PASS, "%s: %llu pages of 64 KiB", g->bdf,
				(unsigned long long)(g->direct_bytes / GPU_PAGE));
		else if (mr_find(f, MR_FAIL, "%s: %llu bytes are no whole pages", g->bdf,
				 (unsigned long long)g->direct_bytes))
			mr_hint(f, "write the device's region in multiples of 64KiB");
	}
}

void mr_check_register_time(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_GPU(in, g) {
		unsigned long long pages = g->direct_bytes / GPU_PAGE;

		if (!g->direct)
			continue;
		if (g->direct_bytes <= REGISTER_BYTES_MAX)
			mr_find(f, MR_PASS, "%s: %llu pages", g->bdf, pages);
		else if (mr_find(f, MR_WARN, "%s: %llu pages, which may take minutes to hours",
				 g->bdf, pages))
			mr_hint(f, "lower the device's region; time grows with its square");
	}
}
