// SPDX-License-Identifier: BSD-2-Clause
/*
 * The control conversation. The sequence is drawn in memif_proto.h. We send the next message of
 * the client's sequence only after the acknowledgement of the last, because peers handle one
 * message at a time; and we refuse whatever comes out of sequence.
 */
#include "port/memif_chan.h"

#include <string.h>

static const char program_name[] = "holdoff";

/* Copies text from a fixed field that may lack its NUL, printable characters only: it goes to
 * logs. `out` holds bytes + 1. */
static void take_text(char *out, const uint8_t *field, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes && field[i]; i++)
		out[i] = field[i] >= 0x20 && field[i] < 0x7f ? (char)field[i] : '?';
	out[i] = '\0';
}

static void put_text(uint8_t *field, const char *text, size_t bytes)
{
	size_t len = strnlen(text, bytes - 1);

	memcpy(field, text, len);
	memset(field + len, 0, bytes - len);
}

static void say(struct memif_out *out, enum memif_msg_type type, int fd)
{
	out->pending = true;
	out->fd = fd;
	memset(&out->msg, 0, sizeof(out->msg));
	out->msg.type = type;
}

void memif_chan_close(struct memif_chan *chan, const char *why, struct memif_out *out)
{
	if (chan->state == MEMIF_CLOSED)
		return;
	chan->state = MEMIF_CLOSED;
	put_text((uint8_t *)chan->why, why, sizeof(chan->why));
	say(out, MEMIF_MSG_DISCONNECT, -1);
	put_text(out->msg.disconnect.reason, why, MEMIF_REASON_BYTES);
}

/* --- client ------------------------------------------------------------------------------- */

void memif_chan_client(struct memif_chan *chan, const struct memif_offer *offer)
{
	*chan = (struct memif_chan){ .state = MEMIF_WAIT_HELLO, .offer = offer };
}

static const char *got_hello(struct memif_chan *chan, const struct memif_hello *hello,
			     struct memif_out *out)
{
	const struct memif_offer *offer = chan->offer;
	unsigned rings = offer->queues;
	const char *why;

	take_text(chan->peer, hello->name, MEMIF_NAME_BYTES);
	if (hello->min_version > MEMIF_VERSION || hello->max_version < MEMIF_VERSION)
		return "Incompatible memif version";
	if (offer->zero_copy && hello->max_region < 1)
		return "Zero copy needs two regions, the server takes one";
	rings = HO_MIN(rings, hello->max_c2s_ring + 1u);
	rings = HO_MIN(rings, hello->max_s2c_ring + 1u);
	chan->rings = rings;
	chan->log2 = HO_MIN(offer->log2_ring, (unsigned)hello->max_log2_ring_size);
	if (!chan->log2)
		return "The server allows no ring";
	chan->conn = memif_conn_provide(offer, rings, chan->log2, &why);
	if (!chan->conn)
		return why;
	memcpy(chan->conn->peer, chan->peer, sizeof(chan->peer));
	say(out, MEMIF_MSG_INIT, -1);
	out->msg.init.version = MEMIF_VERSION;
	out->msg.init.id = offer->id;
	out->msg.init.mode = MEMIF_MODE_ETHERNET;
	memcpy(out->msg.init.secret, offer->secret, MEMIF_SECRET_BYTES);
	put_text(out->msg.init.name, program_name, MEMIF_NAME_BYTES);
	chan->state = MEMIF_WAIT_ACK;
	return NULL;
}

static void send_ring(struct memif_chan *chan, unsigned index, bool c2s, struct memif_out *out)
{
	const struct memif_lane *lane = c2s ? &chan->conn->tx[index] : &chan->conn->rx[index];

	say(out, MEMIF_MSG_ADD_RING, lane->event_fd);
	out->msg.add_ring.flags = c2s ? MEMIF_ADD_RING_C2S : 0;
	out->msg.add_ring.index = (uint16_t)index;
	out->msg.add_ring.region = lane->region;
	out->msg.add_ring.offset = lane->offset;
	out->msg.add_ring.log2_ring_size = (uint8_t)chan->log2;
}

/* The step after the one just acknowledged: regions, c2s rings, s2c rings, connect. */
static void got_ack(struct memif_chan *chan, struct memif_out *out)
{
	unsigned step = chan->step++;

	if (step < chan->conn->n_regions) {
		say(out, MEMIF_MSG_ADD_REGION, chan->conn->region[step].fd);
		out->msg.add_region.index = (uint16_t)step;
		out->msg.add_region.bytes = chan->conn->region[step].bytes;
		return;
	}
	step -= chan->conn->n_regions;
	if (step < 2 * chan->rings) {
		send_ring(chan, step % chan->rings, step < chan->rings, out);
		return;
	}
	say(out, MEMIF_MSG_CONNECT, -1);
	put_text(out->msg.connect.if_name, chan->offer->if_name, MEMIF_NAME_BYTES);
	chan->state = MEMIF_WAIT_CONNECTED;
}

/* --- server ------------------------------------------------------------------------------- */

void memif_chan_server(struct memif_chan *chan,
		       const struct memif_offer *(*find)(void *arg, uint32_t id, const char **why),
		       void *arg, unsigned log2_max, struct memif_out *out)
{
	*chan = (struct memif_chan){ .state = MEMIF_WAIT_INIT, .find = find, .arg = arg };
	say(out, MEMIF_MSG_HELLO, -1);
	put_text(out->msg.hello.name, program_name, MEMIF_NAME_BYTES);
	out->msg.hello.min_version = MEMIF_VERSION;
	out->msg.hello.max_version = MEMIF_VERSION;
	out->msg.hello.max_region = MEMIF_REGIONS_MAX - 1;
	out->msg.hello.max_s2c_ring = MEMIF_QUEUES_MAX - 1;
	out->msg.hello.max_c2s_ring = MEMIF_QUEUES_MAX - 1;
	out->msg.hello.max_log2_ring_size = (uint8_t)log2_max;
}

/* Differs by the same time whatever the first differing byte is. */
static bool secrets_differ(const char *a, const uint8_t *b)
{
	unsigned diff = 0;

	for (unsigned i = 0; i < MEMIF_SECRET_BYTES; i++)
		diff |= (unsigned)(uint8_t)a[i] ^ b[i];
	return diff != 0;
}

static const char *got_init(struct memif_chan *chan, const struct memif_init *init)
{
	const struct memif_offer *offer;
	const char *why = "ID not found";

	take_text(chan->peer, init->name, MEMIF_NAME_BYTES);
	if (init->version != MEMIF_VERSION)
		return "Incompatible memif version";
	if (init->mode != MEMIF_MODE_ETHERNET)
		return "Only ethernet mode supported";
	offer = chan->find(chan->arg, init->id, &why);
	if (!offer)
		return why;
	if (offer->secret[0] && !init->secret[0])
		return "Secret required";
	if (offer->secret[0] && secrets_differ(offer->secret, init->secret))
		return "Incorrect secret";
	chan->conn = memif_conn_new(false);
	if (!chan->conn)
		return "out of memory";
	memcpy(chan->conn->peer, chan->peer, sizeof(chan->peer));
	chan->offer = offer;
	chan->state = MEMIF_WAIT_CONNECT;
	return NULL;
}

/* --- both --------------------------------------------------------------------------------- */

/* Is this a message that may come now? */
static bool expected(const struct memif_chan *chan, unsigned type)
{
	switch (chan->state) {
	case MEMIF_WAIT_HELLO:
		return type == MEMIF_MSG_HELLO;
	case MEMIF_WAIT_ACK:
		return type == MEMIF_MSG_ACK;
	case MEMIF_WAIT_CONNECTED:
		return type == MEMIF_MSG_CONNECTED;
	case MEMIF_WAIT_INIT:
		return type == MEMIF_MSG_INIT;
	case MEMIF_WAIT_CONNECT:
		return type == MEMIF_MSG_ADD_REGION || type == MEMIF_MSG_ADD_RING ||
		       type == MEMIF_MSG_CONNECT;
	case MEMIF_UP:
	case MEMIF_CLOSED:
		return false;
	}
	return false;
}

static const char *handle(struct memif_chan *chan, const struct memif_msg *msg, int *fd,
			  struct memif_out *out)
{
	const char *why = NULL;
	int taken = *fd;

	switch (msg->type) {
	case MEMIF_MSG_HELLO:
		return got_hello(chan, &msg->hello, out);
	case MEMIF_MSG_ACK:
		got_ack(chan, out);
		return NULL;
	case MEMIF_MSG_CONNECTED:
		take_text(chan->conn->peer_if, msg->connect.if_name, MEMIF_NAME_BYTES);
		chan->state = MEMIF_UP;
		return NULL;
	case MEMIF_MSG_INIT:
		why = got_init(chan, &msg->init);
		break;
	case MEMIF_MSG_ADD_REGION:
		*fd = -1;
		why = memif_conn_add_region(chan->conn, chan->offer, &msg->add_region, taken);
		break;
	case MEMIF_MSG_ADD_RING:
		*fd = -1;
		why = memif_conn_add_ring(chan->conn, chan->offer, &msg->add_ring, taken);
		break;
	case MEMIF_MSG_CONNECT:
		take_text(chan->conn->peer_if, msg->connect.if_name, MEMIF_NAME_BYTES);
		why = memif_conn_complete(chan->conn);
		if (!why) {
			say(out, MEMIF_MSG_CONNECTED, -1);
			put_text(out->msg.connect.if_name, chan->offer->if_name, MEMIF_NAME_BYTES);
			chan->state = MEMIF_UP;
			return NULL;
		}
		break;
	}
	if (!why)
		say(out, MEMIF_MSG_ACK, -1);
	return why;
}

void memif_chan_input(struct memif_chan *chan, const struct memif_msg *msg, int fd,
		      struct memif_out *out)
{
	const char *why;

	out->pending = false;
	if (msg->type == MEMIF_MSG_DISCONNECT) {
		char text[MEMIF_REASON_BYTES + 1];

		take_text(text, msg->disconnect.reason, MEMIF_REASON_BYTES);
		put_text((uint8_t *)chan->why, text[0] ? text : "no reason given",
			 sizeof(chan->why));
		chan->by_peer = true;
		chan->state = MEMIF_CLOSED;
	} else if (!expected(chan, msg->type)) {
		memif_chan_close(chan, "Unexpected message", out);
	} else {
		why = handle(chan, msg, &fd, out);
		if (why)
			memif_chan_close(chan, why, out);
	}
	if (fd >= 0)
		memif_conn_close_fd(fd);
}
