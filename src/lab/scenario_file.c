// SPDX-License-Identifier: BSD-2-Clause
/* The schema of a scenario's file. Mappings with free keys are left to scenario.c. */
#include "lab/scenario_file.h"

#include <string.h>

#define TEXT_PTR(key, type, member, min) \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER, type, member, min, CYAML_UNLIMITED)
#define TEXT_OPT(key, type, member)                                                            \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, 1, \
			       CYAML_UNLIMITED)
#define LIST(key, type, member, schema, max)                                                      \
	CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, schema, \
			     0, max)

static const cyaml_strval_t rx_modes[] = {
	{ "napi", LAB_RX_NAPI }, { "direct", LAB_RX_DIRECT }, { "deferred", LAB_RX_DEFERRED },
	{ "srs", LAB_RX_SRS },   { "poll", LAB_RX_POLL },     { "holdoff", LAB_RX_HOLDOFF },
};

static const cyaml_strval_t workload_kinds[] = {
	{ "pktgen", LAB_WORK_PKTGEN },
	{ "gen", LAB_WORK_GEN },
	{ "recv", LAB_WORK_RECV },
	{ "rr", LAB_WORK_RR },
};

static const cyaml_schema_value_t text_schema = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, CYAML_UNLIMITED),
};

static const cyaml_schema_value_t number_schema = {
	CYAML_VALUE_UINT(CYAML_FLAG_DEFAULT, uint32_t),
};

static const cyaml_schema_field_t chip_fields[] = {
	TEXT_PTR("name", struct lab_chip_spec, name, 1),
	TEXT_PTR("model", struct lab_chip_spec, model, 1),
	CYAML_FIELD_ENUM("rx-mode", CYAML_FLAG_STRICT | CYAML_FLAG_OPTIONAL, struct lab_chip_spec,
			 rx_mode, rx_modes, CYAML_ARRAY_LEN(rx_modes)),
	CYAML_FIELD_UINT("queues", CYAML_FLAG_OPTIONAL, struct lab_chip_spec, queues),
	LIST("irq-cpus", struct lab_chip_spec, irq_cpus, &number_schema, LAB_IRQ_CPUS_MAX),
	CYAML_FIELD_IGNORE("params", CYAML_FLAG_OPTIONAL),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t chip_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct lab_chip_spec, chip_fields),
};

static const cyaml_schema_field_t workload_fields[] = {
	TEXT_PTR("name", struct lab_workload_spec, name, 1),
	CYAML_FIELD_ENUM("kind", CYAML_FLAG_STRICT, struct lab_workload_spec, kind, workload_kinds,
			 CYAML_ARRAY_LEN(workload_kinds)),
	TEXT_PTR("chip", struct lab_workload_spec, chip, 1),
	CYAML_FIELD_UINT("queue", CYAML_FLAG_OPTIONAL, struct lab_workload_spec, queue),
	CYAML_FIELD_UINT("cpu", CYAML_FLAG_DEFAULT, struct lab_workload_spec, cpu),
	TEXT_OPT("sizes", struct lab_workload_spec, sizes),
	TEXT_OPT("rate", struct lab_workload_spec, rate_text),
	CYAML_FIELD_IGNORE("params", CYAML_FLAG_OPTIONAL),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t workload_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct lab_workload_spec, workload_fields),
};

static const cyaml_schema_field_t host_fields[] = {
	TEXT_PTR("name", struct lab_host_spec, name, 1),
	TEXT_PTR("profile", struct lab_host_spec, profile_name, 1),
	CYAML_FIELD_UINT("cpus", CYAML_FLAG_OPTIONAL, struct lab_host_spec, cpus),
	CYAML_FIELD_IGNORE("constants", CYAML_FLAG_OPTIONAL),
	LIST("chips", struct lab_host_spec, chips, &chip_schema, 64),
	LIST("workloads", struct lab_host_spec, workloads, &workload_schema, 1024),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t host_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct lab_host_spec, host_fields),
};

static const cyaml_schema_field_t wire_fields[] = {
	TEXT_PTR("name", struct lab_wire_spec, name, 1),
	TEXT_PTR("from", struct lab_wire_spec, from, 1),
	TEXT_OPT("to", struct lab_wire_spec, to),
	TEXT_PTR("rate", struct lab_wire_spec, rate_text, 1),
	TEXT_OPT("propagation", struct lab_wire_spec, propagation_text),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t wire_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct lab_wire_spec, wire_fields),
};

static const cyaml_schema_field_t axis_fields[] = {
	TEXT_PTR("name", struct lab_axis_spec, name, 1),
	TEXT_PTR("path", struct lab_axis_spec, path, 1),
	LIST("values", struct lab_axis_spec, values, &text_schema, 4096),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t axis_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct lab_axis_spec, axis_fields),
};

static const cyaml_schema_field_t series_fields[] = {
	TEXT_PTR("name", struct lab_series_spec, name, 1),
	CYAML_FIELD_IGNORE("set", CYAML_FLAG_OPTIONAL),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t series_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct lab_series_spec, series_fields),
};

static const cyaml_schema_field_t parameter_fields[] = {
	TEXT_PTR("column", struct lab_published_parameter, column, 1),
	TEXT_PTR("axis", struct lab_published_parameter, axis, 1),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t parameter_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct lab_published_parameter, parameter_fields),
};

static const cyaml_schema_field_t result_fields[] = {
	TEXT_OPT("column", struct lab_published_result, column),
	TEXT_PTR("result", struct lab_published_result, result, 1),
	CYAML_FIELD_FLOAT("background", CYAML_FLAG_OPTIONAL, struct lab_published_result,
			  background),
	TEXT_OPT("background-from", struct lab_published_result, background_from),
	CYAML_FIELD_FLOAT("within-percent", CYAML_FLAG_OPTIONAL, struct lab_published_result,
			  within_percent),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t result_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct lab_published_result, result_fields),
};

static const cyaml_schema_field_t published_fields[] = {
	TEXT_PTR("file", struct lab_published_spec, file, 1),
	TEXT_OPT("series-column", struct lab_published_spec, series_column),
	LIST("parameters", struct lab_published_spec, parameters, &parameter_schema, 16),
	LIST("results", struct lab_published_spec, results, &result_schema, 16),
	LIST("fitted", struct lab_published_spec, fitted, &text_schema, 64),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t scenario_fields[] = {
	TEXT_PTR("name", struct lab_scenario, name, 1),
	TEXT_PTR("title", struct lab_scenario, title, 1),
	TEXT_OPT("text", struct lab_scenario, text),
	CYAML_FIELD_UINT("seed", CYAML_FLAG_OPTIONAL, struct lab_scenario, seed),
	TEXT_OPT("warmup", struct lab_scenario, warmup_text),
	TEXT_PTR("duration", struct lab_scenario, duration_text, 1),
	CYAML_FIELD_SEQUENCE("hosts", CYAML_FLAG_POINTER, struct lab_scenario, hosts, &host_schema,
			     1, 64),
	LIST("wires", struct lab_scenario, wires, &wire_schema, 1024),
	LIST("axes", struct lab_scenario, axes, &axis_schema, 64),
	LIST("series", struct lab_scenario, series, &series_schema, 64),
	CYAML_FIELD_MAPPING_PTR("published", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
				struct lab_scenario, published, published_fields),
	CYAML_FIELD_END,
};

const struct cyaml_schema_value lab_scenario_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct lab_scenario, scenario_fields),
};

static int word_of(const cyaml_strval_t *words, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(words[i].str, word))
			return (int)words[i].val;
	return -1;
}

int lab_rx_mode_of(const char *word)
{
	return word_of(rx_modes, CYAML_ARRAY_LEN(rx_modes), word);
}

int lab_workload_kind_of(const char *word)
{
	return word_of(workload_kinds, CYAML_ARRAY_LEN(workload_kinds), word);
}

/* Both tables are in the order of their enumerations. */
const char *lab_rx_mode_name(enum lab_rx_mode mode)
{
	return rx_modes[mode].str;
}

const char *lab_workload_kind_name(enum lab_workload_kind kind)
{
	return workload_kinds[kind].str;
}
