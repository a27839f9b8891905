// SPDX-License-Identifier: BSD-2-Clause
#include "measure/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct ms_target_kind *const ms_target_kinds[] = {
	&ms_target_lab,
	&ms_target_live,
	NULL,
};

int ms_target_kind_of(const char *spec, const struct ms_target_kind **kind, const char **rest,
		      struct ho_err *err)
{
	char list[256] = "";
	size_t at = 0;

	for (unsigned i = 0; ms_target_kinds[i]; i++) {
		const struct ms_target_kind *k = ms_target_kinds[i];
		size_t n = strlen(k->name);

		if (!n && *spec && !strchr(spec, ':')) {
			*kind = k;
			*rest = spec;
			return 0;
		}
		if (n && !strncmp(spec, k->name, n) && spec[n] == ':' && spec[n + 1]) {
			*kind = k;
			*rest = spec + n + 1;
			return 0;
		}
		if (at < sizeof(list))
			at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s%s%s (%s)",
					       i ? ", " : "", k->name, n ? ":" : "", k->target,
					       k->help);
	}
	return ho_err_set(err, -EINVAL, "'%s' is not a target for a sweep; there is %s", spec,
			  list);
}
