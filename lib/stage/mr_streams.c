/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_streams.h"

static uint32_t rows_max(const uint8_t params[MR_PARAM_BYTES])
{
	return ((const struct mr_streams_params *)params)->formats_max;
}

static size_t table_bytes(const uint8_t params[MR_PARAM_BYTES])
{
	return mr_format_bytes(rows_max(params));
}

static int table_build(struct mr_table_text *text, const uint8_t params[MR_PARAM_BYTES],
	const struct mr_param_env *env, void *table, size_t *ret_bytes)
{
	(void)env;
	return mr_format_build(text, rows_max(params), table, ret_bytes);
}

const struct mr_table_desc mr_streams_table = {"formats", "formats_max", table_bytes, table_build};
