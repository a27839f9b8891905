// SPDX-License-Identifier: BSD-2-Clause
#include "port/pcap_out.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"

/* How late a stop is noticed during a wait. */
#define SLICE_MS ((int)(RT_OS_SIGNAL_SLICE_NS / 1000000))

#define MAGIC_NANO        0xa1b23c4du
#define MAGIC_MICRO       0xa1b2c3d4u
#define LINKTYPE_ETHERNET 1

static_assert(sizeof(struct pcap_out_header) == 24, "as the format says");
static_assert(sizeof(struct pcap_out_record) == 16, "as the format says");

struct pcap_out_header pcap_out_header(bool nano, uint32_t snaplen)
{
	return (struct pcap_out_header){
		.magic = nano ? MAGIC_NANO : MAGIC_MICRO,
		.major = 2,
		.minor = 4,
		.snaplen = snaplen,
		.link = LINKTYPE_ETHERNET,
	};
}

struct pcap_records pcap_records_count(const uint8_t *buf, size_t used, size_t done)
{
	struct pcap_records in = { 0 };

	for (size_t at = 0; at < used;) {
		struct pcap_out_record h;

		memcpy(&h, buf + at, sizeof(h));
		at += sizeof(h) + h.caplen;
		if (at > done)
			break;
		in.frames++;
		in.frame_bytes += h.len;
		in.file_bytes = at;
	}
	return in;
}

int pcap_lock(int fd, int how, struct ho_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (flock(fd, how | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		return 0;
	return ho_err_set(err, -EBUSY,
			  how == LOCK_SH ? "is being written by another port or process"
					 : "is being read or written by another port or process; "
					   "take another name for the output");
}

int pcap_out_open_path(struct rt *rt, const char *path, int flags, uint64_t deadline_ns)
{
	int fd;

	if (!strcmp(path, "-"))
		return STDOUT_FILENO;
	/* Without O_NONBLOCK a named pipe would be waited for here, where nothing could end it. */
	flags |= O_WRONLY | O_CLOEXEC | O_NONBLOCK;
	while ((fd = open(path, flags, 0666)) < 0 && errno == ENXIO) {
		struct stat st;

		/* Sockets give this error too, for ever. */
		if (stat(path, &st) < 0 || !S_ISFIFO(st.st_mode))
			return -ENXIO;
		if (rt_stopping(rt) || rt_os_signal_pending())
			return -EINTR;
		if (rt_now_ns(rt) >= deadline_ns)
			return -ETIMEDOUT;
		poll(NULL, 0, SLICE_MS);
	}
	return fd < 0 ? -errno : fd;
}

const char *pcap_out_error(int rc)
{
	return rc == -EINTR ? "its reader did not read to the end" : ho_strerror(rc);
}

const char *pcap_out_open_error(int rc)
{
	switch (rc) {
	case -EINTR:
		return "interrupted before anybody read from this pipe";
	case -ETIMEDOUT:
		return "nobody reads from this pipe";
	default:
		return ho_strerror(rc);
	}
}

void pcap_out_init(struct pcap_out *out, struct rt *rt, int fd)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	*out = (struct pcap_out){ .rt = rt, .fd = fd };
	out->stream = fstat(fd, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode);
	out->blocking = out->stream && flags >= 0 && !(flags & O_NONBLOCK);
}

static bool patient(struct pcap_out *out)
{
	uint64_t now;

	if (rt_stopping(out->rt))
		return false;
	/* The second: whoever would look at signals may be the one that waits here. */
	if (!__atomic_load_n(&out->ask, __ATOMIC_RELAXED) && !rt_os_signal_pending())
		return true;
	now = rt_now_ns(out->rt);
	if (!out->grace_ns)
		out->grace_ns = now + PCAP_OUT_GRACE_NS;
	return now < out->grace_ns;
}

/* Until something can be written, or an error be told. */
static int wait_writable(struct pcap_out *out)
{
	struct pollfd p = { .fd = out->fd, .events = POLLOUT };

	while (poll(&p, 1, SLICE_MS) == 0) {
		if (!patient(out))
			return -EINTR;
	}
	return 0;
}

int pcap_out_write(struct pcap_out *out, const void *from, size_t bytes, size_t *done)
{
	*done = 0;
	while (*done < bytes) {
		/* A pipe that says it is writable takes so much without waiting. */
		size_t some =
			out->blocking ? HO_MIN(bytes - *done, (size_t)PIPE_BUF) : bytes - *done;
		ssize_t n;
		int rc = out->blocking ? wait_writable(out) : 0;

		if (rc < 0)
			return rc;
		n = write(out->fd, (const char *)from + *done, some);
		if (n < 0 && errno == EAGAIN) {
			rc = wait_writable(out);
			if (rc < 0)
				return rc;
		} else if (n < 0 && errno != EINTR) {
			return -errno;
		} else if (n > 0) {
			*done += (size_t)n;
		}
	}
	return 0;
}

void pcap_out_ask_stop(struct pcap_out *out)
{
	__atomic_store_n(&out->ask, true, __ATOMIC_RELAXED);
}
