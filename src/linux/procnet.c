// SPDX-License-Identifier: BSD-2-Clause
/* What the protocols count, and interfaces by /proc/net/dev. */
#include <string.h>

#include "base/compiler.h"
#include "linux/procfs.h"

#define PROTO(member, flag, what)                                      \
	{                                                              \
#member, offsetof(struct lx_proto, member), flag, what \
	}

const struct lx_field lx_proto_fields[] = {
	PROTO(udp_in, LX_FIELD_RX, "datagrams delivered to sockets"),
	PROTO(udp_out, LX_FIELD_TX, "datagrams sent"),
	PROTO(udp_in_errors, LX_FIELD_RX | LX_FIELD_DROP, "datagrams not delivered"),
	PROTO(udp_rcvbuf_errors, LX_FIELD_RX | LX_FIELD_DROP | LX_FIELD_PART,
	      "datagrams dropped because the receiving socket was full"),
	PROTO(udp_csum_errors, LX_FIELD_RX | LX_FIELD_DROP | LX_FIELD_PART,
	      "datagrams with a wrong checksum"),
	PROTO(udp_sndbuf_errors, LX_FIELD_TX | LX_FIELD_DROP,
	      "datagrams dropped because the sending socket or the device's queue was full"),
	PROTO(udp_no_ports, LX_FIELD_RX | LX_FIELD_DROP, "datagrams to a port without a socket"),
	PROTO(tcp_in, LX_FIELD_RX, "segments received"),
	PROTO(tcp_out, LX_FIELD_TX, "segments sent, without retransmissions"),
	PROTO(tcp_retransmits, LX_FIELD_TX | LX_FIELD_ERROR, "segments sent again"),
	PROTO(tcp_in_errors, LX_FIELD_RX | LX_FIELD_DROP, "segments received in error"),
	PROTO(tcp_csum_errors, LX_FIELD_RX | LX_FIELD_DROP | LX_FIELD_PART,
	      "segments with a wrong checksum"),
	PROTO(tcp_backlog_drops, LX_FIELD_RX | LX_FIELD_DROP,
	      "segments dropped because the socket's backlog was full"),
	PROTO(tcp_rcvq_drops, LX_FIELD_RX | LX_FIELD_DROP,
	      "segments dropped because the socket's receive queue was full"),
	PROTO(tcp_pruned, LX_FIELD_RX | LX_FIELD_ERROR, "receive queues pruned: buffer overrun"),
	PROTO(tcp_listen_drops, LX_FIELD_RX | LX_FIELD_DROP, "connections not accepted"),
	PROTO(ip_in, LX_FIELD_RX, "packets received, both versions"),
	PROTO(ip_out, LX_FIELD_TX, "packets sent from here"),
	PROTO(ip_forwarded, LX_FIELD_TX, "packets forwarded"),
	PROTO(ip_in_discards, LX_FIELD_RX | LX_FIELD_DROP, "received packets discarded"),
	PROTO(ip_out_discards, LX_FIELD_TX | LX_FIELD_DROP, "packets to send discarded"),
	PROTO(ip_in_errors, LX_FIELD_RX | LX_FIELD_DROP, "packets with header or address errors"),
	PROTO(ip_no_routes, LX_FIELD_TX | LX_FIELD_DROP, "packets without a route"),
	{ NULL, 0, 0, NULL },
};

/* The kernel's names for them. */
static const struct {
	const char *group, *name;
	size_t offset;
} snmp_map[] = {
#define SNMP(group, name, member)                              \
	{                                                      \
		group, name, offsetof(struct lx_proto, member) \
	}
	SNMP("Udp:", "InDatagrams", udp_in),
	SNMP("Udp:", "OutDatagrams", udp_out),
	SNMP("Udp:", "InErrors", udp_in_errors),
	SNMP("Udp:", "RcvbufErrors", udp_rcvbuf_errors),
	SNMP("Udp:", "SndbufErrors", udp_sndbuf_errors),
	SNMP("Udp:", "InCsumErrors", udp_csum_errors),
	SNMP("Udp:", "NoPorts", udp_no_ports),
	SNMP("Tcp:", "InSegs", tcp_in),
	SNMP("Tcp:", "OutSegs", tcp_out),
	SNMP("Tcp:", "RetransSegs", tcp_retransmits),
	SNMP("Tcp:", "InErrs", tcp_in_errors),
	SNMP("Tcp:", "InCsumErrors", tcp_csum_errors),
	SNMP("TcpExt:", "TCPBacklogDrop", tcp_backlog_drops),
	SNMP("TcpExt:", "TCPRcvQDrop", tcp_rcvq_drops),
	SNMP("TcpExt:", "PruneCalled", tcp_pruned),
	SNMP("TcpExt:", "ListenDrops", tcp_listen_drops),
	SNMP("Ip:", "InReceives", ip_in),
	SNMP("Ip:", "OutRequests", ip_out),
	SNMP("Ip:", "ForwDatagrams", ip_forwarded),
	SNMP("Ip:", "InDiscards", ip_in_discards),
	SNMP("Ip:", "OutDiscards", ip_out_discards),
	SNMP("Ip:", "InHdrErrors", ip_in_errors),
	SNMP("Ip:", "InAddrErrors", ip_in_errors),
	SNMP("Ip:", "OutNoRoutes", ip_no_routes),
	/* /proc/net/snmp6; TCP of both versions is counted in one place. */
	SNMP("6", "Udp6InDatagrams", udp_in),
	SNMP("6", "Udp6OutDatagrams", udp_out),
	SNMP("6", "Udp6InErrors", udp_in_errors),
	SNMP("6", "Udp6RcvbufErrors", udp_rcvbuf_errors),
	SNMP("6", "Udp6SndbufErrors", udp_sndbuf_errors),
	SNMP("6", "Udp6InCsumErrors", udp_csum_errors),
	SNMP("6", "Udp6NoPorts", udp_no_ports),
	SNMP("6", "Ip6InReceives", ip_in),
	SNMP("6", "Ip6OutRequests", ip_out),
	SNMP("6", "Ip6OutForwDatagrams", ip_forwarded),
	SNMP("6", "Ip6InDiscards", ip_in_discards),
	SNMP("6", "Ip6OutDiscards", ip_out_discards),
	SNMP("6", "Ip6InHdrErrors", ip_in_errors),
	SNMP("6", "Ip6InAddrErrors", ip_in_errors),
	SNMP("6", "Ip6OutNoRoutes", ip_no_routes),
	SNMP("6", "Ip6InNoRoutes", ip_no_routes),
#undef SNMP
};

static bool add_to(struct lx_proto *proto, const char *group, size_t group_n, const char *name,
		   size_t n, uint64_t value)
{
	for (size_t i = 0; i < HO_ARRAY_LEN(snmp_map); i++) {
		if (!lx_word_is(group, group_n, snmp_map[i].group) ||
		    !lx_word_is(name, n, snmp_map[i].name))
			continue;
		*(uint64_t *)((char *)proto + snmp_map[i].offset) += value;
		return true;
	}
	return false;
}

bool lx_parse_snmp(const struct lx_text *text, struct lx_proto *proto)
{
	struct lx_scan scan = lx_scan_text(text), names, values;
	bool found = false;

	/* A line of names, then one of as many numbers, both begin with the group. */
	while (lx_scan_line(&scan, &names) && lx_scan_line(&scan, &values)) {
		const char *group, *again, *name, *number;
		size_t group_n, again_n, n, number_n;

		if (!lx_scan_word(&names, &group, &group_n) ||
		    !lx_scan_word(&values, &again, &again_n) || group_n != again_n ||
		    memcmp(group, again, group_n))
			continue;
		while (lx_scan_word(&names, &name, &n)) {
			uint64_t value;

			/* Tcp's MaxConn may be -1. */
			if (!lx_scan_u64(&values, 10, &value)) {
				if (!lx_scan_word(&values, &number, &number_n))
					break;
				continue;
			}
			found = add_to(proto, group, group_n, name, n, value) || found;
		}
	}
	return found;
}

bool lx_parse_snmp6(const struct lx_text *text, struct lx_proto *proto)
{
	struct lx_scan scan = lx_scan_text(text), line;
	bool found = false;

	while (lx_scan_line(&scan, &line)) {
		const char *name;
		uint64_t value;
		size_t n;

		if (lx_scan_word(&line, &name, &n) && lx_scan_u64(&line, 10, &value))
			found = add_to(proto, "6", 1, name, n, value) || found;
	}
	return found;
}

#define LINK(member, flag, what)                                                \
	{                                                                       \
#member, offsetof(struct rtnl_link_stats64, member), flag, what \
	}

const struct lx_field lx_link_fields[] = {
	LINK(rx_packets, LX_FIELD_RX, "packets received"),
	LINK(tx_packets, LX_FIELD_TX, "packets sent"),
	LINK(rx_bytes, LX_FIELD_RX, "bytes received, without FCS"),
	LINK(tx_bytes, LX_FIELD_TX, "bytes sent, without FCS"),
	LINK(rx_errors, LX_FIELD_RX | LX_FIELD_ERROR, "bad packets received"),
	LINK(tx_errors, LX_FIELD_TX | LX_FIELD_ERROR, "packets that could not be sent"),
	LINK(rx_dropped, LX_FIELD_RX | LX_FIELD_DROP,
	     "received and dropped: no memory, no protocol, filtered"),
	LINK(tx_dropped, LX_FIELD_TX | LX_FIELD_DROP, "dropped on the way to the device"),
	LINK(multicast, LX_FIELD_RX, "multicast packets received"),
	LINK(collisions, LX_FIELD_TX, "collisions"),
	LINK(rx_length_errors, LX_FIELD_RX | LX_FIELD_ERROR | LX_FIELD_PART,
	     "of an invalid length"),
	LINK(rx_over_errors, LX_FIELD_RX | LX_FIELD_ERROR | LX_FIELD_PART,
	     "did not fit into the buffers given"),
	LINK(rx_crc_errors, LX_FIELD_RX | LX_FIELD_ERROR | LX_FIELD_PART, "with a wrong FCS"),
	LINK(rx_frame_errors, LX_FIELD_RX | LX_FIELD_ERROR | LX_FIELD_PART, "misaligned"),
	LINK(rx_fifo_errors, LX_FIELD_RX | LX_FIELD_ERROR | LX_FIELD_PART,
	     "receiver's FIFO overran"),
	LINK(rx_missed_errors, LX_FIELD_RX | LX_FIELD_DROP,
	     "dropped by the device: the host gave no buffer in time"),
	LINK(tx_aborted_errors, LX_FIELD_TX | LX_FIELD_ERROR | LX_FIELD_PART, "aborted"),
	LINK(tx_carrier_errors, LX_FIELD_TX | LX_FIELD_ERROR | LX_FIELD_PART, "carrier lost"),
	LINK(tx_fifo_errors, LX_FIELD_TX | LX_FIELD_ERROR | LX_FIELD_PART,
	     "transmitter's FIFO ran empty"),
	LINK(tx_heartbeat_errors, LX_FIELD_TX | LX_FIELD_ERROR | LX_FIELD_PART, "SQE test failed"),
	LINK(tx_window_errors, LX_FIELD_TX | LX_FIELD_ERROR | LX_FIELD_PART, "late collisions"),
	LINK(rx_compressed, LX_FIELD_RX, "compressed packets received"),
	LINK(tx_compressed, LX_FIELD_TX, "compressed packets sent"),
	LINK(rx_nohandler, LX_FIELD_RX | LX_FIELD_DROP,
	     "dropped: the device takes none (inactive)"),
	/* Not lost by accident: they were for another station; rx_dropped does not have them. */
	LINK(rx_otherhost_dropped, LX_FIELD_RX, "dropped: for another MAC address"),
	{ NULL, 0, 0, NULL },
};

bool lx_parse_netdev(const struct lx_text *text, const char *ifname, struct rtnl_link_stats64 *out)
{
	struct lx_scan scan = lx_scan_text(text), line;
	const size_t n = strlen(ifname);

	while (lx_scan_line(&scan, &line)) {
		uint64_t column[16] = { 0 };
		unsigned found = 0;

		/* Older kernels put no blank after the colon; a name may contain one itself. */
		if (!lx_scan_take(&line, ifname) || line.p >= line.end || *line.p != ':' || n == 0)
			continue;
		line.p++;
		while (found < HO_ARRAY_LEN(column) && lx_scan_u64(&line, 10, &column[found]))
			found++;
		if (found < HO_ARRAY_LEN(column))
			continue;
		*out = (struct rtnl_link_stats64){
			.rx_bytes = column[0],
			.rx_packets = column[1],
			.rx_errors = column[2],
			.rx_dropped = column[3],
			.rx_fifo_errors = column[4],
			.rx_frame_errors = column[5],
			.rx_compressed = column[6],
			.multicast = column[7],
			.tx_bytes = column[8],
			.tx_packets = column[9],
			.tx_errors = column[10],
			.tx_dropped = column[11],
			.tx_fifo_errors = column[12],
			.collisions = column[13],
			.tx_carrier_errors = column[14],
			.tx_compressed = column[15],
		};
		return true;
	}
	return false;
}
