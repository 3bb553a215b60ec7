/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_root - files of this machine, or of another one in a folder or an archive.
 *
 *     mr_root_open("/") or (FOLDER) or (FILE.tar, FILE.xml) ─► read, list, real, may ─► close
 *
 * All of a machine is read below one root and symbolic links are resolved inside
 * it, absolute ones too, so what is read can never lie outside. The root is not
 * trusted: only regular files are read, nothing is waited for, and every size has
 * a bound. An archive (tar; plain, gzip, bzip2, xz or zstd) is unpacked into a
 * folder of its own in /tmp, which close removes; what hwloc-gather-topology and
 * `millrace doctor --capture` make can be given as they are, their one leading
 * folder included. So can what lstopo exports as XML: CPUs, NUMA nodes and PCI
 * functions are written down as sysfs shows them.
 *
 * What is not in such a root is not there, with two exceptions: an archive that is
 * no capture, and an export, tell of a machine in part only, and then it is not known.
 *
 * A root that is not "/" may hold millrace/denied: a line "r PATH" or "w PATH" for
 * each file that the machine's user could not read or write.
 *
 * A recorder is told of everything that was looked at; see mr_capture.h.
 *
 * Paths are relative to the root, without a leading '/'.
 *
 * Thread   one at a time.
 * Owner    the structure is the caller's memory.
 * Errors   -ENOENT not there · -ENODATA not told · -EACCES may not · -EISDIR not a regular file
 *          · -ELOOP · -ENAMETOOLONG · -EFBIG longer than the buffer (which then
 *          holds the beginning) · other: the system call's.
 * Source   openat2(2) RESOLVE_IN_ROOT, libarchive
 */
#ifndef MR_ROOT_H
#define MR_ROOT_H

#include "mr_err.h"

#include <stdbool.h>

#define MR_ROOT_PATH_MAX 1024u
#define MR_ROOT_NAMES_MAX 65536u

enum mr_root_seen {
	MR_ROOT_SEEN_FILE,   /* data: its bytes */
	MR_ROOT_SEEN_LINK,   /* data: the path inside the root that it leads to */
	MR_ROOT_SEEN_FOLDER, /* listed */
	MR_ROOT_SEEN_ENTRY,  /* name of a listed folder, not a folder itself */
	MR_ROOT_SEEN_DENIED, /* data: "r" or "w" */
	MR_ROOT_SEEN_OPEN,   /* may be opened */
};

typedef void mr_root_recorder(
	void *ctx, enum mr_root_seen seen, const char *path, const void *data, size_t bytes);

struct mr_root {
	int fd;
	bool live;                   /* this machine, now */
	bool partial;                /* what is not there is not known */
	char path[MR_ROOT_PATH_MAX]; /* of the root itself; "" for "/" */
	char unpacked[64];           /* folder to remove, or "" */
	char *denied;                /* text of millrace/denied, or NULL */
	mr_root_recorder *recorder;  /* NULL: nobody */
	void *recorder_ctx;
	const char *recorded_below; /* put before the names that it is told, or NULL */
};

MR_MUST_USE int mr_root_open(struct mr_root *r, const char *path, struct mr_err *err);
void mr_root_close(struct mr_root *r);

/*
 * mr_root_read reads the regular file into buf, at most bytes - 1 of it, and ends
 * it with NUL. ret_bytes may be NULL.
 */
MR_MUST_USE int mr_root_read(
	struct mr_root *r, const char *path, void *buf, size_t bytes, size_t *ret_bytes);

/*
 * mr_root_open_stream opens dev/kmsg of this machine or a regular file without
 * waiting; the caller closes it. What is read of it is not recorded.
 */
MR_MUST_USE int mr_root_open_stream(struct mr_root *r, const char *path);

struct mr_root_names {
	char **name; /* sorted, '.' and '..' left out */
	uint32_t count;
};

/* mr_root_list gives at most MR_ROOT_NAMES_MAX names; free with mr_root_names_free. */
MR_MUST_USE int mr_root_list(struct mr_root *r, const char *path, struct mr_root_names *ret_names);
void mr_root_names_free(struct mr_root_names *names);

/* mr_root_real gives the path without links, relative to the root. */
MR_MUST_USE int mr_root_real(struct mr_root *r, const char *path, char ret_path[MR_ROOT_PATH_MAX]);

/* mr_root_may says whether this user may read (R_OK) and write (W_OK): 0 or -errno. */
MR_MUST_USE int mr_root_may(struct mr_root *r, const char *path, int mode);

/* mr_root_mode gives permission and type bits of what is there. */
MR_MUST_USE int mr_root_mode(struct mr_root *r, const char *path, uint32_t *ret_mode);

#endif
