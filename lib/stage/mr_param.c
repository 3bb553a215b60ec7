/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_param.h"

#include "mr_nearest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_MAX 64u /* longest single value; no type needs more */

static const struct {
	const char *name;
	uint32_t bytes;
	const char *takes; /* what is said to who wrote something else */
} types[MR_PARAM_TYPES] = {
	[MR_PARAM_U32] = {"number", sizeof(uint32_t), "a decimal number"},
	[MR_PARAM_U64] = {"number", sizeof(uint64_t), "a decimal number"},
	[MR_PARAM_SIZE] = {"size", sizeof(uint64_t), "a size as in 4096 or 64KiB"},
	[MR_PARAM_BOOL] = {"bool", sizeof(uint32_t), "true or false"},
	[MR_PARAM_WORD] = {"word", sizeof(uint32_t), "one of its words"},
	[MR_PARAM_REASON] = {"reason", sizeof(uint32_t), "a drop reason"},
	[MR_PARAM_PORT] = {"port", sizeof(uint32_t), "a port of the lane's tx list"},
	[MR_PARAM_RANGE] = {"range", sizeof(struct mr_range),
		"a number, a range as in 1-9, or any"},
	[MR_PARAM_MAC] = {"mac", sizeof(struct mr_mac),
		"the address of one station as in 02:00:5e:10:00:01"},
	[MR_PARAM_IP] = {"ip", sizeof(struct mr_ip), "an IPv4 or IPv6 address"},
	[MR_PARAM_PREFIX] = {"prefix", sizeof(struct mr_prefix),
		"a prefix as in 10.0.0.0/8 or 2001:db8::/32 with no bit set behind it, or any"},
	[MR_PARAM_FILE] = {"file", MR_PARAM_FILE_MAX, "a path of at most 255 bytes"},
};

static const char *const reasons[MR_REASON_COUNT] = {
#define REASON(name, help) [MR_REASON_##name] = #name,
#include "mr_reasons.def"
#undef REASON
};

const char *mr_reason_name(enum mr_reason reason)
{
	return (uint32_t)reason < MR_REASON_COUNT ? reasons[reason] : "unknown";
}

const char *mr_param_type_name(enum mr_param_type type)
{
	return types[type].name;
}

uint32_t mr_param_bytes(enum mr_param_type type)
{
	return types[type].bytes;
}

int mr_param_number_parse(const char *text, uint64_t *ret_value)
{
	size_t digits = strspn(text, "0123456789");
	uint64_t v = 0;

	*ret_value = UINT64_MAX;
	if (digits == 0 || text[digits] != '\0' || (digits > 1 && text[0] == '0'))
		return -EINVAL;
	for (size_t i = 0; i < digits; i++) {
		uint32_t d = (uint32_t)(text[i] - '0');

		if (v > (UINT64_MAX - d) / 10)
			return -ERANGE;
		v = v * 10 + d;
	}
	*ret_value = v;
	return 0;
}

static int size_parse(const char *text, uint64_t *ret_value)
{
	size_t digits = strspn(text, "0123456789");
	char number[24];
	uint32_t shift;
	int rc;

	if (digits >= sizeof(number))
		return -ERANGE;
	memcpy(number, text, digits);
	number[digits] = '\0';
	text += digits;
	if (*text == '\0')
		shift = 0;
	else if (strcmp(text, "KiB") == 0)
		shift = 10;
	else if (strcmp(text, "MiB") == 0)
		shift = 20;
	else if (strcmp(text, "GiB") == 0)
		shift = 30;
	else
		return -EINVAL;
	rc = mr_param_number_parse(number, ret_value);
	if (rc == 0 && *ret_value > UINT64_MAX >> shift)
		return -ERANGE;
	*ret_value = rc == 0 ? *ret_value << shift : 0;
	return rc;
}

int mr_param_ip_parse(const char *text, struct mr_ip *ret_ip)
{
	uint32_t words[4];
	struct mr_ip ip = {0};

	if (inet_pton(AF_INET, text, words) == 1) {
		ip.family = 4;
		ip.word[0] = ntohl(words[0]);
	} else if (inet_pton(AF_INET6, text, words) == 1) {
		ip.family = 6;
		for (uint32_t i = 0; i < 4; i++)
			ip.word[i] = ntohl(words[i]);
	} else {
		return -EINVAL;
	}
	*ret_ip = ip;
	return 0;
}

int mr_param_prefix_parse(const char *text, struct mr_prefix *ret_prefix)
{
	const char *slash = strchr(text, '/');
	char address[TOKEN_MAX];
	struct mr_prefix p;
	uint64_t bits;

	if (strlen(text) >= sizeof(address))
		return -EINVAL;
	snprintf(address, sizeof(address), "%s", text);
	if (slash != NULL)
		address[slash - text] = '\0';
	if (mr_param_ip_parse(address, &p.ip) != 0)
		return -EINVAL;
	bits = p.ip.family == 4 ? 32 : 128;
	if (slash != NULL) {
		uint64_t most = bits;

		if (mr_param_number_parse(slash + 1, &bits) != 0 || bits > most)
			return -EINVAL;
	}
	p.bits = (uint32_t)bits;
	for (uint32_t i = 0; i < 4; i++)
		if ((p.ip.word[i] & ~mr_ip_mask(p.bits > 32 * i ? p.bits - 32 * i : 0)) != 0)
			return -EINVAL;
	*ret_prefix = p;
	return 0;
}

int mr_param_mac_parse(const char *text, struct mr_mac *ret_mac)
{
	struct mr_mac mac = {0};

	for (uint32_t i = 0; i < 6; i++, text += 3) {
		char byte[3] = {text[0], text[0] != '\0' ? text[1] : '\0', '\0'};

		if (strspn(byte, "0123456789abcdefABCDEF") != 2 || text[2] != (i < 5 ? ':' : '\0'))
			return -EINVAL;
		mac.byte[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
	*ret_mac = mac;
	return 0;
}

/* Decimal, or hexadecimal with 0x in front, up to `end`. */
static int bound_parse(const char *text, const char *end, uint64_t *ret_value)
{
	char token[TOKEN_MAX];
	size_t n = (size_t)(end - text);

	if (n >= sizeof(token))
		return -EINVAL;
	memcpy(token, text, n);
	token[n] = '\0';
	if (strncmp(token, "0x", 2) != 0)
		return mr_param_number_parse(token, ret_value);
	if (n < 3 || n > 10 || strspn(token + 2, "0123456789abcdefABCDEF") != n - 2)
		return -EINVAL;
	*ret_value = strtoull(token + 2, NULL, 16);
	return 0;
}

int mr_param_range_parse(const char *text, uint64_t min, uint64_t max, struct mr_range *ret_range)
{
	const char *dash = strchr(text, '-'), *end = text + strlen(text);
	uint64_t from, to;
	int rc;

	if (strcmp(text, "any") == 0) {
		*ret_range = (struct mr_range){0, UINT32_MAX};
		return 0;
	}
	rc = bound_parse(text, dash != NULL ? dash : end, &from);
	to = from;
	if (rc == 0 && dash != NULL)
		rc = bound_parse(dash + 1, end, &to);
	if (rc < 0)
		return rc;
	if (from > to)
		return -EINVAL;
	if (from < min || to > max)
		return -ERANGE;
	*ret_range = (struct mr_range){(uint32_t)from, (uint32_t)to};
	return 0;
}

/* The index of text among words; offers all of them to n. */
static int word_parse(
	const char *const *words, const char *text, struct mr_nearest *n, uint32_t *ret)
{
	for (uint32_t i = 0; words[i] != NULL; i++) {
		*ret = i;
		if (strcmp(words[i], text) == 0)
			return 0;
		mr_nearest_offer(n, words[i]);
	}
	return -EINVAL;
}

static int port_parse(
	const struct mr_param_env *env, const char *text, struct mr_nearest *n, uint32_t *ret)
{
	uint32_t count = env != NULL ? env->tx_count : MR_TX_MAX;
	uint64_t v;

	for (uint32_t i = 0; env != NULL && i < env->tx_count; i++) {
		if (strcmp(env->tx[i], text) == 0) {
			*ret = i;
			return 0;
		}
		mr_nearest_offer(n, env->tx[i]);
	}
	if (mr_param_number_parse(text, &v) == -EINVAL)
		return -EINVAL;
	*ret = (uint32_t)v;
	return v < count ? 0 : -ERANGE;
}

/* A value in the form that is stored; nearest has what was possible where it is one of a set. */
union value {
	uint32_t u32;
	uint64_t u64;
	struct mr_range range;
	struct mr_mac mac;
	struct mr_ip ip;
	struct mr_prefix prefix;
	char file[MR_PARAM_FILE_MAX];
};

static int value_parse(const struct mr_param_desc *p, const char *text,
	const struct mr_param_env *env, struct mr_nearest *n, union value *v)
{
	int rc = 0;

	memset(v, 0, sizeof(*v));
	switch (p->type) {
	case MR_PARAM_U32:
	case MR_PARAM_U64:
	case MR_PARAM_SIZE:
		rc = p->type == MR_PARAM_SIZE ? size_parse(text, &v->u64)
					      : mr_param_number_parse(text, &v->u64);
		if (rc == 0 && (v->u64 < p->min || v->u64 > p->max))
			rc = -ERANGE;
		if (rc == 0 && p->type == MR_PARAM_U32)
			v->u32 = (uint32_t)v->u64;
		return rc;
	case MR_PARAM_BOOL:
		v->u32 = strcmp(text, "true") == 0;
		return v->u32 == 1 || strcmp(text, "false") == 0 ? 0 : -EINVAL;
	case MR_PARAM_WORD:
		return word_parse(p->words, text, n, &v->u32);
	case MR_PARAM_REASON:
		for (uint32_t i = 0; i < MR_REASON_COUNT; i++) {
			v->u32 = i;
			if (strcmp(reasons[i], text) == 0)
				return 0;
			mr_nearest_offer(n, reasons[i]);
		}
		return -EINVAL;
	case MR_PARAM_PORT:
		return port_parse(env, text, n, &v->u32);
	case MR_PARAM_RANGE:
		return mr_param_range_parse(text, p->min, p->max, &v->range);
	case MR_PARAM_MAC:
		rc = mr_param_mac_parse(text, &v->mac);
		return rc < 0 || (v->mac.byte[0] & 1) == 0 || p->max == 1 ? rc : -EINVAL;
	case MR_PARAM_IP:
		return *text == '\0' ? 0 : mr_param_ip_parse(text, &v->ip);
	case MR_PARAM_PREFIX:
		return strcmp(text, "any") == 0 ? 0 : mr_param_prefix_parse(text, &v->prefix);
	case MR_PARAM_FILE:
		if (strlen(text) >= sizeof(v->file))
			return -EINVAL;
		memcpy(v->file, text, strlen(text));
		return 0;
	case MR_PARAM_TYPES:
		break;
	}
	return -EINVAL;
}

static int refuse(const struct mr_param_desc *p, const char *who, const char *text,
	const struct mr_param_env *env, struct mr_nearest *n, int rc, struct mr_err *err)
{
	const char *near = mr_nearest_get(n), *space = *p->unit != '\0' ? " " : "";

	if (rc == -ERANGE && p->type == MR_PARAM_PORT)
		return mr_err_set(err, rc,
			"parameter '%s' of stage '%s' is entry %.40s, but the tx list has %u",
			p->name, who, text, env != NULL ? env->tx_count : MR_TX_MAX);
	if (rc == -ERANGE)
		return mr_err_set(err, rc,
			"parameter '%s' of stage '%s' is %.40s, outside %" PRIu64 " to %" PRIu64
			"%s%s",
			p->name, who, text, p->min, p->max, space, p->unit);
	if (p->type == MR_PARAM_WORD || p->type == MR_PARAM_REASON || p->type == MR_PARAM_PORT)
		return mr_err_set(err, rc,
			"parameter '%s' of stage '%s' takes %s, not '%.40s'; %s '%s'%s", p->name,
			who, types[p->type].takes, text,
			near != NULL ? "did you mean" : "its default is",
			near != NULL ? near : p->def, near != NULL ? "?" : "");
	return mr_err_set(err, rc, "parameter '%s' of stage '%s' takes %s, not '%.40s'", p->name,
		who, types[p->type].takes, text);
}

static int parse_list(const struct mr_param_desc *p, const char *who, const char *text,
	const struct mr_param_env *env, uint8_t params[MR_PARAM_BYTES], struct mr_err *err)
{
	uint32_t bytes = types[p->type].bytes, count = 0;
	uint8_t made[MR_PARAM_BYTES] = {0};

	while (*text != '\0') {
		size_t n = strcspn(text, ",");
		char token[TOKEN_MAX];
		struct mr_nearest near;
		union value v;
		int rc;

		snprintf(token, sizeof(token), "%.*s", (int)n, text);
		if (count == p->list_max)
			return mr_err_set(err, -ERANGE,
				"parameter '%s' of stage '%s' takes at most %u values", p->name,
				who, p->list_max);
		mr_nearest_init(&near, token);
		rc = n < sizeof(token) && n > 0 ? value_parse(p, token, env, &near, &v) : -EINVAL;
		if (rc < 0)
			return refuse(p, who, token, env, &near, rc, err);
		memcpy(made + count++ * bytes, &v, bytes);
		text += n;
		text += *text == ',' ? 1 + strspn(text + 1, " ") : 0;
	}
	memcpy(params + p->offset, made, (size_t)p->list_max * bytes);
	memcpy(params + p->count_offset, &count, sizeof(count));
	return 0;
}

int mr_param_parse(const struct mr_param_desc *p, const char *who, const char *text,
	const struct mr_param_env *env, uint8_t params[MR_PARAM_BYTES], struct mr_err *err)
{
	struct mr_nearest near;
	union value v;
	int rc;

	if (p->list_max > 0)
		return parse_list(p, who, text, env, params, err);
	mr_nearest_init(&near, text);
	rc = value_parse(p, text, env, &near, &v);
	if (rc < 0)
		return refuse(p, who, text, env, &near, rc, err);
	memcpy(params + p->offset, &v, types[p->type].bytes);
	return 0;
}

static int ip_print(const struct mr_ip *ip, char *text, size_t bytes)
{
	uint32_t words[4];
	char name[INET6_ADDRSTRLEN] = "";

	for (uint32_t i = 0; i < 4; i++)
		words[i] = htonl(ip->word[i]);
	if (ip->family != 0)
		inet_ntop(ip->family == 4 ? AF_INET : AF_INET6, words, name, sizeof(name));
	return snprintf(text, bytes, "%s", name);
}

static int range_print(const struct mr_range *r, char *text, size_t bytes)
{
	if (mr_range_is_any(r))
		return snprintf(text, bytes, "any");
	if (r->from == r->to)
		return snprintf(text, bytes, "%u", r->from);
	return snprintf(text, bytes, "%u-%u", r->from, r->to);
}

static int value_print(const struct mr_param_desc *p, const union value *v,
	const struct mr_param_env *env, char *text, size_t bytes)
{
	const uint8_t *m = v->mac.byte;
	int n;

	switch (p->type) {
	case MR_PARAM_U32:
		return snprintf(text, bytes, "%u", v->u32);
	case MR_PARAM_U64:
	case MR_PARAM_SIZE:
		return snprintf(text, bytes, "%" PRIu64, v->u64);
	case MR_PARAM_BOOL:
		return snprintf(text, bytes, "%s", v->u32 != 0 ? "true" : "false");
	case MR_PARAM_WORD:
		return snprintf(text, bytes, "%s", p->words[v->u32]);
	case MR_PARAM_REASON:
		return snprintf(text, bytes, "%s", mr_reason_name((enum mr_reason)v->u32));
	case MR_PARAM_PORT:
		if (env != NULL && v->u32 < env->tx_count)
			return snprintf(text, bytes, "%s", env->tx[v->u32]);
		return snprintf(text, bytes, "%u", v->u32);
	case MR_PARAM_RANGE:
		return range_print(&v->range, text, bytes);
	case MR_PARAM_MAC:
		return snprintf(text, bytes, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2],
			m[3], m[4], m[5]);
	case MR_PARAM_IP:
		return ip_print(&v->ip, text, bytes);
	case MR_PARAM_PREFIX:
		if (v->prefix.ip.family == 0)
			return snprintf(text, bytes, "any");
		n = ip_print(&v->prefix.ip, text, bytes);
		if (n >= 0 && (size_t)n < bytes)
			n += snprintf(text + n, bytes - (size_t)n, "/%u", v->prefix.bits);
		return n;
	case MR_PARAM_FILE:
		return snprintf(text, bytes, "%s", v->file);
	case MR_PARAM_TYPES:
		break;
	}
	return 0;
}

void mr_param_print(const struct mr_param_desc *p, const uint8_t params[MR_PARAM_BYTES],
	const struct mr_param_env *env, char *text, size_t bytes)
{
	uint32_t size = types[p->type].bytes, count = 1;
	size_t used = 0;

	if (p->list_max > 0)
		memcpy(&count, params + p->count_offset, sizeof(count));
	*text = '\0';
	for (uint32_t i = 0; i < count && used < bytes; i++) {
		union value v;
		int n = 0;

		memset(&v, 0, sizeof(v));
		memcpy(&v, params + p->offset + i * size, size);
		if (i > 0)
			n = snprintf(text + used, bytes - used, ",");
		used += n > 0 ? (size_t)n : 0;
		if (used < bytes)
			n = value_print(p, &v, env, text + used, bytes - used);
		used += n > 0 ? (size_t)n : 0;
	}
}
