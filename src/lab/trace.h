/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A time line of a run for ui.perfetto.dev or chrome://tracing: the JSON object format of "Trace
 * Event Format" (Google), complete events ("X") for slices, "i" for instants, "C" for counters.
 * A process of the trace is a host or a chip, a thread is a CPU or a queue: together a track.
 *
 * Events are written as they end, so the file grows with the run and memory does not. Without a
 * trace (NULL) each call is one predicted branch.
 */
#ifndef HOLDOFF_LAB_TRACE_H
#define HOLDOFF_LAB_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "lab/sim.h"

struct lab_trace;

int lab_trace_open(const char *path, struct lab_trace **out, struct ho_err *err);

/* Ends the file. An error of any write since the beginning shows here. NULL is allowed. */
int lab_trace_close(struct lab_trace *trace, struct ho_err *err);

/* Nothing but new tracks is written while it is paused. Slices that lasted into a pause, or began
 * in one, are cut there. NULL is allowed. */
void lab_trace_pause(struct lab_trace *trace, bool paused, sim_ps now);

/* A new track. Tracks of the same process (by name) are shown together, in order of creation.
 * Returns 0 without a trace. */
uint32_t lab_trace_track(struct lab_trace *trace, const char *process, const char *thread);

void lab_trace_write_slice(struct lab_trace *trace, uint32_t track, const char *category,
			   const char *name, sim_ps begin, sim_ps end);
void lab_trace_write_instant(struct lab_trace *trace, uint32_t track, const char *category,
			     const char *name, sim_ps at);
void lab_trace_write_counter(struct lab_trace *trace, uint32_t track, const char *name, sim_ps at,
			     uint64_t value);

/* Something that lasted from begin to end. Slices of one track must nest. Strings are copied. */
static inline void lab_trace_slice(struct lab_trace *trace, uint32_t track, const char *category,
				   const char *name, sim_ps begin, sim_ps end)
{
	if (ho_unlikely(trace))
		lab_trace_write_slice(trace, track, category, name, begin, end);
}

/* Something that happened: a doorbell, a descriptor written back. */
static inline void lab_trace_instant(struct lab_trace *trace, uint32_t track, const char *category,
				     const char *name, sim_ps at)
{
	if (ho_unlikely(trace))
		lab_trace_write_instant(trace, track, category, name, at);
}

/* A value from now on: frames in a ring. */
static inline void lab_trace_counter(struct lab_trace *trace, uint32_t track, const char *name,
				     sim_ps at, uint64_t value)
{
	if (ho_unlikely(trace))
		lab_trace_write_counter(trace, track, name, at, value);
}

#endif
