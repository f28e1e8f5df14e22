/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The order of frames, and the answers to them, as session.Target has them. Early frames of
 * a session with order are not kept here.
 */
#pragma once

#include "execute.h"

enum { T_REQUEST = 3, T_RESPONSE, T_ACK, T_NAK, T_RESET, T_PROBE };

enum { DELAY = 1 << 0, RETX = 1 << 1, PADDED = 1 << 6, ECHO = 1 << 7 }; /* flags of frames */

/* session.Verdict, and others that user space is told. */
enum verdict {
	DROP,
	EXECUTE,
	DUPLICATE,
	STALE = 4,
	OUT_OF_WINDOW,
	EARLY, /* session.NoBuffer: it is not kept */
	INVALID = 8,
	FOREIGN = 16, /* it is the next one, or there is no order, and not for this program */
	SPENT, /* the session runs nothing any more: see life */
	BUSY, /* another CPU is at the session */
	UNKNOWN, /* no such session, or not this epoch of it */
	UNSOUND, /* the frame is damaged, or of a type that is not for this program */
	ABSENT, /* there is no answer to the frame */
	RELAYED, /* user space answers, since what this program sends may be lost */
	TORN, /* the frame, or one before it, has run in part */
	NUM_VERDICTS,
};

static __always_inline __s32 diff(__u32 a, __u32 b)
{
	return (__s32)(a - b);
}

static __always_inline __u64 bit(__u32 psn)
{
	return 1ull << (psn & SLOT);
}

static __always_inline __u64 rotate_right(__u64 v, __u32 n)
{
	n &= SLOT;
	return n ? v >> n | v << (64 - n) : v;
}

/* The psns from first up to, but not including, end, of which there are at most 64. */
static __always_inline __u64 window(__u32 first, __u32 end)
{
	__u32 n = end - first;

	if (!n)
		return 0;
	return rotate_right(n >= 64 ? ~0ull : (1ull << n) - 1, -first);
}

/* How many bits are set from the lowest one on. */
static __always_inline __u32 ones(__u64 v)
{
	__u32 n = 0;

	for (__u32 half = 32; half; half >>= 1) {
		__u64 low = (1ull << half) - 1;

		if ((v & low) == low) {
			v >>= half;
			n += half;
		}
	}
	return n + (v & 1);
}

/* Forgets the answers up to ack. 0: it names a frame that has not run. */
static __always_inline int free_answers(struct session *x, __u32 ack)
{
	if (diff(ack, x->expected) >= 0)
		return 0;
	if (diff(ack, x->freed) <= 0)
		return 1;
	x->freed = ack;
	x->heard++;
	return 1;
}

/* What becomes of a request. */
static __always_inline enum verdict judge(const struct session *x, const struct scratch *s)
{
	__u32 psn = s->h.psn;
	__s32 d = diff(psn, x->expected);

	if (diff(psn, x->freed) > WINDOW || s->length - HEADER > x->payload)
		return OUT_OF_WINDOW;
	if (diff(psn, x->freed) <= 0) /* though it may be ahead of expected, if it is 2^31 away */
		return STALE;
	if (d > 0 && x->ahead & bit(psn))
		return DUPLICATE;
	if (d >= 0 && x->life != LIVE)
		return STALE;
	if (d == 0 || (d > 0 && x->unordered))
		return EXECUTE;
	if (d > 0)
		return EARLY;
	return DUPLICATE;
}

/* Notes that a frame has run, and that its answer, if it has results, is kept. */
static __always_inline void ran(struct session *x, const struct scratch *s, const struct answer *a)
{
	__u32 psn = s->h.psn;

	if (a->n || a->flags)
		x->clean &= ~bit(psn);
	else
		x->clean |= bit(psn);
	x->frames++;
	x->ops += s->h.ops;
	x->heard++;
	if (psn != x->expected) {
		x->ahead |= bit(psn);
		return;
	}
	if (!x->ahead) {
		x->expected++;
		return;
	}
	psn = 1 + ones(rotate_right(x->ahead, x->expected + 1)); /* frames, this one and those behind it */
	x->ahead &= ~window(x->expected, x->expected + psn);
	x->expected += psn;
}

/* The header of a frame that says where the session stands. */
static __always_inline void put_header(struct scratch *s, const struct session *x, __u32 type,
				       __u32 flags, __u32 psn, __u32 ops)
{
	__u32 ack = x->expected - 1;
	__u64 sack = rotate_right(x->ahead, x->expected + 1);
	__u8 *b = s->out;

	*(__u64 *)b = (1 << 4 | type) | flags << 8 | (__u64)x->remote << 16 | (__u64)x->epoch << 48;
	*(__u64 *)(b + 8) = x->epoch >> 16 | (__u64)psn << 16 | (__u64)ack << 48;
	*(__u64 *)(b + 16) = ack >> 16 | sack << 16;
	*(__u64 *)(b + 24) = sack >> 48 | (__u64)x->credit << 16 | (__u64)ops << 32 | (__u64)x->lane << 40;
	*(__u16 *)(b + 32) = 0;
}

/* A frame without payload. */
static __always_inline void put_bare(struct scratch *s, const struct session *x, __u32 type, __u32 psn)
{
	put_header(s, x, type, 0, psn, 0);
	s->body = 0;
}

/* The ack for the run of clean answers around psn, which is one of them. */
static __always_inline void put_clean(struct scratch *s, const struct session *x, __u32 psn)
{
	__u64 clean = x->clean & window(x->freed + 1, x->expected);
	__u64 before = rotate_right(clean, psn); /* bit 63: the frame before psn */
	__u32 first, last;

	/* The bits before psn, the nearest one lowest. */
	before = __builtin_bswap64(before);
	before = (before & 0x0f0f0f0f0f0f0f0full) << 4 | (before >> 4 & 0x0f0f0f0f0f0f0f0full);
	before = (before & 0x3333333333333333ull) << 2 | (before >> 2 & 0x3333333333333333ull);
	before = (before & 0x5555555555555555ull) << 1 | (before >> 1 & 0x5555555555555555ull);
	first = ones(before);
	if (first > psn - x->freed - 1)
		first = psn - x->freed - 1;
	last = ones(rotate_right(clean, psn));
	if (last > x->expected - psn)
		last = x->expected - psn;
	first = psn - first;
	last = psn + last - 1;
	put_bare(s, x, T_ACK, first);
	if (last == x->expected - 1)
		return;
	*(__u16 *)(s->out + 14) = last; /* an older view, without the sack */
	*(__u64 *)(s->out + 16) = last >> 16;
	*(__u16 *)(s->out + 24) = 0;
}

/* The answer to a frame that has run. */
static __always_inline void put_answer(struct scratch *s, const struct session *x, __u32 psn,
				       const struct answer *a)
{
	if (x->clean & bit(psn)) {
		if (!(x->ahead & bit(psn))) {
			put_clean(s, x, psn);
			return;
		}
		put_header(s, x, T_RESPONSE, 0, psn, a->ops);
		s->body = 0;
		return;
	}
	put_header(s, x, T_RESPONSE, a->flags, psn, a->ops);
	s->body = a->n;
}

enum { SPINS = 1 << 12 };

struct wish {
	struct session *x;
	__u32 granted;
};

static long try_lock(__u32 i, struct wish *w)
{
	w->granted = __sync_val_compare_and_swap(&w->x->lock, 0, 1) == 0;
	return w->granted;
}

__noinline int acquire_later(struct session *x)
{
	struct wish w = {x, 0};

	if (!x)
		return 0;
	bpf_loop(SPINS, try_lock, &w, 0);
	return w.granted;
}

/* Locks a session, unless another CPU has it for longer than any frame takes; or this one,
 * in a call that the network has interrupted. */
static __always_inline int acquire(struct session *x)
{
	return !__sync_val_compare_and_swap(&x->lock, 0, 1) || acquire_later(x);
}

/* An exchange, so that everything before it is seen by the next one that locks. */
static __always_inline void unlock(struct session *x)
{
	__sync_lock_test_and_set(&x->lock, 0);
}
