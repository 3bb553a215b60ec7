/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_port_file - the captures that net_pcap reads and writes.
 *
 * Of a file that it cannot open the driver says "Operation not permitted", it waits
 * for pipes, takes a damaged file for one that has ended, and counts what a full disk
 * refused as sent. So its files are looked at before it opens them, and compared with
 * what it counted after the lanes stopped.
 *
 *     files_check (all ports) ─► probe ─► files_open ... files_judge ─► files_close
 *
 * A file that is written holds 24 bytes, and for each frame 16 and the frame; any
 * other size means that it does not hold what was sent. A file that is read is walked
 * as far as packets of it were received: a record that does not fit there is where
 * libpcap stopped.
 *
 * Thread   the control thread.
 * Owner    the port; descriptors of its own keep the files that the driver has, also
 *          when they are renamed or removed meanwhile.
 * Source   draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng; MAXIMUM_SNAPLEN and the
 *          block size limit of libpcap 1.10
 */
#ifndef MR_PORT_FILE_H
#define MR_PORT_FILE_H

#include "mr_err.h"

#include <stdbool.h>
#include <sys/types.h>

struct mr_port_spec;

struct mr_port_file {
	bool written;   /* tx_pcap */
	uint32_t queue; /* among those of its direction */
	int fd;         /* -1: nothing to compare */
	char path[512];
	/* Which file it is: of one that is not there yet, its folder and its name. */
	dev_t device;
	ino_t inode;
	char name[512];
};

struct mr_port_files {
	struct mr_port_file *file;
	uint32_t count;
};

/* What a queue of the port counted. */
struct mr_port_file_counts {
	uint64_t packets, bytes;
};

typedef void mr_port_tell(void *ctx, uint32_t port, const char *hint, const char *sentence);

/*
 * mr_port_files_check tells of every file of these ports that cannot be read or
 * written, is no capture, or is used twice while it is written. Creates nothing.
 */
void mr_port_files_check(
	const struct mr_port_spec *specs, uint32_t count, mr_port_tell *tell, void *ctx);

/* mr_port_files_open takes hold of the files that the driver has just opened. */
MR_MUST_USE int mr_port_files_open(
	struct mr_port_files *fs, const struct mr_port_spec *spec, struct mr_err *err);
void mr_port_files_close(struct mr_port_files *fs);

/*
 * mr_port_file_judge compares a file with what its queue counted. Returns 0, or -EIO
 * with a sentence that lacks its subject, as mr_file.h has them.
 */
MR_MUST_USE int mr_port_file_judge(
	const struct mr_port_file *f, const struct mr_port_file_counts *counts, struct mr_err *err);

#endif
