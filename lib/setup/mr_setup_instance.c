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
#include <sys/statvfs.h>
#include <unistd.h>

#define LOCK_NAME "instance"

/* What EAL keeps for each page of memory that it knows (struct rte_memseg, and a bit). */
#define PAGE_BYTES 49u
#define EAL_BYTES (512u << 10) /* its other files */
#define EAL_FILES 8u
#define ELSEWHERE "; RUNTIME_DIRECTORY=FOLDER in the environment names another place"

static int make_folder(const char *dir, const char *name, struct mr_err *err)
{
	struct stat there;
	int rc = mkdir(dir, 0700) == 0 ? 0 : errno;

	/* Of a link to nothing, mkdir says that it exists, and open that it does not. */
	if (rc == EEXIST && lstat(dir, &there) == 0 && S_ISLNK(there.st_mode) &&
		stat(dir, &there) != 0)
		rc = errno;
	if (rc == 0 || rc == EEXIST)
		return 0;
	return mr_err_set(err, -rc,
		"the runtime directory '%s' of instance '%s' cannot be made: %s" ELSEWHERE, dir,
		name, strerror(rc));
}

/* EAL does not look whether its files have room, and dies of SIGBUS where they have not. */
static int check_room(const struct mr_setup *s, struct mr_err *err)
{
	const struct mr_plan *p = s->plan;
	uint64_t pages = (p->eal_memory_mib << 20) / 4096 +
		(p->direct_bytes + p->pinned_bytes) / MR_REGION_PAGE;
	uint64_t need = EAL_BYTES + pages * PAGE_BYTES;
	struct statvfs fs;

	/* With hugepages it keeps none. */
	if (p->hugepages || statvfs(s->dir, &fs) != 0)
		return 0;
	if (fs.f_blocks != 0 && (uint64_t)fs.f_bavail * fs.f_frsize < need)
		return mr_err_set(err, -ENOSPC,
			"the runtime directory '%s' has room for %llu KiB, and DPDK needs "
			"%llu" ELSEWHERE,
			s->dir, (unsigned long long)fs.f_bavail * fs.f_frsize >> 10,
			(unsigned long long)need >> 10);
	if (fs.f_files != 0 && fs.f_favail < EAL_FILES)
		return mr_err_set(err, -ENOSPC,
			"the runtime directory '%s' has room for %llu files, and DPDK needs "
			"%u" ELSEWHERE,
			s->dir, (unsigned long long)fs.f_favail, EAL_FILES);
	return 0;
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
			return check_room(s, err);
		close(s->lock_fd);
		s->lock_fd = -1;
		if (rc < 0)
			return rc;
	}
}

/*
 * EAL leaves about a megabyte for every name. While the lock is held all of it is this
 * process's own, unless somebody removed the directory and another instance made it again;
 * files of others keep the directory.
 */
void mr_setup_instance_down(struct mr_setup *s)
{
	static const char *const files[] = {"fbarray_memzone", "fbarray_nohugemem",
		"dpdk_telemetry.v2", "mp_socket", "config", LOCK_NAME};
	char path[sizeof(s->dir) + sizeof("/" LOCK_NAME)];
	int fd = -1;

	if (s->lock_fd < 0)
		return;
	snprintf(path, sizeof(path), "%s/" LOCK_NAME, s->dir);
	if (is_there(s->lock_fd, path))
		fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; fd >= 0 && i < MR_ARRAY_LEN(files); i++)
		(void)unlinkat(fd, files[i], 0);
	if (fd >= 0) {
		close(fd);
		(void)rmdir(s->dir);
	}
	close(s->lock_fd);
	s->lock_fd = -1;
}
