/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_facts_priv.h"

#include "mr_parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEVICES "sys/bus/pci/devices"
#define RESOURCES 6         /* BARs of a function with header type 0 */
#define RESOURCE_MEM 0x200u /* IORESOURCE_* of linux/ioport.h */
#define RESOURCE_PREFETCH 0x2000u
#define CLASS_DISPLAY 0x03u
#define CLASS_NETWORK 0x02u
#define VENDOR_NVIDIA 0x10deu
#define VENDOR_QEMU 0x1af4u
#define DEVICE_IVSHMEM 0x1110u /* qemu/docs/specs/ivshmem-spec.rst */

void mr_facts_pci_path(const struct mr_facts_pci *p, char ret_path[MR_ROOT_PATH_MAX])
{
	snprintf(ret_path, MR_ROOT_PATH_MAX, DEVICES "/%s", p->bdf);
}

/* An address as sysfs writes it, n characters of s. */
static bool is_bdf(const char *s, size_t n)
{
	struct mr_pci_addr addr;
	char text[MR_BDF_MAX];

	if (n < sizeof("0000:00:00.0") - 1 || n >= sizeof(text))
		return false;
	memcpy(text, s, n);
	text[n] = '\0';
	return mr_pci_addr_parse(text, &addr);
}

static void read_link(
	struct mr_root *r, const char *folder, const char *which, struct mr_pci_link *ret)
{
	char path[MR_ROOT_PATH_MAX];
	char speed[64], width[64];
	bool has_speed, has_width;

	snprintf(path, sizeof(path), "%s/%s_link_speed", folder, which);
	has_speed = mr_root_read(r, path, speed, sizeof(speed), NULL) == 0;
	snprintf(path, sizeof(path), "%s/%s_link_width", folder, which);
	has_width = mr_root_read(r, path, width, sizeof(width), NULL) == 0;
	mr_pci_link_parse(has_speed ? speed : NULL, has_width ? width : NULL, ret);
}

static void read_counter(struct mr_root *r, const char *folder, const char *kind, const char *total,
	struct mr_fact_u64 *ret)
{
	char path[MR_ROOT_PATH_MAX];
	char text[2048];
	const char *s;
	int rc;

	snprintf(path, sizeof(path), "%.900s/aer_dev_%s", folder, kind);
	rc = mr_root_read(r, path, text, sizeof(text), NULL);
	ret->state = mr_facts_state_of(rc);
	ret->v = 0;
	if (rc != 0)
		return;
	s = mr_parse_line(text, total);
	if (s == NULL || !mr_parse_take_u64(&s, &ret->v))
		ret->state = MR_FACT_STRANGE;
}

void mr_facts_aer(struct mr_root *r, const char *folder, struct mr_facts_pci *p)
{
	read_counter(r, folder, "fatal", "TOTAL_ERR_FATAL", &p->aer_fatal);
	read_counter(r, folder, "nonfatal", "TOTAL_ERR_NONFATAL", &p->aer_nonfatal);
	read_counter(r, folder, "correctable", "TOTAL_ERR_COR", &p->aer_correctable);
}

/* Lines of "start end flags", one a BAR. */
static void read_bars(struct mr_root *r, const char *path, struct mr_fact_u64 *ret)
{
	char text[2048];
	const char *s = text;
	int rc = mr_root_read(r, path, text, sizeof(text), NULL);

	ret->state = mr_facts_state_of(rc);
	for (uint32_t i = 0; rc == 0 && i < RESOURCES; i++) {
		uint64_t start, end, flags;

		s += strspn(s, "\n");
		if (*s == '\0')
			break;
		if (!mr_parse_take_hex(&s, &start) || *s++ != ' ' || !mr_parse_take_hex(&s, &end) ||
			*s++ != ' ' || !mr_parse_take_hex(&s, &flags) || end < start) {
			ret->state = MR_FACT_STRANGE;
			return;
		}
		if (end == start || (flags & RESOURCE_MEM) == 0 ||
			(flags & RESOURCE_PREFETCH) == 0 || end - start == UINT64_MAX)
			continue;
		if (end - start + 1 > ret->v)
			ret->v = end - start + 1;
	}
	if (rc == 0 && s == text)
		ret->state = MR_FACT_STRANGE;
}

static void read_config(struct mr_root *r, const char *path, struct mr_facts_pci *p)
{
	char bytes[MR_PCI_CONFIG_BYTES + 1];
	size_t got;
	int rc = mr_root_read(r, path, bytes, sizeof(bytes), &got);

	p->config_state = mr_facts_state_of(rc == -EFBIG ? 0 : rc);
	mr_pci_config_parse(bytes, p->config_state == MR_FACT_KNOWN ? got : 0, &p->config);
}

static void read_iommu(struct mr_root *r, const char *folder, struct mr_facts_pci *p)
{
	char path[MR_ROOT_PATH_MAX];
	char real[MR_ROOT_PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%s/iommu_group", folder);
	rc = mr_root_real(r, path, real);
	p->iommu.state = mr_facts_state_of(rc);
	if (rc != 0)
		return;
	snprintf(path, sizeof(path), "%.1000s/type", real);
	mr_facts_text_at(r, path, &p->iommu);
	/* A group without a type is a kernel too old to say. */
	if (p->iommu.state == MR_FACT_ABSENT)
		p->iommu.state = MR_FACT_STRANGE;
}

static void read_function(struct mr_root *r, struct mr_facts_pci *p)
{
	char folder[MR_BDF_MAX + 32];
	char path[MR_ROOT_PATH_MAX];
	uint32_t mode;

#define AT(name) (snprintf(path, sizeof(path), "%s/%s", folder, name), path)
	snprintf(folder, sizeof(folder), DEVICES "/%s", p->bdf);
	mr_facts_hex_at(r, AT("vendor"), &p->vendor);
	mr_facts_hex_at(r, AT("device"), &p->device);
	mr_facts_i64_at(r, AT("numa_node"), &p->node);
	mr_facts_link_at(r, AT("driver"), &p->driver);
	read_iommu(r, folder, p);
	read_link(r, folder, "current", &p->link);
	read_link(r, folder, "max", &p->link_max);
	mr_facts_aer(r, folder, p);
	read_bars(r, AT("resource"), &p->bar_bytes);
	read_config(r, AT("config"), p);
	p->physfn = mr_facts_state_of(mr_root_mode(r, AT("physfn"), &mode));
#undef AT
}

/* The function's index, which it gets when it is first met. */
static uint32_t index_of(struct mr_root *r, struct mr_host_facts *f, const char *bdf, size_t n)
{
	struct mr_facts_pci *p;
	char path[MR_ROOT_PATH_MAX];

	for (uint32_t i = 0; i < f->pci_count; i++)
		if (strlen(f->pci[i].bdf) == n && memcmp(f->pci[i].bdf, bdf, n) == 0)
			return i;
	if (f->pci_count == MR_FACTS_PCI_MAX) {
		f->pci_left_out = true;
		return MR_FACTS_NONE;
	}
	p = &f->pci[f->pci_count];
	memcpy(p->bdf, bdf, n);
	p->bdf[n] = '\0';
	snprintf(path, sizeof(path), DEVICES "/%s/class", p->bdf);
	mr_facts_hex_at(r, path, &p->class);
	read_function(r, p);
	return f->pci_count++;
}

/* sys/devices/pciDDDD:BB/BRIDGE/.../BDF: the bridges above it, from the root down. */
static void read_chain(struct mr_root *r, struct mr_host_facts *f, uint32_t index)
{
	char path[MR_ROOT_PATH_MAX];
	char real[MR_ROOT_PATH_MAX];
	uint32_t chain[MR_FACTS_CHAIN_MAX] = {0};
	uint32_t count = 0;
	const char *s;

	mr_facts_pci_path(&f->pci[index], path);
	if (mr_root_real(r, path, real) != 0 || strlen(real) >= sizeof(f->pci[index].path))
		return;
	memcpy(f->pci[index].path, real, strlen(real) + 1);
	for (s = real; *s != '\0'; s += strcspn(s, "/"), s += *s == '/') {
		size_t n = strcspn(s, "/");

		if (!is_bdf(s, n) || s[n] != '/' || count == MR_FACTS_CHAIN_MAX)
			continue;
		chain[count] = index_of(r, f, s, n);
		if (chain[count] == MR_FACTS_NONE)
			return;
		count++;
	}
	memcpy(f->pci[index].chain, chain, sizeof(chain));
	f->pci[index].chain_count = count;
}

static void add_device(struct mr_root *r, struct mr_host_facts *f, const char *bdf)
{
	char path[MR_ROOT_PATH_MAX];
	struct mr_fact_u64 class, vendor, device;
	uint32_t kind, index;
	bool gpu, stand_in, nic;

	snprintf(path, sizeof(path), DEVICES "/%s/class", bdf);
	mr_facts_hex_at(r, path, &class);
	if (class.state != MR_FACT_KNOWN)
		return;
	kind = (uint32_t)(class.v >> 16) & 0xff;
	snprintf(path, sizeof(path), DEVICES "/%s/vendor", bdf);
	mr_facts_hex_at(r, path, &vendor);
	snprintf(path, sizeof(path), DEVICES "/%s/device", bdf);
	mr_facts_hex_at(r, path, &device);
	stand_in = vendor.state == MR_FACT_KNOWN && vendor.v == VENDOR_QEMU &&
		device.state == MR_FACT_KNOWN && device.v == DEVICE_IVSHMEM;
	gpu = stand_in ||
		(kind == CLASS_DISPLAY && vendor.state == MR_FACT_KNOWN &&
			vendor.v == VENDOR_NVIDIA);
	nic = kind == CLASS_NETWORK;
	if (!gpu && !nic)
		return;
	if ((gpu && f->gpus_count == MR_FACTS_GPUS_MAX) ||
		(nic && f->nics_count == MR_FACTS_NICS_MAX)) {
		f->pci_left_out = true;
		return;
	}
	index = index_of(r, f, bdf, strlen(bdf));
	if (index == MR_FACTS_NONE)
		return;
	read_chain(r, f, index);
	if (gpu)
		f->gpus[f->gpus_count++] =
			(struct mr_facts_gpu){.pci = index, .stand_in = stand_in};
	else
		f->nics[f->nics_count++].pci = index;
}

void mr_facts_pci(struct mr_root *r, struct mr_host_facts *f)
{
	struct mr_root_names names;
	int rc = mr_root_list(r, DEVICES, &names);

	f->pci_state = mr_facts_state_of(rc);
	if (rc != 0)
		return;
	for (uint32_t i = 0; i < names.count; i++)
		if (is_bdf(names.name[i], strlen(names.name[i])))
			add_device(r, f, names.name[i]);
	mr_root_names_free(&names);
}
