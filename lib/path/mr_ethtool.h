/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_ethtool - counters that a network interface's driver keeps (`ethtool -S`).
 *
 * Thread   any.
 * Source   linux/ethtool.h: ETHTOOL_GSSET_INFO, ETHTOOL_GSTRINGS, ETHTOOL_GSTATS
 */
#ifndef MR_ETHTOOL_H
#define MR_ETHTOOL_H

#include "mr_base.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_ethtool_counter {
	const char *name;
	bool known; /* the driver has one of that name */
	uint64_t value;
};

/*
 * mr_ethtool_read fills the counters of an interface. -ENODEV: there is none of that name;
 * -EOPNOTSUPP: its driver counts nothing; -ENOMEM; -EIO: its counters changed while they were
 * read. Where it fails, none is known.
 */
MR_MUST_USE int mr_ethtool_read(
	const char *ifname, struct mr_ethtool_counter *counters, uint32_t count);

#endif
