/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that a Linux machine shows about interfaces over an interval, in one struct.
 *
 * struct lx_sample holds counters as the kernel shows them (since boot, or since the driver was
 * loaded); struct lx_delta has the same members and holds what happened between two samples, so
 * that one can be made of two samples of a live machine, or filled in by hand for a modelled one.
 * Members that are no counters (speed, affinity, settings, backlog) hold what they were at the end.
 *
 * Not everything can be read everywhere. `has` says what was; the members of a part that is not
 * there are 0 or empty, and never mean "none happened".
 *
 *   lx_sampler_open   for some interfaces
 *   lx_sampler_read   ... into a sample, as often as wanted
 *   lx_delta_make     ... the difference of two
 */
#ifndef HOLDOFF_LINUX_SAMPLE_H
#define HOLDOFF_LINUX_SAMPLE_H

#include <linux/if_link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define LX_IF_BYTES      16 /* IFNAMSIZ */
#define LX_COUNTER_BYTES 32 /* ETH_GSTRING_LEN: 31 characters */
#define LX_IRQ_BYTES     64 /* longer names are cut */
#define LX_CPUS_MAX      4096
#define LX_IFACES_MAX    32
#define LX_PIDS_MAX      64

/* ---- The machine ------------------------------------------------------------------------- */

/* Parts of the machine's counters. */
enum lx_host_part {
	LX_HOST_TIMES = 1 << 0,    /* cpu[].time_ns and switches: /proc/stat */
	LX_HOST_SOFTNET = 1 << 1,  /* cpu[].softnet: /proc/net/softnet_stat */
	LX_HOST_SOFTIRQS = 1 << 2, /* cpu[].net_rx, net_tx: /proc/softirqs */
	LX_HOST_SCHED = 1 << 3,    /* cpu[].schedules: /proc/schedstat (CONFIG_SCHEDSTATS) */
	LX_HOST_IRQS = 1 << 4,     /* cpu[].interrupts: /proc/interrupts */
	LX_HOST_PROTO = 1 << 5,    /* proto: /proc/net/snmp, snmp6, netstat */
	LX_HOST_TASKS = 1 << 6,    /* tasks: /proc/PID/task/TID/status, when asked for */
	LX_HOST_SOAK = 1 << 7,     /* cpu[].soaked_ns, when a soaker was given */
};

/* What a CPU did with its time, as /proc/stat has it; guest time is inside user and nice there
 * and is taken out of them here, so that these add up. */
enum lx_time {
	LX_TIME_USER,
	LX_TIME_NICE,
	LX_TIME_SYSTEM,
	LX_TIME_IDLE,
	LX_TIME_IOWAIT,
	LX_TIME_IRQ,
	LX_TIME_SOFTIRQ,
	LX_TIME_STEAL,
	LX_TIME_GUEST,
	LX_TIMES,
};
extern const char *const lx_time_names[LX_TIMES]; /* "user", ... */

/* /proc/net/softnet_stat: 32-bit counters there; differences are made modulo 2^32. */
struct lx_softnet {
	uint64_t processed;  /* frames that netif_receive_skb or the backlog handled */
	uint64_t dropped;    /* because the backlog (net.core.netdev_max_backlog) was full */
	uint64_t squeezed;   /* net_rx_action ended by budget or time with work left */
	uint64_t rps;        /* woken by another CPU's receive packet steering */
	uint64_t flow_limit; /* dropped by the backlog's flow limit */
	uint32_t backlog;    /* frames in the backlog now; 0 where the kernel does not tell */
};

struct lx_cpu {
	unsigned id;
	bool online; /* at both ends */
	uint64_t time_ns[LX_TIMES];
	struct lx_softnet softnet;
	uint64_t net_rx, net_tx; /* runs of these softirqs */
	uint64_t interrupts;     /* of numbered vectors (devices), whoever's */
	uint64_t local_timer;    /* x86's LOC; 0 elsewhere */
	uint64_t resched;        /* x86's RES: wake-ups across CPUs; 0 elsewhere */
	uint64_t schedules;      /* calls of the scheduler */
	uint64_t soaked_ns;      /* that a soaker of the lowest priority could use up */
	/* What the kernel says that the soaker used: in a delta it was taken off the user time,
	 * where the kernel counts it, and added to the idle time, which it is without a soaker. */
	uint64_t soaker_ns;
};

/* Losses and repairs above the interface. All interfaces of the network namespace together. */
struct lx_proto {
	uint64_t udp_in, udp_out;   /* datagrams */
	uint64_t udp_in_errors;     /* all of them; the next two are part of it */
	uint64_t udp_rcvbuf_errors; /* the receiver's socket was full */
	uint64_t udp_csum_errors;
	uint64_t udp_sndbuf_errors;
	uint64_t udp_no_ports;
	uint64_t tcp_in, tcp_out; /* segments */
	uint64_t tcp_retransmits, tcp_in_errors, tcp_csum_errors;
	uint64_t tcp_backlog_drops; /* TcpExt TCPBacklogDrop */
	uint64_t tcp_rcvq_drops;    /* TcpExt TCPRcvQDrop */
	uint64_t tcp_pruned;        /* TcpExt PruneCalled: receive buffer overrun */
	uint64_t tcp_listen_drops;  /* TcpExt ListenDrops */
	uint64_t ip_in, ip_out;     /* both versions */
	uint64_t ip_forwarded;
	uint64_t ip_in_discards, ip_out_discards, ip_in_errors, ip_no_routes;
};

/* The names and places of lx_proto's members, for tables and formats. Ends with a NULL name. */
struct lx_field {
	const char *name;
	size_t offset; /* of a uint64_t */
	uint8_t flags; /* LX_FIELD_* */
	const char *help;
};
enum {
	LX_FIELD_RX = 1 << 0,
	LX_FIELD_TX = 1 << 1,
	LX_FIELD_DROP = 1 << 2, /* a packet was lost, or may have been */
	LX_FIELD_ERROR = 1 << 3,
	/* Is counted inside another one (crc in rx_errors): not to be added up with it. */
	LX_FIELD_PART = 1 << 4,
};
extern const struct lx_field lx_proto_fields[];

/* Of the processes asked for, all their threads together. */
struct lx_tasks {
	unsigned threads;                /* now */
	uint64_t voluntary, involuntary; /* context switches */
	uint64_t user_ns, system_ns;
};

/* net.core of this network namespace; 0: does not show there (these are of the first namespace). */
struct lx_netcore {
	uint32_t budget;       /* frames of a net_rx_action */
	uint32_t budget_usecs; /* and its time */
	uint32_t max_backlog;
	uint32_t dev_weight;
	uint32_t rmem_max;
};

struct lx_host {
	uint32_t has; /* LX_HOST_* */
	unsigned n_cpus;
	struct lx_cpu *cpu; /* by rising id; those that are not there are left out */
	uint64_t switches;  /* context switches of the whole machine */
	uint64_t forks;
	uint64_t softirq_runs; /* of any kind */
	struct lx_proto proto;
	struct lx_tasks tasks;
	struct lx_netcore netcore;
};

/* ---- An interface ------------------------------------------------------------------------ */

enum lx_if_part {
	LX_IF_LINK = 1 << 0,     /* link */
	LX_IF_DRIVER = 1 << 1,   /* counter[]: the driver has ethtool -S counters */
	LX_IF_IRQS = 1 << 2,     /* irq[]: vectors were found; veth, bridges have none */
	LX_IF_QUEUES = 1 << 3,   /* queue[]: some queue's packets are counted */
	LX_IF_NAPI = 1 << 4,     /* napi[]: netdev netlink (6.8), or settings by sysfs */
	LX_IF_FACTS = 1 << 5,    /* facts */
	LX_IF_SETTINGS = 1 << 6, /* setting[] */
};

/* What is stable while an interface is what it is. */
struct lx_facts {
	char driver[32], bus[32]; /* "ixgbe", "0000:01:00.0"; "" where there is none */
	uint64_t link_bps;        /* 0 = unknown */
	uint32_t mtu;             /* bytes */
	bool up, running;
	unsigned rx_queues, tx_queues;
	int numa_node;       /* -1 = unknown or none */
	uint32_t pcie_mtps;  /* per lane, mega-transfers a second (8000 = gen 3); 0 unknown */
	uint32_t pcie_lanes; /* 0 unknown */
};

/* A vector of the interface. */
struct lx_irq {
	unsigned irq;
	char name[LX_IRQ_BYTES]; /* "eth0-TxRx-0", "virtio0-input.0" */
	int queue;               /* that it serves; -1: unknown, or none (link changes) */
	bool rx, tx;             /* what of that queue; both false when queue is -1 */
	uint64_t count;          /* all CPUs; 32-bit counters per CPU, made modulo 2^32 */
	uint32_t *on_cpu;        /* [n_cpus of the host], same order as lx_host.cpu */
	unsigned busiest;        /* id of the CPU with the most of them */
	char affinity[64];       /* effective_affinity_list, else smp_affinity_list: "0-3"; or "" */
};

enum lx_dir { LX_RX, LX_TX };

struct lx_queue {
	enum lx_dir dir;
	unsigned id;
	bool counted;            /* packets and bytes are known */
	uint64_t packets, bytes; /* bytes: 0 where the driver counts packets only */
	uint64_t drops, errors;  /* whatever the driver counts by queue under such names */
	uint64_t stops;          /* transmit queue stopped because it was full */
	uint32_t napi_id;        /* 0 = unknown */
	bool rps;                /* receive packet steering sends its frames to other CPUs */
	int irq;                 /* -1 = unknown */
};

/* A NAPI context: a poll loop of the driver. */
struct lx_napi {
	uint32_t id;
	int irq;             /* -1 = unknown */
	uint32_t thread_pid; /* 0: polls in softirq */
	uint32_t defer_hard_irqs;
	uint64_t gro_flush_timeout_ns;
	uint64_t irq_suspend_timeout_ns; /* 0 too where the kernel has none */
};

/* A counter of ethtool -S. */
struct lx_counter {
	char name[LX_COUNTER_BYTES];
	uint64_t value;
	bool backwards; /* in a delta: it fell, so it was reset or is no counter; value is 0 */
};

/* A setting as it is now (linux/params.h has its name and how to change it). */
struct lx_setting {
	const char *name; /* "rx", "rx-usecs", "gro": static text */
	uint64_t value;
	uint64_t min, max; /* max UINT64_MAX: the kernel does not tell */
	bool fixed;        /* cannot be changed here */
};

struct lx_ifdata {
	char name[LX_IF_BYTES];
	unsigned index; /* 0: there was no such interface; then `has` is 0 */
	/* In a delta: it came, went, or is another one of the same name; counters are 0 then. */
	bool appeared, vanished, replaced;
	/* In a delta: some counter of link fell (driver reloaded); those are 0. */
	bool backwards;
	uint32_t has; /* LX_IF_* */
	struct rtnl_link_stats64 link;
	struct lx_facts facts;
	unsigned n_irqs, n_queues, n_napis, n_counters, n_settings;
	struct lx_irq *irq;     /* by number */
	struct lx_queue *queue; /* receive queues by id, then transmit queues */
	struct lx_napi *napi;
	struct lx_counter *counter; /* in the driver's order */
	struct lx_setting *setting; /* in the order of linux/params.h */
};

/* rtnl_link_stats64's members with names ("rx_packets"), directions, and which are drops. */
extern const struct lx_field lx_link_fields[];

/* ---- Samples ----------------------------------------------------------------------------- */

struct lx_sample {
	uint64_t at_ns; /* CLOCK_MONOTONIC, in the middle of the reading */
	struct lx_host host;
	unsigned n_ifaces;
	struct lx_ifdata *iface; /* in the order asked for */
};

struct lx_delta {
	uint64_t interval_ns;
	struct lx_host host;
	unsigned n_ifaces;
	struct lx_ifdata *iface;
};

struct lx_soaker;

struct lx_sampler_config {
	const char *const *iface; /* names; an interface that is not there may come later */
	unsigned n_ifaces;        /* at most LX_IFACES_MAX */
	/*
	 * NULL for this machine. Otherwise a directory with a proc/ and a sys/ in it: these are
	 * read instead, and nothing is asked by netlink or ioctl: an interface's counters come from
	 * proc/net/dev and sys/class/net, its driver's from a file ethtool/IFACE beside proc/,
	 * which is what ethtool -S printed, if there is one, and there are fewer settings.
	 */
	const char *root;
	const int *pid; /* for lx_host.tasks; n_pids 0: none */
	unsigned n_pids;
	bool all_tasks;           /* instead of pid: every thread of the machine; dear */
	struct lx_soaker *soaker; /* linux/soaker.h, or NULL */
	/* Facts, settings, NAPI settings and affinity are read again after so long; 0: each time.
	 */
	uint64_t refresh_ns;
};

struct lx_sampler;

/*
 * -EINVAL: a name that cannot be an interface's, too many. An interface that does not exist is no
 * error here. Names and pids are copied.
 */
int lx_sampler_open(const struct lx_sampler_config *config, struct lx_sampler **out,
		    struct ho_err *err);
void lx_sampler_close(struct lx_sampler *sampler); /* NULL is allowed */

/*
 * Reads all into *out, which must be zeroed or a sample of before (its memory is used again).
 * What cannot be read is left out of `has`. -ENOMEM; the kernel's text is never an error,
 * however odd.
 */
int lx_sampler_read(struct lx_sampler *sampler, struct lx_sample *out, struct ho_err *err);

/* Something was changed: the next reading also asks for what seldom changes (settings, queues,
 * vectors, facts), whatever refresh_ns says. */
void lx_sampler_refresh(struct lx_sampler *sampler);

/* What could not be read, and why, in sentences: the i-th of the last reading; NULL after the
 * last. Valid until the next reading. */
const char *lx_sampler_missing(const struct lx_sampler *sampler, unsigned i);

/* to - from, into *out, which must be zeroed or a delta of before. Both of one sampler. -ENOMEM. */
int lx_delta_make(const struct lx_sample *from, const struct lx_sample *to, struct lx_delta *out);

/* A copy with memory of its own into *out, which must be zeroed or a delta of before. -ENOMEM. */
int lx_delta_copy(const struct lx_delta *delta, struct lx_delta *out);

/* Frees what is in it; zeroes it. */
void lx_sample_fini(struct lx_sample *sample);
void lx_delta_fini(struct lx_delta *delta);

/* ---- Looking things up ------------------------------------------------------------------- */

/* NULL if there is none. */
const struct lx_counter *lx_counter_find(const struct lx_ifdata *iface, const char *name);
const struct lx_queue *lx_queue_find(const struct lx_ifdata *iface, enum lx_dir dir, unsigned id);
const struct lx_setting *lx_setting_find(const struct lx_ifdata *iface, const char *name);
const struct lx_irq *lx_irq_find(const struct lx_ifdata *iface, unsigned irq);

static inline uint64_t lx_field_get(const void *of, const struct lx_field *field)
{
	return *(const uint64_t *)((const char *)of + field->offset);
}

/*
 * The part of a CPU's time over all of its accounted time, 0 to 1; ticks are 10 ms, so over less
 * than a second it is coarse. 0 if nothing was accounted.
 */
double lx_cpu_share(const struct lx_cpu *cpu, enum lx_time time);

/* All of its vectors. */
uint64_t lx_irqs_sum(const struct lx_ifdata *iface);

#endif
