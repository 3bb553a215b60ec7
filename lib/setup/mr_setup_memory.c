/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet memory: its regions, what knows of them, and the mbufs over them. */
#include "mr_gpu_prove.h"
#include "mr_setup_priv.h"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <stdio.h>

/* One region per device and memory kind, registered with DPDK as a whole. */
int mr_setup_regions_up(struct mr_setup *s, struct mr_err *err)
{
	for (uint32_t i = 0; i < s->plan->devices_count; i++)
		for (uint32_t k = 0; k < MR_PATH_COUNT; k++) {
			const struct mr_plan_region *want = &s->plan->devices[i].region[k];
			struct mr_setup_device *d = &s->devices[i];
			int rc;

			if (!want->used)
				continue;
			rc = mr_gpu_region_alloc(d->gpu,
				k == MR_PATH_DIRECT ? MR_GPU_MEMORY_DEVICE : MR_GPU_MEMORY_HOST,
				want->bytes, &d->region[k], err);
			if (rc < 0)
				return rc;
			if (rte_extmem_register(d->region[k].addr, d->region[k].bytes, NULL, 0,
				    MR_REGION_PAGE) != 0)
				return mr_err_set(err, -rte_errno,
					"device '%s': rte_extmem_register of %zu bytes at %p: %s",
					s->plan->devices[i].name, d->region[k].bytes,
					d->region[k].addr, rte_strerror(rte_errno));
			d->registered[k] = true;
		}
	return 0;
}

void mr_setup_regions_down(struct mr_setup *s)
{
	for (uint32_t i = s->plan->devices_count; i-- > 0;)
		for (uint32_t k = MR_PATH_COUNT; k-- > 0;) {
			struct mr_setup_device *d = &s->devices[i];

			if (d->registered[k])
				(void)rte_extmem_unregister(d->region[k].addr, d->region[k].bytes);
			d->registered[k] = false;
			mr_gpu_region_free(d->gpu, &d->region[k]);
		}
}

static int map_once(
	struct mr_setup *s, uint32_t port, uint32_t device, enum mr_path path, struct mr_err *err)
{
	struct mr_setup_map *m = &s->maps[s->maps_count];
	struct mr_gpu_region *r = &s->devices[device].region[path];
	struct mr_err why = {0};
	int rc;

	for (uint32_t i = 0; i < s->maps_count; i++)
		if (s->maps[i].port == port && s->maps[i].device == device &&
			s->maps[i].path == path)
			return 0;
	m->port = port;
	m->device = device;
	m->path = path;
	rc = mr_port_map(&s->ports[port], r->addr, r->bytes, &m->kind, err);
	if (rc < 0)
		return rc;
	s->maps_count++;
	rc = mr_gpu_peer_attach(s->devices[device].gpu, r, &why);
	if (rc < 0)
		return mr_err_set(err, rc, "port '%s' (%s): %s", s->ports[port].name,
			s->ports[port].device, why.msg);
	m->attached = true;
	return 0;
}

/* Every port that may receive into or send from a region registers all of it. */
int mr_setup_maps_up(struct mr_setup *s, struct mr_err *err)
{
	int begun = mr_setup_proof_begin(s, err);

	if (begun < 0)
		return begun;
	for (uint32_t i = 0; i < s->plan->lanes_count; i++) {
		const struct mr_plan_lane *l = &s->plan->lanes[i];
		int rc = map_once(s, l->rx_port, l->device, l->rx_path, err);

		for (uint32_t t = 0; rc == 0 && t < l->tx_count; t++)
			rc = map_once(s, l->tx[t].port, l->device, l->tx_path, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

void mr_setup_maps_down(struct mr_setup *s)
{
	while (s->maps_count > 0) {
		struct mr_setup_map *m = &s->maps[--s->maps_count];
		struct mr_gpu_region *r = &s->devices[m->device].region[m->path];

		if (m->attached)
			mr_gpu_peer_detach(s->devices[m->device].gpu, r);
		m->attached = false;
		/* What cannot be unmapped is unmapped by the device's end. */
		if (mr_port_unmap(&s->ports[m->port], r->addr, r->bytes, NULL) < 0)
			continue;
	}
	mr_setup_proof_end(s);
}

/* Without lanes the CPU reads and writes packets, in ordinary memory of EAL. */
static int host_pool_up(struct mr_setup *s, struct mr_err *err)
{
	const struct mr_plan *p = s->plan;

	s->host_pool = rte_pktmbuf_pool_create("mr-host", p->host_buffers, p->host_cache, 0,
		(uint16_t)p->host_element_bytes, SOCKET_ID_ANY);
	if (s->host_pool == NULL)
		return mr_err_set(err, -rte_errno,
			"pool of %u buffers of %u bytes: %s; raise hugepages or, without them, the "
			"memory of EAL (eal.args: [-m, MIB])",
			p->host_buffers, p->host_element_bytes, rte_strerror(rte_errno));
	return 0;
}

/* A pool of the lane's, at that place of a region. */
static int make_pool(struct mr_setup *s, uint32_t lane, const char *prefix,
	const struct mr_gpu_region *r, uint64_t offset, uint64_t bytes, uint32_t element_bytes,
	struct rte_mempool **ret_pool, struct mr_err *err)
{
	const struct mr_plan_lane *l = &s->plan->lanes[lane];
	struct rte_pktmbuf_extmem mem = {
		.buf_ptr = (uint8_t *)r->addr + offset,
		.buf_iova = (uint64_t)(uintptr_t)r->addr + offset,
		.buf_len = bytes,
		.elt_size = (uint16_t)element_bytes,
	};
	uint32_t buffers = (uint32_t)(bytes / element_bytes);
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "%s-%u", prefix, lane);
	*ret_pool = rte_pktmbuf_pool_create_extbuf(
		name, buffers, l->cache, 0, (uint16_t)element_bytes, SOCKET_ID_ANY, &mem, 1);
	if (*ret_pool == NULL)
		return mr_err_set(err, -rte_errno,
			"lane '%s': pool of %u buffers of %u bytes: %s; raise hugepages or, "
			"without them, the memory of EAL (eal.args: [-m, MIB])",
			l->name, buffers, element_bytes, rte_strerror(rte_errno));
	return 0;
}

int mr_setup_pools_up(struct mr_setup *s, struct mr_err *err)
{
	int rc = 0;

	if (s->plan->host_buffers > 0)
		return host_pool_up(s, err);
	for (uint32_t i = 0; rc == 0 && i < s->plan->lanes_count; i++) {
		const struct mr_plan_lane *l = &s->plan->lanes[i];

		rc = make_pool(s, i, "mr", mr_setup_region(s, i), l->pool_offset, l->pool_bytes,
			l->element_bytes, &s->lanes[i].pool, err);
		if (rc == 0 && l->rest_pool_bytes != 0)
			rc = make_pool(s, i, "mr-rest", mr_setup_region(s, i), l->rest_pool_offset,
				l->rest_pool_bytes, l->rest_element_bytes, &s->lanes[i].rest_pool,
				err);
		if (rc == 0 && l->tx_buffers != 0)
			rc = make_pool(s, i, "mr-tx", mr_setup_tx_region(s, i), l->tx_pool_offset,
				l->tx_pool_bytes, l->element_bytes, &s->lanes[i].tx_pool, err);
	}
	return rc;
}

void mr_setup_pools_down(struct mr_setup *s)
{
	rte_mempool_free(s->host_pool);
	s->host_pool = NULL;
	for (uint32_t i = s->plan->lanes_count; i-- > 0;) {
		rte_mempool_free(s->lanes[i].tx_pool);
		rte_mempool_free(s->lanes[i].rest_pool);
		rte_mempool_free(s->lanes[i].pool);
		s->lanes[i].tx_pool = NULL;
		s->lanes[i].rest_pool = NULL;
		s->lanes[i].pool = NULL;
	}
}
