/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd.h"
#include "mr_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

uint32_t mr_cmd_signal_seen;
uint32_t mr_cmd_signal_fast;
uint32_t mr_cmd_reload_wanted;

static void on_signal(int sig)
{
	(void)sig;
	if (mr_load_relaxed(&mr_cmd_signal_seen) != 0)
		mr_store_relaxed(&mr_cmd_signal_fast, 1);
	mr_store_relaxed(&mr_cmd_signal_seen, 1);
}

void mr_cmd_catch_signals(bool interrupt)
{
	/* A line that is being written is not lost; what sleeps wakes up all the same. */
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = interrupt ? 0 : SA_RESTART},
			 before;

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	/* The terminal is gone; nohup asks to stay. */
	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	sa.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &sa, NULL);
}

/* Whether this process has a terminal; it has none any more once that hung up. */
static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool had_terminal;

static void on_hangup(int sig)
{
	int before = errno;

	if (had_terminal && !has_terminal())
		on_signal(sig);
	else
		mr_store_relaxed(&mr_cmd_reload_wanted, 1);
	errno = before;
}

void mr_cmd_catch_reload(void)
{
	struct sigaction sa = {.sa_handler = on_hangup, .sa_flags = SA_RESTART}, before;

	had_terminal = has_terminal();
	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
}
