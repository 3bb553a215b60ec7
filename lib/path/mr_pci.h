/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_pci - PCI addresses and links, as texts and as numbers.
 *
 * sysfs, nvidia-smi, lspci and a configuration write the same address in
 * different ways: 0000:1a:00.0, 00000000:1A:00.0, 1a:00.0. Compared as texts
 * they differ; here they are one. A domain may have more than 16 bits (VMD,
 * virtual machines).
 *
 * Thread   any; nothing is kept.
 * Source   sysfs-bus-pci (kernel ABI); drivers/pci/probe.c of Linux for the
 *          words of link speeds ("16.0 GT/s PCIe", in older kernels "16 GT/s")
 */
#ifndef MR_PCI_H
#define MR_PCI_H

#include "mr_base.h"

#include <stdbool.h>

#define MR_PCI_ADDR_BYTES 17 /* "ffffffff:ff:1f.7" and its end */
#define MR_PCI_LINK_BYTES 32

struct mr_pci_addr {
	uint32_t domain;
	uint8_t bus;
	uint8_t device;   /* 0 to 31 */
	uint8_t function; /* 0 to 7 */
};

/* What a link runs at. 0: not known, or the link is down. */
struct mr_pci_link {
	uint32_t speed_mts; /* million transfers a second on a lane of the link: 2500 ... 64000 */
	uint32_t width;     /* lanes: 1, 2, 4, 8, 12, 16, 32 */
};

/*
 * mr_pci_addr_parse reads text, which is an address and nothing else:
 * [DOMAIN:]BUS:DEVICE.FUNCTION in hexadecimal, the domain with 4 to 8 digits. A
 * line's end behind it is allowed.
 */
MR_MUST_USE bool mr_pci_addr_parse(const char *text, struct mr_pci_addr *ret_addr);

/* mr_pci_addr_format writes it as the kernel does: lower case, 4 digits of domain or more. */
void mr_pci_addr_format(const struct mr_pci_addr *addr, char ret_text[MR_PCI_ADDR_BYTES]);

/* mr_pci_addr_compare orders addresses: below, at or above 0. */
int mr_pci_addr_compare(const struct mr_pci_addr *a, const struct mr_pci_addr *b);

/*
 * mr_pci_link_parse reads the contents of a pair of sysfs files,
 * {current,max}_link_speed and {current,max}_link_width. What is missing (NULL),
 * "Unknown", no speed of PCI Express or no width of it gives 0 in its member.
 */
void mr_pci_link_parse(const char *speed, const char *width, struct mr_pci_link *ret_link);

/* mr_pci_link_format gives "x16 32.0 GT/s"; "x?" and "? GT/s" for what is not known. */
void mr_pci_link_format(const struct mr_pci_link *link, char ret_text[MR_PCI_LINK_BYTES]);

/*
 * mr_pci_link_mbps is what the link carries in one direction in Mbit/s after line
 * coding (8b/10b to 5 GT/s, 128b/130b to 32 GT/s, 242/256 of a FLIT above), before
 * packet headers. 0: not known.
 */
uint64_t mr_pci_link_mbps(const struct mr_pci_link *link);

#endif
