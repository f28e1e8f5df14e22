/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A request frame on registered memory, as internal/memory executes it: the frame is checked
 * as a whole; then the operations run in order, element by element, in one loop.
 */
#pragma once

#include "sweep.h"

/* Prepares for the operations of the record that has just been read. */
static __always_inline void begin_record(struct scratch *s)
{
	s->run_left = s->rec.run;
	s->fits = s->rec.run && (!returns(&s->rec) || at_once(s));
	s->sweeps = sweepable(s);
}

/* Reads the next record. 0: there is none. */
static __always_inline int next_record(struct scratch *s)
{
	if (!s->left || !parse(s))
		return 0;
	begin_record(s);
	return 1;
}

/* Makes the next operation the one at hand: of the run, or the record itself. */
static __always_inline void next_op(struct scratch *s)
{
	struct record *r = &s->rec;

	if (s->run_left) {
		s->run_left--;
		r->offset = in32(s, r->next);
		if (r->stride > 4) {
			r->operand = r->next + 4;
			r->compare = r->operand + (r->op == OP_READ ? 0 : r->size);
		}
		r->next += r->stride;
	}
	s->operand = r->operand;
	s->compare = r->compare;
	s->index++;
}

static __always_inline void fail(struct scratch *s, enum status status)
{
	__u32 at = CUT(s->failed * 2, 511);

	s->elements = 0;
	if (at >= 2 * OPS_MAX)
		return;
	s->list[at] = s->index - 1;
	s->list[at + 1] = status;
	s->failed++;
}

/* Checks the operation at hand, as a whole, and makes room for what it returns. */
static __always_inline void begin_op(struct scratch *s, struct answer *a)
{
	const struct record *r = &s->rec;
	enum status status = resolve(s);
	__u64 n = (__u64)r->count * r->size;

	if (status == STATUS_OK && returns(r)) {
		if (!s->fits && !has_room(s, n, s->index))
			status = STATUS_BAD_COUNT;
		else if (n & 3)
			*(__u32 *)(a->data + CUT(s->values + (n & ~3ull), FRAME_MASK)) = 0;
	}
	if (status != STATUS_OK) {
		fail(s, status);
		return;
	}
	s->elements = r->count;
	s->to = s->began = s->values;
	if (returns(r))
		s->values += (n + 3) & ~3ull;
}

/* Writes what the element was into the answer. */
static __always_inline void give(struct scratch *s, struct answer *a)
{
	void *to = a->data + CUT(s->to, FRAME_MASK);

	switch (s->rec.size) {
	case 1: *(__u8 *)to = s->old; break;
	case 2: *(__u16 *)to = s->old; break;
	case 4: *(__u32 *)to = s->old; break;
	case 8: *(__u64 *)to = s->old; break;
	}
	s->to += s->rec.size;
}

/* The next element of the operation at hand. */
static __always_inline void element(struct scratch *s, struct answer *a)
{
	struct block *k = block_at(s, s->at);
	__u32 size = s->rec.size;

	if (!k || change((void *)k->bytes + CUT(s->at, BLOCK - 8), s, s->at & 7)) {
		if (s->elements != s->rec.count && s->rec.op != OP_READ)
			s->torn = 1;
		s->values = s->began;
		fail(s, STATUS_NOT_EXECUTED);
		return;
	}
	if (returns(&s->rec))
		give(s, a);
	s->at += size;
	s->operand += size;
	s->compare += size;
	if (!--s->elements)
		count_touch(s, s->rec.total == s->rec.count, (__u64)s->rec.count * size);
}

struct walk {
	struct scratch *s;
	struct answer *a;
};

static long step(__u32 i, struct walk *w)
{
	struct scratch *s = w->s;

	if (s->torn)
		return 1;
	if (!s->elements) {
		if (!s->run_left && !next_record(s))
			return 1;
		if (s->sweeps && sweep(s, w->a))
			return 0;
		next_op(s);
		begin_op(s, w->a);
	}
	if (s->elements)
		element(s, w->a);
	return 0;
}

/* Executes a frame of one record, which has just been read, as far as it can be swept
 * through. 1: that is all of it. */
static __always_inline int execute_whole(struct scratch *s, struct answer *a)
{
	int swept;

	begin_record(s);
	swept = s->sweeps && sweep(s, a);
	if (s->rec.run)
		return !s->run_left;
	if (!swept)
		rewind(s);
	return swept;
}

static long move_back(__u32 i, struct walk *w)
{
	struct scratch *s = w->s;
	__u32 from = s->values - 4 * (i + 1), by = s->done;

	if (4 * i >= s->values)
		return 1;
	*(__u32 *)(w->a->data + CUT(from + by, FRAME_MASK)) =
		*(__u32 *)(w->a->data + CUT(from, FRAME_MASK));
	return 0;
}

/* Puts the list of statuses before the values, as wire.ResponseWriter does. */
__noinline int put_statuses(struct scratch *s, struct answer *a)
{
	struct walk w = {s, a};
	__u32 list, n;

	if (!s || !a)
		return 0;
	n = s->failed;
	list = 2 + 2 * n;
	s->done = (list + 3) & ~3u; /* how far the values move */
	bpf_loop(FRAME_MAX / 4, move_back, &w, 0);
	*(__u32 *)(a->data + CUT(s->done - 4, FRAME_MASK)) = 0;
	*(__u16 *)a->data = n;
	for (__u32 i = 0; i < 2 * OPS_MAX; i++) {
		if (i >= 2 * n)
			break;
		a->data[2 + i] = s->list[i];
	}
	a->n = s->values + s->done;
	a->flags = 1; /* STATUS */
	return 0;
}

/* Executes the frame and writes its answer. 0: it is not for this program, and nothing has
 * been done. If it is torn, there is no answer. */
__noinline int execute(struct scratch *s, struct answer *a)
{
	struct walk w = {s, a};

	if (!s || !a || !executable(s))
		return 0;
	s->elements = s->run_left = s->index = s->values = s->failed = s->torn = s->tells = 0;
	if (!s->whole)
		rewind(s);
	if (!s->whole || !execute_whole(s, a))
		bpf_loop(2 * FRAME_MAX + OPS_MAX, step, &w, 0);
	a->ops = s->h.ops;
	a->psn = s->h.psn;
	a->flags = 0;
	a->n = s->values;
	if (s->failed)
		put_statuses(s, a);
	tell(s);
	return 1;
}
