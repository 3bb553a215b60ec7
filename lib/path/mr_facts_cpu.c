/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_facts_priv.h"

#include "mr_parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPU "sys/devices/system/cpu/"
#define NODE "sys/devices/system/node/"
#define LIST_BYTES_MAX 16384u

static enum mr_fact_state read_list(struct mr_root *r, const char *path, bool set[MR_CPUS_MAX])
{
	char list[LIST_BYTES_MAX];
	uint32_t end;
	int rc = mr_root_read(r, path, list, sizeof(list), NULL);

	memset(set, 0, MR_CPUS_MAX * sizeof(*set));
	if (rc != 0)
		return mr_facts_state_of(rc);
	return mr_parse_list(list, set, MR_CPUS_MAX, &end) ? MR_FACT_KNOWN : MR_FACT_STRANGE;
}

static void read_isolated(struct mr_root *r, struct mr_host_facts *f)
{
	bool set[MR_CPUS_MAX];

	f->isolated_state = read_list(r, CPU "isolated", set);
	for (uint32_t i = 0; i < MR_CPUS_MAX; i++)
		f->cpu[i].isolated = set[i];
	/* "(null)" where the kernel has no such CPUs. */
	if (read_list(r, CPU "nohz_full", set) == MR_FACT_KNOWN)
		for (uint32_t i = 0; i < MR_CPUS_MAX; i++)
			f->cpu[i].nohz_full = set[i];
}

static void read_cpu(struct mr_root *r, struct mr_facts_cpu *c, uint32_t number)
{
	char path[128];
	char list[256];
	const char *s = list;
	uint64_t first;

	snprintf(path, sizeof(path), CPU "cpu%u/topology/thread_siblings_list", number);
	if (mr_root_read(r, path, list, sizeof(list), NULL) == 0 && mr_parse_take_u64(&s, &first) &&
		first < MR_CPUS_MAX)
		c->core = (int16_t)first;
	snprintf(path, sizeof(path), CPU "cpu%u/cpufreq/scaling_governor", number);
	mr_facts_text_at(r, path, &c->governor);
}

/* An interrupt that is in use somewhere has an effective affinity; idle ones have none. */
static bool read_irq(struct mr_root *r, const char *number, bool set[MR_CPUS_MAX])
{
	char path[128];

	snprintf(path, sizeof(path), "proc/irq/%.32s/effective_affinity_list", number);
	if (read_list(r, path, set) == MR_FACT_KNOWN)
		return true;
	snprintf(path, sizeof(path), "proc/irq/%.32s/smp_affinity_list", number);
	return read_list(r, path, set) == MR_FACT_KNOWN;
}

/* A mask of CPUs as in "ff,ffffff03": groups of eight digits, the lowest CPU last. */
static bool parse_mask(const char *text, bool set[MR_CPUS_MAX])
{
	size_t n = strspn(text, "0123456789abcdefABCDEF,");
	uint32_t cpu = 0;

	memset(set, 0, MR_CPUS_MAX * sizeof(*set));
	if (n == 0 || text[n + strspn(text + n, " \n")] != '\0')
		return false;
	while (n-- > 0) {
		int v = text[n] >= 'a'   ? text[n] - 'a' + 10
			: text[n] >= 'A' ? text[n] - 'A' + 10
					 : text[n] - '0';

		if (text[n] == ',')
			continue;
		for (uint32_t bit = 0; bit < 4; bit++, cpu++) {
			if ((v >> bit & 1) == 0)
				continue;
			if (cpu >= MR_CPUS_MAX)
				return false;
			set[cpu] = true;
		}
	}
	return true;
}

static void read_irq_default(struct mr_root *r, struct mr_host_facts *f)
{
	char mask[MR_CPUS_MAX / 2];
	bool set[MR_CPUS_MAX];
	int rc = mr_root_read(r, "proc/irq/default_smp_affinity", mask, sizeof(mask), NULL);

	f->irq_default_state = mr_facts_state_of(rc);
	if (rc != 0)
		return;
	if (!parse_mask(mask, set))
		f->irq_default_state = MR_FACT_STRANGE;
	else
		for (uint32_t i = 0; i < MR_CPUS_MAX; i++)
			f->cpu[i].irq_default = set[i];
}

static void read_irqs(struct mr_root *r, struct mr_host_facts *f)
{
	struct mr_root_names names;
	bool set[MR_CPUS_MAX];
	uint32_t readable = 0, numbers = 0;
	int rc = mr_root_list(r, "proc/irq", &names);

	f->irqs_state = mr_facts_state_of(rc);
	if (rc != 0)
		return;
	for (uint32_t i = 0; i < names.count; i++) {
		uint64_t number;

		if (!mr_parse_u64(names.name[i], &number))
			continue;
		numbers++;
		if (!read_irq(r, names.name[i], set))
			continue;
		readable++;
		for (uint32_t c = 0; c < MR_CPUS_MAX; c++)
			f->cpu[c].irqs += set[c] && f->cpu[c].irqs < UINT16_MAX;
	}
	if (readable < numbers)
		f->irqs_state = MR_FACT_DENIED;
	mr_root_names_free(&names);
}

void mr_facts_cpus(struct mr_root *r, struct mr_host_facts *f)
{
	for (uint32_t i = 0; i < MR_CPUS_MAX; i++) {
		f->cpu[i].node = f->cpu[i].core = -1;
		if (i < f->host.cpus && f->host.cpu_online[i])
			read_cpu(r, &f->cpu[i], i);
	}
	read_isolated(r, f);
	read_irqs(r, f);
	read_irq_default(r, f);
}

/* Sizes of hugepages of a node; the folder's names are hugepages-NkB. */
static void read_sizes(struct mr_root *r, struct mr_facts_node *n)
{
	struct mr_root_names names;
	char path[MR_ROOT_PATH_MAX];

	snprintf(path, sizeof(path), NODE "node%u/hugepages", n->number);
	if (mr_root_list(r, path, &names) != 0)
		return;
	for (uint32_t i = 0; i < names.count && n->sizes_count < MR_FACTS_SIZES_MAX; i++) {
		struct mr_facts_hugepages *h = &n->sizes[n->sizes_count];
		const char *s = names.name[i];
		uint64_t kb;

		if (strncmp(s, "hugepages-", 10) != 0)
			continue;
		s += 10;
		if (!mr_parse_take_u64(&s, &kb) || strcmp(s, "kB") != 0 || kb == 0 ||
			kb > UINT64_MAX / 1024)
			continue;
		h->page_bytes = kb * 1024;
		snprintf(path, sizeof(path), NODE "node%u/hugepages/%.64s/nr_hugepages", n->number,
			names.name[i]);
		mr_facts_u64_at(r, path, &h->total);
		snprintf(path, sizeof(path), NODE "node%u/hugepages/%.64s/free_hugepages",
			n->number, names.name[i]);
		mr_facts_u64_at(r, path, &h->free);
		n->sizes_count++;
	}
	mr_root_names_free(&names);
}

void mr_facts_nodes(struct mr_root *r, struct mr_host_facts *f)
{
	struct mr_root_names names;
	bool set[MR_CPUS_MAX];
	char path[128];

	if (mr_root_list(r, "sys/devices/system/node", &names) != 0)
		return;
	for (uint32_t i = 0; i < names.count && f->nodes_count < MR_FACTS_NODES_MAX; i++) {
		struct mr_facts_node *n = &f->nodes[f->nodes_count];
		uint64_t number;

		if (strncmp(names.name[i], "node", 4) != 0 ||
			!mr_parse_u64(names.name[i] + 4, &number) || number > INT16_MAX)
			continue;
		n->number = (uint32_t)number;
		f->nodes_count++;
		snprintf(path, sizeof(path), NODE "node%u/cpulist", n->number);
		if (read_list(r, path, set) == MR_FACT_KNOWN)
			for (uint32_t c = 0; c < MR_CPUS_MAX; c++)
				if (set[c])
					f->cpu[c].node = (int16_t)number;
		read_sizes(r, n);
	}
	mr_root_names_free(&names);
}

/* NAMEmap_N is a page of the DPDK process with the file prefix NAME. */
static void count_maps(struct mr_root *r, const struct mr_probe *p, struct mr_facts_hugetlbfs *h)
{
	struct mr_root_names names;
	char prefix[sizeof(h->prefix)];
	char last[sizeof(h->prefix)] = "";
	struct mr_probe_value lives = {0};

	if (mr_root_list(r, h->path, &names) != 0) {
		h->state = MR_FACT_DENIED;
		return;
	}
	for (uint32_t i = 0; i < names.count; i++) {
		const char *map = strstr(names.name[i], "map_");
		size_t n = map == NULL ? 0 : (size_t)(map - names.name[i]);

		if (n == 0 || n >= sizeof(prefix))
			continue;
		memcpy(prefix, names.name[i], n);
		prefix[n] = '\0';
		if (strcmp(prefix, last) != 0) /* sorted: those of one owner lie together */
			lives = mr_probe_prefix_lives(p, prefix);
		memcpy(last, prefix, n + 1);
		h->maps++;
		h->maps_untold += !lives.known;
		if (!lives.known || lives.v != 0)
			continue;
		if (h->maps_dead++ == 0)
			memcpy(h->prefix, prefix, n + 1);
	}
	mr_root_names_free(&names);
}

void mr_facts_hugetlbfs(struct mr_root *r, const struct mr_probe *p, struct mr_host_facts *f)
{
	struct mr_facts_hugetlbfs *h = &f->hugetlbfs;
	char *text = malloc(256u << 10);
	int rc;

	if (text == NULL)
		return;
	rc = mr_root_read(r, "proc/self/mounts", text, 256u << 10, NULL);
	h->state = mr_facts_state_of(rc == 0 && text[0] == '\0' ? -EINVAL : rc);
	for (char *rest = text, *line = strtok_r(rest, "\n", &rest); rc == 0 && line != NULL;
		line = strtok_r(NULL, "\n", &rest)) {
		char *save = NULL;

		/* A source may be empty, and then the line begins with a space. */
		char *path = strchr(line, ' ');
		char *type, *options;

		path = path == NULL ? NULL : strtok_r(path, " ", &save);
		type = path == NULL ? NULL : strtok_r(NULL, " ", &save);
		options = type == NULL ? NULL : strtok_r(NULL, " ", &save);
		if (options == NULL || path[0] != '/') {
			h->state = MR_FACT_STRANGE;
			break;
		}
		if (strcmp(type, "hugetlbfs") != 0 || strlen(path) >= sizeof(h->path) || h->mounted)
			continue;
		h->mounted = true;
		h->writable = strncmp(options, "rw", 2) == 0;
		snprintf(h->path, sizeof(h->path), "%s", path + 1);
		count_maps(r, p, h);
	}
	free(text);
}
