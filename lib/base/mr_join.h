/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_join - the end of a thread, waited for by a clock that nobody sets. */
#ifndef MR_JOIN_H
#define MR_JOIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* mr_join waits for a thread, at most so many seconds; false: it goes on, and is not joined. */
bool mr_join(pthread_t thread, uint32_t seconds);

#endif
