/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_facts - what a machine says of itself, read once.
 *
 *     mr_root + mr_probe ─ mr_facts_read ─► struct mr_host_facts ─► checks, topology
 *
 * One reader for all that judge a machine. A fact is the bytes that were read,
 * understood or not: it carries a state, and only MR_FACT_KNOWN may be judged.
 * What the machine does not have, may not be read or makes no sense stays apart,
 * so that nothing unreadable can pass for good.
 *
 * PCI functions kept are GPUs, NICs and every bridge above them.
 *
 * Thread   the control thread; constant once read.
 * Owner    the structure is large (some MiB): allocate it zeroed. It holds no
 *          pointers and is freed with free().
 * Source   Linux Documentation/ABI (sysfs-bus-pci, sysfs-class-infiniband,
 *          sysfs-devices-system-cpu, sysfs-kernel-iommu_groups), proc(5)
 */
#ifndef MR_FACTS_H
#define MR_FACTS_H

#include "mr_host.h"
#include "mr_pci_config.h"
#include "mr_probe.h"
#include "mr_root.h"

#define MR_FACTS_PCI_MAX 512u
#define MR_FACTS_GPUS_MAX 32u
#define MR_FACTS_NICS_MAX 64u
#define MR_FACTS_NODES_MAX 64u
#define MR_FACTS_SIZES_MAX 4u
#define MR_FACTS_CHAIN_MAX 16u
#define MR_FACTS_NONE UINT32_MAX
#define MR_BDF_MAX MR_PCI_ADDR_BYTES

enum mr_fact_state {
	MR_FACT_UNREAD,  /* nobody has looked, or the root does not tell */
	MR_FACT_ABSENT,  /* the machine does not have it */
	MR_FACT_DENIED,  /* this user may not read it */
	MR_FACT_STRANGE, /* read, and not what the kernel writes there */
	MR_FACT_KNOWN,
};

struct mr_fact_u64 {
	enum mr_fact_state state;
	uint64_t v;
};

struct mr_fact_i64 {
	enum mr_fact_state state;
	int64_t v;
};

struct mr_fact_text {
	enum mr_fact_state state;
	char v[64]; /* one line, printable ASCII */
};

struct mr_facts_pci {
	char bdf[MR_BDF_MAX];
	struct mr_fact_u64 vendor, device, class;
	struct mr_fact_i64 node;           /* -1: the firmware does not say */
	struct mr_fact_text driver;        /* ABSENT: none is bound */
	struct mr_fact_text iommu;         /* ABSENT: no group; else DMA, DMA-FQ, identity ... */
	struct mr_pci_link link, link_max; /* members 0: not known */
	struct mr_fact_u64 aer_fatal, aer_nonfatal, aer_correctable;
	struct mr_fact_u64 bar_bytes;       /* largest prefetchable memory BAR */
	enum mr_fact_state physfn;          /* link to the PF: a VF has one */
	uint32_t chain[MR_FACTS_CHAIN_MAX]; /* bridges from the root port down, indices */
	uint32_t chain_count;
	char path[256]; /* sys/devices/pciDDDD:BB/.../BDF; "" unknown */
	enum mr_fact_state config_state;
	struct mr_pci_config config;
};

struct mr_facts_gpu {
	uint32_t pci;
	bool stand_in; /* no GPU, but memory in a BAR (ivshmem), which the software device may use
			*/
	struct mr_probe_gpu probe;
	struct mr_fact_u64 minor;     /* of its device file */
	enum mr_fact_state open;      /* KNOWN: that may be opened */
	struct mr_fact_u64 aer_later; /* fatal + nonfatal, 2 s on */
	uint32_t xid;  /* last one that ends the GPU's work; 0: none, or it has recovered since */
	bool fell_off; /* the log says that it is gone */
};

struct mr_facts_nic {
	uint32_t pci;
	struct mr_fact_text netdev; /* the first; ABSENT: none */
	struct mr_fact_text verbs;  /* mlx5_0 */
	struct mr_fact_u64 carrier, carrier_changes, carrier_changes_later, speed_mbps, mtu;
	struct mr_fact_u64 aer_later;
	struct mr_fact_text port_state, phys_state, link_layer;
	struct mr_fact_text firmware, hca_type;
	struct mr_fact_text uverbs; /* uverbs0 */
	enum mr_fact_state uverbs_open;
	struct mr_probe_nic probe;
};

struct mr_facts_hugepages {
	uint64_t page_bytes;
	struct mr_fact_u64 total, free; /* pages */
};

struct mr_facts_node {
	uint32_t number;
	struct mr_facts_hugepages sizes[MR_FACTS_SIZES_MAX];
	uint32_t sizes_count;
};

struct mr_facts_cpu {
	int16_t node; /* -1: unknown */
	int16_t core; /* lowest CPU of the same core; -1: unknown */
	bool isolated, nohz_full;
	uint16_t irqs;    /* interrupts that may be delivered here */
	bool irq_default; /* and those that a driver will ask for */
	struct mr_fact_text governor;
};

struct mr_facts_kernel {
	struct mr_fact_text release, lockdown, clocksource;
	struct mr_fact_u64 numa_balancing, zone_reclaim_mode;
	enum mr_fact_state cmdline_state;
	char cmdline[4096];
	enum mr_fact_state log_state;
	bool log_oops;      /* the kernel itself, or a driver, took a fault */
	bool log_io_fault;  /* the IOMMU stopped a transfer */
	bool log_symbols;   /* a module was built for another ib_core */
	char log_line[256]; /* the first line behind one of the three */
};

struct mr_facts_process {
	struct mr_fact_u64 caps_effective;
	struct mr_fact_u64 memlock_bytes; /* UINT64_MAX: unlimited */
	struct mr_fact_u64 open_files;
	enum mr_fact_state cpuset_state;
	bool cpuset[MR_CPUS_MAX]; /* cgroup; where KNOWN */
};

struct mr_facts_hugetlbfs {
	enum mr_fact_state state;
	bool mounted, writable;
	char path[128];
	uint32_t maps;        /* files NAMEmap_N below it */
	uint32_t maps_dead;   /* of those, without a living owner */
	uint32_t maps_untold; /* and those of which nobody tells whether it lives */
	char prefix[64];      /* of the first dead one */
};

struct mr_facts_modules {
	struct mr_fact_text nvidia, peermem, peermem_legacy, memory_peers;
	struct mr_fact_text mlx5_core, ib_core; /* version: only out-of-tree ones have it */
	bool peermem_loaded, mlx5_loaded;
	enum mr_fact_state driver_state;
	bool driver_open; /* Open Kernel Module */
	char driver[64];  /* its version */
};

struct mr_host_facts {
	struct mr_host host; /* CPUs and memory, as the plan needs them */
	bool live;
	struct mr_facts_kernel kernel;
	struct mr_facts_process process;
	struct mr_facts_modules modules;
	struct mr_facts_hugetlbfs hugetlbfs;
	enum mr_fact_state nvidiactl_open, uvm_open; /* KNOWN: may be opened */
	enum mr_fact_state dumps;                    /* KNOWN: /var/log may be written */
	struct mr_probe_software software;
	struct mr_facts_cpu cpu[MR_CPUS_MAX];
	enum mr_fact_state isolated_state, irqs_state, irq_default_state;
	struct mr_facts_node nodes[MR_FACTS_NODES_MAX];
	uint32_t nodes_count;
	struct mr_facts_pci pci[MR_FACTS_PCI_MAX];
	uint32_t pci_count;
	bool pci_left_out; /* more devices than there is room for */
	enum mr_fact_state pci_state;
	struct mr_facts_gpu gpus[MR_FACTS_GPUS_MAX];
	uint32_t gpus_count;
	struct mr_facts_nic nics[MR_FACTS_NICS_MAX];
	uint32_t nics_count;
	struct mr_probe_pair pairs[MR_FACTS_GPUS_MAX][MR_FACTS_NICS_MAX];
};

/*
 * mr_facts_read fills *ret_facts, which must be zeroed. Devices are not asked yet
 * (mr_needs_probe does that for those that are needed). probe may be NULL. Only
 * what no machine can be without (a list of CPUs) is an error.
 */
MR_MUST_USE int mr_facts_read(struct mr_root *root, const struct mr_probe *probe,
	struct mr_host_facts *ret_facts, struct mr_err *err);

/*
 * mr_facts_read_later reads the counters that must stand still once more; of a
 * machine in a folder, below millrace/later. The caller has let the time pass.
 */
void mr_facts_read_later(struct mr_root *root, struct mr_host_facts *f);

/* "not read", "not there", "not readable by this user", "not understood", "known". */
const char *mr_fact_state_name(enum mr_fact_state state);

/* The GPU or NIC at a PCI address; MR_FACTS_NONE: none. */
uint32_t mr_facts_find_gpu(const struct mr_host_facts *f, const char *bdf);
uint32_t mr_facts_find_nic(const struct mr_host_facts *f, const char *bdf);

#endif
