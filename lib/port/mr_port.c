/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_port.h"

#include "mr_sync.h"

#include <errno.h>
#include <pthread.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <string.h>

#define FAIL(p, code, what)                                                                        \
	mr_err_set(err, (code), "port '%s' (%s): %s: %s", (p)->name, (p)->device, (what),          \
		strerror(-(code)))

/* net_null, net_ring and the like leave imissed at zero for ever; these report it. */
static bool driver_counts_missed(const char *driver)
{
	static const char *const blind[] = {
		"net_null", "net_ring", "net_af_packet", "net_tap", "net_memif", NULL};

	for (size_t i = 0; blind[i] != NULL; i++)
		if (strcmp(driver, blind[i]) == 0)
			return false;
	return true;
}

const char *mr_port_touches(const struct mr_port *p, bool sends)
{
	static const struct {
		const char *driver, *rx, *tx;
	} drivers[] = {
		{"net_vmxnet3", NULL, "copies frames of up to 128 bytes into its ring"},
		{"net_virtio", "reads its header in front of each frame",
			"writes its header in front of each frame"},
	};

	for (size_t i = 0; i < MR_ARRAY_LEN(drivers); i++)
		if (strcmp(p->driver, drivers[i].driver) == 0)
			return sends ? drivers[i].tx : drivers[i].rx;
	return NULL;
}

/* vfio asks whoever holds a device that is to be removed, and waits until it is let go. */
static void device_event(const char *name, enum rte_dev_event_type event, void *port)
{
	struct mr_port *p = port;

	(void)name;
	if (event == RTE_DEV_EVENT_REMOVE)
		mr_store_release(&p->leaving, 1);
}

int mr_port_probe(struct mr_port *p, const struct mr_port_spec *spec, struct mr_err *err)
{
	struct rte_eth_dev_info info;
	int rc;

	memset(p, 0, sizeof(*p));
	snprintf(p->name, sizeof(p->name), "%s", spec->name);
	snprintf(p->device, sizeof(p->device), "%s", spec->device);
	p->vdev = !spec->pci;
	p->software = p->vdev;
	if (spec->ifname[0] != '\0') {
		rc = mr_port_kernel_prepare(&p->kernel, spec->ifname, spec->mtu, err);
		if (rc < 0)
			return rc;
	}
	if (p->vdev) {
		rc = rte_vdev_init(spec->device, spec->args);
		if (rc < 0) {
			mr_port_kernel_restore(&p->kernel);
			return mr_err_set(err, rc,
				"port '%s': DPDK cannot create '%s' with arguments '%s': %s; the "
				"driver's own message is above",
				spec->name, spec->device, spec->args, strerror(-rc));
		}
	}
	p->probed = true;
	rc = mr_port_files_open(&p->files, spec, err);
	if (rc < 0) {
		mr_port_remove(p);
		return rc;
	}
	rc = rte_eth_dev_get_port_by_name(spec->device, &p->id);
	if (rc == 0)
		rc = rte_eth_dev_info_get(p->id, &info);
	if (rc < 0) {
		mr_port_remove(p);
		return mr_err_set(err, rc,
			"port '%s': DPDK has no port for '%s': %s; check that the device exists "
			"and is bound to a driver that DPDK supports",
			spec->name, spec->device, strerror(-rc));
	}
	p->dev = info.device;
	snprintf(p->driver, sizeof(p->driver), "%s", info.driver_name);
	p->counts_missed = driver_counts_missed(p->driver);
	if (!p->vdev)
		(void)rte_dev_event_callback_register(p->device, device_event, p);
	return 0;
}

/* Of a call that failed: not every bus sets rte_errno, and some only errno. */
static int bus_error(void)
{
	if (rte_errno > 0)
		return rte_errno;
	return errno > 0 ? errno : EIO;
}

int mr_port_map(
	struct mr_port *p, void *addr, size_t bytes, const char **ret_kind, struct mr_err *err)
{
	int code;

	/* The vdev bus answers 0 for drivers that have no such call. */
	*ret_kind = p->software ? "none needed" : "dma-map";
	rte_errno = 0;
	errno = 0;
	if (rte_dev_dma_map(p->dev, addr, (uint64_t)(uintptr_t)addr, bytes) == 0)
		return 0;
	code = bus_error();
	if (p->software && code == ENOTSUP)
		return 0;
	return mr_err_set(err, -code,
		"port '%s' (%s): rte_dev_dma_map of %zu bytes at %p: %s; for GPU memory load "
		"nvidia-peermem, and check the IOMMU",
		p->name, p->device, bytes, addr, rte_strerror(code));
}

int mr_port_unmap(struct mr_port *p, void *addr, size_t bytes, struct mr_err *err)
{
	int code;

	rte_errno = 0;
	errno = 0;
	if (rte_dev_dma_unmap(p->dev, addr, (uint64_t)(uintptr_t)addr, bytes) == 0)
		return 0;
	code = bus_error();
	if (p->software && code == ENOTSUP)
		return 0;
	return mr_err_set(err, -code, "port '%s' (%s): rte_dev_dma_unmap at %p: %s", p->name,
		p->device, addr, rte_strerror(code));
}

/* A virtual device that cannot has a source for each of its queues. */
static int spread(const struct mr_port *p, const struct mr_port_spec *spec,
	struct rte_eth_conf *conf, struct mr_err *err)
{
	uint64_t types = mr_port_rss_types(p);

	if (types == 0 && spec->pci)
		return mr_err_set(err, -ENOTSUP,
			"port '%s' (%s): the driver %s cannot spread frames over %u receive "
			"queues; let one lane receive from it, with more workers",
			p->name, p->device, p->driver, spec->rx_queues);
	if (types == 0)
		return 0;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf->rx_adv_conf.rss_conf.rss_hf = types;
	return 0;
}

int mr_port_configure(struct mr_port *p, const struct mr_port_spec *spec, struct mr_err *err)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(p->id, &info);

	if (rc < 0)
		return FAIL(p, rc, "rte_eth_dev_info_get");
	if (spec->rx_queues > info.max_rx_queues || spec->tx_queues > info.max_tx_queues)
		return mr_err_set(err, -EINVAL,
			"port '%s' (%s): the lanes use %u receive and %u send queues, the driver "
			"%s offers %u and %u with these arguments",
			p->name, p->device, spec->rx_queues, spec->tx_queues, p->driver,
			info.max_rx_queues, info.max_tx_queues);
	if (info.max_mtu != 0 && spec->mtu > info.max_mtu)
		return mr_err_set(err, -EINVAL,
			"port '%s' (%s): mtu %u is above the driver's limit of %u", p->name,
			p->device, spec->mtu, info.max_mtu);
	rc = mr_port_parts(p, spec, &conf.rxmode.offloads, &conf.txmode.offloads, err);
	if (rc < 0)
		return rc;
	p->splits = spec->split_bytes != 0;
	if (spec->isolated)
		rc = mr_port_isolate(p, err);
	else if (spec->rx_queues > 1)
		rc = spread(p, spec, &conf, err);
	if (rc < 0)
		return rc;
	conf.rxmode.mtu = spec->mtu;
	/* One buffer holds a whole frame, unless it is split on purpose, and buffers may belong
	 * to several pools: neither scatter nor fast free. */
	rc = rte_eth_dev_configure(
		p->id, (uint16_t)spec->rx_queues, (uint16_t)spec->tx_queues, &conf);
	if (rc < 0)
		return FAIL(p, rc, "rte_eth_dev_configure");
	p->configured = true;
	return 0;
}

/* DPDK's own message does not say which key it is about. */
static int check_ring(const struct mr_port *p, const char *key, uint32_t ring,
	const struct rte_eth_desc_lim *l, struct mr_err *err)
{
	uint32_t unit = l->nb_align > 1 ? l->nb_align : 1;

	if (ring >= l->nb_min && (l->nb_max == 0 || ring <= l->nb_max) && ring % unit == 0)
		return 0;
	return mr_err_set(err, -EINVAL,
		"port '%s' (%s): %s %u is not one that the driver %s takes: set %u to %u, in "
		"multiples of %u",
		p->name, p->device, key, ring, p->driver, l->nb_min, l->nb_max, unit);
}

int mr_port_rx_queue(struct mr_port *p, uint32_t queue, uint32_t ring, struct rte_mempool *pool,
	struct mr_err *err)
{
	return mr_port_split_queue(p, queue, ring, pool, NULL, 0, err);
}

int mr_port_split_queue(struct mr_port *p, uint32_t queue, uint32_t ring, struct rte_mempool *pool,
	struct rte_mempool *rest, uint32_t split_bytes, struct mr_err *err)
{
	union rte_eth_rxseg parts[] = {
		{.split = {.mp = pool, .length = (uint16_t)split_bytes}},
		{.split = {.mp = rest}},
	};
	struct rte_eth_dev_info info;
	struct rte_eth_rxconf conf;
	int rc = rte_eth_dev_info_get(p->id, &info);

	if (rc == 0 && check_ring(p, "rx_ring", ring, &info.rx_desc_lim, err) < 0)
		return -EINVAL;
	if (rest != NULL) {
		conf = info.default_rxconf;
		conf.rx_seg = parts;
		conf.rx_nseg = 2;
	}
	rc = rte_eth_rx_queue_setup(p->id, (uint16_t)queue, (uint16_t)ring, SOCKET_ID_ANY,
		rest != NULL ? &conf : NULL, rest != NULL ? NULL : pool);
	if (rc < 0)
		return mr_err_set(err, rc, "port '%s' (%s): receive queue %u with a ring of %u: %s",
			p->name, p->device, queue, ring, strerror(-rc));
	return 0;
}

int mr_port_tx_queue(struct mr_port *p, uint32_t queue, uint32_t ring, struct mr_err *err)
{
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(p->id, &info);

	if (rc == 0 && check_ring(p, "tx_ring", ring, &info.tx_desc_lim, err) < 0)
		return -EINVAL;
	rc = rte_eth_tx_queue_setup(p->id, (uint16_t)queue, (uint16_t)ring, SOCKET_ID_ANY, NULL);
	if (rc < 0)
		return mr_err_set(err, rc, "port '%s' (%s): send queue %u with a ring of %u: %s",
			p->name, p->device, queue, ring, strerror(-rc));
	return 0;
}

/* Only the started driver tells whether a buffer holds a whole frame as it fills it. */
static int check_whole_frames(const struct mr_port *p, struct mr_err *err)
{
	struct rte_eth_dev_info info;
	struct rte_eth_rxq_info queue;

	if (rte_eth_dev_info_get(p->id, &info) != 0)
		return 0;
	for (uint16_t q = 0; q < info.nb_rx_queues; q++)
		if (rte_eth_rx_queue_info_get(p->id, q, &queue) == 0 && queue.scattered_rx != 0)
			return mr_err_set(err, -EINVAL,
				"port '%s' (%s): the driver %s would split long frames over "
				"several "
				"buffers, which a lane does not take; give the port a smaller mtu",
				p->name, p->device, p->driver);
	return 0;
}

int mr_port_start(struct mr_port *p, struct mr_err *err)
{
	int rc = mr_port_mlx5_prepare(p, err);

	if (rc < 0)
		return rc;
	rc = rte_eth_dev_start(p->id);
	if (rc < 0)
		return FAIL(p, rc, "rte_eth_dev_start");
	p->started = true;
	/* Not every software driver knows the mode; those deliver everything anyway. Rules see
	 * frames whatever their address. */
	rc = p->isolated ? 0 : rte_eth_promiscuous_enable(p->id);
	if (rc < 0 && rc != -ENOTSUP)
		return FAIL(p, rc, "rte_eth_promiscuous_enable");
	return p->splits ? 0 : check_whole_frames(p, err);
}

void mr_port_stop(struct mr_port *p)
{
	mr_port_unsteer(p);
	if (p->started)
		(void)rte_eth_dev_stop(p->id);
	p->started = false;
}

void mr_port_close(struct mr_port *p)
{
	mr_port_stop(p);
	if (p->configured)
		(void)rte_eth_dev_close(p->id);
	p->configured = false;
}

void mr_port_remove(struct mr_port *p)
{
	mr_port_close(p);
	if (p->probed && !p->vdev)
		(void)rte_dev_event_callback_unregister(p->device, device_event, p);
	if (p->probed && p->vdev)
		(void)rte_vdev_uninit(p->device);
	p->probed = false;
	mr_port_files_close(&p->files);
	mr_port_kernel_restore(&p->kernel);
}

void mr_port_stats_read(const struct mr_port *p, struct mr_port_stats *ret_stats)
{
	static pthread_mutex_t one_reader = PTHREAD_MUTEX_INITIALIZER;
	struct rte_eth_link link = {0};
	struct rte_eth_stats s = {0};
	int rc;

	memset(ret_stats, 0, sizeof(*ret_stats));
	ret_stats->present = mr_load_acquire(&p->leaving) == 0 &&
		rte_eth_dev_is_valid_port(p->id) && !rte_eth_dev_is_removed(p->id);
	if (!ret_stats->present)
		return;
	ret_stats->link_up =
		rte_eth_link_get_nowait(p->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
	/* net_pcap calls every link up. */
	if (p->kernel.ifname[0] != '\0')
		mr_port_kernel_link(&p->kernel, &ret_stats->present, &ret_stats->link_up);
	pthread_mutex_lock(&one_reader);
	rc = rte_eth_stats_get(p->id, &s);
	pthread_mutex_unlock(&one_reader);
	if (rc != 0)
		return;
	ret_stats->rx_missed = s.imissed;
	ret_stats->rx_errors = s.ierrors;
	ret_stats->rx_nombuf = s.rx_nombuf;
	ret_stats->tx_errors = s.oerrors;
}

uint32_t mr_port_judge(const struct mr_port *p, uint32_t port, mr_port_tell *tell, void *ctx)
{
	struct rte_eth_stats s = {0};
	uint32_t told = 0;

	if (p->files.count == 0 || rte_eth_stats_get(p->id, &s) != 0)
		return 0;
	for (uint32_t i = 0; i < p->files.count; i++) {
		const struct mr_port_file *f = &p->files.file[i];
		struct mr_port_file_counts counts;
		struct mr_err err;
		char text[1800];

		/* net_pcap has no more queues than these. */
		if (f->queue >= RTE_ETHDEV_QUEUE_STAT_CNTRS)
			continue;
		counts.packets = f->written ? s.q_opackets[f->queue] : s.q_ipackets[f->queue];
		counts.bytes = f->written ? s.q_obytes[f->queue] : s.q_ibytes[f->queue];
		/* Those that it read and could not deliver, of any queue. */
		if (!f->written)
			counts.packets += s.rx_nombuf + s.ierrors;
		if (mr_port_file_judge(f, &counts, &err) == 0)
			continue;
		snprintf(text, sizeof(text), "port '%s': %s '%s' %s", p->name,
			f->written ? "tx_pcap" : "rx_pcap", f->path, err.msg);
		tell(ctx, port, "", text);
		told++;
	}
	return told;
}
