// SPDX-License-Identifier: BSD-2-Clause
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

/* One who has blocked the signals that ask it to end hears of them as often. */
#define LOOK_MS 100
/* So many looks that find nothing are worth a word. */
#define LOOKS_SILENT 10

static bool shall_end(void)
{
	sigset_t came;

	return sigpending(&came) == 0 &&
	       (sigismember(&came, SIGINT) == 1 || sigismember(&came, SIGTERM) == 1 ||
		sigismember(&came, SIGHUP) == 1);
}

/* Until there is something to read, or its writer has gone. */
static int wait_for(const char *path, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	unsigned looks = 0;
	int n;

	while ((n = poll(&p, 1, LOOK_MS)) == 0) {
		if (shall_end())
			return -EINTR;
		if (++looks == LOOKS_SILENT)
			ho_note("%s: nothing comes from there; waiting", path);
	}
	return n < 0 ? -errno : 0;
}

static int open_fd(const char *path, struct ho_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), rc;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		rc = -errno;
	else if (S_ISDIR(st.st_mode))
		rc = -EISDIR;
	else if (S_ISFIFO(st.st_mode))
		rc = wait_for(path, fd);
	else
		rc = 0;
	if (rc == 0 && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) < 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return rc == -EISDIR ? ho_err_set(err, rc, "%s: is a directory, not a file", path)
			     : ho_err_set(err, rc, "%s: %s", path, ho_strerror(rc));
}

int ho_file_open(const char *path, FILE **out, struct ho_err *err)
{
	int fd = open_fd(path, err);

	if (fd < 0)
		return fd;
	*out = fdopen(fd, "r");
	if (*out)
		return 0;
	close(fd);
	return ho_err_set(err, -ENOMEM, "%s: out of memory", path);
}

int ho_file_read(const char *path, size_t most, char **text, size_t *bytes, struct ho_err *err)
{
	int fd = open_fd(path, err), rc = 0;
	char *buffer;
	size_t used = 0;
	ssize_t n = 1;

	if (fd < 0)
		return fd;
	buffer = malloc(most + 2);
	if (!buffer)
		rc = -ENOMEM;
	while (rc == 0 && n > 0 && used <= most) {
		rc = wait_for(path, fd);
		n = rc == 0 ? read(fd, buffer + used, most + 1 - used) : 0;
		if (n < 0)
			rc = -errno;
		else
			used += (size_t)n;
	}
	close(fd);
	if (rc < 0)
		ho_err_set(err, rc, "%s: %s", path, ho_strerror(rc));
	else if (used > most)
		rc = ho_err_set(err, -EINVAL, "%s: is longer than %zu bytes", path, most);
	if (rc < 0) {
		free(buffer);
		return rc;
	}
	buffer[used] = '\0';
	*text = buffer;
	*bytes = used;
	return 0;
}
