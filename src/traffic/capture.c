// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/capture.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "port/pcap_out.h"
#include "traffic/filter.h"

#define SNAPLEN 262144 /* what tcpdump and Wireshark take as "all" */
/* Any frame and its record's header fit it when it is empty. */
#define BUFFER_BYTES (256u << 10)
static_assert(BUFFER_BYTES > PK_FRAME_MAX_BYTES + sizeof(struct pcap_out_record), "a frame fits");

struct tr_capture {
	pthread_mutex_t lock;
	struct pcap_out out;
	char *path;
	bool regular;        /* a file that can be cut */
	uint64_t file_bytes; /* of whole records in the file, with its header */
	uint64_t written;    /* frames in the file */
	uint64_t failed;
	int error; /* the first one, a negative errno */
	uint8_t *buf;
	size_t used;
};

/* Standard output is not ours to close. */
static int close_file(struct tr_capture *capture)
{
	return capture->out.fd > STDERR_FILENO ? close(capture->out.fd) : 0;
}

static void write_out(struct tr_capture *capture)
{
	struct pcap_records all = pcap_records_count(capture->buf, capture->used, capture->used);
	struct pcap_records in;
	size_t done;
	int rc = pcap_out_write(&capture->out, capture->buf, capture->used, &done);

	in = pcap_records_count(capture->buf, capture->used, done);
	capture->used = 0;
	capture->written += in.frames;
	capture->file_bytes += in.file_bytes;
	capture->failed += all.frames - in.frames;
	if (rc == 0)
		return;
	capture->error = rc;
	/* A reader who is late is one only at the end, where it is said anyway. */
	if (rc != -EINTR)
		ho_warn("the capture '%s' ends after %llu frames: %s", capture->path,
			(unsigned long long)capture->written, pcap_out_error(rc));
	if (capture->regular && ftruncate(capture->out.fd, (off_t)capture->file_bytes) < 0)
		ho_warn("the capture '%s' ends in a broken record", capture->path);
}

/* Empties the file and writes its header. */
static int begin(struct tr_capture *capture, struct ho_err *err)
{
	struct pcap_out_header h = pcap_out_header(true, SNAPLEN);
	int fd = capture->out.fd, rc;
	struct stat st;
	size_t done;

	rc = fd > STDERR_FILENO ? pcap_lock(fd, LOCK_EX, err) : 0;
	if (rc < 0)
		return ho_err_prefix(err, "the capture '%s'", capture->path);
	capture->regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
			   (fd > STDERR_FILENO || st.st_size == 0);
	if (capture->regular && ftruncate(fd, 0) < 0)
		rc = -errno;
	if (rc == 0)
		rc = pcap_out_write(&capture->out, &h, sizeof(h), &done);
	if (rc < 0)
		return ho_err_set(err, rc, "cannot write the capture: %s: %s", capture->path,
				  pcap_out_error(rc));
	capture->file_bytes = sizeof(h);
	return 0;
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
	capture->buf = malloc(BUFFER_BYTES);
	if (!capture->path || !capture->buf) {
		rc = ho_err_set(err, -ENOMEM, "out of memory for the capture '%s'", path);
		goto fail;
	}
	/* Not cut before it is known that nobody reads it. */
	fd = pcap_out_open_path(rt, path, O_CREAT, deadline_ns);
	if (fd < 0) {
		rc = ho_err_set(err, fd, "cannot write the capture: %s: %s", path,
				pcap_out_open_error(fd));
		goto fail;
	}
	pcap_out_init(&capture->out, rt, fd);
	rc = begin(capture, err);
	if (rc < 0)
		goto fail;
	*out = capture;
	return 0;
fail:
	close_file(capture);
	free(capture->path);
	free(capture->buf);
	free(capture);
	return rc;
}

void tr_capture_write(struct tr_capture *capture, const struct pk_arena *arena,
		      struct pk_slot *slots, unsigned n, uint64_t time_ns)
{
	struct pcap_out_record header = {
		.sec = (uint32_t)(time_ns / 1000000000u),
		.fraction = (uint32_t)(time_ns % 1000000000u),
	};

	pthread_mutex_lock(&capture->lock);
	for (unsigned i = 0, used; i < n; i += used) {
		if (slots[i].flags & PK_VLAN)
			tr_vlan_into_frame(arena, &slots[i]);
		used = pk_frame_slots(slots + i, n - i);
		header.len = pk_frame_bytes(slots + i, used);
		header.caplen = HO_MIN(header.len, (uint32_t)PK_FRAME_MAX_BYTES);
		if (capture->used + sizeof(header) + header.caplen > BUFFER_BYTES)
			write_out(capture);
		if (capture->error) {
			capture->failed++;
			continue;
		}
		memcpy(capture->buf + capture->used, &header, sizeof(header));
		capture->used += sizeof(header);
		pk_frame_to_bytes(arena, slots + i, used, capture->buf + capture->used,
				  header.caplen);
		capture->used += header.caplen;
	}
	/* Whoever reads a pipe wants to see what comes when it comes. */
	if (capture->out.stream && capture->used)
		write_out(capture);
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
	if (capture->used)
		write_out(capture);
	*written = capture->written;
	if (capture->error)
		rc = ho_err_set(err, -EIO, "the capture '%s' is not complete: %s", capture->path,
				pcap_out_error(capture->error));
	/* A full disk or quota may show itself only now (NFS). */
	if (close_file(capture) < 0 && !capture->error)
		rc = ho_err_set(err, -errno, "closing the capture '%s' failed: %s", capture->path,
				ho_strerror(errno));
	pthread_mutex_destroy(&capture->lock);
	free(capture->path);
	free(capture->buf);
	free(capture);
	return rc;
}
