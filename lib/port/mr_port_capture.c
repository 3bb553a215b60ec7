/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_port_capture.h"

#include <byteswap.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PACKET_MAX 262144u       /* MAXIMUM_SNAPLEN */
#define BLOCK_MAX (16u << 20)    /* of pcapng */
#define MAGIC_MICRO 0xa1b2c3d4u  /* pcap, times in microseconds */
#define MAGIC_NANO 0xa1b23c4du   /* in nanoseconds */
#define MAGIC_LONG 0xa1b2cd34u   /* with records of 24 bytes, as some kernels once wrote */
#define MAGIC_BLOCKS 0x0a0d0d0au /* pcapng: type of the section header, the same both ways */
#define MAGIC_ORDER 0x1a2b3c4du  /* byte order of a section */

struct reader {
	int fd;
	bool blocks;    /* pcapng */
	bool swapped;   /* written with the other byte order */
	uint32_t head;  /* bytes in front of the frame of a pcap record */
	uint64_t start; /* of what the window holds */
	size_t bytes;
	uint8_t window[16384];
};

/* Up to `bytes` bytes at an offset; returns how many there are. */
static size_t peek(struct reader *r, uint64_t offset, void *to, size_t bytes)
{
	if (offset < r->start || offset + bytes > r->start + r->bytes) {
		ssize_t got = pread(r->fd, r->window, sizeof(r->window), (off_t)offset);

		r->start = offset;
		r->bytes = got > 0 ? (size_t)got : 0;
	}
	if (bytes > r->start + r->bytes - offset)
		bytes = (size_t)(r->start + r->bytes - offset);
	memcpy(to, r->window + (offset - r->start), bytes);
	return bytes;
}

static uint32_t number(const struct reader *r, uint32_t raw)
{
	return r->swapped ? bswap_32(raw) : raw;
}

/* Returns the offset of the first record, or -EINVAL. */
static int start(struct reader *r, int fd)
{
	uint32_t head[6];

	memset(r, 0, sizeof(*r));
	r->fd = fd;
	if (peek(r, 0, head, sizeof(head)) < sizeof(head))
		return -EINVAL;
	if (head[0] == MAGIC_BLOCKS) {
		r->blocks = true;
		return head[2] == MAGIC_ORDER || head[2] == bswap_32(MAGIC_ORDER) ? 0 : -EINVAL;
	}
	r->swapped = head[0] != MAGIC_MICRO && head[0] != MAGIC_NANO && head[0] != MAGIC_LONG;
	head[0] = number(r, head[0]);
	if (head[0] != MAGIC_MICRO && head[0] != MAGIC_NANO && head[0] != MAGIC_LONG)
		return -EINVAL;
	r->head = head[0] == MAGIC_LONG ? 24 : MR_PORT_CAPTURE_RECORD;
	return MR_PORT_CAPTURE_HEAD;
}

/* The length of the record at an offset, its head included; 0 where that cannot be. */
static uint64_t length(struct reader *r, uint64_t at, bool *ret_packet, const char **ret_why)
{
	uint32_t head[6];
	size_t want = r->blocks ? 12 : r->head;
	uint32_t n;

	if (peek(r, at, head, want) < want) {
		*ret_why = "the file ends in its header";
		return 0;
	}
	if (!r->blocks) {
		n = number(r, head[2]);
		*ret_packet = true;
		*ret_why = "its length is impossible";
		return n <= PACKET_MAX ? (uint64_t)r->head + n : 0;
	}
	if (head[0] == MAGIC_BLOCKS)
		r->swapped = head[2] == bswap_32(MAGIC_ORDER);
	n = number(r, head[1]);
	head[0] = number(r, head[0]);
	*ret_packet = head[0] == 2 || head[0] == 3 || head[0] == 6;
	*ret_why = "the length of its block is impossible";
	return n >= 12 && n <= BLOCK_MAX && n % 4 == 0 ? n : 0;
}

bool mr_port_capture_is(int fd)
{
	struct reader r;

	return start(&r, fd) >= 0;
}

int mr_port_capture_walk(int fd, uint64_t packets, struct mr_port_capture *ret_found)
{
	struct mr_port_capture c = {0};
	struct reader r;
	int first = start(&r, fd);

	memset(ret_found, 0, sizeof(*ret_found));
	if (first < 0)
		return first;
	c.offset = (uint64_t)first;
	for (uint8_t byte; peek(&r, c.offset, &byte, 1) == 1;) {
		bool packet = false;
		uint64_t bytes = length(&r, c.offset, &packet, &c.why);

		c.damaged = bytes == 0;
		if (!c.damaged && peek(&r, c.offset + bytes - 1, &byte, 1) == 0) {
			c.damaged = true;
			c.why = "the file ends in it";
		}
		if (c.damaged || c.packets == packets)
			break;
		c.packets += packet;
		c.offset += bytes;
	}
	*ret_found = c;
	return 0;
}
