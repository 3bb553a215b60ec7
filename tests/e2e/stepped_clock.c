/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stepped_clock - the time of day of one process, stepped by another.
 *
 * To be preloaded. The file that STEPPED_CLOCK names holds a signed 64-bit number of
 * seconds, which is added to what the process reads of CLOCK_REALTIME; it may change at any
 * moment. All other clocks are left alone, and so is what the kernel itself waits by.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t none, *step = &none;
static int (*real)(clockid_t, struct timespec *);

static __attribute__((constructor)) void find(void)
{
	const char *file = getenv("STEPPED_CLOCK");
	int fd = file != NULL ? open(file, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd >= 0 ? mmap(NULL, sizeof(*step), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	if (real == NULL || at == MAP_FAILED)
		abort();
	step = at;
	close(fd);
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc;

	if (real == NULL)
		find();
	rc = real(id, ts);
	if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ts->tv_sec += __atomic_load_n(step, __ATOMIC_RELAXED);
	return rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &ts) != 0)
		return -1;
	*tv = (struct timeval){.tv_sec = ts.tv_sec, .tv_usec = ts.tv_nsec / 1000};
	return 0;
}

time_t time(time_t *ret_now)
{
	struct timespec ts = {0};

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	if (ret_now != NULL)
		*ret_now = ts.tv_sec;
	return ts.tv_sec;
}
