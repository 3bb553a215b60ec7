/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_http_priv.h"

#include "mr_base.h"
#include "mr_listen.h"
#include "mr_page.h"
#include "mr_report.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONNECTION_BYTES 32768u
#define LOCAL_MODE 0660

struct mr_http {
	struct MHD_Daemon *daemon; /* NULL until it serves; owns the socket then */
	struct mr_http_users *users;
	struct mr_listen listen;
	int fd;
	json_t *added;     /* members of the status; NULL: none */
	struct stat bound; /* the socket's file; no number: there is none */
	/* Of the daemon's thread alone. */
	uint64_t made_ns;
	json_t *report; /* NULL: none is served */
	char *metrics, *status;
};

static void forget(struct mr_http *h)
{
	json_decref(h->report);
	free(h->metrics);
	free(h->status);
	h->report = NULL;
	h->metrics = h->status = NULL;
}

static void renew(struct mr_http *h)
{
	uint64_t now = mr_clock_ns();

	if (h->made_ns != 0 && now - h->made_ns < MR_HTTP_REPORT_MS * 1000000ull)
		return;
	forget(h);
	h->made_ns = now;
	h->report = mr_report_status();
	if (h->report == NULL)
		return;
	if (h->added != NULL)
		json_object_update(h->report, h->added);
	h->metrics = mr_report_prometheus(h->report);
	h->status = json_dumps(h->report, JSON_COMPACT);
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text != NULL ? text : "unknown";
}

/* The first device that is not healthy, in words; "" if all are. */
static void judge_devices(const struct mr_http *h, char *why, size_t size)
{
	const json_t *d;
	size_t i;

	json_array_foreach(json_object_get(h->report, "devices"), i, d)
		if (why[0] == '\0' && strcmp(text_of(d, "health"), "healthy") != 0)
			snprintf(why, size, "device %s is %s", text_of(d, "name"),
				text_of(d, "health"));
}

static void judge_lanes(const struct mr_http *h, char *why, size_t size)
{
	const json_t *l;
	size_t i;

	json_array_foreach(json_object_get(h->report, "lanes"), i, l) {
		if (why[0] != '\0')
			return;
		if (strcmp(text_of(l, "state"), "run") != 0)
			snprintf(why, size, "lane %s is in state %s", text_of(l, "name"),
				text_of(l, "state"));
		else if (strcmp(text_of(l, "path_verdict"), "unproven") == 0)
			snprintf(why, size, "the path of lane %s is unproven", text_of(l, "name"));
	}
}

static enum MHD_Result reply(struct MHD_Connection *c, unsigned int status, const char *type,
	const char *text, const char *header, const char *value)
{
	struct MHD_Response *r =
		MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
			text == mr_page ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY);
	enum MHD_Result rc;

	if (r == NULL)
		return MHD_NO;
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	if (header != NULL)
		MHD_add_response_header(r, header, value);
	rc = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return rc;
}

static enum MHD_Result say(struct MHD_Connection *c, unsigned int status, const char *sentence)
{
	char line[256];

	snprintf(line, sizeof(line), "%s\n", sentence);
	return reply(c, status, "text/plain; charset=utf-8", line, NULL, NULL);
}

static enum MHD_Result verdict(struct MHD_Connection *c, const char *good, const char *why)
{
	return why[0] == '\0' ? say(c, MHD_HTTP_OK, good)
			      : say(c, MHD_HTTP_SERVICE_UNAVAILABLE, why);
}

static enum MHD_Result route(struct mr_http *h, struct MHD_Connection *c, const char *url)
{
	char why[256] = "";
	bool health = strcmp(url, "/healthz") == 0, ready = strcmp(url, "/readyz") == 0;
	bool metrics = strcmp(url, "/metrics") == 0;

	if (strcmp(url, "/") == 0)
		return reply(c, MHD_HTTP_OK, "text/html; charset=utf-8", mr_page,
			"Content-Security-Policy", MR_PAGE_POLICY);
	if (!health && !ready && !metrics && strcmp(url, "/api/v1/status") != 0)
		return say(c, MHD_HTTP_NOT_FOUND,
			"there are /, /metrics, /api/v1/status, /healthz and /readyz");
	renew(h);
	if (h->report == NULL)
		return say(c, MHD_HTTP_SERVICE_UNAVAILABLE, "no lane runs");
	judge_devices(h, why, sizeof(why));
	if (health)
		return verdict(c, "healthy", why);
	judge_lanes(h, why, sizeof(why));
	if (ready)
		return verdict(c, "ready", why);
	if (h->metrics == NULL || h->status == NULL)
		return say(c, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory for a report");
	return metrics ? reply(c, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
				 h->metrics, NULL, NULL)
		       : reply(c, MHD_HTTP_OK, "application/json", h->status, NULL, NULL);
}

static uint32_t mix(uint32_t word)
{
	return word * 0x9e3779b1u >> 16;
}

/* A number for where a request comes from; one for all who come by a socket's file. */
static uint32_t peer_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *from = info != NULL ? info->client_addr : NULL;
	const struct in6_addr *ip;
	uint32_t word[2];

	if (from != NULL && from->sa_family == AF_INET)
		return mix(ntohl(((const struct sockaddr_in *)from)->sin_addr.s_addr));
	if (from == NULL || from->sa_family != AF_INET6)
		return 0;
	/* One host may have all addresses of its subnet. */
	ip = &((const struct sockaddr_in6 *)from)->sin6_addr;
	memcpy(word, ip, sizeof(word));
	return mix(ntohl(word[0]) ^ ntohl(word[1]));
}

static enum mr_http_access ask(struct mr_http *h, struct MHD_Connection *c)
{
	enum mr_http_access access;
	char *password = NULL;
	char *name;

	if (h->users == NULL)
		return MR_HTTP_GRANTED;
	name = MHD_basic_auth_get_username_password(c, &password);
	access = mr_http_users_ask(h->users, peer_of(c), name, password, mr_clock_ns());
	MHD_free(name);
	MHD_free(password);
	return access;
}

/*
 * Without users a page of somebody else, in a browser on this machine, could ask in its own
 * name if that name were made to mean this address (DNS rebinding); an address has no such name.
 */
static bool host_is_address(const struct mr_http *h, struct MHD_Connection *c)
{
	const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	char name[INET6_ADDRSTRLEN];
	struct in6_addr ip;
	bool bracketed;
	size_t length;

	if (h->users != NULL || h->listen.addr.any.sa_family == AF_UNIX || host == NULL)
		return true;
	bracketed = host[0] == '[';
	host += bracketed ? 1 : 0;
	length = strcspn(host, bracketed ? "]" : ":");
	if (length >= sizeof(name))
		return false;
	memcpy(name, host, length);
	name[length] = '\0';
	return strcasecmp(name, "localhost") == 0 ||
		inet_pton(bracketed ? AF_INET6 : AF_INET, name, &ip) == 1;
}

static bool has_body(struct MHD_Connection *c)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH) !=
		NULL ||
		MHD_lookup_connection_value(
			c, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
}

static enum MHD_Result answer(void *http, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_bytes,
	void **seen)
{
	static int once;
	bool head = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;

	(void)version;
	(void)upload;
	(void)upload_bytes;
	/* The first call is for the headers. A connection answered then is closed, which is right
	 * for one that brings a body: nobody wants it. */
	if (*seen == NULL && !has_body(c)) {
		*seen = &once;
		return MHD_YES;
	}
	switch (ask(http, c)) {
	case MR_HTTP_GRANTED:
		break;
	case MR_HTTP_LATER:
		return reply(c, MHD_HTTP_TOO_MANY_REQUESTS, "text/plain; charset=utf-8",
			"too many wrong passwords\n", MHD_HTTP_HEADER_RETRY_AFTER, "1");
	default:
		return reply(c, MHD_HTTP_UNAUTHORIZED, "text/plain; charset=utf-8",
			"name and password are needed\n", MHD_HTTP_HEADER_WWW_AUTHENTICATE,
			"Basic realm=\"millrace\", charset=\"UTF-8\"");
	}
	if (!host_is_address(http, c))
		return reply(c, MHD_HTTP_MISDIRECTED_REQUEST, "text/plain; charset=utf-8",
			"ask by address or as localhost; other names need users (http.users)\n",
			NULL, NULL);
	if (!head && strcmp(method, MHD_HTTP_METHOD_GET) != 0)
		return reply(c, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain; charset=utf-8",
			"nothing can be changed here\n", MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	return route(http, c, url);
}

static bool is_socket(const struct mr_listen *l)
{
	struct stat st;

	return lstat(l->addr.local.sun_path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* A socket that a killed instance left refuses connections, and is in the way. So does a file,
 * which is not ours to remove. */
static void clear_left(const struct mr_listen *l)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && is_socket(l) && connect(fd, &l->addr.any, l->bytes) != 0 &&
		errno == ECONNREFUSED)
		unlink(l->addr.local.sun_path);
	if (fd >= 0)
		close(fd);
}

static int bind_socket(struct mr_http *h)
{
	bool local = h->listen.addr.any.sa_family == AF_UNIX;
	int on = 1;

	if (local)
		clear_left(&h->listen);
	h->fd = socket(h->listen.addr.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->fd < 0 || setsockopt(h->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
		bind(h->fd, &h->listen.addr.any, h->listen.bytes) != 0)
		return -errno;
	if (local &&
		(stat(h->listen.addr.local.sun_path, &h->bound) != 0 ||
			chmod(h->listen.addr.local.sun_path, LOCAL_MODE) != 0))
		return -errno;
	/* Those beyond what is served wait for their turn, however many they are. */
	return listen(h->fd, SOMAXCONN) != 0 ? -errno : 0;
}

/* Who has the address that is in use. */
static const char *holder(const struct mr_listen *l)
{
	if (l->addr.any.sa_family == AF_UNIX && !is_socket(l))
		return "; what is there is no socket, remove it or choose another path";
	return "; another program does";
}

static int read_users(const char *file, struct mr_http_users **ret_users, struct mr_err *err)
{
	int rc = file[0] != '\0' ? mr_http_users_read(file, ret_users, err) : 0;

	return rc == 0 || rc == -ENOMEM ? rc : -EINVAL;
}

int mr_http_check(const char *users, struct mr_err *err)
{
	struct mr_http_users *u = NULL;
	int rc = read_users(users, &u, err);

	mr_http_users_free(u);
	return rc;
}

int mr_http_open(
	const char *listen, const char *users, struct mr_http **ret_http, struct mr_err *err)
{
	struct mr_http *h = calloc(1, sizeof(*h));
	struct mr_err why = {0};
	int rc;

	if (h == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory for the HTTP server");
	h->fd = -1;
	rc = mr_listen_parse(listen, &h->listen, &why);
	if (rc < 0)
		mr_err_set(err, rc, "http.listen '%s' %s", listen, why.msg);
	if (rc == 0)
		rc = read_users(users, &h->users, err);
	if (rc == 0) {
		rc = bind_socket(h);
		if (rc < 0)
			mr_err_set(err, rc, "cannot listen on '%s' (http.listen): %s%s", listen,
				strerror(-rc), rc == -EADDRINUSE ? holder(&h->listen) : "");
	}
	if (rc == 0)
		*ret_http = h;
	else
		mr_http_close(h);
	return rc;
}

void mr_http_add(struct mr_http *h, const char *key, json_t *value)
{
	if (h->added == NULL)
		h->added = json_object();
	json_object_set_new(h->added, key, value != NULL ? value : json_null());
}

int mr_http_serve(struct mr_http *h, struct mr_err *err)
{
	/* Without ITC its thread is told to stop by the socket, and hears nothing while it has as
	 * many clients as it may. */
	h->daemon = MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC,
		0, NULL, NULL, answer, h, MHD_OPTION_LISTEN_SOCKET, h->fd,
		MHD_OPTION_CONNECTION_LIMIT, MR_LISTEN_CONNECTIONS,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, MR_HTTP_CONNECTIONS_EACH,
		MHD_OPTION_CONNECTION_TIMEOUT, MR_HTTP_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_BYTES, MHD_OPTION_END);
	if (h->daemon == NULL)
		return mr_err_set(
			err, -EAGAIN, "the HTTP server does not start: %s", strerror(errno));
	return 0;
}

void mr_http_close(struct mr_http *h)
{
	struct stat now;

	if (h == NULL)
		return;
	if (h->daemon != NULL)
		MHD_stop_daemon(h->daemon);
	else if (h->fd >= 0)
		close(h->fd);
	/* Somebody may have removed it, and another program be there since. */
	if (h->bound.st_ino != 0 && stat(h->listen.addr.local.sun_path, &now) == 0 &&
		now.st_ino == h->bound.st_ino && now.st_dev == h->bound.st_dev)
		unlink(h->listen.addr.local.sun_path);
	forget(h);
	json_decref(h->added);
	mr_http_users_free(h->users);
	free(h);
}
