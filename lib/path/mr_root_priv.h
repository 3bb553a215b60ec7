/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_root_priv - what the files of mr_root share. */
#ifndef MR_ROOT_PRIV_H
#define MR_ROOT_PRIV_H

#include "mr_root.h"

/* openat2 below the folder fd, links resolved inside it; a descriptor or -errno. */
int mr_root_openat(int fd, const char *path, int flags, uint32_t mode, bool may_follow);

/* Unpacks an archive or an export of hwloc into a new folder whose name goes to ret_folder. */
MR_MUST_USE int mr_root_unpack(const char *file, char ret_folder[64], struct mr_err *err);

/* Whether the file is XML, which no archive begins with. */
bool mr_root_is_hwloc(const char *file);

/*
 * mr_root_write_hwloc writes CPUs, NUMA nodes and PCI functions of hwloc's XML below the
 * descriptor folder. -EBADMSG where hwloc cannot read it.
 */
MR_MUST_USE int mr_root_write_hwloc(const char *xml, int folder);

/* Removes a folder that mr_root_unpack made. */
void mr_root_remove(const char *folder);

#endif
