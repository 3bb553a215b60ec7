/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a device does with the persistent kernel, measured without NIC and DPDK.
 *
 *     bench_gpu DEVICE [--quick] [--gemm FATBIN] [--name]
 *
 * The first line names the device; with --name there is no other. Then one line per
 * measurement: a name, what was varied, what came out. Times are of this thread's clock,
 * which plays the lane; ratios are of one run. On the software device every line says so:
 * its figures are the software's, with fewer samples, two workers and a small product.
 *
 *     round_trip   give a slot, see it done: CPU -> kernel -> CPU, 1 to 16 in flight
 *     batches      slots a second that one thread can give and take
 *     asymptote    packets a second by batch size, as a share of the largest batch
 *     swap         l2swap on 64-byte frames in device memory, by workers
 *     starts       persistent kernel, one launch per batch, and a graph, side by side
 *     gemm         what a polling grid costs a matrix product beside it
 */
#include "mr_sim_image.h"
#include "rig.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 2048u
#define HEAD 128u

static struct rig_device device;
static bool quick;
static uint32_t most_workers = 16; /* a software device's workers want a core each */

static void begin_line(const char *name)
{
	printf("%s%s", name, device.sim ? " (software device)" : "");
}

static const enum mr_stage_id SWAP[] = {MR_STAGE_l2swap};
static const enum mr_stage_id FORWARD[] = {MR_STAGE_forward};

/* Every slot holds `count` frames of `length` bytes; what is given is only READY. */
static void fill(struct rig *r, uint32_t count, uint32_t length)
{
	const struct rig_plan *p = &r->plan;

	for (uint32_t s = 0; s < p->slots; s++) {
		struct mr_desc_in *d = mr_slot_desc_in(mr_ring_in(&r->ring, s));

		for (uint32_t i = 0; i < count; i++)
			d[i] = (struct mr_desc_in){
				.position = (s * p->batch + i) % p->buffers * (p->room / MR_UNIT),
				.length = (uint16_t)length,
				.head = HEAD};
	}
}

static void make(struct rig *r, uint32_t slots, uint32_t batch, uint32_t workers,
	const enum mr_stage_id *chain, bool host, bool mapped, uint32_t length)
{
	struct rig_plan plan = {.slots = slots,
		.batch = batch,
		.workers = workers,
		.buffers = slots * batch < 65536 ? slots * batch : 65536,
		.room = ROOM,
		.host = host,
		.mapped = mapped,
		.chain = chain,
		.chain_len = 1};

	rig_make(&device, &plan, r);
	fill(r, batch, length);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print_quantiles(uint64_t *ns, uint32_t n)
{
	qsort(ns, n, sizeof(*ns), by_size);
	printf(" p50 %llu p99 %llu p99.9 %llu max %llu ns, p99.9 is %.1f of p50, %u samples\n",
		(unsigned long long)ns[n / 2], (unsigned long long)ns[(uint64_t)n * 99 / 100],
		(unsigned long long)ns[(uint64_t)n * 999 / 1000], (unsigned long long)ns[n - 1],
		(double)ns[(uint64_t)n * 999 / 1000] / (double)ns[n / 2], n);
}

/* The workers of a software device may need this core. */
static void let_others(void)
{
	if (device.sim)
		sched_yield();
}

/* Keeps `flying` slots outstanding until `samples` came back; ns may be NULL. */
static uint64_t cycle(
	struct rig *r, uint32_t flying, uint32_t count, uint32_t samples, uint64_t *ns)
{
	const uint64_t began = mr_clock_ns();
	uint64_t given[256];
	uint32_t taken = 0, gave = 0;

	while (taken < samples) {
		if (gave < samples && mr_ring_outstanding(&r->ring) < flying) {
			given[r->ring.head % 256] = ns != NULL ? mr_clock_ns() : 0;
			mr_ring_give(&r->ring, count, 0);
			gave++;
		}
		if (mr_ring_take(&r->ring) == NULL) {
			let_others();
		} else {
			if (ns != NULL)
				ns[taken] = mr_clock_ns() - given[r->ring.tail % 256];
			mr_ring_release(&r->ring);
			taken++;
		}
	}
	return mr_clock_ns() - began;
}

static void round_trip(uint32_t count, uint32_t flying, bool mapped)
{
	uint32_t samples = quick ? 2000 : device.sim ? 100000 : 1000000;
	uint64_t *ns = calloc(samples, sizeof(*ns));
	struct rig r;

	make(&r, 16, 64, flying < most_workers ? flying : most_workers, FORWARD, false, mapped, 64);
	rig_start(&r);
	cycle(&r, flying, count, samples / 10, NULL);
	cycle(&r, flying, count, samples, ns);
	rig_stop(&r);
	begin_line("round_trip");
	printf(" packets %u in_flight %u workers %u ready %s:", count, flying, r.plan.workers,
		r.in_map != NULL ? "device" : "host");
	print_quantiles(ns, samples);
	rig_free(&r);
	free(ns);
}

/* Slots a second with 64 slots in flight. */
static double rate(
	uint32_t batch, uint32_t workers, const enum mr_stage_id *chain, bool host, uint32_t length)
{
	uint32_t samples = quick ? 1000 : device.sim ? 20000 : 1000000;
	struct rig r;
	uint64_t ns;

	if (batch > 64)
		samples = samples / (batch / 64) + 1;
	make(&r, 64, batch, workers, chain, host, true, length);
	rig_start(&r);
	cycle(&r, 64, batch, samples / 10 + 64, NULL);
	ns = cycle(&r, 64, batch, samples, NULL);
	rig_stop(&r);
	rig_free(&r);
	return samples * 1e9 / (double)ns;
}

static void batches(void)
{
	for (uint32_t workers = 1; workers <= most_workers; workers *= 4) {
		double per_s = rate(8, workers, FORWARD, false, 64);

		begin_line("batches");
		printf(" of 8, workers %u: %.3f million a second\n", workers, per_s / 1e6);
	}
}

static void asymptote(bool host)
{
	double packets[9], most = 0;
	uint32_t n = 0;

	for (uint32_t batch = 1; batch <= 256; batch *= 2) {
		packets[n] = batch * rate(batch, device.sim ? 1 : 8, SWAP, host, 1024);
		most = packets[n] > most ? packets[n] : most;
		n++;
	}
	for (uint32_t i = 0; i < n; i++) {
		begin_line("asymptote");
		printf(" %s memory, 1024 bytes, batch %u: %.2f million packets a second, %.0f %%\n",
			host ? "host" : "device", 1u << i, packets[i] / 1e6,
			100 * packets[i] / most);
	}
}

static void swap(void)
{
	for (uint32_t workers = 1; workers <= most_workers; workers *= 2) {
		double packets = 512 * rate(512, workers, SWAP, false, 64);

		begin_line("swap");
		printf(" 64 bytes, batch 512, workers %u: %.1f million packets a second\n", workers,
			packets / 1e6);
	}
}

/* The entries of the driver that only this comparison needs. */
struct graph_api {
	int (*begin)(mr_cu_stream stream, int mode);
	int (*end)(mr_cu_stream stream, void **ret_graph);
	int (*instantiate)(void **ret_exec, void *graph, unsigned long long flags);
	int (*launch)(void *exec, mr_cu_stream stream);
};

static bool load_graphs(struct graph_api *g)
{
	void *lib = device.sim ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (lib == NULL)
		return false;
	*(void **)&g->begin = dlsym(lib, "cuStreamBeginCapture_v2");
	*(void **)&g->end = dlsym(lib, "cuStreamEndCapture");
	*(void **)&g->instantiate = dlsym(lib, "cuGraphInstantiateWithFlags");
	*(void **)&g->launch = dlsym(lib, "cuGraphLaunch");
	return g->begin != NULL && g->end != NULL && g->instantiate != NULL && g->launch != NULL;
}

/*
 * The kernel as it would be without persistence: the exit word is set before, so it
 * works off what is READY and leaves. `slots` of one batch make up the packets.
 */
static uint64_t once(struct rig *r, uint32_t count, void *exec, const struct graph_api *g)
{
	const struct rig_plan *p = &r->plan;
	uint64_t began;

	for (uint32_t s = 0; s < p->slots; s++) {
		struct mr_slot_out *out = (struct mr_slot_out *)(uintptr_t)mr_ring_out(&r->ring, s);

		mr_store_relaxed(&out->done, s + 1 - p->slots);
	}
	began = mr_clock_ns();
	for (uint32_t s = 0; s < p->slots; s++) {
		struct mr_slot_in *in = mr_ring_in(&r->ring, s);

		in->count = (uint16_t)count;
		mr_store_release(&in->ready, s + 1);
	}
	if (exec != NULL)
		rig_leave(
			&device, (rig_enter(&device), g->launch(exec, r->stream)), "cuGraphLaunch");
	else
		rig_launch(r);
	for (uint32_t s = 0; s < p->slots; s++)
		while (mr_load_acquire(&mr_ring_out(&r->ring, s)->done) != s + 1)
			let_others();
	return mr_clock_ns() - began;
}

static void *capture(struct rig *r, const struct graph_api *g)
{
	void *graph = NULL, *exec = NULL;

	rig_enter(&device);
	rig_leave(&device, g->begin(r->stream, 2), "cuStreamBeginCapture");
	rig_launch(r);
	rig_enter(&device);
	rig_leave(&device, g->end(r->stream, &graph), "cuStreamEndCapture");
	rig_enter(&device);
	rig_leave(&device, g->instantiate(&exec, graph, 0), "cuGraphInstantiate");
	return exec;
}

static void starts(uint32_t packets)
{
	uint32_t samples = quick ? 50 : device.sim ? 500 : 5000;
	uint32_t batch = packets < 1024 ? packets : 1024, slots = packets / batch;
	uint64_t *ns = calloc(samples, sizeof(*ns));
	struct graph_api graphs;
	struct rig r;

	/* A ring has two slots at least; with one in use the worker after it finds nothing. */
	make(&r, 16, batch, slots, SWAP, false, true, 64);
	rig_start(&r);
	for (uint32_t i = 0; i < samples; i++) {
		const uint64_t began = mr_clock_ns();

		for (uint32_t s = 0; s < slots; s++)
			mr_ring_give(&r.ring, batch, 0);
		while (mr_ring_outstanding(&r.ring) != 0)
			if (mr_ring_take(&r.ring) != NULL)
				mr_ring_release(&r.ring);
			else
				let_others();
		ns[i] = mr_clock_ns() - began;
	}
	rig_stop(&r);
	rig_free(&r);
	begin_line("starts");
	printf(" persistent, %u packets:", packets);
	print_quantiles(ns, samples);
	for (uint32_t graph = 0; graph < 2; graph++) {
		void *exec = NULL;

		if (graph == 1 && !load_graphs(&graphs)) {
			begin_line("starts");
			printf(" graph, %u packets: left out, this device has no graphs\n",
				packets);
			break;
		}
		make(&r, slots < 2 ? 2 : slots, batch, slots < 2 ? 2 : slots, SWAP, false, false,
			64);
		mr_store_relaxed(&r.host_ctl->exit, 1);
		if (graph == 1)
			exec = capture(&r, &graphs);
		for (uint32_t i = 0; i < samples; i++) {
			ns[i] = once(&r, slots < 2 ? batch / 2 : batch, exec, &graphs);
			rig_wait(&r);
		}
		rig_free(&r);
		begin_line("starts");
		printf(" %s, %u packets:", graph == 1 ? "graph" : "launch", packets);
		print_quantiles(ns, samples);
	}
	free(ns);
}

struct gemm {
	mr_cu_function function;
	mr_cu_stream stream;
	mr_cu_deviceptr a, b, c;
	uint32_t n;
	uint64_t host; /* its own address, for a software device */
};

/* gemm.cu on a software device: one block, which is one thread. */
static void gemm_sim(uint64_t argument, uint32_t block, const struct mr_sim_orders *orders)
{
	const struct gemm *m = (const struct gemm *)(uintptr_t)argument;
	const float *a = (const float *)(uintptr_t)m->a, *b = (const float *)(uintptr_t)m->b;
	float *c = (float *)(uintptr_t)m->c;

	(void)block;
	(void)orders;
	for (uint32_t row = 0; row < m->n; row++)
		for (uint32_t column = 0; column < m->n; column++) {
			float sum = 0;

			for (uint32_t k = 0; k < m->n; k++)
				sum += a[row * m->n + k] * b[k * m->n + column];
			c[row * m->n + column] = sum;
		}
}

static const struct mr_sim_kernel gemm_sim_kernels[] = {{"gemm", gemm_sim}};
static const struct mr_sim_image gemm_sim_image = {MR_SIM_IMAGE_MAGIC, 1, gemm_sim_kernels};

static void *read_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	void *data = NULL;
	long bytes;

	if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (bytes = ftell(f)) <= 0)
		rig_die("%s: cannot be read", path);
	rewind(f);
	data = malloc((size_t)bytes);
	if (data == NULL || fread(data, 1, (size_t)bytes, f) != (size_t)bytes)
		rig_die("%s: cannot be read", path);
	fclose(f);
	return data;
}

static double gemm_ms(struct gemm *m, uint32_t rounds)
{
	void *params[] = {&m->a, &m->b, &m->c, &m->n}, *sim[] = {&m->host};
	const uint32_t tiles = device.sim ? 1 : m->n / 32, side = device.sim ? 1 : 32;
	const uint64_t began = mr_clock_ns();

	for (uint32_t i = 0; i < rounds; i++) {
		RIG_CU(&device,
			cuLaunchKernel(m->function, tiles, tiles, 1, side, side, 1, 0, m->stream,
				device.sim ? sim : params, NULL));
		/* A software device's stream holds one kernel. */
		if (device.sim)
			RIG_CU(&device, cuStreamSynchronize(m->stream));
	}
	RIG_CU(&device, cuStreamSynchronize(m->stream));
	return (double)(mr_clock_ns() - began) / 1e6 / rounds;
}

static void gemm(const char *path)
{
	struct gemm m = {.n = device.sim ? 128 : 4096};
	mr_cu_module module;
	const void *image = device.sim ? &gemm_sim_image : read_file(path);
	double alone, beside;

	m.host = (uint64_t)(uintptr_t)&m;

	RIG_CU(&device, cuModuleLoadData(&module, image));
	RIG_CU(&device, cuModuleGetFunction(&m.function, module, "gemm"));
	RIG_CU(&device, cuStreamCreate(&m.stream, MR_CU_STREAM_NON_BLOCKING));
	RIG_CU(&device, cuMemAlloc_v2(&m.a, (size_t)m.n * m.n * 4));
	RIG_CU(&device, cuMemAlloc_v2(&m.b, (size_t)m.n * m.n * 4));
	RIG_CU(&device, cuMemAlloc_v2(&m.c, (size_t)m.n * m.n * 4));
	gemm_ms(&m, 3);
	for (uint32_t workers = 1; workers <= most_workers; workers *= 4) {
		struct rig r;

		alone = gemm_ms(&m, 20);
		make(&r, 16, 64, workers, SWAP, false, true, 64);
		rig_start(&r);
		beside = gemm_ms(&m, 20);
		rig_stop(&r);
		rig_free(&r);
		begin_line("gemm");
		printf(" beside %u polling workers: %.3f ms, alone %.3f ms, %+.1f %%\n", workers,
			beside, alone, 100 * (beside / alone - 1));
	}
}

int main(int argc, char **argv)
{
	const char *gemm_path = NULL;
	bool name_only = false;

	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--quick") == 0)
			quick = true;
		else if (strcmp(argv[i], "--name") == 0)
			name_only = true;
		else if (strcmp(argv[i], "--gemm") == 0 && i + 1 < argc)
			gemm_path = argv[++i];
		else
			argc = 0;
	}
	if (argc < 2)
		rig_die("usage: bench_gpu DEVICE [--quick] [--gemm FATBIN] [--name]");
	setvbuf(stdout, NULL, _IOLBF, 0);
	rig_open(argv[1], &device);
	printf("device %s, provider %s, driver %d.%d, %d multiprocessors, READY %s\n", device.name,
		device.cu->provider, device.driver / 1000, device.driver % 1000 / 10,
		device.multiprocessors,
		device.can_map ? "can lie in device memory" : "in host memory");
	if (name_only)
		return 0;
	if (device.sim)
		most_workers = 2;
	for (int mapped = device.can_map; mapped >= 0; mapped--)
		for (uint32_t count = 1; count <= 64; count += 63)
			for (uint32_t flying = 1; flying <= 16; flying *= 2)
				round_trip(count, flying, mapped != 0);
	batches();
	asymptote(false);
	asymptote(true);
	swap();
	for (uint32_t packets = 8; packets <= 4096; packets *= 2)
		starts(packets);
	if (gemm_path != NULL || device.sim)
		gemm(gemm_path);
	else
		printf("gemm left out: no --gemm image\n");
	return 0;
}
