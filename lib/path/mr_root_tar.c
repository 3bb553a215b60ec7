/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE 1
#include "mr_root_priv.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A whole machine's sysfs is some ten thousand files of a few bytes. */
#define ENTRIES_MAX 100000u
#define BYTES_MAX (256u << 20)
#define DEPTH_MAX 64u /* sysfs with the deepest chain of bridges has half of it */
#define BLOCK_BYTES 16384u

/* What may still be made and read. An archive of a few bytes can ask for any number of both. */
struct budget {
	uint64_t bytes;
	uint32_t entries; /* files, links and folders, those above them too */
};

static bool take_entry(struct budget *left)
{
	if (left->entries == 0)
		return false;
	left->entries--;
	return true;
}

/* The caller keeps signals back while the folder is there, and one has come. */
static bool interrupted(void)
{
	sigset_t waiting, ours;

	if (sigpending(&waiting) != 0)
		return false;
	sigemptyset(&ours);
	return sigismember(&waiting, SIGINT) == 1 || sigismember(&waiting, SIGTERM) == 1 ||
		sigismember(&waiting, SIGHUP) == 1;
}

/* Makes the folders above path below fd and opens the last; name is what remains. */
static int open_parent(
	int fd, const char *path, char *work, struct budget *left, const char **ret_name)
{
	char *slash;
	uint32_t depth = 0;
	int parent;

	if (strlen(path) >= MR_ROOT_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(work, path, strlen(path) + 1);
	for (char *s = strchr(work, '/'); s != NULL; s = strchr(s + 1, '/')) {
		if (++depth > DEPTH_MAX)
			return -EFBIG;
		*s = '\0';
		parent = mr_root_openat(fd, work, O_PATH | O_DIRECTORY, 0, false);
		if (parent == -ENOENT) {
			/* Every folder above is there and no link, so this stays below fd. */
			if (!take_entry(left))
				return -EFBIG;
			if (mkdirat(fd, work, 0700) != 0)
				return -errno;
		} else if (parent < 0) {
			return parent;
		} else {
			close(parent);
		}
		*s = '/';
	}
	slash = strrchr(work, '/');
	*ret_name = slash == NULL ? work : slash + 1;
	if (slash == NULL)
		return mr_root_openat(fd, ".", O_PATH | O_DIRECTORY, 0, false);
	*slash = '\0';
	return mr_root_openat(fd, work, O_PATH | O_DIRECTORY, 0, false);
}

static int write_file(struct archive *a, int parent, const char *name)
{
	char block[BLOCK_BYTES];
	la_ssize_t got;
	int rc = 0;
	int fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	/* A name that came before: the first one stays. */
	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	while ((got = archive_read_data(a, block, sizeof(block))) > 0) {
		ssize_t done = write(fd, block, (size_t)got);

		if (done != got) {
			rc = done < 0 ? -errno : -ENOSPC;
			break;
		}
		if (interrupted()) {
			rc = -EINTR;
			break;
		}
	}
	close(fd);
	return got < 0 ? -EBADMSG : rc;
}

/* Names a path without "./" and "/" in front; "" for what has no place below the folder. */
static const char *inside(const char *path)
{
	while (path != NULL && (*path == '/' || (path[0] == '.' && path[1] == '/')))
		path++;
	return path == NULL || strcmp(path, ".") == 0 ? "" : path;
}

static int unpack_entry(struct archive *a, struct archive_entry *e, int fd, struct budget *left)
{
	char path[MR_ROOT_PATH_MAX];
	char work[MR_ROOT_PATH_MAX];
	const char *name = path;
	const char *to = archive_entry_symlink(e);
	mode_t type = archive_entry_filetype(e);
	int parent, rc = 0;
	size_t n;

	/* What is left out is read as well, so it counts too; a sparse file counts whole. */
	if (!take_entry(left) || archive_entry_size(e) < 0 ||
		(uint64_t)archive_entry_size(e) > left->bytes)
		return -EFBIG;
	left->bytes -= (uint64_t)archive_entry_size(e);
	if (snprintf(path, sizeof(path), "%s", inside(archive_entry_pathname(e))) >=
		(int)sizeof(path))
		return 0;
	n = strlen(path);
	while (n > 0 && path[n - 1] == '/')
		path[--n] = '\0';
	if (n == 0)
		return 0;
	parent = open_parent(fd, path, work, left, &name);
	if (parent == -EFBIG || parent == -ENOSPC)
		return parent;
	if (parent < 0)
		return 0; /* a path through a link or a file, or out of the folder */
	if (strcmp(name, "..") == 0 || strcmp(name, ".") == 0)
		rc = 0;
	else if (type == AE_IFREG && archive_entry_hardlink(e) == NULL)
		rc = write_file(a, parent, name);
	else if (type == AE_IFDIR)
		rc = mkdirat(parent, name, 0700) != 0 && errno == ENOSPC ? -ENOSPC : 0;
	else if (type == AE_IFLNK && to != NULL)
		rc = symlinkat(to, parent, name) != 0 && errno == ENOSPC ? -ENOSPC : 0;
	close(parent);
	return rc;
}

static int unpack_all(struct archive *a, int fd)
{
	struct budget left = {.bytes = BYTES_MAX, .entries = ENTRIES_MAX};
	struct archive_entry *e;
	int got;

	for (uint32_t n = 0;; n++) {
		int rc;

		if (interrupted())
			return -EINTR;
		got = archive_read_next_header(a, &e);
		if (got == ARCHIVE_EOF)
			return n > 0 ? 0 : -EBADMSG;
		if (got < ARCHIVE_WARN)
			return -EBADMSG;
		rc = unpack_entry(a, e, fd, &left);
		if (rc != 0)
			return rc;
	}
}

static int unpack_archive(const char *archive, int fd)
{
	struct archive *a = archive_read_new();
	int rc = -EBADMSG;

	if (a == NULL)
		return -ENOMEM;
	/* Only what is built in: other filters would start programs. */
	archive_read_support_filter_gzip(a);
	archive_read_support_filter_bzip2(a);
	archive_read_support_filter_xz(a);
	archive_read_support_filter_zstd(a);
	archive_read_support_format_tar(a);
	if (archive_read_open_filename(a, archive, BLOCK_BYTES) == ARCHIVE_OK)
		rc = unpack_all(a, fd);
	archive_read_free(a);
	return rc;
}

int mr_root_unpack(const char *file, char ret_folder[64], struct mr_err *err)
{
	bool hwloc = mr_root_is_hwloc(file);
	int fd, rc;

	snprintf(ret_folder, 64, "/tmp/millrace-root-%d-XXXXXX", getpid());
	if (mkdtemp(ret_folder) == NULL) {
		rc = -errno;
		ret_folder[0] = '\0';
		return mr_err_set(err, rc, "cannot make a folder in /tmp to unpack '%s': %s", file,
			strerror(-rc));
	}
	fd = open(ret_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		rc = -errno;
	else
		rc = hwloc ? mr_root_write_hwloc(file, fd) : unpack_archive(file, fd);
	if (fd >= 0)
		close(fd);
	if (rc == 0)
		return 0;
	mr_root_remove(ret_folder);
	ret_folder[0] = '\0';
	return mr_err_set(err, rc, "cannot unpack root '%s': %s", file,
		rc == -EBADMSG ? hwloc ? "hwloc cannot read it; export it with `lstopo FILE.xml`"
				       : "it is neither a tar archive nor an export of hwloc"
			: rc == -EFBIG ? "it holds more than a machine's facts"
			: rc == -EINTR ? "a signal came"
				       : strerror(-rc));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

void mr_root_remove(const char *folder)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
