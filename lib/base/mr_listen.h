/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_listen - where a server listens, as written in a configuration.
 *
 *     "127.0.0.1:9467"   "[::1]:9467"   "unix:/run/millrace/http"
 *
 * Addresses are numbers, since a name may change its meaning between the check and the
 * start. An address is public unless it is of the loopback (127.0.0.0/8, ::1): what a
 * UNIX socket lets in is a matter of its folder.
 *
 * Thread   any.
 * Errors   -EINVAL with what is wrong; the sentence lacks its subject.
 */
#ifndef MR_LISTEN_H
#define MR_LISTEN_H

#include "mr_err.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#define MR_LISTEN_CONNECTIONS 64u /* served at one time; each is an open file */

struct mr_listen {
	union {
		struct sockaddr any;
		struct sockaddr_storage storage;
		struct sockaddr_un local;
	} addr;
	socklen_t bytes;
	bool public;
};

MR_MUST_USE int mr_listen_parse(const char *text, struct mr_listen *ret_listen, struct mr_err *err);

#endif
