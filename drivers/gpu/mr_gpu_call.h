/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_gpu_call - which driver call a thread is in, so that it can be left there.
 *
 * On a lost device a call of the driver may block for ever, and nothing ends it but
 * the process. Such calls are made on a thread of their own; somebody else waits, for
 * as long as it can wait, and then leaves the thread behind:
 *
 *     the thread   follow(c) ─► entered ─► the driver ─► left ─► entered ─► ...
 *     who waits                 name(c)        abandon(c)
 *
 * Should an abandoned call return after all, its thread stops there: what it would do
 * next, it would do with memory that may be gone.
 *
 * Thread   entered and left are the thread's own; name and abandon are anybody's.
 * Owner    the caller; what was abandoned must stay for ever.
 */
#ifndef MR_GPU_CALL_H
#define MR_GPU_CALL_H

#include "mr_cuda_api.h"

#include <pthread.h>
#include <stdbool.h>

struct mr_gpu_call {
	pthread_mutex_t lock;
	const char *name;  /* of the call that the thread is in, or NULL */
	uint64_t since_ns; /* when it began */
	bool abandoned;
};

void mr_gpu_call_init(struct mr_gpu_call *c);
void mr_gpu_call_fini(struct mr_gpu_call *c);

/* From here on this thread's calls are noted in c; NULL: no more. */
void mr_gpu_call_follow(struct mr_gpu_call *c);

/*
 * The call that the thread is in, by a name that lives for ever, and when it began, which
 * tells one call from the next; NULL: the thread is not in the driver.
 */
const char *mr_gpu_call_name(struct mr_gpu_call *c, uint64_t *ret_since_ns);

/*
 * Leaves the thread in the call that began at since_ns: nothing that it did not own before
 * may be expected of it. False: it has gone on, and nothing has changed.
 */
bool mr_gpu_call_abandon(struct mr_gpu_call *c, uint64_t since_ns);

/* Around every call of the driver; left passes the result through. */
void mr_gpu_call_entered(const char *name);
mr_cu_result mr_gpu_call_left(mr_cu_result r);

/* One call of the table of a device, named by its function. */
#define MR_GPU_CALL(api, function, ...)                                                            \
	(mr_gpu_call_entered(#function), mr_gpu_call_left((api)->function(__VA_ARGS__)))

#endif
