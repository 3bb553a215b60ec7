/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halt_thread TID: one thread of a process stands still, and the others go on, until this
 * program or that process ends (ptrace(2), PTRACE_INTERRUPT).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
	pid_t tid = argc == 2 ? atoi(argv[1]) : 0;
	int status;

	if (tid <= 0) {
		fprintf(stderr, "usage: halt_thread TID\n");
		return 2;
	}
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) != 0 || ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0) {
		fprintf(stderr, "halt_thread: thread %d: %s\n", (int)tid, strerror(errno));
		return 1;
	}
	while (waitpid(tid, &status, __WALL) == tid && !WIFEXITED(status) && !WIFSIGNALED(status))
		;
	return 0;
}
