/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_report_client - one conversation with DPDK's telemetry socket.
 *
 *     open: connect, greeting, "is it really this instance?"   ask ... ask   close
 *
 * The socket is of type SOCK_SEQPACKET: one send is one request, one receive is
 * one whole reply, and a reply that is longer than the buffer is known to be.
 * The server is not trusted: every wait and every size has a bound.
 *
 * Thread   the caller's; the structure is the caller's memory.
 * Errors   -ENOENT not running · -ETIMEDOUT no reply in time · -ECONNRESET the
 *          server hung up · -EPROTO not what DPDK's telemetry says · other: the
 *          socket's.
 * Source   DPDK 22.11 lib/telemetry/telemetry.c
 */
#ifndef MR_REPORT_CLIENT_H
#define MR_REPORT_CLIENT_H

#include "mr_report.h"

#define MR_REPORT_REPLY_MAX 16384u      /* MAX_OUTPUT_LEN of DPDK */
#define MR_REPORT_WAIT_NS 2000000000u   /* for one reply */
#define MR_REPORT_TOTAL_NS 10000000000u /* for a conversation */

struct mr_report_client {
	int fd;
	uint64_t deadline_ns; /* mr_clock_ns() at which the conversation ends */
	char name[MR_NAME_MAX];
	char version[32];            /* of the instance */
	char dir[MR_REPORT_DIR_MAX]; /* its runtime directory */
};

/* mr_report_client_open finds the socket of instance `name` and greets it. */
MR_MUST_USE int mr_report_client_open(
	struct mr_report_client *client, const char *name, struct mr_err *err);
void mr_report_client_close(struct mr_report_client *client);

/*
 * mr_report_client_ask sends the request and gives what the reply holds under
 * cmd, a new reference: an object, or null where the server has no answer.
 */
MR_MUST_USE int mr_report_client_ask(struct mr_report_client *client, const char *request,
	const char *cmd, json_t **ret_answer, struct mr_err *err);

#endif
