/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PORT_MAX 65535ul

static int parse_local(const char *path, struct mr_listen *l, struct mr_err *err)
{
	size_t n = strlen(path);

	if (path[0] != '/')
		return mr_err_set(err, -EINVAL, "needs a path from the root behind 'unix:'");
	if (n >= sizeof(l->addr.local.sun_path))
		return mr_err_set(err, -EINVAL, "has a path of %zu bytes, a socket takes %zu", n,
			sizeof(l->addr.local.sun_path) - 1);
	l->addr.local.sun_family = AF_UNIX;
	memcpy(l->addr.local.sun_path, path, n + 1);
	l->bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
	l->public = false;
	return 0;
}

static bool parse_port(const char *text, in_port_t *ret_port)
{
	char *end;
	unsigned long v;

	if (text[0] < '0' || text[0] > '9')
		return false;
	v = strtoul(text, &end, 10);
	*ret_port = htons((uint16_t)v);
	return *end == '\0' && v != 0 && v <= PORT_MAX;
}

int mr_listen_parse(const char *text, struct mr_listen *ret_listen, struct mr_err *err)
{
	struct mr_listen *l = ret_listen;
	struct sockaddr_in *four = (struct sockaddr_in *)&l->addr.storage;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&l->addr.storage;
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN] = "";
	in_port_t port;
	size_t n;

	memset(l, 0, sizeof(*l));
	if (strncmp(text, "unix:", 5) == 0)
		return parse_local(text + 5, l, err);
	if (colon == NULL || !parse_port(colon + 1, &port))
		return mr_err_set(err, -EINVAL,
			"is not ADDRESS:PORT with a port from 1 to 65535, nor unix:PATH");
	n = (size_t)(colon - text);
	if (n > 2 && text[0] == '[' && text[n - 1] == ']' && n - 2 < sizeof(host)) {
		memcpy(host, text + 1, n - 2);
		if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
			six->sin6_family = AF_INET6;
			six->sin6_port = port;
			l->bytes = sizeof(*six);
			l->public = !IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
			return 0;
		}
	} else if (n < sizeof(host)) {
		memcpy(host, text, n);
		if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
			four->sin_family = AF_INET;
			four->sin_port = port;
			l->bytes = sizeof(*four);
			l->public = (ntohl(four->sin_addr.s_addr) >> 24) != IN_LOOPBACKNET;
			return 0;
		}
	}
	return mr_err_set(
		err, -EINVAL, "does not begin with an address in numbers, as 127.0.0.1 or [::1]");
}
