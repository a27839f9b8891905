/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter expressions in libpcap's language, as classic BPF programs for Ethernet frames. */
#ifndef HOLDOFF_PORT_BPF_H
#define HOLDOFF_PORT_BPF_H

#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Compiles `text`. On success the program is the caller's, for pcap_freecode. -EINVAL with
 * libpcap's reason for a wrong expression. */
int port_bpf_compile(const char *text, struct bpf_program *out, struct ho_err *err);

/* The same for frames as a socket on that interface shows them, where VLAN tags lie beside the
 * frame. Needs CAP_NET_RAW. */
int port_bpf_compile_live(const char *iface, const char *text, struct bpf_program *out,
			  struct ho_err *err);

/* Does the program take the frame of `len` bytes, of which `caplen` lie at `data`? */
static inline bool port_bpf_match(const struct bpf_program *prog, const uint8_t *data, uint32_t len,
				  uint32_t caplen)
{
	return bpf_filter(prog->bf_insns, data, len, caplen) != 0;
}

#endif
