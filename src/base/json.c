// SPDX-License-Identifier: BSD-2-Clause
#include "base/json.h"

#include <errno.h>
#include <math.h>

json_t *ho_json_begin(const char *command)
{
	return json_pack("{s:i, s:s}", "schema", HO_JSON_SCHEMA, "command", command);
}

int ho_json_print(FILE *out, json_t *object)
{
	int rc = 0;

	errno = 0;
	if (!object ||
	    json_dumpf(object, out, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) <
		    0 ||
	    fputc('\n', out) == EOF || fflush(out) != 0)
		rc = errno ? -errno : -ENOMEM;
	json_decref(object);
	return rc;
}

json_t *ho_json_hist_ns(const struct ho_hist *hist)
{
	static const struct {
		const char *key;
		double q;
	} quantiles[] = {
		{ "p50_ns", 0.5 },    { "p90_ns", 0.9 },      { "p99_ns", 0.99 },
		{ "p999_ns", 0.999 }, { "p9999_ns", 0.9999 },
	};
	json_t *object = json_object();

	json_object_set_new(object, "count", json_integer((json_int_t)hist->count));
	if (!hist->count)
		return object;
	json_object_set_new(object, "min_ns", json_integer((json_int_t)hist->min));
	json_object_set_new(object, "mean_ns",
			    json_integer((json_int_t)llround(ho_hist_mean(hist))));
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		json_object_set_new(
			object, quantiles[i].key,
			json_integer((json_int_t)ho_hist_quantile(hist, quantiles[i].q)));
	json_object_set_new(object, "max_ns", json_integer((json_int_t)hist->max));
	return object;
}
