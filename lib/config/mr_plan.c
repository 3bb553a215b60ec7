/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_plan_priv.h"

#include "mr_listen.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

void mr_plan_refuse(struct mr_plan_work *w, const char *key, const char *hint, const char *fmt, ...)
{
	char message[MR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	mr_problem_add(w->ps, mr_config_line(w->cfg, key), key, hint, "%s", message);
}

void mr_plan_warn(struct mr_plan_work *w, const char *fmt, ...)
{
	struct mr_plan *p = w->plan;
	va_list ap;

	if (p->warnings_count == MR_WARNINGS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(p->warnings[p->warnings_count++], MR_TEXT_MAX, fmt, ap);
	va_end(ap);
}

/* Problems carry the file's name. */
void mr_plan_name(struct mr_plan_work *w, const char *name)
{
	const char *file = strrchr(w->ps->file, '/');
	size_t bytes;

	if (name == NULL)
		name = w->cfg->name;
	if (name != NULL) {
		bytes = strlen(name);
	} else {
		const char *dot;

		name = file != NULL ? file + 1 : w->ps->file;
		dot = strrchr(name, '.');
		bytes = dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name);
	}
	if (bytes == 0 || bytes >= MR_NAME_MAX || strspn(name, NAME_CHARACTERS) < bytes) {
		mr_plan_refuse(w, "name",
			"set name: or --name with 1 to 31 letters, digits, '_' and '-'",
			"'%.*s' cannot name the instance", (int)(bytes < 64 ? bytes : 64), name);
		return;
	}
	memcpy(w->plan->name, name, bytes);
}

static void plan_http(struct mr_plan_work *w)
{
	const char *listen = w->cfg->http_listen != NULL ? w->cfg->http_listen : "";
	const char *users = w->cfg->http_users != NULL ? w->cfg->http_users : "";
	struct mr_listen l;
	struct mr_err err;

	if (users[0] != '\0' && listen[0] == '\0')
		mr_plan_refuse(w, "http.users", "set http.listen too, or leave it out",
			"users are of no use without a server");
	if (listen[0] == '\0')
		return;
	if (mr_listen_parse(listen, &l, &err) < 0)
		mr_plan_refuse(w, "http.listen",
			"write 127.0.0.1:9467, [::1]:9467 or unix:/run/millrace/http", "'%s' %s",
			listen, err.msg);
	else if (l.public && users[0] == '\0')
		mr_plan_refuse(w, "http.listen",
			"listen on 127.0.0.1, or set http.users to a file of who may ask",
			"'%s' would tell everybody on the network of this instance", listen);
	snprintf(w->plan->http_listen, MR_TEXT_MAX, "%s", listen);
	snprintf(w->plan->http_users, MR_TEXT_MAX, "%s", users);
}

int mr_plan_build(const struct mr_config *cfg, const struct mr_host *host, const char *name,
	struct mr_plan *ret_plan, struct mr_problems *problems)
{
	struct mr_plan_work w = {cfg, host, ret_plan, problems};
	uint32_t before = problems->count;

	memset(ret_plan, 0, sizeof(*ret_plan));
	ret_plan->drain_ms = cfg->drain_ms;
	ret_plan->host_timeout_ms = cfg->host_timeout_ms;
	ret_plan->backoff_ns = cfg->backoff_ns;
	ret_plan->stall_ms = cfg->stall_ms;
	ret_plan->driver_ms = cfg->driver_ms;
	ret_plan->readback = cfg->readback;
	ret_plan->alarm = cfg->alarm;
	ret_plan->log_level = cfg->log_level;
	plan_http(&w);
	mr_plan_name(&w, name);
	mr_plan_devices(&w);
	mr_plan_ports(&w);
	mr_plan_lanes(&w);
	mr_plan_queues(&w);
	mr_plan_steer(&w);
	mr_plan_split(&w);
	mr_plan_pools(&w);
	mr_plan_eal(&w);
	return problems->count == before ? 0 : -EINVAL;
}
