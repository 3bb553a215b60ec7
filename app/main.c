/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd.h"

#include "mr_base.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define STACK_MIN (512u << 10)

static const struct mr_cmd cmds[] = {
	{"run",
		"CONFIG [--duration S] [--idle-exit S] [--json] [--name NAME] [--strict] [--skip "
		"ID]",
		"run the lanes of a configuration until told to stop", mr_cmd_run},
	{"check", "CONFIG [--json] [--no-host] [--name NAME]",
		"parse and plan a configuration and print what would be built", mr_cmd_check},
	{"doctor",
		"[CONFIG] [--root DIR|FILE.tar] [--json] [--strict] [--skip ID] [--capture FILE] "
		"[--readback]",
		"judge whether this machine has what a configuration, or a direct lane, needs",
		mr_cmd_doctor},
	{"stats", "[--name NAME] [--watch] [--json | --prometheus]",
		"show the counters of a running instance", mr_cmd_stats},
	{"reload", "[--name NAME]", "have a running instance take what its configuration says now",
		mr_cmd_reload},
	{"gen", "CONFIG [--json] [--name NAME]",
		"send numbered packets at intended times and verify what comes back", mr_cmd_gen},
	{"stages", "[--json]", "list the stages with their parameters and counters", mr_cmd_stages},
	{"bench",
		"crossover [--quick] [--json] [--output FILE] [--csv FILE] [--plot FILE.svg] "
		"[--sizes LIST] [--batches LIST] [--touched LIST] [--paths LIST] [--repeats N] "
		"[--run-ms N] [--slots N] [--core N] [--seed N] [--device DEVICE | --virtual "
		"MACHINE] "
		"| compare A B [--json]",
		"measure the paths beside each other, or compare two such measurements",
		mr_cmd_bench},
};

static void print_command(FILE *f, const struct mr_cmd *c)
{
	fprintf(f, "  millrace %s %s\n      %s\n", c->name, c->usage, c->help);
}

static void print_help(FILE *f)
{
	fprintf(f, "millrace %s: NIC -> GPU memory -> persistent kernel -> NIC\n\n", MR_VERSION);
	for (size_t i = 0; i < MR_ARRAY_LEN(cmds); i++)
		print_command(f, &cmds[i]);
}

int mr_cmd_usage(const struct mr_cmd *self)
{
	fprintf(stderr, "usage: millrace %s %s\n", self->name, self->usage);
	return MR_EXIT_USAGE;
}

/* Why standard output first failed; 0: it did not, or nobody looked then. */
static int output_errno;

void mr_cmd_print(const char *text)
{
	if ((fputs(text, stdout) < 0 || fflush(stdout) != 0) && output_errno == 0)
		output_errno = errno;
}

/* A result that could not be written is a failure, whatever the command thought of it. */
static int finish(int status)
{
	mr_cmd_print("");
	if (output_errno == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "millrace: standard output could not be written%s%s\n",
		output_errno != 0 ? ": " : "", output_errno != 0 ? strerror(output_errno) : "");
	return status == MR_EXIT_CLEAN ? MR_EXIT_FAILURE : status;
}

/* With less, the first deep call would be a fault and not a sentence. */
static bool has_stack(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_STACK, &l) != 0 || l.rlim_cur >= STACK_MIN)
		return true;
	fprintf(stderr,
		"millrace: this process is limited to %llu KiB of stack, and needs %u; raise it: "
		"ulimit -s\n",
		(unsigned long long)l.rlim_cur / 1024, STACK_MIN / 1024);
	return false;
}

/*
 * A stream that was closed would lend its number to the next file opened, and what is
 * printed would land there: in memory that DPDK shares, for one. Writes fail instead.
 */
static void hold_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

static int dispatch(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return MR_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
		print_help(stdout);
		return MR_EXIT_CLEAN;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("millrace %s\n", MR_VERSION);
		return MR_EXIT_CLEAN;
	}
	for (size_t i = 0; i < MR_ARRAY_LEN(cmds); i++) {
		if (strcmp(argv[1], cmds[i].name) != 0)
			continue;
		if (argc != 3 || strcmp(argv[2], "--help") != 0)
			return cmds[i].run(&cmds[i], argc - 1, argv + 1);
		print_command(stdout, &cmds[i]);
		return MR_EXIT_CLEAN;
	}
	fprintf(stderr, "millrace: '%s' is not a command; see 'millrace --help'\n", argv[1]);
	return MR_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	hold_streams();
	if (!has_stack())
		return MR_EXIT_FAILURE;
	/* A write beyond the limit of a file's size shall fail, not kill (ulimit -f). */
	signal(SIGXFSZ, SIG_IGN);
	return finish(dispatch(argc, argv));
}
