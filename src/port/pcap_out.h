/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes on their way to a capture file, and what they are. The file may be a pipe whose reader is
 * not there yet or does not read: then there is a wait, which can be ended.
 *
 * Format: pcap 2.4 in the machine's byte order, link type Ethernet, times in nanoseconds (magic
 * 0xa1b23c4d) or microseconds (0xa1b2c3d4); see draft-ietf-opsawg-pcap.
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

struct pcap_out_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, sigfigs;
	uint32_t snaplen;
	uint32_t link;
};

struct pcap_out_record {
	uint32_t sec;
	uint32_t fraction; /* nano- or microseconds */
	uint32_t caplen;   /* bytes that follow */
	uint32_t len;      /* that the frame had */
};

struct pcap_out_header pcap_out_header(bool nano, uint32_t snaplen);

/* Of a buffer of records, what is wholly within its first `done` bytes. */
struct pcap_records {
	uint64_t frames, frame_bytes; /* the frames' own, as long as they were */
	size_t file_bytes;
};
struct pcap_records pcap_records_count(const uint8_t *buf, size_t used, size_t done);

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

/* Locks a regular file (flock) to be read (LOCK_SH) or written (LOCK_EX), before it is cut. -EBUSY
 * with a sentence that begins behind the file's name when another descriptor of any process is in
 * the way; where the file system has no locks there is none. */
int pcap_lock(int fd, int how, struct ho_err *err);

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
