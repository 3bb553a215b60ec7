/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct pass {
	yaml_parser_t parser;
	const char *text;
	size_t bytes;
	struct mr_problems *ps;
	uint32_t nodes;
};

static int refuse(struct pass *p, size_t line0, const char *hint, const char *message)
{
	mr_problem_add(p->ps, (uint32_t)line0 + 1, "", hint, "%s", message);
	return -EINVAL;
}

static int syntax(struct pass *p)
{
	const yaml_parser_t *y = &p->parser;
	size_t line = y->problem_mark.line;

	if (y->error == YAML_MEMORY_ERROR)
		return refuse(p, line, "free some memory", "out of memory while reading YAML");
	if (y->error == YAML_READER_ERROR) {
		/* The reader knows the byte only; count the lines before it. */
		line = 0;
		for (size_t i = 0; i < y->problem_offset && i < p->bytes; i++)
			line += p->text[i] == '\n';
	}
	mr_problem_add(p->ps, (uint32_t)line + 1, "",
		"look at this line and the one before it: indentation with blanks, a missing "
		"colon, "
		"quote or bracket",
		"not valid YAML: %s%s%s", y->problem != NULL ? y->problem : "unknown error",
		y->context != NULL ? " " : "", y->context != NULL ? y->context : "");
	return -EINVAL;
}

static int next(struct pass *p, yaml_event_t *ev)
{
	if (!yaml_parser_parse(&p->parser, ev))
		return syntax(p);
	return 0;
}

static char *copy(const yaml_char_t *text, size_t bytes)
{
	char *s = malloc(bytes + 1);

	if (s != NULL) {
		memcpy(s, text, bytes);
		s[bytes] = '\0';
	}
	return s;
}

void mr_yaml_free(struct mr_yaml_node *n)
{
	while (n != NULL) {
		struct mr_yaml_node *after = n->next;

		mr_yaml_free(n->child);
		free(n->key);
		free(n->text);
		free(n);
		n = after;
	}
}

static int parse_node(
	struct pass *p, yaml_event_t *ev, uint32_t depth, struct mr_yaml_node **ret_node);

static int append(struct pass *p, struct mr_yaml_node *to, struct mr_yaml_node ***tail,
	yaml_event_t *ev, uint32_t depth)
{
	int rc = parse_node(p, ev, depth + 1, *tail);

	if (rc != 0)
		return rc;
	*tail = &(**tail)->next;
	to->count++;
	return 0;
}

static int parse_list(struct pass *p, struct mr_yaml_node *list, uint32_t depth)
{
	struct mr_yaml_node **tail = &list->child;
	yaml_event_t ev;
	int rc;

	for (;;) {
		rc = next(p, &ev);
		if (rc != 0)
			return rc;
		if (ev.type == YAML_SEQUENCE_END_EVENT) {
			yaml_event_delete(&ev);
			return 0;
		}
		rc = append(p, list, &tail, &ev, depth);
		if (rc != 0)
			return rc;
	}
}

static int parse_mapping(struct pass *p, struct mr_yaml_node *map, uint32_t depth)
{
	struct mr_yaml_node **tail = &map->child;
	yaml_event_t ev;
	int rc;

	for (;;) {
		struct mr_yaml_node **slot = tail;
		struct mr_yaml_node *key = NULL;

		rc = next(p, &ev);
		if (rc != 0)
			return rc;
		if (ev.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&ev);
			return 0;
		}
		if (map->count == MR_YAML_KEYS_MAX) {
			rc = refuse(p, ev.start_mark.line, "use the keys of config/millrace.yaml",
				"a mapping has more keys than any configuration needs");
			yaml_event_delete(&ev);
			return rc;
		}
		rc = parse_node(p, &ev, depth + 1, &key);
		if (rc == 0 && key->type != MR_YAML_SCALAR)
			rc = refuse(p, key->line - 1, "write a word before the colon",
				"a key must be a word, not a list or a mapping");
		if (rc == 0)
			rc = next(p, &ev);
		if (rc == 0)
			rc = append(p, map, &tail, &ev, depth);
		if (rc == 0) {
			(*slot)->key = key->text;
			(*slot)->key_bytes = key->bytes;
			(*slot)->line = key->line;
			key->text = NULL;
		}
		mr_yaml_free(key);
		if (rc != 0)
			return rc;
	}
}

static int parse_scalar(const yaml_event_t *ev, struct mr_yaml_node *n)
{
	n->type = MR_YAML_SCALAR;
	n->bytes = ev->data.scalar.length;
	n->plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	n->text = copy(ev->data.scalar.value, n->bytes);
	return n->text != NULL ? 0 : -ENOMEM;
}

/* Anchors and tags are refused where they stand: nothing here needs them. */
static int check_event(struct pass *p, const yaml_event_t *ev, uint32_t depth)
{
	const yaml_char_t *anchor = NULL;
	const yaml_char_t *tag = NULL;
	size_t line = ev->start_mark.line;

	switch (ev->type) {
	case YAML_ALIAS_EVENT:
		return refuse(p, line, "write the value out", "YAML aliases are not taken");
	case YAML_SCALAR_EVENT:
		anchor = ev->data.scalar.anchor;
		tag = ev->data.scalar.tag;
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = ev->data.sequence_start.anchor;
		tag = ev->data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = ev->data.mapping_start.anchor;
		tag = ev->data.mapping_start.tag;
		break;
	default:
		return refuse(p, line, "start the file with a key", "not valid YAML here");
	}
	if (anchor != NULL)
		return refuse(p, line, "remove the &name", "YAML anchors are not taken");
	if (tag != NULL)
		return refuse(p, line, "remove the !tag; the schema knows the type",
			"YAML tags are not taken");
	if (depth > MR_YAML_DEPTH_MAX)
		return refuse(p, line, "use the keys of config/millrace.yaml",
			"lists and mappings are nested deeper than any configuration needs");
	if (++p->nodes > MR_YAML_NODES_MAX)
		return refuse(p, line, "split it into several instances",
			"more values than any configuration needs");
	return 0;
}

/* Takes the event over, also when it fails. */
static int parse_node(
	struct pass *p, yaml_event_t *ev, uint32_t depth, struct mr_yaml_node **ret_node)
{
	struct mr_yaml_node *n;
	int rc = check_event(p, ev, depth);

	if (rc != 0) {
		yaml_event_delete(ev);
		return rc;
	}
	n = calloc(1, sizeof(*n));
	if (n == NULL) {
		yaml_event_delete(ev);
		return -ENOMEM;
	}
	n->line = (uint32_t)ev->start_mark.line + 1;
	*ret_node = n; /* linked at once, so that the root frees it whatever happens */
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		rc = parse_scalar(ev, n);
		break;
	case YAML_SEQUENCE_START_EVENT:
		n->type = MR_YAML_LIST;
		rc = parse_list(p, n, depth);
		break;
	default:
		n->type = MR_YAML_MAPPING;
		rc = parse_mapping(p, n, depth);
		break;
	}
	yaml_event_delete(ev);
	return rc;
}

static int parse_stream(struct pass *p, struct mr_yaml_node **ret_top)
{
	yaml_event_t ev;
	int rc;

	for (;;) {
		bool end;

		rc = next(p, &ev);
		if (rc != 0)
			return rc;
		end = ev.type == YAML_STREAM_END_EVENT;
		if (ev.type == YAML_DOCUMENT_START_EVENT && *ret_top != NULL)
			rc = refuse(p, ev.start_mark.line, "remove the '---' and what follows",
				"a configuration is one YAML document");
		if (rc == 0 && !end && ev.type != YAML_STREAM_START_EVENT &&
			ev.type != YAML_DOCUMENT_START_EVENT && ev.type != YAML_DOCUMENT_END_EVENT)
			rc = parse_node(p, &ev, 0, ret_top);
		else
			yaml_event_delete(&ev);
		if (rc != 0)
			return rc;
		if (end)
			break;
	}
	if (*ret_top == NULL)
		return refuse(p, 0, "start from config/demo.yaml", "the file is empty");
	return 0;
}

/* NUL also catches UTF-16, which libyaml would otherwise decode. */
static int check_bytes(const char *text, size_t bytes, struct mr_problems *ps)
{
	uint32_t line = 1;

	if (bytes > MR_YAML_BYTES_MAX) {
		mr_problem_add(ps, 0, "", "split it into several instances",
			"the file has more than %u bytes", MR_YAML_BYTES_MAX);
		return -EINVAL;
	}
	for (size_t i = 0; i < bytes; i++) {
		line += text[i] == '\n';
		if (text[i] == '\0') {
			mr_problem_add(ps, line, "", "save it as UTF-8 text",
				"the file holds a NUL byte, so it is not UTF-8 text");
			return -EINVAL;
		}
	}
	return 0;
}

int mr_yaml_parse(
	const char *text, size_t bytes, struct mr_yaml_node **ret_top, struct mr_problems *ps)
{
	struct pass p = {.text = text, .bytes = bytes, .ps = ps};
	struct mr_yaml_node *top = NULL;
	int rc = check_bytes(text, bytes, ps);

	*ret_top = NULL;
	if (rc != 0)
		return rc;
	if (!yaml_parser_initialize(&p.parser))
		return refuse(&p, 0, "free some memory", "out of memory while reading YAML");
	yaml_parser_set_encoding(&p.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p.parser, (const unsigned char *)text, bytes);
	rc = parse_stream(&p, &top);
	yaml_parser_delete(&p.parser);
	if (rc == -ENOMEM)
		rc = refuse(&p, 0, "free some memory", "out of memory while reading YAML");
	if (rc == 0)
		*ret_top = top;
	else
		mr_yaml_free(top);
	return rc;
}

const struct mr_yaml_node *mr_yaml_find(const struct mr_yaml_node *node, const char *key)
{
	if (node == NULL || node->type != MR_YAML_MAPPING)
		return NULL;
	for (const struct mr_yaml_node *n = node->child; n != NULL; n = n->next)
		if (strcmp(n->key, key) == 0)
			return n;
	return NULL;
}
