// SPDX-License-Identifier: BSD-2-Clause
#include "lab/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRACE_TRACKS_MAX 1024
#define TRACE_NAME       48
#define TRACE_BUFFER     (256u * 1024u)

struct trace_track {
	char process[TRACE_NAME];
	uint32_t pid, tid;
};

struct lab_trace {
	FILE *file;
	char *path;
	bool any; /* an event was written: the next one needs a comma */
	bool paused;
	sim_ps from, until; /* where the last piece began, and ended if it is paused */
	uint32_t n_tracks, n_pids;
	struct trace_track track[TRACE_TRACKS_MAX];
	char buffer[TRACE_BUFFER];
};

int lab_trace_open(const char *path, struct lab_trace **out, struct ho_err *err)
{
	struct lab_trace *trace = calloc(1, sizeof(*trace));
	int rc = -ENOMEM;

	if (!trace)
		return ho_err_set(err, -ENOMEM, "out of memory");
	trace->path = strdup(path);
	if (!trace->path) {
		ho_err_set(err, -ENOMEM, "out of memory");
		goto err_free;
	}
	trace->file = fopen(path, "we");
	if (!trace->file) {
		rc = ho_err_set(err, -errno, "trace %s: %s", path, ho_strerror(errno));
		goto err_path;
	}
	setvbuf(trace->file, trace->buffer, _IOFBF, sizeof(trace->buffer));
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", trace->file);
	*out = trace;
	return 0;

err_path:
	free(trace->path);
err_free:
	free(trace);
	return rc;
}

int lab_trace_close(struct lab_trace *trace, struct ho_err *err)
{
	int rc = 0;

	if (!trace)
		return 0;
	fputs("\n]}\n", trace->file);
	if (fflush(trace->file) || ferror(trace->file))
		rc = ho_err_set(err, errno ? -errno : -EIO, "trace %s: could not be written: %s",
				trace->path, ho_strerror(errno ? errno : EIO));
	if (fclose(trace->file) && !rc)
		rc = ho_err_set(err, -errno, "trace %s: could not be written: %s", trace->path,
				ho_strerror(errno));
	free(trace->path);
	free(trace);
	return rc;
}

void lab_trace_pause(struct lab_trace *trace, bool paused, sim_ps now)
{
	if (!trace)
		return;
	trace->paused = paused;
	if (paused)
		trace->until = now;
	else
		trace->from = now;
}

static void put_string(FILE *file, const char *text)
{
	putc_unlocked('"', file);
	for (; *text; text++) {
		unsigned char ch = (unsigned char)*text;

		if (ch == '"' || ch == '\\') {
			putc_unlocked('\\', file);
			putc_unlocked(ch, file);
		} else if (ch < 0x20) {
			fprintf(file, "\\u%04x", ch);
		} else {
			putc_unlocked(ch, file);
		}
	}
	putc_unlocked('"', file);
}

/* The format's unit is the microsecond, in decimals. */
static void put_time(FILE *file, const char *key, sim_ps ps)
{
	fprintf(file, ",\"%s\":%llu.%06llu", key, ps / SIM_PS_PER_US, ps % SIM_PS_PER_US);
}

static void begin_event(struct lab_trace *trace, char phase, uint32_t pid, uint32_t tid,
			const char *name)
{
	fprintf(trace->file, "%s\n{\"ph\":\"%c\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"name\":",
		trace->any ? "," : "", phase, pid, tid);
	put_string(trace->file, name);
	trace->any = true;
}

static void name_it(struct lab_trace *trace, const char *what, uint32_t pid, uint32_t tid,
		    const char *name)
{
	begin_event(trace, 'M', pid, tid, what);
	fputs(",\"args\":{\"name\":", trace->file);
	put_string(trace->file, name);
	fputs("}}", trace->file);
}

uint32_t lab_trace_track(struct lab_trace *trace, const char *process, const char *thread)
{
	struct trace_track *track;
	uint32_t tid = 1;

	if (!trace)
		return 0;
	/* More tracks than anybody looks at share the last one. */
	if (trace->n_tracks == TRACE_TRACKS_MAX)
		return TRACE_TRACKS_MAX - 1;
	track = &trace->track[trace->n_tracks];
	snprintf(track->process, sizeof(track->process), "%s", process);
	for (uint32_t i = 0; i < trace->n_tracks; i++) {
		if (!strcmp(trace->track[i].process, track->process)) {
			track->pid = trace->track[i].pid;
			tid++;
		}
	}
	track->tid = tid;
	if (!track->pid) {
		track->pid = ++trace->n_pids;
		name_it(trace, "process_name", track->pid, 0, process);
	}
	name_it(trace, "thread_name", track->pid, tid, thread);
	return trace->n_tracks++;
}

void lab_trace_write_slice(struct lab_trace *trace, uint32_t track, const char *category,
			   const char *name, sim_ps begin, sim_ps end)
{
	const struct trace_track *at = &trace->track[track];

	begin = begin < trace->from ? trace->from : begin;
	if (trace->paused && end > trace->until)
		end = trace->until;
	if (end < begin || (trace->paused && begin >= trace->until))
		return;
	begin_event(trace, 'X', at->pid, at->tid, name);
	fputs(",\"cat\":", trace->file);
	put_string(trace->file, category);
	put_time(trace->file, "ts", begin);
	put_time(trace->file, "dur", end - begin);
	putc_unlocked('}', trace->file);
}

void lab_trace_write_instant(struct lab_trace *trace, uint32_t track, const char *category,
			     const char *name, sim_ps at_ps)
{
	const struct trace_track *at = &trace->track[track];

	if (trace->paused)
		return;
	begin_event(trace, 'i', at->pid, at->tid, name);
	fputs(",\"s\":\"t\",\"cat\":", trace->file);
	put_string(trace->file, category);
	put_time(trace->file, "ts", at_ps);
	putc_unlocked('}', trace->file);
}

void lab_trace_write_counter(struct lab_trace *trace, uint32_t track, const char *name,
			     sim_ps at_ps, uint64_t value)
{
	const struct trace_track *at = &trace->track[track];

	if (trace->paused)
		return;
	begin_event(trace, 'C', at->pid, at->tid, name);
	put_time(trace->file, "ts", at_ps);
	fprintf(trace->file, ",\"args\":{\"value\":%" PRIu64 "}}", value);
}
