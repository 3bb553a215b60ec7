/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_table.h"

#include "mr_base.h"
#include "mr_file.h"
#include "mr_stage.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_error(struct mr_table_errors *errors, uint32_t line, const char *fmt, va_list ap)
{
	if (errors->count++ >= MR_TABLE_ERRORS_MAX)
		return;
	errors->e[errors->count - 1].line = line;
	vsnprintf(errors->e[errors->count - 1].message, sizeof(errors->e[0].message), fmt, ap);
}

void mr_table_refuse(struct mr_table_text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_error(t->errors, t->line, fmt, ap);
	va_end(ap);
}

/* Takes a line's words apart, in place; at most one more than there may be is counted. */
static void split(struct mr_table_text *t, char *line)
{
	t->words = 0;
	line[strcspn(line, "#")] = '\0';
	for (char *at = line;; t->words++) {
		at += strspn(at, " \t\r");
		if (*at == '\0' || t->words == MR_TABLE_WORDS_MAX)
			break;
		t->word[t->words] = at;
		at += strcspn(at, " \t\r");
		if (*at != '\0')
			*at++ = '\0';
	}
}

bool mr_table_next(struct mr_table_text *t)
{
	/* Some editors begin UTF-8 with a byte order mark, which nobody sees. */
	if (t->line == 0 && strncmp(t->at, "\xef\xbb\xbf", 3) == 0)
		t->at += 3;
	while (*t->at != '\0') {
		char *line = t->at;

		/* Not strcspn, which AddressSanitizer has read all that is left, for every line. */
		while (*t->at != '\0' && *t->at != '\n')
			t->at++;
		if (*t->at != '\0')
			*t->at++ = '\0';
		t->line++;
		split(t, line);
		if (t->words > 0)
			return true;
	}
	return false;
}

/* The file's content with a 0 behind it. What was half of an old and half of a new one would
 * pass for a table wherever it ends with a line. */
static int read_all(int fd, char **ret_text, struct mr_err *err)
{
	struct stat before, after;
	size_t used = 0, room;
	ssize_t got = 1;
	char *text;

	if (fstat(fd, &before) != 0)
		return mr_err_set(err, -errno, "cannot be read: %s", strerror(errno));
	if (before.st_size > MR_TABLE_FILE_MAX)
		return mr_err_set(err, -EFBIG, "has more than %u MiB", MR_TABLE_FILE_MAX >> 20);
	room = (size_t)before.st_size + 1; /* one more, to see that there is no more */
	text = malloc(room + 1);
	if (text == NULL)
		return mr_err_set(err, -ENOMEM, "cannot be read: out of memory");
	while (got > 0 && used < room) {
		got = pread(fd, text + used, room - used, (off_t)used);
		used += got > 0 ? (size_t)got : 0;
	}
	if (got < 0 || fstat(fd, &after) != 0) {
		free(text);
		return mr_err_set(err, -errno, "cannot be read: %s", strerror(errno));
	}
	if (used != room - 1 || after.st_size != before.st_size ||
		after.st_mtim.tv_sec != before.st_mtim.tv_sec ||
		after.st_mtim.tv_nsec != before.st_mtim.tv_nsec) {
		free(text);
		return mr_err_set(err, -EAGAIN,
			"changes while it is read; write a new file and rename it to this name");
	}
	text[used] = '\0';
	if (memchr(text, '\0', used) != NULL) {
		free(text);
		return mr_err_set(err, -EINVAL, "is not text");
	}
	*ret_text = text;
	return 0;
}

const char *mr_stage_table_file(
	const struct mr_stage_desc *stage, const uint8_t params[MR_PARAM_BYTES])
{
	const struct mr_param_desc *p = mr_stage_param_find(stage, stage->table->file);

	return (const char *)params + p->offset;
}

int mr_stage_table_build(const struct mr_stage_desc *stage, const uint8_t params[MR_PARAM_BYTES],
	const struct mr_param_env *env, void **ret_table, size_t *ret_bytes,
	struct mr_table_errors *ret_errors)
{
	const char *file = mr_stage_table_file(stage, params);
	struct mr_table_text t = {.errors = ret_errors};
	size_t bytes = stage->table->bytes(params);
	struct mr_err err = {0};
	char *text = NULL;
	int rc = 0, fd;

	ret_errors->count = 0;
	if (*file != '\0') {
		rc = mr_file_open(file, &fd, &err);
		if (rc == 0) {
			rc = read_all(fd, &text, &err);
			close(fd);
		}
		if (rc < 0) {
			mr_table_refuse(&t, "%s", err.msg);
			return rc == -ENOMEM ? rc : -EINVAL;
		}
	}
	t.at = text != NULL ? text : (char[]){""};
	*ret_table = aligned_alloc(MR_CACHE_LINE, MR_ALIGN_UP(bytes, MR_CACHE_LINE));
	rc = *ret_table == NULL ? -ENOMEM
				: stage->table->build(&t, params, env, *ret_table, ret_bytes);
	free(text);
	if (rc == 0 && ret_errors->count == 0)
		return 0;
	free(*ret_table);
	*ret_table = NULL;
	return rc < 0 ? rc : -EINVAL;
}
