/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gen_frame.h"

#include <rte_hash_crc.h>
#include <string.h>

#define ETHER_BYTES 14u
#define TAG_BYTES 4u
#define IP_BYTES 20u
#define UDP_BYTES 8u
#define TYPE_IP 0x0800u
#define TYPE_TAG 0x8100u
#define TYPE_TAG_OUTER 0x88a8u
#define PROTOCOL_UDP 17u

static void put16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static void put32(uint8_t *at, uint32_t v)
{
	put16(at, v >> 16);
	put16(at + 2, v);
}

static uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t get32(const uint8_t *at)
{
	return get16(at) << 16 | get16(at + 2);
}

static uint32_t crc32c(const uint8_t *data, uint32_t bytes)
{
	uint32_t crc = UINT32_MAX;
	uint64_t word;

	for (; bytes >= sizeof(word); data += sizeof(word), bytes -= sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		crc = rte_hash_crc_8byte(word, crc);
	}
	for (; bytes > 0; data++, bytes--)
		crc = rte_hash_crc_1byte(*data, crc);
	return ~crc;
}

/* RFC 1071, of a header whose checksum is 0. */
static uint32_t ip_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < IP_BYTES; i += 2)
		sum += get16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

void mr_gen_frame_init(
	struct mr_gen_frame *f, const struct mr_gen_headers *headers, uint32_t streams)
{
	uint8_t *ip;

	memset(f, 0, sizeof(*f));
	f->streams = streams;
	f->src_port = headers->src_port;
	f->dst_port = headers->dst_port;
	f->ip_at = ETHER_BYTES;
	memcpy(f->head, headers->dst_mac, 6);
	memcpy(f->head + 6, headers->src_mac, 6);
	if (headers->vlan != 0) {
		put16(f->head + 12, TYPE_TAG);
		put16(f->head + 14, headers->vlan);
		f->ip_at += TAG_BYTES;
	}
	put16(f->head + f->ip_at - 2, TYPE_IP);
	ip = f->head + f->ip_at;
	ip[0] = 0x45;
	ip[6] = 0x40; /* not to be fragmented */
	ip[8] = 64;   /* hops */
	ip[9] = PROTOCOL_UDP;
	put32(ip + 12, headers->src_ip);
	put32(ip + 16, headers->dst_ip);
	put16(ip + IP_BYTES + 2, headers->dst_port);
	for (uint32_t i = 0; i < sizeof(f->pattern); i++)
		f->pattern[i] = (uint8_t)i;
}

void mr_gen_frame_write(
	const struct mr_gen_frame *f, const struct mr_gen_stamp *stamp, uint32_t bytes, uint8_t *to)
{
	uint32_t head = f->ip_at + IP_BYTES + UDP_BYTES;
	uint8_t *ip = to + f->ip_at, *udp = ip + IP_BYTES, *payload = to + head;
	uint32_t left = bytes - head - MR_GEN_STAMP_BYTES;
	uint8_t *at = payload + MR_GEN_STAMP_BYTES;

	memcpy(to, f->head, head);
	put16(ip + 2, bytes - f->ip_at);
	put16(ip + 10, ip_checksum(ip));
	put16(udp, f->src_port + (uint32_t)stamp->stream);
	put16(udp + 4, bytes - f->ip_at - IP_BYTES);
	put16(payload + 4, stamp->run);
	payload[6] = stamp->trial;
	payload[7] = stamp->stream;
	put32(payload + 8, stamp->sequence);
	put16(payload + 12, (uint32_t)(stamp->time_ns >> 32));
	put32(payload + 14, (uint32_t)stamp->time_ns);
	while (left > 0) {
		uint32_t n = left < sizeof(f->pattern) ? left : (uint32_t)sizeof(f->pattern);

		memcpy(at, f->pattern, n);
		at += n;
		left -= n;
	}
	put32(payload, crc32c(payload + 4, bytes - head - 4));
}

/* Where IPv4 begins, behind at most two tags; 0: it does not. */
static uint32_t find_ip(const uint8_t *data, uint32_t bytes)
{
	uint32_t at = ETHER_BYTES;

	for (uint32_t tags = 0; tags <= 2; tags++, at += TAG_BYTES) {
		uint32_t type;

		if (bytes < at)
			return 0;
		type = get16(data + at - 2);
		if (type == TYPE_IP)
			return at;
		if (type != TYPE_TAG && type != TYPE_TAG_OUTER)
			return 0;
	}
	return 0;
}

static bool is_ours(const struct mr_gen_frame *f, const uint8_t *udp)
{
	uint32_t from = get16(udp), to = get16(udp + 2);

	if (to != f->dst_port) {
		uint32_t turned = from;

		from = to;
		to = turned;
	}
	return to == f->dst_port && from >= f->src_port && from < f->src_port + f->streams;
}

enum mr_gen_seen mr_gen_frame_read(const struct mr_gen_frame *f, const uint8_t *data,
	uint32_t bytes, struct mr_gen_stamp *ret_stamp)
{
	uint32_t at = find_ip(data, bytes);
	const uint8_t *ip = data + at, *udp, *payload;
	uint32_t head, length;

	if (at == 0 || bytes - at < IP_BYTES + UDP_BYTES || ip[0] >> 4 != 4 ||
		ip[9] != PROTOCOL_UDP)
		return MR_GEN_FOREIGN;
	head = (ip[0] & 15u) * 4;
	/* A part of a larger packet is none of ours. */
	if (head < IP_BYTES || bytes - at < head + UDP_BYTES || (get16(ip + 6) & 0x3fffu) != 0)
		return MR_GEN_FOREIGN;
	udp = ip + head;
	if (!is_ours(f, udp))
		return MR_GEN_FOREIGN;
	length = get16(udp + 4);
	if (length < UDP_BYTES + MR_GEN_STAMP_BYTES || get16(ip + 2) != head + length ||
		length > bytes - at - head)
		return MR_GEN_CORRUPT;
	payload = udp + UDP_BYTES;
	if (get32(payload) != crc32c(payload + 4, length - UDP_BYTES - 4))
		return MR_GEN_CORRUPT;
	ret_stamp->run = (uint16_t)get16(payload + 4);
	ret_stamp->trial = payload[6];
	ret_stamp->stream = payload[7];
	ret_stamp->sequence = get32(payload + 8);
	ret_stamp->time_ns = (uint64_t)get16(payload + 12) << 32 | get32(payload + 14);
	return MR_GEN_OURS;
}
