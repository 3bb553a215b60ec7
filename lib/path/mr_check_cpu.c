/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_check_cpu - checks 49 to 53: the cores that lanes poll on. */
#include "mr_checks_priv.h"

#include <stdio.h>
#include <string.h>

#define EACH_CORE(in, l)                                                                           \
	for (const struct mr_needs_lane *l = (in)->needs->lanes;                                   \
		l < (in)->needs->lanes + (in)->needs->lanes_count; l++)                            \
		if (l->core >= 0 && l->core < (int32_t)MR_CPUS_MAX)

void mr_check_cpu_online(const struct mr_check_in *in, struct mr_finding *f)
{
	EACH_CORE(in, l) {
		if (!in->f->host.online_told) {
			mr_find_unread(f, MR_FACT_STRANGE, "list of CPUs that are online");
		} else if (!in->f->host.cpu_online[l->core]) {
			if (mr_find(f, MR_FAIL, "%s: CPU %d is not online", l->name, l->core))
				mr_hint(f, "`echo 1 > /sys/devices/system/cpu/cpu%d/online`",
					l->core);
		} else if (in->f->isolated_state != MR_FACT_KNOWN &&
			in->f->isolated_state != MR_FACT_ABSENT) {
			mr_find_unread(f, in->f->isolated_state, "list of isolated CPUs");
		} else if (!in->f->cpu[l->core].isolated) {
			if (mr_find(f, MR_WARN, "%s: CPU %d is not isolated", l->name, l->core))
				mr_hint(f, "boot with isolcpus=%d nohz_full=%d rcu_nocbs=%d",
					l->core, l->core, l->core);
		} else {
			mr_find(f, MR_PASS, "%s: CPU %d isolated", l->name, l->core);
		}
	}
}

void mr_check_cpu_irqs(const struct mr_check_in *in, struct mr_finding *f)
{
	if (in->f->irqs_state != MR_FACT_KNOWN) {
		mr_find_unread(f, in->f->irqs_state, "interrupt affinities");
		return;
	}
	EACH_CORE(in, l) {
		uint32_t n = in->f->cpu[l->core].irqs;

		if (n > 0 &&
			mr_find(f, MR_WARN, "%s: %u interrupts may come to CPU %d", l->name, n,
				l->core))
			mr_hint(f, "`deploy/host-tune apply --cpus %d` sends them elsewhere",
				l->core);
		if (in->f->irq_default_state != MR_FACT_KNOWN)
			mr_find_unread(f, in->f->irq_default_state, "default_smp_affinity");
		else if (in->f->cpu[l->core].irq_default &&
			mr_find(f, MR_WARN, "%s: new interrupts may come to CPU %d", l->name,
				l->core))
			mr_hint(f, "`deploy/host-tune apply --cpus %d` sends them elsewhere",
				l->core);
		else if (n == 0)
			mr_find(f, MR_PASS, "%s: none on CPU %d", l->name, l->core);
	}
}

void mr_check_cpu_siblings(const struct mr_check_in *in, struct mr_finding *f)
{
	EACH_CORE(in, l) {
		int16_t core = in->f->cpu[l->core].core;

		if (core < 0) {
			mr_find_unread(f, MR_FACT_ABSENT, "siblings");
			continue;
		}
		for (const struct mr_needs_lane *k = in->needs->lanes; k < l; k++)
			if (k->core >= 0 && k->core < (int32_t)MR_CPUS_MAX &&
				in->f->cpu[k->core].core == core &&
				mr_find(f, MR_WARN, "%s and %s share a physical core (CPUs %d, %d)",
					k->name, l->name, k->core, l->core))
				mr_hint(f, "`lscpu -e` shows which CPUs share a core");
		if (l->core == 0 &&
			mr_find(f, MR_WARN, "%s: CPU 0 does the kernel's own work", l->name))
			mr_hint(f, "give the lane another core: `lscpu -e` lists them");
	}
	if (f->value[0] == '\0')
		mr_find(f, MR_PASS, "each lane has a physical core to itself");
}

void mr_check_cpu_governor(const struct mr_check_in *in, struct mr_finding *f)
{
	EACH_CORE(in, l) {
		const struct mr_fact_text *g = &in->f->cpu[l->core].governor;

		if (g->state != MR_FACT_KNOWN)
			mr_find_unread(f, g->state, "frequency governor");
		else if (strcmp(g->v, "performance") == 0)
			mr_find(f, MR_PASS, "%s: performance", l->name);
		else if (mr_find(f, MR_WARN, "%s: CPU %d has governor %s", l->name, l->core, g->v))
			mr_hint(f,
				"`echo performance > "
				"/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor`",
				l->core);
	}
}

void mr_check_cpu_cpuset(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_facts_process *p = &in->f->process;

	EACH_CORE(in, l) {
		if (!in->f->host.allowed_told) {
			mr_find_unread(f, MR_FACT_STRANGE, "this process's affinity");
		} else if (!in->f->host.cpu_allowed[l->core]) {
			if (mr_find(f, MR_FAIL, "%s: CPU %d is outside this process's affinity",
				    l->name, l->core))
				mr_hint(f,
					"AllowedCPUs= in the unit; `taskset -pc $$` shows the set");
		} else if (p->cpuset_state == MR_FACT_KNOWN && !p->cpuset[l->core]) {
			if (mr_find(f, MR_FAIL, "%s: CPU %d is outside the cpuset", l->name,
				    l->core))
				mr_hint(f,
					"AllowedCPUs= in the unit; in Kubernetes the static CPU "
					"manager's policy; `cat /proc/self/cgroup` names the "
					"group");
		} else if (p->cpuset_state != MR_FACT_KNOWN && p->cpuset_state != MR_FACT_ABSENT) {
			mr_find_unread(f, p->cpuset_state, "cpuset");
		} else {
			mr_find(f, MR_PASS, "%s: CPU %d", l->name, l->core);
		}
	}
}
