// SPDX-License-Identifier: BSD-2-Clause
/*
 * The transmit queue of pcap: ports.
 *
 * Records are built in a buffer and written when it is full or, through reap, old. Not by libpcap's
 * writer: we must know for each record whether it reached the file. Until then the frame is in
 * flight; when writing fails, the records that are not wholly in the file are tx_write drops, the
 * file is cut behind the last whole record, and nothing more is written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "port/pcap_port.h"

#define WRITE_BUFFER_BYTES  (256u << 10)
#define WRITE_OLD_NS        20000000u /* a reader at the other end of a pipe waits no longer */
#define VLAN_TAG_BYTES      4
#define MAC_ADDRESSES_BYTES 12
#define ETHERTYPE_8021Q     0x8100

static_assert(WRITE_BUFFER_BYTES > PK_FRAME_MAX_BYTES + VLAN_TAG_BYTES + PCAP_RECORD_HEADER_BYTES,
	      "any record fits the empty buffer");

/* Writing failed with `done` bytes of the buffer written: which records are in the file? */
static void write_failed(struct pcap_txq *q, int rc, size_t done)
{
	struct pcap_records all = pcap_records_count(q->buf, q->used, q->used);
	struct pcap_records in = pcap_records_count(q->buf, q->used, done);
	bool broken;

	q->records += in.frames;
	q->file_bytes += in.file_bytes;
	port_count(&q->base.ctr, in.frames, in.frame_bytes);
	port_drop(&q->base.ctr, PORT_DROP_TX_WRITE, all.frames - in.frames);
	q->used = 0;
	broken = q->regular && ftruncate(q->fd, (off_t)q->file_bytes) < 0;
	/* A reader that stalled is a failure, not the user's wish. */
	ho_err_set(&q->late, rc == -EINTR ? -EIO : rc, "writing failed after %llu records: %s%s",
		   (unsigned long long)q->records, pcap_out_error(rc),
		   broken ? "; the file ends in a broken record" : "");
}

static void flush(struct pcap_txq *q)
{
	struct pcap_records in;
	size_t done;
	int rc;

	if (!q->used)
		return;
	rc = pcap_out_write(&q->out, q->buf, q->used, &done);
	if (rc < 0) {
		write_failed(q, rc, done);
		return;
	}
	in = pcap_records_count(q->buf, q->used, q->used);
	q->records += in.frames;
	q->file_bytes += in.file_bytes;
	q->used = 0;
	port_count(&q->base.ctr, in.frames, in.frame_bytes);
}

/* Copies the frame, with the tag that travels beside it put in its place, up to `max` bytes. */
static void copy_frame(const struct pk_arena *arena, const struct pk_slot *slots, unsigned n,
		       uint8_t *out, uint32_t max)
{
	uint8_t head[MAC_ADDRESSES_BYTES + VLAN_TAG_BYTES];

	if (!(slots[0].flags & PK_VLAN)) {
		pk_frame_to_bytes(arena, slots, n, out, max);
		return;
	}
	/* Shifted by the tag, then the addresses and the tag over the gap's front. */
	if (max > VLAN_TAG_BYTES)
		pk_frame_to_bytes(arena, slots, n, out + VLAN_TAG_BYTES, max - VLAN_TAG_BYTES);
	pk_frame_to_bytes(arena, slots, n, head, MAC_ADDRESSES_BYTES);
	head[12] = ETHERTYPE_8021Q >> 8;
	head[13] = ETHERTYPE_8021Q & 0xff;
	head[14] = (uint8_t)(slots[0].vlan >> 8);
	head[15] = (uint8_t)slots[0].vlan;
	memcpy(out, head, HO_MIN(max, (uint32_t)sizeof(head)));
}

/* `len`: the frame's bytes, with its tag. */
static void append(struct pcap_txq *q, const struct pk_slot *slots, unsigned n, uint32_t len,
		   uint64_t wall_ns)
{
	struct pcap_out_record h = { .len = len };
	uint64_t time_ns = wall_ns;

	if (slots[0].flags & PK_TIME)
		memcpy(&time_ns, pk_data(q->base.arena, slots) - sizeof(time_ns), sizeof(time_ns));
	h.sec = (uint32_t)(time_ns / 1000000000u);
	h.fraction = (uint32_t)(time_ns % 1000000000u);
	if (!q->opts->nano)
		h.fraction /= 1000;
	h.caplen = (uint32_t)HO_MIN((uint64_t)len, q->opts->snaplen);
	if (q->used + sizeof(h) + h.caplen > WRITE_BUFFER_BYTES) {
		flush(q);
		if (q->late.code) {
			port_drop(&q->base.ctr, PORT_DROP_TX_WRITE, 1);
			return;
		}
	}
	if (!q->used)
		q->oldest_ns = rt_now_ns(q->base.port->rt);
	memcpy(q->buf + q->used, &h, sizeof(h));
	copy_frame(q->base.arena, slots, n, q->buf + q->used + sizeof(h), h.caplen);
	q->used += sizeof(h) + h.caplen;
}

static unsigned pcap_tx(struct port_txq *base, struct pk_slot *slots, unsigned n)
{
	struct pcap_txq *q = (struct pcap_txq *)base;
	struct timespec wall;
	uint64_t wall_ns;

	if (ho_unlikely(q->late.code)) {
		port_tx_discard(base, slots, n, PORT_DROP_TX_WRITE);
		return n;
	}
	clock_gettime(CLOCK_REALTIME, &wall);
	wall_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
	for (unsigned i = 0, k; i < n; i += k) {
		uint32_t len;

		k = pk_frame_slots(slots + i, n - i);
		len = pk_frame_bytes(slots + i, k);
		base->accepted++;
		if (ho_unlikely(len < 14))
			port_drop(&base->ctr, PORT_DROP_TX_TOO_SHORT, 1);
		else if (ho_unlikely(len > PK_FRAME_MAX_BYTES))
			port_drop(&base->ctr, PORT_DROP_TX_TOO_LONG, 1);
		else if (ho_unlikely(q->late.code))
			port_drop(&base->ctr, PORT_DROP_TX_WRITE, 1);
		else
			append(q, slots + i, k,
			       len + (slots[i].flags & PK_VLAN ? VLAN_TAG_BYTES : 0), wall_ns);
	}
	for (unsigned i = 0; i < n; i += PK_CACHE_BULK)
		pk_free_slots(base->cache, slots + i, HO_MIN(n - i, (unsigned)PK_CACHE_BULK));
	return n;
}

static unsigned pcap_reap(struct port_txq *base)
{
	struct pcap_txq *q = (struct pcap_txq *)base;
	uint64_t before = base->ctr.packets;

	if (q->used && rt_now_ns(base->port->rt) - q->oldest_ns > WRITE_OLD_NS)
		flush(q);
	return (unsigned)(base->ctr.packets - before);
}

int pcap_write_open(struct pcap_txq *q, int fd, const struct pcap_opts *opts, struct ho_err *err)
{
	struct stat st;

	q->fd = fd;
	pcap_out_init(&q->out, q->base.port->rt, fd);
	q->opts = opts;
	q->active = true;
	q->base.tx = pcap_tx;
	q->base.reap = pcap_reap;
	q->regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		     (fd > STDERR_FILENO || st.st_size == 0);
	q->buf = malloc(WRITE_BUFFER_BYTES);
	if (!q->buf) {
		pcap_write_close(q);
		return ho_err_set(err, -ENOMEM, "out of memory for the file's buffer");
	}
	return 0;
}

int pcap_write_begin(struct pcap_txq *q, struct ho_err *err)
{
	struct pcap_out_header h = pcap_out_header(q->opts->nano, (uint32_t)q->opts->snaplen);
	size_t done;
	int rc;

	/* What standard output is redirected to was emptied or not as its user wished. */
	if (q->regular && q->fd > STDERR_FILENO && ftruncate(q->fd, 0) < 0)
		return ho_err_set(err, -errno, "cannot be emptied: %s", ho_strerror(errno));
	rc = pcap_out_write(&q->out, &h, sizeof(h), &done);
	if (rc < 0)
		return ho_err_set(err, rc, "cannot write its header: %s", ho_strerror(rc));
	q->file_bytes = sizeof(h);
	return 0;
}

void pcap_write_stop(struct pcap_txq *q)
{
	int rc = 0;

	if (!q->active || q->fd < 0)
		return;
	flush(q);
	/* A full disk or quota may show itself only now (NFS). */
	if (q->fd > STDERR_FILENO && close(q->fd) < 0)
		rc = -errno;
	q->fd = -1;
	if (rc < 0 && !q->late.code)
		ho_err_set(&q->late, rc, "closing the file failed: %s", ho_strerror(rc));
}

void pcap_write_close(struct pcap_txq *q)
{
	if (!q->active)
		return;
	if (q->fd > STDERR_FILENO)
		close(q->fd);
	free(q->buf);
	q->fd = -1;
	q->active = false;
}
