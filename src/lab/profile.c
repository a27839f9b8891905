// SPDX-License-Identifier: BSD-2-Clause
#include "lab/profile.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "lab/datadir.h"
#include "base/document.h"

#define INHERIT_MAX 8    /* a longer chain is a circle */
#define VALUE_MAX   1e12 /* of any unit; a thousand seconds in ns */

const struct lab_constant_info lab_constant_info[LAB_CONSTANT_COUNT] = {
#define INFO_COST(name, key, unit) [LAB_COST_##name] = { key "_ns", "a " unit, LAB_UNIT_NS, true },
	RT_COSTS(INFO_COST)
#undef INFO_COST
#define INFO(name, key, unit, scales, meaning) \
	[LAB_##name##_CONSTANT] = { key, meaning, LAB_UNIT_##unit, scales },
		LAB_CONSTANTS(INFO)
#undef INFO
};

/* --- the file ----------------------------------------------------------------------------- */

struct file_constant {
	double value;
	enum lab_kind kind;
	char *source;
	char **rows;
	uint32_t rows_count;
};

struct file_cache {
	char *name;
	uint64_t bytes;
	uint32_t ways, line;
	struct file_constant miss;
};

struct file_reuse {
	enum rt_cost fill, drain;
	uint32_t bytes;
	char *source;
};

struct file_profile {
	char *name, *title, *inherits;
	uint32_t cpus;
	uint64_t cpu_hz;
	struct file_constants {
		struct file_constant *at[LAB_CONSTANT_COUNT];
	} constants;
	struct file_cache *caches;
	uint32_t caches_count;
	struct file_reuse *reuse;
	uint32_t reuse_count;
};

static const cyaml_strval_t kind_names[] = {
	{ "measured", LAB_MEASURED },
	{ "published", LAB_PUBLISHED },
	{ "derived", LAB_DERIVED },
	{ "fitted", LAB_FITTED },
};

static const cyaml_strval_t cost_names[] = {
#define COST_NAME(name, key, unit) { key, RT_COST_##name },
	RT_COSTS(COST_NAME)
#undef COST_NAME
};

static const cyaml_schema_value_t string_schema = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, CYAML_UNLIMITED),
};

static const cyaml_schema_field_t constant_fields[] = {
	CYAML_FIELD_FLOAT("value", CYAML_FLAG_DEFAULT, struct file_constant, value),
	CYAML_FIELD_ENUM("kind", CYAML_FLAG_STRICT, struct file_constant, kind, kind_names,
			 CYAML_ARRAY_LEN(kind_names)),
	CYAML_FIELD_STRING_PTR("source", CYAML_FLAG_POINTER, struct file_constant, source, 1,
			       CYAML_UNLIMITED),
	CYAML_FIELD_SEQUENCE("rows", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct file_constant,
			     rows, &string_schema, 1, 32),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t constants_fields[] = {
#define FIELD_COST(name, key, unit)                                                  \
	CYAML_FIELD_MAPPING_PTR(key "_ns", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, \
				struct file_constants, at[LAB_COST_##name], constant_fields),
	RT_COSTS(FIELD_COST)
#undef FIELD_COST
#define FIELD(name, key, unit, scales, meaning)                                   \
	CYAML_FIELD_MAPPING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,    \
				struct file_constants, at[LAB_##name##_CONSTANT], \
				constant_fields),
		LAB_CONSTANTS(FIELD)
#undef FIELD
			CYAML_FIELD_END,
};

static const cyaml_schema_field_t cache_fields[] = {
	CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct file_cache, name, 1, 15),
	CYAML_FIELD_UINT("bytes", CYAML_FLAG_DEFAULT, struct file_cache, bytes),
	CYAML_FIELD_UINT("ways", CYAML_FLAG_DEFAULT, struct file_cache, ways),
	CYAML_FIELD_UINT("line", CYAML_FLAG_OPTIONAL, struct file_cache, line),
	CYAML_FIELD_MAPPING("miss_ns", CYAML_FLAG_DEFAULT, struct file_cache, miss,
			    constant_fields),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t cache_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct file_cache, cache_fields),
};

static const cyaml_schema_field_t reuse_fields[] = {
	CYAML_FIELD_ENUM("fill", CYAML_FLAG_STRICT, struct file_reuse, fill, cost_names,
			 CYAML_ARRAY_LEN(cost_names)),
	CYAML_FIELD_ENUM("drain", CYAML_FLAG_STRICT, struct file_reuse, drain, cost_names,
			 CYAML_ARRAY_LEN(cost_names)),
	CYAML_FIELD_UINT("bytes", CYAML_FLAG_DEFAULT, struct file_reuse, bytes),
	CYAML_FIELD_STRING_PTR("source", CYAML_FLAG_POINTER, struct file_reuse, source, 1,
			       CYAML_UNLIMITED),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t reuse_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct file_reuse, reuse_fields),
};

static const cyaml_schema_field_t profile_fields[] = {
	CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct file_profile, name, 1, 63),
	CYAML_FIELD_STRING_PTR("title", CYAML_FLAG_POINTER, struct file_profile, title, 1, 200),
	CYAML_FIELD_STRING_PTR("inherits", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			       struct file_profile, inherits, 1, 200),
	CYAML_FIELD_UINT("cpus", CYAML_FLAG_OPTIONAL, struct file_profile, cpus),
	CYAML_FIELD_UINT("cpu_hz", CYAML_FLAG_OPTIONAL, struct file_profile, cpu_hz),
	CYAML_FIELD_MAPPING("constants", CYAML_FLAG_OPTIONAL, struct file_profile, constants,
			    constants_fields),
	CYAML_FIELD_SEQUENCE("caches", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			     struct file_profile, caches, &cache_schema, 0, LAB_CACHE_LEVELS_MAX),
	CYAML_FIELD_SEQUENCE("reuse", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct file_profile,
			     reuse, &reuse_schema, 0, LAB_REUSE_MAX),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t profile_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct file_profile, profile_fields),
};

/* --- constants ---------------------------------------------------------------------------- */

const char *lab_kind_name(enum lab_kind kind)
{
	static const char *const names[] = {
		[LAB_MEASURED] = "measured", [LAB_PUBLISHED] = "published",
		[LAB_DERIVED] = "derived",   [LAB_FITTED] = "fitted",
		[LAB_CHOSEN] = "chosen",
	};

	return names[kind];
}

static void constant_clear(struct lab_constant *k)
{
	for (unsigned i = 0; i < k->n_rows; i++)
		free(k->rows[i]);
	free(k->rows);
	free(k->source);
	*k = (struct lab_constant){ 0 };
}

static int to_value(enum lab_unit unit, double v, uint64_t *out, struct ho_err *err)
{
	if (!isfinite(v) || v < 0 || v > VALUE_MAX)
		return ho_err_set(err, -EINVAL, "%g: a value from 0 to %g is needed", v, VALUE_MAX);
	switch (unit) {
	case LAB_UNIT_NS:
		*out = (uint64_t)llround(v * 1e3);
		return 0;
	case LAB_UNIT_GBPS:
		*out = (uint64_t)llround(v * 1e9);
		return 0;
	default:
		if (v != floor(v))
			return ho_err_set(err, -EINVAL, "%g: a whole number is needed", v);
		*out = (uint64_t)v;
		return 0;
	}
}

/* `node` is where it stands in the document. */
static int take_constant(struct lab_constant *k, enum lab_unit unit,
			 const struct file_constant *file, const struct ho_doc *doc,
			 const char *node, struct ho_err *err)
{
	char at[160];

	snprintf(at, sizeof(at), "%s/value", node);
	if (to_value(unit, file->value, &k->value, err))
		return ho_doc_blame(doc, at, err);
	if (file->kind == LAB_FITTED && !file->rows_count) {
		ho_err_set(err, -EINVAL, "a fitted constant must say to which rows: 'rows: [...]'");
		return ho_doc_blame(doc, node, err);
	}
	k->kind = file->kind;
	k->source = strdup(file->source);
	k->rows = calloc(file->rows_count + 1, sizeof(*k->rows));
	if (!k->source || !k->rows)
		return ho_err_set(err, -ENOMEM, "out of memory");
	for (; k->n_rows < file->rows_count; k->n_rows++) {
		k->rows[k->n_rows] = strdup(file->rows[k->n_rows]);
		if (!k->rows[k->n_rows])
			return ho_err_set(err, -ENOMEM, "out of memory");
	}
	return 0;
}

/* Moves a constant of the inherited profile here. */
static int inherit_constant(struct lab_profile *p, struct lab_profile *from, int id,
			    struct ho_err *err)
{
	struct lab_constant *k = &p->constant[id];
	char *source;

	*k = from->constant[id];
	from->constant[id] = (struct lab_constant){ 0 };
	if (!lab_constant_info[id].scales || from->cpu_hz == p->cpu_hz)
		return 0;
	if (asprintf(&source, "%s of %s by the clocks, %.3g/%.3g GHz; there: %s, %s",
		     lab_constant_info[id].key, from->name, from->cpu_hz / 1e9, p->cpu_hz / 1e9,
		     lab_kind_name(k->kind), k->source) < 0)
		return ho_err_set(err, -ENOMEM, "out of memory");
	k->value = (uint64_t)(((unsigned __int128)k->value * from->cpu_hz + p->cpu_hz / 2) /
			      p->cpu_hz);
	free(k->source);
	k->source = source;
	k->kind = LAB_DERIVED;
	for (unsigned i = 0; i < k->n_rows; i++)
		free(k->rows[i]);
	k->n_rows = 0;
	return 0;
}

/* --- reading ------------------------------------------------------------------------------ */

/* Puts the constants where the executor and the bus look for them. */
static int apply(struct lab_profile *p, struct ho_err *err)
{
	const struct lab_constant *k = p->constant;
	struct lab_machine *m = &p->machine;

	for (int cost = 0; cost < RT_COST_COUNT; cost++)
		m->cost[cost] = k[cost].value;
	m->irq_entry = k[LAB_IRQ_ENTRY_CONSTANT].value;
	m->irq_exit = k[LAB_IRQ_EXIT_CONSTANT].value;
	m->softirq = k[LAB_SOFTIRQ_CONSTANT].value;
	m->wakeup = k[LAB_WAKEUP_CONSTANT].value;
	m->context_switch = k[LAB_CONTEXT_SWITCH_CONSTANT].value;
	m->time_slice = k[LAB_TIME_SLICE_CONSTANT].value;
	m->softirq_limit = k[LAB_SOFTIRQ_LIMIT_CONSTANT].value;
	m->softirq_rounds = (unsigned)k[LAB_SOFTIRQ_ROUNDS_CONSTANT].value;
	m->poll_limit = k[LAB_POLL_LIMIT_CONSTANT].value;
	m->poll_budget = (int)k[LAB_POLL_BUDGET_CONSTANT].value;
	m->ksoftirqd_owns = k[LAB_KSOFTIRQD_OWNS_CONSTANT].value != 0;
	m->cache.other_bytes = k[LAB_CACHE_OTHER_CONSTANT].value;
	for (unsigned i = 0; i < m->cache.n_levels; i++)
		m->cache.level[i].miss = p->cache_miss[i].value;
	/* The model takes 0 for its own defaults; a profile means it. */
	p->pci = (struct lab_pci_config){
		.down_bps = k[LAB_PCI_RATE_CONSTANT].value,
		.up_bps = k[LAB_PCI_RATE_CONSTANT].value,
		.tlp_bytes = (uint32_t)HO_MAX(k[LAB_PCI_HEADER_CONSTANT].value, 1u),
		.max_payload = (uint32_t)k[LAB_PCI_PAYLOAD_CONSTANT].value,
		.completion_payload = (uint32_t)k[LAB_PCI_COMPLETION_CONSTANT].value,
		.max_read_request = (uint32_t)k[LAB_PCI_REQUEST_CONSTANT].value,
		.tags = (uint32_t)k[LAB_PCI_TAGS_CONSTANT].value,
		.latency = HO_MAX(k[LAB_PCI_LATENCY_CONSTANT].value, 1u),
		.memory_read = HO_MAX(k[LAB_MEMORY_READ_CONSTANT].value, 1u),
		.memory_write = HO_MAX(k[LAB_MEMORY_WRITE_CONSTANT].value, 1u),
		.register_read = HO_MAX(k[LAB_REGISTER_READ_CONSTANT].value, 1u),
		.cpu_write = k[LAB_MMIO_WRITE_CONSTANT].value,
	};
	return lab_cache_prepare(&m->cache, err);
}

static int take_caches(struct lab_profile *p, const struct file_profile *file,
		       const struct ho_doc *doc, struct ho_err *err)
{
	struct lab_cache *cache = &p->machine.cache;

	cache->n_levels = file->caches_count;
	for (uint32_t i = 0; i < file->caches_count; i++) {
		const struct file_cache *from = &file->caches[i];
		char node[48];
		int rc;

		cache->level[i] = (struct lab_cache_level){
			.bytes = from->bytes,
			.ways = from->ways,
			.line = from->line ? from->line : HO_CACHE_LINE,
		};
		p->cache_name[i] = strdup(from->name);
		if (!p->cache_name[i])
			return ho_err_set(err, -ENOMEM, "out of memory");
		snprintf(node, sizeof(node), "caches/%u/miss_ns", i);
		rc = take_constant(&p->cache_miss[i], LAB_UNIT_NS, &from->miss, doc, node, err);
		if (rc)
			return rc;
	}
	return 0;
}

static void inherit_caches(struct lab_profile *p, struct lab_profile *from)
{
	p->machine.cache = from->machine.cache;
	for (unsigned i = 0; i < from->machine.cache.n_levels; i++) {
		p->cache_miss[i] = from->cache_miss[i];
		p->cache_name[i] = from->cache_name[i];
		from->cache_miss[i] = (struct lab_constant){ 0 };
		from->cache_name[i] = NULL;
	}
}

static void take_reuse(struct lab_profile *p, const struct file_profile *file)
{
	p->machine.n_reuse = file->reuse_count;
	for (uint32_t i = 0; i < file->reuse_count; i++)
		p->machine.reuse[i] = (struct lab_reuse){
			.fill = file->reuse[i].fill,
			.drain = file->reuse[i].drain,
			.bytes = file->reuse[i].bytes,
		};
}

static int take_constants(struct lab_profile *p, const struct file_profile *file,
			  struct lab_profile *parent, const struct ho_doc *doc, struct ho_err *err)
{
	for (int id = 0; id < LAB_CONSTANT_COUNT; id++) {
		const struct lab_constant_info *info = &lab_constant_info[id];
		const struct file_constant *from = file->constants.at[id];
		char node[80];
		int rc;

		snprintf(node, sizeof(node), "constants/%s", info->key);
		if (from) {
			rc = take_constant(&p->constant[id], info->unit, from, doc, node, err);
		} else if (parent) {
			rc = inherit_constant(p, parent, id, err);
		} else {
			ho_err_set(err, -EINVAL,
				   "constant %s is missing (%s); 'inherits: NAME' takes what is "
				   "missing from another profile",
				   info->key, info->meaning);
			rc = ho_doc_blame(doc, node, err);
		}
		if (rc)
			return rc;
	}
	return 0;
}

/* What apply() could not make use of. */
static int check(const struct lab_profile *p, const struct ho_doc *doc, struct ho_err *err)
{
	static const int not_zero[] = {
		LAB_TIME_SLICE_CONSTANT, LAB_SOFTIRQ_ROUNDS_CONSTANT, LAB_POLL_BUDGET_CONSTANT,
		LAB_PCI_RATE_CONSTANT,   LAB_PCI_PAYLOAD_CONSTANT,    LAB_PCI_REQUEST_CONSTANT,
		LAB_PCI_TAGS_CONSTANT,   LAB_PCI_COMPLETION_CONSTANT,
	};
	char node[80];

	for (size_t i = 0; i < HO_ARRAY_LEN(not_zero); i++) {
		if (p->constant[not_zero[i]].value)
			continue;
		snprintf(node, sizeof(node), "constants/%s/value",
			 lab_constant_info[not_zero[i]].key);
		ho_err_set(err, -EINVAL, "%s must not be 0", lab_constant_info[not_zero[i]].key);
		return ho_doc_blame(doc, node, err);
	}
	return 0;
}

static int load(const char *name, unsigned depth, struct lab_profile **out, struct ho_err *err);

static int build(const struct file_profile *file, const struct ho_doc *doc, unsigned depth,
		 struct lab_profile **out, struct ho_err *err)
{
	struct lab_profile *p = calloc(1, sizeof(*p)), *parent = NULL;
	int rc = -ENOMEM;

	if (!p || !(p->name = strdup(file->name)) || !(p->title = strdup(file->title))) {
		ho_err_set(err, -ENOMEM, "out of memory");
		goto err_free;
	}
	if (file->inherits) {
		rc = load(file->inherits, depth + 1, &parent, err);
		if (rc) {
			ho_doc_blame(doc, "inherits", err);
			goto err_free;
		}
	}
	lab_machine_defaults(&p->machine);
	p->cpu_hz = file->cpu_hz ? file->cpu_hz : parent ? parent->cpu_hz : 0;
	p->machine.cpus = file->cpus ? file->cpus : parent ? parent->machine.cpus : 0;
	if (!p->cpu_hz || !p->machine.cpus || p->machine.cpus > 1024) {
		ho_err_set(err, -EINVAL,
			   !p->cpu_hz ? "cpu_hz is missing or 0" : "cpus: a machine has 1 to 1024");
		rc = ho_doc_blame(doc, p->cpu_hz ? "cpus" : "cpu_hz", err);
		goto err_free;
	}
	rc = take_constants(p, file, parent, doc, err);
	if (rc)
		goto err_free;
	if (file->caches || !parent)
		rc = take_caches(p, file, doc, err);
	else
		inherit_caches(p, parent);
	if (rc)
		goto err_free;
	if (file->reuse || !parent) {
		take_reuse(p, file);
	} else {
		p->machine.n_reuse = parent->machine.n_reuse;
		memcpy(p->machine.reuse, parent->machine.reuse, sizeof(p->machine.reuse));
	}
	rc = check(p, doc, err);
	if (rc)
		goto err_free;
	rc = apply(p, err);
	if (rc) {
		ho_doc_blame(doc, "caches", err);
		goto err_free;
	}
	lab_profile_free(parent);
	*out = p;
	return 0;

err_free:
	lab_profile_free(parent);
	lab_profile_free(p);
	return rc;
}

static int load(const char *name, unsigned depth, struct lab_profile **out, struct ho_err *err)
{
	struct ho_doc *doc;
	void *file;
	char *path;
	int rc;

	if (depth > INHERIT_MAX)
		return ho_err_set(err, -ELOOP, "%s: profiles inherit from each other in a circle",
				  name);
	rc = lab_data_find("profiles", name, ".yaml", &path, err);
	if (rc)
		return rc;
	rc = ho_doc_load(path, &profile_schema, &file, &doc, err);
	free(path);
	if (rc)
		return rc;
	rc = build(file, doc, depth, out, err);
	ho_doc_free(doc);
	ho_yaml_free(&profile_schema, file);
	return rc;
}

int lab_profile_load(const char *name, struct lab_profile **out, struct ho_err *err)
{
	return load(name, 0, out, err);
}

int lab_profile_parse(const char *name, const char *text, size_t bytes, struct lab_profile **out,
		      struct ho_err *err)
{
	struct ho_doc *doc;
	void *file;
	int rc = ho_doc_parse(name, text, bytes, &profile_schema, &file, &doc, err);

	if (rc)
		return rc;
	rc = build(file, doc, 0, out, err);
	ho_doc_free(doc);
	ho_yaml_free(&profile_schema, file);
	return rc;
}

void lab_profile_free(struct lab_profile *p)
{
	if (!p)
		return;
	for (int id = 0; id < LAB_CONSTANT_COUNT; id++)
		constant_clear(&p->constant[id]);
	for (int i = 0; i < LAB_CACHE_LEVELS_MAX; i++) {
		constant_clear(&p->cache_miss[i]);
		free(p->cache_name[i]);
	}
	free(p->name);
	free(p->title);
	free(p);
}

/* --- changing ----------------------------------------------------------------------------- */

static struct lab_constant *constant_of(struct lab_profile *p, const char *key, enum lab_unit *unit)
{
	char miss[32];

	for (int id = 0; id < LAB_CONSTANT_COUNT; id++) {
		*unit = lab_constant_info[id].unit;
		if (!strcmp(key, lab_constant_info[id].key))
			return &p->constant[id];
	}
	*unit = LAB_UNIT_NS;
	for (unsigned i = 0; i < p->machine.cache.n_levels; i++) {
		snprintf(miss, sizeof(miss), "%s_miss_ns", p->cache_name[i]);
		if (!strcmp(key, miss))
			return &p->cache_miss[i];
	}
	return NULL;
}

int lab_profile_set(struct lab_profile *p, const char *key, const char *text, struct ho_err *err)
{
	enum lab_unit unit;
	struct lab_constant *k = constant_of(p, key, &unit);
	char *end, *source;
	double v;
	uint64_t value;

	errno = 0;
	v = strtod(text, &end);
	if (end == text || *end || errno)
		return ho_err_set(err, -EINVAL, "%s: '%s' is not a number", key, text);
	if (!strcmp(key, "cpu_hz")) {
		if (!(v >= 1 && v <= VALUE_MAX))
			return ho_err_set(err, -EINVAL, "cpu_hz: '%s' is not a frequency in Hz",
					  text);
		p->cpu_hz = (uint64_t)v;
		return 0;
	}
	if (!k)
		return ho_err_set(err, -EINVAL,
				  "profile %s has no constant '%s'; docs/lab-files.md lists them",
				  p->name, key);
	if (to_value(unit, v, &value, err))
		return err ? ho_err_prefix(err, "%s", key) : -EINVAL;
	source = strdup("set for this run");
	if (!source)
		return ho_err_set(err, -ENOMEM, "out of memory");
	constant_clear(k);
	*k = (struct lab_constant){ .value = value, .kind = LAB_CHOSEN, .source = source };
	if (check(p, NULL, err))
		return -EINVAL;
	return apply(p, err);
}

unsigned lab_profile_fitted(const struct lab_profile *p)
{
	unsigned n = 0;

	for (int id = 0; id < LAB_CONSTANT_COUNT; id++)
		n += p->constant[id].kind == LAB_FITTED;
	for (unsigned i = 0; i < p->machine.cache.n_levels; i++)
		n += p->cache_miss[i].kind == LAB_FITTED;
	return n;
}
