/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_probe.h"

#include "mr_parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int mr_probe_files(void *ctx, const char *question, char text[MR_PROBE_TEXT_MAX])
{
	char path[MR_ROOT_PATH_MAX];

	snprintf(path, sizeof(path), "millrace/probe/%s", question);
	return mr_root_read(ctx, path, text, MR_PROBE_TEXT_MAX, NULL);
}

static int ask(const struct mr_probe *p, const char *question, char text[MR_PROBE_TEXT_MAX])
{
	if (p == NULL)
		return -ENOTSUP;
	return p->ask(p->ctx, question, text);
}

/* A line "KEY NUMBER"; anything else leaves the value unknown. */
static void take_value(const char *text, const char *key, struct mr_probe_value *ret)
{
	const char *s = mr_parse_line(text, key);
	char word[32];

	if (s == NULL)
		return;
	mr_parse_word(s, word, sizeof(word));
	ret->known = mr_parse_i64(word, &ret->v);
}

#define TAKE(key) take_value(text, #key, &ret->key);

void mr_probe_ask_gpu(const struct mr_probe *p, const char *bdf, struct mr_probe_gpu *ret)
{
	char text[MR_PROBE_TEXT_MAX], question[64];

	memset(ret, 0, sizeof(*ret));
	snprintf(question, sizeof(question), "gpu/%.32s", bdf);
	ret->error = ask(p, question, text);
	if (ret->error == 0) {
		MR_PROBE_GPU_KEYS(TAKE)
	}
}

void mr_probe_ask_nic(const struct mr_probe *p, const char *bdf, struct mr_probe_nic *ret)
{
	char text[MR_PROBE_TEXT_MAX], question[64];

	memset(ret, 0, sizeof(*ret));
	snprintf(question, sizeof(question), "nic/%.32s", bdf);
	ret->error = ask(p, question, text);
	if (ret->error == 0) {
		MR_PROBE_NIC_KEYS(TAKE)
	}
}

void mr_probe_ask_pair(
	const struct mr_probe *p, const char *gpu, const char *nic, struct mr_probe_pair *ret)
{
	char text[MR_PROBE_TEXT_MAX], question[96];

	memset(ret, 0, sizeof(*ret));
	snprintf(question, sizeof(question), "pair/%.32s+%.32s", gpu, nic);
	ret->error = ask(p, question, text);
	if (ret->error == 0) {
		MR_PROBE_PAIR_KEYS(TAKE)
	}
}

void mr_probe_ask_software(const struct mr_probe *p, struct mr_probe_software *ret)
{
	char text[MR_PROBE_TEXT_MAX];

	memset(ret, 0, sizeof(*ret));
	ret->error = ask(p, "software", text);
	if (ret->error == 0) {
		MR_PROBE_SOFTWARE_KEYS(TAKE)
	}
}

struct mr_probe_value mr_probe_prefix_lives(const struct mr_probe *p, const char *prefix)
{
	char text[MR_PROBE_TEXT_MAX], question[96];
	struct mr_probe_value live = {0};

	snprintf(question, sizeof(question), "prefix/%.64s", prefix);
	if (ask(p, question, text) == 0)
		take_value(text, "live", &live);
	return live;
}
