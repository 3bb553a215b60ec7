/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands, their options and the exit statuses, and the only list of them: usage,
 * --help, the parser, millrace(1) and the completion of bash are made from it.
 */
#include "mr_cmd.h"

#include "mr_base.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define JSON                                                                                       \
	{                                                                                          \
		"json", NULL, 'j', "print the result as one line of JSON on standard output",      \
			MR_CMD_MAY                                                                 \
	}
#define NAME                                                                                       \
	{                                                                                          \
		"name", "NAME", 'n', "name of the instance; else the configuration's", MR_CMD_MAY  \
	}
#define SKIP                                                                                       \
	{                                                                                          \
		"skip", "ID", 'k', "leave out a check by its id; may be given several times",      \
			MR_CMD_MAY                                                                 \
	}
#define END                                                                                        \
	{                                                                                          \
		NULL, NULL, 0, NULL, MR_CMD_MAY                                                    \
	}

static const struct mr_cmd_option run_options[] = {
	{"duration", "S", 'd', "end after so many seconds", MR_CMD_MAY},
	{"idle-exit", "S", 'i', "end when nothing was received for so many seconds", MR_CMD_MAY},
	JSON, NAME,
	{"strict", NULL, 's', "take what the preflight could not read for a failure", MR_CMD_MAY},
	SKIP, END};

static const struct mr_cmd_option check_options[] = {JSON,
	{"no-host", NULL, 'h', "plan without looking at this machine", MR_CMD_MAY},
	{"root", "DIR|FILE.tar|FILE.xml", 'r', "plan for the machine below it instead of this one",
		MR_CMD_INSTEAD},
	NAME, END};

static const struct mr_cmd_option doctor_options[] = {
	{"root", "DIR|FILE.tar|FILE.xml", 'r',
		"judge another machine: a folder, a capture, or a topology of hwloc", MR_CMD_MAY},
	JSON, {"strict", NULL, 's', "take what could not be read for a failure", MR_CMD_MAY}, SKIP,
	{"capture", "FILE", 'c', "write what was read into an archive, without addresses",
		MR_CMD_MAY},
	{"readback", NULL, 'b',
		"start the devices of CONFIG and prove each lane's path; this machine's only",
		MR_CMD_MAY},
	END};

static const struct mr_cmd_option stats_options[] = {
	{"name", "NAME", 'n', "name of the instance; not needed while only one runs", MR_CMD_MAY},
	{"watch", NULL, 'w', "go on, with rates once a second", MR_CMD_MAY}, JSON,
	{"prometheus", NULL, 'p', "print Prometheus text", MR_CMD_INSTEAD}, END};

static const struct mr_cmd_option reload_options[] = {
	{"name", "NAME", 'n', "name of the instance; not needed while only one runs", MR_CMD_MAY},
	END};

static const struct mr_cmd_option capture_options[] = {
	{"w", "FILE", 'w', "where pcapng goes to; - is standard output", MR_CMD_MUST},
	{"c", "N", 'c', "end after so many packets", MR_CMD_MAY},
	{"s", "SNAPLEN", 's', "bytes of a frame that are kept; else all of them", MR_CMD_MAY},
	{"filter", "EXPR", 'f',
		"only packets that the pcap expression matches before the chain, so none that a "
		"stage makes",
		MR_CMD_MAY},
	{"verdict", "VERDICT", 'v',
		"only packets that leave the chain with it: tx, tx_mask or drop", MR_CMD_MAY},
	{"name", "NAME", 'n', "name of the instance; not needed while only one runs", MR_CMD_MAY},
	END};

static const struct mr_cmd_option gen_options[] = {JSON, NAME, END};

static const struct mr_cmd_option json_option[] = {JSON, END};

static const struct mr_cmd_option stages_options[] = {JSON,
	{"plugin", "FILE", 'p', "list the stages of a plug-in too; may be given several times",
		MR_CMD_MAY},
	END};

static const struct mr_cmd_option no_option[] = {END};

static const struct mr_cmd_option crossover_options[] = {
	{"quick", NULL, 'q', "few cells and short runs, for a first look", MR_CMD_MAY}, JSON,
	{"output", "FILE", 'O', "write the measurement as JSON", MR_CMD_MAY},
	{"csv", "FILE", 'C', "write its cells as CSV", MR_CMD_MAY},
	{"plot", "FILE.svg", 'P', "draw it; needs gnuplot", MR_CMD_MAY},
	{"sizes", "LIST", 's', "sizes of frames in bytes, with commas", MR_CMD_MAY},
	{"batches", "LIST", 'b', "batch sizes in packets, with commas", MR_CMD_MAY},
	{"touched", "LIST", 't', "how much of a frame the kernel reads: header, half, all",
		MR_CMD_MAY},
	{"paths", "LIST", 'p', "the paths: direct, pinned, staged", MR_CMD_MAY},
	{"repeats", "N", 'r', "how often each cell is measured", MR_CMD_MAY},
	{"run-ms", "N", 'm', "how long each measurement takes, in milliseconds", MR_CMD_MAY},
	{"slots", "N", 'l', "slots of the ring", MR_CMD_MAY},
	{"core", "N", 'c', "CPU that the lane polls on", MR_CMD_MAY},
	{"seed", "N", 'e', "seed of the order of the measurements", MR_CMD_MAY},
	{"device", "DEVICE", 'd', "sim, or the GPU's PCI address", MR_CMD_MAY},
	{"virtual", "MACHINE", 'v', "replay a model of PCIe: switch, sockets or old",
		MR_CMD_INSTEAD},
	END};

const struct mr_cmd mr_cmds[] = {
	{"run", NULL, "CONFIG", "run the lanes of a configuration until told to stop", run_options,
		mr_cmd_run},
	{"check", NULL, "CONFIG",
		"parse and plan a configuration and print what would be built; opens no device",
		check_options, mr_cmd_check},
	{"doctor", NULL, "[CONFIG]",
		"judge whether this machine has what a configuration, or a direct lane, needs",
		doctor_options, mr_cmd_doctor},
	{"stats", NULL, "", "show the counters of a running instance", stats_options, mr_cmd_stats},
	{"reload", NULL, "", "have a running instance take what its configuration says now",
		reload_options, mr_cmd_reload},
	{"capture", NULL, "LANE",
		"write packets of a lane of a running instance, before and after its chain, as "
		"pcapng",
		capture_options, mr_cmd_capture},
	{"gen", NULL, "CONFIG",
		"send numbered packets at intended times and verify what comes back", gen_options,
		mr_cmd_gen},
	{"stages", NULL, "", "list the stages with their parameters and counters", stages_options,
		mr_cmd_stages},
	{"bench", "crossover", "",
		"measure the paths beside each other: at which size which one is ahead",
		crossover_options, mr_cmd_bench_crossover},
	{"bench", "compare", "A B", "compare two files of --output", json_option,
		mr_cmd_bench_compare},
	{"manual", NULL, "PAGE", "print a page of the manual as mdoc(7), or the completion of bash",
		no_option, mr_cmd_manual},
};
const uint32_t mr_cmds_count = MR_ARRAY_LEN(mr_cmds);

const struct mr_cmd_status mr_cmd_statuses[] = {
	{MR_EXIT_CLEAN, "clean"},
	{MR_EXIT_FAILURE, "failure while running"},
	{MR_EXIT_USAGE, "usage"},
	{MR_EXIT_GPU, "GPU lost or stalled"},
	{MR_EXIT_PORT, "port lost"},
	{MR_EXIT_UNDRAINED, "stopped before drained"},
	{MR_EXIT_CONFIG, "configuration or preflight"},
};
const uint32_t mr_cmd_statuses_count = MR_ARRAY_LEN(mr_cmd_statuses);

const char *mr_cmd_dashes(const struct mr_cmd_option *o)
{
	return o->name[1] == '\0' ? "-" : "--";
}

void mr_cmd_print_usage(FILE *f, const struct mr_cmd *c)
{
	fprintf(f, "millrace %s%s%s%s%s", c->name, c->sub != NULL ? " " : "",
		c->sub != NULL ? c->sub : "", c->operands[0] != '\0' ? " " : "", c->operands);
	for (const struct mr_cmd_option *o = c->options; o->name != NULL; o++) {
		static const char *const before[] = {" [", " | ", " "};
		bool ends = o[1].name == NULL || o[1].use != MR_CMD_INSTEAD;

		fprintf(f, "%s%s%s%s%s%s", before[o->use], mr_cmd_dashes(o), o->name,
			o->value != NULL ? " " : "", o->value != NULL ? o->value : "",
			ends && o->use != MR_CMD_MUST ? "]" : "");
	}
}

void mr_cmd_print_options(FILE *f, const struct mr_cmd *c)
{
	for (const struct mr_cmd_option *o = c->options; o->name != NULL; o++) {
		int used = fprintf(f, "      %s%s %s", mr_cmd_dashes(o), o->name,
			o->value != NULL ? o->value : "");

		fprintf(f, "%*s%s\n", used < 28 ? 28 - used : 1, "", o->help);
	}
}

int mr_cmd_next(const struct mr_cmd *self, int argc, char **argv)
{
	struct option longs[MR_CMD_OPTIONS_MAX + 1] = {0};
	char letters[2 * MR_CMD_OPTIONS_MAX + 1] = "";
	uint32_t n = 0, l = 0;

	for (uint32_t i = 0; i < MR_CMD_OPTIONS_MAX && self->options[i].name != NULL; i++) {
		const struct mr_cmd_option *o = &self->options[i];

		if (o->name[1] != '\0') {
			longs[n++] = (struct option){o->name,
				o->value != NULL ? required_argument : no_argument, NULL, o->key};
			continue;
		}
		letters[l++] = o->name[0];
		if (o->value != NULL)
			letters[l++] = ':';
	}
	return getopt_long(argc, argv, letters, longs, NULL);
}
