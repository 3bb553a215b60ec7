/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mr_cmd_bench.h"

#include "mr_revision.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static const struct mr_bench_settings whole = {
	.sizes = {64, 128, 256, 512, 1024, 1518, 4096, 9000},
	.sizes_count = 8,
	.batches = {1, 4, 16, 64, 256, 1024},
	.batches_count = 6,
	.touched = {MR_BENCH_HEADER, MR_BENCH_HALF, MR_BENCH_ALL},
	.touched_count = 3,
	.paths = {MR_PATH_DIRECT, MR_PATH_PINNED, MR_PATH_STAGED},
	.paths_count = 3,
	.repeats = 5,
	.run_ms = 50,
	.slots = 8,
	.core = -1,
	.seed = 1,
	.device = "sim",
};

/* What --quick changes of it; an option of its own says more than this. */
static void be_quick(struct mr_bench_settings *set)
{
	static const uint32_t sizes[] = {64, 512, 1518, 9000}, batches[] = {1, 32, 256};

	memcpy(set->sizes, sizes, sizeof(sizes));
	set->sizes_count = MR_ARRAY_LEN(sizes);
	memcpy(set->batches, batches, sizeof(batches));
	set->batches_count = MR_ARRAY_LEN(batches);
	set->repeats = 3;
	set->run_ms = 20;
}

/* A list of words, each once; returns how many, or 0 with a sentence on stderr. */
static uint32_t take_words(const char *text, const char *(*name_of)(uint32_t), uint32_t count,
	const char *what, uint32_t *list)
{
	uint32_t n = 0, seen = 0;

	for (const char *s = text;; s++) {
		size_t length = strcspn(s, ",");
		uint32_t i;

		for (i = 0; i < count; i++)
			if (strlen(name_of(i)) == length && strncmp(name_of(i), s, length) == 0)
				break;
		if (i == count || (seen >> i & 1) != 0) {
			fprintf(stderr, "millrace: '%s' is not a list of", text);
			for (i = 0; i < count; i++)
				fprintf(stderr, "%s %s", i > 0 ? "," : "", name_of(i));
			fprintf(stderr, ", each once: %s\n", what);
			return 0;
		}
		seen |= 1u << i;
		list[n++] = i;
		s += length;
		if (*s == '\0')
			return n;
	}
}

static const char *touched_name(uint32_t i)
{
	return mr_bench_touched_name((enum mr_bench_touched)i);
}

static const char *path_name(uint32_t i)
{
	return mr_path_name((enum mr_path)i);
}

static bool take_number(
	const char *text, const char *option, uint64_t min, uint64_t max, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (errno == 0 && end != text && *end == '\0' && text[0] != '-' && *ret >= min &&
		*ret <= max)
		return true;
	fprintf(stderr, "millrace: --%s '%s' is not a number from %llu to %llu\n", option, text,
		(unsigned long long)min, (unsigned long long)max);
	return false;
}

static bool take_device(const char *text, const char **ret_device)
{
	for (const char *s = text; *s != '\0'; s++)
		if (*s <= ' ' || *s > '~') {
			fprintf(stderr, "millrace: --device takes sim or a PCI address\n");
			return false;
		}
	*ret_device = text;
	return true;
}

static bool take_machine(const char *text, const struct mr_bench_machine **ret_machine)
{
	for (uint32_t i = 0; mr_bench_machine_at(i) != NULL; i++)
		if (strcmp(mr_bench_machine_at(i)->name, text) == 0) {
			*ret_machine = mr_bench_machine_at(i);
			return true;
		}
	fprintf(stderr, "millrace: there is no machine '%s' in virtual time; there are:\n", text);
	for (uint32_t i = 0; mr_bench_machine_at(i) != NULL; i++)
		fprintf(stderr, "millrace:   %-8s %s\n", mr_bench_machine_at(i)->name,
			mr_bench_machine_at(i)->help);
	return false;
}

static bool take_list(const char *text, uint32_t min, uint32_t max, uint32_t *list, uint32_t room,
	uint32_t *count)
{
	struct mr_err err;

	if (mr_bench_list(text, min, max, list, room, count, &err) == 0)
		return true;
	fprintf(stderr, "millrace: %s\n", err.msg);
	return false;
}

static bool take_option(int c, struct mr_bench_options *o)
{
	struct mr_bench_settings *set = &o->set;
	uint32_t words[8];
	uint64_t v;

	switch (c) {
	case 's':
		return take_list(
			optarg, 60, 9600, set->sizes, MR_BENCH_SIZES_MAX, &set->sizes_count);
	case 'b':
		return take_list(optarg, 1, MR_BATCH_MAX, set->batches, MR_BENCH_BATCHES_MAX,
			&set->batches_count);
	case 't':
		set->touched_count = take_words(optarg, touched_name, MR_BENCH_TOUCHED_COUNT,
			"how much of a frame the kernel reads", words);
		for (uint32_t i = 0; i < set->touched_count; i++)
			set->touched[i] = (enum mr_bench_touched)words[i];
		return set->touched_count > 0;
	case 'p':
		set->paths_count =
			take_words(optarg, path_name, MR_PATH_COUNT, "the paths to measure", words);
		for (uint32_t i = 0; i < set->paths_count; i++)
			set->paths[i] = (enum mr_path)words[i];
		return set->paths_count > 0;
	case 'r':
		if (!take_number(optarg, "repeats", 1, MR_BENCH_REPEATS_MAX, &v))
			return false;
		set->repeats = (uint32_t)v;
		return true;
	case 'm':
		if (!take_number(optarg, "run-ms", 1, 60000, &v))
			return false;
		set->run_ms = (uint32_t)v;
		return true;
	case 'l':
		if (!take_number(optarg, "slots", 2, 64, &v))
			return false;
		set->slots = (uint32_t)v;
		if ((v & (v - 1)) != 0)
			fprintf(stderr, "millrace: --slots %u is not a power of two\n", set->slots);
		return (v & (v - 1)) == 0;
	case 'c':
		if (!take_number(optarg, "core", 0, MR_CPUS_MAX - 1, &v))
			return false;
		set->core = (int32_t)v;
		return true;
	case 'e':
		return take_number(optarg, "seed", 0, INT64_MAX, &set->seed);
	case 'd':
		return take_device(optarg, &set->device);
	case 'v':
		return take_machine(optarg, &o->machine);
	default:
		return false;
	}
}

int mr_bench_options_parse(
	const struct mr_cmd *self, int argc, char **argv, struct mr_bench_options *ret_o)
{
	const char *device = NULL;
	int c;

	*ret_o = (struct mr_bench_options){.set = whole, .fd = {-1, -1, -1}};
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--quick") == 0)
			be_quick(&ret_o->set);
	while ((c = mr_cmd_next(self, argc, argv)) != -1) {
		switch (c) {
		case 'q':
			break;
		case 'j':
			ret_o->json = true;
			break;
		case 'O':
			ret_o->file[MR_BENCH_FILE_JSON] = optarg;
			break;
		case 'C':
			ret_o->file[MR_BENCH_FILE_CSV] = optarg;
			break;
		case 'P':
			ret_o->file[MR_BENCH_FILE_PLOT] = optarg;
			break;
		default:
			if (!take_option(c, ret_o))
				return -EINVAL;
			if (c == 'd')
				device = optarg;
		}
	}
	if (optind != argc)
		return -EINVAL;
	if (ret_o->machine != NULL && device != NULL) {
		fprintf(stderr,
			"millrace: in virtual time there is no device: leave out --device\n");
		return -EINVAL;
	}
	ret_o->set.clock = ret_o->machine != NULL ? MR_BENCH_VIRTUAL
		: strncmp(ret_o->set.device, "sim", 3) == 0 && ret_o->set.core < 0 ? MR_BENCH_CPU
										   : MR_BENCH_WALL;
	return 0;
}

int mr_bench_files_open(struct mr_bench_options *o, struct mr_err *err)
{
	for (uint32_t i = 0; i < MR_BENCH_FILES; i++) {
		if (o->file[i] == NULL)
			continue;
		/* A pipe without a reader is refused instead of waited for. */
		o->fd[i] = open(o->file[i], O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
		if (o->fd[i] < 0)
			return mr_err_set(err, -errno, "'%s' cannot be written: %s", o->file[i],
				strerror(errno));
	}
	return 0;
}

void mr_bench_files_close(struct mr_bench_options *o)
{
	for (uint32_t i = 0; i < MR_BENCH_FILES; i++) {
		if (o->fd[i] >= 0)
			close(o->fd[i]);
		o->fd[i] = -1;
	}
}

static int write_all(int fd, const char *text)
{
	size_t left = strlen(text);

	/* What is no file has no length, and what was there before may be longer. */
	if (ftruncate(fd, 0) != 0 && errno != EINVAL)
		return -errno;
	while (left > 0) {
		ssize_t n = write(fd, text, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int rc = -errno;

			return ftruncate(fd, 0) != 0 ? rc : rc;
		}
		text += n;
		left -= (size_t)n;
	}
	return 0;
}

static bool is_drawn(const char *file)
{
	static const char end[] = "</svg>";
	char tail[64] = "";
	FILE *f = fopen(file, "re");

	if (f != NULL && fseek(f, -(long)(sizeof(tail) - 1), SEEK_END) == 0)
		tail[fread(tail, 1, sizeof(tail) - 1, f)] = '\0';
	if (f != NULL)
		fclose(f);
	return strstr(tail, end) != NULL;
}

/* Lets gnuplot draw what the script says; -ENOENT: there is none. */
static int draw(const char *script, const char *file)
{
	char name[] = "gnuplot";
	char *argv[] = {name, NULL};
	posix_spawn_file_actions_t actions;
	int fd = memfd_create("plot", MFD_CLOEXEC), status = 0, rc;
	pid_t pid;

	if (fd < 0)
		return -errno;
	rc = write_all(fd, script);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) < 0)
		rc = -errno;
	if (rc == 0)
		rc = -posix_spawn_file_actions_init(&actions);
	if (rc == 0) {
		rc = -posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
		if (rc == 0)
			rc = -posix_spawnp(&pid, name, &actions, NULL, argv, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(fd);
	if (rc < 0)
		return rc;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0 && is_drawn(file) ? 0 : -EIO;
}

static int write_file(struct mr_bench_options *o, enum mr_bench_file i, const json_t *bench)
{
	char *text = i == MR_BENCH_FILE_JSON
		? json_dumps(bench, JSON_INDENT(1) | JSON_REAL_PRECISION(9))
		: i == MR_BENCH_FILE_CSV ? mr_bench_csv(bench)
					 : mr_bench_plot(bench, o->file[i]);
	int rc;

	if (text == NULL)
		return -ENOMEM;
	rc = i == MR_BENCH_FILE_PLOT ? draw(text, o->file[i]) : write_all(o->fd[i], text);
	free(text);
	return rc;
}

uint32_t mr_bench_files_write(struct mr_bench_options *o, const json_t *bench)
{
	uint32_t failed = 0;

	for (uint32_t i = 0; i < MR_BENCH_FILES; i++) {
		int rc;

		if (o->fd[i] < 0)
			continue;
		rc = write_file(o, (enum mr_bench_file)i, bench);
		if (rc == 0)
			continue;
		failed++;
		if (i == MR_BENCH_FILE_PLOT && rc == -ENOENT)
			fprintf(stderr,
				"millrace: '%s' was not drawn: gnuplot is not installed (Debian "
				"package gnuplot-nox)\n",
				o->file[i]);
		else if (i == MR_BENCH_FILE_PLOT && rc == -EIO)
			fprintf(stderr, "millrace: gnuplot could not draw '%s'\n", o->file[i]);
		else
			fprintf(stderr, "millrace: '%s' could not be written: %s\n", o->file[i],
				strerror(-rc));
	}
	return failed;
}

static void read_cpu(char *model, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(model, size, "unknown processor");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		char *value = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || value == NULL)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(model, size, "%s", value + 2);
		break;
	}
	if (f != NULL)
		fclose(f);
}

/* One line: every GPU with the NIC that is nearest to it. */
static void describe_topology(struct mr_doctor *d, char *line, size_t size)
{
	const struct mr_host_facts *f = d->facts;
	size_t used =
		(size_t)snprintf(line, size, "%u GPUs, %u NICs", f->gpus_count, f->nics_count);

	d->topology = mr_facts_topology_new(f, NULL);
	for (uint32_t g = 0; d->topology != NULL && g < f->gpus_count && used < size; g++) {
		const struct mr_topology_pair *best = NULL;
		uint32_t nic = 0;

		for (uint32_t n = 0; n < f->nics_count; n++) {
			const struct mr_topology_pair *p =
				mr_facts_topology_pair(d->topology, f, g, n);

			if (p == NULL || (best != NULL && best->near <= p->near))
				continue;
			best = p;
			nic = n;
		}
		used += (size_t)snprintf(line + used, size - used, "; GPU %s%s%s%s%s",
			f->pci[f->gpus[g].pci].bdf, best != NULL ? " to NIC " : "",
			best != NULL ? f->pci[f->nics[nic].pci].bdf : "", best != NULL ? " " : "",
			best != NULL ? mr_topology_near_name(best->near) : "");
	}
}

void mr_bench_machine_words(struct mr_doctor *d, struct mr_bench_about *ret_about)
{
	static char cpu[128], topology[512], date[32];
	static struct utsname kernel;
	time_t now = time(NULL);
	struct tm utc;

	read_cpu(cpu, sizeof(cpu));
	describe_topology(d, topology, sizeof(topology));
	if (uname(&kernel) != 0)
		snprintf(kernel.release, sizeof(kernel.release), "unknown");
	if (gmtime_r(&now, &utc) == NULL || strftime(date, sizeof(date), "%FT%TZ", &utc) == 0)
		snprintf(date, sizeof(date), "unknown");
	ret_about->version = MR_VERSION;
	ret_about->revision = MR_REVISION;
	ret_about->date = date;
	ret_about->cpu = cpu;
	ret_about->kernel = kernel.release;
	ret_about->topology = topology;
	ret_about->cores = 0;
	for (uint32_t i = 0; i < d->facts->host.cpus && i < MR_CPUS_MAX; i++)
		ret_about->cores += d->facts->host.cpu_online[i];
}
