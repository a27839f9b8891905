/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a capture file under libpcap's eyes: a buffered reader that knows at which byte it
 * is, whether the next read would block (pipes), and lets a stop request end a wait.
 */
#ifndef HOLDOFF_PORT_PCAP_IN_H
#define HOLDOFF_PORT_PCAP_IN_H

#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "runtime/rt.h"

struct pcap_in {
	pcap_t *pcap; /* reads from us; NULL between rewinds */
	struct rt *rt;
	int fd;
	bool stream; /* a pipe, terminal or socket: no rewind, reads may block */
	bool eof;
	bool ask;         /* atomic: pcap_in_ask_stop was called */
	bool stopped;     /* a wait for more bytes ended because it was asked to */
	int error;        /* errno of a failed read, or 0 */
	uint64_t fetched; /* bytes read from the file; the last ones may still be in the buffer */
	FILE *file;       /* what libpcap reads; closed by it */
	uint8_t *buf;     /* of that */
};

/*
 * Opens a file to be read, "-" = standard input; the descriptor or a negative errno. A named pipe
 * without a writer is waited for at the first read and not here, where nothing could end it.
 */
int pcap_in_open_path(const char *path);

/*
 * For whoever will open the file later, and maybe several times: keeps it from being overwritten
 * meanwhile by opening and locking it (*fd, to be closed at the end; -1 where there is nothing to
 * lock, as for a pipe). A negative errno with a sentence: it cannot be read, or is being written.
 */
int pcap_in_reserve(const char *path, int *fd, struct ho_err *err);

/*
 * Takes fd over (closed on failure too) and reads the file's header. -EINVAL when it is not an
 * Ethernet capture, -EINTR when the wait for a silent pipe was ended. rt may be NULL.
 *
 * A wait for more bytes ends at rt_stop, at pcap_in_ask_stop, and when a SIGINT, SIGTERM or SIGHUP
 * is pending: a program that blocks them to look at them later cannot while it is in here.
 */
int pcap_in_open(struct pcap_in *in, struct rt *rt, int fd, struct ho_err *err);

/* Back to the first record. */
int pcap_in_rewind(struct pcap_in *in, struct ho_err *err);

/* The offset in the file of the next byte that libpcap will get. */
uint64_t pcap_in_byte(const struct pcap_in *in);

/* Would a read of the next record return at once, with data or the end? Only false for a stream
 * from which nothing is there now. */
bool pcap_in_ready(struct pcap_in *in);

/* Ends a wait for more bytes of another thread, now or later, within 50 ms. */
void pcap_in_ask_stop(struct pcap_in *in);

void pcap_in_close(struct pcap_in *in);

#endif
