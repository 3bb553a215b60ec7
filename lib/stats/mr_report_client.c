/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_report_client.h"

#include "mr_report_shape.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET_NAME "dpdk_telemetry.v2"
#define BASES_MAX 2u
#define FOUND_MAX 64u /* instances listed */

/* Where DPDK puts runtime directories, see mr_report.h; returns how many. */
static size_t bases(const char *ret_base[BASES_MAX])
{
	const char *by_systemd = getenv("RUNTIME_DIRECTORY");
	const char *by_user = getenv("XDG_RUNTIME_DIR");
	size_t n = 0;

	if (by_systemd != NULL) {
		ret_base[0] = by_systemd;
		return 1;
	}
	if (getuid() == 0)
		ret_base[n++] = "/var/run";
	else
		ret_base[n++] = by_user != NULL ? by_user : "/tmp";
	ret_base[n++] = "/run/millrace";
	return n;
}

int mr_report_dir(const char *name, char ret_dir[MR_REPORT_DIR_MAX], struct mr_err *err)
{
	const char *base[BASES_MAX];

	(void)bases(base);
	if (snprintf(ret_dir, MR_REPORT_DIR_MAX, "%s/dpdk/" MR_REPORT_PREFIX "%s", base[0], name) >=
		MR_REPORT_DIR_MAX)
		return mr_err_set(err, -ENAMETOOLONG,
			"the runtime directory of instance '%s' in '%.200s' has too long a name",
			name, base[0]);
	return 0;
}

static int set_timeout(struct mr_report_client *client, int option)
{
	struct timeval wait = {.tv_sec = MR_REPORT_WAIT_NS / 1000000000u};

	return setsockopt(client->fd, SOL_SOCKET, option, &wait, sizeof(wait));
}

/* Receives one reply; a dead or slow server ends as a sentence. */
static int receive(struct mr_report_client *client, json_t **ret_reply, struct mr_err *err)
{
	char *text = malloc(MR_REPORT_REPLY_MAX);
	json_error_t why;
	ssize_t n = -1;
	int rc = 0;

	if (text == NULL)
		return mr_err_set(err, -ENOMEM, "no memory for a reply");
	if (mr_clock_ns() < client->deadline_ns) {
		do
			n = recv(client->fd, text, MR_REPORT_REPLY_MAX, MSG_TRUNC);
		while (n < 0 && errno == EINTR && mr_clock_ns() < client->deadline_ns);
	} else {
		errno = EAGAIN;
	}
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		rc = mr_err_set(err, -ETIMEDOUT,
			"instance '%s' has a socket but does not answer in time; is it stopped or "
			"overloaded?",
			client->name);
	else if (n < 0)
		rc = mr_err_set(err, -errno, "reading from instance '%s' failed: %s", client->name,
			strerror(errno));
	else if (n == 0)
		rc = mr_err_set(err, -ECONNRESET,
			"instance '%s' hung up; it is stopping, or has its 10 telemetry clients "
			"already",
			client->name);
	else if (n > (ssize_t)MR_REPORT_REPLY_MAX)
		rc = mr_err_set(err, -EPROTO,
			"instance '%s' sent a reply of %zd bytes, more than DPDK's %u",
			client->name, n, MR_REPORT_REPLY_MAX);
	if (rc == 0) {
		*ret_reply = json_loadb(text, (size_t)n, 0, &why);
		if (!json_is_object(*ret_reply)) {
			json_decref(*ret_reply);
			rc = mr_err_set(err, -EPROTO,
				"instance '%s' sent a reply that is no JSON object", client->name);
		}
	}
	free(text);
	return rc;
}

int mr_report_client_ask(struct mr_report_client *client, const char *request, const char *cmd,
	json_t **ret_answer, struct mr_err *err)
{
	json_t *reply;
	int rc;

	if (send(client->fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		return mr_err_set(err, errno == EAGAIN ? -ETIMEDOUT : -errno,
			"asking instance '%s' for %s failed: %s", client->name, request,
			strerror(errno));
	rc = receive(client, &reply, err);
	if (rc != 0)
		return rc;
	*ret_answer = json_incref(json_object_get(reply, cmd));
	json_decref(reply);
	if (*ret_answer == NULL)
		return mr_err_set(err, -EPROTO, "instance '%s' answered %s with something else",
			client->name, request);
	return 0;
}

/* -ENOENT: nobody listens. The greeting is read because DPDK loses a client's place
 * for ever when one leaves before it was greeted. */
static int connect_to(struct mr_report_client *client, const char *path, struct mr_err *err)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	json_t *greeting;
	int rc;

	if (strlen(path) >= sizeof(to.sun_path))
		return mr_err_set(err, -ENAMETOOLONG, "socket path %s is too long", path);
	memcpy(to.sun_path, path, strlen(path) + 1);
	client->deadline_ns = mr_clock_ns() + MR_REPORT_TOTAL_NS;
	client->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (client->fd < 0 || set_timeout(client, SO_RCVTIMEO) != 0 ||
		set_timeout(client, SO_SNDTIMEO) != 0) {
		rc = mr_err_set(err, -errno, "no socket to ask instance '%s': %s", client->name,
			strerror(errno));
		goto fail;
	}
	if (connect(client->fd, (const struct sockaddr *)&to, sizeof(to)) != 0) {
		/* Left over from a killed process, just removed, or no such socket at all. */
		if (errno == ECONNREFUSED || errno == ENOENT || errno == EPROTOTYPE)
			rc = mr_err_set(err, -ENOENT, "no instance '%s' is running", client->name);
		else if (errno == EAGAIN)
			rc = mr_err_set(err, -ETIMEDOUT,
				"instance '%s' does not accept a connection; is it stopped?",
				client->name);
		else
			rc = mr_err_set(err, -errno, "connecting to instance '%s' at %s failed: %s",
				client->name, path, strerror(errno));
		goto fail;
	}
	rc = receive(client, &greeting, err);
	if (rc == 0) {
		json_decref(greeting);
		return 0;
	}
fail:
	mr_report_client_close(client);
	return rc;
}

/* It appears in errors, which go to a terminal. */
static bool is_version(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.-+~");

	return n > 0 && s[n] == '\0' && n < sizeof(((struct mr_report_client *)0)->version);
}

/* Fills client->version; -ENOENT when it is a DPDK process but not this instance. */
static int identify(struct mr_report_client *client, struct mr_err *err)
{
	const char *name, *version;
	json_t *answer;
	int rc = mr_report_client_ask(
		client, MR_REPORT_CMD_INSTANCE, MR_REPORT_CMD_INSTANCE, &answer, err);

	if (rc != 0)
		return rc;
	name = json_string_value(json_object_get(answer, "name"));
	version = json_string_value(json_object_get(answer, "version"));
	if (json_is_null(answer))
		rc = mr_err_set(err, -ECONNRESET,
			"instance '%s' is starting or stopping and has no statistics now",
			client->name);
	else if (name == NULL || version == NULL || !is_version(version))
		rc = mr_err_set(err, -EPROTO, "instance '%s' did not say its name and version",
			client->name);
	else if (strcmp(name, client->name) != 0)
		rc = mr_err_set(err, -ENOENT, "no instance '%s' is running", client->name);
	else
		snprintf(client->version, sizeof(client->version), "%s", version);
	json_decref(answer);
	return rc;
}

/*
 * Tries every socket in the runtime directory of one instance. -ENOENT: none is
 * alive; another error only if there was one that did not behave.
 */
static int open_in(struct mr_report_client *client, const char *dir, struct mr_err *err)
{
	struct dirent *entry;
	struct mr_err why;
	int rc = -ENOENT;
	DIR *d = opendir(dir);

	if (d == NULL && errno == EACCES)
		return mr_err_set(err, -EACCES,
			"%s may not be read by this user; ask as the user who started '%s'", dir,
			client->name);
	if (d == NULL)
		return mr_err_set(err, -ENOENT, "no instance '%s' is running", client->name);
	while ((entry = readdir(d)) != NULL) {
		char path[704]; /* DIR may have 384, an entry 255 */
		int one;

		if (strncmp(entry->d_name, SOCKET_NAME, strlen(SOCKET_NAME)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		one = connect_to(client, path, &why);
		if (one == 0) {
			one = identify(client, &why);
			if (one != 0)
				mr_report_client_close(client);
		}
		if (one == 0 || (rc == -ENOENT && one != -ENOENT)) {
			rc = one;
			if (one != 0)
				mr_err_set(err, one, "%s", why.msg);
		}
		if (one == 0)
			break;
	}
	closedir(d);
	if (rc == -ENOENT)
		mr_err_set(err, rc, "no instance '%s' is running", client->name);
	return rc;
}

int mr_report_client_open(struct mr_report_client *client, const char *name, struct mr_err *err)
{
	const char *base[BASES_MAX];
	size_t count = bases(base);
	int rc = -ENOENT;

	client->fd = -1;
	snprintf(client->version, sizeof(client->version), "unknown");
	if (strlen(name) == 0 || strlen(name) >= MR_NAME_MAX || strchr(name, '/') != NULL)
		return mr_err_set(err, -ENOENT, "'%s' is not the name of an instance", name);
	snprintf(client->name, sizeof(client->name), "%s", name);
	for (size_t i = 0; i < count && rc == -ENOENT; i++) {
		snprintf(client->dir, sizeof(client->dir), "%s/dpdk/" MR_REPORT_PREFIX "%s",
			base[i], name);
		rc = open_in(client, client->dir, err);
	}
	return rc;
}

void mr_report_client_close(struct mr_report_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

struct found {
	char name[FOUND_MAX][MR_NAME_MAX];
	size_t count;
};

static void add_found(struct found *found, const char *name)
{
	for (size_t i = 0; i < found->count; i++)
		if (strcmp(found->name[i], name) == 0)
			return;
	if (found->count < FOUND_MAX)
		snprintf(found->name[found->count++], MR_NAME_MAX, "%s", name);
}

/* Instances that answer, and those that have a socket but do not. */
static void find_in(const char *base, struct found *found, struct found *silent)
{
	static const char prefix[] = MR_REPORT_PREFIX;
	struct dirent *entry;
	char dir[384];
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/dpdk", base);
	d = opendir(dir);
	if (d == NULL)
		return;
	while ((entry = readdir(d)) != NULL) {
		const char *name = entry->d_name + sizeof(prefix) - 1;
		struct mr_report_client client;
		int rc;

		if (strncmp(entry->d_name, prefix, sizeof(prefix) - 1) != 0)
			continue;
		rc = mr_report_client_open(&client, name, NULL);
		if (rc == 0) {
			mr_report_client_close(&client);
			add_found(found, name);
		} else if (rc != -ENOENT && rc != -EACCES) {
			add_found(silent, name);
		}
	}
	closedir(d);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

int mr_report_find(char ret_name[MR_NAME_MAX], struct mr_err *err)
{
	const char *base[BASES_MAX];
	size_t count = bases(base);
	struct found found = {.count = 0}, silent = {.count = 0};
	char list[512] = "";

	for (size_t i = 0; i < count; i++)
		find_in(base[i], &found, &silent);
	/* One that does not answer is better asked, and named in the error, than denied. */
	if (found.count == 0)
		found = silent;
	if (found.count == 1) {
		memcpy(ret_name, found.name[0], MR_NAME_MAX);
		return 0;
	}
	if (found.count == 0)
		return mr_err_set(err, -ENOENT,
			"no instance is running that this user may ask; start one with 'millrace "
			"run'");
	qsort(found.name, found.count, sizeof(found.name[0]), compare_names);
	for (size_t i = 0; i < found.count; i++) {
		size_t used = strlen(list);

		snprintf(list + used, sizeof(list) - used, "%s%s", i == 0 ? "" : ", ",
			found.name[i]);
	}
	return mr_err_set(
		err, -EEXIST, "several instances are running (%s); choose with --name", list);
}
