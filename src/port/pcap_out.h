/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes on their way to a capture file. It may be a pipe whose reader is not there yet or does not
 * read: then there is a wait, which can be ended.
 */
#ifndef HOLDOFF_PORT_PCAP_OUT_H
#define HOLDOFF_PORT_PCAP_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "runtime/rt.h"

/* After it was asked to end: so long a reader that is merely slow may still take the rest. */
#define PCAP_OUT_GRACE_NS 1000000000u

struct pcap_out {
	struct rt *rt;
	int fd;
	bool stream;       /* a pipe, socket or terminal: a write may have to wait */
	bool blocking;     /* and is not ours to change: never writes what would block */
	bool ask;          /* atomic: pcap_out_ask_stop was called */
	uint64_t grace_ns; /* when patience ends once it was asked; 0 = not asked so far */
};

/*
 * Opens the file to be written, with the open flags given beside O_WRONLY; "-" = standard output.
 * The descriptor or a negative errno. A named pipe is waited for until somebody reads it: at
 * deadline_ns that ends with -ETIMEDOUT, and at rt_stop or when a SIGINT, SIGTERM or SIGHUP is
 * pending with -EINTR.
 */
int pcap_out_open_path(struct rt *rt, const char *path, int flags, uint64_t deadline_ns);

/* What a person is told of such an error. */
const char *pcap_out_open_error(int rc);

/* Prepares it; the descriptor stays the caller's. */
void pcap_out_init(struct pcap_out *out, struct rt *rt, int fd);

/*
 * Writes all of it, or returns a negative errno with *done saying how much went. -EINTR when a
 * reader did not read until PCAP_OUT_GRACE_NS after pcap_out_ask_stop or after a SIGINT, SIGTERM or
 * SIGHUP that is pending, or at rt_stop.
 */
int pcap_out_write(struct pcap_out *out, const void *from, size_t bytes, size_t *done);

/* What a person is told of such an error. */
const char *pcap_out_error(int rc);

/* From any task: no more patience with the reader. */
void pcap_out_ask_stop(struct pcap_out *out);

#endif
