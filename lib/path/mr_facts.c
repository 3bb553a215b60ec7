/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_facts_priv.h"

#include "mr_parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES_MAX 4096u

enum mr_fact_state mr_facts_state_of(int rc)
{
	switch (rc) {
	case 0:
		return MR_FACT_KNOWN;
	case -ENOENT:
	case -ENOTDIR:
	case -ENXIO:
	case -ENODEV:
		return MR_FACT_ABSENT;
	case -EACCES:
	case -EPERM:
		return MR_FACT_DENIED;
	case -ENODATA:
		return MR_FACT_UNREAD;
	default:
		return MR_FACT_STRANGE;
	}
}

const char *mr_fact_state_name(enum mr_fact_state state)
{
	static const char *const names[] = {[MR_FACT_UNREAD] = "not read",
		[MR_FACT_ABSENT] = "not there",
		[MR_FACT_DENIED] = "not readable by this user",
		[MR_FACT_STRANGE] = "not understood",
		[MR_FACT_KNOWN] = "known"};

	return names[state];
}

/* One line without the white space around it; false where a byte is not printable. */
static bool set_text(const char *line, struct mr_fact_text *ret)
{
	size_t n;
	bool good = true;

	line += strspn(line, " \t");
	n = strcspn(line, "\r\n");
	while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
		n--;
	if (n >= sizeof(ret->v))
		n = sizeof(ret->v) - 1;
	for (size_t i = 0; i < n; i++) {
		bool printable = line[i] >= 0x20 && line[i] < 0x7f;

		ret->v[i] = line[i];
		if (!printable)
			ret->v[i] = '?';
		good &= printable;
	}
	ret->v[n] = '\0';
	return good && n > 0;
}

void mr_facts_text_at(struct mr_root *r, const char *path, struct mr_fact_text *ret)
{
	char line[LINE_BYTES_MAX];
	int rc = mr_root_read(r, path, line, sizeof(line), NULL);

	ret->state = mr_facts_state_of(rc);
	ret->v[0] = '\0';
	if (rc == 0 && !set_text(line, ret))
		ret->state = MR_FACT_STRANGE;
}

void mr_facts_u64_at(struct mr_root *r, const char *path, struct mr_fact_u64 *ret)
{
	char line[128];
	int rc = mr_root_read(r, path, line, sizeof(line), NULL);

	ret->state = mr_facts_state_of(rc);
	if (rc == 0 && !mr_parse_u64(line, &ret->v))
		ret->state = MR_FACT_STRANGE;
}

void mr_facts_hex_at(struct mr_root *r, const char *path, struct mr_fact_u64 *ret)
{
	char line[128];
	int rc = mr_root_read(r, path, line, sizeof(line), NULL);

	ret->state = mr_facts_state_of(rc);
	if (rc == 0 && !mr_parse_hex(line, &ret->v))
		ret->state = MR_FACT_STRANGE;
}

void mr_facts_i64_at(struct mr_root *r, const char *path, struct mr_fact_i64 *ret)
{
	char line[128];
	int rc = mr_root_read(r, path, line, sizeof(line), NULL);

	ret->state = mr_facts_state_of(rc);
	if (rc == 0 && !mr_parse_i64(line, &ret->v))
		ret->state = MR_FACT_STRANGE;
}

void mr_facts_link_at(struct mr_root *r, const char *path, struct mr_fact_text *ret)
{
	char real[MR_ROOT_PATH_MAX];
	const char *slash;
	int rc = mr_root_real(r, path, real);

	ret->state = mr_facts_state_of(rc);
	ret->v[0] = '\0';
	if (rc != 0)
		return;
	slash = strrchr(real, '/');
	if (!set_text(slash == NULL ? real : slash + 1, ret))
		ret->state = MR_FACT_STRANGE;
}

void mr_facts_first_in(struct mr_root *r, const char *path, struct mr_fact_text *ret)
{
	struct mr_root_names names;
	int rc = mr_root_list(r, path, &names);

	ret->state = mr_facts_state_of(rc);
	ret->v[0] = '\0';
	if (rc != 0)
		return;
	if (names.count == 0)
		ret->state = MR_FACT_ABSENT;
	else if (!set_text(names.name[0], ret))
		ret->state = MR_FACT_STRANGE;
	mr_root_names_free(&names);
}

uint32_t mr_facts_find_gpu(const struct mr_host_facts *f, const char *bdf)
{
	for (uint32_t i = 0; i < f->gpus_count; i++)
		if (strcmp(f->pci[f->gpus[i].pci].bdf, bdf) == 0)
			return i;
	return MR_FACTS_NONE;
}

uint32_t mr_facts_find_nic(const struct mr_host_facts *f, const char *bdf)
{
	for (uint32_t i = 0; i < f->nics_count; i++)
		if (strcmp(f->pci[f->nics[i].pci].bdf, bdf) == 0)
			return i;
	return MR_FACTS_NONE;
}

int mr_facts_read(struct mr_root *root, const struct mr_probe *probe,
	struct mr_host_facts *ret_facts, struct mr_err *err)
{
	struct mr_host_facts *f = ret_facts;
	int rc;

	f->live = root->live;
	rc = mr_host_read_root(root, &f->host, err);
	if (rc != 0)
		return rc;
	mr_facts_kernel(root, f);
	mr_facts_process(root, f);
	mr_facts_modules(root, f);
	mr_facts_cpus(root, f);
	mr_facts_nodes(root, f);
	mr_facts_hugetlbfs(root, probe, f);
	mr_facts_pci(root, f);
	mr_facts_devices(root, f);
	mr_facts_log(root, f);
	mr_probe_ask_software(probe, &f->software);
	return 0;
}

static void read_aer_later(struct mr_root *root, const char *below, const struct mr_facts_pci *p,
	struct mr_fact_u64 *ret)
{
	char device[MR_ROOT_PATH_MAX];
	char path[MR_ROOT_PATH_MAX + 64];
	struct mr_facts_pci later;

	mr_facts_pci_path(p, device);
	snprintf(path, sizeof(path), "%s%s", below, device);
	mr_facts_aer(root, path, &later);
	ret->state = later.aer_fatal.state;
	if (later.aer_nonfatal.state != MR_FACT_KNOWN)
		ret->state = later.aer_nonfatal.state;
	ret->v = later.aer_fatal.v + later.aer_nonfatal.v;
}

void mr_facts_read_later(struct mr_root *root, struct mr_host_facts *f)
{
	const char *below = root->live ? "" : "millrace/later/";
	char device[MR_ROOT_PATH_MAX];
	char path[MR_ROOT_PATH_MAX + 64];

	root->recorded_below = root->live ? "millrace/later/" : NULL;
	for (uint32_t i = 0; i < f->gpus_count; i++)
		read_aer_later(root, below, &f->pci[f->gpus[i].pci], &f->gpus[i].aer_later);
	for (uint32_t i = 0; i < f->nics_count; i++) {
		struct mr_facts_nic *n = &f->nics[i];

		read_aer_later(root, below, &f->pci[n->pci], &n->aer_later);
		mr_facts_pci_path(&f->pci[n->pci], device);
		if (n->netdev.state != MR_FACT_KNOWN)
			continue;
		snprintf(path, sizeof(path), "%s%.900s/net/%s/carrier_changes", below, device,
			n->netdev.v);
		mr_facts_u64_at(root, path, &n->carrier_changes_later);
	}
	root->recorded_below = NULL;
}
