/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_config_keys - the keys of a configuration in words, from the schema's rows, for a manual.
 *
 *     lanes[].batch.packets   number, 1 to 512 packets; default 64   most packets in a slot
 *
 * Thread   any.
 */
#ifndef MR_CONFIG_KEYS_H
#define MR_CONFIG_KEYS_H

#include <stdbool.h>
#include <stdint.h>

struct mr_config_key {
	const char *path; /* from the top, [] behind a list */
	const char *help;
	char kind[256]; /* type, bounds, unit, default */
};

/* mr_config_key_at gives the i-th key of `run`, or of `gen`; false behind the last. */
bool mr_config_key_at(bool gen, uint32_t i, struct mr_config_key *ret_key);

#endif
