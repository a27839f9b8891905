// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port/pcap_out.h"
#include "traffic/filter.h"

#define BUFFER_BYTES (64u << 10)

struct tr_capture {
	pthread_mutex_t lock;
	pcap_t *dead;
	pcap_dumper_t *dumper;
	struct pcap_out out;
	char *path;
	uint64_t written, failed;
	int error;                         /* the first one's errno */
	uint8_t frame[PK_FRAME_MAX_BYTES]; /* a frame of several slots, put together */
};

/* Standard output is not ours to close. */
static int close_file(struct tr_capture *capture)
{
	return capture->out.fd > STDERR_FILENO ? close(capture->out.fd) : 0;
}

/* What the stream under libpcap's writer writes with; anything less than all is its error. */
static ssize_t cookie_write(void *cookie, const char *from, size_t bytes)
{
	struct tr_capture *capture = cookie;
	size_t done;
	int rc = pcap_out_write(&capture->out, from, bytes, &done);

	if (rc < 0) {
		errno = -rc;
		return 0;
	}
	return (ssize_t)bytes;
}

static int open_dumper(struct tr_capture *capture, struct ho_err *err)
{
	const cookie_io_functions_t io = { .write = cookie_write };
	FILE *file = fopencookie(capture, "w", io);

	if (!file)
		return ho_err_set(err, -ENOMEM, "out of memory for the capture '%s'",
				  capture->path);
	setvbuf(file, NULL, _IOFBF, BUFFER_BYTES);
	errno = 0;
	capture->dumper = pcap_dump_fopen(capture->dead, file);
	if (capture->dumper)
		return 0;
	fclose(file);
	return ho_err_set(err, errno ? -errno : -EIO, "cannot write the capture: %s",
			  pcap_geterr(capture->dead));
}

int tr_capture_open(struct rt *rt, const char *path, uint64_t deadline_ns, struct tr_capture **out,
		    struct ho_err *err)
{
	struct tr_capture *capture = calloc(1, sizeof(*capture));
	int rc, fd;

	if (!capture)
		return ho_err_set(err, -ENOMEM, "out of memory for the capture '%s'", path);
	capture->out.fd = -1;
	pthread_mutex_init(&capture->lock, NULL);
	capture->path = strdup(path);
	capture->dead = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, PK_FRAME_MAX_BYTES,
							     PCAP_TSTAMP_PRECISION_NANO);
	if (!capture->dead || !capture->path) {
		rc = ho_err_set(err, -ENOMEM, "out of memory for the capture '%s'", path);
		goto fail;
	}
	fd = pcap_out_open_path(rt, path, O_CREAT | O_TRUNC, deadline_ns);
	if (fd < 0) {
		rc = ho_err_set(err, fd, "cannot write the capture: %s: %s", path,
				pcap_out_open_error(fd));
		goto fail;
	}
	pcap_out_init(&capture->out, rt, fd);
	rc = open_dumper(capture, err);
	if (rc < 0)
		goto fail;
	*out = capture;
	return 0;
fail:
	close_file(capture);
	if (capture->dead)
		pcap_close(capture->dead);
	free(capture->path);
	free(capture);
	return rc;
}

void tr_capture_write(struct tr_capture *capture, const struct pk_arena *arena,
		      struct pk_slot *slots, unsigned n, uint64_t time_ns)
{
	FILE *file = pcap_dump_file(capture->dumper);
	struct pcap_pkthdr header = {
		/* With nanosecond precision tv_usec holds nanoseconds. */
		.ts = { (time_t)(time_ns / 1000000000u), (suseconds_t)(time_ns % 1000000000u) },
	};

	pthread_mutex_lock(&capture->lock);
	for (unsigned i = 0, used; i < n; i += used) {
		const uint8_t *frame;

		if (slots[i].flags & PK_VLAN)
			tr_vlan_into_frame(arena, &slots[i]);
		frame = pk_data(arena, &slots[i]);
		used = pk_frame_slots(slots + i, n - i);
		header.len = pk_frame_bytes(slots + i, used);
		header.caplen = HO_MIN(header.len, (bpf_u_int32)PK_FRAME_MAX_BYTES);
		if (used > 1) {
			pk_frame_to_bytes(arena, slots + i, used, capture->frame,
					  sizeof(capture->frame));
			frame = capture->frame;
		}
		if (!capture->error)
			pcap_dump((u_char *)capture->dumper, &header, frame);
		if (!capture->error && ferror(file))
			capture->error = errno ? errno : EIO;
		if (capture->error)
			capture->failed++;
		else
			capture->written++;
	}
	pthread_mutex_unlock(&capture->lock);
}

void tr_capture_ask_stop(struct tr_capture *capture)
{
	if (capture)
		pcap_out_ask_stop(&capture->out);
}

int tr_capture_close(struct tr_capture *capture, uint64_t *written, struct ho_err *err)
{
	int rc = 0;

	*written = 0;
	if (!capture)
		return 0;
	errno = 0;
	if (pcap_dump_flush(capture->dumper) < 0 && !capture->error)
		capture->error = errno ? errno : EIO;
	*written = capture->written;
	if (capture->error)
		rc = ho_err_set(err, -EIO, "the capture '%s' is not complete: %s", capture->path,
				pcap_out_error(-capture->error));
	pcap_dump_close(capture->dumper);
	if (close_file(capture) < 0 && !capture->error)
		rc = ho_err_set(err, -errno, "closing the capture '%s' failed: %s", capture->path,
				ho_strerror(errno));
	pcap_close(capture->dead);
	pthread_mutex_destroy(&capture->lock);
	free(capture->path);
	free(capture);
	return rc;
}
