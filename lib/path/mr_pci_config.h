/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_pci_config - a function's PCI configuration space, read from its bytes.
 *
 * The bytes are those of /sys/bus/pci/devices/ADDRESS/config. How many the kernel
 * hands out decides what can be known:
 *
 *       64   without CAP_SYS_ADMIN: identity and header type, nothing else
 *      256   conventional space: the express capability too
 *     4096   extended space: access control, resizable BARs, virtual functions
 *
 * Every part says by `seen` whether its values may be used. Bytes that contradict
 * themselves (a list of capabilities in a circle, a bridge's header on an
 * endpoint, settings that the function says it does not have) make the part
 * BROKEN and leave its values 0; so does a single field with a reserved code. All
 * ones are how the bus answers for a device that is gone. A value out of garbage
 * that is well formed cannot be told from a true one.
 *
 * Thread   any; pure, the bytes are not kept.
 * Errors   none: any bytes give an answer.
 * Source   PCI Express Base Specification 5.0: 7.5.1 (headers), 7.5.3 (express),
 *          7.6.3 (extended list), 7.7.11 (ACS, as 7.7.8 in 4.0), 7.8.6 (resizable
 *          BAR), 9.3.3 (SR-IOV); constants: linux/pci_regs.h
 */
#ifndef MR_PCI_CONFIG_H
#define MR_PCI_CONFIG_H

#include "mr_pci.h"

#define MR_PCI_CONFIG_BYTES 4096u
#define MR_PCI_REBARS_MAX 6u

enum mr_pci_seen {
	MR_PCI_UNREAD,  /* not among the bytes; mr_pci_config_reason() says why */
	MR_PCI_ABSENT,  /* looked for to the end and not there */
	MR_PCI_PRESENT, /* there, its values hold */
	MR_PCI_BROKEN,  /* the bytes contradict themselves */
	MR_PCI_LOST,    /* all ones: the device does not answer */
};

/* Device/port type of the express capability, by the code in it. */
enum mr_pci_port {
	MR_PCI_PORT_ENDPOINT = 0,
	MR_PCI_PORT_LEGACY_ENDPOINT = 1,
	MR_PCI_PORT_ROOT = 4,
	MR_PCI_PORT_UPSTREAM = 5,   /* a switch's port towards the root */
	MR_PCI_PORT_DOWNSTREAM = 6, /* a switch's port away from it */
	MR_PCI_PORT_TO_PCI = 7,     /* bridge to conventional PCI */
	MR_PCI_PORT_FROM_PCI = 8,
	MR_PCI_PORT_ROOT_ENDPOINT = 9, /* integrated into the root complex: no link */
	MR_PCI_PORT_ROOT_EVENT = 10,
};

/* Values with 0 for "reserved code" are payload sizes and link members. */
struct mr_pci_express {
	enum mr_pci_seen seen;
	enum mr_pci_port port;
	bool slot; /* root and downstream ports: the link ends in a slot */
	uint16_t slot_number;
	uint32_t mps_supported_bytes; /* largest payload of a packet: can */
	bool extended_tag_supported;
	/*
	 * Device control. Not valid for a virtual function, whose bits are reserved: the
	 * physical function's count.
	 */
	bool control_valid;
	uint32_t mps_bytes;  /* largest payload: set */
	uint32_t mrrs_bytes; /* largest read request */
	bool relaxed_ordering;
	bool extended_tag;
	bool no_snoop;
	struct mr_pci_link link_max; /* all 0 where the function has no link */
	struct mr_pci_link link;     /* now; 0 while it is down, and for a virtual function */
};

/* Access control services; bits as in the registers. */
#define MR_PCI_ACS_SOURCE_VALIDATION 0x01u
#define MR_PCI_ACS_TRANSLATION_BLOCKING 0x02u
#define MR_PCI_ACS_REQUEST_REDIRECT 0x04u
#define MR_PCI_ACS_COMPLETION_REDIRECT 0x08u
#define MR_PCI_ACS_UPSTREAM_FORWARDING 0x10u
#define MR_PCI_ACS_EGRESS_CONTROL 0x20u
#define MR_PCI_ACS_DIRECT_TRANSLATED 0x40u
/* Any of these sends traffic between two devices up to the root and back. */
#define MR_PCI_ACS_DETOUR                                                                          \
	(MR_PCI_ACS_REQUEST_REDIRECT | MR_PCI_ACS_COMPLETION_REDIRECT |                            \
		MR_PCI_ACS_UPSTREAM_FORWARDING)

struct mr_pci_acs {
	enum mr_pci_seen seen;
	uint16_t supported;
	uint16_t control; /* on, a subset of supported */
};

struct mr_pci_rebar {
	enum mr_pci_seen seen;
	uint32_t count;
	struct {
		uint8_t bar;              /* 0 to 5 */
		uint64_t supported_sizes; /* bit n: 1 MiB << n */
		uint64_t bytes;           /* set; 0 for a reserved code */
	} bars[MR_PCI_REBARS_MAX];
};

struct mr_pci_sriov {
	enum mr_pci_seen seen; /* PRESENT: a physical function */
	bool enabled;
	uint16_t vfs_total;
	uint16_t vfs; /* on */
};

struct mr_pci_config {
	size_t bytes;            /* read: how much there was to look at */
	enum mr_pci_seen header; /* UNREAD below 64 bytes */
	/*
	 * A virtual function reads as vendor and device ffff with an intact header around
	 * them; the files vendor and device in sysfs have the true ones. vendor and device
	 * are 0 then.
	 */
	bool virtual_function;
	uint16_t vendor;
	uint16_t device;
	uint32_t class_code; /* 24 bits: class, subclass, interface */
	uint8_t header_type; /* 0 device, 1 bridge, 2 CardBus bridge */
	bool multifunction;
	uint8_t bus_secondary; /* bridges: the bus below; 0 otherwise */
	uint8_t bus_subordinate;
	struct mr_pci_express express;
	struct mr_pci_acs acs;
	struct mr_pci_rebar rebar;
	struct mr_pci_sriov sriov;
};

/* mr_pci_config_parse reads size bytes; those beyond MR_PCI_CONFIG_BYTES are not looked at. */
void mr_pci_config_parse(const void *bytes, size_t size, struct mr_pci_config *ret_config);

/*
 * mr_pci_config_reason puts seen of config's part into words: "there", "not there", or
 * "unknown: " and why, as in "unknown: root is needed to read it (the kernel gave the
 * header only)". Static text.
 */
const char *mr_pci_config_reason(const struct mr_pci_config *config, enum mr_pci_seen seen);

#endif
