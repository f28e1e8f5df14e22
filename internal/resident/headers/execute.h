/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A request frame on registered memory, as internal/memory executes it: the frame is checked
 * as a whole; then the operations run in order, element by element, in one loop.
 */
#pragma once

#include "atomics.h"

/* wire.Status */
enum status {
	STATUS_OK,
	STATUS_NO_KEY,
	STATUS_NO_ACCESS,
	STATUS_OUT_OF_BOUNDS,
	STATUS_MISALIGNED,
	STATUS_BAD_COUNT = 6,
	STATUS_NOT_EXECUTED = 8,
	STATUS_STALE = 9,
};

/* Finds the region of the record at hand; records of one frame mostly have one. */
static __always_inline int find(struct scratch *s)
{
	__u64 key = s->rec.key;
	struct region *r;

	if (s->found && s->region_key == key)
		return 1;
	r = bpf_map_lookup_elem(&regions, &key);
	s->found = r != 0;
	if (!r)
		return 0;
	s->region = *r;
	s->region_key = key;
	return 1;
}

static long check_record(__u32 i, struct scratch **of)
{
	struct scratch *s = *of;

	if (!s->left)
		return 1;
	if (!parse(s) || !find(s)) {
		s->left = OPS_MAX + 1; /* more than a frame has: refused */
		return 1;
	}
	return 0;
}

/* 1 if this program executes all operations of the frame. */
__noinline int executable(struct scratch *s)
{
	struct scratch *of = s;

	if (!s)
		return 0;
	rewind(s);
	s->found = 0;
	bpf_loop(OPS_MAX, check_record, &of, 0);
	return !s->left && s->pos <= s->length && padded_well(s, s->pos);
}

/* Bytes that are kept for the failure of all operations behind the first n. */
static __always_inline __u32 reserve(const struct scratch *s, __u32 n)
{
	__u32 failures = s->failed + s->h.ops - n;

	return failures ? 4 + 2 * failures : 0;
}

/* Whether an operation that returns n bytes, the last of the first so many, has room. */
static __always_inline int has_room(const struct scratch *s, __u64 n, __u32 ops)
{
	__u64 end = s->values + ((n + 3) & ~3ull);

	return end + reserve(s, ops) <= s->room;
}

/* Where the operation at hand begins in the region, or why it must not run. */
static __always_inline enum status resolve(struct scratch *s)
{
	const struct record *r = &s->rec;
	const struct region *g = &s->region;
	__u64 total = (__u64)r->total * r->size;
	__u32 need = r->verb == VERB_ATOMIC ? REMOTE_WRITE :
		     r->op == OP_READ	    ? REMOTE_READ :
					      REMOTE_READ | REMOTE_WRITE;

	if (!find(s))
		return STATUS_NO_KEY;
	if (g->auth != s->auth)
		return STATUS_NO_ACCESS;
	if (r->incarnation && r->incarnation != g->incarnation)
		return STATUS_STALE;
	if ((g->access & need) != need)
		return STATUS_NO_ACCESS;
	s->at = r->offset - g->base;
	if (total > g->length || s->at > g->length - total)
		return STATUS_OUT_OF_BOUNDS;
	if (s->at & (r->size - 1))
		return STATUS_MISALIGNED;
	return STATUS_OK;
}

static long resolve_next(__u32 i, struct scratch **of)
{
	struct scratch *s = *of;

	if (i >= s->rec.run)
		return 1;
	s->rec.offset = in32(s, s->rec.next + i * s->rec.stride);
	s->unresolved = resolve(s) != STATUS_OK;
	return s->unresolved;
}

/* Whether none of the operations of the run at hand will be refused. */
__noinline int resolves(struct scratch *s)
{
	struct scratch *of = s;

	if (!s)
		return 0;
	bpf_loop(OPS_MAX, resolve_next, &of, 0);
	return !s->unresolved;
}

/* Whether the run at hand, which has just been read, is executed at once: then its values
 * need room together, and otherwise one by one, each with room for the failure of those
 * behind it. The two differ only if values of four bytes end the answer, to the last byte:
 * any other value is longer than what its failure takes. */
static __always_inline int at_once(struct scratch *s)
{
	const struct record *r = &s->rec;
	__u32 n = r->run * r->size, ops = s->index + r->run;

	if (!has_room(s, n, ops))
		return 0;
	if (r->size > 4 || ops < s->h.ops || s->failed || s->values + n + 2 <= s->room)
		return 1;
	return resolves(s);
}

/* Makes the next operation the one at hand: of the run, or of the next record. */
static __always_inline int next_op(struct scratch *s)
{
	struct record *r = &s->rec;

	if (!s->run_left) {
		if (!s->left || !parse(s))
			return 0;
		s->run_left = r->run;
		s->fits = r->run && (!returns(r) || at_once(s));
	}
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
	return 1;
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
	__u32 place = s->region.place, word = s->at >> 3, size = s->rec.size;
	void *memory = bpf_map_lookup_elem(&memories, &place);
	__u64 *w = memory ? bpf_map_lookup_elem(memory, &word) : 0;

	if (!w || change(w, s, s->at & 7)) { /* an array may have run in part */
		s->values = s->began;
		fail(s, STATUS_NOT_EXECUTED);
		return;
	}
	if (returns(&s->rec))
		give(s, a);
	s->at += size;
	s->operand += size;
	s->compare += size;
	s->elements--;
}

struct walk {
	struct scratch *s;
	struct answer *a;
};

static long step(__u32 i, struct walk *w)
{
	struct scratch *s = w->s;

	if (!s->elements) {
		if (!next_op(s))
			return 1;
		begin_op(s, w->a);
	}
	if (s->elements)
		element(s, w->a);
	return 0;
}

/* Executes the frame, which is executable, and writes the values into the answer. */
__noinline int execute(struct scratch *s, struct answer *a)
{
	struct walk w = {s, a};

	if (!s || !a)
		return 0;
	rewind(s);
	s->elements = s->run_left = s->index = s->values = s->failed = 0;
	bpf_loop(2 * FRAME_MAX + OPS_MAX, step, &w, 0);
	return 0;
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

/* Puts the list of statuses, if there is one, before the values, as wire.ResponseWriter
 * does. */
__noinline int finish(struct scratch *s, struct answer *a)
{
	struct walk w = {s, a};
	__u32 list, n;

	if (!s || !a)
		return 0;
	a->ops = s->h.ops;
	a->psn = s->h.psn;
	a->flags = 0;
	a->n = s->values;
	n = s->failed;
	if (!n)
		return 0;
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
