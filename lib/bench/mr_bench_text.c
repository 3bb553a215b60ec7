/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_bench_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s != NULL ? s : "";
}

static double number(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

static int whole(const json_t *j, const char *key)
{
	return (int)json_integer_value(json_object_get(j, key));
}

static void print_cross(FILE *f, const json_t *c)
{
	const char *verdict = text(c, "verdict"), *a = text(c, "a"), *b = text(c, "b");

	fprintf(f, "  batch %4d  %-6s  ", whole(c, "batch"), text(c, "touched"));
	if (strcmp(verdict, "even") == 0)
		fprintf(f, "none: %s and %s within %.0f %% of each other\n", a, b,
			100 * MR_BENCH_NEAR);
	else if (strcmp(verdict, "a_ahead") == 0 || strcmp(verdict, "b_ahead") == 0)
		fprintf(f, "none: %s always ahead of %s\n", verdict[0] == 'a' ? a : b,
			verdict[0] == 'a' ? b : a);
	else if (strcmp(verdict, "b_over_a") == 0 || strcmp(verdict, "a_over_b") == 0)
		fprintf(f, "%s overtakes %s at %.0f bytes (%.0f to %.0f)\n",
			verdict[0] == 'b' ? b : a, verdict[0] == 'b' ? a : b, number(c, "size"),
			number(c, "lo"), number(c, "hi"));
	else if (strcmp(text(c, "medians_say"), "undecided") == 0)
		fprintf(f, "%s and %s: the lead changes more than once\n", a, b);
	else
		fprintf(f, "%s and %s: undecided, %.0f %% of the draws agree with the medians\n", a,
			b, 100 * number(c, "share_of_draws"));
}

static void print_crossovers(FILE *f, const json_t *bench, const char *metric, const char *title)
{
	const json_t *c;
	size_t i;

	fprintf(f, "\n%s\n", title);
	json_array_foreach(json_object_get(bench, "crossovers"), i, c)
		if (strcmp(text(c, "metric"), metric) == 0)
			print_cross(f, c);
}

static void print_cells(FILE *f, const json_t *bench)
{
	const json_t *cell, *path;
	size_t i, k;

	fprintf(f, "\n%6s %5s %-6s  %-6s %14s %28s %12s %12s %10s\n", "size", "batch", "reads",
		"path", "packets/s", "95 %", "p50 us", "p99 us", "copied");
	json_array_foreach(json_object_get(bench, "cells"), i, cell)
		json_array_foreach(json_object_get(cell, "paths"), k, path) {
			const json_t *rate = json_object_get(path, "packets_per_second");
			const json_t *p50 = json_object_get(path, "latency_p50_ns");
			const json_t *p99 = json_object_get(path, "latency_p99_ns");
			const char *advised = text(json_object_get(cell, "advice"), "path");

			fprintf(f,
				"%6d %5d %-6s  %-6s %14.0f %13.0f to %11.0f %12.2f %12.2f "
				"%10.0f%s\n",
				whole(cell, "size"), whole(cell, "batch"), text(cell, "touched"),
				text(path, "path"), number(rate, "median"), number(rate, "lo"),
				number(rate, "hi"), number(p50, "median") / 1e3,
				number(p99, "median") / 1e3,
				number(json_object_get(path, "host_bytes_copied_per_packet"),
					"median"),
				strcmp(advised, text(path, "path")) == 0 ? "  advised" : "");
		}
}

static void print_models(FILE *f, const json_t *bench)
{
	const json_t *advice = json_object_get(bench, "advice");
	const json_t *m;
	size_t i;

	fprintf(f, "\nCost of a batch, fitted\n");
	json_array_foreach(json_object_get(bench, "models"), i, m)
		fprintf(f,
			"  %-6s %.1f ns + %.2f ns a packet + %.4f ns a byte read + %.4f ns a byte "
			"copied + %.4f ns a byte moved%s; relative error %.1f %%\n",
			text(m, "path"), number(m, "batch_ns"), number(m, "packet_ns"),
			number(m, "touched_byte_ns"), number(m, "copied_byte_ns"),
			number(m, "moved_byte_ns"),
			number(m, "overlap") > 1 ? ", where terms overlap" : "",
			100 * number(m, "relative_error"));
	fprintf(f,
		"The path advised by models%s is within %.0f %% of the best in %d of %d cells "
		"(%.1f %%): %s; beyond that for sure in %d\n",
		json_is_true(json_object_get(advice, "held_out"))
			? " of all cells but the one that is judged"
			: " of these cells",
		100 * MR_BENCH_NEAR, whole(advice, "near_best"), whole(advice, "cells"),
		100 * number(advice, "share"),
		json_is_true(json_object_get(advice, "holds")) ? "holds" : "does not hold",
		whole(advice, "surely_beyond"));
}

static void print_head(FILE *f, const json_t *bench)
{
	const json_t *machine = json_object_get(bench, "machine");
	const json_t *device = json_object_get(bench, "device");
	const json_t *p;
	size_t i;

	fprintf(f, "%s, %d processors, Linux %s\n%s\ndevice '%s' (%s), rates by %s time\n",
		text(machine, "cpu"), whole(machine, "cores"), text(machine, "kernel"),
		text(machine, "topology"), text(device, "device"), text(device, "provider"),
		text(bench, "clock"));
	if (text(bench, "note")[0] != '\0')
		fprintf(f, "%s\n", text(bench, "note"));
	if (!json_is_true(json_object_get(bench, "complete")))
		fprintf(f, "PARTIAL: %d of %d runs: %s\n", whole(bench, "runs"),
			whole(bench, "runs_wanted"), text(bench, "stopped"));
	if (whole(bench, "runs_failed") > 0)
		fprintf(f, "%d runs failed, the first: %s\n", whole(bench, "runs_failed"),
			text(bench, "first_failure"));
	json_array_foreach(json_object_get(bench, "paths"), i, p)
		if (!json_is_true(json_object_get(p, "available")))
			fprintf(f, "path %s not available: %s\n", text(p, "path"),
				text(p, "reason"));
}

/* Closes the stream; NULL if memory ran out on the way. */
static char *finish(FILE *f, char **text)
{
	int bad = ferror(f);

	if (fclose(f) == 0 && bad == 0)
		return *text;
	free(*text);
	return NULL;
}

char *mr_bench_text(const json_t *bench)
{
	size_t size = 0;
	char *out = NULL;
	FILE *f = open_memstream(&out, &size);

	if (f == NULL)
		return NULL;
	print_head(f, bench);
	print_cells(f, bench);
	print_crossovers(f, bench, "rate", "Crossovers of the rate");
	print_crossovers(f, bench, "latency_p50", "Crossovers of the median latency");
	print_models(f, bench);
	return finish(f, &out);
}

static void print_interval(FILE *f, const json_t *path, const char *key)
{
	const json_t *i = json_object_get(path, key);

	if (json_is_object(i))
		fprintf(f, ",%.10g,%.10g,%.10g", number(i, "median"), number(i, "lo"),
			number(i, "hi"));
	else
		fputs(",,,", f);
}

char *mr_bench_csv(const json_t *bench)
{
	static const char *const keys[] = {"packets_per_second", "wall_packets_per_second",
		"latency_p50_ns", "latency_p99_ns", "host_bytes_copied_per_packet"};
	const json_t *cell, *path;
	size_t size = 0, i, k;
	char *out = NULL;
	FILE *f = open_memstream(&out, &size);

	if (f == NULL)
		return NULL;
	fputs("size,batch,touched,touched_bytes,path", f);
	for (size_t m = 0; m < MR_ARRAY_LEN(keys); m++)
		fprintf(f, ",%s,%s_lo,%s_hi", keys[m], keys[m], keys[m]);
	fputs(",advised,complete,provider,clock\n", f);
	json_array_foreach(json_object_get(bench, "cells"), i, cell)
		json_array_foreach(json_object_get(cell, "paths"), k, path) {
			fprintf(f, "%d,%d,%s,%d,%s", whole(cell, "size"), whole(cell, "batch"),
				text(cell, "touched"), whole(cell, "touched_bytes"),
				text(path, "path"));
			for (size_t m = 0; m < MR_ARRAY_LEN(keys); m++)
				print_interval(f, path, keys[m]);
			fprintf(f, ",%s,%s,%s,%s\n", text(json_object_get(cell, "advice"), "path"),
				json_is_true(json_object_get(bench, "complete")) ? "yes" : "no",
				text(json_object_get(bench, "device"), "provider"),
				text(bench, "clock"));
		}
	return finish(f, &out);
}

/* A block of gnuplot data: what a path does over the sizes of one batch and touched share. */
static void print_block(
	FILE *f, const json_t *bench, int batch, const char *touched, const char *path_name)
{
	const json_t *cell, *path;
	size_t i, k;

	json_array_foreach(json_object_get(bench, "cells"), i, cell) {
		if (whole(cell, "batch") != batch || strcmp(text(cell, "touched"), touched) != 0)
			continue;
		json_array_foreach(json_object_get(cell, "paths"), k, path) {
			const json_t *rate = json_object_get(path, "packets_per_second");

			if (json_is_object(rate) && strcmp(text(path, "path"), path_name) == 0)
				fprintf(f, "%d %.10g %.10g %.10g\n", whole(cell, "size"),
					number(rate, "median"), number(rate, "lo"),
					number(rate, "hi"));
		}
	}
}

/* Inside double quotes of gnuplot: what could end them or be enhanced is left out. */
static void print_quoted(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s != '\0'; s++)
		if (*s >= ' ' && *s < 127 && strchr("\"\\`$", *s) == NULL)
			fputc(*s, f);
	fputc('"', f);
}

static void print_panel(FILE *f, const json_t *bench, int batch, const char *touched)
{
	const json_t *p;
	uint32_t n = 0;
	size_t i;

	fprintf(f, "set title \"batch %d, %s read\"\n", batch, touched);
	json_array_foreach(json_object_get(bench, "paths"), i, p) {
		if (!json_is_true(json_object_get(p, "available")))
			continue;
		fprintf(f, "$data%u << EOD\n", n++);
		print_block(f, bench, batch, touched, text(p, "path"));
		fputs("EOD\n", f);
	}
	n = 0;
	json_array_foreach(json_object_get(bench, "paths"), i, p) {
		if (!json_is_true(json_object_get(p, "available")))
			continue;
		fprintf(f, "%s$data%u using 1:2:3:4 with yerrorlines lt %u pt %u title \"%s\"",
			n == 0 ? "plot " : ", \\\n\t", n, (unsigned)i + 1, (unsigned)i + 5,
			text(p, "path"));
		n++;
	}
	fputc('\n', f);
}

char *mr_bench_plot(const json_t *bench, const char *file)
{
	const json_t *set = json_object_get(bench, "settings");
	const json_t *batches = json_object_get(set, "batches");
	const json_t *touched = json_object_get(set, "touched");
	size_t rows = json_array_size(batches), columns = json_array_size(touched);
	size_t size = 0, i, k;
	const json_t *b, *t;
	char *out = NULL;
	FILE *f = open_memstream(&out, &size);

	if (f == NULL)
		return NULL;
	fprintf(f,
		"set terminal svg size %zu,%zu noenhanced font \"sans,11\" background \"white\"\n",
		420 * columns, 300 * rows + 90);
	fputs("set output ", f);
	/* A name may hold anything: in single quotes only a quote has to be doubled. */
	fputc('\'', f);
	for (const char *s = file; *s != '\0'; s++)
		fprintf(f, "%s%c", *s == '\'' ? "'" : "", *s);
	fputs("'\n", f);
	fprintf(f, "set multiplot layout %zu,%zu title ", rows, columns);
	print_quoted(f,
		text(bench, "note")[0] != '\0' ? text(bench, "note")
					       : text(json_object_get(bench, "machine"), "cpu"));
	fputs("\nset logscale xy\nset grid\nset key bottom left\n"
	      "set xlabel \"bytes of a frame\"\n",
		f);
	fprintf(f, "set ylabel \"packets per second of %s time%s\"\n", text(bench, "clock"),
		json_is_true(json_object_get(bench, "complete")) ? "" : ", PARTIAL");
	json_array_foreach(batches, i, b)
		json_array_foreach(touched, k, t)
			print_panel(f, bench, (int)json_integer_value(b), json_string_value(t));
	fputs("unset multiplot\n", f);
	return finish(f, &out);
}
