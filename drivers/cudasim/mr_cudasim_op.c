/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cudasim_priv.h"

#include <stdlib.h>
#include <string.h>

/* What comes next of the streams that do not stand still; NULL: nothing. */
static struct sim_op *op_take(struct sim_device *dev)
{
	struct sim_op **link = &dev->ops, *op;

	for (; *link != NULL; link = &(*link)->next) {
		(*link)->stream->stalled |= (*link)->stalls;
		if (!(*link)->stream->stalled)
			break;
	}
	op = *link;
	if (op == NULL)
		return NULL;
	*link = op->next;
	if (*link == NULL)
		dev->ops_end = link;
	return op;
}

static void op_do(void *argument)
{
	const struct sim_op *op = argument;

	if (op->from != NULL)
		memmove(op->to, op->from, op->bytes);
	else
		__atomic_store_n((uint32_t *)(void *)op->to, op->value, __ATOMIC_RELEASE);
}

/* One after the other, as one copy engine would; not locked while it copies. */
static void *op_main(void *argument)
{
	struct sim_device *dev = argument;

	(void)pthread_setname_np(pthread_self(), "mr-sim-copy");
	pthread_mutex_lock(&dev->lock);
	while (!dev->closing) {
		struct sim_op *op = dev->sticky == MR_CUDA_SUCCESS ? op_take(dev) : NULL;
		bool there;

		if (op == NULL) {
			pthread_cond_wait(&dev->changed, &dev->lock);
			continue;
		}
		pthread_mutex_unlock(&dev->lock);
		there = mr_sim_bar_try(dev, op_do, op);
		pthread_mutex_lock(&dev->lock);
		if (!there)
			mr_sim_bus_lost(dev);
		mr_sim_late_publish(dev);
		op->stream->queued--;
		free(op);
		pthread_cond_broadcast(&dev->changed);
	}
	pthread_mutex_unlock(&dev->lock);
	return NULL;
}

mr_cu_result mr_sim_op_add(struct sim_device *dev, const struct sim_op *what)
{
	struct sim_op *op = malloc(sizeof(*op));

	if (op == NULL)
		return MR_CUDA_ERROR_OUT_OF_MEMORY;
	if (!dev->copy_thread_runs) {
		dev->ops_end = &dev->ops;
		if (mr_sim_thread_start(&dev->copy_thread, op_main, dev) != 0) {
			free(op);
			return MR_CUDA_ERROR_OUT_OF_MEMORY;
		}
		dev->copy_thread_runs = true;
	}
	*op = *what;
	op->next = NULL;
	op->stalls = op->from != NULL && mr_sim_fault_now(dev, SIM_FAULT_COPYSTALL);
	op->stream->queued++;
	*dev->ops_end = op;
	dev->ops_end = &op->next;
	pthread_cond_broadcast(&dev->changed);
	return MR_CUDA_SUCCESS;
}

mr_cu_result mr_sim_stream_wait(struct sim_device *dev, const struct sim_stream *s)
{
	while (s->queued != 0 && dev->sticky == MR_CUDA_SUCCESS)
		pthread_cond_wait(&dev->changed, &dev->lock);
	return dev->sticky;
}

/* Takes out the operations of one stream that were not begun, or of all. */
static void ops_remove(struct sim_device *dev, const struct sim_stream *s)
{
	struct sim_op **link = &dev->ops;

	while (*link != NULL) {
		struct sim_op *op = *link;

		if (s != NULL && op->stream != s) {
			link = &op->next;
			continue;
		}
		*link = op->next;
		op->stream->queued--;
		free(op);
	}
	dev->ops_end = link;
}

void mr_sim_op_forget(struct sim_device *dev, struct sim_stream *s)
{
	while (s->queued != 0 && !s->stalled && dev->sticky == MR_CUDA_SUCCESS)
		pthread_cond_wait(&dev->changed, &dev->lock);
	ops_remove(dev, s);
	/* The one that was begun. */
	while (s->queued != 0)
		pthread_cond_wait(&dev->changed, &dev->lock);
}

static bool streams_busy(const struct sim_device *dev)
{
	for (const struct sim_stream *s = dev->streams; s != NULL; s = s->next)
		if (s->queued != 0 && !s->stalled)
			return true;
	return false;
}

void mr_sim_streams_drain(struct sim_device *dev)
{
	while (streams_busy(dev) && dev->sticky == MR_CUDA_SUCCESS)
		pthread_cond_wait(&dev->changed, &dev->lock);
}

void mr_sim_streams_end(struct sim_device *dev)
{
	bool runs;

	pthread_mutex_lock(&dev->lock);
	runs = dev->copy_thread_runs;
	dev->closing = true;
	dev->copy_thread_runs = false;
	ops_remove(dev, NULL);
	pthread_cond_broadcast(&dev->changed);
	pthread_mutex_unlock(&dev->lock);
	if (runs)
		pthread_join(dev->copy_thread, NULL);
}
