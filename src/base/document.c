// SPDX-License-Identifier: BSD-2-Clause
#include "base/document.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"

/* A profile has about 5 KB, a scenario with all comments 20. */
#define DOC_BYTES_MAX (4u << 20)

struct ho_doc {
	char *name;
	yaml_document_t yaml;
};

int ho_doc_parse(const char *name, const char *text, size_t bytes,
		 const struct cyaml_schema_value *schema, void **data, struct ho_doc **out,
		 struct ho_err *err)
{
	struct ho_doc *doc;
	yaml_parser_t parser;
	int rc = ho_yaml_load(name, text, bytes, schema, data, err);

	if (rc)
		return rc;
	doc = calloc(1, sizeof(*doc));
	if (!doc || !(doc->name = strdup(name)) || !yaml_parser_initialize(&parser)) {
		rc = ho_err_set(err, -ENOMEM, "%s: out of memory", name);
		goto err_free;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
	/* What the schema accepted has no syntax errors, but an anchor may be there twice. */
	if (!yaml_parser_load(&parser, &doc->yaml)) {
		if (parser.error == YAML_MEMORY_ERROR)
			rc = ho_err_set(err, -ENOMEM, "%s: out of memory", name);
		else
			rc = ho_err_set(err, -EINVAL, "%s:%zu:%zu: %s", name,
					parser.problem_mark.line + 1,
					parser.problem_mark.column + 1,
					parser.context ? parser.context : parser.problem);
		yaml_parser_delete(&parser);
		goto err_free;
	}
	yaml_parser_delete(&parser);
	*out = doc;
	return 0;

err_free:
	if (doc)
		free(doc->name);
	free(doc);
	ho_yaml_free(schema, *data);
	*data = NULL;
	return rc;
}

int ho_doc_load(const char *path, const struct cyaml_schema_value *schema, void **data,
		struct ho_doc **out, struct ho_err *err)
{
	char *text = NULL;
	size_t bytes = 0;
	int rc = ho_file_read(path, DOC_BYTES_MAX, &text, &bytes, err);

	if (rc)
		return rc;
	rc = ho_doc_parse(path, text, bytes, schema, data, out, err);
	free(text);
	return rc;
}

void ho_doc_free(struct ho_doc *doc)
{
	if (!doc)
		return;
	yaml_document_delete(&doc->yaml);
	free(doc->name);
	free(doc);
}

const char *ho_doc_name(const struct ho_doc *doc)
{
	return doc->name;
}

/* libyaml's accessors take no const documents. */
static yaml_node_t *node_get(const struct ho_doc *doc, int index)
{
	return yaml_document_get_node((yaml_document_t *)&doc->yaml, index);
}

static const char *scalar(const yaml_node_t *node)
{
	return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value
						      : NULL;
}

/* The child called `name` (not terminated), or NULL. *key becomes the node that names it. */
static yaml_node_t *child(const struct ho_doc *doc, yaml_node_t *node, const char *name,
			  size_t length, yaml_node_t **key)
{
	if (node->type == YAML_SEQUENCE_NODE) {
		size_t i = strtoul(name, NULL, 10);
		yaml_node_item_t *start = node->data.sequence.items.start;

		if (i >= (size_t)(node->data.sequence.items.top - start))
			return NULL;
		*key = node_get(doc, start[i]);
		return *key;
	}
	if (node->type != YAML_MAPPING_NODE)
		return NULL;
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top; pair++) {
		const char *text = scalar(node_get(doc, pair->key));

		if (text && strlen(text) == length && !memcmp(text, name, length)) {
			*key = node_get(doc, pair->key);
			return node_get(doc, pair->value);
		}
	}
	return NULL;
}

/* The node, or NULL; *nearest is then the last one on the way that is there. */
static yaml_node_t *find(const struct ho_doc *doc, const char *path, yaml_node_t **nearest)
{
	yaml_node_t *node = yaml_document_get_root_node((yaml_document_t *)&doc->yaml);
	yaml_node_t *key;

	*nearest = node;
	while (node && *path) {
		size_t length = strcspn(path, "/");

		node = child(doc, node, path, length, &key);
		/* A mapping or sequence is best pointed at by its name. */
		if (node)
			*nearest = node->type == YAML_SCALAR_NODE ? node : key;
		path += length;
		path += *path == '/';
	}
	return node;
}

void ho_doc_where(const struct ho_doc *doc, const char *path, unsigned *line, unsigned *column)
{
	yaml_node_t *nearest;

	find(doc, path, &nearest);
	*line = nearest ? (unsigned)nearest->start_mark.line + 1 : 1;
	*column = nearest ? (unsigned)nearest->start_mark.column + 1 : 1;
}

int ho_doc_blame(const struct ho_doc *doc, const char *node, struct ho_err *err)
{
	unsigned line, column;

	if (!err)
		return -EINVAL;
	if (!doc)
		return err->code;
	ho_doc_where(doc, node, &line, &column);
	return ho_err_prefix(err, "%s:%u:%u", doc->name, line, column);
}

int ho_doc_entries(const struct ho_doc *doc, const char *path,
		   int (*fn)(void *arg, const char *key, const char *value, struct ho_err *err),
		   void *arg, struct ho_err *err)
{
	yaml_node_t *nearest, *node = find(doc, path, &nearest);

	if (!node)
		return 0;
	if (node->type != YAML_MAPPING_NODE)
		return ho_err_set(err, -EINVAL, "%s:%zu:%zu: this must be a mapping (key: value)",
				  doc->name, node->start_mark.line + 1,
				  node->start_mark.column + 1);
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top; pair++) {
		yaml_node_t *value = node_get(doc, pair->value);
		const char *key = scalar(node_get(doc, pair->key)), *text = scalar(value);
		int rc;

		if (!key || !text)
			return ho_err_set(
				err, -EINVAL,
				"%s:%zu:%zu: a single value is needed here, no list and no "
				"mapping",
				doc->name, value->start_mark.line + 1,
				value->start_mark.column + 1);
		rc = fn(arg, key, text, err);
		if (rc)
			return err ? ho_err_prefix(err, "%s:%zu:%zu", doc->name,
						   value->start_mark.line + 1,
						   value->start_mark.column + 1)
				   : rc;
	}
	return 0;
}
