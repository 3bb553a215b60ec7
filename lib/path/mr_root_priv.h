/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_root_priv - what the files of mr_root share. */
#ifndef MR_ROOT_PRIV_H
#define MR_ROOT_PRIV_H

#include "mr_root.h"

/* openat2 below the folder fd, links resolved inside it; a descriptor or -errno. */
int mr_root_openat(int fd, const char *path, int flags, uint32_t mode, bool may_follow);

/* Unpacks the archive into a new folder whose name goes to ret_folder. */
MR_MUST_USE int mr_root_unpack(const char *archive, char ret_folder[64], struct mr_err *err);

/* Removes a folder that mr_root_unpack made. */
void mr_root_remove(const char *folder);

#endif
