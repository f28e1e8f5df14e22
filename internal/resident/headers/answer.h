/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A packet that has come, turned into the one that answers it: the same headers as those
 * that wire.Template writes for an answer to where the packet came from.
 */
#pragma once

#include "receive.h"

enum {
	SHORT = 128, /* bytes of a frame that is copied without a helper */
	/* Bytes of metadata before an answer, which is the most that every kernel takes. With
	 * zero-copy the kernel copies a packet that is sent to a page, with as much headroom as
	 * it has metadata, and virtio_net drops what has no headroom for its own header. */
	META = 32,
};

/* So many bytes of the frame in a packet, or 0. */
static __always_inline void *frame_at(struct xdp_md *ctx, const struct envelope *v, __u32 n)
{
	void *f = (void *)(long)ctx->data + CUT(v->frame, 0x7f);

	return f + n > (void *)(long)ctx->data_end ? 0 : f;
}

/* Finds the frame in a packet. */
static __always_inline int find_frame(struct xdp_md *ctx, struct envelope *v)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *l3;
	struct eth_header *eth = data;
	struct fab_header *f;
	__u16 proto;

	if ((void *)(eth + 1) > end)
		return 0;
	proto = eth->proto;
	l3 = eth + 1;
	v->frame = sizeof(*eth);
	if (proto == bpf_htons(ETH_P_8021Q)) {
		struct vlan_tag *tag = l3;

		if ((void *)(tag + 1) > end)
			return 0;
		proto = tag->proto;
		v->tagged = 1;
		v->vlan = bpf_ntohs(tag->tci) & 0xfff;
		l3 = tag + 1;
		v->frame += sizeof(*tag);
	}
	if (proto == bpf_htons(ETH_P_FAB)) {
		v->kind = RAW;
		v->length = end - l3;
	} else {
		struct udp_header *udp;

		v->kind = proto == bpf_htons(ETH_P_IPV4) ? UDP4 : UDP6;
		udp = l3 + (v->kind == UDP4 ? sizeof(struct ipv4_header) : sizeof(struct ipv6_header));
		v->frame += (v->kind == UDP4 ? sizeof(struct ipv4_header) : sizeof(struct ipv6_header)) + sizeof(*udp);
		if ((void *)(udp + 1) > end)
			return 0;
		v->length = bpf_ntohs(udp->length) - sizeof(*udp);
	}
	f = frame_at(ctx, v, sizeof(*f));
	if (!f)
		return 0;
	__builtin_memcpy(&v->session, f->session, sizeof(v->session));
	return 1;
}

/* Copies a frame of at most SHORT bytes, in words, of which the last may overlap the one
 * before: such a copy costs less than the helper's. */
static __always_inline int load_short(struct xdp_md *ctx, struct scratch *s, const struct envelope *v)
{
	void *f = frame_at(ctx, v, FRAME_MIN);
	void *end = (void *)(long)ctx->data_end;
	__u32 last = CUT(s->length - 8, SHORT - 1);

	if (!f)
		return 0;
	for (__u32 i = 0; i < SHORT; i += 8) {
		if (i >= last)
			break;
		if (f + i + 8 > end)
			return 0;
		*(__u64 *)(s->in + i) = *(__u64 *)(f + i);
	}
	f += last;
	if (f + 8 > end)
		return 0;
	*(__u64 *)(s->in + last) = *(__u64 *)f;
	return 1;
}

static __always_inline int load_long(struct xdp_md *ctx, struct scratch *s, __u32 at)
{
	__u32 n = CUT(s->length - 1, FRAME_MASK) + 1;

	return !bpf_xdp_load_bytes(ctx, at, s->in, n);
}

static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return (sum >> 16) + (sum & 0xffff);
}

struct total {
	const __u8 *from;
	__u64 sum;
	__u32 n; /* bytes, a multiple of four */
};

static long add_word(__u32 i, struct total *t)
{
	if (4 * i >= t->n)
		return 1;
	t->sum += *(__u32 *)(t->from + CUT(4 * i, FRAME_MASK));
	return 0;
}

/* The Internet checksum over the frame to be sent, not folded, in the machine's order. */
__noinline __u64 sum_frame(struct scratch *s, struct answer *a)
{
	struct total t = {};

	if (!s || !a)
		return 0;
	t.from = a->data;
	t.n = s->body;
	for (__u32 i = 0; i < 32; i += 4)
		t.sum += *(__u32 *)(s->out + i);
	t.sum += *(__u16 *)(s->out + 32);
	bpf_loop(FRAME_MAX / 4, add_word, &t, 0);
	return t.sum;
}

/* The same of a frame without a body. */
static __always_inline __u64 sum_header(const struct scratch *s)
{
	__u64 sum = *(__u16 *)(s->out + 32);

	for (__u32 i = 0; i < 32; i += 4)
		sum += *(__u32 *)(s->out + i);
	return sum;
}

static __always_inline void put_udp(struct udp_header *udp, const struct session *x, __u32 length)
{
	udp->src = bpf_htons(0xc000 | x->remote * 0x9E3779B1u >> 18);
	udp->dst = bpf_htons(0x88b5);
	udp->length = bpf_htons(length);
	udp->checksum = 0;
}

static __always_inline int put_ipv4(void *l3, void *end, const struct session *x, __u32 length)
{
	struct ipv4_header *ip = l3;
	struct udp_header *udp = (void *)(ip + 1);
	__u32 src;
	__u64 sum;

	if ((void *)(udp + 1) > end)
		return 0;
	src = ip->dst;
	ip->dst = ip->src;
	ip->src = src;
	ip->version_ihl = 0x45;
	ip->tos = x->dscp << 2;
	ip->total_length = bpf_htons(sizeof(*ip) + sizeof(*udp) + length);
	ip->id = 0;
	ip->fragment = bpf_htons(0x4000);
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->checksum = 0;
	sum = (__u64)(ip->version_ihl | ip->tos << 8) + ip->total_length + ip->fragment +
	      (ip->ttl | ip->protocol << 8) + ip->src + ip->dst;
	ip->checksum = ~fold(sum);
	put_udp(udp, x, sizeof(*udp) + length);
	return 1;
}

static __always_inline int put_ipv6(void *l3, void *end, const struct session *x, __u32 length,
				    __u64 sum)
{
	struct ipv6_header *ip = l3;
	struct udp_header *udp = (void *)(ip + 1);
	struct address src;

	if ((void *)(udp + 1) > end)
		return 0;
	src = ip->dst;
	ip->dst = ip->src;
	ip->src = src;
	ip->version_class_flow = bpf_htons(6 << 12 | x->dscp << 6);
	ip->next_header = IPPROTO_UDP;
	ip->hop_limit = 64;
	ip->payload_length = bpf_htons(sizeof(*udp) + length);
	put_udp(udp, x, sizeof(*udp) + length);
	for (__u32 i = 0; i < 4; i++)
		sum += (__u64)ip->src.word[i] + ip->dst.word[i];
	sum += (__u64)bpf_htons(IPPROTO_UDP) + 2 * (__u64)udp->length + udp->src + udp->dst;
	udp->checksum = ~fold(sum);
	if (!udp->checksum)
		udp->checksum = 0xffff;
	return 1;
}

/* Whether an answer of a session can take the headers of a packet. */
static __always_inline int fits(const struct envelope *v, const struct session *x)
{
	return v->kind == x->kind && v->tagged == (v->vlan || (x->priority && v->kind == RAW));
}

/* Makes the packet longer by so many bytes, or shorter. If there is no room behind it, as
 * with veth for packets of middling length, it grows in front. */
static __always_inline int resize(struct xdp_md *ctx, struct scratch *s, const struct envelope *v, int more)
{
	__u32 n = CUT(v->frame - 1, 127) + 1;

	if (!bpf_xdp_adjust_tail(ctx, more))
		return 1;
	return more > 0 && more < FRAME_MAX && !bpf_xdp_adjust_head(ctx, -more) &&
	       !bpf_xdp_load_bytes(ctx, more, s->in, n) && !bpf_xdp_store_bytes(ctx, 0, s->in, n);
}

/* Makes the packet the answer. 0: it is spoilt, or as it was; the answer is in the cache. */
static __always_inline int reply(struct xdp_md *ctx, struct scratch *s, const struct envelope *v,
				 struct outcome *o)
{
	__u32 body = s->body, length = HEADER + (body ? body : PAYLOAD_MIN);
	struct eth_header *eth;
	void *data, *end, *l3, *f;
	__u64 sum = 0;
	__u16 mac;
	int more;

	if (v->kind == UDP6)
		sum = o->a && body ? sum_frame(s, o->a) : sum_header(s);
	more = (int)(v->frame + length) - (int)(ctx->data_end - ctx->data);
	if (more && !resize(ctx, s, v, more))
		return 0;
	bpf_xdp_adjust_meta(ctx, -META); /* a driver without metadata refuses: it needs none */
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	eth = data;
	if ((void *)(eth + 1) > end)
		return 0;
	for (int i = 0; i < 3; i++) {
		mac = eth->dst[i];
		eth->dst[i] = eth->src[i];
		eth->src[i] = mac;
	}
	l3 = eth + 1;
	if (v->tagged) {
		struct vlan_tag *tag = l3;

		if ((void *)(tag + 1) > end)
			return 0;
		tag->tci = bpf_htons(v->vlan | o->x->priority << 13);
		l3 = tag + 1;
	}
	if (v->kind == UDP4 && !put_ipv4(l3, end, o->x, length))
		return 0;
	if (v->kind == UDP6 && !put_ipv6(l3, end, o->x, length, sum))
		return 0;
	f = frame_at(ctx, v, FRAME_MIN);
	if (!f)
		return 0;
	__builtin_memcpy(f, s->out, HEADER);
	f += HEADER;
	if (!o->a || !body)
		__builtin_memset(f, 0, PAYLOAD_MIN);
	else if (body == PAYLOAD_MIN)
		__builtin_memcpy(f, o->a->data, PAYLOAD_MIN);
	else
		return !bpf_xdp_store_bytes(ctx, v->frame + HEADER, o->a->data, CUT(body - 1, FRAME_MASK) + 1);
	return 1;
}
