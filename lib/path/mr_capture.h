/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_capture - what the reader looked at, as an archive that can be read back.
 *
 *     start(root) ─► mr_facts_read ─► write(FILE.tar) ─► free
 *
 * The archive holds exactly what was read, so it replays to the same facts, and
 * nothing that names the machine: MAC addresses, GUIDs, UUIDs and device serial
 * numbers are replaced, the same one by the same replacement wherever it stands,
 * in names too. Replacements are counted (02:00:00:00:00:01, ...), so they tell
 * nothing of the original.
 *
 * Thread   one at a time.
 * Errors   -ENOMEM; write: those of the file.
 */
#ifndef MR_CAPTURE_H
#define MR_CAPTURE_H

#include "mr_root.h"

struct mr_capture;

/* mr_capture_start makes root tell the new capture what is read; NULL without memory. */
struct mr_capture *mr_capture_start(struct mr_root *root);
MR_MUST_USE int mr_capture_write(struct mr_capture *c, const char *file, struct mr_err *err);
void mr_capture_free(struct mr_capture *c);

/*
 * mr_capture_scrub replaces what names a machine in a text, each by something as
 * long; exported for its test.
 */
void mr_capture_scrub(struct mr_capture *c, char *text, size_t bytes);

#endif
