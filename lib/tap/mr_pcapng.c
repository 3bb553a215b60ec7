/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_pcapng.h"

#include <string.h>

#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LINKTYPE_ETHERNET 1u

/* Options; a code means something else in each kind of block. */
#define COMMENT 1u
#define SECTION_PROGRAM 4u
#define INTERFACE_NAME 2u
#define INTERFACE_RESOLUTION 9u
#define PACKET_FLAGS 2u
#define PACKET_ID 5u
#define STATISTICS_RECEIVED 4u
#define STATISTICS_LOST 5u

static uint8_t *put(uint8_t *at, const void *from, size_t bytes)
{
	memcpy(at, from, bytes);
	return at + bytes;
}

static uint8_t *put_32(uint8_t *at, uint32_t v)
{
	return put(at, &v, sizeof(v));
}

static uint8_t *put_16(uint8_t *at, uint32_t v)
{
	const uint16_t half = (uint16_t)v;

	return put(at, &half, sizeof(half));
}

/* To the next multiple of 4, with zeroes. */
static uint8_t *put_padded(uint8_t *at, const void *from, size_t bytes)
{
	at = put(at, from, bytes);
	for (; bytes % 4 != 0; bytes++)
		*at++ = 0;
	return at;
}

static uint8_t *put_option(uint8_t *at, uint32_t code, const void *from, size_t bytes)
{
	return put_padded(put_16(put_16(at, code), (uint32_t)bytes), from, bytes);
}

static uint8_t *put_text(uint8_t *at, uint32_t code, const char *text)
{
	size_t n = strlen(text);

	return n == 0 ? at : put_option(at, code, text, n < MR_PCAPNG_TEXT ? n : MR_PCAPNG_TEXT);
}

/* Type and length, which the end tells again. */
static uint8_t *begin(uint8_t *to, uint32_t type)
{
	return put_32(to, type) + 4;
}

static size_t end(uint8_t *to, uint8_t *at)
{
	const size_t bytes = (size_t)(at - to) + 8;

	at = put_32(at, 0); /* behind the last option */
	(void)put_32(at, (uint32_t)bytes);
	(void)put_32(to + 4, (uint32_t)bytes);
	return bytes;
}

static uint8_t *put_time(uint8_t *at, uint64_t time_ns)
{
	return put_32(put_32(at, (uint32_t)(time_ns >> 32)), (uint32_t)time_ns);
}

size_t mr_pcapng_section(uint8_t *to, const char *program)
{
	uint8_t *at = put_32(begin(to, MR_PCAPNG_SECTION), BYTE_ORDER_MAGIC);

	at = put_16(put_16(at, 1), 0);
	/* The section is as long as it becomes. */
	at = put_32(put_32(at, UINT32_MAX), UINT32_MAX);
	return end(to, put_text(at, SECTION_PROGRAM, program));
}

size_t mr_pcapng_interface(uint8_t *to, const char *name, uint32_t snaplen)
{
	static const uint8_t nanoseconds = 9;
	uint8_t *at = put_16(put_16(begin(to, MR_PCAPNG_INTERFACE), LINKTYPE_ETHERNET), 0);

	at = put_text(put_32(at, snaplen), INTERFACE_NAME, name);
	return end(to, put_option(at, INTERFACE_RESOLUTION, &nanoseconds, 1));
}

size_t mr_pcapng_packet(uint8_t *to, const struct mr_pcapng_packet *p)
{
	uint8_t *at = put_time(put_32(begin(to, MR_PCAPNG_PACKET), p->interface), p->time_ns);

	at = put_32(put_32(at, p->kept), p->length);
	at = put_padded(at, p->bytes, p->kept);
	at = put_text(at, COMMENT, p->comment);
	at = put_option(at, PACKET_FLAGS, &p->direction, sizeof(p->direction));
	return end(to, put_option(at, PACKET_ID, &p->id, sizeof(p->id)));
}

size_t mr_pcapng_statistics(uint8_t *to, uint32_t interface, uint64_t time_ns, uint64_t received,
	uint64_t lost, const char *comment)
{
	uint8_t *at = put_time(put_32(begin(to, MR_PCAPNG_STATISTICS), interface), time_ns);

	at = put_text(at, COMMENT, comment);
	at = put_option(at, STATISTICS_RECEIVED, &received, sizeof(received));
	return end(to, put_option(at, STATISTICS_LOST, &lost, sizeof(lost)));
}
