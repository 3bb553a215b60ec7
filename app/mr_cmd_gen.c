/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd_gen.h"

#include "mr_gen_schedule.h"

#include <inttypes.h>
#include <stdio.h>

static bool searches(const struct mr_cmd_gen_run *run)
{
	return run->plan->search != MR_GEN_SEARCH_NONE;
}

bool mr_cmd_gen_clean(const struct mr_cmd_gen_run *run)
{
	const struct mr_gen_report *r = run->report;

	if (searches(run))
		return r->found >= 0 || r->end == MR_GEN_TOLD;
	return r->count == 0 || !mr_gen_faults(&r->trial[0]);
}

/*
 * Why a search found no higher rate: "rate" and "ceiling", it is the highest; "generator",
 * which could not keep to the next one; "loss". NULL: there was no search that ended.
 */
static const char *limited_by(const struct mr_cmd_gen_run *run)
{
	const struct mr_gen_report *r = run->report;
	const struct mr_gen_trial *above = NULL;
	uint32_t found = r->found >= 0 ? r->trial[r->found].rate_ppm : 0;

	if (!searches(run) || r->count == 0)
		return NULL;
	for (uint32_t i = 0; i < r->count; i++)
		if (r->trial[i].rate_ppm > found &&
			(above == NULL || r->trial[i].rate_ppm < above->rate_ppm))
			above = &r->trial[i];
	if (above != NULL)
		return above->missed > 0 ? "generator" : "loss";
	return run->plan->gap != 0 ? "rate" : "ceiling";
}

static json_t *hist_json(const struct mr_hist *h)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "count", (json_int_t)h->count, "p50",
		(json_int_t)mr_hist_quantile(h, 500000), "p99",
		(json_int_t)mr_hist_quantile(h, 990000), "p999",
		(json_int_t)mr_hist_quantile(h, 999000), "max", (json_int_t)h->max_ns);
}

static json_t *counts_json(uint64_t sent, uint64_t lost, const struct mr_gen_counts *c)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "sent", (json_int_t)sent, "received",
		(json_int_t)c->received, "lost", (json_int_t)lost, "duplicates",
		(json_int_t)c->duplicates, "reordered", (json_int_t)c->reordered, "stale",
		(json_int_t)c->stale);
}

static json_t *received_json(const struct mr_cmd_gen_run *run, const struct mr_gen_trial *t)
{
	const struct mr_gen_counts all = {t->received, t->duplicates, t->reordered, t->stale};
	json_t *j, *streams;

	if (!t->judged)
		return json_null();
	j = counts_json(t->sent, t->lost, &all);
	streams = json_array();
	for (uint32_t i = 0; i < run->plan->streams; i++)
		json_array_append_new(streams,
			counts_json(t->stream[i].sent, t->stream[i].lost, &t->stream[i].c));
	json_object_del(j, "sent");
	json_object_set_new(j, "corrupted", json_integer((json_int_t)t->corrupted));
	json_object_set_new(j, "stray", json_integer((json_int_t)t->stray));
	json_object_set_new(j, "foreign", json_integer((json_int_t)t->foreign));
	json_object_set_new(j, "rx_missed", json_integer((json_int_t)t->rx_missed));
	json_object_set_new(j, "latency_ns", hist_json(&t->latency));
	json_object_set_new(j, "streams", streams);
	return j;
}

static json_t *trial_json(const struct mr_cmd_gen_run *run, const struct mr_gen_trial *t)
{
	return json_pack("{s:f, s:I, s:I, s:I, s:I, s:b, s:f, s:f, s:f, s:I, s:o, s:o, s:b, s:b}",
		"rate_pps", mr_gen_gap_pps(t->gap), "scheduled", (json_int_t)t->scheduled, "sent",
		(json_int_t)t->sent, "missed", (json_int_t)t->missed, "late", (json_int_t)t->late,
		"rate_reached", t->missed == 0, "sent_pps", mr_gen_sent_pps(t), "sent_mbps",
		mr_gen_sent_bps(t) / 1e6, "send_s", (double)t->send_ns / 1e9, "blocked",
		(json_int_t)t->blocked, "lag_ns", hist_json(&t->lag), "receive",
		received_json(run, t), "passed", t->passed, "cut", t->cut);
}

static json_t *floor_json(const struct mr_gen_report *r)
{
	if (!r->has_floor)
		return json_null();
	return json_pack("{s:f, s:I, s:I, s:o}", "rate_pps", mr_gen_gap_pps(r->floor.gap), "sent",
		(json_int_t)r->floor.sent, "received", (json_int_t)r->floor.received, "latency_ns",
		hist_json(&r->floor.latency));
}

static json_t *ceiling_json(const struct mr_gen_report *r)
{
	if (!r->has_ceiling)
		return json_null();
	return json_pack("{s:f, s:f, s:I, s:f}", "pps", mr_gen_sent_pps(&r->ceiling), "mbps",
		mr_gen_sent_bps(&r->ceiling) / 1e6, "sent", (json_int_t)r->ceiling.sent, "send_s",
		(double)r->ceiling.send_ns / 1e9);
}

static json_t *frames_json(const struct mr_gen_plan *p)
{
	return json_pack("{s:s, s:i, s:f, s:i, s:i}", "sizes", mr_gen_sizes_name(p->sizes_kind),
		"first", p->sizes[0], "mean",
		(double)mr_gen_plan_wire_bits(p) / 8 / p->sizes_count - MR_GEN_GAP, "streams",
		(int)p->streams, "burst", (int)p->burst);
}

static json_t *found_json(const struct mr_cmd_gen_run *run)
{
	const struct mr_gen_report *r = run->report;
	const char *by = limited_by(run);

	if (by == NULL)
		return json_null();
	if (r->found < 0)
		return json_pack("{s:f, s:f, s:n, s:s}", "rate_pps", 0.0, "rate_mbps", 0.0, "trial",
			"limited_by", by);
	return json_pack("{s:f, s:f, s:i, s:s}", "rate_pps", mr_gen_gap_pps(r->trial[r->found].gap),
		"rate_mbps",
		mr_gen_gap_pps(r->trial[r->found].gap) * (double)mr_gen_plan_wire_bits(run->plan) /
			run->plan->sizes_count / 1e6,
		"trial", (int)r->found, "limited_by", by);
}

static const char *port_name(const struct mr_gen_plan *p, uint32_t port)
{
	return p->plan.ports[port].name;
}

json_t *mr_cmd_gen_json(const struct mr_cmd_gen_run *run)
{
	const struct mr_gen_report *r = run->report;
	const struct mr_gen_plan *p = run->plan;
	json_t *j = json_object(), *trials = json_array();

	for (uint32_t i = 0; i < r->count; i++)
		json_array_append_new(trials, trial_json(run, &r->trial[i]));
	json_object_set_new(j, "instance", json_string(p->plan.name));
	json_object_set_new(j, "send_port", json_string(port_name(p, p->send_port)));
	json_object_set_new(j, "receive_port",
		p->receive_port == MR_GEN_NO_PORT ? json_null()
						  : json_string(port_name(p, p->receive_port)));
	json_object_set_new(j, "frames", frames_json(p));
	json_object_set_new(j, "floor", floor_json(r));
	json_object_set_new(j, "ceiling", ceiling_json(r));
	json_object_set_new(j, "search", json_string(mr_gen_search_name(p->search)));
	json_object_set_new(j, "trials", trials);
	json_object_set_new(j, "found", found_json(run));
	json_object_set_new(j, "clean", json_boolean(mr_cmd_gen_clean(run)));
	json_object_set_new(j, "duration_s", json_real(run->duration_s));
	json_object_set_new(j, "exit_reason", json_string(run->exit_reason));
	return j;
}

static void print_hist(FILE *f, const char *name, const struct mr_hist *h)
{
	fprintf(f, "  %-9s p50 %.1f us, p99 %.1f us, p99.9 %.1f us, max %.1f us\n", name,
		(double)mr_hist_quantile(h, 500000) / 1e3,
		(double)mr_hist_quantile(h, 990000) / 1e3,
		(double)mr_hist_quantile(h, 999000) / 1e3, (double)h->max_ns / 1e3);
}

static void print_trial(const struct mr_cmd_gen_run *run, const struct mr_gen_trial *t, FILE *f)
{
	fprintf(f, "trial at %.1f packets/s: %s%s\n", mr_gen_gap_pps(t->gap),
		t->passed ? "passed" : "not passed", t->cut ? ", cut short" : "");
	fprintf(f,
		"  sent      %" PRIu64 " of %" PRIu64 " (%" PRIu64 " missed, %" PRIu64
		" late by %u us), %.1f packets/s, %.3f Mbit/s\n",
		t->sent, t->scheduled, t->missed, t->late, run->plan->late_us, mr_gen_sent_pps(t),
		mr_gen_sent_bps(t) / 1e6);
	print_hist(f, "lag", &t->lag);
	if (!t->judged)
		return;
	fprintf(f,
		"  received  %" PRIu64 ", lost %" PRIu64 ", duplicates %" PRIu64
		", reordered %" PRIu64 ", corrupted %" PRIu64 "\n",
		t->received, t->lost, t->duplicates, t->reordered, t->corrupted);
	if (t->stale + t->stray + t->foreign + t->rx_missed > 0)
		fprintf(f,
			"  besides   %" PRIu64 " too far behind, %" PRIu64
			" of earlier trials, %" PRIu64 " foreign; the port missed %" PRIu64 "\n",
			t->stale, t->stray, t->foreign, t->rx_missed);
	print_hist(f, "latency", &t->latency);
}

void mr_cmd_gen_print(const struct mr_cmd_gen_run *run, FILE *f)
{
	const struct mr_gen_report *r = run->report;
	const char *by = limited_by(run);

	if (r->has_floor) {
		fprintf(f, "floor of latency, a loop in memory at %u packets/s\n",
			MR_GEN_FLOOR_PPS);
		print_hist(f, "latency", &r->floor.latency);
	}
	if (r->has_ceiling)
		fprintf(f,
			"ceiling of this port: %.1f packets/s, %.3f Mbit/s (%" PRIu64
			" packets sent to measure it)\n",
			mr_gen_sent_pps(&r->ceiling), mr_gen_sent_bps(&r->ceiling) / 1e6,
			r->ceiling.sent);
	for (uint32_t i = 0; i < r->count; i++)
		print_trial(run, &r->trial[i], f);
	if (by != NULL && r->found < 0)
		fprintf(f, "no rate holds; limited by %s\n", by);
	else if (by != NULL)
		fprintf(f, "%s throughput: %.1f packets/s; limited by %s\n",
			mr_gen_search_name(run->plan->search),
			mr_gen_gap_pps(r->trial[r->found].gap), by);
	fprintf(f, "%s; ended after %.1f s: %s\n", mr_cmd_gen_clean(run) ? "clean" : "not clean",
		run->duration_s, run->exit_reason);
}
