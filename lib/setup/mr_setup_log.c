/* SPDX-License-Identifier: BSD-3-Clause */
/* What DPDK writes to stderr, changed while it runs. */
#include "mr_setup_priv.h"

#include <rte_log.h>
#include <stdlib.h>
#include <string.h>

#define OPTION "--log-level"

/* As EAL reads one: a number, or the first letters of a name; 0: neither (rte_log.h). */
static uint32_t level_of(const char *text)
{
	static const char *const names[] = {
		"emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"};
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (*end == '\0' && end != text)
		return n <= RTE_LOG_MAX ? (uint32_t)n : 0;
	for (uint32_t i = 0; *text != '\0' && i < MR_ARRAY_LEN(names); i++)
		if (strncmp(names[i], text, strlen(text)) == 0)
			return RTE_LOG_EMERG + i;
	return 0;
}

/* PATTERN:LEVEL is of shell's patterns, REGEX,LEVEL of expressions, LEVEL alone is of all. */
static void take(const char *value)
{
	const char *at = strpbrk(value, ",:");
	char types[MR_TEXT_MAX];
	uint32_t level = level_of(at != NULL ? at + 1 : value);

	/* EAL took it at the start, so what this does not know is left as it is. */
	if (level == 0)
		return;
	if (at == NULL) {
		rte_log_set_global_level(level);
		return;
	}
	snprintf(types, sizeof(types), "%.*s", (int)(at - value), value);
	if (*at == ',')
		(void)rte_log_set_level_regexp(types, level);
	else
		(void)rte_log_set_level_pattern(types, level);
}

void mr_setup_log_levels(const struct mr_plan *plan)
{
	for (uint32_t i = 0; i < plan->eal_args_count; i++) {
		const char *arg = plan->eal_args[i];

		if (strncmp(arg, OPTION "=", strlen(OPTION "=")) == 0)
			take(arg + strlen(OPTION "="));
		else if (strcmp(arg, OPTION) == 0 && i + 1 < plan->eal_args_count)
			take(plan->eal_args[++i]);
	}
}
