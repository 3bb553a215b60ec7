/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE 1
#include "mr_root_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DENIED_BYTES_MAX (1u << 20)
#define OPEN_TRIES 16u
#define PARTIAL "millrace/partial"

int mr_root_openat(int fd, const char *path, int flags, uint32_t mode, bool may_follow)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
		.mode = mode,
		.resolve = may_follow ? RESOLVE_IN_ROOT : RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
	long got = -1;

	/* EAGAIN: something was renamed meanwhile, so a path was not safe to follow. */
	for (uint32_t tries = 0; tries < OPEN_TRIES && got < 0; tries++) {
		got = syscall(SYS_openat2, fd, path, &how, sizeof(how));
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			break;
	}
	return got < 0 ? -errno : (int)got;
}

/* Some sandboxes know no openat2; below "/" itself an ordinary open means the same. */
static int open_below(const struct mr_root *r, const char *path, int flags)
{
	int fd = mr_root_openat(r->fd, *path != '\0' ? path : ".", flags, 0, true);

	if ((fd == -ENOSYS || fd == -EPERM) && r->live) {
		fd = openat(r->fd, *path != '\0' ? path : ".", flags | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	}
	if (fd == -ENOENT && r->partial)
		return -ENODATA;
	return fd == -EPERM ? -EACCES : fd;
}

static void seen(
	struct mr_root *r, enum mr_root_seen what, const char *path, const void *data, size_t bytes)
{
	char full[MR_ROOT_PATH_MAX];

	if (r->recorder == NULL)
		return;
	if (r->recorded_below == NULL)
		r->recorder(r->recorder_ctx, what, path, data, bytes);
	else if (snprintf(full, sizeof(full), "%s%s", r->recorded_below, path) < (int)sizeof(full))
		r->recorder(r->recorder_ctx, what, full, data, bytes);
}

static bool is_denied(const struct mr_root *r, const char *path, char how)
{
	size_t n = strlen(path);

	for (const char *s = r->denied; s != NULL && *s != '\0';) {
		const char *end = strchrnul(s, '\n');

		if ((size_t)(end - s) == n + 2 && s[0] == how && s[1] == ' ' &&
			memcmp(s + 2, path, n) == 0)
			return true;
		s = *end == '\0' ? end : end + 1;
	}
	return false;
}

/* The type is looked at before the file is opened: opening a device can do things. */
static int open_regular(struct mr_root *r, const char *path)
{
	struct stat st;
	int fd;

	if (is_denied(r, path, 'r'))
		return -EACCES;
	fd = open_below(r, path, O_PATH);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EISDIR;
	}
	close(fd);
	return open_below(r, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

/* Fills the buffer but for one byte; 0, -EFBIG where there was more, or -errno. */
static int read_all(int fd, char *buf, size_t bytes, size_t *ret_bytes)
{
	size_t have = 0;
	ssize_t got;
	char more;

	while (have < bytes - 1) {
		got = read(fd, buf + have, bytes - 1 - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	buf[have] = '\0';
	*ret_bytes = have;
	if (have < bytes - 1)
		return got < 0 ? -errno : 0;
	return read(fd, &more, 1) == 1 ? -EFBIG : 0;
}

int mr_root_read(struct mr_root *r, const char *path, void *buf, size_t bytes, size_t *ret_bytes)
{
	size_t have = 0;
	int fd = open_regular(r, path);
	int rc = fd;

	((char *)buf)[0] = '\0';
	if (fd >= 0) {
		rc = read_all(fd, buf, bytes, &have);
		close(fd);
	}
	if (rc == 0 || rc == -EFBIG)
		seen(r, MR_ROOT_SEEN_FILE, path, buf, have);
	else if (rc == -EACCES || rc == -EPERM)
		seen(r, MR_ROOT_SEEN_DENIED, path, "r", 1);
	else if (fd >= 0) /* there, and not to be read now: as good as empty */
		seen(r, MR_ROOT_SEEN_FILE, path, "", 0);
	if (ret_bytes != NULL)
		*ret_bytes = have;
	return rc;
}

int mr_root_open_stream(struct mr_root *r, const char *path)
{
	if (r->live && strcmp(path, "dev/kmsg") == 0)
		return open_below(r, path, O_RDONLY | O_NONBLOCK);
	return open_regular(r, path);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(struct mr_root_names *names, uint32_t *room, const char *name)
{
	if (names->count == *room) {
		uint32_t more = *room == 0 ? 64 : *room * 2;
		char **grown = realloc(names->name, more * sizeof(*grown));

		if (grown == NULL)
			return -ENOMEM;
		names->name = grown;
		*room = more;
	}
	names->name[names->count] = strdup(name);
	if (names->name[names->count] == NULL)
		return -ENOMEM;
	names->count++;
	return 0;
}

static void tell_entry(struct mr_root *r, const char *path, const struct dirent *e)
{
	char full[MR_ROOT_PATH_MAX];

	if (r->recorder != NULL &&
		snprintf(full, sizeof(full), "%s/%s", path, e->d_name) < (int)sizeof(full))
		seen(r, e->d_type == DT_DIR ? MR_ROOT_SEEN_FOLDER : MR_ROOT_SEEN_ENTRY, full, "",
			0);
}

int mr_root_list(struct mr_root *r, const char *path, struct mr_root_names *ret_names)
{
	uint32_t room = 0;
	struct dirent *e;
	DIR *dir;
	int fd, rc = 0;

	memset(ret_names, 0, sizeof(*ret_names));
	fd = is_denied(r, path, 'r') ? -EACCES : open_below(r, path, O_RDONLY | O_DIRECTORY);
	if (fd == -EACCES)
		seen(r, MR_ROOT_SEEN_DENIED, path, "r", 1);
	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (dir == NULL) {
		close(fd);
		return -ENOMEM;
	}
	seen(r, MR_ROOT_SEEN_FOLDER, path, "", 0);
	while (rc == 0 && ret_names->count < MR_ROOT_NAMES_MAX && (e = readdir(dir)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		rc = add_name(ret_names, &room, e->d_name);
		if (rc == 0)
			tell_entry(r, path, e);
	}
	closedir(dir);
	if (rc != 0)
		mr_root_names_free(ret_names);
	else if (ret_names->count > 1)
		qsort(ret_names->name, ret_names->count, sizeof(*ret_names->name), compare_names);
	return rc;
}

void mr_root_names_free(struct mr_root_names *names)
{
	for (uint32_t i = 0; i < names->count; i++)
		free(names->name[i]);
	free(names->name);
	memset(names, 0, sizeof(*names));
}

/* Where a descriptor's file lies; the kernel has resolved every link. */
static int path_of(int fd, char ret_path[MR_ROOT_PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret_path, MR_ROOT_PATH_MAX);
	if (n < 0)
		return -errno;
	if (n == (ssize_t)MR_ROOT_PATH_MAX)
		return -ENAMETOOLONG;
	ret_path[n] = '\0';
	return 0;
}

int mr_root_real(struct mr_root *r, const char *path, char ret_path[MR_ROOT_PATH_MAX])
{
	size_t n = strlen(r->path);
	int fd = open_below(r, path, O_PATH);
	int rc;

	if (fd < 0)
		return fd;
	rc = path_of(fd, ret_path);
	close(fd);
	if (rc != 0)
		return rc;
	if (strncmp(ret_path, r->path, n) != 0 || ret_path[n] != '/')
		return -EXDEV;
	memmove(ret_path, ret_path + n + 1, strlen(ret_path + n + 1) + 1);
	if (strcmp(ret_path, path) != 0)
		seen(r, MR_ROOT_SEEN_LINK, path, ret_path, strlen(ret_path));
	return 0;
}

int mr_root_may(struct mr_root *r, const char *path, int mode)
{
	int fd = open_below(r, path, O_PATH);
	int rc = 0;

	if (fd < 0)
		return fd;
	if (r->live) {
		/* faccessat on a descriptor of O_PATH needs Linux 5.8; older ones say EINVAL. */
		if (syscall(SYS_faccessat2, fd, "", mode, AT_EMPTY_PATH | AT_EACCESS) != 0)
			rc = -errno;
	} else if (((mode & R_OK) != 0 && is_denied(r, path, 'r')) ||
		((mode & W_OK) != 0 && is_denied(r, path, 'w'))) {
		rc = -EACCES;
	}
	close(fd);
	seen(r, rc == 0 ? MR_ROOT_SEEN_OPEN : MR_ROOT_SEEN_DENIED, path,
		(mode & W_OK) != 0 ? "w" : "r", 1);
	return rc;
}

int mr_root_mode(struct mr_root *r, const char *path, uint32_t *ret_mode)
{
	struct stat st;
	int fd = open_below(r, path, O_PATH);

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) != 0) {
		close(fd);
		return -EIO;
	}
	close(fd);
	*ret_mode = st.st_mode;
	seen(r, S_ISDIR(st.st_mode) ? MR_ROOT_SEEN_FOLDER : MR_ROOT_SEEN_ENTRY, path, "", 0);
	return 0;
}

/* An archive often holds one folder that holds the machine. */
static void enter_only_folder(struct mr_root *r)
{
	struct mr_root_names names;
	int fd;

	if (mr_root_list(r, "", &names) != 0)
		return;
	fd = names.count == 1 && strcmp(names.name[0], "sys") != 0 &&
			strcmp(names.name[0], "proc") != 0
		? mr_root_openat(r->fd, names.name[0], O_RDONLY | O_DIRECTORY, 0, false)
		: -ENOENT;
	if (fd >= 0) {
		close(r->fd);
		r->fd = fd;
	}
	mr_root_names_free(&names);
}

static int open_folder(struct mr_root *r, const char *path, struct mr_err *err)
{
	const char *folder = path;
	struct stat st;
	int rc;

	if (stat(path, &st) != 0)
		return mr_err_set(err, -errno, "cannot open root '%s': %s", path, strerror(errno));
	if (S_ISREG(st.st_mode)) {
		rc = mr_root_unpack(path, r->unpacked, err);
		if (rc != 0)
			return rc;
		folder = r->unpacked;
	} else if (!S_ISDIR(st.st_mode)) {
		return mr_err_set(
			err, -ENOTDIR, "root '%s' is neither a folder nor an archive", path);
	}
	r->fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->fd < 0)
		return mr_err_set(err, -errno, "cannot open root '%s': %s", path, strerror(errno));
	if (r->unpacked[0] != '\0')
		enter_only_folder(r);
	return 0;
}

int mr_root_open(struct mr_root *r, const char *path, struct mr_err *err)
{
	uint32_t mode;
	int rc;

	memset(r, 0, sizeof(*r));
	r->fd = -1;
	rc = open_folder(r, path, err);
	if (rc == 0 && strcmp(path, "/") != 0) {
		rc = path_of(r->fd, r->path);
		if (rc != 0)
			mr_err_set(err, rc, "cannot find root '%s' in /proc: %s; is /proc mounted?",
				path, strerror(-rc));
	}
	if (rc != 0) {
		mr_root_close(r);
		return rc;
	}
	if (strcmp(r->path, "/") == 0 || strcmp(path, "/") == 0) {
		r->path[0] = '\0';
		r->live = true;
		return 0;
	}
	r->denied = malloc(DENIED_BYTES_MAX);
	if (r->denied == NULL) {
		mr_root_close(r);
		return mr_err_set(err, -ENOMEM, "out of memory while opening root '%s'", path);
	}
	if (mr_root_read(r, "millrace/denied", r->denied, DENIED_BYTES_MAX, NULL) != 0) {
		r->denied[0] = '\0';
		r->partial = r->unpacked[0] != '\0';
	}
	r->partial |= mr_root_mode(r, PARTIAL, &mode) == 0;
	return 0;
}

void mr_root_close(struct mr_root *r)
{
	if (r->fd >= 0)
		close(r->fd);
	if (r->unpacked[0] != '\0')
		mr_root_remove(r->unpacked);
	free(r->denied);
	memset(r, 0, sizeof(*r));
	r->fd = -1;
}
