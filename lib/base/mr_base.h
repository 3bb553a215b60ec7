/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_base - the few words every module of the host uses.
 *
 * Nothing here allocates, prints or keeps state. mr_clock_ns() may be called
 * from any thread; it reads CLOCK_MONOTONIC and does not count suspend time.
 */
#ifndef MR_BASE_H
#define MR_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define MR_MUST_USE __attribute__((warn_unused_result))
#define MR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define MR_LIKELY(x) __builtin_expect(!!(x), 1)
#define MR_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define MR_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MR_CACHE_LINE 64
#define MR_CACHE_ALIGNED __attribute__((aligned(MR_CACHE_LINE)))

/* Longest name of a device, port, lane, stage or instance, terminator included. */
#define MR_NAME_MAX 32

#define MR_ALIGN_UP(x, a) (((x) + (a)-1) / (a) * (a))

static inline uint64_t mr_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
