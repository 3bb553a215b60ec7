/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_klog - what the kernel's log says of NVIDIA GPUs.
 *
 *     NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=millrace, GPU has fallen off the bus.
 *     NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.
 *     NVRM: The NVIDIA GPU 0000:3b:00.0
 *     NVRM: (PCI ID: 10de:2330) installed in this system has
 *     NVRM: fallen off the bus and is not responding to commands.
 *
 * Not every loss has a number, and not every message fits a line, so the matcher reads
 * lines in order and remembers which GPU the driver spoke of last. The reader gives it
 * the lines that are new: records of /dev/kmsg, of which only the kernel's own count, or
 * lines of a file.
 *
 * Thread   one at a time; calls never wait for the log.
 * Source   Linux Documentation/ABI/testing/dev-kmsg; NVIDIA, Xid Errors (catalog);
 *          messages without a number: github.com/NVIDIA/NVSentinel issue 155,
 *          github.com/leptonai/gpud pull request 1209
 */
#ifndef MR_KLOG_H
#define MR_KLOG_H

#include "mr_pci.h"

#define MR_KLOG_FILE "/dev/kmsg"
#define MR_KLOG_TEXT_BYTES 200u
#define MR_KLOG_LINE_BYTES 8192u

/* From bad to worse. */
enum mr_klog_effect {
	MR_KLOG_NONE,
	MR_KLOG_PROGRAM, /* ended the work of one program, which need not be this one */
	MR_KLOG_DAMAGED, /* the GPU goes on, but needs a reset before the next start */
	MR_KLOG_LOST,    /* the GPU is gone, or what it computes cannot be trusted */
};

struct mr_klog_event {
	bool named;             /* gpu is known */
	struct mr_pci_addr gpu; /* function 0 */
	uint32_t xid;           /* 0: a message without a number */
	enum mr_klog_effect effect;
	bool recovered; /* Xid 154 says that nothing is left to be done; effect is NONE */
	char text[MR_KLOG_TEXT_BYTES]; /* the message, printable, cut to fit */
};

/* What the matcher remembers between lines; zeroed at the start. */
struct mr_klog {
	uint32_t lines; /* of the driver's that may still go on about that GPU */
	struct mr_pci_addr last;
};

/*
 * mr_klog_match takes the next line of a log, without the fields in front of a record.
 * True: *ret_event says what happened to which GPU.
 */
bool mr_klog_match(struct mr_klog *k, const char *line, struct mr_klog_event *ret_event);

/* What a number means; MR_KLOG_NONE for those that are not listed. */
enum mr_klog_effect mr_klog_xid_effect(uint64_t xid);

struct mr_klog_reader {
	int fd;
	struct mr_klog k;
	uint32_t filled;
	char buffer[MR_KLOG_LINE_BYTES];
};

/* mr_klog_open stands at the end of the log. -errno of open(2), most often -EPERM. */
MR_MUST_USE int mr_klog_open(struct mr_klog_reader *r, const char *path);
void mr_klog_close(struct mr_klog_reader *r);

/* The next event with an effect, if the log has one that is new. */
bool mr_klog_next(struct mr_klog_reader *r, struct mr_klog_event *ret_event);

#endif
