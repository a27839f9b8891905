/* SPDX-License-Identifier: BSD-2-Clause */
/* What fib4.h and fib6.h share. */
#ifndef HOLDOFF_ROUTE_FIB_H
#define HOLDOFF_ROUTE_FIB_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "route/fib_reclaim.h"

/* A next hop is an opaque number, 1 to FIB_NH_MAX; 0 is "no route". */
#define FIB_NH_MAX ((1u << 24) - 1)

struct fib_config {
	size_t routes;                     /* expected at most, a hint; 0 = no idea */
	const struct fib_reclaim *reclaim; /* not copied; NULL: see fib_reclaim.h */
};

#endif
