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

static void print_command(FILE *f, const struct mr_cmd *c)
{
	fputs("  ", f);
	mr_cmd_print_usage(f, c);
	fprintf(f, "\n      %s\n", c->help);
}

static void print_help(FILE *f)
{
	fprintf(f, "millrace %s: NIC -> GPU memory -> persistent kernel -> NIC\n\n", MR_VERSION);
	for (uint32_t i = 0; i < mr_cmds_count; i++)
		print_command(f, &mr_cmds[i]);
	fprintf(f, "\nmillrace COMMAND --help tells of its options.\n\nexit status\n");
	for (uint32_t i = 0; i < mr_cmd_statuses_count; i++)
		fprintf(f, "  %-3d %s\n", mr_cmd_statuses[i].status, mr_cmd_statuses[i].meaning);
}

int mr_cmd_usage(const struct mr_cmd *self)
{
	fputs("usage: ", stderr);
	mr_cmd_print_usage(stderr, self);
	fputc('\n', stderr);
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

static bool is_help(int argc, char **argv, int at)
{
	return argc == at + 1 && strcmp(argv[at], "--help") == 0;
}

/* The command is there, and which of its kinds is meant was not said, or help was asked for. */
static int tell_kinds(const char *name, bool asked)
{
	for (uint32_t i = 0; i < mr_cmds_count; i++) {
		if (strcmp(name, mr_cmds[i].name) != 0)
			continue;
		if (!asked) {
			mr_cmd_usage(&mr_cmds[i]);
			continue;
		}
		print_command(stdout, &mr_cmds[i]);
		mr_cmd_print_options(stdout, &mr_cmds[i]);
	}
	return asked ? MR_EXIT_CLEAN : MR_EXIT_USAGE;
}

static int run_command(int argc, char **argv)
{
	bool known = false;

	for (uint32_t i = 0; i < mr_cmds_count; i++) {
		const struct mr_cmd *c = &mr_cmds[i];
		int at = c->sub != NULL ? 2 : 1;

		if (strcmp(argv[1], c->name) != 0)
			continue;
		known = true;
		if (is_help(argc, argv, 2))
			return tell_kinds(c->name, true);
		if (c->sub != NULL && (argc < 3 || strcmp(argv[2], c->sub) != 0))
			continue;
		if (!is_help(argc, argv, at + 1))
			return c->run(c, argc - at, argv + at);
		print_command(stdout, c);
		mr_cmd_print_options(stdout, c);
		return MR_EXIT_CLEAN;
	}
	if (!known) {
		fprintf(stderr, "millrace: '%s' is not a command; see 'millrace --help'\n",
			argv[1]);
		return MR_EXIT_USAGE;
	}
	if (argc > 2)
		fprintf(stderr, "millrace: there is no %s '%s'\n", argv[1], argv[2]);
	return tell_kinds(argv[1], false);
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
	return run_command(argc, argv);
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
