/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cycle soaker: a thread of the lowest priority (SCHED_IDLE) on each CPU that reads the clock all
 * the time. Time between two readings that are as close as a loop makes them was its own: nobody
 * else wanted it. A longer gap was somebody else's, interrupts included, whatever the kernel's
 * accounting says of them.
 *
 * It keeps CPUs from sleeping: they draw full power, and those that share a core or a power budget
 * become slower.
 */
#ifndef HOLDOFF_LINUX_SOAKER_H
#define HOLDOFF_LINUX_SOAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct lx_soaker;

/* On each CPU that this process may use. -EAGAIN, -ENOMEM, -EPERM. */
int lx_soaker_start(struct lx_soaker **out, struct ho_err *err);
void lx_soaker_stop(struct lx_soaker *soaker); /* NULL is allowed */

/*
 * Since the start, on this CPU: nanoseconds that were left over, and those that the kernel says the
 * soaker used (it counts them as user time, which without a soaker were idle time). False if the
 * CPU has no soaker.
 */
bool lx_soaker_read(const struct lx_soaker *soaker, unsigned cpu, uint64_t *soaked_ns,
		    uint64_t *used_ns);

#endif
