/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cmd_journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define JOURNAL "/run/systemd/journal/socket"
#define RECORD_MAX 4096u

/* $JOURNAL_STREAM is what stderr was when the manager started this: DEVICE:INODE. */
static bool is_stderr(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return stream != NULL && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
		fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

static void add(char *record, size_t *used, const char *name, const char *text)
{
	char *at = record + *used;

	if (*used >= RECORD_MAX)
		return;
	*used += (size_t)snprintf(at, RECORD_MAX - *used, "%s=%s\n", name, text);
	/* A line that ends within a text would begin another field. */
	for (; *at != '\0'; at++)
		if (*at == '\n' && at[1] != '\0')
			*at = ' ';
}

bool mr_journal_record(const char *event, int priority, const char *instance, const char *sentence,
	const struct mr_journal_field *fields, size_t count)
{
	const struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = JOURNAL};
	char record[RECORD_MAX];
	size_t used = 0;
	ssize_t sent;
	int fd;

	if (!is_stderr())
		return false;
	add(record, &used, "MESSAGE", sentence);
	add(record, &used, "PRIORITY", (const char[]){(char)('0' + priority), '\0'});
	add(record, &used, "SYSLOG_IDENTIFIER", "millrace");
	add(record, &used, "MILLRACE_EVENT", event);
	add(record, &used, "MILLRACE_INSTANCE", instance);
	for (size_t i = 0; i < count; i++)
		add(record, &used, fields[i].name, fields[i].text);
	if (used >= RECORD_MAX)
		return false;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	sent = sendto(fd, record, used, MSG_NOSIGNAL, (const struct sockaddr *)&to, sizeof(to));
	close(fd);
	return sent == (ssize_t)used;
}
