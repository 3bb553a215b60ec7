/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_cudasim_priv - the software device's own structures.
 *
 * Locks    sim_table guards the list of devices only. Each device has one lock
 *          for all it owns; it is never held while a block's code runs. Order:
 *          table, then device.
 */
#ifndef MR_CUDASIM_PRIV_H
#define MR_CUDASIM_PRIV_H

#include "mr_cuda_api.h"
#include "mr_err.h"
#include "mr_sim_image.h"

#include <pthread.h>
#include <stdbool.h>

#define SIM_DEVICES 32
#define SIM_FAULTS 8
#define SIM_PAGE ((size_t)64 << 10)
#define SIM_SM_THREADS 2048u
#define SIM_SM_BLOCKS 32u
#define SIM_BLOCK_THREADS 1024u
#define SIM_ADDRESS_BYTES 16 /* 0000:00:04.0 */

enum sim_fault_kind {
	SIM_FAULT_UNUSED,
	SIM_FAULT_NOFLUSH, /* never drawn: no program can help against it */
	/* never drawn either: what only a proof of the path sees */
	SIM_FAULT_HIDDENCOPY,
	SIM_FAULT_NOREAD,
	SIM_FAULT_SHORT,
	SIM_FAULT_REVOKE, /* `at` is milliseconds after the first launch */
	SIM_FAULT_ATTACH, /* counted */
	/* counted calls: `at` is the number of the one that fails */
	SIM_FAULT_COPY, /* these two are never drawn: seeds keep their meaning */
	SIM_FAULT_COPYSTALL,
	SIM_FAULT_ALLOC,
	SIM_FAULT_HOSTALLOC,
	SIM_FAULT_REGISTER,
	SIM_FAULT_MAP,
	SIM_FAULT_MODULE,
	SIM_FAULT_LAUNCH,
	SIM_FAULT_LATE, /* neither counted nor timed: it makes writes_ordering none */
	/* timed: `at` is milliseconds after the first launch */
	SIM_FAULT_STALL,
	SIM_FAULT_IDLE,
	SIM_FAULT_DIE,
	SIM_FAULT_LOST,
	SIM_FAULT_KINDS,
};

struct sim_fault {
	enum sim_fault_kind kind;
	uint32_t block;
	uint32_t at;
};

struct sim_options {
	size_t mem_bytes, bar_bytes;
	bool mem_given;
	char bar_address[SIM_ADDRESS_BYTES]; /* "": device memory is a memfd */
	int multiprocessors;
	int writes_ordering, flush_options;
	bool gdr, dmabuf, map, alias;
	uint64_t seed;
	uint32_t faults_count;
	struct sim_fault fault[SIM_FAULTS];
};

int mr_sim_options_parse(const char *text, struct sim_options *ret_options, struct mr_err *err);

enum sim_memory {
	SIM_MEMORY_DEVICE,     /* pages of the arena */
	SIM_MEMORY_HOST,       /* cuMemHostAlloc: a memfd of its own */
	SIM_MEMORY_REGISTERED, /* somebody else's; alias == primary */
};

struct sim_range {
	struct sim_range *next;
	enum sim_memory memory;
	uint8_t *primary, *alias;
	size_t bytes; /* as asked for */
	size_t span;  /* whole pages that it occupies */
	int sync_memops;
};

/* One CPU mapping of device memory. */
struct sim_view {
	struct sim_view *next;
	struct sim_range *range;
	uint8_t *host;
	size_t bytes;
};

struct sim_stream {
	struct sim_stream *next;
	uint32_t queued; /* operations not yet done */
	bool stalled;    /* those that are left never will be */
};

/* What a stream has to do: a copy, or without `from` a value to be written. */
struct sim_op {
	struct sim_op *next;
	struct sim_stream *stream;
	uint8_t *to;
	const uint8_t *from;
	size_t bytes;
	uint32_t value;
	bool stalls; /* its stream stands still from here on */
};

struct sim_module {
	struct sim_module *next;
	const struct mr_sim_image *image;
};

struct sim_launch;
struct sim_late;

struct sim_block {
	struct sim_launch *launch;
	uint32_t index;
	struct mr_sim_orders orders; /* fault is written while the block polls */
	pthread_t thread;
};

struct sim_launch {
	struct sim_launch *next;
	struct sim_device *dev;
	struct sim_stream *stream; /* NULL once the stream was destroyed */
	const struct mr_sim_kernel *kernel;
	uint64_t argument;
	uint32_t cost;    /* threads of a multiprocessor that one block takes up */
	uint32_t running; /* blocks that have not ended */
	uint32_t blocks_count;
	struct sim_block block[];
};

struct sim_device {
	mr_cu_device ordinal;
	struct sim_options options;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a block ended, a place became free, a fault is due */
	uint32_t context_refs;
	mr_cu_result sticky; /* what every call returns once the context is lost */
	uint32_t calls[SIM_FAULT_KINDS];
	uint64_t flushes;
	uint64_t peer_bytes; /* registered for the DMA of NICs */

	int arena_fd;
	uint8_t *arena, *arena_alias;
	struct sim_late *late;    /* NULL where a NIC's writes are visible at once */
	struct sim_range *ranges; /* those of the arena are in address order */
	struct sim_view *views;
	size_t shown_bytes;

	struct sim_stream *streams;
	struct sim_op *ops, **ops_end; /* of all streams, in the order in which they came */
	bool copy_thread_runs;
	pthread_t copy_thread;
	struct sim_module *modules;
	struct sim_launch *launches;
	uint32_t resident; /* threads of all multiprocessors taken up by running blocks */

	bool fault_thread_runs, closing;
	bool fired[SIM_FAULTS]; /* timed faults that are past */
	pthread_t fault_thread;
	uint64_t first_launch_ns;
};

/*
 * mr_sim_enter locks the device of this thread's current context. NULL: *ret_r says
 * why, and nothing is locked.
 */
struct sim_device *mr_sim_enter(mr_cu_result *ret_r);
mr_cu_result mr_sim_leave(struct sim_device *dev, mr_cu_result r);

bool mr_sim_fault_has(const struct sim_options *o, enum sim_fault_kind kind);
/* Memory of its own for what NICs see: arena and alias are not the same bytes. */
bool mr_sim_is_split(const struct sim_options *o);
/* Counts a call of that kind; true if this is the one to fail. */
bool mr_sim_fault_now(struct sim_device *dev, enum sim_fault_kind kind);

/*
 * Late writes: with writes_ordering none, arena and alias are memory of their own. What a
 * NIC wrote to the arena gets into the alias by a flush, what a kernel wrote to the alias
 * gets into the arena by its fence. Both compare with what was seen last, line by line, so
 * the two sides may write at once as long as no line is both's. Device lock held, except
 * for the fence, which takes it.
 */
MR_MUST_USE int mr_sim_late_init(struct sim_device *dev);
void mr_sim_late_fini(struct sim_device *dev);
/* Forgets a range that is freed; offset and span are whole device pages. */
void mr_sim_late_drop(struct sim_device *dev, size_t offset, size_t span);
void mr_sim_late_flush(struct sim_device *dev);
/* What copies and kernels wrote, towards NICs. */
void mr_sim_late_publish(struct sim_device *dev);
void mr_sim_late_fence(void *dev);
/* HIDDENCOPY: on many a call, what NICs wrote gets to where kernels look. */
void mr_sim_late_hidden(struct sim_device *dev);

/*
 * A PCI device's BAR as device memory. open sets arena_fd and mem_bytes; catch sets the
 * handler that try relies on: false means that work() was left where it met a BAR that is
 * gone. work() must hold nothing that has to be given back.
 */
MR_MUST_USE int mr_sim_bar_parse(
	const char *value, char ret_address[SIM_ADDRESS_BYTES], struct mr_err *err);
MR_MUST_USE int mr_sim_bar_open(struct sim_device *dev, struct mr_err *err);
void mr_sim_bar_catch(void);
bool mr_sim_bar_gone(const struct sim_device *dev);
/* The device fell off the bus: every call fails, every block ends. Lock held. */
void mr_sim_bus_lost(struct sim_device *dev);
bool mr_sim_bar_try(const struct sim_device *dev, void (*work)(void *), void *argument);

/* Queues a copy of what for the device's thread, which the first such call starts. */
mr_cu_result mr_sim_op_add(struct sim_device *dev, const struct sim_op *what);
/* Waits until the stream has done all it had to, for ever if it stands still. */
mr_cu_result mr_sim_stream_wait(struct sim_device *dev, const struct sim_stream *s);
/* The same, but what a stream that stands still has left is taken from it. */
void mr_sim_op_forget(struct sim_device *dev, struct sim_stream *s);
/* Waits until every stream that does not stand still has done all it had to. */
void mr_sim_streams_drain(struct sim_device *dev);
/* Ends the thread of the copies; what was not done is forgotten. Device not locked. */
void mr_sim_streams_end(struct sim_device *dev);
/* A thread of the device's own, without the application's signals. */
int mr_sim_thread_start(pthread_t *ret_thread, void *(*run)(void *), void *argument);

/* memory */
uint8_t *mr_sim_map_aligned(int fd, size_t bytes);
int mr_sim_memory_init(struct sim_device *dev, struct mr_err *err);
void mr_sim_memory_fini(struct sim_device *dev);
/* Frees what the context held; the arena stays. */
void mr_sim_memory_reset(struct sim_device *dev);
struct sim_range *mr_sim_range_find(struct sim_device *dev, const void *ptr, size_t bytes);
/* Where kernels find ptr, which lies in the range at either address. */
uint8_t *mr_sim_alias(const struct sim_range *range, const void *ptr);
mr_cu_result mr_sim_mem_alloc(mr_cu_deviceptr *ret_ptr, size_t bytes);
mr_cu_result mr_sim_mem_free(mr_cu_deviceptr ptr);
mr_cu_result mr_sim_mem_address_range(
	mr_cu_deviceptr *ret_base, size_t *ret_bytes, mr_cu_deviceptr ptr);
mr_cu_result mr_sim_mem_host_alloc(void **ret_ptr, size_t bytes, unsigned int flags);
mr_cu_result mr_sim_mem_free_host(void *ptr);
mr_cu_result mr_sim_mem_host_register(void *ptr, size_t bytes, unsigned int flags);
mr_cu_result mr_sim_mem_host_unregister(void *ptr);
mr_cu_result mr_sim_mem_host_device_pointer(
	mr_cu_deviceptr *ret_ptr, void *host_ptr, unsigned int flags);
mr_cu_result mr_sim_pointer_get(void *ret_data, unsigned int attribute, mr_cu_deviceptr ptr);
mr_cu_result mr_sim_pointer_set(const void *value, unsigned int attribute, mr_cu_deviceptr ptr);
mr_cu_result mr_sim_mem_handle(void *ret_handle, mr_cu_deviceptr ptr, size_t bytes,
	unsigned int type, unsigned long long flags);
mr_cu_result mr_sim_map(mr_cu_deviceptr ptr, size_t bytes, void **ret_host);
mr_cu_result mr_sim_unmap(void *host);
mr_cu_result mr_sim_kernel_address(const void *ptr, mr_cu_deviceptr *ret_address);

/* registrations of a NIC's, as a kernel module counts them (mr_cuda_api.h) */
mr_cu_result mr_sim_peer_attach(mr_cu_deviceptr ptr, size_t bytes);
mr_cu_result mr_sim_peer_detach(mr_cu_deviceptr ptr, size_t bytes);
mr_cu_result mr_sim_peer_counts(uint64_t *ret_bytes, uint64_t *ret_revoked);

/* modules, launches, streams */
struct sim_stream *mr_sim_stream_find(struct sim_device *dev, mr_cu_stream stream);
/* Frees the launches of a stream that have ended; returns whether one still runs. */
bool mr_sim_stream_reap(struct sim_device *dev, const struct sim_stream *s);
void mr_sim_launch_fini(struct sim_device *dev);
mr_cu_result mr_sim_module_load(mr_cu_module *ret_module, const void *image);
mr_cu_result mr_sim_module_unload(mr_cu_module module);
mr_cu_result mr_sim_module_function(mr_cu_function *ret_fn, mr_cu_module module, const char *name);
mr_cu_result mr_sim_occupancy(
	int *ret_blocks, mr_cu_function fn, int block_size, size_t shared_bytes);
mr_cu_result mr_sim_launch_kernel(mr_cu_function fn, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared_bytes, mr_cu_stream stream, void **params, void **extra);
mr_cu_result mr_sim_stream_create(mr_cu_stream *ret_stream, unsigned int flags);
mr_cu_result mr_sim_stream_destroy(mr_cu_stream stream);
mr_cu_result mr_sim_stream_query(mr_cu_stream stream);
mr_cu_result mr_sim_stream_synchronize(mr_cu_stream stream);
mr_cu_result mr_sim_stream_wait_value(
	mr_cu_stream stream, mr_cu_deviceptr ptr, uint32_t value, unsigned int flags);
mr_cu_result mr_sim_stream_write_value(
	mr_cu_stream stream, mr_cu_deviceptr ptr, uint32_t value, unsigned int flags);
mr_cu_result mr_sim_copy_in(
	mr_cu_deviceptr to, const void *from, size_t bytes, mr_cu_stream stream);
mr_cu_result mr_sim_copy_out(void *to, mr_cu_deviceptr from, size_t bytes, mr_cu_stream stream);

#endif
