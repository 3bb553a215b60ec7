/* SPDX-License-Identifier: BSD-3-Clause */
/* What an mlx5 port needs beside its options (mr_mlx5.h in lib/config has those). */
#include "mr_port.h"

#include <rte_errno.h>
#include <rte_mbuf_dyn.h>
#include <rte_pmd_mlx5.h>
#include <string.h>

bool mr_port_is_mlx5(const struct mr_port *p)
{
	return strncmp(p->driver, "mlx5", 4) == 0;
}

int mr_port_mlx5_prepare(const struct mr_port *p, struct mr_err *err)
{
	static const struct rte_mbuf_dynflag no_inline = {
		.name = RTE_PMD_MLX5_FINE_GRANULARITY_INLINE};

	/* A second registration of the same name gives the same bit. */
	if (!mr_port_is_mlx5(p) || rte_mbuf_dynflag_register(&no_inline) >= 0)
		return 0;
	return mr_err_set(err, -rte_errno,
		"port '%s' (%s): rte_mbuf_dynflag_register of %s: %s; too many other flags are "
		"registered",
		p->name, p->device, no_inline.name, rte_strerror(rte_errno));
}
