/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_ipfix - how many data records an IPFIX message bears.
 *
 * The sequence number of IPFIX counts data records (RFC 7011 3.1), those of options among them,
 * and a record's length is what its template says. So templates have to be remembered, and a
 * message with data of an unknown one has a number of records that nobody knows.
 *
 *     message ─ sets ─┬─ templates ──► memory of templates
 *                     └─ data ─ template? ─► records
 *
 * A template is kept as the bytes between its fields of variable length, which is all that
 * counting needs. The memory is the caller's, zeroes at the start. A template has
 * MR_IPFIX_PROBES places that its exporter, domain and id say; where all are taken by others,
 * one of those is lost. So the work is bounded whatever packets say.
 *
 * Templates of UDP are sent again and again and may change at any time (RFC 7011 8.4): the last
 * one holds. One template is withdrawn by a record without fields (8.1); a withdrawal of all,
 * which is not for UDP, is skipped, and so are sets with reserved ids.
 *
 * Thread   one at a time for a memory: what has learned a template is seen by the next call.
 * Errors   in enum mr_ipfix_result.
 */
#ifndef MR_IPFIX_H
#define MR_IPFIX_H

#include "mr_packet.h"

#define MR_IPFIX_VARIABLE 20u /* fields of variable length in a template that can be kept */
#define MR_IPFIX_PROBES 8u
#define MR_IPFIX_LOOKUPS 128u  /* sets and template records of a message that are looked at */
#define MR_IPFIX_WALKED 1024u  /* and, of a set, records of variable length */
#define MR_IPFIX_LARGE 0xffffu /* in place of their number: more, or a record has no bytes */

struct mr_ipfix_template {
	uint64_t exporter;
	uint32_t domain;
	uint16_t id;       /* 0: nothing is here */
	uint16_t variable; /* fields of variable length, or MR_IPFIX_LARGE */
	uint16_t least;    /* bytes of a record whose variable fields are empty, 65535 for more */
	/* Bytes in front of each of them, and behind the last. */
	uint16_t fixed[MR_IPFIX_VARIABLE + 1];
	uint8_t spare[4];
};

enum mr_ipfix_result {
	MR_IPFIX_OK,
	MR_IPFIX_UNKNOWN,   /* data of a template that is unknown, or too large to be kept, or more
			       than one packet is worth: no exporter has so many in a message */
	MR_IPFIX_MALFORMED, /* a length contradicts; what came before it was learned */
};

/* Where the places of a template begin. */
MR_HD uint32_t mr_ipfix_home(uint32_t capacity, uint64_t exporter, uint32_t domain, uint32_t id)
{
	uint64_t x = exporter * 0x9e3779b97f4a7c15u + ((uint64_t)domain << 16 | id);

	x = (x ^ x >> 32) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 29) * 0x9e3779b97f4a7c15u;
	return (uint32_t)((x >> 32) * capacity >> 32);
}

/* The template, or NULL; *ret_place is where it would be put. */
MR_HD struct mr_ipfix_template *mr_ipfix_find(struct mr_ipfix_template *templates,
	uint32_t capacity, uint64_t exporter, uint32_t domain, uint32_t id,
	struct mr_ipfix_template **ret_place)
{
	uint32_t at = mr_ipfix_home(capacity, exporter, domain, id);

	*ret_place = &templates[at];
	MR_ROLLED
	for (uint32_t i = 0; i < MR_IPFIX_PROBES; i++) {
		struct mr_ipfix_template *t = &templates[at];

		if (t->id == id && t->exporter == exporter && t->domain == domain)
			return t;
		if (t->id == 0 && (*ret_place)->id != 0)
			*ret_place = t;
		at = at + 1 < capacity ? at + 1 : 0;
	}
	return NULL;
}

/* Bytes of `count` field specifiers (RFC 7011 3.2) at `at`; 0: they do not end before the end. */
MR_HD uint32_t mr_ipfix_fields(const struct mr_view *v, uint32_t at, uint32_t end, uint32_t count)
{
	uint32_t begin = at;

	MR_ROLLED
	for (; count != 0; count--) {
		/* The highest bit says that the number of an enterprise follows. */
		uint32_t bytes = mr_get_u8(v, at) >> 7 != 0 ? 8 : 4;

		if (bytes > end - at)
			return 0;
		at += bytes;
	}
	return at - begin;
}

MR_HD uint32_t mr_ipfix_add(uint32_t sum, uint32_t bytes)
{
	return sum + bytes < 0xffff ? sum + bytes : 0xffff;
}

/* Keeps the template of fields that lie in the packet. */
MR_HD void mr_ipfix_keep(
	const struct mr_view *v, uint32_t at, uint32_t count, struct mr_ipfix_template *t)
{
	uint32_t variable = 0, fixed = 0, least = 0;

	MR_ROLLED
	for (; count != 0; count--) {
		uint32_t bytes = mr_get_be16(v, at + 2);

		at += mr_get_u8(v, at) >> 7 != 0 ? 8 : 4;
		least = mr_ipfix_add(least, bytes == 0xffff ? 1 : bytes);
		if (bytes != 0xffff) {
			fixed = mr_ipfix_add(fixed, bytes);
		} else {
			if (variable < MR_IPFIX_VARIABLE)
				t->fixed[variable] = (uint16_t)fixed;
			variable++;
			fixed = 0;
		}
	}
	t->least = (uint16_t)least;
	t->variable = MR_IPFIX_LARGE;
	if (variable <= MR_IPFIX_VARIABLE && least != 0) {
		t->fixed[variable] = (uint16_t)fixed;
		t->variable = (uint16_t)variable;
	}
}

/*
 * A template record at `at` (RFC 7011 3.4.1, 3.4.2.2): its bytes, 0: it is malformed. What is
 * not to be kept is put nowhere.
 */
MR_HD uint32_t mr_ipfix_learn(struct mr_ipfix_template *templates, uint32_t capacity,
	uint64_t exporter, uint32_t domain, const struct mr_view *v, uint32_t at, uint32_t end,
	uint32_t set, uint32_t *ret_replaced)
{
	uint32_t id = mr_get_be16(v, at), count = mr_get_be16(v, at + 2), bytes;
	uint32_t header = set == 3 && count != 0 ? 6 : 4; /* options: and the number of scopes */
	struct mr_ipfix_template *t, *place;

	if (id == set && count == 0)
		return 4;
	if (id < 256 || header > end - at)
		return 0;
	bytes = mr_ipfix_fields(v, at + header, end, count);
	if (count != 0 && bytes == 0)
		return 0;
	t = mr_ipfix_find(templates, capacity, exporter, domain, id, &place);
	if (count == 0) {
		if (t != NULL)
			t->id = 0;
		return 4;
	}
	if (t == NULL) {
		t = place;
		*ret_replaced += t->id != 0;
		t->exporter = exporter;
		t->domain = domain;
		t->id = (uint16_t)id;
	}
	mr_ipfix_keep(v, at + header, count, t);
	return header + bytes;
}

/* Bytes of the data record at `at`; 0: it does not end before the end (RFC 7011 7). */
MR_HD uint32_t mr_ipfix_record(
	const struct mr_view *v, uint32_t at, uint32_t end, const struct mr_ipfix_template *t)
{
	uint32_t begin = at;

	MR_ROLLED
	for (uint32_t i = 0; i < t->variable; i++) {
		uint32_t bytes;

		at += t->fixed[i];
		bytes = mr_get_u8(v, at);
		if (bytes == 255) {
			bytes = mr_get_be16(v, at + 1);
			at += 2;
		}
		at += 1 + bytes;
	}
	at += t->fixed[t->variable];
	return at <= end ? at - begin : 0;
}

/* Counts the records of a data set; what is left behind them is padding (RFC 7011 3.3.1). */
MR_HD enum mr_ipfix_result mr_ipfix_data(const struct mr_ipfix_template *t, const struct mr_view *v,
	uint32_t at, uint32_t end, uint64_t *ret_records)
{
	if (t == NULL || t->variable == MR_IPFIX_LARGE)
		return MR_IPFIX_UNKNOWN;
	if (t->variable == 0) {
		*ret_records += (end - at) / t->least;
		return MR_IPFIX_OK;
	}
	MR_ROLLED
	for (uint32_t walked = 0; end - at >= t->least; walked++) {
		uint32_t bytes = mr_ipfix_record(v, at, end, t);

		if (walked == MR_IPFIX_WALKED)
			return MR_IPFIX_UNKNOWN;
		if (bytes == 0)
			return MR_IPFIX_MALFORMED;
		at += bytes;
		++*ret_records;
	}
	return MR_IPFIX_OK;
}

/*
 * mr_ipfix_count learns the templates of a message and counts its data records. at and end are
 * payload and end of what mr_format_read saw, domain is its id[0]; exporter is what tells
 * exporters apart, such as a hash of their address and port. *ret_records are those of known
 * templates, *ret_replaced the templates that were lost for others. capacity is
 * the number of templates, above 0.
 */
MR_HD enum mr_ipfix_result mr_ipfix_count(struct mr_ipfix_template *templates, uint32_t capacity,
	uint64_t exporter, uint32_t domain, const struct mr_view *view, uint32_t at, uint32_t end,
	uint64_t *ret_records, uint32_t *ret_replaced)
{
	enum mr_ipfix_result all = MR_IPFIX_OK, one;
	struct mr_ipfix_template *place;
	struct mr_view message = *view;
	const struct mr_view *v = &message;
	uint32_t lookups = 0;

	*ret_records = 0;
	*ret_replaced = 0;
	if (end > view->length)
		return MR_IPFIX_MALFORMED;
	message.length = end;
	MR_ROLLED
	while (at < end) {
		uint32_t set = mr_get_be16(v, at), bytes = mr_get_be16(v, at + 2),
			 next = at + bytes;

		if (end - at < 4 || bytes < 4 || bytes > end - at)
			return MR_IPFIX_MALFORMED;
		if (lookups++ == MR_IPFIX_LOOKUPS)
			return MR_IPFIX_UNKNOWN;
		at += 4;
		if (set == 2 || set == 3) {
			MR_ROLLED
			while (next - at >= 4) { /* less is padding */
				if (lookups++ == MR_IPFIX_LOOKUPS)
					return MR_IPFIX_UNKNOWN;
				bytes = mr_ipfix_learn(templates, capacity, exporter, domain, v, at,
					next, set, ret_replaced);
				if (bytes == 0)
					return MR_IPFIX_MALFORMED;
				at += bytes;
			}
		} else if (set >= 256) {
			one = mr_ipfix_data(
				mr_ipfix_find(templates, capacity, exporter, domain, set, &place),
				v, at, next, ret_records);
			if (one == MR_IPFIX_MALFORMED)
				return one;
			all = one == MR_IPFIX_OK ? all : one;
		}
		at = next;
	}
	return all;
}

#endif
