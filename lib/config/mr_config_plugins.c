/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_config.h"

#include <errno.h>
#include <stdio.h>

static void refuse(const struct mr_config *cfg, uint32_t at, const char *hint,
	const struct mr_err *err, struct mr_problems *problems)
{
	char key[32];

	snprintf(key, sizeof(key), "plugins[%u]", at);
	mr_problem_add(problems, mr_config_line(cfg, key), key, hint, "%s", err->msg);
}

int mr_config_load_plugins(
	struct mr_config *cfg, struct mr_plugins *ret_plugins, struct mr_problems *problems)
{
	int rc = 0;

	cfg->loaded = ret_plugins;
	for (uint32_t i = 0; i < cfg->plugins_count; i++) {
		struct mr_err err;

		if (mr_plugins_add(ret_plugins, cfg->plugins[i], &err) == 0)
			continue;
		refuse(cfg, i, "", &err, problems);
		rc = -EINVAL;
	}
	return rc;
}

int mr_config_same_plugins(
	const struct mr_config *cfg, const struct mr_plugins *loaded, struct mr_problems *problems)
{
	struct mr_err err;
	uint32_t at;

	if (mr_plugins_same(loaded, &at, &err) == 0)
		return 0;
	refuse(cfg, at, "put the old file back, or stop the instance and start it", &err, problems);
	return -EINVAL;
}
