/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd_doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *colour(enum mr_check_verdict v)
{
	static const char *const codes[] = {[MR_NA] = "\033[2m",
		[MR_PASS] = "\033[32m",
		[MR_WARN] = "\033[33m",
		[MR_UNKNOWN] = "\033[35m",
		[MR_FAIL] = "\033[31m"};

	return isatty(STDOUT_FILENO) ? codes[v] : "";
}

static const char *colour_end(void)
{
	return isatty(STDOUT_FILENO) ? "\033[0m" : "";
}

static void print_finding(const struct mr_check *c, const struct mr_finding *f)
{
	printf("%s%-8s%s%-22s %s%s\n", colour(f->verdict), mr_check_verdict_name(f->verdict),
		colour_end(), c->id, f->skipped ? "(skipped) " : "", f->value);
	if (f->verdict > MR_PASS) {
		printf("%-30s wanted: %s\n", "", c->title);
		if (f->hint[0] != '\0')
			printf("%-30s > %s\n", "", f->hint);
	}
}

/* Those that did not arise, a line for each reason. */
static void print_not_asked(const struct mr_doctor *d)
{
	for (uint32_t i = 0; i < MR_CHECKS_COUNT; i++) {
		const struct mr_finding *f = &d->findings[i];
		bool told = f->verdict != MR_NA;

		for (uint32_t k = 0; k < i && !told; k++)
			told = d->findings[k].verdict == MR_NA &&
				strcmp(d->findings[k].value, f->value) == 0;
		if (told)
			continue;
		printf("%s%-8s%s%s:", colour(MR_NA), "NA", colour_end(), f->value);
		for (uint32_t k = i; k < MR_CHECKS_COUNT; k++)
			if (d->findings[k].verdict == MR_NA &&
				strcmp(d->findings[k].value, f->value) == 0)
				printf(" %s", mr_checks[k].id);
		printf("\n");
	}
}

static uint32_t count(const struct mr_doctor *d, enum mr_check_verdict v)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MR_CHECKS_COUNT; i++)
		n += d->findings[i].verdict == v && !d->findings[i].skipped;
	return n;
}

static uint32_t count_skipped(const struct mr_doctor *d)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MR_CHECKS_COUNT; i++)
		n += d->findings[i].skipped;
	return n;
}

static void print_verdict(const struct mr_doctor *d)
{
	enum mr_check_verdict worst = mr_checks_worst(d->findings);
	const char *what = d->needs->configured ? "this configuration" : "a direct lane";
	const char *says[] = {[MR_PASS] = "has what it needs here",
		[MR_WARN] = "can run here, not at its best",
		[MR_UNKNOWN] = "may run here; not all could be read",
		[MR_FAIL] = "cannot run here as it should"};

	printf("%s%s%s: %s %s: %u failed, %u unknown, %u warnings, %u passed, %u skipped\n",
		colour(worst), mr_check_verdict_name(worst), colour_end(), what, says[worst],
		count(d, MR_FAIL), count(d, MR_UNKNOWN), count(d, MR_WARN), count(d, MR_PASS),
		count_skipped(d));
}

void mr_doctor_print(const struct mr_doctor *d, const struct mr_plan *plan)
{
	char *text = NULL;

	for (int v = MR_FAIL; v > MR_NA; v--)
		for (uint32_t i = 0; i < MR_CHECKS_COUNT; i++)
			if ((int)d->findings[i].verdict == v)
				print_finding(&mr_checks[i], &d->findings[i]);
	print_not_asked(d);
	if (d->facts->gpus_count > 0 || d->facts->nics_count > 0)
		text = mr_topology_text(&d->topology->topology);
	if (text != NULL && text[0] != '\0')
		printf("\n%s", text);
	free(text);
	text = d->needs->configured ? NULL : mr_topology_config(&d->topology->topology);
	if (text != NULL && text[0] != '\0')
		printf("\n%s", text);
	free(text);
	printf("\n");
	for (uint32_t i = 0; plan != NULL && i < plan->lanes_count; i++)
		printf("lane '%s': in %s, out %s; %s\n", plan->lanes[i].name,
			mr_path_name(plan->lanes[i].rx_path), mr_path_name(plan->lanes[i].tx_path),
			plan->lanes[i].path_why);
	print_verdict(d);
}

static json_t *pairs_json(const struct mr_doctor *d)
{
	const struct mr_topology *t = &d->topology->topology;
	json_t *all = json_array();

	for (uint32_t i = 0; i < t->pairs_count; i++) {
		const struct mr_topology_pair *p = &t->pairs[i];

		json_array_append_new(all,
			json_pack("{s:s, s:s, s:s, s:b}", "gpu", d->facts->pci[p->gpu].bdf, "nic",
				d->facts->pci[p->nic].bdf, "near", mr_topology_near_name(p->near),
				"uncertain", p->uncertain));
	}
	return all;
}

static json_t *lanes_json(const struct mr_plan *plan)
{
	json_t *all = json_array();

	for (uint32_t i = 0; plan != NULL && i < plan->lanes_count; i++) {
		const struct mr_plan_lane *l = &plan->lanes[i];

		json_array_append_new(all,
			json_pack("{s:s, s:s, s:s, s:o}", "name", l->name, "rx_path",
				mr_path_name(l->rx_path), "tx_path", mr_path_name(l->tx_path),
				"why", mr_cmd_json_text(l->path_why)));
	}
	return all;
}

json_t *mr_doctor_json(const struct mr_doctor *d, const struct mr_plan *plan)
{
	json_t *checks = json_array(), *skipped = json_array();

	for (uint32_t i = 0; i < MR_CHECKS_COUNT; i++) {
		const struct mr_finding *f = &d->findings[i];

		json_array_append_new(checks,
			json_pack("{s:s, s:s, s:s, s:o, s:o, s:b, s:b}", "id", mr_checks[i].id,
				"title", mr_checks[i].title, "verdict",
				mr_check_verdict_name(f->verdict), "value",
				mr_cmd_json_text(f->value), "hint", mr_cmd_json_text(f->hint),
				"gating", f->gating, "skipped", f->skipped));
		if (f->skipped)
			json_array_append_new(skipped, json_string(mr_checks[i].id));
	}
	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "verdict",
		mr_check_verdict_name(mr_checks_worst(d->findings)), "checks", checks, "skipped",
		skipped, "pairs", pairs_json(d), "lanes", lanes_json(plan));
}
