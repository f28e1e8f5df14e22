/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packet headers as they lie on the wire, in network byte order. Members are
 * as wide as their guaranteed alignment lets them be, so that an address is
 * compared by words instead of bytes.
 */
#pragma once

#include "kernel.h"

enum {
	ETH_P_IPV4 = 0x0800,
	ETH_P_8021Q = 0x8100,
	ETH_P_IPV6 = 0x86dd,
	ETH_P_FAB = 0x88b5, /* IEEE 802 local experimental EtherType 1 */
	IPPROTO_UDP = 17,
	IPV4_MORE_OR_OFFSET = 0x3fff, /* the MF bit and the fragment offset */
};

struct eth_header {
	__u16 dst[3];
	__u16 src[3];
	__u16 proto;
};

struct vlan_tag {
	__u16 tci;
	__u16 proto;
};

struct ipv4_header {
	__u8 version_ihl;
	__u8 tos;
	__u16 total_length; /* header and payload, bytes */
	__u16 id;
	__u16 fragment;
	__u8 ttl;
	__u8 protocol;
	__u16 checksum;
	__u32 src;
	__u32 dst;
};

/* An IP address; IPv4, where both may be meant, as ::ffff:a.b.c.d. */
struct address {
	__u32 word[4];
};

struct ipv6_header {
	__u32 version_class_flow;
	__u16 payload_length; /* without this header, bytes */
	__u8 next_header;
	__u8 hop_limit;
	struct address src;
	struct address dst;
};

struct udp_header {
	__u16 src;
	__u16 dst;
	__u16 length; /* header and payload, bytes */
	__u16 checksum;
};

/* The first bytes of an xdpfab frame; the rest is userspace's to judge. */
struct fab_header {
	__u8 version_type; /* version in the high nibble, type in the low */
	__u8 flags;
	__u8 session[4]; /* little-endian: the lane is the top six bits */
};

enum {
	FAB_VERSION = 1,
	FAB_TYPE_MIN = 1, /* hello; those up to 15 are userspace's to judge */
	FAB_REQUEST = 3,
	FAB_RESPONSE = 4,
	FAB_ACK = 5,
	FAB_NAK = 6,
	FAB_PROBE = 8,
	FAB_FRAME_MIN = 46, /* bytes: Ethernet's minimum payload */
	FAB_LANES = 64, /* sockets on one receive queue */
	FAB_LANE_SHIFT = 2, /* in the top byte of the session */
};
