/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be known before DPDK is touched, and what only its end shows. */
#include "mr_listen.h"
#include "mr_setup_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* EAL, telemetry and its clients; then what a port or device opens at most. */
#define FILES_BASE 40u
#define FILES_EACH 4u
#define THREADS_MANY 1000u

struct mr_port_spec mr_setup_port_spec(const struct mr_plan_port *p)
{
	return (struct mr_port_spec){.name = p->name,
		.device = p->device,
		.args = p->args,
		.ifname = p->ifname,
		.pci = p->kind == MR_PORT_PCI,
		.isolated = mr_plan_port_isolated(p),
		.split_bytes = p->split_bytes,
		.sends_parts = p->sends_parts,
		.mtu = p->mtu,
		.rx_queues = p->rx_queues,
		.tx_queues = p->tx_queues};
}

struct check {
	const struct mr_config *cfg;
	struct mr_problems *ps;
};

static void tell_file(void *ctx, uint32_t port, const char *hint, const char *sentence)
{
	struct check *c = ctx;
	char key[64];

	snprintf(key, sizeof(key), "ports[%u].device", port);
	mr_problem_add(c->ps, mr_config_line(c->cfg, key), key, hint, "%s", sentence);
}

/* With too few, DPDK panics, speaks of memory, or gives up telemetry. */
static void check_open_files(const struct mr_plan *plan, struct mr_problems *ps)
{
	uint64_t need = FILES_BASE + FILES_EACH * plan->devices_count;
	struct rlimit l;

	for (uint32_t i = 0; i < plan->ports_count; i++)
		need += FILES_EACH * (1 + plan->ports[i].rx_queues + plan->ports[i].tx_queues);
	if (plan->http_listen[0] != '\0')
		need += MR_LISTEN_CONNECTIONS;
	if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur >= need)
		return;
	mr_problem_add(ps, 0, "", "raise it: ulimit -n, or LimitNOFILE= of a service",
		"this process may have %llu files open, and needs %llu",
		(unsigned long long)l.rlim_cur, (unsigned long long)need);
}

int mr_setup_check(
	const struct mr_config *cfg, const struct mr_plan *plan, struct mr_problems *problems)
{
	struct check c = {cfg, problems};
	struct mr_port_spec specs[MR_PORTS_MAX];
	uint32_t before = problems->count;

	for (uint32_t i = 0; i < plan->ports_count; i++)
		specs[i] = mr_setup_port_spec(&plan->ports[i]);
	mr_port_files_check(specs, plan->ports_count, tell_file, &c);
	check_open_files(plan, problems);
	if (mr_setup_check_tables(cfg, plan, problems) < 0)
		return -EINVAL;
	return problems->count == before ? 0 : -EINVAL;
}

void mr_setup_name_limits(struct mr_err *err)
{
	static const struct {
		int resource;
		uint32_t unit;
		const char *what, *how;
	} limits[] = {
		{RLIMIT_AS, 1024, "KiB of address space", "-v"},
		{RLIMIT_DATA, 1024, "KiB of data", "-d"},
		{RLIMIT_FSIZE, 1024, "KiB of a file's size", "-f"},
		{RLIMIT_NPROC, 1, "threads of its user", "-u"},
	};

	for (size_t i = 0; err != NULL && i < MR_ARRAY_LEN(limits); i++) {
		size_t used = strlen(err->msg);
		struct rlimit l;

		/* That of threads is seldom without end, but then of thousands. */
		if (getrlimit((__rlimit_resource_t)limits[i].resource, &l) != 0 ||
			l.rlim_cur == RLIM_INFINITY ||
			(limits[i].resource == RLIMIT_NPROC && l.rlim_cur > THREADS_MANY))
			continue;
		snprintf(err->msg + used, sizeof(err->msg) - used,
			"; this process is limited to %llu %s (ulimit %s)",
			(unsigned long long)l.rlim_cur / limits[i].unit, limits[i].what,
			limits[i].how);
	}
}

struct judge {
	mr_setup_tell *tell;
	void *ctx;
};

static void tell_loss(void *ctx, uint32_t port, const char *hint, const char *sentence)
{
	struct judge *j = ctx;

	(void)port;
	(void)hint;
	j->tell(j->ctx, sentence);
}

uint32_t mr_setup_judge(struct mr_setup *s, mr_setup_tell *tell, void *ctx)
{
	struct judge j = {tell, ctx};
	uint32_t told = 0;

	for (uint32_t i = 0; i < s->plan->ports_count; i++)
		told += mr_port_judge(&s->ports[i], i, tell_loss, &j);
	return told;
}
