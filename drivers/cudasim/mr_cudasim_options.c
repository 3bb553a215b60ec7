/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_cudasim_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SIM_OPTION_MAX 128

#if defined(__SANITIZE_THREAD__)
#define SIM_ALIAS false
#else
#define SIM_ALIAS true
#endif

struct sim_word {
	const char *word;
	int value;
};

static const struct sim_word ordering_words[] = {
	{"none", MR_CU_WRITES_ORDERING_NONE},
	{"owner", MR_CU_WRITES_ORDERING_OWNER},
	{"all", MR_CU_WRITES_ORDERING_ALL_DEVICES},
	{NULL, 0},
};

static const struct sim_word flush_words[] = {
	{"none", 0},
	{"host", MR_CU_FLUSH_OPTION_HOST},
	{"memops", MR_CU_FLUSH_OPTION_MEMOPS},
	{"both", MR_CU_FLUSH_OPTION_HOST | MR_CU_FLUSH_OPTION_MEMOPS},
	{NULL, 0},
};

static const struct sim_word fault_words[] = {
	{"noflush", SIM_FAULT_NOFLUSH},
	{"copy", SIM_FAULT_COPY},
	{"copystall", SIM_FAULT_COPYSTALL},
	{"hiddencopy", SIM_FAULT_HIDDENCOPY},
	{"noread", SIM_FAULT_NOREAD},
	{"short", SIM_FAULT_SHORT},
	{"revoke", SIM_FAULT_REVOKE},
	{"attach", SIM_FAULT_ATTACH},
	{"alloc", SIM_FAULT_ALLOC},
	{"hostalloc", SIM_FAULT_HOSTALLOC},
	{"register", SIM_FAULT_REGISTER},
	{"map", SIM_FAULT_MAP},
	{"module", SIM_FAULT_MODULE},
	{"launch", SIM_FAULT_LAUNCH},
	{"late", SIM_FAULT_LATE},
	{"stall", SIM_FAULT_STALL},
	{"idle", SIM_FAULT_IDLE},
	{"die", SIM_FAULT_DIE},
	{"lost", SIM_FAULT_LOST},
	{NULL, 0},
};

static int parse_word(const struct sim_word *words, const char *key, const char *value,
	int *ret_value, struct mr_err *err)
{
	for (const struct sim_word *w = words; w->word != NULL; w++) {
		if (strcmp(w->word, value) == 0) {
			*ret_value = w->value;
			return 0;
		}
	}
	return mr_err_set(
		err, -EINVAL, "software device: %s=%s is not a value of %s", key, value, key);
}

static int parse_number(const char *text, uint64_t max, const char **ret_end, uint64_t *ret_number)
{
	char *end;
	unsigned long long v;

	/* strtoull takes signs and blanks, which are no numbers here. */
	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno != 0 || v > max)
		return -ERANGE;
	*ret_end = end;
	*ret_number = v;
	return 0;
}

static int parse_whole(
	const char *key, const char *value, uint64_t max, uint64_t *ret_number, struct mr_err *err)
{
	const char *end;

	if (parse_number(value, max, &end, ret_number) != 0 || *end != '\0')
		return mr_err_set(err, -EINVAL,
			"software device: %s=%s is not a whole number up to %llu", key, value,
			(unsigned long long)max);
	return 0;
}

static int parse_switch(const char *key, const char *value, bool *ret_on, struct mr_err *err)
{
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return mr_err_set(
			err, -EINVAL, "software device: %s=%s is neither 0 nor 1", key, value);
	*ret_on = value[0] == '1';
	return 0;
}

static int parse_size(const char *key, const char *value, size_t *ret_bytes, struct mr_err *err)
{
	static const struct {
		const char *unit;
		unsigned int shift;
	} units[] = {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
	const uint64_t max = (uint64_t)1 << 40;
	const char *end;
	uint64_t v;

	if (parse_number(value, max, &end, &v) == 0) {
		for (size_t i = 0; i < MR_ARRAY_LEN(units); i++) {
			if (strcmp(end, units[i].unit) != 0 || v > max >> units[i].shift)
				continue;
			*ret_bytes = (size_t)(v << units[i].shift);
			if (*ret_bytes >= SIM_PAGE && *ret_bytes % SIM_PAGE == 0)
				return 0;
		}
	}
	return mr_err_set(err, -EINVAL,
		"software device: %s=%s is not a size in 64KiB to 1024GiB and a multiple of 64KiB; "
		"write for example %s=256MiB",
		key, value, key);
}

/* splitmix64 (Steele, Lea, Flood, OOPSLA 2014): any seed gives a good stream. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static bool is_counted(enum sim_fault_kind kind)
{
	return kind == SIM_FAULT_ATTACH || (kind >= SIM_FAULT_COPY && kind <= SIM_FAULT_LAUNCH);
}

static bool is_timed(enum sim_fault_kind kind)
{
	return kind == SIM_FAULT_REVOKE || kind >= SIM_FAULT_STALL;
}

/* KIND, KIND@K, KIND@MS or KIND@BLOCK:MS; "any" waits until the seed is known. */
static int parse_fault(const char *value, struct sim_fault *ret_fault, struct mr_err *err)
{
	const size_t length = strcspn(value, "@");
	const char *end = value + length;
	struct sim_fault f = {0};
	uint64_t v = 0;

	if (strcmp(value, "any") == 0) {
		ret_fault->kind = SIM_FAULT_KINDS;
		return 0;
	}
	for (const struct sim_word *w = fault_words; w->word != NULL; w++)
		if (strlen(w->word) == length && strncmp(w->word, value, length) == 0)
			f.kind = (enum sim_fault_kind)w->value;
	if (f.kind == SIM_FAULT_UNUSED)
		goto bad;
	if ((is_counted(f.kind) || is_timed(f.kind)) &&
		(*end != '@' || parse_number(end + 1, UINT32_MAX, &end, &v) != 0))
		goto bad;
	if (is_timed(f.kind) && f.kind != SIM_FAULT_LOST && f.kind != SIM_FAULT_REVOKE) {
		f.block = (uint32_t)v;
		if (*end != ':' || parse_number(end + 1, UINT32_MAX, &end, &v) != 0)
			goto bad;
	}
	f.at = (uint32_t)v;
	if (*end != '\0' || (is_counted(f.kind) && f.at == 0))
		goto bad;
	*ret_fault = f;
	return 0;
bad:
	return mr_err_set(err, -EINVAL,
		"software device: fault=%s is none of "
		"{copy,copystall,alloc,hostalloc,register,map,module,launch,attach}@K "
		"with K from 1, {stall,idle,die}@BLOCK:MS, {lost,revoke}@MS, late, noflush, "
		"hiddencopy, noread, short, any",
		value);
}

static void draw_faults(struct sim_options *o)
{
	uint64_t state = o->seed;

	for (uint32_t i = 0; i < o->faults_count; i++) {
		struct sim_fault *f = &o->fault[i];

		if (f->kind != SIM_FAULT_KINDS)
			continue;
		f->kind = (enum sim_fault_kind)(
			SIM_FAULT_ALLOC + draw(&state) % (SIM_FAULT_KINDS - SIM_FAULT_ALLOC));
		f->block = 0;
		if (is_timed(f->kind))
			f->at = (uint32_t)(draw(&state) % 500);
		else if (is_counted(f->kind))
			f->at = (uint32_t)(1 + draw(&state) % 4);
	}
	if (mr_sim_fault_has(o, SIM_FAULT_LATE) || mr_sim_fault_has(o, SIM_FAULT_NOREAD))
		o->writes_ordering = MR_CU_WRITES_ORDERING_NONE;
}

static int parse_option(
	struct sim_options *o, const char *key, const char *value, struct mr_err *err)
{
	uint64_t v = 0;
	int rc;

	if (strcmp(key, "mem") == 0) {
		o->mem_given = true;
		return parse_size(key, value, &o->mem_bytes, err);
	}
	if (strcmp(key, "bar") == 0 && strchr(value, ':') != NULL)
		return mr_sim_bar_parse(value, o->bar_address, err);
	if (strcmp(key, "bar") == 0)
		return parse_size(key, value, &o->bar_bytes, err);
	if (strcmp(key, "sms") == 0) {
		rc = parse_whole(key, value, 1024, &v, err);
		if (rc == 0 && v == 0)
			return mr_err_set(
				err, -EINVAL, "software device: sms=0 leaves no multiprocessor");
		o->multiprocessors = (int)v;
		return rc;
	}
	if (strcmp(key, "ordering") == 0)
		return parse_word(ordering_words, key, value, &o->writes_ordering, err);
	if (strcmp(key, "flush") == 0)
		return parse_word(flush_words, key, value, &o->flush_options, err);
	if (strcmp(key, "gdr") == 0)
		return parse_switch(key, value, &o->gdr, err);
	if (strcmp(key, "dmabuf") == 0)
		return parse_switch(key, value, &o->dmabuf, err);
	if (strcmp(key, "map") == 0)
		return parse_switch(key, value, &o->map, err);
	if (strcmp(key, "alias") == 0)
		return parse_switch(key, value, &o->alias, err);
	if (strcmp(key, "seed") == 0)
		return parse_whole(key, value, UINT64_MAX, &o->seed, err);
	if (strcmp(key, "fault") == 0) {
		if (o->faults_count == SIM_FAULTS)
			return mr_err_set(
				err, -EINVAL, "software device: more than %d faults", SIM_FAULTS);
		rc = parse_fault(value, &o->fault[o->faults_count], err);
		o->faults_count += rc == 0;
		return rc;
	}
	return mr_err_set(err, -EINVAL,
		"software device: option '%s' is not known: use mem, bar, sms, ordering, flush, "
		"gdr, dmabuf, map, alias, seed or fault",
		key);
}

int mr_sim_options_parse(const char *text, struct sim_options *ret_options, struct mr_err *err)
{
	struct sim_options o = {
		.mem_bytes = (size_t)1 << 30,
		.bar_bytes = (size_t)256 << 20,
		.multiprocessors = 4,
		.writes_ordering = MR_CU_WRITES_ORDERING_ALL_DEVICES,
		.flush_options = MR_CU_FLUSH_OPTION_HOST | MR_CU_FLUSH_OPTION_MEMOPS,
		.gdr = true,
		.dmabuf = true,
		.map = true,
		.alias = SIM_ALIAS,
		.seed = 1,
	};

	while (text != NULL && *text != '\0') {
		size_t length = strcspn(text, ",");
		char option[SIM_OPTION_MAX];
		char *value;
		int rc;

		if (length >= sizeof(option))
			return mr_err_set(err, -EINVAL,
				"software device: option '%.32s...' is too long", text);
		memcpy(option, text, length);
		option[length] = '\0';
		text += length + (text[length] == ',');
		value = strchr(option, '=');
		if (value == NULL)
			return mr_err_set(err, -EINVAL,
				"software device: '%s' is not of the form option=value", option);
		*value++ = '\0';
		rc = parse_option(&o, option, value, err);
		if (rc != 0)
			return rc;
	}
	draw_faults(&o);
	if (o.bar_address[0] != '\0' &&
		(o.writes_ordering == MR_CU_WRITES_ORDERING_NONE ||
			mr_sim_fault_has(&o, SIM_FAULT_HIDDENCOPY) ||
			mr_sim_fault_has(&o, SIM_FAULT_SHORT)))
		return mr_err_set(err, -EINVAL,
			"software device: with bar=%s a NIC writes where kernels read, so "
			"ordering=none and the faults late, noread, hiddencopy and short cannot be "
			"played; leave them out",
			o.bar_address);
	*ret_options = o;
	return 0;
}
