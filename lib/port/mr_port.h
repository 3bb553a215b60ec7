/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_port - one DPDK port: probe, memory registration, queues, start, facts.
 *
 *     probe ─► map ... ─► configure ─► rx_queue, tx_queue ... ─► start ─► steer
 *     unsteer ─► stop ─► close ─► (pools are freed) ─► unmap ... ─► remove
 *
 * A port is a virtual device that this module creates, or a PCI device that EAL
 * has probed. Packet memory is registered with every port that may receive into
 * it or send from it; a software driver needs no registration and says so, which
 * is evidence and not an error.
 *
 * kernel:IFNAME is net_pcap on that interface. libpcap puts VLAN tags back that
 * the kernel took out of the frame, takes jumbo frames and reports drops. Before
 * the port is made, the interface's GRO, GSO, TSO, LRO and TX checksum offload are
 * switched off, since frames that were merged or not yet summed are not what is on
 * the wire; remove restores what was found. A process that is killed leaves that to
 * the next one of its name, by a file in EAL's runtime directory.
 *
 * Its ring sees sent frames as well, which libpcap leaves out when it reads; when the
 * ring runs over, those are among the missed of a port that also sends.
 *
 * Frames reach the queues in one of three ways: each queue has a source of its own (virtual
 * devices), the NIC spreads them over all queues (RSS), or the port is isolated and rules
 * steer what they name, so that everything else stays with the kernel where the device is
 * shared with it (mlx5) and is dropped by the NIC where it is not (vfio).
 *
 * Thread   the control thread; mr_port_stats may be called from any.
 * Errors   0 or -errno with one sentence naming port, device and call.
 * Source   DPDK Programmer's Guide (Poll Mode Driver), ethtool ioctl(2) ABI,
 *          packet(7)
 */
#ifndef MR_PORT_H
#define MR_PORT_H

#include "mr_match.h"
#include "mr_port_file.h"

#include <stdbool.h>

struct rte_device;
struct rte_flow;
struct rte_mempool;

/* Offload settings of a kernel interface, as found: bits over the kernel's features. */
#define MR_PORT_FEATURE_WORDS 8
struct mr_port_kernel {
	char ifname[MR_NAME_MAX];                /* "" if this is not a kernel interface */
	int index;                               /* which stays when the interface is renamed */
	uint32_t words;                          /* that the kernel has */
	uint32_t changed[MR_PORT_FEATURE_WORDS]; /* switched off */
	uint32_t wanted[MR_PORT_FEATURE_WORDS];  /* what the user had asked for */
};

struct mr_port {
	char name[MR_NAME_MAX];
	char device[MR_NAME_MAX];
	char driver[MR_NAME_MAX];
	struct rte_device *dev; /* outlives the DPDK port, until remove */
	uint16_t id;            /* DPDK port */
	bool probed, configured, started;
	bool isolated; /* only what rules name reaches a queue */
	bool splits;   /* frames arrive in two parts */
	bool software; /* a virtual device: its driver copies with the CPU */
	bool vdev;
	bool counts_missed; /* the driver reports imissed */
	uint32_t leaving;   /* the kernel wants the device back; EAL's interrupt thread writes it */
	struct mr_port_kernel kernel;
	struct mr_port_files files;
	struct rte_flow **flows; /* rules that are in force */
	uint32_t flows_count;
};

struct mr_port_spec {
	const char *name;   /* configuration name */
	const char *device; /* net_pcap0 or 0000:5e:00.0 */
	const char *args;   /* of a virtual device */
	const char *ifname; /* kernel interface, or "" */
	bool pci;
	bool isolated;        /* its lanes have a match, for which the NIC is asked */
	bool sends_parts;     /* frames leave by it that are in two parts */
	uint32_t split_bytes; /* of the first part of each received frame; 0: frames are whole */
	uint32_t mtu;
	uint32_t rx_queues, tx_queues;
};

MR_MUST_USE int mr_port_probe(
	struct mr_port *p, const struct mr_port_spec *spec, struct mr_err *err);

/*
 * mr_port_map registers [addr, addr + bytes) with the device for DMA, after
 * rte_extmem_register. *ret_kind says what was done: "dma-map" or "none needed".
 */
MR_MUST_USE int mr_port_map(
	struct mr_port *p, void *addr, size_t bytes, const char **ret_kind, struct mr_err *err);
MR_MUST_USE int mr_port_unmap(struct mr_port *p, void *addr, size_t bytes, struct mr_err *err);

MR_MUST_USE int mr_port_configure(
	struct mr_port *p, const struct mr_port_spec *spec, struct mr_err *err);
MR_MUST_USE int mr_port_rx_queue(struct mr_port *p, uint32_t queue, uint32_t ring,
	struct rte_mempool *pool, struct mr_err *err);

/*
 * mr_port_split_queue is the same where frames are split: the first split_bytes of each go to a
 * buffer of pool, behind its headroom, what is left to one of rest.
 */
MR_MUST_USE int mr_port_split_queue(struct mr_port *p, uint32_t queue, uint32_t ring,
	struct rte_mempool *pool, struct rte_mempool *rest, uint32_t split_bytes,
	struct mr_err *err);
MR_MUST_USE int mr_port_tx_queue(
	struct mr_port *p, uint32_t queue, uint32_t ring, struct mr_err *err);

/*
 * mr_port_touches says what the driver of a NIC does with packet bytes by the CPU when it
 * receives, or sends; NULL where nothing is known of that kind. Memory that the CPU cannot
 * reach is not for such a port. Source: DPDK's vmxnet3_rxtx.c (txdata_desc_size) and
 * virtio_rxtx.c (virtio_net_hdr in the headroom).
 */
const char *mr_port_touches(const struct mr_port *p, bool sends);

MR_MUST_USE int mr_port_start(struct mr_port *p, struct mr_err *err);

/* A match and the queues of the lanes that share it. */
struct mr_port_steer {
	const char *lane; /* the first of them, for people */
	const struct mr_match_settled *match;
	const uint16_t *queues;
	uint32_t queues_count;
};

/*
 * mr_port_steer puts the rules of an isolated port that has started in force: all of them
 * are validated before the first is made, and after a failure none is left.
 */
MR_MUST_USE int mr_port_steer(
	struct mr_port *p, const struct mr_port_steer *steer, uint32_t count, struct mr_err *err);
void mr_port_unsteer(struct mr_port *p);

/* mr_port_isolate, before configure; configure does it where the port is to be isolated. */
MR_MUST_USE int mr_port_isolate(struct mr_port *p, struct mr_err *err);

/*
 * mr_port_parts gives the offloads that receive in two parts, or send from them, as the
 * specification asks; -ENOTSUP: the driver does not offer one of them.
 */
MR_MUST_USE int mr_port_parts(const struct mr_port *p, const struct mr_port_spec *spec,
	uint64_t *ret_rx_offloads, uint64_t *ret_tx_offloads, struct mr_err *err);

/*
 * mr_port_rss_types gives the RTE_ETH_RSS_* of IP, UDP and TCP by which the port can spread
 * frames over queues; 0: it cannot.
 */
uint64_t mr_port_rss_types(const struct mr_port *p);

/*
 * mr_port_mlx5_prepare, before an mlx5 port starts: registers the mbuf flag by which its
 * driver may be told not to copy a frame, which it looks up once, at its start. For a
 * port of another driver it does nothing.
 */
MR_MUST_USE int mr_port_mlx5_prepare(const struct mr_port *p, struct mr_err *err);
bool mr_port_is_mlx5(const struct mr_port *p);

/*
 * stop, close and remove take half-built ports. close gives the driver's buffers
 * back to their pools, which may be freed then; remove ends the device.
 */
void mr_port_stop(struct mr_port *p);
void mr_port_close(struct mr_port *p);
void mr_port_remove(struct mr_port *p);

struct mr_port_stats {
	bool present; /* false: the device was removed */
	bool link_up;
	uint64_t rx_missed, rx_errors, rx_nombuf, tx_errors;
};

/*
 * mr_port_stats_read may be called from any thread. Drivers need not expect two
 * readers (net_pcap adds up the kernel's drops as it reads them), so readers wait
 * for each other.
 */
void mr_port_stats_read(const struct mr_port *p, struct mr_port_stats *ret_stats);

/*
 * mr_port_judge tells, after the lanes stopped and before stop, which files of the
 * port do not hold what was counted; port is what the caller numbers it. Returns how
 * many there are.
 */
uint32_t mr_port_judge(const struct mr_port *p, uint32_t port, mr_port_tell *tell, void *ctx);

/*
 * mr_port_kernel_prepare refuses an interface that does not exist, is down, or
 * whose MTU is above mtu, and a process without the right to raw frames, then
 * switches the offloads off.
 */
MR_MUST_USE int mr_port_kernel_prepare(
	struct mr_port_kernel *k, const char *ifname, uint32_t mtu, struct mr_err *err);
void mr_port_kernel_restore(struct mr_port_kernel *k);

/* mr_port_kernel_link asks the kernel whether the interface is there, and up. */
void mr_port_kernel_link(const struct mr_port_kernel *k, bool *ret_present, bool *ret_up);

#endif
