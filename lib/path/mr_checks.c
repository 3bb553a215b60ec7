/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_checks_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MR_CHECK(number, function, id, title, scope, gating)                                       \
	{number, id, title, MR_SCOPE_##scope, gating, mr_check_##function},
const struct mr_check mr_checks[MR_CHECKS_COUNT] = {
#include "mr_checks.def"
};
#undef MR_CHECK

const char *mr_check_verdict_name(enum mr_check_verdict v)
{
	static const char *const names[] = {[MR_NA] = "NA",
		[MR_PASS] = "PASS",
		[MR_WARN] = "WARN",
		[MR_UNKNOWN] = "UNKNOWN",
		[MR_FAIL] = "FAIL"};

	return names[v];
}

bool mr_find(struct mr_finding *f, enum mr_check_verdict v, const char *fmt, ...)
{
	size_t n = strlen(f->value);
	bool worse = v > f->verdict;
	va_list ap;

	if (n > 0 && n + 3 < sizeof(f->value)) {
		memcpy(f->value + n, "; ", 3);
		n += 2;
	}
	va_start(ap, fmt);
	vsnprintf(f->value + n, sizeof(f->value) - n, fmt, ap);
	va_end(ap);
	if (worse) {
		f->verdict = v;
		f->hint[0] = '\0';
	}
	return worse;
}

void mr_hint(struct mr_finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->hint, sizeof(f->hint), fmt, ap);
	va_end(ap);
}

void mr_find_unread(struct mr_finding *f, enum mr_fact_state state, const char *what)
{
	if (!mr_find(f, MR_UNKNOWN, "%s %s", what, mr_fact_state_name(state)))
		return;
	if (state == MR_FACT_DENIED)
		mr_hint(f, "run it as root: `sudo millrace doctor`");
	else
		mr_hint(f,
			"only a machine that shows it can be judged; is sysfs or procfs hidden "
			"here?");
}

bool mr_find_left_out(const struct mr_check_in *in, struct mr_finding *f, const char *what)
{
	if (!in->f->pci_left_out)
		return false;
	if (mr_find(f, MR_UNKNOWN,
		    "%s was not looked for among all: this machine has more than %u NICs, %u GPUs "
		    "or "
		    "the bridges above them",
		    what, MR_FACTS_NICS_MAX, MR_FACTS_GPUS_MAX))
		mr_hint(f,
			"take away virtual functions that nobody uses: "
			"`echo 0 > /sys/bus/pci/devices/PF/sriov_numvfs`");
	return true;
}

bool mr_check_by_dmabuf(const struct mr_check_in *in)
{
	const struct mr_probe_value *v = &in->f->software.extmem_dmabuf;

	return v->known && v->v != 0;
}

bool mr_check_translates(const struct mr_facts_pci *p)
{
	return p->iommu.state == MR_FACT_KNOWN && strncmp(p->iommu.v, "DMA", 3) == 0;
}

uint32_t mr_check_way(const struct mr_host_facts *f, uint32_t gpu, uint32_t nic,
	uint32_t ret_way[2 * MR_FACTS_CHAIN_MAX])
{
	const struct mr_facts_pci *g = &f->pci[f->gpus[gpu].pci];
	const struct mr_facts_pci *n = &f->pci[f->nics[nic].pci];
	uint32_t common = 0, count = 0;

	while (common < g->chain_count && common < n->chain_count &&
		g->chain[common] == n->chain[common])
		common++;
	for (uint32_t i = common; i < g->chain_count; i++)
		ret_way[count++] = g->chain[i];
	for (uint32_t i = common; i < n->chain_count; i++)
		ret_way[count++] = n->chain[i];
	return count;
}

static bool has_gpu(const struct mr_check_in *in)
{
	MR_EACH_GPU(in, g)
		return true;
	return false;
}

static bool has_nic(const struct mr_check_in *in)
{
	MR_EACH_NIC(in, n)
		return true;
	return false;
}

static bool has_pair(const struct mr_check_in *in)
{
	MR_EACH_PAIR(in, p)
		return true;
	return false;
}

static bool has_core(const struct mr_check_in *in)
{
	for (uint32_t i = 0; i < in->needs->lanes_count; i++)
		if (in->needs->lanes[i].core >= 0)
			return true;
	return false;
}

/* Why there is no direct way to judge. */
static const char *no_pair(const struct mr_check_in *in)
{
	if (in->needs->configured)
		return in->needs->pairs_count == 0
			? "no lane of this configuration joins a NIC and a GPU's memory"
			: "the devices that it names are not all on this machine";
	return in->needs->gpus_count == 0 ? "there is no NVIDIA GPU"
					  : "there is no NIC that reaches GPU memory";
}

/* NULL where the question arises. */
static const char *why_not(const struct mr_check_in *in, const struct mr_check *c)
{
	static const char no_gpu[] = "the memory is a BAR of no GPU";
	const struct mr_needs *n = in->needs;

	switch (c->scope) {
	case MR_SCOPE_ALWAYS:
		return NULL;
	case MR_SCOPE_CONFIG:
		return n->configured ? NULL : "no configuration was given";
	case MR_SCOPE_LANES:
		if (!n->configured)
			return "no configuration was given";
		return has_core(in) ? NULL : "no lane of this configuration has a core of its own";
	case MR_SCOPE_REAL:
		return !n->configured || has_core(in) || n->gpus_count > 0 || n->nics_count > 0
			? NULL
			: "this configuration is for trying out: no device, no core of its own";
	case MR_SCOPE_GPU:
		if (n->configured && n->gpus_count == 0)
			return "this configuration uses no GPU of the machine";
		/* That it is missing is said once. */
		return has_gpu(in) || c->judge == mr_check_gpu_driver ? NULL
								      : "there is no such GPU";
	case MR_SCOPE_NIC:
		if (n->configured && n->nics_count == 0)
			return "this configuration uses no NIC by its PCI address";
		return has_nic(in) || c->judge == mr_check_nic_driver ? NULL
								      : "there is no such NIC";
	case MR_SCOPE_DIRECT:
		return has_pair(in) ? NULL : no_pair(in);
	case MR_SCOPE_GPUMEM:
	case MR_SCOPE_PEERMEM:
		if (!has_pair(in))
			return no_pair(in);
		if (!has_gpu(in))
			return no_gpu;
		if (c->scope == MR_SCOPE_GPUMEM)
			return NULL;
		return mr_check_by_dmabuf(in) ? "GPU memory is registered by dma-buf" : NULL;
	case MR_SCOPE_DMABUF:
		if (!has_pair(in))
			return no_pair(in);
		if (!has_gpu(in))
			return no_gpu;
		return mr_check_by_dmabuf(in) ? NULL
					      : "this DPDK registers GPU memory by the peer-memory "
						"module, not by dma-buf";
	}
	return NULL;
}

void mr_checks_run(const struct mr_check_in *in, struct mr_finding ret_findings[MR_CHECKS_COUNT])
{
	for (uint32_t i = 0; i < MR_CHECKS_COUNT; i++) {
		struct mr_finding *f = &ret_findings[i];
		const char *why = why_not(in, &mr_checks[i]);

		memset(f, 0, sizeof(*f));
		f->gating = mr_checks[i].gating;
		if (why != NULL)
			snprintf(f->value, sizeof(f->value), "%s", why);
		else
			mr_checks[i].judge(in, f);
		if (why == NULL && f->value[0] == '\0')
			mr_find(f, MR_UNKNOWN, "nothing was found to judge");
		if (f->verdict <= MR_PASS)
			f->hint[0] = '\0';
	}
}

void mr_checks_be_strict(struct mr_finding findings[MR_CHECKS_COUNT])
{
	for (uint32_t i = 0; i < MR_CHECKS_COUNT; i++)
		if (findings[i].gating && findings[i].verdict == MR_UNKNOWN)
			findings[i].verdict = MR_FAIL;
}

enum mr_check_verdict mr_checks_worst(const struct mr_finding findings[MR_CHECKS_COUNT])
{
	enum mr_check_verdict worst = MR_PASS;

	for (uint32_t i = 0; i < MR_CHECKS_COUNT; i++)
		if (!findings[i].skipped && findings[i].verdict > worst)
			worst = findings[i].verdict;
	return worst;
}

uint32_t mr_checks_find(const char *id)
{
	uint32_t i = 0;

	while (i < MR_CHECKS_COUNT && strcmp(mr_checks[i].id, id) != 0)
		i++;
	return i;
}
