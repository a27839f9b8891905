/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the pcap: port: what its files share.
 *
 *   pcap.c        names, options, which direction; open and close
 *   pcap_in.c     the bytes under libpcap
 *   pcap_out.c    bytes on their way to a file or a pipe
 *   pcap_schedule.c  when recorded frames are due
 *   pcap_read.c   the receive queue: records to frames, replay in time, loops, memory
 *   pcap_write.c  the transmit queue: frames to records
 */
#ifndef HOLDOFF_PORT_PCAP_PORT_H
#define HOLDOFF_PORT_PCAP_PORT_H

#include "port/bpf.h"
#include "port/pcap_in.h"
#include "port/pcap_out.h"
#include "port/pcap_schedule.h"
#include "port/port.h"

#define PCAP_RECORD_HEADER_BYTES 16
#define PCAP_FILE_HEADER_BYTES   24

struct pcap_opts {
	uint64_t loop;  /* passes over the file; 0 = without end */
	double speed;   /* 0 = as fast as the user takes them */
	uint64_t limit; /* only so many frames of the file; 0 = all */
	bool memory;    /* read it once, replay from memory */
	uint64_t snaplen;
	bool nano;
};

/* The frame that is next to be received. */
struct pcap_frame {
	const uint8_t *data;
	uint32_t len;
	uint64_t time_ns; /* since the epoch, as the file says */
};

/* A file that was read into memory: records one after the other. */
struct pcap_memory {
	uint8_t *bytes; /* struct pcap_memory_record and its data, padded to 8 bytes */
	size_t used, room, pos;
};

struct pcap_rxq {
	struct port_rxq base;
	const struct pcap_opts *opts;
	bool active; /* this port reads */
	bool ended;
	bool have; /* `next` holds a frame */
	struct pcap_frame next;
	struct pcap_in in;
	struct bpf_program *filter; /* NULL = all */
	struct pcap_memory mem;
	uint64_t pass;      /* of opts->loop */
	uint64_t record;    /* of this pass, from 1 */
	uint64_t delivered; /* frames of this pass that the filter and the checks let through */
	/* Replay in time. */
	struct pcap_schedule schedule;
	uint64_t start_ns; /* when the first frame was prepared, on the executor's clock; 0 = not */
	uint64_t due_ns;   /* when `next` is to be given, on that clock */
	struct rt_event *event;
	struct ho_err late;
};

struct pcap_txq {
	struct port_txq base;
	const struct pcap_opts *opts;
	bool active; /* this port writes */
	int fd;
	struct pcap_out out;
	bool regular;        /* a file that can be cut */
	uint64_t file_bytes; /* whole records in the file, with its header */
	uint64_t records;    /* in the file */
	uint8_t *buf;        /* records on their way to the file */
	size_t used;
	uint64_t oldest_ns; /* when the first record in buf came */
	struct ho_err late;
};

/* Prepares q to read fd, which it takes over. filter may be NULL. */
int pcap_read_open(struct pcap_rxq *q, int fd, const struct pcap_opts *opts, const char *filter,
		   struct ho_err *err);
void pcap_read_close(struct pcap_rxq *q);
bool pcap_read_arm(struct port_rxq *base);
void pcap_read_disarm(struct port_rxq *base);

/* Prepares q to write fd, which it takes over. The file is as it was until pcap_write_begin, which
 * empties it and writes its header: what fails before that costs nobody an old capture. */
int pcap_write_open(struct pcap_txq *q, int fd, const struct pcap_opts *opts, struct ho_err *err);
int pcap_write_begin(struct pcap_txq *q, struct ho_err *err);
/* Writes what is buffered; the counters are final afterwards. */
void pcap_write_stop(struct pcap_txq *q);
void pcap_write_close(struct pcap_txq *q);

#endif
