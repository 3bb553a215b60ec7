/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_param - the parameters of a stage: one table is parser, bounds, defaults and help.
 *
 *     params: {dst: 10.0.0.0/8, port: up}      as written in the configuration
 *                 │ mr_stage_param_set, on the control path
 *                 ▼
 *     struct mr_match_params                   in MR_PARAM_BYTES, as the stage reads it
 *
 * A stage declares a struct of the stored types below, at most MR_PARAM_BYTES, and one
 * struct mr_param_desc per member. From that table come the check of configurations,
 * `millrace stages` and its JSON. All numbers are stored in the order of the machine.
 *
 * Lists. A row with list_max above 0 takes up to that many values, written as a YAML list
 * or with commas; they lie in an array at offset and their number, a uint32_t, at
 * count_offset. The empty text is the empty list.
 *
 * The upper half is read by both compilers, the lower by the host.
 */
#ifndef MR_PARAM_H
#define MR_PARAM_H

#include "mr_ring_abi.h"
#include "mr_sync.h"

/* type                written as                               stored as */
enum mr_param_type {
	MR_PARAM_U32,    /* decimal                               uint32_t, min..max */
	MR_PARAM_U64,    /* decimal                               uint64_t, min..max */
	MR_PARAM_SIZE,   /* decimal with KiB, MiB, GiB, or bytes  uint64_t, min..max bytes */
	MR_PARAM_BOOL,   /* true or false                         uint32_t, 1 or 0 */
	MR_PARAM_WORD,   /* one of `words`                        uint32_t, its index */
	MR_PARAM_REASON, /* a name of mr_reasons.def              uint32_t, enum mr_reason */
	MR_PARAM_PORT,   /* name of a port in the lane's tx list, uint32_t, index into the tx
			    or a number counted from 0 in it      list */
	MR_PARAM_RANGE,  /* N, N-M, 0x800 or any                  struct mr_range, min..max */
	MR_PARAM_MAC,    /* 02:00:5e:10:00:01, no group address   struct mr_mac
			    unless max is 1 */
	MR_PARAM_IP,     /* 192.0.2.1, 2001:db8::1, or empty      struct mr_ip */
	MR_PARAM_PREFIX, /* 10.0.0.0/8, an address, or any        struct mr_prefix */
	MR_PARAM_FILE,   /* path of a file, or empty              char [MR_PARAM_FILE_MAX] */
	MR_PARAM_TYPES,
};

#define MR_PARAM_FILE_MAX 256u /* bytes of a path, with the 0 behind it */

/* Both ends belong to it; any is from 0 to UINT32_MAX. */
struct mr_range {
	uint32_t from, to;
};

struct mr_mac {
	uint8_t byte[6];
	uint8_t spare[2];
};

/* An address as numbers: IPv4 in word[0], IPv6 with its first 32 bits there. */
struct mr_ip {
	uint32_t family; /* 4, 6, or 0: none */
	uint32_t word[4];
};

/* What lies behind `bits` in the address is 0. */
struct mr_prefix {
	struct mr_ip ip; /* family 0: any address, or none */
	uint32_t bits;
};

MR_HD int mr_range_has(const struct mr_range *r, uint32_t x)
{
	return x >= r->from && x <= r->to;
}

MR_HD int mr_range_is_any(const struct mr_range *r)
{
	return r->from == 0 && r->to == UINT32_MAX;
}

MR_HD int mr_ip_equal(const struct mr_ip *a, const struct mr_ip *b)
{
	return a->family == b->family && a->word[0] == b->word[0] && a->word[1] == b->word[1] &&
		a->word[2] == b->word[2] && a->word[3] == b->word[3];
}

/* The first n bits of a word. */
MR_HD uint32_t mr_ip_mask(uint32_t n)
{
	return n == 0 ? 0 : n >= 32 ? UINT32_MAX : ~(UINT32_MAX >> n);
}

/* mr_prefix_has tells whether an address lies in the prefix; family 0 has them all. */
MR_HD int mr_prefix_has(const struct mr_prefix *p, const struct mr_ip *ip)
{
	uint32_t differ = 0;

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t n = p->bits > 32 * i ? p->bits - 32 * i : 0;

		differ |= (p->ip.word[i] ^ ip->word[i]) & mr_ip_mask(n);
	}
	return p->ip.family == 0 || (p->ip.family == ip->family && differ == 0);
}

#if !defined(__CUDACC__)
#include "mr_err.h"

#include <stdbool.h>
#include <stddef.h>

struct mr_param_desc {
	const char *name;
	enum mr_param_type type;
	uint32_t offset;   /* in the stage's MR_PARAM_BYTES */
	uint64_t min, max; /* U32, U64, SIZE, RANGE */
	const char *def;   /* default as written; accepted by the type */
	const char *unit;  /* "" where it has none */
	const char *help;
	const char *const *words; /* WORD: its words and NULL behind them */
	uint32_t list_max;        /* 0: one value */
	uint32_t count_offset;
};

/* What a value may name: the ports of the lane's tx list, in its order. */
struct mr_param_env {
	const char *const *tx;
	uint32_t tx_count;
};

/* What a type is called in `millrace stages`: number, word, prefix, ... */
const char *mr_param_type_name(enum mr_param_type type);

/* Bytes of one value of that type. */
uint32_t mr_param_bytes(enum mr_param_type type);

/*
 * mr_param_parse checks text as one value of the row, or as its list, and stores it. who is
 * the name of the stage, for err. env NULL: port names are unknown, and a number is only held
 * to MR_TX_MAX. -EINVAL: not of its type, -ERANGE: out of bounds; then nothing is stored.
 */
MR_MUST_USE int mr_param_parse(const struct mr_param_desc *p, const char *who, const char *text,
	const struct mr_param_env *env, uint8_t params[MR_PARAM_BYTES], struct mr_err *err);

/* mr_param_print writes what is stored as it could be given; text is cut to bytes. */
void mr_param_print(const struct mr_param_desc *p, const uint8_t params[MR_PARAM_BYTES],
	const struct mr_param_env *env, char *text, size_t bytes);

/* mr_param_ip_parse reads an address of either family; -EINVAL. */
MR_MUST_USE int mr_param_ip_parse(const char *text, struct mr_ip *ret_ip);

/* mr_param_prefix_parse reads ADDRESS/BITS or an address; -EINVAL, also for bits set behind. */
MR_MUST_USE int mr_param_prefix_parse(const char *text, struct mr_prefix *ret_prefix);

/* mr_param_mac_parse reads six bytes in hexadecimal with colons; -EINVAL. */
MR_MUST_USE int mr_param_mac_parse(const char *text, struct mr_mac *ret_mac);

/* mr_param_range_parse reads N, N-M (0x800 too) or any, within min..max; -EINVAL, -ERANGE. */
MR_MUST_USE int mr_param_range_parse(
	const char *text, uint64_t min, uint64_t max, struct mr_range *ret_range);

/* mr_param_number_parse reads a whole decimal token; -EINVAL: not one, -ERANGE: above 64 bits. */
MR_MUST_USE int mr_param_number_parse(const char *text, uint64_t *ret_value);

const char *mr_reason_name(enum mr_reason reason);
#endif

#endif
