/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A YAML file kept beside what was read from it, so that a complaint about the meaning of a value
 * names the line and column of that value, as complaints about the syntax do. Mappings with free
 * keys, which a schema cannot describe, are read from here as well.
 *
 * Nodes are named by a path: keys and sequence indices with slashes between, "hosts/0/chips/1/tx".
 */
#ifndef HOLDOFF_BASE_DOCUMENT_H
#define HOLDOFF_BASE_DOCUMENT_H

#include "base/error.h"
#include "base/yaml.h"

struct ho_doc;

/*
 * Reads the file by the schema into *data (ho_yaml_free(schema, ...) frees it) and keeps the
 * document. Errors as those of ho_yaml_load.
 */
int ho_doc_load(const char *path, const struct cyaml_schema_value *schema, void **data,
		struct ho_doc **out, struct ho_err *err);
/* The same from memory; `name` stands for the file in messages. */
int ho_doc_parse(const char *name, const char *text, size_t bytes,
		 const struct cyaml_schema_value *schema, void **data, struct ho_doc **out,
		 struct ho_err *err);
/* NULL is allowed. */
void ho_doc_free(struct ho_doc *doc);

const char *ho_doc_name(const struct ho_doc *doc);

/* The place of a node; of the nearest one above it if it is not there. Both 1 at least. */
void ho_doc_where(const struct ho_doc *doc, const char *node, unsigned *line, unsigned *column);

/* Puts "FILE:LINE:COLUMN: " of the node before the message that err holds. Returns err's code, or
 * -EINVAL without err. Without a document (NULL) the message stays as it is. */
int ho_doc_blame(const struct ho_doc *doc, const char *node, struct ho_err *err);

/*
 * Calls fn for each entry of the mapping `node` whose value is a scalar, in the file's order;
 * ends with fn's first result that is not 0. A node that is not there is an empty mapping; one
 * that is no mapping, or has other values, -EINVAL.
 */
int ho_doc_entries(const struct ho_doc *doc, const char *node,
		   int (*fn)(void *arg, const char *key, const char *value, struct ho_err *err),
		   void *arg, struct ho_err *err);

#endif
