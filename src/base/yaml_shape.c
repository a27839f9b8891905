// SPDX-License-Identifier: BSD-2-Clause
#include "base/yaml_shape.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/compiler.h"

/* Of a mapping with more, only the first are compared: no schema knows so many. */
#define KEYS_MAX 256

struct key {
	char *text;
	size_t line; /* from 1 */
};

/* A mapping or sequence that has begun. */
struct level {
	bool mapping;
	bool value; /* a key was read, its value comes next */
	unsigned keys;
};

struct walk {
	const char *name;
	struct ho_err *err;
	struct level level[HO_YAML_DEPTH_MAX];
	unsigned depth;
	struct key *key; /* of all levels, the innermost's last */
	size_t n_keys, room;
	unsigned documents;
};

static int bad(const struct walk *w, const yaml_event_t *event, const char *cause)
{
	return ho_err_set(w->err, -EINVAL, "%s:%zu:%zu: %s", w->name, event->start_mark.line + 1,
			  event->start_mark.column + 1, cause);
}

/* A byte that is no character has no mark of its own. Of what the file ends in, such as a string
 * without its closing quote, the begin is of more use than the end. */
static int bad_syntax(const struct walk *w, const yaml_parser_t *parser)
{
	const yaml_mark_t *at = &parser->problem_mark;

	if (at->line < parser->mark.line)
		at = &parser->mark;
	if (parser->context && parser->problem && strstr(parser->problem, "end of stream"))
		at = &parser->context_mark;
	if (parser->error == YAML_MEMORY_ERROR)
		return ho_err_set(w->err, -ENOMEM, "%s: out of memory", w->name);
	return ho_err_set(w->err, -EINVAL, "%s:%zu:%zu: libyaml: %s", w->name, at->line + 1,
			  at->column + 1, parser->problem ? parser->problem : "no YAML");
}

static int take_key(struct walk *w, struct level *in, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;

	for (size_t i = w->n_keys - in->keys; i < w->n_keys; i++) {
		if (!strcmp(w->key[i].text, text))
			return ho_err_set(w->err, -EINVAL,
					  "%s:%zu:%zu: '%s' is given twice, first in line %zu",
					  w->name, event->start_mark.line + 1,
					  event->start_mark.column + 1, text, w->key[i].line);
	}
	if (in->keys == KEYS_MAX)
		return 0;
	if (w->n_keys == w->room) {
		size_t room = w->room ? 2 * w->room : 64;
		struct key *more = realloc(w->key, room * sizeof(*more));

		if (!more)
			return ho_err_set(w->err, -ENOMEM, "%s: out of memory", w->name);
		w->key = more;
		w->room = room;
	}
	w->key[w->n_keys].text = strdup(text);
	w->key[w->n_keys].line = event->start_mark.line + 1;
	if (!w->key[w->n_keys].text)
		return ho_err_set(w->err, -ENOMEM, "%s: out of memory", w->name);
	w->n_keys++;
	in->keys++;
	return 0;
}

static void forget_keys(struct walk *w, unsigned n)
{
	while (n--)
		free(w->key[--w->n_keys].text);
}

/* A scalar, or the begin of a mapping or sequence: a key of the mapping around it, or a value. */
static int take_node(struct walk *w, const yaml_event_t *event)
{
	struct level *in = w->depth ? &w->level[w->depth - 1] : NULL;
	int rc = 0;

	if (in && in->mapping) {
		if (!in->value && event->type == YAML_SCALAR_EVENT)
			rc = take_key(w, in, event);
		in->value = !in->value;
	}
	if (rc < 0 || event->type == YAML_SCALAR_EVENT)
		return rc;
	if (w->depth == HO_YAML_DEPTH_MAX)
		return bad(w, event, "more levels than any file here needs");
	w->level[w->depth++] = (struct level){ .mapping = event->type == YAML_MAPPING_START_EVENT };
	return 0;
}

static int take(struct walk *w, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		return w->documents++ ? bad(w, event, "a second document: a file has one") : 0;
	case YAML_ALIAS_EVENT:
		return bad(w, event, "aliases ('*name') are not taken: write it out");
	case YAML_SCALAR_EVENT:
	case YAML_MAPPING_START_EVENT:
	case YAML_SEQUENCE_START_EVENT:
		return take_node(w, event);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		forget_keys(w, w->level[--w->depth].keys);
		return 0;
	default:
		return 0;
	}
}

int ho_yaml_check_shape(const char *name, const void *text, size_t bytes, struct ho_err *err)
{
	struct walk w = { .name = name, .err = err };
	yaml_parser_t parser;
	bool end = false;
	int rc = 0;

	if (!yaml_parser_initialize(&parser))
		return ho_err_set(err, -ENOMEM, "%s: out of memory", name);
	yaml_parser_set_input_string(&parser, text, bytes);
	while (!end && rc == 0) {
		yaml_event_t event;

		if (!yaml_parser_parse(&parser, &event)) {
			rc = bad_syntax(&w, &parser);
			break;
		}
		end = event.type == YAML_STREAM_END_EVENT;
		rc = take(&w, &event);
		yaml_event_delete(&event);
	}
	forget_keys(&w, (unsigned)w.n_keys);
	free(w.key);
	yaml_parser_delete(&parser);
	return rc;
}
