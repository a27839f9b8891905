// SPDX-License-Identifier: BSD-2-Clause
/*
 * pcap:FILE: a capture file as a port. A file goes in one direction:
 *
 *   the user wants       FILE exists            FILE does not exist
 *   to receive only      it is read             an error
 *   to send only         it is overwritten      it is made
 *   both                 it is read             it is made and written
 *
 * "-" is standard input for receiving and standard output for sending. The queue of the direction
 * that the file does not have is there, but ended: receiving gives nothing, what is sent is
 * tx_link_down.
 *
 * A file that is being read, by this process or another one that takes the same locks (flock), is
 * never overwritten, nor one that is being written read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "port/kinds.h"
#include "port/pcap_port.h"

#define SNAPLEN_DEFAULT 262144 /* what tcpdump and Wireshark take as "all" */

struct pcap_port {
	struct port base;
	struct pcap_opts opts;
	char *made; /* a file that was not there before, until the port is started */
	bool told;  /* the late error was asked for */
};

static struct pcap_rxq *rxq_of(struct port *port)
{
	return (struct pcap_rxq *)port->rxq[0];
}

static struct pcap_txq *txq_of(struct port *port)
{
	return (struct pcap_txq *)port->txq[0];
}

static unsigned no_rx(struct port_rxq *q, struct pk_slot *slots, unsigned n)
{
	return 0;
}

static unsigned no_tx(struct port_txq *q, struct pk_slot *slots, unsigned n)
{
	port_tx_discard(q, slots, n, PORT_DROP_TX_LINK_DOWN);
	return n;
}

static struct rt_event *pcap_rx_event(struct port_rxq *base)
{
	return ((struct pcap_rxq *)base)->event;
}

static bool pcap_arm(struct port_rxq *base)
{
	/* Nothing will ever come to wait for: the user is to look at rx_ended. */
	return !((struct pcap_rxq *)base)->active || pcap_read_arm(base);
}

static void pcap_disarm(struct port_rxq *base)
{
	if (((struct pcap_rxq *)base)->active)
		pcap_read_disarm(base);
}

static bool pcap_rx_ended(struct port_rxq *base)
{
	const struct pcap_rxq *q = (const struct pcap_rxq *)base;

	return !q->active || q->ended;
}

static int pcap_late_error(struct port *base, struct ho_err *err)
{
	const struct ho_err *late = &rxq_of(base)->late;

	if (!late->code)
		late = &txq_of(base)->late;
	if (!late->code)
		return 0;
	((struct pcap_port *)base)->told = true;
	return ho_err_set(err, late->code, "%s", late->text);
}

static void pcap_hurry(struct port *base)
{
	if (txq_of(base)->active)
		pcap_out_ask_stop(&txq_of(base)->out);
}

static void pcap_stop(struct port *base)
{
	pcap_write_stop(txq_of(base));
}

static void pcap_close_port(struct port *base)
{
	struct pcap_port *port = (struct pcap_port *)base;
	struct ho_err late = { 0 };

	/* A port that was never started was not stopped either. */
	pcap_write_stop(txq_of(base));
	/* Nobody asked, but somebody must say that the file is not what it should be. */
	if (!port->told && pcap_late_error(base, &late) < 0)
		ho_warn("%s: %s", base->name, late.text);
	if (rxq_of(base)->active)
		pcap_read_close(rxq_of(base));
	pcap_write_close(txq_of(base));
	if (port->made)
		unlink(port->made);
	free(port->made);
	port_free(base);
}

static int pcap_start(struct port *base, struct ho_err *err)
{
	struct pcap_port *port = (struct pcap_port *)base;
	struct pcap_txq *q = txq_of(base);
	int rc = q->active ? pcap_write_begin(q, err) : 0;

	if (rc == 0) {
		free(port->made);
		port->made = NULL;
	}
	return rc;
}

static const struct port_ops pcap_ops = {
	.start = pcap_start,
	.rx_event = pcap_rx_event,
	.arm = pcap_arm,
	.disarm = pcap_disarm,
	.rx_ended = pcap_rx_ended,
	.late_error = pcap_late_error,
	.hurry = pcap_hurry,
	.stop = pcap_stop,
	.close = pcap_close_port,
};

/* Opens FILE to be read; the descriptor or a negative errno. */
static int open_input(const char *path, struct ho_err *err)
{
	int fd, rc;

	if (!strcmp(path, "-")) {
		if (isatty(STDIN_FILENO))
			return ho_err_set(err, -EINVAL,
					  "standard input is a terminal, not a capture");
		return STDIN_FILENO;
	}
	fd = pcap_in_open_path(path);
	if (fd == -EISDIR)
		return ho_err_set(err, fd, "is a directory, not a capture file");
	if (fd < 0)
		return ho_err_set(err, fd, "cannot be opened: %s", ho_strerror(fd));
	rc = pcap_lock(fd, LOCK_SH, err);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	return fd;
}

/* Opens FILE to be written, as it is; *made says that it was not there before. */
static int open_output(struct rt *rt, const char *path, bool *made, struct ho_err *err)
{
	int fd, rc;

	*made = false;
	if (!strcmp(path, "-")) {
		if (isatty(STDOUT_FILENO))
			return ho_err_set(err, -EINVAL,
					  "a capture is not for a terminal: redirect standard "
					  "output");
		return STDOUT_FILENO;
	}
	fd = pcap_out_open_path(rt, path, O_CREAT | O_EXCL, RT_FOREVER);
	*made = fd >= 0;
	/* Not cut before the lock says that nobody reads it, and the port is started. */
	if (fd == -EEXIST)
		fd = pcap_out_open_path(rt, path, 0, RT_FOREVER);
	if (fd < 0)
		return ho_err_set(err, fd, "cannot be written: %s", pcap_out_open_error(fd));
	rc = pcap_lock(fd, LOCK_EX, err);
	if (rc < 0) {
		if (*made)
			unlink(path);
		close(fd);
		return rc;
	}
	return fd;
}

static const struct pcap_opts pcap_defaults = { .loop = 1,
						.snaplen = SNAPLEN_DEFAULT,
						.nano = true };

/* An option for the other direction would do nothing, and its user would not know. */
static int check_options(const struct pcap_opts *o, bool reads, bool writes, struct ho_err *err)
{
	if (!reads && (o->loop != 1 || o->speed > 0 || o->limit || o->memory))
		return ho_err_set(err, -EINVAL,
				  "loop, speed, limit and memory are for a file that is read; this "
				  "one would be written");
	if (!writes && (o->snaplen != SNAPLEN_DEFAULT || !o->nano))
		return ho_err_set(err, -EINVAL,
				  "snaplen and nano are for a file that is written; this one would "
				  "be read");
	return 0;
}

static int open_queues(struct pcap_port *port, const char *path, bool reads, bool writes,
		       const char *filter, struct ho_err *err)
{
	bool made;
	int fd, rc;

	if (reads) {
		fd = open_input(path, err);
		rc = fd < 0 ? fd
			    : pcap_read_open(rxq_of(&port->base), fd, &port->opts, filter, err);
		if (rc < 0)
			return rc;
		port->base.recorded = true;
	}
	if (writes) {
		fd = open_output(port->base.rt, path, &made, err);
		port->base.on_stdout = fd == STDOUT_FILENO;
		rc = fd < 0 ? fd : pcap_write_open(txq_of(&port->base), fd, &port->opts, err);
		if (rc < 0) {
			if (fd >= 0 && made)
				unlink(path);
			if (reads)
				pcap_read_close(rxq_of(&port->base));
			return rc;
		}
		/* Without memory for its name a file that is never used stays there. */
		port->made = made ? strdup(path) : NULL;
	}
	return 0;
}

static int pcap_open_port(const char *path, const void *opts_void, const struct port_config *config,
			  struct port **out, struct ho_err *err)
{
	const struct pcap_opts *opts = opts_void;
	bool reads = config->rx || !config->tx, writes = config->tx || !config->rx;
	struct pcap_port *port;
	int rc;

	if (config->queues > 1)
		return ho_err_set(err, -EINVAL, "%u queues: a capture file has one",
				  config->queues);
	if (reads && writes && strcmp(path, "-")) {
		reads = access(path, F_OK) == 0;
		writes = !reads;
	}
	rc = check_options(opts, reads, writes, err);
	if (rc < 0)
		return rc;
	port = (struct pcap_port *)port_new(sizeof(*port), &port_kind_pcap, path, config, 1,
					    sizeof(struct pcap_rxq), 1, sizeof(struct pcap_txq));
	if (!port)
		return ho_err_set(err, -ENOMEM, "out of memory");
	port->base.ops = &pcap_ops;
	port->opts = *opts;
	rxq_of(&port->base)->base.rx = no_rx;
	txq_of(&port->base)->base.tx = no_tx;
	txq_of(&port->base)->fd = -1;
	rc = open_queues(port, path, reads, writes, config->filter, err);
	if (rc < 0) {
		port_free(&port->base);
		return rc;
	}
	*out = &port->base;
	return 0;
}

static const struct port_opt pcap_options[] = {
	{ "loop", PORT_OPT_COUNT, .help = "passes over the file, 0 = without end (1)",
	  .offset = offsetof(struct pcap_opts, loop) },
	{ "speed", PORT_OPT_NUMBER,
	  .help = "replay with the file's gaps divided by this, 0 = as fast as possible (0)",
	  .offset = offsetof(struct pcap_opts, speed) },
	{ "limit", PORT_OPT_COUNT, .help = "only the first records of the file, 0 = all (0)",
	  .offset = offsetof(struct pcap_opts, limit) },
	{ "memory", PORT_OPT_BOOL, .help = "read the file once and replay it from memory (no)",
	  .offset = offsetof(struct pcap_opts, memory) },
	{ "snaplen", PORT_OPT_COUNT, .help = "bytes of each frame that are written (262144)",
	  .min = 1, .max = SNAPLEN_DEFAULT, .offset = offsetof(struct pcap_opts, snaplen) },
	{ "nano", PORT_OPT_BOOL, .help = "write times in nanoseconds; no = in microseconds (yes)",
	  .offset = offsetof(struct pcap_opts, nano) },
	{ 0 },
};

const struct port_kind port_kind_pcap = {
	.name = "pcap",
	.help = "a capture file (pcap or pcapng to read, pcap to write); - is standard input or "
		"output",
	.target = "FILE",
	.opts = pcap_options,
	.opts_bytes = sizeof(struct pcap_opts),
	.opts_default = &pcap_defaults,
	.open = pcap_open_port,
};
