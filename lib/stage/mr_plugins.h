/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_plugins - the plug-ins of a configuration, judged and loaded.
 *
 *     path ─ open ─ owner, mode, folders above ─ ELF note ─ dlopen ─ tables ─► its stages
 *
 * Loading a shared object runs code of it (its constructors), so everything that can be judged
 * without is judged before, and all of it through one descriptor: what was judged is what is
 * loaded, whatever becomes of the path meanwhile.
 *
 * Thread   the control thread; mr_plugins_same from any while nothing is added or freed.
 * Owner    the caller; stages and images are valid until mr_plugins_free.
 * Errors   -errno, or -EPERM (owner or mode), -ENOEXEC (no plug-in of this SDK), -EEXIST (a
 *          stage of that name is there), -EINVAL (tables that cannot be used), with one
 *          sentence that names the plug-in.
 */
#ifndef MR_PLUGINS_H
#define MR_PLUGINS_H

#include "mr_plugin.h"

#include <string.h>
#include <sys/stat.h>

#define MR_PLUGINS_MAX 8u

struct mr_plugin_object {
	char *path; /* as given */
	const struct mr_plugin *plugin;
	struct mr_stage_desc *stages; /* with their ids, [plugin->stages_count] */
	struct stat file;
	void *handle;
	int fd; /* open while it is loaded, so that no other object gets its name */
};

struct mr_plugins {
	uint32_t count;
	struct mr_plugin_object object[MR_PLUGINS_MAX];
};

/* mr_plugins_add loads one more. -ENOSPC: there are MR_PLUGINS_MAX. */
MR_MUST_USE int mr_plugins_add(struct mr_plugins *p, const char *path, struct mr_err *err);

/* mr_plugins_same: 0 if the files are still those that were loaded; p may be NULL. */
MR_MUST_USE int mr_plugins_same(const struct mr_plugins *p, uint32_t *ret_at, struct mr_err *err);

/* mr_plugins_free unloads all; p becomes empty. */
void mr_plugins_free(struct mr_plugins *p);

/* mr_plugins_find returns the stage of that name and its plug-in, or NULL; p may be NULL. */
static inline const struct mr_stage_desc *mr_plugins_find(
	const struct mr_plugins *p, const char *name, const struct mr_plugin_object **ret_object)
{
	for (uint32_t i = 0; p != NULL && i < p->count; i++)
		for (uint32_t k = 0; k < p->object[i].plugin->stages_count; k++)
			if (strcmp(p->object[i].stages[k].name, name) == 0) {
				*ret_object = &p->object[i];
				return &p->object[i].stages[k];
			}
	return NULL;
}

#endif
