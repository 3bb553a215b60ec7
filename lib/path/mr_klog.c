/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mr_klog.h"

#include "mr_parse.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE_LINES 5u

/* Those that matter to whoever depends on results; the catalog has many more. */
static const struct {
	uint16_t xid;
	enum mr_klog_effect effect;
} effects[] = {
	{13, MR_KLOG_PROGRAM},  /* exception of a kernel */
	{31, MR_KLOG_PROGRAM},  /* access outside of mapped memory */
	{32, MR_KLOG_PROGRAM},  /* broken push buffer */
	{43, MR_KLOG_PROGRAM},  /* a channel was stopped */
	{45, MR_KLOG_PROGRAM},  /* channels were removed, as after another fault */
	{48, MR_KLOG_LOST},     /* uncorrectable ECC error */
	{62, MR_KLOG_LOST},     /* the GPU's own controller stopped */
	{64, MR_KLOG_DAMAGED},  /* a row could not be remapped */
	{74, MR_KLOG_DAMAGED},  /* NVLink */
	{79, MR_KLOG_LOST},     /* fallen off the bus */
	{94, MR_KLOG_PROGRAM},  /* contained ECC error */
	{95, MR_KLOG_LOST},     /* uncontained ECC error */
	{119, MR_KLOG_LOST},    /* the GPU's system processor does not answer */
	{120, MR_KLOG_LOST},    /* it failed */
	{140, MR_KLOG_LOST},    /* unrecovered ECC error */
	{154, MR_KLOG_DAMAGED}, /* what it needs to recover has changed */
};

enum mr_klog_effect mr_klog_xid_effect(uint64_t xid)
{
	for (size_t i = 0; i < MR_ARRAY_LEN(effects); i++)
		if (effects[i].xid == xid)
			return effects[i].effect;
	return MR_KLOG_NONE;
}

/* 0000:3b:00, 00000000:3B:00.0: no function, and no time of day. */
static bool take_address(const char *text, struct mr_pci_addr *ret_addr)
{
	uint64_t parts[3];
	size_t digits = strspn(text, "0123456789abcdefABCDEF");

	if (digits < 4 || digits > 8)
		return false;
	for (uint32_t i = 0; i < 3; i++)
		if (!mr_parse_take_hex(&text, &parts[i]) || (i < 2 && *text++ != ':'))
			return false;
	if (parts[1] > 0xff || parts[2] > 0x1f)
		return false;
	*ret_addr = (struct mr_pci_addr){.domain = (uint32_t)parts[0],
		.bus = (uint8_t)parts[1],
		.device = (uint8_t)parts[2]};
	return true;
}

static bool find_address(const char *line, struct mr_pci_addr *ret_addr)
{
	for (const char *s = line; *s != '\0'; s++)
		if ((s == line || strchr(" (:", s[-1]) != NULL) && take_address(s, ret_addr))
			return true;
	return false;
}

/* Messages of several lines come as one record too, with the breaks written out. */
static void copy_text(const char *line, char ret_text[MR_KLOG_TEXT_BYTES])
{
	size_t n = 0;

	while (*line != '\0' && *line != '\n' && n + 1 < MR_KLOG_TEXT_BYTES) {
		if (strncmp(line, "\\x0a", 4) == 0) {
			ret_text[n++] = ' ';
			line += 4;
		} else {
			ret_text[n++] = *line >= ' ' && *line <= '~' ? *line : '?';
			line++;
		}
	}
	ret_text[n] = '\0';
}

/* "... recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)" */
static bool recovery_is_none(const char *text)
{
	const char *to = strstr(text, " to 0x");
	uint64_t action;

	if (to == NULL)
		return false;
	to += strlen(" to 0x");
	return mr_parse_take_hex(&to, &action) && action == 0;
}

bool mr_klog_match(struct mr_klog *k, const char *line, struct mr_klog_event *ret_event)
{
	const char *start = strstr(line, "NVRM: ");
	const char *xid;
	struct mr_klog_event e = {0};
	uint64_t number;

	if (start == NULL)
		return false;
	e.named = find_address(start, &e.gpu);
	if (e.named) {
		k->lines = MESSAGE_LINES - 1;
		k->last = e.gpu;
	}
	xid = strstr(start, "Xid (");
	if (xid != NULL)
		xid = strstr(xid, "): ");
	if (xid != NULL) {
		xid += strlen("): ");
		if (mr_parse_take_u64(&xid, &number) && number <= UINT32_MAX) {
			e.xid = (uint32_t)number;
			e.effect = mr_klog_xid_effect(number);
			e.recovered = number == 154 && recovery_is_none(xid);
			if (e.recovered)
				e.effect = MR_KLOG_NONE;
		}
	} else if (!e.named && k->lines > 0) {
		e.named = true;
		e.gpu = k->last;
		k->lines--;
	}
	if (strstr(start, "fallen off the bus") != NULL)
		e.effect = MR_KLOG_LOST;
	if (e.effect == MR_KLOG_NONE && !e.recovered)
		return false;
	copy_text(start, e.text);
	*ret_event = e;
	return true;
}

int mr_klog_open(struct mr_klog_reader *r, const char *path)
{
	memset(r, 0, sizeof(*r));
	r->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (r->fd < 0)
		return -errno;
	if (lseek(r->fd, 0, SEEK_END) < 0) {
		int code = -errno;

		mr_klog_close(r);
		return code;
	}
	return 0;
}

void mr_klog_close(struct mr_klog_reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

/* The message behind "4,339,5140900,-;"; NULL: not the kernel's own, or no message. */
static const char *message(const char *line)
{
	const char *text = strchr(line, ';');
	uint64_t priority;

	if (line[0] == ' ')
		return NULL; /* a field of the record before */
	if (text == NULL || !mr_parse_take_u64(&line, &priority) || *line != ',')
		return line;
	return priority >> 3 == 0 ? text + 1 : NULL;
}

/* Reads on; false: nothing is there. A line that does not fit is dropped. */
static bool fill(struct mr_klog_reader *r)
{
	ssize_t got;

	if (r->filled == sizeof(r->buffer) - 1)
		r->filled = 0;
	do
		got = read(r->fd, r->buffer + r->filled, sizeof(r->buffer) - 1 - r->filled);
	while (got < 0 && (errno == EINTR || errno == EPIPE)); /* EPIPE: records were overwritten */
	/* A record that is longer than the room that is left. */
	if (got < 0 && errno == EINVAL && r->filled > 0) {
		r->filled = 0;
		return true;
	}
	if (got <= 0)
		return false;
	r->filled += (uint32_t)got;
	return true;
}

bool mr_klog_next(struct mr_klog_reader *r, struct mr_klog_event *ret_event)
{
	for (;;) {
		char *end = memchr(r->buffer, '\n', r->filled);
		const char *text;
		bool found;

		if (end == NULL) {
			if (r->fd < 0 || !fill(r))
				return false;
			continue;
		}
		*end = '\0';
		text = message(r->buffer);
		found = text != NULL && mr_klog_match(&r->k, text, ret_event) &&
			ret_event->effect != MR_KLOG_NONE;
		r->filled -= (uint32_t)(end + 1 - r->buffer);
		memmove(r->buffer, end + 1, r->filled);
		if (found)
			return true;
	}
}
