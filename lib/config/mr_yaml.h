/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_yaml - a YAML text as a tree that remembers its lines.
 *
 * One pass of libyaml's event parser. The subset is what a configuration needs:
 * one document of mappings with scalar keys, lists and scalars. Anchors,
 * aliases, tags and further documents are refused, and bytes, depth and nodes
 * are bounded, so a hostile file costs little and cannot expand.
 *
 * Thread   any.
 * Owner    the caller frees the tree; all text is inside.
 * Source   YAML 1.1; libyaml 0.2.5 yaml.h
 */
#ifndef MR_YAML_H
#define MR_YAML_H

#include "mr_config.h"

#define MR_YAML_BYTES_MAX (1u << 20)
#define MR_YAML_DEPTH_MAX 16u
#define MR_YAML_NODES_MAX 20000u
#define MR_YAML_KEYS_MAX 256u /* keys of one mapping */

enum mr_yaml_type {
	MR_YAML_SCALAR,
	MR_YAML_LIST,
	MR_YAML_MAPPING,
};

struct mr_yaml_node {
	enum mr_yaml_type type;
	uint32_t line;    /* from 1; of the key where it has one */
	char *key;        /* NULL outside a mapping */
	size_t key_bytes; /* a key may hold NUL */
	char *text;       /* SCALAR; ends with NUL, and may hold others */
	size_t bytes;
	bool plain;                 /* SCALAR without quotes */
	uint32_t count;             /* children */
	struct mr_yaml_node *child; /* first */
	struct mr_yaml_node *next;
};

/*
 * mr_yaml_parse returns 0 and the root, or -EINVAL with one problem: syntax is
 * judged up to the first error, since nothing behind it can be trusted.
 */
MR_MUST_USE int mr_yaml_parse(
	const char *text, size_t bytes, struct mr_yaml_node **ret_top, struct mr_problems *ps);

/* mr_yaml_free accepts NULL. */
void mr_yaml_free(struct mr_yaml_node *top);

/* mr_yaml_find returns the child of that key, or NULL; node may be NULL. */
const struct mr_yaml_node *mr_yaml_find(const struct mr_yaml_node *node, const char *key);

#endif
