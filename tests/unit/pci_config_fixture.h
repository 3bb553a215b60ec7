/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A machine's configuration space by hand, and what holds for any bytes whatever.
 */
#ifndef PCI_CONFIG_FIXTURE_H
#define PCI_CONFIG_FIXTURE_H

#include "mr_pci_config.h"

#include <string.h>

static inline void put16(uint8_t *b, uint32_t at, uint32_t value)
{
	b[at] = (uint8_t)value;
	b[at + 1] = (uint8_t)(value >> 8);
}

static inline void put32(uint8_t *b, uint32_t at, uint32_t value)
{
	put16(b, at, value);
	put16(b, at + 2, value >> 16);
}

/*
 * A NIC: power management at 40, express at 60, x16 32 GT/s of which it runs x8 16 GT/s;
 * error reporting at 100, ACS at 150, resizable BAR at 180, SR-IOV at 1c0.
 */
static inline void make_nic(uint8_t b[MR_PCI_CONFIG_BYTES])
{
	memset(b, 0, MR_PCI_CONFIG_BYTES);
	put32(b, 0x00, 0x102115b3);
	put32(b, 0x04, 0x00100406);
	put32(b, 0x08, 0x02000000);
	b[0x0e] = 0x80;
	put32(b, 0x10, 0xe000000c);
	b[0x34] = 0x40;
	put16(b, 0x40, 0x6001);
	put16(b, 0x60, 0x0010);
	put16(b, 0x62, 0x0002);
	put32(b, 0x64, 0x10008de2);
	put16(b, 0x68, 0x5936);
	put32(b, 0x6c, 0x00000105);
	put16(b, 0x72, 0x1084);
	put32(b, 0x100, 0x15020001);
	put32(b, 0x150, 0x1801000d);
	put16(b, 0x154, 0x005c);
	put16(b, 0x156, 0x000c);
	put32(b, 0x180, 0x1c010015);
	put32(b, 0x184, 0x0007fff0);
	put32(b, 0x188, 0x00000d22);
	put32(b, 0x190, 0x00000a05);
	put32(b, 0x18c, 0x00000400);
	put32(b, 0x1c0, 0x00010010);
	put16(b, 0x1c8, 0x0009);
	put16(b, 0x1ce, 16);
	put16(b, 0x1d0, 4);
}

/* Are size bytes at p, behind the member seen, all 0? */
static inline bool blank(const void *p, size_t size)
{
	const uint8_t *b = p;

	for (size_t i = sizeof(enum mr_pci_seen); i < size; i++)
		if (b[i] != 0)
			return false;
	return true;
}

static inline bool link_holds(const struct mr_pci_link *l)
{
	static const uint32_t speeds[] = {0, 2500, 5000, 8000, 16000, 32000, 64000};
	bool speed = false;

	for (size_t i = 0; i < MR_ARRAY_LEN(speeds); i++)
		speed |= l->speed_mts == speeds[i];
	return speed && l->width <= 32;
}

/* What holds for size bytes of any kind: no part has values unless it is there. */
static inline bool pci_config_holds(const struct mr_pci_config *c, size_t size)
{
	const struct mr_pci_express *e = &c->express;

	if (c->bytes != (size < MR_PCI_CONFIG_BYTES ? size : MR_PCI_CONFIG_BYTES))
		return false;
	if ((size < 64) != (c->header == MR_PCI_UNREAD) || c->header == MR_PCI_ABSENT)
		return false;
	if (c->header != MR_PCI_PRESENT && (c->vendor | c->device | c->class_code) != 0)
		return false;
	if (size <= 64 && e->seen == MR_PCI_PRESENT)
		return false;
	if (size <= 256 &&
		(c->acs.seen == MR_PCI_PRESENT || c->rebar.seen == MR_PCI_PRESENT ||
			c->sriov.seen == MR_PCI_PRESENT))
		return false;
	if ((e->seen != MR_PCI_PRESENT && !blank(e, sizeof(*e))) ||
		(c->acs.seen != MR_PCI_PRESENT && !blank(&c->acs, sizeof(c->acs))) ||
		(c->rebar.seen != MR_PCI_PRESENT && !blank(&c->rebar, sizeof(c->rebar))) ||
		(c->sriov.seen != MR_PCI_PRESENT && !blank(&c->sriov, sizeof(c->sriov))))
		return false;
	if (e->mps_bytes > e->mps_supported_bytes || e->mps_supported_bytes > 4096 ||
		e->mrrs_bytes > 4096 || !link_holds(&e->link) || !link_holds(&e->link_max) ||
		(c->virtual_function && e->control_valid))
		return false;
	if (c->rebar.count > MR_PCI_REBARS_MAX || c->sriov.vfs > c->sriov.vfs_total ||
		(c->acs.control & ~c->acs.supported) != 0)
		return false;
	for (uint32_t i = 0; i < c->rebar.count; i++)
		if (c->rebar.bars[i].bar > 5)
			return false;
	/* Every state has its words. */
	return strcmp(mr_pci_config_reason(c, e->seen), "unknown") != 0;
}

#endif
