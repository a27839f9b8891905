/* SPDX-License-Identifier: BSD-2-Clause */
/* The kinds of ports there are; the registry in port.c lists them. */
#ifndef HOLDOFF_PORT_KINDS_H
#define HOLDOFF_PORT_KINDS_H

#include "port/port.h"

extern const struct port_kind port_kind_mem;
extern const struct port_kind port_kind_memif;
extern const struct port_kind port_kind_null;
extern const struct port_kind port_kind_packet;
extern const struct port_kind port_kind_pcap;
extern const struct port_kind port_kind_tap;
extern const struct port_kind port_kind_xdp;

#endif
