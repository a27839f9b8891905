/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a generator's frames look like: one or more streams, each with headers, a payload and
 * fields that vary from frame to frame. docs/frames.md is the manual.
 *
 * Every field is a text in one small language, whether it comes from a command line or from a YAML
 * file:
 *
 *   VALUE                     always the same: 5000, 10.0.0.1, 02:00:00:00:00:01, 2001:db8::1
 *   VALUE-VALUE [step N]      counts from the first to the second (down if the second is less)
 *   ADDRESS/BITS [step N]     all addresses of the prefix, counting
 *   VALUE,VALUE,...           takes turns
 *   random ANY-OF-THESE       picks one of them, by the seed
 *   ANY-OF-THESE every N      changes only after N frames of the stream
 *
 * Frame i of a specification is a function of the specification, its seed and i alone.
 */
#ifndef HOLDOFF_TRAFFIC_SPEC_H
#define HOLDOFF_TRAFFIC_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * The fields of a stream: member and key (with '-' for '_' in files and options), what its value
 * looks like, help. One list for the YAML schema, the command line and the manual.
 */
#define TR_STREAM_FIELDS(X)                                                                     \
	X(name, "name", "TEXT", "what messages call the stream")                                \
	X(weight, "weight", "N", "share of the frames, relative to the other streams [1]")      \
	X(size, "size", "BYTES",                                                                \
	  "frame without FCS: a value, range or list; 'imix'; LENGTH:WEIGHT,... "               \
	  "[60, or what headers and stamp need]")                                               \
	X(eth_dst, "eth-dst", "MAC", "destination [02:00:00:00:00:02]")                         \
	X(eth_src, "eth-src", "MAC", "source [the port's own, else 02:00:00:00:00:01]")         \
	X(ethertype, "ethertype", "N", "of a frame without IP; 0x88b5 is for experiments")      \
	X(vlan, "vlan", "ID", "outer or only VLAN tag")                                         \
	X(vlan_pcp, "vlan-pcp", "0-7", "its priority [0]")                                      \
	X(vlan_dei, "vlan-dei", "0-1", "its drop-eligible bit [0]")                             \
	X(vlan_tpid, "vlan-tpid", "N", "its type [0x8100; 0x88a8 when there is a second tag]")  \
	X(vlan2, "vlan2", "ID", "inner VLAN tag, type 0x8100")                                  \
	X(vlan2_pcp, "vlan2-pcp", "0-7", "its priority [0]")                                    \
	X(vlan2_dei, "vlan2-dei", "0-1", "its drop-eligible bit [0]")                           \
	X(ip_src, "ip-src", "ADDRESS", "IPv4 or IPv6 source [198.18.0.1 or 2001:2::1]")         \
	X(ip_dst, "ip-dst", "ADDRESS", "IPv4 or IPv6 destination [198.18.0.2 or 2001:2::2]")    \
	X(ttl, "ttl", "0-255", "TTL or hop limit [64]")                                         \
	X(tos, "tos", "0-255", "type of service or traffic class [0]")                          \
	X(ip_id, "ip-id", "0-65535", "IPv4 identification [0]")                                 \
	X(df, "df", "yes|no", "IPv4 don't-fragment bit [no]")                                   \
	X(flow_label, "flow-label", "0-1048575", "IPv6 flow label [0]")                         \
	X(proto, "proto", "udp|tcp|icmp|N", "what IP carries [udp]")                            \
	X(src_port, "src-port", "PORT", "UDP or TCP source port [49152]")                       \
	X(dst_port, "dst-port", "PORT", "UDP or TCP destination port [9]")                      \
	X(udp_checksum, "udp-checksum", "yes|no", "no = 0 on the wire, IPv4 only [yes]")        \
	X(tcp_flags, "tcp-flags", "fsrpauec", "letters of fin syn rst psh ack urg ece cwr [a]") \
	X(tcp_seq, "tcp-seq", "N", "TCP sequence number [0]")                                   \
	X(tcp_ack, "tcp-ack", "N", "TCP acknowledgement number [0]")                            \
	X(tcp_window, "tcp-window", "0-65535", "TCP window [65535]")                            \
	X(icmp_type, "icmp-type", "0-255", "ICMP type [echo request: 8, IPv6 128]")             \
	X(icmp_code, "icmp-code", "0-255", "ICMP code [0]")                                     \
	X(icmp_id, "icmp-id", "0-65535", "ICMP echo identifier [1]")                            \
	X(icmp_seq, "icmp-seq", "0-65535", "ICMP echo sequence number [0]")                     \
	X(payload, "payload", "zero|counting|random|text:T|hex:H",                              \
	  "what follows the headers, repeated to the frame's end [zero]")

/* One stream as texts; NULL = the default. */
struct tr_stream_text {
#define TR_STREAM_MEMBER(member, key, arg, help) const char *member;
	TR_STREAM_FIELDS(TR_STREAM_MEMBER)
#undef TR_STREAM_MEMBER
};

/* For command lines and manuals: the fields as a table that ends with a NULL key. */
struct tr_stream_field {
	const char *key;  /* "ip-src" */
	const char *arg;  /* "ADDRESS" */
	const char *help; /* one line */
	size_t offset;    /* of the const char * in struct tr_stream_text */
};
extern const struct tr_stream_field tr_stream_fields[];

/* A whole specification as texts. */
struct tr_spec_text {
	const char *seed;  /* of random fields: a number [1] */
	const char *stamp; /* "yes", "no" or "auto" (yes if every frame has room for it) [auto] */
	const struct tr_stream_text *streams;
	uint32_t n_streams; /* 0 = one stream of defaults */
};

struct tr_spec;

/*
 * Checks the texts and prepares the frames. The texts are not needed afterwards. -EINVAL with the
 * field, its text and what would be right, for anything that cannot be sent: a size below the
 * headers or above 64 KB, a VLAN id above 4094, a bad address, an empty range, weights that sum to
 * 0, a field that the chosen protocol does not have.
 */
int tr_spec_create(const struct tr_spec_text *text, struct tr_spec **out, struct ho_err *err);

/* The text that a complaint is about. */
struct tr_spec_fault {
	const char *key; /* of struct tr_stream_text, "seed" or "stamp"; NULL: of no single one */
	unsigned stream; /* whose key it is, and with NULL who is at fault */
};

/* The same; on -EINVAL *fault says which text it was. */
int tr_spec_create_at(const struct tr_spec_text *text, struct tr_spec **out,
		      struct tr_spec_fault *fault, struct ho_err *err);

/*
 * The same from a YAML file (docs/frames.md). `over`, if not NULL, wins over the file: its seed
 * and stamp, and each field that its first stream sets, in all streams of the file. Errors begin
 * with the file's name, line and column, unless the text at fault is one of `over`.
 */
int tr_spec_load(const char *path, const struct tr_spec_text *over, struct tr_spec **out,
		 struct ho_err *err);

/* From YAML text in memory; `name` stands for the file in messages. */
int tr_spec_load_text(const char *name, const void *text, size_t bytes,
		      const struct tr_spec_text *over, struct tr_spec **out, struct ho_err *err);

/* NULL is allowed. No source may use it any more. */
void tr_spec_destroy(struct tr_spec *spec);

/* -EMSGSIZE if some frame is longer than `max_frame` bytes, or `tag_room` more when it has a VLAN
 * tag (those of struct port); `port` names it in the message. */
int tr_spec_fits(const struct tr_spec *spec, uint32_t max_frame, uint32_t tag_room,
		 const char *port, struct ho_err *err);

/* Makes `mac` the Ethernet source of the streams for which none was given. All zero, which is what
 * a port without an address of its own has, changes nothing. Before any source uses it. */
void tr_spec_set_source(struct tr_spec *spec, const uint8_t mac[6]);

/* What the frames are like as a whole. */
struct tr_spec_info {
	unsigned streams;
	bool stamped;       /* every frame carries a stamp */
	bool udp;           /* every frame is UDP over IP */
	uint32_t min_bytes; /* frames, without FCS */
	uint32_t max_bytes;
	double mean_bytes;  /* over the whole sequence */
	unsigned max_slots; /* that a frame takes with the default buffers */
};
void tr_spec_info(const struct tr_spec *spec, struct tr_spec_info *out);

/* "udp" IPv4, 60 bytes, 2 varying fields: one line about stream `i`, for people. Returns buf. */
const char *tr_spec_describe(const struct tr_spec *spec, unsigned i, char *buf, size_t bytes);

/*
 * Frame i of the sequence, without a stamp (its 16 bytes hold the payload pattern), by the slow
 * and obvious way: what tests compare the fast way with. out holds at least max_bytes. Returns its
 * length.
 */
uint32_t tr_spec_frame(const struct tr_spec *spec, uint64_t i, uint8_t *out);

#endif
