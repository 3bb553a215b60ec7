/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_check_kernel - checks 1 to 7: kernel and platform. */
#include "mr_checks_priv.h"

#include "mr_parse.h"

#include <stdio.h>
#include <string.h>

#define DMABUF_MAJOR 5 /* ibv_reg_dmabuf_mr's kernel side came with 5.12 */
#define DMABUF_MINOR 12

void mr_check_kernel_release(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_fact_text *release = &in->f->kernel.release;
	const char *s = release->v;
	uint64_t major, minor;

	if (release->state != MR_FACT_KNOWN || !mr_parse_take_u64(&s, &major) || *s++ != '.' ||
		!mr_parse_take_u64(&s, &minor))
		mr_find_unread(f,
			release->state == MR_FACT_KNOWN ? MR_FACT_STRANGE : release->state,
			"kernel release");
	else if (major > DMABUF_MAJOR || (major == DMABUF_MAJOR && minor >= DMABUF_MINOR))
		mr_find(f, MR_PASS, "%s", release->v);
	else if (mr_find(f, MR_FAIL, "%s is older than 5.12", release->v))
		mr_hint(f,
			"install a kernel from 5.12 on, or a DPDK that registers by "
			"nvidia-peermem");
}

/* Whoever holds a device through vfio maps for it what it may reach, a BAR as well. */
static bool by_vfio(const struct mr_facts_pci *p)
{
	return p->driver.state == MR_FACT_KNOWN && strcmp(p->driver.v, "vfio-pci") == 0;
}

static void judge_iommu(
	const struct mr_check_in *in, const struct mr_facts_pci *p, struct mr_finding *f)
{
	if (p->iommu.state == MR_FACT_ABSENT) {
		mr_find(f, MR_PASS, "%s has no IOMMU group", p->bdf);
	} else if (p->iommu.state != MR_FACT_KNOWN) {
		mr_find_unread(f, p->iommu.state, p->bdf);
	} else if (strcmp(p->iommu.v, "identity") == 0) {
		mr_find(f, MR_PASS, "%s is mapped one to one", p->bdf);
	} else if (mr_check_translates(p) && by_vfio(p)) {
		mr_find(f, MR_PASS, "%s is translated, by mappings of vfio-pci alone", p->bdf);
	} else if (mr_check_translates(p)) {
		/* With dma-buf the kernel maps the peer for the NIC; the read-back decides. */
		enum mr_check_verdict v = mr_check_by_dmabuf(in) ? MR_WARN : MR_FAIL;

		if (mr_find(f, v, "%s is translated (%s)", p->bdf, p->iommu.v))
			mr_hint(f,
				"boot with the kernel parameter iommu=pt, then look again: "
				"`cat /sys/kernel/iommu_groups/*/type`");
	} else if (mr_find(f, MR_WARN, "%s is in a group of type %s", p->bdf, p->iommu.v)) {
		mr_hint(f, "the group belongs to another driver: `lspci -k -s %s`", p->bdf);
	}
}

void mr_check_iommu_type(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_GPU(in, g)
		if (g->direct)
			judge_iommu(in, &in->f->pci[in->f->gpus[g->gpu].pci], f);
	MR_EACH_NIC(in, n)
		if (n->direct)
			judge_iommu(in, &in->f->pci[in->f->nics[n->nic].pci], f);
	MR_EACH_PAIR(in, p)
		if (in->f->gpus[p->gpu].stand_in)
			judge_iommu(in, &in->f->pci[in->f->nics[p->nic].pci], f);
}

static bool disturbs(const struct mr_facts_pci *p)
{
	return mr_check_translates(p) && !by_vfio(p);
}

void mr_check_iommu_cmdline(const struct mr_check_in *in, struct mr_finding *f)
{
	static const char *const words[] = {
		"iommu=pt", "iommu=off", "intel_iommu=off", "amd_iommu=off", "iommu.passthrough=1"};
	const char *said = NULL;
	bool translates = false;

	if (in->f->kernel.cmdline_state != MR_FACT_KNOWN) {
		mr_find_unread(f, in->f->kernel.cmdline_state, "/proc/cmdline");
		return;
	}
	for (size_t i = 0; i < MR_ARRAY_LEN(words) && said == NULL; i++)
		if (mr_parse_token(in->f->kernel.cmdline, words[i]) != NULL)
			said = words[i];
	MR_EACH_PAIR(in, p)
		translates |= disturbs(&in->f->pci[in->f->gpus[p->gpu].pci]) ||
			disturbs(&in->f->pci[in->f->nics[p->nic].pci]);
	if (said != NULL && translates) {
		if (mr_find(f, MR_WARN, "%s was asked for, and a device is translated all the same",
			    said))
			mr_hint(f,
				"a later parameter or a driver changed it: `dmesg | grep -i "
				"iommu`");
	} else if (said != NULL) {
		mr_find(f, MR_PASS, "%s", said);
	} else if (translates) {
		if (mr_find(f, MR_WARN, "no iommu=pt, and a device is translated"))
			mr_hint(f, "add iommu=pt to the kernel's parameters and boot");
	} else {
		mr_find(f, MR_PASS, "no iommu=pt, and nothing is translated");
	}
}

static void judge_acs(const struct mr_check_in *in, const struct mr_facts_pci *b, bool near,
	bool translates, struct mr_finding *f)
{
	const struct mr_pci_acs *acs = &b->config.acs;
	enum mr_check_verdict v = near && translates ? MR_FAIL : MR_WARN;

	(void)in;
	if (acs->seen == MR_PCI_ABSENT)
		return;
	if (acs->seen != MR_PCI_PRESENT) {
		if (mr_find(f, MR_UNKNOWN, "%s: %s", b->bdf,
			    mr_pci_config_reason(&b->config, acs->seen)))
			mr_hint(f, "run it as root: `sudo millrace doctor`");
	} else if ((acs->control & MR_PCI_ACS_DETOUR) != 0 &&
		mr_find(f, v, "%s sends peer traffic to the root (ACS 0x%02x)", b->bdf,
			acs->control)) {
		mr_hint(f,
			"switch ACS off in the BIOS, or after each boot: "
			"`setpci -s %s ECAP_ACS+6.w=0`",
			b->bdf);
	}
}

void mr_check_pcie_acs(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_PAIR(in, p) {
		const struct mr_topology_pair *pair =
			mr_facts_topology_pair(in->topology, in->f, p->gpu, p->nic);
		uint32_t way[2 * MR_FACTS_CHAIN_MAX];
		uint32_t count = mr_check_way(in->f, p->gpu, p->nic, way);
		bool near = pair != NULL && pair->near <= MR_TOPOLOGY_PXB;
		bool translates = mr_check_translates(&in->f->pci[in->f->nics[p->nic].pci]);

		for (uint32_t i = 0; i < count; i++)
			judge_acs(in, &in->f->pci[way[i]], near, translates, f);
		if (in->f->pci[in->f->nics[p->nic].pci].path[0] == '\0' ||
			in->f->pci[in->f->gpus[p->gpu].pci].path[0] == '\0')
			mr_find_unread(f, MR_FACT_ABSENT, "place of a device in the PCI tree");
	}
	if (f->value[0] == '\0')
		mr_find(f, MR_PASS, "no bridge on the way redirects peer traffic");
}

void mr_check_kernel_lockdown(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_fact_text *l = &in->f->kernel.lockdown;

	if (l->state == MR_FACT_ABSENT)
		mr_find(f, MR_PASS, "this kernel has no lockdown");
	else if (l->state == MR_FACT_UNREAD) {
		if (mr_find(f, MR_UNKNOWN, "securityfs is not mounted here"))
			mr_hint(f,
				"`mount -t securityfs securityfs /sys/kernel/security`, or ask "
				"outside the container");
	} else if (l->state != MR_FACT_KNOWN)
		mr_find_unread(f, l->state, "lockdown");
	else if (strcmp(l->v, "none") == 0)
		mr_find(f, MR_PASS, "none");
	else if (mr_find(f, MR_WARN, "%s", l->v))
		mr_hint(f,
			"setpci writes are dropped in silence under lockdown; set PCIe values in "
			"the BIOS, or switch Secure Boot off: `mokutil --sb-state`");
}

void mr_check_kernel_clocksource(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_fact_text *c = &in->f->kernel.clocksource;

	if (c->state != MR_FACT_KNOWN)
		mr_find_unread(f, c->state, "clock source");
	else if (strcmp(c->v, "tsc") == 0 || strcmp(c->v, "arch_sys_counter") == 0 ||
		strcmp(c->v, "kvm-clock") == 0) /* all read in user space */
		mr_find(f, MR_PASS, "%s", c->v);
	else if (mr_find(f, MR_WARN, "%s", c->v))
		mr_hint(f,
			"the kernel gave the TSC up; see why with `dmesg | grep -i tsc`, and boot "
			"with tsc=reliable where it is known to be good");
}

static void judge_zero(struct mr_finding *f, const struct mr_fact_u64 *v, const char *name)
{
	if (v->state == MR_FACT_ABSENT)
		mr_find(f, MR_PASS, "no %s", name);
	else if (v->state != MR_FACT_KNOWN)
		mr_find_unread(f, v->state, name);
	else if (v->v == 0)
		mr_find(f, MR_PASS, "%s 0", name);
	else if (mr_find(f, MR_WARN, "%s %llu", name, (unsigned long long)v->v))
		mr_hint(f, "`sysctl -w %s=0`, and a file in /etc/sysctl.d to keep it", name);
}

void mr_check_kernel_numa_balancing(const struct mr_check_in *in, struct mr_finding *f)
{
	judge_zero(f, &in->f->kernel.numa_balancing, "kernel.numa_balancing");
	judge_zero(f, &in->f->kernel.zone_reclaim_mode, "vm.zone_reclaim_mode");
}
