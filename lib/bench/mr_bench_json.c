/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_bench_report.h"

#include <stdlib.h>
#include <string.h>

static const char sim_note[] = "measured on the software CUDA device: kernel, copies and lane are "
			       "threads of this machine's "
			       "processors, so the shape is the software device's and not a GPU's";
static const char virtual_note[] =
	"virtual time over a model of PCIe (lib/bench/mr_bench_virtual.h): no packet was moved and "
	"nothing was measured";

static json_t *interval_json(const struct mr_bench_interval *i)
{
	if (i->n == 0)
		return json_null();
	return json_pack(
		"{s:f, s:f, s:f, s:i}", "median", i->median, "lo", i->lo, "hi", i->hi, "n", i->n);
}

static json_t *list_json(const double *values, uint32_t n)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(list, json_real(values[i]));
	return list;
}

static json_t *numbers_json(const uint32_t *values, uint32_t n)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(list, json_integer(values[i]));
	return list;
}

static const struct metric {
	enum mr_bench_metric metric;
	const char *name;
} metrics[] = {
	{MR_BENCH_RATE, "packets_per_second"},
	{MR_BENCH_WALL_RATE, "wall_packets_per_second"},
	{MR_BENCH_P50, "latency_p50_ns"},
	{MR_BENCH_P99, "latency_p99_ns"},
	{MR_BENCH_COPIED, "host_bytes_copied_per_packet"},
};

static json_t *cell_path_json(const struct mr_bench *b, uint32_t cell, enum mr_path path)
{
	json_t *j = json_object(), *runs = json_object();

	json_object_set_new(j, "path", json_string(mr_path_name(path)));
	for (size_t i = 0; i < MR_ARRAY_LEN(metrics); i++) {
		double values[MR_BENCH_REPEATS_MAX];
		uint32_t n = mr_bench_values(b, cell, path, metrics[i].metric, values);
		struct mr_bench_interval in = mr_bench_interval_of(values, n, b->set->seed);

		json_object_set_new(j, metrics[i].name, interval_json(&in));
		json_object_set_new(runs, metrics[i].name, list_json(values, n));
	}
	json_object_set_new(j, "runs", runs);
	return j;
}

static double median_of(
	const struct mr_bench *b, uint32_t cell, enum mr_path path, enum mr_bench_metric metric)
{
	double values[MR_BENCH_REPEATS_MAX];

	return mr_bench_median(values, mr_bench_values(b, cell, path, metric, values));
}

static struct mr_bench_cost cost_of(const struct mr_bench *b, uint32_t cell, enum mr_path path)
{
	struct mr_bench_cell c = mr_bench_cell_at(b->set, cell);
	double rate = median_of(b, cell, path, MR_BENCH_RATE);

	return (struct mr_bench_cost){.packets = c.batch,
		.touched_bytes = (double)c.batch * c.touched_bytes,
		.copied_bytes = c.batch * median_of(b, cell, path, MR_BENCH_COPIED),
		.moved_bytes = (double)c.batch * c.size,
		.ns = rate > 0 ? c.batch / rate * 1e9 : 0};
}

#define ALL_CELLS UINT32_MAX

/* A model of all cells, or of all but one. */
static bool fit(const struct mr_bench *b, enum mr_path path, uint32_t without,
	struct mr_bench_model *ret_model)
{
	struct mr_bench_cost *costs = calloc(b->cells, sizeof(*costs));
	uint32_t n = 0;
	bool ok;

	for (uint32_t c = 0; costs != NULL && c < b->cells; c++) {
		costs[n] = cost_of(b, c, path);
		n += c != without && costs[n].ns > 0;
	}
	ok = costs != NULL && mr_bench_model_fit(costs, n, ret_model);
	free(costs);
	return ok;
}

/* The path that the models advise for a cell and the one that was fastest. */
struct advice {
	enum mr_path advised, best; /* MR_PATH_COUNT: none */
	double behind;              /* of the best: 0.05 is 5 % slower */
	bool told;                  /* the interval of that lies beyond MR_BENCH_NEAR */
};

/* Whether an advice is judged by cells that its models were not fitted to. */
static bool is_held_out(const struct mr_bench *b)
{
	return b->cells > 2 * MR_BENCH_TERMS;
}

/* Which path was fastest, round by round beside the advised one, and by how much. */
static void judge(const struct mr_bench *b, uint32_t cell, struct advice *a)
{
	double most = 1;

	a->best = a->advised;
	for (uint32_t p = 0; p < b->set->paths_count; p++) {
		enum mr_path path = b->set->paths[p];
		double ratios[MR_BENCH_REPEATS_MAX];
		uint32_t n = mr_bench_ratios(b, cell, a->advised, path, ratios);
		struct mr_bench_interval i;

		if (path == a->advised || mr_bench_median(ratios, n) <= most)
			continue;
		i = mr_bench_interval_of(ratios, n, b->set->seed);
		most = i.median;
		a->best = path;
		a->told = i.lo * (1 - MR_BENCH_NEAR) > 1;
	}
	a->behind = 1 - 1 / most;
}

static struct advice advise(
	const struct mr_bench *b, uint32_t cell, const struct mr_bench_model models[MR_PATH_COUNT])
{
	struct advice a = {MR_PATH_COUNT, MR_PATH_COUNT, 0, false};
	double least = 0;

	for (uint32_t p = 0; p < b->set->paths_count; p++) {
		enum mr_path path = b->set->paths[p];
		struct mr_bench_cost cost = cost_of(b, cell, path);
		struct mr_bench_model model = models[path];
		double ns;

		if (cost.ns <= 0 || model.cells == 0 ||
			(is_held_out(b) && !fit(b, path, cell, &model)))
			continue;
		ns = mr_bench_model_ns(&model, &cost);
		if (a.advised == MR_PATH_COUNT || ns < least) {
			a.advised = path;
			least = ns;
		}
	}
	if (a.advised != MR_PATH_COUNT)
		judge(b, cell, &a);
	return a;
}

static json_t *cells_json(const struct mr_bench *b,
	const struct mr_bench_model models[MR_PATH_COUNT], uint32_t *ret_advised,
	uint32_t *ret_near, uint32_t *ret_beyond)
{
	json_t *cells = json_array();

	for (uint32_t c = 0; c < b->cells; c++) {
		struct mr_bench_cell cell = mr_bench_cell_at(b->set, c);
		struct advice a = advise(b, c, models);
		json_t *paths = json_array();
		json_t *j;

		for (uint32_t p = 0; p < b->set->paths_count; p++)
			if (b->reason[b->set->paths[p]][0] == '\0')
				json_array_append_new(
					paths, cell_path_json(b, c, b->set->paths[p]));
		j = json_pack("{s:i, s:i, s:s, s:i, s:o}", "size", cell.size, "batch", cell.batch,
			"touched", mr_bench_touched_name(cell.touched), "touched_bytes",
			cell.touched_bytes, "paths", paths);
		if (a.advised != MR_PATH_COUNT) {
			(*ret_advised)++;
			*ret_near += a.behind <= MR_BENCH_NEAR;
			*ret_beyond += a.told;
			json_object_set_new(j, "advice",
				json_pack("{s:s, s:s, s:f}", "path", mr_path_name(a.advised),
					"best", mr_path_name(a.best), "behind_best", a.behind));
		} else {
			json_object_set_new(j, "advice", json_null());
		}
		json_array_append_new(cells, j);
	}
	return cells;
}

/* The sizes of one batch and touched share, on two paths; less is better of latency. */
static struct mr_bench_cross cross_at(const struct mr_bench *b, uint32_t first, enum mr_path a_path,
	enum mr_path b_path, enum mr_bench_metric metric)
{
	static double a[MR_BENCH_SIZES_MAX][MR_BENCH_REPEATS_MAX];
	static double v[MR_BENCH_SIZES_MAX][MR_BENCH_REPEATS_MAX];
	struct mr_bench_pair pairs[MR_BENCH_SIZES_MAX];

	for (uint32_t i = 0; i < b->set->sizes_count; i++) {
		pairs[i] = (struct mr_bench_pair){.size = b->set->sizes[i],
			.a = a[i],
			.b = v[i],
			.a_n = mr_bench_values(b, first + i, a_path, metric, a[i]),
			.b_n = mr_bench_values(b, first + i, b_path, metric, v[i])};
		for (uint32_t k = 0; metric == MR_BENCH_P50 && k < pairs[i].a_n; k++)
			a[i][k] = 1 / (a[i][k] + 1);
		for (uint32_t k = 0; metric == MR_BENCH_P50 && k < pairs[i].b_n; k++)
			v[i][k] = 1 / (v[i][k] + 1);
	}
	return mr_bench_cross_of(pairs, b->set->sizes_count, b->set->seed);
}

static json_t *cross_json(const struct mr_bench *b, uint32_t first, enum mr_path a_path,
	enum mr_path b_path, enum mr_bench_metric metric)
{
	struct mr_bench_cell cell = mr_bench_cell_at(b->set, first);
	struct mr_bench_cross c = cross_at(b, first, a_path, b_path, metric);
	json_t *j = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:f}", "batch", cell.batch,
		"touched", mr_bench_touched_name(cell.touched), "metric",
		metric == MR_BENCH_P50 ? "latency_p50" : "rate", "a", mr_path_name(a_path), "b",
		mr_path_name(b_path), "verdict", mr_bench_verdict_name(c.verdict), "medians_say",
		mr_bench_verdict_name(c.guess), "share_of_draws", c.share);

	json_object_set_new(j, "size", c.size > 0 ? json_real(c.size) : json_null());
	json_object_set_new(j, "lo", c.size > 0 ? json_real(c.lo) : json_null());
	json_object_set_new(j, "hi", c.size > 0 ? json_real(c.hi) : json_null());
	return j;
}

static json_t *crossovers_json(const struct mr_bench *b)
{
	static const enum mr_bench_metric both[] = {MR_BENCH_RATE, MR_BENCH_P50};
	const struct mr_bench_settings *set = b->set;
	json_t *list = json_array();

	for (size_t m = 0; m < MR_ARRAY_LEN(both); m++)
		for (uint32_t p = 0; p < set->paths_count; p++)
			for (uint32_t q = p + 1; q < set->paths_count; q++)
				for (uint32_t first = 0; first < b->cells;
					first += set->sizes_count)
					if (b->reason[set->paths[p]][0] == '\0' &&
						b->reason[set->paths[q]][0] == '\0')
						json_array_append_new(list,
							cross_json(b, first, set->paths[p],
								set->paths[q], both[m]));
	return list;
}

static json_t *settings_json(const struct mr_bench_settings *set)
{
	json_t *touched = json_array(), *paths = json_array();

	for (uint32_t i = 0; i < set->touched_count; i++)
		json_array_append_new(touched, json_string(mr_bench_touched_name(set->touched[i])));
	for (uint32_t i = 0; i < set->paths_count; i++)
		json_array_append_new(paths, json_string(mr_path_name(set->paths[i])));
	return json_pack("{s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:s, s:i, s:i, s:s, s:i, s:I, s:i}",
		"sizes", numbers_json(set->sizes, set->sizes_count), "batches",
		numbers_json(set->batches, set->batches_count), "touched", touched, "paths", paths,
		"repeats", set->repeats, "run_ms", set->run_ms, "windows_for_rate",
		MR_BENCH_WINDOWS, "warm_up", "a quarter of run_ms, and every buffer twice",
		"slots_for_rate", set->slots, "slots_for_latency", MR_BENCH_SLOTS_LATENCY, "port",
		"net_null, copy=0", "core", set->core, "seed", (json_int_t)set->seed, "draws",
		MR_BENCH_DRAWS);
}

static json_t *models_json(const struct mr_bench *b, struct mr_bench_model models[MR_PATH_COUNT])
{
	json_t *list = json_array();

	for (uint32_t p = 0; p < b->set->paths_count; p++) {
		enum mr_path path = b->set->paths[p];
		const struct mr_bench_model *m = &models[path];

		if (!fit(b, path, ALL_CELLS, &models[path]))
			continue;
		json_array_append_new(list,
			json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:i}", "path",
				mr_path_name(path), "batch_ns", m->term[0], "packet_ns", m->term[1],
				"touched_byte_ns", m->term[2], "copied_byte_ns", m->term[3],
				"moved_byte_ns", m->term[4], "overlap", m->overlap,
				"relative_error", m->error, "cells", m->cells));
	}
	return list;
}

static json_t *machine_json(const struct mr_bench_machine *m)
{
	if (m == NULL)
		return json_null();
	return json_pack(
		"{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, "
		"s:f, s:f, s:f, s:f, s:f, s:f}",
		"name", m->name, "help", m->help, "wire_gb_s", m->wire_rate, "link_gb_s",
		m->link_rate, "host_gb_s", m->host_rate, "p2p_write_gb_s", m->p2p_write_rate,
		"p2p_read_gb_s", m->p2p_read_rate, "copy_gb_s", m->copy_rate, "copy_cpu_ns",
		m->copy_cpu_ns, "copy_latency_ns", m->copy_latency_ns, "gather_gb_s",
		m->gather_rate, "gather_packet_ns", m->gather_packet_ns, "round_trip_ns",
		m->round_trip_ns, "outstanding_bytes", m->outstanding, "push_ns", m->push_ns,
		"done_ns", m->done_ns, "core_batch_ns", m->core_batch_ns, "core_packet_ns",
		m->core_packet_ns, "kernel_batch_ns", m->kernel_batch_ns, "kernel_packet_ns",
		m->kernel_packet_ns, "kernel_gb_s", m->kernel_rate);
}

static json_t *paths_json(const struct mr_bench *b)
{
	json_t *list = json_array();

	for (uint32_t p = 0; p < b->set->paths_count; p++) {
		const char *reason = b->reason[b->set->paths[p]];

		json_array_append_new(list,
			json_pack("{s:s, s:b, s:s}", "path", mr_path_name(b->set->paths[p]),
				"available", reason[0] == '\0', "reason", reason));
	}
	return list;
}

json_t *mr_bench_json(const struct mr_bench *b, const struct mr_bench_about *about)
{
	const char *note = about->machine != NULL     ? virtual_note
		: strcmp(about->provider, "sim") == 0 ? sim_note
						      : "";
	struct mr_bench_model models[MR_PATH_COUNT] = {0};
	json_t *fitted = models_json(b, models);
	uint32_t advised = 0, near = 0, beyond = 0;
	json_t *cells = cells_json(b, models, &advised, &near, &beyond);
	double share = advised > 0 ? near / (double)advised : 0;

	return json_pack(
		"{s:s, s:i, s:s, s:s, s:s, s:s, s:b, s:b, s:s, s:i, s:i, s:i, s:s, "
		"s:{s:s, s:i, s:s, s:s}, s:{s:s, s:s, s:s}, s:s, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:{s:i, s:i, s:i, s:f, s:b, s:b}}",
		"bench", "crossover", "schema", MR_BENCH_SCHEMA, "version", about->version,
		"revision", about->revision, "date", about->date, "note", note, "virtual",
		about->machine != NULL, "complete", about->stopped == NULL, "stopped",
		about->stopped != NULL ? about->stopped : "", "runs", b->runs, "runs_wanted",
		b->runs_wanted, "runs_failed", b->failed, "first_failure", b->first_failure,
		"machine", "cpu", about->cpu, "cores", about->cores, "kernel", about->kernel,
		"topology", about->topology, "device", "device", b->set->device, "provider",
		about->provider, "guard", about->guard, "clock", mr_bench_clock_name(b->set->clock),
		"model_machine", machine_json(about->machine), "settings", settings_json(b->set),
		"paths", paths_json(b), "cells", cells, "crossovers", crossovers_json(b), "models",
		fitted, "advice", "cells", advised, "near_best", near, "surely_beyond", beyond,
		"share", share, "holds", advised > 0 && share >= MR_BENCH_NEAR_SHARE, "held_out",
		is_held_out(b));
}
