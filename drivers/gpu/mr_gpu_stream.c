/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gpu_drv_priv.h"

#include <errno.h>
#include <stdlib.h>

int mr_gpu_drv_stream_open(
	struct mr_gpu_drv *d, struct mr_gpu_drv_stream **ret_stream, struct mr_err *err)
{
	struct mr_gpu_drv_stream *s;
	mr_cu_result r;
	int rc;

	if (d->api->cuStreamWriteValue32_v2 == NULL)
		return mr_err_set(err, -ENOTSUP,
			"device '%s': this NVIDIA driver has no cuStreamWriteValue32_v2, by which "
			"a staged lane learns that a copy has ended; use direct or pinned",
			d->name);
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return mr_err_set(err, -ENOMEM, "device '%s': no memory for a stream", d->name);
	s->drv = d;
	rc = mr_gpu_drv_enter(d, err);
	if (rc == 0) {
		r = MR_GPU_CALL(d->api, cuStreamCreate, &s->stream, MR_CU_STREAM_NON_BLOCKING);
		mr_gpu_drv_leave(d);
		if (r != MR_CUDA_SUCCESS)
			rc = mr_gpu_drv_fail(d, err, r, "cuStreamCreate for copies");
	}
	if (rc != 0) {
		free(s);
		return rc;
	}
	pthread_mutex_lock(&d->lock);
	s->next = d->streams;
	d->streams = s;
	pthread_mutex_unlock(&d->lock);
	*ret_stream = s;
	return 0;
}

void mr_gpu_drv_stream_close(struct mr_gpu_drv_stream *s)
{
	struct mr_gpu_drv *d = s->drv;
	struct mr_gpu_drv_stream **link = &d->streams;

	pthread_mutex_lock(&d->lock);
	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	pthread_mutex_unlock(&d->lock);
	/* What a lost device still holds goes with its context. */
	if (mr_gpu_drv_enter(d, NULL) == 0) {
		(void)MR_GPU_CALL(d->api, cuStreamDestroy_v2, s->stream);
		mr_gpu_drv_leave(d);
	}
	free(s);
}

/* The value behind a copy that was queued; the context is current, and is left. */
static int then_write(struct mr_gpu_drv_stream *s, mr_cu_result copied, const char *call,
	size_t bytes, uint64_t word, uint32_t value, struct mr_err *err)
{
	struct mr_gpu_drv *d = s->drv;
	mr_cu_result r = copied;

	if (copied == MR_CUDA_SUCCESS)
		r = MR_GPU_CALL(d->api, cuStreamWriteValue32_v2, s->stream, word, value, 0);
	mr_gpu_drv_leave(d);
	if (copied != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, copied, "%s of %zu bytes", call, bytes);
	if (r != MR_CUDA_SUCCESS)
		return mr_gpu_drv_fail(d, err, r, "cuStreamWriteValue32_v2");
	return 0;
}

int mr_gpu_drv_stream_in(struct mr_gpu_drv_stream *s, uint64_t to, const void *from, size_t bytes,
	uint64_t word, uint32_t value, struct mr_err *err)
{
	mr_cu_result r;
	int rc = mr_gpu_drv_enter(s->drv, err);

	if (rc != 0)
		return rc;
	r = bytes == 0 ? MR_CUDA_SUCCESS
		       : MR_GPU_CALL(s->drv->api, cuMemcpyHtoDAsync_v2, to, from, bytes, s->stream);
	return then_write(s, r, "cuMemcpyHtoDAsync_v2", bytes, word, value, err);
}

int mr_gpu_drv_stream_out(struct mr_gpu_drv_stream *s, void *to, uint64_t from, size_t bytes,
	uint64_t word, uint32_t value, struct mr_err *err)
{
	mr_cu_result r;
	int rc = mr_gpu_drv_enter(s->drv, err);

	if (rc != 0)
		return rc;
	r = bytes == 0 ? MR_CUDA_SUCCESS
		       : MR_GPU_CALL(s->drv->api, cuMemcpyDtoHAsync_v2, to, from, bytes, s->stream);
	return then_write(s, r, "cuMemcpyDtoHAsync_v2", bytes, word, value, err);
}

int mr_gpu_drv_stream_query(struct mr_gpu_drv_stream *s, struct mr_err *err)
{
	mr_cu_result r;

	if (mr_gpu_drv_enter(s->drv, err) != 0)
		return -EIO;
	r = MR_GPU_CALL(s->drv->api, cuStreamQuery, s->stream);
	mr_gpu_drv_leave(s->drv);
	if (r == MR_CUDA_SUCCESS || r == MR_CUDA_ERROR_NOT_READY)
		return r == MR_CUDA_ERROR_NOT_READY;
	(void)mr_gpu_drv_fail(s->drv, err, r, "cuStreamQuery of a stream of copies");
	return -EIO;
}
