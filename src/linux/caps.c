// SPDX-License-Identifier: BSD-2-Clause
#include "linux/caps.h"

#include <cap-ng.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

lx_capset lx_caps_missing(lx_capset need)
{
	lx_capset missing = 0;

	capng_clear(CAPNG_SELECT_ALL);
	if (capng_get_caps_process() < 0)
		return need;
	for (unsigned cap = 0; cap <= CAP_LAST_CAP; cap++) {
		if ((need & LX_CAP(cap)) && !capng_have_capability(CAPNG_EFFECTIVE, cap))
			missing |= LX_CAP(cap);
	}
	return missing;
}

const char *lx_caps_text(lx_capset set, char *buf, size_t bytes)
{
	size_t used = 0;

	buf[0] = '\0';
	for (unsigned cap = 0; cap <= CAP_LAST_CAP && used < bytes; cap++) {
		const char *name;

		if (!(set & LX_CAP(cap)))
			continue;
		name = capng_capability_to_name(cap);
		used += (size_t)snprintf(buf + used, bytes - used, "%scap_%s", used ? "," : "",
					 name ? name : "unknown");
	}
	return buf;
}

int lx_caps_require(const char *what, lx_capset need, struct ho_err *err)
{
	lx_capset missing = lx_caps_missing(need);
	char names[256], all[256], self[256];
	ssize_t n;

	if (!missing)
		return 0;
	/* setcap replaces what the file had: it is to keep what else the command needed. */
	for (unsigned cap = 0; geteuid() != 0 && cap <= CAP_LAST_CAP; cap++) {
		if (capng_have_capability(CAPNG_PERMITTED, cap))
			need |= LX_CAP(cap);
	}
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[n > 0 ? n : 0] = '\0';
	return ho_err_set(err, -EPERM,
			  "%s needs %s; run it as root, or give the program what it needs: "
			  "'setcap %s+ep %s'",
			  what, lx_caps_text(missing, names, sizeof(names)),
			  lx_caps_text(need, all, sizeof(all)), n > 0 ? self : "holdoff");
}

int lx_caps_keep(lx_capset keep, struct ho_err *err)
{
	lx_capset missing = lx_caps_missing(keep);

	/* capng_clear made the wanted set empty; what was read before is what we have. */
	capng_clear(CAPNG_SELECT_CAPS);
	for (unsigned cap = 0; cap <= CAP_LAST_CAP; cap++) {
		if ((keep & ~missing) & LX_CAP(cap))
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, cap);
	}
	if (capng_apply(CAPNG_SELECT_CAPS) < 0)
		return ho_err_set(err, -EPERM, "cannot give up privileges: %s", ho_strerror(errno));
	return 0;
}
