/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

const char *mr_file_kind(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "a file";
	case S_IFDIR:
		return "a directory";
	case S_IFIFO:
		return "a pipe";
	case S_IFSOCK:
		return "a socket";
	default:
		return "a device";
	}
}

static int refuse(struct mr_err *err, mode_t mode)
{
	return mr_err_set(
		err, S_ISDIR(mode) ? -EISDIR : -EINVAL, "is %s, not a file", mr_file_kind(mode));
}

int mr_file_open(const char *path, int *ret_fd, struct mr_err *err)
{
	struct stat st;
	int fd;

	if (stat(path, &st) != 0)
		return mr_err_set(err, -errno, "cannot be read: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(err, st.st_mode);
	/* It may have been replaced since: neither wait for it nor trust what it was. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return mr_err_set(err, -errno, "cannot be read: %s", strerror(errno));
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return refuse(err, st.st_mode);
	}
	*ret_fd = fd;
	return 0;
}
