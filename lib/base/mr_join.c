/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mr_join.h"

#include "mr_base.h"

#include <unistd.h>

#define POLL_US 200u

/* pthread_clockjoin_np would do, but ThreadSanitizer does not know it for a join. */
bool mr_join(pthread_t thread, uint32_t seconds)
{
	uint64_t until = mr_clock_ns() + seconds * 1000000000ull;

	while (pthread_tryjoin_np(thread, NULL) != 0) {
		if (mr_clock_ns() >= until)
			return false;
		usleep(POLL_US);
	}
	return true;
}
