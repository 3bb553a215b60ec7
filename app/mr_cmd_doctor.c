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
	mr_plugins_free(&d->plugins);
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

static int ask_nothing(void *ctx, const char *question, char text[MR_PROBE_TEXT_MAX])
{
	(void)ctx;
	(void)question;
	(void)text;
	return -ENOTSUP;
}

void mr_doctor_spare_devices(struct mr_doctor *d)
{
	if (d->root.live)
		d->probe.ask = ask_nothing;
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
	const bool first = d->topology == NULL;
	struct mr_check_in in;

	if (first)
		d->topology = mr_facts_topology_new(d->facts, err);
	if (d->topology == NULL)
		return err->code;
	if (plan == NULL)
		mr_needs_general(d->facts, d->topology, d->needs);
	else
		mr_doctor_needs(plan, 0, plan->lanes_count, d->facts, d->needs);
	if (plan != NULL && d->ask_instance && d->root.live)
		add_instance(d->needs);
	mr_needs_probe(d->needs, &d->probe, d->facts);
	if (first && d->watch && (d->needs->gpus_count > 0 || d->needs->nics_count > 0)) {
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

static bool lists_another(const struct mr_config_lane *c)
{
	return c->path_count > 1 || c->rx_path_count > 1 || c->tx_path_count > 1;
}

/* Judged of packets in GPU memory alone, and asked of a pinned lane's NIC and GPU as well. */
static bool is_of_all_paths(uint32_t check)
{
	return strcmp(mr_checks[check].id, "devices.nodes") == 0 ||
		strcmp(mr_checks[check].id, "limits.memlock") == 0;
}

/* What the devices were not asked, and is asked of a direct lane alone: names with commas. */
static void list_unasked(const struct mr_doctor *d, const struct mr_finding *with,
	const struct mr_finding *without, char ret[MR_HOST_WHY_MAX])
{
	size_t used = 0;

	ret[0] = '\0';
	for (uint32_t i = 0; i < MR_CHECKS_COUNT && used < MR_HOST_WHY_MAX; i++)
		if (!d->skip[i] && !is_of_all_paths(i) && with[i].verdict == MR_UNKNOWN &&
			without[i].verdict != MR_UNKNOWN)
			used += (size_t)snprintf(ret + used, MR_HOST_WHY_MAX - used, "%s%s",
				used > 0 ? ", " : "", mr_checks[i].id);
}

/*
 * The first check that fails as the lanes are planned, and would not if none of them were
 * direct; MR_CHECKS_COUNT: none.
 */
static uint32_t what_keeps(const struct mr_doctor *d, struct mr_needs *needs,
	struct mr_finding with[MR_CHECKS_COUNT], struct mr_finding without[MR_CHECKS_COUNT])
{
	const struct mr_check_in in = {d->facts, d->topology, needs};
	uint32_t i = 0;

	mr_checks_run(&in, with);
	needs->pairs_count = 0;
	for (uint32_t k = 0; k < needs->gpus_count; k++)
		needs->gpus[k].direct = false;
	for (uint32_t k = 0; k < needs->nics_count; k++)
		needs->nics[k].direct = false;
	mr_checks_run(&in, without);
	while (i < MR_CHECKS_COUNT &&
		(d->skip[i] || is_of_all_paths(i) || with[i].verdict != MR_FAIL ||
			without[i].verdict == MR_FAIL))
		i++;
	return i;
}

/* Each lane by itself, since another's pair of devices says nothing about its own. */
static int find_kept(struct mr_doctor *d, const struct mr_config *cfg, const struct mr_plan *plan,
	bool *ret_kept, bool *ret_unasked, struct mr_err *err)
{
	struct mr_finding *findings = calloc(2 * (size_t)MR_CHECKS_COUNT, sizeof(*findings));
	struct mr_needs *needs = calloc(1, sizeof(*needs));
	int rc = findings == NULL || needs == NULL ? mr_err_set(err, -ENOMEM, "out of memory") : 0;

	for (uint32_t i = 0; rc == 0 && i < plan->lanes_count; i++) {
		uint32_t check;

		if (!lists_another(&cfg->lanes[i]))
			continue;
		mr_doctor_needs(plan, i, 1, d->facts, needs);
		check = what_keeps(d, needs, findings, findings + MR_CHECKS_COUNT);
		if (check == MR_CHECKS_COUNT) {
			list_unasked(
				d, findings, findings + MR_CHECKS_COUNT, d->facts->host.unasked[i]);
			*ret_unasked |= d->facts->host.unasked[i][0] != '\0';
			continue;
		}
		snprintf(d->facts->host.no_direct[i], MR_HOST_WHY_MAX, "%s: %.200s",
			mr_checks[check].id, findings[check].value);
		*ret_kept = true;
	}
	free(findings);
	free(needs);
	return rc;
}

int mr_doctor_plan(struct mr_doctor *d, const struct mr_config *cfg, const char *name, bool strict,
	struct mr_plan *ret_plan, struct mr_problems *problems, struct mr_err *err)
{
	bool kept = false, unasked = false;
	int rc;

	memset(d->facts->host.no_direct, 0, sizeof(d->facts->host.no_direct));
	memset(d->facts->host.unasked, 0, sizeof(d->facts->host.unasked));
	rc = mr_plan_build(cfg, &d->facts->host, name, ret_plan, problems);
	if (rc == 0)
		rc = mr_doctor_judge(d, ret_plan, strict, err);
	if (rc == 0)
		rc = find_kept(d, cfg, ret_plan, &kept, &unasked, err);
	if (rc == 0 && (kept || unasked))
		rc = mr_plan_build(cfg, &d->facts->host, name, ret_plan, problems);
	if (rc == 0 && kept)
		rc = mr_doctor_judge(d, ret_plan, strict, err);
	return rc;
}
