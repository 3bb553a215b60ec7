/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any table of formats and any packet of it. What lies behind the datagram in its frame is
 * poisoned, so AddressSanitizer sees whoever looks there. What is found is held to what
 * mr_format.h and mr_ipfix.h say, and a message of IPFIX is counted twice, since the second
 * time its templates are known.
 *
 * Input: mode and row (a byte each), the text of the table and a 0, then the packet: a whole
 * frame, or, with bit 0 of the mode, what the frame of that row's port or EtherType bears; the
 * upper bits are bytes of padding.
 */
#include "mr_format.h"
#include "mr_ipfix.h"

#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 4u
#define TEMPLATES 3u
#define LENGTH_MAX 4096u
#define FRONT 42u /* Ethernet, IPv4, UDP */

struct packet {
	uint8_t *frame;
	struct mr_view v;
	struct mr_headers h;
};

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* Of the text, in memory that ends with it; NULL: it is refused. */
static struct mr_format_table *build(const uint8_t *text, size_t bytes)
{
	struct mr_table_errors errors = {0};
	char *copy = malloc(bytes + 1);
	struct mr_table_text t = {.at = copy, .errors = &errors};
	struct mr_format_table *table = malloc(mr_format_bytes(ROWS));
	size_t used = 0;

	memcpy(copy, text, bytes);
	copy[bytes] = '\0';
	check(mr_format_build(&t, ROWS, table, &used) == 0);
	free(copy);
	if (errors.count != 0) {
		check(errors.e[0].message[0] != '\0');
		free(table);
		return NULL;
	}
	check(table->rows > 0 && used == mr_format_bytes(table->rows));
	return realloc(table, used);
}

static void check_rows(const struct mr_format_table *t)
{
	const struct mr_format_row *row = mr_format_rows(t);

	for (uint32_t i = 0; i < t->rows; i++) {
		check(row[i].from <= row[i].to && row[i].format < MR_FORMATS);
		check(i == 0 || row[i].from > row[i - 1].to);
	}
}

static uint32_t seal(uint8_t *frame, uint32_t key, uint32_t n)
{
	memset(frame, 0, FRONT);
	if (key >= MR_FORMAT_ETHER) {
		frame[12] = (uint8_t)(key >> 8);
		frame[13] = (uint8_t)key;
		return MR_FRAME_MIN;
	}
	frame[12] = 8;
	frame[14] = 0x45;
	frame[16] = (uint8_t)((28 + n) >> 8);
	frame[17] = (uint8_t)(28 + n);
	frame[23] = MR_IP_UDP;
	frame[36] = (uint8_t)(key >> 8);
	frame[37] = (uint8_t)key;
	frame[38] = (uint8_t)((8 + n) >> 8);
	frame[39] = (uint8_t)(8 + n);
	return FRONT;
}

static void make_packet(struct packet *p, const struct mr_format_row *row, uint32_t mode,
	const uint8_t *data, uint32_t n)
{
	uint8_t front[FRONT];
	uint32_t at = (mode & 1) != 0 ? seal(front, row->from, n) : 0;
	uint32_t pad = (mode & 1) != 0 ? mode >> 1 : 0;

	p->v = (struct mr_view){.length = at + n + pad, .room = at + n + pad};
	p->frame = malloc(p->v.length);
	p->v.frame = p->frame;
	memcpy(p->frame, front, at);
	memcpy(p->frame + at, data, n);
	memset(p->frame + at + n, 0xee, pad);
	mr_walk(&p->v, 0, &p->h);
}

static void check_seen(
	const struct mr_format_row *row, const struct packet *p, const struct mr_seen *s)
{
	check(s->payload <= s->end && s->end <= p->h.end);
	check(s->format == row->format ||
		(row->format == MR_FORMAT_flow && s->format < MR_FORMAT_flow));
	check(s->state <= MR_SEEN_OTHER && s->track <= MR_TRACK_SECOND && s->id_known <= 1);
	if (s->state == MR_SEEN_MALFORMED)
		return;
	check(s->modulus == 0 || s->seq < s->modulus);
	check((s->flags & MR_SEEN_TIME) == 0 || s->time_ps < 1000000000000);
	check(s->track != MR_TRACK_HEAP || s->units == s->end - s->payload);
	check(s->track != MR_TRACK_HEAP || s->heap_bytes == 0 ||
		s->heap_at + s->units <= s->heap_bytes);
	check((p->h.has & MR_HAS_FRAGMENT) == 0);
}

static void count(const struct packet *p, const struct mr_seen *s)
{
	struct mr_ipfix_template *templates = calloc(TEMPLATES, sizeof(*templates));

	for (uint32_t i = 0; i < 2; i++) {
		uint64_t records = 0;
		uint32_t replaced = 0;

		(void)mr_ipfix_count(templates, TEMPLATES, 1, (uint32_t)s->id[0], &p->v, s->payload,
			s->end, &records, &replaced);
		check(records <= s->end - s->payload && replaced <= (s->end - s->payload) / 8);
	}
	free(templates);
}

static void look(const struct mr_format_table *t, struct packet *p)
{
	const struct mr_format_row *row = mr_format_find(t, &p->v, &p->h);
	struct mr_seen s;

	if (row == NULL)
		return;
	check(row >= mr_format_rows(t) && row < mr_format_rows(t) + t->rows);
	ASAN_POISON_MEMORY_REGION(p->frame + p->h.end, p->v.length - p->h.end);
	mr_format_read(row, &p->v, &p->h, &s);
	check_seen(row, p, &s);
	if (s.format == MR_FORMAT_ipfix && s.state == MR_SEEN_OK)
		count(p, &s);
	ASAN_UNPOISON_MEMORY_REGION(p->frame, p->v.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *text = data + 2, *behind;
	struct mr_format_table *t;
	struct packet p;

	if (size < 3 || size > LENGTH_MAX)
		return 0;
	behind = memchr(text, '\0', size - 2);
	if (behind == NULL)
		return 0;
	t = build(text, (size_t)(behind - text));
	if (t == NULL)
		return 0;
	check_rows(t);
	make_packet(&p, mr_format_rows(t) + data[1] % t->rows, data[0], behind + 1,
		(uint32_t)(data + size - behind - 1));
	look(t, &p);
	free(p.frame);
	free(t);
	return 0;
}
