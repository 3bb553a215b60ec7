/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cudasim_priv.h"

#include <stdlib.h>
#include <string.h>

static struct sim_stream **stream_link(struct sim_device *dev, mr_cu_stream stream)
{
	struct sim_stream **link = &dev->streams;

	while (*link != NULL && *link != (struct sim_stream *)stream)
		link = &(*link)->next;
	return link;
}

struct sim_stream *mr_sim_stream_find(struct sim_device *dev, mr_cu_stream stream)
{
	return *stream_link(dev, stream);
}

mr_cu_result mr_sim_stream_create(mr_cu_stream *ret_stream, unsigned int flags)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	struct sim_stream *s;

	if (dev == NULL)
		return r;
	if ((flags & ~(unsigned int)MR_CU_STREAM_NON_BLOCKING) != 0)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_OUT_OF_MEMORY);
	s->next = dev->streams;
	dev->streams = s;
	*ret_stream = (mr_cu_stream)s;
	return mr_sim_leave(dev, r);
}

/* Work on the stream goes on without it, as with the driver. */
mr_cu_result mr_sim_stream_destroy(mr_cu_stream stream)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	struct sim_stream **link, *s;

	if (dev == NULL)
		return r;
	link = stream_link(dev, stream);
	s = *link;
	if (s == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_HANDLE);
	(void)mr_sim_stream_reap(dev, s);
	mr_sim_op_forget(dev, s);
	for (struct sim_launch *l = dev->launches; l != NULL; l = l->next)
		if (l->stream == s)
			l->stream = NULL;
	*link = s->next;
	free(s);
	return mr_sim_leave(dev, r);
}

mr_cu_result mr_sim_stream_query(mr_cu_stream stream)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	const struct sim_stream *s;
	bool busy;

	if (dev == NULL)
		return r;
	s = mr_sim_stream_find(dev, stream);
	if (s == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_HANDLE);
	if (mr_sim_bar_gone(dev)) {
		mr_sim_bus_lost(dev);
		return mr_sim_leave(dev, dev->sticky);
	}
	mr_sim_late_hidden(dev);
	busy = mr_sim_stream_reap(dev, s) || s->queued != 0;
	return mr_sim_leave(dev, busy ? MR_CUDA_ERROR_NOT_READY : r);
}

mr_cu_result mr_sim_stream_synchronize(mr_cu_stream stream)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	const struct sim_stream *s;

	if (dev == NULL)
		return r;
	s = mr_sim_stream_find(dev, stream);
	if (s == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_HANDLE);
	while (mr_sim_stream_reap(dev, s))
		pthread_cond_wait(&dev->changed, &dev->lock);
	return mr_sim_leave(dev, mr_sim_stream_wait(dev, s));
}

/* Only waits that are over at once, which is all that a flush needs. */
mr_cu_result mr_sim_stream_wait_value(
	mr_cu_stream stream, mr_cu_deviceptr ptr, uint32_t value, unsigned int flags)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	const struct sim_range *range;
	uint32_t now;

	if (dev == NULL)
		return r;
	range = mr_sim_range_find(dev, (void *)(uintptr_t)ptr, sizeof(now));
	if (mr_sim_stream_find(dev, stream) == NULL || range == NULL || ptr % sizeof(now) != 0)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	memcpy(&now, mr_sim_alias(range, (void *)(uintptr_t)ptr), sizeof(now));
	if ((flags & ~MR_CU_STREAM_WAIT_VALUE_FLUSH) != 0 || (int32_t)(now - value) < 0)
		return mr_sim_leave(dev, MR_CUDA_ERROR_NOT_SUPPORTED);
	if ((flags & MR_CU_STREAM_WAIT_VALUE_FLUSH) != 0) {
		if ((dev->options.flush_options & MR_CU_FLUSH_OPTION_MEMOPS) == 0)
			return mr_sim_leave(dev, MR_CUDA_ERROR_NOT_SUPPORTED);
		mr_sim_late_flush(dev);
	}
	return mr_sim_leave(dev, r);
}

mr_cu_result mr_sim_stream_write_value(
	mr_cu_stream stream, mr_cu_deviceptr ptr, uint32_t value, unsigned int flags)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	const struct sim_range *range;
	struct sim_stream *s;

	if (dev == NULL)
		return r;
	s = mr_sim_stream_find(dev, stream);
	range = mr_sim_range_find(dev, (void *)(uintptr_t)ptr, sizeof(value));
	if (s == NULL || range == NULL || ptr % sizeof(value) != 0 || flags != 0)
		return mr_sim_leave(dev,
			s == NULL ? MR_CUDA_ERROR_INVALID_HANDLE : MR_CUDA_ERROR_INVALID_VALUE);
	if (mr_sim_stream_reap(dev, s))
		return mr_sim_leave(dev, MR_CUDA_ERROR_NOT_SUPPORTED);
	r = mr_sim_op_add(dev,
		&(struct sim_op){.stream = s,
			.to = mr_sim_alias(range, (void *)(uintptr_t)ptr),
			.value = value});
	return mr_sim_leave(dev, r);
}

/* Copies of page-locked memory are the thread's, and behind a kernel they would have to wait. */
static mr_cu_result copy(
	mr_cu_deviceptr device, void *to, const void *from, size_t bytes, mr_cu_stream stream)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	const void *host = to == NULL ? from : to;
	const struct sim_range *range, *other;
	struct sim_stream *s;
	uint8_t *inside, *outside;

	if (dev == NULL)
		return r;
	s = mr_sim_stream_find(dev, stream);
	range = mr_sim_range_find(dev, (void *)(uintptr_t)device, bytes);
	if (s == NULL || range == NULL)
		return mr_sim_leave(dev,
			s == NULL ? MR_CUDA_ERROR_INVALID_HANDLE : MR_CUDA_ERROR_INVALID_VALUE);
	if (mr_sim_stream_reap(dev, s))
		return mr_sim_leave(dev, MR_CUDA_ERROR_NOT_SUPPORTED);
	inside = mr_sim_alias(range, (void *)(uintptr_t)device);
	/* The other side may be closed to this thread where it is memory of the device's. */
	other = mr_sim_range_find(dev, host, bytes);
	outside = other != NULL ? mr_sim_alias(other, host) : (uint8_t *)(uintptr_t)host;
	if (other != NULL) {
		if (mr_sim_fault_now(dev, SIM_FAULT_COPY))
			return mr_sim_leave(dev, MR_CUDA_ERROR_UNKNOWN);
		return mr_sim_leave(dev,
			mr_sim_op_add(dev,
				&(struct sim_op){.stream = s,
					.to = to == NULL ? inside : outside,
					.from = to == NULL ? outside : inside,
					.bytes = bytes}));
	}
	r = mr_sim_stream_wait(dev, s);
	if (r != MR_CUDA_SUCCESS)
		return mr_sim_leave(dev, r);
	mr_sim_late_hidden(dev);
	memmove(to == NULL ? inside : outside, to == NULL ? outside : inside, bytes);
	mr_sim_late_publish(dev);
	return mr_sim_leave(dev, r);
}

mr_cu_result mr_sim_copy_in(mr_cu_deviceptr to, const void *from, size_t bytes, mr_cu_stream stream)
{
	if (from == NULL)
		return MR_CUDA_ERROR_INVALID_VALUE;
	return copy(to, NULL, from, bytes, stream);
}

mr_cu_result mr_sim_copy_out(void *to, mr_cu_deviceptr from, size_t bytes, mr_cu_stream stream)
{
	if (to == NULL)
		return MR_CUDA_ERROR_INVALID_VALUE;
	return copy(from, to, NULL, bytes, stream);
}
