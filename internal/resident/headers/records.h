/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The records of a request. What is well formed is decided by wire.RecordReader, of which
 * this is the part for atomic operations on integers of 8 to 64 bits. Everything else, be it
 * other operations or a malformed frame, is user space's to judge.
 */
#pragma once

#include "scratch.h"

enum verb { VERB_ATOMIC = 1, VERB_FETCH, VERB_COMPARE };

enum op {
	OP_MIN, OP_MAX, OP_SUM, OP_PROD, OP_LOR, OP_LAND, OP_BOR, OP_BAND, OP_LXOR, OP_BXOR,
	OP_READ, OP_WRITE, OP_CSWAP, OP_CSWAP_NE, OP_CSWAP_LE, OP_CSWAP_LT, OP_CSWAP_GE,
	OP_CSWAP_GT, OP_MSWAP, OP_DIFF,
	OP_SUM_AT_MOST = 32, OP_DIFF_AT_LEAST, OP_SUM_SAT, OP_DIFF_SAT, OP_MSUM, OPS,
};

#define OP_BIT(op) (1ull << (op))

/* Bits by operation: what there is for a verb. */
#define OPS_FETCH (0xfff | OP_BIT(OP_DIFF) | OP_BIT(OP_SUM_SAT) | OP_BIT(OP_DIFF_SAT))
#define OPS_BASE (OPS_FETCH & ~OP_BIT(OP_READ))
#define OPS_COMPARE (0x7full << OP_CSWAP | OP_BIT(OP_SUM_AT_MOST) | OP_BIT(OP_DIFF_AT_LEAST) | OP_BIT(OP_MSUM))

enum {
	DATATYPES = 8, /* int8, uint8, … uint64 */

	REC_KEY = 1 << 0,
	REC_OFF64 = 1 << 1,
	REC_COUNT = 1 << 2,
	REC_TOTAL = 1 << 3,
	REC_RUN = 1 << 4,
	REC_SHARED = 1 << 5,
	REC_INCARNATION = 1 << 6,
	REC_MIN = 8, /* bytes of the shortest record */
};

static __always_inline int returns(const struct record *r)
{
	return r->verb != VERB_ATOMIC;
}

/* How many arrays of elements a record carries. */
static __always_inline __u32 operands(const struct record *r)
{
	return (r->op != OP_READ) + (r->verb == VERB_COMPARE);
}

/* The first four bytes: 1 if this program executes what they ask for. */
static __always_inline int parse_head(struct record *r, __u32 head)
{
	__u32 datatype = head >> 16 & 0xff;
	__u64 ops;

	r->verb = head;
	r->op = head >> 8;
	switch (r->verb) {
	case VERB_ATOMIC: ops = OPS_BASE; break;
	case VERB_FETCH: ops = OPS_FETCH; break;
	case VERB_COMPARE: ops = OPS_COMPARE; break;
	default: return 0;
	}
	if (datatype >= DATATYPES || r->op >= OPS || !(ops >> r->op & 1))
		return 0;
	r->size = 1 << (datatype >> 1);
	r->is_signed = !(datatype & 1);
	return 1;
}

/* Which region is meant. Returns where the fields behind it begin, or 0. */
static __always_inline __u32 parse_region(struct scratch *s, __u32 p, __u32 flags)
{
	__u32 at = p + 4;

	if (flags & REC_KEY) {
		s->key = in64(s, at);
		s->incarnation = 0;
		s->has_key = 1;
		at += 8;
		if (flags & REC_INCARNATION) {
			s->incarnation = in32(s, at);
			at += 4;
		}
	} else if (flags & REC_INCARNATION || !s->has_key) {
		return 0;
	}
	s->rec.key = s->key;
	s->rec.incarnation = s->incarnation;
	return at;
}

/* Bytes from n to the next multiple of four at p are zero. */
static __always_inline int zero_pad(const struct scratch *s, __u32 p, __u32 n)
{
	__u32 last = in32(s, p + (n & ~3u));

	return !(n & 3) || !(last >> 8 * (n & 3));
}

/* A run, of which everything but the head is still to be read. */
static __always_inline int parse_run(struct scratch *s, __u32 p, __u32 flags)
{
	struct record *r = &s->rec;
	__u32 at, n, given = operands(r) * r->size, fixed = REC_MIN;

	if ((flags & ~(REC_KEY | REC_INCARNATION | REC_SHARED)) != REC_RUN || r->size < 4)
		return 0;
	fixed += (flags & REC_KEY ? 8 : 0) + (flags & REC_INCARNATION ? 4 : 0);
	if (s->length - p < fixed)
		return 0;
	at = parse_region(s, p, flags);
	if (!at)
		return 0;
	n = in32(s, at);
	at += 4;
	if (n < 2 || n > s->left)
		return 0;
	r->count = r->total = 1;
	r->run = n;
	r->stride = 4 + given;
	r->operand = at + 4;
	if (flags & REC_SHARED) {
		if (s->length - at < given)
			return 0;
		r->operand = at;
		r->stride = 4;
		at += given;
	}
	r->compare = r->operand + (r->op == OP_READ ? 0 : r->size);
	if (s->length - at < n * r->stride)
		return 0;
	r->next = at;
	s->pos = at + n * r->stride;
	s->left -= n;
	return 1;
}

/* The record at s->pos, which is moved on. 0: it is not for this program. */
static __always_inline int parse(struct scratch *s)
{
	struct record *r = &s->rec;
	__u32 p = s->pos, at, flags, head, fixed;
	__u64 bytes, padded;

	if (p > s->length || s->length - p < REC_MIN)
		return 0;
	head = in32(s, p);
	flags = head >> 24;
	if (!parse_head(r, head))
		return 0;
	if (flags & ~(REC_KEY | REC_OFF64 | REC_COUNT | REC_TOTAL | REC_INCARNATION))
		return parse_run(s, p, flags);
	fixed = REC_MIN + (flags & REC_KEY ? 8 : 0) + (flags & REC_INCARNATION ? 4 : 0) +
		(flags & REC_OFF64 ? 4 : 0) + (flags & REC_COUNT ? 4 : 0) +
		(flags & REC_TOTAL ? 4 : 0);
	if (s->length - p < fixed)
		return 0;
	at = parse_region(s, p, flags);
	if (!at)
		return 0;
	r->run = 0;
	r->count = 1;
	r->offset = in32(s, at);
	at += 4;
	if (flags & REC_OFF64) {
		r->offset |= (__u64)in32(s, at) << 32;
		at += 4;
	}
	if (flags & REC_COUNT) {
		r->count = in32(s, at);
		at += 4;
	}
	r->total = r->count;
	if (flags & REC_TOTAL) {
		r->total = in32(s, at);
		at += 4;
	}
	if (!r->count || r->total < r->count)
		return 0;
	bytes = (__u64)r->count * r->size;
	padded = (bytes + 3) & ~3ull;
	if (s->length - at < padded * operands(r))
		return 0;
	r->operand = r->compare = at;
	if (r->op != OP_READ) {
		if (!zero_pad(s, at, bytes))
			return 0;
		at += padded;
		r->compare = at;
	}
	if (r->verb == VERB_COMPARE) {
		if (!zero_pad(s, at, bytes))
			return 0;
		at += padded;
	}
	s->pos = at;
	s->left--;
	return 1;
}

/* Starts the walk over. */
static __always_inline void rewind(struct scratch *s)
{
	s->pos = HEADER;
	s->left = s->h.ops;
	s->has_key = 0;
}

/* What may follow the last record: nothing, or the zeros of a frame of the least size. */
static __always_inline int padded_well(const struct scratch *s, __u32 at)
{
	__u32 n = s->length - at;

	if (!n)
		return 1;
	if (s->length != FRAME_MIN || n > PAYLOAD_MIN)
		return 0;
	for (__u32 i = 0; i < PAYLOAD_MIN; i++)
		if (i < n && s->in[CUT(at + i, FRAME_MASK)])
			return 0;
	return 1;
}
