/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_gen_config.h"

#include "mr_schema.h"

#include <stdlib.h>

int mr_gen_config_parse(const char *file, const char *text, size_t bytes,
	struct mr_gen_config *ret_cfg, struct mr_problems *problems)
{
	int rc = mr_schema_read(&mr_schema_gen, file, text, bytes, ret_cfg, problems);

	if (rc != 0)
		mr_gen_config_free(ret_cfg);
	return rc;
}

int mr_gen_config_load(
	const char *file, struct mr_gen_config *ret_cfg, struct mr_problems *problems)
{
	return mr_gen_config_parse(file, NULL, 0, ret_cfg, problems);
}

void mr_gen_config_free(struct mr_gen_config *cfg)
{
	free(cfg->send.port);
	free(cfg->receive.port);
	free(cfg->frames.src_mac);
	free(cfg->frames.dst_mac);
	free(cfg->frames.src_ip);
	free(cfg->frames.dst_ip);
	mr_config_free(&cfg->base);
	*cfg = (struct mr_gen_config){0};
}

static const char *name_of(enum mr_schema_type type, uint32_t value)
{
	uint32_t count;
	const cyaml_strval_t *words = mr_schema_words(type, &count);

	for (uint32_t i = 0; i < count; i++)
		if (words[i].val == value)
			return words[i].str;
	return "unknown";
}

const char *mr_gen_sizes_name(enum mr_gen_sizes sizes)
{
	return name_of(MR_SCHEMA_SIZES, sizes);
}

const char *mr_gen_search_name(enum mr_gen_search search)
{
	return name_of(MR_SCHEMA_SEARCH, search);
}
