// SPDX-License-Identifier: BSD-2-Clause
/*
 * memif's sockets. One hub per client port, and one per listening address that the server ports of
 * a process share (they differ by id); each hub has a task that waits for its sockets.
 *
 *   task: wait (wake event, epoll of listener and peers, next deadline)
 *         -> messages -> memif_chan_input -> link up or down
 *         -> a client without a peer connects again every RETRY_NS
 *
 * hub->lock is held while the task works and not while it waits; a port that leaves takes it and
 * then nobody refers to the port any more.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "linux/caps.h"
#include "port/kinds.h"
#include "port/memif.h"

#define RETRY_NS     50000000ull   /* between two attempts to connect */
#define HANDSHAKE_NS 5000000000ull /* until CONNECTED; a peer that takes longer is stuck */
#define PEERS_MAX    64            /* connections to one listener, those in handshake included */
#define EVENTS       16

struct memif_peer {
	struct memif_peer *next;
	int fd;
	struct memif_port *port; /* NULL until INIT named it */
	bool up;
	uint64_t deadline; /* of the handshake */
	struct memif_chan chan;
};

struct memif_hub {
	struct memif_hub *next; /* of all listening ones, under hubs_lock */
	unsigned users;         /* under hubs_lock */
	bool client;
	char address[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct rt *rt;
	struct rt_task *task;
	struct rt_event *wake, *sockets;
	int epfd, listen_fd;
	dev_t dev; /* of the socket's file, to remove no other */
	ino_t ino;
	pthread_mutex_t lock;
	bool quit;
	struct memif_port *ports;
	struct memif_peer *peers;
	unsigned n_peers;
	uint64_t retry_at;
	uint64_t deaf_until; /* no descriptors: the listening socket is not looked at; 0 = it is */
};

/* Listening addresses are one space in a process, as they are on the machine. */
static pthread_mutex_t hubs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct memif_hub *hubs;

struct memif_conn *memif_conn_hold(struct memif_port *port)
{
	struct memif_conn *conn;

	pthread_mutex_lock(&port->lock);
	conn = port->conn;
	if (conn)
		conn->refs++;
	pthread_mutex_unlock(&port->lock);
	return conn;
}

void memif_conn_release(struct memif_port *port, struct memif_conn *conn)
{
	bool last;

	pthread_mutex_lock(&port->lock);
	last = --conn->refs == 0;
	pthread_mutex_unlock(&port->lock);
	if (last)
		memif_conn_free(conn);
}

/* --- link up and down --------------------------------------------------------------------- */

static void set_link(struct memif_port *port, struct memif_conn *conn, const char *why)
{
	pthread_mutex_lock(&port->lock);
	__atomic_store_n(&port->conn, conn, __ATOMIC_RELEASE);
	snprintf(port->why, sizeof(port->why), "%s", why);
	pthread_mutex_unlock(&port->lock);
	/* Sleepers must look: to change over to the new connection, or to see that it is gone. */
	for (unsigned i = 0; i < port->base.n_rxq; i++)
		memif_rxq_kick((struct memif_rxq *)port->base.rxq[i]);
	if (conn)
		rt_event_signal(port->base.rt, port->up);
}

static void link_up(struct memif_peer *peer)
{
	struct memif_port *port = peer->port;
	struct memif_conn *conn = peer->chan.conn;

	peer->up = true;
	__atomic_fetch_add(&port->connects, 1, __ATOMIC_RELAXED);
	set_link(port, conn, "");
	ho_verbose("%s: connected to %s (%s), %u receive and %u transmit rings", port->base.name,
		   conn->peer_if, conn->peer, conn->n_rx, conn->n_tx);
}

static bool send_msg(struct memif_peer *peer, struct memif_out *out)
{
	char ctl[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = &out->msg, .iov_len = sizeof(out->msg) };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (!out->pending)
		return true;
	out->pending = false;
	if (out->fd >= 0) {
		struct cmsghdr *cmsg;

		mh.msg_control = ctl;
		mh.msg_controllen = sizeof(ctl);
		cmsg = CMSG_FIRSTHDR(&mh);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &out->fd, sizeof(int));
	}
	return sendmsg(peer->fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(out->msg);
}

/* Ends a peer whose channel is closed, or could not be used any more because of `why`. */
static void drop_peer(struct memif_hub *hub, struct memif_peer *peer, const char *why)
{
	struct memif_peer **link = &hub->peers;
	struct memif_port *port = peer->port;

	if (peer->chan.why[0])
		why = peer->chan.why;
	while (*link != peer)
		link = &(*link)->next;
	*link = peer->next;
	hub->n_peers--;
	if (port) {
		port->peer = NULL;
		set_link(port, NULL, why);
		if (peer->up) {
			__atomic_fetch_add(&port->disconnects, 1, __ATOMIC_RELAXED);
			ho_verbose("%s: link down: %s%s", port->base.name,
				   peer->chan.by_peer ? "the peer said: " : "", why);
		}
		hub->retry_at = rt_now_ns(hub->rt) + RETRY_NS;
		if (peer->chan.conn)
			memif_conn_release(port, peer->chan.conn);
	} else {
		ho_verbose("memif:%s: refused a connection: %s", hub->address, why);
		memif_conn_free(peer->chan.conn);
	}
	close(peer->fd);
	free(peer);
}

/* Closes it for a reason of ours, telling the peer. */
static void close_peer(struct memif_hub *hub, struct memif_peer *peer, const char *why)
{
	struct memif_out out = { 0 };

	memif_chan_close(&peer->chan, why, &out);
	send_msg(peer, &out);
	drop_peer(hub, peer, why);
}

/* --- messages ----------------------------------------------------------------------------- */

static const struct memif_offer *find_port(void *arg, uint32_t id, const char **why)
{
	struct memif_hub *hub = arg;

	for (struct memif_port *port = hub->ports; port; port = port->next) {
		if (port->offer.id != id)
			continue;
		if (!port->peer)
			return &port->offer;
		*why = "Already connected";
	}
	return NULL;
}

/* Takes the one descriptor that may come along; closes any others. */
static int take_fd(struct msghdr *mh)
{
	int fd = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int got;

			memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (fd >= 0)
				close(got);
			else
				fd = got;
		}
	}
	return fd;
}

/* One message. Returns false when the peer is gone (freed) or nothing is there. */
static bool read_msg(struct memif_hub *hub, struct memif_peer *peer)
{
	char ctl[CMSG_SPACE(4 * sizeof(int))];
	struct memif_msg msg;
	struct iovec iov = { .iov_base = &msg, .iov_len = sizeof(msg) };
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = sizeof(ctl)
	};
	struct memif_out out = { 0 };
	ssize_t n = recvmsg(peer->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fd;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		drop_peer(hub, peer, "the peer went away");
		return false;
	}
	fd = take_fd(&mh);
	if (n != sizeof(msg) || (mh.msg_flags & MSG_TRUNC)) {
		memif_conn_close_fd(fd);
		close_peer(hub, peer, "Invalid message size");
		return false;
	}
	memif_chan_input(&peer->chan, &msg, fd, &out);
	if (!peer->port && peer->chan.offer) {
		peer->port = HO_CONTAINER_OF(peer->chan.offer, struct memif_port, offer);
		peer->port->peer = peer;
	}
	if (!send_msg(peer, &out) || peer->chan.state == MEMIF_CLOSED) {
		drop_peer(hub, peer, "the peer takes no messages");
		return false;
	}
	if (peer->chan.state == MEMIF_UP && !peer->up)
		link_up(peer);
	return true;
}

/* --- sockets ------------------------------------------------------------------------------ */

static socklen_t fill_address(struct sockaddr_un *un, const char *address)
{
	size_t len = strlen(address);

	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(un->sun_path, address, len);
	if (address[0] != '@')
		return sizeof(*un);
	un->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static struct memif_peer *new_peer(struct memif_hub *hub, int fd)
{
	struct memif_peer *peer = calloc(1, sizeof(*peer));
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = peer };

	if (!peer || epoll_ctl(hub->epfd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		free(peer);
		close(fd);
		return NULL;
	}
	peer->fd = fd;
	peer->deadline = rt_now_ns(hub->rt) + HANDSHAKE_NS;
	peer->next = hub->peers;
	hub->peers = peer;
	hub->n_peers++;
	return peer;
}

/* Client: another attempt. Failure is no error: the server may come later. */
static void try_connect(struct memif_hub *hub)
{
	struct memif_port *port = hub->ports;
	struct sockaddr_un un;
	socklen_t len = fill_address(&un, hub->address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct memif_peer *peer;

	hub->retry_at = rt_now_ns(hub->rt) + RETRY_NS;
	if (fd < 0 || connect(fd, (struct sockaddr *)&un, len) < 0) {
		pthread_mutex_lock(&port->lock);
		snprintf(port->why, sizeof(port->why), "%s",
			 errno == ENOENT || errno == ECONNREFUSED ? "no server listens there"
								  : ho_strerror(errno));
		pthread_mutex_unlock(&port->lock);
		memif_conn_close_fd(fd);
		return;
	}
	peer = new_peer(hub, fd);
	if (!peer)
		return;
	memif_chan_client(&peer->chan, &port->offer);
	peer->port = port;
	port->peer = peer;
}

/* Whether the hub shall hear of new peers. */
static void look_at_listener(struct memif_hub *hub, bool look)
{
	struct epoll_event ev = { .events = look ? EPOLLIN : 0, .data.ptr = hub };

	epoll_ctl(hub->epfd, EPOLL_CTL_MOD, hub->listen_fd, &ev);
	hub->deaf_until = look ? 0 : rt_now_ns(hub->rt) + RETRY_NS;
}

static void accept_peer(struct memif_hub *hub)
{
	unsigned log2 = 0;
	struct memif_out out = { 0 };
	struct memif_peer *peer;
	int fd = accept4(hub->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		/* The peer stays in the queue, and epoll would say so again at once. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			look_at_listener(hub, false);
		return;
	}
	if (hub->n_peers >= PEERS_MAX) {
		close(fd);
		return;
	}
	peer = new_peer(hub, fd);
	if (!peer)
		return;
	for (struct memif_port *port = hub->ports; port; port = port->next)
		log2 = HO_MAX(log2, port->offer.log2_ring);
	memif_chan_server(&peer->chan, find_port, hub, log2, &out);
	if (!send_msg(peer, &out))
		drop_peer(hub, peer, "the peer takes no messages");
}

/* Handshakes that take too long, and connections whose rings were found broken. */
static void check_peers(struct memif_hub *hub)
{
	struct memif_peer *next;

	for (struct memif_peer *peer = hub->peers; peer; peer = next) {
		next = peer->next;
		if (peer->up && __atomic_load_n(&peer->chan.conn->broken, __ATOMIC_RELAXED))
			close_peer(hub, peer, "Ring indices are impossible");
		else if (!peer->up && rt_now_ns(hub->rt) >= peer->deadline)
			close_peer(hub, peer, "Handshake took too long");
	}
}

static uint64_t next_deadline(const struct memif_hub *hub)
{
	uint64_t at = RT_FOREVER;

	if (hub->client && !hub->peers)
		at = hub->retry_at;
	if (hub->deaf_until)
		at = HO_MIN(at, hub->deaf_until);
	for (struct memif_peer *peer = hub->peers; peer; peer = peer->next) {
		if (!peer->up)
			at = HO_MIN(at, peer->deadline);
	}
	/* 0 means "only look" to rt_wait. */
	return HO_MAX(at, (uint64_t)1);
}

static void hub_task(void *arg)
{
	struct memif_hub *hub = arg;
	struct rt_event *const events[] = { hub->wake, hub->sockets };
	uint64_t deadline = 1;
	struct ho_err err;

	/* Capabilities are a thread's own, and this one began with all of the process. Its work is
	 * sockets: nobody else's bytes shall reach a privileged thread. */
	if (lx_caps_keep(port_kind_memif.caps_keep, &err) < 0)
		ho_note("%s: %s", hub->address, err.text);

	for (;;) {
		struct epoll_event got[EVENTS];
		int n;

		if (rt_wait(hub->rt, events, 2, deadline) == -EINTR)
			return;
		pthread_mutex_lock(&hub->lock);
		if (hub->quit) {
			pthread_mutex_unlock(&hub->lock);
			return;
		}
		n = epoll_wait(hub->epfd, got, EVENTS, 0);
		for (int i = 0; i < n; i++) {
			if (got[i].data.ptr == hub)
				accept_peer(hub);
			else
				read_msg(hub, got[i].data.ptr);
		}
		check_peers(hub);
		if (hub->deaf_until && rt_now_ns(hub->rt) >= hub->deaf_until)
			look_at_listener(hub, true);
		if (hub->client && !hub->peers && rt_now_ns(hub->rt) >= hub->retry_at)
			try_connect(hub);
		deadline = next_deadline(hub);
		pthread_mutex_unlock(&hub->lock);
	}
}

/* --- hubs --------------------------------------------------------------------------------- */

/* A socket file that nobody listens on is the rest of a process that ended badly. */
static void remove_stale(const struct sockaddr_un *un, socklen_t len)
{
	struct stat st;
	int fd;

	if (!un->sun_path[0] || lstat(un->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)un, len) < 0 && errno == ECONNREFUSED)
		unlink(un->sun_path);
	memif_conn_close_fd(fd);
}

static int listen_on(struct memif_hub *hub, struct ho_err *err)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = hub };
	struct sockaddr_un un;
	socklen_t len = fill_address(&un, hub->address);
	struct stat st;

	hub->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (hub->listen_fd < 0)
		return ho_err_set(err, -errno, "cannot make a socket: %s", ho_strerror(errno));
	remove_stale(&un, len);
	if (bind(hub->listen_fd, (struct sockaddr *)&un, len) < 0)
		return ho_err_set(
			err, -errno,
			errno == EADDRINUSE
				? "'%s' is in use: another server listens there, or a file is in "
				  "the way (%s)"
				: "cannot make the socket '%s': %s",
			hub->address, ho_strerror(errno));
	if (un.sun_path[0] && stat(un.sun_path, &st) == 0) {
		hub->dev = st.st_dev;
		hub->ino = st.st_ino;
	}
	if (listen(hub->listen_fd, PEERS_MAX) < 0 ||
	    epoll_ctl(hub->epfd, EPOLL_CTL_ADD, hub->listen_fd, &ev) < 0)
		return ho_err_set(err, -errno, "cannot listen on '%s': %s", hub->address,
				  ho_strerror(errno));
	return 0;
}

static void hub_free(struct memif_hub *hub)
{
	struct stat st;

	rt_event_destroy(hub->rt, hub->sockets);
	rt_event_destroy(hub->rt, hub->wake);
	if (hub->ino && stat(hub->address, &st) == 0 && st.st_dev == hub->dev &&
	    st.st_ino == hub->ino)
		unlink(hub->address);
	memif_conn_close_fd(hub->listen_fd);
	memif_conn_close_fd(hub->epfd);
	pthread_mutex_destroy(&hub->lock);
	free(hub);
}

static struct memif_hub *hub_new(struct memif_port *port, struct ho_err *err)
{
	struct memif_hub *hub = calloc(1, sizeof(*hub));

	if (!hub) {
		ho_err_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	hub->rt = port->base.rt;
	hub->client = port->offer.client;
	hub->listen_fd = -1;
	snprintf(hub->address, sizeof(hub->address), "%s", port->address);
	pthread_mutex_init(&hub->lock, NULL);
	hub->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (hub->epfd < 0) {
		ho_err_set(err, -errno, "cannot make an epoll descriptor: %s", ho_strerror(errno));
		goto fail;
	}
	if (rt_event_create(hub->rt, &hub->wake, err) < 0 ||
	    rt_event_from_fd(hub->rt, hub->epfd, &hub->sockets, err) < 0)
		goto fail;
	if (!hub->client && listen_on(hub, err) < 0)
		goto fail;
	return hub;
fail:
	hub_free(hub);
	return NULL;
}

static struct memif_hub *find_hub(const struct memif_port *port)
{
	struct memif_hub *hub = port->offer.client ? NULL : hubs;

	while (hub && (hub->rt != port->base.rt || strcmp(hub->address, port->address)))
		hub = hub->next;
	return hub;
}

int memif_ctrl_join(struct memif_port *port, struct ho_err *err)
{
	const struct rt_task_attr attr = { .name = "memif", .cpu = -1, .prio = RT_PRIO_NORMAL };
	struct memif_hub *hub;
	bool fresh;
	int rc = 0;

	pthread_mutex_lock(&hubs_lock);
	hub = find_hub(port);
	fresh = !hub;
	if (fresh)
		hub = hub_new(port, err);
	if (!hub) {
		rc = err ? err->code : -EIO;
		goto out;
	}
	pthread_mutex_lock(&hub->lock);
	for (struct memif_port *p = hub->ports; p; p = p->next) {
		if (p->offer.id == port->offer.id)
			rc = ho_err_set(err, -EBUSY, "id %u is in use on this socket; take another",
					port->offer.id);
	}
	if (rc == 0) {
		port->hub = hub;
		port->next = hub->ports;
		hub->ports = port;
		hub->users++;
	}
	pthread_mutex_unlock(&hub->lock);
	if (rc == 0 && fresh) {
		rc = rt_spawn(hub->rt, &attr, hub_task, hub, &hub->task, err);
		if (rc < 0) {
			hub_free(hub);
			port->hub = NULL;
		} else if (!hub->client) {
			hub->next = hubs;
			hubs = hub;
		}
	}
out:
	pthread_mutex_unlock(&hubs_lock);
	return rc;
}

void memif_ctrl_leave(struct memif_port *port, const char *why)
{
	struct memif_hub *hub = port->hub;
	struct memif_port **link;
	bool last;

	if (!hub)
		return;
	pthread_mutex_lock(&hubs_lock);
	pthread_mutex_lock(&hub->lock);
	if (port->peer)
		close_peer(hub, port->peer, why);
	for (link = &hub->ports; *link != port; link = &(*link)->next)
		;
	*link = port->next;
	port->hub = NULL;
	last = --hub->users == 0;
	if (last) {
		struct memif_hub **h = &hubs;

		while (*h && *h != hub)
			h = &(*h)->next;
		if (*h)
			*h = hub->next;
		hub->quit = true;
	}
	pthread_mutex_unlock(&hub->lock);
	if (last) {
		rt_event_signal(hub->rt, hub->wake);
		rt_join(hub->rt, hub->task);
		while (hub->peers)
			close_peer(hub, hub->peers, why);
		hub_free(hub);
	}
	pthread_mutex_unlock(&hubs_lock);
}

void memif_ctrl_broken(struct memif_port *port, struct memif_conn *conn)
{
	__atomic_store_n(&conn->broken, true, __ATOMIC_RELAXED);
	if (port->hub)
		rt_event_signal(port->base.rt, port->hub->wake);
}
