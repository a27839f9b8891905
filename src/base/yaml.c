// SPDX-License-Identifier: BSD-2-Clause
#include "base/yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/compiler.h"
#include "base/yaml_shape.h"

/* What libcyaml says of one failure arrives line by line: the causes, then where, innermost
 * first. */
struct yaml_log {
	char cause[256];
	char field[64];
	unsigned line, column;
};

/* Drops libcyaml's own prefixes ("Load: ") and the newline. */
static void take_cause(struct yaml_log *log, const char *text)
{
	const char *colon = strstr(text, ": ");
	size_t len;

	if (!strncmp(text, "Load: ", 6) && colon)
		text += 6;
	len = strcspn(text, "\n");
	snprintf(log->cause, sizeof(log->cause), "%.*s", (int)HO_MIN(len, sizeof(log->cause) - 1),
		 text);
}

static void yaml_log(cyaml_log_t level, void *ctx, const char *fmt, va_list args)
{
	struct yaml_log *log = ctx;
	char text[512];
	const char *at;

	if (level < CYAML_LOG_ERROR)
		return;
	vsnprintf(text, sizeof(text), fmt, args);
	at = strstr(text, "line: ");
	if (at && !log->line)
		sscanf(at, "line: %u, column: %u", &log->line, &log->column);
	at = strstr(text, "mapping field '");
	if (at && !log->field[0])
		sscanf(at, "mapping field '%63[^']'", log->field);
	if (!log->cause[0] && !strstr(text, "Backtrace"))
		take_cause(log, text);
}

static void *yaml_mem(void *ctx, void *ptr, size_t size)
{
	if (!size) {
		free(ptr);
		return NULL;
	}
	return realloc(ptr, size);
}

static struct cyaml_config yaml_config(struct yaml_log *log)
{
	return (struct cyaml_config){
		.log_fn = yaml_log,
		.log_ctx = log,
		.log_level = CYAML_LOG_ERROR,
		.mem_fn = yaml_mem,
		.flags = CYAML_CFG_NO_ALIAS,
	};
}

/*
 * Of a key that the schema does not know, libcyaml reports the place before it. Reads on from
 * there, in a parser that has its input, to the key itself.
 */
static void find_key(yaml_parser_t *parser, struct yaml_log *log)
{
	static const char unknown[] = "Unexpected key: ";
	const char *key = log->cause + sizeof(unknown) - 1;
	yaml_event_t event;
	bool end = false;

	if (strncmp(log->cause, unknown, sizeof(unknown) - 1))
		return;
	while (!end && yaml_parser_parse(parser, &event)) {
		unsigned line = (unsigned)event.start_mark.line + 1;
		unsigned column = (unsigned)event.start_mark.column + 1;
		bool behind = line > log->line || (line == log->line && column >= log->column);

		end = event.type == YAML_STREAM_END_EVENT;
		if (behind && event.type == YAML_SCALAR_EVENT &&
		    !strcmp((const char *)event.data.scalar.value, key)) {
			log->line = line;
			log->column = column;
			end = true;
		}
		yaml_event_delete(&event);
	}
}

/* What libcyaml says no place of is the document as a whole: where it begins. */
static void find_begin(yaml_parser_t *parser, struct yaml_log *log)
{
	yaml_event_t event;
	bool begun = false;

	while (!log->line && yaml_parser_parse(parser, &event)) {
		if (begun || event.type == YAML_STREAM_END_EVENT) {
			log->line = (unsigned)event.start_mark.line + 1;
			log->column = (unsigned)event.start_mark.column + 1;
		}
		begun = begun || event.type == YAML_DOCUMENT_START_EVENT;
		yaml_event_delete(&event);
	}
}

static void find_place(yaml_parser_t *parser, cyaml_err_t rc, struct yaml_log *log)
{
	if (rc == CYAML_ERR_INVALID_KEY)
		find_key(parser, log);
	else if (!log->line)
		find_begin(parser, log);
}

static int yaml_result(const char *name, cyaml_err_t rc, const struct yaml_log *log,
		       struct ho_err *err)
{
	const char *cause = log->cause[0] ? log->cause : cyaml_strerror(rc);
	/* A key that is missing is in no field; libcyaml names the one before it. */
	bool in_field = log->field[0] && rc != CYAML_ERR_MAPPING_FIELD_MISSING;
	const char *in = in_field ? " in field " : "", *field = in_field ? log->field : "";

	if (rc == CYAML_OK)
		return 0;
	if (rc == CYAML_ERR_OOM)
		return ho_err_set(err, -ENOMEM, "%s: out of memory", name);
	if (log->line)
		return ho_err_set(err, -EINVAL, "%s:%u:%u: %s%s%s", name, log->line, log->column,
				  cause, in, field);
	return ho_err_set(err, -EINVAL, "%s: %s%s%s", name, cause, in, field);
}

/* libcyaml takes a file without a document, and makes nothing of it. */
static int nothing_in(const char *name, struct ho_err *err)
{
	return ho_err_set(err, -EINVAL, "%s:1:1: there is nothing in it", name);
}

int ho_yaml_load(const char *name, const void *text, size_t bytes,
		 const struct cyaml_schema_value *schema, void **out, struct ho_err *err)
{
	struct yaml_log log = { 0 };
	struct cyaml_config config = yaml_config(&log);
	yaml_parser_t parser;
	cyaml_err_t rc;
	int bad;

	*out = NULL;
	bad = ho_yaml_check_shape(name, text, bytes, err);
	if (bad < 0)
		return bad;
	rc = cyaml_load_data(text, bytes, &config, schema, out, NULL);
	if (rc == CYAML_OK && !*out)
		return nothing_in(name, err);
	if (rc != CYAML_OK && yaml_parser_initialize(&parser)) {
		yaml_parser_set_input_string(&parser, text, bytes);
		find_place(&parser, rc, &log);
		yaml_parser_delete(&parser);
	}
	return yaml_result(name, rc, &log, err);
}

void ho_yaml_free(const struct cyaml_schema_value *schema, void *data)
{
	struct yaml_log log = { 0 };
	struct cyaml_config config = yaml_config(&log);

	cyaml_free(&config, schema, data, 0);
}
