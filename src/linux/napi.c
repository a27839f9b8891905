// SPDX-License-Identifier: BSD-2-Clause
#include "linux/napi.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "linux/genl.h"

/* Numbers of the netdev family that this uses. */
enum { CMD_QUEUE_GET = 10, CMD_NAPI_GET = 11, CMD_QSTATS_GET = 12, CMD_NAPI_SET = 14 };
enum {
	A_NAPI_IFINDEX = 1,
	A_NAPI_ID,
	A_NAPI_IRQ,
	A_NAPI_PID,
	A_NAPI_DEFER_HARD_IRQS,
	A_NAPI_GRO_FLUSH_TIMEOUT,
	A_NAPI_IRQ_SUSPEND_TIMEOUT,
};
enum { A_QUEUE_ID = 1, A_QUEUE_IFINDEX, A_QUEUE_TYPE, A_QUEUE_NAPI_ID };
enum {
	A_QSTATS_IFINDEX = 1,
	A_QSTATS_QUEUE_TYPE,
	A_QSTATS_QUEUE_ID,
	A_QSTATS_SCOPE,
	A_QSTATS_RX_PACKETS = 8,
	A_QSTATS_RX_BYTES,
	A_QSTATS_TX_PACKETS,
	A_QSTATS_TX_BYTES,
	A_QSTATS_RX_ALLOC_FAIL,
	A_QSTATS_RX_HW_DROPS,
	A_QSTATS_RX_HW_DROP_OVERRUNS, /* part of the drops */
	A_QSTATS_RX_CSUM_BAD = 18,
	A_QSTATS_TX_HW_DROPS = 24,
	A_QSTATS_TX_HW_DROP_ERRORS, /* part of the drops */
	A_QSTATS_TX_STOP = 33,
};
#define SCOPE_QUEUE 1u
/* A dump that something changed under is answered with -EINTR. */
#define TRIES 4

/* Both lists grow the same way. */
struct list {
	void *at;
	unsigned n, room;
	size_t size;
	bool settings;
};

static void *add(struct list *list)
{
	if (list->n == list->room) {
		unsigned room = list->room ? 2 * list->room : 16;
		void *grown = realloc(list->at, room * list->size);

		if (!grown)
			return NULL;
		list->at = grown;
		list->room = room;
	}
	return (char *)list->at + list->n++ * list->size;
}

static int no_memory(void)
{
	errno = ENOMEM;
	return MNL_CB_ERROR;
}

static int on_napi(const struct nlmsghdr *msg, void *arg)
{
	struct list *list = arg;
	struct lx_napi *napi = add(list);
	const struct nlattr *attr;

	if (!napi)
		return no_memory();
	*napi = (struct lx_napi){ .irq = -1 };
	mnl_attr_for_each(attr, msg, sizeof(struct genlmsghdr))
	{
		uint64_t value = lx_attr_uint(attr);

		switch (mnl_attr_get_type(attr)) {
		case A_NAPI_ID:
			napi->id = (uint32_t)value;
			break;
		case A_NAPI_IRQ:
			napi->irq = (int)value;
			break;
		case A_NAPI_PID:
			napi->thread_pid = (uint32_t)value;
			break;
		case A_NAPI_DEFER_HARD_IRQS:
			napi->defer_hard_irqs = (uint32_t)value;
			list->settings = true;
			break;
		case A_NAPI_GRO_FLUSH_TIMEOUT:
			napi->gro_flush_timeout_ns = value;
			break;
		case A_NAPI_IRQ_SUSPEND_TIMEOUT:
			napi->irq_suspend_timeout_ns = value;
			break;
		}
	}
	return MNL_CB_OK;
}

static int on_queue(const struct nlmsghdr *msg, void *arg)
{
	struct lx_queue *queue = add(arg);
	const struct nlattr *attr;

	if (!queue)
		return no_memory();
	*queue = (struct lx_queue){ .irq = -1 };
	mnl_attr_for_each(attr, msg, sizeof(struct genlmsghdr))
	{
		uint64_t value = lx_attr_uint(attr);

		switch (mnl_attr_get_type(attr)) {
		case A_QUEUE_ID:
			queue->id = (unsigned)value;
			break;
		case A_QUEUE_TYPE:
			queue->dir = value ? LX_TX : LX_RX;
			break;
		case A_QUEUE_NAPI_ID:
			queue->napi_id = (uint32_t)value;
			break;
		}
	}
	return MNL_CB_OK;
}

/* Dumps a command's objects of one interface; size 0: no list. */
static int dump(uint8_t command, uint16_t attr_ifindex, unsigned ifindex, mnl_cb_t on_message,
		struct list *list)
{
	int family = lx_genl_family("netdev"), rc = -EINTR;
	char buf[LX_NL_REQUEST_BYTES];

	if (family < 0)
		return family;
	for (unsigned i = 0; i < TRIES && rc == -EINTR; i++) {
		struct nlmsghdr *msg = lx_genl_begin(buf, family, command);

		msg->nlmsg_flags = NLM_F_DUMP;
		mnl_attr_put_u32(msg, attr_ifindex, ifindex);
		list->n = 0;
		rc = lx_netlink_ask(NETLINK_GENERIC, msg, on_message, list, NULL);
	}
	return rc;
}

static int napi_order(const void *a, const void *b)
{
	const struct lx_napi *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

int lx_queue_order(const void *a, const void *b)
{
	const struct lx_queue *x = a, *y = b;

	if (x->dir != y->dir)
		return x->dir < y->dir ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

int lx_napi_list(unsigned ifindex, struct lx_napi **out, unsigned *n, bool *settings)
{
	struct list list = { .at = *out, .size = sizeof(**out) };
	int rc = dump(CMD_NAPI_GET, A_NAPI_IFINDEX, ifindex, on_napi, &list);

	*out = list.at;
	*n = rc < 0 ? 0 : list.n;
	if (settings)
		*settings = list.settings;
	if (*n)
		qsort(*out, *n, sizeof(**out), napi_order);
	return rc;
}

int lx_napi_queues(unsigned ifindex, struct lx_queue **out, unsigned *n)
{
	struct list list = { .at = *out, .size = sizeof(**out) };
	int rc = dump(CMD_QUEUE_GET, A_QUEUE_IFINDEX, ifindex, on_queue, &list);

	*out = list.at;
	*n = rc < 0 ? 0 : list.n;
	if (*n)
		qsort(*out, *n, sizeof(**out), lx_queue_order);
	return rc;
}

struct qstats {
	struct lx_queue *queue;
	unsigned n, counted;
};

static int on_qstats(const struct nlmsghdr *msg, void *arg)
{
	struct qstats *stats = arg;
	struct lx_queue got = { 0 }, *queue;
	const struct nlattr *attr;

	mnl_attr_for_each(attr, msg, sizeof(struct genlmsghdr))
	{
		uint64_t value = lx_attr_uint(attr);

		switch (mnl_attr_get_type(attr)) {
		case A_QSTATS_QUEUE_TYPE:
			got.dir = value ? LX_TX : LX_RX;
			break;
		case A_QSTATS_QUEUE_ID:
			got.id = (unsigned)value;
			break;
		case A_QSTATS_RX_PACKETS:
		case A_QSTATS_TX_PACKETS:
			got.packets = value;
			got.counted = true;
			break;
		case A_QSTATS_RX_BYTES:
		case A_QSTATS_TX_BYTES:
			got.bytes = value;
			break;
		case A_QSTATS_RX_HW_DROPS:
		case A_QSTATS_TX_HW_DROPS:
			got.drops = value;
			break;
		case A_QSTATS_RX_ALLOC_FAIL:
		case A_QSTATS_RX_CSUM_BAD:
			got.errors += value;
			break;
		case A_QSTATS_TX_STOP:
			got.stops = value;
			break;
		}
	}
	queue = bsearch(&got, stats->queue, stats->n, sizeof(got), lx_queue_order);
	if (queue && got.counted) {
		got.napi_id = queue->napi_id;
		got.irq = queue->irq;
		got.rps = queue->rps;
		*queue = got;
		stats->counted++;
	}
	return MNL_CB_OK;
}

int lx_napi_qstats(unsigned ifindex, struct lx_queue *queue, unsigned n)
{
	int family = lx_genl_family("netdev"), rc;
	struct qstats stats = { .queue = queue, .n = n };
	char buf[LX_NL_REQUEST_BYTES];
	struct nlmsghdr *msg;

	if (family < 0)
		return family;
	if (!n)
		return 0;
	msg = lx_genl_begin(buf, family, CMD_QSTATS_GET);
	msg->nlmsg_flags = NLM_F_DUMP;
	mnl_attr_put_u32(msg, A_QSTATS_IFINDEX, ifindex);
	mnl_attr_put_u32(msg, A_QSTATS_SCOPE, SCOPE_QUEUE);
	rc = lx_netlink_ask(NETLINK_GENERIC, msg, on_qstats, &stats, NULL);
	return rc < 0 ? rc : (int)stats.counted;
}

int lx_napi_set(uint32_t id, enum lx_napi_setting what, uint64_t value, char *says, size_t bytes)
{
	static const uint16_t attrs[] = {
		[LX_NAPI_DEFER_HARD_IRQS] = A_NAPI_DEFER_HARD_IRQS,
		[LX_NAPI_GRO_FLUSH_TIMEOUT] = A_NAPI_GRO_FLUSH_TIMEOUT,
		[LX_NAPI_IRQ_SUSPEND_TIMEOUT] = A_NAPI_IRQ_SUSPEND_TIMEOUT,
	};
	int family = lx_genl_family("netdev");
	char buf[LX_NL_REQUEST_BYTES];
	struct nlmsghdr *msg;

	if (family < 0)
		return family;
	msg = lx_genl_begin(buf, family, CMD_NAPI_SET);
	mnl_attr_put_u32(msg, A_NAPI_ID, id);
	/* The timeouts are the specification's "uint": 4 bytes where they suffice, else 8. */
	if (value <= UINT32_MAX)
		mnl_attr_put_u32(msg, attrs[what], (uint32_t)value);
	else
		mnl_attr_put_u64(msg, attrs[what], value);
	return lx_netlink_ask_why(NETLINK_GENERIC, msg, NULL, NULL, says, bytes, NULL);
}
