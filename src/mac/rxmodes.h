/* SPDX-License-Identifier: BSD-2-Clause */
/* The rx-modes there are; the table in rxmode.c lists them. */
#ifndef HOLDOFF_MAC_RXMODES_H
#define HOLDOFF_MAC_RXMODES_H

#include "mac/rxmode.h"

extern const struct mac_rxmode mac_rxmode_direct;
extern const struct mac_rxmode mac_rxmode_napi;
extern const struct mac_rxmode mac_rxmode_poll;

#endif
