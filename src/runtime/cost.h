/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of what costs time on a modelled CPU. Code that is to run in the lab says
 * rt_spend(rt, RT_COST_..., n) where the work is done; a machine profile gives each its price
 * (and its key in the profile is the second column). A price belongs to one unit: a frame, a
 * call, a descriptor, a byte.
 */
#ifndef HOLDOFF_RUNTIME_COST_H
#define HOLDOFF_RUNTIME_COST_H

/*      name          key             a unit is one ... */
#define RT_COSTS(X)                                                                               \
	X(GEN_FRAME, "gen_frame", "frame built by a generator")                                   \
	X(RECV_FRAME, "recv_frame", "frame counted and checked by a receiver")                    \
	X(TX_FRAME, "tx_frame", "frame handed to a transmit ring: descriptor and software state") \
	X(TX_BYTE, "tx_byte", "byte copied on transmit")                                          \
	X(TX_CLEAN, "tx_clean", "completed transmit descriptor cleaned and its buffer freed")     \
	X(RX_FRAME, "rx_frame", "frame taken from a receive ring and its buffer replaced")        \
	X(RX_BYTE, "rx_byte", "byte copied on receive")                                           \
	X(POLL, "poll", "call of a poll function, whatever it finds")                             \
	X(STACK_RX, "stack_rx", "frame through a host's protocol stack, receiving")               \
	X(STACK_TX, "stack_tx", "frame through a host's protocol stack, sending")                 \
	X(SYSCALL, "syscall", "system call entered and left")                                     \
	X(LOCK, "lock", "uncontended lock taken and released")                                    \
	X(LOCK_CONTENDED, "lock_contended", "lock handed from one CPU to another")                \
	X(LOOKUP, "lookup", "route look-up")                                                      \
	X(RELAX, "relax", "turn of a busy loop that found nothing")

enum rt_cost {
#define RT_COST_ENUM(name, key, unit) RT_COST_##name,
	RT_COSTS(RT_COST_ENUM)
#undef RT_COST_ENUM
		RT_COST_COUNT,
};

#endif
