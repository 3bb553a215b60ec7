/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE 1
#include "mr_capture.h"

#include <archive.h>
#include <archive_entry.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRIES_MAX 200000u
#define IDS_MAX 4096u
#define ID_BYTES 40u
#define DSN_CAP 0x0003u /* device serial number, PCI Express 7.9.3 */
#define CONFIG_EXTENDED 0x100u
#define CONFIG_BYTES 4096u
#define TAR_MAGIC "ustar" /* POSIX.1-2001 pax, header block */
#define TAR_MAGIC_AT 257

struct entry {
	enum mr_root_seen seen;
	char *path;
	char *data;
	size_t bytes;
};

struct mr_capture {
	struct mr_root *root;
	struct entry *entries;
	uint32_t count, room;
	char (*ids)[ID_BYTES]; /* what was replaced; its index is its replacement's number */
	uint32_t ids_count;
	bool failed;
};

static void record(
	void *ctx, enum mr_root_seen seen, const char *path, const void *data, size_t bytes)
{
	struct mr_capture *c = ctx;
	struct entry *e;

	if (c->count == c->room) {
		uint32_t room = c->room == 0 ? 256 : c->room * 2;
		struct entry *grown =
			room > ENTRIES_MAX ? NULL : realloc(c->entries, room * sizeof(*grown));

		if (grown == NULL) {
			c->failed = true;
			return;
		}
		c->entries = grown;
		c->room = room;
	}
	e = &c->entries[c->count];
	e->seen = seen;
	e->bytes = bytes;
	e->path = strdup(path);
	e->data = malloc(bytes + 1);
	if (e->path == NULL || e->data == NULL) {
		free(e->path);
		free(e->data);
		c->failed = true;
		return;
	}
	memcpy(e->data, data, bytes);
	e->data[bytes] = '\0';
	c->count++;
}

struct mr_capture *mr_capture_start(struct mr_root *root)
{
	struct mr_capture *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->ids = calloc(IDS_MAX, sizeof(*c->ids));
	if (c->ids == NULL) {
		free(c);
		return NULL;
	}
	c->root = root;
	root->recorder = record;
	root->recorder_ctx = c;
	if (root->partial)
		record(c, MR_ROOT_SEEN_FILE, "millrace/partial", "", 0);
	return c;
}

void mr_capture_free(struct mr_capture *c)
{
	if (c == NULL)
		return;
	c->root->recorder = NULL;
	for (uint32_t i = 0; i < c->count; i++) {
		free(c->entries[i].path);
		free(c->entries[i].data);
	}
	free(c->entries);
	free(c->ids);
	free(c);
}

/* Groups of hexadecimal digits, their lengths and what stands between them. */
struct shape {
	const char *groups; /* '4' is four digits */
	char between;
	const char *to; /* printf of the replacement's number, split as it needs */
};

static const struct shape shapes[] = {
	/* The long ones first: a MAC address is the beginning of an InfiniBand one. */
	{"22222222222222222222", ':',
		"02:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:%02x:%02x"},
	{"22222222", ':', "02:00:00:00:00:00:%02x:%02x"},
	{"222222", ':', "02:00:00:00:%02x:%02x"},
	{"222222", '-', "02-00-00-00-%02x-%02x"},
	{"84445", '-', "00000000-0000-0000-0000-00000000%02x%02x"}, /* 5 stands for twelve */
	{"4444", ':', "0000:0000:0000:%02x%02x"},
};

static size_t digits_of(char group)
{
	return group == '5' ? 12 : (size_t)(group - '0');
}

/* Length of what is there in this shape and ends there, or 0. */
static size_t match(const char *s, const char *end, const struct shape *shape)
{
	const char *at = s;

	for (const char *g = shape->groups; *g != '\0'; g++) {
		if (g != shape->groups && (at == end || *at++ != shape->between))
			return 0;
		for (size_t i = 0; i < digits_of(*g); i++)
			if (at == end || !isxdigit((unsigned char)*at++))
				return 0;
	}
	if (at < end && (isalnum((unsigned char)*at) || *at == shape->between))
		return 0;
	return (size_t)(at - s);
}

/* enx001122334455, rocex0011223344556677: names that the kernel makes of an address. */
static size_t match_name(const char *text, const char *s, const char *end)
{
	size_t n = 0;

	if (s < text + 2 || s[-1] != 'x' || !islower((unsigned char)s[-2]))
		return 0;
	while (s + n < end && isxdigit((unsigned char)s[n]))
		n++;
	return n == 12 || n == 16 ? n : 0;
}

/* Identifiers of machines and containers: runs of 32 or 64 digits. */
static size_t match_run(const char *s, const char *end)
{
	size_t n = 0;

	while (s + n < end && isxdigit((unsigned char)s[n]))
		n++;
	if (s + n < end && isalnum((unsigned char)s[n]))
		return 0;
	return n == 32 || n == 64 ? n : 0;
}

/* The number of an identifier, without regard to its case. */
static uint32_t number_of(struct mr_capture *c, const char *s, size_t n)
{
	char id[ID_BYTES] = "";
	size_t used = 0;

	for (size_t i = 0; i < n && used + 1 < sizeof(id); i++)
		if (isxdigit((unsigned char)s[i]))
			id[used++] = (char)tolower((unsigned char)s[i]);
	for (uint32_t i = 0; i < c->ids_count; i++)
		if (memcmp(c->ids[i], id, sizeof(id)) == 0)
			return i + 1;
	if (c->ids_count == IDS_MAX)
		return 0;
	memcpy(c->ids[c->ids_count], id, sizeof(id));
	return ++c->ids_count;
}

/* Overwrites n characters; every replacement is as long as what it replaces. */
static void replace(struct mr_capture *c, char *s, size_t n, const struct shape *shape)
{
	uint32_t number = number_of(c, s, n);
	char text[96];

	if (shape != NULL)
		snprintf(text, sizeof(text), shape->to, number >> 8 & 0xff, number & 0xff);
	else
		snprintf(text, sizeof(text), "%0*x", (int)n, number);
	memcpy(s, text, n);
}

void mr_capture_scrub(struct mr_capture *c, char *text, size_t bytes)
{
	char *end = text + bytes;

	for (char *s = text; s < end; s++) {
		bool starts = s == text || !isalnum((unsigned char)s[-1]);
		size_t n = match_name(text, s, end);

		if (n == 0 && starts)
			n = match_run(s, end);
		if (n > 0) {
			replace(c, s, n, NULL);
			s += n - 1;
			continue;
		}
		for (size_t k = 0; starts && k < MR_ARRAY_LEN(shapes); k++) {
			n = match(s, end, &shapes[k]);
			if (n == 0)
				continue;
			replace(c, s, n, &shapes[k]);
			s += n - 1;
			break;
		}
	}
}

/* The serial number in a configuration space: eight bytes behind its capability's header. */
static void scrub_config(char *data, size_t bytes)
{
	uint32_t at = CONFIG_EXTENDED;

	for (uint32_t tries = 0; tries < 64 && at >= CONFIG_EXTENDED && at + 12 <= bytes; tries++) {
		uint32_t head;

		memcpy(&head, data + at, sizeof(head));
		if ((head & 0xffff) == DSN_CAP)
			memset(data + at + 4, 0, 8);
		at = head >> 20 & 0xffc;
	}
}

static bool is_config(const char *path)
{
	size_t n = strlen(path);

	return n > 7 && strcmp(path + n - 7, "/config") == 0;
}

static int put(struct archive *a, struct archive_entry *e, const char *path, const void *data,
	size_t bytes)
{
	archive_entry_set_pathname(e, path);
	archive_entry_set_size(e, (la_int64_t)bytes);
	archive_entry_set_perm(e, archive_entry_filetype(e) == AE_IFDIR ? 0755 : 0644);
	if (archive_write_header(a, e) != ARCHIVE_OK)
		return -EIO;
	if (bytes > 0 && archive_write_data(a, data, bytes) != (la_ssize_t)bytes)
		return -EIO;
	return 0;
}

static int write_entry(struct archive *a, const struct entry *e)
{
	struct archive_entry *entry = archive_entry_new();
	char target[MR_ROOT_PATH_MAX + 1];
	int rc = -ENOMEM;

	if (entry == NULL)
		return rc;
	switch (e->seen) {
	case MR_ROOT_SEEN_FOLDER:
		archive_entry_set_filetype(entry, AE_IFDIR);
		rc = put(a, entry, e->path, "", 0);
		break;
	case MR_ROOT_SEEN_LINK:
		snprintf(target, sizeof(target), "/%s", e->data);
		archive_entry_set_filetype(entry, AE_IFLNK);
		archive_entry_set_symlink(entry, target);
		rc = put(a, entry, e->path, "", 0);
		break;
	default:
		archive_entry_set_filetype(entry, AE_IFREG);
		rc = put(a, entry, e->path, e->data, e->seen == MR_ROOT_SEEN_FILE ? e->bytes : 0);
	}
	archive_entry_free(entry);
	return rc;
}

/* A name through links becomes the one that they lead to, as nothing can lie below a link. */
static int resolve(struct mr_capture *c, struct entry *e)
{
	for (uint32_t tries = 0; tries < 8; tries++) {
		bool found = false;

		for (uint32_t i = 0; i < c->count && !found; i++) {
			const struct entry *link = &c->entries[i];
			size_t n = strlen(link->path);
			char *path;

			if (link->seen != MR_ROOT_SEEN_LINK || link == e ||
				strncmp(e->path, link->path, n) != 0 || e->path[n] != '/')
				continue;
			if (asprintf(&path, "%s%s", link->data, e->path + n) < 0)
				return -ENOMEM;
			free(e->path);
			e->path = path;
			found = true;
		}
		if (!found)
			break;
	}
	return 0;
}

/* By path; of several with one path the one that says most comes first. */
static int compare(const void *a, const void *b)
{
	static const uint8_t rank[] = {[MR_ROOT_SEEN_FILE] = 0,
		[MR_ROOT_SEEN_LINK] = 1,
		[MR_ROOT_SEEN_FOLDER] = 2,
		[MR_ROOT_SEEN_OPEN] = 3,
		[MR_ROOT_SEEN_DENIED] = 4,
		[MR_ROOT_SEEN_ENTRY] = 5};
	const struct entry *x = a, *y = b;
	int d = strcmp(x->path, y->path);

	return d != 0 ? d : (int)rank[x->seen] - (int)rank[y->seen];
}

static bool has_below(const struct mr_capture *c, const char *path)
{
	size_t n = strlen(path);

	for (uint32_t i = 0; i < c->count; i++)
		if (strncmp(c->entries[i].path, path, n) == 0 && c->entries[i].path[n] == '/')
			return true;
	return false;
}

static int write_denied(struct mr_capture *c)
{
	size_t bytes = 0;
	char *text;
	FILE *f = open_memstream(&text, &bytes);

	if (f == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->count; i++)
		if (c->entries[i].seen == MR_ROOT_SEEN_DENIED)
			fprintf(f, "%s %s\n", c->entries[i].data, c->entries[i].path);
	fclose(f);
	record(c, MR_ROOT_SEEN_FILE, "millrace/denied", text, bytes);
	free(text);
	return c->failed ? -ENOMEM : 0;
}

/* Names first, since what was denied is told by the names that the reader asks for. */
static int prepare(struct mr_capture *c)
{
	int rc = write_denied(c);
	uint32_t count = c->count;

	/* What a link leads to is there, whatever was read of it. */
	for (uint32_t i = 0; i < count; i++)
		if (c->entries[i].seen == MR_ROOT_SEEN_LINK)
			record(c, MR_ROOT_SEEN_FOLDER, c->entries[i].data, "", 0);
	if (c->failed)
		return -ENOMEM;
	for (uint32_t i = 0; rc == 0 && i < c->count; i++)
		rc = resolve(c, &c->entries[i]);
	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < c->count; i++) {
		struct entry *e = &c->entries[i];

		mr_capture_scrub(c, e->path, strlen(e->path));
		if (is_config(e->path))
			scrub_config(e->data, e->bytes);
		else
			mr_capture_scrub(c, e->data, e->bytes);
	}
	qsort(c->entries, c->count, sizeof(*c->entries), compare);
	return 0;
}

static int write_all(struct mr_capture *c, struct archive *a)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < c->count; i++) {
		const struct entry *e = &c->entries[i];

		if (e->path[0] == '\0' || (i > 0 && strcmp(e->path, c->entries[i - 1].path) == 0))
			continue;
		if (e->seen == MR_ROOT_SEEN_ENTRY && has_below(c, e->path))
			continue;
		rc = write_entry(a, e);
	}
	return rc;
}

static int write_archive(struct mr_capture *c, int fd)
{
	struct archive *a = archive_write_new();
	int rc;

	if (a == NULL)
		return -ENOMEM;
	archive_write_set_format_pax_restricted(a);
	rc = archive_write_open_fd(a, fd) == ARCHIVE_OK ? write_all(c, a) : -EIO;
	if (rc == 0 && archive_write_close(a) != ARCHIVE_OK)
		rc = -EIO;
	if (rc != 0 && archive_errno(a) > 0)
		rc = -archive_errno(a);
	archive_write_free(a);
	return rc;
}

/* A file is replaced when the new one is whole; a pipe or a device is written as it is. */
/* A file that is there and is no archive, such as a configuration that was named by mistake. */
static bool is_other(const char *file)
{
	char head[TAR_MAGIC_AT + sizeof(TAR_MAGIC) - 1];
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, head, sizeof(head)) : 0;

	if (fd >= 0)
		close(fd);
	return n > 0 &&
		(n < (ssize_t)sizeof(head) ||
			memcmp(head + TAR_MAGIC_AT, TAR_MAGIC, sizeof(TAR_MAGIC) - 1) != 0);
}

int mr_capture_write(struct mr_capture *c, const char *file, struct mr_err *err)
{
	struct stat st;
	bool replaces = lstat(file, &st) != 0 || S_ISREG(st.st_mode);
	char part[PATH_MAX];
	int fd, rc = prepare(c);

	if (rc != 0)
		return mr_err_set(err, rc, "out of memory while '%s' was put together", file);
	if (snprintf(part, sizeof(part), replaces ? "%s.%d.part" : "%s", file, getpid()) >=
		(int)sizeof(part))
		return mr_err_set(
			err, -ENAMETOOLONG, "cannot write '%s': the name is too long", file);
	if (replaces && is_other(file))
		return mr_err_set(err, -EEXIST,
			"cannot write '%s': what is there is no capture; remove it or take another "
			"name",
			file);
	/* A pipe that nobody reads is an error rather than a wait. */
	fd = open(
		part, O_WRONLY | O_CLOEXEC | O_NONBLOCK | (replaces ? O_CREAT | O_TRUNC : 0), 0666);
	if (fd < 0)
		return mr_err_set(err, -errno, "cannot write '%s': %s", file, strerror(errno));
	fcntl(fd, F_SETFL, O_WRONLY);
	rc = write_archive(c, fd);
	if (close(fd) != 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && replaces && rename(part, file) != 0)
		rc = -errno;
	if (rc != 0 && replaces)
		unlink(part);
	return rc == 0 ? 0 : mr_err_set(err, rc, "cannot write '%s': %s", file, strerror(-rc));
}
