/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_plan_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Generous: mbuf 128, mempool header and trailer, two ring entries, rounding. */
#define ELEMENT_BYTES 320u
#define QUEUE_BYTES (256u << 10)
#define BASE_BYTES (32u << 20)
#define MEMORY_MIB_MIN 64u

static void MR_PRINTF(2, 3) add(struct mr_plan *p, const char *fmt, ...)
{
	va_list ap;

	if (p->eal_args_count == MR_EAL_ARGS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(p->eal_args[p->eal_args_count++], MR_TEXT_MAX, fmt, ap);
	va_end(ap);
}

static uint64_t memory_mib(const struct mr_plan *p)
{
	uint64_t bytes = BASE_BYTES;

	bytes += (uint64_t)p->host_buffers * (p->host_element_bytes + ELEMENT_BYTES);
	for (uint32_t i = 0; i < p->lanes_count; i++)
		bytes += ((uint64_t)p->lanes[i].buffers + p->lanes[i].tx_buffers) * ELEMENT_BYTES;
	for (uint32_t i = 0; i < p->ports_count; i++) {
		const struct mr_plan_port *port = &p->ports[i];

		bytes += (uint64_t)port->rx_queues * (QUEUE_BYTES + port->rx_ring * 256ull);
		bytes += (uint64_t)port->tx_queues * (QUEUE_BYTES + port->tx_ring * 256ull);
	}
	bytes = MR_ALIGN_UP(bytes, 1u << 20) >> 20;
	return bytes > MEMORY_MIB_MIN ? bytes : MEMORY_MIB_MIN;
}

static bool polled(const struct mr_plan *p, uint32_t cpu)
{
	for (uint32_t i = 0; i < p->lanes_count; i++)
		if (p->lanes[i].core == (int32_t)cpu)
			return true;
	return false;
}

static bool usable(const struct mr_plan_work *w, uint32_t cpu, bool spare_lanes)
{
	return cpu < w->host->cpus && w->host->cpu_online[cpu] && w->host->cpu_allowed[cpu] &&
		!(spare_lanes && polled(w->plan, cpu));
}

/*
 * EAL's only lcore is the control thread. It floats over the CPUs that no lane
 * polls, or over all where lanes poll them all; threads without a core of their
 * own (workers of a software device, core: any) inherit that set.
 */
static void add_lcores(struct mr_plan_work *w)
{
	char list[MR_TEXT_MAX - 8] = "";
	bool spare = false;
	size_t used = 0;

	for (uint32_t i = 0; i < MR_CPUS_MAX; i++)
		spare |= usable(w, i, true);
	for (uint32_t i = 0; i < MR_CPUS_MAX; i++) {
		uint32_t end = i;

		if (!usable(w, i, spare))
			continue;
		while (end + 1 < MR_CPUS_MAX && usable(w, end + 1, spare))
			end++;
		/* A set too long to write is cut; the CPUs left out are only not used. */
		if (used + 16 > sizeof(list))
			break;
		used += (size_t)snprintf(list + used, sizeof(list) - used,
			end > i ? "%s%u-%u" : "%s%u", used > 0 ? "," : "", i, end);
		i = end;
	}
	if (used == 0)
		return;
	add(w->plan, "--lcores");
	add(w->plan, "0@(%s)", list);
}

static void add_ports(struct mr_plan *p)
{
	bool pci = false;

	for (uint32_t i = 0; i < p->ports_count; i++)
		pci |= p->ports[i].kind == MR_PORT_PCI;
	if (!pci)
		add(p, "--no-pci");
	for (uint32_t i = 0; i < p->ports_count; i++)
		if (p->ports[i].kind == MR_PORT_PCI)
			add(p, "--allow=%s%s%.439s", p->ports[i].device,
				p->ports[i].args[0] != '\0' ? "," : "", p->ports[i].args);
}

/* The user's arguments come last; those that would break what Millrace relies on do not. */
static void add_user(struct mr_plan_work *w)
{
	static const char *const ours[] = {"--file-prefix", "--no-telemetry", "--proc-type",
		"--lcores", "--coremask", "--iova-mode"};

	for (uint32_t i = 0; i < w->cfg->eal_args_count; i++) {
		const char *arg = w->cfg->eal_args[i];

		for (size_t k = 0; k < MR_ARRAY_LEN(ours); k++) {
			size_t n = strlen(ours[k]);
			char key[64];

			if (strncmp(arg, ours[k], n) != 0 || (arg[n] != '\0' && arg[n] != '='))
				continue;
			snprintf(key, sizeof(key), "eal.args[%u]", i);
			mr_plan_refuse(
				w, key, "remove it", "%s is set by Millrace itself", ours[k]);
		}
		add(w->plan, "%s", arg);
	}
}

void mr_plan_eal(struct mr_plan_work *w)
{
	/* DPDK's own info lines are about its insides, so they wait for debug. */
	static const char *const levels[] = {"*:error", "*:warning", "*:warning", "*:debug"};
	struct mr_plan *p = w->plan;
	uint64_t free_bytes = w->host->hugepages_free * w->host->hugepage_bytes;

	p->eal_memory_mib = memory_mib(p);
	p->hugepages = w->cfg->hugepages == MR_HUGEPAGES_AUTO && w->host->known &&
		free_bytes >> 20 >= p->eal_memory_mib;
	add(p, "--file-prefix");
	add(p, "millrace-%s", p->name);
	add(p, "--iova-mode");
	add(p, "va");
	if (p->hugepages) {
		add(p, "--in-memory");
	} else {
		add(p, "--no-huge");
		add(p, "-m");
		add(p, "%llu", (unsigned long long)p->eal_memory_mib);
	}
	add_ports(p);
	if (w->host->known)
		add_lcores(w);
	if (p->log_level == 1 || p->log_level == 2) {
		/*
		 * It warns at every start that nobody registered a legacy command. For a type
		 * that EAL registers later the first match counts, so this one comes first.
		 */
		add(p, "--log-level");
		add(p, "lib.telemetry:error");
	}
	add(p, "--log-level");
	add(p, "%s", levels[p->log_level < MR_ARRAY_LEN(levels) ? p->log_level : 2]);
	if (p->log_level <= 2) {
		/* Its sentences come up as errors; it repeats them for other programs. */
		add(p, "--log-level");
		add(p, "pmd.gpu.millrace:critical");
	}
	add_user(w);
}
