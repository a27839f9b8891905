// SPDX-License-Identifier: BSD-2-Clause
#include "base/stop_signals.h"

#include <errno.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

int ho_stop_signals_open(struct ho_stop_signals *s, struct ho_err *err)
{
	sigset_t set;
	int rc;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	pthread_sigmask(SIG_BLOCK, &set, &s->before);
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->fd >= 0)
		return 0;
	rc = -errno;
	pthread_sigmask(SIG_SETMASK, &s->before, NULL);
	return ho_err_set(err, rc, "cannot catch signals: %s", ho_strerror(rc));
}

void ho_stop_signals_close(struct ho_stop_signals *s)
{
	struct signalfd_siginfo taken;

	if (s->fd < 0)
		return;
	while (read(s->fd, &taken, sizeof(taken)) == sizeof(taken))
		;
	close(s->fd);
	s->fd = -1;
	pthread_sigmask(SIG_SETMASK, &s->before, NULL);
}
