// SPDX-License-Identifier: BSD-2-Clause
/* Events of the real clock: eventfds, other people's file descriptors, and waiting for them. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "runtime/os.h"

#define WAIT_MAX 64 /* events in one wait, as rt_wait promises */

static struct rt_event *new_event(int fd, bool owned, bool drains)
{
	struct rt_event *event = malloc(sizeof(*event));

	if (event)
		*event = (struct rt_event){
			.fd = fd, .owned = owned, .drains = drains, .timer_fd = -1
		};
	return event;
}

int os_event_create(struct rt *rt, struct rt_event **out, struct ho_err *err)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0)
		return ho_err_set(err, -errno, "cannot make an event: %s; 'ulimit -n' is the limit",
				  ho_strerror(errno));
	*out = new_event(fd, true, true);
	if (!*out) {
		close(fd);
		return ho_err_set(err, -ENOMEM, "out of memory for an event");
	}
	return 0;
}

/* Only eventfds and timerfds hold a count that a wait may take away from their owner. */
static bool is_counter_fd(int fd)
{
	char path[32], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return strstr(target, "[eventfd]") || strstr(target, "[timerfd]");
}

int os_event_from_fd(struct rt *rt, int fd, struct rt_event **out, struct ho_err *err)
{
	*out = new_event(fd, false, is_counter_fd(fd));
	return *out ? 0 : ho_err_set(err, -ENOMEM, "out of memory for an event");
}

void os_event_destroy(struct rt *rt, struct rt_event *event)
{
	if (event->timer_fd >= 0)
		close(event->timer_fd);
	if (event->owned)
		close(event->fd);
	free(event);
}

void os_event_signal(struct rt *rt, struct rt_event *event)
{
	uint64_t one = 1;
	ssize_t n = write(event->fd, &one, sizeof(one));

	/* EAGAIN: the count is at its maximum, so the event is signalled anyway. */
	(void)n;
}

void os_event_arm(struct rt *rt, struct rt_event *event, uint64_t at_ns)
{
	struct itimerspec when = { 0 };

	if (event->timer_fd < 0) {
		if (at_ns == RT_FOREVER)
			return;
		event->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (event->timer_fd < 0) {
			/* Without a timer the only safe thing is to be too early. */
			os_event_signal(rt, event);
			return;
		}
	}
	if (at_ns != RT_FOREVER) {
		uint64_t now = rt_now_ns(rt), wait = at_ns > now ? at_ns - now : 1;

		when.it_value.tv_sec = (time_t)(wait / 1000000000u);
		when.it_value.tv_nsec = (long)(wait % 1000000000u);
	}
	timerfd_settime(event->timer_fd, 0, &when, NULL);
}

bool os_timeout(struct rt *rt, uint64_t deadline_ns, struct timespec *out)
{
	uint64_t now, wait;

	if (deadline_ns == RT_FOREVER)
		return false;
	now = deadline_ns ? rt_now_ns(rt) : 0;
	wait = deadline_ns > now ? deadline_ns - now : 0;
	out->tv_sec = (time_t)(wait / 1000000000u);
	out->tv_nsec = (long)(wait % 1000000000u);
	return true;
}

/* Takes the signal of event if pfds (its fd, then its timer) show one. */
static bool take(struct rt_event *event, const struct pollfd *pfds)
{
	uint64_t count;
	bool hit = false;

	for (int i = 0; i < 2; i++) {
		if (!(pfds[i].revents & (POLLIN | POLLERR | POLLHUP)))
			continue;
		if (i == 1 || event->drains) {
			/* EAGAIN: the timer was moved between poll and read. */
			if (read(pfds[i].fd, &count, sizeof(count)) != sizeof(count))
				continue;
		}
		hit = true;
	}
	return hit;
}

int os_wait(struct rt *rt, struct rt_event *const *events, unsigned n, uint64_t deadline_ns)
{
	struct pollfd pfds[2 * WAIT_MAX + 1];
	struct timespec timeout;

	if (n > WAIT_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < n; i++) {
		/* poll ignores negative descriptors. */
		pfds[2 * i] = (struct pollfd){ .fd = events[i]->fd, .events = POLLIN };
		pfds[2 * i + 1] = (struct pollfd){ .fd = events[i]->timer_fd, .events = POLLIN };
	}
	pfds[2 * n] = (struct pollfd){ .fd = rt_os_of(rt)->stop_fd, .events = POLLIN };
	for (;;) {
		bool timed = os_timeout(rt, deadline_ns, &timeout);
		int rc = ppoll(pfds, 2 * n + 1, timed ? &timeout : NULL, NULL);

		if (rt_stopping(rt))
			return -EINTR;
		if (rc < 0 && errno != EINTR)
			return -errno;
		for (unsigned i = 0; rc > 0 && i < n; i++) {
			if (take(events[i], &pfds[2 * i]))
				return (int)i;
		}
		if (timed && (deadline_ns == 0 || rt_now_ns(rt) >= deadline_ns))
			return -ETIMEDOUT;
	}
}
