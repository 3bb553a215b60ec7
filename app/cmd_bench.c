/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd_bench.h"

#include "mr_bench_run.h"
#include "mr_sync.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int print_json(json_t *j)
{
	char *text = j == NULL ? NULL : json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(9));

	json_decref(j);
	if (text == NULL) {
		fprintf(stderr, "millrace: out of memory\n");
		return MR_EXIT_FAILURE;
	}
	puts(text);
	free(text);
	return MR_EXIT_CLEAN;
}

static int fail(bool json, const char *sentence, int status)
{
	fprintf(stderr, "millrace: %s\n", sentence);
	if (json)
		(void)print_json(
			json_pack("{s:[{s:o}]}", "errors", "message", mr_cmd_json_text(sentence)));
	return status;
}

/* What a measurement came to: why it stopped before its end, and the status of that. */
struct outcome {
	const char *stopped; /* NULL: it did not */
	int status;
	bool leave; /* a thread hangs in a driver: the process ends by _exit */
	struct mr_err err;
};

static void stop_for(struct outcome *out, int rc)
{
	if (rc == -ECANCELED) {
		out->stopped = "a signal";
		out->status = MR_EXIT_FAILURE;
	} else {
		out->stopped = out->err.msg;
		out->status = MR_EXIT_GPU;
		out->leave = rc == -ETIMEDOUT;
	}
}

static bool run_round(
	struct mr_bench *b, struct mr_bench_runner *r, uint32_t round, struct outcome *out)
{
	uint32_t count;
	struct mr_bench_run *runs = mr_bench_round(b, round, &count);
	int rc = 0;

	if (runs == NULL) {
		rc = mr_err_set(&out->err, -ENOMEM, "out of memory");
		stop_for(out, rc);
		return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		rc = mr_load_relaxed(&mr_cmd_signal_seen) != 0
			? -ECANCELED
			: mr_bench_run_one(r, &runs[i], round, &out->err);
		if (rc == -ECANCELED || rc == -ENODEV || rc == -ETIMEDOUT)
			break;
		b->runs++;
		if (rc < 0 && b->failed++ == 0) {
			struct mr_bench_cell c = mr_bench_cell_at(b->set, runs[i].cell);

			snprintf(b->first_failure, sizeof(b->first_failure),
				"%s, size %u, batch %u: %.900s", mr_path_name(runs[i].path), c.size,
				c.batch, out->err.msg);
		}
		rc = 0;
	}
	free(runs);
	if (rc < 0)
		stop_for(out, rc);
	return rc == 0;
}

static void count_runs(struct mr_bench *b)
{
	uint32_t count;

	free(mr_bench_round(b, 0, &count));
	b->runs_wanted = count * b->set->repeats;
}

static int measure(struct mr_bench *b, const struct mr_host *host, struct mr_bench_about *about,
	struct outcome *out)
{
	static char provider[8], guard[20];
	struct mr_bench_runner *r;
	uint64_t start = mr_clock_ns();
	int rc = mr_bench_probe(b, host, &out->err);

	if (rc == 0)
		rc = mr_bench_open(b, host, &mr_cmd_signal_seen, &r, &out->err);
	if (rc < 0)
		return rc;
	count_runs(b);
	snprintf(provider, sizeof(provider), "%s", mr_bench_provider(r));
	snprintf(guard, sizeof(guard), "%s", mr_bench_guard(r));
	about->provider = provider;
	about->guard = guard;
	for (uint32_t round = 0; round < b->set->repeats; round++) {
		if (!run_round(b, r, round, out))
			break;
		fprintf(stderr, "millrace: round %u of %u, %u of %u runs, %.0f s\n", round + 1,
			b->set->repeats, b->runs, b->runs_wanted,
			(double)(mr_clock_ns() - start) / 1e9);
	}
	if (!out->leave && mr_bench_close(r, &out->err) == -ETIMEDOUT)
		stop_for(out, -ETIMEDOUT);
	return 0;
}

static void replay(
	struct mr_bench *b, const struct mr_bench_machine *m, struct mr_bench_about *about)
{
	about->provider = "model";
	about->guard = "unavailable";
	about->machine = m;
	count_runs(b);
	for (uint32_t c = 0; c < b->cells; c++)
		for (uint32_t p = 0; p < b->set->paths_count; p++) {
			struct mr_bench_cell cell = mr_bench_cell_at(b->set, c);
			struct mr_bench_load load = {b->set->paths[p], cell.size, cell.batch,
				b->set->slots, cell.touched_bytes};
			struct mr_bench_sample *s = mr_bench_sample_at(b, c, load.path, 0);
			struct mr_bench_lane full = mr_bench_virtual_run(m, &load);

			load.slots = MR_BENCH_SLOTS_LATENCY;
			*s = (struct mr_bench_sample){.rated = true,
				.timed = true,
				.rate = full.rate,
				.wall_rate = full.rate,
				.copied = full.copied};
			full = mr_bench_virtual_run(m, &load);
			s->p50_ns = full.p50_ns;
			s->p99_ns = full.p99_ns;
			b->runs += 2;
		}
}

/* Writes what there is, whole or not. */
static int publish(struct mr_bench_options *o, const struct mr_bench *b,
	struct mr_bench_about *about, const struct outcome *out)
{
	int status = out->status;
	json_t *j;
	char *text;

	about->stopped = out->stopped;
	if (out->stopped != NULL)
		fprintf(stderr,
			"millrace: stopped by %s after %u of %u runs: the result is partial\n",
			out->stopped, b->runs, b->runs_wanted);
	if (b->failed > 0) {
		fprintf(stderr, "millrace: %u runs failed, the first: %s\n", b->failed,
			b->first_failure);
		status = status == MR_EXIT_CLEAN ? MR_EXIT_FAILURE : status;
	}
	j = mr_bench_json(b, about);
	if (j == NULL)
		return fail(false, "out of memory for the result", MR_EXIT_FAILURE);
	if (mr_bench_files_write(o, j) > 0 && status == MR_EXIT_CLEAN)
		status = MR_EXIT_FAILURE;
	text = o->json ? NULL : mr_bench_text(j);
	if (text != NULL)
		fputs(text, stdout);
	free(text);
	if (o->json && print_json(json_incref(j)) != MR_EXIT_CLEAN)
		status = MR_EXIT_FAILURE;
	json_decref(j);
	return status;
}

static int crossover(struct mr_bench_options *o, struct mr_doctor *d)
{
	struct mr_bench_about about = {0};
	struct outcome out = {0};
	struct mr_bench b = {0};
	int rc, status;

	if (o->machine != NULL)
		o->set.device = o->machine->name;
	if (o->machine != NULL)
		o->set.repeats = 1; /* nothing varies */
	rc = mr_bench_new(&o->set, &b, &out.err);
	if (rc == 0)
		rc = mr_doctor_read(d, &out.err);
	if (rc < 0) {
		mr_bench_free(&b);
		return fail(o->json, out.err.msg, MR_EXIT_FAILURE);
	}
	mr_bench_machine_words(d, &about);
	if (o->machine != NULL)
		replay(&b, o->machine, &about);
	else
		rc = measure(&b, &d->facts->host, &about, &out);
	if (rc < 0)
		status = fail(o->json, out.err.msg,
			rc == -ENOENT || rc == -EALREADY || rc == -EINVAL ? MR_EXIT_CONFIG
				: rc == -ETIMEDOUT                        ? MR_EXIT_GPU
									  : MR_EXIT_FAILURE);
	else
		status = publish(o, &b, &about, &out);
	if (out.leave || rc == -ETIMEDOUT) {
		fflush(stdout);
		_exit(status);
	}
	mr_bench_free(&b);
	return status;
}

int mr_cmd_bench_crossover(const struct mr_cmd *self, int argc, char **argv)
{
	struct mr_bench_options o;
	struct mr_doctor d;
	struct mr_err err;
	int status;

	if (mr_bench_options_parse(self, argc, argv, &o) < 0)
		return mr_cmd_usage(self);
	mr_cmd_catch_signals(false);
	if (mr_bench_files_open(&o, &err) < 0) {
		status = fail(o.json, err.msg, MR_EXIT_FAILURE);
	} else if (mr_doctor_init(&d, "/", &err) != 0) {
		status = fail(o.json, err.msg, MR_EXIT_FAILURE);
	} else {
		status = crossover(&o, &d);
		mr_doctor_fini(&d);
	}
	mr_bench_files_close(&o);
	return status;
}

static int print_comparison(const json_t *a, const json_t *b, char **argv, bool json)
{
	json_t *a_name = mr_cmd_json_text(argv[0]), *b_name = mr_cmd_json_text(argv[1]);
	json_t *j = mr_bench_compare(a, b, json_string_value(a_name), json_string_value(b_name));
	char *text = j == NULL || json ? NULL : mr_bench_compare_text(j);
	int status = MR_EXIT_CLEAN;

	if (json) {
		status = print_json(json_incref(j));
	} else if (text == NULL) {
		status = fail(false, "out of memory", MR_EXIT_FAILURE);
	} else {
		fputs(text, stdout);
	}
	free(text);
	json_decref(j);
	json_decref(a_name);
	json_decref(b_name);
	return status;
}

int mr_cmd_bench_compare(const struct mr_cmd *self, int argc, char **argv)
{
	json_t *a = NULL, *b = NULL;
	struct mr_err err;
	bool json = false;
	int c, status;

	while ((c = mr_cmd_next(self, argc, argv)) != -1) {
		if (c != 'j')
			return mr_cmd_usage(self);
		json = true;
	}
	if (optind + 2 != argc)
		return mr_cmd_usage(self);
	if (mr_bench_load(argv[optind], &a, &err) < 0 ||
		mr_bench_load(argv[optind + 1], &b, &err) < 0)
		status = fail(json, err.msg, MR_EXIT_FAILURE);
	else
		status = print_comparison(a, b, argv + optind, json);
	json_decref(a);
	json_decref(b);
	return status;
}
