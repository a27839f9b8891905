/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The 82599's registers and descriptors as the model knows them, after the Intel 82599 10 GbE
 * Controller Datasheet (section 8, programming interface; 7.1.6 and 7.2.3, descriptors). Derived
 * apart from the driver's header on purpose: a mistake in one of them shows.
 *
 * Offsets are bytes; Q is the distance from a queue's register to the next queue's.
 */
#ifndef HOLDOFF_LAB_I82599_REGS_H
#define HOLDOFF_LAB_I82599_REGS_H

enum {
	/* 8.2.3.1 general control */
	R_CTRL = 0x00000,
	CTRL_MASTER_DISABLE = 1u << 2,
	CTRL_LINK_RESET = 1u << 3,
	CTRL_DEVICE_RESET = 1u << 26,
	R_STATUS = 0x00008,
	STATUS_LINK_UP = 1u << 7,
	STATUS_MASTER_ENABLED = 1u << 19,
	/* 8.2.3.2 EEPROM */
	R_EEC = 0x10010,
	EEC_PRESENT = 1u << 8,
	EEC_AUTO_READ_DONE = 1u << 9,
	R_EERD = 0x10014,
	EERD_START = 1u << 0,
	EERD_DONE = 1u << 1,
	/* 8.2.3.5 interrupts */
	R_EICR = 0x00800,
	R_EICS = 0x00808,
	R_EIAC = 0x00810,
	R_EITR_LOW = 0x00820,  /* vectors 0 to 23, by 4 */
	R_EITR_HIGH = 0x12300, /* from 24 on */
	R_EIMS = 0x00880,
	R_EIMC = 0x00888,
	R_EIAM = 0x00890,
	R_GPIE = 0x00898,
	R_EICS_X = 0x00A90, /* vectors 0..31, 32..63 */
	R_EIMS_X = 0x00AA0,
	R_EIMC_X = 0x00AB0,
	R_EIAM_X = 0x00AD0,
	R_IVAR = 0x00900, /* queues 2n and 2n + 1 */
	R_IVAR_MISC = 0x00A00,
	IVAR_VALID = 1u << 7,
	GPIE_MSIX = 1u << 4,
	GPIE_OTHER_CLEAR_DISABLE = 1u << 5,
	GPIE_SOFTWARE_IMMEDIATE = 1u << 6,
	GPIE_AUTO_MASK = 1u << 30,
	CAUSE_RX_MISS = 1u << 17,
	CAUSE_LINK = 1u << 20,
	CAUSE_QUEUES = 0x0000ffff,
	CAUSE_OTHERS = 0x7fff0000,
	EITR_INTERVAL = 0x00000ff8,
	/* 8.2.3.7 receive */
	R_FCTRL = 0x05080,
	FCTRL_MULTICAST_ALL = 1u << 8,
	FCTRL_UNICAST_ALL = 1u << 9,
	FCTRL_BROADCAST = 1u << 10,
	R_VLNCTRL = 0x05088,
	VLNCTRL_FILTER = 1u << 30,
	R_MCSTCTRL = 0x05090,
	MCSTCTRL_ENABLE = 1u << 2,
	R_MTA = 0x05200,
	R_RAL_OLD = 0x05400, /* the first 16 have a second address */
	R_RAL = 0x0A200,
	RAH_VALID = 1u << 31,
	R_VFTA = 0x0A000,
	R_RXCSUM = 0x05000,
	RXCSUM_PACKET_DISABLE = 1u << 13,
	R_MRQC = 0x05818,
	R_RETA = 0x05C00,
	R_RSSRK = 0x05C80,
	MRQC_TCP4 = 1u << 16,
	MRQC_IP4 = 1u << 17,
	MRQC_IP6 = 1u << 20,
	MRQC_TCP6 = 1u << 21,
	MRQC_UDP4 = 1u << 22,
	MRQC_UDP6 = 1u << 23,
	R_RXCTRL = 0x03000,
	RXCTRL_ENABLE = 1u << 0,
	R_RXPBSIZE = 0x03C00,
	R_RDRXCTL = 0x02F00,
	RDRXCTL_DMA_INIT_DONE = 1u << 3,
	R_SECRXSTAT = 0x08D04,
	R_SECTXSTAT = 0x08804,
	/* a receive queue */
	R_RXQ = 0x01000,
	RXQ_RDBAL = 0x00,
	RXQ_RDBAH = 0x04,
	RXQ_RDLEN = 0x08,
	RXQ_RDH = 0x10,
	RXQ_SRRCTL = 0x14,
	RXQ_RDT = 0x18,
	RXQ_RXDCTL = 0x28,
	RXQ_QPRC = 0x30, /* statistics; in queue 16 + n's place it is QPRDC[n] */
	RXQ_QBRC_L = 0x34,
	RXQ_QBRC_H = 0x38,
	R_SRRCTL_OLD = 0x02100, /* the first 16 have a second address */
	SRRCTL_BUFFER_KB = 0x1f,
	SRRCTL_DROP = 1u << 28,
	RXDCTL_ENABLE = 1u << 25,
	RXDCTL_VLAN_STRIP = 1u << 30,
	R_RQSMR = 0x02300,
	/* 8.2.3.9 transmit */
	R_DMATXCTL = 0x04A80,
	DMATXCTL_ENABLE = 1u << 0,
	R_TXPBSIZE = 0x0CC00,
	R_TXPBTHRESH = 0x04950,
	R_TQSM = 0x08600,
	/* a transmit queue */
	R_TXQ = 0x06000,
	TXQ_TDBAL = 0x00,
	TXQ_TDBAH = 0x04,
	TXQ_TDLEN = 0x08,
	TXQ_TDH = 0x10,
	TXQ_TDT = 0x18,
	TXQ_TXDCTL = 0x28,
	TXQ_QPTC = 0x30, /* statistics */
	TXQ_TDWBAL = 0x38,
	TXQ_TDWBAH = 0x3C,
	TXDCTL_ENABLE = 1u << 25,
	TXDCTL_FLUSH = 1u << 26,
	TDWBAL_ENABLE = 1u << 0,
	R_QPTC_OTHER = 0x08680,
	R_QBTC = 0x08700, /* low, high */
	QUEUE_STRIDE = 0x40,
	/* 8.2.3.22 MAC */
	R_HLREG0 = 0x04240,
	HLREG0_TX_CRC = 1u << 0,
	HLREG0_RX_CRC_STRIP = 1u << 1,
	HLREG0_JUMBO = 1u << 2,
	HLREG0_TX_PAD = 1u << 10,
	R_MAXFRS = 0x04268,
	R_LINKS = 0x042A4,
	LINKS_UP = 1u << 30,
	LINKS_SPEED_SHIFT = 28,
	/* 8.2.3.23 statistics, cleared by reading */
	R_RXMPC = 0x03FA0,
	R_CRCERRS = 0x04000,
	R_RLEC = 0x04040,
	R_PRC64 = 0x0405C, /* and 65-127, 128-255, 256-511, 512-1023, 1024-max */
	R_GPRC = 0x04074,
	R_BPRC = 0x04078,
	R_MPRC = 0x0407C,
	R_GPTC = 0x04080,
	R_GORC = 0x04088, /* low, high */
	R_GOTC = 0x04090,
	R_RUC = 0x040A4,
	R_ROC = 0x040AC,
	R_TOR = 0x040C0,
	R_TPR = 0x040D0,
	R_TPT = 0x040D4,
	R_PTC64 = 0x040D8,
	R_MPTC = 0x040F0,
	R_BPTC = 0x040F4,
	R_STAT_END = 0x04124,
};

/* Transmit descriptors, 7.2.3.2: dword 2 and 3 of a data descriptor. */
enum {
	TXD_LENGTH = 0xffff,
	TXD_TYPE_SHIFT = 20, /* with DEXT: 2 = context, 3 = data */
	TXD_TYPE_MASK = 0xf,
	TXD_TYPE_CONTEXT = 2,
	TXD_TYPE_DATA = 3,
	TXD_EOP = 1u << 24,
	TXD_FCS = 1u << 25,
	TXD_LEGACY_CHECKSUM = 1u << 26,
	TXD_RS = 1u << 27,
	TXD_DEXT = 1u << 29,
	TXD_VLAN = 1u << 30,
	TXD_TSO = 1u << 31,
	TXD_DONE = 1u << 0,
	TXD_IDX_SHIFT = 4,
	TXD_IP_SUM = 1u << 8,
	TXD_L4_SUM = 1u << 9,
	TXD_PAYLOAD_SHIFT = 14,
	/* context: dword 2 */
	TXC_IPV4 = 1u << 10,
	TXC_L4_SHIFT = 11, /* 0 UDP, 1 TCP, 2 SCTP */
};

/* Receive descriptors, 7.1.6.2: the advanced write-back format. */
enum {
	RXD_RSS_NONE = 0,
	RXD_RSS_TCP4 = 1,
	RXD_RSS_IP4 = 2,
	RXD_RSS_TCP6 = 3,
	RXD_RSS_IP6 = 5,
	RXD_RSS_UDP4 = 7,
	RXD_RSS_UDP6 = 8,
	RXD_TYPE_IP4 = 1u << 4,
	RXD_TYPE_IP4_OPTIONS = 1u << 5,
	RXD_TYPE_IP6 = 1u << 6,
	RXD_TYPE_IP6_EXT = 1u << 7,
	RXD_TYPE_TCP = 1u << 8,
	RXD_TYPE_UDP = 1u << 9,
	RXD_TYPE_SCTP = 1u << 10,
	RXD_DONE = 1u << 0,
	RXD_EOP = 1u << 1,
	RXD_VLAN = 1u << 3,
	RXD_UDP_SUM = 1u << 4,
	RXD_L4_SUM = 1u << 5,
	RXD_IP_SUM = 1u << 6,
	RXD_INEXACT = 1u << 7,
	RXD_UDP_VALID = 1u << 10,
	RXD_L4_ERROR = 1u << 30,
	RXD_IP_ERROR = 1u << 31,
};

#endif
