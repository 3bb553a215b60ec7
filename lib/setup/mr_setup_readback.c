/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames out of each port and in again, before lanes start, and what its NIC counts of them. */
#include "mr_gpu_prove.h"
#include "mr_port_loop.h"
#include "mr_setup_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOP_WAIT_MS 2000u
#define LOOP_FOREIGN_MAX 256u /* frames of others that are dropped before it is given up */
#define LOOP_BYTES_MAX (2 * MR_REGION_PAGE)

/* A frame out of a port and in again, and where it lies. */
struct loop {
	struct mr_setup *s;
	struct mr_port_loop *l;
	struct mr_proof *proof;
	uint32_t port;
	uint32_t device, kind;   /* that it is sent from */
	uint32_t foreign;        /* frames of others */
	uint64_t sent, received; /* bytes of our frames */
	uint8_t want[LOOP_BYTES_MAX], got[LOOP_BYTES_MAX];
};

static const struct mr_gpu_region *find_region(struct mr_setup *s, const void *addr, uint32_t bytes,
	uint32_t *ret_device, uint32_t *ret_kind)
{
	for (uint32_t i = 0; i < s->plan->devices_count; i++)
		for (uint32_t k = 0; k < MR_PATH_COUNT; k++) {
			const struct mr_gpu_region *r = &s->devices[i].region[k];
			size_t at = (size_t)((uintptr_t)addr - (uintptr_t)r->addr);

			if (r->addr == NULL || at >= r->bytes || bytes > r->bytes - at)
				continue;
			*ret_device = i;
			*ret_kind = k;
			return r;
		}
	return NULL;
}

/* Waits for the frame; those of others are dropped. 1: it is what was sent. */
static int loop_receive(struct loop *l, uint32_t bytes, struct mr_err *err)
{
	while (l->foreign < LOOP_FOREIGN_MAX) {
		const struct mr_gpu_region *r;
		uint32_t device = 0, kind = 0;
		const void *addr;
		uint32_t came;
		int rc = mr_port_loop_receive(l->l, LOOP_WAIT_MS, &addr, &came);

		if (rc < 0) {
			mr_proof_set(l->proof, MR_FAIL,
				"a frame of %u bytes did not come back in %u ms", bytes,
				LOOP_WAIT_MS);
			return 0;
		}
		r = find_region(l->s, addr, came, &device, &kind);
		if (r == NULL) {
			mr_proof_set(l->proof, MR_FAIL,
				"a frame came back at %p, which is not packet memory", addr);
			return 0;
		}
		if (came != bytes) {
			l->foreign++;
			continue;
		}
		rc = mr_gpu_get(l->s->devices[device].gpu, r,
			(size_t)((uintptr_t)addr - (uintptr_t)r->addr), l->got, came, err);
		if (rc < 0)
			return rc;
		rc = (int)mr_proof_differs(l->got, l->want + MR_PROOF_GUARD, bytes);
		if (rc == (int)bytes) {
			l->sent += bytes;
			l->received += bytes;
			l->s->proof.arrived[l->port][device][kind] = true;
			return 1;
		}
		/* Of others only if not even its head is ours. */
		if (rc >= 14) {
			mr_proof_set(l->proof, MR_FAIL,
				"a frame of %u bytes came back with byte %d changed", bytes, rc);
			return 0;
		}
		l->foreign++;
	}
	mr_proof_set(l->proof, MR_FAIL, "only frames of others came back");
	return 0;
}

/* At offset of the region, guards around it. 1: it came back and all is as it was. */
static int loop_frame(struct loop *l, const struct mr_gpu_region *r, size_t offset, uint32_t bytes,
	struct mr_err *err)
{
	struct mr_gpu *gpu = l->s->devices[l->device].gpu;
	uint32_t span = bytes + 2 * MR_PROOF_GUARD, at;
	uint8_t mac[6];
	int rc;

	mr_port_loop_mac(l->l, mac);
	memset(l->want, MR_PROOF_CANARY, span);
	mr_proof_frame(l->want + MR_PROOF_GUARD, bytes, mac, bytes + (uint32_t)mr_clock_ns());
	rc = mr_gpu_put(gpu, r, offset, l->want, span, err);
	if (rc < 0)
		return rc;
	rc = mr_port_loop_send(
		l->l, (uint8_t *)r->addr + offset + MR_PROOF_GUARD, bytes, LOOP_WAIT_MS);
	if (rc < 0) {
		mr_proof_set(l->proof, MR_FAIL, "the port does not send a frame of %u bytes: %s",
			bytes, strerror(-rc));
		return 0;
	}
	rc = loop_receive(l, bytes, err);
	if (rc != 1)
		return rc;
	rc = mr_gpu_get(gpu, r, offset, l->got, span, err);
	if (rc < 0)
		return rc;
	at = mr_proof_differs(l->got, l->want, span);
	if (at != span)
		mr_proof_set(l->proof, MR_FAIL,
			"sending a frame of %u bytes changed memory beside it", bytes);
	return at == span;
}

/*
 * Only what no buffer uses may be written to: the padding page at the region's end, and
 * the boundary before it where the pools leave room.
 */
static int loop_region(struct loop *l, uint32_t frame_max, struct mr_err *err)
{
	const struct mr_gpu_region *r = &l->s->devices[l->device].region[l->kind];
	const struct mr_plan_region *plan = &l->s->plan->devices[l->device].region[l->kind];
	const size_t padding = r->bytes - MR_REGION_PAGE;
	uint32_t sizes[MR_PROOF_SIZES_MAX];
	uint32_t count = mr_proof_sizes(frame_max, sizes);
	bool across = plan->need_bytes + frame_max + 2 * MR_PROOF_GUARD <= padding;
	int rc = 1;

	for (uint32_t i = 0; i < count && rc == 1; i++) {
		uint32_t span = sizes[i] + 2 * MR_PROOF_GUARD;

		rc = loop_frame(l, r, r->bytes - span, sizes[i], err);
		if (rc == 1 && across)
			rc = loop_frame(l, r, padding - span / 2, sizes[i], err);
	}
	if (rc == 1)
		mr_proof_set(l->proof, MR_PASS,
			"%u sizes of %u to %u bytes out and in again%s, guards untouched, %u "
			"frames of "
			"others dropped",
			count, sizes[0], frame_max,
			across ? ", also across 64 KiB" : "; no room across 64 KiB", l->foreign);
	return rc < 0 ? rc : 0;
}

static int loop_port(struct mr_setup *s, uint32_t port, struct mr_err *err)
{
	const struct mr_plan_port *p = &s->plan->ports[port];
	struct loop *l = calloc(1, sizeof(*l));
	struct mr_proof_nic before, after;
	int rc = l == NULL ? mr_err_set(err, -ENOMEM, "out of memory")
			   : mr_port_loop_open(&s->ports[port], &l->l, err);

	if (rc == 0 && p->kind == MR_PORT_PCI)
		mr_proof_nic_read(&s->proof.machine.root, p->device, &before);

	for (uint32_t m = 0; rc == 0 && m < s->maps_count; m++) {
		if (s->maps[m].port != port)
			continue;
		l->s = s;
		l->port = port;
		l->proof = &s->proof.readback[port];
		l->device = s->maps[m].device;
		l->kind = s->maps[m].path;
		rc = loop_region(l, p->frame_max, err);
	}
	if (rc == 0 && p->kind == MR_PORT_PCI) {
		mr_proof_nic_read(&s->proof.machine.root, p->device, &after);
		mr_proof_nic_judge(&before, &after, l->sent, l->received, &s->proof.traffic[port]);
	}
	if (l != NULL)
		mr_port_loop_close(l->l);
	free(l);
	return rc;
}

int mr_setup_readback_up(struct mr_setup *s, struct mr_err *err)
{
	for (uint32_t i = 0; i < s->plan->ports_count && s->plan->lanes_count > 0; i++) {
		const struct mr_plan_port *p = &s->plan->ports[i];
		struct mr_proof *proof = &s->proof.readback[i];
		const char *why = "";
		bool offered = mr_port_loop_offered(&s->ports[i], p->args, &why);
		int rc;

		if (s->plan->readback == MR_READBACK_OFF) {
			mr_proof_set(proof, MR_NA, "switched off by proof.readback");
		} else if (mr_plan_port_isolated(p)) {
			mr_proof_set(proof, MR_NA,
				"not offered: the port takes what lanes match, and no test frame");
		} else if (p->rx_queues == 0 || p->tx_queues == 0) {
			mr_proof_set(proof, MR_NA, "not offered: lanes use one direction only");
		} else if (!offered && s->plan->readback != MR_READBACK_PORT) {
			mr_proof_set(proof, MR_NA, "not offered: %s", why);
		} else {
			rc = loop_port(s, i, err);
			if (rc < 0)
				return rc;
		}
	}
	return mr_setup_proof_judge(s, err);
}
