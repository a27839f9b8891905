// SPDX-License-Identifier: BSD-2-Clause
#include "linux/devstat.h"

#include <ctype.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "linux/napi.h"

/* Older kernels copy as many values as the driver has by then, not as many as were asked for: room
 * for a driver that gets more queues between two questions. */
#define SLACK 4096u
/* Nobody has more; a number beyond is not believed. */
#define COUNTERS_MAX (1u << 20)

static int ask(struct lx_devstat *d, const char *ifname, void *command)
{
	struct ifreq ifr = { .ifr_data = command };

	if (d->fd < 0)
		d->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (d->fd < 0)
		return -errno;
	memcpy(ifr.ifr_name, ifname, strnlen(ifname, sizeof(ifr.ifr_name) - 1));
	return ioctl(d->fd, SIOCETHTOOL, &ifr) < 0 ? -errno : 0;
}

static int make_room(struct lx_devstat *d, uint32_t n)
{
	struct ethtool_gstrings *names;
	struct ethtool_stats *values;
	uint32_t room = n + SLACK;

	if (n + SLACK / 2 <= d->room)
		return 0;
	names = realloc(d->names, sizeof(*names) + (size_t)room * ETH_GSTRING_LEN);
	if (!names)
		return -ENOMEM;
	d->names = names;
	values = realloc(d->values, sizeof(*values) + (size_t)room * sizeof(uint64_t));
	if (!values)
		return -ENOMEM;
	d->values = values;
	d->room = room;
	return 0;
}

int lx_devstat_read(struct lx_devstat *d, const char *ifname, bool again, struct lx_counter **out,
		    unsigned *n_out)
{
	/* One number follows, for the one bit of the mask. */
	union {
		struct ethtool_sset_info base;
		char room[sizeof(struct ethtool_sset_info) + sizeof(uint32_t)];
	} set = { .base = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1u << ETH_SS_STATS } };
	struct lx_counter *counter;
	uint32_t n;
	int rc;

	*n_out = 0;
	rc = ask(d, ifname, &set);
	if (rc < 0)
		return rc;
	n = set.base.sset_mask ? set.base.data[0] : 0;
	if (!n || n > COUNTERS_MAX)
		return 0;
	rc = make_room(d, n);
	if (rc < 0)
		return rc;
	if (again || n != d->n || strcmp(d->of, ifname)) {
		d->n = 0;
		d->names->cmd = ETHTOOL_GSTRINGS;
		d->names->string_set = ETH_SS_STATS;
		d->names->len = n;
		rc = ask(d, ifname, d->names);
		if (rc < 0)
			return rc;
		/* A change in between: the next reading sees it whole. */
		if (d->names->len != n)
			return -EAGAIN;
		d->n = n;
		memcpy(d->of, ifname, strnlen(ifname, sizeof(d->of) - 1) + 1);
		d->of[sizeof(d->of) - 1] = '\0';
	}
	d->values->cmd = ETHTOOL_GSTATS;
	d->values->n_stats = n;
	rc = ask(d, ifname, d->values);
	if (rc < 0)
		return rc;
	if (d->values->n_stats != n) {
		d->n = 0;
		return -EAGAIN;
	}
	counter = realloc(*out, n * sizeof(*counter));
	if (!counter)
		return -ENOMEM;
	*out = counter;
	for (uint32_t i = 0; i < n; i++) {
		const char *name = (const char *)d->names->data + (size_t)i * ETH_GSTRING_LEN;
		size_t length = strnlen(name, LX_COUNTER_BYTES - 1);

		/* Some drivers indent theirs. */
		while (length && isspace((unsigned char)*name))
			name++, length--;
		for (size_t j = 0; j < length; j++)
			counter[i].name[j] = isprint((unsigned char)name[j]) ? name[j] : '?';
		memset(counter[i].name + length, 0, LX_COUNTER_BYTES - length);
		counter[i].value = d->values->data[i];
		counter[i].backwards = false;
	}
	*n_out = n;
	return 0;
}

void lx_devstat_fini(struct lx_devstat *d)
{
	if (d->fd >= 0)
		close(d->fd);
	free(d->names);
	free(d->values);
	*d = (struct lx_devstat){ .fd = -1 };
}

int lx_devstat_parse(const struct lx_text *text, struct lx_counter **out, unsigned *n)
{
	struct lx_scan scan = lx_scan_text(text), line;
	unsigned room = 0;

	*n = 0;
	while (lx_scan_line(&scan, &line)) {
		const char *colon = NULL;
		struct lx_counter one = { 0 };
		struct lx_scan name, value;

		/* A name may contain colons itself. */
		for (const char *p = line.p; p < line.end; p++)
			colon = *p == ':' ? p : colon;
		if (!colon)
			continue;
		name = (struct lx_scan){ line.p, colon };
		value = (struct lx_scan){ colon + 1, line.end };
		lx_scan_rest(&name, one.name, sizeof(one.name));
		if (!one.name[0] || !lx_scan_u64(&value, 10, &one.value))
			continue;
		if (*n == room) {
			struct lx_counter *grown;

			room = room ? 2 * room : 64;
			grown = realloc(*out, room * sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			*out = grown;
		}
		(*out)[(*n)++] = one;
	}
	return 0;
}

#define TOKENS_MAX 12

struct token {
	char text[LX_COUNTER_BYTES];
	unsigned number;
	bool is_number;
	char before; /* the character in front of it, 0 for none */
};

/* Words and numbers: "rx0_packets" is rx, 0, packets. Returns how many; 0 for too many. */
static unsigned tokens_of(const char *name, struct token *token)
{
	unsigned n = 0;

	for (const char *p = name; *p;) {
		struct token *t = &token[n];
		unsigned length = 0;

		if (!isalnum((unsigned char)*p)) {
			p++;
			continue;
		}
		if (n == TOKENS_MAX)
			return 0;
		*t = (struct token){ .before = p > name ? p[-1] : '\0',
				     .is_number = isdigit((unsigned char)*p) };
		while (isalnum((unsigned char)*p) && length < sizeof(t->text) - 1 &&
		       (bool)isdigit((unsigned char)*p) == t->is_number)
			t->text[length++] = (char)tolower((unsigned char)*p++);
		t->text[length] = '\0';
		if (t->is_number) {
			if (length > 5)
				return 0;
			t->number = (unsigned)atoi(t->text);
		}
		n++;
	}
	return n;
}

static bool dir_word(const struct token *t, enum lx_dir *dir)
{
	if (!strcmp(t->text, "rx") || !strcmp(t->text, "rxq"))
		*dir = LX_RX;
	else if (!strcmp(t->text, "tx") || !strcmp(t->text, "txq"))
		*dir = LX_TX;
	else
		return false;
	return true;
}

static bool queue_word(const struct token *t)
{
	static const char *const words[] = { "queue", "ring", "q", "rvec" };

	for (size_t i = 0; i < HO_ARRAY_LEN(words); i++) {
		if (!strcmp(t->text, words[i]))
			return true;
	}
	return false;
}

/* What a queue counts, by the words after its number, joined by blanks. */
static bool what_words(const char *words, enum lx_queue_counter *what)
{
	static const struct {
		const char *words;
		enum lx_queue_counter what;
	} known[] = {
		{ "packets", LX_Q_PACKETS },
		{ "pkts", LX_Q_PACKETS },
		{ "frames", LX_Q_PACKETS },
		{ "cnt", LX_Q_PACKETS },
		{ "pkt n", LX_Q_PACKETS },
		{ "ucast packets", LX_Q_PACKETS },
		{ "mcast packets", LX_Q_PACKETS },
		{ "bcast packets", LX_Q_PACKETS },
		{ "xdp packets", LX_Q_PACKETS_XDP },
		{ "bytes", LX_Q_BYTES },
		{ "octets", LX_Q_BYTES },
		{ "ucast bytes", LX_Q_BYTES },
		{ "mcast bytes", LX_Q_BYTES },
		{ "bcast bytes", LX_Q_BYTES },
		{ "xdp bytes", LX_Q_BYTES_XDP },
		{ "drops", LX_Q_DROPS },
		{ "drop", LX_Q_DROPS },
		{ "dropped", LX_Q_DROPS },
		{ "discards", LX_Q_DROPS },
		{ "drop pkts", LX_Q_DROPS },
		{ "rx drops", LX_Q_DROPS },
		{ "errors", LX_Q_ERRORS },
		{ "err", LX_Q_ERRORS },
		{ "csum err", LX_Q_ERRORS },
		{ "bad csum", LX_Q_ERRORS },
		{ "alloc failed", LX_Q_ERRORS },
		{ "alloc fail", LX_Q_ERRORS },
		{ "buff alloc err", LX_Q_ERRORS },
		{ "page alloc fail", LX_Q_ERRORS },
		{ "stopped", LX_Q_STOPS },
		{ "stop", LX_Q_STOPS },
		{ "stops", LX_Q_STOPS },
		{ "queue stop", LX_Q_STOPS },
		{ "queue stopped", LX_Q_STOPS },
	};

	for (size_t i = 0; i < HO_ARRAY_LEN(known); i++) {
		if (!strcmp(words, known[i].words)) {
			*what = known[i].what;
			return true;
		}
	}
	return false;
}

bool lx_devstat_queue(const char *name, enum lx_dir *dir, unsigned *queue,
		      enum lx_queue_counter *what)
{
	struct token token[TOKENS_MAX];
	unsigned n = tokens_of(name, token), at = n, from, to;
	char words[LX_COUNTER_BYTES * 2] = "";
	bool directed = false;
	enum lx_dir again;

	for (unsigned i = 0; i < n; i++) {
		if (token[i].is_number) {
			/* Of two numbers nobody knows which is the queue. */
			if (at != n)
				return false;
			at = i;
		}
	}
	if (at == n)
		return false;
	*queue = token[at].number;
	from = at + 1;
	to = n;
	if (at == n - 1 && n == 3 && token[at].before == '[' && dir_word(&token[0], dir)) {
		/* rx_packets[0] */
		directed = true;
		from = 1;
		to = at;
	} else if (at == 0) {
		/* [0]: rx_packets */
	} else if (at == 1 && queue_word(&token[0])) {
		/* queue_0_rx_packets */
	} else if (at == 2 && dir_word(&token[0], dir) && queue_word(&token[1])) {
		/* rx_queue_0_packets */
		directed = true;
	} else if (at == 1 && dir_word(&token[0], dir) && token[at].before != '_' &&
		   token[at].before != ' ') {
		/* rx0_packets, rx-0.packets; but not rx_64_bytes, which is a size */
		directed = true;
	} else {
		return false;
	}
	if (from < to && dir_word(&token[from], &again)) {
		/* Said again, or only now. */
		if (directed && again != *dir)
			return false;
		*dir = again;
		directed = true;
		from++;
	}
	if (!directed)
		return false;
	for (unsigned i = from; i < to; i++) {
		if (words[0])
			strncat(words, " ", sizeof(words) - strlen(words) - 1);
		strncat(words, token[i].text, sizeof(words) - strlen(words) - 1);
	}
	return what_words(words, what);
}

/* The queue in the sorted array, put in if it is not there; NULL: no memory. */
static struct lx_queue *queue_at(struct lx_queue **queue, unsigned *n, enum lx_dir dir, unsigned id)
{
	struct lx_queue one = { .dir = dir, .id = id, .irq = -1 }, *grown;
	unsigned at = *n;

	while (at > 0 && lx_queue_order(&(*queue)[at - 1], &one) >= 0)
		at--;
	if (at < *n && lx_queue_order(&(*queue)[at], &one) == 0)
		return &(*queue)[at];
	grown = realloc(*queue, (*n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	*queue = grown;
	memmove(grown + at + 1, grown + at, (*n - at) * sizeof(*grown));
	grown[at] = one;
	(*n)++;
	return &grown[at];
}

int lx_devstat_queues(const struct lx_counter *counter, unsigned n_counters,
		      struct lx_queue **queue, unsigned *n)
{
	int counted = 0;

	/* First those that count all packets; XDP's only where there are no others. */
	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < n_counters; i++) {
			enum lx_queue_counter what;
			struct lx_queue *q;
			enum lx_dir dir;
			unsigned id;
			bool xdp;

			if (!lx_devstat_queue(counter[i].name, &dir, &id, &what))
				continue;
			xdp = what == LX_Q_PACKETS_XDP || what == LX_Q_BYTES_XDP;
			if (xdp != (pass == 1))
				continue;
			q = queue_at(queue, n, dir, id);
			if (!q)
				return -ENOMEM;
			switch (what) {
			case LX_Q_PACKETS:
				q->packets += counter[i].value;
				q->counted = true;
				break;
			case LX_Q_BYTES:
				q->bytes += counter[i].value;
				break;
			case LX_Q_PACKETS_XDP:
				/* Its bytes come after it in every driver that has both. */
				if (!q->counted) {
					q->packets = counter[i].value;
					q->counted = true;
				}
				break;
			case LX_Q_BYTES_XDP:
				if (!q->bytes)
					q->bytes = counter[i].value;
				break;
			case LX_Q_DROPS:
				q->drops += counter[i].value;
				break;
			case LX_Q_ERRORS:
				q->errors += counter[i].value;
				break;
			case LX_Q_STOPS:
				q->stops += counter[i].value;
				break;
			}
		}
	}
	for (unsigned i = 0; i < *n; i++)
		counted += (*queue)[i].counted;
	return counted;
}
