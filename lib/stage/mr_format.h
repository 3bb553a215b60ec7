/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_format - what a packet of sensors or telemetry says of itself: its stream, its place in
 * that stream, how much it bears, and when.
 *
 *     frame ─ mr_walk ─► headers ─ mr_format_find ─► row of the table
 *                                     mr_format_read ─► struct mr_seen ─► tracking, unpacking
 *
 * A table says which format comes on which UDP destination port or EtherType. The formats are
 * those of mr_formats.def; each has a reader of its own below. Numbers that differ only in
 * where they lie need no reader: a row `custom` tells it.
 *
 *     # format carrier port or type, then the fields of a custom one
 *     vrt    udp   4991
 *     flow   udp   2055-2056          # NetFlow 5 and 9 and IPFIX, by the packet's version
 *     ecpri  ether 0xaefe             # also behind VLAN tags
 *     custom udp   9000-9010  id 0:4  seq 4:8 le  modulus 4294967296  units packets
 *
 * Words of a custom row. A field is OFFSET:BYTES, 1 to 8 bytes at an offset in the datagram or
 * behind the EtherType; behind it may follow `le` (`be` is what it is without), and `shift N`
 * `bits N` for the bits that lie N above the lowest.
 *
 *     id FIELD             part of the stream's identity, up to three times; none: one stream
 *     seq FIELD            the sequence number, of the packet's first unit
 *     modulus N            it counts 0 .. N - 1; without, all that its bits hold
 *     units packets        it counts packets; so it is without
 *     units N              N for every packet
 *     units field FIELD    as many as the field says
 *     units bytes          the bytes of the payload
 *     payload OFFSET       where that begins; without, at 0
 *     time FIELD TICK      a time that runs up from 0; TICK is 1ps, 8ns, 1us, 1ms, 1s: a whole
 *                          part of a second
 *     valid OFFSET:MASK:VALUE   the byte under that mask has that value, or it is invalid
 *
 * A table without rows, or no file, is this one:
 *
 *     vrt udp 4991, sflow udp 6343, flow udp 2055, flow udp 4739, spead udp 7148,
 *     rtp udp 5004, ecpri ether 0xaefe
 *
 * Bounds. Nothing behind the end of the datagram is looked at, so padding of the frame says
 * nothing. A length that is smaller than what it counts, or larger than what is there, is
 * MR_SEEN_MALFORMED, and so is a packet of another version, or without the format's mark. So
 * is the first part of a datagram in fragments; later parts have no port and no row.
 *
 * Any thread; nothing is kept. Tables are only read.
 */
#ifndef MR_FORMAT_H
#define MR_FORMAT_H

#include "mr_interval.h"
#include "mr_packet.h"

enum mr_format {
#define FORMAT(name, carrier) MR_FORMAT_##name,
#include "mr_formats.def"
#undef FORMAT
	MR_FORMATS,
};

/* How loss is found. */
enum mr_track {
	MR_TRACK_COUNT,  /* seq counts units, below modulus */
	MR_TRACK_CLOCK,  /* VRT: seq is a short counter of packets, the time says how many */
	MR_TRACK_HEAP,   /* SPEAD: heap_at and units are the part of heap seq that it bears */
	MR_TRACK_SECOND, /* VDIF: seq is a number of frames that begins anew in each time_s */
};

enum mr_seen_state {
	MR_SEEN_OK,
	MR_SEEN_MALFORMED,
	MR_SEEN_INVALID, /* its own validity bit says so; the rest is as it has it */
	MR_SEEN_OTHER,   /* of the format, but bears no sequence */
};

/* Flags. Of the first three there is one at most. */
#define MR_SEEN_TIME (1u << 0)    /* time_s seconds and time_ps picoseconds, below 10^12 */
#define MR_SEEN_SAMPLES (1u << 1) /* time_s, and time_ps counts samples since it began */
#define MR_SEEN_TICKS (1u << 2)   /* time_ps is a count that never begins anew, time_s is 0 */
#define MR_SEEN_UPTIME (1u << 3)  /* uptime_ms is there */
#define MR_SEEN_ENDS (1u << 4)    /* the sender says that the stream ends (SPEAD) */

/*
 * What has no meaning for a format is 0. id is to be relied on where id_known says so, whatever
 * the state is; of what is malformed nothing else is.
 */
struct mr_seen {
	uint64_t id[3];      /* the stream within its sender; all of it is the identity */
	uint64_t seq;        /* number of the first unit, below modulus */
	uint64_t units;      /* that it bears; IPFIX: 0, since mr_ipfix_count() says it */
	uint64_t modulus;    /* of seq; 0: 2^64 */
	uint64_t time_s;     /* since the format's epoch, for VDIF since 2000 */
	uint64_t time_ps;    /* by the flags */
	uint64_t heap_at;    /* offset of the payload in its heap, bytes */
	uint64_t heap_bytes; /* of the whole heap; 0: not said */
	uint64_t uptime_ms;  /* of the sender; goes back when it restarts */
	uint32_t format;     /* enum mr_format; of a row `flow` the one that it was */
	uint32_t state;      /* enum mr_seen_state */
	uint32_t track;      /* enum mr_track; may differ between the packets of a format */
	uint32_t id_known;
	uint32_t flags;
	uint32_t payload, end; /* offsets in the frame: of what it bears, and behind that */
};

/* A number in the packet. */
struct mr_format_field {
	uint32_t offset; /* behind the UDP header, or the EtherType */
	uint8_t bytes;   /* 1 to 8; 0: there is none */
	uint8_t little;  /* least significant byte first */
	uint8_t shift;   /* bits below it */
	uint8_t bits;    /* 1 to 64; what is above them is not its own */
};

enum mr_format_units {
	MR_FORMAT_UNITS_NUMBER,
	MR_FORMAT_UNITS_FIELD,
	MR_FORMAT_UNITS_BYTES,
};

#define MR_FORMAT_ETHER 0x10000u /* in a key: the low 16 bits are an EtherType, no UDP port */

struct mr_format_row {
	uint32_t from, to; /* keys */
	uint32_t format;   /* enum mr_format */
	/* The rest is of a custom row. */
	uint32_t units; /* enum mr_format_units */
	struct mr_format_field id[3], seq, count, time;
	uint64_t units_number;
	uint64_t modulus;        /* 0: 2^64 */
	uint64_t tick_ps, ticks; /* of time, and how many a second has */
	uint32_t payload;
	uint32_t valid_offset;
	uint8_t valid_mask; /* 0: all are valid */
	uint8_t valid_value;
};

/* Behind it lie struct mr_format_row [rows], by `from`, and uint32_t [rows], their `from`. */
struct mr_format_table {
	uint32_t rows, spare;
};

MR_HD const struct mr_format_row *mr_format_rows(const struct mr_format_table *t)
{
	return (const struct mr_format_row *)(t + 1);
}

/* mr_format_find gives the row that a packet is of, or NULL. */
MR_HD const struct mr_format_row *mr_format_find(
	const struct mr_format_table *t, const struct mr_view *v, const struct mr_headers *h)
{
	const struct mr_format_row *row = mr_format_rows(t);
	const uint32_t *from = (const uint32_t *)(row + t->rows);
	uint32_t key = (h->has & MR_HAS_UDP) != 0 ? mr_get_be16(v, h->l4 + 2)
						  : MR_FORMAT_ETHER | h->ethertype;

	if (t->rows == 0 || (h->has & MR_HAS_MALFORMED) != 0)
		return NULL;
	row += mr_interval_search(from, t->rows, key);
	return key >= row->from && key <= row->to ? row : NULL;
}

/*
 * A reader begins with the state malformed, and returns where it finds that this holds. Its view
 * ends with the datagram, so what would lie behind that reads as 0.
 */

/* TSI is the kind of the integer seconds, TSF that of the 64 bits behind them; 0: none. */
MR_HD void mr_format_read_vrt_time(
	const struct mr_view *v, uint32_t end, uint32_t tsi, uint32_t tsf, struct mr_seen *s)
{
	uint32_t at = end - 8 * (tsf != 0);

	if (tsf == 3)
		s->flags = MR_SEEN_TICKS;
	else if (tsi != 0)
		s->flags = tsf == 1 ? MR_SEEN_SAMPLES : MR_SEEN_TIME;
	else
		return; /* a part of an unknown second */
	if (tsf != 0)
		s->time_ps = mr_get_be(v, at, 8);
	if (tsf != 3)
		s->time_s = mr_get_be32(v, at - 4);
}

/*
 * VITA 49.2 5.1.1. Word 0: type 31-28, class id 27, trailer 26, TSI 23-22, TSF 21-20, count 19-16,
 * size 15-0 in words with header and trailer. Data and extension data (0 to 3) may have a
 * trailer; 0 and 2 have no stream id. Each type of a stream counts its packets alone.
 * Context and commands (4 to 7) come when they will, so a clock says nothing of their loss.
 */
MR_HD void mr_format_read_vrt(const struct mr_view *v, struct mr_seen *s)
{
	uint32_t at = s->payload, left = s->end - at, word = mr_get_be32(v, at), type = word >> 28;
	uint32_t bytes = (word & 0xffff) * 4, tsi = word >> 22 & 3, tsf = word >> 20 & 3;
	uint32_t named = type != 0 && type != 2, trailer = type < 4 ? word >> 26 & 1 : 0;
	uint32_t header = 4 + 4 * named + 8 * (word >> 27 & 1) + 4 * (tsi != 0) + 8 * (tsf != 0);

	if (left < 4 + 4 * named)
		return;
	if (type > 7) { /* reserved: what follows is not known */
		s->state = MR_SEEN_OTHER;
		return;
	}
	s->id[0] = named ? mr_get_be32(v, at + 4) : 0;
	s->id[1] = type;
	s->id_known = 1;
	if (bytes > left || bytes < header + 4 * trailer)
		return;
	s->seq = word >> 16 & 15;
	s->modulus = 16;
	s->units = 1;
	mr_format_read_vrt_time(v, at + header, tsi, tsf, s);
	if ((s->flags & MR_SEEN_TIME) != 0 && s->time_ps >= 1000000000000)
		return;
	if (type < 4 && tsf != 0 && s->flags != 0)
		s->track = MR_TRACK_CLOCK;
	s->payload = at + header;
	s->end = at + bytes - 4 * trailer;
	/* 5.1.6: of valid data, bit 30 says that bit 18 tells it. */
	word = trailer ? mr_get_be32(v, s->end) : 0;
	s->state = (word >> 30 & 1) != 0 && (word >> 18 & 1) == 0 ? MR_SEEN_INVALID : MR_SEEN_OK;
}

/*
 * SPEAD revision 1, flavour 64-48: magic, version, widths of item id and address, reserved,
 * number of items; then item pointers: immediate 63, id 62-48, value 47-0. Items 1 (heap), 3
 * (offset of the payload) and 4 (its length) have to be there and immediate, 2 (length of the
 * heap) may be. The packet does not name its stream. What lies behind the payload is nothing.
 */
MR_HD void mr_format_read_spead(const struct mr_view *v, struct mr_seen *s)
{
	uint32_t at = s->payload, left = s->end - at, items = mr_get_be16(v, at + 6), have = 0;
	uint64_t bytes = 0;

	if (left < 8 || mr_get_be32(v, at) != 0x53040206)
		return;
	s->id_known = 1;
	if (8 * items > left - 8)
		return;
	MR_ROLLED
	for (uint32_t i = 0; i < items; i++) {
		uint64_t item = mr_get_be(v, at + 8 + 8 * i, 8), value = item & 0xffffffffffff;
		uint32_t id = (uint32_t)(item >> 48);

		if (id == 0x8001)
			s->seq = value;
		else if (id == 0x8002)
			s->heap_bytes = value;
		else if (id == 0x8003)
			s->heap_at = value;
		else if (id == 0x8004)
			bytes = value;
		else if (id == 0x8006 && value == 2) /* stream control: stop */
			s->flags = MR_SEEN_ENDS;
		if (id > 0x8000 && id < 0x8005)
			have |= 1u << (id - 0x8000);
	}
	if ((have & 0x1a) != 0x1a || bytes > left - 8 - 8 * items ||
		((have & 4) != 0 && s->heap_at + bytes > s->heap_bytes))
		return;
	s->units = bytes;
	s->modulus = 1ull << 48;
	s->track = MR_TRACK_HEAP;
	s->payload = at + 8 + 8 * items;
	s->end = s->payload + (uint32_t)bytes;
	s->state = MR_SEEN_OK;
}

/* Seconds from 2000 to the beginning of half-year `epoch` since then, 0 to 63, in UTC. */
MR_HD uint32_t mr_format_vdif_epoch(uint32_t epoch)
{
	uint32_t year = epoch / 2, days = 365 * year + (year + 3) / 4;

	return 86400 * (days + (epoch % 2 != 0 ? 181 + (year % 4 == 0) : 0));
}

/*
 * VDIF 1.1.1, Data Frame Header; words are little-endian. Word 0: invalid 31, legacy 30 (a header
 * of 16 bytes instead of 32), seconds since the epoch 29-0. Word 1: epoch 29-24, frame 23-0. Word
 * 2: length 23-0 in 8 bytes with the header. Word 3: thread 25-16, station 15-0. Senders fill gaps
 * with frames that are invalid and say nothing else but their length: those are of no stream.
 */
MR_HD void mr_format_read_vdif(const struct mr_view *v, struct mr_seen *s)
{
	uint32_t at = s->payload, left = s->end - at;
	uint32_t word0 = (uint32_t)mr_get_le(v, at, 4), word1 = (uint32_t)mr_get_le(v, at + 4, 4);
	uint32_t bytes = (uint32_t)mr_get_le(v, at + 8, 3) * 8, header = word0 >> 30 & 1 ? 16 : 32;
	uint32_t word3 = (uint32_t)mr_get_le(v, at + 12, 4), invalid = word0 >> 31;

	if (left < 16)
		return;
	s->id[0] = word3 & 0xffff;
	s->id[1] = word3 >> 16 & 0x3ff;
	s->id_known = !invalid || (word0 << 2 | word1) != 0;
	if (bytes < header || bytes > left)
		return;
	s->seq = word1 & 0xffffff;
	s->modulus = 1u << 24;
	s->units = 1;
	s->time_s = mr_format_vdif_epoch(word1 >> 24 & 63) + (word0 & 0x3fffffff);
	s->flags = MR_SEEN_TIME;
	s->track = MR_TRACK_SECOND;
	s->payload = at + header;
	s->end = at + bytes;
	s->state = invalid ? MR_SEEN_INVALID : MR_SEEN_OK;
}

/* A number of 64 bits, little-endian, for all packets of a sender; then a VDIF frame. */
MR_HD void mr_format_read_vtp(const struct mr_view *v, struct mr_seen *s)
{
	uint32_t at = s->payload;

	if (s->end - at < 8)
		return;
	s->payload = at + 8;
	mr_format_read_vdif(v, s);
	s->id[0] = 0;
	s->id[1] = 0;
	s->id_known = 1;
	s->seq = mr_get_le(v, at, 8);
	s->modulus = 0;
	s->track = MR_TRACK_COUNT;
}

/*
 * sFlow 5, "sFlow Datagram Format", XDR: version, type of address (1 IPv4, 2 IPv6), address of
 * the agent, sub agent, number of the datagram, uptime, number of samples; a sample is type,
 * length and so many bytes. What lies behind the samples that are counted is nothing.
 */
MR_HD void mr_format_read_sflow(const struct mr_view *v, struct mr_seen *s)
{
	uint32_t at = s->payload, left = s->end - at, type = mr_get_be32(v, at + 4), samples, bytes;
	uint32_t address = type == 2 ? 16 : 4;

	if (left < 24 + address || mr_get_be32(v, at) != 5 || type < 1 || type > 2)
		return;
	at += 8 + address;
	s->id[0] = mr_get_be(v, at - 16, 8);
	s->id[1] = mr_get_be(v, at - 8, 8);
	if (type == 1) {
		s->id[0] = 0;
		s->id[1] &= 0xffffffff;
	}
	s->id[2] = (uint64_t)type << 32 | mr_get_be32(v, at);
	s->id_known = 1;
	s->seq = mr_get_be32(v, at + 4);
	s->modulus = 1ull << 32;
	s->units = 1;
	s->uptime_ms = mr_get_be32(v, at + 8);
	s->flags = MR_SEEN_UPTIME;
	samples = mr_get_be32(v, at + 12);
	at += 16;
	s->payload = at;
	MR_ROLLED
	for (; samples != 0; samples--) {
		left = s->end - at;
		bytes = mr_get_be32(v, at + 4);
		if (left < 8 || bytes > left - 8)
			return;
		bytes = (bytes + 3) & ~3u; /* RFC 4506 4.10 */
		if (bytes > left - 8)
			return;
		at += 8 + bytes;
	}
	s->end = at;
	s->state = MR_SEEN_OK;
}

/* NetFlow 5: a header of 24 bytes, then `count` flows of 48; it is flows that are numbered. */
MR_HD void mr_format_read_netflow5(const struct mr_view *v, struct mr_seen *s)
{
	uint32_t at = s->payload, left = s->end - at, flows = mr_get_be16(v, at + 2);
	uint64_t ns = mr_get_be32(v, at + 12);

	if (left < 24)
		return;
	s->id[0] = mr_get_be16(v, at + 20); /* type and number of the engine */
	s->id_known = 1;
	if (48 * flows > left - 24)
		return;
	s->seq = mr_get_be32(v, at + 16);
	s->modulus = 1ull << 32;
	s->units = flows;
	s->uptime_ms = mr_get_be32(v, at + 4);
	s->flags = MR_SEEN_UPTIME;
	if (ns < 1000000000) {
		s->time_s = mr_get_be32(v, at + 8);
		s->time_ps = 1000 * ns;
		s->flags |= MR_SEEN_TIME;
	}
	s->payload = at + 24;
	s->end = s->payload + 48 * flows;
	s->state = MR_SEEN_OK;
}

/* Sets from `at` fill it to the end; each begins with an id and its length (RFC 7011 3.3.2). */
MR_HD int mr_format_sets_ok(const struct mr_view *v, uint32_t at, uint32_t end)
{
	MR_ROLLED
	while (at < end) {
		uint32_t bytes = mr_get_be16(v, at + 2);

		if (end - at < 4 || bytes < 4 || bytes > end - at)
			return 0;
		at += bytes;
	}
	return 1;
}

/* RFC 3954 5.1: a header of 20 bytes, then sets; it is packets that are numbered. */
MR_HD void mr_format_read_netflow9(const struct mr_view *v, struct mr_seen *s)
{
	uint32_t at = s->payload;

	if (s->end - at < 20)
		return;
	s->id[0] = mr_get_be32(v, at + 16); /* source id */
	s->id_known = 1;
	s->seq = mr_get_be32(v, at + 12);
	s->modulus = 1ull << 32;
	s->units = 1;
	s->uptime_ms = mr_get_be32(v, at + 4);
	s->time_s = mr_get_be32(v, at + 8);
	s->flags = MR_SEEN_UPTIME | MR_SEEN_TIME;
	s->payload = at + 20;
	if (mr_format_sets_ok(v, s->payload, s->end))
		s->state = MR_SEEN_OK;
}

/* RFC 7011 3.1: a header of 16 bytes, then sets; it is data records that are numbered. */
MR_HD void mr_format_read_ipfix(const struct mr_view *v, struct mr_seen *s)
{
	uint32_t at = s->payload, left = s->end - at, bytes = mr_get_be16(v, at + 2);

	if (left < 16)
		return;
	s->id[0] = mr_get_be32(v, at + 12); /* observation domain */
	s->id_known = 1;
	if (bytes < 16 || bytes > left)
		return;
	s->seq = mr_get_be32(v, at + 8);
	s->modulus = 1ull << 32;
	s->time_s = mr_get_be32(v, at + 4);
	s->flags = MR_SEEN_TIME;
	s->payload = at + 16;
	s->end = at + bytes;
	if (mr_format_sets_ok(v, s->payload, s->end))
		s->state = MR_SEEN_OK;
}

/* All three begin with their version, in 16 bits. */
MR_HD void mr_format_read_flow(const struct mr_view *v, struct mr_seen *s)
{
	uint32_t version = s->end - s->payload < 2 ? 0 : mr_get_be16(v, s->payload), format;

	format = version == 5   ? MR_FORMAT_netflow5
		: version == 9  ? MR_FORMAT_netflow9
		: version == 10 ? MR_FORMAT_ipfix
				: MR_FORMATS;
	if (format == MR_FORMATS || (s->format != MR_FORMAT_flow && s->format != format))
		return;
	s->format = format;
	if (format == MR_FORMAT_netflow5)
		mr_format_read_netflow5(v, s);
	else if (format == MR_FORMAT_netflow9)
		mr_format_read_netflow9(v, s);
	else
		mr_format_read_ipfix(v, s);
}

/*
 * Telemetry Report 2.0, Group Header: version (4 bits), hardware id (6), number of the packet (22),
 * node id. Reports follow, at least one: their second byte is their length in words without the
 * first, and of INT metadata (type 1) the third is that of what is behind 2 words more.
 */
MR_HD void mr_format_read_int2(const struct mr_view *v, struct mr_seen *s)
{
	uint32_t at = s->payload, left = s->end - at, word = mr_get_be32(v, at);

	if (left < 8 || word >> 28 != 2)
		return;
	s->id[0] = mr_get_be32(v, at + 4);
	s->id[1] = word >> 22 & 63;
	s->id_known = 1;
	s->seq = word & 0x3fffff;
	s->modulus = 1u << 22;
	s->units = 1;
	at += 8;
	s->payload = at;
	do {
		uint32_t words = mr_get_u8(v, at + 1), least = 0;

		left = s->end - at;
		if (mr_get_u8(v, at) >> 4 == 1)
			least = 2 + mr_get_u8(v, at + 2);
		if (left < 4 || words < least || 4 * words > left - 4)
			return;
		at += 4 + 4 * words;
	} while (at < s->end);
	s->state = MR_SEEN_OK;
}

/*
 * eCPRI 2.0, Common Header: version (4 bits), concatenation, type of message, bytes behind these 4.
 * IQ data (0) and real-time control (2) go on with the eAxC id, a number of 8 bits, E bit and
 * number of the part, and O-RAN (WG4 CUS, transport header) with the direction as highest bit of
 * at least 4 bytes. Parts of a message behind its first have no number of their own, nor have
 * other messages. Of messages concatenated in one frame the first is looked at.
 */
MR_HD void mr_format_read_ecpri(const struct mr_view *v, struct mr_seen *s)
{
	uint32_t at = s->payload, left = s->end - at, type = mr_get_u8(v, at + 1);
	uint32_t bytes = mr_get_be16(v, at + 2), bears = type == 0 || type == 2;

	if (left < 4 || mr_get_u8(v, at) >> 4 != 1)
		return;
	if (bears && left >= 12) {
		s->id[0] = mr_get_be16(v, at + 4);
		s->id[1] = type << 1 | mr_get_u8(v, at + 8) >> 7;
		s->id_known = 1;
	}
	if (bytes > left - 4 || (bears && bytes < 8))
		return;
	s->end = at + 4 + bytes;
	s->payload = at + (bears ? 8 : 4);
	s->state = MR_SEEN_OTHER;
	if (!bears || (mr_get_u8(v, at + 7) & 0x7f) != 0)
		return;
	s->seq = mr_get_u8(v, at + 6);
	s->modulus = 256;
	s->units = 1;
	s->state = MR_SEEN_OK;
}

/*
 * RFC 3550 5.1: version (2 bits), padding, extension, number of CSRCs (4); marker and payload
 * type; number of the packet; timestamp, of a clock that only the payload type tells; SSRC;
 * CSRCs; an extension (5.3.1) with its length in words in the second 16 bits. The last byte
 * counts the padding. RFC 5761 4: what has a type from 64 to 95 is RTCP.
 */
MR_HD void mr_format_read_rtp(const struct mr_view *v, struct mr_seen *s)
{
	uint32_t at = s->payload, left = s->end - at, first = mr_get_u8(v, at), padding = 0;
	uint32_t header = 12 + 4 * (first & 15), type = mr_get_u8(v, at + 1) & 127;

	if (left < 8 || first >> 6 != 2)
		return;
	if (type >= 64 && type <= 95) {
		s->state = MR_SEEN_OTHER;
		return;
	}
	if (left < 12)
		return;
	s->id[0] = mr_get_be32(v, at + 8);
	s->id_known = 1;
	if ((first & 0x10) != 0) {
		header += 4;
		if (header > left)
			return;
		header += 4 * mr_get_be16(v, at + header - 2);
	}
	if (header > left)
		return;
	if ((first & 0x20) != 0) {
		padding = mr_get_u8(v, s->end - 1);
		if (padding == 0 || padding > left - header)
			return;
	}
	s->seq = mr_get_be16(v, at + 2);
	s->modulus = 1u << 16;
	s->units = 1;
	s->payload = at + header;
	s->end -= padding;
	s->state = MR_SEEN_OK;
}

/* mr_format_field reads it at its offset from `at`; 0: it does not lie before the end whole. */
MR_HD int mr_format_field(const struct mr_view *v, const struct mr_format_field *f, uint32_t at,
	uint32_t end, uint64_t *ret_value)
{
	uint64_t x;

	if (f->offset + f->bytes > end - at)
		return 0;
	at += f->offset;
	x = f->little ? mr_get_le(v, at, f->bytes) : mr_get_be(v, at, f->bytes);
	*ret_value = f->bytes == 0 ? 0 : x >> f->shift & UINT64_MAX >> (64 - f->bits);
	return 1;
}

MR_HD void mr_format_read_custom(
	const struct mr_format_row *row, const struct mr_view *v, struct mr_seen *s)
{
	uint32_t at = s->payload, end = s->end, byte;
	uint64_t time;

	s->id_known = mr_format_field(v, &row->id[0], at, end, &s->id[0]) &&
		mr_format_field(v, &row->id[1], at, end, &s->id[1]) &&
		mr_format_field(v, &row->id[2], at, end, &s->id[2]);
	s->units = row->units_number;
	s->modulus = row->modulus;
	if (!s->id_known || !mr_format_field(v, &row->seq, at, end, &s->seq) ||
		(row->modulus != 0 && s->seq >= row->modulus) || row->payload > end - at)
		return;
	s->payload = at + row->payload;
	if (row->units == MR_FORMAT_UNITS_BYTES)
		s->units = end - s->payload;
	else if (row->units == MR_FORMAT_UNITS_FIELD &&
		!mr_format_field(v, &row->count, at, end, &s->units))
		return;
	if (row->tick_ps != 0) {
		if (!mr_format_field(v, &row->time, at, end, &time))
			return;
		s->time_s = time / row->ticks;
		s->time_ps = (time - s->time_s * row->ticks) * row->tick_ps;
		s->flags = MR_SEEN_TIME;
	}
	if (s->units > UINT32_MAX || (row->valid_mask != 0 && row->valid_offset >= end - at))
		return;
	byte = mr_get_u8(v, at + row->valid_offset);
	s->state = (byte & row->valid_mask) == row->valid_value ? MR_SEEN_OK : MR_SEEN_INVALID;
}

/* mr_format_read fills *s by the row that mr_format_find gave for this packet. */
MR_HD void mr_format_read(const struct mr_format_row *row, const struct mr_view *view,
	const struct mr_headers *h, struct mr_seen *s)
{
	struct mr_view datagram = *view;
	const struct mr_view *v = &datagram;

	datagram.length = h->end;
	s->id[0] = 0;
	s->id[1] = 0;
	s->id[2] = 0;
	s->seq = 0;
	s->units = 0;
	s->modulus = 0;
	s->time_s = 0;
	s->time_ps = 0;
	s->heap_at = 0;
	s->heap_bytes = 0;
	s->uptime_ms = 0;
	s->format = row->format;
	s->state = MR_SEEN_MALFORMED;
	s->track = MR_TRACK_COUNT;
	s->id_known = 0;
	s->flags = 0;
	s->payload = (h->has & MR_HAS_UDP) != 0 ? h->payload : h->l3;
	s->end = h->end;
	switch (row->format) {
	case MR_FORMAT_vrt:
		mr_format_read_vrt(v, s);
		break;
	case MR_FORMAT_spead:
		mr_format_read_spead(v, s);
		break;
	case MR_FORMAT_vdif:
		mr_format_read_vdif(v, s);
		break;
	case MR_FORMAT_vtp:
		mr_format_read_vtp(v, s);
		break;
	case MR_FORMAT_sflow:
		mr_format_read_sflow(v, s);
		break;
	case MR_FORMAT_netflow5:
	case MR_FORMAT_netflow9:
	case MR_FORMAT_ipfix:
	case MR_FORMAT_flow:
		mr_format_read_flow(v, s);
		break;
	case MR_FORMAT_int2:
		mr_format_read_int2(v, s);
		break;
	case MR_FORMAT_ecpri:
		mr_format_read_ecpri(v, s);
		break;
	case MR_FORMAT_rtp:
		mr_format_read_rtp(v, s);
		break;
	default:
		mr_format_read_custom(row, v, s);
		break;
	}
	if ((h->has & MR_HAS_FRAGMENT) != 0)
		s->state = MR_SEEN_MALFORMED;
}

#if !defined(__CUDACC__)
#include "mr_table.h"

#define MR_FORMAT_ROWS_MIN 7u /* those of the table without rows */
#define MR_FORMAT_ROWS_MAX 1000u

/* The word for it in tables and results. */
const char *mr_format_name(enum mr_format format);

/* Of a table with at most so many rows. */
size_t mr_format_bytes(uint32_t rows_max);

/*
 * mr_format_build makes the table of the rows in text; struct mr_table_desc says how. rows_max
 * is MR_FORMAT_ROWS_MIN to MR_FORMAT_ROWS_MAX; the parameter that says it is `formats_max`.
 */
MR_MUST_USE int mr_format_build(
	struct mr_table_text *text, uint32_t rows_max, void *table, size_t *ret_bytes);
#endif

#endif
