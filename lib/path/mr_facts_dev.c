/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_facts_priv.h"

#include "mr_parse.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* May a device file be read and written? One that is a file of another kind is STRANGE. */
static enum mr_fact_state may_open(struct mr_root *r, const char *path)
{
	enum mr_fact_state state = mr_facts_state_of(mr_root_may(r, path, R_OK | W_OK));
	uint32_t mode;

	if (state != MR_FACT_KNOWN)
		return state;
	if (mr_root_mode(r, path, &mode) != 0)
		return MR_FACT_STRANGE;
	/* In a folder of facts an empty file stands for the device. */
	return S_ISCHR(mode) || (!r->live && S_ISREG(mode)) ? MR_FACT_KNOWN : MR_FACT_STRANGE;
}

/* The number of its device file stands in the driver's own description. */
static void read_gpu(struct mr_root *r, struct mr_host_facts *f, struct mr_facts_gpu *g)
{
	const struct mr_facts_pci *pci = &f->pci[g->pci];
	char path[MR_ROOT_PATH_MAX];
	char text[2048];
	const char *s;
	int rc;

	snprintf(path, sizeof(path), "proc/driver/nvidia/gpus/%s/information", pci->bdf);
	rc = mr_root_read(r, path, text, sizeof(text), NULL);
	g->minor.state = mr_facts_state_of(rc);
	if (rc != 0)
		return;
	s = mr_parse_line(text, "Device Minor");
	if (s == NULL || !mr_parse_take_u64(&s, &g->minor.v) || g->minor.v >= 1024) {
		g->minor.state = MR_FACT_STRANGE;
		return;
	}
	snprintf(path, sizeof(path), "dev/nvidia%u", (uint32_t)g->minor.v);
	g->open = may_open(r, path);
}

static void read_netdev(struct mr_root *r, const char *folder, struct mr_facts_nic *n)
{
	char path[MR_ROOT_PATH_MAX];

#define AT(name) (snprintf(path, sizeof(path), "%s/net/%s/%s", folder, n->netdev.v, name), path)
	mr_facts_u64_at(r, AT("carrier"), &n->carrier);
	mr_facts_u64_at(r, AT("carrier_changes"), &n->carrier_changes);
	mr_facts_u64_at(r, AT("speed"), &n->speed_mbps);
	mr_facts_u64_at(r, AT("mtu"), &n->mtu);
#undef AT
}

/* "4: ACTIVE" → ACTIVE, as the number says nothing more. */
static void cut_number(struct mr_fact_text *t)
{
	const char *s = t->v;
	uint64_t number;

	if (t->state != MR_FACT_KNOWN)
		return;
	if (!mr_parse_take_u64(&s, &number) || strncmp(s, ": ", 2) != 0) {
		t->state = MR_FACT_STRANGE;
		return;
	}
	memmove(t->v, s + 2, strlen(s + 2) + 1);
}

static void read_verbs(struct mr_root *r, const char *folder, struct mr_facts_nic *n)
{
	char path[MR_ROOT_PATH_MAX];

#define AT(name)                                                                                   \
	(snprintf(path, sizeof(path), "%s/infiniband/%s/%s", folder, n->verbs.v, name), path)
	mr_facts_text_at(r, AT("fw_ver"), &n->firmware);
	mr_facts_text_at(r, AT("hca_type"), &n->hca_type);
	mr_facts_text_at(r, AT("ports/1/state"), &n->port_state);
	mr_facts_text_at(r, AT("ports/1/phys_state"), &n->phys_state);
	mr_facts_text_at(r, AT("ports/1/link_layer"), &n->link_layer);
#undef AT
	cut_number(&n->port_state);
	cut_number(&n->phys_state);
	snprintf(path, sizeof(path), "%s/infiniband_verbs", folder);
	mr_facts_first_in(r, path, &n->uverbs);
	if (n->uverbs.state != MR_FACT_KNOWN)
		return;
	snprintf(path, sizeof(path), "dev/infiniband/%s", n->uverbs.v);
	n->uverbs_open = may_open(r, path);
}

static void read_nic(struct mr_root *r, struct mr_host_facts *f, struct mr_facts_nic *n)
{
	const struct mr_facts_pci *pci = &f->pci[n->pci];
	char folder[MR_BDF_MAX + 32];
	char path[MR_ROOT_PATH_MAX];

	snprintf(folder, sizeof(folder), "sys/bus/pci/devices/%s", pci->bdf);
	snprintf(path, sizeof(path), "%s/net", folder);
	mr_facts_first_in(r, path, &n->netdev);
	if (n->netdev.state == MR_FACT_KNOWN)
		read_netdev(r, folder, n);
	snprintf(path, sizeof(path), "%s/infiniband", folder);
	mr_facts_first_in(r, path, &n->verbs);
	if (n->verbs.state == MR_FACT_KNOWN)
		read_verbs(r, folder, n);
}

void mr_facts_devices(struct mr_root *r, struct mr_host_facts *f)
{
	if (f->gpus_count > 0) {
		f->nvidiactl_open = may_open(r, "dev/nvidiactl");
		f->uvm_open = may_open(r, "dev/nvidia-uvm");
	}
	for (uint32_t i = 0; i < f->gpus_count; i++)
		read_gpu(r, f, &f->gpus[i]);
	for (uint32_t i = 0; i < f->nics_count; i++)
		read_nic(r, f, &f->nics[i]);
}
