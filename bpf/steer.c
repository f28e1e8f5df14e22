/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
//go:build ignore

/*
 * Steers xdpfab frames to the AF_XDP socket that owns their session, hands
 * everything else to the kernel untouched, and counts every verdict by reason.
 *
 * A packet is judged in two steps. First: is it ours, that is, an xdpfab
 * encapsulation addressed to this interface? If not, or if that cannot be told,
 * it passes. Then: is it well formed? If not it is dropped, as no other protocol
 * has a claim on it. The CRC is left to userspace, which reads the frame anyway.
 *
 * Needs Linux 5.9 (XDP bpf_link); only array, per-CPU array, hash, program array
 * and XSKMAP maps, three helpers, no loops, instruction set v2 (4.14). For packets in
 * fragments it is loaded with BPF_F_XDP_HAS_FRAGS, and calls two helpers of Linux 5.18,
 * which an older kernel never sees: they stand in branches that the settings rule out.
 */
#include "headers/kernel.h"
#include "headers/packet.h"
#include "headers/reason.h"

#define MAX_ADDRS 1024
#define MAX_MACS 16

/* Written by the loader, frozen before the program runs; the verifier sees
 * constants and removes the branches that they rule out. The port is in network
 * byte order. */
struct settings {
	__u16 mac[3];
	__u16 port;
	__u32 mtu; /* largest layer-3 packet or raw frame, bytes */
	__u16 vlan; /* whose frames are ours: 0 for those without a tag, or VLAN_ANY */
	__u8 udp; /* 0: only raw frames are ours */
	__u8 execute; /* there may be an executor */
	__u8 frags; /* packets may lie in several buffers */
};

volatile const struct settings config = {};

/* The addresses that UDP packets are taken for: those in the map, whatever the
 * value. Userspace alone writes, as the interface's addresses come and go. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_ADDRS);
	__type(key, struct address);
	__type(value, __u8);
} served SEC(".maps");

/* MAC addresses that frames are taken for besides the interface's own: those of bridges
 * and the like that it is a port of. Userspace writes. */
struct mac {
	__u16 word[3];
	__u16 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_MACS);
	__type(key, struct mac);
	__type(value, __u8);
} macs SEC(".maps");

/* Sockets by rx_queue * FAB_LANES + lane; the loader sizes it. Userspace
 * writes, the kernel clears an entry when its socket closes. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, FAB_LANES);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

/* The program that frames of sessions go to before a socket, if there is one: it executes
 * the requests of those sessions that are its own (internal/resident), and does with the
 * others what this program would. Userspace writes. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} executors SEC(".maps");

/* Packets by reason. This program and the executor write, each CPU its own copy. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NUM_REASONS);
	__type(key, enum reason);
	__type(value, __u64);
} counters SEC(".maps");

enum {
	VLAN_ANY = 0xffff, /* in settings */
	VLAN_ID = 0x0fff, /* the bits of a tag that are its VLAN's id; 0 for a priority alone */
};

/* All that is looked at of a packet: the headers, and the shortest frame. */
enum {
	HEAD = sizeof(struct eth_header) + sizeof(struct vlan_tag) + sizeof(struct ipv6_header) +
	       sizeof(struct udp_header) + FAB_FRAME_MIN,
};

/* One packet on its way through the checks. With fragments eth to end is the first of
 * them, or a copy of what HEAD says. */
struct packet {
	void *end;
	struct eth_header *eth;
	long length; /* of the whole packet, bytes; with fragments alone */
	__u8 split; /* more of it lies in other fragments */
	void *l3; /* after EtherType: the IP header or the raw frame */
	void *frame;
	long l3_length; /* bytes from l3 to the end of the frame */
	__u8 tagged;
	__u16 vlan; /* 0 for none */
};

/* The reason that the steps below return for a valid packet. */
#define SOUND REASON_REDIRECT

/* Whether frames to this address are for this node. */
static __always_inline int our_mac(const struct eth_header *eth)
{
	struct mac other = { .word = { eth->dst[0], eth->dst[1], eth->dst[2] } };

	if (eth->dst[0] == config.mac[0] && eth->dst[1] == config.mac[1] && eth->dst[2] == config.mac[2])
		return 1;
	return bpf_map_lookup_elem(&macs, &other) != 0;
}

/* What sits below IP: the MAC address, and the VLAN as configured. */
static __always_inline enum reason check_link(const struct packet *p)
{
	if (!our_mac(p->eth))
		return REASON_PASS_MAC;
	if (config.vlan != VLAN_ANY && p->vlan != config.vlan)
		return REASON_PASS_VLAN;
	return SOUND;
}

/* Whether a sender's address can be one: an answer must not go to a group. */
static __always_inline int single_mac(const struct eth_header *eth)
{
	return !(eth->src[0] & bpf_htons(0x0100));
}

/* Neither unspecified, loopback (127/8), multicast (224/4) nor broadcast. */
static __always_inline int single_ipv4(__u32 src)
{
	return src && src != 0xffffffff && (src & bpf_htonl(0xff000000)) != bpf_htonl(0x7f000000) &&
	       (src & bpf_htonl(0xf0000000)) != bpf_htonl(0xe0000000);
}

/* Likewise, nor an IPv4 address in an IPv6 packet. */
static __always_inline int single_ipv6(const struct address *src)
{
	__u32 last = src->word[3];

	if (!src->word[0] && !src->word[1]) {
		if (src->word[2] == bpf_htonl(0xffff))
			return 0;
		if (!src->word[2] && (!last || last == bpf_htonl(1)))
			return 0;
	}
	return (src->word[0] & bpf_htonl(0xff000000)) != bpf_htonl(0xff000000);
}

static __always_inline int our_ipv4(__u32 dst)
{
	struct address a = { .word = { 0, 0, bpf_htonl(0xffff), dst } };

	return bpf_map_lookup_elem(&served, &a) != 0;
}

/* What IPv4 addresses are looked up by is no address of an IPv6 packet. */
static __always_inline int our_ipv6(const struct address *dst)
{
	if (!dst->word[0] && !dst->word[1] && dst->word[2] == bpf_htonl(0xffff))
		return 0;
	return bpf_map_lookup_elem(&served, dst) != 0;
}

/* Bytes from l3 to the end of the packet. */
static __always_inline long rest(const struct packet *p)
{
	if (config.frags)
		return p->length - (long)(sizeof(*p->eth) + (p->tagged ? sizeof(struct vlan_tag) : 0));
	return p->end - p->l3;
}

/* The UDP header at l4, if it is complete and names our port. */
static __always_inline struct udp_header *our_udp(const struct packet *p, void *l4)
{
	struct udp_header *udp = l4;

	if ((void *)(udp + 1) > p->end || udp->dst != config.port)
		return 0;
	return udp;
}

/* The lengths must agree with each other and lie within the packet. Bytes after
 * them are a link-layer trailer, not ours to judge: IP ignores it, and so do we. */
static __always_inline enum reason check_udp(struct packet *p, struct udp_header *udp,
					     __u32 l3_length)
{
	if (l3_length > rest(p) ||
	    bpf_ntohs(udp->length) != l3_length - ((void *)udp - p->l3))
		return REASON_DROP_UDP_LENGTH;
	p->frame = udp + 1;
	p->l3_length = l3_length;
	return SOUND;
}

static __always_inline enum reason check_ipv4(struct packet *p)
{
	struct ipv4_header *ip = p->l3;
	struct udp_header *udp;
	enum reason reason;

	if ((void *)(ip + 1) > p->end || ip->version_ihl >> 4 != 4 ||
	    ip->protocol != IPPROTO_UDP)
		return REASON_PASS_OTHER;
	if (ip->version_ihl != 0x45)
		return REASON_PASS_OPTIONS;
	if (ip->fragment & bpf_htons(IPV4_MORE_OR_OFFSET))
		return REASON_PASS_FRAGMENT;
	udp = our_udp(p, ip + 1);
	if (!udp)
		return REASON_PASS_OTHER;
	reason = check_link(p);
	if (reason != SOUND)
		return reason;
	if (!our_ipv4(ip->dst))
		return REASON_PASS_ADDR;
	if (!single_mac(p->eth) || !single_ipv4(ip->src))
		return REASON_DROP_SOURCE;
	return check_udp(p, udp, bpf_ntohs(ip->total_length));
}

/* An extension header, fragment included, is a next header other than UDP. */
static __always_inline enum reason check_ipv6(struct packet *p)
{
	struct ipv6_header *ip = p->l3;
	struct udp_header *udp;
	enum reason reason;

	if ((void *)(ip + 1) > p->end || *(__u8 *)ip >> 4 != 6 ||
	    ip->next_header != IPPROTO_UDP)
		return REASON_PASS_OTHER;
	udp = our_udp(p, ip + 1);
	if (!udp)
		return REASON_PASS_OTHER;
	reason = check_link(p);
	if (reason != SOUND)
		return reason;
	if (!our_ipv6(&ip->dst))
		return REASON_PASS_ADDR;
	if (!single_mac(p->eth) || !single_ipv6(&ip->src))
		return REASON_DROP_SOURCE;
	return check_udp(p, udp, sizeof(*ip) + bpf_ntohs(ip->payload_length));
}

/* Finds the frame, or why there is none. One 802.1Q tag is stepped over; QinQ
 * (0x88A8, or a second 0x8100) is an EtherType like any other: not ours. */
static __always_inline enum reason find_frame(struct packet *p)
{
	enum reason reason;
	__u16 proto;

	p->l3 = p->eth + 1;
	if (p->l3 > p->end)
		return REASON_PASS_OTHER;
	proto = p->eth->proto;
	if (proto == bpf_htons(ETH_P_8021Q)) {
		struct vlan_tag *tag = p->l3;

		if ((void *)(tag + 1) > p->end)
			return REASON_PASS_OTHER;
		proto = tag->proto;
		p->l3 = tag + 1;
		p->tagged = 1;
		p->vlan = bpf_ntohs(tag->tci) & VLAN_ID;
	}
	if (proto == bpf_htons(ETH_P_FAB)) {
		p->frame = p->l3;
		p->l3_length = rest(p);
		reason = check_link(p);
		return reason != SOUND || single_mac(p->eth) ? reason : REASON_DROP_SOURCE;
	}
	if (config.udp && proto == bpf_htons(ETH_P_IPV4))
		return check_ipv4(p);
	if (config.udp && proto == bpf_htons(ETH_P_IPV6))
		return check_ipv6(p);
	return REASON_PASS_OTHER;
}

static __always_inline enum reason check_frame(const struct packet *p)
{
	const struct fab_header *fab = p->frame;

	/* The first comparison is implied by the second; it is the verifier's. */
	if (p->frame + FAB_FRAME_MIN > p->end ||
	    p->l3_length < p->frame - p->l3 + FAB_FRAME_MIN)
		return REASON_DROP_SHORT;
	if (p->l3_length > config.mtu)
		return REASON_DROP_LONG;
	if (fab->version_type >> 4 != FAB_VERSION)
		return REASON_DROP_VERSION;
	if ((fab->version_type & 0xf) < FAB_TYPE_MIN)
		return REASON_DROP_TYPE;
	return SOUND;
}

/* A frame without a socket is dropped rather than passed: the kernel has no use
 * for it, would build an skb for each, and answer UDP with an ICMP error from a
 * host that is merely starting up. The sender retransmits. */
static __always_inline enum reason redirect(__u32 queue, __u32 lane)
{
	if (bpf_redirect_map(&sockets, queue * FAB_LANES + lane, XDP_DROP) != XDP_REDIRECT)
		return REASON_DROP_NO_SOCKET;
	return REASON_REDIRECT;
}

/* The types of frames that an initiator sends in a session, but for resets. */
static __always_inline int of_session(const struct fab_header *fab)
{
	__u32 type = fab->version_type & 0xf;

	return type == FAB_REQUEST || type == FAB_ACK || type == FAB_PROBE;
}

/* What becomes of a frame that is well formed. The packet must not be looked at behind
 * the call of the executor: for all the verifier knows, it has changed. The executor
 * takes packets of one buffer alone. */
static __always_inline enum reason deliver(struct xdp_md *ctx, const struct packet *p)
{
	const struct fab_header *fab = p->frame;
	__u32 lane = fab->session[3] >> FAB_LANE_SHIFT;

	if (config.execute && of_session(fab) && !(config.frags && p->split))
		bpf_tail_call(ctx, &executors, 0); /* returns if there is none */
	return redirect(ctx->rx_queue_index, lane);
}

/* Measures a packet in fragments, and copies its head if the first fragment is shorter:
 * some drivers leave all of the packet to the others (mlx5). 0: there is no packet. */
static __always_inline int join(struct xdp_md *ctx, struct packet *p, __u8 *head)
{
	long first = p->end - (void *)p->eth;
	__u64 n = HEAD;

	p->length = bpf_xdp_get_buff_len(ctx);
	p->split = first != p->length;
	if (first >= HEAD || !p->split)
		return 1;
	if (p->length < HEAD)
		n = p->length;
	asm volatile("%0 &= 127" : "+r"(n)); /* its bounds, which the verifier does not see */
	if (!n || n > HEAD || bpf_xdp_load_bytes(ctx, 0, head, n))
		return 0;
	p->eth = (struct eth_header *)head;
	p->end = head + n;
	return 1;
}

SEC("xdp")
int xdpfab_steer(struct xdp_md *ctx)
{
	struct packet p = {
		.eth = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
	};
	enum reason reason = REASON_PASS_OTHER;
	/* The IP header has to lie at a multiple of four. */
	__u8 head[2 + HEAD] __attribute__((aligned(8))) = {};
	__u64 *count;

	if (!config.frags || join(ctx, &p, head + 2))
		reason = find_frame(&p);
	if (reason == SOUND)
		reason = check_frame(&p);
	if (reason == SOUND)
		reason = deliver(ctx, &p);

	count = bpf_map_lookup_elem(&counters, &reason);
	if (count)
		*count += 1;
	if (reason == REASON_REDIRECT)
		return XDP_REDIRECT;
	return reason <= REASON_PASS_ADDR ? XDP_PASS : XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
