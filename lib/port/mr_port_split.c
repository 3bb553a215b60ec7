/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_port.h"

#include <errno.h>
#include <rte_ethdev.h>

/* A frame in two parts is scattered too, and drivers ask for both. */
#define SPLIT (RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER)
#define PARTS 2u /* headers and the rest, each of a pool of its own */

int mr_port_parts(const struct mr_port *p, const struct mr_port_spec *spec,
	uint64_t *ret_rx_offloads, uint64_t *ret_tx_offloads, struct mr_err *err)
{
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(p->id, &info);

	*ret_rx_offloads = spec->split_bytes != 0 ? SPLIT : 0;
	*ret_tx_offloads = spec->sends_parts ? RTE_ETH_TX_OFFLOAD_MULTI_SEGS : 0;
	if (rc < 0)
		return mr_err_set(
			err, rc, "port '%s' (%s): rte_eth_dev_info_get failed", p->name, p->device);
	if ((*ret_rx_offloads & ~info.rx_offload_capa) != 0 ||
		(spec->split_bytes != 0 &&
			(info.rx_seg_capa.max_nseg < PARTS || info.rx_seg_capa.multi_pools == 0)))
		return mr_err_set(err, -ENOTSUP,
			"port '%s' (%s): the driver %s does not split frames over buffers of two "
			"pools (RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT); leave split.header_bytes out",
			p->name, p->device, p->driver);
	if ((*ret_tx_offloads & ~info.tx_offload_capa) != 0)
		return mr_err_set(err, -ENOTSUP,
			"port '%s' (%s): the driver %s does not send from several buffers "
			"(RTE_ETH_TX_OFFLOAD_MULTI_SEGS), as frames of a port with "
			"split.header_bytes need",
			p->name, p->device, p->driver);
	return 0;
}
