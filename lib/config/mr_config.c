/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_config.h"

#include "mr_file.h"
#include "mr_schema.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One printable line; a sequence of UTF-8 that was cut off at the end is removed. */
static void tidy(char *s)
{
	size_t n = strlen(s);
	size_t start = n;
	unsigned char c;

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			s[i] = '?';
	while (start > 0 && n - start < 3 && ((unsigned char)s[start - 1] & 0xc0) == 0x80)
		start--;
	if (start == 0)
		return;
	c = (unsigned char)s[start - 1];
	if ((c >= 0xf0 && n - start < 3) || (c >= 0xe0 && c < 0xf0 && n - start < 2) ||
		(c >= 0xc0 && c < 0xe0 && n - start < 1))
		s[start - 1] = '\0';
}

void mr_problem_add(struct mr_problems *ps, uint32_t line, const char *key, const char *hint,
	const char *fmt, ...)
{
	struct mr_problem *p;
	va_list ap;

	if (ps->count++ >= MR_PROBLEMS_MAX)
		return;
	p = &ps->p[ps->count - 1];
	p->line = line;
	snprintf(p->key, sizeof(p->key), "%s", key);
	snprintf(p->hint, sizeof(p->hint), "%s", hint);
	va_start(ap, fmt);
	vsnprintf(p->message, sizeof(p->message), fmt, ap);
	va_end(ap);
	tidy(p->key);
	tidy(p->hint);
	tidy(p->message);
}

const char *mr_path_name(enum mr_path path)
{
	static const char *const names[MR_PATH_COUNT] = {"direct", "pinned", "staged"};

	return (uint32_t)path < MR_PATH_COUNT ? names[path] : "unknown";
}

const char *mr_overload_name(enum mr_overload overload)
{
	return overload == MR_OVERLOAD_SHED ? "shed" : "block";
}

static const struct mr_config_lines *find_line(
	const struct mr_config *cfg, const char *key, size_t bytes, uint32_t *ret_at)
{
	const struct mr_config_lines *l = cfg->lines;

	for (uint32_t i = 0; l != NULL && i < l->count; i++) {
		if (strncmp(l->at[i].key, key, bytes) == 0 && l->at[i].key[bytes] == '\0') {
			*ret_at = i;
			return l;
		}
	}
	return NULL;
}

uint32_t mr_config_line(const struct mr_config *cfg, const char *key)
{
	size_t bytes = strlen(key);
	uint32_t i;

	while (bytes > 0) {
		const struct mr_config_lines *l = find_line(cfg, key, bytes, &i);

		if (l != NULL)
			return l->at[i].line;
		while (--bytes > 0 && key[bytes] != '.' && key[bytes] != '[')
			;
	}
	return 0;
}

static void set_lines(struct mr_config *cfg)
{
	char key[64];

	for (uint32_t i = 0; i < cfg->devices_count; i++) {
		snprintf(key, sizeof(key), "devices[%u]", i);
		cfg->devices[i].line = mr_config_line(cfg, key);
	}
	for (uint32_t i = 0; i < cfg->ports_count; i++) {
		snprintf(key, sizeof(key), "ports[%u]", i);
		cfg->ports[i].line = mr_config_line(cfg, key);
	}
	for (uint32_t i = 0; i < cfg->lanes_count; i++) {
		snprintf(key, sizeof(key), "lanes[%u]", i);
		cfg->lanes[i].line = mr_config_line(cfg, key);
		for (uint32_t j = 0; j < cfg->lanes[i].stages_count; j++) {
			snprintf(key, sizeof(key), "lanes[%u].stages[%u]", i, j);
			cfg->lanes[i].stages[j].line = mr_config_line(cfg, key);
		}
	}
}

static void set_file(struct mr_problems *ps, const char *file)
{
	ps->count = 0;
	snprintf(ps->file, sizeof(ps->file), "%s", file);
}

static int parse(const struct mr_schema *s, const char *text, size_t bytes, void *ret_cfg,
	struct mr_problems *ps)
{
	struct mr_yaml_node *top;
	int rc = mr_yaml_parse(text, bytes, &top, ps);

	if (rc != 0)
		return rc;
	mr_schema_check(s, top, ps);
	if (ps->count > 0) {
		mr_yaml_free(top);
		return -EINVAL;
	}
	rc = mr_schema_load(s, text, bytes, ret_cfg, ps);
	if (rc == 0 && mr_schema_fill(s, top, ret_cfg) != 0) {
		mr_problem_add(ps, 0, "", "free some memory", "out of memory");
		rc = -EINVAL;
	}
	mr_yaml_free(top);
	return rc;
}

/* Reads at most one byte more than is allowed, so that too long is seen as such. */
static int read_file(const char *file, char *text, size_t *ret_bytes, struct mr_err *err)
{
	size_t bytes = 0;
	ssize_t got;
	int fd, rc;

	if (file[0] == '\0')
		return mr_err_set(err, -ENOENT, "cannot be read: the name of the file is empty");
	rc = mr_file_open(file, &fd, err);
	if (rc < 0)
		return rc;
	do {
		got = read(fd, text + bytes, MR_YAML_BYTES_MAX + 1 - bytes);
		if (got > 0)
			bytes += (size_t)got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	if (got < 0)
		rc = mr_err_set(err, -errno, "cannot be read: %s", strerror(errno));
	close(fd);
	*ret_bytes = bytes;
	return rc;
}

int mr_schema_read(const struct mr_schema *s, const char *file, const char *text, size_t bytes,
	void *ret_cfg, struct mr_problems *ps)
{
	char *own = NULL;
	struct mr_err err;
	int rc = 0;

	memset(ret_cfg, 0, s->bytes);
	/* Lines start with the name, so it has to be seen. */
	set_file(ps, file[0] != '\0' || text != NULL ? file : "''");
	if (text == NULL) {
		own = malloc(MR_YAML_BYTES_MAX + 1);
		rc = own != NULL ? read_file(file, own, &bytes, &err)
				 : mr_err_set(&err, -ENOMEM, "cannot be read: out of memory");
		text = own;
	}
	if (rc != 0)
		mr_problem_add(ps, 0, "", "give the path of a readable YAML file", "%s", err.msg);
	else
		rc = parse(s, text, bytes, ret_cfg, ps);
	free(own);
	return rc;
}

int mr_config_parse(const char *file, const char *text, size_t bytes, struct mr_config *ret_cfg,
	struct mr_problems *problems)
{
	int rc = mr_schema_read(&mr_schema_run, file, text, bytes, ret_cfg, problems);

	if (rc != 0)
		mr_config_free(ret_cfg);
	else
		set_lines(ret_cfg);
	return rc;
}

int mr_config_load(const char *file, struct mr_config *ret_cfg, struct mr_problems *problems)
{
	return mr_config_parse(file, NULL, 0, ret_cfg, problems);
}

static void free_params(struct mr_config_param *params, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		free(params[i].key);
		free(params[i].value);
	}
	free(params);
}

static void free_lane(struct mr_config_lane *l)
{
	free(l->name);
	free(l->rx.port);
	for (uint32_t i = 0; i < l->tx_count; i++)
		free(l->tx[i].port);
	free(l->tx);
	free(l->device);
	for (uint32_t i = 0; i < l->stages_count; i++) {
		struct mr_config_stage *s = &l->stages[i];

		free(s->use);
		free_params(s->params, s->params_count);
	}
	free(l->stages);
	free_params(l->match, l->match_count);
}

void mr_config_free(struct mr_config *cfg)
{
	free(cfg->name);
	for (uint32_t i = 0; i < cfg->eal_args_count; i++)
		free(cfg->eal_args[i]);
	free(cfg->eal_args);
	for (uint32_t i = 0; i < cfg->plugins_count; i++)
		free(cfg->plugins[i]);
	free(cfg->plugins);
	for (uint32_t i = 0; i < cfg->devices_count; i++) {
		free(cfg->devices[i].name);
		free(cfg->devices[i].device);
	}
	free(cfg->devices);
	for (uint32_t i = 0; i < cfg->ports_count; i++) {
		free(cfg->ports[i].name);
		free(cfg->ports[i].device);
	}
	free(cfg->ports);
	for (uint32_t i = 0; i < cfg->lanes_count; i++)
		free_lane(&cfg->lanes[i]);
	free(cfg->lanes);
	free(cfg->http_listen);
	free(cfg->http_users);
	for (uint32_t i = 0; cfg->lines != NULL && i < cfg->lines->count; i++)
		free(cfg->lines->at[i].key);
	free(cfg->lines);
	memset(cfg, 0, sizeof(*cfg));
}
