/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_pcapng.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Blocks and options by their numbers in the draft's sections 3.5 and 4. */
enum {
	BLOCK_INTERFACE = 1,
	BLOCK_STATISTICS = 5,
	BLOCK_PACKET = 6,
	BLOCK_SECTION = 0x0a0d0d0a,
	OPTION_END = 0,
	OPTION_COMMENT = 1,
	SECTION_APPLICATION = 4,
	INTERFACE_NAME = 2,
	INTERFACE_DESCRIPTION = 3,
	INTERFACE_RESOLUTION = 9,
	PACKET_FLAGS = 2,
	PACKET_DROPPED = 4,
	STATISTICS_RECEIVED = 4,
	STATISTICS_DROPPED = 5,
};
#define MAGIC 0x1a2b3c4du
#define LINKTYPE_ETHERNET 1u
#define FLAG_INBOUND 1u
#define FLAG_OUTBOUND 2u
#define NANOSECONDS 9u
/* More than any block takes: a frame, two comments, and what is around them. */
#define BLOCK_MAX (65536u + 2 * (MR_PCAPNG_COMMENT_MAX + 8) + 256)
_Static_assert(BLOCK_MAX < MR_PCAPNG_BUFFER, "a block fits the buffer");

static void add(struct mr_pcapng *p, const void *bytes, size_t n)
{
	static const uint8_t none[4];

	memcpy(p->buffer + p->used, bytes, n);
	memcpy(p->buffer + p->used + n, none, (4 - n % 4) % 4);
	p->used += MR_ALIGN_UP(n, 4);
}

static void add_u32(struct mr_pcapng *p, uint32_t v)
{
	add(p, &v, sizeof(v));
}

static void add_time(struct mr_pcapng *p, uint64_t ns)
{
	add_u32(p, (uint32_t)(ns >> 32));
	add_u32(p, (uint32_t)ns);
}

static void option(struct mr_pcapng *p, uint16_t code, const void *bytes, size_t n)
{
	add_u32(p, code | (uint32_t)n << 16);
	add(p, bytes, n);
}

static void option_text(struct mr_pcapng *p, uint16_t code, const char *text)
{
	if (text != NULL && text[0] != '\0')
		option(p, code, text, strnlen(text, MR_PCAPNG_COMMENT_MAX));
}

static void begin(struct mr_pcapng *p, uint32_t type)
{
	p->block = p->used;
	add_u32(p, type);
	add_u32(p, 0);
}

/* Closes the block; the next one has room. */
static int end(struct mr_pcapng *p, struct mr_err *err)
{
	uint32_t bytes;

	add_u32(p, OPTION_END);
	bytes = (uint32_t)(p->used - p->block) + 4;
	add_u32(p, bytes);
	memcpy(p->buffer + p->block + 4, &bytes, sizeof(bytes));
	return p->used > MR_PCAPNG_BUFFER - BLOCK_MAX ? mr_pcapng_flush(p, err) : 0;
}

void mr_pcapng_begin(struct mr_pcapng *p, const char *name, int fd, const char *program)
{
	struct stat st;

	p->name = name;
	p->fd = fd;
	p->cuts = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
	p->written = 0;
	p->used = 0;
	begin(p, BLOCK_SECTION);
	add_u32(p, MAGIC);
	add_u32(p, 1); /* version 1.0 */
	add_u32(p, UINT32_MAX);
	add_u32(p, UINT32_MAX); /* length not known */
	option_text(p, SECTION_APPLICATION, program);
	(void)!end(p, NULL);
}

int mr_pcapng_interface(struct mr_pcapng *p, const char *name, const char *description,
	uint32_t snaplen, struct mr_err *err)
{
	const uint8_t resolution = NANOSECONDS;

	begin(p, BLOCK_INTERFACE);
	add_u32(p, LINKTYPE_ETHERNET);
	add_u32(p, snaplen);
	option_text(p, INTERFACE_NAME, name);
	option_text(p, INTERFACE_DESCRIPTION, description);
	option(p, INTERFACE_RESOLUTION, &resolution, sizeof(resolution));
	return end(p, err);
}

int mr_pcapng_packet(struct mr_pcapng *p, const struct mr_pcapng_packet *packet, struct mr_err *err)
{
	const uint32_t flags = packet->outbound ? FLAG_OUTBOUND : FLAG_INBOUND;

	begin(p, BLOCK_PACKET);
	add_u32(p, packet->interface);
	add_time(p, packet->time_ns);
	add_u32(p, packet->kept);
	add_u32(p, packet->length);
	add(p, packet->frame, packet->kept);
	option(p, PACKET_FLAGS, &flags, sizeof(flags));
	if (packet->dropped > 0)
		option(p, PACKET_DROPPED, &packet->dropped, sizeof(packet->dropped));
	for (size_t i = 0; i < MR_ARRAY_LEN(packet->comments); i++)
		option_text(p, OPTION_COMMENT, packet->comments[i]);
	return end(p, err);
}

int mr_pcapng_statistics(struct mr_pcapng *p, uint32_t interface, uint64_t time_ns,
	uint64_t received, uint64_t dropped, const char *comment, struct mr_err *err)
{
	begin(p, BLOCK_STATISTICS);
	add_u32(p, interface);
	add_time(p, time_ns);
	option(p, STATISTICS_RECEIVED, &received, sizeof(received));
	option(p, STATISTICS_DROPPED, &dropped, sizeof(dropped));
	option_text(p, OPTION_COMMENT, comment);
	return end(p, err);
}

/* Takes away the part of a block that `at` bytes of the buffer end in. */
static void cut(struct mr_pcapng *p, size_t at)
{
	size_t whole = 0;

	while (whole < at) {
		uint32_t bytes;

		memcpy(&bytes, p->buffer + whole + 4, sizeof(bytes));
		if (whole + bytes > at)
			break;
		whole += bytes;
	}
	if (p->cuts)
		(void)!ftruncate(p->fd, (off_t)(p->written + whole));
}

int mr_pcapng_flush(struct mr_pcapng *p, struct mr_err *err)
{
	size_t at = 0;

	while (at < p->used) {
		ssize_t n = write(p->fd, p->buffer + at, p->used - at);
		int why = errno;

		if (n < 0 && why == EINTR)
			continue;
		if (n < 0) {
			cut(p, at);
			p->used = 0;
			return mr_err_set(err, -why,
				"writing '%s': %s; the capture ends here, the lane goes on%s",
				p->name, strerror(why),
				why == ENOSPC ? "; make room, or write elsewhere" : "");
		}
		at += (size_t)n;
	}
	p->written += p->used;
	p->used = 0;
	return 0;
}
