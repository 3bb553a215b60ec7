/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_file - files that a user named, opened without ever waiting.
 *
 * Opening a pipe waits for its other end, opening a device may do anything, and
 * reading a directory fails with words about something else. What is meant to be
 * a file is therefore looked at first.
 *
 * Thread   any.
 * Errors   -errno, -EISDIR for a directory and -EINVAL for all else that is no file;
 *          the sentence lacks its subject, so that the caller can name it:
 *          "cannot be read: No such file or directory", "is a pipe, not a file".
 */
#ifndef MR_FILE_H
#define MR_FILE_H

#include "mr_err.h"

#include <sys/stat.h>

/* mr_file_kind says what a mode of stat(2) is: "a file", "a directory", "a pipe", ... */
const char *mr_file_kind(mode_t mode);

/* mr_file_open opens a file to read; the caller closes *ret_fd. */
MR_MUST_USE int mr_file_open(const char *path, int *ret_fd, struct mr_err *err);

#endif
