/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bring-up that stops or fails at every step of the table: what came up is taken down in
 * reverse, one sentence says where and why, and the next process of that name comes up.
 *
 * EAL starts once in a process, so each bring-up has a child of its own. What is taken
 * down is seen by standing before one function of each step (the linker's --wrap), which
 * is called all the same. No software port fails to map memory or to start, or has rules
 * that steer, so those three steps are only stopped at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mr_config.h"
#include "mr_facts.h"
#include "mr_gpu.h"
#include "mr_port.h"
#include "mr_setup_priv.h"

#include <dirent.h>
#include <errno.h>
#include <rte_eal.h>
#include <rte_mempool.h>
#include <rte_memory.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const steps[] = {"instance", "eal", "devices", "regions", "ports", "maps",
	"proof", "pools", "queues", "start", "readback", "steer", "guard", "launch", "lanes",
	"serve", "capture"};

/* What a child tells. */
struct outcome {
	int rc, left;
	struct mr_err err;
	char ups[256], downs[256];
};

static struct outcome *told; /* shared with the child */
static struct mr_plan plan;
static char runtime[] = "/tmp/mr-setup-XXXXXX";

static void add_word(char *words, size_t size, const char *word)
{
	size_t used = strlen(words);

	snprintf(words + used, size - used, "%s%s", used != 0 ? " " : "", word);
}

/* A step takes down several things of one kind, and some by way of an earlier step's. */
static uint32_t depth;

static void down_begins(const char *step)
{
	const char *last = strrchr(told->downs, ' ');

	last = last != NULL ? last + 1 : told->downs;
	if (depth++ == 0 && strcmp(last, step) != 0)
		add_word(told->downs, sizeof(told->downs), step);
}

#define WRAP(step, type, name, params, args)                                                       \
	type __real_##name params;                                                                 \
	type __wrap_##name params;                                                                 \
	type __wrap_##name params                                                                  \
	{                                                                                          \
		type r;                                                                            \
                                                                                                   \
		down_begins(step);                                                                 \
		r = __real_##name args;                                                            \
		depth--;                                                                           \
		return r;                                                                          \
	}
#define WRAP_VOID(step, name, params, args)                                                        \
	void __real_##name params;                                                                 \
	void __wrap_##name params;                                                                 \
	void __wrap_##name params                                                                  \
	{                                                                                          \
		down_begins(step);                                                                 \
		__real_##name args;                                                                \
		depth--;                                                                           \
	}

WRAP_VOID("instance", mr_setup_instance_down, (struct mr_setup * s), (s))
WRAP("eal", int, rte_eal_cleanup, (void), ())
WRAP("devices", int, mr_gpu_close, (struct mr_gpu * g, struct mr_err *err), (g, err))
WRAP_VOID("regions", mr_gpu_region_free, (struct mr_gpu * g, struct mr_gpu_region *r), (g, r))
WRAP_VOID("ports", mr_port_remove, (struct mr_port * p), (p))
WRAP("maps", int, mr_port_unmap, (struct mr_port * p, void *addr, size_t bytes, struct mr_err *err),
	(p, addr, bytes, err))
WRAP_VOID("pools", rte_mempool_free, (struct rte_mempool * mp), (mp))
WRAP_VOID("queues", mr_port_close, (struct mr_port * p), (p))
WRAP_VOID("start", mr_port_stop, (struct mr_port * p), (p))
WRAP_VOID("steer", mr_port_unsteer, (struct mr_port * p), (p))
WRAP_VOID("guard", mr_guard_fini, (struct mr_guard * g), (g))
WRAP("launch", int, mr_gpu_stop, (struct mr_gpu * g, uint32_t ms, struct mr_err *err), (g, ms, err))
WRAP_VOID("serve", mr_report_unserve, (void), ())
WRAP_VOID("capture", mr_setup_tap_down, (struct mr_setup * s), (s))

/* Of a child whose lanes' threads seem not to end. */
static bool lanes_hang;

int __real_mr_setup_lane_join(struct mr_setup *s, uint32_t i, struct mr_err *err);
int __wrap_mr_setup_lane_join(struct mr_setup *s, uint32_t i, struct mr_err *err);
int __wrap_mr_setup_lane_join(struct mr_setup *s, uint32_t i, struct mr_err *err)
{
	int rc;

	down_begins("lanes");
	rc = __real_mr_setup_lane_join(s, i, err);
	depth--;
	return lanes_hang ? -ETIME : rc;
}
/* Of a child: a configuration on storage that does not answer. */
static uint32_t storage_hangs, storage_asked;

int __real_mr_config_load(const char *file, struct mr_config *cfg, struct mr_problems *problems);
int __wrap_mr_config_load(const char *file, struct mr_config *cfg, struct mr_problems *problems);
int __wrap_mr_config_load(const char *file, struct mr_config *cfg, struct mr_problems *problems)
{
	mr_store_release(&storage_asked, 1);
	while (mr_load_acquire(&storage_hangs) != 0)
		usleep(1000);
	return __real_mr_config_load(file, cfg, problems);
}

static int setup(void **state)
{
	static const char text[] =
		"eal: {hugepages: off}\n"
		"devices: [{name: g0, device: sim}, {name: g1, device: sim}]\n"
		"ports: [{name: p0, device: net_null0}, {name: p1, device: net_null1}]\n"
		"lanes:\n"
		"  - {name: l0, rx: {port: p0, queue: 0}, tx: [{port: p0, queue: 0}],\n"
		"     core: any, device: g0, path: [direct], stages: [{use: l2swap}]}\n"
		"  - {name: l1, rx: {port: p1, queue: 0}, tx: [{port: p1, queue: 0}],\n"
		"     core: any, device: g1, path: [pinned], stages: [{use: checksum}]}\n";
	static struct mr_problems problems;
	static struct mr_host host;
	struct mr_config cfg;
	int rc;

	(void)state;
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED || mkdtemp(runtime) == NULL ||
		setenv("RUNTIME_DIRECTORY", runtime, 1) != 0)
		return -1;
	rc = mr_config_parse("setup.yaml", text, sizeof(text) - 1, &cfg, &problems);
	if (rc == 0) {
		rc = mr_plan_build(&cfg, &host, "setup", &plan, &problems);
		mr_config_free(&cfg);
	}
	return rc;
}

static int teardown(void **state)
{
	char path[sizeof(runtime) + 8];

	(void)state;
	snprintf(path, sizeof(path), "%s/dpdk", runtime);
	(void)rmdir(path);
	return rmdir(runtime);
}

/* Entries of a folder of /proc/self whose link or comm has one of the device's or lanes' names. */
static int count_left(const char *folder, const char *file)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int n = 0;

	while (d != NULL && (e = readdir(d)) != NULL) {
		char path[300], name[300] = "";
		FILE *f;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s%s", folder, e->d_name, file);
		f = file[0] != '\0' ? fopen(path, "re") : NULL;
		if (f != NULL) {
			if (fgets(name, sizeof(name), f) == NULL)
				name[0] = '\0';
			fclose(f);
		} else if (readlink(path, name, sizeof(name) - 1) < 0) {
			name[0] = '\0';
		}
		n += strstr(name, "mr-sim") != NULL || strncmp(name, "lane-", 5) == 0;
	}
	if (d != NULL)
		closedir(d);
	return n;
}

/* Threads, files, mappings and the runtime directory of what was brought up. */
static int all_left(void)
{
	int n = count_left("/proc/self/task", "/comm") + count_left("/proc/self/fd", "");
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
		n += strstr(line, "mr-sim") != NULL;
	if (maps != NULL)
		fclose(maps);
	snprintf(line, sizeof(line), "%s/dpdk/millrace-setup", runtime);
	return n + (access(line, F_OK) == 0);
}

static bool before_step(void *ctx, const char *step)
{
	add_word(told->ups, sizeof(told->ups), step);
	return ctx == NULL || strcmp(ctx, step) != 0;
}

/* Brings up in a child, up to the step `until`, and down again. */
static void bring_up(void (*spoil)(void), const char *until)
{
	pid_t pid;
	int status;

	memset(told, 0, sizeof(*told));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct mr_setup *s = NULL;

		if (spoil != NULL)
			spoil();
		told->rc = mr_setup_up(&plan, before_step, (void *)until, &s, &told->err);
		if (told->rc == 0)
			(void)mr_setup_down(s, NULL);
		told->left = all_left();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* These look and leave nothing, so that there is nothing to take down. */
static bool only_looks(const char *step)
{
	return strcmp(step, "proof") == 0 || strcmp(step, "readback") == 0;
}

/* The names of steps first .. last. */
static const char *names(int first, int last)
{
	static char words[256];

	words[0] = '\0';
	for (int i = first; i <= last; i++)
		add_word(words, sizeof(words), steps[i]);
	return words;
}

/* The names of steps last .. 0 that are taken down. */
static const char *downs(int last)
{
	static char words[256];

	words[0] = '\0';
	for (int i = last; i >= 0; i--)
		if (!only_looks(steps[i]))
			add_word(words, sizeof(words), steps[i]);
	return words;
}

static void comes_up(void)
{
	const int last = (int)MR_ARRAY_LEN(steps) - 1;

	bring_up(NULL, NULL);
	if (told->rc != 0)
		fail_msg("the next bring-up: %s", told->err.msg);
	assert_string_equal(told->ups, names(0, last));
	assert_string_equal(told->downs, downs(last));
	assert_int_equal(told->left, 0);
}

/* NVIDIA/l2fwd-nv src/main.cpp:905: graphs, registrations and pools are never given back. */
static void stopped_before_any_step_all_before_it_is_undone_in_reverse(void **state)
{
	char says[64];

	(void)state;
	for (int k = 0; k < (int)MR_ARRAY_LEN(steps); k++) {
		bring_up(NULL, steps[k]);
		assert_int_equal(told->rc, -ECANCELED);
		snprintf(says, sizeof(says), "told to stop before step %s", steps[k]);
		assert_string_equal(told->err.msg, says);
		assert_string_equal(told->ups, names(0, k));
		assert_string_equal(told->downs, downs(k - 1));
		assert_int_equal(told->left, 0);
		comes_up();
	}
}

static void spoil_instance(void)
{
	setenv("RUNTIME_DIRECTORY", "/nonexistent", 1);
}

static void spoil_eal(void)
{
	snprintf(plan.eal_args[0], sizeof(plan.eal_args[0]), "--file-prefix=a/b");
}

static void spoil_devices(void)
{
	snprintf(plan.devices[1].args, sizeof(plan.devices[1].args), "sim,mem=1");
}

static void spoil_regions(void)
{
	snprintf(plan.devices[1].args, sizeof(plan.devices[1].args), "sim,fault=hostalloc@1");
}

static void spoil_ports(void)
{
	snprintf(plan.ports[1].args, sizeof(plan.ports[1].args), "no=such");
}

/* ThreadSanitizer's build gives ports and kernels one address unless asked. */
static void spoil_proof(void)
{
	snprintf(plan.devices[0].args, sizeof(plan.devices[0].args), "sim,alias=1,fault=short");
}

/* net_null sends back frames of its own. */
static void spoil_readback(void)
{
	plan.readback = MR_READBACK_PORT;
}

static void spoil_pools(void)
{
	plan.lanes[1].pool_bytes = plan.lanes[1].element_bytes;
}

static void spoil_queues(void)
{
	plan.ports[1].rx_queues = 2000;
}

static void spoil_guard(void)
{
	snprintf(plan.devices[1].args, sizeof(plan.devices[1].args), "sim,guard=pkey");
}

static void spoil_launch(void)
{
	snprintf(plan.devices[1].args, sizeof(plan.devices[1].args), "sim,fault=launch@1");
}

static void spoil_lanes(void)
{
	plan.lanes[1].core = 1000;
}

static void spoil_serve(void)
{
	static const struct mr_report_source other = {.instance = "other"};
	struct mr_err err;

	if (mr_report_serve(&other, &err) != 0)
		_exit(1);
}

static bool has_keys(void)
{
	int key = pkey_alloc(0, 0);

	if (key >= 0)
		pkey_free(key);
	return key >= 0;
}

static void a_step_that_fails_half_way_is_undone_with_all_before_it(void **state)
{
	static const struct {
		int step;
		void (*spoil)(void);
		const char *says;
	} rows[] = {
		{0, spoil_instance, "runtime directory"},
		{1, spoil_eal, "EAL did not start"},
		{2, spoil_devices, "device 'g1': "},
		{3, spoil_regions, "cuMemHostAlloc"},
		{4, spoil_ports, "port 'p1': "},
		{6, spoil_proof, "lane 'l0': path direct is not what it seems: window: "},
		{7, spoil_pools, "lane 'l1': pool of "},
		{8, spoil_queues, "port 'p1' (net_null1): "},
		{10, spoil_readback, "seems: readback: only frames of others came back"},
		{12, spoil_guard, "guard 'pkey' needs a CPU"},
		{13, spoil_launch, "cuLaunchKernel"},
		{14, spoil_lanes, "lane 'l1': thread: "},
		{15, spoil_serve, "instance 'other'"},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		const int k = rows[i].step;
		char want[300];

		if (rows[i].spoil == spoil_guard && has_keys())
			continue;
		bring_up(rows[i].spoil, NULL);
		if (told->rc >= 0)
			fail_msg("step %s did not fail", steps[k]);
		assert_int_equal(told->err.code, told->rc);
		if (strstr(told->err.msg, rows[i].says) == NULL ||
			strchr(told->err.msg, '\n') != NULL)
			fail_msg("step %s: '%s'", steps[k], told->err.msg);
		assert_string_equal(told->ups, names(0, k));
		/* An EAL that did not start has nothing to clean up; a read-back has a pool. */
		snprintf(want, sizeof(want), "%s%s",
			strcmp(steps[k], "readback") == 0 ? "pools " : "", downs(k - (k == 1)));
		assert_string_equal(told->downs, want);
		assert_int_equal(told->left, 0);
		comes_up();
	}
}

static void spoil_serve_and_lanes(void)
{
	spoil_serve();
	lanes_hang = true;
}

/* In a child: a stop while a reload reads what does not come; what does not hold, or 0. */
static int stop_while_reading(bool fast_too)
{
	static struct mr_config cfg;
	static struct mr_report_reload answer;
	/* Nothing of it ends before the stop, which tells nobody. */
	const struct mr_setup_reload_told told = {0};
	struct mr_setup *s = NULL;
	struct mr_err err = {0};
	uint32_t fast = fast_too;
	uint64_t ticket, began;

	storage_hangs = 1;
	if (mr_setup_up(&plan, NULL, NULL, &s, &err) != 0)
		return 1;
	mr_setup_reload_allow(s, &(struct mr_setup_reload_spec){"on-nfs.yaml", &cfg, NULL, NULL});
	if (mr_setup_reload_ask(s, false, &ticket) != 0)
		return 2;
	mr_setup_reload_turn(s, &told);
	while (mr_load_acquire(&storage_asked) == 0)
		usleep(1000);
	began = mr_clock_ns();
	if (mr_setup_stop(s, 5000, &fast, false, NULL, &err) != 0 && !fast_too)
		return 3;
	if (mr_clock_ns() - began > (fast_too ? 1800000000ull : 8000000000ull))
		return 4;
	mr_setup_reload_answer(s, &answer);
	if (answer.pending || !answer.refused || strstr(answer.sentences[0], "stops") == NULL)
		return 5;
	if (mr_setup_down(s, &err) != -ETIME || strstr(err.msg, "'on-nfs.yaml'") == NULL)
		return 6;
	return all_left() != 0 ? 7 : 0;
}

static void a_stop_does_not_wait_for_a_reload_that_cannot_read(void **state)
{
	(void)state;
	for (int fast = 0; fast < 2; fast++) {
		pid_t pid = fork();
		int status;

		memset(told, 0, sizeof(*told));
		if (pid == 0)
			_exit(stop_while_reading(fast));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_string_equal(
			told->downs + strlen(told->downs) - strlen("instance"), "instance");
		comes_up();
	}
}

/* The answer is enough. */
static void no_change(void *ctx, const struct mr_config_change *change)
{
	(void)ctx;
	(void)change;
}

static void no_sentence(void *ctx, const char *sentence)
{
	(void)ctx;
	(void)sentence;
}

static void no_end(void *ctx, enum mr_setup_reloaded what, uint32_t tables, const char *sentence)
{
	(void)ctx;
	(void)what;
	(void)tables;
	(void)sentence;
}

/* In a child: a NIC of that make with an option that is an mlx5's, and a reload; the answer. */
static int reload_with_nic(uint64_t vendor, struct mr_report_reload *ret_answer)
{
	static const char text[] =
		"devices: [{name: g0, device: sim}, {name: g1, device: sim}]\n"
		"ports: [{name: p0, device: \"0000:3e:00.0,mprq_en=1\"}, {name: p1, device: "
		"net_null1}]\n"
		"lanes:\n"
		"  - {name: l0, rx: {port: p0, queue: 0}, tx: [{port: p0, queue: 0}],\n"
		"     core: any, device: g0, path: [pinned], stages: [{use: l2swap}]}\n"
		"  - {name: l1, rx: {port: p1, queue: 0}, tx: [{port: p1, queue: 0}],\n"
		"     core: any, device: g1, path: [pinned], stages: [{use: checksum}]}\n";
	static const struct mr_setup_reload_told nobody = {no_change, no_sentence, no_end, NULL};
	static struct mr_problems problems;
	struct mr_host_facts *f = calloc(1, sizeof(*f));
	char file[sizeof(runtime) + 16];
	struct mr_config cfg;
	struct mr_setup *s;
	uint32_t slow = 0;
	uint64_t ticket;
	FILE *out;

	snprintf(file, sizeof(file), "%s/nic.yaml", runtime);
	out = fopen(file, "w");
	if (f == NULL || out == NULL || fputs(text, out) < 0 || fclose(out) != 0)
		return 1;
	f->host.facts = f;
	f->pci_count = f->nics_count = 1;
	snprintf(f->pci[0].bdf, sizeof(f->pci[0].bdf), "0000:3e:00.0");
	f->pci[0].vendor = (struct mr_fact_u64){MR_FACT_KNOWN, vendor};
	if (mr_config_load(file, &cfg, &problems) != 0 ||
		mr_setup_up(&plan, NULL, NULL, &s, NULL) != 0)
		return 2;
	mr_setup_reload_allow(s, &(struct mr_setup_reload_spec){file, &cfg, f, NULL});
	if (mr_setup_reload_ask(s, false, &ticket) != 0)
		return 3;
	do {
		usleep(1000);
		(void)mr_setup_look(s);
		mr_setup_reload_turn(s, &nobody);
		mr_setup_reload_answer(s, ret_answer);
	} while (ret_answer->pending);
	(void)unlink(file);
	if (mr_setup_stop(s, 5000, &slow, false, NULL, NULL) != 0)
		return 4;
	mr_config_free(&cfg);
	free(f);
	return mr_setup_down(s, NULL) == 0 ? 0 : 5;
}

/* An mlx5's options are refused where they bring the CPU back; other makes' are their own. */
static void a_reload_knows_the_make_of_a_nic(void **state)
{
	static const uint64_t vendors[] = {0x1af4, 0x15b3};

	(void)state;
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();
		int status;

		memset(told, 0, sizeof(*told));
		if (pid == 0) {
			static struct mr_report_reload answer; /* large */
			int rc = reload_with_nic(vendors[i], &answer);

			if (rc == 0 && answer.refused != (i == 1))
				fprintf(stderr, "%s\n", answer.sentences[0]);
			_exit(rc != 0 ? rc : answer.failed || answer.refused != (i == 1) ? 9 : 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

/* Whoever called may free nothing that a lane's thread still uses. */
static void a_lane_that_does_not_end_is_told_of_whatever_failed(void **state)
{
	(void)state;
	bring_up(spoil_serve_and_lanes, NULL);
	assert_int_equal(told->rc, -ETIMEDOUT);
	assert_non_null(strstr(told->err.msg, "instance 'other'"));
	assert_string_equal(told->downs, "serve lanes");
	comes_up();
}

static void eal_that_was_up_before_is_refused(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0) {
		struct mr_setup *s = NULL;
		struct mr_err err = {0};

		if (mr_setup_up(&plan, NULL, NULL, &s, &err) != 0)
			_exit(1);
		(void)mr_setup_down(s, NULL);
		_exit(mr_setup_up(&plan, NULL, NULL, &s, &err) == -EPERM &&
					strstr(err.msg, "once") != NULL
				? 0
				: 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Runs what is up until packets moved, and stops it; false: they did not. */
static bool packets_move(struct mr_setup *s)
{
	static struct mr_report_lane lane; /* large */
	uint32_t slow = 0;
	uint64_t in_flight;

	for (int i = 0; i < 2000 && mr_setup_activity(s, &in_flight) == 0; i++)
		usleep(1000);
	if (mr_setup_stop(s, 5000, &slow, false, NULL, NULL) != 0)
		return false;
	mr_setup_source(s)->lane(s, 0, &lane);
	return lane.pub.counters.c[MR_C_tx_packets] != 0 &&
		lane.pub.counters.c[MR_C_tx_packets] == lane.pub.counters.c[MR_C_rx_packets];
}

/* In a child: one EAL, plan after plan; the number of what does not hold, or 0. */
static int run_plans(void)
{
	static struct mr_plan other;
	struct mr_setup *s = NULL;
	struct mr_err err = {0};

	other = plan;
	other.lanes[0] = plan.lanes[1]; /* one lane, of the other device and path */
	other.lanes_count = 1;
	other.ports_count = 2;
	if (mr_setup_up(&plan, before_step, NULL, &s, &err) != 0 || !packets_move(s))
		return 1;
	if (mr_setup_again(s, &other, &err) != 0 || !packets_move(s))
		return 2;
	snprintf(other.ports[1].args, sizeof(other.ports[1].args), "no=such");
	if (mr_setup_again(s, &other, &err) >= 0 || strstr(err.msg, "port 'p1': ") == NULL)
		return 3;
	if (count_left("/proc/self/task", "/comm") + count_left("/proc/self/fd", "") != 0)
		return 4;
	if (mr_setup_again(s, &plan, &err) != 0 || !packets_move(s))
		return 5;
	snprintf(other.name, sizeof(other.name), "another");
	if (mr_setup_again(s, &other, &err) != -EINVAL || !packets_move(s))
		return 6;
	if (mr_setup_down(s, &err) != 0 || all_left() != 0)
		return 7;
	return 0;
}

static void another_plan_comes_up_in_the_same_process(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(run_plans());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	comes_up();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stopped_before_any_step_all_before_it_is_undone_in_reverse),
		cmocka_unit_test(a_step_that_fails_half_way_is_undone_with_all_before_it),
		cmocka_unit_test(a_lane_that_does_not_end_is_told_of_whatever_failed),
		cmocka_unit_test(a_stop_does_not_wait_for_a_reload_that_cannot_read),
		cmocka_unit_test(a_reload_knows_the_make_of_a_nic),
		cmocka_unit_test(eal_that_was_up_before_is_refused),
		cmocka_unit_test(another_plan_comes_up_in_the_same_process),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
