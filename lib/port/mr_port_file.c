/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mr_port_file.h"

#include "mr_file.h"
#include "mr_port.h"
#include "mr_port_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool is_pcap(const char *device)
{
	return strncmp(device, "net_pcap", 8) == 0;
}

/* The files among the arguments of a port, in the order in which they become queues. */
static int list(struct mr_port_files *fs, const struct mr_port_spec *spec)
{
	static const char *const keys[] = {"rx_pcap=", "tx_pcap="};
	uint32_t queues[2] = {0};

	for (const char *s = is_pcap(spec->device) ? spec->args : ""; *s != '\0';) {
		size_t bytes = strcspn(s, ",");

		for (uint32_t k = 0; k < MR_ARRAY_LEN(keys); k++) {
			size_t n = strlen(keys[k]);
			struct mr_port_file *f;

			if (bytes < n || strncmp(s, keys[k], n) != 0)
				continue;
			f = realloc(fs->file, (fs->count + 1) * sizeof(*f));
			if (f == NULL)
				return -ENOMEM;
			fs->file = f;
			f += fs->count++;
			*f = (struct mr_port_file){
				.written = k == 1, .queue = queues[k]++, .fd = -1};
			snprintf(f->path, sizeof(f->path), "%.*s", (int)(bytes - n), s + n);
		}
		s += bytes;
		s += *s == ',';
	}
	return 0;
}

static void identify(struct mr_port_file *f, const struct stat *st, const char *name)
{
	f->device = st->st_dev;
	f->inode = st->st_ino;
	snprintf(f->name, sizeof(f->name), "%s", name);
}

static bool is_sink(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3); /* /dev/null */
}

static int check_read(struct mr_port_file *f, struct mr_err *err)
{
	struct stat st;
	int fd, rc;

	rc = mr_file_open(f->path, &fd, err);
	if (rc < 0)
		return rc;
	if (fstat(fd, &st) == 0)
		identify(f, &st, "");
	if (!mr_port_capture_is(fd))
		rc = mr_err_set(err, -EINVAL, "is not a capture, neither pcap nor pcapng");
	close(fd);
	return rc;
}

/* A file that does not exist yet: can it be made where it is to be? */
static int check_folder(struct mr_port_file *f, struct mr_err *err)
{
	char folder[sizeof(f->path)];
	const char *slash = strrchr(f->path, '/');
	struct stat st;

	if (slash == NULL)
		snprintf(folder, sizeof(folder), ".");
	else
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - f->path) + 1, f->path);
	if (stat(folder, &st) != 0 || faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
		return mr_err_set(
			err, -errno, "cannot be created: folder '%s': %s", folder, strerror(errno));
	identify(f, &st, slash != NULL ? slash + 1 : f->path);
	return 0;
}

static int check_written(struct mr_port_file *f, struct mr_err *err)
{
	struct stat st;

	if (f->path[0] == '\0')
		return mr_err_set(err, -ENOENT, "cannot be written: its name is empty");
	if (stat(f->path, &st) != 0)
		return errno == ENOENT
			? check_folder(f, err)
			: mr_err_set(err, -errno, "cannot be written: %s", strerror(errno));
	if (!S_ISREG(st.st_mode) && !is_sink(&st))
		return mr_err_set(err, -EINVAL, "is %s, not a file", mr_file_kind(st.st_mode));
	if (faccessat(AT_FDCWD, f->path, W_OK, AT_EACCESS) != 0)
		return mr_err_set(err, -errno, "cannot be written: %s", strerror(errno));
	identify(f, &st, "");
	return 0;
}

static int check(struct mr_port_file *f, struct mr_err *err)
{
	/* libpcap takes it for standard input or output, which belong to the report. */
	if (strcmp(f->path, "-") == 0)
		return mr_err_set(err, -EINVAL, "is not the name of a file");
	return f->written ? check_written(f, err) : check_read(f, err);
}

static bool same(const struct mr_port_file *a, const struct mr_port_file *b)
{
	struct stat st;

	return a->inode != 0 && a->device == b->device && a->inode == b->inode &&
		strcmp(a->name, b->name) == 0 && !(stat(a->path, &st) == 0 && is_sink(&st));
}

void mr_port_files_check(
	const struct mr_port_spec *specs, uint32_t count, mr_port_tell *tell, void *ctx)
{
	struct mr_port_files fs = {0};
	uint32_t from = 0;
	char text[1800];
	struct mr_err err;

	for (uint32_t i = 0; i < count; i++) {
		if (list(&fs, &specs[i]) < 0)
			tell(ctx, i, "free some memory", "out of memory");
		for (; from < fs.count; from++) {
			struct mr_port_file *f = &fs.file[from];
			const char *what = f->written ? "tx_pcap" : "rx_pcap";
			uint32_t k = 0;

			if (check(f, &err) < 0) {
				snprintf(text, sizeof(text), "%s '%s' %s", what, f->path, err.msg);
				tell(ctx, i,
					f->written ? "name a file that can be written"
						   : "name a capture that can be read",
					text);
				continue;
			}
			while (k < from &&
				!(same(&fs.file[k], f) && (fs.file[k].written || f->written)))
				k++;
			if (k == from)
				continue;
			snprintf(text, sizeof(text), "%s '%s' is also %s '%s'", what, f->path,
				fs.file[k].written ? "tx_pcap" : "rx_pcap", fs.file[k].path);
			tell(ctx, i, "write each capture to a file of its own", text);
		}
	}
	free(fs.file);
}

int mr_port_files_open(
	struct mr_port_files *fs, const struct mr_port_spec *spec, struct mr_err *err)
{
	memset(fs, 0, sizeof(*fs));
	if (list(fs, spec) < 0)
		return mr_err_set(err, -ENOMEM, "port '%s': out of memory", spec->name);
	for (uint32_t i = 0; i < fs->count; i++) {
		struct mr_port_file *f = &fs->file[i];
		struct mr_err why;

		if (mr_file_open(f->path, &f->fd, &why) == 0)
			continue;
		/* Written without the right to read: the size is what is asked for. */
		f->fd = open(f->path, O_PATH | O_CLOEXEC);
	}
	return 0;
}

void mr_port_files_close(struct mr_port_files *fs)
{
	for (uint32_t i = 0; i < fs->count; i++)
		if (fs->file[i].fd >= 0)
			close(fs->file[i].fd);
	free(fs->file);
	memset(fs, 0, sizeof(*fs));
}

static int judge_written(const struct mr_port_file *f, uint64_t bytes,
	const struct mr_port_file_counts *c, struct mr_err *err)
{
	uint64_t wanted = MR_PORT_CAPTURE_HEAD + c->packets * MR_PORT_CAPTURE_RECORD + c->bytes;
	struct mr_port_capture found = {0};

	/* libpcap keeps even the head to itself until the first burst. */
	if (c->packets == 0 || bytes == wanted)
		return 0;
	(void)!mr_port_capture_walk(f->fd, c->packets, &found);
	return mr_err_set(err, -EIO,
		"holds only the first %" PRIu64 " of the %" PRIu64
		" frames that were counted as sent: it has %" PRIu64 " bytes, they make %" PRIu64
		"; is its disk full?",
		found.packets, c->packets, bytes, wanted);
}

static int judge_read(
	const struct mr_port_file *f, const struct mr_port_file_counts *c, struct mr_err *err)
{
	struct mr_port_capture found = {0};

	if (mr_port_capture_walk(f->fd, c->packets, &found) < 0 || !found.damaged)
		return 0;
	return mr_err_set(err, -EIO,
		"is damaged at packet %" PRIu64 " (byte %" PRIu64
		"): %s; what is behind it was not "
		"received, or cannot be trusted",
		found.packets + 1, found.offset, found.why);
}

int mr_port_file_judge(
	const struct mr_port_file *f, const struct mr_port_file_counts *counts, struct mr_err *err)
{
	struct stat st;

	if (f->fd < 0 || fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode))
		return 0;
	return f->written ? judge_written(f, (uint64_t)st.st_size, counts, err)
			  : judge_read(f, counts, err);
}
