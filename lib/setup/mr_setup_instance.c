/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One instance of a name at a time, by a lock in the runtime directory that EAL uses
 * too. It ends with the process, however that ends; the file alone says nothing.
 */
#include "mr_setup_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME "instance"

static int make_folder(const char *dir, const char *name, struct mr_err *err)
{
	if (mkdir(dir, 0700) == 0 || errno == EEXIST)
		return 0;
	return mr_err_set(err, -errno,
		"the runtime directory '%s' of instance '%s' cannot be made: %s", dir, name,
		strerror(errno));
}

static int already(int fd, const char *name, struct mr_err *err)
{
	struct flock holder = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char pid[32] = "";

	if (fcntl(fd, F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK && holder.l_pid > 0)
		snprintf(pid, sizeof(pid), " (pid %ld)", (long)holder.l_pid);
	return mr_err_set(err, -EALREADY,
		"instance '%s' is already running%s; stop it, or give this one a name of its own "
		"with --name",
		name, pid);
}

/* Whether the lock is on the file that others will find, and not on one that was removed. */
static bool is_there(int fd, const char *path)
{
	struct stat mine, there;

	return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_dev == there.st_dev &&
		mine.st_ino == there.st_ino;
}

int mr_setup_instance_up(struct mr_setup *s, struct mr_err *err)
{
	const char *name = s->plan->name;
	char path[MR_REPORT_DIR_MAX + sizeof("/" LOCK_NAME)];
	char *end;
	int rc = mr_report_dir(name, s->dir, err);

	if (rc < 0)
		return rc;
	end = strrchr(s->dir, '/');
	*end = '\0';
	rc = make_folder(s->dir, name, err);
	*end = '/';
	if (rc == 0)
		rc = make_folder(s->dir, name, err);
	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "%s/" LOCK_NAME, s->dir);
	for (;;) {
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

		s->lock_fd =
			open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
		if (s->lock_fd < 0 && errno == ENOENT) {
			/* One that ended just now took the folder with it. */
			rc = make_folder(s->dir, name, err);
			if (rc < 0)
				return rc;
			continue;
		}
		if (s->lock_fd < 0)
			return mr_err_set(err, -errno, "instance '%s': '%s': %s", name, path,
				strerror(errno));
		if (fcntl(s->lock_fd, F_SETLK, &lock) != 0)
			rc = errno == EACCES || errno == EAGAIN
				? already(s->lock_fd, name, err)
				: mr_err_set(err, -errno, "instance '%s': lock on '%s': %s", name,
					  path, strerror(errno));
		if (rc == 0 && is_there(s->lock_fd, path))
			return 0;
		close(s->lock_fd);
		s->lock_fd = -1;
		if (rc < 0)
			return rc;
	}
}

/*
 * EAL leaves about a megabyte for every name. While the lock is held all of it is this
 * process's own; files of others keep the directory.
 */
void mr_setup_instance_down(struct mr_setup *s)
{
	static const char *const files[] = {"fbarray_memzone", "fbarray_nohugemem",
		"dpdk_telemetry.v2", "mp_socket", "config", LOCK_NAME};
	int fd;

	if (s->lock_fd < 0)
		return;
	fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; fd >= 0 && i < MR_ARRAY_LEN(files); i++)
		(void)unlinkat(fd, files[i], 0);
	if (fd >= 0)
		close(fd);
	(void)rmdir(s->dir);
	close(s->lock_fd);
	s->lock_fd = -1;
}
