from libc.stdint cimport uint8_t, uint16_t, uint32_t

cdef extern from "compat.h" nogil:
    const int PACKET_TX_HAS_OFF
    const int PACKET_QDISC_BYPASS
    const int SO_SNDBUFFORCE

cdef extern from "<linux/if_packet.h>" nogil:
    const int PACKET_VERSION
    const int PACKET_TX_RING
    const int TPACKET_V2
    const uint32_t TP_STATUS_AVAILABLE
    const uint32_t TP_STATUS_SEND_REQUEST
    const uint32_t TP_STATUS_SENDING

    struct sockaddr_ll:
        uint16_t sll_family
        uint16_t sll_protocol
        int sll_ifindex

    struct tpacket_req:
        unsigned int tp_block_size
        unsigned int tp_block_nr
        unsigned int tp_frame_size
        unsigned int tp_frame_nr

    struct tpacket2_hdr:
        uint32_t tp_status
        uint32_t tp_len
        uint32_t tp_snaplen
        uint16_t tp_mac
        uint16_t tp_net

cdef extern from "<linux/if.h>" nogil:
    const int IFF_RUNNING

    struct ifreq:
        char ifr_name[16]
        int ifr_ifindex
        short ifr_flags
        char* ifr_data

cdef extern from "<linux/sockios.h>" nogil:
    const unsigned long SIOCGIFNAME
    const unsigned long SIOCGIFFLAGS
    const unsigned long SIOCETHTOOL

cdef extern from "<linux/ethtool.h>" nogil:
    const uint32_t ETHTOOL_GLINK

    struct ethtool_value:
        uint32_t cmd
        uint32_t data
