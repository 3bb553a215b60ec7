/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cudasim_priv.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Signals belong to the application's threads; faults of the code itself stay open.
 * A block runs where the thread that launches it may run, so that an application
 * which keeps that thread off its polled cores keeps the blocks off as well.
 */
int mr_sim_thread_start(pthread_t *ret_thread, void *(*run)(void *), void *argument)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(ret_thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

static void block_order(struct sim_block *b, enum mr_sim_fault fault)
{
	__atomic_store_n(&b->orders.fault, fault, __ATOMIC_RELAXED);
}

static bool block_must_die(const struct sim_block *b)
{
	return __atomic_load_n(&b->orders.fault, __ATOMIC_RELAXED) == MR_SIM_FAULT_DIE;
}

static void block_run(void *argument)
{
	struct sim_block *b = argument;

	b->launch->kernel->entry(b->launch->argument, b->index, &b->orders);
}

/* Ends every block; those still waiting for a place never start. */
static void kill_all(struct sim_device *dev)
{
	for (struct sim_launch *l = dev->launches; l != NULL; l = l->next)
		for (uint32_t i = 0; i < l->blocks_count; i++)
			block_order(&l->block[i], MR_SIM_FAULT_DIE);
	pthread_cond_broadcast(&dev->changed);
}

void mr_sim_bus_lost(struct sim_device *dev)
{
	if (dev->sticky == MR_CUDA_SUCCESS)
		dev->sticky = MR_CUDA_ERROR_UNKNOWN;
	kill_all(dev);
}

static void *block_main(void *argument)
{
	struct sim_block *b = argument;
	struct sim_launch *l = b->launch;
	struct sim_device *dev = l->dev;
	const uint32_t places = (uint32_t)dev->options.multiprocessors * SIM_SM_THREADS;
	char name[16];
	bool runs, left = true;

	snprintf(name, sizeof(name), "mr-sim-%u", b->index % 10000000);
	(void)pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&dev->lock);
	while (!block_must_die(b) && dev->resident + l->cost > places)
		pthread_cond_wait(&dev->changed, &dev->lock);
	runs = !block_must_die(b);
	if (runs)
		dev->resident += l->cost;
	pthread_mutex_unlock(&dev->lock);
	if (runs)
		left = mr_sim_bar_try(dev, block_run, b);
	pthread_mutex_lock(&dev->lock);
	if (runs)
		dev->resident -= l->cost;
	if (!left)
		mr_sim_bus_lost(dev);
	l->running--;
	pthread_cond_broadcast(&dev->changed);
	pthread_mutex_unlock(&dev->lock);
	return NULL;
}

static void fault_order(struct sim_launch *l, const struct sim_fault *f)
{
	if (f->block < l->blocks_count && !block_must_die(&l->block[f->block]))
		block_order(&l->block[f->block],
			f->kind == SIM_FAULT_STALL ? MR_SIM_FAULT_STALL : MR_SIM_FAULT_IDLE);
}

static void fault_fire(struct sim_device *dev, const struct sim_fault *f)
{
	if (f->kind == SIM_FAULT_LOST || f->kind == SIM_FAULT_DIE) {
		if (dev->sticky == MR_CUDA_SUCCESS)
			dev->sticky = f->kind == SIM_FAULT_LOST ? MR_CUDA_ERROR_ECC_UNCORRECTABLE
								: MR_CUDA_ERROR_LAUNCH_FAILED;
		/* One block's fault ends the context, and with it all kernels. */
		kill_all(dev);
		return;
	}
	for (struct sim_launch *l = dev->launches; l != NULL; l = l->next)
		fault_order(l, f);
}

/* A kernel that comes after a block's fault meets it too. */
static void fault_catch_up(struct sim_device *dev, struct sim_launch *l)
{
	for (uint32_t i = 0; i < dev->options.faults_count; i++)
		if (dev->fired[i])
			fault_order(l, &dev->options.fault[i]);
}

/* Fires the timed faults, each once, in order of time. */
static void *fault_main(void *argument)
{
	struct sim_device *dev = argument;

	(void)pthread_setname_np(pthread_self(), "mr-sim-fault");
	pthread_mutex_lock(&dev->lock);
	while (!dev->closing) {
		const struct sim_fault *next = NULL;
		struct timespec due;
		uint64_t ns;

		for (uint32_t i = 0; i < dev->options.faults_count; i++) {
			const struct sim_fault *f = &dev->options.fault[i];

			if (f->kind >= SIM_FAULT_STALL && !dev->fired[i] &&
				(next == NULL || f->at < next->at))
				next = f;
		}
		if (next == NULL)
			break;
		ns = dev->first_launch_ns + (uint64_t)next->at * 1000000u;
		if (mr_clock_ns() >= ns) {
			dev->fired[next - dev->options.fault] = true;
			fault_fire(dev, next);
			continue;
		}
		due.tv_sec = (time_t)(ns / 1000000000u);
		due.tv_nsec = (long)(ns % 1000000000u);
		(void)pthread_cond_timedwait(&dev->changed, &dev->lock, &due);
	}
	pthread_mutex_unlock(&dev->lock);
	return NULL;
}

static void fault_start(struct sim_device *dev)
{
	if (dev->first_launch_ns != 0)
		return;
	dev->first_launch_ns = mr_clock_ns();
	for (uint32_t i = 0; i < dev->options.faults_count; i++)
		if (dev->options.fault[i].kind >= SIM_FAULT_STALL && !dev->fault_thread_runs)
			dev->fault_thread_runs =
				mr_sim_thread_start(&dev->fault_thread, fault_main, dev) == 0;
}

/* Joining under the lock is safe: a block that is counted out no longer takes it. */
static void launch_free(struct sim_launch *l)
{
	for (uint32_t i = 0; i < l->blocks_count; i++)
		pthread_join(l->block[i].thread, NULL);
	free(l);
}

bool mr_sim_stream_reap(struct sim_device *dev, const struct sim_stream *s)
{
	struct sim_launch **link = &dev->launches;
	bool runs = false;

	while (*link != NULL) {
		struct sim_launch *l = *link;

		if (l->stream != s || l->running != 0) {
			runs |= l->stream == s;
			link = &l->next;
			continue;
		}
		*link = l->next;
		launch_free(l);
	}
	return runs;
}

void mr_sim_launch_fini(struct sim_device *dev)
{
	mr_sim_streams_end(dev);
	pthread_mutex_lock(&dev->lock);
	dev->closing = true;
	kill_all(dev);
	while (dev->launches != NULL) {
		struct sim_launch *l = dev->launches;

		while (l->running != 0)
			pthread_cond_wait(&dev->changed, &dev->lock);
		dev->launches = l->next;
		launch_free(l);
	}
	while (dev->streams != NULL) {
		struct sim_stream *s = dev->streams;

		dev->streams = s->next;
		free(s);
	}
	while (dev->modules != NULL) {
		struct sim_module *m = dev->modules;

		dev->modules = m->next;
		free(m);
	}
	pthread_mutex_unlock(&dev->lock);
	if (dev->fault_thread_runs)
		pthread_join(dev->fault_thread, NULL);
	/* A context retained anew starts from nothing, its faults included. */
	dev->fault_thread_runs = false;
	dev->closing = false;
	dev->first_launch_ns = 0;
	memset(dev->fired, 0, sizeof(dev->fired));
}

mr_cu_result mr_sim_module_load(mr_cu_module *ret_module, const void *image)
{
	const struct mr_sim_image *sim = image;
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	struct sim_module *m;

	if (dev == NULL)
		return r;
	if (image == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	if (sim->magic != MR_SIM_IMAGE_MAGIC)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_IMAGE);
	if (mr_sim_fault_now(dev, SIM_FAULT_MODULE))
		return mr_sim_leave(dev, MR_CUDA_ERROR_NO_BINARY_FOR_GPU);
	m = malloc(sizeof(*m));
	if (m == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_OUT_OF_MEMORY);
	m->image = sim;
	m->next = dev->modules;
	dev->modules = m;
	*ret_module = (mr_cu_module)m;
	return mr_sim_leave(dev, r);
}

static struct sim_module **module_link(struct sim_device *dev, mr_cu_module module)
{
	struct sim_module **link = &dev->modules;

	while (*link != NULL && *link != (struct sim_module *)module)
		link = &(*link)->next;
	return link;
}

mr_cu_result mr_sim_module_unload(mr_cu_module module)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	struct sim_module **link, *m;

	if (dev == NULL)
		return r;
	link = module_link(dev, module);
	m = *link;
	if (m == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_HANDLE);
	*link = m->next;
	free(m);
	return mr_sim_leave(dev, r);
}

mr_cu_result mr_sim_module_function(mr_cu_function *ret_fn, mr_cu_module module, const char *name)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	const struct sim_module *m;

	if (dev == NULL)
		return r;
	m = *module_link(dev, module);
	if (m == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_HANDLE);
	for (uint32_t i = 0; i < m->image->kernels_count; i++) {
		if (strcmp(m->image->kernels[i].name, name) == 0) {
			*ret_fn = (mr_cu_function)(uintptr_t)&m->image->kernels[i];
			return mr_sim_leave(dev, r);
		}
	}
	return mr_sim_leave(dev, MR_CUDA_ERROR_NOT_FOUND);
}

/* The kernel behind a handle, if a loaded module has it. */
static const struct mr_sim_kernel *kernel_find(struct sim_device *dev, mr_cu_function fn)
{
	for (const struct sim_module *m = dev->modules; m != NULL; m = m->next)
		for (uint32_t i = 0; i < m->image->kernels_count; i++)
			if ((mr_cu_function)(uintptr_t)&m->image->kernels[i] == fn)
				return &m->image->kernels[i];
	return NULL;
}

static uint32_t occupancy(uint32_t threads)
{
	uint32_t blocks;

	if (threads == 0 || threads > SIM_BLOCK_THREADS)
		return 0;
	blocks = SIM_SM_THREADS / threads;
	return blocks < SIM_SM_BLOCKS ? blocks : SIM_SM_BLOCKS;
}

mr_cu_result mr_sim_occupancy(
	int *ret_blocks, mr_cu_function fn, int block_size, size_t shared_bytes)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);

	(void)shared_bytes;
	if (dev == NULL)
		return r;
	if (kernel_find(dev, fn) == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_HANDLE);
	if (block_size <= 0)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	*ret_blocks = (int)occupancy((uint32_t)block_size);
	return mr_sim_leave(dev, r);
}

/* Blocks that could not be started are missing, not forgotten: nothing runs then. */
static mr_cu_result launch_start(struct sim_device *dev, struct sim_launch *l, uint32_t blocks)
{
	l->running = blocks;
	for (; l->blocks_count < blocks; l->blocks_count++) {
		struct sim_block *b = &l->block[l->blocks_count];

		b->launch = l;
		b->index = l->blocks_count;
		if (dev->late != NULL)
			b->orders = (struct mr_sim_orders){.fence = mr_sim_late_fence, .ctx = dev};
		if (mr_sim_thread_start(&b->thread, block_main, b) != 0)
			break;
	}
	if (l->blocks_count == blocks)
		return MR_CUDA_SUCCESS;
	/* The started ones wait for the lock that is held here, so they see the order. */
	l->running = l->blocks_count;
	for (uint32_t i = 0; i < l->blocks_count; i++)
		block_order(&l->block[i], MR_SIM_FAULT_DIE);
	while (l->running != 0)
		pthread_cond_wait(&dev->changed, &dev->lock);
	launch_free(l);
	return MR_CUDA_ERROR_OPERATING_SYSTEM;
}

mr_cu_result mr_sim_launch_kernel(mr_cu_function fn, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared_bytes, mr_cu_stream stream, void **params, void **extra)
{
	mr_cu_result r;
	struct sim_device *dev = mr_sim_enter(&r);
	const struct mr_sim_kernel *kernel;
	struct sim_stream *s;
	struct sim_launch *l;

	(void)shared_bytes;
	if (dev == NULL)
		return r;
	kernel = kernel_find(dev, fn);
	s = mr_sim_stream_find(dev, stream);
	if (kernel == NULL || s == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_HANDLE);
	if (grid_x == 0 || grid_x > 65535 || grid_y != 1 || grid_z != 1 || block_x == 0 ||
		block_y != 1 || block_z != 1 || params == NULL || extra != NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_INVALID_VALUE);
	if (occupancy(block_x) == 0 || mr_sim_fault_now(dev, SIM_FAULT_LAUNCH))
		return mr_sim_leave(dev, MR_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	/* Kernels of one stream run one after the other, which nobody needs here. */
	if (mr_sim_stream_reap(dev, s))
		return mr_sim_leave(dev, MR_CUDA_ERROR_NOT_SUPPORTED);
	l = calloc(1, sizeof(*l) + grid_x * sizeof(l->block[0]));
	if (l == NULL)
		return mr_sim_leave(dev, MR_CUDA_ERROR_OUT_OF_MEMORY);
	l->dev = dev;
	l->stream = s;
	l->kernel = kernel;
	l->cost = SIM_SM_THREADS / occupancy(block_x);
	memcpy(&l->argument, params[0], sizeof(l->argument));
	r = launch_start(dev, l, grid_x);
	if (r == MR_CUDA_SUCCESS) {
		l->next = dev->launches;
		dev->launches = l;
		fault_catch_up(dev, l);
		fault_start(dev);
	}
	return mr_sim_leave(dev, r);
}
