/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include "mr_cuda.h"
#include "mr_cudasim.h"
#include "mr_image.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 65536u
#define THREADS 256u /* of a block, as lib/gpu launches them */
#define HELLO_NS 10000000000ull

uint32_t rig_patience = 1;

void rig_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void rig_enter(const struct rig_device *d)
{
	if (d->context != NULL && d->cu->cuCtxPushCurrent_v2(d->context) != MR_CUDA_SUCCESS)
		rig_die("device '%s': its context is gone", d->name);
}

void rig_leave(const struct rig_device *d, mr_cu_result rc, const char *call)
{
	const char *name = NULL;
	mr_cu_context popped;

	if (d->context != NULL)
		(void)d->cu->cuCtxPopCurrent_v2(&popped);
	if (rc == MR_CUDA_SUCCESS)
		return;
	(void)d->cu->cuGetErrorName(rc, &name);
	rig_die("device '%s': %s: %s", d->name, call, name != NULL ? name : "unknown error");
}

static void open_sim(const char *where, struct rig_device *d)
{
	const char *options = strchr(where, ',');
	struct mr_err err = {0};

	if (mr_cudasim_add(options != NULL ? options + 1 : "", &d->id, &err) < 0)
		rig_die("%s", err.msg);
	d->cu = mr_cudasim_api(d->id);
	d->sim = true;
	RIG_CU(d, cuInit(0));
}

static void open_cuda(const char *where, struct rig_device *d)
{
	static struct mr_cuda_api api;
	struct mr_err err = {0};

	/* As millrace sets it: a lazy load would wait behind a kernel that never ends. */
	(void)setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	if (mr_cuda_load(MR_CUDA_LIBRARY, MR_CUDA_GDR_LIBRARY, &api, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(RIG_SKIP);
	}
	d->cu = &api;
	RIG_CU(d, cuDeviceGetByPCIBusId(&d->id, where));
}

static void load_image(struct rig_device *d)
{
	const void *image = &mr_image_sim;
	size_t bytes;

	if (!d->sim)
		image = mr_image_fatbin(&bytes);
	if (image == NULL) {
		fprintf(stderr, "this build has no CUDA image\n");
		exit(RIG_SKIP);
	}
	RIG_CU(d, cuModuleLoadData(&d->module, image));
}

void rig_open(const char *where, struct rig_device *d)
{
	mr_cu_context context;

	memset(d, 0, sizeof(*d));
	snprintf(d->name, sizeof(d->name), "%s", where);
	if (strncmp(where, "sim", 3) == 0)
		open_sim(where, d);
	else
		open_cuda(where, d);
	RIG_CU(d, cuDriverGetVersion(&d->driver));
	RIG_CU(d,
		cuDeviceGetAttribute(&d->multiprocessors, MR_CU_ATTR_MULTIPROCESSOR_COUNT, d->id));
	RIG_CU(d, cuDeviceGetName(d->name, sizeof(d->name), d->id));
	RIG_CU(d, cuDevicePrimaryCtxRetain(&context, d->id));
	d->context = context;
	d->can_map = d->cu->map != NULL;
	load_image(d);
}

static uint64_t kernel_address(struct rig *r, const void *p)
{
	mr_cu_deviceptr address = 0;

	RIG_CU(r->d, kernel_address(p, &address));
	return address;
}

static void *host_alloc(struct rig *r, size_t bytes)
{
	void *p = NULL;

	RIG_CU(r->d,
		cuMemHostAlloc(&p, MR_ALIGN_UP(bytes, PAGE),
			MR_CU_MEMHOSTALLOC_PORTABLE | MR_CU_MEMHOSTALLOC_DEVICEMAP));
	memset(p, 0, bytes);
	return p;
}

static mr_cu_deviceptr device_alloc(struct rig *r, size_t bytes)
{
	mr_cu_deviceptr p = 0;

	/* A page more, since only its own granularity aligns what the driver gives. */
	RIG_CU(r->d, cuMemAlloc_v2(&p, MR_ALIGN_UP(bytes, PAGE) + PAGE));
	return p;
}

static void upload(struct rig *r, mr_cu_deviceptr to, const void *from, size_t bytes)
{
	RIG_CU(r->d, cuMemcpyHtoDAsync_v2(to, from, bytes, r->copies));
	RIG_CU(r->d, cuStreamSynchronize(r->copies));
}

static void *pointer(mr_cu_deviceptr p)
{
	return (void *)(uintptr_t)p;
}

/* The device's own memory: where what lies in it. */
struct block {
	struct mr_lane_dev lane;
	struct mr_worker_map map[MR_WORKERS_MAX];
	struct mr_launch launch;
	uint64_t counters[MR_WORKERS_MAX][MR_COUNTERS_MAX];
};

static void set_params(const struct mr_stage_desc *stage, const struct rig_param *p,
	uint8_t params[MR_PARAM_BYTES])
{
	struct mr_err err = {0};

	mr_stage_param_defaults(stage, params);
	for (; p != NULL && p->name != NULL; p++)
		if (mr_stage_param_set(stage, p->name, p->value, NULL, params, &err) != 0)
			rig_die("%s", err.msg);
}

/* The table of a text, in device memory. */
static mr_cu_deviceptr make_table(
	struct rig *r, const struct mr_stage_desc *stage, const uint8_t *params, const char *text)
{
	struct mr_table_errors errors = {0};
	const size_t room = MR_ALIGN_UP(stage->table->bytes(params), 64);
	char *copy = strdup(text);
	struct mr_table_text t = {.at = copy, .errors = &errors};
	void *table = aligned_alloc(64, room);
	size_t bytes = 0;
	mr_cu_deviceptr at;

	if (copy == NULL || table == NULL)
		rig_die("no memory for the table of stage '%s'", stage->name);
	if (stage->table->build(&t, params, NULL, table, &bytes) != 0 || errors.count != 0)
		rig_die("table of stage '%s', line %u: %s", stage->name, errors.e[0].line,
			errors.e[0].message);
	at = device_alloc(r, bytes);
	upload(r, at, table, bytes);
	free(table);
	free(copy);
	return at;
}

static mr_cu_deviceptr make_state(struct rig *r, uint64_t bytes)
{
	void *zeroes = calloc(1, bytes);
	mr_cu_deviceptr at = device_alloc(r, bytes);

	if (zeroes == NULL)
		rig_die("no memory for the state of a stage");
	upload(r, at, zeroes, bytes);
	free(zeroes);
	return at;
}

/* Parameters, table and state of the i-th stage. */
static void tell_stage(struct rig *r, uint32_t i, struct mr_lane_dev *lane)
{
	const struct mr_stage_desc *stage = mr_stage_at((uint32_t)r->plan.chain[i]);
	const char *text = r->plan.table[stage->id];
	struct mr_chain_dev *c = &lane->chain[i];

	c->stage = (uint16_t)stage->id;
	set_params(stage, r->plan.param[stage->id], c->params[0]);
	if (text != NULL)
		r->table[i] = make_table(r, stage, c->params[0], text);
	if (mr_stage_lane_bytes(stage, c->params[0]) != 0)
		r->state[i] = make_state(r, mr_stage_lane_bytes(stage, c->params[0]));
	if (r->table[i] != 0)
		c->table[0] = kernel_address(r, pointer(r->table[i]));
	if (r->state[i] != 0)
		c->state = kernel_address(r, pointer(r->state[i]));
	c->flags = stage->ticks ? MR_CHAIN_TICKS : 0;
	/* What two devices tell apart is when: of results that are compared it is left out. */
	lane->flags |= stage->timed && !stage->ticks ? MR_LANE_TIMED : 0;
}

static void tell_kernel(struct rig *r)
{
	const struct rig_plan *p = &r->plan;
	const uint32_t stride = MR_SLOT_BYTES(p->batch);
	struct block *b = calloc(1, sizeof(*b));
	uint64_t base;
	uint32_t counter = 0;

	r->device = device_alloc(r, sizeof(*b));
	base = kernel_address(r, pointer(r->device));
	b->lane = (struct mr_lane_dev){
		.region = kernel_address(r, p->host ? r->host_region : pointer(r->region)),
		.in = kernel_address(r, r->in_map != NULL ? pointer(r->in_device) : r->ring.in),
		.out = kernel_address(r, r->ring.out),
		.workers_ctl = kernel_address(r, r->ctl),
		.counters_out = kernel_address(r, r->counters),
		.counters_acc = base + offsetof(struct block, counters),
		.region_units = p->buffers * (p->room / MR_UNIT),
		.room = p->room,
		.in_stride = stride,
		.out_stride = stride,
		.slots = p->slots,
		.batch = p->batch,
		.workers = p->workers,
		.tx_count = 1,
		.chain_len = p->chain_len};
	for (uint32_t i = 0; i < p->chain_len; i++) {
		tell_stage(r, i, &b->lane);
		b->lane.chain[i].counter_base = (uint16_t)counter;
		counter += mr_stage_at((uint32_t)p->chain[i])->counters_count;
	}
	for (uint32_t i = 0; i < p->workers; i++)
		b->map[i].worker = i;
	b->launch = (struct mr_launch){.lanes = base + offsetof(struct block, lane),
		.map = base + offsetof(struct block, map),
		.host_ctl = kernel_address(r, r->host_ctl),
		.blocks = p->workers,
		.backoff_ns = 100};
	r->argument = base + offsetof(struct block, launch);
	upload(r, r->device, b, sizeof(*b));
	free(b);
}

void rig_make(struct rig_device *d, const struct rig_plan *p, struct rig *r)
{
	const size_t slots = (size_t)p->slots * MR_SLOT_BYTES(p->batch);
	const size_t packets = (size_t)p->buffers * p->room;
	const char *kernel = "mr_kernel_thread";
	struct mr_err err = {0};
	uint8_t *at;

	memset(r, 0, sizeof(*r));
	r->d = d;
	r->plan = *p;
	RIG_CU(d, cuStreamCreate(&r->stream, MR_CU_STREAM_NON_BLOCKING));
	RIG_CU(d, cuStreamCreate(&r->copies, MR_CU_STREAM_NON_BLOCKING));
	if (p->host)
		r->host_region = host_alloc(r, packets);
	else
		r->region = device_alloc(r, packets);
	at = r->host = host_alloc(r,
		2 * slots + p->workers * sizeof(*r->ctl) +
			p->workers * MR_COUNTERS_MAX * sizeof(uint64_t) + sizeof(*r->host_ctl));
	if (p->mapped && d->can_map) {
		r->in_device = MR_ALIGN_UP(device_alloc(r, slots), PAGE);
		RIG_CU(d, map(r->in_device, MR_ALIGN_UP(slots, PAGE), &r->in_map));
	}
	if (mr_ring_init(&r->ring, at, r->in_map, at + slots, p->slots, p->batch, 0, &err) < 0)
		rig_die("%s", err.msg);
	at += 2 * slots;
	r->ctl = (struct mr_worker_ctl *)at;
	at += p->workers * sizeof(*r->ctl);
	r->counters = (uint64_t *)at;
	at += p->workers * MR_COUNTERS_MAX * sizeof(uint64_t);
	r->host_ctl = (struct mr_host_ctl *)at;
	r->threads = THREADS;
	for (uint32_t i = 0; i < p->chain_len; i++) {
		const struct mr_stage_desc *stage = mr_stage_at((uint32_t)p->chain[i]);

		if (mr_stage_in_order(stage)) {
			kernel = "mr_kernel_order";
			r->threads = 32;
		} else if (stage->work == MR_WORK_WARP && r->threads != 32) {
			kernel = "mr_kernel_warp";
		}
	}
	RIG_CU(d, cuModuleGetFunction(&r->function, d->module, kernel));
	tell_kernel(r);
}

void rig_free(struct rig *r)
{
	/* Aligned up by at most a page, so what is freed is found by its range. */
	if (r->in_map != NULL) {
		mr_cu_deviceptr base = 0;
		size_t bytes;

		RIG_CU(r->d, unmap(r->in_map));
		RIG_CU(r->d, cuMemGetAddressRange_v2(&base, &bytes, r->in_device));
		RIG_CU(r->d, cuMemFree_v2(base));
	}
	RIG_CU(r->d, cuMemFree_v2(r->device));
	for (uint32_t i = 0; i < r->plan.chain_len; i++) {
		if (r->table[i] != 0)
			RIG_CU(r->d, cuMemFree_v2(r->table[i]));
		if (r->state[i] != 0)
			RIG_CU(r->d, cuMemFree_v2(r->state[i]));
	}
	RIG_CU(r->d, cuMemFreeHost(r->host));
	if (r->plan.host)
		RIG_CU(r->d, cuMemFreeHost(r->host_region));
	else
		RIG_CU(r->d, cuMemFree_v2(r->region));
	RIG_CU(r->d, cuStreamDestroy_v2(r->stream));
	RIG_CU(r->d, cuStreamDestroy_v2(r->copies));
}

void rig_launch(struct rig *r)
{
	void *params[] = {&r->argument};

	RIG_CU(r->d,
		cuLaunchKernel(r->function, r->plan.workers, 1, 1, r->threads, 1, 1, 0, r->stream,
			params, NULL));
}

void rig_start(struct rig *r)
{
	const uint64_t began = mr_clock_ns();

	rig_launch(r);
	for (uint32_t i = 0; i < r->plan.workers; i++)
		while (mr_load_relaxed(&r->ctl[i].hello) == 0) {
			if (mr_clock_ns() - began > rig_patience * HELLO_NS)
				rig_die("device '%s': worker %u did not start", r->d->name, i);
			usleep(100);
		}
}

void rig_wait(struct rig *r)
{
	RIG_CU(r->d, cuStreamSynchronize(r->stream));
}

void rig_stop(struct rig *r)
{
	mr_store_release(&r->host_ctl->exit, 1);
	rig_wait(r);
}

void rig_write(struct rig *r, uint32_t buffer, uint32_t head, const void *frame, uint32_t bytes)
{
	const uint64_t at = (uint64_t)buffer * r->plan.room + head;

	if (r->plan.host)
		memcpy(r->host_region + at, frame, bytes);
	else
		upload(r, r->region + at, frame, bytes);
}

void rig_read(struct rig *r, uint32_t buffer, uint32_t head, void *frame, uint32_t bytes)
{
	const uint64_t at = (uint64_t)buffer * r->plan.room + head;

	if (r->plan.host) {
		memcpy(frame, r->host_region + at, bytes);
		return;
	}
	RIG_CU(r->d, cuMemcpyDtoHAsync_v2(frame, r->region + at, bytes, r->copies));
	RIG_CU(r->d, cuStreamSynchronize(r->copies));
}
