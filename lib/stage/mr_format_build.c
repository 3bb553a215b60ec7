/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_format.h"

#include "mr_base.h"
#include "mr_nearest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[MR_FORMATS] = {
#define FORMAT(name, carrier) #name,
#include "mr_formats.def"
#undef FORMAT
};

enum {
	UDP, /* alone */
	ANY,
};

static const uint8_t carriers[MR_FORMATS] = {
#define FORMAT(name, carrier) carrier,
#include "mr_formats.def"
#undef FORMAT
};

#define SECOND_PS 1000000000000ull

/* What a table without rows has; MR_FORMAT_ROWS_MIN of them. */
static const char usual[] = "vrt udp 4991\nsflow udp 6343\nflow udp 2055\nflow udp 4739\n"
			    "spead udp 7148\nrtp udp 5004\necpri ether 0xaefe\n";

struct entry {
	struct mr_format_row row;
	uint32_t line;
};

/* A custom row while it is read. */
struct parse {
	struct mr_table_text *t;
	struct mr_format_row *row;
	uint32_t at;                  /* next word */
	struct mr_format_field *last; /* that be, le, shift and bits are of; NULL: none */
	uint32_t ids;
	uint32_t given; /* bit of each word that may be there once */
	bool ticked;    /* a word that was there for the tick was read */
	uint64_t modulus;
	const char *modulus_text;
};

const char *mr_format_name(enum mr_format format)
{
	return names[format];
}

static bool parse_number(const char *text, uint32_t most, uint32_t *ret_number)
{
	struct mr_range range;

	if (text == NULL || mr_param_range_parse(text, 0, most, &range) < 0 ||
		range.from != range.to)
		return false;
	*ret_number = range.from;
	return true;
}

/* Cuts text at the first colon; NULL: there is none. */
static char *cut(char *text)
{
	char *colon = text != NULL ? strchr(text, ':') : NULL;

	if (colon != NULL)
		*colon++ = '\0';
	return colon;
}

/* The value of a word, NULL where the line ends. */
static char *take(struct parse *p)
{
	return p->at < p->t->words ? p->t->word[p->at++] : NULL;
}

static const char *shown(const char *text)
{
	return text != NULL ? text : "";
}

static void parse_field(struct parse *p, const char *key, struct mr_format_field *ret_field)
{
	char *text = take(p), whole[64];
	uint32_t offset, bytes;
	char *behind;

	strncpy(whole, shown(text), sizeof(whole) - 1);
	whole[sizeof(whole) - 1] = '\0';
	behind = cut(text);
	p->last = ret_field;
	memset(ret_field, 0, sizeof(*ret_field));
	ret_field->bytes = 1;
	if (!parse_number(text, UINT16_MAX, &offset) || !parse_number(behind, 8, &bytes) ||
		bytes == 0) {
		mr_table_refuse(p->t,
			"'%s' takes OFFSET:BYTES, 1 to 8 bytes at an offset from 0 to 65535, not "
			"'%.40s'",
			key, whole);
		return;
	}
	ret_field->offset = offset;
	ret_field->bytes = (uint8_t)bytes;
}

static void parse_id(struct parse *p)
{
	if (p->ids == MR_ARRAY_LEN(p->row->id)) {
		mr_table_refuse(p->t, "more than three fields 'id'; take wider ones");
		(void)take(p);
		p->last = NULL;
		return;
	}
	parse_field(p, "id", &p->row->id[p->ids++]);
}

static void parse_seq(struct parse *p)
{
	parse_field(p, "seq", &p->row->seq);
}

static void parse_units(struct parse *p)
{
	const char *text = take(p);
	uint32_t number = 1;

	p->last = NULL;
	if (text != NULL && strcmp(text, "field") == 0) {
		p->row->units = MR_FORMAT_UNITS_FIELD;
		parse_field(p, "units field", &p->row->count);
		return;
	}
	if (text != NULL && strcmp(text, "bytes") == 0)
		p->row->units = MR_FORMAT_UNITS_BYTES;
	else if (text == NULL ||
		(strcmp(text, "packets") != 0 &&
			(!parse_number(text, UINT32_MAX, &number) || number == 0)))
		mr_table_refuse(p->t,
			"'units' takes packets, bytes, field OFFSET:BYTES or a number above 0, not "
			"'%.40s'",
			shown(text));
	p->row->units_number = number;
}

static void parse_payload(struct parse *p)
{
	const char *text = take(p);

	p->last = NULL;
	if (!parse_number(text, UINT16_MAX, &p->row->payload))
		mr_table_refuse(p->t, "'payload' takes an offset from 0 to 65535, not '%.40s'",
			shown(text));
}

static void parse_modulus(struct parse *p)
{
	p->last = NULL;
	p->modulus_text = take(p);
	if (p->modulus_text == NULL || mr_param_number_parse(p->modulus_text, &p->modulus) < 0 ||
		p->modulus < 2) {
		mr_table_refuse(p->t, "'modulus' takes a number above 1, not '%.40s'",
			shown(p->modulus_text));
		p->modulus = 0;
	}
}

/* Picoseconds of a tick as in 8ns; 0: it is none, or no whole part of a second. */
static uint64_t parse_tick(const char *text)
{
	static const struct {
		const char *name;
		uint64_t ps;
	} units[] = {
		{"ps", 1}, {"ns", 1000}, {"us", 1000000}, {"ms", 1000000000}, {"s", SECOND_PS}};
	size_t digits = strspn(text, "0123456789");
	char number[16];
	uint64_t n;

	if (digits >= sizeof(number))
		return 0;
	memcpy(number, text, digits);
	number[digits] = '\0';
	if (mr_param_number_parse(number, &n) < 0)
		return 0;
	for (size_t i = 0; i < MR_ARRAY_LEN(units); i++)
		if (strcmp(text + digits, units[i].name) == 0 && n > 0 &&
			SECOND_PS / units[i].ps % n == 0)
			return n * units[i].ps;
	return 0;
}

/* The tick is a word of its own, so that be, le, shift and bits may stand before it. */
static void parse_time(struct parse *p)
{
	parse_field(p, "time", &p->row->time);
}

static void parse_valid(struct parse *p)
{
	char *offset = take(p), *mask = cut(offset), *value = cut(mask);
	uint32_t m, x;

	p->last = NULL;
	if (!parse_number(offset, UINT16_MAX, &p->row->valid_offset) ||
		!parse_number(mask, 255, &m) || !parse_number(value, 255, &x) || m == 0 ||
		(x & ~m) != 0) {
		mr_table_refuse(p->t,
			"'valid' takes OFFSET:MASK:VALUE, a byte's mask of 1 to 255 and a value "
			"within it, as in 4:0x80:0");
		return;
	}
	p->row->valid_mask = (uint8_t)m;
	p->row->valid_value = (uint8_t)x;
}

static const struct {
	const char *name;
	void (*parse)(struct parse *p);
	bool repeats;
} keys[] = {
	{"id", parse_id, true},
	{"seq", parse_seq, false},
	{"modulus", parse_modulus, false},
	{"units", parse_units, false},
	{"payload", parse_payload, false},
	{"time", parse_time, false},
	{"valid", parse_valid, false},
};

/* be, le, shift N and bits N, of the field before them; false: the word is none of these. */
static bool parse_of_field(struct parse *p, const char *word)
{
	bool shift = strcmp(word, "shift") == 0, order = strcmp(word, "le") == 0;
	struct mr_format_field unused, *f = p->last != NULL ? p->last : &unused;
	uint32_t number;

	order = order || strcmp(word, "be") == 0;
	if (!order && !shift && strcmp(word, "bits") != 0)
		return false;
	if (p->last == NULL)
		mr_table_refuse(p->t, "'%s' stands behind the field that it is of", word);
	if (order) {
		f->little = strcmp(word, "le") == 0;
	} else {
		const char *text = take(p);

		if (!parse_number(text, 64, &number) || (shift ? number > 63 : number == 0))
			mr_table_refuse(p->t, "'%s' takes a number from %s, not '%.40s'", word,
				shift ? "0 to 63" : "1 to 64", shown(text));
		else if (shift)
			f->shift = (uint8_t)number;
		else
			f->bits = (uint8_t)number;
	}
	return true;
}

static void refuse_tick(struct parse *p, const char *word)
{
	mr_table_refuse(p->t,
		"'time' needs its tick behind the field, a whole part of a second as in 8ns, 1us "
		"or 1s%s%.40s%s",
		*word != '\0' ? ", not '" : "", word, *word != '\0' ? "'" : "");
	p->ticked = true;
}

/* Where a tick may be, what resembles no word is taken for one. */
static void refuse_word(struct parse *p, const char *word)
{
	static const char *const others[] = {"be", "le", "shift", "bits"};
	struct mr_nearest n;
	const char *known;

	mr_nearest_init(&n, word);
	for (size_t i = 0; i < MR_ARRAY_LEN(keys); i++)
		mr_nearest_offer(&n, keys[i].name);
	for (size_t i = 0; i < MR_ARRAY_LEN(others); i++)
		mr_nearest_offer(&n, others[i]);
	known = mr_nearest_get(&n);
	if (known != NULL)
		mr_table_refuse(p->t, "'%.40s' is no word of a custom row; did you mean '%s'?",
			word, known);
	else if (p->last == &p->row->time && !p->ticked)
		refuse_tick(p, word);
	else
		mr_table_refuse(p->t,
			"'%.40s' is none of id, seq, modulus, units, payload, time, valid, be, le, "
			"shift, bits",
			word);
}

static void parse_word(struct parse *p, const char *word)
{
	if (parse_of_field(p, word))
		return;
	for (uint32_t i = 0; i < MR_ARRAY_LEN(keys); i++) {
		if (strcmp(word, keys[i].name) != 0)
			continue;
		if (!keys[i].repeats && (p->given & 1u << i) != 0)
			mr_table_refuse(p->t, "'%s' is there twice", word);
		p->given |= 1u << i;
		keys[i].parse(p);
		return;
	}
	if (p->last == &p->row->time && !p->ticked) {
		p->row->tick_ps = parse_tick(word);
		p->row->ticks = p->row->tick_ps != 0 ? SECOND_PS / p->row->tick_ps : 0;
		p->ticked = p->row->ticks != 0;
		if (p->ticked)
			return;
	}
	refuse_word(p, word);
}

static void check_bits(struct parse *p, const char *key, struct mr_format_field *f)
{
	uint32_t most = 8u * f->bytes;

	if (f->bytes == 0)
		return;
	if (f->bits == 0)
		f->bits = (uint8_t)(most - f->shift);
	if (f->bits == 0 || f->shift + f->bits > most)
		mr_table_refuse(p->t, "'%s' has %u bits, so shift and bits are %u at most together",
			key, most, most);
}

static void check_custom(struct parse *p)
{
	struct mr_format_row *row = p->row;
	uint64_t holds;

	for (uint32_t i = 0; i < p->ids; i++)
		check_bits(p, "id", &row->id[i]);
	check_bits(p, "seq", &row->seq);
	check_bits(p, "units", &row->count);
	check_bits(p, "time", &row->time);
	if (row->seq.bytes == 0)
		mr_table_refuse(p->t, "a custom row needs 'seq OFFSET:BYTES'");
	holds = row->seq.bits < 64 ? 1ull << row->seq.bits : 0;
	row->modulus = p->modulus != 0 ? p->modulus : holds;
	if (row->seq.bytes != 0 && holds != 0 && row->modulus > holds)
		mr_table_refuse(p->t, "modulus %s is above what %u bits of 'seq' hold",
			p->modulus_text, row->seq.bits);
	if (row->modulus > 1ull << 62)
		mr_table_refuse(p->t,
			"a number below 2^62, or one of 64 bits without 'modulus', is what is kept "
			"track of");
	if (row->units == MR_FORMAT_UNITS_BYTES && row->from >= MR_FORMAT_ETHER)
		mr_table_refuse(p->t,
			"'units bytes' would count what pads a short frame; take 'units field'");
	if (row->time.bytes != 0 && !p->ticked)
		refuse_tick(p, "");
}

static void parse_custom(struct mr_table_text *t, struct mr_format_row *row)
{
	struct parse p = {.t = t, .row = row, .at = 3};

	row->units_number = 1;
	while (p.at < t->words)
		parse_word(&p, t->word[p.at++]);
	check_custom(&p);
}

static bool parse_format(struct mr_table_text *t, struct mr_format_row *row)
{
	struct mr_nearest n;

	mr_nearest_init(&n, t->word[0]);
	for (row->format = 0; row->format < MR_FORMATS; row->format++) {
		if (strcmp(t->word[0], names[row->format]) == 0)
			return true;
		mr_nearest_offer(&n, names[row->format]);
	}
	if (mr_nearest_get(&n) != NULL)
		mr_table_refuse(t, "there is no format '%.40s'; did you mean '%s'?", t->word[0],
			mr_nearest_get(&n));
	else
		mr_table_refuse(t,
			"there is no format '%.40s'; a row begins with vrt, spead, vdif, vtp, "
			"sflow, flow, netflow5, netflow9, ipfix, int2, ecpri, rtp or custom",
			t->word[0]);
	return false;
}

/* False: there is none, so that what follows is not where it should be. */
static bool parse_carrier(struct mr_table_text *t, struct mr_format_row *row)
{
	struct mr_range range = {0, 0};

	if (t->words < 3 || (strcmp(t->word[1], "udp") != 0 && strcmp(t->word[1], "ether") != 0)) {
		mr_table_refuse(
			t, "behind '%.40s' there has to be 'udp PORT' or 'ether TYPE'", t->word[0]);
		return false;
	}
	if (strcmp(t->word[1], "udp") == 0) {
		if (mr_param_range_parse(t->word[2], 1, UINT16_MAX, &range) < 0 ||
			mr_range_is_any(&range))
			mr_table_refuse(t,
				"'udp' takes a port from 1 to 65535, or a range of them with the "
				"lower one first, not '%.40s'",
				t->word[2]);
		row->from = range.from;
		row->to = range.to;
		return true;
	}
	/* Below 0x600 it is a length. */
	if (carriers[row->format] != ANY)
		mr_table_refuse(t, "'%s' comes in UDP alone: '%s udp PORT'", names[row->format],
			names[row->format]);
	else if (!parse_number(t->word[2], UINT16_MAX, &range.from) || range.from < 0x600 ||
		range.from == MR_ETHER_IPV4 || range.from == MR_ETHER_IPV6 ||
		range.from == MR_ETHER_VLAN || range.from == MR_ETHER_SERVICE)
		mr_table_refuse(t,
			"'ether' takes an EtherType from 0x600 to 0xffff that is not of IP or a "
			"tag, not '%.40s'",
			t->word[2]);
	row->from = row->to = MR_FORMAT_ETHER | range.from;
	return true;
}

static bool parse_row(struct mr_table_text *t, struct mr_format_row *row)
{
	uint32_t errors = t->errors->count;

	memset(row, 0, sizeof(*row));
	if (!parse_format(t, row) || !parse_carrier(t, row))
		return false;
	if (row->format == MR_FORMAT_custom)
		parse_custom(t, row);
	else if (t->words > 3)
		mr_table_refuse(t, "'%s' knows its fields; '%.40s' is for a custom row",
			names[row->format], t->word[3]);
	return t->errors->count == errors;
}

static void parse(
	struct mr_table_text *t, uint32_t rows_max, struct entry *entries, uint32_t *ret_count)
{
	char again[sizeof(usual)];
	bool more = mr_table_next(t);

	if (!more) {
		memcpy(again, usual, sizeof(usual));
		t->at = again;
		more = mr_table_next(t);
	}
	for (; more; more = mr_table_next(t)) {
		if (*ret_count == rows_max) {
			mr_table_refuse(t, "more than %u rows; raise formats_max, at most to %u",
				rows_max, MR_FORMAT_ROWS_MAX);
			return;
		}
		entries[*ret_count].line = t->line;
		*ret_count += parse_row(t, &entries[*ret_count].row);
	}
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->row.from != y->row.from)
		return x->row.from < y->row.from ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

/* By `from`: what overlaps another one begins within the one before that reaches farthest. */
static void refuse_overlaps(struct mr_table_text *t, const struct entry *entries, uint32_t count)
{
	const struct entry *far = entries;

	for (uint32_t i = 1; i < count; i++) {
		const struct entry *e = &entries[i];

		if (e->row.from <= far->row.to) {
			t->line = e->line > far->line ? e->line : far->line;
			mr_table_refuse(t, "%s is in line %u already",
				e->row.from < MR_FORMAT_ETHER ? "one of its UDP ports"
							      : "its EtherType",
				e->line > far->line ? far->line : e->line);
		}
		if (e->row.to > far->row.to)
			far = e;
	}
}

size_t mr_format_bytes(uint32_t rows_max)
{
	return sizeof(struct mr_format_table) +
		rows_max * (sizeof(struct mr_format_row) + sizeof(uint32_t));
}

int mr_format_build(struct mr_table_text *text, uint32_t rows_max, void *table, size_t *ret_bytes)
{
	struct mr_format_table *t = table;
	struct mr_format_row *rows = (struct mr_format_row *)(t + 1);
	struct entry *entries = calloc(rows_max, sizeof(*entries));
	uint32_t count = 0, *from;

	if (entries == NULL)
		return -ENOMEM;
	parse(text, rows_max, entries, &count);
	qsort(entries, count, sizeof(*entries), compare_entries);
	refuse_overlaps(text, entries, count);
	*t = (struct mr_format_table){.rows = count};
	from = (uint32_t *)(rows + count);
	for (uint32_t i = 0; i < count; i++) {
		rows[i] = entries[i].row;
		from[i] = entries[i].row.from;
	}
	*ret_bytes = mr_format_bytes(count);
	free(entries);
	return 0;
}
