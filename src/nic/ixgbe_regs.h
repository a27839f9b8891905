/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers and descriptors of the Intel 82599 and X540, as their datasheets name them. Section
 * numbers are those of the 82599 10 GbE Controller Datasheet; X540 agrees in all that is here.
 *
 * Only what the driver uses is listed. An offset is in bytes from BAR 0; all registers are 32 bits
 * wide. (n) is a queue or vector number.
 */
#ifndef HOLDOFF_NIC_IXGBE_REGS_H
#define HOLDOFF_NIC_IXGBE_REGS_H

#include <assert.h>
#include <stdint.h>

/* --- identity ------------------------------------------------------------------------------ */

#define IXGBE_VENDOR_INTEL     0x8086
#define IXGBE_DEV_82599_KX4    0x10F7
#define IXGBE_DEV_82599_KR     0x1517
#define IXGBE_DEV_82599_CX4    0x10F9
#define IXGBE_DEV_82599_SFP    0x10FB
#define IXGBE_DEV_82599_XAUI   0x10FC
#define IXGBE_DEV_82599_SFP_EM 0x1507
#define IXGBE_DEV_82599_SFP_FC 0x1529
#define IXGBE_DEV_82599_SFP_2  0x154D
#define IXGBE_DEV_82599_SF_QP  0x154A
#define IXGBE_DEV_82599EN_SFP  0x1557
#define IXGBE_DEV_82599_T3_LOM 0x151C
#define IXGBE_DEV_X540T        0x1528
#define IXGBE_DEV_X540T1       0x1560

#define IXGBE_QUEUES_MAX   16    /* what MRQC's plain RSS mode spreads over (7.1.2.8) */
#define IXGBE_RING_MIN     64    /* descriptors */
#define IXGBE_RING_MAX     4096  /* 8192 by RDLEN/TDLEN; 4096 is what Linux offers */
#define IXGBE_RING_STEP    8     /* RDLEN and TDLEN count in 128 bytes (8.2.3.8.3, 8.2.3.9.7) */
#define IXGBE_FRAME_MAX    15872 /* 15.5 KB with VLAN and FCS (1.3) */
#define IXGBE_TXD_DATA_MAX 16383 /* DTALEN has 16 bits, of which 14 may be used by one buffer */

/* --- general (8.2.3.1) --------------------------------------------------------------------- */

#define IXGBE_CTRL              0x00000
#define IXGBE_CTRL_GIO_DIS      (1u << 2)  /* stop mastering the bus */
#define IXGBE_CTRL_LRST         (1u << 3)  /* link reset */
#define IXGBE_CTRL_RST          (1u << 26) /* device reset; clears itself */
#define IXGBE_STATUS            0x00008
#define IXGBE_STATUS_GIO        (1u << 19) /* still mastering the bus */
#define IXGBE_CTRL_EXT          0x00018
#define IXGBE_CTRL_EXT_NS_DIS   (1u << 16) /* no "no snoop" */
#define IXGBE_CTRL_EXT_DRV_LOAD (1u << 28) /* a driver is here: for the firmware */
#define IXGBE_EEC               0x10010
#define IXGBE_EEC_ARD           (1u << 9) /* EEPROM auto-read is done */

/* --- interrupts (8.2.3.5) ------------------------------------------------------------------ */

#define IXGBE_EICR              0x00800 /* cause; reading clears what EIAC does not */
#define IXGBE_EICS              0x00808 /* set a cause by software */
#define IXGBE_EIMS              0x00880 /* 1 unmasks */
#define IXGBE_EIMC              0x00888 /* 1 masks */
#define IXGBE_EIAC              0x00810 /* cause clears itself when its MSI-X message is sent */
#define IXGBE_EIAM              0x00890 /* mask clears itself likewise, with GPIE.EIAME */
#define IXGBE_EICS_EX(n)        (0x00A90u + (n)*4) /* 32 vectors each, n = 0, 1 */
#define IXGBE_EIMS_EX(n)        (0x00AA0u + (n)*4)
#define IXGBE_EIMC_EX(n)        (0x00AB0u + (n)*4)
#define IXGBE_EIAM_EX(n)        (0x00AD0u + (n)*4)
#define IXGBE_EICR_RTX_QUEUE    0x0000FFFFu
#define IXGBE_EICR_LSC          (1u << 20) /* link status changed */
#define IXGBE_EICR_OTHER        (1u << 31)
#define IXGBE_EITR(n)           ((n) <= 23 ? 0x00820u + (n)*4 : 0x12300u + ((n)-24) * 4)
#define IXGBE_EITR_INTERVAL     0x00000FF8u /* bits 3..11, units of 2.048 us at 10 and 1 Gbit/s */
#define IXGBE_EITR_CNT_WDIS     (1u << 31)  /* do not touch the running counter */
#define IXGBE_IVAR(n)           (0x00900u + (n)*4) /* queues 2n and 2n+1, see IXGBE_IVAR_SHIFT */
#define IXGBE_IVAR_SHIFT(q, tx) (16 * ((q)&1) + 8 * (tx))
#define IXGBE_IVAR_VALID        0x80u
#define IXGBE_IVAR_MISC         0x00A00 /* byte 0: TCP timer, byte 1: other causes */
#define IXGBE_GPIE              0x00898
#define IXGBE_GPIE_MSIX_MODE    (1u << 4)  /* several vectors */
#define IXGBE_GPIE_OCD          (1u << 5)  /* reading EICR clears bits 16..29 only */
#define IXGBE_GPIE_EIAME        (1u << 30) /* EIAM works on MSI-X messages */
#define IXGBE_GPIE_PBA_SUPPORT  (1u << 31) /* pending bits per vector */

/* --- receive (8.2.3.7, 8.2.3.8) ------------------------------------------------------------ */

#define IXGBE_FCTRL               0x05080
#define IXGBE_FCTRL_MPE           (1u << 8)  /* all multicast */
#define IXGBE_FCTRL_UPE           (1u << 9)  /* all unicast: promiscuous */
#define IXGBE_FCTRL_BAM           (1u << 10) /* broadcast */
#define IXGBE_VLNCTRL             0x05088
#define IXGBE_VLNCTRL_VET         0x0000FFFFu /* the tag's EtherType */
#define IXGBE_VLNCTRL_VFE         (1u << 30)  /* filter by VLAN id */
#define IXGBE_RXCSUM              0x05000
#define IXGBE_RXCSUM_PCSD         (1u << 13) /* descriptor holds the RSS hash, not the IP id */
#define IXGBE_RAL(n)              (0x05400u + (n)*8) /* n < 16: also at 0x0A200 */
#define IXGBE_RAH(n)              (0x05404u + (n)*8)
#define IXGBE_RAH_AV              (1u << 31) /* address valid */
#define IXGBE_MRQC                0x05818
#define IXGBE_MRQC_RSS            0x1u /* MRQE: RSS over 16 queues */
#define IXGBE_MRQC_TCP_IPV4       (1u << 16)
#define IXGBE_MRQC_IPV4           (1u << 17)
#define IXGBE_MRQC_IPV6           (1u << 20)
#define IXGBE_MRQC_TCP_IPV6       (1u << 21)
#define IXGBE_MRQC_UDP_IPV4       (1u << 22)
#define IXGBE_MRQC_UDP_IPV6       (1u << 23)
#define IXGBE_RETA(n)             (0x05C00u + (n)*4) /* 32 registers, four entries of 4 bits each */
#define IXGBE_RETA_ENTRIES        128
#define IXGBE_RSSRK(n)            (0x05C80u + (n)*4) /* 10 registers; key byte 0 is RSSRK(0)[7:0] */
#define IXGBE_RSS_KEY_BYTES       40
#define IXGBE_RXCTRL              0x03000
#define IXGBE_RXCTRL_RXEN         (1u << 0)
#define IXGBE_RDRXCTL             0x02F00
#define IXGBE_RDRXCTL_CRCSTRIP    (1u << 1)          /* must agree with HLREG0.RXCRCSTRP */
#define IXGBE_RDRXCTL_DMAIDONE    (1u << 3)          /* DMA initialisation is done */
#define IXGBE_RDRXCTL_RSCFRSTSIZE (0x1Fu << 17)      /* software must clear it */
#define IXGBE_RDRXCTL_RSCACKC     (1u << 25)         /* software must set it */
#define IXGBE_RDRXCTL_FCOE_WRFIX  (1u << 26)         /* software must set it */
#define IXGBE_RXPBSIZE(n)         (0x03C00u + (n)*4) /* 8 packet buffers */
#define IXGBE_RXPBSIZE_512KB      (512u << 10)       /* bits 10..19: KB */
#define IXGBE_RDBAL(n)            (0x01000u + (n)*0x40)
#define IXGBE_RDBAH(n)            (0x01004u + (n)*0x40)
#define IXGBE_RDLEN(n)            (0x01008u + (n)*0x40)
#define IXGBE_RDH(n)              (0x01010u + (n)*0x40)
#define IXGBE_RDT(n)              (0x01018u + (n)*0x40)
#define IXGBE_RXDCTL(n)           (0x01028u + (n)*0x40)
#define IXGBE_RXDCTL_ENABLE       (1u << 25)
#define IXGBE_RXDCTL_VME          (1u << 30)         /* strip VLAN tags */
#define IXGBE_SRRCTL(n)           (0x02100u + (n)*4) /* queues 0..15 */
#define IXGBE_SRRCTL_BSIZE_KB(kb) ((kb)&0x1Fu)       /* bits 0..4: buffer size, 1 KB units */
#define IXGBE_SRRCTL_ADV_ONE      (1u << 25)         /* DESCTYPE: advanced, one buffer */
#define IXGBE_SRRCTL_DROP_EN      (1u << 28) /* drop when this ring is empty, do not block others */
#define IXGBE_DCA_RXCTRL(n)       (0x02200u + (n)*4)
#define IXGBE_DCA_RXCTRL_RSVD     (1u << 12) /* reads as 1, must be written 0 (4.6.7) */
#define IXGBE_SECRXCTRL           0x08D00
#define IXGBE_SECRXCTRL_RX_DIS    (1u << 1)
#define IXGBE_SECRXSTAT           0x08D04
#define IXGBE_SECRXSTAT_RDY       (1u << 0)

/* --- transmit (8.2.3.9) -------------------------------------------------------------------- */

#define IXGBE_DMATXCTL          0x04A80
#define IXGBE_DMATXCTL_TE       (1u << 0)
#define IXGBE_RTTDCS            0x04900
#define IXGBE_RTTDCS_ARBDIS     (1u << 6) /* while MTQC changes (4.6.11.3) */
#define IXGBE_MTQC              0x08120
#define IXGBE_DTXMXSZRQ         0x08100 /* outstanding read requests, 256 byte units, bits 0..11 */
#define IXGBE_TXPBSIZE(n)       (0x0CC00u + (n)*4)
#define IXGBE_TXPBSIZE_160KB    (160u << 10)
#define IXGBE_TXPBTHRESH(n)     (0x04950u + (n)*4) /* KB that a packet may need before it starts */
#define IXGBE_TDBAL(n)          (0x06000u + (n)*0x40)
#define IXGBE_TDBAH(n)          (0x06004u + (n)*0x40)
#define IXGBE_TDLEN(n)          (0x06008u + (n)*0x40)
#define IXGBE_TDH(n)            (0x06010u + (n)*0x40)
#define IXGBE_TDT(n)            (0x06018u + (n)*0x40)
#define IXGBE_TXDCTL(n)         (0x06028u + (n)*0x40)
#define IXGBE_TXDCTL_PTHRESH(x) ((uint32_t)(x))       /* prefetch when fewer are on the chip */
#define IXGBE_TXDCTL_HTHRESH(x) ((uint32_t)(x) << 8)  /* ... and so many are in the ring */
#define IXGBE_TXDCTL_WTHRESH(x) ((uint32_t)(x) << 16) /* write back so many at a time */
#define IXGBE_TXDCTL_ENABLE     (1u << 25)
#define IXGBE_TXDCTL_SWFLSH     (1u << 26) /* write back now */
#define IXGBE_TDWBAL(n)         (0x06038u + (n)*0x40)
#define IXGBE_TDWBAH(n)         (0x0603Cu + (n)*0x40)

/* --- MAC and link (8.2.3.22) --------------------------------------------------------------- */

#define IXGBE_HLREG0           0x04240
#define IXGBE_HLREG0_TXCRCEN   (1u << 0)
#define IXGBE_HLREG0_RXCRCSTRP (1u << 1)
#define IXGBE_HLREG0_JUMBOEN   (1u << 2)
#define IXGBE_HLREG0_TXPADEN   (1u << 10)
#define IXGBE_MAXFRS           0x04268 /* bits 16..31: longest frame, FCS included */
#define IXGBE_MAXFRS_SHIFT     16
#define IXGBE_AUTOC            0x042A0
#define IXGBE_AUTOC_AN_RESTART (1u << 12)
#define IXGBE_LINKS            0x042A4
#define IXGBE_LINKS_UP         (1u << 30)
#define IXGBE_LINKS_SPEED      (3u << 28)
#define IXGBE_LINKS_SPEED_10G  (3u << 28)
#define IXGBE_LINKS_SPEED_1G   (2u << 28)
#define IXGBE_LINKS_SPEED_100M (1u << 28)

/* --- statistics (8.2.3.23): 32 bits, reading clears ------------------------------------------ */

#define IXGBE_CRCERRS  0x04000
#define IXGBE_ILLERRC  0x04004
#define IXGBE_RLEC     0x04040
#define IXGBE_RUC      0x040A4            /* undersize */
#define IXGBE_RFC      0x040A8            /* fragments */
#define IXGBE_ROC      0x040AC            /* oversize */
#define IXGBE_RJC      0x040B0            /* jabber */
#define IXGBE_GPRC     0x04074            /* good frames received */
#define IXGBE_GPTC     0x04080            /* good frames sent */
#define IXGBE_RXMPC(n) (0x03FA0u + (n)*4) /* missed: packet buffer n was full */
#define IXGBE_RQSMR(n) (0x02300u + (n)*4) /* which counter queues 4n..4n+3 use */
#define IXGBE_TQSM(n)  (0x08600u + (n)*4)
#define IXGBE_QPRDC(n) (0x01430u + (n)*0x40) /* dropped: no descriptor (DROP_EN) */

/* --- receive descriptor, advanced, one buffer (7.1.6) --------------------------------------- */

union ixgbe_rx_desc {
	struct {
		uint64_t addr;     /* of the buffer */
		uint64_t hdr_addr; /* of the header buffer; bit 0 is DD and must be 0 */
	} read;
	struct {
		uint32_t info;   /* RSS type, packet type, header length */
		uint32_t hash;   /* RSS */
		uint32_t status; /* IXGBE_RXD_*; the DD bit: all of this is valid */
		uint16_t len;    /* bytes in this buffer */
		uint16_t vlan;   /* stripped tag, if VP */
	} wb;
};
static_assert(sizeof(union ixgbe_rx_desc) == 16, "7.1.6.1");

#define IXGBE_RXD_DD       (1u << 0)
#define IXGBE_RXD_EOP      (1u << 1)
#define IXGBE_RXD_VP       (1u << 3)  /* a VLAN tag was stripped */
#define IXGBE_RXD_L4I      (1u << 5)  /* layer-4 checksum was calculated */
#define IXGBE_RXD_IPCS     (1u << 6)  /* IPv4 header checksum was calculated */
#define IXGBE_RXD_ERR_RXE  (1u << 29) /* MAC error: CRC, length, symbol */
#define IXGBE_RXD_ERR_TCPE (1u << 30) /* layer-4 checksum is wrong */
#define IXGBE_RXD_ERR_IPE  (1u << 31) /* IPv4 header checksum is wrong */
#define IXGBE_RXD_RSSTYPE  0xFu       /* in info; 0 = no hash */

/* --- transmit descriptors, advanced (7.2.3.2) ----------------------------------------------- */

union ixgbe_tx_desc {
	struct {
		uint64_t addr;
		uint32_t cmd;    /* IXGBE_TXD_*, data length in bits 0..15 */
		uint32_t olinfo; /* status, context index, POPTS, PAYLEN */
	} data;
	struct {
		uint32_t vlan_macip; /* IPLEN 0..8, MACLEN 9..15, VLAN 16..31 */
		uint32_t seq;        /* IPsec and FCoE: 0 */
		uint32_t type;       /* DTYP, TUCMD */
		uint32_t mss_l4;     /* IDX 4..6, L4LEN 8..15, MSS 16..31 */
	} ctx;
	struct {
		uint64_t rsvd;
		uint32_t nxtseq;
		uint32_t status; /* IXGBE_TXD_STAT_DD */
	} wb;
};
static_assert(sizeof(union ixgbe_tx_desc) == 16, "7.2.3.2");

#define IXGBE_TXD_DTYP_CTX  (2u << 20)
#define IXGBE_TXD_DTYP_DATA (3u << 20)
#define IXGBE_TXD_EOP       (1u << 24)
#define IXGBE_TXD_IFCS      (1u << 25) /* append the FCS */
#define IXGBE_TXD_RS        (1u << 27) /* report status: write DD back */
#define IXGBE_TXD_DEXT      (1u << 29) /* advanced format */
#define IXGBE_TXD_VLE       (1u << 30) /* insert the context's VLAN tag */
#define IXGBE_TXD_TSE       (1u << 31) /* segment */
#define IXGBE_TXD_STAT_DD   (1u << 0)
#define IXGBE_TXD_IDX(i)    ((uint32_t)(i) << 4)
#define IXGBE_TXD_CC        (1u << 7) /* the context counts although nothing is inserted by it */
#define IXGBE_TXD_IXSM      (1u << 8) /* insert the IPv4 header checksum */
#define IXGBE_TXD_TXSM      (1u << 9) /* insert the layer-4 checksum */
#define IXGBE_TXD_PAYLEN(n) ((uint32_t)(n) << 14)
#define IXGBE_CTX_IPLEN(n)  ((uint32_t)(n))
#define IXGBE_CTX_MACLEN(n) ((uint32_t)(n) << 9)
#define IXGBE_CTX_VLAN(tci) ((uint32_t)(tci) << 16)
#define IXGBE_CTX_IPV4      (1u << 10) /* TUCMD */
#define IXGBE_CTX_L4_UDP    (0u << 11)
#define IXGBE_CTX_L4_TCP    (1u << 11)
#define IXGBE_CTX_L4_SCTP   (2u << 11)
#define IXGBE_CTX_IDX(i)    ((uint32_t)(i) << 4)
#define IXGBE_CTX_L4LEN(n)  ((uint32_t)(n) << 8)
#define IXGBE_CTX_MSS(n)    ((uint32_t)(n) << 16)

#endif
