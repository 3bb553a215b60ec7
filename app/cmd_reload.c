/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd.h"

#include "mr_report.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

static void print_sentence(void *ctx, const char *sentence)
{
	(void)ctx;
	fprintf(stderr, "%s\n", sentence);
}

int mr_cmd_reload(const struct mr_cmd *self, int argc, char **argv)
{
	char name[MR_NAME_MAX];
	const char *wanted = NULL;
	struct mr_err err = {0};
	int c, rc = 0;

	while ((c = mr_cmd_next(self, argc, argv)) != -1) {
		if (c != 'n')
			return mr_cmd_usage(self);
		wanted = optarg;
	}
	if (optind != argc)
		return mr_cmd_usage(self);
	if (wanted == NULL) {
		rc = mr_report_find(name, &err);
		wanted = name;
	}
	if (rc == 0)
		rc = mr_report_reload(wanted, print_sentence, NULL, &err);
	if (rc == 0)
		return MR_EXIT_CLEAN;
	fprintf(stderr, "millrace: %s\n", err.msg);
	return rc == -EINVAL ? MR_EXIT_CONFIG : MR_EXIT_FAILURE;
}
