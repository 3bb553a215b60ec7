/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/gpu over the real driver and the software device: regions, a launch that
 * serves slots given by hand, and what is said and undone when something fails.
 */
#include "mr_cudasim.h"
#include "mr_gpu.h"
#include "mr_gpu_priv.h"
#include "mr_gpu_prove.h"
#include "mr_sim_image.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_eal.h>
#include <rte_gpudev.h>

#define PAGE ((size_t)64 << 10)
#define MEMORY ((size_t)4 << 20) /* of the device, by "mem=4MiB" */
#define ROOM 2048u
#define HEAD 128u
#define BATCH 8u
#define PATIENCE_NS 30000000000ull /* nothing here takes that long on a busy machine */
#define DRIVER_MS 60000u
#define STALL_MS 10000u /* where nothing is meant to stall */

/* One device with up to two lanes: header stages, and payload stages with workers. */
struct rig {
	struct mr_gpu *g;
	struct mr_gpu_region region;
	struct mr_gpu_stage stages[2][2];
	struct mr_gpu_lane lane[2];
	struct mr_ring ring[2];
	uint64_t given[2];
	struct mr_err err;
};

static void must(struct rig *r, int rc)
{
	if (rc != 0)
		fail_msg("%d: %s", rc, r->err.msg);
}

/* The sentence names the device, says these words, and is one line. */
static void says(const struct rig *r, const char *words)
{
	if (strstr(r->err.msg, "g0") == NULL || strstr(r->err.msg, words) == NULL ||
		strchr(r->err.msg, '\n') != NULL)
		fail_msg("'%s' does not say '%s'", r->err.msg, words);
}

static void stage(struct rig *r, uint32_t lane, const char *name, uint32_t counter_base)
{
	struct mr_gpu_lane *l = &r->lane[lane];
	struct mr_gpu_stage *s = &r->stages[lane][l->stages_count++];

	s->desc = mr_stage_find(name);
	s->counter_base = counter_base;
	mr_stage_param_defaults(s->desc, s->params);
}

static void rig_open(struct rig *r, const char *args)
{
	char all[256];

	memset(r, 0, sizeof(*r));
	snprintf(all, sizeof(all), "sim,mem=4MiB%s%s", args[0] != '\0' ? "," : "", args);
	must(r, mr_gpu_open("g0", all, DRIVER_MS, &r->g, &r->err));
}

static void rig_lanes(struct rig *r, enum mr_gpu_memory memory)
{
	must(r, mr_gpu_region_alloc(r->g, memory, 16 * PAGE, &r->region, &r->err));
	for (uint32_t i = 0; i < 2; i++) {
		r->lane[i] = (struct mr_gpu_lane){.name = i == 0 ? "head" : "body",
			.region = &r->region,
			.slots = 4,
			.batch = BATCH,
			.workers = i == 0 ? 1 : 3,
			.room = ROOM,
			.tx_count = 1,
			.first_seq = UINT32_MAX - 5,
			.work = i == 0 ? MR_WORK_THREAD : MR_WORK_WARP,
			.stages = r->stages[i],
			.ring = &r->ring[i],
			.slots_given = &r->given[i]};
	}
	stage(r, 0, "l2swap", 0);
	stage(r, 1, "checksum", 3);
	stage(r, 1, "drop", 6);
}

static int load_and_launch(struct mr_gpu *g, const struct mr_gpu_lane *lanes, uint32_t count,
	uint32_t host_timeout_ms, struct mr_err *err)
{
	int rc = mr_gpu_load(g, lanes, count, host_timeout_ms, 100, err);

	return rc == 0 ? mr_gpu_launch(&g, 1, err) : rc;
}

static void rig_launch(struct rig *r, const char *args, uint32_t host_timeout_ms)
{
	rig_open(r, args);
	rig_lanes(r, MR_GPU_MEMORY_DEVICE);
	must(r, load_and_launch(r->g, r->lane, 2, host_timeout_ms, &r->err));
}

static void rig_close(struct rig *r)
{
	mr_gpu_region_free(r->g, &r->region);
	mr_gpu_close(r->g, NULL);
	assert_int_equal(rte_gpu_count_avail(), 0);
}

static uint8_t *frame_at(struct rig *r, uint32_t buffer)
{
	return (uint8_t *)r->region.addr + (size_t)buffer * ROOM + HEAD;
}

/*
 * Gives a slot of n frames of `length` bytes, all of them `fill` but for the first six.
 * Both lanes use the same buffers, one after the other.
 */
static void give(struct rig *r, uint32_t lane, uint32_t n, uint32_t length, uint8_t fill)
{
	struct mr_ring *ring = &r->ring[lane];
	struct mr_desc_in *d = mr_slot_desc_in(mr_ring_in(ring, ring->head));

	for (uint32_t i = 0; i < n; i++) {
		memset(frame_at(r, i), fill, length);
		memset(frame_at(r, i), 0xd0, 6);
		d[i] = (struct mr_desc_in){
			.position = i * ROOM / MR_UNIT, .length = (uint16_t)length, .head = HEAD};
	}
	mr_ring_give(ring, n, 0);
	mr_store_relaxed_u64(&r->given[lane], r->given[lane] + 1);
}

static const struct mr_desc_out *take(struct rig *r, uint32_t lane)
{
	const uint64_t began = mr_clock_ns();
	const struct mr_slot_out *o;

	while ((o = mr_ring_take(&r->ring[lane])) == NULL) {
		if (mr_clock_ns() - began > PATIENCE_NS)
			fail_msg("no slot came back");
		usleep(50);
	}
	mr_ring_release(&r->ring[lane]);
	return mr_slot_desc_out(o);
}

/* Watches for that long, or until something is wrong. */
static enum mr_gpu_health watch(struct rig *r, uint64_t ms, uint32_t stall_ms)
{
	const uint64_t began = mr_clock_ns();
	enum mr_gpu_health health;

	do {
		health = mr_gpu_watch(r->g, stall_ms, &r->err);
		usleep(10000);
	} while (health == MR_GPU_HEALTHY && mr_clock_ns() - began < ms * 1000000u);
	return health;
}

static enum mr_gpu_health watch_until(struct rig *r, uint32_t stall_ms)
{
	return watch(r, PATIENCE_NS / 1000000u, stall_ms);
}

/* What an undo could leave behind: mappings, open files, threads. */
struct traces {
	uint32_t maps, files, threads;
};

static uint32_t entries_of(const char *path)
{
	DIR *dir = opendir(path);
	uint32_t n = 0;

	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

static struct traces traces_now(void)
{
	struct traces t = {0};
	FILE *f = fopen("/proc/self/maps", "r");
	char line[1024];

	while (fgets(line, sizeof(line), f) != NULL)
		t.maps += strstr(line, "/memfd:") != NULL;
	fclose(f);
	t.files = entries_of("/proc/self/fd");
	t.threads = entries_of("/proc/self/task");
	return t;
}

static void assert_no_more(struct traces before)
{
	struct traces now = traces_now();

	/* A joined thread's entry may outlive the join by a moment. */
	for (int i = 0; i < 1000 && now.threads > before.threads; i++) {
		usleep(1000);
		now = traces_now();
	}
	assert_int_equal(now.maps, before.maps);
	assert_int_equal(now.files, before.files);
	assert_int_equal(now.threads, before.threads);
}

static void an_open_device_says_what_it_is(void **state)
{
	const struct mr_gpu_info *info;
	struct rig r;

	(void)state;
	rig_open(&r, "sms=3,ordering=owner,flush=memops,gdr=0,map=0,guard=off");
	info = mr_gpu_info(r.g);
	assert_string_equal(info->provider, "sim");
	assert_string_equal(info->guard, "off");
	assert_true(info->name[0] != '\0');
	assert_int_equal(info->multiprocessors, 3);
	assert_false(info->gpudirect_rdma);
	assert_int_equal(
		mr_gpu_region_alloc(r.g, MR_GPU_MEMORY_DEVICE, 1, &r.region, &r.err), -ENOTSUP);
	says(&r, "has no GPUDirect RDMA");
	must(&r, mr_gpu_region_alloc(r.g, MR_GPU_MEMORY_HOST, 1, &r.region, &r.err));
	assert_true(info->dma_buf);
	assert_int_equal(info->writes_ordering, 100);
	assert_int_equal(info->flush_options, 2);
	assert_false(info->flush_needed);
	assert_false(info->can_map);
	rig_close(&r);
	rig_open(&r, "dmabuf=0");
	info = mr_gpu_info(r.g);
	assert_true(info->gpudirect_rdma);
	assert_false(info->dma_buf);
	assert_true(info->can_map);
	must(&r, mr_gpu_region_alloc(r.g, MR_GPU_MEMORY_DEVICE, 1, &r.region, &r.err));
	assert_int_equal(r.region.dmabuf.code, -ENOTSUP);
	rig_close(&r);
	mr_gpu_close(NULL, NULL);
}

static void a_device_that_cannot_be_opened_leaves_a_sentence_and_nothing_else(void **state)
{
	struct traces before;
	struct rig r = {0};

	(void)state;
	rig_open(&r, "");
	rig_close(&r);
	before = traces_now();
	assert_int_equal(mr_gpu_open("g0", "sim,speed=9", DRIVER_MS, &r.g, &r.err), -EINVAL);
	says(&r, "'speed' is not known");
	assert_int_equal(mr_gpu_open("g0", "sim,ordering=none,flush=none", DRIVER_MS, &r.g, &r.err),
		-ENOTSUP);
	says(&r, "offers no flush");
	/* No machine has a GPU there; most have no NVIDIA driver either. */
	assert_true(mr_gpu_open("g0", "0000:ff:1f.0", DRIVER_MS, &r.g, &r.err) < 0);
	says(&r, "");
	assert_int_equal(rte_gpu_count_avail(), 0);
	assert_no_more(before);
	/* The name is free, and taken once: the driver's older words are not repeated. */
	rig_open(&r, "");
	assert_int_equal(mr_gpu_open("g0", "sim", DRIVER_MS, &r.g, &r.err), -EEXIST);
	says(&r, "it is open already");
	rig_close(&r);
}

static void regions_are_whole_aligned_pages_that_kernels_can_name(void **state)
{
	static const size_t sizes[][2] = {{1, PAGE}, {PAGE, PAGE}, {PAGE + 1, 2 * PAGE}};
	struct traces before;
	struct rig r;

	(void)state;
	rig_open(&r, "");
	for (int memory = MR_GPU_MEMORY_DEVICE; memory <= MR_GPU_MEMORY_HOST; memory++) {
		struct mr_gpu_region a[MR_ARRAY_LEN(sizes)];

		for (size_t i = 0; i < MR_ARRAY_LEN(sizes); i++) {
			must(&r,
				mr_gpu_region_alloc(r.g, (enum mr_gpu_memory)memory, sizes[i][0],
					&a[i], &r.err));
			assert_int_equal(a[i].memory, memory);
			assert_int_equal(a[i].bytes, sizes[i][1]);
			assert_int_equal((uintptr_t)a[i].addr % PAGE, 0);
			assert_int_not_equal(a[i].kernel, 0);
			memset(a[i].addr, 0x5a, a[i].bytes);
		}
		for (size_t i = 0; i < MR_ARRAY_LEN(sizes); i++) {
			mr_gpu_region_free(r.g, &a[i]);
			assert_null(a[i].addr);
			mr_gpu_region_free(r.g, &a[i]);
		}
	}
	/* GPU memory exports as a dma-buf, of which nothing stays; host memory is not asked. */
	before = traces_now();
	must(&r, mr_gpu_region_alloc(r.g, MR_GPU_MEMORY_DEVICE, PAGE, &r.region, &r.err));
	assert_int_equal(r.region.dmabuf.code, 0);
	assert_int_equal(traces_now().files, before.files);
	mr_gpu_region_free(r.g, &r.region);
	/* All of it was given back; what nobody frees goes with the device. */
	must(&r, mr_gpu_region_alloc(r.g, MR_GPU_MEMORY_DEVICE, MEMORY, &r.region, &r.err));
	mr_gpu_close(r.g, NULL);
}

/* DPDK lib/gpudev/gpudev.c:591: rte_errno is negative for a code that gpudev does not know. */
static void a_region_that_cannot_be_had_is_refused_with_its_size(void **state)
{
	struct mr_gpu_region none = {0};
	struct rig r;

	(void)state;
	rig_open(&r, "fault=alloc@1,fault=hostalloc@1");
	assert_int_equal(
		mr_gpu_region_alloc(r.g, MR_GPU_MEMORY_DEVICE, PAGE, &none, &r.err), -ENOMEM);
	says(&r, "65536 bytes of GPU memory for packets: ");
	assert_int_equal(
		mr_gpu_region_alloc(r.g, MR_GPU_MEMORY_HOST, PAGE, &none, &r.err), -ENOMEM);
	says(&r, "cuMemHostAlloc of 65536 bytes");
	assert_int_equal(
		mr_gpu_region_alloc(r.g, MR_GPU_MEMORY_DEVICE, MEMORY + 1, &none, &r.err), -ENOMEM);
	says(&r, "4259840 bytes");
	for (int memory = MR_GPU_MEMORY_DEVICE; memory <= MR_GPU_MEMORY_HOST; memory++) {
		static const size_t bad[] = {0, (size_t)256 << 30, SIZE_MAX - 1};

		for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++) {
			assert_int_equal(mr_gpu_region_alloc(r.g, (enum mr_gpu_memory)memory,
						 bad[i], &none, &r.err),
				-EINVAL);
			says(&r, "256 GiB");
		}
	}
	rig_close(&r);
	/* gpudev has no code for this one and leaves a negative rte_errno, which has no words. */
	rig_open(&r, "fault=register@1");
	assert_int_equal(
		mr_gpu_region_alloc(r.g, MR_GPU_MEMORY_DEVICE, PAGE, &none, &r.err), -ENOTSUP);
	says(&r, "cuPointerSetAttribute SYNC_MEMOPS");
	assert_int_equal(r.err.code, -ENOTSUP);
	assert_null(none.addr);
	rig_close(&r);
}

static void a_device_that_lies_about_its_memory_is_found_at_once(void **state)
{
	static const struct {
		const char *args;
		enum mr_gpu_memory memory;
		enum mr_check_verdict verdict;
		const char *says;
	} rows[] = {
		{"", MR_GPU_MEMORY_DEVICE, MR_PASS, "2 sizes of 60 to 1522 bytes, both ways"},
		{"", MR_GPU_MEMORY_HOST, MR_PASS, "2 sizes of 60 to 1522 bytes, both ways"},
		{"alias=1,ordering=none", MR_GPU_MEMORY_DEVICE, MR_PASS, "to the last byte"},
		{"map=0", MR_GPU_MEMORY_DEVICE, MR_UNKNOWN, "cannot be mapped for the CPU"},
		{"alias=1,fault=short", MR_GPU_MEMORY_DEVICE, MR_FAIL,
			"what ports write is not what kernels read"},
		{"alias=1,fault=short", MR_GPU_MEMORY_HOST, MR_PASS, "to the last byte"},
		{"alias=1,fault=noread", MR_GPU_MEMORY_DEVICE, MR_FAIL,
			"what kernels write is not what ports read"},
		{"alias=1,fault=hiddencopy", MR_GPU_MEMORY_DEVICE, MR_FAIL,
			"copied behind the back"},
		{"alias=1,ordering=none,fault=noflush", MR_GPU_MEMORY_DEVICE, MR_FAIL,
			"flushed or not"},
	};
	static const uint32_t sizes[] = {60, 1522};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		const bool device = rows[i].memory == MR_GPU_MEMORY_DEVICE;
		struct mr_proof whose = {0}, p = {0};
		struct rig r;

		rig_open(&r, rows[i].args);
		must(&r, mr_gpu_region_alloc(r.g, rows[i].memory, 4 * PAGE, &r.region, &r.err));
		must(&r, mr_gpu_prove_memory(r.g, &r.region, &whose, &r.err));
		assert_int_equal(whose.verdict, MR_PASS);
		assert_non_null(strstr(whose.value, device ? "GPU memory of" : "page-locked"));
		must(&r, mr_gpu_prove_window(r.g, &r.region, sizes, 2, &p, &r.err));
		if (p.verdict != rows[i].verdict || strstr(p.value, rows[i].says) == NULL)
			fail_msg("'%s', %s memory: %s: %s", rows[i].args,
				device ? "device" : "host", mr_check_verdict_name(p.verdict),
				p.value);
		rig_close(&r);
	}
}

/* What is not all of an allocation, or the other kind, is not what was asked for. */
static void memory_that_is_not_what_was_asked_for_is_told(void **state)
{
	struct mr_gpu_region wrong, beside;
	struct mr_proof p = {0};
	struct rig r;

	(void)state;
	rig_open(&r, "");
	must(&r, mr_gpu_region_alloc(r.g, MR_GPU_MEMORY_DEVICE, 4 * PAGE, &r.region, &r.err));
	wrong = r.region;
	wrong.memory = MR_GPU_MEMORY_HOST;
	must(&r, mr_gpu_prove_memory(r.g, &wrong, &p, &r.err));
	assert_int_equal(p.verdict, MR_FAIL);
	assert_non_null(strstr(p.value, "asked for host memory, and the driver says of"));
	p = (struct mr_proof){0};
	wrong = r.region;
	must(&r, mr_gpu_region_alloc(r.g, MR_GPU_MEMORY_DEVICE, PAGE, &beside, &r.err));
	assert_ptr_equal(beside.addr, (uint8_t *)r.region.addr + r.region.bytes);
	wrong.bytes += PAGE;
	must(&r, mr_gpu_prove_memory(r.g, &wrong, &p, &r.err));
	assert_int_equal(p.verdict, MR_FAIL);
	assert_non_null(strstr(p.value, "the driver's allocation is 262144 bytes at"));
	mr_gpu_region_free(r.g, &beside);
	rig_close(&r);
}

static void a_registration_that_the_device_refuses_is_a_sentence(void **state)
{
	uint64_t bytes, revoked;
	struct rig r;

	(void)state;
	rig_open(&r, "fault=attach@2");
	must(&r, mr_gpu_region_alloc(r.g, MR_GPU_MEMORY_DEVICE, 4 * PAGE, &r.region, &r.err));
	must(&r, mr_gpu_peer_attach(r.g, &r.region, &r.err));
	assert_int_equal(mr_gpu_peer_attach(r.g, &r.region, &r.err), -ENOTSUP);
	says(&r, "registration of 262144 bytes at ");
	must(&r, mr_gpu_peer_counts(r.g, &bytes, &revoked));
	assert_int_equal(bytes, 4 * PAGE);
	mr_gpu_peer_detach(r.g, &r.region);
	must(&r, mr_gpu_peer_counts(r.g, &bytes, &revoked));
	assert_int_equal(bytes, 0);
	rig_close(&r);
}

static void flushes_reach_the_device_where_they_are_needed(void **state)
{
	struct rig r;

	(void)state;
	rig_launch(&r, "ordering=none,flush=host", 0);
	assert_true(mr_gpu_info(r.g)->flush_needed);
	assert_int_equal(mr_gpu_flush(r.g, 0), 0);
	assert_int_equal(mr_gpu_flush(r.g, 1), 0);
	assert_int_equal(mr_cudasim_flushes(0), 2); /* the only device is number 0 */
	assert_int_equal(mr_gpu_watch(r.g, STALL_MS, &r.err), MR_GPU_HEALTHY);
	must(&r, mr_gpu_stop(r.g, 2000, &r.err));
	rig_close(&r);
}

/* DPDK lib/gpudev/gpudev.c rte_gpu_comm_populate_list_pkts: a barrier that failed is ignored. */
static void a_flush_that_fails_is_a_lost_device_and_names_its_lane(void **state)
{
	struct mr_gpu_copier copier;
	struct rig r;

	(void)state;
	/* A lane that copies what it sends flushes what it received all the same. */
	for (int copies = 0; copies < 2; copies++) {
		rig_open(&r, "flush=none");
		rig_lanes(&r, MR_GPU_MEMORY_DEVICE);
		r.lane[1].copier = copies ? &copier : NULL;
		r.lane[1].tx_copy = copies;
		must(&r, load_and_launch(r.g, r.lane, 2, 0, &r.err));
		assert_int_equal(mr_gpu_flush(r.g, 1), -ENOTSUP);
		assert_int_equal(mr_gpu_watch(r.g, STALL_MS, &r.err), MR_GPU_LOST);
		if (strstr(r.err.msg, "lane 'body' cannot flush") == NULL ||
			strstr(r.err.msg, "device 'g0'") == NULL)
			fail_msg("%s", r.err.msg);
		must(&r, mr_gpu_stop(r.g, 2000, &r.err));
		rig_close(&r);
	}
}

/* 3000 slots over both lanes: swapped and sent by one, summed and dropped by the other. */
static void serve(struct rig *r)
{
	uint64_t counters[MR_COUNTERS_MAX];

	for (uint32_t i = 0; i < 1500; i++) {
		const uint32_t n = 1 + i % BATCH, length = 60 + i % 1000;
		const struct mr_desc_out *d;

		give(r, 0, n, length, (uint8_t)i);
		d = take(r, 0);
		for (uint32_t k = 0; k < n; k++) {
			assert_int_equal(d[k].verdict, MR_TX);
			assert_int_equal(d[k].length, length);
			assert_int_equal(d[k].head, HEAD);
			assert_int_equal(frame_at(r, k)[0], (uint8_t)i);
			assert_int_equal(frame_at(r, k)[6], 0xd0);
		}
		give(r, 1, n, length, (uint8_t)i);
		d = take(r, 1);
		for (uint32_t k = 0; k < n; k++)
			assert_int_equal(d[k].verdict, MR_DROP);
	}
	assert_int_equal(watch(r, 50, STALL_MS), MR_GPU_HEALTHY);
	must(r, mr_gpu_stop(r->g, STALL_MS, &r->err));
	/* All three workers' counters, and they are final. */
	mr_gpu_counters(r->g, 1, counters);
	assert_int_equal(counters[3], 1500 / BATCH * 36 + 1 + 2 + 3 + 4);
	assert_int_equal(counters[0], 0);
	mr_gpu_counters(r->g, 0, counters);
	assert_int_equal(counters[3], 0);
	assert_int_equal(mr_gpu_watch(r->g, 1, &r->err), MR_GPU_HEALTHY);
	must(r, mr_gpu_stop(r->g, 1, &r->err));
}

static void slots_are_served_wherever_packets_and_ready_lie(void **state)
{
	static const char *const args[] = {"map=1", "map=0"};
	struct traces before;

	(void)state;
	before = traces_now();
	for (size_t i = 0; i < MR_ARRAY_LEN(args); i++)
		for (int memory = MR_GPU_MEMORY_DEVICE; memory <= MR_GPU_MEMORY_HOST; memory++) {
			struct rig r;

			rig_open(&r, args[i]);
			rig_lanes(&r, (enum mr_gpu_memory)memory);
			must(&r, load_and_launch(r.g, r.lane, 2, 0, &r.err));
			assert_true((r.ring[0].in_map != NULL) == (i == 0));
			serve(&r);
			rig_close(&r);
			assert_no_more(before);
		}
}

/* Of the lane's workers, which of them has beaten ten times since then; a bit each. */
static uint64_t have_beaten(struct rig *r, uint32_t lane, const uint32_t since[MR_WORKERS_MAX])
{
	uint32_t beats[MR_WORKERS_MAX];
	uint64_t sum = mr_gpu_beats(r->g, lane, beats), beaten = 0;

	for (uint32_t w = 0; w < MR_WORKERS_MAX; w++) {
		sum -= beats[w];
		beaten |= (uint64_t)(beats[w] - since[w] >= 10) << w;
	}
	assert_int_equal(sum, 0);
	return beaten;
}

static void wait_for_beats(
	struct rig *r, uint32_t lane, const uint32_t since[MR_WORKERS_MAX], uint64_t workers)
{
	const uint64_t began = mr_clock_ns();

	while (have_beaten(r, lane, since) != workers) {
		assert_true(mr_clock_ns() - began < PATIENCE_NS);
		usleep(1000);
	}
}

static void workers_beat_while_they_poll(void **state)
{
	uint32_t since[MR_WORKERS_MAX];
	struct rig r;

	(void)state;
	rig_launch(&r, "", 0);
	for (uint32_t lane = 0; lane < 2; lane++) {
		memset(since, 0xff, sizeof(since));
		(void)mr_gpu_beats(r.g, lane, since);
		for (uint32_t w = r.lane[lane].workers; w < MR_WORKERS_MAX; w++)
			assert_int_equal(since[w], 0);
		wait_for_beats(&r, lane, since, (1u << r.lane[lane].workers) - 1);
	}
	assert_int_equal(mr_gpu_watch(r.g, STALL_MS, &r.err), MR_GPU_HEALTHY);
	rig_close(&r); /* close alone ends the launch */
}

static void a_launch_that_the_abi_cannot_say_is_refused(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "");
	rig_lanes(&r, MR_GPU_MEMORY_DEVICE);
	assert_int_equal(load_and_launch(r.g, r.lane, 0, 0, &r.err), -EINVAL);
	says(&r, "no lanes");
	r.lane[1].workers = 0;
	assert_int_equal(load_and_launch(r.g, r.lane, 2, 0, &r.err), -EINVAL);
	says(&r, "workers");
	r.lane[1].workers = MR_WORKERS_MAX + 1;
	assert_int_equal(load_and_launch(r.g, r.lane, 2, 0, &r.err), -EINVAL);
	says(&r, "lane 'body' has too few or too many workers");
	r.lane[1].workers = 1;
	r.lane[1].work = MR_WORK_THREAD;
	assert_int_equal(load_and_launch(r.g, r.lane, 2, 0, &r.err), -EINVAL);
	says(&r, "a stage that its kernel does not run");
	r.lane[1].work = MR_WORK_ORDER;
	r.lane[1].workers = 2;
	assert_int_equal(load_and_launch(r.g, r.lane, 2, 0, &r.err), -EINVAL);
	says(&r, "an order to keep, but several workers");
	r.lane[1].workers = 1;
	r.lane[1].work = MR_WORK_WARP;
	r.stages[1][0].counter_base = MR_COUNTERS_MAX - 2;
	assert_int_equal(load_and_launch(r.g, r.lane, 2, 0, &r.err), -EINVAL);
	says(&r, "counters");
	r.stages[1][0].counter_base = MR_COUNTERS_MAX - 3;
	r.lane[1].tx_count = MR_TX_MAX + 1;
	assert_int_equal(load_and_launch(r.g, r.lane, 2, 0, &r.err), -EINVAL);
	says(&r, "tx list");
	r.lane[1].tx_count = MR_TX_MAX;
	r.lane[1].room = (uint32_t)r.region.bytes + 1;
	assert_int_equal(load_and_launch(r.g, r.lane, 2, 0, &r.err), -EINVAL);
	says(&r, "larger than their region");
	r.lane[1].room = ROOM;
	r.lane[1].stages_count = MR_CHAIN_MAX + 1;
	assert_int_equal(load_and_launch(r.g, r.lane, 2, 0, &r.err), -EINVAL);
	says(&r, "too many stages");
	/* Nothing was begun, so the right one still goes. */
	r.lane[1].stages_count = 2;
	must(&r, load_and_launch(r.g, r.lane, 2, 0, &r.err));
	assert_int_equal(load_and_launch(r.g, r.lane, 2, 0, &r.err), -EALREADY);
	says(&r, "loaded before");
	rig_close(&r);
	rig_open(&r, "");
	rig_lanes(&r, MR_GPU_MEMORY_DEVICE);
	r.lane[1].slots = 3;
	assert_int_equal(load_and_launch(r.g, r.lane, 2, 0, &r.err), -EINVAL);
	says(&r, "lane 'body': ring of 3 slots");
	rig_close(&r);
}

/*
 * CUDA C++ Programming Guide, grid synchronization: blocks that are not resident never run, and
 * others wait for them.
 */
static void more_workers_than_the_device_holds_at_once_are_refused_with_both_numbers(void **state)
{
	struct rig r;

	(void)state;
	/* A multiprocessor holds 8 blocks of 256 threads: two kernels need one each. */
	rig_open(&r, "sms=2");
	rig_lanes(&r, MR_GPU_MEMORY_DEVICE);
	r.lane[1].workers = 9;
	assert_int_equal(load_and_launch(r.g, r.lane, 2, 0, &r.err), -ENOSPC);
	says(&r, "10 workers need 3 multiprocessors at once, it has 2");
	rig_close(&r);
	rig_open(&r, "sms=2");
	rig_lanes(&r, MR_GPU_MEMORY_DEVICE);
	r.lane[0].workers = 8;
	r.lane[1].workers = 8;
	must(&r, load_and_launch(r.g, r.lane, 2, 0, &r.err));
	rig_close(&r);
}

/* Another kernel on the device: a block says that it has a place, and keeps it until word 0 is set.
 */
static void hog(uint64_t argument, uint32_t block, const struct mr_sim_orders *orders)
{
	uint32_t *word = (uint32_t *)(uintptr_t)argument;

	mr_store_release(&word[1 + block], 1);
	while (mr_load_acquire(word) == 0 && mr_load_relaxed(&orders->fault) != MR_SIM_FAULT_DIE)
		usleep(1000);
}

/* Seven of the eight places of a device with one multiprocessor are taken. */
struct hogs {
	struct mr_gpu_drv_module *module;
	struct mr_gpu_drv_launch *launch;
	void *word; /* 1: leave */
};

static void hogs_start(struct hogs *h, int16_t id)
{
	static const struct mr_sim_kernel kernels[] = {{"hog", hog}};
	static const struct mr_sim_image sim_image = {MR_SIM_IMAGE_MAGIC, 1, kernels};
	const struct mr_gpu_drv_image image = {.sim = &sim_image};
	struct mr_gpu_drv *drv = mr_gpu_drv_get(id);
	struct mr_err err;
	uint64_t address;

	assert_non_null(drv);
	assert_int_equal(mr_gpu_drv_host_alloc(drv, PAGE, &h->word, &err), 0);
	memset(h->word, 0, PAGE);
	assert_int_equal(mr_gpu_drv_kernel_address(drv, h->word, &address, &err), 0);
	assert_int_equal(mr_gpu_drv_module_load(drv, &image, &h->module, &err), 0);
	assert_int_equal(mr_gpu_drv_launch(h->module, "hog", 7, 256, address, &h->launch, &err), 0);
	for (uint32_t i = 0; i < 7; i++)
		while (mr_load_acquire((uint32_t *)h->word + 1 + i) == 0)
			usleep(1000);
}

static void hogs_end(struct hogs *h)
{
	struct mr_err err;

	mr_store_release(h->word, 1);
	while (mr_gpu_drv_launch_query(h->launch, &err) != 0)
		usleep(1000);
	usleep(100000);
	assert_int_equal(mr_gpu_drv_launch_free(h->launch, &err), 0);
	assert_int_equal(mr_gpu_drv_module_unload(h->module, &err), 0);
}

/*
 * CUDA C++ Programming Guide, grid synchronization: blocks that are not resident never run, and
 * others wait for them.
 */
static void a_worker_that_never_starts_is_named_and_can_do_no_harm_later(void **state)
{
	struct hogs hogs;
	struct rig r;

	(void)state;
	rig_open(&r, "sms=1");
	rig_lanes(&r, MR_GPU_MEMORY_DEVICE);
	hogs_start(&hogs, rte_gpu_find_next(0, RTE_GPU_ID_ANY));
	r.lane[1].workers = 2; /* one of them finds a place */
	assert_int_equal(load_and_launch(r.g, &r.lane[1], 1, 0, &r.err), -ETIME);
	says(&r, "of lane 'body' (kernel mr_kernel_warp) did not start within");
	/* The late worker's memory is still there, and so is the order to leave. */
	hogs_end(&hogs);
	rig_close(&r);
}

static void *make_room(void *hogs)
{
	usleep(900000);
	mr_store_release(((struct hogs *)hogs)->word, 1);
	return NULL;
}

static void kernels_of_one_device_outlive_the_wait_for_those_of_another(void **state)
{
	struct mr_gpu *late, *both[2];
	struct hogs hogs;
	pthread_t thread;
	struct rig r;

	(void)state;
	rig_open(&r, "");
	rig_lanes(&r, MR_GPU_MEMORY_HOST);
	must(&r, mr_gpu_open("g1", "sim,mem=4MiB,sms=1", DRIVER_MS, &late, &r.err));
	hogs_start(&hogs, rte_gpu_find_next(1, RTE_GPU_ID_ANY));
	r.lane[1].workers = 2;
	must(&r, mr_gpu_load(r.g, r.lane, 1, 300, 100, &r.err));
	must(&r, mr_gpu_load(late, &r.lane[1], 1, 300, 100, &r.err));
	both[0] = r.g;
	both[1] = late;
	assert_int_equal(pthread_create(&thread, NULL, make_room, &hogs), 0);
	must(&r, mr_gpu_launch(both, 2, &r.err));
	pthread_join(thread, NULL);
	assert_int_equal(mr_gpu_watch(r.g, STALL_MS, &r.err), MR_GPU_HEALTHY);
	assert_int_equal(mr_gpu_watch(late, STALL_MS, &r.err), MR_GPU_HEALTHY);
	assert_int_equal(mr_gpu_launch(both, 2, &r.err), -EINVAL);
	assert_int_equal(mr_gpu_watch(r.g, STALL_MS, &r.err), MR_GPU_HEALTHY);
	must(&r, mr_gpu_stop(late, STALL_MS, &r.err));
	hogs_end(&hogs);
	must(&r, mr_gpu_close(late, &r.err));
	must(&r, mr_gpu_stop(r.g, STALL_MS, &r.err));
	rig_close(&r);
}

static void a_lost_device_and_a_dead_worker_are_lost(void **state)
{
	static const char *const args[][2] = {
		{"fault=lost@100", "CUDA_ERROR_ECC_UNCORRECTABLE"},
		{"fault=die@0:100", "CUDA_ERROR_LAUNCH_FAILED"},
		{"fault=die@2:100", "CUDA_ERROR_LAUNCH_FAILED"},
	};
	struct traces before;

	(void)state;
	before = traces_now();
	for (size_t i = 0; i < MR_ARRAY_LEN(args); i++) {
		struct rig r;

		rig_launch(&r, args[i][0], 0);
		assert_int_equal(watch_until(&r, STALL_MS), MR_GPU_LOST);
		says(&r, args[i][1]);
		must(&r, mr_gpu_stop(r.g, STALL_MS, &r.err));
		rig_close(&r);
		assert_no_more(before);
	}
}

static void a_device_lost_before_hello_fails_the_launch_with_the_drivers_words(void **state)
{
	struct traces before;
	struct rig r;

	(void)state;
	before = traces_now();
	rig_open(&r, "fault=lost@0");
	rig_lanes(&r, MR_GPU_MEMORY_DEVICE);
	/* A worker may have said hello before it died; then the watch finds it. */
	if (load_and_launch(r.g, r.lane, 2, 0, &r.err) == 0)
		assert_int_equal(watch_until(&r, STALL_MS), MR_GPU_LOST);
	says(&r, "CUDA_ERROR_ECC_UNCORRECTABLE");
	rig_close(&r);
	assert_no_more(before);
}

/* A lane at a time, all of them before any worker changes over. */
static void running_kernels_take_other_parameters_and_say_so(void **state)
{
	static const uint8_t table[128];
	struct rig r;

	(void)state;
	rig_open(&r, "");
	rig_lanes(&r, MR_GPU_MEMORY_DEVICE);
	r.stages[1][0].table = table;
	r.stages[1][0].table_bytes = 65;
	r.stages[1][0].table_room = 64;
	assert_int_equal(load_and_launch(r.g, r.lane, 2, 0, &r.err), -ENOSPC);
	says(&r, "a table of 65 bytes");
	rig_close(&r);
	rig_open(&r, "");
	rig_lanes(&r, MR_GPU_MEMORY_DEVICE);
	r.stages[1][0].table = table;
	r.stages[1][0].table_bytes = 64;
	r.stages[1][0].table_room = 64;
	must(&r, load_and_launch(r.g, r.lane, 2, 0, &r.err));
	r.stages[1][0].table_bytes = 65;
	assert_int_equal(mr_gpu_renew(r.g, 1, r.stages[1], NULL, NULL, &r.err), -ENOSPC);
	says(&r, "there is room for 64");
	r.stages[1][0].table_bytes = 64;
	for (uint32_t turn = 0; turn < 4; turn++) {
		uint32_t reason = turn % 2 == 0 ? MR_REASON_runt : MR_REASON_consumed;
		uint64_t began = mr_clock_ns();

		memcpy(r.stages[1][1].params, &reason, sizeof(reason));
		for (uint32_t i = 0; i < 2; i++)
			must(&r, mr_gpu_renew(r.g, i, r.stages[i], NULL, NULL, &r.err));
		if (turn > 0) {
			give(&r, 1, 1, 60, 1);
			assert_int_not_equal(take(&r, 1)->arg, reason);
		}
		mr_gpu_publish(r.g);
		while (mr_gpu_taken(r.g, &r.err) != 0)
			assert_true(mr_clock_ns() - began < PATIENCE_NS);
		give(&r, 1, 1, 60, 1);
		assert_int_equal(take(&r, 1)->arg, reason);
	}
	must(&r, mr_gpu_stop(r.g, 5000, &r.err));
	/* Nobody is left to take it. */
	mr_gpu_publish(r.g);
	assert_int_equal(mr_gpu_taken(r.g, &r.err), -EAGAIN);
	says(&r, "worker 0 of lane 'head' has not yet taken");
	assert_int_equal(mr_gpu_renew(r.g, 1, r.stages[1], NULL, NULL, &r.err), -EBUSY);
	rig_close(&r);
}

static uint64_t two_pages_and_a_byte(const uint8_t params[MR_PARAM_BYTES])
{
	(void)params;
	return 2 * PAGE + 1;
}

static uint64_t pages_by_reason(const uint8_t params[MR_PARAM_BYTES])
{
	uint32_t reason;

	memcpy(&reason, params, sizeof(reason));
	return (1 + reason) * PAGE;
}

static uint64_t all_memory(const uint8_t params[MR_PARAM_BYTES])
{
	(void)params;
	return MEMORY;
}

static uint64_t too_much(const uint8_t params[MR_PARAM_BYTES])
{
	(void)params;
	return MR_STATE_MAX + 1;
}

static void assert_zeroed(uint64_t address, size_t bytes)
{
	uint8_t *copy = malloc(bytes);
	struct mr_err err;

	assert_true(address % PAGE == 0);
	assert_int_equal(mr_gpu_drv_download(mr_gpu_drv_get(0), copy, address, bytes, &err), 0);
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(copy[i], 0);
	free(copy);
}

/* What somebody else has left in the device's memory. */
static void leave_traces(struct rig *r)
{
	must(r, mr_gpu_region_alloc(r->g, MR_GPU_MEMORY_DEVICE, MEMORY / 2, &r->region, &r->err));
	memset(r->region.addr, 0xff, r->region.bytes);
	mr_gpu_region_free(r->g, &r->region);
}

/* The chains are "l2swap, drop" and "checksum, drop"; l2swap and both drops keep something. */
static void rig_states(struct rig *r, struct mr_stage_desc *l2swap, struct mr_stage_desc *drop,
	const struct mr_state_desc *keeps)
{
	uint32_t reason = 2;

	rig_open(r, "");
	leave_traces(r);
	rig_lanes(r, MR_GPU_MEMORY_DEVICE);
	stage(r, 0, "drop", 6);
	*l2swap = *r->stages[0][0].desc;
	*drop = *r->stages[0][1].desc;
	l2swap->state = drop->state = keeps;
	r->stages[0][0].desc = l2swap;
	r->stages[0][1].desc = r->stages[1][1].desc = drop;
	memset(r->stages[0][0].params, 0, sizeof(reason));
	memset(r->stages[1][1].params, 0, sizeof(reason));
	memcpy(r->stages[0][1].params, &reason, sizeof(reason));
}

static void stages_find_zeroes_of_their_own_and_of_the_device(void **state)
{
	static const struct mr_state_desc keeps = {two_pages_and_a_byte, pages_by_reason, "reason"};
	struct mr_stage_desc l2swap, drop;
	struct mr_chain_dev c[2][2];
	struct traces before;
	struct rig r;

	(void)state;
	before = traces_now();
	rig_states(&r, &l2swap, &drop, &keeps);
	must(&r, load_and_launch(r.g, r.lane, 2, 0, &r.err));
	for (uint32_t i = 0; i < 2; i++)
		must(&r,
			mr_gpu_drv_download(mr_gpu_drv_get(0), c[i], r.g->lanes[i].chain,
				sizeof(c[i]), &r.err));
	for (uint32_t i = 0; i < 4; i++)
		if (i != 2)
			assert_zeroed(c[i / 2][i % 2].state, 2 * PAGE + 1);
	assert_zeroed(c[0][0].shared, PAGE);
	assert_zeroed(c[0][1].shared, 3 * PAGE);
	assert_true(c[1][0].state == 0 && c[1][0].shared == 0);
	assert_true(c[0][0].state != c[0][1].state && c[0][1].state != c[1][1].state);
	assert_true(c[0][0].shared != c[0][1].shared && c[0][1].shared == c[1][1].shared);
	rig_close(&r);
	assert_no_more(before);
}

static void what_a_stage_keeps_and_does_not_fit_is_refused_with_the_parameter(void **state)
{
	static const struct mr_state_desc cases[] = {{all_memory, NULL, "streams"},
		{NULL, all_memory, "streams"}, {too_much, NULL, NULL}};
	static const char *const words[][3] = {
		{"lane 'head': stage 'l2swap' keeps 4194304 bytes for this lane",
			"lower its parameter 'streams'", "CUDA_ERROR_OUT_OF_MEMORY"},
		{"keeps 4194304 bytes for the device", "lower its parameter 'streams'",
			"CUDA_ERROR_OUT_OF_MEMORY"},
		{"keeps 1099511627777 bytes for this lane", "leave the stage out",
			"at most 1099511627776"}};
	struct mr_stage_desc l2swap, drop;
	struct traces before;
	struct rig r;

	(void)state;
	before = traces_now();
	for (uint32_t i = 0; i < 3; i++) {
		rig_states(&r, &l2swap, &drop, &cases[i]);
		assert_true(mr_gpu_load(r.g, r.lane, 2, 0, 100, &r.err) < 0);
		for (uint32_t k = 0; k < 3; k++)
			says(&r, words[i][k]);
		rig_close(&r);
	}
	assert_no_more(before);
}

/*
 * NVIDIA/l2fwd-nv src/kernel.cu:126: one thread polls without a heartbeat, and nothing ends the
 * kernel when its host stalls.
 */
static void a_worker_that_stands_still_is_stalled_and_does_not_leave(void **state)
{
	uint32_t since[MR_WORKERS_MAX];
	struct traces before;
	struct rig r;

	(void)state;
	before = traces_now();
	rig_launch(&r, "fault=stall@0:50", 0);
	assert_int_equal(watch_until(&r, 500), MR_GPU_STALLED);
	says(&r, "has not beaten for 500 ms");
	/* The two others of its lane go on, so that the sum of their beats would not tell. */
	(void)mr_gpu_beats(r.g, 1, since);
	wait_for_beats(&r, 1, since, 1u << 1 | 1u << 2);
	assert_int_equal(mr_gpu_stop(r.g, 100, &r.err), -ETIME);
	says(&r, "did not leave within 100 ms");
	/* The device is taken down all the same. */
	rig_close(&r);
	assert_no_more(before);
}

static void a_worker_that_owes_a_slot_and_only_beats_is_stalled(void **state)
{
	struct rig r;

	(void)state;
	/* Block 0 of either kernel: worker 0 of both lanes. */
	rig_launch(&r, "fault=idle@0:0", 0);
	usleep(100000);
	/* As long as nothing waits for it, it owes nothing. */
	assert_int_equal(watch(&r, 3000, 2000), MR_GPU_HEALTHY);
	give(&r, 1, 1, 60, 0);
	assert_int_equal(watch_until(&r, 500), MR_GPU_STALLED);
	says(&r, "worker 0 of lane 'body' beats, but has finished no slot for 500 ms");
	must(&r, mr_gpu_stop(r.g, STALL_MS, &r.err));
	rig_close(&r);
}

static void a_slot_is_owed_by_the_worker_whose_turn_it_is(void **state)
{
	struct rig r;

	(void)state;
	rig_launch(&r, "fault=idle@1:0", 0);
	usleep(100000);
	give(&r, 1, 1, 60, 0); /* worker 0 */
	(void)take(&r, 1);
	assert_int_equal(watch(&r, 3000, 2000), MR_GPU_HEALTHY);
	give(&r, 1, 1, 60, 0); /* worker 1 */
	give(&r, 1, 1, 60, 0); /* worker 2 */
	assert_int_equal(watch_until(&r, 500), MR_GPU_STALLED);
	says(&r, "worker 1 of lane 'body' beats, but");
	rig_close(&r);
}

static void time_in_which_nobody_watched_does_not_count_in_full(void **state)
{
	struct rig r;

	(void)state;
	rig_launch(&r, "fault=stall@0:0", 0);
	assert_int_equal(mr_gpu_watch(r.g, 1000, &r.err), MR_GPU_HEALTHY);
	usleep(1500000);
	assert_int_equal(mr_gpu_watch(r.g, 1000, &r.err), MR_GPU_HEALTHY);
	assert_int_equal(watch_until(&r, 1000), MR_GPU_STALLED);
	rig_close(&r);
}

/*
 * NVIDIA/l2fwd-nv src/kernel.cu:126: one thread polls without a heartbeat, and nothing ends the
 * kernel when its host stalls.
 */
static void workers_that_missed_the_host_say_so(void **state)
{
	struct rig r;

	(void)state;
	rig_launch(&r, "", 1000);
	assert_int_equal(watch(&r, 1500, STALL_MS), MR_GPU_HEALTHY);
	usleep(3000000);
	assert_int_equal(watch_until(&r, STALL_MS), MR_GPU_HOST_SILENT);
	says(&r, "the host did not beat");
	must(&r, mr_gpu_stop(r.g, STALL_MS, &r.err));
	rig_close(&r);
}

/*
 * Makes call k of a kind fail, from k on for every one that a launch reaches, and
 * returns the last. What there was before the launch is there after it, and the
 * whole device can be had again.
 */
static uint32_t fail_each(const char *kind, uint32_t k)
{
	for (; k < 100; k++) {
		struct traces before;
		struct mr_err err = {0};
		char args[64];
		struct rig r;
		int rc;

		snprintf(args, sizeof(args), "fault=%s@%u", kind, k);
		rig_open(&r, args);
		rig_lanes(&r, MR_GPU_MEMORY_DEVICE);
		before = traces_now();
		rc = load_and_launch(r.g, r.lane, 2, 0, &r.err);
		if (rc == 0) {
			rig_close(&r);
			return k - 1;
		}
		assert_int_equal(rc, r.err.code);
		says(&r, "CUDA_ERROR_");
		assert_no_more(before);
		assert_int_equal(load_and_launch(r.g, r.lane, 2, 0, &err), -EALREADY);
		must(&r, mr_gpu_stop(r.g, 1, &r.err));
		mr_gpu_region_free(r.g, &r.region);
		must(&r, mr_gpu_region_alloc(r.g, MR_GPU_MEMORY_DEVICE, MEMORY, &r.region, &r.err));
		rig_close(&r);
	}
	fail_msg("%s still fails", kind);
	return 0;
}

/*
 * DPDK lib/gpudev/gpudev.c rte_gpu_comm_create_list: a failed allocation goes unseen, and what
 * came before an error is leaked.
 */
static void a_launch_that_fails_at_any_call_is_undone(void **state)
{
	struct traces before;

	(void)state;
	before = traces_now();
	/* The first is the region; then the device's block and two rings. */
	assert_int_equal(fail_each("alloc", 2), 4);
	assert_int_equal(fail_each("hostalloc", 1), 3); /* control words, two rings */
	assert_int_equal(fail_each("map", 1), 2);
	assert_int_equal(fail_each("module", 1), 1);
	assert_int_equal(fail_each("launch", 1), 2); /* the second while the first runs */
	assert_no_more(before);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_open_device_says_what_it_is),
		cmocka_unit_test(a_device_that_cannot_be_opened_leaves_a_sentence_and_nothing_else),
		cmocka_unit_test(regions_are_whole_aligned_pages_that_kernels_can_name),
		cmocka_unit_test(a_region_that_cannot_be_had_is_refused_with_its_size),
		cmocka_unit_test(a_device_that_lies_about_its_memory_is_found_at_once),
		cmocka_unit_test(memory_that_is_not_what_was_asked_for_is_told),
		cmocka_unit_test(a_registration_that_the_device_refuses_is_a_sentence),
		cmocka_unit_test(flushes_reach_the_device_where_they_are_needed),
		cmocka_unit_test(a_flush_that_fails_is_a_lost_device_and_names_its_lane),
		cmocka_unit_test(slots_are_served_wherever_packets_and_ready_lie),
		cmocka_unit_test(workers_beat_while_they_poll),
		cmocka_unit_test(a_launch_that_the_abi_cannot_say_is_refused),
		cmocka_unit_test(
			more_workers_than_the_device_holds_at_once_are_refused_with_both_numbers),
		cmocka_unit_test(a_worker_that_never_starts_is_named_and_can_do_no_harm_later),
		cmocka_unit_test(kernels_of_one_device_outlive_the_wait_for_those_of_another),
		cmocka_unit_test(a_lost_device_and_a_dead_worker_are_lost),
		cmocka_unit_test(
			a_device_lost_before_hello_fails_the_launch_with_the_drivers_words),
		cmocka_unit_test(a_worker_that_stands_still_is_stalled_and_does_not_leave),
		cmocka_unit_test(a_worker_that_owes_a_slot_and_only_beats_is_stalled),
		cmocka_unit_test(a_slot_is_owed_by_the_worker_whose_turn_it_is),
		cmocka_unit_test(time_in_which_nobody_watched_does_not_count_in_full),
		cmocka_unit_test(workers_that_missed_the_host_say_so),
		cmocka_unit_test(stages_find_zeroes_of_their_own_and_of_the_device),
		cmocka_unit_test(what_a_stage_keeps_and_does_not_fit_is_refused_with_the_parameter),
		cmocka_unit_test(running_kernels_take_other_parameters_and_say_so),
		cmocka_unit_test(a_launch_that_fails_at_any_call_is_undone),
	};
	char prefix[64];
	char *eal[] = {argv[0], "--no-huge", "--no-pci", "--no-telemetry", "-m", "64",
		"--log-level", "critical", prefix};
	int failed;

	(void)argc;
	snprintf(prefix, sizeof(prefix), "--file-prefix=mr-test-gpu-%d", (int)getpid());
	if (rte_eal_init((int)MR_ARRAY_LEN(eal), eal) < 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rte_eal_cleanup();
	return failed;
}
