/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_proof_watch.h"

#include "mr_facts_priv.h"
#include "mr_parse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES "sys/bus/pci/devices/"
#define PEERS "sys/kernel/mm/memory_peers/"
#define BUFFERS "sys/kernel/debug/dma_buf/bufinfo"
#define BUFFERS_MAX ((size_t)1 << 20)

static bool read_number(struct mr_root *root, const char *folder, const char *file, uint64_t *ret_v)
{
	char path[160], text[64];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return mr_root_read(root, path, text, sizeof(text), NULL) == 0 && mr_parse_u64(text, ret_v);
}

/* Drivers differ in the folder's name. */
static bool read_counts(struct mr_proof_watch *w, uint64_t *ret_registered, uint64_t *ret_revoked)
{
	static const char *const folders[] = {PEERS "nv_mem", PEERS "nv_mem_nc"};

	for (size_t i = 0; i < MR_ARRAY_LEN(folders); i++)
		if (read_number(&w->root, folders[i], "num_reg_bytes", ret_registered) &&
			read_number(&w->root, folders[i], "num_free_callbacks", ret_revoked)) {
			snprintf(w->from, sizeof(w->from), "/%s", folders[i]);
			return true;
		}
	return false;
}

int mr_proof_watch_open(struct mr_proof_watch *w, const char *root, struct mr_err *err)
{
	int rc;

	memset(w, 0, sizeof(*w));
	rc = mr_root_open(&w->root, root, err);
	if (rc == 0)
		w->counts = read_counts(w, &w->registered, &w->revoked);
	else
		w->root.fd = -1;
	return rc;
}

void mr_proof_watch_close(struct mr_proof_watch *w)
{
	mr_root_close(&w->root);
}

static void read_link(struct mr_root *root, const char *bdf, const char *file, char text[32])
{
	char path[160];

	snprintf(path, sizeof(path), DEVICES "%s/%s", bdf, file);
	if (mr_root_read(root, path, text, 32, NULL) != 0)
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

static void read_device(struct mr_root *root, const char *bdf, struct mr_proof_device *ret)
{
	struct mr_facts_pci pci = {0};
	char path[160];

	snprintf(path, sizeof(path), DEVICES "%s", bdf);
	if (mr_root_real(root, path, ret->path) != 0)
		ret->path[0] = '\0';
	read_link(root, bdf, "current_link_width", ret->width);
	read_link(root, bdf, "current_link_speed", ret->speed);
	mr_facts_aer(root, path, &pci);
	ret->counts_errors =
		pci.aer_fatal.state == MR_FACT_KNOWN && pci.aer_nonfatal.state == MR_FACT_KNOWN;
	ret->errors = pci.aer_fatal.v + pci.aer_nonfatal.v;
}

void mr_proof_watch_add(struct mr_proof_watch *w, const char *bdf, bool gpu)
{
	struct mr_proof_device *d = &w->device[w->count];

	for (uint32_t i = 0; i < w->count; i++)
		if (strcmp(w->device[i].bdf, bdf) == 0)
			return;
	if (w->count == MR_PROOF_WATCH_MAX)
		return;
	snprintf(d->bdf, sizeof(d->bdf), "%s", bdf);
	d->gpu = gpu;
	read_device(&w->root, bdf, d);
	d->attached_known = !gpu && mr_proof_watch_attached(w, bdf, &d->attached);
	w->count++;
}

bool mr_proof_watch_registered(struct mr_proof_watch *w, uint64_t *ret_bytes)
{
	uint64_t now, revoked;

	if (!w->counts || !read_counts(w, &now, &revoked))
		return false;
	*ret_bytes = now - w->registered;
	return true;
}

/* Under "Attached Devices:" of each buffer, a line for each device. */
bool mr_proof_watch_attached(struct mr_proof_watch *w, const char *bdf, uint32_t *ret_count)
{
	char *text = malloc(BUFFERS_MAX), *rest = NULL;
	bool known = text != NULL && mr_root_read(&w->root, BUFFERS, text, BUFFERS_MAX, NULL) == 0;

	*ret_count = 0;
	for (char *line = known ? strtok_r(text, "\n", &rest) : NULL; line != NULL;
		line = strtok_r(NULL, "\n", &rest))
		*ret_count += strcmp(line + strspn(line, "\t "), bdf) == 0;
	free(text);
	return known;
}

/* Whether it is there at all, which who may not look into its folder cannot tell. */
static bool is_absent(struct mr_root *root, const char *path)
{
	char text[8];

	return mr_root_read(root, path, text, sizeof(text), NULL) == -ENOENT;
}

void mr_proof_watch_judge_registered(
	struct mr_proof_watch *w, uint64_t mapped, struct mr_proof *ret_proof)
{
	uint64_t counted;

	if (mr_proof_watch_registered(w, &counted))
		mr_proof_set(ret_proof, counted >= mapped ? MR_PASS : MR_FAIL,
			"%s: %" PRIu64 " bytes were registered, by ports %" PRIu64, w->from,
			counted, mapped);
	else if (is_absent(&w->root, PEERS "nv_mem/num_reg_bytes") &&
		is_absent(&w->root, PEERS "nv_mem_nc/num_reg_bytes"))
		mr_proof_set(ret_proof, MR_NA,
			"no module counts: there is no /" PEERS "nv_mem/num_reg_bytes");
	else
		mr_proof_set(ret_proof, MR_UNKNOWN, "not readable: /" PEERS "nv_mem/num_reg_bytes");
}

void mr_proof_watch_judge_attached(
	struct mr_proof_watch *w, const char *bdf, struct mr_proof *ret_proof)
{
	const struct mr_proof_device *d = NULL;
	uint32_t count;

	for (uint32_t i = 0; i < w->count; i++)
		if (strcmp(w->device[i].bdf, bdf) == 0)
			d = &w->device[i];
	if (!mr_proof_watch_attached(w, bdf, &count))
		mr_proof_set(ret_proof, is_absent(&w->root, BUFFERS) ? MR_NA : MR_UNKNOWN,
			is_absent(&w->root, BUFFERS) ? "there is no /" BUFFERS
						     : "not readable: /" BUFFERS);
	else if (d != NULL && d->attached_known)
		mr_proof_set(ret_proof, count >= d->attached ? MR_PASS : MR_UNKNOWN,
			"%s is attached to %u dma-bufs, and was to %u before the start; what it "
			"registered by peer memory is not among them",
			bdf, count, d->attached);
	else
		mr_proof_set(ret_proof, MR_PASS,
			"%s is attached to %u dma-bufs; what it registered by peer memory is not "
			"among them",
			bdf, count);
}

static bool changed(const char *before, const char *now)
{
	/* What could not be read then, or cannot be now, is no change of a link. */
	return before[0] != '\0' && now[0] != '\0' && strcmp(before, now) != 0;
}

static void look_at(struct mr_root *root, struct mr_proof_device *d, mr_proof_tell *tell, void *ctx)
{
	struct mr_proof_device now;
	char sentence[256] = "";

	read_device(root, d->bdf, &now);
	if (d->path[0] != '\0' && strcmp(d->path, now.path) != 0)
		snprintf(sentence, sizeof(sentence),
			"%s is no longer where it was in the PCI tree%s", d->bdf,
			now.path[0] == '\0' ? ", and nowhere else" : "");
	else if (changed(d->width, now.width))
		snprintf(sentence, sizeof(sentence),
			"the PCIe link of %s was trained anew: width %s, it was %s", d->bdf,
			now.width, d->width);
	else if (!d->gpu && changed(d->speed, now.speed))
		snprintf(sentence, sizeof(sentence),
			"the PCIe link of %s was trained anew: %s, it was %s", d->bdf, now.speed,
			d->speed);
	else if (d->counts_errors && now.counts_errors && now.errors > d->errors)
		snprintf(sentence, sizeof(sentence),
			"%s counts %" PRIu64 " PCIe errors that nothing corrected since the start",
			d->bdf, now.errors - d->errors);
	if (sentence[0] == '\0')
		return;
	d->said = true;
	tell(ctx, d->bdf, sentence);
}

void mr_proof_watch_look(struct mr_proof_watch *w, mr_proof_tell *tell, void *ctx)
{
	uint64_t registered, revoked;

	for (uint32_t i = 0; i < w->count; i++)
		if (!w->device[i].said)
			look_at(&w->root, &w->device[i], tell, ctx);
	if (w->counts && !w->revoked_said && read_counts(w, &registered, &revoked) &&
		revoked != w->revoked) {
		char sentence[256];

		w->revoked_said = true;
		snprintf(sentence, sizeof(sentence),
			"registrations of GPU memory were revoked: num_free_callbacks in %s went "
			"from "
			"%" PRIu64 " to %" PRIu64,
			w->from, w->revoked, revoked);
		tell(ctx, "", sentence);
	}
}
