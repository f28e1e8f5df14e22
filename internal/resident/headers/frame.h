/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frames in and out: what a frame's header says, and whether it is sound; the checksum and
 * the padding of the frame that is sent.
 */
#pragma once

#include "crc.h"
#include "session.h"

struct sum {
	const __u8 *from;
	__u32 n; /* bytes */
	__u32 crc;
};

static long sum_chunk(__u32 i, struct sum *c)
{
	const __u8 *p = c->from + CUT(64 * i, FRAME_MASK);

	for (__u32 k = 0; k < 64; k += 8)
		c->crc = crc_word(c->crc, *(__u64 *)(p + k));
	return 0;
}

/* The state of a CRC after n bytes more, of FRAME_MAX and those behind them. */
static __always_inline __u32 crc_over(__u32 crc, const __u8 *from, __u32 n)
{
	struct sum c = {from, n, crc};
	__u32 at = n & ~63u;

	bpf_loop(CUT(n >> 6, 63), sum_chunk, &c, 0);
	crc = c.crc;
	for (__u32 k = 0; k < 7; k++, at += 8)
		if (at + 8 <= n)
			crc = crc_word(crc, *(__u64 *)(from + CUT(at, FRAME_MASK)));
		else
			break;
	for (__u32 k = 0; k < 7; k++, at++)
		if (at < n)
			crc = crc_byte(crc, from[CUT(at, FRAME_MASK)]);
		else
			break;
	return crc;
}

__noinline int crc_in(struct scratch *s)
{
	return s ? crc_over(~0u, s->in, s->length) : 0;
}

/* Continues the state crc with the body of an answer. */
__noinline int crc_body(struct answer *a, __u32 n, __u32 crc)
{
	return a ? crc_over(crc, a->data, n) : 0;
}

/* Reads the header. 0: the frame is not for this program. Only the checksum and the
 * padding are left to be looked at. */
static __always_inline int read_header(struct scratch *s)
{
	struct header *h = &s->h;

	h->type = s->in[0];
	if (s->length < FRAME_MIN || h->type >> 4 != 1)
		return 0;
	h->type &= 0xf;
	h->flags = s->in[1];
	h->session = in32(s, 2);
	h->epoch = in32(s, 6);
	h->psn = in32(s, 10);
	h->ack = in32(s, 14);
	h->ops = s->in[28];
	h->lane = s->in[29];
	if (h->flags & ~2 || h->lane >= FAB_LANES) /* RETX */
		return 0;
	if (h->type == T_REQUEST)
		return h->ops > 0;
	return (h->type == T_ACK || h->type == T_PROBE) && !h->ops && s->length == FRAME_MIN;
}

static __always_inline int sound(struct scratch *s)
{
	__u32 want = in32(s, 30);

	*(__u32 *)(s->in + 30) = 0;
	if (~(__u32)crc_in(s) != want)
		return 0;
	return s->h.type == T_REQUEST || padded_well(s, HEADER);
}

/* Pads the frame whose header is in out and whose body is in the answer, if it has one,
 * and writes the checksum. */
static __always_inline void seal(struct scratch *s, struct answer *a)
{
	__u32 crc = ~0u, n = s->body;

	if (!n) {
		for (__u32 k = 0; k < 32; k += 8)
			crc = crc_word(crc, *(__u64 *)(s->out + k));
		crc = crc_byte(crc, s->out[32]);
		crc = crc_byte(crc, s->out[33]);
		crc = crc_word(crc, 0);
		for (__u32 k = 0; k < 4; k++)
			crc = crc_byte(crc, 0);
		*(__u32 *)(s->out + 30) = ~crc;
		return;
	}
	if (n < PAYLOAD_MIN) { /* values and lists are multiples of four */
		if (n <= 8)
			*(__u32 *)(a->data + 8) = 0;
		if (n <= 4)
			*(__u32 *)(a->data + 4) = 0;
		s->body = n = PAYLOAD_MIN;
	}
	for (__u32 k = 0; k < 32; k += 8)
		crc = crc_word(crc, *(__u64 *)(s->out + k));
	crc = crc_byte(crc, s->out[32]);
	crc = crc_byte(crc, s->out[33]);
	*(__u32 *)(s->out + 30) = ~(__u32)crc_body(a, n, crc);
}
