/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cudasim_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LATE_PAGE ((size_t)4096)
#define LATE_LINE ((size_t)64)

struct sim_late {
	int fd;        /* of the alias */
	uint8_t *nic;  /* the arena once more, where no guard closes it */
	uint8_t *seen; /* what both sides last agreed on */
};

/* Lines of a page that changed since they were seen last go to the other side. */
static void page_take(const uint8_t *from, uint8_t *to, uint8_t *seen)
{
	uint8_t line[LATE_LINE];

	if (memcmp(from, seen, LATE_PAGE) == 0)
		return;
	for (size_t at = 0; at < LATE_PAGE; at += LATE_LINE) {
		/* Once, since the other side may be writing beside it. */
		memcpy(line, from + at, sizeof(line));
		if (memcmp(line, seen + at, sizeof(line)) == 0)
			continue;
		memcpy(seen + at, line, sizeof(line));
		memcpy(to + at, line, sizeof(line));
	}
}

/* Only pages that the side has written to exist. */
static void take(struct sim_device *dev, int fd, const uint8_t *from, uint8_t *to)
{
	off_t end = 0, at;

	while ((at = lseek(fd, end, SEEK_DATA)) >= 0) {
		end = lseek(fd, at, SEEK_HOLE);
		for (; at < end; at += (off_t)LATE_PAGE)
			page_take(from + at, to + at, dev->late->seen + at);
	}
}

void mr_sim_late_flush(struct sim_device *dev)
{
	dev->flushes++;
	if (dev->late != NULL && !mr_sim_fault_has(&dev->options, SIM_FAULT_NOFLUSH))
		take(dev, dev->arena_fd, dev->late->nic, dev->arena_alias);
}

bool mr_sim_is_split(const struct sim_options *o)
{
	return o->alias &&
		(o->writes_ordering == MR_CU_WRITES_ORDERING_NONE ||
			mr_sim_fault_has(o, SIM_FAULT_HIDDENCOPY));
}

void mr_sim_late_hidden(struct sim_device *dev)
{
	if (dev->late != NULL && mr_sim_fault_has(&dev->options, SIM_FAULT_HIDDENCOPY))
		take(dev, dev->arena_fd, dev->late->nic, dev->arena_alias);
}

void mr_sim_late_publish(struct sim_device *dev)
{
	if (dev->late != NULL && !mr_sim_fault_has(&dev->options, SIM_FAULT_NOREAD))
		take(dev, dev->late->fd, dev->arena_alias, dev->late->nic);
}

void mr_sim_late_fence(void *arg)
{
	struct sim_device *dev = arg;

	pthread_mutex_lock(&dev->lock);
	mr_sim_late_publish(dev);
	pthread_mutex_unlock(&dev->lock);
}

void mr_sim_late_drop(struct sim_device *dev, size_t offset, size_t span)
{
	if (dev->late == NULL)
		return;
	(void)fallocate(dev->late->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		(off_t)span);
	(void)madvise(dev->late->seen + offset, span, MADV_DONTNEED);
}

int mr_sim_late_init(struct sim_device *dev)
{
	const size_t bytes = dev->options.mem_bytes;
	struct sim_late late = {.fd = memfd_create("mr-sim-late", MFD_CLOEXEC)};
	uint8_t *alias = NULL;
	int code;

	late.seen = MAP_FAILED;
	if (late.fd >= 0 && ftruncate(late.fd, (off_t)bytes) == 0) {
		late.nic = mr_sim_map_aligned(dev->arena_fd, bytes);
		alias = mr_sim_map_aligned(late.fd, bytes);
		late.seen = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	}
	if (late.nic != NULL && alias != NULL && late.seen != MAP_FAILED)
		dev->late = malloc(sizeof(late));
	if (dev->late != NULL) {
		*dev->late = late;
		dev->arena_alias = alias;
		return 0;
	}
	code = errno != 0 ? -errno : -ENOMEM;
	if (late.nic != NULL)
		munmap(late.nic, bytes);
	if (alias != NULL)
		munmap(alias, bytes);
	if (late.seen != MAP_FAILED)
		munmap(late.seen, bytes);
	if (late.fd >= 0)
		close(late.fd);
	return code;
}

void mr_sim_late_fini(struct sim_device *dev)
{
	if (dev->late == NULL)
		return;
	munmap(dev->late->nic, dev->options.mem_bytes);
	munmap(dev->late->seen, dev->options.mem_bytes);
	close(dev->late->fd);
	free(dev->late);
	dev->late = NULL;
}
