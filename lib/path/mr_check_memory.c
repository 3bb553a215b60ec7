/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_check_memory - checks 8 to 16: memory, limits, files. */
#include "mr_checks_priv.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_MIN 4096u
#define CAP_NET_ADMIN 12 /* linux/capability.h */
#define CAP_NET_RAW 13
#define CAP_IPC_LOCK 14
#define MIB(bytes) ((unsigned long long)((bytes) >> 20))

/* Free bytes in hugepages of all sizes on a node; what overflows stays at the end. */
static bool free_on(const struct mr_facts_node *n, uint64_t *ret_bytes)
{
	bool known = n->sizes_count > 0;

	*ret_bytes = 0;
	for (uint32_t i = 0; i < n->sizes_count; i++) {
		const struct mr_facts_hugepages *h = &n->sizes[i];
		uint64_t bytes;

		known &= h->free.state == MR_FACT_KNOWN;
		if (h->free.state != MR_FACT_KNOWN)
			continue;
		if (__builtin_mul_overflow(h->free.v, h->page_bytes, &bytes) ||
			__builtin_add_overflow(*ret_bytes, bytes, ret_bytes))
			*ret_bytes = UINT64_MAX;
	}
	return known;
}

static const struct mr_facts_node *node_of(const struct mr_host_facts *f, int64_t number)
{
	for (uint32_t i = 0; i < f->nodes_count; i++)
		if (f->nodes[i].number == number)
			return &f->nodes[i];
	return NULL;
}

static void judge_node(const struct mr_check_in *in, const char *whose,
	const struct mr_facts_node *n, uint64_t elsewhere, struct mr_finding *f)
{
	uint64_t need = in->needs->hugepages_bytes;
	uint64_t have, page = n->sizes_count > 0 ? n->sizes[0].page_bytes : 2u << 20;

	if (!free_on(n, &have)) {
		mr_find_unread(f, MR_FACT_STRANGE, "hugepages of the node");
		return;
	}
	if (have >= need) {
		mr_find(f, MR_PASS, "%s: %llu MiB free on node %u, %llu needed", whose, MIB(have),
			n->number, MIB(need));
		return;
	}
	/* Where nobody has enough, ordinary pages are used; the wrong node is worse than that. */
	if (mr_find(f, elsewhere >= need ? MR_FAIL : MR_WARN,
		    "%s: %llu MiB free on node %u, %llu needed%s", whose, MIB(have), n->number,
		    MIB(need), elsewhere >= need ? ", enough on another node" : ""))
		mr_hint(f,
			"`echo %llu > /sys/devices/system/node/node%u/hugepages/"
			"hugepages-%llukB/nr_hugepages`",
			(unsigned long long)((need - have + page - 1) / page +
				(n->sizes_count > 0 && n->sizes[0].total.state == MR_FACT_KNOWN
						? n->sizes[0].total.v
						: 0)),
			n->number, (unsigned long long)(page >> 10));
}

/* The most that is free on any one node but this. */
static uint64_t most_elsewhere(const struct mr_host_facts *h, const struct mr_facts_node *here)
{
	uint64_t most = 0, bytes;

	for (uint32_t i = 0; i < h->nodes_count; i++)
		if (&h->nodes[i] != here && free_on(&h->nodes[i], &bytes) && bytes > most)
			most = bytes;
	return most;
}

void mr_check_memory_hugepages(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_host_facts *h = in->f;
	uint64_t all = 0, bytes;

	if (in->needs->configured && !in->needs->hugepages) {
		snprintf(f->value, sizeof(f->value), "the plan takes ordinary pages");
		f->verdict = MR_NA;
		return;
	}
	for (uint32_t i = 0; i < h->nodes_count; i++)
		if (free_on(&h->nodes[i], &bytes) && __builtin_add_overflow(all, bytes, &all))
			all = UINT64_MAX;
	MR_EACH_NIC(in, n) {
		const struct mr_facts_pci *p = &h->pci[h->nics[n->nic].pci];
		const struct mr_facts_node *node = node_of(
			h, p->node.state == MR_FACT_KNOWN && p->node.v >= 0 ? p->node.v : 0);

		if (node != NULL && (p->node.v >= 0 || h->nodes_count == 1))
			judge_node(in, p->bdf, node, most_elsewhere(h, node), f);
		else
			mr_find_unread(f, MR_FACT_ABSENT, "node of the NIC");
	}
	if (f->value[0] != '\0')
		return;
	if (all >= in->needs->hugepages_bytes)
		mr_find(f, MR_PASS, "%llu MiB free, %llu needed", MIB(all),
			MIB(in->needs->hugepages_bytes));
	else if (mr_find(f, MR_WARN, "%llu MiB free, %llu needed: ordinary pages would be used",
			 MIB(all), MIB(in->needs->hugepages_bytes)))
		mr_hint(f, "`sysctl -w vm.nr_hugepages=%llu`",
			(unsigned long long)(in->needs->hugepages_bytes >> 21) + 1);
}

/* EAL runs with --in-memory, so no mount is needed; one that is there shows the pages' use. */
void mr_check_memory_hugetlbfs(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_facts_hugetlbfs *h = &in->f->hugetlbfs;

	if (h->state != MR_FACT_KNOWN && h->state != MR_FACT_DENIED)
		mr_find_unread(f, h->state, "/proc/self/mounts");
	else if (!h->mounted)
		mr_find(f, MR_PASS,
			"not mounted, and not needed: hugepages are taken without files");
	else if (h->writable)
		mr_find(f, MR_PASS, "/%s", h->path);
	else if (mr_find(f, MR_WARN, "/%s is mounted for reading only", h->path))
		mr_hint(f, "other DPDK programs will fail: `mount -o remount,rw /%s`", h->path);
}

void mr_check_memory_leftovers(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_facts_hugetlbfs *h = &in->f->hugetlbfs;
	bool scarce;

	if (h->state == MR_FACT_DENIED) {
		mr_find_unread(f, h->state, "hugetlbfs");
		return;
	}
	if (h->state != MR_FACT_KNOWN) {
		mr_find_unread(f, h->state, "/proc/self/mounts");
		return;
	}
	if (h->maps_untold > 0 &&
		mr_find(f, MR_UNKNOWN,
			"%u files in /%s, and nobody tells whether their programs run",
			h->maps_untold, h->path))
		mr_hint(f, "run it as root: `sudo millrace doctor`");
	if (h->maps_dead == 0 && h->maps_untold == 0) {
		mr_find(f, MR_PASS, h->maps == 0 ? "none" : "%u files of programs that run",
			h->maps);
		return;
	}
	if (h->maps_dead == 0)
		return;
	scarce = in->f->host.hugepages_free == 0;
	if (mr_find(f, scarce ? MR_FAIL : MR_WARN,
		    "%u files of ended programs in /%s, first '%smap_'%s", h->maps_dead, h->path,
		    h->prefix, scarce ? ", no page is free" : ""))
		mr_hint(f, "give the pages back: `rm -f /%s/%smap_*`", h->path, h->prefix);
}

void mr_check_limits_memlock(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_facts_process *p = &in->f->process;
	bool may = p->caps_effective.state == MR_FACT_KNOWN &&
		(p->caps_effective.v & 1ull << CAP_IPC_LOCK) != 0;

	if (p->memlock_bytes.state != MR_FACT_KNOWN)
		mr_find_unread(f, p->memlock_bytes.state, "limit of locked memory");
	else if (p->memlock_bytes.v == UINT64_MAX)
		mr_find(f, MR_PASS, "unlimited");
	else if (may)
		mr_find(f, MR_PASS, "%llu KiB, and CAP_IPC_LOCK sets it aside",
			(unsigned long long)p->memlock_bytes.v >> 10);
	else if (p->memlock_bytes.v >= in->needs->locked_bytes)
		mr_find(f, MR_PASS, "%llu MiB, %llu needed", MIB(p->memlock_bytes.v),
			MIB(in->needs->locked_bytes));
	else if (mr_find(f, MR_FAIL, "%llu KiB, %llu MiB needed",
			 (unsigned long long)p->memlock_bytes.v >> 10,
			 MIB(in->needs->locked_bytes)))
		mr_hint(f,
			"LimitMEMLOCK=infinity in the unit (of containerd, for a container); in a "
			"shell: `ulimit -l unlimited`");
}

void mr_check_limits_files(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_fact_u64 *n = &in->f->process.open_files;

	if (n->state != MR_FACT_KNOWN)
		mr_find_unread(f, n->state, "limit of open files");
	else if (n->v >= FILES_MIN)
		mr_find(f, MR_PASS, n->v == UINT64_MAX ? "unlimited" : "%llu",
			(unsigned long long)n->v);
	else if (mr_find(f, MR_WARN, "%llu, less than %u", (unsigned long long)n->v, FILES_MIN))
		mr_hint(f, "LimitNOFILE=%u in the unit; in a shell: `ulimit -n %u`", FILES_MIN,
			FILES_MIN);
}

/* CAP_SYS_RAWIO is for flow rules of a group above 0, and a lane makes none. */
void mr_check_process_capabilities(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_fact_u64 *caps = &in->f->process.caps_effective;

	if (caps->state != MR_FACT_KNOWN) {
		mr_find_unread(f, caps->state, "capabilities");
		return;
	}
	if ((caps->v & 1ull << CAP_NET_RAW) == 0) {
		if (mr_find(f, MR_FAIL, "no CAP_NET_RAW"))
			mr_hint(f,
				"AmbientCapabilities=CAP_NET_RAW CAP_NET_ADMIN CAP_IPC_LOCK in the "
				"unit, or run it as root: `sudo millrace doctor`");
	} else if ((caps->v & 1ull << CAP_NET_ADMIN) == 0) {
		if (mr_find(f, MR_WARN, "no CAP_NET_ADMIN: MTU and link cannot be set"))
			mr_hint(f,
				"AmbientCapabilities=CAP_NET_RAW CAP_NET_ADMIN CAP_IPC_LOCK in the "
				"unit");
	} else {
		mr_find(f, MR_PASS, "CAP_NET_RAW, CAP_NET_ADMIN");
	}
}

static void judge_file(enum mr_fact_state state, const char *path, struct mr_finding *f)
{
	if (state == MR_FACT_KNOWN) {
		mr_find(f, MR_PASS, "%s", path);
		return;
	}
	if (state == MR_FACT_UNREAD) {
		mr_find_unread(f, state, path);
		return;
	}
	if (!mr_find(f, MR_FAIL, "%s %s", path,
		    state == MR_FACT_ABSENT            ? "is not there"
			    : state == MR_FACT_STRANGE ? "is no device"
						       : "may not be opened"))
		return;
	if (strncmp(path, "/dev/nvidia", 11) == 0)
		mr_hint(f,
			"`nvidia-modprobe -c 0 -u`; a unit also needs "
			"DeviceAllow=char-nvidia*");
	else
		mr_hint(f,
			"`modprobe ib_uverbs`; a unit also needs DeviceAllow=char-infiniband_verbs "
			"and the group rdma");
}

void mr_check_devices_nodes(const struct mr_check_in *in, struct mr_finding *f)
{
	char path[128];

	judge_file(in->f->nvidiactl_open, "/dev/nvidiactl", f);
	judge_file(in->f->uvm_open, "/dev/nvidia-uvm", f);
	MR_EACH_GPU(in, g) {
		const struct mr_facts_gpu *gpu = &in->f->gpus[g->gpu];

		snprintf(path, sizeof(path), "/dev/nvidia%llu", (unsigned long long)gpu->minor.v);
		if (gpu->minor.state == MR_FACT_KNOWN)
			judge_file(gpu->open, path, f);
		else
			mr_find_unread(f, gpu->minor.state, "number of the GPU's device file");
	}
	MR_EACH_NIC(in, n) {
		const struct mr_facts_nic *nic = &in->f->nics[n->nic];

		snprintf(path, sizeof(path), "/dev/infiniband/%s", nic->uverbs.v);
		if (nic->uverbs.state == MR_FACT_KNOWN)
			judge_file(nic->uverbs_open, path, f);
		else if (nic->verbs.state == MR_FACT_KNOWN) /* without verbs, nic.nodes tells */
			mr_find_unread(f, nic->uverbs.state, "name of the NIC's verbs device");
	}
}

void mr_check_runtime_folder(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_needs *n = in->needs;

	if (n->running) {
		if (mr_find(f, MR_FAIL, "an instance '%s' runs already", n->name))
			mr_hint(f, "stop it, or choose another name: `millrace stats --name %s`",
				n->name);
	} else if (n->runtime[0] == '\0') {
		mr_find(f, MR_PASS, "the name '%s' is free", n->name);
	} else if (n->runtime_open) {
		if (mr_find(f, MR_FAIL, "anybody may replace files in %s", n->runtime))
			mr_hint(f, "`chmod 0750 %s`, or RuntimeDirectoryMode=0750 in the unit",
				n->runtime);
	} else {
		mr_find(f, MR_PASS, "%s, the name '%s' is free", n->runtime, n->name);
	}
}

void mr_check_runtime_dumps(const struct mr_check_in *in, struct mr_finding *f)
{
	if (in->f->dumps == MR_FACT_KNOWN)
		mr_find(f, MR_PASS, "/var/log");
	else if (in->f->dumps == MR_FACT_STRANGE || in->f->dumps == MR_FACT_UNREAD)
		mr_find_unread(f, in->f->dumps, "/var/log");
	else if (mr_find(f, MR_WARN,
			 "/var/log cannot be written: a failed queue's dump goes to the "
			 "current folder"))
		mr_hint(f,
			"LogsDirectory=millrace and WorkingDirectory=/var/log/millrace in the "
			"unit");
}
