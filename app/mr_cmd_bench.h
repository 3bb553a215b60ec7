/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_cmd_bench - what the file of the command `bench` leaves to another: its options, the
 * words about the machine, and the files that it writes.
 */
#ifndef MR_CMD_BENCH_H
#define MR_CMD_BENCH_H

#include "mr_bench_report.h"
#include "mr_cmd_doctor.h"

enum mr_bench_file {
	MR_BENCH_FILE_JSON,
	MR_BENCH_FILE_CSV,
	MR_BENCH_FILE_PLOT,
	MR_BENCH_FILES,
};

struct mr_bench_options {
	struct mr_bench_settings set;
	const struct mr_bench_machine *machine; /* of --virtual */
	bool json;
	const char *file[MR_BENCH_FILES]; /* NULL: not asked for */
	int fd[MR_BENCH_FILES];           /* -1 */
};

/* 0, or -EINVAL with a sentence on stderr unless getopt has told one. */
MR_MUST_USE int mr_bench_options_parse(
	const struct mr_cmd *self, int argc, char **argv, struct mr_bench_options *ret_o);

/*
 * mr_bench_files_open opens what is to be written, before a measurement of minutes: a
 * file that there is stays as it is until it is written.
 */
MR_MUST_USE int mr_bench_files_open(struct mr_bench_options *o, struct mr_err *err);
void mr_bench_files_close(struct mr_bench_options *o);

/*
 * mr_bench_files_write writes all of them, and tells on stderr which could not be. A file
 * that could not be written whole is empty. Returns how many failed.
 */
MR_MUST_USE uint32_t mr_bench_files_write(struct mr_bench_options *o, const json_t *bench);

/* Words about the machine; constant until the next call. */
void mr_bench_machine_words(struct mr_doctor *d, struct mr_bench_about *ret_about);

#endif
