/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_pci_config.h"

#include <linux/pci_regs.h>
#include <string.h>

#define HEADER_BYTES 64u
#define CONVENTIONAL_BYTES 256u
#define ALL_ONES UINT32_MAX
#define CAPABILITY_NONE 0u

struct space {
	const uint8_t *bytes;
	uint32_t size;
};

/* Little-endian values; the caller has looked that they are there. */
static uint16_t get16(const struct space *s, uint32_t at)
{
	return (uint16_t)(s->bytes[at] | s->bytes[at + 1] << 8);
}

static uint32_t get32(const struct space *s, uint32_t at)
{
	return get16(s, at) | (uint32_t)get16(s, at + 2) << 16;
}

static bool all_ones(const struct space *s, uint32_t from, uint32_t to)
{
	while (from < to)
		if (s->bytes[from++] != 0xff)
			return false;
	return true;
}

/* Its BARs are those of the physical function, so that its own are wired to 0. */
static bool is_virtual(const struct space *s)
{
	if (get32(s, PCI_VENDOR_ID) != ALL_ONES ||
		(s->bytes[PCI_HEADER_TYPE] & PCI_HEADER_TYPE_MASK) != PCI_HEADER_TYPE_NORMAL)
		return false;
	for (uint32_t at = PCI_BASE_ADDRESS_0; at <= PCI_BASE_ADDRESS_5; at += 4)
		if (get32(s, at) != 0)
			return false;
	return true;
}

static void parse_header(const struct space *s, struct mr_pci_config *c)
{
	uint32_t id;
	uint16_t vendor;
	uint8_t type;

	if (s->size < HEADER_BYTES)
		return;
	id = get32(s, PCI_VENDOR_ID);
	if (all_ones(s, 0, HEADER_BYTES) || id == 0xffff0001u) {
		/* Or it is still starting: "configuration request retry". */
		c->header = MR_PCI_LOST;
		return;
	}
	c->header = MR_PCI_BROKEN;
	type = s->bytes[PCI_HEADER_TYPE] & PCI_HEADER_TYPE_MASK;
	vendor = get16(s, PCI_VENDOR_ID);
	/* Nobody has vendor 0, 1 (see above) or ffff. */
	if (type > PCI_HEADER_TYPE_CARDBUS || (!is_virtual(s) && (vendor <= 1 || vendor == 0xffff)))
		return;
	c->header = MR_PCI_PRESENT;
	c->header_type = type;
	c->virtual_function = is_virtual(s);
	if (!c->virtual_function) {
		c->vendor = vendor;
		c->device = get16(s, PCI_DEVICE_ID);
	}
	c->class_code = get32(s, PCI_CLASS_REVISION) >> 8;
	c->multifunction = (s->bytes[PCI_HEADER_TYPE] & 0x80) != 0;
	if (c->header_type != PCI_HEADER_TYPE_NORMAL) {
		c->bus_secondary = s->bytes[PCI_SECONDARY_BUS];
		c->bus_subordinate = s->bytes[PCI_SUBORDINATE_BUS];
	}
}

/*
 * Finds capability id in the conventional list, and walks it to its end all the same: a
 * list that does not end is no witness for anything in it.
 */
static enum mr_pci_seen find(
	const struct space *s, uint32_t header_type, uint8_t id, uint32_t *ret_at)
{
	bool visited[CONVENTIONAL_BYTES / 4] = {false};
	uint32_t first = header_type == PCI_HEADER_TYPE_CARDBUS ? PCI_CB_CAPABILITY_LIST
								: PCI_CAPABILITY_LIST;
	uint32_t at;

	*ret_at = 0;
	if ((get16(s, PCI_STATUS) & PCI_STATUS_CAP_LIST) == 0)
		return MR_PCI_ABSENT;
	for (at = s->bytes[first] & ~3u; at != 0; at = s->bytes[at + PCI_CAP_LIST_NEXT] & ~3u) {
		if (at < HEADER_BYTES || visited[at / 4])
			return MR_PCI_BROKEN;
		visited[at / 4] = true;
		if (at + 2 > s->size)
			return MR_PCI_UNREAD;
		if (s->bytes[at] == 0xff)
			return all_ones(s, at, s->size) ? MR_PCI_LOST : MR_PCI_BROKEN;
		if (s->bytes[at] == id && *ret_at == 0)
			*ret_at = at;
	}
	return *ret_at != 0 ? MR_PCI_PRESENT : MR_PCI_ABSENT;
}

/* The same for the extended list. */
static enum mr_pci_seen find_extended(const struct space *s, uint16_t id, uint32_t *ret_at)
{
	bool visited[MR_PCI_CONFIG_BYTES / 4] = {false};
	uint32_t at = CONVENTIONAL_BYTES;
	uint32_t header;

	*ret_at = 0;
	for (; at != 0; at = PCI_EXT_CAP_NEXT(header)) {
		if (at < CONVENTIONAL_BYTES || visited[at / 4])
			return MR_PCI_BROKEN;
		visited[at / 4] = true;
		if (at + 4 > s->size)
			return MR_PCI_UNREAD;
		header = get32(s, at);
		if (header == ALL_ONES)
			return all_ones(s, at, s->size) ? MR_PCI_LOST : MR_PCI_BROKEN;
		if (PCI_EXT_CAP_ID(header) != CAPABILITY_NONE && PCI_EXT_CAP_VER(header) == 0)
			return MR_PCI_BROKEN;
		if (PCI_EXT_CAP_ID(header) == id && *ret_at == 0)
			*ret_at = at;
	}
	return *ret_at != 0 ? MR_PCI_PRESENT : MR_PCI_ABSENT;
}

static uint32_t payload_bytes(uint32_t code)
{
	return code <= 5 ? 128u << code : 0;
}

static struct mr_pci_link link_of(uint32_t reg)
{
	static const uint32_t speeds[16] = {0, 2500, 5000, 8000, 16000, 32000, 64000};
	uint32_t width = (reg & PCI_EXP_LNKSTA_NLW) >> PCI_EXP_LNKSTA_NLW_SHIFT;
	bool known = width == 12 || (width <= 32 && (width & (width - 1)) == 0);

	return (struct mr_pci_link){speeds[reg & PCI_EXP_LNKSTA_CLS], known ? width : 0};
}

/* Does a port of that type have a header of that type? */
static bool port_fits(uint32_t port, uint32_t header_type)
{
	switch (port) {
	case PCI_EXP_TYPE_ENDPOINT:
	case PCI_EXP_TYPE_LEG_END:
	case PCI_EXP_TYPE_RC_END:
	case PCI_EXP_TYPE_RC_EC:
		return header_type == PCI_HEADER_TYPE_NORMAL;
	case PCI_EXP_TYPE_ROOT_PORT:
	case PCI_EXP_TYPE_UPSTREAM:
	case PCI_EXP_TYPE_DOWNSTREAM:
	case PCI_EXP_TYPE_PCI_BRIDGE:
	case PCI_EXP_TYPE_PCIE_BRIDGE:
		return header_type == PCI_HEADER_TYPE_BRIDGE;
	}
	return false;
}

static void parse_control(const struct space *s, uint32_t at, struct mr_pci_express *e)
{
	uint16_t control = get16(s, at + PCI_EXP_DEVCTL);

	e->control_valid = true;
	e->mps_bytes = payload_bytes((control & PCI_EXP_DEVCTL_PAYLOAD) >> 5);
	/* More than it can is what no driver sets. */
	if (e->mps_bytes > e->mps_supported_bytes)
		e->mps_bytes = 0;
	e->mrrs_bytes = payload_bytes((control & PCI_EXP_DEVCTL_READRQ) >> 12);
	e->relaxed_ordering = (control & PCI_EXP_DEVCTL_RELAX_EN) != 0;
	e->extended_tag = (control & PCI_EXP_DEVCTL_EXT_TAG) != 0;
	e->no_snoop = (control & PCI_EXP_DEVCTL_NOSNOOP_EN) != 0;
}

static void parse_express(
	const struct space *s, const struct mr_pci_config *c, struct mr_pci_express *e)
{
	uint32_t at, capability, port;
	uint16_t flags;

	e->seen = find(s, c->header_type, PCI_CAP_ID_EXP, &at);
	if (e->seen != MR_PCI_PRESENT)
		return;
	if (at + PCI_EXP_LNKSTA + 2 > s->size) {
		e->seen = s->size < CONVENTIONAL_BYTES ? MR_PCI_UNREAD : MR_PCI_BROKEN;
		return;
	}
	flags = get16(s, at + PCI_EXP_FLAGS);
	capability = get32(s, at + PCI_EXP_DEVCAP);
	port = (flags & PCI_EXP_FLAGS_TYPE) >> 4;
	if ((flags & PCI_EXP_FLAGS_VERS) == 0 || capability == ALL_ONES ||
		!port_fits(port, c->header_type)) {
		e->seen = MR_PCI_BROKEN;
		return;
	}
	e->port = port;
	e->mps_supported_bytes = payload_bytes(capability & PCI_EXP_DEVCAP_PAYLOAD);
	e->extended_tag_supported = (capability & PCI_EXP_DEVCAP_EXT_TAG) != 0;
	if (!c->virtual_function)
		parse_control(s, at, e);
	if (port != PCI_EXP_TYPE_RC_END && port != PCI_EXP_TYPE_RC_EC) {
		e->link_max = link_of(get32(s, at + PCI_EXP_LNKCAP));
		if (!c->virtual_function)
			e->link = link_of(get16(s, at + PCI_EXP_LNKSTA));
	}
	/* Speed without width or the other way round is a link that is not up. */
	if (e->link.speed_mts == 0 || e->link.width == 0)
		e->link = (struct mr_pci_link){0, 0};
	e->slot = (flags & PCI_EXP_FLAGS_SLOT) != 0 &&
		(port == PCI_EXP_TYPE_ROOT_PORT || port == PCI_EXP_TYPE_DOWNSTREAM);
	if (e->slot && at + PCI_EXP_SLTCTL <= s->size)
		e->slot_number = (uint16_t)(get32(s, at + PCI_EXP_SLTCAP) >> 19);
}

/* Finds an extended capability with all bytes that it needs. */
static enum mr_pci_seen locate(const struct space *s, const struct mr_pci_config *c, uint16_t id,
	uint32_t bytes, uint32_t *ret_at)
{
	enum mr_pci_seen seen;

	if (c->express.seen != MR_PCI_PRESENT)
		return c->express.seen; /* without express there is no extended space */
	seen = find_extended(s, id, ret_at);
	if (seen == MR_PCI_PRESENT && *ret_at + bytes > s->size)
		seen = s->size < MR_PCI_CONFIG_BYTES ? MR_PCI_UNREAD : MR_PCI_BROKEN;
	return seen;
}

static void parse_acs(const struct space *s, const struct mr_pci_config *c, struct mr_pci_acs *a)
{
	uint32_t at;

	a->seen = locate(s, c, PCI_EXT_CAP_ID_ACS, 8, &at);
	if (a->seen != MR_PCI_PRESENT)
		return;
	a->supported = get16(s, at + PCI_ACS_CAP) & 0x7f;
	a->control = get16(s, at + PCI_ACS_CTRL) & 0x7f;
	if ((a->control & ~a->supported) != 0)
		*a = (struct mr_pci_acs){.seen = MR_PCI_BROKEN};
}

static void parse_rebar(
	const struct space *s, const struct mr_pci_config *c, struct mr_pci_rebar *r)
{
	uint32_t at, control, count, code;

	r->seen = locate(s, c, PCI_EXT_CAP_ID_REBAR, 12, &at);
	if (r->seen != MR_PCI_PRESENT)
		return;
	count = (get32(s, at + PCI_REBAR_CTRL) & PCI_REBAR_CTRL_NBAR_MASK) >>
		PCI_REBAR_CTRL_NBAR_SHIFT;
	r->seen = MR_PCI_BROKEN;
	if (count == 0 || count > MR_PCI_REBARS_MAX || at + 4 + 8 * count > s->size)
		return;
	for (uint32_t i = 0; i < count; i++, at += 8) {
		control = get32(s, at + PCI_REBAR_CTRL);
		code = control >> PCI_REBAR_CTRL_BAR_SHIFT & 0x3f;
		r->bars[i].bar = control & PCI_REBAR_CTRL_BAR_IDX;
		r->bars[i].supported_sizes =
			get32(s, at + PCI_REBAR_CAP) >> 4 | (uint64_t)(control >> 16) << 28;
		r->bars[i].bytes = code <= 43 ? 1ull << (20 + code) : 0;
		if (r->bars[i].bar > 5) {
			memset(r->bars, 0, sizeof(r->bars));
			return;
		}
	}
	r->count = count;
	r->seen = MR_PCI_PRESENT;
}

static void parse_sriov(
	const struct space *s, const struct mr_pci_config *c, struct mr_pci_sriov *v)
{
	uint32_t at;

	v->seen = locate(s, c, PCI_EXT_CAP_ID_SRIOV, PCI_EXT_CAP_SRIOV_SIZEOF, &at);
	if (v->seen != MR_PCI_PRESENT)
		return;
	v->enabled = (get16(s, at + PCI_SRIOV_CTRL) & PCI_SRIOV_CTRL_VFE) != 0;
	v->vfs_total = get16(s, at + PCI_SRIOV_TOTAL_VF);
	v->vfs = get16(s, at + PCI_SRIOV_NUM_VF);
	if (v->vfs > v->vfs_total)
		*v = (struct mr_pci_sriov){.seen = MR_PCI_BROKEN};
}

void mr_pci_config_parse(const void *bytes, size_t size, struct mr_pci_config *ret_config)
{
	struct mr_pci_config *c = ret_config;
	struct space s = {
		bytes, (uint32_t)(size < MR_PCI_CONFIG_BYTES ? size : MR_PCI_CONFIG_BYTES)};

	memset(c, 0, sizeof(*c));
	c->bytes = s.size;
	parse_header(&s, c);
	if (c->header != MR_PCI_PRESENT) {
		c->express.seen = c->acs.seen = c->rebar.seen = c->sriov.seen = c->header;
		return;
	}
	parse_express(&s, c, &c->express);
	parse_acs(&s, c, &c->acs);
	parse_rebar(&s, c, &c->rebar);
	parse_sriov(&s, c, &c->sriov);
}

const char *mr_pci_config_reason(const struct mr_pci_config *config, enum mr_pci_seen seen)
{
	switch (seen) {
	case MR_PCI_UNREAD:
		if (config->bytes == 0)
			return "unknown: its configuration space could not be read";
		if (config->bytes < HEADER_BYTES)
			return "unknown: its configuration space ends within the header";
		if (config->bytes < CONVENTIONAL_BYTES)
			return "unknown: root is needed to read it (the kernel gave the header "
			       "only)";
		return "unknown: the kernel does not reach extended configuration space (no "
		       "MMCONFIG or ECAM)";
	case MR_PCI_ABSENT:
		return "not there";
	case MR_PCI_PRESENT:
		return "there";
	case MR_PCI_BROKEN:
		return "unknown: its configuration space contradicts itself";
	case MR_PCI_LOST:
		return "unknown: the device does not answer (all bits are 1)";
	}
	return "unknown";
}
