/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One operation on one element, atomic against everything on the machine. The CPU's own
 * instructions where BPF has them, for 32 and 64 bits; compare-and-swap loops elsewhere. An
 * element of 8 or 16 bits is changed by way of the 32 bits around it.
 */
#pragma once

#include "records.h"

enum { TRIES = 1 << 20 }; /* of a loop, each of which another CPU has spoilt */

/* A number of size bytes, in 64 bits. */
static __always_inline __u64 extend(__u64 v, const struct record *r)
{
	__u32 shift = 64 - 8 * r->size;

	v <<= shift & 63;
	return r->is_signed ? (__u64)((__s64)v >> (shift & 63)) : v >> (shift & 63);
}

static __always_inline int less(__u64 a, __u64 b, const struct record *r)
{
	return r->is_signed ? (__s64)a < (__s64)b : a < b;
}

/* Whether a sum or difference s of extended numbers, computed modulo 2^64, is too large or
 * too small for the element. carried: it is so for 64 bits. */
static __always_inline int inexact(__u64 s, int carried, const struct record *r)
{
	return carried || extend(s, r) != s;
}

static __always_inline int sum_inexact(__u64 t, __u64 b, __u64 s, const struct record *r)
{
	return inexact(s, r->is_signed ? (__s64)((t ^ s) & (b ^ s)) < 0 : s < t, r);
}

static __always_inline int diff_inexact(__u64 t, __u64 b, __u64 d, const struct record *r)
{
	return inexact(d, r->is_signed ? (__s64)((t ^ b) & (t ^ d)) < 0 : t < b, r);
}

/* The least or the greatest number that the element can be, extended. */
static __always_inline __u64 limit(int least, const struct record *r)
{
	__u64 top = 1ull << (8 * r->size - 1 & 63), greatest = r->is_signed ? top - 1 : top - 1 + top;

	return !least ? greatest : r->is_signed ? ~greatest : 0;
}

/* What becomes of t by operand b and comparand c, for the operations that are not libfabric's;
 * all are extended. */
static __always_inline __u64 apply_own(__u64 t, __u64 b, __u64 c, const struct record *r)
{
	__u64 s = t + b, d = t - b;

	switch (r->op) {
	case OP_SUM_AT_MOST: return sum_inexact(t, b, s, r) || less(c, s, r) ? t : s;
	case OP_DIFF_AT_LEAST: return diff_inexact(t, b, d, r) || less(d, c, r) ? t : d;
	case OP_SUM_SAT: return sum_inexact(t, b, s, r) ? limit(less(b, 0, r), r) : s;
	case OP_DIFF_SAT: return diff_inexact(t, b, d, r) ? limit(!less(b, 0, r), r) : d;
	case OP_MSUM: return ((t & ~c) + (b & ~c)) ^ ((t ^ b) & c);
	}
	return t;
}

/* The same for all operations. */
static __always_inline __u64 apply(__u64 t, __u64 b, __u64 c, const struct record *r)
{
	switch (r->op) {
	case OP_MIN: return less(b, t, r) ? b : t;
	case OP_MAX: return less(t, b, r) ? b : t;
	case OP_SUM: return t + b;
	case OP_DIFF: return t - b;
	case OP_PROD: return t * b;
	case OP_LOR: return t || b;
	case OP_LAND: return t && b;
	case OP_LXOR: return !t != !b;
	case OP_BOR: return t | b;
	case OP_BAND: return t & b;
	case OP_BXOR: return t ^ b;
	case OP_WRITE: return b;
	case OP_CSWAP: return c == t ? b : t;
	case OP_CSWAP_NE: return c != t ? b : t;
	case OP_CSWAP_LE: return less(t, c, r) ? t : b;
	case OP_CSWAP_LT: return less(c, t, r) ? b : t;
	case OP_CSWAP_GE: return less(c, t, r) ? t : b;
	case OP_CSWAP_GT: return less(t, c, r) ? b : t;
	case OP_MSWAP: return t ^ ((t ^ b) & c);
	}
	return apply_own(t, b, c, r);
}

/* A compare-and-swap loop. */
struct swap {
	__u64 *word; /* 8 bytes, aligned */
	const struct record *rec;
	__u64 b, c; /* extended */
	__u64 old; /* extended; what the element was */
	__u32 at; /* byte of the word where the element begins */
	__u32 failed;
};

static long swap_wide(__u32 i, struct swap *w)
{
	__u64 seen = *(volatile __u64 *)w->word;

	w->old = seen;
	w->failed = __sync_val_compare_and_swap(w->word, seen, apply(seen, w->b, w->c, w->rec)) != seen;
	return !w->failed;
}

/* An element of 32 bits or fewer. */
static long swap_narrow(__u32 i, struct swap *w)
{
	__u32 *half = (void *)w->word + CUT(w->at, 4);
	__u32 shift = 8 * (w->at & 3), mask = ~0u >> (32 - 8 * w->rec->size & 31);
	__u32 seen = *(volatile __u32 *)half, wanted;

	w->old = extend(seen >> (shift & 31), w->rec);
	wanted = apply(w->old, w->b, w->c, w->rec) & mask;
	wanted = (seen & ~(mask << (shift & 31))) | wanted << (shift & 31);
	w->failed = __sync_val_compare_and_swap(half, seen, wanted) != seen;
	return !w->failed;
}

/* Does any operation, in such a loop: see change. */
__noinline int by_swapping(__u64 *word, struct scratch *s, __u32 at)
{
	struct swap w = {};

	if (!word || !s)
		return 1;
	w.word = word;
	w.rec = &s->rec;
	w.at = at;
	w.b = extend(in64(s, s->operand), w.rec);
	w.c = extend(in64(s, s->compare), w.rec);
	if (w.rec->size == 8) {
		if (!swap_wide(0, &w)) /* nearly always the first one succeeds */
			bpf_loop(TRIES, swap_wide, &w, 0);
	} else if (!swap_narrow(0, &w)) {
		bpf_loop(TRIES, swap_narrow, &w, 0);
	}
	s->old = w.old;
	return w.failed;
}

/* Operations that BPF has an instruction for, on elements of 32 and 64 bits. */
#define AT_ONCE                                                                                  \
	(OP_BIT(OP_SUM) | OP_BIT(OP_DIFF) | OP_BIT(OP_BOR) | OP_BIT(OP_BAND) | OP_BIT(OP_BXOR) | \
	 OP_BIT(OP_READ) | OP_BIT(OP_WRITE) | OP_BIT(OP_CSWAP))

static __always_inline int has_instruction(const struct record *r)
{
	return r->size >= 4 && AT_ONCE >> r->op & 1;
}

/* Does such an operation. Returns what the element was. */
static __always_inline __u64 once64(__u64 *word, __u32 op, __u64 b, __u64 c)
{
	if (op == OP_SUM)
		return __sync_fetch_and_add(word, b);
	switch (op) {
	case OP_DIFF: return __sync_fetch_and_add(word, -b);
	case OP_BOR: return __sync_fetch_and_or(word, b);
	case OP_BAND: return __sync_fetch_and_and(word, b);
	case OP_BXOR: return __sync_fetch_and_xor(word, b);
	case OP_WRITE: return __sync_lock_test_and_set(word, b);
	case OP_CSWAP: return __sync_val_compare_and_swap(word, c, b);
	}
	return *(volatile __u64 *)word;
}

static __always_inline __u32 once32(__u32 *half, __u32 op, __u32 b, __u32 c)
{
	switch (op) {
	case OP_SUM: return __sync_fetch_and_add(half, b);
	case OP_DIFF: return __sync_fetch_and_add(half, -b);
	case OP_BOR: return __sync_fetch_and_or(half, b);
	case OP_BAND: return __sync_fetch_and_and(half, b);
	case OP_BXOR: return __sync_fetch_and_xor(half, b);
	case OP_WRITE: return __sync_lock_test_and_set(half, b);
	case OP_CSWAP: return __sync_val_compare_and_swap(half, c, b);
	}
	return *(volatile __u32 *)half;
}

/* Applies the operation at hand of s to the element at byte at of a word, by whichever way
 * there is. What the element was is in s->old. Returns 0, or 1 if nothing was done. */
__noinline int change(__u64 *word, struct scratch *s, __u32 at)
{
	__u32 op;

	if (!word || !s)
		return 1;
	op = s->rec.op;
	if (has_instruction(&s->rec)) {
		if (s->rec.size == 8)
			s->old = once64(word, op, in64(s, s->operand), in64(s, s->compare));
		else
			s->old = once32((void *)word + CUT(at, 4), op, in32(s, s->operand), in32(s, s->compare));
		return 0;
	}
	if (op == OP_READ) { /* of 8 or 16 bits; a load of the word is atomic */
		s->old = *(volatile __u64 *)word >> (8 * at & 63);
		return 0;
	}
	return by_swapping(word, s, at);
}
