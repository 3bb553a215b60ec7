/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_facts_log - what the kernel's log says of the devices. */
#define _GNU_SOURCE 1
#include "mr_facts_priv.h"

#include "mr_klog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_BYTES_MAX (32u << 20) /* of a replayed file; the kernel's own ring is smaller */
#define RECORD_BYTES_MAX 8192u
#define KEPT_HEAD "6,0,0,-;lines of the kernel's log that matter to millrace\n"

struct log {
	struct mr_host_facts *f;
	struct mr_klog nvidia;
	char *kept; /* lines that matter, for the recorder */
	size_t kept_bytes;
	uint32_t lines; /* that a kernel's log can hold */
	bool broken;    /* one that it cannot */
};

static bool is_gpu(const struct mr_host_facts *f, uint32_t g, const struct mr_pci_addr *addr)
{
	struct mr_pci_addr own;

	if (!mr_pci_addr_parse(f->pci[f->gpus[g].pci].bdf, &own))
		return false;
	own.function = 0;
	return mr_pci_addr_compare(&own, addr) == 0;
}

static void judge_nvidia(struct log *log, const char *line)
{
	struct mr_host_facts *f = log->f;
	struct mr_klog_event e;

	if (!mr_klog_match(&log->nvidia, line, &e) || (e.effect < MR_KLOG_DAMAGED && !e.recovered))
		return;
	for (uint32_t g = 0; g < f->gpus_count; g++) {
		/* A loss that names nobody may be anybody's. */
		if (e.named ? !is_gpu(f, g, &e.gpu) : e.xid != 0)
			continue;
		if (strstr(e.text, "fallen off the bus") != NULL)
			f->gpus[g].fell_off = true;
		if (e.xid != 0)
			f->gpus[g].xid = e.recovered ? 0 : e.xid;
	}
}

static void note(struct mr_facts_kernel *k, bool *flag, const char *line)
{
	*flag = true;
	for (size_t i = 0; k->log_line[0] == '\0' || i > 0; i++) {
		if (line[i] == '\0' || line[i] == '\n' || i + 1 == sizeof(k->log_line)) {
			k->log_line[i] = '\0';
			return;
		}
		k->log_line[i] = line[i] >= 0x20 && line[i] < 0x7f ? line[i] : '?';
	}
}

/*
 * A line as /dev/kmsg has it ("6,1,0,-;text", or " KEY=" of one), as dmesg prints it
 * ("[    0.1] text", "<6>[ ..."), or as syslog keeps it. Control characters are escaped
 * in all of them.
 */
static void count_line(struct log *log, const char *line)
{
	size_t digits = strspn(line, "0123456789");

	for (const char *s = line; *s != '\0' && *s != '\n'; s++)
		log->broken |= (unsigned char)*s < 0x20 && *s != '\t' && *s != '\r';
	log->lines += (digits > 0 && line[digits] == ',' && strchr(line, ';') != NULL) ||
		*line == '[' || *line == '<' || strstr(line, " kernel: ") != NULL;
}

static void judge_line(struct log *log, const char *line)
{
	struct mr_facts_kernel *k = &log->f->kernel;
	bool matters = true;

	if (strstr(line, "NVRM") != NULL)
		judge_nvidia(log, line);
	else if (strstr(line, "IO_PAGE_FAULT") != NULL || strstr(line, "DMAR: [DMA ") != NULL)
		note(k, &k->log_io_fault, line);
	else if (strstr(line, "disagrees about version of symbol ib_register_peer_memory") != NULL)
		note(k, &k->log_symbols, line);
	else if (strstr(line, "Oops: ") != NULL || strstr(line, "kernel BUG at") != NULL)
		note(k, &k->log_oops, line);
	else
		matters = false;
	if (matters && log->kept != NULL && log->kept_bytes <= LOG_BYTES_MAX) {
		size_t n = strcspn(line, "\n");
		char *grown = realloc(log->kept, log->kept_bytes + n + 2);

		if (grown == NULL)
			return;
		log->kept = grown;
		memcpy(grown + log->kept_bytes, line, n);
		grown[log->kept_bytes + n] = '\n';
		grown[log->kept_bytes + n + 1] = '\0';
		log->kept_bytes += n + 1;
	}
}

/* The device gives one record a read: "6,339,5140900,-;text\n" and lines that go on with ' '. */
static void read_records(struct log *log, int fd)
{
	char record[RECORD_BYTES_MAX];
	size_t total = 0;
	ssize_t got;

	while (total < LOG_BYTES_MAX) {
		const char *text;

		got = read(fd, record, sizeof(record) - 1);
		if (got < 0 && (errno == EINTR || errno == EPIPE))
			continue; /* EPIPE: older records were overwritten meanwhile */
		if (got <= 0)
			break;
		record[got] = '\0';
		total += (size_t)got;
		text = strchr(record, ';');
		count_line(log, record);
		judge_line(log, text == NULL ? record : text + 1);
	}
}

/* The same records in a file, or the lines of dmesg. */
static void read_lines(struct log *log, int fd)
{
	FILE *file = fdopen(dup(fd), "r");
	char line[RECORD_BYTES_MAX];
	size_t total = 0;

	if (file == NULL)
		return;
	while (total < LOG_BYTES_MAX && fgets(line, sizeof(line), file) != NULL) {
		total += strlen(line);
		count_line(log, line);
		judge_line(log, line);
	}
	fclose(file);
}

void mr_facts_log(struct mr_root *r, struct mr_host_facts *f)
{
	struct log log = {.f = f};
	int fd = mr_root_open_stream(r, "dev/kmsg");

	f->kernel.log_state = mr_facts_state_of(fd < 0 ? fd : 0);
	/* What is kept is the text of records, under a head that says that there was a log. */
	if (r->recorder != NULL)
		log.kept = strdup(KEPT_HEAD);
	log.kept_bytes = log.kept == NULL ? 0 : strlen(KEPT_HEAD);
	if (fd >= 0) {
		if (r->live)
			read_records(&log, fd);
		else
			read_lines(&log, fd);
		close(fd);
		/* An empty log, as of a container's /dev/kmsg that is /dev/null, tells nothing. */
		if (log.lines == 0 || log.broken)
			f->kernel.log_state = MR_FACT_STRANGE;
		if (log.kept != NULL)
			r->recorder(r->recorder_ctx, MR_ROOT_SEEN_FILE, "dev/kmsg", log.kept,
				f->kernel.log_state == MR_FACT_KNOWN ? log.kept_bytes : 0);
	} else if (f->kernel.log_state == MR_FACT_DENIED && r->recorder != NULL) {
		r->recorder(r->recorder_ctx, MR_ROOT_SEEN_DENIED, "dev/kmsg", "r", 1);
	}
	free(log.kept);
}
