/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_call.h"

#include "mr_base.h"

#include <unistd.h>

static _Thread_local struct mr_gpu_call *followed;

void mr_gpu_call_init(struct mr_gpu_call *c)
{
	pthread_mutex_init(&c->lock, NULL);
	c->name = NULL;
	c->abandoned = false;
}

void mr_gpu_call_fini(struct mr_gpu_call *c)
{
	pthread_mutex_destroy(&c->lock);
}

void mr_gpu_call_follow(struct mr_gpu_call *c)
{
	followed = c;
}

const char *mr_gpu_call_name(struct mr_gpu_call *c, uint64_t *ret_since_ns)
{
	const char *name;

	pthread_mutex_lock(&c->lock);
	name = c->name;
	*ret_since_ns = c->since_ns;
	pthread_mutex_unlock(&c->lock);
	return name;
}

bool mr_gpu_call_abandon(struct mr_gpu_call *c, uint64_t since_ns)
{
	pthread_mutex_lock(&c->lock);
	c->abandoned |= c->name != NULL && c->since_ns == since_ns;
	pthread_mutex_unlock(&c->lock);
	return c->abandoned;
}

/* An abandoned call keeps its name. */
static void note(const char *name)
{
	bool abandoned;

	if (followed == NULL)
		return;
	pthread_mutex_lock(&followed->lock);
	abandoned = followed->abandoned;
	if (!abandoned) {
		followed->name = name;
		followed->since_ns = mr_clock_ns();
	}
	pthread_mutex_unlock(&followed->lock);
	while (abandoned)
		pause();
}

void mr_gpu_call_entered(const char *name)
{
	note(name);
}

mr_cu_result mr_gpu_call_left(mr_cu_result r)
{
	note(NULL);
	return r;
}
