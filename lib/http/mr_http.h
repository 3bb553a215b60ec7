/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_http - what a running instance says of itself, over HTTP.
 *
 *     scraper, browser ──► libmicrohttpd, one thread ──► mr_report_now
 *
 *     GET /                a page for people, which asks for the status twice a second
 *     GET /metrics         Prometheus text, with the counters' help and units
 *     GET /api/v1/status   the JSON of `millrace stats --json`, and more (mr_report_status,
 *                          mr_http_add)
 *     GET /healthz         200 while every device is healthy, else 503 and why
 *     GET /readyz          200 while every lane runs on a path that is proven, else 503
 *
 * Its one thread has the CPUs of the thread that starts it, which are none of a lane's,
 * and reads published values only. A report is made at most every MR_HTTP_REPORT_MS and
 * serves all requests until then, so requests cost little however many come. Connections,
 * their memory and their idle time are bounded; more wait to be accepted, and those of one
 * address beyond MR_HTTP_CONNECTIONS_EACH are closed.
 *
 * The page (mr_page.html) is whole in itself. Its Content-Security-Policy lets a browser run the
 * script and the style that are in it, named by their digests, and talk to this server, and
 * nothing else.
 *
 * Users. With a file of users every request needs HTTP basic authentication, whose
 * password crosses the network as it is: put a proxy with TLS in front of a public
 * address. A line is NAME:HASH with a hash of crypt(5) ("openssl passwd -6" makes one); '#'
 * begins a comment. The file must not be open to others. Wrong passwords of one peer are judged
 * at most MR_HTTP_GUESSES times a second, the rest is told to wait.
 *
 * Thread   the control thread opens, serves and closes.
 * Source   libmicrohttpd manual, RFC 9110, RFC 7617, crypt(5)
 */
#ifndef MR_HTTP_H
#define MR_HTTP_H

#include "mr_err.h"

#include <jansson.h>

#define MR_HTTP_IDLE_S 10u
#define MR_HTTP_CONNECTIONS_EACH 16u /* of one address; a browser opens 6 */
#define MR_HTTP_REPORT_MS 200u
#define MR_HTTP_GUESSES 5u
#define MR_HTTP_USERS_MAX 64u

struct mr_http;

/*
 * mr_http_open binds `listen` (mr_listen.h) and reads the file of users ("" none), so that
 * what is wrong is known before lanes run. A UNIX socket that nobody answers is replaced.
 * -EINVAL: the configuration, or the file that it names, has to be mended.
 */
MR_MUST_USE int mr_http_open(
	const char *listen, const char *users, struct mr_http **ret_http, struct mr_err *err);

/* mr_http_check reads a file of users ("" none) and judges it as mr_http_open does. */
MR_MUST_USE int mr_http_check(const char *users, struct mr_err *err);

/*
 * mr_http_add has the status tell `value` as `key` too; before serve. The reference is taken.
 * NULL, or no memory for it: it is told as null.
 */
void mr_http_add(struct mr_http *h, const char *key, json_t *value);

/* mr_http_serve begins to answer; until a report is served (mr_report_serve), with 503. */
MR_MUST_USE int mr_http_serve(struct mr_http *h, struct mr_err *err);

/* mr_http_close ends all answers and waits for them; NULL is none. */
void mr_http_close(struct mr_http *h);

#endif
