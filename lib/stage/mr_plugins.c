/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_plugins.h"

#include "mr_file.h"
#include "mr_sdk_id.h"

#include <dlfcn.h>
#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ID_MAX 64u /* bytes of an identity that is told */

/*
 * Whether only root and this user can change what st is of; the group bits stand for what an
 * access control list gives others, too (acl(5)). In a folder with the sticky bit others may
 * add names and cannot take away or replace those of root and this user.
 */
static int judge_owner(
	const char *path, const char *what, const struct stat *st, struct mr_err *err)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return mr_err_set(err, -EPERM,
			"plug-in '%s': %s belongs to user %u; it must belong to root or to the "
			"user who runs it: chown it",
			path, what, (unsigned)st->st_uid);
	if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0 &&
		!(S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) != 0))
		return mr_err_set(err, -EPERM,
			"plug-in '%s': others may write %s (mode %04o): chmod go-w it", path, what,
			st->st_mode & 07777u);
	return 0;
}

/* The file and all folders above it, as the kernel names them. */
static int judge_place(struct mr_plugin_object *o, struct mr_err *err)
{
	char link[32], place[PATH_MAX], what[PATH_MAX + 16];
	struct stat st;
	ssize_t n;
	int rc;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", o->fd);
	n = readlink(link, place, sizeof(place) - 1);
	if (n <= 0 || place[0] != '/')
		return mr_err_set(err, -EIO,
			"plug-in '%s': where it lies cannot be read from /proc; mount it", o->path);
	place[n] = '\0';
	if (fstat(o->fd, &o->file) != 0)
		return mr_err_set(err, -errno, "plug-in '%s': %s", o->path, strerror(errno));
	if (lstat(place, &st) != 0 || st.st_dev != o->file.st_dev || st.st_ino != o->file.st_ino)
		return mr_err_set(err, -EPERM,
			"plug-in '%s' was replaced while it was looked at; try again", o->path);
	rc = judge_owner(o->path, "it", &o->file, err);
	while (rc == 0 && strcmp(place, "/") != 0) {
		char *slash = strrchr(place, '/');

		slash[slash == place] = '\0';
		snprintf(what, sizeof(what), "the folder '%s'", place);
		if (lstat(place, &st) != 0)
			rc = mr_err_set(err, -errno, "plug-in '%s': %s: %s", o->path, what,
				strerror(errno));
		else
			rc = judge_owner(o->path, what, &st, err);
	}
	return rc;
}

/* Whether a note segment holds ours; then ret_id is what it says, cut to ID_MAX. */
static bool find_note(Elf_Data *data, char ret_id[ID_MAX])
{
	size_t at = 0, name_at, desc_at;
	GElf_Nhdr note;

	while ((at = gelf_getnote(data, at, &note, &name_at, &desc_at)) > 0) {
		const char *bytes = data->d_buf;

		if (note.n_type != MR_PLUGIN_NOTE_TYPE ||
			note.n_namesz != sizeof(MR_PLUGIN_NOTE_OWNER) ||
			memcmp(bytes + name_at, MR_PLUGIN_NOTE_OWNER, note.n_namesz) != 0)
			continue;
		snprintf(ret_id, ID_MAX, "%.*s", (int)(note.n_descsz < ID_MAX ? note.n_descsz : 0),
			bytes + desc_at);
		return true;
	}
	return false;
}

/* The loader maps segments unseen, and what is not in the file ends the program. */
static bool is_whole(Elf *elf, const struct mr_plugin_object *o)
{
	size_t count = 0;
	GElf_Phdr p;

	if (elf_getphdrnum(elf, &count) != 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(elf, (int)i, &p) == NULL ||
			p.p_filesz > (uint64_t)o->file.st_size ||
			p.p_offset > (uint64_t)o->file.st_size - p.p_filesz)
			return false;
	return count > 0;
}

static bool find_id(Elf *elf, char ret_id[ID_MAX])
{
	size_t count = 0;

	if (elf_getphdrnum(elf, &count) != 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr p;
		Elf_Data *data;

		if (gelf_getphdr(elf, (int)i, &p) == NULL || p.p_type != PT_NOTE)
			continue;
		data = elf_getdata_rawchunk(elf, (int64_t)p.p_offset, p.p_filesz,
			p.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		if (data != NULL && find_note(data, ret_id))
			return true;
	}
	return false;
}

/* Reads the note without running anything. */
static int judge_id(const struct mr_plugin_object *o, struct mr_err *err)
{
	char id[ID_MAX] = "";
	Elf *elf;
	int rc = 0;

	(void)elf_version(EV_CURRENT);
	elf = elf_begin(o->fd, ELF_C_READ, NULL);
	if (elf == NULL || elf_kind(elf) != ELF_K_ELF)
		rc = mr_err_set(err, -ENOEXEC,
			"plug-in '%s' is not an ELF file; name the shared object that its build "
			"made",
			o->path);
	else if (!is_whole(elf, o))
		rc = mr_err_set(err, -ENOEXEC,
			"plug-in '%s' is cut short or no shared object; build or copy it again",
			o->path);
	else if (!find_id(elf, id))
		rc = mr_err_set(err, -ENOEXEC,
			"plug-in '%s' has no note " MR_PLUGIN_NOTE_SECTION
			", so it is no plug-in of Millrace; see mr_plugin.h",
			o->path);
	else if (strcmp(id, MR_SDK_ID) != 0)
		rc = mr_err_set(err, -ENOEXEC,
			"plug-in '%s' was built with the SDK %s and this program has " MR_SDK_ID
			"; build it again with the SDK of this program",
			o->path, id);
	(void)elf_end(elf);
	return rc;
}

static int load(struct mr_plugin_object *o, struct mr_err *err)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", o->fd);
	o->handle = dlopen(link, RTLD_NOW | RTLD_LOCAL);
	if (o->handle == NULL)
		return mr_err_set(err, -ENOEXEC,
			"plug-in '%s' cannot be loaded: %s; build it again", o->path, dlerror());
	o->plugin = dlsym(o->handle, MR_PLUGIN_SYMBOL);
	if (o->plugin == NULL)
		return mr_err_set(err, -ENOEXEC,
			"plug-in '%s' does not export the symbol " MR_PLUGIN_SYMBOL
			"; link it without a version script that hides it",
			o->path);
	return 0;
}

/* The rules that the tests hold built-in stages to, where breaking them would run over memory. */
static int judge_params(const char *path, const struct mr_stage_desc *s, struct mr_err *err)
{
	uint8_t params[MR_PARAM_BYTES] __attribute__((aligned(8)));

	for (uint32_t i = 0; i < s->params_count; i++) {
		const struct mr_param_desc *p = &s->params[i];
		uint64_t values = p->list_max > 0 ? p->list_max : 1;
		struct mr_err why;

		if (p->name == NULL || p->unit == NULL || p->def == NULL || p->help == NULL ||
			(p->type == MR_PARAM_WORD && p->words == NULL))
			return mr_err_set(err, -EINVAL,
				"plug-in '%s', stage '%s': parameter %u lacks a name, unit, "
				"default, help or its words; mend its table",
				path, s->name, i);
		if (p->type >= MR_PARAM_TYPES ||
			p->offset + values * mr_param_bytes(p->type) > MR_PARAM_BYTES ||
			p->count_offset > MR_PARAM_BYTES - sizeof(uint32_t))
			return mr_err_set(err, -EINVAL,
				"plug-in '%s', stage '%s': parameter %u does not lie in the %u "
				"bytes of parameters; mend its table",
				path, s->name, i, MR_PARAM_BYTES);
		if (mr_param_parse(p, s->name, p->def, NULL, params, &why) != 0)
			return mr_err_set(err, -EINVAL,
				"plug-in '%s': a default that is not allowed: %s; mend its table",
				path, why.msg);
	}
	return 0;
}

static int judge_table(const char *path, const struct mr_stage_desc *s, struct mr_err *err)
{
	const struct mr_table_desc *t = s->table;
	const struct mr_param_desc *file;

	if (t == NULL)
		return 0;
	file = t->file != NULL ? mr_stage_param_find(s, t->file) : NULL;
	if (file == NULL || file->type != MR_PARAM_FILE || t->capacity == NULL ||
		mr_stage_param_find(s, t->capacity) == NULL)
		return mr_err_set(err, -EINVAL,
			"plug-in '%s', stage '%s': its table names no parameter of type file, or "
			"none for its capacity; name both",
			path, s->name);
	if (t->bytes == NULL || t->build == NULL)
		return mr_err_set(err, -EINVAL,
			"plug-in '%s', stage '%s': its table has no function that sizes it, or "
			"none that builds it; give both",
			path, s->name);
	return 0;
}

/* Counters are keys of reports, which take 32 of a stage. */
static int judge_counters(const char *path, const struct mr_stage_desc *s, struct mr_err *err)
{
	for (uint32_t i = 0; i < s->counters_count; i++) {
		const char *name = s->counters[i].name;
		bool good = i < MR_STAGE_COUNTERS_MAX && name != NULL && name[0] != '\0' &&
			s->counters[i].help != NULL &&
			name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';

		for (uint32_t k = 0; good && k < i; k++)
			good = strcmp(s->counters[k].name, name) != 0;
		if (!good)
			return mr_err_set(err, -EINVAL,
				"plug-in '%s', stage '%s': counter %u: at most %u, each with a "
				"help and a name of its own of a to z, 0 to 9 and _; mend its "
				"table",
				path, s->name, i, MR_STAGE_COUNTERS_MAX);
	}
	return 0;
}

static int judge_stage(const struct mr_plugins *p, const struct mr_plugin_object *o,
	const struct mr_plugin_stage *row, uint32_t done, struct mr_err *err)
{
	const struct mr_stage_desc *s = row->desc;
	const struct mr_plugin_object *other;

	if (s->name == NULL || s->name[0] == '\0' || strlen(s->name) >= MR_NAME_MAX ||
		s->help == NULL)
		return mr_err_set(err, -EINVAL,
			"plug-in '%s': a stage without help or a name of at most %u characters",
			o->path, MR_NAME_MAX - 1);
	if (mr_plugins_find(p, s->name, &other) != NULL)
		return mr_err_set(err, -EEXIST,
			"plug-in '%s': plug-in '%s' has a stage '%s' too; use one of them, or give "
			"it another name",
			o->path, other->path, s->name);
	for (uint32_t i = 0; i < done; i++)
		if (strcmp(o->stages[i].name, s->name) == 0)
			return mr_err_set(err, -EEXIST,
				"plug-in '%s' has two stages '%s'; give one another name", o->path,
				s->name);
	if (mr_stage_find(s->name) != NULL)
		return mr_err_set(err, -EEXIST,
			"plug-in '%s': there is a built-in stage '%s'; give its own another name",
			o->path, s->name);
	if (s->work != row->work)
		return mr_err_set(err, -EINVAL,
			"plug-in '%s', stage '%s': its table says a packet per %s and its row per "
			"%s; say the same in both",
			o->path, s->name, mr_work_name(s->work), mr_work_name(row->work));
	if ((s->params == NULL && s->params_count > 0) ||
		(s->counters == NULL && s->counters_count > 0))
		return mr_err_set(err, -EINVAL,
			"plug-in '%s', stage '%s': parameters or counters are counted, and there "
			"is no table of them",
			o->path, s->name);
	if (judge_params(o->path, s, err) < 0 || judge_counters(o->path, s, err) < 0)
		return err->code;
	return judge_table(o->path, s, err);
}

static int take_stages(const struct mr_plugins *p, struct mr_plugin_object *o, struct mr_err *err)
{
	uint32_t count = o->plugin->stages_count;
	int rc = 0;

	o->stages = calloc(count + 1, sizeof(*o->stages));
	if (o->stages == NULL)
		return mr_err_set(err, -ENOMEM, "plug-in '%s': out of memory", o->path);
	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		rc = judge_stage(p, o, &o->plugin->stages[i], i, err);
		if (rc < 0)
			break;
		o->stages[i] = *o->plugin->stages[i].desc;
		o->stages[i].id = (enum mr_stage_id)(MR_STAGE_COUNT + i);
	}
	return rc;
}

static void unload(struct mr_plugin_object *o)
{
	free(o->stages);
	if (o->handle != NULL)
		(void)dlclose(o->handle);
	if (o->fd >= 0)
		(void)close(o->fd);
	free(o->path);
	*o = (struct mr_plugin_object){.fd = -1};
}

int mr_plugins_add(struct mr_plugins *p, const char *path, struct mr_err *err)
{
	struct mr_plugin_object o = {.path = strdup(path), .fd = -1};
	struct mr_err why;
	int rc;

	if (o.path == NULL)
		rc = mr_err_set(err, -ENOMEM, "plug-in '%s': out of memory", path);
	else if (p->count == MR_PLUGINS_MAX)
		rc = mr_err_set(
			err, -ENOSPC, "plug-in '%s': there are %u already", path, MR_PLUGINS_MAX);
	else if ((rc = mr_file_open(path, &o.fd, &why)) < 0)
		(void)mr_err_set(err, rc,
			"plug-in '%s' %s; name the shared object that its build made", path,
			why.msg);
	if (rc == 0)
		rc = judge_place(&o, err);
	if (rc == 0)
		rc = judge_id(&o, err);
	if (rc == 0)
		rc = load(&o, err);
	if (rc == 0)
		rc = take_stages(p, &o, err);
	if (rc < 0)
		unload(&o);
	else
		p->object[p->count++] = o;
	return rc;
}

int mr_plugins_same(const struct mr_plugins *p, uint32_t *ret_at, struct mr_err *err)
{
	for (uint32_t i = 0; p != NULL && i < p->count; i++) {
		const struct stat *was = &p->object[i].file;
		struct stat st;

		*ret_at = i;
		if (stat(p->object[i].path, &st) != 0)
			return mr_err_set(err, -errno, "plug-in '%s' cannot be read: %s",
				p->object[i].path, strerror(errno));
		if (st.st_dev != was->st_dev || st.st_ino != was->st_ino ||
			st.st_size != was->st_size || st.st_mtim.tv_sec != was->st_mtim.tv_sec ||
			st.st_mtim.tv_nsec != was->st_mtim.tv_nsec)
			return mr_err_set(err, -ESTALE,
				"plug-in '%s' is not the file that this instance runs",
				p->object[i].path);
	}
	return 0;
}

void mr_plugins_free(struct mr_plugins *p)
{
	while (p->count > 0)
		unload(&p->object[--p->count]);
}
