/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a Linux box shows of one interface and of itself over some seconds: the only thing that
 * verdicts are made from. It is filled from a live box (counters of /proc, ethtool and netlink) or
 * from a run in the lab, and there only with what a Linux box would show too: ms_evidence_lab
 * leaves out whatever only a model knows, such as how busy its bus is.
 *
 * Each number may be unknown (NAN): it was not there, or nobody may read it. The table says where
 * each comes from and what stays hidden without it.
 */
#ifndef HOLDOFF_MEASURE_EVIDENCE_H
#define HOLDOFF_MEASURE_EVIDENCE_H

#include <math.h>
#include <stdbool.h>

#include "lab/run.h"
#include "linux/sample.h"

/*      id, key, unit, where Linux shows it, what is hidden without it */
#define MS_EVIDENCE(X)                                                                             \
	X(TX_PPS, "tx_pps", "/s", "ethtool -S: tx_pkts_nic; ip -s link: frames sent",              \
	  "whether it sends at all")                                                               \
	X(TX_BYTES, "tx_bytes_per_s", "B/s", "ip -s link: bytes sent", "how full the wire is")     \
	X(RX_PPS, "rx_pps", "/s", "ip -s link: frames received", "whether it receives at all")     \
	X(RX_BYTES, "rx_bytes_per_s", "B/s", "ip -s link: bytes received", "how full the wire is") \
	X(IRQS, "irqs_per_s", "/s", "/proc/interrupts, the interface's vectors",                   \
	  "moderation and the price of interrupts")                                                \
	X(TX_RESTART, "tx_restart_per_s", "/s", "ethtool -S: tx_restart_queue",                    \
	  "a transmit ring that fills up")                                                         \
	X(SENDER_WAITS, "sender_waits", "",                                                        \
	  "pktgen's idle time; holdoff gen's time with a full ring",                               \
	  "how much of a sender's CPU time is waiting for the ring")                               \
	X(OFFERED_PPS, "offered_pps", "/s", "the rate that the sender was given",                  \
	  "whether more would be sent if it were asked for")                                       \
	X(RX_MISSED, "rx_missed_per_s", "/s", "ethtool -S: rx_missed_errors",                      \
	  "frames lost in the chip before a descriptor was there")                                 \
	X(RX_NO_DESC, "rx_no_desc_per_s", "/s", "ethtool -S: rx_no_dma_resources",                 \
	  "frames lost because the receive ring was empty")                                        \
	X(RX_NO_BUFFER, "rx_no_buffer_per_s", "/s", "ethtool -S: alloc_rx_buff_failed",            \
	  "a lack of memory for received frames")                                                  \
	X(RX_ERRORS, "rx_errors_per_s", "/s", "ip -s link: rx errors",                             \
	  "frames that the cable or the other end spoilt")                                         \
	X(LOST_BEFORE, "lost_before_per_s", "/s",                                                  \
	  "gaps in the receiver's numbers less our own drops; TcpRetransSegs",                     \
	  "frames lost on the wire before us")                                                     \
	X(RX_NIC, "rx_nic_pps", "/s", "ethtool -S: rx_pkts_nic", "frames that wait in the chip")   \
	X(SOFTNET, "softnet_pps", "/s", "/proc/net/softnet_stat: processed",                       \
	  "whether frames reach the protocol stack")                                               \
	X(BACKLOG_DROPS, "backlog_drops_per_s", "/s", "/proc/net/softnet_stat: dropped",           \
	  "drops at the backlog")                                                                  \
	X(SQUEEZED, "squeezed_per_s", "/s", "/proc/net/softnet_stat: time_squeeze",                \
	  "softirq rounds that ended with work left")                                              \
	X(SOCKET_PPS, "socket_pps", "/s", "/proc/net/snmp: UdpInDatagrams and UdpRcvbufErrors",    \
	  "what the program is given")                                                             \
	X(SOCKET_DROPS, "socket_drops_per_s", "/s", "/proc/net/snmp: UdpRcvbufErrors; ss -m",      \
	  "a program that reads too slowly")                                                       \
	X(NO_PORT, "no_port_per_s", "/s", "/proc/net/snmp: UdpNoPorts",                            \
	  "datagrams that no program waits for")                                                   \
	X(TRANSACTIONS, "transactions_per_s", "/s",                                                \
	  "the client's or server's own count; small packets of the stack, as many each way",      \
	  "how long a request waits")                                                              \
	X(OUTSTANDING, "outstanding", "", "the client's setting",                                  \
	  "whether requests wait for each other")                                                  \
	X(THINK, "think_ns", "ns", "the client's setting",                                         \
	  "how much of a round is the client's own pause")                                         \
	X(LATENCY, "latency_ns", "ns", "the client's own measurement", "the length of a wait")     \
	X(SWITCHES, "switches_per_s", "/s", "/proc/PID/status of the program: ctxt_switches",      \
	  "wake-ups and preemption")                                                               \
	X(LINK_BPS, "link_bps", "bit/s", "ethtool: Speed", "a full wire")                          \
	X(PCI_BPS, "pci_bps", "bit/s", "lspci -vv: LnkSta, each way after line coding",            \
	  "a full bus")                                                                            \
	X(PCI_PAYLOAD, "pci_payload_bytes", "B", "lspci -vv: MaxPayload", "a full bus")            \
	X(TX_RING, "tx", "", "ethtool -g", "ring depth against rate")                              \
	X(RX_RING, "rx", "", "ethtool -g", "ring depth against rate")                              \
	X(TX_RESERVED, "tx_reserved", "", "the driver: descriptors that stay free when it stops",  \
	  "how many frames can be in flight")                                                      \
	X(RX_USECS, "rx_usecs", "us", "ethtool -c", "moderation")                                  \
	X(ADAPTIVE, "adaptive", "", "ethtool -c: Adaptive", "moderation that changes by itself")   \
	X(BUDGET, "budget", "", "sysctl net.core.netdev_budget", "the softirq budget")             \
	X(BQL, "bql", "", "/sys/class/net/IFACE/queues/tx-0/byte_queue_limits",                    \
	  "byte queue limits")                                                                     \
	X(TSO, "tso", "", "ethtool -k: tcp-segmentation-offload", "segmentation in software")      \
	X(GRO, "gro", "", "ethtool -k: generic-receive-offload", "small frames in the stack")      \
	X(CSUM, "csum", "", "ethtool -k: rx-checksumming, tx-checksumming",                        \
	  "checksums in software")                                                                 \
	X(TCP_PPS, "tcp_pps", "/s", "/proc/net/snmp: TcpInSegs, TcpOutSegs",                       \
	  "whether segmentation offload matters")                                                  \
	X(CSUM_ERRORS, "csum_errors_per_s", "/s", "ethtool -S: rx_csum_offload_errors",            \
	  "checksum offload that falls back")                                                      \
	X(L1D_BYTES, "l1d_bytes", "B", "lscpu -C", "work that spills out of the cache")            \
	X(CACHE_MISSES, "cache_misses_per_s", "/s", "perf stat -e cache-misses",                   \
	  "look-up and cache misses")                                                              \
	X(FORWARDED, "forwarded_pps", "/s", "/proc/net/snmp: IpForwDatagrams", "route look-ups")

enum ms_evidence_id {
#define MS_EVIDENCE_ENUM(id, key, unit, where, hides) MS_EV_##id,
	MS_EVIDENCE(MS_EVIDENCE_ENUM)
#undef MS_EVIDENCE_ENUM
		MS_EV_COUNT,
};

struct ms_evidence_info {
	const char *key, *unit, *where, *hides;
};
extern const struct ms_evidence_info ms_evidence_info[MS_EV_COUNT];

#define MS_EV_CPUS    64
#define MS_EV_QUEUES  16
#define MS_EV_VECTORS 32

/* Shares of its time, 0 to 1. */
struct ms_ev_cpu {
	double user, system, irq, softirq, idle;
	bool app; /* a program of this traffic runs on it (/proc/PID/stat) */
};

struct ms_ev_queue {
	int irq_cpu; /* -1 = unknown */
	double irqs, rx_pps, tx_pps;
};

/* Who attends to the queues. */
enum ms_ev_mode {
	MS_MODE_UNKNOWN,
	MS_MODE_NAPI,
	MS_MODE_DIRECT, /* everything in the interrupt handler */
	MS_MODE_POLL,   /* a thread that never sleeps; no interrupts */
	MS_MODE_OTHER,
};
extern const char *const ms_mode_names[]; /* by enum ms_ev_mode */

#define MS_EV_NAME 64

struct ms_evidence {
	char name[MS_EV_NAME]; /* "eth0", "dut.eth0" */
	double seconds;        /* so long was looked */
	double value[MS_EV_COUNT];
	enum ms_ev_mode mode;
	/* The CPUs' times hold whatever else runs on the box: a live one shows no part of them. */
	bool shared_cpus;
	unsigned n_cpus, n_queues;
	struct ms_ev_cpu cpu[MS_EV_CPUS];
	struct ms_ev_queue queue[MS_EV_QUEUES];
	/* Where a queue has a vector for each direction: numbers of all vectors, and interrupts a
	 * second of the busiest. NAN: a queue has one. */
	unsigned n_vectors, vector[MS_EV_VECTORS];
	double busiest_vector;
};

/* All unknown. */
void ms_evidence_init(struct ms_evidence *ev);

static inline double ms_ev(const struct ms_evidence *ev, enum ms_evidence_id id)
{
	return ev->value[id];
}

/* 0 if it is unknown. */
static inline double ms_ev0(const struct ms_evidence *ev, enum ms_evidence_id id)
{
	return isnan(ev->value[id]) ? 0 : ev->value[id];
}

double ms_ev_busy(const struct ms_ev_cpu *cpu);

/* From a run: the chip `chip` (index into result->chip) and its host, as Linux on it would show. */
void ms_evidence_lab(const struct lab_scenario *scenario, const struct lab_result *result,
		     unsigned chip, struct ms_evidence *ev);

/* From a live box: interface `iface` (index into delta->iface). */
void ms_evidence_linux(const struct lx_delta *delta, unsigned iface, struct ms_evidence *ev);

#endif
