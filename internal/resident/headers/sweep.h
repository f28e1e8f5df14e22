/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The short way through a record: operations for which the CPU has an instruction, on words
 * of one block of memory, in one loop with few calls.
 */
#pragma once

#include "atomics.h"
#include "count.h"

/* The block of the region at hand that has the byte at. */
static __always_inline struct block *block_at(const struct scratch *s, __u64 at)
{
	__u32 place = s->region.place, number = at / BLOCK;
	void *memory = bpf_map_lookup_elem(&memories, &place);

	return memory ? bpf_map_lookup_elem(memory, &number) : 0;
}

/* Whether operations of the record that has just been read can be swept through. The others
 * go the long way, as do those that will be refused. */
static __always_inline int sweepable(struct scratch *s)
{
	const struct record *r = &s->rec;

	if (!has_instruction(r) || r->total != 1 || admit(s) != STATUS_OK || s->region.length < r->size)
		return 0;
	return s->fits || (!r->run && (!returns(r) || has_room(s, r->size, s->index + 1)));
}

enum { AT_A_TIME = 16 }; /* additions */

/* A sweep. */
struct sweep {
	struct scratch *s;
	struct answer *a;
	struct block *k; /* which begins at byte first */
	__u64 base;
	__u64 last; /* where the last element of the region may begin */
	__u64 first;
	__u64 at; /* byte of the region where the next element begins */
	__u32 next; /* where in the frame the next operation lies */
	__u32 stride;
	__u32 operand;
	__u32 compare;
	__u32 step; /* from one operand to the next */
	__u32 to; /* of the next result */
	__u32 left; /* operations */
	__u32 op;
	__u32 size;
	__u32 gives; /* results are wanted */
};

static __always_inline int reaches(const struct sweep *w)
{
	return w->at <= w->last && w->at - w->first < BLOCK && !(w->at & (w->size - 1));
}

static long sweep_one(__u32 i, struct sweep *w)
{
	struct scratch *s = w->s;
	void *to = w->a->data + CUT(w->to, FRAME_MASK);

	if (!w->left || !reaches(w))
		return 1;
	if (w->size == 8) {
		__u64 *word = (void *)w->k->bytes + CUT(w->at, BLOCK - 8);
		__u64 old = once64(word, w->op, in64(s, w->operand), in64(s, w->compare));

		if (w->gives)
			*(__u64 *)to = old;
	} else {
		__u32 *half = (void *)w->k->bytes + CUT(w->at, BLOCK - 4);
		__u32 old = once32(half, w->op, in32(s, w->operand), in32(s, w->compare));

		if (w->gives)
			*(__u32 *)to = old;
	}
	w->to += w->size;
	w->operand += w->step;
	w->compare += w->step;
	w->next += w->stride;
	w->at = in32(s, w->next) - w->base;
	w->left--;
	return 0;
}

/* The same for additions to words of 64 bits, several for each call. */
static long sweep_sums(__u32 i, struct sweep *w)
{
	struct scratch *s = w->s;
	__u64 old;

	for (__u32 k = 0; k < AT_A_TIME; k++) {
		if (!w->left || !reaches(w))
			return 1;
		old = __sync_fetch_and_add((__u64 *)(w->k->bytes + CUT(w->at, BLOCK - 8)), in64(s, w->operand));
		if (w->gives)
			*(__u64 *)(w->a->data + CUT(w->to, FRAME_MASK)) = old;
		w->to += 8;
		w->operand += w->step;
		w->next += w->stride;
		w->at = in32(s, w->next) - w->base;
		w->left--;
	}
	return 0;
}

/* Executes the operations that come next of a record that is sweepable: those whose words
 * are in the block of the first, up to one that has to be refused. Returns how many. */
__noinline int sweep(struct scratch *s, struct answer *a)
{
	struct sweep w = { .s = s, .a = a };
	struct record *r;
	__u32 n;

	if (!s || !a)
		return 0;
	r = &s->rec;
	n = r->run ? s->run_left : 1;
	w.left = n;
	w.next = r->next;
	w.stride = r->stride;
	w.operand = r->operand;
	w.compare = r->compare;
	if (r->run && r->stride > 4) {
		w.step = r->stride;
		w.operand = r->next + 4;
		w.compare = w.operand + (r->op == OP_READ ? 0 : r->size);
	}
	w.op = r->op;
	w.size = r->size;
	w.gives = returns(r);
	w.to = s->values;
	w.base = s->region.base;
	w.last = s->region.length - r->size;
	w.at = (r->run ? in32(s, r->next) : r->offset) - w.base;
	w.first = w.at & ~(BLOCK - 1ull);
	if (w.at > w.last)
		return 0;
	w.k = block_at(s, w.at);
	if (!w.k)
		return 0;
	if (w.size != 8 || w.op != OP_SUM)
		bpf_loop(OPS_MAX, sweep_one, &w, 0);
	else if (!sweep_sums(0, &w)) /* a single one needs no loop */
		bpf_loop(OPS_MAX / AT_A_TIME, sweep_sums, &w, 0);
	n -= w.left;
	s->run_left = r->run ? w.left : 0;
	r->next = w.next;
	s->index += n;
	if (w.gives)
		s->values = w.to;
	if (n)
		count_touch(s, n, (__u64)n * w.size);
	return n;
}
