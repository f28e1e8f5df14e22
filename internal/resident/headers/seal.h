/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The step that every frame passes first when it has come and last before it leaves, as
 * wire.Sealer says it: here the checksum. What is sealed with anything else is not for this
 * program. User space opens and seals the frames that it exchanges with it by calls.
 */
#pragma once

#include "crc.h"
#include "scratch.h"

/* A sum of which one call adds a chunk: longer loops would cost the verifier dearly, and
 * shorter ones time. */
struct sum {
	const __u8 *from;
	__u32 crc;
};

enum { CHUNK = 256 };

static long sum_chunk(__u32 i, struct sum *c)
{
	const __u8 *p = c->from + CUT(CHUNK * i, FRAME_MASK);
	__u32 crc = c->crc;

	for (__u32 k = 0; k < CHUNK; k += 16)
		crc = crc_16(crc, *(__u64 *)(p + k), *(__u64 *)(p + k + 8));
	c->crc = crc;
	return 0;
}

/* The state of a CRC after n bytes more, of FRAME_MAX and those behind them. */
static __always_inline __u32 crc_over(__u32 crc, const __u8 *from, __u32 n)
{
	struct sum c = {from, crc};

	if (n >= CHUNK)
		bpf_loop(CUT(n / CHUNK, 15), sum_chunk, &c, 0);
	crc = c.crc;
	from += CUT(n, FRAME_MASK & ~(CHUNK - 1));
	for (__u32 i = 16; i < CHUNK; i += 16) {
		if (i > n % CHUNK)
			break;
		crc = crc_16(crc, *(__u64 *)from, *(__u64 *)(from + 8));
		from += 16;
	}
	if (n & 8) {
		crc = crc_8(crc, *(__u64 *)from);
		from += 8;
	}
	if (n & 4) {
		crc = crc_4(crc, *(__u32 *)from);
		from += 4;
	}
	if (n & 2) {
		crc = crc_2(crc, *(__u16 *)from);
		from += 2;
	}
	return n & 1 ? crc_1(crc, *from) : crc;
}

__noinline int crc_in(struct scratch *s)
{
	return s ? crc_over(~0u, s->in, s->length) : 0;
}

/* The state after the header in out, whose checksum is zero. */
static __always_inline __u32 crc_header(const struct scratch *s)
{
	__u32 crc = crc_16(~0u, *(__u64 *)s->out, *(__u64 *)(s->out + 8));

	crc = crc_16(crc, *(__u64 *)(s->out + 16), *(__u64 *)(s->out + 24));
	return crc_2(crc, *(__u16 *)(s->out + 32));
}

/* Pads the frame whose header is in out and whose body is in the answer, if it has one,
 * and writes the checksum. */
__noinline int put_checksum(struct scratch *s, struct answer *a)
{
	__u32 crc, n;

	if (!s)
		return 0;
	n = s->body;
	crc = crc_header(s);
	if (!a || !n) {
		*(__u32 *)(s->out + 30) = ~crc_4(crc_8(crc, 0), 0);
		return 0;
	}
	if (n < PAYLOAD_MIN) { /* values and lists are multiples of four */
		if (n <= 8)
			*(__u32 *)(a->data + 8) = 0;
		if (n <= 4)
			*(__u32 *)(a->data + 4) = 0;
		s->body = n = PAYLOAD_MIN;
	}
	*(__u32 *)(s->out + 30) = ~crc_over(crc, a->data, n);
	return 0;
}

/* Opens the frame in in, for a session that is not locked: if another one has its place by
 * now, the frame is not sealed for that. 0: the frame is damaged. */
static __always_inline int open_frame(struct scratch *s, const struct session *x)
{
	__u32 want = in32(s, 30);

	*(__u32 *)(s->in + 30) = 0;
	return ~(__u32)crc_in(s) == want;
}

/* Seals the frame of a session that is to be sent, in out and a. */
static __always_inline void seal_frame(struct scratch *s, const struct session *x, struct answer *a)
{
	put_checksum(s, a);
}
