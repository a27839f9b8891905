/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine's counters out of the text of /proc files, as kernels since 3.x write it. Each takes
 * the text as it is, from a kernel or from anybody, fills in what it finds and returns whether it
 * was such a file at all. Formats: Documentation/filesystems/proc.rst and the kernel's functions
 * that print them, which are named at each.
 */
#ifndef HOLDOFF_LINUX_PROCFS_H
#define HOLDOFF_LINUX_PROCFS_H

#include "linux/sample.h"
#include "linux/textfile.h"

/* The CPU of that id, made if there is none yet (ids may come in any order); NULL: the id is
 * LX_CPUS_MAX or more, or no memory. Pointers to others are invalid after. */
struct lx_cpu *lx_host_cpu(struct lx_host *host, unsigned id);

/* /proc/stat (show_stat): times, switches, forks. tick_ns: of sysconf(_SC_CLK_TCK). */
bool lx_parse_stat(const struct lx_text *text, uint64_t tick_ns, struct lx_host *host);

/*
 * /proc/net/softnet_stat (softnet_seq_show): hexadecimal. The CPU's id is column 13 since 5.10;
 * before that rows are those of the CPUs online, in order, so /proc/stat must have been read.
 */
bool lx_parse_softnet(const struct lx_text *text, struct lx_host *host);

/* /proc/softirqs (show_softirqs): NET_RX and NET_TX. */
bool lx_parse_softirqs(const struct lx_text *text, struct lx_host *host);

/* /proc/schedstat (show_schedstat), versions 10 to 17: schedules. */
bool lx_parse_schedstat(const struct lx_text *text, struct lx_host *host);

/* /proc/net/snmp and netstat (pairs of lines), snmp6 (a name and a number a line); adds to what is
 * there, so that both versions of IP end in one. */
bool lx_parse_snmp(const struct lx_text *text, struct lx_proto *proto);
bool lx_parse_snmp6(const struct lx_text *text, struct lx_proto *proto);

/* /proc/net/dev (dev_seq_printf_stats): the line of one interface. Sums there are left in the
 * member that they are named after: drop is rx_dropped, frame is rx_frame_errors. */
bool lx_parse_netdev(const struct lx_text *text, const char *ifname, struct rtnl_link_stats64 *out);

/* /proc/PID/task/TID/status: voluntary_ctxt_switches and the other; adds. */
bool lx_parse_status(const struct lx_text *text, struct lx_tasks *tasks);
/* /proc/PID/task/TID/stat: utime and stime, whatever the command's name contains; adds. */
bool lx_parse_task_stat(const struct lx_text *text, uint64_t tick_ns, struct lx_tasks *tasks);

/* A list such as "0-3,8" with this CPU in it? */
bool lx_cpulist_has(const char *list, unsigned cpu);

/* ---- /proc/interrupts (show_interrupts) ---- */

struct lx_vectors {
	struct lx_irq *irq; /* numbered ones, in the file's order; on_cpu points into counts */
	unsigned n, room;
	uint32_t *counts; /* [n][n_columns] */
	size_t counts_room;
	unsigned *column; /* CPU ids of the columns */
	unsigned n_columns, columns_room;
};

/*
 * Reads all vectors into *out (memory is used again), their names as the file has them, and the
 * sums by CPU into host. queue, rx and tx are not set. False: not such a file, or no memory.
 */
bool lx_parse_interrupts(const struct lx_text *text, struct lx_vectors *out, struct lx_host *host);
void lx_vectors_fini(struct lx_vectors *vectors);

/*
 * Is this vector's name one of this interface's: its own name in it as a word ("eth0-TxRx-0",
 * "i40e-eth0-TxRx-0"), or that of its virtio device ("virtio2-input.0"; virtio "" if it is none)?
 */
bool lx_irq_is_of(const char *irq_name, const char *ifname, const char *virtio);

/* Which queue a vector's name says that it serves; queue -1 when it says nothing of it. */
void lx_irq_queue(const char *irq_name, const char *ifname, int *queue, bool *rx, bool *tx);

#endif
