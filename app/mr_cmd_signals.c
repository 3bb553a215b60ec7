/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd.h"
#include "mr_sync.h"

#include <signal.h>

uint32_t mr_cmd_signal_seen;
uint32_t mr_cmd_signal_fast;

static void on_signal(int sig)
{
	(void)sig;
	if (mr_load_relaxed(&mr_cmd_signal_seen) != 0)
		mr_store_relaxed(&mr_cmd_signal_fast, 1);
	mr_store_relaxed(&mr_cmd_signal_seen, 1);
}

void mr_cmd_catch_signals(void)
{
	/* A line that is being written is not lost; what sleeps wakes up all the same. */
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	/* The terminal is gone; nohup asks to stay. */
	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	sa.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &sa, NULL);
}
