/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_check_nic - checks 17 to 29: the NIC and its driver. */
#include "mr_checks_priv.h"

#include "mr_nearest.h"
#include "mr_parse.h"

#include <stdio.h>
#include <string.h>

#define MRRS_WANTED 4096u
#define VENDOR_MELLANOX 0x15b3u
#define BLUEFIELD_FIRST 0xa2d0u
#define BLUEFIELD_2 0xa2d6u

static const struct mr_facts_pci *pci_of(const struct mr_check_in *in, const struct mr_needs_nic *n)
{
	return &in->f->pci[in->f->nics[n->nic].pci];
}

static void judge_missing(const struct mr_check_in *in, const char *bdf, struct mr_finding *f)
{
	struct mr_nearest near;

	mr_nearest_init(&near, bdf);
	for (uint32_t i = 0; i < in->f->nics_count; i++)
		mr_nearest_offer(&near, in->f->pci[in->f->nics[i].pci].bdf);
	if (mr_find_left_out(in, f, bdf) ||
		!mr_find(f, MR_FAIL, "there is no network device at %s", bdf))
		return;
	if (mr_nearest_get(&near) != NULL)
		mr_hint(f, "is %s meant? `lspci -D -d ::0200` lists them", mr_nearest_get(&near));
	else
		mr_hint(f, "`lspci -D -d ::0200` lists the network devices");
}

/* DPDK drives the NICs of other makers alone, through one of these. */
static void judge_other(const struct mr_facts_pci *p, struct mr_finding *f)
{
	static const char *const drivers[] = {"vfio-pci", "uio_pci_generic", "igb_uio"};

	for (size_t i = 0; i < MR_ARRAY_LEN(drivers) && p->driver.state == MR_FACT_KNOWN; i++)
		if (strcmp(p->driver.v, drivers[i]) == 0) {
			mr_find(f, MR_PASS, "%s %s", p->bdf, drivers[i]);
			return;
		}
	if (p->driver.state != MR_FACT_KNOWN && p->driver.state != MR_FACT_ABSENT)
		mr_find_unread(f, p->driver.state, p->bdf);
	else if (mr_find(f, MR_FAIL, "%s is bound to %s", p->bdf,
			 p->driver.state == MR_FACT_KNOWN ? p->driver.v : "no driver"))
		mr_hint(f, "`modprobe vfio-pci`, then `dpdk-devbind.py -b vfio-pci %s`", p->bdf);
}

static void judge_driver(
	const struct mr_needs_nic *n, const struct mr_facts_pci *p, struct mr_finding *f)
{
	bool mellanox = p->vendor.state == MR_FACT_KNOWN && p->vendor.v == VENDOR_MELLANOX;

	if (p->vendor.state != MR_FACT_KNOWN) {
		mr_find_unread(f, p->vendor.state, p->bdf);
	} else if (!mellanox && n->direct) {
		/* A NIC of another maker may carry lanes, but not into a GPU's memory. */
		if (mr_find(f, MR_FAIL, "%s is no NVIDIA/Mellanox NIC", p->bdf))
			mr_hint(f,
				"only mlx5 reaches GPU memory: `lspci -D -d 15b3:` shows such "
				"NICs");
	} else if (!mellanox) {
		judge_other(p, f);
	} else if (p->driver.state == MR_FACT_ABSENT) {
		if (mr_find(f, MR_FAIL, "%s has no driver", p->bdf))
			mr_hint(f, "`modprobe mlx5_core`");
	} else if (p->driver.state != MR_FACT_KNOWN) {
		mr_find_unread(f, p->driver.state, p->bdf);
	} else if (strcmp(p->driver.v, "mlx5_core") == 0) {
		mr_find(f, MR_PASS, "%s mlx5_core", p->bdf);
	} else if (mr_find(f, MR_FAIL, "%s is bound to %s", p->bdf, p->driver.v)) {
		mr_hint(f,
			"mlx5 shares the NIC with its kernel driver, so bind it back: "
			"`echo %s > /sys/bus/pci/drivers/%s/unbind; "
			"echo %s > /sys/bus/pci/drivers/mlx5_core/bind`",
			p->bdf, p->driver.v, p->bdf);
	}
}

void mr_check_nic_driver(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_needs *needs = in->needs;

	for (uint32_t i = 0; i < needs->nics_count; i++)
		if (needs->nics[i].nic == MR_FACTS_NONE)
			judge_missing(in, needs->nics[i].bdf, f);
		else
			judge_driver(&needs->nics[i], pci_of(in, &needs->nics[i]), f);
	if (needs->configured || needs->nics_count > 0)
		return;
	if (in->f->pci_state != MR_FACT_KNOWN && in->f->pci_state != MR_FACT_ABSENT)
		mr_find_unread(f, in->f->pci_state, "list of PCI devices");
	else if (mr_find_left_out(in, f, "a NIC that reaches GPU memory"))
		return;
	else if (mr_find(f, MR_FAIL, "there is no NIC that reaches GPU memory"))
		mr_hint(f,
			"`lspci -D -d 15b3:` shows NVIDIA/Mellanox NICs; pass one to this machine");
}

/* One that does not say what it is may be a Mellanox. */
static bool needs_verbs(const struct mr_facts_pci *p)
{
	return p->vendor.state != MR_FACT_KNOWN || p->vendor.v == VENDOR_MELLANOX;
}

void mr_check_nic_nodes(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_NIC(in, n) {
		const struct mr_facts_nic *nic = &in->f->nics[n->nic];
		const char *bdf = pci_of(in, n)->bdf;

		if (nic->verbs.state == MR_FACT_KNOWN && nic->netdev.state == MR_FACT_KNOWN)
			mr_find(f, MR_PASS, "%s is %s and %s", bdf, nic->netdev.v, nic->verbs.v);
		else if (nic->verbs.state == MR_FACT_ABSENT ||
			nic->netdev.state == MR_FACT_ABSENT) {
			if (!n->direct && nic->netdev.state == MR_FACT_KNOWN)
				mr_find(f, MR_PASS, "%s is %s", bdf, nic->netdev.v);
			else if (!needs_verbs(pci_of(in, n)))
				mr_find(f, MR_PASS, "%s needs neither", bdf);
			else if (mr_find(f, MR_FAIL, "%s has no %s device", bdf,
					 nic->verbs.state == MR_FACT_ABSENT ? "verbs" : "network"))
				mr_hint(f,
					"`modprobe mlx5_ib`; in a container pass the device in, or "
					"`rdma system set netns shared`");
		} else
			mr_find_unread(f,
				nic->verbs.state != MR_FACT_KNOWN ? nic->verbs.state
								  : nic->netdev.state,
				bdf);
	}
}

static void judge_port(const struct mr_facts_nic *nic, const char *bdf, struct mr_finding *f)
{
	const struct mr_fact_text *all[] = {&nic->port_state, &nic->phys_state, &nic->link_layer};
	static const char *const wanted[] = {"ACTIVE", "LinkUp", "Ethernet"};

	for (size_t i = 0; i < MR_ARRAY_LEN(all); i++) {
		if (all[i]->state != MR_FACT_KNOWN)
			mr_find_unread(f, all[i]->state, bdf);
		else if (strcmp(all[i]->v, wanted[i]) != 0 &&
			mr_find(f, MR_FAIL, "%s is %s, not %s", bdf, all[i]->v, wanted[i])) {
			if (i == 2)
				mr_hint(f, "`mlxconfig -d %s set LINK_TYPE_P1=2`, then boot", bdf);
			else
				mr_hint(f, "look at cable and peer: `ethtool %s`",
					nic->netdev.state == MR_FACT_KNOWN ? nic->netdev.v
									   : "IFNAME");
		}
	}
	if (f->verdict < MR_WARN)
		mr_find(f, MR_PASS, "%s ACTIVE, Ethernet", bdf);
}

void mr_check_nic_port(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_NIC(in, n) {
		const struct mr_facts_nic *nic = &in->f->nics[n->nic];

		if (nic->verbs.state == MR_FACT_KNOWN)
			judge_port(nic, pci_of(in, n)->bdf, f);
		else if (n->direct)
			mr_find_unread(f, nic->verbs.state, "verbs device");
		else
			mr_find(f, MR_PASS, "%s needs no verbs", pci_of(in, n)->bdf);
	}
}

static void judge_link(
	const struct mr_needs_nic *n, const struct mr_facts_nic *nic, struct mr_finding *f)
{
	const char *name = nic->netdev.v;

	/* The kernel refuses to say where the interface is down: read, and not a number. */
	if (nic->carrier.state == MR_FACT_STRANGE ||
		(nic->carrier.state == MR_FACT_KNOWN && nic->carrier.v == 0)) {
		if (mr_find(f, MR_FAIL, "%s has no carrier", name))
			mr_hint(f, "`ip link set %s up`, then look at cable and peer", name);
	} else if (nic->carrier.state != MR_FACT_KNOWN) {
		mr_find_unread(f, nic->carrier.state, name);
	}
	if (nic->carrier_changes_later.state == MR_FACT_KNOWN &&
		nic->carrier_changes.state == MR_FACT_KNOWN &&
		nic->carrier_changes_later.v != nic->carrier_changes.v &&
		mr_find(f, MR_WARN, "%s lost its carrier while it was looked at", name))
		mr_hint(f, "a flapping link: `ethtool -S %s | grep -i phy`", name);
	if (nic->mtu.state != MR_FACT_KNOWN) {
		mr_find_unread(f, nic->mtu.state, "mtu");
	} else if (nic->mtu.v < n->mtu) {
		if (mr_find(f, MR_FAIL, "%s has MTU %llu, %u wanted", name,
			    (unsigned long long)nic->mtu.v, n->mtu))
			mr_hint(f, "`ip link set %s mtu %u`", name, n->mtu);
	}
	if (f->verdict < MR_WARN)
		mr_find(f, MR_PASS, "%s carrier, MTU %llu", name, (unsigned long long)nic->mtu.v);
}

void mr_check_nic_link(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_NIC(in, n) {
		const struct mr_facts_nic *nic = &in->f->nics[n->nic];

		if (nic->netdev.state == MR_FACT_KNOWN)
			judge_link(n, nic, f);
		else if (nic->netdev.state == MR_FACT_ABSENT && !n->direct &&
			!needs_verbs(pci_of(in, n)))
			mr_find(f, MR_PASS, "%s has no interface of the kernel: DPDK has it",
				pci_of(in, n)->bdf);
		else
			mr_find_unread(f, nic->netdev.state, "network device");
	}
}

/*
 * ConnectX-6 Dx and later, by the PCI id that names the type (MT4125 is 0x101d). BlueField's
 * numbers are higher than all of these, and the first of them holds a ConnectX-5.
 */
static bool has_hw_steering(const struct mr_facts_nic *nic)
{
	uint64_t type;
	const char *s = nic->hca_type.v;

	if (nic->hca_type.state != MR_FACT_KNOWN || strncmp(s, "MT", 2) != 0)
		return false;
	s += 2;
	return mr_parse_take_u64(&s, &type) && type >= 4125 &&
		(type < BLUEFIELD_FIRST || type >= BLUEFIELD_2);
}

/* "22.35.1012": family, then two numbers that grow. */
static bool parse_firmware(const char *s, uint64_t ret_parts[3])
{
	for (uint32_t i = 0; i < 3; i++)
		if (!mr_parse_take_u64(&s, &ret_parts[i]) || *s++ != (i < 2 ? '.' : '\0'))
			return false;
	return true;
}

void mr_check_nic_firmware(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_NIC(in, n) {
		const struct mr_facts_nic *nic = &in->f->nics[n->nic];
		bool hw = mr_check_option(n->args, "dv_flow_en") == 2;
		const char *bdf = pci_of(in, n)->bdf;
		uint64_t v[3];

		if (nic->verbs.state != MR_FACT_KNOWN && !n->direct) {
			mr_find(f, MR_PASS, "%s has no verbs", bdf);
		} else if (nic->firmware.state != MR_FACT_KNOWN) {
			mr_find_unread(f, nic->firmware.state, "firmware version");
		} else if (!parse_firmware(nic->firmware.v, v)) {
			mr_find_unread(f, MR_FACT_STRANGE, "firmware version");
		} else if (!hw ||
			(has_hw_steering(nic) && (v[1] > 35 || (v[1] == 35 && v[2] >= 1012)))) {
			mr_find(f, MR_PASS, "%s %s, firmware %s", bdf, nic->hca_type.v,
				nic->firmware.v);
		} else if (mr_find(f, MR_FAIL, "%s %s, firmware %s: no steering by dv_flow_en=2",
				   bdf, nic->hca_type.v, nic->firmware.v)) {
			mr_hint(f,
				"write dv_flow_en=1 in the port's options; 2 needs a ConnectX-6 Dx "
				"with firmware from xx.35.1012 on: `mlxfwmanager -d %s`",
				bdf);
		}
	}
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/* What both ends can; a GPU at rest lowers its speed, so there only the width counts. */
void mr_check_link_of(const struct mr_host_facts *h, const struct mr_facts_pci *p, bool rests,
	struct mr_finding *f)
{
	const struct mr_facts_pci *parent =
		p->chain_count > 0 ? &h->pci[p->chain[p->chain_count - 1]] : NULL;
	struct mr_pci_link can = p->link_max;
	char is[MR_PCI_LINK_BYTES], may[MR_PCI_LINK_BYTES];

	if (p->physfn == MR_FACT_KNOWN) {
		mr_find(f, MR_PASS, "%s is a virtual function", p->bdf);
		return;
	}
	if (parent != NULL) {
		can.width = least(can.width, parent->link_max.width);
		can.speed_mts = least(can.speed_mts, parent->link_max.speed_mts);
	}
	mr_pci_link_format(&p->link, is);
	mr_pci_link_format(&can, may);
	if (p->link.width == 0 || can.width == 0 ||
		(!rests && (p->link.speed_mts == 0 || can.speed_mts == 0))) {
		mr_find_unread(f, MR_FACT_ABSENT, p->bdf);
	} else if (p->link.width < can.width) {
		if (mr_find(f, MR_FAIL, "%s runs at %s, %s is possible", p->bdf, is, may))
			mr_hint(f, "reseat the card, look at riser and slot: `lspci -vv -s %s`",
				p->bdf);
	} else if (!rests && p->link.speed_mts < can.speed_mts) {
		if (mr_find(f, MR_WARN, "%s runs at %s, %s is possible", p->bdf, is, may))
			mr_hint(f, "signal quality or a BIOS limit: `lspci -vv -s %s`", p->bdf);
	} else {
		mr_find(f, MR_PASS, "%s %s%s", p->bdf, is, rests ? " (at rest)" : "");
	}
}

void mr_check_nic_pcie_link(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_NIC(in, n)
		mr_check_link_of(in->f, pci_of(in, n), false, f);
}

static void judge_mrrs(const struct mr_facts_pci *p, struct mr_finding *f)
{
	const struct mr_pci_express *e = &p->config.express;

	if (e->seen == MR_PCI_ABSENT) {
		mr_find(f, MR_PASS, "%s is not on PCI Express", p->bdf);
	} else if (e->seen != MR_PCI_PRESENT || (e->control_valid && e->mrrs_bytes == 0)) {
		if (mr_find(f, MR_UNKNOWN, "%s: %s", p->bdf,
			    mr_pci_config_reason(&p->config, e->seen)))
			mr_hint(f, "run it as root: `sudo millrace doctor`");
	} else if (!e->control_valid) {
		mr_find(f, MR_PASS, "%s is a virtual function", p->bdf);
	} else if (e->mrrs_bytes < MRRS_WANTED) {
		if (mr_find(f, MR_WARN, "%s reads %u bytes at a time", p->bdf, e->mrrs_bytes))
			mr_hint(f,
				"`setpci -s %s CAP_EXP+8.w=5000:7000`, and read it back: "
				"`setpci -s %s CAP_EXP+8.w`",
				p->bdf, p->bdf);
	} else {
		mr_find(f, MR_PASS, "%s %u", p->bdf, e->mrrs_bytes);
	}
}

void mr_check_nic_mrrs(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_NIC(in, n)
		judge_mrrs(pci_of(in, n), f);
}

static void judge_aer(
	const struct mr_facts_pci *p, const struct mr_fact_u64 *later, struct mr_finding *f)
{
	uint64_t now = p->aer_fatal.v + p->aer_nonfatal.v;

	if (p->aer_fatal.state == MR_FACT_ABSENT && p->aer_nonfatal.state == MR_FACT_ABSENT) {
		mr_find(f, MR_PASS, "%s keeps no count", p->bdf);
		return;
	}
	if (p->aer_fatal.state != MR_FACT_KNOWN || p->aer_nonfatal.state != MR_FACT_KNOWN) {
		mr_find_unread(f, MR_FACT_STRANGE, p->bdf);
		return;
	}
	if (later->state == MR_FACT_KNOWN && later->v != now) {
		if (mr_find(f, MR_FAIL, "%s: errors grow, %llu more while it was looked at", p->bdf,
			    (unsigned long long)(later->v - now)))
			mr_hint(f, "reseat the card: `dmesg | grep -i aer`");
	} else if (now != 0) {
		if (mr_find(f, MR_WARN, "%s: %llu fatal, %llu nonfatal since boot", p->bdf,
			    (unsigned long long)p->aer_fatal.v,
			    (unsigned long long)p->aer_nonfatal.v))
			mr_hint(f, "see what they were: `dmesg | grep -i aer`");
	} else {
		mr_find(f, MR_PASS, "%s none", p->bdf);
	}
}

void mr_check_pcie_aer(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_NIC(in, n)
		judge_aer(pci_of(in, n), &in->f->nics[n->nic].aer_later, f);
	MR_EACH_GPU(in, g)
		judge_aer(&in->f->pci[in->f->gpus[g->gpu].pci], &in->f->gpus[g->gpu].aer_later, f);
}

/* What only a probe knows of a NIC without verbs is nobody's to judge. */
static bool asked(const struct mr_check_in *in, const struct mr_needs_nic *n, struct mr_finding *f)
{
	const struct mr_facts_pci *p = pci_of(in, n);

	if (p->vendor.state != MR_FACT_KNOWN || p->vendor.v == VENDOR_MELLANOX)
		return true;
	mr_find(f, MR_PASS, "%s is not asked", p->bdf);
	return false;
}

void mr_check_nic_pause(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_NIC(in, n) {
		const struct mr_facts_nic *nic = &in->f->nics[n->nic];
		const struct mr_probe_nic *p = &nic->probe;

		if (!asked(in, n, f))
			continue;
		if (!p->pause_rx.known || !p->pause_tx.known) {
			mr_find_unread(f, MR_FACT_UNREAD, "pause setting");
		} else if (p->pause_rx.v != 0 || p->pause_tx.v != 0) {
			if (mr_find(f, MR_WARN, "%s: receive %s, send %s", pci_of(in, n)->bdf,
				    p->pause_rx.v != 0 ? "on" : "off",
				    p->pause_tx.v != 0 ? "on" : "off"))
				mr_hint(f,
					"a paused link throttles while all drop counters stay 0: "
					"`ethtool -A %s rx off tx off`",
					nic->netdev.state == MR_FACT_KNOWN ? nic->netdev.v
									   : "IFNAME");
		} else {
			mr_find(f, MR_PASS, "%s off", pci_of(in, n)->bdf);
		}
	}
}

void mr_check_nic_health(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_NIC(in, n) {
		const struct mr_probe_nic *p = &in->f->nics[n->nic].probe;
		const char *bdf = pci_of(in, n)->bdf;

		if (!asked(in, n, f))
			continue;
		if (!p->health_bad.known) {
			mr_find_unread(f, MR_FACT_UNREAD, "devlink health");
		} else if (p->health_bad.v != 0) {
			if (mr_find(f, MR_FAIL, "%s: %lld reporters are not healthy", bdf,
				    (long long)p->health_bad.v))
				mr_hint(f, "`devlink health show`, under pci/%s", bdf);
		} else if (p->health_errors.known && p->health_errors.v != 0) {
			if (mr_find(f, MR_WARN, "%s: healthy after %lld errors", bdf,
				    (long long)p->health_errors.v))
				mr_hint(f, "`devlink health show`, under pci/%s", bdf);
		} else {
			mr_find(f, MR_PASS, "%s healthy", bdf);
		}
	}
}

/* Modules from outside the kernel carry a version; mixed ones do not fit each other. */
void mr_check_nic_stack(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_facts_modules *m = &in->f->modules;
	bool core = m->mlx5_core.state == MR_FACT_KNOWN, ib = m->ib_core.state == MR_FACT_KNOWN;

	if (m->mlx5_core.state == MR_FACT_UNREAD)
		mr_find_unread(f, MR_FACT_UNREAD, "module versions");
	else if (!m->mlx5_loaded)
		mr_find(f, MR_PASS, "mlx5_core is not loaded");
	else if (m->mlx5_core.state == MR_FACT_DENIED || m->ib_core.state == MR_FACT_DENIED)
		mr_find_unread(f, MR_FACT_DENIED, "module versions");
	else if (core && ib)
		mr_find(f, MR_PASS, "out of the kernel's tree, %s", m->mlx5_core.v);
	else if (!core && !ib)
		mr_find(f, MR_PASS, "of the kernel itself");
	else if (mr_find(f, MR_FAIL, "%s is of the kernel, %s is not",
			 core ? "ib_core" : "mlx5_core", core ? "mlx5_core" : "ib_core"))
		mr_hint(f,
			"install the NIC's driver package again and boot: `modinfo mlx5_core "
			"ib_core`");
}
