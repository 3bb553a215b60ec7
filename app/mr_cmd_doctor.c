/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd_doctor.h"

#include "mr_nearest.h"
#include "mr_report_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int mr_doctor_init(struct mr_doctor *d, const char *root, struct mr_err *err)
{
	int rc;

	memset(d, 0, sizeof(*d));
	d->root.fd = -1;
	rc = mr_root_open(&d->root, root, err);
	if (rc != 0)
		return rc;
	d->machine = (struct mr_probe_machine){.root = &d->root, .wait_ms = MR_PROBE_WAIT_MS};
	if (d->root.live)
		d->probe = (struct mr_probe){.ctx = &d->machine, .ask = mr_probe_live};
	else
		d->probe = (struct mr_probe){.ctx = &d->root, .ask = mr_probe_files};
	d->facts = calloc(1, sizeof(*d->facts));
	d->needs = calloc(1, sizeof(*d->needs));
	if (d->facts != NULL && d->needs != NULL)
		return 0;
	mr_doctor_fini(d);
	return mr_err_set(err, -ENOMEM, "out of memory for the facts of a machine");
}

void mr_doctor_fini(struct mr_doctor *d)
{
	mr_facts_topology_free(d->topology);
	free(d->facts);
	free(d->needs);
	mr_root_close(&d->root);
}

bool mr_doctor_take_check(const char *id, bool set[MR_CHECKS_COUNT])
{
	uint32_t check = mr_checks_find(id);
	struct mr_nearest near;

	if (check < MR_CHECKS_COUNT) {
		set[check] = true;
		return true;
	}
	mr_nearest_init(&near, id);
	for (uint32_t i = 0; i < MR_CHECKS_COUNT; i++)
		mr_nearest_offer(&near, mr_checks[i].id);
	fprintf(stderr, "millrace: there is no check '%s'", id);
	if (mr_nearest_get(&near) != NULL)
		fprintf(stderr, "; did you mean '%s'?", mr_nearest_get(&near));
	fprintf(stderr, "\n");
	return false;
}

int mr_doctor_read(struct mr_doctor *d, struct mr_err *err)
{
	int rc = mr_facts_read(&d->root, &d->probe, d->facts, err);

	d->facts->host.facts = d->facts;
	return rc;
}

/* Where others may write, they could put a socket of their own under our name. */
static bool is_open(const char *base)
{
	char folder[256];
	struct stat st;

	if (stat(base, &st) == 0 && (st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0)
		return true;
	snprintf(folder, sizeof(folder), "%.240s/dpdk", base);
	return stat(folder, &st) == 0 &&
		((st.st_mode & S_IWOTH) != 0 || (st.st_uid != geteuid() && st.st_uid != 0));
}

static void add_instance(struct mr_needs *n)
{
	char dir[MR_REPORT_DIR_MAX];
	struct mr_report_client client;

	if (mr_report_dir(n->name, dir, NULL) == 0) {
		/* BASE/dpdk/millrace-NAME */
		for (uint32_t i = 0; i < 2 && strrchr(dir, '/') != NULL; i++)
			*strrchr(dir, '/') = '\0';
		snprintf(n->runtime, sizeof(n->runtime), "%.255s", dir);
		n->runtime_open = is_open(n->runtime);
	}
	if (mr_report_client_open(&client, n->name, NULL) != 0)
		return;
	n->running = true;
	mr_report_client_close(&client);
}

int mr_doctor_judge(
	struct mr_doctor *d, const struct mr_plan *plan, bool strict, struct mr_err *err)
{
	struct mr_check_in in;

	d->topology = mr_facts_topology_new(d->facts, err);
	if (d->topology == NULL)
		return err->code;
	if (plan == NULL)
		mr_needs_general(d->facts, d->topology, d->needs);
	else
		mr_doctor_needs(plan, d->facts, d->needs);
	if (plan != NULL && d->ask_instance && d->root.live)
		add_instance(d->needs);
	mr_needs_probe(d->needs, &d->probe, d->facts);
	if (d->watch && (d->needs->gpus_count > 0 || d->needs->nics_count > 0)) {
		if (d->root.live)
			sleep(MR_DOCTOR_WATCH_S);
		mr_facts_read_later(&d->root, d->facts);
	}
	in = (struct mr_check_in){.f = d->facts, .topology = d->topology, .needs = d->needs};
	mr_checks_run(&in, d->findings);
	for (uint32_t i = 0; i < MR_CHECKS_COUNT; i++)
		d->findings[i].skipped = d->skip[i];
	if (strict)
		mr_checks_be_strict(d->findings);
	return 0;
}
