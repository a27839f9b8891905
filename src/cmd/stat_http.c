// SPDX-License-Identifier: BSD-2-Clause
/*
 * Enough of HTTP/1.1 (RFC 9112) to be scraped: GET and HEAD of one path, one answer a connection,
 * nothing ever blocks. Whoever is slow is given up after a while; when all places are taken, the
 * oldest is.
 */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cmd/stat.h"

#define CLIENTS_MAX   (STAT_HTTP_FDS - 1)
#define REQUEST_BYTES 4096
#define PATIENCE_NS   10000000000u
#define WHERE_BYTES   128

struct client {
	int fd; /* -1: none */
	uint64_t since_ns;
	bool answering, drained;
	char request[REQUEST_BYTES];
	size_t n; /* of the request */
	char *answer;
	size_t bytes, sent;
};

struct stat_http {
	int fd;
	char where[WHERE_BYTES];
	struct client client[CLIENTS_MAX];
};

/* "9100", "127.0.0.1:9100", "[::1]:9100" */
static int split(const char *where, char *host, size_t host_bytes, char *port, size_t port_bytes,
		 struct ho_err *err)
{
	const char *colon = strrchr(where, ':'), *digits = colon ? colon + 1 : where;
	size_t n = colon ? (size_t)(colon - where) : 0;
	char *end;
	unsigned long number = strtoul(digits, &end, 10);

	if (*end || end == digits || digits[0] == '+' || digits[0] == '-' || number > 65535)
		return ho_err_set(err, -EINVAL,
				  "--openmetrics %s: a port (9100), or an address and a port "
				  "(127.0.0.1:9100, [::1]:9100) is needed",
				  where);
	snprintf(port, port_bytes, "%lu", number);
	if (!colon) {
		snprintf(host, host_bytes, "127.0.0.1");
		return 0;
	}
	if (n >= 2 && where[0] == '[' && where[n - 1] == ']') {
		where++;
		n -= 2;
	}
	if (!n || n >= host_bytes)
		return ho_err_set(err, -EINVAL, "--openmetrics %s: there is no address in it",
				  where);
	memcpy(host, where, n);
	host[n] = '\0';
	return 0;
}

int stat_http_open(const char *where, struct stat_http **out, struct ho_err *err)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
	};
	char host[64], port[8];
	struct addrinfo *found;
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	struct stat_http *http;
	int rc = split(where, host, sizeof(host), port, sizeof(port), err), on = 1;

	if (rc < 0)
		return rc;
	rc = getaddrinfo(host, port, &hints, &found);
	if (rc != 0)
		return ho_err_set(err, -EINVAL, "--openmetrics %s: '%s' is not an address: %s",
				  where, host, gai_strerror(rc));
	http = calloc(1, sizeof(*http));
	if (!http) {
		freeaddrinfo(found);
		return ho_err_set(err, -ENOMEM, "out of memory for a server");
	}
	for (unsigned i = 0; i < CLIENTS_MAX; i++)
		http->client[i].fd = -1;
	http->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (http->fd < 0 || setsockopt(http->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(http->fd, found->ai_addr, found->ai_addrlen) < 0 || listen(http->fd, 128) < 0 ||
	    getsockname(http->fd, (struct sockaddr *)&bound, &length) < 0)
		rc = ho_err_set(err, -errno, "cannot listen on %s port %s: %s", host, port,
				ho_strerror(errno));
	freeaddrinfo(found);
	if (rc < 0) {
		stat_http_close(http);
		return rc;
	}
	/* Port 0 is any: say which it became. */
	getnameinfo((struct sockaddr *)&bound, length, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(http->where, sizeof(http->where), strchr(host, ':') ? "[%s]:%s" : "%s:%s", host,
		 port);
	*out = http;
	return 0;
}

const char *stat_http_where(const struct stat_http *http)
{
	return http->where;
}

static void drop(struct client *c)
{
	close(c->fd);
	free(c->answer);
	c->answer = NULL;
	c->fd = -1;
}

void stat_http_close(struct stat_http *http)
{
	if (!http)
		return;
	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		if (http->client[i].fd >= 0)
			drop(&http->client[i]);
	}
	if (http->fd >= 0)
		close(http->fd);
	free(http);
}

unsigned stat_http_poll(struct stat_http *http, struct pollfd *fds, unsigned room)
{
	unsigned n = 0;

	if (room)
		fds[n++] = (struct pollfd){ .fd = http->fd, .events = POLLIN };
	for (unsigned i = 0; i < CLIENTS_MAX && n < room; i++) {
		const struct client *c = &http->client[i];

		if (c->fd >= 0)
			fds[n++] = (struct pollfd){
				.fd = c->fd,
				.events = c->answering && !c->drained ? POLLOUT : POLLIN,
			};
	}
	return n;
}

static void answer(struct client *c, const char *status, const char *type, const char *body,
		   size_t bytes, bool head)
{
	char header[300];
	int n = snprintf(header, sizeof(header),
			 "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
			 "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
			 status, type, bytes);

	c->answer = malloc((size_t)n + bytes);
	if (!c->answer) {
		drop(c);
		return;
	}
	memcpy(c->answer, header, (size_t)n);
	memcpy(c->answer + n, body, head ? 0 : bytes);
	c->bytes = (size_t)n + (head ? 0 : bytes);
	c->sent = 0;
	c->answering = true;
}

#define PLAIN   "text/plain; charset=utf-8"
#define METRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

static void refuse(struct client *c, const char *status)
{
	char body[80];
	int n = snprintf(body, sizeof(body), "%s; there is /metrics here\n", status);

	answer(c, status, PLAIN, body, (size_t)n, false);
}

/* The request line is there as a whole, with all that follows it. */
static void handle(struct client *c, char *(*text)(void *arg, size_t *bytes), void *arg)
{
	char *line_end = memchr(c->request, '\n', c->n), *path, *version;
	bool head;

	if (memchr(c->request, 0, c->n)) {
		refuse(c, "400 Bad Request");
		return;
	}
	*line_end = '\0';
	if (line_end > c->request && line_end[-1] == '\r')
		line_end[-1] = '\0';
	path = strchr(c->request, ' ');
	version = path ? strchr(path + 1, ' ') : NULL;
	if (!path || !version || strncmp(version + 1, "HTTP/1.", 7)) {
		refuse(c, "400 Bad Request");
		return;
	}
	*path++ = '\0';
	*version = '\0';
	path[strcspn(path, "?")] = '\0';
	head = !strcmp(c->request, "HEAD");
	if (!head && strcmp(c->request, "GET") != 0) {
		refuse(c, "405 Method Not Allowed");
	} else if (!strcmp(path, "/metrics")) {
		size_t bytes;
		char *body = text(arg, &bytes);

		if (body)
			answer(c, "200 OK", METRICS, body, bytes, head);
		else
			refuse(c, "500 Internal Server Error");
		free(body);
	} else {
		refuse(c, "404 Not Found");
	}
}

/* Does the request end with an empty line? */
static bool is_whole(const struct client *c)
{
	return memmem(c->request, c->n, "\r\n\r\n", 4) || memmem(c->request, c->n, "\n\n", 2);
}

static void read_request(struct client *c, char *(*text)(void *arg, size_t *bytes), void *arg)
{
	ssize_t n = recv(c->fd, c->request + c->n, sizeof(c->request) - c->n, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop(c);
		return;
	}
	c->n += (size_t)n;
	if (is_whole(c))
		handle(c, text, arg);
	else if (c->n == sizeof(c->request))
		refuse(c, "431 Request Header Fields Too Large");
}

static void send_answer(struct client *c)
{
	char rest[512];
	ssize_t n;

	if (c->sent < c->bytes) {
		n = send(c->fd, c->answer + c->sent, c->bytes - c->sent, MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			drop(c);
			return;
		}
		c->sent += (size_t)n;
		if (c->sent < c->bytes)
			return;
		/* Closing with unread bytes would reset the connection, and the answer with it. */
		shutdown(c->fd, SHUT_WR);
		c->drained = true;
	}
	n = recv(c->fd, rest, sizeof(rest), 0);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		drop(c);
}

static void accept_all(struct stat_http *http, uint64_t now_ns)
{
	for (;;) {
		int fd = accept4(http->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct client *to = &http->client[0];

		/* Out of descriptors, or gone again: the next time. */
		if (fd < 0)
			return;
		for (unsigned i = 0; i < CLIENTS_MAX && to->fd >= 0; i++) {
			struct client *c = &http->client[i];

			if (c->fd < 0 || c->since_ns < to->since_ns)
				to = c;
		}
		if (to->fd >= 0)
			drop(to);
		to->fd = fd;
		to->since_ns = now_ns;
		to->answering = to->drained = false;
		to->n = to->bytes = to->sent = 0;
	}
}

void stat_http_serve(struct stat_http *http, const struct pollfd *fds, unsigned n, uint64_t now_ns,
		     char *(*text)(void *arg, size_t *bytes), void *arg)
{
	for (unsigned i = 1; i < n; i++) {
		struct client *c = NULL;

		for (unsigned j = 0; j < CLIENTS_MAX && !c; j++)
			c = http->client[j].fd == fds[i].fd ? &http->client[j] : NULL;
		if (!c || !fds[i].revents)
			continue;
		if (!c->answering)
			read_request(c, text, arg);
		/* It seldom takes more than one call: not another round for it. */
		if (c->fd >= 0 && c->answering)
			send_answer(c);
	}
	for (unsigned j = 0; j < CLIENTS_MAX; j++) {
		if (http->client[j].fd >= 0 && now_ns - http->client[j].since_ns > PATIENCE_NS)
			drop(&http->client[j]);
	}
	if (n && fds[0].revents)
		accept_all(http, now_ns);
}
