// SPDX-License-Identifier: BSD-2-Clause
/* Specifications from YAML: every value is a text, whose meaning traffic/stream.c knows. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/document.h"
#include "traffic/spec.h"

static const cyaml_schema_field_t stream_fields[] = {
#define TR_STREAM_YAML(member, key, arg, help)                                \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, \
			       struct tr_stream_text, member, 0, CYAML_UNLIMITED),
	TR_STREAM_FIELDS(TR_STREAM_YAML)
#undef TR_STREAM_YAML
		CYAML_FIELD_END,
};

static const cyaml_schema_value_t stream_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct tr_stream_text, stream_fields),
};

static const cyaml_schema_field_t spec_fields[] = {
	CYAML_FIELD_STRING_PTR("seed", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			       struct tr_spec_text, seed, 0, CYAML_UNLIMITED),
	CYAML_FIELD_STRING_PTR("stamp", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			       struct tr_spec_text, stamp, 0, CYAML_UNLIMITED),
	CYAML_FIELD_SEQUENCE_COUNT("streams", CYAML_FLAG_POINTER, struct tr_spec_text, streams,
				   n_streams, &stream_schema, 1, CYAML_UNLIMITED),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t spec_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct tr_spec_text, spec_fields),
};

/* Is the text at fault one of `over`? Then no line of the file is. */
static bool is_over(const struct tr_spec_text *over, const char *key)
{
	if (!over || !key)
		return false;
	if (!strcmp(key, "seed"))
		return over->seed;
	if (!strcmp(key, "stamp"))
		return over->stamp;
	for (const struct tr_stream_field *f = tr_stream_fields; f->key && over->n_streams; f++) {
		if (!strcmp(f->key, key))
			return *(const char *const *)((const char *)over->streams + f->offset);
	}
	return false;
}

/* Puts file, line and column before the message. */
static void blame(const struct ho_doc *doc, const struct tr_spec_text *over,
		  const struct tr_spec_fault *fault, struct ho_err *err)
{
	const char *key = fault->key;
	char node[96];

	if (is_over(over, key)) {
		ho_err_prefix(err, "%s", ho_doc_name(doc));
		return;
	}
	if (key && (!strcmp(key, "seed") || !strcmp(key, "stamp")))
		snprintf(node, sizeof(node), "%s", key);
	else
		snprintf(node, sizeof(node), "streams/%u/%s", fault->stream, key ? key : "");
	ho_doc_blame(doc, node, err);
}

/* The file's texts with those of `over` put over them, as a copy: the file's own strings must stay
 * for libcyaml to free. */
static int create_over(const struct ho_doc *doc, const struct tr_spec_text *file,
		       const struct tr_spec_text *over, struct tr_spec **out, struct ho_err *err)
{
	struct tr_spec_text text = *file;
	struct tr_spec_fault fault;
	struct tr_stream_text *streams;
	int rc;

	if (over && over->seed)
		text.seed = over->seed;
	if (over && over->stamp)
		text.stamp = over->stamp;
	text.streams = streams = calloc(file->n_streams, sizeof(*streams));
	if (!streams)
		return ho_err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < file->n_streams; i++) {
		streams[i] = file->streams[i];
		for (const struct tr_stream_field *f = tr_stream_fields;
		     f->key && over && over->n_streams; f++) {
			const char *value =
				*(const char *const *)((const char *)over->streams + f->offset);

			if (value)
				*(const char **)((char *)&streams[i] + f->offset) = value;
		}
	}
	rc = tr_spec_create_at(&text, out, &fault, err);
	if (rc)
		blame(doc, over, &fault, err);
	free(streams);
	return rc;
}

static int finish(struct ho_doc *doc, void *data, const struct tr_spec_text *over,
		  struct tr_spec **out, struct ho_err *err)
{
	int rc;

	/* An empty document is no mapping. */
	if (data)
		rc = create_over(doc, data, over, out, err);
	else
		rc = ho_err_set(err, -EINVAL, "%s: empty", ho_doc_name(doc));
	ho_yaml_free(&spec_schema, data);
	ho_doc_free(doc);
	return rc;
}

int tr_spec_load(const char *path, const struct tr_spec_text *over, struct tr_spec **out,
		 struct ho_err *err)
{
	struct ho_doc *doc;
	void *data = NULL;
	int rc = ho_doc_load(path, &spec_schema, &data, &doc, err);

	return rc ? rc : finish(doc, data, over, out, err);
}

int tr_spec_load_text(const char *name, const void *text, size_t bytes,
		      const struct tr_spec_text *over, struct tr_spec **out, struct ho_err *err)
{
	struct ho_doc *doc;
	void *data = NULL;
	int rc = ho_doc_parse(name, text, bytes, &spec_schema, &data, &doc, err);

	return rc ? rc : finish(doc, data, over, out, err);
}
