// SPDX-License-Identifier: BSD-2-Clause
#include "port/pcap_in.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/pcap_out.h"

#define IN_BUFFER_BYTES (256u << 10)
/* How late a stop is noticed while a pipe is silent. */
#define IN_WAIT_SLICE_MS ((int)(RT_OS_SIGNAL_SLICE_NS / 1000000))

static bool must_stop(const struct pcap_in *in)
{
	return __atomic_load_n(&in->ask, __ATOMIC_RELAXED) || (in->rt && rt_stopping(in->rt)) ||
	       rt_os_signal_pending();
}

static void wait_readable(struct pcap_in *in)
{
	struct pollfd p = { .fd = in->fd, .events = POLLIN };

	/* What is there already is read without asking anybody. */
	if (poll(&p, 1, 0) != 0)
		return;
	while (!must_stop(in)) {
		if (poll(&p, 1, IN_WAIT_SLICE_MS) != 0)
			return;
	}
	in->stopped = true;
}

/* The stream that libpcap sees reads through these. It has the buffer: libpcap asks for a few bytes
 * at a time, and stdio without a buffer goes through a function call for each byte of them. */
static ssize_t cookie_read(void *cookie, char *out, size_t want)
{
	struct pcap_in *in = cookie;
	ssize_t n = 0;

	if (in->eof)
		return 0;
	do {
		if (in->stream)
			wait_readable(in);
		if (!in->stopped)
			n = read(in->fd, out, want);
	} while (!in->stopped && n < 0 && (errno == EINTR || errno == EAGAIN));
	if (n < 0)
		in->error = errno;
	in->eof = n <= 0;
	if (n > 0)
		in->fetched += (uint64_t)n;
	return n;
}

/* Only says where we are: ftello takes what lies in the buffer off it. */
static int cookie_seek(void *cookie, off64_t *offset, int whence)
{
	struct pcap_in *in = cookie;

	if (*offset != 0 || whence != SEEK_CUR) {
		errno = ESPIPE;
		return -1;
	}
	*offset = (off64_t)in->fetched;
	return 0;
}

uint64_t pcap_in_byte(const struct pcap_in *in)
{
	off_t at = ftello(in->file);

	return at < 0 ? in->fetched : (uint64_t)at;
}

/* What libpcap says, without the guesses that it makes about the program's user. */
static int header_error(struct pcap_in *in, const char *says, struct ho_err *err)
{
	if (in->stopped)
		return ho_err_set(err, -EINTR, "interrupted before its header came");
	if (in->error)
		return ho_err_set(err, -in->error, "reading its header failed: %s",
				  ho_strerror(in->error));
	if (in->fetched == 0)
		return ho_err_set(err, -EINVAL, "is empty, not a capture file");
	return ho_err_set(err, -EINVAL, "is not a pcap or pcapng file that can be read: %s", says);
}

static int open_pcap(struct pcap_in *in, struct ho_err *err)
{
	cookie_io_functions_t io = { .read = cookie_read, .seek = cookie_seek };
	char says[PCAP_ERRBUF_SIZE] = "";
	FILE *file = fopencookie(in, "r", io);
	int link;

	if (!file)
		return ho_err_set(err, -ENOMEM, "out of memory");
	setvbuf(file, (char *)in->buf, _IOFBF, IN_BUFFER_BYTES);
	in->file = file;
	in->pcap = pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, says);
	if (!in->pcap) {
		fclose(file);
		return header_error(in, says, err);
	}
	link = pcap_datalink(in->pcap);
	if (link != DLT_EN10MB) {
		const char *name = pcap_datalink_val_to_name(link);
		char number[24];

		snprintf(number, sizeof(number), "number %d", link);
		pcap_close(in->pcap);
		in->pcap = NULL;
		return ho_err_set(err, -EINVAL,
				  "was captured on a link of type %s; only Ethernet (EN10MB) "
				  "captures can be replayed",
				  name ? name : number);
	}
	return 0;
}

int pcap_in_open_path(const char *path)
{
	struct stat st;
	int fd;

	if (!strcmp(path, "-"))
		return STDIN_FILENO;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		close(fd);
		return -EISDIR;
	}
	return fd;
}

int pcap_in_reserve(const char *path, int *fd, struct ho_err *err)
{
	struct stat st;
	int rc;

	*fd = -1;
	if (!strcmp(path, "-"))
		return 0;
	if (stat(path, &st) < 0)
		return ho_err_set(err, -errno, "%s: %s", path, ho_strerror(errno));
	if (!S_ISREG(st.st_mode))
		return 0;
	*fd = pcap_in_open_path(path);
	if (*fd < 0)
		return ho_err_set(err, *fd, "%s: %s", path, ho_strerror(*fd));
	rc = pcap_lock(*fd, LOCK_SH, err);
	if (rc < 0) {
		ho_err_prefix(err, "%s", path);
		close(*fd);
		*fd = -1;
	}
	return rc;
}

int pcap_in_open(struct pcap_in *in, struct rt *rt, int fd, struct ho_err *err)
{
	struct stat st;
	int rc;

	*in = (struct pcap_in){ .rt = rt, .fd = fd };
	in->buf = malloc(IN_BUFFER_BYTES);
	if (!in->buf || fstat(fd, &st) < 0) {
		rc = ho_err_set(err, -ENOMEM, "out of memory for the file's buffer");
		goto fail;
	}
	in->stream = !S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode);
	if (!in->stream)
		posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	rc = open_pcap(in, err);
	if (rc < 0)
		goto fail;
	return 0;
fail:
	pcap_in_close(in);
	return rc;
}

int pcap_in_rewind(struct pcap_in *in, struct ho_err *err)
{
	pcap_close(in->pcap);
	in->pcap = NULL;
	if (lseek(in->fd, 0, SEEK_SET) < 0)
		return ho_err_set(err, -errno, "cannot go back to its beginning: %s",
				  ho_strerror(errno));
	in->fetched = 0;
	in->eof = false;
	return open_pcap(in, err);
}

bool pcap_in_ready(struct pcap_in *in)
{
	struct pollfd p = { .fd = in->fd, .events = POLLIN };

	return !in->stream || in->eof || pcap_in_byte(in) < in->fetched || poll(&p, 1, 0) != 0;
}

void pcap_in_ask_stop(struct pcap_in *in)
{
	__atomic_store_n(&in->ask, true, __ATOMIC_RELAXED);
}

void pcap_in_close(struct pcap_in *in)
{
	if (in->pcap)
		pcap_close(in->pcap);
	if (in->fd > STDIN_FILENO)
		close(in->fd);
	free(in->buf);
	*in = (struct pcap_in){ .fd = -1 };
}
